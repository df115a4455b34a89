"""DANK's solver against dense formulas, its certificate, and the plain machines it contains."""

import itertools
import warnings

import numpy as np
import pytest
from draws import definite_of, eigenvalues, few, labels_of, scales, seeds
from hypothesis import given
from hypothesis import strategies as st
from oracles.dank import (
    dense_adaptation,
    dense_objective,
    first_order_solution,
    newton_projection,
    random_feasible,
)
from sklearn.svm import SVC, SVR

from mercerless.dank.quartic import (
    Quartic,
    _interior_point,
    duality_gap,
    gap_scale,
    project,
    snap,
    solve_quartic,
)
from mercerless.dank.solver import _DankProblem, _evaluate, solve_dank


def make_problem(n=60, C=2.0, kind="classification", seed=0, gamma=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
    if kind == "classification":
        p = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
        p[:2] = 1.0, -1.0
        lo, hi, epsilon = np.minimum(0, C * p), np.maximum(0, C * p), 0.0
        model = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, p)
    else:
        p = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
        lo, hi, epsilon = np.full(n, -C), np.full(n, C), 0.1
        model = SVR(C=C, kernel="precomputed", epsilon=epsilon, tol=1e-6).fit(K, p)
    v = np.zeros(n)
    v[model.support_] = model.dual_coef_[0]
    return K, p, lo, hi, epsilon, v


def blocks(K):
    return lambda rows, columns: K[np.ix_(rows, columns)]


def solve(K, p, lo, hi, epsilon, v, adaptivity=0.25, rank_penalty=0.01, **options):
    centering = options.pop("centering", (v**2 @ K.diagonal()) / (4 * adaptivity))
    return centering, solve_dank(
        blocks(K),
        p,
        lo,
        hi,
        centering_penalty=centering,
        rank_penalty=rank_penalty,
        start=v,
        epsilon=epsilon,
        **options,
    )


KINDS = ["classification", "regression"]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
def test_projection_equals_newton_and_is_feasible(scale):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 200):
        lo = -scale * rng.random(n) * (rng.random(n) < 0.7)
        hi = scale * rng.random(n) * (rng.random(n) < 0.7)
        z = scale * rng.normal(size=n)
        v = project(z, lo, hi)
        assert np.all(v >= lo) and np.all(v <= hi)
        assert abs(v.sum()) <= 1e-12 * max(scale, np.abs(v).sum())
        other = scale * newton_projection(z / scale, lo / scale, hi / scale)
        np.testing.assert_allclose(v, other, rtol=0, atol=1e-12 * scale)


