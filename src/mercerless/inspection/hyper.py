"""Pictures of learned kernels: the matrix and spectrum beside the target, and values along a line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless._optional import import_optional
from mercerless.estimators.hyper_search import encode_target
from mercerless.inspection.spectra import NEGATIVE, NEUTRAL, POSITIVE, _axes, _despine


class LearnedKernelDisplay:
    """A learned kernel beside what it was learned from: both matrices and both spectra.

    Parameters
    ----------
    target : ndarray of shape (n, n)
        The target, NaN where unknown.
    learned : ndarray of shape (n, n)
        The learned kernel at the same items.
    order : ndarray of shape (n,)
        The order in which items are shown.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (3,)
        Target, learned kernel, spectra.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    KernelLineDisplay : The kernel's values along a line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import HyperRidge
    >>> from mercerless.inspection import LearnedKernelDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HyperRidge(n_landmarks=50, random_state=0).fit(X[::3], y[::3])
    >>> display = LearnedKernelDisplay.from_estimator(model, X[1::3], y[1::3])
    >>> display.learned.shape
    (50, 50)
    """

    def __init__(self, target: NDArray, learned: NDArray, order: NDArray):
        self.target = target
        self.learned = learned
        self.order = order

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, axes: Any = None) -> LearnedKernelDisplay:
        """Draw a fitted `HyperRidge` or `HyperSVR` at some items.

        Parameters
        ----------
        estimator : HyperRidge or HyperSVR
            The fitted estimator.
        X : array-like of shape (n, n_features)
            The items, new ones or those of fit.
        y : array-like of shape (n,) or (n, n)
            Labels, values or similarities of the same kind as in fit.
        axes : sequence of three matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        LearnedKernelDisplay
            The display.
        """
        check_is_fitted(estimator)
        target, _, _ = encode_target(y, len(X), estimator.target_kind_, estimator.classes_, estimator._moments)
        T = target(slice(None), slice(None))
        learned = estimator.kernel_(X)
        order = np.argsort(target.values, kind="stable") if target.values.ndim == 1 else _by_first_vector(learned)
        return cls(T, learned, order).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> LearnedKernelDisplay:
        """Draw.

        Parameters
        ----------
        axes : sequence of three matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        LearnedKernelDisplay
            This display.
        """
        if axes is None:
            plt = import_optional("matplotlib.pyplot", extra="plot", what="Drawing")
            _, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
        axes = np.asarray(axes)
        if axes.shape != (3,):
            raise ValueError(f"axes must be three matplotlib axes, not an array of shape {axes.shape}.")
        show = np.ix_(self.order, self.order)
        size = float(np.nanmax(np.abs(self.target))) or 1.0
        signed = float(np.nanmin(self.target)) < 0
        known = ~np.isnan(self.target)
        gap = np.where(known, self.learned - self.target, 0.0)
        error = np.linalg.norm(gap) / max(np.linalg.norm(self.target[known]), np.finfo(float).tiny)
        for ax, M, title in ((axes[0], self.target, "target"), (axes[1], self.learned, f"learned, error {error:.2g}")):
            image = ax.imshow(
                M[show],
                cmap="RdBu_r" if signed else "viridis",
                vmin=-size if signed else 0.0,
                vmax=size,
                interpolation="nearest",
            )
            ax.set(title=title, xticks=[], yticks=[])
        axes[0].figure.colorbar(image, ax=axes[1], shrink=0.8)
        self._plot_spectra(axes[2], known.all())
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _plot_spectra(self, ax: Any, complete: bool) -> None:
        spectra = [(self.learned, POSITIVE, "learned", "o")]
        if complete:
            spectra.append((self.target, NEUTRAL, "target", "x"))
        for M, color, label, marker in spectra:
            values = np.sort(np.linalg.eigvalsh(M))[::-1]
            ax.plot(np.arange(1, len(values) + 1), values, marker, color=color, label=label, ms=4, alpha=0.8)
            if label == "learned":
                negative = values < -1e-10 * np.abs(values).max()
                if negative.any():
                    ax.plot(
                        np.flatnonzero(negative) + 1,
                        values[negative],
                        marker,
                        color=NEGATIVE,
                        ms=4,
                        label="learned, negative",
                    )
        top = float(np.abs(np.linalg.eigvalsh(self.learned)).max()) or 1.0
        ax.set_yscale("symlog", linthresh=1e-3 * top)
        ax.axhline(0, color=NEUTRAL, lw=0.8)
        ax.set(title="spectra", xlabel="rank", ylabel="eigenvalue")
        ax.legend(frameon=False)
        _despine(ax)


class KernelLineDisplay:
    """Values ``k(x, start)``, ``k(x, end)`` and ``k(x, x)`` of a kernel as x moves on a line between two points.

    Parameters
    ----------
    position : ndarray of shape (n_points,)
        Position on the line, 0 at the start and 1 at the end.
    to_start, to_end, own : ndarray of shape (n_points,)
        The kernel's values.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    LearnedKernelDisplay : The whole matrix beside its target.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.inspection import KernelLineDisplay
    >>> from mercerless.kernels import Gaussian
    >>> display = KernelLineDisplay.from_kernel(Gaussian(0.5), np.zeros(2), np.ones(2))
    >>> display.own.round(2).max()
    np.float64(1.0)
    """

    def __init__(self, position: NDArray, to_start: NDArray, to_end: NDArray, own: NDArray):
        self.position = position
        self.to_start = to_start
        self.to_end = to_end
        self.own = own

    @classmethod
    def from_kernel(
        cls, kernel: Any, start: ArrayLike, end: ArrayLike, *, n_points: int = 200, margin: float = 0.25, ax: Any = None
    ) -> KernelLineDisplay:
        """Draw a kernel along a line.

        Parameters
        ----------
        kernel : Kernel
            Any kernel on vectors, learned or not.
        start, end : array-like of shape (n_features,)
            Two points.
        n_points : int, default=200
            Points on the line.
        margin : float, default=0.25
            How far the line goes on beyond both points, as a fraction of their distance.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        KernelLineDisplay
            The display.
        """
        start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
        if start.ndim != 1 or start.shape != end.shape:
            raise ValueError(f"start and end must be vectors of one length, not of shapes {start.shape}, {end.shape}.")
        position = np.linspace(-margin, 1 + margin, n_points)
        line = start + position[:, None] * (end - start)
        values = kernel(line, np.stack([start, end]))
        return cls(position, values[:, 0], values[:, 1], kernel.diag(line)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> KernelLineDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        KernelLineDisplay
            This display.
        """
        ax = _axes(ax)
        for values, color, label in (
            (self.to_start, POSITIVE, "k(x, start)"),
            (self.to_end, NEGATIVE, "k(x, end)"),
            (self.own, NEUTRAL, "k(x, x)"),
        ):
            ax.plot(self.position, values, color=color, label=label, lw=1.6, ls="--" if color == NEUTRAL else "-")
        ax.axhline(0, color=NEUTRAL, lw=0.6)
        for x in (0, 1):
            ax.axvline(x, color=NEUTRAL, lw=0.6, ls=":")
        ax.set(xlabel="position on the line (start 0, end 1)", ylabel="kernel value")
        ax.legend(frameon=False)
        _despine(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _by_first_vector(K: NDArray) -> NDArray:
    """Items by the leading eigenvector, which puts similar ones together."""
    values, vectors = np.linalg.eigh(K)
    return np.argsort(vectors[:, np.argmax(np.abs(values))], kind="stable")
