"""Tables, matrices, items and labels in files: one reader for every command and for the printed code.

pandas takes tables apart; here it is found out what the first line and the first column are.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.files import (
    ARRAY_SUFFIXES,
    FASTA_SUFFIXES,
    LABEL_NAMES,
    LESS,
    TABLE_SUFFIXES,
    existing_file,
    find_labels,
    format_of,
    load_arrays,
    name_of,
    open_file,
    read_arrays,
)
from mercerless.comparison.sheets import read_sheet
from mercerless.core.memory import check_memory
from mercerless.core.optional import import_optional

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Words that mark a missing value in a table.
MISSING = ("", "nan", "NaN", "NAN", "NA", "na", "N/A", "n/a", "<NA>", "null", "NULL", "None", "?")
PLAIN_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][+-]?\d+)?")


def is_plain_number(cell: str) -> bool:
    """Whether a cell is a number as anyone writes it: neither '007' nor '1_1' nor 'nan'."""
    return PLAIN_NUMBER.fullmatch(cell) is not None and any(mark in "0123456789" for mark in cell)


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


@dataclass(frozen=True)
class CellTable:
    """What a file of cells holds: typed columns, the names of the rows where there are any, and where it was.

    ``ragged`` says which line is longer or shorter than the others, '' where all are alike; missing cells are then
    at the ends of the lines.
    """

    path: Path
    frame: "DataFrame"
    ids: tuple[str, ...] | None = None
    named: bool = True
    ragged: str = ""
    lines: Sequence[int] = ()
    reread: Callable[[str], list[str]] | None = None
    id_column: str = ""

    @property
    def what(self) -> str:
        """The file in a sentence."""
        return name_of(self.path)

    def has(self, name: str) -> bool:
        """Whether there is such a column, be it the one that names the rows."""
        return name in self.frame.columns or (self.ids is not None and name == self.id_column)

    def text(self, name: str) -> list[str]:
        """Return a column as it stands in the file, '' for what is missing."""
        if self.reread is not None:
            return self.reread(name)
        column = self.frame[name]
        return ["" if gone else str(cell) for cell, gone in zip(column, column.isna())]

    def without(self, names: Iterable[str | None]) -> Self:
        """Return the table without some of its columns."""
        return replace(
            self,
            frame=self.frame.drop(columns=[name for name in names if name in self.frame.columns]),
        )

    def at(self, row: int, name: str) -> str:
        """Say where a cell is."""
        line = self.lines[row] if len(self.lines) else row + 1
        return f"{self.what}: line {line}, column {name!r}"


class Items(NamedTuple):
    """Items that are texts, and their names."""

    ids: tuple[str, ...]
    items: tuple[str, ...]


def pandas() -> Any:
    """Return pandas, or say what to install."""
    return import_optional("pandas", "table", "Reading tables")


def read(path: str | os.PathLike) -> dict[str, NDArray] | CellTable | Items:
    """Read whatever a file holds: arrays by name, a table, or the items of a FASTA file."""
    path = existing_file(path)
    file, suffix = open_file(path)
    with file:
        if suffix in ARRAY_SUFFIXES:
            return load_arrays(file, suffix, path)
        if suffix in TABLE_SUFFIXES:
            return _read_frame(file, suffix, path)
        text = _decode(file, path)
    if suffix in FASTA_SUFFIXES or text.startswith(">"):
        return parse_fasta(text, path)
    return parse_table(text, path)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text that are not empty."""
    with open_file(path)[0] as file:
        return [line.strip() for line in _decode(file, path).split("\n") if line.strip()]


