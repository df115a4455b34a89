"""Turn held-out scores into probabilities, by one slope and one bias per class."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax

from mercerless.core.folds import assign_folds
from mercerless.core.memory import row_blocks

#: Of the normal priors of the slope around one and of the biases around zero.
SLOPE_PRECISION = 0.05
BIAS_PRECISION = 0.5
#: When Newton's method stops: the steps, and the largest entry of the projected gradient, relative to the weights.
MAX_ITER = 100
TOL = 1e-9
#: Scores that are calibrated at once: as many as a cache holds.
CACHED_NUMBERS = 2**17


class Calibration(NamedTuple):
    """Scores to probabilities: ``softmax(slope * scores + bias)``, for one setting or for several at once."""

    slope: Any  # the common factor of all scores: a float, or (n_settings,)
    bias: NDArray  # what is added per class: (n_classes,) or (n_settings, n_classes)
    # mean negative log-likelihood of the scores it was fitted on: a float, or (n_settings,)
    loss: Any
    # the certificate: the largest entry of the projected gradient relative to the sum of weights
    gradient: float

    def logits(self, scores: NDArray) -> NDArray:
        """``slope * scores + bias`` for scores of shape (..., n, n_classes)."""
        return np.asarray(self.slope)[..., None, None] * scores + self.bias[..., None, :]

    def __call__(self, scores: NDArray) -> NDArray:
        """Probabilities for scores of shape (..., n, n_classes)."""
        # classes before items: reductions over a short last axis are slow
        by_class = np.moveaxis(scores, -1, -2)
        logits = np.asarray(self.slope)[..., None, None] * by_class + self.bias[..., :, None]
        logits -= logits.max(axis=-2, keepdims=True)
        proba = np.exp(logits, out=logits)
        proba /= proba.sum(axis=-2, keepdims=True)
        return np.moveaxis(proba, -2, -1)

    def take(self, settings: Any) -> "Calibration":
        """The calibration of one or more of the settings."""
        return Calibration(
            self.slope[settings], self.bias[settings], self.loss[settings], self.gradient
        )


def calibrate_scores(scores: NDArray, labels: NDArray, weight: NDArray) -> Calibration:
    """`calibrate` for one setting, integer labels and slopes of at least 0.01 standard deviations.

    For two classes and scores ``[-f / 2, f / 2]`` this is Platt's method. Weights are scaled to mean one against the
    prior. The smallest slope keeps the order of useless scores; constant scores have slope one.
    """
    onehot = np.eye(scores.shape[1])[labels]
    relative = weight / weight.mean()
    calibration = calibrate(scores[None], onehot, relative, smallest_slope=0.01).take(0)
    slope = float(calibration.slope)
    bias = calibration.bias
    if not slope > 0.0:  # constant scores
        slope = 1.0
        bias = bias - np.average(scores.mean(axis=1), weights=weight)
    return calibration._replace(slope=slope, bias=bias, loss=float(calibration.loss))


def cross_calibrate(
    scores: NDArray, labels: NDArray, weight: NDArray, fold_of: NDArray | None = None
) -> NDArray:
    """Probabilities (n, n_classes) of every fold's held-out scores by the calibration of the other folds' scores.

    A calibration that has seen an item's label is too sure of it, which shows in prediction sets of small data. Without
    folds, five are dealt regardless of the labels: folds with equal shares of the classes would reveal the shares
    among the items they hold out.
    """
    if fold_of is None:
        fold_of = assign_folds(5, len(labels), random_state=0)
    proba = np.empty(scores.shape)
    for fold in np.unique(fold_of):
        test = fold_of == fold
        train = test if test.all() else ~test
        calibration = calibrate_scores(scores[train], labels[train], weight[train])
        proba[test] = calibration(scores[test])
    return proba


def calibrate(
    scores: NDArray, onehot: NDArray, weight: NDArray, smallest_slope: float = 0.0
) -> Calibration:
    """``min sum_i w_i logloss_i + 0.05 (slope - 1)^2 / 2 + 0.5 |bias|^2 / 2`` for every setting.

    The log-loss is of ``softmax(slope * (score - shift) / scale + bias)`` with the scores' own mean and standard
    deviation as shift and scale, and slope >= smallest_slope; the result has shift and scale multiplied out.

    Scores have the shape (n_settings, n, n_classes), `onehot` is 1 for the item's class. A positive `smallest_slope`
    keeps the order of useless scores. Stops when the projected gradient, relative to the sum of
    weights, is below 1e-9 for every setting.

    Notes
    -----
    Projected Newton steps with backtracking, on the settings that have not arrived; the problem is strictly convex, so
    the minimum is global, and separable or one-sided scores stay finite. Cost: ``O(n_settings n n_classes^2)`` per
    step, about ten steps. Constant scores have slope 0 and give the (shrunk) class frequencies; a class that does not
    occur is kept possible by the prior.
    """
    n_settings, n, n_classes = scores.shape
    labels = onehot.argmax(axis=1)
    shift = np.average(scores.mean(axis=2), axis=1, weights=weight)
    scale = np.empty(n_settings)
    theta = np.empty((n_settings, 1 + n_classes))
    gradient = np.empty(theta.shape)
    value = np.empty(n_settings)
    for part in row_blocks(n_settings, n * n_classes, CACHED_NUMBERS):
        inputs, scale[part] = _standardized(scores[part], shift[part], weight)
        problem = _Losses(inputs, labels, weight, smallest_slope)
        theta[part], value[part], gradient[part] = _descend(problem)
    slope = theta[:, 0] / scale
    bias = theta[:, 1:] - (slope * shift)[:, None]
    loss = (value - _prior(theta)) / weight.sum()
    certificate = float(np.abs(gradient).max(initial=0.0) / weight.sum())
    return Calibration(slope, bias, loss, certificate)


def _standardized(scores: NDArray, shift: NDArray, weight: NDArray) -> tuple[NDArray, NDArray]:
    """Scores less their mean in units of their deviation, classes before items, and the deviations; inf for none."""
    # reductions over a short last axis are slow
    inputs = np.ascontiguousarray(np.moveaxis(scores, 2, 1)) - shift[:, None, None]
    variance = np.average((inputs**2).mean(axis=1), axis=1, weights=weight)
    scale = np.sqrt(variance)
    scale[scale <= 1e-13 * np.abs(shift)] = np.inf
    inputs /= scale[:, None, None]
    return inputs, scale


def _descend(problem: "_Losses") -> tuple[NDArray, NDArray, NDArray]:
    """The minima of the objective of `calibrate`, its values and gradients there.

    Settings that have converged, or get no lower, are not moved.
    """
    n_settings, n_classes, _ = problem.inputs.shape
    theta = np.zeros((n_settings, 1 + n_classes))
    theta[:, 0] = 1.0
    values = np.empty(n_settings)
    gradients = np.empty(theta.shape)
    left = np.arange(n_settings)
    value, proba = problem.value(theta)
    for _ in range(MAX_ITER):
        gradient, hessian = problem.derivatives(theta[left], proba)
        values[left] = value
        gradients[left] = gradient
        is_active = np.abs(gradient).max(axis=1) > TOL * problem.weight.sum()
        if not is_active.any():
            break
        left = left[is_active]
        if not is_active.all():
            problem = replace(problem, inputs=problem.inputs[is_active])
        steepest = -gradient[is_active, :, None]
        direction = np.linalg.solve(hessian[is_active], steepest)[:, :, 0]

        before = value[is_active]
        step = np.ones(len(left))
        for _ in range(40):
            trial = theta[left] + step[:, None] * direction
            trial[:, 0] = np.maximum(trial[:, 0], problem.smallest_slope)
            value, proba = problem.value(trial)
            is_lower = value <= before + 1e-14 * np.abs(before)
            if is_lower.all():
                break
            step[~is_lower] /= 2.0

        theta[left[is_lower]] = trial[is_lower]
        if not is_lower.all():
            left = left[is_lower]
            problem = replace(problem, inputs=problem.inputs[is_lower])
            value = value[is_lower]
            proba = proba[is_lower]
    return theta, values, gradients


def fit_temperature(proba: NDArray, onehot: NDArray, weight: NDArray, pull: float = 1.5) -> float:
    """``argmin_b sum_i w_i logloss_i + pull (b - 1)^2`` of ``p^b / sum p^b``, for probabilities (n, n_classes).

    An average of calibrated probabilities is underconfident, b is then above 1; labels never change. Convex: the root
    of the derivative, sought above 0.05.
    """
    by_class = np.ascontiguousarray(proba.T)
    logs = np.log(np.maximum(by_class, np.finfo(float).tiny))
    logs -= logs.max(axis=0)
    right = (logs * onehot.T).sum(axis=0)

    def slope(b: float) -> float:
        """The derivative, which rises by at least ``2 pull`` per unit of b."""
        powers = np.exp(b * logs)
        powers /= powers.sum(axis=0)
        mean = (powers * logs).sum(axis=0)
        return float(weight @ (mean - right) + 2.0 * pull * (b - 1.0))

    if slope(0.05) >= 0.0:
        return 0.05
    return float(brentq(slope, 0.05, 1.0 + max(0.0, -slope(1.0)) / pull, xtol=1e-12))


def sharpen(proba: NDArray, temperature: float) -> NDArray:
    """``p^b / sum p^b``."""
    return softmax(temperature * np.log(np.maximum(proba, np.finfo(float).tiny)), axis=-1)


def _prior(theta: NDArray) -> NDArray:
    """The prior's part of the objective."""
    return (
        SLOPE_PRECISION * (theta[:, 0] - 1.0) ** 2
        + BIAS_PRECISION * (theta[:, 1:] ** 2).sum(axis=1)
    ) / 2.0


