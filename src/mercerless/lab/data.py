"""The training rows of a fit: distinct rows, units of the targets, blocks to learn on, scaling, and folds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from mercerless.core.blocks import is_dask, reduce_rows, take_rows
from mercerless.core.copies import MergedRows, Observations, merge_copies
from mercerless.core.folds import (
    Split,
    check_groups,
    find_copies,
    hold_out,
    join_groups,
    make_folds,
    some_rows,
)
from mercerless.core.scaling import BLOCK_BYTES, FeatureScaling, possible_scalings, standard_scaling
from mercerless.core.validation import weights_or_ones
from mercerless.kernels.local import FixedPoints
from mercerless.lab.model import Rows, Settings
from mercerless.lab.selection import held_out_error
from mercerless.lab.solver import Moments


@dataclass(frozen=True)
class DataThresholds:
    """Sizes that decide how rows are read, scaled and split."""

    #: The bandwidths of larger data are learned on blocks of at least so many rows ...
    learning_rows: int = 10_000
    #: ... and of so many per support point.
    rows_per_point: int = 20
    #: Many features mean many bandwidths: one row for so many of them.
    bandwidths_per_row: int = 8
    #: Further blocks on which the bandwidths are refined.
    more_blocks: int = 3
    #: Entries times features above which kernels are learned in single precision, except for interpolation: its
    #: matrix is not regularized, and rounding in its entries would end the descent after a few iterations.
    single: int = 2**21
    #: Up to so many rows there are five folds.
    five_folds: int = 100
    #: Up to so many rows there are three folds, above one hold-out; the same for classes.
    folded_rows: int = 1300
    folded_classes: int = 2500
    #: The same if fewer than `fewest_rare` held-out rows would be outside of the largest class.
    folded_rare: int = 5000
    fewest_rare: int = 100
    #: Rows and hold-outs that choose a scaling.
    scaling_rows: int = 3000
    scaling_draws: int = 3
    #: A further scaling must lower the error to this share; above `scaling_race` times the best it is given up.
    scaling_gain: float = 0.98
    scaling_race: float = 1.15
    #: With fewer distinct rows none are merged: there would be too few to learn from.
    fewest_distinct: int = 10
    #: A table of categories has so many rows per distinct row, no column with more different values than this share of
    #: the distinct rows, and different targets for this share of the repeated rows. Its equal rows are not merged: new
    #: rows are mostly combinations that were seen, and held-out ones would never be.
    rows_per_combination: float = 3.0
    values_per_combination: float = 0.5
    different_targets: float = 0.1


THRESHOLDS = DataThresholds()


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

    def weights(self, correlation: float) -> NDArray:
        """Weights of the distinct rows, if the errors of copies have this correlation."""
        return weights_or_ones(self.merged.weights(correlation), self.shape[0])


def merge_rows(X: Any, Y: NDArray, weight: NDArray, groups: NDArray | None) -> Table:
    """The table of distinct rows; groups that share a copy become one."""
    copies = find_copies(X)
    n_distinct = int(copies.max()) + 1
    if n_distinct < THRESHOLDS.fewest_distinct or has_categories_only(X, Y, copies):
        copies = np.arange(len(copies))
    merged = merge_copies(Y, weight, copies)
    if groups is not None:
        groups = join_groups(groups, copies)[merged.first]
    return Table(X, merged, copies, groups)


def has_categories_only(X: Any, Y: NDArray, copies: NDArray) -> bool:
    """Whether a table has few combinations of values, often with different targets: then equal rows are no copies."""
    n_equal = np.bincount(copies)
    n_distinct = len(n_equal)
    if len(copies) < THRESHOLDS.rows_per_combination * n_distinct:
        return False
    distinct = take_rows(X, np.unique(copies, return_index=True)[1])
    n_values = max(len(np.unique(column)) for column in distinct.T)
    if n_values > THRESHOLDS.values_per_combination * n_distinct:
        return False
    n_targets = np.bincount(copies[Observations.of(copies, Y).first])
    return bool(np.mean(n_targets[n_equal > 1] > 1) >= THRESHOLDS.different_targets)


def drop_weightless(
    X: Any, y: NDArray, weight: NDArray, groups: Any
) -> tuple[Any, NDArray, NDArray, Any]:
    """Without the rows of weight 0."""
    if groups is not None:
        check_consistent_length(y, groups)
        check_groups(groups, len(y))
        groups = column_or_1d(groups)
    if np.all(weight > 0):
        return X, y, weight, groups
    used = np.flatnonzero(weight > 0)
    if len(used) < 2:
        raise ValueError("Only one row has a positive sample_weight; at least two are needed.")
    if groups is not None:
        groups = groups[used]
    return X[used], y[used], weight[used], groups


def target_units(Y: NDArray, weight: NDArray) -> FeatureScaling:
    """Units in which targets have mean 0 and standard deviation 1, both weighted as the rows are."""
    units = standard_scaling(Y)
    if np.ptp(weight) == 0:
        return units
    Z = units(Y)
    mean = np.average(Z, axis=0, weights=weight)
    deviation = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weight))
    is_constant = deviation <= 1e-13 * (1 + np.abs(mean))
    scale = units.scale * np.where(is_constant, 1.0, deviation)
    return units._replace(center=units.center + units.scale * mean, scale=scale)


def range_scaling(X: Any) -> FeatureScaling:
    """Features or targets in [-1, 1], as the LAB paper scales them; new values are not clipped."""
    standard = standard_scaling(X)
    # low and high are a quarter of the range beyond it
    half = (standard.high - standard.low) / 3
    return standard._replace(
        low=np.full_like(half, -np.inf),
        high=np.full_like(half, np.inf),
        center=(standard.low + standard.high) / 2,
        scale=np.where(half > 0, half, 1.0),
    )


def class_units(Y: NDArray, weight: NDArray | None = None) -> FeatureScaling:
    """Units of signed classes: one scale for all, so that rare classes are not blown up."""
    mean = np.average(Y, axis=0, weights=weight)
    squares = np.mean((Y - mean) ** 2, axis=1)
    scale = np.sqrt(np.average(squares, weights=weight))
    return standard_scaling(Y)._replace(center=mean, scale=np.full(len(mean), scale))


@dataclass(frozen=True)
class ScaledTable:
    """A table as learners see it."""

    table: Table
    scaling: FeatureScaling
    dtype: Any
    weight: NDArray  # of the distinct rows

    def rows(self, numbers: NDArray) -> Rows:
        """Some of the distinct rows, in memory."""
        merged = self.table.merged
        X = self.scaling(take_rows(self.table.X, merged.first[numbers]), self.dtype)
        return Rows(X, merged.Y[numbers], self.weights(numbers))

    def weights(self, numbers: NDArray) -> NDArray:
        """Weights of some of the distinct rows, with mean one."""
        return self.weight[numbers] / self.weight[numbers].mean()

    def total(
        self, n_support: int, function: Callable[..., Moments], limit: int | None = None
    ) -> Moments:
        """The moments of all rows, or a limit of them, block by block; for a Dask array where its chunks are."""
        n = self.table.shape[0]
        if limit is not None and limit < n and not is_dask(self.table.X):
            rows = self.rows(some_rows(n, limit, 0))
            return function(rows.X, rows.Y, rows.weight)
        X = self.table.X
        Y, weight = self.table.merged.spread(self.weight, len(X))
        work = partial(_scaled_moments, function=function, scaling=self.scaling, dtype=self.dtype)
        bytes_per_row = 32.0 * (X.shape[1] + n_support)
        return reduce_rows(work, Moments.merge, [X, Y, weight], bytes_per_row, BLOCK_BYTES)


def _scaled_moments(
    X: NDArray,
    Y: NDArray,
    weight: NDArray,
    *,
    function: Callable,
    scaling: FeatureScaling,
    dtype: Any,
) -> Moments:
    return function(scaling(X, dtype), Y, weight)


@dataclass(frozen=True)
class Plan:
    """The plan of a fit: the forms it learns, and the rows it learns them on."""

    settings: Settings
    forms: tuple[str, ...]
    rows: NDArray  # the distinct rows on which bandwidths are learned
    more: list[NDArray]  # further such blocks
    validation_fraction: float | None
    n_features: int
    scaling: FeatureScaling | None = None  # None: to be chosen

    @property
    def work(self) -> int:
        """Rows times support points times features."""
        return len(self.rows) * self.settings.n_support * self.n_features

    @property
    def dtype(self) -> Any:
        needs_double = self.settings.objective == "interpolation"
        if self.work > THRESHOLDS.single and not needs_double:
            return np.dtype(np.float32)
        return np.dtype(np.float64)

    @property
    def max_support(self) -> int:
        if self.settings.growth is None:
            return self.settings.n_support
        return min(len(self.rows), self.settings.max_support)

    def n_bytes(self, n: int, n_outputs: int) -> float:
        """Bytes that a fit on n rows needs besides the data; measured, and asserted in the tests."""
        m = self.max_support
        d = self.n_features
        per_row = 4.5 * self.dtype.itemsize * (m + d) + 32 * n_outputs
        learning = len(self.rows) * per_row + 400.0 * m * d
        if "laplace" in self.forms:  # the distances that `FixedPoints` keeps
            learning += min(FixedPoints.most_bytes, self.dtype.itemsize * len(self.rows) * m * d)
        return learning + 64.0 * n * n_outputs + 1.25 * BLOCK_BYTES


def learning_rows(m: int, d: int, budget: float) -> int:
    """Rows at a time: enough for m support points, and for their bandwidths as far as half of the memory allows."""
    least = max(THRESHOLDS.learning_rows, THRESHOLDS.rows_per_point * m)
    for_bandwidths = m * d // THRESHOLDS.bandwidths_per_row
    in_memory = int(0.5 * budget / (4.5 * 4 * (m + d)))
    return max(least, min(for_bandwidths, in_memory))


def learning_blocks(
    n: int, limit: int, random: np.random.RandomState
) -> tuple[NDArray, list[NDArray]]:
    """The rows on which bandwidths are learned, and up to three further blocks, at least half as large."""
    order = random.permutation(n) if n > limit else np.arange(n)
    last = min(n, (1 + THRESHOLDS.more_blocks) * limit)
    rows, *more = (np.sort(order[start : start + limit]) for start in range(0, last, limit))
    return rows, [block for block in more if len(block) >= limit // 2]


def split_rows(
    table: Table, plan: Plan, rows: Rows, labels: NDArray | None, random: np.random.RandomState
) -> list[Split]:
    """Five folds up to 100 rows, then three, one hold-out of many rows; groups on one side.

    Three folds are for up to 1300 rows, 2500 of classes, 5000 if few held-out rows would be of the smaller classes.
    """
    n = len(rows)
    if plan.validation_fraction is None or n < 5:
        return []
    classes = None
    groups = None
    most = THRESHOLDS.folded_rows
    if table.groups is not None:
        groups = table.groups[plan.rows]
    if labels is not None:
        classes = labels[table.merged.first[plan.rows]]
        rare = plan.validation_fraction * (n - np.bincount(classes).max())
        is_rare = rare < THRESHOLDS.fewest_rare
        most = THRESHOLDS.folded_rare if is_rare else THRESHOLDS.folded_classes
    options: dict[str, Any] = {
        "classify": labels is not None,
        "groups": groups,
        "random_state": random,
    }
    apart = np.arange(n)[:, None]  # equal rows were merged, or are observations of their own
    if n <= most:
        return make_folds(5 if n <= THRESHOLDS.five_folds else 3, apart, classes, **options)
    return [hold_out(plan.validation_fraction, apart, classes, **options)]


def without_held_groups(
    table: Table, plan: Plan, folds: list[Split], blocks: list[NDArray]
) -> list[NDArray]:
    """Blocks of further rows without those of the groups of a single hold-out."""
    if table.groups is None or len(folds) != 1:
        return blocks
    held = table.groups[plan.rows[folds[0][1]]]
    return [block[~np.isin(table.groups[block], held)] for block in blocks]


def choose_scaling(table: Table, plan: Plan) -> FeatureScaling:
    """Standardized features; if they have tails, a scaling that lowers the held-out error of small models enough.

    Small models of the first form decide for all: with all forms the choice was the same on 18 of 20 splits of tables.
    For steps on batches the paper's: features in [-1, 1].
    """
    settings = plan.settings
    if settings.optimizers:
        return range_scaling(table.X)
    merged = table.merged
    numbers = plan.rows[some_rows(len(plan.rows), THRESHOLDS.scaling_rows, settings.seed)]
    sample = take_rows(table.X, merged.first[numbers])
    X = table.X
    if len(merged.first) < len(X) and not is_dask(X):
        X = take_rows(X, merged.first)  # weights and repetition must not differ
    scalings = possible_scalings(X, sample)
    if len(scalings) == 1:
        return scalings[0]
    scaled = [Rows(scaling(sample, np.float32), merged.Y[numbers]) for scaling in scalings]
    errors = dict.fromkeys(range(len(scalings)), 0.0)
    for i in range(THRESHOLDS.scaling_draws):
        draw = settings._replace(seed=(settings.seed + i) % 2**32)
        for k in errors:
            errors[k] += held_out_error(plan.forms[0], scaled[k], draw)
        bound = THRESHOLDS.scaling_race * min(errors.values())
        errors = {k: error for k, error in errors.items() if error <= bound}
        if len(errors) == 1:
            break
    best = min(errors, key=lambda k: errors[k])
    if errors[best] < THRESHOLDS.scaling_gain * errors.get(0, np.inf):
        return scalings[best]
    return scalings[0]


def copy_correlation(merged: MergedRows, plan: Plan, rows: Rows) -> float:
    """How alike the errors of copies are: 1 if their targets are equal, 0 if they differ like any two rows."""
    if not merged.pure_error > 0 or np.all(merged.counts == merged.counts[0]):
        return 1.0
    few = some_rows(len(rows), 3000, plan.settings.seed)
    return merged.correlation(held_out_error(plan.forms[0], rows.take(few), plan.settings))


@dataclass(frozen=True)
class Prepared:
    """The input of learning: the scaled table, the rows to learn on, and the validation folds."""

    scaled: ScaledTable
    rows: Rows
    copy_correlation: float
    folds: list[Split]
    blocks: list[NDArray]  # further rows that refine the bandwidths

    @property
    def held(self) -> NDArray:
        """The rows that validation holds out, fold after fold."""
        if not self.folds:
            return np.zeros(0, dtype=int)
        return np.concatenate([valid for _, valid in self.folds])


def prepare(
    table: Table, plan: Plan, labels: NDArray | None, random: np.random.RandomState
) -> Prepared:
    """Choose a scaling, weigh the copies and make the folds; labels are spread over these."""
    scaling = plan.scaling
    if scaling is None:
        scaling = choose_scaling(table, plan)
    scaled = ScaledTable(table, scaling, plan.dtype, np.ones(table.shape[0]))
    rows = scaled.rows(plan.rows)
    correlation = 0.0
    if labels is None:
        correlation = copy_correlation(table.merged, plan, rows)
    scaled = replace(scaled, weight=table.weights(correlation))
    rows = replace(rows, weight=scaled.weights(plan.rows))
    folds = split_rows(table, plan, rows, labels, random)
    blocks = without_held_groups(table, plan, folds, plan.more)
    return Prepared(scaled, rows, correlation, folds, [block for block in blocks if len(block)])


def noise_of_copies(table: Table, held: NDArray) -> float:
    """Variance of single rows around the means of their copies, which adds to the error of merged rows."""
    return float(np.mean(table.merged.deviations[held])) if len(held) else 0.0
