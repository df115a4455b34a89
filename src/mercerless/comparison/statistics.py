"""Differences between learners that were scored on the same splits of the same items.

Scores of overlapping training sets are correlated, so the ordinary paired t test claims far too much. Let ``v`` be the
variance of a mean difference as if items were independent: ``var / n``, from the out-of-fold contributions of n single
items (or groups of items), averaged over repeats. Two things add to it, and the larger of two bounds is used:

- ``2 v``: the items influence each other. An item acts on the score twice, by its own prediction and by its label in
  the training sets of the others. Without signal, a learner that is linear in the labels has the contributions
  ``c_i = sum_j y_i y_j k_ij``, and ``var(sum_i c_i)`` is exactly twice ``sum_i var(c_i)``, because every pair of items
  is counted in both directions. Repeats share the labels, so averaging over them leaves this factor as it is.
- ``(1 + r) v + (1/J + r/K) t`` for J splits, K in a repeat, and ``r = n_test / n_train``, the correction of Nadeau and
  Bengio [1]_ for training sets that overlap: ``t`` is the variance of the training, what the splits of one repeat
  differ by beyond what their different test items explain. It is zero for stable learners, and with few splits it is
  uncertain, so a pair never counts as more stable than the median of all pairs.

Both effects cannot be large at once: mutual influence makes the splits of a repeat differ less, unstable training
makes them differ more. Two learners that agree on all items may disagree on the next, so no pair counts as closer than
if it disagreed on one item. Repeats do not narrow the interval of a single learner, because they test the same items.

`benchmarks/papers/compare_statistics.py` measures what the intervals cover.

All pairs of L learners are judged together: the critical value is that of the studentized range [2]_ of L means,
so that with no real difference among the learners one is claimed in at most 5 % of all comparisons,
whichever learner happened to come out on top.

References
----------
.. [1] C. Nadeau and Y. Bengio (2003). "Inference for the generalization error". Machine Learning 52.
.. [2] J. W. Tukey (1953). "The problem of multiple comparisons".
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats


class ScoredSplit(NamedTuple):
    """Contributions of all learners' predictions to their scores, on the test items of one split."""

    repeat: int  # the splits of one repeat test different items
    units: NDArray  # the item, or the group of items, that every row is of
    strata: NDArray  # by which the splits were balanced, such as the class
    # of every test item to the score of every learner: their mean is the score
    contributions: NDArray


class Differences(NamedTuple):
    """All pairwise differences of L learners; entry ``[i, j]`` is learner i minus learner j."""

    mean: NDArray  # score of each learner
    half_width: NDArray  # of each learner's own interval, for itself alone
    difference: NDArray
    standard_error: NDArray
    critical: float  # how many standard errors make a difference, over all pairs together

    def interval(self, i: int, j: int) -> tuple[float, float]:
        """The simultaneous interval of learner i minus learner j."""
        center = self.difference[i, j]
        width = self.critical * self.standard_error[i, j]
        return float(center - width), float(center + width)

    def better(self, i: int, j: int) -> bool:
        """Whether i is better than j beyond doubt: the interval of the difference is above zero."""
        return bool(self.interval(i, j)[0] > 0.0)


def compare_splits(splits: Sequence[ScoredSplit], n_folds: int, mutual: float = 2.0) -> Differences:
    """All pairwise differences of learners that were scored on the same splits; a repeat may lack some of them.

    ``n_folds`` is how many splits a complete repeat has; the confidence, 95 %, is that over all pairs together.
    ``mutual`` is the largest factor on the variance of a mean by the influence of items on each other; see above.
    """
    ratio = 1.0 / (n_folds - 1)
    scores = np.array([split.contributions.mean(axis=0) for split in splits])
    covariance, n_units = _item_covariance(splits)
    of_items = _of_pairs(covariance)
    np.fill_diagonal(of_items, _variances_of_one_repeat(splits))
    of_training = (1.0 / len(splits) + ratio / n_folds) * _training_variance(splits, scores)
    variance = np.maximum(mutual * of_items, (1.0 + ratio) * of_items + of_training)
    variance = np.maximum(variance, _of_one_disagreement(variance, n_units))
    return _judged(scores.mean(axis=0), np.sqrt(variance), max(1, n_units - 1))


def compare_scores(scores: NDArray, n_folds: int) -> Differences:
    """All pairwise differences if only the scores of the splits are known, as for ranks or F1.

    The corrected resampled test of Nadeau and Bengio [1]_: the scatter of the splits' differences times ``1/J + r``,
    with J - 1 degrees of freedom. With five splits its intervals are wide; repeats narrow them.
    """
    n_splits, n_learners = scores.shape
    df = max(1, n_splits - 1)
    covariance = np.full((n_learners, n_learners), np.inf)
    if n_splits > 1:
        covariance = np.cov(scores, rowvar=False).reshape(n_learners, n_learners)
    variance = (1.0 / n_splits + 1.0 / (n_folds - 1)) * _of_pairs(covariance)
    return _judged(scores.mean(axis=0), np.sqrt(variance), df)


