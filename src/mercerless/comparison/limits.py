"""The thresholds of reading files, with a sentence each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingLimits:
    """What files may hold, and from when on a guess about them is made."""

    #: Bytes at the start of a file by which its format is recognized.
    head_bytes: int = 65_536
    #: Rows of a sheet, as many as Excel has.
    sheet_rows: int = 1_048_576
    #: Cells of a sheet, empty ones included; about two minutes of reading.
    sheet_cells: int = 10_000_000
    #: Bytes of a sheet's XML that are searched for tags at a time.
    sheet_chunk: int = 2**22
    #: Share of a matrix that may be missing and is completed.
    missing_entries: float = 0.3
    #: Share of the items that must be in a file of names and labels; the others are left out.
    labeled_items: float = 0.5
    #: Share of the ends of edges that must be in the file of labels, for two columns to be edges.
    named_ends: float = 0.9
    #: Share of numbers from which on the other words of a column mark gaps.
    numbers_in_column: float = 0.5
    #: Most different values of a column of numbers and words that is a category.
    mixed_levels: int = 12
    #: Share of numbers from which on the other words among numeric targets mark missing labels.
    numbers_in_target: float = 0.9
    #: Columns from which on whole numbers before decimals are the classes of time series.
    series_columns: int = 10
    #: Most classes that are expected in a column of whole numbers in front of a table.
    leading_classes: int = 60


LIMITS = ReadingLimits()
