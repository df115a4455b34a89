"""Parsers for the formats of several fields: arrays, tables, items or pairs."""

import io
import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.arrays import load_arrays
from mercerless.comparison.files import (
    check_size,
    existing_file,
    holds_arrays,
    holds_frame,
    name_of,
    open_file,
    read_text,
)
from mercerless.comparison.sheets import load_sheet, read_sheet
from mercerless.comparison.tables import (
    CellTable,
    Items,
    Pairs,
    frame_table,
    is_number,
    pandas,
    parse_table,
)
from mercerless.core.optional import import_optional

if TYPE_CHECKING:
    from pandas import DataFrame

Content = dict[str, NDArray] | CellTable | Items | Pairs


def read(path: str | os.PathLike, form: str | None = None, sheet: str | None = None) -> Content:
    """Read whatever a file holds: arrays by name, a table, items, or pairs of items.

    `form` overrides the detected format, `sheet` names the sheet of an Excel file or gives its number.
    """
    path = existing_file(path)
    file, form = open_file(path, form)
    with file:
        if holds_arrays(form):
            return load_arrays(file, form, path)
        if holds_frame(form):
            return read_frame(file, form, path)
        if form == "xlsx":
            text, merged = load_sheet(file, path, sheet)
        else:
            text = content_text(file, form, path, sheet)
            merged = ""
    content = parse_text(text, form, path)
    return replace(content, merged=merged) if isinstance(content, CellTable) else content


def content_text(file: BinaryIO, form: str, path: Path, sheet: str | None = None) -> str:
    """Return the text of an open file, or that of a sheet."""
    if form == "xlsx":
        return read_sheet(file, path, sheet)
    if sheet is not None:
        raise ValueError(f"{name_of(path)} has no sheets; leave out --sheet.")
    return read_text(file, path)


def parse_text(text: str, form: str, path: Path) -> CellTable | Items | Pairs:
    """Parse a text of a known format."""
    if form in PARSERS:
        return PARSERS[form](text, path)
    printed = _parse_printed_distances(text, path)
    if printed is not None:
        return printed
    if looks_like_smiles(text):
        return parse_smiles(text, path)
    if _looks_like_hits(text):
        return parse_hits(text, path)
    if form == "table":
        text = _without_edge_data(text)
    return parse_table(text, path)


def read_frame(file: BinaryIO, form: str, path: Path) -> CellTable:
    """Read Parquet, Feather or Stata."""
    pd = pandas()
    try:
        if form == "parquet":
            parquet = import_optional("pyarrow.parquet", "table", "Reading .parquet")
            claim = parquet.ParquetFile(file).metadata
            n_cells = claim.num_rows * claim.num_columns
            check_size(16.0 * n_cells, name_of(path))
            file.seek(0)
            frame = pd.read_parquet(file)
        elif form == "stata":
            frame = pd.read_stata(file)
        else:
            import_optional("pyarrow.feather", "table", "Reading .feather")
            frame = pd.read_feather(file)
    except (MemoryError, ImportError):
        raise
    except Exception:  # a damaged file can fail anywhere in the readers
        raise ValueError(f"{name_of(path)} is not a readable {form} file.") from None
    return frame_table(frame, path)


# -------------------------------------------------------------------------------------------------------- items


def parse_fasta(text: str, path: Path) -> Items:
    """Return the names and the sequences of a FASTA file."""
    records = [record.split("\n", 1) for record in f"\n{text}".split("\n>")[1:]]
    if not records:
        raise ValueError(f"{name_of(path)} is not a readable FASTA file: it has no record.")
    names = []
    items = []
    for head, *sequence in records:
        words = head.split()
        name = words[0] if words else ""
        # lower case marks repeats or low quality, not other letters
        item = "".join("".join(sequence).split()).upper()
        if not item:
            raise ValueError(
                f"{name_of(path)} is not a readable FASTA file: the record {name!r} has no "
                "sequence."
            )
        names.append(name)
        items.append(item)
    return Items(tuple(names), tuple(items))


def is_smiles(word: str) -> bool:
    """Whether a word may be a molecule in SMILES."""
    atom = r"\[[^\]\s]*[A-Za-z*][^\]\s]*\]|Br|Cl|[BCNOPSFIbcnops*]"
    bond_or_ring = r"[=#$:/\\.()%\d@+-]"
    return re.fullmatch(rf"(?=[\[A-Za-z*])(?:{atom}|{bond_or_ring})+", word) is not None


