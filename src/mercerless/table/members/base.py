"""What members learn from, and what they are: models with predictions of every held-out row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from mercerless.core.calibration import calibrate_scores
from mercerless.core.estimator import class_scores
from mercerless.core.folds import Split

#: A member with an error beyond this multiple of the best other member's in the first fold is left out.
HOPELESS = 1.3
SMALLEST = 1e-4  # probability of a class


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

    @property
    def target(self) -> NDArray:
        """The classes, or the first target column."""
        return self.Y[:, 0] if self.labels is None else self.labels

    @property
    def weight_or_none(self) -> NDArray | None:
        """Weights, None if they are equal: binning with weights is slow."""
        return None if np.ptp(self.weight) == 0.0 else self.weight

    def error_of(self, outputs: NDArray) -> float:
        """Log-loss of calibrated outputs for classes, or mean squared error of the first column."""
        if self.labels is not None:
            return float(calibrate_scores(class_scores(outputs), self.labels, self.weight).loss)
        return float(np.average((outputs - self.Y)[:, 0] ** 2, weights=self.weight))


class Member:
    """A model of the average. Its outputs have one or all target columns, or a score for every class."""

    name: str

    def fit(self, rows: Rows, fold: int | None = None, held_out: Rows | None = None) -> None:
        """Learn from all rows, or from those of a fold; `held_out` may stop rounds."""
        raise NotImplementedError

    def predict(self, Z: NDArray) -> NDArray:
        """Outputs (n, q) of new rows."""
        raise NotImplementedError

    def out_of_fold(self, rows: Rows, rivals: Sequence[NDArray]) -> NDArray | None:
        """Outputs of held-out rows (others are NaN), or None if the member is hopeless beside `rivals`."""
        outputs = np.zeros((0, 0))
        for fold, (train, test) in enumerate(rows.folds):
            held_out = rows.take(test)
            self.fit(rows.take(train), fold, held_out)
            predicted = self.predict(held_out.Z)
            if fold == 0:
                best = min((held_out.error_of(rival[test]) for rival in rivals), default=np.inf)
                if held_out.error_of(predicted) > HOPELESS * best:
                    return None
                outputs = np.full((len(rows), predicted.shape[1]), np.nan)
            outputs[test] = predicted
        return outputs


def log_probabilities(proba: NDArray, classes: NDArray, n_classes: int) -> NDArray:
    """Logarithms of probabilities of some classes; classes that a model has not seen have the smallest."""
    smallest = np.full((len(proba), n_classes), SMALLEST)
    smallest[:, classes] = np.maximum(proba, SMALLEST)
    return log_softmax(np.log(smallest), axis=1)
