"""Pictures of a similarity matrix: its signed spectrum, and its entries in an order that shows structure."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.linalg import eigvalsh
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Color, Display
from mercerless.core.validation import check_option, check_square, check_symmetric
from mercerless.spectra import (
    Indefiniteness,
    as_similarities,
    implied_distances,
    indefiniteness,
    matrix_kind,
)


def _matrix_of(estimator: Any, X: Any) -> NDArray:
    """The kernel matrix of `X`, or of the kept items, by a fitted estimator; `X` itself if it is precomputed."""
    check_is_fitted(estimator)
    kernel = getattr(estimator, "kernel_", None)
    if X is None:
        X = getattr(estimator, "X_fit_", None)
    if X is None:
        raise ValueError(f"This {type(estimator).__name__} keeps no training items; pass X.")
    if callable(kernel):
        return kernel(X)
    if estimator.__sklearn_tags__().input_tags.pairwise:
        return np.asarray(X)
    raise ValueError(
        f"{type(estimator).__name__} has no kernel to show; pass its matrix to from_matrix instead."
    )


class SpectrumDisplay(Display):
    """The eigenvalues of a similarity matrix, largest first, positive and negative ones in different colors.

    Create it with `from_matrix` or `from_estimator`.

    Parameters
    ----------
    eigenvalues : ndarray of shape (n,)
        The eigenvalues, in any order.
    report : Indefiniteness or None, default=None
        Negative mass, inertia and the verdict; None computes them from the eigenvalues alone, see
        `mercerless.spectra.indefiniteness`.
    name : str or None, default=None
        Name of the matrix for the title.

    See Also
    --------
    KernelMatrixDisplay : The entries of the matrix.
    mercerless.spectra.indefiniteness : The numbers in the title.

    Examples
    --------
    >>> from mercerless.datasets import load_digit_shapes
    >>> from mercerless.inspection import SpectrumDisplay
    >>> display = SpectrumDisplay.from_matrix(load_digit_shapes().K)
    >>> display.report.is_psd
    False
    """

    def __init__(
        self, eigenvalues: ArrayLike, report: Indefiniteness | None = None, name: str | None = None
    ):
        self.eigenvalues = np.sort(np.asarray(eigenvalues, dtype=np.float64))[::-1]
        self.report = report or indefiniteness(self.eigenvalues)
        self.name = name

    @classmethod
    def from_matrix(
        cls, K: ArrayLike, *, name: str | None = None, scale: str = "symlog", ax: Any = None
    ) -> Self:
        """Draw the spectrum of a symmetric matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            A symmetric similarity matrix.
        name : str or None, default=None
            Name of the matrix for the title.
        scale : {"symlog", "linear"}, default="symlog"
            The vertical axis: logarithmic on both sides of zero, or proportional.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : SpectrumDisplay
            The drawn display.
        """
        K = check_symmetric(K)
        values = eigvalsh(K)
        return cls(values, report=indefiniteness(K, values), name=name).plot(scale=scale, ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the spectrum of the kernel matrix that a fitted estimator has on `X`.

        Parameters
        ----------
        estimator : estimator
            Fitted, with a ``kernel_`` attribute or with ``kernel="precomputed"``.
        X : array-like or None, default=None
            The items; the square matrix itself if the estimator works on precomputed matrices. None shows the
            ``eigenvalues_`` of the estimator if it has them, or the matrix of its training items.
        name : str or None, default=None
            Name of the matrix for the title; None uses the estimator's class.
        **kwargs : dict
            The options of `from_matrix`.

        Returns
        -------
        display : SpectrumDisplay
            The drawn display.
        """
        name = name or type(estimator).__name__
        values = getattr(estimator, "eigenvalues_", None)
        if X is None and values is not None:
            return cls(values, name=name).plot(**kwargs)
        return cls.from_matrix(_matrix_of(estimator, X), name=name, **kwargs)

    def _draw(self, ax: Any, scale: str = "symlog") -> None:
        check_option("scale", scale, ("symlog", "linear"))
        values = self.eigenvalues
        report = self.report
        start = 0
        for count, color, label in (
            (report.n_positive, Color.POSITIVE, "positive"),
            (report.n_zero, Color.NEUTRAL, "zero up to rounding"),
            (report.n_negative, Color.NEGATIVE, "negative"),
        ):
            if count:
                edges = np.arange(start, start + count + 1) + 0.5
                bars = values[start : start + count]
                ax.stairs(bars, edges, fill=True, color=color, label=f"{count} {label}")
            start += count
        largest = np.abs(values).max()
        if scale == "symlog" and largest > 0:
            # linear between two ticks only, three to four decades below the largest
            threshold = 10.0 ** np.ceil(np.log10(1e-4 * largest))
            ax.set_yscale("symlog", linthresh=threshold, linscale=0.5)
        ax.axhline(0.0, color="black", linewidth=0.8)
        ax.set(
            xlabel="rank, from the largest to the smallest",
            ylabel="eigenvalue",
            xlim=(0.5, len(values) + 0.5),
        )
        verdict = f"indefinite, {100 * report.negative_mass:.1f} % negative mass"
        if report.is_psd:
            verdict = "positive semi-definite"
        ax.set_title(f"{self.name}: {verdict}" if self.name else verdict.capitalize(), loc="left")
        ax.legend(frameon=False, loc="upper right")


