"""Learning-rate exponents against the papers' proofs and remarks."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles.theory import (
    bias_of_ridge,
    constrained_eigenvalue,
    hyper_svr_of_a_smooth_kernel,
    krein_from_the_proof,
    lab_from_the_proof,
    largest_quadratic,
)

from mercerless.kernels import DeltaGauss, Gaussian, Log
from mercerless.theory import (
    best_decay,
    eigenvalue_growth,
    hyper_ridge_exponent,
    hyper_svr_exponent,
    hypothesis_bound,
    hypothesis_error,
    krein_exponent,
    krein_sample_size,
    lab_exponent,
    rademacher_bound,
)

unit = st.floats(0.01, 1.0)


@given(unit, st.floats(0.01, 1.5), unit, st.one_of(st.none(), st.floats(0.01, 1.5)))
@settings(max_examples=300, deadline=None)
def test_krein_exponent_is_that_of_the_proof(beta, s, gamma, eta):
    limit = 1 / s - (gamma + s * gamma - 1) * (2 + s)
    assume(limit > 1e-6)
    assume(eta is None or (eta > max(0, 1 - 2 / s) and (eta >= 1 or gamma + eta > 1)))
    for epsilon in (0.0, limit / 3):
        value = krein_exponent(beta, s, gamma, eta, epsilon)
        assert_allclose(
            value, krein_from_the_proof(beta, s, gamma, eta, epsilon), rtol=1e-10, atol=1e-12
        )
        assert value > 0


def test_krein_exponent_at_its_corners():
    # the optimal rate of a Hilbert space
    assert_allclose(krein_exponent(1.0, 1e-8, 1.0), 1.0, rtol=1e-6)
    assert krein_exponent(0.7, 0.2, 0.9, growth=1.3) == krein_exponent(0.7, 0.2, 0.9)
    assert krein_exponent(0.9, 0.1, 0.8, growth=0.5) <= krein_exponent(0.9, 0.1, 0.8)
    # for small s and penalty 1/m the text gives min(beta, eta)
    assert_allclose(krein_exponent(0.6, 1e-7, 1.0, growth=0.4), 0.4, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.1, 0.5), "approximation must be in"),
        ((1.0, 0.1, 1.5), "decay must be in"),
        ((1.0, 0.0, 0.5), "capacity must be positive"),
        ((1.0, 0.1, 0.5, 0.3), r"decay \+ growth > 1"),
        ((1.0, 3.0, 0.2, 0.1), "growth > max"),
        ((1.0, 3.0, 1.0), "epsilon <"),
    ],
)
def test_krein_conditions(arguments, message):
    with pytest.raises(ValueError, match=message):
        krein_exponent(*arguments)


@given(unit, unit, st.floats(0.1, 10), st.floats(1.1, 5))
@settings(max_examples=100, deadline=None)
def test_hyper_svr_exponent_of_smooth_kernels(r, alpha, p, q):
    theta = min(2 / q, p / (p + 1))
    expected = hyper_svr_of_a_smooth_kernel(r, theta, alpha)
    assert_allclose(q * hyper_svr_exponent(r, 1e-10, alpha, p, q), expected, rtol=1e-6)


def test_hyper_exponents_conditions_and_limits():
    # (19) is (18) for theta = 0 without its second term, in the norm itself
    for r, s, a in [(1.0, 0.3, 0.5), (0.4, 0.1, 0.9), (0.9, 0.5, 0.3), (0.2, 0.05, 0.8)]:
        without_condition = 2.0 * hyper_svr_exponent(r, s, a, p=1e-12, q=2.0)
        exponent = min(hyper_ridge_exponent(r, s, a, as_printed=True), (1 + a * r - a) / 2)
        assert_allclose(exponent, without_condition, rtol=1e-9)
    # squared error: the optimal 1/m, with the penalty 1/m
    assert_allclose(2 * hyper_ridge_exponent(1.0, 1e-9, 1.0), 1.0, rtol=1e-6)
    with pytest.raises(ValueError, match="decay <"):
        hyper_ridge_exponent(1.0, 5.0, 0.9)
    with pytest.raises(ValueError, match="decay <"):
        hyper_svr_exponent(1.0, 5.0, 0.9)
    with pytest.raises(ValueError, match="q > 1"):
        hyper_svr_exponent(1.0, 0.1, 0.9, q=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        hyper_ridge_exponent(1.0, 0.1, 0.5, epsilon=1.0)


@pytest.mark.parametrize(("r", "decay"), [(1.0, 0.5), (0.5, 0.8), (0.7, 1.0)])
def test_the_exponent_of_hyper_ridge_is_that_of_the_bias_and_the_printed_one_is_too_large(r, decay):
    """A target with D(alpha) ~ alpha**r, for which ridge regression without noise is no better than its bias."""
    sizes = np.array([1e12, 1e16])  # logarithms fade slowly
    norms = np.array([bias_of_ridge(m**-decay, r) for m in sizes])
    observed = -np.log(norms[1] / norms[0]) / np.log(sizes[1] / sizes[0])
    assert_allclose(hyper_ridge_exponent(r, 1e-9, decay), observed, atol=0.03)
    assert hyper_ridge_exponent(r, 1e-9, decay, as_printed=True) > observed + 0.1


def indefinite_sample(seed, m=12):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, m))
    return A + A.T, rng.normal(size=m), np.exp(rng.uniform(-2, 2)), m ** -rng.uniform(0.1, 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_hypothesis_error_against_the_eigenvalues_of_the_paper(seed):
    K, y, radius, alpha = indefinite_sample(seed)
    m = len(K)
    parts = hypothesis_error(K, y, alpha, radius)
    mu = constrained_eigenvalue(K, y, alpha, radius)  # (4.4)
    assert_allclose(parts.multiplier, mu, rtol=1e-6)
    a = np.linalg.solve(alpha * np.eye(m) - mu * K, y) / m  # (4.3)
    covariance_mu = constrained_eigenvalue(K, y, 0.0, radius)  # (4.8)
    assert_allclose(parts.covariance_multiplier, covariance_mu, rtol=1e-6)
    covariance_a = -np.linalg.solve(K, y) / (m * covariance_mu)  # (4.7)
    for coef in (a, covariance_a):
        assert_allclose(np.mean((K @ coef) ** 2), radius**2, rtol=1e-5)
    objectives = [np.mean((K @ c - y) ** 2) + alpha * c @ K @ K @ c / m for c in (a, covariance_a)]
    assert_allclose(parts.value, objectives[0] - objectives[1], rtol=1e-5)  # (5.1)
    assert_allclose(parts.covariance_part, 2 * y @ K @ covariance_a / m, rtol=1e-5)
    assert parts.value >= 0


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_propositions_5_2_and_5_5(seed):
    K, y, radius, alpha = indefinite_sample(seed, 20)
    parts = hypothesis_error(K, y, alpha, radius)
    bound = hypothesis_bound(K, y, alpha, radius)
    assert bound.multiplier_low <= parts.multiplier <= bound.multiplier_high
    assert parts.value <= bound.error
    # docs/papers/rkks.md: more is true
    pole = alpha / np.linalg.eigvalsh(K)[np.linalg.eigvalsh(K) < 0].max()
    assert pole - np.linalg.norm(y) / (20**1.5 * radius) <= parts.multiplier < pole
    # the printed constants, one after the other
    s = np.linalg.eigvalsh(K)
    m, M = len(K), np.abs(y).max()
    c1, cm = s[-1] / m, s[0] / m
    C1 = s[-1] / s[s > 0].min()
    C2 = s[0] / s[s < 0].max()
    gamma = -np.log(alpha) / np.log(m)
    constant = 2 * M * radius + 2 * M**2 * (-cm / C2 + M**2 / radius**2 + C1 / c1)
    assert_allclose(bound.error, constant * m ** -min(1, gamma), rtol=1e-8)
    shift = np.linalg.norm(y) / (m * np.sqrt(m) * radius)
    assert_allclose(bound.multiplier_low, C2 / cm * m ** -(gamma + 1) - shift - shift**2, rtol=1e-8)
    assert_allclose(
        bound.multiplier_high, C1 / c1 * m ** -(gamma + 1) + shift + shift**2, rtol=1e-8
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(3), np.ones(3), 0.1, 1.0), "both signs"),
        ((np.diag([1.0, -1.0]), np.ones(3), 0.1, 1.0), "one number per row"),
        ((np.diag([1.0, -1.0]), np.zeros(2), 0.1, 1.0), "y must not be zero"),
        ((np.diag([1.0, -1.0]), np.ones(2), -0.1, 1.0), "alpha"),
        ((np.diag([1.0, -1.0]), np.ones(2), 0.1, 0.0), "radius"),
    ],
)
def test_hypothesis_error_names_what_is_wrong(arguments, message):
    for function in (hypothesis_error, hypothesis_bound):
        with pytest.raises(ValueError, match=message):
            function(*arguments)


def test_conditions_of_the_hypothesis_bound():
    K, y = np.diag([1.0, -1.0]), np.ones(2)
    with pytest.raises(ValueError, match="below 1"):
        hypothesis_bound(K, y, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"gamma \+ eta > 1"):
        hypothesis_bound(K, y, 0.9, 1.0, growth=0.5)


def test_eigenvalue_growth_of_known_kernels():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(160, 2))
    log = eigenvalue_growth(Log()(X), [40, 80, 160], n_repeats=4, random_state=0)
    # the one negative eigenvalue is minus the sum of the others
    assert_allclose(log.negative, 1.0, atol=0.05)
    assert log.eta == min(log.positive, log.negative)
    gauss = eigenvalue_growth(Gaussian(0.5)(X), [40, 80, 160], n_repeats=4, random_state=0)
    assert_allclose(gauss.positive, 1.0, atol=0.05)
    assert np.isnan(gauss.negative) and np.isnan(gauss.eta)
    # a matrix whose extreme eigenvalues are known for every subset: a diagonal has eta 0, ones have 1
    both = eigenvalue_growth(np.ones((64, 64)) - 3.0 * np.eye(64), random_state=0)
    assert_allclose(both.sizes, [8, 16, 32, 64])
    assert_allclose(both.largest[:, 0], both.sizes - 3.0)
    assert_allclose(both.negative, 0.0, atol=1e-10)
    with pytest.raises(ValueError, match="at least two"):
        eigenvalue_growth(np.ones((64, 64)), [40])
    with pytest.raises(ValueError, match="at least two"):
        eigenvalue_growth(np.ones((64, 64)), [40, 65])


def test_sample_size_is_the_first_that_meets_the_bound():
    K = DeltaGauss(1.0, 0.4)(np.random.default_rng(0).standard_normal((30, 2)))
    s, V = np.linalg.eigh(K)
    diagonal = np.diag((V * np.abs(s)) @ V.T)
    epsilon, delta, radius, target = 0.3, 0.02, 1.5, 0.7

    def bound(n):
        residual = target + radius * np.sqrt(diagonal.max())
        complexity = radius * np.sqrt(diagonal.mean() / n)
        return 2 * 2 * residual * complexity + residual**2 * np.sqrt(np.log(2 / delta) / (2 * n))

    size = krein_sample_size(K, epsilon, delta, radius=radius, largest_target=target)
    assert bound(size) <= epsilon < bound(size - 1)
    with pytest.raises(ValueError, match="delta must be"):
        krein_sample_size(K, 0.1, 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        krein_sample_size(K, 0.0, 0.1)


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
        constant = excess @ y**2
        exceeded += largest_quadratic(quadratic, linear, constant) >= epsilon
    assert exceeded <= 200 * delta


@given(unit, st.floats(0, 0.249))
@settings(max_examples=50, deadline=None)
def test_lab_exponent_is_that_of_the_proof(beta, share):
    xi = share * beta
    error, decay, support = lab_from_the_proof(beta, xi)
    assert_allclose(lab_exponent(beta, xi), (error, support, decay), rtol=1e-10, atol=1e-12)
    assert lab_exponent(beta, xi).decay <= 0.5 + 1e-12  # the paper's remark
    with pytest.raises(ValueError, match="xi in"):
        lab_exponent(beta, beta / 4)


def test_best_decay_beats_a_grid():
    decay, exponent = best_decay(lambda g: krein_exponent(0.5, 0.5, g))
    assert 0 < decay <= 1
    for g in np.linspace(0.05, 0.95, 19):
        assert krein_exponent(0.5, 0.5, g) <= exponent + 1e-9
    with pytest.raises(ValueError, match="no decay"):
        best_decay(lambda g: krein_exponent(1.0, 50.0, g, growth=0.1))


def test_rademacher_bound_holds_and_is_nearly_reached():
    rng = np.random.default_rng(0)
    K = DeltaGauss(1.0, 0.4)(rng.standard_normal((80, 2)))
    bound = rademacher_bound(K, 2.0)
    s, V = np.linalg.eigh(K)
    absolute = (V * np.abs(s)) @ V.T
    assert_allclose(bound, 2.0 * np.sqrt(np.trace(absolute)) / 80, rtol=1e-10)
    # the supremum over the ball in closed form, averaged over random signs
    signs = rng.choice([-1.0, 1.0], (4000, 80))
    suprema = 2.0 * np.sqrt(np.einsum("ij,ij->i", signs @ absolute, signs)) / 80
    assert 0.8 * bound < suprema.mean() <= bound + 3 * suprema.std() / np.sqrt(4000)
    # brute force: no function V|s|^1/2 g of the ball exceeds the closed form, for one draw of signs
    F = (V * np.sqrt(np.abs(s))) @ rng.standard_normal((80, 5000))
    g = np.linalg.norm(np.linalg.pinv(V * np.sqrt(np.abs(s))) @ F, axis=0)
    assert np.all(2.0 * np.abs(signs[0] @ (F / g)) / 80 <= suprema[0] + 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda K: rademacher_bound(K, -1.0), "radius=-1.0 must be a nonnegative"),
        (lambda K: rademacher_bound(K, np.nan), "radius=nan must be"),
        (lambda K: eigenvalue_growth(K, n_repeats=0), "n_repeats=0 must be a positive whole"),
        (lambda K: krein_sample_size(K, 1e-200, 0.1), "more rows than there are numbers"),
        (lambda K: hypothesis_error(K, [1.0, np.nan, 2.0], 0.1, 1.0), "NaN"),
        (lambda K: hypothesis_bound(K, [1.0, np.inf, 2.0], 0.1, 1.0), "infinity"),
    ],
)
def test_numbers_that_would_give_nonsense_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.diag([1.0, -1.0, 2.0]))
