"""Directed similarities: one learner for both directions against the stack on their mean and against the two ridges.

Every learner sees the same splits (70 % to learn, 30 % to test) with both directions of the test items, and once more
only their rows, as scikit-learn's cross-validation hands them over. All are used with their defaults. ::

    MERCERLESS_DATA=... python benchmarks/papers/directed.py   # without the data folder one set fewer
    MERCERLESS_DATA=... python benchmarks/papers/directed.py --learners ask_ls   # the others' rows stay

Writes results/directed.csv (mean test accuracy in per cent and log-loss per set and learner) beside this file.
"""

import argparse
import csv
import os
import warnings
from pathlib import Path

import numpy as np
from paper_sets import load
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from mercerless import AsymmetricRidgeClassifier, SimilarityClassifier

LEARNERS = {
    "asymmetric_ridge": lambda kind, seed: AsymmetricRidgeClassifier("precomputed", kind=kind),
    "ask_ls": lambda kind, seed: AsymmetricRidgeClassifier("precomputed", kind=kind, coupled=True),
    "stack_on_mean": lambda kind, seed: SimilarityClassifier(
        "precomputed", kind=kind, direction="mean", random_state=seed
    ),
    "directed": lambda kind, seed: SimilarityClassifier(
        "precomputed", direction="both", kind=kind, random_state=seed
    ),
}


def sets():
    """Yield name, kind, matrix and labels."""
    random = np.random.RandomState(0)
    for name, classes, n in (
        ("hausdorff_3589", (3, 5, 8, 9), 200),
        ("hausdorff_147", (1, 4, 7), 180),
    ):
        yield f"{name}", "distance", *_hausdorff(classes, n, random)
    yield "hausdorff_all", "distance", *_hausdorff(range(10), 300, random)
    yield "kl", "dissimilarity", *_kullback_leibler(240, random)
    yield "attention", "similarity", *_attention(300, random)
    for classes in (5, 7):
        yield f"blocks_{classes}", "similarity", *_blocks(280, classes, random)
    yield "nearest_neighbors", "similarity", *_nearest(300, random)
    yield "containment", "similarity", *_containment(240, random)
    yield "bandwidths", "similarity", *_bandwidths(random)
    if os.environ.get("MERCERLESS_DATA"):
        coil = load("coilyork_half")
        yield "coilyork_half", "distance", coil.D, coil.target


def _digits(classes, n, random):
    X, y = load_digits(return_X_y=True)
    keep = random.permutation(np.flatnonzero(np.isin(y, list(classes))))[:n]
    return X[keep], y[keep]


def _hausdorff(classes, n, random):
    """The mean distance from the dark pixels of one digit to the nearest of another."""
    X, y = _digits(classes, n, random)
    shapes = [np.argwhere(x.reshape(8, 8) > 7) + random.normal(scale=0.05, size=2) for x in X]
    D = np.zeros((n, n))
    for i, a in enumerate(shapes):
        for j, b in enumerate(shapes):
            if i != j:
                D[i, j] = np.sqrt(((a[:, None] - b) ** 2).sum(axis=2)).min(axis=1).mean()
    return D, y


def _kullback_leibler(n, random):
    """Histograms of 12 bins and 40 draws, of four classes of distributions."""
    y = np.arange(n) % 4
    centers = random.dirichlet(np.full(12, 1.2), 4)
    P = np.array([random.multinomial(40, random.dirichlet(25 * centers[c] + 0.3)) for c in y]) + 0.3
    P /= P.sum(axis=1, keepdims=True)
    return (P * np.log(P)).sum(axis=1)[:, None] - P @ np.log(P).T, y


def _attention(n, random):
    """Softmax of queries with keys, which are two different views of a digit."""
    X, y = _digits(range(10), n, random)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ random.normal(size=(64, 16)) @ random.normal(size=(16, 64)) @ X.T
    scores = 2.0 * scores / scores.std()
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True), y


def _blocks(n, classes, random):
    """A directed graph whose edges run more often from some classes to some others."""
    y = np.arange(n) % classes
    chances = random.uniform(0.03, 0.10, size=(classes, classes))
    A = (random.uniform(size=(n, n)) < chances[np.ix_(y, y)]).astype(float)
    np.fill_diagonal(A, 0.0)
    return A, y


def _nearest(n, random, k=8):
    """Who is among whose eight nearest neighbors."""
    X, y = _digits(range(10), n, random)
    X = X + random.normal(scale=6.0, size=X.shape)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(D, np.inf)
    A = np.zeros((n, n))
    A[np.arange(n)[:, None], np.argsort(D, axis=1)[:, :k]] = 1.0
    return A, y


def _containment(n, random):
    """How much of one set is found in another, for sets of unequal size."""
    y = np.arange(n) % 4
    topics = random.dirichlet(np.full(60, 0.25), 4)
    sets = [set(random.choice(60, random.randint(4, 20), p=0.6 * topics[c] + 0.4 / 60)) for c in y]
    return np.array([[len(a & b) / len(a) for b in sets] for a in sets]), y


def _bandwidths(random):
    """Gaussians with a width of the column's item."""
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X = X + random.normal(scale=0.8, size=X.shape)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.exp(-squares / (np.sort(squares, axis=0)[7] * random.uniform(0.5, 4.0, len(X)))), y


def compare(kind, K, y, train, test, seed, learners):
    """Accuracy and log-loss of every learner, with both directions and with rows only."""
    found = {}
    inner, out, back = K[np.ix_(train, train)], K[np.ix_(test, train)], K[np.ix_(train, test)].T
    for name in learners:
        model = LEARNERS[name](kind, seed).fit(inner, y[train])
        ways = {name: {"reverse": back}}
        if isinstance(model, SimilarityClassifier):
            ways[f"{name}_rows_only"] = {}
        for way, arguments in ways.items():
            proba = model.predict_proba(out, **arguments)
            hits = model.classes_[proba.argmax(axis=1)] == y[test]
            found[way] = (100.0 * hits.mean(), log_loss(y[test], proba, labels=model.classes_))
    return found


def main():
    """Run all sets and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--only", nargs="*", help="names of sets")
    parser.add_argument(
        "--learners", nargs="*", default=list(LEARNERS), choices=list(LEARNERS), help="only these"
    )
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "directed.csv"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows = []
    for name, kind, K, y in sets():
        if args.only and name not in args.only:
            continue
        splitter = StratifiedShuffleSplit(args.splits, test_size=0.3, random_state=0)
        found = [
            compare(kind, K, y, *split, seed, args.learners)
            for seed, split in enumerate(splitter.split(K, y))
        ]
        for learner in found[0]:
            accuracy, loss = np.mean([result[learner] for result in found], axis=0)
            rows.append(
                [name, len(y), len(np.unique(y)), learner, f"{accuracy:.2f}", f"{loss:.4f}"]
            )
        print(name, *(f"{row[3]} {row[4]}" for row in rows if row[0] == name), flush=True)
    if not args.only:
        write(args.output, rows)


def write(path, rows):
    """Write the rows, by set; rows of learners that were not run stay."""
    known = {}
    if path.exists():
        with path.open(newline="") as lines:
            known = {(row[0], row[3]): row for row in list(csv.reader(lines))[1:]}
    known |= {(row[0], row[3]): row for row in rows}
    sets_in_order = list(dict.fromkeys(name for name, _ in known))
    in_order = sorted(known.values(), key=lambda row: sets_in_order.index(row[0]))
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "n", "classes", "learner", "accuracy", "log_loss"])
        writer.writerows(in_order)


if __name__ == "__main__":
    main()
