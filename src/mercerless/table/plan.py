"""The plan of a fit of the table learner: which members compete, on how many rows, and the memory they need."""

from dataclasses import dataclass

import numpy as np

from mercerless.lab.data import Plan

MEMBERS = ("local", "ridge", "linear", "wide", "trees", "experts")


@dataclass(frozen=True)
class MemberLimits:
    """How many rows and centers members may have."""

    #: Up to so many rows kernel ridge regression on all of them competes.
    all_rows: int = 1000
    #: Rows x support points x features above which the form without matrix products is left out.
    laplace_work: float = 2e8
    #: Centers of wide machines at most.
    wide_centers: int = 3000
    #: Without memory for so many centers there are no wide machines.
    fewest_centers: int = 500
    #: Rows from which trees are learned, at most.
    tree_rows: int = 2_000_000
    #: Bytes per value of these rows: in single and double precision, bins.
    tree_bytes: float = 20.0
    #: Bytes, times the square of the centers: about a dozen matrices at once.
    wide_bytes: float = 100.0


LIMITS = MemberLimits()


def local_forms(work: float) -> tuple[str, ...]:
    """The local forms that compete: both, unless the Laplace form would be slow."""
    if work <= LIMITS.laplace_work:
        return ("gaussian", "laplace")
    return ("gaussian",)


@dataclass(frozen=True)
class TablePlan(Plan):
    """The plan of a fit of the table learner."""

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
        """Bytes that a fit on n rows needs besides the data; measured, and asserted in the tests."""
        wide = LIMITS.wide_bytes * self.n_centers**2
        trees = LIMITS.tree_bytes * self.n_boosting * self.n_features
        all_rows = 0.0
        if self.all_rows:
            all_rows = 80.0 * n * n
        return super().n_bytes(n, n_outputs) + all_rows + wide + trees


def center_count(n: int, budget: float) -> int:
    """Centers of wide machines for n rows: at most 3000, and no more than a quarter of the memory holds; 0 for none."""
    most = int(min(LIMITS.wide_centers, n, np.sqrt(budget / 4 / LIMITS.wide_bytes)))
    if n <= LIMITS.all_rows or most < LIMITS.fewest_centers:
        return 0
    return most


def boosting_rows(n: int, d: int, budget: float) -> int:
    """Rows from which trees are learned: at most two million, and no more than a quarter of the memory holds."""
    return int(min(n, LIMITS.tree_rows, budget / 4 / (LIMITS.tree_bytes * d)))
