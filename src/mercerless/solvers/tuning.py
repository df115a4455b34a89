"""Choosing parameters: many settings of one decomposition per fold, calibration, and descent with restarts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from mercerless._validation import row_blocks
from mercerless.solvers.krein import (
    KreinSystem,
    augmented_rows,
    build_low_rank_system,
    build_system,
    row_factor,
    spectral_solution,
)
from mercerless.solvers.stack import calibrate

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


class Calibration(NamedTuple):
    """``softmax(slope * scores + bias)`` are probabilities."""

    slope: float
    bias: NDArray  # (n_classes,)
    loss: float  # mean negative log-likelihood
    gradient: float  # relative gradient norm: the certificate


def calibrate_scores(scores: NDArray, labels: NDArray, weight: NDArray | None = None) -> Calibration:
    """Minimize the log-loss of ``softmax(t * scores / std + b)`` over t >= 0.01 and b, with a weak prior.

    Parameters
    ----------
    scores : array of shape (n, n_classes)
        Out-of-fold scores; for two classes ``[-f / 2, f / 2]``, which makes this Platt's method.
    labels : integer array of shape (n,)
        Column of the true class.
    weight : array of shape (n,), optional

    Notes
    -----
    `stack.calibrate` for one setting: its prior, 0.05 (t - 1)^2 / 2 + 0.5 |b|^2 / 2 added to the sum of losses, makes
    the problem strictly convex, so that separable or one-sided scores stay finite; weights are scaled to mean one
    against it. Where the slope would be smaller (scores that are no better than none), it is held at the bound, which
    keeps their order. Constant scores have slope one.
    """
    n, n_classes = scores.shape
    w = np.ones(n) if weight is None else weight * (n / weight.sum())
    found = calibrate(scores[None], np.eye(n_classes)[labels], w, smallest_slope=0.01)
    slope = float(found.slope[0] / found.scale[0]) if np.isfinite(found.scale[0]) else 1.0
    bias = found.offset[0] - slope * float(found.shift[0])
    losses = -log_softmax(slope * scores + bias, axis=1)[np.arange(n), labels]
    return Calibration(slope, bias, float(w @ losses / n), found.gradient)


class Descent(NamedTuple):
    """The best point found, its value, the largest entry of its projected gradient, and the work done.

    The gradient is divided by the value where that exceeds one.
    """

    x: NDArray
    value: float
    gradient: float
    n_evaluations: int
    values: NDArray  # (n_starts,) after the short runs


def minimize_with_restarts(
    function: Callable[[NDArray], tuple[float, NDArray]],
    starts: Sequence[NDArray],
    bounds: NDArray,
    *,
    short_iter: int = 20,
    long_iter: int = 200,
    tol: float = 1e-6,
    callback: Callable[[dict], bool | None] | None = None,
) -> Descent:
    """Minimize a smooth function by L-BFGS-B: a short run from every start, then a long one from the best.

    The scheme of Oglic and Gaertner (2018), appendix C: 10 starts of 20 iterations, then 200. Guarantee: a stationary
    point within the bounds, no worse than any start. `callback` gets a dict after every run and stops when it
    returns True.
    """
    bounds = np.asarray(bounds, dtype=float)
    n_evaluations = 0

    def descend(start, limit):
        nonlocal n_evaluations
        options = {"maxiter": limit, "gtol": tol, "ftol": 1e-10}
        start = np.clip(start, *bounds.T)
        run = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        n_evaluations += run.nfev
        return run

    best, values, stopped = None, [], False
    for i, start in enumerate(starts):
        run = descend(start, short_iter)
        values.append(float(run.fun))
        if np.isfinite(run.fun) and (best is None or run.fun < best.fun):
            best = run
        if callback is not None and callback({"stage": "start", "index": i, "value": float(run.fun)}):
            stopped = True
            break
    if best is None:
        raise ValueError("the function is not finite at any start.")
    if not stopped and long_iter > 0:
        run = descend(best.x, long_iter)
        best = run if run.fun <= best.fun else best
    projected = np.clip(best.x - best.jac, *bounds.T) - best.x
    gradient = float(np.abs(projected).max(initial=0.0) / max(abs(best.fun), 1.0))
    return Descent(best.x, float(best.fun), gradient, n_evaluations, np.array(values))
