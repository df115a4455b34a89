"""Labels: one per item, in the order of the items or beside their names; a missing label is no class."""

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.arrays import find_labels, find_names, load_arrays
from mercerless.comparison.files import existing_file, holds_arrays, holds_frame, name_of, open_file
from mercerless.comparison.formats import content_text, parse_text, read_frame
from mercerless.comparison.limits import LIMITS, NAMES
from mercerless.comparison.tables import (
    MISSING,
    NONE,
    CellTable,
    is_comment,
    is_plain_number,
    parse_table,
    plain_numbers,
)
from mercerless.core.validation import guess_task


def parse_labels(cells: Sequence[str], what: str, none_is_missing: bool = False) -> NDArray:
    """Return labels as numbers if all of them are plain numbers, else as text.

    Marks of thousands are left out. Missing labels are NaN among numbers and None among words. The word "None" is a
    class among words unless `none_is_missing`. A rare word among the numbers of a numeric target is a missing label.
    """
    cells = [str(cell).strip() for cell in cells]
    present = [cell for cell in cells if cell not in MISSING]
    if not present and NONE not in cells:
        raise ValueError(f"All {len(cells)} labels are missing in {what}.")
    numbers = [cell for cell in plain_numbers(present) if is_plain_number(cell)]
    if present and (len(numbers) == len(present) or _is_numeric_target(numbers, len(present))):
        return _as_numbers(plain_numbers(cells))
    gaps = set(MISSING) if none_is_missing else set(MISSING) - {NONE}
    if gaps.isdisjoint(cells):
        return np.array(cells)
    return np.array([None if cell in gaps else cell for cell in cells], dtype=object)


def _is_numeric_target(numbers: list[str], n_present: int) -> bool:
    """Whether most labels are numbers of so many values that the other words cannot be classes."""
    if len(numbers) < LIMITS.numbers_in_target * n_present:
        return False
    return guess_task(np.array(numbers, dtype=np.float64))[0] == "regression"


