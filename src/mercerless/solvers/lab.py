"""Regression on local kernels: the coefficients in closed form, the bandwidths by safeguarded descent."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh, lu_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from mercerless._memory import row_blocks
from mercerless.solvers.asymmetric import factorize

# log bandwidths of standardised features: the shared ones, and the local ones
SHARED_BOUNDS = (-2.0, 8.0)
LOCAL_BOUNDS = (-4.5, 8.0)
RIDGE_BOUNDS = (np.log(1e-9), np.log(30.0))
_CAST_BYTES = 2**21  # blocks in double precision that stay in the cache
# Once a large array was freed, glibc keeps the pages of smaller ones for the next instead of returning them to the
# system, which for the many temporary matrices of a descent takes as long as computing them. Harmless elsewhere; glibc
# learns from nothing larger than this.
_LARGEST_KEPT = 2**25 - 2**14
_TINY = 1e-300  # what is left of constant targets


class Evaluation(NamedTuple):
    """An objective at one matrix: its value, its derivatives, and the coefficients that it eliminated.

    Parameters
    ----------
    value : float
        The objective.
    kernel_gradient : ndarray of shape (n, m)
        Its derivative in every entry of K.
    ridge_gradient : float
        Its derivative in ``log(ridge)``.
    coef : ndarray of shape (m + q, n_outputs)
        The coefficients of the columns of ``[K, F]``.
    """

    value: float
    kernel_gradient: NDArray
    ridge_gradient: float
    coef: NDArray


class Path(NamedTuple):
    """A descent in the bandwidths.

    Parameters
    ----------
    iterations : list of int
        The iterations whose state was kept.
    log_bandwidths : list of ndarray
        The logarithms of the bandwidths at these iterations.
    log_ridges : list of float
        The logarithm of the ridge at these iterations.
    values : ndarray
        The objective after every iteration, the start first; never increasing.
    stationarity : float
        Certificate: the largest entry of the projected gradient at the end, relative to that at the start.
    n_evaluations : int
        Evaluations of the objective.
    """

    iterations: list
    log_bandwidths: list
    log_ridges: list
    values: NDArray
    stationarity: float
    n_evaluations: int


def gram(Phi: NDArray, Y: NDArray) -> tuple[NDArray, NDArray]:
    """``Phi.T @ Phi`` and ``Phi.T @ Y``, accumulated in float64 whatever the dtype of Phi.

    Parameters
    ----------
    Phi : ndarray of shape (n, p)
        The columns.
    Y : ndarray of shape (n, n_outputs)
        The targets.

    Returns
    -------
    A : ndarray of shape (p, p)
        The Gram matrix.
    B : ndarray of shape (p, n_outputs)
        The moments.
    """
    if Phi.dtype == np.float64:
        return Phi.T @ Phi, Phi.T @ Y
    A, B = np.zeros((Phi.shape[1],) * 2), np.zeros((Phi.shape[1], Y.shape[1]))
    for rows in row_blocks(len(Phi), 8 * Phi.shape[1], _CAST_BYTES):
        block = Phi[rows].astype(np.float64)
        A += block.T @ block
        B += block.T @ Y[rows]
    return A, B


def evidence(K: NDArray, F: NDArray, Y: NDArray, ridge: float, weights: NDArray | None = None) -> Evaluation:
    """Minus the log evidence of ``Y = [K, F] coef + noise``, per row and up to constants.

    ``E = log Q + (logdet A - p log(ridge N)) / N`` with ``A = Phi^T Phi + ridge N I``, ``Phi = [K, F]``,
    ``coef = A^-1 Phi^T Y``, ``Q = |Y - Phi coef|^2 / N + ridge |coef|^2``: the coefficients have a Gaussian prior of
    variance ``noise / (ridge N)``, and the noise is eliminated. Unlike a squared error, E has a minimum in the ridge.

    Parameters
    ----------
    K : ndarray of shape (n, m)
        The kernel matrix.
    F : ndarray of shape (n, q)
        Fixed columns (ones, features).
    Y : ndarray of shape (n, n_outputs)
        The targets; the outputs share noise and ridge.
    ridge : float
        The positive ridge.
    weights : ndarray of shape (n,) or None, default=None
        Square roots of the row weights, whose squares have mean 1.

    Returns
    -------
    Evaluation
        The value and its exact derivatives. Cost ``O(n p^2)``.
    """
    Phi, Y, N = _weighted(K, F, Y, weights)
    p, m = Phi.shape[1], K.shape[1]
    A, B = gram(Phi, Y)
    A[np.diag_indices(p)] += ridge * N
    factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    coef = cho_solve(factor, B, check_finite=False)
    R = _residual(Phi, coef, Y)
    penalty = ridge * np.sum(coef * coef)
    Q = max(np.sum(R * R) / N + penalty, _TINY)
    logdet = 2 * np.sum(np.log(np.diag(factor[0])))
    value = np.log(Q) + (logdet - p * np.log(ridge * N)) / N
    inverse = _inverse(factor)  # the derivative of logdet(A)
    ridge_gradient = penalty / Q + ridge * np.trace(inverse) - p / N
    G = (inverse[:m] * (2 / N)).astype(Phi.dtype) @ Phi.T
    G += (coef[:m] * (2 / (N * Q))).astype(Phi.dtype) @ R.T.astype(Phi.dtype)
    return Evaluation(float(value), _unweighted(G, weights), float(ridge_gradient), coef)


def least_squares(K: NDArray, F: NDArray, Y: NDArray, ridge: float, weights: NDArray | None = None) -> Evaluation:
    """``min over coef of |Y - [K, F] coef|^2 / N + ridge |coef|^2`` (variable projection).

    Parameters
    ----------
    K, F, Y, ridge, weights
        As in `evidence`.

    Returns
    -------
    Evaluation
        The value and its exact derivatives; by the envelope theorem no adjoint system is needed.
    """
    Phi, Y, N = _weighted(K, F, Y, weights)
    m = K.shape[1]
    A, B = gram(Phi, Y)
    A[np.diag_indices(len(A))] += ridge * N
    coef = cho_solve(cho_factor(A, lower=True, overwrite_a=True, check_finite=False), B, check_finite=False)
    R = _residual(Phi, coef, Y)
    penalty = ridge * np.sum(coef * coef)
    G = (coef[:m] * (2 / N)).astype(Phi.dtype) @ R.T.astype(Phi.dtype)
    return Evaluation(float(np.sum(R * R) / N + penalty), _unweighted(G, weights), float(penalty), coef)


def interpolation(
    K: NDArray, F: NDArray, Y: NDArray, ridge: float, weights: NDArray | None = None, *, support: NDArray
) -> Evaluation:
    """The paper's objective: interpolate the support data, measure the squared error on the other rows.

    ``coef = (K_ss + ridge I)^-1 Y_s``, value ``mean over the other rows of |K coef - Y|^2`` (its equation 12).

    Parameters
    ----------
    K, F, Y, ridge, weights
        As in `evidence`; F must have no columns.
    support : ndarray of shape (m,)
        The rows of K that belong to the centres, in the order of the columns.

    Returns
    -------
    Evaluation
        The value and its exact derivatives; one LU factorisation serves the solve and the adjoint. ``K_ss`` is not
        symmetric, so ``K_ss + ridge I`` can be singular for a positive ridge: then LinAlgError is raised.
    """
    if F.shape[1]:
        raise ValueError("The interpolation objective has one equation per support point, no room for fixed columns.")
    K = K.astype(np.float64, copy=False)
    rest = np.ones(len(K), dtype=bool)
    rest[support] = False
    A = K[support].astype(np.float64)
    A[np.diag_indices(len(A))] += ridge
    factor = factorize(A, "K + ridge I is singular on the support; change the ridge.")
    coef = lu_solve(factor, Y[support], check_finite=False)
    w = np.ones(len(K)) if weights is None else weights
    N = np.sum(w[rest] ** 2)
    R = (K[rest] @ coef - Y[rest]) * (w[rest] ** 2)[:, None]
    value = np.sum((R / np.maximum(w[rest], 1e-300)[:, None]) ** 2) / N
    U = lu_solve(factor, K[rest].T @ R * (2 / N), trans=1, check_finite=False)
    G = np.empty(K.shape)
    G[rest] = (2 / N) * R @ coef.T
    G[support] = -U @ coef.T
    return Evaluation(float(value), G, float(-ridge * np.sum(U * coef)), coef)


def shared_evidence(K: NDArray, Y: NDArray, ridge: float, weights: NDArray | None = None) -> Evaluation:
    """Minus the log evidence of kernel ridge regression with all rows as centres, per row and up to constants.

    ``E = log(tr(Y^T coef) / N) + logdet(A) / N`` with ``A = K + ridge D``, ``coef = A^-1 Y``, ``D = diag(1 / w)``: the
    evidence of a Gaussian process with covariance K, symmetric positive semi-definite, its scale eliminated.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    Y : ndarray of shape (n, n_outputs)
        The targets.
    ridge : float
        The positive ridge.
    weights : ndarray of shape (n,) or None, default=None
        Square roots of the row weights.

    Returns
    -------
    Evaluation
        The value and its exact derivatives. Cost ``O(n^3)``.
    """
    n = len(K)
    noise = ridge * (np.ones(n) if weights is None else np.maximum(weights, 1e-8) ** -2)
    A = K + np.diag(noise)
    factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    coef = cho_solve(factor, Y, check_finite=False)
    Q = max(np.sum(Y * coef) / n, _TINY)
    value = np.log(Q) + 2 * np.sum(np.log(np.diag(factor[0]))) / n
    G = _inverse(factor)  # the derivative of logdet(A)
    G -= coef @ coef.T / Q
    G /= n
    return Evaluation(float(value), G, float(np.sum(noise * np.diag(G))), coef)


def initial_state(
    kernel: Callable, X: NDArray, S: NDArray, F: NDArray, Y: NDArray, widths: Sequence[float], ridges: Sequence[float]
) -> tuple[float, float, float]:
    """The shared bandwidth and ridge of a grid with the smallest `evidence`.

    Parameters
    ----------
    kernel : callable
        ``kernel(bandwidths)`` is a kernel.
    X, S, F, Y : ndarray
        Rows, centres, fixed columns and targets.
    widths, ridges : sequence of float
        The grids; one eigendecomposition per width serves all ridges.

    Returns
    -------
    value, log_bandwidth, log_ridge : float
        The smallest evidence value and where it was found.
    """
    n = len(X)
    total = np.sum(np.square(Y))
    best = (np.inf, np.log(widths[0]), np.log(ridges[0]))
    for width in widths:
        Phi = np.hstack([kernel(width)(X, S), F.astype(X.dtype, copy=False)])
        A, B = gram(Phi, Y)
        e, V = eigh(A, overwrite_a=True, check_finite=False)
        e = np.maximum(e, 0)
        q = np.sum(np.square(V.T @ B), axis=1)
        for ridge in ridges:
            shifted = e + ridge * n
            Q = max((total - np.sum(q / shifted)) / n, _TINY)
            value = np.log(Q) + np.sum(np.log(shifted / (ridge * n))) / n
            if value < best[0]:
                best = (value, np.log(width), np.log(ridge))
    return best


def descend(
    kernel: Callable,
    objective: Callable[..., Evaluation],
    X: NDArray,
    S: NDArray,
    F: NDArray,
    Y: NDArray,
    log_bandwidths: NDArray,
    log_ridge: float,
    *,
    anchor: NDArray | None = None,
    pull: float = 0.0,
    bounds: tuple[float, float] = LOCAL_BOUNDS,
    learn_ridge: bool = True,
    max_iter: int = 100,
    keep: Sequence[int] = (),
    weights: NDArray | None = None,
    tol: float = 1e-9,
    on_keep: Callable[[int, NDArray, float], bool] | None = None,
    callback: Callable[[dict], bool] | None = None,
) -> Path:
    """Minimise ``objective(k(X, S), F, Y, ridge) + pull |log_bandwidths - anchor|^2`` in log bandwidths and log ridge.

    L-BFGS within bounds: every accepted step lowers the objective, so the path cannot diverge; a stationary point is
    all that is promised, since the objective is not convex.

    Parameters
    ----------
    kernel : callable
        ``kernel(bandwidths)`` is a kernel with ``pullback(X, S, G, K)``.
    objective : callable
        `evidence`, `least_squares` or `interpolation`, called with K, F, Y, ridge and weights.
    X, S, F, Y : ndarray
        Rows, centres, fixed columns and targets. In float32 X and S the kernel is evaluated in float32; the algebra
        stays in float64.
    log_bandwidths : ndarray of shape (), (d,) or (m, d)
        The start; its shape says which bandwidths are shared.
    log_ridge : float
        The start of the ridge.
    anchor : ndarray or None, default=None
        Where the bandwidths are pulled to; None means the start.
    pull : float, default=0.0
        The strength of the pull.
    bounds : (float, float)
        The range of every log bandwidth.
    learn_ridge : bool, default=True
        Whether the ridge is learned too.
    max_iter : int, default=100
        Iterations.
    keep : sequence of int, default=()
        Iterations whose state is kept; the last one is always kept.
    weights : ndarray of shape (n,) or None, default=None
        Square roots of the row weights.
    tol : float, default=1e-9
        Stop when the mean decrease of the objective in the last five iterations is below this.
    on_keep : callable or None, default=None
        Called with every kept state; True ends the descent.
    callback : callable or None, default=None
        Called after every iteration with ``{"iteration", "value"}``; True ends the descent.

    Returns
    -------
    Path
        The kept states, the curve and the certificate.
    """
    shape = np.shape(log_bandwidths)
    start = np.clip(np.ravel(log_bandwidths), *bounds)
    base = start if anchor is None else np.ravel(np.broadcast_to(anchor, shape))
    ridge_bounds = RIDGE_BOUNDS if learn_ridge else (log_ridge, log_ridge)
    box = np.array([bounds] * start.size + [ridge_bounds])
    np.empty(min(_LARGEST_KEPT, 4 * X.itemsize * len(X) * len(S)), dtype=np.uint8)
    value = _Penalised(kernel, partial(objective, weights=weights), (X, S, F, Y), shape, base, pull, box)
    states: list[tuple[int, NDArray, float]] = []
    z0 = np.append(start, np.clip(log_ridge, *ridge_bounds))
    values = [value(z0)[0]]

    def record(iteration, z):
        states.append((iteration, z[:-1].reshape(shape).copy(), float(z[-1])))
        return on_keep is not None and on_keep(*states[-1])

    def after(intermediate_result):
        values.append(float(intermediate_result.fun))
        iteration = len(values) - 1
        stop = record(iteration, intermediate_result.x) if iteration in keep else False
        if callback is not None:
            stop = callback({"iteration": iteration, "value": values[-1]}) or stop
        if stop or (iteration >= 5 and values[-6] - values[-1] < 5 * tol):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 3 * max_iter + 20, "ftol": 0.0, "gtol": 1e-7}
    result = minimize(value, z0, jac=True, method="L-BFGS-B", bounds=box, callback=after, options=options)
    if not states or states[-1][0] != len(values) - 1:
        record(len(values) - 1, result.x if np.isfinite(result.fun) else z0)
    certificate = value.norms[-1] / value.norms[0] if value.norms and value.norms[0] else 0.0
    iterations, log_widths, log_ridges = (list(part) for part in zip(*states))
    return Path(iterations, log_widths, log_ridges, np.array(values), float(certificate), len(value.norms))


class _Penalised:
    """The objective of `descend` and its gradient in ``[log_bandwidths, log_ridge]``."""

    def __init__(self, kernel, objective, data, shape, base, pull, box):
        self.kernel, self.objective, self.data = kernel, objective, data
        self.shape, self.base, self.pull, self.box = shape, base, pull, box
        self.norms: list[float] = []  # of the projected gradient, one per evaluation

    def __call__(self, z: NDArray) -> tuple[float, NDArray]:
        X, S, F, Y = self.data
        k = self.kernel(np.exp(z[:-1]).reshape(self.shape).astype(X.dtype))
        K = k(X, S)
        try:
            at = self.objective(K, F, Y, np.exp(z[-1]))
        except np.linalg.LinAlgError:  # a singular system: refuse the step, the line search comes back
            return np.inf, np.zeros_like(z)
        step = z[:-1] - self.base
        low, high = self.box.T
        gradient = np.append(k.pullback(X, S, at.kernel_gradient, K) + 2 * self.pull * step, at.ridge_gradient)
        gradient[-1] *= low[-1] < high[-1]
        self.norms.append(float(np.max(np.abs(np.clip(z - gradient, low, high) - z))))
        return at.value + self.pull * (step @ step), gradient


class Moments(NamedTuple):
    """Sums over rows that determine the coefficients; those of several blocks of rows add up.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        ``sum_i w_i Phi_i Phi_i^T``.
    target : ndarray of shape (p, n_outputs)
        ``sum_i w_i Phi_i Y_i^T``.
    weight : float
        ``sum_i w_i``.
    """

    gram: NDArray
    target: NDArray
    weight: float

    def merge(self, other: "Moments") -> "Moments":
        """The moments of the rows of both.

        Parameters
        ----------
        other : Moments
            Those of other rows.

        Returns
        -------
        Moments
            The sums.
        """
        return Moments(self.gram + other.gram, self.target + other.target, self.weight + other.weight)


def moments(X: NDArray, Y: NDArray, w: NDArray | None, *, kernel: Callable, S: NDArray, fixed: Callable) -> Moments:
    """The moments of ``Phi = [k(X, S), fixed(X)]`` on a block of rows.

    Parameters
    ----------
    X, Y : ndarray
        Rows and targets.
    w : ndarray of shape (n,) or None
        Row weights.
    kernel : callable
        The kernel.
    S : ndarray of shape (m, d)
        The centres.
    fixed : callable
        ``fixed(X)`` are the fixed columns.

    Returns
    -------
    Moments
        In float64. Cost ``O(n p^2)`` time, ``O(n p)`` memory.
    """
    Phi = np.hstack([kernel(X, S).astype(np.float64, copy=False), fixed(X)])
    weighted = Phi if w is None else Phi * w[:, None]
    return Moments(weighted.T @ Phi, weighted.T @ Y, float(len(X)) if w is None else float(np.sum(w)))


def solve_coefficients(sums: Moments, ridge: float) -> NDArray:
    """``argmin over coef of sum_i w_i |Y_i - Phi_i coef|^2 + ridge sum(w) |coef|^2``.

    Parameters
    ----------
    sums : Moments
        Of all rows.
    ridge : float
        The positive ridge.

    Returns
    -------
    ndarray of shape (p, n_outputs)
        The coefficients.
    """
    A = sums.gram + ridge * sums.weight * np.eye(len(sums.gram))
    return cho_solve(cho_factor(A, lower=True, overwrite_a=True, check_finite=False), sums.target, check_finite=False)


def _weighted(K, F, Y, weights):
    """``[K, F]`` in column order, weighted, and the weighted targets."""
    p, m = K.shape[1] + F.shape[1], K.shape[1]
    columns = np.empty((p, len(K)), dtype=K.dtype)
    columns[:m], columns[m:] = K.T, F.T
    if weights is not None:
        columns *= weights.astype(K.dtype)
        Y = Y * weights[:, None]
    return columns.T, Y, len(K)


def _unweighted(G, weights):
    """The derivative in K from that in the weighted columns; G has one line per column."""
    if weights is not None:
        G *= weights.astype(G.dtype)
    return G.T


def _residual(Phi, coef, Y):
    """``Phi @ coef - Y`` in double precision."""
    if Phi.dtype == np.float64:
        return Phi @ coef - Y
    blocks = row_blocks(len(Phi), 8 * Phi.shape[1], _CAST_BYTES)
    return np.concatenate([Phi[rows].astype(np.float64) @ coef - Y[rows] for rows in blocks])


def _inverse(factor):
    """The inverse of a matrix from its lower Cholesky factor, a third of the cost of solving for the identity."""
    inverse, info = dpotri(factor[0], lower=1)
    if info:
        raise np.linalg.LinAlgError("The Cholesky factor is singular.")
    inverse = np.tril(inverse)
    return inverse + np.tril(inverse, -1).T
