"""The loader of the papers' sets finds, checks and converts them."""

import os
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.utils import Bunch
from test_papers import module

paper_sets = module("paper_sets")
list_datasets, load = paper_sets.list_datasets, paper_sets.load

needs_data = pytest.mark.skipif(
    not os.environ.get("MERCERLESS_DATA"), reason="MERCERLESS_DATA is not set"
)


@pytest.fixture
def empty_places(tmp_path, monkeypatch):
    """No local folder, an empty cache, and no network."""

    def offline(**_):
        raise URLError("no network")

    monkeypatch.delenv("MERCERLESS_DATA", raising=False)
    monkeypatch.setattr(paper_sets, "fetch_openml", offline)
    return tmp_path


def test_table_names_source_license_and_checksum_of_every_set():
    infos = list_datasets()
    assert len(infos) == len({info.name for info in infos}) >= 30
    for info in infos:
        assert info.source and info.license and info.task and len(info.sha256) == 64, info.name
        assert bool(info.openml_id) == bool(info.openml_name)


SMALL = [info for info in list_datasets() if info.name not in ("covtype", "mnist")]


@needs_data
@pytest.mark.parametrize("info", SMALL, ids=lambda info: info.name)
def test_local_files_have_the_shapes_of_the_table(info):
    bunch = load(info.name)
    matrix = bunch.data if info.n_features and "D" not in bunch else bunch.get("K", bunch.get("D"))
    sizes = [int(part) for part in info.n_samples.split("+")]
    assert len(matrix) == len(bunch.target) == sizes[0]
    assert np.isfinite(matrix).all()
    if len(sizes) > 1:
        assert len(bunch.target_test) == sizes[-1]
    assert info.license in bunch.DESCR


def test_damaged_file_raises(empty_places, monkeypatch):
    monkeypatch.setenv("MERCERLESS_DATA", str(empty_places))
    np.savez(empty_places / "yacht.npz", X=np.eye(3), y=np.arange(3))
    with pytest.raises(ValueError, match="sha256"):
        load("yacht")


def test_other_files_of_the_folder_load_by_name(empty_places, monkeypatch):
    monkeypatch.setenv("MERCERLESS_DATA", str(empty_places))
    np.savez(empty_places / "mine.npz", D=np.ones((3, 3)), y=np.arange(3), y_test=[1])
    bunch = load("mine")
    assert set(bunch) == {"D", "target", "target_test", "DESCR"}


def test_pickles_are_not_loaded(empty_places, monkeypatch):
    monkeypatch.setenv("MERCERLESS_DATA", str(empty_places))
    np.savez(empty_places / "mine.npz", D=np.array([{}, 1], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        load("mine")


def test_cache_is_looked_at_second(empty_places):
    (empty_places / "mercerless").mkdir()
    np.savez(empty_places / "mercerless" / "mine.npz", X=np.eye(2))
    np.testing.assert_array_equal(load("mine", data_home=empty_places).data, np.eye(2))


def test_offline_error_lists_every_place(empty_places):
    with pytest.raises(FileNotFoundError) as caught:
        load("sonar", data_home=empty_places)
    message = str(caught.value)
    for part in (
        "$MERCERLESS_DATA (not set)",
        str(Path("mercerless") / "sonar.npz"),
        "OpenML set 40",
        "no network",
    ):
        assert part in message
    with pytest.raises(FileNotFoundError, match="download=False"):
        load("sonar", data_home=empty_places, download=False)
    with pytest.raises(FileNotFoundError, match="yacht") as caught:
        load("yacht", data_home=empty_places)
    assert "OpenML" not in str(caught.value)


def test_unknown_name_suggests_a_known_one(empty_places):
    with pytest.raises(ValueError, match="did you mean sonar"):
        load("sonnar", data_home=empty_places)


def test_wine_needs_neither_file_nor_network(empty_places):
    assert load("wine", data_home=empty_places).data.shape == (178, 13)


def _openml(name, X, y):
    return Bunch(data=X, target=y, details={"name": name})


@pytest.mark.slow
def test_openml_answer_is_converted_and_checked():
    info = {info.name: info for info in list_datasets()}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(699, 9))
    X[:16, 5] = np.nan  # rows with missing values are dropped, as in the local file
    y = rng.permutation(np.array(["benign", "malignant"] * 349 + ["benign"], dtype=object))
    bunch = paper_sets._convert_openml(_openml("breast-w", X, y), info["breastcancer"])
    np.testing.assert_array_equal(bunch.data, X[16:])
    np.testing.assert_array_equal(bunch.target, np.where(y[16:] == "malignant", 1, -1))
    mnist = _openml(
        "mnist_784", np.zeros((70_000, 784), dtype=np.uint8), np.full(70_000, "3", dtype=object)
    )
    bunch = paper_sets._convert_openml(mnist, info["mnist"])
    assert bunch.data_test.shape == (10_000, 784) and bunch.target.dtype.kind == "i"
    with pytest.raises(ValueError, match="is 'iris', not 'sonar'"):
        paper_sets._convert_openml(_openml("iris", X, y), info["sonar"])
    with pytest.raises(ValueError, match="changed there"):
        paper_sets._convert_openml(_openml("sonar", X, y), info["sonar"])
