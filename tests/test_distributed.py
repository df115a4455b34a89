"""On a real Dask cluster of separate worker processes: the same results, and faults survived or named."""

import json
import operator
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV

from mercerless import (
    DANKClassifier,
    HyperRidge,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVR,
    SimilarityClassifier,
    SimilaritySVC,
)
from mercerless.core.blocks import reduce_rows
from mercerless.kernels import TL1, Gaussian, GaussianHyper

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

# Dask's own clean-up of processes and sockets speaks up late; none of it is ours.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@contextmanager
def local_cluster(memory_limit):
    """Two single-threaded worker processes, restarted by their nannies when they die."""
    # a task may cost two workers, not four
    settings = {"distributed.scheduler.allowed-failures": 1}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=memory_limit,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(None) as cluster:
        yield cluster


@pytest.fixture
def small_workers():
    """A client of workers with little memory, of its own: Dask does not always replace one that outgrew its limit."""
    with local_cluster("700MiB") as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
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


def fill_memory(X, flag=None):
    """Takes memory until the nanny ends the worker; with a flag only the first time that any worker comes here."""
    if flag is None or not os.path.exists(flag):
        if flag is not None:
            with open(flag, "w"):
                pass
        held = []
        while True:
            held.append(np.ones(4_000_000))
            time.sleep(0.01)
    return X.sum(axis=0)


def pids(client):
    return sorted(client.run(os.getpid).values())


def test_sums_do_not_depend_on_workers(client):
    X = np.random.default_rng(0).normal(size=(4000, 5))
    lazy = da.from_array(X, chunks=(250, 5))
    here = reduce_rows(lambda b: b.T @ b, operator.add, (X,), 40.0)
    there = reduce_rows(lambda b: b.T @ b, operator.add, (lazy,), 40.0)
    assert_allclose(there, here, rtol=1e-12)


def test_a_killed_worker_is_replaced_and_nothing_is_lost(client, tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 5))
    before = pids(client)
    flag = str(tmp_path / "died")
    total = reduce_rows(
        partial(sum_or_die, flag=flag), operator.add, (da.from_array(X, chunks=(250, 5)),), 40.0
    )
    assert os.path.exists(flag)
    assert_allclose(total, X.sum(axis=0), rtol=1e-10)
    client.wait_for_workers(2, timeout=60)
    assert pids(client) != before


def test_a_task_that_kills_every_worker_is_named(client):
    X = da.zeros((10, 2), chunks=(10, 2))
    with pytest.raises(distributed.KilledWorker):
        reduce_rows(always_die, operator.add, (X,), 16.0)
    client.wait_for_workers(2, timeout=60)


def test_a_worker_out_of_memory_costs_nothing(small_workers, tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 5))
    flag = str(tmp_path / "full")
    total = reduce_rows(
        partial(fill_memory, flag=flag), operator.add, (da.from_array(X, chunks=(100, 5)),), 40.0
    )
    assert os.path.exists(flag)
    assert_allclose(total, X.sum(axis=0), rtol=1e-10)


def test_a_task_that_needs_too_much_memory_is_named(small_workers):
    with pytest.raises(distributed.KilledWorker):
        reduce_rows(fill_memory, operator.add, (da.zeros((10, 2), chunks=(10, 2)),), 16.0)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=2000)


class TestKreinOnDask:
    def model(self, kind):
        return kind(TL1(5.0), landmarks=60, random_state=0)

    def test_regression_equals_in_memory(self, client, problem):
        X, y = problem
        here = self.model(KreinRidge).fit(X, y)
        there = self.model(KreinRidge).fit(
            da.from_array(X, chunks=(300, 2)), da.from_array(y, chunks=450)
        )
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
            KreinRidge(landmarks=None).fit(da.from_array(X), y)
        with pytest.raises(TypeError, match="needs its data in memory"):
            KreinSVR().fit(da.from_array(X), y)

    def test_new_rows_must_match(self, problem):
        X, y = problem
        model = self.model(KreinRidge).fit(X, y)
        with pytest.raises(ValueError, match="features"):
            model.predict(da.zeros((5, 3)))


def classes(n=240):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [-0.5, 0.5])


