"""Arrays in files (.npy, .npz, .mat), never by unpickling."""

import os
import re
import zipfile
import zlib
from enum import IntEnum
from pathlib import Path
from struct import unpack_from
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.files import check_size
from mercerless.comparison.limits import NAMES


class MatElement(IntEnum):
    """Types of the elements of a MATLAB file that hold others."""

    MATRIX = 14
    COMPRESSED = 15


def load_arrays(file: BinaryIO, form: str, path: Path) -> dict[str, NDArray]:
    """Read the arrays of an open file by name; a .npy file or a sparse matrix has one, named "matrix"."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    what = repr(str(path))
    try:
        if form == "npy":
            return {"matrix": _read_npy(file, size, what)}
        arrays = _read_npz(file, what) if form == "npz" else _read_mat(file, size, what)
    except MemoryError:
        raise
    except Exception:  # a damaged file can fail anywhere in the readers
        raise ValueError(
            f"{str(path)!r} is not a readable .{form} file of plain numbers or text: it is "
            "damaged or holds pickled Python objects, which are never loaded."
        ) from None
    if not arrays:
        raise ValueError(f"{str(path)!r} holds no arrays.")
    if {"format", "shape", "data"} <= set(arrays):
        return {"matrix": _read_sparse(file, what)}
    return arrays


def _read_npy(file: Any, size: int, what: str) -> NDArray:
    """Read one array, after checking its header against the `size` of the content."""
    version = np.lib.format.read_magic(file)
    header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = header[version](file)
    if dtype.hasobject or any(length < 0 for length in shape):
        raise ValueError
    n_bytes = dtype.itemsize
    for length in shape:  # not np.prod, which overflows
        n_bytes *= length
    if n_bytes > size:
        raise ValueError
    check_size(n_bytes, what)
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def _read_npz(file: BinaryIO, what: str) -> dict[str, NDArray]:
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        check_size(sum(m.file_size for m in members), what)
        for member in members:
            with archive.open(member) as content:
                arrays[member.filename.removesuffix(".npy")] = _read_npy(
                    content, member.file_size, what
                )
    return arrays


def _read_mat(file: BinaryIO, size: int, what: str) -> dict[str, NDArray]:
    from scipy.io import loadmat, whosmat

    n_cells = sum(int(np.prod([float(n) for n in shape])) for _, shape, _ in whosmat(file))
    check_size(8 * n_cells, what)
    if n_cells > 2000 * size:  # more than any compression explains
        raise ValueError
    file.seek(0)
    _check_mat(file.read(), most=16 * n_cells + 2000 * size)
    file.seek(0)
    arrays = {}
    for name, value in loadmat(file).items():
        if isinstance(value, np.ndarray) and value.dtype == object:  # a cell array of words
            value = np.array([np.asarray(cell).item() for cell in value.ravel()]).astype(str)
        # words of a matrix of letters are equally long
        if isinstance(value, np.ndarray) and value.dtype.kind == "U":
            value = np.char.rstrip(value)
        if isinstance(value, np.ndarray) and not name.startswith("__"):
            arrays[name] = value.ravel() if 1 in value.shape and value.size > 1 else value
        elif hasattr(value, "toarray"):
            check_size(8.0 * value.shape[0] * value.shape[1], what)
            columns = (
                value.tocsc()
            )  # old versions of SciPy give coordinates, which have no format to check
            columns.check_format(full_check=True)
            arrays[name] = columns.toarray()
    return arrays


def _check_mat(content: bytes, most: int) -> None:
    """Raise if elements of a MATLAB file have an unknown type or are too long: SciPy's reader may crash on them."""
    if 0 in content[:4]:  # version 4, which has no elements
        return
    order = "<" if content[126:128] == b"IM" else ">"
    at = 128
    while at + 8 <= len(content):
        kind, length = unpack_from(order + "II", content, at)
        at += 8
        if kind == MatElement.COMPRESSED:
            inner = zlib.decompressobj().decompress(content[at : at + length], most)
            kind, inside = unpack_from(order + "II", inner)
            _check_mat_elements(inner, 8, min(8 + inside, len(inner)), order)
        else:
            _check_mat_elements(content, at, at + length, order)
        if kind != MatElement.MATRIX or at + length > len(content):
            raise ValueError
        at += length


