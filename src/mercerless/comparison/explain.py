"""What a learner uses: the loss that shuffling a column of held-out rows costs."""

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
    """Fit on the training items and shuffle one column after another in the test items, within some seconds."""
    model = fit_on(problem, learner, train)
    rng = np.random.default_rng(0)
    columns = likely_columns(problem)
    affordable = seconds / max(seconds_per_item * len(columns) * N_SHUFFLES, 1e-12)
    n_rows = int(min(len(test), MOST_ROWS, max(affordable, 50)))
    rows = np.sort(rng.permutation(test)[:n_rows])
    subset = problem.select(rows)
    vars(subset)["classes"] = problem.classes
    started = time.perf_counter()
    loss = item_losses(subset, predictions_of(model, subset.X, problem), None).mean()
    rises: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(N_SHUFFLES):
        for name in columns:
            if time.perf_counter() - started > seconds and rises[columns[-1]]:
                break
            shuffled = subset.X.copy()
            shuffled[name] = shuffled[name].to_numpy()[rng.permutation(n_rows)]
            predictions = predictions_of(model, shuffled, problem)
            rises[name].append(item_losses(subset, predictions, None).mean() - loss)
    mean = np.array([np.mean(values) for values in rises.values()])
    spread = np.array([np.std(values) for values in rises.values()])
    return Importance(learner.title, columns, mean, spread, n_rows)


def likely_columns(problem: Problem) -> list[str]:
    """All columns, or of many those that go with the labels most closely, one by one."""
    names = list(problem.X.columns)
    if len(names) <= MOST_COLUMNS:
        return names
    y = pd.factorize(problem.y)[0] if problem.is_classification else problem.y
    strength = []
    for name in names:
        column = problem.X[name]
        values = column if pd.api.types.is_numeric_dtype(column) else pd.factorize(column)[0]
        strength.append(
            share_between(np.asarray(values, dtype=float), y, problem.is_classification)
        )
    order = np.argsort(-np.array(strength), kind="stable")[:MOST_COLUMNS]
    return [names[i] for i in sorted(order)]


def share_between(values: NDArray, y: NDArray, is_classification: bool) -> float:
    """Share of a column's variance between classes, or its squared correlation with numbers."""
    known = np.isfinite(values)
    values, y = values[known], y[known]
    total = values.var() if len(values) else 0.0
    if total == 0.0:
        return 0.0
    if not is_classification:
        return float(np.corrcoef(values, y)[0, 1] ** 2) if y.std() > 0 else 0.0
    counts = np.bincount(y)
    means = np.bincount(y, weights=values) / np.maximum(counts, 1)
    return float((counts * (means - values.mean()) ** 2).sum() / (len(values) * total))
