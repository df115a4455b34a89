"""The sphere solver, its certificate and derivatives; landmarks; calibration; support vector machines."""

import numpy as np
import pytest
from draws import definite_of, eigenvalues, few, labels_of, matrix_of, scales, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles.krein import (
    ball_objective,
    brute_force,
    dense_two_penalties,
    gander_multiplier,
    sphere_objective,
)
from sklearn.svm import SVC

from mercerless.core.descent import minimize_with_restarts
from mercerless.core.svm import hinge_machines, stabilize, tube_machine
from mercerless.kernels import TL1, DeltaGauss, Gaussian
from mercerless.krein.solver import (
    REGULARIZERS,
    augmented_rows,
    build_low_rank_system,
    build_system,
    minimize_on_sphere,
    part_coef,
    penalty_of,
    row_factor,
    solve_system,
    sphere_pullback,
    validation_loss,
)
from mercerless.lowrank import nystroem


def hinge_machine(K, sign, C=1.0, weight=None, **options):
    """The machine of two classes."""
    weight = np.ones(len(K)) if weight is None else weight
    return hinge_machines(K, (sign > 0).astype(int), 2, C, weight, **options)[0]


def signed_problem(k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(k) * 10 ** rng.uniform(-3, 3, k), rng.standard_normal(k)


def data(n=30, n_val=12, seed=0):
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((n, 3)), rng.standard_normal((n_val, 3))
    Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n), X[:, 1] ** 2 + 1])
    return X, Y, V, np.column_stack([np.sin(V[:, 0]), V[:, 1] ** 2 + 1])


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_constraint_to_machine_precision_for_all_scales(regularizer):
    rng = np.random.default_rng(1)
    for seed in range(60):
        values, target = signed_problem(int(rng.integers(1, 60)), seed)
        plus, minus = 10 ** rng.uniform(-8, 4, (2, 60))
        radius = np.sqrt(len(target)) * 10 ** rng.uniform(-4, 4, 60)
        solution = minimize_on_sphere(
            penalty_of(values, plus, minus, len(target), regularizer), target, radius
        )
        assert solution.constraint_error.max() <= 1e-13
        assert solution.stationarity.max() <= 1e-13
        assert solution.n_iter <= 10
        assert solution.is_minimum.all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
def test_stationarity_per_coordinate_at_all_scales(scale):
    values, target = signed_problem(40)
    p = penalty_of(values * scale, 0.1 * scale, 0.3 * scale, 40)
    solution = minimize_on_sphere(p, target * scale, 2.0 * scale)
    gap = p - p.min()
    assert_allclose((gap + solution.slack[p.argmin()]) * solution.coef, target * scale, rtol=1e-12)
    assert_allclose(np.linalg.norm(solution.coef), 2.0 * scale, rtol=1e-14)


@pytest.mark.parametrize("constraint", ["sphere", "ball"])
@pytest.mark.parametrize("regularizer", ["components", "indefinite"])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_no_worse_than_brute_force(constraint, regularizer, k):
    rng = np.random.default_rng(k)
    for _ in range(2):
        values, target = rng.uniform(0.3, 2, k) * rng.choice([-1, 1], k), rng.standard_normal(k)
        p = penalty_of(values, 0.2, 0.5, k, regularizer)
        for radius in (0.3, 1.0, 4.0):
            solution = minimize_on_sphere(p, target, radius, constraint)
            objective = ball_objective if constraint == "ball" else sphere_objective
            found = brute_force(objective, p, target, radius, constraint == "ball", rng, 50, 1000)
            value = objective(p, target, solution.coef)
            assert value <= found + 1e-10 * max(1, abs(found))
            points = rng.standard_normal((10_000, k))
            points *= radius / np.linalg.norm(points, axis=1, keepdims=True)
            assert value <= objective(p, target, points).min() + 1e-12


def test_multiplier_is_the_smallest_eigenvalue_of_ganders_block():
    values, target = signed_problem(8, 3)
    values = np.sign(values) * (np.abs(values) ** 0.2)
    for regularizer in ("components", "indefinite"):
        p = penalty_of(values, 0.3, 0.7, 8, regularizer)
        mu = minimize_on_sphere(p, target, 1.5).multiplier
        assert_allclose(mu, gander_multiplier(p, target, 1.5), rtol=1e-7)


