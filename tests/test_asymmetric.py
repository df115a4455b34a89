"""Ridge regression with asymmetric kernels: both regressors, exact leave-one-out, directed similarities."""

import warnings

import numpy as np
import pytest
from conftest import frozen
from draws import few, scales, seeds
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles.lab import ask_ls, asymmetric_ridge_loo, coupled_ridge_loo
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from mercerless import AsymmetricRidge, AsymmetricRidgeClassifier, UselessModelWarning
from mercerless.asymmetric.selection import best_shares, choices_of, solutions_of
from mercerless.asymmetric.solver import asymmetric_ridge, coupled_ridge, largest_singular_value
from mercerless.kernels import LocalGaussian


def problem(n=40, d=3, seed=0, outputs=1):
    """A matrix of a local kernel, its kernel and rows, and smooth targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    kernel = LocalGaussian(np.exp(0.3 * rng.normal(size=(n, d))))
    Y = np.stack([np.sin(X @ rng.normal(size=d)) for _ in range(outputs)], axis=1)
    return frozen(kernel(X)), kernel, frozen(X), frozen(Y)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_training_residuals_are_ridge_times_coefficients(scale):
    K, _, _, Y = problem(outputs=2)
    K = K * scale
    solution = asymmetric_ridge(K, Y, 0.1 * scale)
    size = np.linalg.norm(Y)
    assert_allclose(Y - K @ solution.left, 0.1 * scale * solution.left, atol=1e-10 * size)
    assert_allclose(Y - K.T @ solution.right, 0.1 * scale * solution.right, atol=1e-10 * size)
    assert solution.residual < 1e-10


@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_exact(intercept):
    K, _, _, Y = problem(outputs=2)
    Y = Y + 3.0
    solution = asymmetric_ridge(K, Y, 0.05, fit_intercept=intercept)
    left, right = asymmetric_ridge_loo(K, Y, 0.05, intercept)
    assert_allclose(Y - solution.loo_left, left, rtol=1e-6, atol=1e-9)
    assert_allclose(Y - solution.loo_right, right, rtol=1e-6, atol=1e-9)
    mean = choices_of([solution], ["mean"], np.ones(len(Y)))[0]
    expected = np.mean(np.sum((Y - (left + right) / 2) ** 2, axis=1))
    assert_allclose(mean.error, expected, rtol=1e-6)


def test_the_weights_of_both_sides_have_the_least_leave_one_out_error():
    K, _, _, Y = problem(outputs=2)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    for alpha in (0.01, 0.1, 1.0):
        solution = asymmetric_ridge(K, Y, alpha, weight)
        shares = best_shares(solution, weight)
        assert shares.min() >= 0.0 and shares.sum() == 1.0
        grid = np.linspace(0.0, 1.0, 101)
        residuals = [w * solution.loo_left + (1.0 - w) * solution.loo_right for w in grid]
        errors = [np.average(np.sum(each**2, axis=1), weights=weight) for each in residuals]
        best = choices_of([solution], ["weighted"], weight)[0]
        assert best.error <= min(errors) * (1 + 1e-12)
        assert abs(shares[0] - grid[np.argmin(errors)]) <= 0.01


def test_leave_one_out_without_a_row_that_the_others_need_is_infinite():
    """Without row 0 the system is (0): no prediction there, and no side or ridge may be chosen for a zero error."""
    K = np.array([[1.0, 2.0], [3.0, -0.5]])
    solution = asymmetric_ridge(K, np.array([[1.0], [2.0]]), 0.5)
    assert np.isinf(solution.loo_left[0, 0]) and np.isinf(solution.loo_right[0, 0])
    assert np.isfinite(solution.loo_left[1, 0]) and np.isfinite(solution.loo_right[1, 0])
    choices = choices_of([solution], ["left", "right", "mean", "weighted"], np.ones(2))
    assert all(np.isinf(choice.error) for choice in choices)
    np.testing.assert_array_equal(best_shares(solution, np.ones(2)), [0.5, 0.5])
    solutions = [solution, asymmetric_ridge(K, np.array([[1.0], [2.0]]), 2.0)]
    choices = choices_of(solutions, ["left", "right"], np.ones(2))
    best = min(choices, key=lambda choice: choice.error)
    assert best.solution.alpha == 2.0


def test_symmetric_matrix_is_kernel_ridge():
    X = problem()[2]
    y = problem()[3][:, 0]
    ours = AsymmetricRidge(kernel="rbf", alpha=0.3, fit_intercept=False).fit(X, y)
    peer = KernelRidge(kernel="rbf", alpha=0.3).fit(X, y)
    assert ours.side_ == "left"
    T = np.random.default_rng(5).normal(size=(9, 3))
    assert_allclose(ours.predict(T), peer.predict(T), rtol=1e-8)
    for side in ("right", "mean"):
        assert_allclose(
            clone(ours).set_params(side=side).fit(X, y).predict(T), peer.predict(T), rtol=1e-8
        )


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_intercept_takes_up_a_shift_of_the_target_at_any_scale_of_the_matrix(scale):
    K, _, _, Y = problem(outputs=2)
    solution = asymmetric_ridge(scale * K, Y, 0.1 * scale, fit_intercept=True)
    shifted = asymmetric_ridge(scale * K, Y + 1e3, 0.1 * scale, fit_intercept=True)
    size = np.abs(solution.left).max()
    assert_allclose(shifted.left, solution.left, atol=1e-9 * size)
    assert_allclose(shifted.intercept_right - solution.intercept_right, 1e3, rtol=1e-10)
    assert_allclose(solution.left.sum(axis=0), 0.0, atol=1e-9 * np.abs(solution.left).sum())
    fitted = scale * K @ solution.left + solution.intercept_left
    assert_allclose(Y - fitted, 0.1 * scale * solution.left, atol=1e-9)


# ---------------------------------------------------------------- coupled: AsK-LS


@pytest.mark.parametrize("gamma", [0.1, 3.0, 100.0])
def test_coupled_classifier_is_ask_ls(gamma):
    """The machine of He et al. (2023), by its own linear system with labels in the matrix."""
    K, kernel, X, Y = problem(seed=3)
    y = np.where(Y[:, 0] > 0, 1.0, -1.0)
    b1, b2, alpha, beta = ask_ls(K, y, gamma)
    model = AsymmetricRidge(
        "precomputed", coupled=True, alpha=1 / gamma, side="mean", kind="similarity"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        model.fit(K, y)
    size = np.abs(beta).max()
    left, right = np.split(model.dual_coef_[0], 2)
    assert_allclose(2 * left, beta * y, atol=1e-8 * size)
    assert_allclose(2 * right, alpha * y, atol=1e-8 * size)
    assert_allclose(2 * model.intercept_, b1 + b2, atol=1e-8 * size)
    T = np.random.default_rng(9).normal(size=(7, 3))
    out = kernel(T, X)
    back = np.random.default_rng(1).normal(size=(7, 40))
    f1 = out @ (beta * y) + b1
    f2 = back @ (alpha * y) + b2
    assert_allclose(model.predict(out, reverse=back), (f1 + f2) / 2, atol=1e-7 * size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        classifier = AsymmetricRidgeClassifier(**model.get_params()).fit(K, y)
    assert_allclose(classifier.dual_coef_, model.dual_coef_, atol=1e-10 * size)


@pytest.mark.parametrize("intercept", [False, True])
def test_coupled_system_and_its_leave_one_out(intercept):
    K, _, _, Y = problem(25, outputs=2)
    solution = coupled_ridge(K, Y, 0.3, fit_intercept=intercept)
    assert_allclose(
        K @ solution.left + 0.3 * solution.right + solution.intercept_left, Y, atol=1e-9
    )
    assert_allclose(
        K.T @ solution.right + 0.3 * solution.left + solution.intercept_right, Y, atol=1e-9
    )
    left, right = coupled_ridge_loo(K, Y, 0.3, intercept)
    assert_allclose(Y - solution.loo_left, left, rtol=1e-6, atol=1e-8)
    assert_allclose(Y - solution.loo_right, right, rtol=1e-6, atol=1e-8)
    assert solution.residual < 1e-10


@pytest.mark.parametrize("intercept", [False, True])
def test_coupled_weights_equal_repeated_rows(intercept):
    K, _, _, Y = problem(12)
    rows = np.repeat(np.arange(12), [1, 2, 3] * 4)
    once = coupled_ridge(K, Y, 0.2, np.array([1.0, 2.0, 3.0] * 4), intercept)
    repeated = coupled_ridge(K[np.ix_(rows, rows)], Y[rows], 0.2, None, intercept)
    for side in ("left", "right"):
        summed = np.stack([getattr(repeated, side)[rows == i].sum(axis=0) for i in range(12)])
        assert_allclose(getattr(once, side), summed, rtol=1e-7, atol=1e-9)


def test_coupled_regressors_of_a_symmetric_matrix_are_kernel_ridge():
    X, y = problem()[2], problem()[3]
    K = np.exp(-0.5 * cdist(X, X, "sqeuclidean"))
    coupled = coupled_ridge(K, y, 0.3)
    apart = asymmetric_ridge(K, y, 0.3)
    assert_allclose(coupled.left, apart.left, rtol=1e-7)
    assert_allclose(coupled.right, apart.left, rtol=1e-7)
    assert_allclose(coupled.loo_left, apart.loo_left, rtol=1e-6)


def test_coupled_system_is_singular_at_a_singular_value():
    K = np.array([[1.0, 2.0], [3.0, -2.0]])
    alpha = np.linalg.svd(K)[1][1]
    with pytest.raises(np.linalg.LinAlgError, match="coupled system is singular"):
        coupled_ridge(K, np.ones((2, 1)), alpha)
    # a grid passes over it
    solutions = solutions_of(lambda each: coupled_ridge(K, np.ones((2, 1)), each), [alpha, 1.0])
    assert [solution.alpha for solution in solutions] == [1.0]


def test_reasons_of_a_coupled_model_add_up():
    K, _, _, Y = problem(30)
    model = AsymmetricRidge("precomputed", coupled=True, kind="similarity", side="mean", alpha=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        model.fit(K, Y[:, 0])
    back = K[:, :5].T
    reasons = model.explain(K[:5], reverse=back)
    assert_allclose(reasons.score, model.predict(K[:5], reverse=back), rtol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_weights_equal_repeated_rows(intercept):
    K, _, _, Y = problem(12)
    rows = np.repeat(np.arange(12), [1, 2, 3] * 4)
    weight = np.array([1.0, 2.0, 3.0] * 4)
    once = asymmetric_ridge(K, Y, 0.2, weight, intercept)
    repeated = asymmetric_ridge(K[np.ix_(rows, rows)], Y[rows], 0.2, None, intercept)
    summed = np.stack([repeated.left[rows == i].sum(axis=0) for i in range(12)])
    assert_allclose(once.left, summed, rtol=1e-8)


def test_singular_system_is_an_error():
    # eigenvalues -3.37.., 2.37..: not for alpha = 0.5, but for this one
    K = np.array([[1.0, 2.0], [3.0, -2.0]])
    alpha = -np.linalg.eigvals(K).min().real
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        asymmetric_ridge(K, np.ones((2, 1)), alpha)
    with pytest.raises(ValueError, match="use another alpha"):
        AsymmetricRidge(kernel="precomputed", alpha=alpha, fit_intercept=False).fit(K, [1.0, 2.0])
    with pytest.raises(ValueError, match="singular"):
        AsymmetricRidge(kernel="precomputed", alpha=0.0).fit(np.zeros((3, 3)), [1.0, 2.0, 3.0])
    # a grid passes over the singular ridge
    solutions = solutions_of(lambda each: asymmetric_ridge(K, np.ones((2, 1)), each), [alpha, 1.0])
    assert [solution.alpha for solution in solutions] == [1.0]


def test_side_is_chosen_by_leave_one_out_and_finds_the_informative_direction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0])
    good = np.exp(-((X[:, None, 0] - X[None, :, 0]) ** 2))
    # rows carry noise: predicting along them is worse
    K = good * np.exp(0.8 * rng.normal(size=60))[:, None]
    train, test = np.arange(40), np.arange(40, 60)
    model = AsymmetricRidge(kernel="precomputed").fit(K[np.ix_(train, train)], y[train])
    errors = {side: np.nanmin(values) for side, values in model.loo_errors_.items()}
    assert set(errors) == {"left", "right", "weighted"}
    assert errors[model.side_] == min(errors.values())
    assert model.side_ in ("right", "weighted") and model.side_weights_[1] > 0.9
    X_new, reverse = K[np.ix_(test, train)], K[np.ix_(train, test)].T
    assert model.score is not None and np.mean(
        (model.predict(X_new, reverse) - y[test]) ** 2
    ) < 0.05 * np.var(y[test])
    with pytest.raises(ValueError, match=r"pass them as reverse.*or fit with side='left'"):
        model.predict(X_new)
    with pytest.raises(ValueError, match="one row per new item"):
        model.predict(X_new, reverse.T)


def test_kernel_and_precomputed_agree_on_every_side():
    def directed(a, b):
        return float(np.exp(-np.sum((a - b) ** 2) / (1 + a[0] ** 2)))

    X, y = problem(25)[2], problem(25)[3][:, 0]
    T = np.random.default_rng(3).normal(size=(6, 3))
    K = np.array([[directed(a, b) for b in X] for a in X])
    forward = np.array([[directed(t, x) for x in X] for t in T])
    backward = np.array([[directed(x, t) for x in X] for t in T])
    for side in ("left", "right", "mean"):
        by_function = AsymmetricRidge(kernel=directed, alpha=0.5, side=side).fit(X, y)
        by_matrix = AsymmetricRidge(kernel="precomputed", alpha=0.5, side=side).fit(K, y)
        assert_allclose(by_function.predict(T), by_matrix.predict(forward, backward), rtol=1e-10)
    with pytest.raises(ValueError, match="reverse is for a precomputed"):
        by_function.predict(T, backward)


@pytest.mark.parametrize("options", [{}, {"coupled": True}])
def test_a_factor_of_all_weights_changes_nothing_but_the_ridge(options):
    _, _, X, Y = problem()
    plain = AsymmetricRidge("rbf", **options).fit(X, Y)
    heavy = AsymmetricRidge("rbf", **options).fit(X, Y, np.full(40, 1e4))
    assert_allclose(heavy.alpha_, 1e4 * plain.alpha_, rtol=1e-10)
    assert_allclose(heavy.predict(X), plain.predict(X), rtol=1e-6, atol=1e-8)
    assert_allclose(
        heavy.out_of_fold_.prediction, plain.out_of_fold_.prediction, rtol=1e-6, atol=1e-8
    )


def test_classifier_for_directed_similarities():
    rng = np.random.default_rng(1)
    labels = np.repeat(["a", "b", "c"], 25)
    Z = rng.normal(size=(75, 2)) + np.repeat([[0, 0], [4, 0], [0, 4]], 25, axis=0)
    K = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(2)) * (1 + 0.5 * rng.uniform(size=75))
    train = rng.permutation(75)[:50]
    test = np.setdiff1d(np.arange(75), train)
    model = AsymmetricRidgeClassifier(kernel="precomputed", side="left").fit(
        K[np.ix_(train, train)], labels[train]
    )
    new = K[np.ix_(test, train)]
    assert np.mean(model.predict(new) == labels[test]) > 0.9
    P = model.predict_proba(new)
    assert_allclose(P.sum(axis=1), 1)
    assert_array_equal(
        model.classes_[P.argmax(axis=1)] == labels[test], model.predict(new) == labels[test]
    )
    two = AsymmetricRidgeClassifier(kernel="precomputed", side="left").fit(
        K[np.ix_(train, train)], labels[train] == "a", None
    )
    assert two.decision_function(new).shape == (len(test),)


def directed_distances(seed=0, classes=3):
    """Directed Hausdorff-like distances between small sets of points, and their classes."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), 25)
    centers = 2.0 * np.stack([np.cos(np.arange(classes)), np.sin(np.arange(classes))], axis=1)
    sets = [centers[c] + rng.normal(size=(rng.integers(3, 9), 2)) for c in labels]
    D = np.array([[cdist(a, b).min(axis=1).mean() for b in sets] for a in sets])
    return D, labels


