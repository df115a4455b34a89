"""What a fit of the table learner does with a table: which members compete, on how many rows, and what it needs."""

from dataclasses import dataclass

import numpy as np

from mercerless.lab.data import Plan

MEMBERS = ("local", "ridge", "wide", "trees", "experts")
_AUTO_FORMS = ("gaussian", "laplace")
ALL_ROWS = 1000  # up to so many rows kernel ridge regression on all of them is tried too
# rows x support points x features above which the form without matrix products is left out
_LAPLACE_WORK = 2e8
_WIDE_CENTERS = 3000
_FEWEST_CENTERS = 500
# at most so many rows; bytes per value: in single and double precision, bins
_TREE_ROWS = 200_000
_TREE_BYTES = 20.0
_WIDE_BYTES = 100.0  # times the square of the centers: about a dozen matrices at once


def local_forms(work: float) -> tuple[str, ...]:
    """The local forms that compete: both, unless the Laplace form would be slow."""
    return _AUTO_FORMS if work <= _LAPLACE_WORK else ("gaussian",)


@dataclass(frozen=True)
class TablePlan(Plan):
    """What a fit does with a table."""

    members: tuple[str, ...] = MEMBERS
    all_rows: bool = False  # whether kernel ridge regression with all rows as centers competes
    n_centers: int = 0  # of wide machines, as many as a quarter of the memory holds
    n_boosting: int = 0  # rows from which trees are learned, likewise

    @property
    def max_members(self) -> int:
        """The largest number of members with weight: two local forms, and one of every other kind."""
        others = {"wide", "trees", "experts"} & set(self.members)
        return 2 + self.all_rows + (len(others) > 0)

    def n_bytes(self, n: int, n_outputs: int) -> float:
        """What a fit on n rows needs besides the data; measured, and asserted in the tests."""
        wide = _WIDE_BYTES * self.n_centers**2
        trees = _TREE_BYTES * self.n_boosting * self.n_features
        all_rows = 80.0 * n * n if self.all_rows else 0.0
        return super().n_bytes(n, n_outputs) + all_rows + wide + trees


def center_count(n: int, budget: float) -> int:
    """Centers of wide machines for n rows: at most 3000, and no more than a quarter of the memory holds; 0 for none."""
    most = int(min(_WIDE_CENTERS, n, np.sqrt(budget / 4 / _WIDE_BYTES)))
    return most if n > ALL_ROWS and most >= _FEWEST_CENTERS else 0


def boosting_rows(n: int, d: int, budget: float) -> int:
    """Rows from which trees are learned: at most 200,000, and no more than a quarter of the memory holds."""
    return int(min(n, _TREE_ROWS, budget / 4 / (_TREE_BYTES * d)))
