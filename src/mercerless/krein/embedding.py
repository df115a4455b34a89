"""Embed symmetric similarities or distances in a pseudo-Euclidean space, whose axes have signs."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from mercerless.core.embedding import LandmarkEmbedding
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.validation import check_symmetric
from mercerless.lowrank import Landmarks
from mercerless.spectra import as_similarities, check_kind


class KreinEmbedding(LandmarkEmbedding):
    """Coordinates whose signed inner products are the similarities: kernel PCA for indefinite matrices.

    With the eigenvectors V and eigenvalues w of the (centered) similarities, item i gets the coordinates ::

        z_i = V[i] * sqrt(|w|),     (z_i * signs) @ z_j = k(x_i, x_j),     signs = sign(w)

    for the eigenvalues of largest absolute value. Axes of sign +1 are those of kernel PCA and of classical scaling,
    which have no others; along axes of sign -1 squared distances count negatively. All axes together determine the
    matrix, so that methods for vectors (clustering, plots, one-class models, any classifier) can be used with it.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items.
    n_components : int or None, default=2
        Number of axes, those of the eigenvalues of largest absolute value; None keeps all beyond rounding.
    kind : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        Kind of the matrix. Distances d become similarities ``-d**2 / 2``, dissimilarities ``-d``. ``"auto"`` infers it
        by `mercerless.spectra.matrix_kind`.
    center : bool, default=True
        Whether the origin is the mean of the training items, as in kernel PCA; distances need it.
    landmarks : int, `mercerless.lowrank.Landmarks` or None, default=None
        Number of training items that define the axes, their mean and their spectrum; all other items are only compared
        with these. None uses all items.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        The eigenvalues of the axes, largest absolute value first, not divided by the number of items.
    signs_ : ndarray of shape (n_components,)
        1, -1, or 0 for an axis on which all coordinates are 0.
    explained_ : float
        The sum of the squared eigenvalues of the axes over that of all.
    projection_ : ndarray of shape (n_landmarks, n_components)
        From similarities to coordinates.
    offset_ : ndarray of shape (n_components,)
        The origin, which is subtracted from the projected similarities.
    landmarks_ : ndarray of shape (n_landmarks,)
        Positions of the items that new ones are compared with, among the training items.
    kind_ : str
        The kind of the matrix, given or inferred.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The landmarks themselves; None for a precomputed matrix.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    SimilarityFeatures : Similarities themselves as features.
    mercerless.spectra.indefiniteness : How much of the spectrum is negative.

    Notes
    -----
    One symmetric eigendecomposition. New items are projected as in kernel PCA, ``(k(x, X) - mean) @ projection``, and
    training items get the coordinates above. Euclidean methods on all axes see the matrix with its negative
    eigenvalues' sign changed ("flip"); ``Z[:, embedding.signs_ > 0]`` leaves them out ("clip"). The squared distance
    that the similarity means is ``((z - u) ** 2 * signs).sum()``, which may be negative.

    References
    ----------
    .. [1] L. Goldfarb. A unified approach to pattern recognition. Pattern Recognition 17, 1984.
    .. [2] E. Pekalska, R. P. W. Duin. The Dissimilarity Representation for Pattern Recognition. World Scientific, 2005.
    .. [3] V. de Silva, J. B. Tenenbaum. Sparse multidimensional scaling using landmark points. Stanford, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinEmbedding
    >>> K = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, -1.0], [1.0, -1.0, 1.0]])
    >>> embedding = KreinEmbedding("precomputed", None, kind="similarity", center=False)
    >>> Z = embedding.fit_transform(K)
    >>> embedding.signs_
    array([-1.,  1.,  1.])
    >>> np.allclose((Z * embedding.signs_) @ Z.T, K)
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int | None = 2,
        *,
        kind: str = "auto",
        center: bool = True,
        landmarks: int | Landmarks | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(
            kernel,
            n_components,
            kind=kind,
            center=center,
            landmarks=landmarks,
            random_state=random_state,
        )

    def _learn(self, X: Any) -> None:
        basis, landmarks, matrix = self._compare_landmarks(X, "spectrum", 40.0)
        matrix = check_symmetric(matrix, basis.matrix_name)
        kind = check_kind(matrix, self.kind, basis.matrix_name)
        axes = pseudo_euclidean_axes(as_similarities(matrix, kind), self.n_components, self.center)
        self._store(basis, landmarks, kind, axes, signs_=np.sign(axes.eigenvalues))

    def _transform(self, items: Any) -> NDArray:
        out = np.empty((len(items), len(self.eigenvalues_)))
        bytes_per_row = 24.0 * len(self.landmarks_)
        for rows in row_blocks(len(items), bytes_per_row, min(2**27, memory_budget() // 2)):
            values = as_similarities(self._basis.compare(items[rows]), self.kind_)
            out[rows] = values @ self.projection_ - self.offset_
        return out

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)


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
    centered = K - mean - mean[:, None] + mean.mean()
    values, vectors = eigh(centered, driver="evd", overwrite_a=True, check_finite=False)
    by_size = np.argsort(-np.abs(values), kind="stable")
    values = values[by_size]
    vectors = vectors[:, by_size]
    real = np.abs(values) > 10.0 * len(K) * np.finfo(float).eps * max(
        np.abs(values[0]), np.abs(mean).max()
    )
    kept = int(max(1, real.sum()))
    if n_components is not None:
        kept = min(n_components, len(K))
    total = float(np.sum(values**2))
    values = np.where(real, values, 0.0)[:kept]
    vectors = vectors[:, :kept]
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)]
    vectors = vectors * np.where(top < 0.0, -1.0, 1.0)
    scale = np.divide(
        np.sign(values), np.sqrt(np.abs(values)), out=np.zeros(kept), where=values != 0.0
    )
    projection = vectors * scale
    return Axes(
        values, projection, mean @ projection, float(np.sum(values**2)) / total if total else 1.0
    )
