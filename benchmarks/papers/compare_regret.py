"""What does a short budget cost? The learner recommended in seconds beside learners that were all run to their end.

    python benchmarks/papers/compare_regret.py references [--sets heart yacht] [--most 150]
    python benchmarks/papers/compare_regret.py budgets [--sets heart yacht] [--budgets 60] [--jobs 2] [--again]

Of every set at most `most` items are seen by the comparisons, and 30 % of the items or more, at most 500, are held
back.

`references` compares without a budget: every learner is searched on all five splits, then fitted on all items seen and
scored on the items held back. It writes a row for every learner into results/compare_reference.csv, set by set; sets
that are there are not run again. Two learners of a set are rivals later: the `chosen` one, which has the best mean of
the cross-validation, and the one that is `best` on the items held back. Nobody can know the latter, and as the best of
a dozen scores on few items it looks better than it is; regret against it is an upper bound.

`budgets` lets comparisons with a budget recommend something, fits it on all items seen and scores it on the items held
back. Regret is the score of a rival minus this one, `standard_error` that of the difference over the items held back.
Scores are accuracies or R2. Rows are merged into results/compare_regret.csv as they are measured, and those that are
there are not measured again unless asked to. Other work on the same cores, `load average before`, makes a budget
shorter.

Without one of the two words both are run, one after the other. Sets are read from $MERCERLESS_DATA.
"""

import argparse
import csv
import os
import resource
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

FOLDER = Path(__file__).parent / "results"
REFERENCES = FOLDER / "compare_reference.csv"
RESULTS = FOLDER / "compare_regret.csv"
SETS = (
    "monks1", "heart", "yacht", "glass", "ionosphere", "sonar", "wine", "pima", "australian", "haberman",
    "breastcancer", "diabetic", "spect", "fertility", "mpg", "housing", "bodyfat",
    "airfoil", "pyrim", "triazines", "mg", "space_ga", "pm10", "eucalyptus", "socmob", "protein",
    "dtw_ecg200", "coilyork_half", "monks2", "monks3", "balls3d_regen", "cps_85_wages",
)  # fmt: skip
#: Tables with words and gaps, and the column to predict.
TARGETS = {"eucalyptus": "Utility", "socmob": "counts_for_sons_current_occupation"}
#: Share of the items that is held back, at least, and the most items of it.
HELD_BACK_SHARE = 0.3
MOST_HELD_BACK = 500


class Halves(NamedTuple):
    """Items that comparisons see, and items held back."""

    X: Any
    y: np.ndarray
    X_new: Any
    y_new: np.ndarray
    kind: str
    is_classification: bool


def read(name):
    """Return the items or the symmetric distances of a set, its targets and its kind."""
    if name in TARGETS:
        path = Path(os.environ["MERCERLESS_DATA"]) / "tables" / f"{name}.csv"
        table = pd.read_csv(path, na_values="?")
        target = table.pop(TARGETS[name])
        return table, target.to_numpy(), "table"
    data = load(name)
    if "D" in data:
        return (data.D + data.D.T) / 2, data.target, "dissimilarity"
    return data.data, data.target, "table"


def held_back(name, most):
    """Take at most `most` items to compare on, and hold others back."""
    X, y, kind = read(name)
    is_classification = len(np.unique(y)) < 20
    strata = y if is_classification else None
    n_seen = min(most, int((1 - HELD_BACK_SHARE) * len(y)))
    n_new = min(MOST_HELD_BACK, len(y) - n_seen)
    seen, new = train_test_split(
        np.arange(len(y)), train_size=n_seen, test_size=n_new, random_state=0, stratify=strata
    )
    if kind == "table":
        X_seen = _safe_indexing(X, seen)
        X_new = _safe_indexing(X, new)
    else:
        X_seen = X[np.ix_(seen, seen)]
        X_new = X[np.ix_(new, seen)]
    return Halves(X_seen, y[seen], X_new, y[new], kind, is_classification)


def run(halves, jobs, **options):
    """Return a comparison of the items that are seen."""
    task = "classification" if halves.is_classification else "regression"
    return compare(
        halves.X, halves.y, kind=halves.kind, task=task, n_jobs=jobs, curves=False, **options
    )


def merits_of(predicted, halves):
    """What every item held back adds to the score of these predictions."""
    if halves.is_classification:
        return (predicted == halves.y_new).astype(float)
    return 1.0 - (predicted - halves.y_new) ** 2 / np.var(halves.y_new)


