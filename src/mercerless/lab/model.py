"""Parts of a local model: rows, settings, expansions, fitted forms, and the coefficients of given bandwidths."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from mercerless.core.scaling import FeatureScaling
from mercerless.core.validation import weights_or_ones
from mercerless.kernels.local import LocalExponential, LocalGaussian, LocalLaplace
from mercerless.lab.solver import (
    Moments,
    factor_of,
    interpolation,
    moments,
    noise_variances,
    single_exponential,
    solve_coefficients,
)

FORMS: dict[str, Any] = {
    "gaussian": LocalGaussian,
    "laplace": LocalLaplace,
    "exponential": LocalExponential,
}
# sums a function of X, Y and weight over blocks of all rows, or a limit of them
Total = Callable[..., Moments]


class Settings(NamedTuple):
    """Settings of a fit."""

    objective: str = "evidence"
    n_support: int = 100  # the initial number when growing
    selection: str = "kmeans"
    ridge: float | None = None  # None learns it (with the evidence) or takes 1e-5
    max_iter: int = 150  # of the local stage
    growth: float | None = None  # the squared error above which training rows become support points
    growth_step: int | None = None  # rows added in every round; None: at most a tenth of n_support
    max_support: int = 1000  # at which growth stops
    seed: int = 0
    linear: bool = True  # whether the features enter linearly as well
    optimizers: tuple = ()  # steps on batches as in the paper, one after the other; none: L-BFGS

    @property
    def learns_ridge(self) -> bool:
        return self.objective == "evidence" and self.ridge is None

    @property
    def log_ridge(self) -> float:
        """Logarithm of the ridge that is not learned."""
        return float(np.log(self.ridge or 1e-5))

    @property
    def grows(self) -> bool:
        return self.growth is not None

    def fixed(self, X: NDArray) -> NDArray:
        """The columns beside those of the kernel, for which interpolation has no room."""
        if self.objective == "interpolation":
            return np.zeros((len(X), 0))
        return fixed_columns(X, self.linear)


@dataclass(frozen=True)
class Rows:
    """Scaled rows in memory, standardized targets, and weights of mean one: all one unless given."""

    X: NDArray
    Y: NDArray
    weight: Any = None  # an array after __post_init__

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", weights_or_ones(self.weight, len(self.X)))

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Any) -> "Rows":
        """Some of the rows."""
        return Rows(self.X[rows], self.Y[rows], self.weight[rows])

    def joined(self, other: "Rows | None") -> "Rows":
        """With those of another."""
        if other is None:
            return self
        return Rows(
            np.vstack([self.X, other.X]),
            np.vstack([self.Y, other.Y]),
            np.concatenate([self.weight, other.weight]),
        )


class Projected(NamedTuple):
    """A kernel of linearly mapped rows."""

    kernel: Any
    projection: NDArray | None = None  # (d, r)

    @property
    def plain(self) -> Any:
        """The kernel itself, if nothing is mapped."""
        if self.projection is None:
            return self.kernel
        return self

    def __call__(self, X: NDArray, S: NDArray) -> NDArray:
        """``kernel(X A, S A)``, in float64 if rows are mapped; the exponential of float32 rows is in float32."""
        is_single = X.dtype == S.dtype == np.float32
        if self.projection is not None:
            X = X @ self.projection
            S = S @ self.projection
        widths = self.kernel.bandwidths
        if is_single and isinstance(self.kernel, LocalExponential) and np.ndim(widths) < 2:
            return single_exponential(X / widths, S / widths)
        return self.kernel(X, S)


class Expansion(NamedTuple):
    """One weighted sum of kernels, in scaled units."""

    form: str
    support: NDArray  # (m,), the rows that are centers
    log_bandwidths: NDArray  # (m, d), or shared: (d,) or ()
    log_ridge: float
    # of the linear kernel if all rows are centers; None for local models
    linear_weight: float | None = None
    coef: NDArray = np.zeros((0, 0))  # (m, n_outputs)
    # (1 + d, n_outputs): the intercept and the coefficients of the features
    linear: NDArray = np.zeros((0, 0))
    weight: float = 1.0  # in the average
    projection: NDArray | None = None  # (d, r), a linear map of the features that the kernel sees
    # of the descent that learned it, see `State`; 0 for grids and closed forms
    certificate: float = 0.0

    @property
    def kernel(self) -> Any:
        widths = np.exp(self.log_bandwidths)
        kernel = FORMS[self.form](widths if np.ndim(widths) else float(widths))
        return Projected(kernel, self.projection).plain

    def predict(self, X: NDArray, source: NDArray) -> NDArray:
        """Predictions for X; `source` has the rows that `support` counts."""
        K = self.kernel(X, source[self.support])
        return K @ self.coef + self.linear[0] + X @ self.linear[1:]


class LocalForm(NamedTuple):
    """One kernel form of a fitted LAB model; the model predicts the sum of ``weight * form(X)``.

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
    weight : float
        The weight in the average; all sum to one.
    scaling : callable
        Scales features.
    projection : ndarray of shape (n_features, n_directions) or None
        A linear map of the scaled features, of which the kernel is a function; None for the features themselves.
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
    weight: float
    scaling: FeatureScaling
    projection: NDArray | None = None

    @property
    def bandwidths(self) -> NDArray:
        """The bandwidths of every support point, (n_support, n_features); of mapped features along each alone."""
        widths = self.kernel.bandwidths
        if self.projection is not None:
            widths = widths / np.linalg.norm(self.projection, axis=1)
        return np.broadcast_to(widths, self.centers.shape)

    @property
    def n_parameters(self) -> int:
        """Numbers in the nonlinear part."""
        arrays = [self.centers, self.kernel.bandwidths, self.dual_coef]
        if self.projection is not None:
            arrays.append(self.projection)
        return sum(np.size(array) for array in arrays)

    def __call__(self, X: NDArray) -> NDArray:
        """``kernel(Z A, centers A) @ dual_coef.T + intercept + Z @ coef.T`` with Z the scaled X, A the projection."""
        Z = self.scaling(X, self.centers.dtype)
        return self._compare_scaled(Z) @ self.dual_coef.T + self.intercept + Z @ self.coef.T

    def compare(self, X: NDArray) -> NDArray:
        """The kernel matrix of rows and centers."""
        return self._compare_scaled(self.scaling(X, self.centers.dtype))

    def _compare_scaled(self, Z: NDArray) -> NDArray:
        return Projected(self.kernel, self.projection)(Z, self.centers)

    def numbered(self, used: NDArray) -> "LocalForm":
        """With support points that are counted among all rows given to fit, of which these were used."""
        return self._replace(support=used[self.support])

    def in_units(self, center: NDArray, scale: NDArray) -> "LocalForm":
        """The form for targets that were standardized by these."""
        return self._replace(
            dual_coef=self.dual_coef * scale[:, None],
            coef=self.coef * scale[:, None],
            intercept=self.intercept * scale + center,
        )


