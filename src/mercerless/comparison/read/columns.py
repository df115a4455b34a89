"""Columns with a meaning: labels, groups and the names of items, in the data or in a file of their own."""

from pathlib import Path

import numpy as np
import pandas as pd

from mercerless.comparison.problem import Note
from mercerless.comparison.read.files import open_file
from mercerless.comparison.read.formats import read_content
from mercerless.comparison.read.items import Column, Items
from mercerless.comparison.read.options import ReadOptions

ID_NAMES = ("", "id", "index", "rownames", "row.names", "unnamed: 0", "level_0")


def is_file(text: str) -> bool:
    """Whether a text is FILE or FILE:COLUMN of an existing file."""
    return Path(text).is_file() or Path(text.rpartition(":")[0]).is_file()


def read_column(text: str, what: str) -> Column:
    """The column of a file that ``FILE`` or ``FILE:COLUMN`` names."""
    path, name = text, None
    if not Path(text).is_file():
        path, _, name = text.rpartition(":")
    content = read_content(open_file(path), ReadOptions(kind="table", decimal="."))
    if isinstance(content, dict):
        content = pd.DataFrame({key: np.ravel(array) for key, array in content.items()})
    if not isinstance(content, pd.DataFrame):
        raise ValueError(f"{path!r} has no column of {what}; give a table or one value per line.")
    frame = content if isinstance(content.index, pd.RangeIndex) else content.reset_index()
    if name is None and frame.shape[1] > 2:
        raise ValueError(
            f"{path!r} has {frame.shape[1]} columns; which are the {what}? Name one, such as "
            f"{path}:{frame.columns[1]}."
        )
    name = frame.columns[-1] if name is None else name
    if name not in frame:
        listed = ", ".join(map(str, frame.columns))
        raise ValueError(f"{path!r} has no column {name!r}; it has {listed}.")
    others = frame.drop(columns=name)
    names = None
    if others.shape[1]:
        names = [cell.strip() for cell in others.iloc[:, 0].astype(str)]
    return Column(frame[name].to_numpy(), names, repr(path))


def column_of(items: Items, options: ReadOptions, what: str) -> Column | None:
    """The labels or groups: in the data, or in the file that the option names."""
    column = getattr(items, what)
    text = getattr(options, what)
    if column is not None or (text is None and what == "groups"):
        return column
    if text is not None and is_file(text):
        return read_column(text, what)
    columns = ""
    is_frame = isinstance(items.X, pd.DataFrame) and len(items.X.columns) > 0
    if is_frame and list(items.X.columns) != items.names:  # a matrix has a column per item
        shown = ", ".join(items.X.columns[:12])
        others = " and others" if len(items.X.columns) > 12 else ""
        columns = f"; the columns are {shown}{others}"
    if text is not None:
        raise ValueError(f"--{what} {text}: {text!r} is neither a file nor a column{columns}.")
    raise ValueError(
        "What is to be predicted? Add --labels COLUMN, or --labels FILE with one label per item"
        f"{columns}."
    )


def take_names(
    frame: pd.DataFrame, options: ReadOptions, notes: list[Note]
) -> tuple[pd.DataFrame, list[str] | None]:
    """The names of the items: the given column, the index, or a first column that is named like one."""
    first, index = frame.columns[0], options.index
    without_index = frame.reset_index(drop=True)
    if index is None and not isinstance(frame.index, pd.RangeIndex):
        return without_index, list(map(str, frame.index))
    if index is not None and index.lower() == "none":
        return without_index, None
    if index is None:
        other_columns = list(frame.columns[1 : len(frame) + 1])
        is_corner = other_columns == list(map(str, frame[first]))
        is_named = first.strip().lower() in ID_NAMES and frame[first].is_unique
        is_taken = first in (options.labels, options.groups) or frame.shape[1] < 2
        if is_taken or not (is_corner or is_named):
            return frame, None
        if first != "" and not is_corner:
            notes.append(Note(f"the column {first!r} names the items", "index"))
        index = first
    if index not in frame:
        raise ValueError(f"--index {index}: there is no such column.")
    return frame.drop(columns=index), [cell.strip() for cell in frame[index].astype(str)]
