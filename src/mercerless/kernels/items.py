"""Kernels of any objects: a function of two items, a function of two lists, similarities of strings by name."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from mercerless.core.memory import with_settings
from mercerless.core.optional import import_optional
from mercerless.core.validation import SYMMETRY_RTOL, as_items, check_option, warn
from mercerless.kernels.base import Kernel
from mercerless.kernels.memo import (
    Memory,
    PairStore,
    item_keys,
    kept_items,
    most_items,
    remembering,
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
_ASKED_AGAIN = (
    5  # known pairs that are compared again in every call, and one more for every 20 items
)
_DRAWS = np.random.default_rng(
    0
)  # which ones; no result depends on it unless the function has changed
_WORKER_START = 3.0  # seconds until other processes have started and loaded what they need


class _OfItems(Kernel):
    """What kernels of any objects share: items in, known values looked up, the others computed and kept.

    A subclass has the parameters ``function``, ``symmetric``, ``cache`` and ``progress``, and implements `_fill` and
    `_compare`.
    """

    takes_objects = True
    cache: bool = True
    progress: bool = False

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        symmetric: bool | None = None,
        cache: bool = True,
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
        symmetric = self.checked(rows).symmetric if same else self.symmetric
        wanted = None
        if same and symmetric:
            wanted = np.triu(np.ones((len(rows), len(rows)), dtype=bool))
        with self._remembering() as memory:
            return self._matrix(memory, rows, columns, bool(symmetric), wanted)

    def diag(self, X: Any) -> NDArray:
        items = as_items(X)
        with self._remembering() as memory:
            store, keys = self._store(memory, items, items[:0], bool(self.symmetric))
            diagonal = np.full(len(items), np.nan)
            if memory is not None and store is not None:
                some = _DRAWS.permutation(len(items))[:100]
                drawn = [keys[0][k] for k in some]
                known = store.read(drawn, drawn)
                if self._has_changed(items[some], items[some], [drawn, drawn], known, (some, some)):
                    memory.clear()
                diagonal = store.read_diagonal(keys[0])
            todo = np.flatnonzero(np.isnan(diagonal))
            diagonal[todo] = self._compare(items[todo], items[todo], np.column_stack([todo, todo]))
        return diagonal

    def checked(self, X: Any) -> Self:
        """This kernel with `symmetric` known, if it takes the items.

        Parameters
        ----------
        X : sequence
            The items to try the function on.

        Returns
        -------
        Kernel
            Itself where `symmetric` is given, else a copy that says what was found.
        """
        items = as_items(X)
        with self._remembering() as memory:
            self._refuse(items)
            if self.symmetric is not None:
                return self
            pairs = self._some_pairs(items)
            used, where = np.unique(pairs, return_inverse=True)
            wanted = np.zeros((len(used), len(used)), dtype=bool)
            i, j = where.reshape(pairs.shape).T
            wanted[i, j] = wanted[j, i] = True
            subset = items[used]
            sample = self._matrix(memory, subset, subset, False, wanted, (used, used))
            symmetric = is_symmetric(self, items, pairs, sample[i, j], sample[j, i])
        return type(self)(**self.get_params(deep=False) | {"symmetric": symmetric})

    def _refuse(self, items: NDArray) -> None:
        """Raise ValueError where the function cannot be that of a kernel of these items."""

    def _some_pairs(self, items: NDArray) -> NDArray:
        """At most 100 pairs of different items: the same for the same items, most of them for a part of the items."""
        n = len(items)
        if n <= 14:
            return np.column_stack(np.triu_indices(n, 1))
        keys = item_keys(items)
        order = (
            np.arange(n)
            if keys is None
            else np.array(sorted(range(n), key=lambda i: (_digest(keys[i]), i)))
        )
        steps = range(1, n)
        pairs = np.concatenate(
            [np.column_stack([order[:-s], order[s:]])[:100] for s in steps[: 100 // n + 2]]
        )
        return pairs[:100]

    def _remembering(self) -> AbstractContextManager[Memory | None]:
        """Where values may be kept: nowhere without `cache`."""
        return remembering(self._identity()) if self.cache else nullcontext()

    def _matrix(
        self,
        memory: Memory | None,
        rows: NDArray,
        columns: NDArray,
        symmetric: bool,
        wanted: NDArray | None = None,
        numbers: Any = None,
    ) -> NDArray:
        """The matrix, or its wanted entries; with `symmetric`, an entry serves both directions.

        `numbers` are those of the items, for messages.
        """
        same = columns is rows
        numbers = (np.arange(len(rows)), np.arange(len(columns))) if numbers is None else numbers
        store, keys = self._store(memory, rows, columns, symmetric)
        K = np.full((len(rows), len(columns)), np.nan)
        if memory is not None and store is not None:
            K = store.read(*keys)
            if self._has_changed(rows, columns, keys, K, numbers):
                memory.clear()
                K[:] = np.nan
        todo = np.isnan(K) if wanted is None else np.isnan(K) & wanted
        try:
            if todo.any():
                self._fill(K, todo, rows, columns, numbers)
        finally:  # what is done is kept, whatever interrupts
            if same and symmetric:
                gaps = np.isnan(K)
                K[gaps] = K.T[gaps]
            if store is not None and todo.any():
                first, second = keys
                store.write(
                    first, second, K, [*kept_items(first, rows), *kept_items(second, columns)]
                )
                if symmetric and not same:
                    store.write(second, first, K.T)
        return K

    def _store(
        self, memory: Memory | None, rows: NDArray, columns: NDArray, symmetric: bool
    ) -> tuple[PairStore | None, list]:
        """Where values of these items are kept, and the items' keys; None if they are not."""
        if memory is None or len(rows) + len(columns) > 2 * most_items():
            return None, []
        first = item_keys(rows)
        second = first if columns is rows else item_keys(columns)
        if first is None or second is None or len({*first, *second}) > most_items():
            return None, []
        return memory.store(type(self).__name__, symmetric), [first, second]

    def _identity(self) -> Any:
        """What the values depend on."""
        return self.function

    def _has_changed(
        self, rows: NDArray, columns: NDArray, keys: list, known: NDArray, numbers: Any
    ) -> bool:
        """Whether the function's values differ, beyond its noise, from known ones of pairs drawn anew every time.

        A fingerprint of the function sees most changes (`memo.state_of`); this is for those out of its reach. Pairs of
        different items come first: what an item has with itself is often 1, whatever the function.
        """
        is_known = ~np.isnan(known)
        number_of = {key: number for number, key in enumerate({*keys[0], *keys[1]})}
        first, second = (np.array([number_of[key] for key in side]) for side in keys)
        places = np.flatnonzero(is_known & (first[:, None] != second))
        if not len(places):
            places = np.flatnonzero(is_known)
        if not len(places):
            return False
        n_asked = _ASKED_AGAIN + len(rows) // 20
        drawn = np.unique(places[_DRAWS.integers(len(places), size=n_asked)])
        i, j = np.unravel_index(drawn, known.shape)
        asked = rows[i], columns[j], np.column_stack([numbers[0][i], numbers[1][j]])
        before = known[i, j]
        now = self._compare(*asked)
        rounding = SYMMETRY_RTOL * np.abs([before, now]).max()
        if _agree(before, now, rounding):
            return False
        noise = np.abs(self._compare(*asked) - now).max()
        return bool(np.abs(before - now).max() > 10.0 * max(noise, rounding))

    def _fill(
        self, K: NDArray, todo: NDArray, rows: NDArray, columns: NDArray, numbers: Any
    ) -> None:
        """Compute the entries of K where `todo`."""
        raise NotImplementedError

    def _compare(self, A: NDArray, B: NDArray, numbers: NDArray) -> NDArray:
        """The function's values for pairs of items with these numbers, without looking them up."""
        raise NotImplementedError


