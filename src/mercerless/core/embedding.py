"""The base of embeddings: coordinates of items from their comparisons with landmarks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercerless.core.basis import Basis
from mercerless.core.estimator import KernelTransformer, landmark_rows
from mercerless.core.memory import check_memory
from mercerless.core.validation import check_number, check_square
from mercerless.lowrank import Landmarks
from mercerless.spectra import check_kind_of_kernel


class LandmarkEmbedding(KernelTransformer):
    """Base of embeddings by a decomposition of the landmarks' comparisons with each other."""

    landmarks_: NDArray
    kind_: str
    _basis: Basis  # what new items are compared with

    def __init__(
        self,
        kernel: Any,
        n_components: int | None,
        *,
        kind: str,
        center: bool,
        landmarks: int | Landmarks | None,
        random_state: int | np.random.RandomState | None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.kind = kind
        self.center = center
        self.landmarks = landmarks
        self.random_state = random_state

    def _compare_landmarks(
        self, X: Any, decomposition: str, bytes_per_entry: float
    ) -> tuple[Basis, NDArray, NDArray]:
        """The items, the positions of the landmarks, and their comparisons with each other."""
        check_number("n_components", self.n_components, whole=True, none=True)
        basis = self._train_basis(X)
        check_kind_of_kernel(basis.kernel, self.kind)
        if basis.given_as_matrix:
            check_square(basis.items, "X")
        landmarks = landmark_rows(basis.kernel, basis.items, self.landmarks, self.random_state)
        what = f"The {decomposition} of {len(landmarks)} items"
        check_memory(bytes_per_entry * len(landmarks) ** 2, what, remedy="use landmarks")
        matrix = check_square(basis.kernel(basis.take(landmarks)), basis.matrix_name)
        return basis, landmarks, matrix

    def _store(
        self, basis: Basis, landmarks: NDArray, kind: str, axes: Any, **attributes: Any
    ) -> None:
        """Set the fitted attributes: the fields of the axes among them."""
        basis = basis.fitted(landmarks)
        self._set_fitted(
            **{f"{name}_": value for name, value in axes._asdict().items()},
            **attributes,
            _basis=basis,
            landmarks_=landmarks,
            kind_=kind,
            kernel_=basis.kernel,
            X_fit_=basis.kept,
        )
