"""The race: every learner's defaults on all rows, then what explains them, then searches, then repeats.

All learners are scored on the same splits of the same rows, split by split: if time is over before the fifth, all are
judged by the splits that all have finished. If one split of all rows takes the automatic learner too long, all learners
get the same smaller sample. Only measured seconds decide. A learner that fails or does not finish a split is listed and
not ranked.
"""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ParameterGrid,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from mercerless.comparison.explain import Importance, permutation_importance
from mercerless.comparison.learners import GUESS, Learner
from mercerless.comparison.options import Options
from mercerless.comparison.problem import Problem
from mercerless.comparison.scores import item_losses
from mercerless.comparison.store import Store
from mercerless.comparison.work import Result, Task, Workers, run_task

N_FOLDS = 5
#: More repeats narrow intervals by less than 3 %.
N_REPEATS = 3
#: One split may take this part of the time, or the other learners would have too little.
LONGEST_SPLIT = 1 / 3
#: Up to this size the automatic learner may take longer: it is compared on all rows.
MOST_UNSAMPLED = 5000
#: Above it, a sample of this part of the rows needs a twentieth of the time per split if cost is linear in the rows.
SAMPLE = 0.15
#: The statistics and the page of 50,000 rows take less, also on a busy machine.
PAGE_SECONDS = 2.0
#: Baselines that take less than a second on so many rows.
FALLBACK, FALLBACK_ROWS = ("linear", "neighbors", "features"), 500
#: Items of which all pairs are compared: hits and strings by name, and series and functions of the user.
MOST_ITEMS, MOST_SLOW_ITEMS = 6000, 1500
CURVE_SHARES = (0.125, 0.25, 0.5)


class Run(NamedTuple):
    """A task that runs, and the time at which it is stopped."""

    task: Task
    limit: float


