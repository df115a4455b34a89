"""Distances of time series by dynamic time warping, for all pairs at once, in NumPy alone.

Pairs are the vector: one step of the dynamic program is made for many pairs together, so the loops are only over the
points of two series. Series may differ in length; several dimensions are rows of an array and are warped together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WarpingLimits:
    """How far series are warped, and how many pairs are computed at once."""

    window: float = 0.2  # of the longer series: how far points may be shifted against each other
    pairs: int = 20_000  # at once, so that the arrays of a step stay in the cache of a processor
    most_steps: float = 3e10  # of all pairs, about five minutes; series that need more are a table


WARPING = WarpingLimits()


def dtw(A: Sequence[NDArray], B: Sequence[NDArray]) -> NDArray:
    """Return the distances of all pairs: roots of the smallest sums of squared differences along a warping path.

    Gaps inside a series are filled by linear interpolation. A path may leave the diagonal by a fifth of the
    longer series, or by the difference of the lengths if that is more.
    """
    is_same = A is B or (len(A) == len(B) and all(a is b for a, b in zip(A, B)))
    rows = [_as_points(series) for series in A]
    if is_same:
        columns = rows
        i, j = np.triu_indices(len(rows), k=1)
    else:
        columns = [_as_points(series) for series in B]
        i, j = np.indices((len(rows), len(columns))).reshape(2, -1)

    distances = np.zeros((len(rows), len(columns)))
    for first in range(0, len(i), WARPING.pairs):
        part = slice(first, first + WARPING.pairs)
        distances[i[part], j[part]] = _warp(rows, columns, i[part], j[part])
    if is_same:
        return distances + distances.T
    return distances


def warping_steps(series: Sequence[NDArray]) -> float:
    """Approximate number of steps for the distances of all pairs."""
    longest = max(np.shape(one)[-1] for one in series)
    return 0.5 * len(series) ** 2 * longest**2 * min(1.0, 2 * WARPING.window)


def to_text(series: NDArray) -> str:
    """Return a series as .ts files have it: commas between numbers, colons between dimensions; no digit is lost."""
    rows = np.atleast_2d(np.asarray(series, dtype=np.float64))
    return ":".join(",".join(map(repr, row.tolist())) for row in rows)


def from_text(text: str) -> NDArray:
    """Return the series that `to_text` wrote."""
    rows = [[float(cell) for cell in row.split(",")] for row in text.split(":")]
    return np.array(rows[0] if len(rows) == 1 else rows)


def _as_points(series: NDArray) -> NDArray:
    """Return a series as points in rows, of one or several dimensions, without gaps."""
    points = np.atleast_2d(np.asarray(series, dtype=np.float64))
    filled = []
    for values in points:
        is_gap = np.isnan(values)
        if is_gap.all():
            raise ValueError("A time series has no numbers, only gaps; leave it out.")
        places = np.arange(len(values))
        filled.append(np.interp(places, places[~is_gap], values[~is_gap]))
    return np.transpose(filled)


def _padded(series: list[NDArray]) -> NDArray:
    """Return series of points as one array, with zeros after the shorter ones, which no path to their ends uses."""
    longest = max(map(len, series))
    padded = np.zeros((len(series), longest, series[0].shape[1]))
    for place, points in enumerate(series):
        padded[place, : len(points)] = points
    return padded


def _warp(rows: list[NDArray], columns: list[NDArray], i: NDArray, j: NDArray) -> NDArray:
    """Return the distances of the pairs (i, j)."""
    row_lengths = np.array([len(rows[place]) for place in i])
    column_lengths = np.array([len(columns[place]) for place in j])
    widths = _band_widths(row_lengths, column_lengths)
    row_points = _padded(rows)[i]
    column_points = _padded(columns)[j]

    n_pairs = len(i)
    n_steps = int(row_lengths.max(initial=0))
    n_columns = int(column_lengths.max(initial=0))
    widest = int(widths.max(initial=0))
    # sums[s + 1] is the smallest sum of a path that ends at the point s of the columns
    sums = np.full((n_columns + 1, n_pairs), np.inf)
    sums[0] = 0.0
    totals = np.zeros(n_pairs)
    for r in range(n_steps):
        previous = sums
        sums = np.full((n_columns + 1, n_pairs), np.inf)
        first = max(0, r - widest)
        last = min(n_columns, r + widest + 1)
        for s in range(first, last):
            difference = row_points[:, r] - column_points[:, s]
            cost = (difference**2).sum(axis=1)
            both_advance = previous[s]
            row_advances = previous[s + 1]
            column_advances = sums[s]
            best = np.minimum(np.minimum(both_advance, row_advances), column_advances)
            is_in_band = np.abs(r - s) <= widths
            sums[s + 1] = np.where(is_in_band, cost + best, np.inf)
        is_end = row_lengths == r + 1
        totals[is_end] = sums[column_lengths[is_end], np.flatnonzero(is_end)]
    return np.sqrt(totals)


def _band_widths(row_lengths: NDArray, column_lengths: NDArray) -> NDArray:
    """How far the path of each pair may leave the diagonal."""
    longer = np.maximum(row_lengths, column_lengths)
    window = np.ceil(WARPING.window * longer)
    difference = np.abs(row_lengths - column_lengths)
    return np.maximum(window, difference)
