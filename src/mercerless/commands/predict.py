"""``mercerless predict``: predict for new items with a model that ``mercerless fit`` saved."""

import argparse
import csv
import io
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from mercerless import persistence
from mercerless.commands import _common
from mercerless.commands._arguments import add_file_arguments
from mercerless.comparison import arrays, files, formats, matrices
from mercerless.comparison.columns import as_dates, coerce, date_format, date_role
from mercerless.comparison.problem import STRING_SIMILARITIES, as_distances, item_similarities
from mercerless.comparison.series import from_text
from mercerless.comparison.tables import (
    MISSING,
    NONE,
    CellTable,
    Items,
    Pairs,
    is_number,
    plain_numbers,
)
from mercerless.core.files import write_text
from mercerless.core.validation import check_real
from mercerless.spectra import symmetrize


class FileChoice(NamedTuple):
    """The part of a file to read: one of its arrays, its format, one of its sheets; None infers it."""

    array: str | None = None
    format: str | None = None
    sheet: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.description = """\
Predict for new items with a model from 'mercerless fit'. A model of a similarity or distance matrix
takes one row per new item with its similarities or distances to the training items, matched by name
or else by position, or a list of pairs. A model of a table takes a table with the same columns in
any order. A model of strings takes strings: one per line, in FASTA, or in the column of the same
name. The names of the items are written beside the predictions."""
    parser.epilog = """\
examples:
  mercerless predict model.skops new-rows.npy
  mercerless predict model.skops new-table.csv --probabilities --output predictions.csv
  mercerless predict model.skops new-table.csv --coverage 0.9 --reasons 3
  mercerless predict model.skops new-rows.csv --reasons 3 --train scores.csv

exit codes: 0 done, 2 something is wrong with the input"""
    parser.add_argument("model", metavar="MODEL", help="a .skops file from 'mercerless fit'")
    parser.add_argument("data", metavar="DATA", help="the new items")
    parser.add_argument("--array", metavar="NAME", help="the array of an .npz file")
    add_file_arguments(parser)
    parser.add_argument(
        "--similarity",
        metavar="MODULE:FUNCTION",
        help="your own function that the model was fitted with, if any",
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="also write the probability of every class"
    )
    parser.add_argument(
        "--coverage",
        type=float,
        metavar="SHARE",
        help="also write sets or intervals that hold this share, as 0.9",
    )
    parser.add_argument(
        "--reasons",
        type=int,
        metavar="K",
        help="also write the K training items most for and against each prediction",
    )
    parser.add_argument(
        "--reverse",
        metavar="DATA",
        help="for a directed stack: the other direction, the training items compared with the new "
        "ones, a row for each new item",
    )
    parser.add_argument(
        "--train",
        metavar="DATA",
        help="the matrix that the model was fitted on, which --reasons needs and a model does not "
        "keep",
    )
    parser.add_argument(
        "--output", metavar="CSV", default="predictions.csv", help="where they go (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Load, read, predict, write."""
    persistence.check_installed()
    output = _common.check_output(args.output, ".csv")
    _common.check_not_input(output, args.model, args.data, args.reverse, args.train)
    estimator, description = load_model(args.model)
    check_consent(description["similarity"], args.similarity)
    choice = FileChoice(args.array, args.format, args.sheet)
    rows, ids = read_rows(args.data, choice, description)
    note_symmetric_rows(args.data, rows, ids, description)
    back = {}
    if args.reverse is not None:
        back = {"reverse": read_reverse(args.reverse, choice, description, ids, len(rows))}
    train = None
    if args.reasons is not None:
        train = read_train(args.train, choice, description)
    try:
        with _common.plain_warnings(args.command):
            predicted = estimator.predict(rows, **back)
        if args.probabilities and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"it ({description['learner']}) gives no probabilities; leave out --probabilities"
            )
        further: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # shown already
            probabilities = estimator.predict_proba(rows, **back).T if args.probabilities else ()
            if args.coverage is not None:
                further |= sure_columns(estimator, rows, args.coverage, description, back)
            if args.reasons is not None:
                reasons = reasons_column(estimator, rows, args.reasons, description, train, back)
                further |= {"reasons": reasons}
    except MemoryError:
        raise
    except Exception as error:  # a forged model can fail anywhere
        reason = (
            str(error).strip().splitlines()[0].rstrip(".")
            if str(error).strip()
            else type(error).__name__
        )
        raise ValueError(
            f"The model {args.model!r} cannot predict for these items: {reason}."
        ) from None
    columns = {} if ids is None else {"id": ids}
    columns["prediction"] = predicted
    for label, values in zip(estimator.classes_ if args.probabilities else (), probabilities):
        columns[f"probability of {label}"] = values
    columns |= further
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([harmless(cell) for cell in row] for row in zip(*columns.values()))
    written = text.getvalue()
    # by the byte order mark Excel recognizes UTF-8
    write_text(output, written if written.isascii() else f"\ufeff{written}")
    count = "1 prediction" if len(predicted) == 1 else f"{len(predicted)} predictions"
    print(f"{count}\n{output}")
    return 0


