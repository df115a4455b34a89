"""Ridge regression with a kernel matrix that need not be symmetric."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_solve
from scipy.linalg.lapack import dgetrf

SIDES = ("left", "right", "mean")


class AsymmetricRidgeSolution(NamedTuple):
    """The two regressors of an asymmetric kernel.

    Parameters
    ----------
    left, right : ndarray of shape (n, n_outputs)
        Coefficients of ``f1(t) = k(t, X) left + b1`` and ``f2(t) = k(X, t)^T right + b2``.
    intercept_left, intercept_right : ndarray of shape (n_outputs,)
        The intercepts b1 and b2.
    loo_left, loo_right : ndarray of shape (n, n_outputs)
        Exact leave-one-out residuals of both; those of the mean are their mean.
    alpha : float
        The ridge.
    residual : float
        Certificate: the larger relative residual of the two systems.
    """

    left: NDArray
    right: NDArray
    intercept_left: NDArray
    intercept_right: NDArray
    loo_left: NDArray
    loo_right: NDArray
    alpha: float
    residual: float


def factorize(A: NDArray, message: str) -> tuple[NDArray, NDArray]:
    """The LU factors of a square matrix, for ``scipy.linalg.lu_solve``.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        The matrix.
    message : str
        What to say when it is singular.

    Returns
    -------
    tuple of ndarray
        Factors and pivots.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the smallest pivot is below the rounding error of the largest.
    """
    lu, pivots, _ = dgetrf(A)
    size = np.abs(np.diag(lu))
    if not size.min() > len(A) * np.finfo(float).eps * size.max():
        raise np.linalg.LinAlgError(message)
    return lu, pivots


def asymmetric_ridge(
    K: NDArray, Y: NDArray, alpha: float, weight: NDArray | None = None, fit_intercept: bool = False
) -> AsymmetricRidgeSolution:
    """Solve ``(K + alpha D) left + b1 = Y`` and ``(K + alpha D)^T right + b2 = Y`` with ``D = diag(1 / weight)``.

    They are a stationary point of ``alpha <w, v> + sum_i weight_i e_i r_i`` with the residuals e of
    ``f1 = <phi, w> + b1`` and r of ``f2 = <psi, v> + b2``, where ``k = <phi, psi>``; with intercepts the coefficients
    sum to zero. On the training rows ``Y - f1 = alpha D left`` and ``Y - f2 = alpha D right``. For symmetric K and no
    intercept both are kernel ridge regression.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        ``K[i, j] = k(x_i, x_j)``.
    Y : ndarray of shape (n, n_outputs)
        The targets.
    alpha : float
        The ridge, at least 0.
    weight : ndarray of shape (n,) or None, default=None
        Positive row weights.
    fit_intercept : bool, default=False
        Whether there are intercepts, which are not penalised; else b1 = b2 = 0.

    Returns
    -------
    AsymmetricRidgeSolution
        Coefficients and exact leave-one-out residuals ``left_i / (A^-1)_ii``, infinite where ``(A^-1)_ii`` is 0 (the
        system without that row is singular). One LU factorisation; cost ``O(n^3)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the system is singular: eigenvalues with negative real part make that possible for a positive alpha.

    Notes
    -----
    Removing row and column i leaves the system ``A_(i) a_(i) = Y_(i)``; by the bordering identity the prediction error
    there is ``a_i / (A^-1)_ii`` for any square A, symmetric or not. Intercepts are one more row and column of A, of
    the size of K so that pivots compare, with 0 in the corner and on the right-hand side.
    """
    n = len(K)
    size = n + 1 if fit_intercept else n
    A, right_side = np.zeros((size, size)), np.zeros((size, Y.shape[1]))
    A[:n, :n], right_side[:n] = K, Y
    A[np.arange(n), np.arange(n)] += alpha if weight is None else alpha / weight
    border = float(np.abs(A).max()) or 1.0
    A[n:, :n] = A[:n, n:] = border
    factor = factorize(
        A,
        f"K + alpha I is singular to working precision for alpha={alpha:g}; use another alpha, or None to choose one.",
    )
    left = lu_solve(factor, right_side, check_finite=False)
    right = lu_solve(factor, right_side, trans=1, check_finite=False)
    diagonal = np.diag(lu_solve(factor, np.eye(size), check_finite=False))[:n, None]
    lost = np.abs(diagonal) <= size * np.finfo(float).eps * np.abs(diagonal).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        loo = [np.where(lost, np.inf, coef[:n] / diagonal) for coef in (left, right)]
    norm = np.linalg.norm(Y)
    errors = np.linalg.norm(A @ left - right_side), np.linalg.norm(A.T @ right - right_side)
    intercepts = (border * coef[n:].sum(axis=0) for coef in (left, right))
    return AsymmetricRidgeSolution(
        left[:n], right[:n], *intercepts, *loo, float(alpha), float(max(errors) / norm) if norm else 0.0
    )


def leave_one_out_errors(solution: AsymmetricRidgeSolution, weight: NDArray | None = None) -> dict[str, float]:
    """The mean squared leave-one-out error of the left, the right and the mean regressor.

    Parameters
    ----------
    solution : AsymmetricRidgeSolution
        The solution.
    weight : ndarray of shape (n,) or None, default=None
        Row weights of the mean.

    Returns
    -------
    dict of str to float
        The errors.
    """
    both = (solution.loo_left, solution.loo_right, (solution.loo_left + solution.loo_right) / 2)
    return {s: float(np.average(np.sum(r * r, axis=1), weights=weight)) for s, r in zip(SIDES, both)}


class AsymmetricChoice(NamedTuple):
    """What the leave-one-out error chose.

    Parameters
    ----------
    solution : AsymmetricRidgeSolution
        The best solution.
    side : str
        The best side.
    errors : dict of (float, str) to float
        The leave-one-out errors of all ridges and sides.
    one_way : AsymmetricRidgeSolution
        The best solution for the left side alone, which needs one direction of new rows only.
    """

    solution: AsymmetricRidgeSolution
    side: str
    errors: dict[tuple[float, str], float]
    one_way: AsymmetricRidgeSolution


def choose_asymmetric_ridge(
    K: NDArray,
    Y: NDArray,
    alphas: Sequence[float],
    sides: Sequence[str],
    weight: NDArray | None = None,
    fit_intercept: bool = False,
) -> AsymmetricChoice:
    """The ridge and the side with the smallest exact leave-one-out error.

    Parameters
    ----------
    K, Y, weight, fit_intercept
        As in `asymmetric_ridge`.
    alphas : sequence of float
        Ridges to try; singular ones are passed over.
    sides : sequence of {"left", "right", "mean"}
        Sides to try; of equal ones the first is taken.

    Returns
    -------
    AsymmetricChoice
        The best solution, its side, all errors, and the best left solution.
    """
    best, one_way, errors, failure = None, None, {}, None
    for alpha in alphas:
        try:
            solution = asymmetric_ridge(K, Y, alpha, weight, fit_intercept)
        except np.linalg.LinAlgError as error:
            failure = error
            continue
        found = leave_one_out_errors(solution, weight)
        # a tie, as for symmetric matrices, is decided by order and not by rounding
        if one_way is None or found["left"] < (1 - 1e-9) * one_way[0]:
            one_way = (found["left"], solution)
        for side in sides:
            errors[float(alpha), side] = found[side]
            if best is None or found[side] < (1 - 1e-9) * best[0]:
                best = (found[side], solution, side)
    if best is None or one_way is None:
        raise failure or ValueError("There is no ridge to try.")
    return AsymmetricChoice(best[1], best[2], errors, one_way[1])


def largest_singular_value(K: NDArray, center: bool = True) -> float:
    """The spectral norm of a square matrix (without its row and column means) to a few per cent, by power iteration."""
    if center:
        K = K - K.mean(axis=0)
        K -= K.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(K, axis=1)
    v, norm = K[sizes.argmax()], float(sizes.max(initial=0.0))
    for _ in range(20):
        if norm == 0.0 or not np.any(v):
            break
        u = K @ (v / np.linalg.norm(v))
        norm, v = float(np.linalg.norm(u)), K.T @ u
    return norm
