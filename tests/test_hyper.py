"""Hyper-kernels, learned kernels and their estimators against definitions and brute force."""

import pickle
import tracemalloc

import numpy as np
import pytest
from draws import definite_of, eigenvalues, few, scales, seeds
from hypothesis import given
from hypothesis import strategies as st
from oracles.hyper import (
    all_pairs,
    full_ridge,
    gaussian_hyper,
    landmark_ridge,
    matrix,
    tensor_hyper,
    universal_kriging,
    wishart_hyper,
)
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.svm import SVC, SVR

from mercerless import HyperRidge, HyperSVR, config_context
from mercerless.hyper.learning import make_design
from mercerless.hyper.selection import LeftOutItems, constant_squares
from mercerless.hyper.solver import (
    WhitenedPath,
    normal_equations,
    ridge_cg,
    ridge_exact,
    svr_admm,
    whiten,
)
from mercerless.hyper.targets import PairTarget
from mercerless.hyper.tensor import TensorProblem, item_basis, landmark_basis, tensor_ridge_missing
from mercerless.kernels import Gaussian, GaussianHyper, TensorHyper, WishartHyper
from mercerless.kernels.hyper import pair_index, random_pairs, take_pairs
from mercerless.kernels.learned import HyperExpansion

EVERYTHING = slice(None)


def items(n=9, d=3, seed=0, scale=1.0):
    X = scale * np.random.default_rng(seed).normal(size=(n, d))
    X.flags.writeable = False
    return X


def similarity(X, seed=1, noise=0.0):
    S = np.exp(-np.abs(X[:, None] - X[None]).sum(axis=2)) - 0.3
    E = np.random.default_rng(seed).normal(size=S.shape)
    return S + noise * (E + E.T)


def choose_centers(hyper, X, n_centers):
    return hyper.centers_of(random_pairs(X, n_centers, 0))


def labels_target(y):
    return PairTarget("classes", np.asarray(y), len(np.unique(y)))


HYPERS = [
    (
        GaussianHyper(1.3, 0.7),
        lambda a, b, c, d: gaussian_hyper(a, b, c, d, 1.3**2, (0.7 * 1.3) ** 2),
    ),
    (WishartHyper(1.2, 4), lambda a, b, c, d: wishart_hyper(a, b, c, d, 1.44 * np.eye(3), 4)),
    (
        WishartHyper([1.0, 2.0, 0.5], -2),
        lambda a, b, c, d: wishart_hyper(a, b, c, d, np.diag([1, 4, 0.25]), -2),
    ),
    (
        WishartHyper(np.diag([1.0, 2, 3]) + 0.5, 1.5),
        lambda a, b, c, d: wishart_hyper(a, b, c, d, np.diag([1.0, 2, 3]) + 0.5, 1.5),
    ),
]
IDS = ["gaussian", "wishart", "wishart-ard", "wishart-full"]


@pytest.mark.parametrize("hyper, naive", HYPERS, ids=IDS)
def test_hyper_kernel_is_its_definition(hyper, naive):
    X = items()
    P, Q = random_pairs(X, 12, 0), random_pairs(X, 9, 1)
    np.testing.assert_allclose(hyper(P, Q), matrix(naive, P, Q), rtol=1e-12)
    np.testing.assert_allclose(
        hyper(P[:, ::-1], Q), hyper(P, Q), rtol=1e-13, err_msg="order within a pair matters"
    )


@pytest.mark.parametrize("hyper", [h for h, _ in HYPERS], ids=IDS)
def test_hyper_kernel_is_positive_semidefinite(hyper):
    values = np.linalg.eigvalsh(hyper(random_pairs(items(40), 300, 0)))
    assert values[0] >= -1e-10 * values[-1]


def test_wishart_raises_if_not_positive():
    # at exponent 0.5 and two features there are pairs with a negative eigenvalue
    X = items(30, 2)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        WishartHyper(0.2, -2.5)(random_pairs(X, 10, 0))
    P = random_pairs(X, 80, 0)
    K = matrix(lambda a, b, c, d: wishart_hyper(a, b, c, d, 0.04 * np.eye(2), -2.5), P, P)
    assert np.linalg.eigvalsh(K)[0] < -1e-8


def test_wishart_limit_is_gaussian():
    X, b = items(8, 2), 1e5
    P = random_pairs(X, 20, 0)
    apart, middle = ((P[:, 0] - P[:, 1]) ** 2).sum(axis=1), P.mean(axis=1)
    between = ((middle[:, None] - middle) ** 2).sum(axis=2)
    expected = np.exp(-apart[:, None] / 2 - apart / 2 - between)
    np.testing.assert_allclose(WishartHyper(np.sqrt((b + 3) / 2), b)(P), expected, atol=1e-4)


