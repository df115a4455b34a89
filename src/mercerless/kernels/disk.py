"""Values of a function of two items in a folder: runs and processes share them, and an interrupted run loses none."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Marks a pair without a value in matrices in which NaN means "not known yet".
GAP = -np.inf


class ValueFolder:
    """A folder with the values of one function in one version, in a database of SQLite.

    Every access opens the database anew, so that threads, processes and forks do not share a connection. Items are
    known by a digest of their content. Of symmetric functions a value is stored once, for both directions.

    Parameters
    ----------
    folder : str or path-like
        The folder; made if it does not exist.
    fingerprint : str
        Of the function's code and of everything that it names.
    version : str
        Version of the function, as the user gave it.
    """

    def __init__(self, folder: str | os.PathLike, fingerprint: str, version: str):
        self.folder = Path(folder)
        self.fingerprint = fingerprint
        self.version = version
        self.is_checked = False

    def read(self, rows: list[bytes], columns: list[bytes], symmetric: bool) -> NDArray:
        """The values of all pairs, NaN if unknown, GAP if they have none."""
        out = np.full((len(rows), len(columns)), np.nan)
        with self._database() as database:
            numbers = dict(database.execute("SELECT key, id FROM items"))
            row_ids = np.array([numbers.get(key, -1) for key in rows], dtype=int)
            column_ids = np.array([numbers.get(key, -1) for key in columns], dtype=int)
            place_of_id = np.full(len(numbers) + 2, -1)
            used = np.unique(np.concatenate([row_ids, column_ids]))
            used = used[used >= 0]
            place_of_id[used] = np.arange(len(used))
            values = np.full((len(used), len(used)), np.nan)
            query = f"SELECT second, value FROM {_table(symmetric)} WHERE first = ?"
            for place, number in enumerate(used.tolist()):
                for other, value in database.execute(query, (number,)):
                    column = place_of_id[other]
                    if column >= 0:
                        values[place, column] = GAP if value is None else value
        if symmetric:
            values = np.where(np.isnan(values), values.T, values)
        i = np.flatnonzero(row_ids >= 0)
        j = np.flatnonzero(column_ids >= 0)
        places = np.ix_(place_of_id[row_ids[i]], place_of_id[column_ids[j]])
        out[np.ix_(i, j)] = values[places]
        return out

    def write(
        self, first: list[bytes], second: list[bytes], values: NDArray, symmetric: bool
    ) -> None:
        """Keep the values of pairs, GAP for those that have none."""
        with self._database() as database:
            new = [(key,) for key in {*first, *second}]
            database.executemany("INSERT OR IGNORE INTO items (key) VALUES (?)", new)
            numbers = dict(database.execute("SELECT key, id FROM items"))
            pairs = []
            for a, b, value in zip(first, second, values.tolist()):
                pair = (numbers[a], numbers[b])
                if symmetric:
                    pair = (min(pair), max(pair))
                pairs.append((*pair, None if value == GAP else value))
            database.executemany(
                f"INSERT OR REPLACE INTO {_table(symmetric)} VALUES (?, ?, ?)", pairs
            )

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """The open database, in one transaction; raises ValueError for that of another function or version."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.folder / "values.sqlite", timeout=60.0)) as database:
                with database:
                    if not self.is_checked:
                        self._check(database)
                    yield database
        except (OSError, sqlite3.Error) as error:
            raise ValueError(
                f"The folder {str(self.folder)!r} cannot keep comparisons ({error}); give another "
                "one as cache."
            ) from error

    def _check(self, database: sqlite3.Connection) -> None:
        """Make the tables of a new database; raise ValueError for that of another function or version."""
        tables = (
            "about (name TEXT PRIMARY KEY, value TEXT)",
            # never AUTOINCREMENT: numbers stay dense
            "items (id INTEGER PRIMARY KEY, key BLOB UNIQUE)",
            f"{_table(True)} (first, second, value REAL, PRIMARY KEY (first, second)) WITHOUT "
            "ROWID",
            f"{_table(False)} (first, second, value REAL, PRIMARY KEY (first, second)) WITHOUT "
            "ROWID",
        )
        for table in tables:
            database.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        about = [("function", self.fingerprint), ("version", self.version)]
        database.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", about)
        stored = dict(database.execute("SELECT name, value FROM about"))
        if stored["version"] != self.version:
            raise ValueError(
                f"The folder {str(self.folder)!r} holds comparisons of version "
                f"{stored['version']!r} of the function, not {self.version!r}; give another folder "
                "as cache."
            )
        if stored["function"] != self.fingerprint:
            raise ValueError(
                f"The folder {str(self.folder)!r} holds comparisons of another function, or the "
                "function or what it names has changed since; give another folder as cache."
            )
        self.is_checked = True


def _table(symmetric: bool) -> str:
    return "both_directions" if symmetric else "one_direction"
