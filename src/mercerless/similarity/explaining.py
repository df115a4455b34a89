"""The mixin of estimators whose scores are sums over training items: the items for and against a prediction."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.gaps import fill_gaps, fill_used
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin, train_again, two_likeliest
from mercerless.similarity.directions import DirectedRows, with_rows
from mercerless.similarity.families import Comparisons
from mercerless.similarity.landmark_families import Places
from mercerless.similarity.reasons import mixed_shares, stack_shares
from mercerless.similarity.several import SUM, Several, items_of
from mercerless.similarity.stack import Stack
from mercerless.spectra import square_similarities, symmetrize


@dataclass(frozen=True, eq=False)
class ExplainedStack:
    """A stack, and the data that split its scores among training items."""

    stack: Stack
    known: Comparisons | Places  # its training comparisons, or the places of landmarks and points

    def shares(self, new: Comparisons, classes: Any) -> Explained:
        """Contribution of every training item to the predictions of new rows."""
        parts = self.stack.members.split(self.known, new)
        return stack_shares(self.stack, parts, new.has_distances, classes)


class StackReasonsMixin(ReasonsMixin):
    """Reasons of a stack on all comparisons, on those with landmarks, or of an average of several similarities."""

    stack_: Any
    landmarks_: NDArray | None
    similarities_: dict[str, Any]
    mean_: NDArray
    _check_explainable: Any
    _new_block: Any
    _named_blocks: Any
    _in_units: Any

    def _explain_blocks(
        self, X: Any, diag: Any = None, reverse: ArrayLike | None = None, train: Any = None
    ) -> Iterator[Explained]:
        is_several = hasattr(self, "similarities_")
        self._check_explainable(reverse)
        items = self._explained_items()
        if is_several:
            blocks = self._several_blocks(X, diag, reverse)
            stacks = _explained_stacks(self.stack_, self._basis_rows, train, items)
        else:
            blocks = {"": self._new_block(X, diag, reverse)}
            known = _known(self, self.stack_, self._basis_rows, train, items)
            stacks = {"": ExplainedStack(self.stack_, known)}
        n_members = sum(len(one.stack.average.settings) for one in stacks.values())
        n_rows = len(next(iter(blocks.values())))
        budget = min(2**28, memory_budget() // 2)
        for rows in row_blocks(n_rows, 40.0 * len(items) * n_members, budget):
            new = {name: block.take(rows) for name, block in blocks.items()}
            predictions = [one.stack(new[name]) for name, one in stacks.items()]
            prediction = predictions[0]
            if is_several:
                prediction = self.stack_.mixture(np.stack(predictions))
            classes = two_likeliest(prediction, self)
            shares = {name: one.shares(new[name], classes) for name, one in stacks.items()}
            explained = mixed_shares(shares, self.stack_.mixture) if is_several else shares[""]
            yield self._in_units(explained) if classes is None else explained

    def _several_blocks(
        self, X: Any, diag: Any, reverse: ArrayLike | None
    ) -> dict[str, Comparisons]:
        """Comparisons of new items by every similarity, and by their sum."""
        if reverse is not None:
            raise ValueError("reverse is for one precomputed similarity, not for several.")
        blocks = self._named_blocks(X, diag)
        return blocks | {SUM: self.stack_.summed(blocks)}

    def _explained_items(self) -> NDArray:
        is_several = hasattr(self, "similarities_")
        models: list[Any] = list(self.similarities_.values()) if is_several else [self]
        if models[0].landmarks_ is None:
            return self._basis_rows
        stacks = [model.stack_ for model in models]
        if is_several:
            stacks.append(self.stack_.total)
        rows = [self._basis_rows, *(_points(models[0], stack) for stack in stacks)]
        return np.setdiff1d(np.concatenate(rows), [-1])


def _points(model: Any, stack: Stack) -> NDArray:
    """Training rows at which a stack on landmarks places Gaussians."""
    return model.out_of_fold_.rows[np.searchsorted(stack.judged, stack.points)]


def _known(
    model: Any, stack: Stack, rows: NDArray, train: ArrayLike | None, items: NDArray
) -> Comparisons | Places:
    """The data that split the scores of new rows among training items; `rows` are those of its columns."""
    if model.landmarks_ is None:
        return _train_comparisons(model, rows, train)
    if train is not None:
        raise ValueError(
            "train is for a model of all comparisons; one with landmarks knows what it needs."
        )
    return Places(rows, _points(model, stack), items)


def _train_comparisons(model: Any, rows: NDArray, train: ArrayLike | None) -> Comparisons:
    """The comparisons that a stack was fitted on."""
    if model.gaps_ is not None and train is not None:
        train, _ = fill_used(train, rows, model.n_features_in_)
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


def _explained_stacks(
    several: Several, rows: NDArray, train: Any, items: NDArray
) -> dict[str, ExplainedStack]:
    """The stacks of several similarities and of their sum."""
    given = items_of(train, several.models)
    known: dict[str, Any] = {
        name: _known(model, model.stack_, rows, given[name], items)
        for name, model in several.models.items()
    }
    stacks = {
        name: ExplainedStack(model.stack_, known[name]) for name, model in several.models.items()
    }
    first = next(iter(several.models.values()))
    of_sum: Any
    if first.landmarks_ is None:
        of_sum = several.summed(known)
    else:
        of_sum = _known(first, several.total, rows, None, items)
    return stacks | {SUM: ExplainedStack(several.total, of_sum)}
