"""How often `compare` claims a difference that is not there, and what its intervals cover.

Made data, with and without signal and groups; six cheap learners go through the statistics of the library itself. A run
is one data set with ten repeats of five folds, of which one, three or all are used. An interval covers if it holds the
mean over all runs of what it is an interval of (without signal and groups, differences of accuracies are exactly zero).

    python benchmarks/papers/compare_statistics.py [--sizes 60 120 200] [--runs 400] [--tasks classification]
    python benchmarks/papers/compare_statistics.py --rule "of splits"   # scores that are no means over items

Rows called "former" are of the same script with the library before 2 v, see `mercerless.comparison.statistics`. Writes
results/compare_statistics.csv beside itself, in place of the same rows.
"""

import argparse
import csv
from itertools import combinations
from pathlib import Path

import numpy as np

from mercerless.comparison.scoring import N_FOLDS, contributions
from mercerless.comparison.statistics import (
    ScoredSplit,
    compare_scores,
    compare_splits,
    critical_value,
)
from mercerless.core.folds import assign_folds

RESULTS = Path(__file__).parent / "results" / "compare_statistics.csv"
LEARNERS = ("constant", "marginal", "ridge", "shrunken ridge", "one neighbor", "nine neighbors")
METRICS = {"classification": "accuracy", "regression": "r2"}
REPEATS = (1, 3, 10)
N_GROUPS = 12
N_FEATURES = 10
SIGNAL = 0.5
PAIRS = list(combinations(range(len(LEARNERS)), 2))


def make_data(rng, task, n, grouped, signal):
    """Features, targets and groups (None, or N_GROUPS that share part of their features and targets)."""
    groups = np.arange(n) % N_GROUPS if grouped else None
    X = rng.normal(size=(n, N_FEATURES))
    noise = rng.normal(size=n)
    if grouped:
        X = 0.7 * (X + rng.normal(size=(N_GROUPS, N_FEATURES))[groups])
        noise = 0.7 * (noise + rng.normal(size=N_GROUPS)[groups])
    if task == "regression":
        return X, noise + signal * (X[:, 0] + np.sin(2 * X[:, 1])), groups
    y = rng.permutation(np.arange(n) % 2)
    if grouped:
        y = (rng.uniform(size=n) < rng.beta(2, 2, size=N_GROUPS)[groups]).astype(int)
    X[:, :2] += signal * np.outer(2 * y - 1, (1.0, 0.5))
    return X, y, groups


def predict(X, t, distances, train, test):
    """What every learner predicts for the test rows, a column each; t are numbers, or classes as -1 and 1."""
    mean = t[train].mean()
    center = X[train].mean(axis=0)
    A = X[train] - center
    B = X[test] - center
    moments = A.T @ (t[train] - mean)
    squares = A.T @ A
    columns = [np.full(len(test), mean), mean + B @ moments / (len(train) + 20)]
    for penalty in (1.0, 100.0):
        coefficients = np.linalg.solve(squares + penalty * np.eye(len(squares)), moments)
        columns.append(mean + B @ coefficients)
    near = distances[np.ix_(test, train)]
    nearest = np.argpartition(near, 8, axis=1)[:, :9]
    columns.append(t[train][near.argmin(axis=1)])
    columns.append(t[train][nearest].mean(axis=1))
    return np.column_stack(columns)


def score_splits(rng, task, n, grouped, signal):
    """The scored splits of max(REPEATS) repeats on one data set."""
    X, y, groups = make_data(rng, task, n, grouped, signal)
    classify = task == "classification"
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * X @ X.T
    units = groups if grouped else np.arange(n)
    strata = y if classify and not grouped else np.zeros(n)
    t = 2.0 * y - 1 if classify else y
    splits = []
    for repeat in range(max(REPEATS)):
        seed = int(rng.integers(2**31))
        labels = y if classify else None
        folds = assign_folds(N_FOLDS, n, labels=labels, together=groups, random_state=seed)
        for fold in range(N_FOLDS):
            train = np.flatnonzero(folds != fold)
            test = np.flatnonzero(folds == fold)
            predicted = predict(X, t, distances, train, test)
            if classify:
                predicted = (predicted > 0).astype(int)
            scores = [contributions(METRICS[task], y[test], column) for column in predicted.T]
            splits.append(ScoredSplit(repeat, units[test], strata[test], np.column_stack(scores)))
    return splits


