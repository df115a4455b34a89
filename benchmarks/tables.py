"""The tables and figures that pages show, declared in tables.toml and figures.toml over rows of results.

The ``data`` of a declaration is "papers/krein_table1" for ``benchmarks/papers/results/krein_table1.csv``, the name of
a frame declared in frames.toml, a function of frames.py with its arguments, or a list of these, one below the other.
The steps after that, in this order, each of them optional:

``only``   a query of pandas that chooses rows
``with``   new columns: Python expressions in the columns, the whole ``frame``, and what frames.py defines or imports
``by``     the mean of rows that agree in these columns, or what ``take`` names instead of the mean
``melt``   [columns to repeat, name, value]: a row for each other column
``wide``   [index, columns, values]: a column for each value of a column
``merge``  another frame, joined to the rows with the same values in the columns that both have
``then``   new columns after all this, as ``with`` before it
``keep``   the only columns that stay
``where``  a query that chooses among the rows made so far
``sort``   a column, with a minus sign for descending

Cells are `str.format` templates over the columns of a row, with three additions: ``{r2:.2f}`` rounds halves up,
``{share:.1p}`` is a percentage, ``{r2:.4r}`` drops the zero before the point. What stands in square brackets is left
out if a value in it is missing; if any other value is missing, the cell is empty.
"""

import re
import tomllib
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import pandas as pd

HERE = Path(__file__).parent


def results(name):
    """The rows of ``papers/krein_table1``, say."""
    group, file = name.split("/")
    folder = HERE / group
    if not file.endswith("_paper"):  # the numbers that a paper prints are no results
        folder = folder / "results"
    path = folder / f"{file}.csv"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: run the benchmark that writes it, see python -m benchmarks list"
        )
    rows = pd.read_csv(path, dtype={"table": str})
    rows.columns = rows.columns.str.replace(" | ", " or ")  # which separates cells in templates
    return rows


def wide(rows, index, columns, values):
    """A column for each value of `columns`; rows stay in the order in which they first appear."""
    index = [index] if isinstance(index, str) else index
    table = rows.pivot(index=index, columns=columns, values=values).reset_index()
    if isinstance(values, list):
        table.columns = [" ".join(map(str, name)).strip() for name in table.columns]
    return rows[index].drop_duplicates().merge(table, on=index)


# ---------------------------------------------------------------------------------------------------- templates
class Missing(Exception):
    """A template asks for a value that is missing."""


class Span(NamedTuple):
    """Written as one number, or as the least and the most if these differ."""

    least: float
    most: float


def number(value, digits):
    """A rounded number, halves away from zero."""
    unit = Decimal(10) ** -digits
    return str(Decimal(str(value)).quantize(unit, rounding=ROUND_HALF_UP))


class CellFormatter(Formatter):
    """`str.format` with the additions of this module."""

    def get_value(self, key, args, kwargs):
        return kwargs[str(key)]  # some columns are called 200

    def format_field(self, value, format_spec):
        if isinstance(value, Span):
            texts = [self.format_field(end, format_spec) for end in value]
            return " to ".join(dict.fromkeys(texts))
        if pd.isna(value):
            raise Missing
        spec = re.fullmatch(r"(\+?)\.(\d)([prf])", format_spec)
        if spec is None:
            return format(value, format_spec)
        sign, digits, kind = spec.groups()
        if kind == "p":
            value = 100 * Decimal(str(value))
        text = number(value, int(digits))
        if kind == "r":
            text = re.sub(r"^(-?)0\.", r"\1.", text)
        if sign:
            text = text.replace("-", "\N{MINUS SIGN}") if value < 0 else f"+{text}"
        return text


def fill(template, row):
    """A template with the values of a row, a mapping."""
    texts = []
    for i, part in enumerate(re.split(r"\[(.*?)\]", template)):
        is_optional = i % 2 == 1
        try:
            texts.append(CellFormatter().vformat(part, (), row))
        except Missing:
            if not is_optional:
                return ""
    return "".join(texts)


def fill_cells(templates, row):
    return [fill(template, row) for template in templates.split(" | ")]


def listed(words):
    """``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


# ---------------------------------------------------------------------------------------------------- declarations
@cache
def load(data):
    """The frame that ``data`` names, once for all declarations that share it."""
    name, *words = data.split()
    if "/" in name:
        return results(name)
    if name in FRAMES:
        return FRAMES[name].rows()
    from benchmarks import frames

    return getattr(frames, name)(*words)


def compute(rows, columns):
    """Rows with further columns, each a Python expression that may use those before it."""
    from benchmarks import frames

    for name, expression in columns.items():
        value = eval(expression, vars(frames) | {"frame": rows}, rows)
        rows = rows.assign(**{name: value})
    return rows


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the rows of a table or figure come from; the module's docstring explains the steps."""

    data: str | list[str]
    only: str = ""
    with_: dict = field(default_factory=dict)
    by: tuple[str, ...] = ()
    take: str = "mean"
    melt: tuple = ()
    wide: tuple = ()
    merge: str = ""
    then: dict = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    where: str = ""
    sort: str = ""

    def rows(self):
        parts = [self.data] if isinstance(self.data, str) else self.data
        rows = pd.concat([load(part) for part in parts], ignore_index=True)
        if self.only:
            rows = rows.query(self.only)
        rows = compute(rows, self.with_)
        if self.by:
            groups = rows.groupby(list(self.by))
            rows = groups.agg(self.take, numeric_only=True).reset_index()
        if self.melt:
            index, name, value = self.melt
            rows = rows.melt(index, var_name=name, value_name=value)
        if self.wide:
            rows = wide(rows, *self.wide)
        if self.merge:
            rows = rows.merge(load(self.merge), how="left")
        rows = compute(rows, self.then)
        if self.keep:
            rows = rows[list(self.keep)]
        if self.where:
            rows = rows.query(self.where)
        if self.sort:
            column = self.sort.removeprefix("-")
            is_ascending = column == self.sort
            rows = rows.sort_values(column, ascending=is_ascending, kind="stable")
        return rows


