"""Scikit-learn's boosted trees as a member: they see gaps and categories as such."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from mercerless.core.choice import cross_chosen
from mercerless.core.folds import Split
from mercerless.lab.model import Rows
from mercerless.table.encoding import TreeColumns
from mercerless.table.members.candidate import Candidate, Contest
from mercerless.table.weighing import Labeled, as_scores


@dataclass(frozen=True)
class TreeLimits:
    """When trees compete, how many there may be, and when they are given up."""

    #: With fewer rows there are no trees.
    fewest_rows: int = 100
    #: Rows x outputs x iterations at most ...
    work: float = 4e7
    #: ... and times the features; both grow with the rows above `many_rows`, at most so many times.
    cells: float = 1e9
    growth: float = 25.0
    #: Iterations at most; boosting ends earlier if the held-out loss no longer falls ...
    iterations: int = 2000
    #: ... and at most with few rows; if many rows ask for more, larger trees compete.
    usual_iterations: int = 400
    #: Iterations after which the held-out loss is looked at.
    step: int = 50
    #: Leaves of larger trees.
    large_leaves: int = 127
    #: Larger trees and more iterations compete from so many rows on.
    many_rows: int = 10_000
    #: Steps as good as the last one in which trees would not reach the best of the others.
    hopeless: float = 4.0
    #: Times the loss of the best of the others, at which further folds do not matter.
    useless: float = 1.5
    #: Their name among the members.
    name: str = "boosted trees"


LIMITS = TreeLimits()


class BoostedTrees:
    """Boosted trees, given up early if they stay far behind the others."""

    def candidates(self, contest: Contest, tried: Sequence[Candidate]) -> list[Candidate]:
        if not contest.folds or len(contest.rows) < LIMITS.fewest_rows:
            return []
        trees = tree_candidate(
            contest.labeled,
            contest.folds,
            contest.settings.seed,
            contest.more,
            [candidate.out_of_fold for candidate in tried],
            contest.columns,
        )
        return [] if trees is None else [trees]


class Trees(NamedTuple):
    """Boosted trees as a member of a fitted LAB model.

    Attributes
    ----------
    name : str
        "boosted trees".
    models : list
        Scikit-learn's models: one, or one per output.
    center, scale : ndarray of shape (n_functions,)
        The units of the predictions.
    weight : float
        The weight in the average.
    scaling : callable
        Scales features.
    columns : callable
        What the trees see of scaled features: missing numbers as such, and categories as one column of codes.
    """

    name: str
    models: list
    center: NDArray
    scale: NDArray
    weight: float
    scaling: Any
    columns: TreeColumns

    def __call__(self, X: NDArray) -> NDArray:
        """One column per function, or per class: log-odds."""
        Z = X
        if self.scaling is not None:
            Z = self.scaling(X, X.dtype)
        raw = raw_predictions(self.models, self.columns(Z), len(self.center))
        return raw * self.scale + self.center

    def in_units(self, center: NDArray, scale: NDArray) -> "Trees":
        """``scale * self(X) + center``."""
        return self._replace(center=self.center * scale + center, scale=self.scale * scale)


def raw_predictions(models: Sequence[Any], X: NDArray, n_functions: int) -> NDArray:
    """Predicted numbers, or the log-odds of classes; a class that was not seen has the lowest of a row."""
    if not hasattr(models[0], "classes_"):
        return np.stack([model.predict(X) for model in models], axis=1)
    scores = models[0].decision_function(X).reshape(len(X), -1)
    return _all_classes(scores, models[0].classes_, n_functions)


def _all_classes(scores: NDArray, classes: NDArray, n_functions: int) -> NDArray:
    if scores.shape[1] == n_functions:
        return scores
    if scores.shape[1] == 1:
        scores = as_scores(scores)
    out = np.repeat(scores.min(axis=1, keepdims=True) - 2.0, n_functions, axis=1)
    out[:, classes] = scores
    return out


def _seen(given: Labeled, columns: TreeColumns) -> Labeled:
    """Rows as trees see them."""
    return given._replace(rows=replace(given.rows, X=columns(given.rows.X)))


def boost(
    given: Labeled,
    n_iter: int,
    seed: int,
    models: Sequence[Any] | None = None,
    categories: Sequence[int] = (),
    leaves: int | None = None,
) -> list:
    """Boosted trees with so many iterations, continued if models are given; `categories` are columns of codes."""
    rows = given.rows
    X = rows.X
    empty = np.isnan(rows.X).all(axis=0)
    if empty.any():  # in these rows, not in all: of no use, but an error of the models
        X = np.where(empty, 0.0, X)
    weight = rows.weight
    labels = None
    if given.labels is not None:
        place, labels, weight = given.observed
        X = X[place]
    sample_weight = None  # squared errors without weights are faster
    if np.ptp(weight) > 0:
        sample_weight = weight
    if leaves is None:
        leaves = 31 if len(rows) >= 1000 else 12
    options: dict[str, Any] = {
        "learning_rate": 0.1,
        "l2_regularization": 1.0,
        "early_stopping": False,
        "min_samples_leaf": 20 if len(rows) >= 2000 else 10,
        "max_leaf_nodes": leaves,
        "random_state": seed,
        "categorical_features": list(categories) or None,
        "warm_start": True,
    }
    if labels is None:
        targets = list(rows.Y.T)
        new = [HistGradientBoostingRegressor(**options) for _ in targets]
    else:
        targets = [labels]
        new = [HistGradientBoostingClassifier(**options, max_features=0.5)]
    grown = list(models or new)
    for model, target in zip(grown, targets):
        model.set_params(max_iter=n_iter).fit(X, target, sample_weight=sample_weight)
    return grown


def _stages(models: Sequence[Any], X: NDArray, n_functions: int) -> list[NDArray]:
    """Predictions after every tenth iteration."""
    if hasattr(models[0], "classes_"):
        every = models[0].staged_decision_function(X)
        scores = [s.reshape(len(X), -1) for i, s in enumerate(every) if i % 10 == 9]
        return [_all_classes(s, models[0].classes_, n_functions) for s in scores]
    columns = [
        [p for i, p in enumerate(model.staged_predict(X)) if i % 10 == 9] for model in models
    ]
    return [np.stack(stage, axis=1) for stage in zip(*columns)]


def tree_candidate(
    known: Labeled,
    folds: Sequence[Split],
    seed: int,
    further: Labeled | None = None,
    rivals: Sequence[NDArray] = (),
    columns: TreeColumns = TreeColumns(),  # noqa: B008  # immutable
    leaves: int | None = None,
) -> Candidate | None:
    """Boosted trees whose number of iterations is chosen on the held-out rows, for those of a fold on the others.

    With `further` rows to learn from the trees are not fitted again; far behind the predictions of `rivals` boosting
    ends early, and if many rows need more iterations larger trees compete. `columns` makes the rows for trees.
    """
    rows = known.rows
    labels = known.labels
    q = rows.Y.shape[1]
    every = _seen(known, columns)
    given = further
    if further is not None:
        further = _seen(further, columns)
    grow = partial(boost, seed=seed, categories=columns.categories, leaves=leaves)
    most = _most_iterations(rows, further, q)
    if most == 0 or (
        labels is not None and any(len(np.unique(labels[train])) < 2 for train, _ in folds)
    ):
        return None
    n_iter = 0
    stages = []
    models: list[Any] = []
    for number, (train, valid) in enumerate(folds):
        learned = every.take(train).joined(further)
        held = every.take(valid)
        models = [] if number == 0 else grow(learned, n_iter)
        goal = min(
            [held.judge(p[: len(valid)]) for p in rivals] if number == 0 else [], default=np.inf
        )
        loss = np.inf
        while number == 0 and n_iter < most:
            n_iter = min(most, n_iter + max(LIMITS.step, _half(n_iter)))
            models = grow(learned, n_iter, models=models or None)
            losses = [held.loss(p) for p in _stages(models, held.rows.X, q)]
            before = loss
            loss = min(losses)
            if np.argmin(losses) < 0.7 * len(losses) or loss - goal > LIMITS.hopeless * (
                before - loss
            ):
                break
        if number == 0 and len(folds) > 1 and loss > LIMITS.useless * goal:
            n_iter = 10  # no use beside the others: only to be named among them
        stages.append(_stages(models, held.rows.X, q))
    predictions = [np.concatenate(stage) for stage in zip(*stages)]
    held = every.take(np.concatenate([valid for _, valid in folds]))
    best = int(np.argmin([held.loss(p) for p in predictions]))
    if further is not None:
        trees = Candidate(LIMITS.name, predictions[-1], partial(_as_trees, models, q, columns))
    else:
        chosen = cross_chosen(predictions, [held.losses(p) for p in predictions], folds)
        n_iter = 10 * (best + 1)
        trees = Candidate(LIMITS.name, chosen, partial(_fit_again, every, n_iter, grow, columns))
    wants_more = 10 * (best + 1) >= min(most, LIMITS.usual_iterations)
    if leaves or len(folds) > 1 or not wants_more or len(learned.rows) < LIMITS.many_rows:
        return trees
    larger = tree_candidate(
        known, folds, seed, given, [*rivals, trees.out_of_fold], columns, LIMITS.large_leaves
    )
    if larger is None or held.judge(larger.out_of_fold) >= held.judge(trees.out_of_fold):
        return trees
    return larger


def _most_iterations(rows: Rows, further: Labeled | None, q: int) -> int:
    """A multiple of ten that the work allows; 0 if that is too few."""
    n = len(rows) + (0 if further is None else len(further.rows))
    per_iteration = max(n * q / LIMITS.work, n * q * rows.X.shape[1] / LIMITS.cells)
    most = np.clip(n / LIMITS.many_rows, 1.0, LIMITS.growth) / per_iteration
    if most < 12:
        return 0
    limit = LIMITS.iterations if n >= LIMITS.many_rows else LIMITS.usual_iterations
    return int(np.clip(most, 60, limit)) // 10 * 10


def _half(n_iter: int) -> int:
    """Half of many iterations, a multiple of ten: every continued fit predicts all training rows again."""
    return n_iter // 20 * 10 if n_iter >= LIMITS.usual_iterations else 0


def _as_trees(models: list, q: int, columns: TreeColumns) -> Trees:
    return Trees(LIMITS.name, models, np.zeros(q), np.ones(q), 1.0, None, columns)


def _fit_again(every: Labeled, n_iter: int, grow: Callable, columns: TreeColumns) -> Trees:
    return _as_trees(grow(every, n_iter), every.rows.Y.shape[1], columns)
