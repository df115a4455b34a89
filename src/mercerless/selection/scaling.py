"""Scales of features: standardized, or through asinh where they have tails."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless._blocks import reduce_rows, take_rows

_BLOCK_BYTES = 2**25


class FeatureScaling(NamedTuple):
    """How features are scaled: standardised, or through ``asinh`` of robust scores and standardised again.

    Values far outside of what was seen are taken at the bound first, so that one strange value of a new row does not
    carry the linear part of a model away.

    Parameters
    ----------
    robust : bool
        Whether ``asinh`` is applied.
    low, high : ndarray of shape (n_features,)
        The bounds: the range of the training rows and a quarter of it on both sides.
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation, or median and scaled interquartile range.
    second_center, second_scale : ndarray of shape (n_features,)
        Mean and standard deviation of what comes out.
    """

    robust: bool
    low: NDArray
    high: NDArray
    center: NDArray
    scale: NDArray
    second_center: NDArray
    second_scale: NDArray

    def __call__(self, X: NDArray, dtype: Any = np.float64) -> NDArray:
        """Scale rows.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            The rows.
        dtype : dtype, default=float64
            The dtype of the result.

        Returns
        -------
        ndarray of shape (n, n_features)
            The scaled rows.
        """
        Z = (np.clip(X, self.low, self.high) - self.center) / self.scale
        if self.robust:
            Z = (np.arcsinh(Z) - self.second_center) / self.second_scale
        return Z.astype(dtype, copy=False)


def standard_scaling(X: NDArray) -> FeatureScaling:
    """Mean and standard deviation, in row blocks; constant features keep scale 1 and become 0.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        The rows.

    Returns
    -------
    FeatureScaling
        The scaling.
    """
    n, d = X.shape
    # relative to the first row no digits are lost for data far from the origin
    origin = take_rows(X, np.zeros(1, dtype=int))[0].astype(np.float64)
    offset = reduce_rows(partial(_sum_of_powers, origin=origin, power=1), np.add, [X], 24.0 * d, _BLOCK_BYTES) / n
    # rounded, so that the order of summation, which depends on how the data are stored, does not reach the model
    center = origin + _rounded(offset)
    square = reduce_rows(partial(_sum_of_powers, origin=center, power=2), np.add, [X], 24.0 * d, _BLOCK_BYTES) / n
    scale = np.sqrt(square)
    eps = np.finfo(np.float32 if X.dtype == np.float32 else np.float64).eps
    constant = ~(scale > 8 * eps * np.abs(center))
    scale = _rounded(scale)
    scale[constant | (scale == 0)] = 1.0
    low, high = reduce_rows(_lowest, np.minimum, [X], 8.0 * d, _BLOCK_BYTES) * [[1.0], [-1.0]]
    margin = (high - low) / 4
    return FeatureScaling(False, low - margin, high + margin, center, scale, np.zeros(d), np.ones(d))


def _lowest(X: NDArray) -> NDArray:
    """The smallest values, and the negatives of the largest."""
    return np.stack([X.min(axis=0), -X.max(axis=0)]).astype(np.float64)


def _sum_of_powers(X: NDArray, *, origin: NDArray, power: int) -> NDArray:
    return np.sum((X.astype(np.float64, copy=False) - origin) ** power, axis=0)


def _rounded(values: NDArray) -> NDArray:
    """To 24 binary digits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**24), exponent - 24)


def robust_scaling(X: NDArray) -> FeatureScaling:
    """Median and interquartile range, then ``asinh``, then mean and standard deviation.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        The rows, or enough of them.

    Returns
    -------
    FeatureScaling
        The scaling.
    """
    X = np.asarray(X, dtype=np.float64)
    plain = standard_scaling(X)
    low, center, high = np.percentile(X, [25, 50, 75], axis=0)
    scale = np.where(high - low > 1e-6 * plain.scale, (high - low) / 1.35, plain.scale)
    second = standard_scaling(np.arcsinh((X - center) / scale))
    return FeatureScaling(True, plain.low, plain.high, center, scale, second.center, second.scale)


def same_units(X: NDArray) -> bool:
    """Whether most features have similar ranges, as pixels do, so that one scale for all makes sense."""
    ranges = np.ptp(X, axis=0)
    ranges = ranges[ranges > 0]
    return (
        len(ranges) >= 10 and np.mean(ranges > np.median(ranges) / 10) > 0.8 and ranges.max() < 10 * np.median(ranges)
    )
