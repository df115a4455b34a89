"""The race: the same splits and rows for all, the budget, failures, Ctrl-C, and what is recommended."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

pd = pytest.importorskip("pandas")

from mercerless import compare
from mercerless.comparison.learners import select_learners, view
from mercerless.comparison.options import Options, parse_budget
from mercerless.comparison.problem import make_problem
from mercerless.comparison.race import Race, most_items
from mercerless.comparison.result import Comparison

RNG = np.random.default_rng(5)
N = 120
X = RNG.normal(size=(N, 4))
ROWS = X
Y = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)
T = X[:, 0] + 0.3 * RNG.normal(size=N)
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
FAST = {"curves": False, "searches": False, "repeats": 1}


@pytest.fixture(autouse=True)
def private_place(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))


def sleeper(seconds_per_item=0.0, error=None):
    """An estimator that takes its time and guesses, or fails; its class travels to other processes by value."""

    class Sleeper(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            if error is not None:
                raise RuntimeError(error)
            time.sleep(seconds_per_item * len(y))
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    return Sleeper()


def test_predictions_are_those_of_scikit_learn_on_the_same_splits():
    result = compare(X, Y, learners=[("mine", LogisticRegression()), "neighbors"], **FAST)
    splits = StratifiedKFold(5, shuffle=True, random_state=0)
    expected = cross_val_predict(LogisticRegression(), X, Y, cv=splits, method="predict_proba")
    np.testing.assert_allclose(result.predictions("mine")[0], expected)
    clipped = np.clip(expected, 0.01, 0.99)
    clipped /= clipped.sum(axis=1, keepdims=True)
    assert result.scores["mine"]["log-loss"] == pytest.approx(log_loss(Y, clipped), abs=1e-3)


def test_the_constant_guess_is_that_of_the_training_parts():
    result = compare(X, T, learners=[("mine", Ridge())], **FAST)
    guesses = result.predictions("guess")[0]
    for test in result.race.test_items(0):
        train = np.setdiff1d(np.arange(N), test)
        np.testing.assert_allclose(guesses[test], T[train].mean())


def test_scores_are_means_of_all_repeats():
    result = compare(
        X, Y, learners=["linear", "neighbors"], repeats=3, searches=False, curves=False
    )
    assert len(result.race.folds) == 3
    for row in result.table:
        assert row["log-loss"] == pytest.approx(row["loss"])


def test_groups_are_never_split():
    groups = np.repeat(np.arange(24), 5)
    result = compare(
        X, Y, groups=groups, learners=["linear"], repeats=2, searches=False, curves=False
    )
    for repeat in range(2):
        for test in result.race.test_items(repeat):
            train = np.setdiff1d(np.arange(len(X)), test)
            assert not set(groups[train]) & set(groups[test])


@pytest.mark.slow
def test_a_test_label_does_not_touch_its_own_prediction():
    changed = T.copy()
    changed[7] += 100.0
    for name in ("linear", "svm", "table"):
        before, after = (compare(X, y, learners=[name], **FAST) for y in (T, changed))
        test = next(test for test in before.race.test_items(0) if 7 in test)
        np.testing.assert_allclose(
            before.predictions(name)[0, test], after.predictions(name)[0, test]
        )


def test_scores_do_not_depend_on_jobs():
    scores = [
        compare(X, Y, learners=["linear", "neighbors"], n_jobs=n_jobs, **FAST).scores
        for n_jobs in (1, 2)
    ]
    assert scores[0] == scores[1]


def test_a_failure_is_listed_and_the_others_are_compared():
    result = compare(X, Y, learners=["linear", ("bad", sleeper(error="this one fails"))], **FAST)
    assert result.ranked == ["linear"]
    assert result.left_out == {"bad": "failed: RuntimeError: this one fails"}
    assert result.recommended == "linear"


def test_learners_that_are_better_beyond_doubt_replace_the_automatic_one():
    class Knowing(LogisticRegression):
        def predict_proba(self, X):
            rows = np.asarray(X)
            y = np.array([Y[np.abs(ROWS - row).sum(axis=1).argmin()] for row in rows])
            return np.column_stack([0.99 - 0.98 * y, 0.01 + 0.98 * y])

    result = compare(D, Y, learners=["similarity", "neighbors"], **FAST)
    assert result.recommended == "similarity"
    result = compare(X, Y, learners=["linear", ("knowing", Knowing())], **FAST)
    assert result.recommended == "knowing"
    assert "better" in result.verdict.sentences[1]


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_noise_is_called_nothing_and_a_rare_class_is_not(task):
    random = np.random.default_rng(3)
    noise = random.integers(0, 2, N) if task == "classes" else random.normal(size=N)
    result = compare(X, noise, learners=["linear", "neighbors"], **FAST)
    assert not result.verdict.learned
    assert result.verdict.sentences[0].startswith("Nothing was learned")


def test_a_rare_class_is_learned_although_accuracy_does_not_rise():
    n = 400
    Z = RNG.normal(size=(n, 3))
    rare = (RNG.random(n) < 1 / (1 + np.exp(4.2 - 2 * Z[:, 0]))).astype(int)
    result = compare(Z, rare, learners=["linear", "neighbors"], **FAST)
    assert result.verdict.learned and result.is_unbalanced
    assert "accuracy says little" in result.verdict.sentences[1]
    assert result.scores["linear"]["AUC"] > 0.75


def test_regression_does_not_depend_on_the_unit_of_the_target():
    names = ["svm", "linear"]
    small, large = (compare(X, unit * T + 5 * unit, learners=names, **FAST) for unit in (1.0, 1e4))
    for name in names:
        assert small.scores[name]["R²"] == pytest.approx(large.scores[name]["R²"], abs=1e-3)
        assert small.scores[name]["R²"] > 0.5


def test_a_learner_that_is_no_better_than_a_guess_is_recommended_with_a_warning():
    class Bold(LogisticRegression):
        def predict_proba(self, X):
            return np.where(super().predict_proba(X) > 0.5, 1.0, 0.0)

    weak = (X[:, 0] + 2.0 * RNG.normal(size=N) > 0).astype(int)
    result = compare(X, weak, learners=[("bold", Bold())], **FAST)
    assert result.verdict.learned
    assert "of a constant guess is not worse" in result.verdict.sentences[1]


def test_a_missing_automatic_learner_is_named_in_the_verdict():
    problem = make_problem(X, Y)
    learners = select_learners(problem, [("slow", sleeper(1.0)), "linear"])
    object.__setattr__(learners[-1], "is_automatic", True)
    race = Race(problem, learners[::-1], Options(budget="12s", n_jobs=2)).run()
    result = Comparison(race)
    assert result.recommended == "linear"
    assert "slow did not finish" in result.verdict.sentences[1]


def test_all_learners_are_judged_by_the_splits_that_all_have():
    problem = make_problem(X, Y)
    race = Race(
        problem,
        select_learners(problem, ["linear", "neighbors"]),
        Options(repeats=1, searches=False),
    ).run()
    unfinished = [task for task in race.results if task.learner == "neighbors" and task.fold == 3]
    del race.results[unfinished[0]]
    race.count_splits()
    assert race.n_splits == 3
    assert race.ranked() == ["linear", "neighbors"]


def test_a_search_is_a_learner_of_its_own():
    result = compare(X, Y, learners=["linear"], repeats=1, curves=False)
    assert set(result.ranked) == {"linear", "linear-search"}


@pytest.mark.slow
def test_running_work_is_stopped_at_the_deadline():
    started = time.perf_counter()
    learners = ["linear", ("slow", sleeper(1.0))]
    result = compare(X, Y, learners=learners, budget="20s", n_jobs=2)
    assert time.perf_counter() - started < 1.1 * 20 + 1
    assert "linear" in result.ranked
    assert "did not finish" in result.left_out["slow"]


def test_a_process_that_dies_is_charged_to_its_own_learner():
    class Dying(LogisticRegression):
        def fit(self, X, y):
            os._exit(1)

    result = compare(X, Y, learners=["linear", ("dying", Dying()), "neighbors"], n_jobs=2, **FAST)
    assert result.ranked == ["linear", "neighbors"]
    assert "its process ended" in result.left_out["dying"]


@pytest.mark.slow
def test_all_learners_get_the_same_smaller_sample_if_time_is_short():
    big = RNG.normal(size=(6000, 2))
    problem = make_problem(big, big[:, 0] > 0)
    learners = select_learners(problem, [("automatic", sleeper(1 / 225)), "linear"])
    first = next(one for one in learners if one.name == "automatic")
    object.__setattr__(first, "is_automatic", True)
    learners.sort(key=lambda one: not one.is_automatic)
    race = Race(problem, learners, Options(budget="60s", n_jobs=2, curves=False)).run()
    sizes = {
        len(race.split(task)[0]) + len(race.split(task)[1])
        for task in race.results
        if task.share == 1.0
    }
    assert len(sizes) == 1 and sizes.pop() <= 1000
    assert {"automatic", "linear"} <= set(race.ranked())


@pytest.mark.slow
def test_something_is_compared_even_if_the_budget_is_far_too_short():
    problem = make_problem(X, Y)
    learners = select_learners(problem, [("automatic", sleeper(1.0)), "linear", "neighbors"])
    object.__setattr__(learners[-1], "is_automatic", True)
    learners.sort(key=lambda one: not one.is_automatic)
    race = Race(problem, learners, Options(budget="3s", n_jobs=2)).run()
    assert {"linear", "neighbors"} <= set(race.ranked())
    assert "automatic" not in race.ranked()


def test_resumed_fits_are_not_run_again(monkeypatch):
    first = compare(X, Y, learners=["linear", "neighbors"], **FAST)
    monkeypatch.setattr("mercerless.comparison.race.run_task", lambda *_: pytest.fail("it was run"))
    again = compare(X, Y, learners=["linear", "neighbors"], resume=True, **FAST)
    assert again.scores == first.scores


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupting_keeps_what_is_done():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it

    class Interrupting(LogisticRegression):
        def fit(self, X, y):
            signal.raise_signal(signal.SIGINT)
            return super().fit(X, y)

    result = compare(X, Y, learners=["linear", ("stop", Interrupting())], **FAST)
    assert result.interrupted
    assert result.ranked == ["linear"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_control_c_writes_the_page(tmp_path):
    pd.DataFrame(X).assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    command = [
        sys.executable,
        "-m",
        "mercerless.cli",
        "compare",
        "t.csv",
        "--labels",
        "y",
        "--budget",
        "60s",
    ]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    threading.Timer(12.0, lambda: os.killpg(process.pid, signal.SIGINT)).start()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "t.csv --labels y --resume --budget 2m" in out
    assert "Traceback" not in out
    assert (tmp_path / "mercerless-compare.html").exists()


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"budget": "soon"}, "is not a time"),
        ({"learners": ["nobody"]}, "There is no learner 'nobody'"),
        ({"learners": ["linear", "linear"]}, "requested twice"),
        ({"learners": "linear"}, "give a list"),
        ({"learners": [("x", 3)]}, "must be an estimator"),
        ({"metric": "f1"}, "metric 'f1' is not known"),
        ({"metric": "absolute_error"}, "is not known; use one of log_loss"),
        ({"repeats": 0}, "0 repeats"),
        ({"n_jobs": 0}, "0 jobs"),
        ({"task": "ranking"}, "task='ranking' is not known"),
        ({"kind": "hash"}, "kind='hash' is not known"),
        ({"groups": [1, 2]}, "2 groups"),
    ],
)
def test_wrong_arguments_raise_one_sentence(arguments, sentence):
    with pytest.raises(ValueError) as caught:
        compare(X, Y, **arguments)
    assert sentence in str(caught.value)


def test_budgets():
    assert [parse_budget(one) for one in ("90s", "2m", 5, "1h", None, "none")] == [
        90,
        120,
        5,
        3600,
        None,
        None,
    ]


def test_fewer_items_are_compared_by_a_function_of_the_user_than_by_a_fast_one():
    words = ["".join(RNG.choice(list("ab"), 6)) for _ in range(N)]
    fast = make_problem(words, Y, kind="strings", kernel="levenshtein")
    slow = make_problem(words, Y, kind="strings", kernel=lambda a, b: float(a == b))
    assert 1000 < most_items(slow) < most_items(fast)
    assert most_items(make_problem(X, Y)) == N


@pytest.mark.filterwarnings("ignore:.*no hits:UserWarning")
@pytest.mark.parametrize(
    "kind", ["table", "numbers", "distance", "similarity", "directed", "hits", "strings"]
)
def test_every_learner_runs_on_its_data(kind):
    data = {
        "table": (pd.DataFrame(X).assign(w=np.where(X[:, 1] > 0, "u", "v")), Y, {}),
        "numbers": (X, T, {}),
        "distance": (D, Y, {}),
        "similarity": (np.exp(-D) - 0.1, T, {"kind": "similarity"}),
        "directed": (D + np.triu(RNG.uniform(size=D.shape), 1), Y, {"kind": "dissimilarity"}),
        "hits": (csr_array(np.where(D < 1.5, 3 - D, 0)), Y, {}),
        "strings": (["".join(RNG.choice(list("ab"), 6)) + "ab"[y] * 3 for y in Y], Y, {}),
    }
    given, y, options = data[kind]
    problem = make_problem(given, y, **options)
    for learner in select_learners(problem):
        model, rows = learner.make(problem), view(problem, learner.takes)
        model.fit(rows, problem.y)
        if problem.is_classification:
            P = model.predict_proba(rows)
            np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)
        else:
            assert np.isfinite(model.predict(rows)).all()
        for name, values in learner.grid.items():
            default = model.get_params()[name]
            assert default in values, f"{learner.name}: {name}={default} is not searched"
            model.set_params(**{name: values[0]})


def test_the_table_and_the_estimator():
    result = compare(X, Y, learners=["linear"], **FAST)
    assert list(result.to_pandas().index) == [row["learner"] for row in result.table]
    model = result.estimator().fit(pd.DataFrame(X), Y)
    assert model.score(pd.DataFrame(X), Y) > 0.8
    assert str(result).startswith(result.verdict.sentences[0])
