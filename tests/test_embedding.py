"""KreinEmbedding: inner products, kernel PCA and classical scaling as special cases, new items, landmarks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import KernelPCA

from mercerless import KreinEmbedding
from mercerless.kernels import TL1, Gaussian
from mercerless.lowrank import Landmarks


def indefinite(n=40, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A + A.T


def centered(K):
    J = np.eye(len(K)) - 1.0 / len(K)
    return J @ K @ J


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("center", [True, False])
def test_signed_inner_products_are_the_similarities(center, scale):
    K = indefinite() * scale
    model = KreinEmbedding("precomputed", None, kind="similarity", center=center)
    Z = model.fit_transform(K)
    assert_allclose((Z * model.signs_) @ Z.T, centered(K) if center else K, atol=1e-10 * scale)
    assert set(model.signs_) == {-1.0, 1.0} and model.explained_ == pytest.approx(1.0)
    assert_array_equal(model.signs_, np.sign(model.eigenvalues_))
    assert np.all(np.diff(np.abs(model.eigenvalues_)) <= 0.0)
    assert_allclose((Z**2).sum(axis=0), np.abs(model.eigenvalues_))


def test_few_axes_are_the_best_approximation_of_their_rank():
    K = centered(indefinite())
    model = KreinEmbedding("precomputed", 5, kind="similarity").fit(K)
    Z = model.transform(K)
    left = np.linalg.norm(K - (Z * model.signs_) @ Z.T)
    values = np.sort(np.abs(np.linalg.eigvalsh(K)))[::-1]
    assert left == pytest.approx(np.linalg.norm(values[5:]))
    assert model.explained_ == pytest.approx(np.sum(values[:5] ** 2) / np.sum(values**2))


def test_a_positive_definite_kernel_gives_kernel_pca():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(10, 3))
    ours = KreinEmbedding(Gaussian(1.0), 4).fit(X)
    pca = KernelPCA(4, kernel="rbf", gamma=0.5).fit(X)
    assert_array_equal(ours.signs_, 1.0)
    assert_allclose(ours.eigenvalues_, pca.eigenvalues_, rtol=1e-10)
    signs = np.sign(np.sum(ours.transform(X) * pca.transform(X), axis=0))
    assert_allclose(ours.transform(new) * signs, pca.transform(new), atol=1e-10)


def test_euclidean_distances_give_classical_scaling_also_for_new_items():
    X = np.random.default_rng(0).normal(size=(40, 3))
    D = squareform(pdist(X))
    model = KreinEmbedding("precomputed", None).fit(D[:30, :30])
    assert model.kind_ == "distance" and len(model.signs_) == 3
    Z = model.transform(D[:, :30])
    assert_allclose(squareform(pdist(Z)), D, atol=1e-9)
    assert_allclose(Z[:30].mean(axis=0), 0.0, atol=1e-10)


def test_squared_distances_are_signed_sums():
    D = squareform(pdist(np.random.default_rng(0).normal(size=(30, 4)), "cityblock"))
    model = KreinEmbedding("precomputed", None).fit(D)
    Z = model.transform(D)
    assert np.any(model.signs_ < 0.0)
    squares = [[((z - u) ** 2 * model.signs_).sum() for u in Z] for z in Z]
    assert_allclose(squares, D**2, atol=1e-9)


@pytest.mark.parametrize("landmarks", [40, 100, Landmarks(40, "uniform")])
def test_all_items_as_landmarks_are_exact(landmarks):
    X = np.random.default_rng(0).uniform(size=(40, 3))
    exact = KreinEmbedding(TL1(0.7), 6).fit_transform(X)
    assert_allclose(
        KreinEmbedding(TL1(0.7), 6, landmarks=landmarks).fit_transform(X), exact, atol=1e-12
    )


def test_landmarks_are_all_that_items_are_compared_with():
    X = np.random.default_rng(0).normal(size=(200, 3))
    seen = []

    def distance(a, b):
        seen.append((a.tobytes(), b.tobytes()))
        return float(np.abs(a - b).sum())

    model = KreinEmbedding(distance, None, landmarks=20, random_state=0).fit(X)
    assert len(seen) < 20**2 + 200  # one of them was asked whether it is symmetric
    Z = model.transform(X)
    D = squareform(pdist(X, "cityblock"))
    landmarks = model.landmarks_
    squares = [[((z - u) ** 2 * model.signs_).sum() for u in Z[landmarks]] for z in Z[landmarks]]
    assert_allclose(squares, D[np.ix_(landmarks, landmarks)] ** 2, atol=1e-8)
    given = KreinEmbedding("precomputed", None, landmarks=20, random_state=0).fit(D)
    assert_array_equal(given.landmarks_, landmarks)
    assert_allclose(given.transform(D), Z, atol=1e-8)


def test_axes_of_nothing_have_coordinates_of_nothing():
    D = squareform(pdist(np.arange(6.0)[:, None]))
    model = KreinEmbedding("precomputed", 3).fit(D)
    assert_array_equal(model.signs_, [1.0, 0.0, 0.0])
    assert_array_equal(model.transform(D)[:, 1:], 0.0)
    model = KreinEmbedding("precomputed", None, kind="similarity").fit(np.zeros((4, 4)))
    assert model.explained_ == 1.0 and model.transform(np.eye(4)).shape == (4, 1)
    assert_array_equal(model.transform(np.eye(4)), 0.0)


@pytest.mark.parametrize(
    "parameters, X, text",
    [
        ({"n_components": 0}, np.eye(3), "n_components=0 must be a positive whole number, or None"),
        ({"n_components": 1.5}, np.eye(3), "n_components=1.5 must be a positive whole number"),
        ({"kind": "x"}, np.eye(3), "kind='x' is not known; use 'auto', 'similarity'"),
        ({"kind": "distance"}, np.eye(3), "diagonal is not 0"),
        ({}, [[0.0, 1.0], [2.0, 0.0]], "X is not symmetric"),
        ({}, np.ones((2, 3)), "X must be square"),
        ({"landmarks": 0}, np.eye(3), "landmarks=0 must be a positive whole number"),
    ],
)
def test_bad_input_is_one_sentence(parameters, X, text):
    with pytest.raises(ValueError, match=text):
        KreinEmbedding("precomputed", **parameters).fit(X)
