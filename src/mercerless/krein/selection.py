"""Choose the penalties of least squares in Krein spaces: one decomposition per fold, then every candidate is cheap.

`Family` is the problem to solve, `Candidates` are its penalties and radii. `ExactProblem` and `LandmarkProblem` make
the folds, `held_out_scores` predicts what they hold out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches

from mercerless.core.basis import Basis
from mercerless.core.blocks import reduce_rows, take_rows
from mercerless.core.folds import some_rows
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.tuning import SCALES, held_out_blocks, ridge_losses
from mercerless.core.units import Standardizer
from mercerless.kernels import Gaussian
from mercerless.krein.solver import (
    KreinSystem,
    augmented_rows,
    build_low_rank_system,
    build_system,
    row_factor,
    spectral_solution,
)
from mercerless.krein.thresholds import LIMITS
from mercerless.lowrank import LandmarkMap, nystroem


class Sphere(BaseEstimator):
    """Fix the standard deviation of f on the training rows: a `constraint` of the Krein least-squares models.

    Parameters
    ----------
    radius : float, array-like or None, default=None
        That standard deviation; several are candidates for cross-validation (an array of shape (n_radii, n_outputs)
        has one per output). None: factors from .25 to 1 of the targets' own.

    See Also
    --------
    Ball : Bounds it instead.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge, Sphere
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge(constraint=Sphere(0.5), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(float(model.predict(X).std()), 8)
    0.5
    """

    _kind = "sphere"

    def __init__(self, radius: ArrayLike | None = None):
        self.radius = radius


class Ball(Sphere):
    """Bound the standard deviation of f on the training rows: a `constraint` of the Krein least-squares models.

    Parameters
    ----------
    radius : float, array-like or None, default=None
        The bound, or several to choose from, as for `Sphere`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import Ball, KreinRidge
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge(constraint=Ball(0.5), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.predict(X).std() < 0.5 + 1e-8)
    True
    """

    _kind = "ball"


class Family(NamedTuple):
    """Which of the problems of `krein.solver` is solved."""

    regularizer: str
    constraint: str | None
    intercept: bool


class Candidates(NamedTuple):
    """Penalties and radii to choose from, one per row; relative ones are made absolute for each decomposition."""

    alpha_positive: NDArray  # (S,) or, if relative, n alpha / max|s|
    alpha_negative: NDArray  # (S,) or, if relative, the ratio to alpha_positive
    # (S, 1) or (S, n_outputs) or, if relative, factors of the targets' root mean squares; inf without constraint
    radius: NDArray
    relative: tuple[bool, bool, bool]

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.alpha_positive)

    def resolve(self, system: KreinSystem, regularizer: str) -> Candidates:
        """The same in absolute numbers, with a radius for each output."""
        plus = self.alpha_positive
        minus = self.alpha_negative
        radius = np.broadcast_to(self.radius, (self.size, len(system.spread)))
        relative_plus, relative_minus, relative_radius = self.relative
        if relative_plus and regularizer != "covariance":
            plus = plus * (np.abs(system.values).max(initial=0.0) / system.n)
        if relative_minus:
            minus = minus * plus
        if relative_radius:
            radius = radius * system.spread
        return Candidates(plus, minus, radius, (False, False, False))


def make_candidates(
    alpha_positive: ArrayLike | None,
    alpha_negative: ArrayLike | None,
    constraint: Sphere | None,
    regularizer: str,
    n_outputs: int = 1,
    ratios: Sequence[float] = LIMITS.ratios,
) -> Candidates:
    """All combinations of the given penalties and radii, which are checked, and of the defaults for the others."""
    plus = np.array(LIMITS.strengths)
    if alpha_positive is not None:
        plus = np.sort(_nonnegative(alpha_positive, "alpha_positive"))[::-1]
    minus = np.array(ratios)
    if alpha_negative is not None:
        minus = _nonnegative(alpha_negative, "alpha_negative")
    has_two_penalties = regularizer == "components"
    if not has_two_penalties:
        minus = np.ones(1)
    radii, radius_is_relative = _radii(constraint, n_outputs)
    i, j, k = (indices.ravel() for indices in np.indices((len(minus), len(plus), len(radii))))
    relative = (
        alpha_positive is None,
        alpha_negative is None or not has_two_penalties,
        radius_is_relative,
    )
    return Candidates(plus[j], minus[i], radii[k], relative)


def _radii(constraint: Sphere | None, n_outputs: int) -> tuple[NDArray, bool]:
    """Radii (n_radii, 1 or n_outputs) to choose from, and whether they are relative to the targets."""
    if constraint is None:
        return np.full((1, 1), np.inf), False
    if constraint.radius is None:
        return np.array(LIMITS.radii)[:, None], True
    radii = _nonnegative(constraint.radius, "radius", 2)
    if radii.shape[1] not in (1, n_outputs):
        raise ValueError(f"radius has {radii.shape[1]} columns, but y has {n_outputs} outputs.")
    return radii, False


def _nonnegative(values: ArrayLike, name: str, ndim: int = 1) -> NDArray:
    """One nonnegative number or several, as an array of `ndim` axes whose first runs over candidates."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.size == 0 or array.ndim > ndim or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError(
            f"{name} must be a nonnegative number, several to choose from, or None, got {values!r}."
        )
    return array if array.ndim == ndim else array.reshape(array.size, *[1] * (ndim - 1))


