"""The base of all displays: colors, axes, and a method that draws and returns the display."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.optional import import_optional


class Color:
    """The palette of Okabe and Ito: distinct for every common kind of color vision."""

    POSITIVE = "#0072B2"
    NEGATIVE = "#D55E00"
    NEUTRAL = "#7F7F7F"
    SERIES = (POSITIVE, NEGATIVE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def draw_matrix(ax: Any, matrix: NDArray, title: str, **options: Any) -> None:
    """A matrix as an image with a color bar."""
    image = ax.imshow(matrix, interpolation="nearest", **options)
    ax.set(title=title, xticks=[], yticks=[])
    ax.figure.colorbar(image, ax=ax, shrink=0.8)


class Display:
    """A picture that keeps its numbers and its axes; `_draw` takes one argument per axes."""

    _layout: ClassVar[dict[str, Any]] = {}

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of matplotlib Axes or None, default=None
            Where to draw, a sequence if the display has several axes; None makes a figure.
        **kwargs : dict
            Options of this display, as in its class methods.

        Returns
        -------
        Display
            This display; `ax_` (or `axes_`) and `figure_` are where it was drawn.
        """
        if ax is None:
            plt = import_optional("matplotlib.pyplot", extra="plot", what="Drawing")
            _, ax = plt.subplots(**{"layout": "constrained"} | self._layout)
        n_axes = self._layout.get("nrows", 1) * self._layout.get("ncols", 1)
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
        if axes.shape != (n_axes,):
            raise ValueError(
                f"This display draws on {n_axes} matplotlib axes; ax has shape {axes.shape}."
            )
        if n_axes == 1:
            self.ax_ = axes[0]
        else:
            self.axes_ = axes
        self.figure_ = axes[0].figure
        self._draw(*axes, **kwargs)
        for panel in axes:
            if not panel.images:
                panel.spines[["top", "right"]].set_visible(False)
        return self

    def _draw(self, *axes: Any, **kwargs: Any) -> None:
        raise NotImplementedError
