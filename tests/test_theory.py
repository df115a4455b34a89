"""Learning-rate exponents against the papers' proofs, and the quantities of a sample against simulations."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles.theory import (
    bias_of_ridge,
    hyper_svr_of_a_smooth_kernel,
    krein_from_the_proof,
    lab_from_the_proof,
    largest_quadratic,
)

from mercerless.kernels import DeltaGauss, Gaussian, Log
from mercerless.theory import (
    effective_dimension,
    eigenvalue_growth,
    hyper_ridge_exponent,
    hyper_svr_exponent,
    krein_exponent,
    krein_sample_size,
    lab_exponent,
    rademacher_bound,
)

unit = st.floats(0.01, 1.0)


@given(unit, st.floats(0.01, 1.5), unit, st.one_of(st.none(), st.floats(0.01, 1.5)))
@settings(max_examples=200, deadline=None)
def test_krein_exponent_is_that_of_the_proof(beta, s, gamma, eta):
    limit = 1 / s - (gamma + s * gamma - 1) * (2 + s)
    assume(limit > 1e-6)
    assume(eta is None or (eta > max(0, 1 - 2 / s) and (eta >= 1 or gamma + eta > 1)))
    for epsilon in (0.0, limit / 3):
        expected = krein_from_the_proof(beta, s, gamma, eta, epsilon)
        value = krein_exponent(beta, s, gamma, eta, epsilon)
        assert_allclose(value, expected, rtol=1e-10, atol=1e-12)


@given(unit, unit, st.floats(0.1, 10), st.floats(1.1, 5))
@settings(max_examples=100, deadline=None)
def test_hyper_svr_exponent_of_smooth_kernels(r, alpha, p, q):
    expected = hyper_svr_of_a_smooth_kernel(r, min(2 / q, p / (p + 1)), alpha)
    assert_allclose(q * hyper_svr_exponent(r, 1e-10, alpha, p, q), expected, rtol=1e-6)


@pytest.mark.parametrize(("r", "decay"), [(1.0, 0.5), (0.5, 0.8), (0.7, 1.0)])
def test_the_exponent_of_hyper_ridge_is_that_of_the_bias(r, decay):
    """A target with D(alpha) ~ alpha**r, for which ridge regression without noise is no better than its bias."""
    sizes = np.array([1e12, 1e16])  # logarithms fade slowly
    norms = np.array([bias_of_ridge(m**-decay, r) for m in sizes])
    observed = -np.log(norms[1] / norms[0]) / np.log(sizes[1] / sizes[0])
    assert_allclose(hyper_ridge_exponent(r, 1e-9, decay), observed, atol=0.03)


@given(unit, st.floats(0, 0.249))
@settings(max_examples=50, deadline=None)
def test_lab_exponent_is_that_of_the_proof(beta, share):
    xi = share * beta
    error, decay, support = lab_from_the_proof(beta, xi)
    assert_allclose(lab_exponent(beta, xi), (error, support, decay), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: krein_exponent(0.0, 0.1, 0.5), "approximation must be in"),
        (lambda: krein_exponent(1.0, 0.0, 0.5), "capacity must be positive"),
        (lambda: krein_exponent(1.0, 0.1, 0.5, 0.3), r"decay \+ growth > 1"),
        (lambda: krein_exponent(1.0, 3.0, 1.0), "epsilon <"),
        (lambda: krein_exponent(1.0, 4.0, 0.15, growth=0.5), "growth >"),
        (lambda: hyper_ridge_exponent(1.0, 5.0, 0.9), "decay <"),
        (lambda: hyper_svr_exponent(1.0, 0.1, 0.9, q=1.0), "q > 1"),
        (lambda: hyper_svr_exponent(1.0, 0.1, 0.9, p=0.0), "p > 0"),
        (lambda: lab_exponent(0.4, 0.1), "xi in"),
        (lambda: krein_sample_size(np.eye(3), 0.1, 1.0), "delta must be"),
        (lambda: eigenvalue_growth(np.ones((64, 64)), [40, 65]), "at least two"),
    ],
)
def test_conditions_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_growth_has_to_exceed_a_bound_by_the_capacity():
    assert 0.0 < krein_exponent(1.0, 4.0, 0.15, growth=0.9) < 0.2  # above 1 - 2/s = 0.5


def test_eigenvalue_growth_of_known_kernels():
    X = np.random.default_rng(0).uniform(size=(160, 2))
    log = eigenvalue_growth(Log()(X), [40, 80, 160], n_repeats=4, random_state=0)
    # the one negative eigenvalue is minus the sum of the others
    assert_allclose(log.negative, 1.0, atol=0.05)
    assert log.eta == min(log.positive, log.negative)
    gauss = eigenvalue_growth(Gaussian(0.5)(X), [40, 80, 160], n_repeats=4, random_state=0)
    assert_allclose(gauss.positive, 1.0, atol=0.05)
    assert np.isnan(gauss.negative) and np.isnan(gauss.eta)
    assert eigenvalue_growth(np.eye(160), n_repeats=1).sizes.tolist() == [20, 40, 80, 160]
    assert eigenvalue_growth(np.eye(5), n_repeats=1).sizes.tolist() == [1, 2, 5]


def test_effective_dimension_is_the_degrees_of_freedom_of_ridge_regression():
    K = Gaussian(0.5)(np.random.default_rng(0).standard_normal((30, 2)))
    hat = K @ np.linalg.inv(K + 30 * 0.01 * np.eye(30))
    assert_allclose(effective_dimension(K, 0.01), np.trace(hat), rtol=1e-9)
    assert_allclose(effective_dimension(-K, 0.01), np.trace(hat), rtol=1e-9)


def test_samples_of_that_size_keep_the_promise():
    """A space of four points: the supremum over the ball is a quadratic's, and can be computed for every sample."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(4, 4))
    K = 0.1 * (A + A.T)
    y = rng.uniform(-0.5, 0.5, size=4)
    s, V = np.linalg.eigh(K)
    features = V * np.sqrt(np.abs(s))  # f = features @ g with the norm of g
    epsilon, delta = 0.4, 0.2
    size = krein_sample_size(K, epsilon, delta, largest_target=0.5)
    exceeded = 0
    for _ in range(200):
        excess = rng.multinomial(size, np.full(4, 0.25)) / size - 0.25
        quadratic = (features.T * excess) @ features
        linear = -2 * features.T @ (excess * y)
        exceeded += largest_quadratic(quadratic, linear, excess @ y**2) >= epsilon
    assert exceeded <= 200 * delta


def test_rademacher_bound_holds_and_is_nearly_reached():
    rng = np.random.default_rng(0)
    K = DeltaGauss(1.0, 0.4)(rng.standard_normal((80, 2)))
    bound = rademacher_bound(K, 2.0)
    s, V = np.linalg.eigh(K)
    absolute = (V * np.abs(s)) @ V.T
    # the supremum over the ball in closed form, averaged over random signs
    signs = rng.choice([-1.0, 1.0], (4000, 80))
    suprema = 2.0 * np.sqrt(np.einsum("ij,ij->i", signs @ absolute, signs)) / 80
    assert 0.8 * bound < suprema.mean() <= bound + 3 * suprema.std() / np.sqrt(4000)
