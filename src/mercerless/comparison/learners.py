"""The learners of a comparison: the automatic one, and the baselines that are well known for the kind of data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import mercerless
from mercerless.comparison.baselines import LargestMinus
from mercerless.comparison.problem import Problem
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer, symmetrize

Requested = (
    Sequence["str | BaseEstimator | tuple[str, BaseEstimator]"] | Mapping[str, BaseEstimator]
)
GUESS = "guess"


@dataclass(frozen=True)
class Learner:
    """One competitor: how it is built for a problem, and what data it takes.

    `takes` is "table", "matrix" (symmetric) or "hits". A grid has parameters of the estimator that `make` returns.
    """

    name: str
    title: str
    make: Callable[[Problem], BaseEstimator]
    takes: str = "table"
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    is_automatic: bool = False
    on_request: bool = False
    is_searched: bool = False
    is_users: bool = False

    def searched(self) -> "Learner":
        """The same learner with a search of its grid in the training data."""
        return replace(
            self,
            name=f"{self.name}-search",
            title=f"{self.title} (tuned)",
            make=partial(search, learner=self),
            grid={},
            is_searched=True,
        )


def search(problem: Problem, learner: Learner) -> BaseEstimator:
    """A search of the learner's grid."""
    scoring = "neg_log_loss" if problem.is_classification else "neg_mean_squared_error"
    cv = shuffled(choose(problem, StratifiedKFold, KFold))
    return GridSearchCV(learner.make(problem), dict(learner.grid), scoring=scoring, cv=cv)


def view(problem: Problem, takes: str) -> Any:
    """The data in the form that a learner takes."""
    if takes == "matrix":
        K = problem.matrix
        return symmetrize(K) if problem.is_directed else K
    return problem.X


# --------------------------------------------------------------------------------------------------- building blocks


def choose(problem: Problem, classifier: Any, regressor: Any) -> Any:
    """The one for the task."""
    return classifier if problem.is_classification else regressor


def shuffled(splitter: type) -> Any:
    """Three folds in random order: rows of files are often sorted."""
    return splitter(3, shuffle=True, random_state=0)


def encode(*steps: BaseEstimator) -> BaseEstimator:
    """Numbers of a table's columns before the steps."""
    return make_pipeline(mercerless.TableEncoder(), *steps)


def scale_target(estimator: BaseEstimator) -> BaseEstimator:
    """A regressor of standardized targets."""
    return TransformedTargetRegressor(estimator, transformer=StandardScaler())


def calibrate(estimator: BaseEstimator) -> BaseEstimator:
    """A classifier with probabilities."""
    return CalibratedClassifierCV(estimator, cv=shuffled(StratifiedKFold), ensemble=False)


def as_similarities(problem: Problem) -> list[BaseEstimator]:
    """The step that turns distances into similarities, if they are distances."""
    steps = {"distance": DissimilarityKernel(), "dissimilarity": DissimilarityKernel(power=1.0)}
    return [steps[problem.matrix_kind]] if problem.matrix_kind in steps else []


def unit(problem: Problem) -> float:
    """Mean self-similarity of the items after centering, the unit of 1 / C."""
    K = view(problem, "matrix")
    if problem.matrix_kind == "distance":
        K = -0.5 * K**2
    elif problem.matrix_kind == "dissimilarity":
        K = -K
    centered_trace = np.trace(K) - K.sum() / len(K)
    return float(f"{max(abs(centered_trace) / len(K), 1e-12):.3g}")


def repaired(problem: Problem, mode: str) -> BaseEstimator:
    """A support vector machine on the repaired spectrum of a matrix."""
    C = float(f"{1.0 / unit(problem):.3g}")
    machine = choose(problem, SVC(kernel="precomputed", C=C), SVR(kernel="precomputed", C=C))
    machine = make_pipeline(*as_similarities(problem), SpectrumTransformer(mode), machine)
    return choose(problem, calibrate(machine), scale_target(machine))


# ---------------------------------------------------------------------------------------------------------- learners


def given(problem: Problem, estimator: BaseEstimator) -> BaseEstimator:
    return estimator


def table(problem: Problem) -> BaseEstimator:
    return choose(
        problem,
        mercerless.TableClassifier(random_state=0),
        mercerless.TableRegressor(random_state=0),
    )


def linear(problem: Problem) -> BaseEstimator:
    model = choose(problem, LogisticRegression(max_iter=1000), Ridge())
    return encode(StandardScaler(), model)


def boosting(problem: Problem) -> BaseEstimator:
    return encode(
        choose(
            problem,
            HistGradientBoostingClassifier(random_state=0),
            HistGradientBoostingRegressor(random_state=0),
        )
    )


