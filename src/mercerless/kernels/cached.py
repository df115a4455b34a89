"""Keep the values of a slow function of two items: in memory, or in a file that runs and processes share."""

import os
import pickle
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray

Pair = tuple[bytes, bytes]


class Cached:
    """A function of two items that computes every pair once.

    Nothing else in this library keeps values from one fit to the next. Pass it to `PairFunction`, or as ``kernel``,
    in place of the function.

    Parameters
    ----------
    function : callable
        Takes two items and returns a number, or None for a pair without a value.
    folder : path-like or None, default=None
        Where to keep the values, in a file of SQLite: later runs and other processes do not compute them again, and an
        interruption loses a thousand values at most. None keeps them in this object.
    version : str, default="1"
        Choose another one whenever the function changes: values of other versions are not read.

    Notes
    -----
    Items are known by their content (`joblib.hash`). Copies of this object share its values.

    Examples
    --------
    >>> from mercerless.kernels import Cached, PairFunction
    >>> calls = []
    >>> common = Cached(lambda a, b: calls.append((a, b)) or len(set(a) & set(b)))
    >>> K = PairFunction(common)(["cat", "dog", "coat"])
    >>> n_calls = len(calls)
    >>> again = PairFunction(common)(["cat", "dog"], ["coat"])
    >>> len(calls) - n_calls
    0
    """

    def __init__(
        self,
        function: Callable[..., Any],
        folder: str | os.PathLike | None = None,
        version: str = "1",
    ):
        self.function = function
        self.folder = folder
        self.version = version
        self._values: dict[Pair, float | None] = {}

    def __call__(self, a: Any, b: Any) -> Any:
        """The value of one pair."""
        pair = [(digest(a), digest(b))]
        values, is_known = self.read(pair)
        if is_known[0]:
            return None if np.isnan(values[0]) else float(values[0])
        value = self.function(a, b)
        self.write(pair, np.array([np.nan if value is None else value], dtype=float))
        return value

    def read(self, pairs: Sequence[Pair]) -> tuple[NDArray, NDArray]:
        """Values of pairs of digests, NaN for those without one, and which are known."""
        values = np.full(len(pairs), np.nan)
        is_known = np.zeros(len(pairs), dtype=bool)
        if self.folder is None:
            found = [
                (k, self._values[pair]) for k, pair in enumerate(pairs) if pair in self._values
            ]
        else:
            with self._database(self.folder) as database:
                database.execute("CREATE TEMP TABLE asked (place INTEGER, first, second)")
                rows = ((place, *pair) for place, pair in enumerate(pairs))
                database.executemany("INSERT INTO asked VALUES (?, ?, ?)", rows)
                query = "SELECT place, value FROM asked JOIN pairs USING (first, second)"
                found = database.execute(f"{query} WHERE version = ?", [self.version]).fetchall()
        if found:
            places, numbers = zip(*found)
            values[list(places)] = np.array(numbers, dtype=float)
            is_known[list(places)] = True
        return values, is_known

    def write(self, pairs: Sequence[Pair], values: NDArray) -> None:
        """Keep the values of pairs of digests."""
        numbers = [None if np.isnan(value) else value for value in values.tolist()]
        if self.folder is None:
            self._values.update(zip(pairs, numbers))
            return
        with self._database(self.folder) as database:
            rows = [(self.version, *pair, number) for pair, number in zip(pairs, numbers)]
            database.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?)", rows)

    @contextmanager
    def _database(self, folder: str | os.PathLike) -> Iterator[sqlite3.Connection]:
        """The open database, in one transaction: opened anew, so that threads and processes can share the file."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(Path(folder) / "values.sqlite", timeout=60)) as database:
                with database:
                    database.execute(
                        "CREATE TABLE IF NOT EXISTS pairs (version TEXT, first BLOB, second BLOB, "
                        "value REAL, PRIMARY KEY (version, first, second)) WITHOUT ROWID"
                    )
                    yield database
        except (OSError, sqlite3.Error) as error:
            raise ValueError(
                f"Cached cannot use the folder {str(folder)!r} ({error}); give another one."
            ) from error

    def __deepcopy__(self, memo: dict) -> Self:
        return self  # scikit-learn's clones share the values

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_values": {}}


def digest(item: Any) -> bytes:
    """Sixteen bytes that stand for the content of an item."""
    try:
        return bytes.fromhex(str(joblib.hash(item)))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ValueError(
            f"An item of type {type(item).__name__} cannot be cached, as it has no content that "
            f"can be written down ({error}); pass the function without Cached."
        ) from None
