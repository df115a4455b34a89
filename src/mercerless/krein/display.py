"""Pictures of Krein models: the validation errors and the parts f+ and f-."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Color, Display


@dataclass(eq=False, repr=False)
class ValidationSurfaceDisplay(Display):
    """Validation error of every strength of the penalties, a curve for each ratio, with the chosen setting marked.

    Parameters
    ----------
    alpha : ndarray of shape (n_alphas,)
        Values of alpha_positive.
    ratio : ndarray of shape (n_ratios,)
        Values of alpha_negative / alpha_positive.
    error : ndarray of shape (n_ratios, n_alphas)
        The validation error, the least over radii; not a number where nothing was tried.
    chosen : tuple of float
        alpha_positive and the ratio that were chosen.

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
    ratio: NDArray
    error: NDArray
    chosen: tuple[float, float]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the grid that a fitted model searched.

        Parameters
        ----------
        estimator : KreinRidge or KreinRidgeClassifier
            Fitted without `GradientSearch`, over more than one candidate.
        ax : matplotlib Axes or None, default=None
            Where to draw.

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
        alpha = table["alpha_positive"]
        ratio = table["alpha_negative"] / alpha
        logarithms, columns = np.unique(np.round(np.log10(alpha), 9), return_inverse=True)
        ratios, rows = np.unique(np.round(ratio, 9), return_inverse=True)
        error = np.full((len(ratios), len(logarithms)), np.nan)
        np.fmin.at(error, (rows, columns), table["error"])
        best = estimator.best_index_
        return cls(10**logarithms, ratios, error, (alpha[best], ratio[best])).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        for ratio, error in zip(self.ratio, self.error):
            ax.plot(self.alpha, error, marker=".", label=f"{ratio:.3g}")
        ax.axvline(
            self.chosen[0], color=Color.NEUTRAL, lw=0.8, label=f"chosen: {self.chosen[1]:.3g}"
        )
        ax.legend(frameon=False, title="alpha_negative / alpha_positive")
        ax.set(xscale="log", yscale="log", xlabel="alpha_positive", ylabel="validation error")


@dataclass(eq=False, repr=False)
class KreinPartsDisplay(Display):
    """The parts f+ and f- of a Krein model: along the only feature, or against each other.

    Parameters
    ----------
    positive, negative : ndarray of shape (n,)
        The parts at the items shown.
    intercept : float
        The intercept, which is added to their sum.
    position : ndarray of shape (n,) or None, default=None
        Positions along one axis; None draws f- against f+.
    target : ndarray of shape (n,) or None, default=None
        Targets, for the points' heights or colors; of classes their numbers.

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
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, *, output: int = 0, ax: Any = None
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
        output : int, default=0
            Which output (or class) to draw.
        ax : matplotlib Axes or None, default=None
            Where to draw.

        Returns
        -------
        KreinPartsDisplay
            The drawn display.
        """
        parts = estimator.predict_parts(X)
        positive, negative = (part.reshape(len(part), -1)[:, output] for part in parts)
        position = np.asarray(X)[:, 0] if np.ndim(X) == 2 and np.shape(X)[1] == 1 else None
        target = None if y is None else np.asarray(y)
        if target is not None and target.dtype.kind not in "fiu":
            target = np.unique(target, return_inverse=True)[1]
        intercept = float(np.atleast_1d(estimator.intercept_)[output])
        return cls(positive, negative, intercept, position, target).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        if self.position is None:
            points = ax.scatter(self.positive, self.negative, s=12, c=self.target)
            if self.target is not None:
                ax.figure.colorbar(points, ax=ax, label="y")
            ax.set(xlabel="f+", ylabel="f-")
            return
        order = np.argsort(self.position, kind="stable")
        whole = self.positive + self.negative + self.intercept
        curves = {"f": whole, "f+": self.positive, "f-": self.negative}
        for (label, curve), color in zip(curves.items(), ("black", Color.POSITIVE, Color.NEGATIVE)):
            ax.plot(self.position[order], curve[order], color=color, label=label)
        if self.target is not None:
            ax.plot(self.position, self.target, ".", color=Color.NEUTRAL, alpha=0.6, label="y")
        ax.legend(frameon=False)
        ax.set(xlabel="feature", ylabel="value")
