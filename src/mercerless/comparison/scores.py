"""From predictions to losses of every item, and to the scores that a reader knows."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from mercerless.comparison.problem import Problem
from mercerless.comparison.statistics import log_losses

if TYPE_CHECKING:
    from mercerless.comparison.race import Race

TITLES = {
    "log_loss": "log-loss",
    "accuracy": "share of errors",
    "squared_error": "mean squared error",
    "absolute_error": "mean absolute error",
}


def predictions_by_repeat(race: "Race", name: str) -> NDArray:
    """Out-of-fold predictions of shape (n_repeats, n_items[, n_classes]); nan where there are none."""
    problem = race.problem
    n_repeats = 1 + max(race.folds, default=0)
    shape = (
        (problem.n_items, len(problem.classes)) if problem.is_classification else (problem.n_items,)
    )
    predictions = np.full((n_repeats, *shape), np.nan)
    for repeat in range(n_repeats):
        for task in race.tasks(name, repeat):
            if task in race.results:
                _, test = race.split(task)
                predictions[repeat, test] = race.results[task].predictions
    return predictions


def item_losses(problem: Problem, items: NDArray, predictions: Any, metric: str | None) -> NDArray:
    """The loss of every one of these items by the metric; nan for items without a prediction."""
    y = problem.y[items]
    if not problem.is_classification:
        error = predictions - y
        return np.abs(error) if metric == "absolute_error" else error**2
    codes = np.searchsorted(problem.classes, y)
    if metric == "accuracy":
        is_wrong = predictions.argmax(axis=1) != codes
        return np.where(np.isnan(predictions[:, 0]), np.nan, is_wrong)
    return log_losses(predictions, codes)


def all_losses(race: "Race", names: list[str]) -> tuple[NDArray, NDArray | None]:
    """Losses of shape (n_learners, n_repeats, n_items) of the items that were tested, and their groups."""
    items, metric = np.arange(race.problem.n_items), race.options.metric
    losses = np.array(
        [
            [item_losses(race.problem, items, repeat, metric) for repeat in repeats]
            for repeats in (predictions_by_repeat(race, name) for name in names)
        ]
    )
    tested = ~np.isnan(losses[:, 0]).any(axis=0)
    groups = race.problem.groups
    return losses[:, :, tested], None if groups is None else groups[tested]


def scores_of(problem: Problem, predictions: NDArray) -> dict[str, float]:
    """The scores of out-of-fold predictions of one repeat that a reader knows."""
    tested = np.isfinite(predictions.reshape(problem.n_items, -1)).all(axis=1)
    y, predictions = problem.y[tested], predictions[tested]
    if not problem.is_classification:
        return {
            "R²": r2_score(y, predictions),
            "RMSE": root_mean_squared_error(y, predictions),
            "MAE": mean_absolute_error(y, predictions),
        }
    codes = np.searchsorted(problem.classes, y)
    scores = {
        "log-loss": float(log_losses(predictions, codes).mean()),
        "accuracy": accuracy_score(codes, predictions.argmax(axis=1)),
    }
    if len(problem.classes) == 2:
        scores["AUC"] = roc_auc_score(codes, predictions[:, 1])
    return scores


def mean_scores(problem: Problem, repeats: NDArray) -> dict[str, float]:
    """The mean of every score over repeats."""
    return pd.DataFrame([scores_of(problem, one) for one in repeats]).mean().to_dict()
