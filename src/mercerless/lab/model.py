"""Parts of a local model: scaled rows, the scaling, and the fitted function."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import reduce_rows
from mercerless.core.units import BLOCK_BYTES, Standardizer
from mercerless.kernels.local import LocalExponential, LocalGaussian, LocalLaplace

FORMS: dict[str, Any] = {
    "gaussian": LocalGaussian,
    "laplace": LocalLaplace,
    "exponential": LocalExponential,
}


class Rows(NamedTuple):
    """Scaled rows in memory, standardized targets, and weights of mean one."""

    X: NDArray
    Y: NDArray
    weight: NDArray

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.X)

    def take(self, rows: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.X[rows], self.Y[rows], self.weight[rows])


class Learned(NamedTuple):
    """The support and its bandwidths; without coefficients."""

    support: NDArray  # positions among the rows
    log_bandwidths: NDArray  # (m, d)
    log_ridge: float
    losses: NDArray  # the objective after every iteration
    growth: list[tuple[int, float]]  # support points and the largest squared error, round by round
    certificate: float  # the projected gradient at the end relative to the start


class Scaling(NamedTuple):
    """Features as the kernel sees them: clipped to bounds, then moved and divided."""

    center: NDArray
    scale: NDArray  # inf for constant features
    low: NDArray
    high: NDArray

    @classmethod
    def standard(cls, X: Any, weight: NDArray | None = None) -> Scaling:
        """Standardized; new values are clipped a quarter of the range beyond the training data."""
        lowest, highest = _ranges(X)
        margin = (highest - lowest) / 4
        units = Standardizer.fit(X, weight)
        return cls(units.mean, units.scale, lowest - margin, highest + margin)

    @classmethod
    def to_range(cls, X: Any) -> Scaling:
        """In [-1, 1], as the paper scales them; new values are not clipped."""
        lowest, highest = _ranges(X)
        half = (highest - lowest) / 2
        unbounded = np.full(len(half), np.inf)
        scale = np.where(half > 0, half, np.inf)
        return cls((lowest + highest) / 2, scale, -unbounded, unbounded)

    def __call__(self, X: NDArray, dtype: Any = np.float64) -> NDArray:
        """Scaled rows."""
        Z = (np.clip(X, self.low, self.high) - self.center) / self.scale
        return Z.astype(dtype, copy=False)


def _ranges(X: Any) -> NDArray:
    """The smallest and the largest value of every feature."""
    extremes = reduce_rows(_extremes, np.minimum, [X], 8.0 * X.shape[1], BLOCK_BYTES)
    return extremes * [[1.0], [-1.0]]


def _extremes(X: NDArray) -> NDArray:
    return np.stack([X.min(axis=0), -X.max(axis=0)]).astype(np.float64)


class LocalForm(NamedTuple):
    """The function that a LAB model has learned.

    Attributes
    ----------
    name : str
        "gaussian", "laplace" or "exponential".
    kernel : Kernel
        The kernel with its bandwidths, which act on scaled features.
    support : ndarray of shape (n_support,)
        The training rows that are support points.
    support_vectors, centers : ndarray of shape (n_support, n_features)
        These rows, as they were given and scaled; the kernel is evaluated in the precision of the centers.
    dual_coef : ndarray of shape (n_functions, n_support)
        The coefficients.
    coef : ndarray of shape (n_functions, n_features)
        The coefficients of the scaled features themselves.
    intercept : ndarray of shape (n_functions,)
        The constants.
    alpha : float
        The ridge.
    scaling : callable
        Scales features.
    """

    name: str
    kernel: Any
    support: NDArray
    support_vectors: NDArray
    centers: NDArray
    dual_coef: NDArray
    coef: NDArray
    intercept: NDArray
    alpha: float
    scaling: Scaling

    @property
    def bandwidths(self) -> NDArray:
        """The bandwidths of every support point, (n_support, n_features)."""
        return np.broadcast_to(self.kernel.bandwidths, self.centers.shape)

    def __call__(self, X: NDArray) -> NDArray:
        """``kernel(Z, centers) @ dual_coef.T + intercept + Z @ coef.T`` with Z the scaled X."""
        Z = self.scaling(X, self.centers.dtype)
        K = self.kernel(Z, self.centers)
        return K @ self.dual_coef.T + self.intercept + Z @ self.coef.T

    def compare(self, X: NDArray) -> NDArray:
        """The kernel matrix of rows and centers."""
        return self.kernel(self.scaling(X, self.centers.dtype), self.centers)

    def in_units(self, units: Standardizer) -> LocalForm:
        """The form for targets that were standardized by these."""
        return self._replace(
            dual_coef=self.dual_coef * units.spread[:, None],
            coef=self.coef * units.spread[:, None],
            intercept=units.undo(self.intercept),
        )
