"""The members of trees: boosted with early stopping, and extremely randomized."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from threadpoolctl import ThreadpoolController

from mercerless.table.members.base import Member, Rows, error_of, log_probabilities

#: A member with an error beyond this multiple of the best other member's in the first fold is left out.
HOPELESS = 1.3
SMALL = 2000  # rows up to which trees of few leaves are boosted
MOST_ROUNDS = 1000
PATIENCE = 20  # rounds without an improvement of the held-out rows
ONE_THREAD = 20_000  # rows up to which several threads would mostly wait for each other


class Trees(Member):
    """Trees of the first target column, or of classes."""

    def out_of_fold(self, rows: Rows, rivals: Sequence[NDArray]) -> NDArray | None:
        outputs = np.full((len(rows), rows.n_classes or 1), np.nan)
        for number, (train, test) in enumerate(rows.folds):
            outputs[test] = self._held_out(rows.take(train), rows.take(test))
            if number == 0 and rivals:
                truth = rows.Y[test, :1] if rows.labels is None else rows.labels[test]
                errors = [
                    error_of(values[test, : outputs.shape[1]], truth, rows.weight[test])
                    for values in (outputs, *rivals)
                ]
                if errors[0] > HOPELESS * min(errors[1:]):
                    return None
        return outputs

    def _held_out(self, train: Rows, test: Rows) -> NDArray:
        """Outputs of the test rows by a model of the others."""
        raise NotImplementedError

    def predict(self, Z: NDArray) -> NDArray:
        with few_threads(len(Z)):
            return outputs_of(self.model, Z, self.n_classes)

    def _learn(self, model: Any, rows: Rows, **options: Any) -> None:
        self.n_classes = rows.n_classes
        self.model = model
        with few_threads(len(rows)):
            model.fit(rows.Z, target_of(rows), sample_weight=weight_of(rows), **options)


class Boosted(Trees):
    """Boosted trees with histograms; the held-out rows stop the rounds, of which the final model has a tenth more."""

    name = "boosted trees"

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def _held_out(self, train: Rows, test: Rows) -> NDArray:
        if train.labels is not None and len(np.unique(train.labels)) < 2:
            return np.zeros((len(test), train.n_classes))
        judges = test
        if train.labels is not None and test.labels is not None:
            judges = test.take(np.flatnonzero(np.isin(test.labels, train.labels)))
        options: dict[str, Any] = {"X_val": judges.Z, "y_val": target_of(judges)}
        options["sample_weight_val"] = weight_of(judges)
        self._learn(self._make(train, MOST_ROUNDS, early_stopping=True), train, **options)
        best = int(np.argmax(self.model.validation_score_))
        self.rounds.append(max(best, 1))
        return self.predict(test.Z)

    def refit(self, rows: Rows) -> None:
        n_rounds = max(5, int(1.1 * np.mean(self.rounds or [0])))
        self._learn(self._make(rows, n_rounds, early_stopping=False), rows)
        self.rounds = []

    @staticmethod
    def _make(rows: Rows, n_rounds: int, early_stopping: bool) -> Any:
        kind: Any = HistGradientBoostingRegressor
        if rows.labels is not None:
            kind = HistGradientBoostingClassifier
        return kind(
            learning_rate=0.1,
            max_iter=n_rounds,
            max_leaf_nodes=8 if len(rows) <= SMALL else 31,
            min_samples_leaf=8,
            l2_regularization=1.0,
            max_features=0.7,
            early_stopping=early_stopping,
            n_iter_no_change=PATIENCE,
            random_state=rows.seed,
        )


class Randomized(Trees):
    """Extremely randomized trees."""

    name = "randomized trees"
    n_trees_of_fold = 20
    n_trees = 60

    def _held_out(self, train: Rows, test: Rows) -> NDArray:
        self._learn(self._make(train, self.n_trees_of_fold), train)
        return self.predict(test.Z)

    def refit(self, rows: Rows) -> None:
        self._learn(self._make(rows, self.n_trees), rows)

    @staticmethod
    def _make(rows: Rows, n_trees: int) -> Any:
        kind: Any = ExtraTreesRegressor
        n_tried: Any = 0.6
        if rows.labels is not None:
            kind = ExtraTreesClassifier
            n_tried = "sqrt"
        smallest_leaf = max(2, len(rows) // 1000)
        return kind(
            n_trees, min_samples_leaf=smallest_leaf, max_features=n_tried, random_state=rows.seed
        )


def target_of(rows: Rows) -> NDArray:
    """The classes, or the first target column."""
    return rows.Y[:, 0] if rows.labels is None else rows.labels


def weight_of(rows: Rows) -> NDArray | None:
    """Weights, None if they are equal: binning with weights is slow."""
    return None if np.ptp(rows.weight) == 0.0 else rows.weight


def outputs_of(model: Any, Z: NDArray, n_classes: int) -> NDArray:
    """Log-probabilities of classes, or numbers, as columns."""
    if n_classes:
        return log_probabilities(model, Z, n_classes)
    return model.predict(Z)[:, None]


def few_threads(n_rows: int) -> Any:
    """One thread for small data."""
    return _openmp().limit(limits=1 if n_rows <= ONE_THREAD else None)


@cache
def _openmp() -> ThreadpoolController:
    """The loaded libraries: finding them takes milliseconds, so it is done once."""
    return ThreadpoolController().select(user_api="openmp")
