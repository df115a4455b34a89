"""The objectives of local kernel regression, their gradients, the descent, support, growth and weights."""

from functools import partial, reduce

import numpy as np
import pytest
from conftest import frozen
from contract import central_difference
from numpy.testing import assert_allclose, assert_array_equal
from oracles import lab as oracle
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge

from mercerless.core.linalg import ShiftedSolver, shifted_systems
from mercerless.kernels.local import LocalExponential, LocalGaussian, LocalLaplace
from mercerless.lab.model import Expansion, Rows, Settings, fixed_columns, with_coefficients
from mercerless.lab.selection import LIMITS, LocalLearner, Validated, Watch
from mercerless.lab.solver import (
    LocalRegression,
    Moments,
    State,
    descend,
    evidence,
    factor_of,
    gram,
    initial_state,
    interpolation,
    inverse_of,
    least_squares,
    moments,
    shared_evidence,
    solve_coefficients,
)
from mercerless.lab.support import fold_supports, select_support

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
    return {
        "evidence": evidence,
        "least_squares": least_squares,
        "interpolation": partial(interpolation, support=support),
    }


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["evidence", "least_squares", "interpolation"])
def test_gradients_equal_central_differences_and_automatic_derivatives(name, form, outputs):
    X, support, H, Y = problem(outputs=outputs)
    S, objective = X[support], objectives(support)[name]
    F = np.zeros((len(X), 0)) if name == "interpolation" else fixed_columns(X)
    kernel = FORMS[form](H)
    ev = objective(kernel(X, S), F, Y, 1e-2)
    gradient = kernel.pullback(X, S, ev.kernel_gradient)

    def at(z):
        return objective(kernel.with_theta(z[:-1])(X, S), F, Y, np.exp(z[-1])).value

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


@pytest.mark.parametrize("name", ["evidence", "least_squares", "interpolation"])
def test_weighted_gradients_equal_central_differences(name):
    X, support, H, Y = problem()
    w = np.random.default_rng(1).uniform(0.2, 2, size=len(X))
    objective = objectives(support)[name]
    F = np.zeros((len(X), 0)) if name == "interpolation" else fixed_columns(X)
    kernel = LocalGaussian(H)
    gradient = kernel.pullback(
        X, X[support], objective(kernel(X, X[support]), F, Y, 1e-2, w).kernel_gradient
    )
    numeric = central_difference(
        lambda t: objective(kernel.with_theta(t)(X, X[support]), F, Y, 1e-2, w).value, kernel.theta
    )
    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6 * np.abs(numeric).max())


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_evidence_is_the_density_of_the_targets(outputs, weighted):
    X, support, H, Y = problem(outputs=outputs)
    w = np.linspace(0.5, 1.5, len(X)) if weighted else None
    K, F = LocalGaussian(H)(X, X[support]), fixed_columns(X)
    for ridge in (1e-6, 1e-2, 1.0):
        assert_allclose(
            evidence(K, F, Y, ridge, w).value, oracle.evidence(K, F, Y, ridge, w), rtol=1e-8
        )


def test_single_precision_matrices_are_accumulated_in_double():
    X, support, H, Y = problem(500, 20)
    K = LocalGaussian(H)(X, X[support])
    A, B = gram(K.astype(np.float32), Y)
    assert A.dtype == np.float64
    assert_allclose(A, K.T @ K, rtol=1e-5)
    assert_allclose(B, K.T @ Y, rtol=1e-4, atol=1e-5)


def test_shared_evidence_and_its_gradient():
    X, _, _, Y = problem(25)
    w = np.linspace(0.5, 1.5, 25)
    kernel = LocalGaussian(np.array([0.8, 1.2, 2.0]))
    for weight in (None, w):
        noise = 0.1 * (np.ones(25) if weight is None else 1 / weight)
        A = kernel(X) + np.diag(noise)
        ev = shared_evidence(kernel(X), Y, 0.1, weight)
        dense = np.log(np.sum(Y * np.linalg.solve(A, Y)) / 25) + np.linalg.slogdet(A)[1] / 25
        assert_allclose(ev.value, dense, rtol=1e-10)
        numeric = central_difference(
            lambda z: shared_evidence(kernel.with_theta(z[:-1])(X), Y, np.exp(z[-1]), weight).value,  # noqa: B023
            np.append(kernel.theta, np.log(0.1)),
        )
        gradient = np.append(kernel.pullback(X, X, ev.kernel_gradient), ev.ridge_gradient)
        assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)


