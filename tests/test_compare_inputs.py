"""Finding out what the data is, and one clear sentence for everything that it cannot be."""

import shlex

import numpy as np
import pandas as pd
import pytest

from mercerless.cli import build_parser, main
from mercerless.commands.compare import command_to_continue
from mercerless.comparison.problem import guess_kind, guess_task, make_problem
from mercerless.comparison.reading import read_problem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
Y = np.repeat(["left", "right"], 20)


@pytest.mark.parametrize(
    "y", [[["a"], ["a", "b"]] * 20, [["a", "b"]] * 40, np.zeros((40, 2)), [{"a"}, {"a", "b"}] * 20]
)
def test_several_labels_of_one_item_raise_one_sentence(y):
    with pytest.raises(
        ValueError, match="there must be one label per item; compare several targets one by one"
    ):
        make_problem(np.random.default_rng(0).normal(size=(40, 3)), y)


def test_series_of_unequal_length_are_compared_by_a_function():
    rng = np.random.default_rng(0)
    series = [np.sin(np.arange(rng.integers(20, 40)) * (0.2 + 0.3 * (i % 2))) for i in range(40)]
    problem = make_problem(
        series, np.arange(40) % 2, similarity=lambda a, b: float(a.std() * b.std())
    )
    assert (
        problem.is_matrix
        and problem.X.shape == (40, 40)
        and len(problem.items[1]) == len(series[1])
    )


def guessed(problem):
    return {guess.what: guess.value for guess in problem.guesses}


def test_kinds_of_arrays():
    assert guess_kind(D)[0] == "distance"
    assert guess_kind(np.exp(-D))[0] == "similarity"
    assert guess_kind(X)[0] == "table"
    assert guess_kind(-D)[0] == "similarity"
    assert guess_kind(D + 1e-6 * np.eye(40))[0] == "distance"  # a diagonal of rounding
    assert guess_kind(np.ones((40, 40)))[0] == guess_kind(np.zeros((40, 40)))[0] == "similarity"


@pytest.mark.parametrize(
    "y, task",
    [
        (["a", "b", "a"], "classification"),
        ([True, False, True], "classification"),
        (np.arange(30) % 3, "classification"),
        (np.arange(30.0) % 3, "classification"),
        (np.arange(30), "regression"),
        (np.linspace(0, 1, 30), "regression"),
    ],
)
def test_tasks(y, task):
    assert guess_task(np.asarray(y))[0] == task


def test_every_guess_can_be_overridden():
    problem = make_problem(D, np.arange(40) % 4, kind="similarity", task="regression")
    assert problem.kind == "similarity" and problem.task == "regression" and problem.guesses == ()


def test_a_square_csv_with_a_label_file(tmp_path):
    np.savetxt(tmp_path / "D.csv", D, delimiter=",")
    (tmp_path / "labels.txt").write_text("\n".join(Y))
    problem = read_problem(tmp_path / "D.csv", labels=str(tmp_path / "labels.txt"))
    assert problem.kind == "distance" and problem.task == "classification"
    np.testing.assert_allclose(problem.X, D)
    np.testing.assert_array_equal(problem.y, Y)


def test_a_square_csv_with_a_label_column(tmp_path):
    names = ",".join([*(f"item{i}" for i in range(40)), "label"])
    rows = [",".join([*map(str, row), label]) for row, label in zip(D, Y)]
    (tmp_path / "D.csv").write_text("\n".join([names, *rows]))
    problem = read_problem(tmp_path / "D.csv")
    assert problem.kind == "distance" and guessed(problem)["labels"] == "column 'label'"
    np.testing.assert_allclose(problem.X, D)


