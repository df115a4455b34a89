"""Intervals of the automatic regressor whose width follows the item, beside those of one width for all.

Data sets of the papers with the Laplacian kernel of standardized features, at most 400 training and 1500 test rows,
several splits. 90 % intervals: coverage, the largest deviation of the coverage in a fifth of the predictions, and the
mean Winkler score (width plus 20 times the amount by which a target is missed) in standard deviations. Few test rows in
a fifth deviate by chance: rows "perfect" have the deviation that is expected of intervals whose probability to cover
does not depend on the item, with as many training and test rows and splits (mean of 400 simulations). ::

    MERCERLESS_DATA=... python benchmarks/papers/similarity_intervals.py --splits 5

Writes results/similarity_intervals.csv beside this file.
"""

import argparse
import csv
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from mercerless import SimilarityRegressor

RESULT = Path(__file__).parent / "results" / "similarity_intervals.csv"
SETS = (
    "airfoil", "cps_85_wages", "cpusmall", "fried", "house8l", "housing",
    "kin8nm", "mg", "mpg", "pm10", "space_ga", "yacht",
)  # fmt: skip


def radius_of_all(held_out, coverage):
    """The conformal quantile of the absolute errors of all items."""
    errors = np.sort(np.abs(held_out.prediction - held_out.target).ravel())
    return errors[int(np.ceil((len(errors) + 1) * coverage)) - 1]


def winkler(y, prediction, radius, coverage=0.9):
    """Width, plus what targets outside of it are away, times 2 / (1 - coverage)."""
    missed = np.maximum(np.abs(y - prediction) - radius, 0.0)
    return float(np.mean(2.0 * radius + 2.0 / (1.0 - coverage) * missed))


def figures(y, prediction, radius, order_by=None):
    """Coverage, coverage in every fifth of the predictions (or of other numbers), Winkler score."""
    inside = np.abs(y - prediction) <= radius
    if order_by is None:
        order_by = prediction
    fifths = np.array_split(np.argsort(order_by, kind="stable"), 5)
    by_fifth = np.array([inside[rows].mean() for rows in fifths])
    return inside.mean(), by_fifth, winkler(y, prediction, radius)


def split(n, random, n_train=400, n_test=1500):
    """Training and test rows."""
    order = random.permutation(n)
    n_train = min(n_train, 2 * n // 3)
    return order[:n_train], order[n_train : n_train + n_test]


def deviation_by_chance(n, n_splits, n_simulations=400):
    """Expected largest deviation in a fifth if errors are independent of the predictions, and alike for all rows."""
    random = np.random.RandomState(0)
    deviations = []
    for _ in range(n_simulations):
        errors = random.uniform(size=n)
        predictions = random.uniform(size=n)
        by_fifth = []
        for _ in range(n_splits):
            train, test = split(n, random)
            rank = int(np.ceil((len(train) + 1) * 0.9)) - 1
            radius = np.sort(errors[train])[rank]
            by_fifth.append(
                figures(errors[test], np.zeros(len(test)), radius, predictions[test])[1]
            )
        deviations.append(np.abs(np.mean(by_fifth, axis=0) - 0.9).max())
    return float(np.mean(deviations))


def prepared(name, seed):
    """Standardized rows and targets, and which rows are for training and for tests."""
    data = np.load(Path(os.environ["MERCERLESS_DATA"]) / f"{name}.npz")
    train, test = split(len(data["y"]), np.random.RandomState(seed))
    scaler = StandardScaler().fit(data["X"][train])
    X = scaler.transform(data["X"]) / data["X"].shape[1]
    y = (data["y"] - data["y"][train].mean()) / data["y"][train].std()
    return X, y, train, test


def run(name, seed):
    """Figures of both kinds of intervals on one split."""
    X, y, train, test = prepared(name, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SimilarityRegressor("laplacian", random_state=0).fit(X[train], y[train])
        prediction = model.predict(X[test])
        low, high = model.predict_interval(X[test], 0.9).T
    one = np.full(len(test), radius_of_all(model.out_of_fold_, 0.9))
    yield "one width", *figures(y[test], prediction, one)
    yield "of the item", *figures(y[test], prediction, (high - low) / 2.0)


def main():
    """Run all sets and write the means over splits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--ideas", action="store_true", help="other widths of intervals")
    options = parser.parse_args()
    if options.ideas:
        import similarity_ideas

        similarity_ideas.run_intervals(options.splits)
        return
    rows = []
    for name in SETS:
        results = {}
        for seed in range(options.splits):
            for kind, coverage, by_fifth, score in run(name, seed):
                results.setdefault(kind, []).append((coverage, by_fifth, score))
        for kind, values in results.items():
            by_fifth = np.mean([value[1] for value in values], axis=0)
            rows.append(
                [
                    name,
                    kind,
                    f"{np.mean([value[0] for value in values]):.3f}",
                    f"{np.abs(by_fifth - 0.9).max():.3f}",
                    f"{np.mean([value[2] for value in values]):.4f}",
                ]
            )
            print(*rows[-1], flush=True)
        n = len(np.load(Path(os.environ["MERCERLESS_DATA"]) / f"{name}.npz")["y"])
        by_chance = deviation_by_chance(n, options.splits)
        rows.append([name, "perfect", "0.900", f"{by_chance:.3f}", ""])
        print(*rows[-1], flush=True)
    with RESULT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "intervals", "coverage", "largest_deviation_in_a_fifth", "winkler"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
