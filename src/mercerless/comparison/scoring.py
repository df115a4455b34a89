"""One task of a comparison: which items a learner is trained and tested on, the fit, and its scores."""

import pickle
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, log_loss, roc_auc_score
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from mercerless.comparison.learners import (
    Learner,
    Terms,
    block,
    group_arguments,
    matrix_for,
    rows_between,
    rows_of_test_set,
    share_decompositions,
)
from mercerless.comparison.problem import Problem, select, take
from mercerless.comparison.records import Record, Task
from mercerless.core.folds import Split, make_folds

N_FOLDS = 5


@dataclass(frozen=True)
class Sizes:
    """How many items train and test."""

    #: Parts of a training set, for the first, cheap scores and for the learning curves.
    parts: tuple[float, ...] = (1 / 1024, 1 / 256, 1 / 64, 1 / 16, 0.125, 0.25, 0.5)
    #: The smallest training set that a part may leave.
    smallest: int = 40
    #: The same for parts below an eighth: the smallest that predicts the cost of larger ones.
    smallest_pilot: int = 500
    #: Test items of a split, at most: more would hardly narrow an interval.
    most_tested: int = 5000
    #: Probabilities that are kept of a split, at most: those of 40 classes for as many items.
    most_probabilities: int = 200_000
    #: Digits after the point of a probability that is kept.
    probability_digits: int = 6


SIZES = Sizes()


def outer_folds(problem: Problem, repeat: int, random_state: int) -> list[Split]:
    """Return the training and test items of the folds of one repeat: stratified, copies and groups kept together."""
    return _folds(problem, (10_007 * random_state + repeat) % 2**32)


def inner_folds(problem: Problem, train: NDArray) -> list[Split]:
    """Return folds inside a training set that keep groups whole."""
    return _folds(select(problem, train), 0)


def _folds(problem: Problem, random_state: int) -> list[Split]:
    return make_folds(
        N_FOLDS,
        problem.numbered,
        problem.y,
        classify=problem.is_classification,
        groups=problem.groups,
        precomputed=problem.is_matrix,
        random_state=random_state,
    )


def keep_groups(estimator: BaseEstimator, folds: list[tuple[NDArray, NDArray]]) -> None:
    """Let the search inside an estimator use folds that keep groups whole."""
    if isinstance(estimator, (VotingClassifier, VotingRegressor)):
        for _, member in estimator.estimators:
            keep_groups(member, folds)
        return
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if "cv" in last.get_params(deep=False):
        last.set_params(cv=folds)


#: Looking for copies takes long among many items, and the next task mostly asks for another fold of the same repeat.
_LAST_FOLDS: tuple[Any, int, int, list[Split]] = (None, -1, -1, [])


def make_split(
    problem: Problem, repeat: int, fold: int, random_state: int
) -> tuple[NDArray, NDArray]:
    """Return the training and the test items of one split; very many test items are sampled, the same for all."""
    global _LAST_FOLDS
    if _LAST_FOLDS[0] is not problem or _LAST_FOLDS[1:3] != (repeat, random_state):
        _LAST_FOLDS = problem, repeat, random_state, outer_folds(problem, repeat, random_state)
    train, test = _LAST_FOLDS[3][fold]
    return train, take_part(problem, test, min(1.0, SIZES.most_tested / len(test)), random_state)


def take_part(problem: Problem, train: NDArray, part: float, random_state: int) -> NDArray:
    """Return a part of a training set that has every class in proportion; smaller parts are inside larger ones."""
    if part == 1.0:
        return train
    order = check_random_state(random_state).permutation(train)
    if problem.is_classification:
        y = problem.y[order]
        place = np.empty(len(order))
        for label in np.unique(y):
            same = np.flatnonzero(y == label)
            place[same] = (np.arange(len(same)) + 0.5) / len(same)
        order = order[np.argsort(place, kind="stable")]
    return np.sort(order[: int(np.ceil(part * len(order)))])


