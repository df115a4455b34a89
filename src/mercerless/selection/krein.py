"""Choosing the penalties of least squares in Krein spaces: many settings of one decomposition per fold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless._memory import row_blocks
from mercerless.solvers.krein import (
    KreinSystem,
    augmented_rows,
    build_low_rank_system,
    build_system,
    row_factor,
    spectral_solution,
)

# Relative strengths: the penalty of the largest eigenvalue's coordinate, n alpha / max|s|, from strong to weak, so
# that ties go to the stronger one. The ratios alpha_negative / alpha_positive beyond 100 were seen to fail badly.
STRENGTHS = np.logspace(1, -7, 17)
RATIOS = (1.0, 10.0, 0.1, 100.0, 0.01)
RADII = (1.0, 0.9, 0.8, 0.7, 0.5, 0.25)
_CACHE_BYTES = 2**22  # features of so many bytes are made at a time, while they are in the cache of the processor


class Settings(NamedTuple):
    """Candidate settings, one per row; relative ones are made absolute for each decomposition by `resolve`."""

    alpha_positive: NDArray  # (S,) or, if relative, n alpha / max|s|
    alpha_negative: NDArray  # (S,) or, if relative, the ratio to alpha_positive
    radius: NDArray | None  # (S,) factors of `radius_unit`
    relative_positive: bool
    relative_negative: bool
    radius_unit: NDArray | None = None  # number or one per output; None: the targets' root mean square

    @property
    def size(self) -> int:
        """How many settings there are."""
        return len(self.alpha_positive)

    def resolve(self, system: KreinSystem, regularizer: str) -> tuple[NDArray, NDArray, NDArray | None]:
        """Absolute (alpha_positive, alpha_negative, radius), radius of shape (S, n_outputs)."""
        scale = np.abs(system.values).max(initial=0.0) / system.n if regularizer != "covariance" else 1.0
        plus = self.alpha_positive * (scale if self.relative_positive else 1.0)
        minus = self.alpha_negative * (plus if self.relative_negative else 1.0)
        if self.radius is None:
            return plus, minus, None
        unit = system.spread if self.radius_unit is None else np.broadcast_to(self.radius_unit, system.spread.shape)
        return plus, minus, self.radius[:, None] * unit

    def take(self, index: int) -> "Settings":
        """The setting of one row."""
        radius = None if self.radius is None else self.radius[[index]]
        return self._replace(
            alpha_positive=self.alpha_positive[[index]], alpha_negative=self.alpha_negative[[index]], radius=radius
        )


def candidate_settings(
    alpha_positive: float | None,
    alpha_negative: float | None,
    radius: ArrayLike | None,
    *,
    constrained: bool,
    two_penalties: bool,
    strengths: Sequence[float] = STRENGTHS,
    ratios: Sequence[float] = RATIOS,
    radii: Sequence[float] = RADII,
) -> Settings:
    """The grid over whatever is None; values that are given stay as they are."""
    plus = np.asarray(strengths if alpha_positive is None else [alpha_positive], dtype=float)
    if not two_penalties:
        minus, relative_minus = np.array([1.0]), True
    elif alpha_negative is None:
        minus, relative_minus = np.asarray(ratios, dtype=float), True
    else:
        minus, relative_minus = np.array([alpha_negative], dtype=float), False
    r = np.asarray(radii if constrained and radius is None else [1.0], dtype=float)
    unit = None if radius is None else np.asarray(radius, dtype=float)
    minus_, plus_, r_ = (g.ravel() for g in np.meshgrid(minus, plus, r, indexing="ij"))
    return Settings(plus_, minus_, r_ if constrained else None, alpha_positive is None, relative_minus, unit)


class Fold(NamedTuple):
    """One split: the decomposed training part, and rows ``basis(x)``, targets and weights of the validation part."""

    system: KreinSystem
    basis: NDArray  # (n_validation, n_basis)
    target: NDArray  # (n_validation, n_outputs)
    weight: NDArray | None
    constant: NDArray | None = None  # the column of ones, where rows were compressed; see `squared_errors`


def exact_folds(
    K: NDArray, Y: NDArray, weight: NDArray | None, fold_of: NDArray, intercept: bool
) -> Iterator[tuple[Fold, NDArray]]:
    """One decomposition per fold of the matrix `K`; yields the fold and the rows it leaves out."""
    for fold in range(fold_of.max() + 1):
        train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        w_train, w_test = (None, None) if weight is None else (weight[train], weight[test])
        system = build_system(K[np.ix_(train, train)], Y[train], w_train, intercept=intercept, overwrite=True)
        yield Fold(system, K[np.ix_(test, train)], Y[test], w_test), test


def fold_factors(
    features: Callable[[NDArray], NDArray],
    n_features: int,
    n_folds: int,
    rows: NDArray,
    Y: NDArray,
    weight: NDArray | None,
    fold_of: NDArray,
) -> list[NDArray]:
    """The triangular factor of ``[1, features, Y]`` for the rows of every fold in one block of rows."""
    factors, width = [], 1 + n_features + Y.shape[1]
    for fold in range(n_folds):
        mine = np.flatnonzero(fold_of == fold)
        augmented = np.empty((len(mine), width), order="F")  # LAPACK's order, so that it is factorised in place
        for part in row_blocks(len(mine), 8.0 * width, _CACHE_BYTES):
            few = mine[part]
            augmented[part] = augmented_rows(features(rows[few]), Y[few], None if weight is None else weight[few])
        factors.append(row_factor([augmented], width, overwrite=True))
    return factors


def merge_factors(first: list[NDArray], second: list[NDArray]) -> list[NDArray]:
    """The factors of the rows of two blocks from the factors of each."""
    return [row_factor(pair, pair[0].shape[1]) for pair in zip(first, second)]


def low_rank_folds(factors: Sequence[NDArray], signature: NDArray, intercept: bool) -> Iterator[Fold]:
    """Folds from triangular factors alone: training on the others, squared errors on one; no rows are needed."""
    k = len(signature)
    for i, held_out in enumerate(factors):
        others = row_factor((R for j, R in enumerate(factors) if j != i), held_out.shape[1])
        system = build_low_rank_system(others, signature, intercept=intercept)
        yield Fold(system, held_out[:, 1 : 1 + k], held_out[:, 1 + k :], None, held_out[:, 0])


def fold_predictions(
    fold: Fold, settings: Settings, regularizer: str, constraint: str | None, block: int = 64
) -> Iterable[tuple[slice, NDArray]]:
    """Validation predictions of all settings, in blocks: (slice of settings, (n_validation, settings, n_outputs))."""
    system = fold.system
    projected = (fold.basis - _outer(fold.constant, system.center)) @ system.lift
    ones = np.ones(len(projected)) if fold.constant is None else fold.constant
    plus, minus, radius = settings.resolve(system, regularizer)
    for start in range(0, settings.size, block):
        rows = slice(start, min(start + block, settings.size))
        r = None if radius is None else radius[rows]
        u = spectral_solution(system, plus[rows], minus[rows], r, regularizer, constraint).coef
        flat = (u / system.values).reshape(u.shape[0] * u.shape[1], u.shape[2])
        predicted = (projected @ flat.T.astype(projected.dtype)).reshape(len(projected), -1, len(system.offset))
        yield rows, predicted + ones[:, None, None] * system.offset


def _outer(constant: NDArray | None, center: NDArray) -> NDArray:
    return center if constant is None else np.outer(constant, center)


def squared_errors(folds: Iterable[Fold], settings: Settings, regularizer: str, constraint: str | None) -> NDArray:
    """Mean squared validation error of every setting and fold, shape (n_folds, S), outputs divided by their spread.

    Rows of a low-rank fold may be the triangular factor of its rows ``[1, Phi, Y]``: sums of squares are the same.
    """
    table = []
    for fold in folds:
        spread = np.where(fold.system.spread > 0, fold.system.spread, 1.0) ** 2
        total = len(fold.target) if fold.weight is None else fold.weight.sum()
        if fold.constant is not None:
            total = fold.constant @ fold.constant
        errors = np.empty(settings.size)
        for rows, predicted in fold_predictions(fold, settings, regularizer, constraint):
            square = (predicted - fold.target[:, None, :]) ** 2
            if fold.weight is not None:
                square *= fold.weight[:, None, None]
            errors[rows] = (square.sum(axis=0) / spread).mean(axis=1) / total
        table.append(errors)
    return np.array(table)
