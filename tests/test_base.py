"""What all estimators share: targets, weights, votes, scores, items."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless.core import estimator as base
from mercerless.core.basis import make_basis
from mercerless.core.validation import as_items
from mercerless.kernels import Gaussian, Precomputed
from mercerless.lowrank import Landmarks

RNG = np.random.default_rng(0)


def test_weights_that_are_used_have_mean_one():
    weight = np.array([2.0, 0.0, 4.0, 0.0, 6.0])
    used = base.used_rows(weight, 5)
    assert_array_equal(used, [0, 2, 4])
    assert_allclose(base.used_weights(weight, used), [0.5, 1.0, 1.5])
    assert_array_equal(base.used_rows(None, 3), [0, 1, 2])
    assert_array_equal(base.used_weights(None, used), 1.0)


def test_rows_without_weight_take_their_columns_with_them():
    K = RNG.normal(size=(5, 5))
    weight = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    assert_array_equal(make_basis(Precomputed(), K, weight).items, K[::2, ::2])
    assert_array_equal(make_basis(Gaussian(1.0), K, weight).items, K[::2])
    assert make_basis(Precomputed(), K, np.ones(5)).items is K


@pytest.mark.parametrize("n_classes", [3, 4])
def test_votes_of_pairs(n_classes):
    """Pairs i < j vote for j with a positive score; a tie is a vote for i, and sums of scores decide between equals."""
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    scores = RNG.normal(size=(200, len(pairs)))
    scores[RNG.random(scores.shape) < 0.2] = 0.0
    votes = base.pair_votes(scores, n_classes)
    for row, given in zip(votes, scores):
        counts, sums = np.zeros(n_classes), np.zeros(n_classes)
        for (i, j), score in zip(pairs, given):
            counts[j if score > 0 else i] += 1
            sums[j] += score
            sums[i] -= score
        assert_array_equal(np.round(row), counts)
        assert np.all(np.abs(row - counts) < 0.5)
        order = np.lexsort([sums, counts])
        assert np.all(np.diff(row[order]) >= 0)


def test_scores_of_two_classes_and_of_more():
    f = np.array([2.0, -4.0])
    assert_array_equal(base.class_scores(f), [[-1.0, 1.0], [2.0, -2.0]])
    scores = RNG.normal(size=(5, 3))
    assert_array_equal(base.class_scores(scores), scores)
    labels = np.array([0, 1, 1])
    assert_array_equal(base.signed_targets(labels, 2), [[-1], [1], [1]])
    assert_array_equal(base.signed_targets(labels, 3), [[1, -1, -1], [-1, 1, -1], [-1, 1, -1]])


def test_landmark_rows_ascend_and_are_distinct():
    X = RNG.normal(size=(40, 2))
    rows = base.landmark_rows(Gaussian(1.0), X, Landmarks(15), 0)
    assert len(rows) == 15
    assert np.all(np.diff(rows) > 0)
    for wanted in (None, Landmarks(40), Landmarks(50)):
        assert_array_equal(base.landmark_rows(Gaussian(1.0), X, wanted, 0), np.arange(40))


def test_diagonal_of_new_items():
    assert_array_equal(base.check_diagonal(2.0, 3), [2.0, 2.0, 2.0])
    assert_array_equal(base.check_diagonal([1, 2, 3], 3), [1.0, 2.0, 3.0])
    for wrong in ([1.0, 2.0], np.ones((3, 1)), []):
        with pytest.raises(ValueError, match="one number for each of the 3"):
            base.check_diagonal(wrong, 3)
    with pytest.raises(ValueError, match="diag"):
        base.check_diagonal([1.0, np.nan, 2.0], 3)


def test_items_are_not_looked_into():
    for given in ([[1, 2], [3, 4]], [(1, 2), (3, 4)], [{"a": 1}, {"b": 2}], [np.eye(2), np.eye(2)]):
        items = as_items(given)
        assert items.dtype == object
        assert items.shape == (2,)
        assert all(one is other for one, other in zip(items, given))
    table = np.eye(3)
    assert as_items(table) is table
    assert_array_equal(as_items(np.array(["x", "y"])), ["x", "y"])
    for nothing in ([], "word", {1, 2}, {"a": 1}, 3):
        with pytest.raises(ValueError, match="X"):
            as_items(nothing)
