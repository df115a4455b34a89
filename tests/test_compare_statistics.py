"""Differences between learners: the formulas, and by simulation how often they claim what is not there."""

import numpy as np
import pytest
from scipy import stats

from mercerless._statistics import compare_scores, critical_value

N_FOLDS = 5


def simulate(rng, n_items, n_learners, n_repeats, boost=0.0, shared=0.9, unstable=0.0):
    """Scores and out-of-fold items of nearest-mean classifiers that each see their own noisy copy of the features.

    All learners are equally good, but for `boost` in the first one's signal; `shared` is the part of the noise that
    they have in common, `unstable` moves every learner's threshold at random in every training.
    """
    y = np.repeat([0, 1], n_items // 2)
    X = np.sqrt(shared) * rng.normal(size=(n_items, 1, 3))
    X = X + np.sqrt(1 - shared) * rng.normal(size=(n_items, n_learners, 3))
    X[..., 0] += 0.6 * (2 * y - 1)[:, None]
    X[:, 0, 0] += boost * (2 * y - 1)
    scores, items = [], np.zeros((n_items, n_learners))
    for _ in range(n_repeats):
        fold = np.concatenate([rng.permutation(n_items // 2) % N_FOLDS for _ in range(2)])
        for k in range(N_FOLDS):
            test = fold == k
            zero, one = (X[~test & (y == label)].mean(axis=0) for label in (0, 1))
            nearer = ((X[test] - zero) ** 2).sum(-1) - ((X[test] - one) ** 2).sum(-1)
            nearer += unstable * rng.normal(size=n_learners)
            correct = ((nearer > 0) == (y[test] == 1)[:, None]).astype(float)
            scores.append(correct.mean(axis=0))
            items[test] += correct / n_repeats
    return np.array(scores), items


def claims(found):
    n = len(found.mean)
    return any(found.better(i, j) for i in range(n) for j in range(n) if i != j)


@pytest.mark.parametrize("n_learners, n_repeats, shared, unstable",
                         [(8, 2, 0.9, 0.0), (12, 1, 0.6, 0.0), (12, 3, 0.6, 1.5), (2, 3, 0.6, 0.0), (12, 1, 0.6, 1.5)])
def test_without_a_difference_one_is_claimed_in_at_most_five_percent(n_learners, n_repeats, shared, unstable):
    rng = np.random.default_rng(7)
    claimed = sum(
        claims(compare_scores(*simulate(rng, 100, n_learners, n_repeats, shared=shared, unstable=unstable), 0.25))
        for _ in range(300)
    )
    assert claimed / 300 <= 0.05


def test_the_uncorrected_test_would_claim_far_too_much():
    """The simulation can fail: ordinary paired t tests over the splits break it."""
    rng = np.random.default_rng(7)
    claimed = 0
    for _ in range(100):
        scores, _ = simulate(rng, 100, 8, 3)
        p = [stats.ttest_rel(scores[:, i], scores[:, j]).pvalue for i in range(8) for j in range(i)]
        claimed += np.nanmin(p) < 0.05
    assert claimed > 50


def test_a_difference_of_two_standard_errors_is_found_in_most_runs():
    rng = np.random.default_rng(7)
    runs = [compare_scores(*simulate(rng, 120, 2, 5, boost=0.27), 0.25) for _ in range(200)]
    means = np.array([run.mean for run in runs])
    size = (means[:, 0] - means[:, 1]).mean() / means[:, 1].std()
    assert 1.9 < size < 2.1  # in standard errors of one score, as a table would print them
    assert np.mean([run.better(0, 1) for run in runs]) > 0.5
    assert not any(run.better(1, 0) for run in runs)


def test_among_many_learners_three_standard_errors_are_found_in_most_runs():
    rng = np.random.default_rng(7)
    runs = [compare_scores(*simulate(rng, 120, 8, 5, boost=0.42), 0.25) for _ in range(150)]
    assert np.mean([any(run.better(0, j) for j in range(1, 8)) for run in runs]) > 0.8
    assert np.mean([claims(run) and not any(run.better(0, j) for j in range(1, 8)) for run in runs]) <= 0.05


def test_corrected_resampled_standard_error():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(10, 3))
    items = np.zeros((50, 3))  # no scatter over items: the splits decide
    found = compare_scores(scores, items, 0.25)
    difference = scores[:, 0] - scores[:, 1]
    assert found.difference[0, 1] == pytest.approx(difference.mean())
    assert found.standard_error[0, 1] == pytest.approx(np.sqrt((1 / 10 + 0.25) * difference.var(ddof=1)))
    assert found.critical == pytest.approx(stats.studentized_range.ppf(0.95, 3, 49) / np.sqrt(2))


def test_the_standard_error_over_items_is_a_floor():
    rng = np.random.default_rng(0)
    items = (rng.uniform(size=(60, 2)) < 0.5).astype(float)
    scores = np.tile(items.mean(axis=0), (5, 1))  # splits that agree by chance
    found = compare_scores(scores, items, 0.25)
    expected = np.sqrt(1.25 * (items[:, 0] - items[:, 1]).var(ddof=1) / 60)
    assert found.standard_error[0, 1] == pytest.approx(expected)
    low, high = found.interval(0, 1)
    assert low < found.difference[0, 1] < high


def test_two_learners_need_no_correction_for_many():
    assert critical_value(2, 30) == pytest.approx(stats.t.ppf(0.975, 30))
    assert critical_value(2, 30) == pytest.approx(stats.studentized_range.ppf(0.95, 2, 30) / np.sqrt(2), rel=1e-6)
    assert critical_value(1, 30) == 0.0


def test_identical_learners_are_not_distinguishable():
    scores, items = simulate(np.random.default_rng(0), 60, 1, 2)
    found = compare_scores(np.repeat(scores, 2, axis=1), np.repeat(items, 2, axis=1), 0.25)
    assert not claims(found)
