"""What a learner uses: the loss that shuffling a column of held-out rows costs."""

import time
from dataclasses import dataclass
from itertools import product

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
    """Fit on the training items and shuffle columns of test items, one by one, as often as the time allows."""
    model = fit_on(problem, learner, train)
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(test)[:MOST_ROWS])
    X = problem.X.iloc[rows]

    def loss(X: pd.DataFrame) -> float:
        return float(item_losses(problem, rows, predictions_of(model, X, problem), None).mean())

    unchanged, rises = loss(X), dict[str, list[float]]()
    orders = [rng.permutation(len(rows)) for _ in range(N_SHUFFLES)]
    for order, name in product(orders, likely_columns(problem)):
        if rises and time.perf_counter() - start > seconds:
            break
        shuffled = X[name].iloc[order].set_axis(X.index)
        rises.setdefault(name, []).append(loss(X.assign(**{name: shuffled})) - unchanged)
    # the last round may have ended early
    table = pd.DataFrame({name: pd.Series(values) for name, values in rises.items()})
    mean, spread = table.mean().to_numpy(), table.std(ddof=0).to_numpy()
    return Importance(learner.title, list(rises), mean, spread, len(rows))


def likely_columns(problem: Problem) -> list[str]:
    """The columns that go with the labels most closely, one by one; the closest first."""
    X = problem.X
    words = X.select_dtypes(exclude="number").columns
    numbers = X.assign(**{name: pd.factorize(X[name])[0] for name in words}).astype(float)
    test = f_classif if problem.is_classification else f_regression
    with np.errstate(all="ignore"):  # of constant columns
        strength = test(numbers.fillna(numbers.mean()).fillna(0.0), problem.y)[0]
    return list(X.columns[np.argsort(-np.nan_to_num(strength, posinf=0.0))[:MOST_COLUMNS]])
