"""The comparison: same splits, honest words, a budget that is kept, nothing lost when it is interrupted."""

import json
import os
import re
import signal
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from joblib.externals.loky.process_executor import ShutdownExecutorError
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import mercerless
from mercerless.comparison import learners, schedule, scoring
from mercerless.comparison.code import code_for
from mercerless.comparison.learners import (
    LEARNERS,
    Learner,
    Terms,
    matrix_for,
    select_learners,
    share_decompositions,
)
from mercerless.comparison.negative import NegativePart, judge_negative_part, negative_sentences
from mercerless.comparison.options import Options
from mercerless.comparison.problem import make_problem
from mercerless.comparison.records import Level, Record, Store, Task
from mercerless.comparison.report import render, render_short
from mercerless.comparison.result import Comparison, compare, compare_problem
from mercerless.comparison.schedule import Run
from mercerless.comparison.scoring import outer_folds, possible_parts, take_part
from mercerless.comparison.words import format_score, parse_budget
from mercerless.comparison.workers import (
    Finished,
    Here,
    Job,
    Processes,
    _read_results,
    started_early,
)
from mercerless.datasets import load_digit_shapes, make_balls3d
from mercerless.spectra import DissimilarityKernel, indefiniteness

SHAPES = load_digit_shapes(100)
CHEAP = ["dummy", "neighbors", "krein-ridge"]


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("cache")))
        return compare(SHAPES.D, SHAPES.target, learners=CHEAP, repeats=2, name="shapes")


# ------------------------------------------------------------------------------------------------------- results


@pytest.mark.slow
def test_scores_are_those_of_the_same_splits_by_hand(result):
    terms = Terms(result.problem, "accuracy")
    learner = select_learners(result.problem, ("neighbors",))[0][0]
    expected = []
    for repeat in range(2):
        splitter = StratifiedKFold(5, shuffle=True, random_state=repeat)
        for train, test in splitter.split(SHAPES.D, SHAPES.target):
            model = learner.build(terms).fit(SHAPES.D[np.ix_(train, train)], SHAPES.target[train])
            expected.append(model.score(SHAPES.D[np.ix_(test, train)], SHAPES.target[test]))
    row = next(row for row in result.table if row["learner"] == "neighbors")
    assert row["score"] == pytest.approx(np.mean(expected), rel=1e-12)
    assert len(result.splits) == 10 and result.n_repeats == 2


def judged_on(comparison, split):
    """What all learners did on one split."""
    records = [comparison.results[name][split] for name in comparison.names]
    return comparison._split(split, records)


def test_items_average_to_the_scores(result):
    for column, name in enumerate(result.names):
        means = [
            judged_on(result, split).contributions[:, column].mean() for split in result.splits
        ]
        np.testing.assert_allclose(means, result._scores(name), rtol=1e-12)


def test_the_table_and_the_words(result):
    assert result.recommended == result.table[0]["learner"] != "dummy"
    assert result.table[-1]["learner"] == "dummy" and result.table[-1]["verdict"] == "worse"
    assert [row["score"] for row in result.table] == sorted(
        (row["score"] for row in result.table), reverse=True
    )
    assert "dummy" not in result.ties
    text = str(result)
    assert "Constant guess" in text and result.verdict[0] in text
    assert ("no winner" in result.verdict[0]) == bool(result.ties)
    pandas = pytest.importorskip("pandas")
    assert (
        isinstance(result.to_pandas(), pandas.DataFrame)
        and list(result.to_pandas().index) == result.names
    )


def test_the_code_to_copy_is_the_estimator_that_was_scored(result):
    for name in result.names:
        code = result.code(name).replace("X, y = ...  # your data", "")
        space = {"X": matrix_for(result.problem, "symmetric"), "y": result.problem.y}
        exec(code, space)
        assert repr(space["estimator"]) == repr(result.estimator(name))
        assert len(space["estimator"].predict(space["X"])) == 100


def test_json_holds_everything_but_the_data(result, tmp_path):
    result.save(tmp_path / "result.json")
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["recommended"] == result.recommended and len(content["table"]) == 3
    assert content["negative"]["verdict"] in ("useful", "harmful", "undecided")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["result.json"]


@pytest.mark.slow
def test_learning_curves_end_at_the_scores_of_the_table():
    problem = make_problem(SHAPES.D, SHAPES.target % 2)
    found = compare_problem(problem, Options(learners=["dummy", "neighbors"], repeats=1))
    ends = {name: points[-1] for name, points in found.curves.items()}
    assert len(found.curves["neighbors"]) == 2 and found.curve_folds == [0, 1, 2, 3, 4]
    assert ends == {row["learner"]: (80, pytest.approx(row["score"])) for row in found.table}


def test_learning_curves_grow_with_the_training_set(result):
    sizes = [size for size, _ in result.curves["neighbors"]]
    assert sizes == sorted(set(sizes)) and sizes[-1] == 80


@pytest.mark.slow
def test_nothing_to_learn_has_no_winner():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    found = compare(
        X,
        rng.permutation(np.repeat([0, 1], 40)),
        learners=["dummy", "neighbors", "linear"],
        repeats=2,
    )
    assert not found.has_winner and "no winner" in found.verdict[0]
    assert "constant guess" in found.verdict[-1] or found.recommended == "dummy"


@pytest.mark.slow
def test_regression_on_a_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    found = compare(X, X[:, 0] - 2 * X[:, 1], learners=["dummy", "linear", "neighbors"], repeats=1)
    assert found.recommended == "linear" and found.table[0]["r2"] > 0.99 and found.has_winner
    assert {"rmse", "mae"} <= set(found.table[0])
    assert found.spectrum is None and found.negative is None


