"""The input and the output of every member of the table learner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercerless.core.descent import Report
from mercerless.core.folds import Split
from mercerless.lab.data import ScaledTable
from mercerless.lab.model import Rows, Settings, Total
from mercerless.lab.selection import silent
from mercerless.table.encoding import TreeColumns
from mercerless.table.weighing import Labeled


@dataclass(frozen=True)
class Candidate:
    """A model that competes."""

    name: str
    #: Predictions (n_held, n_outputs) of the held-out rows, of each fold by settings that the other folds chose.
    out_of_fold: NDArray
    #: Fits it to all rows.
    refit: Callable[[], Any]
    #: Log bandwidths of the features that it learned in every fold, from which other members start.
    scales: Sequence[NDArray] = ()
    #: Iterations and validation errors, (n_checkpoints, 2).
    curve: NDArray = field(default_factory=lambda: np.zeros((0, 2)))
    #: Its objective, which decides for tables with too few rows to hold any out.
    objective: float = np.inf


@dataclass(frozen=True)
class FurtherRows:
    """Rows beside those on which bandwidths are learned, for members that can learn from more."""

    scaled: ScaledTable
    numbers: NDArray
    classes: NDArray | None  # of the distinct rows of the table
    shares: NDArray | None = None  # of all classes among equal rows, see `Labeled`

    @cached_property
    def labeled(self) -> Labeled:
        """These rows, read at their first use."""
        classes = None
        shares = None
        if self.classes is not None:
            classes = self.classes[self.numbers]
        if self.shares is not None:
            shares = self.shares[self.numbers]
        return Labeled(self.scaled.rows(self.numbers), classes, shares)


@dataclass(frozen=True)
class Contest:
    """The data that members compete on: scaled rows with standardized targets, and folds."""

    rows: Rows
    folds: Sequence[Split]
    settings: Settings
    forms: Sequence[str] = ("gaussian",)
    classes: NDArray | None = None  # of the rows
    shares: NDArray | None = None  # of all classes among equal rows, see `Labeled`
    columns: TreeColumns = field(default_factory=TreeColumns)  # the rows as trees take them
    blocks: Sequence[Callable[[], Rows]] = ()  # further rows that refine bandwidths
    total: Total | None = None  # sums moments over all rows of the table, if `rows` are a part
    further: FurtherRows | None = None
    report: Report = silent

    @property
    def held(self) -> NDArray:
        """The numbers of the held-out rows, fold after fold."""
        if not self.folds:
            return np.zeros(0, dtype=int)
        return np.concatenate([valid for _, valid in self.folds])

    @property
    def labeled(self) -> Labeled:
        return Labeled(self.rows, self.classes, self.shares)

    @property
    def more(self) -> Labeled | None:
        """Further rows; several folds do without."""
        if self.further is None or len(self.folds) != 1:
            return None
        return self.further.labeled


class Competitor(Protocol):
    """A kind of member."""

    def candidates(self, contest: Contest, tried: Sequence[Candidate]) -> list[Candidate]:
        """Its candidates, after those `tried` before."""
