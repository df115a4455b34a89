"""Are budgets kept, and what is in the report? Five sizes, three budgets, idle and beside twelve busy processes.

    python benchmarks/speed/budget.py [--data NAME ...] [--budgets 10 60 120] [--load 0 12]

The large one also with ``--data "table 500000 x 50" --budgets 600``. Each comparison runs in a process of its own with
two jobs, from the call to the written page. ``load`` is how many processes, which the benchmark starts, do nothing but
count beside it; `rows` says how many items each learner was trained on, `defaults` how many learners had their default
settings, `decided` whether the verdict is a decision, `memory` the most that the process and one of its workers held,
in GB. Rows are merged into ``results/budget.csv`` as they are measured; `kept` is whether the whole took at most the
budget and 20 % or 10 s more.
"""

import argparse
import csv
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
    "table 20000 x 50": (20_000, 50),
    "table 500000 x 50": (500_000, 50),
    "matrix 400": (400, 0),
    "matrix 2000": (2000, 0),
}


def make(name):
    """A table, or a matrix of distances that is not Euclidean, with two classes and noise in them."""
    n, width = DATA[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width or 8))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return (X if width else np.abs(X[:, None] - X[None]).sum(axis=2)), y


def measure(name, budget):
    """Compare, write the page, and print what happened as JSON."""
    from mercerless import compare

    X, y = make(name)
    start = time.perf_counter()
    columns = ("learners", "on parts", "splits", "best", "score", "decided", "defaults")
    columns += ("rows", "outcome")
    row = dict.fromkeys(columns, "")
    try:
        found = compare(
            X, y, kind="table" if DATA[name][1] else "distance", budget=budget, n_jobs=2
        )
    except ValueError as error:
        row["outcome"] = str(error)
    else:
        with tempfile.TemporaryDirectory() as folder:
            found.report(Path(folder) / "report.html")
        table = [row for row in found.table if row["learner"] != "vote"]
        row["learners"] = f"{len(table)} of {len(found.learners)}"
        row["on parts"] = sum(row["part"] < 1.0 for row in table)
        row |= {
            "splits": len(found.splits),
            "best": table[0]["learner"],
            "score": round(table[0]["score"], 4),
        }
        row["decided"] = "Not decided" not in found.verdict[0]
        row["defaults"] = sum(row["form"] == "defaults" for row in table)
        row["rows"] = " ".join(f"{row['learner']}:{row['n_train']}" for row in table)
        row["outcome"] = "a report"
    seconds = time.perf_counter() - start
    row |= {"seconds": round(seconds, 1), "kept": bool(seconds <= budget + max(0.2 * budget, 10.0))}
    usage = [
        resource.getrusage(who).ru_maxrss / 2**20
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    row["memory"] = round(sum(usage), 2)
    print(json.dumps(row))


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


def merge(row):
    """Put a row into the file, in place of one with the same keys."""
    rows = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    rows = [old for old in rows if any(old[key] != str(row[key]) for key in KEYS)] + [row]
    rows.sort(
        key=lambda row: (list(DATA).index(row["data"]), float(row["budget"]), int(row["load"]))
    )
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--budgets", nargs="+", type=float, default=[10.0, 60.0, 120.0])
    parser.add_argument("--load", nargs="+", type=int, default=[0, 12])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.budgets[0])
        return
    for name in args.data:
        for budget in args.budgets:
            for load in args.load:
                # of the machine before, by whatever else runs on it
                others = max(0.0, round(os.getloadavg()[0], 1))
                row = {"data": name, "budget": budget, "load": load, "load average before": others}
                row |= watched(name, budget, load)
                print(row, flush=True)
                merge(row)


if __name__ == "__main__":
    main()
