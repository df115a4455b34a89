"""Local kernels: the contract of every kernel, and what is special about one bandwidth vector per center."""

import numpy as np
import pytest
from contract import DistanceContract, central_difference
from numpy.testing import assert_allclose, assert_array_equal
from oracles.lab import local_kernel
from threadpoolctl import threadpool_limits

from mercerless.kernels import Gaussian, Laplace, LocalExponential, LocalGaussian, LocalLaplace
from mercerless.kernels.local import FixedPoints

FORMS = {"gaussian": LocalGaussian, "exponential": LocalExponential, "laplace": LocalLaplace}


class TestSharedGaussian(DistanceContract):
    kernel = LocalGaussian([0.7, 1.0, 2.0])

    def naive(self, X, Y):
        return local_kernel("gaussian", X, Y, self.kernel.bandwidths)

    def test_symmetric_as_declared(self):
        assert not self.kernel.symmetric


class TestSharedExponential(TestSharedGaussian):
    kernel = LocalExponential(1.3)

    def naive(self, X, Y):
        return local_kernel("exponential", X, Y, self.kernel.bandwidths)


class TestSharedLaplace(TestSharedGaussian):
    kernel = LocalLaplace([0.7, 1.0, 2.0])

    def naive(self, X, Y):
        return local_kernel("laplace", X, Y, self.kernel.bandwidths)


