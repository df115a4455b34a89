"""The statistics of a comparison against formulas written another way, and against simulations."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import log_loss

from mercerless.comparison.statistics import SHARE, chance_of_shuffled, judge, log_losses

RNG = np.random.default_rng(3)


def losses(n_learners=4, n_repeats=3, n_items=80, effect=0.0, seed=0):
    """Losses with an item's difficulty in common, and noise that changes with the repeat."""
    rng = np.random.default_rng(seed)
    items = rng.gamma(2.0, size=n_items)
    own = rng.normal(size=(n_learners, 1, n_items))
    noise = 0.3 * rng.normal(size=(n_learners, n_repeats, n_items))
    return items + own + noise + effect * np.arange(n_learners)[:, None, None]


def test_the_variance_is_that_of_means_and_of_single_repeats():
    L = losses()
    judged = judge(L)
    for i, j in ((0, 1), (2, 3)):
        d = L[j] - L[i]
        v_R = d.mean(axis=0).var(ddof=1) / d.shape[1]
        v_1 = np.mean([row.var(ddof=1) for row in d]) / d.shape[1]
        assert judged.standard_error[i, j] == pytest.approx(np.sqrt(v_R + SHARE * v_1))
        assert judged.difference[i, j] == pytest.approx(d.mean())


def test_two_learners_have_the_critical_value_of_t():
    judged = judge(losses(2, n_items=40))
    assert judged.critical == pytest.approx(stats.t.ppf(0.975, 39), rel=0.03)
    assert judged.critical_alone == pytest.approx(stats.t.ppf(0.975, 39))


def test_learners_that_predict_alike_count_as_one():
    L = losses(2)
    copies = np.concatenate([L, L[1:] + 1e-9 * RNG.normal(size=L[1:].shape)])
    assert judge(copies, control=0).critical == pytest.approx(
        judge(L, control=0).critical, rel=0.05
    )
    assert judge(losses(8)).critical > judge(losses(8), control=0).critical > judge(L).critical


def test_groups_are_the_units():
    L, groups = losses(n_items=60), np.arange(60) // 6
    by_hand = L.reshape(4, 3, 10, 6).mean(axis=3)
    grouped, averaged = judge(L, groups), judge(by_hand)
    np.testing.assert_allclose(grouped.standard_error, averaged.standard_error)
    np.testing.assert_allclose(grouped.difference, averaged.difference)


def test_an_incomplete_repeat_is_left_out_and_order_does_not_matter():
    L = losses()
    cut = L.copy()
    cut[2, 1, 5] = np.nan
    np.testing.assert_allclose(judge(cut).standard_error, judge(L[:, [0, 2]]).standard_error)
    order = RNG.permutation(80)
    np.testing.assert_allclose(judge(L[:, :, order]).standard_error, judge(L).standard_error)


def test_what_is_better_has_an_interval_without_zero():
    judged = judge(losses(effect=1.0), control=0)
    assert judged.better[0, 3] and not judged.better[1, 3]  # only pairs with the control
    for j in range(1, 4):
        low, high = judged.interval(0, j)
        assert (low >= 0) == bool(judged.better[0, j])
        assert low < judged.difference[0, j] < high
    assert judged.grade(0, 3) == "better"
    assert judged.grade(3, 0) == "worse"


def test_log_losses_are_those_of_scikit_learn():
    P = RNG.dirichlet(np.ones(3), size=50).clip(0.02, 0.98)
    P /= P.sum(axis=1, keepdims=True)
    codes = RNG.integers(0, 3, 50)
    P = np.clip(P, 0.011, 0.989)
    P /= P.sum(axis=1, keepdims=True)
    assert log_losses(P, codes).mean() == pytest.approx(log_loss(codes, P, labels=[0, 1, 2]))
    sure = np.eye(3)[codes]
    assert log_losses(sure, (codes + 1) % 3).max() == pytest.approx(-np.log(0.01))


def test_the_chance_of_shuffled_labels_is_uniform_without_signal():
    chances = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(3, 100)) + rng.normal(size=100)
        chances.append(chance_of_shuffled(values[:, 0], values[:, 1:]))
    assert stats.kstest(chances, "uniform").pvalue > 0.001
    assert chance_of_shuffled(np.array([-5.0, 0.0]), RNG.normal(size=(2, 99))) == 0.01


@pytest.mark.slow
def test_false_differences_and_coverage_by_simulation():
    """Equal learners on noise: the same losses up to items' own deviations."""
    false, covered = 0, []
    for seed in range(300):
        judged = judge(losses(5, 3, 60, seed=seed))
        false += judged.better.any()
        covered.append(
            np.abs(judged.difference[0, 1]) <= judged.critical_alone * judged.standard_error[0, 1]
        )
    assert false / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)
