"""The learners of the automatic stack on comparisons of all items, one small class per family.

A *setting* names one learner: its family and its parameter. A family is fitted on the comparisons of training items
with each other and then scores comparisons of new items, all its settings at once. What families share (squared
distances, distances, their median) is cached on the comparisons.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.memory import row_blocks
from mercerless.similarity.solver import (
    CenteredFeatures,
    class_distances,
    feature_path,
    kernel_path,
    logistic_similarities,
    main_axes,
    nearest_of_classes,
    neighbor_means,
    pair_path,
    spectral_path,
    squared_distances,
    squares_of_products,
)


@dataclass(frozen=True)
class Grids:
    """Grids of the families. Penalties are relative to the matrix they are added to."""

    #: All of them cost the same eigendecomposition.
    spectral_penalties: tuple[float, ...] = tuple(10.0**power for power in range(-5, 2))
    #: Each costs a Cholesky factorization.
    feature_penalties: tuple[float, ...] = tuple(10.0**power for power in range(-4, 0))
    #: The same for Gaussians of profiles.
    profile_penalties: tuple[float, ...] = tuple(10.0**power for power in range(-5, -1))
    #: Factors of the squared distances inside a Gaussian, in units of one over their median.
    widths: tuple[float, ...] = (3.0,)
    #: The same for Gaussians of profiles.
    profile_widths: tuple[float, ...] = (0.1, 1.0)
    #: Profiles of more items have so many main axes in the final fit: a prediction costs ``n * rank``, not ``n^2``.
    exact_profiles: int = 400
    profile_rank: int = 100
    #: Share of the profiles' variance that these axes must hold; with 71 % of it letters lost .03 of log-loss.
    profile_share: float = 0.99
    #: Penalties and width of ridge regressions for two classes each.
    pair_penalties: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    pair_width: float = 0.3
    #: For more than so many classes, and at most so many, these take part.
    pair_classes: tuple[int, int] = (10, 50)
    #: Numbers of nearest items that vote.
    neighbors: tuple[int, ...] = (1, 3, 5, 9, 15, 25)
    #: Numbers of nearest items of a class whose distances are averaged.
    class_neighbors: tuple[int, ...] = (1, 3)
    #: After which steps of gradient descent a logistic regression is used.
    logistic_steps: tuple[int, ...] = (10, 30, 80)
    #: Largest number of items for logistic regressions: for more their gain is not worth the time.
    logistic_items: int = 200
    #: Smallest distance to a class whose logarithm is taken, in units of the median: copies have none.
    smallest_distance: float = 1e-3
    #: Work space for a block of new rows: its matrices stay in the processor's cache.
    block_bytes: int = 2**25


GRIDS = Grids()
# Families that need the new item's own similarity k(x, x); the ranking of its neighbors does not.
NEED_DIAGONAL = (
    "features",
    "logistic_distances",
    "gaussian",
    "profiles",
    "class_distances",
    "profile_neighbors",
    "pairs",
)


class Setting(NamedTuple):
    """One learner of the stack.

    Attributes
    ----------
    family : str
        The name of its family, such as ``"flip"`` or ``"neighbors"``.
    parameter : float
        The number of neighbors for ``"neighbors"`` and ``"class_distances"``, that of steps for the logistic families,
        else the penalty relative to the matrix it is added to.
    width : float
        For Gaussians: the factor of the squared distances, in units of one over their median; else 0.
    log : bool
        For ``"class_distances"``: whether their logarithm is the score.
    """

    family: str
    parameter: float
    width: float = 0.0
    log: bool = False


def settings_of(
    family: str, parameters: Sequence[float], widths: Sequence[float] = (0.0,)
) -> tuple[Setting, ...]:
    """The settings of a family: every parameter with every width."""
    return tuple(Setting(family, value, width) for width in widths for value in parameters)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Similarities of items (rows) to other items (columns), and everybody's similarity to itself."""

    similarities: NDArray  # (m, n)
    # (m,), the rows' similarities to themselves; None if they are not known
    row_diagonal: NDArray | None
    column_diagonal: NDArray  # (n,)

    @classmethod
    def of(cls, K: NDArray) -> Self:
        """Comparisons of items with each other."""
        diagonal = np.diagonal(K).copy()  # a view would keep the matrix alive
        return cls(K, diagonal, diagonal)

    @classmethod
    def of_squares(cls, squares: NDArray) -> Self:
        """Comparisons that have these squared distances."""
        return cls(-0.5 * squares, np.zeros(len(squares)), np.zeros(squares.shape[1]))

    def __len__(self) -> int:
        return len(self.similarities)

    @property
    def has_distances(self) -> bool:
        """Whether the rows' own similarities are known, and so the distances."""
        return self.row_diagonal is not None

    @cached_property
    def squares(self) -> NDArray:
        """Squared distances."""
        assert self.row_diagonal is not None
        return squared_distances(self.similarities, self.row_diagonal, self.column_diagonal)

    @cached_property
    def distances(self) -> NDArray:
        """Distances."""
        return np.sqrt(self.squares)

    @cached_property
    def unit(self) -> float:
        """Median squared distance of different items, if rows and columns are the same items."""
        return median_square(self.squares)

    def profiles(self, weight: NDArray) -> CenteredFeatures:
        """Rows of standardized distances of training items, kept because several families need the same.

        A column carries its item's weight, so that weights equal repetition.
        """
        kept = self.__dict__.get("_profiles")
        if kept is None or kept[0] is not weight:
            rows = CenteredFeatures.of(self.distances, weight / weight.mean(), standardize=True)
            kept = (weight, rows)
            self.__dict__["_profiles"] = kept
        return kept[1]

    def symmetric(self) -> "Comparisons":
        """The similarities alone, without what subclasses know."""
        return Comparisons(self.similarities, self.row_diagonal, self.column_diagonal)

    def take(self, rows: Any) -> Self:
        """Comparisons of some rows with all columns."""
        diagonal = None
        if self.row_diagonal is not None:
            diagonal = self.row_diagonal[rows]
        return replace(self, similarities=self.similarities[rows], row_diagonal=diagonal)

    def take_columns(self, columns: NDArray) -> Self:
        """Comparisons of all rows with some columns."""
        return replace(
            self,
            similarities=self.similarities[:, columns],
            column_diagonal=self.column_diagonal[columns],
        )

    def select(self, rows: NDArray, columns: NDArray) -> Self:
        """Comparisons of some rows with some columns."""
        diagonal = None
        if self.row_diagonal is not None:
            diagonal = self.row_diagonal[rows]
        return replace(
            self,
            similarities=self.similarities[np.ix_(rows, columns)],
            row_diagonal=diagonal,
            column_diagonal=self.column_diagonal[columns],
        )


