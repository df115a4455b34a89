"""DirectedEmbedding: inner products, kernel PCA as the symmetric case, new items, landmarks, both directions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import DirectedEmbedding, Landmarks
from mercerless.kernels import Gaussian, LocalGaussian


def directed(n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n))


def centered(K):
    J = np.eye(len(K)) - 1.0 / len(K)
    return J @ K @ J


def sources_and_targets(model, *rows):
    return np.hsplit(model.transform(*rows), 2)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("center", [True, False])
def test_inner_products_of_sources_and_targets_are_the_similarities(center, scale):
    K = (directed() + 3.0) * scale
    model = DirectedEmbedding("precomputed", None, kind="similarity", center=center)
    source, target = np.hsplit(model.fit_transform(K), 2)
    assert_allclose(source @ target.T, centered(K) if center else K, atol=1e-9 * scale)
    assert_array_equal(model.transform(K, K.T), np.hstack([source, target]))
    assert model.explained_ == pytest.approx(1.0) and not model.symmetric_
    values = np.linalg.svd(centered(K) if center else K, compute_uv=False)
    assert_allclose(model.singular_values_, values[: len(model.singular_values_)], rtol=1e-10)
    for side in (source, target):
        assert_allclose((side**2).sum(axis=0), model.singular_values_)


def test_few_axes_are_the_best_approximation_of_their_rank():
    K = directed()
    model = DirectedEmbedding("precomputed", 5, kind="similarity").fit(K)
    source, target = sources_and_targets(model, K, K.T)
    values = np.linalg.svd(K, compute_uv=False)
    gap = np.linalg.norm(K - source @ target.T)
    assert gap == pytest.approx(np.linalg.norm(values[5:]))
    assert model.explained_ == pytest.approx(np.sum(values[:5] ** 2) / np.sum(values**2))


def leaning(a, b):
    """A similarity that is larger from small to large first features."""
    return float(np.exp(-np.sum((a - b) ** 2) / 4 + 0.3 * (b[0] - a[0])))


def test_new_items_by_a_function_are_those_of_its_matrices_in_both_directions():
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = np.array([[leaning(a, b) for b in X] for a in X])
    options = {"kind": "similarity", "center": True}
    by_matrix = DirectedEmbedding("precomputed", 6, **options).fit(K[:20, :20])
    by_function = DirectedEmbedding(leaning, 6, **options).fit(X[:20])
    expected = by_matrix.transform(K[20:, :20], reverse=K[:20, 20:].T)
    assert_allclose(by_function.transform(X[20:]), expected, atol=1e-9)
    # exchanging the directions exchanges sources and targets; only their signs may differ
    swapped = DirectedEmbedding("precomputed", 6, **options).fit(K[:20, :20].T)
    back = swapped.transform(K[:20, 20:].T, reverse=K[20:, :20])
    assert_allclose(np.abs(back), np.abs(np.roll(expected, 6, axis=1)), atol=1e-9)


def test_sides_are_the_halves_and_the_left_one_needs_no_other_direction():
    K = directed()
    K_new = directed(seed=1)[:5]
    reverse = directed(seed=2)[:5]
    options = {"kind": "similarity", "n_components": 3}
    both = DirectedEmbedding("precomputed", **options).fit(K).transform(K_new, reverse)
    left = DirectedEmbedding("precomputed", side="left", **options).fit(K)
    right = DirectedEmbedding("precomputed", side="right", **options).fit(K)
    assert_array_equal(left.transform(K_new), both[:, :3])
    assert_array_equal(right.transform(K_new, reverse), both[:, 3:])
    assert list(left.get_feature_names_out()) == [f"directedembedding{i}" for i in range(3)]
    with pytest.raises(ValueError, match="missing; pass reverse, or use side='left'"):
        right.transform(K_new)


def test_a_symmetric_matrix_needs_no_other_direction():
    K = Gaussian(1.0)(np.random.default_rng(0).normal(size=(25, 2)))
    model = DirectedEmbedding("precomputed", 4).fit(K[:20, :20])
    rows = K[20:, :20]
    assert_array_equal(model.transform(rows), model.transform(rows, rows))


@pytest.mark.parametrize("landmarks", [40, 100, Landmarks(40, "uniform")])
def test_all_items_as_landmarks_are_exact(landmarks):
    K = directed()
    exact = DirectedEmbedding("precomputed", 6, kind="similarity").fit_transform(K)
    model = DirectedEmbedding("precomputed", 6, kind="similarity", landmarks=landmarks)
    assert_allclose(model.fit_transform(K), exact, atol=1e-12)


def test_with_landmarks_a_matrix_of_their_rank_is_exact():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 60))
    model = DirectedEmbedding("precomputed", None, kind="similarity", landmarks=15, random_state=0)
    source, target = np.hsplit(model.fit_transform(K), 2)
    assert len(model.landmarks_) == 15 and source.shape == (60, 4)
    assert_allclose(source @ target.T, K, atol=1e-9)


def test_dissimilarities_decay():
    D = np.abs(directed())
    np.fill_diagonal(D, 0.0)
    model = DirectedEmbedding("precomputed", None, kind="distance")
    source, target = np.hsplit(model.fit_transform(D), 2)
    unit = np.median(D[~np.eye(40, dtype=bool)])
    assert_allclose(source @ target.T, np.exp(-D / unit), atol=1e-10)


def test_axes_of_nothing_have_coordinates_of_nothing():
    model = DirectedEmbedding("precomputed", 2, kind="similarity", center=True)
    coordinates = model.fit_transform(np.full((4, 4), 7.0))
    assert_array_equal(model.singular_values_, 0.0)
    assert_array_equal(coordinates, np.zeros((4, 4)))
    model = DirectedEmbedding("precomputed", None, kind="similarity", center=True)
    model.fit(np.zeros((4, 4)))
    assert model.explained_ == 1.0 and model.singular_values_.shape == (1,)


@pytest.mark.parametrize(
    "parameters, X, text",
    [
        ({"n_components": 0}, np.eye(3), "n_components=0 must be a positive whole number, or None"),
        ({"side": "up"}, np.eye(3), "side='up' is not known; use 'both', 'left' or 'right'"),
        ({"kind": "x"}, np.eye(3), "kind='x' is not known; use 'auto', 'similarity'"),
        ({}, np.ones((2, 3)), "X must be square"),
        ({"landmarks": 0}, np.eye(3), "landmarks=0 must be a positive whole number"),
    ],
)
def test_bad_input_is_one_sentence(parameters, X, text):
    with pytest.raises(ValueError, match=text):
        DirectedEmbedding("precomputed", **parameters).fit(X)


def test_new_items_have_no_bandwidths_as_targets():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, 20, 3))
    kernel = LocalGaussian(np.exp(0.3 * rng.normal(size=(20, 3))))
    both = DirectedEmbedding(kernel, None)
    source, target = np.hsplit(both.fit_transform(X), 2)
    assert_allclose(source @ target.T, kernel(X), atol=1e-10)
    with pytest.raises(ValueError, match="new ones, which have no bandwidths"):
        both.transform(new)
    left = DirectedEmbedding(kernel, 5, side="left").fit(X)
    assert_allclose(left.transform(new)[:4], left.transform(new[:4]), rtol=1e-10)
