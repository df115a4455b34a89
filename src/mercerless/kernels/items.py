"""Kernels of any objects: a function of two items, or a function of two lists of items."""

from collections.abc import Callable, Iterator
from itertools import repeat
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from mercerless.core.memory import check_memory, row_blocks, with_settings
from mercerless.core.timing import Meter
from mercerless.core.validation import as_items, asymmetric_kernel, check_number
from mercerless.kernels.base import Kernel, slices
from mercerless.kernels.cached import Cached, digest


class _OfItems(Kernel):
    """Base of kernels of any objects, with the parameters ``function`` and ``symmetric``."""

    takes_objects = True
    function: Callable[..., Any]

    def _two_lists(self, X: Any, Y: Any) -> tuple[NDArray, NDArray, bool]:
        """The items of rows and columns, and whether one direction of a square matrix gives the other."""
        rows = as_items(X)
        is_square = Y is None or Y is X
        columns = rows if is_square else as_items(Y)
        check_memory(8.0 * len(rows) * len(columns), "The matrix of the kernel function")
        return rows, columns, is_square and self.symmetric

    def diag(self, X: Any) -> NDArray:
        items = as_items(X)
        own = np.arange(len(items))
        return self._pairs(items, items, own, own)

    def _pairs(self, rows: NDArray, columns: NDArray, i: NDArray, j: NDArray) -> NDArray:
        """Values of the pairs ``(rows[i], columns[j])``; i ascends."""
        raise NotImplementedError

    def _check_directions(self, there: NDArray, back: NDArray, i: NDArray, j: NDArray) -> None:
        """Raise if values of pairs differ from those of the other direction by more than their precision."""
        largest = np.nanmax(np.abs([there, back]), initial=0.0)
        difference = np.nan_to_num(np.abs(there - back))
        if not difference.max(initial=0.0) > precision_of(there) * largest:
            return
        k = int(difference.argmax())
        raise asymmetric_kernel(
            f"The kernel function is not symmetric: it returned {there[k]:.8g} for items {i[k]} and "
            f"{j[k]}, and {back[k]:.8g} for {j[k]} and {i[k]}"
        )


class PairFunction(_OfItems):
    """A kernel from any function of two items: rows, strings, series, graphs.

    Parameters
    ----------
    function : callable
        Takes two items and returns a number, or None for a pair that cannot be compared, which becomes NaN in the
        matrix. With `batch` it takes a list of pairs and returns one of these for every pair. `Cached` keeps its
        values for later calls.
    symmetric : bool, default=True
        Whether ``function(a, b) == function(b, a)``: then a square matrix costs half the calls. A few pairs are
        compared in both directions; if they differ by more than the precision of the values, this raises.
    n_jobs : int or None, default=None
        How many `joblib` workers call the function.
    batch : int or None, default=None
        The number of pairs per call of a function that takes a list of pairs, as remote services do.

    See Also
    --------
    MatrixFunction : For a function of two lists.
    Cached : Keeps the values of a slow function.

    Notes
    -----
    Nothing is kept from one call to the next. For cross-validation, compute the matrix once,
    ``K = PairFunction(function)(items)``, and use ``kernel="precomputed"``; or pass ``PairFunction(Cached(function))``.

    Examples
    --------
    >>> from mercerless.kernels import PairFunction
    >>> common = PairFunction(lambda a, b: len(set(a) & set(b)))
    >>> common(["cat", "dog", "coat"])
    array([[3., 0., 3.],
           [0., 3., 1.],
           [3., 1., 4.]])
    """

    def __init__(
        self,
        function: Callable[..., Any],
        symmetric: bool = True,
        n_jobs: int | None = None,
        batch: int | None = None,
    ):
        self.function = function
        self.symmetric = symmetric
        self.n_jobs = n_jobs
        self.batch = batch

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        rows, columns, mirrors = self._two_lists(X, Y)
        n, m = len(rows), len(columns)
        total = n * (n + 1) // 2 if mirrors else n * m
        meter = Meter(total)
        K = np.empty((n, m))
        for block in row_blocks(n, m, 2**20):
            ours = np.arange(n)[block]
            first = ours if mirrors else np.zeros_like(ours)
            i = np.repeat(ours, m - first)
            j = np.concatenate([np.arange(start, m) for start in first])
            values = self._pairs(rows, columns, i, j, meter)
            K[i, j] = values
            if mirrors:
                K[j, i] = values
        if mirrors and n > 1 and meter.done:
            i = np.linspace(0, n - 2, 10).astype(int)
            j = i + 1 + np.arange(10) % (n - 1 - i)
            back = np.empty(len(i))
            for places, values in self._compute(rows, columns, j, i):
                back[places] = values
            self._check_directions(K[i, j], back, i, j)
        return K

    def _pairs(
        self, rows: NDArray, columns: NDArray, i: NDArray, j: NDArray, meter: Meter | None = None
    ) -> NDArray:
        check_number("batch", self.batch, whole=True, none=True)
        cache = self.function if isinstance(self.function, Cached) else None
        if cache is None:
            values = np.full(len(i), np.nan)
            todo = np.arange(len(i))
        else:
            keys = _keys(rows, columns, i, j, self.symmetric)
            values, is_known = cache.read(keys)
            todo = np.flatnonzero(~is_known)
        unsaved: list[NDArray] = []
        saved = perf_counter()
        try:
            for places, results in self._compute(rows, columns, i[todo], j[todo]):
                values[todo[places]] = results
                unsaved.append(todo[places])
                if meter is not None:
                    meter.advance(len(places))
                if cache is not None and perf_counter() - saved > 1.0:
                    _save(cache, keys, values, unsaved)
                    saved = perf_counter()
        finally:  # values computed before an interruption are kept
            if cache is not None:
                _save(cache, keys, values, unsaved)
        return values

    def _compute(
        self, rows: NDArray, columns: NDArray, i: NDArray, j: NDArray
    ) -> Iterator[tuple[NDArray, NDArray]]:
        """Places among the pairs, and their values, as they are computed."""
        function = self.function
        if isinstance(function, Cached):
            function = function.function
        if self.batch is not None:
            for part in slices(0, len(i), self.batch):
                yield (
                    np.arange(len(i))[part],
                    _call_batch(function, rows, columns, i[part], j[part]),
                )
            return
        # the pairs of one row come one after another
        starts = np.flatnonzero(np.diff(i, prepend=-1)).tolist()
        parts = [
            part
            for start, stop in zip(starts, [*starts[1:], len(i)])
            for part in slices(start, stop, 1000)
        ]
        n_jobs = effective_n_jobs(self.n_jobs)
        if n_jobs == 1 or len(parts) < 2 * n_jobs:
            results: Any = (_call_row(function, rows[i[p.start]], columns[j[p]]) for p in parts)
            yield from _checked(parts, results, i, j)
            return
        with Parallel(n_jobs=n_jobs) as workers:
            for some in slices(0, len(parts), 8 * n_jobs):
                results = workers(
                    delayed(with_settings(_call_row))(function, rows[i[p.start]], columns[j[p]])
                    for p in parts[some]
                )
                yield from _checked(parts[some], results, i, j)


