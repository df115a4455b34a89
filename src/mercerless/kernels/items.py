"""Kernels of any objects: a function of two items, a function of two lists, similarities of strings by name."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from os import PathLike
from time import perf_counter
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from mercerless.core.memory import progress_setting, row_blocks, with_settings
from mercerless.core.optional import import_optional
from mercerless.core.validation import SYMMETRY_RTOL, as_items, check_number, check_option, warn
from mercerless.kernels.base import Kernel
from mercerless.kernels.disk import GAP, ValueFolder
from mercerless.kernels.memo import (
    Memory,
    PairStore,
    item_keys,
    kept_items,
    most_items,
    remembering,
    stable_keys,
)

#: Similarities of strings by name: rapidfuzz's classes, whose normalized similarity is 1 for equal strings.
STRING_SIMILARITIES = {
    "levenshtein": "Levenshtein",
    "jaro": "Jaro",
    "jaro_winkler": "JaroWinkler",
    "indel": "Indel",
    "hamming": "Hamming",
    "osa": "OSA",
    "lcs": "LCSseq",
}


class _OfItems(Kernel):
    """Base of kernels of any objects: looks up known values, computes and keeps the others.

    A subclass has the parameters ``function``, ``symmetric``, ``cache`` and ``progress``, and implements `_fill` and
    `_compare`.
    """

    takes_objects = True
    cache: bool | str | PathLike = True
    version: str | None = None
    progress: bool = False
    #: Rows at once of `with_some`.
    _some_rows = 256
    #: Whether more pairs than requested may be computed for the sake of larger blocks.
    _in_rectangles = True
    #: Draws the known pairs that are compared again; no result depends on it unless the function has changed.
    _draws = np.random.default_rng(0)

    def __init__(
        self,
        function: Callable[..., Any],
        symmetric: bool | None = None,
        cache: bool | str | PathLike = True,
        progress: bool = False,
    ):
        self.function = function
        self.symmetric = symmetric  # type: ignore[assignment]
        self.cache = cache
        self.progress = progress

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        same = Y is None or Y is X
        rows = as_items(X)
        columns = rows if same else as_items(Y)
        kernel = self.checked(rows) if same else self
        symmetric = bool(kernel.symmetric)
        requested = np.ones((len(rows), len(columns)), dtype=bool)
        if same and symmetric:
            requested = np.triu(requested)
        numbers = np.arange(len(rows)), np.arange(len(columns))
        with self._remembering() as memory:
            K = self._matrix(memory, rows, columns, symmetric, requested, numbers)
        return np.where(K == GAP, np.nan, K) if (K == GAP).any() else K

    def with_some(self, X: Any, Y: Any, positions: NDArray) -> NDArray:
        """Values of every item with some others of its own, and of no other pairs.

        Parameters
        ----------
        X, Y : sequence
            Items, and those among which each has its others.
        positions : ndarray of shape (n, m)
            Positions in Y of the others of every item of X.

        Returns
        -------
        ndarray of shape (n, m)
            The values.
        """
        items = as_items(X)
        others = as_items(Y)
        values = np.empty(positions.shape)
        kernel = copy(self)
        kernel._in_rectangles = False
        with self._remembering() as memory:
            for block in row_blocks(len(items), 1.0, self._some_rows):
                columns, places = np.unique(positions[block], return_inverse=True)
                places = places.reshape(positions[block].shape)
                rows = np.arange(len(items))[block]
                requested = np.zeros((len(rows), len(columns)), dtype=bool)
                np.put_along_axis(requested, places, True, axis=1)
                K = kernel._matrix(
                    memory,
                    items[rows],
                    others[columns],
                    bool(self.symmetric),
                    requested,
                    (rows, columns),
                )
                values[block] = np.take_along_axis(K, places, axis=1)
        return np.where(values == GAP, np.nan, values)

    def diag(self, X: Any) -> NDArray:
        items = as_items(X)
        if not isinstance(self.cache, bool):
            return self._diagonal_of_folder(items)
        with self._remembering() as memory:
            store, keys = self._store(memory, items, items[:0], bool(self.symmetric))
            diagonal = np.full(len(items), np.nan)
            if memory is not None and store is not None:
                drawn = self._draws.permutation(len(items))[:100]
                subset = items[drawn]
                its_keys = [keys[0][k] for k in drawn]
                known = store.read(its_keys, its_keys)
                both_keys = [its_keys, its_keys]
                if known is not None and self._has_changed(
                    subset, subset, both_keys, known, (drawn, drawn)
                ):
                    memory.clear()
                diagonal = store.read_diagonal(keys[0])
            todo = np.flatnonzero(np.isnan(diagonal))
            diagonal[todo] = self._compare(items[todo], items[todo], np.column_stack([todo, todo]))
        return np.where(diagonal == GAP, np.nan, diagonal)

    def _diagonal_of_folder(self, items: NDArray) -> NDArray:
        requested = np.eye(len(items), dtype=bool)
        numbers = np.arange(len(items))
        with self._remembering() as memory:
            K = self._matrix(
                memory, items, items, bool(self.symmetric), requested, (numbers, numbers)
            )
        diagonal = np.diagonal(K)
        return np.where(diagonal == GAP, np.nan, diagonal)

    def checked(self, X: Any) -> Self:
        """This kernel with `symmetric` set; raises if it does not take the items.

        Parameters
        ----------
        X : sequence
            The items to try the function on.

        Returns
        -------
        Kernel
            Itself if `symmetric` is given, else a copy with the detected value.
        """
        items = as_items(X)
        with self._remembering() as memory:
            self._check_function(items)
            if self.symmetric is not None:
                return self
            pairs = self._some_pairs(items)
            used, where = np.unique(pairs, return_inverse=True)
            requested = np.zeros((len(used), len(used)), dtype=bool)
            i, j = where.reshape(pairs.shape).T
            requested[i, j] = True
            requested[j, i] = True
            subset = items[used]
            sample = self._matrix(memory, subset, subset, False, requested, (used, used))
            symmetric = is_symmetric(self, items, pairs, sample[i, j], sample[j, i])
            store, keys = self._store(memory, subset, subset, True)
            if symmetric and store is not None:  # these pairs are not compared again
                sample[j, i] = sample[i, j]
                store.write(*keys, sample, kept_items(keys[0], subset))
        return type(self)(**self.get_params(deep=False) | {"symmetric": symmetric})

    def _check_function(self, items: NDArray) -> None:
        """Raise ValueError if the function cannot be used as a kernel of these items."""

    def _some_pairs(self, items: NDArray) -> NDArray:
        """At most 100 pairs of different items: the same for the same items, most of them for a part of the items."""
        n = len(items)
        if n <= 14:
            return np.column_stack(np.triu_indices(n, 1))
        order = _order_by_content(items)
        n_steps = min(n - 1, 100 // n + 2)
        pairs = [
            np.column_stack([order[:-step], order[step:]])[:100] for step in range(1, n_steps + 1)
        ]
        return np.concatenate(pairs)[:100]

    def _remembering(self) -> AbstractContextManager[Memory | None]:
        """The memory that keeps values; None without `cache`."""
        if not self.cache:
            return nullcontext()
        return remembering(self._identity())

    def _matrix(
        self,
        memory: Memory | None,
        rows: NDArray,
        columns: NDArray,
        symmetric: bool,
        requested: NDArray,
        numbers: tuple[NDArray, NDArray],
    ) -> NDArray:
        """The requested entries of the matrix; with `symmetric`, an entry serves both directions.

        `numbers` are those of the items, for messages.
        """
        same = columns is rows
        store, keys = self._store(memory, rows, columns, symmetric)
        folder = self._folder(memory, rows, columns, symmetric, numbers)
        known = None
        if memory is not None and store is not None:
            known = store.read(*keys)
            if known is not None and self._has_changed(rows, columns, keys, known, numbers):
                memory.clear()
                known = None
        if known is None:
            K = np.full((len(rows), len(columns)), np.nan)
            todo = requested
        else:
            K = known
            todo = np.isnan(K) & requested
        if folder is not None and todo.any():
            folder.read_into(K, todo)
            todo = np.isnan(K) & todo
        keep = partial(folder.write_from, K, todo.copy()) if folder is not None else _keep_nothing
        try:
            if todo.any():
                self._fill(K, todo, rows, columns, numbers, keep)
        finally:  # values computed before an interruption are kept
            keep(last=True)
            if same and symmetric:
                _mirror_into_gaps(K)
            if store is not None and todo.any():
                first, second = keys
                items = [*kept_items(first, rows), *kept_items(second, columns)]
                store.write(first, second, K, items)
                if symmetric and not same:
                    store.write(second, first, K.T)
        return K

    def _store(
        self, memory: Memory | None, rows: NDArray, columns: NDArray, symmetric: bool
    ) -> tuple[PairStore | None, list]:
        """The store for values of these items, None if they are not kept, and the keys of rows and columns."""
        capacity = most_items()
        if memory is None or len(rows) + len(columns) > 2 * capacity:
            return None, []
        first = item_keys(rows)
        second = first if columns is rows else item_keys(columns)
        if first is None or second is None or len({*first, *second}) > capacity:
            return None, []
        name = type(self).__name__
        if self.version is not None:
            name = f"{name}, version {self.version}"
        return memory.store(name, symmetric), [first, second]

    def _folder(
        self, memory: Memory | None, rows: NDArray, columns: NDArray, symmetric: bool, numbers: Any
    ) -> "_FolderOfItems | None":
        """The folder for values of these items, None if they are not kept on disk."""
        if isinstance(self.cache, bool):
            return None
        fingerprint = memory.fingerprint if memory is not None else None
        if fingerprint is None:
            if self.version is None:
                raise ValueError(
                    "What the kernel function depends on cannot be written down, so that a later "
                    "run could not tell whether it is the same; pass version='1', and another one "
                    "whenever it changes."
                )
            fingerprint = "not known"
        first = stable_keys(rows)
        second = first if columns is rows else stable_keys(columns)
        values = ValueFolder(self.cache, fingerprint, self.version or "")

        def has_changed(known: NDArray) -> bool:
            return self._has_changed(rows, columns, [first, second], known, numbers)

        return _FolderOfItems(values, first, second, symmetric, has_changed)

    def _identity(self) -> Any:
        """The object on which the values depend."""
        return self.function

    def _has_changed(
        self, rows: NDArray, columns: NDArray, keys: list, known: NDArray, numbers: Any
    ) -> bool:
        """Whether the function's values differ, beyond its noise, from known ones of pairs drawn anew every time.

        A fingerprint of the function detects most changes (`memo.state_of`); this is for those out of its reach. Pairs
        of different items are preferred: the value of an item with itself is often 1, whatever the function.
        """
        is_known = ~np.isnan(known)
        if not is_known.any():
            return False
        number_of = {key: number for number, key in enumerate({*keys[0], *keys[1]})}
        first, second = (np.array([number_of[key] for key in side]) for side in keys)
        places = np.flatnonzero(is_known & (first[:, None] != second))
        if not len(places):
            places = np.flatnonzero(is_known)
        n_drawn = 5 + len(rows) // 20
        drawn = np.unique(places[self._draws.integers(len(places), size=n_drawn)])
        i, j = np.unravel_index(drawn, known.shape)
        pairs = rows[i], columns[j], np.column_stack([numbers[0][i], numbers[1][j]])
        before = known[i, j]
        now = self._compare(*pairs)
        rounding = SYMMETRY_RTOL * _largest(before, now)
        if _agree(before, now, rounding):
            return False
        noise = _differences(self._compare(*pairs), now).max()
        return bool(_differences(before, now).max() > 10.0 * max(noise, rounding))

    def _fill(
        self,
        K: NDArray,
        todo: NDArray,
        rows: NDArray,
        columns: NDArray,
        numbers: Any,
        keep: Callable[[], None],
    ) -> None:
        """Compute the entries of K where `todo`; `keep` is called whenever some are done."""
        raise NotImplementedError

    def _compare(self, A: NDArray, B: NDArray, numbers: NDArray) -> NDArray:
        """The function's values for pairs of items with these numbers, without looking them up."""
        raise NotImplementedError


