"""Read tables column by column: arrays, frames of pandas, polars, Arrow or Dask, and lists of dicts."""

from collections.abc import Sequence
from datetime import UTC, date
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
    has_order: bool = False  # of words: their order is that of `levels`
    levels: Sequence[str] = ()

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
        """The values as words; whole numbers have no decimals, so that 1 and 1.0 are the same word."""
        if self.kind == "word":
            return self.values
        gaps = self.is_missing
        return objects(None if gap else word_of(v) for v, gap in zip(self.values.tolist(), gaps))

    def as_numbers(self) -> NDArray:
        """The values as numbers, dates as days; raises for words that are not numbers."""
        if self.kind == "number":
            return self.values
        if self.kind == "date":
            return days(self.values)
        numbers = words_as_numbers(self.values)
        if numbers is None:
            word = next(w for w in self.values if w is not None and number_of(w) is None)
            raise ValueError(
                f"Column {self.name!r} of X holds words, such as {word!r}, but numbers when the "
                "model was fitted; convert it."
            )
        return numbers


def read_table(X: Any) -> list[Column]:
    """The columns of a table in memory."""
    if is_frame(X):
        return [_read_series(X.iloc[:, j], str(name)) for j, name in enumerate(X.columns)]
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUST" and X.ndim == 2:
        return [_read_objects(f"x{j}", list(X[:, j])) for j in range(X.shape[1])]
    rows = check_real(X, allow_nan=True)
    return [Column(f"x{j}", rows[:, j].astype(np.float64)) for j in range(rows.shape[1])]


def as_frame(X: Any, names: Sequence[str] | None = None) -> Any:
    """A list of dicts, and a table of polars or Arrow, as a pandas data frame; anything else as it is.

    A key that a dict lacks is a missing value; `names` are the columns of the training rows, which all dicts may lack.
    """
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(row, dict) for row in X):
        pandas = import_optional("pandas", extra="table", what="A list of dicts")
        frame = pandas.DataFrame(list(X))
        lacking = [name for name in names or () if name not in frame.columns]
        return frame.reindex(columns=[*frame.columns, *lacking])
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):  # a lazy frame of polars
        X = X.collect()
    if hasattr(X, "to_pandas") and not hasattr(X, "iloc"):
        return X.to_pandas()
    return X


def is_frame(X: Any) -> bool:
    """Whether X is a data frame."""
    return hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2


def is_lazy(X: Any) -> bool:
    """Whether X is an array or a data frame of Dask; does not import Dask."""
    return hasattr(X, "dask") and hasattr(X, "compute")


def objects(values: Any) -> NDArray:
    """A one-dimensional array of objects."""
    values = list(values)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def days(dates: NDArray) -> NDArray:
    """Dates or durations as numbers of days, NaN if missing."""
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 86_400e6)


def word_of(value: Any) -> str:
    """The word of a value; whole numbers without decimals."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number_of(word: str) -> float | None:
    """The finite number that a word spells, if it does."""
    try:
        number = float(word)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def words_as_numbers(words: NDArray) -> NDArray | None:
    """The numbers that all words spell, NaN for missing ones; None if one word is not a number."""
    numbers = [np.nan if word is None else number_of(word) for word in words]
    if any(number is None for number in numbers):
        return None
    return np.array(numbers, dtype=np.float64)


def _read_series(column: Any, name: str) -> Column:
    """A column of a pandas data frame."""
    kind = column.dtype
    if hasattr(kind, "categories"):
        gaps = column.isna()
        words = objects(None if gap else word_of(v) for v, gap in zip(column, gaps))
        levels = tuple(word_of(value) for value in kind.categories)
        return Column(name, words, bool(kind.ordered), levels)
    mark = getattr(kind, "kind", "O")
    if mark == "c":
        raise ValueError(
            f"Column {name!r} of X is complex (Complex data not supported); pass its real part or "
            "its modulus."
        )
    if mark == "M":
        if getattr(kind, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return Column(name, column.to_numpy(dtype=DATE))
    if mark == "m":
        return Column(name, days(column.to_numpy(dtype="timedelta64[us]")))
    if mark in "biuf":
        return Column(name, _checked(name, column.to_numpy(dtype=np.float64, na_value=np.nan)))
    if hasattr(column, "dt") and hasattr(column.dt, "to_timestamp"):  # periods
        return Column(name, column.dt.to_timestamp().to_numpy(dtype=DATE))
    gaps = column.isna()
    return _read_objects(name, [None if gap else v for v, gap in zip(column, gaps)])


def _read_objects(name: str, values: list[Any]) -> Column:
    """A column of Python objects: all numbers, all dates, or words."""
    values = [None if _is_gap(value) else value for value in values]
    observed = [value for value in values if value is not None]
    if all(isinstance(value, (Real, Decimal)) for value in observed):
        numbers = [np.nan if value is None else float(value) for value in values]
        return Column(name, _checked(name, np.array(numbers, dtype=np.float64)))
    if all(isinstance(value, (date, np.datetime64)) for value in observed):
        dates = [np.datetime64("NaT") if value is None else _in_utc(value) for value in values]
        return Column(name, np.array(dates, dtype=DATE))
    strange = [value for value in observed if not isinstance(value, (str, bytes, Real, date))]
    if strange:
        raise TypeError(
            f"Column {name!r} of X holds a {type(strange[0]).__name__}, and every argument must be a "
            "string or a number; convert it, or leave the column out."
        )
    return Column(name, objects(None if value is None else word_of(value) for value in values))


def _is_gap(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _in_utc(value: Any) -> Any:
    """A date without its time zone, if it has one."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(UTC).replace(tzinfo=None)


def _checked(name: str, numbers: NDArray) -> NDArray:
    """Numbers without infinite ones."""
    if np.isinf(numbers).any():
        raise ValueError(
            f"Column {name!r} of X has {np.isinf(numbers).sum()} infinite values (infinity); make "
            "them missing or leave these rows out."
        )
    return numbers
