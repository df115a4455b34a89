"""Are budgets kept, and what is in the report? Five sizes, three budgets, idle and beside twelve busy processes.

    python benchmarks/speed/budget.py [--data NAME ...] [--budgets 10 60 120] [--load 0 12] [--minutes 15] [--again]

The large one also with ``--data "table 500000 x 50" --budgets 600``. Each comparison runs in a process of its own with
two jobs, from the call to the written page. ``load`` is how many processes, which the benchmark starts, do nothing but
count beside it; `rows` says how many items each learner was trained on, `defaults` how many learners had their default
settings, `decided` whether the verdict is a decision, `memory` the most that the process and one of its workers held,
in GB. `import_cpu` and `page_cpu` are processor seconds of the imports, which are not part of the budget, and of the
page, which is; `page_seconds` are those of a clock. `kept` is whether the whole took at most the budget and 20 % or
10 s more.

Rows are merged into ``results/budget.csv`` as they are measured, short budgets first; those that are there are not
measured again unless asked to. With ``--minutes`` nothing is begun that would end later; the next call goes on.
"""

import argparse
import csv
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "budget.csv"
KEYS = ("data", "budget", "load")
#: Rows, columns; 0 columns for a matrix of distances.
DATA = {
    "table 500 x 50": (500, 50),
    "table 1000 x 10": (1000, 10),
    "table 20000 x 50": (20_000, 50),
    "table 500000 x 50": (500_000, 50),
    "matrix 400": (400, 0),
    "matrix 2000": (2000, 0),
}
#: What is measured unless asked otherwise.
USUAL = [name for name in DATA if name != "table 500000 x 50"]


def make(name):
    """A table, or a matrix of distances that is not Euclidean, with two classes and noise in them."""
    n, width = DATA[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width or 8))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return (X if width else np.abs(X[:, None] - X[None]).sum(axis=2)), y


def measure(name, budget):
    """Compare, write the page, and print what happened as JSON."""
    begun = time.process_time()
    from mercerless import compare

    import_cpu = time.process_time() - begun
    X, y = make(name)
    kind = "table" if DATA[name][1] else "distance"
    columns = ("learners", "on parts", "splits", "best", "score", "decided", "defaults")
    columns += ("boosting", "rows", "outcome", "import_cpu", "page_cpu", "page_seconds")
    row = dict.fromkeys(columns, "")
    row["import_cpu"] = round(import_cpu, 2)
    start = time.perf_counter()
    try:
        found = compare(X, y, kind=kind, budget=budget, n_jobs=2)
    except ValueError as error:
        row["outcome"] = str(error)
    else:
        begun = time.process_time()
        compared = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found.report(Path(folder) / "report.html")
        row["page_cpu"] = round(time.process_time() - begun, 2)
        row["page_seconds"] = round(time.perf_counter() - compared, 1)
        row |= describe(found)
    seconds = time.perf_counter() - start
    row |= {"seconds": round(seconds, 1), "kept": bool(seconds <= budget + max(0.2 * budget, 10.0))}
    usage = [
        resource.getrusage(who).ru_maxrss / 2**20
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    row["memory"] = round(sum(usage), 2)
    print(json.dumps(row))


def describe(found):
    """What was scored, and how."""
    table = [row for row in found.table if row["learner"] != "vote"]
    boosting = [row for row in table if row["learner"] == "boosting"]
    return {
        "learners": f"{len(table)} of {len(found.learners)}",
        "on parts": sum(row["part"] < 1.0 for row in table),
        "splits": len(found.splits),
        "best": table[0]["learner"],
        "score": round(table[0]["score"], 4),
        "decided": found.is_decided,
        "defaults": sum(row["form"] == "defaults" for row in table),
        "boosting": boosting[0]["n_train"] if boosting else "",
        "rows": " ".join(f"{row['learner']}:{row['n_train']}" for row in table),
        "outcome": "a report",
    }


def watched(name, budget, load):
    """Run one measurement in a process of its own, with busy ones beside it."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    command = [sys.executable, __file__, "--measure", name, "--budgets", str(budget)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=10 * budget + 300
        )
        return json.loads(done.stdout.splitlines()[-1])
    finally:
        for process in busy:
            process.kill()


def known():
    """Return the rows of the file."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def keys_of(row):
    """What tells rows apart."""
    return row["data"], float(row["budget"]), int(row["load"])


def merge(row):
    """Put a row into the file, in place of one with the same keys."""
    rows = [old for old in known() if keys_of(old) != keys_of(row)] + [row]
    rows.sort(key=lambda row: (list(DATA).index(row["data"]), *keys_of(row)[1:]))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=USUAL)
    parser.add_argument("--budgets", nargs="+", type=float, default=[10.0, 60.0, 120.0])
    parser.add_argument("--load", nargs="+", type=int, default=[0, 12])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="that all may take")
    parser.add_argument("--again", action="store_true", help="also rows that are there")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.budgets[0])
        return
    start = time.perf_counter()
    there = set() if args.again else {keys_of(row) for row in known()}
    cases = itertools.product(sorted(args.budgets), args.load, args.data)
    for budget, load, name in cases:
        row = {"data": name, "budget": budget, "load": load}
        expected_end = time.perf_counter() - start + 1.1 * budget + 5.0
        if keys_of(row) in there or expected_end > 60.0 * args.minutes:
            continue
        # of the machine before, by whatever else runs on it
        row["load average before"] = round(os.getloadavg()[0], 1)
        row |= watched(name, budget, load)
        print(row, flush=True)
        merge(row)


if __name__ == "__main__":
    main()
