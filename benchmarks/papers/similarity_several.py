"""Several similarities of the same items: the automatic choice over all against the best single one, sums and weights.

Real groups: heartbeats and sonar echoes as series under time warping (DTW), MSM, TWED, ERP; pen trajectories; digit
images; first names as strings (needs rapidfuzz and the package "names"); radar returns as vectors. Two thirds of the
items learn, a third is tested. Columns: the stack of the best single similarity in hindsight (by test accuracy), the
stack on the sum of squared distances divided by their medians, a support vector machine on a sum with EasyMKL's
weights (Aiolli and Donini 2015; distances centered, negative eigenvalues cut off, traces 1, penalty tuned by 5 folds),
and several similarities in one `SimilarityClassifier`. ::

    MERCERLESS_DATA=... python benchmarks/papers/similarity_several.py --splits 4

Writes results/similarity_several.csv: test accuracy in per cent, mean over splits, beside this file.
"""

import argparse
import csv
import importlib.util
from itertools import islice
from pathlib import Path

import numpy as np
from paper_sets import load
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercerless import SimilarityClassifier
from mercerless.kernels import TL1


def groups():
    """Yield name, distances by name, and labels."""
    random = np.random.RandomState(0)
    ecg = load("dtw_ecg200")
    yield "heartbeats", series_distances(np.load(_data("dtw_ecg200"))["X"][:, ::2]), ecg.target
    sonar = load("sonar")
    yield "sonar echoes", series_distances(np.asarray(sonar.data)[:, ::2]), sonar.target
    pen = load("pendigits")
    keep = random.permutation(len(pen.target))[:240]
    yield (
        "pen digits",
        path_distances(np.asarray(pen.data)[keep].reshape(-1, 8, 2)),
        np.asarray(pen.target)[keep],
    )
    X, y = load_digits(return_X_y=True)
    keep = random.permutation(len(y))[:240]
    yield "digit images", image_distances(X[keep]), y[keep]
    radar = load("ionosphere")
    keep = random.permutation(len(radar.target))[:240]
    X = np.asarray(radar.data)[keep]
    yield (
        "radar",
        vector_distances(StandardScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0])),
        radar.target[keep],
    )
    if importlib.util.find_spec("names") and importlib.util.find_spec("rapidfuzz"):
        yield "first names", *first_names(240, random)


def _data(name):
    import os

    return Path(os.environ["MERCERLESS_DATA"]) / f"{name}.npz"


def first_names(n, random):
    """The most frequent first names of women and men, as strings."""
    import names
    from rapidfuzz.distance import Indel, JaroWinkler, Levenshtein
    from rapidfuzz.process import cdist

    lists = {}
    for label in ("female", "male"):
        lines = (Path(names.__file__).parent / f"dist.{label}.first").read_text().splitlines()
        lists[label] = [line.split()[0].lower() for line in lines[:400]]
    both = set(lists["female"]) & set(lists["male"])
    words = [(word, label) for label, part in lists.items() for word in part if word not in both]
    chosen = [words[i] for i in random.permutation(len(words))[:n]]
    text = [f"{word}$" for word, _ in chosen]  # where a name ends says much
    scorers = {"levenshtein": Levenshtein, "jaro_winkler": JaroWinkler, "indel": Indel}
    matrices = {
        name: cdist(text, text, scorer=scorer.normalized_distance)
        for name, scorer in scorers.items()
    }
    backwards = [word[::-1] for word in text]
    matrices["jaro_winkler of the end"] = cdist(
        backwards, backwards, scorer=JaroWinkler.normalized_distance
    )
    return {name: D.astype(float) for name, D in matrices.items()}, np.array(
        [label for _, label in chosen]
    )


def series_distances(X):
    """Elastic distances of standardized series."""
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    return {name: elastic(X, name) for name in ("dtw", "erp", "msm", "twed")} | {
        "euclidean": _pairwise(X, 2)
    }


def _pairwise(X, power):
    return (np.abs(X[:, None] - X) ** power).sum(axis=2) ** (1.0 / power)


