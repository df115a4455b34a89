"""Do sets and intervals cover what they promise, and are wrong labels found?

MERCERLESS_DATA=folder python -m benchmarks.coverage [coverage] [suspects]
"""

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import main, write
from benchmarks.papers.paper_sets import load
from benchmarks.similarity import NAMES, similarities
from mercerless import SimilarityClassifier, TableClassifier, TableRegressor

NUMBERS = ("yacht", "bodyfat", "mpg", "housing", "airfoil", "mg")
CLASSES = ("wine", "ionosphere", "heart", "breastcancer")
DRAWS = 10
SHARE = 0.05  # of labels that are flipped


def covered_set(name, rows, draw):
    """Share of new items with their class in the set, and mean size of the sets."""
    K, _, y = similarities(name)
    train, test = train_test_split(
        np.arange(len(y)), train_size=rows, stratify=y, random_state=draw
    )
    model = SimilarityClassifier("precomputed", kind="similarity")
    model.fit(K[np.ix_(train, train)], y[train])
    sets = model.predict_set(K[np.ix_(test, train)], coverage=0.9, diag=np.diag(K)[test])
    place = np.searchsorted(model.classes_, y[test])
    return sets[np.arange(len(test)), place].mean()


def covered_interval(name, rows, draw):
    data = load(name)
    X, X_new, y, y_new = train_test_split(
        data.data, data.target, train_size=rows, random_state=draw
    )
    low, high = TableRegressor().fit(X, y).predict_interval(X_new[:500], coverage=0.9).T
    return np.mean((low <= y_new[:500]) & (y_new[:500] <= high))


def coverage():
    """A row per kind and size: mean over sets, and the lowest and highest set."""
    rows = []
    kinds = {
        "sets, SimilarityClassifier": (covered_set, tuple(NAMES)),
        "intervals, TableRegressor": (covered_interval, NUMBERS),
    }
    for kind, (measure, names) in kinds.items():
        for size in (50, 100):
            shares = {
                name: 100 * np.mean([measure(name, size, draw) for draw in range(DRAWS)])
                for name in names
                if not (name == "coilyork_half" and size == 100)  # it has 144 items
            }
            lowest, highest = min(shares, key=shares.get), max(shares, key=shares.get)
            rows.append(
                {
                    "what (nominal 90 %)": kind,
                    "training items": size,
                    "covered, mean of sets": round(np.mean(list(shares.values())), 1),
                    "lowest set": f"{shares[lowest]:.1f} ({lowest})",
                    "highest set": f"{shares[highest]:.1f} ({highest})",
                    "draws of each set": DRAWS,
                }
            )
    write("coverage", rows)


def flipped(y, draw):
    """Labels with a share of them replaced by another class, and which were."""
    rng = np.random.default_rng(draw)
    wrong = rng.choice(len(y), max(1, round(SHARE * len(y))), replace=False)
    classes = np.unique(y)
    labels = y.copy()
    for item in wrong:
        labels[item] = rng.choice(classes[classes != y[item]])
    return labels, wrong


def suspects():
    """A row per set: share of the flipped labels that are listed, and of the list that was flipped."""
    rows = []
    for name in (*NAMES, *CLASSES):
        found, listed, all_wrong = 0, 0, 0
        for draw in range(3):
            if name in NAMES:
                K, _, y = similarities(name)
                keep = np.random.default_rng(draw).permutation(len(y))[:400]
                labels, wrong = flipped(y[keep], draw)
                model = SimilarityClassifier("precomputed", kind="similarity")
                model.fit(K[np.ix_(keep, keep)], labels)
            else:
                data = load(name)
                labels, wrong = flipped(data.target, draw)
                model = TableClassifier().fit(data.data, labels)
            items = np.asarray(model.suspects_.items)
            found += np.isin(items, wrong).sum()
            listed += len(items)
            all_wrong += len(wrong)
        rows.append(
            {
                "set": NAMES.get(name, name),
                "learner": type(model).__name__,
                "flipped labels": all_wrong,
                "found": f"{found / all_wrong:.0%}",
                "of the list, flipped": f"{found / max(listed, 1):.0%}",
            }
        )
    write("label_errors", rows)


if __name__ == "__main__":
    main({"coverage": coverage, "suspects": suspects})
