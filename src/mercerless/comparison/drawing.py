"""Pictures of the page as inline SVG: numbers in, `Html` out; every text in them is escaped here."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.comparison.page import Html

#: Shown in place of a missing number.
NO_NUMBER = "\N{EN DASH}"


def minus(number: str) -> str:
    """A number with a minus sign instead of a hyphen."""
    return number.replace("-", "\N{MINUS SIGN}")


def plain_number(value: float) -> str:
    """A number with about four digits, and with an exponent only if it is very large or very small."""
    is_long = 1e4 <= abs(value) < 1e12
    return minus(f"{value:,.0f}" if is_long else f"{value:.4g}")


def round_step(low: float, high: float) -> float:
    """A round distance between about five ticks."""
    rough = (high - low) / 5
    size = 10.0 ** np.floor(np.log10(rough))
    return float(next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough))


def ticks_between(low: float, high: float) -> NDArray:
    """Round numbers between the ends of an axis."""
    step = round_step(low, high)
    ticks = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return ticks + 0.0  # no tick is minus zero


def svg(width: float, height: float, label: str, content: str, kind: str = "") -> Html:
    """A picture with a description for screen readers."""
    name = f" class={kind}" if kind else ""
    return Html(
        f'<svg{name} viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(label)}">{content}</svg>'
    )


def text_at(x: float, y: float, text: str, anchor: str = "start") -> str:
    """A text in a picture."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


# ---------------------------------------------------------------------------------------------- small pictures


def histogram_svg(counts: NDArray, label: str) -> Html:
    """Bars side by side, for a cell of a table."""
    width = 120.0
    height = 28.0
    step = width / max(1, len(counts))
    heights = (height - 1.0) * np.sqrt(counts / max(1, counts.max(initial=1)))
    bars = "".join(
        f"M{i * step:.1f} {height:.0f}v-{size:.1f}h{0.9 * step:.1f}v{size:.1f}z"
        for i, size in enumerate(heights)
        if size > 0
    )
    return svg(width, height, label, f'<path d="{bars}" fill="var(--positive)"/>', "small")


def shares_svg(shares: NDArray, label: str) -> Html:
    """One bar divided in proportion, the largest part first and the remainder in gray."""
    width = 120.0
    left = 0.0
    parts = f'<path d="M0 8h{width:.0f}v12h-{width:.0f}z" fill="var(--line)"/>'
    for i, share in enumerate(shares):
        size = width * float(share)
        parts += (
            f'<path d="M{left:.1f} 8h{max(0.6, size - 1):.1f}v12h-{max(0.6, size - 1):.1f}z" '
            f'fill="var(--c{i % 5})"/>'
        )
        left += size
    return svg(width, 28, label, parts, "small")


# ------------------------------------------------------------------------------------------------- the matrix


def spectrum_svg(values: NDArray) -> Html:
    """Eigenvalues as bars, in order; signed square roots, so that small ones show."""
    heights = np.sign(values) * np.sqrt(np.abs(values))
    if len(heights) > 400:
        heights = heights[np.linspace(0, len(heights) - 1, 400).round().astype(int)]
    top = max(heights.max(), 0.0)
    bottom = min(heights.min(), 0.0)
    ends = [plain_number(float(f"{values[place]:.3g}")) for place in (0, -1)]
    width = 480
    height = 260
    left = 14 + 7 * max(map(len, ends))  # room for the longest label
    unit = (height - 24) / max(top - bottom, 1e-300)
    zero = 12 + top * unit
    step = (width - left - 6) / len(heights)
    bars: dict[str, list[str]] = {"positive": [], "negative": []}
    for i, value in enumerate(heights):
        x = left + i * step
        y = zero - max(value, 0) * unit
        thick = max(0.5, 0.85 * step)
        bars["positive" if value >= 0 else "negative"].append(
            f"M{x:.1f} {y:.1f}h{thick:.2f}v{abs(value) * unit:.1f}h-{thick:.2f}z"
        )
    paths = "".join(
        f'<path d="{"".join(path)}" fill="var(--{sign})"/>' for sign, path in bars.items() if path
    )
    ticks = [(12, ends[0]), (zero, "0")] if values[0] > 0 else [(zero, "0")]
    if bottom < 0 and abs(bottom) * unit > 16:
        ticks.append((height - 12, ends[1]))
    texts = "".join(text_at(left - 6, y + 4, text, "end") for y, text in ticks)
    axis = f'<path d="M{left} {zero:.1f}H{width}" stroke="var(--soft)" fill="none"/>'
    label = (
        f"Eigenvalues from {values[0]:.3g} down to {values[-1]:.3g}, negative ones in another color"
    )
    return svg(width, height, label, paths + axis + texts)