@dataclass(eq=False, repr=False)
class KernelMatrixDisplay(Display):
    """The entries of a similarity or distance matrix, rows and columns ordered by class or by cluster.

    Create it with `from_matrix` or `from_estimator`.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        The matrix in its original order.
    order : ndarray of shape (n,)
        The row to show first, second, and so on.
    labels : ndarray of shape (n,) or None, default=None
        The class or target of every row in the original order, or None.
    name : str or None, default=None
        Name of the matrix for the title.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The picture.

    See Also
    --------
    SpectrumDisplay : The eigenvalues of the matrix.

    Examples
    --------
    >>> from mercerless.datasets import load_digit_shapes
    >>> from mercerless.inspection import KernelMatrixDisplay
    >>> shapes = load_digit_shapes()
    >>> display = KernelMatrixDisplay.from_matrix(shapes.D, shapes.target, name="digit shapes")
    >>> bool((shapes.target[display.order[:-1]] <= shapes.target[display.order[1:]]).all())
    True
    """

    matrix: NDArray
    order: NDArray
    labels: NDArray | None = None
    name: str | None = None

    @classmethod
    def from_matrix(
        cls, K: ArrayLike, y: ArrayLike | None = None, *, name: str | None = None, ax: Any = None
    ) -> Self:
        """Draw a square matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            Similarities or distances, symmetric or not.
        y : array-like of shape (n,) or None, default=None
            The class or the numeric target of every row. Rows are ordered by it, inside a class by cluster;
            without it by cluster alone (average linkage). More than 30 classes are not named.
        name : str or None, default=None
            Name of the matrix for the title.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : KernelMatrixDisplay
            The drawn display.
        """
        K = check_square(K)
        if y is not None:
            y = np.asarray(y)
            if y.shape != (len(K),):
                raise ValueError(
                    f"y must have one label per row of K ({len(K)}), got shape {y.shape}."
                )
        return cls(K, _order(K, y), labels=y, name=name).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the kernel matrix that a fitted estimator has on `X`.

        Parameters
        ----------
        estimator : estimator
            Fitted, with a ``kernel_`` attribute or with ``kernel="precomputed"``.
        X : array-like or None, default=None
            The items, None for the training items that the estimator keeps; the square matrix itself if the estimator
            works on precomputed matrices.
        y : array-like of shape (n,) or None, default=None
            The class or the numeric target of every row.
        name : str or None, default=None
            Name of the matrix for the title; None uses the estimator's class.
        **kwargs : dict
            The options of `from_matrix`.

        Returns
        -------
        display : KernelMatrixDisplay
            The drawn display.
        """
        name = name or type(estimator).__name__
        return cls.from_matrix(_matrix_of(estimator, X), y, name=name, **kwargs)

    def _draw(self, ax: Any) -> None:
        shown = self.matrix[np.ix_(self.order, self.order)]
        # colors span all but the extreme off-diagonal entries, so that one outlier does not hide the rest
        off_diagonal = shown[~np.eye(len(shown), dtype=bool)] if len(shown) > 1 else shown.ravel()
        low, high = np.percentile(off_diagonal, [1, 99])
        signed = low < 0 < high
        limit = max(-low, high)
        self.image_ = ax.imshow(
            shown,
            cmap="RdBu" if signed else "cividis",
            vmin=-limit if signed else low,
            vmax=limit if signed else high,
            interpolation="antialiased",
        )
        bar = ax.figure.colorbar(self.image_, ax=ax, fraction=0.046, pad=0.02)
        bar.outline.set_visible(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        if self.labels is None:
            ax.set(xticks=[], yticks=[], xlabel="items, ordered by cluster")
        elif len(np.unique(self.labels)) > 30:
            ax.set(xticks=[], yticks=[], xlabel="items, ordered by class or target")
        else:
            self._mark_classes(self.labels[self.order])
        if self.name:
            ax.set_title(self.name, loc="left")

    def _mark_classes(self, shown: NDArray) -> None:
        """Separate the classes by thin lines and name them on the axes."""
        classes, starts, counts = np.unique(shown, return_index=True, return_counts=True)
        middles = starts + (counts - 1) / 2
        names = [f"{label:g}" if classes.dtype.kind == "f" else str(label) for label in classes]
        # white is the middle of the signed colors
        color = "black" if self.image_.get_cmap().name == "RdBu" else "white"
        for start in starts[1:]:
            self.ax_.axhline(start - 0.5, color=color, linewidth=0.7)
            self.ax_.axvline(start - 0.5, color=color, linewidth=0.7)
        rotation = 90 if sum(map(len, names)) > 40 else 0
        self.ax_.set_xticks(middles, names, rotation=rotation)
        self.ax_.set_yticks(middles, names)
        self.ax_.set_xlabel("items, ordered by class and cluster")


def _order(K: NDArray, y: NDArray | None) -> NDArray:
    """Rows by class, within a class by the leaves of average linkage on the distances that the entries imply."""
    if len(K) < 3:
        return np.arange(len(K)) if y is None else np.argsort(y, kind="stable")
    kind = matrix_kind(K).kind or "similarity"
    distances = squareform(implied_distances(as_similarities((K + K.T) / 2, kind)), checks=False)
    leaves = leaves_list(linkage(distances, method="average"))
    return leaves if y is None else leaves[np.argsort(y[leaves], kind="stable")]
