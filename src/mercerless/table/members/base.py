"""What members learn from, and what they are: models with predictions of every held-out row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from mercerless.core.calibration import calibrate_scores
from mercerless.core.folds import Split


@dataclass(frozen=True)
class Rows:
    """Training rows in comparable units."""

    Z: NDArray  # (n, d)
    Y: NDArray  # (n, q), standardized targets, or -1 and 1 for every class (one column for two classes)
    labels: NDArray | None  # numbers of the classes; None for numbers
    n_classes: int  # 0 for numbers
    weight: NDArray  # with mean one
    folds: Sequence[Split]
    seed: int

    def __len__(self) -> int:
        return len(self.Z)

    def take(self, places: NDArray) -> Self:
        """Some of the rows, without folds."""
        labels = self.labels
        if labels is not None:
            labels = labels[places]
        weight = self.weight[places] / self.weight[places].mean()
        return replace(
            self, Z=self.Z[places], Y=self.Y[places], labels=labels, weight=weight, folds=()
        )


class Member:
    """A model of the average. Its outputs have a column for every target column, or a score for every class."""

    name: str

    def out_of_fold(self, rows: Rows, rivals: Sequence[NDArray]) -> NDArray | None:
        """Outputs of held-out rows (others are NaN), or None if the member is hopeless beside `rivals`."""
        raise NotImplementedError

    def refit(self, rows: Rows) -> None:
        """Learn from all rows."""
        raise NotImplementedError

    def predict(self, Z: NDArray) -> NDArray:
        """Outputs (n, q) of new rows."""
        raise NotImplementedError


def error_of(scores: NDArray, truth: NDArray, weight: NDArray) -> float:
    """Log-loss of calibrated scores of classes, or mean squared error of numbers."""
    if truth.ndim == 1:
        return float(calibrate_scores(class_scores(scores), truth, weight).loss)
    return float(np.average((scores - truth)[:, 0] ** 2, weights=weight))


def class_scores(outputs: NDArray) -> NDArray:
    """One column for every class, from one column f for two classes: -f / 2 and f / 2."""
    return np.hstack([-outputs, outputs]) / 2 if outputs.shape[1] == 1 else outputs


def log_probabilities(model: Any, Z: NDArray, n_classes: int, smallest: float = 1e-4) -> NDArray:
    """Logarithms of a classifier's probabilities; classes that it has not seen have the smallest."""
    proba = np.full((len(Z), n_classes), smallest)
    proba[:, model.classes_] = np.maximum(model.predict_proba(Z), smallest)
    return log_softmax(np.log(proba), axis=1)
