"""How a comparison is run; checked before anything heavy is imported."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: The losses that learners can be ranked by, for each task; the first is the default.
METRICS = {
    "classification": ("log_loss", "accuracy"),
    "regression": ("squared_error", "absolute_error"),
}
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
Progress = Callable[[str, int, int], None]


def parse_budget(budget: float | str | None) -> float | None:
    """Seconds of a budget such as 90, "90s", "2m" or "1h"; None is no limit."""
    if budget is None or budget == "none":
        return None
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([smh]?)\s*", str(budget))
    if match is None or float(match[1]) == 0.0:
        raise ValueError(f"The budget {budget!r} is not a time; use such as 90s, 2m, 1h, or none.")
    return float(match[1]) * SECONDS[match[2] or "s"]


def check_metric(metric: str | None, task: str | None = None) -> None:
    """Raise unless the metric is known, and made for the task."""
    allowed = METRICS[task] if task else tuple(name for names in METRICS.values() for name in names)
    if metric is not None and metric not in allowed:
        raise ValueError(f"The metric {metric!r} is not known; use one of {', '.join(allowed)}.")


def check_jobs(n_jobs: int | None) -> None:
    """Raise unless the number of jobs is None, -1 or positive."""
    if n_jobs is not None and n_jobs < 1 and n_jobs != -1:
        raise ValueError(f"{n_jobs} jobs would do nothing; use 1 or more, or -1 for all cores.")


def silent(text: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Options:
    """How a comparison is run; see `mercerless.compare`."""

    metric: str | None = None
    learners: Any = None
    budget: float | str | None = "2m"
    repeats: int | None = None
    curves: bool = True
    searches: bool = True
    n_jobs: int | None = None
    random_state: int = 0
    resume: bool = False
    progress: Progress = silent
    started: float = field(default_factory=time.perf_counter)  # the budget counts from here

    def __post_init__(self) -> None:
        parse_budget(self.budget)
        check_metric(self.metric)
        check_jobs(self.n_jobs)
        if self.repeats is not None and self.repeats < 1:
            raise ValueError(f"{self.repeats} repeats are not possible; use 1 or more.")
        if isinstance(self.learners, str):
            raise ValueError(
                f"learners={self.learners!r} is a text; give a list of names: [{self.learners!r}]."
            )

    @property
    def seconds(self) -> float | None:
        """The budget in seconds; None if there is none, or if the number of repeats is given."""
        return None if self.repeats is not None else parse_budget(self.budget)
