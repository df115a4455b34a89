"""The objectives of local kernel regression, their gradients, the descent, the support, and validation."""

from dataclasses import replace
from functools import partial, reduce

import numpy as np
import pytest
from conftest import frozen
from contract import central_difference
from draws import few, scales, seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import lab as oracle
from scipy.optimize import minimize
from sklearn.model_selection import KFold

from mercerless import Support
from mercerless.core.linalg import shifted_systems
from mercerless.kernels import LocalExponential, LocalGaussian, LocalLaplace
from mercerless.lab.learning import LIMITS, LocalLearner, Watch
from mercerless.lab.model import Rows
from mercerless.lab.solver import (
    LocalRegression,
    Moments,
    State,
    descend,
    evidence,
    factor_of,
    initial_state,
    interpolation,
    inverse_of,
    moments,
    relative_norm,
    solve_coefficients,
)
from mercerless.lab.support import select_support

FORMS = {"gaussian": LocalGaussian, "exponential": LocalExponential, "laplace": LocalLaplace}


def problem(n=40, m=8, d=3, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    support = rng.permutation(n)[:m]
    H = np.exp(0.4 * rng.normal(size=(m, d)))
    Y = np.stack(
        [np.sin(X @ rng.normal(size=d)) + 0.1 * rng.normal(size=n) for _ in range(outputs)], axis=1
    )
    return frozen(X), support, frozen(H), frozen(Y)


def objectives(support):
    return {"evidence": evidence, "interpolation": partial(interpolation, support=support)}


def regression_on(X, support, Y, objective, fixed):
    return LocalRegression(LocalGaussian, objective, X, X[support], Y, fixed, np.ones(len(X)))


def fixed_columns(X):
    return np.hstack([np.ones((len(X), 1)), X / np.sqrt(X.shape[1])])


def silent(info):
    return False


def learner_of(support=20, objective="evidence", max_iter=20, ridge=None, report=silent):
    """A learner with a Gaussian form and a linear part; `support` is a number or a Support."""
    if not isinstance(support, Support):
        support = Support(support)
    return LocalLearner(
        "gaussian", objective, ridge, max_iter, support, support.n_support, 3, True, (), 0, report
    )


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["evidence", "interpolation"])
def test_gradients_equal_central_differences_and_automatic_derivatives(name, form, outputs):
    X, support, H, Y = problem(outputs=outputs)
    S, objective = X[support], objectives(support)[name]
    F = np.zeros((len(X), 0)) if name == "interpolation" else fixed_columns(X)
    kernel = FORMS[form](H)
    ones = np.ones(len(X))
    ev = objective(kernel(X, S), F, Y, 1e-2, ones)
    gradient = kernel.pullback(X, S, ev.kernel_gradient)

    def at(z):
        return objective(kernel.with_theta(z[:-1])(X, S), F, Y, np.exp(z[-1]), ones).value

    numeric = central_difference(at, np.append(kernel.theta, np.log(1e-2)))
    assert_allclose(
        np.append(gradient, ev.ridge_gradient),
        numeric,
        rtol=1e-6,
        atol=1e-6 * np.abs(numeric).max(),
    )
    pytest.importorskip("torch")
    value, by_torch, ridge = oracle.torch_gradient(name, form, X, S, H, F, Y, 1e-2, support)
    assert_allclose(ev.value, value, rtol=1e-10)
    assert_allclose(gradient, by_torch, rtol=1e-8, atol=1e-10 * np.abs(by_torch).max())
    assert_allclose(ev.ridge_gradient, ridge, rtol=1e-8)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_is_the_density_of_the_targets(outputs, weighted):
    X, support, H, Y = problem(outputs=outputs)
    w = np.linspace(0.5, 1.5, len(X)) if weighted else np.ones(len(X))
    K, F = LocalGaussian(H)(X, X[support]), fixed_columns(X)
    for ridge in (1e-6, 1e-2, 1.0):
        assert_allclose(
            evidence(K, F, Y, ridge, w).value, oracle.evidence(K, F, Y, ridge, w), rtol=1e-8
        )


def test_interpolation_passes_through_the_support_and_refuses_singular_systems():
    X, support, H, Y = problem()
    K = LocalGaussian(H)(X, X[support])
    coef = interpolation(K, np.zeros((40, 0)), Y, 1e-12, np.ones(40), support=support).coef
    assert_allclose(K[support] @ coef, Y[support], atol=1e-8)
    with pytest.raises(ValueError, match="no room for fixed columns"):
        interpolation(K, np.ones((40, 1)), Y, 1e-5, np.ones(40), support=support)
    K = np.array([[1.0, 4.0], [1.0, 1.0], [0.5, 0.5]])  # eigenvalues -1 and 3: singular at ridge 1
    with pytest.raises(np.linalg.LinAlgError, match="singular on the support"):
        interpolation(
            K, np.zeros((3, 0)), np.ones((3, 1)), 1.0, np.ones(3), support=np.array([0, 1])
        )


@pytest.mark.parametrize("n", [1, 2, 70])
def test_the_inverse_from_a_factor(n):
    A = np.random.default_rng(0).normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    assert_allclose(inverse_of(factor_of(A.copy())), np.linalg.inv(A), rtol=1e-9, atol=1e-12)