def _digest(key: Any) -> bytes:
    """The part of an item's key that is the same in every run."""
    return key[0] if isinstance(key, tuple) else key


def _agree(a: NDArray, b: NDArray, tolerance: float) -> bool:
    return bool(np.all(np.abs(a - b) <= tolerance))


def is_symmetric(
    kernel: _OfItems, items: NDArray, pairs: NDArray, there: NDArray, back: NDArray
) -> bool:
    """Whether both directions of these pairs agree, up to rounding or up to the function's own noise."""
    rounding = SYMMETRY_RTOL * np.abs([there, back]).max(initial=0.0)
    if np.all(np.abs(there - back) <= rounding):
        return True
    few, more = ((items[some[:, 0]], items[some[:, 1]], some) for some in (pairs[:5], pairs[:30]))
    if _agree(kernel._compare(*few), there[:5], rounding):
        return False
    again = kernel._compare(*more)
    noise, gap = (np.sqrt(np.mean(d**2)) for d in (again - there[:30], there - back))
    if gap > 1.5 * noise:
        return False
    k = int(np.argmax(np.abs(again - there[:30])))
    warn(
        f"The kernel function is noisy: for items {pairs[k, 0]} and {pairs[k, 1]} it returned "
        f"{there[k]:.6g} and "
        f"then {again[k]:.6g}. Every pair is compared once, for both directions; direction='mean', "
        "where the "
        "estimator has it, averages two comparisons."
    )
    return True