@pytest.mark.parametrize("hyper", [h for h, _ in HYPERS], ids=IDS)
def test_expansion_is_the_sum_of_sections(hyper):
    X, Z = items(), items(5, seed=3)
    P = random_pairs(X, 25, 0)
    beta = np.random.default_rng(5).normal(size=25)
    kernel = HyperExpansion(hyper, hyper.centers_of(P), beta * hyper.center_scale(P), 0.3)
    pairs = take_pairs(np.vstack([Z, X]), np.repeat(np.arange(5), 9), np.tile(np.arange(5, 14), 5))
    expected = (hyper(pairs, P) @ beta).reshape(5, 9) + 0.3
    np.testing.assert_allclose(kernel(Z, X), expected, rtol=1e-10)
    np.testing.assert_allclose(kernel(Z), kernel(Z, Z.copy()), rtol=1e-10)
    np.testing.assert_allclose(kernel.diag(Z), np.diagonal(kernel(Z, Z.copy())), rtol=1e-10)
    assert kernel(Z.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("d", [784, 10_000])
@pytest.mark.parametrize(
    "make", [lambda d: GaussianHyper(np.sqrt(d)), lambda d: WishartHyper(2 * np.sqrt(d), 4)]
)
def test_finite_in_many_dimensions(d, make):
    X = items(6, d)
    hyper = make(d)
    K = hyper(random_pairs(X, 15, 0))
    assert np.all(np.isfinite(K)) and np.diagonal(K).min() > 1e-6 and K.max() <= 1 + 1e-12
    kernel = HyperExpansion(hyper, hyper.centers_of(random_pairs(X, 15, 0)), np.ones(15))
    assert np.all(kernel(X) > 0)


def test_separable_form_far_from_the_origin():
    X = items()
    P = random_pairs(X, 20, 0)
    hyper = GaussianHyper(1.0, 1.0)
    near = HyperExpansion(hyper, hyper.centers_of(P), np.ones(20))(X)
    far = HyperExpansion(hyper, hyper.centers_of(P + 1e6), np.ones(20))(X + 1e6)
    np.testing.assert_allclose(far, near, rtol=1e-8)


@pytest.mark.parametrize("hyper, naive", HYPERS[:2], ids=IDS[:2])
def test_reduced_ridge_equals_all_ordered_pairs(hyper, naive):
    X, alpha = items(7), 1e-4
    Y = similarity(X)
    pairs = all_pairs(X)
    beta = full_ridge(matrix(naive, pairs, pairs), Y, alpha)
    Z = items(4, seed=2)
    expected = (matrix(naive, [(a, b) for a in Z for b in X], pairs) @ beta).reshape(4, 7)
    model = HyperRidge(hyper, alpha=alpha, landmarks=None).fit(X, Y)
    np.testing.assert_allclose(
        model.transform(Z), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
    )
    assert model.certificate_ < 1e-12


def test_reduced_ridge_with_intercept_is_stationary():
    X = items(8)
    Y = similarity(X) + 5.0
    index = pair_index(8)
    K = GaussianHyper()(take_pairs(X, index.first, index.second))
    y = Y[index.first, index.second]

    def objective(c, b):
        return index.weight @ (K @ c + b - y) ** 2 / 64 + 1e-3 * c @ K @ c

    s = ridge_exact(K, y, index.weight, 1e-3, fit_intercept=True)
    best = objective(s.coef, s.intercept)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(200):
            assert (
                objective(s.coef + size * rng.normal(size=36), s.intercept + size * rng.normal())
                >= best
            )
    np.testing.assert_allclose(index.weight @ (K @ s.coef + s.intercept - y), 0, atol=1e-8)


@pytest.mark.parametrize("hyper, naive", HYPERS[:2], ids=IDS[:2])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
def test_landmark_ridge_is_equation_nine(hyper, naive, scale):
    X = items(12)
    Y = scale * similarity(X)
    centers = choose_centers(hyper, X, 8)
    design, target = make_design(hyper, X, centers), PairTarget("similarity", Y)
    kernel = [HyperExpansion(hyper, centers[p : p + 1], np.ones(1)) for p in range(8)]
    B = np.stack([k(X, X.copy()).ravel() for k in kernel], axis=1)
    gram = hyper.gram(centers)
    equations = normal_equations(design, target)
    np.testing.assert_allclose(equations.gram, B.T @ B, rtol=1e-10)
    expected = [landmark_ridge(B, gram, Y, alpha) for alpha in (1e-6, 1e-3, 1.0)]
    whitening = whiten(gram)
    equations = normal_equations(design, target, whitening=whitening)
    path = WhitenedPath(equations, len(whitening))
    solutions = [path.solution(whitening, alpha) for alpha in (1e-6, 1e-3, 1.0)]
    for solution, coef in zip(solutions, expected):
        np.testing.assert_allclose(B @ solution.coef, B @ coef, rtol=1e-7, atol=1e-8 * scale)
        assert solution.certificate < 1e-9
    cg = ridge_cg(design, target, gram, 1e-3, tol=1e-10, random_state=np.random.RandomState(0))
    np.testing.assert_allclose(B @ cg.coef, B @ expected[1], rtol=1e-6, atol=1e-7 * scale)


def test_normal_equations_are_the_sum_of_their_blocks():
    """A block beside the diagonal stands for its mirror image too."""
    X, hyper = items(12), GaussianHyper()
    centers = choose_centers(hyper, X, 8)
    design, target = make_design(hyper, X, centers), PairTarget("similarity", similarity(X))
    whole = normal_equations(design, target)
    first, second = slice(0, 5), slice(5, 12)
    parts = [
        normal_equations(design, target, rows=a, columns=b)
        for a, b in ((first,) * 2, (second,) * 2, (first, second))
    ]
    assert [part.n_pairs for part in parts] == [25, 49, 70]
    np.testing.assert_allclose(sum(part.gram for part in parts), whole.gram, rtol=1e-10)
    np.testing.assert_allclose(sum(part.rhs for part in parts), whole.rhs, rtol=1e-10)


def test_landmark_ridge_with_intercept_and_missing_entries():
    X = items(15)
    Y = similarity(X) + 2.0
    Y[np.triu_indices(15, 9)] = np.nan
    Y = np.where(np.isnan(Y.T), np.nan, Y)
    hyper = GaussianHyper()
    centers = choose_centers(hyper, X, 10)
    design, target, gram = (
        make_design(hyper, X, centers),
        PairTarget("similarity", Y),
        hyper.gram(centers),
    )
    used = ~np.isnan(Y.ravel())
    B = np.column_stack([design.matrix(slice(0, 15), slice(0, 15)), np.ones(225)])[used]
    penalty = np.zeros((11, 11))
    penalty[:10, :10] = gram
    expected = np.linalg.solve(B.T @ B + 1e-3 * used.sum() * penalty, B.T @ Y.ravel()[used])
    equations = normal_equations(design, target, True, whitening=whiten(gram))
    direct = WhitenedPath(equations, len(gram)).solution(whiten(gram), 1e-3)
    cg = ridge_cg(
        design,
        target,
        gram,
        1e-3,
        fit_intercept=True,
        tol=1e-10,
        random_state=np.random.RandomState(0),
    )
    for s in (direct, cg):
        np.testing.assert_allclose(
            B @ np.append(s.coef, s.intercept), B @ expected, rtol=1e-6, atol=1e-7
        )


def test_cg_agrees_with_direct_on_real_labels():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X, y = X[:150], y[:150]
    hyper = GaussianHyper(8.0)
    centers = choose_centers(hyper, X, 120)
    gram, design, target = hyper.gram(centers), make_design(hyper, X, centers), labels_target(y)
    whitening = whiten(gram)
    equations = normal_equations(design, target, whitening=whitening)
    solutions = [
        WhitenedPath(equations, 120).solution(whitening, 1e-5),
        ridge_cg(design, target, gram, 1e-5, tol=1e-4, random_state=np.random.RandomState(0)),
    ]
    direct, cg = (HyperExpansion(hyper, centers, s.coef)(X) for s in solutions)
    assert np.linalg.norm(cg - direct) <= 1e-3 * np.linalg.norm(direct)
    assert solutions[1].n_iter <= 40


def test_all_pairs_as_landmarks_equal_exact():
    X, Y = items(8), similarity(items(8))
    exact = HyperRidge(GaussianHyper(), alpha=1e-3, landmarks=None).fit(X, Y)
    landmarks = HyperRidge(GaussianHyper(), alpha=1e-3, landmarks=36).fit(X, Y)
    np.testing.assert_allclose(landmarks.kernel_(X), exact.kernel_(X), rtol=1e-5, atol=1e-6)


def test_weighted_libsvm_equals_all_ordered_pairs():
    X = items(8)
    Y = similarity(X, noise=0.1)
    pairs = np.array(all_pairs(X))
    hyper = GaussianHyper(1.5)
    full = SVR(kernel="precomputed", C=0.5, epsilon=0.05, tol=1e-9).fit(hyper(pairs), Y.ravel())
    expected = full.predict(hyper(pairs)).reshape(8, 8)
    index = pair_index(8)
    reduced = pairs.reshape(8, 8, 2, -1)[index.first, index.second]
    s = SVR(kernel="precomputed", C=0.5, epsilon=0.05, tol=1e-9)
    s.fit(hyper(reduced), Y[index.first, index.second], index.weight)
    got = s.predict(hyper(pairs, reduced)).reshape(8, 8)
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0])
def test_admm_reaches_libsvms_objective(C):
    X, y = load_iris(return_X_y=True)
    X, y = X[::10], y[::10]
    hyper, target = GaussianHyper(2.0), labels_target(y)
    index = pair_index(len(X))
    pairs = take_pairs(X, index.first, index.second)
    T = target(EVERYTHING, EVERYTHING)
    exact = SVR(kernel="precomputed", C=C, epsilon=0.1, tol=1e-7)
    exact.fit(hyper(pairs), T[index.first, index.second], index.weight)
    coef = np.zeros(len(pairs))
    coef[exact.support_] = exact.dual_coef_[0]
    centers = hyper.centers_of(pairs)
    gram, design = hyper.gram(centers), make_design(hyper, X, centers)
    admm = svr_admm(design, target, gram, C, 0.1, tol=3e-4, max_iter=3000)

    def objective(coef, b):
        fit = HyperExpansion(hyper, centers, coef, b)(X)
        return coef @ gram @ coef / 2 + C * np.maximum(np.abs(fit - T) - 0.1, 0).sum()

    best = objective(coef * hyper.center_scale(pairs), exact.intercept_[0])
    assert (objective(admm.coef, admm.intercept) - best) / best <= 1e-4
    assert admm.certificate <= 3e-4


