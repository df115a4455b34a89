"""The race: every learner's defaults on all rows, then what explains them, then searches, then repeats.

All learners are scored on the same splits of the same rows. If the time does not suffice for the automatic learner on
all five splits, all learners get fewer splits; if it does not suffice for one, all get the same smaller sample of rows.
Only measured seconds decide. A learner that does not finish its splits is listed and not ranked.
"""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

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
from mercerless.comparison.scores import all_losses
from mercerless.comparison.store import Store
from mercerless.comparison.work import Result, Task, Workers, run_task

N_FOLDS = 5
N_REPEATS = 3
#: Share of the time left that the first split of the automatic learner may take before a sample is drawn.
FIRST_SHARE = 0.35
#: Share of the time left that the other splits may take.
PLAN_SHARE = 0.7
#: Share of the budget after which a rival's split is stopped.
RIVAL_SHARE = 0.3
#: Share of the time left that each explanation may take, and of the budget that is kept for them.
EXPLAIN_SHARE, EXPLAIN_RESERVE = 0.2, 0.08
#: The end of the budget is left for the page.
PAGE_SHARE, PAGE_SECONDS = 0.04, 1.0
#: Up to so many rows no smaller sample is drawn; a sample is this part of all rows.
MOST_UNSAMPLED, SAMPLE = 5000, 0.15
#: A learner is adequate for explanations if it lacks at most this part of what the best one learned.
ADEQUATE = 0.1
#: Baselines that take less than a second on so many rows.
FALLBACK, FALLBACK_ROWS = ("linear", "neighbors", "features"), 500
#: Items of which all pairs are compared: hits and strings by name, and series and functions of the user.
MOST_ITEMS, MOST_SLOW_ITEMS = 6000, 1500
CURVE_SHARES = (0.125, 0.25, 0.5)


