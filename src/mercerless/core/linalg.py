"""Factorizations that raise if a matrix is singular."""

import numpy as np
from numpy.typing import NDArray
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
