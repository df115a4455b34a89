"""Scales of features: standardized, or through asinh where they have tails."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import reduce_rows, take_rows

BLOCK_BYTES = 2**25  # what a block of rows needs in passes over all rows
# standard deviations beyond which a feature has tails: normal ones of some thousand rows stay below
_TAILS = 4.5


class FeatureScaling(NamedTuple):
    """How features are scaled: standardized, or through ``asinh`` of robust scores and standardized again.

    Values far outside of what was seen are taken at the bound first, so that one strange value of a new row does not
    carry the linear part of a model away.
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
    n, d = X.shape
    # relative to the first row no digits are lost for data far from the origin
    origin = take_rows(X, np.zeros(1, dtype=int))[0].astype(np.float64)
    offset = (
        reduce_rows(
            partial(_sum_of_powers, origin=origin, power=1), np.add, [X], 24.0 * d, BLOCK_BYTES
        )
        / n
    )
    # rounded, so that the order of summation, which depends on how the data are stored, does not reach the model
    center = origin + _rounded(offset)
    low, high = reduce_rows(_lowest, np.minimum, [X], 8.0 * d, BLOCK_BYTES) * [[1.0], [-1.0]]
    # the squares of very large or small numbers are none
    unit = np.ldexp(1.0, np.frexp(high - low)[1])
    spread = partial(_sum_of_powers, origin=center, unit=unit, power=2)
    scale = np.sqrt(reduce_rows(spread, np.add, [X], 24.0 * d, BLOCK_BYTES) / n) * unit
    eps = np.finfo(np.float32 if X.dtype == np.float32 else np.float64).eps
    constant = ~(scale > 8 * eps * np.abs(center))
    scale = _rounded(scale)
    scale[constant | (scale == 0)] = 1.0
    margin = (high - low) / 4
    return FeatureScaling(
        False, low - margin, high + margin, center, scale, np.zeros(d), np.ones(d)
    )


def robust_scaling(X: NDArray) -> FeatureScaling:
    """Median and interquartile range, then ``asinh``, then mean and standard deviation."""
    X = np.asarray(X, dtype=np.float64)
    plain = standard_scaling(X)
    low, center, high = np.percentile(X, [25, 50, 75], axis=0)
    scale = np.where(high - low > 1e-6 * plain.scale, (high - low) / 1.35, plain.scale)
    second = standard_scaling(np.arcsinh((X - center) / scale))
    return FeatureScaling(True, plain.low, plain.high, center, scale, second.center, second.scale)


def possible_scalings(X: Any, sample: NDArray) -> list[FeatureScaling]:
    """Standardized features; where those of a sample of rows have tails, also robust ones, and one scale for all."""
    plain = standard_scaling(X)
    if np.abs(plain(sample)).max() <= _TAILS:
        return [plain]
    scalings = [plain, robust_scaling(sample)._replace(low=plain.low, high=plain.high)]
    if _same_units(sample):
        scalings.append(
            plain._replace(scale=np.full(X.shape[1], np.sqrt(np.mean(np.var(sample, axis=0)))))
        )
    return scalings


def _same_units(X: NDArray) -> bool:
    """Whether most features have similar ranges, as pixels do, so that one scale for all makes sense."""
    ranges = np.ptp(X, axis=0)
    ranges = ranges[ranges > 0]
    if len(ranges) < 10:
        return False
    middle = np.median(ranges)
    return bool(np.mean(ranges > middle / 10) > 0.8 and ranges.max() < 10 * middle)


def _lowest(X: NDArray) -> NDArray:
    """The smallest values, and the negatives of the largest."""
    return np.stack([X.min(axis=0), -X.max(axis=0)]).astype(np.float64)


def _sum_of_powers(
    X: NDArray, *, origin: NDArray, power: int, unit: NDArray | float = 1.0
) -> NDArray:
    return np.sum(((X.astype(np.float64, copy=False) - origin) / unit) ** power, axis=0)


def _rounded(values: NDArray) -> NDArray:
    """To 24 binary digits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**24), exponent - 24)
