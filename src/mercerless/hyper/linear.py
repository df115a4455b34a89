"""Linear machines on features of many rows, from sums over blocks of rows: squared hinge and ridge.

Features ``[z(x), 1]`` are never held for all rows unless the caller does so; a *pass* goes over the rows once and
returns sums. Kernels play no role here.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from mercerless.hyper.thresholds import LIMITS


class HingeSums(NamedTuple):
    """Sums of a pass over the rows for one problem and one Newton step."""

    loss: NDArray  # (n_steps,), the squared hinge losses after steps of all lengths
    # weighted [Z 1]^T [Z 1] over the rows that the full step leaves inside the margin
    gram: NDArray
    rhs: NDArray  # weighted [Z 1]^T sign over the same rows

    def __add__(self, other: "HingeSums") -> "HingeSums":  # type: ignore[override]
        return HingeSums(*(a + b for a, b in zip(self, other)))


class LinearSolution(NamedTuple):
    """Coefficients of linear machines, one column per problem, and their certificate."""

    coef: NDArray  # (n_features, n_problems)
    intercept: NDArray  # (n_problems,)
    certificate: float  # the largest relative bound on a further decrease of the objective
    n_iter: int  # passes over the rows


def hinge_sums(Z: NDArray, signs: NDArray, old: NDArray, new: NDArray) -> list[HingeSums]:
    """The sums over one block of rows, one per column of signs: -1 or 1 times the root of the row's weight.

    ``old`` and ``new`` are weights of the features, the intercept last, before and after a full Newton step.
    """
    before = Z @ old[:-1] + old[-1]
    after = Z @ new[:-1] + new[-1]
    sums = []
    for k, sign in enumerate(signs.T):
        root = np.abs(sign)
        slack = root - sign * before[:, k]
        change = sign * (after[:, k] - before[:, k])
        losses = [np.square(np.maximum(slack - t * change, 0.0)).sum() for t in step_lengths()]
        active = np.flatnonzero(slack - change > 0)
        sums.append(_margin_sums(Z[active], root[active], sign[active], np.array(losses)))
    return sums


def _margin_sums(A: NDArray, root: NDArray, sign: NDArray, loss: NDArray) -> HingeSums:
    """The sums over the rows A inside the margin, which are scaled in place by the roots of their weights."""
    A *= root[:, None]
    n_features = A.shape[1]
    gram = np.empty((n_features + 1, n_features + 1))
    gram[:-1, :-1] = A.T @ A
    gram[-1, :-1] = root @ A
    gram[:-1, -1] = gram[-1, :-1]
    gram[-1, -1] = root @ root
    return HingeSums(loss, gram, np.append(sign @ A, sign @ root))


def step_lengths() -> NDArray:
    """Lengths of Newton steps that one pass evaluates: 1, 1/2, 1/4, ..."""
    return 0.5 ** np.arange(LIMITS.step_lengths)


def squared_hinge(
    run: Callable[[NDArray, NDArray], Sequence[HingeSums]],
    n_features: int,
    C: NDArray,
    *,
    start: NDArray | None = None,
    tol: float = 1e-10,
    max_iter: int = 50,
    callback: Callable[[dict], bool] | None = None,
) -> LinearSolution:
    """Minimize ``|w_k|^2 / 2 + C_k sum_i max(0, 1 - sign_ik (z_i.w_k + b_k))^2`` for every problem k.

    Newton's method on the rows inside the margin, all problems in the same passes over the rows; the step is the best
    of eight lengths, so the objective falls in every pass. Strongly convex in w: the optimum is global, and reached
    after finitely many passes (about ten). Certificate: half the squared Newton decrement, which bounds how far the
    local quadratic is from its minimum, relative to the objective. Rows of one sign only give ``w = 0, b = sign``.
    Cost per pass: a product of the features with the weights, and ``|A| n_features^2`` for the rows A inside the
    margin.
    """
    if start is None:
        start = np.zeros((n_features + 1, len(C)))
    problems = [_NewtonSteps(column, float(loss_weight)) for column, loss_weight in zip(start.T, C)]
    worst = np.inf
    iteration = 0
    while iteration < max_iter and not all(problem.done for problem in problems):
        iteration += 1
        old = np.column_stack([problem.old for problem in problems])
        new = np.column_stack([problem.new for problem in problems])
        for problem, sums in zip(problems, run(old, new)):
            if not problem.done:
                problem.update(sums, tol)
        worst = max(problem.gap for problem in problems)
        if callback is not None and callback({"iteration": iteration, "residual": worst}):
            break
    weights = np.column_stack([problem.old for problem in problems])
    return LinearSolution(weights[:-1], weights[-1], worst, iteration)


class _NewtonSteps:
    """The state of one problem: its weights, the intercept last, and the end of the step under trial."""

    def __init__(self, start: NDArray, C: float):
        self.C = C
        self.old = start.copy()
        self.new = start.copy()
        self.value = np.inf
        self.gap = np.inf
        self.done = False

    def update(self, sums: HingeSums, tol: float) -> None:
        """Go to the end of the step if no shorter one is better, and plan the next; else try the best shorter one."""
        lengths = step_lengths()
        step = self.new - self.old
        penalties = [0.5 * float(np.sum((self.old[:-1] + t * step[:-1]) ** 2)) for t in lengths]
        values = penalties + self.C * sums.loss
        best = int(np.argmin(values))
        is_progress = values[0] <= self.value
        if best == 0 and is_progress:
            self._accept(values[0], sums, tol)
            return
        # no length is better: at the rounding of the objective, or all of them are too long
        self.done = not values[best] < self.value and self.gap < 1e-12
        if self.done:
            self.new = self.old.copy()
        else:
            self.new = self.old + lengths[best] * step

    def _accept(self, value: float, sums: HingeSums, tol: float) -> None:
        self.value = value
        self.old = self.new.copy()
        step, self.gap = _newton_step(sums, self.old, self.C, value)
        self.done = self.gap <= tol
        if not self.done:
            self.new = self.old + step


def _newton_step(sums: HingeSums, w: NDArray, C: float, value: float) -> tuple[NDArray, float]:
    """The full step from w, and half its squared decrement relative to the objective."""
    H = 2.0 * C * sums.gram
    gradient = H @ w - 2.0 * C * sums.rhs
    gradient[:-1] += w[:-1]
    H[np.diag_indices(len(w) - 1)] += 1.0
    unit = np.sqrt(np.diagonal(H))
    unit[-1] = unit[-1] or 1.0  # no row inside the margin: the intercept stays
    H /= unit
    H /= unit[:, None]
    H[-1, -1] = 1.0 + 1e-14
    factor = cho_factor(H, overwrite_a=True)
    step = -cho_solve(factor, gradient / unit) / unit
    decrement = -(gradient @ step)
    return step, float(0.5 * decrement / max(value, np.finfo(float).tiny))


class RidgeChoice(NamedTuple):
    """A ridge regression and the loss weight that cross-validation chose for it."""

    # on all rows; the certificate is the relative residual of the normal equations
    solution: LinearSolution
    C: float
    errors: NDArray  # mean squared validation errors; zeros when nothing was compared


def moment_sums(Z: NDArray, y: NDArray, folds: NDArray, n_folds: int) -> NDArray:
    """``[Z 1 y]^T [Z 1 y]`` of a block of rows, by fold."""
    rows = np.column_stack([Z, np.ones(len(Z)), y])
    moments = []
    for k in range(n_folds):
        of_fold = rows[folds == k]
        moments.append(of_fold.T @ of_fold)
    return np.stack(moments)


def ridge_choice(moments: NDArray, C: NDArray) -> RidgeChoice:
    """Minimize ``|w|^2 / 2 + C / 2 sum_i (z_i.w + b - y_i)^2`` with C by cross-validation over the given folds.

    Needs the folds' moments only: one eigendecomposition per fold gives the whole path. Certificate: relative residual
    of the normal equations. Global optimum. With one fold, or one C, nothing is compared and the middle C is taken.
    """
    whole = moments.sum(axis=0)
    n_rows = whole[-2, -2]
    errors = np.zeros(len(C))
    filled = [fold for fold in moments if fold[-2, -2] > 0]
    best = len(C) // 2
    if len(filled) > 1 and len(C) > 1:
        for fold in filled:
            path = ridge_path_of_moments(whole - fold, C)
            for k, w in enumerate(path.T):
                residual = np.append(w, -1.0)
                errors[k] += max(0.0, float(residual @ fold @ residual))
        best = int(np.argmin(errors))
    chosen = C[best : best + 1]
    w = ridge_path_of_moments(whole, chosen)[:, 0]
    certificate = _ridge_residual(whole, w, float(chosen[0]))
    solution = LinearSolution(w[:-1, None], w[-1:], certificate, 1)
    return RidgeChoice(solution, float(chosen[0]), errors / n_rows)


def _ridge_residual(moments: NDArray, w: NDArray, C: float) -> float:
    """Residual of the normal equations at w, the intercept last, relative to their right-hand side."""
    gram = moments[:-1, :-1]
    rhs = moments[:-1, -1]
    gradient = C * (gram @ w - rhs)
    gradient[:-1] += w[:-1]
    scale = C * np.linalg.norm(rhs)
    return float(np.linalg.norm(gradient) / max(scale, np.finfo(float).tiny))


def ridge_path_of_moments(moments: NDArray, C: NDArray) -> NDArray:
    """The ridge regressions of `ridge_choice` for all values of C, from one eigendecomposition."""
    n = moments[-2, -2]
    mean = moments[-2, :-2] / n
    target = moments[-2, -1] / n
    covariance = moments[:-2, :-2] - n * np.outer(mean, mean)
    with_target = moments[:-2, -1] - n * target * mean
    values, vectors = eigh(covariance, driver="evd", check_finite=False)
    projected = vectors.T @ with_target
    shrunk = projected[:, None] / (np.maximum(values, 0.0)[:, None] + 1.0 / np.asarray(C))
    w = vectors @ shrunk
    return np.vstack([w, target - mean @ w])
