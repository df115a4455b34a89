"""Families for directed similarities, which distinguish ``k(x, z)`` from ``k(z, x)``.

A *row* of an item holds its comparisons out to all training items and back from them; if back is not known, the same
families work on half a row. The other families of a stack work on the mean of both directions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from mercerless.asymmetric.selection import affinities
from mercerless.asymmetric.solver import two_sided_path
from mercerless.similarity.families import (
    GRIDS,
    ClassDistances,
    Comparisons,
    LinearFamily,
    Neighbors,
    Setting,
    SplitScore,
    StackFamily,
    Standardizer,
    gaussians,
    median_square,
    parameters_of,
    settings_of,
    squares_between,
    vote,
)
from mercerless.similarity.hit_families import ClippedUnits, LinearHead
from mercerless.similarity.hits import Ballots
from mercerless.similarity.landmarks import as_new_similarities
from mercerless.similarity.solver import kernel_path
from mercerless.similarity.stack import AllItems, LearnedItems, Stack
from mercerless.spectra import as_similarities


@dataclass(frozen=True)
class RowRules:
    """Grids of the families on rows.

    Chosen on the eleven sets of benchmarks/papers/directed.py and six others (two planted graphs, neighbors, scaled
    distances, attention, divergences). Ridge regression on the rows themselves, Gaussians of width .1 and, with both
    directions, the two sides of `AsymmetricRidge` brought nothing beside these.
    """

    #: Widths of Gaussians of rows, in units of one over their median squared distance.
    widths: tuple[float, ...] = (1.0,)
    #: Penalties of the side of `AsymmetricRidge`, relative to the largest singular value.
    side_penalties: tuple[float, ...] = (0.01, 0.1, 1.0)
    #: Penalties of logistic regression on shares of classes.
    share_penalties: tuple[float, ...] = (30.0, 3.0)
    #: Votes, of one in all, that pull shares of classes toward those of all items.
    share_prior: float = 0.02


ROWS = RowRules()


class DirectedRows(NamedTuple):
    """Comparisons of items out to the training items and back from them; back is None if only one way is known."""

    out: NDArray  # (m, n)
    back: NDArray | None  # (m, n)
    # offset and unit of exp(-(d - offset) / unit) if they are dissimilarities
    decay: tuple[float, float] | None

    def take(self, index: Any) -> "DirectedRows":
        """Of some items, or with ``np.ix_`` of some items to some training items."""
        back = None
        if self.back is not None:
            back = self.back[index]
        return DirectedRows(self.out[index], back, self.decay)

    def values(self) -> NDArray:
        """Both ways side by side."""
        if self.back is None:
            return self.out
        return np.hstack([self.out, self.back])

    def affinities(self) -> "DirectedRows":
        """The same, large for like items."""
        if self.decay is None:
            return self
        back = None
        if self.back is not None:
            back = affinities(self.back, self.decay)
        return DirectedRows(affinities(self.out, self.decay), back, None)


@dataclass(frozen=True, eq=False)
class DirectedComparisons(Comparisons):
    """Similarities by the mean of both directions, and both directions as they are."""

    rows: DirectedRows

    def take(self, rows: Any) -> Self:
        """Comparisons of some rows with all columns."""
        return replace(super().take(rows), rows=self.rows.take(rows))

    def select(self, rows: NDArray, columns: NDArray) -> Self:
        """Comparisons of some rows with some columns."""
        return replace(super().select(rows, columns), rows=self.rows.take(np.ix_(rows, columns)))


def with_rows(comparisons: Comparisons, rows: DirectedRows) -> DirectedComparisons:
    """Comparisons with their rows of both directions."""
    return DirectedComparisons(
        comparisons.similarities, comparisons.row_diagonal, comparisons.column_diagonal, rows
    )


class RowFamily(LinearFamily):
    """Kernel ridge regression with a kernel of rows; a column carries its item's weight, as if it was repeated."""

    def fit(self, train: Any, targets: NDArray, weight: NDArray) -> Self:
        return super().fit(train, targets, weight / weight.mean())

    def column_weight(self, width: int) -> NDArray:
        """Weights of the columns of rows."""
        return np.tile(self.weight, width // len(self.weight))

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        return kernel_path(features, self.targets, parameters_of(settings), self.weight)


class StandardizedRows(RowFamily):
    """Kernel ridge regression with Gaussians of standardized rows."""

    standardize: Standardizer
    profiles: NDArray  # (n, n or 2 n), rows of the training items
    unit: float  # their median squared distance

    def __init__(self) -> None:
        super().__init__(settings_of("row_profiles", GRIDS.profile_penalties, ROWS.widths))

    def learn_base(self, train: DirectedComparisons) -> NDArray:
        values = train.rows.values()
        self.standardize = Standardizer.of_items(values, self.weight)
        self.profiles = self.standardize(values)
        squares = squares_between(self.profiles, self.profiles)
        self.unit = median_square(squares)
        return squares

    def base(self, comparisons: DirectedComparisons) -> NDArray:
        """Squared distances of standardized rows."""
        return squares_between(self.standardize(comparisons.rows.values()), self.profiles)

    def features(self, base: NDArray, width: float) -> NDArray:
        return gaussians(base, width / self.unit)


def without_rounding(kernel: NDArray) -> NDArray:
    """The kernel, or zeros if it is constant up to rounding: centering must leave nothing."""
    if np.ptp(kernel) > 1e-10 * np.abs(kernel).max():
        return kernel
    return np.zeros_like(kernel)


class RowCosines(RowFamily):
    """Ridge regression with the cosine of rows, and votes of the items of largest cosine."""

    directions: NDArray  # (n, n or 2 n), rows of length one

    def __init__(self) -> None:
        linear = settings_of("row_cosines", GRIDS.feature_penalties)
        super().__init__((*linear, *settings_of("row_neighbors", GRIDS.neighbors)))

    def by_width(self):
        linear = tuple(s for s in self.settings if s.family == "row_cosines")
        if linear:
            yield 0.0, linear

    def learn_base(self, train: DirectedComparisons) -> NDArray:
        self.directions = self._directions(train)
        return self.directions @ self.directions.T

    def _directions(self, comparisons: DirectedComparisons) -> NDArray:
        """Rows of length one, so that inner products are cosines; rows of zeros stay."""
        values = comparisons.rows.affinities().values()
        values = values * np.sqrt(self.column_weight(values.shape[1]))
        length = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
        return np.divide(values, length, out=np.zeros_like(values), where=length > 0.0)

    def base(self, comparisons: DirectedComparisons) -> NDArray:
        return self._directions(comparisons) @ self.directions.T

    def features(self, base: NDArray, width: float) -> NDArray:
        return without_rounding(base)

    def scores(self, new: DirectedComparisons) -> NDArray:
        cosines = self.base(new)
        voting = [s for s in self.settings if s.family == "row_neighbors"]
        scores = [model.scores(self.features(cosines, 0.0)) for model in self.models]
        if voting:
            scores.append(vote(1.0 - cosines, self.targets, voting, self.weight))
        return np.concatenate(scores)


class Side(RowFamily):
    """The regressor of `AsymmetricRidge` on affinities out to the training items, for rows of this direction only."""

    def __init__(self) -> None:
        super().__init__(settings_of("left", ROWS.side_penalties))

    def base(self, comparisons: DirectedComparisons) -> NDArray:
        return comparisons.rows.affinities().out

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        return two_sided_path(features, self.targets, parameters_of(settings), self.weight)


class ClassShares(StackFamily):
    """Logistic regression on the classes' shares among the items an item leads to, after one and after two steps.

    Steps go out to other items or back from them, in proportion to positive affinities. Two steps never return to the
    item itself. Numbers have means in place of shares, and ridge regressions.
    """

    ballots: Ballots
    after: tuple[
        NDArray, NDArray
    ]  # votes (n, q + 1) of every training item for a second step out, and back
    units: ClippedUnits
    head: LinearHead

    def __init__(self, classify: bool):
        super().__init__(settings_of("class_shares", ROWS.share_penalties))
        self.classify = classify

    def _learn(self, train: DirectedComparisons) -> None:
        weight = self.weight / self.weight.mean()
        targets = self.targets
        if self.classify:
            targets = (targets > 0.0).astype(float)
        self.ballots = Ballots.of(targets, weight, self.classify)
        affinities_out = train.rows.affinities().out.copy()
        np.fill_diagonal(affinities_out, 0.0)
        out = transitions(affinities_out)
        back = transitions(affinities_out.T)
        self.after = (self.ballots.count(out), self.ballots.count(back))
        first_steps = [out]
        if train.rows.back is not None:
            first_steps.append(back)
        features = []
        for step in first_steps:
            features.append(self._scores(self.ballots.count(step)))
            for second, after in zip((out, back), self.after):
                returning = np.einsum("ij,ji->i", step, second)
                votes = step @ after - returning[:, None] * self.ballots.sums
                features.append(self._scores(votes))
        columns = np.hstack(features)
        self.units = ClippedUnits(columns, weight)
        self.head = LinearHead("class_shares", tuple(parameters_of(self.settings)), self.classify)
        self.head.fit(self.units(columns), targets, weight)

    def _scores(self, votes: NDArray) -> NDArray:
        """Shares of classes, or means; votes that are only rounding count as 0."""
        if self.classify:
            votes = np.maximum(votes, 0.0)
        return self.ballots.scores(votes, ROWS.share_prior)

    def scores(self, new: DirectedComparisons) -> NDArray:
        rows = new.rows.affinities()
        first_steps = [transitions(rows.out)]
        if rows.back is not None:
            first_steps.append(transitions(rows.back))
        features = []
        for step in first_steps:
            features.append(self._scores(self.ballots.count(step)))
            for after in self.after:
                features.append(self._scores(step @ after))
        return self.head.scores(self.units(np.hstack(features)))

    def split(self, known: Any, new: Any) -> list[Any]:
        """All is base: scores of two steps are no sums over items."""
        nothing = np.zeros((len(new), len(self.targets)))
        effects = np.zeros(self.targets.shape)
        return [SplitScore(nothing, effects, scores) for scores in self.scores(new)]


def transitions(affinities: NDArray) -> NDArray:
    """Probabilities of steps to the columns, in proportion to positive affinities; rows without any stay 0."""
    positive = np.maximum(affinities, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    return np.divide(positive, total, out=np.zeros_like(positive), where=total > 0.0)


def row_families(both_ways: bool, classify: bool = True) -> tuple[StackFamily, ...]:
    """The families on rows; without the way back, also one of the two sides."""
    families: list[StackFamily] = [StandardizedRows(), RowCosines(), ClassShares(classify)]
    if not both_ways:
        families.append(Side())
    return tuple(families)


def one_way_families(classify: bool) -> tuple[StackFamily, ...]:
    """The families for rows of one direction: those on rows, and votes by the distances between rows."""
    families = [*row_families(both_ways=False, classify=classify), Neighbors()]
    if classify:
        families.append(ClassDistances())
    return tuple(families)


@dataclass(frozen=True)
class OneWayItems(AllItems):
    """Rows of one direction of all training items, whose mean with the other direction is not known."""

    def learn(self, targets: NDArray, weight: NDArray, classify: bool) -> LearnedItems:
        """Families on rows compete; there are no others."""
        return LearnedItems(one_way_families(classify), (), self, targets, weight)


class RowProfiles(NamedTuple):
    """Standardized rows of training items of a directed matrix, which new rows of one direction are compared with."""

    mean: NDArray
    scale: NDArray
    rows: NDArray

    def similarities(self, new: NDArray | None = None) -> NDArray:
        """``-|p - q|^2 / 2`` of new or of the training rows, so that a stack's distances are those of the profiles."""
        profiles = self.rows if new is None else (new - self.mean) / self.scale
        return -0.5 * euclidean_distances(profiles, self.rows, squared=True)


def row_profiles(rows: NDArray) -> RowProfiles:
    """Rows with every column standardized; constant columns do not count."""
    mean = rows.mean(axis=0)
    scale = rows.std(axis=0)
    scale = np.where(scale > 1e-13 * np.abs(mean), scale, np.inf)
    return RowProfiles(mean, scale, (rows - mean) / scale)


class OneWay(NamedTuple):
    """A stack for rows of one direction, on their distances to the training rows if there are profiles of these."""

    stack: Stack
    kind: str
    constant: float | None  # the rows' own similarity
    profiles: RowProfiles | None
    rows: DirectedRows | None  # empty, with the decay, if the stack has families on rows

    def __call__(self, rows: NDArray, diagonal: NDArray | None = None) -> NDArray:
        """Predictions for new rows, with their own similarities if these are known."""
        if self.rows is not None:
            rows = rows.astype(np.float64)
        if self.profiles is None:
            K = as_new_similarities(rows, self.kind)
        else:
            K = self.profiles.similarities(rows)
        is_usual = diagonal is None or self.profiles is not None
        if is_usual and self.constant is not None:
            diagonal = np.full(len(K), self.constant)
        new = Comparisons(K, diagonal, self.stack.members.diagonal)
        if self.rows is not None:
            new = with_rows(new, self.rows._replace(out=rows))
        return self.stack(new)


@dataclass(frozen=True, eq=False)
class OneDirection:
    """A directed training matrix, for new items whose other direction is not given."""

    matrix: NDArray
    mean: Comparisons  # of both directions
    kind: str
    constant: float | None  # the items' own similarity if it is the same for all
    rows: DirectedRows | None  # both directions, if there are families on rows

    def fit(self, fit: Callable[[AllItems], Stack], fold_of: NDArray) -> OneWay:
        """The stack for rows of one direction.

        If there are families on rows, it learns from rows of one direction and the distances between them. Otherwise
        a stack on the mean of both directions and one on the distances between rows compete, and the better one on
        held-out rows of one direction is used.
        """
        profiles = row_profiles(self.matrix)
        profiled = Comparisons.of(profiles.similarities())
        if self.rows is not None:
            one_way = self.rows._replace(back=None)
            comparisons = with_rows(profiled, one_way)
            stack = fit(OneWayItems(comparisons, fold_of))
            return OneWay(stack, self.kind, 0.0, profiles, one_way._replace(out=np.empty(0)))
        held_out = replace(self.mean, similarities=as_similarities(self.matrix, self.kind))
        on_mean = fit(AllItems(self.mean, fold_of, held_out))
        on_profiles = fit(AllItems(profiled, fold_of))
        figures = [stack.average.family_scores["stack"] for stack in (on_mean, on_profiles)]
        loss = "log_loss" if "log_loss" in figures[0] else "mse"
        first, second = (figure[loss] for figure in figures)
        if first <= second:
            return OneWay(on_mean, self.kind, self.constant, None, None)
        return OneWay(on_profiles, self.kind, 0.0, profiles, None)
