"""The commands, as a user calls them."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz
from scipy.spatial.distance import cdist

pd = pytest.importorskip("pandas")

from mercerless import persistence
from mercerless.cli import main

RNG = np.random.default_rng(2)
N = 80
X = RNG.normal(size=(N, 3)).round(3)
Y = np.where(X[:, 0] > 0, "left", "right")
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1)).round(6)
IDS = [f"i{k}" for k in range(N)]
WORDS = ["".join(RNG.choice(list("AC"), 6)) + ("GGGG" if y == "left" else "TTTT") for y in Y]
TABLE = pd.DataFrame(X, columns=list("abc")).assign(city=RNG.choice(["Bonn", "Ulm"], N), target=Y)
FAST = ["--repeats", "1", "--no-curves", "--no-searches", "--jobs", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    TABLE.to_csv("t.csv", index=False)
    TABLE.drop(columns="target").head(7).to_csv("new.csv", index=False)
    pd.DataFrame({"id": IDS, "y": Y}).to_csv("y.csv", index=False)
    return tmp_path


def run(*words):
    return main([str(word) for word in words])


def test_compare_writes_a_page(folder, capsys):
    assert (
        run("compare", "t.csv", "--labels", "target", "--learners", "linear,neighbors", *FAST) == 0
    )
    out = capsys.readouterr().out
    assert "t.csv: table, 80 items, 4 columns, 2 classes" in out
    assert "linear model" in out.lower()
    assert "linear" in (folder / "mercerless-compare.html").read_text().lower()


def test_without_a_file_the_demo_runs(folder, capsys):
    assert run("compare", "--learners", "neighbors", "-o", "demo.html", *FAST) == 0
    assert "digit shapes" in (folder / "demo.html").read_text()


@pytest.mark.parametrize(
    "learner", [pytest.param("table", marks=pytest.mark.slow), "linear", "boosting"]
)
def test_fit_and_predict_a_table(learner):
    assert run("fit", "t.csv", "--labels", "target", "--learner", learner) == 0
    options = ["--probabilities", *(["--coverage", "0.9"] if learner == "table" else [])]
    assert run("predict", "model.skops", "new.csv", *options) == 0
    out = pd.read_csv("predictions.csv")
    assert (out["prediction"] == Y[:7]).mean() > 0.7
    np.testing.assert_allclose(
        out[["probability of left", "probability of right"]].sum(axis=1), 1.0
    )
    if learner == "table":
        assert out["set at 0.9"].str.contains("left|right").all()


def test_predictions_do_not_depend_on_the_order_of_columns_and_rows():
    run("fit", "t.csv", "--labels", "target", "--learner", "linear")
    run("predict", "model.skops", "new.csv", "--probabilities")
    expected = pd.read_csv("predictions.csv")
    TABLE.head(7).iloc[::-1, ::-1].to_csv("other.csv", index=False)
    run("predict", "model.skops", "other.csv", "--probabilities")
    pd.testing.assert_frame_equal(
        pd.read_csv("predictions.csv").iloc[::-1].reset_index(drop=True), expected
    )


def predictions(new, *options):
    """What the model file says about new items."""
    assert run("predict", "model.skops", new, "--probabilities", *options) == 0
    return pd.read_csv("predictions.csv")


def test_new_rows_are_read_with_the_saved_decisions(capsys):
    run("fit", "t.csv", "--labels", "target", "--learner", "linear")
    expected = predictions("new.csv")
    named = TABLE.set_index(pd.Index(IDS, name="id"))
    named.to_csv("t.csv", sep=";", decimal=",")
    new = named.drop(columns="target").iloc[:7, ::-1]
    new.to_csv("new.csv", sep=";", decimal=",")
    run("fit", "t.csv", "--labels", "target", "--sep", ";", "--decimal", ",", "--learner", "linear")
    actual = predictions("new.csv")
    assert actual.pop("id").tolist() == IDS[:7]
    pd.testing.assert_frame_equal(actual, expected[actual.columns])
    new.drop(columns="a").to_csv("new.csv", sep=";", decimal=",")
    assert run("predict", "model.skops", "new.csv") == 2
    assert "no column 'a'" in capsys.readouterr().err


def test_new_comparisons_are_matched_by_name_or_counted(capsys):
    pd.DataFrame(D, IDS, IDS).to_csv("D.csv")
    run("fit", "D.csv", "--labels", "y.csv", "--learner", "neighbors")
    new = pd.DataFrame(D[:5], IDS[:5], IDS)
    new.to_csv("new.csv")
    expected = predictions("new.csv")
    assert expected["id"].tolist() == IDS[:5]
    new.sample(frac=1, axis=1, random_state=0).to_csv("new.csv")
    pd.testing.assert_frame_equal(predictions("new.csv"), expected)
    pd.DataFrame(D).to_csv("D.csv", header=False, index=False)
    pd.DataFrame({"y": Y}).to_csv("y.csv", index=False)
    run("fit", "D.csv", "--labels", "y.csv", "--learner", "neighbors")
    pd.DataFrame(D[:, :5]).to_csv("new.csv", header=False, index=False)
    assert run("predict", "model.skops", "new.csv") == 2
    assert "transpose it" in capsys.readouterr().err


def test_new_hits_are_rows_against_the_training_items(folder):
    """Twelve columns of a search; in another order they are the same hits."""
    pairs = [(i, j) for i in range(N) for j in range(N) if D[i, j] < 2.0]
    between = "\t90.0\t9\t1\t0\t1\t9\t1\t9\t1e-5\t"
    hits = [f"{IDS[i]}\t{IDS[j]}{between}{2.5 - D[i, j]:.6f}" for i, j in pairs]
    (folder / "h.m8").write_text("\n".join(hits))
    run("fit", "h.m8", "--labels", "y.csv", "--learner", "hits")
    expected = predictions("h.m8").set_index("id")
    assert sorted(expected.index) == sorted(IDS)
    assert (expected.loc[IDS, "prediction"] == Y).mean() > 0.8
    (folder / "other.m8").write_text("\n".join(hits[::-1]))
    pd.testing.assert_frame_equal(
        predictions("other.m8").set_index("id").loc[IDS], expected.loc[IDS]
    )


@pytest.mark.parametrize(
    "learner", ["similarity", "neighbors", "svm-clip", "krein-svm", "features"]
)
def test_fit_and_predict_a_matrix(learner):
    pd.DataFrame(D, IDS, IDS).to_csv("D.csv")
    assert run("fit", "D.csv", "--labels", "y.csv", "--learner", learner) == 0
    pd.DataFrame(D[:5], columns=IDS).sample(frac=1, axis=1, random_state=0).to_csv(
        "new.csv", index=False
    )
    assert run("predict", "model.skops", "new.csv") == 0
    assert (pd.read_csv("predictions.csv")["prediction"] == Y[:5]).mean() > 0.7


@pytest.mark.parametrize("learner", ["similarity", "neighbors"])
def test_fit_and_predict_strings(learner, folder):
    pytest.importorskip("rapidfuzz")
    (folder / "s.fasta").write_text("".join(f">{i}\n{w}\n" for i, w in zip(IDS, WORDS)))
    (folder / "new.fasta").write_text(">one\nACACACGGGG\n>two\nACACACTTTT\n")
    assert run("fit", "s.fasta", "--labels", "y.csv", "--learner", learner) == 0
    assert run("predict", "model.skops", "new.fasta") == 0
    out = pd.read_csv("predictions.csv")
    assert out["id"].tolist() == ["one", "two"]
    assert out["prediction"].tolist() == ["left", "right"]


def test_fit_and_predict_hits():
    near = np.where(D < 2.0, 2.5 - D, 0.0)
    save_npz("h.npz", csr_array(near))
    pd.DataFrame({"y": Y}).to_csv("y.csv", index=False)
    assert run("fit", "h.npz", "--labels", "y.csv", "--learner", "hits") == 0
    save_npz("new.npz", csr_array(near[:6]))
    assert run("predict", "model.skops", "new.npz") == 0
    assert len(pd.read_csv("predictions.csv")) == 6


def test_fit_without_a_learner_compares_first(capsys):
    assert run("fit", "t.csv", "--labels", "target", "--learners", "linear,neighbors", *FAST) == 0
    assert "fitted on 80 items" in capsys.readouterr().out


def test_formulas_are_made_harmless(folder):
    formula = TABLE.assign(target=np.where(Y == "left", "=1+1", "plain"))
    formula.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--labels", "target", "--learner", "linear")
    run("predict", "model.skops", "new.csv")
    assert set(pd.read_csv("predictions.csv")["prediction"]) <= {"'=1+1", "plain"}


def test_a_model_cannot_choose_the_function_that_runs(folder, capsys):
    (folder / "own.py").write_text("def same(a, b):\n    return float(a[-1] == b[-1])\n")
    pd.DataFrame({"w": WORDS, "y": Y}).to_csv("s.csv", index=False)
    options = [
        "--labels",
        "y",
        "--kind",
        "strings",
        "--similarity",
        "own:same",
        "--learner",
        "similarity",
    ]
    assert run("fit", "s.csv", *options) == 0
    pd.DataFrame({"w": WORDS[:3]}).to_csv("new.csv", index=False)
    assert run("predict", "model.skops", "new.csv") == 2
    assert "--similarity own:same" in capsys.readouterr().err
    assert run("predict", "model.skops", "new.csv", "--similarity", "own:same") == 0


@pytest.mark.parametrize("change", [{"format": 99}, {"columns": 3, "n": "x"}, {"kind": None}])
def test_a_forged_description_raises_one_sentence(change, capsys):
    run("fit", "t.csv", "--labels", "target", "--learner", "linear")
    model = persistence.load("model.skops")
    model["description"] = json.dumps(json.loads(model["description"]) | change)
    persistence.save(model, "forged.skops")
    capsys.readouterr()
    assert run("predict", "forged.skops", "new.csv") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_inspect_describes_and_draws(folder, capsys):
    pytest.importorskip("matplotlib")
    pd.DataFrame(D, columns=IDS).assign(label=Y).to_csv("D.csv", index=False)
    assert run("inspect", "D.csv") == 2
    assert "--drop" in capsys.readouterr().err
    assert run("inspect", "D.csv", "--drop", "label") == 0
    out = capsys.readouterr().out
    assert "80 x 80 distance matrix" in out and "SimilarityClassifier" in out
    assert (folder / "mercerless-inspect.png").stat().st_size > 10_000
    run("fit", "t.csv", "--labels", "target", "--learner", "linear")
    assert run("inspect", "model.skops") == 0
    assert "classes" in capsys.readouterr().out


def centered(A):
    J = np.eye(len(A)) - 1.0 / len(A)
    return J @ A @ J


GRAM, RANDOM = (
    np.outer(np.arange(7.0), np.arange(7.0)),
    np.random.default_rng(0).normal(size=(7, 7)),
)
NEXT = 'mercerless.SimilarityClassifier(kernel="precomputed", kind='


@pytest.mark.parametrize(
    "values, kind, similarities, advice",
    [
        (GRAM, "similarity", GRAM, 'sklearn.svm.SVC(kernel="precomputed")'),
        (RANDOM + RANDOM.T, "similarity", RANDOM + RANDOM.T, f'{NEXT}"similarity")'),
        (RANDOM, "similarity", (RANDOM + RANDOM.T) / 2, f'{NEXT}"similarity", direction="both")'),
        (cdist(RANDOM, RANDOM), "distance", centered(RANDOM @ RANDOM.T), f'{NEXT}"distance")'),
    ],
)
def test_inspect_says_what_a_matrix_is(values, kind, similarities, advice, folder, capsys):
    pd.DataFrame(values).to_csv("K.csv", header=False, index=False)
    assert run("inspect", "K.csv", "--kind", kind) == 0
    lines = capsys.readouterr().out.splitlines()
    said = {line[:17].strip(): line[17:] for line in lines[1:]}
    s = np.linalg.eigvalsh(similarities)
    s[np.abs(s) < 1e-9 * np.abs(s).max()] = 0.0
    positive, negative = (s > 0).sum(), (s < 0).sum()
    assert lines[0] == f"K.csv: 7 x 7 {kind} matrix"
    assert said["use next"] == advice
    difference = np.abs(values - values.T).max() / np.abs(values).max()
    wanted = "yes" if difference == 0 else f"no, up to {difference:.2g} of the largest entry"
    assert said["symmetric"] == wanted
    assert said["rank"] == f"{positive + negative} of 7"
    assert said["eigenvalues"].startswith(f"{positive} positive, {negative} negative, ")
    assert said["eigenvalues"].endswith(f" to {s[-1]:.4g}")
    mass = 100 * abs(s[s < 0].sum()) / np.abs(s).sum()
    assert said["negative mass"].startswith(f"{mass:.1f} % ")
    assert said["definite"] == ("no, indefinite" if negative else "yes")


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["compare", "t.csv", "--labels", "target", "--budget", "soon"], "is not a time"),
        (["compare", "t.csv", "--labels", "nose"], "neither a file nor a column"),
        (["compare", "none.csv"], "There is no file 'none.csv'"),
        (["compare", "t.csv", "--labls", "target"], "'--labls' is not understood"),
        (["compare", "--labels", "target"], "The file is missing"),
        (["compare", "."], "is a folder"),
        (["compare", "t.csv", "-o", "page.pdf"], "must have a name that ends in .html"),
        (["compare", "t.csv", "-o", "none/page.html"], "There is no folder"),
        (["compare", "t.csv", "--labels", "target", "--metric", "f1"], "metric 'f1' is not known"),
        (["compare", "t.csv", "--labels", "target", "--learners", "x"], "There is no learner 'x'"),
        (["compare", "t.csv", "--drop", "z", "--labels", "target"], "--drop z"),
        (["predict", "t.csv", "new.csv"], "not a model"),
        (["predict", "t.csv", "new.csv", "--coverage", "2"], "--coverage 2"),
        (["inspect", "t.csv"], "not numbers"),
    ],
)
def test_wrong_input_is_one_sentence(words, sentence, capsys):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert sentence in err and err.count("\n") == 1
