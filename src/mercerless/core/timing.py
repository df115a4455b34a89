"""Progress of long work: announced after a minute, with a faster alternative, and then in lines every 15 seconds."""

import sys
from time import perf_counter

from mercerless.core.memory import progress_setting

#: Seconds after which work is long and announced, and between two lines of its progress.
ANNOUNCED = 60.0
BETWEEN = 15.0


class FitClock:
    """The time of one fit. It prints, and decides nothing."""

    def __init__(self, name: str):
        self.name = name
        self.start = perf_counter()
        self.due = ANNOUNCED
        self.remedy = ""
        self.n_steps = 0

    def step(self, stage: str) -> None:
        """Count a step; print a line if the fit is long and the last line is old."""
        self.n_steps += 1
        elapsed = perf_counter() - self.start
        if elapsed < self.due:
            return
        took = format_seconds(elapsed)
        if self.due == ANNOUNCED:
            _print(f"{self.name}: the fit has taken {took} so far{self.remedy}.")
        elif _shows_lines():
            _print(f"{self.name}: {stage}, step {self.n_steps}, after {took}")
        self.due = elapsed + BETWEEN


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