def test_without_an_intercept_the_machine_is_libsvms_on_both_signs():
    """Every pair twice, once with the opposite sign: then 0 is an optimal intercept by symmetry."""
    X = items(7)
    Y = similarity(X, noise=0.1)
    size, hyper, pairs = np.sqrt(np.mean(Y**2)), GaussianHyper(1.5), np.array(all_pairs(X))
    K = hyper(pairs)
    signed = np.block([[K, -K], [-K, K]])
    y = np.append(Y.ravel(), -Y.ravel())
    both = SVR(kernel="precomputed", C=0.25, epsilon=0.05, tol=1e-9).fit(signed, y)
    expected = both.predict(signed)[:49].reshape(7, 7)
    model = HyperSVR(
        hyper,
        C=0.5 / size,
        epsilon=0.05 / size,
        landmarks=None,
        fit_intercept=False,
        tol=1e-7,
        max_iter=20_000,
    )
    np.testing.assert_allclose(model.fit(X, Y).kernel_(X), expected, atol=1e-3)


def count_blocks(design):
    """The design, and the list of blocks of sections that were evaluated, without samples of items."""
    evaluated = []

    def blocks(rows, columns):
        if isinstance(rows, slice):
            evaluated.append((rows, columns))
        return design.blocks(rows, columns)

    return design._replace(blocks=blocks), evaluated


