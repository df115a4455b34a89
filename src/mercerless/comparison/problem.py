"""A learning problem made of arrays, a data frame or items; every guess is recorded with its reason."""

import importlib
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

from mercerless.comparison.columns import coerce, find_columns
from mercerless.comparison.labels import is_missing, written_alike
from mercerless.comparison.series import dtw
from mercerless.core.gaps import fill_gaps
from mercerless.core.memory import check_memory
from mercerless.core.optional import import_optional
from mercerless.core.validation import (
    align_by_name,
    as_items,
    check_real,
    check_square,
    guess_task,
    is_number_type,
    is_rounding,
    relative_asymmetry,
)
from mercerless.kernels import as_kernel
from mercerless.kernels.named import STRING_SIMILARITIES
from mercerless.spectra import KINDS as MATRIX_KINDS
from mercerless.spectra import DissimilarityKernel, check_kind, matrix_kind, symmetrize


class Guess(NamedTuple):
    """Something that was inferred: its subject, the finding, the reason, and the option that overrides it."""

    what: str
    value: str
    why: str
    option: str


class Matrix(NamedTuple):
    """A further symmetric matrix of the same items."""

    kind: str
    X: NDArray
    X_test: NDArray | None = None


@dataclass(frozen=True)
class Problem:
    """Items with labels, ready to be compared on.

    ``X`` is a table (numbers, or a DataFrame that `preprocessor` makes numbers), or the square matrix of similarities
    or distances of items, named `ids`. Rows of a given test set are in `X_test`, against the training items, and those
    of the other direction in `reverse_test` if it is known. If there are several matrices, ``X`` is the first, named
    `array`, and `others` has the others by name. `missing` are the words that mean a gap by the user's option,
    `percents` the columns whose numbers have percent signs in the file, `target` is the name of the column ``y``, if it
    has one, and `columns` are those of the file in their order, if it has no header.
    """

    kind: str
    task: str
    X: Any
    y: NDArray
    name: str = "data"
    groups: NDArray | None = None
    X_test: Any = None
    y_test: NDArray | None = None
    reverse_test: NDArray | None = None
    ids: tuple[str, ...] | None = None
    items: tuple[Any, ...] | None = None
    similarity: str | Callable | None = None
    roles: dict[str, str] | None = None
    preprocessor: ColumnTransformer | None = None
    guesses: tuple[Guess, ...] = ()
    missing: tuple[str, ...] = ()
    percents: tuple[str, ...] = ()
    target: str = "target"
    columns: tuple[str, ...] = ()
    array: str = ""
    others: dict[str, Matrix] = field(default_factory=dict)
    loading: str = field(default="X, y = ...  # your data", compare=False)

    @property
    def is_matrix(self) -> bool:
        """Whether X holds similarities or distances between the items."""
        return self.kind != "table"

    @property
    def small_is_like(self) -> bool:
        """Whether X holds distances or dissimilarities."""
        return self.kind in ("distance", "dissimilarity")

    @property
    def is_classification(self) -> bool:
        """Whether y holds classes."""
        return self.task == "classification"

    @cached_property
    def asymmetry(self) -> float:
        """Relative asymmetry of the matrix, 0 if it is only rounding."""
        if not self.is_matrix:
            return 0.0
        amount = relative_asymmetry(self.X)
        return 0.0 if is_rounding(amount, self.X.dtype) else amount

    @property
    def similarities(self) -> NDArray:
        """The symmetric similarities whose spectrum is analyzed; distances and dissimilarities are centered."""
        K = symmetrize(self.X) if self.asymmetry else self.X
        return conversion(self.kind).fit_transform(K) if self.small_is_like else K

    @property
    def matrices(self) -> dict[str, NDArray]:
        """All matrices by name, symmetric, the first one first."""
        first = symmetrize(self.X) if self.asymmetry else self.X
        return {self.array: first, **{name: other.X for name, other in self.others.items()}}

    @cached_property
    def n_features(self) -> int:
        """Number of numeric features that a row of a table becomes."""
        if self.preprocessor is None:
            return self.X.shape[1]
        return clone(self.preprocessor).fit_transform(self.X).shape[1]

    @cached_property
    def numbered(self) -> NDArray:
        """X as numbers that are equal if and only if the cells are, to detect copies of items."""
        if self.preprocessor is None:
            return self.X
        pd = import_optional("pandas", "table", "Reading tables")
        return np.column_stack([pd.factorize(column)[0] for _, column in self.X.items()]).astype(
            np.float64
        )

    def digest(self) -> bytes:
        """Return a digest that identifies the data."""
        digest = blake2b(repr((self.kind, self.task, self.roles)).encode(), digest_size=12)
        others = [array for other in self.others.values() for array in (other.X, other.X_test)]
        of_test = (self.X_test, self.y_test, self.reverse_test)
        for given in (self.X, self.y, self.groups, *of_test, *others):
            if hasattr(given, "iloc"):
                hashed = import_optional(
                    "pandas", "table", "Reading tables"
                ).util.hash_pandas_object(given)
                digest.update(hashed.to_numpy().tobytes())
            elif given is not None:
                digest.update(str((given.shape, given.dtype)).encode())
                digest.update(np.ascontiguousarray(given).tobytes())
        return digest.digest()


