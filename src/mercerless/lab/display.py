"""Pictures of a LAB model: its bandwidths, and the growth of its support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Color, Display


@dataclass(eq=False, repr=False)
class BandwidthDisplay(Display):
    """Which features matter where: the inverse bandwidth of every feature at every support point.

    Features are rows, the most relevant first; support points are columns, ordered by the model's prediction there.
    Create it with `from_estimator`.

    Parameters
    ----------
    relevance : ndarray of shape (n_support, n_features)
        One over the bandwidth, in units of the scaled features.
    order : ndarray of shape (n_support,)
        The predictions by which the support points are ordered.
    feature_names : sequence of str
        The features' names.
    form : str
        The kernel form, for the title.

    See Also
    --------
    GrowthDisplay : How the support grew.

    Examples
    --------
    >>> from mercerless import LABRegressor
    >>> from mercerless.datasets import make_lab_function
    >>> from mercerless.inspection import BandwidthDisplay
    >>> X, y = make_lab_function(200, function="f2", random_state=0)
    >>> model = LABRegressor(n_support=20, kernel="gaussian", max_iter=20, random_state=0).fit(X, y)
    >>> BandwidthDisplay.from_estimator(model).relevance.shape
    (20, 6)
    """

    relevance: NDArray
    order: NDArray
    feature_names: Sequence[str]
    form: str

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_features: int = 20, ax: Any = None) -> Self:
        """Draw the bandwidths of a fitted LAB model.

        Parameters
        ----------
        estimator : LABRegressor or LABClassifier
            A fitted model.
        max_features : int, default=20
            How many features are drawn.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : BandwidthDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        form = estimator.expansion_
        names = [f"x{j}" for j in range(estimator.n_features_in_)]
        names = list(getattr(estimator, "feature_names_in_", names))
        order = form(form.support_vectors)[:, 0]
        display = cls(1 / form.bandwidths, order=order, feature_names=names, form=form.name)
        return display.plot(max_features=max_features, ax=ax)

    def _draw(self, ax: Any, max_features: int = 20) -> None:
        most_relevant = np.argsort(-self.relevance.mean(axis=0), kind="stable")
        features = most_relevant[:max_features]
        by_prediction = np.argsort(self.order, kind="stable")
        image = self.relevance[by_prediction][:, features].T
        picture = ax.imshow(image, aspect="auto", interpolation="nearest", cmap="cividis", vmin=0)
        ax.set_yticks(range(len(features)), [self.feature_names[i] for i in features])
        ax.set_xlabel("support points, by prediction")
        ax.set_title(f"Where features matter ({self.form} form)")
        ax.figure.colorbar(picture, ax=ax, label="1 / bandwidth")


@dataclass(eq=False, repr=False)
class GrowthDisplay(Display):
    """How the support of a LAB model grew: the largest squared error after every round.

    Create it with `from_estimator`.

    Parameters
    ----------
    n_support : ndarray of shape (n_rounds,)
        Support points.
    error : ndarray of shape (n_rounds,)
        The largest squared error of a row.
    bound : float or None, default=None
        The error at which growth ends.

    See Also
    --------
    BandwidthDisplay : What the support points have learned.

    Examples
    --------
    >>> from mercerless import LABRegressor, Support
    >>> from mercerless.datasets import make_lab_function
    >>> from mercerless.inspection import GrowthDisplay
    >>> X, y = make_lab_function(200, function="f1", random_state=0)
    >>> model = LABRegressor(Support(20, max_error=0.5), objective="interpolation", max_iter=50).fit(X, y)
    >>> bool(GrowthDisplay.from_estimator(model).error[-1] <= 0.5)
    True
    """

    n_support: NDArray
    error: NDArray
    bound: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the growth of a fitted model.

        Parameters
        ----------
        estimator : LABRegressor or LABClassifier
            Fitted with a `Support` that grows.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : GrowthDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        bound = getattr(estimator.n_support, "max_error", None)
        n_support, error = estimator.growth_curve_.T
        return cls(n_support, error, bound).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax.plot(self.n_support, self.error, marker=".", color=Color.POSITIVE)
        if self.bound is not None:
            ax.axhline(self.bound, color=Color.NEGATIVE, linewidth=0.8, label="max_error")
            ax.legend(frameon=False)
        ax.set(xlabel="support points", ylabel="largest squared error", yscale="log")
