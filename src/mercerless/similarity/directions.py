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
    Comparisons,
    LinearFamily,
    Setting,
    StackFamily,
    Standardizer,
    gaussians,
    median_square,
    parameters_of,
    settings_of,
    squares_between,
    vote,
)
from mercerless.similarity.landmarks import as_new_similarities
from mercerless.similarity.solver import kernel_path
from mercerless.similarity.stack import AllItems, Stack
from mercerless.spectra import as_similarities


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
    """Ridge regression on standardized rows, and with Gaussians of them."""

    standardize: Standardizer
    profiles: NDArray  # (n, n or 2 n), rows of the training items
    unit: float  # their median squared distance

    def __init__(self) -> None:
        linear = settings_of("row_features", GRIDS.feature_penalties)
        gaussian = settings_of("row_profiles", GRIDS.profile_penalties, GRIDS.profile_widths)
        super().__init__((*linear, *gaussian))

    def learn_base(self, train: DirectedComparisons) -> tuple[NDArray, NDArray]:
        values = train.rows.values()
        self.standardize = Standardizer.of_items(values, self.weight)
        self.profiles = self.standardize(values)
        base = self.base(train)
        self.unit = median_square(base[1])
        return base

    def base(self, comparisons: DirectedComparisons) -> tuple[NDArray, NDArray]:
        """Inner products of standardized rows, and their squared distances."""
        rows = self.standardize(comparisons.rows.values())
        inner = rows @ self.profiles.T
        return inner, squares_between(rows, self.profiles, inner)

    def features(self, base: tuple[NDArray, NDArray], width: float) -> NDArray:
        inner, squares = base
        if width == 0.0:
            return without_rounding(inner)
        return gaussians(squares, width / self.unit)


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
        return self.base(train)

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
    """One of the two regressors of `AsymmetricRidge`: on affinities out to the training items, or back from them."""

    def __init__(self, name: str):
        self.name = name
        super().__init__(settings_of(name, GRIDS.side_penalties))

    def learn_base(self, train: DirectedComparisons) -> NDArray:
        out = train.rows.affinities().out
        return out if self.name == "left" else out.T

    def base(self, comparisons: DirectedComparisons) -> NDArray | None:
        rows = comparisons.rows.affinities()
        return rows.out if self.name == "left" else rows.back

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        return two_sided_path(features, self.targets, parameters_of(settings), self.weight)


def row_families(both_ways: bool) -> tuple[StackFamily, ...]:
    """The families on rows; without the way back there is one side only."""
    families: list[StackFamily] = [StandardizedRows(), RowCosines(), Side("left")]
    if both_ways:
        families.append(Side("right"))
    return tuple(families)


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

    def __call__(self, rows: NDArray) -> NDArray:
        """Predictions for new rows."""
        if self.rows is not None:
            rows = rows.astype(np.float64)
        if self.profiles is None:
            K = as_new_similarities(rows, self.kind)
        else:
            K = self.profiles.similarities(rows)
        diagonal = None
        if self.constant is not None:
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

        It learns from the distances between standardized rows, with families on rows of one direction if there are
        families on rows. Otherwise a stack that learns from the mean of both directions competes, and the better one
        on held-out rows of one direction is used.
        """
        profiles = row_profiles(self.matrix)
        profiled = Comparisons.of(profiles.similarities())
        if self.rows is not None:
            one_way = self.rows._replace(back=None)
            comparisons = with_rows(profiled, one_way)
            source = AllItems(comparisons, fold_of, row_families=row_families(both_ways=False))
            return OneWay(fit(source), self.kind, 0.0, profiles, one_way._replace(out=np.empty(0)))
        held_out = replace(self.mean, similarities=as_similarities(self.matrix, self.kind))
        on_mean = fit(AllItems(self.mean, fold_of, held_out))
        on_profiles = fit(AllItems(profiled, fold_of))
        figures = [stack.average.family_scores["stack"] for stack in (on_mean, on_profiles)]
        loss = "log_loss" if "log_loss" in figures[0] else "mse"
        first, second = (figure[loss] for figure in figures)
        if first <= second:
            return OneWay(on_mean, self.kind, self.constant, None, None)
        return OneWay(on_profiles, self.kind, 0.0, profiles, None)