def _check_mat_elements(content: bytes, at: int, end: int, order: str) -> None:
    """Check the elements of one array, and of the arrays in it."""
    numbers = (*range(1, 8), 9, 12, 13, 16, 17, 18)
    while at < end:
        kind, length = unpack_from(order + "II", content, at)
        if kind >> 16:  # a small one, its values in the tag
            kind, length, size = kind & 0xFFFF, kind >> 16, 0
        else:
            size = -(-length // 8) * 8
        if length > (end - at if size else 4) or kind not in (*numbers, MatElement.MATRIX):
            raise ValueError
        if kind == MatElement.MATRIX:
            _check_mat_elements(content, at + 8, at + 8 + length, order)
        at += 8 + size


def _read_sparse(file: BinaryIO, what: str) -> NDArray:
    """Read the matrix that `scipy.sparse.save_npz` wrote; the arrays of the file can be read."""
    from scipy import sparse

    file.seek(0)
    try:
        matrix = sparse.load_npz(file)
        check_size(8.0 * matrix.shape[0] * matrix.shape[1], what)
        if matrix.format != "coo":  # whose indices were checked
            matrix.check_format(full_check=True)
    except MemoryError:
        raise
    except Exception:  # damaged indices can fail anywhere in the reader
        raise ValueError(
            f"{what} holds a damaged or unusual sparse matrix; save it in CSR format."
        ) from None
    return matrix.toarray()


def split_name(name: str) -> tuple[str, str]:
    """Split the name of an array into its base and its part of the data: ``K_train`` is ("k", "train")."""
    short = {"tr": "train", "te": "test", "trn": "train", "tst": "test"}
    match = re.fullmatch(
        r"(?:(train|test)_?)?(.+?)(?:_?(train|test)|_(tr|te|trn|tst))?", name.lower()
    )
    if match is None:
        return name.lower(), ""
    side = match[1] or match[3] or match[4] or ""
    return match[2].strip("_"), short.get(side, side)


def find_matrix(
    arrays: dict[str, NDArray], path: str | os.PathLike, name: str | None = None
) -> str:
    """Return the name of the matrix among the `arrays` of one file."""
    if name is not None:
        if name not in arrays:
            raise ValueError(f"{str(path)!r} has no array {name!r}; it has {', '.join(arrays)}.")
        return name
    if len(arrays) == 1:
        return next(iter(arrays))
    matrices = [
        key for key, value in arrays.items() if value.ndim == 2 and split_name(key)[1] != "test"
    ]
    for usual in NAMES.matrices:
        for key in matrices:
            if split_name(key)[0] == usual.lower():
                return key
    if len(matrices) == 1:
        return matrices[0]
    if not matrices:
        raise ValueError(
            f"{str(path)!r} has no matrix among {', '.join(arrays)}; save a two-dimensional array."
        )
    raise ValueError(
        f"{str(path)!r} has several matrices: {', '.join(matrices)}; name the one to use, such as "
        f"--array {matrices[0]}, or several of the same items, such as --array "
        f"{matrices[0]},{matrices[1]}."
    )


def find_labels(arrays: dict[str, NDArray], side: str | None = None) -> str | None:
    """Return the name of the vector of labels among `arrays`, for one side of a split, or None."""
    sides = ("", "train") if side is None else (side,)
    for usual in NAMES.labels:
        for key, value in arrays.items():
            base, side_of = split_name(key)
            is_vector = value.ndim == 1 or (value.ndim == 2 and 1 in value.shape)
            if base == usual and side_of in sides and is_vector:
                return key
    return None


def find_names(arrays: dict[str, NDArray], n_items: int) -> list[str] | None:
    """Return the names of the items if an array of words is named like them, else None."""
    for key, value in arrays.items():
        names = value.ravel()
        is_named_so = key.lower() in NAMES.ids and names.dtype.kind in "US"
        if is_named_so and len(names) == n_items == len(set(names.tolist())):
            return names.astype(str).tolist()
    return None


def as_real(array: NDArray, what: str) -> NDArray:
    """Return `array` as real floats (float32 kept) with two dimensions; raise one sentence about `what` otherwise."""
    if array.dtype.kind not in "biuf":
        kind = {"c": "complex numbers", "O": "Python objects", "U": "text", "S": "text"}
        raise ValueError(
            f"{what} holds {kind.get(array.dtype.kind, str(array.dtype))}; save a matrix of real "
            "numbers."
        )
    if array.ndim != 2:
        raise ValueError(
            f"{what} is {array.ndim}-dimensional; a matrix with two dimensions is needed."
        )
    if array.size == 0:
        raise ValueError(f"{what} has no entries (shape {array.shape}).")
    return array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)
