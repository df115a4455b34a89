"""Read tables column by column: arrays, frames of pandas, polars, Arrow or Dask, and lists of dicts."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.optional import import_optional
from mercerless.core.validation import check_real

DATE = "datetime64[us]"


class Column(NamedTuple):
    """One column in memory: numbers with NaN, dates with NaT, or words with None where a value is missing."""

    name: str
    values: NDArray

    @property
    def kind(self) -> str:
        """What it holds: "number", "date" or "word"."""
        return {"f": "number", "M": "date"}.get(self.values.dtype.kind, "word")

    @property
    def is_missing(self) -> NDArray:
        """Where values are missing."""
        if self.kind == "word":
            return np.array([value is None for value in self.values], dtype=bool)
        return np.isnan(self.values)

    def as_words(self) -> NDArray:
        """The values as words."""
        if self.kind == "word":
            return self.values
        return words_of(self.values.tolist())

    def as_numbers(self) -> NDArray:
        """The values as numbers, dates as days; raises for words that are not numbers."""
        if self.kind == "number":
            return self.values
        if self.kind == "date":
            return days(self.values)
        numbers = words_as_numbers(self.values)
        words = self.values[np.isnan(numbers) & ~self.is_missing]
        if len(words):
            raise ValueError(
                f"Column {self.name!r} of X holds words, such as {words[0]!r}, but numbers when "
                "the model was fitted; convert it."
            )
        return numbers


def read_table(X: Any) -> list[Column]:
    """The columns of a table in memory."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUST":
        pandas = import_optional("pandas", extra="table", what="A table with words")
        X = pandas.DataFrame(X).add_prefix("x")
    if is_frame(X):
        return [_read_series(X.iloc[:, j], str(name)) for j, name in enumerate(X.columns)]
    rows = check_real(X, allow_nan=True)
    return [Column(f"x{j}", rows[:, j].astype(np.float64)) for j in range(rows.shape[1])]


def as_frame(X: Any) -> Any:
    """A list of dicts, and a table of polars or Arrow, as a pandas data frame; anything else as it is."""
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(row, dict) for row in X):
        pandas = import_optional("pandas", extra="table", what="A list of dicts")
        return pandas.DataFrame(list(X))
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):  # a lazy frame of polars
        X = X.collect()
    if hasattr(X, "to_pandas") and not hasattr(X, "iloc"):
        return X.to_pandas()
    return X


def is_frame(X: Any) -> bool:
    """Whether X is a data frame."""
    return hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2


def _read_series(column: Any, name: str) -> Column:
    """A column of a pandas data frame."""
    import pandas

    if not hasattr(column.dtype, "categories"):
        column = column.infer_objects()
        observed = column.dropna()
        kind = getattr(column.dtype, "kind", "O")
        if (
            kind == "O"
            and len(observed)
            and all(isinstance(v, (date, np.datetime64)) for v in observed)
        ):
            kind = "M"
        if kind == "M":
            utc = pandas.to_datetime(column, utc=True).dt.tz_localize(None)
            return Column(name, utc.to_numpy(dtype=DATE))
        if kind in "biuf" or all(isinstance(value, (Real, Decimal)) for value in observed):
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            if np.isinf(numbers).any():
                raise ValueError(
                    f"Column {name!r} of X has {np.isinf(numbers).sum()} infinite values "
                    "(infinity); make them missing or leave these rows out."
                )
            return Column(name, numbers)
        strange = [v for v in observed if not isinstance(v, (str, bytes, Real, date))]
        if strange:
            raise TypeError(
                f"Column {name!r} of X holds a {type(strange[0]).__name__}, and every argument must "
                "be a string or a number; convert it, or leave the column out."
            )
    codes, values = pandas.factorize(column)
    words = words_of([*values, None])
    return Column(name, words[codes])  # missing values have the code -1: the last


def words_of(values: Any) -> NDArray:
    """Values as words, None if they are missing or blank; whole numbers have no decimals: 1 and 1.0 are one word."""
    words = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        word = "" if value is None or value != value else str(value)
        words[i] = word if word.strip() else None
    return words


def days(dates: NDArray) -> NDArray:
    """Dates or durations as numbers of days, NaN if missing."""
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 86_400e6)


def words_as_numbers(words: Any) -> NDArray:
    """The finite numbers that words spell, NaN for others."""
    import pandas

    numbers = pandas.to_numeric(pandas.Series(words, dtype=object), errors="coerce")
    return np.where(np.isfinite(numbers), numbers, np.nan)


def spell_numbers(words: Any) -> bool:
    """Whether all words spell finite numbers."""
    return not np.isnan(words_as_numbers(words)).any()


def row_codes(columns: Sequence[Column]) -> NDArray:
    """Rows as numbers that are equal for rows of equal values."""
    codes = [
        np.array([hash(word) % 2**50 for word in column.values], dtype=float)
        if column.kind == "word"
        else np.nan_to_num(column.as_numbers(), nan=0.0)
        for column in columns
    ]
    return np.stack(codes, axis=1)


def is_lazy(X: Any) -> bool:
    """Whether X is an array or a data frame of Dask; does not import Dask."""
    return hasattr(X, "dask") and hasattr(X, "compute")


def rows_of(X: Any, places: NDArray) -> Any:
    """Some rows of a table, in memory."""
    if is_frame(X) and not is_lazy(X):
        return X.iloc[places]
    if not hasattr(X, "columns"):
        return X[places].compute() if is_lazy(X) else np.asarray(X)[places]
    import dask
    import pandas

    parts = X.to_delayed()
    starts = np.cumsum([0, *dask.compute(*map(dask.delayed(len), parts))])
    bounds = np.searchsorted(places, starts)
    subsets = [
        part.iloc[places[first:last] - start]
        for part, start, first, last in zip(parts, starts, bounds, bounds[1:])
    ]
    return pandas.concat(dask.compute(*subsets), ignore_index=True)


def lazily(method: Any, X: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Results of a method for a Dask array or frame, one block at a time; `shape` is that of one row's result."""
    import dask
    import dask.array as da

    sizes: Any = [np.nan]
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
        sizes = X.chunks[0]
    apply = dask.delayed(method, pure=False)
    parts = np.ravel(X.to_delayed())
    blocks = [
        da.from_delayed(apply(part), (size, *shape), dtype)
        for part, size in zip(parts, np.broadcast_to(sizes, len(parts)).tolist())
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)