@dataclass
class Race:
    """A running or finished race."""

    problem: Problem
    learners: list[Learner]
    options: Options
    results: dict[Task, Result] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)  # why a learner is not ranked
    n_splits: int = N_FOLDS
    n_all: int = 0  # items before a sample was drawn
    folds: dict[int, list[NDArray]] = field(default_factory=dict)  # test items, by repeat
    importance: Importance | None = None
    interrupted: bool = False
    elapsed: float = 0.0

    def __post_init__(self) -> None:
        self.n_all = self.problem.n_items
        seconds = self.options.seconds
        reserve = 0.0 if seconds is None else PAGE_SHARE * seconds + PAGE_SECONDS
        self.deadline = inf if seconds is None else self.options.started + seconds - reserve
        self.explain_seconds = EXPLAIN_RESERVE * (seconds or 0.0)
        self.by_name = {learner.name: learner for learner in self.learners}
        self.store = Store.of(self.problem, self.learners, self.options)

    def run(self, workers: Workers | None = None) -> "Race":
        """Run all phases within the budget; Ctrl-C keeps what is finished."""
        n_jobs = effective_n_jobs(self.options.n_jobs)
        is_serial = n_jobs == 1 and self.options.seconds is None
        self.workers = workers or Workers(0 if is_serial else n_jobs)
        try:
            self.sample(min(most_items(self.problem), self.problem.n_items))
            if self.options.resume:
                self.results |= self.store.read(self.problem.n_items)
            self.deadline -= self.explain_seconds
            self.run_defaults()
            if not self.ranked():
                self.run_something()
            self.deadline += self.explain_seconds
            self.explain()
            self.run_searches()
            self.run_repeats()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.workers.close()
            self.elapsed = time.perf_counter() - self.options.started
        return self

    # ---------------------------------------------------------------------------------------------------- the phases

    def run_defaults(self) -> None:
        """Phase one: one repeat of the defaults, the automatic learner first."""
        if self.deadline < inf:
            self.plan()
        self.drive([task for learner in self.learners for task in self.tasks(learner.name)])

    def plan(self) -> None:
        """The first split of every learner decides how many splits, and which rows, all learners get."""
        tasks = [Task(learner.name, 0, 0) for learner in self.learners]
        if (
            self.problem.n_items > MOST_UNSAMPLED
        ):  # alone, so that other processes are ready for the sample
            if not self.drive(tasks[:1], FIRST_SHARE * self.time_left):
                self.sample(int(SAMPLE * self.problem.n_items))
        self.drive(tasks)
        seconds = sum(self.results[task].seconds for task in tasks if task in self.results)
        n_more = int(PLAN_SHARE * self.time_left * self.n_jobs / max(seconds, 1e-3))
        self.n_splits = min(N_FOLDS, 1 + n_more)

    def run_something(self) -> None:
        """If no learner finished in time, run the cheapest baselines here, on a sample: an empty page helps nobody."""
        self.sample(FALLBACK_ROWS)
        self.n_splits = N_FOLDS
        for learner in self.learners:
            state = self.states.get(learner.name, "")
            if learner.name in FALLBACK and not state.startswith("failed"):
                self.states.pop(learner.name, None)
                for task in self.tasks(learner.name):
                    self.record(run_task(self.problem, learner, task, *self.split(task)))

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

    def explain(self) -> None:
        """Importance of columns by the fastest adequate learner, and a learning curve of the automatic one."""
        if not self.ranked():
            return
        if self.problem.is_table:
            self.report("importance of columns")
            self.explain_columns(self.fastest_adequate())
        if self.options.curves:
            self.report("learning curve")
            name = self.ranked()[0]  # the automatic one if it is ranked
            folds = range(min(2, self.n_splits))
            cost = self.seconds(name) * sum(CURVE_SHARES) * len(folds) / self.n_jobs
            shares = [share for share in CURVE_SHARES if share * self.problem.n_items >= 38]
            if cost < EXPLAIN_SHARE * self.time_left:
                self.drive([Task(name, 0, fold, share) for share in shares for fold in folds])

    def explain_columns(self, name: str) -> None:
        """Run the importance of columns within its part of the time left."""
        task = Task(name, 0, 0)
        place = self.learners.index(self.by_name[name])
        seconds = min(max(EXPLAIN_SHARE * self.time_left, 0.5 * self.explain_seconds), 60.0)
        future = self.workers.submit(permutation_importance, place, *self.split(task), seconds)
        limit = 2 * seconds + 2 * self.results[task].fit_seconds + self.explain_seconds
        limit = min(limit, self.time_left)
        for done in self.workers.completed([future], limit):
            self.importance = done.result()
        if not future.done():
            self.workers.stop(future)

    def run_searches(self) -> None:
        """Phase two: searches in the training parts of the same splits, cheapest first."""
        n_rounds = ceil(self.n_splits / self.n_jobs)
        costs = {}
        for name in self.ranked() if self.options.searches else []:
            grid = self.by_name[name].grid
            if grid:
                n_fits = 2.0 * len(ParameterGrid(dict(grid))) + 1
                costs[name] = n_fits * self.seconds(name) * n_rounds
        for name in sorted(costs, key=costs.__getitem__):
            if costs[name] > self.time_left:
                break
            searched = self.by_name[name].searched()
            self.learners.append(searched)
            self.by_name[searched.name] = searched
            self.share()
            self.drive(self.tasks(searched.name))

    def run_repeats(self) -> None:
        """Phase three: further repeats of all ranked learners, if they fit into the time left."""
        names = self.ranked() if self.n_splits == N_FOLDS else []
        cost = sum(self.seconds(name) for name in names) * N_FOLDS / self.n_jobs
        for repeat in range(1, self.options.repeats or N_REPEATS):
            if not names or (self.options.repeats is None and cost > 0.6 * self.time_left):
                break
            self.drive([task for name in names for task in self.tasks(name, repeat)])
            self.score_guess(repeat)

    # ------------------------------------------------------------------------------------------------------- the work

    def drive(self, tasks: Sequence[Task], patience: float = inf) -> bool:
        """Run tasks until the deadline; a split that takes too long is stopped.

        Returns False, and stops all, if a split of the automatic learner takes more than `patience` seconds.
        """
        queue = deque(task for task in tasks if task not in self.results)
        running: dict[Future, tuple[Task, float]] = {}  # and the time at which it is stopped
        while queue or running:
            now = time.perf_counter()
            is_open = now < self.deadline
            while queue and is_open and self.workers.is_ready and len(running) < self.n_jobs:
                task = queue.popleft()
                if not self.is_hopeless(task, tasks):
                    is_automatic = self.by_name[task.learner].is_automatic
                    limit = (
                        patience if is_automatic else RIVAL_SHARE * (self.options.seconds or inf)
                    )
                    running[self.submit(task)] = (task, min(self.deadline, now + limit))
            if not running and not (queue and is_open):
                break
            pause = min([self.deadline, *(limit for _, limit in running.values())]) - now
            for future in self.workers.completed(running, pause):
                task, _ = running.pop(future)
                if isinstance(future.exception(), BrokenExecutor):
                    reason = "failed: its process ended, perhaps for lack of memory"
                    self.states[task.learner] = reason
                else:
                    self.record(future.result())
            for future, (task, limit) in list(running.items()):
                if time.perf_counter() < limit:
                    continue
                if self.by_name[task.learner].is_automatic and limit < self.deadline:
                    for one in running:
                        self.workers.stop(one)
                    return False
                self.workers.stop(future)
                del running[future]
                self.give_up(task, "did not finish")
        return True

    def submit(self, task: Task) -> Future:
        """Start a task."""
        place = self.learners.index(self.by_name[task.learner])
        return self.workers.submit(run_task, place, task, *self.split(task))

    def give_up(self, task: Task, reason: str) -> None:
        """Leave a learner out of the ranking; if it is the automatic one, all get the splits that it has finished."""
        if task.repeat > 0 or task.share < 1.0:
            return
        if self.by_name[task.learner].is_automatic and task.fold > 0:
            self.n_splits = min(self.n_splits, task.fold)
        else:
            self.states.setdefault(task.learner, reason)

    def record(self, result: Result) -> None:
        """Keep a result; an error excludes the learner."""
        if result.error:
            self.states[result.task.learner] = f"failed: {result.error}"
            return
        self.results[result.task] = result
        self.report(self.by_name[result.task.learner].title)
        self.store.write(result, self.problem.n_items)

    def is_hopeless(self, task: Task, tasks: Sequence[Task]) -> bool:
        """Whether a learner failed, or cannot finish its splits in the time left; it is marked as such."""
        if task.learner in self.states or task.fold >= self.n_splits:
            return True
        own = [other for other in tasks if other._replace(fold=task.fold) == task]
        done = [self.results[other].seconds for other in own if other in self.results]
        n_rounds = ceil((len(own) - len(done)) / self.n_jobs)
        if self.by_name[task.learner].is_automatic:
            n_rounds = 1
        is_hopeless = n_rounds * max(done, default=0.0) > self.time_left
        if is_hopeless:
            self.give_up(task, "did not finish: there was no time for all of its splits")
        return is_hopeless

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

    def seconds(self, name: str) -> float:
        """Seconds of the slowest split of a learner."""
        return max(self.results[task].seconds for task in self.tasks(name))

    def ranked(self) -> list[str]:
        """Names of the learners that have all splits."""
        return [
            learner.name
            for learner in self.learners
            if learner.name not in self.states
            and all(task in self.results for task in self.tasks(learner.name))
        ]

    def fastest_adequate(self) -> str:
        """The fastest of the learners that are nearly as good as the best so far."""
        names = self.ranked()
        guess, *losses = all_losses(self, [GUESS, *names])[0][:, 0].mean(axis=1)
        largest = min(losses) + ADEQUATE * max(guess - min(losses), 0.0)
        adequate = [name for name, loss in zip(names, losses) if loss <= largest]
        return min(adequate, key=self.seconds)

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
