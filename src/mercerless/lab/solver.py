"""Regression on local kernels: the coefficients in closed form, the bandwidths by safeguarded descent.

``weight`` are always the weights of the rows, nonnegative and about one on average.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lu_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from mercerless.core.linalg import factorize, shifted_systems
from mercerless.core.memory import row_blocks
from mercerless.kernels.local import FixedPoints


@dataclass(frozen=True)
class SolverLimits:
    """Bounds of a descent, and sizes of blocks."""

    #: Bounds of log bandwidths of standardized features that all centers share ...
    shared_bounds: tuple[float, float] = (-2.0, 8.0)
    #: ... and of those of single centers.
    local_bounds: tuple[float, float] = (-4.5, 8.0)
    #: Bounds of the log ridge.
    ridge_bounds: tuple[float, float] = (float(np.log(1e-9)), float(np.log(30.0)))
    #: A center sees no row if the kernel sums to less than this over the rows besides the nearest.
    fewest_seen: float = 0.5
    #: Smallest residual that has a logarithm, for constant targets.
    tiny: float = 1e-300
    #: Blocks in double precision of so many bytes stay in the cache.
    cast_bytes: int = 2**21
    #: Once a large array was freed, glibc keeps the pages of smaller ones for the next instead of returning them to the
    #: system, which for the many temporary matrices of a descent takes as long as computing them. Harmless elsewhere;
    #: glibc learns from nothing larger than this.
    largest_kept: int = 2**25 - 2**14


LIMITS = SolverLimits()


class Evaluation(NamedTuple):
    """An objective at one matrix K: its value, its derivatives, and the coefficients that it eliminated."""

    value: float
    kernel_gradient: NDArray  # (n, m), in every entry of K
    ridge_gradient: float  # in log(ridge)
    coef: NDArray  # (m + q, n_outputs), of the columns of [K, F]


class State(NamedTuple):
    """A point of a descent."""

    iteration: int
    value: float
    log_bandwidths: NDArray  # of shape () or (d,) if they are shared, or (m, d)
    log_ridge: float
    # the largest entry of the projected gradient here, relative to that at the start
    certificate: float = 1.0


class Path(NamedTuple):
    """A descent in the bandwidths."""

    end: State
    values: NDArray  # the objective after every iteration, the start first; never increasing

    @property
    def certificate(self) -> float:
        """That of the end."""
        return self.end.certificate


@dataclass(frozen=True)
class LocalRegression:
    """Rows, centers and targets, and the objective of the bandwidths of the centers.

    In float32 X and S the kernel is evaluated in float32; the algebra stays in float64.
    """

    kernel: Callable[..., Any]  # kernel(bandwidths) is a kernel with pullback(X, S, G, K)
    objective: Callable[..., Evaluation]  # of K, F, Y, ridge and weight
    X: NDArray
    S: NDArray
    Y: NDArray
    fixed: Callable[[NDArray], NDArray]  # fixed(X) are columns beside those of the kernel
    weight: NDArray

    @cached_property
    def F(self) -> NDArray:
        """The fixed columns of the rows."""
        return self.fixed(self.X)

    @cached_property
    def points(self) -> FixedPoints:
        """The kernel between the rows and the centers, for any bandwidths."""
        return FixedPoints(self.kernel, self.X, self.S)

    def predict(self, state: State, X: NDArray) -> NDArray:
        """Predictions for X with the coefficients that belong to the state."""
        kernel = self.kernel(np.exp(state.log_bandwidths))
        ridge = np.exp(state.log_ridge)
        coef = self.objective(kernel(self.X, self.S), self.F, self.Y, ridge, self.weight).coef
        return np.hstack([kernel(X, self.S), self.fixed(X)]) @ coef


def gram(Phi: NDArray, Y: NDArray) -> tuple[NDArray, NDArray]:
    """``Phi.T @ Phi`` and ``Phi.T @ Y``, accumulated in float64 whatever the dtype of Phi."""
    if Phi.dtype == np.float64:
        return Phi.T @ Phi, Phi.T @ Y
    A = np.zeros((Phi.shape[1],) * 2)
    B = np.zeros((Phi.shape[1], Y.shape[1]))
    for rows in row_blocks(len(Phi), 8 * Phi.shape[1], LIMITS.cast_bytes):
        block = Phi[rows].astype(np.float64)
        A += block.T @ block
        B += block.T @ Y[rows]
    return A, B


def evidence(K: NDArray, F: NDArray, Y: NDArray, ridge: float, weight: NDArray) -> Evaluation:
    """Minus the log evidence of ``Y = [K, F] coef + noise``, per row and up to constants.

    ``E = log Q + (logdet A - p log(ridge N)) / N`` with ``A = Phi^T Phi + ridge N I``, ``Phi = [K, F]``,
    ``coef = A^-1 Phi^T Y``, ``Q = |Y - Phi coef|^2 / N + ridge |coef|^2``: the coefficients have a Gaussian prior of
    variance ``noise / (ridge N)``, and the noise is eliminated. Unlike a squared error, E has a minimum in the ridge.

    K is the kernel matrix (n, m), F are fixed columns (n, q), Y the targets (n, n_outputs), which share the noise.
    The derivatives are exact. Cost ``O(n p^2)``.
    """
    Phi, Y, N = _weighted(K, F, Y, weight)
    p = Phi.shape[1]
    m = K.shape[1]
    A, B = gram(Phi, Y)
    A[np.diag_indices(p)] += ridge * N
    factor = factor_of(A)
    coef = cho_solve(factor, B, check_finite=False)
    R = _residual(Phi, coef, Y)
    penalty = ridge * np.sum(coef * coef)
    Q = max(np.sum(R * R) / N + penalty, LIMITS.tiny)
    logdet = 2 * np.sum(np.log(np.diag(factor[0])))
    value = np.log(Q) + (logdet - p * np.log(ridge * N)) / N
    inverse = inverse_of(factor)  # the derivative of logdet(A)
    ridge_gradient = penalty / Q + ridge * np.trace(inverse) - p / N
    G = (inverse[:m] * (2 / N)).astype(Phi.dtype) @ Phi.T
    G += (coef[:m] * (2 / (N * Q))).astype(Phi.dtype) @ R.T.astype(Phi.dtype)
    return Evaluation(float(value), _unweighted(G, weight), float(ridge_gradient), coef)


def interpolation(
    K: NDArray, F: NDArray, Y: NDArray, ridge: float, weight: NDArray, *, support: NDArray
) -> Evaluation:
    """The paper's objective: interpolate the support data, measure the squared error on the other rows.

    ``coef = (K_ss + ridge I)^-1 Y_s``, value ``mean over the other rows of |K coef - Y|^2`` (its equation 12). F must
    have no columns; `support` are the rows of K that belong to the centers, in the order of the columns. One LU
    factorization serves the solve and the adjoint. ``K_ss`` is not symmetric, so ``K_ss + ridge I`` can be singular for
    a positive ridge: then LinAlgError is raised.
    """
    if F.shape[1]:
        raise ValueError(
            "The interpolation objective has one equation per support point, no room for fixed "
            "columns."
        )
    K = K.astype(np.float64, copy=False)
    rest = np.ones(len(K), dtype=bool)
    rest[support] = False
    A = K[support].astype(np.float64)
    A[np.diag_indices(len(A))] += ridge
    factor = factorize(A, "K + ridge I is singular on the support; change the ridge.")
    coef = lu_solve(factor, Y[support], check_finite=False)
    w = weight[rest]
    N = np.sum(w) or 1.0  # without other rows the value is 0
    residual = K[rest] @ coef - Y[rest]
    value = np.sum(w[:, None] * residual**2) / N
    R = residual * w[:, None]
    U = lu_solve(factor, K[rest].T @ R * (2 / N), trans=1, check_finite=False)
    G = np.empty(K.shape)
    G[rest] = (2 / N) * R @ coef.T
    G[support] = -U @ coef.T
    return Evaluation(float(value), G, float(-ridge * np.sum(U * coef)), coef)


def initial_state(
    problem: LocalRegression, widths: NDArray | Sequence[float], ridges: NDArray | Sequence[float]
) -> tuple[float, float, float]:
    """The smallest `evidence` of a grid of shared bandwidths and ridges, and its logarithms of both.

    One tridiagonal form per width serves all ridges. All widths are tried, since the evidence can have several minima.
    Widths at which centers are close to no row but their own are skipped if there are others: the evidence can be
    smallest there (the linear part alone), but it has no slope.
    """
    X = problem.X
    n = len(problem.X)
    total = np.sum(np.square(_weighted(X, problem.F, problem.Y, problem.weight)[1]))
    ridges = np.asarray(ridges)

    def trial(width: float) -> tuple[bool, float, float, float]:
        """Whether centers see no rows, the least evidence, the log width, and the log ridge."""
        K = problem.points.value(float(width))
        blind = bool(np.median(K.sum(axis=0) - K.max(axis=0)) < LIMITS.fewest_seen)
        A, B = gram(*_weighted(K, problem.F, problem.Y, problem.weight)[:2])
        explained, logdet = shifted_systems(A, B, ridges * n)
        Q = np.maximum((total - explained) / n, LIMITS.tiny)
        values = np.log(Q) + (logdet - len(A) * np.log(ridges * n)) / n
        k = int(np.argmin(values))
        return blind, float(values[k]), float(np.log(width)), float(np.log(ridges[k]))

    return min(trial(width) for width in widths)[1:]


def descend(
    problem: LocalRegression,
    log_bandwidths: NDArray,
    log_ridge: float,
    *,
    anchor: NDArray | None = None,
    pull: float = 0.0,
    learn_ridge: bool = True,
    max_iter: int = 100,
    tol: float = 1e-9,
    watch: Callable[[State], bool] | None = None,
) -> Path:
    """Minimize ``objective(k(X, S), F, Y, ridge) + pull |log_bandwidths - anchor|^2`` in log bandwidths and log ridge.

    L-BFGS within bounds: every accepted step lowers the objective, so the path cannot diverge; it ends at a stationary
    point, not necessarily the global minimum, since the objective is not convex.

    `log_bandwidths`, of shape (), (d,) or (m, d), and `log_ridge` are the start; the shape decides which bandwidths
    are shared. None as the anchor means the start. The descent ends when the mean decrease of the last five iterations
    is below `tol`, or when `watch`, called with the state after every iteration, returns True.
    """
    shape = np.shape(log_bandwidths)
    bounds = LIMITS.local_bounds if len(shape) == 2 else LIMITS.shared_bounds
    start = np.clip(np.ravel(log_bandwidths), *bounds)
    base = start
    if anchor is not None:
        base = np.ravel(np.broadcast_to(anchor, shape))
    ridge_bounds = LIMITS.ridge_bounds if learn_ridge else (log_ridge, log_ridge)
    box = np.array([bounds] * start.size + [ridge_bounds])
    n_bytes = 4 * problem.X.itemsize * len(problem.X) * len(problem.S)
    np.empty(min(LIMITS.largest_kept, n_bytes), dtype=np.uint8)
    pulled = _Pulled(problem, shape, base, pull, box)
    z0 = np.append(start, np.clip(log_ridge, *ridge_bounds))
    values = [pulled(z0)[0]]
    norms = pulled.norms[:]  # of the accepted points, the start first

    def state(z: NDArray) -> State:
        log_bandwidths = z[:-1].reshape(shape).copy()
        certificate = relative_norm(norms)
        return State(len(values) - 1, values[-1], log_bandwidths, float(z[-1]), certificate)

    def after(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun))
        norms.append(pulled.norms[-1])
        stop = watch is not None and watch(state(intermediate_result.x))
        if stop or (len(values) > 5 and values[-6] - values[-1] < 5 * tol):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 3 * max_iter + 20, "ftol": 0.0, "gtol": 1e-7}
    result = minimize(
        pulled, z0, jac=True, method="L-BFGS-B", bounds=box, callback=after, options=options
    )
    end = result.x if np.isfinite(result.fun) else z0
    return Path(state(end), np.array(values))


def projected_norm(z: NDArray, gradient: NDArray, box: NDArray) -> float:
    """The largest entry of the gradient, projected to the box (n, 2)."""
    low, high = box.T
    return float(np.max(np.abs(np.clip(z - gradient, low, high) - z)))


def relative_norm(norms: Sequence[float]) -> float:
    """The last norm of a descent relative to the first: 0 at a stationary point, 1 without any step."""
    if not norms:
        return 1.0
    return float(norms[-1] / norms[0]) if norms[0] > 0 else 0.0


class _Pulled:
    """The objective of `descend` and its gradient in ``[log_bandwidths, log_ridge]``."""

    def __init__(
        self,
        problem: LocalRegression,
        shape: tuple[int, ...],
        base: NDArray,
        pull: float,
        box: NDArray,
    ):
        self.problem = problem
        self.shape = shape
        self.base = base
        self.pull = pull
        self.box = box
        self.norms: list[float] = []  # of the projected gradient, one per evaluation

    def __call__(self, z: NDArray) -> tuple[float, NDArray]:
        of = self.problem
        widths = np.exp(z[:-1]).reshape(self.shape).astype(of.X.dtype)
        K = of.points.value(widths)
        try:
            at = of.objective(K, of.F, of.Y, np.exp(z[-1]), of.weight)
        # a singular system: reject the step; the line search shortens it
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(z)
        step = z[:-1] - self.base
        gradient = np.append(
            of.points.pullback(widths, at.kernel_gradient, K) + 2 * self.pull * step,
            at.ridge_gradient,
        )
        lowest_ridge, highest_ridge = self.box[-1]
        gradient[-1] *= lowest_ridge < highest_ridge
        self.norms.append(projected_norm(z, gradient, self.box))
        return at.value + self.pull * (step @ step), gradient


class Moments(NamedTuple):
    """Sums over rows that determine the coefficients; those of several blocks of rows add up."""

    gram: NDArray  # sum_i w_i Phi_i Phi_i^T, of shape (p, p)
    target: NDArray  # sum_i w_i Phi_i Y_i^T, of shape (p, n_outputs)
    weight: float  # sum_i w_i

    def merge(self, other: "Moments") -> "Moments":
        """The moments of the rows of both."""
        return Moments(
            self.gram + other.gram, self.target + other.target, self.weight + other.weight
        )


def moments(
    X: NDArray, Y: NDArray, weight: NDArray, *, kernel: Callable, S: NDArray, fixed: Callable
) -> Moments:
    """The moments of ``Phi = [k(X, S), fixed(X)]`` on a block of rows."""
    Phi = np.hstack([kernel(X, S).astype(np.float64, copy=False), fixed(X)])
    # the root in both factors, so that the product is that of a matrix with itself
    root = np.sqrt(weight)[:, None]
    Phi *= root
    return Moments(Phi.T @ Phi, Phi.T @ (Y * root), float(np.sum(weight)))


def solve_coefficients(sums: Moments, ridge: float) -> NDArray:
    """``argmin over coef of sum_i w_i |Y_i - Phi_i coef|^2 + ridge sum(w) |coef|^2``, of shape (p, n_outputs)."""
    A = sums.gram + ridge * sums.weight * np.eye(len(sums.gram))
    return cho_solve(factor_of(A), sums.target, check_finite=False)


def _weighted(K: NDArray, F: NDArray, Y: NDArray, weight: NDArray) -> tuple[NDArray, NDArray, int]:
    """``[K, F]`` in column order and the targets, both times the roots of the weights, and the number of rows."""
    p = K.shape[1] + F.shape[1]
    m = K.shape[1]
    columns = np.empty((p, len(K)), dtype=K.dtype)
    columns[:m] = K.T
    columns[m:] = F.T
    if _are_ones(weight):
        return columns.T, Y, len(K)
    root = np.sqrt(weight)
    columns *= root.astype(K.dtype)
    return columns.T, Y * root[:, None], len(K)


def _are_ones(weight: NDArray) -> bool:
    """Whether all weights are one, as they mostly are: then a pass over a matrix is saved."""
    return bool(np.all(weight == 1.0))


def _unweighted(G: NDArray, weight: NDArray) -> NDArray:
    """The derivative in K from that in the weighted columns; G has one line per column."""
    if not _are_ones(weight):
        G *= np.sqrt(weight).astype(G.dtype)
    return G.T


def _residual(Phi: NDArray, coef: NDArray, Y: NDArray) -> NDArray:
    """``Phi @ coef - Y`` in double precision."""
    if Phi.dtype == np.float64:
        return Phi @ coef - Y
    blocks = row_blocks(len(Phi), 8 * Phi.shape[1], LIMITS.cast_bytes)
    return np.concatenate([Phi[rows].astype(np.float64) @ coef - Y[rows] for rows in blocks])


def factor_of(A: NDArray) -> tuple[NDArray, bool]:
    """The lower Cholesky factor of a symmetric matrix, which is overwritten.

    LAPACK wants columns to be contiguous; those of the transpose are, and need not be copied.
    """
    return cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)


def inverse_of(factor: tuple[NDArray, bool]) -> NDArray:
    """The inverse of a matrix from its lower Cholesky factor, which is overwritten.

    It takes a third of the time of solving for the identity.
    """
    inverse, info = dpotri(factor[0], lower=1, overwrite_c=1)
    if info:
        raise np.linalg.LinAlgError("The Cholesky factor is singular.")
    is_below = np.tri(len(inverse), k=-1, dtype=bool)
    np.copyto(inverse.T, inverse, where=is_below)
    return inverse