@pytest.mark.slow
def test_balanced_accuracy_as_the_score_that_counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 1.0).astype(int)
    found = compare(X, y, learners=["dummy", "linear"], repeats=1, metric="balanced_accuracy")
    assert next(row for row in found.table if row["learner"] == "dummy")["score"] == pytest.approx(
        0.5
    )
    for split in found.splits:
        record = found.results["linear"][split]
        expected = balanced_accuracy_score(record.target, record.predicted)
        assert record.scores["balanced_accuracy"] == pytest.approx(expected, rel=1e-12)


def test_a_given_test_set_is_scored_and_does_not_choose():
    D, y = SHAPES.D, SHAPES.target % 2
    found = compare(
        D[:70, :70],
        y[:70],
        X_test=D[70:, :70],
        y_test=y[70:],
        learners=["dummy", "neighbors"],
        repeats=1,
    )
    model = found.estimator("neighbors").fit(D[:70, :70], y[:70])
    row = next(row for row in found.table if row["learner"] == "neighbors")
    assert row["test_score"] == pytest.approx(model.score(D[70:, :70], y[70:]))


@pytest.mark.slow
def test_groups_are_never_split():
    groups = np.repeat(np.arange(20), 5)
    problem = make_problem(SHAPES.D, SHAPES.target % 2, groups=groups)
    for train, test in outer_folds(problem, 0, 0):
        assert not set(groups[train]) & set(groups[test])
        for inner, held in scoring.inner_folds(problem, train):
            assert not set(groups[train][inner]) & set(groups[train][held])
    found = compare_problem(problem, Options(learners=CHEAP, repeats=1))
    units = [judged_on(found, split).units for split in found.splits]
    assert len(set(np.concatenate(units))) == 20  # judged over groups, not over items


@pytest.mark.slow
def test_directed_matrices_are_kept_and_averaged_for_those_who_need_it():
    D = SHAPES.D + np.triu(np.random.default_rng(0).uniform(size=SHAPES.D.shape), 1)
    problem = make_problem(D, SHAPES.target % 2, kind="distance")
    names = [learner.name for learner in select_learners(problem)[0]]
    assert "asymmetric" in names
    np.testing.assert_array_equal(matrix_for(problem, "given"), D)
    np.testing.assert_allclose(matrix_for(problem, "symmetric"), (D + D.T) / 2)
    found = compare_problem(problem, Options(learners=["neighbors", "asymmetric"], repeats=1))
    assert set(found.names) == {"neighbors", "asymmetric"}


@pytest.mark.slow
def test_dissimilarities_are_neither_squared_nor_turned_round_twice():
    soft = SHAPES.D**2 - 1.0
    problem = make_problem(soft, SHAPES.target % 2)
    assert problem.kind == "dissimilarity"
    np.testing.assert_allclose(matrix_for(problem, "distances"), SHAPES.D**2)
    centered = DissimilarityKernel().fit_transform(SHAPES.D)
    np.testing.assert_allclose(problem.similarities, centered, atol=1e-10 * np.abs(centered).max())
    found = compare_problem(problem, Options(learners=["neighbors", "svm-flip"], repeats=1))
    assert all(row["score"] > 0.7 for row in found.table)
    assert "X = X - X.min()" in code_for(
        problem, select_learners(problem, ("neighbors",))[0][0], DummyClassifier()
    )


@pytest.mark.slow
def test_the_spectrum_is_computed_once(monkeypatch, tmp_path):
    problem = make_problem(SHAPES.D, SHAPES.target % 2)
    calls = []
    whole = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda K: calls.append(len(K)) or whole(K))
    result = compare_problem(
        problem, Options(learners=["dummy", "svm-clip", "svm-flip"], repeats=1)
    )
    assert result.spectrum.n_negative > 0
    result.report(tmp_path / "report.html")
    assert calls == [len(SHAPES.D)]


# ------------------------------------------------------------------------------------------------ the list of learners


@pytest.mark.parametrize(
    "kind, task",
    [
        ("matrix", "classification"),
        ("matrix", "regression"),
        ("table", "classification"),
        ("table", "regression"),
    ],
)
def test_what_a_skeptic_would_ask_for_is_there(kind, task):
    names = {
        learner.name
        for learner in LEARNERS
        if learner.kind == kind and learner.task in (None, task)
    }
    ours = {
        learner.name
        for learner in LEARNERS
        if learner.kind == kind and learner.family == "mercerless"
    }
    if kind == "matrix":
        assert names >= {f"svm-{mode}" for mode in ("raw", "clip", "flip", "square", "shift")}
        assert names >= {"dummy", "neighbors", "features"} and ours >= {
            "krein-ridge",
            "krein-svm",
            "stack",
        }
    else:
        assert names >= {
            "dummy",
            "neighbors",
            "linear",
            "svm-gaussian",
            "ridge-gaussian",
            "boosting",
        }
        assert ours >= {"table", "dank", "hyper", "krein-ridge"}


@pytest.mark.parametrize("name", ["svm-clip", "svm-flip", "svm-square", "svm-shift"])
def test_sharing_decompositions_changes_nothing(name):
    problem = make_problem(SHAPES.D, SHAPES.target % 3)
    learner = select_learners(problem, (name,))[0][0]
    D, y, train = SHAPES.D, problem.y, np.arange(70)
    plain, shared = (
        make(learner.build(Terms(problem, "accuracy")))
        for make in (lambda e: e, share_decompositions)
    )
    for model in (plain, shared):
        model.fit(D[np.ix_(train, train)], y[train])
    np.testing.assert_array_equal(plain.predict(D[70:, :70]), shared.predict(D[70:, :70]))
    np.testing.assert_allclose(
        plain.decision_function(D[70:, :70]),
        shared.decision_function(D[70:, :70]),
        rtol=1e-9,
        atol=1e-9,
    )


