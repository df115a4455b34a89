"""What a file holds before it becomes a problem: items, their names, and columns of labels or groups."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pairs:
    """A number for each pair of items; those that "hits" do not list are unlike."""

    frame: pd.DataFrame  # columns "from", "to" and "value"
    kind: str | None = None

    @property
    def names(self) -> list[str]:
        """All items, in the order they appear."""
        return list(dict.fromkeys([*self.frame["from"], *self.frame["to"]]))


@dataclass(frozen=True)
class Column:
    """A value per item, in the order of the items, or with their names."""

    values: NDArray
    names: list[str] | None = None
    source: str = "the file"

    def align(self, names: Sequence[str] | None, n_items: int, what: str) -> NDArray:
        """A value per item: by names if both sides have them, else by order; a gap for items without one."""
        if names is not None and self.names is not None and set(names) & set(self.names):
            return self.by_name(names, what)
        if len(self.values) != n_items:
            pairs = " If the data are pairs or hits, add --format pairs or --format hits."
            raise ValueError(
                f"{self.source} has {len(self.values)} {what} for {n_items} items; give one per item."
                + pairs * (n_items > len(self.values))
            )
        if names is not None and self.names is not None and not are_counted(self.names):
            raise ValueError(
                f"The names in {self.source}, such as {self.names[0]!r}, are not those of the items, "
                f"such as {names[0]!r}."
            )
        return self.values

    def by_name(self, names: Sequence[str], what: str) -> NDArray:
        """The values of these items; raises if names are listed twice or most are missing."""
        assert self.names is not None
        known = pd.Series(self.values, self.names)
        if known.index.has_duplicates:
            twice = known.index[known.index.duplicated()][0]
            raise ValueError(f"{self.source} has two {what} for {twice!r}; keep one.")
        missing = [name for name in names if name not in known.index]
        if 2 * len(missing) > len(names):
            raise ValueError(
                f"{self.source} has no {what} for {missing[0]!r} and {len(missing) - 1} more of the "
                f"{len(names)} items; do the names agree?"
            )
        return known.reindex(names).to_numpy()


def are_counted(names: Sequence[str]) -> bool:
    """Whether names are only the numbers of the rows."""
    numbers = pd.to_numeric(pd.Series(names), errors="coerce").to_numpy()
    return np.array_equal(numbers - numbers[0], np.arange(len(numbers)))


@dataclass(frozen=True)
class Items:
    """A frame, an array or several by name, a list of strings or series, or pairs; and what is known of the items."""

    X: Any
    names: Sequence[str] | None = None
    labels: Column | None = None
    groups: Column | None = None
    decisions: dict[str, Any] = field(default_factory=dict)  # options that new items need