def possible_parts(problem: Problem) -> tuple[float, ...]:
    """Return the parts that leave enough items, and enough of every class, for an inner search."""
    n = len(problem.y) * (1 - 1 / N_FOLDS)
    rarest = n
    if problem.is_classification:
        rarest = np.unique(problem.y, return_counts=True)[1].min() * (1 - 1 / N_FOLDS)
    possible = []
    for part in SIZES.parts:
        smallest = SIZES.smallest if part >= 0.125 else SIZES.smallest_pilot
        if part * n >= smallest and part * rarest >= N_FOLDS + 1:
            possible.append(part)
    return tuple(possible)


# --------------------------------------------------------------------------------------------------- one task


def run_task(terms: Terms, learner: Learner, task: Task) -> Record:
    """Fit one learner on one training set and score it; an error becomes part of the record."""
    problem = terms.problem
    learner = learner.in_form(task.form)
    train, X_train, X_test, y_test = _data(problem, learner, task, terms.random_state)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator = share_decompositions(learner.build(terms.for_items(len(train))))
            group_options = {}
            if problem.groups is not None:
                keep_groups(estimator, inner_folds(problem, train))
                group_options = group_arguments(estimator, problem.groups[train])
            start = time.perf_counter()
            estimator.fit(X_train, problem.y[train], **group_options)
            fitted = time.perf_counter()
            predicted = estimator.predict(X_test)
            done = time.perf_counter()
            probability = np.empty((0, 0))
            if problem.is_classification:
                probability = class_probabilities(problem, estimator, X_test)
            scores = score(
                problem, estimator, X_test, y_test, predicted, probability, terms.scoring
            )
        except Exception as error:  # a failing learner must not end the run of the others
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return Record(task, len(train), {}, error=": ".join([type(error).__name__, *lines[:1]]))
    return Record(
        task,
        len(train),
        scores,
        fit_time=fitted - start,
        predict_time=(done - fitted) / len(y_test),
        size=len(pickle.dumps(getattr(estimator, "best_estimator_", estimator))),
        converged=not any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
        target=_by_number(problem, y_test),
        predicted=_by_number(problem, predicted),
        probability=_to_keep(probability),
    )


def _data(problem: Problem, learner: Learner, task: Task, random_state: int):
    """Return training items, their data, and the data and labels of the test items."""
    X = matrix_for(problem, learner.takes)
    if task.fold < 0:
        assert problem.y_test is not None
        train = take_part(problem, np.arange(len(problem.y)), task.part, random_state)
        rows = rows_of_test_set(problem, learner.takes)
        if problem.is_matrix:
            tested = np.arange(len(problem.y_test))
            columns = train
            if learner.takes == "both" and problem.reverse_test is not None:
                columns = np.concatenate([train, train + len(problem.y)])
            return train, block(X, train, train), block(rows, tested, columns), problem.y_test
        return train, take(X, train), rows, problem.y_test
    train, test = make_split(problem, task.repeat, task.fold, random_state)
    train = take_part(problem, train, task.part, random_state)
    if problem.is_matrix:
        rows = rows_between(X, learner.takes, test, train)
        return train, block(X, train, train), rows, problem.y[test]
    return train, take(X, train), take(X, test), problem.y[test]


def _by_number(problem: Problem, values: NDArray) -> NDArray:
    """Classes by their number, or numbers."""
    if problem.is_classification:
        return np.searchsorted(np.unique(problem.y), values)
    return np.asarray(values, dtype=np.float64)


def class_probabilities(problem: Problem, estimator: BaseEstimator, X_test: Any) -> NDArray:
    """Return the probabilities of all classes of a problem, as `Record` has them."""
    classes = np.unique(problem.y)
    if hasattr(estimator, "predict_proba"):
        given = np.asarray(estimator.predict_proba(X_test), dtype=np.float64)
        given = given / given.sum(axis=1, keepdims=True)
        probability = np.zeros((len(given), len(classes)))
        probability[:, np.searchsorted(classes, estimator.classes_)] = given
        return probability
    if len(classes) == 2 and hasattr(estimator, "decision_function"):
        decision = np.asarray(estimator.decision_function(X_test), dtype=np.float64)
        return decision.reshape(-1, 1)
    return np.empty((0, 0))


