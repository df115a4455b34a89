"""One unit of work, a fit on the training part of a split, and the processes that do it."""

import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend import resource_tracker as loky_tracker
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


def rows_between(problem: Problem, learner: Learner, rows: NDArray, columns: NDArray) -> Any:
    """Rows of a table, or the comparisons of some items with others."""
    X = view(problem, learner.takes)
    if learner.takes == "table":
        return X.iloc[rows]
    return csr_array(X[rows][:, columns]) if issparse(X) else X[np.ix_(rows, columns)]


def fit_on(problem: Problem, learner: Learner, train: NDArray) -> Any:
    """The learner fitted on some items, with their groups if it takes groups."""
    estimator = clone(learner.make(problem))
    rows, y = rows_between(problem, learner, train, train), problem.y[train]
    if problem.groups is not None and has_fit_parameter(estimator, "groups"):
        return estimator.fit(rows, y, groups=problem.groups[train])
    return estimator.fit(rows, y)


def fit_all(problem: Problem, learner: Learner) -> Any:
    """The learner fitted on all items."""
    return fit_on(problem, learner, np.arange(problem.n_items))


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
            rows = rows_between(problem, learner, test, train)
            predictions = predictions_of(model, rows, problem)
            if not np.isfinite(predictions).all():
                return Result(task, None, error="its predictions are not finite")
            predicted = time.perf_counter()
            notes = tuple(getattr(model, "notes_", ()))
            return Result(task, predictions, fitted - start, predicted - fitted, notes=notes)
        except Exception as error:
            text = str(error).strip().splitlines()
            return Result(task, None, error=f"{type(error).__name__}: {text[0] if text else ''}")


# ---------------------------------------------------------------------------------------------------------- processes


def start_uninterrupted(pool: ProcessPoolExecutor) -> Future:
    """Start the process of a pool so that Ctrl-C goes to the main process only, also during imports."""
    if os.name == "nt":  # has no masks
        return pool.submit(os.getpid)
    for tracker in (resource_tracker, loky_tracker):
        tracker.ensure_running()  # its start would allow interrupts again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(os.getpid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_worker() -> None:
    """Import what fits need before the first task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    with suppress(ImportError):
        import mercerless.comparison.learners  # noqa: F401


@lru_cache(maxsize=1)
def shared(path: str) -> tuple[Problem, list[Learner]]:
    """The problem and the learners that the main process wrote to a file; what tables need is imported before."""
    with open(path, "rb") as file:
        problem, learners = pickle.load(file)
    if problem.is_table:
        with suppress(ImportError):
            import skrub  # noqa: F401
    return problem, learners


def call_shared(path: str, function: Callable, *arguments: Any) -> Any:
    """Call a function of the shared problem and one learner, which its first argument names by its place."""
    problem, learners = shared(path)
    place, *rest = arguments
    return function(problem, learners[place], *rest)


class Workers:
    """Processes that call functions of the problem, each in a pool of its own: stopping one leaves the others alone."""

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs
        self._folder: TemporaryDirectory | None = None
        self._path = ""
        self._idle: dict[ProcessPoolExecutor, Future] = {}  # and its last call
        self._busy: dict[Future, ProcessPoolExecutor] = {}
        for _ in range(n_jobs):
            self._start()

    def _start(self) -> None:
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        pool = ProcessPoolExecutor(1, initializer=start_worker, env=dict.fromkeys(threads, "1"))
        self._idle[pool] = start_uninterrupted(pool)

    @property
    def is_ready(self) -> bool:
        """Whether a process has imported what it needs and is idle, or calls run here."""
        return self.n_jobs == 0 or any(last.done() for last in self._idle.values())

    def share(self, problem: Problem, learners: list[Learner]) -> None:
        """Give the problem and the learners to all processes."""
        self.problem, self.learners = problem, learners
        if self.n_jobs > 0:
            self._folder = self._folder or TemporaryDirectory(prefix="mercerless-")
            self._path = f"{self._folder.name}/{time.monotonic_ns()}"
            with open(self._path, "wb") as file:
                file.write(dumps((problem, learners)))  # functions of a script go by value

    def submit(self, function: Callable, place: int, *arguments: Any) -> Future:
        """Call `function(problem, learners[place], *arguments)` in an idle process, or here if there are none."""
        if self.n_jobs > 0:
            pool = min(self._idle, key=lambda one: not self._idle[one].done())
            del self._idle[pool]
            future = pool.submit(call_shared, self._path, function, place, *arguments)
            self._busy[future] = pool
            return future
        future = Future()
        future.set_result(function(self.problem, self.learners[place], *arguments))
        return future

    def completed(self, futures: Iterable[Future], seconds: float) -> list[Future]:
        """Futures that are done as soon as there is one, or another process is ready, or time is over."""
        timeout = None if seconds == inf else max(seconds, 0.0)
        starting = [last for last in self._idle.values() if not last.done()]
        wait([*futures, *starting], timeout=timeout, return_when=FIRST_COMPLETED)
        done = [future for future in futures if future.done()]
        for future in filter(self._busy.__contains__, done):
            if isinstance(future.exception(), BrokenExecutor):
                self.stop(future)
            else:
                self._idle[self._busy.pop(future)] = future
        return done

    def stop(self, future: Future) -> None:
        """Stop a call and start a process in place of its own."""
        kill(self._busy.pop(future))
        self._start()

    def close(self) -> None:
        """Stop all processes and remove the shared files."""
        for pool in [*self._idle, *self._busy.values()]:
            kill(pool)
        self._idle.clear()
        self._busy.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def kill(pool: ProcessPoolExecutor) -> None:
    """Stop a process, whatever it does."""
    time.sleep(0.1)  # loky's thread must have seen what was submitted before
    pool.shutdown(wait=True, kill_workers=True)
