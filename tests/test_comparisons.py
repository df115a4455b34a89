"""Comparisons with landmarks, computed or given: which row is which landmark, and what it is compared with."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless.kernels import PairFunction
from mercerless.lowrank import Landmarks
from mercerless.similarity import comparisons as c
from mercerless.similarity.landmarks import as_new_similarities

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * RNG.uniform(0.5, 2.0, size=(40, 1))
Y = np.sign(X[:, :1])
WEIGHT = np.ones(40)


def read(C, wanted, kind="similarity", random_state=0):
    return c.read_comparisons(C, wanted, kind, Y, WEIGHT, np.random.RandomState(random_state))


def squares_of(compared):
    """Squared distances of all rows to the landmarks."""
    block = compared.all()
    return block.row_diagonal[:, None] - 2 * block.similarities + block.column_diagonal


@pytest.mark.parametrize("method", ["uniform", "pursuit"])
def test_random_columns_that_are_kept_are_compared_as_before(method):
    K = X @ X.T
    compared = read(K, Landmarks(12, method))
    columns = compared.read.columns
    assert len(columns) == 12
    assert np.all(np.diff(columns) > 0)
    assert_array_equal(compared.landmarks, columns)
    expected = ((X[:, None] - X[columns]) ** 2).sum(axis=2)
    assert_allclose(squares_of(compared), expected, atol=1e-10)


def test_differing_own_similarities_of_landmarks():
    """Of rows of equal length and one landmark that is no row, its own similarity is that of the others."""
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    K = 4.0 * unit @ unit.T
    C = np.column_stack([K[:30, :8], K[:30, 35]])
    compared = c.read_comparisons(
        C, Landmarks(9), "similarity", Y[:30], WEIGHT[:30], np.random.RandomState(0)
    )
    assert_array_equal(compared.landmarks[:8], np.arange(8))
    others = np.r_[np.arange(8), 35]
    expected = 4.0 * ((unit[:30, None] - unit[others]) ** 2).sum(axis=2)
    assert compared.read.constant == pytest.approx(4.0)
    assert_allclose(squares_of(compared), expected, atol=1e-10)


def test_landmarks_are_found_whatever_their_order():
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    columns = RNG.permutation(40)[:15]
    kind, rows = c.find_rows(D[:, columns])
    assert kind == "distance"
    assert_array_equal(rows, columns)
    # a row cannot be two landmarks
    kind, rows = c.find_rows(D[:, [3, 5, 5, 8, 9, 10]], "distance")
    assert_array_equal(rows, [3, 5, -1, 8, 9, 10])
    # a landmark that is no row is none
    others = np.delete(D, 7, axis=0)[:, [2, 7, 12, 20, 21]]
    assert_array_equal(c.find_rows(others)[1], [2, -1, 11, 19, 20])


def test_rows_among_those_of_weight():
    used = np.array([1, 4, 6, 9])
    assert_array_equal(c.among(used, np.array([2, -1, 0, 3])), [6, -1, 1, 9])


def test_negative_distances_raise():
    assert_array_equal(as_new_similarities(np.ones((2, 2)), "distance"), np.full((2, 2), -0.5))
    with pytest.raises(ValueError, match=r"smallest is -0\.1"):
        as_new_similarities(np.array([[1.0, -0.1]]), "distance")
    as_new_similarities(np.array([[1.0, -0.1]]), "similarity")
    as_new_similarities(np.array([[1.0, -1e-9]]), "distance")  # rounding


@pytest.mark.parametrize(
    "wrong, text",
    [
        ([0, 40], "row 40 of 40"),
        ([-1, 3], "row -1 of 40"),
        ([2, 5, 2], "row 2 twice"),
        ([0.5], "row numbers"),
        ([], "row numbers"),
    ],
)
def test_positions_are_distinct_rows(wrong, text):
    with pytest.raises(ValueError, match=text):
        c.check_positions(np.array(wrong), 40)
    assert_array_equal(c.check_positions([39, 0], 40), [39, 0])


def test_a_noisy_function_has_a_symmetric_matrix_of_landmarks():
    noise = np.random.default_rng(5)
    noisy = PairFunction(lambda a, b: float(a @ b + 0.01 * noise.normal()))
    items = X
    rows = np.arange(0, 40, 4)
    W = noisy(items[rows], items[rows].copy())
    assert not np.array_equal(W, W.T)
    with pytest.warns(UserWarning, match="noisy"):
        found = c._without_noise(noisy, items, rows, W)
    assert_allclose(found, (W + W.T) / 2)


def test_zeros_between_different_items_are_no_distances():
    rows = np.arange(4)
    assert_array_equal(c._consistent(np.zeros((4, 4)), rows, "distance"), -1)
    assert_array_equal(c._consistent(1.0 - np.eye(4), rows, "distance"), rows)