def _to_keep(probability: NDArray) -> NDArray:
    """Rounded probabilities; none if there are too many."""
    if probability.size > SIZES.most_probabilities:
        return np.empty((0, 0))
    if probability.shape[1] > 1:
        return np.round(probability, SIZES.probability_digits)
    return probability


def score(
    problem, estimator, X_test, y_test, predicted, probability, metric: str
) -> dict[str, float]:
    """Return all scores, among them the one that counts."""
    scores = point_scores(problem.is_classification, y_test, predicted)
    if probability.size:
        scores |= _ranking_scores(np.unique(problem.y), y_test, probability)
    if metric not in scores:
        scores[metric] = float(get_scorer(metric)(estimator, X_test, y_test))
    return scores


def point_scores(is_classification: bool, y_test: NDArray, predicted: NDArray) -> dict[str, float]:
    """Return the scores that need predictions only."""
    if is_classification:
        names = ("accuracy", "balanced_accuracy")
        return {name: float(contributions(name, y_test, predicted).mean()) for name in names}
    error = predicted - y_test
    scores = {
        "r2": contributions("r2", y_test, predicted).mean(),
        "rmse": np.sqrt((error**2).mean()),
        "mae": np.abs(error).mean(),
    }
    return {name: float(value) for name, value in scores.items()}


class _GivenClasses(ClassifierMixin, BaseEstimator):
    """A classifier that predicts what it is given, for scorers."""

    def __init__(self, classes: NDArray):
        self.classes_ = classes

    def predict(self, X: NDArray) -> NDArray:
        return X


class _GivenNumbers(RegressorMixin, BaseEstimator):
    """A regressor that predicts what it is given, for scorers."""

    def predict(self, X: NDArray) -> NDArray:
        return X


def scores_of_predictions(
    problem: Problem, target: NDArray, predicted: NDArray, metric: str
) -> dict[str, float] | None:
    """Return the scores of predictions without their estimator; None if `metric` needs more than predictions."""
    scores = point_scores(problem.is_classification, target, predicted)
    if metric in scores:
        return scores
    estimator: BaseEstimator = _GivenNumbers()
    if problem.is_classification:
        labels = np.unique(problem.y)
        estimator = _GivenClasses(labels)
        target = labels[target]
        predicted = labels[predicted]
    try:
        return {**scores, metric: float(get_scorer(metric)(estimator, predicted, target))}
    except (AttributeError, ValueError):  # it ranks, or needs probabilities
        return None


def is_mean_of_items(metric: str) -> bool:
    """Whether a score is a mean of contributions of the test items."""
    squared_or_absolute = ("r2", "neg_mean_absolute_error", "neg_mean_squared_error")
    return metric in ("accuracy", "balanced_accuracy", *squared_or_absolute)


def contributions(metric: str, y_test: NDArray, predicted: NDArray) -> NDArray:
    """Return the contribution of each test item to the score, which is their mean."""
    if metric == "r2":
        return 1.0 - (predicted - y_test) ** 2 / max(np.var(y_test), np.finfo(float).tiny)
    if metric == "neg_mean_absolute_error":
        return -np.abs(predicted - y_test)
    if metric == "neg_mean_squared_error":
        return -((predicted - y_test) ** 2)
    correct = (predicted == y_test).astype(float)
    if metric == "accuracy":
        return correct
    classes, which, counts = np.unique(y_test, return_inverse=True, return_counts=True)
    return correct * len(y_test) / (len(classes) * counts[which])


def _ranking_scores(classes: NDArray, y_test: NDArray, probability: NDArray) -> dict[str, float]:
    """Return the area under the curve and, for probabilities, the log-loss; nothing if a class has no test item."""
    if len(np.unique(y_test)) < len(classes):
        return {}
    ranks = probability[:, -1] if len(classes) == 2 else probability
    scores = {"roc_auc": float(roc_auc_score(y_test, ranks, multi_class="ovr"))}
    if probability.shape[1] == len(classes):
        scores["log_loss"] = float(log_loss(y_test, probability, labels=classes))
    return scores
