"""How often a function of two items is called, and what workers bring.

    python benchmarks/speed/items.py [--time]

Counts the calls of a fit, of 5-fold cross-validation and of a grid of four candidates and five folds on 200 words, in
units of one matrix (a value per pair, 20,100), with and without the store of known values: results/items.csv. With
``--time``, one matrix with one and with two workers instead, for a function that waits two milliseconds and for one
that takes a microsecond (the best of five): results/items_workers.csv.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercerless import KreinSVC
from mercerless.kernels import PairFunction

RESULTS = Path(__file__).parent / "results"


def words(n):
    """Words over two alphabets that share letters, and which alphabet it was."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return ["".join(rng.choice(list(("abcdxyz", "efghxyz")[c]), rng.integers(5, 12))) for c in y], y


def common(a, b):
    """The share of letters that two words have in common."""
    return len(set(a) & set(b)) / len(set(a) | set(b))


def waiting(a, b):
    """The same after two milliseconds."""
    time.sleep(0.002)
    return common(a, b)


def calls(cache, work):
    """Calls in units of one matrix."""
    X, y = words(200)
    count = 0

    def counted(a, b):
        nonlocal count
        count += 1
        return common(a, b)

    work(KreinSVC(PairFunction(counted, cache=cache)), X, y)
    return count / (200 * 201 / 2)


def seconds(function, n, n_jobs):
    """The time of one matrix; the workers are started anew for every row of the table."""
    X, _ = words(n)
    start = time.perf_counter()
    PairFunction(function, symmetric=True, n_jobs=n_jobs, cache=False)(X)
    return time.perf_counter() - start


def count():
    """Rows of the first table."""
    works = {
        "fit": lambda model, X, y: model.fit(X, y),
        "5 folds": lambda model, X, y: cross_val_score(model, X, y, cv=5),
        "4 x 5 grid": lambda model, X, y: GridSearchCV(
            model, {"C": [0.1, 1.0, 10.0, 100.0]}, cv=5
        ).fit(X, y),
    }
    for name, work in works.items():
        for cache in (False, True):
            yield [name, f"cache={cache}", f"{calls(cache, work):.2f}", "matrices"]


def measure():
    """Rows of the second table."""
    for name, function, n, repeats in (
        ("2 ms, 200 words", waiting, 200, 1),
        ("1 us, 600 words", common, 600, 5),
    ):
        taken = np.min(
            [[seconds(function, n, n_jobs) for n_jobs in (1, 2)] for _ in range(repeats)], axis=0
        )
        for n_jobs, value in enumerate(taken, 1):
            yield [name, f"n_jobs={n_jobs}", f"{value:.2f}", "s"]
        yield [name, "n_jobs=2 against 1", f"{taken[1] / taken[0]:.2f}", "ratio"]


def main():
    """Write one of the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--time", action="store_true")
    timed = parser.parse_args().time
    rows = list(measure() if timed else count())
    with (RESULTS / ("items_workers.csv" if timed else "items.csv")).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "setting", "value", "unit"])
        writer.writerows(rows)
    for row in rows:
        print(*row)


if __name__ == "__main__":
    main()
