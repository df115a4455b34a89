"""On a real Dask cluster of separate worker processes: the same results, and worker deaths survived or named."""

import operator
import os
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercerless import KreinRidge, KreinRidgeClassifier, KreinSVR
from mercerless._blocks import reduce_rows
from mercerless.kernels import TL1

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

# Dask's own clean-up of processes and sockets speaks up late; none of it is ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    """Two single-threaded worker processes, restarted by their nannies when they die."""
    settings = {"distributed.scheduler.allowed-failures": 1}  # a task may cost two workers, not four
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GiB"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def slow_sum(X):
    time.sleep(0.05)
    return X.sum(axis=0)


def sum_or_die(X, flag):
    """Kills the worker process the first time that any worker comes here."""
    if not os.path.exists(flag):
        with open(flag, "w"):
            pass
        os._exit(1)
    return X.sum(axis=0)


def always_die(X):
    os._exit(1)


def pids(client):
    return sorted(client.run(os.getpid).values())


def test_sums_do_not_depend_on_workers(client):
    X = np.random.default_rng(0).normal(size=(4000, 5))
    lazy = da.from_array(X, chunks=(250, 5))
    here = reduce_rows(lambda b: b.T @ b, operator.add, (X,), 40.0)
    there = reduce_rows(lambda b: b.T @ b, operator.add, (lazy,), 40.0)
    assert_allclose(there, here, rtol=1e-12)


def test_a_killed_worker_is_replaced_and_nothing_is_lost(client, tmp_path):
    from functools import partial

    X = np.random.default_rng(0).normal(size=(4000, 5))
    before = pids(client)
    flag = str(tmp_path / "died")
    total = reduce_rows(partial(sum_or_die, flag=flag), operator.add, (da.from_array(X, chunks=(250, 5)),), 40.0)
    assert os.path.exists(flag)
    assert_allclose(total, X.sum(axis=0), rtol=1e-10)
    client.wait_for_workers(2)
    assert pids(client) != before


def test_a_task_that_kills_every_worker_is_named(client):
    X = da.zeros((10, 2), chunks=(10, 2))
    with pytest.raises(distributed.KilledWorker):
        reduce_rows(always_die, operator.add, (X,), 16.0)
    client.wait_for_workers(2)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=2000)


class TestKreinOnDask:
    def model(self, kind):
        return kind(TL1(5.0), solver="nystroem", n_landmarks=60)

    def test_regression_equals_in_memory(self, client, problem):
        X, y = problem
        here = self.model(KreinRidge).fit(X, y)
        there = self.model(KreinRidge).fit(da.from_array(X, chunks=(300, 2)), da.from_array(y, chunks=450))
        lazy = there.predict(da.from_array(X, chunks=(300, 4)))
        assert isinstance(lazy, da.Array)
        assert_allclose(lazy.compute(), here.predict(X), rtol=1e-8)

    def test_classification_equals_in_memory(self, client, problem):
        X, y = problem[0], problem[1] > 1
        here = self.model(KreinRidgeClassifier).fit(X, y)
        lazy = da.from_array(X, chunks=(300, 4))
        there = self.model(KreinRidgeClassifier).fit(lazy, y)
        assert_allclose(there.predict_proba(lazy).compute(), here.predict_proba(X), rtol=1e-8)

    def test_memory_map_equals_in_memory(self, problem, tmp_path):
        X, y = problem
        np.save(tmp_path / "X.npy", X)
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        expected = self.model(KreinRidge).fit(X, y).predict(X)
        assert_allclose(self.model(KreinRidge).fit(mapped, y).predict(mapped), expected, rtol=1e-10)

    def test_exact_solver_asks_for_memory(self, problem):
        X, y = problem
        with pytest.raises(ValueError, match="in memory"):
            KreinRidge(solver="exact").fit(da.from_array(X), y)
        with pytest.raises(TypeError, match="needs its data in memory"):
            KreinSVR().fit(da.from_array(X), y)

    def test_new_rows_must_match(self, problem):
        X, y = problem
        model = self.model(KreinRidge).fit(X, y)
        with pytest.raises(ValueError, match="features"):
            model.predict(da.zeros((5, 3)))
