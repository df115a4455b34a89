"""How classes of a table become probabilities: one scale for all members, folds and the model that predicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from mercerless import TableClassifier
from mercerless.lab.model import Rows
from mercerless.table import estimators
from mercerless.table.encoding import TreeColumns
from mercerless.table.members.trees import Trees
from mercerless.table.weighing import Labeled, Pool, weigh_classes

RNG = np.random.RandomState(0)


def two_members(n, unit, seed=0):
    """Scores of two models that are as good as each other, the second in another unit, and the classes."""
    random = np.random.RandomState(seed)
    truth = random.normal(size=(n, 1))
    labels = (truth[:, 0] + 0.5 * random.normal(size=n) > 0).astype(int)
    first = truth + random.normal(size=(n, 1))
    second = unit * (truth + random.normal(size=(n, 1)))
    return [first, second], Labeled(Rows(truth, truth), labels)


def test_slopes_are_those_of_platt():
    scores = RNG.normal(size=(400, 1))
    labels = (RNG.uniform(size=400) < expit(2.0 * scores[:, 0] - 1.0)).astype(int)
    held = Labeled(Rows(scores, scores), labels)
    peer = LogisticRegression(C=np.inf).fit(scores, labels)
    found = Pool.of([scores, 0.01 * scores], held, 4)
    assert_allclose(found.slopes, peer.coef_[0, 0] * np.array([1.0, 100.0]), rtol=0.02)
    assert_allclose(found.weights, 0.5, atol=1e-3)
    assert_allclose(found([scores, 0.01 * scores]), found.slopes[0] * scores)


@pytest.mark.parametrize("unit", [0.05, 1.0, 20.0])
def test_out_of_fold_scores_are_as_large_as_those_of_the_final_average(unit):
    predictions, held = two_members(150, unit)
    verdict = weigh_classes(predictions, held, 4)
    assert verdict.weights.sum() == pytest.approx(1.0)
    final = np.tensordot(verdict.weights * verdict.slopes, predictions, 1)
    assert_allclose(verdict.out_of_fold.std(), final.std(), rtol=0.05)
    # nowhere is the scale another one
    ratios = np.abs(verdict.out_of_fold / final)[np.abs(final) > final.std()]
    assert np.quantile(ratios, 0.05) > 0.8 and np.quantile(ratios, 0.95) < 1.2
    # the unit of a member changes nothing
    same = weigh_classes(two_members(150, 1.0)[0], held, 4)
    assert_allclose(verdict.weights, same.weights, atol=1e-4)
    assert_allclose(verdict.out_of_fold, same.out_of_fold, atol=1e-3)


def test_the_label_of_a_row_does_not_enter_its_own_score():
    predictions, held = two_members(90, 10.0)
    before = weigh_classes(predictions, held, 4).out_of_fold
    for row in (0, 17, 89):
        labels = held.labels.copy()
        labels[row] = 1 - labels[row]
        flipped = weigh_classes(predictions, held._replace(labels=labels), 4)
        assert flipped.out_of_fold[row] == before[row]
        assert np.mean(flipped.out_of_fold == before) < 0.2


def test_members_predict_log_odds_and_their_sum_is_calibrated(monkeypatch):
    random = np.random.RandomState(1)
    X = random.normal(size=(400, 5))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.7 * random.normal(size=400) > 0.8).astype(int)
    seen = {}
    calibrate = estimators.calibrate_held_out

    def spy(table, held, scores, *others):
        seen["scores"] = scores
        return calibrate(table, held, scores, *others)

    monkeypatch.setattr(estimators, "calibrate_held_out", spy)
    model = TableClassifier(max_iter=20, random_state=0).fit(X[:200], y[:200])
    Z = model.encoding_(X[200:])
    for member in model.members_:  # each would do alone
        alone = expit(member(Z)[:, 0] + logit(y[:200].mean()))
        assert log_loss(y[200:], alone) < log_loss(y[200:], np.full(200, y.mean()))
    scores = sum(member.weight * member(Z) for member in model.members_)
    assert_allclose(seen["scores"].std(), scores.std(), rtol=0.25)
    slope, bias = model.calibration_.slope, model.calibration_.bias
    by_hand = expit(slope * scores[:, 0] + bias[1] - bias[0])
    assert_allclose(model.predict_proba(X[200:])[:, 1], by_hand, rtol=1e-9)
    assert 0.5 < slope < 2.0


def test_classes_of_a_table_too_small_to_hold_rows_out():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = TableClassifier(random_state=0).fit(X, [0, 0, 1, 1])
    assert_array_equal(model.predict(X), [0, 0, 1, 1])
    assert model.out_of_fold_ is None


def test_log_odds_of_trees_alone():
    models = HistGradientBoostingRegressor(max_iter=3).fit(
        RNG.normal(size=(60, 2)), RNG.normal(size=60)
    )
    trees = Trees("trees", [models], np.zeros(1), np.ones(1), 1.0, None, TreeColumns())
    X = RNG.normal(size=(9, 2))
    once = trees.in_units(np.array([1.0]), np.array([3.0]))
    assert_allclose(once(X), 3 * trees(X) + 1)
    assert_allclose(once.in_units(np.array([-1.0]), np.array([2.0]))(X), 2 * once(X) - 1)