def test_projections_onto_many_boxes():
    """Of machines of classes, whose boxes have a corner at zero, and of others; some have few rows off their bounds."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, C, size = rng.integers(2, 40), *10 ** rng.uniform(-1, 1, size=2)
        lo, hi = -C * rng.random(n), C * rng.random(n)
        if seed % 2:
            p = labels_of(n, rng)
            lo, hi = np.minimum(0, C * p), np.maximum(0, C * p)
        z = size * rng.normal(size=n)
        np.testing.assert_allclose(project(z, lo, hi), newton_projection(z, lo, hi), atol=1e-12)


def test_snap_keeps_zeros():
    lo, hi = np.zeros(6), np.array([1.0, 1, 1, 0, 0, 0])
    lo[3:] = -1.0
    v = np.array([0.5 + 1e-9, 0.0, 0.0, -0.5, 0.0, 0.0])
    snapped = snap(v, lo, hi)
    assert np.count_nonzero(snapped) == 2 and abs(snapped.sum()) < 1e-15


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank_penalty", [0.0, 0.01, 0.3, 2.0])
def test_objective_and_gradient_equal_dense_formulas(kind, rank_penalty):
    K, p, lo, hi, epsilon, start = make_problem(25, kind=kind)
    rng = np.random.default_rng(2)
    weight = rng.integers(1, 4, size=25).astype(float)
    for v in [start, *random_feasible(rng, lo, hi, 5)]:
        centering = max(v @ v, 0.1)
        outside = 3.0  # three more rows with v = 0, which only the oracle sees
        big_K = np.eye(28)
        big_K[:25, :25] = K
        big_v, big_p, big_w = (
            np.append(v, [0, 0, 0]),
            np.append(p, [0, 0, 0]),
            np.append(weight, [1, 1, 1]),
        )
        problem = _DankProblem(
            K,
            K**2 / np.outer(weight, weight),
            p,
            lo,
            hi,
            weight,
            outside,
            centering,
            rank_penalty,
            epsilon,
        )
        state = _evaluate(problem, v)
        dense = dense_objective(big_K, big_p, big_v, centering, rank_penalty, epsilon, big_w)
        constant = centering * rank_penalty * big_w.sum()
        np.testing.assert_allclose(state.value, dense - constant, rtol=1e-8, atol=1e-8 * centering)
        F, copies = dense_adaptation(big_K, big_v, centering, rank_penalty, big_w)
        first = np.searchsorted(copies, np.arange(28))
        np.testing.assert_allclose(
            state.smooth, ((F[np.ix_(first, first)] * big_K) @ big_v)[:25], rtol=1e-8, atol=1e-9
        )


@pytest.mark.parametrize("rank_penalty", [0.0, 0.01, 0.3])
def test_gradient_equals_central_differences(rank_penalty):
    K, p, lo, hi, _, v = make_problem(20)
    v = v + 0.05 * np.random.default_rng(0).normal(size=20)  # the formula holds outside the box too
    weight = np.linspace(0.5, 2, 20)
    problem = _DankProblem(
        K, K**2 / np.outer(weight, weight), p, lo, hi, weight, 4.0, 1.5, rank_penalty, 0.0
    )
    gradient = p - _evaluate(problem, v).smooth
    h = 1e-5
    for i in range(20):
        e = np.eye(20)[i] * h
        difference = (_evaluate(problem, v + e).value - _evaluate(problem, v - e).value) / (2 * h)
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank_penalty", [0.0, 0.01, 0.3])
def test_gap_bounds_the_error_at_random_points(kind, rank_penalty):
    K, p, lo, hi, epsilon, v = make_problem(30, kind=kind)
    centering, best = solve(K, p, lo, hi, epsilon, v, rank_penalty=rank_penalty, tol=1e-8)
    optimum = dense_objective(K, p, best.dual, centering, rank_penalty, epsilon)
    for point in random_feasible(np.random.default_rng(3), lo, hi, 200):
        F, _ = dense_adaptation(K, point, centering, rank_penalty)
        gap, _ = duality_gap(p - (F * K) @ point, point, lo, hi, epsilon)
        error = optimum - dense_objective(K, p, point, centering, rank_penalty, epsilon)
        assert -1e-7 * abs(optimum) <= error <= gap * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_gap_is_its_definition(epsilon):
    """The bound by brute force: every z in {lo, 0, hi}, every b at which the sum has a kink."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        lo, hi, gradient = -rng.random(7) * (rng.random(7) < 0.8), rng.random(7), rng.normal(size=7)
        v = random_feasible(rng, lo, hi, 1)[0]

        def bound(b, gradient=gradient, lo=lo, hi=hi):
            choices = [(gradient - b) * z - epsilon * np.abs(z) for z in (lo, 0 * lo, hi)]
            return np.max(choices, axis=0).sum()

        best = min(bound(b) for b in np.concatenate([gradient - epsilon, gradient + epsilon]))
        gap, b = duality_gap(gradient, v, lo, hi, epsilon)
        np.testing.assert_allclose(
            gap, best - (gradient @ v - epsilon * np.abs(v).sum()), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(bound(b), best, rtol=1e-9, atol=1e-12)
        scale = gap_scale(gradient, v, epsilon)
        np.testing.assert_allclose(scale, abs(gradient @ v - epsilon * np.abs(v).sum()), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_solution_beats_ten_thousand_feasible_points(kind):
    K, p, lo, hi, epsilon, v = make_problem(8, kind=kind)
    centering, best = solve(K, p, lo, hi, epsilon, v, tol=1e-8)
    optimum = dense_objective(K, p, best.dual, centering, 0.01, epsilon)
    points = random_feasible(np.random.default_rng(4), lo, hi, 1000)
    nearer = np.geomspace(0.5, 1e-4, 9)
    points += [best.dual + t * (q - best.dual) for q in points for t in nearer]
    assert len(points) == 10_000
    assert max(
        dense_objective(K, p, q, centering, 0.01, epsilon) for q in points
    ) <= optimum + 1e-9 * abs(optimum)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank_penalty", [0.01, 0.2])
def test_solution_equals_a_first_order_method(kind, rank_penalty):
    K, p, lo, hi, epsilon, v = make_problem(15, kind=kind)
    centering, best = solve(K, p, lo, hi, epsilon, v, rank_penalty=rank_penalty, tol=1e-10)
    slow = first_order_solution(K, p, lo, hi, centering, rank_penalty, epsilon, n_steps=600)
    values = [dense_objective(K, p, q, centering, rank_penalty, epsilon) for q in (best.dual, slow)]
    assert values[0] >= values[1] - 1e-9 * abs(values[1])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank_penalty", [0.0, 0.001, 0.01, 0.1, 1.0])
def test_outer_steps_increase_the_objective(kind, rank_penalty):
    K, p, lo, hi, epsilon, v = make_problem(200, C=8.0, kind=kind)
    values = []

    def record(step):
        values.append(step.objective)

    options = {"rank_penalty": rank_penalty, "callback": record}
    _, solution = solve(K, p, lo, hi, epsilon, v, **options)
    values = np.append(values, solution.objective)
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[1:]))
    assert solution.gap <= 1e-4 and solution.n_iter <= 10


