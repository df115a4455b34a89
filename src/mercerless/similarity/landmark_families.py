"""The learners on comparisons with landmarks, one small class per family.

All features of a row of comparisons are the same in every fold. Families that are linear in features are solved from
sums of their products over the rows of all folds but one (`Sums`); votes leave out the items of the fold.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpstrf

from mercerless.similarity.families import (
    GRIDS,
    ClassDistances,
    Comparisons,
    LinearFamily,
    LinearModel,
    Neighbors,
    Setting,
    SplitScore,
    Standardizer,
    gaussians,
    median_square,
    parameters_of,
    settings_of,
    spectral_settings,
    squares_between,
    vote,
)
from mercerless.similarity.solver import landmark_path, ridge_path


@dataclass(frozen=True)
class LandmarkRules:
    """How features of comparisons with landmarks are made, and how much memory they may take."""

    #: Widths of Gaussians of distances to landmarks, in units of one over their median square. Twice as many widths,
    #: and further penalties, took 37 % more time on 16 sets for a log-loss of .3300 instead of .3304.
    widths: tuple[float, ...] = (1.0, 3.0)
    #: Widths of Gaussians of profiles at points.
    profile_widths: tuple[float, ...] = (0.3, 1.0)
    #: Widths of Gaussians in the coordinates of the landmarks' spectrum.
    embedding_widths: tuple[float, ...] = (1.0, 3.0)
    #: Penalties of ridge regression on the spectrum of the landmarks.
    spectral_penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    #: Penalties of ridge regression on distances to landmarks and on their Gaussians.
    feature_penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    #: Numbers of points with the nearest profiles that vote.
    profile_neighbors: tuple[int, ...] = (1, 3, 9, 15)
    #: Eigenvalues of the landmarks' matrix, relative to the largest, that are not inverted.
    negligible: float = 1e-2
    #: Residual of a Gaussian, whose own value is 1, by which some rows may fail to span the others.
    residual: float = 1e-8
    #: Bytes for a number in the sums of five folds, twice, and of all rows.
    fold_bytes: float = 88.0
    #: Bytes for an out-of-fold prediction by a hundred settings, with the work space of their calibration.
    judged_bytes: float = 6000.0
    #: Widths of the small stack that shows the gain of more landmarks.
    curve_widths: tuple[float, ...] = (0.0, 0.3, 1.0)
    #: Rows and points of that small stack.
    curve_rows: int = 1000
    curve_points: int = 200


LIMITS = LandmarkRules()


class LandmarkSpectrum(NamedTuple):
    """The spectrum of the landmarks' own centered matrix, which turns a row's similarities into coordinates."""

    columns: NDArray  # (k,), the landmarks that are training items
    shift: NDArray  # (k,), their column means minus the mean of all
    values: NDArray  # (rank,)
    vectors: NDArray  # (k, rank)

    def centered(self, similarities: NDArray) -> NDArray:
        """Similarities to the landmarks, centered as their own matrix is."""
        chosen = similarities[:, self.columns]
        return chosen - chosen.mean(axis=1, keepdims=True) - self.shift

    def __call__(self, similarities: NDArray) -> NDArray:
        """Coordinates, times the eigenvalues."""
        return self.centered(similarities) @ self.vectors


@dataclass(frozen=True, eq=False)
class TwoWayComparisons(Comparisons):
    """Similarities to landmarks by the mean of both directions, and both directions as they are."""

    both_ways: NDArray  # (n, 2 m), out to the landmarks and back from them

    def take(self, rows: Any) -> Self:
        """Comparisons of some rows with all columns."""
        return replace(super().take(rows), both_ways=self.both_ways[rows])


class Points(NamedTuple):
    """Comparisons of the points, at which Gaussians are placed, with the landmarks."""

    similarities: NDArray
    row_diagonal: NDArray | None
    column_diagonal: NDArray
    both_ways: NDArray | None = None  # of directed comparisons

    @classmethod
    def of(cls, comparisons: Comparisons) -> Self:
        """The part of comparisons that is kept."""
        both_ways = None
        if isinstance(comparisons, TwoWayComparisons):
            both_ways = comparisons.both_ways
        return cls(
            comparisons.similarities,
            comparisons.row_diagonal,
            comparisons.column_diagonal,
            both_ways,
        )

    def comparisons(self) -> Comparisons:
        """The same, with distances on demand, which are not kept."""
        if self.both_ways is None:
            return Comparisons(*self[:3])
        return TwoWayComparisons(
            self.similarities, self.row_diagonal, self.column_diagonal, self.both_ways
        )


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows (all, if there are not too many) from which features take their units."""

    comparisons: Comparisons
    weight: NDArray
    rows: NDArray  # positions among the items, ascending
    landmarks: NDArray  # positions of the columns among the items, or -1
    points: NDArray  # positions within the sample at which Gaussians are placed

    @property
    def positions(self) -> NDArray:
        """Positions of the points among the items."""
        return self.rows[self.points]

    @cached_property
    def at_points(self) -> Points:
        """The comparisons of the points."""
        return Points.of(self.comparisons.take(self.points))

    @cached_property
    def unit(self) -> float:
        """Median squared distance between different items."""
        return median_square(self.comparisons.squares, self.rows[:, None] != self.landmarks)

    @cached_property
    def distances(self) -> Standardizer:
        """Standardizes distances."""
        return Standardizer.fit(self.comparisons.distances, self.weight, self.weight.sum())

    @cached_property
    def similarities(self) -> Standardizer:
        """Standardizes similarities."""
        return Standardizer.fit(self.comparisons.similarities, self.weight, self.weight.sum())

    @cached_property
    def both_ways(self) -> Standardizer:
        """Standardizes directed comparisons."""
        assert isinstance(self.comparisons, TwoWayComparisons)
        return Standardizer.fit(self.comparisons.both_ways, self.weight, self.weight.sum())

    @cached_property
    def spectrum(self) -> LandmarkSpectrum | None:
        """The spectrum of the landmarks that are among the rows; None if fewer than two are."""
        columns = np.flatnonzero(np.isin(self.landmarks, self.rows))
        if len(columns) < 2:
            return None
        rows = np.searchsorted(self.rows, self.landmarks[columns])
        W = self.comparisons.similarities[np.ix_(rows, columns)]
        W = (W + W.T) / 2.0
        shift = W.mean(axis=0) - W.mean()
        centered = W - W.mean(axis=1, keepdims=True) - shift
        values, vectors = eigh(centered, driver="evd", check_finite=False)
        smallest = max(LIMITS.negligible * np.abs(values).max(), 1e-13 * np.abs(W).max())
        kept = np.abs(values) > smallest
        return LandmarkSpectrum(columns, shift, values[kept], vectors[:, kept])