def innermost(estimator: Any, rows: Any) -> tuple[Any, Any]:
    """The model inside searches and pipelines, and the rows as it takes them."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            rows = estimator[:-1].transform(rows)
            estimator = estimator[-1]
        else:
            return estimator, rows


def sure_columns(
    estimator: Any, rows: Any, coverage: float, description: dict, back: dict[str, NDArray]
) -> dict[str, Any]:
    """Sets of classes, or both ends of intervals, of a stated coverage."""
    model, rows = innermost(estimator, rows)
    if hasattr(model, "predict_set"):
        sets = model.predict_set(rows, coverage, **back)
        return {f"set at {coverage:g}": [" | ".join(map(str, model.classes_[one])) for one in sets]}
    if not hasattr(model, "predict_interval"):
        learner = "table" if description["kind"] == "table" else "stack"
        raise ValueError(
            f"it ({description['learner']}) gives no sets or intervals; leave out --coverage, "
            f"or fit a model that does with --learner {learner}"
        )
    low, high = model.predict_interval(rows, coverage, **back).T
    return {f"lower at {coverage:g}": low, f"upper at {coverage:g}": high}


def reasons_column(
    estimator: Any,
    rows: Any,
    k: int,
    description: dict,
    train: NDArray | None,
    back: dict[str, NDArray],
) -> list[str]:
    """The training items for and against every prediction, in words."""
    model, new_rows = innermost(estimator, rows)
    if not hasattr(model, "explain"):
        raise ValueError(f"it ({description['learner']}) gives no reasons; leave out --reasons")
    new = dict(back)
    if description["takes"] == "both" and not back:
        raise ValueError("its reasons need both directions of new items; add --reverse")
    if description["kind"] != "table":
        if train is None:
            raise ValueError(
                "it does not keep the matrix that it was fitted on; add --train with that file"
            )
        new["train"] = innermost(estimator, train)[1]
    reasons = model.explain(new_rows, k, **new)
    return [
        "; ".join(line.strip() for line in reasons.text(i, description["ids"]).splitlines()[1:-1])
        for i in range(len(reasons.score))
    ]


def harmless(cell: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe."""
    text = str(cell)
    is_harmless = is_number(text) or text in ("+", "-")
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") and not is_harmless else cell


def load_model(path: str) -> tuple[Any, dict[str, Any]]:
    """Return the estimator of a file from 'mercerless fit' and its description of the items it takes."""
    model = persistence.load(path)
    try:
        estimator = model["estimator"]
        description = json.loads(model["description"])
        if not (is_sound(description) and callable(estimator.predict)):
            raise ValueError
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError):
        raise ValueError(
            f"{path!r} was not written by 'mercerless fit', or by an older version: fit again."
        ) from None
    return estimator, description


