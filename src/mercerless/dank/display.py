"""The adapted kernel matrix of DANK beside the base kernel's."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Color, Display, draw_matrix


@dataclass(eq=False, repr=False)
class AdaptedKernelDisplay(Display):
    """What DANK learned: the matrix F, the adapted kernel matrix F * K, and the eigenvalues of F.

    Parameters
    ----------
    kernel : ndarray of shape (n, n)
        The base kernel matrix K of the training items.
    adaptation : ndarray of shape (n, n)
        The matrix F.
    eigenvalues : ndarray of shape (rank,)
        Those of F that are not zero, descending.

    See Also
    --------
    LearnedKernelDisplay : A kernel that is learned as a function.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercerless import DANKClassifier
    >>> from mercerless.inspection import AdaptedKernelDisplay
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> display = AdaptedKernelDisplay.from_estimator(DANKClassifier().fit(X, y), X, y)
    >>> display.adaptation.shape
    (60, 60)
    """

    kernel: NDArray
    adaptation: NDArray
    eigenvalues: NDArray

    _layout: ClassVar = {"nrows": 1, "ncols": 3, "figsize": (11, 3.4)}

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, task: int = 0, ax: Any = None
    ) -> Self:
        """Draw a fitted `DANKClassifier` or `DANKRegressor` on its training items.

        Parameters
        ----------
        estimator : DANKClassifier or DANKRegressor
            The fitted estimator.
        X : array-like of shape (n, n_features) or (n, n)
            The training items, or their precomputed matrix.
        y : array-like of shape (n,)
            Their classes or targets, by which they are ordered.
        task : int, default=0
            The pair of classes, in the order of ``adaptation_``.
        ax : sequence of three matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        AdaptedKernelDisplay
            The display.
        """
        check_is_fitted(estimator)
        adaptation = estimator.adaptation_[task]
        order = np.argsort(np.asarray(y)[adaptation.rows], kind="stable")
        rows = adaptation.rows[order]
        items = np.asarray(X)
        is_matrix = estimator.__sklearn_tags__().input_tags.pairwise
        K = items[np.ix_(rows, rows)] if is_matrix else estimator.kernel_(items[rows])
        return cls(K, adaptation.matrix(rows), adaptation.eigenvalues()).plot(ax=ax)

    def _draw(self, left: Any, middle: Any, right: Any) -> None:
        change = float(np.abs(self.adaptation - 1.0).max()) or 1.0
        options = {"cmap": "RdBu_r", "vmin": 1 - change, "vmax": 1 + change}
        draw_matrix(left, self.adaptation, "F", **options)
        draw_matrix(middle, self.adaptation * self.kernel, "F * K")
        numbers = np.arange(1, len(self.eigenvalues) + 1)
        right.semilogy(numbers, self.eigenvalues, "o", ms=4, color=Color.POSITIVE)
        right.set(title=f"F has rank {len(self.eigenvalues)}", xlabel="number", ylabel="eigenvalue")
