"""Learning-rate exponents against the papers' proofs and remarks."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles.theory import hyper_svr_of_a_smooth_kernel, krein_from_the_proof, lab_from_the_proof

from mercerless.kernels import DeltaGauss
from mercerless.theory import (
    best_decay,
    hyper_ridge_exponent,
    hyper_svr_exponent,
    krein_exponent,
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
    # Theorem 8 is Theorem 7 for theta = 0 without its second term, in the norm itself
    for r, s, a in [(1.0, 0.3, 0.5), (0.4, 0.1, 0.9), (0.9, 0.5, 0.3), (0.2, 0.05, 0.8)]:
        without_condition = 2.0 * hyper_svr_exponent(r, s, a, p=1e-12, q=2.0)
        exponent = min(hyper_ridge_exponent(r, s, a), (1 + a * r - a) / 2)
        assert_allclose(exponent, without_condition, rtol=1e-9)
    # squared error: the optimal 1/m
    assert_allclose(2 * hyper_ridge_exponent(1.0, 1e-9, 0.5), 1.0, rtol=1e-6)
    with pytest.raises(ValueError, match="decay <"):
        hyper_ridge_exponent(1.0, 5.0, 0.9)
    with pytest.raises(ValueError, match="decay <"):
        hyper_svr_exponent(1.0, 5.0, 0.9)
    with pytest.raises(ValueError, match="q > 1"):
        hyper_svr_exponent(1.0, 0.1, 0.9, q=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        hyper_ridge_exponent(1.0, 0.1, 0.5, epsilon=1.0)


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
