"""Opening files: compression and format are detected from the content, the ending is only a hint.

This module imports neither NumPy nor pandas, so that a file that cannot be read raises at once. Every error is one
sentence: what the file seems to be, and the shortest remedy.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from mercerless.comparison.limits import LIMITS
from mercerless.core.memory import check_memory, memory_budget

#: The formats that `--format` takes, each with the endings that hint at it.
FORMATS: dict[str, tuple[str, ...]] = {
    "table": (".csv", ".tsv", ".txt", ".tab", ".dat", ".data", ".phy", ".phylip", ".dist"),
    "lines": (),
    "npy": (".npy",),
    "npz": (".npz",),
    "mat": (".mat",),
    "parquet": (".parquet",),
    "feather": (".feather",),
    "stata": (".dta",),
    "xlsx": (".xlsx", ".xlsm"),
    "json": (".json", ".jsonl", ".ndjson"),
    "fasta": (".fasta", ".fa", ".faa", ".fna"),
    "smi": (".smi", ".smiles", ".ism"),
    "arff": (".arff",),
    "svmlight": (".libsvm", ".svmlight", ".svm"),
    "ts": (".ts",),
    "blast": (".m8", ".b6", ".blast6"),
    "graphml": (".graphml",),
}


def name_of(path: Path) -> str:
    """Return the name of a file for a sentence."""
    return "the standard input" if str(path) == "-" else repr(str(path))


def holds_arrays(form: str | None) -> bool:
    """Whether files of a format hold arrays."""
    return form in ("npy", "npz", "mat")


def holds_frame(form: str | None) -> bool:
    """Whether files of a format hold a data frame."""
    return form in ("parquet", "feather", "stata")


def format_of_ending(ending: str, otherwise: str = "") -> str:
    """Return the format that an ending hints at."""
    return next((form for form, endings in FORMATS.items() if ending in endings), otherwise)


def is_compressed(ending: str) -> bool:
    """Whether an ending is that of a compression."""
    return ending in (".gz", ".xz", ".bz2", ".zip")


def check_size(n_bytes: float, name: str) -> None:
    """Raise if the content of a file of this name does not fit into memory."""
    check_memory(n_bytes, f"Reading {name}", remedy="use a part of the rows")


def ending_of(path: Path) -> str:
    """Return the ending of a file's name, without that of a compression."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and is_compressed(endings[-1]):
        endings.pop()
    return endings[-1] if endings else ""


def existing_file(path: str | os.PathLike) -> Path:
    """Return `path` as a Path; raise an OSError or ValueError in one sentence if it cannot be read."""
    path = Path(path)
    if str(path) == "-":
        return path
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the path.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a file inside it.")
    if path.is_file():  # not a pipe, which can be read only once
        with open(path, "rb") as file:
            head = file.read(LIMITS.head_bytes)
            if not head:
                raise ValueError(f"{str(path)!r} is empty.")
            check_readable(head, path)
            if _is_unknown(head, path):
                raise _not_text(path)
            if head.startswith(b"PK"):
                _zip_format(file, path)
    return path


def check_readable(head: bytes, path: Path) -> None:
    """Raise if a file's first bytes are those of a format that is not supported."""
    unreadable = {
        b"%PDF": ("a PDF", "save its table as .csv"),
        b"\xd0\xcf\x11\xe0": ("an old Excel or Word file", "save it as .xlsx or .csv"),
        b"MATLAB 7.3": ("a MATLAB 7.3 file", "save it with -v7"),
        b"\x89HDF": ("an HDF5 file", "save the matrix as .npy or the table as .parquet"),
        b"SQLite format 3": ("an SQLite database", "export the table as .csv"),
        b"RDX": ("an R workspace", "write the data with write.csv in R"),
        b"X\n\0": ("R's saveRDS", "write the data with write.csv in R"),
        b"\x89PNG": ("a picture", "give the data instead"),
        b"\xff\xd8\xff": ("a picture", "give the data instead"),
        b"7z\xbc\xaf": ("a 7z archive", "unpack it first"),
        b"Rar!": ("a RAR archive", "unpack it first"),
        b"\x28\xb5\x2f\xfd": ("a file compressed by zstd", "unpack it first, or use gzip"),
        b"%%MatrixMarket": ("a Matrix Market file", "save it with scipy.sparse.save_npz"),
        b"$FL": ("an SPSS file", "save it as .csv"),
        b"HEADER RECORD*******LIB": ("a SAS transport file", "save it as .csv"),
        b"\0" * 12 + b"\xc2\xea\x81\x60": ("a SAS file", "save it as .csv"),
    }
    for mark, (kind, remedy) in unreadable.items():
        if head.startswith(mark):
            raise ValueError(f"{name_of(path)} seems to be {kind}; {remedy}.")
    is_pickle = head.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))
    if is_pickle and not holds_arrays(format_of_ending(ending_of(path))):
        raise ValueError(
            f"{name_of(path)} seems to be a pickle: it holds pickled Python objects, which are "
            "never loaded; save arrays as .npy and tables as .parquet."
        )
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise ValueError(f"{name_of(path)} seems to be a web page; download the data itself.")
    if head[257:262] == b"ustar":
        raise ValueError(f"{name_of(path)} seems to be a tar archive; unpack it first.")
    _check_readable_text(head, path)


