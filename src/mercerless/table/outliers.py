"""Trust in the targets of single rows: rows whose targets are gross errors lose weight."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercerless.core.averaging_old import paired_z
from mercerless.core.folds import assign_folds
from mercerless.lab.model import Rows
from mercerless.table.small import small_model, small_predictions, small_table


@dataclass(frozen=True)
class OutlierLimits:
    """When targets are checked, and when a row is far off."""

    #: With fewer rows nothing is looked for.
    fewest_rows: int = 100
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


def trust_in_targets(
    X: NDArray, Y: NDArray, weight: NDArray, together: NDArray, seed: int, gaps: NDArray
) -> NDArray:
    """Factors ``min(1, (4 s / |r|)^2)`` of the weights of all rows for their residuals r; ones if they do not help.

    Small models with shared bandwidths are learned without and with these factors (two steps of iterated weights), s is
    the residuals' median absolute deviation as a standard deviation. They are used if the weighted models have the
    smaller squared error on all held-out rows, outliers included, by 1.5 standard errors: errors far off the function
    are noise to both, while rows that are merely hard to predict count in full. If residuals have a gap, with rows
    beyond 10 s and 2.5 times all others, these rows do not judge: they would hide everything else. Nor do one or two
    whose targets themselves are 10 times as far from the median as all others, which have no tails. `together` numbers
    sets of copies. `gaps` (n, k) mark missing values: a row is compared with those that miss the same, whose s may be
    larger, because an unpredictable target is no error.
    """
    full_trust = np.ones(len(X))
    from_median = Y - np.median(Y, axis=0)
    sizes = scaled_residuals(from_median, gaps[:, :0])
    is_alone = _alone(sizes)
    if not (_several_are_far(sizes) or is_alone.any()):
        return full_trust

    sample, rows, scaling = small_table(X, Y, weight, seed)
    missing = gaps[sample]
    is_alone = is_alone[sample]
    fold = assign_folds(3, len(sample), together=together[sample], random_state=seed)

    def residuals(trust: NDArray) -> NDArray:
        return small_predictions(rows, rows.weight * trust, fold, seed) - rows.Y

    plain = residuals(np.ones(len(sample)))
    if not (_several_are_far(scaled_residuals(plain, missing)) or is_alone.any()):
        return full_trust
    trust = _trust(plain, missing)
    robust = residuals(trust)
    is_gross = is_alone | _beyond_a_gap(scaled_residuals(robust, missing))
    if is_gross.any():  # the first step may not have overcome them
        trust = _trust(robust, missing)
        robust = residuals(trust)
        is_gross |= _beyond_a_gap(scaled_residuals(robust, missing))

    loss = np.sum(robust**2, axis=1)
    loss_of_plain = np.sum(plain**2, axis=1)
    loss[is_gross] = 0.0
    loss_of_plain[is_gross] = 0.0
    if paired_z(loss, loss_of_plain, rows.weight) < LIMITS.sure:
        return full_trust
    if len(sample) == len(X):
        return _trust(robust, missing)
    model = small_model(Rows(rows.X, rows.Y, rows.weight * trust), seed)
    residual = model.predict(scaling(X), rows.X) - Y
    residual[sample] = robust  # of rows that made the model, those of other folds
    return _trust(residual, gaps)


def scaled_residuals(residual: NDArray, gaps: NDArray) -> NDArray:
    """Largest residual per row, in robust standard deviations of its output and of rows with the same gaps."""
    sizes = np.abs(residual)
    scale = np.broadcast_to(1.4826 * np.median(sizes, axis=0), sizes.shape).copy()
    for gap in gaps.T:
        if np.sum(gap) >= LIMITS.fewest_gaps:
            of_these = np.quantile(sizes[gap], 0.9, axis=0) / 1.645
            scale[gap] = np.maximum(scale[gap], of_these)
    scale[scale <= 0] = np.inf
    return np.max(sizes / scale, axis=1)


def are_gross(trust: NDArray) -> bool:
    """Whether rows that are trusted less lie beyond a gap: errors, and not tails."""
    sizes = LIMITS.cut / np.sqrt(trust)
    return bool(np.any(_beyond_a_gap(sizes) | _alone(sizes)))


def _several_are_far(sizes: NDArray) -> bool:
    return bool(np.sum(sizes > LIMITS.far) >= LIMITS.fewest)


def _alone(sizes: NDArray) -> NDArray:
    """One or two rows very far off if no others are far off: errors, and not tails."""
    far = _beyond_a_gap(sizes, LIMITS.lone_gap, fewest=1)
    others_are_near = np.max(sizes[~far]) <= LIMITS.gross
    return far & (np.sum(far) < LIMITS.fewest) & others_are_near


def _beyond_a_gap(sizes: NDArray, gap: float = LIMITS.gap, fewest: int = LIMITS.fewest) -> NDArray:
    """Rows beyond a gap: at least so few, each `gap` times as large as every row below it."""
    ascending = np.sort(sizes)
    smaller = ascending[:-1]
    larger = ascending[1:]
    is_gap = (larger > LIMITS.gross) & (larger > gap * smaller)
    is_gap[len(is_gap) - fewest + 1 :] = False
    smallest_beyond = larger[is_gap].min(initial=np.inf)
    return sizes > smallest_beyond * (1 - 1e-9)


def _trust(residual: NDArray, gaps: NDArray) -> NDArray:
    """``min(1, (4 s / |r|)^2)``."""
    excess = np.maximum(scaled_residuals(residual, gaps) / LIMITS.cut, 1)
    return 1 / excess**2
