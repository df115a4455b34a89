import os
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from oracles import datasets as oracle
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from sklearn.utils import Bunch

from mercerless import datasets
from mercerless.datasets import (
    list_datasets,
    load,
    load_digit_shapes,
    make_balls3d,
    make_clowns,
    make_lab_function,
)

needs_data = pytest.mark.skipif(
    not os.environ.get("MERCERLESS_DATA"), reason="MERCERLESS_DATA is not set"
)


# ------------------------------------------------------------------------------------------------ digit shapes


@pytest.fixture(scope="module")
def shapes():
    bunch = load_digit_shapes()
    for array in (bunch.D, bunch.K, bunch.target, bunch.images):
        array.setflags(write=False)
    return bunch


def test_digit_distances_equal_the_definition(shapes):
    points = [oracle.dark_pixels(image.tolist(), 8.0) for image in shapes.images[:12]]
    naive = [[oracle.modified_hausdorff(A, B) for B in points] for A in points]
    np.testing.assert_allclose(shapes.D[:12, :12], naive, rtol=1e-12, atol=1e-12)


def test_digit_distances_are_not_a_metric_and_indefinite(shapes):
    D, K = shapes.D, shapes.K
    assert (
        D.shape == (400, 400)
        and np.array_equal(D, D.T)
        and not np.diagonal(D).any()
        and D.min() >= 0
    )
    assert any((D[i] + D[i, j] < D[j] - 1e-9).any() for i in range(20) for j in range(20))
    values = np.linalg.eigvalsh(K)
    assert -values[values < 0].sum() / np.abs(values).sum() > 0.25
    np.testing.assert_allclose(np.diagonal(K)[:, None] + np.diagonal(K) - 2 * K, D**2, atol=1e-10)
    assert np.abs(K.sum(axis=0)).max() < 1e-9


def test_digit_shapes_know_their_digits(shapes):
    D = shapes.D + np.diag(np.full(len(shapes.D), np.inf))
    assert np.mean(shapes.target[D.argmin(axis=1)] == shapes.target) > 0.9
    assert np.unique(shapes.target, return_counts=True)[1].min() >= 35


def test_digit_shapes_are_the_same_each_time_and_independent_of_size(shapes):
    again = load_digit_shapes(50)
    np.testing.assert_array_equal(again.D, shapes.D[:50, :50])
    again.D[:] = 0  # a caller's own copy
    assert load_digit_shapes(50).D.any()


@pytest.mark.parametrize("arguments", [{"n_samples": 0}, {"n_samples": 1798}, {"threshold": 17.0}])
def test_digit_shapes_refuse(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        load_digit_shapes(**arguments)


# -------------------------------------------------------------------------------------------------- generators


@pytest.mark.parametrize(
    "name, n_features, half_width", [("f1", 2, 2.0), ("f2", 6, 1.0), ("f3", 4, 0.25)]
)
def test_lab_functions(name, n_features, half_width):
    X, y = make_lab_function(400, function=name, random_state=0)
    assert X.shape == (400, n_features)
    assert 0.95 * half_width < np.abs(X).max() <= half_width
    np.testing.assert_allclose(y, [oracle.lab_function(name, x) for x in X.tolist()], rtol=1e-12)


def test_lab_noise_is_a_share_of_the_variance():
    _, clean = make_lab_function(20_000, random_state=0)
    _, noisy = make_lab_function(20_000, noise=0.3, random_state=0)
    np.testing.assert_allclose((noisy - clean).var() / clean.var(), 0.3, rtol=0.05)


def test_clowns_are_a_parabola_with_a_blob_in_its_cup():
    X, y = make_clowns(20_001, spread=0.5, random_state=0)
    assert (y == 1).sum() == 10_001 and (y == -1).sum() == 10_000
    np.testing.assert_allclose([X.mean(axis=0), X.std(axis=0)], [[0, 0], [1, 1]], atol=1e-10)
    parabola, blob = X[y == -1], X[y == 1]
    # the vertical coordinate is a + b u^2 on the parabola, u uniform: curvature clearly positive
    curvature, slope, _ = np.polyfit(parabola[:, 0], parabola[:, 1], 2)
    assert curvature > 0.5 and abs(slope) < 0.05
    assert abs(blob[:, 0].mean()) < 0.05
    assert blob[:, 1].mean() > np.polyval([curvature, slope, _], 0.0) + 1.0


def test_balls_touch_nowhere_and_the_negative_spectrum_helps():
    D, y = make_balls3d(200, random_state=0)
    off = ~np.eye(200, dtype=bool)
    assert np.array_equal(D, D.T) and not np.diagonal(D).any() and D[off].min() > 0
    H = np.eye(200) - 1 / 200
    values, vectors = np.linalg.eigh(-0.5 * H @ D**2 @ H)
    assert 0.05 < -values[values < 0].sum() / np.abs(values).sum() < 0.2
    svc = SVC(kernel="precomputed", C=1e4)
    clip, flip = (
        cross_val_score(svc, (vectors * spectrum) @ vectors.T, y, cv=10).mean()
        for spectrum in (np.maximum(values, 0), np.abs(values))
    )
    assert flip > clip + 0.02 and flip > 0.95


def test_balls_refuse():
    with pytest.raises(ValueError, match="do not fit"):
        make_balls3d(100, radii=(0.3, 0.3), random_state=0)
    with pytest.raises(ValueError, match="radii"):
        make_balls3d(10, radii=(0.0, 0.1))


GENERATORS = [make_balls3d, make_clowns, make_lab_function]


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_repeat_with_a_seed(make):
    extra = {"noise": 0.1} if make is make_lab_function else {}
    first, second = make(40, random_state=7, **extra), make(40, random_state=7, **extra)
    other = make(40, random_state=8, **extra)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert not (np.array_equal(first[0], other[0]) and np.array_equal(first[1], other[1]))


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_refuse_no_samples(make):
    with pytest.raises(ValueError, match="n_samples must be at least"):
        make(0)


def test_generators_refuse_bad_arguments():
    with pytest.raises(ValueError, match="function must be one of f1, f2, f3"):
        make_lab_function(function="f4")
    with pytest.raises(ValueError, match="noise"):
        make_lab_function(noise=-1.0)


# ------------------------------------------------------------------------------------------------------ loader


@pytest.fixture
def empty_places(tmp_path, monkeypatch):
    """No local folder, an empty cache, and no network."""

    def offline(**_):
        raise URLError("no network")

    monkeypatch.delenv("MERCERLESS_DATA", raising=False)
    monkeypatch.setattr(datasets, "fetch_openml", offline)
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


def test_damaged_file_is_refused(empty_places, monkeypatch):
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
    bunch = datasets._convert_openml(_openml("breast-w", X, y), info["breastcancer"])
    np.testing.assert_array_equal(bunch.data, X[16:])
    np.testing.assert_array_equal(bunch.target, np.where(y[16:] == "malignant", 1, -1))
    mnist = _openml(
        "mnist_784", np.zeros((70_000, 784), dtype=np.uint8), np.full(70_000, "3", dtype=object)
    )
    bunch = datasets._convert_openml(mnist, info["mnist"])
    assert bunch.data_test.shape == (10_000, 784) and bunch.target.dtype.kind == "i"
    with pytest.raises(ValueError, match="is 'iris', not 'sonar'"):
        datasets._convert_openml(_openml("iris", X, y), info["sonar"])
    with pytest.raises(ValueError, match="changed there"):
        datasets._convert_openml(_openml("sonar", X, y), info["sonar"])
