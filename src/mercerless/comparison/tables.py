"""Tables of cells in text and data frames: pandas parses; this module detects headers, names of rows and gaps."""

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.files import name_of
from mercerless.comparison.limits import LIMITS, NAMES
from mercerless.core.memory import check_memory
from mercerless.core.numerals import read_amount, read_amounts
from mercerless.core.optional import import_optional

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Python's word for a missing value, which may be a level in a column of words.
NONE = "None"
#: Words that mark a missing value in a table.
MISSING = (
    *("", "nan", "NaN", "NAN", "NA", "na", "N/A", "n/a", "<NA>", "null", "NULL", NONE, "?"),
    *LIMITS.excel_errors,
)
SPACES = r"\s+"
#: Words in front of sums and means below a table.
SUMMARY = re.compile(
    r"(?:(?:grand |sub)?totals?|sums?|summe|gesamt(?:summe)?|insgesamt|totale|suma|averages?"
    r"|avg|means?|mittelwert|durchschnitt|moyenne|media|promedio):?",
    re.IGNORECASE,
)


def is_comment(line: str) -> bool:
    """Whether a line begins with #, and not with an error of Excel such as #N/A."""
    return line.lstrip().startswith("#") and not line.lstrip().startswith(LIMITS.excel_errors)


def is_plain_number(cell: str) -> bool:
    """Whether a cell is a number as anyone writes it: neither '007' nor '1_1' nor 'nan'."""
    number = r"[+-]?(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][+-]?\d+)?"
    return re.fullmatch(number, cell) is not None and any(mark in "0123456789" for mark in cell)


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _numbers_among(words: Iterable[str]) -> list[float]:
    return [float(word) for word in words if is_number(word)]


def without_thousands(cell: str) -> str:
    """Return a number such as "1,234.5" or "1 234.5" without the marks of thousands, anything else as it is."""
    return _without_marks(cell, thousands=",", decimal=".")


def _without_marks(cell: str, thousands: str, decimal: str) -> str:
    """Return a number without one kind of marks between thousands: this one, spaces or apostrophes."""
    marks = rf"[{thousands} \u00a0\u202f'\u2019]"
    number = rf"[+-]?[1-9]\d{{0,2}}({marks})\d{{3}}(?:\1\d{{3}})*(?:[{decimal}]\d*)?"
    separated = re.fullmatch(number, cell)
    return cell if separated is None else cell.replace(separated[1], "")


def plain_numbers(cells: Sequence[str]) -> list[str]:
    """Return the numbers of a column without marks of thousands, a currency or a percent sign; words stay as they are.

    12.5 % is 0.125, as in Excel. If a number has a decimal comma, all cells stay as they are, unless a currency or a
    percent sign confirms that they are numbers.
    """
    bare, mark = read_amounts(cells)
    plain = [without_thousands(cell) for cell in bare]
    if any(map(_is_decimal_comma, plain)):
        if not mark or any(map(_is_decimal_point, bare)):
            return list(cells)
        plain = [_with_point(cell) for cell in bare]
    if mark == "%":
        plain = [f"{cell}e-2" if is_plain_number(cell) else cell for cell in plain]
    return plain


