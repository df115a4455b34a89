"""The learners that a comparison runs: one line each says what it is, when it applies and how it is searched.

Every learner is a public estimator with its own inner search, so the one that is recommended can be copied as
code. Searches are of comparable effort: five-fold validation over some 5 to 30 settings. Scales are put into the
grids (``C`` relative to the mean self-similarity, ``gamma`` to the number of features), not into the data.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from mercerless.comparison.problem import Problem, as_distances, conversion
from mercerless.estimators.asymmetric import AsymmetricRidge, AsymmetricRidgeClassifier
from mercerless.estimators.dank import DANKClassifier, DANKRegressor
from mercerless.estimators.hyper import HyperClassifier, HyperRegressor
from mercerless.estimators.krein import KreinRidge, KreinRidgeClassifier, KreinSVC, KreinSVR
from mercerless.estimators.lab import LABClassifier, LABRegressor
from mercerless.estimators.similarity import SimilarityClassifierCV, SimilarityFeatures, SimilarityRegressorCV
from mercerless.kernels import TL1, Gaussian
from mercerless.spectra import SpectrumTransformer, decompose, symmetrize

STEPS = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Setting:
    """What a builder needs to know: the problem, the score that searches maximise, and the seed."""

    problem: Problem
    scoring: str
    random_state: int = 0

    def __sizeof__(self) -> int:
        # with its data, for joblib sends what is large to a Dask cluster once, and what is small with every task
        return object.__sizeof__(self) + int(np.sum(getattr(self.problem.X, "nbytes", 0))) + self.problem.y.nbytes

    @property
    def eigenvalues(self) -> NDArray:
        """Eigenvalues of the symmetric similarities of all training items."""
        return self.problem.eigenvalues

    def scale(self, mode: str) -> float:
        """Mean self-similarity after the spectrum was repaired by `mode`, the unit of 1/C."""
        s = self.eigenvalues
        repaired = {
            "clip": np.maximum(s, 0),
            "flip": np.abs(s),
            "square": s**2,
            "raw": s,
            "shift": s - min(0.0, s.min()),
        }[mode]
        return float(_round(max(repaired.mean(), 1e-3 * np.abs(s).mean(), np.finfo(float).tiny)))

    @property
    def spread(self) -> float:
        """Standard deviation of numeric targets, the unit of their errors."""
        return float(_round(np.std(self.problem.y)))

    def choose(self, classifier: Any, regressor: Any) -> Any:
        """Return the one for the task."""
        return classifier if self.problem.is_classification else regressor

    def search(self, estimator: BaseEstimator, grid: dict[str, list]) -> GridSearchCV:
        """Return `estimator` with a five-fold search over `grid`, whose names belong to the last step."""
        if isinstance(estimator, Pipeline):
            grid = {f"{estimator.steps[-1][0]}__{name}": values for name, values in grid.items()}
        return GridSearchCV(estimator, grid, scoring=self.scoring, cv=5)


def _round(values):
    """Three significant digits, so that grids read well in the code to copy."""
    return np.array([float(f"{value:.3g}") for value in np.atleast_1d(values)]).reshape(np.shape(values))


def _listed(values) -> list[float]:
    return [float(value) for value in np.atleast_1d(_round(values))]


@dataclass(frozen=True)
class Learner:
    """One competitor.

    Parameters
    ----------
    name : str
        What a user types.
    title : str
        What a reader sees.
    family : {"baseline", "repair", "mercerless"}
        Ordinary baseline, kernel machine on a repaired spectrum, or one of this library's own.
    make : callable of Setting
        Returns the unfitted estimator, which takes numbers.
    kind : {"matrix", "table"}
        What it learns from.
    task : str or None
        The only task it does; None does both.
    takes : {"symmetric", "given", "directed", "distances"}
        For matrices: the symmetric part, the entries as given (``"directed"``: only if the directions differ), or
        distances.
    excuse : callable of Problem
        Why it does not apply, or None.
    group : str
        Learners of one group run in one task, because they share decompositions.
    """

    name: str
    title: str
    family: str
    make: Callable[[Setting], BaseEstimator]
    kind: str = "matrix"
    task: str | None = None
    takes: str = "symmetric"
    excuse: Callable[[Problem], str | None] = lambda problem: None
    group: str = ""

    def build(self, setting: Setting) -> BaseEstimator:
        """Return the unfitted estimator, after the preprocessing that a table of more than numbers needs."""
        estimator = self.make(setting)
        preprocessor = setting.problem.preprocessor
        return estimator if preprocessor is None else make_pipeline(clone(preprocessor), estimator)

    def applies(self, problem: Problem) -> bool:
        """Whether it is made for this kind of data and task at all."""
        if self.takes == "directed" and not problem.asymmetry:
            return False
        return problem.is_matrix == (self.kind == "matrix") and self.task in (None, problem.task)


# ------------------------------------------------------------------------------------ the data a learner takes


def matrix_for(problem: Problem, takes: str) -> NDArray:
    """Return the training matrix in the form a learner takes; tables are as they are."""
    if not problem.is_matrix:
        return problem.X
    X = symmetrize(problem.X) if problem.asymmetry and takes in ("symmetric", "distances") else problem.X
    return rows_for(problem, takes, X)


def rows_for(problem: Problem, takes: str, rows: NDArray) -> NDArray:
    """Return rows of any items against the training items in the form a learner takes."""
    if problem.is_matrix and takes == "distances":
        return as_distances(rows, problem.kind, float(problem.X.min()), float(problem.X.max()))
    return rows


# ------------------------------------------------------------------------------------------------- the builders


def _steps(setting: Setting, *steps: BaseEstimator) -> BaseEstimator:
    """Return the steps after the conversion of distances, as a pipeline where there are several."""
    steps = (conversion(setting.problem.kind), *steps) if setting.problem.small_is_like else steps
    return make_pipeline(*steps) if len(steps) > 1 else steps[0]


def _scaled(estimator: BaseEstimator) -> Pipeline:
    return make_pipeline(StandardScaler(), estimator)


def _dummy(setting: Setting) -> BaseEstimator:
    return setting.choose(DummyClassifier(), DummyRegressor())


def _neighbors(setting: Setting) -> GridSearchCV:
    metric = "precomputed" if setting.problem.is_matrix else "minkowski"
    nearest = setting.choose(KNeighborsClassifier, KNeighborsRegressor)(metric=metric)
    if not setting.problem.is_matrix:
        nearest = _scaled(nearest)
    smallest = int(0.6 * len(setting.problem.y))  # the training part of a training part
    return setting.search(nearest, {"n_neighbors": [k for k in (1, 2, 3, 5, 9, 15, 25) if k < smallest]})


def _machine(mode: str) -> Callable[[Setting], GridSearchCV]:
    """A support vector machine on the matrix with its spectrum repaired by `mode`."""

    def build(setting: Setting) -> GridSearchCV:
        unit = 1.0 / setting.scale(mode)
        if setting.problem.is_classification:
            machine, grid = SVC(kernel="precomputed"), {"C": _listed(unit * np.logspace(-2, 3, 6))}
        else:
            machine = SVR(kernel="precomputed")
            grid = {
                "C": _listed(setting.spread * unit * np.logspace(-1, 3, 5)),
                "epsilon": _listed(setting.spread * np.array([0.03, 0.1, 0.3])),
            }
        machine.set_params(max_iter=100_000)
        repair = () if mode == "raw" else (SpectrumTransformer(mode),)
        return setting.search(_steps(setting, *repair, machine), grid)

    return build


def _linear(setting: Setting) -> GridSearchCV:
    linear = setting.choose(LogisticRegression(max_iter=2000), Ridge())
    grid = setting.choose({"C": [0.001, *STEPS]}, {"alpha": [0.1, 1.0, 10.0, 100.0, 1000.0]})
    return setting.search(_scaled(linear), grid)


def _vector_machine(setting: Setting) -> GridSearchCV:
    gammas = _listed(np.array([0.03, 0.1, 0.3, 1.0, 3.0]) / setting.problem.n_features)
    if setting.problem.is_classification:
        return setting.search(_scaled(SVC()), {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": gammas})
    grid = {"C": _listed(setting.spread * np.array([0.1, 1.0, 10.0, 100.0, 1000.0])), "gamma": gammas}
    machine = SVR(epsilon=float(_round(0.03 * setting.spread)), max_iter=1_000_000)
    return setting.search(_scaled(machine), grid)


def _kernel_ridge(kernel: str) -> Callable[[Setting], GridSearchCV]:
    def build(setting: Setting) -> GridSearchCV:
        gammas = np.array([0.03, 0.1, 0.3, 1.0, 3.0]) / setting.problem.n_features
        grid = {"alpha": [1e-4, 1e-3, 1e-2, 0.1, 1.0], "gamma": _listed(gammas)}
        return setting.search(_scaled(KernelRidge(kernel=kernel)), grid)

    return build


def _boosting(setting: Setting) -> GridSearchCV:
    boosting = setting.choose(HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    grid = {"learning_rate": [0.05, 0.15], "max_leaf_nodes": [4, 12, 31]}
    return setting.search(boosting(max_iter=150, random_state=setting.random_state), grid)


def _features(setting: Setting) -> GridSearchCV:
    """A linear model on the similarities, or distances, to the training items."""
    linear = setting.choose(LogisticRegression(max_iter=1000), Ridge())
    grid = setting.choose({"C": [1e-4, 1e-3, 0.01, 0.1, 1.0]}, {"alpha": [1.0, 10.0, 100.0, 1e3, 1e4]})
    return setting.search(make_pipeline(SimilarityFeatures("precomputed"), StandardScaler(), linear), grid)


def _krein_ridge(setting: Setting) -> BaseEstimator:
    return _steps(setting, setting.choose(KreinRidgeClassifier, KreinRidge)("precomputed"))


def _krein_machine(setting: Setting) -> GridSearchCV:
    unit = 1.0 / setting.scale("flip")
    if setting.problem.is_classification:
        machine, grid = KreinSVC("precomputed", max_iter=100_000), {"C": _listed(unit * np.logspace(-1, 2, 4))}
    else:
        machine = KreinSVR("precomputed", epsilon=float(_round(0.05 * setting.spread)), max_iter=100_000)
        grid = {"C": _listed(setting.spread * unit * np.logspace(-1, 3, 5))}
    return setting.search(_steps(setting, machine), {**grid, "negative_penalty": [1.0, 10.0]})


def _stack(setting: Setting) -> BaseEstimator:
    kind = setting.problem.kind if setting.problem.small_is_like else "similarity"
    stack = setting.choose(SimilarityClassifierCV, SimilarityRegressorCV)
    return stack("precomputed", input=kind, random_state=setting.random_state)


def _directed_ridge(setting: Setting) -> BaseEstimator:
    kind = setting.problem.kind if setting.problem.small_is_like else "similarity"
    return setting.choose(AsymmetricRidgeClassifier, AsymmetricRidge)("precomputed", input=kind, side="left")


def _size_excuse(most: int) -> Callable[[Problem], str | None]:
    def excuse(problem: Problem) -> str | None:
        n = len(problem.y)
        return f"it needs a matrix of all {n} x {n} pairs; at most {most} items" if n > most else None

    return excuse


def _learned_kernel(setting: Setting) -> Pipeline:
    return _scaled(setting.choose(HyperClassifier, HyperRegressor)(random_state=setting.random_state))


def _indefinite_ridge(setting: Setting) -> GridSearchCV:
    """Krein ridge with a truncated distance: an indefinite kernel that is linear in pieces."""
    widths = np.array([0.3, 0.7, 1.5]) * setting.problem.n_features
    ridge = setting.choose(KreinRidgeClassifier, KreinRidge)()
    return setting.search(_scaled(ridge), {"kernel": [TL1(width) for width in _listed(widths)]})


def _gaussian_ridge(setting: Setting) -> GridSearchCV:
    widths = np.array([0.4, 0.7, 1.3, 2.2, 4.0]) * np.sqrt(setting.problem.n_features)
    return setting.search(_scaled(KreinRidgeClassifier()), {"kernel": [Gaussian(width) for width in _listed(widths)]})


def _local(setting: Setting) -> Pipeline:
    return _scaled(setting.choose(LABClassifier, LABRegressor)(random_state=setting.random_state))


def _adapted(setting: Setting) -> GridSearchCV:
    grid = {"C": [1.0, 10.0, 100.0], "adaptivity": [0.1, 0.5]}
    if setting.problem.is_classification:
        return setting.search(_scaled(DANKClassifier(random_state=setting.random_state)), grid)
    machine = DANKRegressor(epsilon=float(_round(0.1 * setting.spread)), random_state=setting.random_state)
    return setting.search(_scaled(machine), {**grid, "C": _listed(setting.spread * np.array(grid["C"]))})


#: Every competitor, cheap ones first: with a short budget the last ones are left out.
LEARNERS: tuple[Learner, ...] = (
    Learner("dummy", "Constant guess", "baseline", _dummy),
    Learner("neighbors", "Nearest neighbours", "baseline", _neighbors, takes="distances"),
    Learner("svm-raw", "SVM on the raw matrix", "repair", _machine("raw"), group="spectrum"),
    Learner("svm-clip", "SVM on the clipped spectrum", "repair", _machine("clip"), group="spectrum"),
    Learner("svm-flip", "SVM on the flipped spectrum", "repair", _machine("flip"), group="spectrum"),
    Learner("svm-square", "SVM on the squared spectrum", "repair", _machine("square"), group="spectrum"),
    Learner("svm-shift", "SVM on the shifted spectrum", "repair", _machine("shift"), group="spectrum"),
    Learner("features", "Linear model on similarities", "baseline", _features, takes="given"),
    Learner("krein-ridge", "Krein ridge", "mercerless", _krein_ridge),
    Learner("krein-svm", "Krein SVM", "mercerless", _krein_machine),
    Learner("stack", "Automatic stack", "mercerless", _stack),
    Learner("asymmetric", "Asymmetric ridge", "mercerless", _directed_ridge, takes="directed"),
    Learner("dummy", "Constant guess", "baseline", _dummy, "table"),
    Learner("neighbors", "Nearest neighbours", "baseline", _neighbors, "table"),
    Learner("linear", "Linear model", "baseline", _linear, "table"),
    Learner("svm-gaussian", "SVM with Gaussian kernel", "baseline", _vector_machine, "table"),
    Learner(
        "ridge-gaussian",
        "Gaussian kernel ridge",
        "baseline",
        _kernel_ridge("rbf"),
        "table",
        "regression",
        excuse=_size_excuse(10_000),
    ),
    Learner(
        "ridge-laplace",
        "Laplace kernel ridge",
        "baseline",
        _kernel_ridge("laplacian"),
        "table",
        "regression",
        excuse=_size_excuse(10_000),
    ),
    Learner("ridge-gaussian", "Gaussian kernel ridge", "baseline", _gaussian_ridge, "table", "classification"),
    Learner("krein-ridge", "Krein ridge with TL1 kernel", "mercerless", _indefinite_ridge, "table"),
    Learner("lab", "Locally adaptive bandwidths", "mercerless", _local, "table"),
    Learner("boosting", "Gradient boosting", "baseline", _boosting, "table"),
    Learner("dank", "Data-adaptive kernel", "mercerless", _adapted, "table", excuse=_size_excuse(5000)),
    Learner("hyper", "Learned kernel", "mercerless", _learned_kernel, "table", excuse=_size_excuse(20_000)),
)


def select_learners(problem: Problem, names: tuple[str, ...] | None = None) -> tuple[list[Learner], dict[str, str]]:
    """Return the learners to run, and those left out with the reason.

    Parameters
    ----------
    problem : Problem
        The data.
    names : tuple of str or None, default=None
        The wanted ones; None for all.

    Returns
    -------
    chosen : list of Learner
        In the order in which they are run.
    left_out : dict of str to str
        Reasons by name.
    """
    possible = {learner.name: learner for learner in LEARNERS if learner.applies(problem)}
    for name in names or ():
        if name not in possible:
            raise ValueError(f"There is no learner {name!r} for this data; there are {', '.join(possible)}.")
    chosen, left_out = [], {}
    for name, learner in possible.items():
        if names is not None and name not in names:
            continue
        reason = learner.excuse(problem)
        if reason is None:
            chosen.append(learner)
        else:
            left_out[name] = reason
    return chosen, left_out


def count_settings(estimator: BaseEstimator) -> int:
    """How many settings a grid search tries; 0 for a learner that searches in its own way, or not at all."""
    estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return len(ParameterGrid(estimator.param_grid)) if isinstance(estimator, GridSearchCV) else 0


# ------------------------------------------------------------------------------------------ shared decompositions


class SharedSpectrum(SpectrumTransformer):
    """`SpectrumTransformer` that remembers what it computed for the same matrix, whoever asked for it.

    All learners see the same splits, so the matrix of one fold comes back for every mode and every C. It is known
    by its contents, so sharing cannot change a result.
    """

    def fit(self, X, y=None):
        K = self._check_train(X)
        digest = _digest(K)
        self.key_ = (self.mode, self.rtol, digest)
        state = _MEMORY.get(self.key_, lambda: self._state(K, digest))
        vars(self).update(state)
        return self

    def _state(self, K: NDArray, digest: bytes) -> dict[str, Any]:
        if self.mode == "shift":  # needs only the smallest eigenvalue, and rows known again
            return vars(SpectrumTransformer("shift", self.rtol).fit(K))
        s, V, _ = _MEMORY.get((self.rtol, digest), lambda: decompose(K, self.rtol))
        ratio = {"clip": s > 0, "flip": np.sign(s), "square": s}[self.mode]
        return {"eigenvalues_": s, "shift_": 0.0, "map_": ((V * ratio) @ V.T).astype(K.dtype, copy=False)}

    def transform(self, X):
        return _MEMORY.get((*self.key_, _digest(X)), lambda: super(SharedSpectrum, self).transform(X))


class _Memory:
    """Results by key, the least recently used dropped beyond a number of bytes."""

    def __init__(self, limit: int):
        self.limit, self.results = limit, OrderedDict()

    def get(self, key: tuple, compute: Callable[[], Any]) -> Any:
        if key not in self.results:
            self.results[key] = compute()
            while len(self.results) > 1 and sum(map(_size, self.results.values())) > self.limit:
                self.results.popitem(last=False)
        self.results.move_to_end(key)
        return self.results[key]


def _size(result: Any) -> int:
    values = result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else [result]
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


def _digest(X: NDArray) -> bytes:
    X = np.ascontiguousarray(X)
    return blake2b(X.data, digest_size=16, key=str((X.shape, X.dtype)).encode()).digest()


_MEMORY = _Memory(2**29)


def forget_decompositions() -> None:
    """Drop everything that was shared."""
    _MEMORY.results.clear()


def share_decompositions(estimator: BaseEstimator) -> BaseEstimator:
    """Replace the spectrum transformers inside a search by ones that share their work; returns `estimator`."""
    inner = getattr(estimator, "estimator", None)
    if isinstance(inner, Pipeline):
        inner.steps = [
            (name, SharedSpectrum(**step.get_params()) if type(step) is SpectrumTransformer else step)
            for name, step in inner.steps
        ]
    return estimator
