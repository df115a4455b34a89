"""Kernels of an inner product."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.validation import check_number, check_real
from mercerless.kernels.base import Kernel, Parameter, cached_pieces


class _InnerProduct(Kernel):
    """Kernels ``profile(p)`` of ``p = <x / length_scale, y / length_scale>``.

    A subclass gives ``_profile(p)``, in place, and ``_slope(p)``, its derivative in p and in the offset.
    """

    is_similarity = True
    _by_tiles = True
    _by_products = True

    def _check_features(self, n_features):
        super()._check_features(n_features)
        check_number("degree", getattr(self, "degree", 1), whole=True)

    def diag(self, X: ArrayLike) -> NDArray:
        X = check_real(X)
        self._check_features(X.shape[1])
        U = self._embed(X)
        return self._profile(np.einsum("ij,ij->i", U, U))

    def _embed(self, X: NDArray) -> NDArray:
        return (X / np.asarray(self.length_scale, dtype=float)).astype(X.dtype, copy=False)

    def _prepare(self, X, Y):
        U = self._embed(X)
        return U, (U if Y is X else self._embed(Y)).T

    def _evaluate(self, X, Y, out, prepared, rows, columns):
        U, Vt = prepared
        np.matmul(U[rows], Vt[:, columns], out=out)
        for piece in cached_pieces(out):
            self._profile(out[piece])

    def _pull(self, X, Y, G, prepared, rows):
        U, Vt = prepared
        p = np.matmul(U[rows], Vt).astype(np.float64, copy=False)
        H = G * self._slope(p)
        scale = np.asarray(self.length_scale, dtype=float)
        # dp / dl_k = -2 u_k v_k / l_k
        gradient = -2 * np.einsum("ik,ik->k", U[rows], H @ Vt.T) / scale
        gradient = gradient if scale.ndim else gradient.sum(keepdims=True)
        return np.append(gradient, H.sum())

    def _profile(self, p: NDArray) -> NDArray:
        raise NotImplementedError

    def _slope(self, p: NDArray) -> NDArray:
        raise NotImplementedError


class Polynomial(_InnerProduct):
    """The polynomial kernel ``(offset + <x, y> / length_scale^2)^degree``.

    Parameters
    ----------
    degree : int, default=3
        The degree; not tunable by gradients.
    length_scale : float or array-like of shape (n_features,), default=1.0
        What the features are divided by: one number, or one per feature.
    offset : float, default=1.0
        The constant. Nonnegative offsets make the kernel positive semi-definite.

    Examples
    --------
    >>> from mercerless.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 1.0]])
    array([[36.]])
    """

    parameters = (Parameter("length_scale"), Parameter("offset", "identity", -1e5, 1e5))

    def __init__(self, degree: int = 3, length_scale: ArrayLike = 1.0, offset: float = 1.0):
        self.degree = degree
        self.length_scale = length_scale
        self.offset = offset

    @property
    def definite(self) -> bool:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        return self.offset >= 0

    def _profile(self, p):
        p += p.dtype.type(self.offset)
        return _power(p, int(self.degree))

    def _slope(self, p):
        return self.degree * (p + self.offset) ** (int(self.degree) - 1)


class Sigmoid(_InnerProduct):
    """The sigmoid (hyperbolic tangent) kernel ``tanh(<x, y> / length_scale^2 + offset)``; indefinite.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        What the features are divided by: one number, or one per feature.
    offset : float, default=0.0
        The constant inside the hyperbolic tangent.

    References
    ----------
    Oglic and Gaertner (2018), Learning in reproducing kernel Krein spaces, appendix D; their SIGMOID divides the
    constant too: ``Sigmoid(length_scale, offset=-0.5 / length_scale**2)``.

    Examples
    --------
    >>> from mercerless.kernels import Sigmoid
    >>> Sigmoid(offset=-0.5)([[1.0]], [[0.5]])
    array([[0.]])
    """

    definite = False
    parameters = (Parameter("length_scale"), Parameter("offset", "identity", -1e5, 1e5))

    def __init__(self, length_scale: ArrayLike = 1.0, offset: float = 0.0):
        self.length_scale = length_scale
        self.offset = offset

    def _profile(self, p):
        if self.offset != 0:
            p += p.dtype.type(self.offset)
        return np.tanh(p, out=p)

    def _slope(self, p):
        return 1 - np.tanh(p + self.offset) ** 2


class SphericalPolynomial(_InnerProduct):
    """The spherical polynomial kernel ``(1 - |x - y|^2 / length_scale^2)^degree`` of rows scaled to unit length.

    On the sphere ``|x - y|^2 = 2 - 2 <x, y>``, so this is ``((1 - 2 q) + 2 q <x, y>)^degree`` with
    ``q = 1 / length_scale^2``: positive semi-definite exactly for ``length_scale^2 >= 2``. The RKKS paper prints
    ``(1 + <x, y>)^degree``, which is ``2^degree`` times the case ``length_scale = 2`` and positive definite; the
    indefinite kernel it means, after Pennington, Yu and Kumar, has a smaller length scale.

    Parameters
    ----------
    degree : int, default=10
        The degree; not tunable by gradients.
    length_scale : float, default=1.0
        The distance, on the unit sphere, at which the base of the power is zero.

    References
    ----------
    Pennington, Yu and Kumar (2015), Spherical random features for polynomial kernels.

    Examples
    --------
    >>> from mercerless.kernels import SphericalPolynomial
    >>> SphericalPolynomial(degree=1, length_scale=2.0)([[3.0, 0.0]], [[0.0, 1.0]])
    array([[0.5]])
    """

    parameters = (Parameter("length_scale"),)
    _per_feature = False

    def __init__(self, degree: int = 10, length_scale: float = 1.0):
        self.degree = degree
        self.length_scale = length_scale

    @property
    def definite(self) -> bool:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        return float(self.length_scale) ** 2 >= 2

    def _embed(self, X):
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        if not np.all(norms > 0):
            raise ValueError(
                "SphericalPolynomial scales every row to length 1, but X has a row of zeros; "
                "remove it."
            )
        return X / norms

    def _base(self, p):
        q = 1 / float(self.length_scale) ** 2
        p *= p.dtype.type(2 * q)
        p += p.dtype.type(1 - 2 * q)
        return p

    def _profile(self, p):
        return _power(self._base(p), int(self.degree))

    def _pull(self, X, Y, G, prepared, rows):
        U, Vt = prepared
        p = np.matmul(U[rows], Vt).astype(np.float64, copy=False)
        distance = 2 - 2 * p
        base = self._base(p)
        slope = self.degree * base ** (int(self.degree) - 1)
        return np.array([np.vdot(G, slope * distance) * 2 / float(self.length_scale) ** 3])


def _power(p: NDArray, degree: int) -> NDArray:
    """A positive whole power, in place, by squaring: `numpy.power` takes a hundred times as long for negative bases."""
    digits = f"{degree:b}"[1:]
    base = p.copy() if "1" in digits else p
    for digit in digits:
        p *= p
        if digit == "1":
            p *= base
    return p
