"""The race: every learner's defaults on all rows, then what explains them, then searches, then repeats.

All learners are scored on the same splits of the same rows. If the time does not suffice for the automatic learner on
all five splits, all learners get fewer splits; if it does not suffice for one, all get the same smaller sample of rows.
Only measured seconds decide. A learner that does not finish its splits is listed and not ranked.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from mercerless.comparison.explain import Importance, permutation_importance
from mercerless.comparison.learners import GUESS, Learner, guess
from mercerless.comparison.options import Options
from mercerless.comparison.problem import Problem
from mercerless.comparison.scores import all_losses
from mercerless.comparison.statistics import judge
from mercerless.comparison.store import Store
from mercerless.comparison.work import Result, Task, Workers, completed, run_task

N_FOLDS = 5
N_REPEATS = 3
#: Shares of the time left that the first splits and all splits of the automatic learner may take.
FIRST_SHARE = 0.35
DEFAULT_SHARE = 0.5
#: Share of the budget after which a rival's split is stopped.
RIVAL_SHARE = 0.3
#: Share of the time left that each explanation may take.
EXPLAIN_SHARE = 0.2
#: The end of the budget is left for the page.
PAGE_SHARE, PAGE_SECONDS = 0.04, 1.0
#: A sample of all rows is this part of the last one, and at least so many rows.
SAMPLE, LEAST_ROWS = 0.15, 400
#: A learner is adequate for explanations if it lacks at most this part of what the best one learned.
ADEQUATE = 0.1
#: Baselines that take less than a second on so many rows.
FALLBACK, FALLBACK_ROWS = ("linear", "neighbors", "features"), 1000
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
    importance: Importance | None = None
    interrupted: bool = False
    elapsed: float = 0.0

    def __post_init__(self) -> None:
        self.n_all = self.problem.n_items
        seconds = self.options.seconds
        reserve = 0.0 if seconds is None else PAGE_SHARE * seconds + PAGE_SECONDS
        self.deadline = inf if seconds is None else self.options.started + seconds - reserve
        self.by_name = {learner.name: learner for learner in self.learners}
        self.constant = Learner(GUESS, "Constant guess", guess)
        self.store = Store.of(self.problem, self.learners, self.options)

    def run(self, workers: Workers | None = None) -> "Race":
        """Run all phases within the budget; Ctrl-C keeps what is finished."""
        n_jobs = effective_n_jobs(self.options.n_jobs)
        serial = n_jobs == 1 and self.options.seconds is None
        self.workers = workers or Workers(0 if serial else n_jobs)
        try:
            most = most_items(self.problem)
            if self.problem.n_items > most:
                self.sample(most)
            self.share()
            self.results |= self.store.read(self.problem.n_items) if self.options.resume else {}
            self.run_defaults()
            self.run_something()
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
        self.score_guess()
        first = self.learners[0]
        if first.is_automatic and self.deadline < inf:
            self.fit_first(first)
        self.drive(self.tasks(first.name))
        rivals = [task for learner in self.learners[1:] for task in self.tasks(learner.name)]
        self.drive(rivals, limit=self.rival_limit)

    def run_something(self) -> None:
        """If no learner finished, run the cheapest baselines here, on a sample: a page with nothing helps nobody."""
        if self.ranked() or all("failed" in state for state in self.states.values()):
            return
        if self.problem.n_items > FALLBACK_ROWS:
            self.sample(FALLBACK_ROWS)
        self.n_splits = N_FOLDS
        self.score_guess()
        for learner in self.learners:
            if learner.name in FALLBACK:
                self.states.pop(learner.name, None)
                for task in self.tasks(learner.name):
                    self.record(run_task(self.problem, learner, task, *self.split(task)))

    def fit_first(self, first: Learner) -> None:
        """The first splits of the automatic learner decide how many splits, and which rows, all learners get."""
        for is_last in (False, True):
            self.report(f"{first.title} on {self.problem.n_items} rows")
            tasks = self.tasks(first.name)[: self.n_jobs]
            self.workers.wait_until_ready(self.time_left)
            self.workers.prepare()
            until = time.perf_counter() + FIRST_SHARE * self.time_left
            if self.drive(tasks, until=until) or first.name in self.states:
                break
            if is_last or self.problem.n_items <= LEAST_ROWS:
                self.states[first.name] = "did not finish"
                return
            self.sample(max(LEAST_ROWS, int(SAMPLE * self.problem.n_items)))
        seconds = max(
            (self.results[task].seconds for task in tasks if task in self.results), default=0
        )
        allowed = [
            n_splits
            for n_splits in range(len(tasks), N_FOLDS + 1)
            if ceil((n_splits - len(tasks)) / self.n_jobs) * seconds
            <= DEFAULT_SHARE * self.time_left
        ]
        self.n_splits = max(allowed, default=len(tasks))

    def sample(self, n_rows: int) -> None:
        """Give all learners the same smaller sample of the rows."""
        rng = np.random.default_rng(self.options.random_state)
        items = rng.permutation(self.problem.n_items)
        if self.problem.is_classification:  # at least five items of each class
            order = np.argsort(self.problem.y[items], kind="stable")
            starts = np.unique(self.problem.y[items][order], return_index=True)[1]
            first = np.concatenate([items[order[start : start + N_FOLDS]] for start in starts])
            items = np.concatenate([first, items[~np.isin(items, first)]])
        self.problem = self.problem.select(np.sort(items[:n_rows]))
        self.__dict__.pop("folds", None)
        self.results.clear()
        self.share()
        self.score_guess()

    def explain(self) -> None:
        """Importance of columns by the fastest adequate learner, and a learning curve of the automatic one."""
        if not self.ranked():
            return
        if self.problem.is_table:
            self.report("importance of columns")
            self.explain_columns()
        if self.options.curves:
            self.report("learning curve")
            name = self.curve_learner
            full = max(self.results[task].seconds for task in self.tasks(name))
            n_folds = min(2, self.n_splits)
            cost = full * sum(CURVE_SHARES) * n_folds / self.n_jobs
            shares = [s for s in CURVE_SHARES if s * self.problem.n_items * 0.8 >= 30]
            if cost < EXPLAIN_SHARE * self.time_left:
                self.drive(
                    [Task(name, 0, fold, share) for share in shares for fold in range(n_folds)]
                )

    def explain_columns(self) -> None:
        """Run the importance of columns within its part of the time left."""
        learner = self.by_name[self.fastest_adequate()]
        result = self.results[Task(learner.name, 0, 0)]
        seconds = min(EXPLAIN_SHARE * self.time_left, 60.0)
        train, test = self.split(Task(learner.name, 0, 0))
        per_item = result.predict_seconds / max(len(test), 1)
        future = self.workers.submit(
            permutation_importance, self.learners.index(learner), train, test, per_item, seconds
        )
        limit = min(2 * seconds + 2 * result.fit_seconds, self.time_left)
        for done in completed([future], None if limit == inf else limit):
            self.importance = done.result()
        if not future.done():
            self.workers.restart()

    def run_searches(self) -> None:
        """Phase two: searches in the training parts of the same splits, cheapest first."""
        if not self.options.searches:
            return
        ranked = self.ranked()
        candidates = []
        for learner in self.learners:
            if learner.grid and learner.name in ranked:
                seconds = max(self.results[task].seconds for task in self.tasks(learner.name))
                n_fits = 2.0 * learner.n_settings + 1
                candidates.append((n_fits * seconds * ceil(self.n_splits / self.n_jobs), learner))
        for cost, learner in sorted(candidates, key=lambda pair: pair[0]):
            if cost > self.time_left:
                break
            self.add(learner.searched())
            if not self.drive(self.tasks(f"{learner.name}-search")):
                break

    def run_repeats(self) -> None:
        """Phase three: further repeats of all ranked learners, if they fit into the time left."""
        if self.n_splits < N_FOLDS:
            return
        names = self.ranked()
        for repeat in range(1, self.options.repeats or N_REPEATS):
            seconds = sum(self.results[task].seconds for name in names for task in self.tasks(name))
            if self.options.repeats is None and seconds / self.n_jobs > 0.6 * self.time_left:
                break
            self.drive([task for name in names for task in self.tasks(name, repeat)])
            self.score_guess(repeat)

    # ------------------------------------------------------------------------------------------------------- the work

    def drive(self, tasks: Iterable[Task], until: float = inf, limit: float = inf) -> bool:
        """Run tasks until a time; a learner with a split of more than `limit` seconds is stopped.

        Returns whether all tasks have results.
        """
        until = min(until, self.deadline)
        tasks = list(tasks)
        queue = deque(task for task in tasks if task not in self.results)
        running: dict[Any, tuple[Task, float]] = {}
        while queue or running:
            while queue and len(running) < self.n_jobs and time.perf_counter() < until:
                task = queue.popleft()
                if not self.is_hopeless(task, tasks):
                    running[self.submit(task)] = (task, time.perf_counter())
            if not running and (time.perf_counter() >= until or not queue):
                break
            oldest = min((start for _, start in running.values()), default=inf)
            pause = min(until, oldest + limit) - time.perf_counter()
            try:
                for future in completed(list(running), None if pause == inf else pause):
                    self.record(future.result())
                    running.pop(future)
            except BrokenExecutor:
                for task, _ in running.values():
                    self.states[task.learner] = (
                        "failed: its process ended, perhaps for lack of memory"
                    )
                running.clear()
                self.workers.restart()
            now = time.perf_counter()
            overdue = [task for task, start in running.values() if now >= min(until, start + limit)]
            if overdue:
                self.workers.restart()
                queue.extendleft(task for task, _ in running.values() if task not in overdue)
                running.clear()
                for task in overdue:
                    self.give_up(task, until)
        return all(task in self.results for task in tasks)

    def give_up(self, task: Task, until: float) -> None:
        """Mark the learner of a stopped task; the first try of the automatic learner may be repeated on fewer rows."""
        is_first_try = until < self.deadline
        if not is_first_try and task.repeat == 0 and task.share == 1.0:
            self.states.setdefault(task.learner, "did not finish")

    def submit(self, task: Task) -> Any:
        """Start a task."""
        learner = self.by_name[task.learner]
        train, test = self.split(task)
        return self.workers.submit(run_task, self.learners.index(learner), task, train, test)

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
        if task.learner in self.states:
            return True
        own = [other for other in tasks if other._replace(fold=0) == task._replace(fold=0)]
        done = [self.results[other].seconds for other in own if other in self.results]
        if not done or task.share < 1.0:
            return False
        rounds = ceil((len(own) - len(done)) / self.n_jobs)
        if rounds * max(done) <= self.time_left:
            return False
        if task.repeat == 0:
            self.states[task.learner] = f"did not finish: one split takes {max(done):.0f} s"
        return True

    def share(self) -> None:
        """Give the problem to the processes; strings and series are compared before, once for all."""
        if not self.problem.is_table:
            _ = self.problem.matrix, self.problem.is_directed
        self.workers.share(self.problem, self.learners)

    def add(self, learner: Learner) -> None:
        """Add a searched learner."""
        self.learners.append(learner)
        self.by_name[learner.name] = learner
        self.share()

    def score_guess(self, repeat: int = 0) -> None:
        """Score the constant guess, which costs nothing."""
        for fold in range(N_FOLDS):
            task = Task(GUESS, repeat, fold)
            train, test = self.split(task)
            y = self.problem.y[train]
            if self.problem.is_classification:
                shares = (y[:, None] == self.problem.classes).mean(axis=0)
            else:
                shares = y.mean()
            predictions = np.broadcast_to(shares, (len(test), *np.shape(shares)))
            self.results[task] = Result(task, predictions)

    # ----------------------------------------------------------------------------------------------- splits and state

    @cached_property
    def folds(self) -> dict[int, list[NDArray]]:
        """Test items of every split, by repeat; filled when they are first used."""
        return {}

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
    def rival_limit(self) -> float:
        """Seconds after which a split of a rival is stopped."""
        return RIVAL_SHARE * (self.options.seconds or inf)

    def ranked(self) -> list[str]:
        """Names of the learners that have all splits."""
        return [
            learner.name
            for learner in self.learners
            if learner.name not in self.states
            and all(task in self.results for task in self.tasks(learner.name))
        ]

    @property
    def curve_learner(self) -> str:
        """The learner of the learning curve: the automatic one, or the first that is ranked."""
        ranked = self.ranked()
        automatic = [name for name in ranked if self.by_name[name].is_automatic]
        return (automatic or ranked)[0]

    def fastest_adequate(self) -> str:
        """The fastest of the learners that are nearly as good as the best so far."""
        names = self.ranked()
        if len(names) == 1:
            return names[0]
        losses, units = all_losses(self, names)
        judged = judge(losses[:, :1], units)
        best = int(judged.loss.argmin())
        guess_loss = float(np.mean(all_losses(self, [GUESS])[0][0, 0]))
        tolerance = ADEQUATE * (guess_loss - judged.loss[best])
        adequate = [
            name
            for i, name in enumerate(names)
            if judged.loss[i] <= judged.loss[best] + max(tolerance, 0.0)
        ]
        return min(
            adequate, key=lambda name: sum(self.results[t].seconds for t in self.tasks(name))
        )

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