def merits(found, learner, halves):
    """What every item held back adds to the score of a learner that is fitted on all items seen."""
    kept = np.isin(halves.y, found.problem.y)  # classes too rare to compare on are left out
    X = halves.X
    X_new = halves.X_new
    if not kept.all() and halves.kind == "table":
        X = X[kept]
    elif not kept.all():
        X = X[np.ix_(kept, kept)]
        X_new = X_new[:, kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = found.estimator(learner).fit(X, halves.y[kept]).predict(X_new)
    return merits_of(predicted, halves)


# -------------------------------------------------------------------------------------------------- references


def write_numbers(values, is_classification):
    """Merits as text: a digit for each item of a classification, else numbers with blanks between them."""
    if is_classification:
        return "".join(f"{value:.0f}" for value in values)
    return " ".join(f"{value:.4g}" for value in values)


def read_numbers(text):
    """The merits that `write_numbers` wrote."""
    if " " in text:
        return np.array([float(word) for word in text.split()])
    return np.array([float(digit) for digit in text])


def used_seconds():
    """Processor seconds of this process and of those that it has ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(of.ru_utime + of.ru_stime for of in usage)


def reference(name, most, jobs):
    """Return a row for every learner, searched on all splits and fitted on all items seen."""
    halves = held_back(name, most)
    begun = used_seconds()
    found = run(halves, jobs, repeats=1)
    seconds = used_seconds() - begun
    merit = {row["learner"]: merits(found, row["learner"], halves) for row in found.table}
    singles = [row for row in found.table if row["learner"] not in ("vote", "dummy")]
    chosen = max(singles, key=lambda row: row["score"])["learner"]
    best = max((row["learner"] for row in singles), key=lambda learner: merit[learner].mean())
    rows = []
    for row in found.table:
        learner = row["learner"]
        is_rival = learner in (chosen, best)
        rows.append(
            {
                "set": name,
                "rows": len(halves.y),
                "held back": len(halves.y_new),
                "learner": learner,
                "cross-validation": f"{row['score']:.4f}",
                "score": f"{merit[learner].mean():.4f}",
                "recommended": learner == found.recommended,
                "chosen": learner == chosen,
                "best": learner == best,
                "cpu_seconds": f"{seconds:.0f}",
                "merits": write_numbers(merit[learner], halves.is_classification) * is_rival,
            }
        )
    return rows


def make_references(arguments):
    """Write the rows of sets that have none."""
    for name in arguments.sets:
        if any(row["set"] == name for row in known(REFERENCES)):
            continue
        rows = reference(name, arguments.most, arguments.jobs)
        write(REFERENCES, [*known(REFERENCES), *rows])
        for row in rows:
            print(*list(row.values())[:-1], flush=True)


# ------------------------------------------------------------------------------------------------------ budgets


def rivals_of(name):
    """Return the rows of the reference that was chosen by cross-validation, and of the best in hindsight."""
    rows = [row for row in known(REFERENCES) if row["set"] == name]
    chosen = next((row for row in rows if row["chosen"] == "True"), None)
    best = next((row for row in rows if row["best"] == "True"), None)
    return chosen, best


def compare_with(rival, merit):
    """Return a rival's score minus that of these merits, and the standard error of the difference."""
    difference = read_numbers(rival["merits"]) - merit
    return difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))


def measure(name, budget, arguments):
    """Return the row of one budget."""
    chosen, best = rivals_of(name)
    halves = held_back(name, arguments.most)
    load_before = round(os.getloadavg()[0], 1)
    start = time.perf_counter()
    found = run(halves, arguments.jobs, budget=budget)
    seconds = time.perf_counter() - start
    merit = merits(found, None, halves)
    regret, standard_error = compare_with(chosen, merit)
    best_regret, best_error = compare_with(best, merit)
    return {
        "set": name,
        "budget": budget,
        "jobs": arguments.jobs,
        "rows": len(halves.y),
        "held back": len(halves.y_new),
        "load average before": load_before,
        "recommended": found.recommended,
        "decided": found.is_decided,
        "score": f"{merit.mean():.4f}",
        "chosen": chosen["learner"],
        "chosen score": chosen["score"],
        "regret": f"{regret:.4f}",
        "standard_error": f"{standard_error:.4f}",
        "best": best["learner"],
        "best score": best["score"],
        "best regret": f"{best_regret:.4f}",
        "best standard_error": f"{best_error:.4f}",
        "seconds": f"{seconds:.1f}",
    }


def run_budgets(arguments):
    """Measure what has no row, for sets that have a reference."""
    for name in arguments.sets:
        if rivals_of(name)[0] is None:
            print(f"{name} has no reference", flush=True)
            continue
        for budget in arguments.budgets:
            keys = (name, str(budget), str(arguments.jobs))
            if keys in map(keys_of, known(RESULTS)) and not arguments.again:
                continue
            row = measure(name, budget, arguments)
            others = [old for old in known(RESULTS) if keys_of(old) != keys]
            write(RESULTS, sorted([*others, row], key=keys_of))
            print(row, flush=True)


def keys_of(row):
    """What tells rows of budgets apart."""
    return row["set"], str(row["budget"]), str(row["jobs"])


def summarize():
    """Print mean regret by budget, and how many standard errors it is."""
    rows = pd.DataFrame(known(RESULTS))
    if rows.empty:
        return
    columns = ["regret", "standard_error", "best regret", "best standard_error"]
    rows[columns] = rows[columns].astype(float)
    for budget, of_budget in rows.groupby("budget"):
        means = of_budget[columns].mean()
        print(
            f"{float(budget):.0f} s, {len(of_budget)} sets: mean regret {means['regret']:.4f}, mean "
            f"standard error {means['standard_error']:.4f}, largest {of_budget.regret.max():.4f}; "
            f"against the best in hindsight {means['best regret']:.4f}"
        )


# -------------------------------------------------------------------------------------------------------- files


def known(path):
    """Return the rows of a file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    """Write all rows of a file, complete or not at all."""
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[-1]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    unfinished.replace(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("phase", nargs="?", choices=("references", "budgets"))
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--budgets", nargs="*", type=float, default=[60.0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=150, help="items that are seen")
    parser.add_argument("--again", action="store_true", help="also rows that are there")
    arguments = parser.parse_args()
    if arguments.phase != "budgets":
        make_references(arguments)
    if arguments.phase != "references":
        run_budgets(arguments)
        summarize()


if __name__ == "__main__":
    main()