def forest(problem: Problem) -> BaseEstimator:
    classifier = ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0)
    return encode(choose(problem, classifier, ExtraTreesRegressor(200, random_state=0)))


def neighbors(problem: Problem) -> BaseEstimator:
    nearest = choose(problem, KNeighborsClassifier, KNeighborsRegressor)
    return encode(StandardScaler(), nearest(n_neighbors=10))


def machine(problem: Problem) -> BaseEstimator:
    if problem.is_classification:
        return calibrate(encode(StandardScaler(), SVC()))
    return scale_target(encode(StandardScaler(), SVR()))


def installed(
    problem: Problem, package: str, names: tuple[str, str], parameters: dict[str, Any]
) -> BaseEstimator:
    """Gradient boosting of another package."""
    return encode(getattr(import_module(package), choose(problem, *names))(**parameters))


def on_numbers(problem: Problem, names: tuple[str, str]) -> BaseEstimator:
    """A machine of this library on the standardized columns of a table."""
    estimator = getattr(mercerless, choose(problem, *names))()
    steps = encode(StandardScaler(), estimator)
    if not problem.is_classification:
        return scale_target(steps)
    return steps if hasattr(estimator, "predict_proba") else calibrate(steps)


def similarity(problem: Problem) -> BaseEstimator:
    estimator = choose(problem, mercerless.SimilarityClassifier, mercerless.SimilarityRegressor)
    return estimator("precomputed", kind=problem.matrix_kind, random_state=0)


def hits(problem: Problem) -> BaseEstimator:
    return choose(problem, mercerless.HitsClassifier, mercerless.HitsRegressor)(random_state=0)


def matrix_neighbors(problem: Problem) -> BaseEstimator:
    nearest = choose(problem, KNeighborsClassifier, KNeighborsRegressor)
    model = nearest(n_neighbors=10, metric="precomputed")
    if problem.matrix_kind == "distance":
        return make_pipeline(model)
    steps = as_similarities(problem)
    return make_pipeline(*steps, LargestMinus(), model)


def features(problem: Problem) -> BaseEstimator:
    model = choose(problem, LogisticRegression(C=0.01, max_iter=1000), Ridge(alpha=100.0))
    return make_pipeline(mercerless.SimilarityFeatures("precomputed"), StandardScaler(), model)


def krein_ridge(problem: Problem) -> BaseEstimator:
    estimator = choose(problem, mercerless.KreinRidgeClassifier, mercerless.KreinRidge)(
        "precomputed"
    )
    steps = make_pipeline(*as_similarities(problem), estimator)
    return steps if problem.is_classification else scale_target(steps)


def krein_machine(problem: Problem) -> BaseEstimator:
    estimator = choose(problem, mercerless.KreinSVC, mercerless.KreinSVR)("precomputed")
    steps = make_pipeline(*as_similarities(problem), estimator)
    return choose(problem, calibrate(steps), scale_target(steps))


BOOSTING = {
    "learning_rate": (0.03, 0.1),
    "max_leaf_nodes": (8, 31),
    "l2_regularization": (0.0, 10.0),
}
FOREST = {"min_samples_leaf": (1, 2, 5), "max_features": ("sqrt", 0.5, 1.0)}
NEIGHBORS = {"n_neighbors": (1, 3, 5, 10, 20, 40), "weights": ("uniform", "distance")}
MACHINE = {"C": (0.1, 1.0, 10.0, 100.0), "gamma": ("scale", 0.01, 0.1)}


