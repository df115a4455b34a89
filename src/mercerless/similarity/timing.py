"""How long comparisons by a function take, and how many landmarks a time allows."""

import time
from dataclasses import dataclass
from typing import Any

from mercerless.kernels import Kernel
from mercerless.lowrank import Landmarks


@dataclass(frozen=True)
class TimeLimits:
    """How calls of a function are timed, and what they may take."""

    #: Seconds that all comparisons may take before ``landmarks="auto"`` uses landmarks.
    all_seconds: float = 600.0
    #: Fewest landmarks, however long they take.
    fewest: int = 50
    #: Items on each side of the comparisons that are timed.
    sample: int = 3


LIMITS = TimeLimits()


def seconds_per_pair(kernel: Kernel, items: Any) -> float:
    """Seconds that a function takes for a pair of items, timed on the first and the last items."""
    start = time.perf_counter()
    kernel(items[: LIMITS.sample], items[-LIMITS.sample :])
    return (time.perf_counter() - start) / LIMITS.sample**2


def affordable(
    requested: Landmarks, per_pair: float, n: int, n_directions: int, most: int
) -> tuple[Landmarks, float]:
    """As many landmarks as can be compared with n items in ``requested.seconds``, and the seconds they take.

    At least 50, unless `most` or n is smaller. The pursuit compares with twice as many landmarks as it keeps.
    """
    assert requested.seconds is not None
    n_compared = 2 if requested.method == "pursuit" else 1
    per_landmark = max(per_pair, 1e-12) * n * n_directions * n_compared
    number = max(LIMITS.fewest, int(min(most, requested.seconds / per_landmark)))
    number = min(number, most, n)
    return Landmarks(number, requested.method, neighbors=requested.neighbors), number * per_landmark


def duration(seconds: float) -> str:
    """A time in words, with two digits at most."""
    for unit, size in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= 1.5 * size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}s"
    if seconds >= 60.0:
        return "a minute"
    return f"{max(1, round(seconds))} seconds"
