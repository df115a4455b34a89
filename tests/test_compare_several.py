"""Several matrices of the same items: each has its stack, all have one together, and files, code and models keep up."""

import numpy as np
import pytest

from mercerless.cli import main
from mercerless.comparison import compare, read_problem
from mercerless.comparison.learners import block, matrix_for, rows_of_test_set, select_learners
from mercerless.comparison.problem import make_problem, select

RNG = np.random.default_rng(0)
A = RNG.normal(size=(90, 2))
B = RNG.normal(size=(90, 2))
Y = (A[:, 0] + B[:, 0] > 0).astype(int)


def distances(points, others=None):
    others = points if others is None else others
    return np.sqrt(((points[:, None] - others[None]) ** 2).sum(axis=2))


FIRST = distances(A)
SECOND = distances(B)
SEVERAL = {"first": FIRST, "second": SECOND}
NAMES = ["dummy", "stack", "several", "stack-second"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("cache")))
        train = {name: D[:70, :70] for name, D in SEVERAL.items()}
        test = {name: D[70:, :70] for name, D in SEVERAL.items()}
        return compare(
            train, Y[:70], X_test=test, y_test=Y[70:], learners=NAMES, repeats=1, curves=False
        )


@pytest.mark.slow
def test_together_they_say_more_than_each(found):
    scores = {row["learner"]: row["score"] for row in found.table}
    assert set(scores) == set(NAMES) and not found.failed
    assert scores["several"] > max(scores["stack"], scores["stack-second"]) + 0.05
    assert found.recommended == "several" and found.problem.array == "first"
    tested = {row["learner"]: row["test_score"] for row in found.table}
    assert tested["several"] > 0.75 and None not in tested.values()


@pytest.mark.slow
def test_the_estimators_are_those_of_the_library(found, tmp_path):
    train = {name: D[:70, :70] for name, D in SEVERAL.items()}
    new = {name: D[70:, :70] for name, D in SEVERAL.items()}
    several = found.estimator("several").fit(train, Y[:70])
    assert (several.predict(new) == Y[70:]).mean() > 0.75
    for name, line in {
        "several": "X = X  # new items: a dict of the same names",
        "stack-second": "X = X['second']",
        "stack": "X = X['first']",
    }.items():
        code = found.code(name)
        assert line in code
        scope = {"data": (train, Y[:70])}
        exec(code.replace("X, y = ...  # your data", "X, y = data"), scope)
        assert hasattr(scope["estimator"], "classes_")
    found.report(tmp_path / "page.html")
    assert "Automatic stack on all" in (tmp_path / "page.html").read_text()


def test_learners_take_the_matrix_that_they_name():
    problem = make_problem(
        {"a": FIRST, "b": -SECOND}, Y, X_test={"a": FIRST, "b": 2 * SECOND}, y_test=Y
    )
    by_name = {learner.name: learner for learner in select_learners(problem)[0]}
    assert {"stack", "several", "stack-b", "svm-clip"} <= set(by_name) and "stack-a" not in by_name
    assert matrix_for(problem, "symmetric") is problem.X
    np.testing.assert_array_equal(matrix_for(problem, "matrix b"), -SECOND)
    assert list(matrix_for(problem, "several")) == ["a", "b"]
    np.testing.assert_array_equal(rows_of_test_set(problem, "several")["b"], 2 * SECOND)
    np.testing.assert_array_equal(rows_of_test_set(problem, "matrix b"), 2 * SECOND)
    np.testing.assert_array_equal(rows_of_test_set(problem, "given"), FIRST)
    rows, columns = np.array([3, 1]), np.array([0, 5])
    np.testing.assert_array_equal(
        block(problem.matrices, rows, columns)["b"], -SECOND[np.ix_(rows, columns)]
    )
    assert problem.kind == "distance" and problem.others["b"].kind == "similarity"
    only_one = make_problem(FIRST, Y)
    names = {learner.name for learner in select_learners(only_one)[0]}
    assert "several" not in names and only_one.digest() != problem.digest()


def test_items_are_left_out_of_all_matrices():
    y = Y.astype(float)
    y[[2, 40]] = np.nan
    problem = make_problem(
        SEVERAL, y, X_test={"first": FIRST[:9], "second": SECOND[:9]}, y_test=Y[:9]
    )
    kept = np.flatnonzero(~np.isnan(y))
    np.testing.assert_array_equal(problem.matrices["second"], SECOND[np.ix_(kept, kept)])
    np.testing.assert_array_equal(problem.others["second"].X_test, SECOND[:9][:, kept])
    part = select(problem, np.arange(10, 30))
    np.testing.assert_array_equal(part.others["second"].X, problem.others["second"].X[10:30, 10:30])


@pytest.mark.parametrize(
    ("X", "X_test", "sentence"),
    [
        ({"a": FIRST, "b": SECOND[:50, :50]}, None, "must be of the same items"),
        ({"a": FIRST, "b": A}, None, r"X\['b'\] has the shape \(90, 2\); several matrices must"),
        ({"a": A, "b": FIRST}, None, r"X\['a'\] has the shape \(90, 2\); several matrices must"),
        (SEVERAL, FIRST, "X_test must be a dict with the names of X: first, second"),
        ({}, None, "X names no matrix"),
    ],
)
def test_matrices_that_do_not_belong_together_raise(X, X_test, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_problem(X, Y, X_test=X_test, y_test=None if X_test is None else Y)


def test_several_arrays_of_a_file(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, dtw=FIRST, msm=SECOND, y=Y)
    with pytest.raises(ValueError, match="or several of the same items, such as --array dtw,msm"):
        read_problem(path)
    problem = read_problem(path, array="dtw, msm")
    np.testing.assert_array_equal(problem.matrices["msm"], SECOND)
    assert problem.array == "dtw" and "array='dtw, msm'" in problem.loading
    np.savez(path, dtw=FIRST, dtw_test=FIRST, msm=SECOND, y=Y, y_test=Y)
    with pytest.raises(ValueError, match="none named msm_test; add them, or say --no-split"):
        read_problem(path, array="dtw,msm")
    np.savez(path, dtw=FIRST, dtw_test=FIRST, msm=SECOND, msm_test=SECOND[:, ::-1], y=Y, y_test=Y)
    problem = read_problem(path, array="dtw,msm")
    np.testing.assert_array_equal(problem.others["msm"].X_test, SECOND[:, ::-1])


@pytest.mark.slow
def test_fit_and_predict_on_several(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("train.npz", dtw=FIRST[:70, :70], msm=SECOND[:70, :70], y=Y[:70])
    np.savez("new.npz", dtw=FIRST[70:, :70], msm=SECOND[70:, :70])
    np.savez("half.npz", dtw=FIRST[70:, :70], other=SECOND[70:, :70])
    assert main(["fit", "train.npz", "--array", "dtw,msm", "--learner", "several"]) == 0
    assert main(["predict", "model.skops", "new.npz"]) == 0
    lines = (tmp_path / "predictions.csv").read_text().split()[1:]
    assert np.mean([int(line) == y for line, y in zip(lines, Y[70:])]) > 0.75
    assert main(["predict", "model.skops", "half.npz"]) == 2
    assert "has no array 'msm'; the model takes dtw, msm" in capsys.readouterr().err
