"""Runs of the suite, and what they counted: the rows of the page "What is guaranteed".

    python -m benchmarks.trust [test | test-all | test-oldest | test-portable | coverage | build | mutations] ...

Runs ``make`` with these targets (all of them if none is named; ``mutations`` is ``python tests/mutations.py``), shows
what they print, and writes one row for each summary of pytest or of the planted bugs into ``suite/results/runs.csv`` in
place of the row of the same run. ``python -m benchmarks.trust --from FILE TARGET`` reads what a run has printed.
"""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd

from benchmarks.machine import git

RESULTS = Path(__file__).parent / "suite" / "results" / "runs.csv"
TARGETS = ("test", "test-all", "test-oldest", "test-portable", "coverage", "build", "mutations")
COLUMNS = ["run", "version", "passed", "failed", "skipped", "expected failures", "seconds"]
COLUMNS += ["covered percent"]


def printed(target):
    """What a run prints, shown while it runs."""
    command = [sys.executable, "tests/mutations.py"] if target == "mutations" else ["make", target]
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return lines


def count(target, lines, version):
    """One row for every summary among the lines."""
    row = {"run": target, "version": version}
    for line in lines:
        if kernel := re.match(r"== (\S+) \((.+)\)", line):  # of tests/portable.py
            asked, used = kernel.groups()
            row["run"] = f"{target} {asked}" if asked == used else f"{target} {asked} ({used})"
        elif total := re.match(r"TOTAL\s.*\s(\d+)%", line):  # before the summary of pytest
            row["covered percent"] = int(total[1])
        elif bugs := re.match(r"(\d+) of (\d+) bugs caught", line):
            caught, planted = map(int, bugs.groups())
            counts = {"passed": caught, "failed": planted - caught}
            yield row | counts | {"skipped": 0, "expected failures": 0}
        elif summary := re.search(r"\d+ (?:passed|failed).* in ([\d.]+)s", line):
            pairs = re.findall(r"(\d+) (passed|failed|skipped|xfailed|error)", line)
            numbers = {word: int(number) for number, word in pairs}
            yield row | {
                "passed": numbers.get("passed", 0),
                "failed": numbers.get("failed", 0) + numbers.get("error", 0),
                "skipped": numbers.get("skipped", 0),
                "expected failures": numbers.get("xfailed", 0),
                "seconds": round(float(summary[1])),
            }


def merge(rows):
    """Put rows into the file, in place of those of the same runs."""
    new = pd.DataFrame(rows, columns=COLUMNS, dtype=object)
    if RESULTS.exists():
        old = pd.read_csv(RESULTS, dtype=object)
        new = pd.concat([old[~old.run.isin(new.run)], new])
    order = new.run.map(lambda run: TARGETS.index(run.split()[0]))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    new.iloc[order.argsort(kind="stable")].to_csv(RESULTS, index=False)


def main(words):
    """Run or read; returns the exit code."""
    source = None
    if words[:1] == ["--from"]:
        source, words = words[1], words[2:]
    if set(words) - set(TARGETS) or (source and len(words) != 1):
        print(__doc__, file=sys.stderr)
        return 2
    version = git("rev-parse", "--short", "HEAD").stdout.strip()
    for target in words or TARGETS:
        lines = Path(source).read_text().splitlines() if source else printed(target)
        rows = list(count(target, lines, version))
        if not rows:
            print(f"{target} printed no summary", file=sys.stderr)
            return 1
        merge(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