def median_square(squares: NDArray, different: NDArray | None = None) -> float:
    """Median between different items, those above the diagonal; if it is 0 the mean, if that is 0, one."""
    if different is None:
        items = np.arange(len(squares))
        values = squares[np.less.outer(items, items)]
    else:
        values = squares[different]
    median = np.median(values) if len(values) else 0.0
    return float(median or squares.mean() or 1.0)


class SplitScore(NamedTuple):
    """Scores of one setting for new rows, split among training items: ``weights @ effects + base``."""

    weights: NDArray  # (m, n)
    effects: NDArray  # (n, q)
    base: NDArray  # (m, q)


class StackFamily:
    """Learners that share their features; subclasses define `_learn` and `scores`, and name their settings."""

    settings: tuple[Setting, ...] = ()
    needs_diagonal = False
    targets: NDArray  # (n, q), what it was fitted on
    weight: NDArray  # (n,)

    def __init__(self, settings: Sequence[Setting] | None = None):
        if settings is not None:
            self.settings = tuple(settings)

    def keep(self, settings: Sequence[Setting]) -> Self:
        """The same family with some of its settings only."""
        family = copy(self)
        family.settings = tuple(setting for setting in self.settings if setting in settings)
        return family

    def for_predictions(self) -> Self:
        """The same family, which will be fitted so that predictions cost little."""
        return self

    def fit(self, train: Any, targets: NDArray, weight: NDArray) -> Self:
        """The family fitted on the comparisons of training items with each other."""
        fitted = copy(self)
        fitted.targets = targets
        fitted.weight = weight
        fitted._learn(train)
        return fitted

    def _learn(self, train: Any) -> None:
        """Set the attributes that `scores` uses."""

    def scores(self, new: Any) -> NDArray:
        """Scores of new rows, of shape (n_settings, m, q)."""
        raise NotImplementedError

    def split(self, known: Any, new: Any) -> list[Any]:
        """Scores of new rows as sums over the training items: here they are linear in the items' targets."""
        weights = self.fit(known, np.eye(len(self.targets)), self.weight).scores(new)
        mean = np.average(self.targets, axis=0, weights=self.weight)
        deviations = self.targets - mean
        return [SplitScore(W, deviations, W.sum(axis=1, keepdims=True) * mean) for W in weights]

    def item_sizes(self) -> Iterator[tuple[Setting, NDArray]]:
        """Sizes (n,) of the training items' coefficients for every setting that has any."""
        return iter(())


