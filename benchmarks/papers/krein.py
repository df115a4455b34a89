"""The tables of Oglic and Gaertner (2018), and the figures of Liu et al. (2021), beside the papers' numbers.

    MERCERLESS_DATA=folder python -m benchmarks.papers.krein [table1] [table2] [table3] [outside] [figures]

Table 1: treatments of matrices B - inv(B), root mean squared error of targets with the range 100, ten folds of two
draws. Table 2: structured data, misclassified items in ten folds; every penalty by five inner folds. Table 3: kernels
on vectors, tuned by the gradient of the validation error from two starts of twelve steps, four folds of at most 300
rows. Outside: area under the curve on the antimicrobial peptides of a study with the Krein support vector machine,
from normalized edit distances, with defaults. Figures: eigenvalues of four kernels on monks3, and observed learning
rates of two of them.
"""

import warnings

import numpy as np
from scipy.linalg import eigvalsh
from scipy.stats import linregress
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import main, write
from benchmarks.papers.generators import make_krein_matrix
from benchmarks.papers.paper_sets import load
from benchmarks.papers.published import cell, published
from mercerless import (
    Ball,
    GradientSearch,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    SimilarityClassifier,
    Sphere,
)
from mercerless.datasets import load_digit_shapes
from mercerless.kernels import (
    TL1,
    DeltaGauss,
    Epanechnikov,
    Gaussian,
    Log,
    Sigmoid,
    SphericalPolynomial,
)
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer

REPAIRS = ("clip", "shift", "square")
CLASSES = ("haberman", "ionosphere", "breastcancer", "australian", "pima")
NUMBERS = ("yacht", "pm10", "cps_85_wages", "airfoil")


# ------------------------------------------------------------------------------------------ Table 1
def treatments():
    """Two penalties, one on the flipped and on other spectra, and the indefinite penalty."""
    strong = KreinRidge("precomputed", regularizer="strong", random_state=0)
    models = {"krein": KreinRidge("precomputed", random_state=0), "flip": strong}
    for mode in REPAIRS:
        models[mode] = make_pipeline(SpectrumTransformer(mode), strong)
    models["omcs"] = KreinRidge(
        "precomputed", regularizer="indefinite", constraint=Sphere(), random_state=0
    )
    return models


def table1():
    known, rows = published("krein", "1"), []
    for kernel in ("gaussian", "sigmoid", "ard_sigmoid"):
        for n in (100, 500):
            errors = {name: [] for name in treatments()}
            for draw in range(2):
                K, y = make_krein_matrix(n, kernel=kernel, random_state=draw)
                y = 100 * (y - y.mean()) / np.ptp(y)
                for train, test in KFold(10, shuffle=True, random_state=draw).split(K):
                    for name, model in treatments().items():
                        model.fit(K[np.ix_(train, train)], y[train])
                        missed = model.predict(K[np.ix_(test, train)]) - y[test]
                        errors[name].append(np.sqrt(np.mean(missed**2)))
            cells = {m: cell(e, known.get((f"{kernel}-{n}", m))) for m, e in errors.items()}
            rows.append({"matrix": f"{kernel}, n = {n}", **cells})
    write("krein_table1", rows)


# ------------------------------------------------------------------------------------------ Table 2
def structured_sets():
    """Title, the paper's name, dissimilarities, and which items are of the class with the label one."""
    coil, balls, protein = load("coilyork_half"), load("balls3d_regen"), load("protein")
    shapes, beats = load_digit_shapes(), load("dtw_ecg200")
    yield "coilyork, half of it", "coilyork", (coil.D + coil.D.T) / 2, coil.target == 1
    yield "balls 3D, drawn again", "balls 3D", balls.D, balls.target == 1
    yield "protein", "protein", protein.D, protein.target == 1
    yield "digit 1 of digit shapes, Hausdorff distance", "", shapes.D, shapes.target == 1
    yield "heartbeats, time warping", "", beats.D, beats.target == 1


class SignOf(ClassifierMixin, BaseEstimator):
    """The paper's classifier: the sign of a regression on standardized labels."""

    def __init__(self, regressor):
        self.regressor = regressor

    def fit(self, K, is_one):
        labels = np.where(is_one, 1.0, -1.0)
        self.classes_ = np.array([False, True])
        self.regressor.fit(K, (labels - labels.mean()) / labels.std())
        return self

    def predict(self, K):
        return self.regressor.predict(K) > 0


