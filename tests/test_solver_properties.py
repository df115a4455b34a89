"""Properties of all solvers on arbitrary spectra and scales: certificates hold and bound the error.

Spectra have ties, zeros and both signs; scales run from 1e-150 to 1e150. A problem whose parts are scaled together has
the same solution in other units, so the problem of unit size, solved by an independent route, is the oracle for all.
"""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.dank import dense_objective, random_feasible
from oracles.krein import dense_two_penalties
from oracles.lab import evidence as dense_evidence
from oracles.similarity import sparse_machine_dual

from mercerless.asymmetric.solver import asymmetric_ridge
from mercerless.core.svm import hinge_machines, tube_machine
from mercerless.dank.quartic import Quartic, gap_scale, solve_quartic
from mercerless.dank.solver import solve_dank
from mercerless.hyper.solver import ridge_exact
from mercerless.hyper.tensor import TensorProblem, item_basis
from mercerless.krein.solver import build_system, minimize_on_sphere, solve_system
from mercerless.lab.solver import evidence, interpolation
from mercerless.similarity.linear import sparse_machine

# eight problems each, or a tenth of MERCERLESS_FUZZ: 200 in make test-all
EXAMPLES = max(8, int(os.environ.get("MERCERLESS_FUZZ", 0)) // 10)
few = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
seeds = st.integers(0, 2**32 - 1)
scales = st.integers(-150, 150).map(lambda power: 10.0**power)
sizes = [-3.0, -1.0, -1e-3, 0.0, 1e-6, 0.5, 1.0, 1.0, 2.0, 10.0]
eigenvalues = st.lists(st.sampled_from(sizes), min_size=4, max_size=12)


def matrix_of(values, seed):
    """A symmetric matrix with these eigenvalues."""
    values = np.array(values)
    V = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values),) * 2))[0]
    K = (V * values) @ V.T
    return (K + K.T) / 2


def definite_of(values, seed):
    return matrix_of(np.abs(values), seed)


def labels_of(n, rng):
    return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[rng.permutation(n)]


@few
@given(eigenvalues, seeds, scales, scales)
def test_sphere(penalties, seed, scale, radius):
    rng = np.random.default_rng(seed)
    p, t = (
        scale * np.array(penalties),
        rng.normal(size=len(penalties)) * (rng.random(len(penalties)) < 0.7),
    )
    found = minimize_on_sphere(p, scale * radius * t, radius)
    u = found.coef / radius
    assert found.constraint_error < 1e-9 and found.is_minimum
    assert np.all(np.isfinite(u)) and abs(np.linalg.norm(u) - 1) < 1e-9

    def value(u):
        return np.sum(p / scale * u**2, axis=-1) - 2 * u @ t  # |u|^2 is the same for all

    others = rng.normal(size=(500, len(p)))
    others = np.concatenate([others, u + 1e-3 * others])
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert value(u) <= value(others).min() + 1e-8 * (1 + np.abs(penalties).max())


@few
@given(eigenvalues, seeds, scales)
def test_krein_system(values, seed, scale):
    K, rng = matrix_of(values, seed), np.random.default_rng(seed)
    y = rng.normal(size=len(K))
    found = solve_system(build_system(scale * K, y[:, None], rtol=1e-5), scale * 0.02, scale * 0.05)
    fitted = (scale * K @ found.coef + found.intercept)[:, 0]
    assert found.stationarity < 1e-9 and np.all(np.isfinite(fitted))
    unit = solve_system(build_system(K, y[:, None], rtol=1e-5), 0.02, 0.05)
    np.testing.assert_allclose(fitted, (K @ unit.coef + unit.intercept)[:, 0], atol=1e-7)
    if np.abs(np.linalg.eigvalsh(K)).min() > 1e-2:  # where nothing is dropped, the dense formula
        expected = dense_two_penalties(K, y, 0.02, 0.05)
        np.testing.assert_allclose(
            fitted, expected[0] if isinstance(expected, tuple) else expected, atol=1e-6
        )