class Places(NamedTuple):
    """Where landmarks and points lie among the training rows, and which of these are named in explanations."""

    landmarks: NDArray  # training rows of the landmarks, -1 if they are none
    points: NDArray  # training rows of the points
    items: NDArray  # training rows that are named, ascending

    def put(self, matrix: NDArray, effects: NDArray, centers: NDArray) -> tuple[NDArray, NDArray]:
        """Weights and effects in the columns of the items; centers that are no training rows are left out."""
        is_known = centers >= 0
        places = np.searchsorted(self.items, centers[is_known])
        wide = np.zeros((len(matrix), len(self.items)))
        of_items = np.zeros((len(self.items), effects.shape[1]))
        wide[:, places] = matrix[:, is_known]
        of_items[places] = effects[is_known]
        return wide, of_items

    def split(
        self, matrix: NDArray, effects: NDArray, centers: NDArray, scores: NDArray
    ) -> SplitScore:
        """Scores split among the items; the base is the remainder."""
        weights, of_items = self.put(matrix, effects, centers)
        return SplitScore(weights, of_items, scores - weights @ of_items)


class Products(NamedTuple):
    """Weighted sums of features, of their products, and of their products with the targets, by fold."""

    first: NDArray  # (n_folds, p)
    second: NDArray  # (n_folds, p, p)
    cross: NDArray  # (n_folds, p, q)

    def without(self, fold: int | None) -> "Products":
        """The sums over all folds, or over all but one."""
        return Products(*(_without(by_fold, fold) for by_fold in self))


