"""Delimited text: which mark separates cells, whether there is a header; pandas parses the cells."""

import csv
import io
import re
import warnings
from itertools import islice, pairwise

import numpy as np
import pandas as pd

from mercerless.comparison.read.files import File
from mercerless.comparison.read.options import ReadOptions

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
TWO_NUMBERS = re.compile(r"\s*[+-]?\d[\d.,]*\s+[+-]?\d[\d.,]*\s*")
#: Words that mean a gap, beside those of pandas.
GAPS = ("?",)
#: Separators in the order they are tried; None is any white space.
SEPARATORS = ("\t", ";", ",", "|", None)
SAMPLE_LINES = 30
SAMPLE_CELLS = 40_000
NAMED = {"tab": "\t", "\\t": "\t", "space": None, "comma": ",", "semicolon": ";", "bar": "|"}


def read_delimited(file: File, options: ReadOptions) -> pd.DataFrame:
    """Return the cells of a text file; a triangle of a matrix has gaps above its diagonal."""
    lines = [line for line in file.text.splitlines() if line.strip()]
    if lines and lines[0].lower().startswith("sep=") and len(lines[0]) == 5:
        options = ReadOptions.from_dict(options.as_dict() | {"sep": lines[0][4]})
        lines = lines[1:]
    start = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    lines = lines[start:]
    if not lines:
        raise ValueError(f"{file.name!r} has no rows.")
    n_cells = 1 + max(lines[0].count(mark) for mark in "\t;,| ")
    sample = lines[: max(4, min(SAMPLE_LINES, SAMPLE_CELLS // n_cells))]
    separator = find_separator(sample, file, options)
    rows = split(sample, separator)
    if is_triangle(rows) and is_triangle(split(lines, separator)):
        return read_triangle(split(lines, separator), file.name)
    has_header = has_names(rows, options, file.name, len(lines))
    header = name_columns(rows, has_header, file.name)
    check_widths(lines, separator, len(header), file.name)
    frame = parse(lines[has_header:], separator, header, file, options)
    frame.attrs["header"] = "yes" if has_header else "no"
    check_decimals(frame, file.name, options)
    return frame


def split(lines: list[str], separator: str | None) -> list[list[str]]:
    """Cells of every line."""
    if separator is None:
        lines = [" ".join(line.split()) for line in lines]
    return list(csv.reader(lines, delimiter=separator or " "))


def find_separator(lines: list[str], file: File, options: ReadOptions) -> str | None:
    """The given separator, or the first that divides all lines into equally many cells."""
    if options.sep is not None:
        separator = NAMED.get(options.sep.lower(), options.sep)
        if separator is not None and len(separator) != 1:
            raise ValueError(
                f"--sep {options.sep!r} is not one character, and not one of {', '.join(NAMED)}."
            )
        return separator
    for separator in SEPARATORS:
        if separator is not None and separator not in lines[0] + lines[-1]:
            continue
        widths = [len(cells) for cells in split(lines, separator)]
        is_grid = len(set(widths)) == 1 and widths[0] > 1
        # R leaves out the name of the column of row names
        is_from_r = len(set(widths[1:])) == 1 and widths[0] == widths[1] - 1 > 0
        if is_grid or is_from_r or is_triangle(split(lines, separator)):
            return separator
    return raise_if_ragged(lines, file.name)


def raise_if_ragged(lines: list[str], name: str) -> str:
    """Return a separator that leaves each line whole; raise if some lines seem to have several cells."""
    for separator in SEPARATORS[:-1]:
        if not any(separator in line for line in lines):
            continue
        widths = [len(cells) for cells in split(lines, separator)]
        usual = max(set(widths), key=widths.count)
        if usual > 1:
            line = next(i for i, width in enumerate(widths) if width != usual)
            raise ValueError(
                f"{name!r}: line {line + 1} has {widths[line]} cells, most lines {usual}; correct "
                "or delete that line, or name the separator with --sep."
            )
    return "\t"


def check_widths(lines: list[str], separator: str | None, width: int, name: str) -> None:
    """Raise if a line without quotes has more or fewer cells than the others; pandas would fill them up."""
    for number, line in enumerate(lines, 1):
        if '"' in line:
            continue
        n_cells = len(line.split()) if separator is None else line.count(separator) + 1
        if n_cells != width and not (number == 1 and n_cells == width - 1):
            raise ValueError(
                f"{name!r}: line {number} has {n_cells} cells, most lines {width}; correct or delete it, or "
                "name the separator with --sep."
            )


def is_triangle(rows: list[list[str]]) -> bool:
    """Whether every row has one cell more, or one less, than the row above."""
    widths = [len(row) for row in rows]
    steps = {after - before for before, after in pairwise(widths)}
    return len(rows) > 2 and steps in ({1}, {-1})


def read_triangle(rows: list[list[str]], name: str) -> pd.DataFrame:
    """A square of a lower triangle, or of an upper one written from the left, perhaps with names of rows.

    A lower triangle whose rows do not all end in the same number has no diagonal.
    """
    is_named = not all(NUMBER.fullmatch(row[0]) for row in rows)
    names = [row[0] for row in rows] if is_named else None
    try:
        values = [[float(cell) for cell in (row[1:] if is_named else row)] for row in rows]
    except ValueError:
        raise ValueError(f"{name!r} has a triangle of cells that are not all numbers.") from None
    is_upper = len(values[0]) > len(values[-1])
    if is_upper:
        values = [row[::-1] for row in reversed(values)]
    if not is_named and len({row[-1] for row in values}) > 1:
        values = [[], *values]
    table = np.zeros((len(values), len(values)))
    for i, row in enumerate(values):
        table[i, : len(row)] = row
        table[: len(row), i] = row
    if is_upper:
        table = table[::-1, ::-1]
    return pd.DataFrame(table, index=names, columns=names)


def has_names(rows: list[list[str]], options: ReadOptions, name: str, n_lines: int) -> bool:
    """Whether the first line names the columns.

    It does if it has a word above numbers, or only words that are not below them, or if it counts the columns; it
    does not if it has numbers above numbers. Raises if neither reading is safe.
    """
    if options.header is not None:
        return options.header == "yes"
    first, rest = rows[0], rows[1:]
    if not rest:
        return False
    if len(first) == len(rest[0]) - 1:
        return True
    below = [[row[j] for row in rest if j < len(row)] for j in range(len(first))]
    is_word_above_numbers = [
        bool(cell.strip()) and not is_number(cell) and cells_are_numbers(cells)
        for cell, cells in zip(first, below)
    ]
    numbers = [cell for cell in first if is_number(cell)]
    if any(is_word_above_numbers):
        return True
    if len(first) == 1 and not numbers and len(set(below[0])) == len(below[0]):
        raise ValueError(
            f"{name!r}: is the first line, {first[0][:30]!r}, a header or a string like the others? Add "
            "--header yes, --header no, or --format lines for a list of strings."
        )
    if not numbers:  # a header has words that its columns do not have
        return not any(cell in cells for cell, cells in zip(first, below) if cell.strip())
    counts = [str(i) for i in range(len(first) + 1)]
    if n_lines != len(first) and numbers in (counts[: len(numbers)], counts[1 : len(numbers) + 1]):
        if len(numbers) > 1 or (len(numbers) == len(first) - 1 and not first[0]):
            return True
    if not first[0].strip():
        return True
    are_years = all(re.fullmatch(r"\d+", cell) for cell in numbers) and len(set(numbers)) > 1
    has_decimals = all(
        any("." in cell or "e" in cell.lower() for cell in cells)
        for cell, cells in zip(first, below)
        if is_number(cell)
    )
    if are_years and has_decimals and len(set(numbers)) == len(numbers):
        raise ValueError(
            f"{name!r}: does the first line, {', '.join(first[:4])}, name the columns? Add --header yes "
            "or --header no."
        )
    return False


def is_number(cell: str) -> bool:
    """Whether a cell is a plain number."""
    return NUMBER.fullmatch(cell) is not None or DECIMAL_COMMA.fullmatch(cell) is not None


def cells_are_numbers(cells: list[str]) -> bool:
    """Whether at least one cell is a number, and none is a word other than a gap."""
    gaps = ("", "na", "nan", "null", "?", "n/a", "none")
    filled = [cell for cell in cells if cell.strip().lower() not in gaps]
    return bool(filled) and all(map(is_number, filled))


def name_columns(rows: list[list[str]], has_header: bool, name: str) -> list[str]:
    """Names of the columns: the header, or their numbers from 1 on."""
    width = len(rows[-1])
    if not has_header:
        return [f"column {j + 1}" for j in range(width)]
    header = [cell.strip() for cell in rows[0]]
    if len(header) == width - 1:
        header = ["", *header]
    header[1:] = [cell or f"column {j}" for j, cell in enumerate(header[1:], 2)]
    if len(set(header)) < len(header):
        twice = next(cell for cell in header if header.count(cell) > 1)
        raise ValueError(
            f"{name!r}: two columns have the name {twice!r}; rename one, or add --header no if the "
            "first line is data."
        )
    return header


def parse(
    lines: list[str], separator: str | None, header: list[str], file: File, options: ReadOptions
) -> pd.DataFrame:
    """Cells by pandas; lines of another length raise."""
    arguments = {"sep": separator} if separator else {"sep": r"\s+"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.StringIO("\n".join(lines)),
                header=None,
                names=header,
                index_col=False,
                na_values=[*GAPS, *options.missing],
                decimal=options.decimal or ".",
                skipinitialspace=True,
                low_memory=False,
                **arguments,
            )
    except (ValueError, pd.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ValueError(
            f"{file.name!r} cannot be divided into cells: {reason}; name the separator with --sep."
        ) from None


def check_decimals(frame: pd.DataFrame, name: str, options: ReadOptions) -> None:
    """Raise if a column holds numbers with a decimal comma and nothing was said about it."""
    if options.decimal is not None:
        return
    for column in frame.columns[[not pd.api.types.is_numeric_dtype(d) for d in frame.dtypes]]:
        cells = list(islice((cell for cell in frame[column] if isinstance(cell, str)), 200))
        if cells and all(map(DECIMAL_COMMA.fullmatch, cells)):
            raise ValueError(
                f"{name!r}: is the comma in {cells[0]!r} (column {column!r}) a decimal point? Add "
                "--decimal , (or --decimal . if these are words)."
            )
        if cells and all(map(TWO_NUMBERS.fullmatch, cells)):
            raise ValueError(
                f"{name!r}: what separates the numbers in {cells[0]!r}? Name it with --sep space, tab, "
                "comma or semicolon, and --decimal , if the comma is a decimal point."
            )
