"""Out-of-fold probabilities in the records: those of the fits that were scored, for every class, in files too."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from mercerless import compare
from mercerless.comparison import scoring
from mercerless.comparison.problem import make_problem
from mercerless.comparison.records import Record, Store
from mercerless.comparison.scoring import class_probabilities

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
SCORE = X[:, 0] + 0.5 * RNG.normal(size=90)
TWO = np.where(SCORE > 0.3, "yes", "no")
THREE = np.array(["low", "middle", "high"])[np.digitize(SCORE, [-0.5, 0.5])]


def race(y, learners):
    return compare(X, y, learners=learners, repeats=1, curves=False)


@pytest.mark.parametrize("y", [TWO, THREE])
def test_records_have_the_probabilities_of_their_fits(y):
    model = LogisticRegression(C=0.5)
    result = race(y, ["dummy", ("mine", model)])
    for split in result.splits:
        record = result.results["mine"][split]
        test = result.rows_of_splits[split]
        train = np.setdiff1d(np.arange(len(y)), test)
        expected = model.fit(X[train], y[train]).predict_proba(X[test])
        np.testing.assert_allclose(record.probability, expected, atol=1e-6)
        loss = log_loss(y[test], expected, labels=model.classes_)
        assert record.scores["log_loss"] == pytest.approx(loss, abs=1e-9)


def test_a_machine_without_probabilities_keeps_its_scores_of_two_classes():
    machine = SVC(kernel="linear")
    result = race(TWO, ["dummy", ("mine", machine)])
    for split in result.splits:
        record = result.results["mine"][split]
        test = result.rows_of_splits[split]
        train = np.setdiff1d(np.arange(len(TWO)), test)
        expected = machine.fit(X[train], TWO[train]).decision_function(X[test])
        np.testing.assert_allclose(record.probability, expected[:, None])
        assert "log_loss" not in record.scores and "roc_auc" in record.scores
    of_three = race(THREE, ["dummy", ("mine", machine)])
    assert all(record.probability.size == 0 for record in of_three.results["mine"].values())


class KnowsTwo(ClassifierMixin, BaseEstimator):
    """A classifier whose training items lacked the class in the middle of the alphabet."""

    classes_ = np.array(["high", "middle"])

    def predict_proba(self, X):
        return np.tile([1.0, 3.0], (len(X), 1))


def test_a_class_that_was_not_trained_has_probability_zero():
    problem = make_problem(X, THREE)
    found = class_probabilities(problem, KnowsTwo(), X[:4])
    np.testing.assert_allclose(found, np.tile([0.25, 0.0, 0.75], (4, 1)))


def test_numbers_have_no_probabilities_and_too_many_are_not_kept(monkeypatch):
    assert all(record.probability.size == 0 for record in race(SCORE, ["dummy", "linear"]).records)
    monkeypatch.setattr(scoring, "SIZES", replace(scoring.SIZES, most_probabilities=20))
    result = race(TWO, ["dummy", "linear"])
    assert all(record.probability.size == 0 for record in result.records)
    assert all("log_loss" in record.scores for record in result.records)


@pytest.mark.parametrize("learners", [["dummy", "linear"], ["dummy", ("mine", SVC())]])
def test_files_of_a_run_keep_them(tmp_path, learners):
    store = Store(tmp_path / "run")
    records = race(TWO, learners).records
    for record in records:
        store.put(record)
    again = Store(tmp_path / "run", resume=True).records
    for record in records:
        np.testing.assert_array_equal(again[record.task].probability, record.probability)
        assert again[record.task].probability.shape == record.probability.shape
    empty = Record.from_plain(records[0]._replace(probability=np.empty((0, 0))).to_plain())
    assert empty.probability.shape == (0, 0)
