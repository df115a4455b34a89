"""The mixin of estimators whose scores are sums over training items: the items for and against a prediction."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.basis import align_train
from mercerless.core.gaps import fill_gaps, fill_used
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin, train_again, two_likeliest
from mercerless.core.validation import column_labels
from mercerless.similarity.directions import DirectedRows, with_rows
from mercerless.similarity.families import Comparisons
from mercerless.similarity.landmark_families import Places
from mercerless.similarity.reasons import stack_shares
from mercerless.similarity.stack import Stack
from mercerless.spectra import square_similarities, symmetrize


@dataclass(frozen=True, eq=False)
class ExplainedStack:
    """A stack, and the data that split its scores among training items."""

    stack: Stack
    known: Any  # its training `Comparisons`, or the `Places` of landmarks and points

    @property
    def n_members(self) -> int:
        """Members of the stack."""
        return len(self.stack.average.settings)

    def shares(self, new: Comparisons, classes: Any) -> Explained:
        """Contribution of every training item to the predictions of new rows."""
        parts = self.stack.members.split(self.known, new)
        return stack_shares(self.stack, parts, new.has_distances, classes)


class StackReasonsMixin(ReasonsMixin):
    """Reasons of a stack on all comparisons, on those with landmarks, or of an average of several similarities."""

    stack_: Any
    landmarks_: NDArray | None
    _check_explainable: Any
    _in_units: Any

    def _explain_blocks(
        self, X: Any, diag: Any = None, reverse: ArrayLike | None = None, train: Any = None
    ) -> Iterator[Explained]:
        self._check_explainable(reverse)
        items = self._explained_items()
        compared = self.stack_.compare(self, X, diag, reverse)
        explained = self.stack_.explained(self, train, items)
        row_bytes = 40.0 * len(items) * explained.n_members
        budget = min(2**28, memory_budget() // 2)
        for rows in row_blocks(len(compared), row_bytes, budget):
            new = compared.take(rows)
            classes = two_likeliest(self.stack_(new), self)
            shares = explained.shares(new, classes)
            if classes is None:
                shares = self._in_units(shares)
            yield shares

    def _explained_items(self) -> NDArray:
        return self.stack_.rows_with_shares(self)

    # answers of a model of one similarity to its stack

    def _rows_with_shares(self) -> NDArray:
        """Training rows that have a share in predictions."""
        if self.landmarks_ is None:
            return self._basis_rows
        rows = [self._basis_rows, rows_of_points(self, self.stack_)]
        return np.setdiff1d(np.concatenate(rows), [-1])

    def _explained_stack(self, train: Any, items: NDArray) -> ExplainedStack:
        """The stack with the data that split its scores among these items."""
        return ExplainedStack(self.stack_, known_comparisons(self, self.stack_, train, items))


def rows_of_points(model: Any, stack: Stack) -> NDArray:
    """Training rows at which a stack on landmarks places Gaussians; the first of equal items stands for all."""
    first_rows = np.unique(model._judged_place_, return_index=True)[1]
    places = np.searchsorted(stack.judged, stack.points)
    return model.out_of_fold_.rows[first_rows[places]]


def known_comparisons(
    model: Any, stack: Stack, train: ArrayLike | None, items: NDArray
) -> Comparisons | Places:
    """The data that split the scores of new rows among training items."""
    if model.landmarks_ is None:
        return _train_comparisons(model, train)
    if train is not None:
        raise ValueError(
            "train is for a model of all comparisons; one with landmarks knows what it needs."
        )
    return Places(model._basis_rows, rows_of_points(model, stack), items)


def _train_comparisons(model: Any, train: ArrayLike | None) -> Comparisons:
    """The comparisons that a stack was fitted on."""
    rows = model._basis_rows
    if model.gaps_ is not None and train is not None:
        train = align_train(train, column_labels(model))
        train, _ = fill_used(train, model._completed_rows_, model.n_features_in_)
    matrix = train_again(model, rows, train)
    if model.gaps_ is not None and train is None:  # a function gave None for some pairs
        matrix, _ = fill_gaps(matrix)
    if model.direction == "symmetric":
        return Comparisons.of(square_similarities(matrix, model.kind_))
    if model.direction == "both":
        matrix = matrix.astype(np.float64)
    mean = Comparisons.of(square_similarities(symmetrize(matrix), model.kind_))
    if model.direction == "mean":
        return mean
    return with_rows(mean, DirectedRows(matrix, matrix.T, model.decay_))