@dataclass(frozen=True)
class CellTable:
    """The content of a file of cells: typed columns, and the names of the rows if there are any.

    ``ragged`` names the line that is longer or shorter than the others, '' if all have the same length; missing cells
    are then at the ends of the lines. ``none_levels`` are the columns of words that contain "None"; it is a missing
    value there only if ``none_is_missing``. ``series`` describes how series became columns, and ``items`` are the
    series themselves. ``missing`` are words that mean a gap by the user's option. ``title`` is a line above the header,
    ``n_comments`` counts the lines among the rows that begin with # and were left out, ``merged`` says what became of
    merged cells. If ``is_sparse``, columns that the file lacks are zero. ``summary`` describes the last row if it
    has sums or means and was left out, ``thousands`` is a number whose point was taken as a mark of thousands.
    ``categories`` are the columns that the file declares to hold categories, which may be numbers.
    ``amounts`` has the columns
    whose numbers have a currency or a percent sign in the file, with their cells as they are written.
    """

    path: Path
    frame: "DataFrame"
    ids: tuple[str, ...] | None = None
    named: bool = True
    ragged: str = ""
    lines: Sequence[int] = ()
    source: "TextSource | None" = None
    id_column: str = ""
    none_levels: tuple[str, ...] = ()
    none_is_missing: bool = False
    kind: str | None = None
    series: str = ""
    missing: tuple[str, ...] = ()
    items: tuple[NDArray, ...] = ()
    title: str = ""
    n_comments: int = 0
    merged: str = ""
    is_sparse: bool = False
    summary: str = ""
    thousands: str = ""
    categories: tuple[str, ...] = ()
    amounts: dict[str, list[str]] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """The file in a sentence."""
        return name_of(self.path)

    def has(self, name: str) -> bool:
        """Whether there is such a column, including the one that names the rows."""
        return name in self.frame.columns or (self.ids is not None and name == self.id_column)

    def text(self, name: str) -> list[str]:
        """Return a column as it is written in the file, '' for missing cells."""
        if self.source is not None:
            cells = self.source.text(name)
        elif name in self.amounts:
            cells = self.amounts[name]
        else:
            column = self.frame[name]
            cells = ["" if gone else str(cell) for cell, gone in zip(column, column.isna())]
        if self.missing:
            cells = ["" if self._is_gap(cell) else cell for cell in cells]
        return cells

    def _is_gap(self, cell: str) -> bool:
        """Whether a cell has one of the words of `with_gaps`, or the same number."""
        if cell in self.missing:
            return True
        return is_number(cell) and float(cell) in _numbers_among(self.missing)

    def is_percent(self, name: str) -> bool:
        """Whether the numbers of a column have percent signs."""
        return read_amounts(self.amounts.get(name, [])).mark == "%"

    def with_gaps(self, words: Sequence[str]) -> Self:
        """Return the table with gaps for cells with one of the words; a number matches however it is written."""
        if not words:
            return self
        frame = self.frame.copy()
        for name, column in self.frame.items():
            is_numeric = column.dtype.kind in "iuf"
            is_gap = column.isin(_numbers_among(words) if is_numeric else list(words))
            if not is_gap.any():
                continue
            rest = column.where(~is_gap, np.nan)
            if not is_numeric and all(map(is_number, rest.dropna().astype(str))):
                rest = rest.astype(np.float64)
            frame[name] = rest
        return replace(self, frame=frame, missing=tuple(words))

    def without(self, names: Iterable[str | None]) -> Self:
        """Return the table without some of its columns."""
        dropped = [name for name in names if name in self.frame.columns]
        return replace(self, frame=self.frame.drop(columns=dropped))

    def renamed(self, names: dict[str, str]) -> Self:
        """Return the table with other names of its columns."""
        source = self.source
        if source is not None:
            # the column that names the rows is not among them, and its old name may be taken
            source = replace(source, names=tuple(names.get(name, "") for name in source.names))
        amounts = {names[name]: cells for name, cells in self.amounts.items() if name in names}
        frame = self.frame.rename(columns=names)
        return replace(self, frame=frame, source=source, amounts=amounts)

    def at(self, row: int, name: str) -> str:
        """Position of a cell, in words."""
        line = self.lines[row] if len(self.lines) else row + 1
        return f"{self.what}: line {line}, column {name!r}"


class Items(NamedTuple):
    """Items that are texts, and their names."""

    ids: tuple[str, ...]
    items: tuple[str, ...]


class Pairs(NamedTuple):
    """Pairs of items with a number each, and attributes of the items."""

    path: Path
    first: list[str]
    second: list[str]
    values: NDArray
    name: str  # of the numbers
    why: str  # the matrix is made of pairs
    kind: str | None = None
    directed: bool = False
    lines: Sequence[int] = ()
    attributes: "DataFrame | None" = None  # of the items, by their names


def pandas() -> Any:
    """Return pandas, or raise with the package to install."""
    return import_optional("pandas", "table", "Reading tables")


# ------------------------------------------------------------------------------------------------------- frames


