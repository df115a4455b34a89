"""Weights of several models from their out-of-fold predictions, and the test of one against another."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from scipy.special import softmax

from mercerless.core.calibration import fit_temperature

# a further model is worth its size only when validation gives it at least this weight
_SMALLEST_WEIGHT = 0.15


def combine(
    predictions: Sequence[NDArray], Y: NDArray, weight: NDArray | None = None, max_members: int = 3
) -> NDArray:
    """Nonnegative weights with sum 1 for several models: least squares on out-of-fold predictions, pulled to the mean.

    ``min |sum_c w_c P_c - Y|^2 + 10 e |w - 1/C|^2`` with the smallest mean squared error e: a Gaussian prior of
    standard deviation 0.3 on the weights, so that a few rows do not decide. Members below 0.15 are dropped and the rest
    solved again, until at most `max_members` remain. `weight` are the weights of the rows.
    """
    root = np.ones(len(Y)) if weight is None else np.sqrt(weight)
    P = np.stack([((p - Y) * root[:, None]).ravel() for p in predictions], axis=1)
    errors = np.mean(P**2, axis=0) * Y.shape[1]
    members = np.argsort(errors, kind="stable")
    if errors.min() == 0:
        members = members[:1]
    while True:
        C = len(members)
        scale = np.sqrt(10 * errors.min() / Y.shape[1]) if errors.min() > 0 else 1.0
        # with sum(w) = 1 the residual is the weighted sum of the models' residuals
        heavy = 1e4 * np.sqrt(np.sum(P[:, members] ** 2) + scale**2)
        rows = np.vstack([P[:, members], scale * np.eye(C), np.full((1, C), heavy)])
        w, _ = nnls(rows, np.concatenate([np.zeros(len(P)), np.full(C, scale / C), [heavy]]))
        if C == 1 or (np.all(w >= _SMALLEST_WEIGHT) and C <= max_members):
            break
        members = np.delete(members, np.argmin(w))
    out = np.zeros(len(predictions))
    out[members] = w / w.sum()
    return out


class Weights(NamedTuple):
    """Nonnegative weights of an average, and the largest relative violation of their optimality conditions."""

    weights: NDArray
    residual: float


def stack_weights(
    predictions: NDArray,
    Y: NDArray,
    weight: NDArray | None = None,
    penalty: float = 0.1,
    normalize: bool = True,
) -> Weights:
    """``min_{v >= 0} sum_i w_i |y_i - sum_m v_m p_mi|^2 + penalty * scale * sum_m (v_m - 1/M)^2``.

    `predictions` (n_members, n, q) are out of fold: probabilities, or centered values. Where `normalize`, the weights
    are divided by their sum, as an average of probabilities needs, and ``scale`` is the sum of the weights w. Otherwise
    it is the smallest squared error of a member, so that a nearly perfect member is not diluted. Strictly convex,
    solved exactly by an active set on the normal equations. If all weights are 0 (no member is better than nothing),
    normalized ones are equal.
    """
    n_members = len(predictions)
    weight = np.ones(len(Y)) if weight is None else weight
    root = np.sqrt(weight)[:, None]
    design = (predictions * root).reshape(n_members, -1)
    target = (Y * root).ravel()
    if normalize:
        pull = penalty * weight.sum()
    else:
        best = ((design - target) ** 2).sum(axis=1).min()
        pull = penalty * (max(best, 1e-8 * (target @ target)) or 1.0)
    matrix = design @ design.T + pull * np.eye(n_members)
    right = design @ target + pull / n_members
    factor = cholesky(matrix, lower=True)
    solution, _ = nnls(factor.T, solve_triangular(factor, right, lower=True))
    gradient = matrix @ solution - right
    violation = np.where(solution > 0.0, np.abs(gradient), np.maximum(-gradient, 0.0))
    residual = float(violation.max() / (np.abs(right).max() or 1.0))
    if normalize:
        total = solution.sum()
        solution = solution / total if total > 0.0 else np.full(n_members, 1.0 / n_members)
    return Weights(solution, residual)


class Units(NamedTuple):
    """Mean and scale of targets, by which numbers are standardized."""

    mean: NDArray  # (q,)
    scale: NDArray  # (q,), one for constant targets

    @classmethod
    def of(cls, Y: NDArray, weight: NDArray) -> "Units":
        """Those of targets (n, q) with weights."""
        mean = weight @ Y / weight.sum()
        scale = np.sqrt(weight @ (Y - mean) ** 2 / weight.sum())
        return cls(mean, np.where(scale > 1e-13 * np.abs(mean), scale, 1.0))

    def enter(self, values: NDArray) -> NDArray:
        """Values (..., q) in these units."""
        return (values - self.mean) / self.scale

    def leave(self, values: NDArray) -> NDArray:
        """Values (..., q) of these units as they were."""
        return values * self.scale + self.mean


class Mixture(NamedTuple):
    """A weighted average of several stacks' predictions."""

    weights: NDArray  # (n_stacks,)
    temperature: float | None  # the power of averaged probabilities; None for numbers
    scores: dict[str, dict[str, float]]  # of every stack and of the average, out of fold
    out_of_fold: NDArray  # (n, q)
    residual: float

    def __call__(self, predictions: NDArray) -> NDArray:
        """The average of predictions (n_stacks, n, q), of probabilities the geometric one."""
        return _pool(self.weights, predictions, self.temperature)


