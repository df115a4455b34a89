"""What a second core brings: fits and a comparison on one core and on two.

    python benchmarks/speed/cores.py [--work "similarity, 1000 items" ...] [--small]

Every piece of work runs in a process of its own that may use one core, with n_jobs=1 and one BLAS thread, and then two
with n_jobs=2 and two threads. Seconds by the clock, so that the machine must be idle; about eight minutes. ``--small``
tries all of it on a tenth of the rows, in a minute. Dask's workers are in ``benchmarks/speed/scale.py dask``. Writes
results/cores.csv beside this file; rows of other work are kept.
"""

import argparse
import csv
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import mercerless

PATH = Path(__file__).parent / "results" / "cores.csv"
#: Learner and rows of every piece of work.
WORK = {
    "similarity, 1000 items": ("similarity", 1000),
    "similarity, 3000 items": ("similarity", 3000),
    "table, 5000 rows": ("table", 5000),
    "table, 50000 rows": ("table", 50_000),
    "compare, 500 rows, one repeat": ("compare", 500),
}


def measure(learner, n, n_cores):
    """Print the seconds of one piece of work in this process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_cores])
    warnings.simplefilter("ignore")
    random = np.random.default_rng(0)
    X = random.uniform(size=(n, 8))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=n) > 0.5
    start = time.perf_counter()
    if learner == "similarity":
        mercerless.SimilarityClassifier(n_jobs=n_cores, random_state=0).fit(X, y)
    elif learner == "table":
        mercerless.TableClassifier(random_state=0).fit(X, y)
    else:
        learners = ["neighbors", "linear", "boosting", "table"]
        mercerless.compare(
            X, y, learners=learners, budget=None, repeats=1, curves=False, n_jobs=n_cores
        )
    print(time.perf_counter() - start)


def seconds(learner, n, n_cores):
    """Seconds in a process of its own."""
    command = [sys.executable, __file__, "--measure", learner, str(n), str(n_cores)]
    environment = os.environ | {
        name: str(n_cores) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return float(done.stdout.split()[-1])


def main():
    """Run the work on one core and on two, and put the rows into the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        learner, n, n_cores = arguments.measure
        return measure(learner, int(n), int(n_cores))
    rows = {}
    if PATH.exists():
        with PATH.open(newline="") as file:
            rows = {row["work"]: row for row in csv.DictReader(file)}
    for name in arguments.work:
        learner, n = WORK[name]
        if arguments.small:
            n = n // 10
        one = seconds(learner, n, 1)
        two = seconds(learner, n, 2)
        rows[name] = {
            "work": name,
            "one core": f"{one:.3g}",
            "two cores": f"{two:.3g}",
            "speed-up": f"{one / two:.2f}",
        }
        print(*rows[name].values(), sep="  ", flush=True)
        if arguments.small:
            continue
        table = [rows[each] for each in WORK if each in rows]
        with PATH.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
