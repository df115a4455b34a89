"""Intervals of tables: as wide as the targets scatter, and as often right as asked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercerless import LABRegressor, TableRegressor
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
