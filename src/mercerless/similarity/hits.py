"""Hits instead of a matrix: sparse similarities, most pairs unknown or zero; nothing dense is ever made.

A search (BLAST, DIAMOND, MMseqs2, Foldseek), a citation graph or a threshold gives every item a few hits among the
training items. This module has the training data: rows of hits, in one direction or in both, and the votes of the
items that were hit. The learners are in `hit_families`, their average in `hit_stack`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack


@dataclass(frozen=True)
class HitThresholds:
    """Constants of the learner on hits, chosen on amp_edit, protein, coilyork, ECG200, digits, letters and a graph."""

    #: Pseudo-hits that pull votes toward the shares of the classes, or the mean of the numbers.
    prior: float = 0.5
    #: The same where labels have spread along the hits, which are shares themselves.
    prior_of_spread: float = 1e-3
    #: Floor of the best relative similarity to a class.
    smallest_relative: float = 5e-4
    #: Value of the smallest hit of a row in ridge regression, as a share of the row's range.
    floor_of_rows: float = 0.1
    #: Most steps of conjugate gradients.
    ridge_steps: int = 60
    #: Residual of conjugate gradients, relative to the right-hand side.
    ridge_tolerance: float = 1e-4
    #: Coordinates of the sparse matrix; at most an eighth of the items.
    coordinates: int = 64
    #: Share of the training items at each end beyond which features are clipped.
    clip: float = 0.005
    #: Below this many items, families with many coefficients are left out.
    few_items: int = 200
    #: Most rows of logistic regressions.
    logistic_rows: int = 30_000
    #: Smallest logarithm of a share or probability, as of classes that a fold does not have.
    smallest_log: float = -30.0
    #: How many settings of every family are averaged.
    best_settings: int = 2
    #: Strength that pulls the weights toward each other.
    pull: float = 0.02
    #: Above this many items a single tenth is held out instead of folds.
    folded_items: int = 20_000


THRESHOLDS = HitThresholds()

#: The hits of an item; with both directions known, those in either direction.
EITHER = "hits"
#: With both directions known: the hits of an item, and the items that have it as a hit.
DIRECTIONS = ("rows", "columns")


@dataclass(frozen=True, eq=False)
class HitRows:
    """Hits of some items, the rows, among the training items, the columns; entries are positive similarities."""

    similarities: csr_array

    @property
    def shape(self) -> tuple[int, int]:
        return self.similarities.shape

    @cached_property
    def largest(self) -> NDArray:
        """The largest similarity of every row, 0 without hits."""
        return np.asarray(self.similarities.max(axis=1).todense(), dtype=float).ravel()

    @cached_property
    def relative(self) -> csr_array:
        """Similarities relative to the largest of their row."""
        return scale_rows(self.similarities, self.largest)

    @cached_property
    def transitions(self) -> csr_array:
        """Relative similarities that sum to one in every row."""
        return scale_rows(self.relative, self.relative.sum(axis=1))

    @cached_property
    def counts(self) -> NDArray:
        """How many hits every row has."""
        return np.diff(self.similarities.indptr)

    @property
    def row_of_hit(self) -> NDArray:
        """The row of every entry."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), self.counts)

    @cached_property
    def rank_of_hit(self) -> NDArray:
        """The place of every entry in its row, 0 for the best hit; equal ones in the order of their columns."""
        S = self.similarities
        order = np.argsort(-S.data, kind="stable")
        order = order[np.argsort(self.row_of_hit[order], kind="stable")]
        ranks = np.empty(len(order), dtype=np.int32)
        ranks[order] = np.arange(len(order)) - S.indptr[self.row_of_hit]
        return ranks

    def powered(self, power: float, number: int | None = None) -> csr_array:
        """Powers of the relative similarities, of all hits or of the best of every row."""
        U = self.relative
        if number is None:
            return csr_array((U.data**power, U.indices, U.indptr), U.shape)
        kept = self.rank_of_hit < number
        values = U.data[kept] ** power
        ends = np.concatenate([[0], np.cumsum(np.minimum(self.counts, number))])
        return csr_array((values, U.indices[kept], ends), U.shape)


