"""The kernel contract: one class of tests that every kernel's test class inherits."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits


def central_difference(function, point, step=1e-5):
    """The gradient of a scalar function by central differences."""
    point = np.asarray(point, dtype=float)
    gradient = np.empty_like(point)
    for i in range(point.size):
        e = np.zeros_like(point)
        e[i] = step
        gradient[i] = (function(point + e) - function(point - e)) / (2 * step)
    return gradient


class KernelContract:
    """Subclasses give ``kernel`` and ``naive(X, Y)``, and rows on which a declared indefinite kernel shows it."""

    kernel = None
    n_features = 3
    float32_tolerance = 1e-4
    threads_tolerance = 0.0  # our own kernels are the same bit for bit with any number of threads

    def naive(self, X, Y):
        raise NotImplementedError

    def rows(self, n, seed=0, dtype=np.float64):
        X = np.random.default_rng(seed).normal(size=(n, self.n_features)).astype(dtype)
        X.flags.writeable = False
        return X

    def test_matrix_equals_naive_formula(self):
        X, Y = self.rows(7), self.rows(5, seed=1)
        assert_allclose(self.kernel(X, Y), self.naive(X, Y), rtol=1e-10, atol=1e-12)
        assert_allclose(self.kernel(X), self.naive(X, X), rtol=1e-10, atol=1e-7)

    def test_diagonal(self):
        X = self.rows(6)
        assert_allclose(self.kernel.diag(X), np.diagonal(self.kernel(X)), rtol=1e-12, atol=1e-15)
        assert_allclose(self.kernel.diag(X), np.diagonal(self.naive(X, X)), rtol=1e-10, atol=1e-12)

    def test_symmetric_as_declared(self):
        X, Y = self.rows(6), self.rows(4, seed=1)
        assert self.kernel.symmetric
        assert_allclose(self.kernel(X, Y), self.kernel(Y, X).T, rtol=1e-12, atol=1e-14)

    def test_float32_stays_float32(self):
        X, Y = self.rows(6, dtype=np.float32), self.rows(4, seed=1, dtype=np.float32)
        K = self.kernel(X, Y)
        assert K.dtype == np.float32
        assert self.kernel.diag(X).dtype == np.float32
        assert_allclose(
            K, self.naive(X.astype(float), Y.astype(float)), rtol=0, atol=self.float32_tolerance
        )

    def test_pullback_equals_central_differences(self):
        X, Y = self.rows(9), self.rows(5, seed=1)
        G = np.random.default_rng(2).normal(size=(9, 5))
        gradient = self.kernel.pullback(X, Y, G)
        numeric = central_difference(
            lambda t: np.sum(G * self.kernel.with_theta(t)(X, Y)), self.kernel.theta
        )
        assert gradient.shape == self.kernel.theta.shape
        assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6 * np.abs(numeric).max(initial=1.0))

    def test_pullback_of_a_square_matrix(self):
        X = self.rows(8)
        G = np.random.default_rng(3).normal(size=(8, 8))
        assert_allclose(
            self.kernel.pullback(X, None, G),
            self.kernel.pullback(X, X.copy(), G),
            rtol=1e-9,
            atol=1e-11,
        )
        numeric = central_difference(
            lambda t: np.sum(G * self.kernel.with_theta(t)(X)), self.kernel.theta
        )
        assert_allclose(
            self.kernel.pullback(X, None, G),
            numeric,
            rtol=1e-6,
            atol=1e-6 * np.abs(numeric).max(initial=1.0),
        )

    def test_theta_round_trip_and_bounds(self):
        theta, bounds = self.kernel.theta, self.kernel.bounds
        assert bounds.shape == (len(theta), 2)
        assert np.all(bounds[:, 0] < theta) and np.all(theta < bounds[:, 1])
        assert_allclose(self.kernel.with_theta(theta).theta, theta, rtol=1e-14)
        moved = self.kernel.with_theta(theta + 0.01)
        assert_allclose(moved.theta, theta + 0.01)
        assert_allclose(self.kernel.theta, theta, err_msg="with_theta changed the kernel itself")
        with pytest.raises(ValueError, match="theta has shape"):
            self.kernel.with_theta(np.zeros(len(theta) + 1))

    def test_declared_definiteness(self):
        smallest = [
            np.linalg.eigvalsh(self.kernel(self.rows(n, seed=n)))[[0, -1]] for n in (10, 40, 120)
        ]
        if self.kernel.definite is True:
            assert all(low >= -1e-10 * high for low, high in smallest)
        elif self.kernel.definite is False:
            assert min(low / np.abs(high) for low, high in smallest) < -1e-3

    def test_clone_print_pickle(self):
        X = self.rows(5)
        for copy in (clone(self.kernel), pickle.loads(pickle.dumps(self.kernel))):
            assert repr(copy) == repr(self.kernel)
            assert_array_equal(copy(X), self.kernel(X))
        assert type(self.kernel).__name__ in repr(self.kernel)

    def test_same_for_any_number_of_threads(self):
        X, Y = self.rows(700), self.rows(650, seed=1)
        G = np.random.default_rng(5).normal(size=(700, 650))
        with threadpool_limits(1):
            K, g = self.kernel(X, Y), self.kernel.pullback(X, Y, G)
        with threadpool_limits(4):
            assert_allclose(
                self.kernel(X, Y), K, rtol=self.threads_tolerance, atol=self.threads_tolerance
            )
            assert_allclose(self.kernel.pullback(X, Y, G), g, rtol=1e-12)

    def test_works_in_svc(self):
        X = self.rows(30)
        y = np.arange(30) % 2
        K = self.kernel(X)
        direct = SVC(kernel=self.kernel).fit(X, y).decision_function(X)
        assert_allclose(direct, SVC(kernel="precomputed").fit(K, y).decision_function(K), atol=1e-8)

    def test_bad_input(self):
        X = self.rows(5)
        with pytest.raises(ValueError, match="2D array"):
            self.kernel(X[0])
        with pytest.raises(ValueError, match="NaN"):
            self.kernel(np.full((2, self.n_features), np.nan))
        with pytest.raises(ValueError, match="infinity"):
            self.kernel(np.full((2, self.n_features), np.inf))
        with pytest.raises(ValueError, match=r"(?i)complex"):
            self.kernel(X + 1j)
        with pytest.raises(ValueError, match=r"convert|read as numbers"):
            self.kernel(np.array([["a"] * self.n_features], dtype=object))
        with pytest.raises(ValueError, match="features"):
            self.kernel(X, np.ones((2, self.n_features + 1)))
        with pytest.raises(ValueError, match=r"0 sample|no entries"):
            self.kernel(np.empty((0, self.n_features)))
        with pytest.raises(ValueError, match="they must agree"):
            self.kernel.pullback(X, X, np.ones((2, 2)))


class DistanceContract(KernelContract):
    """For functions of the difference of rows."""

    def test_far_from_the_origin(self):
        X, Y = self.rows(7), self.rows(5, seed=1)
        assert_allclose(self.kernel(X + 1e4, Y + 1e4), self.naive(X, Y), rtol=1e-6, atol=1e-9)
