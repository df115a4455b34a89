"""Excel files, read row by row within bounds: a small file can declare more cells than can be read."""

import csv
import io
import re
import shlex
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

from mercerless.comparison.files import check_size, name_of
from mercerless.comparison.limits import LIMITS
from mercerless.core.optional import import_optional


class _SheetError(ValueError):
    """A sheet that is too large or not there; the message is one sentence."""


def read_sheet(file: BinaryIO, path: Path, sheet: str | None = None) -> str:
    """Return a sheet of an Excel file as text with commas, to be read like any text.

    `sheet` is a name or a number, counted from 1; without it there must be one visible sheet with cells. Formulas are
    the values that Excel stored with them.
    """
    openpyxl = import_optional("openpyxl", "table", "Reading .xlsx")
    what = name_of(path)
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
            # openpyxl's cells are Python objects
            check_size(20.0 * size, what)
            _check_tags(archive, what)
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sheets = {one.title: one for one in workbook.worksheets}
        if sheet is None:
            visible = [title for title in sheets if sheets[title].sheet_state == "visible"]
            rows = {title: _rows(sheets[title], what) for title in visible or sheets}
        else:
            title = _find_sheet(list(sheets), sheet, what)
            rows = {title: _rows(sheets[title], what)}
    except (MemoryError, _SheetError):
        raise
    except Exception:  # a damaged file can fail anywhere in the reader
        raise ValueError(f"{what} is not a readable xlsx file.") from None
    filled = [title for title in rows if rows[title]]
    if not filled:
        raise ValueError(f"{what} has no cells.")
    if len(filled) > 1:
        longest = max(filled, key=lambda title: len(rows[title]))
        raise ValueError(
            f"{what} has sheets {', '.join(map(repr, filled))}; choose one, such as --sheet "
            f"{shlex.quote(longest)}."
        )
    return _as_text(rows[filled[0]])


def _find_sheet(titles: list[str], sheet: str, what: str) -> str:
    """Return the title of the sheet of this name or number."""
    if sheet in titles:
        return sheet
    if sheet.isdigit() and 1 <= int(sheet) <= len(titles):
        return titles[int(sheet) - 1]
    raise _SheetError(f"{what} has no sheet {sheet!r}; it has {', '.join(map(repr, titles))}.")


def _check_tags(archive: zipfile.ZipFile, what: str) -> None:
    """Raise if the file has more rows or cells than are allowed, counted without reading their content."""
    tags = re.compile(rb"<(?:\w+:)?(row|c|si)[\s/>]")
    # a formula with an empty text as its value has the type "str"
    unsaved = re.compile(rb'<c\s(?![^>]*t="str")[^>]*><f[^<]*</f>(?:<v\s*/>|<v></v>)?</c>')
    counts = {b"row": 0, b"c": 0, b"si": 0}
    for member in archive.infolist():
        rest = b""
        with archive.open(member) as stream:
            while block := stream.read(LIMITS.sheet_chunk):
                text = rest + block
                end = max(text.rfind(b"<"), 0)  # a tag may go on in the next block
                rest = text[end:][: LIMITS.sheet_chunk]
                for tag in tags.findall(text[:end]):
                    counts[tag] += 1
                if unsaved.search(text):
                    raise _SheetError(
                        f"{what} has formulas without their values; open it in Excel or "
                        "LibreOffice and save it, or save the sheet as .csv."
                    )
                _check_bounds(counts[b"row"], max(counts[b"c"], counts[b"si"]), what)


def _check_bounds(n_rows: int, n_cells: int, what: str) -> None:
    for count, most, things in (
        (n_rows, LIMITS.sheet_rows, "rows"),
        (n_cells, LIMITS.sheet_cells, "cells"),
    ):
        if count > most:
            raise _SheetError(
                f"{what} has more than {most:,} {things}, empty ones among them; delete those, or "
                "save the sheet as .csv or .parquet."
            )


def _rows(sheet: Any, what: str) -> list[list[Any]]:
    """Return the rows of a sheet up to the last one with a value, all of one length."""
    sheet.reset_dimensions()  # the declared size may be wrong
    rows: list[list[Any]] = []
    n_filled = 0
    width = 0
    for place, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        row = [_cell(value) for value in values]
        while row and row[-1] == "":
            row.pop()
        rows.append(row)
        if row:
            n_filled = place
            width = max(width, len(row))
        _check_bounds(place, n_filled * width, what)
    return [row + [""] * (width - len(row)) for row in rows[:n_filled]]


def _cell(value: Any) -> Any:
    """Return a cell as it would be in a text: whole numbers without a point, nothing for an error."""
    if value is None or (isinstance(value, str) and value in LIMITS.excel_errors):
        return ""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _as_text(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
