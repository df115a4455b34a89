"""The mixin of estimators whose scores are sums over training items: who speaks for and against a prediction."""

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercerless._memory import check_memory
from mercerless._validation import check_square
from mercerless.kernels import Precomputed
from mercerless.selection.reasons import Explained, Reasons, pick


class ReasonsMixin:
    """Reasons for predictions, from `_explain_blocks`."""

    classes_: NDArray
    kernel_: Any
    n_features_in_: int
    X_fit_: Any
    _basis_rows: NDArray  # the training item of every column of the comparisons

    def explain(self, X: Any, k: int = 5, **new: Any) -> Reasons:
        """The training items that speak for and against each prediction, with shares that add up to its score.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict`.
        k : int, default=5
            How many training items to name on either side.
        **new : dict
            Further arguments of `predict`, such as ``reverse``. For a precomputed kernel also ``train``, the matrix the
            model was fitted on, which it does not keep.

        Returns
        -------
        Reasons
            Scores, items and shares: ``score = base + shares.sum(axis=1) + rest``; ``text(i)`` says one in words.
        """
        check_is_fitted(self)
        if not (isinstance(k, Integral) and k >= 1):
            raise ValueError(f"k={k!r} must be a positive whole number.")
        picked, blocks = [], []
        for block in self._explain_blocks(X, **new):
            picked.append(pick(np.sum(list(block.families.values()), axis=0), int(k)))
            blocks.append(block._replace(families={name: each.sum(axis=1) for name, each in block.families.items()}))
        items, shares, rest = (np.concatenate(parts) for parts in zip(*picked))
        items = np.append(self._explained_items(), -1)[items]
        fields = {name: _joined([getattr(block, name) for block in blocks]) for name in Explained._fields[1:]}
        if is_classifier(self):
            fields |= {name: self.classes_[fields[name]] for name in ("label", "rival")}
        sums = {name: np.concatenate([block.families[name] for block in blocks]) for name in blocks[0].families}
        return Reasons(items=items, shares=shares, rest=rest, families=sums, given=self._given(items), **fields)

    @abstractmethod
    def _explain_blocks(self, *given: Any, **new: Any) -> Iterator[Explained]:
        """Shares of training items in blocks of new items."""

    def _explained_items(self) -> NDArray:
        """The training item of every column of the shares."""
        return self._basis_rows

    def _train_again(self, train: ArrayLike | None) -> NDArray:
        """The square matrix of the items the model was fitted on."""
        rows = self._basis_rows
        check_memory(40.0 * len(rows) ** 2, f"The shares of {len(rows)} items", remedy="use a model of fewer items")
        if not isinstance(self.kernel_, Precomputed):
            if train is not None:
                raise ValueError("train is for a precomputed kernel; with any other the model knows its items.")
            return self.kernel_(self.X_fit_)
        if train is None:
            raise ValueError(
                "A model of a precomputed matrix does not keep it; pass the matrix it was fitted on as train."
            )
        matrix = check_square(train, "train")
        if len(matrix) != self.n_features_in_:
            raise ValueError(f"train has {len(matrix)} items but the model was fitted on {self.n_features_in_}.")
        return matrix[np.ix_(rows, rows)]

    def _given(self, items: NDArray) -> NDArray | None:
        """Targets of training items, None for those that the model has not kept."""
        held = getattr(self, "out_of_fold_", None)
        if held is None or held.target.ndim > 1:
            return None
        known = np.full(max(items.max(), held.rows.max()) + 2, None, dtype=object)
        known[held.rows] = self.classes_[held.target] if is_classifier(self) else held.target
        return known[items]


def _joined(values: list) -> NDArray | None:
    return None if values[0] is None else np.concatenate(values)