def _check_readable_text(head: bytes, path: Path) -> None:
    """Raise if the first lines are those of a text format that is not supported."""
    as_matrix = "save the distances as a square matrix in .csv"
    as_graph = "save it as GraphML or as an edge list"
    unreadable = {
        r"#mega\b": ("a MEGA file", as_matrix),
        r"#nexus\b": ("a NEXUS file", as_matrix),
        r"\([^\n]*\)[^\n]*;\s*$": ("a tree in Newick format", as_matrix),
        r"\*vertices\s": ("a Pajek file", as_graph),
        r"(?:creator[^\n]*\n\s*)?graph\s*\[": ("a GML file", as_graph),
        r"(?:strict\s+)?(?:di)?graph\b[^\n]*\{": ("a graph of Graphviz", as_graph),
        r"clustal[^\n]*alignment": ("an alignment of Clustal", "save the sequences as FASTA"),
        r"@\S[^\n]*\n[a-z*.-]+\n\+": ("a FASTQ file", "save the sequences as FASTA"),
        r"<\?xml(?![\s\S]*<graphml)": ("an XML file", "save the data as .csv"),
        r"\|[^\n]*\n\s*\|[\s:|-]*\|[ \t]*$": ("a table of Markdown", "save it as .csv"),
        r"\\(?:begin|documentclass)\b": ("a LaTeX file", "save the table as .csv"),
        r"(?:[^\n]*\n){0,3}[\s\d]+v[23]000\s*$": ("a file of molecules", "save them as SMILES"),
    }
    is_utf16 = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = head.decode("utf-16" if is_utf16 else "utf-8-sig", errors="replace")
    text = text.replace("\r\n", "\n").lstrip(" \t\n")
    for mark, (kind, remedy) in unreadable.items():
        if re.match(mark, text, re.IGNORECASE | re.MULTILINE):
            raise ValueError(f"{name_of(path)} seems to be {kind}; {remedy}.")


def open_file(path: Path, form: str | None = None) -> tuple[BinaryIO, str]:
    """Return the uncompressed content of a file, or of standard input for ``-``, and its format.

    `form` overrides the detected format.
    """
    if form is not None and form not in FORMATS:
        raise ValueError(f"The format {form!r} is not known; use one of {', '.join(FORMATS)}.")
    file = _open(path)
    try:
        content = _uncompressed(file, path)
        if content is not file:
            file.close()
        return content, form or detect_format(content, path)
    except Exception:
        file.close()
        raise


def _open(path: Path) -> BinaryIO:
    if path.is_file():
        return open(path, "rb")
    if str(path) == "-":
        content = sys.stdin.buffer.read(memory_budget() + 1)
    else:
        content = path.read_bytes()
    check_size(len(content), name_of(path))
    if not content:
        raise ValueError(f"{name_of(path).capitalize()} is empty.")
    return io.BytesIO(content)


def _opener(head: bytes) -> Any:
    """Return the function that opens a compressed file with these first bytes, or None."""
    openers: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ": lzma.open, b"BZh": bz2.open}
    return next((opener for mark, opener in openers.items() if head.startswith(mark)), None)


def _uncompressed(file: BinaryIO, path: Path) -> BinaryIO:
    """Return the content of a compressed file, or the file itself."""
    head = file.read(8)
    file.seek(0)
    opener = _opener(head)
    is_archive = head.startswith(b"PK") and _zip_format(file, path) == ""
    is_named_so = is_compressed(path.suffix.lower())
    if opener is None and not is_archive and not is_named_so:
        return file
    try:
        if opener is not None:
            with opener(file) as stream:
                content = stream.read(memory_budget() + 1)
        else:
            content = _read_only_member(file)
    except (
        OSError,
        EOFError,
        lzma.LZMAError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        ValueError,
        zlib.error,
    ):
        raise ValueError(f"{name_of(path)} is damaged: it cannot be decompressed.") from None
    check_size(len(content), name_of(path))
    if not content:
        raise ValueError(f"{name_of(path)} is empty.")
    check_readable(content[: LIMITS.head_bytes], path)
    return io.BytesIO(content)


def _read_only_member(file: BinaryIO) -> bytes:
    """Return the one file of a ZIP archive."""
    with zipfile.ZipFile(file) as archive:
        (member,) = _members(archive)
        with archive.open(member) as stream:
            return stream.read(memory_budget() + 1)


def _members(archive: zipfile.ZipFile) -> list[str]:
    names = archive.namelist()
    return [name for name in names if not name.endswith("/") and "__MACOSX" not in name]