def is_sound(description: dict[str, Any]) -> bool:
    """Whether a description has every field, of its type, and none that contradicts another."""
    fields: dict[str, Any] = {  # that `mercerless.commands.fit.describe` writes
        "kind": str,
        "takes": str,
        "learner": str,
        "n_columns": int,
        "prepared": bool,
        "smallest": float,
        "largest": float,
        "similarity": str | None,
        "ids": list | None,
        "items": list | None,
        "roles": dict | None,
        "missing": list,
        "percents": list,
        "levels": dict,
        "matrices": list,
        "columns": list,
        "target": str,
    }
    if not all(isinstance(description[key], kind) for key, kind in fields.items()):
        return False
    roles, ids, items = (description[key] for key in ("roles", "ids", "items"))
    texts = [*(roles or {}).values(), *(ids or ()), *(items or ())]
    texts += [*description["missing"], *description["percents"], *description["matrices"]]
    texts += description["columns"]
    texts += [word for words in description["levels"].values() for word in words]
    columns = items if items is not None or description["kind"] == "table" else ids
    return (
        all(isinstance(text, str) for text in texts)
        and description["n_columns"] > 0
        and (columns is None or len(columns) == description["n_columns"])
        and (items is None or description["similarity"] is not None)
        and (bool(roles) or (roles is None and not description["prepared"]))
    )


def check_consent(similarity: str | None, given: str | None) -> None:
    """Raise if only the model's file names the function to call: the file would choose what code runs."""
    is_ours = similarity is None or similarity in STRING_SIMILARITIES or similarity == "dtw"
    if similarity is not None and not is_ours and similarity != given:
        name = similarity if similarity.isprintable() else repr(similarity)
        raise ValueError(
            "The model compares items with a function; if you know it and trust it, add "
            f"--similarity {name}."
        )


def read_rows(path: str, choice: FileChoice, description: dict) -> tuple[Any, Sequence[str] | None]:
    """Return new items in the form the model takes, and their names; raise if they cannot be matched."""
    file = files.existing_file(path)
    what = files.name_of(file)
    width = description["n_columns"]
    if description["items"] is not None:
        items, ids = read_new_items(file, choice, description)
        if ids is None and all(isinstance(item, str) for item in items):
            ids = list(items)  # strings name themselves
        rows = item_similarities(items, trained_items(description), description["similarity"])
    else:
        content = formats.read(file, choice.format, choice.sheet)
        if isinstance(content, CellTable) and description["kind"] != "table":
            content = listed_pairs(content, description["ids"]) or content
        if isinstance(content, Items):
            raise ValueError(
                f"{what} holds sequences, but the model was fitted on a {description['kind']}."
            )
        if isinstance(content, dict) and description["takes"] == "several":
            return several_rows(content, what, description), None
        if isinstance(content, dict):
            rows = arrays.as_real(content[arrays.find_matrix(content, path, choice.array)], what)
            ids = None
        elif isinstance(content, Pairs):
            rows, ids = pair_rows(content, description)
        else:
            note_left_out(content)
            content = content.with_gaps(description["missing"])
            ids = content.ids
            if description["kind"] == "table" and description["roles"] is not None:
                rows = table_rows(content, description)
                n_rows = count_filled(content)
                return rows[:n_rows], ids[:n_rows] if ids is not None else None
            rows = matrix_rows(
                content, None if description["kind"] == "table" else description["ids"]
            )
        if description["prepared"]:
            raise ValueError(
                f"{what} has no names of columns; give a table with "
                f"{', '.join(description['roles'])}."
            )
        rows = check_real(rows, what)
    if rows.shape[1] != width:
        of = "columns of the training table" if description["kind"] == "table" else "training items"
        remedy = "; transpose it" if len(rows) == width else ""
        raise ValueError(
            f"{what} has {rows.shape[1]} columns; there must be {width}, one for each of the "
            f"{of}{remedy}."
        )
    if description["kind"] != "table" and description["takes"] == "distances":
        rows = as_distances(
            rows, description["kind"], description["smallest"], description["largest"]
        )
    return rows, ids