class LinearModel(NamedTuple):
    """Settings of one width that are linear in the same features."""

    settings: tuple[Setting, ...]
    coef: NDArray  # (n_features, n_settings, q)
    intercept: NDArray  # (n_settings, q)

    def scores(self, features: NDArray) -> NDArray:
        """Scores (n_settings, m, q) of rows of features."""
        return np.moveaxis(np.tensordot(features, self.coef, 1) + self.intercept, 1, 0)


class LinearFamily(StackFamily):
    """Linear in features of a row of comparisons; subclasses define the features and the solver."""

    reads = "similarities"  # the attribute of `Comparisons` that the features are made of
    models: tuple[LinearModel, ...]

    def by_width(self) -> Iterator[tuple[float, tuple[Setting, ...]]]:
        """The settings that share a width, and with it their features."""
        for width, group in groupby(self.settings, key=attrgetter("width")):
            yield width, tuple(group)

    def _learn(self, train: Any) -> None:
        base = self.learn_base(train)
        models = []
        for width, settings in self.by_width():
            features = self.features(base, width)
            models.append(LinearModel(settings, *self.solve(features, settings)))
        self.models = tuple(models)

    def learn_base(self, train: Any) -> Any:
        """The base of the training items; families that have units or scales learn them first."""
        return self.base(train)

    def base(self, comparisons: Any) -> Any:
        """The values from which the features of all widths are made."""
        return getattr(comparisons, self.reads)

    def features(self, base: Any, width: float) -> NDArray:
        """The features in which the settings of one width are linear."""
        return base

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        """Coefficients (n_features, n_settings, q) and intercepts (n_settings, q)."""
        raise NotImplementedError

    def scores(self, new: Any) -> NDArray:
        base = self.base(new)
        scores = [
            model.scores(self.features(base, width))
            for (width, _), model in zip(self.by_width(), self.models)
        ]
        return np.concatenate(scores)

    def item_sizes(self) -> Iterator[tuple[Setting, NDArray]]:
        for model in self.models:
            sizes = np.linalg.norm(model.coef, axis=2)
            yield from zip(model.settings, sizes.T)


def parameters_of(settings: Sequence[Setting]) -> list[float]:
    """Penalties, numbers of steps or of neighbors."""
    return [setting.parameter for setting in settings]


def spectral_settings(penalties: Sequence[float]) -> tuple[Setting, ...]:
    """The settings of the three ways to use negative eigenvalues."""
    repairs = ("clip", "flip", "square")
    return tuple(Setting(name, penalty) for name in repairs for penalty in penalties)


class Spectral(LinearFamily):
    """Ridge regression with the negative eigenvalues clipped or flipped, or all of them squared."""

    settings = spectral_settings(GRIDS.spectral_penalties)

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        return spectral_path(features, self.targets, settings, self.weight)


class LogisticFamily(LinearFamily):
    """Logistic regression, stopped early: its coefficients belong to the columns, and are not linear in the targets."""

    def split(self, known: Any, new: Any) -> list[Any]:
        base = self.base(new)
        centered = base - base.mean(axis=1, keepdims=True)
        (model,) = self.models
        parts = []
        for scores, coef in zip(self.scores(new), np.moveaxis(model.coef, 1, 0)):
            parts.append(SplitScore(centered, coef, scores - centered @ coef))
        return parts


class LogisticSimilarities(LogisticFamily):
    """Logistic regression on the centered similarities, stopped early."""

    settings = settings_of("logistic_similarities", GRIDS.logistic_steps)

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        steps = parameters_of(settings)
        return logistic_similarities(features, self.targets, steps, self.weight)