def looks_like_smiles(text: str) -> bool:
    """Whether every line begins with a molecule in SMILES, most of them with a bond, a ring or a branch."""
    lines = [line for line in text.split("\n")[:200] if line.strip() and line[0] != "#"]
    if any("," in line or ";" in line for line in lines[:5]):
        return False
    rows = [line.split() for line in lines]
    if rows and rows[0][0].lower() in ("smiles", "smi"):
        rows = rows[1:]
    molecules = [row[0] for row in rows]
    if not molecules or not all(map(is_smiles, molecules)) or any(map(is_number, molecules)):
        return False
    bond_ring_or_branch = re.compile(r"[=#()\[\]]|[A-Za-z]\d")
    structured = [molecule for molecule in molecules if bond_ring_or_branch.search(molecule)]
    half = len(molecules) / 2
    return len(structured) > half and len(set(molecules)) > half


def parse_smiles(text: str, path: Path) -> CellTable:
    """Parse molecules in SMILES: one per line, before its name and further columns if there are any."""
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    mark = "\t" if any("\t" in line for line in lines) else None
    rows = [line.split(mark) for line in lines]
    if len({len(row) for row in rows}) > 1:  # names of several words
        rows = [line.split(mark, 1) for line in lines]
    width = max(len(row) for row in rows)
    rows = [[cell.strip() for cell in row] + [""] * (width - len(row)) for row in rows]
    header = ["smiles", *(f"column {i + 2}" for i in range(width - 1))]
    if not is_smiles(rows[0][0]):
        header = rows[0]
        rows = rows[1:]
    if not rows:
        raise ValueError(f"{name_of(path)} has no molecules.")
    frame = pandas().DataFrame(rows, columns=header).replace("", np.nan)
    names = frame.iloc[:, 1] if width > 1 else frame.iloc[:, 0]
    ids = None
    if width > 1 and names.is_unique and not names.isna().any() and not all(map(is_number, names)):
        ids = tuple(names)
        frame = frame.drop(columns=header[1])
    return CellTable(path, frame, ids, kind="strings")


# ------------------------------------------------------------------------------------------------------- tables


def parse_json(text: str, path: Path) -> CellTable:
    """Parse records, one per line or in a list, or columns, as pandas and R write them."""
    pd = pandas()
    try:
        content = _load_json(text)
        frame = _json_frame(content)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise ValueError(
            f"{name_of(path)} is not JSON with one record per row; write it with pandas' "
            "to_json(orient='records')."
        ) from None
    if isinstance(frame.columns, pd.RangeIndex):  # lists of numbers have no names
        names = [f"column {i + 1}" for i in range(frame.shape[1])]
        return CellTable(path, frame_table(frame.set_axis(names, axis=1), path).frame, named=False)
    return frame_table(frame, path)


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # one value per line
        return [json.loads(line) for line in text.split("\n") if line.strip()]


def _are_records(value: Any) -> bool:
    """Whether a value is a list of records."""
    return isinstance(value, list) and all(isinstance(record, dict) for record in value)


def _begins_with_names(rows: list[Any]) -> bool:
    """Whether the first of several lists has words only, and the next one a number in place of one of them."""
    if len(rows) < 2 or not all(isinstance(row, list) for row in rows[:2]):
        return False
    are_words = all(isinstance(cell, str) and not is_number(cell) for cell in rows[0])
    return are_words and not all(isinstance(cell, str) for cell in rows[1])


def _json_frame(content: Any) -> "DataFrame":
    pd = pandas()
    if isinstance(content, dict):
        if {"columns", "data"} <= set(content):
            return pd.DataFrame(content["data"], content.get("index"), content["columns"])
        if isinstance(content.get("data"), list):
            content = content["data"]
        elif len(content) == 1 and _are_records(*content.values()):
            (content,) = content.values()
    if isinstance(content, list):
        if all(isinstance(record, dict) for record in content):
            return pd.json_normalize(content)
        if _begins_with_names(content):
            return pd.DataFrame(content[1:], columns=content[0])
        return pd.DataFrame(content)
    values = list(content.values())
    if all(isinstance(value, dict) for value in values):
        frame = pd.DataFrame(content)
        is_by_row = all(name.isdigit() for name in content) and not all(
            str(name).isdigit() for name in frame.index
        )
        if is_by_row:
            frame = frame.T.infer_objects()
        if all(str(name).isdigit() for name in frame.index):
            frame = frame.reset_index(drop=True)
        return frame
    if not all(isinstance(value, list) for value in values):
        return pd.json_normalize([content])
    return pd.DataFrame(content)


