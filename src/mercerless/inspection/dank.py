"""Pictures of DANK models: convergence, the learned adaptation, and the boundary beside the plain machine's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless._optional import import_optional
from mercerless.inspection.spectra import NEGATIVE, NEUTRAL, POSITIVE, _axes, _despine


class DANKConvergenceDisplay:
    """Relative gap, missing objective and rank of a DANK model after every outer step.

    Parameters
    ----------
    objective, gap, rank : ndarray of shape (n_steps,)
        The history of one problem.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where gap and objective were drawn.
    rank_ax_ : matplotlib Axes
        Where the rank was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

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

    def __init__(self, objective: NDArray, gap: NDArray, rank: NDArray):
        self.objective = objective
        self.gap = gap
        self.rank = rank

    @classmethod
    def from_estimator(cls, estimator: Any, *, problem: int = 0, ax: Any = None) -> DANKConvergenceDisplay:
        """Draw the history of a fitted model.

        Parameters
        ----------
        estimator : DANKClassifier or DANKRegressor
            Fitted.
        problem : int, default=0
            Which pair of classes.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        DANKConvergenceDisplay
            The display.
        """
        check_is_fitted(estimator)
        objective, gap, rank = (np.array(column) for column in zip(*estimator.history_[problem]))
        return cls(objective, gap, rank).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> DANKConvergenceDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        DANKConvergenceDisplay
            The display.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        steps = np.arange(len(self.gap))
        missing = self.objective.max() - self.objective
        self.ax_.semilogy(steps, np.maximum(self.gap, 1e-16), "o-", color=POSITIVE, label="relative gap")
        if missing.max() > 0:
            size = max(abs(self.objective.max()), np.finfo(float).tiny)
            shown = missing > 0
            self.ax_.semilogy(
                steps[shown], missing[shown] / size, "s--", color=NEGATIVE, label="objective still missing, relative"
            )
        self.ax_.set(xlabel="outer step (repeated where the working set grew)", title="DANK's convergence")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.rank_ax_ = self.ax_.twinx()
        self.rank_ax_.step(steps, self.rank, where="mid", color=NEUTRAL, alpha=0.8)
        self.rank_ax_.set_ylabel("rank of the adaptation", color=NEUTRAL)
        self.rank_ax_.set_ylim(0, 1.3 * self.rank.max())
        self.rank_ax_.spines[["top"]].set_visible(False)
        self.ax_.spines[["top"]].set_visible(False)
        self.ax_.legend(frameon=False)
        return self


