"""Differences between learners that were scored on the same splits of the same items.

Scores of overlapping training sets are correlated, so the ordinary paired t test claims far too much. Here a
difference has the larger of two standard errors:

- over splits, with the correction of Nadeau and Bengio [1]_: ``sqrt((1/J + r) var)`` of J splits with
  ``r = n_test / n_train``;
- over items, ``sqrt((1 + r) var / n)`` of the out-of-fold contributions of n single items (or groups of items): many
  more of them, so it keeps the first from collapsing when a few splits agree by chance.

All pairs of L learners are judged together: the critical value is that of the studentized range [2]_ of L means,
so that with no real difference among the learners one is claimed in at most `1 - level` of all comparisons,
whichever learner happened to come out on top.

References
----------
.. [1] C. Nadeau and Y. Bengio (2003). "Inference for the generalization error". Machine Learning 52.
.. [2] J. W. Tukey (1953). "The problem of multiple comparisons".
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats


class Differences(NamedTuple):
    """All pairwise differences of L learners; entry ``[i, j]`` is learner i minus learner j.

    Parameters
    ----------
    mean : ndarray of shape (L,)
        The mean score of each learner.
    half_width : ndarray of shape (L,)
        Half the width of each learner's own interval, for itself alone.
    difference : ndarray of shape (L, L)
        Mean differences.
    standard_error : ndarray of shape (L, L)
        Their standard errors.
    critical : float
        How many standard errors make a difference, over all pairs together.
    """

    mean: NDArray
    half_width: NDArray
    difference: NDArray
    standard_error: NDArray
    critical: float

    def interval(self, i: int, j: int) -> tuple[float, float]:
        """The simultaneous interval of learner i minus learner j."""
        centre, width = self.difference[i, j], self.critical * self.standard_error[i, j]
        return float(centre - width), float(centre + width)

    def better(self, i: int, j: int) -> bool:
        """Tell whether i is better than j beyond doubt: the interval of the difference is above zero."""
        return bool(self.interval(i, j)[0] > 0.0)


def compare_scores(
    scores: NDArray, items: NDArray, test_ratio: float | None, level: float = 0.95
) -> Differences:
    """All pairwise differences of learners scored on the same splits.

    Parameters
    ----------
    scores : ndarray of shape (n_splits, n_learners)
        The score of every learner on every split; higher is better.
    items : ndarray of shape (n_items, n_learners)
        What each item, or group of items, contributes to the score of each learner, averaged over repeats and
        scaled so that the column means are scores.
    test_ratio : float or None
        ``n_test / n_train`` of one split; None for a single given split, judged over its items alone.
    level : float, default=0.95
        Confidence, over all pairs together.

    Returns
    -------
    Differences
        Means, differences, standard errors and the critical value.
    """
    n_splits, n_learners = scores.shape
    standard_error = _standard_errors(items, (1.0 + (test_ratio or 0.0)) / len(items))
    df = max(1, len(items) - 1)
    if test_ratio is not None and n_splits > 1:
        standard_error = np.maximum(standard_error, _standard_errors(scores, 1.0 / n_splits + test_ratio))
    mean = scores.mean(axis=0)
    critical = critical_value(n_learners, df, level)
    own = np.diag(standard_error)
    pairs = standard_error - np.diag(own)
    return Differences(
        mean, stats.t.ppf(0.5 + level / 2, df) * own, mean[:, None] - mean[None, :], pairs, critical
    )


@lru_cache
def critical_value(n_learners: int, df: int, level: float = 0.95) -> float:
    """How many standard errors the largest of all pairwise differences exceeds with probability ``1 - level``."""
    if n_learners < 2:
        return 0.0
    if n_learners == 2:
        return float(stats.t.ppf(0.5 + level / 2, df))
    return float(stats.studentized_range.ppf(level, n_learners, min(df, 1000)) / np.sqrt(2.0))


def _standard_errors(values: NDArray, factor: float) -> NDArray:
    """Standard errors of the columns' means on the diagonal, of their differences beside it."""
    if len(values) < 2:
        return np.full((values.shape[1],) * 2, np.inf)
    covariance = np.cov(values, rowvar=False).reshape(values.shape[1], -1)
    variances = np.diag(covariance)
    of_pairs = variances[:, None] + variances[None, :] - 2.0 * covariance
    np.fill_diagonal(of_pairs, variances)
    return np.sqrt(factor * np.maximum(of_pairs, 0.0))
