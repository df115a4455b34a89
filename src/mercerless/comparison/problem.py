"""From a file, or arrays, to a learning problem: every guess is written down with its reason and its override."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless._optional import import_optional
from mercerless._validation import check_memory, check_real, check_square, guess_task, relative_asymmetry
from mercerless.comparison import files
from mercerless.spectra import KINDS as MATRIX_KINDS
from mercerless.spectra import DissimilarityKernel, check_kind, matrix_kind, symmetrize

KINDS = (*MATRIX_KINDS, "table", "strings")
TASKS = ("classification", "regression")
SUFFIXES = (*files.ARRAY_SUFFIXES, ".parquet")
DISTANCE_NAMES = ("D", "distance", "distances")
LABEL_COLUMNS = (*files.LABEL_NAMES, "class")
GROUP_COLUMNS = ("group", "groups")
SPLIT_COLUMNS = ("split", "partition", "subset")
INDEX_COLUMNS = ("", "id", "index")
MAX_CATEGORIES = 30


class Guess(NamedTuple):
    """Something that was found out rather than said: what, the finding, why, and the option that overrides it."""

    what: str
    value: str
    why: str
    option: str


@dataclass(frozen=True)
class Problem:
    """Items with labels, ready to be compared on.

    ``X`` is the table of numbers, or the square matrix of similarities or distances (of the strings, for
    ``kind="strings"``, whose items are then `items`). Rows of a given test set are in `X_test` (against the
    training items, for matrices) and `y_test`.
    """

    kind: str
    task: str
    X: NDArray
    y: NDArray
    name: str = "data"
    groups: NDArray | None = None
    X_test: NDArray | None = None
    y_test: NDArray | None = None
    items: tuple[str, ...] | None = None
    encoding: TableEncoding | None = None
    guesses: tuple[Guess, ...] = ()
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
        """Relative asymmetry of the matrix, 0 where it is only rounding."""
        if not self.is_matrix:
            return 0.0
        amount = relative_asymmetry(self.X)
        return amount if amount > (1e-5 if self.X.dtype == np.float32 else 1e-8) else 0.0

    @property
    def similarities(self) -> NDArray:
        """The symmetric similarities whose spectrum is looked at; distances and dissimilarities are centred."""
        K = symmetrize(self.X) if self.asymmetry else self.X
        return conversion(self.kind).fit_transform(K) if self.small_is_like else K

    @cached_property
    def eigenvalues(self) -> NDArray:
        """The eigenvalues of `similarities`, ascending; computed once for all who ask."""
        return np.linalg.eigvalsh(self.similarities)


class TableEncoding(NamedTuple):
    """How the columns of a table of cells become numbers, for training and for new rows alike.

    ``categories`` maps a column of words to its known words, each of which becomes a 0/1 column.
    """

    columns: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]

    def encode(self, table: Table, what: str) -> NDArray:
        """Return the rows of `table` as numbers; one sentence about the first cell that does not fit."""
        blocks = []
        for name in self.columns:
            if name not in table.columns:
                raise ValueError(f"{what} has no column {name!r}; it has {', '.join(table.columns)}.")
            cells = table.columns[name]
            if name in self.categories:
                known = self.categories[name]
                strange = next((cell for cell in cells if cell not in known), None)
                if strange is not None:
                    raise ValueError(f"{what}: column {name!r} has {strange!r}, known are {', '.join(known)}.")
                blocks += [np.array([float(cell == word) for cell in cells]) for word in known[len(known) == 2 :]]
            else:
                blocks.append(_numbers(cells, name, table.lines, what))
        return np.column_stack(blocks)


class Table(NamedTuple):
    """Cells of a text or parquet table by column; `lines` are the rows' line numbers in the file."""

    columns: dict[str, list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)


# ------------------------------------------------------------------------------------------------ from arrays


