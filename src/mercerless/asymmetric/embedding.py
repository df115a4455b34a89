"""Embed directed similarities: every item has coordinates as the source and as the target of a comparison."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import svd

from mercerless.asymmetric.selection import affinities, decay_of, no_bandwidths
from mercerless.core.embedding import LandmarkEmbedding
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.validation import check_option, relative_asymmetry
from mercerless.kernels.local import center_bandwidths
from mercerless.lowrank import Landmarks
from mercerless.spectra import check_kind


class DirectedEmbedding(LandmarkEmbedding):
    """Coordinates of directed similarities by coupled singular vectors: kernel PCA for asymmetric matrices.

    With the singular vectors U, V and singular values s of the similarities, item i gets the coordinates ::

        source_i = U[i] * sqrt(s),     target_i = V[i] * sqrt(s),     source_i @ target_j = k(x_i, x_j)

    for the largest singular values. All of them together determine the matrix, so that methods for vectors
    (clustering, plots, any classifier) can be used with it.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        Any kernel, also an asymmetric function of two items; "precomputed" means that X is the matrix ``k(x_i, x_j)``.
    n_components : int or None, default=10
        Number of singular values; None keeps all beyond rounding.
    kind : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        Kind of the matrix. Distances and dissimilarities d become ``exp(-(d - offset) / unit)``, as for
        `AsymmetricRidge`. ``"auto"`` infers it by `mercerless.spectra.matrix_kind`.
    side : {"both", "left", "right"}, default="both"
        The coordinates that `transform` gives: sources ("left", from similarities to the training items), targets
        ("right", from similarities of the training items to an item), or the former and then the latter.
    center : bool, default=False
        Whether the means of rows and of columns are subtracted from the similarities. They are how strongly an item
        points to others, and others to it, which may be information.
    landmarks : int, `mercerless.lowrank.Landmarks` or None, default=None
        Number of training items that define the coordinates; all other items are only compared with these. None uses
        all items.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks.

    Attributes
    ----------
    singular_values_ : ndarray of shape (n_components,)
        The singular values, largest first.
    explained_ : float
        The sum of their squares over that of all.
    source_projection_, target_projection_ : ndarray of shape (n_landmarks, n_components)
        From similarities to coordinates, and from similarities of the training items to an item.
    source_offset_, target_offset_ : ndarray of shape (n_components,)
        The origins, which are subtracted.
    landmarks_ : ndarray of shape (n_landmarks,)
        Positions of the items that new ones are compared with, among the training items.
    symmetric_ : bool
        Whether the similarities of these are the same in both directions.
    kind_ : str
        The kind of the matrix, given or inferred.
    decay_ : tuple of float or None
        Offset and unit of the decay of dissimilarities; None for similarities.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The landmarks themselves; None for a precomputed matrix.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    KreinEmbedding : For symmetric similarities.
    AsymmetricRidgeClassifier : Learns from directed similarities without coordinates.

    Notes
    -----
    One singular value decomposition of the landmarks' similarities. New items are projected as training items are,
    ``(k(x, X) - mean) @ source_projection``; with landmarks this is the Nystroem method of [1]_.

    References
    ----------
    .. [1] Q. Tao, F. Tonin, A. Lambert, Y. Chen, P. Patrinos, J. A. K. Suykens. Learning in feature spaces via coupled
       covariances: asymmetric kernel SVD and Nystroem method. ICML, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import DirectedEmbedding
    >>> K = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0], [0.5, 0.0, 1.0]])
    >>> embedding = DirectedEmbedding("precomputed", None, kind="similarity")
    >>> source, target = np.hsplit(embedding.fit_transform(K), 2)
    >>> np.allclose(source @ target.T, K)
    True
    """

    _directed = True

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int | None = 10,
        *,
        kind: str = "auto",
        side: str = "both",
        center: bool = False,
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
        self.side = side

    def fit_transform(self, X: Any, y: Any = None) -> NDArray:  # type: ignore[override]
        """Learn the coordinates, and give those of the training items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : object
            Ignored.

        Returns
        -------
        ndarray of shape (n, n_features_out)
            The coordinates; a precomputed matrix has both directions.
        """
        self.fit(X)
        if not self._needs_reverse or self.symmetric_:
            return self.transform(X)
        return self.transform(X, reverse=X.T if hasattr(X, "T") else np.asarray(X).T)

    def transform(self, X: Any, reverse: ArrayLike | None = None) -> NDArray:
        """Coordinates of items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The items.
        reverse : array-like of shape (n, n_train) or None, default=None
            For a precomputed matrix the other direction, the training items' similarities to these. Not needed if the
            training matrix was symmetric, or for ``side="left"``; for ``side="right"`` X itself is not used.

        Returns
        -------
        ndarray of shape (n, n_features_out)
            Sources, targets, or sources and then targets.
        """
        items = self._test_items(X)
        if self.side != "left" and center_bandwidths(self.kernel_):
            if not np.array_equal(items, self.X_fit_):
                raise no_bandwidths(self.side)
        if reverse is not None:
            return self._coordinates(items, self._reverse_rows(reverse, items.shape))
        if self._needs_reverse and not self.symmetric_:
            raise ValueError(
                "The other direction of a precomputed matrix is missing; pass reverse, or use "
                "side='left'."
            )
        return self._coordinates(items, items if self._needs_reverse else None)

    @property
    def _needs_reverse(self) -> bool:
        return self.side != "left" and self._basis.given_as_matrix

    def _learn(self, X: Any) -> None:
        check_option("side", self.side, ("both", "left", "right"))
        basis, landmarks, matrix = self._compare_landmarks(X, "singular vectors", 48.0)
        kind = check_kind(matrix, self.kind, basis.matrix_name)
        decay = decay_of(matrix, kind)
        axes = coupled_axes(affinities(matrix, decay), self.n_components, self.center)
        is_symmetric = bool(relative_asymmetry(matrix) <= 1e-8)
        self._store(basis, landmarks, kind, axes, symmetric_=is_symmetric, decay_=decay)

    def _transform(self, items: Any) -> NDArray:
        return self._coordinates(items, None)

    def _coordinates(self, items: Any, reverse: NDArray | None) -> NDArray:
        """Coordinates of checked items; `reverse` has the other direction of a precomputed matrix."""
        out = np.empty((len(items), self._n_features_out))
        n_components = len(self.singular_values_)
        bytes_per_row = 48.0 * len(self.landmarks_)
        for rows in row_blocks(len(items), bytes_per_row, min(2**27, memory_budget() // 2)):
            if self.side != "right":
                values = affinities(self._basis.compare(items[rows]), self.decay_)
                out[rows, :n_components] = values @ self.source_projection_ - self.source_offset_
            if self.side != "left":
                back = None if reverse is None else reverse[rows]
                values = affinities(self._basis.compare_back(items[rows], back), self.decay_)
                out[rows, -n_components:] = values @ self.target_projection_ - self.target_offset_
        return out

    @property
    def _n_features_out(self) -> int:
        n_components = len(self.singular_values_)
        return 2 * n_components if self.side == "both" else n_components


class CoupledAxes(NamedTuple):
    """Coordinates are ``k(x, X) @ source_projection - source_offset``, and ``k(X, x)`` with those of the target."""

    singular_values: NDArray
    source_projection: NDArray
    source_offset: NDArray
    target_projection: NDArray
    target_offset: NDArray
    explained: float


def coupled_axes(K: NDArray, n_components: int | None, center: bool) -> CoupledAxes:
    """The axes of the largest singular values of similarities.

    With ``J = I - 1/n`` and ``J K J = U diag(s) V^T`` the sources are ``(K - means) V s^-1/2``, means those of the
    columns: as V is orthogonal to the ones for every s that is not 0, a row's own mean drops out. Axes of singular
    values that are rounding get coordinates 0. Of every two vectors the one of the sources has its entry of largest
    size positive, so that axes do not depend on the solver.
    """
    n = len(K)
    columns = K.mean(axis=0) if center else np.zeros(n)
    rows = K.mean(axis=1) if center else np.zeros(n)
    centered = K - columns - rows[:, None] + columns.mean()
    U, values, Vt = svd(centered, overwrite_a=True, check_finite=False)
    largest = max(values[0], np.abs(columns).max(), np.abs(rows).max())
    is_real = values > 10.0 * n * np.finfo(float).eps * largest
    kept = int(max(1, is_real.sum()))
    if n_components is not None:
        kept = min(n_components, n)
    total = float(np.sum(values**2))
    values = np.where(is_real, values, 0.0)[:kept]
    U = U[:, :kept]
    V = Vt[:kept].T
    top = U[np.abs(U).argmax(axis=0), np.arange(kept)]
    sign = np.where(top < 0.0, -1.0, 1.0)
    scale = np.divide(sign, np.sqrt(values), out=np.zeros(kept), where=values != 0.0)
    to_sources = V * scale
    to_targets = U * scale
    explained = float(np.sum(values**2)) / total if total else 1.0
    return CoupledAxes(
        values, to_sources, columns @ to_sources, to_targets, rows @ to_targets, explained
    )