@pytest.mark.parametrize("n", [40, 900])
def test_solution_is_feasible_and_its_certificate_true(n):
    K, p, lo, hi, epsilon, v = make_problem(n, C=4.0)
    centering, solution = solve(K, p, lo, hi, epsilon, v)
    assert np.all(solution.dual >= lo) and np.all(solution.dual <= hi)
    assert abs(solution.dual.sum()) <= 1e-10 * np.abs(solution.dual).sum()
    F, _ = dense_adaptation(K, solution.dual, centering, 0.01)
    gap, b = duality_gap(p - (F * K) @ solution.dual, solution.dual, lo, hi)
    np.testing.assert_allclose(solution.gap, gap / abs(p @ solution.dual), rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(solution.intercept, b, rtol=1e-6, atol=1e-9)
    on_support = solution.factor @ solution.factor.T
    np.testing.assert_allclose(on_support, F[np.ix_(solution.support, solution.support)], atol=1e-9)
    if n > 500:
        assert solution.n_working < n


@pytest.mark.parametrize("rank_penalty", [0.0, 0.01, 0.1])
def test_generic_row_equals_rows_without_coefficient(rank_penalty):
    K, p, lo, hi, epsilon, v = make_problem(120)
    centering, solution = solve(K, p, lo, hi, epsilon, v, rank_penalty=rank_penalty)
    F, _ = dense_adaptation(K, solution.dual, centering, rank_penalty)
    zero = np.flatnonzero(solution.dual == 0)
    assert len(zero) > 10
    expected = F[np.ix_(solution.support, zero)]
    generic = solution.factor @ solution.offset
    np.testing.assert_allclose(np.tile(generic, (len(zero), 1)).T, expected, atol=1e-10)
    np.testing.assert_allclose(
        solution.expansion[solution.support], solution.dual[solution.support] * generic, rtol=1e-12
    )


@pytest.mark.parametrize("rank_penalty", [0.01, 0.1, 0.5])
def test_rank_bound_and_ridge_bound(rank_penalty):
    K, p, lo, hi, epsilon, v = make_problem(150, C=4.0)
    centering, solution = solve(K, p, lo, hi, epsilon, v, rank_penalty=rank_penalty, tol=1e-6)
    w = solution.dual
    bound = 1 + int((w**2 @ K.diagonal()) / (2 * centering * rank_penalty))
    assert solution.factor.shape[1] <= bound
    F, _ = dense_adaptation(K, w, centering, rank_penalty)
    s = solution.support
    ridge = ((F * K) @ w - K @ solution.expansion)[s] / w[s]
    assert np.all(ridge >= -1e-10) and np.all(ridge <= (w @ w) / (4 * centering) + 1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_problems_reach_a_tight_gap(kind):
    rng = np.random.default_rng(0)
    n = 80
    missed = []
    for duplicates, C, gamma, adaptivity in itertools.product(
        [1, 4], [1e-3, 1.0, 1e3, 1e5], [0.01, 1, 100], [0.02, 4]
    ):
        X = np.repeat(rng.normal(size=(n // duplicates, 3)), duplicates, axis=0)
        K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
        p = np.where(rng.random(n) < 0.5, 1.0, -1.0)  # equal rows with unequal labels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libsvm is cut short on purpose: the start may be poor
            if kind == "classification":
                epsilon, lo, hi = 0.0, np.minimum(0, C * p), np.maximum(0, C * p)
                model = SVC(C=C, kernel="precomputed", max_iter=20000).fit(K, p)
            else:
                p = np.sin(X[:, 0]) + 0.1 * p
                epsilon, lo, hi = 0.1, np.full(n, -C), np.full(n, C)
                model = SVR(C=C, kernel="precomputed", epsilon=epsilon, max_iter=20000).fit(K, p)
        v = np.zeros(n)
        v[model.support_] = model.dual_coef_[0]
        v = snap(v, lo, hi)
        curvature = adaptivity / (v @ v)
        found = solve_quartic(Quartic(K, K**2, curvature, p, lo, hi, epsilon), v, tol=1e-6)
        if not found.gap <= 1e-6:
            missed.append((duplicates, C, gamma, adaptivity, found.gap))
    assert not missed


@pytest.mark.parametrize("seed", range(10))
def test_wide_tube_problems_end_quadratically(seed):
    rng = np.random.default_rng(seed)
    n, C, epsilon = 80, 1e5, 0.1  # the gap multiplies rounding by C: a last step cut short shows
    X = rng.normal(size=(n, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    p = np.sin(X[:, 0]) + 0.1 * np.where(rng.random(n) < 0.5, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libsvm is cut short on purpose: the start may be poor
        model = SVR(C=C, kernel="precomputed", epsilon=epsilon, max_iter=20000).fit(K, p)
    lo, hi, v = np.full(n, -C), np.full(n, C), np.zeros(n)
    v[model.support_] = model.dual_coef_[0]
    v = snap(v, lo, hi)
    found = solve_quartic(Quartic(K, K**2, 4 / (v @ v), p, lo, hi, epsilon), v, tol=1e-9)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_vanishing_slacks_end_the_interior_point_quietly(kind):
    K, p, lo, hi, epsilon, _ = make_problem(30, kind=kind)
    lo[:3] = hi[:3] = 0.0  # no room at all
    v = _interior_point(Quartic(K, K**2, 0.1, p, lo, hi, epsilon), np.zeros(30), 1e-8)
    assert np.isfinite(v).all() and np.all(v >= lo) and np.all(v <= hi) and abs(v.sum()) < 1e-10


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_kernel_scale_only_rescales(scale):
    K, p, lo, hi, epsilon, v = make_problem(60)
    _, reference = solve(K, p, lo, hi, epsilon, v, tol=1e-8)
    _, scaled = solve(K * scale, p, lo / scale, hi / scale, epsilon, v / scale, tol=1e-8)
    np.testing.assert_allclose(scaled.dual * scale, reference.dual, atol=1e-6)
    np.testing.assert_allclose(scaled.intercept, reference.intercept, atol=1e-6)


def test_callback_sees_every_step_and_can_stop():
    K, p, lo, hi, epsilon, v = make_problem(200, C=8.0)
    steps = []

    def stop_at_two(step):
        steps.append(step)
        return len(steps) == 2

    _, solution = solve(K, p, lo, hi, epsilon, v, rank_penalty=0.1, callback=stop_at_two)
    assert len(steps) == 2 and solution.objective == steps[1].objective


@pytest.mark.parametrize("kind", KINDS)
def test_eigenpairs_stay_when_unsupported_rows_come_in(kind):
    K, p, lo, hi, epsilon, v = make_problem(80, kind=kind)
    v[50:] = 0.0
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, size=80).astype(float)
    A = K**2 / np.outer(weight, weight)
    whole = _DankProblem(K, A, p, lo, hi, weight, 2.0, 3.0, 0.01, epsilon)
    few = slice(0, 50)
    outside = 2.0 + weight[50:].sum()
    small = _DankProblem(
        K[few, few], A[few, few], p[few], lo[few], hi[few], weight[few], outside, 3.0, 0.01, epsilon
    )
    known = _evaluate(small, v[few]).adaptation
    found = _evaluate(whole, v, known)
    expected = _evaluate(whole, v)
    np.testing.assert_allclose(found.smooth, expected.smooth, atol=1e-9)
    np.testing.assert_allclose(
        [found.value, found.gap, found.rank],
        [expected.value, expected.gap, expected.rank],
        rtol=1e-8,
    )


# arbitrary spectra and scales


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
