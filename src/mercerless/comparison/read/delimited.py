"""Delimited text: which mark separates cells, whether there is a header; pandas parses the cells."""

import csv
import io
import warnings
from itertools import dropwhile, islice, pairwise

import numpy as np
import pandas as pd

from mercerless.comparison.read.files import File, ReadError
from mercerless.comparison.read.options import ReadOptions

#: Words that mean a gap: those of pandas without "None", which is also the name of a class, and "?".
GAPS = (
    *("", "?", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "#N/A N/A", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
NAMED_MARKS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}
#: Separators in the order they are tried; a space is any white space.
MARKS = ("\t", ";", ",", "|", " ")
#: Lines and columns that decide about the separator and the header.
N_LINES, N_COLUMNS = 30, 1000
csv.field_size_limit(2**31 - 1)  # a row without separators is one cell


def read_delimited(file: File, options: ReadOptions) -> pd.DataFrame:
    """The cells of a text file; `attrs["header"]` says whether it has a header."""
    comments, lines = split_comments(split_lines(file.text))
    if not lines:
        raise ReadError(f"{file.name!r} has no rows.")
    mark = find_mark(lines, options)
    rows = join_quoted(lines, mark)
    if is_triangle(widths_of(rows[:N_LINES], mark)) and is_triangle(widths_of(rows, mark)):
        return read_triangle(cells_of(rows, mark), file.name)
    first, second = (cells_of(rows[:2], mark) * 2)[:2]
    width = max(len(first), len(second))
    check_widths(rows, mark, width, file.name)
    is_header = has_header(first, rows, mark, width, file, options)
    if is_header and len(rows) == 1:
        raise ReadError(f"{file.name!r} has a header and no rows below it.")
    frame = parse(rows[is_header:], mark, width, file, options)
    above = cells_of([comments[-1].lstrip("#")], mark)[0] if comments else []
    is_commented = not is_header and options.header is None and len(above) == width > 1
    if is_header or is_commented:
        frame.columns = pd.Index(name_columns(first if is_header else above, width, file.name))
    else:
        frame.columns = pd.Index([f"column {j + 1}" for j in range(width)])
    if not is_commented:
        frame.attrs["header"] = "yes" if is_header else "no"
    check_decimals(frame, file.name, options)
    return frame


def split_lines(text: str) -> list[str]:
    """Lines of any system; other characters that end lines for Python stay in their cells."""
    return io.StringIO(text, newline=None).read().split("\n")


def split_comments(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines with # above the table, and the table."""
    table = list(dropwhile(lambda line: not line.strip() or line.startswith("#"), lines))
    return list(filter(str.strip, lines[: len(lines) - len(table)])), table


def join_quoted(lines: list[str], mark: str, most: int | None = None) -> list[str]:
    """The first rows: a line each, or several if a quoted cell goes over lines."""
    if any('"' in line for line in lines):
        reader, start, rows = csv.reader(lines, delimiter=mark), 0, []
        for _ in islice(reader, most):
            rows.append("\n".join(lines[start : reader.line_num]))
            start = reader.line_num
        lines = rows
    return [row for row in lines[:most] if row.strip()]


def cells_of(rows: list[str], mark: str) -> list[list[str]]:
    """Cells of every row."""
    if mark == " ":
        rows = [" ".join(row.split()) for row in rows]
    return [next(csv.reader(row.split("\n"), delimiter=mark)) for row in rows]


def widths_of(rows: list[str], mark: str) -> list[int]:
    """Number of cells of every row."""
    return [len(cells) for cells in cells_of(rows, mark)]


def is_triangle(widths: list[int]) -> bool:
    """Whether every row has one cell more than the row above."""
    return len(widths) > 2 and all(below - above == 1 for above, below in pairwise(widths))


def find_mark(lines: list[str], options: ReadOptions) -> str:
    """The given separator, or the first that divides the first rows into equally many cells."""
    if options.sep is not None:
        mark = NAMED_MARKS.get(options.sep.lower(), options.sep)
        if len(mark) != 1:
            raise ReadError(
                f"--sep {options.sep!r} is not one character, and not one of {', '.join(NAMED_MARKS)}."
            )
        return mark
    found = {mark: widths_of(join_quoted(lines, mark, N_LINES), mark) for mark in MARKS}
    for mark, widths in found.items():
        is_grid = len(set(widths[1:])) <= 1 and widths[-1] > 1
        # R leaves out the name of the column of row names
        if (is_grid and widths[0] in (widths[-1], widths[-1] - 1)) or is_triangle(widths):
            return mark
    return max(MARKS[:-1], key=lambda mark: np.median(found[mark]))


def check_widths(rows: list[str], mark: str, width: int, name: str) -> None:
    """Raise if a row has more or fewer cells than others; pandas would fill it up."""
    for number, row in enumerate(rows, 1):
        if '"' in row:
            n_cells = len(cells_of([row], mark)[0])
        else:
            n_cells = len(row.split()) if mark == " " else row.count(mark) + 1
        is_short_header = number == 1 and n_cells == width - 1
        if n_cells != width and not is_short_header:
            raise ReadError(
                f"{name!r}: line {number} has {n_cells} cells, most lines {width}; correct or delete it, "
                "or name the separator with --sep."
            )


def read_triangle(rows: list[list[str]], name: str) -> pd.DataFrame:
    """A square matrix of its lower triangle, perhaps with names of rows.

    Rows without names that do not all end in the same number have no diagonal.
    """
    names = None if is_number(rows[0][0]) else [row[0] for row in rows]
    values = rows if names is None else [row[1:] for row in rows]
    if names is None and len({row[-1] for row in values}) > 1:
        values = [[], *values]
    K = np.zeros((len(values), len(values)))
    try:
        for i, row in enumerate(values):
            K[i, : len(row)] = row
    except ValueError:
        raise ReadError(f"{name!r} has a triangle of cells that are not all numbers.") from None
    return pd.DataFrame(K + np.tril(K, -1).T, names, names)


def is_number(cell: str) -> bool:
    """Whether a cell is a plain number."""
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def has_header(
    first: list[str], lines: list[str], mark: str, width: int, file: File, options: ReadOptions
) -> bool:
    """Whether the first line names the columns; raises if that is not clear.

    It does if it has a word above numbers, or only words that are not below them, or if it counts the columns.
    """
    if options.header is not None:
        return options.header == "yes"
    if len(first) < width or not first[0].strip():
        return True
    if len(lines) == 1:
        return width > 1 and not any(map(is_number, first))
    below = parse(lines[1:N_LINES], mark, width, file, options, most_columns=N_COLUMNS)
    cells = dict(zip(below.columns, first))
    has_numbers = {j for j in below if below[j].dtype.kind in "iuf" and below[j].notna().any()}
    words = {j for j, cell in cells.items() if not is_number(cell) and cell not in (*GAPS, "inf")}
    if words & has_numbers:
        return True
    if words == set(cells):
        if width == 1 and below[0].is_unique:
            raise ReadError(
                f"{file.name!r}: is the first line, {first[0][:30]!r}, a header or a string like the "
                "others? Add --header yes, --header no, or --format lines for a list of strings."
            )
        return not any(cells[j] in below[j].to_numpy() for j in cells)
    numbers = [float(cell) for cell in cells.values() if is_number(cell)]
    counted = np.arange(len(numbers))
    if len(numbers) > 1 and len(lines) != width:
        if np.array_equal(numbers, counted) or np.array_equal(numbers, counted + 1):
            return True
    are_years = all(number.is_integer() for number in numbers)
    has_decimals = all(below[j].dtype.kind == "f" for j in has_numbers)
    if len(set(numbers)) == len(numbers) > 1 and are_years and has_decimals:
        raise ReadError(
            f"{file.name!r}: does the first line, {', '.join(first[:4])}, name the columns? Add "
            "--header yes or --header no."
        )
    return False


def name_columns(first: list[str], width: int, name: str) -> list[str]:
    """Names of the columns from the header; the first may lack a name."""
    header = [cell.strip() for cell in first]
    header = [""] * (width - len(header)) + header
    header[1:] = [cell or f"column {j}" for j, cell in enumerate(header[1:], 2)]
    if len(set(header)) < len(header):
        twice = next(cell for cell in header if header.count(cell) > 1)
        raise ReadError(
            f"{name!r}: two columns have the name {twice!r}; rename one, or add --header no if the "
            "first line is data."
        )
    return header


def parse(
    lines: list[str],
    mark: str,
    width: int,
    file: File,
    options: ReadOptions,
    most_columns: int | None = None,
) -> pd.DataFrame:
    """Cells by pandas, with numbered columns."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO("\n".join(lines)),
                sep=r"\s+" if mark == " " else mark,
                names=range(width),
                usecols=None if most_columns is None else range(min(width, most_columns)),
                index_col=False,
                na_values=[*GAPS, *options.missing],
                keep_default_na=False,
                decimal=options.decimal or ".",
                skipinitialspace=True,
                low_memory=False,
            )
    except (ValueError, pd.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ReadError(
            f"{file.name!r} cannot be divided into cells: {reason}; name the separator with --sep."
        ) from None
    return frame.copy()  # a block of memory per type and not per column


def check_decimals(frame: pd.DataFrame, name: str, options: ReadOptions) -> None:
    """Raise if the cells of a column may be numbers that are written in another way, and nothing was said about it."""
    if options.decimal is not None:
        return
    for column in frame.select_dtypes(exclude=["number", "bool"]):
        cells = [str(cell).strip() for cell in frame[column].dropna().head(200)]
        bare = " ".join(cells).replace(",", "").replace(".", "")
        example = next((cell for cell in cells if "," in cell or " " in cell), None)
        if example is not None and all(map(is_number, bare.split())):
            raise ReadError(
                f"{name!r}: are the cells of the column {column!r}, such as {example!r}, numbers? If so, "
                "add --decimal , or delete the marks of thousands, or name what separates cells with "
                "--sep space, tab, comma or semicolon; if they are words, add --decimal ."
            )
