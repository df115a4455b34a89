"""Every kernel against the contract and against its two-line formula; the algebra; the adapters."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from contract import DistanceContract, KernelContract, central_difference
from numpy.testing import assert_allclose, assert_array_equal
from oracles import kernels as naive
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    laplacian_kernel,
    pairwise_kernels,
    polynomial_kernel,
    rbf_kernel,
    sigmoid_kernel,
)
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from mercerless import DANKClassifier
from mercerless.kernels import (
    TL1,
    Constant,
    Covariance,
    DeltaGauss,
    Epanechnikov,
    Exponential,
    Gaussian,
    GaussianProcessKernel,
    Kernel,
    Laplace,
    LocalExponential,
    LocalGaussian,
    Log,
    Metric,
    PairFunction,
    Polynomial,
    Precomputed,
    Sigmoid,
    SphericalPolynomial,
    as_kernel,
)

SCALES = np.array([0.8, 1.5, 2.5])


class TestGaussian(DistanceContract):
    kernel = Gaussian(1.3)

    def naive(self, X, Y):
        return naive.matrix(naive.gaussian, X, Y, 1.3)


class TestGaussianPerFeature(DistanceContract):
    kernel = Gaussian(SCALES)

    def naive(self, X, Y):
        return naive.matrix(naive.gaussian, X, Y, SCALES)


class TestLaplace(DistanceContract):
    kernel = Laplace(2.0)

    def naive(self, X, Y):
        return naive.matrix(naive.laplace, X, Y, 2.0)


class TestExponential(DistanceContract):
    kernel = Exponential(1.2)
    float32_tolerance = 1e-3  # a root of a rounded zero

    def naive(self, X, Y):
        return naive.matrix(naive.exponential, X, Y, 1.2)


class TestExponentialPerFeature(KernelContract):
    kernel = Exponential(SCALES)
    float32_tolerance = 1e-3

    def naive(self, X, Y):
        return naive.matrix(naive.exponential, X, Y, SCALES)


class TestDeltaGauss(DistanceContract):
    kernel = DeltaGauss(1.5, 0.4)

    def naive(self, X, Y):
        return naive.matrix(naive.delta_gauss, X, Y, 1.5, 0.4)


class TestEpanechnikov(DistanceContract):
    kernel = Epanechnikov(2.5)

    def naive(self, X, Y):
        return naive.matrix(naive.epanechnikov, X, Y, 2.5)


class TestEpanechnikovPerFeature(KernelContract):
    kernel = Epanechnikov(SCALES * 2)

    def naive(self, X, Y):
        return naive.matrix(naive.epanechnikov, X, Y, SCALES * 2)


class TestTL1(DistanceContract):
    kernel = TL1(3.0)

    def naive(self, X, Y):
        return naive.matrix(naive.tl1, X, Y, 3.0)


class TestLog(KernelContract):
    kernel = Log(0.7)
    float32_tolerance = 1e-3

    def naive(self, X, Y):
        return naive.matrix(naive.log, X, Y, 0.7)

    def test_positive_semidefinite_after_centering(self):
        K = self.kernel(self.rows(60))
        H = np.eye(60) - 1 / 60
        assert np.linalg.eigvalsh(H @ K @ H)[0] > -1e-12
        assert (np.linalg.eigvalsh(K) < 0).sum() == 1


class TestPolynomial(KernelContract):
    kernel = Polynomial(3, 2.0, 0.5)

    def naive(self, X, Y):
        return naive.matrix(naive.polynomial, X, Y, 3, 2.0, 0.5)


class TestPolynomialNegativeOffset(KernelContract):
    kernel = Polynomial(2, SCALES, -2.0)
    float32_tolerance = 1e-3

    def naive(self, X, Y):
        return naive.matrix(naive.polynomial, X, Y, 2, SCALES, -2.0)


class TestSigmoid(KernelContract):
    kernel = Sigmoid(1.5, 0.3)

    def naive(self, X, Y):
        return naive.matrix(naive.sigmoid, X, Y, 1.5, 0.3)


class TestSigmoidPerFeature(KernelContract):
    kernel = Sigmoid(SCALES, -0.2)

    def naive(self, X, Y):
        return naive.matrix(naive.sigmoid, X, Y, SCALES, -0.2)


class TestSphericalPolynomial(KernelContract):
    kernel = SphericalPolynomial(3, 1.2)

    def naive(self, X, Y):
        return naive.matrix(naive.spherical_polynomial, X, Y, 3, 1.2)

    def test_papers_printed_kernel_is_definite(self):
        X = self.rows(50)
        U = X / np.linalg.norm(X, axis=1, keepdims=True)
        paper = SphericalPolynomial(10, 2.0)
        assert paper.definite
        assert_allclose(2.0**10 * paper(X), (1 + U @ U.T) ** 10, rtol=1e-10)

    def test_zero_row_is_refused(self):
        with pytest.raises(ValueError, match="row of zeros"):
            self.kernel(np.zeros((2, 3)))


class TestConstant(KernelContract):
    kernel = Constant(2.0)

    def naive(self, X, Y):
        return np.full((len(X), len(Y)), 2.0)


class TestScale(KernelContract):
    kernel = -2.0 * Gaussian(1.3)

    def naive(self, X, Y):
        return -2 * naive.matrix(naive.gaussian, X, Y, 1.3)


class TestSum(KernelContract):
    kernel = Gaussian(1.3) + Polynomial(2)

    def naive(self, X, Y):
        return naive.matrix(naive.gaussian, X, Y, 1.3) + naive.matrix(
            naive.polynomial, X, Y, 2, 1.0, 1.0
        )


class TestDifference(KernelContract):
    kernel = Laplace(2.0) - 0.5 * Gaussian(0.7)

    def naive(self, X, Y):
        return naive.matrix(naive.laplace, X, Y, 2.0) - 0.5 * naive.matrix(
            naive.gaussian, X, Y, 0.7
        )


class TestProduct(KernelContract):
    kernel = Gaussian(SCALES) * Sigmoid(1.5, 0.3) + 1.0

    def naive(self, X, Y):
        return (
            naive.matrix(naive.gaussian, X, Y, SCALES) * naive.matrix(naive.sigmoid, X, Y, 1.5, 0.3)
            + 1
        )


class TestGaussianProcessKernel(KernelContract):
    kernel = GaussianProcessKernel(RBF(1.3))

    def naive(self, X, Y):
        return naive.matrix(naive.gaussian, X, Y, 1.3)

    def test_float32_stays_float32(self):
        # not here: scikit-learn's Gaussian process kernels compute in float64
        X = self.rows(6, dtype=np.float32)
        assert self.kernel(X).dtype == np.float64
        np.testing.assert_allclose(
            self.kernel(X), self.naive(X.astype(float), X.astype(float)), atol=1e-5
        )


class TestMetric(KernelContract):
    kernel = Metric("sigmoid", {"gamma": 1 / 1.5**2, "coef0": 0.3})
    # scikit-learn's matrix product is BLAS's, whose rounding depends on its threads
    threads_tolerance = 1e-13

    def naive(self, X, Y):
        return naive.matrix(naive.sigmoid, X, Y, 1.5, 0.3)

    def test_has_no_tunable_parameters(self):
        assert self.kernel.theta.size == 0


def test_blas_gets_its_threads_back():
    X = np.random.default_rng(0).normal(size=(400, 6))
    with threadpool_limits(2, user_api="blas"):
        # several users of the limit at once, small and large matrices
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: Gaussian(2.0)(X[:n]), [20, 400, 100] * 50))
        assert {
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        } == {2}


LARGE = [
    Gaussian(1.5),
    Exponential(2.0),
    DeltaGauss(2.0, 0.5),
    Log(2.0),
    Laplace(3.0),
    TL1(4.0),
    Polynomial(3, 2.0, 0.5),
    Sigmoid(2.0, 0.1),
    SphericalPolynomial(5, 1.2),
]


@pytest.mark.parametrize("shape", [(1301, 7), (301, 130)], ids=["long", "wide"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", LARGE, ids=lambda kernel: type(kernel).__name__)
def test_large_symmetric_matrices_are_those_of_all_pairs(kernel, dtype, shape):
    # The columns of wide rows are far from zero, so that squares of rows that are not centered would cancel.
    X = np.random.default_rng(0).normal(size=shape).astype(dtype)
    if shape[1] > 100:
        X *= np.sqrt(7 / shape[1])
        X += 3 if isinstance(kernel, Gaussian) else 0
    K = kernel(X)
    assert K.dtype == dtype
    assert_array_equal(K, K.T)
    pairs = kernel(X, X.copy())
    distinct = ~np.eye(len(X), dtype=bool)  # on the diagonal roots magnify the rounding of pairs
    tolerance = 1e-12 if dtype == np.float64 else 2e-4
    assert_allclose(K[distinct], pairs[distinct], rtol=tolerance, atol=tolerance)
    assert_array_equal(np.diag(K), kernel.diag(X))


@pytest.mark.parametrize("kernel", [Gaussian(10.0), Sigmoid(10.0)], ids=["Gaussian", "Sigmoid"])
def test_wide_matrices_are_the_same_for_any_number_of_threads(kernel):
    X = np.random.default_rng(0).normal(size=(600, 400))
    with threadpool_limits(1):
        K = kernel(X)
    with threadpool_limits(4):
        assert_array_equal(kernel(X), K)


def test_of_large_symmetric_matrices_one_triangle_is_computed():
    n_computed = []

    class Counted(Gaussian):
        def _profile(self, q):
            n_computed.append(q.size)
            return super()._profile(q)

    X = np.random.default_rng(0).normal(size=(2500, 3))
    Counted(1.0)(X)
    assert sum(n_computed) < 0.58 * 2500**2
    n_computed.clear()
    Counted(1.0)(X, X.copy())
    assert sum(n_computed) == 2500**2


@pytest.mark.parametrize("shape", [(1, 70_000), (3, 5), (700, 300), (70, 3000), (1100, 300)])
def test_matrices_of_any_shape(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(shape[0], 3))
    Y = rng.normal(size=(shape[1], 3))
    expected = np.exp(-((X[:, None] - Y) ** 2).sum(axis=2) / 2)
    assert_allclose(Gaussian(1.0)(X, Y), expected, atol=1e-13)
    assert_allclose(Sigmoid(2.0, 0.1)(X, Y), np.tanh(X @ Y.T / 4 + 0.1), atol=1e-13)


def test_rows_of_many_features():
    X = np.random.default_rng(0).normal(size=(601, 90)) / 9
    expected = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    assert_allclose(Gaussian(1.0)(X), expected, atol=1e-13)
    assert_allclose(Gaussian(1.0)(X, X.copy()), expected, atol=1e-13)


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 7, 10, 13])
def test_whole_powers_of_both_signs(degree):
    X = np.random.default_rng(0).normal(size=(40, 4))
    K = Polynomial(degree, 1.0, 0.3)(X)
    base = X @ X.T + 0.3
    assert base.min() < 0.0 < base.max()
    assert_allclose(K, base**degree, rtol=1e-12)


def test_equal_to_scikit_learn():
    X = np.random.default_rng(0).normal(size=(50, 6))
    assert_allclose(Gaussian(2.0)(X), rbf_kernel(X, gamma=1 / 8), atol=1e-14)
    assert_allclose(Laplace(2.0)(X), laplacian_kernel(X, gamma=0.5), atol=1e-14)
    assert_allclose(Sigmoid(2.0, 0.1)(X), sigmoid_kernel(X, gamma=0.25, coef0=0.1), atol=1e-14)
    assert_allclose(
        Polynomial(3, 2.0, 0.5)(X),
        polynomial_kernel(X, degree=3, gamma=0.25, coef0=0.5),
        rtol=1e-12,
    )
    K, tensor = RBF(SCALES)(X[:, :3], eval_gradient=True)
    G = np.random.default_rng(1).normal(size=K.shape)
    assert_allclose(
        Gaussian(SCALES).pullback(X[:, :3], None, G), np.einsum("ij,ijp->p", G, tensor), rtol=1e-10
    )


def test_algebra_builds_the_expected_trees():
    k = Gaussian(1.0)
    trees = {"Sum": [k + 1, 1 + k], "Difference": [k - k, 1 - k], "Product": [k * k]}
    for name, kernels in (trees | {"Scale": [2 * k, k * 2, -k]}).items():
        assert {type(kernel).__name__ for kernel in kernels} == {name}
    assert (k + k).definite is True and (k - k).definite is None and (k * k).definite is True
    assert (-k).definite is False and (0 * k).definite is True and (2 * TL1(1.0)).definite is False
    assert (-TL1(1.0)).definite is None


def test_parameters_must_make_sense():
    X = np.ones((3, 2))
    for kernel in (
        Gaussian(0.0),
        Gaussian(-1.0),
        Laplace(np.nan),
        DeltaGauss(1.0, 0.0),
        Sigmoid(0.0),
    ):
        with pytest.raises(ValueError, match="needs positive"):
            kernel(X)
    with pytest.raises(ValueError, match="one value or one per feature"):
        Gaussian([1.0, 2.0, 3.0])(X)
    for kernel in (
        Laplace([1.0, 2.0]),
        DeltaGauss([1.0, 2.0], 1.0),
        SphericalPolynomial(2, [1.0, 2.0]),
    ):
        with pytest.raises(ValueError, match="not one per feature"):
            kernel(X)
    for kernel in (Polynomial(0), Polynomial(1.5), SphericalPolynomial(0)):
        with pytest.raises(ValueError, match="whole number"):
            kernel(X)


def test_grid_search_reaches_into_the_kernel(vectors):
    y = (vectors[:, 0] > 0).astype(int)
    search = GridSearchCV(SVC(kernel=Gaussian()), {"kernel__length_scale": [0.01, 2.0]}, cv=3).fit(
        vectors, y
    )
    assert search.best_params_ == {"kernel__length_scale": 2.0}


def test_duplicates_have_distance_zero():
    X = np.random.default_rng(0).normal(size=(1, 8)) * 1e3
    K = Exponential(1e-3)(np.repeat(X, 4, axis=0))
    assert_array_equal(np.diagonal(K), 1.0)
    assert_allclose(K, 1.0, atol=1e-2)


class TestAsKernel:
    def test_every_kind(self):
        X = np.random.default_rng(0).normal(size=(10, 3))
        assert isinstance(as_kernel("precomputed"), Precomputed)
        assert_allclose(as_kernel("linear")(X), X @ X.T)
        assert as_kernel(kernel := TL1(2.0)) is kernel
        assert_allclose(as_kernel(RBF(2.0) + WhiteKernel(0.1))(X), (RBF(2.0) + WhiteKernel(0.1))(X))
        assert_allclose(as_kernel(lambda a, b: float(a @ b))(X), X @ X.T)

    def test_gaussian_is_svcs_default(self):
        X = np.random.default_rng(0).normal(size=(40, 3)) * [1, 10, 0.1]
        y = np.arange(40) % 2
        ours = SVC(kernel=as_kernel("gaussian", X)).fit(X, y).decision_function(X)
        standardized = X / X.std(axis=0)
        theirs = SVC(gamma=1 / 3).fit(standardized, y)
        assert_allclose(ours, theirs.decision_function(standardized), atol=1e-8)
        assert np.isfinite(as_kernel("gaussian", np.ones((5, 2)))(np.ones((5, 2)))).all()

    @pytest.mark.parametrize(
        "bad, error, text",
        [
            ("rbff", ValueError, "is not known; use rbf, a kernel object"),
            (3, TypeError, "two items"),
            (Gaussian, TypeError, "is a class"),
        ],
    )
    def test_bad_kernels(self, bad, error, text):
        with pytest.raises(error, match=text):
            as_kernel(bad)


def test_gaussian_process_kernel_with_fixed_parameters():
    kernel = GaussianProcessKernel(DotProduct(sigma_0_bounds="fixed"))
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert kernel.theta.size == 0 and kernel.pullback(X, None, np.ones((5, 5))).size == 0


def test_precomputed_has_no_diagonal_for_new_rows():
    with pytest.raises(ValueError, match="not in a precomputed matrix"):
        Precomputed().diag(np.ones((2, 3)))


def test_pullback_needs_no_tensor():
    """Derivatives in 20 length scales at n = 400 stay far below the tensor's 25.6 MB."""
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(400, 20))
    G = np.ones((400, 400))
    kernel = Gaussian(np.full(20, 4.0))
    tracemalloc.start()
    gradient = kernel.pullback(X, None, G)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * 400 * 20 * 8 / 10
    assert_allclose(
        gradient,
        central_difference(lambda t: kernel.with_theta(t)(X).sum(), kernel.theta),
        rtol=1e-6,
    )


