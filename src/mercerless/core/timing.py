"""Progress of long work: announced after a minute, with a faster alternative, and then in lines every 15 seconds."""

import sys
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any

from mercerless.core.memory import progress_setting

#: Seconds after which work is long and announced, and between two lines of its progress.
ANNOUNCED = 60.0
BETWEEN = 15.0


class Progress:
    """Reports the steps of a fit to the estimator's callbacks, and prints those of long fits; it decides nothing."""

    def __init__(self, estimator: Any, context: Any):
        self.estimator = estimator
        self.context = context
        self.start = perf_counter()
        self.due = ANNOUNCED
        self.remedy = ""
        self.n_steps = 0

    def step(self, info: dict[str, Any]) -> bool:
        """Report that a step is done, named by ``info["stage"]``; True if a callback requests a stop."""
        stage = str(info["stage"])
        self.n_steps += 1
        elapsed = perf_counter() - self.start
        if elapsed >= self.due:
            self._show(stage, elapsed)
        step = self.context.subcontext(task_name=stage)
        step.call_on_fit_task_begin(estimator=self.estimator, metadata=info)
        return bool(step.call_on_fit_task_end(estimator=self.estimator, metadata=info))

    def _show(self, stage: str, elapsed: float) -> None:
        """Announce the fit, with what is faster; later print lines of its steps."""
        name = type(self.estimator).__name__
        took = format_seconds(elapsed)
        if self.due == ANNOUNCED:
            _print(f"{name}: the fit has taken {took} so far{self.remedy}.")
        elif _shows_lines():
            _print(f"{name}: {stage}, step {self.n_steps}, after {took}")
        self.due = elapsed + BETWEEN

    def each(self, stage: str, things: Iterable) -> Iterator:
        """Yield the things, reporting a step after each."""
        for i, thing in enumerate(things):
            yield thing
            self.step({"stage": stage, "index": i})


class Meter:
    """Counts comparisons and prints the time left, if they take more than a minute."""

    def __init__(self, total: int):
        self.total = total
        self.done = 0
        self.start = perf_counter()
        self.last_printed = self.start

    def advance(self, count: int) -> None:
        """Add to the number of comparisons done."""
        self.done += count
        now = perf_counter()
        left = (self.total - self.done) * (now - self.start) / max(1, self.done)
        is_long = now - self.start + left > ANNOUNCED
        if is_long and now - self.last_printed > BETWEEN:
            self.last_printed = now
            _print(f"{self.done:,} of {self.total:,} comparisons, {format_seconds(left)} left")


def _print(line: str) -> None:
    if progress_setting() is not False:
        print(line, file=sys.stderr, flush=True)


def _shows_lines() -> bool:
    """Whether lines of progress are printed: as `config_context` sets it, else in terminals and notebooks."""
    is_watched = "ipykernel" in sys.modules or bool(getattr(sys.stderr, "isatty", bool)())
    setting = progress_setting()
    return is_watched if setting is None else setting


def format_seconds(seconds: float) -> str:
    """A time for people, such as ``"4 minutes"``."""
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    if seconds < 6000:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
