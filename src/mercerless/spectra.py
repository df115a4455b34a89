"""Spectra of similarity matrices: eigenvalues, measures of indefiniteness and asymmetry, and transforms.

The transformers here work on precomputed matrices: ``fit`` takes the square matrix of the training items,
``transform`` takes rows of new items against the training items, and a training row given as a new row comes out as
it did in training.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, eigvalsh
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercerless.core.gaps import GapFiller
from mercerless.core.memory import check_memory, row_blocks
from mercerless.core.validation import (
    check_number,
    check_option,
    check_real,
    check_size,
    check_square,
    check_symmetric,
    relative_asymmetry,
    validate_data,
    warn,
)

__all__ = [
    "Asymmetry",
    "DissimilarityKernel",
    "GapFiller",
    "Indefiniteness",
    "MatrixKind",
    "Spectrum",
    "SpectrumTransformer",
    "asymmetry",
    "decompose",
    "indefiniteness",
    "matrix_kind",
    "symmetrize",
]


class Spectrum(NamedTuple):
    """Eigenvalues beyond rounding and their vectors: ``K = vectors @ diag(values) @ vectors.T``, up to dropped ones.

    Attributes
    ----------
    values : ndarray of shape (rank,)
        Eigenvalues, ascending.
    vectors : ndarray of shape (n, rank)
        Orthonormal eigenvectors, a column each.
    n_dropped : int
        Number of eigenvalues that are zero up to rounding.

    Examples
    --------
    >>> from mercerless.spectra import decompose
    >>> spectrum = decompose([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> spectrum.values, spectrum.inertia
    (array([-2.,  2.]), (1, 1, 1))
    """

    values: NDArray[np.float64]
    vectors: NDArray
    n_dropped: int

    @property
    def inertia(self) -> tuple[int, int, int]:
        """The numbers of positive, negative and dropped eigenvalues."""
        return int((self.values > 0).sum()), int((self.values < 0).sum()), self.n_dropped


def decompose(K: ArrayLike, rtol: float = 1e-12) -> Spectrum:
    """Eigendecomposition of a symmetric matrix without the eigenvalues that are zero up to rounding.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix; asymmetry beyond rounding raises an error. Computed in float64.
    rtol : float, default=1e-12
        Eigenvalues with ``|s| <= rtol * max|s|`` are dropped, and never inverted.

    Returns
    -------
    Spectrum
        Eigenvalues (ascending), eigenvectors, and the number dropped.

    Examples
    --------
    >>> from mercerless.spectra import decompose
    >>> decompose([[0.0, 2.0], [2.0, 0.0]]).values
    array([-2.,  2.])
    """
    K = check_symmetric(K)
    # the matrix's copy, the vectors, and LAPACK's work space of two more
    check_memory(32.0 * len(K) ** 2, f"The eigendecomposition of {len(K)} items")
    # Divide and conquer is the fastest driver for all eigenvectors.
    values, vectors = eigh(K.astype(np.float64), driver="evd", overwrite_a=True, check_finite=False)
    keep = np.abs(values) > rtol * np.abs(values).max(initial=0.0)
    return Spectrum(values[keep], vectors[:, keep], int((~keep).sum()))


class Indefiniteness(NamedTuple):
    """How far a symmetric matrix is from positive semi-definite.

    Attributes
    ----------
    negative_mass : float
        ``sum|negative eigenvalues| / sum|all eigenvalues|``: 0 for positive semi-definite, 1 for negative.
    balance : float
        ``min(negative_mass, 1 - negative_mass)``: near 0 also for a matrix that only has the wrong sign.
    n_positive, n_negative, n_zero : int
        The inertia; eigenvalues within rounding error count as zero (see ``noise``).
    smallest, largest : float
        The extreme eigenvalues.
    noise : float
        The size of an eigenvalue that rounding of the entries alone can cause.
    is_psd : bool
        Whether no eigenvalue is negative beyond the noise.

    Examples
    --------
    >>> from mercerless.spectra import indefiniteness
    >>> found = indefiniteness([[1.0, 2.0], [2.0, 1.0]])
    >>> found.n_positive, found.n_negative, round(found.smallest, 6)
    (1, 1, -1.0)
    """

    negative_mass: float
    balance: float
    n_positive: int
    n_negative: int
    n_zero: int
    smallest: float
    largest: float
    noise: float
    is_psd: bool


def indefiniteness(K: ArrayLike, eigenvalues: ArrayLike | None = None) -> Indefiniteness:
    """Measure how indefinite a matrix is, in numbers that do not mistake rounding for a negative spectrum.

    Parameters
    ----------
    K : array-like of shape (n, n) or (n,)
        The symmetric matrix, or its eigenvalues. The rounding of the entries, or of the distances that they were made
        from, is detected from the matrix (float32, or a text file with a few decimals), and eigenvalues that this
        rounding can cause count as zero.
    eigenvalues : array-like of shape (n,) or None, default=None
        The eigenvalues of the matrix if they are already known; saves computing them.

    Returns
    -------
    Indefiniteness
        The measures.

    Examples
    --------
    >>> from mercerless.spectra import indefiniteness
    >>> report = indefiniteness([[1.0, 2.0], [2.0, 1.0]])
    >>> report.negative_mass, report.is_psd
    (0.25, False)
    """
    values: Any
    if np.ndim(K) == 1:
        values = check_real(np.asarray(K)[None, :], "eigenvalues")[0].astype(np.float64)
        rounding = 0.0
        epsilon = np.finfo(np.float64).eps
    else:
        K = check_symmetric(K)
        check_memory(24.0 * len(K) ** 2, f"The eigenvalues of {len(K)} items")
        values = (
            eigvalsh(K.astype(np.float64), check_finite=False)
            if eigenvalues is None
            else np.asarray(eigenvalues)
        )
        rounding = _rounding_noise(K)
        epsilon = np.finfo(K.dtype).eps
    n = len(values)
    scale = np.abs(values).max()
    noise = float(max(n * epsilon * scale, rounding))
    mass = np.abs(values).sum()
    negative = float(np.abs(values[values < -noise]).sum() / mass) if mass > 0 else 0.0
    return Indefiniteness(
        negative_mass=negative,
        balance=min(negative, 1 - negative),
        n_positive=int((values > noise).sum()),
        n_negative=int((values < -noise).sum()),
        n_zero=int((np.abs(values) <= noise).sum()),
        smallest=float(values.min()),
        largest=float(values.max()),
        noise=noise,
        is_psd=bool(values.min() >= -noise),
    )


def _rounding_noise(K: NDArray) -> float:
    """Size of the eigenvalues that the rounding of entries to some decimals causes; 0 if they are not rounded.

    The decimals are those of the entries or, for similarities made from distances or dissimilarities, of the latter:
    ``k(x, x) + k(z, z) - 2 k(x, z)`` is the squared distance, or the dissimilarity, whether K was centered or not.

    Independent rounding errors of standard deviation s make a random symmetric matrix with a norm close to
    ``2 sqrt(n) s``, or twice the largest norm of a row of deviations that differ; doubled to be on the safe side.
    Rounding to a unit has the deviation ``unit / sqrt(12)``, which ``-d^2 / 2`` multiplies by d, and ``-d / 2`` by 1/2.
    """
    n = len(K)
    some = slice(None, None, max(1, n // 100))
    sample = K[some, some].astype(np.float64)
    diagonal = np.diagonal(sample)
    is_pair = ~np.eye(len(sample), dtype=bool)
    differences = (diagonal[:, None] + diagonal - 2.0 * sample)[is_pair]
    error = 4 * np.finfo(K.dtype).eps * float(np.abs(sample).max(initial=0.0))
    # distances first: squares of rounded numbers have decimals as well, twice as many, and so may their means
    distances = np.sqrt(np.maximum(differences, error))
    unit = _rounding_unit(distances, error / (2.0 * distances) if error > 0.0 else 0.0)
    if unit > 0.0:
        trace = float(np.trace(K, dtype=np.float64))
        squares = n * np.diagonal(K) + trace - 2.0 * K.sum(axis=1, dtype=np.float64)
        return float(4 * np.sqrt(squares.max()) * unit / np.sqrt(12))
    unit = max(_rounding_unit(differences, error) / 2.0, _rounding_unit(sample.ravel(), 0.0))
    return float(4 * np.sqrt(n / 12) * unit)


def _rounding_unit(values: NDArray, error: ArrayLike) -> float:
    """10^-d when all values have d >= 3 decimals and no more, else 0: coarser values are meant, not rounded.

    `error` bounds how far the values are from the rounded ones; those that are too far to show decimals do not count.
    """
    errors = np.broadcast_to(error, values.shape)
    for decimals in range(3, 13):
        if _have_decimals(values, errors, decimals):
            return 0.0 if _have_decimals(values, errors, 2) else 10.0**-decimals
    return 0.0


def _have_decimals(values: NDArray, errors: NDArray, decimals: int) -> bool:
    """Whether the values, known up to these errors, have at most this number of decimals."""
    scaled = values * 10.0**decimals
    allowed = 1e-6 * np.maximum(1.0, np.abs(scaled) * 1e-8) + errors * 10.0**decimals
    shows = allowed < 0.02
    gaps = np.abs(scaled - np.round(scaled))
    return bool(2 * shows.sum() > len(values) and np.all(gaps[shows] <= allowed[shows]))


class Asymmetry(NamedTuple):
    """How far a square matrix is from symmetric.

    Attributes
    ----------
    largest : float
        ``max|K - K^T| / max|K|``.
    norm : float
        ``|K - K^T| / (2 |K|)`` in the Frobenius norm: 0 for symmetric, 1 for skew-symmetric.
    share : float
        The fraction of pairs whose two directions differ.

    Examples
    --------
    >>> from mercerless.spectra import asymmetry
    >>> found = asymmetry([[1.0, 0.5], [0.0, 1.0]])
    >>> found.largest, found.share
    (0.5, 1.0)
    """

    largest: float
    norm: float
    share: float


def asymmetry(K: ArrayLike) -> Asymmetry:
    """Measure how asymmetric a matrix is.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix.

    Returns
    -------
    Asymmetry
        The measures; all 0 for a symmetric matrix.

    Examples
    --------
    >>> from mercerless.spectra import asymmetry
    >>> asymmetry([[0.0, 1.0], [-1.0, 0.0]]).norm
    1.0
    """
    K = check_square(K)
    size = np.linalg.norm(K)
    gap = K - K.T
    off = len(K) * (len(K) - 1)
    return Asymmetry(
        largest=relative_asymmetry(K),
        norm=float(np.linalg.norm(gap) / (2 * size)) if size > 0 else 0.0,
        share=float(np.count_nonzero(gap) / off) if off else 0.0,
    )


KINDS = ("similarity", "distance", "dissimilarity")


class MatrixKind(NamedTuple):
    """Kind of the entries of a square matrix.

    Attributes
    ----------
    kind : {"similarity", "distance", "dissimilarity"} or None
        Similarities are large for like items; distances are small, not negative, and zero on the diagonal; a
        dissimilarity is small for like items and may be negative or differ from zero on the diagonal (soft-DTW).
        None if the matrix contradicts itself.
    reason : str
        The reason, in words.
    certain : bool
        Whether the evidence is clear; otherwise it is the usual reading of such a matrix.

    Examples
    --------
    >>> from mercerless.spectra import matrix_kind
    >>> found = matrix_kind([[0.0, 2.0, 3.0], [2.0, 0.0, 1.5], [3.0, 1.5, 0.0]])
    >>> found.kind, found.reason
    ('distance', 'nothing is negative and the diagonal is zero')
    """

    kind: str | None
    reason: str
    certain: bool


def matrix_kind(K: ArrayLike) -> MatrixKind:
    """Distinguish similarities, distances and dissimilarities, without labels.

    There are two tests. First the diagonal: is an item more like itself than like others, ``k(x, x) + k(z, z)`` above
    or below ``k(x, z) + k(z, x)``? Second the rows: like items have like rows, so with similarities the rows of two
    items agree where their entry is large, with distances where it is small.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix, symmetric or not.

    Returns
    -------
    MatrixKind
        The kind, the reason, and whether it is certain.

    Notes
    -----
    The agreement of rows is the correlation r of the off-diagonal entries M, free of row and column effects, with those
    of ``M @ M``. For independent entries ``n r`` has a standard deviation of about 2.5 for every n; 10 counts as
    clear. At most 500 items, always the same, are used for this.

    ===================  ===================  ==============================================================
    diagonal             rows agree where     kind
    ===================  ===================  ==============================================================
    large                not entries small    similarity
    large                entries are small    None (if the diagonal is the largest throughout, only for r < -0.3)
    small                not entries large    distance if it is zero and nothing is negative, else dissimilarity
    small and constant   entries are large    similarity without its diagonal (None if 5 < n r <= 10)
    small, varied        entries are large    None
    both, mixed          not entries small    similarity
    both, mixed          entries are small    similarity if directed (see below), else None or dissimilarity
    ===================  ===================  ==============================================================

    The diagonal is weak evidence for directed similarities such as ``x^T W z``: if the two directions differ much and
    the diagonal has entries of both signs that are not small, similarity is the usual reading.

    A matrix with a constant diagonal and many zeros (half of all; a tenth if the rows are no evidence for distances)
    that are mostly between items with different rows is an adjacency matrix: a distance of zero would mean the same
    item.

    Examples
    --------
    >>> from mercerless.spectra import matrix_kind
    >>> matrix_kind([[0.0, 2.0, 3.0], [2.0, 1e-9, 1.5], [3.0, 1.5, 0.0]]).kind
    'distance'
    >>> matrix_kind([[1.0, 0.5], [0.5, 1.0]]).kind
    'similarity'
    """
    K = check_square(K)
    n = len(K)
    items = np.arange(n)
    if n > 500:
        items = np.sort(np.random.default_rng(0).choice(n, 500, replace=False))
    sample = K[np.ix_(items, items)].astype(np.float64)
    # whether a tenth of the diagonal is below zero, a tenth above it, and both are not small
    low, high = np.quantile(np.diagonal(sample), [0.1, 0.9])
    has_both_signs = min(-low, high) > 0.1 * np.abs(sample).mean()
    directed = has_both_signs and asymmetry(sample).norm > 0.2
    size = float(np.abs(sample).max()) or 1.0
    sample = (sample + sample.T) / (2 * size)
    diagonal = np.diagonal(sample)
    tol = float(np.sqrt(np.finfo(K.dtype).eps))
    gap = (diagonal[:, None] + diagonal) / 2 - sample
    above = int((gap > tol).sum())
    below = int((gap < -tol).sum())
    if above + below == 0:
        return MatrixKind(
            "similarity", "all entries are equal, as a matrix of similarities may have it", False
        )
    share = above / (above + below)
    rows = _row_agreement(sample)
    if directed and 0.1 < share < 0.9:
        return MatrixKind(
            "similarity", "the directions differ and the diagonal has both signs", rows > 10
        )
    if share > 0.5 and rows < -10 and (share < 0.9 or rows < -0.3 * len(sample)):
        return MatrixKind(
            None, "rows are alike where entries are small, but the diagonal is not small", False
        )
    if share >= 0.9:
        return MatrixKind("similarity", "items are more like themselves than like others", True)
    if share > 0.1 and rows >= -10:
        return MatrixKind("similarity", "the diagonal is not the smallest", rows > 10)
    empty = np.ptp(np.diagonal(K)) <= tol * size
    if empty and _is_sparse_graph(K, items, least=0.1 if rows > -10 else 0.5):
        return MatrixKind(
            "similarity", "many entries are zero, also between items with different rows", True
        )
    if rows > 10 and empty:
        return MatrixKind(
            "similarity", "rows are alike where entries are large; only the diagonal is empty", True
        )
    if rows > 5:
        return MatrixKind(
            None, "rows are alike where entries are large, but the diagonal is small", False
        )
    if _are_distances(K):
        return MatrixKind("distance", "nothing is negative and the diagonal is zero", rows < -10)
    if n < 4:
        return MatrixKind("similarity", "there are too few items for another test", False)
    what = "some entries are negative" if K.min() < 0 else "the diagonal is not zero"
    return MatrixKind(
        "dissimilarity", f"the diagonal is the smallest of its row, but {what}", rows < -10
    )


def _row_agreement(K: NDArray) -> float:
    """n times the correlation of centered off-diagonal entries with the agreement of their rows; 0 if all are equal."""
    n = len(K)
    if n < 4:
        return 0.0
    M = K.copy()
    np.fill_diagonal(M, 0.0)
    size = np.linalg.norm(M)
    means = M.sum(axis=1) / (n - 2)  # the additive fit to the off-diagonal entries
    M -= means
    M -= (means - means.sum() / (n - 1))[:, None]
    np.fill_diagonal(M, 0.0)
    left = np.linalg.norm(M)
    if left <= 1e-8 * size:
        return 0.0
    M /= left
    products = M @ M
    np.fill_diagonal(products, 0.0)
    norm = np.linalg.norm(products)
    return float(n * np.vdot(M, products) / norm) if norm > 0 else 0.0


def _is_sparse_graph(K: NDArray, items: NDArray, least: float) -> bool:
    """Whether at least this share of the entries is zero, and most of them between items with different rows."""
    n = len(K)
    if np.count_nonzero(K) >= (1.0 - least) * n * (n - 1):
        return False
    others = np.roll(items, len(items) // 2)
    is_empty = (K[items, others] == 0) & (K[others, items] == 0)
    is_other = np.any(K[items] != K[others], axis=1)
    return bool(2 * np.sum(is_empty & is_other) > np.sum(is_empty))


def _close_to_zero(K: NDArray) -> float:
    """A thousandth of the mean entry: the most that counts as zero on a diagonal, or as rounding below zero."""
    return 1e-3 * abs(float(K.mean()))


def _are_distances(K: NDArray) -> bool:
    """Whether nothing is negative and the diagonal is zero, both up to a thousandth of the mean."""
    close = _close_to_zero(K)
    return bool(K.min() >= -close and np.abs(np.diagonal(K)).max() <= close)


def check_kind(K: NDArray, kind: str = "auto", name: str = "X") -> str:
    """The kind of a matrix, given or detected by `matrix_kind`; raises if it cannot be detected or is contradicted."""
    check_option("kind", kind, ("auto", *KINDS))
    check_size(K, name)
    if kind == "auto":
        guess = matrix_kind(K)
        if guess.kind is None:
            raise ValueError(
                f"{name} may hold similarities or dissimilarities: {guess.reason}; say which with "
                f"kind='similarity', 'distance' or 'dissimilarity'."
            )
        return guess.kind
    if kind == "distance" and not _are_distances(K):
        problem = "the diagonal is not 0"
        if K.min() < -_close_to_zero(K):
            problem = f"the smallest is {K.min():.3g} and must not be negative"
        raise ValueError(
            f"{name} holds distances, but {problem}; correct it, or pass kind='dissimilarity' "
            f"if small values mean similar items, or kind='similarity' if large values do."
        )
    if kind == "similarity" and matrix_kind(K).kind in ("distance", "dissimilarity"):
        warn(
            f"{name} looks like distances, but kind='similarity' says that large values mean similar "
            "items; leave out kind, or say kind='distance'."
        )
    return kind


def check_kind_of_kernel(kernel: Any, kind: str) -> None:
    """Raise if `kind` contradicts a kernel that can only compute similarities."""
    if kernel.is_similarity and kind in ("distance", "dissimilarity"):
        raise ValueError(
            f"kind={kind!r} contradicts the kernel {type(kernel).__name__}, which computes "
            "similarities "
            "from features; pass kernel='precomputed' if X is a matrix, or leave out kind."
        )


def as_similarities(values: NDArray, kind: str) -> NDArray:
    """float64 similarities: a distance d becomes ``-d^2 / 2`` (rounding below 0 cut off), a dissimilarity ``-d``."""
    values = np.asarray(values, dtype=np.float64)
    if kind == "distance":
        return -0.5 * np.maximum(values, 0.0) ** 2
    return -values if kind == "dissimilarity" else values


def implied_distances(K: NDArray) -> NDArray:
    """The distances that similarities imply: roots of ``k(x, x) + k(z, z) - 2 k(x, z)``, cut at 0."""
    diagonal = np.diagonal(K)
    distances = np.empty(K.shape, dtype=np.result_type(K, np.float32))
    # blocks small enough for the processor's cache
    for rows in row_blocks(len(K), 2 * K.itemsize * len(K), 2**19):
        squares = diagonal[rows, None] + diagonal - 2.0 * K[rows]
        np.sqrt(np.maximum(squares, 0.0), out=distances[rows])
    return distances


def symmetrize(K: ArrayLike, reverse: ArrayLike | None = None, how: str = "mean") -> NDArray:
    """Make a directed similarity symmetric, the same way for training and for new items.

    Parameters
    ----------
    K : array-like of shape (n, m)
        Similarities from the row's item to the column's; square if ``reverse`` is None.
    reverse : array-like of shape (m, n) or None, default=None
        Similarities in the other direction: for new items, ``K`` is new to training and ``reverse`` training to new.
    how : {"mean", "min", "max"}, default="mean"
        How the two directions are combined.

    Returns
    -------
    ndarray of shape (n, m)
        The symmetric similarities.

    Examples
    --------
    >>> from mercerless.spectra import symmetrize
    >>> symmetrize([[1.0, 0.0], [0.5, 1.0]])
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """
    check_option("how", how, ("mean", "min", "max"))
    if reverse is None:
        K = check_square(K)
        other = K.T
    else:
        K = check_real(K, "K")
        other = check_real(reverse, "reverse").T
    if other.shape != K.shape:
        raise ValueError(
            f"reverse has shape {other.shape[::-1]} but K.T has shape {K.shape[::-1]}; they must "
            "agree."
        )
    if how == "mean":
        return (K + other) / 2
    return np.minimum(K, other) if how == "min" else np.maximum(K, other)


class _PairwiseTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers of precomputed matrices: input and output, tags and checks."""

    @abstractmethod
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the transformation from the matrix of the training items.

        Parameters
        ----------
        X : array-like of shape (n, n)
            The symmetric matrix of similarities, or distances, between the training items.
        y : object, default=None
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """

    @abstractmethod
    def transform(self, X: ArrayLike) -> NDArray:
        """Transform rows of similarities, or distances, to the training items.

        Parameters
        ----------
        X : array-like of shape (n_rows, n)
            Those of any items to the training items.

        Returns
        -------
        ndarray of shape (n_rows, n)
            The transformed similarities.
        """

    def _check_train(self, X) -> NDArray:
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        return check_symmetric(X, "X")

    def _check_test(self, X) -> NDArray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SpectrumTransformer(_PairwiseTransformer):
    """Change the eigenvalues of an indefinite similarity matrix, in most modes to make it positive semi-definite.

    With the training matrix ``K = V diag(s) V^T``, a row k of similarities to the training items becomes
    ``k V diag(t(s) / s) V^T``. On training rows this is ``V diag(t(s)) V^T``, so training and new items are treated
    alike.

    Parameters
    ----------
    mode : {"clip", "flip", "square", "shift", "truncate"}, default="clip"
        ``t(s)``: ``"clip"`` sets negative eigenvalues to 0; ``"flip"`` takes absolute values; ``"square"`` takes
        squares (similarities of similarities); ``"shift"`` adds the size of the most negative eigenvalue, which only
        changes an item's similarity to itself; ``"truncate"`` sets those to 0 that are small in size, of either sign
        (Ong et al., 2004), and leaves the matrix indefinite.
    rtol : float, default=1e-12
        Eigenvalues below this fraction of the largest in size are taken for zero. For ``"truncate"`` it is the
        threshold; there the default removes rounding only.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (rank,)
        The training matrix's eigenvalues, ascending.
    map_ : ndarray of shape (n, n)
        The matrix that a row is multiplied by (None for ``mode="shift"``).
    shift_ : float
        The number added to self-similarities (0 but for ``mode="shift"``).
    rows_ : ndarray of shape (n, n)
        The training rows, by which training items are recognized (None but for ``mode="shift"``).
    n_features_in_ : int
        The number of training items.

    See Also
    --------
    indefiniteness : Whether there is anything to repair.
    mercerless.KreinRidge : Learns with the negative eigenvalues instead.

    Notes
    -----
    Ong's machine is least squares with the truncated matrix and no penalty:
    ``KreinRidge("precomputed", alpha_positive=0, alpha_negative=0, fit_intercept=False)`` on the result.

    ``"shift"`` depends on whether a new row is a training item. An item is recognized by its similarities: a row equal
    to training row i is that item, and equal training rows are one item, over which the shift is spread evenly. The
    result is positive semi-definite all the same, because differences of equal rows lie in the kernel's null space.
    Rows are equal if no entries differ by more than 1e-12 of the largest entry of the training matrix (1e-6 if either
    is in float32).

    References
    ----------
    C. S. Ong, X. Mary, S. Canu and A. J. Smola, "Learning with non-positive kernels", ICML 2004.

    Examples
    --------
    >>> from mercerless.spectra import SpectrumTransformer
    >>> SpectrumTransformer("flip").fit_transform([[0.0, 2.0], [2.0, 0.0]]).round(12)
    array([[2., 0.],
           [0., 2.]])
    """

    def __init__(self, mode: str = "clip", rtol: float = 1e-12):
        self.mode = mode
        self.rtol = rtol

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        check_option("mode", self.mode, ("clip", "flip", "square", "shift", "truncate"))
        check_number("rtol", self.rtol, zero=True)
        K = self._check_train(X)
        s, V, _ = decompose(K, self.rtol)
        self.eigenvalues_ = s
        self.shift_ = 0.0
        self.map_ = None
        self.rows_ = None
        if self.mode == "shift":
            self.shift_ = float(max(0.0, -s.min(initial=0.0)))
            self.rows_ = np.array(X, dtype=K.dtype)
        else:
            repairs = {"clip": np.maximum(s, 0.0), "flip": np.abs(s), "square": s**2, "truncate": s}
            self.map_ = ((V * (repairs[self.mode] / s)) @ V.T).astype(K.dtype, copy=False)
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        K = self._check_test(X)
        if self.map_ is not None:
            return K @ self.map_
        shifted = K.copy()
        if self.rows_ is not None and self.shift_ > 0.0:
            for row, equal in zip(shifted, _equal_rows(self.rows_, K)):
                row[equal] += self.shift_ / max(1, len(equal))
        return shifted


def _equal_rows(matrix: NDArray, rows: NDArray) -> Iterator[NDArray]:
    """For each row the numbers of the rows of the matrix that are equal up to the rounding of sums.

    Candidates are rows with a close random projection; rounding of the projection is far below that of the entries.
    """
    relative = 1e-6 if np.float32 in (matrix.dtype, rows.dtype) else 1e-12
    tolerance = relative * np.abs(matrix).max()
    direction: NDArray = np.random.RandomState(0).uniform(0.5, 1.5, (matrix.shape[1],))
    projections = matrix.astype(np.float64, copy=False) @ direction
    reach = 1.01 * tolerance * direction.sum()
    for row in rows.astype(np.float64, copy=False):
        candidates = np.flatnonzero(np.abs(projections - row @ direction) <= reach)
        differences = np.abs(matrix[candidates] - row).max(axis=1)
        yield candidates[differences <= tolerance]


class DissimilarityKernel(_PairwiseTransformer):
    """Turn distances to the training items into similarities, the same way for training and for new items.

    Parameters
    ----------
    method : {"centering", "exponential"}, default="centering"
        ``"centering"``: ``-d^2 / 2`` with the training means of rows, columns and all taken off (classical scaling;
        Euclidean distances become inner products, others an indefinite kernel). ``"exponential"``:
        ``exp(-gamma * d^power)``.
    gamma : float or None, default=None
        The rate of the exponential; None is 1 / the median of ``d^power`` between different training items.
    power : float, default=2.0
        The power of the distance: 2 for both the centering and a Gaussian of the distance, 1 for ``exp(-gamma d)``.
        ``"centering"`` with the power 1 is for dissimilarities, which may be negative.

    Attributes
    ----------
    column_means_ : ndarray of shape (n,)
        Training means of ``d^power``, for ``method="centering"``.
    gamma_ : float
        The rate used, for ``method="exponential"``.
    n_features_in_ : int
        The number of training items.

    See Also
    --------
    SpectrumTransformer : Makes the result positive semi-definite for learners that need it.

    Examples
    --------
    >>> from mercerless.spectra import DissimilarityKernel
    >>> DissimilarityKernel().fit_transform([[0.0, 2.0], [2.0, 0.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    def __init__(self, method: str = "centering", gamma: float | None = None, power: float = 2.0):
        self.method = method
        self.gamma = gamma
        self.power = power

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        check_option("method", self.method, ("centering", "exponential"))
        check_number("power", self.power)
        check_number("gamma", self.gamma, none=True)
        powers = self._powers(self._check_train(X))
        self.column_means_ = powers.mean(axis=0)
        pairs = powers[~np.eye(len(powers), dtype=bool)]
        median = np.median(pairs) if len(pairs) else 0.0
        default = 1 / median if median > 0 else 1.0
        self.gamma_ = float(default if self.gamma is None else self.gamma)
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        powers = self._powers(self._check_test(X))
        if self.method == "exponential":
            return np.exp(-self.gamma_ * powers)
        centered = powers - powers.mean(axis=1, keepdims=True)
        centered -= self.column_means_ - self.column_means_.mean()
        centered *= -0.5
        return centered

    def _powers(self, D: NDArray) -> NDArray:
        if self.power == 1 and self.method == "centering":
            return D  # any sign will do
        if D.min() < -_close_to_zero(D):
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: distances cannot be "
                "below 0 "
                f"(smallest is {D.min():.3g}); pass distances, or use the similarities as they are."
            )
        D = np.maximum(D, 0.0)
        return D * D if self.power == 2 else D**self.power

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not (self.power == 1 and self.method == "centering")
        return tags
