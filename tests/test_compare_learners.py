"""The learners of a comparison are those that the documentation names, and are run as they are named."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline

from mercerless import SimilarityClassifier, SimilarityRegressor, TableClassifier, TableRegressor
from mercerless.comparison import learners
from mercerless.comparison.code import code_for
from mercerless.comparison.learners import Terms, matrix_for, rows_of_test_set, select_learners
from mercerless.comparison.options import Options
from mercerless.comparison.problem import make_problem, select
from mercerless.comparison.records import Task
from mercerless.comparison.result import compare_problem
from mercerless.comparison.scoring import make_split, run_task

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(3)
N = 90


def mixed_table(n=N):
    """Words, gaps and dates, and a target that depends on all of them."""
    numbers, words = RNG.normal(size=(n, 2)), RNG.choice(["red", "green", "blue"], n)
    frame = pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "color": words})
    frame["day"] = pd.date_range("2021-01-01", periods=n, freq="3D")
    y = numbers[:, 0] + (words == "red") + 0.3 * numbers[:, 1] + 0.1 * RNG.normal(size=n)
    frame.loc[::7, "a"] = np.nan
    frame.loc[3::11, "color"] = None
    return frame, y


def directed_matrix(n=N):
    """Items of three classes, each linked to the next class: only the direction tells them apart."""
    y = np.arange(n) % 3
    linked = (y[:, None] + 1) % 3 == y
    return (RNG.uniform(size=(n, n)) < np.where(linked, 0.35, 0.1)).astype(float), y


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("n", [60, 5000])
@pytest.mark.parametrize("table", ["numbers", "mixed"])
def test_lab_is_raced_with_its_defaults_on_every_table(task, n, table):
    frame, y = mixed_table(n)
    X = frame[["b"]].assign(c=RNG.normal(size=n)).to_numpy() if table == "numbers" else frame
    problem = make_problem(X, y if task == "regression" else y > 0, task=task)
    learner = select_learners(problem, ("table",))[0][0]
    estimator = learner.build(Terms(problem, "r2" if task == "regression" else "accuracy", 7))
    expected = TableRegressor if task == "regression" else TableClassifier
    assert type(estimator) is expected
    assert estimator.get_params() == expected(random_state=7).get_params()


def test_other_learners_have_words_and_gaps_prepared():
    frame, y = mixed_table()
    problem = make_problem(frame, y)
    for learner in select_learners(problem)[0]:
        estimator = learner.build(Terms(problem, "r2"))
        is_prepared = isinstance(estimator, Pipeline) and "columntransformer" in dict(
            estimator.steps
        )
        assert is_prepared == (learner.name != "table"), learner.name
    for mine, prepared in ((TableRegressor(), False), (learners.Ridge(), True)):
        learner = select_learners(problem, [mine])[0][0]
        assert isinstance(learner.build(Terms(problem, "r2")), Pipeline) == prepared


@pytest.mark.slow
def test_the_score_of_lab_is_that_of_lab_on_the_frame_as_it_is():
    frame, y = mixed_table()
    found = compare_problem(
        make_problem(frame, y), Options(learners=["dummy", "table"], repeats=1, curves=False)
    )
    train, test = make_split(found.problem, 0, 2, 0)
    model = TableRegressor(random_state=0).fit(frame.iloc[train], y[train])
    predicted = found.results["table"][0, 2].predicted
    np.testing.assert_allclose(model.predict(frame.iloc[test]), predicted, rtol=1e-9)


class Listening(TableRegressor):
    """Remembers the groups it was told, and predicts 0."""

    def fit(self, X, y, sample_weight=None, groups=None):
        self.heard_ = None if groups is None else np.array(groups)
        HEARD.append(self.heard_)
        return self

    def predict(self, X):
        return np.zeros(len(X))


HEARD = []


@pytest.mark.parametrize("is_grouped", [True, False])
def test_lab_hears_of_the_groups_of_its_training_rows(monkeypatch, is_grouped):
    monkeypatch.setattr(learners, "TableRegressor", Listening)
    frame, y = mixed_table()
    groups = RNG.permutation(N) % 12 if is_grouped else None
    problem = make_problem(frame, y, groups=groups)
    learner = select_learners(problem, ("table",))[0][0]
    record = run_task(Terms(problem, "r2"), learner, Task("table", 0, 3, 1.0))
    assert record.error is None
    if not is_grouped:
        assert HEARD[-1] is None
        return
    train, _ = make_split(problem, 0, 3, 0)
    np.testing.assert_array_equal(HEARD[-1], groups[train])


def test_the_directed_stack_is_raced_only_on_directed_matrices():
    K, y = directed_matrix()
    names = [learner.name for learner in select_learners(make_problem(K, y, kind="similarity"))[0]]
    assert "directed" in names
    symmetric = make_problem(K + K.T, y, kind="similarity")
    assert "directed" not in [learner.name for learner in select_learners(symmetric)[0]]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_directed_stack_is_run_with_both_directions(task):
    K, y = directed_matrix()
    target = y if task == "classification" else y + 0.1 * RNG.normal(size=N)
    problem = make_problem(K, target, kind="similarity", task=task)
    learner = select_learners(problem, ("directed",))[0][0]
    terms = Terms(problem, "accuracy" if task == "classification" else "r2")
    record = run_task(terms, learner, Task("directed", 0, 1, 1.0))
    assert record.error is None
    train, test = make_split(problem, 0, 1, 0)
    stack = SimilarityClassifier if task == "classification" else SimilarityRegressor
    model = stack("precomputed", kind="similarity", direction="both", random_state=0)
    model.fit(K[np.ix_(train, train)], target[train])
    out, back = K[np.ix_(test, train)], K[np.ix_(train, test)].T
    np.testing.assert_allclose(model.predict(out, reverse=back), record.predicted, rtol=1e-9)
    if task == "classification":
        expected = log_loss(target[test], model.predict_proba(out, reverse=back))
        assert record.scores["log_loss"] == pytest.approx(expected)
    np.testing.assert_array_equal(matrix_for(problem, "both"), K)
    public = learner.build(terms)
    assert type(public) is stack and "reverse" in code_for(problem, learner, public)


def test_a_test_set_may_have_both_directions():
    K, y = directed_matrix()
    train, test = np.arange(0, N - 30), np.arange(N - 30, N)
    out, back = K[np.ix_(test, train)], K[np.ix_(train, test)].T
    split = np.zeros(N, dtype=bool)
    split[test] = True
    cut = make_problem(K, y, kind="similarity", test=split)
    given = make_problem(
        K[np.ix_(train, train)], y[train], kind="similarity",
        X_test=np.hstack([out, back]), y_test=y[test],
    )  # fmt: skip
    forward = make_problem(
        K[np.ix_(train, train)], y[train], kind="similarity", X_test=out, y_test=y[test]
    )
    assert forward.reverse_test is None and forward.digest() != given.digest()
    for problem in (cut, given):
        np.testing.assert_array_equal(problem.X_test, out)
        np.testing.assert_array_equal(problem.reverse_test, back)
        np.testing.assert_array_equal(rows_of_test_set(problem, "both"), np.hstack([out, back]))
        np.testing.assert_array_equal(rows_of_test_set(problem, "directed"), out)
        np.testing.assert_allclose(rows_of_test_set(problem, "symmetric"), (out + back) / 2)
        np.testing.assert_array_equal(select(problem, train[5:]).reverse_test, back[:, 5:])
    np.testing.assert_array_equal(rows_of_test_set(forward, "symmetric"), out)
    record = run_task(
        Terms(given, "accuracy"), select_learners(given, ("directed",))[0][0],
        Task("directed", 0, -1, 1.0),
    )  # fmt: skip
    model = SimilarityClassifier("precomputed", kind="similarity", direction="both", random_state=0)
    model.fit(K[np.ix_(train, train)], y[train])
    np.testing.assert_array_equal(model.predict(out, reverse=back), record.predicted)


def test_both_directions_of_a_test_set_skip_unlabeled_items():
    K, y = directed_matrix()
    labels = y.astype(float)
    labels[4] = np.nan
    kept = np.delete(np.arange(N), 4)
    problem = make_problem(
        K, labels, kind="similarity", X_test=np.hstack([K, K.T]), y_test=y.astype(float)
    )
    np.testing.assert_array_equal(problem.X_test, K[:, kept])
    np.testing.assert_array_equal(problem.reverse_test, K.T[:, kept])


def test_the_code_to_copy_symmetrizes_what_its_learner_takes_symmetric():
    K, y = directed_matrix()
    problem = make_problem(K, y, kind="similarity")
    terms = Terms(problem, "accuracy")
    for learner in select_learners(problem, ("stack", "asymmetric"))[0]:
        code = code_for(problem, learner, learner.build(terms))
        assert ("X = symmetrize(X)" in code) == (learner.name == "stack")
