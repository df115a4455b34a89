"""Prediction sets and intervals: ranks, coverage by simulation, sentences for what cannot be done."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import (
    AsymmetricRidge,
    AsymmetricRidgeClassifier,
    KreinRidge,
    KreinRidgeClassifier,
    LABRegressor,
)
from mercerless.core.conformal import conformal_quantile, set_thresholds
from mercerless.kernels import Gaussian

pytestmark = pytest.mark.filterwarnings("ignore:.*is worse than a constant")


def data(n, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    return X, y, np.digitize(y, [-0.6, 0.6])


def with_held_out(model, prediction, target):
    """The model with these out-of-fold predictions."""
    rows = np.arange(len(target))
    model.out_of_fold_ = model.out_of_fold_._replace(
        rows=rows, prediction=prediction, target=target
    )
    return model


def radius(errors, coverage=0.9):
    """The half width of intervals after these errors."""
    X = np.arange(20.0)[:, None]
    model = KreinRidge(random_state=0).fit(X, np.sin(X[:, 0]))
    interval = with_held_out(model, errors, 0.0 * errors).predict_interval(X[:1], coverage)
    return np.diff(interval)[0, 0] / 2


def test_rank_is_exact_for_exchangeable_errors():
    # the mean coverage over draws is rank / (n + 1), by brute force over where the new error ranks
    for n in (9, 10, 19, 37):
        rank = round(radius(1.0 + np.arange(n)[::-1]))
        assert (rank - 1) / (n + 1) < 0.9 <= rank / (n + 1) + 1e-12
    assert_allclose([radius(1.0 + np.arange(n)) for n in (9, 19)], [9, 18])
    assert_allclose(radius(np.array([-3.0, 2.0, -1.0, 0.5]), 0.75), 3.0)  # of either sign


def test_too_few_items_says_how_many():
    with pytest.raises(
        ValueError,
        match=r"needs at least 9 out-of-fold predictions, but there are 8; ask for at most 0.888",
    ):
        radius(np.arange(8.0))
    assert_allclose(radius(np.arange(8.0), 0.888), 7)  # what the sentence says is possible


def test_thresholds_by_hand():
    rng = np.random.RandomState(0)
    X, _, names = data(120)
    model = KreinRidgeClassifier(random_state=0).fit(X, names.astype(str))
    proba, labels = rng.dirichlet(np.ones(3), 60), np.repeat([0, 1, 2], 20)
    model = with_held_out(model, proba, labels)
    right, new = proba[np.arange(60), labels], model.predict_proba(X)
    sets = model.predict_set(X, 0.9, allow_empty=True)
    assert_array_equal(sets, new >= sorted(right, reverse=True)[54])
    each = np.array([sorted(right[labels == c], reverse=True)[18] for c in range(3)])
    assert_array_equal(model.predict_set(X, 0.9, by_class=True, allow_empty=True), new >= each)
    with pytest.raises(ValueError, match="needs at least 99 items of class 0, but there are 20"):
        model.predict_set(X, 0.99, by_class=True)


@pytest.mark.parametrize("cls", [KreinRidge, AsymmetricRidge])
def test_intervals_cover_by_simulation(cls):
    hits = []
    for seed in range(12):
        X, y, _ = data(340, seed)
        intervals = cls(Gaussian(1.0)).fit(X[:40], y[:40]).predict_interval(X[40:])
        assert intervals.shape == (300, 2)
        hits.append(np.mean((intervals[:, 0] <= y[40:]) & (y[40:] <= intervals[:, 1])))
    assert 0.86 < np.mean(hits) < 0.96  # the standard error of the mean is about 0.013


@pytest.mark.parametrize("cls", [KreinRidgeClassifier, AsymmetricRidgeClassifier])
def test_sets_cover_by_simulation(cls):
    hits, sizes = [], []
    for seed in range(12):
        X, _, labels = data(340, seed)
        sets = cls(Gaussian(1.0)).fit(X[:40], labels[:40]).predict_set(X[40:], allow_empty=True)
        assert sets.dtype == bool and sets.shape == (300, 3)
        hits.append(sets[np.arange(300), labels[40:]].mean())
        sizes.append(sets.sum(axis=1).mean())
    assert 0.85 < np.mean(hits) < 0.96 and np.mean(sizes) < 2.7


def test_sets_are_nested_and_hold_the_most_probable_class():
    X, _, labels = data(120)
    model = KreinRidgeClassifier(random_state=0).fit(X[:80], labels[:80])
    narrow, wide = (model.predict_set(X[80:], coverage) for coverage in (0.5, 0.95))
    assert np.all(wide | ~narrow) and narrow.any(axis=1).all()
    assert_array_equal(narrow[np.arange(40), model.predict(X[80:])], True)
    assert not model.predict_set(X[80:], 0.2, allow_empty=True).any(axis=1).all()
    assert model.predict_set(X[80:], by_class=True).shape == (40, 3)


def test_several_outputs_each_have_an_interval():
    X, y, _ = data(60)
    model = KreinRidge(random_state=0).fit(X, np.column_stack([y, 10 * y]))
    intervals = model.predict_interval(X[:5])
    assert intervals.shape == (5, 2, 2)
    assert_allclose(np.diff(intervals[:, 1]), 10 * np.diff(intervals[:, 0]), rtol=1e-6)


def test_landmarks_and_weights_keep_out_of_fold_predictions():
    X, y, labels = data(90)
    weight = np.repeat([1.0, 0.0], [80, 10])
    for model, target in ((KreinRidge(landmarks=20, random_state=0), y), (AsymmetricRidge(), y)):
        held = model.fit(X, target, sample_weight=weight).out_of_fold_
        assert_array_equal(np.sort(held.rows), np.arange(80))
        assert_allclose(held.target, y[held.rows])
        assert np.mean((held.prediction - held.target) ** 2) < np.var(y)
    held = (
        KreinRidgeClassifier(landmarks=20, random_state=0)
        .fit(X, labels, sample_weight=weight)
        .out_of_fold_
    )
    assert_array_equal(held.target, labels[held.rows])


def test_out_of_fold_predictions_are_those_of_the_folds():
    X, y, _ = data(60)
    folds = [
        (np.flatnonzero(np.arange(60) % 3 != k), np.flatnonzero(np.arange(60) % 3 == k))
        for k in range(3)
    ]
    model = KreinRidge(
        Gaussian(1.5), alpha_positive=[0.01, 0.1], alpha_negative=[0.01], cv=folds
    ).fit(X, y)
    held = model.out_of_fold_
    for train, test in folds:
        part = KreinRidge(Gaussian(1.5), alpha_positive=model.alpha_positive_, alpha_negative=0.01)
        expected = part.fit(X[train], y[train]).predict(X[test])
        assert_allclose(held.prediction[np.isin(held.rows, test)], expected, rtol=1e-8)


def test_sets_by_class_have_a_threshold_for_each():
    X, _, labels = data(120, 1)
    model = AsymmetricRidgeClassifier(Gaussian(1.5)).fit(X[:80], labels[:80])
    each = set_thresholds(model.out_of_fold_, 0.8, True, model.classes_)
    assert np.ptp(each) > 0.01
    sets = model.predict_proba(X[80:]) >= each
    found = model.predict_set(X[80:], 0.8, by_class=True, allow_empty=True)
    assert_array_equal(found, sets)


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, "all", None, np.nan])
def test_coverage_is_between_0_and_1(coverage):
    X, y, _ = data(30)
    with pytest.raises(ValueError, match=r"must lie between 0 and 1"):
        AsymmetricRidge().fit(X, y).predict_interval(X, coverage)


def test_impossible_requests_raise():
    X, y, _ = data(30)
    with pytest.raises(ValueError, match=r"has no out-of-fold predictions.*alpha_positive"):
        KreinRidge(alpha_positive=0.1, alpha_negative=0.1).fit(X, y).predict_interval(X)
    with pytest.raises(ValueError, match=r"has no out-of-fold predictions.*validation_fraction"):
        LABRegressor(5, validation_fraction=None, max_iter=2, kernel="gaussian").fit(
            X, y
        ).predict_interval(X)
    with pytest.raises(ValueError, match="one class only"):
        AsymmetricRidgeClassifier().fit(X, np.zeros(30)).predict_set(X)
    with pytest.raises(ValueError, match="needs at least 99 out-of-fold"):
        AsymmetricRidge().fit(X, y).predict_interval(X, 0.99)
    assert not hasattr(AsymmetricRidge(), "predict_set")
    assert not hasattr(AsymmetricRidgeClassifier(), "predict_interval")


def scattered(n, seed=0):
    """A third of the rows scatter ten times as far, where the function is large."""
    rng = np.random.RandomState(seed)
    x = rng.uniform(-3, 3, size=(n, 2))
    deviation = np.where(x[:, 0] > 1, 1.0, 0.1)
    return x, 2 * x[:, 0] + np.sin(2 * x[:, 1]) + deviation * rng.normal(size=n), deviation


class TestQuantileOfGroups:
    def test_sets_within_every_class_count_groups(self):
        proba = np.linspace(0.01, 0.99, 80)
        two, none = np.column_stack([proba, 1 - proba]), np.zeros(80, int)
        of_groups = SimpleNamespace(prediction=two, target=none, groups=np.arange(80) // 4)
        assert set_thresholds(of_groups, 0.9, False, np.arange(of_groups.prediction.shape[1]))[
            0
        ] == pytest.approx(proba[4])
        halves, groups = np.arange(80) // 40, np.arange(80) // 8
        both = SimpleNamespace(prediction=two, target=halves, groups=groups)
        with pytest.raises(ValueError, match="needs at least 9 groups of items of class 0"):
            set_thresholds(both, 0.9, True, np.arange(both.prediction.shape[1]))

    def test_groups_of_one_give_the_usual_rank(self):
        errors = np.random.RandomState(0).normal(size=(37, 2))
        expected = np.sort(errors, axis=0)[30]  # the 31st of 37: 38 times 0.8, rounded up
        assert_array_equal(conformal_quantile(errors, 0.8, np.arange(37)), expected)

    def test_every_group_counts_as_one(self):
        errors = np.r_[np.arange(9.0), np.full(91, 100.0)]
        groups = np.r_[np.arange(9), np.full(91, 9)]
        assert conformal_quantile(errors, 0.8, groups) == 8.0
        assert conformal_quantile(errors, 0.9, groups) == 100.0

    def test_too_few_groups_say_how_many(self):
        with pytest.raises(ValueError, match="needs at least 9 groups of out-of-fold predictions"):
            conformal_quantile(np.zeros(80), 0.9, np.arange(80) % 8)

    def test_coverage_of_unequal_groups_by_simulation(self):
        rng = np.random.RandomState(0)
        hits = []
        for _ in range(4000):
            level = rng.normal(size=16)
            groups = np.repeat(np.arange(15), rng.randint(1, 9, 15))
            errors = level[groups] + 0.1 * rng.normal(size=len(groups))
            hits.append(level[15] + 0.1 * rng.normal() <= conformal_quantile(errors, 0.75, groups))
        assert 0.73 < np.mean(hits) < 0.79
