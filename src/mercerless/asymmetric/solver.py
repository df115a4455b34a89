"""Ridge regression with a kernel matrix that need not be symmetric."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_solve

from mercerless.core.linalg import factorize
from mercerless.core.validation import weights_or_ones


class AsymmetricRidgeSolution(NamedTuple):
    """The two regressors ``f1(t) = k(t, X) left + b1`` and ``f2(t) = k(X, t)^T right + b2``."""

    left: NDArray  # (n, n_outputs)
    right: NDArray
    intercept_left: NDArray  # (n_outputs,)
    intercept_right: NDArray
    # (n, n_outputs), exact leave-one-out residuals; those of the mean are their mean
    loo_left: NDArray
    loo_right: NDArray
    alpha: float
    residual: float  # the certificate: the larger relative residual of the two systems


def asymmetric_ridge(
    K: NDArray, Y: NDArray, alpha: float, weight: NDArray | None = None, fit_intercept: bool = False
) -> AsymmetricRidgeSolution:
    """Solve ``(K + alpha D) left + b1 = Y`` and ``(K + alpha D)^T right + b2 = Y`` with ``D = diag(1 / weight)``.

    They are a stationary point of ``alpha <w, v> + sum_i weight_i e_i r_i`` with the residuals e of
    ``f1 = <phi, w> + b1`` and r of ``f2 = <psi, v> + b2``, where ``k = <phi, psi>``; with intercepts the coefficients
    sum to zero. On the training rows ``Y - f1 = alpha D left`` and ``Y - f2 = alpha D right``. For symmetric K and no
    intercept both are kernel ridge regression.

    One LU factorization. Leave-one-out residuals are infinite if the system without that row is singular. Raises
    LinAlgError if the system itself is: eigenvalues with negative real part make that possible for a positive alpha.

    Notes
    -----
    Removing row and column i leaves the system ``A_(i) a_(i) = Y_(i)``; by the bordering identity the prediction error
    there is ``a_i / (A^-1)_ii`` for any square A, symmetric or not. Intercepts are one more row and column of A, of
    the size of K so that pivots compare, with 0 in the corner and on the right-hand side.
    """
    n = len(K)
    size = n + 1 if fit_intercept else n
    A = np.zeros((size, size))
    right_side = np.zeros((size, Y.shape[1]))
    A[:n, :n] = K
    right_side[:n] = Y
    A[np.arange(n), np.arange(n)] += alpha / weights_or_ones(weight, n)
    border = float(np.abs(A).max()) or 1.0
    A[n:, :n] = A[:n, n:] = border
    factor = factorize(
        A,
        f"K + alpha I is singular to working precision for alpha={alpha:g}; use another alpha, or "
        "None to choose one.",
    )
    left = lu_solve(factor, right_side, check_finite=False)
    right = lu_solve(factor, right_side, trans=1, check_finite=False)
    diagonal = np.diag(lu_solve(factor, np.eye(size), check_finite=False))[:n, None]
    lost = np.abs(diagonal) <= size * np.finfo(float).eps * np.abs(diagonal).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        loo = [np.where(lost, np.inf, coef[:n] / diagonal) for coef in (left, right)]
    norm = np.linalg.norm(Y)
    errors = np.linalg.norm(A @ left - right_side), np.linalg.norm(A.T @ right - right_side)
    residual = float(max(errors) / norm) if norm else 0.0
    intercepts = [border * coef[n:].sum(axis=0) for coef in (left, right)]
    return AsymmetricRidgeSolution(
        left[:n], right[:n], intercepts[0], intercepts[1], loo[0], loo[1], float(alpha), residual
    )


def two_sided_path(
    K: NDArray, Y: NDArray, penalties: Sequence[float], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """``(K + a D) coef + intercept = Y`` with ``a = penalty * |K_c|_2``, for every penalty.

    As `asymmetric_ridge` with an intercept, without the leave-one-out errors: coef (n, n_penalties, q) and intercept
    (n_penalties, q) of ``f(t) = k(t, X) coef + intercept``. The other side is that of ``K.T``. A singular system, or a
    matrix that is constant, gives the mean of Y.
    """
    n, q = Y.shape
    weight = weights_or_ones(weight, n)
    weight = weight / weight.mean()
    norm = largest_singular_value(K) or 1.0
    coef = np.zeros((n, len(penalties), q))
    intercept = np.tile(weight @ Y / n, (len(penalties), 1))
    right_side = np.vstack([Y, np.zeros((1, q))])
    for position, penalty in enumerate(penalties):
        A = np.zeros((n + 1, n + 1))
        A[:n, :n] = K
        A[np.arange(n), np.arange(n)] += penalty * norm / weight
        border = float(np.abs(A).max()) or 1.0
        A[n, :n] = A[:n, n] = border
        try:
            solution = lu_solve(factorize(A, "singular"), right_side, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        coef[:, position] = solution[:n]
        intercept[position] = border * solution[n]
    return coef, intercept


def largest_singular_value(K: NDArray, center: bool = True) -> float:
    """The spectral norm of a square matrix (without its row and column means) to a few per cent, by power iteration."""
    if center:
        K = K - K.mean(axis=0)
        K -= K.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(K, axis=1)
    v = K[sizes.argmax()]
    norm = float(sizes.max(initial=0.0))
    for _ in range(20):
        if norm == 0.0 or not np.any(v):
            break
        u = K @ (v / np.linalg.norm(v))
        norm = float(np.linalg.norm(u))
        v = K.T @ u
    return norm
