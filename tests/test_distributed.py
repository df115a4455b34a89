"""On a Dask cluster of worker processes: the same results, and data that stay where they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercerless import KreinRidge, KreinRidgeClassifier, LABRegressor
from mercerless.core.blocks import reduce_rows
from mercerless.kernels import TL1

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

# Dask's own clean-up of processes and sockets speaks up late; none of it is ours.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(600, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        with distributed.Client(cluster) as client:
            client.wait_for_workers(2, timeout=60)
            yield client


def test_sums_do_not_depend_on_workers(client):
    distant = da.from_array(X, chunks=(170, -1))
    with dask.config.set(scheduler="synchronous"):
        alone = reduce_rows(np.ndarray.sum, np.add, [distant], 32.0)
    assert reduce_rows(np.ndarray.sum, np.add, [distant], 32.0) == alone
    assert_allclose(alone, X.sum())


@pytest.mark.parametrize(
    "model, y",
    [
        (KreinRidge(TL1(6.0), landmarks=60, random_state=0), Y),
        (KreinRidgeClassifier(TL1(6.0), landmarks=60, random_state=0), (Y > 0).astype(int)),
        (LABRegressor(20, max_iter=5, random_state=0), Y),
    ],
    ids=lambda each: type(each).__name__,
)
def test_fits_equal_those_in_memory(client, model, y):
    distant = da.from_array(X, chunks=(170, -1))
    expected = model.fit(X, y).predict(X)
    predicted = model.fit(distant, y).predict(distant)
    assert isinstance(predicted, da.Array)
    assert_allclose(predicted.compute(), expected, rtol=1e-6, atol=1e-4 * np.std(expected))
