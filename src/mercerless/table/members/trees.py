"""The members of trees: boosted with early stopping, and extremely randomized."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from threadpoolctl import ThreadpoolController

from mercerless.table.members.base import Member, Rows, log_probabilities

#: Rows up to which trees of few leaves are boosted in small steps. Steps of .2 instead of .1 on 8 tables of
#: 10,000 rows: error +.4 +- .6 %, processor time of the whole fit -14 %.
SMALL = 2000
MOST_ROUNDS = 4000  # a limit that early stopping should not reach: at 1000, a table of 30,000 rows lost .006 of R2
PATIENCE = 20  # rounds without an improvement of the held-out rows
FEW = 0.1  # share of held-out rows up to which trees are not learned again with them
ONE_THREAD = 20_000  # rows up to which several threads would mostly wait for each other


class Trees(Member):
    """Trees of the first target column, or of classes."""

    model: Any

    def predict(self, Z: NDArray) -> NDArray:
        with few_threads(len(Z)):
            if self.n_classes:
                proba = self.model.predict_proba(Z)
                return log_probabilities(proba, self.model.classes_, self.n_classes)
            return self.model.predict(Z)[:, None]

    def _learn(self, model: Any, rows: Rows, **options: Any) -> None:
        self.n_classes = rows.n_classes
        self.model = model
        with few_threads(len(rows)):
            model.fit(rows.Z, rows.target, sample_weight=rows.weight_or_none, **options)


class Boosted(Trees):
    """Boosted trees with histograms; the held-out rows stop the rounds, of which the final model has a tenth more."""

    name = "boosted trees"

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def fit(self, rows: Rows, fold: int | None = None, held_out: Rows | None = None) -> None:
        if held_out is None and len(rows.folds) == 1 and len(rows.folds[0][1]) <= FEW * len(rows):
            return  # the model of the fold has learned from nearly all rows
        if held_out is None:
            n_rounds = max(5, int(1.1 * np.mean(self.rounds or [0])))
            self._learn(self._make(rows, n_rounds), rows)
        elif rows.labels is not None and len(np.unique(rows.labels)) < 2:
            self._learn(DummyClassifier(), rows)
        else:
            if held_out.labels is not None:
                held_out = held_out.take(np.flatnonzero(np.isin(held_out.labels, rows.target)))
            model = self._make(rows, MOST_ROUNDS).set_params(early_stopping=True)
            judges = {"X_val": held_out.Z, "y_val": held_out.target}
            self._learn(model, rows, **judges, sample_weight_val=held_out.weight_or_none)
            self.rounds.append(max(1, int(np.argmax(model.validation_score_))))

    @staticmethod
    def _make(rows: Rows, n_rounds: int) -> Any:
        kind: Any = HistGradientBoostingRegressor
        if rows.labels is not None:
            kind = HistGradientBoostingClassifier
        return kind(
            learning_rate=0.1 if len(rows) <= SMALL else 0.2,
            max_iter=n_rounds,
            max_leaf_nodes=8 if len(rows) <= SMALL else 31,
            min_samples_leaf=8,
            l2_regularization=1.0,
            max_features=0.7,
            early_stopping=False,
            n_iter_no_change=PATIENCE,
            random_state=rows.seed,
        )


class Randomized(Trees):
    """Extremely randomized trees, for classes: they lower squared errors by .1 % only, and make models large."""

    name = "randomized trees"
    n_trees_of_fold = 20
    n_trees = 60

    def fit(self, rows: Rows, fold: int | None = None, held_out: Rows | None = None) -> None:
        model = ExtraTreesClassifier(
            self.n_trees if held_out is None else self.n_trees_of_fold,
            min_samples_leaf=max(2, len(rows) // 1000),
            random_state=rows.seed,
        )
        self._learn(model, rows)

    def predict(self, Z: NDArray) -> NDArray:
        return log_probabilities(mean_of_trees(self.model, Z), self.model.classes_, self.n_classes)


def mean_of_trees(forest: Any, Z: NDArray) -> NDArray:
    """What the forest's `predict` or `predict_proba` returns; these take milliseconds to start workers."""
    rows = Z.astype(np.float32)
    return np.mean([tree.tree_.predict(rows) for tree in forest.estimators_], axis=0)


def few_threads(n_rows: int) -> Any:
    """One thread for small data."""
    return _openmp().limit(limits=1 if n_rows <= ONE_THREAD else None)


@cache
def _openmp() -> ThreadpoolController:
    """The loaded libraries: finding them takes milliseconds, so it is done once."""
    return ThreadpoolController().select(user_api="openmp")