def test_one_decomposition_serves_all_modes_and_settings(monkeypatch):
    from mercerless import spectra
    from mercerless.comparison import learners

    calls = []
    monkeypatch.setattr(learners, "_MEMORY", learners._Memory(2**28))
    decompose = spectra.decompose
    monkeypatch.setattr(
        spectra, "decompose", lambda K, rtol: calls.append(len(K)) or decompose(K, rtol)
    )
    problem = make_problem(SHAPES.D, SHAPES.target % 3)
    terms = Terms(problem, "accuracy")
    for learner in select_learners(problem, ("svm-clip", "svm-flip", "svm-square", "svm-shift"))[0]:
        share_decompositions(learner.build(terms)).fit(problem.X, problem.y)
    assert len(calls) == 6  # five inner folds and the whole, instead of 4 modes x 6 values of C x 6


X_TABLE = np.random.default_rng(0).normal(size=(80, 2))


@pytest.mark.slow
def test_own_estimators_are_compared_with_the_others():
    y = (X_TABLE[:, 0] > 0).astype(int)
    mine = LogisticRegression(C=3.0)
    found = compare(X_TABLE, y, learners=["dummy", "linear", mine], repeats=1)
    assert set(found.names) >= {"dummy", "linear", "LogisticRegression"}
    expected = [
        mine.fit(X_TABLE[a], y[a]).score(X_TABLE[b], y[b])
        for a, b in outer_folds(found.problem, 0, 0)
    ]
    row = next(row for row in found.table if row["learner"] == "LogisticRegression")
    assert row["score"] == pytest.approx(np.mean(expected)) and row["family"] == "yours"
    assert "('LogisticRegression', LogisticRegression(C=3.0))" in found.python_command
    names = [learner.name for learner in select_learners(found.problem, {"mine": mine})[0]]
    assert names[-1] == "mine" and "boosting" in names


@pytest.mark.parametrize(
    "wanted, sentence",
    [
        ({"linear": LogisticRegression()}, "There is a learner 'linear' already"),
        ([3.0], "it must be an estimator with fit and predict"),
        (["linear", "linear"], "asked for twice"),
        (["linear@2"], "must be a number above 0, at most 1"),
    ],
)
def test_bad_learners(wanted, sentence):
    with pytest.raises(ValueError, match=sentence):
        compare(X_TABLE, (X_TABLE[:, 0] > 0).astype(int), learners=wanted, repeats=1)


def test_a_part_that_was_asked_for():
    y = (X_TABLE[:, 0] > 0).astype(int)
    found = compare(X_TABLE, y, learners=["dummy", "linear@0.5"], repeats=1, curves=False)
    row = next(row for row in found.table if row["learner"] == "linear")
    assert row["part"] == 0.5 and row["n_train"] == 32
    assert (
        "1 of 2 learners was trained on less than the 64 items of a training set: Linear model (32)"
        in str(found)
    )
    assert "'linear@0.5'" in found.python_command


def test_the_call_that_repeats_a_comparison_of_own_estimators_can_be_typed():
    y = (X_TABLE[:, 0] > 0).astype(int)
    own = [("mine", LogisticRegression(C=3.0)), ("other@0.5", LogisticRegression(C=0.1))]
    found = compare(X_TABLE, y, learners=["dummy", *own], repeats=1, curves=False)
    again = eval(
        found.python_command, {"mercerless": mercerless, "X": X_TABLE, "y": y, **globals()}
    )
    assert [row["score"] for row in again.table] == [row["score"] for row in found.table]
    assert again.parts == found.parts and found.parts["other"] == 0.5
    odd = make_pipeline(FunctionTransformer(np.sin), LogisticRegression())
    found = compare(X_TABLE, y, learners=["dummy", ("mine", odd)], repeats=1, curves=False)
    assert "('mine', mine)" in found.python_command and "# mine: Pipeline(" in found.python_command


@pytest.mark.slow
def test_a_score_of_probabilities_leaves_out_who_gives_none(monkeypatch):
    y = (X_TABLE[:, 0] > 0).astype(int)
    how = {"repeats": 1, "metric": "log_loss", "curves": False}
    found = compare(X_TABLE, y, learners=["dummy", "linear", "svm-gaussian"], **how)
    assert found.left_out == {
        "svm-gaussian": "it gives no probabilities, which neg_log_loss scores"
    }
    assert not found.failed and not any(
        record.task.learner == "svm-gaussian" for record in found.records
    )
    monkeypatch.setattr(Run, "go", None)  # before any work
    with pytest.raises(ValueError, match="scores probabilities, which svm-gaussian does not give"):
        compare(X_TABLE, y, learners=["svm-gaussian"], **how)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["roc_auc", "f1_macro"])
def test_scores_that_are_no_means_over_items(metric):
    rng = np.random.default_rng(1)
    y = (X_TABLE[:, 0] + rng.normal(size=80) > 0).astype(int)
    found = compare(
        X_TABLE, y, learners=["dummy", "linear", "ridge-gaussian"], repeats=2, metric=metric
    )
    linear = [found.results["linear"][split] for split in found.splits]
    if metric == "f1_macro":
        expected = [f1_score(record.target, record.predicted, average="macro") for record in linear]
        assert [record.scores[metric] for record in linear] == pytest.approx(expected)
    scores = np.array(
        [
            [found.results[name][split].scores[metric] for name in found.names]
            for split in found.splits
        ]
    )
    difference = scores[:, 0] - scores[:, 1]
    expected = np.sqrt((1 / 10 + 1 / 4) * difference.var(ddof=1))
    assert found.differences.standard_error[0, 1] == pytest.approx(expected)
    assert found.names[-1] == "dummy" and format_score(found.metric, 0.5) == "50.0 %"


def test_errors_count_as_scores():
    y = X_TABLE[:, 0] - 2 * X_TABLE[:, 1]
    found = compare(X_TABLE, y, learners=["dummy", "linear"], repeats=1, metric="mae")
    row = found.table[0]
    assert found.metric == "neg_mean_absolute_error" and row["score"] == pytest.approx(-row["mae"])
    assert "best mean negative mean absolute error" in found.verdict[0] and found.has_winner


