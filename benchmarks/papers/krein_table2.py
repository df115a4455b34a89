"""Table 2 of Oglic and Gaertner (2018): structured data, given by dissimilarities.

The paper's protocol: ten stratified folds, similarities -D**2 / 2 (centered by the training items), five stratified
inner folds to choose every parameter, labels sqrt(n- / n+) and -sqrt(n+ / n-), and for several classes the class with
the label one against the others. Of its ten sets three are at hand in some form; four others of the same kinds stand
in for the rest. Rows are written one by one, and an interrupted run continues where it stopped.
"""

import csv
import time
from pathlib import Path

import numpy as np
from paper_sets import load
from similarity import _edit_distances, _words
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercerless import GradientSearch, KreinRidge, KreinRidgeClassifier, KreinSVC, Sphere
from mercerless.datasets import load_digit_shapes
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer, symmetrize

RESULTS = Path(__file__).parent / "results" / "krein_table2.csv"
HEADER = ("set", "method", "fold", "n", "positives", "error", "paper", "cpu_seconds")
STRENGTHS = np.logspace(-7, 1, 17)  # ridges relative to the largest eigenvalue, as in KreinRidge
COSTS = np.logspace(-2, 5, 15)  # C for a kernel matrix whose diagonal has the mean 1


def sets():
    """Yield name, the paper's name, matrix, its kind, and labels: True for the class with the label one."""
    coil = load("coilyork_half")
    yield "coilyork_half", "coilyork", symmetrize(coil.D), "distance", coil.target == 1
    balls = load("balls3d_regen")
    yield "balls3d_regen", "balls 3D", balls.D, "distance", balls.target == 1
    protein = load("protein")
    yield "protein", "protein", protein.D, "distance", protein.target == 1
    words, language = _words(250, 30, np.random.RandomState(0))
    yield "words_edit", "", _edit_distances(words), "distance", language == 1
    shapes = load_digit_shapes()
    yield "digit_shapes", "", shapes.D, "distance", shapes.target == 1
    heartbeats = load("dtw_ecg200")
    yield "dtw_ecg200", "", heartbeats.D, "distance", heartbeats.target == 1
    peptides = load("amp_edit")
    yield "amp_edit", "", peptides.K, "similarity", peptides.target == 1


def paper_labels(is_one):
    """The labels of appendix C: +-1, standardized."""
    share = is_one.mean()
    return np.where(is_one, np.sqrt((1 - share) / share), -np.sqrt(share / (1 - share)))


class SignOf:
    """The papers' classifier: the sign of a regression on standardized labels."""

    def __init__(self, regressor):
        self.regressor = regressor

    def fit(self, K, is_one):
        self.regressor.fit(K, paper_labels(is_one))
        return self

    def predict(self, K):
        return self.regressor.predict(K) > 0


class KreinMachine:
    """The Krein support vector machine, C chosen by inner folds.

    Within the folds a machine on the flipped matrix stands for `KreinSVC`, which equals it, so that all C share a
    decomposition.
    """

    def fit(self, K, is_one):
        costs = COSTS / np.abs(np.diagonal(K)).mean()
        errors = np.zeros(len(costs))
        for train, test in inner_folds().split(K, is_one):
            flip = SpectrumTransformer("flip").fit(K[np.ix_(train, train)])
            of_training = flip.transform(K[np.ix_(train, train)])
            of_test = flip.transform(K[np.ix_(test, train)])
            for i, C in enumerate(costs):
                machine = SVC(C=C, kernel="precomputed", max_iter=100_000)
                machine.fit(of_training, is_one[train])
                errors[i] += np.sum(machine.predict(of_test) != is_one[test])
        best = costs[errors.argmin()]
        self.machine = KreinSVC("precomputed", C=best, max_iter=100_000).fit(K, is_one)
        return self

    def predict(self, K):
        return self.machine.predict(K)


class Majority:
    """The more frequent label."""

    def fit(self, K, is_one):
        self.label = is_one.mean() > 0.5
        return self

    def predict(self, K):
        return np.full(len(K), self.label)


def inner_folds():
    return StratifiedKFold(5, shuffle=True, random_state=0)


def similarities_as_features(K, folds):
    """Ridge regression on the rows of the matrix; its largest penalty is that of the largest singular value."""
    largest = np.linalg.norm(K, 2) ** 2
    return GridSearchCV(
        Ridge(), {"alpha": STRENGTHS * largest}, scoring="neg_mean_squared_error", cv=folds
    )


def methods(K, is_one):
    """Unfitted models by name; the training matrix scales the grids, the labels stratify the inner folds."""
    folds = list(inner_folds().split(K, is_one))
    sphere = {"constraint": Sphere(), "cv": folds, "random_state": 0}
    on_positive = KreinRidge("precomputed", regularizer="strong", **sphere)
    models = {
        "constant": Majority(),
        "krein": SignOf(
            KreinRidge("precomputed", search=GradientSearch(n_restarts=10, max_iter=200), **sphere)
        ),
        "k-svm": KreinMachine(),
        "lrr-sf": SignOf(similarities_as_features(K, folds)),
        "flip": SignOf(on_positive),
    }
    for mode in ("clip", "shift", "square"):
        models[mode] = SignOf(make_pipeline(SpectrumTransformer(mode), on_positive))
    models["calibrated"] = KreinRidgeClassifier("precomputed", cv=folds, random_state=0)
    return models


def done():
    """The rows of an earlier run, by set, method and fold."""
    if not RESULTS.exists():
        return {}
    with open(RESULTS, newline="") as lines:
        return {(row["set"], row["method"], int(row["fold"])): row for row in csv.DictReader(lines)}


def fold_errors(matrix, kind, is_one, train, test, known):
    """Yield method, error in per cent and processor seconds for one outer fold; methods in `known` are left out."""
    K = matrix[np.ix_(train, train)]
    K_test = matrix[np.ix_(test, train)]
    if kind == "distance":
        kernel = DissimilarityKernel().fit(K)
        K = kernel.transform(K)
        K_test = kernel.transform(K_test)
    for name, model in methods(K, is_one[train]).items():
        if name in known:
            continue
        start = time.process_time()
        predicted = model.fit(K, is_one[train]).predict(K_test)
        yield name, 100 * np.mean(predicted != is_one[test]), time.process_time() - start


def table2(n_folds, chosen, paper):
    """Run what is missing of the table; `paper` maps set and method to the published error."""
    rows = done()
    RESULTS.parent.mkdir(exist_ok=True)
    for name, published, matrix, kind, is_one in sets():
        if chosen and name not in chosen:
            continue
        folds = StratifiedKFold(10, shuffle=True, random_state=0)
        for fold, (train, test) in enumerate(folds.split(matrix, is_one)):
            if fold >= n_folds:
                break
            known = {method for key_set, method, key in rows if (key_set, key) == (name, fold)}
            for method, error, seconds in fold_errors(matrix, kind, is_one, train, test, known):
                theirs = paper.get((published, method), "")
                rows[name, method, fold] = dict(
                    zip(
                        HEADER,
                        (
                            name,
                            method,
                            fold,
                            len(is_one),
                            int(is_one.sum()),
                            round(error, 3),
                            theirs,
                            round(seconds, 2),
                        ),
                    )
                )
                print(name, method, fold, f"{error:.2f} %", f"{seconds:.1f} s", flush=True)
            write(rows)


def write(rows):
    """All rows in the order of sets, folds and methods."""
    with open(RESULTS, "w", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows(rows.values())