def has_linear_part(n_features: int, n_support: int, many_features: int = 50) -> bool:
    """Whether the features enter linearly as well: not if they are many, and more than the support points."""
    return n_features <= max(many_features, n_support)


def fixed_columns(X: NDArray, linear: bool = True) -> NDArray:
    """Ones and, if `linear`, the features divided by ``sqrt(d)``: the linear part of a local model, in float64."""
    ones = np.ones((len(X), 1))
    if not linear:
        return ones
    return np.hstack([ones, X / np.sqrt(X.shape[1])])


def ridge_factor(model: Expansion, rows: Rows) -> Any:
    """The factorization of the matrix of a kernel ridge model with all rows as centers, in double precision.

    A matrix that rounding has made indefinite is shifted until it is not.
    """
    X = np.asarray(rows.X, dtype=np.float64)
    shift = 0.0
    K = model.kernel(X, X)
    A = (K + K.T) / 2
    if model.linear_weight:
        A += model.linear_weight * (X @ X.T / X.shape[1] + 1)
    diagonal = np.diag_indices(len(A))
    A[diagonal] += np.exp(model.log_ridge) * noise_variances(rows.weight, len(rows))
    while True:
        shifted = A.copy()
        shifted[diagonal] += shift
        try:
            return factor_of(shifted)
        except np.linalg.LinAlgError:
            shift = max(100 * shift, 1e-12 * float(np.trace(A)) / len(A))


def with_coefficients(
    model: Expansion,
    rows: Rows,
    settings: Settings = Settings(),  # noqa: B008  # immutable
    total: Total | None = None,
) -> Expansion:
    """Solve for the coefficients; with `total` from all rows, including these."""
    n, d = rows.X.shape
    m = len(model.support)
    if model.linear_weight is not None:
        coef = cho_solve(ridge_factor(model, rows), rows.Y, check_finite=False)
        linear = model.linear_weight * np.vstack([coef.sum(axis=0), rows.X.T @ coef / d])
        return model._replace(coef=coef, linear=linear)
    kernel = model.kernel
    S = rows.X[model.support]
    ridge = float(np.exp(model.log_ridge))
    linear = np.zeros((1 + d, rows.Y.shape[1]))
    if settings.objective == "interpolation":
        at = interpolation(
            kernel(rows.X, S), np.zeros((n, 0)), rows.Y, ridge, support=model.support
        )
        return model._replace(coef=at.coef, linear=linear)
    function = partial(moments, kernel=kernel, S=S, fixed=settings.fixed)
    if total is None:
        sums = function(rows.X, rows.Y, rows.weight)
    else:
        sums = total(function)
    coef = solve_coefficients(sums, ridge)
    linear[: len(coef) - m] = coef[m:]
    linear[1:] /= np.sqrt(d)
    return model._replace(coef=coef[:m], linear=linear)