def test_equal_scores_go_to_the_sound_simple_and_cheap(result):
    names = ["svm-raw", "stack", "krein-ridge", "svm-flip"]
    learners = select_learners(result.problem, names)[0]
    costs = {"svm-raw": 0.1, "stack": 0.2, "krein-ridge": 0.5, "svm-flip": 2.0}
    target = np.tile(np.arange(10), 2)
    records = [
        Record(
            Task(name, 0, fold), 80, {"accuracy": 1.0}, costs[name], target=target, predicted=target
        )
        for name in names
        for fold in range(5)
    ]
    found = Comparison(result.terms, learners, records)
    assert found.names == ["krein-ridge", "svm-flip", "stack", "svm-raw"]
    worse = [
        r if r.task.learner == "svm-raw" else r._replace(predicted=np.r_[1, target[1:]])
        for r in records
    ]
    worse = [r._replace(scores={"accuracy": float((r.predicted == target).mean())}) for r in worse]
    found = Comparison(result.terms, learners, worse)
    # the raw matrix is ahead, but a tie
    assert found._ranked[0] == "svm-raw" and found.recommended == "krein-ridge"


def test_unknown_learner_and_metric():
    with pytest.raises(
        ValueError, match="There is no learner 'magic' for this data; there are dummy, neighbors"
    ):
        compare(SHAPES.D, SHAPES.target, learners=["magic"])
    with pytest.raises(ValueError, match="metric='r2' does not suit classification"):
        compare(SHAPES.D, SHAPES.target, metric="r2")
    with pytest.raises(
        ValueError, match="There is no metric 'magic'; for classification there are accuracy,"
    ):
        compare(SHAPES.D, SHAPES.target, metric="magic")


# -------------------------------------------------------------------------------------------- budget, resume, Ctrl-C


@pytest.mark.parametrize(
    "text, seconds", [("90s", 90), ("2m", 120), ("1.5h", 5400), (7, 7), (None, None), ("30", 30)]
)
def test_budgets(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["soon", "-1m", 0])
def test_bad_budgets(text):
    with pytest.raises(ValueError, match="budget"):
        parse_budget(text)


class Clock:
    """A clock that the fake tasks move."""

    start = 0.0

    def __init__(self):
        self.now = self.start

    def __call__(self):
        return self.now


class FakeWorkers(Here):
    """Workers whose jobs take seconds on a clock of their own, and are stopped at their limits."""

    defaults = 0.05  # of the time of a search

    def __init__(self, clock, seconds, growth):
        super().__init__(None)
        self.clock, self.seconds, self.growth = clock, seconds, growth

    def start(self, job, limit=np.inf):
        if job.function is schedule.judge:
            self.finished.append(Finished(job, []))
            return
        records = []
        for learner, task in job.arguments[0]:
            cost = self.seconds[learner.name] * task.part**self.growth
            if task.form == "defaults":
                cost *= self.defaults
            record = Record(
                task, round(80 * task.part), {"accuracy": 0.5}, fit_time=cost, target=np.zeros(20)
            )
            records.append(record)
        cost = sum(record.fit_time for record in records)
        self.clock.now += min(cost, limit)
        self.finished.append(Finished(job, records) if cost <= limit else Finished(job, [], "late"))


def fake_run(monkeypatch, seconds, budget, growth=2.0, is_guessed=True, problem=None, **more):
    """A run whose learners take the given seconds at full size, growing with a power of the training set.

    With `is_guessed` the costs are known before anything was run.
    """
    clock = Clock()
    problem = problem or make_problem(SHAPES.D, SHAPES.target % 2)
    terms = Terms(problem, "accuracy")
    monkeypatch.setattr(schedule.time, "perf_counter", clock)
    learners = select_learners(problem, tuple(seconds))[0]
    if is_guessed:
        for i, learner in enumerate(learners):
            share = FakeWorkers.defaults if learner.has_defaults(terms) else 1.0
            # for a thousand items
            guess = share * seconds[learner.name] * 1000 / 80
            learners[i] = replace(learner, seconds=guess)
    workers = FakeWorkers(clock, seconds, growth)
    options = Options(budget=budget, started=0.0, **more)
    run = Run(terms, learners, options, workers=workers)
    return run.go(), clock


def n_repeats(run):
    """How many repeats are complete for all learners that have splits at full size."""
    full = [task for task in run.store.records if task.part == 1.0]
    names = {task.learner for task in full}
    return sum(
        all(Task(name, repeat, fold) in full for name in names for fold in range(5))
        for repeat in range(10)
    )


def test_a_costly_learner_is_scored_on_parts_before_it_eats_the_budget(monkeypatch):
    run, clock = fake_run(monkeypatch, {"dummy": 0.01, "neighbors": 0.5, "stack": 24.0}, 60.0)
    assert clock.now < 60 and not run.too_slow
    of_learner = [task for task in run.store.records if task.learner == "stack"]
    # 6 s each, not 24
    assert set(of_learner[:5]) == {Task("stack", 0, fold, 0.5) for fold in range(5)}


def test_every_learner_has_its_defaults_then_its_search_before_any_repeat(monkeypatch):
    seconds = {"dummy": 0.01, "neighbors": 0.5, "krein-svm": 1.0, "krein-ridge": 2.0}
    run, _ = fake_run(monkeypatch, seconds, 60.0)
    order = list(run.store.records)
    first = order.index(next(task for task in order if task.repeat == 1))
    full = [task for task in order[:first] if task.part == 1.0]
    steps = [(task.learner, task.form) for task in full]
    assert steps == [
        *[("dummy", "search")] * 5,  # the only form that it has
        *[("neighbors", "defaults")] * 5,
        *[("krein-svm", "defaults")] * 5,
        *[("krein-ridge", "search")] * 5,
        *[("neighbors", "search")] * 5,  # cheap searches first
        *[("krein-svm", "search")] * 5,
    ]