def test_grid_start_is_the_best_of_the_grid():
    X, support, _, Y = problem()
    widths, ridges = [0.5, 1.0, 2.0], [1e-4, 1e-2, 1.0]
    regression = regression_on(X, support, Y, evidence, fixed_columns)
    value, log_width, log_ridge = initial_state(regression, widths, ridges)
    every = {
        (h, r): evidence(
            LocalGaussian(h)(X, X[support]), fixed_columns(X), Y, r, np.ones(len(X))
        ).value
        for h in widths
        for r in ridges
    }
    best = min(every, key=every.get)
    assert_allclose([value, log_width, log_ridge], [every[best], *np.log(best)], rtol=1e-8)


def test_bandwidths_at_which_centers_see_no_rows_are_for_want_of_others():
    X, support, _, _ = problem()
    random = np.random.default_rng(0)
    Y = X @ np.ones((3, 1)) + 0.01 * random.normal(size=(40, 1))
    Y[support] += 5.0 * random.normal(size=(len(support), 1))  # each fits its own best alone
    regression = regression_on(X, support, Y, evidence, fixed_columns)
    blind, seeing = (initial_state(regression, [width], [1e-4]) for width in (1e-3, 1.0))
    assert blind[0] < seeing[0]
    assert initial_state(regression, [1e-3, 1.0], [1e-4]) == seeing
    assert initial_state(regression, [0.3, 1e-3], [1e-4]) == blind  # neither sees any


@pytest.mark.parametrize("name", ["evidence", "interpolation"])
def test_descent_never_increases_and_reaches_a_stationary_point(name):
    X, support, H, Y = problem(60, 5, 2)
    F = np.zeros((60, 0)) if name == "interpolation" else fixed_columns(X)
    seen = []
    regression = regression_on(X, support, Y, objectives(support)[name], lambda X: F)
    path = descend(
        regression,
        np.log(H),
        np.log(1e-2),
        pull=1e-2,
        learn_ridge=name == "evidence",
        max_iter=500,
        tol=1e-13,
        watch=lambda state: seen.append(state),
    )
    assert np.all(np.diff(path.values) <= 1e-12)
    assert path.values[-1] < path.values[0]
    assert path.certificate < 1e-4
    assert [relative_norm(norms) for norms in ([], [4.0, 1.0], [0.0])] == [1.0, 0.25, 0.0]
    assert [state.iteration for state in seen] == list(range(1, len(path.values)))
    assert_array_equal([state.value for state in seen], path.values[1:])
    assert_array_equal(path.end.log_bandwidths, seen[-1].log_bandwidths)
    step = seen[2].log_bandwidths - np.log(H)
    there = objectives(support)[name](
        LocalGaussian(np.exp(seen[2].log_bandwidths))(X, X[support]),
        F,
        Y,
        np.exp(seen[2].log_ridge),
        np.ones(60),
    )
    assert_allclose(there.value + 1e-2 * np.sum(step**2), path.values[3], rtol=1e-10)
    # an independent minimizer from the end finds nothing better nearby
    shape = H.shape

    def at(z):
        K = LocalGaussian(np.exp(z).reshape(shape))(X, X[support])
        step = z - np.log(H).ravel()
        return (
            objectives(support)[name](K, F, Y, np.exp(path.end.log_ridge), np.ones(60)).value
            + 1e-2 * step @ step
        )

    end = path.end.log_bandwidths.ravel()
    assert at(end) <= minimize(at, end, method="Nelder-Mead", options={"maxiter": 300}).fun + 1e-6


def test_coefficients_from_blocks_equal_those_from_all_rows():
    X, support, H, Y = problem(90)
    w = np.linspace(0.5, 1.5, 90)
    kernel = LocalLaplace(H)
    parts = [slice(0, 30), slice(30, 31), slice(31, 90)]
    sums = [
        moments(X[r], Y[r], w[r], kernel=kernel, S=X[support], fixed=fixed_columns) for r in parts
    ]
    coef = solve_coefficients(reduce(Moments.merge, sums), 1e-3)
    Phi = np.hstack([kernel(X, X[support]), fixed_columns(X)])
    A = (Phi * w[:, None]).T @ Phi + 1e-3 * w.sum() * np.eye(Phi.shape[1])
    assert_allclose(coef, np.linalg.solve(A, (Phi * w[:, None]).T @ Y), rtol=1e-8)


@pytest.mark.parametrize("method", ["kmeans", "y", "random", "extreme"])
def test_support_is_distinct_even_among_repeated_rows(method):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 2)), 4, axis=0)
    Y = np.round(X[:, :1], 1)
    for m in (1, 25, 40, 120, 500):
        support = select_support(X, Y, m, method, seed=0)
        assert len(np.unique(support)) == len(support) == min(m, 120)
        assert_array_equal(support, select_support(X, Y, m, method, seed=0))