def note_symmetric_rows(
    path: str, rows: Any, ids: Sequence[str] | None, description: dict[str, Any]
) -> None:
    """Print a note if rows without names are a symmetric matrix: of the new items with each other, it seems."""
    is_matrix = description["kind"] != "table" and description["items"] is None
    if not is_matrix or ids is not None or not isinstance(rows, np.ndarray):
        return
    if len(rows) == rows.shape[1] > 1 and np.array_equal(rows, rows.T):
        print(
            f"{files.name_of(Path(path))} is a symmetric matrix; a row must compare a new item with "
            "the training items, not with the other new ones"
        )


def several_rows(
    content: dict[str, NDArray], what: str, description: dict[str, Any]
) -> dict[str, NDArray]:
    """Return the rows of new items by each of several similarities."""
    rows = {}
    for name in description["matrices"]:
        if name not in content:
            raise ValueError(
                f"{what} has no array {name!r}; the model takes "
                f"{', '.join(description['matrices'])}, a row per new item each."
            )
        rows[name] = check_real(arrays.as_real(content[name], f"{name!r} in {what}"), what)
        if rows[name].shape[1] != description["n_columns"]:
            raise ValueError(
                f"{name!r} in {what} has {rows[name].shape[1]} columns; there must be "
                f"{description['n_columns']}, one for each of the training items."
            )
    return rows


def read_reverse(
    path: str, choice: FileChoice, description: dict, ids: Sequence[str] | None, n_rows: int
) -> NDArray:
    """Return the other direction of the new items, in their order by name if both files have names."""
    if description["takes"] != "both":
        raise ValueError(
            f"The model ({description['learner']}) takes one direction; leave out --reverse."
        )
    rows, names = read_rows(path, choice, description)
    if len(rows) != n_rows:
        raise ValueError(
            f"{path!r} has {len(rows)} rows; there must be {n_rows}, one per new item."
        )
    if ids is not None and names is not None:
        if sorted(ids) != sorted(names):
            strange = next(iter({*ids} ^ {*names}), ids[0])
            raise ValueError(f"{path!r} names other items than the new ones, such as {strange!r}.")
        rows = rows[[names.index(name) for name in ids]]
    return rows


def read_train(path: str | None, choice: FileChoice, description: dict) -> NDArray | None:
    """Return the matrix that a model was fitted on, from its file or its items; None for a table, or without a file."""
    if description["kind"] == "table":
        return None
    if description["items"] is not None:
        items = trained_items(description)
        matrix = item_similarities(items, items, description["similarity"])
    elif path is None:
        return None
    else:
        matrix, ids = read_rows(path, choice, description)
        trained = description["ids"]
        absent = []
        if ids is not None and trained is not None:
            absent = [name for name in trained if name not in set(ids)]
            if not absent:
                matrix = matrix[[ids.index(name) for name in trained]]
        if len(matrix) != matrix.shape[1]:
            raise ValueError(
                f"{path!r} has {len(matrix)} rows but the model was fitted on {matrix.shape[1]} "
                "items; give the file that it was fitted on."
            )
        if absent:
            raise ValueError(
                f"{path!r} has no row for the training item {absent[0]!r}; give the file that the "
                "model was fitted on."
            )
    is_directed = description["takes"] in ("given", "directed", "both")
    return matrix if is_directed else symmetrize(matrix)


def matrix_rows(table: CellTable, ids: Sequence[str] | None) -> NDArray:
    """Return the rows of a table as numbers, its columns matched to the training items by name if both have names."""
    if table.ragged:
        raise ValueError(f"{table.ragged}; give every row one number per training item.")
    if ids is not None and table.named and list(table.frame.columns) != list(ids):
        gone = [name for name in ids if name not in table.frame.columns]
        if gone and table.ids is not None and set(ids) <= set(table.ids):
            raise ValueError(
                f"{table.what} has the training items in its rows; transpose it, so that they "
                "are the columns and every new item is a row."
            )
        if gone:
            raise ValueError(
                f"{table.what} has no column for the training item {gone[0]!r} ({len(gone)} of "
                f"{len(ids)} are missing); name the columns like the training items, or leave "
                "their names out to take them in order."
            )
        table = replace(table, frame=table.frame[list(ids)])
    matrices.check_numbers(table)
    return table.frame.to_numpy(np.float64)