@dataclass
class _FolderOfItems:
    """A folder of values, for the rows and columns of one matrix."""

    values: ValueFolder
    rows: list[bytes]
    columns: list[bytes]
    symmetric: bool
    has_changed: Callable[[NDArray], bool]
    last_written: float = field(default_factory=perf_counter)

    def read_into(self, K: NDArray, todo: NDArray) -> None:
        """Fill in the known ones of the requested entries; raise ValueError if the function now differs from them."""
        known = self.values.read(self.rows, self.columns, self.symmetric)
        if self.has_changed(known):
            raise ValueError(
                "The kernel function returns other values than those in "
                f"{str(self.values.folder)!r}; "
                "it has changed, so give another folder as cache, or another version."
            )
        np.copyto(K, known, where=todo)

    def write_from(self, K: NDArray, unsaved: NDArray, last: bool = False) -> None:
        """Write the entries of K that are known by now and still unsaved, once a second and the `last` time."""
        if not last and perf_counter() - self.last_written < 1.0:
            return
        i, j = np.nonzero(unsaved & ~np.isnan(K))
        if len(i):
            first = [self.rows[a] for a in i]
            second = [self.columns[b] for b in j]
            self.values.write(first, second, K[i, j], self.symmetric)
            unsaved[i, j] = False
        self.last_written = perf_counter()


