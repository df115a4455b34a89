"""Tables 3 and 4 of Liu et al. (2020): EEG, ijcnn1 and covtype, all rows at once ("exact") and in parts ("scalable").

C, the width and the numbers of parts are the paper's Table 3, features are scaled to [0, 1]; nothing is tuned. "Exact"
machines see all training rows; "scalable" ones one cluster each, and a new row is decided by the machine of its
cluster. DANK in parts has no rank penalty, as in the paper. With fewer rows than the paper's (``--rows``) there are
fewer parts of the same size. "eeg" is without the four rows with a value beyond 20 interquartile ranges from the median
(up to 26,000 of them), which decide how all others are scaled to [0, 1]; "eeg_all" has them. Every row of the result
names its numbers of rows and parts.
"""

import resource
import time
from typing import NamedTuple

import numpy as np
from dank_rivals import AlignedFeatures, BayesianMKL, LogDetMachine
from paper_sets import load
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, LinearSVC

from mercerless import DANKClassifier
from mercerless.kernels import Gaussian

HEADER = (
    "set", "method", "train_rows", "test_rows", "parts", "accuracy", "rank", "fit_seconds", "predict_seconds",
    "peak_gb", "paper_accuracy", "paper_rank", "paper_seconds",
)  # fmt: skip


class Setting(NamedTuple):
    """A row of the paper's Table 3."""

    n_train: int
    n_test: int
    C: float
    gamma: float
    n_parts: int


SETTINGS = {
    "eeg": Setting(7488, 7488, 32.0, 100.0, 5),
    "eeg_all": Setting(7490, 7490, 32.0, 100.0, 5),
    "ijcnn1": Setting(49_990, 91_701, 32.0, 2.0, 50),
    "covtype": Setting(464_810, 116_202, 32.0, 32.0, 200),
}
NOT_EXACT = ("svm", "dank exact")  # on covtype these take hours


class InParts(ClassifierMixin, BaseEstimator):
    """One machine per cluster of rows; a new row is decided by the machine of its cluster."""

    def __init__(self, machine, n_parts, random_state=0):
        self.machine = machine
        self.n_parts = n_parts
        self.random_state = random_state

    def fit(self, X, y):
        options = {"bisecting_strategy": "largest_cluster", "random_state": self.random_state}
        halves = BisectingKMeans(self.n_parts, **options).fit(X)
        self.clusters_ = KMeans(
            self.n_parts, init=halves.cluster_centers_, n_init=1, max_iter=1
        ).fit(X)
        self.machines_ = [self._machine(X, y, part) for part in range(self.n_parts)]
        self.classes_ = np.unique(y)
        return self

    def _machine(self, X, y, part):
        rows = self.clusters_.labels_ == part
        if len(np.unique(y[rows])) < 2:
            return DummyClassifier().fit(X[rows], y[rows])
        return clone(self.machine).fit(X[rows], y[rows])

    def predict(self, X):
        labels = self.clusters_.predict(X)
        predicted = np.empty(len(X), dtype=self.classes_.dtype)
        for part in np.unique(labels):
            rows = labels == part
            predicted[rows] = self.machines_[part].predict(X[rows])
        return predicted


def large_split(name, rows):
    """Training and test rows of the paper's numbers, or of at most ``rows`` to train, scaled to [0, 1]."""
    setting = SETTINGS[name]
    data = load(name.removesuffix("_all"))
    X = np.asarray(data.data, dtype=float)
    y = np.asarray(data.target)
    if name == "eeg":
        quartiles = np.quantile(X, [0.25, 0.75], axis=0)
        distance = np.abs(X - np.median(X, axis=0)) / (quartiles[1] - quartiles[0])
        ordinary = distance.max(axis=1) <= 20
        X = X[ordinary]
        y = y[ordinary]
    if name == "ijcnn1":
        X_test = np.asarray(data.data_test, dtype=float)
        y_test = np.asarray(data.target_test)
    else:
        sizes = {"train_size": setting.n_train, "test_size": setting.n_test}
        X, X_test, y, y_test = train_test_split(X, y, random_state=0, **sizes)
    if rows is not None and rows < len(X):
        chosen = np.random.default_rng(0).permutation(len(X))[:rows]
        X = X[chosen]
        y = y[chosen]
    scaler = MinMaxScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test), y, y_test


def methods(setting, n_parts):
    """Unfitted machines by name, cheap ones first."""
    gamma = setting.gamma
    gaussian = Gaussian(np.sqrt(0.5 / gamma))
    plain = SVC(C=setting.C, gamma=gamma, cache_size=1000)
    features = make_pipeline(AlignedFeatures(gamma), LinearSVC(C=setting.C, dual=False, tol=1e-3))
    dank = {"C": setting.C, "random_state": 0}
    return {
        "majority": DummyClassifier(),
        "RF": features,
        "svm scalable": InParts(plain, n_parts),
        "dank scalable": DANKClassifier(gaussian, n_parts=n_parts, rank_penalty=0.0, **dank),
        "svm": plain,
        "dank exact": DANKClassifier(gaussian, **dank),
        "LogDet scalable": InParts(LogDetMachine(gamma, C=setting.C), n_parts),
        "BMKL scalable": InParts(BayesianMKL(), n_parts),
    }


def large_row(name, method, model, data, n_parts, paper):
    """Fit and score one machine; processor seconds of both, the rank of F, and the process's peak memory so far."""
    X, X_test, y, y_test = data
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    accuracy = 100 * np.mean(model.predict(X_test) == y_test)
    predicted = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    parts = n_parts if "scalable" in method else 1
    known = [
        paper.get((name.removesuffix("_all"), f"{method} {column}"), "")
        for column in ("accuracy", "rank", "seconds")
    ]
    return [
        *(name, method, len(y), len(y_test), parts, f"{accuracy:.2f}", getattr(model, "rank_", "")),
        *(f"{fitted - start:.1f}", f"{predicted - fitted:.1f}", f"{peak:.2f}", *known),
    ]


def table4(sets, chosen, rows, paper, write):
    """Run the chosen machines on the chosen sets; ``write`` keeps every finished row."""
    for name in sets or ("eeg", "ijcnn1", "covtype"):
        setting = SETTINGS[name]
        data = large_split(name, rows)
        n_parts = max(2, round(setting.n_parts * len(data[0]) / setting.n_train))
        for method, model in methods(setting, n_parts).items():
            if chosen and method not in chosen:
                continue
            if not chosen and name == "covtype" and method in NOT_EXACT:
                continue
            row = large_row(name, method, model, data, n_parts, paper)
            print(*row, flush=True)
            write("table4", HEADER, [row], key=2)
