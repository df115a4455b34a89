"""Intervals of tables: as wide as the targets scatter, and as often right as asked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import LABClassifier, LABRegressor, TableClassifier, TableRegressor
from mercerless.core.conformal import conformal_rank
from mercerless.lab.spread import fit_spread

QUICK = {"members": ["local"], "max_iter": 10, "random_state": 0}


def scattered(n, seed):
    """Targets that scatter more the larger they are."""
    random = np.random.RandomState(seed)
    X = random.uniform(0, 3, size=(n, 2))
    truth = 2 * X[:, 0] + np.sin(2 * X[:, 1])
    return X, truth + (0.05 + 0.3 * X[:, 0]) * random.normal(size=n)


def test_intervals_are_wide_where_targets_scatter_and_cover_there_too():
    covered = []
    covered_on_top = []
    for seed in range(4):
        X, y = scattered(900, seed)
        model = TableRegressor(**QUICK, transform_target=None).fit(X[:200], y[:200])
        low, high = model.predict_interval(X[200:], 0.9).T
        _, std = model.predict(X[200:], return_std=True)
        assert_allclose((high - low) / std, (high[0] - low[0]) / std[0])
        inside = (low <= y[200:]) & (y[200:] <= high)
        prediction = (low + high) / 2
        top = prediction > np.quantile(prediction, 0.8)
        covered.append(inside.mean())
        covered_on_top.append(inside[top].mean())
        assert np.mean((high - low)[top]) > 2 * np.mean(
            (high - low)[prediction < np.median(prediction)]
        )
    assert 0.86 < np.mean(covered) < 0.95
    assert np.mean(covered_on_top) > 0.84  # .72 with one width for all


def test_one_deviation_means_one_width_that_of_the_errors():
    random = np.random.RandomState(0)
    X = random.normal(size=(120, 2))
    y = X[:, 0] + 0.3 * random.normal(size=120)
    model = LABRegressor(10, max_iter=5, random_state=0).fit(X, y)
    assert model.spread_[0].gain == 0.0
    errors = np.sort(np.abs(model.out_of_fold_.prediction - model.out_of_fold_.target))
    radius = errors[conformal_rank(120, 0.8) - 1]
    low, high = model.predict_interval(X[:5], 0.8).T
    assert_allclose((high - low) / 2, radius, rtol=1e-9)


def test_ratios_are_by_deviations_that_have_not_seen_the_error():
    random = np.random.RandomState(0)
    signs = random.normal(size=(300, 1))
    errors = random.normal(size=300) * np.exp(signs[:, 0])
    spread = fit_spread(errors, signs)
    assert spread.gain > 0 and np.all(np.diff(spread.ratios) >= 0)
    own = np.sort(np.abs(errors) / spread(signs))
    assert 0 < np.mean(spread.ratios**2) - np.mean(own**2) < 0.2


def test_intervals_of_several_outputs_and_without_errors_to_learn_from():
    X, y = scattered(120, 0)
    model = TableRegressor(**QUICK).fit(X, np.column_stack([y, 10 * y]))
    intervals = model.predict_interval(X[:7])
    assert intervals.shape == (7, 2, 2)
    assert_allclose(np.diff(intervals[:, 1]), 10 * np.diff(intervals[:, 0]), rtol=0.05)
    with pytest.raises(ValueError, match="at least five rows"):
        TableRegressor(**QUICK).fit(X[:4], y[:4]).predict_interval(X)
    with pytest.raises(ValueError, match=r"coverage=0\.999 needs at least 999"):
        model.predict_interval(X, 0.999)


@pytest.mark.parametrize("cls", [TableRegressor, LABRegressor])
def test_intervals_count_groups_and_not_rows(cls):
    """A new row comes from a new group, whose effect no other row of the fit has seen."""
    random = np.random.RandomState(0)
    sizes = [40, *[6] * 9]
    groups = np.repeat(np.arange(10), sizes)
    X = random.normal(size=(94, 2))
    effects = 2 * random.normal(size=10)
    effects[0] = 0.0  # the largest group has small errors, and would narrow the intervals
    y = X[:, 0] + effects[groups] + 0.2 * random.normal(size=94)
    model = cls(max_iter=3, random_state=0)
    if cls is TableRegressor:
        model.set_params(members=["local"])
    model.fit(X, y, groups=groups)
    held = model.out_of_fold_
    assert len(np.unique(held.groups)) == 10
    assert all(len(set(held.groups[groups[held.rows] == group])) == 1 for group in range(10))
    (spread,) = model.spread_
    low, high = model.predict_interval(X, 0.8).T
    width = (high - low) / 2 / model.predict(X, return_std=True)[1]
    # every group has the mass 1 / 11, which its rows share
    mass = np.cumsum(1 / (11 * np.bincount(spread.groups)[spread.groups]))
    assert_allclose(width, spread.ratios[np.searchsorted(mass, 0.8)])
    by_rows = spread.ratios[conformal_rank(94, 0.8) - 1]
    assert width[0] > 1.1 * by_rows
    with pytest.raises(ValueError, match="needs at least 19 groups of out-of-fold"):
        model.predict_interval(X[:2], 0.95)


def test_ratios_keep_their_groups():
    random = np.random.RandomState(0)
    groups = np.arange(60) // 3
    errors = random.normal(size=60)
    spread = fit_spread(errors, random.normal(size=(60, 1)), groups)
    assert_array_equal(spread.groups, groups[np.argsort(np.abs(errors))])
    assert fit_spread(errors, np.zeros((60, 1))).gain == 0  # nothing to go by, and no warning


def test_groups_of_one_row_are_no_groups():
    random = np.random.RandomState(0)
    X = random.normal(size=(80, 2))
    y = X[:, 0] + (1 + (X[:, 1] > 0)) * random.normal(size=80)
    quick = {"members": ["local"], "max_iter": 3, "random_state": 0}
    names = [f"g{i:02d}" for i in range(80)]
    plain = TableRegressor(**quick).fit(X, y)
    alone = TableRegressor(**quick).fit(X, y, groups=names)
    assert_allclose(alone.predict_interval(X, 0.8), plain.predict_interval(X, 0.8))
    labels = y > 0
    plain = TableClassifier(**quick).fit(X, labels)
    alone = TableClassifier(**quick).fit(X, labels, groups=names)
    assert_array_equal(alone.out_of_fold_.prediction, plain.out_of_fold_.prediction)
    assert_array_equal(alone.predict_set(X, 0.8), plain.predict_set(X, 0.8))


def test_near_copies_are_no_groups_of_the_intervals():
    random = np.random.RandomState(0)
    X = np.repeat(random.normal(size=(40, 4)), 3, axis=0) + 1e-4 * random.normal(size=(120, 4))
    model = TableRegressor(["local"], max_iter=3, random_state=0).fit(X, X[:, 0])
    assert model.out_of_fold_.groups is None


@pytest.mark.parametrize("cls", [TableClassifier, LABClassifier])
def test_a_class_in_one_group_is_named(cls):
    random = np.random.RandomState(0)
    groups = np.arange(90) // 3
    X = random.normal(size=(90, 2))
    y = np.where(groups == 4, "rare", np.where(X[:, 0] > 0, "high", "low"))
    with pytest.warns(UserWarning, match=r"1 of 3 classes \('rare'\) are in one group each"):
        model = cls(max_iter=3, random_state=0).fit(X, y, groups=groups)
    assert model.out_of_fold_.groups is not None
