"""Ridge regression with a kernel matrix that need not be symmetric: both sides apart, or coupled (AsK-LS)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_solve
from scipy.linalg.lapack import dgetri

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
    A = K + np.diag(alpha / weights_or_ones(weight, n))
    border = float(np.abs(A).max()) or 1.0
    targets = Y
    if fit_intercept:
        A = np.pad(A, (0, 1))
        A[n, :n] = A[:n, n] = border
        targets = np.pad(Y, ((0, 1), (0, 0)))
    factor = factorize(
        A,
        f"K + alpha I is singular to working precision for alpha={alpha:g}; use another alpha, or "
        "None to choose one.",
    )
    left = lu_solve(factor, targets, check_finite=False)
    right = lu_solve(factor, targets, trans=1, check_finite=False)
    residual = np.hstack([A @ left - targets, A.T @ right - targets])

    diagonal = inverse_of(factor).diagonal()[:n]
    largest = np.abs(diagonal).max()
    return AsymmetricRidgeSolution(
        left=left[:n],
        right=right[:n],
        intercept_left=border * left[n:].sum(axis=0),
        intercept_right=border * right[n:].sum(axis=0),
        loo_left=_quotients(left[:n], diagonal, largest),
        loo_right=_quotients(right[:n], diagonal, largest),
        alpha=float(alpha),
        residual=_relative_norm(residual, Y),
    )


def coupled_ridge(
    K: NDArray, Y: NDArray, alpha: float, weight: NDArray | None = None, fit_intercept: bool = False
) -> AsymmetricRidgeSolution:
    """Solve ``K left + alpha D right + b1 = Y`` and ``K^T right + alpha D left + b2 = Y``, ``D = diag(1 / weight)``.

    AsK-LS, the least-squares machine of He et al. (2023), for targets Y of any kind; for Y of +-1 the coefficients are
    their beta y and alpha y, and alpha is 1 / gamma. They are a stationary point of
    ``<w, v> + (|e|^2 + |r|^2) / (2 alpha)`` (squares weighted) with the residuals e of ``f1 = <phi, w> + b1`` and r of
    ``f2 = <psi, v> + b2``, ``k = <phi, psi>``. The residuals of one side are the other side's coefficients:
    ``Y - f1 = alpha D right`` and ``Y - f2 = alpha D left``. For symmetric K both sides are kernel ridge regression, as
    those of `asymmetric_ridge`.

    One LU factorization of twice the size, so about eight times the cost of `asymmetric_ridge`. Raises LinAlgError if
    alpha is a singular value of K (without weights and intercept), where the system is singular.

    Notes
    -----
    Leave-one-out removes two rows and two columns: the pair of residuals of item i is
    ``inv((A^-1)_ii) (left_i, right_i)`` with the 2 x 2 block of the inverse. It is infinite if that block is singular.
    """
    n = len(K)
    ridge = np.diag(alpha / weights_or_ones(weight, n))
    # variables: left, right, b1 / border, b2 / border; equations: f1 on all rows, f2 on all rows, two sums
    A = np.block([[K, ridge], [ridge, K.T]])
    border = float(np.abs(A).max()) or 1.0
    targets = np.vstack([Y, Y])
    if fit_intercept:
        A = np.pad(A, (0, 2))
        targets = np.pad(targets, ((0, 2), (0, 0)))
        A[:n, 2 * n] = border
        A[n : 2 * n, 2 * n + 1] = border
        A[2 * n, n : 2 * n] = border  # the coefficients of the other side sum to zero
        A[2 * n + 1, :n] = border
    factor = factorize(
        A,
        f"The coupled system is singular to working precision for alpha={alpha:g}; use another "
        "alpha, or None to choose one.",
    )
    solution = lu_solve(factor, targets, check_finite=False)
    left = solution[:n]
    right = solution[n : 2 * n]
    b1, b2 = border * solution[2 * n :] if fit_intercept else np.zeros((2, Y.shape[1]))

    # the 2 x 2 block [[p, q], [r, s]] of the inverse for every item
    inverse = inverse_of(factor)
    p, s = inverse.diagonal()[: 2 * n].reshape(2, n)
    q = inverse[:n, n : 2 * n].diagonal()
    r = inverse[n : 2 * n, :n].diagonal()
    determinant = p * s - q * r
    largest = np.maximum(np.abs(p * s), np.abs(q * r)).max()
    return AsymmetricRidgeSolution(
        left=left,
        right=right,
        intercept_left=b1,
        intercept_right=b2,
        loo_left=_quotients(s[:, None] * left - q[:, None] * right, determinant, largest),
        loo_right=_quotients(p[:, None] * right - r[:, None] * left, determinant, largest),
        alpha=float(alpha),
        residual=_relative_norm(A @ solution - targets, targets),
    )


def inverse_of(factor: tuple[NDArray, NDArray]) -> NDArray:
    """The inverse of a matrix from its LU factors, in two thirds of the time of solving for the identity."""
    lu, pivots = factor
    return dgetri(lu, pivots, lwork=64 * len(lu))[0]


def _quotients(numerator: NDArray, denominator: NDArray, largest: float) -> NDArray:
    """Leave-one-out residuals; infinite if the system without the item is singular to working precision."""
    rounding = 2 * len(denominator) * np.finfo(float).eps * largest
    is_singular = np.abs(denominator) <= rounding
    quotients = numerator / np.where(is_singular, 1.0, denominator)[:, None]
    quotients[is_singular] = np.inf
    return quotients


def _relative_norm(residual: NDArray, targets: NDArray) -> float:
    size = np.linalg.norm(targets)
    return float(np.linalg.norm(residual) / size) if size else 0.0


def largest_singular_value(K: NDArray, center: bool = True) -> float:
    """The spectral norm of a matrix (without its row and column means) to a few per cent, by power iteration.

    0 if it is below the rounding of the entries.
    """
    rounding = len(K) * np.finfo(float).eps * float(np.abs(K).max(initial=0.0))
    if center:
        K = K - K.mean(axis=0)
        K -= K.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(K, axis=1)
    v = K[sizes.argmax()]
    norm = float(sizes.max(initial=0.0))
    for _ in range(20):
        if norm <= rounding or not np.any(v):
            return 0.0
        u = K @ (v / np.linalg.norm(v))
        norm = float(np.linalg.norm(u))
        v = K.T @ u
    return norm
