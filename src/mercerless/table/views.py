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
        is_constant = reach <= 1e-13 * np.abs(median)
        clipped = np.clip(A, median - reach, median + reach)
        center = clipped.mean(axis=0)
        scale = np.where(is_constant, np.inf, clipped.std(axis=0))
        reach = 2.0 * reach
        unordered = cls(np.arange(A.shape[1]), median - reach, median + reach, center, scale)
        key = np.abs(np.random.RandomState(0).normal(size=len(A)) @ unordered(A))
        order = np.argsort(key, kind="stable")
        return cls(order, *(values[order] for values in unordered[1:]))

    def __call__(self, A: NDArray) -> NDArray:
        A = np.clip(A[:, self.order], self.low, self.high)
        return np.round((A - self.center) / self.scale / GRID) * GRID


def isolated(values: NDArray) -> NDArray:
    """Places of numbers beyond a gap, at most 1 % of all: errors of measurement or typing rather than a tail."""
    deviation: NDArray = np.abs(values - np.median(values))
    n_most = int(ISOLATED_SHARE * len(values))
    largest = np.argsort(-deviation, kind="stable")[: n_most + 1]
    sizes = deviation[largest]
    if n_most == 0 or sizes[0] == 0.0:
        return largest[:0]
    typical = np.median(deviation[np.flatnonzero(deviation)])
    is_gap = sizes[:-1] > np.maximum(GAP * sizes[1:], ISOLATED * typical)
    return largest[: np.flatnonzero(is_gap)[-1] + 1] if is_gap.any() else largest[:0]


def ordinary_reach(values: NDArray) -> float:
    """The largest deviation from the median of numbers that are not isolated."""
    deviation: NDArray = np.abs(values - np.median(values))
    np.put(deviation, isolated(values), 0.0)
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
        width = np.where(high - low > 1e-9, (high - low) / 1.349, 1.0)
        short = np.arcsinh((Z - median) / width)
        scale = short.std(axis=0)
        return cls(median, width, short.mean(axis=0), np.where(scale > 0.0, scale, 1.0))

    def __call__(self, Z: NDArray) -> NDArray:
        return (np.arcsinh((Z - self.median) / self.width) - self.center) / self.scale


def first_of_copies(Z: NDArray, n_sample: int = 1000, tolerance: float = 1e-5) -> NDArray:
    """Columns that vary and are not, up to sign, a copy of an earlier one; for standardized columns."""
    sample = Z[:: -(-len(Z) // n_sample)]
    correlation = np.abs(sample.T @ sample) / len(sample)
    squares = np.diagonal(correlation)
    similar = np.triu(correlation >= (1.0 - 1e-6) * np.sqrt(np.outer(squares, squares)), 1)
    is_kept = np.asarray(Z.any(axis=0))
    for first, second in np.argwhere(similar):
        if is_kept[first] and is_kept[second]:
            a, b = Z[:, first], Z[:, second]
            difference = min(np.abs(a - b).max(), np.abs(a + b).max())
            is_kept[second] = difference > tolerance
    return np.flatnonzero(is_kept)
