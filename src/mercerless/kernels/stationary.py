"""Kernels of a distance: Euclidean (l2) or along the axes (l1)."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from mercerless.core.memory import slices
from mercerless.core.validation import check_real
from mercerless.kernels.base import Kernel, Parameter, cached_pieces

#: Rows and columns of no pairs.
NO_PAIRS = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)


class Stationary(Kernel):
    """Kernels of a distance: a subclass gives ``_profile``, in place, and ``_slope``."""

    parameters: tuple[Parameter, ...] = (Parameter("length_scale"),)
    is_similarity = True
    _by_tiles = True

    def __init__(self, length_scale: ArrayLike = 1.0):
        self.length_scale = length_scale

    def diag(self, X: ArrayLike) -> NDArray:
        X = check_real(X)
        self._check_features(X.shape[1])
        return self._profile(np.zeros(len(X), dtype=X.dtype))

    def _profile(self, distance: NDArray) -> NDArray:
        raise NotImplementedError

    def _slope(self, distance: NDArray) -> NDArray:
        raise NotImplementedError


class _Squares(NamedTuple):
    """Scaled rows and columns near the origin, and factors of their squared distances.

    Mostly they are one product ``[u, |u|^2, 1] @ [-2 v, 1, |v|^2]``. Of a square of wide rows BLAS computes one half
    if it is the product ``u @ u``, which is worth more passes over it. Squares up to the `limits` of their rows have
    lost too many digits and are computed again, see `close_pairs`.
    """

    U: NDArray
    V: NDArray
    uu: NDArray
    vv: NDArray
    factors: tuple[NDArray, NDArray] | None
    limits: NDArray

    @classmethod
    def of(cls, X: NDArray, Y: NDArray, scales: NDArray, limits: Callable) -> Self:
        # Distances do not change with the origin; near it the expanded square cancels least.
        origin = middle(Y)
        with np.errstate(over="ignore", invalid="ignore"):
            U = ((X - origin) / scales).astype(X.dtype, copy=False)
            uu = np.einsum("ij,ij->i", U, U)
            V, vv = U, uu
            if Y is not X:
                V = ((Y - origin) / scales).astype(Y.dtype, copy=False)
                vv = np.einsum("ij,ij->i", V, V)
            factors = None
            if X.shape[1] < 128 or Y is not X:
                left = np.concatenate([U, uu[:, None], np.ones_like(uu)[:, None]], axis=1)
                right = np.concatenate([-2 * V, np.ones_like(vv)[:, None], vv[:, None]], axis=1)
                factors = left, right.T
            return cls(U, V, uu, vv, factors, limits_of_squares(limits, uu, X.shape[1]))

    def product(self, rows: slice, columns: slice, out: NDArray) -> NDArray:
        """The squared distances of these rows and columns; rounding may leave small negative numbers.

        An item and itself become infinitely far, because their value is known and need not be computed again.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if self.factors is not None:
                left, right = self.factors
                np.matmul(left[rows], right[:, columns], out=out)
            else:
                np.matmul(self.U[rows], self.V[columns].T, out=out)
                for piece in cached_pieces(out):
                    q = out[piece]
                    q *= -2
                    q += self.uu[rows][piece, None] + self.vv[columns]
        if self.V is self.U:
            first_row, last_row, _ = rows.indices(len(self.U))
            first_column, last_column, _ = columns.indices(len(self.U))
            first, last = max(first_row, first_column), min(last_row, last_column)
            np.fill_diagonal(
                out[first - first_row : last - first_row, first - first_column :], np.inf
            )
        return out