def _keys(
    rows: NDArray, columns: NDArray, i: NDArray, j: NDArray, symmetric: bool
) -> list[tuple[bytes, bytes]]:
    """Digests of the pairs, in one order for both directions of a symmetric function."""
    first = {k: digest(rows[k]) for k in np.unique(i).tolist()}
    second = {k: digest(columns[k]) for k in np.unique(j).tolist()}
    pairs = [(first[a], second[b]) for a, b in zip(i.tolist(), j.tolist())]
    return [(min(pair), max(pair)) for pair in pairs] if symmetric else pairs


def _save(cache: Cached, keys: list, values: NDArray, unsaved: list[NDArray]) -> None:
    if unsaved:
        places = np.concatenate(unsaved)
        cache.write([keys[place] for place in places.tolist()], values[places])
        unsaved.clear()


class _Row(NamedTuple):
    """Values of one item with others, up to the first error."""

    values: NDArray
    error: Exception | None


def _call_row(function: Callable, item: Any, others: Any) -> _Row:
    values: list[Any] = []
    error: Exception | None = None
    try:
        values.extend(map(function, repeat(item), others))  # keeps the values before an error
    except Exception as failure:
        error = failure
    if all(type(value) is float for value in values):
        array = np.array(values, dtype=float)
        if np.isfinite(array).all():
            return _Row(array, error)
    numbers: list[float] = []
    try:
        numbers.extend(map(_number, values))
    except Exception as failure:
        error = failure
    return _Row(np.array(numbers, dtype=float), error)


def _checked(
    parts: list[slice], results: Any, i: NDArray, j: NDArray
) -> Iterator[tuple[NDArray, NDArray]]:
    """The places and values of every part; raises at the first error."""
    for part, (values, error) in zip(parts, results):
        done = part.start + len(values)
        yield np.arange(part.start, done), values
        if error is not None:
            raise _failure(error, f"items {i[done]} and {j[done]}") from error


def _call_batch(
    function: Callable, rows: NDArray, columns: NDArray, i: NDArray, j: NDArray
) -> NDArray:
    """The values of these pairs, by one call."""
    pairs = [(rows[a], columns[b]) for a, b in zip(i, j)]
    what = f"the {len(pairs)} pairs from items {i[0]} and {j[0]} to {i[-1]} and {j[-1]}"
    try:
        values = [_number(value) for value in function(pairs)]
        if len(values) != len(pairs):
            raise ValueError(f"it returned {len(values)} values")
    except Exception as error:
        raise _failure(error, what) from error
    return np.array(values, dtype=float)


def _number(value: Any) -> float:
    """The returned value as a finite number; NaN for None."""
    if value is None:
        return np.nan
    if np.ndim(value):
        if np.size(value) != 1:
            raise TypeError(f"it returned an array of shape {np.shape(value)}")
        value = np.reshape(value, ())[()]
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"it returned {number}, which is not a finite number")
    return number


def _failure(error: Exception, what: str) -> ValueError:
    return ValueError(
        f"The kernel function raised {type(error).__name__} ({error}) for {what}; a function of "
        "two lists goes into MatrixFunction(function)."
    )


