"""Kernels of any objects: a function of two items, or a function of two lists of items."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from mercerless.core.memory import check_memory, row_blocks, slices, with_settings
from mercerless.core.timing import Meter
from mercerless.core.validation import as_items, asymmetric_kernel
from mercerless.kernels.base import Kernel
from mercerless.kernels.cached import Cached, digest

#: Differences up to this share of the largest value are rounding: many functions compute in single precision.
ROUNDING = 1e-5
#: Numbers of the items of some pairs: those of the rows and those of the columns.
Pairs = tuple[NDArray, NDArray]


class _OfItems(Kernel):
    """Base of kernels of any objects, with the parameters ``function`` and ``symmetric``."""

    takes_objects = True
    function: Callable[..., Any]

    def _two_lists(self, X: Any, Y: Any) -> tuple[NDArray, NDArray, bool, Meter]:
        """The items of rows and columns, and whether one direction of a square matrix gives the other."""
        rows = as_items(X)
        is_square = Y is None or Y is X
        columns = rows if is_square else as_items(Y)
        n, m = len(rows), len(columns)
        check_memory(8.0 * n * m, "The matrix of the kernel function")
        mirrors = is_square and self.symmetric
        return rows, columns, mirrors, Meter(n * (n + 1) // 2 if mirrors else n * m)

    def _check_directions(self, there: NDArray, back: NDArray, pairs: Pairs) -> None:
        """Raise if values of pairs differ from those of the other direction by more than rounding."""
        largest = np.nanmax(np.abs([there, back]), initial=0.0)
        difference = np.nan_to_num(np.abs(there - back))
        if not difference.max(initial=0.0) > ROUNDING * largest:
            return
        k = int(difference.argmax())
        i, j = pairs
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
        matrix. `Cached` keeps its values for later calls.
    symmetric : bool, default=True
        Whether ``function(a, b) == function(b, a)``: then a square matrix costs half the calls. A few pairs are
        compared in both directions; if they differ by more than 1e-5 of the largest value, this raises.
    n_jobs : int or None, default=None
        How many `joblib` workers call the function.

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
        self, function: Callable[..., Any], symmetric: bool = True, n_jobs: int | None = None
    ):
        self.function = function
        self.symmetric = symmetric
        self.n_jobs = n_jobs

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        rows, columns, mirrors, meter = self._two_lists(X, Y)
        n, m = len(rows), len(columns)
        K = np.empty((n, m))
        parts = _all_pairs(n, m, mirrors, 1 if isinstance(self.function, Cached) else 1000)
        for (i, j), values in self._compare(rows, columns, parts, meter):
            K[i, j] = values
            if mirrors:
                K[j, i] = values
        if mirrors and n > 1 and meter.done:
            i = np.linspace(0, n - 2, 10).astype(int)
            j = i + 1 + np.arange(10) % (n - 1 - i)
            plain = self.function.function if isinstance(self.function, Cached) else self.function
            back = _values(plain, list(rows[j]), list(rows[i]), (j, i))
            self._check_directions(K[i, j], back, (i, j))
        return K

    def diag(self, X: Any) -> NDArray:
        items = as_items(X)
        parts = (
            (own, own) for own in np.array_split(np.arange(len(items)), 1 + len(items) // 1000)
        )
        found = self._compare(items, items, parts, Meter(len(items)))
        return np.concatenate([values for _, values in found])

    def _compare(
        self, rows: NDArray, columns: NDArray, parts: Iterable[Pairs], meter: Meter
    ) -> Iterator[tuple[Pairs, NDArray]]:
        """The values of part after part; cached ones are not computed again, and new ones cached."""
        cache = self.function if isinstance(self.function, Cached) else Cached(self.function)
        is_cached = cache is self.function
        if is_cached:
            row_keys = [digest(item) for item in rows]
            column_keys = row_keys if columns is rows else [digest(item) for item in columns]
        # the rows of a table as objects, so that they are not copied for every pair
        rows = np.fromiter(rows, dtype=object, count=len(rows))
        columns = np.fromiter(columns, dtype=object, count=len(columns))
        started: deque[tuple[Pairs, list, NDArray, NDArray]] = deque()

        def tasks() -> Iterator[Any]:
            for i, j in parts:
                keys = []
                values = np.full(len(i), np.nan)
                is_known = np.zeros(len(i), dtype=bool)
                if is_cached:
                    keys = [(row_keys[a], column_keys[b]) for a, b in zip(i, j)]
                    keys = [(min(key), max(key)) for key in keys] if self.symmetric else keys
                    values, is_known = cache.read(keys)
                todo = np.flatnonzero(~is_known)
                started.append(((i, j), keys, values, todo))
                i, j = i[todo], j[todo]
                yield cache.function, rows[i], columns[j], (i, j)

        results: Iterable[NDArray] = starmap(_values, tasks())
        if effective_n_jobs(self.n_jobs) > 1:
            calls = starmap(delayed(with_settings(_values)), tasks())
            results = Parallel(n_jobs=self.n_jobs, return_as="generator")(calls)
        for computed in results:
            pairs, keys, values, todo = started.popleft()
            values[todo] = computed
            if is_cached and len(todo):
                cache.write([keys[place] for place in todo], computed)
            meter.advance(len(todo))
            yield pairs, values


def _all_pairs(n: int, m: int, mirrors: bool, size: int) -> Iterator[Pairs]:
    """Parts of the pairs of n rows and m columns: of some rows, or of a thousand columns of one row."""
    for block in row_blocks(n, m, size):
        rows = np.arange(n)[block]
        first = rows if mirrors else np.zeros_like(rows)
        i = np.repeat(rows, m - first)
        j = np.concatenate([np.arange(start, m) for start in first])
        for part in slices(0, len(i), 1000):
            yield i[part], j[part]


def _values(function: Callable, A: Iterable, B: Iterable, pairs: Pairs) -> NDArray:
    """The values of the pairs of A and B; `pairs` numbers them for messages."""
    values: list[Any] = []
    numbers: list[float] = []
    try:
        values.extend(map(function, A, B))
        numbers.extend(map(_number, values))
    except Exception as error:
        i, j = pairs
        k = len(numbers) if len(values) == len(i) else len(values)
        raise ValueError(
            f"The kernel function raised {type(error).__name__} ({error}) for items {i[k]} and "
            f"{j[k]}; a function of two lists goes into MatrixFunction(function)."
        ) from error
    return np.array(numbers)


def _number(value: Any) -> float:
    """The returned value as a finite number; NaN for None."""
    if value is None:
        return np.nan
    number = float(value.item() if hasattr(value, "item") else value)
    if not math.isfinite(number):
        raise ValueError(f"it returned {number}, which is not a finite number")
    return number


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
        comparisons. Raises if values that are computed in both directions differ by more than 1e-5 of the largest.

    See Also
    --------
    PairFunction : For a function of two items.

    Notes
    -----
    A model that scores a list of pairs serves as
    ``MatrixFunction(lambda A, B: np.reshape(score([(a, b) for a in A for b in B]), (len(A), len(B))))``.

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
    #: Whether values are compared with those of the other direction and of two items alone.
    _is_checked = True

    def __init__(self, function: Callable[..., Any], symmetric: bool = True):
        self.function = function
        self.symmetric = symmetric

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        rows, columns, mirrors, meter = self._two_lists(X, Y)
        self._check_items(rows)
        self._check_items(columns)
        n, m = len(rows), len(columns)
        K = np.empty((n, m))
        # of a symmetric matrix in eight parts little more than half is computed
        at_once = min(self._pairs_at_once, n * m // 8) if mirrors else self._pairs_at_once
        for block in row_blocks(n, m, at_once):
            start = block.start if mirrors else 0
            values = self._block(rows[block], columns[start:], block.start, start)
            if mirrors:
                self._mirror(values[:, : block.stop - start], start)
                K[start:, block] = values.T
            K[block, start:] = values
            meter.advance(values.size)
        self._check_alone(K, rows, columns)
        return K

    def diag(self, X: Any) -> NDArray:
        items = as_items(X)
        self._check_items(items)
        own = [self._block(items[[k]], items[[k]], k, k) for k in range(len(items))]
        return np.ravel(own)

    def _check_items(self, items: NDArray) -> None:
        """Raise for items that the function does not take."""

    def _mirror(self, square: NDArray, start: int) -> None:
        """Make a block on the diagonal symmetric, in place, after checking that it nearly is."""
        i, j = np.triu_indices(len(square), 1)
        if self._is_checked:
            self._check_directions(square[i, j], square[j, i], (i + start, j + start))
        square[j, i] = square[i, j]

    def _check_alone(self, K: NDArray, rows: NDArray, columns: NDArray) -> None:
        """Raise if the value of two items depends on the others in the lists."""
        if K.size == 1 or not self._is_checked:
            return
        last = K.shape[1] - 1
        alone = self._block(rows[:1], columns[-1:], 0, last)[0, 0]
        among = K[0, -1]
        if abs(alone - among) > 10 * ROUNDING * np.abs(K[0]).max():
            raise ValueError(
                f"The kernel function of two lists gives items 0 and {last} the value {among:.6g} "
                f"among the others and {alone:.6g} alone; a value must depend on its two items only."
            )

    def _block(self, rows: NDArray, columns: NDArray, first_row: int, first_column: int) -> NDArray:
        """The function's finite values for two lists that begin with the items of these numbers."""
        A, B = (items if items.ndim == 2 else list(items) for items in (rows, columns))
        try:
            values = np.array(self.function(A, B), dtype=float)
            if values.shape != (len(rows), len(columns)):
                raise ValueError(
                    f"it returned shape {values.shape}, not {(len(rows), len(columns))}: a row per "
                    "item of the first list"
                )
            if not np.isfinite(values).all():
                a, b = np.argwhere(~np.isfinite(values))[0]
                raise ValueError(
                    f"it returned {values[a, b]} for items {first_row + a} and {first_column + b}"
                )
        except ImportError:
            raise
        except Exception as error:
            raise ValueError(
                f"The kernel function raised {type(error).__name__} ({error}) for the lists from "
                f"items {first_row} and {first_column} on; a function of two items goes into "
                "PairFunction(function)."
            ) from error
        return values


def takes_objects(kernel: Kernel) -> bool:
    """Whether a kernel, or a part of it, takes any objects as items."""
    parts = [kernel, *kernel.get_params().values()]
    return any(getattr(part, "takes_objects", False) for part in parts)
