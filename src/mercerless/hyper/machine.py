"""Stage 2 of the two-stage hyper-kernel estimators: machines with a learned kernel, and the choice of both stages."""

from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, SVR

from mercerless.core.blocks import is_dask, map_rows, reduce_rows
from mercerless.core.folds import Split, first_until, fold_numbers, make_folds, some_rows
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
    Regression,
    choose_regression,
    encode_target,
    learn_kernel,
    spread_of,
)
from mercerless.kernels.base import Kernel, Scale
from mercerless.kernels.hyper import GaussianHyper, HyperKernel
from mercerless.kernels.learned import HyperExpansion
from mercerless.lowrank import LandmarkMap, nystroem, select_landmarks

_BLOCK_BYTES = 2**27
_HELD_ROWS = 2000  # held-out rows that settle a comparison of candidates
# where candidates are compared, stage 1 has at most this many items and sections
_TUNE_ITEMS = 2000
_TUNE_LANDMARKS = 200
_PART_ITEMS = 500  # items in a part where the number of parts is chosen
_SMOOTH = 1e-2  # a penalty that leaves the learned kernel near the base kernel; always a candidate
_FEWEST = 10  # items below which nothing is compared
_BASE_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


class Stage:
    """Stage 2: a machine with a given kernel, for labels or for values, which it standardizes by `moments`."""

    grid: NDArray  # values of the loss weight C to compare
    kernel: Kernel
    C: float | None
    certificate: float = 0.0  # the relative optimality gap, where the machine does not warn itself
    # mean and standard deviation of values; None: labels
    moments: tuple[float, float] | None = None
    # whether `losses` asks a cheaper machine, so that C has to be chosen by exact ones
    refines = False

    def fit(self, kernel: Kernel, X: Any, y: NDArray, C: float | None) -> "Stage":
        """Fit the machine; None as C where it chooses that itself."""
        self.kernel = kernel
        self.C = C
        self._fit(X, self._standard(y))
        return self

    def evaluate(self, method: str, X: Any) -> NDArray:
        """What `predict` or `decision_function` says of new rows."""
        values = self._evaluate(method, X)
        return values if self.moments is None else values * self.moments[1] + self.moments[0]

    def losses(
        self,
        kernel: Kernel,
        X: NDArray,
        y: NDArray,
        Z: NDArray,
        z: NDArray,
        exact: NDArray | None = None,
    ) -> NDArray:
        """Wrong labels, or squared errors, of held-out rows Z for the whole grid, of shape (n_held, n_values).

        The machine may be a cheaper one that ranks kernels alike, unless `exact` names loss weights for itself.
        """
        y = self._standard(y)
        values = (
            self._values(kernel, X, y, Z)
            if exact is None
            else self._exact_values(kernel, X, y, Z, exact)
        )
        if self.moments is None:
            return np.not_equal(values, z[:, None]).astype(float)
        return (values - self._standard(z)[:, None]) ** 2 * self.moments[1] ** 2

    def _standard(self, y: NDArray) -> NDArray:
        return y if self.moments is None else (y - self.moments[0]) / self.moments[1]

    def _fit(self, X: Any, y: NDArray) -> None:
        raise NotImplementedError

    def _evaluate(self, method: str, X: Any) -> NDArray:
        raise NotImplementedError

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        """Predictions for Z of machines trained on X with every loss weight of the grid."""
        raise NotImplementedError

    def _exact_values(
        self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, weights: NDArray
    ) -> NDArray:
        """The same by the machine itself, where `_values` asks a cheaper one, with these loss weights."""
        raise NotImplementedError


