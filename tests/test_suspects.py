"""Suspects: flipped labels are found, at the promised rate of false alarms."""

from functools import cache

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

from mercerless import KreinRidgeClassifier


@cache
def fitted(n_classes):
    X, y = make_blobs(10 * n_classes, centers=n_classes, random_state=0)
    return KreinRidgeClassifier(random_state=0).fit(X, y)


def suspects(proba, labels):
    """The suspects of a model with these out-of-fold probabilities."""
    n, q = proba.shape
    model = fitted(q)
    model.out_of_fold_ = model.out_of_fold_._replace(
        rows=np.arange(n), prediction=proba, target=labels
    )
    return model.suspects_


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
        found = suspects(proba, labels)
        alarms.append(len(found.items) / 400)
    assert 0.04 < found.false_alarms <= 0.05
    assert abs(np.mean(alarms) - found.false_alarms) < 4 * np.std(alarms) / np.sqrt(60) + 0.002


def test_sure_and_right_models_have_no_suspects():
    proba = np.tile([0.99, 0.01], (50, 1))
    found = suspects(proba, np.zeros(50, dtype=int))
    assert len(found.items) == 0 and str(found) == "No label looks wrong."
