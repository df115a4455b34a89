"""Sums and maps over blocks of rows of data that need not fit in memory: arrays, memory maps, Dask arrays.

Estimators that scale see the data only through sums over rows. Dask arrays are processed chunk by chunk where the
chunks are, and only the sums travel.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce, wraps
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mercerless.core.memory import row_blocks
from mercerless.core.validation import check_real, is_dask

P = ParamSpec("P")
T = TypeVar("T")


def check_rows(X: Any) -> Any:
    """Check the shape, chunks and type of a Dask array before any work, and put all columns in one chunk."""
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, not {X.ndim}-dimensional.")
    if any(np.isnan(size) for size in X.shape):
        raise ValueError("X has chunks of unknown size; call X.compute_chunk_sizes() first.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {X.dtype}; pass real numbers.")
    return X.rechunk({1: -1})


def take_rows(X: Any, rows: NDArray) -> NDArray:
    """Rows of numbers, or items, as an array in memory, in the order of `rows`."""
    if not is_dask(X):
        return check_real(X[rows]) if X.ndim == 2 else X[rows]
    order = np.argsort(rows, kind="stable")  # Dask reads sorted rows once per chunk
    out = np.empty((len(rows), X.shape[1]), dtype=X.dtype)
    out[order] = X[rows[order]].compute()
    return check_real(out)


def reduce_rows(
    function: Callable[..., T],
    combine: Callable[[T, T], T],
    arrays: Sequence[Any],
    bytes_per_row: float,
    budget: int = 2**27,
) -> T:
    """`combine` of ``function(*blocks)`` over blocks of rows, in row order, earlier rows first.

    The first array is the data, the others have as many rows. Chunks of a Dask array are combined pairwise on
    the cluster, in an order that depends on the chunks only: results do not depend on the number of workers.
    """
    if not is_dask(arrays[0]):
        return _fold(function, combine, bytes_per_row, budget, *arrays)
    import dask

    chunk = dask.delayed(_fold, pure=True)
    # one node each in the graph, so that landmarks travel once and not with every chunk
    function = dask.delayed(function, pure=False)
    combine = dask.delayed(combine, pure=False)
    sums = [
        chunk(function, combine, bytes_per_row, budget, *blocks)
        for blocks in _delayed_blocks(arrays)
    ]
    while len(sums) > 1:
        pairs = [combine(*sums[i : i + 2]) for i in range(0, len(sums) - 1, 2)]
        sums = pairs + sums[2 * len(pairs) :]
    return sums[0].compute()


def map_rows(
    function: Callable[[NDArray], NDArray],
    X: Any,
    bytes_per_row: float,
    *,
    n_columns: int | None = None,
    dtype: Any = np.float64,
    budget: int = 2**27,
) -> Any:
    """``function(block)`` for all rows of X, block by block, one value each without `n_columns`; lazy for Dask."""
    if is_dask(X):
        import dask

        X = check_rows(X)
        shape: dict[str, Any] = {"chunks": (X.chunks[0], (n_columns,))}
        if n_columns is None:
            shape = {"drop_axis": 1}
        return X.map_blocks(
            _map_chunk,
            function=dask.delayed(function, pure=False),  # one node, so that a model travels once
            bytes_per_row=bytes_per_row,
            n_columns=n_columns,
            out_dtype=dtype,
            budget=budget,
            dtype=dtype,
            meta=np.empty((0,) if n_columns is None else (0, 0), dtype=dtype),
            **shape,
        )
    return _map_chunk(X, function, bytes_per_row, n_columns, dtype, budget)


def blockwise(method: Callable[P, T]) -> Callable[P, T]:
    """Let a method that maps rows to results, such as predict, take Dask arrays: lazily, chunk by chunk."""

    @wraps(method)
    def lazily(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)  # type: ignore[call-arg, arg-type]
        X = check_rows(X)
        # one row, to raise errors now and to learn the shape and type of results
        one: Any = method(self, X[:1].compute(), *args, **kwargs)  # type: ignore[call-arg, arg-type]
        apply = partial(_call, method.__name__, self, args, kwargs)
        return map_rows(
            apply,
            X,
            8.0 * X.shape[1],
            n_columns=None if one.ndim == 1 else one.shape[1],
            dtype=one.dtype,
        )

    return cast(Callable[P, T], lazily)


def _call(name, estimator, args, kwargs, X):
    return getattr(estimator, name)(X, *args, **kwargs)


def _map_chunk(X, function, bytes_per_row, n_columns, out_dtype, budget):
    out = np.empty((len(X),) if n_columns is None else (len(X), n_columns), dtype=out_dtype)
    for rows in row_blocks(len(X), bytes_per_row, budget):
        out[rows] = function(check_real(X[rows]))
    return out


def _fold(function, combine, bytes_per_row, budget, X, *others):
    def value(rows: slice) -> Any:
        block = X[rows] if X.dtype == object else check_real(X[rows])
        return function(block, *(other[rows] for other in others))

    return reduce(combine, map(value, row_blocks(len(X), bytes_per_row, budget)))


def _delayed_blocks(arrays):
    """The delayed blocks of all arrays, one list for each chunk of rows."""
    X = check_rows(arrays[0])
    sizes = X.chunks[0]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    columns = [X.to_delayed().ravel().tolist()]
    for array in arrays[1:]:
        if is_dask(array):
            array = array.rechunk({0: sizes, **{axis: -1 for axis in range(1, array.ndim)}})
            columns.append(array.to_delayed().ravel().tolist())
        else:
            columns.append(_scattered([array[a:b] for a, b in pairwise(bounds)]))
    return [blocks for blocks, size in zip(zip(*columns), sizes) if size]


def _scattered(blocks):
    """Blocks of an array in memory, sent to the workers of a cluster if there is one, past its scheduler."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    # of equal content they would be canceled together
    return client.scatter(blocks, hash=False) if hasattr(client, "scatter") else blocks