def table_rows(table: CellTable, description: dict) -> Any:
    """Return the columns that the model knows, by name and of their types."""
    import pandas as pd

    roles = description["roles"]
    if not table.named and all(name.startswith("column ") for name in roles):
        table = named_by_position(table, description)
    if table.is_sparse:
        absent = [name for name in roles if not table.has(name)]
        table = replace(table, frame=table.frame.assign(**dict.fromkeys(absent, 0.0)))
    gone = next((name for name in roles if not table.has(name)), None)
    if gone is not None:
        names = ", ".join(map(str, table.frame.columns))
        raise ValueError(f"{table.what} has no column {gone!r}; it has {names}.")
    matrices.check_even(table)
    columns = {}
    for name, role in roles.items():
        if role == "number":
            columns[name] = as_numbers(table, name)
            note_percents(table, name, name in description["percents"])
            continue
        gaps = set(MISSING)
        if role == "category None":
            gaps.remove(NONE)
        cells = pd.Series(table.text(name), dtype=object)
        cells = cells.where(~cells.isin(gaps))
        if role.startswith("date"):
            columns[name] = as_known_dates(table, name, cells, role)
        else:
            levels = description["levels"].get(name, [])
            if set(levels) <= {"True", "False"}:  # R writes TRUE
                cells = cells.map(str.capitalize, na_action="ignore")
            columns[name] = cells
            note_strange_words(table, name, cells, levels)
    rows = coerce(pd.DataFrame(columns), roles)
    if description["prepared"]:
        return rows
    gaps = rows.isna().to_numpy()
    if gaps.any():
        row, column = np.argwhere(gaps)[0]
        raise ValueError(
            f"{table.at(row, rows.columns[column])} is missing, which no training row was; fill it "
            "in."
        )
    return rows.to_numpy(np.float64)


def named_by_position(table: CellTable, description: dict) -> CellTable:
    """Return a table without header with the names of the training columns.

    They are those of all columns, of all but the labels, or only of those that the model uses.
    """
    trained = description["columns"] or list(description["roles"])
    unlabeled = [name for name in trained if name != description["target"]]
    n_columns = table.frame.shape[1]
    for names in (trained, unlabeled, list(description["roles"])):
        if len(names) == n_columns:
            return table.renamed(dict(zip(table.frame.columns, names)))
    raise ValueError(
        f"{table.what} has {n_columns} columns; there must be {len(unlabeled)}, as in the training "
        "file without its labels."
    )


def note_left_out(table: CellTable) -> None:
    """Print a note for rows that get no prediction, and for numbers that may be read in two ways."""
    if table.summary:
        print(f"{table.what}: the last row ({table.summary}) has sums or means and is left out")
    if table.n_comments:
        n_lines = "1 line" if table.n_comments == 1 else f"{table.n_comments} lines"
        print(f"{table.what}: {n_lines} among the rows begin with # and are left out as comments")
    if table.thousands:
        number = table.thousands.replace(".", "")
        print(f"{table.what}: numbers such as {table.thousands} are read as {number}")


def count_filled(table: CellTable) -> int:
    """Return the number of rows up to the last that is not empty, with a note if empty ones follow."""
    is_filled = ~table.frame.isna().all(axis=1).to_numpy()
    n_rows = len(is_filled)
    n_empty = int(is_filled[::-1].argmax())
    if n_empty == 0 or table.ids is not None:
        return n_rows
    print(f"{table.what}: the last {n_empty} rows are empty and left out")
    return n_rows - n_empty


