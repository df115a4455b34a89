"""Suspects: flipped labels are found, at the promised rate of false alarms."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from mercerless import KreinRidgeClassifier
from mercerless.core.folds import OutOfFold
from mercerless.core.suspects import suspect_labels


def test_flipped_labels_are_suspects():
    X, y = make_blobs(200, centers=3, cluster_std=1.0, random_state=0)
    flipped = np.random.RandomState(0).choice(200, 8, replace=False)
    wrong = y.copy()
    wrong[flipped] = (y[flipped] + 1) % 3
    found = KreinRidgeClassifier(random_state=0).fit(X, wrong).suspects_
    hit = np.isin(found.items, flipped)
    assert hit.sum() >= 5 and hit.mean() >= 0.5
    right = np.isin(flipped, found.items)
    assert_array_equal(found.suggested[hit], y[found.items[hit]])
    assert (
        right.mean() > 0.6
        and np.all(np.diff(found.probability) >= 0)
        and found.false_alarms <= 0.05
    )
    assert "look wrong" in str(found)


def test_the_rate_of_false_alarms_is_that_of_labels_drawn_by_the_probabilities():
    rng = np.random.RandomState(0)
    proba, alarms = rng.dirichlet([2.0, 1.0, 0.5], 400), []
    for seed in range(60):
        draws = np.random.RandomState(seed).uniform(size=400)
        labels = (draws[:, None] > np.cumsum(proba, axis=1)).sum(axis=1).clip(0, 2)
        found = suspect_labels(OutOfFold(np.arange(400), proba, labels), np.arange(3), 0.05)
        alarms.append(len(found.items) / 400)
    assert 0.04 < found.false_alarms <= 0.05
    assert abs(np.mean(alarms) - found.false_alarms) < 4 * np.std(alarms) / np.sqrt(60) + 0.002


def test_sure_and_right_models_have_no_suspects():
    proba = np.tile([0.99, 0.01], (50, 1))
    found = suspect_labels(
        OutOfFold(np.arange(50), proba, np.zeros(50, dtype=int)), np.array(["a", "b"])
    )
    assert len(found.items) == 0 and str(found) == "No label looks wrong."


def and_close(first, second):
    assert_allclose(first, second, rtol=1e-10)
    return True
