"""Families of learners on a block of comparisons: each is one ridge path, or a mean over the nearest items.

A family learns from a block of training rows and their targets (+-1 for every class, or standardized numbers), and
scores blocks of new rows. It holds several settings, which share their features. All families but `ClassDistances` are
linear in the targets once `prepare` has seen them: ``score = sum_j h_j(x) y_j``, where explanations find the h_j.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import groupby
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular

#: Rows at which Gaussians of profiles are placed, at most.
POINTS = 2500
#: Exponent of Gaussians at the median squared distance.
WIDTH = 3.0
#: What makes the Gaussians of many points definite.
RIDGE = 1e-5
#: Logarithms of distances to classes are taken of at least this, in units of the median distance.
SMALLEST_DISTANCE = 1e-3


class Family:
    """Learners that share their features, one for every setting."""

    mean: NDArray  # (q,), of the targets
    #: Attributes that only `solve` needs.
    solving: tuple[str, ...] = ()

    def __init__(self, name: str, settings: Sequence[Any]):
        self.name = name
        self.settings = tuple(settings)

    def described(self, setting: Any) -> tuple[str, Any]:
        """The family and the parameter of a setting, as users see them."""
        return self.name, setting

    def keep(self, places: NDArray) -> Self:
        """The same family with the settings at these places only."""
        kept = copy(self)
        kept.settings = tuple(self.settings[place] for place in places)
        return kept

    def fit(self, known: Any, Y: NDArray, columns: NDArray | None = None) -> Self:
        """The family fitted to the targets (n, q) of a block's rows, or solved for other `columns` in their place."""
        fitted = copy(self)
        Y = Y.astype(known.weight.dtype)
        fitted.prepare(known, Y)
        columns = Y if columns is None else columns
        fitted.mean = known.weight @ columns / known.weight.sum()
        fitted.solve(known, columns)
        for name in fitted.solving:
            vars(fitted).pop(name, None)
        return fitted

    def prepare(self, known: Any, Y: NDArray) -> None:
        """Set what does not depend on the targets, or not linearly."""
        self.unit = known.unit

    def solve(self, known: Any, Y: NDArray) -> None:
        """Set what is linear in the targets."""

    def scores(self, new: Any) -> NDArray:
        """Scores of rows, of shape (n_settings, n_rows, q)."""
        raise NotImplementedError


class Spectral(Family):
    """Ridge regression with the eigenvalues clipped, flipped or squared: all settings from one decomposition.

    A setting is a way to change the eigenvalues, and a penalty.
    """

    def described(self, setting: Any) -> tuple[str, Any]:
        return setting

    def solve(self, known: Any, Y: NDArray) -> None:
        self.share = known.weight / known.weight.sum()
        self.columns = self.share @ known.similarities
        values = known.spectrum.values
        changes = {"clip": np.maximum(values, 0.0), "flip": np.abs(values), "square": values**2}
        is_zero = np.abs(values) <= 1e-6 * np.abs(values).max()
        divisor = np.where(is_zero, np.inf, values)
        factors = []
        for mode, penalty in self.settings:
            changed = changes[mode]
            size = np.linalg.norm(changed) or 1.0
            factors.append(changed / divisor / (changed + penalty * size))
        root = np.sqrt(known.weight)[:, None]
        coordinates = known.spectrum.enter(root * (Y - self.mean))
        of_settings = np.stack(factors, axis=1)[:, :, None] * coordinates[:, None]
        solutions = known.spectrum.leave(of_settings)
        self.coef = root * np.moveaxis(solutions, 1, 0)

    def scores(self, new: Any) -> NDArray:
        S = new.similarities
        row_means = (S @ self.share)[:, None]
        centered = S - self.columns - row_means + self.columns @ self.share
        return linear(centered, self.coef) + self.mean