def _as_numbers(cells: list[str]) -> NDArray:
    if all(re.fullmatch(r"[+-]?\d{1,18}", cell) for cell in cells):
        return np.array(cells, dtype=np.int64)
    return np.array([float(cell) if is_plain_number(cell) else np.nan for cell in cells])


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA, or the text that NumPy makes of NaN."""
    if isinstance(label, str):
        return label.strip() in ("", "nan")
    if label is None or type(label).__name__ == "NAType":
        return True
    return isinstance(label, (float, np.generic)) and bool(label != label)


def label_values(values: NDArray, what: str) -> NDArray:
    """Return an array as one label per item."""
    labels = values.ravel() if values.ndim == 2 and 1 in values.shape else values
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "biufUS":
        raise ValueError(f"{what} must hold one label per item, as numbers or text.")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"{what} has labels that are infinite; remove those items first.")
    return labels.astype(str) if labels.dtype.kind == "S" else labels


def read_labels(
    path: str | os.PathLike, n_items: int | None = None, ids: Sequence[str] | None = None
) -> NDArray:
    """Read one label per item: an array, one label per line, or a table of names and labels in any order.

    ``n_items`` distinguishes a header from a label; labels are found by name if the file has the `ids`.
    """
    path = existing_file(path)
    file, form = open_file(path)
    with file:
        if holds_arrays(form):
            arrays = load_arrays(file, form, path)
            labels = _from_arrays(arrays, path)
            names = find_names(arrays, len(labels))
            if ids is None or names is None:
                return labels
            named = [[name, str(label)] for name, label in zip(names, labels.tolist())]
            rows = LabelRows(["id", "label"], named)
        else:
            rows = _read_rows(file, form, path)
    if ids is not None and rows.width > 1:
        place = _place_of_names(rows, ids)
        if place is not None:
            return _labels_by_name(rows, place, ids, path)
        _check_names(rows, ids, path)
    place = _place_of_any_names(rows)
    if ids is None and place is not None:
        _check_order([row[place] for row in rows.cells], path)
    columns = [column for column in range(rows.width) if column != place]
    column = _label_column(rows.header, columns, path)
    cells = [row[column] for row in rows.cells]
    if n_items is not None and len(cells) == n_items + 1 and rows.header is None:
        cells = cells[1:] if _may_be_header(cells) else cells
    if rows.width == 1 and rows.header is not None and n_items == len(cells) + 1:
        first = rows.header[0]
        if first in cells:  # "y" and "n" are classes as well
            cells = [first, *cells]
    return parse_labels(cells, name_of(path))


def _may_be_header(cells: list[str]) -> bool:
    """Whether the first of the labels may be their name: a word that is none of the others, or the 0 of pandas."""
    first, *others = cells
    if first == "0":
        return True
    are_numbers = all(is_plain_number(cell) or cell in MISSING for cell in others)
    return first not in others and not (are_numbers and is_plain_number(first))


def label_names(path: str | os.PathLike) -> set[str]:
    """Return all cells of a file of names and labels, among them the names of the items; of arrays only the names."""
    path = existing_file(path)
    file, form = open_file(path)
    with file:
        if holds_arrays(form):
            arrays = load_arrays(file, form, path)
            return set(find_names(arrays, len(_from_arrays(arrays, path))) or ())
        rows = _read_rows(file, form, path)
    if rows.width < 2:
        return set()
    return {cell for row in rows.cells for cell in row}


def _read_rows(file: BinaryIO, form: str, path: Path) -> "LabelRows":
    if holds_frame(form):
        return _rows_of_table(read_frame(file, form, path))
    return _label_rows(content_text(file, form, path), form, path)


def _from_arrays(arrays: dict[str, NDArray], path: Path) -> NDArray:
    name = next(iter(arrays)) if len(arrays) == 1 else find_labels(arrays)
    if name is None:
        raise ValueError(
            f"{str(path)!r} has no array named {' or '.join(NAMES.labels)}; it has "
            f"{', '.join(arrays)}."
        )
    return label_values(arrays[name], repr(str(path)))


class LabelRows(NamedTuple):
    """The rows of a file of labels, and its header if one was detected."""

    header: list[str] | None
    cells: list[list[str]]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.cells[0])


def _label_rows(text: str, form: str, path: Path) -> LabelRows:
    if form in ("table", "lines", "xlsx"):
        return _rows_of_text(text, path)
    content = parse_text(text, form, path)
    if not isinstance(content, CellTable):
        raise ValueError(f"{name_of(path)} holds items, not labels; give one label per line.")
    return _rows_of_table(content)


def _rows_of_text(text: str, path: Path) -> LabelRows:
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not is_comment(line)]
    if not lines:
        raise ValueError(f"{name_of(path)} has no rows.")
    has_columns = any(mark in line for line in lines for mark in "\t;,")
    if has_columns:
        return _rows_of_table(parse_table(text, path))
    named_rows = _rows_of_r(lines)
    if named_rows is not None:
        return named_rows
    pairs = [line.split() for line in lines]
    names = {pair[0] for pair in pairs}
    if all(len(pair) == 2 for pair in pairs) and len(names) == len(pairs) > 2:
        has_header = pairs[0][1].lower() in NAMES.labels or pairs[0][0].lower() in NAMES.ids
        return LabelRows(pairs[0], pairs[1:]) if has_header else LabelRows(None, pairs)
    cells = [[line.strip('"')] for line in lines]
    if cells[0][0].lower() in NAMES.labels and len(cells) > 1:
        return LabelRows(cells[0], cells[1:])
    return LabelRows(None, cells)


def _rows_of_r(lines: list[str]) -> LabelRows | None:
    """Return the rows of a file by R's write.table: its header lacks a cell above the names of the rows."""
    split = list(csv.reader(lines, delimiter=" ", skipinitialspace=True))
    header, rows = split[0], split[1:]
    width = len(header) + 1
    if len(rows) < 2 or any(len(row) != width for row in rows):
        return None
    names = {row[0] for row in rows}
    if len(names) < len(rows):  # two words in every label
        return None
    return LabelRows(["", *header], rows)


def _rows_of_table(table: CellTable) -> LabelRows:
    if table.ragged:
        raise ValueError(
            f"{table.ragged}; give one label per item, alone or after the item's name."
        )
    columns = [table.text(name) for name in table.frame.columns]
    header = list(table.frame.columns)
    if table.ids is not None:
        columns = [list(table.ids), *columns]
        header = ["", *header]
    cells = [list(row) for row in zip(*columns)]
    return LabelRows(header if table.named else None, cells)


def _place_of_names(rows: LabelRows, ids: Sequence[str]) -> int | None:
    """Return the column that has most of the items' names, or None if no column has any."""
    items = set(ids)
    shared = [len(items & {row[place] for row in rows.cells}) for place in range(rows.width)]
    best = int(np.argmax(shared))
    return best if shared[best] else None


