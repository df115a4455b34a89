"""Stage 2 of the two-stage hyper-kernel estimators: machines with a learned kernel, and the choice of both stages."""

from collections.abc import Callable
from functools import partial
from numbers import Integral
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, SVR

from mercerless.core.blocks import is_dask, map_rows, reduce_rows
from mercerless.core.folds import Split, first_until, fold_numbers, some_rows, splits_of
from mercerless.core.linalg import ShiftedSolver
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.svm import stabilize
from mercerless.core.validation import check_random_state
from mercerless.hyper.linear import (
    HingeSums,
    LinearSolution,
    hinge_sums,
    moment_sums,
    ridge_choice,
    ridge_path_of_moments,
    squared_hinge,
)
from mercerless.hyper.selection import (
    FoldPaths,
    KernelPath,
    OneKernel,
    Regression,
    choose_regression,
    encode_target,
    learn_kernel,
    spread_of,
)
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.base import Kernel, Scale
from mercerless.kernels.hyper import GaussianHyper, HyperKernel
from mercerless.kernels.learned import HyperExpansion
from mercerless.lowrank import LandmarkMap, nystroem, select_landmarks


class Labels:
    """Classes as targets: they have no unit, and a wrong one costs 1."""

    classify = True

    def standardize(self, y: NDArray) -> NDArray:
        return y

    def restore(self, values: NDArray) -> NDArray:
        return values

    def losses(self, predicted: NDArray, y: NDArray) -> NDArray:
        """Losses of shape (n, n_settings) of predictions of that shape."""
        return np.not_equal(predicted, y[:, None]).astype(float)

    def constant_losses(self, y: NDArray, held_out: NDArray) -> NDArray:
        """Losses of always predicting the most frequent label of y."""
        classes, counts = np.unique(y, return_counts=True)
        return (held_out != classes[counts.argmax()]).astype(float)


class Numbers:
    """Numbers as targets: machines see them standardized, and losses are squared errors in their own unit."""

    classify = False

    def __init__(self, mean: float, std: float):
        self.mean = mean
        self.std = std

    def standardize(self, y: NDArray) -> NDArray:
        return (y - self.mean) / self.std

    def restore(self, values: NDArray) -> NDArray:
        return values * self.std + self.mean

    def losses(self, predicted: NDArray, y: NDArray) -> NDArray:
        """Losses of shape (n, n_settings) of standardized predictions of that shape."""
        return (predicted - self.standardize(y)[:, None]) ** 2 * self.std**2

    def constant_losses(self, y: NDArray, held_out: NDArray) -> NDArray:
        """Losses of always predicting the mean of y."""
        return (held_out - y.mean()) ** 2


class Stage:
    """Stage 2: a machine with a given kernel, for labels or numbers."""

    grid: NDArray  # values of the loss weight C to compare
    kernel: Kernel
    C: float | None
    certificate: float = 0.0  # the relative optimality gap, unless the machine warns itself
    targets: Labels | Numbers = Labels()
    # whether `losses` uses a cheaper machine, so that C has to be chosen by exact ones
    refines = False
    # whether the machine chooses its loss weight itself, on all rows
    chooses_C = False

    def fit(self, kernel: Kernel, X: Any, y: NDArray, C: float | None) -> "Stage":
        """Fit the machine; None as C if it chooses that itself."""
        self.kernel = kernel
        self.C = C
        self._fit(X, self.targets.standardize(y))
        return self

    def evaluate(self, method: str, X: Any) -> NDArray:
        """The values of `predict` or `decision_function` for new rows."""
        return self.targets.restore(self._evaluate(method, X))

    def losses(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, z: NDArray) -> NDArray:
        """Losses of the held-out rows Z for the whole grid, of shape (n_held_out, n_values).

        The machine may be a cheaper one that ranks kernels alike.
        """
        predicted = self._values(kernel, X, self.targets.standardize(y), Z)
        return self.targets.losses(predicted, z)

    def matrices(self, kernel: Kernel, X: NDArray, Z: NDArray) -> tuple[NDArray, NDArray]:
        """What `exact_losses` needs of the kernel; for stages that refine."""
        raise NotImplementedError

    def exact_losses(
        self, matrices: tuple[NDArray, NDArray], y: NDArray, z: NDArray, C: float
    ) -> NDArray:
        """Losses of the held-out rows by the machine itself with this loss weight; for stages that refine."""
        raise NotImplementedError

    def _fit(self, X: Any, y: NDArray) -> None:
        raise NotImplementedError

    def _evaluate(self, method: str, X: Any) -> NDArray:
        raise NotImplementedError

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        """Predictions for Z of machines trained on X with every loss weight of the grid."""
        raise NotImplementedError


