"""From a file to a problem, and new items for a saved model by the same decisions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import squareform

from mercerless.comparison.problem import (
    Note,
    Problem,
    check_table,
    is_square,
    make_problem,
    series_table,
)
from mercerless.comparison.read.columns import column_of, take_names
from mercerless.comparison.read.delimited import is_number
from mercerless.comparison.read.files import open_file
from mercerless.comparison.read.formats import read_content
from mercerless.comparison.read.items import Column, Items, Pairs
from mercerless.comparison.read.options import MATRICES, ReadOptions

#: Cells that would be numbers without a unit.
LIKE_NUMBERS = r"\s*[+-]?\d+([.,]\d+)?\s*([^\W\d]{1,3}|%)?\s*"
#: Names of arrays that hold the labels.
ARRAY_LABELS = ("y", "Y", "labels", "target", "y_train")


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
    said, notes = ReadOptions(**options), list[Note]()
    items = read_items(path, said, notes)
    said = replace(said, **items.decisions)
    labels, groups = column_of(items, said, "labels"), column_of(items, said, "groups")
    assert labels is not None
    X, names, kind = settle(items, labels.names, said, notes)
    n_items = X.shape[0] if hasattr(X, "shape") else len(X)
    problem = make_problem(
        X,
        labels.align(names, n_items, "labels"),
        kind=kind,
        task=said.task,
        kernel=said.similarity,
        groups=None if groups is None else groups.align(names, n_items, "groups"),
        names=names,
        notes=notes,
        name=path.rpartition("/")[2],
        target=(said.labels or "y").rpartition("/")[2],
        path=path,
        options=said,
    )
    if said.kind not in (None, problem.kind):
        raise ValueError(f"{path!r} holds {problem.kind}, not {said.kind}; correct --kind.")
    return problem


def read_items(path: str, options: ReadOptions, notes: list[Note], is_new: bool = False) -> Items:
    """What a file holds, with its columns of names, labels and groups taken out of the data.

    New items are not searched for a column of labels, and may lack the columns to drop.
    """
    file = open_file(path, options.format)
    content = read_content(file, options)
    if isinstance(content, dict):
        return array_items(content, options, file.name)
    if isinstance(content, pd.DataFrame):
        return frame_items(content, options, notes, is_new)
    return content


def frame_items(
    frame: pd.DataFrame, options: ReadOptions, notes: list[Note], is_new: bool
) -> Items:
    """A frame without its columns of names, labels and groups."""
    decisions = {key: frame.attrs[key] for key in ("header", "labels") if key in frame.attrs}
    frame = without_missing(frame.rename(columns=str), options.missing)
    absent = [name for name in options.drop if name not in frame]
    if absent and not is_new:
        raise ValueError(f"--drop {absent[0]}: there is no such column.")
    frame = frame.drop(columns=[name for name in options.drop if name in frame])
    frame, names = take_names(frame, options, notes)
    if options.labels is not None:
        decisions["labels"] = options.labels
    elif "labels" in decisions:
        notes.append(Note(f"the labels are the column {decisions['labels']!r}", "labels"))
    labels = pop_column(frame, decisions.get("labels"))
    groups = pop_column(frame, options.groups)
    return Items(frame, names, labels, groups, decisions)


def pop_column(frame: pd.DataFrame, name: str | None) -> Column | None:
    """Take a column out of the data; None if there is none of this name."""
    if name not in frame:
        return None
    return Column(frame.pop(name).to_numpy(), None, f"the column {name!r}")


def without_missing(frame: pd.DataFrame, words: Sequence[str]) -> pd.DataFrame:
    """Gaps for the given words and numbers, in formats whose cells have types too."""
    if not words:
        return frame
    numbers = pd.to_numeric(pd.Series(words), errors="coerce").dropna()
    return frame.mask(frame.isin([*words, *numbers])).infer_objects()


def array_items(arrays: dict[str, Any], options: ReadOptions, name: str) -> Items:
    """A matrix or a table among arrays by name, and the labels beside it."""
    keys = ARRAY_LABELS if options.labels is None else (options.labels,)
    key = next((key for key in keys if key in arrays), None)
    labels = None if key is None else Column(np.ravel(arrays[key]), None, f"the array {key!r}")
    groups = Column(np.ravel(arrays[options.groups])) if options.groups in arrays else None
    others = [name for name in arrays if name != key]
    array = options.array or (others or [""])[0]
    if array not in arrays or (options.array is None and len(others) > 1):
        raise ValueError(
            f"Which array of {name!r} holds the data? Add --array NAME; it has {', '.join(arrays)}."
        )
    X: Any = arrays[array]
    if np.ndim(X) == 1 and not issparse(X):
        X = squareform(X)  # condensed distances
    elif np.ndim(X) == 3:
        X = list(X)
    return Items(X, None, labels, groups, {"labels": key} if key is not None else {})


# ------------------------------------------------------------------------------------------- matrices and strings


def settle(
    items: Items, labeled: list[str] | None, options: ReadOptions, notes: list[Note]
) -> tuple[Any, Sequence[str] | None, str | None]:
    """Data, names and kind of the items: a matrix, strings, series or a table."""
    X, names, kind = items.X, items.names, options.kind
    if isinstance(X, Pairs):
        return pair_matrix(X, labeled or X.names, kind)
    if not isinstance(X, pd.DataFrame):
        return X, names, None if kind == "hits" else kind
    X = mirrored(X)
    if is_matrix(X, names, kind):
        K, names = square(X, names)
        return K, names, kind
    is_word_list = X.shape[1] == 1 and is_text(X.iloc[:, 0]) and X.iloc[:, 0].is_unique
    if kind == "strings" or (kind is None and (options.similarity or is_word_list)):
        name = only_text(X)
        kernel = options.similarity or "levenshtein"
        notes.append(Note(f"the strings of the column {name!r} are compared by {kernel}", "kind"))
        return X[name].astype(str).tolist(), names, "strings"
    note_spoiled_numbers(X, notes)
    return X, names, "table"


def note_spoiled_numbers(frame: pd.DataFrame, notes: list[Note]) -> None:
    """Say which columns of text have mostly numbers, perhaps with a unit."""
    for name in frame.select_dtypes(exclude=["number", "bool"]):
        cells = frame[name].dropna().astype(str)
        if cells.str.fullmatch(LIKE_NUMBERS).mean() > 0.5:
            spoiled = next((cell for cell in cells if not is_number(cell)), None)
            text = f"the column {name!r} is text because of cells such as {spoiled!r}"
            notes.append(Note(f"{text}; correct them, or name a gap with --missing"))


def is_matrix(frame: pd.DataFrame, names: Sequence[str] | None, kind: str | None) -> bool:
    """Whether a frame is a matrix, as was said or by its shape, symmetry and names."""
    if kind is not None or len(frame) < 3:
        return kind in MATRICES
    if names is not None and set(names) == set(frame.columns):
        return all(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    return is_square(frame)


def mirrored(frame: pd.DataFrame) -> pd.DataFrame:
    """A square of which one triangle is empty, completed by the other; any other frame as it is."""
    n_rows, n_columns = frame.shape
    if n_rows != n_columns:
        return frame
    gaps = frame.isna().to_numpy()
    below = np.tri(n_rows, k=-1, dtype=bool)
    is_triangle = gaps[below].all() or gaps[below.T].all()
    return frame.where(~gaps, frame.to_numpy().T) if is_triangle else frame


def square(
    frame: pd.DataFrame, names: Sequence[str] | None
) -> tuple[NDArray, Sequence[str] | None]:
    """The matrix with its columns in the order of the rows, and the names of its items."""
    if names is not None and set(names) == set(frame.columns):
        frame = frame[list(names)]
    elif names is None and len(frame) == frame.shape[1]:
        is_numbered = all(name.startswith("column ") or name.isdigit() for name in frame)
        names = None if is_numbered else list(frame.columns)
    words = frame.select_dtypes(exclude="number").columns
    if len(words):
        raise ValueError(
            f"The column {words[0]!r} of the matrix has cells that are not numbers; correct them, or "
            "leave it out with --drop."
        )
    return frame.to_numpy(dtype=float), names


def is_text(column: pd.Series) -> bool:
    """Whether a column holds words."""
    return pd.api.types.infer_dtype(column.astype(object)) == "string"


def only_text(frame: pd.DataFrame) -> str:
    """The only column of text."""
    texts = [column for column in frame if is_text(frame[column])]
    if len(texts) != 1:
        has = f"the columns of text {', '.join(texts)}" if texts else "no column of text"
        raise ValueError(f"The file has {has}; leave out all but one with --drop COLUMN.")
    if frame[texts[0]].isna().any():
        raise ValueError(f"The column {texts[0]!r} has empty cells; delete these rows.")
    return texts[0]


# ------------------------------------------------------------------------------------------------------------ pairs


def pair_matrix(
    pairs: Pairs, names: list[str], kind: str | None
) -> tuple[Any, list[str], str | None]:
    """The matrix of a list of pairs: sparse for hits, else complete, from one or both directions."""
    names = list(dict.fromkeys(names))
    if not set(names) & set(pairs.names):
        raise ValueError(
            f"The names of the labels, such as {names[0]!r}, are not those of the pairs, such as "
            f"{pairs.names[0]!r}."
        )
    if pairs.kind == "hits":
        return hit_matrix(pairs, names, names), names, None
    kind = kind or pairs.kind
    if kind is None:
        raise ValueError(
            "Are the numbers of the pairs similarities or distances? Add --kind similarity, distance "
            "or dissimilarity."
        )
    table = pairs.frame.groupby(["from", "to"])["value"].agg(["min", "max"])
    twice = table.index[table["min"] != table["max"]]
    if len(twice):
        raise ValueError(
            f"The pair {', '.join(twice[0])} is listed twice with different numbers; keep one."
        )
    listed = table["min"].unstack().reindex(index=names, columns=names)
    K = listed.fillna(listed.T).to_numpy(copy=True)
    of_oneself = np.nanmax(K) if kind == "similarity" else 0.0
    diagonal = np.diagonal(K)
    np.fill_diagonal(K, np.where(np.isnan(diagonal), of_oneself, diagonal))
    if np.isnan(K).any():
        i, j = np.argwhere(np.isnan(K))[0]
        raise ValueError(
            f"{np.isnan(K).sum() // 2} pairs of items have no {kind}, such as {names[i]}, {names[j]}; "
            "list all pairs, or add --format hits if those not listed are unlike."
        )
    return K, names, kind


def hit_matrix(pairs: Pairs, rows: Sequence[str], columns: Sequence[str]) -> csr_array:
    """The best score of each pair."""
    best = pairs.frame.groupby(["from", "to"], as_index=False)["value"].max()
    row = pd.Index(rows).get_indexer(best["from"])
    column = pd.Index(columns).get_indexer(best["to"])
    used = (row >= 0) & (column >= 0)
    places = (row[used], column[used])
    return csr_array((best["value"].to_numpy()[used], places), shape=(len(rows), len(columns)))


# -------------------------------------------------------------------------------------------------------- new items


def read_new(path: str, options: ReadOptions, about: dict[str, Any]) -> Items:
    """Read new items for a model.

    `about` is what the model remembers of its training data: its kind, "columns" (names of a table's columns, and
    whether they hold numbers), "names" of the training items, and their number "n".
    """
    items = read_items(path, options, [], is_new=True)
    X, kind, trained = items.X, about["kind"], about["names"]
    if isinstance(X, Pairs):
        return new_pairs(X, about)
    if kind == "table":
        frame = series_table(X) if isinstance(X, list) else check_table(pd.DataFrame(X))
        return replace(items, X=new_table(frame, about["columns"]))
    if kind in ("strings", "series"):
        return replace(items, X=X if isinstance(X, list) else X[only_text(X)].astype(str).tolist())
    if isinstance(X, pd.DataFrame):
        is_named = trained is not None and set(trained) <= set(X.columns)
        X = (X[list(trained)] if is_named else X).to_numpy(dtype=float)
    if X.shape[1] != about["n"]:
        remedy = "; transpose it" if X.shape[0] == about["n"] else ""
        raise ValueError(
            f"New items have {X.shape[1]} columns, but the model was fitted on {about['n']} items; give "
            f"one column per training item{remedy}."
        )
    return replace(items, X=csr_array(X) if issparse(X) else np.asarray(X, dtype=float))


def new_pairs(pairs: Pairs, about: dict[str, Any]) -> Items:
    """Rows of comparisons from a list of pairs of new and training items."""
    if about["names"] is None:
        raise ValueError("The model was fitted on items without names; give rows and not pairs.")
    names = list(dict.fromkeys(pairs.frame["from"]))
    rows = hit_matrix(pairs, names, about["names"])
    if about["kind"] == "hits":
        return Items(rows, names)
    if rows.nnz < rows.shape[0] * rows.shape[1]:
        raise ValueError("Some pairs of new and training items are not listed.")
    return Items(rows.toarray(), names)


def new_table(frame: pd.DataFrame, columns: dict[str, bool]) -> pd.DataFrame:
    """The columns that the model was fitted on, numbers as numbers and words as words."""
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(
            f"New items have no column {missing[0]!r}; the model needs {', '.join(list(columns)[:12])}."
        )
    frame = frame[list(columns)].copy()
    for name, was_number in columns.items():
        cells = frame[name]
        if was_number:
            frame[name] = numbers = pd.to_numeric(cells, errors="coerce").astype(float)
            words = cells[numbers.isna() & cells.notna()]
            if len(words):
                raise ValueError(
                    f"The column {name!r} held numbers when the model was fitted; now it has "
                    f"{words.iloc[0]!r}. If that means a gap, add --missing {words.iloc[0]}."
                )
        elif pd.api.types.is_numeric_dtype(cells):
            texts = [np.nan if pd.isna(cell) else f"{cell:g}" for cell in cells]
            frame[name] = pd.Series(texts, frame.index, dtype=object)
    return frame