class Ridge(Family):
    """Ridge regression on features of rows, by the inner products of rows or, if these are fewer, of features.

    A setting is a variant of the features and a penalty relative to the Frobenius norm, which is the same for both.
    """

    def described(self, setting: Any) -> tuple[str, Any]:
        variant, penalty = setting
        return self.name, penalty if variant is None else setting

    def paths(self) -> Iterator[tuple[Any, list[float]]]:
        """The penalties of every variant."""
        for variant, settings in groupby(self.settings, key=lambda setting: setting[0]):
            yield variant, [penalty for _, penalty in settings]

    def basis(self, block: Any) -> Any:
        """What the features of all variants are made of: the block, unless overridden."""
        return block

    def features(self, basis: Any, variant: Any) -> NDArray:
        """Features of rows (n_rows, n_features)."""
        raise NotImplementedError

    def solve(self, known: Any, Y: NDArray) -> None:
        root = np.sqrt(known.weight)[:, None]
        target = root * (Y - self.mean)
        self.level = {}
        self.coef = {}
        basis = self.basis(known)
        for variant, penalties in self.paths():
            variant = variant or 0  # files of models cannot hold None as a key
            F = self.features(basis, variant)
            self.level[variant] = known.weight @ F / known.weight.sum()
            F = root * (F - self.level[variant])
            if len(F) <= F.shape[1]:
                coef = F.T @ ridge_path(F @ F.T, target, penalties)
            else:
                coef = ridge_path(F.T @ F, F.T @ target, penalties)
            self.coef[variant] = coef

    def scores(self, new: Any) -> NDArray:
        basis = self.basis(new)
        scores = []
        for variant, coef in self.coef.items():
            centered = self.features(basis, variant) - self.level[variant]
            scores.append(linear(centered, coef) + self.mean)
        return np.concatenate(scores)


class Gaussians(Ridge):
    """Functions of the distances d to the centers.

    The variants are 2: ``exp(-3 d^2 / unit)``, 1: ``exp(-d / sqrt(unit))``, and 0: d. The penalty .1 is worth
    -.0008 +- .0004 of log-loss on 43 sets, and -.6 +- .5 % of squared error on 11.
    """

    def features(self, basis: Any, variant: Any) -> NDArray:
        if variant == 2:
            return np.exp(basis.squares * (-WIDTH / self.unit))
        if variant == 1:
            return np.exp(basis.distances * -(self.unit**-0.5))
        return basis.distances


class Affinities(Ridge):
    """Base of the families on affinities: similarities, or Gaussians of distances."""

    def affinities(self, block: Any) -> NDArray:
        """Affinities of rows to centers."""
        if block.kind == "similarity":
            return block.similarities
        return np.exp(block.squares * (-WIDTH / self.unit))


class Cosines(Affinities):
    """Rows of affinities of length one."""

    def features(self, basis: Any, variant: Any) -> NDArray:
        F = self.affinities(basis)
        length = np.sqrt(np.einsum("ij,ij->i", F, F))
        return F / np.where(length > 0.0, length, np.inf)[:, None]


class Shares(Affinities):
    """Classes among the items that an item leads to, after one step and after two, as features.

    A step goes to another item in proportion to its affinity; two steps do not return to the item itself. A block that
    has the items as centers twice, there and back, has both kinds of steps.
    """

    solving = ("known_features",)

    def prepare(self, known: Any, Y: NDArray) -> None:
        super().prepare(known, Y)
        self.onehot = (Y > 0.0).astype(Y.dtype)
        first_steps = self.steps(known)
        self.after = [step @ self.onehot for step in first_steps]
        columns = []
        for first, after_one in zip(first_steps, self.after):
            columns.append(after_one)
            for second, after in zip(first_steps, self.after):
                returning = np.einsum("ij,ji->i", first, second)
                columns.append(first @ after - returning[:, None] * self.onehot)
        F = np.sqrt(np.maximum(np.hstack(columns), 0.0))
        self.scale = F.std(axis=0) + 1e-6
        self.known_features = F / self.scale

    def steps(self, block: Any) -> list[NDArray]:
        """Probabilities of a step from rows to items, for each direction."""
        A = np.maximum(self.affinities(block), 0.0)
        if not block.is_new:
            is_own = np.arange(len(A))[:, None] == block.center_rows
            A = np.where(is_own, 0.0, A)
        directions = np.split(A, A.shape[1] // len(self.onehot), axis=1)
        return [part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12) for part in directions]

    def features(self, basis: Any, variant: Any) -> NDArray:
        if not basis.is_new:
            return self.known_features
        columns = []
        for first in self.steps(basis):
            columns.append(first @ self.onehot)
            columns += [first @ after for after in self.after]
        return np.sqrt(np.hstack(columns)) / self.scale