def make_problem(
    X: ArrayLike | Sequence[str],
    y: ArrayLike,
    *,
    kind: str | None = None,
    task: str | None = None,
    groups: ArrayLike | None = None,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    name: str = "data",
    guesses: Iterable[Guess] = (),
    **more,
) -> Problem:
    """Check arrays and make them a problem.

    Parameters
    ----------
    X : array-like or sequence of str
        A square matrix of similarities or distances, a table of numbers, or strings.
    y : array-like of shape (n,)
        Classes or numbers.
    kind, task : str or None, default=None
        What X and y are; None finds out.
    groups : array-like of shape (n,) or None, default=None
        Items of one group are never split between training and test.
    X_test, y_test : array-like or None, default=None
        A given test set; for matrices, rows against the training items.
    name : str, default="data"
        What to call it.
    guesses : iterable of Guess, default=()
        What was guessed before.
    **more
        Further fields of `Problem`.

    Returns
    -------
    Problem
        The checked problem.
    """
    guesses = list(guesses)
    if kind not in (None, *KINDS):
        raise ValueError(f"kind={kind!r} is not known; use {', '.join(KINDS)}.")
    if task not in (None, *TASKS):
        raise ValueError(f"task={task!r} is not known; use {', '.join(TASKS)}.")
    items = None
    if kind == "strings" or (kind is None and _are_strings(X)):
        items, kind = tuple(str(item) for item in X), "strings"
        X_test = None if X_test is None else edit_similarities(list(X_test), list(items))
        X = edit_similarities(list(items), list(items))
        guesses.append(Guess("similarity", "1 - edit distance / longer length", "X holds strings", "kind"))
    X = check_real(X, "X")
    _check_range(X, "The data")
    if kind is None:
        kind, why = guess_kind(X)
        guesses.append(Guess("kind", kind, why, "kind"))
    if kind != "table":
        X = check_square(X, f"The matrix of {'similarities' if kind == 'strings' else kind + ' values'}")
        n = len(X)
        check_memory(6.0 * X.nbytes, f"Comparing learners on a {n} x {n} matrix", remedy="use a part of the rows")
        if kind == "distance":
            check_kind(X, kind, "The matrix", "kind")
            X = np.maximum(X, 0.0)
            np.fill_diagonal(X, 0.0)  # what is left on it is rounding
    y, task = _check_target(y, len(X), task, guesses)
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (len(X),):
            raise ValueError(f"groups has {len(groups)} entries for {len(X)} items; there must be one per item.")
        if len(np.unique(groups)) < 5:
            raise ValueError(f"There are {len(np.unique(groups))} groups; five-fold validation needs at least 5.")
    problem = Problem(kind, task, X, y, name, groups, items=items, guesses=tuple(guesses), **more)
    return problem if X_test is None else _with_test(problem, X_test, y_test)


def _with_test(problem: Problem, X_test, y_test) -> Problem:
    X_test = check_real(X_test, "X_test")
    if X_test.shape[1] != problem.X.shape[1]:
        raise ValueError(f"X_test has {X_test.shape[1]} columns, X has {problem.X.shape[1]}; they must agree.")
    if y_test is None or len(y_test) != len(X_test):
        raise ValueError("y_test must have one label per row of X_test.")
    y_test = np.asarray(y_test)
    if problem.is_classification:
        y_test = y_test.astype(str) if problem.y.dtype.kind == "U" else y_test
        _check_test_classes(problem.y, y_test)
    return replace(problem, X_test=X_test, y_test=y_test.astype(problem.y.dtype))


def _check_test_classes(y: NDArray, y_test: NDArray) -> None:
    """Refuse a test set with classes that nothing can be learned about."""
    strange = np.setdiff1d(y_test, y)
    if len(strange):
        raise ValueError(
            f"The given test set has the class {strange[0]!s}, which no training item has; remove its items or do "
            "without the given test set (--no-split)."
        )