@dataclass
class Race:
    """A running or finished race."""

    problem: Problem
    learners: list[Learner]
    options: Options
    results: dict[Task, Result] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)  # errors of learners
    stopped: set[str] = field(default_factory=set)  # learners that took too long
    n_splits: int = N_FOLDS
    n_all: int = 0  # items before a sample was drawn
    folds: dict[int, list[NDArray]] = field(default_factory=dict)  # test items, by repeat
    importance: Importance | None = None
    interrupted: bool = False
    elapsed: float = 0.0

    def __post_init__(self) -> None:
        self.n_all = self.problem.n_items
        seconds = self.options.seconds
        self.deadline = inf if seconds is None else self.options.started + seconds - PAGE_SECONDS
        self.longest = LONGEST_SPLIT * (seconds or inf)
        self.by_name = {learner.name: learner for learner in self.learners}
        self.store = Store.of(self.problem, self.learners, self.options)

    def run(self, workers: Workers | None = None) -> "Race":
        """Run all phases within the budget; Ctrl-C keeps what is finished."""
        n_jobs = effective_n_jobs(self.options.n_jobs)
        is_serial = n_jobs == 1 and self.options.seconds is None
        self.workers = workers or Workers(0 if is_serial else n_jobs)
        try:
            self.sample(min(most_items(self.problem), self.problem.n_items))
            self.run_first_splits()
            self.drive(
                [Task(one.name, 0, fold) for fold in range(N_FOLDS) for one in self.learners]
            )
            if not self.count_splits():
                self.run_something()
            self.run_curve()
            self.run_searches()
            self.run_repeats()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.workers.close()
            self.count_splits()
            self.elapsed = time.perf_counter() - self.options.started
        return self

    # ---------------------------------------------------------------------------------------------------- the phases

    def run_first_splits(self) -> None:
        """The first split of all learners, the automatic one first, and the importance of columns."""
        tasks = [Task(learner.name, 0, 0) for learner in self.learners]
        if self.is_sampled_if_slow:  # alone, so that other processes are ready for the sample
            self.drive(tasks[:1])
            if self.stopped:
                self.stopped.clear()
                self.sample(int(SAMPLE * self.problem.n_items))
        self.drive(tasks)
        finished = [task for task in tasks if task in self.results]
        if self.problem.is_table and finished:
            self.report("importance of columns")
            seconds = sum(self.results[task].seconds for task in finished)
            self.explain_columns(finished[0], seconds)

    def explain_columns(self, task: Task, seconds: float) -> None:
        """The importance of columns for the learner of a task: the automatic one, or else the first that finished."""
        place = self.learners.index(self.by_name[task.learner])
        future = self.workers.submit(permutation_importance, place, *self.split(task), seconds)
        while not future.done() and self.time_left:
            self.workers.completed([future], self.time_left)
        if not future.done():
            self.workers.stop(future)
        elif future.exception() is None:
            self.importance = future.result()

    def run_something(self) -> None:
        """If no learner finished in time, run the cheapest baselines here, on a sample: an empty page helps nobody."""
        self.sample(FALLBACK_ROWS)
        for learner in self.learners:
            if learner.name in FALLBACK and learner.name not in self.failures:
                self.stopped.discard(learner.name)
                for fold in range(N_FOLDS):
                    task = Task(learner.name, 0, fold)
                    self.record(run_task(self.problem, learner, task, *self.split(task)))
        if self.problem.is_table and self.ranked():
            first = self.by_name[self.ranked()[0]]
            split = self.split(Task(first.name, 0, 0))
            self.importance = permutation_importance(self.problem, first, *split, seconds=0.5)

    def sample(self, n_rows: int) -> None:
        """Give all learners the same sample of the rows, with at least five of each class."""
        rng = np.random.default_rng(self.options.random_state)
        items = rng.permutation(self.problem.n_items)
        if self.problem.is_classification:
            codes = pd.Series(self.problem.y[items])
            is_needed = codes.groupby(codes).cumcount() < N_FOLDS
            items = items[np.argsort(~is_needed, kind="stable")]
        if n_rows < len(items):
            self.problem = self.problem.select(np.sort(items[:n_rows]))
        self.folds.clear()
        self.results.clear()
        self.share()
        self.score_guess()
        if self.options.resume:
            self.results |= self.store.read(self.problem.n_items)

    def run_curve(self) -> None:
        """A learning curve of the automatic learner, or else of the first one, if it fits into the time left."""
        if not self.options.curves or not self.ranked():
            return
        self.report("learning curve")
        name = self.ranked()[0]
        folds = range(min(2, self.n_splits))
        tasks = [Task(name, 0, fold, share) for share in CURVE_SHARES for fold in folds]
        if self.fits([task.share * self.seconds(name) for task in tasks]):
            self.drive(tasks)

    def run_searches(self) -> None:
        """Searches in the training parts of the same splits, cheapest first."""
        costs = {}
        for name in self.ranked() if self.options.searches else []:
            grid = self.by_name[name].grid
            if grid:
                # a setting is fitted three times on two thirds, the best once on all
                n_fits = 2 * len(ParameterGrid(dict(grid))) + 1
                costs[name] = n_fits * self.seconds(name)
        for name in sorted(costs, key=costs.__getitem__):
            if not self.fits([costs[name]] * self.n_splits):
                break
            searched = self.by_name[name].searched()
            self.learners.append(searched)
            self.by_name[searched.name] = searched
            self.share()
            self.drive(self.tasks(searched.name))

    def run_repeats(self) -> None:
        """Further repeats of all ranked learners, if they fit into the time left."""
        names = self.ranked() if self.n_splits == N_FOLDS else []
        seconds = [self.seconds(name) for name in names] * N_FOLDS
        for repeat in range(1, self.options.repeats or N_REPEATS):
            if not names or (self.options.repeats is None and not self.fits(seconds)):
                break
            self.drive([task for name in names for task in self.tasks(name, repeat)])
            self.score_guess(repeat)

    # ------------------------------------------------------------------------------------------------------- the work

    def drive(self, tasks: Sequence[Task]) -> None:
        """Run tasks until the deadline; a split that takes too long is stopped before."""
        queue = deque(task for task in tasks if task not in self.results)
        running: dict[Future, Run] = {}
        while True:
            self.start(queue, running)
            if not running and not (queue and self.time_left):
                break
            limit = min([self.deadline, *(run.limit for run in running.values())])
            for future in self.workers.completed(running, limit - time.perf_counter()):
                self.finish(future, running.pop(future).task)
            for future, run in list(running.items()):
                if time.perf_counter() >= run.limit:
                    self.workers.stop(future)
                    del running[future]
                    if run.limit < self.deadline:
                        self.stopped.add(run.task.learner)

    def start(self, queue: deque[Task], running: dict[Future, Run]) -> None:
        """Start the next tasks in idle processes; those of learners that are excluded are left out."""
        while queue and self.time_left and self.workers.is_ready and len(running) < self.n_jobs:
            task = queue.popleft()
            if task.learner in self.excluded:
                continue
            is_automatic = self.by_name[task.learner].is_automatic
            is_patient = is_automatic and (task.fold > 0 or not self.is_sampled_if_slow)
            longest = inf if is_patient else self.longest
            place = self.learners.index(self.by_name[task.learner])
            future = self.workers.submit(run_task, place, task, *self.split(task))
            running[future] = Run(task, min(self.deadline, time.perf_counter() + longest))

    def finish(self, future: Future, task: Task) -> None:
        """Record what a process has done; if it died, that is an error of its learner."""
        if isinstance(future.exception(), BrokenExecutor):
            error = "its process ended, perhaps for lack of memory"
            self.record(Result(task, None, error=error))
        else:
            self.record(future.result())

    def record(self, result: Result) -> None:
        """Keep a result; an error excludes the learner, unless it had fewer training items or succeeded before."""
        task = result.task
        if not result.error:
            self.results[task] = result
            self.report(self.by_name[task.learner].title)
            self.store.write(result, self.problem.n_items)
        elif task.repeat == 0 and task.share == 1.0:
            self.failures.setdefault(task.learner, f"failed: {result.error}")

    @property
    def excluded(self) -> set[str]:
        """Learners that are not ranked, whatever they finished."""
        return self.stopped | self.failures.keys()

    def count_splits(self) -> int:
        """Let all learners be judged by the splits that all have finished that finished one; returns their number."""
        numbers = []
        for learner in self.learners:
            done = [Task(learner.name, 0, fold) in self.results for fold in range(N_FOLDS)]
            n_done = done.index(False) if False in done else N_FOLDS
            if n_done > 0 and learner.name not in self.excluded and not learner.is_searched:
                numbers.append(n_done)
        self.n_splits = min(numbers, default=N_FOLDS)
        return len(numbers)

    def share(self) -> None:
        """Give the problem to the processes; strings and series are compared before, once for all."""
        if not self.problem.is_table:
            _ = self.problem.matrix, self.problem.is_directed
        self.workers.share(self.problem, self.learners)

    def score_guess(self, repeat: int = 0) -> None:
        """Score the constant guess, which costs nothing."""
        for fold in range(N_FOLDS):
            task = Task(GUESS, repeat, fold)
            train, test = self.split(task)
            y = self.problem.y[train]
            if self.problem.is_classification:
                y = y[:, None] == self.problem.classes
            guess = y.mean(axis=0)
            self.results[task] = Result(task, np.tile(guess, (len(test), *[1] * guess.ndim)))

    # ----------------------------------------------------------------------------------------------- splits and state

    def test_items(self, repeat: int) -> list[NDArray]:
        """Test items of the five splits of a repeat."""
        if repeat not in self.folds:
            self.folds[repeat] = make_folds(self.problem, self.options.random_state + repeat)
        return self.folds[repeat]

    def split(self, task: Task) -> tuple[NDArray, NDArray]:
        """Training and test items of a task."""
        test = self.test_items(task.repeat)[task.fold]
        train = np.setdiff1d(np.arange(self.problem.n_items), test)
        if task.share < 1.0:
            rng = np.random.default_rng(self.options.random_state + 1000 * task.fold)
            train = np.sort(rng.permutation(train)[: int(task.share * len(train))])
        return train, test

    def tasks(self, name: str, repeat: int = 0) -> list[Task]:
        """The splits of a learner in one repeat."""
        return [Task(name, repeat, fold) for fold in range(self.n_splits)]

    @property
    def n_jobs(self) -> int:
        """Tasks at the same time."""
        return max(self.workers.n_jobs, 1)

    @property
    def time_left(self) -> float:
        """Seconds until the page has to be written."""
        return max(self.deadline - time.perf_counter(), 0.0)

    @property
    def is_sampled_if_slow(self) -> bool:
        """Whether the automatic learner gets a sample if it is too slow on all rows."""
        return MOST_UNSAMPLED < self.problem.n_items == self.n_all and self.deadline < inf

    def fits(self, seconds: Sequence[float]) -> bool:
        """Whether tasks of these seconds end in time, in whichever order processes take them (Graham's bound)."""
        longest = max(seconds) * (1 - 1 / self.n_jobs)
        return sum(seconds) / self.n_jobs + longest < self.time_left

    def seconds(self, name: str) -> float:
        """Median seconds of a learner's splits: the first may have to import packages."""
        return float(np.median([self.results[task].seconds for task in self.tasks(name)]))

    def ranked(self) -> list[str]:
        """Names of the learners that have all splits."""
        return [
            learner.name
            for learner in self.learners
            if learner.name not in self.excluded
            and all(task in self.results for task in self.tasks(learner.name))
        ]

    def loss(self, task: Task) -> float:
        """Mean loss of a finished task."""
        _, test = self.split(task)
        predictions = self.results[task].predictions
        return float(item_losses(self.problem, test, predictions, self.options.metric).mean())

    def report(self, text: str) -> None:
        """Report progress."""
        n_tasks = len(self.learners) * self.n_splits
        self.options.progress(text, min(len(self.results), n_tasks), n_tasks)


def most_items(problem: Problem) -> int:
    """How many items are compared with each other, so that all pairs fit into memory and time."""
    if problem.kind == "hits" or (problem.kind == "strings" and isinstance(problem.kernel, str)):
        return MOST_ITEMS
    return MOST_SLOW_ITEMS if problem.kind in ("strings", "series") else problem.n_items


def make_folds(problem: Problem, seed: int) -> list[NDArray]:
    """Test items of five splits: stratified by class, and groups whole."""
    options: dict[str, Any] = {"n_splits": N_FOLDS, "shuffle": True, "random_state": seed}
    is_classification = problem.is_classification
    if problem.groups is None:
        splitter = (StratifiedKFold if is_classification else KFold)(**options)
    else:
        n_groups = len(np.unique(problem.groups))
        if n_groups < N_FOLDS:
            raise ValueError(
                f"There are {n_groups} groups; five are needed to keep some for every test."
            )
        splitter = (StratifiedGroupKFold if is_classification else GroupKFold)(**options)
    items = np.zeros(problem.n_items)
    return [test for _, test in splitter.split(items, problem.y, problem.groups)]