class KreinRows(NamedTuple):
    """The rows that carry weight."""

    basis: Basis
    Y: NDArray
    weight: NDArray
    folds: NDArray  # the fold that holds each of them out

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.folds.max()) + 1


def best_gaussian(rows: KreinRows) -> Gaussian:
    """The default kernel, with the factor of its length scales that ridge regression prefers on the folds."""
    chosen = some_rows(len(rows.Y), LIMITS.tuned_rows, 0)
    items = take_rows(rows.basis.items, chosen)
    folds = [np.flatnonzero(rows.folds[chosen] == fold) for fold in range(rows.n_folds)]
    Y = Standardizer.fit(rows.Y, rows.weight)(rows.Y[chosen])
    kernels = [Gaussian(scale * rows.basis.kernel.length_scale) for scale in SCALES]
    losses = [ridge_losses(held_out_blocks(kernel(items), folds), Y) for kernel in kernels]
    return kernels[int(np.argmin(np.array(losses) @ rows.weight[chosen]))]


class KreinFold(NamedTuple):
    """One split: the decomposed training part, and comparisons of rows that it holds out with its basis."""

    system: KreinSystem
    held_out: NDArray  # positions of these rows
    basis: NDArray  # (n_held_out, n_basis)


class ExactProblem:
    """The folds and the whole of a problem on the full kernel matrix: one decomposition each."""

    def __init__(self, rows: KreinRows, K: NDArray, intercept: bool):
        self.rows = rows
        self.K = K
        self.intercept = intercept

    def folds(self) -> Iterator[KreinFold]:
        """All folds."""
        rows = self.rows
        for number in range(rows.n_folds):
            train = np.flatnonzero(rows.folds != number)
            test = np.flatnonzero(rows.folds == number)
            system = build_system(
                self.K[np.ix_(train, train)],
                rows.Y[train],
                rows.weight[train],
                intercept=self.intercept,
                overwrite=True,
            )
            yield KreinFold(system, test, self.K[np.ix_(test, train)])

    def system(self) -> KreinSystem:
        """The problem of all rows."""
        return build_system(self.K, self.rows.Y, self.rows.weight, intercept=self.intercept)

    def fitted_basis(self) -> Basis:
        """The rows, with which new items are compared."""
        return self.rows.basis.fitted()

    def dual(self, coef: NDArray) -> NDArray:
        """Coefficients of similarities to the rows."""
        return coef