def _check_range(values: NDArray, what: str) -> None:
    """Refuse numbers whose squares leave the range of floating point."""
    largest = float(np.abs(values).max())
    if largest > 1e100 or 0 < largest < 1e-100:
        raise ValueError(f"{what} have a largest size of {largest:.3g}, too extreme to compute with; rescale them.")


def _are_strings(X) -> bool:
    listed = isinstance(X, Sequence) or getattr(X, "ndim", 2) == 1  # a series too
    return listed and len(X) > 0 and all(isinstance(item, str) for item in X)


def _check_target(y, n_items: int, task: str | None, guesses: list[Guess]) -> tuple[NDArray, str]:
    """Return checked labels and the task."""
    y = np.asarray(y)
    if y.dtype == object:
        y = np.array([str(label) for label in y.ravel()]).reshape(y.shape)
    if y.ndim == 2 and 1 in y.shape:
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"The labels have shape {y.shape}; there must be one label per item.")
    if len(y) != n_items:
        raise ValueError(f"There are {len(y)} labels for {n_items} items; there must be one per item, in their order.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{int((~np.isfinite(y)).sum())} labels are NaN or infinite; remove those items first.")
    if task is None:
        task, why = guess_task(y)
        guesses.append(Guess("task", task, why, "task"))
    if task == "regression":
        if y.dtype.kind not in "biuf":
            raise ValueError("Regression needs numbers as targets, not text; say task='classification' for classes.")
        if n_items < 25:
            raise ValueError(f"There are {n_items} items; comparing learners needs at least 25.")
        if np.ptp(y) == 0:
            raise ValueError("All targets are equal, so there is nothing to learn.")
        _check_range(y, "The targets")
        return y.astype(np.float64), task
    if y.dtype.kind == "f" and (y == np.round(y)).all():
        y = y.astype(np.int64)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"All labels are {classes[0]!s}; there must be at least two classes.")
    if counts.min() < 5:
        rare = f"{classes[counts.argmin()]!s} has {counts.min()} of the {n_items} items"
        if len(classes) > 2 and len(classes) > n_items / 5:
            rare = f"there are {len(classes)} classes for {n_items} items"
        remedy = "merge or remove rare classes"
        if y.dtype.kind in "iuf" and len(classes) > 2:
            remedy += ", or say that the labels are numbers (task 'regression')"
        raise ValueError(f"Every class needs at least 5 items, but {rare}; {remedy}.")
    return y, task


def guess_kind(X: NDArray) -> tuple[str, str]:
    """Tell tables and matrices of all kinds apart; return the kind and the reason."""
    if X.shape[0] != X.shape[1]:
        return "table", f"X is not square ({X.shape[0]} x {X.shape[1]})"
    found = matrix_kind(X)
    return check_kind(X, found.kind or "auto", "The matrix", "kind"), f"X is square: {found.reason}"


def conversion(kind: str) -> DissimilarityKernel:
    """The step that makes similarities of distances (squared) or dissimilarities (as they are)."""
    return DissimilarityKernel() if kind == "distance" else DissimilarityKernel(power=1.0)


def as_distances(rows: NDArray, kind: str, smallest: float, largest: float) -> NDArray:
    """Rows of a matrix of any kind as distances for neighbours, by the training matrix's extreme entries."""
    if kind == "distance":
        return rows
    return np.maximum(rows - smallest if kind == "dissimilarity" else largest - rows, 0.0)


def edit_similarities(rows: Sequence[str], columns: Sequence[str]) -> NDArray:
    """``1 - edit distance / longer length`` of every row's string with every column's."""
    import_optional("rapidfuzz", extra="strings", what="Comparing strings")
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    check_memory(8.0 * len(rows) * len(columns), f"The edit distances of {len(rows)} x {len(columns)} strings")
    return cdist(rows, columns, scorer=Levenshtein.normalized_similarity, dtype=np.float64)


# ------------------------------------------------------------------------------------------------- from files


