"""The mixin of estimators whose scores are sums over training items: who speaks for and against a prediction."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercerless._memory import check_memory, memory_budget, row_blocks
from mercerless._validation import align_columns, check_number, check_square, column_labels
from mercerless.estimators.several import SUM, Several, items_of
from mercerless.kernels import Precomputed
from mercerless.selection.landmarks import LandmarkStack
from mercerless.selection.reasons import (
    Explained,
    Reasons,
    SplitScores,
    mixed_shares,
    pick,
    split_by_items,
    split_by_landmarks,
    stack_shares,
)
from mercerless.selection.similarity import Block
from mercerless.spectra import square_similarities, symmetrize


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
        check_number("k", k, whole=True)
        picked, blocks = [], []
        for block in self._explain_blocks(X, **new):
            picked.append(pick(np.sum(list(block.families.values()), axis=0), int(k)))
            blocks.append(
                block._replace(
                    families={name: each.sum(axis=1) for name, each in block.families.items()}
                )
            )
        items, shares, rest = (np.concatenate(arrays) for arrays in zip(*picked))
        items = np.append(self._explained_items(), -1)[items]
        fields = {
            name: _joined([getattr(block, name) for block in blocks])
            for name in Explained._fields[1:]
        }
        if is_classifier(self):
            fields |= {name: self.classes_[fields[name]] for name in ("label", "rival")}
        sums = {
            name: np.concatenate([block.families[name] for block in blocks])
            for name in blocks[0].families
        }
        return Reasons(
            items=items, shares=shares, rest=rest, families=sums, given=self._given(items), **fields
        )

    @abstractmethod
    def _explain_blocks(self, *given: Any, **new: Any) -> Iterator[Explained]:
        """Shares of training items in blocks of new items."""

    def _explained_items(self) -> NDArray:
        """The training item of every column of the shares."""
        return self._basis_rows

    def _train_again(self, train: ArrayLike | None) -> NDArray:
        """The square matrix of the items the model was fitted on."""
        return train_again(self, self._basis_rows, train)

    def _given(self, items: NDArray) -> NDArray | None:
        """Targets of training items, None for those that the model has not kept."""
        held = getattr(self, "out_of_fold_", None)
        if held is None or held.target.ndim > 1:
            return None
        known = np.full(max(items.max(), held.rows.max()) + 2, None, dtype=object)
        known[held.rows] = self.classes_[held.target] if is_classifier(self) else held.target
        return known[items]


def train_again(model: Any, rows: NDArray, train: ArrayLike | None) -> NDArray:
    """The square matrix of the items that a model was fitted on, at these rows of a precomputed one."""
    check_memory(
        40.0 * len(rows) ** 2,
        f"The shares of {len(rows)} items",
        remedy="use a model of fewer items",
    )
    if not isinstance(model.kernel_, Precomputed):
        if train is not None:
            raise ValueError(
                "train is for a precomputed kernel; with any other the model knows its items."
            )
        return model.kernel_(model.X_fit_)
    if train is None:
        raise ValueError(
            "A model of a precomputed matrix does not keep it; pass the matrix it was fitted on as train."
        )
    labels = column_labels(model)
    if labels is not None and hasattr(train, "iloc"):
        train = align_columns(train, labels, "train")
        train = align_columns(train.T, labels, "train").T
    matrix = check_square(train, "train")
    if len(matrix) != model.n_features_in_:
        raise ValueError(
            f"train has {len(matrix)} items but the model was fitted on {model.n_features_in_}."
        )
    return matrix[np.ix_(rows, rows)]


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
        names, wide = list(stacks), sum(len(stack.average.settings) for stack, _ in stacks.values())
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
            raise ValueError("reverse is for one precomputed similarity with symmetrize=True.")
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
    K = square_similarities(symmetrize(matrix) if model.symmetrize else matrix, model.input_)
    diagonal = np.diagonal(K).copy()
    return Block(K, diagonal, diagonal)


def _split_stacks(
    several: Several, rows: NDArray, train: Any, items: NDArray
) -> dict[str, tuple[Any, Callable[[Block], SplitScores]]]:
    """The stacks of several similarities and of their sum, and what splits their scores."""
    models, given = several.models, items_of(train, several.models)
    splits = {name: _split(model, rows, given[name], items) for name, model in models.items()}
    if isinstance(several.total, LandmarkStack):
        points = _points(next(iter(models.values())), several.total)
        splits[SUM] = partial(split_by_landmarks, several.total, rows, points, items)
    else:
        total = several.summed({name: split.args[1] for name, split in splits.items()})
        splits[SUM] = partial(split_by_items, several.total, total)
    stacks = {name: model.stack_ for name, model in models.items()} | {SUM: several.total}
    return {name: (stacks[name], split) for name, split in splits.items()}


def two_likeliest(values: NDArray, model: Any) -> tuple[NDArray, NDArray] | None:
    """The likeliest class of every row and the next; None for numbers."""
    if not is_classifier(model):
        return None
    order = np.argsort(-values, axis=1, kind="stable")
    return order[:, 0], order[:, 1]


def _joined(values: list) -> Any:
    return None if values[0] is None else np.concatenate(values)
