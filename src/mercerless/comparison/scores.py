"""From predictions to losses of every item, and to the scores that a reader knows."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from mercerless.comparison.problem import Problem
from mercerless.comparison.statistics import log_losses

if TYPE_CHECKING:
    from mercerless.comparison.race import Race

TITLES = {
    "log_loss": "log-loss",
    "brier": "Brier score",
    "accuracy": "accuracy",
    "squared_error": "squared error",
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


def item_losses(problem: Problem, predictions: NDArray, metric: str | None) -> NDArray:
    """The loss of every item by the metric; nan for items without a prediction."""
    y = problem.y
    if not problem.is_classification:
        error = predictions - y
        return np.abs(error) if metric == "absolute_error" else error**2
    codes = np.searchsorted(problem.classes, y)
    missing = np.isnan(predictions).any(axis=1)
    if metric == "brier":
        given = np.eye(len(problem.classes))[codes]
        losses = ((predictions - given) ** 2).sum(axis=1)
    elif metric == "accuracy":
        losses = (predictions.argmax(axis=1) != codes).astype(float)
    else:
        losses = log_losses(predictions, codes)
    return np.where(missing, np.nan, losses)


def all_losses(race: "Race", names: list[str]) -> tuple[NDArray, NDArray | None]:
    """Losses of shape (n_learners, n_repeats, n_items) of the items that were tested, and their groups."""
    metric = race.options.metric
    losses = np.array(
        [
            [item_losses(race.problem, p, metric) for p in predictions_by_repeat(race, name)]
            for name in names
        ]
    )
    tested = ~np.isnan(losses[:, 0]).any(axis=0)
    groups = race.problem.groups
    return losses[:, :, tested], None if groups is None else groups[tested]


def scores_of(problem: Problem, predictions: NDArray) -> dict[str, float]:
    """The scores of out-of-fold predictions of one repeat that a reader knows."""
    y = problem.y
    if not problem.is_classification:
        tested = ~np.isnan(predictions)
        error = predictions[tested] - y[tested]
        total = ((y[tested] - y[tested].mean()) ** 2).mean()
        return {
            "R²": float(1.0 - (error**2).mean() / total),
            "RMSE": float(np.sqrt((error**2).mean())),
            "MAE": float(np.abs(error).mean()),
        }
    tested = ~np.isnan(predictions).any(axis=1)
    probabilities = predictions[tested]
    codes = np.searchsorted(problem.classes, y[tested])
    scores = {
        "log-loss": float(log_losses(probabilities, codes).mean()),
        "accuracy": float((probabilities.argmax(axis=1) == codes).mean()),
    }
    if probabilities.shape[1] == 2:
        scores["AUC"] = float(roc_auc_score(codes, probabilities[:, 1]))
    return scores


def main_score(problem: Problem, metric: str | None, scores: dict[str, float]) -> tuple[str, float]:
    """Name and value of the score that learners are ranked by, or of the one that is shown for it."""
    if problem.is_classification:
        name = "accuracy" if metric == "accuracy" else "log-loss"
    else:
        name = "MAE" if metric == "absolute_error" else "R²"
    return name, scores[name]