def _head_and_rows(text: str, comment: str) -> tuple[str, list[str]]:
    """Return the text before the line "@data", and the lines after it that are neither empty nor comments."""
    head, *rest = re.split(r"(?im)^[ \t]*@data[ \t]*$", text, maxsplit=1)
    rows = [line.strip() for line in "".join(rest).split("\n")]
    return head, [row for row in rows if row and not row.startswith(comment)]


def parse_arff(text: str, path: Path) -> CellTable:
    """Parse a table of Weka: numbers and words, not sparse rows and not bags of rows."""
    what = name_of(path)
    head, rows = _head_and_rows(text, comment="%")
    attributes = re.findall(
        r"(?im)^[ \t]*@attribute[ \t]+('[^'\n]*'|\"[^\"\n]*\"|\S+)[ \t]+(\S.*)$", head
    )
    if not attributes or not rows:
        raise ValueError(f"{what} is not a readable ARFF file: it has no attributes or no rows.")
    if rows[0].startswith("{"):
        raise ValueError(f"{what} has sparse rows; save it with Weka's filter SparseToNonSparse.")
    if any(kind.lower().startswith("relational") for _, kind in attributes):
        raise ValueError(f"{what} has bags of rows; save one row per item instead.")
    frame = _arff_frame(rows, attributes, what)
    return frame_table(frame, path)


