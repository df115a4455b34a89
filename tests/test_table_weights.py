"""Weights of tables: a whole weight is the same as repetition."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import LABRegressor, TableClassifier, TableRegressor
from mercerless.core.copies import Observations, merge_copies

QUICK = {"members": ["local", "ridge", "trees"], "max_iter": 10, "random_state": 0}


def waves(n, seed=0):
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3))
    counts = random.randint(1, 4, size=n)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n), counts


@pytest.mark.parametrize("classify", [False, True])
def test_whole_weights_are_repetition(classify):
    X, y, counts = waves(140)
    learner = TableRegressor
    if classify:
        learner, y = TableClassifier, (y > 0.3).astype(int)
    rows = np.repeat(np.arange(100), counts[:100])
    weighted = learner(**QUICK).fit(X[:100], y[:100], sample_weight=counts[:100])
    repeated = learner(**QUICK).fit(X[rows], y[rows])
    assert weighted.n_distinct_ == repeated.n_distinct_ == 100
    if classify:
        first, second = weighted.predict_proba(X[100:]), repeated.predict_proba(X[100:])
        assert_allclose(first, second, atol=1e-3)
    else:
        first, second = weighted.predict(X[100:]), repeated.predict(X[100:])
        assert np.max(np.abs(first - second)) < 1e-3 * y.std()  # .08 before
    ignored = learner(**QUICK).fit(X[:100], y[:100])
    assert not np.allclose(ignored._scores(X[100:]), weighted._scores(X[100:]), atol=1e-3)


@pytest.mark.parametrize("seed", [3, 4])
def test_whole_weights_are_repetition_for_tails_outliers_words_and_gaps(seed):
    """Outliers, transforms of the target and encodings are decided by distinct rows as well."""
    n = 150
    random = np.random.RandomState(seed)
    X, waves_of_rows, counts = waves(n + 40, seed=seed)
    word = random.choice(list("abcde"), p=[0.4, 0.3, 0.25, 0.03, 0.02], size=n + 40)
    is_missing = random.uniform(size=n + 40) < 0.02
    gaps = np.where(is_missing, np.nan, X[:, 0])
    frame = pd.DataFrame(X).add_prefix("x").assign(word=word, gaps=gaps)
    y = np.exp(1.5 * waves_of_rows + (word == "c"))
    if seed == 3:
        y[:4] += [300.0, -300.0, 400.0, 500.0]
    rows = np.repeat(np.arange(n), counts[:n])
    weighted = TableRegressor(**QUICK).fit(frame[:n], y[:n], sample_weight=counts[:n])
    repeated = TableRegressor(**QUICK).fit(frame.iloc[rows], y[rows])
    assert_array_equal(np.unique(rows[repeated.outliers_]), weighted.outliers_)
    names = [member.name for member in weighted.members_]
    assert names == [member.name for member in repeated.members_]
    assert weighted.encoding_.names == repeated.encoding_.names
    first, second = weighted.predict(frame[n:]), repeated.predict(frame[n:])
    assert np.max(np.abs(first - second)) < 5e-3 * y[4:].std()  # 1.09 and 3.37 before


def test_equal_rows_with_different_targets_keep_their_weights():
    """Sorted by distinct rows, or in the order of the rows: targets and weights alike."""
    copies = np.array([0, 1, 0, 2, 1, 0])
    weight = np.array([5.0, 1.0, 3.0, 7.0, 2.0, 4.0])
    for targets in ([6.0, 5.0, 4.0, 3.0, 2.0, 1.0], [6.0, 5.0, 6.0, 3.0, 2.0, 1.0]):
        y = np.array(targets)
        observed = Observations.of(copies, y[:, None])
        pairs = list(zip(observed.take(copies), observed.take(y)))
        expected = [weight[(copies == copy) & (y == target)].sum() for copy, target in pairs]
        assert_array_equal(observed.total(weight), expected)
        assert_array_equal(observed.spread(observed.take(y)), y)


def test_observations_of_equal_rows_by_hand():
    copies = np.array([0, 0, 0, 1, 1, 2])
    Y = np.array([[1.0], [1.0], [4.0], [2.0], [2.0], [3.0]])
    merged = merge_copies(Y, None, copies)
    assert_array_equal(merged.total, [3.0, 2.0, 1.0])
    assert_array_equal(merged.counts, [2, 1, 1])  # different targets
    assert_allclose(merged.Y[:, 0], [2.0, 2.0, 3.0])
    assert_allclose(merged.weights(1.0), [1.5, 2.0, 1.0])
    weighted = merge_copies(Y[[0, 2, 3, 5]], np.array([2.0, 1.0, 2.0, 1.0]), copies[[0, 2, 3, 5]])
    for mine, other in zip(merged[1:], weighted[1:]):
        assert_allclose(mine, other)
    same = merge_copies(Y[[0, 1, 3, 4]], None, copies[[0, 1, 3, 4]])
    assert same.pure_error == 0.0
    assert_array_equal(same.weights(1.0), [2.0, 2.0])


@pytest.mark.parametrize("cls", [TableRegressor, LABRegressor])
def test_rows_without_weight_do_not_renumber_the_others(cls):
    """Support points, reasons and outliers are counted among all rows given to fit."""
    random = np.random.RandomState(0)
    X = random.normal(size=(240, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * random.normal(size=240)
    wrong = np.arange(60, 240, 30)
    y[wrong] += 10.0 * np.array([1, -1, -1, 1, 1, -1])
    weight = np.where(np.arange(240) < 50, 0.0, 1.0)
    model = cls(max_iter=3, random_state=0)
    if cls is TableRegressor:
        model.set_params(members=["local", "ridge"])
    model.fit(X, y, weight)
    for form in model._kernel_forms():
        assert_allclose(form.support_vectors, X[form.support])
    reasons = model.explain(X[:5])
    is_item = reasons.items >= 0
    assert_allclose(reasons.given[is_item].astype(float), y[reasons.items[is_item]])
    if cls is TableRegressor:
        assert set(wrong) <= set(model.outliers_) and len(model.outliers_) < 10