@pytest.mark.parametrize("solve", ["admm", "cg"])
def test_sections_that_fit_into_memory_are_evaluated_once(solve):
    X, y = load_iris(return_X_y=True)
    X, target = X[::4], labels_target(y[::4])
    hyper = WishartHyper(3.0)
    # enough centers that the pairs are divided into blocks
    centers = hyper.centers_of(random_pairs(X, 60, 0))
    gram = hyper.gram(centers)

    def solution(design):
        if solve == "admm":
            return svr_admm(design, target, gram, 0.5, 0.1, tol=1e-3)
        random = np.random.RandomState(0)
        return ridge_cg(design, target, gram, 1e-4, tol=1e-6, random_state=random)

    design, evaluated = count_blocks(make_design(hyper, X, centers))
    kept = solution(design)
    n_kept = len(evaluated)
    with config_context(memory_limit="300kB"):
        anew = solution(design)
    np.testing.assert_array_equal(kept.coef, anew.coef)
    assert kept.n_iter == anew.n_iter > 3
    assert len(evaluated) - n_kept > kept.n_iter / 2 * n_kept


def test_wishart_sections_of_many_items_are_those_of_their_pairs():
    X = items(70)
    hyper = WishartHyper(1.2, 4)
    P = random_pairs(X, 60, 0)
    blocks = hyper.blocks(X[:30], X[30:], P)
    first, second = (index.ravel() for index in np.indices((30, 40)))
    expected = hyper(take_pairs(X, first, 30 + second), P)
    np.testing.assert_allclose(blocks.reshape(1200, 60), expected, rtol=1e-12)


def test_random_pairs_beat_the_grid_of_items(data_folder):
    """At equal count, centers from random pairs approximate better than all pairs of a few items."""
    data = np.load(data_folder / "heart.npz")
    X = data["X"]
    X = ((X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)))[:108]
    hyper = GaussianHyper(np.sqrt(X.var(axis=0).sum()))
    index = pair_index(60)
    K = hyper(take_pairs(X[:60], index.first, index.second))
    for n_items in (8, 10, 12):
        errors = np.zeros(2)
        for seed in range(10):
            rng = np.random.RandomState(seed)
            chosen = rng.permutation(60)[:n_items]
            grid = np.flatnonzero(np.isin(index.first, chosen) & np.isin(index.second, chosen))
            random = rng.choice(len(K), len(grid), replace=False, p=index.weight / 3600)
            for k, columns in enumerate((random, grid)):
                inner = np.linalg.pinv(K[np.ix_(columns, columns)], rcond=1e-10, hermitian=True)
                errors[k] += np.linalg.norm(K - K[:, columns] @ inner @ K[columns])
        assert errors[0] <= errors[1]


