"""Plant bugs one at a time in a copy of the source, and see whether the tests named beside each notice.

Run as ``python tests/mutations.py [--only NAME ...] [--jobs 2] [--list]``; the tree itself is never touched. A bug is a
piece of text that occurs once in src or benchmarks/papers, wherever its module lives; one that is not found, or found
twice, is an error: adapt it to the new source.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ |= {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}

# What every test needs is imported once; each bug gets a fork of this process, so this runs where there is fork().
import pytest
import scipy.optimize
import scipy.sparse.linalg
import scipy.stats  # noqa: F401
import sklearn.ensemble
import sklearn.model_selection
import sklearn.svm
import sklearn.utils.estimator_checks  # noqa: F401
from bugs import Bug, all_bugs

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "benchmarks/papers")  # where bugs are planted


def pattern(text: str) -> re.Pattern:
    """The text with any white space between its words, and commas before closing brackets, as a formatter may set."""
    words = re.findall(r"\w+|[^\w\s]", text)
    parts = [r",?\s*" + re.escape(word) if word in ")]}" else re.escape(word) for word in words]
    return re.compile(r"\s*".join(parts))


def find(old: str, root: Path) -> tuple[Path, str, re.Match]:
    """The one module that holds the text, its content, and the place."""
    found = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found += [(path, text, place) for place in pattern(old).finditer(text)]
    if len(found) != 1:
        raise SystemExit(
            f"{len(found)} places instead of one hold {old!r}; adapt it in tests/bugs/."
        )
    return found[0]


def run(root: str, tests: str, output: str) -> None:
    """Run the tests on the source below this folder in a process of its own; its exit status is pytest's."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    source = str(Path(root) / "src")
    sys.path.insert(0, source)
    os.environ["MERCERLESS_PAPERS"] = str(Path(root) / "benchmarks" / "papers")
    file, _, words = tests.partition(" -k ")
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        "--rootdir",
        str(ROOT),
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    status = pytest.main(
        [*options, *(["-k", words.strip("'")] if words else []), str(ROOT / "tests" / file)]
    )
    import mercerless

    used = Path(mercerless.__file__).is_relative_to(source)  # an installed copy would hide the bug
    sys.stdout.flush()
    os._exit(int(status) if used else 99)


def passes(root: Path, tests: str) -> bool:
    """Whether the tests pass with the source below this folder; anything but passing and failing tests is an error."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output.txt"
        process = multiprocessing.get_context("fork").Process(
            target=run, args=(str(root), tests, str(output))
        )
        process.start()
        process.join()
        if process.exitcode not in (0, 1):
            told = output.read_text(encoding="utf-8")
            raise SystemExit(f"pytest ended with {process.exitcode} for {tests!r}\n{told[-3000:]}")
    return process.exitcode == 0


def plant(bug: Bug) -> bool:
    """Whether the bug is caught."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__", "results")
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        path, text, place = find(bug.old, root)
        path.write_text(text[: place.start()] + bug.new + text[place.end() :], encoding="utf-8")
        caught = not passes(root, bug.tests)
        where, took = path.relative_to(root), time.perf_counter() - started
    print(
        f"{'caught  ' if caught else 'SURVIVED'} {bug.name:28} {where} ({took:.0f} s)", flush=True
    )
    return caught


def main() -> int:
    """Plant all bugs, or those named; the exit status is 1 when one survives."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names, or beginnings of names")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--list", action="store_true", help="only look whether every bug has its place"
    )
    options = parser.parse_args()
    bugs = [
        bug for bug in all_bugs() if not options.only or bug.name.startswith(tuple(options.only))
    ]
    for bug in bugs:
        path, _, _ = find(bug.old, ROOT)
        if options.list:
            print(f"{bug.name:28} {path.relative_to(ROOT)}")
    if options.list:
        return 0
    with ThreadPoolExecutor(options.jobs) as pool:
        tests = sorted({bug.tests for bug in bugs})
        failing = [
            name
            for name, good in zip(tests, pool.map(lambda name: passes(ROOT, name), tests))
            if not good
        ]
        if failing:
            raise SystemExit(
                f"These tests fail without any bug, so they would show nothing: {', '.join(failing)}"
            )
        caught = list(pool.map(plant, bugs))
    print(f"{sum(caught)} of {len(bugs)} bugs caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
