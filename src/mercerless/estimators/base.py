"""What every estimator with a ``kernel`` parameter shares: items in, a checked matrix out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from mercerless._blocks import check_rows, is_dask
from mercerless._optional import CallbackSupportMixin
from mercerless._validation import as_items
from mercerless.kernels import Kernel, PairFunction, Precomputed, as_kernel


class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators that take a ``kernel``: vectors, a precomputed matrix, or any objects.

    A subclass has the parameter ``kernel`` and may have ``n_jobs`` and ``memory_limit``. Its fit calls
    `_train_items`, its predict calls `_test_items`.
    """

    kernel: Any
    _streams = False  # whether fit takes Dask arrays, block by block
    _numeric_items = False  # whether a function kernel was trained on rows of numbers

    def _train_items(self, X: Any, weight: NDArray | None = None) -> tuple[Kernel, Any]:
        """The resolved kernel and all validated training items; sets ``n_features_in_`` but keeps nothing else.

        Rows of weight 0 have no say in the kernel's default parameters.
        """
        if _takes_objects(self.kernel):
            items = _check_items(self, X, reset=True)
            check_consistent_length(items, weight)
            kernel = as_kernel(self.kernel, n_jobs=getattr(self, "n_jobs", None))
            if isinstance(kernel, PairFunction):
                kernel = kernel.checked(items[used_rows(weight, len(items))])
            return kernel, items
        if is_dask(X):
            X = check_rows(X)
            if not self._streams:
                raise TypeError(
                    f"{type(self).__name__} needs its data in memory; call X.compute() first, or use an estimator with "
                    "a low-rank solver, such as KreinRidge(solver='nystroem')."
                )
            self.n_features_in_ = X.shape[1]
        else:
            X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=1)
        check_consistent_length(X, weight)
        used = used_rows(weight, len(X))
        return as_kernel(self.kernel, X if len(used) == len(X) else X[used]), X

    def _test_items(self, X: Any) -> Any:
        """Validated new items; rows of similarities to the training items for a precomputed kernel."""
        check_is_fitted(self)
        if _takes_objects(self.kernel):
            return _check_items(self, X, reset=False)
        if is_dask(X):
            X = check_rows(X)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns but {self.n_features_in_} were seen in fit.")
            return X
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags


def used_rows(weight: NDArray | None, n: int) -> NDArray:
    """Positions of the rows that carry weight; the others are treated as if they were not there."""
    return np.arange(n) if weight is None else np.flatnonzero(weight)


def used_items(kernel: Kernel, items: Any, used: NDArray) -> Any:
    """The items at these positions; of a precomputed matrix their rows and columns."""
    if len(used) == len(items):
        return items
    return items[np.ix_(used, used)] if isinstance(kernel, Precomputed) else items[used]


def _takes_objects(kernel: Any) -> bool:
    """Whether items go to a function one by one, so that they may be any objects."""
    parts = [kernel, *kernel.get_params().values()] if isinstance(kernel, Kernel) else [as_kernel(kernel)]
    return any(isinstance(part, PairFunction) for part in parts)


def _check_items(estimator: "KernelEstimator", X: Any, reset: bool) -> NDArray:
    """Rows of a numeric table, checked as scikit-learn does, or objects as they are; training decides which."""
    items = as_items(X)
    if items.ndim == 2:
        estimator._numeric_items = reset or estimator._numeric_items
        return validate_data(estimator, X, dtype=[np.float64, np.float32], reset=reset)
    if reset:  # a list has no columns: what its rows may be compared with is for the function to decide
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)
    rows = _as_rows(items) if reset or estimator._numeric_items else None
    if reset:
        estimator._numeric_items = rows is not None and rows.ndim == 2
    return rows if rows is not None and estimator._numeric_items else items


def _as_rows(items: NDArray) -> NDArray | None:
    """Lists, tuples or arrays of numbers as rows, a table where they are equally long; None for anything else."""
    rows = []
    for item in items:
        if (row := _as_row(item)) is None:
            return None
        rows.append(row)
    if len({len(row) for row in rows}) == 1:
        return check_array(np.array(rows), dtype=[np.float64, np.float32], input_name="X")
    return as_items([row.astype(np.float64) for row in rows])


def _as_row(item: Any) -> NDArray | None:
    """A list, tuple or one-dimensional array of numbers as an array; None for anything else."""
    if not isinstance(item, (list, tuple, np.ndarray)):
        return None
    try:
        row = np.asarray(item)
    except ValueError:  # nested lists of unequal lengths
        return None
    return row if row.ndim == 1 and row.size and row.dtype.kind in "biuf" else None
