"""Kernel ridge regression on many centers of one kernel: coefficients by its norm, and a linear map from its slopes."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from mercerless.lab.solver import Moments

_FIXED_WEIGHT = 0.1  # of the columns beside those of the kernel in the penalty
_JITTER = 1e-6
_SMALLEST_SLOPE = 1e-4  # of a direction, relative to the largest


def norm_penalty(K: NDArray, n_fixed: int) -> NDArray:
    """``blockdiag(K, 0.1 I)`` for the kernel matrix K of the centers: the squared norm of the function."""
    m = len(K)
    P = np.zeros((m + n_fixed, m + n_fixed))
    P[:m, :m] = (K + K.T) / 2
    P[np.arange(m, m + n_fixed), np.arange(m, m + n_fixed)] = _FIXED_WEIGHT
    return P


def solve_wide(sums: Moments, P: NDArray, ridges: Sequence[float] | NDArray) -> list[NDArray]:
    """``argmin over coef of sum_i w_i |Y_i - Phi_i coef|^2 + ridge tr(coef^T P coef)`` for every ridge.

    P is positive semi-definite up to rounding: a multiple of the identity, raised until the factorization succeeds, is
    added to it. One Cholesky factorization per ridge, ``O(p^3)``.
    """
    factors = (_factor(sums.gram, 1.0, P, ridge, ridge * _JITTER) for ridge in ridges)
    return [cho_solve((factor, True), sums.target, check_finite=False) for factor in factors]


def _factor(gram: NDArray, share: float, P: NDArray, ridge: float, jitter: float) -> NDArray:
    """The lower Cholesky factor of ``share gram + ridge P + jitter I``, the jitter raised until there is one."""
    while True:
        A = share * gram + ridge * P
        A[np.diag_indices(len(A))] += jitter
        try:
            return cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            jitter *= 100.0


def slopes(Z: NDArray, S: NDArray, K: NDArray, coef: NDArray) -> NDArray:
    """Gradients in z of ``f(z) = sum_j coef_j exp(-|z - s_j|)`` at the rows of Z, (n_outputs, n, r).

    ``K = exp(-|z_i - s_j|)``; the kernel has no slope at its own center.
    """
    rho = -np.log(np.maximum(K, np.finfo(K.dtype).tiny))
    H = np.where(rho > 1e-6, K / np.maximum(rho, 1e-6), 0.0)
    return np.stack([(H * c) @ S - Z * (H @ c)[:, None] for c in coef.T])


def slope_map(gradients: NDArray) -> NDArray:
    """The map A, ``A A^T`` the root of the average outer product of the gradients (n_outputs, n, d).

    Directions in which nothing changes are shrunk, to at least 1e-4 of the largest eigenvalue of ``A A^T``.
    """
    G = np.einsum("oni,onj->ij", gradients, gradients, optimize=True)
    e, V = eigh(G, check_finite=False)
    if not e[-1] > 0:
        return np.eye(len(G))
    return V * np.sqrt(np.maximum(np.sqrt(np.maximum(e, 0) / e[-1]), _SMALLEST_SLOPE))


class Logistic(NamedTuple):
    """Coefficients of class scores, and the largest entry of the gradient relative to that at zero."""

    coef: NDArray  # (p, 1) for two classes, else (p, n_classes)
    certificate: float


def solve_logistic(
    Phi: NDArray,
    labels: NDArray,
    weight: NDArray | None,
    P: NDArray,
    ridge: float,
    gram: NDArray,
    n_functions: int,
    start: NDArray | None = None,
    max_iter: int = 40,
) -> Logistic:
    """``min over C of sum_i w_i logloss(Phi_i C, label_i) + ridge / 2 tr(C^T P C)``.

    The scores of two classes are one column f, which counts as -f / 2 and f / 2; of more, one column each. L-BFGS in
    ``U = T^T C`` with ``T T^T = s gram + ridge P``, gram = ``Phi^T Phi`` and s the largest curvature of the loss:
    in U the problem is well conditioned. One Cholesky factorization, and two products with Phi per iteration.
    """
    p = Phi.shape[1]
    K = n_functions
    w = np.ones(len(Phi)) if weight is None else weight
    T = _factor(gram, 0.25 if K == 1 else 0.5, P, ridge, 1e-9 * max(np.trace(gram) / p, 1.0))
    PT = partial(solve_triangular, T, lower=True, trans="T", check_finite=False)
    target = np.eye(max(K, 2))[labels][:, -K:]

    def value(u: NDArray) -> tuple[float, NDArray]:
        C = PT(u.reshape(p, K))
        scores = (Phi @ C.astype(Phi.dtype)).astype(np.float64)
        if K == 1:
            loss = w @ (np.logaddexp(0, scores) - target * scores)[:, 0]
            residual = expit(scores) - target
        else:
            logs = log_softmax(scores, axis=1)
            loss = -w @ np.sum(logs * target, axis=1)
            residual = np.exp(logs) - target
        PC = P @ C
        gradient = (Phi.T @ (w[:, None] * residual).astype(Phi.dtype)).astype(
            np.float64
        ) + ridge * PC
        gradient = solve_triangular(T, gradient, lower=True, check_finite=False)
        return float(loss + ridge / 2 * np.sum(C * PC)), gradient.ravel()

    u = np.zeros(p * K) if start is None else (T.T @ start).ravel()
    first = float(np.max(np.abs(value(np.zeros(p * K))[1])))
    result = minimize(
        value, u, jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "ftol": 1e-6}
    )
    return Logistic(PT(result.x.reshape(p, K)), float(np.max(np.abs(result.jac)) / (first or 1.0)))