class KernelStage(Stage):
    """A support vector machine on the matrix of the learned kernel, its negative directions flipped.

    libsvm stops anywhere when the kernel is indefinite, often far from a useful machine; the flipped matrix
    ``K @ projector`` is positive semi-definite and new rows get the same projector. A regression's tube
    is ``epsilon`` standard deviations wide on either side.
    """

    def __init__(self, epsilon: float = 0.0, moments: tuple[float, float] | None = None):
        self.epsilon = epsilon
        self.moments = moments
        self.refines = moments is not None
        self.grid = np.logspace(-2, 3, 6) if moments is None else np.logspace(-1, 4, 6)

    def _fit(self, X: NDArray, y: NDArray) -> None:
        K, self.projector = _flipped(self.kernel, X)
        self.items, self.model = X, self._machine(self.C).fit(K, y)

    def _evaluate(self, method: str, X: NDArray) -> NDArray:
        values = [
            getattr(self.model, method)(
                _projected(self.kernel(X[rows], self.items), self.projector)
            )
            for rows in row_blocks(len(X), 16.0 * len(self.items), _BLOCK_BYTES)
        ]
        return np.concatenate(values)

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        # of a regression: kernel ridge regression, whose whole path costs one eigendecomposition
        if self.moments is None:
            return self._exact_values(kernel, X, y, Z, self.grid)
        s, V = eigh(kernel(X))
        mean = y.mean()
        path = (V * np.where(s < 0, -1.0, 1.0)) @ (
            (V.T @ (y - mean))[:, None] / (np.abs(s)[:, None] + 1 / self.grid)
        )
        return kernel(Z, X) @ path + mean

    def _exact_values(
        self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray, weights: NDArray
    ) -> NDArray:
        if self.moments is None and np.all(y == y[0]):
            return np.full((len(Z), len(weights)), y[0])
        K, projector = _flipped(kernel, X)
        K_new = _projected(kernel(Z, X), projector)
        return np.column_stack([self._machine(C).fit(K, y).predict(K_new) for C in weights])

    def _machine(self, C: float | None) -> SVC | SVR:
        options = {"kernel": "precomputed", "C": C, "cache_size": 500}
        return (
            SVC(break_ties=True, **options)
            if self.moments is None
            else SVR(epsilon=self.epsilon, **options)
        )


def _flipped(kernel: Kernel, X: NDArray) -> tuple[NDArray, NDArray | None]:
    """The matrix with its negative eigenvalues flipped and the projector that does it; None when there are none."""
    K = kernel(X)
    if kernel.definite is True:
        return K, None
    stable = stabilize(K)
    return (stable.kernel, stable.projector) if stable.n_negative else (K, None)


def _projected(K: NDArray, projector: NDArray | None) -> NDArray:
    return K if projector is None else K @ projector


