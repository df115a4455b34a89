"""The axes of a pseudo-Euclidean space from symmetric similarities."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh


class Axes(NamedTuple):
    """Axes of a pseudo-Euclidean space: coordinates are ``k(x, X) @ projection - offset``."""

    eigenvalues: NDArray
    projection: NDArray
    offset: NDArray
    explained: float


def pseudo_euclidean_axes(K: NDArray, n_components: int | None, center: bool) -> Axes:
    """The axes of the eigenvalues of symmetric similarities that are largest in size.

    With ``J = I - 1/n`` and ``J K J = V diag(w) V^T`` the projection is ``V diag(sign(w) / sqrt|w|)``: as V is
    orthogonal to the ones for every w that is not 0, a row's own mean drops out. Axes of eigenvalues that are rounding
    get coordinates 0. Every vector's entry of largest size is positive, so that axes do not depend on the solver.
    """
    mean = K.mean(axis=0) if center else np.zeros(len(K))
    values, vectors = eigh(K - mean - mean[:, None] + mean.mean(), check_finite=False)
    by_size = np.argsort(-np.abs(values), kind="stable")
    values, vectors = values[by_size], vectors[:, by_size]
    real = np.abs(values) > 10.0 * len(K) * np.finfo(float).eps * max(
        np.abs(values[0]), np.abs(mean).max()
    )
    kept = int(max(1, real.sum())) if n_components is None else min(n_components, len(K))
    total = float(np.sum(values**2))
    values, vectors = np.where(real, values, 0.0)[:kept], vectors[:, :kept]
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)]
    vectors = vectors * np.where(top < 0.0, -1.0, 1.0)
    scale = np.divide(
        np.sign(values), np.sqrt(np.abs(values)), out=np.zeros(kept), where=values != 0.0
    )
    projection = vectors * scale
    return Axes(
        values, projection, mean @ projection, float(np.sum(values**2)) / total if total else 1.0
    )
