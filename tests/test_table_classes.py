"""How classes of a table become probabilities: one scale for all members, folds and the model that predicts."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from mercerless import LABClassifier, TableClassifier
from mercerless.core.calibration import cross_calibrate
from mercerless.core.estimator import class_scores
from mercerless.core.folds import OutOfFold
from mercerless.core.validation import UselessModelWarning, leave_one_out_constant, warn_if_useless
from mercerless.lab import base
from mercerless.lab.model import Rows
from mercerless.table.encoding import TreeColumns
from mercerless.table.fit import class_shares
from mercerless.table.members.trees import Trees, boost
from mercerless.table.weighing import Labeled, Pool, warn_if_no_better_than_shares, weigh_classes

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
    calibrate = base.calibrate_held_out

    def spy(table, held, scores, *others):
        seen["scores"] = scores
        return calibrate(table, held, scores, *others)

    monkeypatch.setattr(base, "calibrate_held_out", spy)
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


def rare_class(n_rare, n, separation, seed=0):
    """Scores of a rare class that ranks well, and the classes."""
    random = np.random.RandomState(seed)
    labels = np.zeros(n, dtype=int)
    labels[:n_rare] = 1
    return random.normal(size=(n, 1)) + separation * labels[:, None], labels


def test_a_rare_class_that_ranks_well_is_no_reason_to_warn():
    scores, labels = rare_class(20, 2020, 1.5)
    assert roc_auc_score(labels, scores[:, 0]) > 0.8
    probabilities = cross_calibrate(class_scores(scores), labels)
    held = OutOfFold(np.arange(2020), probabilities, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_no_better_than_shares(held, np.ones(2020), "TableClassifier")
    # squared errors, capped, would have warned
    truth = np.eye(2)[labels]
    squares = ((probabilities - truth) ** 2).sum(axis=1)
    with pytest.warns(UselessModelWarning):
        warn_if_useless(squares, leave_one_out_constant(truth), "TableClassifier")


def test_probabilities_worse_than_the_shares_of_the_classes_are_a_reason():
    _, labels = rare_class(60, 200, 0.0)
    wrong = np.where(np.eye(2)[labels] == 1, 0.2, 0.8)
    held = OutOfFold(np.arange(200), wrong, labels)
    with pytest.warns(UselessModelWarning, match="TableClassifier is worse than a constant"):
        warn_if_no_better_than_shares(held, np.ones(200), "TableClassifier")


@pytest.mark.slow
def test_no_warning_for_twenty_positives_in_two_thousand_rows():
    random = np.random.RandomState(3)
    X = random.normal(size=(2020, 4))
    y = np.zeros(2020, dtype=int)
    y[:20] = 1
    X[:20, 0] += 1.7
    with warnings.catch_warnings():
        warnings.simplefilter("error", UselessModelWarning)
        model = TableClassifier(["local"], max_iter=10, random_state=0).fit(X, y)
    held = model.out_of_fold_
    assert roc_auc_score(held.target, held.prediction[:, 1]) > 0.7


def copies_of_two_classes(n=120, n_copies=6, seed=0):
    """Rows of which several are equal, with classes by probabilities, and the distinct rows."""
    random = np.random.RandomState(seed)
    distinct = random.normal(size=(n, 2))
    probability = np.where(distinct[:, 0] * distinct[:, 1] > 0, 0.85, 0.15)
    number = np.repeat(np.arange(n), n_copies)
    labels = (random.uniform(size=len(number)) < probability[number]).astype(int)
    return distinct, number, labels


def test_equal_rows_of_different_classes_all_count():
    distinct, number, labels = copies_of_two_classes()
    labels = labels[np.lexsort([-labels, number])]  # the first of equal rows is no typical one
    weight = RNG.uniform(0.5, 2.0, len(labels))
    shares = class_shares(number, labels, weight)
    assert_allclose(shares.sum(axis=1), 1.0)
    assert_allclose(shares[7, 1], np.average(labels[number == 7], weights=weight[number == 7]))
    assert class_shares(np.arange(len(labels)), labels, weight) is None

    total = np.bincount(number, weights=weight)
    first = labels[np.searchsorted(number, np.arange(len(distinct)))]
    merged = Labeled(Rows(distinct, distinct, total), first, shares)
    every = Labeled(Rows(distinct[number], distinct[number], weight), labels)
    scores = [RNG.normal(size=(len(distinct), 1)), distinct[:, :1] * distinct[:, 1:]]
    assert_allclose(merged.loss(scores[1]), every.loss(scores[1][number]))
    assert_allclose(merged.judge(scores[1]), every.judge(scores[1][number]), rtol=1e-3)
    few = merged.take([3, 4]).joined(merged.take([0]))
    assert_allclose(few.losses(scores[1][[3, 4, 0]]), merged.losses(scores[1])[[3, 4, 0]])
    assert Pool.of(scores, merged, 2).weights.argmax() == 1

    trees = boost(merged, 20, seed=0)
    proba = trees[0].predict_proba(distinct)[:, 1]
    right = np.where(distinct[:, 0] * distinct[:, 1] > 0, 0.85, 0.15)
    assert np.mean(np.abs(proba - right)) < 0.15


def test_the_order_of_equal_rows_does_not_matter():
    distinct, number, labels = copies_of_two_classes()
    falling = np.lexsort([-labels, number])
    rising = np.lexsort([labels, number])
    names = ["local", "trees"]
    models = [
        TableClassifier(names, max_iter=10, random_state=0).fit(
            distinct[number[order]], labels[order]
        )
        for order in (falling, rising)
    ]
    for model in models:
        assert "boosted trees" in [member.name for member in model.members_]
        assert model.validation_errors_["boosted trees"] < 0.6
    proba = [model.predict_proba(distinct)[:, 1] for model in models]
    assert np.corrcoef(proba)[0, 1] > 0.9


def test_rates_of_few_combinations_of_categories_are_learned():
    """Held out with all their equals, combinations would always be new ones, and their rates a guess."""
    random = np.random.RandomState(0)
    cells = random.randint(0, [3, 2, 2], size=(600, 3))
    rate = random.uniform(0.05, 0.95, size=(3, 2, 2))
    of_row = rate[tuple(cells.T)]
    labels = (random.uniform(size=600) < of_row).astype(int)
    model = TableClassifier(random_state=0).fit(cells.astype(float), labels)
    proba = model.predict_proba(cells.astype(float))[:, 1]
    assert np.mean(np.abs(proba - of_row)) < 0.08


@pytest.mark.parametrize("cls", [TableClassifier, LABClassifier])
def test_sets_cover_with_weights_of_classes(cls):
    """Probabilities of held-out rows, which make the thresholds, have the weights of those of new rows."""
    covered = []
    for seed in range(3):
        random = np.random.RandomState(seed)
        X = random.normal(size=(1400, 3))
        y = (X[:, 0] + 0.8 * random.normal(size=1400) > 1.6).astype(int)
        model = cls(class_weight={0: 1.0, 1: 20.0}, max_iter=3, random_state=0)
        if cls is TableClassifier:
            model.set_params(members=["local"])
        model.fit(X[:400], y[:400])  # without a warning that it is useless
        sets = model.predict_set(X[400:], 0.8, allow_empty=True)
        covered.append(np.mean(sets[np.arange(1000), y[400:]]))
        mean_held_out = model.out_of_fold_.prediction[:, 1].mean()
        assert abs(mean_held_out - model.predict_proba(X[400:])[:, 1].mean()) < 0.1
    assert 0.75 < np.mean(covered) < 0.86
