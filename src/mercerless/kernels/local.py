"""Local kernels: one bandwidth vector per centre, and therefore asymmetric."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless._validation import check_real
from mercerless.kernels.base import Kernel, Parameter, over_row_blocks


class _Local(Kernel):
    """What the local kernels share: the shape of the bandwidths, the blocks, and the chain rule.

    With ``scaled = (x - y_j) / bandwidths_j`` a subclass gives a profile of a distance of ``scaled``. `_value` fills
    one block of rows of the matrix, `_gradient` is ``H[:, j] @ |scaled|^power`` for its block.
    """

    symmetric = False
    definite = None
    parameters = (Parameter("bandwidths", "log", 1e-5, 1e5),)

    def __init__(self, bandwidths: float | ArrayLike = 1.0):
        self.bandwidths = bandwidths

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        """The matrix of ``k(x, y_j)`` with the bandwidths of centre ``j`` in column ``j``.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.
        Y : array-like of shape (m, n_features) or None, default=None
            The centres, one per row of `bandwidths`; None means X.

        Returns
        -------
        ndarray of shape (n, m)
            The matrix; float32 when both inputs are.
        """
        X, Y, widths = self._check_arguments(X, Y)
        out = np.empty((len(X), len(Y)), dtype=X.dtype)
        prepared = self._prepare_blocks(Y, widths)

        def fill(rows: slice) -> None:
            self._value(X[rows], prepared, out[rows])

        over_row_blocks(fill, len(X), self._columns_at_once(X.shape[1]), X.itemsize)
        return out

    def diag(self, X: ArrayLike) -> NDArray:
        """The diagonal: ones, as every centre has distance 0 to itself.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            Ones.
        """
        X = check_real(X)
        return np.ones(len(X), dtype=X.dtype)

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike, K: NDArray | None = None) -> NDArray:
        """The gradient of ``sum(G * k(X, Y))`` in the logarithms of the bandwidths.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.
        Y : array-like of shape (m, n_features) or None
            The centres; None means X.
        G : array-like of shape (n, m)
            The cotangent.
        K : ndarray of shape (n, m) or None, default=None
            ``k(X, Y)`` where it is already known, which saves evaluating it again.

        Returns
        -------
        ndarray of shape (n_theta,)
            The gradient, in float64, in the order of ``bandwidths.ravel()``.
        """
        X, Y, widths = self._check_arguments(X, Y)
        K = self(X, Y) if K is None else K
        G = check_real(G, "G")
        if G.shape != (len(X), len(Y)) or K.shape != G.shape:
            raise ValueError(f"G has shape {G.shape} but k(X, Y) has shape {(len(X), len(Y))}; they must agree.")
        prepared = self._prepare_blocks(Y, widths)
        parts: dict[int, NDArray] = {}

        def pull(rows: slice) -> None:
            parts[rows.start] = self._gradient(X[rows], prepared, self._weights(G[rows], K[rows]))

        over_row_blocks(pull, len(X), self._columns_at_once(X.shape[1]), X.itemsize)
        # summed in row order, so that the result does not depend on which thread was first
        gradient = np.sum([parts[start] for start in sorted(parts)], axis=0, dtype=np.float64)
        shape = np.shape(self.bandwidths)
        return (gradient if len(shape) == 2 else gradient.sum(axis=0) if shape else gradient.sum()).ravel()

    @property
    def theta(self) -> NDArray:
        """The logarithms of the bandwidths, centre after centre.

        Returns
        -------
        ndarray of shape (n_theta,)
            ``log(bandwidths).ravel()``.
        """
        return np.log(np.asarray(self.bandwidths, dtype=float)).ravel()

    def with_theta(self, theta: ArrayLike) -> "_Local":
        """A copy with other bandwidths.

        Parameters
        ----------
        theta : array-like of shape (n_theta,)
            The logarithms of the bandwidths.

        Returns
        -------
        Kernel
            A new kernel of the same form.
        """
        shape = np.shape(self.bandwidths)
        theta = np.asarray(theta, dtype=float)
        if theta.shape != (int(np.prod(shape)),):
            raise ValueError(f"theta has shape {theta.shape} but this kernel has {int(np.prod(shape))} bandwidths.")
        widths = np.exp(theta).reshape(shape)
        return type(self)(widths if shape else float(widths))

    def _check_arguments(self, X: ArrayLike, Y: ArrayLike | None) -> tuple[NDArray, NDArray, NDArray]:
        X = check_real(X, "X")
        Y = X if Y is None else check_real(Y, "Y")
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features but Y has {Y.shape[1]}; both need the same columns.")
        if X.dtype != Y.dtype:
            X, Y = X.astype(np.float64), Y.astype(np.float64)
        widths = np.asarray(self.bandwidths, dtype=X.dtype)
        if widths.shape not in ((), (X.shape[1],), Y.shape):
            raise ValueError(
                f"{type(self).__name__} has bandwidths of shape {widths.shape} but the centres have shape {Y.shape}; "
                "give one bandwidth, one per feature, or one row of them per centre."
            )
        if not (np.all(np.isfinite(widths)) and np.all(widths > 0)):
            raise ValueError(f"{type(self).__name__} needs finite, positive bandwidths.")
        return X, Y, np.broadcast_to(widths, Y.shape)

    def _columns_at_once(self, n_features: int) -> int:
        """How many columns of a block of rows are in use at a time, which sets the size of the blocks."""
        return n_features

    def _prepare_blocks(self, Y: NDArray, widths: NDArray) -> Any:
        raise NotImplementedError

    def _value(self, X: NDArray, prepared: Any, out: NDArray) -> None:
        raise NotImplementedError

    def _weights(self, G: NDArray, K: NDArray) -> NDArray:
        """``G * dk/d(distance)`` up to the factor that `_gradient` supplies."""
        raise NotImplementedError

    def _gradient(self, X: NDArray, prepared: Any, H: NDArray) -> NDArray:
        raise NotImplementedError


class _LocalQuadratic(_Local):
    """The forms of the squared distance, evaluated by matrix products on centred data."""

    def _columns_at_once(self, n_features: int) -> int:
        return 64  # matrix products want a thousand rows or more, whatever the number of features

    def _prepare_blocks(self, Y: NDArray, widths: NDArray) -> Any:
        # Centring keeps the expanded square accurate when the data lie far from the origin.
        shift = Y.mean(axis=0)
        S = Y - shift
        W = widths**-2
        WS = W * S
        return shift, S, W, WS, np.einsum("jk,jk->j", WS, S)

    def _squares(self, X: NDArray, prepared: Any, out: NDArray) -> None:
        shift, _, W, WS, offset = prepared
        X = X - shift
        np.matmul(X, WS.T, out=out)
        out *= -2
        out += (X * X) @ W.T
        out += offset
        np.maximum(out, 0, out=out)

    def _gradient(self, X: NDArray, prepared: Any, H: NDArray) -> NDArray:
        shift, S, W, _, _ = prepared
        X = X - shift
        square = H.T @ (X * X)
        square -= 2 * S * (H.T @ X)
        square += S * S * H.sum(axis=0)[:, None]
        square *= W
        return square


class LocalGaussian(_LocalQuadratic):
    """``k(x, y_j) = exp(-sum_f ((x_f - y_jf) / bandwidths_jf)^2 / 2)``.

    With the same bandwidths for every centre this is `Gaussian`.

    Parameters
    ----------
    bandwidths : float or array-like of shape (n_features,) or (n_centres, n_features), default=1.0
        One bandwidth, one per feature, or one row per centre.
    """

    def _value(self, X, prepared, out):
        self._squares(X, prepared, out)
        out *= -0.5
        np.exp(out, out=out)

    def _weights(self, G, K):
        return (G * K).astype(K.dtype, copy=False)


class LocalExponential(_LocalQuadratic):
    """``k(x, y_j) = exp(-sqrt(sum_f ((x_f - y_jf) / bandwidths_jf)^2))``.

    Parameters
    ----------
    bandwidths : float or array-like of shape (n_features,) or (n_centres, n_features), default=1.0
        One bandwidth, one per feature, or one row per centre.
    """

    def _value(self, X, prepared, out):
        self._squares(X, prepared, out)
        shift, S, W, _, offset = prepared
        # The square root magnifies the rounding of the expanded square near 0: those pairs are done directly.
        size = ((X - shift) ** 2) @ W.T + offset
        rows, columns = np.nonzero(out <= 1e3 * np.finfo(out.dtype).eps * size)
        if len(rows):
            difference = X[rows] - shift - S[columns]
            out[rows, columns] = np.einsum("ik,ik,ik->i", difference, difference, W[columns])
        np.sqrt(out, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)

    def _weights(self, G, K):
        with np.errstate(divide="ignore"):
            distance = -np.log(K)
        return (G * K * np.divide(1, distance, out=np.zeros_like(K), where=(distance > 0) & (K > 0))).astype(
            K.dtype, copy=False
        )


class LocalLaplace(_Local):
    """``k(x, y_j) = exp(-sum_f |x_f - y_jf| / bandwidths_jf)``.

    With the same bandwidths for every centre this is `Laplace`.

    Parameters
    ----------
    bandwidths : float or array-like of shape (n_features,) or (n_centres, n_features), default=1.0
        One bandwidth, one per feature, or one row per centre.
    """

    def _prepare_blocks(self, Y, widths):
        return Y, 1 / widths

    def _value(self, X, prepared, out):
        S, W = prepared
        Xt = np.ascontiguousarray(X.T)
        distance = np.empty_like(Xt)
        columns = np.empty((len(S), len(X)), dtype=out.dtype)
        # one centre at a time: the features of a block of rows stay in the cache, and the sum over them is BLAS's
        for j in range(len(S)):
            np.subtract(Xt, S[j][:, None], out=distance)
            np.abs(distance, out=distance)
            np.dot(W[j], distance, out=columns[j])
        np.negative(columns, out=columns)
        np.exp(columns, out=columns)
        out[...] = columns.T

    def _weights(self, G, K):
        return np.ascontiguousarray((G * K).T.astype(K.dtype, copy=False))

    def _gradient(self, X, prepared, H):
        S, W = prepared
        Xt = np.ascontiguousarray(X.T)
        distance = np.empty_like(Xt)
        gradient = np.empty_like(S)
        for j in range(len(S)):
            np.subtract(Xt, S[j][:, None], out=distance)
            np.abs(distance, out=distance)
            np.dot(distance, H[j], out=gradient[j])
        gradient *= W
        return gradient
