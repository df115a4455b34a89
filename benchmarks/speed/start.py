"""A newcomer with a clock: a fresh environment, the commands and the code of the page "Start", and nothing else.

    python benchmarks/speed/start.py

Makes a virtual environment, installs this checkout with the extras that the page names (what pip has not stored it
downloads), runs the page's command on a table of one's own (scikit-learn's iris as ``animals.csv``, with the species in
words) and the page's example of strings. Writes results/start.csv: seconds of every step by the clock, and the lines
that the strings took, without the two that hold the list and the labels.
"""

import argparse
import csv
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sklearn.datasets import load_iris

ROOT = next(
    folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists()
)
PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")


def own_table(path):
    """A table as people have it: names of columns, and words for classes."""
    iris = load_iris()
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*iris.feature_names, "species"])
        writer.writerows(
            [*row, iris.target_names[label]] for row, label in zip(iris.data, iris.target)
        )


def command():
    """The page's command for a table."""
    return shlex.split(
        re.search(r"^\$ (mercerless compare animals\.csv .*?)\s+#", PAGE, re.MULTILINE)[1]
    )


def strings():
    """The page's example of strings as a program that prints what it predicts."""
    block = next(
        text
        for text in re.findall(r"```pycon\n(.*?)```", PAGE, re.DOTALL)
        if '"levenshtein"' in text
    )
    lines = [line[4:] for line in block.splitlines() if line.startswith((">>>", "..."))]
    return [*lines[:-1], f"print({lines[-1]})"]


def code():
    """Its lines without those that hold the list and the labels."""
    return [line for line in strings() if not re.match(r"\w+ = \[", line)]


def timed(words, folder):
    """Seconds of a command that must succeed."""
    start = time.perf_counter()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    subprocess.run(words, cwd=folder, env=environment, check=True)
    return time.perf_counter() - start


def steps(folder):
    """What was done, seconds and lines of code."""
    own_table(folder / "animals.csv")
    (folder / "words.py").write_text("\n".join(strings()) + "\n")
    name, *options = command()
    scripts = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    yield "environment", timed([sys.executable, "-m", "venv", "venv"], folder), ""
    yield (
        "install",
        timed([scripts / "pip", "install", "--quiet", f"{ROOT}[cli,strings]"], folder),
        "",
    )
    yield "report on a table", timed([scripts / name, *options], folder), ""
    yield "strings to predictions", timed([scripts / "python", "words.py"], folder), len(code())


def main():
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for step, seconds, lines in steps(Path(folder)):
            rows.append((step, f"{seconds:.1f}", lines))
            print(*rows[-1], flush=True)
    path = Path(__file__).parent / "results" / "start.csv"
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("step", "seconds", "lines"), *rows])


if __name__ == "__main__":
    main()
