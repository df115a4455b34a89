"""Equal rows, merged into one."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.folds import OutOfFold, find_copies


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