def test_interpolation_passes_through_the_support_and_refuses_singular_systems():
    X, support, H, Y = problem()
    K = LocalGaussian(H)(X, X[support])
    coef = interpolation(K, np.zeros((40, 0)), Y, 1e-12, support=support).coef
    assert_allclose(K[support] @ coef, Y[support], atol=1e-8)
    with pytest.raises(ValueError, match="no room for fixed columns"):
        interpolation(K, np.ones((40, 1)), Y, 1e-5, support=support)
    K = np.array([[1.0, 4.0], [1.0, 1.0], [0.5, 0.5]])  # eigenvalues -1 and 3: singular at ridge 1
    with pytest.raises(np.linalg.LinAlgError, match="singular on the support"):
        interpolation(K, np.zeros((3, 0)), np.ones((3, 1)), 1.0, support=np.array([0, 1]))


@pytest.mark.parametrize("n", [1, 2, 70])
def test_the_inverse_from_a_factor(n):
    A = np.random.default_rng(0).normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    assert_allclose(inverse_of(factor_of(A.copy())), np.linalg.inv(A), rtol=1e-9, atol=1e-12)


def test_weights_of_one_are_no_weights():
    X, support, H, Y = problem()
    K = LocalGaussian(H)(X, X[support])
    given = evidence(K, fixed_columns(X), Y, 1e-2, np.ones(len(X)))
    assert_allclose(given.coef, evidence(K, fixed_columns(X), Y, 1e-2).coef, rtol=1e-12)
    doubled = evidence(K, fixed_columns(X), Y, 1e-2, np.full(len(X), 2.0))
    assert not np.allclose(doubled.coef, given.coef, rtol=1e-3)


def test_grid_start_is_the_best_of_the_grid():
    X, support, _, Y = problem()
    widths, ridges = [0.5, 1.0, 2.0], [1e-4, 1e-2, 1.0]
    regression = LocalRegression(LocalGaussian, evidence, X, X[support], Y, fixed_columns)
    value, log_width, log_ridge = initial_state(regression, widths, ridges)
    every = {
        (h, r): evidence(LocalGaussian(h)(X, X[support]), fixed_columns(X), Y, r).value
        for h in widths
        for r in ridges
    }
    best = min(every, key=every.get)
    assert_allclose([value, log_width, log_ridge], [every[best], *np.log(best)], rtol=1e-8)


@pytest.mark.parametrize("name", ["evidence", "least_squares", "interpolation"])
def test_descent_never_increases_and_reaches_a_stationary_point(name):
    X, support, H, Y = problem(60, 5, 2)
    F = np.zeros((60, 0)) if name == "interpolation" else fixed_columns(X)
    seen = []
    regression = LocalRegression(
        LocalGaussian, objectives(support)[name], X, X[support], Y, lambda X: F
    )
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
    assert [state.iteration for state in seen] == list(range(1, len(path.values)))
    assert_array_equal([state.value for state in seen], path.values[1:])
    assert_array_equal(path.end.log_bandwidths, seen[-1].log_bandwidths)
    step = seen[2].log_bandwidths - np.log(H)
    there = objectives(support)[name](
        LocalGaussian(np.exp(seen[2].log_bandwidths))(X, X[support]),
        F,
        Y,
        np.exp(seen[2].log_ridge),
    )
    assert_allclose(there.value + 1e-2 * np.sum(step**2), path.values[3], rtol=1e-10)
    # an independent minimizer from the end finds nothing better nearby
    shape = H.shape

    def at(z):
        K = LocalGaussian(np.exp(z).reshape(shape))(X, X[support])
        step = z - np.log(H).ravel()
        return (
            objectives(support)[name](K, F, Y, np.exp(path.end.log_ridge)).value
            + 1e-2 * step @ step
        )

    end = path.end.log_bandwidths.ravel()
    assert at(end) <= minimize(at, end, method="Nelder-Mead", options={"maxiter": 300}).fun + 1e-6


def test_descent_stops_when_told():
    X, support, H, Y = problem()
    regression = LocalRegression(LocalGaussian, evidence, X, X[support], Y, fixed_columns)
    path = descend(
        regression, np.log(H), -4.0, max_iter=50, watch=lambda state: state.iteration == 4
    )
    assert len(path.values) == 5


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


