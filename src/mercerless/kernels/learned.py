"""Learned kernels: the results of the hyper-kernel estimators, as kernels like any other."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.folds import find_copies
from mercerless.core.memory import row_blocks
from mercerless.core.validation import check_real
from mercerless.kernels.base import Kernel
from mercerless.kernels.hyper import GaussianHyper, HyperKernel, TensorHyper


class _LearnedKernel(Kernel):
    """A symmetric kernel of large coefficients that cancel: rounding may break the symmetry, so it is restored."""

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        K = super().__call__(X, Y)
        if Y is None or Y is X:
            K += K.T
            K *= K.dtype.type(0.5)
        return K


class HyperExpansion(_LearnedKernel):
    """A kernel that is a weighted sum of a hyper-kernel's sections: ``k = intercept + sum_p coef_p section_p``.

    Parameters
    ----------
    hyper_kernel : GaussianHyper or WishartHyper
        The hyper-kernel.
    centers : ndarray of shape (n_centers, n_features) or (n_centers, 2, n_features)
        Midpoints for the Gaussian hyper-kernel, pairs for the Wishart one.
    coef : ndarray of shape (n_centers,)
        Weights of the sections.
    intercept : float, default=0.0
        A constant.

    Attributes
    ----------
    symmetric : bool
        True.
    definite : bool or None
        True when no weight is negative; False when a value ``k(x, x)`` at a center is; else None.

    See Also
    --------
    mercerless.HyperRidge : Learns such a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels.hyper import GaussianHyper
    >>> from mercerless.kernels.learned import HyperExpansion
    >>> kernel = HyperExpansion(GaussianHyper(), np.array([[0.0], [2.0]]), np.array([1.0, 0.5]))
    >>> kernel(np.array([[0.0], [1.0]])).round(3)
    array([[1.184, 0.743],
           [0.743, 1.168]])
    >>> kernel.definite
    True
    """

    def __init__(
        self, hyper_kernel: HyperKernel, centers: NDArray, coef: NDArray, intercept: float = 0.0
    ):
        self.hyper_kernel = hyper_kernel
        self.centers = centers
        self.coef = coef
        self.intercept = intercept

    @property
    def definite(self) -> bool | None:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        if np.all(np.asarray(self.coef) >= 0) and self.intercept >= 0:
            return True
        items = self.centers.reshape(-1, self.centers.shape[-1])
        values = self.diag(items)
        return False if values.min() < -1e-10 * np.abs(values).max() else None

    def diag(self, X: ArrayLike) -> NDArray:
        X = check_real(X)
        self._check_features(X.shape[1])
        values = self.hyper_kernel._sections(X, X, self.centers) @ self.coef
        return (values + self.intercept).astype(X.dtype, copy=False)

    def _check_features(self, n_features: int) -> None:
        known = self.centers.shape[-1]
        if n_features != known:
            raise ValueError(f"X has {n_features} features but the kernel was learned on {known}.")
        self.hyper_kernel._check(n_features)

    def _prepare(self, X: NDArray, Y: NDArray) -> Any:
        if isinstance(self.hyper_kernel, GaussianHyper):
            return self.hyper_kernel.features(Y, self.centers) * self.coef
        return None

    def _evaluate(self, X, Y, out, prepared, rows, columns):
        if prepared is None:
            for columns in row_blocks(len(Y), 64.0 * len(X) * len(self.centers), 2**23):
                out[:, columns] = self.hyper_kernel.blocks(X, Y[columns], self.centers) @ self.coef
        else:
            values = self.hyper_kernel.features(X, self.centers) @ prepared.T
            out[...] = values * self.hyper_kernel.decay(X, Y)
        out += out.dtype.type(self.intercept)


class TensorExpansion(_LearnedKernel):
    """A similarity extended to new items: ``k(z, z') = trend(z, z') + r(z) @ core @ r(z')``.

    ``r(z) = G(z, landmarks) @ projection``. A row that equals a training item (in all features; of equal training
    items the first) also has this item's own component: values between two of them are ``item_values``, values with
    a new item ``r(z) @ item_coef`` plus the trend.

    Parameters
    ----------
    hyper_kernel : TensorHyper
        The hyper-kernel.
    landmarks : ndarray of shape (n_landmarks, n_features)
        Items that new ones are compared with.
    projection : ndarray of shape (n_landmarks, rank)
        From similarities with landmarks to the coordinates of ``core``.
    core : ndarray of shape (rank, rank)
        The symmetric coefficients.
    knots : ndarray
        Knots of the trend.
    trend_coef : ndarray
        Coefficients of the trend.
    items : ndarray of shape (n_items, n_features)
        The training items.
    item_coef : ndarray of shape (rank, n_items)
        Their coefficients toward new items.
    item_values : ndarray of shape (n_items, n_items)
        The values among them.

    Attributes
    ----------
    symmetric : bool
        True.
    definite : bool or None
        False if the values among training items have a negative eigenvalue; else None.

    See Also
    --------
    mercerless.HyperRidge : Learns such a kernel from a similarity matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import HyperRidge
    >>> X = np.arange(10.0)[:, None]
    >>> kernel = HyperRidge().fit(X, np.minimum(X, X.T)).kernel_
    >>> type(kernel).__name__, kernel([[2.5]], [[7.5]]).shape
    ('TensorExpansion', (1, 1))
    """

    def __init__(
        self,
        hyper_kernel: TensorHyper,
        landmarks: NDArray,
        projection: NDArray,
        core: NDArray,
        knots: NDArray,
        trend_coef: NDArray,
        items: NDArray,
        item_coef: NDArray,
        item_values: NDArray,
    ):
        self.hyper_kernel = hyper_kernel
        self.landmarks = landmarks
        self.projection = projection
        self.core = core
        self.knots = knots
        self.trend_coef = trend_coef
        self.items = items
        self.item_coef = item_coef
        self.item_values = item_values

    @property
    def definite(self) -> bool | None:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        values = np.linalg.eigvalsh(self.item_values)
        is_negative = values[0] < -1e-8 * max(abs(values[0]), abs(values[-1]))
        return False if is_negative else None

    def diag(self, X: ArrayLike) -> NDArray:
        X = check_real(X)
        self._check_features(X.shape[1])
        r = self._coordinates(X)
        # every trend function but 1 and [same item] is 0 at distance 0
        values = np.einsum("ip,ip->i", r @ self.core, r) + self.trend_coef[:2].sum()
        (known,) = self._numbers(X)
        is_known = known < len(self.items)
        values[is_known] = np.diagonal(self.item_values)[known[is_known]]
        return values.astype(X.dtype, copy=False)

    def _check_features(self, n_features: int) -> None:
        known = self.landmarks.shape[1]
        if n_features != known:
            raise ValueError(f"X has {n_features} features but the kernel was learned on {known}.")

    def _coordinates(self, X: NDArray) -> NDArray:
        return self.hyper_kernel.items(X, self.landmarks) @ self.projection

    def _numbers(self, *arrays: NDArray) -> list[NDArray]:
        """Numbers of rows, the same for equal ones: of a training item its index, of new items larger ones."""
        distinct = find_copies(np.vstack([self.items, *arrays]))
        first = np.unique(distinct, return_index=True)[1][distinct]
        return np.split(first, np.cumsum([len(self.items), *map(len, arrays)]))[1:-1]

    def _prepare(self, X: NDArray, Y: NDArray) -> Any:
        return self._coordinates(Y), *self._numbers(X, Y)

    def _evaluate(self, X, Y, out, prepared, rows, columns):
        right, x, y = prepared
        x = x[rows]
        left = self._coordinates(X)
        old_x = np.flatnonzero(x < len(self.items))
        old_y = np.flatnonzero(y < len(self.items))
        values = (left @ self.core) @ right.T
        values[:, old_y] = left @ self.item_coef[:, y[old_y]]
        values[old_x] = (right @ self.item_coef[:, x[old_x]]).T
        same = x[:, None] == y
        trends = self.hyper_kernel.trends(X, Y, self.knots, same)
        for coef, trend in zip(self.trend_coef, trends):
            values += coef * trend
        values[np.ix_(old_x, old_y)] = self.item_values[np.ix_(x[old_x], y[old_y])]
        out[...] = values
