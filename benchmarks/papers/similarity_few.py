"""The automatic choice on few comparisons: landmarks against all comparisons, on sets of 600 to 950 training items.

Two thirds of the items learn, a third is tested, the same splits for all. Columns: the stack on all comparisons, on
``min(400, n / 3)`` random landmarks of the n training items, on 200, on the best 200 of 400 (the pursuit), on 400. ::

    MERCERLESS_DATA=... python benchmarks/papers/similarity_few.py --splits 3

Writes results/similarity_few.csv: test accuracy in per cent and log-loss, mean over splits, beside this file. With
``--only`` and the beginnings of some names, rows of these sets are renewed and the others kept.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from paper_sets import load
from similarity import _curves, _dtw, _edit_distances
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from mercerless import SimilarityClassifier
from mercerless.datasets import load_digit_shapes
from mercerless.kernels import TL1, Gaussian, Sigmoid
from mercerless.lowrank import Landmarks

N = 900


def sets():
    """Yield name, kind, matrix and labels: real and generated items, every kind of indefinite similarity."""
    random = np.random.RandomState(0)
    shapes = load_digit_shapes(N)
    yield "digit shapes, Hausdorff", "distance", shapes.D, shapes.target
    X, y = _table(load("letter"), random)
    yield "letters, TL1, 26 classes", "similarity", TL1(0.7 * X.shape[1])(X), y
    X, y = _table(load("pendigits"), random)
    yield "pen digits, fractional", "distance", np.sqrt(np.abs(X[:, None] - X)).sum(axis=2) ** 2, y
    X, y = _table(load("diabetic"), random)
    yield "retina, TL1", "similarity", TL1(0.7 * X.shape[1])(X), y
    X, y = _table(load("pima"), random)
    yield "pima, sigmoid", "similarity", Sigmoid(np.sqrt(X.shape[1]), offset=-0.5)(X), y
    X, y = load_digits(return_X_y=True)
    keep = random.permutation(len(y))[:N]
    yield "digits, Manhattan", "distance", np.abs(X[keep][:, None] - X[keep]).sum(axis=2), y[keep]
    K = Gaussian(np.sqrt(X.shape[1] / 2.0) * X.std())(X[keep])
    noise = random.normal(size=K.shape) * 0.5 * K.std()
    yield "digits, noisy kernel", "similarity", K + (noise + noise.T) / 2.0, y[keep]
    P = random.dirichlet(np.ones(12), size=6)[np.repeat(np.arange(6), N // 6)]
    counts = np.array([random.multinomial(60, p) for p in P]) + 0.5
    Q = counts / counts.sum(axis=1, keepdims=True)
    L = (Q * np.log(Q)).sum(axis=1)[:, None] - Q @ np.log(Q).T
    yield "histograms, Kullback-Leibler", "distance", L + L.T, np.repeat(np.arange(6), N // 6)
    words, y = _words(N, random)
    yield "words, edit, 8 x 4 prototypes", "distance", _edit_distances(words), y
    X, y = _curves(600, 1.5, random)
    yield "curves, time warping", "distance", _dtw(X[:, ::2]), y
    amp = load("amp_edit")
    yield "peptides, edit", "similarity", amp.K, amp.target


def comparable_sets():
    """The sets, as distances if own similarities differ, since those of new items are not told."""
    for name, kind, matrix, y in sets():
        if kind == "similarity" and np.ptp(np.diagonal(matrix)) > 1e-8:
            own = np.diagonal(matrix)
            distances = np.sqrt(np.maximum(own[:, None] + own - 2.0 * matrix, 0.0))
            yield name, "distance", distances, y
        else:
            yield name, kind, matrix, y


def _table(bunch, random):
    keep = random.permutation(len(bunch.target))[:N]
    return StandardScaler().fit_transform(np.asarray(bunch.data, dtype=float)[keep]), np.asarray(
        bunch.target
    )[keep]


def _words(n, random):
    """Mutated copies of four prototypes for each of eight classes."""
    prototypes = random.randint(8, size=(8, 4, 30))
    y, words = random.randint(8, size=n), []
    for label in y:
        word = list(prototypes[label, random.randint(4)])
        for _ in range(random.randint(12, 25)):
            place, kind = random.randint(len(word)), random.randint(3)
            if kind == 0:
                word[place] = random.randint(8)
            elif kind == 1 and len(word) > 5:
                del word[place]
            else:
                word.insert(place, random.randint(8))
        words.append("".join(chr(97 + letter) for letter in word))
    return words, y


def candidates(n):
    """Names and how many landmarks."""
    return {
        "all": None,
        "third": Landmarks(min(400, n // 3)),
        "200": Landmarks(200),
        "200 of 400": Landmarks(200, "pursuit"),
        "400": Landmarks(min(400, n)),
    }


def compare(kind, matrix, y, train, test, seed):
    """Accuracy, log-loss and processor seconds of all candidates on one split."""
    row, random = {}, np.random.RandomState(seed)
    # random columns, the first of which are the fewer landmarks
    order = random.permutation(len(train))
    for name, wanted in candidates(len(train)).items():
        if name == "200" and len(train) // 3 == 200:
            row[name] = row["third"]
            continue
        columns = train
        if wanted is not None:
            width = 2 * wanted.number if wanted.method == "pursuit" else wanted.number
            columns = train[np.sort(order[:width])]
        start = time.process_time()
        model = SimilarityClassifier("precomputed", kind=kind, landmarks=wanted, random_state=seed)
        model.fit(matrix[np.ix_(train, columns)], y[train])
        seconds = time.process_time() - start
        proba = model.predict_proba(matrix[np.ix_(test, columns)])
        hits = model.classes_[proba.argmax(axis=1)] == y[test]
        row[name] = 100.0 * hits.mean(), log_loss(y[test], proba, labels=model.classes_), seconds
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="how names of sets begin")
    parser.add_argument("--ideas", action="store_true", help="other ways to use 400 comparisons")
    arguments = parser.parse_args()
    if arguments.ideas:
        import similarity_ideas

        similarity_ideas.run_landmarks(arguments.splits, arguments.only)
        return
    table, names = {}, list(candidates(900))
    print(
        f"{'accuracy; log-loss last':32s}" + "".join(f"{name:>12s}" for name in names), flush=True
    )
    for name, kind, matrix, y in comparable_sets():
        if arguments.only and not name.startswith(tuple(arguments.only)):
            continue
        splits = StratifiedShuffleSplit(arguments.splits, test_size=1 / 3, random_state=0).split(
            matrix, y
        )
        rows = [
            compare(kind, matrix, y, train, test, seed) for seed, (train, test) in enumerate(splits)
        ]
        table[name] = [np.mean([row[c][i] for row in rows]) for i in range(3) for c in names]
        shown = table[name][: 2 * len(names)]
        print(f"{name:32s}" + "".join(f"{value:12.2f}" for value in shown), flush=True)
        write(names, table, bool(arguments.only))  # what is done is not lost
    print(
        f"{'average':32s}"
        + "".join(f"{value:12.2f}" for value in np.mean(list(table.values()), axis=0))
    )


def write(names, table, renew):
    """All rows so far, or those of an earlier run with these in their places, and the average."""
    n = len(names)  # accuracies first

    def texts(values):
        return [*(f"{v:.2f}" for v in values[:n]), *(f"{v:.3f}" for v in values[n:])]

    rows = {name: texts(values) for name, values in table.items()}
    path = Path(__file__).parent / "results" / "similarity_few.csv"
    if renew and path.exists():
        with open(path, newline="") as file:
            rows = {name: values for name, *values in list(csv.reader(file))[1:-1]} | rows
    average = np.mean([[float(v) for v in values] for values in rows.values()], axis=0)
    rows["average"] = texts(average)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["set", *names, *(f"{n} log-loss" for n in names), *(f"{n} seconds" for n in names)]
        )
        writer.writerows([name, *values] for name, values in rows.items())


if __name__ == "__main__":
    main()
