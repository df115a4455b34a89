"""Calibration of scores: its objective, Platt's method, and scores that say nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from mercerless.core.calibration import calibrate_scores, cross_calibrate, fit_temperature


@pytest.mark.parametrize("strength", [1.0, 8.0, -8.0])  # the prior bounds separable scores
def test_calibration_minimizes_its_objective(strength):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    scores = rng.standard_normal((200, 3)) + strength * np.eye(3)[labels]
    weight = rng.uniform(0.5, 2, 200)
    result = calibrate_scores(scores, labels, weight)
    w = weight / weight.mean()
    std = np.sqrt(
        np.average(((scores - np.average(scores.mean(1), weights=w)) ** 2).mean(1), weights=w)
    )
    mean = np.average(scores.mean(1), weights=w)

    def objective(x):
        P = softmax(x[0] * (scores - mean) / std + x[1:], axis=1)
        return (
            -w @ np.log(P[np.arange(200), labels])
            + 0.025 * (x[0] - 1) ** 2
            + 0.25 * np.sum(x[1:] ** 2)
        )

    bounds = [(0.01, None), *[(None, None)] * 3]
    best = minimize(objective, np.r_[1.0, np.zeros(3)], bounds=bounds, tol=1e-12)
    assert_allclose(result.slope, best.x[0] / std, rtol=1e-4)
    assert_allclose(result.bias + result.slope * mean, best.x[1:], atol=1e-4)


def test_calibration_of_two_classes_is_platts_method():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    f = rng.standard_normal(4000) + 1.2 * y
    result = calibrate_scores(np.column_stack([-f / 2, f / 2]), y, np.ones(4000))
    logistic = LogisticRegression(C=np.inf).fit(f[:, None], y)
    assert_allclose(result.slope, logistic.coef_[0, 0], rtol=2e-2)
    assert_allclose(result.bias[1] - result.bias[0], logistic.intercept_[0], rtol=2e-2)


def test_calibration_keeps_useless_and_separable_scores_finite():
    y = np.repeat([0, 1], 20)
    f = np.where(y == 1, 5.0, -5.0)
    good = calibrate_scores(np.column_stack([-f, f]), y, np.ones(40))
    bad = calibrate_scores(np.column_stack([f, -f]), y, np.ones(40))
    constant = calibrate_scores(np.zeros((40, 2)), y, np.ones(40))
    assert np.isfinite(good.slope)
    assert good.slope > 0
    assert 0 < bad.slope < 1e-2
    assert_allclose(constant.loss, np.log(2), rtol=1e-6)


def test_constant_scores_give_the_shares_of_the_classes_whatever_a_row_without_weight_has():
    y = np.repeat([0, 1], [60, 20])
    weight = np.where(y == 1, 2.0, 1.0)
    scores = np.full((80, 2), 3.0)
    constant = calibrate_scores(scores, y, weight)
    assert constant.slope == 1.0
    proba = constant(scores)
    assert_allclose(proba, np.broadcast_to(proba[0], proba.shape))
    assert 0.5 < proba[0, 0] < 0.6  # 60 of 100, pulled to a half
    scores[:5] = 9.0
    weight[:5] = 0.0
    other = calibrate_scores(scores, y, weight)
    assert other.slope == 1.0
    assert_allclose(
        other.logits(scores[5:]).sum(axis=1), constant.logits(scores[5:]).sum(axis=1), atol=1e-8
    )


def test_cross_calibration_never_sees_its_own_label():
    rng = np.random.RandomState(0)
    scores, labels, fold_of = rng.normal(size=(30, 3)), rng.randint(3, size=30), np.arange(30) % 3
    weight = rng.uniform(0.1, 5.0, 30)
    for given in (np.ones(30), weight):
        before = cross_calibrate(scores, labels, given, fold_of)
        changed = np.where(fold_of == 1, 0, labels)
        after = cross_calibrate(scores, changed, given, fold_of)
        assert_array_equal(before[fold_of == 1], after[fold_of == 1])
        others = fold_of != 0
        calibration = calibrate_scores(scores[others], labels[others], given[others])
        assert_allclose(before[~others], calibration(scores[~others]))


@pytest.mark.parametrize("n", [1, 4, 1000])  # rows that are certain of the wrong class
def test_the_temperature_minimizes_its_objective_above_its_bound(n):
    proba = np.tile([0.9, 0.1], (200 + n, 1))
    onehot = np.eye(2)[np.repeat([0, 1], [200, n])]
    weight = np.linspace(0.5, 1.5, 200 + n)
    found = fit_temperature(proba, onehot, weight)

    def objective(b):
        return weight @ -np.log(softmax(b * np.log(proba), axis=1)[onehot > 0]) + 1.5 * (b - 1) ** 2

    steps = np.arange(0.05, 3.0, 0.001)
    assert abs(found - steps[np.argmin([objective(b) for b in steps])]) <= 0.001
    assert (found == 0.05) == (n == 1000)