class LandmarkProblem:
    """The same on landmarks: one pass over blocks of rows, keeping only triangular factors.

    At most `KreinThresholds.scored_rows` rows of a fold are predicted.
    """

    def __init__(
        self, rows: KreinRows, landmarks: NDArray, intercept: bool, random: np.random.RandomState
    ):
        self.rows = rows
        self.landmarks = landmarks
        self.intercept = intercept
        self.random = random
        kernel, items = rows.basis.kernel, rows.basis.items
        low_rank = nystroem(kernel, items, landmarks, random_state=random)
        self.features = low_rank.feature_map(kernel, items)
        self.signs = low_rank.signs
        # a block's similarities, its features, and their copy with the targets; the factors need less
        self.bytes_per_row = 24.0 * (len(landmarks) + rows.Y.shape[1])
        self.block_bytes = min(LIMITS.block_bytes, memory_budget() // 3)
        self.factors = reduce_rows(
            partial(_fold_factors, self.features, len(self.signs), rows.n_folds),
            _merge_factors,
            (items, rows.Y, rows.weight, rows.folds),
            self.bytes_per_row,
            self.block_bytes,
        )

    def folds(self) -> Iterator[KreinFold]:
        """All folds, their rows in blocks."""
        for number in range(self.rows.n_folds):
            system = self._system_of(R for j, R in enumerate(self.factors) if j != number)
            rows = np.flatnonzero(self.rows.folds == number)
            rows = rows[some_rows(len(rows), LIMITS.scored_rows, self.random)]
            for span in row_blocks(len(rows), self.bytes_per_row, self.block_bytes):
                block = rows[span]
                basis = self.features(take_rows(self.rows.basis.items, block))
                yield KreinFold(system, block, basis)

    def system(self) -> KreinSystem:
        """The problem of all rows."""
        return self._system_of(self.factors)

    def _system_of(self, factors: Iterable[NDArray]) -> KreinSystem:
        factor = row_factor(factors, self.factors[0].shape[1])
        return build_low_rank_system(factor, self.signs, intercept=self.intercept)

    def fitted_basis(self) -> Basis:
        """The landmarks, with which new items are compared."""
        return self.rows.basis.fitted(self.landmarks)

    def dual(self, coef: NDArray) -> NDArray:
        """Coefficients of similarities to the landmarks."""
        return np.tensordot(self.features.weights, coef, axes=(1, 0))


Problem = ExactProblem | LandmarkProblem


def _fold_factors(
    features: LandmarkMap,
    n_features: int,
    n_folds: int,
    rows: NDArray,
    Y: NDArray,
    weight: NDArray,
    fold_of: NDArray,
) -> list[NDArray]:
    """The triangular factor of ``[1, features, Y]`` for the rows of every fold in one block of rows."""
    factors = []
    width = 1 + n_features + Y.shape[1]
    for fold in range(n_folds):
        members = np.flatnonzero(fold_of == fold)
        # LAPACK's order, so that it is factorized in place
        augmented = np.empty((len(members), width), order="F")
        # blocks small enough for the processor's cache
        for span in row_blocks(len(members), 8.0 * width, 2**22):
            block = members[span]
            augmented[span] = augmented_rows(features(rows[block]), Y[block], weight[block])
        factors.append(row_factor([augmented], width, overwrite=True))
    return factors


def _merge_factors(first: list[NDArray], second: list[NDArray]) -> list[NDArray]:
    """The factors of the rows of two blocks from the factors of each."""
    return [row_factor(pair, pair[0].shape[1]) for pair in zip(first, second)]


class HeldOut(NamedTuple):
    """Predictions of every candidate for rows by models that have not seen them."""

    scores: NDArray  # (n_candidates, n_held_out, n_outputs)
    rows: NDArray  # (n_held_out,)


def held_out_scores(folds: Iterable[KreinFold], candidates: Candidates, family: Family) -> HeldOut:
    """Predict the held-out rows of all folds by all candidates."""
    pieces = []
    rows = []
    for fold in folds:
        pieces.append(_fold_scores(fold, candidates, family))
        rows.append(fold.held_out)
    return HeldOut(np.concatenate(pieces, axis=1), np.concatenate(rows))


def _fold_scores(fold: KreinFold, candidates: Candidates, family: Family) -> NDArray:
    """Held-out predictions (n_candidates, n_held_out, n_outputs)."""
    system = fold.system
    n_outputs = len(system.offset)
    basis = fold.basis - system.center
    # lift the coefficients or the basis, whichever is cheaper
    lift_basis = candidates.size * n_outputs > system.lift.shape[1]
    if lift_basis:
        basis = basis @ system.lift
    absolute = candidates.resolve(system, family.regularizer)
    scores = np.empty((candidates.size, len(basis), n_outputs))
    for batch in gen_batches(candidates.size, 64):
        plus, minus, radius = (values[batch] for values in absolute[:3])
        solution = spectral_solution(
            system, plus, minus, radius, family.regularizer, family.constraint
        )
        n_problems = (batch.stop - batch.start) * n_outputs
        coef = (solution.coef / system.values).reshape(n_problems, -1).T
        if not lift_basis:
            coef = system.lift @ coef
        predicted = (basis @ coef.astype(basis.dtype)).reshape(len(basis), -1, n_outputs)
        scores[batch] = predicted.transpose(1, 0, 2) + system.offset
    return scores


def squared_errors(held_out: HeldOut, rows: KreinRows) -> NDArray:
    """Mean squared error of every fold and candidate, (n_folds, n_candidates), relative to the variance of y."""
    Y = rows.Y[held_out.rows]
    mean = np.average(rows.Y, axis=0, weights=rows.weight)
    variance = np.average((rows.Y - mean) ** 2, axis=0, weights=rows.weight)
    variance = np.where(variance > 0, variance, 1.0)
    squares = np.mean((held_out.scores - Y) ** 2 / variance, axis=2)
    weight = rows.weight[held_out.rows]
    fold_of = rows.folds[held_out.rows]
    return np.array(
        [
            np.average(squares[:, fold_of == fold], axis=1, weights=weight[fold_of == fold])
            for fold in np.unique(fold_of)
        ]
    )


def least(errors: Sequence[float] | NDArray) -> int:
    """The first of the smallest errors that are numbers."""
    return int(np.argmin(np.where(np.isnan(errors), np.inf, errors)))