def take(X: Any, rows: NDArray) -> Any:
    """Return rows of an array or a DataFrame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


# ------------------------------------------------------------------------------------------------ from arrays


def make_problem(
    X: Any,
    y: ArrayLike,
    *,
    kind: str | None = None,
    task: str | None = None,
    groups: ArrayLike | None = None,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    test: NDArray | None = None,
    similarity: str | Callable | None = None,
    ids: Sequence[str] | None = None,
    name: str = "data",
    target: str | None = None,
    guesses: Iterable[Guess] = (),
) -> Problem:
    """Check arrays, a DataFrame or items and return a problem; arguments are those of `compare`.

    Items without a label are left out. ``test`` marks the items of X that are the given test set, ``target`` names y
    (None: its own name, if it has one), ``guesses`` are those made before.
    """
    guesses = list(guesses)
    if target is None:
        target = _name_of(y)
    array = ""
    others: dict[str, Matrix] = {}
    if isinstance(X, Mapping):
        array, X, X_test, others = _several_matrices(X, X_test, kind, guesses)
    kinds = (*MATRIX_KINDS, "table", "strings")
    tasks = ("classification", "regression")
    for what, value, known in (("kind", kind, kinds), ("task", task, tasks)):
        if value not in (None, *known):
            raise ValueError(f"{what}={value!r} is not known; use {', '.join(known)}.")
    if y_test is not None and X_test is None and test is None:
        raise ValueError("y_test has labels of test items, but there is no X_test; pass both.")
    y, groups = (align_by_name(X, values) for values in (y, groups))
    y_test = align_by_name(X_test, y_test)
    more: dict[str, Any] = {"ids": None if ids is None else tuple(map(str, ids))}
    if kind == "strings" or similarity is not None or (kind is None and _are_strings(X)):
        X, X_test, kind, more["items"], more["similarity"] = _compare_items(
            X, X_test, kind, similarity, guesses
        )
    elif hasattr(X, "iloc") and hasattr(X, "columns"):
        X, X_test, kind, fields = _from_frame(X, X_test, kind, guesses)
        more = {key: value for key, value in more.items() if value is not None} | fields
    if more.get("preprocessor") is None:
        X = _without_gaps(check_real(X, "X", allow_nan=True), kind, guesses)
        if kind != "table":
            X = _both_triangles(X, "X", guesses)
        _check_range(X, "The data")
    if kind is None:
        kind, why = guess_kind(X)
        guesses.append(Guess("kind", kind, why, "kind"))
    if kind != "table":
        X = _check_matrix(X, kind)
    if groups is not None:
        groups = _check_groups(groups, len(X))
    _check_sizes(X, kind, array, others)
    labels = _as_labels(y, len(X))
    problem = Problem(
        kind, "", X, labels, name, groups, target=target, array=array, others=others, **more
    )
    labeled = _labeled_items(problem.y, guesses)
    if len(labeled) < len(X):
        problem = select(problem, labeled)
    y, task = _check_target(problem.y, task, guesses)
    problem = replace(problem, y=y, task=task)
    if test is not None:
        problem = _split_rows(problem, test[labeled])
    elif X_test is not None:
        problem = _with_test(problem, X_test, y_test, labeled, len(X), guesses)
    problem = _without_rare(problem, guesses)
    if problem.is_classification and problem.y_test is not None:
        _check_test_classes(problem.y, problem.y_test)
    _check_group_gaps(problem.groups)
    _note_copies_of_target(problem, guesses)
    return replace(problem, guesses=tuple(guesses))


def _several_matrices(
    X: Mapping[str, Any], X_test: Mapping[str, Any] | None, kind: str | None, guesses: list[Guess]
) -> tuple[str, Any, Any, dict[str, Matrix]]:
    """Return the first matrix with its name and test rows, and the others, checked."""
    if not X:
        raise ValueError("X names no matrix; give a dict of names and square matrices.")
    if X_test is not None and (not isinstance(X_test, Mapping) or X_test.keys() != X.keys()):
        raise ValueError(f"X_test must be a dict with the names of X: {', '.join(map(str, X))}.")
    others = {}
    array, *rest = X
    for name in rest:
        matrix, ids = _matrix_by_name(X[name], X[array], f"X[{name!r}]", f"X[{array!r}]")
        values = _without_gaps(check_real(matrix, f"X[{name!r}]", allow_nan=True), kind, guesses)
        values = _both_triangles(values, f"X[{name!r}]", guesses)
        of_kind, why = (kind, "") if kind is not None else guess_kind(values)
        if of_kind not in MATRIX_KINDS:
            raise ValueError(
                f"X[{name!r}] has the shape {values.shape}; several matrices must all be square, "
                "of similarities or distances."
            )
        if why:
            guesses.append(Guess(f"kind of {name}", of_kind, why, "kind"))
        values = _check_matrix(values, of_kind)
        if not is_rounding(relative_asymmetry(values), values.dtype):
            values = symmetrize(values)
            guesses.append(Guess(name, "mean of both directions", "it is asymmetric", "array"))
        test = None
        if X_test is not None:
            rows = align_by_name(X_test[array], X_test[name])
            if ids is not None and hasattr(rows, "columns"):
                rows = _columns_by_name(rows, ids, f"X_test[{name!r}]")
            test = check_real(rows, f"X_test[{name!r}]")
        others[str(name)] = Matrix(of_kind, values, test)
    guesses.append(
        Guess("matrices", listed(X), f"learners take {array}, stacks each and all", "array")
    )
    return str(array), X[array], None if X_test is None else X_test[array], others


def _matrix_by_name(
    matrix: Any, first: Any, what: str, what_first: str
) -> tuple[Any, tuple[str, ...] | None]:
    """Return a matrix with its rows and columns in the order of the first matrix, and the names of its items.

    Data frames whose rows and columns have the same names are ordered by these; others stay as they are.
    """
    names = _names_of_items(matrix)
    if names is None:
        return matrix, None
    _check_names(names, what)
    items = _names_of_items(first)
    if items is None or _are_counted(items) or _are_counted(names):
        items = names
    if set(items) != set(names):
        strange = next(iter(set(names) ^ set(items)))
        raise ValueError(
            f"{what} and {what_first} name different items, such as {strange!r}; several matrices "
            "must be of the same items."
        )
    place = {name: i for i, name in enumerate(names)}
    rows = matrix.iloc[[place[item] for item in items]]
    return _columns_by_name(rows, items, what), items


def _names_of_items(matrix: Any) -> tuple[str, ...] | None:
    """The names of the rows of a data frame if its columns have the same names, else None."""
    if not (hasattr(matrix, "iloc") and hasattr(matrix, "columns")):
        return None
    names = tuple(map(str, matrix.index))
    return names if set(names) == set(map(str, matrix.columns)) else None


def _are_counted(names: Sequence[str]) -> bool:
    """Whether names are only the positions 0, 1, 2, ..."""
    return all(name == str(i) for i, name in enumerate(names))


def _check_sizes(X: Any, kind: str, array: str, others: dict[str, Matrix]) -> None:
    """Raise if several matrices are not of the same items."""
    if others and kind == "table":
        raise ValueError(
            f"X[{array!r}] has the shape {X.shape}; several matrices must all be square, of "
            "similarities or distances."
        )
    for name, other in others.items():
        if len(other.X) != len(X):
            raise ValueError(
                f"X[{name!r}] has {len(other.X)} items and X[{array!r}] {len(X)}; several matrices "
                "must be of the same items, in the same order."
            )


def _check_matrix(X: NDArray, kind: str) -> NDArray:
    """Return a checked square matrix of its kind; raise if memory does not suffice."""
    X = check_square(
        X, f"The matrix of {'similarities' if kind == 'strings' else kind + ' values'}"
    )
    n = len(X)
    check_memory(
        6.0 * X.nbytes, f"Comparing learners on a {n} x {n} matrix", remedy="use a part of the rows"
    )
    if kind == "distance":
        check_kind(X, kind, "The matrix", "kind")
        X = np.maximum(X, 0.0)
        np.fill_diagonal(X, 0.0)  # other values on it are rounding
    return X


def _check_groups(groups: ArrayLike, n_items: int) -> NDArray:
    groups = np.asarray(groups)
    if groups.shape != (n_items,):
        raise ValueError(
            f"groups has {len(groups)} entries for {n_items} items; there must be one per item."
        )
    n_groups = len(set(groups.tolist()))  # they may be of several types
    if n_groups < 5 and not any(map(is_missing, groups.tolist())):
        raise ValueError(
            f"There are {n_groups} groups; five-fold validation needs at least 5. If "
            "they are no groups of items that belong together, do without (--groups none)."
        )
    return groups


def _check_group_gaps(groups: NDArray | None) -> None:
    """Raise if items that are learned from have no group; they would all be one."""
    if groups is None:
        return
    n_missing = sum(map(is_missing, groups.tolist()))
    if n_missing:
        raise ValueError(
            f"groups is missing for {n_missing} of {len(groups)} items; give items that belong to "
            "no other a group of their own."
        )


def _note_copies_of_target(problem: Problem, guesses: list[Guess]) -> None:
    """Record columns of a table that hold the labels themselves, under other names or in another unit."""
    if problem.is_matrix:
        return
    columns = problem.X.items() if hasattr(problem.X, "items") else enumerate(problem.X.T)
    names = list(problem.roles or ())
    copies = []
    for place, (name, column) in enumerate(columns):
        values = np.asarray(column)
        is_copy = _names_classes if problem.is_classification else _is_linear
        if is_copy(values, problem.y):
            copies.append(names[place] if names else str(name))
    if copies:
        why = "it tells every label; leave it out unless it is known before the label is"
        guesses.append(
            Guess("the labels themselves", f"column {listed(map(repr, copies))}", why, "drop")
        )


def _names_classes(values: NDArray, y: NDArray) -> bool:
    """Whether every value stands for one class, and every class has one value."""
    n_classes = len(np.unique(y))
    if values.dtype.kind in "iuf" and len(np.unique(values[:1000])) > n_classes:
        return False
    pairs = set(zip(map(str, values), map(str, y)))
    n_values = len({value for value, _ in pairs})
    return len(pairs) == n_values == n_classes


def _is_linear(values: NDArray, y: NDArray) -> bool:
    """Whether a column is a linear function of the target, up to rounding."""
    if values.dtype.kind not in "biuf":
        return False
    values = values.astype(np.float64)
    if not np.isfinite(values).all() or np.ptp(values) == 0.0 or np.ptp(y) == 0.0:
        return False
    # scaled first, so that no product overflows
    correlation = np.corrcoef(values / np.abs(values).max(), y / np.abs(y).max())[0, 1]
    return bool(abs(correlation) > 1.0 - 1e-9)


def _without_gaps(X: NDArray, kind: str | None, guesses: list[Guess]) -> NDArray:
    """Complete a matrix of similarities or distances that lacks some entries, with a guess; raise at other NaN."""
    if not np.isnan(X).any() or X.shape[0] != X.shape[1] or kind == "table":
        return check_real(X, "X")
    done = fill_gaps(X)
    guesses.append(
        Guess("missing entries", f"{done.n_filled} of {X.size} completed", done.how, "kind")
    )
    return done.X


def _both_triangles(X: NDArray, what: str, guesses: list[Guess]) -> NDArray:
    """Return a square matrix with both triangles, with a guess if one of them was all zero and the other was not."""
    n_rows = len(X)
    if X.shape != (n_rows, n_rows) or n_rows < 4:
        return X
    has_lower = any(X[i, :i].any() for i in range(n_rows))  # without a copy
    has_upper = any(X[i, i + 1 :].any() for i in range(n_rows))
    if has_lower == has_upper:
        return X
    filled = np.tril(X, -1) if has_lower else np.triu(X, 1)
    n_pairs = n_rows * (n_rows - 1) // 2
    if np.count_nonzero(filled) < 0.5 * n_pairs:  # a graph without cycles is so, too
        return X
    why = f"the other one of {what} is zero"
    guesses.append(Guess("matrix", "one triangle, used for both", why, "kind"))
    return X + filled.T


def _compare_items(X, X_test, kind, similarity, guesses) -> tuple:
    """Return the matrix of the items and of the test items, its kind, the items, and the similarity."""
    X, X_test = (_rows_as_items(rows) for rows in (X, X_test))
    items = tuple(str(item) for item in X) if kind == "strings" or _are_strings(X) else tuple(X)
    if similarity is None:
        similarity = "levenshtein"
        guesses.append(
            Guess(
                "similarity", "1 - edit distance / longer length", "X holds strings", "similarity"
            )
        )
    tests = None if X_test is None else item_similarities(list(X_test), items, similarity)
    values = item_similarities(items, items, similarity)
    by_name = isinstance(similarity, str) and similarity in STRING_SIMILARITIES
    return (
        values,
        tests,
        "strings" if by_name else None if kind == "strings" else kind,
        items,
        similarity,
    )


def _rows_as_items(X: Any) -> Any:
    """Return the rows of a data frame as items, or the cells if it has one column; anything else as it is."""
    if not (hasattr(X, "iloc") and hasattr(X, "columns")):
        return X
    return X.iloc[:, 0] if X.shape[1] == 1 else as_items(X)


def _from_frame(X, X_test, kind, guesses) -> tuple:
    """Return a DataFrame as a matrix or a table of known columns, with the fields of `Problem` that describe it."""
    _check_cells(X)
    X = X.infer_objects()  # numbers among Python's objects are numbers
    numeric = all(map(is_number_type, X.dtypes))
    names = tuple(map(str, X.columns))
    _check_names(names, "X")
    if kind in MATRIX_KINDS or (kind is None and X.shape[0] == X.shape[1] and numeric):
        rows = tuple(map(str, X.index))
        is_named_alike = set(rows) <= set(names)
        if is_named_alike:
            _check_names(rows, "X")
            X = _columns_by_name(X, rows, "X")
        ids = rows if is_named_alike else names
        if kind is None and not _are_counted(names):
            values = X.to_numpy(np.float64, na_value=np.nan)
            check_no_table(values, names, rows, "X", "kind='{}'")
        if hasattr(X_test, "columns"):
            X_test = _columns_by_name(X_test, ids, "X_test")
            X_test = X_test.to_numpy(np.float64, na_value=np.nan)
        return X.to_numpy(np.float64, na_value=np.nan), X_test, kind, {"ids": ids}
    if kind is None:
        guesses.append(
            Guess("kind", "table", f"{X.shape[0]} rows and {X.shape[1]} columns", "kind")
        )
    X = X.set_axis(list(names), axis=1)
    described = find_columns(X)
    for column, reason in described.left_out.items():
        guesses.append(Guess("left out", f"column {column!r}", reason, "drop"))
    for role, what in (("category", "words as 0/1 columns"), ("date", "dates as numbers")):
        columns = [
            column for column, kind_of in described.roles.items() if kind_of.split()[0] == role
        ]
        if columns:
            guesses.append(Guess(what, listed(columns), "they are not numbers", "drop"))
    gaps = int(X[list(described.roles)].isna().to_numpy().sum())
    if gaps:
        why = "medians for numbers, a 0/1 column for words, learned on training rows only"
        cells = "1 cell" if gaps == 1 else f"{gaps} cells"
        guesses.append(Guess("missing values", cells, why, "drop"))
    if X_test is not None:
        if not hasattr(X_test, "columns") and np.shape(X_test)[1:] == (len(names),):
            X_test = type(X)(X_test, columns=list(names))
        if hasattr(X_test, "columns"):
            X_test = coerce(_columns_by_name(X_test, described.roles, "X_test"), described.roles)
            X_test = X_test.to_numpy(np.float64) if described.preprocessor is None else X_test
    return (
        described.X,
        X_test,
        "table",
        {"roles": described.roles, "preprocessor": described.preprocessor},
    )


def _check_cells(X: Any) -> None:
    """Raise if cells of a column are lists or the like."""
    for name, column in X.items():
        if column.dtype == object:
            kinds = {type(cell).__name__ for cell in column}
            nested = sorted(kinds & {"list", "tuple", "dict", "set", "ndarray"})
            if nested:
                raise ValueError(
                    f"Column {name!r} of X has cells of type {nested[0]}; there must be one number "
                    "or word in a cell."
                )


def check_no_table(
    X: NDArray, columns: Sequence[str], rows: Sequence[str], what: str, option: str
) -> None:
    """Raise if a square array may be a table: its columns have names, but not those of its rows, and it is asymmetric.

    `option` is how to say the kind, with a place for it.
    """
    if not columns or set(map(written_alike, columns)) & set(map(written_alike, rows)):
        return
    differences = np.abs(X - X.T)
    if np.nanmax(differences) <= 1e-6 * np.nanmax(np.abs(X)):
        return
    raise ValueError(
        f"{what} has as many rows as columns, but is not symmetric, and its columns have names of "
        f"their own, such as {columns[0]!r}; say {option.format('table')} if it is a table, or "
        f"{option.format('similarity')} or {option.format('distance')} if its entries compare the "
        "rows with each other."
    )


def _check_names(names: Sequence[str], what: str) -> None:
    """Raise if a name is repeated."""
    repeated, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"{what} has several columns or rows of one name, {repeated!r}; give each its own."
        )


def _columns_by_name(frame: Any, names: Iterable[str], what: str) -> Any:
    """Return the columns of these names, in this order; raise if one is missing or repeated."""
    columns = [str(column) for column in frame.columns]
    _check_names(columns, what)
    places = {column: place for place, column in enumerate(columns)}
    missing = next((name for name in names if name not in places), None)
    if missing is not None:
        raise ValueError(
            f"{what} has no column {missing!r}, which X has; give it the same columns, in any "
            "order."
        )
    chosen = frame.iloc[:, [places[name] for name in names]]
    return chosen.set_axis(list(names), axis=1)


def listed(names: Iterable, most: int = 12) -> str:
    """Return names in a sentence."""
    names = [str(name) or "(no name)" for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _without_rare(problem: Problem, guesses: list[Guess]) -> Problem:
    """Leave out the items of classes that have fewer than five; raise if they are more than a tenth."""
    if not problem.is_classification:
        return problem
    y = problem.y
    classes, counts = np.unique(y, return_counts=True)
    rare = classes[counts < 5]
    kept = np.flatnonzero(~np.isin(y, rare))
    if len(kept) > 0.9 * len(y) and len(classes) - len(rare) > 1:
        if len(rare):
            what = f"{len(y) - len(kept)} items of {listed(rare)}"
            guesses.append(Guess("left out", what, "classes with fewer than 5 items", "labels"))
            problem = select(problem, kept)
        return problem
    if len(classes) < 2:
        raise ValueError(f"All labels are {classes[0]!s}; there must be at least two classes.")
    which = f"{classes[counts.argmin()]!s} has {counts.min()} of the {len(y)} items"
    if len(classes) > 2 and len(classes) > len(y) / 5:
        which = f"there are {len(classes)} classes for {len(y)} items"
    remedy = "merge or remove rare classes"
    if y.dtype.kind in "iuf" and len(classes) > 2:
        remedy += ", or say that the labels are numbers (task 'regression')"
    elif len(classes) > len(y) / 2 and all(re.match(r"\W*\d", str(name)) for name in classes):
        remedy += f", or, if the labels are numbers, write them as 1234.5 and not as {classes[0]!s}"
    raise ValueError(f"Every class needs at least 5 items, but {which}; {remedy}.")


def select(problem: Problem, rows: NDArray) -> Problem:
    """Return a problem of these items only."""
    chosen: dict[str, Any] = {"y": problem.y[rows], "X": take(problem.X, rows)}
    if problem.is_matrix:
        chosen["X"] = problem.X[np.ix_(rows, rows)]
        if problem.X_test is not None:
            chosen["X_test"] = problem.X_test[:, rows]
        if problem.reverse_test is not None:
            chosen["reverse_test"] = problem.reverse_test[:, rows]
        chosen["others"] = {
            name: _select_matrix(other, rows) for name, other in problem.others.items()
        }
    if problem.groups is not None:
        chosen["groups"] = problem.groups[rows]
    if problem.ids is not None:
        chosen["ids"] = tuple(problem.ids[i] for i in rows)
    if problem.items is not None:
        chosen["items"] = tuple(problem.items[i] for i in rows)
    return replace(problem, **chosen)


def _select_matrix(matrix: Matrix, rows: NDArray) -> Matrix:
    X_test = matrix.X_test
    if X_test is not None:
        X_test = X_test[:, rows]
    return matrix._replace(X=matrix.X[np.ix_(rows, rows)], X_test=X_test)


def _with_test(
    problem: Problem, X_test: Any, y_test: Any, labeled: NDArray, n_items: int, guesses: list[Guess]
) -> Problem:
    """Add the given test set: its labeled items, compared with the training items that have labels.

    Of an asymmetric matrix it may have both directions side by side.
    """
    reverse = None
    if problem.preprocessor is None:
        X_test = check_real(X_test, "X_test")
        n_columns = X_test.shape[1]
        if problem.asymmetry and n_columns in (2 * n_items, 2 * len(problem.X)):
            reverse = _check_test_rows(problem, X_test[:, n_columns // 2 :], labeled)
            X_test = X_test[:, : n_columns // 2]
        X_test = _check_test_rows(problem, X_test, labeled)
    elif not hasattr(X_test, "columns"):
        raise ValueError("X has columns of words or gaps; pass X_test with the same columns.")
    if y_test is None or len(y_test) != len(X_test):
        raise ValueError("y_test must have one label per row of X_test.")
    y_test = _as_labels(y_test, len(X_test))
    rows = _labeled_items(y_test, guesses, "test items")
    y_test = _labels_like(problem.y, _plain_labels(y_test[rows]))
    others = {}
    for name, other in problem.others.items():
        test = other.X_test
        if test is None or len(test) != len(X_test):
            raise ValueError(f"X_test[{name!r}] must have a row for each of the test items.")
        others[name] = other._replace(X_test=test[rows])
    if reverse is not None:
        problem = replace(problem, reverse_test=reverse[rows])
    return replace(problem, X_test=take(X_test, rows), y_test=y_test, others=others)


def _check_test_rows(problem: Problem, X_test: NDArray, labeled: NDArray) -> NDArray:
    """Return rows of test items against the training items that have labels."""
    if problem.is_matrix and X_test.shape[1] > len(problem.X):
        X_test = X_test[:, labeled] if X_test.shape[1] > labeled.max() else X_test
    if X_test.shape[1] != problem.X.shape[1]:
        raise ValueError(
            f"X_test has {X_test.shape[1]} columns, X has {problem.X.shape[1]}; they must agree."
        )
    return X_test


def _labels_like(y: NDArray, y_test: NDArray) -> NDArray:
    """Return test labels of the type of y if that changes none of them, otherwise as they are."""
    if y.dtype.kind not in "biuf":
        return y_test.astype(str)
    try:
        numbers = y_test if y_test.dtype.kind in "biuf" else y_test.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("y holds numbers but y_test does not; give both the same type.") from None
    if not np.isfinite(numbers).all():
        raise ValueError("y_test has labels that are infinite; remove those items first.")
    alike = numbers.astype(y.dtype)
    return alike if np.array_equal(alike, numbers) else numbers


def _check_test_classes(y: NDArray, y_test: NDArray) -> None:
    """Raise if a test set has classes that no training item has."""
    strange = np.setdiff1d(y_test, y)
    if len(strange):
        raise ValueError(
            f"The given test set has the class {strange[0]!s}, which no training item has; remove "
            "its items or do without the given test set (--no-split)."
        )


def _check_range(values: NDArray, what: str) -> None:
    """Raise if squares of the numbers would overflow or underflow."""
    largest = float(np.abs(values).max())
    if largest > 1e100 or 0 < largest < 1e-100:
        raise ValueError(
            f"{what} have a largest size of {largest:.3g}, too extreme to compute with; rescale "
            "them."
        )


def _are_strings(X) -> bool:
    listed = isinstance(X, Sequence) or getattr(X, "ndim", 2) == 1  # a series too
    return listed and len(X) > 0 and all(isinstance(item, str) for item in X)


def _as_labels(y: Any, n_items: int) -> NDArray:
    """Return one label per item, including missing ones."""
    remedy = "there must be one label per item; compare several targets one by one"
    try:
        y = np.asarray(y)
    except ValueError:  # lists of labels of unequal length
        raise ValueError(f"The labels have several values for one item; {remedy}.") from None
    several = (list, tuple, set, np.ndarray)
    if y.dtype == object and any(isinstance(label, several) for label in y.ravel()):
        raise ValueError(f"The labels have several values for one item; {remedy}.")
    if y.ndim == 2 and 1 in y.shape:
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"The labels have shape {y.shape}; {remedy}.")
    if len(y) != n_items:
        raise ValueError(
            f"There are {len(y)} labels for {n_items} items; there must be one per item, in their "
            "order."
        )
    return y


def _name_of(y: Any) -> str:
    """The name of a Series, or of the one column of a DataFrame; "target" if there is none."""
    name = getattr(y, "name", None)
    columns: Any = getattr(y, "columns", ())
    if len(columns) == 1:
        name = columns[0]
    is_named = isinstance(name, str) and bool(name.strip())
    return str(name) if is_named else "target"


def _labeled_items(y: NDArray, guesses: list[Guess], items: str = "items") -> NDArray:
    """Return the positions of the items that have a label, and record how many have none."""
    if y.dtype.kind == "f":
        is_labeled = ~np.isnan(y)
    elif y.dtype.kind in "mM":
        is_labeled = ~np.isnat(y)
    elif y.dtype.kind in "OUST":
        is_labeled = np.array([not is_missing(label) for label in y], dtype=bool)
    else:
        is_labeled = np.ones(len(y), dtype=bool)
    n_missing = int((~is_labeled).sum())
    if n_missing == len(y):
        raise ValueError(f"All {len(y)} labels are missing, so there is nothing to learn.")
    if n_missing:
        what = f"{n_missing} of {len(y)} {items}"
        guesses.append(Guess("left out", what, "they have no label", "labels"))
    return np.flatnonzero(is_labeled)


def _plain_labels(y: NDArray) -> NDArray:
    """Return labels of Python objects as numbers, if all are, or else as text."""
    if y.dtype.kind == "S":
        return np.char.decode(y, "utf-8", "replace")
    if y.dtype != object:
        return y
    is_numeric = all(isinstance(label, (int, float, np.number, np.bool_)) for label in y)
    return np.array([label if is_numeric else str(label) for label in y])


#: Words that are classes, but may mean that there is no label, in lower case.
GAP_WORDS = ("-", "--", ".", "missing", "unknown", "n.a.", "k.a.", "not available", "unbekannt")


def _note_like_classes(y: NDArray, guesses: list[Guess]) -> None:
    """Record classes that differ only in upper and lower case, which are mostly one class, and words for gaps."""
    spellings: dict[str, list[str]] = {}
    for name in map(str, np.unique(y)):
        spellings.setdefault(name.casefold(), []).append(name)
    gaps = [name for word in GAP_WORDS for name in spellings.get(word, [])]
    if gaps and "+" not in spellings:
        why = "leave these items out, or say --missing, if they have no label"
        guesses.append(Guess("used as classes", listed(map(repr, gaps)), why, "missing"))
    alike = next((names for names in spellings.values() if len(names) > 1), None)
    if alike is not None:
        why = "they differ only in case; write them alike if they are one class"
        guesses.append(Guess("different classes", listed(map(repr, alike)), why, "labels"))


def _check_target(y: NDArray, task: str | None, guesses: list[Guess]) -> tuple[NDArray, str]:
    """Return checked labels and the task."""
    y = _plain_labels(y)
    n_items = len(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            f"{int((~np.isfinite(y)).sum())} labels are infinite; remove those items first."
        )
    if task is None:
        task, why = guess_task(y)
        guesses.append(Guess("task", task, why, "task"))
    if task == "classification":
        _note_like_classes(y, guesses)
    if task == "regression":
        if y.dtype.kind not in "biuf":
            raise ValueError(
                "Regression needs numbers as targets, not text; say task='classification' for "
                "classes."
            )
        if n_items < 25:
            raise ValueError(f"There are {n_items} items; comparing learners needs at least 25.")
        if np.ptp(y) == 0:
            raise ValueError("All targets are equal, so there is nothing to learn.")
        _check_range(y, "The targets")
        return y.astype(np.float64), task
    if y.dtype.kind == "f" and (y == np.round(y)).all():
        y = y.astype(np.int64)
    return y, task


def guess_kind(X: NDArray) -> tuple[str, str]:
    """Infer whether an array is a table or a matrix, and the kind of the matrix; return the kind and the reason."""
    if X.shape[0] != X.shape[1]:
        return "table", f"X is not square ({X.shape[0]} x {X.shape[1]})"
    guess = matrix_kind(X)
    return check_kind(X, guess.kind or "auto", "The matrix", "kind"), f"X is square: {guess.reason}"


def conversion(kind: str) -> DissimilarityKernel:
    """The step that converts distances (squared) or dissimilarities (as they are) to similarities."""
    return DissimilarityKernel() if kind == "distance" else DissimilarityKernel(power=1.0)


def as_distances(rows: NDArray, kind: str, smallest: float, largest: float) -> NDArray:
    """Rows of a matrix of any kind as distances for neighbors, by the training matrix's extreme entries."""
    if kind == "distance":
        return rows
    return np.maximum(rows - smallest if kind == "dissimilarity" else largest - rows, 0.0)


