import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from mercerless import AsymmetricRidgeClassifier, SimilarityClassifier, UselessModelWarning
from mercerless.cli import main
from mercerless.commands.inspect import is_classes
from mercerless.comparison.problem import make_problem
from mercerless.spectra import check_kind

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def gram():
    X = np.random.default_rng(0).normal(size=(30, 4))
    return X @ X.T


def lines(capsys):
    """The report as {first words: rest}."""
    out, err = capsys.readouterr()
    assert err == ""
    head, *rest = out.splitlines()
    return {"head": head} | {line[:17].strip(): line[17:] for line in rest}


def test_without_a_file_it_inspects_the_digit_shapes(folder, capsys):
    assert main(["inspect"]) == 0
    report = lines(capsys)
    assert report["head"] == "digit shapes: 400 x 400 distance matrix, 10 classes"
    assert report["symmetric"] == "yes, exactly"
    assert report["definite"] == "no, indefinite"
    assert report["negative mass"].startswith("30.")
    assert (
        report["use next"]
        == 'mercerless.SimilarityClassifier(kernel="precomputed", kind="distance")'
    )
    assert report["picture"] == "mercerless-inspect.png"
    assert [path.name for path in folder.iterdir()] == ["mercerless-inspect.png"]
    assert (folder / "mercerless-inspect.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv"])
def test_positive_semi_definite_matrix_from_every_format(gram, suffix, capsys):
    {
        "npy": np.save,
        "npz": lambda p, K: np.savez(p, K=K),
        "csv": lambda p, K: np.savetxt(p, K, delimiter=","),
    }[suffix](f"gram.{suffix}", gram)
    assert main(["inspect", f"gram.{suffix}", "--output", "out.png"]) == 0
    report = lines(capsys)
    assert report["head"] == f"gram.{suffix}: 30 x 30 similarity matrix"
    assert report["rank"] == "4 of 30"
    assert report["inertia"] == "4 positive, 0 negative, 26 zero eigenvalues"
    assert report["definite"].startswith("yes")
    assert report["use next"] == 'scikit-learn\'s SVC(kernel="precomputed")'


def test_numbers_are_those_of_the_matrix(capsys):
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    K = (Q * [5.0, 3.0, 1.0, 0.0, -1.0, -2.0]) @ Q.T
    np.save("K.npy", (K + K.T) / 2)
    assert main(["inspect", "K.npy"]) == 0
    report = lines(capsys)
    assert report["inertia"] == "3 positive, 2 negative, 1 zero eigenvalues"
    assert report["eigenvalues"] == "from -2 to 5"
    assert report["negative mass"].startswith("25.0 %")


def test_distances_are_centered_first(capsys):
    x = np.random.default_rng(2).normal(size=(20, 3))
    np.save("D.npy", np.linalg.norm(x[:, None] - x[None], axis=2))
    assert main(["inspect", "D.npy"]) == 0
    report = lines(capsys)
    assert "DissimilarityKernel" in report["analyzed as"]
    assert report["inertia"].startswith("3 positive, 0 negative")
    assert main(["inspect", "D.npy", "--kind", "similarity"]) == 0
    assert "analyzed as" not in lines(capsys)


def test_asymmetry_is_named_and_measured(gram, capsys):
    K = gram.copy()
    K[0, 1] += 0.5 * np.abs(gram).max()
    np.save("K.npy", K)
    assert main(["inspect", "K.npy"]) == 0
    report = lines(capsys)
    assert report["symmetric"].startswith("no, max|K - K.T| is 0.5 of max|K|")
    assert "symmetrize" in report["use next"]
    np.save("K.npy", np.triu(gram))
    assert main(["inspect", "K.npy"]) == 0
    assert 'direction="both"' in lines(capsys)["use next"]


def test_asymmetry_of_rounding_in_float32_is_none(gram, capsys):
    K = gram.astype(np.float32)
    K[0, 1] *= 1 + 1e-6
    np.save("K.npy", K)
    assert main(["inspect", "K.npy"]) == 0
    report = lines(capsys)
    assert (
        report["symmetric"].startswith("yes, up to rounding")
        and "symmetrize" not in report["use next"]
    )


