"""Stage 2 of the two-stage hyper-kernel estimators: machines with a learned kernel, and how both stages are chosen."""

from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, SVR
from sklearn.utils import check_random_state

from mercerless._blocks import is_dask, map_rows, reduce_rows, take_rows
from mercerless._memory import check_memory, memory_budget, row_blocks
from mercerless.kernels.base import Kernel
from mercerless.lowrank import nystroem, select_landmarks
from mercerless.selection.folds import fold_numbers
from mercerless.solvers.linear import (
    HingeSums,
    LinearSolution,
    hinge_sums,
    moment_sums,
    ridge_choice,
    ridge_path_of_moments,
    squared_hinge,
)
from mercerless.solvers.svm import stabilize

_BLOCK_BYTES = 2**27
# held-out rows that settle a comparison of candidates
HELD_ROWS = 2000


class LandmarkMap:
    """Features of rows: similarities to landmarks times weights. Holds nothing else, so that it travels well.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    landmarks : ndarray of shape (m, n_features)
        The landmarks.
    weights : ndarray of shape (m, rank)
        From similarities to features.
    """

    def __init__(self, kernel: Kernel, landmarks: NDArray, weights: NDArray):
        self.kernel, self.landmarks, self.weights = kernel, landmarks, weights

    @property
    def bytes_per_row(self) -> float:
        """What the features of one row need on the way."""
        return 32.0 * (len(self.landmarks) + self.weights.shape[1])

    def __call__(self, rows: NDArray) -> NDArray:
        return self.kernel(rows, self.landmarks) @ self.weights


