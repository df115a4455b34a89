"""``mercerless predict``: predict for new items with a model that ``mercerless fit`` saved."""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path

from numpy.typing import NDArray

from mercerless.commands import _common

DESCRIPTION = """\
Predict for new items with a model from 'mercerless fit'. A model of a similarity or distance matrix takes one row per
new item with its similarities or distances to the training items, in their order; a model of a table takes a table
with the same columns; a model of strings takes strings, one per line or in the first column of words."""

EXAMPLES = """\
examples:
  mercerless predict model.skops new-rows.npy
  mercerless predict model.skops new-table.csv --probabilities --output predictions.csv

exit codes: 0 done, 2 something is wrong with the input"""


def add_parser(subparsers) -> None:
    """Register the command and its arguments."""
    parser = subparsers.add_parser(
        "predict",
        help="predict for new items with a saved model",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="a .skops file from 'mercerless fit'")
    parser.add_argument("data", metavar="DATA", help="the new items")
    parser.add_argument("--array", metavar="NAME", help="the array of an .npz file")
    parser.add_argument("--probabilities", action="store_true", help="also write the probability of every class")
    parser.add_argument("--output", metavar="CSV", default="predictions.csv", help="where they go (%(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Load, read, predict, write."""
    from mercerless import persistence
    from mercerless.comparison.result import write_atomically

    output = _common.check_output(args.output, ".csv")
    model = persistence.load(args.model)
    try:
        estimator, description = model["estimator"], json.loads(model["description"])
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{args.model!r} was not written by 'mercerless fit'.") from None
    rows = read_rows(args.data, args.array, description)
    columns = {"prediction": estimator.predict(rows)}
    if args.probabilities:
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(f"The model ({description['learner']}) gives no probabilities; leave out --probabilities.")
        for label, values in zip(estimator.classes_, estimator.predict_proba(rows).T):
            columns[f"probability of {label}"] = values
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values()))
    write_atomically(output, text.getvalue())
    print(f"{len(rows)} predictions\n{output}")
    return 0


def read_rows(path: str, array: str | None, description: dict) -> NDArray:
    """Return new items in the form the model takes."""
    from mercerless._validation import check_real
    from mercerless.comparison.files import ARRAY_SUFFIXES, existing_file, read_matrix
    from mercerless.comparison.problem import SUFFIXES, TableEncoding, as_distances, edit_similarities, read_table

    file = existing_file(path, SUFFIXES)
    what, width = repr(path), description["n_columns"]
    if description["kind"] == "strings":
        rows = edit_similarities(read_strings(file), description["items"])
    elif description["columns"] is not None and file.suffix.lower() not in (".npy", ".npz"):
        encoding = TableEncoding(tuple(description["columns"]), description["categories"])
        return encoding.encode(read_table(file), what)
    elif file.suffix.lower() in ARRAY_SUFFIXES:
        rows = check_real(read_matrix(file, array), what)
    else:
        table = read_table(file)
        rows = TableEncoding(tuple(table.columns), {}).encode(table, what)
    if rows.shape[1] != width:
        of = "columns of the training table" if description["kind"] == "table" else "training items"
        raise ValueError(f"{what} has {rows.shape[1]} columns; there must be {width}, one for each of the {of}.")
    if description["kind"] != "table" and description["takes"] == "distances":
        return as_distances(rows, description["kind"], description["smallest"], description["largest"])
    return rows


def read_strings(file: Path) -> list[str]:
    """Return one string per line, or the first column of words of a table."""
    from mercerless.comparison.problem import _is_text, read_table

    if file.suffix.lower() == ".txt":
        return [line for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    table = read_table(file)
    return next((cells for cells in table.columns.values() if _is_text(cells)), next(iter(table.columns.values())))