def _decode(file: BinaryIO, path: Path) -> str:
    """Return the text of an open file, with or without a byte order mark, its lines ended by newlines."""
    if format_of(path) == ".xlsx":
        return read_sheet(file, path)
    remedy = "use a part of the rows, or save it as .npy"
    size = file.seek(0, os.SEEK_END)
    # some six times the text were measured
    check_memory(8.0 * size, f"Reading {name_of(path)}", remedy=remedy)
    file.seek(0)
    content = file.read()
    try:
        try:
            text = content.decode(
                "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            )
        except ValueError:
            if re.search(rb"[\0-\x08\x0e-\x1f]", content):
                raise
            text = content.decode("cp1252")  # what Excel writes in Western countries
        if "\0" in text:
            raise ValueError
    except ValueError:
        raise ValueError(f"{name_of(path)} is not text; save it as UTF-8.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_frame(file: BinaryIO, suffix: str, path: Path) -> CellTable:
    """Read parquet or Feather; an index that names the rows is kept."""
    pd = pandas()
    parquet = import_optional("pyarrow.parquet", "table", f"Reading {suffix}")
    try:
        if suffix == ".parquet":
            claim = parquet.ParquetFile(file).metadata
            check_memory(
                16.0 * claim.num_rows * claim.num_columns, f"Reading {name_of(path)}", remedy=LESS
            )
            file.seek(0)
            frame = pd.read_parquet(file)
        else:
            frame = pd.read_feather(file)
    except MemoryError:
        raise
    except Exception:  # a damaged file can fail anywhere in the readers
        raise ValueError(f"{name_of(path)} is not a readable {suffix[1:]} file.") from None
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    for name, column in frame.items():
        if column.dtype == object:
            nested = next(
                (
                    cell
                    for cell in column
                    if isinstance(cell, (np.ndarray, list, dict, tuple, bytes))
                ),
                None,
            )
            if nested is not None:
                kind = (
                    "list"
                    if isinstance(nested, (np.ndarray, list, tuple))
                    else type(nested).__name__
                )
                raise ValueError(
                    f"{str(path)!r}: column {str(name)!r} has cells of type {kind}; there must be "
                    "one number or word "
                    "in a cell."
                )
    if isinstance(frame.index, pd.MultiIndex):
        frame = frame.reset_index()
    is_named = not isinstance(frame.index, pd.RangeIndex) and frame.index.is_unique
    ids = tuple(map(str, frame.index)) if is_named else None
    frame = frame.reset_index(drop=True)
    frame.columns = _unique_names(map(str, frame.columns), path)
    return _with_ids(CellTable(path, frame.apply(_plain), ids))


def _plain(column: "Series") -> "Series":
    """Return a column as floats, integers, booleans, dates or text of NumPy's and pandas' own types."""
    pd = pandas()
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column
    if pd.api.types.is_numeric_dtype(column.dtype):
        gaps = column.isna().any() or column.dtype.kind not in "biu"
        return column.astype(
            np.float64 if gaps else np.dtype(column.dtype.kind + str(column.dtype.itemsize))
        )
    text = column.astype(object).map(lambda cell: str(cell).strip(), na_action="ignore")
    return text.where(~text.isna(), np.nan)


def _unique_names(names: Iterable[str], path: Path) -> list[str]:
    names = list(names)
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(
            f"{name_of(path)} has several columns named {twice!r}; give every column its own name."
        )
    return names


# --------------------------------------------------------------------------------------------------------- text

#: First columns of these names say what the rows are called.
ID_NAMES = (
    "",
    "id",
    "ids",
    "index",
    "name",
    "names",
    "item",
    "items",
    "sample",
    "samples",
    "rownames",
    "unnamed: 0",
)
SPACES = r"\s+"


def parse_table(text: str, path: Path) -> CellTable:
    """Parse a table: pandas takes the lines apart, here it is found out what the first line and column are."""
    pd = pandas()
    what = name_of(path)
    lines, rows = _numbered_rows(text)
    if not rows:
        raise ValueError(f"{what} has no rows.")
    separator, decimal = _dialect(rows[:100])
    lengths = [_count(row, separator) for row in rows]
    if any(row.count('"') % 2 for row in rows):  # a quoted cell goes over several lines
        lines = []
        lengths = [max(lengths)]
    width = max(lengths)
    check_memory(
        16.0 * width * len(rows),
        f"Reading {what}",
        remedy="use a part of the rows, or save it as .npy",
    )
    read = partial(_read_cells, "\n".join(rows).encode(), what, sep=separator, names=range(width))
    as_text: dict[str, Any] = {"dtype": str, "na_filter": False}
    head = [
        [str(cell).strip() for cell in row]
        for row in read(header=None, nrows=200, **as_text).to_numpy()
    ]
    first = _without_shift(head[0], head[1:], lengths, width)
    others = head[1:]
    named = _is_header(first, others, len(rows))
    if named and len(rows) == 1:
        raise ValueError(f"{what} has a header but no rows.")
    start = 0 if named else None
    exact = (
        {"float_precision": "round_trip"}
        if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
        else {}
    )
    typed = {
        "keep_default_na": False,
        "na_values": list(MISSING),
        "decimal": decimal,
        "low_memory": False,
        **exact,
    }
    frame = read(header=start, **typed).apply(_plain)
    if named:
        lines = lines[1:]
        lengths = lengths[1:] or [width]
    names = first if named else [f"column {i + 1}" for i in range(width)]
    names = [name or ("" if i == 0 else f"column {i + 1}") for i, name in enumerate(names)]
    frame.columns = _unique_names(names, path)

    def reread(name: str) -> list[str]:
        column = read(header=start, usecols=[names.index(name)], **as_text).iloc[:, 0]
        return [cell.strip() for cell in column]

    ragged = ""
    if len(set(lengths)) > 1:
        odd = next(i for i, length in enumerate(lengths) if length != lengths[0])
        ragged = (
            f"{what}: line {lines[odd]} has {lengths[odd]} entries, the lines before {lengths[0]}"
        )
    return _with_ids(CellTable(path, frame, None, named, ragged, lines, reread))


def _numbered_rows(text: str) -> tuple[list[int], list[str]]:
    """Return the rows that are neither empty nor comments, and the numbers of their lines."""
    lines = enumerate(text.split("\n"), start=1)
    kept = [
        (number, line)
        for number, line in lines
        if line.strip() and not line.lstrip().startswith("#")
    ]
    numbered = _without_count(kept)
    return [number for number, _ in numbered], [line for _, line in numbered]


def _read_cells(content: bytes, what: str, **options: Any) -> "DataFrame":
    try:
        return pandas().read_csv(
            io.BytesIO(content), index_col=False, skipinitialspace=True, **options
        )
    except MemoryError:
        raise
    except Exception as error:  # unbalanced quotes and whatever else a damaged file brings
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{what} is not a table that pandas can read: {reason}") from None


def _without_shift(
    first: list[str], others: list[list[str]], lengths: list[int], width: int
) -> list[str]:
    """Return the first line above its columns: R's write.table has no name above the names of the rows."""
    shifted = (
        width > 1
        and len(others) > 1
        and first[-1] == ""
        and first[0] != ""
        and all(row[-1] for row in others)
    )
    shifted = shifted and (
        len(lengths) == 1 or (lengths[0] == width - 1 and set(lengths[1:]) == {width})
    )
    return ["", *first[:-1]] if shifted else first


def _with_ids(table: CellTable) -> CellTable:
    """Take out the column that says what the rows are called: the first by its looks, or any named id."""
    frame = table.frame
    for i, name in enumerate(frame.columns if table.ids is None else ()):
        by_name = table.named and name.lower() in ("id", "ids") and frame.shape[1] > 2
        if (by_name and _is_key(frame[name])) or (i == 0 and _names_rows(frame, table.named)):
            return replace(table.without([name]), ids=tuple(table.text(name)), id_column=name)
    return table


def _without_count(numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Take off the count in the first line of a PHYLIP matrix, and join its wrapped lines."""
    if len(numbered) < 3 or not re.fullmatch(r"\s*\d+\s*", numbered[0][1]):
        return numbered
    n_items = int(numbered[0][1].strip()[:12])
    starts = [(number, line) for number, line in numbered[1:] if not line[0].isspace()]
    if len(starts) != n_items or any(
        is_number(line.split()[0]) and "\t" not in line for _, line in starts
    ):
        return numbered
    joined: list[tuple[int, str]] = []
    for number, line in numbered[1:]:
        if line[0].isspace():
            joined[-1] = (joined[-1][0], f"{joined[-1][1]} {line}")
        else:
            joined.append((number, line))
    return joined


def _dialect(rows: list[str]) -> tuple[str, str]:
    """Return what separates cells, and the decimal mark."""
    quoted = rows
    rows = [re.sub(r'"[^"]*"', "q", row) for row in rows]
    with_comma = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
    cells = rows[-1].split()
    if not set("\t;|") & set(rows[-1]) and sum(map(bool, map(with_comma.fullmatch, cells))) > 1:
        if all(with_comma.fullmatch(cell) or is_plain_number(cell) for cell in cells[1:]):
            return SPACES, ","  # 1,5 2,5
    counts = {mark: {row.count(mark) for row in rows} for mark in "\t;|,"}
    separator = next(
        (mark for mark, per_row in counts.items() if len(per_row) == 1 and per_row != {0}), None
    )
    if separator is None:
        separator = next(
            (mark for mark in counts if 2 * sum(mark in row for row in rows) >= len(rows)), SPACES
        )
    if separator == ",":
        return separator, "."
    split = re.compile(SPACES if separator == SPACES else f"[{separator}]")
    cells = [cell.strip(' "') for row in quoted for cell in split.split(row)]
    comma = any(map(with_comma.fullmatch, cells)) and not any(
        re.fullmatch(r"[+-]?\d*\.\d+", cell) for cell in cells
    )
    return separator, "," if comma else "."


def _count(row: str, separator: str) -> int:
    if '"' in row:
        mark = " " if separator == SPACES else separator
        return len(next(csv.reader([row.strip()], delimiter=mark, skipinitialspace=True)))
    return len(row.split()) if separator == SPACES else row.count(separator) + 1


def _without_end(row: list[str]) -> list[str]:
    """Return a row up to its last cell that is not empty."""
    return row[: max((i for i, cell in enumerate(row, start=1) if cell), default=0)]


def _is_header(first: list[str], others: list[list[str]], n_rows: int) -> bool:
    """Tell whether a first line names columns: by words, by 0, 1, 2, ..., or by the rows' names."""
    first = _without_end(first)
    if len(first) < max((len(_without_end(row)) for row in others), default=0) - 1:
        return False  # the first line of a triangle
    words = [
        i
        for i, cell in enumerate(first)
        if cell not in MISSING and not is_number(cell.replace(",", ""))
    ]
    numbers = [cell for cell in first if is_number(cell)]
    rest = first[1:]
    below = [[row[i] for row in others] for i in range(len(first))]
    if not numbers:
        only_words = not any(is_number(cell) for row in others for cell in row)
        return bool(words) and not (only_words and any(first[i] in below[i] for i in words))
    if "" in rest:
        return False
    counted = len(numbers) > 1 and any(
        numbers == [str(i + start) for i in range(len(numbers))] for start in (0, 1)
    )
    # as the names of the rows; of few, or of decimals, this would be a symmetric matrix without its corner
    named_rows = len(rest) > 4 and rest == [row[0] for row in others[: len(rest)]]
    named_rows = named_rows and len(set(rest)) == len(rest) and all(map(str.isdigit, rest))
    if first[0] == "":
        return bool(words) or counted or named_rows
    if words:
        news = [len(set(cells)) == len(cells) and not any(map(is_number, cells)) for cells in below]
        again = any(first[i] in below[i] for i in words)
        known = any(first[i].lower() in LABEL_NAMES for i in words) or (
            0 in words and first[0].lower() in ID_NAMES
        )
        return (0 in words and named_rows) or (
            not again and (known or (counted and not any(news[i] for i in words)))
        )
    return (
        counted
        and len(first) > 2
        and (n_rows == len(first) + 1 or (first[0] == "0" and n_rows != len(first)))
    )


def _is_key(column: "Series") -> bool:
    return bool(column.is_unique and not column.isna().any() and column.dtype.kind != "f")


def _names_rows(frame: "DataFrame", named: bool) -> bool:
    """Tell whether the first column says what the rows are called."""
    name = str(frame.columns[0])
    first = frame.iloc[:, 0]
    if frame.shape[1] < 2 or not _is_key(first):
        return False
    if named and name.lower() in ID_NAMES:
        return name == "" or frame.shape[1] > 2 or first.dtype.kind in "biu"
    words = first.dtype.kind == "O"
    others = all(dtype.kind in "biuf" for dtype in frame.dtypes[1:])
    return words and others and (not named or frame.shape[1] - 1 in (len(frame), len(frame) - 1))


def parse_fasta(text: str, path: Path) -> Items:
    """Return the names and the sequences of a FASTA file."""
    records = [record.split("\n", 1) for record in f"\n{text}".split("\n>")[1:]]
    names = [record[0].split()[0] if record[0].split() else "" for record in records]
    items = ["".join(record[1].split()) if len(record) > 1 else "" for record in records]
    if not records or "" in items:
        which = (
            f"the record {names[items.index('')]!r} has no sequence"
            if records
            else "it has no record"
        )
        raise ValueError(f"{name_of(path)} is not a readable FASTA file: {which}.")
    return Items(tuple(names), tuple(items))


# ----------------------------------------------------------------------------------------------------- matrices


def as_matrix(
    table: CellTable, n_items: int | None = None, gaps: bool = False
) -> tuple[NDArray, tuple[str, ...] | None]:
    """Return the numbers of a table and the names of its rows; a triangle becomes the whole symmetric matrix.

    Columns are put into the order of the rows by their names; `gaps` allows entries of a square matrix to be missing.
    """
    check_numbers(table)
    values = table.frame.to_numpy(np.float64)
    ids = table.ids
    if 1 in values.shape and values.size > 2 and (n_items or 0) != values.shape[0]:
        return from_condensed(values.ravel(), table.what, n_items), None
    if np.isnan(values).any():
        whole = _from_triangle(values, n_items if ids is None else len(ids))
        is_square = values.shape[0] == values.shape[1] and not table.ragged
        if whole is None and not (gaps and is_square):
            if table.ragged:
                raise ValueError(f"{table.ragged}; {UNEVEN}")
            row, column = np.argwhere(np.isnan(values))[0]
            name = table.frame.columns[column]
            cell = table.text(name)[row]
            raise ValueError(
                f"{table.at(row, name)} is missing ({cell!r}); fill in or remove missing values "
                "first."
            )
        if whole is not None:
            return whole, ids if ids is None or len(ids) == len(whole) else None
    names = list(table.frame.columns)
    if ids is not None and table.named and names != list(ids) and sorted(names) == sorted(ids):
        values = table.frame[list(ids)].to_numpy(np.float64)
    if ids is None and table.named and len(names) == len(values):
        ids = tuple(names)
    return values, ids


UNEVEN = (
    "this is neither a table nor a triangle: give every line the same number of cells (numbers "
    "with thousands "
    "separators must be quoted or, better, written without them). Series of unequal length are "
    "compared in Python: "
    "mercerless.compare(series, y, kernel=function)."
)


def check_numbers(table: CellTable, columns: Sequence[str] | None = None) -> None:
    """Refuse the first cell that is no finite number, by its line and column; missing ones are let through."""
    for name in table.frame.columns if columns is None else columns:
        column = table.frame[name]
        if column.dtype.kind in "biuf":
            bad = np.flatnonzero(np.isinf(column.to_numpy(np.float64)))
        else:
            bad = np.flatnonzero([not is_number(str(cell)) for cell in column.fillna("nan")])
        if not len(bad):
            continue
        row = int(bad[0])
        cell = table.text(name)[row]
        if "," in cell and is_number(cell.replace(",", "")):
            remedy = "write numbers without thousands separators and with a decimal point"
            raise ValueError(f"{table.at(row, name)} has {cell!r}; {remedy}.")
        raise ValueError(f"{table.at(row, name)} has {cell!r} where a finite number should be.")


def from_condensed(vector: NDArray, what: str, n_items: int | None = None) -> NDArray:
    """Return the square matrix of a vector of n (n - 1) / 2 distances, as `scipy.spatial.distance.pdist` gives it."""
    from scipy.spatial.distance import squareform

    n = round((1 + np.sqrt(1 + 8 * len(vector))) / 2)
    if n * (n - 1) // 2 != len(vector) or n_items not in (None, n):
        raise ValueError(
            f"{what} is 1-dimensional with {len(vector)} numbers, which is neither a matrix nor "
            "the distances of all "
            f"pairs of {n if n_items is None else n_items} items; save a square matrix."
        )
    return squareform(np.asarray(vector, dtype=np.float64), checks=False)


def _from_triangle(values: NDArray, n_items: int | None) -> NDArray | None:
    """Return the symmetric matrix whose lower or upper triangle `values` has, or None; a missing diagonal is zero."""
    n_rows, n_columns = values.shape
    if n_rows < 3:
        return None
    filled = ~np.isnan(values)
    whole = np.ones((n_rows, n_columns), dtype=bool)
    size = n_rows
    strict = True
    if n_rows == n_columns and (filled == np.tril(whole)).all():
        lower = values
        strict = n_items == n_rows + 1
        size = n_rows + strict
    elif n_columns in (n_rows, n_rows - 1) and (filled == np.tril(whole, -1)).all():
        lower = values[1:, : n_rows - 1]
    elif (
        n_rows == n_columns and (filled == np.tril(whole)[::-1]).all()
    ):  # an upper triangle whose rows begin at the left
        lower = np.full_like(values, np.nan)
        strict = n_items == n_rows + 1
        size = n_rows + strict
        for i in range(n_rows):
            lower[i:, i] = values[i, : n_rows - i]
    elif n_rows == n_columns and (filled == np.triu(whole)).all():
        lower = values.T
        strict = False
    elif n_rows == n_columns and (filled == np.triu(whole, 1)).all():
        lower = values.T[1:, : n_rows - 1]
    else:
        return None
    result = np.zeros((size, size))
    result[np.tril_indices(size, -int(strict))] = lower[np.tril_indices(len(lower))]
    return result + np.tril(result, -1).T


# ------------------------------------------------------------------------------------------------------- labels


def parse_labels(cells: Sequence[str], what: str) -> NDArray:
    """Labels as numbers when all of them are plain numbers, else as the text they are."""
    cells = [str(cell).strip() for cell in cells]
    filled = [cell for cell in cells if cell not in MISSING]
    numbers = bool(filled) and all(map(is_plain_number, filled))
    missing = (
        len(cells) - len(filled) if numbers else sum(cell in ("", "nan", "NaN") for cell in cells)
    )
    if missing or not cells:
        raise ValueError(f"{missing} labels are missing in {what}; remove those items first.")
    if not numbers:
        return np.array(cells)
    whole = all(re.fullmatch(r"[+-]?\d{1,18}", cell) for cell in cells)
    return np.array(cells, dtype=np.int64 if whole else np.float64)


def label_values(values: NDArray, what: str) -> NDArray:
    """Return an array as one label per item."""
    labels = values.ravel() if values.ndim == 2 and 1 in values.shape else values
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "biufUS":
        raise ValueError(f"{what} must hold one label per item, as numbers or text.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{what} has labels that are not finite.")
    return labels.astype(str) if labels.dtype.kind == "S" else labels


def read_labels(
    path: str | os.PathLike, n_items: int | None = None, ids: Sequence[str] | None = None
) -> NDArray:
    """Read one label per item: an array, one label per line, or a table of names and labels in whatever order.

    ``n_items`` tells a header from a label; labels are found by name where the file has the `ids`.
    """
    path = existing_file(path)
    if format_of(path) in ARRAY_SUFFIXES:
        arrays = read_arrays(path)
        name = next(iter(arrays)) if len(arrays) == 1 else find_labels(arrays)
        if name is None:
            raise ValueError(
                f"{str(path)!r} has no array named {' or '.join(LABEL_NAMES)}; it has "
                f"{', '.join(arrays)}."
            )
        return label_values(arrays[name], repr(str(path)))
    header, cells = _label_cells(path)
    width = len(cells[0])
    known = set(ids or ())
    by_name = (
        next((i for i in range(width) if width > 1 and known <= {row[i] for row in cells}), None)
        if known
        else None
    )
    if by_name is not None:
        column = _label_column(header, [i for i in range(width) if i != by_name], path)
        by_item: dict[str, str] = {}
        for row in cells:
            if by_item.setdefault(row[by_name], row[column]) != row[column]:
                raise ValueError(f"{name_of(path)} has two labels for {row[by_name]!r}; keep one.")
        return parse_labels([by_item[item] for item in ids or ()], name_of(path))
    if width > 1:
        shared = (
            next((i for i in range(width) if known & {row[i] for row in cells}), None)
            if known
            else None
        )
        if shared is not None:
            gone = next(item for item in ids or () if item not in {row[shared] for row in cells})
            raise ValueError(
                f"{name_of(path)} has no label for {gone!r}; there must be one for every item."
            )
        first = {row[0] for row in cells}
        column = _label_column(
            header, list(range(1, width)) if len(first) == len(cells) else list(range(width)), path
        )
    else:
        column = 0
    labels = [row[column] for row in cells]
    if n_items is not None and len(labels) == n_items + 1 and header is None:
        labels = labels[1:]
    return parse_labels(labels, name_of(path))


def _label_cells(path: Path) -> tuple[list[str] | None, list[list[str]]]:
    """Return the header, where there is one for certain, and the rows of a file of labels."""
    with open_file(path)[0] as file:
        if format_of(path) in TABLE_SUFFIXES:
            table = _read_frame(file, format_of(path), path)
        else:
            text = _decode(file, path)
    if format_of(path) not in TABLE_SUFFIXES:
        rows = [
            line.strip() for line in text.split("\n") if line.strip() and not line.startswith("#")
        ]
        if not rows:
            raise ValueError(f"{name_of(path)} has no rows.")
        if not any(mark in row for row in rows for mark in "\t;,"):
            cells = [[row.strip('"')] for row in rows]
            if cells[0][0].lower() in LABEL_NAMES and len(cells) > 1:
                return cells[0], cells[1:]
            return None, cells
        table = parse_table(text, path)
        if table.ragged:
            raise ValueError(
                f"{table.ragged}; give one label per item, alone or after the item's name."
            )
    columns = [table.text(name) for name in table.frame.columns]
    header = list(table.frame.columns)
    if table.ids is not None:
        columns = [list(table.ids), *columns]
        header = ["", *header]
    return header if table.named else None, [list(row) for row in zip(*columns)]


def _label_column(header: list[str] | None, columns: list[int], path: Path) -> int:
    """Return which of the `columns` holds the labels."""
    if len(columns) == 1:
        return columns[0]
    named = [i for i in columns if header is not None and header[i].lower() in LABEL_NAMES]
    if len(named) == 1:
        return named[0]
    raise ValueError(
        f"{name_of(path)} has {len(columns)} columns that may be labels; keep the items' names and "
        "one column, or name "
        f"it {LABEL_NAMES[0]!r}."
    )