class LinearStage(Stage):
    """A linear machine on low-rank features of the learned kernel, from passes over blocks of rows.

    Classification has the squared hinge loss (one class against the rest), regression the squared loss. X may be a
    memory map or a Dask array; features are kept where they fit into memory, else computed again in every pass.
    """

    def __init__(
        self,
        n_components: int,
        cv: Any,
        random_state: Any,
        moments: tuple[float, float] | None = None,
    ):
        self.n_components = n_components
        self.cv = cv
        self.random_state = random_state
        self.moments = moments
        self.grid = np.logspace(-1, 3, 5) if moments is None else np.logspace(-3, 6, 10)

    def _fit(self, X: Any, y: NDArray) -> None:
        random = check_random_state(self.random_state)
        features = self._features(self.kernel, X, self.n_components, random)
        rows, of_rows = self._rows(features, X)

        def over_rows(function: Callable, combine: Callable, arrays: tuple) -> Any:
            on_features = partial(_on_features, of_rows, function)
            return reduce_rows(
                on_features, combine, arrays, 2 * features.bytes_per_row, self._block
            )

        if self.moments is None:
            self.classes, signs = _signs(y)

            def run(old: NDArray, new: NDArray) -> list[HingeSums]:
                return over_rows(partial(hinge_sums, old=old, new=new), _add_all, (rows, signs))

            solution = squared_hinge(
                run, features.weights.shape[1], np.full(signs.shape[1], self.C)
            )
        else:
            solution, self.C = self._ridge(X, y, rows, over_rows, random)
        self.certificate = solution.certificate
        self.intercept = solution.intercept
        self.decision = features._replace(weights=features.weights @ solution.coef)

    def _ridge(
        self, X: Any, y: NDArray, rows: Any, over_rows: Callable, random
    ) -> tuple[LinearSolution, float]:
        """The regression, with C by cross-validation on all rows where it is not given."""
        fold_of = np.zeros(len(y), dtype=int)
        if self.C is None:
            fold_of = fold_numbers(self.cv, X, random_state=random)
        moments = over_rows(
            partial(moment_sums, n_folds=fold_of.max() + 1), add, (rows, y, fold_of)
        )
        choice = ridge_choice(moments, self.grid if self.C is None else np.array([self.C]))
        return choice.solution, choice.C

    def _evaluate(self, method: str, X: Any) -> NDArray:
        values = self.decision.transform(X) + self.intercept
        values = values[:, 0] if values.shape[1] == 1 else values
        return (
            _labels(values, self.classes)
            if self.moments is None and method == "predict"
            else values
        )

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        # fewer features tell the same candidates apart
        features = self._features(
            kernel, X, min(self.n_components, 400), check_random_state(self.random_state)
        )
        F = features(X)
        F_new = features(Z)
        if self.moments is not None:
            path = ridge_path_of_moments(
                moment_sums(F, y, np.zeros(len(y), dtype=int), 1)[0], self.grid
            )
            return F_new @ path[:-1] + path[-1]
        classes, signs = _signs(y)
        columns = []
        start = None
        for C in self.grid:
            run = partial(hinge_sums, F, signs)
            solution = squared_hinge(
                run, F.shape[1], np.full(signs.shape[1], C), start=start, tol=1e-6
            )
            values = F_new @ solution.coef + solution.intercept
            columns.append(_labels(values[:, 0] if values.shape[1] == 1 else values, classes))
            start = np.vstack([solution.coef, solution.intercept])
        return np.column_stack(columns)

    @property
    def _block(self) -> int:
        """Bytes that a block of rows may need: one for similarities, one for features, one for those in the margin."""
        return min(_BLOCK_BYTES, memory_budget() // 4)

    def _features(self, kernel: Kernel, X: Any, n_components: int, random) -> LandmarkMap:
        landmarks = select_landmarks(kernel, X, min(n_components, len(X)), random_state=random)
        return nystroem(kernel, X, landmarks, oversampling=2.0, random_state=random).feature_map(
            kernel, X
        )

    def _rows(self, features: LandmarkMap, X: Any) -> tuple[Any, Callable | None]:
        """What passes go over, and how its rows become features (None: they are features)."""
        rank = features.weights.shape[1]
        # the features, and the blocks of a pass with their rows inside the margin
        if 8.0 * len(X) * rank + 4 * self._block > memory_budget() or rank == 0:
            return X, features.__call__
        Z = map_rows(
            features.__call__, X, 2 * features.bytes_per_row, n_columns=rank, budget=self._block
        )
        return (Z.persist() if is_dask(Z) else Z), None


def _on_features(
    of_rows: Callable | None, function: Callable, rows: NDArray, *others: NDArray
) -> Any:
    return function(rows if of_rows is None else of_rows(rows), *others)


def _add_all(first: list[HingeSums], second: list[HingeSums]) -> list[HingeSums]:
    return [a + b for a, b in zip(first, second)]


def _signs(y: NDArray) -> tuple[NDArray, NDArray]:
    """The classes, and one column per problem: 1 for the class and -1 for the rest; one column for two classes."""
    classes, codes = np.unique(y, return_inverse=True)
    columns = np.arange(1, 2) if len(classes) == 2 else np.arange(len(classes))
    return classes, np.where(codes[:, None] == columns, 1.0, -1.0)


def _labels(values: NDArray, classes: NDArray) -> NDArray:
    if values.ndim == 1:
        return (
            classes[(values > 0).astype(int)]
            if len(classes) == 2
            else np.full(len(values), classes[0])
        )
    return classes[values.argmax(axis=1)]


class KreinStage(Stage):
    """A Krein estimator with the learned kernel, which chooses its own penalties; `judge` compares candidates."""

    def __init__(self, estimator: BaseEstimator, judge: KernelStage):
        self.estimator = estimator
        self.judge = judge
        self.grid = judge.grid
        self.moments = judge.moments

    def _values(self, kernel: Kernel, X: NDArray, y: NDArray, Z: NDArray) -> NDArray:
        self.judge.grid = self.grid
        return self.judge._values(kernel, X, y, Z)

    def _fit(self, X: Any, y: NDArray) -> None:
        self.model = self.estimator.set_params(kernel=self.kernel).fit(X, y)

    def _evaluate(self, method: str, X: Any) -> NDArray:
        return getattr(self.model, method)(X)


class StageChoice(NamedTuple):
    """What cross-validation over both stages chose."""

    candidate: int
    C: float
    totals: NDArray  # (n_candidates, n_values): losses of all held-out rows
    losses: NDArray  # (n_held,) of what was chosen
    constant: NDArray  # (n_held,) of the training rows' mean or most frequent label


def compare_stages(
    stage: Stage,
    learn: Callable[[int, NDArray], Kernel],
    n_candidates: int,
    X: NDArray,
    y: NDArray,
    splits: list[Split],
    n_base: int = 0,
) -> StageChoice:
    """Compare candidates of stage 1 by the machine of stage 2, with the kernel learned anew in every fold.

    ``learn(candidate, rows)`` gives the kernel that these rows teach. A classifier prefers one of the first `n_base`
    kernels, which learned nothing, unless a learned one has fewer errors by more than about a standard deviation.
    """

    def losses_of(kernel: Kernel, train: NDArray, held: NDArray, **options: NDArray) -> NDArray:
        return stage.losses(kernel, X[train], y[train], X[held], y[held], **options)

    losses = np.hstack(
        [[losses_of(learn(i, split[0]), *split) for i in range(n_candidates)] for split in splits]
    )
    totals = losses.sum(axis=1)
    eligible = totals
    if stage.moments is None and n_base:
        least = totals[:n_base].min()
        # counts are noisy, and the best of many learned kernels is lucky
        if least - totals.min() <= np.sqrt(least):
            eligible = totals[:n_base]
    i, k = (int(j) for j in np.unravel_index(int(np.argmin(eligible)), eligible.shape))
    chosen = losses[i][:, k]
    if stage.refines and len(stage.grid) > 1:  # C of the chosen kernel, by the machine itself
        kernels = [learn(i, train) for train, _ in splits]

        def exactly(k: int) -> NDArray:
            return np.vstack(
                [losses_of(K, *split, exact=stage.grid[[k]]) for K, split in zip(kernels, splits)]
            )[:, 0]

        k, chosen = _walk_down(exactly, k, len(stage.grid))
    return StageChoice(
        i, float(stage.grid[k]), totals, chosen, _constant_losses(y, splits, stage.moments)
    )


def _walk_down(losses_of: Callable[[int], NDArray], start: int, n: int) -> tuple[int, NDArray]:
    """From a loss weight to lower ones, or where these lose to higher ones, as long as the sum of losses falls.

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


def _constant_losses(
    y: NDArray, splits: list[Split], moments: tuple[float, float] | None
) -> NDArray:
    """The losses of held-out rows where the training rows' mean, or most frequent label, is all that is known."""
    losses = []
    for train, held in splits:
        if moments is None:
            classes, counts = np.unique(y[train], return_counts=True)
            losses.append((y[held] != classes[counts.argmax()]).astype(float))
        else:
            losses.append((y[held] - y[train].mean()) ** 2)
    return np.concatenate(losses)


def choose_stages(
    stage: Stage,
    task: Regression,
    kind: str,
    X: NDArray,
    y: NDArray,
    folds: list,
    random,
    random_state: Any,
) -> tuple[Regression, float | None, list[dict], StageChoice | None]:
    """Stage 1 with its hyper-kernel and penalty, stage 2's loss weight, the scores of all candidates, the comparison.

    ``kind`` is that of the `PairTarget`; ``folds`` are the ``cv`` of stage 1 and of both; ``random_state`` draws the
    centers of every kernel that is compared. A regression on features gets None as its loss weight: it will choose.
    """
    items = X.astype(float, copy=False)
    target = encode_target(y, len(X), kind)[0]
    chosen, results, _ = choose_regression(task, items, target, folds[0], random)
    candidates, n_base = _candidates(task, chosen, results, X)
    if len(X) < _FEWEST or len(candidates) * len(stage.grid) == 1:
        return candidates[0], float(stage.grid[0]) if len(stage.grid) == 1 else 1.0, [], None
    n_landmarks = (
        _TUNE_LANDMARKS if task.n_landmarks is None else min(task.n_landmarks, _TUNE_LANDMARKS)
    )

    def learn(index: int, rows: NDArray) -> Kernel:
        rows = rows[some_rows(len(rows), _TUNE_ITEMS, 0)]
        small = candidates[index]._replace(n_landmarks=n_landmarks, n_parts=auto_parts(len(rows)))
        if small.epsilon is not None:  # the squared loss ranks candidates alike and is far faster
            small = small._replace(epsilon=None, tol=1e-4, max_iter=300)
        pairs = encode_target(y[rows], len(rows), kind)[0]
        return normalized(
            learn_kernel(small, items[rows], pairs, check_random_state(random_state))[0], X[rows]
        )

    splits = first_until(
        make_folds(folds[1], X, y, classify=stage.moments is None, random_state=random), _HELD_ROWS
    )
    choice = compare_stages(stage, learn, len(candidates), X, y, splits, n_base)
    perfect = len(choice.losses) if stage.moments is None else 0.0
    results = [
        {"hyper_kernel": one.hyper_kernel, "alpha": one.alpha, "score": float(perfect - total)}
        for one, total in zip(candidates, choice.totals.min(axis=1))
    ]
    free = isinstance(stage, LinearStage) and stage.moments is not None and len(stage.grid) > 1
    return candidates[choice.candidate], None if free else choice.C, results, choice


def _candidates(
    task: Regression, chosen: Regression, results: list[dict], X: NDArray
) -> tuple[list[Regression], int]:
    """The base kernel itself, first; stage 1's best setting of every length scale; and smoother ones.

    And how many of them are base kernels, which learn nothing.
    """
    by_scale = {_scale_of(chosen.hyper_kernel): chosen}
    # a machine needs no kernel fitted closer than that, and iterative solvers slow down
    rows = [row for row in results if row["alpha"] >= 1e-7]
    for row in sorted(rows, key=lambda row: row["error"]):
        one = chosen._replace(hyper_kernel=row["hyper_kernel"], alpha=row["alpha"])
        by_scale.setdefault(_scale_of(one.hyper_kernel), one)
    learned = list(by_scale.values())[:4]
    base = []
    if task.alpha is None:
        learned += [
            one._replace(alpha=_SMOOTH)
            for one in learned
            if one.alpha is not None and one.alpha < _SMOOTH
        ]
    if isinstance(task.hyper_kernel, str) and task.hyper_kernel == "gaussian" and len(X) >= _FEWEST:
        scales = [spread_of(X) * a for a in _BASE_SCALES]
        base = [
            chosen._replace(hyper_kernel=GaussianHyper(scale, np.inf), alpha=1e-6)
            for scale in scales
        ]
    candidates = base + learned
    return candidates, sum(getattr(one.hyper_kernel, "constant", False) for one in candidates)


def _scale_of(hyper: HyperKernel) -> bytes:
    return np.asarray(hyper.length_scale, dtype=float).tobytes()


def normalized(kernel: HyperExpansion, X: NDArray) -> Kernel:
    """The learned kernel without its constant, which no machine with an intercept sees, and with a unit diagonal.

    Otherwise a large constant would set the scale, and the loss weights that are compared would be far too small.
    """
    kernel = HyperExpansion(kernel.hyper_kernel, kernel.centers, kernel.coef)
    size = float(np.mean(np.abs(kernel.diag(X))))
    return Scale(kernel, 1.0 / size) if size > 0 else kernel


def auto_parts(n_items: int) -> int:
    """Parts of about 500 items where there are more than 1000."""
    return -(-n_items // _PART_ITEMS) if n_items > 2 * _PART_ITEMS else 1