def test_base_class_is_abstract():
    with pytest.raises(NotImplementedError):
        Kernel()(np.ones((2, 2)))


class TestCovariance:
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]

    def test_gaussian_process_is_tuned_as_with_rbf(self):
        ours = GaussianProcessRegressor(1.0 * Covariance(Gaussian(0.5)), alpha=1e-3).fit(
            self.X, self.y
        )
        theirs = GaussianProcessRegressor(1.0 * RBF(0.5), alpha=1e-3).fit(self.X, self.y)
        assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, rtol=1e-4)
        assert_allclose(
            ours.predict(self.X + 0.1), theirs.predict(self.X + 0.1), rtol=1e-3, atol=1e-4
        )
        assert ours.log_marginal_likelihood_value_ == pytest.approx(
            theirs.log_marginal_likelihood_value_, rel=1e-8
        )

    def test_kernel_ridge_equals_rbf(self):
        model = KernelRidge(kernel=Covariance(Gaussian(0.5)), alpha=0.1)
        expected = (
            KernelRidge(kernel="rbf", gamma=2.0, alpha=0.1)
            .fit(self.X, self.y)
            .predict(self.X + 0.1)
        )
        assert_allclose(model.fit(self.X, self.y).predict(self.X + 0.1), expected, rtol=1e-10)
        with pytest.raises(ValueError, match=r"kernel=mercerless\.kernels\.Covariance"):
            KernelRidge(kernel=Gaussian(0.5)).fit(self.X, self.y)
        search = GridSearchCV(model, {"kernel__kernel__length_scale": [0.1, 1.0]}).fit(
            self.X, self.y
        )
        assert search.best_params_ == {"kernel__kernel__length_scale": 1.0}
        assert model.kernel.kernel.length_scale == 0.5

    @pytest.mark.parametrize(
        "kernel",
        [Gaussian([0.5, 2.0]), Laplace(1.5), Polynomial(3, 2.0, 0.5), 2.0 * Gaussian() + Sigmoid()],
        ids=repr,
    )
    def test_derivatives_agree_with_pullback(self, kernel):
        K, slopes = Covariance(kernel)(self.X, eval_gradient=True)
        assert_allclose(K, kernel(self.X))
        G = np.random.default_rng(1).normal(size=K.shape)
        assert_allclose(
            np.einsum("ij,ijp->p", G, slopes), kernel.pullback(self.X, None, G), rtol=1e-8
        )
        assert (
            Covariance(kernel).n_dims
            == slopes.shape[2]
            == Covariance(kernel).hyperparameters[0].n_elements
        )

    def test_derivatives_agree_with_rbf(self):
        slopes = Covariance(Gaussian([0.5, 2.0]))(self.X, eval_gradient=True)[1]
        assert_allclose(slopes, RBF([0.5, 2.0])(self.X, eval_gradient=True)[1], atol=1e-10)

    def test_functions_of_strings_and_kernels_without_parameters(self):
        words = ["kernel", "colonel", "mercer", "space"]
        kernel = Covariance(PairFunction(lambda a, b: len(set(a) & set(b)) + (a == b)))
        model = GaussianProcessRegressor(kernel, alpha=1e-8).fit(words, [1.0, 2.0, 3.0, 4.0])
        assert_allclose(model.predict(words), [1.0, 2.0, 3.0, 4.0], atol=1e-5)
        assert kernel.n_dims == 0 and not kernel.requires_vector_input
        assert kernel(words, eval_gradient=True)[1].shape == (4, 4, 0)

    def test_it_comes_back_as_the_kernel_and_clones(self):
        kernel = TL1(2.0)
        assert as_kernel(Covariance(kernel)) is kernel
        copy = clone(Covariance(kernel))
        assert copy.kernel is not kernel and repr(copy) == "Covariance(TL1(length_scale=2.0))"
        assert Covariance(kernel).is_stationary() and not Covariance(Sigmoid()).is_stationary()
        assert Covariance(kernel).clone_with_theta([0.0]).kernel.length_scale == 1.0
        assert kernel.length_scale == 2.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_features", [63, 64, 65, 200])