@few
@given(eigenvalues, seeds, scales, st.sampled_from([0.0, 0.2]), st.sampled_from([1, 2, 60]))
def test_quartic(values, seed, scale, epsilon, steps):
    """Also the certificate of an answer that was cut short bounds its error."""
    K, rng = definite_of(values, seed), np.random.default_rng(seed)
    n, C = len(K), 2.0
    p = labels_of(n, rng)
    lo, hi = (
        (np.minimum(0, C * p), np.maximum(0, C * p))
        if epsilon == 0
        else (np.full(n, -C), np.full(n, C))
    )
    scaled = Quartic(scale * K, (scale * K) ** 2, 0.3 * scale, p, lo / scale, hi / scale, epsilon)
    found = solve_quartic(scaled, np.zeros(n), tol=1e-8, max_steps=steps)
    unit = solve_quartic(
        Quartic(K, K**2, 0.3, p, lo, hi, epsilon), np.zeros(n), tol=1e-8, max_steps=60
    )

    def value(v):
        return p @ v - epsilon * np.abs(v).sum() - v @ K @ v / 2 - 0.3 / 4 * v**2 @ K**2 @ v**2

    v = scale * found.v
    assert np.all(found.v >= lo / scale) and np.all(found.v <= hi / scale) and abs(v.sum()) < 1e-9
    best = max([value(unit.v), *(value(w) for w in random_feasible(rng, lo, hi, 20))])
    assert best - value(v) <= found.gap * gap_scale(p, v, epsilon) * (1 + 1e-6) + 1e-9
    if steps == 60:
        assert found.gap <= 1e-6


def test_an_interior_optimum_near_a_bound_is_not_moved_onto_it():
    """Found by 2,000 draws: no multiplier is active, so that rounding decided which bounds are."""
    K, C = definite_of([1e-3, 1e-3, 10.0, 0.5, 1.0], 4294967295), 2.0
    p = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    problem = Quartic(K, K**2, 0.3, p, np.minimum(0, C * p), np.maximum(0, C * p))
    assert solve_quartic(problem, np.zeros(5), tol=1e-8).gap < 1e-8  # it was .03


def test_one_quartic_step_is_kept():
    """The point after the last step is certified like all others."""
    K, p, C = definite_of([0.5, 1.0, 2.0, 10.0], 0), np.array([1.0, -1.0, 1.0, -1.0]), 2.0
    problem = Quartic(K, K**2, 0.3, p, np.minimum(0, C * p), np.maximum(0, C * p))
    assert solve_quartic(problem, np.zeros(4), tol=1e-8, max_steps=1).gap < 1.0


@few
@given(eigenvalues, seeds, scales, st.sampled_from([0.0, 0.05]))
def test_dank(values, seed, scale, rank_penalty):
    K, rng = definite_of(values, seed), np.random.default_rng(seed)
    p = labels_of(len(K), rng)
    lo, hi = np.minimum(0, 2.0 * p), np.maximum(0, 2.0 * p)
    start = random_feasible(rng, lo, hi, 1)[0]

    def solve(scale, tol):
        return solve_dank(
            lambda rows, columns: scale * K[np.ix_(rows, columns)], p, lo / scale, hi / scale,
            centering_penalty=0.5 / scale, rank_penalty=rank_penalty, start=start / scale, tol=tol,
        )  # fmt: skip

    found = solve(scale, 1e-5)
    v = scale * found.dual
    best = dense_objective(K, p, solve(1.0, 1e-9).dual, 0.5, rank_penalty)
    error = best - dense_objective(K, p, v, 0.5, rank_penalty)
    assert found.gap <= 1e-5
    assert error <= found.gap * abs(p @ v) + 1e-8 * abs(best)


@few
@given(seeds, scales, st.integers(2, 12), st.booleans())
def test_asymmetric_ridge(seed, scale, n, intercept):
    rng = np.random.default_rng(seed)
    K, Y = rng.normal(size=(n, n)) + 3 * np.sqrt(n) * np.eye(n), rng.normal(size=(n, 2))
    K[0] = K[-1]  # a tie
    found = asymmetric_ridge(scale * K, Y, 3.0 * scale, fit_intercept=intercept)
    assert found.residual < 1e-9
    A = np.ones((n + 1, n + 1)) * intercept
    A[:n, :n] = K + 3.0 * np.eye(n)
    A[n, n] = 0.0 if intercept else 1.0
    expected = np.linalg.solve(A, np.vstack([Y, np.zeros(2)]))
    np.testing.assert_allclose(scale * found.left, expected[:n], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.intercept_left, expected[n], rtol=1e-6, atol=1e-9)


@few
@given(eigenvalues, seeds, scales, st.booleans())
def test_hyper_ridge(values, seed, scale, intercept):
    K, rng = definite_of(values, seed), np.random.default_rng(seed)
    n = len(K)
    y, weight = rng.normal(size=n), rng.choice([1.0, 2.0], size=n)
    found = ridge_exact(scale * K, y, weight, 0.1 * scale, intercept)
    assert found.certificate < 1e-9
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + 0.1 * weight.sum() * np.diag(1 / weight)
    A[n, :n] = A[:n, n] = intercept
    A[n, n] = not intercept
    expected = np.linalg.solve(A, np.append(y, 0.0))
    np.testing.assert_allclose(scale * found.coef, expected[:n], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.intercept, expected[n], rtol=1e-6, atol=1e-9)