class PairFunction(_OfItems):
    """A kernel from any function of two items: rows, strings, series, graphs.

    Parameters
    ----------
    function : callable
        Takes two items and returns a number.
    symmetric : bool or None, default=None
        Whether ``function(a, b) == function(b, a)``; then a square matrix costs half the calls. None tries up to 100
        pairs in both directions, and calls the function for both directions of all pairs where any differ by more than
        rounding, or than calling it twice does.
    n_jobs : int or None, default=None
        How many `joblib` workers call the function, once that is estimated to be faster.
    cache : bool, default=True
        Whether values are kept for later calls with the same items, in other folds, candidates and fits of this
        process: of the most recent 5792 items, fewer if memory is short. Items are told apart by their content. Values
        are forgotten as soon as anything that the function names has changed (its code, defaults, closure, globals, and
        those of the functions and classes it uses), and never kept if that cannot be told. For what is out of sight,
        such as files, some known pairs are compared again every time; pass False if the function depends on it.
    progress : bool, default=False
        Whether a line on standard error says every other second how far a long matrix is.

    See Also
    --------
    MatrixFunction : For a function of two lists.

    Notes
    -----
    What is computed is kept when the function raises or the user interrupts: the next call goes on from there.

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
        function: Callable[[Any, Any], float],
        symmetric: bool | None = None,
        n_jobs: int | None = None,
        cache: bool = True,
        progress: bool = False,
    ):
        super().__init__(function, symmetric, cache, progress)
        self.n_jobs = n_jobs

    def _fill(
        self, K: NDArray, todo: NDArray, rows: NDArray, columns: NDArray, numbers: Any
    ) -> None:
        n_jobs = effective_n_jobs(self.n_jobs)
        meter = Meter(int(todo.sum()), self.progress)
        size = 1
        for i in np.flatnonzero(todo.any(axis=1)):
            wanted = np.flatnonzero(todo[i])
            while len(wanted):
                if (
                    n_jobs > 1
                    and meter.elapsed() > 0.3
                    and meter.left() * (1 - 1 / n_jobs) > _WORKER_START
                ):
                    return self._fill_in_parallel(
                        K, todo & np.isnan(K), rows, columns, numbers, n_jobs, meter
                    )
                start = perf_counter()
                some = wanted[:size]
                values, error = _call_row(self.function, rows[i], [columns[j] for j in some])
                K[i, some[: len(values)]] = np.where(np.isfinite(values), values, np.nan)
                if error is not None:
                    raise _failure(error, numbers[0][i], numbers[1][some[len(values)]]) from error
                _check_finite(values, numbers[0][i], numbers[1][some])
                meter.advance(len(some))
                # as many at a time as take a tenth of a second
                size = 2 * size if perf_counter() - start < 0.1 else max(1, size // 2)
                wanted = wanted[len(some) :]

    def _fill_in_parallel(
        self,
        K: NDArray,
        todo: NDArray,
        rows: NDArray,
        columns: NDArray,
        numbers: Any,
        n_jobs: int,
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

    def _compare(self, A: NDArray, B: NDArray, numbers: NDArray) -> NDArray:
        out = np.empty(len(A))
        for k, (i, j) in enumerate(numbers):
            values, error = _call_row(self.function, A[k], [B[k]])
            if error is not None:
                raise _failure(error, i, j) from error
            _check_finite(values, i, [j])
            out[k] = values[0]
        return out


def _call_row(function: Callable, x: Any, others: list) -> tuple[list[float], Exception | None]:
    """Values of one item with others, up to the first error."""
    values: list[float] = []
    try:
        for y in others:
            value = function(x, y)
            values.append(value if type(value) is float else _number(value))
    except Exception as error:
        return values, error
    return values, None


def _number(value: Any) -> float:
    """What a function returned, as a number."""
    if np.ndim(value):
        if np.size(value) == 1:
            return float(np.reshape(value, ()))
        raise TypeError(
            f"it returned an array of shape {np.shape(value)}: say MatrixFunction if it takes two "
            "lists"
        )
    return float(value)


def _call_tile(
    function: Callable, rows: NDArray, columns: NDArray, todo: NDArray
) -> tuple[NDArray, Any]:
    """In a worker: a tile of values, NaN where not asked for, and what went wrong at which place."""
    out = np.full(todo.shape, np.nan)
    for a, x in enumerate(rows):
        wanted = np.flatnonzero(todo[a])
        values, error = _call_row(function, x, [columns[b] for b in wanted])
        out[a, wanted[: len(values)]] = values
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            out[a, ~np.isfinite(out[a])] = np.nan
            return out, (
                f"returned {values[bad[0]]}, which is no finite number,",
                a,
                wanted[bad[0]],
            )
        if error is not None:
            return out, (f"raised {type(error).__name__} ({error})", a, wanted[len(values)])
    return out, None


def _failure(error: Exception, i: int, j: int) -> ValueError:
    return ValueError(
        f"The kernel function raised {type(error).__name__} ({error}) for items {i} and {j}."
    )


def _check_finite(values: Any, i: int, columns: Any) -> None:
    """Refuse a row of values with one that is not finite."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"The kernel function returned {values[bad[0]]} for items {i} and {columns[bad[0]]}; "
            "it must return finite "
            "numbers."
        )