def _without(by_fold: NDArray, fold: int | None) -> NDArray:
    """The sum over the folds, or over all but one."""
    others = [part for number, part in enumerate(by_fold) if number != fold]
    if not others:
        return np.zeros_like(by_fold[0])
    total = others[0].copy()
    for part in others[1:]:
        total += part
    return total


@dataclass(frozen=True, eq=False)
class Sums:
    """Weighted sums of products of features and targets, by fold."""

    weight: NDArray  # (n_folds,)
    target: NDArray  # (n_folds, q)
    products: dict[tuple[str, float], Products]  # by the name of the family and the width

    def __add__(self, other: "Sums") -> "Sums":
        products = {
            key: Products(*(a + b for a, b in zip(mine, other.products[key])))
            for key, mine in self.products.items()
        }
        return Sums(self.weight + other.weight, self.target + other.target, products)

    def weight_without(self, fold: int | None) -> float:
        """The weight of all folds, or of all but one."""
        return float(_without(self.weight[:, None], fold)[0])

    def target_without(self, fold: int | None) -> NDArray:
        """The sums of the targets over the same folds."""
        return _without(self.target, fold)


class SummedFamily(LinearFamily):
    """Linear in features that are the same for every fold, and solved from sums of their products over rows."""

    name: str

    def learn(self, sample: Sample) -> Self:
        """The family with the units of its features."""
        learned = copy(self)
        learned._learn_units(sample)
        return learned

    def _learn_units(self, sample: Sample) -> None:
        """Set the units of the features."""

    def predicting(self) -> Self:
        """The fitted family with only those attributes that predictions need."""
        return self

    def summed_features(self, base: Any, width: float) -> NDArray:
        """The features whose products are summed."""
        return self.features(base, width)

    def n_features(self, width: float, n_landmarks: int) -> int:
        """The number of features."""
        return n_landmarks

    def solve_sums(
        self, gram: NDArray, cross: NDArray, settings: Sequence[Setting], width: float
    ) -> NDArray:
        """Coefficients of the summed features from their centered products."""
        return ridge_path(gram, cross, parameters_of(settings))

    def restored(self, coef: NDArray, width: float) -> NDArray:
        """Coefficients of the features as they are, from those of the summed ones."""
        return coef

    def solve_all(
        self, sums: Sums, left_out: int | None, outputs: slice
    ) -> tuple[LinearModel, ...]:
        """The models of all widths from the sums of all folds but one, for some columns of the targets."""
        n = sums.weight_without(left_out)
        mean = sums.target_without(left_out)[outputs] / n
        models = []
        for width, settings in self.by_width():
            products = sums.products[self.name, width].without(left_out)
            center = products.first / n
            gram = products.second - np.outer(products.first, center)
            cross = products.cross[:, outputs] - np.outer(products.first, mean)
            coef = self.solve_sums(gram, cross, settings, width)
            intercept = mean - np.tensordot(center, coef, 1)
            models.append(LinearModel(settings, self.restored(coef, width), intercept))
        return tuple(models)

    def centers(self, places: Places, width: float) -> NDArray:
        """The training rows that the features belong to."""
        return places.landmarks

    def split(self, known: Any, new: Any) -> list[Any]:
        """A center adds its coefficient times its feature minus the mean over all centers."""
        base = self.base(new)
        parts = []
        for (width, _), model in zip(self.by_width(), self.models):
            features = self.features(base, width)
            centered = features - features.mean(axis=1, keepdims=True)
            centers = self.centers(known, width)
            for scores, coef in zip(model.scores(features), np.moveaxis(model.coef, 1, 0)):
                parts.append(known.split(centered, coef, centers, scores))
        return parts

    def item_sizes(self) -> Iterator[tuple[Setting, NDArray]]:
        return iter(())


class LandmarkSpectral(SummedFamily):
    """Ridge regression on the spectrum of the landmarks, extended to all items: clipped, flipped or squared."""

    name = "similarity"
    spectrum: LandmarkSpectrum

    def __init__(self) -> None:
        super().__init__(spectral_settings(LIMITS.spectral_penalties))

    def _learn_units(self, sample: Sample) -> None:
        assert sample.spectrum is not None
        self.spectrum = sample.spectrum

    def base(self, comparisons: Comparisons) -> NDArray:
        return self.spectrum(comparisons.similarities)

    def solve_sums(
        self, gram: NDArray, cross: NDArray, settings: Sequence[Setting], width: float
    ) -> NDArray:
        return landmark_path(gram, cross, self.spectrum.values, settings)

    def split(self, known: Any, new: Any) -> list[Any]:
        centered = self.spectrum.centered(new.similarities)
        centers = known.landmarks[self.spectrum.columns]
        (model,) = self.models
        coefs = np.tensordot(self.spectrum.vectors, model.coef, 1)
        parts = []
        for scores, coef in zip(self.scores(new), np.moveaxis(coefs, 1, 0)):
            parts.append(known.split(centered, coef, centers, scores))
        return parts


