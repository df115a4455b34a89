"""Displays of Krein models draw the numbers they are given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

from mercerless import KreinRidge, KreinRidgeClassifier, Sphere
from mercerless.inspection import KreinPartsDisplay, ValidationSurfaceDisplay
from mercerless.kernels import DeltaGauss


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def data():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 60))[:, None]
    return X, np.sin(X[:, 0]) + 0.2 * rng.standard_normal(60)


def test_surface_shows_the_least_error_over_the_radii():
    X, y = data()
    model = KreinRidge(DeltaGauss(1.0, 0.3), constraint=Sphere()).fit(X, y)
    display = ValidationSurfaceDisplay.from_estimator(model)
    assert display.error.shape == (5, 17)
    assert_allclose(display.error.min(), model.cv_results_["error"].min())
    assert_allclose(
        display.chosen, (model.alpha_positive_, model.alpha_negative_ / model.alpha_positive_)
    )
    errors = model.cv_results_["error"].reshape(5, 17, 6)  # ratios, strong to weak, radii
    ratios = np.divide(*(model.cv_results_[f"alpha_{sign}"] for sign in ("negative", "positive")))
    by_ratio = errors.min(axis=2)[np.argsort(ratios.reshape(5, -1)[:, 0]), ::-1]
    assert_allclose(display.error, by_ratio)
    assert_allclose([line.get_ydata() for line in display.ax_.lines[:5]], by_ratio)


def test_surface_of_a_grid_of_penalties_has_gaps_where_nothing_was_tried():
    X, y = data()
    model = KreinRidge(
        DeltaGauss(1.0, 0.3), alpha_positive=[1e-4, 1e-2], alpha_negative=[1e-4, 1e-2]
    ).fit(X, y)
    display = ValidationSurfaceDisplay.from_estimator(model)
    assert_allclose(display.ratio, [0.01, 1.0, 100.0])
    assert np.isnan(display.error).sum() == 2
    assert_allclose(np.nanmin(display.error), model.cv_results_["error"].min())


def test_surface_refuses_models_without_a_grid():
    X, y = data()
    model = KreinRidge(alpha_positive=0.1, alpha_negative=0.1).fit(X, y)
    with pytest.raises(ValueError, match="searched no grid"):
        ValidationSurfaceDisplay.from_estimator(model)


def test_each_output_has_its_own_parts():
    X, y = data()
    targets = np.column_stack([y, 5.0 + 3.0 * np.cos(2.0 * X[:, 0])])
    given = {"alpha_positive": 0.01, "alpha_negative": 0.05}
    model = KreinRidge(DeltaGauss(1.0, 0.3), **given, constraint=Sphere([[0.9, 2.0]]))
    model.fit(X, targets)
    predicted = model.predict(X)
    for output in (0, 1):
        parts = KreinPartsDisplay.from_estimator(model, X, output=output)
        whole = parts.positive + parts.negative + parts.intercept
        assert_allclose(whole, predicted[:, output], atol=1e-10)


def test_parts_along_a_feature_and_against_each_other():
    X, y = data()
    model = KreinRidge(DeltaGauss(1.0, 0.3)).fit(X, y)
    display = KreinPartsDisplay.from_estimator(model, X, y)
    drawn = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    assert_allclose(drawn["f+"] + drawn["f-"] + model.intercept_, drawn["f"], atol=1e-12)
    assert_allclose(drawn["f"], model.predict(X), atol=1e-10)
    K = DeltaGauss(1.0, 0.3)(X)
    classifier = KreinRidgeClassifier("precomputed").fit(K, y > 0)
    scatter = KreinPartsDisplay.from_estimator(classifier, K, y > 0).ax_.collections[0]
    assert_allclose(scatter.get_offsets().T, [part.ravel() for part in classifier.predict_parts(K)])
    assert_allclose(scatter.get_array(), y > 0)