def test_baselines_have_all_splits_before_dearer_learners_have_any(monkeypatch):
    """A table of a thousand rows has gradient boosting within ten seconds, whatever else is there."""
    seconds = {"dummy": 0.01, "features": 30.0, "krein-svm": 32.0, "stack": 1.6}
    run, clock = fake_run(monkeypatch, seconds, 60.0, curves=False)
    order = [task.learner for task in run.store.records]
    assert order[:10] == ["dummy"] * 5 + ["features"] * 5 and clock.now < 60


@pytest.mark.parametrize("seconds", [18.0, 36.0])
def test_boosting_has_all_splits_on_all_rows_before_others_have_any(monkeypatch, seconds):
    """Its defaults take .9 or 1.8 s a split: within ten seconds, or a little beyond them."""

    def run_here(run, step):
        run.workers.start(run._job(step))
        for finished in run.workers.wait():
            run._take(finished)

    monkeypatch.setattr(Run, "_run_here", run_here)
    rng = np.random.default_rng(0)
    problem = make_problem(rng.normal(size=(100, 3)), np.arange(100) % 2)
    takes = {"dummy": 0.01, "boosting": seconds, "svm-gaussian": 16.0, "dank": 40.0, "hyper": 20.0}
    run, clock = fake_run(monkeypatch, takes, 10.0, problem=problem, curves=False)
    order = [task for task in run.store.records if task.learner != "dummy"]
    assert order[:4] == [Task("boosting", 0, fold, 1.0, "defaults") for fold in range(4)]
    assert Task("boosting", 0, 4, 1.0, "defaults") in order and clock.now < 12.6


@pytest.mark.parametrize("slowdown", [1.0, 30.0])
def test_no_processes_are_started_if_the_budget_would_end_before(monkeypatch, slowdown):
    started = []

    def make_workers(*arguments, **options):
        started.append(arguments)
        return Here(arguments[0])

    monkeypatch.setattr(schedule, "make_workers", make_workers)
    monkeypatch.setattr(schedule, "measure_slowdown", lambda: slowdown)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    learners = ["dummy", "linear", "boosting@defaults"]
    found = compare(X, np.arange(60) % 2, learners=learners, budget=60, curves=False, n_jobs=2)
    assert bool(started) == (slowdown == 1.0)
    assert {row["learner"] for row in found.table} == {"dummy", "linear", "boosting"}
    assert all(row["part"] == 1.0 for row in found.table)


def test_a_slow_start_leaves_half_of_the_budget(monkeypatch):
    seconds = {"dummy": 0.01, "neighbors": 0.5}
    monkeypatch.setattr(Clock, "start", 45.0)
    run, clock = fake_run(monkeypatch, seconds, 20.0, curves=False)
    assert Task("neighbors", 0, 4, 1.0, "defaults") in run.store.records and 45 < clock.now < 56


def test_a_search_that_does_not_fit_is_not_begun(monkeypatch):
    seconds = {"dummy": 0.01, "neighbors": 0.5, "krein-svm": 24.0}
    run, clock = fake_run(monkeypatch, seconds, 60.0)
    forms = {task.form for task in run.store.records if task.learner == "krein-svm"}
    assert clock.now < 60 and forms == {"defaults"} and not run.too_slow
    assert Task("neighbors", 0, 4) in run.store.records
    assert run.missing_seconds() > 100


def test_a_search_that_has_all_splits_replaces_the_defaults_whatever_it_scores(result):
    (learner,) = select_learners(result.problem, ["neighbors"])[0]
    target = np.tile(np.arange(10), 2)
    wrong = np.r_[target[1:], 0]

    def records(form, predicted, n_folds):
        score = {"accuracy": float((predicted == target).mean())}
        tasks = [Task("neighbors", 0, fold, 1.0, form) for fold in range(n_folds)]
        return [Record(task, 80, score, target=target, predicted=predicted) for task in tasks]

    for n_folds, form in ((5, "search"), (4, "defaults")):
        scored = [*records("defaults", target, 5), *records("search", wrong, n_folds)]
        found = Comparison(result.terms, [learner], scored)
        assert found.table[0]["form"] == form and found.table[0]["score"] == (form == "defaults")
        is_search = hasattr(found.estimator("neighbors"), "param_grid")
        assert is_search == (form == "search")
        assert found.specification == ["neighbors" + "@defaults" * (not is_search)]


def test_the_words_name_distinguishable_learners(result):
    learners = select_learners(result.problem, ["neighbors", "krein-svm", "dummy"])[0]
    target = np.tile(np.arange(10), 2)
    predicted = {"neighbors": target.copy(), "krein-svm": target.copy(), "dummy": (target + 1) % 10}
    predicted["neighbors"][0] = 9
    predicted["krein-svm"][[1, 2]] = 9
    records = []
    for name, values in predicted.items():
        score = {"accuracy": float((values == target).mean())}
        tasks = [Task(name, 0, fold) for fold in range(5)]
        records += [Record(task, 80, score, target=target, predicted=values) for task in tasks]
    first = Comparison(result.terms, learners, records).verdict[0]
    assert "there is no winner: Krein SVM is not distinguishable" in first


def test_every_search_tries_the_defaults():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 3))
    searched = 0
    for data, kind in ((table, "table"), (SHAPES.D[:60, :60], "distance")):
        for y in (np.arange(60) % 2, rng.normal(size=60)):
            problem = make_problem(data, y, kind=kind)
            for n_items in (60, 9000):
                terms = Terms(problem, "accuracy", n_items=n_items)
                for learner in select_learners(problem)[0]:
                    search = learner.make(terms)
                    if not hasattr(search, "param_grid"):
                        continue
                    searched += 1
                    defaults = learner.in_form("defaults").make(terms).get_params()
                    settings = [
                        {name: repr(value) for name, value in setting.items()}
                        for setting in ParameterGrid(search.param_grid)
                    ]
                    assert {name: repr(defaults[name]) for name in settings[0]} in settings, (
                        learner.name
                    )
    assert searched > 50


