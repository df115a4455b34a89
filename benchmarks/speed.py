"""Ratios of processor times: what a fit costs beside something that everybody knows.

    python -m benchmarks.speed

The calls of a row take turns in one process on one thread, and the least time of each counts, so the ratios hold on any
machine and beside other work.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported

import numpy as np
from scipy.linalg import eigh
from sklearn.datasets import load_digits, make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.common import main, race, write
from mercerless import (
    DANKClassifier,
    HyperClassifier,
    KreinRidge,
    LABRegressor,
    SimilarityClassifier,
    TableRegressor,
)
from mercerless.kernels import TL1, DeltaGauss, Gaussian
from mercerless.spectra import SpectrumTransformer

GRID = {"C": np.logspace(-2, 4, 7)}


def pairs():
    """Name, our call, what it is compared with, and that call."""
    X, y = make_friedman1(1000, 8, noise=0.5, random_state=0)
    labels = (y > np.median(y)).astype(int)
    K = TL1(5.6)(X)
    half, few = slice(0, 500), slice(0, 300)
    yield (
        "a Gaussian kernel matrix, 1000 rows",
        lambda: Gaussian(2.0)(X),
        "scikit-learn's rbf_kernel",
        lambda: rbf_kernel(X, gamma=0.125),
    )
    yield (
        "KreinRidge with all its settings, 1000 rows",
        lambda: KreinRidge("precomputed").fit(K, y),
        "five eigendecompositions of 800 rows, one of 1000",
        lambda: [eigh(K[:800, :800]) for _ in range(5)] + [eigh(K)],
    )
    yield (
        "KreinRidge on 200 landmarks, 20,000 rows",
        lambda: KreinRidge(DeltaGauss(2.0, 0.5), landmarks=200, random_state=0).fit(
            np.tile(X, (20, 1)), np.tile(y, 20)
        ),
        "KreinRidge on 1000 rows",
        lambda: KreinRidge(DeltaGauss(2.0, 0.5)).fit(X, y),
    )
    D = np.sqrt(np.maximum(K.max() - K, 0.0))
    repaired = make_pipeline(SpectrumTransformer(), SVC(kernel="precomputed"))
    search = GridSearchCV(
        repaired, {"spectrumtransformer__mode": ["clip", "flip"], "svc__C": GRID["C"]}, cv=5
    )
    yield (
        "SimilarityClassifier, 500 items",
        lambda: SimilarityClassifier("precomputed").fit(D[half, half], labels[half]),
        "a search over SVC, clip and flip, 14 settings",
        lambda: search.fit(K[half, half], labels[half]),
    )
    digits = load_digits()
    shapes = np.abs(digits.data[half, None] - digits.data[half]).sum(axis=2)
    yield (
        "SimilarityClassifier, 500 items, ten classes",
        lambda: SimilarityClassifier("precomputed").fit(shapes, digits.target[half]),
        "ten eigendecompositions of 500 rows",
        lambda: [eigh(shapes) for _ in range(10)],
    )
    yield (
        "TableRegressor, 1000 rows",
        lambda: TableRegressor().fit(X, y),
        "ten fits of gradient boosting",
        lambda: [HistGradientBoostingRegressor(random_state=0).fit(X, y) for _ in range(10)],
    )
    model, boosting = TableRegressor().fit(X, y), HistGradientBoostingRegressor().fit(X, y)
    yield (
        "predictions of TableRegressor, 1000 rows",
        lambda: model.predict(X),
        "those of gradient boosting",
        lambda: boosting.predict(X),
    )
    yield (
        "DANKClassifier, 1000 rows",
        lambda: DANKClassifier(Gaussian(1.0), C=10.0).fit(X, labels),
        "SVC",
        lambda: SVC(C=10.0, gamma=0.5).fit(X, labels),
    )
    yield (
        "LABRegressor, 50 support points, 1000 rows",
        lambda: LABRegressor(n_support=50, random_state=0).fit(X, y),
        "a search over kernel ridge, 49 settings",
        lambda: GridSearchCV(
            KernelRidge(kernel="rbf"),
            {"gamma": np.logspace(-3, 0, 7), "alpha": np.logspace(-4, 1, 7)},
        ).fit(X, y),
    )
    A, b = make_classification(300, 8, random_state=0)
    wide = {"C": np.logspace(-2, 4, 7), "gamma": np.logspace(-3, 1, 5)}
    yield (
        "HyperClassifier, 300 rows",
        lambda: HyperClassifier(random_state=0).fit(A[few], b[few]),
        "a search over SVC, 35 settings",
        lambda: GridSearchCV(SVC(), wide).fit(A[few], b[few]),
    )


def speed():
    rows = []
    for name, ours, reference, other in pairs():
        best = race({"ours": ours, "other": other}, repeats=3)
        ratio = best["ours"] / best["other"]
        rows.append({"fit": name, "times": f"{ratio:.2g}", "beside": reference})
        print(rows[-1], flush=True)
    write("speed", rows)


if __name__ == "__main__":
    main({"speed": speed})
