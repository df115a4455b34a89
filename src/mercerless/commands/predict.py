"""``mercerless predict``: predict for new items with a model that ``mercerless fit`` saved."""

import argparse
import warnings
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from mercerless.commands import shared
from mercerless.comparison.read.files import check_file
from mercerless.comparison.read.options import ReadOptions

if TYPE_CHECKING:
    from mercerless.commands.models import About
    from mercerless.comparison.read.items import Items


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.usage = "mercerless predict MODEL DATA [options]"
    parser.description = """\
Predict for new items with a model from 'mercerless fit'. Files are read as the training data were. A
model of a matrix takes a row per new item with its comparisons to the training items, or a list of
pairs; a model of a table takes the same columns in any order; a model of strings takes strings."""
    parser.epilog = """\
examples:
  mercerless predict model.skops new-animals.csv
  mercerless predict model.skops new-animals.csv --probabilities --coverage 0.9 -o sure.csv

exit codes: 0 done, 2 something is wrong with the input"""
    parser.add_argument("model", metavar="MODEL", help="a .skops file from 'mercerless fit'")
    parser.add_argument("data", metavar="DATA", help="the new items, or - for standard input")
    shared.add_file_arguments(parser)
    parser.add_argument("--similarity", metavar="MODULE:FUNCTION", help="your own function, if any")
    parser.add_argument("--probabilities", action="store_true", help="of every class")
    parser.add_argument(
        "--coverage", type=float, metavar="SHARE", help="sets or intervals that hold this share"
    )
    parser.add_argument(
        "-o", "--output", metavar="CSV", default="predictions.csv", help="(%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Load, read, predict, write."""
    said = shared.read_options(args)
    check_file(args.model)
    check_file(args.data)
    if args.coverage is not None and not 0.0 < args.coverage < 1.0:
        raise ValueError(f"--coverage {args.coverage:g} must be between 0 and 1.")
    output = shared.check_output(args.output, ".csv", args.model, args.data)
    from mercerless.commands import models
    from mercerless.comparison.read.reading import read_new

    estimator, about = models.load(args.model)
    check_consent(about, args.similarity)
    options = ReadOptions.from_dict(about.options)
    changed = {f.name: v for f in fields(said) if (v := getattr(said, f.name)) not in (None, ())}
    new = read_new(args.data, replace(options, **changed), vars(about))
    with shared.plain_warnings("predict"):
        frame = predictions(estimator, about, new, args)
    text = frame.map(harmless).to_csv(index=False)
    output.write_text(text, encoding="utf-8" if text.isascii() else "utf-8-sig")
    print(f"predictions: {len(frame):,}\n{output}")
    return 0


def check_consent(about: "About", given: str | None) -> None:
    """Raise if only the file names the function to call: it would choose what code runs."""
    name = about.similarity
    if name is not None and ":" in name and name != given:
        shown = name if name.isprintable() else repr(name)
        raise ValueError(
            f"The model compares items with a function; if you know and trust it, add --similarity {shown}."
        )


def predictions(estimator: Any, about: "About", new: "Items", args: argparse.Namespace) -> Any:
    """A column per result, a row per new item."""
    import pandas as pd

    rows = rows_for(about, new)
    columns: dict[str, Any] = {} if new.names is None else {"id": new.names}
    columns["prediction"] = estimator.predict(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # predict has shown them
        if args.probabilities:
            if not hasattr(estimator, "predict_proba"):
                raise ValueError(f"The learner {about.learner!r} has no probabilities of classes.")
            shares = estimator.predict_proba(rows).T
            columns |= {f"probability of {k}": p for k, p in zip(estimator.classes_, shares)}
        if args.coverage is not None:
            columns |= sure_columns(estimator, rows, args.coverage, about)
    return pd.DataFrame(columns)


def rows_for(about: "About", new: "Items") -> Any:
    """New items as the estimator takes them: strings and series as comparisons with the training items."""
    if about.items is None:
        is_dense = about.kind == "hits" and about.takes == "matrix" and hasattr(new.X, "toarray")
        return new.X.toarray() if is_dense else new.X
    import numpy as np

    from mercerless.comparison.problem import find_function
    from mercerless.kernels import as_kernel

    assert about.similarity is not None
    is_function = ":" in about.similarity
    kernel = as_kernel(find_function(about.similarity) if is_function else about.similarity)
    if about.kind == "strings":
        return kernel(list(new.X), about.items)
    return kernel([np.asarray(x) for x in new.X], [np.asarray(x) for x in about.items])


def sure_columns(estimator: Any, rows: Any, coverage: float, about: "About") -> dict[str, Any]:
    """Sets of classes, or both ends of intervals, of a stated coverage."""
    if hasattr(estimator, "predict_set"):
        sets = estimator.predict_set(rows, coverage)
        names = [" | ".join(map(str, estimator.classes_[one])) for one in sets]
        return {f"set at {coverage:g}": names}
    if not hasattr(estimator, "predict_interval"):
        learner = "table" if about.kind == "table" else "similarity"
        raise ValueError(
            f"The learner {about.learner!r} has no sets or intervals; fit with --learner {learner}."
        )
    low, high = estimator.predict_interval(rows, coverage).T
    return {f"lower at {coverage:g}": low, f"upper at {coverage:g}": high}


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in tuple("=+-@\t\r") else cell
