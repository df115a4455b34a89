"""Runs learners on splits within a budget of time: the same splits for all, cheap learners first, nothing lost.

With a budget every learner begins on a small part of one split, and goes on to the largest part of which all five
splits fit into its share of the time that is left, as foretold by the sizes before. So every learner is scored once, on
parts of the training sets where they are too large for it, before anything is repeated; what is still running at the
deadline is stopped. With a given number of repeats everything is run at full size.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from mercerless.comparison.learners import Learner, Terms, forget_decompositions
from mercerless.comparison.negative import NegativePart, judge_negative_part
from mercerless.comparison.records import Record, Store, Task
from mercerless.comparison.scoring import N_FOLDS, possible_parts, run_task
from mercerless.comparison.words import duration
from mercerless.comparison.workers import Finished, Job, make_workers

MAX_REPEATS = 10


def run_batch(terms: Terms, work: list[tuple[Learner, Task]]) -> Iterator[Record]:
    """Run tasks that share decompositions; what they shared is of no use to others and must not pile up in a worker."""
    try:
        yield from (run_task(terms, learner, task) for learner, task in work)
    finally:
        forget_decompositions()


def judge(terms: Terms) -> Iterator[NegativePart]:
    """Judge the negative part of the spectrum."""
    problem = terms.problem
    yield judge_negative_part(
        problem.similarities, problem.y, problem.is_classification, terms.random_state
    )


class Step(NamedTuple):
    """Learners of one group on a part of one split: what is run at once."""

    group: str
    repeat: int
    fold: int
    part: float = 1.0


JUDGE = Step("negative part of the spectrum", 0, 0)
END = Step("end", -1, -1)


@dataclass
class Run:
    """One run of a comparison: what is done, what it cost, what was left out."""

    terms: Terms
    learners: list[Learner]
    budget: float | None = None  # seconds
    repeats: int | None = None  # exactly so many, whatever they cost; None for as many as fit
    n_jobs: int | None = None
    curves: bool = True
    store: Store = field(default_factory=Store)
    # counts tasks or, timed, seconds
    progress: Callable[[str, int, int], None] = lambda text, done, total: None
    parts: dict[str, float] = field(default_factory=dict)  # of learners for which one was asked for
    workers: Any = None
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.problem = self.terms.problem
        self.groups: dict[str, list[Learner]] = {}
        for learner in self.learners:
            apart = learner.name in self.parts
            self.groups.setdefault(
                learner.name if apart else learner.group or learner.name, []
            ).append(learner)
        wanted = self.curves or self.is_timed
        self.sizes = (*(possible_parts(self.problem) if wanted else ()), 1.0)
        self.failed: dict[str, str] = {}
        # group: the part that it could not train on, and why
        self.too_slow: dict[str, tuple[float, str]] = {}
        self.negative: NegativePart | None = None
        self.interrupted = False
        self.running: dict[Step, float] = {}  # with their time limits
        self.costs: dict[tuple[str, float], list[float]] = {}
        for record in self.store.records.values():
            self._note_cost(record)

    # ------------------------------------------------------------------------------------------------ the clock

    @property
    def is_timed(self) -> bool:
        """Whether the budget decides what is run."""
        return self.budget is not None and self.repeats is None

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds left."""
        return self.budget - self.elapsed if self.is_timed and self.budget is not None else np.inf

    def go(self) -> Self:
        """Run until everything is done, the budget is spent, or the user interrupts."""
        workers = self.workers or make_workers(self.terms, self.n_jobs, can_stop=self.is_timed)
        self.n_workers = workers.n_jobs
        try:
            self._loop(workers, self._timed_steps() if self.is_timed else self._all_steps())
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            workers.close()
        return self

    def _loop(self, workers, steps: Iterator[Step | None]) -> None:
        """Give steps to the workers for as long as there are any and there is time; None waits for a result."""
        self._tell()
        exhausted = False
        while self.remaining > 0 and (self.running or not exhausted):
            while workers.free and not exhausted:
                step = next(steps, END)
                exhausted = step == END
                if exhausted or step is None:
                    break
                self.running[step] = self._limit(step)
                workers.start(self._job(step), self.running[step])
            if not workers.ready and (step := self._simple_step()) is not None:
                job = self._job(step)
                self._take(Finished(job, list(job.function(self.terms, *job.arguments))))
                continue
            for finished in workers.wait(self.remaining):
                self._take(finished)
        for finished in workers.stop():
            self._take(finished)

    def _job(self, step: Step) -> Job:
        if step == JUDGE:
            return Job(step, judge)
        tasks = [
            (learner, task) for learner, task in self._tasks(step) if task not in self.store.records
        ]
        return Job(step, run_batch, (tasks,))

    def _take(self, finished: Finished) -> None:
        """Keep what a worker brings."""
        step = finished.job.name
        limit = self.running.pop(step, np.inf)
        for result in finished.results:
            if isinstance(result, NegativePart):
                self.negative = result
                continue
            self.store.put(result)
            self._note_cost(result)
            if result.error is not None and self._is_final(result.task):
                self.failed.setdefault(result.task.learner, result.error)
        if finished.end == "late":
            self._give_up(step, f"took more than {duration(limit)}")
        elif finished.end == "died":
            self._give_up(step, "ended its process, most likely because memory ran out")
        self._tell(step)

    def _give_up(self, step: Step, reason: str) -> None:
        """Go on with smaller parts; learners that ran together are then run one by one, for one may be to blame."""
        learners = self.groups.get(step.group, [])
        if len(learners) > 1:
            del self.groups[step.group]
            self.groups |= {learner.name: [learner] for learner in learners}
        elif learners and self.is_timed:
            self.too_slow[step.group] = step.part, reason
        elif learners:
            n_items = step.part * len(self.problem.y) * (1 - 1 / N_FOLDS)
            self.failed.setdefault(learners[0].name, f"training on {n_items:,.0f} items {reason}")

    def _is_final(self, task: Task) -> bool:
        return task.part == self.parts.get(task.learner, 1.0)

    def _tell(self, step: Step | None = None) -> None:
        """Report progress."""
        if self.is_timed and self.budget is not None:
            scored = sum(self._is_scored(group) for group in self.groups)
            text = f"{scored} of {len(self.groups)} learners scored, {duration(max(0.0, self.remaining))} left"
            self.progress(text, round(min(self.elapsed, self.budget)), round(self.budget))
            return
        total = self.total if hasattr(self, "total") else 0
        text = "starting" if step is None else f"repeat {step.repeat + 1}, {step.group}"
        self.progress(text, len(self.store.records), max(total, len(self.store.records)))

    # -------------------------------------------------------------------------------------------- what is done

    def _tasks(self, step: Step) -> list[tuple[Learner, Task]]:
        return [
            (learner, Task(learner.name, *step[1:]))
            for learner in self.groups.get(step.group, ())
            if learner.name not in self.failed
        ]

    def _is_done(self, step: Step) -> bool:
        return all(task in self.store.records for _, task in self._tasks(step))

    def _is_scored(self, group: str) -> bool:
        """Whether a group has all splits of the first repeat at some size."""
        return any(
            all(self._is_done(step) for step in self._splits(group, part))
            for part in self._sizes_of(group)
        )

    def _sizes_of(self, group: str) -> tuple[float, ...]:
        largest = self.parts.get(self.groups[group][0].name, 1.0)
        return (*(size for size in self.sizes if size < largest), largest)

    def _splits(self, group: str, part: float, repeat: int = 0) -> list[Step]:
        return [Step(group, repeat, fold, part) for fold in range(N_FOLDS)]

    # ------------------------------------------------------------------------------------ a number of repeats

    def _all_steps(self) -> Iterator[Step]:
        """Everything, in the order in which an interrupted run is of most use."""
        steps = self._listed()
        self.total = sum(len(self._tasks(step)) for step in steps)
        self._tell()
        yield from (step for step in steps if step == JUDGE or not self._is_done(step))
        # learners of a split group
        apart = [step for step in self._listed() if step != JUDGE and step not in steps]
        yield from (step for step in apart if not self._is_done(step))

    def _listed(self) -> list[Step]:
        of = {group: self._sizes_of(group) for group in self.groups}
        smaller = [
            (group, part)
            for part in self.sizes[:-1]
            for group in self.groups
            if part < of[group][-1]
        ]
        curves = smaller if self.curves else []
        repeats = [
            [
                Step(group, repeat, fold, of[group][-1])
                for fold in range(N_FOLDS)
                for group in self.groups
            ]
            for repeat in range(self.repeats or MAX_REPEATS)
        ]
        return [
            *(Step(group, 0, 0, part) for group, part in curves),
            *repeats[0],
            *(
                Step(group, 0, -1, of[group][-1])
                for group in self.groups
                if self.problem.y_test is not None
            ),
            *([JUDGE] if self.terms.is_indefinite else []),
            *(Step(group, 0, fold, part) for group, part in curves for fold in range(1, N_FOLDS)),
            *(step for repeat in repeats[1:] for step in repeat),
        ]

    # ------------------------------------------------------------------------------------------------ a budget

    def _timed_steps(self) -> Iterator[Step | None]:
        """The step that is worth most now; None where a running one must be known first."""
        judged = not self.terms.is_indefinite
        while True:
            if not judged and all(map(self._is_scored, self.groups)):
                judged = True
                yield JUDGE
            step = self._first_score()
            if step is None and not judged:
                step = JUDGE
                judged = True
            if step is None and not self.running:
                break
            yield step
        scored = {group: size for group in self.groups if (size := self._level(group)) is not None}
        if self.curves:
            curves = [
                Step(group, 0, fold, part)
                for group, size in scored.items()
                for part in self._sizes_of(group)
                if part < size
                for fold in range(1, N_FOLDS)
            ]
            yield from self._if_affordable(curves)
        for repeat in range(1, MAX_REPEATS):
            steps = [
                step for group, size in scored.items() for step in self._splits(group, size, repeat)
            ]
            yield from self._if_affordable(steps)

    def _if_affordable(self, steps: list[Step]) -> Iterator[Step]:
        """All of the steps, the longest first, or none."""
        steps = [step for step in steps if not self._is_done(step)]
        seconds = {step: self._seconds(step.group, step.part) for step in steps}
        wall = max(sum(seconds.values()) / self.n_workers, max(seconds.values(), default=0.0))
        if wall < self.remaining:
            yield from sorted(steps, key=lambda step: -seconds[step])

    def _first_score(self) -> Step | None:
        """The next step toward five splits of every learner at the size that is planned for it.

        What costs little at full size goes first, then the learners with fewest splits, of those the cheapest:
        whenever time runs out, all of them have about as many.
        """
        planned = (self._next_of(group, size) for group, size in self._plan().items())
        candidates = [step for step in planned if step is not None]
        # 0 where nothing is known
        seconds = {step: self._seconds(step.group, step.part) for step in candidates}
        fitting = [step for step in candidates if seconds[step] < self.remaining]
        whole = [
            step
            for step in fitting
            if seconds[step] and step.part == self._sizes_of(step.group)[-1]
        ]
        cheap = [step for step in whole if seconds[step] < 0.02 * self.remaining]
        if cheap:
            return min(cheap, key=seconds.__getitem__)
        return min(
            fitting, key=lambda step: (step.fold % (N_FOLDS + 1), seconds[step]), default=None
        )

    def _plan(self) -> dict[str, float]:
        """The size of every group: first the smallest for all, then, while time is left, the larger one that adds most.

        What a larger size adds is the logarithm of the items, for what it costs more. A size with splits beyond the
        first is finished before another is begun.
        """
        possible = {group: sizes for group in self.groups if (sizes := self._possible_sizes(group))}
        plan = {group: self._floor(group, sizes) for group, sizes in possible.items()}
        left = 0.9 * self.remaining * self.n_workers
        unknown = [group for group in plan if not self._seconds(group, plan[group])]
        left *= 1.0 - len(unknown) / max(1, len(plan))
        left -= sum(self._need(group, size) for group, size in plan.items() if group not in unknown)
        growing = [
            group
            for group in plan
            if group not in unknown and not self._is_begun(group, plan[group])
        ]
        while True:
            options = {}
            for group in growing:
                for size in (size for size in possible[group] if size > plan[group]):
                    more = self._need(group, size) - self._need(group, plan[group])
                    if more <= left and self._seconds(group, size) < self.remaining:
                        options[group, size] = np.log(size / plan[group]) / max(more, 1e-9), more
            if not options:
                return plan
            group, size = max(options, key=lambda option: options[option][0])
            left -= options[group, size][1]
            plan[group] = size

    def _floor(self, group: str, sizes: list[float]) -> float:
        """The size that is begun, or else done; the smallest where none is."""
        begun = [size for size in sizes if self._is_begun(group, size)]
        return begun[-1] if begun else max(self._level(group) or 0.0, sizes[0])

    def _is_begun(self, group: str, size: float) -> bool:
        """Whether some splits beyond the first are done, or running, and others are not."""
        done = [self._is_done(step) for step in self._splits(group, size)]
        running = [step in self.running for step in self._splits(group, size)]
        return (any(done[1:]) or any(running[1:])) and not all(done)

    def _simple_step(self) -> Step | None:
        """What can be scored here while processes are starting, which takes long on a busy machine: the simplest."""
        simple = [
            group
            for group, learners in self.groups.items()
            if not any(learner.complexity for learner in learners)
        ]
        smallest = [(group, self._sizes_of(group)[0]) for group in simple]
        largest = [(group, self._sizes_of(group)[-1]) for group in simple]
        cheap = [which for which in largest if self._seconds(*which) < 0.02 * self.remaining]
        steps = (step for which in (*smallest, *cheap) for step in self._splits(*which))
        return next((step for step in steps if not self._is_done(step)), None)

    def _next_of(self, group: str, size: float) -> Step | None:
        """The first split of a size, which tells what it takes, then the others; None while the first is running."""
        steps = self._splits(group, size)
        if not self._is_done(steps[0]):
            return None if any(step.group == group for step in self.running) else steps[0]
        if self.problem.y_test is not None:
            steps.append(Step(group, 0, -1, size))
        return next(
            (step for step in steps if not self._is_done(step) and step not in self.running), None
        )

    def _possible_sizes(self, group: str) -> list[float]:
        """Sizes below the one that took too long."""
        slow = self.too_slow.get(group, (np.inf, 0.0))[0]
        return [size for size in self._sizes_of(group) if size < slow]

    def _need(self, group: str, part: float) -> float:
        """Seconds that the splits of a size will still take; 0 where nothing is known."""
        return self._seconds(group, part) * sum(
            not self._is_done(step) for step in self._splits(group, part)
        )

    def _level(self, group: str) -> float | None:
        """The largest size at which all splits are done."""
        done = [
            p
            for p in self._sizes_of(group)
            if all(self._is_done(step) for step in self._splits(group, p))
        ]
        return max(done, default=None)

    def _note_cost(self, record: Record) -> None:
        """Remember what a fit took."""
        if record.is_split:
            # once more for the scores
            seconds = record.fit_time + 2 * record.predict_time * len(record.target)
            self.costs.setdefault((record.task.learner, record.task.part), []).append(seconds)

    def _seconds(self, group: str, part: float) -> float:
        """Expected seconds of one split for the learners of a group; 0 where nothing is known."""
        return sum(self._seconds_of(learner, part) for learner in self.groups.get(group, ()))

    def _seconds_of(self, learner: Learner, part: float) -> float:
        """Expected seconds of one split: as it was on this part, or grown from smaller ones; 0 where nothing is known.

        The exponent of the growth is that between the two largest sizes known. From a single one it is that of the
        learner's form for many items, or 1: one split of a larger size will tell.
        """
        known = {
            size: float(np.mean(seconds))
            for (name, size), seconds in self.costs.items()
            if name == learner.name
        }
        if part in known or not known:
            return known.get(part, 0.0)
        sizes = sorted(size for size in known if size < part)
        if not sizes:
            return min(known.values())
        growth = learner.growth if self.terms.is_large else 1.0
        if len(sizes) > 1:
            small, large = sizes[-2:]
            growth = np.clip(np.log(known[large] / known[small]) / np.log(large / small), 0.1, 3.0)
        return known[sizes[-1]] * (part / sizes[-1]) ** growth

    def _limit(self, step: Step) -> float:
        """Seconds after which a step is stopped: a learner must not spend the others' time."""
        if not self.is_timed or step == JUDGE:
            return np.inf
        known = self._seconds(step.group, step.part)
        share = (
            self.remaining
            * self.n_workers
            / (1 + sum(not self._is_scored(group) for group in self.groups))
        )
        return max(10.0, 3.0 * known, share)

    def reasons(self) -> dict[str, str]:
        """Why a learner has no score, or not all, by name."""
        rows = len(self.problem.y) * (1 - 1 / N_FOLDS)
        budget = "the run was interrupted" if self.interrupted else "the run ended"
        if self.is_timed and not self.interrupted:
            budget = f"the budget of {duration(self.budget or 0.0)} ended"
        reasons = {}
        for group, learners in self.groups.items():
            reason = f"{budget} before it had enough splits"
            if group in self.too_slow:
                part, why = self.too_slow[group]
                reason = f"training on {part * rows:,.0f} items {why}"
            reasons.update({learner.name: reason for learner in learners})
        return reasons
