"""Excel files, read row by row within bounds: a small file can declare more cells than can be read."""

import csv
import io
import re
import shlex
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple
from xml.etree import ElementTree

from mercerless.comparison.files import check_size, name_of
from mercerless.comparison.limits import LIMITS
from mercerless.core.optional import import_optional


class _SheetError(ValueError):
    """A sheet that is too large or not there; the message is one sentence."""


class SheetText(NamedTuple):
    """A sheet as text with commas, to be read like any text, and what became of its merged cells, or ''."""

    text: str
    merged: str = ""


class MergedCells(NamedTuple):
    """A range of merged cells, counted from 0; only the first of them has a value."""

    top: int
    left: int
    bottom: int
    right: int
    name: str  # as Excel writes it

    @property
    def is_wide(self) -> bool:
        """Whether it covers several columns."""
        return self.right > self.left


def read_sheet(file: BinaryIO, path: Path, sheet: str | None = None) -> str:
    """Return the text of a sheet; see `load_sheet`."""
    return load_sheet(file, path, sheet).text


def load_sheet(file: BinaryIO, path: Path, sheet: str | None = None) -> SheetText:
    """Read a sheet of an Excel file.

    `sheet` is a name or a number, counted from 1; without it there must be one visible sheet with cells. Formulas are
    the values that Excel stored with them. Merged cells all have their value, but a title stays one cell.
    """
    openpyxl = import_optional("openpyxl", "table", "Reading .xlsx")
    what = name_of(path)
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
            # openpyxl's cells are Python objects
            check_size(20.0 * size, what)
            ranges = _check_tags(archive, what)
            merged = _by_title(archive, ranges) if ranges else {}
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
    title = filled[0]
    cells = rows[title]
    note = _fill_merged(cells, merged.get(title, []), what)
    return SheetText(_as_text(cells), note)


def _find_sheet(titles: list[str], sheet: str, what: str) -> str:
    """Return the title of the sheet of this name or number."""
    if sheet in titles:
        return sheet
    if sheet.isdigit() and 1 <= int(sheet) <= len(titles):
        return titles[int(sheet) - 1]
    raise _SheetError(f"{what} has no sheet {sheet!r}; it has {', '.join(map(repr, titles))}.")


def _check_tags(archive: zipfile.ZipFile, what: str) -> dict[str, list[str]]:
    """Return the merged cells of every part of the file that has some.

    Raises if the file has more rows or cells than are allowed, counted without reading their content.
    """
    tags = re.compile(rb"<(?:\w+:)?(row|c|si)[\s/>]")
    # a formula with an empty text as its value has the type "str"
    unsaved = re.compile(rb'<c\s(?![^>]*t="str")[^>]*><f[^<]*</f>(?:<v\s*/>|<v></v>)?</c>')
    merged = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
    counts = {b"row": 0, b"c": 0, b"si": 0}
    ranges: dict[str, list[str]] = {}
    for member in archive.infolist():
        rest = b""
        with archive.open(member) as stream:
            while block := stream.read(LIMITS.sheet_chunk):
                text = rest + block
                end = max(text.rfind(b"<"), 0)  # a tag may go on in the next block
                rest = text[end:][: LIMITS.sheet_chunk]
                for tag in tags.findall(text[:end]):
                    counts[tag] += 1
                for name in merged.findall(text[:end]):
                    ranges.setdefault(member.filename, []).append(name.decode())
                if unsaved.search(text):
                    raise _SheetError(
                        f"{what} has formulas without their values; open it in Excel or "
                        "LibreOffice and save it, or save the sheet as .csv."
                    )
                _check_bounds(counts[b"row"], max(counts[b"c"], counts[b"si"]), what)
    return ranges


def _by_title(
    archive: zipfile.ZipFile, ranges: dict[str, list[str]]
) -> dict[str, list[MergedCells]]:
    """Return the merged cells of sheets by their titles instead of the names of their files."""
    targets = {}
    for relation in ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels")):
        file = PurePosixPath("/xl") / relation.get("Target", "")  # absolute, or below xl
        targets[relation.get("Id", "")] = str(file).lstrip("/")
    by_title = {}
    for element in ElementTree.fromstring(archive.read("xl/workbook.xml")).iter():
        if not element.tag.endswith("}sheet"):
            continue
        key = next((value for name, value in element.items() if name.endswith("}id")), "")
        names = ranges.get(targets.get(key, ""), [])
        by_title[element.get("name", "")] = [_merged_cells(name) for name in names]
    return by_title


def _merged_cells(name: str) -> MergedCells:
    """Return the range of a name such as "A1:C2"."""
    (left, top), (right, bottom) = re.findall(r"([A-Z]+)(\d+)", name)
    return MergedCells(int(top) - 1, _column(left), int(bottom) - 1, _column(right), name)


def _column(letters: str) -> int:
    """Return the number of a column such as "AB", counted from 0."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _fill_merged(rows: list[list[Any]], ranges: list[MergedCells], what: str) -> str:
    """Repeat values in all cells that are merged, and make one line of a header; return what was done, or ''."""
    ranges = sorted(one for one in ranges if _has_value(rows, one) and not _is_title(rows, one))
    first = next((place for place, row in enumerate(rows) if _count_filled(row) > 1), 0)
    last = _last_header(rows, ranges, first)
    n_cells = 0
    for one in ranges:
        value = rows[one.top][one.left]
        for row in rows[one.top : one.bottom + 1]:
            width = len(row[one.left : one.right + 1])
            n_cells += width
            _check_bounds(0, n_cells, what)
            row[one.left : one.left + width] = [value] * width
    notes = []
    if last > first:
        _join_header(rows, first, last)
        notes.append(f"lines {first + 1} to {last + 1} are one header")
    inside = [one.name for one in ranges if one.top > last]
    if inside:
        more = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
        notes.append(f"every cell of {inside[0]}{more} has the value")
    return "; ".join(notes)


def _has_value(rows: list[list[Any]], merged: MergedCells) -> bool:
    is_inside = merged.top < len(rows) and merged.left < len(rows[merged.top])
    return is_inside and rows[merged.top][merged.left] != ""


def _is_title(rows: list[list[Any]], merged: MergedCells) -> bool:
    """Whether merged cells of several columns have the only value of their line."""
    return merged.is_wide and _count_filled(rows[merged.top]) == 1


def _count_filled(row: list[Any]) -> int:
    return sum(cell != "" for cell in row)


def _last_header(rows: list[list[Any]], ranges: list[MergedCells], first: int) -> int:
    """Return the last line of the header whose first line this is: names of several columns have others below them."""
    if not all(isinstance(cell, str) for cell in rows[first]):
        return first
    last = first
    for one in ranges:
        if one.top > last:
            continue
        names_below = one.bottom + 1 if one.is_wide else one.bottom
        between = rows[last + 1 : names_below + 1]
        is_header = one.is_wide or not any(map(_count_filled, between))
        if is_header and names_below + 1 < len(rows):
            last = max(last, names_below)
    return last


def _join_header(rows: list[list[Any]], first: int, last: int) -> None:
    """Make one line of those of a header: the last, or all of them if that does not name every column once."""
    names = list(rows[last])
    are_words = all(isinstance(name, str) and name != "" for name in names)
    if not are_words or len(set(names)) < len(names):
        columns = zip(*rows[first : last + 1])
        parts = [dict.fromkeys(str(cell) for cell in column if cell != "") for column in columns]
        names = [" ".join(part) for part in parts]
    rows[first] = names
    for row in rows[first + 1 : last + 1]:
        row.clear()  # an empty line, so that the others keep their numbers


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
