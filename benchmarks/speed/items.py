"""How often a function of two items is called, and what workers bring.

    python benchmarks/speed/items.py [--time | --overhead]

Counts the calls of a fit, of 5-fold cross-validation and of a grid of four candidates and five folds on 200 words, in
units of one matrix (a value per pair, 20,100), with and without the store of known values: results/items.csv. With
``--time``, one matrix with one and with two workers instead, for a function that waits two milliseconds and for one
that takes a microsecond (the best of five): results/items_workers.csv. With ``--overhead``, processor seconds of one
matrix of fresh words as ratios: strings against rapidfuzz's cdist, functions against a plain loop over half of the
pairs (the median of five): results/items_overhead.csv.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercerless import KreinSVC
from mercerless.kernels import PairFunction, Strings

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


def cpu_seconds(work):
    """Processor seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def fresh_words(n, rng):
    """Words that were not seen before."""
    letters = list("abcdefghij")
    return ["".join(rng.choice(letters, rng.integers(5, 25))) for _ in range(n)]


def half_loop(function, X):
    """The matrix as one writes it by hand."""
    K = np.empty((len(X), len(X)))
    for i, x in enumerate(X):
        for j in range(i, len(X)):
            K[i, j] = K[j, i] = function(x, X[j])
    return K


def slow(a, b):
    """The share of common letters after a third of a millisecond of work."""
    total = 0.0
    for k in range(9000):
        total += k
    return common(a, b) + 0.0 * total


def overhead():
    """Rows of the third table."""
    rng = np.random.default_rng(0)
    scorer = Levenshtein.normalized_similarity
    for n in (300, 1000, 2000):
        ratios = []
        for _ in range(5):
            X = fresh_words(n, rng)
            copied = list(X)  # with which rapidfuzz is faster than with the same list twice
            same = cpu_seconds(lambda X=X: cdist(X, X, scorer=scorer, dtype=np.float64))
            two = cpu_seconds(
                lambda X=X, copied=copied: cdist(X, copied, scorer=scorer, dtype=np.float64)
            )
            ours = cpu_seconds(lambda X=X: Strings()(X))
            ratios.append([ours / same, ours / two])
        of_same, of_two = np.median(ratios, axis=0)
        yield [f"{n} fresh words", "Strings / cdist of one list", f"{of_same:.2f}", "ratio"]
        yield [f"{n} fresh words", "Strings / cdist of two lists", f"{of_two:.2f}", "ratio"]
    for name, function, n in (("1 us", common, 600), ("0.3 ms", slow, 120)):
        ratios = []
        for _ in range(5):
            X = fresh_words(n, rng)
            peer = cpu_seconds(lambda X=X, function=function: half_loop(function, X))
            kernel = PairFunction(function)
            ratios.append(cpu_seconds(lambda X=X, kernel=kernel: kernel(X)) / peer)
        yield [f"{name}, {n} words", "PairFunction / loop", f"{np.median(ratios):.2f}", "ratio"]


def main():
    """Write one of the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--overhead", action="store_true")
    arguments = parser.parse_args()
    name = "items.csv"
    table = count
    if arguments.time:
        name = "items_workers.csv"
        table = measure
    elif arguments.overhead:
        name = "items_overhead.csv"
        table = overhead
    rows = list(table())
    with (RESULTS / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "setting", "value", "unit"])
        writer.writerows(rows)
    for row in rows:
        print(*row)


if __name__ == "__main__":
    main()