def _pool(weights: NDArray, predictions: NDArray, temperature: float | None) -> NDArray:
    """``sum_m w_m p_m``, or for probabilities ``prod_m p_m^(w_m b)`` with sum 1."""
    if temperature is None:
        return np.tensordot(weights, predictions, 1)
    logs = np.tensordot(weights, np.log(np.maximum(predictions, np.finfo(float).tiny)), 1)
    return softmax(temperature * logs, axis=-1)


def mix(
    predictions: NDArray,
    Y: NDArray,
    weight: NDArray,
    names: Sequence[str],
    classify: bool,
    blocks: Sequence[tuple[NDArray, NDArray]] = (),
    by_block: NDArray | None = None,
) -> Mixture:
    """Weigh stacks by their out-of-fold predictions: `stack_weights`, and a temperature for probabilities.

    Of probabilities the geometric mean is better than the arithmetic one: a stack that is sure has the say. Targets are
    +-1 per class, or standardized numbers. The average's out-of-fold predictions of a block have weights from the items
    outside of it, and from the stacks' predictions `by_block` (n_stacks, n_blocks, n, q), which were chosen without it.
    """
    target = (Y > 0.0).astype(float) if classify else Y

    def weigh(values: NDArray, rows: Any) -> tuple[Weights, float | None, NDArray]:
        """Weights and temperature from some rows, and the average of all."""
        units = Units(np.zeros(1), np.ones(1)) if classify else Units.of(Y[rows], weight[rows])
        values = units.enter(values)
        goal = units.enter(target)
        solution = stack_weights(values[:, rows], goal[rows], weight[rows], 0.1, classify)
        pooled = _pool(solution.weights, values, 1.0 if classify else None)
        if not classify:
            return solution, None, units.leave(pooled)
        temperature = fit_temperature(pooled[rows], target[rows], weight[rows])
        return solution, temperature, _pool(solution.weights, values, temperature)

    solution, temperature, averaged = weigh(predictions, slice(None))
    if by_block is not None:
        for number, (train, test) in enumerate(blocks):
            averaged[test] = weigh(by_block[:, number], train)[2][test]
    scores: dict[str, dict[str, float]] = {}
    shares = [*solution.weights, float(solution.weights.sum())]
    for name, values, share in zip([*names, "stack"], [*predictions, averaged], shares):
        if classify:
            right = np.maximum((values * target).sum(axis=1), np.finfo(float).tiny)
            hits = values.argmax(axis=1) == target.argmax(axis=1)
            figures = {"accuracy": hits @ weight, "log_loss": -np.log(right) @ weight}
        else:
            figures = {"mse": ((values - target) ** 2).mean(axis=1) @ weight}
        scores[name] = {key: float(value / weight.sum()) for key, value in figures.items()}
        if not classify:
            scores[name]["r2"] = 1.0 - scores[name]["mse"]
        scores[name]["weight"] = float(share)
    return Mixture(solution.weights, temperature, scores, averaged, solution.residual)


def paired_z(losses: NDArray, others: NDArray, weight: NDArray | None = None) -> float:
    """How many standard errors ``losses`` lie below ``others`` on (weighted) average, on the same items.

    Positive if ``losses`` are better; 0 when the two agree everywhere.
    """
    weight = np.ones(len(losses)) if weight is None else weight
    difference = others - losses
    mean = weight @ difference / weight.sum()
    error = np.sqrt((weight**2) @ (difference - mean) ** 2) / weight.sum()
    # differences that are rounding say nothing, however consistent
    if abs(mean) <= 1e-10 * (1.0 + np.abs(losses).mean()):
        return 0.0
    return float(mean / error) if error > 0.0 else float(np.sign(mean) * np.inf)