def as_numbers(table: CellTable, name: str) -> Any:
    """Return a column as numbers; words among them become missing values, with a note."""
    import pandas as pd

    column = pd.Series(table.text(name)) if name not in table.frame else table.frame[name]
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
    else:
        cells = column.fillna("").astype(str)
        cells = cells.map(dict(zip(cells, plain_numbers(list(cells)))))
        if set(cells.str.lower()) <= {"true", "false", *MISSING}:
            cells = cells.map(lambda cell: {"true": "1", "false": "0"}.get(cell.lower(), cell))
        is_word = ~cells.isin(MISSING) & ~cells.map(is_number)
        if is_word.any():
            row = int(is_word.argmax())
            print(
                f"{table.at(row, name)} has {cells.iloc[row]!r} where numbers were: missing, with "
                f"{int(is_word.sum()) - 1} more"
            )
        numbers = pd.to_numeric(cells.where(~is_word, ""), errors="coerce")
    return numbers.where(np.isfinite(numbers), np.nan)


def note_percents(table: CellTable, name: str, is_expected: bool) -> None:
    """Print a note if a column of numbers has percent signs here, but not in the training rows, or the reverse."""
    is_percent = table.is_percent(name)
    if is_percent == is_expected or (name in table.frame and table.frame[name].isna().all()):
        return
    of_these = "percent signs" if is_percent else "no percent signs"
    of_trained = "had them" if is_expected else "had none"
    print(
        f"{table.what}: column {name!r} has {of_these}, but the training rows {of_trained}; "
        "12.5 % is taken as 0.125"
    )


def note_strange_words(table: CellTable, name: str, cells: Any, levels: list[str]) -> None:
    """Print a note if a column of categories has words that the training rows did not have."""
    words = cells.dropna().astype(str)
    strange = words[~words.isin(levels)]
    if not levels or not len(strange):
        return
    if len(strange) == len(words):
        print(
            f"{table.what}: no word in column {name!r}, such as {words.iloc[0]!r}, was in the "
            f"training rows, such as {levels[0]!r}; all count as unknown"
        )
        return
    print(
        f"{table.what}: {len(strange)} of {len(words)} words in column {name!r}, such as "
        f"{strange.iloc[0]!r}, were not in the training rows and count as unknown"
    )


def as_known_dates(table: CellTable, name: str, cells: Any, role: str) -> Any:
    """Return a column of dates, in the format of the training rows or in one other; others are missing, with a note."""
    dates = as_dates(cells, date_format(role))
    is_unread = dates.isna() & cells.notna()
    if not is_unread.any():
        return dates
    row = int(is_unread.argmax())
    found = f"{table.at(row, name)} has {cells.iloc[row]!r}"
    other, reason = date_role(cells.dropna().astype(str))
    if other:
        form = date_format(other)
        print(f"{found}, unlike the training rows; all dates are read as {form}")
        return as_dates(cells, form)
    why = f" ({reason})" if reason else ""
    print(f"{found} where dates were{why}: missing, with {int(is_unread.sum()) - 1} more")
    return dates


def listed_pairs(table: CellTable, ids: Sequence[str] | None) -> Pairs | None:
    """Return the rows as pairs with a number if every row names a training item; None if they are no pairs."""
    n_columns = table.frame.shape[1]
    if ids is None or table.ids is not None or n_columns < 3 or set(ids) & set(table.frame.columns):
        return None
    first, second, number = map(str, table.frame.columns[:3])
    names = table.text(first)
    others = table.text(second)
    trained = set(ids)
    if not all(trained.intersection(pair) for pair in zip(names, others)):
        return None
    score = matrices.bit_score(table)
    if score is not None:
        return matrices.best_hits(table, score)
    if n_columns > 3:
        return None
    matrices.check_numbers(table, [number])
    values = table.frame[number].to_numpy(np.float64)
    why = "every row is a pair of items and a number"
    return Pairs(table.path, names, others, values, number, why, lines=table.lines)