class LandmarkFeatures(SummedFamily):
    """Ridge regression on the standardized distances to the landmarks."""

    name = "features"
    needs_diagonal = True
    standardize: Standardizer

    def __init__(self) -> None:
        super().__init__(settings_of("features", LIMITS.feature_penalties))

    def _learn_units(self, sample: Sample) -> None:
        self.standardize = sample.distances

    def base(self, comparisons: Comparisons) -> NDArray:
        return self.standardize(comparisons.distances)


class LandmarkGaussians(SummedFamily):
    """Ridge regression on Gaussians of the distances to the landmarks."""

    name = "gaussian"
    needs_diagonal = True
    unit: float  # the median squared distance

    def __init__(self) -> None:
        super().__init__(settings_of("gaussian", LIMITS.feature_penalties, LIMITS.widths))

    def _learn_units(self, sample: Sample) -> None:
        self.unit = sample.unit

    def base(self, comparisons: Comparisons) -> NDArray:
        return comparisons.squares

    def features(self, base: NDArray, width: float) -> NDArray:
        return gaussians(base, width / self.unit)


class Span(NamedTuple):
    """Points whose Gaussians of one width span those of the others, and the Cholesky triangle of their matrix."""

    columns: NDArray
    triangle: NDArray | None  # None once the coefficients are known: predictions do without it

    @classmethod
    def of(cls, K: NDArray) -> "Span":
        """The rows of a Gaussian matrix that span the others."""
        factor, order, rank, _ = dpstrf(K, tol=LIMITS.residual, lower=1)
        return cls(order[:rank] - 1, np.tril(factor[:rank, :rank]))

    def solve(self, values: NDArray, transposed: bool = False) -> NDArray:
        """The triangle's inverse, or that of its transpose, times values."""
        trans = "T" if transposed else "N"
        return solve_triangular(self.triangle, values, lower=True, trans=trans, check_finite=False)


class PointFamily(SummedFamily):
    """Ridge regression with Gaussians at some training rows, the points, in coordinates of the comparisons."""

    points: Points  # one object for all families, so that a model keeps it once
    unit: float  # the median squared distance between the points
    spans: dict[float, Span]

    def coordinates(self, comparisons: Comparisons) -> NDArray:
        """Rows in which the Gaussians are placed."""
        raise NotImplementedError

    def place(self, sample: Sample) -> None:
        """Place the Gaussians, once the coordinates are known."""
        self.points = sample.at_points
        squares = squares_between(self.at_points, self.at_points)
        self.unit = median_square(squares)
        widths = [width for width, _ in self.by_width()]
        self.spans = {width: Span.of(gaussians(squares, width / self.unit)) for width in widths}

    def predicting(self) -> Self:
        kept = copy(self)
        kept.spans = {
            width: self.spans[width]._replace(triangle=None) for width, _ in self.by_width()
        }
        return kept

    @cached_property
    def at_points(self) -> NDArray:
        """Coordinates of the points (r, p), which are computed again after a model was saved."""
        return self.coordinates(self.points.comparisons())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "at_points"}

    def base(self, comparisons: Comparisons) -> NDArray:
        return squares_between(self.coordinates(comparisons), self.at_points)

    def features(self, base: NDArray, width: float) -> NDArray:
        return gaussians(base[:, self.spans[width].columns], width / self.unit)

    def summed_features(self, base: NDArray, width: float) -> NDArray:
        """Gaussians as orthonormal functions of their space."""
        return self.spans[width].solve(self.features(base, width).T).T

    def n_features(self, width: float, n_landmarks: int) -> int:
        return len(self.spans[width].columns)

    def restored(self, coef: NDArray, width: float) -> NDArray:
        flat = coef.reshape(len(coef), -1)
        return self.spans[width].solve(flat, transposed=True).reshape(-1, *coef.shape[1:])

    def centers(self, places: Places, width: float) -> NDArray:
        return places.points[self.spans[width].columns]