def precision_of(values: NDArray) -> float:
    """The relative rounding of values: of single precision if all of them fit it."""
    known = values[~np.isnan(values)]
    in_single = known.astype(np.float32).astype(np.float64) == known
    has_fractions = np.any(known != np.round(known))
    return 1e-5 if has_fractions and in_single.all() else 1e-8


class MatrixFunction(_OfItems):
    """A kernel from a function of two lists that returns the matrix of all pairs, as many packages offer.

    Examples are ``scipy.spatial.distance.cdist``, rapidfuzz's ``process.cdist``, aeon's pairwise distances, POT's
    ``ot.dist`` and the ``evaluate`` of quantum kernels.

    Parameters
    ----------
    function : callable
        Takes two lists of items (arrays, for rows of a table of numbers) and returns an array with a row per item of
        the first and a column per item of the second. A value must depend on its two items only.
    symmetric : bool, default=True
        Whether ``function(A, B)`` is the transpose of ``function(B, A)``: then a square matrix costs half the
        comparisons. Raises if values that are computed in both directions differ by more than their precision.

    See Also
    --------
    PairFunction : For a function of two items.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import MatrixFunction
    >>> common = MatrixFunction(lambda A, B: np.array([[len(set(a) & set(b)) for b in B] for a in A]))
    >>> common(["cat", "dog", "coat"])
    array([[3., 0., 3.],
           [0., 3., 1.],
           [3., 1., 4.]])
    """

    #: Pairs per call.
    _pairs_at_once = 2**18
    #: Whether this need not be checked.
    _depends_on_pairs_only = False

    def __init__(self, function: Callable[..., Any], symmetric: bool = True):
        self.function = function
        self.symmetric = symmetric

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        rows, columns, mirrors = self._two_lists(X, Y)
        self._check_items(rows)
        self._check_items(columns)
        n, m = len(rows), len(columns)
        meter = Meter(n * (n + 1) // 2 if mirrors else n * m)
        K = np.empty((n, m))
        for block in row_blocks(n, m, self._pairs_at_once):
            start = block.start if mirrors else 0
            values = self._block(rows[block], columns[start:], block.start, start)
            if mirrors:
                size = block.stop - start
                self._mirror(values[:, :size], start)
                K[start:, block] = values.T
            K[block, start:] = values
            meter.advance(values.size)
        self._check_alone(K, rows, columns)
        return K

    def _check_items(self, items: NDArray) -> None:
        """Raise for items that the function does not take."""

    def _mirror(self, square: NDArray, start: int) -> None:
        """Make a block on the diagonal symmetric, in place, after checking that it nearly is."""
        i, j = np.triu_indices(len(square), 1)
        self._check_directions(square[i, j], square[j, i], i + start, j + start)
        square[j, i] = square[i, j]

    def _check_alone(self, K: NDArray, rows: NDArray, columns: NDArray) -> None:
        """Raise if the value of two items depends on the others in the lists."""
        if K.size == 1 or self._depends_on_pairs_only:
            return
        alone = self._block(rows[:1], columns[-1:], 0, K.shape[1] - 1)[0, 0]
        among = K[0, -1]
        largest = np.abs(K[0]).max()
        if abs(alone - among) > 10 * precision_of(K[0]) * largest:
            raise ValueError(
                f"The kernel function of two lists gives items 0 and {K.shape[1] - 1} the value "
                f"{among:.6g} among the others and {alone:.6g} alone; a value must depend on its "
                "two items only."
            )

    def _pairs(self, rows: NDArray, columns: NDArray, i: NDArray, j: NDArray) -> NDArray:
        self._check_items(rows)
        values = np.empty(len(i))
        starts = np.flatnonzero(np.diff(i, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(i)]):
            item = i[start]
            values[start:stop] = self._block(rows[[item]], columns[j[start:stop]], item, j[start])
        return values

    def _block(self, rows: NDArray, columns: NDArray, first_row: int, first_column: int) -> NDArray:
        """The function's finite values for two lists, the first items of which have these numbers."""
        A, B = (items if items.ndim == 2 else list(items) for items in (rows, columns))
        what = f"the lists from items {first_row} and {first_column} on"
        try:
            values = np.array(self.function(A, B), dtype=float)
            if values.shape != (len(rows), len(columns)):
                raise ValueError(
                    f"it returned shape {values.shape}, not {(len(rows), len(columns))}: a row per "
                    "item of the first list"
                )
        except ImportError:
            raise
        except Exception as error:
            raise ValueError(
                f"The kernel function raised {type(error).__name__} ({error}) for {what}; a "
                "function of two items goes into PairFunction(function)."
            ) from error
        if not np.all(np.isfinite(values)):
            a, b = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(
                f"The kernel function returned {values[a, b]} for items {first_row + a} and "
                f"{first_column + b}; it must return finite numbers."
            )
        return values


def takes_objects(kernel: Kernel) -> bool:
    """Whether a kernel, or a part of it, takes any objects as items."""
    parts = [kernel, *kernel.get_params().values()]
    return any(getattr(part, "takes_objects", False) for part in parts)