def test_what_most_learners_lack_is_not_decided(result):
    """Neither missing learners nor those on parts make a winner; the sentence says how to go on."""
    names = ["dummy", "neighbors", "features", "krein-ridge", "stack"]
    learners = select_learners(result.problem, names)[0]
    target = np.tile(np.arange(10), 2)
    wrong = np.r_[target[1:], 0]

    def records(name, part=1.0):
        predicted = wrong if name == "dummy" else target
        score = {"accuracy": float((predicted == target).mean())}
        tasks = [Task(name, 0, fold, part) for fold in range(5)]
        return [Record(task, 80, score, target=target, predicted=predicted) for task in tasks]

    scored = [*records("dummy"), *records("neighbors")]
    found = Comparison(result.terms, learners, scored, elapsed=60.0, missing_seconds=200.0)
    assert not found.is_decided and found.has_winner
    assert (
        found.verdict[0].startswith("Not decided yet") and "Nearest neighbors" in found.verdict[0]
    )
    assert "resume=True, budget='10m'" in found.verdict[1]
    assert "better than" not in " ".join(found.verdict)
    # nothing is called recommended before it is decided
    for shown in (str(found), repr(found), render_short(found)):
        assert "best so far" in shown and "recommended" not in shown
    page = render(found)
    assert "the difference from the best so far" in page and ">recommended<" not in page
    on_parts = [record for name in names[2:] for record in records(name, 0.5)]
    assert not Comparison(result.terms, learners, [*scored, *on_parts]).is_decided
    requested = {name: Level(0.5) for name in names[2:]}
    assert Comparison(result.terms, learners, [*scored, *on_parts], limits=requested).is_decided
    assert Comparison(result.terms, learners, [*scored, *records("stack")]).is_decided


def test_learners_are_requested_by_their_titles_and_with_their_defaults():
    problem = make_problem(X_TABLE, X_TABLE[:, 0])
    requested = ["gradient boosting@defaults", "Linear model@0.5", "dummy"]
    chosen, limits = select_learners(problem, requested)
    assert [learner.name for learner in chosen] == ["dummy", "linear", "boosting"]
    assert limits == {"boosting": Level(form="defaults"), "linear": Level(0.5)}
    found = compare(X_TABLE, X_TABLE[:, 0], learners=requested, repeats=1, curves=False)
    assert type(found.estimator("boosting")).__name__ == "HistGradientBoostingRegressor"
    assert "'boosting@defaults'" in found.python_command
    assert found.is_decided and "scored with its default settings" in " ".join(found.verdict)


def test_what_takes_too_long_is_stopped_and_named(monkeypatch):
    seconds = {"dummy": 0.01, "neighbors": 0.5, "stack": 1000.0}
    run, clock = fake_run(monkeypatch, seconds, 60.0, is_guessed=False)
    assert clock.now < 60 and "stack" in run.too_slow
    assert re.fullmatch(r"training on 40 items took more than .* s", run.reasons()["stack"])
    assert not any(task.learner == "stack" for task in run.store.records) and n_repeats(run) >= 5


def test_a_short_budget_means_fewer_repeats(monkeypatch):
    short, _ = fake_run(monkeypatch, {"dummy": 0.01, "neighbors": 1.0}, 15.0)
    long, _ = fake_run(monkeypatch, {"dummy": 0.01, "neighbors": 1.0}, 1000.0)
    assert 1 <= n_repeats(short) < n_repeats(long) == schedule.SHARES.most_repeats


def test_exact_repeats_ignore_the_budget(monkeypatch):
    run, _ = fake_run(monkeypatch, {"neighbors": 100.0}, 1.0, repeats=3)
    assert n_repeats(run) == 3 and not run.too_slow


def test_a_failing_learner_is_named_and_the_others_go_on(monkeypatch):
    learner = select_learners(make_problem(SHAPES.D, SHAPES.target), ("krein-ridge",))[0][0]
    original = type(learner).applies
    monkeypatch.setattr(
        "mercerless.comparison.learners.KreinRidgeClassifier", lambda *args, **options: Broken()
    )
    found = compare(SHAPES.D, SHAPES.target, learners=CHEAP, repeats=1)
    assert found.failed == {"krein-ridge": "ValueError: out of ideas"} and set(found.names) == {
        "dummy",
        "neighbors",
    }
    assert "failed: Krein ridge (ValueError: out of ideas)" in str(found)
    assert "1 of 3 learners failed: Krein ridge." in found.verdict
    assert type(learner).applies is original


class Broken:
    def fit(self, X, y):
        raise ValueError("out of ideas")

    def get_params(self, deep=True):
        return {}


def interrupt_after(n):
    """A progress callback that presses Ctrl-C after n finished tasks."""
    count = [0]

    def progress(text, done, total):
        count[0] += done > 0
        if count[0] == n:
            raise KeyboardInterrupt

    return progress


