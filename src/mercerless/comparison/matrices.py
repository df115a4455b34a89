"""Matrices of similarities or distances in tables: whole, as a triangle, as a vector, or as a list of pairs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.files import name_of
from mercerless.comparison.tables import CellTable, Pairs, is_number
from mercerless.core.memory import check_memory
from mercerless.spectra import matrix_kind


def as_matrix(
    table: CellTable, n_items: int | None = None, gaps: bool = False, kind: str | None = None
) -> tuple[NDArray, tuple[str, ...] | None]:
    """Return the numbers of a table and the names of its rows; a triangle becomes the whole symmetric matrix.

    Columns are put into the order of the rows by their names; `gaps` allows entries of a square matrix to be missing.
    If a triangle lacks the diagonal, it is the largest entry of similarities, and zero otherwise; without `kind`, it is
    inferred which they are.
    """
    check_numbers(table)
    values = table.frame.to_numpy(np.float64)
    ids = table.ids
    is_vector = 1 in values.shape and values.size > 2
    if is_vector and n_items != len(values):
        return from_condensed(values.ravel(), table.what, n_items), None
    if np.isnan(values).any():
        whole = _from_triangle(values, n_items if ids is None else len(ids))
        if whole is not None:
            if lacks_diagonal(table, len(whole)) and (kind or _kind(whole)) == "similarity":
                np.fill_diagonal(whole, np.nanmax(whole))
            has_names = ids is not None and len(ids) == len(whole)
            return whole, ids if has_names else None
        check_even(table)
        if not gaps or values.shape[0] != values.shape[1]:
            raise _first_gap(table, values)
    names = tuple(table.frame.columns)
    if not table.named:
        return values, ids
    if ids is None:
        return values, names if len(names) == len(values) else None
    if names != ids and sorted(names) == sorted(ids):
        values = table.frame[list(ids)].to_numpy(np.float64)
    return values, ids


def _kind(values: NDArray) -> str | None:
    """Infer the kind of a matrix that may have gaps."""
    return matrix_kind(np.where(np.isnan(values), np.nanmean(values), values)).kind


def lacks_diagonal(table: CellTable, n_items: int) -> bool:
    """Whether a table has so few numbers that it is at most a triangle without the diagonal of its matrix."""
    return int(table.frame.notna().sum().sum()) <= n_items * (n_items - 1) // 2


def _first_gap(table: CellTable, values: NDArray) -> ValueError:
    """Return the error that names the first missing entry."""
    row, column = np.argwhere(np.isnan(values))[0]
    name = table.frame.columns[column]
    cell = table.text(name)[row]
    return ValueError(
        f"{table.at(row, name)} is missing ({cell!r}); fill in or remove missing values first."
    )


def check_even(table: CellTable) -> None:
    """Raise if the lines of a table have different numbers of cells."""
    if table.ragged:
        raise ValueError(
            f"{table.ragged}; this is neither a table nor a triangle: give every line the same "
            "number of cells (numbers with thousands separators must be quoted or, better, written "
            "without them). Series of unequal length are compared in Python: "
            "mercerless.compare(series, y, kernel=function)."
        )


def check_numbers(table: CellTable, columns: Sequence[str] | None = None) -> None:
    """Raise at the first cell that is no finite number, by its line and column; missing ones are fine."""
    if columns is None:
        columns = list(table.frame.columns)
    for name in columns:
        column = table.frame[name]
        if column.dtype.kind in "biuf":
            is_bad = np.isinf(column.to_numpy(np.float64))
        else:
            is_bad = np.array([not is_number(str(cell)) for cell in column.fillna("nan")])
        if not is_bad.any():
            continue
        row = int(is_bad.argmax())
        cell = table.text(name)[row]
        place = table.at(row, name)
        if "," in cell and is_number(cell.replace(",", "")):
            remedy = "write numbers without thousands separators and with a decimal point"
            raise ValueError(f"{place} has {cell!r}; {remedy}.")
        raise ValueError(f"{place} has {cell!r} where a finite number should be.")


def from_condensed(vector: NDArray, what: str, n_items: int | None = None) -> NDArray:
    """Return the square matrix of a vector of n (n - 1) / 2 distances, as `scipy.spatial.distance.pdist` gives it."""
    from scipy.spatial.distance import squareform

    n = round((1 + np.sqrt(1 + 8 * len(vector))) / 2)
    if n * (n - 1) // 2 != len(vector) or n_items not in (None, n):
        raise ValueError(
            f"{what} is 1-dimensional with {len(vector)} numbers, which is neither a matrix nor "
            f"the distances of all pairs of {n_items or n} items; save a square matrix."
        )
    return squareform(np.asarray(vector, dtype=np.float64), checks=False)


def _from_triangle(values: NDArray, n_items: int | None) -> NDArray | None:
    """Return the symmetric matrix whose lower or upper triangle `values` has, or None; a missing diagonal is zero."""
    n_rows, n_columns = values.shape
    if n_rows < 3 or n_columns not in (n_rows, n_rows - 1):
        return None
    square = np.full((n_rows, n_rows), np.nan)
    square[:, :n_columns] = values
    filled = ~np.isnan(square)
    lower = np.tri(n_rows, dtype=bool)
    strictly_lower = np.tri(n_rows, k=-1, dtype=bool)
    if np.array_equal(filled, strictly_lower):
        return _symmetric(square)
    n_pairs = n_rows * (n_rows - 1) // 2
    is_below = not (filled & ~strictly_lower).any()
    if is_below and filled.sum() > 0.7 * n_pairs:  # some pairs are unknown
        known = np.where(strictly_lower, square, 0.0)
        return known + known.T
    if np.array_equal(filled, lower.T) or np.array_equal(filled, strictly_lower.T):
        return _symmetric(square.T)
    if np.array_equal(filled, lower[::-1]):  # an upper triangle whose rows begin at the left
        square = np.array([np.roll(row, place) for place, row in enumerate(square)]).T
    elif not np.array_equal(filled, lower):
        return None
    if n_items == n_rows + 1:  # the diagonal is not listed
        square = np.pad(square, ((1, 0), (0, 1)))
    return _symmetric(square)


def _symmetric(triangle: NDArray) -> NDArray:
    """Return the symmetric matrix of a lower triangle, with zeros for what it lacks."""
    lower = np.tril(np.nan_to_num(triangle))
    return lower + np.tril(lower, -1).T


# -------------------------------------------------------------------------------------------------------- pairs


class PairMatrix(NamedTuple):
    """A matrix made of pairs, and the numbers of pairs that are not listed."""

    X: NDArray
    ids: list[str]
    near: float  # of items with themselves, if not listed
    n_alone: int
    far: float  # of pairs that are not listed
    n_unlisted: int


def bit_score(table: CellTable) -> str | None:
    """Return the column of bit scores, or None."""
    names = map(str, table.frame.columns[2:])
    return next((name for name in names if name.lower() in ("bits", "bitscore")), None)


def best_hits(table: CellTable, score: str) -> Pairs:
    """Return the pairs that the first two columns name, each with its best score."""
    check_numbers(table, [score])
    first, second = (table.text(name) for name in table.frame.columns[:2])
    best = table.frame[score].groupby([first, second], sort=False).max()
    pairs = best.index.to_list()
    return Pairs(
        table.path,
        [one for one, _ in pairs],
        [other for _, other in pairs],
        best.to_numpy(np.float64),
        score,
        "every row is a hit with its bit score",
        kind="similarity",
    )


def pair_matrix(pairs: Pairs, kind: str) -> PairMatrix:
    """Convert a list of pairs into a matrix: a pair in one direction counts for both unless the pairs are directed.

    Pairs that are not listed are the farthest, since lists (such as the hits of a search) mostly leave out unlike
    pairs; those listed without a number are unknown, and completed later.
    """
    known = pairs.values[~np.isnan(pairs.values)]
    if not len(known):
        raise ValueError(
            f"{name_of(pairs.path)} is a list of pairs, but {pairs.name!r} has no number."
        )
    ids = sorted({*pairs.first, *pairs.second, *_nodes(pairs)})
    n_items = len(ids)
    remedy = "use a part of the items"
    check_memory(24.0 * n_items**2, f"A matrix of {n_items} items", remedy=remedy)
    place = {item: i for i, item in enumerate(ids)}
    rows = [place[item] for item in pairs.first]
    columns = [place[item] for item in pairs.second]
    X = np.full((n_items, n_items), np.nan)
    X[rows, columns] = pairs.values
    _check_repeated(pairs, X[rows, columns])
    is_listed = np.zeros((n_items, n_items), dtype=bool)
    is_listed[rows, columns] = True
    if not pairs.directed:
        X = np.where(np.isnan(X), X.T, X)
        is_listed |= is_listed.T
    near, far = (0.0, known.max()) if kind == "distance" else (known.max(), 0.0)
    if kind == "dissimilarity":
        near, far = min(known.min(), 0.0), known.max()
    is_alone = np.isnan(np.diagonal(X))
    X[is_alone, is_alone] = near
    is_unlisted = np.isnan(X) & ~is_listed
    X[is_unlisted] = far
    return PairMatrix(X, ids, near, int(is_alone.sum()), far, int(is_unlisted.sum()))


def _nodes(pairs: Pairs) -> list[str]:
    if pairs.attributes is None:
        return []
    return [str(node) for node in pairs.attributes.index]


def _check_repeated(pairs: Pairs, kept: NDArray) -> None:
    """Raise if a pair is listed with two different numbers."""
    differs = (kept != pairs.values) & ~(np.isnan(kept) & np.isnan(pairs.values))
    if not differs.any():
        return
    row = int(differs.argmax())
    line = f"line {pairs.lines[row]}: " if len(pairs.lines) else ""
    raise ValueError(
        f"{name_of(pairs.path)}: {line}the pair {pairs.first[row]}, {pairs.second[row]} comes "
        "twice with different numbers; keep one."
    )