def test_hard_case_value():
    values, target = np.array([-1.0, 2.0, 4.0, 4.0]), np.array([1.0, 1.0, 0.0, 0.0])
    p = penalty_of(values, 1.0, 1.0, 4)
    solution = minimize_on_sphere(p, target, np.sqrt(4) * 10.0)
    assert solution.hard
    assert solution.slack.min() == 0.0
    assert_allclose(sphere_objective(p, target, solution.coef), 398.6666666666667, rtol=1e-12)
    assert_allclose(np.linalg.norm(solution.coef), 20.0, rtol=1e-14)


def test_ball_is_interior_exactly_when_the_ridge_solution_fits():
    values, target = signed_problem(20)
    p = penalty_of(values, 0.1, 0.2, 20)
    free = minimize_on_sphere(p, target, constraint=None)
    norm = np.linalg.norm(free.coef)
    inside = minimize_on_sphere(p, target, norm * (1 + 1e-9), "ball")
    outside = minimize_on_sphere(p, target, norm * (1 - 1e-3), "ball")
    assert not inside.active
    assert outside.active
    assert_allclose(inside.coef, free.coef, rtol=0, atol=0)
    assert_allclose(np.linalg.norm(outside.coef), norm * (1 - 1e-3), rtol=1e-14)


def test_radius_limits():
    values, target = signed_problem(15)
    p = penalty_of(values, 0.1, 0.2, 15)
    assert_allclose(minimize_on_sphere(p, target, 0.0).coef, 0.0)
    tiny = minimize_on_sphere(p, target, 1e-150)
    assert_allclose(tiny.coef / 1e-150, target / np.linalg.norm(target), rtol=1e-10)
    huge = minimize_on_sphere(p, target, 1e150)
    assert huge.constraint_error <= 1e-13
    assert np.argmax(np.abs(huge.coef)) == p.argmin()


def test_many_settings_equal_one_by_one():
    values, target = signed_problem(33)
    rng = np.random.default_rng(0)
    plus, minus, radius = 10 ** rng.uniform(-4, 2, (3, 50))
    together = minimize_on_sphere(penalty_of(values, plus, minus, 33), target, radius)
    for i in range(0, 50, 7):
        alone = minimize_on_sphere(penalty_of(values, plus[i], minus[i], 33), target, radius[i])
        assert_allclose(together.coef[i], alone.coef, rtol=1e-14)


@given(
    st.integers(1, 12),
    st.integers(0, 10_000),
    st.floats(-6, 6),
    st.sampled_from(["sphere", "ball"]),
)
@settings(max_examples=80, deadline=None)
def test_solution_beats_every_other_stationary_candidate(k, seed, log_radius, constraint):
    rng = np.random.default_rng(seed)
    p, target, radius = rng.standard_normal(k), rng.standard_normal(k), 10**log_radius
    solution = minimize_on_sphere(p, target, radius, constraint)
    direction = rng.standard_normal((200, k))
    direction *= radius / np.linalg.norm(direction, axis=1, keepdims=True)
    value = ball_objective(p, target, solution.coef)
    others = ball_objective(p, target, direction).min()
    assert value <= others + 1e-9 * (1 + abs(others))
    assert solution.constraint_error <= 1e-13


