"""Runs learners on splits within a budget of time: the same splits for all, cheap learners first, nothing lost.

A run is a list of steps that each hold a few tasks. The first steps train on parts of one split: they give the
beginning of the learning curves and foretell what the full size will cost, so a learner that would not fit into the
budget is left out before it has eaten it, and is named. Then all splits of a first repeat, the given test set,
further points of the curves, and repeats for as long as whole ones fit.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from mercerless.comparison.learners import (
    Learner,
    Setting,
    forget_decompositions,
    matrix_for,
    rows_for,
    share_decompositions,
)
from mercerless.comparison.problem import Problem, take
from mercerless.comparison.words import duration
from mercerless.estimators.hyper import HyperClassifier, HyperRegressor
from mercerless.selection.folds import Split, make_folds

N_FOLDS = 5
MAX_REPEATS = 10
#: Parts of a training set, for the learning curves.
PARTS = (0.125, 0.25, 0.5)
#: The smallest training set that a part may leave.
SMALLEST = 40


class Task(NamedTuple):
    """One learner on a part of one split; `fold` is -1 for the given test set."""

    learner: str
    repeat: int
    fold: int
    part: float = 1.0

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.learner}_{self.repeat}_{self.fold}_{self.part:g}"


def outer_folds(problem: Problem, repeat: int, random_state: int) -> list[Split]:
    """Return the training and test items of the folds of one repeat: stratified, copies and groups kept together."""
    return make_folds(
        N_FOLDS,
        problem.numbered,
        problem.y,
        classify=problem.is_classification,
        groups=problem.groups,
        precomputed=problem.is_matrix,
        random_state=(10_007 * random_state + repeat) % 2**32,
    )


def inner_folds(problem: Problem, train: NDArray) -> list[Split]:
    """Return folds inside a training set that keep groups whole."""
    return make_folds(
        N_FOLDS,
        problem.X[np.ix_(train, train)] if problem.is_matrix else problem.numbered[train],
        problem.y[train],
        classify=problem.is_classification,
        groups=problem.groups[train],
        precomputed=problem.is_matrix,
        random_state=0,
    )


def keep_groups(estimator: BaseEstimator, folds: list[tuple[NDArray, NDArray]]) -> None:
    """Let the search inside an estimator use folds that keep groups whole, where it can be told."""
    if isinstance(estimator, (VotingClassifier, VotingRegressor)):
        for _, member in estimator.estimators:
            keep_groups(member, folds)
        return
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if "cv" in last.get_params(deep=False) and not isinstance(last, (HyperClassifier, HyperRegressor)):
        last.set_params(cv=folds)


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
    return tuple(part for part in PARTS if part * n >= SMALLEST and part * rarest >= N_FOLDS + 1)


# --------------------------------------------------------------------------------------------------- one task


def run_task(problem: Problem, learner: Learner, setting: Setting, task: Task) -> dict[str, Any]:
    """Fit one learner on one training set and score it; an error becomes part of the record.

    Returns
    -------
    dict
        Plain values that go into JSON: the scores, targets and predictions (classes by number), seconds for fitting
        and predicting, bytes of the fitted model, and whether the solver converged.
    """
    train, X_train, X_test, y_test = _data(problem, learner, task, setting.random_state)
    record: dict[str, Any] = {**task._asdict(), "n_train": len(train)}
    estimator = share_decompositions(learner.build(setting))
    if problem.groups is not None:
        keep_groups(estimator, inner_folds(problem, train))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            start = time.perf_counter()
            estimator.fit(X_train, problem.y[train])
            fitted = time.perf_counter()
            predicted = estimator.predict(X_test)
            done = time.perf_counter()
            record["scores"] = score(problem, estimator, X_test, y_test, predicted)
        except Exception as error:  # whatever one learner does must not lose the others
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return {**record, "error": ": ".join([type(error).__name__, *lines[:1]])}
    record["fit_time"], record["predict_time"] = fitted - start, (done - fitted) / len(y_test)
    record["size"] = len(pickle.dumps(getattr(estimator, "best_estimator_", estimator)))
    record["converged"] = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    if task.part == 1.0:
        record["target"], record["predicted"] = (_plain(problem, values) for values in (y_test, predicted))
    return record


def _data(problem: Problem, learner: Learner, task: Task, random_state: int):
    """Return training items, their data, and the data and labels of the test items."""
    X = matrix_for(problem, learner.takes)
    if task.fold < 0:
        train, y_test = np.arange(len(problem.y)), problem.y_test
        return train, X, rows_for(problem, learner.takes, problem.X_test), y_test
    train, test = outer_folds(problem, task.repeat, random_state)[task.fold]
    train = take_part(problem, train, task.part, random_state)
    if problem.is_matrix:
        return train, X[np.ix_(train, train)], X[np.ix_(test, train)], problem.y[test]
    return train, take(X, train), take(X, test), problem.y[test]


def _plain(problem: Problem, values: NDArray) -> list[float] | list[int]:
    """Classes by their number, or numbers."""
    if problem.is_classification:
        return np.searchsorted(np.unique(problem.y), values).tolist()
    return np.asarray(values, dtype=np.float64).tolist()


def score(problem, estimator, X_test, y_test, predicted) -> dict[str, float]:
    """Return all scores."""
    scores = point_scores(problem.is_classification, y_test, predicted)
    return {**scores, **_ranking_scores(estimator, X_test, y_test)} if problem.is_classification else scores


def point_scores(is_classification: bool, y_test: NDArray, predicted: NDArray) -> dict[str, float]:
    """Return the scores that predictions alone give."""
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


def contributions(metric: str, y_test: NDArray, predicted: NDArray) -> NDArray:
    """Return what each test item adds to the score: the mean is the score."""
    if metric == "r2":
        return 1.0 - (predicted - y_test) ** 2 / max(np.var(y_test), np.finfo(float).tiny)
    correct = (predicted == y_test).astype(float)
    if metric == "accuracy":
        return correct
    classes, which, counts = np.unique(y_test, return_inverse=True, return_counts=True)
    return correct * len(y_test) / (len(classes) * counts[which])


def _ranking_scores(estimator, X_test, y_test) -> dict[str, float]:
    """Return the area under the curve and the log-loss where the learner gives what they need."""
    classes = estimator.classes_
    if len(np.unique(y_test)) < len(classes):
        return {}
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X_test)
        ranks = probabilities[:, 1] if len(classes) == 2 else probabilities / probabilities.sum(axis=1, keepdims=True)
        return {
            "roc_auc": roc_auc_score(y_test, ranks, multi_class="ovr"),
            "log_loss": log_loss(y_test, probabilities, labels=classes),
        }
    if len(classes) == 2 and hasattr(estimator, "decision_function"):
        return {"roc_auc": roc_auc_score(y_test, estimator.decision_function(X_test))}
    return {}


# ----------------------------------------------------------------------------------------------- finished tasks


class Store:
    """Records of finished tasks; with a folder, each is also a file that appears complete or not at all."""

    def __init__(self, folder: Path | None = None, resume: bool = False):
        self.folder, self.records = folder, {}
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.json"):
            if resume:
                self.records[path.stem] = json.loads(path.read_text())
            else:
                path.unlink(missing_ok=True)

    def put(self, task: Task, record: dict[str, Any]) -> None:
        """Keep a record."""
        self.records[task.key] = record
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # another run of the same data may have finished
            partial = self.folder / f".{task.key}.{os.getpid()}.part"
            partial.write_text(json.dumps(record))
            os.replace(partial, self.folder / f"{task.key}.json")
        except OSError:  # a full disk: only resuming is lost
            self.clear()
            self.folder = None

    def clear(self) -> None:
        """Delete the files; the records stay in memory."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