class LogisticDistances(LogisticFamily):
    """Logistic regression on the standardized distances, stopped early."""

    needs_diagonal = True
    reads = "distances"

    settings = settings_of("logistic_distances", GRIDS.logistic_steps)

    def _learn(self, train: Comparisons) -> None:
        rows = train.profiles(self.weight)
        coef, intercept = rows.logistic_path(self.targets, parameters_of(self.settings))
        self.models = (LinearModel(self.settings, coef, intercept),)


class DistanceFeatures(LinearFamily):
    """Ridge regression on the standardized distances to the training items."""

    needs_diagonal = True
    reads = "distances"

    settings = settings_of("features", GRIDS.feature_penalties)

    def _learn(self, train: Comparisons) -> None:
        rows = train.profiles(self.weight)
        coef, intercept = rows.ridge_path(self.targets, parameters_of(self.settings))
        self.models = (LinearModel(self.settings, coef, intercept),)


def gaussians(squares: NDArray, factor: float) -> NDArray:
    """``exp(-factor * squares)``."""
    values = squares * -factor
    return np.exp(values, out=values)


class Gaussians(LinearFamily):
    """Ridge regression on Gaussians of the distances to the training items."""

    needs_diagonal = True
    reads = "squares"
    unit: float  # the median squared distance

    settings = settings_of("gaussian", GRIDS.feature_penalties, GRIDS.widths)

    def learn_base(self, train: Comparisons) -> NDArray:
        self.unit = train.unit
        return self.base(train)

    def features(self, base: NDArray, width: float) -> NDArray:
        return gaussians(base, width / self.unit)

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        return feature_path(features, self.targets, parameters_of(settings), self.weight)


