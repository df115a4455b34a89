"""The learners that a comparison runs: one entry each, with its conditions, its builder and its search.

Every learner is a public estimator with its own inner search, so the one that is recommended can be copied as
code. Searches are of comparable effort: five-fold validation over some 5 to 30 settings. Scales are put into the
grids (``C`` relative to the mean self-similarity, ``gamma`` to the number of features), not into the data.

A learner with a grid has two forms: its search, and its defaults, which are the estimator inside the search. The
defaults are one of the settings that the search tries, and take seconds: a comparison scores them first.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    BaseShuffleSplit,
    GridSearchCV,
    ParameterGrid,
    ShuffleSplit,
    StratifiedShuffleSplit,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from mercerless.asymmetric.estimators import AsymmetricRidge, AsymmetricRidgeClassifier
from mercerless.comparison.options import Requested
from mercerless.comparison.problem import Problem, as_distances, conversion
from mercerless.comparison.records import Level
from mercerless.dank.estimators import DANKClassifier, DANKRegressor
from mercerless.hyper.machine import HyperClassifier, HyperRegressor
from mercerless.kernels import TL1, Gaussian
from mercerless.krein.estimators import KreinRidge, KreinRidgeClassifier, KreinSVC, KreinSVR
from mercerless.similarity.estimators import SimilarityClassifier, SimilarityRegressor
from mercerless.similarity.features import SimilarityFeatures
from mercerless.spectra import (
    Indefiniteness,
    Spectrum,
    SpectrumTransformer,
    indefiniteness,
    repaired_values,
    symmetrize,
)
from mercerless.table.estimators import TableClassifier, TableRegressor


@dataclass(frozen=True)
class ForMany:
    """Numbers of items from which on learners take a cheaper form, and the sizes that these forms work with."""

    #: More training items are many; half as many of a matrix, which is decomposed often.
    large: int = 2000
    landmarks: int = 500
    part_items: int = 1000  # items of one part of a learner that works on parts
    search_items: int = 1500  # items that a search trains on; twice as many test it
    #: The spectrum, which is computed before anything is run, is that of at most so many items.
    spectrum: int = 1500


FOR_MANY = ForMany()


class MatrixSpectrum(NamedTuple):
    """The spectrum of the symmetric similarities, computed once: of all items, or of `n_items` drawn from them."""

    eigenvalues: NDArray
    indefiniteness: Indefiniteness
    n_items: int


def spectrum_of(problem: Problem, random_state: int = 0) -> MatrixSpectrum:
    """Decompose the similarities of at most `FOR_MANY.spectrum` items."""
    K = problem.similarities
    if len(K) > FOR_MANY.spectrum:
        kept = np.sort(
            check_random_state(random_state).choice(len(K), FOR_MANY.spectrum, replace=False)
        )
        K = K[np.ix_(kept, kept)]
    values = np.linalg.eigvalsh(K)
    return MatrixSpectrum(values, indefiniteness(K, values), len(K))


@dataclass(frozen=True)
class Terms:
    """The input of a builder: the data, the score of searches, the seed, the number of training items, the spectrum."""

    problem: Problem
    scoring: str
    random_state: int = 0
    n_items: int = 0
    spectrum: MatrixSpectrum | None = None

    def __post_init__(self) -> None:
        if self.spectrum is None and self.problem.is_matrix:
            object.__setattr__(self, "spectrum", spectrum_of(self.problem, self.random_state))
        object.__setattr__(self, "n_items", self.n_items or len(self.problem.y))

    def for_items(self, n_items: int) -> Self:
        """The same for another number of training items."""
        return replace(self, n_items=n_items)

    @property
    def is_large(self) -> bool:
        """Whether learners take their forms for many items: for large data even if few of its items train."""
        return max(self.n_items, 0.8 * len(self.problem.y)) > (
            FOR_MANY.large // 2 if self.problem.is_matrix else FOR_MANY.large
        )

    @property
    def landmarks(self) -> dict[str, Any]:
        """Parameters of an estimator that works on landmarks if there are very many items, and its seed."""
        are_very_many = max(self.n_items, 0.8 * len(self.problem.y)) > FOR_MANY.large
        landmarks = self.n_landmarks if are_very_many else "auto"
        return {"landmarks": landmarks, "random_state": self.random_state}

    @property
    def is_indefinite(self) -> bool:
        """Whether the similarities have negative eigenvalues."""
        return self.spectrum is not None and not self.spectrum.indefiniteness.is_psd

    def __sizeof__(self) -> int:
        # with its data, for joblib sends what is large to a Dask cluster once, and what is small with every task
        return (
            object.__sizeof__(self)
            + int(np.sum(getattr(self.problem.X, "nbytes", 0)))
            + self.problem.y.nbytes
        )

    def scale(self, mode: str) -> float:
        """Mean self-similarity after the spectrum was repaired by `mode`, the unit of 1/C."""
        assert self.spectrum is not None
        s = self.spectrum.eigenvalues
        return float(
            _round(
                max(repaired_values(s, mode).mean(), 1e-3 * np.abs(s).mean(), np.finfo(float).tiny)
            )
        )

    @property
    def unit(self) -> float:
        """The unit of errors, and of penalties on them: the standard deviation of numeric targets, 1 for classes."""
        return 1.0 if self.problem.is_classification else float(_round(np.std(self.problem.y)))

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks for many items: fewer if only a part of them trains."""
        return min(FOR_MANY.landmarks, max(100, self.n_items // 4))

    @property
    def n_parts(self) -> int:
        """Number of parts of a thousand items that the training items are divided into."""
        return -(-self.n_items // FOR_MANY.part_items)

    def choose(self, classifier: Any, regressor: Any) -> Any:
        """Return the one for the task."""
        return classifier if self.problem.is_classification else regressor

    def search(self, estimator: BaseEstimator, grid: Any) -> GridSearchCV:
        """A search over `grid`, whose names belong to the last step: on five folds, or on one part of many items.

        The settings of `estimator` are the defaults, and one of those that are tried.
        """
        if isinstance(estimator, Pipeline):
            grid = {f"{estimator.steps[-1][0]}__{name}": values for name, values in grid.items()}
        train = min(FOR_MANY.search_items, self.n_items // 2)
        return GridSearchCV(
            estimator, grid, scoring=self.scoring, cv=self.hold_out(train) if self.is_large else 5
        )

    def hold_out(self, train: int) -> BaseShuffleSplit:
        """A random part to train on and another, of at most ``2 * FOR_MANY.search_items``, to test on.

        A splitter of scikit-learn and not `selection.folds`, for it stands in the code that the report prints to copy.
        """
        test = min(self.n_items - train, 2 * FOR_MANY.search_items)
        splitter = self.choose(StratifiedShuffleSplit, ShuffleSplit)
        return splitter(1, train_size=train, test_size=test, random_state=self.random_state)


def _round(values):
    """Three significant digits, so that grids read well in the code to copy."""
    return np.array([float(f"{value:.3g}") for value in np.atleast_1d(values)]).reshape(
        np.shape(values)
    )


def _listed(values) -> list[float]:
    return [float(value) for value in np.atleast_1d(_round(values))]


@dataclass(frozen=True)
class Learner:
    """One competitor."""

    name: str  # on the command line
    title: str  # in the report
    family: str  # "baseline", "raw", "repair" or "mercerless"; "yours" for an estimator of your own
    make: Callable[[Terms], BaseEstimator]  # the unfitted estimator, which takes numbers
    kind: str = "matrix"  # or "table"
    task: str | None = None  # the only task it does
    # The form of a matrix: "symmetric", "given" or "distances"; for a matrix whose directions differ also "directed"
    # (as given) or "both" (new items come with both directions); for several matrices "matrix NAME" for one of them
    # or "several" for a dict of all
    takes: str = "symmetric"
    group: str = ""  # learners that share decompositions run in one task
    # 0 a guess, neighbors, a linear model; 1 a kernel machine; 2 what adapts or combines
    complexity: int = 1
    # the time of its form for many items grows with this power of their number, from a thousand on
    growth: float = 1.0
    # rough time of one fit on a thousand items (with the defaults if there is a search), used until one is measured
    seconds: float = 1.0
    encodes: bool = False  # it takes the words, dates and gaps of a table itself
    is_expected: bool = False  # every reader looks for it: it is scored on all items if time allows

    def has_defaults(self, terms: Terms) -> bool:
        """Whether there is a search, and therefore a form without it."""
        return isinstance(self.make(terms), GridSearchCV)

    def in_form(self, form: str) -> Self:
        """The same learner, built with its "search", or with its "defaults" if it has any."""
        if form == "search":
            return self
        return replace(self, make=lambda terms: without_search(self.make(terms)))

    def build(self, terms: Terms) -> BaseEstimator:
        """Return the unfitted estimator, after the preprocessing that a table of more than numbers needs."""
        estimator = self.make(terms)
        preprocessor = terms.problem.preprocessor
        if preprocessor is None or self.encodes:
            return estimator
        return make_pipeline(clone(preprocessor), estimator)

    def applies(self, problem: Problem) -> bool:
        """Whether it is made for this kind of data and task."""
        if self.takes in ("directed", "both") and not problem.asymmetry:
            return False
        if self.takes == "several" and not problem.others:
            return False
        return problem.is_matrix == (self.kind == "matrix") and self.task in (None, problem.task)


def without_search(estimator: BaseEstimator) -> BaseEstimator:
    """Return the estimator inside a search, which has the default settings; any other as it is."""
    return estimator.estimator if isinstance(estimator, GridSearchCV) else estimator


# ------------------------------------------------------------------------------------ the data a learner takes


def matrix_for(problem: Problem, takes: str) -> Any:
    """Return the training matrix in the form that a learner takes; tables are returned unchanged."""
    if not problem.is_matrix:
        return problem.X
    if takes == "several":
        return problem.matrices
    if takes.startswith("matrix "):
        return problem.matrices[takes.removeprefix("matrix ")]
    X = (
        symmetrize(problem.X)
        if problem.asymmetry and takes in ("symmetric", "distances")
        else problem.X
    )
    return rows_for(problem, takes, X)


def rows_for(problem: Problem, takes: str, rows: NDArray) -> NDArray:
    """Return rows of any items against the training items in the form a learner takes."""
    if problem.is_matrix and takes == "distances":
        return as_distances(rows, problem.kind, float(problem.X.min()), float(problem.X.max()))
    return rows


def rows_of_test_set(problem: Problem, takes: str) -> Any:
    """Return the rows of the given test set in the form a learner takes.

    If both directions are known they stand side by side for a learner that takes both, and others take their mean.
    """
    others = {name: other.X_test for name, other in problem.others.items()}
    if takes.startswith("matrix "):
        return others[takes.removeprefix("matrix ")]
    rows = problem.X_test
    if problem.reverse_test is not None:
        if takes == "both":
            return np.hstack([rows, problem.reverse_test])
        if takes in ("symmetric", "distances", "several"):
            rows = (rows + problem.reverse_test) / 2
    if takes == "several":
        return {problem.array: rows, **others}
    return rows_for(problem, takes, rows)


def block(X: Any, rows: NDArray, columns: NDArray) -> Any:
    """Return rows and columns of a matrix, or of each of several."""
    if isinstance(X, dict):
        return {name: block(matrix, rows, columns) for name, matrix in X.items()}
    return X[np.ix_(rows, columns)]


def rows_between(X: Any, takes: str, test: NDArray, train: NDArray) -> Any:
    """Return test rows of the training matrix in the form a learner takes; both directions stand side by side."""
    rows = block(X, test, train)
    if takes != "both":
        return rows
    return np.hstack([rows, X[np.ix_(train, test)].T])


# ------------------------------------------------------------------------------------------------- the builders


def _steps(terms: Terms, *steps: BaseEstimator) -> BaseEstimator:
    """Return the steps after the conversion of distances, as a pipeline if there are several."""
    steps = (conversion(terms.problem.kind), *steps) if terms.problem.small_is_like else steps
    return make_pipeline(*steps) if len(steps) > 1 else steps[0]


def _scaled(estimator: BaseEstimator) -> Pipeline:
    return make_pipeline(StandardScaler(), estimator)


def _dummy(terms: Terms) -> BaseEstimator:
    return terms.choose(DummyClassifier(), DummyRegressor())


def _neighbors(terms: Terms) -> GridSearchCV:
    metric = "precomputed" if terms.problem.is_matrix else "minkowski"
    nearest = terms.choose(KNeighborsClassifier, KNeighborsRegressor)(metric=metric)
    if not terms.problem.is_matrix:
        nearest = _scaled(nearest)
    smallest = int(0.75 * terms.n_items)  # the training part of a training part
    return terms.search(
        nearest, {"n_neighbors": [k for k in (1, 2, 3, 5, 9, 15, 25) if k < smallest]}
    )


def _machine(mode: str) -> Callable[[Terms], GridSearchCV]:
    """A support vector machine on the matrix with its spectrum repaired by `mode`."""

    def build(terms: Terms) -> GridSearchCV:
        unit = terms.unit / terms.scale(mode)
        machine = terms.choose(SVC, SVR)(
            kernel="precomputed", C=float(_round(10.0 * unit)), max_iter=100_000
        )
        powers = terms.choose(np.logspace(-2, 3, 6), np.logspace(-1, 3, 5))
        grid = {"C": _listed(unit * powers)}
        if not terms.problem.is_classification:
            machine.set_params(epsilon=float(_round(0.1 * terms.unit)))
            grid["epsilon"] = _listed(terms.unit * np.array([0.03, 0.1, 0.3]))
        repair = () if mode == "raw" else (SpectrumTransformer(mode),)
        return terms.search(_steps(terms, *repair, machine), grid)

    return build


def _linear(terms: Terms) -> GridSearchCV:
    linear = terms.choose(LogisticRegression(max_iter=2000), Ridge())
    strengths = {"C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]}
    penalties = {"alpha": [0.1, 1.0, 10.0, 100.0, 1000.0]}
    grid = terms.choose(strengths, penalties)
    return terms.search(_scaled(linear), grid)


def _vector_machine(terms: Terms) -> GridSearchCV:
    """A Gaussian support vector machine, exact for any number of items.

    On 16,000 items, machines on parts or landmarks do no better than an exact one on 4000, which takes as long.
    """
    gamma = float(_round(1.0 / terms.problem.n_features))
    if terms.problem.is_classification:
        machine = SVC(gamma=gamma)
    else:
        machine = SVR(
            C=float(_round(10.0 * terms.unit)),
            gamma=gamma,
            epsilon=float(_round(0.03 * terms.unit)),
            max_iter=1_000_000,
        )
    strengths = np.array([0.1, 1.0, 10.0, 100.0, 1000.0])
    widths = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
    grid = {
        "C": _listed(terms.unit * strengths),
        "gamma": _listed(widths / terms.problem.n_features),
    }
    return terms.search(_scaled(machine), grid)


def _kernel_ridge(kernel: str) -> Callable[[Terms], GridSearchCV]:
    """Kernel ridge, for many items on landmarks."""

    def build(terms: Terms) -> GridSearchCV:
        gammas = _listed(np.array([0.03, 0.1, 0.3, 1.0, 3.0]) / terms.problem.n_features)
        alphas = [1e-4, 1e-3, 1e-2, 0.1, 1.0]
        gamma = gammas[2]
        if not terms.is_large:
            ridge = KernelRidge(alpha=0.01, kernel=kernel, gamma=gamma)
            return terms.search(_scaled(ridge), {"alpha": alphas, "gamma": gammas})
        landmarks = Nystroem(
            kernel, gamma=gamma, n_components=terms.n_landmarks, random_state=terms.random_state
        )
        steps = make_pipeline(StandardScaler(), landmarks, Ridge(alpha=0.01))
        search = terms.search(steps, {"alpha": alphas})
        return search.set_params(param_grid={**search.param_grid, "nystroem__gamma": gammas})

    return build


def _boosting(terms: Terms) -> GridSearchCV:
    boosting = terms.choose(HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    grid: list[dict[str, list]] = [
        {"learning_rate": [0.05, 0.15], "max_leaf_nodes": [4, 12, 31]},
        {"learning_rate": [0.1], "max_leaf_nodes": [31]},  # the defaults
    ]
    if terms.is_large:
        return terms.search(
            boosting(max_iter=500, early_stopping=True, random_state=terms.random_state), grid
        )
    return terms.search(boosting(max_iter=150, random_state=terms.random_state), grid)


def _features(terms: Terms) -> GridSearchCV:
    """A linear model on the similarities, or distances, to the training items, or to landmarks among many."""
    linear = terms.choose(LogisticRegression(C=0.01, max_iter=1000), Ridge(100.0))
    grid = terms.choose(
        {"C": [1e-4, 1e-3, 0.01, 0.1, 1.0]}, {"alpha": [1.0, 10.0, 100.0, 1e3, 1e4]}
    )
    landmarks: dict[str, Any] = (
        {"landmarks": terms.n_landmarks, "random_state": terms.random_state}
        if terms.is_large
        else {}
    )
    return terms.search(
        make_pipeline(SimilarityFeatures("precomputed", **landmarks), StandardScaler(), linear),
        grid,
    )


def _krein_ridge(terms: Terms) -> BaseEstimator:
    ridge = terms.choose(KreinRidgeClassifier, KreinRidge)
    return _steps(terms, ridge("precomputed", **terms.landmarks))


def _krein_machine(terms: Terms) -> GridSearchCV:
    unit = terms.unit / terms.scale("flip")
    C = float(_round(10.0 * unit))
    if terms.problem.is_classification:
        machine = KreinSVC("precomputed", C=C, max_iter=100_000)
        powers = np.logspace(-1, 2, 4)
    else:
        machine = KreinSVR(
            "precomputed", C=C, epsilon=float(_round(0.05 * terms.unit)), max_iter=100_000
        )
        powers = np.logspace(-1, 3, 5)
    return terms.search(
        _steps(terms, machine), {"C": _listed(unit * powers), "negative_penalty": [1.0, 10.0]}
    )


def _stack(terms: Terms) -> BaseEstimator:
    kind = terms.problem.kind if terms.problem.small_is_like else "similarity"
    stack = terms.choose(SimilarityClassifier, SimilarityRegressor)
    return stack("precomputed", kind=kind, **terms.landmarks)


def _several_stack(terms: Terms) -> BaseEstimator:
    """The automatic stack of each of several matrices and of their sum."""
    kinds = {terms.problem.array: terms.problem.kind}
    kinds |= {name: other.kind for name, other in terms.problem.others.items()}
    stack = terms.choose(SimilarityClassifier, SimilarityRegressor)
    return stack("precomputed", kind=kinds, random_state=terms.random_state)


def _stack_on(name: str, kind: str) -> Learner:
    """The automatic stack of one of several matrices."""

    def build(terms: Terms) -> BaseEstimator:
        stack = terms.choose(SimilarityClassifier, SimilarityRegressor)
        return stack("precomputed", kind=kind, **terms.landmarks)

    return Learner(
        f"stack-{name}",
        f"Automatic stack on {name}",
        "mercerless",
        build,
        takes=f"matrix {name}",
        complexity=2,
        seconds=2.0,
    )


def _directed_ridge(terms: Terms) -> BaseEstimator:
    kind = terms.problem.kind if terms.problem.small_is_like else "similarity"
    return terms.choose(AsymmetricRidgeClassifier, AsymmetricRidge)(
        "precomputed", kind=kind, side="left"
    )


def _directed_stack(terms: Terms) -> BaseEstimator:
    kind = terms.problem.kind if terms.problem.small_is_like else "similarity"
    stack = terms.choose(SimilarityClassifier, SimilarityRegressor)
    return stack("precomputed", kind=kind, direction="both", random_state=terms.random_state)


def _learned_kernel(terms: Terms) -> Pipeline:
    """A learned kernel; for many items chosen on two folds."""
    settings: dict[str, Any] = {}
    if terms.is_large:
        settings = {"cv": 2}
    machine = terms.choose(HyperClassifier, HyperRegressor)
    return _scaled(machine(random_state=terms.random_state, **settings))


def _indefinite_ridge(terms: Terms) -> GridSearchCV:
    """Krein ridge with a truncated distance: an indefinite kernel that is linear in pieces."""
    widths = np.array([0.3, 0.7, 1.5]) * terms.problem.n_features
    kernels = [TL1(width) for width in _listed(widths)]
    ridge = terms.choose(KreinRidgeClassifier, KreinRidge)(kernels[1], **terms.landmarks)
    return terms.search(_scaled(ridge), {"kernel": kernels})


def _gaussian_ridge(terms: Terms) -> GridSearchCV:
    widths = np.array([0.4, 1.0, 2.5] if terms.is_large else [0.4, 0.7, 1.3, 2.2, 4.0])
    kernels = [Gaussian(width) for width in _listed(widths * np.sqrt(terms.problem.n_features))]
    ridge = KreinRidgeClassifier(kernels[len(kernels) // 2], **terms.landmarks)
    return terms.search(_scaled(ridge), {"kernel": kernels})


def _table(terms: Terms) -> BaseEstimator:
    """The table learner with its defaults for any number of rows: it plans its own work."""
    return terms.choose(TableClassifier, TableRegressor)(random_state=terms.random_state)


def _adapted(terms: Terms) -> GridSearchCV:
    """DANK; for many items on parts of a thousand, whose width is chosen on one half of the items."""
    if terms.problem.is_classification:
        machine = DANKClassifier(random_state=terms.random_state)
    else:
        machine = DANKRegressor(
            epsilon=float(_round(0.1 * terms.unit)), random_state=terms.random_state
        )
    machine.set_params(C=float(_round(10.0 * terms.unit)))
    if not terms.is_large:
        machine.set_params(adaptivity=0.1)
        grid = {"C": _listed(terms.unit * np.array([1.0, 10.0, 100.0])), "adaptivity": [0.1, 0.5]}
        return terms.search(_scaled(machine), grid)
    widths = np.array([0.15, 0.4, 1.0]) * np.sqrt(terms.problem.n_features)
    kernels = [Gaussian(width) for width in _listed(widths)]
    machine.set_params(kernel=kernels[1], n_parts=terms.n_parts)
    search = terms.search(_scaled(machine), {"kernel": kernels})
    return search.set_params(cv=terms.hold_out(terms.n_items // 2))


#: Every competitor, those with cheap defaults first.
LEARNERS: tuple[Learner, ...] = (
    # of a matrix
    Learner(
        "dummy", "Constant guess", "baseline", _dummy, complexity=0, seconds=0.002, is_expected=True
    ),
    Learner(
        "neighbors",
        "Nearest neighbors",
        "baseline",
        _neighbors,
        takes="distances",
        complexity=0,
        seconds=0.01,
    ),
    Learner(
        "features",
        "Linear model on similarities",
        "baseline",
        _features,
        takes="given",
        seconds=0.05,
    ),
    Learner(
        "svm-raw", "SVM on the raw matrix", "raw", _machine("raw"), group="spectrum", seconds=0.05
    ),
    Learner(
        "svm-clip",
        "SVM on the clipped spectrum",
        "repair",
        _machine("clip"),
        group="spectrum",
        seconds=0.3,
    ),
    Learner(
        "svm-flip",
        "SVM on the flipped spectrum",
        "repair",
        _machine("flip"),
        group="spectrum",
        seconds=0.1,
    ),
    Learner(
        "svm-square",
        "SVM on the squared spectrum",
        "repair",
        _machine("square"),
        group="spectrum",
        seconds=0.1,
    ),
    Learner(
        "svm-shift",
        "SVM on the shifted spectrum",
        "repair",
        _machine("shift"),
        group="spectrum",
        seconds=0.1,
    ),
    Learner("krein-svm", "Krein SVM", "mercerless", _krein_machine, seconds=0.3),
    Learner("krein-ridge", "Krein ridge", "mercerless", _krein_ridge, seconds=0.5),
    Learner(
        "asymmetric",
        "Asymmetric ridge",
        "mercerless",
        _directed_ridge,
        takes="directed",
        seconds=0.5,
    ),
    Learner("stack", "Automatic stack", "mercerless", _stack, complexity=2, seconds=2.0),
    Learner(
        "directed",
        "Directed stack",
        "mercerless",
        _directed_stack,
        takes="both",
        complexity=2,
        growth=2.5,
        seconds=10.0,
    ),
    Learner(
        "several",
        "Automatic stack on all",
        "mercerless",
        _several_stack,
        takes="several",
        complexity=2,
        seconds=6.0,
    ),
    # of a table
    Learner(
        "dummy",
        "Constant guess",
        "baseline",
        _dummy,
        "table",
        complexity=0,
        seconds=0.002,
        is_expected=True,
    ),
    Learner(
        "neighbors",
        "Nearest neighbors",
        "baseline",
        _neighbors,
        "table",
        complexity=0,
        growth=0.6,
        seconds=0.01,
    ),
    Learner(
        "linear",
        "Linear model",
        "baseline",
        _linear,
        "table",
        complexity=0,
        growth=0.3,
        seconds=0.01,
    ),
    Learner(
        "boosting",
        "Gradient boosting",
        "baseline",
        _boosting,
        "table",
        complexity=2,
        growth=0.3,
        seconds=0.3,
        is_expected=True,
    ),
    Learner(
        "svm-gaussian",
        "SVM with Gaussian kernel",
        "baseline",
        _vector_machine,
        "table",
        growth=1.4,
        seconds=0.1,
    ),
    Learner(
        "ridge-gaussian",
        "Gaussian kernel ridge",
        "baseline",
        _kernel_ridge("rbf"),
        "table",
        "regression",
        growth=0.3,
        seconds=0.03,
    ),
    Learner(
        "ridge-laplace",
        "Laplace kernel ridge",
        "baseline",
        _kernel_ridge("laplacian"),
        "table",
        "regression",
        growth=0.3,
        seconds=0.03,
    ),
    Learner(
        "ridge-gaussian",
        "Gaussian kernel ridge",
        "baseline",
        _gaussian_ridge,
        "table",
        "classification",
        growth=0.3,
        seconds=0.5,
    ),
    Learner(
        "krein-ridge",
        "Krein ridge with TL1 kernel",
        "mercerless",
        _indefinite_ridge,
        "table",
        growth=0.3,
        seconds=0.5,
    ),
    Learner(
        "dank", "Data-adaptive kernel", "mercerless", _adapted, "table", complexity=2, seconds=0.5
    ),
    Learner(
        "table",
        "Table learner",
        "mercerless",
        _table,
        "table",
        complexity=2,
        growth=0.7,
        seconds=6.0,
        encodes=True,
    ),
    Learner(
        "hyper",
        "Learned kernel",
        "mercerless",
        _learned_kernel,
        "table",
        complexity=2,
        growth=0.3,
        seconds=12.0,
    ),
)


def select_learners(
    problem: Problem, requested: Requested | None = None
) -> tuple[list[Learner], dict[str, Level]]:
    """Return the learners to run, in their order, and the levels up to which some were requested.

    ``requested`` is as in `compare`: None for all that apply.
    """
    possible = {learner.name: learner for learner in LEARNERS if learner.applies(problem)}
    for name, other in problem.others.items():
        learner = _stack_on(name, other.kind)
        possible[learner.name] = learner
    if requested is None:
        return list(possible.values()), {}
    if isinstance(requested, Mapping):
        yours = [_your_learner(problem, possible, *item) for item in requested.items()]
        return [*possible.values(), *yours], {}
    names = {learner.title.lower(): name for name, learner in possible.items()}
    chosen: dict[str, Learner] = {}
    limits = {}
    for item in requested:
        text, estimator = _request(item)
        title, *marks = text.split("@")
        if estimator is None:
            learner = _named_learner(possible, names.get(title.lower(), title))
        else:
            learner = _your_learner(problem, possible, title, estimator)
        if learner.name in chosen:
            raise ValueError(
                f"The learner {learner.name!r} is asked for twice; name one ('mine', estimator)."
            )
        if marks:
            limits[learner.name] = _limit(text, marks)
        chosen[learner.name] = learner
    order = [name for name in possible if name in chosen]
    yours = [learner for name, learner in chosen.items() if name not in possible]
    return [*(chosen[name] for name in order), *yours], limits


def _request(item: Any) -> tuple[str, BaseEstimator | None]:
    """Return the text, and your estimator, of one entry of the requested learners."""
    if isinstance(item, str):
        return item, None
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return item
    return type(item).__name__, item


def _named_learner(possible: dict[str, Learner], name: str) -> Learner:
    if name not in possible:
        raise ValueError(
            f"There is no learner {name!r} for this data; there are {', '.join(possible)}."
        )
    return possible[name]


def _your_learner(
    problem: Problem, possible: dict[str, Learner], name: str, estimator: BaseEstimator
) -> Learner:
    if name in possible:
        raise ValueError(f"There is a learner {name!r} already; give your estimator another name.")
    return make_your_learner(problem, name, estimator)


def _limit(item: str, marks: list[str]) -> Level:
    """Return the level that marks such as ``@0.25`` and ``@defaults`` ask for."""
    limit = Level()
    for mark in marks:
        if mark == "defaults":
            limit = limit._replace(form=mark)
        else:
            limit = limit._replace(part=_part(item, mark))
    return limit


def _part(item: str, text: str) -> float:
    try:
        part = float(text)
    except ValueError:
        part = 0.0
    if not 0.0 < part <= 1.0:
        raise ValueError(
            f"{item!r}: after @ comes 'defaults', or the part of the training sets, which must be "
            "a number above 0, at most 1."
        )
    return part


def make_your_learner(problem: Problem, name: str, estimator: BaseEstimator) -> Learner:
    """An estimator of the user; it takes the data as given, a table learner also the words and gaps of a table."""
    if not (
        hasattr(estimator, "fit")
        and hasattr(estimator, "predict")
        and hasattr(estimator, "get_params")
    ):
        raise ValueError(
            f"The learner {name!r} is {estimator!r}; it must be an estimator with fit and predict."
        )
    kind = "matrix" if problem.is_matrix else "table"
    return Learner(
        name,
        name,
        "yours",
        lambda terms: clone(estimator),
        kind,
        takes="given",
        complexity=2,
        encodes=isinstance(estimator, (TableClassifier, TableRegressor)),
    )


def group_arguments(estimator: BaseEstimator, groups: NDArray | None) -> dict[str, Any]:
    """The groups for `fit` of estimators that take them: for their folds, calibration and prediction sets."""
    if groups is None or not has_fit_parameter(estimator, "groups"):
        return {}
    return {"groups": groups}


def count_settings(estimator: BaseEstimator) -> int:
    """Number of settings of a grid search; 0 for a learner without one."""
    estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return len(ParameterGrid(estimator.param_grid)) if isinstance(estimator, GridSearchCV) else 0


# ------------------------------------------------------------------------------------------ shared decompositions


class SharedSpectrum(SpectrumTransformer):
    """`SpectrumTransformer` that caches its results by the contents of the matrix.

    All learners use the same splits, so the matrix of one fold returns for every mode and every C.
    """

    def fit(self, X, y=None):
        self.key_ = (self.mode, self.rtol, _digest(self._check_train(X)))
        self.__dict__.update(
            _MEMORY.get(self.key_, lambda: dict(vars(super(SharedSpectrum, self).fit(X))))
        )
        return self

    def _decompose(self, K: NDArray) -> Spectrum:
        return _MEMORY.get(
            (self.rtol, _digest(K)), lambda: super(SharedSpectrum, self)._decompose(K)
        )

    def transform(self, X):
        return _MEMORY.get(
            (*self.key_, _digest(X)), lambda: super(SharedSpectrum, self).transform(X)
        )


class _Memory:
    """Results by key, the least recently used dropped beyond a number of bytes."""

    def __init__(self, limit: int):
        self.limit = limit
        self.results: OrderedDict[tuple, Any] = OrderedDict()

    def get(self, key: tuple, compute: Callable[[], Any]) -> Any:
        if key not in self.results:
            self.results[key] = compute()
            while len(self.results) > 1 and sum(map(_size, self.results.values())) > self.limit:
                self.results.popitem(last=False)
        self.results.move_to_end(key)
        return self.results[key]


def _size(result: Any) -> int:
    values = (
        result.values()
        if isinstance(result, dict)
        else result
        if isinstance(result, tuple)
        else [result]
    )
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


def _digest(X: NDArray) -> bytes:
    X = np.ascontiguousarray(X)
    return blake2b(X.data, digest_size=16, key=str((X.shape, X.dtype)).encode()).digest()


_MEMORY = _Memory(2**29)


def forget_decompositions() -> None:
    """Empty the cache of shared decompositions."""
    _MEMORY.results.clear()


class _SharedStabilized:
    """Mixin of a Krein machine that caches the flipped matrix of the same items, which does not depend on C."""

    negative_penalty: float
    center: bool

    def _stabilize(self, K, weight):
        key = ("krein", self.negative_penalty, self.center, _digest(weight), _digest(K))
        return _MEMORY.get(key, lambda: super(_SharedStabilized, self)._stabilize(K, weight))  # type: ignore[misc]


class SharedKreinSVC(_SharedStabilized, KreinSVC):
    """`KreinSVC` that shares its decompositions."""


class SharedKreinSVR(_SharedStabilized, KreinSVR):
    """`KreinSVR` that shares its decompositions."""


class _BothWays:
    """Mixin of a directed stack that takes both directions of new items as `rows_between` returns them."""

    n_features_in_: int

    def _directions(self, X, reverse):
        if isinstance(X, dict):  # of several matrices
            return X, reverse
        n = self.n_features_in_
        if reverse is None and X.shape[1] == 2 * n:
            return X[:, :n], X[:, n:]
        return X, reverse

    def predict(self, X, diag=None, reverse=None):
        out, back = self._directions(X, reverse)
        return super().predict(out, diag, back)  # type: ignore[misc]


class BothWaysRegressor(_BothWays, SimilarityRegressor):
    """`SimilarityRegressor` for rows of both directions."""


class BothWaysClassifier(_BothWays, SimilarityClassifier):
    """`SimilarityClassifier` for rows of both directions."""

    def predict_proba(self, X, diag=None, reverse=None):
        out, back = self._directions(X, reverse)
        return super().predict_proba(out, diag, back)

    def decision_function(self, X, diag=None, reverse=None):
        out, back = self._directions(X, reverse)
        return super().decision_function(out, diag, back)


def share_decompositions(estimator: BaseEstimator) -> BaseEstimator:
    """Replace the steps of a search that decompose matrices by steps that share their work; return `estimator`.

    A directed stack, which is no search, becomes one that takes the rows of `rows_between`.
    """
    inner = getattr(estimator, "estimator", None)
    if inner is None:
        return _shared(estimator)
    estimator.estimator = _shared(inner)
    return estimator


def _shared(step: Any) -> Any:
    if isinstance(step, Pipeline):
        step.steps = [(name, _shared(inner)) for name, inner in step.steps]
        return step
    sharing = {
        SpectrumTransformer: SharedSpectrum,
        KreinSVC: SharedKreinSVC,
        KreinSVR: SharedKreinSVR,
        SimilarityClassifier: BothWaysClassifier,
        SimilarityRegressor: BothWaysRegressor,
    }
    if type(step) not in sharing:
        return step
    return sharing[type(step)](**step.get_params(deep=False))