class Profiles(Ridge):
    """Kernel ridge regression with Gaussians of profiles, placed at all rows, or at some of many.

    The profile of a row are its standardized distances to the centers; variants are widths.
    """

    solving = ("squares",)

    def prepare(self, known: Any, Y: NDArray) -> None:
        self.scaling = known.scaling
        rows = self.place(known)
        self.at_all = len(rows) <= POINTS
        if not self.at_all:
            chosen = np.random.RandomState(0).permutation(len(rows))[:POINTS]
            rows = rows[np.sort(chosen)]
        self.points = rows
        self.lengths = np.einsum("ij,ij->i", rows, rows)
        self.squares = self.squares_of(rows)
        np.fill_diagonal(self.squares, 0.0)
        self.unit = median_square(self.squares, np.arange(len(rows)))
        if not self.at_all:
            self.triangles = {width: self.triangle(width) for width, _ in self.paths()}

    def triangle(self, width: float) -> NDArray:
        """The factor that makes the Gaussians at the points orthonormal."""
        gram = np.exp(self.squares * (-width / self.unit))
        return definite_factor(gram, RIDGE)[0]

    def solve(self, known: Any, Y: NDArray) -> None:
        if not self.at_all:
            super().solve(known, Y)
            return
        root = np.sqrt(known.weight)[:, None]
        target = root * (Y - self.mean)
        self.share = known.weight / known.weight.sum()
        self.level = {}
        self.coef = {}
        for width, penalties in self.paths():
            gram = np.exp(self.squares * (-width / self.unit))
            self.level[width] = self.share @ gram
            centered = root * center(gram, known.weight) * root.T
            self.coef[width] = root * ridge_path(centered, target, penalties)

    def place(self, block: Any) -> NDArray:
        """The profiles of rows, for which Gaussians are evaluated."""
        return block.profiles(self.scaling)

    def squares_of(self, rows: NDArray) -> NDArray:
        """Squared distances of profiles to the points."""
        lengths = np.einsum("ij,ij->i", rows, rows)
        squares = rows @ self.points.T  # at half the cost for the points themselves
        squares *= -2.0
        squares += lengths[:, None]
        squares += self.lengths
        return np.maximum(squares, 0.0, out=squares)

    def basis(self, block: Any) -> NDArray:
        """Squared distances of profiles to the points."""
        return self.squares_of(self.place(block))

    def features(self, basis: NDArray, variant: Any) -> NDArray:
        """Gaussians at the points as orthonormal functions; exact ones as functions of mean zero."""
        values = basis * (-variant / self.unit)
        np.exp(values, out=values)
        if self.at_all:  # coefficients sum to zero up to the weights
            values -= (values @ self.share)[:, None]
            values += self.level[variant] @ self.share
            return values
        triangle = self.triangles[variant]
        return solve_triangular(triangle, values.T, lower=True, check_finite=False).T