def compare_runs(runs, metric, n_repeats, n_units):
    """Differences of every run's first repeats, and the critical value of two learners alone."""
    judged = []
    for splits in runs:
        used = [split for split in splits if split.repeat < n_repeats]
        if metric == "of splits":
            scores = np.array([split.contributions.mean(axis=0) for split in used])
            judged.append(compare_scores(scores, N_FOLDS))
        else:
            judged.append(compare_splits(used, N_FOLDS))
    df = n_repeats * N_FOLDS - 1 if metric == "of splits" else n_units - 1
    return judged, critical_value(2, df)


def summarize(judged, critical_alone, truth):
    """Shares of runs: intervals that miss the truth, and differences to the constant guess that are found."""
    true_differences = truth[:, None] - truth[None, :]
    errors = np.abs([found.difference - true_differences for found in judged]) - 1e-12
    standard_errors = np.array([found.standard_error for found in judged])
    half_widths = np.array([found.critical * found.standard_error for found in judged])
    misses_alone = np.mean(errors > critical_alone * standard_errors, axis=0)
    own_errors = np.abs([found.mean - truth for found in judged]) - 1e-12
    own_half_widths = np.array([found.half_width for found in judged])
    best = int(np.argmax(truth))
    found_alone = [
        found.difference[best, 0] > critical_alone * found.standard_error[best, 0]
        for found in judged
    ]
    return {
        "any_pair_missed": np.mean(np.any(errors > half_widths, axis=(1, 2))),
        "worst_two_missed": misses_alone.max(),
        "mean_two_missed": np.mean([misses_alone[i, j] for i, j in PAIRS]),
        "worst_own_covered": np.mean(own_errors <= own_half_widths, axis=0).min(),
        "mean_own_covered": np.mean(own_errors <= own_half_widths),
        "half_width": np.mean([half_widths[:, i, j] for i, j in PAIRS]),
        "best_found_of_two": np.mean(found_alone),
        "best_found_of_all": np.mean([found.better(best, 0) for found in judged]),
    }


def measure(task, n, grouped, signal, n_runs, rule):
    """Rows of one kind of data, one per number of repeats."""
    rng = np.random.default_rng([n, grouped, int(10 * signal), task == "regression"])
    runs = [score_splits(rng, task, n, grouped, signal) for _ in range(n_runs)]
    means = [np.mean([split.contributions.mean(axis=0) for split in run], axis=0) for run in runs]
    truth = np.mean(means, axis=0)
    if task == "classification" and not grouped and not signal:
        truth = np.full(len(LEARNERS), 0.5)
    n_units = N_GROUPS if grouped else n
    for n_repeats in REPEATS:
        judged, critical_alone = compare_runs(runs, rule, n_repeats, n_units)
        row = {
            "rule": rule,
            "task": task,
            "n": n,
            "groups": N_GROUPS if grouped else 0,
            "signal": signal,
            "repeats": n_repeats,
            "runs": n_runs,
        }
        numbers = summarize(judged, critical_alone, truth)
        yield row | {name: f"{value:.4f}" for name, value in numbers.items()}


def main():
    """Measure, and write the rows after every kind of data in place of the same ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 120, 200])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--tasks", nargs="+", choices=METRICS, default=list(METRICS))
    parser.add_argument(
        "--rule",
        default="of items",
        help="what the rows are called; 'of splits' measures what is used for ranks or F1",
    )
    options = parser.parse_args()
    for task in options.tasks:
        for n in options.sizes:
            for grouped in (False, True):
                for signal in (0.0, SIGNAL):
                    rows = list(measure(task, n, grouped, signal, options.runs, options.rule))
                    write(rows)
                    print(
                        *("  ".join(map(str, row.values())) for row in rows), sep="\n", flush=True
                    )


def write(rows):
    """Put rows in place of those of the same data, in order."""
    known = {}
    if RESULTS.exists():
        with RESULTS.open(newline="", encoding="utf-8") as file:
            known = {key(row): row for row in csv.DictReader(file)}
    known |= {key(row): row for row in rows}
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[name] for name in sorted(known))


def key(row):
    """What a row is of."""
    numbers = [int(row["n"]), int(row["groups"]), float(row["signal"]), int(row["repeats"])]
    return (row["rule"], row["task"], *numbers)


if __name__ == "__main__":
    main()
