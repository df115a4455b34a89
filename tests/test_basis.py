"""What new items are compared with: the same answers whether a kernel compares them or X holds the comparisons."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless.core.basis import Basis, MatrixBasis, make_basis
from mercerless.kernels import Gaussian, Precomputed

X = np.random.default_rng(0).normal(size=(7, 2))
NEW = np.random.default_rng(1).normal(size=(3, 2))
WEIGHT = np.array([1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 3.0])
USED = np.flatnonzero(WEIGHT)
KERNEL = Gaussian(1.5)


@pytest.fixture
def bases():
    return make_basis(KERNEL, X, WEIGHT), make_basis(Precomputed(), KERNEL(X), WEIGHT)


def test_both_have_the_matrix_of_the_items_that_carry_weight(bases):
    for basis in bases:
        assert_array_equal(basis.rows, USED)
        assert_array_equal(basis.centers, USED)
        assert (len(basis), basis.n_train) == (5, 7)
        assert_allclose(basis.matrix(), KERNEL(X[USED]))
        assert_allclose(basis.kernel(basis.take(np.array([2, 0]))), KERNEL(X[USED[[2, 0]]]))


def test_both_predict_the_same(bases):
    coef = np.arange(10.0).reshape(2, 5)
    expected = KERNEL(NEW, X[USED]) @ coef.T
    for basis, new in zip(bases, (NEW, KERNEL(NEW, X))):
        fitted = basis.fitted()
        comparisons = fitted.compare(new)
        assert_allclose(comparisons @ fitted.spread(coef).T, expected)
        assert_allclose(fitted.weighted(comparisons) @ coef.T, expected)


def test_both_compare_with_landmarks(bases):
    coef = np.arange(4.0).reshape(2, 2)
    for basis, new in zip(bases, (NEW, KERNEL(NEW, X))):
        fitted = basis.fitted(np.array([1, 3]))
        assert_array_equal(fitted.centers, USED[[1, 3]])
        assert_allclose(fitted.compare(new), KERNEL(NEW, X[USED[[1, 3]]]))
        assert fitted.spread(coef) is coef


def test_a_model_keeps_items_but_no_matrix(bases):
    by_kernel, by_matrix = bases
    assert (type(by_kernel), type(by_matrix)) == (Basis, MatrixBasis)
    assert_array_equal(by_kernel.fitted().kept, X[USED])
    assert by_matrix.fitted().items is None
    assert by_matrix.fitted().kept is None


def test_all_items_are_not_copied():
    K = KERNEL(X)
    assert make_basis(Precomputed(), K).items is K
    assert make_basis(KERNEL, X).items is X


def test_the_other_direction(bases):
    by_kernel, by_matrix = bases
    reverse = np.ones((3, 7))
    assert_allclose(by_kernel.compare_back(NEW, None), KERNEL(X[USED], NEW).T)
    assert by_matrix.compare_back(NEW, reverse) is reverse
    with pytest.raises(ValueError, match="pass reverse"):
        by_matrix.compare_back(NEW, None)