@pytest.mark.parametrize("objective", ["evidence", "interpolation"])
def test_growth_ends_only_at_the_bound_or_the_cap(objective):
    X, _, _, Y = problem(80, d=2)
    settings = Settings(objective, 8, "y", None, 50, growth=1e-9, max_support=20)
    support = select_support(X, Y, 8, "y", 0)
    expansion, _, _ = LocalLearner("gaussian", settings).learn(Rows(X, Y), support)
    assert len(expansion.support) == len(np.unique(expansion.support)) == 20
    assert_array_equal(expansion.support[:8], support)
    easy = settings._replace(growth=1.0, max_support=80)
    expansion, _, _ = LocalLearner("gaussian", easy).learn(Rows(X, Y), support)
    errors = (with_coefficients(expansion, Rows(X, Y), easy).predict(X, X) - Y) ** 2
    assert errors.max() <= 1.0 * (1 + 1e-6) and len(expansion.support) < 80


def test_all_rows_model_is_kernel_ridge():
    X, _, _, Y = problem(40)
    model = with_coefficients(
        Expansion("gaussian", np.arange(40), np.log(0.7), np.log(0.2), 0.0), Rows(X, Y)
    )
    peer = KernelRidge(kernel="rbf", gamma=0.5 / 0.49, alpha=0.2).fit(X, Y)
    T = np.random.default_rng(8).normal(size=(5, 3))
    assert_allclose(model.predict(T, X), peer.predict(T), rtol=1e-8)


def ridge_criteria(X, Y, weight, width, ridge):
    """Weighted leave-one-out error of Gaussians, and the evidence with a linear kernel, by direct solutions."""
    n = len(X)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2) / width**2)
    error = 0.0
    for i in range(n):
        others = np.delete(np.arange(n), i)
        system = K[np.ix_(others, others)] + ridge * np.diag(1 / weight[others])
        prediction = K[i, others] @ np.linalg.solve(system, Y[others])
        error += weight[i] * np.sum((Y[i] - prediction) ** 2)
    covariance = K + X @ X.T / X.shape[1] + 1 + ridge * np.diag(1 / weight)
    fit = np.sum(Y * np.linalg.solve(covariance, Y))
    logdet = np.linalg.slogdet(covariance)[1] + np.log(weight).sum()
    return error, np.log(fit / n) + logdet / n


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
    held = Rows(np.zeros((1, 1)), np.zeros((1, 1)))
    watch = Watch(validation=held, checkpoints=LIMITS.checkpoints)

    class Problem:
        def predict(self, state, X):
            return np.array([[np.sqrt(errors[LIMITS.checkpoints.index(state.iteration)])]])

    for iteration in LIMITS.checkpoints:
        state = State(iteration, 0.0, np.zeros(1), 0.0)
        if watch.after("", Problem(), state):
            break
    assert watch.kept[-1].state.iteration == last


def test_a_form_that_its_rival_leaves_no_weight_is_given_up():
    X, _, _, _ = problem(300, d=3)
    Y = np.sin(2 * np.exp(X[:, :1])) + X[:, 1:2] ** 2
    folds = [(np.arange(200), np.arange(200, 300))]
    rows, learner = Rows(X, Y), LocalLearner("gaussian", Settings(n_support=20, max_iter=80))
    supports = fold_supports(rows, folds, learner.settings)
    alone = learner.validate(rows, folds, supports)
    assert alone.curve[-1][0] > 20
    exact = dict.fromkeys(LIMITS.checkpoints, Y[200:] + 1e-6)
    beaten = learner.validate(rows, folds, supports, alone._replace(checkpoints=exact))
    assert beaten.curve == alone.curve[:4] and beaten.curve[-1][0] == 20
    useless = alone._replace(checkpoints={k: 0 * Y[200:] for k in LIMITS.checkpoints})
    assert learner.validate(rows, folds, supports, useless).curve == alone.curve