class MatrixFunction(_OfItems):
    """A kernel from a function of two lists that returns the matrix of all pairs, as many packages offer.

    Such are ``scipy.spatial.distance.cdist``, rapidfuzz's ``process.cdist``, aeon's pairwise distances, POT's
    ``ot.dist`` and the ``evaluate`` of quantum kernels.

    Parameters
    ----------
    function : callable
        Takes two lists of items (arrays, for rows of a table of numbers) and returns an array with a row per item of
        the first and a column per item of the second. A value must depend on its two items only.
    symmetric : bool or None, default=None
        Whether ``function(A, B)`` is the transpose of ``function(B, A)``; then a square matrix costs half the
        comparisons. None tries it on up to 14 items.
    cache, progress : bool
        As for `PairFunction`.

    See Also
    --------
    PairFunction : For a function of two items.

    Notes
    -----
    The matrix is asked for in blocks of rows, which grow as long as one takes less than half a second. What is computed
    is kept when the function raises or the user interrupts.

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

    def _refuse(self, items: NDArray) -> None:
        """Refuse a function whose value for two items depends on the others in the lists."""
        items = items[:3]
        together = self._block(items, items)
        alone = self._block(items[:1], items[-1:])
        if not _agree(together[:1, -1:], alone, SYMMETRY_RTOL * np.abs(together).max()):
            again = self._block(items, items)
            if _agree(together, again, SYMMETRY_RTOL * np.abs(together).max()):
                raise ValueError(
                    f"The kernel function of two lists gives items 0 and {len(items) - 1} the "
                    "value "
                    f"{together[0, -1]:.6g} among {len(items)} items and {alone[0, 0]:.6g} alone; "
                    "a value must depend "
                    "on its two items only."
                )

    def _some_pairs(self, items: NDArray) -> NDArray:
        keys = item_keys(items)
        order = (
            np.arange(len(items))
            if keys is None
            else sorted(range(len(items)), key=lambda i: _digest(keys[i]))
        )
        chosen = np.array(order[:14])
        return chosen[np.column_stack(np.triu_indices(len(chosen), 1))]

    def _fill(
        self, K: NDArray, todo: NDArray, rows: NDArray, columns: NDArray, numbers: Any
    ) -> None:
        meter = Meter(int(todo.sum()), self.progress)
        size = 4
        left = np.flatnonzero(todo.any(axis=1))
        while len(left):
            start = perf_counter()
            block = left[:size]
            wanted = np.flatnonzero(todo[block].any(axis=0))
            where = np.ix_(block, wanted)
            values = self._block(
                rows[block], columns[wanted], numbers[0][block], numbers[1][wanted]
            )
            K[where] = np.where(todo[where], values, K[where])
            meter.advance(int(todo[where].sum()))
            size = 2 * size if perf_counter() - start < 0.5 else max(1, size // 2)
            left = left[len(block) :]

    def _compare(self, A: NDArray, B: NDArray, numbers: NDArray) -> NDArray:
        return np.array(
            [self._block(A[[k]], B[[k]], [i], [j])[0, 0] for k, (i, j) in enumerate(numbers)],
            dtype=float,
        )

    def _block(
        self, rows: NDArray, columns: NDArray, numbers: Any = None, others: Any = None
    ) -> NDArray:
        """The function's finite values for two lists whose items have these numbers."""
        numbers = range(len(rows)) if numbers is None else numbers
        others = range(len(columns)) if others is None else others
        A, B = (items if items.ndim == 2 else list(items) for items in (rows, columns))
        try:
            values = np.asarray(self.function(A, B), dtype=float)
        except ImportError:
            raise
        except Exception as error:
            raise ValueError(
                f"The kernel function raised {type(error).__name__} ({error}) for the lists of "
                f"items {numbers[0]} to "
                f"{numbers[-1]} and {others[0]} to {others[-1]}."
            ) from error
        if values.shape != (len(rows), len(columns)):
            raise ValueError(
                f"The kernel function returned shape {values.shape} for lists of {len(rows)} and "
                f"{len(columns)} items; "
                "it must return a row for every item of the first and a column for every item of "
                "the second."
            )
        if not np.all(np.isfinite(values)):
            a, b = np.argwhere(~np.isfinite(values))[0]
            _check_finite([values[a, b]], numbers[a], [others[b]])
        return values


