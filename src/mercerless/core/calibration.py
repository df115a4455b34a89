"""Turn held-out scores into probabilities, by one slope and one bias per class."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax

from mercerless.core.folds import assign_folds
from mercerless.core.validation import weights_or_ones


@dataclass(frozen=True)
class CalibrationSettings:
    """The prior of a calibration, and when Newton's method stops."""

    slope_precision: float = 0.05  # of the normal prior of the slope around one
    bias_precision: float = 0.5  # of the normal prior of the biases around zero
    max_iter: int = 100
    tol: float = 1e-9  # largest entry of the projected gradient, relative to the sum of weights


SETTINGS = CalibrationSettings()


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
        return softmax(self.logits(scores), axis=-1)

    def take(self, settings: Any) -> "Calibration":
        """The calibration of one or more of the settings."""
        return Calibration(
            self.slope[settings], self.bias[settings], self.loss[settings], self.gradient
        )


def calibrate_scores(
    scores: NDArray, labels: NDArray, weight: NDArray | None = None
) -> Calibration:
    """`calibrate` for one setting, integer labels and slopes of at least 0.01 standard deviations.

    For two classes and scores ``[-f / 2, f / 2]`` this is Platt's method. Weights are scaled to mean one against the
    prior. The smallest slope keeps the order of scores that are no better than none; constant scores have slope one.
    """
    n, n_classes = scores.shape
    weight = weights_or_ones(weight, n)
    weight = weight * (n / weight.sum())
    one = calibrate(scores[None], np.eye(n_classes)[labels], weight, smallest_slope=0.01).take(0)
    if one.slope > 0.0:
        return one._replace(slope=float(one.slope), loss=float(one.loss))
    shift = np.average(scores.mean(axis=1), weights=weight)
    return one._replace(slope=1.0, bias=one.bias - shift, loss=float(one.loss))


def cross_calibrate(
    scores: NDArray, labels: NDArray, weight: NDArray | None = None, fold_of: NDArray | None = None
) -> NDArray:
    """Probabilities (n, n_classes) of every fold's held-out scores by the calibration of the other folds' scores.

    A calibration that has seen an item's label is too sure of it, which shows in prediction sets of small data. Without
    folds, five are dealt regardless of the labels: folds with equal shares of the classes would give away the shares
    among the items they hold out.
    """
    if fold_of is None:
        fold_of = assign_folds(5, len(labels), random_state=0)
    weight = weights_or_ones(weight, len(labels))
    proba = np.empty(scores.shape)
    for fold in np.unique(fold_of):
        train = fold_of != fold
        test = fold_of == fold
        train = train if train.any() else test
        calibration = calibrate_scores(scores[train], labels[train], weight[train])
        proba[test] = calibration(scores[test])
    return proba


def calibrate(
    scores: NDArray, onehot: NDArray, weight: NDArray | None = None, smallest_slope: float = 0.0
) -> Calibration:
    """``min sum_i w_i logloss_i + 0.05 (slope - 1)^2 / 2 + 0.5 |bias|^2 / 2`` for every setting.

    The log-loss is of ``softmax(slope * (score - shift) / scale + bias)`` with the scores' own mean and standard
    deviation as shift and scale, and slope >= smallest_slope; the result has shift and scale multiplied out.

    Scores have the shape (n_settings, n, n_classes), `onehot` is 1 for the item's class. A positive `smallest_slope`
    keeps the order of scores that are no better than none. Stops when the projected gradient, relative to the sum of
    weights, is below 1e-9 for every setting.

    Notes
    -----
    Projected Newton steps with backtracking, on the settings that have not arrived; the problem is strictly convex, so
    the minimum is global, and separable or one-sided scores stay finite. Cost: ``O(n_settings n n_classes^2)`` per
    step, about ten steps. Constant scores have slope 0 and give the (shrunk) class frequencies; a class that does not
    occur is kept possible by the prior.
    """
    weight = weights_or_ones(weight, scores.shape[1])
    shift = np.average(scores.mean(axis=2), axis=1, weights=weight)
    scale = np.sqrt(
        np.average(((scores - shift[:, None, None]) ** 2).mean(axis=2), axis=1, weights=weight)
    )
    scale = np.where(scale > 1e-13 * np.abs(shift), scale, np.inf)
    inputs = (scores - shift[:, None, None]) / scale[:, None, None]
    theta = np.zeros((len(scores), 1 + scores.shape[2]))
    theta[:, 0] = 1.0
    theta = _descend(theta, inputs, onehot, weight, smallest_slope)
    value, proba = _objective(theta, inputs, onehot, weight)
    gradient, _ = _derivatives(theta, proba, inputs, onehot, weight, smallest_slope)
    certificate = float(np.abs(gradient).max(initial=0.0) / weight.sum())
    slope = theta[:, 0] / scale
    loss = (value - _prior(theta)) / weight.sum()
    return Calibration(slope, theta[:, 1:] - (slope * shift)[:, None], loss, certificate)


