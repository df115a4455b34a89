"""Checks that speak one clear sentence before any work is done, and the memory guard."""

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def check_real(A: ArrayLike, name: str = "X", *, allow_nan: bool = False) -> NDArray:
    """A finite, real, non-empty, two-dimensional floating array; float32 is kept, everything else becomes float64.

    Parameters
    ----------
    A : array-like
        What the user gave.
    name : str, default="X"
        What to call it in the message.
    allow_nan : bool, default=False
        Whether NaN may mark missing entries; infinities are refused all the same.

    Returns
    -------
    ndarray
        ``A`` itself when it already is such an array (read-only arrays included).
    """
    if hasattr(A, "toarray"):
        raise TypeError(f"{name} is a sparse matrix; pass a dense array, for example {name}.toarray().")
    array = np.asarray(A)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} is complex (Complex data not supported); pass its real part or its modulus.")
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} has dtype {array.dtype} and cannot be read as numbers ({error}); pass a numeric array."
            ) from None
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional, not {array.ndim}-dimensional; use {name}.reshape(1, -1) for one row "
            f"or {name}.reshape(-1, 1) for one column."
        )
    if array.size == 0:
        raise ValueError(f"{name} has shape {array.shape} and so no entries; pass at least one row and one column.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    # A finite sum proves all entries finite without a temporary; otherwise look closely.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum())
    if suspicious:
        missing, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        if infinite or (missing and not allow_nan):
            raise ValueError(
                f"{name} has {missing} NaN and {infinite} infinite entries out of {array.size}; "
                "remove those rows or replace the values first."
            )
    return array


def check_square(K: ArrayLike, name: str = "K", *, allow_nan: bool = False) -> NDArray:
    """A finite, real, square floating array.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix.
    name : str, default="K"
        What to call it in the message.
    allow_nan : bool, default=False
        Whether NaN may mark missing entries.

    Returns
    -------
    ndarray of shape (n, n)
        The matrix as a floating array.
    """
    K = check_real(K, name, allow_nan=allow_nan)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{name} must be square (one row and one column per training item), not of shape {K.shape}; "
            "pass the similarities of all training items to each other."
        )
    return K


def relative_asymmetry(K: NDArray) -> float:
    """``max|K - K^T| / max|K|`` of a square array, block by block; 0 for the zero matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The matrix.

    Returns
    -------
    float
        The relative asymmetry, at most 2.
    """
    largest = max(float(K.max()), -float(K.min()))
    if largest == 0.0:
        return 0.0
    worst = 0.0
    for rows in row_blocks(len(K), 2 * K.itemsize * len(K)):
        # only the part on and above the diagonal: the rest is its mirror image
        worst = max(worst, float(np.abs(K[rows, rows.start :] - K[rows.start :, rows].T).max()))
    return worst / largest


def check_symmetric(K: ArrayLike, name: str = "K", rtol: float = 1e-8) -> NDArray:
    """A finite, real, symmetric floating array, exactly symmetric on return.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix.
    name : str, default="K"
        What to call it in the message.
    rtol : float, default=1e-8
        Asymmetry, relative to the largest entry, that is taken for rounding and averaged away. For float32 input
        it is at least 1e-5.

    Returns
    -------
    ndarray of shape (n, n)
        ``K`` itself when it is exactly symmetric, else ``(K + K.T) / 2``.
    """
    K = check_square(K, name)
    amount = relative_asymmetry(K)
    if amount > (max(rtol, 1e-5) if K.dtype == np.float32 else rtol):
        raise ValueError(
            f"{name} is not symmetric: max|{name} - {name}.T| is {amount:.2g} of max|{name}|; average both directions "
            f"with mercerless.spectra.symmetrize({name}), or keep them apart with mercerless.AsymmetricRidge."
        )
    return K if amount == 0.0 else (K + K.T) / 2


def check_targets(y: Any, name: str) -> NDArray:
    """Finite numbers to predict, in float64: one per row, or one row of several outputs each."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    y = check_array(y, ensure_2d=False, dtype=[np.float64, np.float32], input_name="y")
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, not {y.ndim}.")
    return y.astype(np.float64, copy=False)


def check_labels(y: Any, name: str) -> NDArray:
    """One label per row, none missing."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(y)
    return y


