"""Algorithm 1 of the LAB paper, against an independent implementation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import algorithm1 as oracle
from sklearn.exceptions import ConvergenceWarning

from mercerless import SGD, Adam, LABClassifier, LABRegressor, Support


def waves(n=40, d=2, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 3


def algorithm1(support, optimizer, **options):
    return LABRegressor(
        support, objective="interpolation", optimizer=optimizer, random_state=0, **options
    )


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_the_estimator_is_algorithm_1(kind):
    X, y = waves(30)
    optimizer = {"sgd": SGD, "adam": Adam}[kind](0.03, batch_size=100, n_steps=6, initial_scale=5.0)
    support = Support(4, selection="y", step=3, max_error=0.002, max_support=13)
    model = algorithm1(support, optimizer)
    with pytest.warns(ConvergenceWarning, match="Growth ended at 13 support points"):
        model.fit(X, y)
    new_step = {"sgd": lambda: oracle.sgd(0.03), "adam": lambda: oracle.adam(0.03)}[kind]
    Z, t = oracle.scaled(X), oracle.scaled(y)
    chosen, theta = oracle.algorithm1(Z, t, 4, 5.0, new_step, 6, 3, 0.002, 13)
    assert_array_equal(model.support_, chosen)
    assert_allclose(model.bandwidths_, 1 / (np.sqrt(2) * np.abs(theta)), rtol=1e-5)
    new, _ = waves(20, seed=2)
    low, high = X.min(axis=0), X.max(axis=0)
    expected = oracle.interpolant(2 * (new - low) / (high - low) - 1, Z, t, chosen, theta)
    in_units = (expected + 1) / 2 * np.ptp(y) + y.min()
    assert_allclose(model.predict(new), in_units, rtol=1e-5)
    errors = (oracle.interpolant(Z, Z, t, chosen, theta) - t) ** 2
    assert_allclose(model.max_error_, errors.max(), rtol=1e-4)
    assert len(model.loss_curve_) == 4 * 6
    assert not model.coef_.any() and model.out_of_fold_ is None


def test_growth_ends_at_the_bound_by_whole_steps():
    X, y = waves(120)
    model = algorithm1(
        Support(10, selection="y", step=7, max_error=0.01),
        Adam(0.02, batch_size=32, n_steps=60, initial_scale=4.0),
    ).fit(X, y)
    assert model.max_error_ <= 0.01
    assert model.n_support_ % 7 == 3 and 10 < model.n_support_ < 120
    assert len(np.unique(model.support_)) == model.n_support_


def test_steps_that_diverge_are_said():
    X, y = waves(80)
    model = algorithm1(20, SGD(1e3, batch_size=16, n_steps=20, initial_scale=4.0))
    with pytest.warns(ConvergenceWarning, match="lower the learning_rate"):
        model.fit(X, y)
    assert model.certificate_ == np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        broken = algorithm1(20, SGD(1e308, batch_size=16, n_steps=5, initial_scale=4.0))
        with pytest.warns(ConvergenceWarning, match="lower the learning_rate"):
            broken.fit(X, y)
    assert np.all(np.isfinite(broken.predict(X)))


@pytest.mark.parametrize("form", ["gaussian", "laplace", "exponential"])
def test_every_form_has_a_theta(form):
    X, y = waves(60)
    model = algorithm1(15, Adam(0.02, n_steps=40, initial_scale=4.0), kernel=form).fit(X, y)
    assert model.score(X, y) > 0.8
    still = Adam(1e-12, n_steps=1, initial_scale=5.0)  # theta is the root of 5 / 2 features
    model = algorithm1(15, still, kernel=form).fit(X, y)
    factor = np.sqrt(2) if form == "gaussian" else 1
    assert_allclose(model.bandwidths_, 1 / (factor * np.sqrt(2.5)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "evidence"}, "objective='interpolation', not 'evidence'"),
        ({"optimizer": "adam"}, "must be None, Adam"),
        ({"optimizer": [Adam(), 3]}, "must be None, Adam"),
        ({"optimizer": SGD(-1.0)}, "learning_rate"),
        ({"optimizer": Adam(batch_size=0)}, "batch_size"),
        ({"optimizer": Adam(n_steps=1.5)}, "n_steps"),
        ({"optimizer": Adam(initial_scale=0.0)}, "initial_scale"),
        ({"n_support": Support(5, step=0)}, "step"),
    ],
)
def test_bad_optimizers_raise_before_work(change, message):
    X, y = waves()
    model = algorithm1(5, Adam(n_steps=2)).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_the_bound_is_said_to_hold_for_the_rows_that_growth_saw():
    X, y = waves(200)
    bounded = Support(5, selection="y", step=5, max_error=0.01)
    steps = Adam(0.01, batch_size=16, n_steps=40, initial_scale=4.0)
    with pytest.warns(ConvergenceWarning, match="set max_rows=200 to use all"):
        model = algorithm1(bounded, steps, max_rows=40).fit(X, y)
    scaled = 2 * (y - y.min()) / np.ptp(y) - 1
    predicted = 2 * (model.predict(X) - y.min()) / np.ptp(y) - 1
    assert model.max_error_ <= 0.01 < np.max((predicted - scaled) ** 2)


def test_optimizers_take_turns():
    X, y = waves(80)
    support = Support(10, selection="y", step=5, max_error=1e-9, max_support=20)
    model = algorithm1(support, [Adam(0.002, n_steps=3, initial_scale=4.0), SGD(1e-6, n_steps=2)])
    with pytest.warns(ConvergenceWarning, match="Growth ended"):
        model.fit(X, y)
    assert len(model.loss_curve_) == model.n_iter_ == 3 * (3 + 2)
    assert_array_equal(model.growth_curve_[:, 0], [10, 15, 20])


def test_classes_are_learned_by_steps_too():
    X, y = waves(150)
    labels = np.array(["low", "high"])[(y > 3).astype(int)]
    steps = Adam(0.02, n_steps=80, initial_scale=4.0)
    model = LABClassifier(25, objective="interpolation", optimizer=steps).fit(X, labels)
    assert model.score(X, labels) > 0.9
    with pytest.raises(ValueError, match="optimizer=None"):
        model.predict_set(X)