def read_problem(
    path: str | os.PathLike,
    *,
    labels: str | None = None,
    kind: str | None = None,
    task: str | None = None,
    groups: str | None = None,
    array: str | None = None,
    drop: Sequence[str] = (),
    use_split: bool = True,
) -> Problem:
    """Read a matrix, table or strings with their labels.

    Parameters
    ----------
    path : path-like
        A .npy, .npz, .csv, .tsv, .txt or .parquet file.
    labels : str or None, default=None
        A file with one label per item, or the column (or array of an .npz) that holds them.
    kind, task : str or None, default=None
        What the data and labels are; None finds out.
    groups : str or None, default=None
        The column (or array, or file) of groups; None looks for one named "group"; "none" uses none.
    array : str or None, default=None
        The array of an .npz file.
    drop : sequence of str, default=()
        Columns to leave out.
    use_split : bool, default=True
        Whether a split into training and test rows found in the file is kept.

    Returns
    -------
    Problem
        The checked problem.
    """
    path = files.existing_file(path, SUFFIXES)
    if path.suffix.lower() in (".npy", ".npz"):
        return _from_arrays(path, labels, kind, task, groups, array, use_split)
    if labels is not None and Path(labels).is_file():
        if kind == "strings":
            return _from_lines(path, labels, task, groups)
        if kind is None and path.suffix.lower() == ".txt" and _are_lines(path):
            guess = Guess("kind", "strings", "every line has words in it", "kind")
            return _from_lines(path, labels, task, groups, [guess])
    return _from_table(path, read_table(path), labels, kind, task, groups, drop, use_split)


def _from_arrays(path: Path, labels, kind, task, groups, array, use_split) -> Problem:
    arrays = files.read_arrays(path)
    found = files.find_matrix(arrays, path, array)
    X = files.as_real(arrays[found], repr(str(path)) if len(arrays) == 1 else f"{found!r} in {str(path)!r}")
    guesses = [] if array or len(arrays) == 1 else [Guess("matrix", found, "its name in the file", "array")]
    if kind is None and found in DISTANCE_NAMES and X.shape[0] == X.shape[1]:
        kind = "dissimilarity" if matrix_kind(X).kind == "dissimilarity" else "distance"
        guesses.append(Guess("kind", kind, f"the array is named {found}", "kind"))
    own = labels if labels in arrays else None if labels else files.find_labels(arrays)
    if own is None and labels is None:
        raise ValueError(f"{str(path)!r} has no labels; give them with --labels FILE, one per item.")
    y = arrays[own] if own is not None else files.read_labels(_label_file(labels, path, arrays))
    load = f'with np.load("{path}") as arrays:\n    X = arrays["{found}"]'
    if path.suffix.lower() == ".npy":
        load = f'X = np.load("{path}")'
        load += f"\n{_label_code(labels)}"
    else:
        load += f'\n    y = arrays["{own}"]' if own is not None else f"\n{_label_code(labels)}"
    extra = {}
    if use_split and f"{found}_test" in arrays and own is not None and f"{own}_test" in arrays:
        extra = {"X_test": arrays[f"{found}_test"], "y_test": arrays[f"{own}_test"]}
        why = f"the file has {found}_test and {own}_test"
        guesses.append(Guess("split", f"{len(extra['y_test'])} test items", why, "no-split"))
    g = _array_groups(arrays, groups, path, guesses)
    return make_problem(X, y, kind=kind, task=task, groups=g, name=path.name, guesses=guesses, loading=load, **extra)


def _array_groups(arrays, groups, path, guesses) -> NDArray | None:
    if groups == "none":
        return None
    if groups is not None:
        return arrays[groups] if groups in arrays else files.read_labels(_label_file(groups, path, arrays))
    found = next((name for name in GROUP_COLUMNS if name in arrays), None)
    if found is None:
        return None
    guesses.append(Guess("groups", found, "its name in the file", "groups"))
    return arrays[found]