def frame_table(frame: "DataFrame", path: Path) -> CellTable:
    """Return a table of a data frame; an index that names the rows is kept."""
    pd = pandas()
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise ValueError(f"{name_of(path)} has no rows.")
    for name, column in frame.items():
        if column.dtype == object:
            _check_cells(str(name), column, path)
    index = frame.index
    is_data = index.name is not None and index.name not in frame and not index.is_unique
    if isinstance(index, pd.MultiIndex) or is_data:
        frame = frame.reset_index()
    is_named = not isinstance(frame.index, pd.RangeIndex) and frame.index.is_unique
    ids = tuple(map(str, frame.index)) if is_named else None
    frame = frame.reset_index(drop=True)
    frame.columns = _unique_names(map(str, frame.columns), path)
    categories = tuple(name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype))
    plain = CellTable(path, frame.apply(_plain), ids, categories=categories)
    return _with_ids(_with_amounts(plain))


def _check_cells(name: str, column: "Series", path: Path) -> None:
    """Raise if cells of a column are lists or the like."""
    kinds = (np.ndarray, list, dict, tuple, bytes)
    nested = next((cell for cell in column if isinstance(cell, kinds)), None)
    if nested is None:
        return
    is_list = isinstance(nested, (np.ndarray, list, tuple))
    kind = "list" if is_list else type(nested).__name__
    raise ValueError(
        f"{name_of(path)}: column {name!r} has cells of type {kind}; there must be one number or "
        f"word in a cell, so leave it out with --drop {shlex.quote(name)}."
    )


def _plain(column: "Series") -> "Series":
    """Return a column as floats, integers, booleans, dates or text of NumPy's and pandas' own types.

    Durations are numbers of days.
    """
    pd = pandas()
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return column / pd.Timedelta(days=1)
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


@dataclass(frozen=True)
class TextSource:
    """The rows of a text and how they are cut into cells; columns can be read again as they stand in the file."""

    what: str
    content: bytes
    separator: str
    decimal: str
    width: int
    header: int | None = None
    names: tuple[str, ...] = ()

    def typed(self) -> "DataFrame":
        """Return the cells as numbers and words."""
        exact = {}
        version = pandas().__version__.split(".")
        if tuple(map(int, version[:2])) < (3, 1):
            exact = {"float_precision": "round_trip"}
        frame = self._read(
            header=self.header,
            keep_default_na=False,
            na_values=list(MISSING),
            decimal=self.decimal,
            low_memory=False,
            **exact,
        )
        if self.decimal == ",":  # pandas leaves the numbers beside words as they are
            for name, column in frame.items():
                if column.dtype.kind == "O":
                    frame[name] = column.map(_with_point, na_action="ignore")
        return frame

    def text(self, name: str) -> list[str]:
        """Return one column as it is written in the file, numbers with a decimal point."""
        place = self.names.index(name)
        options = {"header": self.header, "usecols": [place], "dtype": str, "na_filter": False}
        cells = [cell.strip() for cell in self._read(**options).iloc[:, 0]]
        if self.decimal == ",":
            cells = [_with_point(cell) for cell in cells]
        return cells

    def first_rows(self, n_rows: int) -> list[list[str]]:
        """Return the first rows as text, the header among them."""
        rows = self._read(header=None, nrows=n_rows, dtype=str, na_filter=False)
        return [[str(cell).strip() for cell in row] for row in rows.to_numpy()]

    def _read(self, **options: Any) -> "DataFrame":
        try:
            return pandas().read_csv(
                io.BytesIO(self.content),
                sep=self.separator,
                names=range(self.width),
                index_col=False,
                skipinitialspace=True,
                **options,
            )
        except MemoryError:
            raise
        except Exception as error:  # unbalanced quotes, or any other damage
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(
                f"{self.what} is not a table that pandas can read: {lines[0]}"
            ) from None


