"""Linear machines on features of many rows, from sums over blocks of rows: squared hinge and ridge.

Features ``[z(x), 1]`` are never held for all rows unless the caller does so; a *pass* goes over the rows once and
returns sums. Nothing here knows of kernels.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

_STEPS = 0.5 ** np.arange(8)  # lengths of Newton steps that one pass looks at


class HingeSums(NamedTuple):
    """What a pass over the rows tells of one problem and one Newton step."""

    loss: NDArray  # (n_steps,), the squared hinge losses after steps of all lengths
    # weighted [Z 1]^T [Z 1] over the rows that the full step leaves inside the margin
    gram: NDArray
    rhs: NDArray  # weighted [Z 1]^T sign over the same rows

    def __add__(self, other: "HingeSums") -> "HingeSums":  # type: ignore[override]
        return HingeSums(*(a + b for a, b in zip(self, other)))


class LinearSolution(NamedTuple):
    """Coefficients of linear machines, one column per problem, and how well they solve it."""

    coef: NDArray  # (n_features, n_problems)
    intercept: NDArray  # (n_problems,)
    certificate: float  # the largest relative bound on what the objective can still fall
    n_iter: int  # passes over the rows


def hinge_sums(Z: NDArray, signs: NDArray, old: NDArray, new: NDArray) -> list[HingeSums]:
    """The sums over one block of rows, one per column of signs: -1 or 1 times the root of the row's weight.

    ``old`` and ``new`` are weights of the features, the intercept last, before and after a full Newton step.
    """
    out = []
    before, after = (Z @ w[:-1] + w[-1] for w in (old, new))
    for k, sign in enumerate(signs.T):
        root = np.abs(sign)
        slack = root - sign * before[:, k]
        change = sign * (after[:, k] - before[:, k])
        loss = np.array([np.square(np.maximum(slack - t * change, 0.0)).sum() for t in _STEPS])
        active = np.flatnonzero(slack - change > 0)
        root = root[active]
        sign = sign[active]
        A = Z[active]
        A *= root[:, None]
        gram = np.empty((Z.shape[1] + 1,) * 2)
        gram[:-1, :-1] = A.T @ A
        gram[-1, :-1] = gram[:-1, -1] = root @ A
        gram[-1, -1] = root @ root
        out.append(HingeSums(loss, gram, np.append(sign @ A, sign @ root)))
    return out


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
    C = np.asarray(C, dtype=float)
    old = np.zeros((n_features + 1, len(C)))
    if start is not None:
        old[:] = start
    new = old.copy()
    done = np.zeros(len(C), dtype=bool)
    value = np.full(len(C), np.inf)
    gap = np.full(len(C), np.inf)
    iteration = 0
    while not done.all() and iteration < max_iter:
        iteration += 1
        sums = run(old, new)
        for k in np.flatnonzero(~done).tolist():
            along = [
                0.5 * float(np.sum((old[:-1, k] + t * (new[:-1, k] - old[:-1, k])) ** 2))
                for t in _STEPS
            ]
            values = along + C[k] * sums[k].loss
            best = int(np.argmin(values))
            # a shorter step: the next pass looks at its end
            if best > 0 or not values[0] <= value[k]:
                moved = old[:, k] + _STEPS[best] * (new[:, k] - old[:, k])
                # no length is better: at the rounding of the objective, or all of them are too long
                done[k] = not values[best] < value[k] and gap[k] < 1e-12
                new[:, k] = old[:, k] if done[k] else moved
                continue
            value[k] = values[0]
            old[:, k] = new[:, k]
            step, gap[k] = _newton_step(sums[k], new[:, k], C[k], value[k])
            done[k] = gap[k] <= tol
            new[:, k] = old[:, k] + (0.0 if done[k] else step)
        if callback is not None and callback(
            {"iteration": iteration, "residual": float(gap.max())}
        ):
            break
    return LinearSolution(old[:-1], old[-1], float(gap.max(initial=0.0)), iteration)


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
    step = -cho_solve(cho_factor(H, overwrite_a=True), gradient / unit) / unit
    return step, float(-0.5 * (gradient @ step) / max(value, np.finfo(float).tiny))


class RidgeChoice(NamedTuple):
    """A ridge regression and the loss weight that cross-validation chose for it."""

    # on all rows; the certificate is the relative residual of the normal equations
    solution: LinearSolution
    C: float
    errors: NDArray  # mean squared validation errors; zeros when nothing was compared


def moment_sums(Z: NDArray, y: NDArray, folds: NDArray, n_folds: int) -> NDArray:
    """``[Z 1 y]^T [Z 1 y]`` of a block of rows, by fold."""
    rows = np.column_stack([Z, np.ones(len(Z)), y])
    return np.stack([rows[folds == k].T @ rows[folds == k] for k in range(n_folds)])


def ridge_choice(moments: NDArray, C: NDArray) -> RidgeChoice:
    """Minimize ``|w|^2 / 2 + C / 2 sum_i (z_i.w + b - y_i)^2`` with C by cross-validation over the given folds.

    Needs the folds' moments only: one eigendecomposition per fold gives the whole path. Certificate: relative residual
    of the normal equations. Global optimum. With one fold, or one C, nothing is compared and the middle C is taken.
    """
    whole = moments.sum(axis=0)
    errors = np.zeros(len(C))
    filled = [fold for fold in moments if fold[-2, -2] > 0]
    best = len(C) // 2
    if len(filled) > 1 and len(C) > 1:
        for fold in filled:
            for k, w in enumerate(ridge_path_of_moments(whole - fold, C).T):
                residual = np.append(w, -1.0)
                errors[k] += max(0.0, float(residual @ fold @ residual))
        best = int(np.argmin(errors))
    w = ridge_path_of_moments(whole, C[best : best + 1])[:, 0]
    gradient = C[best] * (whole[:-1, :-1] @ w - whole[:-1, -1])
    gradient[:-1] += w[:-1]
    scale = C[best] * np.linalg.norm(whole[:-1, -1])
    certificate = float(np.linalg.norm(gradient) / max(scale, np.finfo(float).tiny))
    return RidgeChoice(
        LinearSolution(w[:-1, None], w[-1:], certificate, 1), float(C[best]), errors / whole[-2, -2]
    )


def ridge_path_of_moments(moments: NDArray, C: NDArray) -> NDArray:
    """The ridge regressions of `ridge_choice` for all values of C, from one eigendecomposition."""
    n = moments[-2, -2]
    mean = moments[-2, :-2] / n
    target = moments[-2, -1] / n
    values, vectors = eigh(moments[:-2, :-2] - n * np.outer(mean, mean))
    projected = vectors.T @ (moments[:-2, -1] - n * target * mean)
    w = vectors @ (projected[:, None] / (np.maximum(values, 0.0)[:, None] + 1.0 / np.asarray(C)))
    return np.vstack([w, target - mean @ w])
