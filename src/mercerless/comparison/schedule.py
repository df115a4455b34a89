"""Runs learners on splits within a budget of time: the same splits for all, cheap learners first, nothing lost.

With a budget every learner is scored with its defaults first: on one split, then on all five, on all items or, if that
would take too long, on the largest part that fits. Then come the searches, cheap ones before expensive ones; a search
that has all five splits replaces the defaults, whatever either scores. Then learning curves and repeats, as far as time
allows. Fits that are still running at the deadline are stopped. With a given number of repeats every learner is
searched at full size.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from threadpoolctl import threadpool_limits

from mercerless.comparison.costs import Costs, measure_slowdown
from mercerless.comparison.learners import Learner, Terms, forget_decompositions
from mercerless.comparison.negative import NegativePart, judge_negative_part
from mercerless.comparison.options import Options
from mercerless.comparison.records import Level, Record, Store, Task
from mercerless.comparison.scoring import N_FOLDS, possible_parts, run_task
from mercerless.comparison.words import duration
from mercerless.comparison.workers import Finished, Job, NoWorkers, make_workers


@dataclass(frozen=True)
class Shares:
    """How the time of a budget is divided; shares of all of it, or of the time left."""

    defaults: float = 0.6  # of the budget, at most, goes into larger parts for the defaults
    report: float = 0.3  # of the budget, at most, is kept for the report
    report_seconds: float = 2.5  # time of a report on an idle core
    spare: float = 0.1  # of the time left is not planned for: expected costs are uncertain
    cheap: float = 0.02  # of the time left: a step that takes less is run at once
    baseline: float = 0.05  # the same for a baseline, which every reader looks for
    #: Of the budget: a learner that takes more for a split is tried on a small part first.
    expensive: float = 0.05
    here: float = 0.15  # of the time left: shorter steps may run here while the processes start
    #: For a thousand items: slower learners, which cannot be stopped here, wait for a process.
    here_seconds: float = 1.0
    alone: float = 0.5  # of the time left, as `here`, if no processes are started
    start_workers: float = 0.4  # of the budget: processes that take longer to start are not started
    worker_seconds: float = 2.0  # time that a process needs for its imports on an idle core
    #: Of the time left, at most, goes first into learners that every reader looks for.
    expected: float = 0.8
    #: Time beyond the deadline that these learners may take on a busy machine.
    expected_seconds: float = 5.0
    #: Of the budget, and at most ten seconds: the shortest time limit of a step.
    first_limit: float = 0.3
    tolerance: float = 3.0  # times the measured seconds: a step that takes longer is stopped
    start: float = 0.5  # of the budget, at most, counts as spent on imports and reading
    most_repeats: int = 10  # however much time is left


SHARES = Shares()


def run_batch(terms: Terms, work: list[tuple[Learner, Task]]) -> Iterator[Record]:
    """Run tasks that share decompositions, then empty their cache: it is useless to others and would grow."""
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
    """Learners of one group at one level of one split: the unit of work."""

    group: str
    repeat: int
    fold: int
    level: Level = Level()


JUDGE = Step("negative part of the spectrum", 0, 0)


@dataclass
class Run:
    """One run of a comparison: finished steps, their costs, and the reasons for missing ones."""

    terms: Terms
    learners: list[Learner]
    options: Options = field(default_factory=Options)
    limits: dict[str, Level] = field(default_factory=dict)  # up to which learners were requested
    store: Store = field(default_factory=Store)
    workers: Any = None

    def __post_init__(self) -> None:
        self.problem = self.terms.problem
        self.groups: dict[str, list[Learner]] = {}
        for learner in self.learners:
            is_limited = learner.name in self.limits
            group = learner.name if is_limited else learner.group or learner.name
            self.groups.setdefault(group, []).append(learner)
        self.by_name = {learner.name: learner for learner in self.learners}
        self.with_defaults = {
            learner.name for learner in self.learners if learner.has_defaults(self.terms)
        }
        self.sizes: tuple[float, ...] = (1.0,)
        if self.options.curves or self.options.is_timed:
            self.sizes = (*possible_parts(self.problem), 1.0)
        self.failed: dict[str, str] = {}
        # by group: the level that it could not be trained at, and the reason
        self.too_slow: dict[str, tuple[Level, str]] = {}
        self.negative: NegativePart | None = None
        self.interrupted = False
        self.total = 0
        self.n_workers = 1
        self.is_judged = not self.terms.is_indefinite
        self.running: dict[Step, float] = {}  # with their time limits
        self.slowdown = measure_slowdown() if self.options.is_timed else 1.0
        self.costs = Costs(self.terms, self.slowdown)
        for record in self.store.records.values():
            self.costs.note(self.by_name.get(record.task.learner), record)
        self.budget = self.options.seconds or np.inf
        # on a machine so busy that imports take longer, something must still be scored
        latest_start = time.perf_counter() - SHARES.start * self.budget
        self.started = max(self.options.started, latest_start)
        # the page must be written within the budget too
        report_seconds = min(SHARES.report * self.budget, SHARES.report_seconds * self.slowdown)
        self.deadline = self.budget - report_seconds

    # ------------------------------------------------------------------------------------------------ the clock

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds until the report must begin."""
        return self.deadline - self.elapsed

    def go(self) -> Self:
        """Run until everything is done, the budget is spent, or the user interrupts."""
        is_timed = self.options.is_timed
        workers = self.workers or self._make_workers()
        self.n_workers = workers.n_jobs
        try:
            self._loop(workers, self._timed_steps() if is_timed else self._all_steps())
            if is_timed:
                self._finish_expected()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            workers.close()
        return self

    def _make_workers(self):
        """Return workers, or none if the machine is so busy that the budget would end before they have started."""
        options = self.options
        start_seconds = SHARES.worker_seconds * self.slowdown
        if start_seconds > SHARES.start_workers * self.budget and not options.processes:
            return NoWorkers()
        return make_workers(
            self.terms, options.n_jobs, can_stop=options.is_timed, processes=options.processes
        )

    def _loop(self, workers, steps: Iterator[Step | None]) -> None:
        """Give steps to the workers for as long as there are any and there is time; None waits for a result."""
        self._tell()
        end = Step("end", -1, -1)
        exhausted = False
        while self.remaining > 0 and (self.running or not exhausted):
            while workers.free and not exhausted:
                step = next(steps, end)
                exhausted = step == end
                if exhausted or step is None:
                    break
                self.running[step] = self._limit(step)
                workers.start(self._job(step), self.running[step])
            if not workers.ready:
                step = self._step_for_here(SHARES.alone if workers.are_none else SHARES.here)
                if step is not None:
                    self._run_here(step)
                    continue
                if workers.are_none:
                    break
            for finished in workers.wait(self.remaining):
                self._take(finished)
        for finished in workers.stop():
            self._take(finished)

    def _finish_expected(self) -> None:
        """Score expected learners that lack splits, within a few seconds after the deadline."""
        if self.terms.is_large:
            return
        for group in [group for group in self.groups if self._is_expected(group)]:
            levels = self._first_levels(group)
            if (
                not levels
                or self._need(group, levels[-1]) > self.remaining + SHARES.expected_seconds
            ):
                continue
            for step in self._splits(group, levels[-1]):
                if not self._is_done(step):
                    self._run_here(step)

    def _run_here(self, step: Step) -> None:
        """Run a cheap step in this process."""
        job = self._job(step)
        with threadpool_limits(1):  # several threads wait for each other on busy cores
            results = list(job.function(self.terms, *job.arguments))
        self._take(Finished(job, results))

    def _job(self, step: Step) -> Job:
        if step == JUDGE:
            return Job(step, judge)
        tasks = [
            (learner, task) for learner, task in self._tasks(step) if task not in self.store.records
        ]
        return Job(step, run_batch, (tasks,))

    def _take(self, finished: Finished) -> None:
        """Keep the results of a worker."""
        step = finished.job.name
        limit = self.running.pop(step, np.inf)
        for result in finished.results:
            if isinstance(result, NegativePart):
                self.negative = result
                continue
            self.store.put(result)
            self.costs.note(self.by_name.get(result.task.learner), result)
            if result.error is not None:
                self._note_error(step, result)
        if finished.end == "late":
            self._give_up(step, f"took more than {duration(limit)}")
        elif finished.end == "died":
            self._give_up(step, "ended its process, most likely because memory ran out")
        self._tell(step)

    def _note_error(self, step: Step, record: Record) -> None:
        """Record a failure: of a learner that cannot be trained on all items, or only of its search."""
        level = record.task.level
        name = record.task.learner
        is_only_search = (
            level.form == "search" and self.options.is_timed and name in self.with_defaults
        )
        if is_only_search:
            self._give_up(step, f"failed: {record.error}")
        elif level.part == self._limit_of(name).part:
            self.failed.setdefault(name, str(record.error))

    def _give_up(self, step: Step, reason: str) -> None:
        """Go on with lower levels; learners that ran together are then run one by one, since one may have failed."""
        learners = self.groups.get(step.group, [])
        if len(learners) > 1:
            del self.groups[step.group]
            self.groups |= {learner.name: [learner] for learner in learners}
        elif learners and self.options.is_timed:
            self.too_slow[step.group] = step.level, reason
        elif learners:
            n_items = step.level.part * len(self.problem.y) * (1 - 1 / N_FOLDS)
            self.failed.setdefault(learners[0].name, f"training on {n_items:,.0f} items {reason}")

    def _tell(self, step: Step | None = None) -> None:
        """Report progress."""
        progress = self.options.progress
        if self.options.is_timed:
            scored = sum(self._level_of(group) is not None for group in self.groups)
            left = duration(max(0.0, self.remaining))
            text = f"{scored} of {len(self.groups)} learners scored, {left} left"
            progress(text, round(min(self.elapsed, self.budget)), round(self.budget))
            return
        text = "starting" if step is None else f"repeat {step.repeat + 1}, {step.group}"
        done = len(self.store.records)
        progress(text, done, max(self.total, done))

    # ------------------------------------------------------------------------------------------ finished steps

    def _tasks(self, step: Step) -> list[tuple[Learner, Task]]:
        return [
            (learner, Task(learner.name, step.repeat, step.fold, *step.level))
            for learner in self.groups.get(step.group, ())
            if learner.name not in self.failed
        ]

    def _is_done(self, step: Step) -> bool:
        return all(task in self.store.records for _, task in self._tasks(step))

    def _is_complete(self, group: str, level: Level) -> bool:
        """Whether all splits of the first repeat are done."""
        return all(self._is_done(step) for step in self._splits(group, level))

    def _level_of(self, group: str) -> Level | None:
        """The highest level at which all splits are done."""
        done = [level for level in self._levels(group) if self._is_complete(group, level)]
        return max(done, default=None)

    def _limit_of(self, name: str) -> Level:
        return self.limits.get(name, Level())

    def _forms(self, group: str) -> tuple[str, ...]:
        """The forms of a group, the first one first; a learner without a search has only one."""
        learners = self.groups[group]
        if not all(learner.name in self.with_defaults for learner in learners):
            return ("search",)
        if self._limit_of(learners[0].name).form == "defaults":
            return ("defaults",)
        return ("defaults", "search")

    def _parts(self, group: str) -> tuple[float, ...]:
        largest = self._limit_of(self.groups[group][0].name).part
        return (*(size for size in self.sizes if size < largest), largest)

    def _levels(self, group: str) -> list[Level]:
        """All levels of a group, in their order."""
        return [Level(part, form) for part in self._parts(group) for form in self._forms(group)]

    def _splits(self, group: str, level: Level, repeat: int = 0) -> list[Step]:
        return [Step(group, repeat, fold, level) for fold in range(N_FOLDS)]

    def _splits_and_test(self, group: str, level: Level) -> list[Step]:
        steps = self._splits(group, level)
        if self.problem.y_test is not None:
            steps.append(Step(group, 0, -1, level))
        return steps

    # ------------------------------------------------------------------------------------ a number of repeats

    def _all_steps(self) -> Iterator[Step]:
        """All steps, in the order in which an interrupted run is most useful."""
        steps = self._listed()
        self.total = sum(len(self._tasks(step)) for step in steps)
        self._tell()
        yield from (step for step in steps if step == JUDGE or not self._is_done(step))
        # learners of a split group
        apart = [step for step in self._listed() if step != JUDGE and step not in steps]
        yield from (step for step in apart if not self._is_done(step))

    def _listed(self) -> list[Step]:
        top = {group: self._levels(group)[-1] for group in self.groups}
        smaller = []
        if self.options.curves:
            smaller = [
                (group, level._replace(part=part))
                for part in self.sizes[:-1]
                for group, level in top.items()
                if part < level.part
            ]
        steps = [Step(group, 0, 0, level) for group, level in smaller]
        steps += self._repeat(top, 0)
        if self.problem.y_test is not None:
            steps += [Step(group, 0, -1, level) for group, level in top.items()]
        if self.terms.is_indefinite:
            steps.append(JUDGE)
        steps += [
            Step(group, 0, fold, level) for group, level in smaller for fold in range(1, N_FOLDS)
        ]
        for repeat in range(1, self.options.repeats or SHARES.most_repeats):
            steps += self._repeat(top, repeat)
        return steps

    def _repeat(self, levels: dict[str, Level], repeat: int) -> list[Step]:
        return [
            Step(group, repeat, fold, level)
            for fold in range(N_FOLDS)
            for group, level in levels.items()
        ]

    # ------------------------------------------------------------------------------------------------ a budget

    def _timed_steps(self) -> Iterator[Step | None]:
        """The steps in order of their worth; None while the result of a running one is needed first."""
        while True:
            step = self._next_default() or self._next_judgment() or self._next_search()
            if step is None and not self.running:
                break
            yield step
        scored = {
            group: level for group in self.groups if (level := self._level_of(group)) is not None
        }
        if self.options.curves:
            curves = [
                Step(group, 0, fold, level._replace(part=part))
                for group, level in scored.items()
                for part in self._parts(group)
                if part < level.part
                for fold in range(N_FOLDS)
            ]
            yield from self._if_affordable(curves)
        for repeat in range(1, SHARES.most_repeats):
            steps = [
                step
                for group, level in scored.items()
                for step in self._splits(group, level, repeat)
            ]
            yield from self._if_affordable(steps)

    def _if_affordable(self, steps: list[Step]) -> Iterator[Step]:
        """All of the steps, the longest first, or none."""
        seconds = {step: self._seconds(step) for step in steps if not self._is_done(step)}
        longest = max(seconds.values(), default=0.0)
        wall = max(sum(seconds.values()) / self.n_workers, longest)
        if wall < self.remaining:
            yield from sorted(seconds, key=lambda step: -seconds[step])

    def _next_default(self) -> Step | None:
        """The next step toward five splits of every learner's first form at the part that is planned for it.

        Steps that are cheap on all items go first, and expensive ones last; of the others the learners with fewest
        splits, of those the cheapest: whenever time runs out, all of them have about as many.
        """
        planned = [self._next_of(group, level) for group, level in self._plan().items()]
        seconds = {step: self._seconds(step) for step in planned if step is not None}
        fitting = [step for step in seconds if seconds[step] < self.remaining]
        cheap = [
            step
            for step in fitting
            if seconds[step] < self._cheap_share(step) * self.remaining
            and step.level.part == self._parts(step.group)[-1]
        ]
        if cheap:
            return min(cheap, key=seconds.__getitem__)
        expected = [step for step in fitting if self._is_expected(step.group)]
        if expected:
            return min(expected, key=seconds.__getitem__)

        def place(step: Step) -> tuple[bool, int, float]:
            is_expensive = seconds[step] > SHARES.expensive * self.budget
            return is_expensive, step.fold % (N_FOLDS + 1), seconds[step]  # the test set comes last

        return min(fitting, key=place, default=None)

    def _is_expected(self, group: str) -> bool:
        """Whether readers look for a learner of a group."""
        return all(learner.is_expected for learner in self.groups[group])

    def _cheap_share(self, step: Step) -> float:
        """The share of the time left below which a step is cheap."""
        families = {learner.family for learner in self.groups[step.group]}
        return SHARES.baseline if families == {"baseline"} else SHARES.cheap

    def _next_judgment(self) -> Step | None:
        """The negative part of the spectrum is judged once, after the defaults."""
        if self.is_judged:
            return None
        self.is_judged = True
        return JUDGE

    def _next_search(self) -> Step | None:
        """The next split of the cheapest search whose splits all fit into the remaining time."""
        options = {}
        for group in self.groups:
            level = self._next_search_level(group)
            if level is None:
                continue
            undone = [
                step for step in self._splits_and_test(group, level) if not self._is_done(step)
            ]
            waiting = [step for step in undone if step not in self.running]
            if not waiting:
                continue
            seconds = self._seconds(waiting[0])
            wall = max(seconds, seconds * len(undone) / self.n_workers)
            if wall < (1 - SHARES.spare) * self.remaining:
                options[waiting[0]] = seconds
        return min(options, key=options.__getitem__, default=None)

    def _next_search_level(self, group: str) -> Level | None:
        """The search on as many items as the defaults were scored with; None if there is none to run."""
        reached = self._level_of(group)
        if reached is None or reached.form == "search" or "search" not in self._forms(group):
            return None
        level = reached._replace(form="search")
        return level if self._is_possible(group, level) else None

    def _is_possible(self, group: str, level: Level) -> bool:
        """Whether a level is below the one that took too long."""
        return group not in self.too_slow or level < self.too_slow[group][0]

    def _plan(self) -> dict[str, Level]:
        """Plan the level of every group's first form: while time is left, raise the one with most gain for its cost.

        The gain of more items is the logarithm of their number. A level with splits beyond the first is finished
        before another is begun. Groups without time for more stay at their lowest level and come last.
        """
        possible = {group: self._first_levels(group) for group in self.groups}
        possible = {group: levels for group, levels in possible.items() if levels}
        plan = {}
        for group, levels in possible.items():
            reached = self._reached(group, levels)
            if reached is not None:
                plan[group] = reached
        growing = [
            group
            for group in possible
            if group not in plan or not self._is_begun(group, plan[group])
        ]
        for group in growing:
            whole = possible[group][-1]
            seconds = max(0.0, self.remaining) * self.n_workers + SHARES.expected_seconds
            affordable = SHARES.expected * seconds
            if self._is_expected(group) and self._need(group, whole) < affordable:
                plan[group] = whole
        left = self._seconds_for_defaults() - sum(self._need(*item) for item in plan.items())
        while True:
            options = {}
            for group in growing:
                gain_now, need_now = self._worth(group, plan.get(group))
                for level in possible[group]:
                    gain, need = self._worth(group, level)
                    if gain > gain_now and need - need_now <= left:
                        ratio = (gain - gain_now) / max(need - need_now, 1e-9)
                        options[group, level] = ratio, need - need_now
            if not options:
                break
            group, level = max(options, key=lambda option: options[option][0])
            left -= options[group, level][1]
            plan[group] = level
        return {group: plan.get(group, levels[0]) for group, levels in possible.items()}

    def _first_levels(self, group: str) -> list[Level]:
        """The possible levels of a group's first form."""
        first_form = self._forms(group)[0]
        levels = [Level(part, first_form) for part in self._parts(group)]
        return [level for level in levels if self._is_possible(group, level)]

    def _reached(self, group: str, levels: list[Level]) -> Level | None:
        """The level that is begun, or else done; None if none is."""
        begun = [level for level in levels if self._is_begun(group, level)]
        if begun:
            return begun[-1]
        return max((level for level in levels if self._is_complete(group, level)), default=None)

    def _worth(self, group: str, level: Level | None) -> tuple[float, float]:
        """Gain of a level over no score, and the seconds that it still takes."""
        if level is None:
            return 0.0, 0.0
        n_items = level.part * len(self.problem.y)
        return float(np.log1p(n_items)), self._need(group, level)

    def _seconds_for_defaults(self) -> float:
        """Seconds of all workers that may go into the first forms."""
        share = SHARES.defaults * self.deadline - self.elapsed
        seconds = max(share, SHARES.spare * self.remaining)
        return min(seconds, (1 - SHARES.spare) * self.remaining) * self.n_workers

    def _is_begun(self, group: str, level: Level) -> bool:
        """Whether some splits beyond the first are done, or running, and others are not."""
        steps = self._splits(group, level)
        under_way = [self._is_done(step) or step in self.running for step in steps[1:]]
        return any(under_way) and not self._is_complete(group, level)

    def _next_of(self, group: str, level: Level) -> Step | None:
        """The first split of a level, which shows the cost, then the others; None while the first is running.

        If a split is expensive and nothing is known about the learner, the smallest part is tried first.
        """
        steps = self._splits_and_test(group, level)
        if not self._is_done(steps[0]):
            if any(step.group == group for step in self.running):
                return None
            is_known = all(self.costs.is_measured(learner) for learner in self.groups[group])
            is_expensive = self._seconds(steps[0]) > SHARES.expensive * self.budget
            if is_expensive and not is_known and not self._is_expected(group):
                pilot = Step(group, 0, 0, level._replace(part=self._parts(group)[0]))
                return steps[0] if self._is_done(pilot) else pilot
            return steps[0]
        return next(
            (step for step in steps if not self._is_done(step) and step not in self.running), None
        )

    def _step_for_here(self, share: float) -> Step | None:
        """A step to score here while processes are starting, which takes long on a busy machine.

        Only defaults that take less than this share of the time left.
        """
        if not self.options.is_timed:
            return None
        step = self._next_default()
        if step is None:
            return None
        learners = self.groups[step.group]
        is_yours = any(learner.family == "yours" for learner in learners)
        is_slow = any(learner.seconds > SHARES.here_seconds for learner in learners)
        is_cheap = self._seconds(step) < share * self.remaining
        return step if is_cheap and not is_yours and not is_slow else None

    def _seconds(self, step: Step) -> float:
        """Expected seconds of a step."""
        learners = self.groups.get(step.group, ())
        return sum(self.costs.of_split(learner, step.level) for learner in learners)

    def _need(self, group: str, level: Level) -> float:
        """Seconds that the splits of a level will still take."""
        steps = self._splits(group, level)
        return self._seconds(steps[0]) * sum(not self._is_done(step) for step in steps)

    def _limit(self, step: Step) -> float:
        """Seconds after which a step is stopped, so that a learner does not spend the others' time."""
        if not self.options.is_timed or step == JUDGE:
            return np.inf
        waiting = sum(self._level_of(group) is None for group in self.groups)
        share = self.remaining * self.n_workers / (1 + waiting)
        at_least = min(10.0, SHARES.first_limit * self.budget)
        return max(at_least, SHARES.tolerance * self._seconds(step), share)

    # ----------------------------------------------------------------------------------------------- afterwards

    def missing_seconds(self) -> float:
        """Expected seconds that the first repeat of everything on all items would still take."""
        seconds = 0.0
        for group in self.groups:
            top = self._levels(group)[-1]
            for form in self._forms(group):
                seconds += self._need(group, top._replace(form=form))
        return seconds / self.n_workers

    def reasons(self) -> dict[str, str]:
        """Why a learner has no score, or not all, by name."""
        rows = len(self.problem.y) * (1 - 1 / N_FOLDS)
        end = "the run ended"
        if self.interrupted:
            end = "the run was interrupted"
        elif self.options.is_timed:
            end = f"the budget of {duration(self.budget)} ended"
        reasons = {}
        for group, learners in self.groups.items():
            reason = f"{end} before it had enough splits"
            if group in self.too_slow:
                level, why = self.too_slow[group]
                reason = f"training on {level.part * rows:,.0f} items {why}"
            reasons.update({learner.name: reason for learner in learners})
        return reasons