class Embedding(Profiles):
    """The same with coordinates of rows in the positive axes of the landmarks' centered similarities.

    With 60 to 150 landmarks on eight sets (two splits): log-loss -.0143 +- .0066, accuracy +.68 +- .28 points. Narrower
    Gaussians as a second family, for classes, on six new sets: -.0043 +- .0024 with 100 landmarks, -.0061 +- .0037 with
    150, -.0045 +- .0021 with 350.
    """

    def prepare(self, known: Any, Y: NDArray) -> None:
        self.centers = np.flatnonzero(known.center_rows >= 0)
        landmarks = known.similarities[np.ix_(known.center_rows[self.centers], self.centers)]
        landmarks = (landmarks + landmarks.T) / 2.0
        self.origin = landmarks.mean(axis=0)
        centered = center(landmarks, np.ones(len(landmarks), dtype=landmarks.dtype))
        values, vectors = eigh(centered, driver="evd")
        is_positive = values > 1e-2 * values.max()
        self.axes = vectors[:, is_positive] / np.sqrt(values[is_positive])
        super().prepare(known, Y)

    def place(self, block: Any) -> NDArray:
        S = block.similarities[:, self.centers]
        centered = S - self.origin - S.mean(axis=1, keepdims=True) + self.origin.mean()
        return centered @ self.axes


class Neighbors(Family):
    """Mean target of the nearest items; with landmarks, of those with the nearest profiles."""

    def prepare(self, known: Any, Y: NDArray) -> None:
        self.weight = known.weight
        self.center_own = known.center_own
        self.by_profiles = not known.all_items
        if self.by_profiles:
            self.scaling = known.scaling
            self.points = known.profiles(known.scaling)
            self.lengths = np.einsum("ij,ij->i", self.points, self.points)

    def solve(self, known: Any, Y: NDArray) -> None:
        self.targets = Y

    def scores(self, new: Any) -> NDArray:
        if self.by_profiles:
            farther = self.lengths - 2.0 * new.profiles(self.scaling) @ self.points.T
        else:  # a new item's own similarity does not matter
            farther = self.center_own - 2.0 * new.similarities
        order, values = in_order(farther, self.weight, max(self.settings), with_ties=True)
        votes = np.zeros(farther.shape, dtype=self.targets.dtype)
        scores = []
        for share in tied_shares(values, self.weight[order], self.settings):
            np.put_along_axis(votes, order, share, axis=1)
            scores.append(votes @ self.targets)
        return np.stack(scores)


class ClassDistances(Family):
    """How near the nearest centers of every class are; a setting is their number, and whether logarithms are taken."""

    def prepare(self, known: Any, Y: NDArray) -> None:
        self.centers = np.flatnonzero(known.center_rows >= 0)
        self.rows = known.center_rows[self.centers]
        self.unit = np.sqrt(known.unit)
        self.weight = known.weight[self.rows]
        self.labels = Y[self.rows].argmax(axis=1)
        self.n_classes = Y.shape[1]

    def scores(self, new: Any) -> NDArray:
        away = np.empty((len(self.settings), len(new), self.n_classes))
        for label in range(self.n_classes):
            _, distances, shares = self.nearest_of(new, label)
            for number, (share, (_, is_log)) in enumerate(zip(shares, self.settings)):
                mean = (share * distances).sum(axis=1)
                if is_log:
                    mean = np.log(np.maximum(mean, SMALLEST_DISTANCE))
                away[number, :, label] = mean
        return away.mean(axis=2, keepdims=True) - away

    def nearest_of(self, new: Any, label: int) -> tuple[NDArray, NDArray, list[NDArray]]:
        """Training rows of the nearest centers of a class, their distances, and for every setting shares of sum 1."""
        members = np.flatnonzero(self.labels == label)
        if not len(members):  # as far as the farthest center
            farthest = new.distances.max(axis=1, keepdims=True, initial=0.0) / self.unit
            share = np.ones_like(farthest)
            return np.full(share.shape, -1), farthest, [share] * len(self.settings)
        distances = new.distances[:, self.centers[members]] / self.unit
        weight = self.weight[members]
        counts = [count for count, _ in self.settings]
        order, values = in_order(distances, weight, max(counts))
        shares = tied_shares(values, weight[order], counts)
        return self.rows[members][order], values, shares


