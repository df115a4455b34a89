"""Files: what their name and first bytes say, before anything heavy is imported."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: Endings of file names, and the formats that they stand for.
ENDINGS = {
    "text": ".csv .tsv .tab .txt .dat .data .lsmat",
    "excel": ".xlsx .xlsm .xls .xlsb .ods",
    "parquet": ".parquet .pq",
    "json": ".json .jsonl .ndjson",
    "npy": ".npy",
    "npz": ".npz",
    "mtx": ".mtx",
    "rds": ".rds",
    "arff": ".arff",
    "ts": ".ts",
    "fasta": ".fasta .fa .faa .fna .fas",
    "smiles": ".smi .smiles",
    "hits": ".m8 .b6 .blast .outfmt6",
}
#: Names for --format; "lines" is one string per line, "pairs" a line per pair of items.
FORMATS = (*ENDINGS, "lines", "pairs")
FORMAT_OF = {ending: name for name, endings in ENDINGS.items() for ending in endings.split()}
MAGIC = {b"\x93NUMPY": "npy", b"PAR1": "parquet", b"%%MatrixMarket": "mtx"}
#: First bytes that decide if the ending is one of text, or none.
TEXT_MAGIC = {b">": "fasta", b"@relation": "arff", b"@problemname": "ts"}
#: First bytes of files that hold no data this package reads, and what to do.
UNREADABLE = {
    b"%PDF": "is a PDF; save its table as .csv",
    b"\x80\x04\x95": "holds pickled Python objects, which are never loaded; save it as .npy or .parquet",
    b"\x80\x05\x95": "holds pickled Python objects, which are never loaded; save it as .npy or .parquet",
    b"RDX": "is an R workspace; write the data with write.csv or saveRDS in R",
    b"\x89HDF": "is an HDF5 file; save the matrix as .npy",
    b"<!DOCTYPE html": "is a web page; download the data itself",
    b"<html": "is a web page; download the data itself",
    b"MATLAB": "is a MATLAB file; save its matrix as .csv or .npy",
    b"SQLite format 3": "is a SQLite database; write the table as .csv",
}
DECOMPRESS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}
COMPRESSED = (".gz", ".bz2", ".xz")


class ReadError(ValueError):
    """What is wrong with a file, in a sentence for its user."""


@dataclass(frozen=True)
class File:
    """A file in memory, decompressed."""

    name: str
    format: str
    content: bytes

    @property
    def text(self) -> str:
        """The text, by its byte order mark or as UTF-8, or else as Western Windows writes it."""
        is_wide = self.content[:2] in (b"\xff\xfe", b"\xfe\xff")
        try:
            text = self.content.decode("utf-16" if is_wide else "utf-8-sig")
        except UnicodeDecodeError:
            text = self.content.decode("cp1252", errors="replace")
        if "\0" in text[:4096]:
            raise ReadError(f"{self.name!r} is not text; name its format with --format.")
        return text

    @property
    def buffer(self) -> io.BytesIO:
        """The bytes as an open file."""
        return io.BytesIO(self.content)


def check_file(path: str) -> Path:
    """Return the path of a readable file; raise one sentence otherwise."""
    if path == "-":
        return Path(path)
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder; give the name of a file.")
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {path!r}; check the path.")
    with file.open("rb") as opened:
        check_head(opened.read(64), file.name)
    return file


def check_head(head: bytes, name: str) -> None:
    """Raise if the first bytes are those of a file that holds no data."""
    if not head:
        raise ValueError(f"{name!r} is empty.")
    for mark, sentence in UNREADABLE.items():
        if head.startswith(mark):
            raise ValueError(f"{name!r} {sentence}.")


def open_file(path: str, form: str | None = None) -> File:
    """Read a file, decompress it, and name its format: the given one, or by first bytes and ending."""
    file = check_file(path)
    name = "standard input" if path == "-" else file.name
    content = sys.stdin.buffer.read() if path == "-" else file.read_bytes()
    for mark, decompress in DECOMPRESS.items():
        if content.startswith(mark):
            try:
                content = decompress(content)
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"{name!r} is a damaged compressed file: {error}.") from None
    ending = file.suffix.lower()
    if ending in COMPRESSED:
        ending = Path(file.stem).suffix.lower()
    if file.suffix.lower() == ".zip":
        raise ValueError(f"{name!r} is an archive; unpack it and name the file in it.")
    check_head(content[:64], name)
    found = next((form for mark, form in MAGIC.items() if content.startswith(mark)), None)
    if content.startswith(b"PK"):
        found = "npz" if ending == ".npz" else "excel"
    if FORMAT_OF.get(ending, "text") == "text" and found is None:
        start = content[:64].lower()
        found = next((form for mark, form in TEXT_MAGIC.items() if start.startswith(mark)), None)
    return File(name, form or found or FORMAT_OF.get(ending, "text"), content)