def _judged(mean: NDArray, standard_error: NDArray, df: int, level: float = 0.95) -> Differences:
    """Differences from means and standard errors: of each learner on the diagonal, of pairs beside it."""
    half_width = stats.t.ppf(0.5 + level / 2, df) * np.diag(standard_error)
    np.fill_diagonal(standard_error, 0.0)
    critical = critical_value(len(mean), df, level)
    difference = np.subtract.outer(mean, mean)
    return Differences(mean, half_width, difference, standard_error, critical)


@lru_cache
def critical_value(n_learners: int, df: int, level: float = 0.95) -> float:
    """Bound, in standard errors, of the largest of all pairwise differences with probability `level`."""
    if n_learners < 2:
        return 0.0
    if n_learners == 2:
        return float(stats.t.ppf(0.5 + level / 2, df))
    studentized_range = stats.studentized_range.ppf(level, n_learners, min(df, 1000))
    return float(studentized_range / np.sqrt(2.0))


def _of_pairs(covariance: NDArray) -> NDArray:
    """Variances of the learners on the diagonal, of their differences beside it."""
    variances = np.diag(covariance)
    of_pairs = np.add.outer(variances, variances) - 2.0 * covariance
    np.fill_diagonal(of_pairs, variances)
    return np.maximum(of_pairs, 0.0)


def _sums(units: NDArray, values: NDArray) -> NDArray:
    """Sums of the rows of every unit."""
    distinct, which = np.unique(units, return_inverse=True)
    n_columns = values.shape[1]
    sums = np.zeros((len(distinct), n_columns))
    np.add.at(sums, which, values)
    return sums


def _item_covariance(splits: Sequence[ScoredSplit]) -> tuple[NDArray, int]:
    """Covariance of the learners' mean scores over the choice of the items, and how many items or groups there are."""
    units = np.concatenate([split.units for split in splits])
    contributions = np.concatenate([split.contributions for split in splits])
    n_learners = contributions.shape[1]
    ones = np.ones(len(units))
    rows = np.column_stack([contributions, ones])
    units_of_splits = np.concatenate([np.unique(split.units) for split in splits])
    _, tested_in = np.unique(units_of_splits, return_counts=True)
    # of one repeat, averaged over the repeats that have the unit
    sums = _sums(units, rows) / tested_in[:, None]
    n_units = len(sums)
    if n_units < 2:
        return np.full((n_learners, n_learners), np.inf), n_units
    scores = sums[:, :-1]
    n_items = sums[:, -1].sum()
    covariance = np.cov(scores, rowvar=False)
    covariance = covariance.reshape(n_learners, n_learners)
    return covariance * n_units / n_items**2, n_units


def _variances_of_one_repeat(splits: Sequence[ScoredSplit]) -> NDArray:
    """Variance of each learner's mean score over the choice of the items, by the mean of complete repeats."""
    by_repeat: dict[int, list[ScoredSplit]] = {}
    for split in splits:
        by_repeat.setdefault(split.repeat, []).append(split)
    most = max(map(len, by_repeat.values()))
    complete = [of_repeat for of_repeat in by_repeat.values() if len(of_repeat) == most]
    variances = []
    for of_repeat in complete:
        covariance, _ = _item_covariance(of_repeat)
        variances.append(np.diag(covariance))
    return np.mean(variances, axis=0)


def _of_one_disagreement(variance: NDArray, n_units: int) -> NDArray:
    """Variances of pairs that are independent on one item, or group, and agree on all others; single ones as given."""
    single = np.diag(variance)
    floor = np.add.outer(single, single) / n_units
    np.fill_diagonal(floor, single)
    return floor


def _training_variance(splits: Sequence[ScoredSplit], scores: NDArray) -> NDArray:
    """Variances between the splits of a repeat beyond what the choice of their test items explains."""
    repeats = np.array([split.repeat for split in splits])
    n_learners = scores.shape[1]
    squares = np.zeros((n_learners, n_learners))
    df = 0
    for repeat in np.unique(repeats):
        of_repeat = scores[repeats == repeat]
        centered = of_repeat - of_repeat.mean(axis=0)
        squares = squares + centered.T @ centered
        df = df + len(centered) - 1
    if df == 0:
        return squares
    between = _of_pairs(squares / df)
    within = np.mean([_split_covariance(split) for split in splits], axis=0)
    explained = _of_pairs(within)
    excess = between - explained
    common_ratio = _median_ratio(excess, explained)
    return np.maximum(np.maximum(excess, common_ratio * explained), 0.0)


def _median_ratio(excess: NDArray, explained: NDArray) -> float:
    """Median over pairs of the unexplained variance, relative to that explained by the items."""
    pairs = np.triu_indices(len(excess), 1)
    excess = excess[pairs]
    explained = explained[pairs]
    is_known = explained > 0
    if not is_known.any():
        return 0.0
    return float(np.median(excess[is_known] / explained[is_known]))


def _split_covariance(split: ScoredSplit) -> NDArray:
    """Covariance of the learners' scores of one split over the choice of its test items inside the strata."""
    n_learners = split.contributions.shape[1]
    n_items = len(split.units)
    covariance = np.zeros((n_learners, n_learners))
    for stratum in np.unique(split.strata):
        rows = split.strata == stratum
        sums = _sums(split.units[rows], split.contributions[rows])
        if len(sums) > 1:
            covariance += len(sums) * np.cov(sums, rowvar=False)
    return covariance / n_items**2
