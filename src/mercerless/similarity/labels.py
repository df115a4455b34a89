"""Several labels per item: one stack whose members serve all labels, averaged for each label by itself.

Every label is a decision between two classes and has two columns of targets of +-1. All columns share the
decompositions of a fold; settings, calibration, weights and temperature are those of a stack for the label alone.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.folds import splits_of
from mercerless.core.validation import check_readable
from mercerless.similarity.families import (
    ClassDistances,
    LogisticFamily,
    Setting,
    StackFamily,
    all_settings,
)
from mercerless.similarity.stack import (
    AllItems,
    Average,
    NegativeSpectrum,
    RunTasks,
    Stack,
    run_in_order,
    weigh_members,
)


def are_labels(y: Any) -> bool:
    """Whether y has several columns, one for each of several labels."""
    is_sparse = hasattr(y, "toarray")
    if not is_sparse:
        y = np.asarray(y)
    return len(y.shape) == 2 and y.shape[1] > 1


def check_label_matrix(y: Any) -> NDArray:
    """The matrix of 0 and 1 that several labels per item are given as."""
    if hasattr(y, "toarray"):
        y = y.toarray()
    check_readable(y, "y")
    labels = np.asarray(y)
    if labels.dtype == object:
        try:
            labels = labels.astype(float)
        except (TypeError, ValueError):
            labels = np.full(labels.shape, np.nan)
    is_number = labels.dtype.kind in "biuf"
    if not is_number or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"y of shape {labels.shape} must hold 0 and 1 only, one column per label; for columns "
            "of several classes each fit one model per column."
        )
    return labels.astype(int)


def encode_labels(y: NDArray, weight: NDArray) -> tuple[NDArray, dict[str, Any]]:
    """Two columns of +-1 for every column of 0 and 1: for its absence and its presence."""
    present = np.where(y > 0, 1.0, -1.0)
    n, n_labels = y.shape
    Y = np.stack([-present, present], axis=2).reshape(n, 2 * n_labels)
    return Y, {"classes_": np.arange(n_labels), "multilabel_": True}


def pairs_of(values: NDArray) -> Iterator[NDArray]:
    """The two columns (along the last axis) of every label."""
    for start in range(0, values.shape[-1], 2):
        yield values[..., start : start + 2]


class PerLabel(StackFamily):
    """A family whose outputs depend on each other, fitted for every label by itself."""

    models: list[StackFamily]

    def __init__(self, family: StackFamily):
        super().__init__(family.settings)
        self.family = family
        self.needs_diagonal = family.needs_diagonal

    def keep(self, settings: Sequence[Setting]) -> Self:
        """The same with some of its settings only."""
        kept = copy(self)
        kept.family = self.family.keep(settings)
        kept.settings = kept.family.settings
        return kept

    def _learn(self, train: Any) -> None:
        self.models = [self.family.fit(train, pair, self.weight) for pair in pairs_of(self.targets)]

    def scores(self, new: Any) -> NDArray:
        """Scores of the labels side by side."""
        return np.concatenate([model.scores(new) for model in self.models], axis=2)


@dataclass(frozen=True)
class LabelAverages:
    """An `Average` for every label, over members that all share."""

    averages: tuple[Average, ...]
    settings: tuple[Setting, ...]  # of all labels
    by_block = None  # nothing further is chosen
    calibration = None  # every label has its own

    def __call__(self, scores: NDArray, diagonal_known: bool) -> NDArray:
        """Probabilities (m, n_labels) that a label is present, from the members' scores (n_members, m, 2 n_labels)."""
        columns = []
        for average, pair in zip(self.averages, pairs_of(scores)):
            positions = [self.settings.index(setting) for setting in average.settings]
            columns.append(average(pair[positions], diagonal_known)[:, 1])
        return np.column_stack(columns)

    @property
    def weights(self) -> NDArray:
        """Weights (n_labels, n_members)."""
        return self._spread([average.weights for average in self.averages])

    @property
    def weights_without_diag(self) -> NDArray:
        """Weights (n_labels, n_members) if the items' own similarities are not known."""
        return self._spread([average.weights_without_diag for average in self.averages])

    def _spread(self, weights: Sequence[NDArray]) -> NDArray:
        spread = np.zeros((len(self.averages), len(self.settings)))
        for label, (average, of_label) in enumerate(zip(self.averages, weights)):
            positions = [self.settings.index(setting) for setting in average.settings]
            spread[label, positions] = of_label
        return spread

    @property
    def family_scores(self) -> dict[str, dict[str, float]]:
        """Figures of the families and of the average, means over the labels."""
        tables = [average.family_scores for average in self.averages]
        return {
            family: {
                name: float(np.mean([table[family][name] for table in tables])) for name in figures
            }
            for family, figures in tables[0].items()
        }

    @property
    def negative_spectrum(self) -> tuple[NegativeSpectrum, ...]:
        """Value of the negative eigenvalues for every label."""
        return tuple(average.negative_spectrum for average in self.averages)

    @property
    def certificate(self) -> float:
        """The largest of the labels."""
        return max(average.certificate for average in self.averages)

    @property
    def losses(self) -> NDArray:
        """Squared errors (n,), sums over the labels."""
        return np.sum([average.losses for average in self.averages], axis=0)

    @property
    def out_of_fold(self) -> NDArray:
        """Probabilities (n, n_labels) that a label is present, by models that have not seen the item."""
        return np.column_stack([average.out_of_fold[:, 1] for average in self.averages])


def fit_labels(
    source: AllItems, Y: NDArray, weight: NDArray, block_of: NDArray, run: RunTasks = run_in_order
) -> Stack:
    """`similarity.stack.fit_stack` for the pairs of columns of `encode_labels`."""
    learned = source.learn(Y, weight, classify=True)
    families = []
    for family in learned.families:
        is_coupled = isinstance(family, (LogisticFamily, ClassDistances))
        families.append(PerLabel(family) if is_coupled else family)
    learned = replace(learned, families=tuple(families))
    scores = learned.out_of_fold(run)

    settings = all_settings(families)
    blocks = splits_of(block_of)
    averages = []
    for of_label, targets in zip(pairs_of(scores), pairs_of(Y)):
        average, _ = weigh_members(
            of_label, settings, targets, None, weight, blocks, True, source.pull(classify=True)
        )
        averages.append(average._replace(by_block=None))
    chosen = {setting for average in averages for setting in average.settings}
    kept = tuple(setting for setting in settings if setting in chosen)
    (members,) = run("members", partial(learned.fit, outputs=slice(None)), [kept])
    return Stack(LabelAverages(tuple(averages), kept), members, learned.judged, learned.points)
