"""Factorizations that raise if a matrix is singular, and some that serve many problems with one matrix."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded, get_lapack_funcs
from scipy.linalg.lapack import dgetrf


def factorize(A: NDArray, message: str) -> tuple[NDArray, NDArray]:
    """The LU factors of a square matrix, for ``scipy.linalg.lu_solve``.

    Raises LinAlgError with `message` when the smallest pivot is below the rounding error of the largest.
    """
    lu, pivots, _ = dgetrf(A)
    size = np.abs(np.diag(lu))
    if not size.min() > len(A) * np.finfo(float).eps * size.max():
        raise LinAlgError(message)
    return lu, pivots


def shifted_systems(A: NDArray, B: NDArray, shifts: NDArray) -> tuple[NDArray, NDArray]:
    """``trace(B^T (A + s I)^-1 B)`` and ``log det(A + s I)`` for every shift s; infinite if that is not definite.

    A is symmetric and overwritten. It is reduced to ``Q T Q^T`` with T tridiagonal once, which costs a fraction of an
    eigendecomposition; after that a shift costs O(n) per column of B.
    """
    quadratic = np.full(len(shifts), np.inf)
    logdet = np.full(len(shifts), np.inf)
    tridiagonal = Tridiagonal.of(A)
    R = tridiagonal.reflect(np.asarray(B, dtype=np.float64), "T")
    bands = np.vstack([tridiagonal.diagonal, np.append(tridiagonal.below, 0.0)])
    for i, shift in enumerate(shifts):
        try:
            factor = cholesky_banded(bands + [[shift], [0.0]], lower=True, check_finite=False)
        except LinAlgError:
            continue
        quadratic[i] = np.sum(R * cho_solve_banded((factor, True), R, check_finite=False))
        logdet[i] = 2.0 * np.sum(np.log(factor[0]))
    return quadratic, logdet


class Tridiagonal(NamedTuple):
    """``A = Q T Q^T`` of a symmetric matrix, T tridiagonal and Q a product of reflections, which is never formed."""

    diagonal: NDArray  # (n,)
    below: NDArray  # (n - 1,)
    reflectors: NDArray  # (n - 1, n - 1), below the diagonal
    factors: NDArray  # (n - 1,), of the reflections

    @classmethod
    def of(cls, A: NDArray) -> Self:
        """Reduce A, which is overwritten; one triangle is read, so the last bits of asymmetry do not matter."""
        n = len(A)
        if n == 1:  # which LAPACK does not take
            return cls(A[0], A[0, 1:], A[1:, 1:], A[0, 1:])
        reduce, size_of_work = get_lapack_funcs(("sytrd", "sytrd_lwork"), (A,))
        work, _ = size_of_work(n, lower=1)
        # of a symmetric matrix the transpose in Fortran's order is the matrix in C's
        reduced, diagonal, below, factors, _ = reduce(A.T, lower=1, lwork=int(work), overwrite_a=1)
        return cls(diagonal, below, np.asfortranarray(reduced[1:, :-1]), factors)

    def reflect(self, columns: NDArray, transpose: str) -> NDArray:
        """Q ("N") or its transpose ("T") times columns (n, q): it leaves the first row alone."""
        reflected = np.array(columns, order="F")
        if len(reflected) > 1 and reflected.shape[1] > 0:
            (multiply,) = get_lapack_funcs(("ormqr",), (self.reflectors,))
            rest = np.asfortranarray(reflected[1:])
            # with less LAPACK applies one reflection after the other, which takes up to 40 times as long
            space = 64 * (rest.shape[1] + 65)
            reflected[1:], _, _ = multiply(
                "L", transpose, self.reflectors, self.factors, rest, space, overwrite_c=1
            )
        return reflected


class EigenFactors(NamedTuple):
    """Eigenvalues of a symmetric matrix, and its eigenvectors as two factors that are never multiplied.

    ``A = Q T Q^T`` with T tridiagonal, ``T = Z diag(values) Z^T``. For a few vectors the factors cost less than the
    eigenvectors ``Q Z``: about two thirds of ``eigh`` for 500 items, half for 2000.
    """

    values: NDArray  # (rank,), ascending
    vectors: NDArray  # Z (n, rank)
    tridiagonal: Tridiagonal

    @classmethod
    def of(cls, A: NDArray) -> Self:
        """Decompose A, which is overwritten; one triangle is read."""
        tridiagonal = Tridiagonal.of(A)
        if len(A) == 1:
            return cls(tridiagonal.diagonal, np.ones_like(A), tridiagonal)
        (decompose,) = get_lapack_funcs(("stevd",), (tridiagonal.diagonal,))
        values, vectors, info = decompose(tridiagonal.diagonal, tridiagonal.below)
        if info != 0:
            raise LinAlgError("The eigenvalues of the matrix did not converge.")
        return cls(values, vectors, tridiagonal)

    def enter(self, columns: NDArray) -> NDArray:
        """Coordinates (rank, q) of columns (n, q) in the eigenvectors."""
        return self.vectors.T @ self.tridiagonal.reflect(columns, "T")

    def leave(self, coordinates: NDArray) -> NDArray:
        """Vectors (n, ...) of coordinates (rank, ...) in the eigenvectors."""
        columns = np.tensordot(self.vectors, coordinates, 1)
        flat = self.tridiagonal.reflect(columns.reshape(len(columns), -1), "N")
        return np.ascontiguousarray(flat).reshape(columns.shape)
