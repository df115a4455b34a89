"""What a learner uses: the loss that shuffling a column of held-out rows costs."""

import time
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
MOST_ROWS = 500
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
    problem: Problem, learner: Learner, train: NDArray, test: NDArray, seconds: float
) -> Importance:
    """Fit on the training items and shuffle all columns of test items, one by one, as often as the time allows."""
    model = fit_on(problem, learner, train)
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(test)[:MOST_ROWS])
    X, columns = problem.X.iloc[rows], likely_columns(problem)

    def loss(X: pd.DataFrame) -> float:
        return float(item_losses(problem, rows, predictions_of(model, X, problem), None).mean())

    unchanged, rises = loss(X), list[list[float]]()
    for n_done in range(N_SHUFFLES):
        elapsed = time.perf_counter() - start
        if n_done > 0 and elapsed * (n_done + 1) / n_done > seconds:
            break
        order = rng.permutation(len(rows))
        shuffled = X.iloc[order].set_axis(X.index)
        rises.append([loss(X.assign(**{name: shuffled[name]})) - unchanged for name in columns])
    return Importance(
        learner.title, columns, np.mean(rises, axis=0), np.std(rises, axis=0), len(rows)
    )


def likely_columns(problem: Problem) -> list[str]:
    """All columns, or of many those that go with the labels most closely, one by one."""
    X = problem.X
    if X.shape[1] <= MOST_COLUMNS:
        return list(X.columns)
    words = X.select_dtypes(exclude="number").columns
    numbers = X.assign(**{name: pd.factorize(X[name])[0] for name in words}).astype(float)
    test = f_classif if problem.is_classification else f_regression
    with np.errstate(all="ignore"):  # of constant columns
        strength = test(numbers.fillna(numbers.mean()).fillna(0.0), problem.y)[0]
    return list(X.columns[np.argsort(-np.nan_to_num(strength, posinf=0.0))[:MOST_COLUMNS]])
