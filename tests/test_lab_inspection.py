"""Displays of LAB models draw what the model holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

from mercerless import LABClassifier, LABRegressor, Support
from mercerless.datasets import make_lab_function
from mercerless.inspection import BandwidthDisplay, GrowthDisplay


@pytest.fixture(scope="module")
def model():
    X, y = make_lab_function(200, function="f2", random_state=0)
    return LABRegressor(15, kernel="gaussian", max_iter=10, random_state=0).fit(X, y)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_bandwidths(model):
    display = BandwidthDisplay.from_estimator(model, max_features=4)
    assert_allclose(display.relevance, 1 / model.bandwidths_)
    image = display.ax_.images[0].get_array()
    assert image.shape == (4, 15)
    assert np.all(np.diff(image.mean(axis=1)) <= 1e-12), "the most relevant feature comes first"
    assert "gaussian" in display.ax_.get_title()
    assert_allclose(display.order, model.predict(model.support_vectors_))
    features = np.argsort(-display.relevance.mean(axis=0))[:4]
    by_prediction = display.relevance[np.argsort(display.order)]
    assert_allclose(image, by_prediction[:, features].T)


def test_growth():
    X, y = make_lab_function(200, function="f1", random_state=0)
    support = Support(10, max_error=0.5)
    model = LABRegressor(support, objective="interpolation", max_iter=20, random_state=0).fit(X, y)
    display = GrowthDisplay.from_estimator(model)
    line, bound = display.ax_.lines
    assert_allclose(line.get_xydata(), model.growth_curve_)
    assert bound.get_ydata()[0] == 0.5
    assert model.growth_curve_[0, 0] == 10 and model.growth_curve_[-1, 0] == model.n_support_


def test_bandwidths_of_a_classifier():
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LABClassifier(8, kernel="laplace", max_iter=5, random_state=0).fit(X, y)
    assert BandwidthDisplay.from_estimator(model).relevance.shape == (8, 3)