def _keep_nothing(last: bool = False) -> None:
    """For values that are not kept on disk."""


def _order_by_content(items: NDArray) -> NDArray:
    """An order of the items that depends on their content only; as given if their content has no digest."""
    keys = item_keys(items)
    if keys is None:
        return np.arange(len(items))
    return np.array(sorted(range(len(items)), key=lambda i: (_digest(keys[i]), i)))


def _digest(key: Any) -> bytes:
    """The part of an item's key that is the same in every run."""
    return key[0] if isinstance(key, tuple) else key


def _mirror_into_gaps(K: NDArray, side: int = 264) -> None:
    """Replace the NaN entries of a square matrix by those of its transpose, tile by tile."""
    starts = range(0, len(K), side)
    for a in starts:
        for b in starts:
            tile = K[a : a + side, b : b + side]
            gaps = np.isnan(tile)
            if gaps.any():
                mirrored = K[b : b + side, a : a + side].T
                np.copyto(tile, mirrored.copy(), where=gaps)


def _agree(a: NDArray, b: NDArray, tolerance: float) -> bool:
    return bool(np.all(_differences(a, b) <= tolerance))


def _differences(a: NDArray, b: NDArray) -> NDArray:
    """Absolute differences; none between two gaps, infinite between a gap and a number."""
    both_gaps = (a == GAP) & (b == GAP)
    return np.abs(np.where(both_gaps, 0.0, a) - np.where(both_gaps, 0.0, b))