def machines(K):
    """Machines by the name of their column."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    sphere = {"constraint": Sphere(), "random_state": 0}
    strong = KreinRidge("precomputed", regularizer="strong", **sphere)
    costs = {"C": np.logspace(-2, 4, 7) / np.abs(np.diagonal(K)).mean()}
    ridges = {"alpha": np.logspace(-7, 1, 9) * np.linalg.norm(K, 2) ** 2}
    on_rows = GridSearchCV(Ridge(), ridges, scoring="neg_mean_squared_error", cv=5)
    return {
        "krein": SignOf(KreinRidge("precomputed", **sphere)),
        "k-svm": GridSearchCV(KreinSVC("precomputed"), costs, cv=folds),
        "lrr-sf": SignOf(on_rows),
        "flip": SignOf(strong),
        **{mode: SignOf(make_pipeline(SpectrumTransformer(mode), strong)) for mode in REPAIRS},
        "KreinRidgeClassifier": KreinRidgeClassifier("precomputed", random_state=0),
    }


def table2():
    known, rows = published("krein", "2"), []
    for title, name, D, is_one in structured_sets():
        errors = {}
        for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(D, is_one):
            kernel = DissimilarityKernel().fit(D[np.ix_(train, train)])
            K, K_test = (kernel.transform(D[np.ix_(part, train)]) for part in (train, test))
            for method, model in machines(K).items():
                wrong = model.fit(K, is_one[train]).predict(K_test) != is_one[test]
                errors.setdefault(method, []).append(100 * np.mean(wrong))
        share = f"{title} ({is_one.sum()} of {len(is_one)})"
        cells = {method: cell(e, known.get((name, method))) for method, e in errors.items()}
        smaller = 100 * min(is_one.mean(), 1 - is_one.mean())
        rows.append({"set (class one, items)": share, "constant": cell(smaller), **cells})
    write("krein_table2", rows)


# ------------------------------------------------------------------------------------------ Table 3
def kernels(d):
    """The kernels of the table; lengths are only starting values."""
    return {
        "sigmoid": Sigmoid(1.0, -0.5),
        "rl-sigmoid": Sigmoid(np.ones(d), 0.0),
        "delta-gauss": DeltaGauss(1.0, 0.5),
        "epanechnikov": Epanechnikov(np.ones(d)),
        "gauss": Gaussian(1.0),
        "rl-gauss": Gaussian(np.ones(d)),
    }


def table3():
    known, rows = published("krein", "3"), []
    for name in CLASSES + NUMBERS:
        data, classify = load(name), name in CLASSES
        X, y = np.asarray(data.data, dtype=float), np.asarray(data.target)
        keep = np.random.default_rng(0).permutation(len(y))[:300]
        X, y = StandardScaler().fit_transform(X[keep]), y[keep]
        X = X[:, X.std(axis=0) > 0]
        if not classify:
            y = 100 * (y - y.mean()) / np.ptp(y)
        folds = (StratifiedKFold if classify else KFold)(4, shuffle=True, random_state=0)
        machine = KreinRidgeClassifier if classify else KreinRidge
        cells = {}
        for label, kernel in kernels(X.shape[1]).items():
            errors = []
            for train, test in folds.split(X, y):
                search = GradientSearch(n_restarts=2, max_iter=12)
                model = machine(kernel, constraint=Sphere(), search=search, random_state=0)
                predicted = model.fit(X[train], y[train]).predict(X[test])
                wrong = (predicted != y[test]) if classify else (predicted - y[test]) ** 2
                errors.append(100 * np.mean(wrong) if classify else np.sqrt(np.mean(wrong)))
            cells[label] = cell(errors, known.get((name, label)))
        rows.append({"set (rows used)": f"{name} ({len(y)})", **cells})
        write("krein_table3", rows)


# ------------------------------------------------------------------------------------------ outside of the papers
def outside():
    peptides, rows = load("amp_edit"), []
    for model in (
        SimilarityClassifier("precomputed"),
        KreinSVC("precomputed"),
        KreinRidgeClassifier("precomputed"),
    ):
        model.fit(peptides.K, peptides.target)
        area = roc_auc_score(peptides.target_test, model.decision_function(peptides.K_test))
        rows.append({"learner": type(model).__name__, "AUC": f"{area:.3f}"})
    write("krein_outside", [*rows, {"learner": "best of the study (2023)", "AUC": "0.967"}])


# ------------------------------------------------------------------------------------------ Figures of Liu et al.
def figures():
    """Eigenvalues of four kernels (Figure 1), and exponents of observed errors (Figure 2)."""
    monks = load("monks3")
    lowest, highest = monks.data.min(axis=0), monks.data.max(axis=0)
    X, X_test = ((A - lowest) / (highest - lowest) for A in (monks.data, monks.data_test))
    y, truth = monks.target.astype(float), monks.target_test.astype(float)
    four = {
        "spherical polynomial": SphericalPolynomial(10),
        "TL1": TL1(0.7 * 6),
        "delta-gauss": DeltaGauss(np.sqrt(0.5), np.sqrt(0.05)),
        "log": Log(),
    }
    rows = []
    for name, kernel in four.items():
        s = eigvalsh(kernel(X))
        rounding = 1e-9 * np.abs(s).max()
        count = {"positive": int(np.sum(s > rounding)), "negative": int(np.sum(s < -rounding))}
        rows.append(
            {"kernel": name, "largest eigenvalue": f"{s[-1]:.4g}", "smallest": f"{s[0]:.4g}"}
            | count
        )
    write("krein_eigenvalues", rows)
    rows, sizes = [], (15, 22, 32, 46, 66, 90, 122)
    for penalty, regularizer in {"<f, f>": "indefinite", "nonnegative": "components"}.items():
        for name, theirs in {"delta-gauss": 0.5, "log": 0.33}.items():
            errors = [excess(four[name], regularizer, X, y, X_test, truth, m) for m in sizes]
            line = linregress(np.log(sizes), np.log(errors))
            observed = f"{-line.slope:.2f} ± {line.stderr:.2f}"
            rows.append(
                {"kernel": name, "penalty": penalty, "observed exponent": observed, "paper": theirs}
            )
    write("krein_rates", rows)


def excess(kernel, regularizer, X, y, X_test, truth, m, repeats=20):
    """Mean squared error of clipped predictions against noise-free labels, of m random rows."""
    errors = []
    for draw in range(repeats):
        rows = np.random.default_rng(draw).permutation(len(y))[:m]
        model = KreinRidge(
            kernel,
            alpha_positive=1 / m,
            alpha_negative=1 / m,
            regularizer=regularizer,
            constraint=Ball(),
            fit_intercept=False,
            cv=3,
            random_state=0,
        )
        predicted = np.clip(model.fit(X[rows], y[rows]).predict(X_test), -1, 1)
        errors.append(np.mean((predicted - truth) ** 2))
    return np.mean(errors)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="regularizer='indefinite'")
    main(
        {
            "table1": table1,
            "table2": table2,
            "table3": table3,
            "outside": outside,
            "figures": figures,
        }
    )