@dataclass(frozen=True, eq=False)
class _Losses:
    """The objective of `calibrate` for some settings, and its derivatives."""

    inputs: NDArray  # (n_settings, n_classes, n)
    labels: NDArray
    weight: NDArray
    smallest_slope: float

    def value(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        """The objective (n_settings,), and the probabilities (n_settings, n_classes, n)."""
        logits = theta[:, 0, None, None] * self.inputs
        logits += theta[:, 1:, None]
        logits -= logits.max(axis=1, keepdims=True)
        right = logits[:, self.labels, np.arange(len(self.labels))]
        proba = np.exp(logits, out=logits)
        total = proba.sum(axis=1)
        proba /= total[:, None, :]
        return (np.log(total) - right) @ self.weight + _prior(theta), proba

    def derivatives(self, theta: NDArray, proba: NDArray) -> tuple[NDArray, NDArray]:
        """Gradient (n_settings, 1 + n_classes) and Hessian (n_settings, 1 + n_classes, 1 + n_classes).

        Both projected: a slope at its bound that would fall stays.
        """
        slope = theta[:, 0]
        bias = theta[:, 1:]
        weighted = proba * self.weight
        expected = (proba * self.inputs).sum(axis=1)
        right = self.inputs[:, self.labels, np.arange(len(self.labels))]
        share = weighted.sum(axis=2)
        share_of_truth = np.bincount(self.labels, self.weight, proba.shape[1])
        gradient = np.empty_like(theta)
        gradient[:, 0] = (expected - right) @ self.weight + SLOPE_PRECISION * (slope - 1.0)
        gradient[:, 1:] = share - share_of_truth + BIAS_PRECISION * bias

        deviation = self.inputs - expected[:, None, :]
        spread = weighted * deviation
        hessian = np.empty((*theta.shape, theta.shape[1]))
        hessian[:, 0, 0] = np.einsum("ski,ski->s", spread, deviation) + SLOPE_PRECISION
        hessian[:, 0, 1:] = hessian[:, 1:, 0] = spread.sum(axis=2)
        hessian[:, 1:, 1:] = -weighted @ proba.swapaxes(1, 2)
        classes = np.arange(1, theta.shape[1])
        hessian[:, classes, classes] += share + BIAS_PRECISION

        is_bound = (slope <= self.smallest_slope) & (gradient[:, 0] > 0.0)
        gradient[is_bound, 0] = 0.0
        hessian[is_bound, 0, 1:] = hessian[is_bound, 1:, 0] = 0.0
        return gradient, hessian