def _largest(a: NDArray, b: NDArray) -> float:
    """The largest absolute value, gaps left out."""
    both = np.abs([a, b])
    return float(both.max(initial=0.0, where=np.isfinite(both)))


def is_symmetric(
    kernel: _OfItems, items: NDArray, pairs: NDArray, there: NDArray, back: NDArray
) -> bool:
    """Whether both directions of these pairs agree, up to rounding or up to the function's own noise."""
    rounding = SYMMETRY_RTOL * _largest(there, back)
    if _agree(there, back, rounding):
        return True

    def compare_again(n_pairs: int) -> NDArray:
        i, j = pairs[:n_pairs].T
        return kernel._compare(items[i], items[j], pairs[:n_pairs])

    if _agree(compare_again(5), there[:5], rounding):
        return False  # not noisy, so the directions do differ
    again = compare_again(30)
    changes = _differences(again, there[:30])
    noise = np.sqrt(np.mean(changes**2))
    difference = np.sqrt(np.mean(_differences(there, back) ** 2))
    if difference > 1.5 * noise:
        return False
    k = int(np.argmax(changes))
    warn(
        f"The kernel function is noisy: for items {pairs[k, 0]} and {pairs[k, 1]} it returned "
        f"{there[k]:.6g} and then {again[k]:.6g}. Every pair is compared once, for both "
        "directions; direction='mean' averages two comparisons in estimators that have it."
    )
    return True