def test_directed_distances_are_converted():
    D, labels = directed_distances()
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    found = AsymmetricRidgeClassifier(kernel="precomputed", side="left")
    as_similarities = clone(found).set_params(kind="similarity")
    accuracy = cross_val_score(found, D, labels, cv=cv).mean()
    assert accuracy > 0.75
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it looks like distances, and is useless
        assert cross_val_score(as_similarities, D, labels, cv=cv).mean() < accuracy - 0.02
    model = found.fit(D, labels)
    assert model.kind_ == "distance"
    told = clone(found).set_params(kind="similarity").fit(np.exp(-D / model.decay_[1]), labels)
    assert_allclose(
        told.predict_proba(np.exp(-D / model.decay_[1])), model.predict_proba(D), rtol=1e-8
    )
    soft = AsymmetricRidgeClassifier(kernel="precomputed", side="left", kind="dissimilarity").fit(
        D - 3.0, labels
    )
    assert np.mean(soft.predict(D - 3.0) == labels) > 0.9
    with pytest.raises(ValueError, match="must not be negative"):
        AsymmetricRidgeClassifier(kernel="precomputed", kind="distance").fit(D - 3.0, labels)


def test_the_left_side_of_directed_matrices_can_be_cross_validated():
    D, labels = directed_distances()
    model = AsymmetricRidge(kernel="precomputed", side="left")
    search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3).fit(D, labels.astype(float))
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_a_useless_model_says_so():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(80, 80))
    labels = rng.integers(0, 2, 80).astype(float)
    with pytest.warns(UselessModelWarning, match="worse than a constant"):
        AsymmetricRidge(kernel="precomputed", kind="similarity", alpha=0.01).fit(K, labels)
    y = rng.normal(size=80)  # nothing to learn is no reason to warn
    AsymmetricRidge(kernel="precomputed", kind="similarity").fit(rng.normal(size=(80, 80)), y)


