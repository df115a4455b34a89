"""The mixin of estimators whose scores are sums over training items: who speaks for and against a prediction."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin, train_again, two_likeliest
from mercerless.similarity.landmarks import LandmarkStack
from mercerless.similarity.reasons import (
    SplitScores,
    mixed_shares,
    split_by_items,
    split_by_landmarks,
    stack_shares,
)
from mercerless.similarity.several import SUM, Several, items_of
from mercerless.similarity.stack import Block
from mercerless.spectra import square_similarities, symmetrize


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
        several = hasattr(self, "similarities_")
        self._check_explainable(reverse)
        items = self._explained_items()
        if several:
            blocks = self._several_blocks(X, diag, reverse)
            stacks = _split_stacks(self.stack_, self._basis_rows, train, items)
        else:
            blocks = [self._new_block(X, diag, reverse)]
            stacks = {"": (self.stack_, _split(self, self._basis_rows, train, items))}
        names = list(stacks)
        wide = sum(len(stack.average.settings) for stack, _ in stacks.values())
        per_row = 40.0 * len(items) * wide
        for rows in row_blocks(
            len(blocks[0].similarities), per_row, min(2**28, memory_budget() // 2)
        ):
            new = {name: block.take(rows) for name, block in zip(names, blocks)}
            proba = [stack(*new[name][:2]) for name, (stack, _) in stacks.items()]
            classes = two_likeliest(
                self.stack_.mixture(np.stack(proba)) if several else proba[0], self
            )
            shares = {
                name: stack_shares(
                    stack, split(new[name]), new[name].row_diagonal is not None, classes
                )
                for name, (stack, split) in stacks.items()
            }
            explained = mixed_shares(shares, self.stack_.mixture) if several else shares[""]
            yield self._in_units(explained) if classes is None else explained

    def _several_blocks(self, X: Any, diag: Any, reverse: ArrayLike | None) -> list[Block]:
        """Comparisons of new items by every similarity, and by their sum."""
        if reverse is not None:
            raise ValueError("reverse is for one precomputed similarity with direction='mean'.")
        blocks = self._named_blocks(X, diag)
        return [*blocks.values(), self.stack_.summed(blocks)]

    def _explained_items(self) -> NDArray:
        several = hasattr(self, "similarities_")
        models: list[Any] = list(self.similarities_.values()) if several else [self]
        if models[0].landmarks_ is None:
            return self._basis_rows
        stacks = [*(model.stack_ for model in models), *([self.stack_.total] if several else [])]
        known = [self._basis_rows, *(_points(models[0], stack) for stack in stacks)]
        return np.setdiff1d(np.concatenate(known), [-1])


def _points(model: Any, stack: Any) -> NDArray:
    """Training rows at which a stack on landmarks places Gaussians."""
    return model.out_of_fold_.rows[np.searchsorted(stack.judged, stack.members.frame.positions)]


def _split(
    model: Any, rows: NDArray, train: ArrayLike | None, items: NDArray
) -> partial[SplitScores]:
    """What splits the scores of new rows among training items; `rows` are those of its columns."""
    if model.landmarks_ is None:
        return partial(split_by_items, model.stack_, _train_block(model, rows, train))
    if train is not None:
        raise ValueError(
            "train is for a model of all comparisons; one with landmarks knows what it needs."
        )
    return partial(split_by_landmarks, model.stack_, rows, _points(model, model.stack_), items)


def _train_block(model: Any, rows: NDArray, train: ArrayLike | None) -> Block:
    """What a stack on all comparisons was fitted on."""
    matrix = train_again(model, rows, train)
    K = square_similarities(
        matrix if model.direction == "symmetric" else symmetrize(matrix), model.kind_
    )
    diagonal = np.diagonal(K).copy()
    return Block(K, diagonal, diagonal)


def _split_stacks(
    several: Several, rows: NDArray, train: Any, items: NDArray
) -> dict[str, tuple[Any, Callable[[Block], SplitScores]]]:
    """The stacks of several similarities and of their sum, and what splits their scores."""
    models = several.models
    given = items_of(train, several.models)
    splits = {name: _split(model, rows, given[name], items) for name, model in models.items()}
    if isinstance(several.total, LandmarkStack):
        points = _points(next(iter(models.values())), several.total)
        splits[SUM] = partial(split_by_landmarks, several.total, rows, points, items)
    else:
        total = several.summed({name: split.args[1] for name, split in splits.items()})
        splits[SUM] = partial(split_by_items, several.total, total)
    stacks = {name: model.stack_ for name, model in models.items()} | {SUM: several.total}
    return {name: (stacks[name], split) for name, split in splits.items()}
