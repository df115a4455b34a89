"""Factorizations that raise if a matrix is singular, and one that serves many shifts of a matrix."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.linalg.lapack import dgetrf


def factorize(A: NDArray, message: str) -> tuple[NDArray, NDArray]:
    """The LU factors of a square matrix, for ``scipy.linalg.lu_solve``.

    Raises LinAlgError with `message` when the smallest pivot is below the rounding error of the largest.
    """
    lu, pivots, _ = dgetrf(A)
    size = np.abs(np.diag(lu))
    if not size.min() > len(A) * np.finfo(float).eps * size.max():
        raise np.linalg.LinAlgError(message)
    return lu, pivots


def shifted_systems(A: NDArray, B: NDArray, shifts: NDArray) -> tuple[NDArray, NDArray]:
    """``trace(B^T (A + s I)^-1 B)`` and ``log det(A + s I)`` for every shift s; infinite if that is not definite.

    A is symmetric and overwritten. It is reduced to ``Q T Q^T`` with T tridiagonal once, which costs a fraction of an
    eigendecomposition; after that a shift costs O(n) per column of B.
    """
    quadratic = np.full(len(shifts), np.inf)
    logdet = np.full(len(shifts), np.inf)
    if len(A) == 1:  # which LAPACK does not take
        A = np.diag([A[0, 0], 1.0])
        B = np.vstack([B, np.zeros_like(B)])
        quadratic, logdet = shifted_systems(A, B, shifts)
        return quadratic, logdet - np.log1p(shifts)
    diagonal, below, R = _tridiagonal(A, B)
    factorize_definite, solve = get_lapack_funcs(("pttrf", "pttrs"), (diagonal,))
    for i, shift in enumerate(shifts):
        pivots, factors, info = factorize_definite(diagonal + shift, below)
        if info != 0:
            continue
        solution, _ = solve(pivots, factors, R)
        quadratic[i] = np.sum(R * solution)
        logdet[i] = np.sum(np.log(pivots))
    return quadratic, logdet


def _tridiagonal(A: NDArray, B: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Diagonal and subdiagonal of ``T = Q^T A Q``, and ``Q^T B``."""
    R = np.array(B, dtype=np.float64, order="F")
    reduce, size_of_work, multiply = get_lapack_funcs(("sytrd", "sytrd_lwork", "ormqr"), (A,))
    work, _ = size_of_work(len(A), lower=1)
    # of a symmetric matrix the transpose in Fortran's order is the matrix in C's
    reflectors, diagonal, below, factors, _ = reduce(A.T, lower=1, lwork=int(work), overwrite_a=1)
    rest = np.asfortranarray(R[1:])  # the reflections leave the first row alone
    space = max(64, 64 * R.shape[1])
    R[1:], _, _ = multiply("L", "T", reflectors[1:, :-1], factors, rest, space, overwrite_c=1)
    return diagonal, below, R
