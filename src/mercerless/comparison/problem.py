"""A problem: items with labels, checked and ready to be compared on."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from mercerless.comparison.read.options import MATRICES, ReadOptions
from mercerless.core.validation import check_row_order
from mercerless.kernels import as_kernel
from mercerless.spectra import matrix_kind

SMALLEST_CLASS = 5
LEAST_ITEMS = 10
#: Whole numbers of at most so many different values are classes unless said otherwise.
MOST_CLASSES = 20


@dataclass(frozen=True)
class Note:
    """A decision about the data, and the option that overrides it."""

    text: str
    option: str = ""

    def __str__(self) -> str:
        return f"{self.text} (--{self.option} overrides)" if self.option else self.text


@dataclass(frozen=True)
class Problem:
    """Items with labels.

    X is a data frame (kind "table"), a square array (the kinds of matrices), a list of strings or series, or a sparse
    matrix of hits.
    """

    X: Any
    y: NDArray
    kind: str
    task: str
    name: str = "data"
    names: tuple[str, ...] | None = None  # of the items
    groups: NDArray | None = None
    kernel: Any = None  # how strings or series are compared
    notes: tuple[Note, ...] = ()
    target: str = "y"
    path: str = ""
    options: ReadOptions = field(default_factory=ReadOptions)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.y)

    @property
    def is_classification(self) -> bool:
        """Whether labels are classes."""
        return self.task == "classification"

    @property
    def is_table(self) -> bool:
        """Whether items are rows of a table."""
        return self.kind == "table"

    @cached_property
    def classes(self) -> NDArray:
        """The classes, in the order of scikit-learn."""
        return np.unique(self.y)

    @cached_property
    def matrix(self) -> NDArray:
        """Comparisons of all pairs of items; strings and series are compared once."""
        if self.kind == "hits":
            return self.X.toarray()
        if self.kind in ("strings", "series"):
            return as_kernel(self.kernel)(self.X)
        return self.X

    @cached_property
    def matrix_kind(self) -> str:
        """What the comparisons are."""
        if self.kind == "hits":
            return "similarity"
        if self.kind in ("strings", "series"):
            return find_kind(self.matrix, "The matrix of comparisons")
        return self.kind

    @cached_property
    def is_directed(self) -> bool:
        """Whether the matrix differs from its transpose."""
        K = self.matrix
        return not np.allclose(K, K.T, rtol=1e-6, atol=1e-9 * np.abs(K).max())

    def note(self, text: str, option: str = "") -> "Problem":
        """The problem with a further note."""
        return replace(self, notes=(*self.notes, Note(text, option)))

    def select(self, items: NDArray) -> "Problem":
        """The problem of a subset of the items."""
        chosen = replace(
            self,
            X=take(self.X, items, self.kind),
            y=self.y[items],
            names=tuple(self.names[i] for i in items) if self.names else None,
            groups=None if self.groups is None else self.groups[items],
        )
        if "matrix" in vars(self) and not self.is_table:  # strings are not compared again
            vars(chosen)["matrix"] = self.matrix[np.ix_(items, items)]
        return chosen


def take(X: Any, items: NDArray, kind: str) -> Any:
    """Some items of any data."""
    if kind == "table":
        return X.iloc[items].reset_index(drop=True)
    if kind in ("strings", "series"):
        return [X[i] for i in items]
    return X[items][:, items]


def make_problem(
    X: Any,
    y: ArrayLike,
    *,
    kind: str | None = None,
    task: str | None = None,
    kernel: Any = None,
    groups: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    notes: Sequence[Note] = (),
    **described: Any,
) -> Problem:
    """Check data and labels, leave out what has no label, and infer the task."""
    ReadOptions(kind=kind, task=task)  # raises if they are not known
    check_row_order(X, y=y, groups=groups)
    if isinstance(y, str):
        raise ValueError(f"y={y!r} is a text; give the labels themselves, such as X.pop({y!r}).")
    X, kind, kernel = check_items(X, kind, kernel)
    n_items = len(X) if isinstance(X, list) else X.shape[0]
    labels = pd.Series(np.asarray(y, dtype=object).ravel())
    groups = None if groups is None else np.asarray(groups)
    for name, values in {"labels": labels, "groups": groups}.items():
        if values is not None and len(values) != n_items:
            raise ValueError(f"There are {n_items} items but {len(values)} {name}.")
    problem = Problem(
        X,
        labels.to_numpy(),
        kind,
        task or "",
        names=None if names is None else tuple(map(str, names)),
        groups=groups,
        kernel=kernel,
        notes=tuple(notes),
        **described,
    )
    n_missing = int(labels.isna().sum())
    if n_missing == len(labels):
        raise ValueError("All labels are missing; there is nothing to learn.")
    if n_missing:
        problem = problem.select(np.flatnonzero(labels.notna()))
        problem = problem.note(f"items without a label, which are left out: {n_missing:,}")
    problem = decide_task(problem, task)
    if kind in MATRICES and problem.is_directed:
        text = "the matrix has a direction: learners take the mean of both, unless you fit "
        problem = problem.note(text + "SimilarityClassifier(direction='both') or its Regressor")
    if problem.n_items < LEAST_ITEMS:
        raise ValueError(
            f"{problem.n_items} items with labels are too few to compare anything; {LEAST_ITEMS} are "
            "the least, and 100 are better."
        )
    return problem


def check_items(X: Any, kind: str | None, kernel: Any) -> tuple[Any, str, Any]:
    """Data in the form of `Problem`, its kind, and the kernel of strings or series."""
    if issparse(X) and kind != "table" and X.shape[0] == X.shape[1]:
        return csr_array(X, dtype=float), "hits", None
    if issparse(X):
        return check_table(pd.DataFrame(X.toarray())), "table", None
    if kernel is not None or kind in ("strings", "series") or is_list_of_items(X):
        return check_objects(X, kind, kernel)
    frame = pd.DataFrame(X)
    if kind == "table" or (kind is None and not is_square(frame)):
        return check_table(frame), "table", None
    K = check_matrix(X, "X")
    return K, kind or find_kind(K, "X"), None


def find_kind(K: NDArray, name: str) -> str:
    """Whether a matrix holds similarities or distances; raises if that is not clear."""
    found = matrix_kind(K)
    if found.kind is None:
        raise ValueError(
            f"{name} may hold similarities or dissimilarities: {found.reason}; say which with kind "
            "(--kind similarity, distance or dissimilarity)."
        )
    return found.kind


def is_list_of_items(X: Any) -> bool:
    """Whether X is a list of strings, or of series of several channels or different lengths."""
    if hasattr(X, "shape"):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype.kind not in "iuf")
    return len(X) > 0 and (
        isinstance(X[0], str) or len({np.shape(x) for x in X}) > 1 or np.ndim(X[0]) == 2
    )


def is_square(frame: pd.DataFrame) -> bool:
    """Whether a frame is a square of numbers and symmetric; a square that is not symmetric raises."""
    n_rows, n_columns = frame.shape
    if n_rows != n_columns or not all(map(pd.api.types.is_numeric_dtype, frame.dtypes)):
        return False
    K = frame.to_numpy(dtype=float)
    smallest = 1e-9 * np.nanmax(np.abs(K), initial=0.0)
    if not np.allclose(K, K.T, rtol=1e-6, atol=smallest, equal_nan=True):
        raise ValueError(
            f"Is this square of {n_rows} x {n_rows} numbers a matrix of similarities or a table? It is not "
            "symmetric; say which with kind (--kind similarity, distance, dissimilarity or table)."
        )
    return True


def check_matrix(K: Any, name: str) -> NDArray:
    """A square of finite numbers."""
    try:
        K = np.asarray(K, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a matrix of numbers.") from None
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{name} has shape {K.shape}; a matrix of similarities or distances is square, one row and "
            "one column per item."
        )
    n_missing = int((~np.isfinite(K)).sum())
    if n_missing:
        raise ValueError(
            f"{name} has {n_missing} entries that are missing or infinite; fill them before, such as "
            "with the largest distance or the smallest similarity."
        )
    return K


def check_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with words as names of columns, a fresh index, and finite numbers."""
    if frame.shape[1] == 0:
        raise ValueError("The table has no column besides the labels.")
    if all(isinstance(name, (int, np.integer)) for name in frame.columns):
        frame = frame.set_axis([f"column {j + 1}" for j in range(frame.shape[1])], axis=1)
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1).reset_index(drop=True)
    numbers = frame.select_dtypes("number")
    infinite = np.isinf(numbers.to_numpy(dtype=float, na_value=np.nan)).any(axis=0)
    if infinite.any():
        raise ValueError(
            f"The column {numbers.columns[infinite.argmax()]!r} has infinite values; replace them, or "
            "say that they are gaps with --missing inf."
        )
    for name in frame.columns[[dtype.kind == "O" for dtype in frame.dtypes]]:
        if frame[name].map(lambda cell: isinstance(cell, (list, dict, np.ndarray))).any():
            raise ValueError(f"The column {name!r} has lists; give each of their entries a column.")
    return frame.infer_objects() if any(dtype.kind == "O" for dtype in frame.dtypes) else frame


