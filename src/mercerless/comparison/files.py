"""Reading matrices, arrays and labels from files, never by unpickling.

Every problem is one sentence that names the file, what is wrong and what to do, raised as ``ValueError``
or ``OSError`` before any work is done.
"""

from __future__ import annotations

import csv
import os
import zipfile
from pathlib import Path

import numpy as np

from mercerless._validation import check_memory

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
ARRAY_SUFFIXES = (".npy", ".npz", *TEXT_SUFFIXES)

#: Names under which an .npz file is searched for its matrix and its labels, first match wins.
MATRIX_NAMES = ("K", "D", "S", "similarity", "similarities", "distance", "distances", "kernel", "matrix", "X")
LABEL_NAMES = ("y", "labels", "label", "target", "classes")


def existing_file(path: str | os.PathLike, suffixes: tuple[str, ...] = ARRAY_SUFFIXES) -> Path:
    """Return `path` as a Path; an OSError or ValueError in one sentence if it cannot be such a file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}; check the path.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a file inside it.")
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"Cannot read {str(path)!r}: its name must end in one of {', '.join(suffixes)}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{str(path)!r} is empty.")
    return path


def read_arrays(path: str | os.PathLike, memory_limit: int | str | None = None) -> dict[str, np.ndarray]:
    """Read every array of a .npy, .npz, .csv, .tsv or .txt file.

    Parameters
    ----------
    path : path-like
        The file. Only .npz holds several arrays; the other kinds hold one.
    memory_limit : int, str or None, default=None
        What the arrays may occupy; see `mercerless._validation.memory_budget`.

    Returns
    -------
    arrays : dict of str to ndarray
        By name. The single array of the other formats is named ``"matrix"``.
    """
    path = existing_file(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_npz(path, memory_limit)
    if suffix == ".npy":
        return {"matrix": _read_npy(path, memory_limit)}
    return {"matrix": _read_text(path)}


def read_matrix(path: str | os.PathLike, name: str | None = None, memory_limit: int | str | None = None) -> np.ndarray:
    """Read one real matrix.

    Parameters
    ----------
    path : path-like
        A .npy, .npz, .csv, .tsv or .txt file. Text may have a header line and a first column of row names.
    name : str or None, default=None
        Which array of an .npz file; None takes the only 2-D one, or the first of `MATRIX_NAMES`.
    memory_limit : int, str or None, default=None
        What the arrays may occupy; see `mercerless._validation.memory_budget`.

    Returns
    -------
    matrix : ndarray of shape (n_rows, n_columns)
        Real floating-point numbers, float32 where the file has float32.
    """
    arrays = read_arrays(path, memory_limit)
    name = find_matrix(arrays, path, name)
    return as_real(arrays[name], f"{str(path)!r}" if len(arrays) == 1 else f"{name!r} in {str(path)!r}")


def find_matrix(arrays: dict[str, np.ndarray], path: str | os.PathLike, name: str | None = None) -> str:
    """Return the name of the matrix among the `arrays` of one file, see `read_matrix`."""
    if name is not None:
        if name not in arrays:
            raise ValueError(f"{str(path)!r} has no array {name!r}; it has {', '.join(arrays)}.")
        return name
    if len(arrays) == 1:
        return next(iter(arrays))
    matrices = [key for key, value in arrays.items() if value.ndim == 2]
    known = [key for key in MATRIX_NAMES if key in matrices]
    if len(matrices) == 1 or known:
        return known[0] if known else matrices[0]
    found = "several matrices: " + ", ".join(matrices) if matrices else "no matrix among " + ", ".join(arrays)
    raise ValueError(f"{str(path)!r} has {found}; name the one to use.")


def read_labels(path: str | os.PathLike, name: str | None = None) -> np.ndarray:
    """Read one label per row: a 1-D .npy or .npz array, or a text file with one label per line."""
    path = existing_file(path)
    if path.suffix.lower() in TEXT_SUFFIXES:
        lines = [line.strip().strip('"') for line in _text(path).splitlines()]
        return _as_labels([line for line in lines if line], path)
    arrays = read_arrays(path)
    if name is not None:
        find_matrix(arrays, path, name)
    elif len(arrays) == 1:
        name = next(iter(arrays))
    else:
        name = find_labels(arrays)
        if name is None:
            raise ValueError(
                f"{str(path)!r} has no array named {' or '.join(LABEL_NAMES)}; it has {', '.join(arrays)}."
            )
    return _as_labels(arrays[name], path)


def find_labels(arrays: dict[str, np.ndarray]) -> str | None:
    """Return the name of the 1-D array of labels among `arrays`, or None."""
    return next((key for key in LABEL_NAMES if key in arrays and arrays[key].ndim == 1), None)


def as_real(array: np.ndarray, what: str) -> np.ndarray:
    """Return `array` as real floats (float32 kept) with two dimensions; one sentence about `what` if not."""
    if array.dtype.kind not in "biuf":
        kind = {"c": "complex numbers", "O": "Python objects", "U": "text", "S": "text"}
        raise ValueError(f"{what} holds {kind.get(array.dtype.kind, str(array.dtype))}; save a matrix of real numbers.")
    if array.ndim != 2:
        raise ValueError(f"{what} is {array.ndim}-dimensional; a matrix with two dimensions is needed.")
    if array.size == 0:
        raise ValueError(f"{what} has no entries (shape {array.shape}).")
    return array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)


def _as_labels(values, path: Path) -> np.ndarray:
    labels = np.asarray(values)
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "biufUS":
        raise ValueError(f"{str(path)!r} must hold one label per row of the matrix, as numbers or text.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{str(path)!r} has labels that are not finite.")
    return labels


def _read_npy(path: Path, memory_limit) -> np.ndarray:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        raise _unreadable(path) from None
    check_memory(mapped.nbytes, f"Reading {str(path)!r}", memory_limit, "use a part of the rows")
    return np.array(mapped)


def _read_npz(path: Path, memory_limit) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
        check_memory(n_bytes, f"Reading {str(path)!r}", memory_limit, "use a part of the rows")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise _unreadable(path) from None
    # a zip member that is no .npy comes back as bytes
    arrays = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    if not arrays:
        raise ValueError(f"{str(path)!r} holds no arrays.")
    return arrays


def _unreadable(path: Path) -> ValueError:
    return ValueError(
        f"{str(path)!r} is not a readable {path.suffix} file of plain numbers or text: it is damaged or "
        "holds pickled Python objects, which are never loaded."
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{str(path)!r} is not text; save it as UTF-8.") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_header(cells: list[str]) -> bool:
    """Tell whether a first line names columns: by words, or by an empty corner and 0, 1, 2, ... or 1, 2, 3, ..."""
    if not any(map(_is_number, cells)):
        return any(cells)
    corner, *columns = cells
    return corner == "" and any(columns == [str(i + start) for i in range(len(columns))] for start in (0, 1))


def _table(path: Path) -> dict[int, list[str]]:
    """Return the cells of every line that is neither empty nor a comment, by line number."""
    lines = {
        number: line
        for number, line in enumerate(_text(path).splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    if not lines:
        raise ValueError(f"{str(path)!r} has no rows.")
    first = next(iter(lines.values()))
    delimiter = next((mark for mark in "\t;," if mark in first), None)
    if delimiter is None:
        return {number: line.replace('"', "").split() for number, line in lines.items()}
    rows = csv.reader(lines.values(), delimiter=delimiter, skipinitialspace=True)
    return {number: [cell.strip() for cell in row] for number, row in zip(lines, rows)}


def _read_text(path: Path) -> np.ndarray:
    """Read a table of numbers with an optional header line and an optional first column of row names."""
    table = _table(path)
    first, header = next(iter(table.items()))
    if _is_header(header):
        del table[first]
        if not table:
            raise ValueError(f"{str(path)!r} has a header but no rows.")
    row = next(iter(table.values()))
    n_cells = len(row)
    has_names = n_cells > 1 and row[0] != "" and (header[0] == "" or not _is_number(row[0]))
    refused = f"{str(path)!r} is not a table of numbers: line"
    for number, row in table.items():
        if len(row) != n_cells:
            raise ValueError(f"{refused} {number} has {len(row)} entries, the lines before {n_cells}.")
    try:
        return np.array([row[has_names:] for row in table.values()], dtype=np.float64)
    except ValueError:
        number, cell = next((at, cell) for at, row in table.items() for cell in row[has_names:] if not _is_number(cell))
        raise ValueError(f"{refused} {number} has {cell!r} where a number should be.") from None
