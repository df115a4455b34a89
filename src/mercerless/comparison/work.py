"""One unit of work, a fit on the training part of a split, and the processes that do it."""

import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.cloudpickle_wrapper import dumps
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from mercerless.comparison.learners import Learner, view
from mercerless.comparison.problem import Problem


class Task(NamedTuple):
    """A learner on one split; `share` is the part of the training items that is used."""

    learner: str
    repeat: int
    fold: int
    share: float = 1.0


@dataclass
class Result:
    """Predictions for the test items of a task, or the error."""

    task: Task
    predictions: NDArray | None
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()  # what the learner did with the data

    @property
    def seconds(self) -> float:
        """Time of the task."""
        return self.fit_seconds + self.predict_seconds


def rows_between(X: Any, takes: str, rows: NDArray, columns: NDArray) -> Any:
    """Rows of a table, or the comparisons of some items with others."""
    if takes == "table":
        return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    if issparse(X):
        return csr_array(X[rows][:, columns])
    return X[np.ix_(rows, columns)]


def fit_options(estimator: Any, groups: NDArray | None) -> dict[str, Any]:
    """Groups for estimators that take them."""
    has_groups = groups is not None and has_fit_parameter(estimator, "groups")
    return {"groups": groups} if has_groups else {}


def fit_on(problem: Problem, learner: Learner, train: NDArray) -> Any:
    """The learner fitted on some items."""
    estimator = clone(learner.make(problem))
    rows = rows_between(view(problem, learner.takes), learner.takes, train, train)
    groups = None if problem.groups is None else problem.groups[train]
    return estimator.fit(rows, problem.y[train], **fit_options(estimator, groups))


def fit_all(problem: Problem, learner: Learner) -> Any:
    """The learner fitted on all items."""
    return fit_on(problem, learner, np.arange(problem.n_items))


def predict_with(
    model: Any, problem: Problem, learner: Learner, test: NDArray, train: NDArray
) -> NDArray:
    """Probabilities of all classes, or numbers, for some items."""
    X = view(problem, learner.takes)
    rows = rows_between(X, learner.takes, test, train)
    return predictions_of(model, rows, problem)


def predictions_of(model: Any, rows: Any, problem: Problem) -> NDArray:
    """Probabilities in the order of the classes, or numbers; labels without probabilities are taken for certain."""
    if not problem.is_classification:
        return np.asarray(model.predict(rows), dtype=float).ravel()
    probabilities = np.zeros((rows.shape[0], len(problem.classes)))
    if hasattr(model, "predict_proba"):
        columns = np.searchsorted(problem.classes, model.classes_)
        probabilities[:, columns] = model.predict_proba(rows)
    else:
        codes = np.searchsorted(problem.classes, model.predict(rows))
        probabilities[np.arange(len(codes)), codes] = 1.0
    return probabilities


def run_task(
    problem: Problem, learner: Learner, task: Task, train: NDArray, test: NDArray
) -> Result:
    """Fit and predict; an error of the learner is part of the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            start = time.perf_counter()
            model = fit_on(problem, learner, train)
            fitted = time.perf_counter()
            predictions = predict_with(model, problem, learner, test, train)
            if not np.isfinite(predictions).all():
                return Result(task, None, error="its predictions are not finite")
            predicted = time.perf_counter()
            notes = tuple(getattr(model, "notes_", ()))
            return Result(task, predictions, fitted - start, predicted - fitted, notes=notes)
        except Exception as error:
            text = str(error).strip().splitlines()
            return Result(task, None, error=f"{type(error).__name__}: {text[0] if text else ''}")


# ---------------------------------------------------------------------------------------------------------- processes


def start_worker() -> None:
    """Leave Ctrl-C to the main process, and import what fits need before the first task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    with suppress(ImportError):
        import mercerless.comparison.learners  # noqa: F401


@lru_cache(maxsize=1)
def shared(path: str) -> tuple[Problem, list[Learner]]:
    """The problem and the learners that the main process wrote to a file."""
    with open(path, "rb") as file:
        return pickle.load(file)


def call_shared(path: str, function: Callable, *arguments: Any) -> Any:
    """Call a function of the shared problem and one learner, which its first argument names by its place."""
    problem, learners = shared(path)
    place, *rest = arguments
    return function(problem, learners[place], *rest)


class Workers:
    """Processes that call functions of the problem; they can be stopped at any time."""

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs
        self._folder: TemporaryDirectory | None = None
        self._path = ""
        self._pool: ProcessPoolExecutor | None = None
        self._spare: ProcessPoolExecutor | None = None
        if n_jobs > 0:
            self._start()

    def _start(self) -> None:
        self._pool, self._spare = self._spare or self._new_pool(), None
        self._started = [self._pool.submit(os.getpid) for _ in range(self.n_jobs)]

    def prepare(self) -> None:
        """Start processes that take over without delay if running work has to be stopped."""
        if self._pool is not None and self._spare is None:
            self._spare = self._new_pool()
            self._spare.submit(os.getpid)

    def _new_pool(self) -> ProcessPoolExecutor:
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        return ProcessPoolExecutor(
            self.n_jobs, initializer=start_worker, env=dict.fromkeys(threads, "1")
        )

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until a process has imported what it needs."""
        if self._pool is not None:
            wait(self._started, timeout=seconds, return_when=FIRST_COMPLETED)

    def share(self, problem: Problem, learners: list[Learner]) -> None:
        """Give the problem and the learners to all processes."""
        self.problem, self.learners = problem, learners
        if self.n_jobs > 0:
            self._folder = self._folder or TemporaryDirectory(prefix="mercerless-")
            number = len(list(Path(self._folder.name).iterdir()))
            self._path = str(Path(self._folder.name) / f"problem{number}.joblib")
            with open(self._path, "wb") as file:
                file.write(dumps((problem, learners)))  # functions of a script go by value

    def submit(self, function: Callable, place: int, *arguments: Any) -> Future:
        """Call `function(problem, learners[place], *arguments)` in a process, or here if there are none."""
        if self._pool is not None:
            return self._pool.submit(call_shared, self._path, function, place, *arguments)
        future: Future = Future()
        future.set_result(function(self.problem, self.learners[place], *arguments))
        return future

    def stop(self) -> None:
        """Stop running work."""
        if self._pool is not None:
            time.sleep(0.1)  # loky's thread must have seen what was submitted before
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None

    def restart(self) -> None:
        """Stop running work and start new processes."""
        self.stop()
        if self.n_jobs > 0:
            self._start()

    def close(self) -> None:
        """Stop and remove the shared files."""
        self.stop()
        if self._spare is not None:
            self._spare.shutdown(wait=True, kill_workers=True)
            self._spare = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def completed(futures: list[Future], seconds: float) -> Iterator[Future]:
    """Futures that are done within some time; at least one unless time is over."""
    timeout = None if seconds == inf else max(seconds, 0.0)
    yield from wait(futures, timeout=timeout, return_when=FIRST_COMPLETED).done
