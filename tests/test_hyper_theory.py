"""The elements of the hyper-kernel paper against its printed formulas, on all ordered pairs by dense matrices."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from mercerless import HyperRidge, HyperSVR, Landmarks
from mercerless.kernels import GaussianHyper, WishartHyper
from mercerless.theory import (
    hyper_concentration,
    hyper_error_decomposition,
    hyper_excess_constant,
    hyper_fixed_error,
    hyper_noise_constants,
    hyper_output_error,
    hyper_uniform_error,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = -np.log1p(np.abs(X[:, None] - X).sum(axis=2))


def gaussian_hyper(a, b, c, d, sigma, sigma_h):
    """The printed Gaussian hyper-kernel without its constants, entry by entry."""
    t = sigma**2 + sigma_h**2
    apart = np.sum((a - b) ** 2) + np.sum((c - d) ** 2)
    middle = np.sum(((a + b) / 2 - (c + d) / 2) ** 2)
    return np.exp(-apart / (2 * sigma**2) - middle / (2 * t))


def ordered_pairs(items):
    return [(a, b) for a in items for b in items]


def matrix(left, right, sigma, sigma_h):
    return np.array([[gaussian_hyper(*p, *q, sigma, sigma_h) for q in right] for p in left])


def equation_9(items, landmarks, target, penalty, sigma, sigma_h):
    """The kernel of equation (9): M^2 coefficients, duplicates included, as a function of two sets of items."""
    pairs = ordered_pairs(items)
    centers = ordered_pairs(landmarks)
    K_nM = matrix(pairs, centers, sigma, sigma_h)
    K_MM = matrix(centers, centers, sigma, sigma_h)
    system = K_nM.T @ K_nM + penalty * len(items) ** 2 * K_MM
    beta = np.linalg.pinv(system, rcond=1e-13, hermitian=True) @ (K_nM.T @ target.ravel())

    def kernel(A, B):
        at = [(a, b) for a in A for b in B]
        return (matrix(at, centers, sigma, sigma_h) @ beta).reshape(len(A), len(B))

    return kernel


def test_pair_scale_is_sigma_h_over_sigma():
    pairs = np.stack([X[:5], X[5:10]], axis=1)
    expected = matrix(list(pairs), list(pairs), 1.5, 0.6)
    np.testing.assert_allclose(GaussianHyper(1.5, 0.6 / 1.5)(pairs), expected, rtol=1e-12)


def test_a_grid_of_landmarks_is_equation_9():
    hyper = GaussianHyper(1.5, 0.5)
    model = HyperRidge(
        hyper, alpha=1e-3, landmarks=Landmarks(4, "grid"), solver="direct", random_state=0
    ).fit(X, Y)
    assert len(model.kernel_.coef) == 10  # pairs (i, j) and (j, i) are one
    centers = model.kernel_.centers
    diagonal = [c for c in centers if np.any(np.all(np.isclose(c, X), axis=1))]
    kernel = equation_9(X, np.array(diagonal), Y, 1e-3, 1.5, 0.75)
    assert len(diagonal) == 4
    assert not np.allclose(sorted(np.array(diagonal)[:, 0]), sorted(X[:4, 0]))  # drawn at random
    np.testing.assert_allclose(model.kernel_(X[:6], X[6:9]), kernel(X[:6], X[6:9]), atol=1e-6)


def test_parts_with_grids_are_algorithm_1():
    hyper = GaussianHyper(1.5, 0.5)
    model = HyperRidge(
        hyper,
        alpha=1e-3,
        landmarks=Landmarks(3, "grid"),
        n_parts=3,
        solver="direct",
        random_state=0,
    ).fit(X, Y)
    centers = model.kernel_.centers
    assert len(centers) == 3 * 6
    total = np.zeros((5, 5))
    seen = []
    for part in range(3):
        own = [
            np.flatnonzero(np.all(np.isclose(X, c), axis=1))
            for c in centers[6 * part : 6 * part + 6]
        ]
        seen.append(np.concatenate([index for index in own if len(index)]))
    # every part has landmarks of its own, from its own items
    assert len(np.unique(np.concatenate(seen))) == 9
    by_content = np.lexsort(X.T[::-1])  # parts are drawn from the rows in this order
    order = by_content[np.random.RandomState(0).permutation(24)]
    for part, landmarks in zip(np.array_split(order, 3), seen):
        assert np.all(np.isin(landmarks, part))
        block = Y[np.ix_(part, part)]
        total += equation_9(X[part], X[landmarks], block, 1e-3, 1.5, 0.75)(X[:5], X[:5]) / 3
    np.testing.assert_allclose(model.kernel_(X[:5]), total, atol=1e-6)


@pytest.mark.parametrize(
    "learner",
    [
        HyperSVR(GaussianHyper(1.5), C=1.0),
        HyperRidge(WishartHyper(2.0), alpha=1e-3, fit_intercept=True),
    ],
)
def test_grids_work_with_other_losses_and_hyper_kernels(learner):
    learner.set_params(landmarks=Landmarks(4, "grid"), n_parts=2, random_state=0)
    model = learner.fit(X, Y)
    assert len(model.kernel_.coef) == 2 * 10
    assert np.linalg.norm(model.kernel_(X) - Y) < 0.6 * np.linalg.norm(Y)


def test_more_landmarks_than_items_are_all_of_them():
    hyper = GaussianHyper(1.5)
    grid = HyperRidge(hyper, alpha=1e-2, landmarks=Landmarks(99, "grid"), random_state=0)
    everything = HyperRidge(hyper, alpha=1e-2, landmarks=None)
    small, Y_small = X[:9], Y[:9, :9]
    expected = everything.fit(small, Y_small).kernel_(X)
    np.testing.assert_allclose(grid.fit(small, Y_small).kernel_(X), expected, atol=1e-5)


def test_lemma_11_bounds_the_mean_over_pairs():
    rng = np.random.default_rng(1)
    m, distance = 40, 0.35
    # xi in [-1, 3] with mean 1: |xi - 1| <= 2 and E xi^2 <= 2.4
    exceeds = 0
    for _ in range(400):
        u = rng.uniform(-1, 1, m)
        xi = 1 + u[:, None] + u
        np.fill_diagonal(xi, 0.0)
        exceeds += xi.sum() / (m * (m - 1)) - 1 >= distance * np.sqrt(2)
    bound = hyper_concentration(m, distance, variance=1 + 2 / 3, bound=2.0)
    assert 0 < exceeds / 400 <= bound
    by_hand = np.exp(-39 * 0.35**1.5 / (4 * 2.0 + 4 / 3 * 3.0 * 0.35**0.5))
    found = hyper_concentration(40, 0.35, variance=2.0, bound=3.0, theta=0.5)
    np.testing.assert_allclose(found, by_hand, rtol=1e-13)


def test_proposition_9_for_normal_noise():
    # b = density at distance a = 1 from the median, q = 2: P((t, t + u)) >= b u for u <= 1
    b = norm.pdf(1.0)
    constants = hyper_noise_constants(2.0, norm=1 / b)
    assert constants.theta == 1.0
    for off in (0.05, 0.3, 1.0):
        z = np.linspace(-12, 12, 200001)
        weight = norm.pdf(z) * (z[1] - z[0])
        excess = np.sum((np.abs(z - off) - np.abs(z)) * weight)
        variance = np.sum((np.abs(z - off) - np.abs(z)) ** 2 * weight)
        assert off <= constants.C_q * np.sqrt(excess) * (1 + 1e-9)
        assert variance <= constants.C_theta * excess * (1 + 1e-9)


def test_constants_as_printed():
    log = np.log(4 / 0.1)
    fixed = hyper_fixed_error(
        50, 0.01, 0.04, theta=0.5, C_theta=3.0, bound=2.0, target_bound=1.5, size=0.7, delta=0.1
    )
    largest = 0.7 * np.sqrt(0.04 / 0.01)
    expected = 0.02 + 16 * 4 * (2 + 1.5 + largest) * log * 50 ** (-1 / 1.5) + (largest + 1.5) / 50
    np.testing.assert_allclose(fixed, expected, rtol=1e-13)
    uniform = hyper_uniform_error(
        50,
        7.0,
        theta=0.5,
        C_theta=3.0,
        capacity=0.4,
        C_s=1.3,
        bound=2.0,
        target_bound=1.5,
        delta=0.1,
    )
    inner = log * 50 ** (-1 / 1.5) + 1.3 * 50 ** (-1 / 1.9) * 7 ** (0.4 / 1.4)
    np.testing.assert_allclose(uniform, 16 * 3.5 * 4 * inner, rtol=1e-13)
    output = hyper_output_error(50, 3.0, moment=1.2, c=2.0, d=2, delta=0.1)
    expected = 2 * (6 + 16 * 4) * 1.2**3 / 9 + 12 * 1.2 * 8 / 50 * log
    np.testing.assert_allclose(output, expected, rtol=1e-13)
    constant = hyper_excess_constant(
        C_0=1e9, C_theta=3.0, bound=2.0, target_bound=1.5, size=0.7, moment=1.2, c=2.0
    )
    assert constant == 3e9
    constant = hyper_excess_constant(C_0=1.0, C_theta=3.0, C_s=0.0, bound=2.0, target_bound=1.5)
    np.testing.assert_allclose(constant, 4 * (672 * 1.5 + 640 * 2), rtol=1e-13)
    with pytest.raises(ValueError, match="theta"):
        hyper_concentration(10, 0.1, theta=2.0)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_error_decomposition_holds_for_every_sample(noise):
    rng = np.random.default_rng(2)
    hyper = GaussianHyper(1.5, 0.5)
    for _ in range(5):
        rows = rng.choice(24, 10)  # with replacement, as items are drawn
        E = noise * rng.normal(size=(10, 10))
        observed = Y[np.ix_(rows, rows)] + (E + E.T) / 2
        found = hyper_error_decomposition(hyper, X, Y, rows, observed, alpha=1e-2)
        bound = found.regularization + found.learned + found.fixed
        assert found.excess + found.penalty <= bound + 1e-12
        model = HyperRidge(hyper, alpha=1e-2, landmarks=None).fit(X[rows], observed)
        np.testing.assert_allclose(found.excess, np.mean((model.kernel_(X) - Y) ** 2), rtol=1e-6)
        learned = np.mean((model.kernel_(X[rows]) - observed) ** 2)
        of_target = np.mean((Y[np.ix_(rows, rows)] - observed) ** 2)
        np.testing.assert_allclose(
            found.learned, found.excess - (learned - of_target), rtol=1e-6, atol=1e-12
        )
    # D(lambda) by equation (6) on all ordered pairs
    few, target = X[:9], Y[:9, :9]
    pairs = ordered_pairs(few)
    K = matrix(pairs, pairs, 1.5, 0.75)
    beta = np.linalg.solve(K + 1e-2 * 9**2 * np.eye(9**2), target.ravel())
    D = np.mean((K @ beta - target.ravel()) ** 2) + 1e-2 * beta @ K @ beta
    found = hyper_error_decomposition(hyper, few, target, [0, 1, 2], alpha=1e-2)
    np.testing.assert_allclose(found.regularization, D, rtol=1e-6)


def equation_11(K, y, penalty, epsilon):
    """Coefficients of (11) on all ordered pairs, by a general-purpose solver on its dual without an equation."""
    C = 1 / (2 * penalty * len(y))

    def negative(both):
        up, down = np.split(both, 2)
        beta = up - down
        Kb = K @ beta
        value = y @ beta - epsilon * both.sum() - beta @ Kb / 2
        slope = y - Kb
        return -value, np.concatenate([epsilon - slope, epsilon + slope])

    found = minimize(
        negative,
        np.zeros(2 * len(y)),
        jac=True,
        bounds=[(0, C)] * (2 * len(y)),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 20000, "maxfun": 40000},
    )
    up, down = np.split(found.x, 2)
    return up - down


def objective_11(K, y, beta, penalty, epsilon):
    losses = np.maximum(0, np.abs(y - K @ beta) - epsilon)
    return losses.mean() + penalty * beta @ K @ beta


@pytest.mark.parametrize("landmarks", [None, Landmarks(99, "grid")])
def test_support_vector_regression_without_an_intercept_is_equation_11(landmarks):
    few, target, penalty, epsilon = X[:7], Y[:7, :7], 2e-2, 0.05
    pairs = ordered_pairs(few)
    K = matrix(pairs, pairs, 1.5, 0.75)
    beta = equation_11(K, target.ravel(), penalty, epsilon)
    model = HyperSVR(
        GaussianHyper(1.5, 0.5),
        C=1 / (2 * penalty * 7**2),
        epsilon=epsilon,
        landmarks=landmarks,
        fit_intercept=False,
        tol=1e-8,
        max_iter=20000,
        random_state=0,
    ).fit(few, target)
    assert model.kernel_.intercept == 0
    np.testing.assert_allclose(model.kernel_(few), (K @ beta).reshape(7, 7), atol=2e-3)
    values = model.kernel_(few).ravel()
    found = np.linalg.lstsq(K, values, rcond=1e-12)[0]
    best = objective_11(K, target.ravel(), beta, penalty, epsilon)
    reached = objective_11(K, target.ravel(), found, penalty, epsilon)
    np.testing.assert_allclose(reached, best, rtol=1e-4)
    with_constant = model.set_params(fit_intercept=True).fit(few, target)
    assert abs(with_constant.kernel_.intercept) > 0.1


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_proposition_10_as_printed(noise):
    rng = np.random.default_rng(3)
    hyper = GaussianHyper(1.5, 0.5)
    few, K = X[:10], Y[:10, :10]
    penalty, epsilon, B = 1e-2, 0.05, 0.8  # so low that it clips
    for _ in range(3):
        rows = rng.choice(10, 6)  # with replacement, as items are drawn
        E = noise * rng.normal(size=(6, 6))
        observed = K[np.ix_(rows, rows)] + (E + E.T) / 2
        found = hyper_error_decomposition(
            hyper, few, K, rows, observed, alpha=penalty, epsilon=epsilon, bound=B
        )
        right = found.regularization + found.learned + found.fixed + found.output + found.tube
        assert found.excess + found.penalty <= right + 1e-6
        assert found.tube == epsilon
        # every term by dense matrices on all ordered pairs
        pairs, everything = ordered_pairs(few[rows]), ordered_pairs(few)
        gram = matrix(pairs, pairs, 1.5, 0.75)
        beta = equation_11(gram, observed.ravel(), penalty, epsilon)
        learned = np.clip(matrix(everything, pairs, 1.5, 0.75) @ beta, -B, B)
        np.testing.assert_allclose(
            found.excess, np.abs(learned - K.ravel()).mean(), rtol=1e-3, atol=1e-6
        )
        np.testing.assert_allclose(found.penalty, penalty * beta @ gram @ beta, rtol=1e-3)
        at_sample = np.clip(gram @ beta, -B, B) - observed.ravel()
        of_target = np.abs(K[np.ix_(rows, rows)] - observed).mean()
        expected = found.excess - (np.abs(at_sample).mean() - of_target)
        np.testing.assert_allclose(found.learned, expected, atol=1e-4)
        output = np.abs(np.clip(observed, -B, B) - observed).mean()
        np.testing.assert_allclose(found.output, output, rtol=1e-12)
    # D(lambda) of absolute errors: (11) on the population with a tube of width 0
    gram = matrix(everything, everything, 1.5, 0.75)
    beta = equation_11(gram, K.ravel(), penalty, 0.0)
    D = objective_11(gram, K.ravel(), beta, penalty, 0.0)
    np.testing.assert_allclose(found.regularization, D, rtol=1e-3)
    with pytest.raises(ValueError, match="give epsilon"):
        hyper_error_decomposition(hyper, few, K, [0, 1], alpha=penalty, bound=B)


def test_no_median_has_a_smaller_norm_than_uniform_noise():
    # on [-1, 1]: P((0, u)) = u / 2 for u <= 1, so q = 2, a = 1, b = 1/2
    constants = hyper_noise_constants(2.0)
    assert constants == hyper_noise_constants(2.0, norm=2.0)
    for off in (0.1, 1.0):
        excess = off**2 / 2  # E |y - off| - E |y|
        assert off <= constants.C_q * np.sqrt(excess)
    with pytest.raises(ValueError, match="at least 2"):
        hyper_noise_constants(2.0, norm=1.9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hyper_concentration(10, -0.1), "distance"),
        (lambda: hyper_concentration(10.5, 0.1), "m=10.5"),
        (lambda: hyper_fixed_error(10, 0.0, 0.1, theta=1, C_theta=4), "alpha"),
        (lambda: hyper_fixed_error(10, 0.1, 0.1, theta=1, C_theta=4, delta=0), "delta"),
        (lambda: hyper_uniform_error(10, 0.5, theta=1, C_theta=4, capacity=0.1), "radius"),
        (lambda: hyper_uniform_error(10, 2.0, theta=1, C_theta=4, capacity=0), "capacity"),
        (lambda: hyper_output_error(10, 0.0), "bound"),
        (lambda: hyper_output_error(10, 2.0, delta=1.5), "delta"),
    ],
)
def test_what_a_bound_cannot_be_computed_from(call, message):
    with pytest.raises(ValueError, match=message):
        call()