def _descend(
    theta: NDArray, inputs: NDArray, onehot: NDArray, weight: NDArray, smallest_slope: float
) -> NDArray:
    """The minima of the objective of `calibrate`; settings that have converged, or get no lower, are not moved."""
    theta = theta.copy()
    left = np.arange(len(theta))
    value, proba = _objective(theta, inputs, onehot, weight)
    for _ in range(SETTINGS.max_iter):
        gradient, hessian = _derivatives(theta[left], proba, inputs, onehot, weight, smallest_slope)
        active = np.abs(gradient).max(axis=1) > SETTINGS.tol * weight.sum()
        if not active.any():
            break
        if not active.all():
            left = left[active]
            inputs = inputs[active]
            value = value[active]
            gradient = gradient[active]
            hessian = hessian[active]
        direction = np.linalg.solve(hessian, -gradient[:, :, None])[:, :, 0]
        step = np.ones(len(left))
        for _ in range(40):
            trial = theta[left] + step[:, None] * direction
            trial[:, 0] = np.maximum(trial[:, 0], smallest_slope)
            trial_value, proba = _objective(trial, inputs, onehot, weight)
            better = trial_value <= value + 1e-14 * np.abs(value)
            if better.all():
                break
            step[~better] /= 2.0
        left = left[better]
        value = trial_value[better]
        theta[left] = trial[better]
        if not better.all():
            inputs = inputs[better]
            proba = proba[better]
    return theta


def fit_temperature(proba: NDArray, onehot: NDArray, weight: NDArray, pull: float = 1.5) -> float:
    """``argmin_b sum_i w_i logloss_i + pull (b - 1)^2`` of ``p^b / sum p^b``, for probabilities (n, n_classes).

    An average of calibrated probabilities is underconfident, b is then above 1; labels never change. Convex: the root
    of the derivative, sought above 0.05.
    """
    logs = np.log(np.maximum(proba, np.finfo(float).tiny))
    right = np.einsum("ik,ik->i", logs, onehot)

    def derivative(b: float) -> float:
        return float(
            weight @ ((softmax(b * logs, axis=1) * logs).sum(axis=1) - right)
            + 2.0 * pull * (b - 1.0)
        )

    low = 0.05
    high = 1.0
    if derivative(low) >= 0.0:
        return low
    while derivative(high) < 0.0:
        high *= 2.0
    return float(brentq(derivative, low, high, xtol=1e-12))


def sharpen(proba: NDArray, temperature: float) -> NDArray:
    """``p^b / sum p^b``."""
    return softmax(temperature * np.log(np.maximum(proba, np.finfo(float).tiny)), axis=-1)


def _objective(
    theta: NDArray, inputs: NDArray, onehot: NDArray, weight: NDArray
) -> tuple[NDArray, NDArray]:
    """The objective of `calibrate` for every setting, and the probabilities."""
    logits = theta[:, :1, None] * inputs + theta[:, None, 1:]
    logits -= logits.max(axis=2, keepdims=True)
    right = np.einsum("sik,ik->si", logits, onehot)
    proba = np.exp(logits, out=logits)
    total = proba.sum(axis=2)
    proba /= total[:, :, None]
    return (np.log(total) - right) @ weight + _prior(theta), proba


def _prior(theta: NDArray) -> NDArray:
    """What the objective adds to the sum of losses."""
    return (
        SETTINGS.slope_precision * (theta[:, 0] - 1.0) ** 2
        + SETTINGS.bias_precision * (theta[:, 1:] ** 2).sum(axis=1)
    ) / 2.0


def _derivatives(
    theta: NDArray,
    proba: NDArray,
    inputs: NDArray,
    onehot: NDArray,
    weight: NDArray,
    smallest_slope: float,
) -> tuple[NDArray, NDArray]:
    """Gradient (n_settings, 1 + n_classes) and Hessian (n_settings, 1 + n_classes, 1 + n_classes) of `_objective`.

    Both projected: a slope at its bound that would fall stays.
    """
    residual = (proba - onehot) * weight[:, None]
    gradient = np.empty_like(theta)
    gradient[:, 0] = np.einsum("sik,sik->s", residual, inputs) + SETTINGS.slope_precision * (
        theta[:, 0] - 1.0
    )
    gradient[:, 1:] = residual.sum(axis=1) + SETTINGS.bias_precision * theta[:, 1:]
    weighted = proba * weight[:, None]
    deviation = inputs - np.einsum("sik,sik->si", proba, inputs)[:, :, None]
    hessian = np.empty((*theta.shape, theta.shape[1]))
    hessian[:, 0, 0] = (
        np.einsum("sik,sik,sik->s", weighted, deviation, deviation) + SETTINGS.slope_precision
    )
    hessian[:, 0, 1:] = hessian[:, 1:, 0] = np.einsum("sik,sik->sk", weighted, deviation)
    hessian[:, 1:, 1:] = -weighted.swapaxes(1, 2) @ proba
    classes = np.arange(1, theta.shape[1])
    hessian[:, classes, classes] += weighted.sum(axis=1) + SETTINGS.bias_precision
    bound = (theta[:, 0] <= smallest_slope) & (gradient[:, 0] > 0.0)
    gradient[bound, 0] = 0.0
    hessian[bound, 0, 1:] = hessian[bound, 1:, 0] = 0.0
    return gradient, hessian