def test_labels_from_a_file_and_from_the_npz(gram, folder, capsys):
    (folder / "classes.txt").write_text("\n".join(["a", "b", "c"] * 10))
    np.save("K.npy", gram)
    assert main(["inspect", "K.npy", "--labels", "classes.txt"]) == 0
    assert lines(capsys)["head"].endswith("3 classes")
    np.savez("K.npz", K_train=gram - 3, y=np.linspace(0, 1, 30), other=np.eye(2))
    assert main(["inspect", "K.npz", "--array", "K_train"]) == 0
    report = lines(capsys)
    assert report["head"] == "K_train of K.npz: 30 x 30 similarity matrix, numeric target"
    assert "SimilarityRegressor" in report["use next"]


def test_a_matrix_with_gaps_is_completed_as_by_compare_with_a_note(gram, capsys):
    K = gram.copy()
    K[3, 4] = K[4, 3] = K[7, 9] = K[9, 7] = np.nan
    np.save("gaps.npy", K)
    assert main(["inspect", "gaps.npy"]) == 0
    first, head = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("missing entries: 4 of 900 completed (means of rows and columns")
    assert (
        "known entries that were held out" in first
        and head == "gaps.npy: 30 x 30 similarity matrix"
    )


def bad_inputs(folder, gram):
    np.save("nan.npy", np.where(np.add.outer(np.arange(30), np.arange(30)) % 2, np.nan, gram))
    np.save("wide.npy", gram[:10])
    np.save("one.npy", gram[:1, :1])
    np.save("flat.npy", gram[0])
    np.save("complex.npy", gram * 1j)
    np.save("good.npy", gram)
    np.save("objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    np.savez("several.npz", a=gram, b=gram)
    (folder / "words.csv").write_text("1,2\nx,y\n")
    (folder / "few.txt").write_text("a\nb\n")
    (folder / "empty.csv").write_text("")
    (folder / "folder").mkdir()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nan.npy"], "50 % of the matrix is missing"),
        (["wide.npy"], "square"),
        (["one.npy"], "one row"),
        (["flat.npy"], "1-dimensional"),
        (["complex.npy"], "complex"),
        (["objects.npy"], "pickled"),
        (["several.npz"], "several matrices: a, b"),
        (["several.npz", "--array", "c"], "no array 'c'"),
        (["words.csv"], "line 2"),
        (["empty.csv"], "empty"),
        (["folder"], "folder"),
        (["none.npy"], "no file"),
        (["good.npy", "--labels", "few.txt"], "2 labels for a matrix of 30 rows"),
        (["good.npy", "--labels", "none.txt"], "no file"),
        (["good.npy", "--output", "picture.pdf"], "png"),
        (["good.npy", "--output", "nowhere/picture.png"], "no folder"),
        (["good.npy", "--kind", "distance"], "they must not be negative"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(folder, gram, capsys, arguments, message):
    bad_inputs(folder, gram)
    before = sorted(folder.iterdir())
    assert main(["inspect", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("mercerless inspect: ")
    assert message in err
    assert sorted(folder.iterdir()) == before


def test_an_existing_picture_survives_a_failure(folder, gram, capsys, monkeypatch):
    np.save("good.npy", gram)
    (folder / "out.png").write_bytes(b"old")

    def full_disk(self, path, **_):
        path.write_bytes(PNG)
        raise OSError("No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full_disk)
    assert main(["inspect", "good.npy", "--output", "out.png"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert (folder / "out.png").read_bytes() == b"old"
    assert sorted(path.name for path in folder.iterdir()) == ["good.npy", "out.png"]


def test_memory_that_will_not_fit_is_named(gram, capsys, monkeypatch):
    np.save("good.npy", gram)
    monkeypatch.setattr("mercerless.core.memory.available_memory", lambda: 50_000)
    assert main(["inspect", "good.npy"]) == 2
    assert "30 x 30 matrix needs 28.8 kB but the budget is 25 kB" in capsys.readouterr().err


def test_interrupt_has_its_own_code(gram, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mercerless.commands.inspect.draw", interrupt)
    np.save("good.npy", gram)
    assert main(["inspect", "good.npy"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["numpy", "scipy.linalg", "sklearn.base", "mercerless.comparison"]
)
def test_interrupt_while_importing_is_one_sentence(module):
    code = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background leaves it ignored
from mercerless.cli import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

assert {module!r} not in sys.modules
sys.meta_path.insert(0, Interrupt())
sys.exit(main(["compare"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (
        130,
        "",
        "mercerless compare: interrupted, nothing was written.\n",
    )


def test_installed_command():
    command = [sys.executable, "-m", "mercerless.cli", "inspect", "none.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mercerless inspect: There is no file 'none.npy'; check the path.\n"


@pytest.mark.parametrize(
    "arguments, code", [(["inspect", "--help"], 0), ([], 2), (["nonsense"], 2)]
)
def test_usage_and_help(arguments, code, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == code
    assert "mercerless" in "".join(capsys.readouterr())


def test_guesses():
    assert check_kind(np.array([[0.0, 1.0], [2.0, 0.0]])) == "distance"
    assert check_kind(np.array([[0.0, -1.0], [2.0, 0.0]])) == "similarity"
    assert check_kind(np.eye(2)) == "similarity"
    assert check_kind(np.zeros((2, 2))) == "similarity"
    assert is_classes(np.array(["a", "b"])) and is_classes(np.arange(25) % 5)
    assert is_classes(np.array([1.0, -1.0] * 5))
    assert not is_classes(np.linspace(0, 1, 50)) and not is_classes(np.arange(50))


@pytest.mark.slow
def test_one_rule_for_the_kind(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    soft = D**2 - 1.0 - np.linspace(0, 1, 40) - np.linspace(0, 1, 40)[:, None]
    filled = D + np.diag(np.full(40, D.max()))
    for matrix, kind in (
        (D + 1e-6 * np.eye(40), "distance"),
        (soft, "dissimilarity"),
        (np.exp(-D), "similarity"),
    ):
        np.save("matrix.npy", matrix)
        assert main(["inspect", "matrix.npy"]) == 0
        assert f"{kind} matrix" in capsys.readouterr().out
        assert make_problem(matrix, np.arange(40) % 2).kind == kind
        labels = np.arange(40) % 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UselessModelWarning)
            assert SimilarityClassifier("precomputed").fit(matrix, labels).kind_ == kind
            assert AsymmetricRidgeClassifier("precomputed").fit(matrix, labels).kind_ == kind
            assert (
                SimilarityClassifier("precomputed", direction="both", random_state=0)
                .fit(matrix, labels)
                .kind_
                == kind
            )
    np.save("matrix.npy", filled)
    assert main(["inspect", "matrix.npy"]) != 0
    assert (
        "say which with --kind='similarity', 'distance' or 'dissimilarity'"
        in capsys.readouterr().err
    )
    with pytest.raises(ValueError, match="say which with kind="):
        make_problem(filled, np.arange(40) % 2)
    assert main(["inspect", "matrix.npy", "--kind", "dissimilarity"]) == 0


@pytest.mark.parametrize("labels", [False, True])
def test_a_page_with_a_map_of_the_items(folder, gram, labels, capsys):
    np.savez("data.npz", K=gram, **({"y": np.repeat(["<a>", "b"], 15)} if labels else {}))
    assert main(["inspect", "data.npz", "--array", "K", "--output", "page.html"]) == 0
    assert "page.html" in capsys.readouterr().out
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count("<title>item ") == 30 and "The eigenvalues" in page and "<script" not in page
    assert ("&lt;a&gt;" in page) == labels and "<a>" not in page


def test_a_table_is_no_matrix(capsys):
    pytest.importorskip("pandas")
    Path("t.csv").write_text("a,b,y\n" + "1,red,no\n2,blue,yes\n" * 9)
    assert main(["inspect", "t.csv"]) == 2
    sentence = (
        "is a table of 18 rows and 2 columns, not a square matrix; 'mercerless compare' takes"
    )
    assert sentence in capsys.readouterr().err
