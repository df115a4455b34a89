"""Shared steps of the commands that read data: reading, printing the guesses, and running a comparison."""

import argparse
import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from mercerless import datasets
from mercerless.comparison.options import Options
from mercerless.comparison.problem import Problem, make_problem
from mercerless.comparison.progress import progress_bar
from mercerless.comparison.reading import read_problem
from mercerless.comparison.result import Comparison, compare_problem
from mercerless.core.optional import import_optional


def read(args: argparse.Namespace) -> Problem:
    """Return the problem that the arguments describe, and print the guesses about it."""
    if args.data is None:
        shapes = datasets.load_digit_shapes()
        loading = "shapes = mercerless.datasets.load_digit_shapes()\nX, y = shapes.D, shapes.target"
        problem = make_problem(shapes.D, shapes.target, kind="distance", name="digit shapes")
        problem = replace(problem, loading=loading)
    else:
        problem = read_problem(
            args.data,
            labels=args.labels,
            kind=args.kind,
            task=args.task,
            groups=args.groups,
            array=args.array,
            drop=args.drop,
            use_split=not args.no_split,
            similarity=args.similarity,
            format=args.format,
            sheet=args.sheet,
            missing=args.missing,
        )
    print(describe(problem))
    for guess in problem.guesses:
        print(f"  {guess.what}: {guess.value} ({guess.why}; --{guess.option} overrides)")
    return problem


def describe(problem: Problem) -> str:
    """Describe the data in one line."""
    n, width = problem.X.shape
    shape = f"{n} items, {width} columns" if problem.kind == "table" else f"{n} items"
    target = (
        f"{len(np.unique(problem.y))} classes" if problem.is_classification else "numeric target"
    )
    return f"{problem.name}: {problem.kind}, {shape}, {target}"


def check_output(path: str, suffix: str) -> Path:
    """Return the path to write to; raise one sentence if it cannot be written, before any work."""
    output = Path(path)
    if output.suffix.lower() != suffix:
        raise ValueError(f"The output {path!r} must have a name that ends in {suffix}.")
    if not output.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(output.parent)!r} to write {output.name!r} to."
        )
    if not os.access(output.absolute().parent, os.W_OK):
        raise PermissionError(
            f"The folder {str(output.absolute().parent)!r} cannot be written to; give another "
            "place."
        )
    if output.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder; give the name of a file.")
    return output


def check_not_input(output: Path, *inputs: str | None) -> None:
    """Raise if the output would overwrite an input."""
    for path in inputs:
        if path is not None and Path(path).exists() and output.exists() and output.samefile(path):
            raise ValueError(f"The output {str(output)!r} is also an input; give another name.")


def run_comparison(args: argparse.Namespace, problem: Problem) -> Comparison:
    """Run the comparison that the arguments describe, with progress bars on a terminal."""
    with backend(args.dask), plain_warnings(args.command), progress_bar() as bar:

        def progress(text: str, done: int, total: int) -> None:
            if text.startswith("resumed"):
                print(text)
            bar(text, done, total)

        learners = None
        if args.learners is not None:
            learners = [name.strip() for name in args.learners.split(",")]
        n_jobs = args.jobs
        if args.dask is not None:
            n_jobs = -1
        options = Options(
            metric=args.metric,
            learners=learners,
            budget=None if args.budget == "none" else args.budget,
            repeats=args.repeats,
            curves=not args.no_curves,
            n_jobs=n_jobs,
            random_state=args.seed,
            resume=args.resume,
            progress=progress,
            started=args.started,
            processes=args.processes,
        )
        return compare_problem(problem, options)


@contextmanager
def plain_warnings(command: str) -> Iterator[None]:
    """Print warnings as one sentence each while the context lasts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)
        warnings.showwarning = lambda message, *_, **__: print(
            f"mercerless {command}: {message}", file=sys.stderr
        )
        yield


@contextmanager
def backend(address: str | None) -> Iterator[None]:
    """Run joblib's tasks on a Dask cluster while the context lasts; None leaves them here."""
    if address is None:
        yield
        return
    import_optional("distributed", extra="dask", what="--dask")
    from distributed import CancelledError, Client, KilledWorker
    from joblib import parallel_config

    client = None
    with suppress(OSError, TimeoutError, ValueError):
        client = Client(address, timeout=10)
    if client is None:
        # close the failed client here: collected in the starting thread of another, it would stop that
        gc.collect()
        raise ValueError(f"There is no Dask scheduler at {address!r}.")
    try:
        with client, parallel_config("dask"):
            yield
    except (CancelledError, KilledWorker) as error:
        reason = str(error).strip().splitlines()[-1]
        raise ConnectionError(
            f"The Dask cluster at {address!r} gave up: {reason} What is finished is kept: run the "
            "same command with --resume, with or without --dask."
        ) from None
