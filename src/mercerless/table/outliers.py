"""Weights of rows whose targets are gross errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercerless.core.averaging import paired_z
from mercerless.core.folds import assign_folds, some_rows
from mercerless.core.scaling import robust_scaling
from mercerless.lab.model import Expansion, Rows, Settings, with_coefficients
from mercerless.lab.selection import LocalLearner

SMALL_ROWS = 3000  # on which small models look for outliers


@dataclass(frozen=True)
class OutlierLimits:
    """When targets are looked at, and when a row is far off."""

    #: Centers of the small models.
    centers: int = 100
    #: Robust standard deviations from which a row is far off ...
    far: float = 6.0
    #: ... and how many such rows make a search worthwhile.
    fewest: int = 3
    #: Residuals up to so many standard deviations have weight one.
    cut: float = 4.0
    #: Standard errors by which the held-out error must fall.
    sure: float = 1.5
    #: Standard deviations of gross errors.
    gross: float = 10.0
    #: How many times larger than all others these are.
    gap: float = 2.5
    #: Rows that miss the same value, whose residuals are compared.
    fewest_gaps: int = 5
    #: How many times larger targets are, from the median, if they are fewer than `fewest`.
    lone_gap: float = 10.0


LIMITS = OutlierLimits()

FOLDS = 3


def outlier_weights(
    X: NDArray,
    Y: NDArray,
    weight: NDArray | None,
    together: NDArray,
    seed: int,
    gaps: NDArray | None = None,
) -> NDArray | None:
    """Weights ``min(1, (4 s / |r|)^2)`` of all rows for their residuals r; None where they do not help.

    Small models with shared bandwidths are learned without and with these weights (two steps of iterated weights), s is
    the residuals' median absolute deviation as a standard deviation. They are taken where the weighted models have the
    smaller squared error on all held-out rows, outliers included, by 1.5 standard errors: errors far off the function
    are noise to both, while rows that are merely hard to predict count in full. Where residuals have a gap, with rows
    beyond 10 s and 2.5 times all others, these rows do not judge: they would hide everything else. Nor do one or two
    whose targets themselves are 10 times as far from the median as all others, which have no tails. `together` numbers
    sets of copies. `gaps` (n, k) mark missing values: a row is compared with those that miss the same, whose s may be
    larger, for what nobody can predict is no error.
    """
    gaps = np.zeros((len(X), 0), dtype=bool) if gaps is None else gaps
    sizes = _deviations(Y - np.median(Y, axis=0))
    alone = _alone(sizes)
    if np.sum(sizes > LIMITS.far) < LIMITS.fewest and not alone.any():
        return None
    few = some_rows(len(X), SMALL_ROWS, seed)
    scaling = robust_scaling(X[few])
    rows = Rows(
        scaling(X[few]), Y[few], None if weight is None else weight[few] / weight[few].mean()
    )
    fold = assign_folds(FOLDS, len(few), together=together[few], random_state=seed)
    plain = out_of_fold(rows, rows.weight, fold, seed)
    residual = plain - rows.Y
    missing = gaps[few]
    if np.sum(_deviations(residual, missing) > LIMITS.far) < LIMITS.fewest and not alone[few].any():
        return None
    guess = _weights(residual, missing)
    base = np.ones(len(few)) if rows.weight is None else rows.weight
    robust = out_of_fold(rows, base * guess, fold, seed)
    far = alone[few] | _beyond_a_gap(_deviations(robust - rows.Y, missing))
    if far.any():  # which the first step may not have overcome
        guess = _weights(robust - rows.Y, missing)
        robust = out_of_fold(rows, base * guess, fold, seed)
        far |= _beyond_a_gap(_deviations(robust - rows.Y, missing))
    losses = [np.where(far, 0.0, np.sum((p - rows.Y) ** 2, axis=1)) for p in (robust, plain)]
    if paired_z(losses[0], losses[1], rows.weight) < LIMITS.sure:
        return None
    if len(few) == len(X):
        return _weights(robust - rows.Y, missing)
    last = _small_model(Rows(rows.X, rows.Y, base * guess), seed)
    residual = last.predict(scaling(X), rows.X) - Y
    residual[few] = robust - rows.Y  # of rows that made the model, those of other folds
    return _weights(residual, gaps)


def _deviations(residual: NDArray, gaps: NDArray | None = None) -> NDArray:
    """Of every row the largest residual in robust standard deviations of its output, and of rows with the same gaps."""
    sizes = np.abs(residual)
    scale = np.broadcast_to(1.4826 * np.median(sizes, axis=0), sizes.shape).copy()
    for gap in [] if gaps is None else gaps.T:
        if np.sum(gap) >= LIMITS.fewest_gaps:
            scale[gap] = np.maximum(scale[gap], np.quantile(sizes[gap], 0.9, axis=0) / 1.645)
    return np.max(sizes / np.where(scale > 0, scale, np.inf), axis=1)


def are_gross(share: NDArray) -> bool:
    """Whether rows that lost weight, to these shares of it, lie beyond a gap: errors, and not tails."""
    sizes = LIMITS.cut / np.sqrt(share)
    return bool(np.any(_beyond_a_gap(sizes) | _alone(sizes)))


def _alone(sizes: NDArray) -> NDArray:
    """One or two rows very far off, where no others are: errors, and not tails."""
    far = _beyond_a_gap(sizes, LIMITS.lone_gap, 1)
    return far & (np.sum(far) < LIMITS.fewest) & (np.max(sizes[~far]) <= LIMITS.gross)


def _beyond_a_gap(sizes: NDArray, gap: float = LIMITS.gap, fewest: int = LIMITS.fewest) -> NDArray:
    """Rows far off, with deviations a multiple of all others; none where these grow without a gap."""
    order = np.sort(sizes)
    gaps = (order[1:] > LIMITS.gross) & (order[1:] > gap * order[:-1])
    gaps[len(gaps) - fewest + 1 :] = False
    return sizes > order[1:][gaps].min(initial=np.inf) * (1 - 1e-9)


def _weights(residual: NDArray, gaps: NDArray) -> NDArray:
    return 1 / np.maximum(_deviations(residual, gaps) / LIMITS.cut, 1) ** 2


def _small_model(rows: Rows, seed: int) -> Expansion:
    settings = Settings(seed=seed, linear=rows.X.shape[1] <= max(50, LIMITS.centers))
    support = np.random.RandomState(seed).permutation(len(rows))[: LIMITS.centers]
    state = LocalLearner("gaussian", settings).learn_shared(rows, support, max_iter=30)
    return with_coefficients(
        Expansion("gaussian", support, state.log_bandwidths, state.log_ridge), rows, settings
    )


def out_of_fold(rows: Rows, weight: NDArray | None, fold: NDArray, seed: int) -> NDArray:
    out = np.empty_like(rows.Y)
    for k in np.unique(fold):
        train = np.flatnonzero(fold != k)
        known = Rows(
            rows.X[train],
            rows.Y[train],
            None if weight is None else weight[train] / weight[train].mean(),
        )
        out[fold == k] = _small_model(known, seed).predict(rows.X[fold == k], known.X)
    return out