class Standardizer(NamedTuple):
    """Columns with mean 0 and standard deviation 1, times a factor; constant columns become 0."""

    mean: NDArray
    factor: NDArray

    @classmethod
    def fit(cls, A: NDArray, weight: NDArray, total: float, size: Any = 1.0) -> Self:
        """Weighted means and deviations; `total` is the sum of the weights, `size` multiplies the columns."""
        mean = weight @ A / total
        spread = np.sqrt(weight @ (A - mean) ** 2 / total)
        is_constant = spread <= 1e-13 * np.abs(mean)
        return cls(mean, np.where(is_constant, 0.0, size / np.where(is_constant, 1.0, spread)))

    @classmethod
    def of_items(cls, A: NDArray, weight: NDArray) -> Self:
        """The same for weights of mean one, where columns belong to the items and carry their weights."""
        column_weight = np.tile(weight, A.shape[1] // len(weight))
        return cls.fit(A, weight, len(A), np.sqrt(column_weight))

    def __call__(self, A: NDArray) -> NDArray:
        """Standardized columns."""
        return (A - self.mean) * self.factor


def squares_of(A: NDArray) -> NDArray:
    """Squared lengths of rows."""
    return np.einsum("ij,ij->i", A, A)


def squares_between(A: NDArray, B: NDArray) -> NDArray:
    """Squared distances between rows."""
    return squares_of_products(A @ B.T, squares_of(A), squares_of(B))


class Profiles(LinearFamily):
    """Kernel ridge regression with Gaussians of an item's profile, the row of its standardized distances.

    The distances to all others describe an item. A column carries its item's weight, so that weights
    equal repetition.
    """

    needs_diagonal = True
    rows: NDArray  # (n, n or rank), profiles of the training items
    lengths: NDArray  # (n,), squared
    # distances become profiles by ``(d - shift) * turn`` or, in main axes, by ``d @ turn - shift``
    turn: NDArray
    shift: NDArray
    unit: float  # the median squared distance of the profiles

    has_main_axes = False

    settings = settings_of("profiles", GRIDS.profile_penalties, GRIDS.profile_widths)

    def for_predictions(self) -> Self:
        """With the profiles of many items projected on their main axes, if these hold nearly all of them."""
        family = copy(self)
        family.has_main_axes = True
        return family

    def learn_base(self, train: Comparisons) -> NDArray:
        profiles = train.profiles(self.weight)
        self.turn = profiles.factor
        self.shift = profiles.mean
        self.rows = profiles.rows
        inner = profiles.inner
        if self.has_main_axes and len(self.rows) > GRIDS.exact_profiles:
            axes = main_axes(self.rows, inner, GRIDS.profile_rank, profiles.weight)
            projected = self.rows @ axes
            kept = profiles.weight @ squares_of(projected)
            if kept >= GRIDS.profile_share * (profiles.weight @ squares_of(self.rows)):
                self.turn = profiles.factor[:, None] * axes
                self.shift = profiles.mean @ self.turn
                self.rows = projected
                inner = projected @ projected.T
        self.lengths = squares_of(self.rows)
        base = squares_of_products(inner, self.lengths, self.lengths)
        self.unit = median_square(base)
        return base

    def base(self, comparisons: Comparisons) -> NDArray:
        if self.turn.ndim == 1:
            profiles = (comparisons.distances - self.shift) * self.turn
        else:
            profiles = comparisons.distances @ self.turn - self.shift
        return squares_of_products(profiles @ self.rows.T, squares_of(profiles), self.lengths)

    def features(self, base: NDArray, width: float) -> NDArray:
        return gaussians(base, width / self.unit)

    def solve(self, features: NDArray, settings: Sequence[Setting]) -> tuple[NDArray, NDArray]:
        return kernel_path(features, self.targets, parameters_of(settings), self.weight)


class ClassPairs(Profiles):
    """Votes of kernel ridge regressions for two classes each, which learn from the items of these two alone."""

    coef: NDArray  # (n, n_settings, q), of every item in the pairs of its class
    intercept: NDArray  # (n_settings, q, q)

    settings = settings_of("pairs", GRIDS.pair_penalties, (GRIDS.pair_width,))

    def _learn(self, train: Comparisons) -> None:
        kernel = self.features(self.learn_base(train), GRIDS.pair_width)
        penalties = parameters_of(self.settings)
        self.coef, self.intercept = pair_path(kernel, self.targets, penalties, self.weight)

    def scores(self, new: Comparisons) -> NDArray:
        kernel = self.features(self.base(new), GRIDS.pair_width)
        n_settings, n_classes = self.intercept.shape[:2]
        values = np.empty((n_classes, len(new), n_settings, n_classes))
        for label, column in enumerate(self.targets.T):
            members = np.flatnonzero(column > 0.0)
            values[label] = np.tensordot(kernel.take(members, axis=1), self.coef[members], 1)
        pairs = values.transpose(2, 1, 0, 3)
        decisions = pairs - pairs.swapaxes(2, 3) + self.intercept[:, None]
        votes = np.clip(decisions, -1.0, 1.0)
        return votes.sum(axis=3) / (n_classes - 1)

    def split(self, known: Any, new: Any) -> list[Any]:
        """Nothing is split among the items, since votes are cut at one: all is base."""
        nothing = np.zeros((len(new), len(self.targets)))
        effects = np.zeros(self.targets.shape)
        return [SplitScore(nothing, effects, scores) for scores in self.scores(new)]

    def item_sizes(self) -> Iterator[tuple[Setting, NDArray]]:
        yield from zip(self.settings, np.linalg.norm(self.coef, axis=2).T)


def vote(ranks: NDArray, targets: NDArray, settings: Sequence[Setting], weight: NDArray) -> NDArray:
    """Mean targets (n_settings, m, q) of the items of lowest rank."""
    counts = [int(setting.parameter) for setting in settings]
    votes = neighbor_means(ranks, targets, sorted(set(counts)), weight)
    return np.stack([votes[count] for count in counts])


class Neighbors(StackFamily):
    """Votes of the nearest training items."""

    settings = settings_of("neighbors", GRIDS.neighbors)

    def scores(self, new: Comparisons) -> NDArray:
        ranks = new.column_diagonal - 2.0 * new.similarities
        return vote(ranks, self.targets, self.settings, self.weight)


class ClassDistances(StackFamily):
    """The mean distance to the nearest items of every class, or its logarithm."""

    needs_diagonal = True
    unit: float  # the median squared distance

    settings = tuple(
        Setting("class_distances", count, log=log)
        for log in (False, True)
        for count in GRIDS.class_neighbors
    )

    def _learn(self, train: Any) -> None:
        self.unit = train.unit

    def distances(self, new: Comparisons) -> NDArray:
        """Distances to the items that have a class."""
        return new.distances

    def scores(self, new: Comparisons) -> NDArray:
        counts = sorted({int(setting.parameter) for setting in self.settings})
        means = class_distances(self.distances(new), self.targets, counts)
        means /= np.sqrt(self.unit)  # in units of the usual distance
        scores = []
        for setting in self.settings:
            away = means[counts.index(int(setting.parameter))]
            if setting.log:
                away = np.log(np.maximum(away, GRIDS.smallest_distance))
            scores.append(away.mean(axis=1, keepdims=True) - away)
        return np.stack(scores)

    def split(self, known: Any, new: Any) -> list[Any]:
        distances = self.distances(new) / np.sqrt(self.unit)
        is_mine = (self.targets > 0.0).astype(float)
        effects = 1.0 / is_mine.shape[1] - is_mine
        base = np.zeros((len(new), effects.shape[1]))
        parts = []
        for setting in self.settings:
            count = int(setting.parameter)
            nearest = nearest_of_classes(distances, self.targets, count, setting.log)
            parts.append(SplitScore(nearest, effects, base))
        return parts


def default_families(
    classify: bool = True, n_items: int = 0, n_classes: int = 0
) -> tuple[StackFamily, ...]:
    """The families that compete for this many items and classes, in the order of the settings."""
    is_logistic = classify and n_items <= GRIDS.logistic_items
    families: list[StackFamily] = [Spectral()]
    if is_logistic:
        families.append(LogisticSimilarities())
    families += [Neighbors(), DistanceFeatures()]
    if is_logistic:
        families.append(LogisticDistances())
    families += [Gaussians(), Profiles()]
    if classify:
        families.append(ClassDistances())
        fewest, most = GRIDS.pair_classes
        if fewest < n_classes <= most:
            families.append(ClassPairs())
    return tuple(families)


def all_settings(families: Sequence[StackFamily]) -> tuple[Setting, ...]:
    """The settings of families, in the order of their scores."""
    return tuple(setting for family in families for setting in family.settings)


def keep_settings(
    families: Sequence[StackFamily], settings: Sequence[Setting]
) -> tuple[StackFamily, ...]:
    """The families that have some of these settings, with these only."""
    kept = [family.keep(settings) for family in families]
    return tuple(family for family in kept if family.settings)


@dataclass(frozen=True, eq=False)
class Members:
    """Fitted families, in the order of the scores."""

    families: tuple[StackFamily, ...]
    diagonal: NDArray  # (n,), own similarities of the items that new ones are compared with
    n_outputs: int
    row_bytes: float  # work space for a new row

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings."""
        return all_settings(self.families)

    def scores(self, new: Comparisons) -> NDArray:
        """Scores (n_settings, m, q) of new rows; 0 from families that need own similarities which are not known."""
        scores = np.zeros((len(self.settings), len(new), self.n_outputs))
        for rows in row_blocks(len(new), self.row_bytes, GRIDS.block_bytes):
            part = new.take(rows)
            start = 0
            for family in self.families:
                stop = start + len(family.settings)
                if part.has_distances or not family.needs_diagonal:
                    scores[start:stop, rows] = family.scores(part)
                start = stop
        return scores

    def split(self, known: Any, new: Comparisons) -> list[SplitScore | None]:
        """The scores of every setting split among training items; None if it needs own similarities that are unknown.

        `known` are the comparisons that the members were fitted on, or the places of landmarks and points.
        """
        parts: list[SplitScore | None] = []
        for family in self.families:
            if new.has_distances or not family.needs_diagonal:
                parts += family.split(known, new)
            else:
                parts += [None] * len(family.settings)
        return parts


def fit_members(
    train: Comparisons, targets: NDArray, families: Sequence[StackFamily], weight: NDArray
) -> Members:
    """Fit families on the comparisons of training items with each other.

    One ``eigh`` for the spectral families, a Cholesky factorization per penalty and width for others, and two products
    with the targets per step for the logistic ones.
    """
    fitted = tuple(family.fit(train, targets, weight) for family in families)
    row_bytes = 56.0 * train.similarities.shape[1]
    return Members(fitted, train.column_diagonal, targets.shape[1], row_bytes)
