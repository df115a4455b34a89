"""What a fit does with a table: its distinct rows, on how many of them it learns, and what it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import is_dask, reduce_rows, take_rows
from mercerless.core.copies import MergedRows, merge_copies
from mercerless.core.folds import find_copies, join_groups, some_rows
from mercerless.core.scaling import BLOCK_BYTES, FeatureScaling
from mercerless.lab.model import Rows, Settings
from mercerless.lab.solver import Moments

_AUTO_FORMS = ("gaussian", "laplace")
ALL_ROWS = 1000  # up to so many rows kernel ridge regression on all of them is tried too
# the bandwidths of larger data are learned on blocks of at least so many rows
_LEARNING_ROWS = 10_000
_ROWS_PER_POINT = 20  # of a support point
_BANDWIDTHS_PER_ROW = 8  # many features mean many bandwidths, which need more rows
# rows x support points x features above which "auto" leaves out the form without matrix products
_LAPLACE_WORK = 2e8
_MORE_BLOCKS = 3
_WIDE_CENTERS = 3000
_FEWEST_CENTERS = 500
# at most so many rows; bytes per value: in single and double precision, bins
_TREE_ROWS = 200_000
_TREE_BYTES = 20.0
_WIDE_BYTES = 100.0  # times the square of the centers: about a dozen matrices at once
# with fewer, equal rows are the nature of the data (see `folds`) and are not merged
_FEWEST_DISTINCT = 10
_SINGLE = 2**21  # entries times features above which kernels are learned in single precision


@dataclass(frozen=True)
class Table:
    """The training rows wherever they are (memory, memory map, Dask), equal ones merged."""

    X: Any
    merged: MergedRows  # with standardized targets
    copies: NDArray  # the number of the distinct row of every row
    groups: NDArray | None = None  # of the distinct rows

    @property
    def shape(self) -> tuple[int, int]:
        """Distinct rows and features."""
        return len(self.merged.first), self.X.shape[1]


def merge_rows(X: Any, Y: NDArray, weight: NDArray | None, groups: NDArray | None) -> Table:
    """The table of distinct rows; groups that share a copy become one."""
    copies = find_copies(X)
    if copies.max() + 1 < _FEWEST_DISTINCT:
        copies = np.arange(len(X))
    merged = merge_copies(Y, weight, copies)
    return Table(
        X, merged, copies, None if groups is None else join_groups(groups, copies)[merged.first]
    )


@dataclass(frozen=True)
class ScaledTable:
    """A table as learners see it."""

    table: Table
    scaling: FeatureScaling
    dtype: Any
    weight: NDArray | None = None  # of the distinct rows

    def rows(self, numbers: NDArray) -> Rows:
        """Some of the distinct rows, in memory."""
        merged = self.table.merged
        X = self.scaling(take_rows(self.table.X, merged.first[numbers]), self.dtype)
        return Rows(X, merged.Y[numbers], self.weights(numbers))

    def weights(self, numbers: NDArray) -> NDArray | None:
        """Weights of some of the distinct rows, with mean one."""
        return None if self.weight is None else self.weight[numbers] / self.weight[numbers].mean()

    def total(
        self, n_support: int, function: Callable[..., Moments], limit: int | None = None
    ) -> Moments:
        """The moments of all rows, or a limit of them, block by block; for a Dask array where its chunks are."""
        n = self.table.shape[0]
        if limit is not None and limit < n and not is_dask(self.table.X):
            rows = self.rows(some_rows(n, limit, 0))
            return function(rows.X, rows.Y, rows.weight)
        X, (Y, weight) = self.table.X, self.table.merged.spread(self.weight, len(self.table.X))
        work = partial(_scaled_moments, function=function, scaling=self.scaling, dtype=self.dtype)
        return reduce_rows(
            work, Moments.merge, [X, Y, weight], 32.0 * (X.shape[1] + n_support), BLOCK_BYTES
        )


def _scaled_moments(
    X: NDArray,
    Y: NDArray,
    weight: NDArray | None,
    *,
    function: Callable,
    scaling: FeatureScaling,
    dtype: Any,
) -> Moments:
    return function(scaling(X, dtype), Y, weight)


class Plan(NamedTuple):
    """What a fit does with a table."""

    settings: Settings
    kernel: str  # a form or "auto"
    rows: NDArray  # the distinct rows on which bandwidths are learned
    more: list[NDArray]  # further such blocks
    all_rows: bool  # whether kernel ridge regression with all rows as centers competes
    validation_fraction: float | None
    n_features: int
    # whether trees and, from some thousand rows on, wide machines compete
    all_members: bool = False
    n_centers: int = 0  # of wide machines, as many as a quarter of the memory holds
    n_boosting: int = 0  # rows from which trees are learned, likewise

    @property
    def work(self) -> int:
        """Rows times support points times features."""
        return len(self.rows) * self.settings.n_support * self.n_features

    @property
    def forms(self) -> tuple[str, ...]:
        if self.kernel != "auto":
            return (self.kernel,)
        return _AUTO_FORMS if self.work <= _LAPLACE_WORK else ("gaussian",)

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float32 if self.work > _SINGLE else np.float64)

    @property
    def max_support(self) -> int:
        if self.settings.growth is None:
            return self.settings.n_support
        return min(len(self.rows), self.settings.max_support)

    def n_bytes(self, n: int, n_outputs: int) -> float:
        """What a fit on n rows needs besides the data; measured, and asserted in the tests."""
        m = self.max_support
        d = self.n_features
        learning = (
            len(self.rows) * (4.5 * self.dtype.itemsize * (m + d) + 32 * n_outputs) + 400.0 * m * d
        )
        others = (
            _WIDE_BYTES * self.n_centers**2 + _TREE_BYTES * self.n_boosting * d
            if self.all_members
            else 0.0
        )
        learning += (80.0 * n * n if self.all_rows else 0.0) + others
        return learning + 64.0 * n * n_outputs + 1.25 * BLOCK_BYTES


def center_count(n: int, budget: float) -> int:
    """Centers of wide machines for n rows: at most 3000, and no more than a quarter of the memory holds; 0 for none."""
    most = int(min(_WIDE_CENTERS, n, np.sqrt(budget / 4 / _WIDE_BYTES)))
    return most if n > ALL_ROWS and most >= _FEWEST_CENTERS else 0


def boosting_rows(n: int, d: int, budget: float) -> int:
    """Rows from which trees are learned: at most 200,000, and no more than a quarter of the memory holds."""
    return int(min(n, _TREE_ROWS, budget / 4 / (_TREE_BYTES * d)))


def learning_rows(m: int, d: int, budget: float) -> int:
    """Rows at a time: enough for m support points, and for their bandwidths as far as half of the memory allows."""
    least = max(_LEARNING_ROWS, _ROWS_PER_POINT * m)
    return max(least, min(m * d // _BANDWIDTHS_PER_ROW, int(0.5 * budget / (4.5 * 4 * (m + d)))))


def learning_blocks(
    n: int, limit: int, random: np.random.RandomState
) -> tuple[NDArray, list[NDArray]]:
    """The rows on which bandwidths are learned, and up to three further blocks, at least half as large."""
    order = random.permutation(n) if n > limit else np.arange(n)
    rows, *more = (
        np.sort(order[i : i + limit]) for i in range(0, min(n, (1 + _MORE_BLOCKS) * limit), limit)
    )
    return rows, [block for block in more if len(block) >= limit // 2]
