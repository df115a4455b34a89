"""Models in files: they predict the same, and a file from elsewhere executes nothing."""

import json
import os
import pickle
import sys
import types
import warnings
import zipfile
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

pytest.importorskip("skops")

pd = pytest.importorskip("pandas")

import mercerless
from mercerless import (
    KreinRidge,
    KreinSVC,
    SimilarityClassifier,
    SimilarityFeatures,
    SimilaritySVC,
    cli,
    config_context,
    persistence,
)
from mercerless.comparison.learners import select_learners, view
from mercerless.comparison.problem import make_problem
from mercerless.datasets import load_digit_shapes
from mercerless.kernels import PairFunction

pytestmark = pytest.mark.slow

SHAPES = load_digit_shapes(80)
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(60, 3))
DIRECTED = SHAPES.D + np.triu(RNG.uniform(size=SHAPES.D.shape), 1)
PROBLEMS = {
    "distance": make_problem(SHAPES.D, SHAPES.target > 4),
    "distance, numbers": make_problem(SHAPES.D, SHAPES.images.mean(axis=(1, 2))),
    "dissimilarity": make_problem(SHAPES.D**2 - 1.0, SHAPES.target > 4),
    "directed": make_problem(DIRECTED, SHAPES.target > 4, kind="distance"),
    "table": make_problem(TABLE, (TABLE[:, 0] > 0).astype(int)),
    "table, numbers": make_problem(TABLE, TABLE[:, 0] + TABLE[:, 1] ** 2),
}


@pytest.mark.parametrize("which", PROBLEMS)
def test_every_learner_comes_back_from_a_file_and_predicts_the_same(which, tmp_path):
    problem = PROBLEMS[which]
    path = tmp_path / "model.skops"
    for learner in select_learners(problem):
        if learner.name in ("lightgbm", "catboost"):
            continue  # their own formats
        X = view(problem, learner.takes)
        model = learner.make(problem)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is tested here is the file
            model.fit(X, problem.y)
            expected = model.predict(X)
            persistence.save(model, path)
            predicted = persistence.load(path).predict(X)
        np.testing.assert_array_equal(predicted, expected, err_msg=learner.name)


def test_boosted_trees_on_categories_come_back_and_a_partial_is_as_good_as_its_function(tmp_path):
    from skops import io

    path = tmp_path / "model.skops"
    X = np.column_stack([RNG.integers(0, 4, 60), TABLE])
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0]).fit(X, X[:, 0] > 1)
    persistence.save(model, path)
    np.testing.assert_array_equal(persistence.load(path).predict(X), model.predict(X))
    model.surprise = partial(os.system, "true")
    io.dump(model, path)
    with pytest.raises(ValueError, match=r"asks for 'posix\.system'"):
        persistence.load(path)


def test_models_of_several_similarities_come_back(tmp_path):
    path, D, y = tmp_path / "model.skops", SHAPES.D, SHAPES.target > 4
    several = {"shapes": D, "roots": np.sqrt(D)}
    automatic = SimilarityClassifier("precomputed", random_state=0)
    model = automatic.fit(several, y)
    persistence.save(model, path)
    again = persistence.load(path)
    np.testing.assert_array_equal(again.predict_proba(several), model.predict_proba(several))


