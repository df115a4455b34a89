"""LABRegressor and LABClassifier: what they state, validation, bad input, large data."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest
from conftest import frozen
from numpy.testing import assert_allclose, assert_array_equal
from oracles.lab import local_kernel
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercerless import LABClassifier, LABRegressor, Support, UselessModelWarning, config_context
from mercerless.datasets import make_lab_function

QUICK = {"n_support": 12, "kernel": "gaussian", "max_iter": 10, "random_state": 0}


@pytest.fixture(scope="module")
def waves():
    X, y = make_lab_function(500, function="f1", noise=0.01, random_state=0)
    return frozen(X[:300]), frozen(y[:300]), frozen(X[300:]), frozen(y[300:])


def test_few_support_points_beat_kernel_ridge_with_as_many(waves):
    X, y, T, z = waves
    model = LABRegressor(n_support=30, random_state=0).fit(X, y)
    peer = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=2.0, alpha=1e-2)).fit(
        X[:30], y[:30]
    )
    assert model.score(T, z) > 0.95 > peer.score(T, z) + 0.1
    assert model.n_support_ == 30
    assert model.support_vectors_.shape == model.bandwidths_.shape == (30, 2)
    assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.n_parameters_ == 30 * (2 + 2 + 1) + 3
    assert (
        np.all(np.diff(model.loss_curve_) <= 1e-12) and model.loss_curve_[0] > model.loss_curve_[-1]
    )
    iterations, errors = model.validation_curve_.T
    assert iterations[0] == 0 and np.all(np.diff(iterations) > 0) and np.all(errors > 0)


def by_the_attributes(model, T):
    """What a reader of the documentation would compute from the public attributes, with kernels of the oracle."""
    Z, S = model.scaling_(T), model.scaling_(model.support_vectors_)
    K = local_kernel(model.kernel, Z, S, model.bandwidths_)
    return K @ model.dual_coef_.T + model.intercept_ + Z @ model.coef_.T


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "exponential"])
def test_the_public_attributes_determine_the_predictions(waves, kernel):
    X, y, T, _ = waves
    parameters = {**QUICK, "kernel": kernel}
    model = LABRegressor(**parameters).fit(X[:100], np.stack([y, np.cos(y)], axis=1)[:100])
    assert_allclose(by_the_attributes(model, T), model.predict(T), rtol=1e-8, atol=1e-8)
    assert_array_equal(model.expansion_(T), model.predict(T))
    assert_array_equal(model.support_vectors_, X[model.support_])
    for labels in (y[:100] > 0, np.digitize(y[:100], [-0.5, 0.5])):
        classifier = LABClassifier(**parameters).fit(X[:100], labels)
        scores = by_the_attributes(classifier, T)
        scores = np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores
        calibration = classifier.calibration_
        P = softmax(calibration.slope * scores + calibration.bias, axis=1)
        assert_allclose(classifier.predict_proba(T), P, rtol=1e-7, atol=1e-10)
        assert_array_equal(classifier.predict(T), classifier.classes_[P.argmax(axis=1)])


@pytest.mark.slow
@pytest.mark.parametrize("function", ["f2", "f3"])
def test_noise_does_not_hurt_as_it_hurts_interpolation(function):
    X, y = make_lab_function(800, function=function, noise=0.2, random_state=0)
    clean = make_lab_function(1600, function=function, random_state=1)
    ours = LABRegressor(n_support=80, kernel="gaussian", random_state=0).fit(X, y)
    ridgeless = []
    for gamma in np.logspace(-2, 1, 7):
        peer = make_pipeline(
            StandardScaler(), KernelRidge(kernel="rbf", gamma=gamma, alpha=1e-8)
        ).fit(X, y - y.mean())
        if peer.score(X, y - y.mean()) > 0.99:  # wide kernels do not interpolate in floating point
            ridgeless.append(peer.score(clean[0], clean[1] - y.mean()))
    assert ours.score(*clean) > 0.93
    assert ours.score(*clean) > max(ridgeless) + 0.15


def test_growth_reaches_its_bound_or_warns(waves):
    X, y = waves[:2]
    growth = Support(15, selection="y", max_error=0.5)
    model = LABRegressor(growth, kernel="gaussian", max_iter=50, random_state=0).fit(X, y)
    assert model.max_error_ <= 0.5 * (1 + 1e-6) and 15 <= model.n_support_ < 300
    capped = clone(model).set_params(
        n_support__max_error=1e-8, n_support__max_support=20, max_iter=10
    )
    with pytest.warns(ConvergenceWarning, match="raise max_support or max_error") as caught:
        capped.fit(X, y)
    assert capped.n_support_ == 20 and caught[0].filename == __file__
    assert growth.max_error == 0.5


def test_without_validation(waves):
    X, y, T, z = waves
    model = LABRegressor(20, validation_fraction=None, max_iter=20, random_state=0).fit(X, y)
    assert model.validation_curve_.shape == (0, 2) and model.out_of_fold_ is None
    assert model.score(T, z) > 0.8


@pytest.mark.parametrize("parameters, message", [
    ({"n_support": 301}, "n_support=301 is more than the 300 training rows"),
    ({"n_support": 0}, "n_support=0 must be"),
    ({"n_support": 1.5}, "n_support=1.5 must be"),
    ({"n_support": "all"}, "n_support='all' must be"),
    ({"n_support": True}, "n_support=True must be"),
    ({"kernel": "cauchy"}, "kernel='cauchy' is not known; use 'gaussian'"),
    ({"n_support": Support(selection="best")}, "selection='best' is not known"),
    ({"objective": "loss"}, "objective='loss' is not known"),
    ({"alpha": 0}, "alpha=0 must be a positive number"),
    ({"n_support": Support(301)}, "n_support=301 is more than the 300 training rows"),
    ({"n_support": Support(max_error=-1.0)}, "max_error=-1.0 must be a positive number"),
    ({"n_support": Support(max_support=0)}, "max_support=0 must be a positive whole number"),
    ({"validation_fraction": 1.0}, "validation_fraction=1.0 must lie between"),
    ({"max_iter": 0}, "max_iter=0 must be a positive whole number"),
    ({"max_rows": 2.5}, "max_rows=2.5 must be"),
])  # fmt: skip
def test_bad_parameters(waves, parameters, message):
    with pytest.raises(ValueError, match=message):
        LABRegressor(**parameters).fit(*waves[:2])


@pytest.mark.slow
def test_degenerate_data(waves):
    X, y, T, z = waves
    constant = np.hstack([X, np.full((300, 1), 7.0), np.full((300, 1), 1e15)])
    new = np.hstack([T, np.full((200, 1), 7.0), np.full((200, 1), 1e15)])
    assert LABRegressor(30, kernel="gaussian", random_state=0).fit(constant, y).score(new, z) > 0.8
    level = LABRegressor(**QUICK).fit(X, np.full(300, 4.2))
    assert_allclose(level.predict(T), 4.2, rtol=1e-8)
    with pytest.warns(UselessModelWarning, match="X is constant"):
        nothing = LABRegressor(**QUICK).fit(np.ones((30, 2)), np.arange(30.0))
    assert_allclose(nothing.predict(np.ones((2, 2))), 14.5, rtol=0.05)
    with pytest.warns(UselessModelWarning):  # copies count as independent rows in the evidence
        repeated = LABRegressor(**QUICK).fit(np.repeat(X[:20], 10, axis=0), np.repeat(y[:20], 10))
    assert np.isfinite(repeated.predict(T)).all()
    few = LABRegressor(random_state=0).fit(X[:3], y[:3])
    assert np.isfinite(few.predict(T)).all()
    tiny = LABRegressor(random_state=0).fit(X[:6], y[:6])
    assert np.isfinite(tiny.predict(T)).all()


def test_a_strange_value_of_a_new_row_does_not_carry_the_prediction_away():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = 2 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=120)
    model = LABRegressor(n_support=10, kernel="gaussian", max_iter=5, random_state=0).fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    row = X[:1].copy()
    row[0, 0] = 1e9
    bound = X[:1].copy()
    bound[0, 0] = high[0] + (high[0] - low[0]) / 4
    assert_allclose(model.predict(row), model.predict(bound))
    inside = X[:1] + [[high[0] - X[0, 0] + 0.2 * (high[0] - low[0]), 0, 0]]
    assert model.predict(inside) < model.predict(bound)  # the trend goes on for a while


@pytest.mark.slow
def test_large_data_is_read_in_blocks_from_a_memory_map(tmp_path):
    X, y = make_lab_function(6000, function="f1", noise=0.05, random_state=0)
    file = np.memmap(tmp_path / "rows.dat", dtype=np.float32, mode="w+", shape=X.shape)
    file[:] = X
    file.flush()
    rows = np.memmap(tmp_path / "rows.dat", dtype=np.float32, mode="r", shape=X.shape)
    model = LABRegressor(40, kernel="gaussian", max_rows=1500, max_iter=40, random_state=0).fit(
        rows, y
    )
    assert model.score(*make_lab_function(1000, function="f1", random_state=1)) > 0.97
    whole = LABRegressor(40, kernel="gaussian", max_rows=1500, max_iter=40, random_state=0).fit(
        X.astype(np.float32), y
    )
    assert_allclose(whole.predict(X[:50]), model.predict(X[:50]), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_dask_arrays_give_the_same_model():
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X, y = make_lab_function(2500, function="f2", noise=0.05, random_state=0)
    weight = np.linspace(0.5, 1.5, len(X))
    lazy = da.from_array(X, chunks=(700, 2))
    settings = {"n_support": 20, "max_rows": 1000, "max_iter": 10, "random_state": 0}
    with dask.config.set(scheduler="threads"):
        model = LABRegressor(**settings).fit(X, y, weight)
        other = LABRegressor(**settings).fit(lazy, da.from_array(y, chunks=700), weight)
        assert_allclose(other.bandwidths_, model.bandwidths_, rtol=1e-6)
        assert_allclose(other.predict(X), model.predict(X), rtol=1e-8, atol=1e-8)
        predicted = other.predict(lazy)
        assert isinstance(predicted, da.Array) and predicted.chunks == ((700, 700, 700, 400),)
        assert_allclose(predicted.compute(), model.predict(X), rtol=1e-8, atol=1e-8)
        labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
        model, other = (LABClassifier(**settings).fit(rows, labels) for rows in (X, lazy))
        for method in ("predict", "predict_proba", "decision_function"):
            assert_allclose(
                getattr(other, method)(lazy).compute(),
                getattr(model, method)(X),
                rtol=1e-8,
                atol=1e-8,
            )


def stated_need(model, X, y):
    with (
        pytest.raises(MemoryError, match="max_rows or n_support") as error,
        config_context(memory_limit=1),
    ):
        clone(model).fit(X, y)
    value, unit = re.search(r"needs ([0-9.e+]+) (kB|MB|GB)", str(error.value)).groups()
    return float(value) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def peak_of(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "n, d, parameters",
    [
        (2000, 6, {"n_support": 50}),
        (3000, 60, {"n_support": 100, "kernel": "gaussian"}),
        (300, 4, {"kernel": "gaussian"}),
        (30_000, 5, {"n_support": 20, "max_rows": 1000}),
        (2000, 6, {"n_support": Support(20, max_error=1e-3, max_support=60), "kernel": "gaussian"}),
    ],
)
def test_memory_stays_within_what_is_stated(n, d, parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    model = LABRegressor(max_iter=5, random_state=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peak = peak_of(lambda: model.fit(X, y))
    assert peak < stated_need(model, X, y)


@pytest.mark.slow
def test_classifier_of_many_classes():
    X, y = load_digits(return_X_y=True)
    A, T, b, z = train_test_split(X, y, test_size=0.5, random_state=0)
    model = LABClassifier(80, kernel="gaussian", max_iter=40, random_state=0).fit(
        A, np.array(list("abcdefghij"))[b]
    )
    P = model.predict_proba(T)
    assert np.mean(model.predict(T) == np.array(list("abcdefghij"))[z]) > 0.95
    assert_allclose(P.sum(axis=1), 1)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(T))
    assert log_loss(z, P) < 0.25
    assert model.dual_coef_.shape == (10, 80)


@pytest.mark.slow
def test_classifier_of_two_classes_and_weights():
    X, y = load_wine(return_X_y=True)
    two = y == 1
    model = LABClassifier(15, kernel="gaussian", max_iter=20, random_state=0).fit(X[::2], two[::2])
    assert model.decision_function(X).shape == (178,)
    assert_array_equal(model.decision_function(X) > 0, model.predict(X))
    assert np.mean(model.predict(X[1::2]) == two[1::2]) > 0.9
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.normal(size=(190, 2)), rng.normal(size=(30, 2)) + 1.5])
    rare = np.repeat([0, 1], [190, 30])
    plain = LABClassifier(**QUICK).fit(Z, rare)
    balanced = LABClassifier(**QUICK, class_weight="balanced").fit(Z, rare)
    assert balanced.predict(Z).sum() > plain.predict(Z).sum()
    with pytest.raises(ValueError, match="one class only"):
        LABClassifier().fit(X, np.zeros(178))
    unvalidated = LABClassifier(
        15, kernel="gaussian", validation_fraction=None, max_iter=5, random_state=0
    ).fit(X, y)
    assert_allclose(unvalidated.predict_proba(X).sum(axis=1), 1)


def test_a_model_worse_than_a_constant_says_so_where_fit_was_called():
    """Rows of a group are nearly equal, and groups tell nothing of each other: memory helps in some folds only."""
    random = np.random.RandomState(0)
    groups = np.arange(300) % 30
    X = random.normal(size=(30, 3))[groups] + 1e-3 * random.normal(size=(300, 3))
    y = random.normal(size=30)[groups]
    model = LABRegressor(**QUICK)
    with pytest.warns(UselessModelWarning, match="LABRegressor is worse than a const") as caught:
        model.fit(X, y, groups=groups)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(X, y)


@pytest.mark.parametrize("objective", ["evidence", "interpolation"])
def test_a_bound_that_the_support_misses_has_a_remedy_that_helps(objective):
    """Growth ends when no row off the support exceeds the bound; the support itself may, with a ridge."""
    random = np.random.RandomState(0)
    X = random.normal(size=(60, 4))
    y = X[:, 0] + random.normal(size=60)
    model = LABRegressor(Support(6, max_error=0.05), objective=objective, random_state=0)
    if objective == "evidence":
        with pytest.warns(ConvergenceWarning, match="use objective='interpolation'"):
            model.fit(X, y)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UselessModelWarning)
            warnings.simplefilter("error", ConvergenceWarning)
            model.fit(X, y)
        assert model.max_error_ <= 0.05
    errors = ((model.predict(X) - y) / y.std()) ** 2
    assert_allclose(errors.max(), model.max_error_, rtol=1e-6)
    assert model.growth_curve_[-1, 0] == model.n_support_


def test_equal_rows_are_held_out_together():
    """Otherwise three copies of noise look like something to learn."""
    random = np.random.RandomState(0)
    X = np.repeat(random.normal(size=(60, 3)), 3, axis=0)
    y = np.repeat(random.normal(size=60), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        model = LABRegressor(20, random_state=0).fit(X, y)
    assert model.validation_curve_[:, 1].min() > 0.8


def test_groups_are_never_on_both_sides(waves):
    random = np.random.RandomState(0)
    groups = np.arange(300) % 30
    X = random.normal(size=(30, 3))[groups] + 1e-3 * random.normal(size=(300, 3))
    y = random.normal(size=30)[groups] + 1e-2 * random.normal(size=300)
    model = LABRegressor(25, max_iter=10, random_state=0)
    assert clone(model).fit(X, y).validation_curve_[:, 1].min() < 0.2
    with pytest.warns(UselessModelWarning, match="LABRegressor is worse than a constant"):
        model.fit(X, y, groups=groups)
    assert model.validation_curve_[:, 1].min() > 0.8
    with pytest.raises(ValueError, match="one group only"):
        LABRegressor(**QUICK).fit(*waves[:2], groups=np.zeros(300))