class AdaptationDisplay:
    """The learned factor F of the kernel matrix: a heat map over training rows, and its eigenvalues.

    Parameters
    ----------
    F : ndarray of shape (n, n)
        The block of F to show, in the order to show it.
    eigenvalues : ndarray of shape (rank,)
        The eigenvalues of the whole F.
    boundaries : ndarray or None, default=None
        Rows at which groups (such as classes) end.

    Attributes
    ----------
    axes_ : ndarray of 2 matplotlib Axes
        Heat map and spectrum.
    figure_ : matplotlib Figure
        Their figure.

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

    def __init__(self, F: NDArray, eigenvalues: NDArray, boundaries: NDArray | None = None):
        self.F = F
        self.eigenvalues = eigenvalues
        self.boundaries = boundaries

    @classmethod
    def from_estimator(
        cls, estimator: Any, y: ArrayLike | None = None, *, problem: int = 0, max_rows: int = 400, axes: Any = None
    ) -> AdaptationDisplay:
        """Draw the adaptation of a fitted model.

        Parameters
        ----------
        estimator : DANKClassifier or DANKRegressor
            Fitted.
        y : array-like of shape (n,) or None, default=None
            The training targets; rows are sorted by them, and within equal targets by their dual coefficients.
        problem : int, default=0
            Which pair of classes.
        max_rows : int, default=400
            At most so many rows are shown, those with the largest dual coefficients first.
        axes : sequence of 2 matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        AdaptationDisplay
            The display.
        """
        check_is_fitted(estimator)
        adaptation = estimator.adaptation_[problem]
        size = np.zeros(int(adaptation.rows.max()) + 1 if y is None else len(np.asarray(y)))
        size[estimator.support_] = np.abs(estimator.dual_solution_[problem])
        rows = adaptation.rows[np.argsort(-size[adaptation.rows], kind="stable")[:max_rows]]
        boundaries = None
        if y is None:
            rows = np.sort(rows)
        else:
            target = np.asarray(y)[rows]
            rows = rows[np.argsort(target, kind="stable")]
            counts = np.unique(target, return_counts=True)[1]
            boundaries = np.cumsum(counts)[:-1] if len(counts) <= 20 else None
        return cls(adaptation.matrix(rows), adaptation.eigenvalues(), boundaries).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> AdaptationDisplay:
        """Draw it.

        Parameters
        ----------
        axes : sequence of 2 matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        AdaptationDisplay
            The display.
        """
        plt = import_optional("matplotlib.pyplot", extra="plot", what="Drawing")
        if axes is None:
            axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=[1.15, 1])[1]
        self.axes_ = np.asarray(axes)
        self.figure_ = self.axes_[0].figure
        change = self.F - 1.0
        limit = max(float(np.quantile(np.abs(change), 0.995)), 1e-12)
        image = self.axes_[0].imshow(change, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        for boundary in [] if self.boundaries is None else self.boundaries:
            self.axes_[0].axhline(boundary - 0.5, color="black", lw=0.6)
            self.axes_[0].axvline(boundary - 0.5, color="black", lw=0.6)
        self.figure_.colorbar(image, ax=self.axes_[0], label="F - 1")
        self.axes_[0].set(title="change of the kernel matrix", xlabel="training row", ylabel="training row")
        ranks = np.arange(1, len(self.eigenvalues) + 1)
        self.axes_[1].semilogy(ranks, np.maximum(self.eigenvalues, 1e-16), "o-", color=POSITIVE, ms=4)
        self.axes_[1].set(title=f"eigenvalues of F (rank {len(ranks)})", xlabel="number", ylabel="eigenvalue")
        self.axes_[1].xaxis.get_major_locator().set_params(integer=True)
        _despine(self.axes_[1])
        return self


class DANKBoundaryDisplay:
    """Decision boundaries of a DANK classifier and a plain machine on two features.

    Parameters
    ----------
    grid_x, grid_y : ndarray of shape (m, m)
        Coordinates.
    adapted, plain : ndarray of shape (m, m)
        Decision values.
    X : ndarray of shape (n, 2)
        The points.
    y : ndarray of shape (n,)
        Their classes, two of them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from mercerless import DANKClassifier
    >>> from mercerless.datasets import make_clowns
    >>> from mercerless.inspection import DANKBoundaryDisplay
    >>> X, y = make_clowns(100, random_state=0)
    >>> models = DANKClassifier(C=10.0).fit(X, y), SVC(C=10.0).fit(X, y)
    >>> display = DANKBoundaryDisplay.from_estimators(*models, X, y)
    """

    def __init__(self, grid_x: NDArray, grid_y: NDArray, adapted: NDArray, plain: NDArray, X: NDArray, y: NDArray):
        self.grid_x = grid_x
        self.grid_y = grid_y
        self.adapted = adapted
        self.plain = plain
        self.X = X
        self.y = y

    @classmethod
    def from_estimators(
        cls, adapted: Any, plain: Any, X: ArrayLike, y: ArrayLike, *, n_grid: int = 150, ax: Any = None
    ) -> DANKBoundaryDisplay:
        """Draw two fitted two-class models.

        Parameters
        ----------
        adapted, plain : classifiers
            Fitted, with `decision_function`; `plain` is drawn dashed.
        X : array-like of shape (n, 2)
            The points.
        y : array-like of shape (n,)
            Their classes.
        n_grid : int, default=150
            Number of grid points per feature.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        DANKBoundaryDisplay
            The display.
        """
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        if X.ndim != 2 or X.shape[1] != 2 or len(np.unique(y)) != 2:
            raise ValueError("A boundary needs points with two features and two classes.")
        margin = 0.08 * np.ptp(X, axis=0)
        low, high = X.min(axis=0) - margin, X.max(axis=0) + margin
        grid_x, grid_y = np.meshgrid(*(np.linspace(a, b, n_grid) for a, b in zip(low, high)))
        points = np.column_stack([grid_x.ravel(), grid_y.ravel()])
        values = [model.decision_function(points).reshape(grid_x.shape) for model in (adapted, plain)]
        return cls(grid_x, grid_y, *values, X, y).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> DANKBoundaryDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        DANKBoundaryDisplay
            The display.
        """
        from matplotlib.lines import Line2D

        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        for label, marker, color in zip(np.unique(self.y), "ox", (POSITIVE, NEGATIVE)):
            here = self.y == label
            self.ax_.scatter(*self.X[here].T, s=14, marker=marker, color=color, alpha=0.55, linewidths=0.8)
        self.ax_.contour(self.grid_x, self.grid_y, self.plain, levels=[0.0], colors=[NEUTRAL], linestyles="--")
        self.ax_.contour(self.grid_x, self.grid_y, self.adapted, levels=[0.0], colors=["black"])
        handles = [Line2D([], [], color="black"), Line2D([], [], color=NEUTRAL, ls="--")]
        self.ax_.legend(handles, ["adapted", "plain machine"], frameon=True, framealpha=0.9, loc="best")
        self.ax_.set(xlabel="first feature", ylabel="second feature")
        _despine(self.ax_)
        return self
