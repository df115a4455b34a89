"""The base of all Krein models: coefficients of similarities to the training rows, or to landmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.core.basis import Basis
from mercerless.core.blocks import blockwise
from mercerless.core.estimator import KernelPredictor
from mercerless.core.kinds import warn_if_distances
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.validation import check_symmetric


class KreinModel(KernelPredictor):
    """A model ``f(x) = k(x, basis) @ dual_coef_.T + intercept_`` of an indefinite kernel."""

    landmarks_: NDArray | None = None
    dual_coef_: NDArray
    _basis: Basis  # what new items are compared with

    predict = blockwise(KernelPredictor.predict)

    def _matrix(self, basis: Basis) -> NDArray:
        K = check_symmetric(basis.matrix(), basis.matrix_name)
        if basis.given_as_matrix:
            warn_if_distances(K, type(self).__name__)
        return K

    def _evaluate(self, X: Any, *names: str) -> list[NDArray]:
        """``k(X, basis) @ coef.T`` for the attributes named, in blocks of rows so that no large matrix is kept."""
        check_is_fitted(self)
        coefs = [getattr(self, name) for name in names]
        blocks = [[K @ coef.T for coef in coefs] for K in self._comparisons(X)]
        return [np.concatenate(pieces) for pieces in zip(*blocks)]

    def _comparisons(self, X: Any) -> Iterator[NDArray]:
        """``k(X, basis)`` in blocks of rows."""
        items = self._test_items(X)
        bytes_per_row = 24.0 * self.dual_coef_.shape[1]
        for rows in row_blocks(len(items), bytes_per_row, min(2**27, memory_budget() // 2)):
            yield self._basis.compare(items[rows])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")