def middle(X: NDArray, *, n_rows: int = 64) -> NDArray:
    """The median of some rows: unlike the mean it stays among the others if one row is far away."""
    sample = X[:: 1 + len(X) // n_rows]
    return np.partition(sample, len(sample) // 2, axis=0)[len(sample) // 2]


def limits_of_squares(
    limits: Callable[[NDArray, float], NDArray], sizes: NDArray, n_features: int
) -> NDArray:
    """Expanded squares of rows of these squared norms are computed again up to these limits.

    ``limits(errors, tolerance)`` gives the true squares up to which such errors change a value by more than the
    tolerance. The product itself may be larger by its own rounding, which grows with the number of its terms.
    """
    errors = 2 * np.finfo(sizes.dtype).eps * sizes
    tolerance = 5e-7 if sizes.dtype == np.float32 else 5e-13
    return limits(errors, tolerance) + (8 + n_features) * errors


def gaussian_limits(errors: NDArray, tolerance: float) -> NDArray:
    """Squares q up to which their errors change ``exp(-q / 2)`` by more than the tolerance; -inf for none."""
    limits = 2 * np.log(np.maximum(0.5 * errors / tolerance, 1))
    limits[limits == 0] = -np.inf
    return limits


def close_pairs(q: NDArray, limits: NDArray) -> tuple[NDArray, NDArray]:
    """Rows and columns of the squares that are not above the limits of their rows; negative others are set to 0."""
    smallest = q.min()  # cheap, and mostly the end of the matter
    pairs = NO_PAIRS
    if not smallest > limits.max():  # also true for overflows, which are nan
        suspects = np.flatnonzero(~(q.min(axis=1) > limits))
        rows, columns = np.nonzero(~(q[suspects] > limits[suspects, None]))
        pairs = suspects[rows], columns
    if not smallest >= 0:
        np.maximum(q, 0, out=q)
    return pairs


def squared_differences(
    X: NDArray, Y: NDArray, rows: NDArray, columns: NDArray, scales: NDArray
) -> Iterator[tuple[slice, NDArray]]:
    """Slices of the pairs of rows, and ``((x - y) / scales)**2`` of their pairs, of every feature, in float64."""
    per_center = np.ndim(scales) == 2
    for piece in slices(0, len(rows), 1 + 2**18 // X.shape[1]):
        D = np.subtract(X[rows[piece]], Y[columns[piece]], dtype=np.float64)
        D /= scales[columns[piece]] if per_center else scales
        with np.errstate(over="ignore"):
            np.square(D, out=D)
        yield piece, D


def sums_of_squares(
    X: NDArray, Y: NDArray, rows: NDArray, columns: NDArray, scales: NDArray
) -> NDArray:
    """The squared distances of pairs of rows, from their differences."""
    q = np.empty(len(rows))
    with np.errstate(over="ignore"):
        for piece, squares in squared_differences(X, Y, rows, columns, scales):
            np.sum(squares, axis=1, out=q[piece])
    return q


class SquaredDistance(Stationary):
    """Kernels of ``q = sum(((x - y) / length_scale)**2)``, one matrix product per block; ``_slope`` is in q."""

    _by_products = True

    def _scales(self) -> NDArray:
        return np.asarray(self.length_scale, dtype=float)

    def _limits(self, errors: NDArray, tolerance: float) -> NDArray:
        """Squares up to which their rounding errors change the value by more than the tolerance."""
        raise NotImplementedError

    def _prepare(self, X, Y):
        return _Squares.of(X, Y, self._scales(), self._limits)

    def _evaluate(self, X, Y, out, prepared, rows, columns):
        prepared.product(rows, columns, out)
        limits = prepared.limits[rows]
        for piece in cached_pieces(out):
            q = out[piece]
            near, far = close_pairs(q, limits[piece])
            self._profile(q)
            if len(near):
                q[near, far] = self._profile(
                    sums_of_squares(X[piece], Y, near, far, self._scales())
                )

    def _pull(self, X, Y, G, prepared, rows):
        q = prepared.product(rows, slice(None), np.empty((len(X), len(Y)), dtype=X.dtype))
        near, far = close_pairs(q, prepared.limits[rows])
        q[near, far] = 0
        H = self._slope(q)
        H *= G
        H[near, far] = 0  # the infinite slope of a root must not enter the products
        U = prepared.U[rows].astype(np.float64, copy=False)
        V = prepared.V
        # sum_ij H_ij (u_ik - v_jk)^2 for every feature k, by two thin products
        gradient = H.sum(axis=1, dtype=np.float64) @ U**2
        gradient -= 2 * np.einsum("ik,ik->k", H @ V, U)
        gradient += H.sum(axis=0, dtype=np.float64) @ (V * V)
        for piece, squares in squared_differences(X, Y, near, far, self._scales()):
            slopes = self._slope(squares.sum(axis=1)) * G[near[piece], far[piece]]
            gradient += slopes @ squares
        gradient *= -2 / self._scales()  # dq / dl = -2 (u - v)^2 / l
        return gradient if self._scales().ndim else gradient.sum(keepdims=True)


class Gaussian(SquaredDistance):
    """The Gaussian kernel ``exp(-|x - y|^2 / (2 length_scale^2))``; scikit-learn's ``rbf``.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        One length scale, or one per feature. scikit-learn's ``gamma`` is ``1 / (2 length_scale^2)``.

    See Also
    --------
    Laplace : Rougher functions; often the better default for tables.
    DeltaGauss : The indefinite difference of two Gaussians.

    Examples
    --------
    >>> from mercerless.kernels import Gaussian
    >>> Gaussian(length_scale=2.0)([[0.0], [2.0]]).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    definite = True

    def _limits(self, errors, tolerance):
        return gaussian_limits(errors, tolerance)

    def _profile(self, q):
        q *= -0.5
        return np.exp(q, out=q)

    def _slope(self, q):
        slope = self._profile(q)
        slope *= -0.5
        return slope


class Exponential(SquaredDistance):
    """The exponential kernel ``exp(-|x - y| / length_scale)`` of the Euclidean distance (Matern with nu = 1/2).

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        One length scale, or one per feature.

    See Also
    --------
    Laplace : The same with the l1 distance.

    Examples
    --------
    >>> from mercerless.kernels import Exponential
    >>> Exponential()([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0067]])
    """

    definite = True

    def _limits(self, errors, tolerance):
        return np.log1p(errors / (2 * tolerance)) ** 2

    def _profile(self, q):
        np.sqrt(q, out=q)
        np.negative(q, out=q)
        return np.exp(q, out=q)

    def _slope(self, q):
        root = np.sqrt(np.maximum(q, np.finfo(q.dtype).eps ** 2))
        return -np.exp(-root) / (2 * root)


class DeltaGauss(SquaredDistance):
    """The difference of two Gaussians; zero on the diagonal, indefinite.

    ``exp(-|x - y|^2 / (2 length_scale^2)) - exp(-|x - y|^2 / (2 inner_scale^2))``

    Parameters
    ----------
    length_scale : float, default=1.0
        The first Gaussian's length scale.
    inner_scale : float, default=0.3
        The second, subtracted Gaussian's length scale.

    References
    ----------
    Oglic and Gaertner (2018), Learning in reproducing kernel Krein spaces, appendix D.

    Examples
    --------
    >>> from mercerless.kernels import DeltaGauss
    >>> DeltaGauss(1.0, 0.5)([[0.0], [1.0]]).round(3)
    array([[0.   , 0.471],
           [0.471, 0.   ]])
    """

    definite = False
    parameters = (Parameter("length_scale"), Parameter("inner_scale"))
    _per_feature = False
    length_scale: float

    def __init__(self, length_scale: float = 1.0, inner_scale: float = 0.3):
        self.length_scale = length_scale
        self.inner_scale = inner_scale

    def _ratio(self):
        return (float(self.length_scale) / float(self.inner_scale)) ** 2

    def _limits(self, errors, tolerance):
        ratio = self._ratio()
        outer = gaussian_limits(errors, tolerance / 2)
        inner = gaussian_limits(ratio * errors, tolerance / 2) / ratio
        return np.maximum(outer, inner)

    def _profile(self, q):
        inner = np.exp(q * q.dtype.type(-0.5 * self._ratio()))
        q *= -0.5
        np.exp(q, out=q)
        q -= inner
        return q

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        outer, inner = Gaussian(self.length_scale), Gaussian(self.inner_scale)
        return (outer - inner).pullback(X, Y, G)


class Epanechnikov(SquaredDistance):
    """The Epanechnikov kernel ``max(0, 1 - |(x - y) / length_scale|^2)^2``; compact support, indefinite.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        The radius of the support: one, or one per feature.

    References
    ----------
    Oglic and Gaertner (2018), Learning in reproducing kernel Krein spaces, appendix D.

    Examples
    --------
    >>> from mercerless.kernels import Epanechnikov
    >>> Epanechnikov(2.0)([[0.0], [1.0], [3.0]])[0]
    array([1.    , 0.5625, 0.    ])
    """

    definite = False

    def _limits(self, errors, tolerance):
        limits = 1 - tolerance / np.maximum(2 * errors, tolerance)
        return np.where(limits > 0, limits, -np.inf)

    def _profile(self, q):
        np.subtract(1, q, out=q)
        np.maximum(q, 0, out=q)
        return np.square(q, out=q)

    def _slope(self, q):
        return -2 * np.maximum(1 - q, 0)


class Log(SquaredDistance):
    """The logarithmic kernel ``-log(1 + |x - y| / length_scale)``; conditionally positive definite.

    Its diagonal is 0, so it has negative eigenvalues (one, for distinct rows); double centering makes it positive
    semi-definite.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        One length scale, or one per feature.

    References
    ----------
    Boughorbel, Tarel and Boujemaa (2005), Conditionally positive definite kernels for SVM based image recognition.

    Examples
    --------
    >>> from mercerless.kernels import Log
    >>> Log()([[0.0], [1.0]]).round(3)
    array([[ 0.   , -0.693],
           [-0.693,  0.   ]])
    """

    definite = False

    def _limits(self, errors, tolerance):
        ratios = errors / (2 * tolerance)
        # the root s of s (1 + s) = ratio, without cancellation
        return (2 * ratios / (1 + np.sqrt(1 + 4 * ratios))) ** 2

    def _profile(self, q):
        np.sqrt(q, out=q)
        np.log1p(q, out=q)
        return np.subtract(0, q, out=q)  # not the negative, which would make zeros -0

    def _slope(self, q):
        root = np.sqrt(np.maximum(q, np.finfo(q.dtype).eps ** 2))
        return -1 / (2 * root * (1 + root))


class _Cityblock(Stationary):
    """Kernels of the l1 distance, one length scale; ``_slope`` is in the length scale."""

    length_scale: float
    _per_feature = False

    def _prepare(self, X, Y):
        return X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)

    def _evaluate(self, X, Y, out, prepared, rows, columns):
        left, right = prepared
        out[...] = cdist(left[rows], right[columns], "cityblock")
        self._profile(out)

    def _pull(self, X, Y, G, prepared, rows):
        left, right = prepared
        return np.array([np.vdot(G, self._slope(cdist(left[rows], right, "cityblock")))])


class Laplace(_Cityblock):
    """The Laplace kernel ``exp(-|x - y|_1 / length_scale)``; scikit-learn's ``laplacian``.

    Parameters
    ----------
    length_scale : float, default=1.0
        The length scale. scikit-learn's ``gamma`` is ``1 / length_scale``.

    See Also
    --------
    Exponential : The same with the Euclidean distance.

    Examples
    --------
    >>> from mercerless.kernels import Laplace
    >>> Laplace(2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    definite = True

    def _profile(self, distance):
        distance *= -1 / float(self.length_scale)
        return np.exp(distance, out=distance)

    def _slope(self, distance):
        scale = float(self.length_scale)
        return distance / scale**2 * np.exp(-distance / scale)


class TL1(_Cityblock):
    """The truncated l1 kernel ``max(0, length_scale - |x - y|_1)``; piecewise linear, indefinite in general.

    It is a triangle, and positive definite, for one feature only.

    Parameters
    ----------
    length_scale : float, default=1.0
        The distance at which the kernel reaches zero. 0.7 times the number of features is the usual choice for features
        in [0, 1].

    References
    ----------
    Huang, Suykens, Wang, Hornegger and Maier (2018), Classification with truncated l1 distance kernel.

    Examples
    --------
    >>> from mercerless.kernels import TL1
    >>> TL1(1.5)([[0.0, 0.0]], [[1.0, 0.25], [1.0, 1.0]])
    array([[0.25, 0.  ]])
    """

    definite = False

    def _profile(self, distance):
        np.subtract(float(self.length_scale), distance, out=distance)
        return np.maximum(distance, 0, out=distance)

    def _slope(self, distance):
        return (distance < float(self.length_scale)).astype(np.float64)
