"""The tables of Liu et al. (2021) on hyper-kernels, beside the paper's numbers.

    MERCERLESS_DATA=folder python -m benchmarks.papers.hyper [extension] [table1] [table2]

extension: relative error of similarities between new and known items / among new items, 70 % of at most 200 items
known, two splits. table1: a known kernel learned from its matrix on 40 % of the rows. table2: a kernel learned from
labels on 40 % of the rows, then a support vector machine; test accuracy in per cent.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from benchmarks.common import main, write
from benchmarks.papers.paper_sets import load
from benchmarks.papers.published import cell, published
from mercerless import HyperClassifier, HyperRidge, HyperSVR
from mercerless.kernels import Gaussian, GaussianHyper, Log

SETS = ("fertility", "wine", "sonar", "heart")
SPLITS = 3


# ------------------------------------------------------------------------------------------ new items
def similarities():
    """Title, items as vectors, and a similarity that no simple function of the vectors gives away."""
    wine = StandardScaler().fit_transform(load_wine().data)
    apart = np.abs(wine[:, None] - wine).sum(axis=2)
    yield "TL1 (wine)", wine, np.maximum(0.7 * wine.shape[1] - apart, 0.0)
    yield "log (wine)", wine, Log()(wine)
    ecg = load("dtw_ecg200")
    series = np.asarray(ecg["X"] if "X" in ecg else ecg.data, dtype=float)
    yield (
        "time warping (heartbeats)",
        StandardScaler().fit_transform(series),
        np.exp(-ecg.D / np.median(ecg.D)),
    )
    cancer = StandardScaler().fit_transform(load_breast_cancer().data)
    cancer = PCA(8, random_state=0).fit_transform(cancer)[:200]
    S = np.exp(-np.linalg.norm(cancer[:, None] - cancer, axis=2) / 4)
    ranks = np.argsort(np.argsort(S, axis=1), axis=1) / len(S)
    noise = np.random.default_rng(0).normal(size=S.shape) * 0.3 * ranks.std()
    noisy = (ranks + ranks.T + noise + noise.T) / 2
    yield "ranks with noise (breast cancer)", cancer, noisy


def bilinear(X, S, X_new):
    """k(x, z) = phi(x)' W phi(z) with kernel ridge regression on both sides: new-known and new-new."""
    K, K_new = Gaussian(np.sqrt(X.shape[1]))(X), Gaussian(np.sqrt(X.shape[1]))(X_new, X)
    weights = cho_solve(cho_factor(K + 1e-2 * np.eye(len(K))), K_new.T).T
    return weights @ S, weights @ S @ weights.T


def nearest(X, S, X_new):
    """The similarities of the nearest known item."""
    rows = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(X_new, return_distance=False)[:, 0]
    return S[rows], S[np.ix_(rows, rows)]


def learned(hyper_kernel):
    def extend(X, S, X_new):
        model = HyperRidge(hyper_kernel, random_state=0).fit(X, S)
        return model.transform(X_new), model.kernel_(X_new)

    return extend


def extension():
    methods = {
        "HyperRidge (tensor)": learned("tensor"),
        "HyperRidge (Gaussian)": learned("gaussian"),
        "bilinear ridge": bilinear,
        "nearest neighbor": nearest,
    }
    rows = []
    for title, items, S in similarities():
        errors = {method: [] for method in methods}
        for seed in range(2):
            known, new = train_test_split(np.arange(len(items)), train_size=0.7, random_state=seed)
            across, among = S[np.ix_(new, known)], S[np.ix_(new, new)]
            for method, extend in methods.items():
                one, two = extend(items[known], S[np.ix_(known, known)], items[new])
                errors[method].append([relative(one, across), relative(two, among)])
        means = {method: np.mean(e, axis=0) for method, e in errors.items()}
        rows.append(
            {"similarity": title} | {m: f"{one:.3f} / {two:.3f}" for m, (one, two) in means.items()}
        )
    write("hyper_extension", rows)


def relative(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


# ------------------------------------------------------------------------------------------ Tables 1 and 2
def data_of(name):
    data = load(name)
    return MinMaxScaler().fit_transform(np.asarray(data.data, dtype=float)), data.target


def machine_accuracy(K, K_new, y, y_new):
    """Of a support vector machine on the matrix, C by cross-validation."""
    size = np.abs(np.diagonal(K)).mean()
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": np.logspace(-2, 3, 6)}, cv=3)
    return 100 * search.fit(K / size, y).score(K_new / size, y_new)


def table1():
    rows = []
    for kind in ("gaussian", "log"):
        accuracy, rmse = published("hyper", f"1-{kind}"), published("hyper", f"1-{kind}-rmse")
        for name in SETS:
            X, y = data_of(name)
            known = Gaussian(np.sqrt(X.var(axis=0).sum())) if kind == "gaussian" else Log()
            printed = GaussianHyper(X.std(), 1.0)  # sigma^2 is "the variance of data"
            ridge = HyperRidge("gaussian", landmarks=300)
            svr = HyperSVR("gaussian", epsilon=0.01, landmarks=150)
            learners = {
                "ridge": clone(ridge).set_params(fit_intercept=True),
                "ridge, printed scale": clone(ridge).set_params(hyper_kernel=printed),
                "svr": svr,
                "svr, printed scale": clone(svr).set_params(hyper_kernel=printed),
                "tensor": HyperRidge("tensor"),
            }
            for method, learner in learners.items():
                theirs = method.partition(",")[0], name
                errors, scores = [], []
                for seed in range(SPLITS):
                    A, B, a, b = train_test_split(
                        X, y, train_size=0.4, stratify=y, random_state=seed
                    )
                    kernel = learner.fit(A, known(A)).kernel_
                    errors.append(np.sqrt(np.mean((kernel(B) - known(B)) ** 2)))
                    scores.append(machine_accuracy(kernel(A), kernel(B, A), a, b))
                rows.append(
                    {
                        "kernel": kind,
                        "data": name,
                        "method": method,
                        "error (paper)": cell(errors, rmse.get(theirs), 3),
                        "accuracy (paper)": cell(scores, accuracy.get(theirs)),
                    }
                )
    write("hyper_table1", rows)


def table2():
    known, rows = published("hyper", "2"), []
    grid = {"C": 2.0 ** np.arange(-5, 11, 2), "gamma": 2.0 ** np.arange(-9, 6, 2)}
    methods = {
        "SVM-CV": GridSearchCV(SVC(), grid, cv=5),
        "ridge-gaussian": HyperClassifier(HyperRidge("gaussian"), random_state=0),
        "svr-gaussian": HyperClassifier(HyperSVR("gaussian"), random_state=0),
        "ridge-wishart": HyperClassifier(HyperRidge("wishart", landmarks=200), random_state=0),
    }
    for method, model in methods.items():
        cells = {}
        for name in SETS:
            X, y = data_of(name)
            scores = []
            for seed in range(SPLITS):
                A, B, a, b = train_test_split(X, y, train_size=0.4, stratify=y, random_state=seed)
                scores.append(100 * model.fit(A, a).score(B, b))
            cells[name] = cell(scores, known.get((method, name)))
        rows.append({"method": method, **cells})
        write("hyper_table2", rows)


if __name__ == "__main__":
    main({"extension": extension, "table1": table1, "table2": table2})