@few
@given(eigenvalues, seeds, scales)
def test_hyper_tensor(values, seed, scale):
    G, rng = definite_of(values, seed), np.random.default_rng(seed)
    S = rng.normal(size=G.shape)
    S = S + S.T
    trends = [np.ones_like(S)]
    found = TensorProblem(S, item_basis(scale * G), trends).solve(0.1 * scale, 0.3 * scale * scale)
    unit = TensorProblem(S, item_basis(G), trends).solve(0.1, 0.3)
    assert found.certificate < 1e-8
    np.testing.assert_allclose(found.item_values, unit.item_values, atol=1e-6 * np.abs(S).max())
    noisy = G + 0.1 * np.eye(len(G))
    A = np.kron(noisy, noisy) + 0.3 * np.eye(G.size)
    one = np.ones(G.size)
    inverse = np.linalg.solve(A, np.column_stack([S.ravel(), one]))
    trend = one @ inverse[:, 0] / (one @ inverse[:, 1])
    expected = np.kron(noisy, noisy) @ (inverse[:, 0] - trend * inverse[:, 1]) + trend
    np.testing.assert_allclose(unit.item_values.ravel(), expected, atol=1e-6 * np.abs(S).max())


@few
@given(seeds, st.integers(-70, 70).map(lambda power: 10.0**power), st.integers(3, 12))
def test_lab_evidence(seed, scale, n):
    """Columns scaled with the ridge's root: the same fit. The ridge is a square, so the scale is its root."""
    rng = np.random.default_rng(seed)
    K, Y = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    K[:, 2] = K[:, 1]  # rank deficient
    none, ones = np.zeros((n, 0)), np.ones(n)
    unit = evidence(K, none, Y, 0.1, ones)
    found = evidence(scale * K, none, Y, 0.1 * scale**2, ones)
    np.testing.assert_allclose(found.value, unit.value, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(scale * found.coef, unit.coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(unit.value, dense_evidence(K, none, Y, 0.1), rtol=1e-8, atol=1e-9)


@few
@given(eigenvalues, seeds, scales)
def test_sparse_machine(values, seed, scale):
    K, rng = matrix_of(values, seed), np.random.default_rng(seed)
    signs = labels_of(len(K), rng)
    found = sparse_machine(scale * K, signs, 1.0 / scale)
    assert found.gap < 1e-6
    hinge = np.maximum(0.0, 1.0 - signs * (scale * K @ found.coef + found.intercept))
    value = scale * np.abs(found.coef).sum() + hinge.sum()
    assert (
        value - sparse_machine_dual(K, signs, np.ones(len(K))) <= (found.gap + 1e-6) * value + 1e-9
    )


@few
@given(eigenvalues, seeds, st.integers(-100, 100).map(lambda power: 10.0**power))
def test_machines_of_libsvm(values, seed, scale):
    """The gap that we compute bounds what libsvm's answer is worse than the best of a dense search."""
    K, rng = definite_of(values, seed), np.random.default_rng(seed)
    n, sign = len(K), labels_of(len(K), rng)
    C, weight = 1.0 / scale, np.ones(n)
    machine = hinge_machines(scale * K, (sign > 0).astype(int), 2, C, weight, tol=1e-6)[0]
    y = rng.normal(size=n)
    tube = tube_machine(scale * K, y, C, 0.1, weight, tol=1e-6)

    def loss(f, b, regression):
        return (
            np.maximum(0, np.abs(y - f - b) - 0.1)
            if regression
            else np.maximum(0, 1 - sign * (f + b))
        )

    for found, regression in ((machine, False), (tube, True)):
        beta = scale * found.coef

        def value(beta, b, regression=regression):
            return beta @ K @ beta / 2 + loss(K @ beta, b, regression).sum()

        reached = value(beta, found.intercept)
        others = [
            value(beta + 0.1 * step[:n], found.intercept + 0.1 * step[n])
            for step in rng.normal(size=(300, n + 1))
        ]
        assert -1e-9 <= found.gap < 1e-4
        assert reached - min(others) <= (found.gap + 1e-7) * abs(reached) + 1e-9


@few
@given(seeds, scales, st.integers(5, 12))
def test_lab_interpolation(seed, scale, n):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    support = np.arange(3)
    unit = interpolation(K[:, :3], np.zeros((n, 0)), Y, 0.1, np.ones(n), support=support)
    scaled = scale * K[:, :3]
    found = interpolation(scaled, np.zeros((n, 0)), Y, 0.1 * scale, np.ones(n), support=support)
    coef = np.linalg.solve(K[:3, :3] + 0.1 * np.eye(3), Y[:3])
    np.testing.assert_allclose(
        unit.value, np.mean(np.sum((K[3:, :3] @ coef - Y[3:]) ** 2, axis=1)), rtol=1e-8
    )
    np.testing.assert_allclose(found.value, unit.value, rtol=1e-7)