class Attack:
    """Would make a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_a_pickle_raises_and_not_executed(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(pickle.dumps(Attack(str(tmp_path / "made"))))
    with pytest.raises(ValueError, match="not a model that mercerless saved"):
        persistence.load(path)
    assert not (tmp_path / "made").exists()


def test_a_foreign_type_raises_and_not_made(tmp_path):
    from skops import io

    path = tmp_path / "model.skops"
    model = Ridge()
    model.surprise = os.system  # a function that the file asks to be trusted with
    io.dump(model, path)
    with pytest.raises(
        ValueError, match=r"asks for 'posix\.system', which no mercerless model needs"
    ):
        persistence.load(path)


@pytest.mark.parametrize(
    "name",
    [
        "mercerless.cli.main",
        "mercerless.krein.ridge.np",
        "mercerless.estimators.os.system",
        "mercerless.comparison.store.Store",
        "os.system",
        "builtins.eval",
        "mercerlessevil.Thing",
    ],
)
def test_only_classes_of_models_are_trusted(name):
    assert not persistence._is_trusted(name)


@pytest.mark.parametrize(
    "name",
    [
        "mercerless_evil",
        "mercerless.spectra_evil",
        "mercerless.estimators_evil",
        "estimators.krein",
    ],
)
def test_a_module_with_a_name_like_ours_is_neither_trusted_nor_imported(
    name, tmp_path, monkeypatch
):
    module = types.ModuleType(name)
    module.KreinRidge = type("KreinRidge", (), {"__module__": name})
    monkeypatch.setitem(sys.modules, name, module)  # it could be imported
    imported = []
    monkeypatch.setattr(
        persistence, "import_module", lambda name: imported.append(name) or sys.modules[name]
    )
    assert not persistence._is_trusted(f"{name}.KreinRidge")
    assert not imported
    assert persistence._is_trusted("mercerless.lowrank.Landmarks")
    assert imported == ["mercerless.lowrank"]


def test_a_class_that_a_module_of_ours_only_imports_is_not_trusted():
    assert not persistence._is_trusted("mercerless.krein.selection.BaseEstimator")
    assert not persistence._is_trusted("mercerless.core.estimator.Parallel")
    assert not persistence._is_trusted("mercerless.core.estimator.run_tasks")  # no class
    assert not persistence._is_trusted("mercerless.estimators.nowhere.Thing")


def test_one_trusted_name_trusts_no_part_of_it(tmp_path):
    path = tmp_path / "model.skops"
    persistence.save(KreinSVC(shared).fit(WORDS, [0, 0, 1, 1, 2, 2]), path)
    name = f"{shared.__module__}.shared"
    assert isinstance(persistence.load(path, trusted=name), KreinSVC)
    with pytest.raises(ValueError, match="asks for"):
        persistence.load(path, trusted=f"{name}_letters")


def test_a_file_that_cannot_be_replaced_is_one_sentence_and_the_old_one_stays(tmp_path):
    path = tmp_path / "model.skops"
    persistence.save({"a": 1}, path)
    with pytest.raises(ValueError, match="holds the function"):
        persistence.save({"a": lambda: 1}, path)
    assert persistence.load(path) == {"a": 1}
    with pytest.raises(OSError, match="Cannot write"):
        persistence.save({"a": 1}, tmp_path / "nowhere" / "model.skops")
    assert [each.name for each in tmp_path.iterdir()] == ["model.skops"]


def test_nothing_is_left_behind_when_saving_fails(tmp_path):
    with pytest.raises(ValueError, match="cannot be saved"):
        persistence.save({("a", "tuple"): 1}, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        persistence.load(tmp_path / "nothing.skops")


def shared(a, b):
    return len(set(a) & set(b)) / len(set(a) | set(b))


WORDS = ["kernel", "colonel", "mercer", "merciless", "space", "spice"]


def test_a_model_with_a_function_of_a_module_comes_back_when_the_function_is_trusted(tmp_path):
    path = tmp_path / "model.skops"
    for model in (
        KreinSVC(shared),
        SimilarityFeatures(PairFunction(shared)),
        SimilaritySVC(shared),
    ):
        model.fit(WORDS, [0, 0, 1, 1, 2, 2])
        persistence.save(model, path)
        name = f"{shared.__module__}.shared"
        with pytest.raises(ValueError, match=rf"asks for '{name}'.*trusted=\['{name}'\]"):
            persistence.load(path)
        loaded = persistence.load(path, trusted=[name])
        method = "predict" if hasattr(model, "predict") else "transform"
        np.testing.assert_array_equal(getattr(loaded, method)(WORDS), getattr(model, method)(WORDS))
        with pytest.raises(ValueError, match="asks for"):
            persistence.load(path, trusted=["another.function"])


def test_a_function_without_a_name_to_find_it_by_raises_when_saving(tmp_path):
    def local(a, b):
        return shared(a, b)

    def namesake(a, b):
        return -shared(a, b)

    namesake.__name__ = "shared"  # the module has another function of this name
    for function in (lambda a, b: shared(a, b), local, namesake, partial(local)):
        model = KreinSVC(function).fit(WORDS, [0, 0, 1, 1, 2, 2])
        with pytest.raises(ValueError, match=r"holds the function .*at the top of a module"):
            persistence.save(model, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------- what a file says


def test_a_file_says_what_its_model_is_and_expects(tmp_path):
    shapes = load_digit_shapes()
    names = [f"item {k}" for k in range(60)]
    D = pd.DataFrame(shapes.D[:60, :60], index=names, columns=names)
    model = SimilarityClassifier("precomputed", random_state=0).fit(D, shapes.target[:60])
    path = tmp_path / "model.skops"
    persistence.save(model, path)
    about = persistence.describe(path)
    assert about["model"].startswith("SimilarityClassifier(kernel='precomputed'")
    assert about["versions"]["numpy"] == np.__version__
    assert about["versions"]["mercerless"] == mercerless.__version__
    assert about["input"]["names"] == names
    assert about["input"]["columns"] == 60
    assert about["input"]["classes"] == model.classes_.tolist()
    np.testing.assert_array_equal(persistence.load(path).predict(D), model.predict(D))


def rewritten(path, **versions):
    """The file as if saved with other versions."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    about = json.loads(parts["about.json"])
    about["versions"] |= versions
    parts["about.json"] = json.dumps(about)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