@pytest.mark.slow
def test_interrupting_keeps_what_is_finished_and_resuming_gives_the_same_result(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(scoring, "SIZES", replace(scoring.SIZES, parts=()))
    arguments = dict(X=SHAPES.D, y=SHAPES.target, learners=CHEAP, repeats=1)
    part = compare(**arguments, progress=interrupt_after(8))
    assert part.interrupted and len(part.splits) == 2 and part.negative is None
    part.report(tmp_path / "part.html")
    assert "interrupted" in (tmp_path / "part.html").read_text()
    ran = []
    original = schedule.run_task
    monkeypatch.setattr(schedule, "run_task", lambda *args: ran.append(args[-1]) or original(*args))
    resumed = compare(**arguments, resume=True)
    assert len(ran) == 15 - 8
    whole = compare(**arguments)
    assert [row["score"] for row in resumed.table] == [row["score"] for row in whole.table]
    assert resumed.names == whole.names


def test_interrupting_before_anything_is_comparable():
    with pytest.raises(KeyboardInterrupt):
        compare(SHAPES.D, SHAPES.target, learners=CHEAP, repeats=1, progress=interrupt_after(1))


def test_a_finished_run_leaves_no_files(tmp_path):
    compare(SHAPES.D, SHAPES.target, learners=["dummy"], repeats=1)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_what_a_short_budget_left_undecided_is_kept_to_go_on_until_it_is_old(tmp_path, monkeypatch):
    monkeypatch.setattr(Comparison, "is_decided", False)
    arguments = {"X": X_TABLE, "y": X_TABLE[:, 0] > 0, "learners": ["dummy", "linear"]}
    compare(**arguments, repeats=1, curves=False)
    (folder,) = (tmp_path / "cache" / "mercerless" / "compare").iterdir()
    assert len(list(folder.iterdir())) == 10
    told = []
    compare(
        **arguments, repeats=1, curves=False, resume=True, progress=lambda *text: told.append(text)
    )
    assert ("resumed with 10 finished fits", 0, 1) in told
    os.utime(folder, (0, 0))
    Store(folder.parent / "another")
    assert not folder.exists()


RECORD = Record(
    Task("dummy", 0, 0), 80, {"accuracy": 0.5}, target=np.array([1, 0]), predicted=np.array([1, 1])
)


def test_other_settings_do_not_share_finished_tasks(tmp_path):
    store = Store(tmp_path / "a")
    store.put(RECORD)
    assert Store(tmp_path / "b", resume=True).records == {}
    (kept,) = Store(tmp_path / "a", resume=True).records.values()
    assert (
        kept.to_plain() == RECORD.to_plain()
        and kept.task == RECORD.task
        and kept.target.dtype == int
    )
    assert Store(tmp_path / "a", resume=False).records == {}


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '{"learner": "dummy"}', '{"learner": "dummy", "repeat": 0']
)
def test_damaged_records_are_dropped_with_a_word(tmp_path, content):
    Store(tmp_path).put(RECORD)
    (tmp_path / "other.json").write_text(content)
    with pytest.warns(
        UserWarning, match="1 files of the interrupted run are damaged; their fits are run again"
    ):
        assert list(Store(tmp_path, resume=True).records) == [RECORD.task]


def test_two_runs_of_the_same_data_do_not_disturb_each_other(tmp_path):
    one, other = Store(tmp_path / "same"), Store(tmp_path / "same")
    one.put(RECORD)
    one.clear()
    other.put(RECORD)
    other.clear()
    other.clear()
    assert not (tmp_path / "same").exists() and len(other.records) == 1


@pytest.mark.slow
def test_jobs_do_not_change_the_scores(result):
    parallel = compare(SHAPES.D, SHAPES.target, learners=CHEAP, repeats=2, n_jobs=2)
    assert [row["score"] for row in parallel.table] == [row["score"] for row in result.table]


def test_parts_are_nested_and_stratified():
    problem = make_problem(SHAPES.D, SHAPES.target % 2)
    train = outer_folds(problem, 0, 0)[0][0]
    half, quarter = (take_part(problem, train, part, 0) for part in (0.5, 0.25))
    assert set(quarter) < set(half) < set(train)
    assert abs(np.mean(problem.y[half]) - np.mean(problem.y[train])) < 0.05
    assert possible_parts(problem) == (0.5,)


class Sleeper(ClassifierMixin, BaseEstimator):
    """An estimator that would take an hour."""

    def fit(self, X, y):
        time.sleep(3600)

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.slow
def test_the_budget_is_kept_on_the_clock():
    start = time.perf_counter()
    try:
        found = compare(SHAPES.D, SHAPES.target, learners=[*CHEAP, Sleeper()], budget=4.0)
        assert "Sleeper" in found.left_out
        assert re.search(
            r"of 4 learners (was|were) not run to the end: .*Sleeper\.", " ".join(found.verdict)
        )
    except ValueError as error:  # a busy machine
        assert "The budget of 4 s is too short" in str(error)
    assert time.perf_counter() - start < 14


# ------------------------------------------------------------------------------------------------ the negative part


def test_information_in_the_negative_part_is_found():
    D, y = make_balls3d(100, random_state=0)
    K = -0.5 * D**2
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    judged = judge_negative_part((K + K.T) / 2, y, True, n_permutations=19)
    assert judged.verdict == "useful" and judged.p_value == pytest.approx(0.05)


def test_noise_in_the_negative_part_is_found():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(120, 4)), rng.normal(size=(120, 120))
    judged = judge_negative_part(
        X @ X.T + 0.5 * (noise + noise.T), X[:, 0], False, n_permutations=19
    )
    assert judged.verdict == "harmful" and judged.p_value > 0.2


def judged(z, p_value, verdict):
    return NegativePart(0.5, 0.5, z, p_value, 39, 100, verdict)


def test_words_on_the_negative_part_do_not_contradict_each_other():
    indefinite = indefiniteness(np.diag([2.0, -1.0]))
    first, second = negative_sentences(indefinite, judged(1.2, 0.025, "undecided"))
    assert (
        "undecided: using it beats leaving it out by 1.2 standard errors of the log-loss" in first
    )
    assert "is another question" in second and "0 of 39" in second
    first, second = negative_sentences(indefinite, judged(0.0, 0.5, "undecided"))
    assert "do equally well" in first and "It cannot be told from noise" in second
    first, second = negative_sentences(indefinite, judged(-3.0, 0.025, "harmful"))
    assert "is harmful" in first and "noise" not in second


