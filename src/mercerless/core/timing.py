"""How long a fit will take: estimated before the work, announced once if it is long, with progress meanwhile."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from time import perf_counter

import numpy as np

from mercerless.core.memory import progress_setting

__all__ = ["FitClock", "fit_clock", "landmarks_remedy", "seconds_of_products", "shows_progress"]


@dataclass(frozen=True)
class FitTimes:
    """When a fit is announced, and how often its progress is printed."""

    #: Seconds above which a fit is announced.
    announced: float = 60.0
    #: Seconds between two lines of progress.
    pause: float = 15.0
    #: Products per second of the slowest machine considered: shorter work is not estimated at all.
    slowest: float = 2e9
    #: Landmarks that are suggested; with fewer than twice as many rows they gain little.
    landmarks: int = 1000


LIMITS = FitTimes()


class FitClock:
    """The time of one fit; nested fits share the clock of the outermost."""

    def __init__(self, name: str):
        self.name = name
        self.start = perf_counter()
        self.last_printed = self.start
        self.expected: float | None = None
        self.remedy = ""
        self.is_announced = False
        self.n_steps = 0

    def expect(self, seconds: float, n_rows: int, remedy: str) -> None:
        """Announce a fit that will take long, with a faster alternative; the first estimate counts."""
        if self.expected is not None:
            return
        self.expected = seconds
        self.remedy = remedy
        if seconds > LIMITS.announced:
            self._announce(
                f"{self.name}: the fit of {n_rows} rows will take about "
                f"{format_seconds(seconds)} on this machine"
            )

    def step(self, stage: str) -> None:
        """Count a step; print a line if the fit is long and the last line is old."""
        self.n_steps += 1
        now = perf_counter()
        elapsed = now - self.start
        if elapsed > LIMITS.announced and not self.is_announced:
            self._announce(f"{self.name}: the fit has taken {format_seconds(elapsed)} so far")
        if not self.is_announced or now - self.last_printed < LIMITS.pause or not shows_progress():
            return
        self.last_printed = now
        line = f"{self.name}: {stage}, step {self.n_steps}, after {format_seconds(elapsed)}"
        left = (self.expected or 0.0) - elapsed
        if left > 0:
            line += f", about {format_seconds(left)} left"
        print(line, file=sys.stderr, flush=True)

    def __reduce__(self) -> tuple[type, tuple]:
        """In other processes, whose clocks differ, nothing is printed."""
        return SilentClock, ()

    def _announce(self, message: str) -> None:
        """Print the message, with the faster alternative if there is one."""
        self.is_announced = True
        if self.remedy:
            message = f"{message}; {self.remedy}"
        if progress_setting() is not False:
            print(f"{message}.", file=sys.stderr, flush=True)


class SilentClock:
    """Replaces the clock of a fit in other processes."""

    def step(self, stage: str) -> None:
        """Print nothing."""


_CLOCK: ContextVar[FitClock | None] = ContextVar("mercerless_clock", default=None)


@contextmanager
def fit_clock(name: str) -> Iterator[FitClock]:
    """The clock of the fit that runs in this thread: of the outermost one if fits are nested."""
    outer = _CLOCK.get()
    if outer is not None:
        yield outer
        return
    clock = FitClock(name)
    token = _CLOCK.set(clock)
    try:
        yield clock
    finally:
        _CLOCK.reset(token)


def shows_progress() -> bool:
    """Whether long work prints lines of progress: as `config_context` sets it, else in terminals and notebooks."""
    setting = progress_setting()
    if setting is not None:
        return setting
    return "ipykernel" in sys.modules or bool(getattr(sys.stderr, "isatty", bool)())


def landmarks_remedy(n_rows: int, estimator: str = "") -> str:
    """The suggestion to use landmarks, of another estimator if one is named; empty for too few rows."""
    if n_rows < 2 * LIMITS.landmarks:
        return ""
    parameter = f"landmarks={LIMITS.landmarks}"
    named = f"{estimator}({parameter})" if estimator else parameter
    return f"{named} is faster"


def seconds_of_products(n_products: float, n_rows: int) -> float:
    """Seconds of as many products of two square matrices of `n_rows`, at the measured speed of this machine.

    Zero, and nothing is measured, if no machine would need the time that is announced.
    """
    n_operations = n_products * 2.0 * float(n_rows) ** 3
    if n_operations < LIMITS.announced * LIMITS.slowest:
        return 0.0
    return n_operations / _operations_per_second()


@cache
def _operations_per_second(side: int = 512) -> float:
    """The speed of one matrix product, the best of five; takes about 0.03 seconds."""
    A = np.ones((side, side))
    times = []
    for _ in range(5):
        start = perf_counter()
        A @ A
        times.append(perf_counter() - start)
    return 2.0 * side**3 / max(min(times), 1e-9)


def format_seconds(seconds: float) -> str:
    """A time for people, such as ``"4 minutes"``."""
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    if seconds < 6000:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


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
        is_long = now - self.start + left > LIMITS.announced
        if is_long and now - self.last_printed > LIMITS.pause and progress_setting() is not False:
            self.last_printed = now
            line = f"{self.done:,} of {self.total:,} comparisons, {format_seconds(left)} left"
            print(line, file=sys.stderr, flush=True)
