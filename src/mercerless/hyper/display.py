"""Pictures of learned kernels: the matrix and spectrum beside the target."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Color, Display, draw_matrix
from mercerless.core.units import Standardizer
from mercerless.hyper.targets import encode_target


@dataclass(eq=False, repr=False)
class LearnedKernelDisplay(Display):
    """The matrix of a learned kernel beside its target.

    Parameters
    ----------
    target : ndarray of shape (n, n)
        The target, NaN if unknown; items with labels or values are in their order.
    learned : ndarray of shape (n, n)
        The learned kernel at the same items.

    See Also
    --------
    SpectrumDisplay : The spectrum of any kernel matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import HyperRidge
    >>> from mercerless.inspection import LearnedKernelDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HyperRidge(landmarks=50, random_state=0).fit(X[::3], y[::3])
    >>> display = LearnedKernelDisplay.from_estimator(model, X[1::3], y[1::3])
    >>> display.learned.shape
    (50, 50)
    """

    target: NDArray
    learned: NDArray

    _layout: ClassVar = {"nrows": 1, "ncols": 2, "figsize": (8, 3.4)}

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, ax: Any = None) -> Self:
        """Draw a fitted `HyperRidge` or `HyperSVR` at some items.

        Parameters
        ----------
        estimator : HyperRidge or HyperSVR
            The fitted estimator.
        X : array-like of shape (n, n_features)
            The items, new ones or those of fit.
        y : array-like of shape (n,) or (n, n)
            Labels, values or similarities of the same kind as in fit.
        ax : sequence of two matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        LearnedKernelDisplay
            The display.
        """
        check_is_fitted(estimator)
        X = np.asarray(X)
        target, _, _ = encode_target(
            y, len(X), estimator.target_kind_, estimator.classes_, estimator.moments_
        )
        order = np.arange(len(X))
        if target.values.ndim == 1:
            order = np.argsort(target.values, kind="stable")
        Y = target.take(order)(slice(None), slice(None))
        return cls(Y, estimator.kernel_(X[order])).plot(ax=ax)

    def _draw(self, left: Any, right: Any) -> None:
        size = float(np.nanmax(np.abs(self.target))) or 1.0
        options = {"cmap": "RdBu_r", "vmin": -size, "vmax": size}
        misses = np.nan_to_num(self.learned - self.target)
        norm = np.linalg.norm(np.nan_to_num(self.target))
        error = np.linalg.norm(misses) / (norm or 1.0)
        draw_matrix(left, self.target, "target", **options)
        draw_matrix(right, self.learned, f"learned, error {error:.2g}", **options)


@dataclass(eq=False, repr=False)
class KernelCurveDisplay(Display):
    """A learned kernel as a curve: its values over the distance of the pair, apart for pairs of one and of two classes.

    Distances are measured in units of the standard deviations of the features. A line joins the medians of groups of
    pairs of similar distance, and a band holds the middle four fifths of them.

    Parameters
    ----------
    distance, value : ndarray of shape (n_pairs,)
        Distance and kernel value of every pair of different items.
    group : ndarray of int of shape (n_pairs,)
        The number of the pair's label.
    labels : sequence of str
        The names of the groups.

    See Also
    --------
    LearnedKernelDisplay : The whole matrix beside its target.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import HyperClassifier, HyperRidge
    >>> from mercerless.inspection import KernelCurveDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HyperClassifier(HyperRidge("gaussian", landmarks=50)).fit(X[::3], y[::3])
    >>> display = KernelCurveDisplay.from_estimator(model, X[1::3], y[1::3])
    >>> display.labels
    ('same class', 'different classes')
    """

    distance: NDArray
    value: NDArray
    group: NDArray
    labels: tuple[str, ...]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = None, *, ax: Any = None
    ) -> Self:
        """Draw the kernel of a fitted estimator at some items.

        Parameters
        ----------
        estimator : HyperRidge, HyperSVR, HyperClassifier or HyperRegressor
            The fitted estimator, or any other with the attributes ``kernel_`` and vectors as items.
        X : array-like of shape (n, n_features)
            The items.
        y : array-like of shape (n,) or None, default=None
            Their labels; None draws one curve.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        KernelCurveDisplay
            The display.
        """
        check_is_fitted(estimator)
        X = np.asarray(X, dtype=float)
        first, second = np.triu_indices(len(X), 1)
        distance = euclidean_distances(Standardizer.fit(X)(X))[first, second]
        value = estimator.kernel_(X)[first, second]
        names: tuple[str, ...] = ("pairs",)
        group = np.zeros(len(value), dtype=int)
        if y is not None:
            names = ("same class", "different classes")
            labels = np.asarray(y)
            group = (labels[first] != labels[second]).astype(int)
        return cls(distance, value, group, names).plot(ax=ax)

    def medians(self, chosen: NDArray, n_bins: int = 15) -> tuple[NDArray, NDArray, NDArray]:
        """Median distance, median value and the 10 and 90 % quantiles of the values in bins of equal numbers of pairs.

        Parameters
        ----------
        chosen : ndarray of bool of shape (n_pairs,)
            The pairs.
        n_bins : int, default=15
            How many bins.

        Returns
        -------
        distance, value : ndarray of shape (n_bins,)
            The medians.
        band : ndarray of shape (2, n_bins)
            The quantiles.
        """
        order = np.flatnonzero(chosen)[np.argsort(self.distance[chosen], kind="stable")]
        bins = np.array_split(order, min(n_bins, len(order)))
        distance = [np.median(self.distance[pairs]) for pairs in bins]
        quantiles = [np.quantile(self.value[pairs], [0.1, 0.5, 0.9]) for pairs in bins]
        low, middle, high = np.transpose(quantiles)
        return np.array(distance), middle, np.stack([low, high])

    def _draw(self, ax: Any) -> None:
        for number, label in enumerate(self.labels):
            chosen = self.group == number
            if chosen.any():
                distance, middle, band = self.medians(chosen)
                ax.plot(distance, middle, color=Color.SERIES[number], label=label)
                ax.fill_between(distance, *band, color=Color.SERIES[number], alpha=0.2, lw=0)
        ax.axhline(0, color=Color.NEUTRAL, lw=0.8)
        ax.set(title="learned kernel", xlabel="distance, standardized", ylabel="k(x, x')")
        ax.legend(frameon=False)