class PairFunction(_OfItems):
    """A kernel from any function of two items: rows, strings, series, graphs.

    Parameters
    ----------
    function : callable
        Takes two items and returns a number, or None for a pair that cannot be compared, which becomes NaN in the
        matrix. With `batch` it takes a list of pairs and returns one of these for every pair.
    symmetric : bool or None, default=None
        Whether ``function(a, b) == function(b, a)``; then a square matrix costs half the calls. None tries up to 100
        pairs in both directions; if any differ by more than rounding and noise, the function is called for both
        directions of all pairs.
    n_jobs : int or None, default=None
        How many `joblib` workers call the function, once that is estimated to be faster.
    cache : bool, str or path-like, default=True
        Whether values are kept for later calls with the same items, in other folds, candidates and fits of this
        process: of the most recent 5792 items, fewer if memory is short. Items are identified by their content. Values
        are forgotten as soon as anything that the function names has changed (its code, defaults, closure, globals, and
        those of the functions and classes it uses), and not kept if that cannot be detected. To detect other changes,
        such as in files, a few known pairs are compared again every time; pass False if the function depends on them.
        With a folder's path, values are kept there as well, once a second: later runs and other processes do not
        compute them again. A folder of another function or `version` raises an error.
    progress : bool, default=False
        Whether the progress of a long matrix is printed to standard error every other second. Comparisons that take
        more than a minute print it four times a minute anyway.
    batch : int or None, default=None
        The number of pairs per call of a function that takes a list of pairs, as remote services do.
    version : str or None, default=None
        For `cache` in a folder: change it whenever the function changes in a way that its code does not show, such as
        another model behind a service.

    See Also
    --------
    MatrixFunction : For a function of two lists.

    Notes
    -----
    Computed values are kept if the function raises or the user interrupts: the next call continues from there.

    Examples
    --------
    >>> from mercerless.kernels import PairFunction
    >>> common = PairFunction(lambda a, b: len(set(a) & set(b)))
    >>> common(["cat", "dog", "coat"])
    array([[3., 0., 3.],
           [0., 3., 1.],
           [3., 1., 4.]])
    """

    #: Seconds until other processes have started and loaded what they need.
    _worker_start = 3.0

    def __init__(
        self,
        function: Callable[..., Any],
        symmetric: bool | None = None,
        n_jobs: int | None = None,
        cache: bool | str | PathLike = True,
        progress: bool = False,
        batch: int | None = None,
        version: str | None = None,
    ):
        super().__init__(function, symmetric, cache, progress)
        self.n_jobs = n_jobs
        self.batch = batch
        self.version = version

    def _check_function(self, items: NDArray) -> None:
        check_number("batch", self.batch, whole=True, none=True)
        if self.batch is not None and effective_n_jobs(self.n_jobs) > 1:
            raise ValueError(
                "A kernel function with batch is called with one list after another; pass "
                "n_jobs=None, and use threads or requests at the same time inside the function."
            )

    def _fill(self, K, todo, rows, columns, numbers, keep):
        meter = Meter(int(todo.sum()), self.progress)
        if self.batch is not None:
            return self._fill_in_batches(K, todo, rows, columns, numbers, keep, meter)
        n_jobs = effective_n_jobs(self.n_jobs)
        size = 1
        for i in np.flatnonzero(todo.any(axis=1)):
            remaining = np.flatnonzero(todo[i])
            while len(remaining):
                saved_by_workers = meter.left() * (1 - 1 / n_jobs)
                if n_jobs > 1 and meter.elapsed() > 0.3 and saved_by_workers > self._worker_start:
                    todo = todo & np.isnan(K)
                    return self._fill_in_parallel(
                        K, todo, rows, columns, numbers, n_jobs, keep, meter
                    )
                start = perf_counter()
                batch = remaining[:size]
                values, error = _call_row(self.function, rows[i], columns[batch])
                K[i, batch[: len(values)]] = np.where(_is_value(values), values, np.nan)
                if error is not None:
                    raise _failure(error, numbers[0][i], numbers[1][batch[len(values)]]) from error
                _check_finite(values, numbers[0][i], numbers[1][batch])
                meter.advance(len(batch))
                keep()
                # as many at a time as take a tenth of a second
                size = 2 * size if perf_counter() - start < 0.1 else max(1, size // 2)
                remaining = remaining[len(batch) :]

    def _fill_in_parallel(
        self,
        K: NDArray,
        todo: NDArray,
        rows: NDArray,
        columns: NDArray,
        numbers: Any,
        n_jobs: int,
        keep: Callable[[], None],
        meter: "Meter",
    ) -> None:
        """Tiles of about a second's work, so that few items travel; every finished batch of tiles is kept."""
        side = max(2, int(np.sqrt(meter.rate())))
        tiles = [
            np.ix_(np.arange(a, min(a + side, K.shape[0])), np.arange(b, min(b + side, K.shape[1])))
            for a in range(0, K.shape[0], side)
            for b in range(0, K.shape[1], side)
        ]
        tiles = [tile for tile in tiles if todo[tile].any()]
        with Parallel(n_jobs=n_jobs) as workers:
            for start in range(0, len(tiles), 8 * n_jobs):
                batch = tiles[start : start + 8 * n_jobs]
                results = workers(
                    delayed(with_settings(_call_tile))(
                        self.function, rows[t[0].ravel()], columns[t[1].ravel()], todo[t]
                    )
                    for t in batch
                )
                for tile, (values, _) in zip(batch, results):
                    K[tile] = np.where(np.isnan(values), K[tile], values)
                for tile, (_, error) in zip(batch, results):
                    if error is not None:
                        message, a, b = error
                        i = numbers[0][tile[0][a, 0]]
                        j = numbers[1][tile[1][0, b]]
                        raise ValueError(f"The kernel function {message} for items {i} and {j}.")
                    meter.advance(int(todo[tile].sum()))
                keep()

    def _fill_in_batches(self, K, todo, rows, columns, numbers, keep, meter):
        """Call the function with lists of pairs."""
        places = np.argwhere(todo)
        for some in row_blocks(len(places), 1.0, self.batch or 1):
            i, j = places[some].T
            pairs = np.column_stack([numbers[0][i], numbers[1][j]])
            K[i, j] = self._call_batch(rows[i], columns[j], pairs)
            meter.advance(len(i))
            keep()

    def _call_batch(self, A: NDArray, B: NDArray, numbers: NDArray) -> NDArray:
        """The values of at most `batch` pairs whose items have these numbers."""
        pairs = list(zip(A, B))
        ends = f"items {_pair(numbers[0])} to {_pair(numbers[-1])}"
        try:
            values = list(self.function(pairs))
        except Exception as error:
            raise ValueError(
                f"The kernel function raised {type(error).__name__} ({error}) for the "
                f"{len(pairs)} pairs of {ends}."
            ) from error
        if len(values) != len(pairs):
            raise ValueError(
                f"The kernel function returned {len(values)} values for the {len(pairs)} pairs of "
                f"{ends}; it must return one for every pair."
            )
        out = np.empty(len(pairs))
        for k, (i, j) in enumerate(numbers):
            try:
                out[k] = _number(values[k])
            except Exception as error:
                raise _failure(error, i, j) from error
            _check_finite(out[k : k + 1], i, [j])
        return out

    def _compare(self, A: NDArray, B: NDArray, numbers: NDArray) -> NDArray:
        out = np.empty(len(A))
        batch = self.batch
        if batch is not None:
            for some in row_blocks(len(A), 1.0, batch):
                out[some] = self._call_batch(A[some], B[some], numbers[some])
            return out
        for k, (i, j) in enumerate(numbers):
            values, error = _call_row(self.function, A[k], B[k : k + 1])
            if error is not None:
                raise _failure(error, i, j) from error
            _check_finite(values, i, [j])
            out[k] = values[0]
        return out


def _call_row(function: Callable, x: Any, others: Any) -> tuple[NDArray, Exception | None]:
    """Values of one item with others, up to the first error."""
    values: list[Any] = []
    failure: Exception | None = None
    try:
        values.extend(map(function, repeat(x), others))  # which keeps the values before an error
    except Exception as error:
        failure = error
    if all(type(value) is float for value in values) and GAP not in values:
        return np.array(values, dtype=float), failure
    numbers: list[float] = []
    try:
        for value in values:
            numbers.append(_number(value))
    except Exception as error:
        failure = error
    return np.array(numbers, dtype=float), failure


def _number(value: Any) -> float:
    """The returned value as a number, GAP for None."""
    if value is None:
        return GAP
    if np.ndim(value):
        if np.size(value) == 1:
            return _number(np.reshape(value, ())[()])
        raise TypeError(
            f"it returned an array of shape {np.shape(value)}; use MatrixFunction if it takes two "
            "lists"
        )
    number = float(value)
    if number == GAP:
        raise ValueError("it returned -inf, which is not a finite number")
    return number


def _is_value(values: NDArray) -> NDArray:
    """Whether values are finite numbers, or gaps."""
    return np.isfinite(values) | (values == GAP)


def _pair(numbers: NDArray) -> str:
    return f"({numbers[0]}, {numbers[1]})"


def _call_tile(
    function: Callable, rows: NDArray, columns: NDArray, todo: NDArray
) -> tuple[NDArray, Any]:
    """In a worker: a tile of values, NaN if not requested, and an error's message and place, if any."""
    out = np.full(todo.shape, np.nan)
    for a, x in enumerate(rows):
        requested = np.flatnonzero(todo[a])
        values, error = _call_row(function, x, columns[requested])
        out[a, requested[: len(values)]] = values
        bad = np.flatnonzero(~_is_value(values))
        if len(bad):
            out[a, ~_is_value(out[a])] = np.nan
            message = f"returned {values[bad[0]]}, which is not a finite number,"
            return out, (message, a, requested[bad[0]])
        if error is not None:
            return out, (f"raised {type(error).__name__} ({error})", a, requested[len(values)])
    return out, None


def _failure(error: Exception, i: int, j: int) -> ValueError:
    return ValueError(
        f"The kernel function raised {type(error).__name__} ({error}) for items {i} and {j}."
    )


def _check_finite(values: NDArray, i: int, columns: Any) -> None:
    """Raise ValueError if a value of this row is neither finite nor a gap."""
    bad = np.flatnonzero(~_is_value(values))
    if len(bad):
        raise ValueError(
            f"The kernel function returned {values[bad[0]]} for items {i} and {columns[bad[0]]}; "
            "it must return finite numbers."
        )


class MatrixFunction(_OfItems):
    """A kernel from a function of two lists that returns the matrix of all pairs, as many packages offer.

    Examples are ``scipy.spatial.distance.cdist``, rapidfuzz's ``process.cdist``, aeon's pairwise distances, POT's
    ``ot.dist`` and the ``evaluate`` of quantum kernels.

    Parameters
    ----------
    function : callable
        Takes two lists of items (arrays, for rows of a table of numbers) and returns an array with a row per item of
        the first and a column per item of the second. A value must depend on its two items only.
    symmetric : bool or None, default=None
        Whether ``function(A, B)`` is the transpose of ``function(B, A)``; then a square matrix costs half the
        comparisons. None tries it on up to 14 items.
    cache, progress : bool or path, bool
        As for `PairFunction`.

    See Also
    --------
    PairFunction : For a function of two items.

    Notes
    -----
    The matrix is computed in blocks of rows, which grow as long as one takes less than half a second. Computed values
    are kept if the function raises or the user interrupts.

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

    def _check_function(self, items: NDArray) -> None:
        """Raise ValueError if the value for two items depends on the others in the lists."""
        items = items[:3]
        together = self._block(items, items)
        alone = self._block(items[:1], items[-1:])
        rounding = SYMMETRY_RTOL * np.abs(together).max()
        if _agree(together[:1, -1:], alone, rounding):
            return
        again = self._block(items, items)
        if _agree(together, again, rounding):  # it is not just noise
            raise ValueError(
                f"The kernel function of two lists gives items 0 and {len(items) - 1} the value "
                f"{together[0, -1]:.6g} among {len(items)} items and {alone[0, 0]:.6g} alone; "
                "a value must depend on its two items only."
            )

    def _some_pairs(self, items: NDArray) -> NDArray:
        chosen = _order_by_content(items)[:14]
        return chosen[np.column_stack(np.triu_indices(len(chosen), 1))]

    def _fill(self, K, todo, rows, columns, numbers, keep):
        meter = Meter(int(todo.sum()), self.progress)
        size = 4
        remaining = np.flatnonzero(todo.any(axis=1))
        while len(remaining):
            start = perf_counter()
            i = remaining[:size]
            j = np.flatnonzero(todo[i].any(axis=0))
            if not self._in_rectangles and not todo[np.ix_(i, j)].all():
                i = remaining[:1]
                j = np.flatnonzero(todo[i[0]])
            values = self._block(rows[i], columns[j], numbers[0][i], numbers[1][j])
            if len(i) == i[-1] - i[0] + 1 and len(j) == j[-1] - j[0] + 1:  # without holes
                block: Any = (slice(i[0], i[-1] + 1), slice(j[0], j[-1] + 1))
                np.copyto(K[block], values, where=todo[block])
            else:
                block = np.ix_(i, j)
                K[block] = np.where(todo[block], values, K[block])
            meter.advance(int(todo[block].sum()))
            keep()
            size = 2 * size if perf_counter() - start < 0.5 else max(1, size // 2)
            remaining = remaining[len(i) :]

    def _compare(self, A: NDArray, B: NDArray, numbers: NDArray) -> NDArray:
        out = np.empty(len(A))
        for k, (i, j) in enumerate(numbers):
            out[k] = self._block(A[[k]], B[[k]], [i], [j])[0, 0]
        return out

    def _block(
        self, rows: NDArray, columns: NDArray, numbers: Any = None, others: Any = None
    ) -> NDArray:
        """The function's finite values for two lists whose items have these numbers."""
        if numbers is None:
            numbers = range(len(rows))
        if others is None:
            others = range(len(columns))
        A, B = (items if items.ndim == 2 else list(items) for items in (rows, columns))
        try:
            values = np.asarray(self.function(A, B), dtype=float)
        except ImportError:
            raise
        except Exception as error:
            raise ValueError(
                f"The kernel function raised {type(error).__name__} ({error}) for the lists of "
                f"items {numbers[0]} to {numbers[-1]} and {others[0]} to {others[-1]}."
            ) from error
        if values.shape != (len(rows), len(columns)):
            raise ValueError(
                f"The kernel function returned shape {values.shape} for lists of {len(rows)} and "
                f"{len(columns)} items; it must return a row for every item of the first and a "
                "column for every item of the second."
            )
        if not np.all(np.isfinite(values)):
            values[values == GAP] = np.inf  # only functions of pairs have gaps
            a, b = np.argwhere(~np.isfinite(values))[0]
            _check_finite(values[a, b : b + 1], numbers[a], [others[b]])
        return values


class Strings(MatrixFunction):
    """A similarity of strings by name, computed by `rapidfuzz <https://rapidfuzz.github.io/RapidFuzz/>`_.

    All are normalized: 1 for equal strings, 0 for strings with nothing in common. None is positive definite. Estimators
    also take the name alone as ``kernel``.

    Parameters
    ----------
    similarity : str, default="levenshtein"
        ``"levenshtein"``, ``"indel"``, ``"osa"``, ``"lcs"``, ``"hamming"``, ``"jaro"`` or ``"jaro_winkler"``.
    n_jobs : int or None, default=None
        How many threads compare.

    Notes
    -----
    Values of short strings (at most 64 letters, but for one in twenty) are not kept: comparing them again takes ten
    nanoseconds, less than looking them up.

    Examples
    --------
    >>> from mercerless.kernels import Strings
    >>> Strings("levenshtein")(["cat", "cart", "dog"]).round(2)
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    symmetric = True  # type: ignore[assignment]
    cache = True
    progress = False

    def __init__(self, similarity: str = "levenshtein", n_jobs: int | None = None):
        self.similarity = similarity
        self.n_jobs = n_jobs

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        same = Y is None or Y is X
        rows = as_items(X)
        columns = rows if same else as_items(Y)
        self._check_function(rows)
        self._check_strings(columns, range(len(columns)))
        if not (_are_short(rows) and _are_short(columns)):
            return super().__call__(X, Y)
        K = self._whole(rows, columns)
        if same and self.similarity.startswith("jaro"):  # whose directions may differ
            _mirror_upper(K)
        return K

    def _whole(self, rows: NDArray, columns: NDArray, n_pairs: int = 2**22) -> NDArray:
        """All values, by one call of rapidfuzz for every `n_pairs` of them, without looking any up."""
        blocks = list(row_blocks(len(rows), len(columns), n_pairs))
        numbers = np.arange(len(rows))
        if len(blocks) == 1:
            return self._block(rows, columns)
        meter = Meter(len(rows) * len(columns), self.progress)
        K = np.empty((len(rows), len(columns)))
        for some in blocks:
            K[some] = self._block(rows[some], columns, numbers[some])
            meter.advance(K[some].size)
        return K

    def _check_function(self, items: NDArray) -> None:
        import_optional("rapidfuzz", "strings", "Comparing strings")
        check_option("similarity", self.similarity, STRING_SIMILARITIES)
        self._check_strings(items, range(len(items)))

    def _check_strings(self, items: NDArray, numbers: Any) -> None:
        """Raise ValueError for items that are not strings; rapidfuzz would compare None, bytes and lists as well."""
        strange = [i for i, item in enumerate(items) if not isinstance(item, str)]
        if strange:
            i = numbers[strange[0]]
            kind = type(items[strange[0]]).__name__
            raise ValueError(
                f"{self.similarity!r} compares strings, but item {i} is of type {kind}; pass a "
                "list or one column of a table, without missing ones."
            )

    def _block(
        self, rows: NDArray, columns: NDArray, numbers: Any = None, others: Any = None
    ) -> NDArray:
        if numbers is None:
            numbers = range(len(rows))
        self._check_strings(rows, numbers)
        return super()._block(rows, columns, numbers, others)

    def function(self, A: list[str], B: list[str]) -> NDArray:  # type: ignore[override]
        """The similarities of all pairs.

        Parameters
        ----------
        A, B : list of str
            The strings.

        Returns
        -------
        ndarray of shape (len(A), len(B))
            The similarities.
        """
        distance = import_optional("rapidfuzz.distance", "strings", "Comparing strings")
        process = import_optional("rapidfuzz.process", "strings", "Comparing strings")
        scorer = getattr(distance, STRING_SIMILARITIES[self.similarity]).normalized_similarity
        return process.cdist(
            A, B, scorer=scorer, dtype=np.float64, workers=effective_n_jobs(self.n_jobs)
        )

    def _identity(self) -> Any:
        return self.similarity


def _are_short(strings: NDArray, n_letters: int = 64, most_longer: float = 0.05) -> bool:
    """Whether nearly all strings fit one machine word, for which rapidfuzz compares many at a time."""
    lengths = np.fromiter(map(len, strings), dtype=int, count=len(strings))
    return bool(np.sum(lengths > n_letters) <= most_longer * len(strings))


def _mirror_upper(K: NDArray) -> None:
    """Replace the entries below the diagonal by those above it."""
    for i in range(1, len(K)):
        K[i, :i] = K[:i, i]


def recognize(function: Callable, items: Any) -> PairFunction | MatrixFunction:
    """The kernel of a function: of two lists if it returns a matrix for two lists and no number for two items."""
    items = as_items(items)
    pairwise = PairFunction(function)
    with remembering(function):
        try:
            if np.ndim(function(items[0], items[len(items) // 2])) == 0:
                return pairwise
        except Exception:  # a function of lists may raise anything for two items
            pass
        three = items[np.arange(3) % len(items)]
        try:
            MatrixFunction(function)._block(three[:2], three)
        except Exception:
            return pairwise  # it will raise again in the matrix, with the items' numbers
        return MatrixFunction(function)


class Meter:
    """Counts comparisons, estimates the time left, and prints both on request or if they take more than a minute."""

    #: Seconds for all comparisons above which progress is printed without a request.
    long = 60.0
    #: Seconds between lines, with and without a request.
    pauses = (2.0, 15.0)

    def __init__(self, total: int, verbose: bool):
        self.total = total
        self.verbose = verbose
        self.done = 0
        self.start = perf_counter()
        self.last_printed = self.start

    def advance(self, count: int) -> None:
        """Add to the number of comparisons done."""
        self.done += count
        is_long = self.elapsed() + self.left() > self.long and progress_setting() is not False
        pause = self.pauses[0] if self.verbose else self.pauses[1]
        if (self.verbose or is_long) and perf_counter() - self.last_printed > pause:
            self.last_printed = perf_counter()
            line = f"{self.done:,} of {self.total:,} comparisons, about {self.left():.0f} s left"
            print(line, file=sys.stderr, flush=True)

    def elapsed(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.start

    def rate(self) -> float:
        """Comparisons per second."""
        return self.done / max(self.elapsed(), 1e-9)

    def left(self) -> float:
        """Estimated seconds for the remaining comparisons."""
        return (self.total - self.done) / max(self.rate(), 1e-9)


def takes_objects(kernel: Kernel) -> bool:
    """Whether a kernel, or a part of it, takes any objects as items."""
    parts = [kernel, *kernel.get_params().values()]
    return any(getattr(part, "takes_objects", False) for part in parts)
