"""``mercerless fit`` and ``mercerless predict`` from end to end."""

import csv
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skops")

from mercerless import persistence
from mercerless.cli import main
from mercerless.datasets import load_digit_shapes

SHAPES = load_digit_shapes(100)
D, Y = SHAPES.D, SHAPES.target % 2
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def read_predictions():
    with open("predictions.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    "learner, similar", [("krein-ridge", False), ("neighbors", True), ("stack", False)]
)
def test_a_matrix(learner, similar, capsys):
    X = 5.0 - D if similar else D
    np.savez("train.npz", X=X[:80, :80], y=Y[:80])
    np.save("new.npy", X[80:, :80])
    assert main(["fit", "train.npz", "--learner", learner]) == 0
    assert "fitted on 80 items" in capsys.readouterr().out
    assert main(["predict", "model.skops", "new.npy"]) == 0
    predicted = np.array([int(row["prediction"]) for row in read_predictions()])
    assert predicted.shape == (20,) and np.mean(predicted == Y[80:]) > 0.7


def test_without_skops_nothing_is_read(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    np.savez("train.npz", X=D, y=Y)
    assert main(["fit", "train.npz", "--learner", "neighbors"]) == 2
    printed = capsys.readouterr()
    assert "needs skops" in printed.err and printed.out == ""


def test_the_seed_is_that_of_the_learner():
    np.savez("train.npz", X=D[:40, :40], y=Y[:40])
    assert main(["fit", "train.npz", "--learner", "stack", "--seed", "7"]) == 0
    assert persistence.load("model.skops")["estimator"].random_state == 7


@pytest.mark.slow
def test_the_recommended_learner_is_the_default(capsys):
    np.savez("train.npz", D=D, y=Y)
    quick = ["--learners", "dummy,neighbors", "--repeats", "1", "--jobs", "1"]
    assert main(["fit", "train.npz", *quick, "-o", "m.skops"]) == 0
    printed = capsys.readouterr().out
    assert "Nearest neighbors fitted on 100 items" in printed and Path("m.skops").exists()


def write_table(path, rows, target=True):
    header = "a,color,b" + (",y" if target else "")
    lines = [f"{a},{color},{b}" + (f",{a - b}" if target else "") for a, color, b in rows]
    Path(path).write_text("\n".join([header, *lines]))


def test_a_table_with_words(capsys):
    rows = [(a, "red" if a > 0 else "blue", b) for a, b in RNG.normal(size=(60, 2)).round(4)]
    write_table("train.csv", rows)
    write_table("new.csv", [(1.0, "red", 0.5), (-1.0, "blue", 0.0)], target=False)
    write_table("strange.csv", [(1.0, "pink", 0.5)], target=False)
    Path("shorter.csv").write_text("a,b\n1,2\n3,4")
    assert main(["fit", "train.csv", "--learner", "linear"]) == 0
    assert main(["predict", "model.skops", "new.csv"]) == 0
    predicted = [float(row["prediction"]) for row in read_predictions()]
    np.testing.assert_allclose(predicted, [0.5, -1.0], atol=0.1)
    # a word that was never seen has no 0/1 column
    assert main(["predict", "model.skops", "strange.csv"]) == 0
    assert np.isfinite(float(read_predictions()[0]["prediction"]))
    Path("predictions.csv").unlink()
    assert main(["predict", "model.skops", "shorter.csv"]) == 2
    assert "has no column 'color'; it has a, b" in capsys.readouterr().err
    assert not Path("predictions.csv").exists()


def write_dates(path, number, date, n_rows=40, end=""):
    """A table whose numbers and dates are written by the given functions."""
    days = np.datetime64("2021-01-05") + 11 * np.arange(n_rows)
    sizes = 850.5 + 9.0 * np.arange(n_rows)
    rows = [
        f"{number(size)};{date(day)};{i % 7}"
        for i, (size, day) in enumerate(zip(sizes, days.tolist()))
    ]
    Path(path).write_text("\n".join(["size;day;y", *rows]) + "\n" + end, encoding="utf-8")


def test_numbers_and_dates_may_be_written_in_another_way_than_in_training(capsys):
    american = "{:,.1f}".format
    write_dates("train.csv", american, "{:%Y-%m-%d}".format)
    write_dates("plain.csv", "{:.1f}".format, "{:%Y-%m-%d}".format)
    write_dates(
        "german.csv",
        lambda v: american(v).translate(str.maketrans(",.", ".,")),
        "{:%d.%m.%Y}".format,
    )
    write_dates("slashes.csv", "{:.1f}".format, "{:%m/%d/%Y}".format)
    assert (
        main(["fit", "train.csv", "--labels", "y", "--task", "regression", "--learner", "linear"])
        == 0
    )
    predictions = {}
    for name in ("train", "plain", "german", "slashes"):
        assert main(["predict", "model.skops", f"{name}.csv"]) == 0
        predictions[name] = read_predictions()
    assert (
        predictions["train"]
        == predictions["plain"]
        == predictions["german"]
        == predictions["slashes"]
    )
    printed = capsys.readouterr().out
    assert "all dates are read as %d.%m.%Y" in printed and "missing" not in printed
    # dates of which some are ambiguous, and others of no format
    write_dates(
        "some.csv", "{:.1f}".format, lambda day: "soon" if day.month == 2 else f"{day:%d.%m.%Y}"
    )
    assert main(["predict", "model.skops", "some.csv"]) == 0
    assert "where dates were: missing, with 39 more" in capsys.readouterr().out


def test_percentages_of_new_rows_are_those_of_the_training_rows(capsys):
    def write(name, form):
        rows = [f"{form(i / 8)},{i % 7},{i / 4 + i % 7:.2f}\n" for i in range(40)]
        Path(name).write_text("share,age,y\n" + "".join(rows))

    write("signs.csv", "{:.3f} %".format)
    write("shares.csv", lambda value: f"{value / 100:.5f}")  # as Excel has them
    arguments = ["--labels", "y", "--task", "regression", "--learner", "linear"]
    assert main(["fit", "signs.csv", *arguments]) == 0
    assert "read as 0.00125" in capsys.readouterr().out
    predictions = []
    notes = []
    for name in ("signs.csv", "shares.csv"):
        assert main(["predict", "model.skops", name]) == 0
        predictions.append(read_predictions())
        notes.append("no percent signs, but the training rows had them" in capsys.readouterr().out)
    assert predictions[0] == predictions[1] and notes == [False, True]


def test_categories_of_new_rows_may_be_missing_or_strange(capsys):
    rows = [f"{'red' if i % 3 else 'blue'},{i % 7},{i / 4 + i % 3:.2f}\n" for i in range(40)]
    Path("train.csv").write_text("color,age,y\n" + "".join(rows))
    Path("gaps.csv").write_text("color,age\n,3\n,4\n")
    Path("strange.csv").write_text("color,age\nRED,3\ngreen,4\n")
    arguments = ["--labels", "y", "--task", "regression", "--learner", "linear"]
    assert main(["fit", "train.csv", *arguments]) == 0
    capsys.readouterr()
    assert main(["predict", "model.skops", "gaps.csv"]) == 0
    assert "no word" not in capsys.readouterr().out
    assert main(["predict", "model.skops", "strange.csv"]) == 0
    note = "no word in column 'color', such as 'RED', was in the training rows, such as 'blue'"
    assert note in capsys.readouterr().out


@pytest.mark.parametrize("form", ["distance", "bits"])
def test_new_items_may_be_given_as_pairs(form):
    points = 10 * (np.arange(24) % 5) + np.arange(24) / 20
    near = 100 - np.abs(np.subtract.outer(points, points))
    values = near if form == "bits" else 100 - near
    further = ",7" if form == "bits" else ""

    def write(name, firsts):
        rows = [
            f"i{a},i{b},{values[a, b]:.3f}{further}\n" for a in firsts for b in range(20) if a != b
        ]
        header = f"query,target,{form}" + (",length\n" if further else "\n")
        Path(name).write_text(header + "".join(rows))

    write("train.csv", range(20))
    write("new.csv", range(20, 24))
    Path("y.csv").write_text("".join(f"i{i},{'low' if i % 5 < 2 else 'high'}\n" for i in range(20)))
    assert main(["fit", "train.csv", "--labels", "y.csv", "--learner", "neighbors"]) == 0
    assert main(["predict", "model.skops", "new.csv"]) == 0
    found = {
        row[0]: row[-1] for row in csv.reader(Path("predictions.csv").read_text().splitlines())
    }
    assert {name: found[name] for name in ("i20", "i21", "i22", "i23")} == {
        "i20": "low",
        "i21": "low",
        "i22": "high",
        "i23": "high",
    }


def test_transposed_rows_of_a_matrix_are_recognized(capsys):
    pd = pytest.importorskip("pandas")
    points = np.arange(20) % 7 + np.arange(20) / 20
    D = np.abs(np.subtract.outer(points, points))
    names = [f"item{i}" for i in range(20)]
    pd.DataFrame(D, names, names).to_csv("D.csv")
    Path("y.txt").write_text("\n".join("ab"[i % 2] for i in range(20)))
    assert main(["fit", "D.csv", "--labels", "y.txt", "--learner", "neighbors"]) == 0
    pd.DataFrame(D[:, :3], names, ["new1", "new2", "new3"]).to_csv("new.csv")
    np.save("new.npy", D[:, :3])
    capsys.readouterr()
    assert main(["predict", "model.skops", "new.csv"]) == 2
    assert "has the training items in its rows; transpose it" in capsys.readouterr().err
    assert main(["predict", "model.skops", "new.npy"]) == 2
    assert "one for each of the training items; transpose it." in capsys.readouterr().err


def test_empty_rows_at_the_end_have_no_predictions(capsys):
    write_dates("train.csv", "{:.1f}".format, "{:%Y-%m-%d}".format)
    write_dates("new.csv", "{:.1f}".format, "{:%Y-%m-%d}".format, end=";;\n;;\n")
    assert (
        main(["fit", "train.csv", "--labels", "y", "--task", "regression", "--learner", "linear"])
        == 0
    )
    assert main(["predict", "model.skops", "new.csv"]) == 0
    assert len(read_predictions()) == 40
    assert "the last 2 rows are empty and left out" in capsys.readouterr().out


def test_strings_with_probabilities():
    pytest.importorskip("rapidfuzz")
    words = ["".join(RNG.choice(list("AC" if i % 2 else "GT"), 8)) for i in range(60)]
    Path("train.tsv").write_text(
        "\n".join(f"{word}\t{'even' if i % 2 else 'odd'}" for i, word in enumerate(words))
    )
    Path("new.txt").write_text("ACACACAC\nGTGTGGTT\n")
    assert main(["fit", "train.tsv", "--learner", "krein-ridge"]) == 0
    assert main(["predict", "model.skops", "new.txt", "--probabilities"]) == 0
    rows = read_predictions()
    assert [row["id"] for row in rows] == ["ACACACAC", "GTGTGGTT"]  # strings name themselves
    assert [row["prediction"] for row in rows] == ["even", "odd"]
    assert float(rows[0]["probability of even"]) + float(
        rows[0]["probability of odd"]
    ) == pytest.approx(1.0)


@pytest.fixture
def model():
    np.savez("train.npz", D=D[:80, :80], y=Y[:80])
    assert main(["fit", "train.npz", "--learner", "svm-flip"]) == 0


def test_rows_that_do_not_fit_the_model(model, capsys):
    np.save("new.npy", D[80:, :79])
    assert main(["predict", "model.skops", "new.npy"]) == 2
    assert (
        "has 79 columns; there must be 80, one for each of the training items"
        in capsys.readouterr().err
    )
    np.save("new.npy", np.where(D[80:, :80] > 1, np.nan, D[80:, :80]))
    assert main(["predict", "model.skops", "new.npy"]) == 2
    assert "NaN" in capsys.readouterr().err and not Path("predictions.csv").exists()


def test_no_probabilities_where_there_are_none(model, capsys):
    np.save("new.npy", D[80:, :80])
    assert main(["predict", "model.skops", "new.npy", "--probabilities"]) == 2
    assert (
        "gives no probabilities" in capsys.readouterr().err and not Path("predictions.csv").exists()
    )


def test_hits_of_new_items_are_found_by_the_names_of_the_training_items():
    score = np.round(100.0 / (1.0 + D), 1)
    names = [f"p{i:02d}" for i in range(len(D))]
    new, old = names[-4:], names[:-4]

    def hits(first, second):
        rows = []
        for i in map(names.index, first):
            for j in map(names.index, second):
                if score[i, j] > 20:
                    rows.append([names[i], names[j], 90, 9, 1, 0, 1, 9, 1, 9, 1e-5, score[i, j]])
        return "\n".join("\t".join(map(str, row)) for row in rows)

    Path("train.m8").write_text(hits(old, old))
    Path("new.m8").write_text(hits(new, old))
    labels = "\n".join(f"{name},{label}" for name, label in zip(old, Y))
    Path("y.csv").write_text(f"id,label\n{labels}")
    assert main(["fit", "train.m8", "--labels", "y.csv", "--learner", "krein-ridge"]) == 0
    assert main(["predict", "model.skops", "new.m8"]) == 0
    by_hits = read_predictions()
    rows = np.where(score > 20, score, 0.0)[-4:, :-4]
    np.save("new.npy", rows)
    assert main(["predict", "model.skops", "new.npy"]) == 0
    assert [row["id"] for row in by_hits] == new
    assert [row["prediction"] for row in by_hits] == [
        row["prediction"] for row in read_predictions()
    ]


def test_new_rows_take_none_and_stray_words_as_the_training_rows_did(capsys):
    n = len(D)
    color = np.array(["None", "red", "blue"])[np.arange(n) % 3]
    lines = [f"{D[0, i]:.4f},{color[i]},{color[i] == 'None'}" for i in range(n)]
    lines[4] = lines[4].replace(f"{D[0, 4]:.4f}", "unknown")
    Path("t.csv").write_text("\n".join(["a,color,label", *lines]))
    assert main(["fit", "t.csv", "--learner", "linear"]) == 0
    assert "a level in color" in capsys.readouterr().out
    Path("new.csv").write_text("a,color\n1.0,None\n1.0,red\nbroken,None\n")
    assert main(["predict", "model.skops", "new.csv"]) == 0
    assert [row["prediction"] for row in read_predictions()] == ["True", "False", "True"]
    assert "line 4, column 'a' has 'broken' where numbers were" in capsys.readouterr().out


def test_a_file_that_is_no_model(tmp_path, capsys):
    np.save("new.npy", D)
    Path("model.skops").write_bytes(pickle.dumps({"estimator": 1}))
    assert main(["predict", "model.skops", "new.npy"]) == 2
    assert "is not a model that mercerless saved" in capsys.readouterr().err
    from mercerless import persistence

    persistence.save({"something": "else"}, "model.skops")
    assert main(["predict", "model.skops", "new.npy"]) == 2
    assert "was not written by 'mercerless fit'" in capsys.readouterr().err


def test_an_unknown_learner(capsys):
    np.savez("train.npz", D=D, y=Y)
    assert main(["fit", "train.npz", "--learner", "magic"]) == 2
    assert (
        "There is no learner 'magic'" in capsys.readouterr().err
        and not Path("model.skops").exists()
    )


def named(rows, ids, columns):
    lines = [",".join(["", *columns])] + [
        ",".join([item, *map(str, row)]) for item, row in zip(ids, rows)
    ]
    return "\n".join(lines)


@pytest.fixture
def named_model():
    ids = [f"item {i}" for i in range(80)]
    Path("train.csv").write_text(named(D[:80, :80], ids, ids))
    order = RNG.permutation(80)
    Path("labels.csv").write_text("\n".join(["id,label", *(f"{ids[i]},{Y[i]}" for i in order)]))
    assert main(["fit", "train.csv", "--labels", "labels.csv", "--learner", "neighbors"]) == 0
    return ids


def test_columns_of_distances_are_matched_by_name(named_model):
    new = [f"new {i}" for i in range(20)]
    order = RNG.permutation(80)
    Path("new.csv").write_text(named(D[80:, order], new, [named_model[i] for i in order]))
    assert main(["predict", "model.skops", "new.csv"]) == 0
    rows = read_predictions()
    assert [row["id"] for row in rows] == new
    found = [row["prediction"] for row in rows]
    np.save("new.npy", D[80:, :80])
    assert main(["predict", "model.skops", "new.npy"]) == 0
    assert [row["prediction"] for row in read_predictions()] == found
    assert np.mean(np.array(found, dtype=int) == Y[80:]) > 0.7


def test_columns_that_cannot_be_matched_raise(named_model, capsys):
    Path("new.csv").write_text(
        named(D[80:, :80], map(str, range(20)), [*named_model[:-1], "stranger"])
    )
    assert main(["predict", "model.skops", "new.csv"]) == 2
    message = capsys.readouterr().err
    assert "has no column for the training item 'item 79' (1 of 80 are missing)" in message
    assert message.count("\n") == 1 and not Path("predictions.csv").exists()


def test_strings_are_read_from_their_column(capsys):
    pytest.importorskip("rapidfuzz")
    words = ["".join(RNG.choice(list("AC" if i % 2 else "GT"), 8)) for i in range(60)]
    lines = [f"p{i:03d},{word},{'even' if i % 2 else 'odd'}" for i, word in enumerate(words)]
    Path("train.csv").write_text("\n".join(["protein,sequence,label", *lines]))
    assert main(["fit", "train.csv", "--kind", "strings", "--learner", "neighbors"]) == 2
    assert "several columns of text, protein, sequence" in capsys.readouterr().err
    assert (
        main(
            ["fit", "train.csv", "--kind", "strings", "--drop", "protein", "--learner", "neighbors"]
        )
        == 0
    )
    Path("new.csv").write_text("protein,sequence\nGTGT,ACACACAC\nACAC,GTGTGGTT\n")
    assert main(["predict", "model.skops", "new.csv"]) == 0
    assert [row["prediction"] for row in read_predictions()] == ["even", "odd"]
    Path("new.csv").write_text("protein,other\nGTGT,ACACACAC\nACAC,GTGTGGTT\n")
    assert main(["predict", "model.skops", "new.csv"]) == 2
    assert "has no column 'sequence'; it has protein, other" in capsys.readouterr().err


def test_a_similarity_of_your_own():
    Path("own.py").write_text(
        "def shared(a, b):\n    return len(set(a) & set(b)) / len(set(a) | set(b))\n"
    )
    words = ["".join(RNG.choice(list("ACD" if i % 2 else "GTV"), 8)) for i in range(60)]
    Path("train.csv").write_text(
        "\n".join(
            [
                "word,label",
                *(f"{word},{'even' if i % 2 else 'odd'}" for i, word in enumerate(words)),
            ]
        )
    )
    assert main(["fit", "train.csv", "--similarity", "own:shared", "--learner", "neighbors"]) == 0
    Path("new.txt").write_text("ACACACAC\nGTGTGGTT\n")
    assert main(["predict", "model.skops", "new.txt", "--similarity", "own:shared"]) == 0
    assert [row["prediction"] for row in read_predictions()] == ["even", "odd"]


def test_a_model_does_not_choose_what_runs(capsys):
    words = ["".join(RNG.choice(list("ACD" if i % 2 else "GTV"), 8)) for i in range(20)]
    Path("train.csv").write_text(
        "\n".join(["word,label", *(f"{word},{i % 2}" for i, word in enumerate(words))])
    )
    assert main(["fit", "train.csv", "--learner", "neighbors"]) == 0
    content = persistence.load("model.skops")
    code = "open('ran', 'w').close()"  # timeit.timeit(new item, training item) runs both
    forged = {
        **json.loads(content["description"]),
        "similarity": "timeit:timeit",
        "items": [code] * 20,
    }
    persistence.save({**content, "description": json.dumps(forged)}, "model.skops")
    Path("new.txt").write_text("pass\n")
    for consent in ([], ["--similarity", "levenshtein"], ["--similarity", "own:shared"]):
        capsys.readouterr()
        assert main(["predict", "model.skops", "new.txt", *consent]) == 2
        message = capsys.readouterr().err
        assert "--similarity timeit:timeit" in message and message.count("\n") == 1
        assert not Path("ran").exists() and not Path("predictions.csv").exists()


def test_the_output_never_replaces_an_input(model, capsys):
    rows = "\n".join(",".join(map(str, row)) for row in D[80:, :80])
    Path("new.csv").write_text(rows)
    assert main(["predict", "model.skops", "new.csv", "--output", "./new.csv"]) == 2
    assert "is also an input; give another name" in capsys.readouterr().err
    assert Path("new.csv").read_text() == rows


def test_no_formulas_in_what_is_written():
    labels = np.array(["=cmd|' /C calc'!A0", "-1 + 2"])
    Path("train.csv").write_text(
        "\n".join(
            ["a,b,y", *(f'{a},{b},"{labels[int(a > 0)]}"' for a, b in RNG.normal(size=(60, 2)))]
        )
    )
    Path("new.csv").write_text("id,a,b\n@one,3,0\n+two,-3,0\n")
    assert main(["fit", "train.csv", "--learner", "linear"]) == 0
    assert main(["predict", "model.skops", "new.csv"]) == 0
    assert read_predictions() == [
        {"id": "'@one", "prediction": "'-1 + 2"},
        {"id": "'+two", "prediction": "'=cmd|' /C calc'!A0"},
    ]


@pytest.mark.parametrize(
    "change", [{"n_columns": "many"}, {"items": 3}, {"kind": None}, {"roles": [1]}, None]
)
def test_forged_descriptions_of_a_model(model, change, capsys):
    content = persistence.load("model.skops")
    description = None if change is None else {**json.loads(content["description"]), **change}
    persistence.save({**content, "description": json.dumps(description)}, "model.skops")
    np.save("new.npy", D[80:, :80])
    assert main(["predict", "model.skops", "new.npy"]) == 2
    assert "was not written by 'mercerless fit'" in capsys.readouterr().err


def test_how_sure_and_why(capsys):
    X = RNG.normal(size=(80, 2)).round(4)
    table = np.column_stack([X, (X[:, 0] > 0).astype(int)])
    np.savetxt("train.csv", table, delimiter=",", header="a,b,y", comments="")
    np.savetxt("new.csv", X[:5], delimiter=",", header="a,b", comments="")
    assert main(["fit", "train.csv", "--learner", "krein-ridge"]) == 0
    assert main(["predict", "model.skops", "new.csv", "--coverage", "0.9", "--reasons", "2"]) == 0
    rows = read_predictions()
    assert all(row["prediction"] in row["set at 0.9"].split(" | ") for row in rows)
    assert all(row["reasons"].startswith("for") and "item" in row["reasons"] for row in rows)
    capsys.readouterr()
    assert main(["predict", "model.skops", "new.csv", "--coverage", "1.5"]) == 2
    assert "must lie between 0 and 1" in capsys.readouterr().err
    assert main(["fit", "train.csv", "--learner", "neighbors"]) == 0
    assert main(["predict", "model.skops", "new.csv", "--coverage", "0.9"]) == 2
    message = capsys.readouterr().err
    assert "gives no sets or intervals; leave out --coverage" in message
    assert "with --learner table" in message
    assert main(["predict", "model.skops", "new.csv", "--reasons", "3"]) == 2
    assert "gives no reasons" in capsys.readouterr().err


@pytest.mark.slow
def test_lab_of_a_table_with_words_gaps_and_dates_is_saved_and_predicts(capsys):
    rows = [(a, "red" if a > 0 else "blue", b) for a, b in RNG.normal(size=(60, 2)).round(4)]
    days = [f"2020-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(60)]
    lines = [f"{a},{color},{b},{day},{a - b}" for (a, color, b), day in zip(rows, days)]
    lines[4] = f",red,0.5,{days[4]},0.1"
    Path("train.csv").write_text("\n".join(["a,color,b,day,y", *lines]))
    Path("new.csv").write_text(
        "day,b,color,a\n2020-05-05,0.5,red,1.0\n2020-05-06,0.0,pink,-1.0\n,0.0,,"
    )
    assert main(["fit", "train.csv", "--learner", "table"]) == 0
    model = persistence.load("model.skops")["estimator"]
    assert type(model).__name__ == "TableRegressor"
    assert main(["predict", "model.skops", "new.csv", "--coverage", "0.8"]) == 0
    predicted = [float(row["prediction"]) for row in read_predictions()]
    np.testing.assert_allclose(predicted[:2], [0.5, -1.0], atol=0.3)
    assert np.isfinite(predicted[2])


NAMED = [f"s{i}" for i in RNG.permutation(100)]


def write_named(path, rows, columns):
    lines = [[NAMED[i], *(repr(float(D[i, j])) for j in columns)] for i in rows]
    header = ["", *(NAMED[j] for j in columns)]
    Path(path).write_text("\n".join(",".join(line) for line in [header, *lines]))


@pytest.mark.parametrize("learner", ["krein-ridge", "stack"])
def test_reasons_of_a_matrix_are_those_of_the_matrix_it_was_fitted_on(learner, capsys):
    """In whatever order the rows and columns of the file stand, which a model does not keep."""
    np.savetxt("y.txt", Y[:80], fmt="%d")
    write_named("train.csv", range(80), range(80))
    write_named("new.csv", range(80, 100), range(80))
    write_named("shuffled.csv", RNG.permutation(80), RNG.permutation(80))
    assert main(["fit", "train.csv", "--labels", "y.txt", "--learner", learner]) == 0
    predict = ["predict", "model.skops", "new.csv", "--reasons", "2"]
    capsys.readouterr()
    assert main(predict) == 2
    assert "--train" in capsys.readouterr().err
    assert main([*predict, "--train", "new.csv"]) == 2
    assert "20 rows but the model was fitted on 80 items" in capsys.readouterr().err
    assert not Path("predictions.csv").exists()
    assert main([*predict, "--train", "train.csv"]) == 0
    straight = read_predictions()
    assert main([*predict, "--train", "shuffled.csv"]) == 0
    assert read_predictions() == straight

    stored = persistence.load("model.skops")["estimator"]
    model, rows, train = stored, D[80:, :80], D[:80, :80]
    if learner == "krein-ridge":
        rows, train, model = stored[:-1].transform(rows), stored[:-1].transform(train), stored[-1]
    reasons = model.explain(rows, 2, train=train)
    for i in (0, 7, 19):
        named = [NAMED[item] for item in reasons.items[i] if item >= 0]
        assert named and all(name in straight[i]["reasons"] for name in named)


def test_each_new_item_is_predicted_alone_as_among_others():
    S = 5.0 - D
    np.savez("train.npz", X=S[:80, :80], y=Y[:80])
    assert main(["fit", "train.npz", "--learner", "neighbors"]) == 0
    np.save("all.npy", S[80:, :80])
    assert main(["predict", "model.skops", "all.npy", "--probabilities"]) == 0
    among_others = read_predictions()
    for i in (0, 5, 13):
        np.save("one.npy", S[[80 + i], :80])
        assert main(["predict", "model.skops", "one.npy", "--probabilities"]) == 0
        assert read_predictions() == [among_others[i]]
    best = persistence.load("model.skops")["estimator"]
    shares = best.predict_proba(S[:80, :80].max() - S[80:, :80])
    written = [[float(row[f"probability of {label}"]) for label in (0, 1)] for row in among_others]
    np.testing.assert_allclose(written, shares)


def test_a_directed_matrix_is_averaged_for_learners_that_need_it():
    directed = D + np.triu(RNG.uniform(size=D.shape), 1)
    np.save("new.npy", D[80:, :80])
    outputs = []
    for matrix in (directed, (directed + directed.T) / 2):
        np.savez("train.npz", X=matrix[:80, :80], y=Y[:80])
        assert main(["fit", "train.npz", "--kind", "distance", "--learner", "neighbors"]) == 0
        assert main(["predict", "model.skops", "new.npy", "--probabilities"]) == 0
        outputs.append(read_predictions())
    assert outputs[0] == outputs[1]


def test_groups_are_kept_together_in_the_search_of_fit():
    """Every fourth group has the label of the other side: its own copies would recommend a single neighbor."""
    groups = np.repeat(np.arange(24), 8)
    centers = np.column_stack([np.where(np.arange(24) < 12, 0.0, 9.0), np.arange(24) % 12])
    x = centers[groups] + 1e-3 * RNG.normal(size=(192, 2))
    is_odd = groups % 4 == 1
    y = (groups < 12) ^ is_odd
    lines = [f"{a},{b},{g},{int(label)}" for (a, b), g, label in zip(x, groups, y)]
    Path("train.csv").write_text("\n".join(["a,b,group,label", *lines]))
    chosen = {}
    for option in ("group", "none"):
        assert main(["fit", "train.csv", "--groups", option, "--learner", "neighbors"]) == 0
        best = persistence.load("model.skops")["estimator"]
        chosen[option] = best[-1].n_neighbors
    assert chosen["none"] <= 5 and chosen["group"] >= 15


def test_fit_tells_lab_the_groups(monkeypatch):
    from mercerless.comparison import learners

    heard = []

    class Listening(learners.TableClassifier):
        def fit(self, X, y, sample_weight=None, groups=None):
            heard.append(groups)
            return self

    monkeypatch.setattr(learners, "TableClassifier", Listening)
    monkeypatch.setattr(persistence, "save", lambda model, output: None)
    groups = np.arange(60) % 6
    lines = [f"{a},{b},{g},{int(a > 0)}" for (a, b), g in zip(RNG.normal(size=(60, 2)), groups)]
    Path("train.csv").write_text("\n".join(["a,b,group,label", *lines]))
    assert main(["fit", "train.csv", "--learner", "table"]) == 0
    assert [int(group) for group in heard[0]] == groups.tolist()


def test_a_directed_stack_predicts_with_both_directions(capsys):
    labels = np.arange(100) % 3
    linked = (labels[:, None] + 1) % 3 == labels
    K = (RNG.uniform(size=(100, 100)) < np.where(linked, 0.4, 0.1)).astype(float)
    np.savez("train.npz", K=K[:80, :80], y=labels[:80])
    np.save("new.npy", K[80:, :80])
    np.save("back.npy", K[:80, 80:].T)
    np.save("fewer.npy", K[:80, 85:].T)
    fit = ["fit", "train.npz", "--kind", "similarity", "--learner"]
    assert main([*fit, "directed"]) == 0
    model = persistence.load("model.skops")["estimator"]
    predict = ["predict", "model.skops", "new.npy", "--probabilities"]
    reasons = ["--reasons", "2", "--train", "train.npz"]
    expected = model.predict_proba(K[80:, :80], reverse=K[:80, 80:].T)
    assert main([*predict, "--reverse", "back.npy", *reasons, "--coverage", "0.9"]) == 0
    assert capsys.readouterr().err == ""
    rows = read_predictions()
    written = [[float(row[f"probability of {label}"]) for label in range(3)] for row in rows]
    np.testing.assert_allclose(written, expected)
    # rows with names are matched by these, in whatever order the other file has them
    header = ",".join(["name", *(f"item {i}" for i in range(80))])
    new = [",".join([f"new {i}", *map(str, K[i, :80])]) for i in range(80, 100)]
    back = [",".join([f"new {i}", *map(str, K[:80, i])]) for i in range(80, 100)]
    Path("new.csv").write_text("\n".join([header, *new]))
    Path("back.csv").write_text("\n".join([header, *back[7:], *back[:7]]))
    named = ["predict", "model.skops", "new.csv", "--probabilities", "--reverse", "back.csv"]
    assert main(named) == 0
    written = [
        [float(row[f"probability of {label}"]) for label in range(3)] for row in read_predictions()
    ]
    np.testing.assert_allclose(written, expected)
    explained = model.explain(K[80:, :80], 2, reverse=K[:80, 80:].T, train=K[:80, :80])
    assert all(f"item {item}" in rows[4]["reasons"] for item in explained.items[4] if item >= 0)
    assert main(predict) == 0
    assert capsys.readouterr().err.count("only one direction") == 1
    assert main([*predict, *reasons]) == 2
    assert "--reverse" in capsys.readouterr().err
    assert main([*predict, "--reverse", "fewer.npy"]) == 2
    assert "15 rows; there must be 20" in capsys.readouterr().err
    assert main([*fit, "asymmetric"]) == 0
    assert main([*predict, "--reverse", "back.npy"]) == 2
    assert "takes one direction" in capsys.readouterr().err