@pytest.mark.parametrize("constraint", [None, "sphere", "ball"])
def test_sphere_pullback_against_central_differences(constraint):
    rng = np.random.default_rng(0)
    p, target, g = rng.uniform(0.1, 2, 6), rng.standard_normal(6), rng.standard_normal(6)
    radius = 0.7

    def value(p, t, r):
        return g @ minimize_on_sphere(p, t, r, constraint).coef

    back = sphere_pullback(minimize_on_sphere(p, target, radius, constraint), radius, g)
    h = 1e-6
    for i in range(6):
        e = np.eye(6)[i] * h
        central = (value(p, target + e, radius) - value(p, target - e, radius)) / (2 * h)
        assert_allclose(back.target[i], central, rtol=1e-6, atol=1e-9)
        central = (value(p + e, target, radius) - value(p - e, target, radius)) / (2 * h)
        assert_allclose(back.penalty[i], central, rtol=1e-6, atol=1e-9)
    central = (value(p, target, radius + h) - value(p, target, radius - h)) / (2 * h)
    assert_allclose(back.radius, central, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("constraint", [None, "sphere", "ball"])
@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_validation_gradient_against_central_differences(
    regularizer, constraint, intercept, weighted
):
    X, Y, V, Yv = data()
    rng = np.random.default_rng(5)
    weight, weight_val = (
        (rng.uniform(0.2, 3, 30), rng.uniform(0.2, 3, 12)) if weighted else (None, None)
    )

    def loss(theta, plus, minus, radius):
        kernel = DeltaGauss(1.0, 0.4).with_theta(theta)
        return validation_loss(
            kernel(X), Y, kernel(V, X), Yv, plus, minus, np.array([1, 1.3]) * radius if constraint else None,
            sample_weight=weight, weight_val=weight_val, regularizer=regularizer, constraint=constraint,
            intercept=intercept,
        )  # fmt: skip

    theta, rest = DeltaGauss(1.0, 0.4).theta, [3e-3, 7e-3, 0.5]
    result = loss(theta, *rest)
    s = np.linalg.eigvalsh(DeltaGauss(1.0, 0.4)(X))
    assert s[0] < 0 < s[-1]  # both signs, or the cross terms go untested
    kernel = DeltaGauss(1.0, 0.4)
    gradient = kernel.pullback(X, None, result.train) + kernel.pullback(V, X, result.validation)
    gradient = np.r_[
        gradient, result.alpha_positive, result.alpha_negative, result.radius @ [1, 1.3]
    ]
    x = np.r_[theta, rest]

    def central(i, h):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        return (loss(up[:2], *up[2:]).loss - loss(down[:2], *down[2:]).loss) / (2 * h)

    for i in range(len(x)):
        h = 3e-5 * max(abs(x[i]), 1e-3)
        slope = (4 * central(i, h) - central(i, 2 * h)) / 3  # a step that rounding spares
        assert_allclose(gradient[i], slope, rtol=1e-6, atol=1e-7 * result.loss)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("constraint", [None, "sphere", "ball"])
def test_gradient_with_dropped_eigenvalues_against_central_differences(constraint, intercept):
    """A change of the matrix turns eigenvectors between the space and what was dropped from it."""
    rng = np.random.default_rng(3)
    V = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    s = np.concatenate(
        [[-4.0, -2.0, -1.0], 1e-4 * rng.normal(size=7), [1.5, 2.0, 3.0, 4.0, 5.0, 6.0]]
    )
    K, K_val = (V * s) @ V.T, rng.normal(size=(9, 16))
    Y, Y_val = rng.normal(size=(16, 2)), rng.normal(size=(9, 2))

    def loss(K, K_val):
        radius = 0.5 if constraint else None
        return validation_loss(
            K,
            Y,
            K_val,
            Y_val,
            0.02,
            0.05,
            radius,
            constraint=constraint,
            intercept=intercept,
            rtol=1e-2,
        )

    found = loss(K, K_val)
    for _ in range(3):
        change, change_val = rng.normal(size=(16, 16)), rng.normal(size=(9, 16))
        change = change + change.T
        h = 1e-6
        up, down = (loss(K + t * change, K_val + t * change_val).loss for t in (h, -h))
        ours = np.sum(found.train * change) + np.sum(found.validation * change_val)
        assert_allclose(ours, (up - down) / (2 * h), rtol=1e-5, atol=1e-7 * found.loss)


def test_gradient_without_the_cross_terms_would_be_wrong():
    """The published gradient keeps the projectors fixed; the entries between the two signs are not small."""
    X, Y, V, Yv = data()
    kernel = DeltaGauss(1.0, 0.4)
    K, Kv = kernel(X), kernel(V, X)
    H = np.eye(30) - 1 / 30
    s, U = np.linalg.eigh(H @ K @ H)
    result = validation_loss(K, Y, Kv, Yv, 3e-3, 7e-3)
    inner = U.T @ result.train @ U
    cross = np.linalg.norm(inner[np.ix_(s < -1e-9, s > 1e-9)])
    assert cross > 0.05 * np.linalg.norm(inner)


@pytest.mark.parametrize("kernel", [DeltaGauss(1.0, 0.3), TL1(3.0), Gaussian(1.0)])
def test_two_penalties_equal_the_dense_formula(kernel):
    X, Y, _, _ = data()
    K = kernel(X)
    solution = solve_system(build_system(K, Y[:, :1]), 0.01, 0.05)
    expected = dense_two_penalties(K, Y[:, 0], 0.01, 0.05)
    assert_allclose((K @ solution.coef + solution.intercept)[:, 0], expected, rtol=1e-8)


def test_parts_add_to_the_whole():
    X, Y, _, _ = data()
    system = build_system(DeltaGauss()(X), Y)
    solution = solve_system(system, 0.01, 0.05, 0.4, constraint="sphere")
    assert_allclose(
        part_coef(system, solution, 1) + part_coef(system, solution, -1), solution.coef, rtol=1e-10
    )


@pytest.mark.parametrize("kernel", [DeltaGauss(1.0, 0.3), TL1(3.0), Gaussian(1.0)])
@pytest.mark.parametrize("intercept", [True, False])
def test_all_landmarks_equal_the_exact_solution(kernel, intercept):
    X, Y, _, _ = data(60)
    K, weight = kernel(X), np.random.default_rng(0).uniform(0.1, 3, 60)
    exact = solve_system(
        build_system(K, Y, weight, intercept=intercept), 1e-3, 3e-3, 0.5, constraint="sphere"
    )
    order = np.random.default_rng(1).permutation(60)
    low_rank = nystroem(kernel, X, order)
    features = K[:, order] @ (low_rank.transform * np.sqrt(np.abs(low_rank.values)))
    blocks = np.array_split(np.arange(60), 7)
    factor = row_factor(
        (augmented_rows(features[b], Y[b], weight[b]) for b in blocks), features.shape[1] + 3
    )
    system = build_low_rank_system(factor, np.sign(low_rank.values), intercept=intercept)
    solution = solve_system(system, 1e-3, 3e-3, 0.5, constraint="sphere")
    assert_allclose(
        features @ solution.coef + solution.intercept, K @ exact.coef + exact.intercept, atol=1e-8
    )


def test_factor_does_not_depend_on_the_blocks():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 6))
    whole = row_factor([rows], 6)
    pieces = row_factor((rows[i : i + 3] for i in range(0, 50, 3)), 6)
    assert_allclose(whole.T @ whole, pieces.T @ pieces, rtol=1e-12)
    merged = row_factor([row_factor([rows[:20]], 6), row_factor([rows[20:]], 6)], 6)
    assert_allclose(merged.T @ merged, rows.T @ rows, rtol=1e-12)


