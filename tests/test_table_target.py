"""Targets with tails: the member of LAB's average that predicts a transform of them."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercerless import LABRegressor, TableRegressor
from mercerless.inspection import BandwidthDisplay
from mercerless.persistence import load, save
from mercerless.table.target import (
    TargetTransform,
    TransformedForms,
    choose_transform,
    kernel_forms,
    possible_transforms,
    predict_average,
)


def multiplicative(n, noise, seed=0):
    """Noise that multiplies, and the conditional mean."""
    random = np.random.RandomState(seed)
    X = random.rand(n, 4)
    f = 2 * np.sin(3 * X[:, 0]) + 3 * X[:, 1] * X[:, 2]
    return X, np.exp(f + noise * random.randn(n)), np.exp(f + noise**2 / 2)


TARGETS = {
    "positive": lambda r: np.exp(r.randn(300)),
    "with zeros": lambda r: np.maximum(np.exp(1.5 * r.randn(300)) - 1, 0),
    "tail on the left": lambda r: 5 - np.exp(r.randn(300)),
    "two tails": lambda r: r.standard_t(2, 300),
    "most are zero": lambda r: np.where(r.rand(300) < 0.8, 0, np.exp(r.randn(300))),
    "tiny units": lambda r: 1e-12 * np.exp(r.randn(300)),
    "huge units": lambda r: 1e12 * np.exp(r.randn(300)),
}


@pytest.mark.parametrize("name", TARGETS)
def test_transforms_are_increasing_and_inverted(name):
    y = TARGETS[name](np.random.RandomState(0))
    transforms = possible_transforms(y)
    assert [each.name for each in transforms] == ["log", "power", "asinh", "rank"]
    for each in transforms:
        order = np.argsort(y, kind="stable")
        assert np.all(np.diff(each.z[order])[np.diff(y[order]) > 1e-9 * y.std()] > 0)
        assert_allclose(each.inverse(each.z), y, rtol=1e-9, atol=1e-9 * y.std())


def test_targets_without_tails_are_left_alone():
    random = np.random.RandomState(0)
    for y in (
        random.randn(300),
        random.rand(300),
        np.full(300, 2.0),
        1e9 + random.randn(300),
        random.randint(2, size=300),
    ):
        assert possible_transforms(y.astype(float)) == []


def test_the_way_back_is_the_mean_target_not_the_transform_of_the_mean():
    random = np.random.RandomState(0)
    y = np.exp(random.randn(2000))
    log = possible_transforms(y)[0]
    back = log.back(0.5 * random.randn(4000), np.ones(4000))
    unit = float(np.median(y))
    assert_allclose(
        back(np.log(np.array([0.5, 1, 2]) / unit)), np.array([0.5, 1, 2]) * np.exp(0.125), rtol=0.03
    )
    assert np.all(np.diff(back.target) >= 0)  # and stays within about what was seen
    assert back(np.array([1e3]))[0] <= np.exp(np.log(y).max() + 0.1 * np.ptp(np.log(y)) + 1e-9)
    weight = np.r_[np.ones(2000), np.zeros(2000)]
    errors = np.r_[0.5 * random.randn(2000), np.full(2000, 9.0)]
    assert_allclose(
        log.back(errors, weight)(np.zeros(1)),
        log.back(errors[:2000], np.ones(2000))(np.zeros(1)),
        rtol=1e-2,
    )


@pytest.fixture(scope="module")
def skewed():
    X, y, mean = multiplicative(1400, 0.3)
    return TableRegressor(random_state=0).fit(X[:400], y[:400]), X, y, mean


@pytest.mark.slow
def test_noise_that_multiplies_is_learned_through_the_logarithm(skewed):
    model, X, y, mean = skewed
    (member,) = [form for form in model.members_ if isinstance(form, TransformedForms)]
    assert (
        member.weight > 0.5 and f"{member.transform.name} of the target" in model.validation_errors_
    )
    plain = LABRegressor(n_support=100, random_state=0).fit(X[:400], y[:400])
    error, other = (np.mean((each.predict(X[400:]) - mean[400:]) ** 2) for each in (model, plain))
    assert error < 0.5 * other
    assert_allclose(model.predict(X[400:]).mean(), mean[400:].mean(), rtol=0.06)
    assert_allclose(
        sum(form.weight * form(model.encoding_(X[:9])) for form in model.members_)[:, 0],
        model.predict(X[:9]),
    )


@pytest.mark.parametrize("is_global", [True, False])
def test_a_generator_that_others_draw_from_does_not_lose_the_transform(is_global):
    """The second model needs the folds of the first, whatever was drawn in between."""
    X, y, _ = multiplicative(110, 0.3)
    np.random.seed(0)  # noqa: NPY002, None means this generator
    random_state = None if is_global else np.random.RandomState(0)
    model = TableRegressor(["local"], max_iter=2, random_state=random_state).fit(X, y)
    assert list(model.validation_errors_)[-1].endswith(" of the target")


@pytest.mark.slow
def test_members_through_a_transform_explain_scatter_and_are_saved(skewed, tmp_path):
    model, X, y, _ = skewed
    reasons, (predicted, std) = model.explain(X[400:420]), model.predict(X[400:], return_std=True)
    assert_allclose(
        reasons.base + reasons.shares.sum(axis=1) + reasons.rest, predicted[:20], rtol=1e-6
    )
    assert 0.7 < np.mean(np.abs(y[400:] - predicted) <= 1.645 * std) < 0.98
    low, high = model.predict_interval(X[400:]).T
    assert 0.86 < np.mean((low <= y[400:]) & (y[400:] <= high)) < 0.95
    pytest.importorskip("skops")
    save(model, tmp_path / "model")
    assert_allclose(load(tmp_path / "model").predict(X[400:]), predicted)
    form = kernel_forms(model.members_)[-1]
    pytest.importorskip("matplotlib")
    names = model.encoding_.names
    display = BandwidthDisplay.from_estimator(form, feature_names=names)
    assert display.relevance.shape[1] == 4


@pytest.mark.slow
def test_gross_errors_do_not_choose_a_transform():
    X, _, mean = multiplicative(500, 0.0)
    y, random = np.log(mean) + 0.1 * np.random.RandomState(1).randn(500), np.random.RandomState(2)
    for count in (4, 8):
        wrong, given = random.permutation(200)[:count], y[:200].copy()
        given[wrong] += 30.0
        model = TableRegressor(random_state=0).fit(X[:200], given)
        assert set(wrong) <= set(model.outliers_)
        assert not any(isinstance(form, TransformedForms) for form in model.members_)
        assert model.score(X[200:], np.log(mean[200:])) > 0.97


@pytest.mark.slow
def test_units_of_the_target_do_not_matter():
    X, y, _ = multiplicative(160, 0.3)
    models = [
        TableRegressor(max_iter=5, random_state=0).fit(X[:120], scale * y[:120])
        for scale in (1.0, 2.0**40)
    ]
    assert any(isinstance(form, TransformedForms) for form in models[0].members_)
    assert_allclose(models[1].predict(X) / 2.0**40, models[0].predict(X), rtol=1e-5)


@pytest.mark.slow
def test_zero_weights_mean_removal_through_a_transform():
    X, y, _ = multiplicative(160, 0.3)
    weight = np.r_[np.ones(120), np.zeros(40)]
    model = TableRegressor(max_iter=5, random_state=0)
    removed = model.fit(X[:120], y[:120]).predict(X)
    assert_allclose(
        model.fit(X, np.r_[y[:120], np.full(40, 1e6)], sample_weight=weight).predict(X),
        removed,
        rtol=1e-9,
    )


def test_transforms_that_small_models_do_not_like_are_given_up():
    X, y, _ = multiplicative(300, 0.3)
    together, weight = np.arange(300), np.ones(300)
    assert choose_transform(X, y[:, None], weight, together, 0) is not None
    assert choose_transform(X[:99], y[:99, None], weight[:99], together[:99], 0) is None
    additive = 10 * X[:, 0] ** 8 + 0.1 * np.random.RandomState(0).randn(300)
    assert choose_transform(X, additive[:, None], weight, together, 0) is None


def test_far_from_the_training_rows_predictions_are_bounded():
    X, y, _ = multiplicative(220, 0.3)
    model = TableRegressor(["local"], max_iter=10, random_state=0).fit(X[:200], y[:200])
    low, high = y[:200].min(), y[:200].max()
    far = np.vstack([X[200:], 50.0 * X[200:], -50.0 * X[200:]])
    predictions = model.predict(far)
    assert np.all(predictions >= low - 0.25 * (high - low))
    assert np.all(predictions <= high + 0.25 * (high - low))
    # linear functions, too, end a quarter of the range beyond
    total = X[:60].sum(axis=1)
    line = TableRegressor(["local"], max_iter=5, random_state=0).fit(X[:60], total)
    corner = [[1e6] * X.shape[1]]  # every feature a quarter of its range beyond
    assert line.predict(corner)[0] <= total.max() + 0.25 * np.ptp(total) + 1e-9


def test_a_transformed_member_differs_from_the_others_within_its_reach():
    def member(value):
        return lambda X: np.full((len(X), 1), value)

    class Plain(NamedTuple):
        weight: float
        function: Any

        def __call__(self, X):
            return self.function(X)

    transform = TargetTransform("log", np.array([0.0, 10.0]), np.array([0.0, 100.0]))
    wild = TransformedForms("log", [Plain(1.0, member(8.0))], transform, 0.5, None, reach=3.0)
    X = np.zeros((2, 1))
    assert_allclose(wild(X), 80.0)
    others = [Plain(0.2, member(1.0)), Plain(0.3, member(2.0))]
    mean = (0.2 * 1.0 + 0.3 * 2.0) / 0.5
    assert_allclose(predict_average([*others, wild], X), 0.2 + 0.6 + 0.5 * (mean + 3.0))
    assert_allclose(predict_average([*others, wild._replace(reach=99.0)], X), 0.8 + 0.5 * 80.0)
    assert_allclose(predict_average([wild], X), 0.5 * 80.0)
    in_other_units = wild.in_units(np.array([7.0]), np.array([2.0]))
    assert in_other_units.reach == 6.0
    assert_allclose(in_other_units(X), 167.0)


def test_the_reach_is_the_largest_difference_on_held_out_rows():
    X, y, _ = multiplicative(300, 0.3)
    model = TableRegressor(["local"], max_iter=10, random_state=0).fit(X, y)
    transformed = [form for form in model.members_ if isinstance(form, TransformedForms)]
    plain = [form for form in model.members_ if not isinstance(form, TransformedForms)]
    assert len(transformed) == 1
    if plain:
        assert 0 < transformed[0].reach < np.ptp(y)
    else:
        assert transformed[0].reach == np.inf


@pytest.mark.parametrize("seed", [1, 5])
def test_the_tail_of_an_exact_relation_is_no_gross_error(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(150, 2))
    y = np.exp(2 * X[:, 0])
    model = TableRegressor(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99
    assert model.weights_[0] == 1.0  # nothing but the transformed target


def test_gross_errors_of_a_target_with_a_tail_are_found():
    random = np.random.default_rng(1)
    X = random.normal(size=(150, 2))
    truth = np.exp(X[:, 0])
    y = truth.copy()
    errors = np.arange(0, 150, 30)
    y[errors] += 20 * truth.std()
    model = TableRegressor(random_state=0).fit(X, y)
    assert set(errors) <= set(model.outliers_)
    assert model.score(np.delete(X, errors, axis=0), np.delete(truth, errors)) > 0.95
