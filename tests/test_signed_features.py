"""SignedRandomFeatures: unbiased, exact on the diagonal, errors that fall as one over a root, parts of all kernels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.linear_model import Ridge

from mercerless import KreinRidge, SignedRandomFeatures, config_context
from mercerless.kernels import TL1, DeltaGauss, Exponential, Gaussian, Laplace

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
EUCLIDEAN = cdist(X, X)
CITYBLOCK = cdist(X, X, "cityblock")


def gauss(scale):
    return np.exp(-(EUCLIDEAN**2) / (2 * scale**2))


# matrices by formulas of their own
KERNELS = {
    "gaussian": (Gaussian(1.3), gauss(1.3)),
    "scales": (Gaussian([1.0, 2.0, 0.5]), np.exp(-0.5 * cdist(X / [1.0, 2.0, 0.5], X / [1.0, 2.0, 0.5]) ** 2)),
    "laplace": (Laplace(2.0), np.exp(-CITYBLOCK / 2.0)),
    "exponential": (Exponential(1.5), np.exp(-EUCLIDEAN / 1.5)),
    "delta": (DeltaGauss(1.5, 0.6), gauss(1.5) - gauss(0.6)),
    "difference": (Gaussian(2.0) - 0.5 * Laplace(1.0), gauss(2.0) - 0.5 * np.exp(-CITYBLOCK)),
    "product": (
        Gaussian(2.0) * (Laplace(3.0) - Gaussian(1.0)),
        gauss(2.0) * (np.exp(-CITYBLOCK / 3.0) - gauss(1.0)),
    ),
    "constant": (Gaussian(1.0) - 0.3, gauss(1.0) - 0.3),
}  # fmt: skip


def estimate(kernel, n_components, seed):
    model = SignedRandomFeatures(kernel, n_components, random_state=seed).fit(X)
    Z = model.transform(X)
    return (Z * model.signs_) @ Z.T


@pytest.mark.parametrize("name", KERNELS)
def test_estimates_are_unbiased_and_exact_on_the_diagonal(name):
    kernel, expected = KERNELS[name]
    estimates = np.array([estimate(kernel, 60, seed) for seed in range(200)])
    error = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert np.all(np.abs(estimates.mean(axis=0) - expected) <= 4.5 * error + 1e-12)
    diagonal = np.diagonal(estimates, axis1=1, axis2=2)
    assert_allclose(diagonal, np.broadcast_to(expected.diagonal(), diagonal.shape), atol=1e-12)


@pytest.mark.parametrize("name", ["delta", "difference", "product"])
def test_errors_fall_as_one_over_the_root(name):
    kernel, expected = KERNELS[name]
    sizes = np.array([50, 200, 800, 3200])
    errors = [
        np.sqrt(np.mean([(estimate(kernel, size, seed) - expected) ** 2 for seed in range(30)]))
        for size in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.56 < slope < -0.44


def test_parts_have_frequencies_in_proportion_to_their_weights():
    for factor, other, n_components, n_of_both in [
        (3.0, 1.0, 200, (150, 50)),
        (1.0, 1e-9, 10, (8, 2)),
        (1.0, 1.0, 2, (2, 2)),  # no part goes without
    ]:
        kernel = factor * Gaussian() - other * Laplace()
        model = SignedRandomFeatures(kernel, n_components, random_state=0).fit(X)
        assert (np.sum(model.signs_ > 0), np.sum(model.signs_ < 0)) == n_of_both
        size = np.sum(model.amplitudes_[model.signs_[: len(model.amplitudes_)] > 0] ** 2)
        assert_allclose(size, factor)  # the kernel's value for equal items
    three = 0.3 * Gaussian() + 0.3 * Exponential() - 0.4 * Laplace()
    assert len(SignedRandomFeatures(three, 22, random_state=0).fit(X).signs_) == 22


def test_ridge_on_the_features_is_ridge_regression_with_the_norm_of_both_parts():
    y = np.sin(2 * X[:, 0])
    kernel = DeltaGauss(1.5, 0.6)
    model = SignedRandomFeatures(kernel, 200, random_state=0).fit(X)
    Z = model.transform(X)
    linear = Ridge(0.1, fit_intercept=False).fit(Z, y)
    both = Z @ Z.T  # positive and negative part added
    machine = KreinRidge(
        "precomputed", alpha_positive=0.1 / 12, regularizer="strong", fit_intercept=False
    )
    assert_allclose(linear.predict(Z), machine.fit(both, y).predict(both), atol=1e-10)


@pytest.mark.parametrize("parameters, message", [
    ({"kernel": TL1(2.0)}, "frequencies of TL1"),
    ({"n_components": 0}, "n_components"),
    ({"kernel": "precomputed"}, "frequencies of"),
])  # fmt: skip
def test_what_cannot_be_drawn_raises(parameters, message):
    with pytest.raises(ValueError, match=message):
        SignedRandomFeatures(**parameters).fit(np.eye(4))


def test_memory_is_checked_before_any_work():
    model = SignedRandomFeatures(Gaussian(), 100, random_state=0).fit(X)
    with config_context(memory_limit="1kB"):
        with pytest.raises(MemoryError, match="transform fewer rows at a time"):
            model.transform(X)
        with pytest.raises(MemoryError, match="use fewer components"):
            SignedRandomFeatures(Gaussian(), 100, random_state=0).fit(X)
    with config_context(memory_limit="40kB"):  # several blocks of rows
        assert_allclose(model.transform(np.vstack([X, X])), np.vstack([model.transform(X)] * 2))