def write_table(path, extra=(), header="a,b,color,site", n=40):
    colors = ["red", "green", "blue"]
    rows = [
        f"{X[i, 0]},{X[i, 1]},{colors[i % 3]},{'north' if i % 2 else 'south'}" for i in range(n)
    ]
    columns = {name: values for name, values in extra}
    lines = [",".join([header, *columns])]
    lines += [
        ",".join([row, *(str(values[i]) for values in columns.values())])
        for i, row in enumerate(rows)
    ]
    path.write_text("\n".join(lines))
    return path


def test_a_table_with_words_groups_and_split(tmp_path):
    extra = [
        ("group", np.arange(40) // 4),
        ("split", ["train"] * 30 + ["test"] * 10),
        ("price", X[:, 2].round(3)),
    ]
    problem = read_problem(write_table(tmp_path / "t.csv", extra))
    assert problem.kind == "table" and problem.task == "regression"
    assert guessed(problem)["labels"] == "column 'price'"
    assert guessed(problem)["split"] == "10 test items"
    assert (
        problem.X.shape == (30, 4)
        and problem.X_test.shape == (10, 4)
        and problem.n_features == 2 + 3 + 2
    )
    assert problem.roles == {"a": "number", "b": "number", "color": "category", "site": "category"}
    np.testing.assert_allclose(problem.y_test, X[30:, 2].round(3))
    assert len(np.unique(problem.groups)) == 8
    whole = read_problem(
        tmp_path / "t.csv", use_split=False, groups="none", drop=["color", "group"]
    )
    assert whole.X.shape == (40, 3) and whole.y_test is None and whole.groups is None


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(target=Y)
    table.to_parquet(tmp_path / "t.parquet")
    problem = read_problem(tmp_path / "t.parquet")
    assert problem.kind == "table" and problem.task == "classification"
    np.testing.assert_allclose(problem.X, X)


@pytest.mark.parametrize("order", ["string first", "label first"])
def test_strings_with_labels(tmp_path, order):
    pytest.importorskip("rapidfuzz")
    words = ["".join(RNG.choice(list("ACGT"), 9)) for _ in range(40)]
    pairs = zip(words, Y) if order == "string first" else zip(Y, words)
    (tmp_path / "s.tsv").write_text("\n".join("\t".join(pair) for pair in pairs))
    problem = read_problem(tmp_path / "s.tsv")
    assert (
        problem.kind == "strings"
        and problem.task == "classification"
        and problem.items == tuple(words)
    )
    assert problem.X.shape == (40, 40) and np.all(np.diagonal(problem.X) == 1.0)
    (tmp_path / "s.txt").write_text("\n".join(words))
    (tmp_path / "y.txt").write_text("\n".join(Y))
    lines = read_problem(tmp_path / "s.txt", labels=str(tmp_path / "y.txt"), kind="strings")
    np.testing.assert_array_equal(lines.X, problem.X)


def test_an_npz_with_a_test_set(tmp_path):
    np.savez(
        tmp_path / "d.npz",
        D=D[:30, :30],
        D_test=D[30:, :30],
        y=np.arange(30) % 2,
        y_test=np.arange(10) % 2,
    )
    problem = read_problem(tmp_path / "d.npz")
    assert problem.kind == "distance" and problem.X_test.shape == (10, 30)
    assert read_problem(tmp_path / "d.npz", use_split=False).X_test is None


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(X=D, y=Y[:-1]), "There are 39 labels for 40 items"),
        (dict(X=D, y=["one"] * 40), "All labels are one"),
        (
            dict(X=D, y=["rare"] * 4 + list(Y[4:])),
            "Every class needs at least 5 items, but rare has 4 of the 40 items",
        ),
        (dict(X=D, y=np.full(40, 0.5), task="regression"), "All targets are equal"),
        (dict(X=D, y=[np.inf, *X[1:, 0]]), "1 labels are infinite"),
        (
            dict(X=np.where(np.indices((40, 40)).sum(axis=0) % 2, np.nan, D), y=Y),
            "50 % of the matrix is missing",
        ),
        (
            dict(X=D - 1, y=Y, kind="distance"),
            "distances, but the smallest is -1; they must not be negative",
        ),
        (dict(X=X, y=Y, kind="similarity"), "must be square"),
        (dict(X=D, y=Y, groups=np.arange(40) % 2), "There are 2 groups"),
        (dict(X=D, y=Y, groups=np.arange(39)), "groups has 39 entries for 40 items"),
        (dict(X=D, y=Y, task="regression"), "Regression needs numbers as targets"),
        (dict(X=D, y=Y, kind="graph"), "kind='graph' is not known"),
        (dict(X=D, y=Y, X_test=D[:5, :7], y_test=Y[:5]), "X_test has 7 columns, X has 40"),
        (dict(X=D, y=Y, X_test=D[:5], y_test=Y[:4]), "one label per row of X_test"),
        (
            dict(X=D[:20, :20], y=X[:20, 0]),
            "There are 20 items; comparing learners needs at least 25",
        ),
    ],
)
def test_bad_arrays(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_problem(**arguments)


def test_a_matrix_too_large_for_memory_raises(monkeypatch):
    monkeypatch.setattr("mercerless.core.memory.available_memory", lambda: 20_000)
    with pytest.raises(MemoryError, match="Comparing learners on a 40 x 40 matrix needs"):
        make_problem(D, Y)


@pytest.mark.parametrize(
    "y, sentence",
    [
        ([*"ab" * 18, *"cdef"], "c has 1 of the 40 items; merge or remove rare classes."),
        (
            [f"name {i}" for i in range(40)],
            "there are 40 classes for 40 items; merge or remove rare classes.",
        ),
        (np.arange(40) // 2, "or say that the labels are numbers (task 'regression')."),
    ],
)
def test_rare_classes(y, sentence):
    with pytest.raises(ValueError, match="Every class needs at least 5 items, but ") as caught:
        make_problem(X, np.asarray(y), task="classification")
    assert str(caught.value).endswith(sentence)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_numbers_that_cannot_be_squared(scale):
    with pytest.raises(ValueError, match=r"The data have a largest size of .*; rescale them"):
        make_problem(scale * X, Y)
    with pytest.raises(ValueError, match=r"The targets have a largest size of .*; rescale them"):
        make_problem(X, scale * X[:, 0])


def test_a_test_set_with_a_class_of_its_own(tmp_path):
    with pytest.raises(ValueError, match="the class middle, which no training item has"):
        make_problem(X, Y, X_test=X[:2], y_test=["left", "middle"])
    rows = [f"{x},{y},train" for x, y in zip(X[:, 0], Y)]
    (tmp_path / "t.csv").write_text(
        "\n".join(["a,y,split", *rows, "1.0,middle,test", "1.0,left,test"])
    )
    with pytest.raises(
        ValueError, match=r"Every class needs|the class middle, which no training item has"
    ):
        read_problem(tmp_path / "t.csv")


def test_lines_of_text_with_a_label_file(tmp_path):
    (tmp_path / "names.txt").write_text("\n".join(f"{word} no {i}" for i, word in enumerate(Y)))
    (tmp_path / "labels.txt").write_text("\n".join(Y))
    problem = read_problem(tmp_path / "names.txt", labels=str(tmp_path / "labels.txt"))
    assert (
        problem.kind == "strings"
        and guessed(problem)["kind"] == "strings"
        and problem.items[3] == "left no 3"
    )
    np.savetxt(tmp_path / "D.txt", D)
    assert read_problem(tmp_path / "D.txt", labels=str(tmp_path / "labels.txt")).kind == "distance"


def test_parquet_with_what_is_no_table(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [[1, 2]] * 40, "y": list(Y)}), tmp_path / "lists.parquet")
    with pytest.raises(
        ValueError, match=r"column 'a' has cells of type list.*one number or word in a cell"
    ):
        read_problem(tmp_path / "lists.parquet")
    words = pa.table({"a": ["u", None, *"v" * 38], "b": list(X[:, 0]), "y": list(Y)})
    parquet.write_table(words, tmp_path / "missing.parquet")
    problem = read_problem(tmp_path / "missing.parquet")
    assert guessed(problem)["missing values"] == "1 cell" and problem.n_features == 1 + 3