def test_l1_kernels_of_many_features_are_those_of_single_rows(n_features, dtype):
    """Groups of features are summed in the same order in every tile, whatever the number of rows."""
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(2, 600, n_features)).astype(dtype)
    for kernel in (Laplace(float(n_features)), TL1(2.0 * n_features)):
        for K, other in ((kernel(X, Y), Y), (kernel(X), X)):
            assert K.dtype == dtype
            assert_array_equal(K[[5, 599]][:, 300:310], kernel(X[[5, 599]], other[300:310]))
        distances = np.abs(X[:9, None].astype(float) - Y[:7]).sum(axis=2)
        expected = kernel._profile(distances)
        assert_allclose(kernel(X[:9], Y[:7]), expected, rtol=1e-12 if dtype == np.float64 else 1e-6)
        G = random.normal(size=(9, 7))
        larger = kernel.with_theta(kernel.theta + 1e-5)(X[:9].astype(float), Y[:7].astype(float))
        smaller = kernel.with_theta(kernel.theta - 1e-5)(X[:9].astype(float), Y[:7].astype(float))
        slope = np.sum(G * (larger - smaller)) / 2e-5
        assert_allclose(kernel.pullback(X[:9], Y[:7], G), [slope], rtol=1e-5)


@pytest.mark.parametrize("metric", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_scikit_learns_names_are_its_functions_with_their_default_parameters(metric):
    X, Y = np.abs(np.random.default_rng(0).normal(size=(2, 30, 5)))
    kernel = as_kernel(metric, X)
    assert_allclose(kernel(X, Y), pairwise_kernels(X, Y, metric=metric), rtol=1e-12)
    assert_allclose(kernel(X), pairwise_kernels(X, metric=metric), rtol=1e-12)
    assert_allclose(kernel.diag(X), np.diagonal(pairwise_kernels(X, metric=metric)), rtol=1e-12)
    assert type(as_kernel(metric)) is Metric  # without rows the rate is not known


def test_rbf_reaches_the_gaussian_and_its_fast_paths():
    X, y = make_moons(80, noise=0.2, random_state=0)
    model = DANKClassifier("rbf").fit(X, y)
    assert isinstance(model.kernel_, Gaussian)
    assert_allclose(
        model.decision_function(X), DANKClassifier(Gaussian(1.0)).fit(X, y).decision_function(X)
    )


def test_a_metric_with_parameters_is_not_declared_definite():
    assert Metric("polynomial").definite is True
    odd = Metric("polynomial", {"degree": 2, "coef0": -1.0})
    assert odd.definite is None
    assert np.linalg.eigvalsh(odd(np.eye(3)))[0] < -0.1
    assert Metric("sigmoid").definite is False


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-6)])
@pytest.mark.parametrize("shape", [(40, 1), (300, 5), (1300, 4), (600, 70), (300, 200)])
@pytest.mark.parametrize("far", [1e3, 99999999.0, 1e15])
def test_a_far_item_changes_no_value_between_the_others(shape, far, dtype, tolerance):
    random = np.random.default_rng(shape[1])
    n, d = shape
    X = (random.normal(size=shape) * random.choice([1.0, 10.0], size=(1, d))).astype(dtype)
    X[1] = X[0]
    X[3] = X[2] + dtype(1e-3)
    with_far = np.vstack([X, np.full((1, d), far), np.full((1, d), far * 1.001)]).astype(dtype)
    widths = random.uniform(0.5, 2.0, size=(n + 2, d))
    kernels = [Gaussian(2.0), Exponential(np.full(d, 0.7)), Epanechnikov(3.0), DeltaGauss(), Log()]
    pairs = [(kernel, kernel) for kernel in kernels]
    pairs += [(kind(widths[:n]), kind(widths)) for kind in (LocalGaussian, LocalExponential)]
    for kernel, kernel_with_far in pairs:
        alone = kernel(X)
        beside = kernel_with_far(with_far)
        assert_allclose(beside[:n, :n], alone, rtol=0, atol=tolerance)
        assert np.isfinite(beside).all()
        rows = kernel_with_far(with_far[-2:], with_far)  # two far rows, near enough to see
        assert_allclose(rows[:, -2:], beside[-2:, -2:], rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "kernel", [Gaussian(30.0), Exponential(30.0), Log(30.0), Epanechnikov(80.0)]
)
def test_gradients_beside_far_items(kernel):
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(20, 3)), 1e8 + 9 * random.normal(size=(4, 3))])
    G = random.normal(size=(24, 24))
    step = 1e-5
    high, low = (kernel.with_theta(kernel.theta + s) for s in (step, -step))
    expected = np.sum(G * (high(X) - low(X))) / (2 * step)
    assert_allclose(kernel.pullback(X, None, G)[0], expected, rtol=1e-6)
