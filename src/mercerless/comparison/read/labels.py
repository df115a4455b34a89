"""Labels, groups and names of items: a column of the data, or a file of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mercerless.comparison.problem import Note
from mercerless.comparison.read.files import open_file
from mercerless.comparison.read.formats import Items, read_content
from mercerless.comparison.read.options import ReadOptions

LABEL_NAMES = ("y", "label", "labels", "target", "class", "classes")
ID_NAMES = ("", "id", "index", "rownames", "row.names", "unnamed: 0", "level_0")


@dataclass(frozen=True)
class Column:
    """A value per item, in the order of the items, or with their names."""

    values: pd.Series
    names: NDArray | None
    source: str

    def align(self, names: Sequence[str] | None, n_items: int, what: str) -> NDArray:
        """A value per item: by names if both sides have them, else by order; None for items without one."""
        by_name = None if self.names is None else pd.Series(self.values.to_numpy(), self.names)
        if names is not None and by_name is not None and by_name.index.isin(names).any():
            if by_name.index.has_duplicates:
                twice = by_name.index[by_name.index.duplicated()][0]
                raise ValueError(f"{self.source} has two {what} for {twice!r}; keep one.")
            found = by_name.reindex(names)
            n_missing = int((~pd.Index(names).isin(by_name.index)).sum())
            if 2 * n_missing > len(names):
                lacking = next(name for name in names if name not in by_name.index)
                raise ValueError(
                    f"{self.source} has no {what} for {lacking!r} and {n_missing - 1} more of the "
                    f"{len(names)} items; do the names agree?"
                )
            return found.to_numpy()
        if len(self.values) != n_items:
            raise ValueError(
                f"{self.source} has {len(self.values)} {what} for {n_items} items; give one per item. "
                "If the data are pairs or hits, add --format pairs or --format hits."
            )
        if names is not None and self.names is not None and not is_counting(self.names):
            raise ValueError(
                f"The names in {self.source}, such as {self.names[0]!r}, are not those of the items, "
                f"such as {names[0]!r}."
            )
        return self.values.to_numpy()


def is_counting(names: NDArray) -> bool:
    """Whether names are only the numbers of the rows."""
    numbers = pd.to_numeric(pd.Series(names), errors="coerce").to_numpy()
    return np.array_equal(numbers - numbers[0], np.arange(len(numbers)))


def is_file(text: str) -> bool:
    """Whether a text is FILE or FILE:COLUMN of an existing file."""
    return Path(text).is_file() or Path(text.rpartition(":")[0]).is_file()


def read_column(text: str, what: str) -> Column:
    """The column of a file that ``FILE`` or ``FILE:COLUMN`` names."""
    path, column = (text, None) if Path(text).is_file() else text.rpartition(":")[::2]
    file = open_file(path)
    content = read_content(file, ReadOptions(kind="table", decimal="."))
    if isinstance(content, dict) and len(content) == 1:
        content = pd.DataFrame({"value": np.ravel(next(iter(content.values())))})
    if isinstance(content, Items) or not isinstance(content, pd.DataFrame):
        raise ValueError(f"{path!r} has no column of {what}; give a table or one value per line.")
    frame = content
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    if column is not None:
        if column not in frame.columns:
            raise ValueError(
                f"{path!r} has no column {column!r}; it has {', '.join(map(str, frame.columns))}."
            )
        others = [name for name in frame.columns if name != column]
        names = frame[others[0]] if others and frame[others[0]].is_unique else None
    elif frame.shape[1] <= 2:
        column = frame.columns[-1]
        names = frame.iloc[:, 0] if frame.shape[1] == 2 else None
    else:
        raise ValueError(
            f"{path!r} has {frame.shape[1]} columns; which are the {what}? Name one, such as "
            f"{path}:{frame.columns[1]}."
        )
    strings = None if names is None else names.astype(str).str.strip().to_numpy(dtype=object)
    return Column(frame[column], strings, repr(path))


def take_column(frame: pd.DataFrame, text: str, what: str) -> tuple[pd.DataFrame, Column]:
    """The column of the data, or of the file, that a user names; a column is taken out of the data."""
    if text in frame.columns:
        return frame.drop(columns=text), Column(frame[text], None, f"the column {text!r}")
    if is_file(text):
        return frame, read_column(text, what)
    columns = list(frame.columns)
    shown = ", ".join(map(str, columns[:12])) + (", ..." if len(columns) > 12 else "")
    raise ValueError(f"{text!r} is neither a file nor a column; the columns are {shown}.")


def take_names(
    frame: pd.DataFrame, options: ReadOptions, notes: list[Note]
) -> tuple[pd.DataFrame, list[str] | None]:
    """The names of the items: the index of a frame, or a first column that is named like one."""
    if options.index is not None and options.index.lower() != "none":
        if options.index not in frame.columns:
            raise ValueError(f"--index {options.index}: there is no such column.")
        names = frame[options.index].astype(str).tolist()
        return frame.drop(columns=options.index), names
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.reset_index(drop=True), list(map(str, frame.index))
    if options.index is not None or frame.shape[1] < 2:
        return frame, None
    first = frame.columns[0]
    cells = frame[first]
    rest = frame.iloc[:, 1:]
    is_corner = list(map(str, rest.columns[: len(frame)])) == list(map(str, cells))
    is_named = str(first).strip().lower() in ID_NAMES and cells.is_unique
    if not (is_corner or is_named) or first in (options.labels, options.groups):
        return frame, None
    if first != "" and not is_corner:
        notes.append(Note(f"the column {first!r} names the items", "index"))
    return rest, cells.astype(str).str.strip().tolist()


def default_label(frame: pd.DataFrame) -> str:
    """The column to predict if nothing was said: the one with a usual name."""
    marked = frame.attrs.get("target")
    if marked in frame.columns:
        return marked
    named = [name for name in frame.columns if str(name).lower() in LABEL_NAMES]
    if len(named) == 1:
        return named[0]
    shown = ", ".join(map(str, frame.columns[:12])) + (", ..." if frame.shape[1] > 12 else "")
    raise ValueError(
        f"Which column is to be predicted? Add --labels COLUMN; the columns are {shown}."
    )
