"""Intervals whose width follows the item."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from mercerless import SimilarityRegressor
from mercerless.core.conformal import conformal_quantile, interval_radius
from mercerless.similarity.families import Comparisons
from mercerless.similarity.spread import fit_spread, local_quantiles

pytestmark = pytest.mark.filterwarnings("ignore:.*is worse than a constant")


def scattered(n, seed=0, ratio=6.0):
    """Noise that is `ratio` times as large on the right as on the left."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    deviation = np.where(X[:, 0] > 0, ratio, 1.0) * 0.1
    return X, np.sin(3 * X[:, 1]) + deviation * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, y = scattered(300)
    return SimilarityRegressor(random_state=0).fit(X, y)


def test_wide_where_targets_scatter_and_covered_in_both_halves(fitted):
    X, y = scattered(2000, seed=1)
    low, high = fitted.predict_interval(X, 0.8).T
    assert_allclose((low + high) / 2, fitted.predict(X), atol=1e-9)
    right = X[:, 0] > 0
    width = high - low
    assert width[right].mean() > 2.5 * width[~right].mean()
    inside = (low <= y) & (y <= high)
    assert 0.74 < inside[right].mean() < 0.88
    assert 0.74 < inside[~right].mean() < 0.9
    one = interval_radius(fitted.out_of_fold_, 0.8)
    missed = np.abs(y - fitted.predict(X)) > one
    assert missed[right].mean() > 0.3  # what one width for all does


def test_radius_by_hand(fitted):
    X, _ = scattered(30, seed=2)
    held = fitted.out_of_fold_
    ratios = np.abs(held.prediction - held.target) / fitted.spread_.out_of_fold
    block = fitted._compare_new(X, None)
    scale = fitted.spread_(block, fitted.stack_(block)[:, 0])
    low, high = fitted.predict_interval(X).T
    factor = [
        conformal_quantile(ratios[np.argsort(np.abs(held.prediction - center))[:150]], 0.9)
        for center in (low + high) / 2
    ]
    assert_allclose(high - low, 2 * np.array(factor) * scale)


@pytest.mark.parametrize(
    ("n", "coverage", "number"), [(301, 0.9, 151), (90, 0.9, 60), (90, 0.8, 45)]
)
def test_factors_of_the_nearest_predictions(n, coverage, number):
    rng = np.random.RandomState(0)
    known = rng.normal(size=n)
    ratios = rng.gamma(2.0, size=n)
    new = np.append(rng.normal(size=50), [-9.0, 9.0])
    found = local_quantiles(ratios, known, new, coverage)
    for value, factor in zip(new, found):
        nearest = np.argsort(np.abs(known - value))[:number]
        assert factor == np.sort(ratios[nearest])[int(np.ceil((number + 1) * coverage)) - 1]
    assert len(np.unique(found)) > 2


def test_factors_of_few_items_are_those_of_all():
    ratios = np.arange(40.0)
    known = np.linspace(-1, 1, 40)
    factors = local_quantiles(ratios, known, np.array([-1.0, 1.0]), 0.9)
    assert_allclose(factors, conformal_quantile(ratios, 0.9))
    equal = local_quantiles(ratios, np.zeros(40), np.array([-1.0, 0.0, 1.0]), 0.5)
    assert np.isin(equal, ratios).all()
    with pytest.raises(ValueError, match="needs at least 99"):
        local_quantiles(ratios, known, np.zeros(1), 0.99)


def test_covered_at_low_and_high_predictions():
    """Errors that are skew at one end only: a common factor of the scales is too small there."""
    rng = np.random.RandomState(0)
    x = rng.uniform(size=3400)
    noise = np.where(x > 0.5, rng.standard_t(2, size=3400), rng.uniform(-1, 1, size=3400))
    y = 4.0 * x + 0.3 * noise
    model = SimilarityRegressor(random_state=0).fit(x[:400, None], y[:400])
    assert model.spread_ is not None
    low, high = model.predict_interval(x[400:, None], 0.8).T
    inside = (low <= y[400:]) & (y[400:] <= high)
    is_high = x[400:] > 0.5
    assert abs(inside[is_high].mean() - 0.8) < 0.05
    assert abs(inside[~is_high].mean() - 0.8) < 0.06


def test_units_of_the_target_do_not_matter(fitted):
    X, y = scattered(300)
    large = SimilarityRegressor(random_state=0).fit(X, 1e4 * y + 7e5)
    new = scattered(20, seed=3)[0]
    expected = 1e4 * fitted.predict_interval(new) + 7e5
    assert_allclose(large.predict_interval(new), expected, rtol=1e-6)


def test_one_width_if_the_noise_is_the_same_everywhere():
    models = []
    for seed in range(5):
        X, y = scattered(150, seed, ratio=1.0)
        models.append(SimilarityRegressor(random_state=0).fit(X, y))
    constant = [model.spread_ is None for model in models]
    assert sum(constant) >= 3
    width = np.diff(models[constant.index(True)].predict_interval(scattered(20, 9)[0]), axis=1)
    assert np.ptp(width) < 1e-9


def test_no_scale_knows_the_error_of_its_own_fold():
    X, y = scattered(200)
    comparisons = Comparisons.of_squares(cdist(X, X, "sqeuclidean"))
    fold_of = np.arange(200) % 5
    predictions = np.sin(3 * X[:, 1])
    before = fit_spread(comparisons, predictions, y, np.ones(200), fold_of)
    changed = y.copy()
    changed[7] += 2.0 * (y[7] - predictions[7])  # three times the error
    after = fit_spread(comparisons, predictions, changed, np.ones(200), fold_of)
    assert before is not None
    assert after is not None
    ratio = after.out_of_fold / before.out_of_fold
    # other folds mix a little differently, their items near by see a larger error
    assert abs(ratio[7] - 1.0) < 0.05
    near = np.argsort(cdist(X[[7]], X)[0])[1:6]
    assert ratio[near[fold_of[near] != fold_of[7]]].min() > ratio[7]


def test_groups_weights_and_models_without_scales():
    X, y = scattered(240)
    groups = np.arange(240) // 3
    model = SimilarityRegressor(random_state=0).fit(X, y, groups=groups)
    held = model.out_of_fold_
    errors = np.abs(held.prediction - held.target) / model.spread_.out_of_fold
    factor = conformal_quantile(errors, 0.9, groups)  # every group counts once
    block = model._compare_new(X, None)
    scale = model.spread_(block, model.stack_(block)[:, 0])
    assert_allclose(np.diff(model.predict_interval(X), axis=1)[:, 0], 2 * factor * scale)
    weight = (np.arange(240) < 200).astype(float)
    weighted = SimilarityRegressor(random_state=0).fit(X, y, weight)
    removed = SimilarityRegressor(random_state=0).fit(X[:200], y[:200])
    assert_allclose(weighted.predict_interval(X[:9]), removed.predict_interval(X[:9]), rtol=1e-6)
    several = SimilarityRegressor(["gaussian", "laplacian"], random_state=0).fit(X, y)
    few = SimilarityRegressor(landmarks=50, random_state=0).fit(X, y)
    both = SimilarityRegressor(random_state=0).fit(X, np.column_stack([y, -y]))
    for other in (several, few, both):
        assert other.spread_ is None
        assert np.ptp(np.diff(other.predict_interval(X[:9]), axis=-1), axis=0).max() < 1e-9
