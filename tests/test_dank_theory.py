"""The elements of the DANK paper against independent routes: loops, central differences, general-purpose solvers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

from mercerless import CenteringPenalty, DANKClassifier, DANKRegressor
from mercerless.theory import (
    dank_adaptation,
    dank_change_bound,
    dank_constrained,
    dank_eigenvalue_bound,
    dank_gradient,
    dank_lipschitz,
    dank_nesterov,
    dank_objective,
    dank_parts_bound,
    dank_screening,
)


def moons(n, seed=0, gamma=1.0):
    X, labels = make_moons(n, noise=0.25, random_state=seed)
    return X, np.where(labels == 1, 1.0, -1.0), rbf_kernel(X, gamma=gamma)


def by_loops(alpha, y, F, K, eta, tau):
    """Equation (4) as it is written, entry by entry."""
    total = sum(alpha)
    for i in range(len(y)):
        for j in range(len(y)):
            total -= 0.5 * alpha[i] * y[i] * F[i, j] * K[i, j] * y[j] * alpha[j]
            total += eta * (F[i, j] - 1) ** 2
    return total + tau * eta * np.linalg.norm(F, "nuc")


@pytest.mark.parametrize("tau", [0.0, 0.3])
def test_the_objective_is_equation_4(tau):
    rng = np.random.default_rng(0)
    _, y, K = moons(9)
    alpha = rng.uniform(0, 2, 9)
    A = rng.normal(size=(9, 4))
    F = A @ A.T
    found = dank_objective(alpha * y, K, y, F, centering_penalty=1.7, rank_penalty=tau)
    np.testing.assert_allclose(found, by_loops(alpha, y, F, K, 1.7, tau), rtol=1e-12)


@pytest.mark.parametrize("tau", [0.0, 0.3])
def test_no_positive_semidefinite_matrix_is_better_than_the_adaptation(tau):
    rng = np.random.default_rng(1)
    _, y, K = moons(9)
    v = y * rng.uniform(0, 2, 9)
    best = dank_adaptation(v, K, 0.8, tau)
    least = by_loops(v * y, y, best, K, 0.8, tau)
    assert np.linalg.eigvalsh(best)[0] > -1e-12
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(40):
            change = rng.normal(size=(9, 9))
            values, vectors = np.linalg.eigh(best + size * (change + change.T))
            other = (vectors * np.maximum(values, 0)) @ vectors.T
            assert by_loops(v * y, y, other, K, 0.8, tau) >= least - 1e-10
    found = dank_objective(v, K, y, centering_penalty=0.8, rank_penalty=tau)
    np.testing.assert_allclose(found, least, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_the_gradient_is_that_of_central_differences(epsilon):
    rng = np.random.default_rng(2)
    _, _, K = moons(8)
    y = rng.normal(size=8)
    v = rng.normal(size=8)
    options = {"centering_penalty": 0.5, "rank_penalty": 0.2}
    numeric = np.zeros(8)
    for i, unit in enumerate(np.eye(8) * 1e-5):
        up = dank_objective(v + unit, K, y, epsilon=epsilon, **options)
        down = dank_objective(v - unit, K, y, epsilon=epsilon, **options)
        numeric[i] = (up - down) / 2e-5
    # (25) in both duals where one of them vanishes: the derivative of -epsilon (a_hat + a_check) is -epsilon sign(v)
    expected = dank_gradient(v, K, y, **options) - epsilon * np.sign(v)
    np.testing.assert_allclose(numeric, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("sharp", [False, True])
def test_lemmas_1_and_3_and_theorem_4_bound_random_pairs(sharp):
    rng = np.random.default_rng(3)
    _, y, K = moons(12)
    C, eta, tau = 3.0, 0.7, 0.1
    eigenvalue = dank_eigenvalue_bound(K, C, eta, tau, sharp=sharp)
    constant = dank_lipschitz(K, C, eta, sharp=sharp)
    options = {"centering_penalty": eta, "rank_penalty": tau}
    for _ in range(50):
        first, second = (y * rng.uniform(0, C, 12) * (rng.random(12) < 0.7) for _ in range(2))
        F, G = (dank_adaptation(v, K, eta, tau) for v in (first, second))
        assert np.linalg.eigvalsh(F)[-1] <= eigenvalue
        apart = np.linalg.norm(F - G)
        assert apart <= dank_change_bound(first, second, K, eta, sharp=sharp) * (1 + 1e-12)
        moved = dank_gradient(first, K, y, **options) - dank_gradient(second, K, y, **options)
        assert np.linalg.norm(moved) <= constant * np.linalg.norm(first - second)


def test_constants_by_hand():
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    frobenius = np.sqrt(4 + 1 + 1 + 9)
    np.testing.assert_allclose(
        dank_lipschitz(K, 2.0, 5.0), 3 * (2 + 3 * 2 * 4 * frobenius / 20), rtol=1e-13
    )
    np.testing.assert_allclose(
        dank_lipschitz(K, 2.0, 5.0, regression=True),
        2 * 3 * (2 + 9 * 2 * 4 * frobenius / 20),
        rtol=1e-13,
    )
    largest = (5 + np.sqrt(5)) / 2
    np.testing.assert_allclose(
        dank_eigenvalue_bound(K, 2.0, 5.0, 0.4), 2 - 0.2 + 2 * 4 / 20 * largest, rtol=1e-13
    )
    np.testing.assert_allclose(
        dank_change_bound([1.0, 2.0], [3.0, 0.0], K, 5.0),
        frobenius * (np.sqrt(5) + 3) * np.sqrt(8) / 20,
        rtol=1e-13,
    )
    np.testing.assert_allclose(
        dank_change_bound([1.0, 2.0], [3.0, 0.0], K, 5.0, regression=True),
        frobenius * np.sqrt(4**2 + 2**2) * np.sqrt(8) / 20,
        rtol=1e-13,
    )
    # a rank penalty that leaves nothing of F
    assert dank_eigenvalue_bound(K, 2.0, 5.0, 100.0) == 0.0
    np.testing.assert_allclose(dank_adaptation([2.0, -2.0], K, 5.0, 100.0), 0.0)
    # entries of F may be negative, and then the largest size counts
    found = dank_parts_bound(K, [0, 1], 3.0, smallest=-2.0, largest=1.5)
    np.testing.assert_allclose(found, (2.0, 0.5 * 3.5 * 9 * 2, 2.0 * 9 * 2))


def without_bias(K, y, C, eta):
    """Problem (18) by a general-purpose solver: alpha, and F by its closed form."""

    def negative(alpha):
        v = y * alpha
        value = alpha.sum() - v @ K @ v / 2 - (v**2) @ (K * K) @ (v**2) / (16 * eta)
        gradient = 1 - y * (K @ v + v * ((K * K) @ v**2) / (4 * eta))
        return -value, -gradient

    start = np.full(len(y), C / 2)
    found = minimize(
        negative,
        start,
        jac=True,
        bounds=[(0, C)] * len(y),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    v = y * found.x
    return found.x, 1 + v[:, None] * K * v / (4 * eta)


@pytest.mark.parametrize("eta", [1e6, 2.0])
def test_theorem_6_holds_corrected_and_not_as_printed(eta):
    X, y, K = moons(30, gamma=3.0)
    parts = (X[:, 0] > 0.5).astype(int)
    C = 2.0
    inside = parts[:, None] == parts
    alpha, F = without_bias(K, y, C, eta)
    alpha_parts, F_parts = without_bias(np.where(inside, K, 0.0), y, C, eta)
    whole = by_loops(alpha, y, F, K, eta, 0.0)
    divided = by_loops(alpha_parts, y, F_parts, K, eta, 0.0)
    smallest = min(F.min(), F_parts.min())
    largest = max(F.max(), F_parts.max())
    bound = dank_parts_bound(K, parts, C, smallest, largest)
    np.testing.assert_allclose(bound.between, np.abs(K * ~inside).sum(), rtol=1e-12)
    assert abs(whole - divided) <= bound.corrected
    if eta == 1e6:  # F is 1 nearly: the printed bound is 0 nearly
        assert abs(whole - divided) > 100 * bound.printed


@pytest.mark.parametrize("seed", range(3))
def test_theorem_7_is_never_met_by_a_solution_on_parts(seed):
    X, y, K = moons(24, seed, gamma=0.3)
    parts = (X[:, 1] > 0.2).astype(int)
    inside = parts[:, None] == parts
    alpha, F = without_bias(np.where(inside, K, 0.0), y, 5.0, 3.0)
    gradient = 1 - y * ((F * K * inside) @ (y * alpha))
    found = dank_screening(K, parts, alpha, gradient, C=5.0, smallest=F.min(), largest=F.max())
    assert np.all(found.threshold < found.least)
    assert np.all(found.least <= gradient)
    assert gradient.min() < 0
    assert not found.recognized.any()


def test_screening_by_hand():
    K = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 2.0]])
    found = dank_screening(
        K, [0, 0, 1], [0.0, 0.0, 1.0], [-50.0, -35.0, -100.0], C=3.0, smallest=0.9, largest=1.2
    )
    np.testing.assert_allclose(found.threshold, [-(0.3 + 1.2) * 3 * (w + 4) for w in (5, 4, 2)])
    np.testing.assert_allclose(found.least, [1 - 1.2 * 3 * w for w in (5, 4, 2)])
    assert found.recognized.tolist() == [True, False, False]


def test_the_corrected_algorithm_1_reaches_the_machine_and_the_printed_one_does_not():
    _, y, K = moons(40)
    eta = 4.0
    machine = DANKClassifier("precomputed", C=2.0, adaptivity=CenteringPenalty(eta), tol=1e-8).fit(
        K, y
    )
    v = np.zeros(40)
    v[machine.support_] = machine.dual_solution_[0]
    L = dank_lipschitz(K, 2.0, eta, sharp=True)
    found = dank_nesterov(K, y, 2.0, eta, lipschitz=L, tol=0.0, gap=1e-6, max_iter=5000)
    assert found.gaps[-1] <= 1e-6
    np.testing.assert_allclose(found.dual, v, atol=1e-2)
    best = dank_objective(v, K, y, centering_penalty=eta)
    np.testing.assert_allclose(found.objectives[-1], best, rtol=1e-5)
    assert abs(found.dual.sum()) < 1e-10
    assert np.all((y * found.dual >= -1e-12) & (y * found.dual <= 2.0 + 1e-12))
    printed = dank_nesterov(
        K, y, 2.0, eta, as_printed=True, lipschitz=L, tol=0.0, gap=1e-6, max_iter=500
    )
    assert printed.gaps[-1] > 1e-3
    plain = dank_nesterov(
        K, y, 2.0, eta, lipschitz=L, tol=0.0, gap=1e-3, accelerate=False, max_iter=5000
    )
    assert plain.gaps[-1] <= 1e-3 and np.all(np.diff(plain.objectives) > -1e-9)
    stopped = dank_nesterov(K, y, 2.0, eta)  # with the paper's constant and its rule to stop
    assert stopped.steps[-1] <= 1e-4 < stopped.gaps[-1]


def test_the_corrected_algorithm_2_reaches_the_regression_machine():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(30, 1))
    y = np.sin(2 * X[:, 0]) + 3.0
    K = rbf_kernel(X)
    machine = DANKRegressor(
        "precomputed", C=1.0, epsilon=0.1, adaptivity=CenteringPenalty(3.0), tol=1e-8
    ).fit(K, y)
    v = np.zeros(30)
    v[machine.support_] = machine.dual_solution_[0]
    L = dank_lipschitz(K, 1.0, 3.0, sharp=True)
    found = dank_nesterov(
        K, y, 1.0, 3.0, epsilon=0.1, lipschitz=L, tol=0.0, gap=1e-5, max_iter=20000
    )
    best = dank_objective(v, K, y, centering_penalty=3.0, epsilon=0.1)
    np.testing.assert_allclose(found.objectives[-1], best, rtol=1e-4)
    assert abs(found.dual.sum()) < 1e-9
    printed = dank_nesterov(
        K, y, 1.0, 3.0, epsilon=0.1, as_printed=True, lipschitz=L, tol=0.0, max_iter=500
    )
    assert abs(printed.dual @ y) < 1e-6  # the constraint of (22), which is not that of a machine
    assert printed.gaps[-1] > 1e-2


@pytest.mark.parametrize("radius", [0.3, 3.0])
def test_the_hard_constraint_is_solved_as_by_a_general_solver(radius):
    _, y, K = moons(10)
    C = 2.0

    def negative(alpha):
        # min over F of the objective of (3): F = 1 + R M / |M|
        M = np.outer(y * alpha, y * alpha) * K
        return -(alpha.sum() - 0.5 * M.sum() - 0.5 * radius * np.linalg.norm(M))

    best = min(
        (
            minimize(
                negative,
                np.full(10, start),
                bounds=[(0, C)] * 10,
                constraints={"type": "eq", "fun": lambda alpha: alpha @ y},
                method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 2000},
            )
            for start in (0.1, 1.0)
        ),
        key=lambda result: result.fun,
    )
    found = dank_constrained(K, y, C, radius)
    np.testing.assert_allclose(found.objective, -best.fun, rtol=1e-5)
    np.testing.assert_allclose(found.radius, radius, rtol=1e-5)
    np.testing.assert_allclose(found.dual * y, best.x, atol=5e-3)
    # and it is the relaxation's solution with its eta
    machine = DANKClassifier(
        "precomputed",
        C=C,
        adaptivity=CenteringPenalty(found.centering_penalty),
        rank_penalty=0.0,
        tol=1e-8,
    ).fit(K, y)
    np.testing.assert_allclose(machine.adaptation_[0].matrix(), found.adaptation, atol=1e-4)


def test_a_bound_on_the_rank():
    _, y, K = moons(20)
    free = dank_constrained(K, y, 2.0, 0.5)
    found = dank_constrained(K, y, 2.0, 0.5, rank=4)
    assert free.rank > 4 > found.rank
    np.testing.assert_allclose(found.radius, 0.5, rtol=1e-4)
    assert found.objective >= free.objective - 1e-6  # F has less freedom to lower it
    with pytest.raises(ValueError, match="at least 2"):
        dank_constrained(K, y, 2.0, 0.5, rank=1)
    with pytest.raises(ValueError, match="labels -1 and 1"):
        dank_constrained(K, np.arange(20.0), 2.0, 0.5)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="one entry per row"):
        dank_adaptation([1.0], np.eye(2), 1.0)
    with pytest.raises(ValueError, match="one entry per row"):
        dank_parts_bound(np.eye(2), [0], 1.0, 1.0, 1.0)


def test_the_first_step_of_algorithm_1_by_hand():
    K = np.eye(4)
    y = np.array([1.0, 1.0, -1.0, -1.0])
    # at 0 the gradient is 1, so theta = 1 / L, and beta = 1 / (2 L), or as printed -1 / (2 L) cut off at 0
    corrected = dank_nesterov(K, y, 1.0, 1.0, lipschitz=5.0, tol=0.0, max_iter=1)
    printed = dank_nesterov(K, y, 1.0, 1.0, lipschitz=5.0, tol=0.0, max_iter=1, as_printed=True)
    np.testing.assert_allclose(corrected.dual, y * (1 / 3 / 5 + 2 / 3 / 10), rtol=1e-12)
    np.testing.assert_allclose(printed.dual, y * (1 / 3 / 5), rtol=1e-12)


def test_algorithm_1_without_an_intercept_solves_18():
    _, y, K = moons(30)
    C, eta = 2.0, 3.0
    alpha, F = without_bias(K, y, C, eta)
    L = dank_lipschitz(K, C, eta, sharp=True)
    options = {"intercept": False, "lipschitz": L, "tol": 0.0, "gap": 1e-7, "max_iter": 20000}
    found = dank_nesterov(K, y, C, eta, 0.0, **options)
    assert found.gaps[-1] <= 1e-7
    best = by_loops(alpha, y, F, K, eta, 0.0)
    np.testing.assert_allclose(found.objectives[-1], best, rtol=1e-7)
    np.testing.assert_allclose(y * found.dual, alpha, atol=1e-2)
    assert abs(found.dual.sum()) > 1e-3  # no plane
    assert np.all((y * found.dual >= 0) & (y * found.dual <= C))


@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_the_monotone_variant_climbs_at_the_rate_of_nesterov(epsilon):
    X, y, K = moons(30)
    C, eta = 2.0, 3.0
    if epsilon is not None:
        y = np.sin(2 * X[:, 0])
    L = dank_lipschitz(K, C, eta, sharp=True)
    options = {"epsilon": epsilon, "lipschitz": L, "tol": 0.0}
    end = dank_nesterov(K, y, C, eta, gap=1e-8, max_iter=20000, **options)
    found = dank_nesterov(K, y, C, eta, max_iter=300, monotone=True, **options)
    assert len(found.ascents) == 300
    assert np.all(np.diff(found.ascents) >= 0)
    assert end.ascents is None
    t = np.arange(300)
    constant = L if epsilon is None else 2 * L  # in both duals
    bound = 2 * constant * np.sum(end.dual**2) / ((t + 1) * (t + 2))
    assert np.all(end.objectives[-1] - found.ascents <= bound + 1e-9)
    # the gradient steps alone fall somewhere, so the choice matters
    plain = dank_nesterov(K, y, C, eta, max_iter=300, **options)
    assert np.any(np.diff(plain.objectives) < 0)


def test_what_the_printed_algorithms_cannot_take():
    _, y, K = moons(6)
    with pytest.raises(ValueError, match="labels -1 and 1; for numbers give epsilon"):
        dank_nesterov(K, (y + 1) / 2, 1.0, 1.0)
    with pytest.raises(ValueError, match="C=0"):
        dank_nesterov(K, y, 0, 1.0)
    with pytest.raises(ValueError, match="centering_penalty"):
        dank_lipschitz(K, 1.0, 0.0)
    with pytest.raises(ValueError, match="one entry per row"):
        dank_objective(y, K, y[:3], centering_penalty=1.0)
