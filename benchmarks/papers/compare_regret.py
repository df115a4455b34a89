"""What does a short budget cost? The learner recommended in seconds beside the best of all, each run to its end.

    python benchmarks/papers/compare_regret.py [--sets heart yacht] [--budgets 10 60] [--long 300] [--jobs 2] [--again]

Of every set, 30 % of the items are held back. The reference is a comparison without a budget: every learner is searched
on five splits, and interrupted after `long` seconds; `complete` says that it was not. Its best single learner by
cross-validation is fitted on all items that are not held back, and so is what a comparison within each budget
recommends; both are scored on the items held back. Regret is the first score minus the second, `standard_error` that of
this difference over the items held back. Scores are accuracies or R2.

Reads the sets from $MERCERLESS_DATA, at most `most` items of each. Rows are merged into results/compare_regret.csv as
they are measured, and those that are there are not measured again unless asked to; references are kept in a folder of
temporary files. Other work on the same cores, `load average before`, makes a budget shorter, so regret measured then
bounds that of an idle machine.
"""

import argparse
import csv
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from paper_sets import load
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from mercerless import compare

RESULTS = Path(__file__).parent / "results" / "compare_regret.csv"
KEYS = ("set", "budget", "jobs")
SETS = (
    "heart", "yacht", "glass", "ionosphere", "sonar", "wine", "pima", "australian", "haberman",
    "breastcancer", "diabetic", "monks1", "spect", "fertility", "mpg", "housing", "bodyfat",
    "airfoil", "pyrim", "triazines", "mg", "space_ga", "pm10", "eucalyptus", "socmob", "protein",
    "dtw_ecg200", "coilyork_half",
)  # fmt: skip
#: Tables with words and gaps, and the column to predict.
TARGETS = {"eucalyptus": "Utility", "socmob": "counts_for_sons_current_occupation"}


class Halves(NamedTuple):
    """Items that comparisons see, and items held back."""

    X: Any
    y: np.ndarray
    X_new: Any
    y_new: np.ndarray
    kind: str
    is_classification: bool


def read(name):
    """Return the items or distances of a set, its targets and its kind."""
    if name in TARGETS:
        path = Path(os.environ["MERCERLESS_DATA"]) / "tables" / f"{name}.csv"
        table = pd.read_csv(path, na_values="?")
        target = table.pop(TARGETS[name])
        return table, target.to_numpy(), "table"
    data = load(name)
    if "D" in data:
        return data.D, data.target, "dissimilarity"
    return data.data, data.target, "table"


def held_back(name, most):
    """Hold back 30 % of the items; at most `most` of the others are left."""
    X, y, kind = read(name)
    classes = np.unique(y)
    is_classification = len(classes) < 20
    strata = y if is_classification else None
    seen, new = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=strata)
    seen = seen[:most]
    if kind == "table":
        X_seen = _safe_indexing(X, seen)
        X_new = _safe_indexing(X, new)
    else:
        X_seen = X[np.ix_(seen, seen)]
        X_new = X[np.ix_(new, seen)]
    return Halves(X_seen, y[seen], X_new, y[new], kind, is_classification)


def run(halves, jobs, **options):
    """Return a comparison of the items that are not held back, and the seconds that it took."""
    task = "classification" if halves.is_classification else "regression"
    start = time.perf_counter()
    found = compare(
        halves.X, halves.y, kind=halves.kind, task=task, n_jobs=jobs, curves=False, **options
    )
    return found, time.perf_counter() - start


def merits(found, learner, halves):
    """What every item held back adds to the score of a learner that is fitted on all the others."""
    kept = np.isin(halves.y, found.problem.y)  # classes too rare to compare on are left out
    X = halves.X
    if not kept.all():
        X = X[kept] if halves.kind == "table" else X[np.ix_(kept, kept)]
    X_new = halves.X_new if halves.kind == "table" or kept.all() else halves.X_new[:, kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = found.estimator(learner).fit(X, halves.y[kept]).predict(X_new)
    if halves.is_classification:
        return (predicted == halves.y_new).astype(float)
    return 1.0 - (predicted - halves.y_new) ** 2 / np.var(halves.y_new)


def run_to_end(halves, arguments):
    """Return a comparison with all searches, interrupted if it takes too long, and the seconds that it took."""
    start = time.perf_counter()

    def watch(text, done, total):
        if time.perf_counter() - start > arguments.long:
            raise KeyboardInterrupt

    return run(halves, arguments.jobs, repeats=1, progress=watch)


def reference(name, halves, arguments):
    """Return the best learner of all run to their end, what items add to its score, seconds, and whether all ended."""
    folder = Path(tempfile.gettempdir()) / "mercerless-regret"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{len(halves.y)}-{arguments.long:g}.npz"
    if not path.exists():
        found, seconds = run_to_end(halves, arguments)
        singles = [row for row in found.table if row["learner"] not in ("vote", "dummy")]
        best = max(singles, key=lambda row: row["score"])["learner"]
        merit = merits(found, best, halves)
        complete = not found.interrupted
        np.savez(path, best=best, merit=merit, seconds=seconds, complete=complete)
    with np.load(path) as kept:
        return str(kept["best"]), kept["merit"], float(kept["seconds"]), bool(kept["complete"])


def measure(name, budgets, arguments):
    """Yield one row for every budget."""
    halves = held_back(name, arguments.most)
    best, best_merit, reference_seconds, complete = reference(name, halves, arguments)
    for budget in budgets:
        load_before = round(os.getloadavg()[0], 1)
        found, seconds = run(halves, arguments.jobs, budget=budget)
        merit = merits(found, None, halves)
        difference = best_merit - merit
        yield {
            "set": name,
            "budget": budget,
            "jobs": arguments.jobs,
            "rows": len(halves.y),
            "load average before": load_before,
            "recommended": found.recommended,
            "decided": "Not decided" not in found.verdict[0],
            "score": f"{merit.mean():.4f}",
            "best": best,
            "best score": f"{best_merit.mean():.4f}",
            "regret": f"{difference.mean():.4f}",
            "standard_error": f"{difference.std(ddof=1) / np.sqrt(len(difference)):.4f}",
            "seconds": f"{seconds:.1f}",
            "reference seconds": f"{reference_seconds:.1f}",
            "complete": complete,
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
    rows.sort(key=lambda row: (row["set"], float(row["budget"])))
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
    parser.add_argument("--budgets", nargs="*", type=float, default=[10.0, 60.0])
    parser.add_argument("--long", type=float, default=300.0, help="seconds of a reference")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=300, help="items that are not held back")
    parser.add_argument("--again", action="store_true", help="also rows that are there")
    arguments = parser.parse_args()
    for name in arguments.sets:
        done = {float(row["budget"]) for row in known() if row["set"] == name}
        budgets = [budget for budget in arguments.budgets if arguments.again or budget not in done]
        if arguments.budgets and not budgets:
            continue
        start = time.perf_counter()
        for row in measure(name, budgets, arguments):
            print(row, flush=True)
            merge(row)
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    summarize()


if __name__ == "__main__":
    main()
