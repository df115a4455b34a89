"""How a comparison is run: everything but the data, in one object."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral

from sklearn.base import BaseEstimator

from mercerless.comparison.words import parse_budget
from mercerless.comparison.workers import StartedProcess
from mercerless.core.validation import check_number

ProgressReporter = Callable[[str, int, int], None]
Requested = (
    Sequence["str | BaseEstimator | tuple[str, BaseEstimator]"] | Mapping[str, BaseEstimator]
)


def silent(text: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Options:
    """How a comparison is run; see `mercerless.compare`."""

    metric: str | None = None
    learners: Requested | None = None
    budget: float | str | None = "2m"
    repeats: int | None = None
    curves: bool = True
    n_jobs: int | None = None
    random_state: int = 0
    resume: bool = False
    progress: ProgressReporter = silent
    started: float = field(default_factory=time.perf_counter)  # the budget counts from here
    processes: list[StartedProcess] = field(default_factory=list)  # that wait for work

    def __post_init__(self) -> None:
        if isinstance(self.learners, str):
            raise ValueError(
                f"learners={self.learners!r} is a text; give a list of names: [{self.learners!r}]."
            )
        check_number("repeats", self.repeats, whole=True, none=True)
        if self.n_jobs is not None and not (isinstance(self.n_jobs, Integral) and self.n_jobs):
            raise ValueError(
                f"n_jobs={self.n_jobs!r} would do nothing; use 1 or more, or -1 for all cores."
            )
        if not (isinstance(self.random_state, Integral) and 0 <= self.random_state < 2**32):
            raise ValueError(f"random_state={self.random_state!r} must be between 0 and 2**32 - 1.")
        parse_budget(self.budget)

    @property
    def seconds(self) -> float | None:
        """The budget in seconds; None if there is none, or if the number of repeats is given."""
        if self.repeats is not None:
            return None
        return parse_budget(self.budget)

    @property
    def is_timed(self) -> bool:
        """Whether the budget decides what is run."""
        return self.seconds is not None
