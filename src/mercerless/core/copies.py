"""Equal rows, merged into one, and rows that are nearly equal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from mercerless.core.folds import OutOfFold, find_copies
from mercerless.core.scaling import standard_scaling
from mercerless.core.validation import weights_or_ones


class MergedRows(NamedTuple):
    """The distinct rows: equal rows are one, with the mean of their targets."""

    first: NDArray  # (n_distinct,), the first row of every set of equal rows
    Y: NDArray  # (n_distinct, n_outputs), weighted mean targets
    # sums of the weights; None if every row is distinct and there are no weights
    total: NDArray | None
    counts: NDArray  # the number of observations in every set: of rows with different targets
    deviations: NDArray  # the weighted mean of the squared distances of their targets to the mean
    # the variance of the targets of equal rows, without bias; 0 if all are equal
    pure_error: float

    def correlation(self, error: float) -> float:
        """The correlation of the errors of equal rows, from a held-out error of merged rows.

        With ``y_ij = f(x_i) + u_i + e_ij`` a single row has the squared error ``var u + var e``, and ``var e`` is the
        pure error: ``r = 1 - var e / (var u + var e)``.
        """
        single = error + self.pure_error * float(np.mean(1 - 1 / self.counts))
        return float(np.clip(1 - self.pure_error / single, 0, 1)) if single > 0 else 1.0

    def weights(self, correlation: float) -> NDArray | None:
        """``k / (1 + (k - 1) r)`` for k equal rows, the inverse variance of their mean, times their mean weight."""
        return None if self.total is None else self.total / (1 + (self.counts - 1) * correlation)

    def spread(self, weight: NDArray | None, n: int) -> tuple[NDArray, NDArray | None]:
        """Equivalent targets and weights of all n rows: a copy after the first has no weight."""
        if len(self.first) == n:
            return self.Y, weight
        Y = np.zeros((n, self.Y.shape[1]))
        w = np.zeros(n)
        Y[self.first] = self.Y
        w[self.first] = weight
        return Y, w


@dataclass(frozen=True)
class Observations:
    """Equal rows with equal targets as one observation, so that a whole weight is the same as repetition."""

    first: NDArray  # (n_observations,), the first row of every observation, sorted by distinct rows
    number: NDArray  # (n,), the observation of every row

    @classmethod
    def of(cls, copies: NDArray, Y: NDArray) -> "Observations":
        """Those of rows whose equals have the same number in `copies`, with targets (n, n_outputs)."""
        if copies.max() + 1 == len(copies):
            every = np.arange(len(copies))
            return cls(every, every)
        rows_with_targets = np.column_stack([copies, Y])
        _, first, number = np.unique(
            rows_with_targets, axis=0, return_index=True, return_inverse=True
        )
        return cls(first, number.ravel())

    def __len__(self) -> int:
        return len(self.first)

    def take(self, values: NDArray) -> NDArray:
        """One of the equal values of every observation."""
        if len(self.first) == len(self.number):
            return values
        return values[self.first]

    def spread(self, values: NDArray) -> NDArray:
        """The values of the observations for all rows."""
        if len(self.first) == len(self.number):
            return values
        return values[self.number]

    def total(self, weight: NDArray) -> NDArray:
        """Sums of the weights of equal rows, in the order of `take`."""
        if len(self.first) == len(self.number):
            return weight
        return self.sums(weight)

    def sums(self, weight: NDArray) -> NDArray:
        """Sums of the weights of equal rows, in the order of `first`."""
        return np.bincount(self.number, weights=weight)


class Gathered(NamedTuple):
    """Weights with which the first of equal items with equal targets stands for all of them."""

    weight: NDArray  # (n,), of the first the sum of the weights, 0 for the others
    first: NDArray  # (n,), the item that stands for each item
    given: NDArray  # (n,), the weights before

    def places(self, rows: NDArray) -> tuple[NDArray, NDArray]:
        """The items that carried weight and that those at these rows stand for, and the place of each in `rows`."""
        if np.array_equal(self.first, np.arange(len(self.first))):
            return rows, np.arange(len(rows))
        place_of = np.full(len(self.first), -1)
        place_of[rows] = np.arange(len(rows))
        place = place_of[self.first]
        everyone = np.flatnonzero((place >= 0) & (self.given > 0.0))
        return everyone, place[everyone]

    def spread(self, held_out: OutOfFold) -> OutOfFold:
        """The out-of-fold predictions of all items that carry weight, copies included."""
        rows, place = self.places(held_out.rows)
        groups = held_out.groups
        if groups is not None:
            groups = groups[place]
        return OutOfFold(rows, held_out.prediction[place], held_out.target[place], groups)


def gather_copies(
    items: Any,
    weight: NDArray,
    *targets: NDArray,
    precomputed: bool = False,
    fewest: float = 1,
    whole_items: bool = False,
) -> Gathered:
    """Let the first of equal items with equal targets carry the weight of all of them.

    A whole weight is then the same as so many repetitions, whatever is counted, drawn, held out or solved to a
    tolerance afterwards. `targets` are arrays with a row for each item that copies must share, such as groups besides
    the targets; with `whole_items` their targets may differ. `fewest` is for `are_observations`. Items of Dask keep
    their weights.
    """
    n = len(weight)
    apart = Gathered(weight, np.arange(n), weight)
    if hasattr(items, "dask"):
        return apart
    used = np.flatnonzero(weight)
    copies = np.unique(_copies_both_ways(items, precomputed)[used], return_inverse=True)[1]
    if copies.max() + 1 == len(used) or are_observations(copies, fewest):
        return apart
    columns = [np.unique(of[used], axis=0, return_inverse=True)[1].ravel() for of in targets]
    if whole_items:
        columns = [copies]
    observations = Observations.of(copies, np.column_stack(columns))
    first = np.arange(n)
    first[used] = used[observations.first[observations.number]]
    gathered = np.zeros(n)
    gathered[used[observations.first]] = observations.sums(weight[used])
    return Gathered(gathered, first, weight)


def are_observations(copies: NDArray, fewest: float) -> bool:
    """Whether equal items, with the same number in `copies`, are observations of their own and no copies.

    So it is in a table of categories, with fewer distinct items than `fewest`: held out with all its equals, a cell of
    the table could not be predicted. A single distinct item is not enough to learn from in any case.
    """
    n_distinct = int(copies.max()) + 1
    return n_distinct < 2 or n_distinct < fewest


def _copies_both_ways(items: Any, precomputed: bool) -> NDArray:
    """Numbers of the distinct items; items of a square matrix are copies if their rows and their columns are equal."""
    copies = find_copies(items, precomputed=precomputed)
    n = len(copies)
    if not precomputed or items.shape[1] != n or copies.max() + 1 == n:
        return copies
    both = np.column_stack([copies, find_copies(items.T, precomputed=True)])
    _, first, number = np.unique(both, axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number.reshape(-1)]


def merge_copies(Y: NDArray, weight: NDArray | None, copies: NDArray) -> MergedRows:
    """Merge rows with the same number in `copies`, which counts distinct rows in the order of first appearance.

    Rows that also have the same targets are one row with the sum of their weights, so that a whole weight is the same
    as repetition. Equal rows with different targets are observations whose errors may be correlated.
    """
    first, counts = np.unique(copies, return_index=True, return_counts=True)[1:]
    if len(first) == len(copies):
        return MergedRows(first, Y, weight, counts, np.zeros(len(first)), 0.0)
    observations = Observations.of(copies, Y)
    w = observations.sums(weights_or_ones(weight, len(copies)))
    of_row = copies[observations.first]
    counts = np.bincount(of_row)
    total = np.bincount(of_row, weights=w)
    # relative to the first of the set, so that equal targets stay what they are
    shift = Y[observations.first] - Y[first[of_row]]
    sums = [np.bincount(of_row, weights=w * column) for column in shift.T]
    means = np.stack(sums, axis=1) / total[:, None]
    square = w * np.sum((shift - means[of_row]) ** 2, axis=1)
    deviations = np.bincount(of_row, weights=square) / total
    pure_error = 0.0
    if counts.max() > 1:
        squared_weights = np.bincount(of_row, weights=w**2)
        freedom = w.sum() - np.sum(squared_weights / total)
        pure_error = float(square.sum() / freedom)
    return MergedRows(first, Y[first] + means, total, counts, deviations, pure_error)


@dataclass(frozen=True)
class NearRowRules:
    """When rows of a table are near-copies of each other."""

    #: Fewest and most rows to look at.
    fewest_rows: int = 50
    most_rows: int = 100_000
    #: A column is continuous if so many of its values are distinct ...
    distinct: float = 0.5
    #: ... and with fewer continuous columns rows come close by chance.
    continuous_columns: int = 3
    #: Distance of two rows of different categories, in standard deviations.
    category_distance: float = 2.0
    #: Rows whose nearest rows are looked at first.
    queries: int = 500
    #: How much farther other rows are than near-copies.
    gap: float = 5.0
    #: Distances within the gap, for every row that is looked at.
    between: float = 0.05
    #: Share of the rows that must have a near-copy.
    rows: float = 0.2
    #: Larger sets are clusters, and not measurements of the same thing.
    largest_set: int = 20


NEAR_ROWS = NearRowRules()


def near_copies(X: NDArray, categories: Sequence[int] | NDArray = ()) -> NDArray | None:
    """Numbers of sets of near-copies, one for every row; None if rows of the table are not near-copies.

    Rows are near-copies if the distances of rows to those around them fall apart: a fifth of the rows or more have
    others that are at least `gap` times nearer than all the rest, and hardly any distance lies in between. `X` holds
    numbers (NaN if missing), and codes in the columns of `categories`. Equal rows have the same number.
    """
    rules = NEAR_ROWS
    number_of = find_copies(X)
    distinct = X[np.unique(number_of, return_index=True)[1]]
    if not rules.fewest_rows <= len(distinct) <= rules.most_rows:
        return None
    if not _has_continuous_columns(distinct, categories):
        return None
    Z = _comparable(distinct, categories)
    queries = np.random.RandomState(0).permutation(len(Z))[: rules.queries]
    neighbors = NearestNeighbors(n_neighbors=rules.largest_set + 1).fit(Z)
    distances = neighbors.kneighbors(Z[queries])[0][:, 1:]
    radius = _middle_of_gap(distances)
    if radius is None:
        return None
    links = neighbors.radius_neighbors_graph(Z, radius)
    set_of = connected_components(links, directed=False)[1]
    sizes = np.bincount(set_of)[set_of]
    is_near_copy = (sizes > 1) & (sizes <= rules.largest_set)
    if is_near_copy.mean() < rules.rows:
        return None
    return set_of[number_of]


def _has_continuous_columns(rows: NDArray, categories: Sequence[int] | NDArray) -> bool:
    """Whether enough columns have so many values that rows are not close by chance."""
    rules = NEAR_ROWS
    enough_values = rules.distinct * len(rows)
    numeric = np.setdiff1d(np.arange(rows.shape[1]), np.asarray(categories, dtype=int))
    n_continuous = 0
    for column in numeric:
        n_values = len(np.unique(rows[:, column]))
        n_continuous += n_values >= enough_values
    return n_continuous >= rules.continuous_columns


def _comparable(rows: NDArray, categories: Sequence[int] | NDArray) -> NDArray:
    """Rows as vectors whose Euclidean distances measure how different they are."""
    rows = np.array(rows, dtype=np.float64)
    codes = rows[:, categories] * NEAR_ROWS.category_distance
    missing = np.isnan(rows)
    observed = ~missing.all(axis=0)
    rows = rows[:, observed]
    rows = np.where(missing[:, observed], np.nanmedian(rows, axis=0), rows)
    Z = standard_scaling(rows)(rows)
    is_category = np.isin(np.flatnonzero(observed), categories)
    marks = missing[:, missing.any(axis=0)] * NEAR_ROWS.category_distance
    return np.hstack([Z[:, ~is_category], np.nan_to_num(codes, nan=-1.0), marks])


def _middle_of_gap(distances: NDArray) -> float | None:
    """A distance in the middle of the widest gap of the distances of rows to those around them; None without a gap.

    `distances` (n_rows, n_neighbors) ascend in every row.
    """
    rules = NEAR_ROWS
    ascending = np.sort(distances, axis=None)
    n_between = 1 + int(rules.between * len(distances))
    lower = ascending[:-n_between]
    upper = ascending[n_between:]
    has_nearer = np.searchsorted(np.sort(distances[:, 0]), lower, side="right")
    is_enough = has_nearer >= rules.rows * len(distances)
    is_gap = is_enough & (upper >= rules.gap * lower)
    if not is_gap.any():
        return None
    widths = np.where(is_gap, np.log(upper / np.maximum(lower, np.finfo(float).tiny)), 0.0)
    place = int(np.argmax(widths))
    return float(np.sqrt(lower[place] * upper[place]))