def test_the_few_items_of_rare_classes_are_left_out_with_a_word():
    problem = make_problem(D, ["rare", *Y[1:]])
    assert problem.X.shape == (39, 39) and guessed(problem)["left out"] == "1 items of rare"
    np.testing.assert_array_equal(problem.X, D[1:, 1:])


def survey(folder, name="survey.csv"):
    """A table whose gaps are "unknown" among words, "-999" among numbers, and "refused" among labels."""
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(str),
            "height": rng.normal(170.0, 10.0, n).round(1).astype(str),
            "home": rng.choice(["town", "village"], n),
            "label": rng.choice(["yes", "no"], n),
        }
    )
    frame.loc[:4, "age"] = "-999"
    frame.loc[3:8, "height"] = "unknown"
    frame.loc[6:9, "home"] = "unknown"
    frame.loc[50:55, "label"] = "unknown"
    frame.to_csv(folder / name, index=False)
    return frame


def test_words_that_the_user_calls_missing_are_gaps(tmp_path):
    survey(tmp_path)
    path = tmp_path / "survey.csv"
    plain = read_problem(path, labels="label")
    assert "unknown" in set(plain.y) and plain.X["age"].min() == -999
    problem = read_problem(path, labels="label", missing=["unknown", "-999.0"])
    assert set(problem.y) == {"yes", "no"} and len(problem.y) == 54
    assert problem.roles == {"age": "number", "height": "number", "home": "category"}
    gaps = problem.X.isna().sum()
    assert dict(gaps) == {"age": 5, "height": 6, "home": 4} and problem.X["age"].min() >= 18
    notes = [guess.value for guess in problem.guesses if guess.what == "missing values"]
    assert "16 cells are 'unknown'" in notes and "5 cells are '-999.0'" in notes
    assert "missing=['unknown', '-999.0']" in problem.loading
    with pytest.raises(
        ValueError, match="has no cell 'unknown to me', which --missing names; check its"
    ):
        read_problem(path, labels="label", missing=["unknown to me"])