def _place_of_any_names(rows: LabelRows) -> int | None:
    """Return the column that names or numbers the items, if there are several columns, or None.

    It is one that is named so, or else the first in which all cells are different and none is a decimal.
    """
    if rows.width == 1:
        return None
    for place in range(rows.width):
        is_named_so = rows.header is not None and rows.header[place].lower() in NAMES.ids
        if is_named_so and _are_names([row[place] for row in rows.cells]):
            return place
    return 0 if _are_names([row[0] for row in rows.cells]) else None


def _are_names(cells: list[str]) -> bool:
    """Whether all cells are different, and none is a decimal."""
    has_decimals = any("." in cell for cell in cells if is_plain_number(cell))
    return len(set(cells)) == len(cells) and not has_decimals


def are_positions(names: Sequence[str]) -> bool:
    """Whether names of rows only count them: 0, 1, 2, ..., or 1, 2, 3, ..., or V1, V2, V3, ... as in R."""
    for start, prefix in ((0, ""), (1, ""), (1, "V"), (1, "X")):
        if all(name == f"{prefix}{i}" for i, name in enumerate(names, start)):
            return True
    return False


def _check_names(rows: LabelRows, ids: Sequence[str], path: Path) -> None:
    """Raise if the first column names other items than the data, so that the order of the labels is unknown."""
    names = [row[0] for row in rows.cells]
    if not _are_names(names) or are_positions(names) or are_positions(ids):
        return
    raise ValueError(
        f"{name_of(path)} names other items, such as {names[0]!r}, than the data, such as "
        f"{ids[0]!r}; write the items' "
        "names as in the data, or give the labels alone, in the order of the items."
    )


def _check_order(names: list[str], path: Path) -> None:
    """Raise if names number the items in another order than that of the rows."""
    if are_positions(names) or not all(map(str.isdecimal, names)):
        return
    if are_positions(sorted(names, key=int)):
        raise ValueError(
            f"{name_of(path)} numbers the items in another order ({', '.join(names[:3])}, ...), "
            "and the data has no names to compare; sort the labels by these numbers, or leave the "
            "numbers out if the labels are in the order of the data."
        )


def written_alike(name: str) -> str:
    """Return a name without what programs change: case, marks, and zeros in front of numbers."""
    without_zeros = re.sub(r"(?<!\d)0+(?=\d)", "", name.casefold())
    return re.sub(r"[\W_]+", "", without_zeros)


def _check_spelling(unlabeled: list[str], others: set[str], path: Path) -> None:
    """Raise if items lack a label only because their names are written in another way."""
    spellings = {written_alike(name): name for name in others}
    for item in unlabeled:
        other = spellings.get(written_alike(item))
        if other is not None:
            raise ValueError(
                f"{name_of(path)} has a label for {other!r}, but the data has {item!r}; write the "
                "names in both files in the same way."
            )


def _labels_by_name(rows: LabelRows, place: int, ids: Sequence[str], path: Path) -> NDArray:
    """Return the labels in the order of the items; those of items that the file lacks are missing."""
    others = [column for column in range(rows.width) if column != place]
    column = _label_column(rows.header, others, path)
    by_item: dict[str, str] = {}
    for row in rows.cells:
        if by_item.setdefault(row[place], row[column]) != row[column]:
            raise ValueError(f"{name_of(path)} has two labels for {row[place]!r}; keep one.")
    unlabeled = [item for item in ids if item not in by_item]
    n_items = len(ids)
    if unlabeled in (["0"], [str(n_items)]) and len(by_item) == n_items and are_positions(ids):
        first, other = ("0", "1") if unlabeled == ["0"] else ("1", "0")
        raise ValueError(
            f"{name_of(path)} counts the items from {other}, but the data counts them from "
            f"{first}; number both alike."
        )
    _check_spelling(unlabeled, by_item.keys() - set(ids), path)
    if len(unlabeled) > (1 - LIMITS.labeled_items) * len(ids):
        raise ValueError(
            f"{name_of(path)} has no label for {unlabeled[0]!r} and {len(unlabeled) - 1} more of "
            f"the {len(ids)} items; write the items' names as in the data."
        )
    return parse_labels([by_item.get(item, "") for item in ids], name_of(path))


def _label_column(header: list[str] | None, columns: list[int], path: Path) -> int:
    """Return which of the `columns` holds the labels."""
    if len(columns) == 1:
        return columns[0]
    named = [i for i in columns if header is not None and header[i].lower() in NAMES.labels]
    if len(named) == 1:
        return named[0]
    raise ValueError(
        f"{name_of(path)} has {len(columns)} columns that may be labels; keep the items' names and "
        f"one column, or name it {NAMES.labels[0]!r}."
    )
