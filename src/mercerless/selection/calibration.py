"""Probabilities from out-of-fold scores."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from mercerless.solvers.stack import calibrate


class Calibration(NamedTuple):
    """``softmax(slope * scores + bias)`` are probabilities."""

    slope: float
    bias: NDArray  # (n_classes,)
    loss: float  # mean negative log-likelihood
    gradient: float  # relative gradient norm: the certificate


def calibrate_scores(scores: NDArray, labels: NDArray, weight: NDArray | None = None) -> Calibration:
    """Minimize the log-loss of ``softmax(t * scores / std + b)`` over t >= 0.01 and b, with a weak prior.

    Parameters
    ----------
    scores : array of shape (n, n_classes)
        Out-of-fold scores; for two classes ``[-f / 2, f / 2]``, which makes this Platt's method.
    labels : integer array of shape (n,)
        Column of the true class.
    weight : array of shape (n,), optional

    Notes
    -----
    `stack.calibrate` for one setting: its prior, 0.05 (t - 1)^2 / 2 + 0.5 |b|^2 / 2 added to the sum of losses, makes
    the problem strictly convex, so that separable or one-sided scores stay finite; weights are scaled to mean one
    against it. Where the slope would be smaller (scores that are no better than none), it is held at the bound, which
    keeps their order. Constant scores have slope one.
    """
    n, n_classes = scores.shape
    w = np.ones(n) if weight is None else weight * (n / weight.sum())
    found = calibrate(scores[None], np.eye(n_classes)[labels], w, smallest_slope=0.01)
    slope = float(found.slope[0] / found.scale[0]) if np.isfinite(found.scale[0]) else 1.0
    bias = found.offset[0] - slope * float(found.shift[0])
    losses = -log_softmax(slope * scores + bias, axis=1)[np.arange(n), labels]
    return Calibration(slope, bias, float(w @ losses / n), found.gradient)
