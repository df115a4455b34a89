"""What every estimator with a ``kernel`` parameter shares: items in, a checked matrix out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from mercerless._blocks import check_rows, is_dask
from mercerless._optional import CallbackSupportMixin
from mercerless._validation import check_memory, check_symmetric
from mercerless.kernels import Kernel, PairFunction, Precomputed, as_kernel


class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators that take a ``kernel``: vectors, a precomputed matrix, or any objects.

    A subclass has the parameter ``kernel`` and may have ``n_jobs`` and ``memory_limit``. Its fit calls
    `_train_items` (or `_train_matrix`), its predict calls `_test_matrix`.
    """

    kernel: Any
    _streams = False  # whether fit takes Dask arrays, block by block

    def _train_items(self, X: Any) -> tuple[Kernel, Any]:
        """The resolved kernel and the validated training items; sets ``n_features_in_`` but keeps nothing else."""
        if _is_function(self.kernel):
            items = _check_items(self, X, reset=True)
            return as_kernel(self.kernel, n_jobs=getattr(self, "n_jobs", None)), items
        if is_dask(X):
            X = check_rows(X)
            if not self._streams:
                raise TypeError(
                    f"{type(self).__name__} needs its data in memory; call X.compute() first, or use an estimator with "
                    "a low-rank solver, such as KreinRidge(solver='nystroem')."
                )
            self.n_features_in_ = X.shape[1]
            return as_kernel(self.kernel, X), X
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=1)
        return as_kernel(self.kernel, X), X

    def _train_matrix(self, X: Any) -> NDArray:
        """The symmetric training matrix; sets ``kernel_`` and ``X_fit_``."""
        kernel, X = self._train_items(X)
        if not isinstance(kernel, Precomputed):
            check_memory(8.0 * len(X) ** 2, f"The kernel matrix of {len(X)} items", getattr(self, "memory_limit", None))
        K = check_symmetric(kernel(X), "X" if isinstance(kernel, Precomputed) else "the kernel matrix")
        self.kernel_ = kernel
        # of a precomputed matrix only the number of items is needed later, and n_features_in_ holds it
        self.X_fit_ = None if isinstance(kernel, Precomputed) else X
        return K

    def _test_items(self, X: Any) -> Any:
        """Validated new items; rows of similarities to the training items for a precomputed kernel."""
        check_is_fitted(self)
        if _is_function(self.kernel):
            return _check_items(self, X, reset=False)
        if is_dask(X):
            X = check_rows(X)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns but {self.n_features_in_} were seen in fit.")
            return X
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def _test_matrix(self, X: Any) -> NDArray:
        """The matrix of new items (rows) against the training items (columns)."""
        X = self._test_items(X)
        return self.kernel_(X) if isinstance(self.kernel_, Precomputed) else self.kernel_(X, self.X_fit_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags


def _is_function(kernel: Any) -> bool:
    """Whether items go to a function one by one, so that they may be any objects."""
    if isinstance(kernel, PairFunction):
        return True
    return callable(kernel) and isinstance(as_kernel(kernel), PairFunction)


def _check_items(estimator: BaseEstimator, X: Any, reset: bool) -> Sequence[Any] | NDArray:
    """Rows of a numeric table, checked as scikit-learn does, or a sequence of objects as it is."""
    array = X if hasattr(X, "ndim") else None
    if array is None and isinstance(X, Sequence) and len(X) and np.isscalar(X[0]) is False:
        try:
            array = np.asarray(X, dtype=float)
        except (TypeError, ValueError):  # strings, or series of unequal lengths
            array = None
    if array is not None and array.ndim == 2 and np.asarray(array).dtype.kind in "biuf":
        return validate_data(estimator, X, dtype=[np.float64, np.float32], reset=reset)
    if not hasattr(X, "__len__") or isinstance(X, str):
        raise ValueError(f"X must be a sequence of items (strings, series, rows), not {type(X).__name__}.")
    if len(X) == 0:
        raise ValueError("X has no items; pass at least one.")
    return list(X) if not hasattr(X, "ndim") else X
