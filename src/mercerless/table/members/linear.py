"""The linear member: ridge regression, or logistic regression."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV

from mercerless.table.members.base import Member, Rows, log_probabilities

PENALTIES = np.logspace(-1, 4, 11)
MOST_ROWS = 20_000  # more do not change a linear model


class Linear(Member):
    """Ridge regression with a penalty by generalized cross-validation, or logistic regression with C = 0.1."""

    name = "linear"

    def fit(self, rows: Rows, fold: int | None = None, held_out: Rows | None = None) -> None:
        if len(rows) > MOST_ROWS:
            rows = rows.take(np.random.RandomState(rows.seed).permutation(len(rows))[:MOST_ROWS])
        self.n_classes = rows.n_classes
        self.model: Any = RidgeCV(PENALTIES, alpha_per_target=True)
        target = rows.Y
        if rows.labels is not None:
            target = rows.labels
            self.model = LogisticRegression(C=0.1, max_iter=200)
            if np.ptp(target) == 0:  # the only class of a small fold
                self.model = DummyClassifier()
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(rows.Z, target, sample_weight=rows.weight)

    def predict(self, Z: NDArray) -> NDArray:
        if self.n_classes:
            proba = self.model.predict_proba(Z)
            return log_probabilities(proba, self.model.classes_, self.n_classes)
        return self.model.predict(Z).reshape(len(Z), -1)