class Strings(MatrixFunction):
    """A similarity of strings by name, computed by `rapidfuzz <https://rapidfuzz.github.io/RapidFuzz/>`_.

    All are normalized: 1 for equal strings, 0 for those with nothing in common. None is positive definite. As
    ``kernel=`` the name alone will do.

    Parameters
    ----------
    similarity : str, default="levenshtein"
        ``"levenshtein"``, ``"indel"``, ``"osa"``, ``"lcs"``, ``"hamming"``, ``"jaro"`` or ``"jaro_winkler"``.
    n_jobs : int or None, default=None
        How many threads compare.

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

    def _refuse(self, items: NDArray) -> None:
        import_optional("rapidfuzz", "strings", "Comparing strings")
        check_option("similarity", self.similarity, STRING_SIMILARITIES)
        self._check_strings(items, range(len(items)))

    def _check_strings(self, items: NDArray, numbers: Any) -> None:
        """Refuse what rapidfuzz would compare all the same: nothing, bytes, lists."""
        strange = [i for i, item in enumerate(items) if not isinstance(item, str)]
        if strange:
            i = numbers[strange[0]]
            kind = type(items[strange[0]]).__name__
            raise ValueError(
                f"{self.similarity!r} compares strings, but item {i} is of type {kind}; pass a "
                "list or one column of a "
                "table, without missing ones."
            )

    def _block(
        self, rows: NDArray, columns: NDArray, numbers: Any = None, others: Any = None
    ) -> NDArray:
        self._check_strings(rows, range(len(rows)) if numbers is None else numbers)
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


def recognize(function: Callable, items: Any) -> PairFunction | MatrixFunction:
    """A function as a kernel: of two lists if it does not return a number for two items but a matrix for two lists."""
    items = as_items(items)
    pairwise = PairFunction(function)
    with remembering(function):
        try:
            if np.ndim(function(items[0], items[len(items) // 2])) == 0:
                return pairwise
        except Exception:  # whatever a function of lists says to two items
            pass
        three = items[np.arange(3) % len(items)]
        try:
            MatrixFunction(function)._block(three[:2], three)
        # a function of two items tells in the matrix what is wrong, with the items' numbers
        except Exception:
            return pairwise
        return MatrixFunction(function)


class Meter:
    """Counts comparisons and tells how long the rest will take."""

    def __init__(self, total: int, tell: bool):
        self.total = total
        self.tell = tell
        self.done = 0
        self.start = self.told = perf_counter()

    def advance(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if self.tell and perf_counter() - self.told > 2.0:
            self.told = perf_counter()
            line = f"{self.done:,} of {self.total:,} comparisons, about {self.left():.0f} s left"
            print(line, file=sys.stderr, flush=True)

    def elapsed(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.start

    def rate(self) -> float:
        """Comparisons per second."""
        return self.done / max(self.elapsed(), 1e-9)

    def left(self) -> float:
        """Seconds that the rest will take."""
        return (self.total - self.done) / max(self.rate(), 1e-9)


def takes_objects(kernel: Kernel) -> bool:
    """Whether a kernel, or one that it is made of, takes any objects as items."""
    return any(
        getattr(value, "takes_objects", False) for value in [kernel, *kernel.get_params().values()]
    )
