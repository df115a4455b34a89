"""One reader per format: a data frame, arrays by name, items, or pairs of items."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mercerless.comparison.read.delimited import GAPS, read_delimited, split_lines
from mercerless.comparison.read.files import File, ReadError
from mercerless.comparison.read.items import Column, Items, Pairs
from mercerless.comparison.read.options import MATRICES, ReadOptions
from mercerless.core.optional import import_optional

Content: TypeAlias = pd.DataFrame | dict[str, Any] | Items
#: Names of the columns of BLAST's and DIAMOND's tables without a header.
HIT_COLUMNS = (
    "qseqid sseqid pident length mismatch gapopen qstart qend sstart send evalue bitscore".split()
)
QUERIES = ("qseqid", "query", "query id", "qaccver")
SUBJECTS = ("sseqid", "target", "subject", "subject id", "saccver")
SCORES = ("bitscore", "bits", "bit score")


def read_content(file: File, options: ReadOptions) -> Content:
    """Read a file by its format; damage becomes one sentence."""
    for option, form in {"sheet": "excel", "array": "npz"}.items():
        if getattr(options, option) is not None and file.format != form:
            raise ReadError(f"--{option} is for {form} files, but {file.name!r} is {file.format}.")
    try:
        return READERS[file.format](file, options)
    except (ImportError, MemoryError, ReadError):
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "damaged"
        raise ValueError(
            f"{file.name!r} cannot be read as {file.format}: {reason}; if it is another format, name "
            "it with --format."
        ) from None


def read_text(file: File, options: ReadOptions) -> Content:
    """Delimited cells, or hits or pairs if the header says so."""
    frame = read_delimited(file, options)
    if options.kind == "table":
        return frame
    hits = named_hits(frame)
    if hits is not None:
        return Items(hits)
    kind = str(frame.columns[-1]).lower()
    is_pairs = frame.shape[1] == 3 and kind in MATRICES
    if is_pairs and set(frame.iloc[:, 0]) & set(frame.iloc[:, 1]):
        return Items(to_pairs(frame, kind))
    return frame


def named_hits(frame: pd.DataFrame) -> Pairs | None:
    """Hits if the header names a query, a subject and a score."""
    by_name = {str(name).lower().lstrip("#").strip(): name for name in frame.columns}
    found = [
        next((by_name[name] for name in names if name in by_name), None)
        for names in (QUERIES, SUBJECTS, SCORES)
    ]
    return None if None in found else to_pairs(frame[found], "hits")


def to_pairs(frame: pd.DataFrame, kind: str | None) -> Pairs:
    """The three columns by their names."""
    if frame.shape[1] != 3:
        raise ValueError(
            f"it has {frame.shape[1]} columns; a list of pairs has three: two items and a number"
        )
    pairs = frame.set_axis(["from", "to", "value"], axis=1)
    pairs = pairs.astype({"from": str, "to": str})
    if not pd.api.types.is_numeric_dtype(pairs["value"]) or pairs["value"].isna().any():
        raise ValueError("some pairs have no number as their value")
    return Pairs(pairs, kind)


def read_hits(file: File, options: ReadOptions) -> Items:
    """The 12 columns of BLAST and DIAMOND, or a table with their names as its header."""
    rows = [line for line in split_lines(file.text) if not line.startswith("#")]
    file = replace(file, content="\n".join(rows).encode())
    frame = read_delimited(file, ReadOptions(sep=options.sep, decimal="."))
    hits = named_hits(frame)
    if hits is None and frame.shape[1] == len(HIT_COLUMNS):
        hits = named_hits(frame.set_axis(HIT_COLUMNS, axis=1))
    return Items(to_pairs(frame, "hits") if hits is None else hits)


def read_pairs(file: File, options: ReadOptions) -> Items:
    """Two columns of names and one of numbers."""
    frame = read_delimited(file, options)
    kind = str(frame.columns[-1]).lower()
    return Items(to_pairs(frame, kind if kind in MATRICES else None))


def read_excel(file: File, options: ReadOptions) -> pd.DataFrame:
    """One sheet; several sheets with cells need --sheet."""
    import_optional("python_calamine", extra="table", what="Reading Excel files")
    sheets = pd.read_excel(
        file.buffer,
        sheet_name=None,
        engine="calamine",
        na_values=[*GAPS, *options.missing],
        keep_default_na=False,
    )
    named = {str(i): name for i, name in enumerate(sheets, 1)} | {name: name for name in sheets}
    filled = [name for name, sheet in sheets.items() if sheet.size]
    chosen = filled if options.sheet is None else [named.get(options.sheet)]
    if len(chosen) != 1 or chosen[0] is None:
        raise ReadError(
            f"{file.name!r} has the sheets {', '.join(map(repr, sheets))}; choose one with cells by "
            "--sheet NAME."
        )
    return check_header(sheets[chosen[0]], file.name)


def check_header(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Raise if the first row of a sheet is a title and not the header."""
    unnamed = [str(column).startswith("Unnamed: ") for column in frame.columns]
    if sum(unnamed) > max(1, frame.shape[1] // 2):
        raise ReadError(
            f"{name!r}: the first row of the sheet does not name its columns; delete the rows above "
            "the header."
        )
    return frame.rename(columns={"Unnamed: 0": ""})


def read_json(file: File, options: ReadOptions) -> pd.DataFrame:
    """Records, as a list or one per line, or columns."""
    text = file.text.strip()
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        content = [json.loads(line) for line in text.splitlines() if line.strip()]
    return pd.DataFrame(content)


def read_npz(file: File, options: ReadOptions) -> dict[str, Any]:
    """Arrays by name; a sparse matrix of SciPy has none."""
    arrays = dict(np.load(file.buffer, allow_pickle=False))
    if "format" in arrays and "indptr" in arrays:
        from scipy.sparse import load_npz

        return {"matrix": load_npz(file.buffer)}
    return arrays


def read_mtx(file: File, options: ReadOptions) -> dict[str, Any]:
    """A sparse matrix in Matrix Market's format."""
    from scipy.io import mmread

    return {"matrix": mmread(file.buffer)}


def read_rds(file: File, options: ReadOptions) -> pd.DataFrame:
    """A data frame or matrix of R."""
    import tempfile

    pyreadr = import_optional("pyreadr", extra="table", what="Reading R's .rds files")
    with tempfile.NamedTemporaryFile(suffix=".rds") as copy:
        copy.write(file.content)
        copy.flush()
        content = pyreadr.read_r(copy.name)
    return next(iter(content.values()))


def read_arff(file: File, options: ReadOptions) -> pd.DataFrame:
    """Weka's tables; the last attribute is what to predict unless it is said otherwise."""
    head, _marker, rows = re.split(r"(?im)(^\s*@data\b.*$)", file.text, maxsplit=1)
    attribute = r"""(?im)^\s*@attribute\s+(?:'([^']+)'|"([^"]+)"|(\S+))"""
    names = ["".join(groups) for groups in re.findall(attribute, head)]
    lines = [line for line in rows.splitlines() if line.strip() and not line.startswith("%")]
    if lines and lines[0].lstrip().startswith("{"):
        raise ValueError("it is sparse ARFF; write it as dense ARFF or CSV")
    if re.search(r"(?im)^\s*@attribute\s+\S+\s+relational", head):
        raise ValueError(
            "it has an attribute of tables (relational); write it as .ts or as dense ARFF"
        )
    quoted = re.search(r"""(?m)(?:^|,)\s*(['"])""", rows)
    frame = pd.read_csv(
        StringIO("\n".join(lines)),
        names=names,
        index_col=False,
        quotechar=quoted[1] if quoted else '"',
        escapechar="\\",
        skipinitialspace=True,
        na_values=[*GAPS, *options.missing],
    )
    frame.attrs["labels"] = names[-1]
    return frame


def read_series(file: File, options: ReadOptions) -> Items:
    """Time series of the .ts format: an array of shape (channels, times) each."""
    head, _marker, rows = re.split(r"(?im)(^\s*@data\b.*$)", file.text, maxsplit=1)
    if re.search(r"(?im)^\s*@timestamps\s+true", head):
        raise ValueError("its values have time stamps; write them without")
    has_labels = re.search(r"(?im)^\s*@(classlabel|targetlabel)\s+true", head) is not None
    cells = [line.strip().split(":") for line in rows.splitlines() if line.strip()]
    labels = None
    if has_labels:
        given = pd.Series([row.pop().strip() for row in cells])
        numbers = pd.to_numeric(given, errors="coerce")
        labels = Column((given if numbers.isna().any() else numbers).to_numpy())
    values = []
    for row in cells:
        channels = [np.array(c.replace("?", "nan").split(","), dtype=float) for c in row]
        values.append(channels[0] if len(channels) == 1 else np.array(channels))
    is_table = options.kind is options.similarity is None and len({x.shape for x in values}) == 1
    return Items(values, labels=labels, decisions={"kind": "table"} if is_table else {})


def read_fasta(file: File, options: ReadOptions) -> Items:
    """Sequences in capitals, and the first words of their headers."""
    records = [record.partition("\n") for record in f"\n{file.text}".split("\n>")[1:]]
    if not records:
        raise ValueError("it has no line that begins with >")
    names = [head.split()[0] if head.split() else "" for head, _, _ in records]
    sequences = ["".join(body.split()).upper() for _, _, body in records]
    for name, sequence in zip(names, sequences):
        if not sequence:
            raise ValueError(f"the record {name!r} has no sequence")
    return Items(sequences, names)


def read_smiles(file: File, options: ReadOptions) -> Items:
    """A molecule per line, perhaps followed by its name."""
    rows = [line.split() for line in file.text.splitlines() if line.strip()]
    if rows[0][0].lower() in ("smiles", "canonical_smiles"):
        rows = rows[1:]
    names = [row[1] for row in rows] if all(len(row) > 1 for row in rows) else None
    return Items([row[0] for row in rows], names)


def read_lines(file: File, options: ReadOptions) -> Items:
    """A string per line."""
    return Items([line.strip() for line in file.text.splitlines() if line.strip()])


READERS: dict[str, Callable[[File, ReadOptions], Content]] = {
    "text": read_text,
    "excel": read_excel,
    "parquet": lambda file, _: pd.read_parquet(file.buffer),
    "json": read_json,
    "npy": lambda file, _: {"matrix": np.load(file.buffer, allow_pickle=False)},
    "npz": read_npz,
    "mtx": read_mtx,
    "rds": read_rds,
    "arff": read_arff,
    "ts": read_series,
    "fasta": read_fasta,
    "smiles": read_smiles,
    "hits": read_hits,
    "lines": read_lines,
    "pairs": read_pairs,
}