def _arff_frame(rows: list[str], attributes: list[tuple[str, str]], what: str) -> "DataFrame":
    pd = pandas()
    names = [name.strip("'\"") for name, _ in attributes]
    quote = "'" if any("'" in row for row in rows) else '"'
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = pd.read_csv(
                io.StringIO("\n".join(rows)),
                names=range(len(names)),
                index_col=False,
                quotechar=quote,
                escapechar="\\",
                skipinitialspace=True,
                dtype=str,
                keep_default_na=False,
                na_values=["?"],
            )
        for place, (_, kind) in enumerate(attributes):
            if kind.lower().startswith(("numeric", "real", "integer")):
                frame[place] = pd.to_numeric(frame[place])
            elif kind.startswith("{"):
                frame[place] = frame[place].astype("category")
    except pd.errors.ParserWarning:
        raise ValueError(
            f"{what} is not a readable ARFF file: rows have more than {len(names)} cells."
        ) from None
    except (ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{what} is not a readable ARFF file: {reason}") from None
    return frame.set_axis(names, axis=1)


def parse_svmlight(text: str, path: Path) -> CellTable:
    """Parse the sparse rows of LIBSVM and SVMlight: a label, and numbers behind the places of their columns."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(text.encode()), zero_based=True)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{name_of(path)} is not a readable LIBSVM file: {reason}.") from None
    check_size(8.0 * X.shape[0] * X.shape[1], name_of(path))
    first = 0 if X[:, [0]].nnz else 1  # places are mostly counted from 1
    names = [f"feature {i}" for i in range(first, X.shape[1])]
    frame = pandas().DataFrame(X.toarray()[:, first:], columns=names)
    frame["label"] = y.astype(np.int64) if (y == np.round(y)).all() else y
    return CellTable(path, frame, is_sparse=True)


def parse_series(text: str, path: Path) -> CellTable:
    """Parse time series of sktime (.ts): a column per point in time, and the class or target after them.

    Series of unequal length are stretched to the longest by linear interpolation; `items` has them as they are.
    """
    what = name_of(path)
    head, lines = _head_and_rows(text, comment="#")
    settings = {}
    for name, value in re.findall(r"(?im)^[ \t]*@(\w+)[ \t]+(\S+)", head):
        settings[name.lower()] = value.lower()
    if not lines:
        raise ValueError(f"{what} is not a readable .ts file: there is no series after @data.")
    if settings.get("timestamps") == "true" or lines[0].startswith("("):
        raise ValueError(f"{what} has time stamps; save the series without them.")
    label = ""
    if settings.get("classlabel") == "true":
        label = "class"
    elif settings.get("targetlabel") == "true":
        label = "target"

    rows = [line.split(":") for line in lines]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(
            f"{what} has series of different numbers of dimensions; give all the same."
        )
    labels = [row.pop().strip() for row in rows] if label else []
    n_dimensions = len(rows[0])
    if not n_dimensions:
        raise ValueError(f"{what} is not a readable .ts file: it has labels but no series.")
    columns: dict[str, Any] = {}
    notes = []
    dimensions = []
    for dimension in range(n_dimensions):
        series = [_numbers(row[dimension], what) for row in rows]
        dimensions.append(series)
        values, note = _as_columns(series, what)
        prefix = "t" if n_dimensions == 1 else f"d{dimension + 1}_t"
        columns |= {f"{prefix}{i + 1}": column for i, column in enumerate(values.T)}
        notes.append(note)
    if label:
        is_numeric = label == "target" and all(map(is_number, labels))
        columns[label] = np.array(labels, dtype=np.float64 if is_numeric else object)
    frame = pandas().DataFrame(columns).replace({"?": np.nan} if label == "class" else {})
    items = _as_items(dimensions)
    return CellTable(path, frame, series=next(filter(None, notes), ""), items=items)


def _numbers(cells: str, what: str) -> NDArray:
    """Return the numbers of a series, NaN for a question mark."""
    try:
        return np.array([float(cell.replace("?", "nan")) for cell in cells.split(",")])
    except ValueError:
        raise ValueError(
            f"{what} has {cells[:20]!r} where a series of numbers should be; separate numbers by "
            "commas and dimensions by colons."
        ) from None


def _as_items(dimensions: list[list[NDArray]]) -> tuple[NDArray, ...]:
    """Return series as they are, several dimensions in rows; none if the dimensions of a series differ in length."""
    if len(dimensions) == 1:
        return tuple(dimensions[0])
    together = list(zip(*dimensions))
    if any(len({len(values) for values in one}) > 1 for one in together):
        return ()
    return tuple(np.array(one) for one in together)


def _as_columns(series: list[NDArray], what: str) -> tuple[NDArray, str]:
    """Return series as rows of one length, and a note if they had to be stretched."""
    lengths = [len(values) for values in series]
    longest = max(lengths)
    check_size(8.0 * longest * len(series), what)
    if min(lengths) == longest:
        return np.array(series), ""
    note = f"{min(lengths)} to {longest} points each"
    places = np.linspace(0.0, 1.0, longest)
    stretched = [np.interp(places, np.linspace(0.0, 1.0, len(one)), one) for one in series]
    return np.array(stretched), note


# ---------------------------------------------------------------------------------------------------- distances


def _parse_printed_distances(text: str, path: Path) -> CellTable | None:
    """Parse the output of R's print(dist), a lower triangle with names in blocks of columns; None for other text."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 3 or not lines[0][0].isspace() or set(",;|\t") & set(lines[0] + lines[1]):
        return None
    columns: list[str] = []
    values: dict[tuple[str, str], float] = {}
    rows: dict[str, None] = {}  # in their order
    block: list[str] = []
    for line in lines:
        cells = line.split()
        if line[0].isspace():
            block = cells
            columns += block
            continue
        name, *numbers = cells
        if len(numbers) > len(block) or not all(map(is_number, numbers)):
            return None
        rows[name] = None
        for column, number in zip(block, numbers):
            values[name, column] = float(number)
    items = list(dict.fromkeys([*columns[:1], *rows]))
    n_items = len(items)
    pairs = [(items[i], items[j]) for i in range(n_items) for j in range(i)]
    is_triangle = columns in (items[:-1], items) and not set(pairs) - set(values)
    if n_items < 3 or not is_triangle:
        return None
    X = np.zeros((n_items, n_items))
    X[np.tril_indices(n_items, -1)] = [values[pair] for pair in pairs]
    frame = pandas().DataFrame(X + X.T, columns=items)
    return CellTable(path, frame, tuple(items), kind="distance")


def _looks_like_hits(text: str) -> bool:
    """Whether the lines are hits of BLAST, DIAMOND or MMseqs2: two names and ten numbers, or more columns."""
    rows = _hit_rows("\n".join(text.split("\n")[:50]))
    return bool(rows) and all(_is_hit(row) for row in rows)


def _hit_rows(text: str) -> list[list[str]]:
    """Return the cells of the lines, between tabs or commas, without comments and a header."""
    lines = [line for line in text.split("\n") if line.strip() and line[0] != "#"]
    mark = "\t" if lines and "\t" in lines[0] else ","
    rows = [line.split(mark) for line in lines]
    has_header = len(rows) > 1 and not any(map(is_number, rows[0])) and _is_hit(rows[1])
    return rows[1:] if has_header else rows


def _is_hit(row: Sequence[str]) -> bool:
    """Whether a row has the columns of outfmt 6.

    They are query, target, identity, length, mismatches, gaps, start and end of the query and of the target, evalue and
    bit score; others may follow.
    """
    if len(row) < 12 or not all(map(is_number, row[2:12])):
        return False
    is_share = 0.0 <= float(row[2]) <= 100.0
    is_whole = all(cell.strip().isdigit() for cell in row[3:10])
    return is_share and is_whole and float(row[10]) >= 0.0


def parse_hits(text: str, path: Path) -> Pairs:
    """Parse the hits of a search (outfmt 6): the best bit score of every pair; a pair without a hit is far apart."""
    rows = _hit_rows(text)
    bad = next((i for i, row in enumerate(rows) if not _is_hit(row)), None)
    if bad is not None or not rows:
        raise ValueError(
            f"{name_of(path)} is not a list of hits with the 12 columns of BLAST's -outfmt 6; see "
            f"row {0 if bad is None else bad + 1}."
        )
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        pair = (row[0].strip(), row[1].strip())
        best[pair] = max(float(row[11]), best.get(pair, -np.inf))
    if all(float(row[10]) > float(row[11]) for row in rows):
        raise ValueError(
            f"{name_of(path)}: the evalues in column 11 are larger than the bit scores in column "
            "12; write the columns in the order of BLAST's -outfmt 6, with the evalue before the "
            "bit score."
        )
    return Pairs(
        path,
        [first for first, _ in best],
        [second for _, second in best],
        np.array(list(best.values())),
        "bitscore",
        "every row is a hit with its bit score",
        kind="similarity",
    )


# ------------------------------------------------------------------------------------------------------- graphs


def _without_edge_data(text: str) -> str:
    """Return an edge list of NetworkX with the weights that stand in braces at the ends of its lines."""
    lines = text.split("\n")
    edges = [line for line in lines if line.strip() and line[0] != "#"]
    if not edges or not all(re.search(r"\s\{.*\}\s*$", line) for line in edges):
        return text
    weights = [re.sub(r"\s\{[^{}]*'weight': ([^,}]+)[^{}]*\}\s*$", r" \1", line) for line in edges]
    return "\n".join(re.sub(r"\s\{.*\}\s*$", "", line) for line in weights)


def parse_graphml(text: str, path: Path) -> Pairs:
    """Parse a graph: its edges are pairs, with their weights or 1, and nodes may have labels."""
    from xml.etree import ElementTree

    what = name_of(path)
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise ValueError(f"{what} declares XML entities, which are not read; remove them.")
    try:
        root = ElementTree.fromstring(text.encode())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ValueError(f"{what} is not readable XML: {error}.") from None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    keys = {}
    for key in root.iter("key"):
        name = key.get("id", "")
        keys[name] = key.get("attr.name", name)
    graph = root.find("graph")
    if graph is None:
        raise ValueError(f"{what} has no graph.")
    nodes = {node.get("id", ""): _attributes(node, keys) for node in graph.iter("node")}
    edges = [
        (e.get("source", ""), e.get("target", ""), _attributes(e, keys)) for e in graph.iter("edge")
    ]
    if not edges:
        raise ValueError(f"{what} has a graph without edges.")
    weight = _weight_name(edges)
    cells = ["1" if weight is None else data.get(weight, "nan") for _, _, data in edges]
    if not all(map(is_number, cells)):
        raise ValueError(f"{what}: the edges' {weight!r} are not all numbers; write numbers.")
    kind = "distance" if weight in ("distance", "length") else "similarity"
    return Pairs(
        path,
        [first for first, _, _ in edges],
        [second for _, second, _ in edges],
        np.array(cells, dtype=np.float64),
        weight or "edge",
        "every edge of the graph is a pair" + (f" with its {weight}" if weight else ""),
        kind=kind,
        directed=graph.get("edgedefault") == "directed",
        attributes=pandas().DataFrame.from_dict(nodes, orient="index"),
    )


def _attributes(element: Any, keys: dict[str, str]) -> dict[str, str]:
    """Return the attributes of a node or an edge by name."""
    data = element.findall("data")
    return {
        keys.get(one.get("key", ""), one.get("key", "")): (one.text or "").strip() for one in data
    }


def _weight_name(edges: list[tuple[str, str, dict[str, str]]]) -> str | None:
    """Return the attribute of edges that holds their weights, or None."""
    names = {name for _, _, data in edges for name in data}
    usual = ("weight", "similarity", "score", "distance", "length")
    return next((name for name in usual if name in names), None)


PARSERS: dict[str, Callable[[str, Path], CellTable | Items | Pairs]] = {
    "fasta": parse_fasta,
    "smi": parse_smiles,
    "json": parse_json,
    "arff": parse_arff,
    "svmlight": parse_svmlight,
    "ts": parse_series,
    "blast": parse_hits,
    "graphml": parse_graphml,
}
