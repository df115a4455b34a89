"""Which of several learners differ, from their losses on the same items and splits.

Let d be the difference of two learners' losses. The variance of its mean is estimated by ``v_R + SHARE * v_1``: v_R is
the variance of the items' mean differences over the R repeats, divided by the number of items; v_1 is the same of a
single repeat, averaged over the repeats. The second term stands for what items do to each other: an item acts by its
own prediction and, in the training sets, on those of others. Repeats do not remove it.

The critical value is the quantile of the largest of all judged differences for learners that are correlated as these
are, so that learners that predict alike count as one. With a `control`, which is named before any result is seen, only
differences to it are judged. Claims are made step by step: what is decided leaves, and the others are judged by their
own, smaller, critical value. Simulations are in ``benchmarks/compare.py``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

N_DRAWS = 4000
SHARE = 0.75
LEVEL = 0.95
#: Probabilities are kept between this and 1 minus this.
CLIP = 0.01


@dataclass(frozen=True)
class Judgment:
    """Mean losses of all learners, their differences, and which of these are beyond doubt.

    Entries [i, j] of arrays are about learner i compared with learner j; differences are positive if i is better.
    """

    loss: NDArray
    difference: NDArray
    standard_error: NDArray
    critical: float  # standard errors, for all judged pairs together
    critical_alone: float  # standard errors, for one pair
    better: NDArray

    def interval(self, i: int, j: int) -> tuple[float, float]:
        """Interval of a difference that holds together with those of all judged pairs, and agrees with `better`."""
        width = self.critical * self.standard_error[i, j]
        low = self.difference[i, j] - width
        high = self.difference[i, j] + width
        if self.better[i, j]:
            low = max(low, 0.0)
        if self.better[j, i]:
            high = min(high, 0.0)
        return float(low), float(high)

    def grade(self, i: int, j: int) -> str:
        """How learner i compares with j: better, worse, probably either, or not distinguishable."""
        if self.better[i, j]:
            return "better"
        if self.better[j, i]:
            return "worse"
        difference = self.difference[i, j]
        width = self.critical_alone * self.standard_error[i, j]
        if abs(difference) <= width:
            return "not distinguishable"
        return "probably better" if difference > 0.0 else "probably worse"


def judge(losses: NDArray, units: NDArray | None = None, control: int | None = None) -> Judgment:
    """Judge all pairs of learners, or those with the control.

    Parameters
    ----------
    losses : ndarray of shape (n_learners, n_repeats, n_items)
        A repeat with a nan is left out.
    units : ndarray of shape (n_items,) or None, default=None
        Groups of items that were never split.
    control : int or None, default=None
        A learner that was named before the results were seen.
    """
    is_complete = ~np.isnan(losses).any(axis=(0, 2))
    values = sum_units(losses[:, is_complete], units)
    n_learners, _, n_units = values.shape
    item_means = values.mean(axis=1)
    loss = item_means.mean(axis=1)
    difference = loss[None, :] - loss[:, None]
    covariance = covariance_of(item_means) / n_units
    standard_error = standard_errors(values, covariance)

    first, second = np.triu_indices(n_learners, 1)
    if control is not None:
        is_judged = (first == control) | (second == control)
        first, second = first[is_judged], second[is_judged]
    draws = draw_differences(covariance, n_units - 1)[:, first, second]
    scale = np.maximum(standard_error[first, second], 1e-300)
    sizes = np.abs(difference[first, second]) / scale
    is_decided = step_down(sizes, draws)

    better = np.zeros((n_learners, n_learners), dtype=bool)
    i, j = first[is_decided], second[is_decided]
    better[i, j] = difference[i, j] > 0
    better[j, i] = difference[i, j] < 0
    critical = float(np.quantile(draws.max(axis=1, initial=0.0), LEVEL))
    critical_alone = float(stdtrit(n_units - 1, 0.5 + LEVEL / 2))
    return Judgment(loss, difference, standard_error, critical, critical_alone, better)


def standard_errors(values: NDArray, covariance: NDArray) -> NDArray:
    """Standard errors of the differences of all pairs."""
    n_units = values.shape[2]
    covariances = [covariance_of(repeat) for repeat in values.swapaxes(0, 1)]
    of_one_repeat = np.mean(covariances, axis=0) / n_units
    variance = pair_variances(covariance) + SHARE * pair_variances(of_one_repeat)
    # learners that were equal so far may differ on the next item
    single = np.diag(covariance)
    one_disagreement = np.add.outer(single, single) / n_units
    result = np.sqrt(np.maximum(variance, one_disagreement))
    np.fill_diagonal(result, 0.0)
    return result


def step_down(sizes: NDArray, draws: NDArray) -> NDArray:
    """Which differences are beyond the largest that chance makes, of those not decided yet."""
    is_open = np.full(len(sizes), True)
    while is_open.any():
        critical = np.quantile(draws[:, is_open].max(axis=1), LEVEL)
        beyond = is_open & (sizes > critical)
        if not beyond.any():
            break
        is_open &= ~beyond
    return ~is_open


def sum_units(losses: NDArray, units: NDArray | None) -> NDArray:
    """Losses of units with the mean of all items: a unit of many items weighs more."""
    if units is None:
        return losses
    _, unit_of = np.unique(units, return_inverse=True)
    membership = np.eye(unit_of.max() + 1)[unit_of]
    n_items, n_units = membership.shape
    return losses @ membership * (n_units / n_items)


def covariance_of(values: NDArray) -> NDArray:
    """Covariances of rows, also of a single row."""
    return np.cov(values).reshape(len(values), len(values))


def pair_variances(covariance: NDArray) -> NDArray:
    """Variances of the differences of all pairs."""
    variances = np.diag(covariance)
    return np.maximum(np.add.outer(variances, variances) - 2 * covariance, 0.0)


def draw_differences(covariance: NDArray, df: int) -> NDArray:
    """Draws of all absolute differences in standard errors if no learner is better than another."""
    rng = np.random.default_rng(0)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    means = rng.normal(size=(N_DRAWS, len(roots))) @ roots.T
    differences = np.abs(means[:, :, None] - means[:, None, :])
    smallest = 1e-9 * np.trace(covariance) + 1e-300
    deviations = np.sqrt(np.maximum(pair_variances(covariance), smallest))
    estimated = np.sqrt(rng.chisquare(df, size=N_DRAWS) / df)
    return differences / deviations / estimated[:, None, None]


# --------------------------------------------------------------------------------------------- losses and chance


def log_losses(probabilities: NDArray, codes: NDArray) -> NDArray:
    """Log-loss of every item, with probabilities kept away from 0 and 1."""
    n_classes = probabilities.shape[1]
    clip = min(CLIP, 0.1 / n_classes)
    given = np.take_along_axis(probabilities, codes[:, None], axis=1)[:, 0]
    return -np.log(np.clip(given, clip, 1.0 - clip))


def chance_of_shuffled(losses: NDArray, shuffled: NDArray) -> float:
    """The chance that any learner is as good on shuffled labels as the best is on the real ones.

    Parameters
    ----------
    losses : ndarray of shape (n_learners,)
        Mean losses for the labels.
    shuffled : ndarray of shape (n_learners, n_shuffles)
        Mean losses of the same predictions for labels shuffled within the test sets.
    """
    mean = shuffled.mean(axis=1)
    spread = np.maximum(shuffled.std(axis=1, ddof=1), 1e-12)
    gain = ((mean - losses) / spread).max()
    chance_gains = ((mean[:, None] - shuffled) / spread[:, None]).max(axis=0)
    return float((1 + (chance_gains >= gain).sum()) / (1 + len(chance_gains)))