def test_restarts_find_the_better_minimum_and_stop_when_asked():
    def double_well(x):
        return float((x[0] ** 2 - 1) ** 2 + 0.3 * x[0]), np.array(
            [4 * x[0] * (x[0] ** 2 - 1) + 0.3]
        )

    bounds = np.array([[-3.0, 3.0]])
    one = minimize_with_restarts(double_well, [np.array([0.9])], bounds)
    several = minimize_with_restarts(double_well, [np.array([0.9]), np.array([-0.9])], bounds)
    assert several.x[0] < 0 < one.x[0]
    assert several.gradient < 1e-4
    stopped = minimize_with_restarts(
        double_well, [np.array([1.5]), np.array([-1.5])], bounds, callback=lambda i: True
    )
    assert len(stopped.values) == 1


@pytest.mark.parametrize("value", [0.1, 1000.0])
def test_the_certificate_of_a_descent_is_its_projected_gradient_relative_to_the_value(value):
    def slide(x):  # bends so little that one step does not arrive
        return value + float(np.sum((x - 3.0) ** 4)), 4.0 * (x - 3.0) ** 3

    start, bounds = np.zeros(2), np.array([[-9.0, 9.0], [-9.0, 0.5]])
    found = minimize_with_restarts(slide, [start], bounds, max_iter=2, start_iter=1)
    gradient = 4.0 * (found.x - 3.0) ** 3
    projected = np.clip(found.x - gradient, *bounds.T) - found.x
    assert_allclose(found.gradient, np.abs(projected).max() / max(found.value, 1.0))
    assert found.value == pytest.approx(slide(found.x)[0]) and found.values[0] >= found.value


