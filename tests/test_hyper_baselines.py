"""The baselines: bilinear ridge, nearest neighbours, kernel target alignment."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercerless.estimators.alignment import AlignmentClassifier, align
from mercerless.estimators.extension import BilinearExtension, NearestExtension
from mercerless.estimators.hyper import HyperRidge
from mercerless.kernels import Gaussian
from mercerless.kernels.hyper import TensorHyper


@parametrize_with_checks([AlignmentClassifier(C=1.0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def problem(n=40):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.exp(-np.abs(X[:, None] - X[None]).sum(axis=2)), np.random.default_rng(1).normal(size=(7, 3))


def test_bilinear_is_its_formula_and_the_tensor_without_trend():
    X, S, Z = problem()
    model = BilinearExtension(Gaussian(1.5), alpha=0.1).fit(X, S)
    G = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))
    g = np.exp(-((Z[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))
    W = g @ np.linalg.inv(G + 0.1 * np.eye(40))
    np.testing.assert_allclose(model.transform(Z), W @ S, rtol=1e-8)
    np.testing.assert_allclose(model.similarities(Z), W @ S @ W.T, rtol=1e-8)
    tensor = HyperRidge(TensorHyper(1.5, 0.1, None), alpha=0.0).fit(X, S)
    np.testing.assert_allclose(tensor.transform(Z), model.transform(Z), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(tensor.kernel_(Z), model.similarities(Z), rtol=1e-7, atol=1e-9)


def test_bilinear_chooses_by_items_left_out():
    X, S, Z = problem(60)
    model = BilinearExtension(random_state=0).fit(X, S)
    truth = np.exp(-np.abs(Z[:, None] - X[None]).sum(axis=2))
    worse = BilinearExtension(Gaussian(100.0), alpha=10.0).fit(X, S)
    assert np.linalg.norm(model.transform(Z) - truth) < 0.7 * np.linalg.norm(worse.transform(Z) - truth)


def test_nearest_copies_rows():
    X, S, _ = problem()
    model = NearestExtension().fit(X, S)
    np.testing.assert_array_equal(model.transform(X + 1e-9), S)
    np.testing.assert_array_equal(model.similarities(X[:3], X[3:5]), S[:3, 3:5])
    two = NearestExtension(n_neighbors=2).fit(X, S)
    assert np.all(np.abs(two.transform(X)) <= np.abs(S).max())


def test_alignment_beats_random_weights_and_equals_its_definition():
    rng = np.random.default_rng(0)
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    matrices = [Gaussian(2.0**k)(X) for k in range(-3, 4)]
    T = np.where(y[:, None] == y, 1.0, -0.5)
    n = len(X)
    H = np.eye(n) - 1 / n

    def alignment(w):
        K = H @ sum(a * M for a, M in zip(w, matrices)) @ H
        return np.sum(K * (H @ T @ H)) / np.linalg.norm(K)

    w = align(matrices, T)
    assert w.min() >= 0 and np.isclose(w.sum(), 1)
    best = alignment(w)
    for _ in range(10_000):
        assert alignment(rng.dirichlet(np.full(len(matrices), 0.3))) <= best * (1 + 1e-9)


def test_classifier_is_an_svm_with_the_combination():
    X, y = load_iris(return_X_y=True)
    model = AlignmentClassifier(weights="uniform", C=2.0).fit(X[::2], y[::2])
    np.testing.assert_allclose(model.weights_, 1 / 11)
    K = sum(Gaussian(2.0**k)(X[::2]) for k in range(-5, 6)) / 11
    np.testing.assert_allclose(model.kernel_(X[::2]), K, rtol=1e-12)
    by_hand = SVC(kernel="precomputed", C=2.0).fit(K, y[::2])
    K_test = sum(Gaussian(2.0**k)(X[1::2], X[::2]) for k in range(-5, 6)) / 11
    np.testing.assert_array_equal(model.predict(X[1::2]), by_hand.predict(K_test))


def test_bad_input_is_one_sentence():
    X, S, _ = problem()
    with pytest.raises(ValueError, match="missing similarities"):
        BilinearExtension().fit(X, np.where(np.eye(40) > 0, np.nan, S))
    with pytest.raises(ValueError, match="alpha must be positive"):
        BilinearExtension(alpha=0.0).fit(X, S)
    with pytest.raises(ValueError, match="n_neighbors"):
        NearestExtension(n_neighbors=41).fit(X, S)
    with pytest.raises(ValueError, match="weights must be"):
        AlignmentClassifier(weights="best").fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="one class only"):
        AlignmentClassifier().fit(X, np.zeros(40))
