"""The arguments that several commands share; almost without imports, so that typing errors are reported at once."""

import argparse
import os
from typing import Any

from mercerless.comparison.files import FORMATS


def add_data_arguments(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Add the file and everything that overrides a guess about it."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "data",
        nargs="?" if optional else None,
        metavar="DATA",
        help="a matrix of similarities or distances, a table, time series, strings, molecules, "
        "hits or a graph: arrays (.npy, .npz, .mat), any text table, .parquet, .feather, .xlsx, "
        ".dta, .json, .arff, .libsvm, .ts, .fasta, .smi, BLAST's outfmt 6, .graphml, also "
        "compressed; - is the standard input"
        + ("; without it, the built-in digit shapes" if optional else ""),
    )
    data.add_argument(
        "--labels",
        metavar="FILE|COLUMN",
        help="a file with labels, in order or with the items' names, or a column",
    )
    kinds = ("similarity", "distance", "dissimilarity", "table", "strings")
    data.add_argument("--kind", choices=kinds, help="what DATA holds (guessed)")
    data.add_argument(
        "--task", choices=("classification", "regression"), help="what the labels are (guessed)"
    )
    data.add_argument(
        "--groups", metavar="COLUMN|FILE|none", help="items of one group are never split (guessed)"
    )
    names = "levenshtein, jaro_winkler, indel, ..., dtw for series, or module:function"
    data.add_argument(
        "--similarity", metavar="NAME", help=f"how strings or series are compared: {names}"
    )
    data.add_argument(
        "--array", metavar="NAME", help="the array of an .npz file (guessed), or several: A,B"
    )
    add_file_arguments(data)
    data.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="leave out a column; repeatable",
    )
    data.add_argument(
        "--missing",
        metavar="WORD",
        action="append",
        default=[],
        help="a word or number that means a missing value in this table, such as unknown or -999; "
        "repeatable",
    )
    data.add_argument(
        "--no-split", action="store_true", help="do not use a train/test split found in DATA"
    )


def add_file_arguments(parser: Any) -> None:
    """Add the options that override guesses about the file itself."""
    formats = ", ".join(FORMATS)
    parser.add_argument(
        "--format", metavar="NAME", help=f"of the file (recognized by its content): {formats}"
    )
    parser.add_argument("--sheet", metavar="NAME|N", help="the sheet of an Excel file")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a comparison."""
    run = parser.add_argument_group("run")
    scores = (
        "the score that counts, by scikit-learn's name, or mae, rmse, log_loss "
        "(accuracy, or R² for numbers)"
    )
    run.add_argument("--metric", metavar="NAME", help=scores)
    run.add_argument("--learners", metavar="A,B,...", help="only these learners (all that apply)")
    run.add_argument(
        "--budget", metavar="TIME", default="2m", help="such as 90s, 2m, 1h or none (%(default)s)"
    )
    run.add_argument(
        "--repeats", type=int, metavar="N", help="exactly N repeats, whatever they take"
    )
    run.add_argument("--no-curves", action="store_true", help="no learning curves")
    run.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        default=os.cpu_count(),
        help="tasks at the same time (all cores)",
    )
    run.add_argument(
        "--seed", type=int, metavar="N", default=0, help="of splits and learners (%(default)s)"
    )
    run.add_argument(
        "--resume",
        action="store_true",
        help="continue an interrupted run of the same data and settings",
    )
    run.add_argument(
        "--dask", metavar="ADDRESS", help="run the tasks on a Dask cluster, such as tcp://host:8786"
    )