def below(step: str, grid: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The grid of a step of a pipeline."""
    return {f"{step}__{name}": values for name, values in grid.items()}


def grids(problem: Problem) -> dict[str, dict[str, Sequence[Any]]]:
    """The grids of the learners of tables and of neighbors."""
    is_classification = problem.is_classification
    kind = "classifier" if is_classification else "regressor"
    inner = "estimator__svc" if is_classification else "regressor__svr"
    return {
        "linear": {"logisticregression__C": (0.01, 0.1, 1.0, 10.0, 100.0)}
        if is_classification
        else {"ridge__alpha": (0.01, 1.0, 100.0)},
        "boosting": below(f"histgradientboosting{kind}", BOOSTING),
        "forest": below(f"extratrees{kind}", FOREST),
        "neighbors": below(f"kneighbors{kind}", NEIGHBORS),
        "svm": below(inner, MACHINE),
        "features": {"logisticregression__C": (1e-4, 1e-3, 1e-2, 0.1)}
        if is_classification
        else {"ridge__alpha": (1.0, 10.0, 100.0, 1000.0)},
    }


#: Boosting of other packages, which run if they are installed.
PACKAGES: dict[str, tuple[str, tuple[str, str], dict[str, Any]]] = {
    "lightgbm": ("LightGBM", ("LGBMClassifier", "LGBMRegressor"), {"verbose": -1, "n_jobs": 1}),
    "catboost": (
        "CatBoost",
        ("CatBoostClassifier", "CatBoostRegressor"),
        {"verbose": False, "thread_count": 1, "allow_writing_files": False},
    ),
}
#: Machines of this library that run on tables if they are requested.
MACHINES = (
    ("dank", "Data-adaptive kernel", ("DANKClassifier", "DANKRegressor")),
    ("hyper", "Learned kernel", ("HyperClassifier", "HyperRegressor")),
    ("lab", "Local bandwidths", ("LABClassifier", "LABRegressor")),
)
#: Every learner, the automatic one first, then by the time that is usual.
LEARNERS: tuple[Learner, ...] = (
    Learner("table", "Table learner", table, is_automatic=True),
    Learner("linear", "Linear model", linear),
    Learner("boosting", "Gradient boosting", boosting),
    Learner("neighbors", "Nearest neighbors", neighbors),
    Learner("forest", "Extremely randomized trees", forest),
    Learner("svm", "Support vector machine", machine),
    *(
        Learner(name, title, partial(installed, package=name, names=names, parameters=parameters))
        for name, (title, names, parameters) in PACKAGES.items()
    ),
    *(
        Learner(name, title, partial(on_numbers, names=names), on_request=True)
        for name, title, names in MACHINES
    ),
    Learner("hits", "Hits learner", hits, "hits", is_automatic=True),
    Learner("similarity", "Similarity learner", similarity, "matrix", is_automatic=True),
    Learner("neighbors", "Nearest neighbors", matrix_neighbors, "matrix"),
    Learner("features", "Linear on similarities", features, "matrix"),
    *(
        Learner(
            f"svm-{mode}", f"SVM on the {past} spectrum", partial(repaired, mode=mode), "matrix"
        )
        for mode, past in {"clip": "clipped", "flip": "flipped", "shift": "shifted"}.items()
    ),
    Learner("krein-ridge", "Krein ridge", krein_ridge, "matrix"),
    Learner("krein-svm", "Krein SVM", krein_machine, "matrix"),
)


def applies(learner: Learner, problem: Problem) -> bool:
    """Whether a learner is made for this data."""
    if learner.name in PACKAGES and find_spec(learner.name) is None:
        return False
    if learner.takes == "matrix":
        return not problem.is_table
    return learner.takes == problem.kind


def select_learners(problem: Problem, requested: Requested | None = None) -> list[Learner]:
    """The learners to run: all that apply, or those requested; the automatic one is first."""
    grid_of = grids(problem)
    possible = {
        learner.name: replace(learner, grid=grid_of.get(learner.name, {}))
        for learner in LEARNERS
        if applies(learner, problem)
    }
    usual = [learner for learner in possible.values() if not learner.on_request]
    if requested is None:
        return usual
    if isinstance(requested, Mapping):
        return [*usual, *(users_learner(problem, name, one) for name, one in requested.items())]
    chosen: dict[str, Learner] = {}
    for item in requested:
        learner = requested_learner(problem, possible, item)
        if learner.name in chosen:
            raise ValueError(f"The learner {learner.name!r} is requested twice.")
        chosen[learner.name] = learner
    order = [name for name in possible if name in chosen]
    return [chosen[name] for name in [*order, *(name for name in chosen if name not in possible)]]


def requested_learner(problem: Problem, possible: Mapping[str, Learner], item: Any) -> Learner:
    """One entry of the requested learners: a name, an estimator, or both."""
    if isinstance(item, tuple) and len(item) == 2:
        return users_learner(problem, *item)
    if not isinstance(item, str):
        return users_learner(problem, type(item).__name__, item)
    if item not in possible:
        raise ValueError(
            f"There is no learner {item!r} for this data; there are {', '.join(possible)}."
        )
    return possible[item]


def users_learner(problem: Problem, name: str, estimator: Any) -> Learner:
    """An estimator of the user, which takes a table or the matrix."""
    if not all(hasattr(estimator, method) for method in ("fit", "predict", "get_params")):
        raise ValueError(
            f"The learner {name!r} is {estimator!r}; it must be an estimator with fit and predict."
        )
    takes = "table" if problem.is_table else "matrix"
    return Learner(name, name, partial(given, estimator=estimator), takes, is_users=True)
