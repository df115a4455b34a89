"""The training data of a stack: the task as it was given, and the items that carry weight with their folds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.copies import Gathered, gather_copies
from mercerless.core.estimator import used_rows, used_weights
from mercerless.core.folds import OutOfFold, Split, blind_folds, distinct_items_needed, fold_numbers


class SimilarityTask(NamedTuple):
    """The task as the user gave it, for all items: targets, weights and groups."""

    y: NDArray
    weight: NDArray  # one per item, not all 0
    groups: NDArray | None  # numbers of the groups that are held out together
    # targets of the learners and attributes that describe them, from y and the weights
    encode: Callable[[NDArray, NDArray], tuple[NDArray, dict[str, Any]]]
    block_of: NDArray | None = None  # as `Training.block_of`, if it is shared by several models
    has_labels: bool = False  # whether y has a column of 0 and 1 for each of several labels
    copies: Gathered | None = (
        None  # which item stands for its copies; None if each stands for itself
    )

    def gathered(self, items: Any, precomputed: bool, cv: Any) -> "SimilarityTask":
        """The same task, in which the first of equal items with equal targets carries the weight of all of them."""
        shared = [self.y]
        if self.groups is not None:
            shared.append(self.groups)
        fewest = distinct_items_needed(cv)
        copies = gather_copies(items, self.weight, *shared, precomputed=precomputed, fewest=fewest)
        return self._replace(weight=copies.weight, copies=copies)

    @property
    def used(self) -> NDArray:
        """Positions of the items that carry weight."""
        return used_rows(self.weight, len(self.y))

    @property
    def strata(self) -> NDArray:
        """The classes, of which folds hold equal shares; combinations of several labels."""
        if self.has_labels:
            return np.unique(self.y, axis=0, return_inverse=True)[1].ravel()
        return self.y


class Training(NamedTuple):
    """The training data of a stack: the items that carry weight, their targets, weights and folds."""

    used: NDArray  # their positions
    Y: NDArray  # (n, q), the targets of the learners
    weight: NDArray
    fold_of: NDArray
    block_of: NDArray  # folds that know nothing of the classes, for `similarity.stack.cross_fit`
    encoding: dict[str, Any]  # attributes that describe Y
    task: SimilarityTask  # of all items

    @property
    def n_classes(self) -> int:
        """How many classes there are; one for numbers."""
        return len(self.encoding.get("classes_", [0]))

    def splits_of_all(self, n: int) -> list[Split]:
        """The folds as splits of all n items; those without weight are in no part."""
        fold_of = np.full(n, -1)
        fold_of[self.used] = self.fold_of
        return [
            (np.flatnonzero((fold_of >= 0) & (fold_of != k)), np.flatnonzero(fold_of == k))
            for k in np.unique(self.fold_of)
        ]

    def out_of_fold(self, judged: NDArray, prediction: NDArray) -> tuple[OutOfFold, NDArray]:
        """Predictions for some of these items, by models that have not seen them, and for their copies.

        The second result is the place of each of them in `judged`.
        """
        rows = self.used[judged]
        place = np.arange(len(rows))
        task = self.task
        if task.copies is not None:
            rows, place = task.copies.places(rows)
        groups = None
        if task.groups is not None:
            groups = task.groups[rows]
        return OutOfFold(rows, prediction[place], task.y[rows], groups), place


def make_training(
    task: SimilarityTask,
    items: Any,
    cv: Any,
    *,
    classify: bool,
    precomputed: bool,
    random_state: Any,
) -> Training:
    """Targets, weights and folds of the items that carry weight; `items` are all items, or these alone."""
    used = task.used
    fold_of = fold_numbers(
        cv,
        items,
        task.strata,
        classify=classify,
        groups=task.groups,
        precomputed=precomputed,
        used=used,
        random_state=random_state,
    )
    block_of = task.block_of
    if block_of is None:
        block_of = blind_folds(
            cv,
            fold_of,
            items,
            classify=classify,
            groups=task.groups,
            precomputed=precomputed,
            used=used,
        )
    weight = used_weights(task.weight, used)
    Y, encoding = task.encode(task.y[used], weight)
    return Training(used, Y, weight, fold_of, block_of, encoding, task)