@pytest.mark.parametrize(
    "versions, warns",
    [
        ({"scikit-learn": "0.24.2"}, True),
        ({"mercerless": "99.1.0"}, True),
        ({"numpy": "1.26.4"}, True),
        ({"numpy": np.__version__.split(".")[0] + ".0.0"}, False),
        ({"python": "3.1"}, False),
    ],
)
def test_loading_warns_of_other_versions(tmp_path, versions, warns):
    path = tmp_path / "model.skops"
    persistence.save(KreinRidge().fit(np.eye(6), np.arange(6.0)), path)
    rewritten(path, **versions)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert persistence.load(path).predict(np.eye(6)).shape == (6,)
    messages = [str(each.message) for each in caught]
    assert any("was saved with" in message for message in messages) == warns


def test_files_that_say_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match="check the path"):
        persistence.describe(tmp_path / "none.skops")
    path = tmp_path / "model.skops"
    path.write_text("no archive")
    with pytest.raises(ValueError, match="does not describe its model"):
        persistence.describe(path)


def test_inspect_prints_a_model_without_loading_it(tmp_path, capsys, monkeypatch):
    path = tmp_path / "model.skops"
    persistence.save(KreinRidge().fit(np.eye(6), np.arange(6.0)), path)
    monkeypatch.setattr(persistence, "check_installed", lambda: pytest.fail("it was loaded"))
    cli.main(["inspect", str(path)])
    out = capsys.readouterr().out
    assert "model            KreinRidge(" in out
    assert "columns          6" in out
    assert f"numpy            {np.__version__}" in out


def test_a_file_decides_neither_folders_nor_processes(tmp_path):
    model = SimilarityFeatures(PairFunction(shared, n_jobs=2)).fit(WORDS)
    pipeline = make_pipeline(model, Ridge(), memory=str(tmp_path / "somewhere"))
    pipeline.extra_ = [{"deep": PairFunction(shared, n_jobs=7)}]
    persistence.save(pipeline, tmp_path / "model.skops")
    loaded = persistence.load(tmp_path / "model.skops", trusted=f"{shared.__module__}.shared")
    assert loaded.memory is None
    assert loaded[0].kernel.n_jobs is None
    assert loaded.extra_[0]["deep"].n_jobs is None


def test_a_file_larger_than_the_memory_is_not_opened(tmp_path):
    path = tmp_path / "model.skops"
    persistence.save({"zeros": np.zeros(4_000_000)}, path)
    with zipfile.ZipFile(path) as file:
        packed = {each.filename: file.read(each) for each in file.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in packed.items():
            file.writestr(name, content)
    assert path.stat().st_size < 100_000
    with config_context(memory_limit="10MB"), pytest.raises(MemoryError, match="raise the limit"):
        persistence.load(path)
    assert persistence.load(path)["zeros"].shape == (4_000_000,)