def pair_rows(pairs: Pairs, description: dict) -> tuple[NDArray, list[str]]:
    """Return a row for each item that is compared with training items; a pair that is not listed is the farthest."""
    trained = description["ids"]
    if trained is None:
        raise ValueError(
            f"{files.name_of(pairs.path)} holds pairs, but the model does not know the names of "
            "its training items; give one row per new item."
        )
    kind = description["kind"]
    matrix = matrices.pair_matrix(pairs, kind)
    place = {item: i for i, item in enumerate(matrix.ids)}
    new = [item for item in matrix.ids if item not in set(trained)] or matrix.ids
    far = 0.0 if kind == "similarity" else description["largest"]
    rows = np.full((len(new), len(trained)), far)
    for column, item in enumerate(trained):
        if item in place:
            rows[:, column] = matrix.X[[place[one] for one in new], place[item]]
    return rows, new


def trained_items(description: dict) -> list[Any]:
    """The items that a model was fitted on: strings, or time series."""
    if description["similarity"] == "dtw":
        return [from_text(text) for text in description["items"]]
    return list(description["items"])


def read_new_items(
    file: Path, choice: FileChoice, description: dict
) -> tuple[Sequence[Any], Sequence[str] | None]:
    """Return new items as the model compares them, and their names."""
    if description["similarity"] != "dtw":
        return read_items(file, choice, description["roles"])
    content = formats.read(file, choice.format, choice.sheet)
    if isinstance(content, CellTable) and content.items:
        return content.items, content.ids
    lengths = {from_text(text).shape for text in description["items"]}
    if isinstance(content, CellTable) and len(lengths) == 1:
        series = _rows_as_series(content, max(lengths)[-1])
        if series is not None:
            return series, content.ids
    raise ValueError(
        f"{files.name_of(file)} holds no time series like those that the model was fitted on; "
        "give a file of the same form."
    )


def _rows_as_series(table: CellTable, n_points: int) -> list[Any] | None:
    """Rows of numbers as series of so many points, with or without a class in front; None if they are not."""
    frame = table.frame
    has_class = frame.shape[1] == n_points + 1 and not table.named
    if has_class:
        frame = frame.iloc[:, 1:]
    is_numeric = all(dtype.kind in "iuf" for dtype in frame.dtypes)
    if frame.shape[1] != n_points or not is_numeric:
        return None
    return list(frame.to_numpy(dtype=float))


def read_items(
    file: Path, choice: FileChoice, roles: dict[str, str] | None
) -> tuple[Sequence[str], Sequence[str] | None]:
    """Return strings, one per line or from the column that they were in, and their names."""
    if choice.format == "lines" or (choice.format is None and files.ending_of(file) == ".txt"):
        lines = files.read_lines(file)
        looks_else = lines[0].startswith(">") or formats.looks_like_smiles("\n".join(lines))
        if choice.format == "lines" or not looks_else:
            is_header = len(lines) > 1 and lines[0] == next(iter(roles or {}), None)
            return lines[is_header:], None
    content = formats.read(file, choice.format, choice.sheet)
    if isinstance(content, Items):
        return content.items, content.ids
    if not isinstance(content, CellTable):
        raise ValueError(
            f"{files.name_of(file)} holds numbers, but the model was fitted on strings."
        )
    wanted = next(iter(roles or {}), None)
    if wanted is not None and content.named and content.has(wanted):
        return content.text(wanted), None if wanted == content.id_column else content.ids
    words = [
        name
        for name, dtype in zip(content.frame.columns, content.frame.dtypes)
        if dtype.kind == "O"
    ]
    if content.frame.shape[1] > 1 and len(words) != 1 and (wanted is None or content.named):
        named = f"{wanted!r}" if wanted is not None else "of strings"
        raise ValueError(
            f"{content.what} has no column {named}; it has {', '.join(content.frame.columns)}."
        )
    return content.text((words or list(content.frame.columns))[0]), content.ids