def elastic(X, name):
    """One elastic distance, all pairs at once, row by row of the alignment."""
    first, second = np.triu_indices(len(X), 1)
    A, B, length = X[first], X[second], X.shape[1]
    previous = np.zeros((len(first), length + 1))
    previous[:, 1:] = np.cumsum(np.abs(B), axis=1) if name == "erp" else np.inf
    for i in range(length):
        current = np.full_like(previous, np.inf)
        if name == "erp":
            current[:, 0] = np.abs(A[:, : i + 1]).sum(axis=1)
        for j in range(length):
            match, delete, insert = _moves(A, B, i, j, name)
            best = np.minimum(
                previous[:, j] + match,
                np.minimum(previous[:, j + 1] + delete, current[:, j] + insert),
            )
            current[:, j + 1] = best
        previous = current
    D = np.zeros((len(X), len(X)))
    D[first, second] = D[second, first] = (
        np.sqrt(previous[:, -1]) if name == "dtw" else previous[:, -1]
    )
    return D


def _moves(A, B, i, j, name):
    """The costs of a match, of leaving out a point of A, and of leaving out one of B."""
    a, b = A[:, i], B[:, j]
    if name == "dtw":
        cost = (a - b) ** 2
        return cost, cost, cost
    if name == "erp":
        return np.abs(a - b), np.abs(a), np.abs(b)
    before, prior = (
        (A[:, i - 1] if i else np.zeros(len(A))),
        (B[:, j - 1] if j else np.zeros(len(A))),
    )
    if name == "twed":
        match = np.abs(a - b) + np.abs(before - prior) + 0.1 * abs(i - j)
        return match, np.abs(a - before) + 1.05, np.abs(b - prior) + 1.05
    split = _msm(a, before, b) if i else np.full(len(A), np.inf)
    return np.abs(a - b), split, _msm(b, a, prior) if j else np.full(len(A), np.inf)


def _msm(new, x, y, c=0.5):
    between = ((x <= new) & (new <= y)) | ((x >= new) & (new >= y))
    return np.where(between, c, c + np.minimum(np.abs(new - x), np.abs(new - y)))


def path_distances(P):
    """Pen trajectories, 8 points in the plane."""
    flat = P.reshape(len(P), -1)
    points = np.sqrt(((P[:, None, :, None] - P[None, :, None]) ** 2).sum(axis=4))  # (n, n, 8, 8)
    one_way = points.min(axis=3).mean(axis=2)
    warped = np.full((len(P), len(P), 9, 9), np.inf)
    warped[:, :, 0, 0] = 0.0
    for i in range(8):
        for j in range(8):
            step = np.minimum(
                np.minimum(warped[:, :, i, j], warped[:, :, i, j + 1]), warped[:, :, i + 1, j]
            )
            warped[:, :, i + 1, j + 1] = points[:, :, i, j] + step
    warping, turns = warped[:, :, 8, 8], np.diff(P, axis=1).reshape(len(P), -1)
    return {
        "manhattan": _pairwise(flat, 1),
        "warping": (warping + warping.T) / 2.0,
        "hausdorff": np.maximum(one_way, one_way.T),
        "directions": _pairwise(turns, 1),
    }


def image_distances(X):
    """Digit images of 8 x 8 pixels."""
    images = X.reshape(-1, 8, 8)
    shares = (X + 0.5) / (X + 0.5).sum(axis=1, keepdims=True)
    divergence = (shares * np.log(shares)).sum(axis=1)[:, None] - shares @ np.log(shares).T
    sums = np.concatenate([images.sum(axis=1), images.sum(axis=2)], axis=1)
    return {
        "manhattan": _pairwise(X, 1),
        "divergence": np.maximum(divergence + divergence.T, 0.0),
        "row and column sums": _pairwise(sums, 1),
        "fractional": np.sqrt(np.abs(X[:, None] - X)).sum(axis=2) ** 2 / 1000.0,
    }


def vector_distances(X):
    """Vectors under distances that are not all metrics."""
    tl1, unit = TL1(0.7 * X.shape[1])(X), X / np.linalg.norm(X, axis=1, keepdims=True)
    own = np.diagonal(tl1)
    return {
        "tl1": np.sqrt(np.maximum(own[:, None] + own - 2.0 * tl1, 0.0)),
        "fractional": np.sqrt(np.abs(X[:, None] - X)).sum(axis=2) ** 2 / 1000.0,
        "cosine": np.maximum(1.0 - unit @ unit.T, 0.0),
        "largest difference": np.abs(X[:, None] - X).max(axis=2),
    }


def _kernel(D, train):
    """Distances as a kernel of trace 1: centered on the training items, negative eigenvalues cut off."""
    S = -0.5 * D**2
    mean = S[train].mean(axis=0)
    S = S - mean - mean[:, None] + mean[train].mean()
    values, vectors = np.linalg.eigh(S)
    K = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return K / (np.trace(K[np.ix_(train, train)]) or 1.0)


