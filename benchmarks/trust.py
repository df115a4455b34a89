"""Runs of the suite, and what they counted: the rows of the page "What is promised".

    python -m benchmarks.trust [test | test-all | test-oldest | test-portable | build | mutations] ...

Runs ``make`` with these targets (all of them when none is named; ``mutations`` is ``python tests/mutations.py``), shows
what they print, and writes one row for each summary of pytest or of the planted bugs into ``suite/results/runs.csv``,
in place of the row of the same run. ``python -m benchmarks.trust --from FILE TARGET`` reads what a run has printed.
"""

import csv
import re
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "suite" / "results" / "runs.csv"
COMMANDS = {
    name: ["make", name] for name in ("test", "test-all", "test-oldest", "test-portable", "build")
}
COMMANDS["mutations"] = [sys.executable, "tests/mutations.py"]
COLUMNS = ["run", "version", "passed", "failed", "skipped", "expected failures", "seconds"]


def printed(command):
    """What a command prints, shown while it runs."""
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
    run = target
    for line in lines:
        if begun := re.match(r"== (\S+) \((.+)\)", line):  # of tests/portable.py
            run = (
                f"{target} {begun[1]} ({begun[2]})"
                if begun[1] != begun[2]
                else f"{target} {begun[1]}"
            )
        numbers = {
            word: int(number)
            for number, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|error)", line)
        }
        if caught := re.match(r"(\d+) of (\d+) bugs caught", line):
            numbers = {"passed": int(caught[1]), "failed": int(caught[2]) - int(caught[1])}
        elif not (numbers and re.search(r" in [\d.]+s", line)):
            continue
        failed = numbers.get("failed", 0) + numbers.get("error", 0)
        seconds = re.search(r" in ([\d.]+)s", line)
        yield {
            "run": run, "version": version, "passed": numbers.get("passed", 0), "failed": failed,
            "skipped": numbers.get("skipped", 0), "expected failures": numbers.get("xfailed", 0),
            "seconds": round(float(seconds[1])) if seconds else "",
        }  # fmt: skip


def merge(rows):
    """Put rows into the file, in place of those of the same runs."""
    old = list(csv.DictReader(RESULTS.read_text().splitlines())) if RESULTS.exists() else []
    new = {row["run"] for row in rows}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        order = list(COMMANDS)
        rows = [row for row in old if row["run"] not in new] + rows
        writer.writerows(sorted(rows, key=lambda row: order.index(row["run"].split()[0])))


def main(words):
    """Run or read; returns the exit code."""
    version = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    source, words = (words[1], words[2:]) if words[:1] == ["--from"] else (None, words)
    if set(words) - set(COMMANDS) or (source and len(words) != 1):
        print(__doc__, file=sys.stderr)
        return 2
    for target in words or COMMANDS:
        lines = Path(source).read_text().splitlines() if source else printed(COMMANDS[target])
        rows = list(count(target, lines, version))
        if not rows:
            print(f"{target} printed no summary", file=sys.stderr)
            return 1
        merge(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
