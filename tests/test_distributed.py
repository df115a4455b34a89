"""The same results on a Dask cluster of separate worker processes."""

import os

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

from mercerless import KreinRidge, KreinRidgeClassifier, KreinSVR
from mercerless.kernels import TL1

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

# Dask cleans up processes and sockets late
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
X = np.random.default_rng(0).normal(size=(2000, 4))
y = np.sin(X[:, 0]) + X[:, 1] ** 2


@pytest.fixture(scope="module")
def client():
    """A client of two worker processes with one thread each."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def chunked(array):
    return da.from_array(array, chunks=(300, *array.shape[1:]))


def test_regression_equals_in_memory(client):
    model = KreinRidge(TL1(5.0), landmarks=60, random_state=0)
    expected = model.fit(X, y).predict(X)
    lazy = model.fit(chunked(X), chunked(y)).predict(chunked(X))
    assert isinstance(lazy, da.Array)
    assert_allclose(lazy.compute(), expected, rtol=1e-8)


@pytest.mark.timeout(180)
def test_a_worker_that_dies_during_the_fit_changes_nothing(client, tmp_path):
    """The first block of rows that is read kills its process; Dask gives its work to others."""
    marker = tmp_path / "killed"

    def die_once(block):
        if len(block) and not marker.exists():
            marker.touch()
            os._exit(1)
        return block

    model = KreinRidge(TL1(5.0), landmarks=60, random_state=0)
    expected = model.fit(X, y).predict(X)
    deadly = chunked(X).map_blocks(die_once, dtype=X.dtype, meta=np.empty((0, 0)))
    model.fit(deadly, chunked(y))
    assert marker.exists()
    assert_allclose(model.predict(X), expected, rtol=1e-8)


def test_classification_equals_in_memory(client):
    model = KreinRidgeClassifier(TL1(5.0), landmarks=60, random_state=0)
    expected = model.fit(X, y > 1).predict_proba(X)
    lazy = model.fit(chunked(X), y > 1).predict_proba(chunked(X))
    assert_allclose(lazy.compute(), expected, rtol=1e-8)


def test_what_does_not_work_on_a_cluster_raises():
    with pytest.raises(ValueError, match="in memory"):
        KreinRidge(landmarks=None).fit(chunked(X), y)
    with pytest.raises(TypeError, match="needs its data in memory"):
        KreinSVR().fit(chunked(X), y)
    with pytest.raises(ValueError, match="features"):
        KreinRidge(landmarks=20).fit(X, y).predict(da.zeros((5, 3)))


KERNELS = {"kernel": [TL1(2.0), TL1(4.0)]}
WITH_JOBS = {"search": GridSearchCV(KreinRidgeClassifier(random_state=0), KERNELS, cv=3)}


@pytest.mark.parametrize("name", WITH_JOBS)
def test_joblib_on_the_cluster_equals_sequential(client, name):
    model, rows = WITH_JOBS[name], slice(0, 200)
    expected = model.set_params(n_jobs=None).fit(X[rows], y[rows] > 1).decision_function(X)
    with joblib.parallel_config(backend="dask"):
        actual = model.set_params(n_jobs=-1).fit(X[rows], y[rows] > 1).decision_function(X)
    assert_allclose(actual, expected, rtol=1e-8, atol=1e-12)
