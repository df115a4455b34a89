"""Scales of features: standardized, or through asinh if they have tails."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import reduce_rows, take_rows

BLOCK_BYTES = 2**25  # of a block of rows in passes over all rows


class FeatureScaling(NamedTuple):
    """How features are scaled: standardized, or through ``asinh`` of robust scores and standardized again.

    Values far outside the training range are clipped first, so that one strange value of a new row does not carry the
    linear part of a model away.
    """

    robust: bool  # whether asinh is applied
    low: NDArray  # the bounds: the range of the training rows and a quarter of it on both sides
    high: NDArray
    center: NDArray  # mean and standard deviation, or median and scaled interquartile range
    scale: NDArray
    second_center: NDArray  # mean and standard deviation of what comes out of asinh
    second_scale: NDArray

    def __call__(self, X: NDArray, dtype: Any = np.float64) -> NDArray:
        """Scaled rows."""
        Z = (np.clip(X, self.low, self.high) - self.center) / self.scale
        if self.robust:
            Z = (np.arcsinh(Z) - self.second_center) / self.second_scale
        return Z.astype(dtype, copy=False)


def standard_scaling(X: Any) -> FeatureScaling:
    """Mean and standard deviation, in row blocks; constant features keep scale 1 and become 0."""
    n_features = X.shape[1]
    lowest, highest = _ranges(X)
    span = highest - lowest
    center = _means(X)
    scale = _deviations(X, center, span)
    eps = np.finfo(np.float32 if X.dtype == np.float32 else np.float64).eps
    is_constant = ~(scale > 8 * eps * np.abs(center))
    scale = _rounded(scale)
    scale[is_constant | (scale == 0)] = 1.0
    margin = span / 4
    return FeatureScaling(
        robust=False,
        low=lowest - margin,
        high=highest + margin,
        center=center,
        scale=scale,
        second_center=np.zeros(n_features),
        second_scale=np.ones(n_features),
    )


def _ranges(X: Any) -> NDArray:
    """The smallest and the largest value of every feature."""
    bytes_per_row = 8.0 * X.shape[1]
    extremes = reduce_rows(_extremes, np.minimum, [X], bytes_per_row, BLOCK_BYTES)
    return extremes * [[1.0], [-1.0]]


def _means(X: Any) -> NDArray:
    """Means, rounded, so that the order of summation, which depends on how the data are stored, does not matter."""
    # relative to the first row no digits are lost for data far from the origin
    first_row = take_rows(X, np.zeros(1, dtype=int))[0].astype(np.float64)
    offset = _mean_power(X, partial(_sum_of_powers, origin=first_row, power=1))
    return first_row + _rounded(offset)


def _deviations(X: Any, center: NDArray, span: NDArray) -> NDArray:
    """Standard deviations, in units of powers of two: squares of very large or small numbers would overflow."""
    unit = np.ldexp(1.0, np.frexp(span)[1])
    squares = partial(_sum_of_powers, origin=center, unit=unit, power=2)
    return np.sqrt(_mean_power(X, squares)) * unit


def _mean_power(X: Any, sum_of_block: Callable[[NDArray], NDArray]) -> NDArray:
    bytes_per_row = 24.0 * X.shape[1]
    return reduce_rows(sum_of_block, np.add, [X], bytes_per_row, BLOCK_BYTES) / len(X)


def robust_scaling(X: NDArray) -> FeatureScaling:
    """Median and interquartile range, then ``asinh``, then mean and standard deviation."""
    X = np.asarray(X, dtype=np.float64)
    plain = standard_scaling(X)
    lower, median, upper = np.percentile(X, [25, 50, 75], axis=0)
    quartile_range = upper - lower
    is_spread = quartile_range > 1e-6 * plain.scale
    scale = np.where(is_spread, quartile_range / 1.35, plain.scale)
    second = standard_scaling(np.arcsinh((X - median) / scale))
    return plain._replace(
        robust=True,
        center=median,
        scale=scale,
        second_center=second.center,
        second_scale=second.scale,
    )


def possible_scalings(X: Any, sample: NDArray, tail: float = 4.5) -> list[FeatureScaling]:
    """Standardized features; if those of a sample of rows have tails, also robust ones, and one scale for all.

    A feature has a tail if it goes beyond `tail` standard deviations: normal ones of some thousand rows stay below.
    """
    plain = standard_scaling(X)
    if np.abs(plain(sample)).max() <= tail:
        return [plain]
    robust = robust_scaling(sample)._replace(low=plain.low, high=plain.high)
    scalings = [plain, robust]
    if _same_units(sample):
        mean_variance = np.mean(np.var(sample, axis=0))
        one_scale = np.full(X.shape[1], np.sqrt(mean_variance))
        scalings.append(plain._replace(scale=one_scale))
    return scalings


def _same_units(X: NDArray) -> bool:
    """Whether most features have similar ranges, as pixels do, so that one scale for all makes sense."""
    ranges = np.ptp(X, axis=0)
    ranges = ranges[ranges > 0]
    if len(ranges) < 10:
        return False
    middle = np.median(ranges)
    return bool(np.mean(ranges > middle / 10) > 0.8 and ranges.max() < 10 * middle)


def _extremes(X: NDArray) -> NDArray:
    """The smallest values, and the negatives of the largest."""
    return np.stack([X.min(axis=0), -X.max(axis=0)]).astype(np.float64)


def _sum_of_powers(
    X: NDArray, *, origin: NDArray, power: int, unit: NDArray | float = 1.0
) -> NDArray:
    deviations = (X.astype(np.float64, copy=False) - origin) / unit
    return np.sum(deviations**power, axis=0)


def _rounded(values: NDArray) -> NDArray:
    """To 24 binary digits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**24), exponent - 24)