# ------------------------------------------------------------------------------------------------- the schedule


@dataclass
class Run:
    """One run of a comparison: what is done, what it cost, what was left out.

    Parameters
    ----------
    problem, learners, setting
        What is compared.
    budget : float or None
        Seconds; None for no limit.
    repeats : int or None
        How many repeats exactly, whatever they cost; None for as many as fit.
    n_jobs : int
        Tasks at the same time.
    curves : bool
        Whether learning curves are wanted.
    store : Store
        Finished tasks.
    progress : callable of (text, done, total)
        Told before and after every task.
    """

    problem: Problem
    learners: list[Learner]
    setting: Setting
    budget: float | None
    repeats: int | None = None
    n_jobs: int | None = None
    curves: bool = True
    store: Store = field(default_factory=Store)
    progress: Callable[[str, int, int], None] = lambda text, done, total: None
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    n_repeats: int = 0

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.active = [learner.name for learner in self.learners]
        self.by_name = {learner.name: learner for learner in self.learners}

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds left."""
        return np.inf if self.budget is None or self.repeats is not None else self.budget - self.elapsed

    def go(self) -> Run:
        """Run until everything is done, the budget is spent, or the user interrupts."""
        try:
            for text, tasks in self._steps():
                self._execute(text, tasks)
        except KeyboardInterrupt:
            self.interrupted = True
        except BrokenExecutor:
            raise MemoryError(
                "A worker process was ended from outside, most likely because memory ran out; use fewer jobs or a part "
                "of the items. Finished fits are kept, so resuming goes on from there."
            ) from None
        return self

    def _steps(self) -> Iterator[tuple[str, list[Task]]]:
        parts = possible_parts(self.problem) if self.curves or self.repeats is None else ()
        for part in parts:
            yield f"training on {part:.3g} of a split", self._tasks(0, [0], part)
            self._drop_unaffordable()
        for fold in range(N_FOLDS):
            yield f"repeat 1, split {fold + 1} of {N_FOLDS}", self._tasks(0, [fold])
            self._drop_unaffordable(done=fold + 1)
        yield from self._second_chance()
        self.n_repeats = 1
        if self.problem.y_test is not None:
            yield "given test set", self._tasks(0, [-1])
        curves = [task for part in parts for task in self._tasks(0, range(1, N_FOLDS), part)]
        if self.curves and self._cost(curves) < self.remaining:
            yield "learning curves", curves
        last = MAX_REPEATS if self.repeats is None else self.repeats
        while self.n_repeats < last:
            tasks = self._tasks(self.n_repeats, range(N_FOLDS))
            if self._cost(tasks) > self.remaining:
                return
            yield f"repeat {self.n_repeats + 1}", tasks
            self.n_repeats += 1

    def _second_chance(self) -> Iterator[tuple[str, list[Task]]]:
        """Run learners that were left out for their cost after all, where time turned out to be left."""
        for name in sorted(self.left_out, key=lambda name: self._seconds(name, 1.0)):
            tasks = [Task(name, 0, fold) for fold in range(N_FOLDS)]
            if name in self.by_name and self._cost(tasks) < self.remaining:
                yield f"repeat 1 of {self.by_name[name].title}", tasks
                self.active.append(name)
                del self.left_out[name]

    def _tasks(self, repeat: int, folds: Sequence[int] | range, part: float = 1.0) -> list[Task]:
        return [Task(name, repeat, fold, part) for fold in folds for name in self.active]

    def _execute(self, text: str, tasks: list[Task]) -> None:
        """Run the tasks that are not done yet; learners of one group and split go together."""
        batches: dict[Any, list[Task]] = {}
        for task in tasks:
            if task.key not in self.store.records:
                group = self.by_name[task.learner].group or task.learner
                batches.setdefault((group, *task[1:]), []).append(task)
        total, done = sum(map(len, batches.values())), 0
        self.progress(text, 0, total)
        calls = (
            delayed(_run_batch)(self.setting, [(self.by_name[task.learner], task) for task in batch])
            for batch in batches.values()
        )
        for records in Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")(calls):
            for record in records:
                task = Task(*(record[name] for name in Task._fields))
                self.store.put(task, record)
                self._note_failure(record)
            done += len(records)
            self.progress(text, done, total)

    def _note_failure(self, record: dict[str, Any]) -> None:
        if "error" in record and record["part"] == 1.0 and record["learner"] in self.active:
            self.active.remove(record["learner"])
            self.failed[record["learner"]] = record["error"]

    def _seconds(self, name: str, part: float) -> float:
        """Expected seconds of one task of a learner, from what it took on this part or on smaller ones."""
        times: dict[float, list[float]] = {}
        for record in self.store.records.values():
            if record["learner"] == name and "error" not in record:
                times.setdefault(record["part"], []).append(
                    record["fit_time"] + record["predict_time"] * len(self.problem.y) / N_FOLDS
                )
        if not times:
            return 0.0
        known = sorted((size, float(np.mean(values))) for size, values in times.items() if size <= part)
        if not known or known[-1][0] == part:
            return known[-1][1] if known else min(map(np.mean, times.values()))
        growth = 2.0
        if len(known) > 1:
            (small, fast), (large, slow) = known[-2:]
            growth = float(np.clip(np.log(slow / fast) / np.log(large / small), 1.0, 3.2))
        size, seconds = known[-1]
        return seconds * (part / size) ** growth

    def _cost(self, tasks: list[Task]) -> float:
        """Expected seconds on the clock for tasks that are not done."""
        seconds = sum(self._seconds(t.learner, t.part) for t in tasks if t.key not in self.store.records)
        return seconds / max(1, effective_n_jobs(self.n_jobs))

    def _drop_unaffordable(self, done: int = 0) -> None:
        """Leave out the costly learners that would not get through their first repeat within the budget."""
        n_splits = N_FOLDS - done + (self.problem.y_test is not None)
        if not np.isfinite(self.remaining) or not n_splits:
            return
        jobs = max(1, effective_n_jobs(self.n_jobs))
        cost = {name: n_splits * self._seconds(name, 1.0) / jobs for name in self.active}
        spent = 0.0
        for name in sorted(cost, key=cost.get):
            spent += cost[name]
            # one task cannot be divided among jobs
            if max(spent, jobs * cost[name] / n_splits) > max(self.remaining, 0.0) and name != "dummy":
                self.active.remove(name)
                missing = spent - max(self.remaining, 0.0)
                self.left_out[name] = f"the budget of {duration(self.budget)} is about {duration(missing)} too short"
                spent -= cost[name]


def _run_batch(setting: Setting, work: list[tuple[Learner, Task]]) -> list[dict[str, Any]]:
    """Run tasks that share decompositions; what they shared is of no use to others and must not pile up in a worker."""
    try:
        return [run_task(setting.problem, learner, setting, task) for learner, task in work]
    finally:
        forget_decompositions()
