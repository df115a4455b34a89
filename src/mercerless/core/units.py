"""Units: no prediction depends on the units of features, targets or similarities.

The machines of the papers measure each feature by its spread, targets by theirs, and their parameters C and epsilon by
the spread of the items in feature space and of the targets. Raw and standardized data then give the same model.
"""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import reduce_rows, take_rows
from mercerless.core.validation import weights_or_ones

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
        arrays = [A, weight / weight.sum()]
        total = partial(
            reduce_rows,
            combine=np.add,
            arrays=arrays,
            bytes_per_row=24.0 * A.shape[1],
            budget=BLOCK_BYTES,
        )
        first = take_rows(A, np.zeros(1, dtype=int))[0].astype(np.float64)
        mean = first + total(partial(_moment, origin=first, power=1))
        std = np.sqrt(total(partial(_moment, origin=mean, power=2)))
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


def _moment(A: NDArray, share: NDArray, origin: NDArray, power: int) -> NDArray:
    return share @ (A - origin) ** power


def length_scales(X: Any, weight: NDArray | None = None) -> NDArray:
    """A Gaussian's length scale for every feature: its standard deviation times ``sqrt(d / 2)``, d features that vary.

    On standardized features this is ``gamma="scale"`` of scikit-learn's machines. A constant feature gets a length
    scale far beyond its value, so that it has no effect.
    """
    units = Standardizer.fit(X, weight)
    varies = np.isfinite(units.scale)
    size = np.where(units.mean == 0.0, 1.0, np.abs(units.mean))
    spread = np.where(varies, units.scale, FAR * size)
    return spread * np.sqrt(max(1, int(varies.sum())) / 2.0)


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
