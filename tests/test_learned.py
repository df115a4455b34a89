"""Learned kernels against their definitions, entry by entry."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercerless.kernels import GaussianHyper, TensorHyper, WishartHyper
from mercerless.kernels.learned import HyperExpansion, TensorExpansion


def tensor_expansion(trend):
    """A kernel with remembered items, the first and the last of which are equal."""
    rng = np.random.default_rng(0)
    items = rng.normal(size=(6, 2))
    items[-1] = items[0]
    items[2, 0] = 0.0
    core = rng.normal(size=(3, 3))
    values = rng.normal(size=(6, 6))
    knots = np.array([0.0, 1.0, 2.0]) if trend else np.zeros(0)
    return TensorExpansion(
        TensorHyper(1.5, trend=trend),
        landmarks=rng.normal(size=(4, 2)),
        projection=rng.normal(size=(4, 3)),
        core=core + core.T,
        knots=knots,
        trend_coef=rng.normal(size=4) if trend else np.zeros(0),
        items=items,
        item_coef=rng.normal(size=(3, 6)),
        item_values=values + values.T,
    )


def entry(kernel, x, y):
    """The documented value of one pair."""

    def number(z):
        same = [k for k, item in enumerate(kernel.items) if np.all(item == z)]
        return same[0] if same else None

    def coordinates(z):
        squares = np.sum((kernel.landmarks - z) ** 2, axis=1)
        scale = kernel.hyper_kernel.length_scale
        return np.exp(-squares / (2 * scale**2)) @ kernel.projection

    i, j = number(x), number(y)
    if i is not None and j is not None:
        return kernel.item_values[i, j]
    trend = 0.0
    if len(kernel.trend_coef):
        constant, same, *hats = kernel.trend_coef
        distance = np.linalg.norm(x - y)
        trend = constant + same * np.all(x == y) + np.interp(distance, kernel.knots, [0.0, *hats])
    if i is not None:
        return coordinates(y) @ kernel.item_coef[:, i] + trend
    if j is not None:
        return coordinates(x) @ kernel.item_coef[:, j] + trend
    return coordinates(x) @ kernel.core @ coordinates(y) + trend


@pytest.mark.parametrize("trend", [None, "distance"])
def test_remembered_items_and_new_ones_have_the_documented_values(trend):
    kernel = tensor_expansion(trend)
    new = np.random.default_rng(1).normal(size=(4, 2))
    X = np.vstack([new[:2], kernel.items[[0, 3, 5]], new[2:], new[:1]])
    Y = np.vstack([kernel.items[[2, 0]], new[:3]])
    assert_allclose(kernel(X, Y), [[entry(kernel, x, y) for y in Y] for x in X], rtol=1e-9)
    assert_allclose(kernel(X), [[entry(kernel, x, y) for y in X] for x in X], rtol=1e-9)
    assert_allclose(kernel.diag(X), [entry(kernel, x, x) for x in X], rtol=1e-9)


def test_the_two_zeros_are_one_item():
    kernel = tensor_expansion("distance")
    item = kernel.items[[2]]
    other = item.copy()
    other[0, 0] = -0.0
    assert np.signbit(other[0, 0]) != np.signbit(item[0, 0])
    assert_allclose(kernel(other, kernel.items), kernel(item, kernel.items))
    assert_allclose(kernel.diag(other), kernel.diag(item))


@pytest.mark.parametrize(
    "hyper", [GaussianHyper(1.3), WishartHyper(1.3)], ids=["gaussian", "wishart"]
)
def test_the_diagonal_of_an_expansion_is_that_of_its_matrix(hyper):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(5, 2) if isinstance(hyper, GaussianHyper) else (5, 2, 2))
    kernel = HyperExpansion(hyper, centers, rng.normal(size=5), intercept=0.7)
    X = rng.normal(size=(6, 2))
    matrix = [[kernel(x[None], y[None])[0, 0] for y in X] for x in X]
    assert_allclose(kernel(X), matrix, rtol=1e-10, atol=1e-12)
    assert_allclose(kernel.diag(X), np.diagonal(matrix), rtol=1e-10, atol=1e-12)
    without = HyperExpansion(hyper, centers, kernel.coef)
    assert_allclose(kernel(X) - without(X), 0.7, rtol=1e-10)