@dataclass(frozen=True, kw_only=True)
class Table(Source):
    """A Markdown table; titles and templates stand side by side as on the page, ``a | b``.

    Without `columns` every row is a line. With it, rows with equal `cells` share a line, and each value of this column
    heads further cells.
    """

    titles: str = ""  # by default all columns
    cells: str = ""  # templates; by default the columns that the titles name
    columns: str = ""
    value: str = ""  # templates of the cells under each value of `columns`
    heads: str = "{}"  # their titles
    names: dict = field(default_factory=dict)  # by column: its values in order, or their titles
    best: str = ""  # max or min: the best of a line in bold

    def render(self):
        rows = self.named_rows()
        titles = self.titles.split(" | ") if self.titles else list(rows)
        cells = self.cells or " | ".join(f"{{{title}}}" for title in titles)
        if not self.columns:
            return markdown(titles, [fill_cells(cells, row) for row in rows.to_dict("records")])
        heads = list(dict.fromkeys(rows[self.columns]))
        lines = {}
        for row in rows.to_dict("records"):
            key = tuple(fill_cells(cells, row))
            line = lines.setdefault(key, {})
            if row[self.columns] in line:
                raise LookupError(f"two rows of {self.data} have {key} and {row[self.columns]}")
            line[row[self.columns]] = row
        names = self.names.get(self.columns)
        words = [names[head] if isinstance(names, dict) else head for head in heads]
        titles += [title.format(word) for word in words for title in self.heads.split(" | ")]
        return markdown(titles, [[*key, *self._values(line, heads)] for key, line in lines.items()])

    def named_rows(self):
        """The rows in order and with titles; values of `columns` that have no name are left out."""
        rows = self.rows()
        for column, names in reversed(self.names.items()):
            known = list(names) if isinstance(names, dict) else names.split(" | ")
            position = {value: k for k, value in enumerate(known)}
            places = rows[column].map(position).fillna(len(known))
            rows = rows.iloc[places.argsort(kind="stable")]
            if column == self.columns:
                rows = rows[rows[column].isin(known)]
            elif isinstance(names, dict):
                rows = rows.assign(**{column: [names.get(value, value) for value in rows[column]]})
        return rows

    def _values(self, line, heads):
        """The cells of a line under the heads."""
        empty = [""] * len(self.value.split(" | "))
        cells = {
            head: fill_cells(self.value, line[head]) if head in line else empty for head in heads
        }
        if self.best:
            column = next(name for _, name, _, _ in Formatter().parse(self.value) if name)
            values = {head: round(row[column], 4) for head, row in line.items()}
            best = {"max": max, "min": min}[self.best](values.values())
            for head in (head for head, value in values.items() if value == best):
                cells[head][0] = re.sub(r"^\S+", r"**\g<0>**", cells[head][0])
        return [cell for head in heads for cell in cells[head]]


@dataclass(frozen=True, kw_only=True)
class Figure(Source):
    """A number within a sentence: a template over the only row, over an aggregate, or over each row.

    ``{count}`` is the number of rows.
    """

    text: str
    of: str = ""  # an aggregate of pandas over the columns with numbers: mean, max, sum; or span
    join: str = ""  # what stands between the texts of the rows; "and" for ``a, b and c``
    empty: str = ""  # the text if there are no rows to join

    def render(self):
        rows = self.rows()
        if self.join:
            texts = [fill(self.text, row) for row in rows.to_dict("records")]
            if not texts:
                return self.empty
            return listed(texts) if self.join == "and" else self.join.join(texts)
        row = {"count": len(rows)}
        if self.of:
            numbers = rows.select_dtypes(["number", "bool"])
            row |= {name: aggregate(column, self.of) for name, column in numbers.items()}
        elif len(rows) == 1:
            row |= rows.iloc[0].to_dict()
        elif self.text.replace("{count}", "").count("{"):
            raise LookupError(f"{len(rows)} rows of {self.data} have {self.where}, not one")
        return fill(self.text, row)


def aggregate(column, of):
    return Span(column.min(), column.max()) if of == "span" else getattr(column, of)()


def markdown(header, lines):
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def declared(kind, file):
    """Declarations of a file by name; ``per`` a column is one for each of its values."""
    entries = tomllib.loads((HERE / file).read_text(encoding="utf-8"))
    found = {}
    for name, entry in entries.items():
        entry = {key + "_" if key == "with" else key: value for key, value in entry.items()}
        column = entry.pop("per", None)
        if column is None:
            found[name] = kind(**entry)
        else:
            for value in dict.fromkeys(results(entry["data"])[column]):
                found[f"{name}_{value}"] = kind(**entry, where=f"{column} == {value!r}")
    return found


FRAMES = declared(Source, "frames.toml")
TABLES = declared(Table, "tables.toml")
FIGURES = declared(Figure, "figures.toml")
