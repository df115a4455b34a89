"""Suspects: flipped labels are found, rules that are broken are seen, and the map keeps neighborhoods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from mercerless import AsymmetricRidge, AsymmetricRidgeClassifier, KreinRidgeClassifier
from mercerless.core.folds import OutOfFold
from mercerless.core.suspects import (
    disagreeing_copies,
    far_items,
    most_asymmetric,
    suspect_labels,
    suspect_numbers,
    worst_triangles,
)
from mercerless.inspection.maps import draw_map, kept_neighbors, principal_plane


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


def test_regressors_have_odd_numbers_but_no_suspects():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    y[7] += 30
    model = AsymmetricRidge(alpha=0.1).fit(X, y)
    assert not hasattr(model, "suspects_") and hasattr(
        AsymmetricRidgeClassifier().fit(X, y > 0), "suspects_"
    )
    assert suspect_numbers(model.out_of_fold_).items[0] == 7


def test_copies_that_disagree():
    groups = disagreeing_copies(
        np.array([0, 1, 0, 2, 1, 3]), np.array(["a", "b", "a", "c", "c", "c"])
    )
    assert len(groups) == 1 and groups[0].tolist() == [1, 4]


def test_far_items():
    X = np.random.RandomState(0).normal(size=(80, 2))
    X[11] = [60.0, 0.0]
    assert far_items(cdist(X, X)).tolist() == [11]
    assert len(far_items(np.zeros((5, 5)))) == 0


def test_odd_pairs_by_brute_force():
    rng = np.random.RandomState(0)
    K = rng.normal(size=(9, 9))
    K = K + K.T
    assert most_asymmetric(K) == []
    K[2, 6] += 3.0
    pair = most_asymmetric(K)[0]
    assert (pair.first, pair.second) == (2, 6) and and_close(pair.amount, 3.0 / np.abs(K).max())
    D = cdist(*[rng.uniform(size=(10, 2))] * 2)
    assert worst_triangles(D) == []
    D[3, 8] = D[8, 3] = 5.0
    worst = worst_triangles(D, 3)[0]
    ways = [D[3, k] + D[k, 8] for k in range(10) if k not in (3, 8)]
    assert (worst.first, worst.second) == (3, 8) and and_close(
        worst.amount, (5.0 - min(ways)) / 5.0
    )


def and_close(first, second):
    assert_allclose(first, second, rtol=1e-10)
    return True


def test_the_map_keeps_neighborhoods_and_planes():
    rng = np.random.RandomState(0)
    flat = rng.normal(size=(40, 2))
    D = cdist(flat, flat)
    plane = principal_plane(D)
    assert_allclose(cdist(plane, plane), D, atol=1e-10)
    assert kept_neighbors(D, plane) == 1.0
    assert draw_map(D).method == "principal directions"
    X, _ = make_blobs(60, 8, centers=6, cluster_std=0.5, random_state=0)
    found = draw_map(cdist(X, X))
    assert (
        found.method == "neighborhoods"
        and found.preserved[found.method] > found.preserved["principal directions"]
    )
    assert found.points.shape == (60, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_map_of_few_or_equal_items(n):
    assert draw_map(np.zeros((n, n))).points.shape == (n, 2)
