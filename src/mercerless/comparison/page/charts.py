"""Charts as inline SVG; colors come from the style sheet of the page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

WIDTH = 520
N_COLORS = 8


def number(value: float) -> str:
    """A short number for a label."""
    if abs(value) < 1e-300:
        return "0"
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.2g}"


def ticks(low: float, high: float, count: int = 5) -> NDArray:
    """Round numbers between two ends."""
    step = (high - low) / max(count, 1)
    scale = 10.0 ** np.floor(np.log10(step))
    step = scale * min(one for one in (1, 2, 2.5, 5, 10) if one * scale >= step * 0.999)
    return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step


@dataclass
class Axes:
    """A rectangle with a scale on both axes, filled with marks."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_title: str = ""
    y_title: str = ""
    height: int = 300
    left: int = 56
    y_labels: Sequence[str] | None = None  # at 0, 1, 2, ... instead of numbers
    right: int = 12
    parts: list[str] = field(default_factory=list)

    def x(self, value: ArrayLike) -> NDArray:
        """Places of values on the horizontal axis."""
        low, high = self.x_range
        share = (np.asarray(value, dtype=float) - low) / ((high - low) or 1.0)
        return np.round(self.left + share * (WIDTH - self.left - self.right), 1)

    def y(self, value: ArrayLike) -> NDArray:
        """Places of values on the vertical axis."""
        low, high = self.y_range
        share = (np.asarray(value, dtype=float) - low) / ((high - low) or 1.0)
        return np.round(self.height - 40 - share * (self.height - 52), 1)

    def line(self, x: ArrayLike, y: ArrayLike, kind: str = "line") -> None:
        """A line through points."""
        points = " ".join(f"{a},{b}" for a, b in zip(np.ravel(self.x(x)), np.ravel(self.y(y))))
        self.parts.append(f'<polyline class="{kind}" points="{points}"/>')

    def dots(
        self, x: ArrayLike, y: ArrayLike, kinds: Sequence[str] | str = "dot", radius: float = 3
    ) -> None:
        """Dots, each with a class of the style sheet."""
        places = list(zip(np.ravel(self.x(x)), np.ravel(self.y(y))))
        classes = [kinds] * len(places) if isinstance(kinds, str) else kinds
        self.parts += [
            f'<circle class="{kind}" cx="{a}" cy="{b}" r="{radius}"/>'
            for kind, (a, b) in zip(classes, places)
        ]

    def bar(
        self, start: float, end: float, y: float, thickness: int = 12, kind: str = "bar"
    ) -> None:
        """A horizontal bar."""
        a, b = sorted(float(one) for one in self.x([start, end]))
        top = float(self.y(y)) - thickness / 2
        self.parts.append(
            f'<rect class="{kind}" x="{a}" y="{top}" width="{max(b - a, 1):.1f}" height="{thickness}"/>'
        )

    def column(self, start: float, end: float, height: float) -> None:
        """A vertical bar from 0."""
        a, b = (float(one) for one in self.x([start, end]))
        top, bottom = float(self.y(height)), float(self.y(0.0))
        self.parts.append(
            f'<rect class="bar" x="{a}" y="{top}" width="{max(b - a - 1, 1):.1f}" height="{bottom - top:.1f}"/>'
        )

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """A label beside a point."""
        self.parts.append(
            f'<text x="{self.x(x)}" y="{float(self.y(y)) + 4}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def svg(self, title: str) -> str:
        """The chart with its axes."""
        bottom, frame = self.height - 40, []
        for value in ticks(*self.x_range):
            a = float(self.x(value))
            frame.append(f'<line class="grid" x1="{a}" x2="{a}" y1="12" y2="{bottom}"/>')
            frame.append(
                f'<text x="{a}" y="{bottom + 16}" text-anchor="middle">{number(value)}</text>'
            )
        if self.y_labels is None:
            for value in ticks(*self.y_range):
                b = float(self.y(value))
                frame.append(
                    f'<line class="grid" x1="{self.left}" x2="{WIDTH - self.right}" y1="{b}" y2="{b}"/>'
                )
                frame.append(
                    f'<text x="{self.left - 6}" y="{b + 4}" text-anchor="end">{number(value)}</text>'
                )
        for place, label in enumerate(self.y_labels or ()):
            frame.append(
                f'<text x="{self.left - 8}" y="{float(self.y(place)) + 4}" text-anchor="end">'
                f"{escape(shorten(label))}</text>"
            )
        middle = (self.left + WIDTH - self.right) / 2
        frame.append(
            f'<text class="axis" x="{middle}" y="{self.height - 6}" text-anchor="middle">'
            f"{escape(self.x_title)}</text>"
        )
        if self.y_title:
            frame.append(
                f'<text class="axis" transform="translate(13 {bottom / 2 + 6}) rotate(-90)" '
                f'text-anchor="middle">{escape(self.y_title)}</text>'
            )
        content = "".join(frame + self.parts)
        return f'<svg viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{escape(title)}">{content}</svg>'


def shorten(text: str, most: int = 30) -> str:
    """A label that fits."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def padded(values: ArrayLike, share: float = 0.05) -> tuple[float, float]:
    """The range of finite values with some room."""
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    low, high = float(numbers.min()), float(numbers.max())
    room = share * ((high - low) or abs(high) or 1.0)
    return low - room, high + room


def score_plot(
    titles: Sequence[str], losses: NDArray, widths: NDArray, kinds: Sequence[str], axis: str
) -> str:
    """A dot per learner, with the interval of its difference to the recommended one."""
    n = len(titles)
    axes = Axes(
        padded([*(losses - widths), *(losses + widths)]),
        (-0.6, n - 0.4),
        axis,
        height=26 * n + 60,
        left=210,
        y_labels=list(titles)[::-1],
    )
    for place, i in enumerate(reversed(range(n))):
        axes.line(
            [losses[i] - widths[i], losses[i] + widths[i]], [place, place], f"interval {kinds[i]}"
        )
        axes.dots([losses[i]], [place], f"dot {kinds[i]}", 4)
    return axes.svg("Loss of every learner")


def importance_plot(columns: Sequence[str], mean: NDArray, spread: NDArray, axis: str) -> str:
    """A bar per column, the largest first."""
    order = np.argsort(-mean)[:20][::-1]
    axes = Axes(
        padded([0.0, *(mean[order] + spread[order]), *(mean[order] - spread[order])], 0.03),
        (-0.6, len(order) - 0.4),
        axis,
        height=20 * len(order) + 60,
        left=210,
        y_labels=[columns[i] for i in order],
    )
    for place, i in enumerate(order):
        axes.bar(0.0, mean[i], place)
        axes.line([mean[i] - spread[i], mean[i] + spread[i]], [place, place], "whisker")
    return axes.svg("Importance of columns")


def curve_plot(x: NDArray, y: NDArray, x_title: str, y_title: str) -> str:
    """A line with dots."""
    axes = Axes(padded([0.0, *x], 0.03), padded(y, 0.15), x_title, y_title, left=64)
    axes.line(x, y)
    axes.dots(x, y)
    return axes.svg(y_title)


def rate_plot(
    x: NDArray, y: NDArray, x_title: str, y_title: str, diagonal: bool, dots: bool = False
) -> str:
    """A curve in the unit square."""
    axes = Axes((0.0, 1.0), (0.0, 1.0), x_title, y_title)
    if diagonal:
        axes.line([0, 1], [0, 1], "reference")
    axes.line(x, y)
    if dots:
        axes.dots(x, y)
    return axes.svg(f"{y_title} against {x_title}")


def scatter_plot(
    x: NDArray, y: NDArray, x_title: str, y_title: str, kinds: Sequence[str] | str, diagonal: bool
) -> str:
    """Dots, with the diagonal or the zero line."""
    x_range, y_range = padded(x), padded(y)
    if diagonal:
        x_range = y_range = padded([*x, *y])
    axes = Axes(x_range, y_range, x_title, y_title, left=64)
    if diagonal:
        axes.line(x_range, x_range, "reference")
    elif y_range[0] < 0.0 < y_range[1] and isinstance(kinds, str):
        axes.line(x_range, [0.0, 0.0], "reference")
    axes.dots(x, y, kinds, 2.2)
    return axes.svg(f"{y_title} against {x_title}")


def histogram(values: NDArray, x_title: str, y_title: str, bins: int = 30) -> str:
    """Counts of values."""
    counts, edges = np.histogram(values, bins)
    axes = Axes((edges[0], edges[-1]), (0.0, 1.05 * counts.max()), x_title, y_title)
    for count, start, end in zip(counts, edges, edges[1:]):
        axes.column(start, end, count)
    return axes.svg(x_title)