THROUGH_JOBLIB = {
    "hyper parts": (
        HyperRidge(GaussianHyper(1.0), alpha=1e-3, n_parts=4, landmarks=20, target="classes", random_state=0),
        lambda model: model.kernel_(classes(20)[0]),
    ),
    "dank parts": (
        DANKClassifier(Gaussian(1.0), n_parts=3, random_state=0),
        lambda model: model.decision_function(classes(40)[0]),
    ),
    "candidate kernels and folds": (
        GridSearchCV(KreinRidgeClassifier(random_state=0), {"kernel": [TL1(2.0), TL1(4.0), TL1(6.0)]}, cv=3),
        lambda model: model.cv_results_["mean_test_score"],
    ),
    "folds of the stack": (
        SimilarityClassifier(TL1(4.0), cv=3, random_state=0),
        lambda model: model.predict_proba(classes(40)[0]),
    ),
    "classes of the sparse machine": (
        SimilaritySVC(TL1(4.0)),
        lambda model: model.decision_function(classes(40)[0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THROUGH_JOBLIB)
def test_joblib_on_the_cluster_equals_sequential(client, name):
    model, result = THROUGH_JOBLIB[name]
    X, y = classes()
    here = result(model.set_params(n_jobs=None).fit(X, y))
    before = sum(client.run(n_executed).values())
    with joblib.parallel_config(backend="dask"):
        there = result(model.set_params(n_jobs=-1).fit(X, y))
    assert_allclose(there, here, rtol=1e-8, atol=1e-12)
    assert sum(client.run(n_executed).values()) >= before + 3  # it did run there


def n_executed(dask_worker):
    return dask_worker.state.executed_count


class Sleeper(ClassifierMixin, BaseEstimator):
    """An estimator that takes longer than anyone waits."""

    def fit(self, X, y):
        time.sleep(300)

    def predict(self, X):
        return np.zeros(len(X))


FIT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background leaves it ignored
import sys, time
import numpy as np, dask.array as da, distributed
from mercerless import KreinRidge
from mercerless.kernels import TL1

def slow(block):
    time.sleep(0.2)
    return block

client = distributed.Client(sys.argv[1], timeout=60)
client.wait_for_workers(1, timeout=60)
X = da.from_array(np.random.default_rng(0).normal(size=(40_000, 3)), chunks=(100, 3)).map_blocks(slow)
model = KreinRidge(TL1(3.0), landmarks=20, random_state=0)
print("ready", flush=True)
try:
    model.fit(X, np.zeros(len(X)))
except (KeyboardInterrupt, Exception) as error:
    sys.stdout.write(f"{type(error).__name__} {error} | {hasattr(model, 'dual_coef_')}".replace(chr(10), " "))
sys.stdout.flush()
client.close(timeout=1)
"""


@pytest.fixture
def fit_elsewhere(tmp_path):
    """Start a long fit in a process of its own on the cluster at an address; it says "ready" when it begins."""
    processes = []

    def start(address):
        command = [sys.executable, "-W", "ignore", "-c", FIT, address]
        processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        )
        assert processes[-1].stdout.readline().strip() == "ready"
        time.sleep(1.0)
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def test_interrupting_a_fit_on_a_cluster(client, fit_elsewhere):
    process = fit_elsewhere(client.scheduler.address)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.startswith("KeyboardInterrupt") and out.endswith("| False")  # nothing half fitted


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler with one worker, and its process."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    where = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *where], **quiet
    )
    worker = subprocess.Popen(
        [*dask, "worker", *where, "--no-nanny", "--death-timeout", "90"], **quiet
    )
    try:
        for _ in range(600):
            if file.exists() and file.read_text():
                break
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"], scheduler
    finally:
        for one in (scheduler, worker):
            one.kill()
            one.wait()


def test_a_lost_scheduler_is_one_clear_error(fit_elsewhere, scheduler):
    address, process_of_scheduler = scheduler
    process = fit_elsewhere(address)
    process_of_scheduler.kill()
    out, _ = process.communicate(timeout=60)
    assert "lost the connection to the scheduler" in out and out.endswith("| False")


def test_hosts_with_their_own_networks(tmp_path):
    """Workers on two simulated hosts; one loses its network in the middle of a fit, and the other finishes."""
    spaces = [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "--mount",
        "--pid",
        "--kill-child",
        "--fork",
    ]
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs ip and unshare")
    if subprocess.run(
        [*spaces, "ip", "link", "add", "v0", "type", "veth"], capture_output=True
    ).returncode:
        pytest.skip("network namespaces are not permitted here")
    script = Path(__file__).with_name("hosts.py")
    done = subprocess.run(
        [*spaces, sys.executable, script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split("\n")[:4] == [
        "hosts 10.77.0.11 10.77.0.12",
        "equal True",
        "equal True",
        "left 1",
    ]
