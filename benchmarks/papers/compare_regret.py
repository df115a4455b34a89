"""What does a short budget cost? The learner recommended in seconds beside the best one given a long time.

    python benchmarks/papers/compare_regret.py [--sets heart yacht] [--budgets 10 60 120] [--long 3600] [--jobs 2]

Of every set, 30 % of the items are held back. A comparison within each budget sees the others; what it recommends is
fitted on all of them and scored on those held back, and so is every learner that the comparison within the long budget
has scored on all items. Regret is the score of the best single learner by the cross-validation of the long one, minus
that of the recommended learner; `standard_error` is that of this difference over the items held back, and `hindsight`
the best score on these items that any learner of the long one has. Scores are accuracies or R2. Reads the sets from
$MERCERLESS_DATA; rows are merged into results/compare_regret.csv as they are measured.
"""

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np
from paper_sets import load
from sklearn.model_selection import train_test_split

from mercerless import compare

RESULTS = Path(__file__).parent / "results" / "compare_regret.csv"
KEYS = ("set", "budget", "long", "jobs")
SETS = (
    "heart", "yacht", "glass", "ionosphere", "sonar", "wine", "pima", "australian", "haberman",
    "breastcancer", "diabetic", "monks1", "parkinsons", "spect", "fertility", "mpg", "housing",
    "bodyfat", "airfoil", "pyrim", "triazines", "mg", "space_ga", "tecator",
)  # fmt: skip


def held_back(name, most):
    """Training items and targets, then those held back; at most `most` training items."""
    data = load(name)
    is_classification = len(np.unique(data.target)) < 20
    strata = data.target if is_classification else None
    X, X_new, y, y_new = train_test_split(
        data.data, data.target, test_size=0.3, random_state=0, stratify=strata
    )
    return X[:most], y[:most], X_new, y_new, is_classification


def merits(estimator, data):
    """What every item held back adds to the score of an estimator that is fitted on all the others."""
    X, y, X_new, y_new, is_classification = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = estimator.fit(X, y).predict(X_new)
    if is_classification:
        return (predicted == y_new).astype(float)
    return 1.0 - (predicted - y_new) ** 2 / np.var(y_new)


def run(data, budget, jobs):
    """Return a comparison of the training items, and the seconds that it took."""
    X, y, *_, is_classification = data
    task = "classification" if is_classification else "regression"
    start = time.perf_counter()
    found = compare(X, y, kind="table", task=task, budget=budget, n_jobs=jobs, curves=False)
    return found, time.perf_counter() - start


def measure(name, arguments):
    """Yield one row for every budget."""
    data = held_back(name, arguments.most)
    long, long_seconds = run(data, arguments.long, arguments.jobs)
    singles = [row["learner"] for row in long.table if row["learner"] not in ("vote", "dummy")]
    reference = {learner: merits(long.estimator(learner), data) for learner in singles}
    by_score = {row["learner"]: row["score"] for row in long.table if row["learner"] in singles}
    best = max(by_score, key=by_score.get)
    hindsight = max(reference, key=lambda learner: reference[learner].mean())
    for budget in arguments.budgets:
        others = round(os.getloadavg()[0], 1)
        found, seconds = run(data, budget, arguments.jobs)
        recommended = merits(found.estimator(), data)
        difference = reference[best] - recommended
        yield {
            "set": name,
            "budget": budget,
            "long": arguments.long,
            "jobs": arguments.jobs,
            "rows": len(data[1]),
            "load average before": others,
            "recommended": found.recommended,
            "decided": "Not decided" not in found.verdict[0],
            "score": f"{recommended.mean():.4f}",
            "best": best,
            "best score": f"{reference[best].mean():.4f}",
            "regret": f"{difference.mean():.4f}",
            "standard_error": f"{difference.std(ddof=1) / np.sqrt(len(difference)):.4f}",
            "hindsight": hindsight,
            "hindsight score": f"{reference[hindsight].mean():.4f}",
            "seconds": f"{seconds:.1f}",
            "long seconds": f"{long_seconds:.1f}",
        }


def known():
    """Return the rows of the file."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def merge(row):
    """Put a row into the file in place of one with the same keys."""
    rows = [old for old in known() if any(old[key] != str(row[key]) for key in KEYS)]
    rows.append({key: str(value) for key, value in row.items()})
    rows.sort(key=lambda row: (row["set"], float(row["budget"]), float(row["long"])))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def summarize():
    """Print mean regret by budget, in the score's units and in standard errors."""
    rows = known()
    for budget in sorted({float(row["budget"]) for row in rows}):
        of_budget = [row for row in rows if float(row["budget"]) == budget]
        regrets = np.array([float(row["regret"]) for row in of_budget])
        errors = np.array([float(row["standard_error"]) for row in of_budget])
        print(
            f"{budget:.0f} s, {len(regrets)} sets: mean regret {regrets.mean():.4f}, "
            f"mean standard error {errors.mean():.4f}, largest regret {regrets.max():.4f}"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--budgets", nargs="+", type=float, default=[10.0, 60.0, 120.0])
    parser.add_argument("--long", type=float, default=3600.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=5000)
    arguments = parser.parse_args()
    for name in arguments.sets:
        for row in measure(name, arguments):
            print(row, flush=True)
            merge(row)
    summarize()


if __name__ == "__main__":
    main()