def test_nothing_shared_stays_behind():
    problem = make_problem(SHAPES.D, SHAPES.target)
    learner = next(learner for learner in select_learners(problem)[0] if learner.name == "svm-flip")
    records = list(
        schedule.run_batch(Terms(problem, "accuracy"), [(learner, Task("svm-flip", 0, 0))])
    )
    assert records[0].scores and not learners._MEMORY.results


class Deadly(DummyClassifier):
    """A learner that ends its process, as the system does if memory runs out."""

    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_ended_from_outside():
    problem = make_problem(SHAPES.D, SHAPES.target)
    deadly = Learner("deadly", "Deadly", "baseline", lambda terms: Deadly(), group="both")
    harmless = replace(select_learners(problem, ["neighbors"])[0][0], group="both")
    options = Options(repeats=1, n_jobs=2, curves=False)
    run = Run(Terms(problem, "accuracy"), [deadly, harmless], options).go()
    assert list(run.failed) == [
        "deadly"
    ] and "ended its process, most likely because memory ran out" in str(run.failed)
    scored = {
        record.split for record in run.store.records.values() if record.task.learner == "neighbors"
    }
    # what ran beside it in the same process goes on alone
    assert scored == {(0, fold) for fold in range(5)}


def test_one_slow_machine_of_a_group_does_not_drop_the_others(monkeypatch):
    seconds = {"dummy": 0.01, "svm-raw": 1000.0, "svm-clip": 0.5, "svm-flip": 0.5}
    run, clock = fake_run(monkeypatch, seconds, 60.0, is_guessed=False)
    assert clock.now < 60 and list(run.too_slow) == ["svm-raw"]
    assert {task.learner for task in run.store.records if task.part == 1.0} == {
        "dummy",
        "svm-clip",
        "svm-flip",
    }


def test_a_dear_learner_is_tried_on_a_small_part_first(monkeypatch):
    """Not size by size: the pilot foretells what is affordable."""
    monkeypatch.setattr(scoring, "SIZES", replace(scoring.SIZES, smallest=8))
    seconds = {"dummy": 0.01, "neighbors": 1.0, "stack": 8.0}
    run, _ = fake_run(monkeypatch, seconds, 100.0, curves=False)
    parts = [
        task.part for task in run.store.records if task.learner == "stack" and task.repeat == 0
    ]
    assert parts == [0.25, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_a_larger_part_that_costs_little_more_is_taken(monkeypatch):
    """A search on a fixed number of items makes the cost flat: no share of the time argues for fewer items."""
    run, clock = fake_run(
        monkeypatch, {"dummy": 0.01, "neighbors": 3.0, "krein-ridge": 4.0}, 80.0, growth=0.1
    )
    assert clock.now < 80
    assert all(
        Task(name, 0, fold) in run.store.records
        for name in ("neighbors", "krein-ridge")
        for fold in range(5)
    )


def test_if_time_is_short_all_learners_have_about_as_many_splits(monkeypatch):
    seconds = {
        "dummy": 0.01,
        "neighbors": 9.0,
        "features": 10.0,
        "krein-ridge": 11.0,
        "stack": 12.0,
    }
    run, clock = fake_run(monkeypatch, seconds, 60.0, growth=1.0)
    splits = Counter((task.learner, task.level) for task in run.store.records)
    counts = [max(n for (name, _), n in splits.items() if name == learner) for learner in seconds]
    assert clock.now < 61 and max(counts[1:]) - min(counts[1:]) <= 1 and min(counts[1:]) >= 2


def add_one(shared):
    yield shared + 1


def one_then_sleep(shared):
    yield shared + 1
    time.sleep(3600)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "end"), [(np.inf, "stopped"), (0.0, "late")])
def test_what_a_stopped_job_has_finished_is_kept(limit, end):
    workers = Processes(41, 1)
    try:
        while not workers.free:
            workers.wait(1.0)
        workers.start(Job("group", one_then_sleep))
        while not _read_results(workers.slots[0].results):
            time.sleep(0.05)
        workers.slots[0].limit = limit
        finished = workers.stop() if end == "stopped" else workers.wait(60.0)
        assert [(job.results, job.end) for job in finished] == [([42], end)]
    finally:
        workers.close()


@pytest.mark.slow
def test_processes_that_were_started_early_are_used_and_the_others_ended():
    with started_early(2) as processes:
        early = list(processes)
        workers = Processes(41, 1, processes)
        try:
            assert workers.slots[0].process in early and len(processes) == 1
            while not workers.free:
                workers.wait(1.0)
            workers.start(Job("group", add_one))
            assert workers.wait(60.0)[0].results == [42]
        finally:
            workers.close()
    for process in early:
        with pytest.raises(ShutdownExecutorError):
            process.executor.submit(time.sleep, 0)


def test_a_guess_alone_is_no_comparison():
    with pytest.raises(ValueError, match="The budget of 1 ms is too short for a single learner"):
        compare(SHAPES.D, SHAPES.target, learners=CHEAP, budget=0.001)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds(seed):
    with pytest.raises(ValueError, match=r"random_state=.* must be between 0 and"):
        compare(SHAPES.D, SHAPES.target, random_state=seed)
    assert outer_folds(make_problem(SHAPES.D, SHAPES.target), 3, 2**32 - 1)


@pytest.mark.parametrize(
    "given", [{"repeats": 1.5}, {"repeats": "2"}, {"n_jobs": "all"}, {"random_state": None}]
)
def test_numbers_that_are_none_get_a_sentence(given):
    with pytest.raises(ValueError, match=f"{next(iter(given))}=.* (must be|would do nothing)"):
        compare(SHAPES.D, SHAPES.target, learners=CHEAP, **given)


def test_without_curves(monkeypatch):
    run, _ = fake_run(monkeypatch, {"dummy": 0.01, "neighbors": 0.5}, None, repeats=1, curves=False)
    assert {task.part for task in run.store.records} == {1.0} and len(run.store.records) == 10
