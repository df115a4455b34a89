"""The one way to average: screening, weights, sharpening, honest figures."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import log_loss

from mercerless.core.averaging import average_of, best_of


def classes(n=200, q=3, seed=0):
    """Labels, and scores of five members: good, weaker, the same scaled, noise, reversed."""
    random = np.random.RandomState(seed)
    labels = random.randint(q, size=n)
    signal = 2.0 * np.eye(q)[labels] - 1.0
    good = signal + random.normal(0.0, 0.8, (n, q))
    weak = signal + random.normal(0.0, 2.0, (n, q))
    noise = random.normal(0.0, 1.0, (n, q))
    return labels, np.stack([good, weak, 7.0 * good, noise, -good])


def test_weights_of_numbers_minimize_the_stated_objective():
    random = np.random.RandomState(1)
    y = random.normal(size=(80, 1))
    members = y + random.normal(0.0, [[[0.3]], [[0.5]], [[2.0]]], (3, 80, 1))
    weight = random.uniform(0.5, 2.0, 80)
    average = average_of(members, y, weight, classify=False)
    relative = weight / weight.mean()
    smallest = min(np.mean(relative * (m - y)[:, 0] ** 2) for m in members)

    def objective(v):
        error = y - np.tensordot(v, members, 1)
        return relative @ error[:, 0] ** 2 + 3.0 * np.sqrt(3) * smallest * np.sum((v - 1 / 3) ** 2)

    best = minimize(objective, np.full(3, 1 / 3), bounds=[(0, None)] * 3, tol=1e-12)
    assert objective(average.weights) <= best.fun * (1 + 1e-9)
    assert average.residual < 1e-10


def test_probabilities_are_calibrated_and_beat_the_best_member():
    labels, scores = classes()
    average = average_of(scores, labels, np.ones(200), classify=True)
    proba = average(scores)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    alone = [average_of(s[None], labels, np.ones(200), classify=True)(s[None]) for s in scores]
    assert log_loss(labels, proba) < min(log_loss(labels, p) for p in alone) + 1e-3
    assert average.weights[3] < 0.1 and average.weights[4] < 0.1
    assert average.weights.sum() == pytest.approx(1.0)


def test_averages_ignore_units_of_scores_and_of_weights():
    labels, scores = classes()
    weight = np.random.RandomState(0).uniform(0.5, 2.0, 200)
    one = average_of(scores, labels, weight, classify=True)(scores)
    other = average_of(1e3 * scores + 5.0, labels, 7.0 * weight, classify=True)
    np.testing.assert_allclose(other(1e3 * scores + 5.0), one, atol=1e-6)


def test_three_best_of_every_kind_are_kept():
    labels, scores = classes()
    scores = np.concatenate([scores, scores[:1]])
    kept = best_of(["a"] * 5 + ["b"], scores, labels, np.ones(200), classify=True)
    assert {kind: sorted(own) for kind, own in kept.items()} == {"a": [0, 1, 2], "b": [5]}
    numbers = np.arange(5.0)[:, None, None] * np.ones((1, 9, 1))
    kept = best_of(list("aaaaa"), numbers, np.full((9, 1), 2.2), np.ones(9), classify=False)
    assert kept == {"a": [2, 3, 1]}


def test_settings_without_weight_can_be_left_out():
    labels, scores = classes()
    average = average_of(scores, labels, np.ones(200), classify=True, kinds=list("aabbb"))
    part = average.take(average.weights > 0)
    np.testing.assert_allclose(part(scores[part.kept]), average(scores[average.kept]))


def test_a_held_out_label_does_not_reach_its_prediction():
    labels, scores = classes()
    parts = np.random.RandomState(0).permutation(200) % 5
    changed = labels.copy()
    changed[parts == 2] = (changed[parts == 2] + 1) % 3
    options = {"classify": True, "kinds": list("aaabb"), "parts": parts}
    one = average_of(scores, labels, np.ones(200), **options).out_of_fold
    other = average_of(scores, changed, np.ones(200), **options).out_of_fold
    np.testing.assert_array_equal(one[parts == 2], other[parts == 2])
    assert np.abs(one - other)[parts != 2].max() > 1e-3


def test_figures_of_pure_noise_are_not_better_than_chance():
    accuracies = []
    for seed in range(30):
        random = np.random.RandomState(seed)
        labels = random.randint(2, size=50)
        scores = random.normal(size=(24, 50, 2))
        parts = np.random.RandomState(100 + seed).permutation(50) % 5
        kinds = np.repeat(np.arange(4), 6)
        average = average_of(scores, labels, np.ones(50), classify=True, kinds=kinds, parts=parts)
        accuracies.append(np.mean(average.out_of_fold.argmax(axis=1) == labels))
    assert np.mean(accuracies) < 0.5 + 3.0 * np.std(accuracies) / np.sqrt(30)


def test_constant_members_and_targets_stay_finite():
    labels, scores = classes()
    average = average_of(np.zeros_like(scores), labels, np.ones(200), classify=True)
    shares = np.bincount(labels) / 200
    np.testing.assert_allclose(average(np.zeros((5, 1, 3)))[0], shares, atol=0.01)
    numbers = average_of(np.zeros((3, 9, 1)), np.zeros((9, 1)), np.ones(9), classify=False)
    np.testing.assert_array_equal(numbers(np.ones((3, 1, 1))).shape, (1, 1))
    assert np.all(np.isfinite(numbers.weights))