def test_a_known_kernel_is_recovered():
    """A Gaussian of one width for all features, from its matrix on 60 rows: the common scale is a candidate."""
    X, _ = load_wine(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    known = Gaussian(np.sqrt(X.var(axis=0).sum()))
    train, new = X[::3], X[1::3]
    model = HyperRidge("gaussian", fit_intercept=True, landmarks=300).fit(train, known(train))
    assert np.sqrt(np.mean((model.kernel_(new) - known(new)) ** 2)) < 0.005


# ---- the tensor hyper-kernel ----


def test_a_sum_over_features_is_extended():
    """Differences of single features are a trend: without it the error is three times as large."""
    X, _ = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    S = -np.log1p(np.abs(X[:, None] - X).sum(axis=2))
    known, new = slice(0, None, 2), slice(1, None, 2)
    model = HyperRidge().fit(X[known], S[known, known])
    misses = model.transform(X[new]) - S[new, known]
    assert np.linalg.norm(misses) < 0.012 * np.linalg.norm(S[new, known])


def brute_force(hyper, X, Z, S, noise, alpha):
    """Values between Z and X and within Z, and the fit on X, from n^2 x n^2 matrices."""
    n, m = len(X), len(Z)
    Gp = hyper.items(X) + noise * np.eye(n)
    g = hyper.items(Z, X)
    knots = hyper.knots(X)

    def stack(F, size):
        return np.stack([f.ravel() for f in F], axis=1) if hyper.trend else np.zeros((size, 0))

    F = stack(list(hyper.trends(X, X, knots, np.eye(n, dtype=bool))), n * n)
    c, beta = universal_kriging(tensor_hyper(Gp, Gp, Gp, Gp), F, S.ravel(), alpha)
    F_zx = stack(list(hyper.trends(Z, X, knots, np.zeros((m, n), dtype=bool))), m * n)
    F_zz = stack(list(hyper.trends(Z, Z, knots, np.eye(m, dtype=bool))), m * m)
    zx = (tensor_hyper(g, Gp, g, Gp) @ c + F_zx @ beta).reshape(m, n)
    zz = (tensor_hyper(g, g, g, g) @ c + F_zz @ beta).reshape(m, m)
    xx = (tensor_hyper(Gp, Gp, Gp, Gp) @ c + F @ beta).reshape(n, n)
    return zx, zz, xx


@pytest.mark.parametrize("trend, rtol", [(None, 1e-9), ("distance", 1e-7), ("features", 1e-6)])
@pytest.mark.parametrize("noise, alpha", [(0.1, 0.0), (0.05, 0.3), (0.01, 0.02)])
def test_tensor_closed_form_is_brute_force(trend, rtol, noise, alpha):
    X, Z = items(24), items(6, seed=7)
    S = similarity(X, noise=0.1)
    hyper = TensorHyper(1.5, noise, trend, n_knots=4)
    model = HyperRidge(hyper, alpha=alpha).fit(X, S)
    zx, zz, xx = brute_force(hyper, X, Z, S, noise, alpha)
    for got, expected in (
        (model.transform(Z), zx),
        (model.kernel_(Z), zz),
        (model.transform(X), xx),
    ):
        np.testing.assert_allclose(got, expected, atol=rtol * np.abs(expected).max())
    np.testing.assert_allclose(
        model.kernel_.diag(Z), np.diagonal(model.kernel_(Z, Z.copy())), rtol=1e-10
    )
    np.testing.assert_allclose(
        model.kernel_.diag(X), np.diagonal(model.kernel_(X, X.copy())), rtol=1e-10
    )


def test_tensor_without_penalty_and_trend_is_bilinear_ridge():
    X, Z, S = items(25), items(6, seed=7), similarity(items(25), noise=0.2)
    hyper = TensorHyper(1.2, 0.05, None)
    model = HyperRidge(hyper, alpha=0.0).fit(X, S)
    W = np.linalg.solve(hyper.items(X) + 0.05 * np.eye(25), hyper.items(X, Z)).T
    np.testing.assert_allclose(model.transform(Z), W @ S, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.kernel_(Z), W @ S @ W.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.transform(X), S, rtol=1e-8, atol=1e-10)
    mixed = model.kernel_(np.vstack([Z, X[3:4]]), np.vstack([X[:2], Z[:2]]))
    np.testing.assert_allclose(
        mixed[-1], np.concatenate([S[3, :2], (W @ S)[:2, 3]]), rtol=1e-8, atol=1e-10
    )


def test_leave_out_errors_equal_refits():
    X = items(40)
    S = similarity(X, noise=0.1)
    hyper = TensorHyper(1.5, 0.05, None)
    folds = [np.arange(k, 40, 5) for k in range(5)]
    got = TensorProblem(S, item_basis(hyper.items(X)), []).leave_out_errors(0.05, folds)
    got = got.sum(axis=0)
    expected = np.zeros(2)
    for fold in folds:
        rest = np.setdiff1d(np.arange(40), fold)
        model = HyperRidge(hyper, alpha=0.0).fit(X[rest], S[np.ix_(rest, rest)])
        expected[0] += np.sum((model.transform(X[fold]) - S[np.ix_(fold, rest)]) ** 2)
        expected[1] += np.sum((model.kernel_(X[fold]) - S[np.ix_(fold, fold)]) ** 2)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_leave_out_errors_with_trend_are_near_refits():
    X = items(120, 2)
    S = similarity(X, noise=0.05)
    hyper = TensorHyper(1.0, 0.1, "distance")
    folds = [np.arange(k, 120, 5) for k in range(5)]
    trends = list(hyper.trends(X, X, hyper.knots(X), np.eye(120, dtype=bool)))
    got = TensorProblem(S, item_basis(hyper.items(X)), trends).leave_out_errors(0.1, folds)
    got = got.sum(axis=0)
    expected = np.zeros(2)
    for fold in folds:
        rest = np.setdiff1d(np.arange(120), fold)
        model = HyperRidge(hyper, alpha=0.0).fit(X[rest], S[np.ix_(rest, rest)])
        expected[0] += np.sum((model.transform(X[fold]) - S[np.ix_(fold, rest)]) ** 2)
        expected[1] += np.sum((model.kernel_(X[fold]) - S[np.ix_(fold, fold)]) ** 2)
    np.testing.assert_allclose(got, expected, rtol=0.15)


@pytest.mark.parametrize("trend", [None, "distance"])
def test_landmark_basis_equals_the_full_form_of_the_same_kernel(trend):
    """Low rank plus noise is an exact solution for the Nystroem item kernel, complement included."""
    X, L = items(30), items(30)[:8]
    S = similarity(X, noise=0.1)
    hyper = TensorHyper(1.5, 0.1, trend)
    trends = list(hyper.trends(X, X, hyper.knots(X), np.eye(30, dtype=bool)))
    low = landmark_basis(hyper.items(L), hyper.items(X, L))
    full = item_basis((low.vectors * low.values) @ low.vectors.T)
    for alpha in (0.0, 0.3):
        a, b = (TensorProblem(S, basis, trends).solve(0.1, alpha) for basis in (low, full))
        r = hyper.items(L) @ low.projection
        to_full = r @ low.vectors.T @ full.vectors
        np.testing.assert_allclose(r @ a.item_coef, to_full @ b.item_coef, atol=1e-9)
        np.testing.assert_allclose(r @ a.core @ r.T, to_full @ b.core @ to_full.T, atol=1e-8)
        np.testing.assert_allclose(a.item_values, b.item_values, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_certificate_has_no_unit(unit):
    X = items(30)
    model = HyperRidge(TensorHyper(1.5, 0.1, "distance")).fit(X, unit * similarity(X, noise=0.1))
    assert model.certificate_ < 1e-10


def test_missing_entries_reduce_to_the_closed_form_and_to_least_squares():
    X = items(15)
    S = similarity(X, noise=0.1)
    hyper = TensorHyper(1.5, 0.1, "distance", n_knots=3)
    trends = list(hyper.trends(X, X, hyper.knots(X), np.eye(15, dtype=bool)))
    basis = item_basis(hyper.items(X))
    closed = TensorProblem(S, basis, trends).solve(0.1, 0.2)
    complete = tensor_ridge_missing(S, basis, trends, 0.1, 0.2, tol=1e-12)
    np.testing.assert_allclose(complete.item_values, closed.item_values, atol=1e-7)
    rng = np.random.default_rng(3)
    gone = np.triu(rng.random((15, 15)) < 0.5)
    holes = np.where(gone | gone.T, np.nan, S)
    used = ~np.isnan(holes).ravel()
    Gp = hyper.items(X) + 0.1 * np.eye(15)
    K = tensor_hyper(Gp, Gp, Gp, Gp)
    F = np.stack([f.ravel() for f in trends], axis=1)
    c, beta = universal_kriging(K[np.ix_(used, used)], F[used], S.ravel()[used], 0.2)
    expected = (K[:, used] @ c + F @ beta).reshape(15, 15)
    got = tensor_ridge_missing(holes, basis, trends, 0.1, 0.2, tol=1e-12)
    np.testing.assert_allclose(got.item_values, expected, atol=1e-6)
    assert got.certificate <= 1e-12


@pytest.mark.slow
def test_half_of_the_entries_cost_less_than_twice_the_error():
    X = np.random.default_rng(0).uniform(size=(160, 3))
    S = np.maximum(0.0, 2.0 - np.abs(X[:, None] - X[None]).sum(axis=2)) * (
        1 + 0.2 * np.add.outer(X[:, 0], X[:, 0])
    )
    train, test = np.arange(120), np.arange(120, 160)
    gone = np.triu(np.random.default_rng(1).random((160, 160)) < 0.5, 1)
    holes = np.where(gone | gone.T, np.nan, S)
    errors = []
    for Y in (S, holes):
        model = HyperRidge(random_state=0).fit(X[train], Y[np.ix_(train, train)])
        errors.append(np.linalg.norm(model.transform(X[test]) - S[np.ix_(test, train)]))
    assert errors[1] < 2 * errors[0]


# ---- estimators ----


@pytest.mark.parametrize(
    "hyper", [GaussianHyper(), WishartHyper(), TensorHyper()], ids=lambda h: type(h).__name__
)
def test_learned_kernel_is_a_kernel_like_any_other(hyper):
    X, Z = items(30), items(10, seed=4)
    y = (X[:, 0] > 0).astype(int)
    S = np.where(y[:, None] == y, 1.0, -1.0) + similarity(X)
    kernel = HyperRidge(hyper, alpha=1e-3, landmarks=20, random_state=0).fit(X, S).kernel_
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(copy(Z, X), kernel(Z, X))
    assert kernel.symmetric and np.allclose(kernel(Z), kernel(Z).T)
    np.testing.assert_allclose(kernel(Z, X), kernel(X, Z).T, rtol=1e-10, atol=1e-12)
    machine = SVC(kernel=kernel).fit(X, y)
    same = SVC(kernel="precomputed").fit(kernel(X), y)
    np.testing.assert_allclose(
        machine.decision_function(Z), same.decision_function(kernel(Z, X)), rtol=1e-6
    )
    with pytest.raises(ValueError, match="features"):
        kernel(np.zeros((2, 5)))


def test_definite_flags():
    centers = items(4)
    assert HyperExpansion(GaussianHyper(), centers, np.array([1.0, 0, 2, 3])).definite is True
    assert HyperExpansion(GaussianHyper(), centers, np.array([-5.0, 1, 1, 1])).definite is False
    X = items(20)
    S = similarity(X) + 0.3  # the Laplace kernel
    assert HyperRidge(TensorHyper(1.0, 0.1, None), alpha=0.0).fit(X, S).kernel_.definite is None
    assert HyperRidge(TensorHyper(1.0, 0.1, None), alpha=0.0).fit(X, -S).kernel_.definite is False


@pytest.mark.slow
def test_repeatable():
    X, y = load_iris(return_X_y=True)
    first, second = (HyperRidge(random_state=3, landmarks=40).fit(X[::2], y[::2]) for _ in range(2))
    np.testing.assert_array_equal(first.transform(X), second.transform(X))


def test_permuted_items_and_relabeled_classes_change_nothing():
    X, y = load_iris(return_X_y=True)
    X, y = X[::4], y[::4]
    hyper, order = GaussianHyper(2.0), np.random.default_rng(0).permutation(len(X))
    base = HyperRidge(hyper, alpha=1e-4, landmarks=None).fit(X, y).kernel_(X)
    shuffled = HyperRidge(hyper, alpha=1e-4, landmarks=None).fit(X[order], y[order]).kernel_(X)
    renamed = (
        HyperRidge(hyper, alpha=1e-4, landmarks=None)
        .fit(X, np.array(["c", "a", "b"])[y])
        .kernel_(X)
    )
    np.testing.assert_allclose(shuffled, base, rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(renamed, base)


@pytest.mark.parametrize(
    "hyper", [GaussianHyper(2.0), WishartHyper(3.0)], ids=["gaussian", "wishart"]
)
def test_landmarks_are_a_number_or_pairs(hyper):
    X, y = load_iris(return_X_y=True)
    for landmarks in (40, random_pairs(X[::2], 40, 1)):
        model = HyperRidge(hyper, alpha=1e-5, landmarks=landmarks).fit(X[::2], y[::2])
        assert len(model.kernel_.coef) == 40
        assert model.score(X[1::2], y[1::2]) > 0.35
    np.testing.assert_array_equal(model.kernel_.centers, hyper.centers_of(landmarks))
    with pytest.raises(ValueError, match="landmarks have 4 features but X has 2"):
        clone(model).fit(X[::2, :2], y[::2])


def test_random_pairs_are_distinct_and_of_the_items():
    X = np.arange(12.0)[:, None]
    for n_pairs in (1, 40, 78, 200):
        pairs = random_pairs(X, n_pairs, 0)[:, :, 0]
        assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == min(n_pairs, 78)
    for seed in range(3):
        pairs = random_pairs(np.arange(3000.0)[:, None], 500, seed)[:, :, 0]
        assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == 500
        assert 1200 < pairs.mean() < 1800


@pytest.mark.slow
def test_search_is_split_by_items_and_finds_the_scale():
    """Values that only a memory of pairs could know must not look predictable."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.integers(2, size=60)
    noise = HyperRidge("gaussian", landmarks=50, random_state=0).fit(X, y)
    assert min(row["error"] for row in noise.cv_results_) > 0.9
    signal = HyperRidge("gaussian", landmarks=50, random_state=0).fit(X + 6 * y[:, None], y)
    assert min(row["error"] for row in signal.cv_results_) < 0.6
    assert signal.alpha_ == min(signal.cv_results_, key=lambda row: row["error"])["alpha"]


def test_a_constant_kernel_is_judged_by_what_it_cannot_know():
    """The mean of known pairs of other items, on pairs of a left-out item with others, and of two left-out ones."""
    S = np.arange(25.0).reshape(5, 5)
    S = (S + S.T) / 2
    S[0, 1] = S[1, 0] = np.nan
    held, others = [0, 3], [1, 2, 4]
    mean = np.mean([S[i, j] for i in others for j in others])
    crossed = sum((S[i, j] - mean) ** 2 for i in held for j in others if (i, j) != (0, 1))
    inside = sum((S[i, j] - mean) ** 2 for i in held for j in held)
    np.testing.assert_allclose(
        constant_squares(S, [np.array(held)]), [[crossed, inside]], rtol=1e-10
    )


def test_validation_errors_are_those_of_refits():
    """Also where sections are nearly equal and coefficients are huge: the sums must not lose their digits."""
    X, y = load_iris(return_X_y=True)
    X, target = X[::3], labels_target(y[::3])
    hyper, folds = GaussianHyper(4.0, 0.5), [slice(0, 20), slice(20, 35), slice(35, 50)]
    centers = hyper.centers_of(random_pairs(X, 40, 0))
    whitening, alphas = whiten(hyper.gram(centers)), np.array([1e-9, 1e-5, 1e-2])
    got = LeftOutItems(hyper, X, target, folds, random_pairs(X, 40, 0)).errors(alphas)
    expected, T = np.zeros((3, 3)), target(EVERYTHING, EVERYTHING)
    for number, fold in enumerate(folds):
        rest = np.delete(np.arange(50), fold)
        part = make_design(hyper, X[rest], centers)
        held = np.ones((50, 50), dtype=bool)
        held[np.ix_(rest, rest)] = False
        equations = normal_equations(part, target.take(rest), whitening=whitening)
        path = WhitenedPath(equations, len(centers))
        for k, alpha in enumerate(alphas):
            kernel = HyperExpansion(hyper, centers, path.solution(whitening, alpha).coef)
            expected[k, number] = np.sum((kernel(X) - T)[held] ** 2)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_targets():
    codes = PairTarget("classes", np.array([0, 1, 2]), 3)(EVERYTHING, EVERYTHING)
    np.testing.assert_allclose(codes, 1.5 * np.eye(3) - 0.5)
    two = PairTarget("classes", np.array([0, 1]), 2)(EVERYTHING, EVERYTHING)
    np.testing.assert_array_equal(two, [[1, -1], [-1, 1]])
    X = items(12)
    for target, kind in (("auto", "product"), ("gaussian", "gaussian")):
        assert (
            HyperRidge(GaussianHyper(), alpha=1e-3, target=target).fit(X, X[:, 0]).target_kind_
            == kind
        )


def test_svr_chooses_and_scores():
    X, y = load_wine(return_X_y=True)
    X, y, Z, z = X[::5], y[::5], X[1::5], y[1::5]
    exact = HyperSVR(random_state=0).fit(X, y)
    assert exact.score(Z, z) > 0.3
    X, y = load_iris(return_X_y=True)
    X, y, Z, z = X[::5], y[::5], X[1::5], y[1::5]
    few = HyperSVR(GaussianHyper(2.0), C=0.5, landmarks=60, random_state=0).fit(X, y)
    all_pairs = HyperSVR(GaussianHyper(2.0), C=0.5, landmarks=None).fit(X, y)
    assert abs(few.score(Z, z) - all_pairs.score(Z, z)) < 0.05


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_items(n):
    X = items(n)
    for model in (HyperRidge(), HyperRidge("gaussian"), HyperRidge("wishart")):
        y = similarity(X) if n > 1 else np.zeros(1, dtype=int)
        assert np.all(np.isfinite(model.fit(X, y).transform(X)))


def test_degenerate_targets_and_duplicates():
    X = np.vstack([items(10), items(10)])
    zero = HyperRidge(random_state=0).fit(X, np.zeros((20, 20)))
    np.testing.assert_allclose(zero.transform(items(3, seed=1)), 0, atol=1e-12)
    one_class = HyperRidge(random_state=0).fit(X, np.zeros(20, dtype=int))
    assert np.all(np.isfinite(one_class.transform(X)))
    constant = HyperRidge(random_state=0).fit(np.ones((8, 2)), np.eye(8))
    assert np.all(np.isfinite(constant.transform(np.ones((2, 2)))))


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"alpha": 0.0, "hyper_kernel": "gaussian"},
            "alpha=0.0 must be a positive number, or None",
        ),
        ({"landmarks": 0}, "landmarks"),
        ({"landmarks": np.eye(3), "hyper_kernel": "gaussian"}, "landmarks must have shape"),
        ({"landmarks": np.zeros((5, 2, 3))}, "landmarks of the tensor"),
        ({"hyper_kernel": "rbf"}, "hyper_kernel"),
        ({"target": "pairs"}, "target"),
        ({"cv": 1}, "cv"),
        ({"fit_intercept": True}, "belongs to the Gaussian"),
        ({"hyper_kernel": GaussianHyper(-1.0)}, "positive length_scale"),
        ({"hyper_kernel": GaussianHyper([1.0, 2.0])}, "one per feature"),
        ({"hyper_kernel": WishartHyper(1.0, -3)}, "not positive semi-definite"),
        ({"hyper_kernel": WishartHyper(-1.0)}, "positive length_scale"),
        (
            {"hyper_kernel": WishartHyper(np.eye(9))},
            r"length_scale of shape \(9, 9\) must be a posi",
        ),
        ({"hyper_kernel": WishartHyper(-np.eye(3))}, "must be a positive definite matrix of shape"),
        ({"hyper_kernel": WishartHyper([1.0, 2.0])}, "one per feature"),
        ({"hyper_kernel": TensorHyper(trend="linear")}, "trend"),
    ],
)
def test_bad_parameters_are_one_sentence(settings, message):
    X = items(12)
    with pytest.raises(ValueError, match=message):
        HyperRidge(**settings).fit(X, similarity(X))


@pytest.mark.parametrize(
    "y, message",
    [
        (np.zeros((5, 5)), "same items"),
        (np.full((12, 12), np.nan), "no known similarity"),
        (np.triu(np.ones((12, 12))), "not symmetric"),
        (np.full((12, 12), np.inf), "contains infinity"),
        (np.zeros((12, 3)), "square"),
    ],
)
def test_bad_similarities_are_one_sentence(y, message):
    with pytest.raises(ValueError, match=message):
        HyperRidge().fit(items(12), y)


def test_memory_guard_speaks_before_work():
    X = items(90)
    with (
        config_context(memory_limit="50MB"),
        pytest.raises(MemoryError, match="hyper-kernel matrix of 4095 pairs"),
    ):
        HyperRidge(GaussianHyper(), alpha=1.0, landmarks=None).fit(X, np.zeros(90, dtype=int))


@pytest.mark.parametrize("landmarks", [100, 150])
def test_fitting_never_holds_the_design(landmarks):
    """400 items have 160,000 ordered pairs: with 100 sections, solved directly, the paper's matrix takes 128 MB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] > 0).astype(int)
    model = HyperRidge(GaussianHyper(3.0), alpha=1e-4, landmarks=landmarks)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


# arbitrary spectra and scales


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