def setting(n=30, m=7, d=4, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    H = np.exp(0.5 * rng.normal(size=(m, d)))
    return X.astype(dtype), X[:m].astype(dtype), H.astype(dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_matrix_equals_the_tensor_of_differences(form, dtype, tolerance, scale):
    X, S, H = setting(dtype=dtype)
    K = FORMS[form](scale * H)(X, S)
    assert K.dtype == dtype
    assert_allclose(
        K,
        local_kernel(form, X.astype(float), S.astype(float), scale * H.astype(float)),
        atol=tolerance,
    )
    assert_allclose(np.diag(K[: len(S)]), 1, atol=tolerance)
    if scale == 1.0:
        assert not np.allclose(K[: len(S)], K[: len(S)].T, atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", ["local", "shared", "one"])
def test_pullback_equals_central_differences(form, shape):
    X, S, H = setting()
    H = {"local": H, "shared": H[0], "one": 0.8}[shape]
    G = np.random.default_rng(1).normal(size=(len(X), len(S)))
    G[np.arange(len(S)), np.arange(len(S))] = 0.0  # the exponential form has a kink at distance 0
    kernel = FORMS[form](H)
    numeric = central_difference(lambda t: np.sum(G * kernel.with_theta(t)(X, S)), kernel.theta)
    assert_allclose(kernel.pullback(X, S, G), numeric, rtol=1e-6, atol=1e-6 * np.abs(numeric).max())
    assert_array_equal(kernel.pullback(X, S, G, kernel(X, S)), kernel.pullback(X, S, G))


def test_equal_bandwidths_are_the_stationary_kernels():
    X, S, _ = setting()
    assert_allclose(LocalGaussian(np.full(S.shape, 0.7))(X, S), Gaussian(0.7)(X, S), rtol=1e-10)
    assert_allclose(LocalLaplace(np.full(S.shape, 0.7))(X, S), Laplace(0.7)(X, S), rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_offsets_do_not_matter(form):
    X, S, H = setting()
    assert_allclose(FORMS[form](H)(X + 1000, S + 1000), FORMS[form](H)(X, S), atol=1e-6)


def test_exponential_form_is_accurate_at_small_distances():
    _, S, H = setting()
    near = S + 1e-9
    assert_allclose(
        1 - LocalExponential(H)(near, S).diagonal(),
        np.sqrt(np.sum((1e-9 / H) ** 2, axis=1)),
        rtol=1e-6,
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_same_for_any_number_of_threads(form):
    rng = np.random.default_rng(0)
    X, H, G = (
        rng.normal(size=(60_000, 8)),
        np.exp(rng.normal(size=(12, 8))),
        rng.normal(size=(60_000, 12)),
    )
    kernel = FORMS[form](H)
    with threadpool_limits(1):
        K, g = kernel(X, X[:12]), kernel.pullback(X, X[:12], G)
    with threadpool_limits(2):
        assert_array_equal(kernel(X, X[:12]), K)
        assert_array_equal(kernel.pullback(X, X[:12], G), g)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_shared_bandwidths_are_exact_beside_copies_and_far_rows(form, dtype, tolerance):
    X, S, H = setting(n=60, m=20, d=5)
    X[30:40] = S[:10] + 1e-7
    X[50] = 1e3  # one far row must not cost the others their digits
    X = X.astype(dtype)
    S = S.astype(dtype)
    widths = H[0].astype(dtype)
    expected = local_kernel(form, X.astype(float), S.astype(float), widths.astype(float))
    others = np.arange(len(X)) != 50
    for bandwidths in (widths, np.tile(widths, (len(S), 1))):
        kernel = FORMS[form](bandwidths)
        K = kernel(X, S)
        assert K.dtype == dtype
        assert_allclose(K[others], expected[others], atol=tolerance)
        assert_allclose(K[50], expected[50], atol=tolerance)
        assert_allclose(kernel(X[:7], S), K[:7], rtol=10 * np.finfo(dtype).eps)
    symmetric = FORMS[form](widths)(S)
    assert_allclose(symmetric, symmetric.T, atol=10 * np.finfo(dtype).eps)
    assert_array_equal(np.diag(symmetric), 1)


def test_bad_bandwidths():
    X, S, H = setting()
    with pytest.raises(ValueError, match="one row of them per center"):
        LocalGaussian(H[:-1])(X, S)
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="finite, positive bandwidths"):
            LocalLaplace(bad)(X, S)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", ["one", "per feature", "per center"])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("keeps_distances", [True, False])
def test_fixed_points_equal_the_kernel(form, shape, dtype, tolerance, keeps_distances, monkeypatch):
    if not keeps_distances:
        monkeypatch.setattr(FixedPoints, "most_bytes", 0)
    X, S, H = setting(dtype=dtype)
    points = FixedPoints(FORMS[form], X, S)
    assert points.keeps_distances == (keeps_distances and form == "laplace")
    G = np.random.default_rng(1).normal(size=(len(X), len(S)))
    for factor in (1.0, 0.4):  # what is kept serves other bandwidths
        widths = factor * {"one": H[0, 0], "per feature": H[0], "per center": H}[shape]
        kernel = FORMS[form](widths)
        K = points.value(widths)
        assert K.dtype == dtype
        assert_allclose(K, kernel(X, S), atol=tolerance)
        gradient = points.pullback(widths, G, K)
        assert gradient.dtype == np.float64
        assert_allclose(gradient, kernel.pullback(X, S, G, K), rtol=1e-3, atol=tolerance * 30)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(), (3,), (40, 3)])
@pytest.mark.parametrize("n", [1, 16, 17, 300])
def test_laplace_of_few_and_many_rows_is_the_plain_sum(n, shape, dtype):
    """Few rows, and bandwidths that all centers share, are computed in other ways than many rows."""
    random = np.random.RandomState(0)
    X, S = random.normal(size=(n, 3)).astype(dtype), random.normal(size=(40, 3)).astype(dtype)
    widths = random.uniform(0.5, 2.0, size=shape)
    scaled = np.abs(X[:, None].astype(float) - S) / np.broadcast_to(widths, S.shape)
    K = LocalLaplace(widths if shape else float(widths))(X, S)
    assert K.dtype == dtype
    assert_allclose(K, np.exp(-scaled.sum(axis=2)), rtol=1e-13 if dtype == np.float64 else 1e-5)


def test_groups_of_centers_are_those_one_by_one():
    """Three groups of centers, the last one smaller."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    S = rng.normal(size=(10, 5))
    widths = rng.uniform(0.5, 2.0, size=(10, 5))
    G = rng.normal(size=(3000, 10))
    K = LocalLaplace(widths)(X, S)
    gradient = LocalLaplace(widths).pullback(X, S, G).reshape(10, 5)
    for j in range(10):
        distances = np.abs(X - S[j]) / widths[j]
        values = np.exp(-distances.sum(axis=1))
        assert_allclose(K[:, j], values, rtol=1e-12)
        assert_allclose(gradient[j], (G[:, j] * values) @ distances, rtol=1e-9)
