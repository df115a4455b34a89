"""Comparisons of items with landmarks: computed, or read from a given rectangle whose landmarks are inferred."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.blocks import is_dask, map_rows, take_rows
from mercerless.core.estimator import same_value
from mercerless.core.memory import check_memory, memory_budget
from mercerless.core.validation import check_real, check_symmetric, is_rounding, relative_asymmetry
from mercerless.kernels import Kernel, PairFunction
from mercerless.kernels.items import takes_objects
from mercerless.lowrank import Landmarks, as_landmarks, select_landmarks
from mercerless.similarity.landmarks import LandmarkRows, RowReader, n_judged, pursue_landmarks
from mercerless.similarity.nearby import NearbyItems
from mercerless.spectra import as_similarities, check_kind


def landmarks_of(requested: Any) -> Landmarks:
    """How many landmarks and how they are chosen."""
    return as_landmarks(requested, ("uniform", "kmeans", "pursuit"), for_similarities=True)


def compare_items(
    kernel: Kernel,
    compare: Callable[[Any, Any], NDArray],
    items: Any,
    requested: Landmarks | NDArray,
    kind: str,
    Y: NDArray,
    weight: NDArray,
    random: np.random.RandomState,
    candidates: NDArray | None = None,
) -> LandmarkRows:
    """Compare items with some of them, by a kernel or function; nothing else is ever compared.

    `compare` gives both directions' mean if that is requested; the pursuit starts from `candidates`, or twice as many
    items as landmarks at random. If landmarks' own similarities differ, each item is compared with itself too.
    """
    n = len(items)
    final = min(requested.number, n) if isinstance(requested, Landmarks) else len(requested)
    pursued = isinstance(requested, Landmarks) and requested.method == "pursuit"
    rows = (
        _candidates(kernel, items, requested, final, random) if candidates is None else candidates
    )
    others = take_rows(items, rows)
    W = compare(others, others) if is_dask(items) else None
    streams = W is not None or (
        16.0 * n * len(rows) > memory_budget() / 2 and not takes_objects(kernel)
    )
    if streams:
        W = compare(others, others) if W is None else W
        X: Any = items
        step: Callable | None = partial(_against, compare, others)
    else:
        check_memory(
            16.0 * n * len(rows),
            f"{n} items compared with {len(rows)} landmarks",
            remedy="use fewer",
        )
        X = _compare_all(kernel, compare, items, others, rows)
        _check_no_gaps(kernel, X)
        step = None
        W = X[rows]
    W = check_symmetric(W, "the kernel matrix")
    kind = check_kind(W, kind, "the kernel matrix")
    diagonal = as_similarities(np.diagonal(W), kind) if kind != "distance" else np.zeros(len(W))
    constant = same_value(diagonal)
    each = None
    if constant is None:
        own = _diagonal_of(kernel, items)
        _check_no_gaps(kernel, own)
        each = as_similarities(own, kind)
    compared = LandmarkRows(X, each, RowReader(kind, diagonal, constant, compare=step), rows)
    return _pursue(compared, final, Y, weight) if pursued else compared


def compare_both_ways(
    kernel: Kernel | None,
    items: Any,
    requested: Landmarks | NDArray,
    kind: str,
    Y: NDArray,
    weight: NDArray,
    random: np.random.RandomState,
) -> LandmarkRows:
    """Compare items with landmarks in both directions; without a kernel, items are a square matrix."""
    n = len(items)
    rows: NDArray = np.asarray(requested)
    is_pursued = False
    if isinstance(requested, Landmarks):
        is_pursued = requested.method == "pursuit"
        if requested.method == "kmeans":
            raise ValueError(
                "Landmarks by 'kmeans' have no direction; choose 'uniform' or 'pursuit' with "
                "direction='both'."
            )
        number = min(n, 2 * requested.number if is_pursued else requested.number)
        rows = np.sort(random.permutation(n)[:number])
    check_memory(
        48.0 * n * len(rows), f"{n} items compared with {len(rows)} landmarks", remedy="use fewer"
    )
    if kernel is None:
        out = items[:, rows]
        back = items[rows].T
    else:
        others = take_rows(items, rows)
        out = _compare_all(kernel, kernel, items, others, rows)
        back = kernel(others, items).T
        _check_no_gaps(kernel, out)
        _check_no_gaps(kernel, back)
    W = out[rows]
    kind = check_kind(W, kind, "the comparisons of landmarks")
    diagonal = np.zeros(len(W))
    each = None
    constant: float | None = 0.0
    if kind != "distance":
        diagonal = as_similarities(np.diagonal(W), kind)
        constant = same_value(diagonal)
        if constant is None:
            own = np.diagonal(items) if kernel is None else _diagonal_of(kernel, items)
            if kernel is not None:
                _check_no_gaps(kernel, own)
            each = as_similarities(np.array(own), kind)
    reader = RowReader(kind, diagonal, constant, is_directed=True)
    compared = LandmarkRows(np.hstack([out, back]).astype(np.float64), each, reader, rows)
    if not is_pursued:
        return compared
    return _pursue(compared, min(requested.number, n), Y, weight)  # type: ignore[union-attr]


def _candidates(
    kernel: Kernel,
    items: Any,
    requested: Landmarks | NDArray,
    final: int,
    random: np.random.RandomState,
    per_landmark: int = 2,
) -> NDArray:
    """Rows of the items to compare with: those given, or chosen; for a pursuit `per_landmark` of each it keeps."""
    if not isinstance(requested, Landmarks):
        return requested
    if requested.method == "pursuit":
        number = min(len(items), per_landmark * final)
        return select_landmarks(kernel, items, number, "uniform", random)
    return select_landmarks(kernel, items, final, requested.method, random)


def _compare_all(
    kernel: Kernel, compare: Callable, items: Any, others: Any, rows: NDArray
) -> NDArray:
    """All comparisons; if a function fails, the error numbers the second item among all items, not among landmarks."""
    try:
        return compare(items, others)
    except ValueError as error:
        pair = re.search(r"for items (\d+) and (\d+)", str(error))
        if pair is None or compare is not kernel:
            raise
        raise ValueError(
            str(error).replace(pair[0], f"for items {pair[1]} and {rows[int(pair[2])]}")
        ) from error


def _check_no_gaps(kernel: Kernel, C: NDArray) -> None:
    """Raise if a function gave None for some pairs."""
    if isinstance(kernel, PairFunction) and np.isnan(C).any():
        raise ValueError(
            f"The kernel function gave None for {int(np.isnan(C).sum())} pairs of items and "
            "landmarks; only all comparisons are completed, so set landmarks=None, or return a "
            "number for every pair."
        )


def _against(compare: Callable[[Any, Any], NDArray], landmarks: Any, rows: Any) -> NDArray:
    return compare(rows, landmarks)


def _diagonal_of(kernel: Kernel, items: Any) -> NDArray:
    """Own similarities of all items."""
    if is_dask(items):
        return np.asarray(map_rows(kernel.diag, items, 16.0 * items.shape[1]).compute())
    return kernel.diag(items)


def read_comparisons(
    C: Any,
    requested: Landmarks | NDArray,
    kind: str,
    Y: NDArray,
    weight: NDArray,
    random: np.random.RandomState,
) -> LandmarkRows:
    """Comparisons that are given: every column is a landmark, a training item or not.

    The landmarks' rows are given as positions, or inferred (see `find_rows`). A smaller number keeps some columns.
    """
    n, width = C.shape
    if isinstance(requested, Landmarks):
        kind, rows = find_rows(C, kind)
    else:
        kind, rows = _check_rows(C, kind, requested)
    known = np.flatnonzero(rows >= 0)
    diagonal = np.zeros(width)
    constant = 0.0 if kind == "distance" else None
    each = None
    if kind != "distance" and len(known):
        diagonal[known] = as_similarities(
            np.array([take_rows(C, rows[[j]])[0, j] for j in known]), kind
        )
        constant = same_value(diagonal[known])
        diagonal[rows < 0] = 0.0 if constant is None else constant
        if constant is None and width == n and np.array_equal(rows, np.arange(n)):
            each = diagonal
    compared = LandmarkRows(C, each, RowReader(kind, diagonal, constant), rows)
    if not isinstance(requested, Landmarks) or requested.number >= width:
        return compared
    if requested.method == "pursuit":
        return _pursue(compared, requested.number, Y, weight)
    return compared.keep(np.sort(random.permutation(width)[: requested.number]))


def _check_rows(C: Any, kind: str, rows: NDArray) -> tuple[str, NDArray]:
    """Kind of the comparisons; raises if the given landmark rows contradict it."""
    if len(rows) != C.shape[1]:
        raise ValueError(
            f"landmarks names {len(rows)} landmarks but X has {C.shape[1]} columns; every column "
            "is the comparison with one landmark."
        )
    W = take_rows(C, rows)
    if not is_rounding(relative_asymmetry(W), W.dtype):
        i, j = np.unravel_index(np.argmax(np.abs(W - W.T)), W.shape)
        raise ValueError(
            f"The columns of X do not match landmarks: row {rows[i]} has {W[i, j]:.6g} in column "
            f"{j}, but row {rows[j]}, the landmark of that column, has {W[j, i]:.6g} in column {i}."
        )
    kind = check_kind(W, kind)
    later = np.ones(len(rows), dtype=bool)
    later[np.unique(rows, return_index=True)[1]] = False
    return kind, np.where(later, -1, rows)  # of landmarks that are copies one is the item


def find_rows(C: Any, kind: str = "auto") -> tuple[str, NDArray]:
    """The kind of comparisons, and the row of the item of every column; -1 for landmarks that are not among the rows.

    A landmark's row is nearest to its own column (distance 0, or the greatest similarity), and the landmarks' own part
    is symmetric; that cannot happen by chance. If this does not decide the kind, it must be given.
    """
    if C.shape[0] == C.shape[1]:
        K = check_real(C.compute() if is_dask(C) else C)
        if is_rounding(relative_asymmetry(K), K.dtype):
            return check_kind(K, kind), np.arange(len(K))
    for guess in ("distance", "similarity") if kind == "auto" else (kind,):
        nearest = np.asarray((C.argmax if guess == "similarity" else C.argmin)(axis=0))
        rows = _consistent(take_rows(C, nearest), nearest, guess)
        known = np.flatnonzero(rows >= 0)
        if kind != "auto":
            return kind, rows
        if len(known) > 3:
            return check_kind(take_rows(C, rows[known])[:, known], "auto"), rows
    raise ValueError(
        f"Cannot infer whether X of shape {C.shape} holds similarities or distances, because its "
        "landmarks are not among its rows; pass kind='similarity', 'distance' or 'dissimilarity'."
    )


def _consistent(W: NDArray, rows: NDArray, kind: str) -> NDArray:
    """Rows of landmarks without those that contradict the others; all are -1 if contradictions remain."""
    size = float(np.abs(W).max()) or 1.0
    rows = np.where(np.diagonal(W) > 1e-8 * size, -1, rows) if kind == "distance" else rows.copy()
    later = np.ones(len(rows), dtype=bool)
    later[np.unique(rows, return_index=True)[1]] = False
    rows[later] = -1  # no row is two landmarks, unless they are copies
    wrong = np.abs(W - W.T) > (1e-5 if W.dtype == np.float32 else 1e-8) * size
    if kind == "distance":  # zeros between different items are those of truncated similarities
        wrong |= (W <= 1e-8 * size) & ~np.eye(len(W), dtype=bool)
    known = rows >= 0
    known &= wrong[:, known].sum(axis=1) * 2 <= known.sum()
    rows[~known] = -1
    if wrong[np.ix_(known, known)].any():
        rows[:] = -1
    return rows


def _pursue(compared: LandmarkRows, number: int, Y: NDArray, weight: NDArray) -> LandmarkRows:
    """The landmarks that predict the targets best, see `pursue_landmarks`, from a sample of many rows."""
    n = len(Y)
    rows = np.unique(np.linspace(0, n - 1, n_judged(n, Y.shape[1])).astype(int))
    chosen = pursue_landmarks(compared.take(rows), Y[rows], weight[rows], number)
    return compared.keep(np.sort(chosen))


def among(used: NDArray, rows: NDArray) -> NDArray:
    """Positions among all items of rows among those that carry weight, -1 for others."""
    return np.where(rows >= 0, used[rows], -1)


def add_neighbors(
    compared: LandmarkRows, items: Any, compare: Callable[[Any, Any], NDArray], number: int
) -> tuple[NearbyItems, LandmarkRows]:
    """Compare items also with those that are nearest by their comparisons with the landmarks."""
    if is_dask(items) or compared.read.compare is not None:
        raise ValueError(
            "Landmarks(neighbors=...) needs the items and their comparisons in memory; leave "
            "neighbors out."
        )
    nearby, hits = NearbyItems.of(
        compare, items, compared.all(), compared.read.kind, compared.landmarks, number
    )
    return nearby, replace(compared, hits=hits)


def check_positions(positions: ArrayLike, n: int) -> NDArray:
    """Distinct row numbers."""
    rows = np.asarray(positions)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise ValueError(
            "landmarks as a list must hold the landmarks' row numbers among the training items."
        )
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(
            f"landmarks names row {rows.max() if rows.max() >= n else rows.min()} of {n} items."
        )
    if len(np.unique(rows)) < len(rows):
        row = np.flatnonzero(np.bincount(rows) > 1)[0]
        raise ValueError(f"landmarks names row {row} twice; landmarks must be different items.")
    return rows
