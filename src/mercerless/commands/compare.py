"""``mercerless compare``: what works on your data, on one page."""

import argparse

from mercerless.commands import shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description, examples and arguments."""
    parser.usage = "mercerless compare [DATA] [options]"
    parser.description = """\
Compare the learners that apply to your data on the same splits, and write one page that says which to
use. Without DATA it compares on built-in distances between handwritten digits."""
    parser.epilog = """\
examples:
  mercerless compare                                       the built-in digits
  mercerless compare animals.csv --labels species          a table and the column to predict
  mercerless compare scores.csv --labels classes.txt       a matrix and a label per item
  mercerless compare hits.m8 --labels families.csv         hits of a sequence search
  mercerless compare animals.csv --labels species --resume --budget 10m

exit codes: 0 done, 2 something is wrong with the input, 130 interrupted (the page has what is done)"""
    shared.add_data_arguments(parser)
    shared.add_run_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="HTML", default="mercerless-compare.html", help="(%(default)s)"
    )
    parser.add_argument("--no-rows", action="store_true", help="no single items on the page")


def run(args: argparse.Namespace) -> int:
    """Check, read, compare, write."""
    options = shared.check_data(args)
    shared.run_options(args)
    output = shared.check_output(args.output, ".html", args.data)
    workers = shared.start_workers(args)
    try:
        problem = shared.read(args, options)
        comparison = shared.compare(args, problem, workers)
    finally:
        workers.close()
    comparison.report(output, rows=not args.no_rows)
    print(f"\n{comparison}\n")
    if comparison.interrupted and comparison.ranked:
        print(f"Interrupted; go on with: {comparison.command_to_continue}")
    print(f"report  {output}")
    return 130 if comparison.interrupted else 0