def test_words_that_mean_gaps_need_a_table(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((40, 3)), y=np.arange(40) % 2)
    with pytest.raises(ValueError, match="--missing is for tables"):
        read_problem(tmp_path / "a.npz", missing=["?"])


@pytest.mark.slow
def test_a_model_keeps_the_words_that_mean_gaps(tmp_path, monkeypatch):
    """Otherwise -999 would be an age."""
    monkeypatch.chdir(tmp_path)
    frame = survey(tmp_path)
    words = (
        "fit survey.csv --labels label --learner linear --missing unknown --missing -999".split()
    )
    assert main(words) == 0
    new = frame.drop(columns="label").iloc[[0, 5, 20]]
    new.to_csv("said.csv", index=False)
    new.replace({"-999": "", "unknown": ""}).to_csv("empty.csv", index=False)
    assert main(["predict", "model.skops", "said.csv", "--probabilities"]) == 0
    said = (tmp_path / "predictions.csv").read_text()
    assert main(["predict", "model.skops", "empty.csv", "--probabilities"]) == 0
    assert said == (tmp_path / "predictions.csv").read_text()


WARPING = '''
import numpy as np

def warping(a, b):
    """Dynamic time warping with squared differences."""
    cost = np.full((len(a) + 1, len(b) + 1), np.inf)
    cost[0, 0] = 0.0
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            cost[i + 1, j + 1] = (x - y) ** 2 + min(cost[i, j], cost[i, j + 1], cost[i + 1, j])
    return float(np.sqrt(cost[-1, -1]))
'''


