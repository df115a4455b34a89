"""The code in a report runs, for every kind of input, and gives the report's estimator, data and score."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from test_corpus import (
    BY_ID,
    COLUMN,
    CSV,
    FASTA,
    FILE,
    GERMAN,
    IDS,
    LOWER,
    PHYLIP,
    RNG,
    TABLE,
    WORDS,
    D,
    N,
    S,
    Y,
    arrays,
    lines,
    named,
    pairs,
    r_table,
    raw,
    text,
    with_labels,
)

import mercerless
from mercerless.comparison import read_problem
from mercerless.comparison.options import Options
from mercerless.comparison.result import compare_problem
from mercerless.comparison.scoring import outer_folds

pytestmark = pytest.mark.slow

MIXED = TABLE.assign(color=RNG.choice(["red", "blue"], N), a=TABLE["a"].where(np.arange(N) % 7 > 0))
INPUTS = {
    "npz": ("D.npz", arrays(np.savez, D=D, y=Y), {}),
    "distances": ("D.csv", text(lines(D)), FILE),
    "named": ("D.csv", with_labels(named(D), BY_ID), {"labels": "y.csv"}),
    "R": ("D.txt", text(r_table(D, IDS)), FILE),
    "triangle": ("D.csv", text(lines(LOWER)), FILE),
    "PHYLIP": ("D.phy", text(PHYLIP), FILE),
    "pairs": (
        "p.csv",
        with_labels(lines([("a", "b", "distance"), *pairs(D)]), BY_ID),
        {"labels": "y.csv"},
    ),
    "asymmetric": ("K.npz", arrays(np.savez, K=S + np.triu(S, 1), y=Y), {"kind": "similarity"}),
    "dissimilarity": ("D.npz", arrays(np.savez, X=D - 1, y=Y), {"kind": "dissimilarity"}),
    "FASTA": ("s.fasta", text(FASTA), FILE),
    "strings": ("s.csv", text(lines([("word", "class"), *zip(WORDS, Y)])), {"similarity": "indel"}),
    "table": ("t.csv", text(CSV), COLUMN),
    "semicolons": ("t.csv", text(GERMAN), COLUMN),
    "compressed": ("t.csv.gz", raw(gzip.compress(CSV.encode())), COLUMN),
    "words and gaps": ("t.csv", text(MIXED.to_csv(index=False)), COLUMN),
    "a name that is no code": ("t'); print(open('y.txt').read()) #.csv", text(CSV), COLUMN),
}


@pytest.fixture(autouse=True)
def private_place(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def check(result, code, data=None):
    names = {} if data is None else {"data": data}
    exec(compile(code, "code to copy", "exec"), names)
    score = result.table[[row["learner"] for row in result.table].index("neighbors")]["score"]
    folds = outer_folds(result.problem, 0, 0)
    again = cross_val_score(
        clone(names["estimator"]), names["X"], names["y"], cv=folds, scoring="accuracy"
    )
    assert again.mean() == pytest.approx(score, abs=1e-12)
    assert len(names["estimator"].predict(names["X"])) == len(names["y"])


@pytest.mark.slow
@pytest.mark.parametrize("case", INPUTS.values(), ids=INPUTS)
def test_of_files(case, capsys):
    name, write, arguments = case
    if "s." in name:
        pytest.importorskip("rapidfuzz")
    write(Path(os.curdir), name)
    problem = read_problem(name, **arguments)
    result = compare_problem(
        problem, Options(learners=["dummy", "neighbors"], repeats=1, curves=False)
    )
    capsys.readouterr()
    check(result, result.code("neighbors"))
    assert capsys.readouterr().out == ""


def shared_letters(a, b):
    return len(set(a) & set(b)) / len(set(a) | set(b))


def test_of_python_data():
    quick = {"learners": ["dummy", "neighbors"], "repeats": 1, "curves": False}
    X = MIXED.drop(columns="target")
    result = mercerless.compare(X, MIXED["target"], **quick)
    check(result, result.code("neighbors").replace("...", "data"), (X, MIXED["target"]))
    result = mercerless.compare(WORDS, Y, kernel=shared_letters, **quick)
    assert result.problem.kind == "similarity" and result.problem.items == tuple(WORDS)
    code = result.code("neighbors").replace("...", "data").replace("shared_letters", "data[2]")
    check(
        result, code.replace("items, y = data", "items, y = data[:2]"), (WORDS, Y, shared_letters)
    )


def test_of_lab_on_a_frame_with_columns_that_are_not_used():
    """The code trains LAB on the columns, types and gaps that it was raced on."""
    X = MIXED.drop(columns="target").assign(name=[f"n{i}" for i in range(N)])
    X["day"] = [f"{i % 28 + 1:02d}/01/2020" for i in range(N)]
    quick = {"learners": ["dummy", "table"], "repeats": 1, "curves": False}
    result = mercerless.compare(X, MIXED["target"], **quick)
    names = {"data": (X, MIXED["target"])}
    exec(compile(result.code("table").replace("...", "data"), "code to copy", "exec"), names)
    assert list(names["X"].columns) == list(result.problem.roles)
    assert names["X"]["day"].notna().all()
    rows = result.problem.X.iloc[:20]
    again = type(names["estimator"])(random_state=0).fit(result.problem.X, result.problem.y)
    np.testing.assert_array_equal(names["estimator"].predict(rows), again.predict(rows))
