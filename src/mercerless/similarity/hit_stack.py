"""The learner on hits: families judged out of fold, calibrated, averaged, and fitted again on all items.

Rows of new items hold hits among the training items. In a fold, held-out rows keep only their hits among the fold's
training items, so that they look as new items do. An item is never a hit of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.averaging_old import STACKED_CLASSES, STACKED_NUMBERS, average
from mercerless.core.calibration import Calibration, calibrate, fit_temperature, sharpen
from mercerless.core.folds import Split
from mercerless.similarity.hit_families import HitFamily, default_families
from mercerless.similarity.hits import THRESHOLDS, HitTraining, ItemHits, TrainingHits


class HitAverage(NamedTuple):
    """Which settings are averaged, how they are calibrated, and their weights."""

    chosen: NDArray
    weights: NDArray
    certificate: float
    calibration: Calibration | None = None  # of classes, as the temperature
    temperature: float = 1.0

    def __call__(self, scores: NDArray) -> NDArray:
        """Probabilities or numbers (n, q) of scores (n_settings, n, q) of all settings."""
        kept = scores[self.chosen]
        if self.calibration is None:
            return np.tensordot(self.weights, kept, 1)
        proba = np.tensordot(self.weights, self.calibration(kept), 1)
        return sharpen(proba, self.temperature)


def average_settings(
    scores: NDArray, targets: NDArray, weight: NDArray, family_of: NDArray, classify: bool
) -> HitAverage:
    """Keep the best settings of every family by held-out scores, and weigh them by the squared error.

    Scores of classes are calibrated first, and their average is sharpened by a temperature.
    """
    if classify:
        return _average_classes(scores, targets, weight, family_of)
    losses = ((scores - targets) ** 2).mean(axis=2) @ weight
    chosen = _best_of_each(losses, family_of)
    rule = replace(STACKED_NUMBERS, pull=THRESHOLDS.pull)
    solution = average(scores[chosen], targets, weight, rule)
    return HitAverage(chosen, solution.weights, solution.residual)


def _average_classes(
    scores: NDArray, onehot: NDArray, weight: NDArray, family_of: NDArray
) -> HitAverage:
    calibration = calibrate(scores, onehot, weight)
    chosen = _best_of_each(calibration.loss, family_of)
    kept = calibration.take(chosen)
    proba = kept(scores[chosen])
    rule = replace(STACKED_CLASSES, pull=THRESHOLDS.pull)
    solution = average(proba, onehot, weight, rule)
    averaged = np.tensordot(solution.weights, proba, 1)
    temperature = fit_temperature(averaged, onehot, weight)
    certificate = max(calibration.gradient, solution.residual)
    return HitAverage(chosen, solution.weights, certificate, kept, temperature)


def _best_of_each(losses: NDArray, family_of: NDArray) -> NDArray:
    """Positions of the settings of least loss in every family."""
    order = np.argsort(losses, kind="stable")
    best = []
    for family in dict.fromkeys(family_of):
        of_family = order[family_of[order] == family]
        best.append(of_family[: THRESHOLDS.best_settings])
    return np.sort(np.concatenate(best))


class HitStack(NamedTuple):
    """Families fitted on all hits, and their average."""

    families: list[HitFamily]
    average: HitAverage
    held_out: NDArray  # the items that were judged
    out_of_fold: NDArray  # (n_held_out, q), by calibration and weights of the other folds
    family_of: NDArray

    def __call__(self, new: ItemHits) -> NDArray:
        """Probabilities or numbers of new items."""
        return self.average(np.concatenate([family.scores(new) for family in self.families]))


def fit_hit_stack(
    hits: TrainingHits,
    targets: NDArray,
    weight: NDArray,
    classify: bool,
    splits: Sequence[Split],
    random: np.random.RandomState,
) -> HitStack:
    """The learner on hits: held-out scores of every family, their average, and the families on all items.

    Targets (n, q) are one column per class, or standardized numbers; `splits` are folds, or a single hold-out of many
    items. Cost: linear in the hits.
    """

    def fitted_on(items: NDArray) -> list[HitFamily]:
        train = HitTraining(hits.among(items), targets[items], weight[items], classify)
        families = default_families(len(targets), classify, hits.both_directions)
        return [family.fit(train, random) for family in families]

    blocks = []
    for train, test in splits:
        families = fitted_on(train)
        new = hits.of(test, train)
        blocks.append(np.concatenate([family.scores(new) for family in families]))
    family_of = np.array([name for family in families for name in family.names])
    del families
    scores = np.concatenate(blocks, axis=1)

    held_out = np.concatenate([test for _, test in splits])
    fold_of = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    if len(splits) == 1:
        fold_of = random.permutation(len(held_out)) % 5
    truth = targets[held_out]
    held_weight = weight[held_out]
    average = average_settings(scores, truth, held_weight, family_of, classify)
    out_of_fold = np.empty(truth.shape)
    for fold in np.unique(fold_of):
        test = fold_of == fold
        others = ~test
        without = average_settings(
            scores[:, others], truth[others], held_weight[others], family_of, classify
        )
        out_of_fold[test] = without(scores[:, test])

    everything = fitted_on(np.arange(len(targets)))
    return HitStack(everything, average, held_out, out_of_fold, family_of)