def test_selections_by_target():
    X, _, _, Y = problem(50)
    order = np.argsort(Y[:, 0])
    assert_array_equal(np.sort(select_support(X, Y, 10, "extreme", 0)), np.sort(order[40:]))
    spread = select_support(X, Y, 10, "y", 0)
    assert {order[0], order[-1]} <= set(spread)


@pytest.mark.parametrize(
    ("errors", "last"),
    [
        ([1.0, 1.1, 1.2, 0.5], 10),
        ([1.0, 0.999, 0.9985, 0.5], 10),
        ([1.0, 0.9, 0.95, 0.5, 0.6, 0.7, 0.1], 80),
        ([1.0, 1.1, 0.9, 1.0, 0.8, 0.7, 0.6], 150),
    ],
)
def test_a_descent_ends_after_two_checkpoints_without_a_gain(errors, last):
    held = Rows(np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1))
    watch = Watch(silent, held, LIMITS.checkpoints)

    class Problem:
        def predict(self, state, X):
            return np.array([[np.sqrt(errors[LIMITS.checkpoints.index(state.iteration)])]])

    for iteration in LIMITS.checkpoints:
        if watch("", Problem(), np.zeros(1), State(iteration, 0.0, np.zeros(1), 0.0)):
            break
    assert watch.kept[-1].state.iteration == last


@pytest.mark.parametrize("n, q", [(1, 1), (2, 3), (30, 2)])
def test_shifted_systems_equal_direct_solutions(n, q):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, max(1, n - 1)))
    A = root @ root.T  # singular from two rows on
    B = rng.normal(size=(n, q))
    shifts = np.array([1e-4, 0.1, 7.0])
    quadratic, logdet = shifted_systems(A.copy(), B, shifts)
    for shift, value, log in zip(shifts, quadratic, logdet):
        shifted = A + shift * np.eye(n)
        assert_allclose(value, np.sum(B * np.linalg.solve(shifted, B)), rtol=1e-8)
        assert_allclose(log, np.linalg.slogdet(shifted)[1], rtol=1e-9, atol=1e-9)


def test_shifted_systems_are_infinite_if_the_matrix_is_not_definite():
    A = np.diag([1.0, -2.0, 3.0])
    quadratic, logdet = shifted_systems(A, np.ones((3, 1)), np.array([1.0, 2.5]))
    assert np.isinf(quadratic[0]) and np.isinf(logdet[0])
    assert_allclose(quadratic[1], 1 / 3.5 + 1 / 0.5 + 1 / 5.5)


@pytest.mark.parametrize("objective", ["evidence", "interpolation"])
def test_growth_ends_only_at_the_bound_or_the_cap(objective):
    X, _, _, Y = problem(80, d=2)
    rows = Rows(X, Y, np.ones(80))
    capped = Support(8, selection="y", max_error=1e-9, max_support=20)
    learned = learner_of(capped, objective, 50).learn(rows)
    assert len(learned.support) == len(np.unique(learned.support)) == 20
    assert_array_equal(learned.support[:8], select_support(X, Y, 8, "y", 0))
    sizes, errors = zip(*learned.growth)
    assert sizes[0] == 8 and sizes[-1] == 20 and np.all(np.diff(sizes) > 0)
    assert errors[-1] > 1e-9
    learned = learner_of(Support(8, selection="y", max_error=1.0), objective, 50).learn(rows)
    assert learned.growth[-1][1] <= 1.0 and len(learned.support) < 80


@pytest.mark.parametrize("objective, ridge", [("evidence", 0.01), ("interpolation", None)])
def test_a_given_ridge_is_kept(objective, ridge):
    X, _, _, Y = problem()
    learned = learner_of(8, objective, 5, ridge).learn(Rows(X, Y, np.ones(len(X))))
    assert_allclose(np.exp(learned.log_ridge), 1e-5 if ridge is None else ridge)


def test_iterations_of_a_fold_are_chosen_by_the_others():
    """The targets of two folds are noise, so their best is the start: that of the third, its own end or not."""
    random = np.random.RandomState(1)
    X = random.uniform(-2, 2, size=(120, 1))
    Y = np.sin(4 * X)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    for _, test in folds[:2]:
        Y[test] = random.normal(size=(len(test), 1))
    rows = Rows(X, Y, np.linspace(0.5, 1.5, 120))
    learner = learner_of(30)
    validated = learner.validate(rows, folds)
    assert len(validated.predictions) == 120
    kept = []
    for train, test in folds:
        watch = Watch(silent, rows.take(test), LIMITS.checkpoints)
        replace(learner, n_support=20).learn(rows.take(train), watch)
        kept.append(watch.kept)
    n_common = min(map(len, kept))
    errors = np.array([[point.error for point in each[:n_common]] for each in kept])
    start = 0
    for fold, (_, test) in enumerate(folds):
        chosen = np.delete(errors, fold, axis=0).mean(axis=0).argmin()
        of_fold = validated.predictions[start : start + len(test)]
        start += len(test)
        assert_allclose(of_fold, kept[fold][chosen].predictions, rtol=1e-8, atol=1e-8)


# arbitrary spectra and scales


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
    np.testing.assert_allclose(unit.value, oracle.evidence(K, none, Y, 0.1), rtol=1e-8, atol=1e-9)


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
