"""``mercerless compare``: score all learners on your data and write a report."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from mercerless.commands._arguments import add_data_arguments, add_run_arguments

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.description = """\
Find out what works on your data. Every applicable learner of mercerless, and the baselines a
skeptic would ask for, are scored on the same splits, each with a search of its own. A report in one
HTML file shows what to use, what is not distinguishable from it, and whether the negative part of a
similarity matrix is useful or harmful."""
    parser.epilog = """\
examples:
  mercerless compare                                   the built-in digit shapes, within two minutes
  mercerless compare scores.csv --labels classes.txt   a square matrix of similarities or distances
  mercerless compare table.csv --labels price          a table; predict the column 'price'
  mercerless compare peptides.tsv                      strings with a column of labels
  mercerless compare data.npz --budget 20m --jobs 8    more time: more repeats, narrower intervals
  mercerless compare data.npz --learners stack,features --repeats 5
  mercerless compare data.npz --resume --budget 10m    go on after Ctrl-C or a budget too short

exit codes: 0 done, 2 something is wrong with the input or the Dask cluster, 130 interrupted (the
report of what was finished is written)"""
    add_data_arguments(parser, optional=True)
    add_run_arguments(parser)
    parser.add_argument(
        "--output",
        metavar="HTML",
        default="mercerless-compare.html",
        help="where the report goes (%(default)s)",
    )
    parser.add_argument(
        "--no-rows",
        action="store_true",
        help="no single items in the report, if others will see it: no first rows, map, items worth "
        "a look or predictions to download",
    )
    parser.add_argument("--save", metavar="JSON", help="also write all numbers as JSON")


def run(args: argparse.Namespace) -> int:
    """Start processes, which make their imports at the same time as this one, and compare."""
    from mercerless.comparison.workers import started_early

    is_timed = args.repeats is None and args.budget != "none"
    n_processes = args.jobs if args.dask is None and (is_timed or args.jobs > 1) else 0
    with started_early(n_processes) as args.processes:
        return run_comparison(args)


def run_comparison(args: argparse.Namespace) -> int:
    """Read, compare, report."""
    from mercerless.commands import _common
    from mercerless.core.optional import import_optional

    output = _common.check_output(args.output, ".html")
    saved = None
    if args.save is not None:
        saved = _common.check_output(args.save, ".json")
    import_optional("matplotlib", "cli", "The report")
    problem = _common.read(args)
    comparison = _common.run_comparison(args, problem)
    comparison.to_continue = command_to_continue(args)
    try:
        comparison.report(output, command(args, comparison), rows=not args.no_rows)
        if saved is not None:
            comparison.save(saved)
    finally:
        print(
            f"\n{comparison}\n"
        )  # after the report, which must not be lost, and also if the disk is full
    print(f"report  {output}")
    if comparison.interrupted:
        print(
            "mercerless compare: interrupted; the report has what was finished, --resume goes on.",
            file=sys.stderr,
        )
        return 130
    return 0


def command(args: argparse.Namespace, comparison: "Comparison") -> str:
    """Return the command that repeats the comparison exactly, all guesses and the number of repeats spelled out."""
    words = _data_words(args)
    if args.data is not None:
        kind = args.kind
        if comparison.problem.items is None:
            kind = comparison.problem.kind
        if kind is not None:
            words += ["--kind", kind]
        words += ["--task", comparison.problem.task]
    words += ["--metric", comparison.metric, "--learners", ",".join(comparison.specification)]
    words += ["--repeats", str(max(1, comparison.n_repeats)), "--seed", str(args.seed)]
    words += _report_words(args)
    return shlex.join(words)


def command_to_continue(args: argparse.Namespace) -> str:
    """Return the command that continues the same comparison, with a placeholder for the new budget."""
    words = _data_words(args)
    for option in ("kind", "task", "metric", "learners"):
        value = getattr(args, option)
        if value is not None:
            words += [f"--{option}", value]
    if args.seed:
        words += ["--seed", str(args.seed)]
    words += _report_words(args)
    text = shlex.join(words).replace("{", "{{").replace("}", "}}")
    return f"{text} --resume --budget {{budget}}"


def _data_words(args: argparse.Namespace) -> list[str]:
    """The words of a command that describe the data and how they are read."""
    words = ["mercerless", "compare"]
    if args.data is None:
        return words
    words.append(args.data)
    for option in ("labels", "groups", "array", "similarity", "format", "sheet"):
        value = getattr(args, option)
        if value is not None:
            words += [f"--{option}", value]
    for column in args.drop:
        words += ["--drop", column]
    for word in args.missing:
        words.append(f"--missing={word}")  # it may begin with a minus
    if args.no_split:
        words.append("--no-split")
    return words


def _report_words(args: argparse.Namespace) -> list[str]:
    """The words of a command that say what the report shows."""
    words = []
    if args.no_curves:
        words.append("--no-curves")
    if args.no_rows:
        words.append("--no-rows")
    return words
