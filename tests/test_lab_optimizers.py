"""Algorithm 1 of the LAB paper: steps on batches against an independent implementation, growth, and doors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import algorithm1 as oracle
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercerless import SGD, Adam, LABClassifier, LABRegressor, Support
from mercerless.kernels import LocalGaussian
from mercerless.lab.data import range_scaling
from mercerless.lab.model import Rows, Settings
from mercerless.lab.optimizers import bandwidths_of, take_steps
from mercerless.lab.selection import LocalLearner


def waves(n=40, d=2, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 3


def silent(info):
    return False


def algorithm1(support, optimizer, **options):
    return LABRegressor(
        support, objective="interpolation", optimizer=optimizer, random_state=0, **options
    )


@pytest.mark.parametrize(
    ("optimizer", "step"),
    [(SGD(0.05, n_steps=4), oracle.sgd(0.05)), (Adam(0.05, n_steps=4), oracle.adam(0.05))],
    ids=["sgd", "adam"],
)
def test_steps_on_batches_are_those_of_the_paper(optimizer, step):
    X, y = waves()
    X, y = oracle.scaled(X), oracle.scaled(y)
    support = np.array([3, 11, 20, 31])
    theta = np.random.RandomState(1).uniform(0.5, 2, size=(4, 2))
    problem = LocalLearner("gaussian", Settings(objective="interpolation")).problem(
        Rows(X, y[:, None]), support
    )
    optimizer = clone(optimizer).set_params(batch_size=9)
    steps = take_steps(
        problem, "gaussian", theta, support, optimizer, 4, np.random.RandomState(5), silent
    )
    random = np.random.RandomState(5)
    rest = np.setdiff1d(np.arange(len(y)), support)
    expected = theta
    values = []
    for _ in range(4):
        batch = random.choice(rest, 9, replace=False)
        residual = oracle.interpolant(X[batch], X, y, support, expected) - y[batch]
        values.append(np.mean(residual**2))
        expected = expected - step(oracle.gradient(X, y, support, batch, expected))
    assert_allclose(steps.theta, expected, rtol=1e-6)
    assert_allclose(steps.values, values, rtol=1e-6)
    assert not steps.diverged


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


def test_rows_above_the_bound_that_growth_did_not_see_are_said():
    X, y = waves(40)
    bounded = Support(5, selection="y", step=5, max_error=0.01)
    steps = Adam(0.01, batch_size=16, n_steps=40, initial_scale=4.0)
    repeated = np.vstack([X, X[:10]])
    with pytest.warns(ConvergenceWarning, match="equal rows have different targets"):
        model = algorithm1(bounded, steps).fit(repeated, np.concatenate([y, y[:10] + 0.5]))
    assert model.max_error_ <= 0.01  # of the means of equal rows
    X, y = waves(200)
    with pytest.warns(ConvergenceWarning, match="growth saw 40 rows; set max_rows=200 to use all"):
        model = algorithm1(bounded, steps, max_rows=40).fit(X, y)
    scaled = 2 * (y - y.min()) / np.ptp(y) - 1
    predicted = 2 * (model.predict(X) - y.min()) / np.ptp(y) - 1
    assert model.max_error_ <= 0.01 < np.max((predicted - scaled) ** 2)


def test_optimizers_take_turns_and_the_last_support_has_its_own_number_of_steps():
    X, y = waves(80)
    support = Support(10, selection="y", step=5, max_error=1e-9, max_support=20)
    first = Adam(0.002, n_steps=3, final_steps=11, initial_scale=4.0)
    model = algorithm1(support, [first, SGD(1e-6, n_steps=2)])
    with pytest.warns(ConvergenceWarning, match="Growth ended"):
        model.fit(X, y)
    assert len(model.loss_curve_) == 2 * (3 + 2) + (11 + 2)
    assert model.n_iter_ == len(model.loss_curve_)
    copy = clone(model)
    assert copy.optimizer[0].final_steps == 11 and copy.optimizer[0] is not first


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


def test_weights_count_as_repeated_rows_of_the_batch():
    X, y = waves()
    X, y = oracle.scaled(X), oracle.scaled(y)[:, None]
    support = np.arange(4)
    repeats = np.r_[np.ones(4, dtype=int), np.arange(36) % 3 + 1]
    theta = np.full((4, 2), 1.2)
    learner = LocalLearner("gaussian", Settings(objective="interpolation"))
    ends = []
    for rows in (
        Rows(X, y, repeats.astype(float)),
        Rows(np.repeat(X, repeats, axis=0), np.repeat(y, repeats, axis=0)),
    ):
        problem = learner.problem(rows, support)
        step = SGD(0.01, batch_size=1000)
        random = np.random.RandomState(0)
        ends.append(take_steps(problem, "gaussian", theta, support, step, 3, random, silent).theta)
    assert_allclose(ends[0], ends[1], rtol=1e-10)


@pytest.mark.parametrize("form", ["gaussian", "laplace", "exponential"])
def test_every_form_has_a_theta(form):
    X, y = waves(60)
    model = algorithm1(15, Adam(0.02, n_steps=40, initial_scale=4.0), kernel=form).fit(X, y)
    assert model.score(X, y) > 0.8
    theta = np.array([[0.5, -2.0]])
    widths = bandwidths_of(form, theta)
    assert_allclose(widths, 1 / (np.abs(theta) * (np.sqrt(2) if form == "gaussian" else 1)))
    if form == "gaussian":
        expected = oracle.kernel(X[:5], X[:1], theta)
        assert_allclose(LocalGaussian(widths)(X[:5], X[:1]), expected)


@pytest.mark.parametrize("optimizer", [None, Adam(0.01, n_steps=5, initial_scale=4.0)])
def test_all_rows_as_support_are_interpolated(optimizer):
    X, y = waves(30)
    model = algorithm1(30, optimizer, validation_fraction=None).fit(X, y)
    Z = model.scaling_(X)
    K = LocalGaussian(model.bandwidths_)(Z, Z[model.support_])
    target = y[model.support_]
    center, scale = (
        (y.mean(), y.std()) if optimizer is None else ((y.max() + y.min()) / 2, np.ptp(y) / 2)
    )
    system = K[model.support_] + 1e-5 * np.eye(30)
    expected = K @ np.linalg.solve(system, (target - center) / scale) * scale + center
    assert_allclose(model.predict(X), expected, rtol=1e-6)
    assert model.n_support_ == 30


def test_without_validation_the_remedy_is_named():
    X, y = waves(30)
    model = algorithm1(5, Adam(0.001, n_steps=5, initial_scale=4.0)).fit(X, y)
    with pytest.raises(ValueError, match="optimizer=None"):
        model.predict(X, return_std=True)


def test_classes_are_learned_by_steps_too():
    X, y = waves(150)
    labels = np.array(["low", "high"])[(y > 3).astype(int)]
    model = LABClassifier(
        25,
        objective="interpolation",
        optimizer=Adam(0.02, n_steps=80, initial_scale=4.0),
        random_state=0,
    ).fit(X, labels)
    assert model.score(X, labels) > 0.9
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_targets_and_features_are_scaled_to_their_range():
    X, _ = waves()
    X[:, 1] = 7.0
    scaling = range_scaling(X)
    Z = scaling(X)
    assert_allclose([Z[:, 0].min(), Z[:, 0].max()], [-1, 1])
    assert_array_equal(Z[:, 1], 0)
    far = X[:1] + [[1e3, 0]]
    assert scaling(far)[0, 0] > 100  # not clipped


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "evidence"}, "objective='interpolation', not 'evidence'"),
        ({"optimizer": "adam"}, "must be None, Adam"),
        ({"optimizer": []}, "must be None, Adam"),
        ({"optimizer": [Adam(), 3]}, "must be None, Adam"),
        ({"optimizer": SGD(-1.0)}, "learning_rate"),
        ({"optimizer": Adam(batch_size=0)}, "batch_size"),
        ({"optimizer": Adam(n_steps=1.5)}, "n_steps"),
        ({"optimizer": Adam(final_steps=0)}, "final_steps"),
        ({"optimizer": Adam(initial_scale=0.0)}, "initial_scale"),
        ({"n_support": Support(5, step=0)}, "step"),
    ],
)
def test_bad_optimizers_raise_before_work(change, message):
    X, y = waves()
    model = algorithm1(5, Adam(n_steps=2)).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