def _label_file(labels: str, path: Path, names: Iterable[str]) -> str:
    if not Path(labels).exists():
        raise ValueError(f"{labels!r} is neither a file nor in {str(path)!r}, which has {_listed(names)}.")
    return labels


def _listed(names: Iterable[str], most: int = 12) -> str:
    names = [str(name) or "(no name)" for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _label_code(labels: str) -> str:
    if labels.endswith(".npy"):
        return f'y = np.load("{labels}")'
    return f'y = np.array([line.strip() for line in open("{labels}") if line.strip()])'


def _are_lines(path: Path) -> bool:
    """Whether a file holds one text per line: no columns, and a word in every line."""
    rows = [line.split() for line in files._text(path).splitlines() if line.strip()]
    columns = any(mark in files._text(path) for mark in "\t;,")
    return bool(rows) and not columns and not any(all(map(files._is_number, row)) for row in rows)


def _from_lines(path: Path, labels: str, task, groups, guesses: Sequence[Guess] = ()) -> Problem:
    lines = tuple(line for line in files._text(path).splitlines() if line.strip())
    y = _parse_labels(list(files.read_labels(labels)))
    g = None if groups in (None, "none") else files.read_labels(groups)
    load = f'X = [line for line in open("{path}").read().splitlines() if line.strip()]\n{_label_code(labels)}'
    return make_problem(lines, y, kind="strings", task=task, groups=g, name=path.name, guesses=guesses, loading=load)


def _recurs(names: list[str], rows: list[list[str]]) -> bool:
    """Whether a first line of words is no header: there are only words, and one of its own comes back as a label."""
    words = not any(files._is_number(cell) for row in rows[:20] for cell in row)
    return words and any(name in {row[i] for row in rows if len(row) > i} for i, name in enumerate(names))


def read_table(path: Path) -> Table:
    """Read the cells of a text or parquet table, by column."""
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    rows = files._table(path)
    first, names = next(iter(rows.items()))
    if files._is_header(names) and not _recurs(names, list(rows.values())[1:]):
        del rows[first]
        if not rows:
            raise ValueError(f"{str(path)!r} has a header but no rows.")
    else:
        names = [f"column {i + 1}" for i in range(len(names))]
    width = len(names)
    for line, row in rows.items():
        if len(row) != width:
            raise ValueError(
                f"{str(path)!r}: line {line} has {len(row)} entries, the lines before {width}; numbers with "
                "thousands separators must be quoted or, better, written without them."
            )
    if len(set(names)) < width:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{str(path)!r} has several columns named {twice!r}; give every column its own name.")
    return Table({name: [row[i] for row in rows.values()] for i, name in enumerate(names)}, list(rows))


def _read_parquet(path: Path) -> Table:
    import_optional("pyarrow", extra="table", what="Reading parquet")
    from pyarrow import ArrowInvalid, parquet

    try:
        table = parquet.read_table(path)
    except (ArrowInvalid, OSError):
        raise ValueError(f"{str(path)!r} is not a readable parquet file.") from None
    if table.num_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    for column in table.schema:
        if column.type.num_fields:
            raise ValueError(
                f"{str(path)!r}: column {column.name!r} has cells of type {column.type}; there must be one number or "
                "word in a cell."
            )
    columns = {
        str(name): ["" if cell is None else str(cell) for cell in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns)
    }
    return Table(columns, list(range(1, table.num_rows + 1)))


def _from_table(path: Path, table: Table, labels, kind, task, groups, drop, use_split) -> Problem:
    what = repr(str(path))
    columns, guesses, everything = dict(table.columns), [], list(table.columns)
    for name in drop:
        if name not in columns:
            raise ValueError(f"{what} has no column {name!r} to drop; it has {_listed(columns)}.")
        del columns[name]
    first = next(iter(columns))
    if first.lower() in INDEX_COLUMNS and len(set(columns[first])) == len(table):
        del columns[first]
        guesses.append(Guess("left out", f"column {first!r}", "it numbers or names the rows", "drop"))
    y, label_column = _table_labels(path, columns, len(table), labels, kind, guesses)
    columns.pop(label_column, None)
    g = _table_column(columns, groups, GROUP_COLUMNS, "groups", what, guesses)
    split = _table_split(columns, use_split, guesses)
    if not columns:
        raise ValueError(f"{what} has no columns beside the labels.")
    table = Table(columns, table.lines)
    y = _parse_labels(y)
    load = _table_code(path, labels, label_column, [name for name in everything if name not in columns])
    text = next((name for name, cells in columns.items() if _is_text(cells)), None)
    if kind == "strings" or (kind is None and len(columns) == 1 and text is not None):
        problem = make_problem(
            list(columns[text or first]),
            y,
            kind="strings",
            task=task,
            groups=g,
            name=path.name,
            guesses=guesses,
            loading=load,
        )
        return problem if split is None else _split_matrix(problem, split)
    encoding = _encoding(table, what, guesses)
    X = encoding.encode(table, what)
    square = X.shape[0] == X.shape[1] and not encoding.categories
    if kind is None and not square:
        kind = "table"
        guesses.append(Guess("kind", kind, f"{X.shape[0]} rows and {X.shape[1]} columns", "kind"))
    problem = make_problem(
        X, y, kind=kind, task=task, groups=g, name=path.name, guesses=guesses, loading=load, encoding=encoding
    )
    return problem if split is None else _split_matrix(problem, split)


def _split_matrix(problem: Problem, test: NDArray) -> Problem:
    """Keep the rows where `test` is False for training, the others as the given test set."""
    train, test = np.flatnonzero(~test), np.flatnonzero(test)
    columns = train if problem.is_matrix else np.arange(problem.X.shape[1])
    y, _ = _check_target(problem.y[train], len(train), problem.task, [])
    if problem.is_classification:
        _check_test_classes(y, problem.y[test])
    return replace(
        problem,
        X=problem.X[np.ix_(train, columns)],
        y=y,
        groups=None if problem.groups is None else problem.groups[train],
        X_test=problem.X[np.ix_(test, columns)],
        y_test=problem.y[test],
        items=None if problem.items is None else tuple(problem.items[i] for i in train),
    )


def _table_labels(path, columns, n_rows, labels, kind, guesses) -> tuple[list[str], str | None]:
    """Return the labels' cells and the column they are in, if they are in one."""
    if labels is not None and labels in columns:
        return columns[labels], labels
    if labels is not None:
        return list(files.read_labels(_label_file(labels, path, columns))), None
    found = next((name for name in columns if name.lower() in LABEL_COLUMNS), None)
    if found is not None:
        guesses.append(Guess("labels", f"column {found!r}", "its name", "labels"))
        return columns[found], found
    if len(columns) in (1, n_rows):
        raise ValueError(f"{str(path)!r} has no labels; give them with --labels FILE, one per item.")
    last = list(columns)[-1]
    if len(columns) == 2 and _is_text(columns[last]) and not _is_text(columns[next(iter(columns))]):
        last = next(iter(columns))  # label first, then the string
    guesses.append(
        Guess(
            "labels",
            f"column {last!r}",
            "the last column" if last != next(iter(columns)) else "the column that repeats",
            "labels",
        )
    )
    return columns[last], last


def _is_text(cells: list[str]) -> bool:
    """Whether a column holds strings to be compared: words, most of them different."""
    return len(set(cells)) > len(cells) / 2 and not any(map(files._is_number, cells))


def _table_column(columns, name, known, what, where, guesses) -> NDArray | None:
    """Take a column of groups out of `columns`."""
    if name == "none":
        return None
    if name is not None and name not in columns:
        if Path(name).is_file():
            return files.read_labels(name)
        raise ValueError(f"{where} has no column {name!r}; it has {_listed(columns)}.")
    if name is None:
        name = next((column for column in columns if column.lower() in known), None)
        if name is None:
            return None
        guesses.append(Guess(what, f"column {name!r}", "its name", what))
    return np.array(columns.pop(name))


def _table_split(columns, use_split: bool, guesses) -> NDArray | None:
    """Take a column that says train or test out of `columns`; True marks test rows."""
    for name in columns:
        words = {cell.lower() for cell in columns[name]}
        if name.lower() in SPLIT_COLUMNS and words <= {"train", "training", "test", "testing"} and len(words) == 2:
            cells = columns.pop(name)
            if not use_split:
                return None
            test = np.array([cell.lower().startswith("test") for cell in cells])
            guesses.append(Guess("split", f"{test.sum()} test items", f"column {name!r}", "no-split"))
            return test
    return None


def _encoding(table: Table, what: str, guesses: list[Guess]) -> TableEncoding:
    """Find out which columns are numbers and which are words."""
    categories = {}
    for name, cells in table.columns.items():
        numeric = sum(map(files._is_number, cells))
        if numeric == len(cells):
            continue
        words = sorted(set(cells))
        if "" in words:
            at = f"{what}: line {table.lines[cells.index('')]}, column {name!r}"
            raise ValueError(f"{at} is missing (''); fill in or remove missing values first.")
        if numeric > 0.5 * len(cells) or _has_separator(cells):
            _numbers(cells, name, table.lines, what)
        if len(words) > MAX_CATEGORIES:
            raise ValueError(
                f"{what}: column {name!r} has {len(words)} different words, more than {MAX_CATEGORIES}; leave it out "
                f"with --drop {name!r} or turn it into numbers."
            )
        categories[name] = tuple(words)
    if categories:
        guesses.append(Guess("words as 0/1 columns", _listed(categories), "they are not numbers", "drop"))
    return TableEncoding(tuple(table.columns), categories)


def _has_separator(cells: list[str]) -> bool:
    return any(files._is_number(cell.replace(",", "")) and "," in cell for cell in cells)


def _numbers(cells: list[str], name: str, lines: list[int], what: str) -> NDArray:
    """Return a column as finite numbers; one sentence about the first cell that is none."""
    try:
        values = np.array(cells, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
    except ValueError:
        values, bad = None, [i for i, cell in enumerate(cells) if not files._is_number(cell)]
    if values is not None and not len(bad):
        return values
    cell, at = cells[bad[0]], f"{what}: line {lines[bad[0]]}, column {name!r}"
    if cell == "" or cell.lower() in ("nan", "na", "null", "none", "?"):
        raise ValueError(f"{at} is missing ({cell!r}); fill in or remove missing values first.")
    if "," in cell and files._is_number(cell.replace(",", "")):
        raise ValueError(f"{at} has {cell!r}; write numbers without thousands separators and with a decimal point.")
    raise ValueError(f"{at} has {cell!r} where a finite number should be.")


def _parse_labels(cells: Sequence) -> NDArray:
    """Labels as numbers when all of them are, else as text."""
    array = np.asarray(cells)
    if array.dtype.kind in "biuf":
        return array
    texts = [str(cell) for cell in cells]
    if any(text == "" for text in texts):
        raise ValueError(f"{texts.count('')} labels are missing; remove those items first.")
    if all(map(files._is_number, texts)):
        return np.array(texts, dtype=np.float64)
    return np.array(texts)


def _table_code(path: Path, labels, label_column, left_out: list[str]) -> str:
    read = "read_parquet" if path.suffix.lower() == ".parquet" else "read_csv"
    code = f'table = pd.{read}("{path}")'
    left_out = [name for name in left_out if name != label_column]
    target = f'y = table.pop("{label_column}")' if label_column is not None else _label_code(labels)
    drop = f".drop(columns={left_out!r})" if left_out else ""
    return f"{code}\n{target}\nX = table{drop}"