class Embedding(PointFamily):
    """Gaussians in the positive axes of the landmarks' spectrum."""

    name = "embedding"
    spectrum: LandmarkSpectrum

    def __init__(self) -> None:
        penalties = GRIDS.profile_penalties
        super().__init__(settings_of("embedding", penalties, LIMITS.embedding_widths))

    def _learn_units(self, sample: Sample) -> None:
        assert sample.spectrum is not None
        self.spectrum = sample.spectrum
        self.place(sample)

    def coordinates(self, comparisons: Comparisons) -> NDArray:
        is_positive = self.spectrum.values > 0.0
        axes = self.spectrum(comparisons.similarities)[:, is_positive]
        return axes / np.sqrt(self.spectrum.values[is_positive])


class SimilarityProfiles(PointFamily):
    """Gaussians of standardized rows of similarities."""

    name = "similarity_profiles"
    standardize: Standardizer

    def __init__(self) -> None:
        penalties = GRIDS.profile_penalties
        super().__init__(settings_of("similarity_profiles", penalties, LIMITS.profile_widths))

    def _learn_units(self, sample: Sample) -> None:
        self.standardize = sample.similarities
        self.place(sample)

    def coordinates(self, comparisons: Comparisons) -> NDArray:
        return self.standardize(comparisons.similarities)


class Voters(NamedTuple):
    """Labeled items among the landmarks or the points."""

    columns: NDArray
    targets: NDArray
    weight: NDArray

    def split(
        self, ranks: NDArray, setting: Setting, centers: NDArray, places: Places, scores: NDArray
    ) -> SplitScore:
        """Votes as sums over the voters: each adds the difference of its target from the mean."""
        shares = vote(ranks, np.eye(len(self.columns)), [setting], self.weight)[0]
        mean = np.average(self.targets, axis=0, weights=self.weight)
        return places.split(shares, self.targets - mean, centers[self.columns], scores)


class DistanceProfiles(PointFamily):
    """Gaussians of standardized rows of distances, and votes of the points with the nearest rows."""

    name = "profiles"
    needs_diagonal = True
    votes_at = "points"
    standardize: Standardizer
    voters: Voters

    def __init__(self) -> None:
        linear = settings_of("profiles", GRIDS.profile_penalties, LIMITS.profile_widths)
        super().__init__((*linear, *settings_of("profile_neighbors", LIMITS.profile_neighbors)))

    def by_width(self) -> Iterator[tuple[float, tuple[Setting, ...]]]:
        for width, settings in super().by_width():
            if settings[0].family == "profiles":
                yield width, settings

    def _learn_units(self, sample: Sample) -> None:
        self.standardize = sample.distances
        self.place(sample)

    def coordinates(self, comparisons: Comparisons) -> NDArray:
        return self.standardize(comparisons.distances)

    @property
    def voting(self) -> list[Setting]:
        """The settings that vote."""
        return [setting for setting in self.settings if setting.family == "profile_neighbors"]

    def scores(self, new: Comparisons) -> NDArray:
        base = self.base(new)
        scores = [
            model.scores(self.features(base, width))
            for (width, _), model in zip(self.by_width(), self.models)
        ]
        if self.voting:
            scores.append(self._votes(base))
        return np.concatenate(scores)

    def _votes(self, base: NDArray) -> NDArray:
        targets = self.voters.targets
        if not len(targets):
            return np.zeros((len(self.voting), len(base), targets.shape[1]))
        return vote(base[:, self.voters.columns], targets, self.voting, self.voters.weight)

    def split(self, known: Any, new: Any) -> list[Any]:
        parts: list[Any] = super().split(known, new)
        if not self.voting:
            return parts
        if not len(self.voters.columns):
            return parts + [None] * len(self.voting)
        base = self.base(new)
        for setting, scores in zip(self.voting, self._votes(base)):
            ranks = base[:, self.voters.columns]
            parts.append(self.voters.split(ranks, setting, known.points, known, scores))
        return parts