def in_order(
    farther: NDArray, weight: NDArray, count: int, with_ties: bool = False
) -> tuple[NDArray, NDArray]:
    """The columns of least value in every row, in order, and the values: of the weight `count` or more.

    With ties, all columns that are as near as the last are among them.
    """
    lightest = np.cumsum(np.sort(weight))
    number = min(1 + int(np.searchsorted(lightest, count)), farther.shape[1])
    order = np.argpartition(farther, number - 1, axis=1)[:, :number]
    values = np.take_along_axis(farther, order, axis=1)
    if with_ties and number < farther.shape[1]:
        as_near = np.count_nonzero(farther <= values.max(axis=1, keepdims=True), axis=1)
        number = int(as_near.max(initial=number))
        if number > order.shape[1]:
            order = np.argpartition(farther, number - 1, axis=1)[:, :number]
            values = np.take_along_axis(farther, order, axis=1)
    ranks = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(order, ranks, axis=1), np.take_along_axis(values, ranks, axis=1)


def tied_shares(values: NDArray, weight: NDArray, counts: Sequence[float]) -> list[NDArray]:
    """For every count, shares (of sum 1) of ordered items in the nearest; items of equal value share what is left.

    Weights are repetition: an item of weight 2 is two of the nearest.
    """
    after = np.cumsum(weight, axis=1, dtype=np.float64)
    differs = values[:, 1:] > values[:, :-1]
    edge = np.ones((len(values), 1), dtype=bool)
    starts = np.where(np.hstack([edge, differs]), after - weight, 0.0)
    before_group = np.maximum.accumulate(starts, axis=1)
    ends = np.where(np.hstack([differs, edge]), after, np.inf)
    after_group = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    of_group = np.maximum(after_group - before_group, weight)  # which rounding may lose
    own = weight / of_group
    shares = {count: np.clip(count - before_group, 0.0, of_group) * own for count in set(counts)}
    return [shares[count] / shares[count].sum(axis=1, keepdims=True) for count in counts]


def ridge_path(A: NDArray, target: NDArray, penalties: Sequence[float]) -> NDArray:
    """``(A + p |A| I)^-1 target`` for every penalty p, of shape (n_penalties, n, q).

    Cost: a Cholesky factorization for each.
    """
    size = float(np.linalg.norm(A)) or 1.0
    factors = (definite_factor(A, penalty * size) for penalty in penalties)
    return np.stack([cho_solve(factor, target, check_finite=False) for factor in factors])


def definite_factor(A: NDArray, ridge: float) -> tuple[NDArray, bool]:
    """`cho_factor` of ``A + ridge I``; a ridge that rounding of a nearly singular matrix defeats is raised."""
    while True:
        shifted = A.copy()
        shifted[np.diag_indices(len(A))] += ridge
        try:  # the transposed view is in LAPACK's order: no copy
            return cho_factor(shifted.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            ridge *= 10.0


def linear(F: NDArray, coef: NDArray) -> NDArray:
    """``F @ coef`` for every setting, in one product."""
    return np.moveaxis(np.tensordot(F, coef, axes=(1, 1)), 1, 0)


def center(K: NDArray, weight: NDArray) -> NDArray:
    """A kernel of functions with weighted mean zero on the rows."""
    share = weight / weight.sum()
    columns = share @ K
    return K - columns - (K @ share)[:, None] + columns @ share


def median_square(squares: NDArray, center_rows: NDArray) -> float:
    """The median squared distance between different items, over about 100 rows; 1 if all are equal."""
    rows = np.arange(0, len(squares), max(1, len(squares) // 100))
    others = squares[rows][rows[:, None] != center_rows]
    return float((np.median(others) or others.mean() or 1.0) if len(others) else 1.0)
