"""Judge predictions of held-out rows, and weigh the models that made them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from mercerless.core.averaging_old import TABLE_CLASSES, TABLE_NUMBERS, average
from mercerless.core.calibration import calibrate_each, calibrate_scores
from mercerless.core.choice import choice_parts
from mercerless.core.folds import OutOfFold, Split
from mercerless.core.validation import warn_if_useless
from mercerless.lab.model import Rows


def as_scores(predictions: NDArray) -> NDArray:
    """One column per class."""
    if predictions.shape[1] > 1:
        return predictions
    return np.hstack([-predictions, predictions]) / 2


class Observed(NamedTuple):
    """Every class of every row."""

    place: NDArray  # of the row
    labels: NDArray
    weight: NDArray


class Labeled(NamedTuple):
    """Rows and, for classification, their classes.

    Equal rows are one, and may have had different classes: `labels` are those of the first, `shares` (n, n_classes)
    the shares of all classes among them, None if no row has several.
    """

    rows: Rows
    labels: NDArray | None
    shares: NDArray | None = None

    def take(self, numbers: Any) -> "Labeled":
        """Some of the rows."""
        labels = self.labels
        shares = self.shares
        if labels is not None:
            labels = labels[numbers]
        if shares is not None:
            shares = shares[numbers]
        return Labeled(self.rows.take(numbers), labels, shares)

    def joined(self, other: "Labeled | None") -> "Labeled":
        """With the rows of another."""
        if other is None:
            return self
        labels = None
        shares = None
        if self.labels is not None and other.labels is not None:
            labels = np.concatenate([self.labels, other.labels])
        if self.shares is not None and other.shares is not None:
            shares = np.vstack([self.shares, other.shares])
        return Labeled(self.rows.joined(other.rows), labels, shares)

    @property
    def class_shares(self) -> NDArray:
        """Shares of all classes in every row (n, n_classes)."""
        assert self.labels is not None
        if self.shares is not None:
            return self.shares
        n_classes = max(self.rows.Y.shape[1], 2)
        return np.eye(n_classes)[self.labels]

    @property
    def observed(self) -> Observed:
        """Each class that equal rows had as an observation of its own, with its part of their weight."""
        assert self.labels is not None
        weight = self.rows.weight
        if self.shares is None:
            return Observed(np.arange(len(weight)), self.labels, weight)
        place, labels = np.nonzero(self.shares)
        return Observed(place, labels, weight[place] * self.shares[place, labels])

    def judge(self, predictions: NDArray) -> float:
        """The mean squared error of predictions for these rows, or the log-loss of calibrated scores."""
        if self.labels is not None:
            place, labels, weight = self.observed
            return float(calibrate_scores(as_scores(predictions)[place], labels, weight).loss)
        squares = np.sum((predictions - self.rows.Y) ** 2, axis=1)
        return float(np.average(squares, weights=self.rows.weight))

    def losses(self, predictions: NDArray) -> NDArray:
        """Of every row the log-loss of log-odds as they are, or the squared error, times its weight.

        Calibrated, few trees would seem as good as enough.
        """
        if self.labels is None:
            losses = np.sum((predictions - self.rows.Y) ** 2, axis=1)
            return losses * self.rows.weight
        place, labels, weight = self.observed
        logs = log_softmax(as_scores(predictions), axis=1)
        return np.bincount(place, weights=-logs[place, labels] * weight, minlength=len(logs))

    def loss(self, predictions: NDArray) -> float:
        """The mean of these."""
        return float(self.losses(predictions).sum() / self.rows.weight.sum())


def weighted_sum(
    weights: Sequence[float] | NDArray, predictions: Sequence[NDArray] | NDArray
) -> NDArray:
    """The average of predictions."""
    return np.sum([weight * p for weight, p in zip(weights, predictions)], axis=0)


class Verdict(NamedTuple):
    """Weights of several models by held-out rows."""

    weights: NDArray  # with sum 1
    out_of_fold: NDArray  # predictions of the average, made without the targets of their rows
    slopes: NDArray  # factors that make log-odds of the scores of every model; ones for numbers


def warn_if_no_better_than_shares(held: OutOfFold, weight: NDArray, name: str) -> None:
    """Warn if the log-loss of out-of-fold probabilities is higher than that of the shares of the classes.

    The shares are also computed without the row. By accuracy, or by squared errors of probabilities, every model of a
    rare class would be useless.
    """
    n_classes = held.prediction.shape[1]
    rows = np.arange(len(held.target))
    of_class = np.bincount(held.target, weights=weight, minlength=n_classes)
    others = of_class[held.target] - weight
    share = (others + 1.0 / n_classes) / (weight.sum() - weight + 1.0)
    probability = np.maximum(held.prediction[rows, held.target], np.finfo(float).tiny)
    warn_if_useless(-np.log(probability), -np.log(share), name, weight, capped=False)


def errors_of(predictions: Sequence[NDArray], held: Labeled) -> list[float]:
    """The log-loss of every model on held-out rows, or its squared error."""
    if held.labels is not None:
        return [held.judge(p) for p in predictions]
    # without weights: those of outliers were lowered, and would flatter
    return [float(np.mean(np.sum((p - held.rows.Y) ** 2, axis=1))) for p in predictions]


def weigh_numbers(
    predictions: Sequence[NDArray], held: Labeled, folds: Sequence[Split], max_members: int
) -> Verdict:
    """Weights of least squared error; out of fold each row by weights from the other folds, or parts of a hold-out."""
    rule = replace(TABLE_NUMBERS, max_members=max_members)

    def weigh(places: Any) -> NDArray:
        rows = held.rows.take(places)
        return average([p[places] for p in predictions], rows.Y, rows.weight, rule).weights

    weights = weigh(slice(None))
    averaged = cross_weighed(predictions, weights, weigh, folds)
    return Verdict(weights, averaged, np.ones(len(predictions)))


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


class Pool(NamedTuple):
    """An average of log-odds: members of different units are multiplied by slopes before they are averaged."""

    weights: NDArray  # with sum 1
    slopes: NDArray

    @classmethod
    def of(cls, predictions: Sequence[NDArray], held: Labeled, max_members: int) -> "Pool":
        """Weights of log-odds whose multiple has the least log-loss, by the rule `TABLE_CLASSES`.

        Members with less than a tenth of the spread of the log-odds are dropped.
        """
        place, labels, weight = held.observed
        weight = weight * (len(weight) / weight.sum())
        scores = np.stack([as_scores(p)[place] for p in predictions])
        calibration = calibrate_each(scores, labels, weight)
        logs = log_softmax(calibration.logits(scores), axis=2)
        rule = replace(TABLE_CLASSES, max_members=max_members)
        factors = average(logs, labels, weight, rule).weights
        return cls(factors / factors.sum(), calibration.slope)

    def __call__(self, predictions: Sequence[NDArray]) -> NDArray:
        return weighted_sum(self.weights * self.slopes, predictions)


def weigh_classes(
    predictions: Sequence[NDArray], held: Labeled, max_members: int, n_parts: int = 10
) -> Verdict:
    """Weights of least log-loss of the averaged log-odds; out of fold each row by those from other held-out rows.

    Averages of scores in different units would be on another scale wherever the weights differ, and no slope would fit
    both the held-out rows and the final model. Ten parts, because slopes from a few rows differ: on 18 tables of 300
    rows (two splits) the log-loss is .3674 with ten, .3709 with the three folds as parts.
    """
    pool = Pool.of(predictions, held, max_members)
    averaged = pool(predictions)
    n = len(held.rows)
    order = np.random.RandomState(0).permutation(n)
    for part in np.array_split(order, min(n_parts, n)):
        others = np.setdiff1d(order, part)
        if len(others) and len(part):
            known = [p[others] for p in predictions]
            of_others = Pool.of(known, held.take(others), max_members)
            averaged[part] = of_others([p[part] for p in predictions])
    return Verdict(pool.weights, averaged, pool.slopes)