def parse_table(text: str, path: Path) -> CellTable:
    """Parse a table of text; whether it has a header and names of rows is detected."""
    what = name_of(path)
    lines, rows = _numbered_rows(text)
    if rows and re.fullmatch(r'"?sep=."?\s*', rows[0], re.IGNORECASE):  # as Excel reads it
        lines, rows = lines[1:], rows[1:]
    if not rows:
        raise ValueError(f"{what} has no rows.")
    if all(row[0] == row.rstrip()[-1] == "'" and '"' not in row for row in rows):
        rows = [row.replace("'", '"') for row in rows]
    dialect = _dialect(rows[:100], rows[100 :: max(1, len(rows) // 1000)])
    separator = dialect.separator
    header = _commented_header(text, lines[0], rows, separator)
    if header:
        lines, rows = [lines[0] - 1, *lines], [header, *rows]
    rows = _without_empty_start(rows, separator)
    lengths = [_count(row, separator) for row in rows]
    title = ""
    n_title = _count_single_cells(lengths) or _count_title_rows(rows[:20], separator)
    if n_title:
        title = rows[0].strip().rstrip(separator)
        lines, rows, lengths = lines[n_title:], rows[n_title:], lengths[n_title:]
    if any(row.count('"') % 2 for row in rows):  # a quoted cell goes over several lines
        lines = []
        lengths = [max(lengths)]
    width = max(lengths)
    remedy = "use a part of the rows, or save it as .npy"
    check_memory(16.0 * width * len(rows), f"Reading {what}", remedy=remedy)
    source = TextSource(what, "\n".join(rows).encode(), separator, dialect.decimal, width)

    head = source.first_rows(200)
    first = _without_shift(head[0], head[1:], lengths, width)
    is_named = _is_header(first, head[1:], len(rows))
    names = [f"column {i + 1}" for i in range(width)]
    if is_named:
        if len(rows) == 1:
            raise ValueError(f"{what} has a header but no rows.")
        names = [cell or name for cell, name in zip(first, names)]
        names[0] = first[0]
        lines = lines[1:]
        lengths = lengths[1:] or [width]
    names = _unique_names(names, path)
    source = replace(source, header=0 if is_named else None, names=tuple(names))

    frame = source.typed().apply(_plain)
    frame.columns = names
    ragged = ""
    if len(set(lengths)) > 1:
        odd = next(i for i, length in enumerate(lengths) if length != lengths[0])
        ragged = (
            f"{what}: line {lines[odd]} has {lengths[odd]} entries, the lines before {lengths[0]}"
        )
    table = CellTable(path, frame, None, is_named, ragged, lines, source, title=title)
    table = replace(table, thousands=dialect.thousands)
    summary = _summary_row(table)
    if summary and len(lines):
        shorter = "\n".join(text.split("\n")[: lines[-1] - 1])
        return replace(parse_table(shorter, path), summary=summary)
    table = replace(table, n_comments=_count_comments(text))
    if not ragged:
        table = _without_trailing(table, first if is_named else [""] * width)
    if NONE in text:
        table = _with_none_levels(table)
    return _with_ids(_with_amounts(table))


def _summary_row(table: CellTable) -> str:
    """Return the last row if its numbers are the sums or the means of those above, else ''.

    At least two must be, or one beside a word such as "Total".
    """
    last = table.frame.iloc[-1].dropna()
    if not table.named or table.ragged or len(table.frame) < 6:
        return ""
    words = [str(cell) for name, cell in last.items() if table.frame[name].dtype.kind not in "iuf"]
    has_word = any(SUMMARY.fullmatch(word) for word in words)
    if words and not has_word:
        return ""
    numbers = [name for name in last.index if table.frame[name].dtype.kind in "iuf"]
    if len(numbers) < (1 if has_word else 2):
        return ""
    above = table.frame[numbers].iloc[:-1]
    of_last = last[numbers].astype(np.float64)
    is_varied = (above.nunique() > 1).all()
    are_sums = np.allclose(of_last, above.sum(), rtol=1e-6, atol=0.0)
    are_means = has_word and np.allclose(of_last, above.mean(), rtol=1e-2, atol=0.0)
    if not is_varied or not (are_sums or are_means):
        return ""
    return ", ".join(map(str, last.iloc[:3]))


def _commented_header(text: str, first_line: int, rows: list[str], separator: str) -> str:
    """Return the comment right above the first row if it names the columns, as NumPy's savetxt writes it, else ''."""
    above = text.split("\n")[max(first_line - 2, 0) : first_line - 1]
    if separator == SPACES or not above or not is_comment(above[0]):
        return ""
    header = above[0].lstrip("# ")
    names = [name.strip() for name in header.split(separator)]
    are_names = "" not in names and len(set(names)) == len(names) and not any(map(is_number, names))
    has_numbers = any(map(is_number, rows[0].split(separator)))
    return header if are_names and has_numbers and len(names) == _count(rows[0], separator) else ""


def _count_single_cells(lengths: list[int]) -> int:
    """Return the number of titles: lines of one cell above others that all have the same number, three or more."""
    n_single = next((place for place, length in enumerate(lengths) if length > 1), 0)
    others = set(lengths[n_single:])
    is_table = len(lengths) > n_single + 2 and len(others) == 1 and min(others) > 2
    return n_single if is_table else 0


def _count_title_rows(rows: list[str], separator: str) -> int:
    """Return the number of rows above the header: titles with empty cells beside them, and empty rows, as Excel writes.

    Below them must be a row of words without an empty cell, except for the first, and below that one with a number.
    """
    if separator == SPACES:
        return 0
    try:
        cells = [[cell.strip() for cell in row] for row in csv.reader(rows, delimiter=separator)]
    except csv.Error:  # a cell of enormous length
        return 0
    filled = [[cell for cell in row if cell] for row in cells]
    if len(cells[0]) < 3 or len(filled[0]) > 1 or any(map(is_number, filled[0])):
        return 0
    header = next((place for place, row in enumerate(filled) if len(row) > 1), None)
    if header is None or header + 1 >= len(cells):
        return 0
    is_header = all(cells[header][1:]) and not any(map(is_number, filled[header]))
    has_numbers = any(map(is_number, filled[header + 1]))
    return header if is_header and has_numbers else 0


def _without_empty_start(rows: list[str], separator: str) -> list[str]:
    """Leave out empty first columns of a table with a header, as of one that begins in the second column of a sheet."""
    if separator == SPACES:
        return rows
    while all(row.startswith(separator) for row in rows):
        words = [cell for row in rows[:20] for cell in row.split(separator) if _is_word(cell)]
        if not words:  # without header it may be the upper triangle of a matrix
            break
        rows = [row[1:] for row in rows]
    return rows


def _is_word(cell: str) -> bool:
    cell = cell.strip(' "')
    return cell != "" and not is_number(cell)


def _without_trailing(table: CellTable, header: list[str]) -> CellTable:
    """Leave out the empty columns without a name that marks at the ends of the lines make; not those of a square."""
    columns = list(table.frame.columns)
    if not table.named and len(columns) == len(table.frame):
        return table
    last = len(columns)
    while last > 1 and not header[last - 1] and not any(table.text(columns[last - 1])):
        last -= 1
    return table.without(columns[last:])


def _with_amounts(table: CellTable) -> CellTable:
    """Read columns as numbers in which every cell is one with a currency or a percent sign."""
    frame = table.frame.copy()
    amounts = {}
    for name, column in table.frame.items():
        if column.dtype.kind != "O":
            continue
        cells = column.dropna().astype(str)
        plain = plain_numbers(list(cells))
        if read_amounts(list(cells)).mark and all(map(is_plain_number, plain)):
            numbers = cells.map(dict(zip(cells, plain))).astype(np.float64)
            frame[name] = numbers.reindex(column.index)
            amounts[str(name)] = list(column.fillna("").astype(str))
    return replace(table, frame=frame, amounts=amounts)


def _with_none_levels(table: CellTable) -> CellTable:
    """Decide the meaning of the word "None": missing if a column of numbers has it, else a level among words."""
    gappy = [name for name, column in table.frame.items() if column.isna().any()]
    with_none = [name for name in gappy if NONE in table.text(name)]
    words = tuple(name for name in with_none if table.frame[name].dtype.kind == "O")
    if len(words) < len(with_none):
        return replace(table, none_levels=words, none_is_missing=True)
    frame = table.frame.copy()
    for name in words:
        is_none = np.array(table.text(name)) == NONE
        frame[name] = frame[name].where(~is_none, NONE)
    return replace(table, frame=frame, none_levels=words)


def _numbered_rows(text: str) -> tuple[list[int], list[str]]:
    """Return the rows that are neither empty nor comments, and the numbers of their lines."""
    numbered = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not is_comment(line):
            numbered.append((number, line))
    numbered = _without_count(numbered)
    return [number for number, _ in numbered], [line for _, line in numbered]


def _count_comments(text: str) -> int:
    """Return the number of comments after the first row."""
    are_comments = [is_comment(line) for line in text.split("\n") if line.strip()]
    if False not in are_comments:
        return 0
    return sum(are_comments[are_comments.index(False) :])


def _without_shift(
    first: list[str], others: list[list[str]], lengths: list[int], width: int
) -> list[str]:
    """Return the first line above its columns: R's write.table has no name above the names of the rows."""
    if width < 2 or len(others) < 2 or first[-1] or not first[0]:
        return first
    is_filled = all(row[-1] for row in others)
    is_one_short = len(lengths) == 1 or (lengths[0] == width - 1 and set(lengths[1:]) == {width})
    return ["", *first[:-1]] if is_filled and is_one_short else first


def _with_ids(table: CellTable) -> CellTable:
    """Use a column as the names of the rows: the first one if it looks like names, or any named id."""
    frame = table.frame
    if table.ids is not None:
        return table
    for i, name in enumerate(frame.columns):
        is_named_id = table.named and name.lower() in ("id", "ids") and frame.shape[1] > 2
        is_first = i == 0 and _names_rows(frame, table.named)
        if is_first or (is_named_id and _is_key(frame[name])):
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
    return [(number, _with_one_name(line, n_items)) for number, line in joined]


def _with_one_name(line: str, n_items: int) -> str:
    """Return a row of a PHYLIP matrix with the words of its name joined, if it is a square's row of this length."""
    cells = line.split()
    name, numbers = cells[:-n_items], cells[-n_items:]
    if len(name) < 2 or not all(map(is_number, numbers)):
        return line
    return " ".join(["_".join(name), *numbers])


class Dialect(NamedTuple):
    """How a text separates cells and decimals, and a number such as 1.234 if points separate thousands."""

    separator: str
    decimal: str
    thousands: str = ""


def _dialect(rows: list[str], later: Sequence[str]) -> Dialect:
    """Infer the marks of a text from its first rows, and from `later` ones whether a comma is a decimal mark."""
    unquoted = [re.sub(r'"[^"]*"', "q", row) for row in rows]
    if _has_decimal_commas(unquoted[-1]):
        return Dialect(SPACES, ",")
    separator = _separator(unquoted)
    if separator == ",":
        return Dialect(separator, ".")
    split = re.compile(SPACES if separator == SPACES else f"[{separator}]")
    table = [[cell.strip(' "') for cell in split.split(row)] for row in (*rows, *later)]
    mark = _decimal_mark(table)
    if mark == "." and separator != SPACES:
        thousands = _point_of_thousands(table)
        if thousands:
            return Dialect(separator, ",", thousands)
    return Dialect(separator, mark)


def _decimal_mark(rows: list[list[str]]) -> str:
    """Return the decimal mark of a table that commas do not separate.

    In "1.234,5" or "12,5" the comma is a decimal mark, in "1,234.5" and "12.5" the point. In "1,234" and "1.234" either
    can be: commas count as decimal marks unless a column also has whole numbers without one.
    """
    rows = [list(map(_without_currency, row)) for row in rows]
    cells = [cell for row in rows for cell in row]
    commas = [cell for cell in cells if _is_decimal_comma(cell)]
    points = [cell for cell in cells if re.fullmatch(r"[+-]?\d*\.\d+", cell)]
    if not commas:
        return "."
    has_sure_comma = any(without_thousands(cell) == cell for cell in commas)
    has_sure_point = any(map(_is_decimal_point, points))
    if points:
        return "," if has_sure_comma and not has_sure_point else "."
    if has_sure_comma or not any(map(_has_thousands, zip(*rows))):
        return ","
    return "."


def _point_of_thousands(rows: list[list[str]]) -> str:
    """Return a number such as 1.234 if points only separate thousands, else ''.

    All of them must be before three digits, and smaller numbers of the same column must have none: decimals with
    exactly three digits are hardly beside whole numbers. Addresses such as 192.168.100.200 all have as many points.
    """
    found = ""
    for column in zip(*rows):
        pointed = [cell for cell in column if re.fullmatch(r"[+-]?[\d.]*\.[\d.]*", cell)]
        if not pointed:
            continue
        if any(_without_points(cell) == cell for cell in pointed):
            return ""
        n_whole = sum(re.fullmatch(r"[+-]?\d{1,3}", cell) is not None for cell in column)
        is_mixed = n_whole > 1 and n_whole > 0.05 * len(pointed)
        n_points = {cell.count(".") for cell in pointed}
        if not is_mixed and len(n_points) == 1:
            return ""
        found = found or pointed[0]
    return found


def _has_thousands(column: Sequence[str]) -> bool:
    """Whether a column has numbers such as 1,234 and whole numbers without a comma."""
    is_separated = any(without_thousands(cell) != cell for cell in column)
    return is_separated and any(re.fullmatch(r"[+-]?\d{1,3}", cell) for cell in column)


def _without_currency(cell: str) -> str:
    """Return a number without its currency, percent sign or parentheses, anything else as it is."""
    amount = read_amount(cell)
    return cell if amount is None else amount.sign + amount.digits


def _is_decimal_point(cell: str) -> bool:
    """Whether a cell is a number with a point that cannot be a mark of thousands."""
    return re.fullmatch(r"[+-]?\d*\.\d+", cell) is not None and _without_points(cell) == cell


def _is_decimal_comma(cell: str) -> bool:
    return re.fullmatch(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?", _without_points(cell)) is not None


def _without_points(cell: str) -> str:
    """Return a number such as "1.234,5" or "1.234" without points between thousands, anything else as it is."""
    return _without_marks(cell, thousands=".", decimal=",")


def _with_point(cell: Any) -> Any:
    """A number of a table with decimal commas as others write it, without points between thousands; else the cell."""
    text = str(cell).strip()
    amount = read_amount(text)
    digits = text if amount is None else amount.digits
    plain = _without_points(digits)
    if _is_decimal_comma(plain):
        plain = plain.replace(",", ".")
    return cell if plain == digits else text.replace(digits, plain)


def _has_decimal_commas(row: str) -> bool:
    """Whether a row has numbers with decimal commas between spaces, such as 1,5 2,5."""
    if set("\t;|") & set(row):
        return False
    cells = row.split()
    are_numbers = all(_is_decimal_comma(cell) or is_plain_number(cell) for cell in cells[1:])
    return are_numbers and sum(map(_is_decimal_comma, cells)) > 1


def _separator(rows: list[str]) -> str:
    """Return the mark that all rows have equally often, else one that most rows have, else spaces."""
    for mark in "\t;|,":
        counts = {row.count(mark) for row in rows}
        if len(counts) == 1 and counts != {0}:
            return mark
    shares = {}
    for mark in "\t;|,":
        times = Counter(row.count(mark) for row in rows)
        n_without = times.pop(0, 0)
        if times and 2 * n_without <= len(rows):
            shares[mark] = max(times.values()) / len(rows)
    # a mark in the texts of most rows is less regular than the one between the cells
    return max(shares, key=lambda mark: shares[mark] * (shares[mark] > 0.5), default=SPACES)


def _count(row: str, separator: str) -> int:
    """Return the number of cells in a row."""
    if '"' in row:
        mark = " " if separator == SPACES else separator
        return len(next(csv.reader([row.strip()], delimiter=mark, skipinitialspace=True)))
    return len(row.split()) if separator == SPACES else row.count(separator) + 1


def _without_end(row: list[str]) -> list[str]:
    """Return a row up to its last cell that is not empty."""
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]


def _is_header(first: list[str], others: list[list[str]], n_rows: int) -> bool:
    """Tell whether a first line names columns: by words, by 0, 1, 2, ..., or by the rows' names."""
    first = _without_end(first)
    longest = max((len(_without_end(row)) for row in others), default=0)
    line = _FirstLine(first, others)
    are_names = len(first) > 2 and len(line.words) == len(first)
    if len(first) < longest - 1 and not are_names:
        return False  # the first line of a triangle
    if not line.numbers:
        has_only_words = not any(is_number(cell) for row in others for cell in row)
        return bool(line.words) and not (has_only_words and line.repeats_below())
    if "" in first[1:]:
        return False
    if first[0] == "":
        is_known = line.is_counted() or line.names_rows() or line.is_ascending()
        return bool(line.words) or is_known
    if line.words:
        if 0 in line.words and line.names_rows():
            return True
        if line.repeats_below():
            return False
        if line.has_usual_name() or line.is_ascending():
            return True
        return line.is_counted() and not line.is_above_names()
    if not line.is_counted() or len(first) <= 2:
        return False
    return n_rows == len(first) + 1 or (first[0] == "0" and n_rows != len(first))


class _FirstLine:
    """The first line of a table and the cells below it."""

    def __init__(self, cells: list[str], others: list[list[str]]):
        self.cells = cells
        self.others = others
        self.numbers = [cell for cell in cells if is_number(cell)]
        self.words = []  # their places
        for i, cell in enumerate(cells):
            if cell not in MISSING and not is_number(cell.replace(",", "")):
                self.words.append(i)

    def below(self, place: int) -> list[str]:
        """Return the cells of a column below the first line."""
        return [row[place] for row in self.others]

    def is_counted(self) -> bool:
        """Whether the numbers are 0, 1, 2, ... or 1, 2, 3, ..."""
        n_numbers = len(self.numbers)
        from_zero = [str(i) for i in range(n_numbers)]
        from_one = [str(i + 1) for i in range(n_numbers)]
        return n_numbers > 1 and self.numbers in (from_zero, from_one)

    def is_ascending(self) -> bool:
        """Whether the numbers are names such as years or wavelengths: whole and ascending, above decimals.

        Above whole numbers there must be five or more of them, in equal steps.
        """
        if len(self.numbers) < 3 or not all(map(str.isdecimal, self.numbers)):
            return False
        steps = np.diff([int(number) for number in self.numbers])
        if steps.min() <= 0 or int(self.numbers[0]) < 100:
            return False
        places = [i for i, cell in enumerate(self.cells) if is_number(cell)]
        are_decimals = all(
            any(is_number(cell) and not cell.isdecimal() for cell in self.below(place))
            for place in places
        )
        return are_decimals or (len(steps) > 3 and np.ptp(steps) == 0)

    def names_rows(self) -> bool:
        """Whether the line repeats the first column: more than a few whole numbers, each once.

        Of few, or of decimals, this would be a symmetric matrix without its corner.
        """
        names = self.cells[1:]
        if len(names) < 5 or len(set(names)) < len(names) or not all(map(str.isdigit, names)):
            return False
        return names == self.below(0)[: len(names)]

    def repeats_below(self) -> bool:
        """Whether a word of the line stands below it again."""
        return any(self.cells[i] in self.below(i) for i in self.words)

    def has_usual_name(self) -> bool:
        """Whether a word is a usual name of labels, or the first one a usual name of rows' names."""
        words = [self.cells[i].lower() for i in self.words]
        is_id = 0 in self.words and self.cells[0].lower() in NAMES.ids
        return is_id or any(word in NAMES.labels for word in words)

    def is_above_names(self) -> bool:
        """Whether all cells below one of the words are different words."""
        for i in self.words:
            cells = self.below(i)
            if len(set(cells)) == len(cells) and not any(map(is_number, cells)):
                return True
        return False


def _is_key(column: "Series") -> bool:
    return bool(column.is_unique and not column.isna().any() and column.dtype.kind != "f")


def counts_rows(column: "Series") -> bool:
    """Whether a column only counts the rows: 0, 1, 2, ... or 1, 2, 3, ..."""
    if column.dtype.kind not in "iu" or len(column) < 3:
        return False
    return column.iloc[0] in (0, 1) and bool((np.diff(column) == 1).all())


def _names_rows(frame: "DataFrame", named: bool) -> bool:
    """Whether the first column holds names of the rows."""
    name = str(frame.columns[0])
    first = frame.iloc[:, 0]
    if frame.shape[1] < 2 or not _is_key(first):
        return False
    if named and name.lower() in NAMES.ids:
        return name == "" or frame.shape[1] > 2 or first.dtype.kind in "biu"
    if named and name.lower() in NAMES.counters and counts_rows(first):
        return frame.shape[1] > 2
    words = first.dtype.kind == "O"
    others = all(dtype.kind in "biuf" for dtype in frame.dtypes[1:])
    return words and others and (not named or frame.shape[1] - 1 in (len(frame), len(frame) - 1))
