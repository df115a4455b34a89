"""Charts: places of marks in a picture of 520 units; the page's template draws them, its style sheet colors them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_number

WIDTH = 520
#: Space for the labels of the horizontal axis, and above the highest mark.
BOTTOM, TOP = 40, 12


def number(value: Any) -> str:
    """A short number for a label; anything else as text."""
    if not is_number(value):
        return str(value)
    if abs(value) < 1e-300:
        return "0"
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-3 else f"{value:.2g}"


def ticks(low: float, high: float, count: int = 5) -> NDArray:
    """Round numbers between two ends."""
    step = (high - low) / count
    scale = 10.0 ** np.floor(np.log10(step))
    step = scale * min(one for one in (1, 2, 2.5, 5, 10) if one * scale >= step * 0.999)
    whole = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return whole * step + 0.0  # no -0


def padded(values: ArrayLike, share: float = 0.05) -> tuple[float, float]:
    """The range of values with some room."""
    low, high = float(np.min(values)), float(np.max(values))
    room = share * ((high - low) or abs(high) or 1.0)
    return low - room, high + room


class Mark(NamedTuple):
    """A line, or dots or bars, with a class of the style sheet."""

    shape: str
    kind: str
    x: ArrayLike
    y: ArrayLike
    size: float = 0.0


@dataclass
class Chart:
    """Marks, and a scale on both axes; `labels` stand at the heights 0, 1, 2, ... instead of numbers."""

    title: str
    x_title: str
    y_title: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    height: int = 300
    left: int = 72
    labels: Sequence[str] = ()
    marks: list[Mark] = field(default_factory=list)

    def x(self, value: ArrayLike) -> NDArray:
        """Places of values on the horizontal axis."""
        low, high = self.x_range
        share = (np.asarray(value, dtype=float) - low) / (high - low)
        return np.round(self.left + share * (WIDTH - TOP - self.left), 1)

    def y(self, value: ArrayLike) -> NDArray:
        """Places of values on the vertical axis."""
        low, high = self.y_range
        share = (np.asarray(value, dtype=float) - low) / (high - low)
        return np.round(self.height - BOTTOM - share * (self.height - BOTTOM - TOP), 1)

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Places and labels below the chart."""
        values = ticks(*self.x_range)
        return list(zip(self.x(values), map(number, values)))

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Places and labels beside the chart."""
        values = np.arange(len(self.labels)) if self.labels else ticks(*self.y_range)
        return list(zip(self.y(values), self.labels or map(number, values)))

    def places(self, mark: Mark) -> list[tuple[float, float]]:
        """The points of a mark."""
        return list(zip(self.x(mark.x).tolist(), self.y(mark.y).tolist()))

    def add(self, shape: str, kind: str, x: ArrayLike, y: ArrayLike, size: float = 0.0) -> "Chart":
        """Add a mark."""
        self.marks.append(Mark(shape, kind, x, y, size))
        return self


def row_chart(title: str, axis: str, labels: Sequence[str], ends: ArrayLike) -> Chart:
    """A row per label, the first at the bottom."""
    n_rows = len(labels)
    height = 22 * n_rows + BOTTOM + TOP
    return Chart(title, axis, "", padded(ends), (-0.6, n_rows - 0.4), height, 225, labels)


def curve_chart(title: str, x_title: str, y_title: str, x: ArrayLike, y: ArrayLike) -> Chart:
    """A line with dots."""
    chart = Chart(title, x_title, y_title, padded(np.append(x, 0.0), 0.03), padded(y, 0.15))
    return chart.add("line", "line", x, y).add("dots", "dot", x, y, 3)


def unit_chart(title: str, x_title: str, y_title: str, x: NDArray, y: NDArray) -> Chart:
    """A curve in the unit square."""
    return Chart(title, x_title, y_title, (0.0, 1.0), (0.0, 1.0)).add("line", "line", x, y)


def scatter_chart(title: str, x_title: str, y_title: str, x: NDArray, y: NDArray) -> Chart:
    """An empty chart for dots, with room around them."""
    return Chart(title, x_title, y_title, padded(x), padded(y))
