"""Importances of features for the predictions of a table: permutations on held-out rows."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from mercerless.core.folds import hold_out, some_rows
from mercerless.core.validation import UselessModelWarning


class TrainingSample(NamedTuple):
    """Some of the training rows, kept with a fitted model."""

    table: NDArray  # numbers and codes of categories, not yet encoded
    target: NDArray  # numbers, or numbers of classes
    weight: NDArray
    groups: NDArray | None

    @classmethod
    def of(
        cls,
        table: NDArray,
        target: NDArray,
        weight: NDArray,
        groups: NDArray | None,
        most_rows: int = 1500,
        most_values: float = 1e6,
    ) -> "TrainingSample":
        """At most so many rows and values."""
        n = int(min(most_rows, most_values // table.shape[1]))
        sample = some_rows(len(table), n, 0)
        if groups is not None:
            groups = groups[sample]
        return cls(table[sample], target[sample], weight[sample], groups)

    def importances(self, model: Any, categories: NDArray, n_repeats: int = 5) -> NDArray:
        """Increase of the held-out loss if one feature is permuted; at least 0, with sum 1.

        A model with the same parameters is learned from two thirds of the rows: one that has seen a row needs even
        useless features to remember it.
        """
        is_class = is_classifier(model)
        classes = self.target if is_class else None
        train, test = hold_out(
            1 / 3, self.table, classes, classify=is_class, groups=self.groups, random_state=0
        )
        groups = None
        if self.groups is not None:
            groups = self.groups[train]
        learner = clone(model).set_params(categorical_features=categories, random_state=0)
        if is_class:  # the weights of the classes are part of those of the rows
            learner.set_params(class_weight=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UselessModelWarning)
            learner.fit(self.table[train], self.target[train], self.weight[train], groups)
        if is_class:  # a class of one row may be unknown
            test = test[np.isin(self.target[test], learner.classes_)]

        def loss(rows: NDArray) -> float:
            if is_class:
                place = np.searchsorted(learner.classes_, self.target[test])
                of_class = learner.predict_proba(rows)[np.arange(len(rows)), place]
                losses = -np.log(np.maximum(of_class, np.finfo(float).tiny))
            else:
                errors = learner.predict(rows) - self.target[test]
                losses = np.sum(errors.reshape(len(rows), -1) ** 2, axis=1)
            return float(np.average(losses, weights=self.weight[test]))

        random = np.random.RandomState(0)
        rows = self.table[test]
        increase = np.full(rows.shape[1], -loss(rows))
        for feature in range(rows.shape[1]):
            for _ in range(n_repeats):
                permuted = rows.copy()
                permuted[:, feature] = random.permutation(rows[:, feature])
                increase[feature] += loss(permuted) / n_repeats
        increase = np.maximum(increase, 0.0)
        total = increase.sum()
        if total > 0:
            increase /= total
        return increase