def test_largest_singular_value():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(30, 30)) + 3.0 * np.outer(rng.normal(size=30), rng.normal(size=30))
    J = np.eye(30) - 1 / 30
    assert_allclose(largest_singular_value(K), np.linalg.norm(J @ K @ J, 2), rtol=1e-3)
    assert_allclose(largest_singular_value(K, center=False), np.linalg.norm(K, 2), rtol=1e-3)
    assert largest_singular_value(np.ones((4, 4))) == 0.0


@pytest.mark.parametrize("parameters, message", [
    ({"kind": "closeness"}, "kind='closeness' is not known; use 'auto'"),
    ({"side": "up"}, "side='up' is not known"),
    ({"alpha": -1.0}, "alpha=-1.0 must be a nonnegative"),
    ({"alpha": "big"}, "alpha='big' must be"),
])  # fmt: skip
def test_bad_parameters(parameters, message):
    X, Y = problem(10)[2:]
    with pytest.raises(ValueError, match=message):
        AsymmetricRidge(**parameters).fit(X, Y[:, 0])


def test_bad_matrix():
    with pytest.raises(ValueError, match="square"):
        AsymmetricRidge(kernel="precomputed").fit(np.ones((3, 2)), np.ones(3))


def test_only_the_left_regressor_knows_bandwidths_of_training_items():
    K, kernel, X, Y = problem()
    new = np.random.default_rng(1).normal(size=X.shape)  # as many rows as there are bandwidths
    expected = kernel(new, X) @ np.linalg.solve(K + 0.1 * np.eye(40), Y[:, 0])
    for options in ({}, {"coupled": True}):
        model = AsymmetricRidge(kernel, alpha=0.1, fit_intercept=False, **options).fit(X, Y[:, 0])
        assert model.side_ == "left"
        assert_allclose(model.predict(new[:7]), model.predict(new)[:7], rtol=1e-10)
        if not options:
            assert_allclose(model.predict(new), expected, rtol=1e-9)
    for kernel_ in (kernel, 2.0 * kernel):
        for side in ("right", "mean"):
            with pytest.raises(ValueError, match="new ones, which have no bandwidths"):
                AsymmetricRidge(kernel_, side=side).fit(X, Y[:, 0])
    # bandwidths that all items share say nothing about an item
    assert (
        AsymmetricRidge(LocalGaussian([1.0, 2.0, 0.5]), side="right").fit(X, Y[:, 0]).side_
        == "right"
    )


@pytest.mark.parametrize("coupled", [False, True])
def test_kernels_that_vanish_without_their_means_give_the_mean(coupled):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=70), rng.normal(size=70)
    K = 1e6 * np.subtract.outer(x, x)
    model = AsymmetricRidge("precomputed", kind="similarity", coupled=coupled, side="left")
    assert_allclose(model.fit(K, y).predict(K), y.mean(), atol=1e-5)


# arbitrary spectra and scales


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
