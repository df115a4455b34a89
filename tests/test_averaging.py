"""Weights of several models: optimal by an independent route, and blind to the items they are judged on."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls
from scipy.special import log_softmax

from mercerless.core.averaging import (
    STACKED_CLASSES,
    STACKED_NUMBERS,
    TABLE_CLASSES,
    TABLE_NUMBERS,
    TWO_SIDES,
    average,
    cross_fitted,
)


def models(n=60, n_members=4, q=2, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, q))
    noise = 0.3 * np.arange(1, n_members + 1)[:, None, None]
    return Y + noise * rng.normal(size=(n_members, n, q)), Y, rng.uniform(0.5, 2.0, n)


def weights_that_sum_to_one(predictions, Y, weight, pull):
    """The same problem with a heavy row for the sum."""
    errors = ((predictions - Y) * np.sqrt(weight)[:, None]).reshape(len(predictions), -1).T
    n_members = len(predictions)
    heavy = 1e4 * np.sqrt(np.sum(errors**2) + pull)
    rows = np.vstack([errors, np.sqrt(pull) * np.eye(n_members), np.full((1, n_members), heavy)])
    right = np.r_[np.zeros(len(errors)), np.full(n_members, np.sqrt(pull) / n_members), heavy]
    found = nnls(rows, right)[0]
    return found / found.sum()


@pytest.mark.parametrize("pull", [0.1, 10.0, 1000.0])
def test_a_fixed_sum_is_that_of_the_constrained_problem(pull):
    predictions, Y, weight = models()
    rule = replace(TABLE_NUMBERS, pull=pull, smallest=0.0, max_members=None)
    result = average(predictions, Y, weight, rule)
    best = min(weight @ ((p - Y) ** 2).sum(axis=1) for p in predictions) / Y.size
    expected = weights_that_sum_to_one(predictions, Y, weight, pull * best)
    assert_allclose(result.weights, expected, rtol=1e-9, atol=1e-12)
    assert result.residual <= 1e-12


def test_weights_of_several_models():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(400, 2))
    good, fair, bad = (
        Y + 0.1 * rng.normal(size=Y.shape),
        Y + 0.1 * rng.normal(size=Y.shape),
        rng.normal(size=Y.shape),
    )
    w = average([bad, good, fair], Y, None, TABLE_NUMBERS).weights
    assert w[0] == 0 and np.isclose(w.sum(), 1) and np.all(np.abs(w[1:] - 0.5) < 0.2)
    blend = sum(a * p for a, p in zip(w, (bad, good, fair)))
    assert np.mean((blend - Y) ** 2) < min(np.mean((p - Y) ** 2) for p in (good, fair))
    assert_array_equal(average([Y, good], Y, None, TABLE_NUMBERS).weights, [1, 0])
    assert_array_equal(average([good], Y, None, TABLE_NUMBERS).weights, [1])
    mean = (good + fair) / 2 + 0.1 * rng.normal(size=Y.shape)
    one = replace(TABLE_NUMBERS, max_members=1)
    assert np.sum(average([good, fair, mean], Y, None, one).weights > 0) == 1


def test_small_members_are_dropped_and_the_rest_solved_again():
    predictions, Y, weight = models()
    everything = average(predictions, Y, weight, replace(TABLE_NUMBERS, smallest=0.0)).weights
    dropped = average(predictions, Y, weight, TABLE_NUMBERS).weights
    kept = np.flatnonzero(dropped)
    assert len(kept) < len(np.flatnonzero(everything)) and dropped[kept].min() >= 0.15
    assert_allclose(average(predictions[kept], Y, weight, TABLE_NUMBERS).weights, dropped[kept])


def test_log_loss_is_minimal_and_certified():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=80)
    scores = (
        rng.normal(size=(3, 80, 3)) + np.array([2.0, 1.0, -1.0])[:, None, None] * np.eye(3)[labels]
    )
    logs = log_softmax(scores, axis=2)
    weight = rng.uniform(0.5, 2.0, 80)
    rule = replace(TABLE_CLASSES, smallest=0.0)
    result = average(logs, labels, weight, rule)

    def value(v):
        right = log_softmax(np.tensordot(v, logs, 1), axis=1)[np.arange(80), labels]
        return -weight @ right + rule.pull * np.sum((v - 1 / 3) ** 2)

    found = minimize(
        value,
        np.full(3, 1.0),
        bounds=[(0.0, None)] * 3,
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000},
    )
    assert value(result.weights) <= found.fun + 1e-6
    assert result.residual < 1e-9 and result.weights[2] == 0.0


@pytest.mark.parametrize("max_members", [1, 2, 3])
def test_members_of_classes_are_dropped_by_their_part_of_the_spread(max_members):
    """One after another, the smallest weight times spread first, and the others are weighted again."""
    rng = np.random.default_rng(2)
    labels = rng.integers(3, size=120)
    signal = np.array([2.0, 1.5, 0.0, 1.0, 0.2])[:, None, None] * np.eye(3)[labels]
    scores = signal + rng.normal(size=(5, 120, 3))
    scores *= np.array([0.2, 1.0, 3.0, 0.5, 4.0])[:, None, None]  # useless ones vary most
    logs = log_softmax(scores, axis=2)
    weight = rng.uniform(0.5, 2.0, 120)
    rule = replace(TABLE_CLASSES, max_members=max_members)
    keep_all = replace(rule, smallest=0.0, max_members=None)
    spread = (logs - logs.mean(axis=2, keepdims=True)).std(axis=(1, 2))
    members = np.arange(5)
    while True:
        factors = average(logs[members], labels, weight, keep_all).weights
        shares = factors * spread[members] / np.sum(factors * spread[members])
        if len(members) == 1 or (len(members) <= max_members and shares.min() >= rule.smallest):
            break
        members = np.delete(members, shares.argmin())
    expected = np.zeros(5)
    expected[members] = factors
    assert_allclose(average(logs, labels, weight, rule).weights, expected)


def test_two_sides_have_the_closed_form():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 30, 1))
    weight = rng.uniform(0.5, 2.0, 30)
    apart = right - left
    share = float(weight @ (right * apart)[:, 0] / (weight @ apart[:, 0] ** 2))
    result = average([left, right], np.zeros((30, 1)), weight, TWO_SIDES)
    assert_allclose(result.weights, [share, 1.0 - share], rtol=1e-10)
    equal = average([left, left], np.zeros((30, 1)), weight, TWO_SIDES)
    assert_allclose(equal.weights, 0.5, atol=1e-3)


@pytest.mark.parametrize("rule", [STACKED_CLASSES, STACKED_NUMBERS, TABLE_NUMBERS])
def test_equal_weights_of_rows_are_none(rule):
    predictions, Y, _ = models()
    plain = average(predictions, Y, None, rule)
    assert_array_equal(average(predictions, Y, np.ones(len(Y)), rule).weights, plain.weights)


def test_held_out_averages_do_not_see_their_targets():
    predictions, Y, weight = models()
    test = np.arange(20)
    folds = [(np.setdiff1d(np.arange(60), test + shift), test + shift) for shift in (0, 20, 40)]
    before = average(predictions, Y, weight, TABLE_NUMBERS, folds)
    changed = Y.copy()
    changed[test] += 10.0
    after = average(predictions, changed, weight, TABLE_NUMBERS, folds)
    assert_array_equal(before.out_of_fold[test], after.out_of_fold[test])
    assert not np.allclose(before.out_of_fold[20:], after.out_of_fold[20:])
    others = average(predictions[:, 20:], Y[20:], weight[20:], TABLE_NUMBERS).weights
    assert_allclose(before.out_of_fold[test], np.tensordot(others, predictions[:, test], 1))


def test_cross_fitting_uses_predictions_that_were_made_without_the_fold():
    predictions = models(n=4, n_members=2)[0]
    folds = [(np.array([2, 3]), np.array([0, 1])), (np.array([0, 1]), np.array([2, 3]))]
    by_fold = np.stack([predictions, 2.0 * predictions], axis=1)

    def fit(values, rows):
        return lambda held_out: held_out.sum(axis=0)

    averaged = cross_fitted(fit, predictions, folds, by_fold)
    assert_allclose(averaged[:2], predictions[:, :2].sum(axis=0))
    assert_allclose(averaged[2:], 2.0 * predictions[:, 2:].sum(axis=0))


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-6])
def test_a_nearly_perfect_member_beside_equal_ones(scale):
    """The pull is in units of its error, far below the rounding of the others' products."""
    random = np.random.RandomState(0)
    target = random.choice(2, (200, 1)).astype(float)
    others = random.normal(size=(2, 200, 1)).repeat(3, axis=0)
    members = target + np.concatenate([scale * random.normal(size=(1, 200, 1)), others])
    found = average(members, target, np.ones(200), TABLE_NUMBERS)
    assert_allclose(found.weights, np.eye(7)[0], atol=1e-6)
