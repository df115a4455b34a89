"""Pictures of Krein models: the validation surface and the parts f+ and f-."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Color, Display
from mercerless.core.validation import check_option


@dataclass(eq=False, repr=False)
class ValidationSurfaceDisplay(Display):
    """Validation error over the grid of penalties and radii, with the chosen setting marked.

    Parameters
    ----------
    alpha : ndarray of shape (n_alphas,)
        Values of alpha_positive.
    other : ndarray of shape (n_others,) or None
        Values of the second parameter; None draws a curve.
    error : ndarray of shape (n_alphas,) or (n_others, n_alphas)
        The least validation error over the remaining parameter.
    chosen : tuple of float
        The setting that was chosen.
    other_name : str, default="alpha_negative / alpha_positive"
        The name of the second parameter.

    See Also
    --------
    KreinPartsDisplay : What the chosen setting predicts.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge
    >>> from mercerless.inspection import ValidationSurfaceDisplay
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge().fit(X, np.sin(X[:, 0]))
    >>> display = ValidationSurfaceDisplay.from_estimator(model)
    """

    alpha: NDArray
    other: NDArray | None
    error: NDArray
    chosen: tuple[float, float]
    other_name: str = "alpha_negative / alpha_positive"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, other: str = "ratio", ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the grid that a fitted model searched.

        Parameters
        ----------
        estimator : KreinRidge or KreinRidgeClassifier
            Fitted without `GradientSearch`, over more than one candidate.
        other : {"ratio", "radius"}, default="ratio"
            The second axis; the error is the least over the third parameter.
        ax : matplotlib Axes or None, default=None
            Where to draw.
        **kwargs : dict
            For ``Axes.pcolormesh`` or ``Axes.plot``.

        Returns
        -------
        ValidationSurfaceDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        table = getattr(estimator, "cv_results_", None)
        if table is None:
            raise ValueError(
                "The model searched no grid; leave alpha_positive or alpha_negative at None, or "
                "give arrays."
            )
        check_option("other", other, ("ratio", "radius"))
        plus = np.asarray(table["alpha_positive"])
        if other == "radius":
            if table["radius"] is None:
                raise ValueError(
                    "The model has no radius; fit it with constraint=Sphere() or Ball()."
                )
            second = np.asarray(table["radius"])[:, 0]
            name = "radius"
        else:
            second = np.asarray(table["alpha_negative"]) / plus
            name = "alpha_negative / alpha_positive"
        alpha, columns = np.unique(np.round(np.log10(plus), 9), return_inverse=True)
        values, rows = np.unique(np.round(second, 9), return_inverse=True)
        # arrays as penalties leave ratios without a value
        error = np.full((len(values), len(alpha)), np.nan)
        np.fmin.at(error, (rows, columns), table["error"])
        best = estimator.best_index_
        single = len(values) == 1
        display = cls(
            10**alpha,
            None if single else values,
            error[0] if single else error,
            (plus[best], second[best]),
            name,
        )
        return display.plot(ax=ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> None:
        if self.other is None:
            ax.plot(self.alpha, self.error, **{"color": Color.POSITIVE, "marker": "."} | kwargs)
            ax.axvline(self.chosen[0], color=Color.NEGATIVE, label="chosen")
            ax.set(xscale="log", yscale="log", ylabel="validation error")
            ax.legend(frameon=False)
        else:
            from matplotlib.colors import LogNorm
            from matplotlib.ticker import FixedLocator, NullFormatter

            rows = np.arange(len(self.other))
            ratio = np.sqrt(self.alpha[1] / self.alpha[0]) if len(self.alpha) > 1 else 2.0
            edges = np.r_[self.alpha / ratio, self.alpha[-1] * ratio]
            mesh = ax.pcolormesh(
                edges,
                np.r_[rows - 0.5, rows[-1] + 0.5],
                self.error,
                **{"cmap": "viridis", "norm": LogNorm()} | kwargs,
            )
            position = np.argmin(np.abs(self.other - self.chosen[1]))
            ax.plot(
                self.chosen[0], position, "o", mfc="none", mec="white", ms=12, mew=2, label="chosen"
            )
            ax.set_xscale("log")
            ax.set_ylabel(self.other_name)
            ax.yaxis.set_major_locator(FixedLocator(rows.tolist()))
            ax.set_yticklabels([f"{v:.3g}" for v in self.other])
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.figure.colorbar(mesh, ax=ax, label="validation error")
        ax.set_xlabel("alpha_positive")


@dataclass(eq=False, repr=False)
class KreinPartsDisplay(Display):
    """The parts f+ and f- of a Krein model: along one feature, or against each other.

    Parameters
    ----------
    positive, negative : ndarray of shape (n,)
        The parts at the items shown.
    intercept : float
        The intercept, which is added to their sum.
    position : ndarray of shape (n,) or None, default=None
        Positions along one axis; None draws f- against f+.
    target : ndarray of shape (n,) or None, default=None
        Targets, for the points' heights or colors.

    See Also
    --------
    ValidationSurfaceDisplay : The settings that were compared.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge
    >>> from mercerless.inspection import KreinPartsDisplay
    >>> from mercerless.kernels import DeltaGauss
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge(DeltaGauss(1.0, 0.3)).fit(X, np.sin(X[:, 0]))
    >>> display = KreinPartsDisplay.from_estimator(model, X, np.sin(X[:, 0]))
    """

    positive: NDArray
    negative: NDArray
    intercept: float
    position: NDArray | None = None
    target: NDArray | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        feature: int | None = None,
        output: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the parts at the items of X.

        Parameters
        ----------
        estimator : KreinRidge or KreinRidgeClassifier
            A fitted model.
        X : array-like or sequence
            Items, as for ``predict``.
        y : array-like of shape (n,) or None, default=None
            Their targets.
        feature : int or None, default=None
            The column of X to draw along; None takes the only column, or draws f- against f+.
        output : int, default=0
            Which output (or class) to draw.
        ax : matplotlib Axes or None, default=None
            Where to draw.
        **kwargs : dict
            For ``Axes.plot`` or ``Axes.scatter``.

        Returns
        -------
        KreinPartsDisplay
            The drawn display.
        """
        positive, negative = (
            np.asarray(part).reshape(len(part), -1)[:, output]
            for part in estimator.predict_parts(X)
        )
        position = None
        pairwise = estimator.__sklearn_tags__().input_tags.pairwise
        if feature is not None:
            position = np.asarray(X)[:, feature]
        elif not pairwise and np.ndim(X) == 2 and np.shape(X)[1] == 1:
            position = np.asarray(X)[:, 0]
        intercept = float(np.atleast_1d(estimator.intercept_)[output])
        targets = None
        if y is not None:
            targets = np.asarray(y)
        display = cls(positive, negative, intercept, position, targets)
        return display.plot(ax=ax, **kwargs)

    def _draw(self, ax: Any, **kwargs: Any) -> None:
        if self.position is not None:
            order = np.argsort(self.position, kind="stable")
            x = self.position[order]
            whole = self.positive + self.negative + self.intercept
            if self.target is not None and self.target.dtype.kind in "fiu":
                ax.plot(x, self.target[order], ".", color=Color.NEUTRAL, alpha=0.6, label="y")
            ax.plot(x, whole[order], color="black", label="f", **kwargs)
            ax.plot(x, self.positive[order], color=Color.POSITIVE, label="f+", **kwargs)
            ax.plot(x, self.negative[order], color=Color.NEGATIVE, label="f-", **kwargs)
            ax.legend(frameon=False)
            ax.set(xlabel="feature", ylabel="value")
        elif self.target is not None and self.target.dtype.kind != "f":
            for value, color in zip(
                np.unique(self.target), Color.SERIES * (1 + len(np.unique(self.target)) // 6)
            ):
                rows = self.target == value
                options = {"s": 12, "color": color, "label": value} | kwargs
                ax.scatter(self.positive[rows], self.negative[rows], **options)
            ax.legend(frameon=False)
        else:
            points = ax.scatter(
                self.positive, self.negative, **{"s": 12, "c": self.target} | kwargs
            )
            if self.target is not None:
                ax.figure.colorbar(points, ax=ax, label="y")
        if self.position is None:
            ax.set(xlabel="f+", ylabel="f-")
            ax.axhline(0, color=Color.NEUTRAL, lw=0.5)
            ax.axvline(0, color=Color.NEUTRAL, lw=0.5)