def indefinite(n=60, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    return (A + A.T) / 2, np.sign(rng.standard_normal(n) + A[:, 0])


def test_krein_machine_equals_svc_on_the_flipped_matrix():
    K, y = indefinite()
    flipped = stabilize(K)
    s, V = np.linalg.eigh(K)
    assert_allclose(flipped.kernel, (V * np.abs(s)) @ V.T, atol=1e-12)
    machine = hinge_machine(flipped.kernel, y, tol=1e-8)
    coef = flipped.projector @ machine.coef
    reference = SVC(kernel="precomputed", tol=1e-8).fit(flipped.kernel, y)
    assert_allclose(
        K @ coef + machine.intercept, reference.decision_function(flipped.kernel), atol=3e-4
    )


def test_infinite_negative_penalty_clips():
    K, _ = indefinite()
    s, V = np.linalg.eigh(K)
    assert_allclose(stabilize(K, np.inf).kernel, (V * np.maximum(s, 0)) @ V.T, atol=1e-12)


def test_weighted_stabilization_equals_repeated_rows():
    K, _ = indefinite(20)
    weight = np.random.default_rng(0).integers(1, 4, 20)
    index = np.repeat(np.arange(20), weight)
    repeated = stabilize(K[np.ix_(index, index)], 3.0)
    weighted = stabilize(K, 3.0, weight.astype(float))
    assert_allclose(weighted.kernel[np.ix_(index, index)], repeated.kernel, atol=1e-11)
    # a coefficient on a row counts like equal shares on its repetitions
    beta = np.random.default_rng(1).standard_normal((20, 1))
    once = weighted.projector @ beta
    again = repeated.projector @ (beta / weight[:, None])[index]
    assert_allclose(K @ once, K[:, index] @ again, atol=1e-10)


@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-6])
def test_hinge_and_tube_gaps_bound_the_error(tol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    K, y = Gaussian(1.0)(X), np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=40)

    def hinge(machine):
        f = K @ machine.coef + machine.intercept
        return machine.coef @ K @ machine.coef / 2 + 2.0 * np.maximum(0, 1 - np.sign(y) * f).sum()

    def tube(machine):
        f = K @ machine.coef + machine.intercept
        return machine.coef @ K @ machine.coef / 2 + 2.0 * np.maximum(0, np.abs(y - f) - 0.1).sum()

    for value, solve in (
        (hinge, lambda tol: hinge_machine(K, np.sign(y), 2.0, tol=tol)),
        (tube, lambda tol: tube_machine(K, y, 2.0, 0.1, np.ones(40), tol=tol)),
    ):
        found, best = solve(tol), solve(1e-9)
        assert found.gap >= -1e-9
        assert value(found) - value(best) <= found.gap * value(found) + 1e-9


@pytest.mark.parametrize("n_classes", [2, 4])
def test_all_pairs_in_one_call_are_the_machines_of_the_pairs(n_classes):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 3)), rng.permutation(np.arange(60) % n_classes)
    K, weight = X @ X.T, rng.uniform(0.5, 2.0, size=60)
    machines = hinge_machines(K, labels, int(labels.max()) + 1, 0.7, weight, tol=1e-9)
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    assert len(machines) == len(pairs)
    for (i, j), machine in zip(pairs, machines):
        rows = np.flatnonzero((labels == i) | (labels == j))
        sign = np.where(labels[rows] == j, 1.0, -1.0)
        alone = hinge_machine(K[np.ix_(rows, rows)], sign, 0.7, weight[rows], tol=1e-9)
        expected = K[:, rows] @ alone.coef + alone.intercept
        np.testing.assert_allclose(
            K @ machine.coef + machine.intercept, expected, rtol=1e-5, atol=1e-6
        )
        assert (
            machine.gap < 1e-6
            and alone.gap < 1e-6
            and not machine.coef[np.setdiff1d(np.arange(60), rows)].any()
        )


def test_one_class_machines_are_constant():
    K, _ = indefinite(5)
    ones = np.ones(5)
    machine = hinge_machine(K @ K, ones)
    assert_allclose(K @ K @ machine.coef + machine.intercept, 1.0)
    assert machine.gap == 0.0
    # the middle of three classes has no rows: its pairs give the class that has
    first, _, last = hinge_machines(K @ K, np.array([0, 2, 0, 2, 0]), 3, 1.0, ones)
    for machine, sign in ((first, -1.0), (last, 1.0)):
        assert not machine.coef.any()
        assert (machine.intercept, machine.gap) == (sign, 0.0)


def test_the_gradient_is_finite_in_the_hard_case():
    """The target has no component at the smallest penalty, and the others cannot reach the radius."""
    K = np.diag([4.0, 2.0, 1.0, -1.0])
    Y = np.array([[0.0], [1.0], [0.5], [-1.0]])
    K_val = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, -1.0]])
    Y_val = np.array([[1.0], [0.0]])
    options = {"constraint": "sphere", "intercept": False}
    assert minimize_on_sphere(0.4 / np.diag(np.abs(K)), Y[:, 0], 20.0).hard
    result = validation_loss(K, Y, K_val, Y_val, 0.1, 0.1, 10.0, **options)
    assert np.isfinite(result.loss)
    assert np.all(np.isfinite(result.train)) and np.any(result.train != 0.0)


# arbitrary spectra and scales


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
