"""Thresholds and usual names for reading files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingLimits:
    """Bounds of files, and thresholds of the guesses about them."""

    #: Bytes at the start of a file by which its format is recognized.
    head_bytes: int = 65_536
    #: Rows of a sheet, as many as Excel has.
    sheet_rows: int = 1_048_576
    #: Cells of a sheet, empty ones included; about two minutes of reading.
    sheet_cells: int = 10_000_000
    #: Bytes of a sheet's XML that are searched for tags at a time.
    sheet_chunk: int = 2**22
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
    #: The most 0/1 columns that a column of words becomes; rarer words share one.
    categories: int = 30
    #: Numbers that often stand for a gap.
    gap_codes: tuple[int, ...] = (-99, -999, -9999, -99999, 999, 9999, 99999)
    #: What Excel writes in place of a value that it could not compute, in English and, in text files, other languages.
    excel_errors: tuple[str, ...] = (
        *"#NULL! #DIV/0! #VALUE! #REF! #NAME? #NUM! #N/A".split(),
        *"#NV #WERT! #BEZUG! #ZAHL!".split(),
        *"#VALEUR! #NOM? #NOMBRE! #N/D #VALORE! #RIF! #VALOR!".split(),
        *"#N/B #WAARDE! #VERW! #NAAM? #GETAL! #DEEL/0!".split(),
    )


LIMITS = ReadingLimits()


@dataclass(frozen=True)
class UsualNames:
    """Usual names of arrays and columns; if several match, the first is taken."""

    #: Matrices in a file of several arrays.
    matrices: tuple[str, ...] = (
        "K",
        "D",
        "S",
        "similarity",
        "similarities",
        "distance",
        "distances",
        "kernel",
        "gram",
        "matrix",
        "X",
    )
    #: Square matrices that hold distances, whatever their diagonal.
    distances: tuple[str, ...] = ("d", "dist", "distance", "distances")
    #: Arrays and columns of labels.
    labels: tuple[str, ...] = ("y", "labels", "label", "target", "targets", "classes", "class")
    #: Columns of groups that are never split.
    groups: tuple[str, ...] = ("group", "groups")
    #: Columns that mark training and test rows.
    splits: tuple[str, ...] = ("split", "partition", "subset", "set", "dataset")
    #: First columns that name the rows.
    ids: tuple[str, ...] = (
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
    #: First columns that name the rows if they count them.
    counters: tuple[str, ...] = ("x", "nr", "no", "row", "rowid", "row_id", "obs", "case")
    #: Columns that number the rows if every row is different.
    numbering: tuple[str, ...] = ("", "id", "ids", "index", "unnamed: 0")


NAMES = UsualNames()