class KernelStage(Stage):
    """A support vector machine on the matrix of the learned kernel, its negative directions flipped.

    libsvm stops anywhere if the kernel is indefinite, often far from a useful machine; the flipped matrix
    ``K @ projector`` is positive semi-definite, and new rows get the same projector. A regression's tube
    is ``epsilon`` standard deviations wide on either side.
    """

    def __init__(self, epsilon: float = 0.0, targets: Labels | Numbers | None = None):
        self.epsilon = epsilon
        self.targets = targets or Labels()
        if self.targets.classify:
            self.grid = np.array(LIMITS.matrix_weights_of_labels)
        else:
            self.grid = np.array(LIMITS.matrix_weights_of_numbers)
            self.refines = True

    def _fit(self, X: NDArray, y: NDArray) -> None:
        K, self.projector = _flipped(self.kernel, X)
        self.items = X
        self.model = self._machine(self.C).fit(K, y)

    def _evaluate(self, method: str, X: NDArray) -> NDArray:
        evaluate = getattr(self.model, method)
        values = []
        for rows in row_blocks(len(X), 16.0 * len(self.items), LIMITS.block_bytes):
            K = _projected(self.kernel(X[rows], self.items), self.projector)
            values.append(evaluate(K))
        return np.concatenate(values)

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        if self.targets.classify:
            return self._labels_of_machines(kernel, X, y, Z)
        # kernel ridge regression, whose whole path costs one eigendecomposition
        K, K_new = _matrix_and_new_rows(kernel, X, Z)
        mean = y.mean()
        if kernel.definite is True:  # nothing to flip
            coef = ShiftedSolver(K.copy(), y - mean).solve(1 / self.grid)
            if coef is not None:
                return K_new @ coef + mean
        s, V = eigh(K, driver="evd", check_finite=False)
        signed = V * np.where(s < 0, -1.0, 1.0)
        shrunk = (V.T @ (y - mean))[:, None] / (np.abs(s)[:, None] + 1 / self.grid)
        return K_new @ (signed @ shrunk) + mean

    def _labels_of_machines(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        if np.all(y == y[0]):
            return np.full((len(Z), len(self.grid)), y[0])
        K, K_new = self.matrices(kernel, X, Z)
        return np.column_stack([self._machine(C).fit(K, y).predict(K_new) for C in self.grid])

    def matrices(self, kernel: Kernel, X: NDArray, Z: NDArray) -> tuple[NDArray, NDArray]:
        """The flipped matrix of the training rows, and that of the held-out rows with these."""
        K, projector = _flipped(kernel, X)
        return K, _projected(kernel(Z, X), projector)

    def exact_losses(
        self, matrices: tuple[NDArray, NDArray], y: NDArray, z: NDArray, C: float
    ) -> NDArray:
        """Losses of the held-out rows by the support vector machine with this loss weight."""
        K, K_new = matrices
        machine = self._machine(C).fit(K, self.targets.standardize(y))
        return self.targets.losses(machine.predict(K_new)[:, None], z)[:, 0]

    def _machine(self, C: float | None) -> SVC | SVR:
        options = {"kernel": "precomputed", "C": C, "cache_size": 500}
        if self.targets.classify:
            return SVC(break_ties=True, random_state=0, **options)
        machine = SVR(epsilon=self.epsilon, **options)
        machine.random_state = 0  # libsvm takes a seed of the global generator otherwise
        return machine


def _matrix_and_new_rows(kernel: Kernel, X: NDArray, Z: NDArray) -> tuple[NDArray, NDArray]:
    """``kernel(X)`` and ``kernel(Z, X)``: of few rows from one matrix, since two calls take longer than its entries."""
    if len(X) + len(Z) > LIMITS.tune_items:
        return kernel(X), kernel(Z, X)
    whole = kernel(np.concatenate([X, Z]))
    n = len(X)
    return whole[:n, :n], whole[n:, :n]


def _flipped(kernel: Kernel, X: NDArray) -> tuple[NDArray, NDArray | None]:
    """The matrix with its negative eigenvalues flipped, and the projector that flips them; None if there are none."""
    K = kernel(X)
    if kernel.definite is True:
        return K, None
    stable = stabilize(K)
    if stable.n_negative == 0:
        return K, None
    return stable.kernel, stable.projector


def _projected(K: NDArray, projector: NDArray | None) -> NDArray:
    if projector is None:
        return K
    return K @ projector


class FeatureRows:
    """Low-rank features of all rows: kept if they fit into memory, else computed again in every pass over the rows.

    X may be a memory map or a Dask array.
    """

    def __init__(self, features: LandmarkMap, X: Any):
        self.features = features
        self.n_features = features.weights.shape[1]
        # bytes for a block of rows: one for similarities, one for features, one for those in the margin
        self.block = min(LIMITS.block_bytes, memory_budget() // 4)
        self.rows = X
        needed = 8.0 * len(X) * self.n_features + 4 * self.block
        self.are_kept = needed <= memory_budget() and self.n_features > 0
        if self.are_kept:
            Z = map_rows(
                features.__call__,
                X,
                2 * features.bytes_per_row,
                n_columns=self.n_features,
                budget=self.block,
            )
            self.rows = Z.persist() if is_dask(Z) else Z

    def hinge_sums(self, signs: NDArray, old: NDArray, new: NDArray) -> list[HingeSums]:
        """`linear.hinge_sums` over all rows."""
        return self._reduce(_HingePass(self._features_of_rows, old, new), _add_all, signs)

    def moment_sums(self, y: NDArray, fold_of: NDArray) -> NDArray:
        """`linear.moment_sums` over all rows."""
        n_folds = fold_of.max() + 1
        return self._reduce(_MomentPass(self._features_of_rows, n_folds), add, y, fold_of)

    @property
    def _features_of_rows(self) -> LandmarkMap | None:
        return None if self.are_kept else self.features

    def _reduce(self, function: Callable, combine: Callable, *arrays: NDArray) -> Any:
        bytes_per_row = 2 * self.features.bytes_per_row
        return reduce_rows(function, combine, (self.rows, *arrays), bytes_per_row, self.block)


class _HingePass:
    """The sums of a pass of Newton's method over one block of rows; workers of a cluster get a copy."""

    def __init__(self, features: LandmarkMap | None, old: NDArray, new: NDArray):
        self.features = features  # None: the rows are features already
        self.old = old
        self.new = new

    def __call__(self, rows: NDArray, signs: NDArray) -> list[HingeSums]:
        if self.features is not None:
            rows = self.features(rows)
        return hinge_sums(rows, signs, self.old, self.new)


class _MomentPass:
    """The moments of one block of rows by fold; workers of a cluster get a copy."""

    def __init__(self, features: LandmarkMap | None, n_folds: int):
        self.features = features  # None: the rows are features already
        self.n_folds = n_folds

    def __call__(self, rows: NDArray, y: NDArray, fold_of: NDArray) -> NDArray:
        if self.features is not None:
            rows = self.features(rows)
        return moment_sums(rows, y, fold_of, self.n_folds)


def _add_all(first: list[HingeSums], second: list[HingeSums]) -> list[HingeSums]:
    return [a + b for a, b in zip(first, second)]


class LinearStage(Stage):
    """A linear machine on low-rank features of the learned kernel, from passes over blocks of rows.

    Classification has the squared hinge loss (one class against the rest), regression the squared loss; the regression
    chooses C by cross-validation on all rows.
    """

    def __init__(
        self, n_components: int, cv: Any, random_state: Any, targets: Labels | Numbers | None = None
    ):
        self.n_components = n_components
        self.cv = cv
        self.random_state = random_state
        self.targets = targets or Labels()
        if self.targets.classify:
            self.grid = np.array(LIMITS.feature_weights_of_labels)
        else:
            self.grid = np.array(LIMITS.feature_weights_of_numbers)
            self.chooses_C = True

    def _fit(self, X: Any, y: NDArray) -> None:
        random = check_random_state(self.random_state)
        features = self._features(self.kernel, X, self.n_components, random)
        rows = FeatureRows(features, X)
        if self.targets.classify:
            solution = self._fit_hinge(rows, y)
        else:
            solution = self._fit_ridge(rows, X, y, random)
        self.certificate = solution.certificate
        self.intercept = solution.intercept
        self.decision = features._replace(weights=features.weights @ solution.coef)

    def _fit_hinge(self, rows: FeatureRows, y: NDArray) -> LinearSolution:
        self.classes, signs = _signs(y)

        def sums(old: NDArray, new: NDArray) -> list[HingeSums]:
            return rows.hinge_sums(signs, old, new)

        return squared_hinge(sums, rows.n_features, np.full(signs.shape[1], self.C))

    def _fit_ridge(self, rows: FeatureRows, X: Any, y: NDArray, random) -> LinearSolution:
        """The regression, with C by cross-validation on all rows unless it is given."""
        if self.C is None:
            weights = self.grid
            fold_of = fold_numbers(self.cv, X, random_state=random)
        else:
            weights = np.array([self.C])
            fold_of = np.zeros(len(y), dtype=int)
        choice = ridge_choice(rows.moment_sums(y, fold_of), weights)
        self.C = choice.C
        return choice.solution

    def _evaluate(self, method: str, X: Any) -> NDArray:
        values = self.decision.transform(X) + self.intercept
        if values.shape[1] == 1:
            values = values[:, 0]
        if self.targets.classify and method == "predict":
            return _labels(values, self.classes)
        return values

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        n_components = min(self.n_components, LIMITS.compared_components)
        random = check_random_state(self.random_state)
        features = self._features(kernel, X, n_components, random)
        F = features(X)
        F_new = features(Z)
        if self.targets.classify:
            return self._hinge_values(F, y, F_new)
        moments = moment_sums(F, y, np.zeros(len(y), dtype=int), 1)[0]
        path = ridge_path_of_moments(moments, self.grid)
        return F_new @ path[:-1] + path[-1]

    def _hinge_values(self, F: NDArray, y: NDArray, F_new: NDArray) -> NDArray:
        """Predicted labels for every loss weight of the grid, each machine started at the one before."""
        classes, signs = _signs(y)

        def sums(old: NDArray, new: NDArray) -> list[HingeSums]:
            return hinge_sums(F, signs, old, new)

        columns = []
        start = np.zeros((F.shape[1] + 1, signs.shape[1]))
        for C in self.grid:
            weights = np.full(signs.shape[1], C)
            solution = squared_hinge(sums, F.shape[1], weights, start=start, tol=1e-6)
            values = F_new @ solution.coef + solution.intercept
            if values.shape[1] == 1:
                values = values[:, 0]
            columns.append(_labels(values, classes))
            start = np.vstack([solution.coef, solution.intercept])
        return np.column_stack(columns)

    def _features(self, kernel: Kernel, X: Any, n_components: int, random) -> LandmarkMap:
        landmarks = select_landmarks(kernel, X, min(n_components, len(X)), random_state=random)
        low_rank = nystroem(kernel, X, landmarks, oversampling=2.0, random_state=random)
        return low_rank.feature_map(kernel, X)


def _signs(y: NDArray) -> tuple[NDArray, NDArray]:
    """The classes, and one column per problem: 1 for the class and -1 for the rest; one column for two classes."""
    classes, codes = np.unique(y, return_inverse=True)
    columns = np.arange(1, 2) if len(classes) == 2 else np.arange(len(classes))
    return classes, np.where(codes[:, None] == columns, 1.0, -1.0)


def _labels(values: NDArray, classes: NDArray) -> NDArray:
    if values.ndim == 2:
        return classes[values.argmax(axis=1)]
    if len(classes) == 2:
        return classes[(values > 0).astype(int)]
    return np.full(len(values), classes[0])


class KreinStage(Stage):
    """A Krein estimator with the learned kernel, which chooses its own penalties; `judge` compares candidates."""

    def __init__(self, estimator: BaseEstimator, judge: KernelStage):
        self.estimator = estimator
        self.judge = judge
        self.grid = judge.grid
        self.targets = judge.targets

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        self.judge.grid = self.grid
        return self.judge._values(kernel, X, y, Z)

    def _fit(self, X: Any, y: NDArray) -> None:
        self.model = self.estimator.set_params(kernel=self.kernel).fit(X, y)

    def _evaluate(self, method: str, X: Any) -> NDArray:
        return getattr(self.model, method)(X)


class StageChoice(NamedTuple):
    """The choice of cross-validation over both stages."""

    candidate: int
    C: float
    totals: NDArray  # (n_candidates, n_values): losses of all held-out rows
    losses: NDArray  # (n_held_out,) of what was chosen
    constant: NDArray  # (n_held_out,) of the training rows' mean or most frequent label


def compare_stages(
    stage: Stage,
    learn: Callable[[int, NDArray], Kernel],
    n_candidates: int,
    X: NDArray,
    y: NDArray,
    splits: list[Split],
    n_base: int = 0,
    learn_as_fitted: Callable[[int, NDArray], Kernel] | None = None,
) -> StageChoice:
    """Compare candidates of stage 1 by the machine of stage 2, with the kernel learned anew in every fold.

    ``learn(candidate, rows)`` returns the kernel learned from these rows, perhaps a cheaper one that ranks candidates
    alike. ``learn_as_fitted`` then returns the kernel as the fit will learn it, for the choice of C, which depends on
    it; None if it is the same. Losses of rows that are held out several times are averaged. A classifier prefers
    one of the first `n_base` kernels, which are not learned, unless a learned one has fewer errors by more than about a
    standard deviation.
    """

    def losses_of(kernel: Kernel, split: Split) -> NDArray:
        train, test = split
        return stage.losses(kernel, X[train], y[train], X[test], y[test])

    by_split = [
        [losses_of(learn(i, split[0]), split) for i in range(n_candidates)] for split in splits
    ]
    losses = np.hstack(by_split)  # (n_candidates, n_held_out, n_values)
    totals = np.array([_mean_by_row(values, splits).sum(axis=0) for values in losses])
    eligible = totals
    if stage.targets.classify and n_base:
        least = totals[:n_base].min()
        # counts are noisy, and the best of many learned kernels is lucky
        if least - totals.min() <= np.sqrt(least):
            eligible = totals[:n_base]
    i, k = (int(j) for j in np.unravel_index(int(np.argmin(eligible)), eligible.shape))
    chosen = losses[i][:, k]
    if (
        len(stage.grid) > 1
    ):  # C of the chosen kernel, as it will be learned and by the machine itself
        learn_chosen = partial(learn_as_fitted or learn, i)
        if learn_as_fitted is not None:
            kernels = [learn_chosen(train) for train, _ in splits]
            of_chosen = np.vstack([losses_of(*pair) for pair in zip(kernels, splits)])
            k = int(np.argmin(_mean_by_row(of_chosen, splits).sum(axis=0)))
            chosen = of_chosen[:, k]
        if stage.refines:
            machines = _ExactMachines(stage, learn_chosen, X, y, splits)
            k, chosen = _walk_down(machines.losses, k, len(stage.grid))
    constant = np.concatenate(
        [stage.targets.constant_losses(y[train], y[test]) for train, test in splits]
    )
    return StageChoice(
        i,
        float(stage.grid[k]),
        totals,
        _mean_by_row(chosen, splits),
        _mean_by_row(constant, splits),
    )


def _mean_by_row(losses: NDArray, splits: list[Split]) -> NDArray:
    """Losses of the test rows of all splits, one after the other, as a mean for every row that was held out."""
    held_out = np.concatenate([test for _, test in splits])
    rows, place, counts = np.unique(held_out, return_inverse=True, return_counts=True)
    sums = np.zeros((len(rows), *losses.shape[1:]))
    np.add.at(sums, place, losses)
    return sums / counts.reshape(-1, *[1] * (losses.ndim - 1))


class _ExactMachines:
    """The machines of stage 2 with one learned kernel, one for every fold; the matrices serve all loss weights."""

    def __init__(
        self,
        stage: Stage,
        learn: Callable[[NDArray], Kernel],
        X: NDArray,
        y: NDArray,
        splits: list[Split],
    ):
        self.stage = stage
        self.y = y
        self.splits = splits
        self.matrices = [stage.matrices(learn(train), X[train], X[test]) for train, test in splits]
        self.least = np.inf  # sum of losses of the best loss weight so far

    def losses(self, k: int) -> NDArray:
        """Losses with a loss weight of the grid; not of all folds if those of the first ones are too large already."""
        C = float(self.stage.grid[k])
        blocks = []
        total = 0.0
        for matrices, (train, test) in zip(self.matrices, self.splits):
            block = self.stage.exact_losses(matrices, self.y[train], self.y[test], C)
            blocks.append(block)
            total += float(block.sum())
            if total > self.least * (1 + 1e-9):  # beyond the rounding of the sum
                break
        self.least = min(self.least, total)
        return np.concatenate(blocks)


def _walk_down(losses_of: Callable[[int], NDArray], start: int, n: int) -> tuple[int, NDArray]:
    """From a loss weight to lower ones, or if these lose to higher ones, as long as the sum of losses falls.

    Machines with large weights are slow, and the cheaper machine is seldom wrong by more than one step.
    """
    best = start
    losses = losses_of(start)
    for step in (-1, 1):
        while 0 <= best + step < n:
            other = losses_of(best + step)
            if other.sum() >= losses.sum():
                break
            best = best + step
            losses = other
        if best != start:
            break
    return best, losses


class ChosenStages(NamedTuple):
    """The settings of both stages, and the result of the comparison."""

    task: Regression  # stage 1 with its hyper-kernel and penalty
    C: float | None  # stage 2's loss weight; None if the machine chooses it itself
    results: list[dict]  # scores of all candidates
    comparison: StageChoice | None  # None if nothing was compared


def choose_stages(
    stage: Stage,
    task: Regression,
    kind: str,
    X: NDArray,
    y: NDArray,
    folds: list,
    random,
    random_state: Any,
) -> ChosenStages:
    """Choose stage 1's hyper-kernel and penalty and stage 2's loss weight by cross-validation over both.

    ``kind`` is that of the `PairTarget`; ``folds`` are the ``cv`` of stage 1 and of both; ``random_state`` draws the
    centers of every kernel that is compared.
    """
    items = X.astype(float, copy=False)
    target = encode_target(y, len(X), kind).target
    choice = choose_regression(task, items, target, folds[0], random)
    candidates, n_base = _candidates(task, choice.task, choice.results, X)
    if len(X) < LIMITS.fewest_items or len(candidates) * len(stage.grid) == 1:
        given_C = float(stage.grid[0]) if len(stage.grid) == 1 else 1.0
        return ChosenStages(candidates[0], given_C, [], None)
    compared = [_reduced(candidate) for candidate in candidates]
    draws = _draws_of_folds(folds[1], X, y, stage.targets.classify, random)
    splits = [split for fold_of in draws for split in splits_of(fold_of)]
    splits = first_until(splits, LIMITS.held_out_rows)
    numbers = [(draw, fold) for draw, fold_of in enumerate(draws) for fold in np.unique(fold_of)]
    number_of = {train.tobytes(): number for number, (train, _) in zip(numbers, splits)}
    # of every hyper-kernel; candidates that differ in their penalty only share them
    shared: dict[tuple[int, int], FoldPaths] = {}
    paths: dict[tuple[int, int, int], KernelPath | OneKernel] = {}

    def learn(index: int, rows: NDArray) -> Kernel:
        """The kernel that this candidate learns from these rows, or from a sample of them."""
        draw, fold = number_of[rows.tobytes()]
        rows = rows[some_rows(len(rows), LIMITS.compared_items, 0)]
        candidate = compared[index]._replace(n_parts=auto_parts(len(rows)))
        if not KernelPath.serves(candidate, len(rows)):
            return learn_alone(candidate, rows)
        assert candidate.alpha is not None
        hyper = id(candidate.hyper_kernel)
        if (draw, hyper) not in shared:
            seed = check_random_state(random_state)
            shared[draw, hyper] = FoldPaths(candidate, items, draws[draw], seed)
        if (draw, hyper, fold) not in paths:
            pairs = encode_target(y[rows], len(rows), kind).target
            paths[draw, hyper, fold] = shared[draw, hyper].without(fold, pairs)
        return normalized(paths[draw, hyper, fold].kernel(candidate.alpha), X[rows])

    def learn_with_own_loss(index: int, rows: NDArray) -> Kernel:
        """The same with the loss that the fit will have."""
        rows = rows[some_rows(len(rows), LIMITS.compared_items, 0)]
        candidate = _with_few_landmarks(candidates[index])
        return learn_alone(candidate._replace(n_parts=auto_parts(len(rows))), rows)

    def learn_alone(candidate: Regression, rows: NDArray) -> Kernel:
        pairs = encode_target(y[rows], len(rows), kind).target
        seed = check_random_state(random_state)
        kernel, _ = learn_kernel(candidate, items[rows], pairs, seed)
        return normalized(kernel, X[rows])

    learn_as_fitted = None if task.epsilon is None else learn_with_own_loss
    comparison = compare_stages(
        stage, learn, len(candidates), X, y, splits, n_base, learn_as_fitted
    )
    perfect = len(comparison.losses) if stage.targets.classify else 0.0
    results = [
        {
            "hyper_kernel": candidate.hyper_kernel,
            "alpha": candidate.alpha,
            "score": float(perfect - total),
        }
        for candidate, total in zip(candidates, comparison.totals.min(axis=1))
    ]
    C: float | None = comparison.C
    if stage.chooses_C and len(stage.grid) > 1:
        C = None
    return ChosenStages(candidates[comparison.candidate], C, results, comparison)


def _draws_of_folds(
    cv: Any, X: NDArray, y: NDArray, classify: bool, random: np.random.RandomState
) -> list[NDArray]:
    """The fold of every row; of few labels several draws, since one has few errors to tell candidates apart.

    Squared errors of numbers are finer than counts, and folds of a splitter are as they are: these have one draw.
    """
    n_draws = 1
    if classify and (cv is None or isinstance(cv, Integral)):
        n_draws = min(LIMITS.most_draws, -(-LIMITS.enough_labels // len(X)))
    draws = []
    for _ in range(n_draws):
        fold_of = fold_numbers(cv, X, y, classify=classify, random_state=random)
        draws.append(np.unique(fold_of, return_inverse=True)[1])  # without gaps
    return draws


def _reduced(candidate: Regression) -> Regression:
    """The candidate with few landmarks and the squared loss, which ranks candidates equally and is far faster."""
    candidate = _with_few_landmarks(candidate)
    if candidate.epsilon is not None:
        candidate = candidate._replace(epsilon=None, fit_intercept=False, tol=1e-4, max_iter=300)
    return candidate


def _with_few_landmarks(candidate: Regression) -> Regression:
    n_landmarks = LIMITS.compared_landmarks
    if candidate.n_landmarks is not None:
        n_landmarks = min(candidate.n_landmarks, n_landmarks)
    return candidate._replace(n_landmarks=n_landmarks)


def _candidates(
    task: Regression, chosen: Regression, results: list[dict], X: NDArray
) -> tuple[list[Regression], int]:
    """The base kernel itself, first; stage 1's best setting of every length scale; and smoother ones.

    Also returns how many of them are base kernels, which are not learned.
    """
    by_scale = {_scale_of(chosen.hyper_kernel): chosen}
    rows = [row for row in results if row["alpha"] >= LIMITS.closest_alpha]
    for row in sorted(rows, key=lambda row: row["error"]):
        setting = chosen._replace(hyper_kernel=row["hyper_kernel"], alpha=row["alpha"])
        by_scale.setdefault(_scale_of(setting.hyper_kernel), setting)
    learned = list(by_scale.values())[:4]
    if task.alpha is None:
        smooth = LIMITS.smooth_alpha
        learned += [
            setting._replace(alpha=smooth)
            for setting in learned
            if setting.alpha is not None and setting.alpha < smooth
        ]
    base = []
    is_named_gaussian = isinstance(task.hyper_kernel, str) and task.hyper_kernel == "gaussian"
    if is_named_gaussian and len(X) >= LIMITS.fewest_items:
        for factor in LIMITS.base_scales:
            constant = GaussianHyper(spread_of(X) * factor, np.inf)
            base.append(chosen._replace(hyper_kernel=constant, alpha=1e-6))
    candidates = base + learned
    n_base = sum(getattr(setting.hyper_kernel, "constant", False) for setting in candidates)
    return candidates, n_base


def _scale_of(hyper: HyperKernel) -> bytes:
    return np.asarray(hyper.length_scale, dtype=float).tobytes()


def normalized(kernel: HyperExpansion, X: NDArray) -> Kernel:
    """The learned kernel without its constant, which has no effect on a machine with an intercept, and a unit diagonal.

    Otherwise a large constant would set the scale, and the loss weights that are compared would be far too small.
    """
    kernel = HyperExpansion(kernel.hyper_kernel, kernel.centers, kernel.coef)
    size = float(np.mean(np.abs(kernel.diag(X))))
    return Scale(kernel, 1.0 / size) if size > 0 else kernel


def auto_parts(n_items: int) -> int:
    """The number of parts of about 500 items, 1 up to 1000 items."""
    if n_items <= 2 * LIMITS.part_items:
        return 1
    return -(-n_items // LIMITS.part_items)