def item_similarities(
    rows: Sequence, columns: Sequence, similarity: str | Callable = "levenshtein"
) -> NDArray:
    """Compare rows with columns by a name of `STRING_SIMILARITIES`, "dtw", "module:function", or a function."""
    check_memory(
        8.0 * len(rows) * len(columns), f"The similarities of {len(rows)} x {len(columns)} items"
    )
    if similarity == "dtw":
        return dtw(rows, columns)
    if isinstance(similarity, str) and similarity not in STRING_SIMILARITIES:
        similarity = find_function(similarity)
    kernel = as_kernel(similarity, as_items(columns))
    return kernel(rows) if rows is columns else kernel(rows, columns)


def find_function(name: str) -> Callable:
    """Return the function that "module:function" names; modules of the current folder are found too."""
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(
            f"The similarity {name!r} is not known; use {', '.join(STRING_SIMILARITIES)}, dtw for "
            "time series, or module:function."
        )
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"The similarity {name!r} cannot be imported: {error}.") from None
    finally:
        sys.path.pop(0)


def _split_rows(problem: Problem, test: NDArray) -> Problem:
    """Keep the rows where `test` is False for training, the others as the given test set."""
    train = np.flatnonzero(~test)
    test = np.flatnonzero(test)
    X_test = problem.X[np.ix_(test, train)] if problem.is_matrix else take(problem.X, test)
    y, _ = _check_target(problem.y[train], problem.task, [])
    chosen = select(problem, train)
    others = {
        name: chosen.others[name]._replace(X_test=other.X[np.ix_(test, train)])
        for name, other in problem.others.items()
    }
    if problem.asymmetry:
        chosen = replace(chosen, reverse_test=problem.X[np.ix_(train, test)].T)
    return replace(chosen, y=y, X_test=X_test, y_test=problem.y[test], others=others)