def shades_svg(shades: NDArray, edges: Sequence[int], label: str) -> Html:
    """A matrix of numbers from 0 (dark) to 1 (light), with lines at the edges of classes."""
    n = len(shades)
    image = b64encode(encode_png((255 * shades).round().astype(np.uint8))).decode()
    lines = "".join(f"M0 {edge}H{n}M{edge} 0V{n}" for edge in edges)
    return svg(
        n,
        n,
        label,
        f'<image href="data:image/png;base64,{image}" width="{n}" height="{n}" '
        f'style="image-rendering:pixelated"/><path d="{lines}" stroke="#fff" '
        f'stroke-opacity=".75" stroke-width="{n / 400:.2f}" fill="none"/>',
    )


def encode_png(pixels: NDArray) -> bytes:
    """Encode numbers from 0 to 255 as a PNG with a palette from dark to light."""
    # even steps of lightness, dark blue over green to light yellow
    anchors = [(33, 20, 66), (44, 62, 118), (38, 108, 131), (51, 153, 125), (126, 194, 96)]
    anchors.append((247, 232, 105))
    places = np.arange(len(anchors))
    positions = np.linspace(0, len(anchors) - 1, 256)
    channels = np.transpose(anchors)
    palette = np.column_stack([np.interp(positions, places, channel) for channel in channels])

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette.round().astype(np.uint8).tobytes())
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


# ------------------------------------------------------------------------------------------------------ axes


class PlotFrame:
    """A rectangle with ticks and names on two sides, into which points are placed."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        names: tuple[str, str],
        size: tuple[float, float] = (420.0, 360.0),
    ):
        self.width, self.height = size
        self.x = x
        self.y = y
        self.names = names
        self.left = 62.0
        self.bottom = self.height - 44.0
        self.right = self.width - 12.0
        self.top = 10.0

    def place(self, x: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray]:
        """Positions of points in the picture."""
        across = _share_of_range(x, self.x)
        up = _share_of_range(y, self.y)
        horizontal = self.left + across * (self.right - self.left)
        vertical = self.bottom - up * (self.bottom - self.top)
        return horizontal, vertical

    def line(self, x: NDArray, y: NDArray, style: str) -> str:
        """A line through points."""
        points = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(*self.place(x, y)))
        return f'<path d="M{points}" fill="none" {style}/>'

    def dots(self, x: NDArray, y: NDArray) -> str:
        """A dot per point."""
        circles = "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in zip(*self.place(x, y))
        )
        return f'<g fill="var(--c0)" fill-opacity=".5">{circles}</g>'

    def frame(self) -> str:
        """Rules, ticks and names."""
        parts = ""
        for value in ticks_between(*self.x):
            x = float(self.place(value, self.y[0])[0])
            parts += text_at(x, self.bottom + 16, plain_number(value), "middle")
        for value in ticks_between(*self.y):
            y = float(self.place(self.x[0], value)[1])
            rule = f"M{self.left} {y:.1f}H{self.right}"
            parts += f'<path d="{rule}" stroke="var(--line)" stroke-width=".6"/>'
            parts += text_at(self.left - 6, y + 4, plain_number(value), "end")
        middle = (self.left + self.right) / 2
        parts += text_at(middle, self.height - 8, self.names[0], "middle")
        turn = f"translate(12 {(self.top + self.bottom) / 2:.0f}) rotate(-90)"
        return (
            f'{parts}<text transform="{turn}" text-anchor="middle">{escape(self.names[1])}</text>'
        )

    def draw(self, label: str, *content: str) -> Html:
        """The picture."""
        return svg(self.width, self.height, label, self.frame() + "".join(content), "axes")


def _share_of_range(values: ArrayLike, ends: tuple[float, float]) -> NDArray:
    """Positions between the ends of an axis, from 0 to 1."""
    low, high = ends
    return (np.asarray(values) - low) / ((high - low) or 1.0)


def widened(values: NDArray) -> tuple[float, float]:
    """The ends of an axis with a little room beyond the values."""
    low = float(np.min(values))
    high = float(np.max(values))
    room = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    return low - room, high + room


def look(rank: int, width: float) -> str:
    """Line style of the curve of one of the best learners."""
    dashes = ("", "7 3", "2 3", "9 3 2 3", "5 2 1 2")  # distinguishable without color
    dash = f' stroke-dasharray="{dashes[rank]}"' if dashes[rank] else ""
    return f'stroke="var(--c{rank})" stroke-width="{width}"{dash}'


def legend_line(rank: int) -> Html:
    """A short piece of this curve, for a legend."""
    return Html(
        f'<svg viewBox="0 0 30 8" aria-hidden="true"><path d="M0 4H30" {look(rank, 3)}/></svg>'
    )
