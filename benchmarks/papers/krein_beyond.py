"""Beyond the papers, beside what it would replace: signed random features, the sphere and directions on landmarks.

    MERCERLESS_DATA=... python benchmarks/papers/krein_beyond.py features [--sets waves electrical]
    MERCERLESS_DATA=... python benchmarks/papers/krein_beyond.py sphere
    python benchmarks/papers/krein_beyond.py directed

``features``: a stationary indefinite kernel is the Fourier transform of a signed measure (Liu et al., arXiv
2006.00247), whose positive and negative part give features with signs (`SignedRandomFeatures`); ridge regression on
them against `KreinRidge` on as many landmarks. ``sphere``: the variance-constrained least squares of Oglic and Gaertner
(arXiv 1809.02157) on landmarks, against the same with all rows and against plain ridge regression. ``directed``:
`AsymmetricRidge` on landmarks (compare arXiv 2406.08748) against all items, and against a linear machine on that
paper's own embedding, coupled singular vectors. Every comparison runs in one process, in turns. Writes
results/krein_beyond_<part>.csv, row by row.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from directed import _blocks, _containment, _kullback_leibler
from paper_sets import load
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercerless import (
    AsymmetricRidgeClassifier,
    DirectedEmbedding,
    KreinRidge,
    SignedRandomFeatures,
    SimilarityClassifier,
    Sphere,
)
from mercerless.kernels import DeltaGauss, Gaussian

HERE = Path(__file__).parent


def keep(part, row, n_keys):
    """Print a row and put it in place of that with the same first columns."""
    print(*row.values(), flush=True)
    path = HERE / "results" / f"krein_beyond_{part}.csv"
    row = {key: f"{v:.4g}" if isinstance(v, float) else str(v) for key, v in row.items()}
    rows = []
    if path.exists():
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
    keys = list(row)[:n_keys]
    rows = [old for old in rows if any(old[key] != row[key] for key in keys)]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*rows, row])


def waves(n):
    """A smooth function of three features with noise of a tenth of its deviation."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(n, 3))
    f = np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1]) + X[:, 2] ** 2
    return X, f + 0.1 * f.std() * random.standard_normal(n)


def regression_set(name, seed):
    """10,000 rows at most, a fifth of them to test; features and target standardized."""
    if name == "waves":
        X, y = waves(10_000)
    else:
        data = load(name)
        X = np.asarray(data.data, dtype=float)
        y = np.asarray(data.target, dtype=float)
    rows = np.random.RandomState(0).permutation(len(X))[:10_000]
    X, T, y, t = train_test_split(X[rows], y[rows], test_size=0.2, random_state=seed)
    scaler = StandardScaler().fit(X)
    center = y.mean()
    unit = y.std()
    return scaler.transform(X), (y - center) / unit, scaler.transform(T), (t - center) / unit


class SignedFeatureRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on signed features with a penalty for each sign; five folds choose both."""

    penalties = np.logspace(-7, 1, 9)
    ratios = (0.01, 1.0, 100.0)

    def __init__(self, kernel, n_components, random_state=0):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X, y):
        features = SignedRandomFeatures(
            self.kernel, self.n_components, random_state=self.random_state
        )
        self.features_ = features.fit(X)
        Z = np.hstack([features.transform(X), np.ones((len(X), 1))])
        gram = Z.T @ Z
        linear = Z.T @ y
        errors = np.zeros((len(self.penalties), len(self.ratios)))
        for _, test in KFold(5, shuffle=True, random_state=0).split(Z):
            held = Z[test]
            inner = gram - held.T @ held
            right = linear - held.T @ y[test]
            for i, penalty in enumerate(self.penalties):
                for j, ratio in enumerate(self.ratios):
                    coef = self._solve(inner, right, len(Z) * penalty, ratio)
                    errors[i, j] += np.sum((held @ coef - y[test]) ** 2)
        i, j = np.unravel_index(errors.argmin(), errors.shape)
        self.coef_ = self._solve(gram, linear, len(Z) * self.penalties[i], self.ratios[j])
        return self

    def _solve(self, gram, linear, penalty, ratio):
        A = gram.copy()
        sizes = np.append(np.where(self.features_.signs_ > 0, penalty, ratio * penalty), 1e-10)
        A[np.diag_indices(len(A))] += sizes
        return cho_solve(cho_factor(A, check_finite=False), linear, check_finite=False)

    def predict(self, X):
        return self.features_.transform(X) @ self.coef_[:-1] + self.coef_[-1]


def compared(part, name, models, data, **columns):
    """Fit the models in turns on all splits and keep a row for each."""
    found = {method: [] for method in models}
    for X, y, T, t in data:
        for method, model in models.items():
            start = time.process_time()
            model = clone(model).fit(X, y)
            fitted = time.process_time()
            found[method].append((r2_score(t, model.predict(T)), fitted - start))
    for method, values in found.items():
        r2, seconds = np.mean(values, axis=0)
        row = {"set": name, **columns, "method": method, "splits": len(values), "rows": len(X)}
        keep(part, {**row, "r2": float(r2), "cpu_seconds": float(seconds)}, 2 + len(columns))


def features(options):
    """Signed random features against landmarks, as many of both."""
    for name in options.sets or ("waves", "electrical", "comp_activ"):
        splits = [regression_set(name, seed) for seed in range(options.splits or 2)]
        scale = np.sqrt(splits[0][0].shape[1]) * (0.5 if name == "waves" else 1.0)
        kernel = DeltaGauss(scale, scale / 3)
        for number in (200, 400, 800):
            models = {
                "landmarks": KreinRidge(kernel, landmarks=number, random_state=0),
                "signed features": SignedFeatureRidge(kernel, number),
                "landmarks, first Gaussian alone": KreinRidge(
                    Gaussian(scale), landmarks=number, random_state=0
                ),
            }
            compared("features", name, models, splits, number=number)


def sphere(options):
    """The variance constraint on landmarks and on all rows, and plain ridge regression on landmarks."""
    for name in options.sets or ("waves", "electrical", "comp_activ"):
        splits = [[part[:1500] for part in regression_set(name, 0)]]
        scale = np.sqrt(splits[0][0].shape[1]) * (0.5 if name == "waves" else 1.0)
        kernel = DeltaGauss(scale, scale / 3)
        on_sphere = {"constraint": Sphere(), "random_state": 0}
        models = {
            "all rows, sphere": KreinRidge(kernel, landmarks=None, **on_sphere),
            "400 landmarks, sphere": KreinRidge(kernel, landmarks=400, **on_sphere),
            "400 landmarks": KreinRidge(kernel, landmarks=400, random_state=0),
        }
        compared("sphere", name, models, splits)


class SingularVectors(ClassifierMixin, BaseEstimator):
    """Ridge regression on the coordinates of `DirectedEmbedding`, as sources and as targets."""

    def __init__(self, n_components=50, landmarks=None, center=False, kind="similarity"):
        self.n_components = n_components
        self.landmarks = landmarks
        self.center = center
        self.kind = kind

    def fit(self, K, y):
        self.embedding_ = DirectedEmbedding(
            "precomputed",
            self.n_components,
            kind=self.kind,
            center=self.center,
            landmarks=self.landmarks,
            random_state=0,
        )
        machine = RidgeClassifierCV(np.logspace(-6, 3, 10))
        self.machine_ = make_pipeline(StandardScaler(), machine)
        self.machine_.fit(self.embedding_.fit_transform(K), y)
        return self

    def predict(self, K, reverse):
        return self.machine_.predict(self.embedding_.transform(K, reverse))


def directed(options):
    """Directed comparisons of 1500 items, both directions given: all items against landmarks, in turns."""
    random = np.random.RandomState(0)
    sets = {
        "divergences": ("dissimilarity", *_kullback_leibler(1500, random)),
        "containment": ("similarity", *_containment(1500, random)),
        "graph": ("similarity", *_blocks(1500, 5, random)),
    }
    ridge = AsymmetricRidgeClassifier("precomputed", random_state=0)
    methods = {
        "all items": ridge,
        "50 landmarks": clone(ridge).set_params(landmarks=50),
        "100 landmarks": clone(ridge).set_params(landmarks=100),
        "200 landmarks": clone(ridge).set_params(landmarks=200),
        "50 singular vectors": SingularVectors(50),
        "50 singular vectors, centered": SingularVectors(50, center=True),
        "50 singular vectors of 200 landmarks": SingularVectors(50, landmarks=200),
        "automatic, both directions": SimilarityClassifier(
            "precomputed", direction="both", random_state=0
        ),
    }
    for name in options.sets or sets:
        kind, K, y = sets[name]
        found = {method: [] for method in methods}
        folds = StratifiedShuffleSplit(options.splits or 3, test_size=0.3, random_state=0)
        for train, test in folds.split(K, y):
            inner = K[np.ix_(train, train)]
            rows = K[np.ix_(test, train)]
            reverse = K[np.ix_(train, test)].T
            for method, template in methods.items():
                model = clone(template).set_params(kind=kind)
                start = time.process_time()
                model.fit(inner, y[train])
                seconds = time.process_time() - start
                hits = model.predict(rows, reverse=reverse) == y[test]
                found[method].append((100 * hits.mean(), seconds))
        for method, values in found.items():
            accuracy, seconds = np.mean(values, axis=0)
            row = {"set": name, "method": method, "splits": len(values), "rows": len(train)}
            keep("directed", {**row, "accuracy": float(accuracy), "cpu_seconds": float(seconds)}, 2)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["features", "sphere", "directed"])
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--splits", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    globals()[options.part](options)


if __name__ == "__main__":
    main()
