"""Ridge regression with a kernel matrix that need not be symmetric: both sides apart, or coupled (AsK-LS)."""

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
    right_side = np.pad(Y.astype(float), ((0, size - n), (0, 0)))
    A[:n, :n] = K
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
    border = max(float(np.abs(K).max()), float(np.abs(ridge).max())) or 1.0
    # variables: left, right, b1 / border, b2 / border; equations: f1 on all rows, f2 on all rows, two sums
    A = np.block([[K, ridge], [ridge, K.T]])
    right_side = np.vstack([Y, Y])
    if fit_intercept:
        A = np.pad(A, (0, 2))
        right_side = np.pad(right_side, ((0, 2), (0, 0)))
        A[:n, 2 * n] = border
        A[n : 2 * n, 2 * n + 1] = border
        A[2 * n, n : 2 * n] = border  # the coefficients of the other side sum to zero
        A[2 * n + 1, :n] = border
    factor = factorize(
        A,
        f"The coupled system is singular to working precision for alpha={alpha:g}; use another "
        "alpha, or None to choose one.",
    )
    solution = lu_solve(factor, right_side, check_finite=False)
    inverse = lu_solve(factor, np.eye(len(A)), check_finite=False)
    left, right = solution[:n], solution[n : 2 * n]
    loo_left, loo_right = _pairs_left_out(inverse, left, right)
    norm = float(np.linalg.norm(right_side))
    residual = float(np.linalg.norm(A @ solution - right_side)) / norm if norm else 0.0
    intercepts = [border * coef.sum(axis=0) for coef in np.vsplit(solution[2 * n :], 2)]
    return AsymmetricRidgeSolution(
        left, right, intercepts[0], intercepts[1], loo_left, loo_right, float(alpha), residual
    )


def _pairs_left_out(inverse: NDArray, left: NDArray, right: NDArray) -> tuple[NDArray, NDArray]:
    """Leave-one-out residuals of both sides from the 2 x 2 blocks of the inverse of the coupled system."""
    n = len(left)
    items = np.arange(n)
    blocks = inverse[: 2 * n, : 2 * n].reshape(2, n, 2, n)[:, items, :, items]
    (a, b), (c, d) = blocks.transpose(1, 2, 0)
    determinant = a * d - b * c
    size = np.maximum(np.abs(a * d), np.abs(b * c))
    lost = np.abs(determinant) <= 2 * n * np.finfo(float).eps * size.max()
    with np.errstate(divide="ignore", invalid="ignore"):
        loo_left = (d[:, None] * left - b[:, None] * right) / determinant[:, None]
        loo_right = (a[:, None] * right - c[:, None] * left) / determinant[:, None]
    loo_left[lost] = loo_right[lost] = np.inf
    return loo_left, loo_right


def largest_singular_value(K: NDArray, center: bool = True) -> float:
    """The spectral norm of a matrix (without its row and column means) to a few per cent, by power iteration."""
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