def _simplex(v):
    """The nearest point with nonnegative entries of sum 1."""
    u = np.sort(v)[::-1]
    excess = np.cumsum(u) - 1.0
    k = np.flatnonzero(u - excess / np.arange(1, len(v) + 1) > 0)[-1]
    return np.maximum(v - excess[k] / (k + 1), 0.0)


def easy_weights(kernels, y, share=0.1):
    """EasyMKL: the kernels' parts of the squared distance between shrunk convex hulls, one class against the rest."""
    total, weights = sum(kernels), np.zeros(len(kernels))
    for label in np.unique(y):
        signs = np.where(y == label, 1.0, -1.0)
        A = (1.0 - share) * total * np.outer(signs, signs) + share * np.trace(total) / len(
            y
        ) * np.eye(len(y))
        gamma, step = (
            np.where(signs > 0, 1.0 / (signs > 0).sum(), 1.0 / (signs < 0).sum()),
            1.0 / np.linalg.norm(A, 2),
        )
        for _ in range(500):
            move = gamma - step * (A @ gamma)
            gamma[signs > 0], gamma[signs < 0] = (
                _simplex(move[signs > 0]),
                _simplex(move[signs < 0]),
            )
        weights += [(signs * gamma) @ K @ (signs * gamma) for K in kernels]
    return weights / weights.sum()


def compare(matrices, y, train, test, seed):
    """Accuracy of every candidate on one split, and the log-loss of the last."""
    rows, new = ({k: D[np.ix_(part, train)] for k, D in matrices.items()} for part in (train, test))
    model = SimilarityClassifier("precomputed", kind="distance", random_state=seed).fit(
        rows, y[train]
    )
    score = {
        name: np.mean(model.similarities_[name].predict(new[name]) == y[test]) for name in matrices
    }
    total = sum(D**2 / np.median(D[np.ix_(train, train)] ** 2) for D in matrices.values()) ** 0.5
    single = SimilarityClassifier("precomputed", kind="distance", random_state=seed)
    score["sum"] = single.fit(total[np.ix_(train, train)], y[train]).score(
        total[np.ix_(test, train)], y[test]
    )
    kernels = [_kernel(D, train) for D in matrices.values()]
    weights = easy_weights([K[np.ix_(train, train)] for K in kernels], y[train])
    K = sum(w * K for w, K in zip(weights, kernels)) * len(train)
    machine = GridSearchCV(SVC(kernel="precomputed"), {"C": 10.0 ** np.arange(-2, 5)})
    score["easy"] = machine.fit(K[np.ix_(train, train)], y[train]).score(
        K[np.ix_(test, train)], y[test]
    )
    proba = model.predict_proba(new)
    score["several"] = np.mean(model.classes_[proba.argmax(axis=1)] == y[test])
    return score, log_loss(y[test], proba, labels=model.classes_)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--first", type=int, help="only so many groups")
    arguments = parser.parse_args()
    columns, table = ["best single", "sum", "easy", "several"], {}
    print(
        f"{'test accuracy, per cent':24s}" + "".join(f"{name:>14s}" for name in columns), flush=True
    )
    for name, matrices, y in islice(groups(), arguments.first):
        splits = StratifiedShuffleSplit(arguments.splits, test_size=1 / 3, random_state=0).split(
            y, y
        )
        rows = [
            compare(matrices, y, train, test, seed)[0] for seed, (train, test) in enumerate(splits)
        ]
        mean = {key: 100.0 * np.mean([row[key] for row in rows]) for key in rows[0]}
        best = max(matrices, key=mean.get)
        table[name] = [mean[best], mean["sum"], mean["easy"], mean["several"], best]
        print(
            f"{name:24s}" + "".join(f"{value:14.2f}" for value in table[name][:4]) + f"  {best}",
            flush=True,
        )
    average = np.mean([row[:4] for row in table.values()], axis=0)
    print(f"{'average':24s}" + "".join(f"{value:14.2f}" for value in average))
    with open(
        Path(__file__).parent / "results" / "similarity_several.csv", "w", newline=""
    ) as file:
        writer = csv.writer(file)
        writer.writerow(["group", *columns, "which"])
        for name, values in [*table.items(), ("average", [*average, ""])]:
            writer.writerow([name, *(f"{value:.2f}" for value in values[:4]), values[4]])


if __name__ == "__main__":
    main()
