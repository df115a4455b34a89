"""Columns of numbers in comparable units: standardized, without isolated values, and with tails made short."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

#: A number is isolated if it lies farther from the median than this multiple of the typical deviation ...
ISOLATED = 30.0
#: ... and than this multiple of the deviation of the next one ...
GAP = 4.0
#: ... and if no larger share of all numbers does.
ISOLATED_SHARE = 0.01
#: Values are multiples of this part of a standard deviation, so that one unit in the last place changes nothing.
GRID = 2.0**-20


class Standard(NamedTuple):
    """Columns of mean 0 and variance 1, in an order that depends on their values only.

    Called with rows. Without an order of their own, shuffled columns would give trees other random choices.
    """

    order: NDArray  # of the columns
    low: NDArray
    high: NDArray
    center: NDArray
    scale: NDArray  # inf for constant columns, which become 0

    @classmethod
    def fit(cls, A: NDArray) -> Self:
        """Units of the columns of A (n, d)."""
        median = np.median(A, axis=0)
        reach = np.array([ordinary_reach(column) for column in A.T])
        clipped = np.clip(A, median - reach, median + reach)
        center = clipped.mean(axis=0)
        scale = clipped.std(axis=0)
        scale[reach <= 1e-13 * np.abs(median)] = np.inf
        low = median - 2.0 * reach
        high = median + 2.0 * reach
        given = np.arange(A.shape[1])
        unordered = cls(given, low, high, center, scale)

        weights = np.random.RandomState(0).normal(size=len(A))
        key = np.abs(weights @ unordered(A))
        order = np.argsort(key, kind="stable")
        return cls(order, low[order], high[order], center[order], scale[order])

    def __call__(self, A: NDArray) -> NDArray:
        clipped = np.clip(A[:, self.order], self.low, self.high)
        standard = (clipped - self.center) / self.scale
        return np.round(standard / GRID) * GRID


def isolated(values: NDArray) -> NDArray:
    """Places of numbers beyond a gap, at most 1 % of all: errors of measurement or typing rather than a tail."""
    deviation: NDArray = np.abs(values - np.median(values))
    n_most = int(ISOLATED_SHARE * len(values))
    largest = np.argsort(-deviation, kind="stable")[: n_most + 1]
    sizes = deviation[largest]
    if n_most == 0 or sizes[0] == 0.0:
        return largest[:0]
    typical = np.median(deviation[deviation > 0.0])
    is_gap = sizes[:-1] > np.maximum(GAP * sizes[1:], ISOLATED * typical)
    n_beyond = np.max(np.flatnonzero(is_gap), initial=-1) + 1
    return largest[:n_beyond]


def ordinary_reach(values: NDArray) -> float:
    """The largest deviation from the median of numbers that are not isolated."""
    deviation: NDArray = np.abs(values - np.median(values))
    deviation[isolated(values)] = 0.0
    return float(deviation.max())


class Tails(NamedTuple):
    """A second view of standardized rows: ``asinh`` in robust units makes tails logarithmic."""

    median: NDArray
    width: NDArray
    center: NDArray
    scale: NDArray

    @classmethod
    def fit(cls, Z: NDArray) -> Self:
        """The view of rows like these."""
        low, median, high = np.percentile(Z, [25, 50, 75], axis=0)
        width = (high - low) / 1.349
        width[width <= 1e-9] = 1.0
        short = np.arcsinh((Z - median) / width)
        scale = short.std(axis=0)
        scale[scale == 0.0] = 1.0
        return cls(median, width, short.mean(axis=0), scale)

    def __call__(self, Z: NDArray) -> NDArray:
        short = np.arcsinh((Z - self.median) / self.width)
        return (short - self.center) / self.scale


def first_of_copies(Z: NDArray) -> NDArray:
    """Standardized columns that vary and are not, up to sign, a copy of an earlier one; the first if none varies."""
    first: dict[int, int] = {}
    for j in range(Z.shape[1]):
        column = np.round(Z[:, j], 5)
        value = column[np.argmax(column != 0.0)]  # the first that is not 0
        if value != 0.0:
            first.setdefault(hash((np.sign(value) * column + 0.0).tobytes()), j)
    return np.array(sorted(first.values()) or [0])
