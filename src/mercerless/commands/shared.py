"""What the commands share: options of data and runs, checks before any work, and progress."""

import argparse
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mercerless.comparison.options import METRICS, Options, Progress, silent
from mercerless.comparison.read.files import FORMATS, check_file
from mercerless.comparison.read.options import KINDS, TASKS, ReadOptions

if TYPE_CHECKING:
    from mercerless.comparison.problem import Problem
    from mercerless.comparison.result import Comparison
    from mercerless.comparison.work import Workers


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file and the options that say what it holds."""
    data = parser.add_argument_group("data")
    data.add_argument("data", metavar="DATA", nargs="?", help="a file, or - for standard input")
    data.add_argument("--labels", metavar="COLUMN|FILE[:COLUMN]", help="what to predict")
    data.add_argument("--kind", choices=KINDS, help="what DATA holds")
    data.add_argument("--task", choices=TASKS, help="whether labels are classes or numbers")
    data.add_argument(
        "--groups", metavar="COLUMN|FILE[:COLUMN]", help="items of one group are never split"
    )
    names = "levenshtein, jaro_winkler, dtw, ..., or module:function"
    data.add_argument("--similarity", metavar="NAME", help=f"how items are compared: {names}")
    add_file_arguments(data)


def add_file_arguments(data: Any) -> None:
    """Add the options that say how a file is read."""
    data.add_argument("--format", metavar="NAME", help=f"of the file: {', '.join(FORMATS)}")
    data.add_argument("--sheet", metavar="NAME|N", help="the sheet of an Excel file")
    data.add_argument("--array", metavar="NAME", help="the array of an .npz file")
    data.add_argument(
        "--sep", metavar="MARK", help="between cells: comma, semicolon, tab, space, ..."
    )
    data.add_argument("--decimal", metavar="MARK", help="the decimal point: . or ,")
    data.add_argument(
        "--header", choices=("yes", "no"), help="whether the first line names columns"
    )
    data.add_argument("--index", metavar="COLUMN|none", help="the column that names the items")
    for name, metavar, text in (
        ("--missing", "WORD", "a word or number that means a gap; repeatable"),
        ("--drop", "COLUMN", "leave out a column; repeatable"),
    ):
        data.add_argument(name, metavar=metavar, action="append", default=[], help=text)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a comparison."""
    run = parser.add_argument_group("run")
    metrics = ", ".join(name for names in METRICS.values() for name in names)
    run.add_argument("--metric", metavar="NAME", help=f"rank learners by: {metrics}")
    run.add_argument("--learners", metavar="A,B,...", help="only these learners")
    run.add_argument(
        "--budget", metavar="TIME", default="2m", help="90s, 2m, 1h or none (%(default)s)"
    )
    run.add_argument(
        "--repeats", type=int, metavar="N", help="exactly N repeats, whatever they take"
    )
    run.add_argument("--no-curves", action="store_true", help="no learning curve")
    run.add_argument("--no-searches", action="store_true", help="defaults only")
    run.add_argument("--jobs", type=int, metavar="N", default=-1, help="processes (one per core)")
    run.add_argument("--seed", type=int, metavar="N", default=0, help="of the splits (%(default)s)")
    run.add_argument(
        "--resume", action="store_true", help="go on with an earlier run on the same data"
    )


def read_options(args: argparse.Namespace) -> ReadOptions:
    """The options of reading, checked."""
    given = {field.name: getattr(args, field.name, None) for field in fields(ReadOptions)}
    return ReadOptions.from_dict(given | {"missing": args.missing, "drop": args.drop})


def run_options(args: argparse.Namespace, progress: Progress = silent) -> Options:
    """The options of a comparison, checked."""
    learners = [name.strip() for name in args.learners.split(",")] if args.learners else None
    return Options(
        metric=args.metric,
        learners=learners,
        budget=args.budget,
        repeats=args.repeats,
        curves=not args.no_curves,
        searches=not args.no_searches,
        n_jobs=args.jobs,
        random_state=args.seed,
        resume=args.resume,
        progress=progress,
        started=args.started,
    )


def check_output(path: str, suffix: str, *inputs: str | None) -> Path:
    """Return the path to write to; raise one sentence if it cannot be written or is an input."""
    output = Path(path)
    if output.suffix.lower() != suffix:
        raise ValueError(f"The output {path!r} must have a name that ends in {suffix}.")
    folder = output.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(output.parent)!r} for {output.name!r}.")
    if not os.access(folder, os.W_OK) or output.is_dir():
        raise PermissionError(f"{path!r} cannot be written; give another place.")
    for one in inputs:
        if one is not None and Path(one).exists() and output.exists() and output.samefile(one):
            raise ValueError(f"The output {path!r} is also an input; give another name.")
    return output


def read(args: argparse.Namespace, options: ReadOptions) -> "Problem":
    """Read the data, or take the built-in digits, and print the decisions that were made."""
    if args.data is None:
        from mercerless.comparison.problem import make_problem
        from mercerless.datasets import load_digit_shapes

        shapes = load_digit_shapes()
        problem = make_problem(shapes.D, shapes.target, kind="distance", name="digit shapes")
    else:
        from mercerless.comparison.read.reading import read_problem

        problem = read_problem(args.data, **options.as_dict())
    width = f", {problem.X.shape[1]:,} columns" if problem.is_table else ""
    target = (
        f"{len(problem.classes)} classes" if problem.is_classification else "a number to predict"
    )
    print(f"{problem.name}: {problem.kind}, {problem.n_items:,} items{width}, {target}")
    for note in problem.notes:
        print(f"  {note}")
    return problem


def check_data(args: argparse.Namespace) -> ReadOptions:
    """The options of reading; raises before anything heavy is imported if they or the file are wrong."""
    options = read_options(args)
    if args.data is not None:
        check_file(args.data)
    elif options != ReadOptions():
        raise ValueError("The file is missing; without one, only the built-in digits are compared.")
    return options


def compare(args: argparse.Namespace, problem: "Problem", workers: "Workers") -> "Comparison":
    """Run the comparison that the arguments describe."""
    from mercerless.comparison.result import compare_problem

    with plain_warnings(args.command), progress_bar() as progress:
        comparison = compare_problem(problem, run_options(args, progress), workers)
    comparison.to_continue = f"{command_again(args.words)} --resume --budget {{budget}}"
    return comparison


def command_again(words: Sequence[str]) -> str:
    """The command line without its budget, to be copied into a shell."""
    kept = [
        word
        for before, word in zip(["", *words], words)
        if word not in ("--resume", "--budget") and before != "--budget"
    ]
    return shlex.join(["mercerless", *kept]).replace("{", "{{").replace("}", "}}")


def start_workers(args: argparse.Namespace) -> "Workers":
    """Start the processes, which import what they need while the data are read."""
    from joblib import effective_n_jobs

    from mercerless.comparison.work import Workers

    return Workers(effective_n_jobs(args.jobs))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1)
        yield lambda text, done, total: bar.update(
            task, description=text, completed=done, total=total
        )


@contextmanager
def plain_warnings(command: str) -> Iterator[None]:
    """Print warnings as one sentence each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)
        warnings.showwarning = lambda message, *_, **__: print(
            f"mercerless {command}: {message}", file=sys.stderr
        )
        yield
