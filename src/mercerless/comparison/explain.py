"""What a learner uses: the loss that shuffling a column of held-out rows costs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_selection import f_classif, f_regression

from mercerless.comparison.learners import Learner
from mercerless.comparison.problem import Problem
from mercerless.comparison.scores import item_losses
from mercerless.comparison.work import fit_on, predictions_of

N_SHUFFLES = 5
MOST_ROWS = 1000
#: Of wider tables, the columns that go with the labels most closely are tried.
MOST_COLUMNS = 60


@dataclass(frozen=True)
class Importance:
    """Rise of the loss per column, and its standard deviation over shuffles."""

    learner: str
    columns: list[str]
    mean: NDArray
    spread: NDArray
    n_rows: int


def permutation_importance(
    problem: Problem,
    learner: Learner,
    train: NDArray,
    test: NDArray,
    seconds_per_item: float,
    seconds: float,
) -> Importance:
    """Fit on the training items and shuffle one column after another in as many test items as the time allows."""
    model = fit_on(problem, learner, train)
    rng = np.random.default_rng(0)
    columns = likely_columns(problem)
    affordable = seconds / max(seconds_per_item * len(columns) * N_SHUFFLES, 1e-12)
    n_rows = int(min(len(test), MOST_ROWS, max(affordable, 50)))
    rows = np.sort(rng.permutation(test)[:n_rows])
    X = problem.X.iloc[rows]

    def loss(X: pd.DataFrame) -> float:
        return float(item_losses(problem, rows, predictions_of(model, X, problem), None).mean())

    unchanged = loss(X)
    rises = np.empty((len(columns), N_SHUFFLES))
    for i, name in enumerate(columns):
        for k in range(N_SHUFFLES):
            order = rng.permutation(n_rows)
            shuffled = X.assign(**{name: X[name].to_numpy()[order]})
            rises[i, k] = loss(shuffled) - unchanged
    return Importance(learner.title, columns, rises.mean(axis=1), rises.std(axis=1), n_rows)


def likely_columns(problem: Problem) -> list[str]:
    """All columns, or of many those that go with the labels most closely, one by one."""
    X = problem.X
    if X.shape[1] <= MOST_COLUMNS:
        return list(X.columns)
    words = X.select_dtypes(exclude="number").columns
    codes = {name: pd.factorize(X[name])[0] for name in words}
    numbers = X.assign(**codes).astype(float)
    numbers = numbers.fillna(numbers.median()).fillna(0.0)
    test = f_classif if problem.is_classification else f_regression
    with np.errstate(all="ignore"):  # of constant columns
        strength = np.nan_to_num(test(numbers, problem.y)[0], posinf=0.0)
    return list(X.columns[np.sort(np.argsort(-strength, kind="stable")[:MOST_COLUMNS])])
