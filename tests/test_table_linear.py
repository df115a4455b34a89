"""The linear member of the table learner: logistic regression of classes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from mercerless import TableClassifier, persistence
from mercerless.lab.model import Rows, Settings
from mercerless.table.members.candidate import Contest
from mercerless.table.members.linear import LIMITS, LinearClasses, linear_candidate, linear_path
from mercerless.table.weighing import Labeled


def noisy_classes(n=150, n_classes=2, seed=0):
    """Features, and classes whose log-odds are linear in the first two."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 4))
    scores = X[:, :2] @ random.normal(size=(2, n_classes)) + random.gumbel(size=(n, n_classes))
    labels = scores.argmax(axis=1)
    Y = np.zeros((n, 1 if n_classes == 2 else n_classes))
    return Labeled(Rows(X, Y), labels)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_log_odds_are_those_of_scikit_learn(n_classes):
    known = noisy_classes(n_classes=n_classes)
    member = linear_path(known, [1.0, 20.0])[-1]
    peer = LogisticRegression(C=20.0 / 150, tol=1e-8).fit(known.rows.X, known.labels)
    log_odds = peer.decision_function(known.rows.X).reshape(150, -1)
    assert_allclose(member(known.rows.X), log_odds, atol=2e-3)
    moved = member.in_units(np.full(log_odds.shape[1], 0.5), np.full(log_odds.shape[1], 2.0))
    assert_allclose(moved(known.rows.X), 2.0 * member(known.rows.X) + 0.5)


def test_weights_are_repeated_rows():
    known = noisy_classes()
    counts = np.random.RandomState(1).randint(1, 4, size=150)
    weighted = known._replace(rows=replace(known.rows, weight=counts / counts.mean()))
    repeated = known.take(np.repeat(np.arange(150), counts))
    first = linear_path(weighted, [30.0])[0]
    second = linear_path(repeated, [30.0])[0]
    assert_allclose(first.coef, second.coef, atol=1e-3)


def test_a_class_that_a_fold_does_not_know_is_the_least_likely():
    known = noisy_classes(n_classes=3)
    without = known.take(known.labels != 1)
    for given in (without, known._replace(labels=known.labels + (known.labels == 2))):
        unseen = np.setdiff1d(np.arange(3), given.labels)
        wide = given._replace(rows=Rows(given.rows.X, np.zeros((len(given.labels), 4))))
        log_odds = linear_path(wide, [10.0])[0](0.1 * wide.rows.X)
        assert log_odds.shape[1] == 4
        assert_array_equal(np.isin(log_odds.argmin(axis=1), [*unseen, 3]), True)


def test_held_out_labels_do_not_enter_their_own_predictions():
    known = noisy_classes()
    folds = [(np.arange(100), np.arange(100, 150))]
    before = linear_candidate(known, folds).out_of_fold
    path = linear_path(known.take(folds[0][0]), LIMITS.inverse_penalties)
    settings = np.stack([member(known.rows.X[100:]) for member in path])
    assert np.all(np.any(settings == before, axis=0))
    for row in (0, 20, 49):
        labels = known.labels.copy()
        labels[100 + row] = 1 - labels[100 + row]
        flipped = linear_candidate(known._replace(labels=labels), folds)
        assert flipped.out_of_fold[row] == before[row]


def test_it_competes_for_classes_of_tables_that_are_not_too_large():
    known = noisy_classes()
    folds = [(np.arange(100), np.arange(100, 150))]
    contest = Contest(known.rows, folds, Settings(), classes=known.labels)
    assert [found.name for found in LinearClasses().candidates(contest, [])] == ["linear"]
    numbers = Contest(known.rows, folds, Settings())
    assert LinearClasses().candidates(numbers, []) == []
    one_class = Contest(known.rows, folds, Settings(), classes=(np.arange(150) >= 100).astype(int))
    assert LinearClasses().candidates(one_class, []) == []
    many = Rows(np.broadcast_to(np.float32(0), (10**6, 10)), np.zeros((10**6, 1)))
    large = Contest(many, folds, Settings(), classes=np.zeros(10**6, dtype=int))
    assert LinearClasses().candidates(large, []) == []


def of_linear(model, frame):
    """The log-odds of the linear member."""
    (member,) = [member for member in model.members_ if member.name == "linear"]
    return member(model._new_rows(frame[list(model.feature_names_in_)]))[:, 0]


def test_words_gaps_and_saved_models(tmp_path):
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.normal(size=(160, 3)), columns=list("abc"))
    frame["word"] = random.choice(["red", "green", "blue"], 160)
    score = frame["a"] - frame["b"] + (frame["word"] == "red")
    y = np.where(score + random.logistic(size=160) > 0, "yes", "no")
    frame.loc[:9, "c"] = np.nan
    model = TableClassifier(["local", "linear"], max_iter=5, random_state=0).fit(frame, y)
    names = [member.name for member in model.members_]
    assert "linear" in names and "linear" in model.validation_errors_
    alone = model.estimators_[names.index("linear")]
    assert alone.score(frame, y) > 0.65

    path = tmp_path / "model.skops"
    persistence.save(model, path)
    assert_array_equal(persistence.load(path).predict_proba(frame), model.predict_proba(frame))

    permuted = TableClassifier(["local", "linear"], max_iter=5, random_state=0)
    permuted.fit(frame[["word", "c", "b", "a"]], y)
    log_odds = [of_linear(fitted, frame) for fitted in (model, permuted)]
    assert np.corrcoef(log_odds)[0, 1] > 0.9999
    small = model.distill(frame)
    assert small.predict_proba(frame).shape == (160, 2)
