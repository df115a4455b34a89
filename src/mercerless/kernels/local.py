"""Local kernels: one bandwidth vector per center, and therefore asymmetric."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from mercerless.core.memory import slices
from mercerless.core.validation import check_real
from mercerless.kernels.base import Kernel, Parameter, check_cotangent, check_pair, over_row_blocks
from mercerless.kernels.stationary import (
    Exponential,
    Gaussian,
    Laplace,
    SquaredDistance,
    Stationary,
    close_pairs,
    limits_of_squares,
    middle,
    sums_of_squares,
)


class _Local(Kernel):
    """Base of the local kernels: the shape of the bandwidths, the blocks, and the chain rule.

    With ``scaled = (x - y_j) / bandwidths_j`` a subclass gives a profile of a distance of ``scaled``. `_value` fills
    one block of rows of the matrix, `_gradient` is ``H[j] @ |scaled|^power`` for its block. Blocks are held with one
    center per line, so that whatever belongs to a center is contiguous.
    """

    symmetric = False
    definite = None
    parameters = (Parameter("bandwidths", "log", 1e-5, 1e5),)
    #: The kernel that it becomes if all centers share their bandwidths.
    _shared: type[Stationary]

    def __init__(self, bandwidths: float | ArrayLike = 1.0):
        self.bandwidths = bandwidths

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        """``k(x, y_j)`` with the bandwidths of center ``j`` in column ``j``; float32 when both are."""
        X, Y, widths = self._check_arguments(X, Y)
        if len(Y) and (widths == widths[0]).all():
            return self._shared_value(X, Y, widths[0])
        out = np.empty((len(Y), len(X)), dtype=X.dtype)
        prepared = self._prepare_blocks(Y, widths)

        def fill(rows: slice) -> None:
            self._value(X[rows], prepared, out[:, rows])

        over_row_blocks(fill, len(X), max(64, X.shape[1]), X.itemsize)
        return out.T

    def diag(self, X: ArrayLike) -> NDArray:
        """Ones, as every center has distance 0 to itself."""
        X = check_real(X)
        return np.ones(len(X), dtype=X.dtype)

    def pullback(
        self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike, K: NDArray | None = None
    ) -> NDArray:
        """The gradient of ``sum(G * k(X, Y))`` in the logarithms of the bandwidths, center after center, in float64.

        A known ``K = k(X, Y)`` is not evaluated again.
        """
        X, Y, G = check_cotangent(X, Y, G)
        X, Y, widths = self._check_arguments(X, Y)
        if K is None:
            K = self(X, Y)
        prepared = self._prepare_blocks(Y, widths)

        def pull(rows: slice) -> NDArray:
            H = self._weights(G[rows].T, K[rows].T).astype(X.dtype, copy=False)
            return self._gradient(X[rows], prepared, H)

        parts = over_row_blocks(pull, len(X), max(64, X.shape[1]), X.itemsize)
        gradient: NDArray = np.sum(parts, axis=0, dtype=float)
        return _summed(gradient, np.ndim(self.bandwidths))

    def _check_arguments(
        self, X: ArrayLike, Y: ArrayLike | None
    ) -> tuple[NDArray, NDArray, NDArray]:
        X, Y, _ = check_pair(X, Y)
        widths = np.asarray(self.bandwidths, dtype=X.dtype)
        if widths.shape not in ((), (X.shape[1],), Y.shape):
            raise ValueError(
                f"{type(self).__name__} has bandwidths of shape {widths.shape} but the centers "
                f"have shape {Y.shape}; "
                "give one bandwidth, one per feature, or one row of them per center."
            )
        if not (0.0 < widths.min() and widths.max() < np.inf):
            raise ValueError(f"{type(self).__name__} needs finite, positive bandwidths.")
        return X, Y, np.broadcast_to(widths, Y.shape)

    def _shared_value(self, X: NDArray, Y: NDArray, widths: NDArray) -> NDArray:
        """The matrix for bandwidths that all centers share; Y is X for a symmetric one."""
        return self._shared(widths)(X, Y)

    def _prepare_blocks(self, Y: NDArray, widths: NDArray) -> Any:
        raise NotImplementedError

    def _value(self, X: NDArray, prepared: Any, out: NDArray) -> None:
        raise NotImplementedError

    def _weights(self, G: NDArray, K: NDArray) -> NDArray:
        """``G * dk/d(distance)`` up to the factor that `_gradient` supplies."""
        return G * K

    def _gradient(self, X: NDArray, prepared: Any, H: NDArray) -> NDArray:
        raise NotImplementedError


def _summed(gradient: NDArray, n_dims: int) -> NDArray:
    """The gradient in bandwidths per center, per feature or in one, by the number of their dimensions."""
    return gradient.sum(axis=tuple(range(2 - n_dims))).ravel()


class _Quadratic(NamedTuple):
    """What all blocks share: centers moved to the middle, and their coefficients of the monomials of the rows."""

    Y: NDArray
    widths: NDArray
    shift: NDArray
    S: NDArray
    W: NDArray
    coefficients: NDArray
    limits: NDArray  # squares up to these, per center, are computed from differences


class _LocalQuadratic(_Local):
    """The forms of the squared distance, evaluated by one matrix product on centered data."""

    _shared: type[SquaredDistance]

    def _prepare_blocks(self, Y: NDArray, widths: NDArray) -> _Quadratic:
        # Near the origin the expanded square cancels least.
        shift = middle(Y)
        S = Y - shift
        W = widths**-2
        WS = W * S
        sizes = np.einsum("jk,jk->j", WS, S)
        coefficients = np.concatenate([-2 * WS, W, sizes[:, None]], axis=1)
        limits = limits_of_squares(self._shared()._limits, sizes, Y.shape[1])
        return _Quadratic(Y, widths, shift, S, W, coefficients, limits)

    def _value(self, X: NDArray, prepared: _Quadratic, out: NDArray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(prepared.coefficients, _monomials(X - prepared.shift).T, out=out)
        centers, rows = close_pairs(out, prepared.limits)
        profile = self._shared()._profile
        profile(out)
        if len(rows):
            q = sums_of_squares(X, prepared.Y, rows, centers, prepared.widths)
            out[centers, rows] = profile(q)

    def _gradient(self, X: NDArray, prepared: _Quadratic, H: NDArray) -> NDArray:
        S = prepared.S
        monomials = _monomials(X - prepared.shift)
        linear, square, one = np.split(H @ monomials, [X.shape[1], 2 * X.shape[1]], axis=1)
        gradient = prepared.W * (square - 2 * S * linear + S * S * one)
        for j in np.flatnonzero(prepared.coefficients[:, -1] > 1e4):  # where the sum would cancel
            gradient[j] = H[j] @ np.square((X - prepared.Y[j]) / prepared.widths[j])
        return gradient


def _monomials(X: NDArray) -> NDArray:
    """``[X, X^2, 1]``: squared distances to any centers are linear in them."""
    d = X.shape[1]
    out = np.empty((len(X), 2 * d + 1), dtype=X.dtype)
    out[:, :d] = X
    np.multiply(X, X, out=out[:, d : 2 * d])
    out[:, -1] = 1
    return out


class LocalGaussian(_LocalQuadratic):
    """``k(x, y_j) = exp(-sum_f ((x_f - y_jf) / bandwidths_jf)^2 / 2)``.

    With the same bandwidths for every center this is `Gaussian`.

    Parameters
    ----------
    bandwidths : float or array-like of shape (n_features,) or (n_centers, n_features), default=1.0
        One bandwidth, one per feature, or one row per center.

    Examples
    --------
    >>> from mercerless.kernels import LocalGaussian
    >>> LocalGaussian([[1.0], [2.0]])([[2.0]], [[0.0], [0.0]]).round(3)
    array([[0.135, 0.607]])
    """

    _shared = Gaussian


class LocalExponential(_LocalQuadratic):
    """``k(x, y_j) = exp(-sqrt(sum_f ((x_f - y_jf) / bandwidths_jf)^2))``.

    Parameters
    ----------
    bandwidths : float or array-like of shape (n_features,) or (n_centers, n_features), default=1.0
        One bandwidth, one per feature, or one row per center.

    Examples
    --------
    >>> from mercerless.kernels import LocalExponential
    >>> LocalExponential([[1.0], [2.0]])([[2.0]], [[0.0], [0.0]]).round(3)
    array([[0.135, 0.368]])
    """

    _shared = Exponential

    def _weights(self, G, K):
        with np.errstate(divide="ignore"):
            distance = -np.log(K)
        return G * K * np.divide(1, distance, out=np.zeros_like(K), where=(distance > 0) & (K > 0))


class LocalLaplace(_Local):
    """``k(x, y_j) = exp(-sum_f |x_f - y_jf| / bandwidths_jf)``.

    With the same bandwidths for every center this is `Laplace`.

    Parameters
    ----------
    bandwidths : float or array-like of shape (n_features,) or (n_centers, n_features), default=1.0
        One bandwidth, one per feature, or one row per center.

    Examples
    --------
    >>> from mercerless.kernels import LocalLaplace
    >>> LocalLaplace([[1.0], [2.0]])([[2.0]], [[0.0], [0.0]]).round(3)
    array([[0.135, 0.368]])
    """

    def _shared_value(self, X, Y, widths):
        U = X / widths
        return Laplace()(U, U if Y is X else Y / widths)

    def _prepare_blocks(self, Y, widths):
        return Y, 1 / widths

    def _value(self, X, prepared, out):
        S, W = prepared
        for group, distances in _distances(X, S):
            np.matmul(W[group, None], distances, out=out[group, None])
        np.negative(out, out=out)
        np.exp(out, out=out)

    def _gradient(self, X, prepared, H):
        S, W = prepared
        gradient = np.empty_like(S)
        for group, distances in _distances(X, S):
            np.matmul(distances, H[group, :, None], out=gradient[group, :, None])
        gradient *= W
        return gradient


def center_bandwidths(kernel: Any) -> dict[str, NDArray]:
    """Parameters of a kernel, and of the kernels it is made of, that are bandwidths with one row per center, by name.

    With such a kernel only the centers that it was made for can be the second argument: other items have no bandwidths.
    """
    if not isinstance(kernel, Kernel):
        return {}
    parameters = kernel.get_params(deep=True).items()
    return {
        name: np.asarray(value)
        for name, value in parameters
        if name.split("__")[-1] == "bandwidths" and np.ndim(value) == 2
    }


def at_centers(kernel: Kernel, rows: NDArray, n: int) -> Kernel:
    """The kernel for some of its n centers; one without bandwidths of the centers stays as it is."""
    bandwidths = center_bandwidths(kernel)
    for widths in bandwidths.values():
        if len(widths) != n:
            raise ValueError(
                f"The kernel has bandwidths for {len(widths)} items, but X has {n} training items; "
                "give one row of bandwidths per training item."
            )
    if not bandwidths:
        return kernel
    return clone(kernel).set_params(**{name: widths[rows] for name, widths in bandwidths.items()})


class FixedPoints:
    """A local kernel between the same rows and centers, for many bandwidths in turn.

    What does not depend on the bandwidths is computed once: for the Laplace form the distances in every feature, if
    they take at most `most_bytes`.
    """

    most_bytes = 2**26

    def __init__(self, kernel: Callable[..., Any], X: NDArray, S: NDArray):
        self.kernel = kernel
        self.X = X
        self.S = S
        n_bytes = X.itemsize * X.size * len(S)
        self.keeps_distances = kernel is LocalLaplace and n_bytes <= self.most_bytes

    @cached_property
    def distances(self) -> NDArray:
        """``|x_f - s_f|``, of shape (n_centers, n_features, n_rows)."""
        distances = self.X.T[None] - self.S[:, :, None]
        return np.abs(distances, out=distances)

    @cached_property
    def summed(self) -> NDArray:
        """The distances summed over the features, of shape (n_centers, n_rows)."""
        return self.distances.sum(axis=1)

    def value(self, bandwidths: float | NDArray) -> NDArray:
        """``kernel(bandwidths)(X, S)``."""
        if not self.keeps_distances:
            return self.kernel(bandwidths)(self.X, self.S)
        if np.ndim(bandwidths) == 0:
            out = self.summed * (-1 / np.asarray(bandwidths, dtype=self.summed.dtype))
        else:
            factors = -1 / np.broadcast_to(bandwidths, self.S.shape)
            out = np.matmul(factors[:, None, :], self.distances)[:, 0]
        np.exp(out, out=out)
        return out.T

    def pullback(self, bandwidths: NDArray, G: NDArray, K: NDArray) -> NDArray:
        """The gradient of ``sum(G * K)`` in the logarithms of the bandwidths, for the matrix K of these."""
        if not self.keeps_distances:
            return self.kernel(bandwidths).pullback(self.X, self.S, G, K)
        weights = np.multiply(G.T, K.T, dtype=self.distances.dtype, order="C")
        sums = np.matmul(self.distances, weights[:, :, None])[:, :, 0]
        return _summed((sums / bandwidths).astype(np.float64), np.ndim(bandwidths))


def _distances(X: NDArray, S: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Group after group of centers, ``|x_f - s_f|`` of shape (n_centers, n_features, n_rows).

    A group is as large as fits the second-level cache: for single centers of few rows a call would take longer than
    its numbers.
    """
    Xt = np.ascontiguousarray(X.T)
    size = max(1, 2**16 // max(1, X.size))
    memory = np.empty((min(size, len(S)), *Xt.shape), dtype=X.dtype)
    for group in slices(0, len(S), size):
        distances = memory[: group.stop - group.start]
        np.subtract(Xt, S[group, :, None], out=distances)
        np.abs(distances, out=distances)
        yield group, distances
