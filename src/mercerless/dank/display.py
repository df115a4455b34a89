"""Pictures of DANK models: convergence and the learned adaptation."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.inspection.base import NEGATIVE, NEUTRAL, POSITIVE, Display


@dataclass(eq=False, repr=False)
class DANKConvergenceDisplay(Display):
    """Relative gap, missing objective and rank of a DANK model after every outer step.

    Parameters
    ----------
    objective, gap, rank : ndarray of shape (n_steps,)
        The history of one pair of classes, or of the regression.

    Attributes
    ----------
    rank_ax_ : matplotlib Axes
        Where the rank was drawn.

    See Also
    --------
    AdaptationDisplay : What was learned.

    Examples
    --------
    >>> from mercerless import DANKClassifier
    >>> from mercerless.datasets import make_clowns
    >>> from mercerless.inspection import DANKConvergenceDisplay
    >>> X, y = make_clowns(100, random_state=0)
    >>> display = DANKConvergenceDisplay.from_estimator(DANKClassifier(C=10.0).fit(X, y))
    """

    objective: NDArray
    gap: NDArray
    rank: NDArray

    @classmethod
    def from_estimator(cls, estimator: Any, *, pair: int = 0, ax: Any = None) -> Self:
        """Draw the history of a fitted model.

        Parameters
        ----------
        estimator : DANKClassifier or DANKRegressor
            Fitted.
        pair : int, default=0
            Which pair of classes.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        DANKConvergenceDisplay
            The display.
        """
        check_is_fitted(estimator)
        objective, gap, rank = (np.array(column) for column in zip(*estimator.history_[pair]))
        return cls(objective, gap, rank).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        steps = np.arange(len(self.gap))
        missing = self.objective.max() - self.objective
        ax.semilogy(steps, np.maximum(self.gap, 1e-16), "o-", color=POSITIVE, label="relative gap")
        if missing.max() > 0:
            size = max(abs(self.objective.max()), np.finfo(float).tiny)
            shown = missing > 0
            label = "objective still missing, relative"
            ax.semilogy(steps[shown], missing[shown] / size, "s--", color=NEGATIVE, label=label)
        ax.set(
            xlabel="outer step (repeated where the working set grew)", title="DANK's convergence"
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        self.rank_ax_ = ax.twinx()
        self.rank_ax_.step(steps, self.rank, where="mid", color=NEUTRAL, alpha=0.8)
        self.rank_ax_.set_ylabel("rank of the adaptation", color=NEUTRAL)
        self.rank_ax_.set_ylim(0, 1.3 * self.rank.max())
        self.rank_ax_.spines[["top"]].set_visible(False)


@dataclass(eq=False, repr=False)
class AdaptationDisplay(Display):
    """The learned factor F of the kernel matrix: a heat map over training rows, and its eigenvalues.

    Parameters
    ----------
    F : ndarray of shape (n, n)
        The block of F to show, in the order to show it.
    eigenvalues : ndarray of shape (rank,)
        The eigenvalues of the whole F.
    boundaries : ndarray or None, default=None
        Rows at which groups (such as classes) end.

    See Also
    --------
    DANKConvergenceDisplay : How it was found.

    Examples
    --------
    >>> from mercerless import DANKClassifier
    >>> from mercerless.datasets import make_clowns
    >>> from mercerless.inspection import AdaptationDisplay
    >>> X, y = make_clowns(100, random_state=0)
    >>> display = AdaptationDisplay.from_estimator(DANKClassifier(C=10.0).fit(X, y), y)
    """

    F: NDArray
    eigenvalues: NDArray
    boundaries: NDArray | None = None

    _layout: ClassVar = {"nrows": 1, "ncols": 2, "figsize": (10, 4.2), "width_ratios": [1.15, 1]}

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        y: ArrayLike | None = None,
        *,
        pair: int = 0,
        max_rows: int = 400,
        ax: Any = None,
    ) -> Self:
        """Draw the adaptation of a fitted model.

        Parameters
        ----------
        estimator : DANKClassifier or DANKRegressor
            Fitted.
        y : array-like of shape (n,) or None, default=None
            The training targets; rows are sorted by them, and within equal targets by their dual coefficients.
        pair : int, default=0
            Which pair of classes.
        max_rows : int, default=400
            At most so many rows are shown, those with the largest dual coefficients first.
        ax : sequence of 2 matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        AdaptationDisplay
            The display.
        """
        check_is_fitted(estimator)
        adaptation = estimator.adaptation_[pair]
        size = np.zeros(int(adaptation.rows.max()) + 1 if y is None else len(np.asarray(y)))
        size[estimator.support_] = np.abs(estimator.dual_solution_[pair])
        rows = adaptation.rows[np.argsort(-size[adaptation.rows], kind="stable")[:max_rows]]
        boundaries = None
        if y is None:
            rows = np.sort(rows)
        else:
            target = np.asarray(y)[rows]
            rows = rows[np.argsort(target, kind="stable")]
            counts = np.unique(target, return_counts=True)[1]
            boundaries = np.cumsum(counts)[:-1] if len(counts) <= 20 else None
        return cls(adaptation.matrix(rows), adaptation.eigenvalues(), boundaries).plot(ax=ax)

    def _draw(self, left: Any, right: Any) -> None:
        change = self.F - 1.0
        limit = max(float(np.quantile(np.abs(change), 0.995)), 1e-12)
        image = left.imshow(change, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        for boundary in [] if self.boundaries is None else self.boundaries:
            left.axhline(boundary - 0.5, color="black", lw=0.6)
            left.axvline(boundary - 0.5, color="black", lw=0.6)
        left.figure.colorbar(image, ax=left, label="F - 1")
        left.set(title="change of the kernel matrix", xlabel="training row", ylabel="training row")
        ranks = np.arange(1, len(self.eigenvalues) + 1)
        right.semilogy(ranks, np.maximum(self.eigenvalues, 1e-16), "o-", color=POSITIVE, ms=4)
        right.set(
            title=f"eigenvalues of F (rank {len(ranks)})", xlabel="number", ylabel="eigenvalue"
        )
        right.xaxis.get_major_locator().set_params(integer=True)