def test_series_of_a_file_are_compared_as_they_are_by_a_function(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warp_for_test.py").write_text(WARPING)
    rng = np.random.default_rng(0)
    series = [np.sin(0.5 * np.arange(rng.integers(8, 14))) + i % 2 for i in range(26)]
    lines = [",".join(f"{x:.6f}" for x in one) + f":{i % 2}" for i, one in enumerate(series)]
    head = "@problemName waves\n@timeStamps false\n@univariate true\n@classLabel true 0 1\n@data\n"
    (tmp_path / "waves.ts").write_text(head + "\n".join(lines))
    problem = read_problem("waves.ts", similarity="warp_for_test:warping")
    assert problem.kind == "distance" and problem.X.shape == (26, 26)
    assert "series" not in guessed(problem)
    scope = {}
    exec(WARPING, scope)
    expected = scope["warping"](np.round(series[3], 6), np.round(series[8], 6))
    assert problem.X[3, 8] == pytest.approx(expected)
    np.testing.assert_allclose(problem.items[5], series[5], atol=1e-6)
    stretched = read_problem("waves.ts", kind="table")
    assert stretched.kind == "table"
    assert any("--similarity dtw" in guess.why for guess in stretched.guesses)
    words = ["fit", "waves.ts", "--similarity", "warp_for_test:warping", "--learner", "neighbors"]
    assert main(words) == 2
    assert "A model of series cannot be kept in a file; fit it in Python" in capsys.readouterr().err


def test_the_command_that_goes_on_has_all_options_of_the_first():
    parser = build_parser(["compare"])
    words = shlex.split(
        "compare data.xlsx --labels y --kind table --task regression --groups g --similarity indel "
        "--array A,B --format excel --sheet 2 --drop 'a b' --drop c --missing=-999 --missing '{}' "
        "--no-split --metric mae --learners dummy,linear --no-curves --seed 7 --no-rows"
    )
    args = parser.parse_args(words)
    text = command_to_continue(args).format(budget="9m")
    first = vars(args)
    again = vars(parser.parse_args(shlex.split(text)[1:]))
    differing = {name for name in first if first[name] != again[name]}
    assert differing == {"budget", "resume"}
    assert (again["budget"], again["resume"]) == ("9m", True)
    # no option was left at its default above, but what is not about the result
    defaults = vars(parser.parse_args(["compare"]))
    unset = {name for name in first if first[name] == defaults[name]}
    where_and_when = {"budget", "repeats", "jobs", "resume", "dask", "output", "save"}
    assert unset - where_and_when == {"command", "run"}
    without_seed = parser.parse_args(["compare", "t.csv"])
    assert "--seed" not in command_to_continue(without_seed)
    assert "--no-rows" not in command_to_continue(without_seed)


def test_groups_must_not_be_missing():
    rows = RNG.normal(size=(40, 3))
    y = np.repeat(["a", "b"], 20)
    groups = np.arange(40) // 2
    for missing in (np.where(groups < 3, np.nan, groups), [""] * 6 + list(map(str, groups[6:]))):
        with pytest.raises(ValueError, match="groups is missing for 6 of 40 items"):
            make_problem(rows, y, groups=missing)
    unlabeled = np.where(groups < 3, "", y)
    assert len(make_problem(rows, unlabeled, groups=np.where(groups < 3, np.nan, groups)).y) == 34


@pytest.mark.parametrize("y", [np.repeat(["a", "b"], 20), np.linspace(0.5, 3.0, 40)])
def test_a_column_with_the_labels_is_mentioned(y):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": RNG.normal(size=40), "kind": ["u", "v"] * 20})
    for table in (frame.assign(result=y), frame[["x"]].assign(result=y)):
        guesses = {guess.what: guess.value for guess in make_problem(table, y).guesses}
        assert guesses["the labels themselves"] == "column 'result'"
    assert "the labels themselves" not in str(make_problem(frame, y).guesses)
