"""Is the learner that `mercerless.compare` recommends good on fresh data?

    python benchmarks/papers/compare.py [--sets amp_edit,heart,yacht] [--repeats 1] [--splits 3] [--jobs 1]

The comparison sees the training items only. Then every learner is fitted on all of them and scored on items that
nothing has seen: for amp_edit the validation and test peptides of its source (2132), for the tables a random 30 %, over
several such splits. Printed is how far the recommended learner is behind the best one by that fresh test. Reads the
sets from $MERCERLESS_DATA; writes results/compare_fresh.csv beside itself.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from mercerless import compare
from mercerless.datasets import load

RESULTS = Path(__file__).parent / "results" / "compare_fresh.csv"
CLASSES = {"amp_edit": True, "heart": True, "yacht": False}


def fresh_sets(name, n_splits):
    """Yield training data and labels, fresh data and labels."""
    data = load(name)
    if name == "amp_edit":
        yield data.K, data.target, np.vstack([data.K_val, data.K_test]), np.r_[data.target_val, data.target_test]
        return
    splitter = (StratifiedShuffleSplit if CLASSES[name] else ShuffleSplit)(n_splits, test_size=0.3, random_state=0)
    for train, test in splitter.split(data.data, data.target):
        yield data.data[train], data.target[train], data.data[test], data.target[test]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="amp_edit,heart,yacht")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sets.split(","):
        for split, (X, y, X_test, y_test) in enumerate(fresh_sets(name, arguments.splits)):
            how = {"repeats": arguments.repeats, "n_jobs": arguments.jobs, "name": name}
            found = compare(X, y, X_test=X_test, y_test=y_test, **how)
            rows += [
                {"set": name, "split": split, "learner": row["learner"],
                 "recommended": row["learner"] == found.recommended,
                 "tied": row["verdict"] != "worse", "cross_validation": row["score"], "fresh": row["test_score"]}
                for row in found.table
            ]
            print(f"{name}, split {split}\n{found}\n", flush=True)
        summarise(name, [row for row in rows if row["set"] == name])
    write([{**row, **{k: f"{row[k]:.4f}" for k in ("cross_validation", "fresh")}} for row in rows])


def write(rows):
    """Put the rows into the file in place of those of the same sets."""
    RESULTS.parent.mkdir(exist_ok=True)
    known = list(csv.DictReader(open(RESULTS, newline=""))) if RESULTS.exists() else []
    rows = [row for row in known if row["set"] not in {new["set"] for new in rows}] + rows
    with open(RESULTS, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["set"]))


def summarise(name, rows):
    """Print mean fresh scores, and the recommended learners' beside that of the best single learner."""
    means = {learner: np.mean([row["fresh"] for row in rows if row["learner"] == learner])
             for learner in dict.fromkeys(row["learner"] for row in rows)}
    recommended = np.mean([row["fresh"] for row in rows if row["recommended"]])
    best = max(means, key=means.get)
    for learner in sorted(means, key=means.get, reverse=True):
        print(f"  {learner:16s} {means[learner]:.4f}")
    print(f"{name}: recommended {recommended:.4f}, best by the fresh test {best} {means[best]:.4f}, "
          f"behind by {100 * (means[best] - recommended):.2f} points\n", flush=True)


if __name__ == "__main__":
    main()
