"""One small machine in place of an average of many: it learns the predictions of the average."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from mercerless.core.folds import hold_out
from mercerless.core.validation import warn
from mercerless.lab.estimators import LABClassifier, LABRegressor
from mercerless.table.encoding import TableReader


@dataclass(frozen=True)
class DistillRules:
    """How the loss of a small machine is measured, and when it is too much."""

    #: Share of the rows on which the loss is measured.
    held_out: float = 0.25
    #: Loss from which a warning is given: a share of the variance, or nats.
    much: float = 0.05
    #: With fewer rows nothing can be held out.
    fewest_rows: int = 20


RULES = DistillRules()


def distill_numbers(
    reader: TableReader, rows: NDArray, predictions: NDArray, machine: LABRegressor
) -> Pipeline:
    """A machine for the predictions of an average; its loss is the share of their variance that it misses."""

    def loss(fitted: LABRegressor, held_out: NDArray) -> float:
        truth = predictions[held_out]
        error = np.sum((fitted.predict(rows[held_out]) - truth) ** 2)
        total = np.sum((truth - truth.mean(axis=0)) ** 2)
        return float(error / total) if total > 0 else 0.0

    def fit(places: NDArray) -> LABRegressor:
        return clone(machine).fit(rows[places], predictions[places])

    return _distilled(reader, rows, fit, loss)


def distill_classes(
    reader: TableReader,
    rows: NDArray,
    probabilities: NDArray,
    classes: NDArray,
    machine: LABClassifier,
) -> Pipeline:
    """A machine for the probabilities of an average; its loss is how far its own diverge from them, in nats.

    Every row has every class, with its probability as weight.
    """
    n_classes = len(classes)

    def loss(fitted: LABClassifier, held_out: NDArray) -> float:
        truth = probabilities[held_out]
        predicted = np.maximum(fitted.predict_proba(rows[held_out]), np.finfo(float).tiny)
        return float(np.mean(np.sum(xlogy(truth, truth) - xlogy(truth, predicted), axis=1)))

    def fit(places: NDArray) -> LABClassifier:
        X = np.repeat(rows[places], n_classes, axis=0)
        y = np.tile(classes, len(places))
        # no class may be lost, however improbable it is
        weight = np.maximum(probabilities[places].ravel(), 1e-9)
        return clone(machine).fit(X, y, weight)

    return _distilled(reader, rows, fit, loss)


def _distilled(
    reader: TableReader,
    rows: NDArray,
    fit: Callable[[NDArray], Any],
    loss: Callable[[Any, NDArray], float],
) -> Pipeline:
    """The machine of all rows behind the encoding, with the loss that one of fewer rows has on the others."""
    train, held_out = hold_out(RULES.held_out, rows, random_state=0)
    held_out_loss = loss(fit(train), held_out)
    pipeline = Pipeline(
        [("encode", FunctionTransformer(reader)), ("machine", fit(np.arange(len(rows))))]
    )
    pipeline.held_out_loss_ = held_out_loss
    if held_out_loss > RULES.much:
        warn(
            f"The small machine misses {held_out_loss:.3g} of what the average predicts on rows "
            "that it has not seen (held_out_loss_); raise n_support, or pass more rows as X."
        )
    return pipeline
