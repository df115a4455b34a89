"""Missing entries of a matrix of similarities or distances: completed by a low rank, measured on known pairs."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercerless.core.validation import check_square, validate_data

#: Largest share of a matrix, or of a new row, that may be missing.
LARGEST_SHARE = 0.3
#: Ranks that compete on known entries that are held out; 0 is the means of rows and columns.
RANKS = (0, 1, 3, 8, 20)
#: Steps of the subspace iteration.
N_STEPS = 20
#: Share of the known pairs that are held out to choose the rank.
HELD_OUT = 0.1


class RowModel(NamedTuple):
    """Column means plus a few directions, which predict the missing entries of new rows."""

    means: NDArray  # (n,), of the columns
    design: NDArray  # (n, 1 + rank), a constant and orthonormal axes
    # (1 + rank,), variance of the error relative to that of the rows' coordinates
    precision: NDArray
    low: float  # smallest and largest known entry
    high: float

    def fill(self, rows: NDArray) -> NDArray:
        """New rows (m, n) without gaps.

        A row is ``means + design @ c`` with independent normal c and noise of the variances seen in training; c is its
        mean given the known entries.
        """
        is_missing = np.isnan(rows)
        shares = is_missing.mean(axis=1)
        _check_share(float(shares.max()), f"row {shares.argmax()} of X")
        filled = np.array(rows, dtype=np.float64)
        for row, gaps in zip(filled, is_missing):
            known = self.design[~gaps]
            normal = known.T @ known + np.diag(self.precision)
            coordinates = np.linalg.solve(normal, known.T @ (row - self.means)[~gaps])
            row[gaps] = (self.means + self.design @ coordinates)[gaps]
        return np.clip(filled, self.low, self.high, out=filled, where=is_missing)


class FilledGaps(NamedTuple):
    """How the missing entries of a matrix were completed.

    Attributes
    ----------
    n_filled : int
        How many entries were missing.
    rank : int
        The rank of the matrix that is added to means of rows and columns.
    r2 : float
        Share of the variance of known entries that were held out, explained by the completion.
    model : RowModel
        The model that completes rows of new items.
    """

    n_filled: int
    rank: int
    r2: float
    model: RowModel


def fill_gaps(X: ArrayLike) -> tuple[NDArray, FilledGaps]:
    """Complete a square matrix with NaN: from the mirrored entry, else by the rank that predicts known pairs best.

    Rank 0 is the mean of the row and the column. A missing diagonal becomes the median of the known one, or 0.
    """
    X = check_square(X, "The matrix", allow_nan=True).copy()
    unknown = np.isnan(X)
    _check_share(float(unknown.mean()), "the matrix")
    alone = (unknown | unknown.T | np.eye(len(unknown), dtype=bool)).all(axis=1)
    if alone.any():
        raise ValueError(
            f"Item {int(alone.argmax()) + 1} of the matrix is compared with no other item; leave "
            "it out, or fill it in."
        )
    diagonal = np.diagonal(X)
    middle = 0.0 if np.isnan(diagonal).all() else float(np.nanmedian(diagonal))
    np.fill_diagonal(X, np.where(np.isnan(diagonal), middle, diagonal))
    both = ~np.isnan(X) & ~np.isnan(X.T)
    scale = np.abs(X[both]).max(initial=0.0)
    is_symmetric = bool(np.abs(X - X.T)[both].max(initial=0.0) <= 1e-8 * scale)
    if is_symmetric:
        X = np.where(np.isnan(X), X.T, X)
    held_out = _hold_out(X, is_symmetric)
    hidden = np.where(held_out, np.nan, X)
    truth = X[held_out]
    errors = {}
    for rank in RANKS:
        guess, _ = _complete(hidden, rank)
        errors[rank] = float(((guess[held_out] - truth) ** 2).mean())
    rank = min(RANKS, key=errors.__getitem__)
    r2 = 1.0 - errors[rank] / max(float(truth.var()), np.finfo(float).tiny)

    guess, axes = _complete(X, rank)
    if is_symmetric:
        guess = (guess + guess.T) / 2
    filled = np.where(np.isnan(X), guess, X)
    filled = np.clip(filled, np.nanmin(X), np.nanmax(X))
    return filled, FilledGaps(int(unknown.sum()), rank, r2, _row_model(filled, axes, errors[rank]))


def _row_model(filled: NDArray, axes: NDArray, noise: float) -> RowModel:
    """The model of rows of a completed matrix; `noise` is the mean squared error of entries that were held out."""
    means = filled.mean(axis=0)
    effects = (filled - means).mean(axis=1)
    coordinates = np.column_stack([effects, (filled - means - effects[:, None]) @ axes])
    variance = (coordinates**2).mean(axis=0)
    tiny = np.finfo(float).tiny
    noise = max(noise, 1e-12 * float(np.ptp(filled)) ** 2, tiny)
    design = np.column_stack([np.ones(len(means)), axes])
    return RowModel(
        means, design, noise / np.maximum(variance, tiny), float(filled.min()), float(filled.max())
    )


def _check_share(share: float, what: str) -> None:
    """Raise if too much is missing to complete the rest."""
    if share > LARGEST_SHARE:
        raise ValueError(
            f"{100 * share:.0f} % of {what} is missing, more than the {100 * LARGEST_SHARE:.0f} % that can be "
            "completed; leave out the items with most gaps, or compare them with more others."
        )


def _hold_out(X: NDArray, is_symmetric: bool) -> NDArray:
    """A tenth of the known pairs beside the diagonal, at least one of each two directions of a symmetric matrix."""
    rng = np.random.default_rng([0, 1])  # unlike default_rng(0), which may have made the gaps
    held_out = rng.random(X.shape) < HELD_OUT
    np.fill_diagonal(held_out, False)
    if is_symmetric:
        upper = np.triu(held_out)
        held_out = upper | upper.T
    return held_out & ~np.isnan(X)


def _complete(X: NDArray, rank: int) -> tuple[NDArray, NDArray]:
    """Means of rows and columns plus a rank, by subspace iteration in which the filled entries move with it.

    Returns the matrix of guesses, and axes (n, rank) of its rows.
    """
    gaps = np.isnan(X)
    total = float(np.nanmean(X))
    means = np.nanmean(X, axis=1)[:, None] + np.nanmean(X, axis=0) - total
    if not rank:
        return means, np.empty((len(X), 0))
    rest = np.where(gaps, 0.0, X - means)
    Q = np.random.default_rng(0).normal(size=(len(X), min(rank, len(X) // 2)))
    for _ in range(N_STEPS):
        P = np.linalg.qr(rest @ Q)[0]
        Q = np.linalg.qr(rest.T @ P)[0]
        core = P.T @ rest @ Q
        low = P @ core @ Q.T
        rest[gaps] = low[gaps]
    return means + low, Q


class GapFiller(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Complete a precomputed matrix of similarities or distances that has missing entries (NaN).

    The mirrored entry fills a gap, else means of rows and columns plus a matrix of the rank (0, 1, 3, 8 or 20) that
    best predicts known entries which are held out. Rows of new items are completed by the same model. At most 30 % of
    the matrix and of every new row may be missing.

    Attributes
    ----------
    gaps_ : FilledGaps or None
        How many entries were completed (``n_filled``), by which ``rank``, and the share ``r2`` of the variance of known
        entries, held out, that this explains; None without gaps.
    n_features_in_ : int
        The number of training items.

    See Also
    --------
    SimilarityClassifier : A learner of the completed matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.spectra import GapFiller
    >>> D = np.abs(np.arange(6.0)[:, None] - np.arange(6.0))
    >>> D[0, 3] = np.nan
    >>> float(GapFiller().fit_transform(D)[0, 3])
    3.0
    """

    gaps_: FilledGaps | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how to complete rows of comparisons.

        Parameters
        ----------
        X : array-like of shape (n, n)
            Comparisons of the training items, NaN for missing ones.
        y : object
            Ignored.

        Returns
        -------
        self : GapFiller
            The fitted transformer.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> NDArray:
        """Learn from the training matrix, and complete it.

        Parameters
        ----------
        X : array-like of shape (n, n)
            Comparisons of the training items, NaN for missing ones.
        y : object
            Ignored.
        **params : dict
            Ignored.

        Returns
        -------
        ndarray of shape (n, n)
            The matrix without gaps.
        """
        X = self._checked(X, reset=True)
        check_square(X, "X", allow_nan=True)
        self.gaps_ = None
        if not np.isnan(X).any():
            return X
        filled, self.gaps_ = fill_gaps(X)
        return filled

    def transform(self, X: Any) -> NDArray:
        """Complete rows of new items.

        Parameters
        ----------
        X : array-like of shape (n_samples, n)
            Comparisons of new items with the training items.

        Returns
        -------
        ndarray of shape (n_samples, n)
            The rows without gaps.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if not np.isnan(X).any():
            return X
        if self.gaps_ is None:
            raise ValueError(
                "X has missing comparisons (NaN), but the training matrix had none to learn from; "
                "compare these items, or leave them out."
            )
        return self.gaps_.model.fill(X)

    def _checked(self, X: Any, reset: bool) -> NDArray:
        return validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")

    def __sklearn_is_fitted__(self) -> bool:
        return "gaps_" in vars(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.allow_nan = True
        return tags
