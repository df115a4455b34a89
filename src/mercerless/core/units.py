"""Units: no prediction depends on the units of features, targets or similarities.

The machines of the papers measure each feature by its spread, targets by theirs, and their parameters C and epsilon by
the spread of the items in feature space and of the targets. Raw and standardized data then give the same model.
"""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import reduce_rows, take_rows
from mercerless.core.validation import UselessModelWarning, warn, weights_or_ones

#: Bytes of a block of rows in passes over all rows.
BLOCK_BYTES = 2**25
#: Length scale of a constant feature, relative to its value: new values at any ordinary distance are equal to it.
FAR = 1e12


class Standardizer(NamedTuple):
    """Columns of mean 0 and standard deviation 1; constant columns become 0.

    Weights count like repetitions. Rows are read in blocks, so they may be a memory map or a Dask array.
    """

    mean: NDArray
    scale: NDArray  # inf for constant columns

    @classmethod
    def fit(cls, A: Any, weight: NDArray | None = None) -> Self:
        """Learn mean and standard deviation of every column of A (n, d)."""
        weight = weights_or_ones(weight, len(A))
        total = partial(
            reduce_rows,
            arrays=[A, weight / weight.sum()],
            bytes_per_row=24.0 * A.shape[1],
            budget=BLOCK_BYTES,
        )
        first = take_rows(A, np.zeros(1, dtype=int))[0].astype(np.float64)
        mean = first + total(partial(_shift, origin=first), np.add)
        std = total(partial(_deviation, origin=mean), np.hypot)
        rounding = 1e-6 if A.dtype == np.float32 else 1e-13
        return cls(mean, np.where(std <= rounding * np.abs(mean), np.inf, std))

    def __call__(self, A: NDArray) -> NDArray:
        """Standardized columns."""
        return (A - self.mean) / self.scale

    @property
    def spread(self) -> NDArray:
        """The standard deviations, 0 for constant columns."""
        return np.where(np.isinf(self.scale), 0.0, self.scale)

    def undo(self, Z: NDArray) -> NDArray:
        """The columns in their own units."""
        return self.mean + Z * self.spread


def _shift(A: NDArray, share: NDArray, origin: NDArray) -> NDArray:
    return share @ (A - origin)


def _deviation(A: NDArray, share: NDArray, origin: NDArray) -> NDArray:
    """Roots of the mean squares, which are taken in a power of two: none overflows or underflows."""
    D = A - origin
    unit = np.ldexp(1.0, np.frexp(np.abs(D).max(axis=0))[1])
    return unit * np.sqrt(share @ (D / unit) ** 2)


def length_scales(X: Any, weight: NDArray | None = None) -> NDArray:
    """A Gaussian's length scale for every feature: its standard deviation times ``sqrt(d / 2)``, d features that vary.

    On standardized features this is ``gamma="scale"`` of scikit-learn's machines. A constant feature gets a length
    scale far beyond its value, so that it has no effect.
    """
    units = Standardizer.fit(X, weight)
    if isinstance(X, np.ndarray):  # not for Dask, which cannot sort
        warn_if_nothing_varies(X, units.scale)
    varies = np.isfinite(units.scale)
    size = np.clip(np.abs(units.mean), 1.0, 1e290)
    spread = np.where(varies, units.scale, FAR * size)
    return spread * np.sqrt(max(1, int(varies.sum())) / 2.0)


def warn_if_nothing_varies(X: NDArray, scale: Any) -> None:
    """Warn if all rows but the extreme ones are equal, up to a thousandth of the scale of every feature."""
    between = np.sort(X, axis=0)[1:-1]
    if len(X) >= 10 and np.all(np.ptp(between, axis=0) <= 1e-3 * scale):
        warn(
            "X is constant, or constant but for one or two rows far from all others; correct or "
            "leave out these rows, so that features have the scale of the others.",
            UselessModelWarning,
        )


def kernel_unit(K: NDArray, weight: NDArray | None = None) -> float:
    """The variance of the items in feature space: the weighted mean diagonal of the centered K (n, n).

    C and penalties relative to it do not change if K is multiplied by a number or if one is added. K is positive
    semi-definite; 1 if all items are equal.
    """
    weight = weights_or_ones(weight, len(K))
    share = weight / weight.sum()
    diagonal = share @ np.diagonal(K)
    variance = diagonal - share @ (K @ share)
    return float(variance) if variance > 1e-12 * diagonal else 1.0
