"""Is the learner that `mercerless.compare` recommends good on fresh data?

    python benchmarks/papers/compare.py [--sets amp_edit heart yacht] [--repeats 3] [--splits 0:10] [--jobs 1]

The comparison sees the training items only. Then every learner is fitted on all of them and scored on items that
nothing has seen: for amp_edit the validation and test peptides of its source (2132), for the tables a random 30 %, over
several such splits. Printed is how far the recommended learner, which may be a vote, is behind the best single one by
that fresh test. Reads the sets from $MERCERLESS_DATA; writes results/compare_fresh.csv beside itself, after every
split, in place of the rows of the same split. With --save FOLDER, all numbers of every comparison go there as JSON.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from paper_sets import load
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from mercerless import compare

RESULTS = Path(__file__).parent / "results" / "compare_fresh.csv"


def fresh_sets(name, splits):
    """Yield the number of the split, training data and labels, fresh data and labels."""
    data = load(name)
    if name == "amp_edit":
        yield (
            0,
            data.K,
            data.target,
            np.vstack([data.K_val, data.K_test]),
            np.r_[data.target_val, data.target_test],
        )
        return
    splitter = StratifiedShuffleSplit if len(np.unique(data.target)) < 10 else ShuffleSplit
    cuts = list(splitter(splits.stop, test_size=0.3, random_state=0).split(data.data, data.target))
    for split in splits:
        train, test = cuts[split]
        yield split, data.data[train], data.target[train], data.data[test], data.target[test]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=["amp_edit", "heart", "yacht"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--splits", default="0:10", help="FIRST:END, or how many")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--save", type=Path, help="folder for all numbers as JSON")
    arguments = parser.parse_args()
    *first, end = map(int, arguments.splits.split(":"))
    for name in arguments.sets:
        for split, X, y, X_test, y_test in fresh_sets(name, range(*first, end)):
            start = time.perf_counter()
            how = {
                "repeats": arguments.repeats,
                "curves": False,
                "n_jobs": arguments.jobs,
                "name": name,
            }
            found = compare(X, y, X_test=X_test, y_test=y_test, **how)
            merge(
                [
                    {
                        "set": name,
                        "split": split,
                        "repeats": arguments.repeats,
                        "learner": row["learner"],
                        "recommended": row["learner"] == found.recommended,
                        "tied": row["verdict"] != "worse",
                        "cross_validation": f"{row['score']:.4f}",
                        "fresh": f"{row['test_score']:.4f}",
                    }
                    for row in found.table
                ]
            )
            print(
                f"{name}, split {split}, {time.perf_counter() - start:.0f} s\n{found}\n", flush=True
            )
            if arguments.save is not None:
                found.save(arguments.save / f"{name}_{split}.json")
        summarize(name, [row for row in known() if row["set"] == name])


def known():
    """Return the rows of the file."""
    return list(csv.DictReader(open(RESULTS, newline=""))) if RESULTS.exists() else []


def merge(rows):
    """Put the rows of one split into the file in place of those it had."""
    RESULTS.parent.mkdir(exist_ok=True)
    new = rows[0]["set"], rows[0]["split"]
    rows = [row for row in known() if (row["set"], int(row["split"])) != new] + rows
    with open(RESULTS, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[-1], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["set"], int(row["split"]))))


def summarize(name, rows):
    """Print mean scores, and those of the recommended learners beside the best single learner's."""
    splits = sorted({row["split"] for row in rows}, key=int)

    def mean(column, chosen):
        return np.mean([float(row[column]) for row in rows if chosen(row)])

    complete = [
        learner
        for learner in dict.fromkeys(row["learner"] for row in rows)
        if learner != "vote" and sum(row["learner"] == learner for row in rows) == len(splits)
    ]
    means = {
        learner: mean("fresh", lambda row, learner=learner: row["learner"] == learner)
        for learner in complete
    }
    print(f"{name}, {len(splits)} splits: mean score by cross-validation and on fresh items")
    for learner in sorted(means, key=means.get, reverse=True):
        seen = mean("cross_validation", lambda row, learner=learner: row["learner"] == learner)
        print(f"  {learner:16s} {seen:.4f} {means[learner]:.4f}")
    best = max(means, key=means.get)
    behind = np.array(
        [
            sum(
                float(row["fresh"]) * ((row["learner"] == best) - (row["recommended"] == "True"))
                for row in rows
                if row["split"] == split
            )
            for split in splits
        ]
    )
    error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 else np.nan
    print(
        f"  recommended      {mean('cross_validation', lambda row: row['recommended'] == 'True'):.4f} "
        f"{mean('fresh', lambda row: row['recommended'] == 'True'):.4f}\n"
        f"{name}: behind the best single learner by the fresh test, {best}, by {100 * behind.mean():.2f} points "
        f"(standard error over splits {100 * error:.2f})\n",
        flush=True,
    )


if __name__ == "__main__":
    main()
