"""Neighbors through landmarks: items are also compared with those whose comparisons with the landmarks are alike.

Comparisons with landmarks show which training items are probably near. These few are compared exactly, and the
learners on hits (`hit_families`) learn from the nearest, beside the families on landmarks.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mercerless.core.blocks import take_rows
from mercerless.core.memory import row_blocks
from mercerless.kernels import MatrixFunction, PairFunction
from mercerless.similarity.families import (
    Comparisons,
    Setting,
    SplitScore,
    StackFamily,
    Standardizer,
    squares_between,
)
from mercerless.similarity.hit_families import HitFamily, ShareModels, Votes
from mercerless.similarity.hits import THRESHOLDS, HitTraining, ItemHits, TrainingHits
from mercerless.spectra import as_similarities


@dataclass(frozen=True, eq=False)
class NearbyComparisons(Comparisons):
    """Comparisons with landmarks, and hits: similarities to the nearest training items, the columns."""

    hits: csr_array

    def take(self, rows: Any) -> Self:
        """Comparisons of some rows with all columns."""
        return replace(super().take(rows), hits=csr_array(self.hits[rows]))


@dataclass(frozen=True, eq=False)
class NearbyItems:
    """Training items that are searched for the nearest of an item, by their comparisons with the landmarks."""

    compare: Callable[[Any, Any], NDArray]
    items: Any
    diagonal: NDArray  # (n,), own similarities of the items
    kind: str
    landmarks: NDArray  # (m,), positions of the landmarks among the items
    standardize: Standardizer
    profiles: NDArray  # (n, m), standardized distances of the items to the landmarks
    number: int  # how many are compared exactly, and how many hits are kept
    unit: float = 1.0  # median squared distance of the training items' hits

    @classmethod
    def of(
        cls,
        compare: Callable[[Any, Any], NDArray],
        items: Any,
        comparisons: Comparisons,
        kind: str,
        landmarks: NDArray,
        number: int,
    ) -> tuple[Self, csr_array]:
        """Prepared for new items, and the hits of the training items themselves."""
        weight = np.ones(len(comparisons))
        standardize = Standardizer.fit(comparisons.distances, weight, len(weight))
        profiles = standardize(comparisons.distances)
        assert comparisons.row_diagonal is not None
        number = min(number, max(1, len(profiles) - len(landmarks) - 1))
        searched = cls(
            compare, items, comparisons.row_diagonal, kind, landmarks, standardize, profiles, number
        )
        own = np.arange(len(profiles))
        positions, squares = searched._nearest(items, comparisons, own)
        unit = float(np.median(squares)) or 1.0
        searched = replace(searched, unit=unit)
        return searched, searched._hits(positions, squares)

    def of_new(self, items: Any, comparisons: Comparisons) -> NearbyComparisons:
        """Comparisons of new items with their hits."""
        nobody = np.full(len(comparisons), -1)
        hits = self._hits(*self._nearest(items, comparisons, nobody))
        return NearbyComparisons(
            comparisons.similarities, comparisons.row_diagonal, comparisons.column_diagonal, hits
        )

    def _nearest(
        self, items: Any, comparisons: Comparisons, own: NDArray
    ) -> tuple[NDArray, NDArray]:
        """Positions and squared distances (m, number) of the nearest items, without each item `own`.

        Those of the nearest profiles are compared exactly; the nearest of them and of the landmarks are kept.
        """
        profiles = self.standardize(comparisons.distances)
        positions = np.empty((len(profiles), self.number), dtype=np.intp)
        for rows in row_blocks(len(profiles), 24.0 * len(self.profiles)):
            away = squares_between(profiles[rows], self.profiles)
            away[:, self.landmarks] = np.inf  # these are compared already
            known = own[rows] >= 0
            away[np.flatnonzero(known), own[rows][known]] = np.inf
            positions[rows] = np.argpartition(away, self.number - 1, axis=1)[:, : self.number]
        exact = self._squares(items, positions, comparisons.row_diagonal)
        to_landmarks = np.where(self.landmarks == own[:, None], np.inf, comparisons.squares)
        landmarks = np.broadcast_to(self.landmarks, to_landmarks.shape)
        candidates = np.hstack([positions, landmarks])
        squares = np.hstack([exact, to_landmarks])
        kept = np.argpartition(squares, self.number - 1, axis=1)[:, : self.number]
        return np.take_along_axis(candidates, kept, 1), np.take_along_axis(squares, kept, 1)

    def _squares(self, items: Any, positions: NDArray, row_diagonal: NDArray | None) -> NDArray:
        """Squared distances of every item to the training items at its positions."""
        assert row_diagonal is not None
        if isinstance(self.compare, (PairFunction, MatrixFunction)):
            values = self.compare.with_some(items, self.items, positions)
        else:
            values = np.empty(positions.shape)
            for row, others in enumerate(positions):
                item = take_rows(items, np.array([row]))
                values[row] = self.compare(item, take_rows(self.items, others))[0]
        similarities = as_similarities(values, self.kind)
        of_others = self.diagonal[positions]
        squares = of_others + row_diagonal[:, None] - 2.0 * similarities
        sizes = np.maximum(np.abs(of_others), np.abs(row_diagonal)[:, None])
        squares[squares <= 8.0 * np.finfo(float).eps * sizes] = 0.0
        return squares

    def _hits(self, positions: NDArray, squares: NDArray) -> csr_array:
        """Hits with similarities ``exp(-squares / unit)``, at least the smallest positive number."""
        values = np.maximum(np.exp(-squares / self.unit), np.finfo(float).tiny)
        n_rows, number = positions.shape
        ends = np.arange(0, n_rows * number + 1, number)
        shape = (n_rows, len(self.profiles))
        hits = csr_array((values.ravel(), positions.ravel(), ends), shape)
        hits.sort_indices()
        return hits


class NearbyFamily(StackFamily):
    """Learners on hits among the nearest items: votes, and models of the classes' shares at one and two steps."""

    needs_diagonal = True
    seed = 0  # of the projections, the same in every fold
    known: NDArray  # positions of the items that it learned from
    learners: list[HitFamily]

    def __init__(self, hits: csr_array, classify: bool):
        self.hits = hits
        self.classify = classify
        names = [name for learner in self._learners() for name in learner.names]
        self.every = tuple(
            Setting(f"nearby {name}", float(place)) for place, name in enumerate(names)
        )
        super().__init__(self.every)

    def _learners(self) -> list[HitFamily]:
        has_many_items = self.hits.shape[0] >= THRESHOLDS.few_items
        return [Votes(), ShareModels(self.classify, has_many_items)]

    def learn(self, sample: Any) -> Self:
        """The family itself: it has no units."""
        return self

    def fit_items(self, items: NDArray, targets: NDArray, weight: NDArray) -> Self:
        """The family fitted on some of the items, by their hits among each other."""
        fitted = copy(self)
        fitted.targets = targets
        fitted.known = items
        if self.classify:
            targets = (targets > 0.0).astype(float)
        hits = TrainingHits(self.hits, both_directions=False).among(items)
        weight = weight[items] / weight[items].mean()
        training = HitTraining(hits, targets[items], weight, self.classify)
        random = np.random.RandomState(self.seed)
        fitted.learners = [learner.fit(training, random) for learner in self._learners()]
        del fitted.hits  # predictions do without them
        return fitted

    def scores(self, new: NearbyComparisons) -> NDArray:
        hits = ItemHits.of(csr_array(new.hits[:, self.known]))
        scores = np.concatenate([learner.scores(hits) for learner in self.learners])
        return scores[[self.every.index(setting) for setting in self.settings]]

    def split(self, known: Any, new: Any) -> list[Any]:
        """All is base: scores of two steps are no sums over items."""
        nothing = np.zeros((len(new), len(known.items)))
        effects = np.zeros((len(known.items), self.targets.shape[1]))
        return [SplitScore(nothing, effects, scores) for scores in self.scores(new)]
