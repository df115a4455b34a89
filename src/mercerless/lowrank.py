"""Low-rank approximations of kernel matrices, block by block: pivoted Cholesky, indefinite Nystroem, landmarks."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, eigh, qr, solve_triangular
from sklearn.base import BaseEstimator
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

from mercerless.core.blocks import is_dask, map_rows, take_rows
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.validation import (
    as_items,
    check_number,
    check_option,
    check_random_state,
    check_real,
)
from mercerless.kernels import Kernel, Precomputed
from mercerless.kernels.items import takes_objects

__all__ = [
    "LandmarkMap",
    "Landmarks",
    "LowRank",
    "PivotedCholesky",
    "nystroem",
    "pivoted_cholesky",
    "select_landmarks",
]


class PivotedCholesky(NamedTuple):
    """A factor with ``K ~ factor @ factor.T``, exact on the rows and columns of the pivots.

    Attributes
    ----------
    factor : ndarray of shape (n, rank)
        The factor; ``K - factor @ factor.T`` is positive semi-definite.
    pivots : ndarray of shape (rank,)
        The rows chosen, in order.
    residual : float
        The relative certificate: ``trace(K - factor @ factor.T) / trace(K)``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Gaussian
    >>> from mercerless.lowrank import pivoted_cholesky
    >>> found = pivoted_cholesky(Gaussian(0.5), np.linspace(0, 1, 50)[:, None], 4, random_state=0)
    >>> found.factor.shape, len(found.pivots), found.residual < 0.1
    ((50, 4), 4, True)
    """

    factor: NDArray
    pivots: NDArray
    residual: float


class LandmarkMap(NamedTuple):
    """Features of rows: their similarities to landmarks times weights.

    Holds the landmarks and nothing else of the training rows, so that it travels well to the workers of a cluster.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    landmarks : array-like of length m
        The landmarks; for a precomputed kernel their column numbers among the training items.
    weights : ndarray of shape (m, n_columns)
        From similarities to features; times coefficients, from similarities to predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Gaussian
    >>> from mercerless.lowrank import LandmarkMap
    >>> features = LandmarkMap(Gaussian(1.0), np.array([[0.0], [1.0]]), np.eye(2))
    >>> features(np.array([[0.0]])).round(3)
    array([[1.   , 0.607]])
    """

    kernel: Kernel
    landmarks: Any
    weights: NDArray

    @property
    def bytes_per_row(self) -> float:
        """Bytes that the features of one row need: the similarities, their copy and the features."""
        return 16.0 * sum(self.weights.shape)

    def __call__(self, rows: Any) -> NDArray:
        """The features of one block of rows, at once."""
        if isinstance(self.kernel, Precomputed):
            return np.asarray(rows[:, self.landmarks]) @ self.weights
        return self.kernel(rows, self.landmarks) @ self.weights

    def transform(self, X: Any) -> Any:
        """The features of all rows, block by block within the memory limit.

        Parameters
        ----------
        X : array-like, memory map or dask.array.Array of shape (n, n_features), or sequence of n items
            The rows; for a precomputed kernel their similarities to all training items.

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_columns)
            The features; lazy for a Dask array.
        """
        n_columns = self.weights.shape[1]
        budget = min(2**27, memory_budget())
        if is_dask(X):
            return map_rows(
                self.__call__, X, self.bytes_per_row, n_columns=n_columns, budget=budget
            )
        X = _indexable(self.kernel, X)
        features = np.empty((len(X), n_columns))
        for rows in row_blocks(len(X), self.bytes_per_row, budget):
            features[rows] = self(X[rows])
        return features


class LowRank(NamedTuple):
    """An indefinite low-rank kernel: ``k(x, y) ~ (c(x) @ transform) @ diag(values) @ (c(y) @ transform).T``.

    Here ``c(x) = kernel(x, landmarks)``.

    Attributes
    ----------
    landmarks : ndarray of shape (m,)
        The rows of X that serve as landmarks.
    transform : ndarray of shape (m, rank)
        From similarities to the landmarks to features.
    values : ndarray of shape (rank,)
        The features' weights, of both signs, largest in size first.
    error : float
        The relative Frobenius error on rows that were not used for the fit (on all rows when none are left).

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Gaussian
    >>> from mercerless.lowrank import nystroem
    >>> X, kernel = np.linspace(0, 1, 50)[:, None], Gaussian(0.5) - Gaussian(0.3)
    >>> found = nystroem(kernel, X, np.arange(0, 50, 4), random_state=0)
    >>> sorted(set(found.signs.tolist()))
    [-1.0, 1.0]
    """

    landmarks: NDArray
    transform: NDArray
    values: NDArray
    error: float

    @property
    def signs(self) -> NDArray:
        """The sign of each feature in the approximate kernel; all are 1 for a positive semi-definite kernel."""
        return np.sign(self.values)

    def feature_map(self, kernel: Kernel, X: Any) -> LandmarkMap:
        """The features Z whose signed inner products are the approximate kernel: ``k(X, X) ~ (Z * signs) @ Z.T``.

        Parameters
        ----------
        kernel : Kernel
            The kernel that was approximated.
        X : array-like, memory map, dask.array.Array or sequence
            The rows that were given to `nystroem`.

        Returns
        -------
        LandmarkMap
            From rows to features.
        """
        landmarks = self.landmarks
        if not isinstance(kernel, Precomputed):
            landmarks = take_rows(_indexable(kernel, X), landmarks)
        return LandmarkMap(kernel, landmarks, self.transform * np.sqrt(np.abs(self.values)))


#: How landmarks can be chosen.
METHODS = ("uniform", "kmeans", "pivoted")


class Landmarks(BaseEstimator):
    """How many landmarks to use, and how to choose them: for the `landmarks` of an estimator.

    Parameters
    ----------
    number : int, default=1000
        How many; all rows if there are fewer.
    method : {"uniform", "kmeans", "pivoted"}, default="uniform"
        How they are chosen, see `select_landmarks`.

    See Also
    --------
    select_landmarks : Chooses them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge
    >>> from mercerless.lowrank import Landmarks
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge(landmarks=Landmarks(20, "kmeans"), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> len(model.landmarks_)
    20
    """

    def __init__(self, number: int = 1000, method: str = "uniform"):
        self.number = number
        self.method = method


def as_landmarks(n_landmarks: Any) -> Landmarks:
    """A number or `Landmarks`, checked, as `Landmarks`."""
    landmarks = n_landmarks if isinstance(n_landmarks, Landmarks) else Landmarks(n_landmarks)
    check_number("landmarks", landmarks.number, whole=True)
    check_option("method", landmarks.method, METHODS)
    return landmarks


def select_landmarks(
    kernel: Kernel,
    X: Any,
    n_landmarks: int,
    method: str = "uniform",
    random_state: int | np.random.RandomState | None = None,
) -> NDArray:
    """Choose distinct rows to stand for all.

    Parameters
    ----------
    kernel : Kernel
        The kernel; only ``"pivoted"`` evaluates it.
    X : array-like of shape (n, n_features) or (n, n)
        The rows, or the matrix for a precomputed kernel.
    n_landmarks : int
        How many.
    method : {"uniform", "kmeans", "pivoted"}, default="uniform"
        At random; the rows nearest to k-means centers of vectors; or the pivots of `pivoted_cholesky` (positive
        semi-definite kernels), topped up at random when the kernel has a smaller rank.
    random_state : int, RandomState or None, default=None
        The seed.

    Returns
    -------
    ndarray of shape (n_landmarks,)
        Distinct row numbers. With the same seed, fewer uniform landmarks are the first of more.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Gaussian
    >>> from mercerless.lowrank import select_landmarks
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> len(select_landmarks(Gaussian(0.2), X, 5, random_state=0))
    5
    """
    X = _indexable(kernel, X)
    n = len(X)
    check_option("method", method, METHODS)
    if not 1 <= n_landmarks <= n:
        raise ValueError(
            f"n_landmarks={n_landmarks} must lie between 1 and the number of rows, {n}."
        )
    random = check_random_state(random_state)
    order = random.permutation(n)
    if method == "uniform":
        return order[:n_landmarks].copy()  # a view would keep a number per row alive
    if method == "pivoted":
        chosen = pivoted_cholesky(kernel, X, n_landmarks, random_state=random).pivots
    else:
        if X.dtype.kind == "O" or isinstance(kernel, Precomputed):
            raise ValueError(
                "k-means landmarks need vectors, not objects or a precomputed matrix; use "
                "'uniform', or 'pivoted' for a matrix."
            )
        vectors = np.asarray(X, dtype=float)
        batch_size = max(1024, 4 * n_landmarks)
        means = MiniBatchKMeans(n_landmarks, random_state=random, n_init=1, batch_size=batch_size)
        centers = means.fit(vectors).cluster_centers_
        chosen = np.unique(pairwise_distances_argmin(centers, vectors))
    rest = order[~np.isin(order, chosen)]
    return np.concatenate([chosen, rest[: n_landmarks - len(chosen)]])


def pivoted_cholesky(
    kernel: Kernel,
    X: Any,
    rank: int,
    *,
    rtol: float = 1e-10,
    random_state: int | np.random.RandomState | None = None,
) -> PivotedCholesky:
    """Randomly pivoted partial Cholesky factorization of a positive semi-definite kernel matrix.

    ``K ~ F F^T`` from ``n (rank + 1)`` kernel evaluations: pivots are drawn in proportion to the diagonal of the
    remainder, in blocks with rejection, which gives the distribution of one-by-one draws at the speed of matrix
    products.

    Parameters
    ----------
    kernel : Kernel
        A positive semi-definite kernel, or ``Precomputed()``.
    X : array-like of shape (n, n_features) or (n, n)
        The rows, or the matrix for a precomputed kernel.
    rank : int
        The largest number of pivots.
    rtol : float, default=1e-10
        Stop when the trace of the remainder is below this fraction of the trace of K.
    random_state : int, RandomState or None, default=None
        The seed.

    Returns
    -------
    PivotedCholesky
        Factor, pivots, and the relative trace of the remainder.

    Notes
    -----
    Cost ``O(n rank^2)``, and ``8 n rank`` bytes for the factor. A diagonal entry that becomes clearly negative shows
    that the kernel is not positive semi-definite; this is an error that names `nystroem`. Reference: Chen, Epperly,
    Tropp and Webber (2025), Randomly pivoted Cholesky; Epperly, Tropp and Webber (2024) for the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Gaussian
    >>> from mercerless.lowrank import pivoted_cholesky
    >>> X, kernel = np.linspace(0, 1, 50)[:, None], Gaussian(0.5)
    >>> F = pivoted_cholesky(kernel, X, 10, random_state=0).factor
    >>> bool(np.abs(F @ F.T - kernel(X, X)).max() < 1e-6)
    True
    """
    X = _indexable(kernel, X)
    n = len(X)
    rank = min(int(rank), n)
    if rank < 1:
        raise ValueError(f"rank={rank} must be at least 1.")
    check_memory(8.0 * n * (rank + min(rank, 64)), f"A factor of {n} rows and {rank} columns")
    random = check_random_state(random_state)
    left = np.asarray(kernel.diag(X), dtype=np.float64).copy()
    total = left.sum()
    floor = 1e-8 * np.abs(left).max(initial=0.0)
    factor = np.empty((n, rank))
    pivots = np.empty(0, dtype=int)
    while True:
        if left.min(initial=0.0) < -floor:
            raise ValueError(
                "The kernel is not positive semi-definite (a diagonal entry became "
                f"{left.min():.3g}); use mercerless.lowrank.nystroem, which takes indefinite "
                "kernels."
            )
        np.maximum(left, 0.0, out=left)
        if len(pivots) == rank or left.sum() <= rtol * total:
            break
        r = len(pivots)
        proposed = np.unique(random.choice(n, size=min(64, rank - r), p=left / left.sum()))
        random.shuffle(proposed)
        block = (
            _entries(kernel, X, proposed, proposed) - factor[proposed, :r] @ factor[proposed, :r].T
        )
        accepted = proposed[_reject(block, left[proposed], random)]
        columns = (
            _entries(kernel, X, slice(None), accepted) - factor[:, :r] @ factor[accepted, :r].T
        )
        square = _symmetric(columns[accepted])
        square[np.diag_indices_from(square)] += 1e-14 * np.trace(square)  # of the size of rounding
        triangle = cholesky(square, lower=True)
        new = factor[:, r : r + len(accepted)]
        new[...] = solve_triangular(triangle, columns.T, lower=True).T
        left -= np.einsum("ij,ij->i", new, new)
        pivots = np.append(pivots, accepted)
        left[pivots] = 0.0
    return PivotedCholesky(
        factor[:, : len(pivots)], pivots, float(left.sum() / total) if total > 0 else 0.0
    )


def _reject(block: NDArray, proposed_with: NDArray, random: np.random.RandomState) -> NDArray:
    """Which of the proposals one-by-one sampling would keep: each with the share of its diagonal that is left."""
    block = block.copy()
    kept: list[int] = []
    for i in range(len(block)):
        if (
            block[i, i] > 0
            and random.uniform() * proposed_with[i] < block[i, i]
            and (not kept or block[i, i] > 1e-12 * proposed_with.max())
        ):
            kept.append(i)
            column = block[:, i] / np.sqrt(block[i, i])
            block -= np.outer(column, column)
    return np.array(kept or [int(np.argmax(np.diagonal(block)))])


def _symmetric(A: NDArray) -> NDArray:
    return (A + A.T) / 2


def nystroem(
    kernel: Kernel,
    X: Any,
    landmarks: ArrayLike,
    *,
    oversampling: float = 3.0,
    rtol: float = 1e-10,
    random_state: int | np.random.RandomState | None = None,
) -> LowRank:
    """Nystroem approximation of a symmetric kernel matrix that need not be positive semi-definite.

    ``min_M |K_SS - C_S M C_S^T|_F`` with ``C_S = k(X[S], X[landmarks])``, on a sample S of ``oversampling * m`` rows
    that holds the m landmarks; then ``k(x, y) ~ c(x) M c(y)^T``.

    Parameters
    ----------
    kernel : Kernel
        A symmetric kernel, or ``Precomputed()``.
    X : array-like of shape (n, n_features) or (n, n)
        The rows, or the matrix for a precomputed kernel.
    landmarks : array-like of shape (m,)
        Row numbers, as from `select_landmarks`.
    oversampling : float, default=3.0
        Rows in the sample for every landmark; 1 is the classical formula, unsafe for indefinite kernels.
    rtol : float, default=1e-10
        Directions of the landmark columns below this relative size are always dropped.
    random_state : int, RandomState or None, default=None
        The seed of the sample.

    Returns
    -------
    LowRank
        The approximation, with its error on rows that were left out of the sample.

    Notes
    -----
    The classical core ``K_LL^+`` divides by eigenvalues of the landmark block, which for an indefinite kernel may
    fall anywhere near zero: errors can grow without bound as landmarks are added. Least squares on a larger sample has
    no such divisor (a random sample of the two-sided projection ``Q (Q^T K Q) Q^T``), and keeps the core of a positive
    semi-definite kernel positive semi-definite. How many of the landmark columns' directions to keep is decided by the
    error on rows outside the sample, because nearly equal columns (a saturated sigmoid) extrapolate wildly. With all
    rows as landmarks it is exact. Cost ``O((oversampling * m)^2 m)`` and ``16 (oversampling * m)^2`` bytes, independent
    of n.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Gaussian
    >>> from mercerless.lowrank import nystroem
    >>> X, kernel = np.linspace(0, 1, 50)[:, None], Gaussian(0.5) - Gaussian(0.3)
    >>> bool(nystroem(kernel, X, np.arange(0, 50, 4), random_state=0).error < 0.01)
    True
    """
    X = _indexable(kernel, X)
    landmarks = np.asarray(landmarks)
    n = len(X)
    m = len(landmarks)
    if oversampling < 1:
        raise ValueError(f"oversampling={oversampling} must be at least 1.")
    size = min(n, int(np.ceil(oversampling * m)))
    check_memory(
        16.0 * size**2,
        f"A sample of {size} rows for {m} landmarks",
        remedy="use fewer landmarks or less oversampling",
    )
    random = check_random_state(random_state)
    free = np.ones(n, dtype=bool)
    free[landmarks] = False
    others = np.flatnonzero(free)
    random.shuffle(others)  # in place: data may have a billion rows
    sample = np.concatenate([landmarks, others[: size - m]])
    spare = others[size - m :][: min(max(m, 200), 500)]
    spare = spare if len(spare) > 1 else sample
    square = _entries(kernel, X, sample, sample)
    Q, R, order = qr(square[:, :m], mode="economic", pivoting=True, check_finite=False)
    core = Q.T @ square @ Q
    truth = _entries(kernel, X, spare, spare)
    new = _entries(kernel, X, spare, landmarks[order])
    size_of_truth = _norm_of_all(truth, n)
    if size_of_truth == 0:
        return LowRank(landmarks, np.zeros((m, 0)), np.zeros(0), 0.0)

    def error_at(rank: int) -> float:
        kept = slice(rank)
        Z = solve_triangular(R[kept, kept], new[:, kept].T, trans="T", check_finite=False).T
        return _norm_of_all(truth - Z @ core[kept, kept] @ Z.T, n) / size_of_truth

    sizes = np.abs(np.diagonal(R))
    cuts = sizes[0] * np.geomspace(max(rtol, 1e-14), 0.1, 9)
    ranks = sorted({int((sizes > cut).sum()) for cut in cuts}, reverse=True)
    errors = [error_at(rank) for rank in ranks]
    rank = ranks[int(np.argmin(errors))]
    values, vectors = eigh(_symmetric(core[:rank, :rank]), driver="evd", check_finite=False)
    by_size = np.argsort(-np.abs(values), kind="stable")
    transform = np.zeros((m, rank))
    transform[order[:rank]] = solve_triangular(
        R[:rank, :rank], vectors[:, by_size], check_finite=False
    )
    return LowRank(landmarks, transform, values[by_size], float(min(errors)))


def _norm_of_all(block: NDArray, n: int) -> float:
    """The Frobenius norm of an n x n matrix estimated from a principal block: diagonal and rest scaled apart."""
    squares = block * block
    diagonal = np.trace(squares)
    rest = squares.sum() - diagonal
    b = len(block)
    total = diagonal * n / b
    if b > 1:
        total += rest * n * (n - 1) / (b * (b - 1))
    return float(np.sqrt(max(0.0, total)))


def _indexable(kernel: Kernel, X: Any) -> Any:
    """Arrays, Dask arrays and the like as they are; lists, series and frames as rows or items by position."""
    if hasattr(X, "ndim") and not hasattr(X, "iloc"):
        return X
    return as_items(X) if takes_objects(kernel) else check_real(X)


def _entries(kernel: Kernel, X: Any, rows: Any, columns: Any) -> NDArray:
    """A rectangle of the kernel matrix, by row and column numbers; float64."""
    if isinstance(kernel, Precomputed):
        return np.asarray(X[rows][:, columns], dtype=np.float64)
    there = take_rows(X, rows)
    # a square costs a function of items half the calls, and shows whether it is symmetric
    other = there if columns is rows else take_rows(X, columns)
    return kernel(there, other).astype(np.float64, copy=False)