def check_weight(sample_weight: Any, n: int) -> NDArray | None:
    """Finite weights of at least 0, one per row and not all 0; None where all are equal to one."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have one weight per row, shape ({n},), not {weight.shape}.")
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight has values that are not finite; give every row a finite weight of at least 0.")
    if weight.min() < 0:
        raise ValueError(f"sample_weight has the negative entry {weight.min():.3g}; weights must be at least 0.")
    if weight.max() == 0:
        raise ValueError("sample_weight is zero for every row; at least one must be positive.")
    return None if np.all(weight == 1.0) else weight


def check_classes(y: Any, sample_weight: Any, class_weight: Any, name: str) -> tuple[NDArray | None, NDArray, NDArray]:
    """Sample weights with class weights multiplied in, the classes (at least two), and their numbers per row."""
    y = check_labels(y, name)
    weight = check_weight(sample_weight, len(y))
    if class_weight is not None:
        weight = compute_sample_weight(class_weight, y) * (1.0 if weight is None else weight)
        weight = check_weight(weight, len(y))
    classes, labels = np.unique(y, return_inverse=True)
    present = np.unique(labels if weight is None else labels[weight > 0])
    if len(present) < 2:
        raise ValueError(
            f"y has one class only, {classes[present[0]]!r} (rows of weight zero do not count); a classifier needs at "
            "least two."
        )
    return weight, classes, labels


def available_memory() -> int:
    """Bytes of memory that can still be used by this process, as the system tells.

    Returns
    -------
    int
        The smallest of the machine's available memory and what is left of a control group's limit; 4 GiB where
        the system tells nothing.
    """
    found = []
    try:
        with open("/proc/meminfo") as lines:
            found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except OSError:
        try:
            found.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, ValueError, OSError):
            pass
    try:
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as current:
            found.append(int(limit.read()) - int(current.read()))
    except (OSError, ValueError):
        pass
    return max(0, min(found, default=2**32))


def memory_budget(memory_limit: int | float | str | None = None) -> int:
    """The number of bytes a computation may use.

    Parameters
    ----------
    memory_limit : int, float, str or None, default=None
        Bytes, a string such as ``"2GB"`` or ``"500 MiB"``, or None for half of what is free now.

    Returns
    -------
    int
        The budget in bytes.
    """
    if memory_limit is None:
        return available_memory() // 2
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", memory_limit.lower())
        if match is None or match.group(2) == "i":
            raise ValueError(f"memory_limit={memory_limit!r} is not a size; write for example '2GB' or '500MiB'.")
        memory_limit = float(match.group(1)) * _UNITS[match.group(2)]
    if not memory_limit > 0:
        raise ValueError(
            f"memory_limit={memory_limit!r} must be positive; write for example '2GB', or None for half of "
            "what is free."
        )
    return int(memory_limit)


def format_bytes(n_bytes: float) -> str:
    """A size for people, such as ``"1.5 GB"``.

    Parameters
    ----------
    n_bytes : float
        The size in bytes.

    Returns
    -------
    str
        The size with its unit.
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def check_memory(
    n_bytes: float,
    what: str,
    memory_limit: int | float | str | None = None,
    remedy: str = "use fewer rows, a low-rank solver, or raise memory_limit",
) -> None:
    """Raise MemoryError, before any work, when something will not fit.

    Parameters
    ----------
    n_bytes : float
        What the computation needs.
    what : str
        What needs it, as the subject of the sentence.
    memory_limit : int, float, str or None, default=None
        The budget, see `memory_budget`.
    remedy : str
        What the user can do.
    """
    budget = memory_budget(memory_limit)
    if n_bytes > budget:
        raise MemoryError(f"{what} needs {format_bytes(n_bytes)} but the budget is {format_bytes(budget)}; {remedy}.")


def row_blocks(n_rows: int, bytes_per_row: float, budget: int = 2**26) -> Iterator[slice]:
    """Slices of consecutive rows, each needing at most ``budget`` bytes and holding at least one row.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    bytes_per_row : float
        What the work on one row needs.
    budget : int, default=2**26
        What the work on one block may need.

    Yields
    ------
    slice
        The rows of one block.
    """
    step = max(1, int(budget // max(1.0, bytes_per_row)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
