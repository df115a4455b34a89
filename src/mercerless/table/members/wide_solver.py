"""Kernel ridge regression on many centers of one kernel: coefficients by its norm, and a linear map from its slopes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from mercerless.lab.solver import Moments


def norm_penalty(K: NDArray, n_fixed: int, fixed_weight: float = 0.1) -> NDArray:
    """``blockdiag(K, 0.1 I)`` for the kernel matrix K of the centers: the squared norm of the function.

    The columns beside those of the kernel are penalized by `fixed_weight`.
    """
    m = len(K)
    P = np.zeros((m + n_fixed, m + n_fixed))
    P[:m, :m] = (K + K.T) / 2
    fixed = np.arange(m, m + n_fixed)
    P[fixed, fixed] = fixed_weight
    return P


def solve_wide(
    sums: Moments, P: NDArray, ridges: Sequence[float] | NDArray, jitter: float = 1e-6
) -> list[NDArray]:
    """``argmin over coef of sum_i w_i |Y_i - Phi_i coef|^2 + ridge tr(coef^T P coef)`` for every ridge.

    P is positive semi-definite up to rounding: `jitter` times the identity, raised until the factorization succeeds, is
    added to it. One Cholesky factorization per ridge, ``O(p^3)``.
    """
    solutions = []
    for ridge in ridges:
        factor = _factor(sums.gram, P, ridge, ridge * jitter)
        solutions.append(cho_solve((factor, True), sums.target, check_finite=False))
    return solutions


def _factor(gram: NDArray, P: NDArray, ridge: float, jitter: float) -> NDArray:
    """The lower Cholesky factor of ``gram + ridge P + jitter I``, the jitter raised until there is one."""
    while True:
        A = ridge * P
        A += gram
        A[np.diag_indices(len(A))] += jitter
        try:
            # of a symmetric matrix the transpose in Fortran's order is the matrix in C's
            return cholesky(A.T, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            jitter *= 100.0


def slopes(Z: NDArray, S: NDArray, K: NDArray, coef: NDArray) -> NDArray:
    """Gradients in z of ``f(z) = sum_j coef_j exp(-|z - s_j|)`` at the rows of Z, (n_outputs, n, r).

    ``K = exp(-|z_i - s_j|)``; the kernel has no slope at its own center.
    """
    rho = -np.log(np.maximum(K, np.finfo(K.dtype).tiny))
    H = np.where(rho > 1e-6, K / np.maximum(rho, 1e-6), 0.0)
    return np.stack([(H * c) @ S - Z * (H @ c)[:, None] for c in coef.T])


def slope_map(gradients: NDArray, smallest: float = 1e-4) -> NDArray:
    """The map A, ``A A^T`` the root of the average outer product of the gradients (n_outputs, n, d).

    Directions in which nothing changes are shrunk, to at least `smallest` of the largest eigenvalue of ``A A^T``.
    """
    G = np.einsum("oni,onj->ij", gradients, gradients, optimize=True)
    e, V = eigh(G, driver="evd", overwrite_a=True, check_finite=False)
    if not e[-1] > 0:
        return np.eye(len(G))
    relative = np.maximum(e, 0) / e[-1]
    eigenvalues = np.maximum(np.sqrt(relative), smallest)  # of A A^T
    return V * np.sqrt(eigenvalues)


class Logistic(NamedTuple):
    """Coefficients of class scores, and the largest entry of the gradient relative to that at zero."""

    coef: NDArray  # (p, 1) for two classes, else (p, n_classes)
    certificate: float


@dataclass(frozen=True)
class LogisticProblem:
    """``min over C of sum_i w_i logloss(Phi_i C, shares_i) + ridge / 2 tr(C^T P C)``.

    The scores of two classes are one column f, which counts as -f / 2 and f / 2; of more, one column each.
    """

    Phi: NDArray
    target: NDArray  # (n, n_functions), shares of the classes in the row, of two classes that of the second
    weight: NDArray
    P: NDArray
    ridge: float

    def loss(self, C: NDArray) -> tuple[float, NDArray]:
        """The objective, and its gradient in C."""
        scores = (self.Phi @ C.astype(self.Phi.dtype)).astype(np.float64)
        if scores.shape[1] == 1:
            losses = (np.logaddexp(0, scores) - self.target * scores)[:, 0]
            residual = expit(scores) - self.target
        else:
            logs = log_softmax(scores, axis=1)
            losses = -np.sum(logs * self.target, axis=1)
            residual = np.exp(logs) - self.target
        PC = self.P @ C
        value = self.weight @ losses + self.ridge / 2 * np.sum(C * PC)
        weighted = (self.weight[:, None] * residual).astype(self.Phi.dtype)
        of_scores = (self.Phi.T @ weighted).astype(np.float64)
        return float(value), of_scores + self.ridge * PC


def solve_logistic(
    Phi: NDArray,
    shares: NDArray,
    weight: NDArray,
    P: NDArray,
    ridge: float,
    gram: NDArray,
    n_functions: int,
    start: NDArray | None = None,
    max_iter: int = 40,
) -> Logistic:
    """Solve the `LogisticProblem` by L-BFGS; `shares` (n, n_classes) are those of the classes in every row.

    The variables are ``U = T^T C`` with ``T T^T = s gram + ridge P``, gram = ``Phi^T Phi`` and s the largest curvature
    of the loss: in U the problem is well conditioned. One Cholesky factorization, and two products with Phi per
    iteration.
    """
    shape = (Phi.shape[1], n_functions)
    problem = LogisticProblem(Phi, shares[:, -n_functions:], weight, P, ridge)
    curvature = 0.25 if n_functions == 1 else 0.5
    jitter = 1e-9 * max(np.trace(gram) / len(gram), 1.0)
    T = _factor(curvature * gram, P, ridge, jitter)

    def coefficients(u: NDArray) -> NDArray:
        return solve_triangular(T, u.reshape(shape), lower=True, trans="T", check_finite=False)

    def value(u: NDArray) -> tuple[float, NDArray]:
        loss, gradient = problem.loss(coefficients(u))
        return loss, solve_triangular(T, gradient, lower=True, check_finite=False).ravel()

    zero = np.zeros(shape[0] * shape[1])
    first = zero
    if start is not None:
        first = (T.T @ start).ravel()
    options = {"maxiter": max_iter, "ftol": 1e-6}
    result = minimize(value, first, jac=True, method="L-BFGS-B", options=options)
    slope_at_zero = float(np.max(np.abs(value(zero)[1]))) or 1.0
    slope_at_end = float(np.max(np.abs(result.jac)))
    return Logistic(coefficients(result.x), slope_at_end / slope_at_zero)