def test_shared_bandwidths_need_few_rows_and_stop_when_they_gain_little():
    X, support, _, _ = problem(5000, 20, 3)
    Y = np.sin(2 * X[:, :1]) + 0.1 * np.random.default_rng(0).normal(size=(5000, 1))
    steps = []
    learner = LocalLearner(
        "gaussian", Settings(n_support=20), lambda info: steps.append(info["value"])
    )
    wide = learner.learn_shared(Rows(X, Y), support).log_bandwidths
    assert 5 < len(steps) < 60 and steps[-6] - steps[-1] < 2.5e-3
    again = LocalLearner("gaussian", learner.settings)
    longer = again.learn_shared(Rows(X[:2000], Y[:2000]), support % 2000).log_bandwidths
    assert_allclose(wide[0], longer[0], atol=0.3)
    assert wide[0] < wide[1] - 1 and wide[0] < wide[2] - 1  # only the first feature matters


def test_further_rows_refine_and_bad_rows_are_undone():
    X, support, H, Y = problem(400, 12, 2)
    rows, held = Rows(X, Y), np.arange(300, 400)
    start = Expansion("gaussian", support, np.log(H), np.log(1e-3))
    learner = LocalLearner("gaussian", Settings(n_support=12, max_iter=20))
    noise = np.random.default_rng(0).normal(size=(100, 1))
    good, bad = (lambda: Rows(X[:200], Y[:200])), (lambda: Rows(X[200:300], noise))
    candidate = Validated(start, np.zeros((0, 1)), np.zeros(0), curve=[(40, np.inf)])
    refined = learner.refine(candidate, rows, [good, bad], held)
    assert [iteration for iteration, _ in refined.curve] == [40, 60, 80]
    assert refined.curve[1][1] < refined.curve[2][1]
    only = learner.refine(candidate, rows, [good], held)
    assert_array_equal(refined.expansion.log_bandwidths, only.expansion.log_bandwidths)
    untouched = learner.refine(candidate._replace(curve=[(40, 0.0)]), rows, [good], held)
    assert untouched.expansion is start


@pytest.mark.parametrize(
    "settings", [Settings(n_support=8, ridge=0.01), Settings("least_squares", n_support=8)]
)
def test_a_given_ridge_is_kept_where_validation_chooses_no_iterations(settings):
    X, _, _, Y = problem()
    unlearned = Validated(None, np.zeros((0, 1)), np.zeros(0), n_iter=0)
    model = LocalLearner("gaussian", settings).learn_again(unlearned, Rows(X, Y)).expansion
    assert_allclose(np.exp(model.log_ridge), 1e-5 if settings.ridge is None else settings.ridge)
    assert_array_equal(model.log_bandwidths, np.tile(model.log_bandwidths[0], (8, 1)))


def test_grid_start_is_where_centers_see_other_rows():
    X, labels = make_classification(
        800,
        50,
        n_informative=5,
        n_redundant=0,
        class_sep=0.7,
        n_clusters_per_class=4,
        random_state=0,
    )
    X, Y = (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * labels[:, None] - 1
    S = X[:50]
    regression = LocalRegression(LocalGaussian, evidence, X, S, Y - Y.mean(), fixed_columns)
    widths = np.sqrt(50) * 2.0 ** np.arange(-4, 6)
    _, log_width, _ = initial_state(regression, widths, np.logspace(-7, 0.5, 16))
    K = LocalGaussian(np.exp(log_width))(X, S)
    # where the evidence alone would start, it is 1: the row of the center
    assert np.median(K.sum(axis=0)) > 1.5
    only = initial_state(regression, widths[:1], [1e-3])
    assert_allclose(only[1], np.log(widths[0]))  # none sees any: the best there is


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


@pytest.mark.parametrize("n", [1, 2, 30])
def test_a_shifted_solver_gives_direct_solutions(n):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, max(1, n - 1)))
    A = root @ root.T  # singular from two rows on
    b = rng.normal(size=n)
    shifts = np.array([1e-4, 0.1, 7.0])
    solutions = ShiftedSolver(A.copy(), b).solve(shifts)
    for shift, solution in zip(shifts, solutions.T):
        assert_allclose(solution, np.linalg.solve(A + shift * np.eye(n), b), rtol=1e-8)
    assert ShiftedSolver(A.copy(), b).solve(np.array([0.1, -1e3])) is None


def test_shifted_systems_are_infinite_if_the_matrix_is_not_definite():
    A = np.diag([1.0, -2.0, 3.0])
    quadratic, logdet = shifted_systems(A, np.ones((3, 1)), np.array([1.0, 2.5]))
    assert np.isinf(quadratic[0]) and np.isinf(logdet[0])
    assert_allclose(quadratic[1], 1 / 3.5 + 1 / 0.5 + 1 / 5.5)
