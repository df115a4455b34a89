"""Properties of a comparison: rows, columns, groups, seeds and test sets mean what they are called."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, get_scorer, r2_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercerless
from mercerless.comparison import negative
from mercerless.comparison.learners import Terms, select_learners
from mercerless.comparison.problem import make_problem
from mercerless.comparison.records import Record, Store, Task
from mercerless.comparison.result import _work_folder, compare
from mercerless.comparison.schedule import Run
from mercerless.comparison.scoring import (
    _data,
    class_probabilities,
    contributions,
    keep_groups,
    make_split,
    outer_folds,
    point_scores,
    score,
    scores_of_predictions,
    take_part,
)
from mercerless.comparison.statistics import Differences, compare_splits
from mercerless.comparison.words import duration, format_difference, format_score, is_share

SOURCE = Path(mercerless.__file__).parents[1]  # also in other processes
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
CLASSES = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.2 * RNG.normal(size=90), [-0.6, 0.2])]
NUMBERS = X @ np.array([1.0, -0.5, 0.2, 0.0]) + 0.3 * RNG.normal(size=90)
OWN = {"bayes": GaussianNB(), "centroid": NearestCentroid(), "near": KNeighborsClassifier(1)}


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))


def race(y=CLASSES, own=None, repeats=1, **options):
    wanted = ["dummy", *(own or OWN).items()]
    return compare(X, y, learners=wanted, repeats=repeats, curves=False, n_jobs=1, **options)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("cache")))
        return race(repeats=2)


# ------------------------------------------------------------------------------------------------------- numbers


def check_rows(found):
    recommended = found.table[0]
    for row in found.table:
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
        assert row["low"] <= row["score"] <= row["high"]
        assert row["difference"] == pytest.approx(row["score"] - recommended["score"])
        if row is not recommended:
            is_worse = row["difference_high"] < 0
            assert row["verdict"] == ("worse" if is_worse else "not distinguishable")
    assert recommended["verdict"] == "recommended"


def test_every_interval_holds_its_difference(found):
    check_rows(found)
    assert {row["verdict"] for row in found.table} >= {"recommended", "worse"}
    check_rows(race(metric="f1_macro"))
    check_rows(race(NUMBERS, {"ridge": Ridge(), "flat": Ridge(1e4)}))


def test_a_difference_is_claimed_from_its_critical_value_on():
    """Not half a standard error earlier or later."""
    difference = np.array([[0.0, 0.5], [-0.5, 0.0]])
    error = np.array([[0.0, 0.25], [0.25, 0.0]])
    for critical, is_claimed in ((1.99, True), (2.01, False)):
        pair = Differences(np.array([0.5, 0.0]), np.ones(2), difference, error, critical)
        assert pair.better(0, 1) is is_claimed
        assert not pair.better(1, 0)
        assert pair.interval(0, 1) == pytest.approx((0.5 - critical / 4, 0.5 + critical / 4))
        assert pair.interval(1, 0) == pytest.approx((-0.5 - critical / 4, -0.5 + critical / 4))


@pytest.mark.parametrize(
    "z, verdict", [(2.1, "useful"), (1.9, "undecided"), (-1.9, "undecided"), (-2.1, "harmful")]
)
def test_the_negative_part_is_judged_from_two_standard_errors_on(z, verdict):
    assert negative.verdict_on(z) == verdict


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    for n_classes in (2, 3, 5):
        y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 40) // 2])
        predicted = np.where(rng.uniform(size=len(y)) < 0.6, y, rng.permutation(y))
        scores = point_scores(True, y, predicted)
        assert scores["accuracy"] == pytest.approx(np.mean(predicted == y))
        assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    y, predicted = rng.normal(size=(2, 30))
    assert contributions("r2", y, predicted).mean() == pytest.approx(r2_score(y, predicted))
    model = Ridge().fit(X, NUMBERS)
    for name in ("neg_mean_absolute_error", "neg_mean_squared_error"):
        expected = get_scorer(name)(model, X, NUMBERS)
        assert contributions(name, NUMBERS, model.predict(X)).mean() == pytest.approx(expected)
    errors = point_scores(False, y, predicted)
    assert errors["rmse"] == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)))
    assert errors["mae"] == pytest.approx(np.mean(np.abs(y - predicted)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_areas_and_log_losses_are_those_of_scikit_learn(n_classes):
    y = CLASSES if n_classes == 3 else np.where(CLASSES == "c", "c", "a")
    problem = make_problem(X, y)
    model = GaussianNB().fit(X[:, :1], y)
    probability = class_probabilities(problem, model, X[:, :1])
    predicted = model.predict(X[:, :1])
    scores = score(problem, model, X[:, :1], y, predicted, probability, "accuracy")
    area = "roc_auc" if n_classes == 2 else "roc_auc_ovr"
    assert scores["roc_auc"] == pytest.approx(get_scorer(area)(model, X[:, :1], y))
    assert scores["log_loss"] == pytest.approx(-get_scorer("neg_log_loss")(model, X[:, :1], y))


def test_scores_of_given_predictions_are_those_of_the_estimator():
    problem = make_problem(X, CLASSES)
    model = GaussianNB().fit(X, CLASSES)
    numbered = np.searchsorted(["a", "b", "c"], model.predict(X))
    target = np.searchsorted(["a", "b", "c"], CLASSES)
    scores = scores_of_predictions(problem, target, numbered, "f1_macro")
    assert scores["f1_macro"] == pytest.approx(get_scorer("f1_macro")(model, X, CLASSES))
    assert scores_of_predictions(problem, target, numbered, "neg_log_loss") is None


def test_records_hold_what_the_estimator_predicts(found):
    """Every record is of its own split: fitted by hand on the same rows it gives the same scores and predictions."""
    for repeat, fold in ((0, 0), (1, 3)):
        train, test = make_split(found.problem, repeat, fold, found.random_state)
        model = GaussianNB().fit(X[train], CLASSES[train])
        record = found.results["bayes"][repeat, fold]
        assert record.scores["accuracy"] == pytest.approx(model.score(X[test], CLASSES[test]))
        np.testing.assert_array_equal(np.array(["a", "b", "c"])[record.target], CLASSES[test])
        np.testing.assert_array_equal(
            np.array(["a", "b", "c"])[record.predicted], model.predict(X[test])
        )
        assert record.n_train == len(train)


def test_splits_are_those_of_their_own_data_repeat_and_seed():
    problems = [make_problem(X, CLASSES), make_problem(X[::-1], CLASSES)]
    for problem, repeat, seed in ((0, 0, 0), (0, 1, 0), (0, 1, 3), (1, 1, 3), (0, 0, 0)):
        for fold in (0, 4):
            train, test = make_split(problems[problem], repeat, fold, seed)
            expected = outer_folds(problems[problem], repeat, seed)[fold]
            np.testing.assert_array_equal(train, expected[0])
            np.testing.assert_array_equal(test, expected[1])


def test_the_splits_that_are_judged_are_those_that_were_scored(found):
    def judged_on(split):
        return found._split(split, [found.results[name][split] for name in found.names])

    again = compare_splits([judged_on(split) for split in found.splits], 5)
    np.testing.assert_array_equal(again.mean, found.differences.mean)
    for split in found.splits:
        judged = judged_on(split)
        np.testing.assert_array_equal(judged.strata, CLASSES[judged.units])
        assert judged.repeat == split[0]


# -------------------------------------------------------------------------------------------------------- groups


class WholeGroups(ClassifierMixin, BaseEstimator):
    """A search that fails if its folds split a group; the group is the first column."""

    def __init__(self, cv=5):
        self.cv = cv

    def fit(self, X, y):
        X = np.asarray(X)
        if isinstance(self.cv, int):
            raise TypeError("no folds were given")
        held_out = np.concatenate([test for _, test in self.cv])
        if sorted(held_out) != list(range(len(X))):
            raise ValueError("the folds are of other rows")
        for train, test in self.cv:
            if set(X[train, 0]) & set(X[test, 0]):
                raise ValueError("a group is split")
        self.classes_, counts = np.unique(y, return_counts=True)
        self.most_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.most_)


@pytest.mark.parametrize("part", ["", "@0.5"])
def test_groups_stay_whole_inside_every_search(part):
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(30), 5))
    columns = np.column_stack([groups, np.random.default_rng(1).normal(size=150)])
    y = np.arange(150) % 2
    own = [
        (f"plain{part}", WholeGroups()),
        (f"piped{part}", make_pipeline(StandardScaler(), WholeGroups())),
        (f"voting{part}", VotingClassifier([("a", WholeGroups()), ("b", WholeGroups())])),
    ]
    found = compare(columns, y, kind="table", groups=groups, learners=["dummy", *own], repeats=1)
    assert found.failed == {}
    assert {"plain", "piped", "voting"} <= set(found.names)
    for train, test in outer_folds(found.problem, 0, 0):
        assert not set(groups[train]) & set(groups[test])


def test_folds_reach_the_last_step_only():
    folds = [(np.arange(2), np.arange(2, 4))]
    pipeline = make_pipeline(StandardScaler(), WholeGroups())
    keep_groups(pipeline, folds)
    assert pipeline[-1].cv is folds
    without = LogisticRegression()
    keep_groups(without, folds)
    assert not hasattr(without, "cv")


# ------------------------------------------------------------------------------------------------ rows and columns


def test_a_test_frame_is_read_by_its_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("pqrs"))
    train, test = frame.iloc[:70], frame.iloc[70:]
    options = {"learners": ["dummy", ("near", KNeighborsClassifier(1))], "repeats": 1}
    scores = []
    for columns in (list("pqrs"), list("srqp"), ["p", "s", "extra", "q", "r"]):
        given = test.assign(extra=1.0)[columns]
        found = compare(train, CLASSES[:70], X_test=given, y_test=CLASSES[70:], **options)
        scores.append(next(row["test_score"] for row in found.table if row["learner"] == "near"))
    by_hand = KNeighborsClassifier(1).fit(X[:70], CLASSES[:70]).score(X[70:], CLASSES[70:])
    assert scores == [pytest.approx(by_hand)] * 3


def test_a_test_frame_of_distances_is_read_by_its_names():
    pd = pytest.importorskip("pandas")
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    names = [f"item {i}" for i in range(70)]
    train = pd.DataFrame(D[:70, :70], index=names, columns=names)
    test = pd.DataFrame(D[70:, :70], columns=names)[names[::-1]]
    problem = make_problem(train, CLASSES[:70], kind="distance", X_test=test, y_test=CLASSES[70:])
    np.testing.assert_array_equal(problem.X_test, D[70:, :70])


def test_rows_of_a_test_set_lose_the_columns_of_rare_classes():
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    y = CLASSES[:70].astype("U4")
    y[[3, 20, 41]] = "rare"
    problem = make_problem(D[:70, :70], y, kind="distance", X_test=D[70:, :70], y_test=CLASSES[70:])
    kept = np.flatnonzero(y != "rare")
    np.testing.assert_array_equal(problem.X_test, D[np.ix_(np.arange(70, 90), kept)])
    terms = Terms(problem, "accuracy")
    (learner,) = select_learners(problem, ("neighbors",))[0]
    train, X_train, X_test, y_test = _data(problem, learner, Task("neighbors", 0, -1), 0)
    assert len(train) == X_train.shape[1] == X_test.shape[1] == len(kept)
    np.testing.assert_allclose(X_test, D[np.ix_(np.arange(70, 90), kept[train])])
    np.testing.assert_array_equal(y_test, CLASSES[70:])
    assert hasattr(learner.build(terms), "fit")


def test_a_part_of_the_training_items_takes_its_own_columns_of_the_test_rows():
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    problem = make_problem(
        D[:80, :80], CLASSES[:80], kind="distance", X_test=D[80:, :80], y_test=CLASSES[80:]
    )
    (learner,) = select_learners(problem, ("neighbors",))[0]
    train, X_train, X_test, _ = _data(problem, learner, Task("neighbors", 0, -1, 0.5), 0)
    assert len(train) == 40
    np.testing.assert_allclose(X_train, D[np.ix_(train, train)])
    np.testing.assert_allclose(X_test, D[np.ix_(np.arange(80, 90), train)])
    whole, _ = make_split(problem, 1, 2, 0)
    part, X_train, X_test, y_test = _data(problem, learner, Task("neighbors", 1, 2, 0.5), 0)
    np.testing.assert_array_equal(part, take_part(problem, whole, 0.5, 0))
    test = make_split(problem, 1, 2, 0)[1]
    np.testing.assert_allclose(X_test, D[np.ix_(test, part)])
    np.testing.assert_array_equal(y_test, CLASSES[test])


@pytest.mark.parametrize(
    "y, y_test",
    [
        (np.arange(60) % 2, np.array([0, 1.9])),
        (np.arange(60) % 2 == 0, np.array([3, 0])),
        (np.arange(60) % 2, np.array(["0", "one"])),
    ],
)
def test_labels_of_a_test_set_are_never_changed_silently(y, y_test):
    with pytest.raises(ValueError, match=r"class|type|NaN"):
        make_problem(X[:60], y, X_test=X[60:62], y_test=y_test)


def test_items_of_a_test_set_without_a_label_are_left_out():
    problem = make_problem(X[:60], NUMBERS[:60], X_test=X[60:62], y_test=np.array([np.nan, 0.5]))
    np.testing.assert_array_equal(problem.y_test, [0.5])
    np.testing.assert_array_equal(problem.X_test, X[61:62])


# -------------------------------------------------------------------------------------------------------- records


def test_every_setting_has_a_work_folder_of_its_own():
    problem = make_problem(X, CLASSES)
    chosen = select_learners(problem, ("dummy", "neighbors"))[0]
    own = select_learners(problem, [("mine", KNeighborsClassifier(1))])[0]
    other = select_learners(problem, [("mine", KNeighborsClassifier(2))])[0]
    folders = [
        _work_folder(Terms(problem, "accuracy", 0), chosen),
        _work_folder(Terms(problem, "accuracy", 1), chosen),
        _work_folder(Terms(problem, "balanced_accuracy", 0), chosen),
        _work_folder(Terms(problem, "accuracy", 0), chosen[:1]),
        _work_folder(Terms(problem, "accuracy", 0), own),
        _work_folder(Terms(problem, "accuracy", 0), other),
        _work_folder(Terms(make_problem(X, CLASSES[::-1]), "accuracy", 0), chosen),
        _work_folder(Terms(make_problem(X + 1e-9, CLASSES), "accuracy", 0), chosen),
    ]
    assert len(set(folders)) == len(folders)
    again = _work_folder(Terms(make_problem(X.copy(), CLASSES), "accuracy", 0), chosen)
    assert again == folders[0]


def test_another_seed_does_not_resume(monkeypatch):
    """A run that was stopped leaves its records to the same seed only."""
    real = Run.go
    monkeypatch.setattr(Run, "go", lambda self: setattr(self, "interrupted", True) or real(self))
    race(random_state=1)
    monkeypatch.setattr(Run, "go", real)
    told = []
    race(random_state=2, resume=True, progress=lambda text, done, total: told.append(text))
    assert "resumed nothing: no fits were kept, a new run begins" in told


def test_tasks_that_differ_have_files_that_differ(tmp_path):
    tasks = [
        Task(name, repeat, fold, part, form)
        for name in ("a", "b")
        for form in ("defaults", "search")
        for repeat in (0, 1)
        for fold in (-1, 0, 1)
        for part in (0.125, 1.0)
    ]
    store = Store(tmp_path / "run")
    for number, task in enumerate(tasks):
        target = np.array([number, 1])
        store.put(Record(task, number, {"accuracy": 0.5}, 1.5, 2.5, 3, False, target, target + 1))
    again = Store(tmp_path / "run", resume=True).records
    assert again.keys() == set(tasks)
    for task, record in store.records.items():
        assert json.dumps(again[task].to_plain()) == json.dumps(record.to_plain())


# ---------------------------------------------------------------------------------------------------------- words


def test_scores_and_times_in_words():
    assert format_score("accuracy", 0.9604) == "96.0 %"
    assert format_score("r2", -0.0001) == "0.000"
    assert format_difference("accuracy", -0.0123) == "-1.2"
    assert format_difference("r2", 0.0123) == "+0.012"
    assert is_share("f1_macro") and not is_share("neg_log_loss")
    assert [duration(t) for t in (0.0123, 35, 119, 120, 5400, 7200)] == [
        "12.3 ms", "35 s", "119 s", "2 min", "90 min", "2 h",
    ]  # fmt: skip
    # no exponents where rounding adds a digit
    assert [duration(t) for t in (0.9994, 0.9996, 3600 * 999.7, 3600 * 4321)] == [
        "999 ms", "1 s", "1000 h", "4321 h",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp932", "cp1251"])
def test_a_terminal_without_superscripts_loses_nothing(tmp_path, encoding):
    rows = [f"{a:.4f},{b:.4f},{y:.4f}" for (a, b), y in zip(X[:60, :2], NUMBERS)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,price", *rows]))
    words = "compare t.csv --labels price --learners dummy,linear --repeats 1 --jobs 1".split()
    done = subprocess.run(
        [sys.executable, "-m", "mercerless.cli", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=False,
    )
    printed = done.stdout.decode(encoding)
    assert done.returncode == 0, done.stderr
    assert "Linear model has the best mean R" in printed
    assert "R²" in (tmp_path / "mercerless-compare.html").read_text(encoding="utf-8")
    assert re.search(r"report +mercerless-compare.html", printed)
