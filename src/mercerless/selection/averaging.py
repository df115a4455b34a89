"""Weights of several models from their out-of-fold predictions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

# a further model is worth its size only when validation gives it at least this weight
_SMALLEST_WEIGHT = 0.15


def combine(predictions: Sequence[NDArray], Y: NDArray, weights: NDArray | None = None, max_parts: int = 3) -> NDArray:
    """Nonnegative weights with sum 1 for several models: least squares on out-of-fold predictions, pulled to the mean.

    ``min |sum_c w_c P_c - Y|^2 + 10 e |w - 1/C|^2`` with the smallest mean squared error e: a Gaussian prior of
    standard deviation 0.3 on the weights, so that a few rows do not decide. Parts below 0.15 are dropped and the rest
    solved again.

    Parameters
    ----------
    predictions : sequence of ndarray of shape (n, n_outputs)
        Out-of-fold predictions.
    Y : ndarray of shape (n, n_outputs)
        The targets.
    weights : ndarray of shape (n,) or None, default=None
        Square roots of the row weights.
    max_parts : int, default=3
        How many weights may be nonzero.

    Returns
    -------
    ndarray of shape (n_models,)
        The weights.
    """
    root = np.ones(len(Y)) if weights is None else weights
    P = np.stack([((p - Y) * root[:, None]).ravel() for p in predictions], axis=1)
    errors = np.mean(P**2, axis=0) * Y.shape[1]
    parts = np.argsort(errors, kind="stable")
    if errors.min() == 0:
        parts = parts[:1]
    while True:
        C = len(parts)
        scale = np.sqrt(10 * errors.min() / Y.shape[1]) if errors.min() > 0 else 1.0
        # with sum(w) = 1 the residual is the weighted sum of the models' residuals
        heavy = 1e4 * np.sqrt(np.sum(P[:, parts] ** 2) + scale**2)
        rows = np.vstack([P[:, parts], scale * np.eye(C), np.full((1, C), heavy)])
        w, _ = nnls(rows, np.concatenate([np.zeros(len(P)), np.full(C, scale / C), [heavy]]))
        if C == 1 or (np.all(w >= _SMALLEST_WEIGHT) and C <= max_parts):
            break
        parts = np.delete(parts, np.argmin(w))
    out = np.zeros(len(predictions))
    out[parts] = w / w.sum()
    return out