def scale_rows(S: csr_array, divisors: NDArray) -> csr_array:
    """The matrix with each row divided by a number; rows of zeros stay zeros."""
    factors = np.zeros(S.shape[0])
    np.divide(1.0, divisors, out=factors, where=divisors > 0.0)
    values = S.data * np.repeat(factors, np.diff(S.indptr))
    return csr_array((values, S.indices, S.indptr), S.shape)


@dataclass(frozen=True, eq=False)
class ItemHits:
    """Hits of some items among the training items.

    If both directions are known there are three views: hits in either direction, the sum of both; the hits of an item;
    and the items that have it as a hit. Otherwise there is one, the hits of an item.
    """

    views: dict[str, HitRows]

    @classmethod
    def of(cls, rows: csr_array, columns: csr_array | None = None) -> "ItemHits":
        """From the hits of items, and of the items that have them as hits if these are known."""
        if columns is None:
            return cls({EITHER: HitRows(rows)})
        either = csr_array(rows + columns)
        return cls(dict(zip((EITHER, *DIRECTIONS), map(HitRows, (either, rows, columns)))))

    def __getitem__(self, view: str) -> HitRows:
        return self.views[view]

    def __len__(self) -> int:
        return self.views[EITHER].shape[0]

    @property
    def is_directed(self) -> bool:
        """Whether both directions are known."""
        return len(self.views) > 1


@dataclass(frozen=True, eq=False)
class TrainingHits:
    """Hits of all training items among each other, without the diagonal, of which folds take their parts."""

    matrix: csr_array
    both_directions: bool

    @property
    def counts(self) -> NDArray:
        """How many hits every item has; with both directions, and how many it is itself."""
        counts = np.diff(self.matrix.indptr)
        if self.both_directions:
            counts = counts + np.bincount(self.matrix.indices, minlength=len(counts))
        return counts

    def among(self, items: NDArray) -> ItemHits:
        """Hits of some items among each other."""
        return self.of(items, items)

    def of(self, items: NDArray, known: NDArray) -> ItemHits:
        """Hits of some items among others, as if the first were new."""
        rows = csr_array(self.matrix[items][:, known])
        if not self.both_directions:
            return ItemHits.of(rows)
        return ItemHits.of(rows, csr_array(self.matrix[known][:, items].T))


@dataclass(frozen=True, eq=False)
class Ballots:
    """Votes of the items that are hit: their targets times their weights, and their weights."""

    sums: NDArray  # (n, q + 1)
    mean: NDArray  # (q,), of the targets: shares of the classes, or means of the numbers
    classify: bool

    @classmethod
    def of(cls, targets: NDArray, weight: NDArray, classify: bool) -> "Ballots":
        """Those of training items with these targets, one column per class or number."""
        weighted = targets * weight[:, None]
        mean = weighted.sum(axis=0) / weight.sum()
        return cls(np.column_stack([weighted, weight]), mean, classify)

    def count(self, hits: csr_array) -> NDArray:
        """Votes (m, q + 1) of the items that are hit, weighed by the entries."""
        return hits @ self.sums

    def scores(self, votes: NDArray, strength: float = THRESHOLDS.prior) -> NDArray:
        """The votes' mean targets, pulled toward the mean by pseudo-votes; of classes their logarithms."""
        total = votes[:, -1:] + strength
        means = (votes[:, :-1] + strength * self.mean) / total
        if self.classify:
            return np.log(np.maximum(means, np.exp(THRESHOLDS.smallest_log)))
        return means


@dataclass(frozen=True, eq=False)
class HitTraining:
    """Training items: their hits among each other, targets (one column per class or number), weights of mean one."""

    hits: ItemHits
    targets: NDArray
    weight: NDArray
    classify: bool

    @cached_property
    def ballots(self) -> Ballots:
        """The votes of these items for others."""
        return Ballots.of(self.targets, self.weight, self.classify)


def lengths_of(S: csr_array) -> NDArray:
    """Euclidean lengths of the rows."""
    return np.sqrt(np.asarray(S.multiply(S).sum(axis=1)).ravel())


def beside(blocks: Sequence[csr_array]) -> csr_array:
    """Sparse matrices side by side."""
    if len(blocks) == 1:
        return blocks[0]
    return csr_array(hstack(blocks, format="csr"))
