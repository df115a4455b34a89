"""What the benchmarks compare with and generate is what the papers define."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import datasets as oracle
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.svm import SVC

from mercerless import HyperRidge
from mercerless.kernels import Gaussian
from mercerless.kernels.hyper import TensorHyper

ROOT = Path(__file__).resolve().parents[1]
PAPERS = Path(os.environ.get("MERCERLESS_PAPERS", ROOT / "benchmarks" / "papers"))


def module(name):
    """A script of the papers, here or in the copy with a planted bug."""
    path = PAPERS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"papers_{name}", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


generators, rates, rivals = (module(name) for name in ("generators", "rates", "hyper_rivals"))


def test_step_equals_the_printed_formula_and_has_steps():
    X, y = generators.make_step(301)
    assert X[0] == -5 and X[-1] == 5
    assert_allclose(y, [oracle.step(x, 3.0, 2.0, 20.0) for x in X[:, 0]], atol=1e-10)
    # the paper's smoothness is a straight line, ours is not
    line = np.polynomial.Polynomial.fit(X[:, 0], y, 1)(X[:, 0])
    assert np.abs(generators.make_step(301, smoothness=0.05)[1] - 1.5 * X[:, 0]).max() < 1e-3
    assert np.abs(y - line).max() > 0.5


def test_surface_equals_the_printed_formula():
    X, y = generators.make_surface(300, random_state=0)
    assert_allclose(y, [oracle.surface(u, v) for u, v in X.tolist()], rtol=1e-12)
    assert X.min() >= 0 and X.max() <= 1


@pytest.mark.parametrize("kernel", ["gaussian", "sigmoid", "ard_sigmoid"])
def test_krein_matrix_is_a_matrix_minus_an_inverse(kernel):
    K, y = generators.make_krein_matrix(100, kernel=kernel, random_state=3)
    assert np.array_equal(K, K.T) and y.shape == (100,)
    values = np.linalg.eigvalsh(K)
    assert values[0] < -1 and values[-1] > 1
    # positive definite with unit diagonal: the positive roots of s - 1/s sum to the trace
    if kernel == "gaussian":
        assert_allclose(((values + np.sqrt(values**2 + 4)) / 2).sum(), 100.0, rtol=1e-9)


def test_krein_matrix_has_the_inertia_of_the_paper():
    # Table 1 of the krein paper: 1 + about n_features positive eigenvalues, negative mass .98 and .99
    for n, most in ((500, 51), (1000, 56)):
        values = np.linalg.eigvalsh(generators.make_krein_matrix(n, random_state=0)[0])
        assert 20 <= (values > 0).sum() <= most
        assert -values[values < 0].sum() / np.abs(values).sum() > 0.95


def test_krein_target_lies_in_the_span_up_to_noise():
    clean, noisy = (
        generators.make_krein_matrix(80, noise=noise, random_state=0) for noise in (0.0, 0.05)
    )
    assert_array_equal(clean[0], noisy[0])
    assert_allclose((noisy[1] - clean[1]).std() / np.ptp(clean[1]), 0.05, rtol=0.3)
    assert_allclose(np.linalg.solve(*clean).std(), 1 / np.sqrt(80), rtol=0.3)
    with pytest.raises(ValueError, match="singular"):
        generators.make_krein_matrix(200, n_features=1, random_state=0)


def similarities(n=40):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return (
        X,
        np.exp(-np.abs(X[:, None] - X[None]).sum(axis=2)),
        np.random.default_rng(1).normal(size=(7, 3)),
    )


def test_bilinear_is_its_formula_and_the_tensor_without_trend():
    X, S, Z = similarities()
    model = rivals.BilinearExtension(1.5, alpha=0.1).fit(X, S)
    G = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))
    g = np.exp(-((Z[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))
    W = g @ np.linalg.inv(G + 0.1 * np.eye(40))
    assert_allclose(model.transform(Z), W @ S, rtol=1e-8)
    assert_allclose(model.similarities(Z), W @ S @ W.T, rtol=1e-8)
    tensor = HyperRidge(TensorHyper(1.5, 0.1, None), alpha=0.0).fit(X, S)
    assert_allclose(tensor.transform(Z), model.transform(Z), rtol=1e-7, atol=1e-9)
    assert_allclose(tensor.kernel_(Z), model.similarities(Z), rtol=1e-7, atol=1e-9)


def test_bilinear_chooses_by_items_left_out():
    X, S, Z = similarities(60)
    truth = np.exp(-np.abs(Z[:, None] - X[None]).sum(axis=2))
    good, bad = (
        rivals.BilinearExtension(random_state=0),
        rivals.BilinearExtension(100.0, alpha=10.0),
    )
    errors = [np.linalg.norm(model.fit(X, S).transform(Z) - truth) for model in (good, bad)]
    assert errors[0] < 0.7 * errors[1]


def test_nearest_copies_rows():
    X, S, _ = similarities()
    model = rivals.NearestExtension().fit(X, S)
    assert_array_equal(model.transform(X + 1e-9), S)
    assert_array_equal(model.similarities(X[:3]), S[:3, :3])


def test_alignment_beats_random_weights_and_equals_its_definition():
    rng = np.random.default_rng(0)
    X, y = (array[::5] for array in load_iris(return_X_y=True))
    matrices = [Gaussian(2.0**k)(X) for k in range(-3, 4)]
    T = np.where(y[:, None] == y, 1.0, -0.5)
    H = np.eye(len(X)) - 1 / len(X)

    def alignment(w):
        K = H @ sum(a * M for a, M in zip(w, matrices)) @ H
        return np.sum(K * (H @ T @ H)) / np.linalg.norm(K)

    w = rivals.align(matrices, T)
    assert w.min() >= 0 and np.isclose(w.sum(), 1)
    best = alignment(w)
    for _ in range(10_000):
        assert alignment(rng.dirichlet(np.full(len(matrices), 0.3))) <= best * (1 + 1e-9)


def test_alignment_classifier_is_an_svm_with_the_combination():
    X, y = load_iris(return_X_y=True)
    model = rivals.AlignmentClassifier(weights="uniform", C=2.0).fit(X[::2], y[::2])
    K = sum(Gaussian(2.0**k)(X) for k in range(-5, 6)) / 11
    by_hand = SVC(kernel="precomputed", C=2.0).fit(K[::2, ::2], y[::2])
    assert_array_equal(model.predict(X[1::2]), by_hand.predict(K[1::2, ::2]))
    assert rivals.AlignmentClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


def test_fit_rate_recovers_a_power_law():
    sizes = np.array([10, 30, 100, 300])
    rate = rates.fit_rate(sizes, 2.5 * sizes**-0.37)
    assert_allclose((rate.exponent, rate.constant), (0.37, 2.5), rtol=1e-10)
    assert rate.standard_error < 1e-10
    with pytest.raises(ValueError, match="positive errors"):
        rates.fit_rate(sizes, [1, 0, 1, 1])


def test_learning_curve_of_ordinary_least_squares():
    """The excess risk of d coefficients is d sigma^2 / (n - d - 1) for Gaussian rows: an oracle for curve and rate."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = X[:, 0] + rng.standard_normal(3000)
    test = rng.standard_normal((4000, 4))
    curve = rates.learning_curve(
        LinearRegression(fit_intercept=False),
        X,
        y,
        test,
        test[:, 0],
        [50, 200, 800],
        n_repeats=40,
        random_state=0,
    )
    expected = 4 / (curve.sizes - 5)
    assert_allclose(curve.errors.mean(axis=1), expected, rtol=0.25)
    assert_allclose(curve.rate.exponent, 1.0, atol=0.15)


def test_learning_curve_options():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = 5 * X[:, 0]
    settings = {"clip": 1.0, "n_repeats": 2, "random_state": 0}
    curve = rates.learning_curve(lambda n: Ridge(alpha=1 / n), X, y, X, y, [20, 50], **settings)
    assert curve.errors.min() > np.mean((np.clip(y, -1, 1) - y) ** 2) - 1e-9
    again = rates.learning_curve(lambda n: Ridge(alpha=1 / n), X, y, X, y, [20, 50], **settings)
    assert_allclose(curve.errors, again.errors)
    with pytest.raises(ValueError, match="sizes must lie"):
        rates.learning_curve(Ridge(), X, y, X, y, [20, 500])
