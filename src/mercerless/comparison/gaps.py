"""Missing entries of a matrix of similarities or distances: completed by a low rank, measured on known pairs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.comparison.limits import LIMITS
from mercerless.core.validation import check_square


class Completion(NamedTuple):
    """A matrix without gaps: how many entries were filled, the rank, and R² on known pairs that were held out."""

    X: NDArray
    n_filled: int
    rank: int
    r2: float

    @property
    def how(self) -> str:
        """How the entries were found, and how good that is."""
        rank = f" and a matrix of rank {self.rank}" if self.rank else ""
        share = (
            f"{100 * max(0.0, self.r2):.0f} % of the variance of known entries that were held out"
        )
        return f"means of rows and columns{rank}, which explain {share}"


def fill_gaps(X: ArrayLike, ranks: Sequence[int] = (0, 1, 3, 8, 20)) -> Completion:
    """Complete a square matrix with NaN: from the mirrored entry, else by the rank that predicts known pairs best.

    ``ranks`` are tried; rank 0 is the mean of the row and the column. A missing diagonal becomes the median of the
    known one, or 0.
    """
    X = check_square(X, "The matrix", allow_nan=True).copy()
    unknown = np.isnan(X)
    _check_share(unknown)
    diagonal = np.diagonal(X)
    middle = 0.0 if np.isnan(diagonal).all() else float(np.nanmedian(diagonal))
    np.fill_diagonal(X, np.where(np.isnan(diagonal), middle, diagonal))
    both = ~np.isnan(X) & ~np.isnan(X.T)
    scale = np.abs(X[both]).max(initial=0.0)
    symmetric = bool(np.abs(X - X.T)[both].max(initial=0.0) <= 1e-8 * scale)
    if symmetric:
        X = np.where(np.isnan(X), X.T, X)
    held_out = _hold_out(X, symmetric)
    hidden = np.where(held_out, np.nan, X)
    truth = X[held_out]
    errors = {
        rank: float(((_complete(hidden, rank)[held_out] - truth) ** 2).mean()) for rank in ranks
    }
    rank = min(ranks, key=errors.__getitem__)
    r2 = 1.0 - errors[rank] / max(float(truth.var()), np.finfo(float).tiny)
    filled = _complete(X, rank)
    filled = np.where(np.isnan(X), (filled + filled.T) / 2 if symmetric else filled, X)
    return Completion(np.clip(filled, np.nanmin(X), np.nanmax(X)), int(unknown.sum()), rank, r2)


def _check_share(unknown: NDArray) -> None:
    """Raise if too much is missing to complete the rest."""
    share = float(unknown.mean())
    if share > LIMITS.missing_entries:
        raise ValueError(
            f"{100 * share:.0f} % of the matrix is missing, more than the {100 * LIMITS.missing_entries:.0f} % "
            "that can be completed; leave out the items with most gaps, or fill them in."
        )
    alone = (unknown | unknown.T | np.eye(len(unknown), dtype=bool)).all(axis=1)
    if alone.any():
        raise ValueError(
            f"Item {int(alone.argmax()) + 1} of the matrix is compared with no other item; leave "
            "it out, or fill it in."
        )


def _hold_out(X: NDArray, symmetric: bool) -> NDArray:
    """A tenth of the known pairs beside the diagonal, at least one of each two directions of a symmetric matrix."""
    held = np.random.default_rng(0).random(X.shape) < 0.1
    np.fill_diagonal(held, False)
    if symmetric:
        held = np.triu(held) | np.triu(held).T
    return held & ~np.isnan(X)


def _complete(X: NDArray, rank: int, n_steps: int = 20) -> NDArray:
    """Means of rows and columns plus a rank, by subspace iteration in which the filled entries move with it."""
    gaps = np.isnan(X)
    total = float(np.nanmean(X))
    means = np.nanmean(X, axis=1)[:, None] + np.nanmean(X, axis=0) - total
    if not rank:
        return means
    rest = np.where(gaps, 0.0, X - means)
    Q = np.random.default_rng(0).normal(size=(len(X), min(rank, len(X) // 2)))
    for _ in range(n_steps):
        P = np.linalg.qr(rest @ Q)[0]
        Q = np.linalg.qr(rest.T @ P)[0]
        low = P @ (P.T @ rest @ Q) @ Q.T
        rest[gaps] = low[gaps]
    return means + low
