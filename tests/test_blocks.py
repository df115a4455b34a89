"""Row blocks: the same sums from arrays, memory maps and Dask arrays, whatever the blocks."""

import operator

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless.core.blocks import check_rows, is_dask, map_rows, reduce_rows, take_rows

da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(1000, 3)), rng.normal(size=(1000, 2))


def cross(X, Y, w):
    return X.T @ Y


def test_sums_agree_for_all_containers(data, tmp_path):
    X, Y = data
    expected = X.T @ Y
    ones = np.ones(len(X))
    np.save(tmp_path / "X.npy", X)
    containers = [X, np.load(tmp_path / "X.npy", mmap_mode="r"), da.from_array(X, chunks=(130, 2))]
    for container in containers:
        for targets in (Y, da.from_array(Y, chunks=(77, 1))) if is_dask(container) else (Y,):
            total = reduce_rows(
                cross, operator.add, (container, targets, ones), 24.0, budget=24 * 50
            )
            assert_allclose(total, expected, rtol=1e-12)


def test_order_of_rows_is_kept(data):
    X, _ = data
    for container in (X, da.from_array(X, chunks=(37, 3))):
        rows = reduce_rows(lambda b: [b], operator.add, (container,), 24.0, budget=240)
        assert_array_equal(np.vstack(rows), X)


def test_map_is_lazy_for_dask(data):
    X, _ = data
    lazy = map_rows(lambda b: b.sum(axis=1), da.from_array(X, chunks=(300, 2)), 24.0, budget=240)
    assert is_dask(lazy) and lazy.shape == (1000,)
    assert_allclose(lazy.compute(), X.sum(axis=1))
    wide = map_rows(lambda b: b[:, :2] * 2, da.from_array(X, chunks=300), 24.0, n_columns=2)
    assert wide.shape == (1000, 2)
    assert_allclose(wide.compute(), X[:, :2] * 2)
    assert_allclose(map_rows(lambda b: b[:, :2] * 2, X, 24.0, n_columns=2), X[:, :2] * 2)


def test_take_rows_in_the_order_asked_for(data):
    X, _ = data
    rows = np.array([900, 3, 500, 4])
    assert_array_equal(take_rows(X, rows), X[rows])
    assert_array_equal(take_rows(da.from_array(X, chunks=100), rows), X[rows])


def test_bad_dask_arrays():
    with pytest.raises(ValueError, match="two-dimensional"):
        check_rows(da.zeros(5))
    with pytest.raises(ValueError, match="dtype"):
        check_rows(da.zeros((5, 2), dtype=complex))
    unknown = da.zeros((5, 2), chunks=2)
    unknown = unknown[unknown[:, 0] == 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        check_rows(unknown)


def test_bad_values_in_a_chunk_are_named():
    X = np.ones((100, 2))
    X[57, 1] = np.nan
    for container in (X, da.from_array(X, chunks=10)):
        with pytest.raises(ValueError, match="contains NaN"):
            reduce_rows(lambda b: b.sum(), operator.add, (container,), 16.0)
