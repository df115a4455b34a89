"""Do people who set no number of threads wait longer? Fits with BLAS's own number against one thread.

    python benchmarks/speed/threads.py [--learners TableRegressor]

Every fit runs in processes of its own, in turn, twice each; the ratio is of the shorter seconds by the clock, on a
machine with nothing else to do. Writes results/threads.csv beside this file.
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

SIZES = {
    "SimilarityClassifier": (300, 1000),
    "TableRegressor": (500, 3000),
    "TableClassifier": (500,),
    "KreinRidge": (300, 1000),
    "HyperRegressor": (150,),
    "DANKClassifier": (300,),
}


def measure(name, n):
    """Print the seconds of one fit."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(n, 5))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.normal(size=n)
    y = y if name in ("TableRegressor", "KreinRidge", "HyperRegressor") else y > np.median(y)
    model = getattr(mercerless, name)()
    model.set_params(**{key: 0 for key in ("random_state",) if key in model.get_params()})
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    model.fit(X, y)
    print(time.perf_counter() - start)


def seconds(name, n, **variables):
    """The shorter of two fits, in processes with these variables of the environment."""
    ours = {
        key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")
    } | variables
    command = [sys.executable, __file__, "--measure", name, str(n)]
    return min(
        float(subprocess.run(command, env=ours, capture_output=True, check=True).stdout)
        for _ in range(2)
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learners", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        return measure(args.measure[0], int(args.measure[1]))
    rows = []
    for name in args.learners:
        for n in SIZES[name]:
            one, own = seconds(name, n, OMP_NUM_THREADS="1"), seconds(name, n)
            rows.append((name, n, f"{one:.3g}", f"{own:.3g}", f"{own / one:.3g}"))
            print(*rows[-1], flush=True)
    with open(Path(__file__).parent / "results" / "threads.csv", "w", newline="") as file:
        columns = (
            "learner",
            "n",
            "seconds with one thread",
            "seconds with its own number",
            "ratio",
        )
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


if __name__ == "__main__":
    main()
