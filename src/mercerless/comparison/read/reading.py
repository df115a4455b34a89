"""From a file to a problem, and new items for a saved model by the same decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import squareform

from mercerless.comparison.problem import Note, Problem, is_square, make_problem, series_table
from mercerless.comparison.read.files import open_file
from mercerless.comparison.read.formats import Content, Items, Pairs, read_content
from mercerless.comparison.read.labels import (
    LABEL_NAMES,
    default_label,
    is_file,
    read_column,
    take_column,
    take_names,
)
from mercerless.comparison.read.options import MATRICES, ReadOptions

#: Names of arrays that hold the data, in the order they are looked for.
ARRAY_NAMES = ("X", "K", "D", "S", "X_train", "K_train", "D_train", "S_train", "data", "matrix")
ARRAY_LABELS = (*LABEL_NAMES, "Y", "y_train", "labels_train", "target_train")


@dataclass(frozen=True)
class Parts:
    """What a file holds before it is checked: data, labels, groups and names of the items."""

    X: Any
    y: Any
    kind: str | None
    names: Sequence[str] | None = None
    groups: Any = None
    target: str = "y"


def read_problem(path: str, **options: Any) -> Problem:
    """Read a file and its labels.

    Parameters
    ----------
    path : str
        The file, or "-" for standard input.
    **options
        Fields of `ReadOptions`: what the file and its ending do not say.

    Returns
    -------
    Problem
        Items with labels; its notes are the decisions that were made.
    """
    said = ReadOptions(**options)
    file = open_file(path, said.format)
    content = read_content(file, said)
    if isinstance(content, pd.DataFrame) and "header" in content.attrs:
        said = replace(said, header=content.attrs["header"])  # new items are read alike
    notes: list[Note] = []
    parts = read_parts(content, said, notes, file.name)
    return make_problem(
        parts.X,
        parts.y,
        kind=parts.kind,
        task=said.task,
        kernel=said.similarity,
        groups=parts.groups,
        names=parts.names,
        notes=notes,
        name=file.name,
        target=parts.target,
        path=path,
        options=said,
    )


def read_parts(content: Content, options: ReadOptions, notes: list[Note], name: str) -> Parts:
    """Data, labels and names of any content."""
    if isinstance(content, dict):
        return from_arrays(content, options, notes, name)
    if isinstance(content, pd.DataFrame):
        return from_frame(content, options, notes, name)
    if isinstance(content, Pairs):
        return from_pairs(content, options, notes, name)
    return from_items(content, options)


def needed(options: ReadOptions, what: str) -> str:
    """The file of labels; raises if there is none."""
    if options.labels is None:
        raise ValueError(f"{what} needs labels: add --labels FILE with one label per item.")
    if not is_file(options.labels):
        raise ValueError(
            f"--labels {options.labels}: there is no such file, and {what} has no such column."
        )
    return options.labels


# ------------------------------------------------------------------------------------------------------- tables


def from_frame(frame: pd.DataFrame, options: ReadOptions, notes: list[Note], name: str) -> Parts:
    """A table, a matrix, or a column of strings."""
    target = frame.attrs.get("target")
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    frame.attrs["target"] = target
    frame = drop_columns(frame, options)
    frame, names = take_names(frame, options, notes)
    groups = None
    if options.groups is not None:
        frame, column = take_column(frame, options.groups, "groups")
        groups = column.align(names, len(frame), "groups")
    frame = mirrored(frame)
    if options.labels is None and options.kind != "table" and is_matrix(frame, names, options):
        needed(options, f"the matrix {name!r}")
    label = options.labels or default_label(frame)
    if options.labels is None:
        notes.append(Note(f"the labels are the column {label!r}", "labels"))
    frame, column = take_column(frame, label, "labels")
    frame = mirrored(frame)
    target = label if not is_file(label) else "y"
    if is_matrix(frame, names, options):
        frame, item_names = square(frame, names)
        y = column.align(item_names, len(frame), "labels")
        return Parts(
            frame.to_numpy(dtype=float), y, options.kind or None, item_names, groups, target
        )
    y = column.align(names, len(frame), "labels")
    if options.kind == "strings" or (options.kind is None and is_column_of_strings(frame)):
        return Parts(only_text(frame, name), y, "strings", names, groups, target)
    return Parts(frame, y, "table", names, groups, target)


def drop_columns(frame: pd.DataFrame, options: ReadOptions) -> pd.DataFrame:
    """The columns that are not to be left out."""
    for name in options.drop:
        if name not in frame.columns:
            raise ValueError(f"--drop {name}: there is no such column.")
    attributes = frame.attrs
    frame = frame.drop(columns=list(options.drop))
    frame.attrs.update(attributes)
    return frame


def is_matrix(frame: pd.DataFrame, names: Sequence[str] | None, options: ReadOptions) -> bool:
    """Whether a frame is a matrix, as was said or by its shape, symmetry and names."""
    if options.kind in MATRICES:
        return True
    if options.kind is not None or len(frame) < 3:
        return False
    if names is not None and set(names) == set(frame.columns):
        return all(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    return is_square(frame)


def mirrored(frame: pd.DataFrame) -> pd.DataFrame:
    """A square of which one triangle is empty, completed by the other; any other frame as it is."""
    is_square_of_numbers = frame.shape[0] == frame.shape[1] and all(
        map(pd.api.types.is_numeric_dtype, frame.dtypes)
    )
    if not is_square_of_numbers:
        return frame
    K = frame.to_numpy(dtype=float)
    gaps = np.isnan(K)
    upper, lower = np.triu_indices(len(K), 1), np.tril_indices(len(K), -1)
    one_is_empty = gaps[upper].all() != gaps[lower].all()
    if not one_is_empty or (gaps & gaps.T)[upper].any():
        return frame
    return pd.DataFrame(np.where(gaps, K.T, K), frame.index, frame.columns)


def square(
    frame: pd.DataFrame, names: Sequence[str] | None
) -> tuple[pd.DataFrame, Sequence[str] | None]:
    """The matrix with its columns in the order of the rows, and the names of its items."""
    if names is not None and set(names) == set(frame.columns):
        return frame[list(names)], names
    has_header = not all(str(c).startswith("column ") or str(c).isdigit() for c in frame.columns)
    if names is None and has_header and frame.shape[0] == frame.shape[1]:
        names = list(frame.columns)
    if not all(map(pd.api.types.is_numeric_dtype, frame.dtypes)):
        word = next(c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c]))
        raise ValueError(f"The column {word!r} of the matrix has cells that are not numbers.")
    return frame, names


def is_text(column: pd.Series) -> bool:
    """Whether a column holds words."""
    return not (
        pd.api.types.is_numeric_dtype(column)
        or pd.api.types.is_bool_dtype(column)
        or pd.api.types.is_datetime64_any_dtype(column)
        or isinstance(column.dtype, pd.CategoricalDtype)
    )


def is_column_of_strings(frame: pd.DataFrame) -> bool:
    """Whether the only column has words, most of them different."""
    if frame.shape[1] != 1 or not is_text(frame.iloc[:, 0]):
        return False
    return frame.iloc[:, 0].nunique() > len(frame) / 2


def only_text(frame: pd.DataFrame, name: str) -> list[str]:
    """The strings of the only column of text."""
    texts = [column for column in frame.columns if is_text(frame[column])]
    if len(texts) != 1:
        has = f"the columns of text {', '.join(texts)}" if texts else "no column of text"
        raise ValueError(f"{name!r} has {has}; leave out all but one with --drop COLUMN.")
    if frame[texts[0]].isna().any():
        raise ValueError(f"The column {texts[0]!r} has empty cells; delete these rows.")
    return frame[texts[0]].astype(str).tolist()


# ------------------------------------------------------------------------------------------- arrays, items, pairs


def from_arrays(
    arrays: dict[str, Any], options: ReadOptions, notes: list[Note], name: str
) -> Parts:
    """A matrix or a table among arrays by name, and the labels beside it."""
    key = options.labels if options.labels in arrays else None
    if options.labels is None:
        key = next((one for one in ARRAY_LABELS if one in arrays), None)
    if options.array is not None and "," in options.array:
        chosen = {
            part.strip(): pick(arrays, part.strip(), name) for part in options.array.split(",")
        }
        first = next(iter(chosen.values()))
        X: Any = chosen
    else:
        array = options.array or find_array(arrays, key, name)
        if options.array is None and len(arrays) > 2:
            notes.append(Note(f"the data are the array {array!r}", "array"))
        first = X = pick(arrays, array, name)
    if key is not None:
        y = np.ravel(arrays[key])
        y = np.char.strip(y) if y.dtype.kind == "U" else y
    else:
        column = read_column(needed(options, repr(name)), "labels")
        y = column.values.to_numpy()
    if np.ndim(first) == 1 and not issparse(first) and len(first) != len(y):
        first = X = squareform(first)
    elif np.ndim(first) == 3:
        X = list(first)
    groups = None
    if options.groups is not None:
        groups = arrays.get(options.groups)
        if groups is None:
            groups = read_column(options.groups, "groups").values.to_numpy()
    kind = options.kind if options.kind != "hits" else None
    return Parts(X, y, kind, groups=groups, target=key or "y")


def pick(arrays: dict[str, Any], name: str, file: str) -> Any:
    """One array by its name."""
    if name not in arrays:
        raise ValueError(f"{file!r} has no array {name!r}; it has {', '.join(arrays)}.")
    return arrays[name]


def find_array(arrays: dict[str, Any], labels: str | None, name: str) -> str:
    """The only array of data, or the one with a usual name."""
    candidates = [
        key
        for key, value in arrays.items()
        if key != labels and (issparse(value) or np.ndim(value) >= 2)
    ]
    if len(candidates) > 1:
        candidates = [key for key in candidates if key in ARRAY_NAMES]
    if not candidates and len(arrays) <= 2:
        candidates = [key for key in arrays if key != labels]
    if len(candidates) != 1:
        raise ValueError(
            f"Which array of {name!r} holds the data? Add --array NAME; it has {', '.join(arrays)}."
        )
    return candidates[0]


def from_items(items: Items, options: ReadOptions) -> Parts:
    """Strings or series, with labels in the file or in another."""
    y, values, names = items.labels, list(items.values), items.names
    if options.labels is not None or y is None:
        column = read_column(needed(options, "the list of items"), "labels")
        if names is None and column.names is not None:
            texts = [str(value) for value in values]
            names = texts if pd.Index(texts).is_unique else None
        y = column.align(names, len(values), "labels")
    groups = None
    if options.groups is not None:
        groups = read_column(options.groups, "groups").align(names, len(values), "groups")
    if options.kind == "table":
        return Parts(series_table(values), y, "table", names, groups)
    kind = options.kind
    if options.similarity is not None:
        kind = "strings" if isinstance(values[0], str) else "series"
    return Parts(values, y, kind, names, groups)


def from_pairs(pairs: Pairs, options: ReadOptions, notes: list[Note], name: str) -> Parts:
    """The matrix of a list of pairs: sparse for hits, else complete."""
    column = read_column(needed(options, f"the list of pairs {name!r}"), "labels")
    listed = list(dict.fromkeys([*pairs.frame["from"], *pairs.frame["to"]]))
    names: list[Any] = listed
    if column.names is not None:
        if not set(listed) & set(column.names):
            raise ValueError(
                f"The names in {column.source}, such as {column.names[0]!r}, are not those of the pairs, "
                f"such as {listed[0]!r}."
            )
        names = list(dict.fromkeys(column.names))
        n_unlabeled = len(set(listed) - set(names))
        if n_unlabeled:
            notes.append(Note(f"{n_unlabeled} items without a label are left out"))
    y = column.align(names, len(names), "labels")
    kind = options.kind if options.kind in MATRICES else pairs.kind
    if pairs.is_sparse:
        return Parts(hit_matrix(pairs, names, names), y, None, names)
    if kind is None:
        raise ValueError(
            f"Are the numbers of the pairs in {name!r} similarities or distances? Add --kind similarity, "
            "distance or dissimilarity."
        )
    K, n_missing = pair_matrix(pairs, names, kind)
    if n_missing:
        notes.append(Note(f"{n_missing} pairs are not listed; their similarity is 0"))
    return Parts(K, y, kind, names)


def positions(pairs: Pairs, rows: Sequence[str], columns: Sequence[str]) -> tuple[NDArray, ...]:
    """Rows, columns and values of the pairs between these items."""
    row = pd.Index(rows).get_indexer(pairs.frame["from"])
    column = pd.Index(columns).get_indexer(pairs.frame["to"])
    used = (row >= 0) & (column >= 0)
    return row[used], column[used], pairs.frame["value"].to_numpy(dtype=float)[used]


def hit_matrix(pairs: Pairs, rows: Sequence[str], columns: Sequence[str]) -> csr_array:
    """The best score of each pair."""
    row, column, value = positions(pairs, rows, columns)
    best = pd.DataFrame({"row": row, "column": column, "value": value})
    best = best.groupby(["row", "column"], as_index=False)["value"].max()
    return csr_array(
        (best["value"].to_numpy(), (best["row"].to_numpy(), best["column"].to_numpy())),
        shape=(len(rows), len(columns)),
    )


def pair_matrix(pairs: Pairs, names: Sequence[str], kind: str) -> tuple[NDArray, int]:
    """The square matrix of a list of pairs in one or both directions, and the number of pairs not listed."""
    row, column, value = positions(pairs, names, names)
    K = np.full((len(names), len(names)), np.nan)
    K[row, column] = value
    if not np.array_equal(K[row, column], value):
        twice = np.flatnonzero(K[row, column] != value)[0]
        raise ValueError(
            f"The pair {names[row[twice]]}, {names[column[twice]]} is listed twice with different "
            "numbers; keep one."
        )
    K = np.where(np.isnan(K), K.T, K)
    diagonal = np.diagonal(K).copy()
    own = np.nanmax(K) if kind == "similarity" else 0.0
    np.fill_diagonal(K, np.where(np.isnan(diagonal), own, diagonal))
    missing = np.isnan(K)
    if missing.any() and kind != "similarity":
        i, j = np.argwhere(missing)[0]
        raise ValueError(
            f"{missing.sum() // 2} pairs of items have no {kind}, such as {names[i]}, {names[j]}; "
            "list all pairs."
        )
    return np.where(missing, 0.0, K), int(missing.sum()) // 2


# ---------------------------------------------------------------------------------------------------- new items


@dataclass(frozen=True)
class NewItems:
    """New items as a model takes them, and their names."""

    X: Any
    names: list[str] | None

    def __len__(self) -> int:
        return self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)


def read_new(path: str, options: ReadOptions, about: dict[str, Any]) -> NewItems:
    """Read new items for a model.

    `about` is what the model remembers of its training data: its kind, "columns" (names of a table's columns, and
    whether they hold numbers), "names" of the training items, and their number "n".
    """
    kind = about["kind"]
    if kind in MATRICES:  # rows of comparisons are read like a table
        options = replace(options, kind="table")
    file = open_file(path, options.format)
    content = read_content(file, options)
    if isinstance(content, Pairs):
        return new_pairs(content, about)
    if isinstance(content, Items):
        if kind == "table":
            return new_table(series_table(list(content.values)), None, about)
        names = list(content.names) if content.names is not None else None
        flat = [
            item[0] if np.ndim(item) == 2 and len(item) == 1 else item for item in content.values
        ]
        return NewItems(flat, names)
    if isinstance(content, dict):
        array = options.array or find_array(content, None, file.name)
        values = pick(content, array, file.name)
        if kind in (*MATRICES, "hits"):
            return NewItems(check_width(values, about), None)
        content = pd.DataFrame(np.asarray(values))
        content.columns = pd.Index([f"column {j + 1}" for j in range(content.shape[1])])
    frame = content.set_axis(list(map(str, content.columns)), axis=1)
    frame, names = take_names(frame, options, [])
    if kind == "table":
        return new_table(frame, names, about)
    if kind in ("strings", "series"):
        kept = frame.drop(
            columns=[c for c in (*options.drop, options.labels) if c in frame.columns]
        )
        return NewItems(only_text(kept, file.name), names)
    trained = about["names"]
    if trained is not None and set(trained) <= set(frame.columns):
        frame = frame[list(trained)]
    return NewItems(check_width(frame.to_numpy(dtype=float), about), names)


def check_width(rows: Any, about: dict[str, Any]) -> Any:
    """Rows with a column per training item."""
    if rows.shape[1] != about["n"]:
        remedy = "; transpose it" if rows.shape[0] == about["n"] else ""
        raise ValueError(
            f"New items have {rows.shape[1]} columns, but the model was fitted on {about['n']} items; give "
            f"one column per training item{remedy}."
        )
    return csr_array(rows) if issparse(rows) else np.asarray(rows, dtype=float)


def new_pairs(pairs: Pairs, about: dict[str, Any]) -> NewItems:
    """Rows of comparisons from a list of pairs of new and training items."""
    if about["names"] is None:
        raise ValueError("The model was fitted on items without names; give rows and not pairs.")
    names = list(dict.fromkeys(pairs.frame["from"]))
    rows = hit_matrix(pairs, names, about["names"])
    if pairs.is_sparse:
        return NewItems(rows, names)
    if rows.nnz < rows.shape[0] * rows.shape[1] and about["kind"] != "similarity":
        raise ValueError("Some pairs of new and training items are not listed.")
    return NewItems(rows.toarray(), names)


def new_table(frame: pd.DataFrame, names: list[str] | None, about: dict[str, Any]) -> NewItems:
    """The columns that the model was fitted on, numbers as numbers and words as words."""
    columns: dict[str, bool] = about["columns"]
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(
            f"New items have no column {missing[0]!r}; the model needs {', '.join(list(columns)[:12])}."
        )
    frame = frame[list(columns)].copy()
    for column, is_number in columns.items():
        if is_number and is_text(frame[column]) and frame[column].notna().any():
            word = next(cell for cell in frame[column] if isinstance(cell, str))
            raise ValueError(
                f"The column {column!r} held numbers when the model was fitted; now it has {word!r}. If "
                f"that means a gap, add --missing {word}."
            )
        if is_number:
            frame[column] = frame[column].astype(float)
        elif not is_text(frame[column]) and pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = [np.nan if pd.isna(v) else f"{v:g}" for v in frame[column]]
            frame[column] = frame[column].astype(object)
    return NewItems(frame, names)
