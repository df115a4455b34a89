"""A problem: items with labels, checked and ready to be compared on."""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from mercerless.comparison.read.options import KINDS, MATRICES, TASKS, ReadOptions
from mercerless.core.validation import check_row_order
from mercerless.kernels import as_kernel
from mercerless.spectra import check_kind

SMALLEST_CLASS = 5
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

    X is a data frame (kind "table"), a square array (the kinds of matrices; of several, the first), a list of strings
    or series, or a sparse matrix of hits.
    """

    X: Any
    y: NDArray
    kind: str
    task: str
    name: str = "data"
    names: tuple[str, ...] | None = None  # of the items
    groups: NDArray | None = None
    kernel: Any = None  # how strings or series are compared
    several: dict[str, NDArray] = field(default_factory=dict)
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
            return check_kind(self.matrix, "auto", "The matrix of comparisons", "kind")
        return self.kind

    @cached_property
    def is_directed(self) -> bool:
        """Whether the matrix differs from its transpose."""
        K = self.matrix
        return not np.allclose(K, K.T, rtol=1e-6, atol=1e-9 * np.abs(K).max())

    def select(self, items: NDArray) -> "Problem":
        """The problem of a subset of the items."""
        chosen = replace(
            self,
            X=take(self.X, items, self.kind),
            y=self.y[items],
            names=tuple(self.names[i] for i in items) if self.names else None,
            groups=None if self.groups is None else self.groups[items],
            several={name: K[np.ix_(items, items)] for name, K in self.several.items()},
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
    if kind == "hits":
        return csr_array(X[items][:, items])
    return X[np.ix_(items, items)]


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
    check_choice("kind", kind, KINDS)
    check_choice("task", task, TASKS)
    notes = list(notes)
    check_row_order(X, y, groups)
    if isinstance(y, str):
        raise ValueError(f"y={y!r} is a text; give the labels themselves, such as X.pop({y!r}).")
    X, kind, kernel, several = check_items(X, kind, kernel)
    labels = pd.Series(np.asarray(y, dtype=object).ravel()).infer_objects()
    n_items = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(labels) != n_items:
        hint = "; is it a list of pairs or hits? Add --format pairs or --format hits"
        raise ValueError(
            f"There are {n_items} items but {len(labels)} labels"
            f"{hint if kind == 'table' and X.shape[1] in (2, 3, 12) else ''}."
        )
    if groups is not None and len(np.asarray(groups)) != n_items:
        raise ValueError(f"There are {n_items} items but {len(np.asarray(groups))} groups.")
    problem = Problem(
        X,
        labels.to_numpy(),
        kind,
        task or "",
        names=tuple(map(str, names)) if names is not None else None,
        groups=None if groups is None else np.asarray(groups),
        kernel=kernel,
        several=several,
        **described,
    )
    labeled = np.flatnonzero(labels.notna().to_numpy())
    if len(labeled) < n_items:
        notes.append(Note(f"{n_items - len(labeled)} items without a label are left out"))
        problem = problem.select(labeled)
        labels = labels.iloc[labeled].infer_objects()
    problem = decide_task(problem, labels, task, notes)
    if problem.n_items < 10:
        raise ValueError(
            f"{problem.n_items} items with labels are too few to compare anything; 10 are the least, "
            "and 100 are better."
        )
    return replace(problem, notes=tuple(notes))


def check_choice(name: str, value: str | None, allowed: Sequence[str]) -> None:
    """Raise unless the value is None or one of those allowed."""
    if value is not None and value not in allowed:
        raise ValueError(f"{name}={value!r} is not known; use one of {', '.join(allowed)}.")


def check_items(X: Any, kind: str | None, kernel: Any) -> tuple[Any, str, Any, dict[str, NDArray]]:
    """Data in the form of `Problem`, its kind, the kernel of strings or series, and several matrices."""
    if isinstance(X, Mapping):
        several = {str(name): check_matrix(K, str(name)) for name, K in X.items()}
        first = next(iter(several.values()))
        return first, check_kind(first, kind or "auto", "The first matrix", "kind"), None, several
    if issparse(X):
        if kind == "table" or X.shape[0] != X.shape[1]:
            return check_table(pd.DataFrame(X.toarray())), "table", None, {}
        return csr_array(X, dtype=float), "hits", None, {}
    if kernel is not None or kind in ("strings", "series") or is_list_of_items(X):
        return check_objects(X, kind, kernel)
    if isinstance(X, pd.DataFrame) and (kind == "table" or not is_square(X)):
        return check_table(X), "table", None, {}
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X has {array.ndim} dimensions; give a table, a square matrix, or items and a kernel."
        )
    if kind in MATRICES or (kind is None and is_square(pd.DataFrame(array))):
        K = check_matrix(array, "X")
        return K, check_kind(K, kind or "auto", "X", "kind"), None, {}
    return check_table(pd.DataFrame(array)), "table", None, {}


def is_list_of_items(X: Any) -> bool:
    """Whether X is a list of strings, or of series of different lengths."""
    if isinstance(X, pd.DataFrame) or issparse(X):
        return False
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype.kind in "OU")
    first: Any = X[0] if len(X) else ""
    if isinstance(first, str):
        return True
    lengths = {np.shape(item) for item in X}
    return len(lengths) > 1 or np.ndim(first) == 2


def is_square(frame: pd.DataFrame) -> bool:
    """Whether a frame is a square of numbers and symmetric; a square that is not symmetric raises."""
    n_rows, n_columns = frame.shape
    if n_rows != n_columns or not all(map(pd.api.types.is_numeric_dtype, frame.dtypes)):
        return False
    K = frame.to_numpy(dtype=float)
    if np.allclose(
        K, K.T, rtol=1e-6, atol=1e-9 * np.nanmax(np.abs(K), initial=0.0), equal_nan=True
    ):
        return True
    names = list(map(str, frame.index))
    if names == list(map(str, frame.columns)) and names != [str(i) for i in range(n_rows)]:
        return True
    raise ValueError(
        f"Is this square of {n_rows} x {n_rows} numbers a matrix of similarities or a table? It is not "
        "symmetric; say which with kind (--kind similarity, distance, dissimilarity or table)."
    )


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
    return frame.infer_objects() if any(dtype.kind == "O" for dtype in frame.dtypes) else frame


def check_objects(
    X: Any, kind: str | None, kernel: Any
) -> tuple[Any, str, Any, dict[str, NDArray]]:
    """A list of items and what compares them; series of one length without a kernel are a table."""
    if isinstance(X, pd.DataFrame):
        X = X.iloc[:, 0]
    items = list(X)
    if isinstance(kernel, str) and ":" in kernel:
        kernel = find_function(kernel)
    if all(isinstance(item, str) for item in items):
        return items, "strings", kernel or "levenshtein", {}
    items = [np.asarray(item, dtype=float) for item in items]
    if kernel is None and len({item.shape for item in items}) == 1:
        return check_table(series_table(items)), "table", None, {}
    flat = [item[0] if item.ndim == 2 and len(item) == 1 else item for item in items]
    return flat, "series", kernel or "dtw", {}


def series_table(items: Sequence[NDArray]) -> pd.DataFrame:
    """A column per channel and point in time."""
    first = np.atleast_2d(items[0])
    n_channels, n_times = first.shape
    names = [f"t{j + 1}" for j in range(n_times)]
    if n_channels > 1:
        names = [f"channel {i + 1} {name}" for i in range(n_channels) for name in names]
    return pd.DataFrame(np.array([np.ravel(item) for item in items]), columns=names)


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


def decide_task(
    problem: Problem, labels: pd.Series, task: str | None, notes: list[Note]
) -> Problem:
    """Labels as classes or as numbers; classes that are too small are left out."""
    are_numbers = pd.api.types.is_numeric_dtype(labels) and labels.dtype != bool
    n_distinct = labels.nunique()
    if task is None:
        is_whole = are_numbers and (labels == labels.round()).all()
        are_classes = is_whole and n_distinct <= max(2, min(MOST_CLASSES, len(labels) // 5))
        task = "classification" if not are_numbers or are_classes else "regression"
        if are_numbers:
            what = "classes" if are_classes else "numbers to predict"
            notes.append(Note(f"the labels, {n_distinct} different numbers, are {what}", "task"))
    if task == "regression":
        if not are_numbers:
            raise ValueError(
                f"The labels are not numbers, such as {labels.iloc[0]!r}; leave out --task regression."
            )
        if n_distinct < 2:
            raise ValueError("All labels are equal; there is nothing to learn.")
        return replace(problem, y=labels.to_numpy(dtype=float), task=task)
    if are_numbers and (labels == labels.round()).all():
        labels = labels.astype(int)
    y = labels.to_numpy() if are_numbers else labels.astype(str).to_numpy(dtype=str)
    counts = pd.Series(y).value_counts()
    rare = counts.index[counts < SMALLEST_CLASS]
    if len(rare) and len(counts) - len(rare) >= 2:
        kept = np.flatnonzero(~np.isin(y, rare))
        listed = ", ".join(map(str, rare[:5])) + (", ..." if len(rare) > 5 else "")
        notes.append(
            Note(f"{len(y) - len(kept)} items of classes of fewer than five are left out: {listed}")
        )
        problem, y = problem.select(kept), y[kept]
        counts = counts[counts >= SMALLEST_CLASS]
    if len(counts) < 2:
        raise ValueError("All labels are equal; there is nothing to learn.")
    if counts.min() < SMALLEST_CLASS or len(counts) > len(y) / SMALLEST_CLASS:
        raise ValueError(
            f"There are {len(counts)} classes among {len(y)} items; at least two classes must have five "
            "items or more. If the labels are numbers to predict, add --task regression."
        )
    return replace(problem, y=y, task=task)
