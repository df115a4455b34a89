"""The pictures of the papers' figures draw what the models hold."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_moons
from test_papers import module

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from mercerless import DANKClassifier, HyperRidge, KreinRidge, LABRegressor, Sphere
from mercerless.datasets import make_lab_function
from mercerless.kernels import DeltaGauss

pictures = module("pictures")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def curve_data():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 60))[:, None]
    return X, np.sin(X[:, 0]) + 0.2 * rng.standard_normal(60)


def test_dank_convergence_and_adaptation():
    X, y = make_moons(120, noise=0.25, random_state=0)
    model = DANKClassifier(C=8.0).fit(X, y)
    convergence = pictures.draw_convergence(model, plt.figure().gca())
    assert len(convergence.gap) == len(model.history_[0]) and convergence.gap[-1] <= 1e-4

    _, axes = plt.subplots(1, 2)
    adaptation = pictures.draw_adaptation(model, y, axes, max_rows=50)
    assert adaptation.F.shape == (50, 50) and len(adaptation.eigenvalues) == model.rank_
    # rows with the largest coefficients, by class
    size = np.zeros(len(y))
    size[model.support_] = np.abs(model.dual_solution_[0])
    largest = np.argsort(-size, kind="stable")[:50]
    rows = np.concatenate([largest[y[largest] == label] for label in model.classes_])
    assert_allclose(adaptation.F, model.adaptation_[0].matrix(rows))
    assert adaptation.boundaries.tolist() == [np.sum(y[largest] == model.classes_[0])]
    assert_allclose(axes[0].images[0].get_array(), adaptation.F - 1)


def test_kernel_along_a_line():
    X, y = load_iris(return_X_y=True)
    kernel = HyperRidge(alpha=1e-4, landmarks=30, random_state=0).fit(X[::3], y[::3]).kernel_
    ax = plt.figure().gca()
    line = pictures.draw_kernel_line(kernel, X[0], X[100], ax)
    start = np.argmin(np.abs(line.position))
    assert_allclose(line.to_itself[start], kernel.diag(X[:1])[0], rtol=0.05)
    points = X[0] + line.position[:, None] * (X[100] - X[0])
    assert_allclose(line.to_start, kernel(points, X[:1])[:, 0])
    assert_allclose(line.to_end, kernel(points, X[100:101])[:, 0])
    assert_allclose(ax.lines[1].get_ydata(), line.to_end)
    with pytest.raises(ValueError, match="vectors of one length"):
        pictures.draw_kernel_line(kernel, X[0], X[0, :2], ax)


@pytest.mark.parametrize("regularizer", ["components", "strong"])
@pytest.mark.parametrize("constraint", [None, Sphere(0.9)])
def test_secular_curve_passes_through_the_solution(constraint, regularizer):
    X, y = curve_data()
    negative = 0.05 if regularizer == "components" else 0.01
    penalties = {"alpha_positive": 0.01, "alpha_negative": negative, "regularizer": regularizer}
    model = KreinRidge(DeltaGauss(1.0, 0.3), **penalties, constraint=constraint).fit(X, y)
    curve = pictures.draw_secular_curve(model, plt.figure().gca())
    multiplier, spread = curve.solution
    assert_allclose(spread, model.predict(X).std(), rtol=1e-8)
    left = curve.multiplier < curve.poles.min()
    assert np.all(np.diff(curve.spread[left]) > 0)
    assert_allclose(np.interp(multiplier, curve.multiplier, curve.spread), spread, rtol=1e-3)
    if constraint:
        assert_allclose(spread, 0.9, rtol=1e-8)


def test_each_output_has_its_own_curve():
    X, y = curve_data()
    targets = np.column_stack([y, 5.0 + 3.0 * np.cos(2.0 * X[:, 0])])
    penalties = {"alpha_positive": 0.01, "alpha_negative": 0.05}
    model = KreinRidge(DeltaGauss(1.0, 0.3), **penalties, constraint=Sphere([[0.9, 2.0]]))
    model.fit(X, targets)
    predicted = model.predict(X)
    for output in (0, 1):
        curve = pictures.secular_curve(model, output)
        assert_allclose(curve.solution, (model.multiplier_[output], predicted[:, output].std()))
        assert_allclose(curve.radius, [0.9, 2.0][output])


def test_lab_descent():
    X, y = make_lab_function(200, function="f2", random_state=0)
    model = LABRegressor(15, kernel="gaussian", max_iter=10, random_state=0).fit(X, y)
    _, (left, right) = plt.subplots(1, 2)
    pictures.draw_descent(model, (left, right))
    assert_allclose(left.lines[0].get_ydata(), model.loss_curve_)
    iterations, errors = model.validation_curve_.T
    assert_allclose(right.lines[0].get_ydata(), errors)
    assert_allclose(right.lines[1].get_xydata(), [[iterations[errors.argmin()], errors.min()]])
    with pytest.raises(ValueError, match="needs one feature; the model has 6"):
        pictures.draw_local_fit(model, X, y, (left, right))


def test_lab_fit_in_one_dimension():
    x = np.linspace(-2, 2, 120)[:, None]
    y = np.sin(2 * x[:, 0] ** 3)
    model = LABRegressor(12, kernel="gaussian", random_state=0).fit(x, y)
    _, axes = plt.subplots(2, 1)
    drawn = pictures.draw_local_fit(model, x, y, axes)
    assert_allclose(drawn.widths, model.bandwidths_[:, 0] * x.std(), rtol=1e-4)
    assert_allclose(axes[0].lines[1].get_ydata(), model.predict(drawn.grid[:, None]))