def _zip_format(file: BinaryIO, path: Path) -> str:
    """Return the format of a ZIP file: "npz", "xlsx", or "" for any other compressed file."""
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            names = _members(archive)
    except Exception:  # a damaged archive can fail anywhere
        return format_of_ending(ending_of(path))
    finally:
        file.seek(0)
    folders = {name.partition("/")[0] for name in names}
    if "schema.json" in names:
        raise ValueError(f"{name_of(path)} seems to be a saved model; give a file of data here.")
    if "xl" in folders:
        return "xlsx"
    if folders & {"word", "ppt"}:
        raise ValueError(f"{name_of(path)} seems to be a Word file; save its table as .csv.")
    if "mimetype" in names:
        raise ValueError(
            f"{name_of(path)} seems to be an OpenDocument file; save it as .xlsx or .csv."
        )
    if any(name.endswith(".npy") for name in names) or path.suffix.lower() in (".npz", ".xlsx"):
        return format_of_ending(path.suffix.lower(), "npz")
    if len(names) > 1:
        raise ValueError(
            f"{name_of(path)} holds {len(names)} files ({', '.join(names[:3])}, ...); unpack it "
            "and give one of them."
        )
    return ""


def detect_format(file: BinaryIO, path: Path) -> str:
    """Return the format of an uncompressed file: by its content, else by its ending, else a table."""
    head = file.read(LIMITS.head_bytes)
    file.seek(0)
    marked = _marked_format(head)
    if marked:
        return marked
    if head.startswith(b"PK"):
        return _zip_format(file, path)
    hinted = format_of_ending(ending_of(path), "table")
    if _is_binary(head):
        return hinted
    is_binary_format = holds_arrays(hinted) or holds_frame(hinted) or hinted == "xlsx"
    if is_binary_format and head.isascii():  # such as a matrix of Clustal Omega named .mat
        hinted = "table"
    return _text_format(head) or hinted


def _marked_format(head: bytes) -> str:
    """Return the binary format that the first bytes of a file identify, or ""."""
    marks = {
        b"\x93NUMPY": "npy",
        b"PAR1": "parquet",
        b"ARROW1": "feather",
        b"FEA1": "feather",
        b"MATLAB 5": "mat",
        b"<stata_dta>": "stata",
    }
    return next((form for mark, form in marks.items() if head.startswith(mark)), "")


def _is_binary(head: bytes) -> bool:
    is_utf16 = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    return b"\0" in head[:1000] and not is_utf16


def _is_unknown(head: bytes, path: Path) -> bool:
    """Whether a file is binary, and neither its first bytes nor its ending identify the format."""
    if not _is_binary(head) or _marked_format(head) or head.startswith(b"PK"):
        return False
    hinted = format_of_ending(ending_of(path))
    is_hinted = holds_arrays(hinted) or holds_frame(hinted) or hinted == "xlsx"
    return not is_hinted and _opener(head) is None and not is_compressed(path.suffix.lower())


def _not_text(path: Path) -> ValueError:
    return ValueError(f"{name_of(path)} is not text; save it as UTF-8.")


def _text_format(head: bytes) -> str:
    """Return the text format that the first lines identify, or ""."""
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = head.decode(encoding, errors="replace").lstrip()
    if text.startswith(">"):
        return "fasta"
    if re.match(r'\{\s*["}]|\[\s*[\[{]', text):
        return "json"
    if text.startswith("<") and "<graphml" in text[:2000]:
        return "graphml"
    lines = [line.strip().lower() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("#", "%"))]
    first = lines[0] if lines else ""
    if first.startswith("@relation"):
        return "arff"
    if re.match(r"@(problemname|timestamps|univariate|classlabel|targetlabel|equallength)", first):
        return "ts"
    pairs = r"(?:\s+\d+:[+-]?[\d.]+(?:e[+-]?\d+)?)"
    if first and all(re.match(rf"[+-]?[\d.]+{pairs}*(?:\s*#.*)?$", line) for line in lines[:20]):
        return "svmlight" if any(re.search(pairs, line) for line in lines[:20]) else ""
    return ""


def read_text(file: BinaryIO, path: Path) -> str:
    """Return the text of an open file, with or without a byte order mark, its lines ended by newlines."""
    remedy = "use a part of the rows, or save it as .npy"
    size = file.seek(0, os.SEEK_END)
    # measured: about six times the size of the text
    check_memory(8.0 * size, f"Reading {name_of(path)}", remedy=remedy)
    file.seek(0)
    content = file.read()
    is_utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        text = _decode(content, "utf-16" if is_utf16 else "utf-8-sig")
    except ValueError:
        raise _not_text(path) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(content: bytes, encoding: str) -> str:
    try:
        text = content.decode(encoding)
    except ValueError:
        if re.search(rb"[\0-\x08\x0e-\x1f]", content):
            raise
        text = content.decode("cp1252")  # Excel in Western countries
    if "\0" in text:
        raise ValueError
    return text


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text that are not empty."""
    file, _ = open_file(path)
    with file:
        text = read_text(file, path)
    return [line.strip() for line in text.split("\n") if line.strip()]