def check_objects(X: Any, kind: str | None, kernel: Any) -> tuple[Any, str, Any]:
    """A list of items and what compares them; series of one length without a kernel are a table."""
    items = list(X.iloc[:, 0] if isinstance(X, pd.DataFrame) else X)
    if isinstance(kernel, str) and ":" in kernel:
        kernel = find_function(kernel)
    if all(isinstance(item, str) for item in items):
        return items, "strings", kernel or "levenshtein"
    items = [np.asarray(item, dtype=float) for item in items]
    is_even = len({item.shape for item in items}) == 1
    if kind == "table" or (kind is None and kernel is None and is_even):
        return check_table(series_table(items)), "table", None
    return items, "series", kernel or "dtw"


def series_table(items: Sequence[NDArray]) -> pd.DataFrame:
    """A column per channel and point in time."""
    frame = pd.DataFrame([np.ravel(item) for item in items])
    return frame.set_axis([f"t{j + 1}" for j in range(frame.shape[1])], axis=1)


def find_function(name: str) -> Callable:
    """The function that "module:function" names; modules of the current folder are found too."""
    module, _, function = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"The similarity {name!r} cannot be imported: {error}.") from None
    finally:
        sys.path.pop(0)


def decide_task(problem: Problem, task: str | None) -> Problem:
    """Labels as classes or as numbers, which is inferred if it is not given."""
    labels = pd.Series(problem.y).infer_objects()
    are_numbers = pd.api.types.is_numeric_dtype(labels) and labels.dtype != bool
    is_whole = are_numbers and bool((labels == labels.round()).all())
    n_distinct = labels.nunique()
    if n_distinct < 2:
        raise ValueError("All labels are equal; there is nothing to learn.")
    if task is None:
        are_few = n_distinct <= max(2, min(MOST_CLASSES, len(labels) // 5))
        task = "regression" if are_numbers and not (is_whole and are_few) else "classification"
        what = "classes" if task == "classification" else "numbers to predict"
        if are_numbers:
            problem = problem.note(
                f"the labels, {n_distinct} different numbers, are {what}", "task"
            )
    if task == "classification":
        y = labels.astype(int) if is_whole else labels if are_numbers else labels.astype(str)
        return keep_classes(replace(problem, y=np.array(y.tolist()), task=task))
    if not are_numbers:
        raise ValueError(
            f"The labels are not numbers, such as {labels.iloc[0]!r}; leave out --task regression."
        )
    return replace(problem, y=labels.to_numpy(dtype=float), task=task)


def keep_classes(problem: Problem) -> Problem:
    """The problem without classes that are too small; raises if fewer than two are left."""
    names, codes, counts = np.unique(problem.y, return_inverse=True, return_counts=True)
    is_rare = counts < SMALLEST_CLASS
    if (~is_rare).sum() < 2 or 2 * counts[is_rare].sum() > len(codes):
        hint = " If they are numbers to predict, add --task regression." * (
            names.dtype.kind in "if"
        )
        raise ValueError(
            f"{counts[is_rare].sum()} of the {len(codes)} labels are classes of fewer than five items, "
            f"such as {names[is_rare][0]}; merge or leave out such classes.{hint}"
        )
    if not is_rare.any():
        return problem
    kept = np.flatnonzero(~is_rare[codes])
    listed = ", ".join(map(str, names[is_rare][:5])) + (", ..." if is_rare.sum() > 5 else "")
    text = f"classes of fewer than five items, which are left out: {listed}"
    return problem.select(kept).note(text)
