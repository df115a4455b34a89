"""How predictions of held-out rows are judged, and the weights of those who made them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from mercerless.core.averaging import TABLE_CLASSES, TABLE_NUMBERS, average
from mercerless.core.calibration import calibrate_scores
from mercerless.core.choice import choice_parts
from mercerless.core.folds import Split
from mercerless.lab.model import Rows


def as_scores(predictions: NDArray) -> NDArray:
    """One column per class."""
    if predictions.shape[1] > 1:
        return predictions
    return np.hstack([-predictions, predictions]) / 2


class Labeled(NamedTuple):
    """Rows and, for classification, their classes."""

    rows: Rows
    labels: NDArray | None

    def take(self, numbers: Any) -> "Labeled":
        """Some of the rows."""
        labels = self.labels
        if labels is not None:
            labels = labels[numbers]
        return Labeled(self.rows.take(numbers), labels)

    def joined(self, other: "Labeled | None") -> "Labeled":
        """With the rows of another."""
        if other is None:
            return self
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = np.concatenate([self.labels, other.labels])
        return Labeled(self.rows.joined(other.rows), labels)

    def judge(self, predictions: NDArray) -> float:
        """The mean squared error of predictions for these rows, or the log-loss of calibrated scores."""
        weight = self.rows.weight
        if self.labels is not None:
            return float(calibrate_scores(as_scores(predictions), self.labels, weight).loss)
        squares = np.sum((predictions - self.rows.Y) ** 2, axis=1)
        return float(np.average(squares, weights=weight))

    def losses(self, predictions: NDArray) -> NDArray:
        """Of every row the log-loss of log-odds as they are, or the squared error, times its weight.

        Calibrated, few trees would seem as good as enough.
        """
        if self.labels is None:
            losses = np.sum((predictions - self.rows.Y) ** 2, axis=1)
        else:
            logs = log_softmax(as_scores(predictions), axis=1)
            losses = -logs[np.arange(len(logs)), self.labels]
        return losses * self.rows.weight

    def loss(self, predictions: NDArray) -> float:
        """The mean of these."""
        return float(self.losses(predictions).sum() / self.rows.weight.sum())


@dataclass(frozen=True)
class Jury:
    """Weighs models by their predictions of held-out rows: least squares, or for classes the least log-loss."""

    held: Labeled
    max_members: int

    def weights(self, predictions: Sequence[NDArray], places: Any = slice(None)) -> NDArray:
        """Nonnegative weights with sum 1, from the held-out rows at these places."""
        held = self.held.take(places)
        chosen = [p[places] for p in predictions]
        if held.labels is not None:
            return pool_weights(chosen, held.labels, held.rows.weight, self.max_members)
        rule = replace(TABLE_NUMBERS, max_members=self.max_members)
        return average(chosen, held.rows.Y, held.rows.weight, rule).weights

    def errors(self, predictions: Sequence[NDArray]) -> list[float]:
        """The log-loss of every model, or its squared error."""
        held = self.held
        if held.labels is not None:
            return [held.judge(p) for p in predictions]
        # without weights: those of outliers were lowered, and would flatter
        return [float(np.mean(np.sum((p - held.rows.Y) ** 2, axis=1))) for p in predictions]


def weighted_sum(
    weights: Sequence[float] | NDArray, predictions: Sequence[NDArray] | NDArray
) -> NDArray:
    """The average of predictions."""
    return np.sum([weight * p for weight, p in zip(weights, predictions)], axis=0)


def cross_weighed(
    predictions: Sequence[NDArray],
    weights: NDArray,
    weigh: Callable[[NDArray], NDArray],
    folds: Sequence[Split],
) -> NDArray:
    """Out-of-fold predictions of the average, each by weights from the other folds, or parts of a hold-out.

    `weigh` gives the weights from the held-out rows at some places.
    """
    averaged = weighted_sum(weights, predictions)
    parts = choice_parts(folds)
    if len(parts) < 2:
        return averaged
    for part in parts:
        others = np.setdiff1d(np.arange(len(averaged)), part)
        averaged[part] = weighted_sum(weigh(others), [p[part] for p in predictions])
    return averaged


def pool_weights(
    predictions: Sequence[NDArray], labels: NDArray, weight: NDArray, max_members: int = 4
) -> NDArray:
    """Weights with sum 1 for scores of several models: log-odds, each calibrated, are averaged to the least log-loss.

    The rule is `TABLE_CLASSES`. Members with less than a tenth of the spread of the log-odds are dropped.
    """
    weight = weight * (len(labels) / weight.sum())
    calibrations = [calibrate_scores(as_scores(p), labels, weight) for p in predictions]
    logs = np.stack(
        [log_softmax(c.logits(as_scores(p)), axis=1) for c, p in zip(calibrations, predictions)]
    )
    rule = replace(TABLE_CLASSES, max_members=max_members)
    factors = average(logs, labels, weight, rule).weights
    of_scores = factors * [calibration.slope for calibration in calibrations]
    return of_scores / of_scores.sum()