class Stage:
    """Stage 2: a machine with a given kernel.

    Attributes
    ----------
    grid : ndarray
        Values of the loss weight C to compare.
    C : float or None
        The one used.
    kernel : Kernel
        The kernel used.
    classify : bool
        Whether y are labels.
    certificate : float
        The relative optimality gap, where the machine does not warn itself.
    refines : bool
        Whether `scores` asks a cheaper machine, so that C has to be chosen with the machine itself.
    """

    grid: NDArray
    C: float | None
    kernel: Kernel
    classify: bool
    certificate: float = 0.0
    refines = False

    def fit(self, kernel: Kernel, X: Any, y: NDArray, C: float | None) -> "Stage":
        """Fit the machine.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        X : ndarray or dask.array.Array of shape (n, n_features)
            The items.
        y : ndarray of shape (n,)
            Labels or values.
        C : float or None
            The loss weight; None where the machine chooses it itself.

        Returns
        -------
        Stage
            Itself.
        """
        raise NotImplementedError

    def evaluate(self, method: str, X: NDArray) -> NDArray:
        """Call a method of the machine on new rows.

        Parameters
        ----------
        method : {"predict", "decision_function"}
            The method.
        X : ndarray of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            Its results.
        """
        raise NotImplementedError

    def scores(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> NDArray:
        """How good the machines of the whole grid are on held-out rows, or cheaper ones that rank kernels alike.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        X, Z : ndarray
            Training and held-out items.
        y, z : ndarray
            Their labels or values.

        Returns
        -------
        ndarray of shape (n_values,)
            Right predictions, or squared errors times -1, summed: larger is better.
        """
        raise NotImplementedError

    def guard(self, n_items: int) -> None:
        """Raise MemoryError, before any work, where the machine will not fit into the memory limit.

        Parameters
        ----------
        n_items : int
            The number of rows.
        """


class KernelStage(Stage):
    """A support vector machine on the matrix of the learned kernel, its negative directions flipped.

    libsvm stops anywhere when the kernel is indefinite, often far from a useful machine; the flipped matrix
    ``K @ projector`` is positive semi-definite and new rows get the same projector.

    Parameters
    ----------
    epsilon : float or None
        Half the width of the tube of a regression; None: classification.
    memory_limit : int, float, str or None
        Bytes that may be used.
    """

    def __init__(self, epsilon: float | None, memory_limit: Any):
        self.epsilon, self.memory_limit = epsilon, memory_limit
        self.grid = np.logspace(-2, 3, 6) if epsilon is None else np.logspace(-1, 4, 6)
        self.refines, self.classify = epsilon is not None, epsilon is None

    def guard(self, n_items: int) -> None:
        check_memory(
            40.0 * n_items**2,
            f"The flipped kernel matrix of {n_items} items",
            self.memory_limit,
            "use machine='linear' or raise memory_limit",
        )

    def fit(self, kernel: Kernel, X: NDArray, y: NDArray, C: float) -> "KernelStage":
        K, self.projector = _flipped(kernel, X)
        self.kernel, self.items, self.C = kernel, X, C
        self.model = self._machine(C).fit(K, y)
        return self

    def evaluate(self, method: str, X: NDArray) -> NDArray:
        return np.concatenate(
            [
                getattr(self.model, method)(_projected(self.kernel(X[rows], self.items), self.projector))
                for rows in row_blocks(len(X), 16.0 * len(self.items), _BLOCK_BYTES)
            ]
        )

    def scores(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> NDArray:
        # of a regression: kernel ridge regression, whose whole path costs one eigendecomposition
        if self.epsilon is None:
            return self._machine_scores(kernel, X, y, Z, z)
        s, V = eigh(kernel(X))
        mean = y.mean()
        path = (V * np.where(s < 0, -1.0, 1.0)) @ ((V.T @ (y - mean))[:, None] / (np.abs(s)[:, None] + 1 / self.grid))
        return -np.sum((kernel(Z, X) @ path + mean - z[:, None]) ** 2, axis=0)

    def _machine_scores(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> NDArray:
        if self.epsilon is None and np.all(y == y[0]):
            return np.full(len(self.grid), float(np.sum(z == y[0])))
        K, projector = _flipped(kernel, X)
        K_new = _projected(kernel(Z, X), projector)
        found = [self._machine(C).fit(K, y).predict(K_new) for C in self.grid]
        return np.array([_score(f, z, self.epsilon is None) for f in found])

    def _machine(self, C: float) -> SVC | SVR:
        settings = {"kernel": "precomputed", "C": C, "cache_size": 500}
        return SVC(break_ties=True, **settings) if self.epsilon is None else SVR(epsilon=self.epsilon, **settings)


def _flipped(kernel: Kernel, X: NDArray) -> tuple[NDArray, NDArray | None]:
    """The matrix with its negative eigenvalues flipped and the projector that does it; None when there are none."""
    K = kernel(X)
    if kernel.definite is True:
        return K, None
    stable = stabilize(K)
    return (stable.kernel, stable.projector) if stable.n_negative else (K, None)


def _projected(K: NDArray, projector: NDArray | None) -> NDArray:
    return K if projector is None else K @ projector


def _score(found: NDArray, truth: NDArray, classify: bool) -> float:
    return float(np.sum(found == truth)) if classify else -float(np.sum((found - truth) ** 2))


class LinearStage(Stage):
    """A linear machine on low-rank features of the learned kernel, from passes over blocks of rows.

    Classification has the squared hinge loss (one class against the rest), regression the squared loss; both are
    solved by Newton's method or in closed form from sums over rows, so X may be an array, a memory map or a Dask
    array. The features are kept where they fit into the memory limit, else computed again in every pass.

    Parameters
    ----------
    classify : bool
        Labels or values.
    n_components : int
        Landmarks of the low-rank approximation.
    cv : int
        Folds for the regression's C.
    memory_limit : int, float, str or None
        Bytes that may be used.
    random_state : int, RandomState or None
        Draws landmarks and folds.
    """

    def __init__(self, classify: bool, n_components: int, cv: int, memory_limit: Any, random_state: Any):
        self.classify, self.n_components, self.cv = classify, n_components, cv
        self.memory_limit, self.random_state = memory_limit, random_state
        self.grid = np.logspace(-1, 3, 5) if classify else np.logspace(-3, 6, 10)

    def fit(self, kernel: Kernel, X: Any, y: NDArray, C: float | None) -> "LinearStage":
        random = check_random_state(self.random_state)
        features = self._map(kernel, X, self.n_components, random)
        rows, of_rows = self._rows(features, X)
        if self.classify:
            classes, signs = _signs(y)
            solution = self._hinge(features, rows, of_rows, signs, C)
        else:
            classes = None
            fold_of = fold_numbers(self.cv, X, random_state=random) if C is None else np.zeros(len(y), dtype=int)
            n_folds = fold_of.max() + 1
            moments = reduce_rows(
                partial(_moments, of_rows, n_folds), add, (rows, y, fold_of), features.bytes_per_row, self._block
            )
            solution, C, _ = ridge_choice(moments, self.grid if C is None else np.array([C]))
        self.kernel, self.C, self.certificate, self.classes = kernel, C, solution.certificate, classes
        self.decision = LandmarkMap(kernel, features.landmarks, features.weights @ solution.coef)
        self.intercept = solution.intercept
        return self

    def evaluate(self, method: str, X: NDArray) -> NDArray:
        n_columns = self.decision.weights.shape[1]
        values = map_rows(self.decision, X, self.decision.bytes_per_row, n_columns=n_columns) + self.intercept
        values = values[:, 0] if n_columns == 1 else values
        return _labels(values, self.classes) if self.classify and method == "predict" else values

    def scores(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> NDArray:
        # fewer features tell the same candidates apart
        features = self._map(kernel, X, min(self.n_components, 400), check_random_state(self.random_state))
        F, F_new = features(X), features(Z)
        if not self.classify:
            path = ridge_path_of_moments(moment_sums(F, y, np.zeros(len(y), dtype=int), 1)[0], self.grid)
            return -np.sum((F_new @ path[:-1] + path[-1] - z[:, None]) ** 2, axis=0)
        classes, signs = _signs(y)
        out, start = [], None
        for C in self.grid:
            run = partial(hinge_sums, F, signs)
            solution = squared_hinge(run, F.shape[1], np.full(signs.shape[1], C), start=start, tol=1e-6)
            values = F_new @ solution.coef + solution.intercept
            out.append(_score(_labels(values[:, 0] if values.shape[1] == 1 else values, classes), z, True))
            start = np.vstack([solution.coef, solution.intercept])
        return np.array(out)

    def guard(self, n_items: int) -> None:
        size = min(n_items, 2 * self.n_components)
        check_memory(
            16.0 * size**2,
            f"A sample of {size} rows for the features",
            self.memory_limit,
            "use fewer components or raise memory_limit",
        )

    @property
    def _block(self) -> int:
        """Bytes that a block of rows may need: one for similarities, one for features, one for those in the margin."""
        return min(_BLOCK_BYTES, memory_budget(self.memory_limit) // 4)

    def _map(self, kernel: Kernel, X: Any, n_components: int, random) -> LandmarkMap:
        landmarks = select_landmarks(kernel, X, min(n_components, len(X)), random_state=random)
        low_rank = nystroem(kernel, X, landmarks, oversampling=2.0, random_state=random, memory_limit=self.memory_limit)
        return LandmarkMap(kernel, take_rows(X, landmarks), low_rank.transform * np.sqrt(np.abs(low_rank.values)))

    def _rows(self, features: LandmarkMap, X: Any) -> tuple[Any, Callable | None]:
        """What passes go over, and how its rows become features (None: they are features)."""
        rank = features.weights.shape[1]
        # the features, and the blocks of a pass with their rows inside the margin
        if 8.0 * len(X) * rank + 4 * self._block > memory_budget(self.memory_limit) or rank == 0:
            return X, features
        Z = map_rows(features, X, features.bytes_per_row, n_columns=rank, budget=self._block)
        return (Z.persist() if is_dask(Z) else Z), None

    def _hinge(
        self, features: LandmarkMap, rows: Any, of_rows: Callable | None, signs: NDArray, C: float
    ) -> LinearSolution:
        def run(old: NDArray, new: NDArray) -> list[HingeSums]:
            return reduce_rows(
                partial(_hinge_of_rows, of_rows, old, new), _add_all, (rows, signs), features.bytes_per_row, self._block
            )

        return squared_hinge(run, features.weights.shape[1], np.full(signs.shape[1], float(C)))


def _moments(of_rows: Callable | None, n_folds: int, rows: NDArray, y: NDArray, fold_of: NDArray) -> NDArray:
    return moment_sums(rows if of_rows is None else of_rows(rows), y, fold_of, n_folds)


def _hinge_of_rows(
    of_rows: Callable | None, old: NDArray, new: NDArray, rows: NDArray, signs: NDArray
) -> list[HingeSums]:
    return hinge_sums(rows if of_rows is None else of_rows(rows), signs, old, new)


def _add_all(first: list[HingeSums], second: list[HingeSums]) -> list[HingeSums]:
    return [a + b for a, b in zip(first, second)]


def _signs(y: NDArray) -> tuple[NDArray, NDArray]:
    """The classes, and one column per problem: 1 for the class and -1 for the rest; one column for two classes."""
    classes, codes = np.unique(y, return_inverse=True)
    columns = np.arange(1, 2) if len(classes) == 2 else np.arange(len(classes))
    return classes, np.where(codes[:, None] == columns, 1.0, -1.0)


def _labels(values: NDArray, classes: NDArray) -> NDArray:
    if values.ndim == 1:
        return classes[(values > 0).astype(int)] if len(classes) == 2 else np.full(len(values), classes[0])
    return classes[values.argmax(axis=1)]


class KreinStage(Stage):
    """A Krein estimator with the learned kernel, which chooses its own penalties.

    Parameters
    ----------
    estimator : BaseEstimator
        `KreinRidge` or `KreinRidgeClassifier`; its kernel is replaced.
    judge : KernelStage
        Compares candidates.
    """

    def __init__(self, estimator: BaseEstimator, judge: KernelStage):
        self.estimator, self.judge, self.grid, self.classify = estimator, judge, judge.grid, judge.classify

    def scores(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> NDArray:
        self.judge.grid = self.grid
        return self.judge.scores(kernel, X, y, Z, z)

    def fit(self, kernel: Kernel, X: Any, y: NDArray, C: float | None) -> "KreinStage":
        self.kernel, self.C = kernel, C
        self.model = self.estimator.set_params(kernel=kernel).fit(X, y)
        return self

    def evaluate(self, method: str, X: NDArray) -> NDArray:
        return getattr(self.model, method)(X)


class StageChoice(NamedTuple):
    """What cross-validation over both stages found.

    Parameters
    ----------
    index : int
        The candidate.
    C : float or None
        Stage 2's loss weight.
    scores : ndarray of shape (n_candidates, n_values)
        Right predictions, or squared errors times -1, on all held-out rows.
    """

    index: int
    C: float | None
    scores: NDArray


def choose_stages(
    stage: Stage,
    learn: Callable[[int, NDArray], Kernel],
    n_candidates: int,
    X: NDArray,
    y: NDArray,
    splits: list[tuple[NDArray, NDArray]],
    n_base: int = 0,
) -> StageChoice:
    """Compare candidates of stage 1 by the machine of stage 2, with the kernel learned anew in every fold.

    The labels of a fold never reach the kernel that is judged on it. A classifier prefers a base kernel unless a
    learned one has fewer errors by more than the square root of the base kernel's errors, about one standard deviation:
    counts of errors are noisy, and the best of many learned kernels is lucky.

    Parameters
    ----------
    stage : KernelStage, LinearStage or KreinStage
        Stage 2.
    learn : callable
        ``learn(candidate, rows)`` gives the kernel that these rows teach.
    n_candidates : int
        How many candidates there are.
    X : ndarray of shape (n, n_features)
        The items.
    y : ndarray of shape (n,)
        Labels or values.
    splits : list of tuple of ndarray
        Training and held-out rows.
    n_base : int, default=0
        The first so many candidates are base kernels, which learned nothing.

    Returns
    -------
    StageChoice
        The first of the best.
    """
    scores = np.zeros((n_candidates, len(stage.grid)))
    for train, held in splits:
        for i in range(n_candidates):
            scores[i] += stage.scores(learn(i, train), X[train], y[train], X[held], y[held])
    eligible = scores
    if stage.classify and n_base:
        best = scores[:n_base].max()
        if scores.max() - best <= np.sqrt(sum(len(held) for _, held in splits) - best):
            eligible = scores[:n_base]
    i, k = np.unravel_index(int(np.argmax(eligible)), eligible.shape)
    if stage.refines and len(stage.grid) > 1:  # C of the chosen kernel, by the machine itself
        k = np.argmax(
            sum(
                stage._machine_scores(learn(int(i), train), X[train], y[train], X[held], y[held])
                for train, held in splits
            )
        )
    return StageChoice(int(i), float(stage.grid[k]), scores)