class DirectedFeatures(SummedFamily):
    """Ridge regression on the standardized comparisons out to the landmarks and back from them."""

    name = "row_features"
    standardize: Standardizer

    def __init__(self) -> None:
        super().__init__(settings_of("row_features", LIMITS.feature_penalties))

    def _learn_units(self, sample: Sample) -> None:
        self.standardize = sample.both_ways

    def base(self, comparisons: TwoWayComparisons) -> NDArray:
        return self.standardize(comparisons.both_ways)

    def n_features(self, width: float, n_landmarks: int) -> int:
        return 2 * n_landmarks

    def split(self, known: Any, new: Any) -> list[Any]:
        """Nothing is split among the items, since each landmark has a part for every direction: all is base."""
        nothing = np.zeros((len(new), len(known.items)))
        effects = np.zeros((len(known.items), self.models[0].coef.shape[2]))
        return [SplitScore(nothing, effects, scores) for scores in self.scores(new)]


class DirectedProfiles(PointFamily):
    """Gaussians of standardized rows of both directions."""

    name = "row_profiles"
    standardize: Standardizer

    def __init__(self) -> None:
        penalties = GRIDS.profile_penalties
        super().__init__(settings_of("row_profiles", penalties, LIMITS.profile_widths))

    def _learn_units(self, sample: Sample) -> None:
        self.standardize = sample.both_ways
        self.place(sample)

    def coordinates(self, comparisons: TwoWayComparisons) -> NDArray:  # type: ignore[override]
        return self.standardize(comparisons.both_ways)


class LandmarkNeighbors(Neighbors):
    """Votes of the nearest landmarks that are training items."""

    votes_at = "landmarks"
    voters: Voters

    def learn(self, sample: Sample) -> Self:
        """The family itself: it has no units."""
        return self

    def _ranks(self, new: Comparisons) -> NDArray:
        return (new.column_diagonal - 2.0 * new.similarities)[:, self.voters.columns]

    def scores(self, new: Comparisons) -> NDArray:
        targets = self.voters.targets
        if not len(targets):
            return np.zeros((len(self.settings), len(new), targets.shape[1]))
        return vote(self._ranks(new), targets, self.settings, self.voters.weight)

    def split(self, known: Any, new: Any) -> list[Any]:
        if not len(self.voters.targets):
            return [None] * len(self.settings)
        ranks = self._ranks(new)
        parts = []
        for setting, scores in zip(self.settings, self.scores(new)):
            parts.append(self.voters.split(ranks, setting, known.landmarks, known, scores))
        return parts


class LandmarkClassDistances(ClassDistances):
    """The mean distance to the nearest landmarks of every class, or its logarithm."""

    votes_at = "landmarks"
    voters: Voters

    def learn(self, sample: Sample) -> Self:
        """The family with its unit."""
        learned = copy(self)
        learned.unit = sample.unit
        return learned

    def distances(self, new: Comparisons) -> NDArray:
        return super().distances(new)[:, self.voters.columns]

    def scores(self, new: Comparisons) -> NDArray:
        if not len(self.targets):
            return np.zeros((len(self.settings), len(new), self.targets.shape[1]))
        return super().scores(new)

    def split(self, known: Any, new: Any) -> list[Any]:
        if not len(self.targets):
            return [None] * len(self.settings)
        centers = known.landmarks[self.voters.columns]
        parts: list[Any] = []
        for part, scores in zip(super().split(known, new), self.scores(new)):
            parts.append(known.split(part.weights, part.effects, centers, scores))
        return parts


def landmark_families(classify: bool, sample: Sample) -> tuple[Any, ...]:
    """The families that compete, in the order of the settings."""
    is_labeled = sample.spectrum is not None
    families: list[Any] = []
    if is_labeled:
        families += [LandmarkSpectral(), LandmarkNeighbors(), Embedding()]
    families.append(SimilarityProfiles())
    if sample.comparisons.has_distances:
        families += [LandmarkFeatures(), LandmarkGaussians(), DistanceProfiles()]
        if classify and is_labeled:
            families.append(LandmarkClassDistances())
    if isinstance(sample.comparisons, TwoWayComparisons):
        families += [DirectedFeatures(), DirectedProfiles()]
    return tuple(families)
