"""Pictures of a LAB model: its bandwidths, its descent, and a fit in one dimension."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.inspection.base import COLORS, NEGATIVE, NEUTRAL, POSITIVE, Display
from mercerless.table.target import kernel_forms, sum_of_forms


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
        What the support points are ordered by.
    feature_names : sequence of str
        The features' names.
    form : str
        The kernel form, for the title.

    See Also
    --------
    DescentDisplay : How the bandwidths were learned.

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
    def from_estimator(
        cls,
        estimator: Any,
        *,
        form: int = 0,
        feature_names: Sequence[str] | None = None,
        max_features: int = 20,
        ax: Any = None,
    ) -> Self:
        """Draw the bandwidths of a fitted LAB model.

        Parameters
        ----------
        estimator : LABRegressor or LABClassifier
            A fitted model.
        form : int, default=0
            Which of several kernel forms, in the order of the model's ``forms_``, those of a transformed target too.
        feature_names : sequence of str or None, default=None
            Names; None takes the names seen in fit, or numbers.
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
        forms = kernel_forms(estimator.forms_)
        if not 0 <= form < len(forms):
            raise ValueError(
                f"form={form} does not exist: the model has {len(forms)} kernel form(s)."
            )
        shown = forms[form]
        widths = shown.bandwidths
        scores = sum_of_forms(estimator.forms_, shown.support_vectors)
        names = list(estimator.encoding_.names if feature_names is None else feature_names)
        if len(names) != widths.shape[1]:
            raise ValueError(
                f"There are {len(names)} feature names for {widths.shape[1]} features."
            )
        order = scores[:, 0]
        display = cls(1 / widths, order=order, feature_names=names, form=shown.name)
        return display.plot(max_features=max_features, ax=ax)

    def _draw(self, ax: Any, max_features: int = 20) -> None:
        features = np.argsort(-self.relevance.mean(axis=0), kind="stable")[:max_features]
        image = self.relevance[np.argsort(self.order, kind="stable")][:, features].T
        picture = ax.imshow(image, aspect="auto", interpolation="nearest", cmap="cividis", vmin=0)
        ax.set_yticks(range(len(features)), [self.feature_names[i] for i in features])
        ax.set_xlabel("support points, by prediction")
        ax.set_title(f"Where features matter ({self.form} form)")
        ax.figure.colorbar(picture, ax=ax, label="1 / bandwidth")


@dataclass(eq=False, repr=False)
class DescentDisplay(Display):
    """The objective after every iteration, and the validation error at the checkpoints of every form.

    Create it with `from_estimator`.

    Parameters
    ----------
    loss : ndarray
        The objective after every iteration; it starts anew at a higher or lower value where growth added support.
    validation : dict of str to ndarray of shape (n_checkpoints, 2)
        Per form: iterations and validation errors.

    See Also
    --------
    BandwidthDisplay : What was learned.

    Examples
    --------
    >>> from mercerless import LABRegressor
    >>> from mercerless.datasets import make_lab_function
    >>> from mercerless.inspection import DescentDisplay
    >>> X, y = make_lab_function(200, function="f1", random_state=0)
    >>> model = LABRegressor(n_support=20, max_iter=20, random_state=0).fit(X, y)
    >>> sorted(DescentDisplay.from_estimator(model).validation)
    ['gaussian', 'laplace']
    """

    loss: NDArray
    validation: dict[str, NDArray]

    _layout: ClassVar = {"nrows": 1, "ncols": 2, "figsize": (9, 3.4)}

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the descent of a fitted LAB model.

        Parameters
        ----------
        estimator : LABRegressor or LABClassifier
            A fitted model.
        ax : sequence of two matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : DescentDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        return cls(estimator.loss_curve_, validation=estimator.validation_curve_).plot(ax=ax)

    def _draw(self, left: Any, right: Any) -> None:
        left.plot(self.loss, color=POSITIVE)
        left.set(xlabel="iteration", ylabel="objective", title="Objective")
        for (form, curve), color in zip(self.validation.items(), COLORS):
            right.plot(curve[:, 0], curve[:, 1], "o-", color=color, label=form, markersize=4)
            best = int(np.argmin(curve[:, 1]))
            right.plot(
                curve[best, 0], curve[best, 1], "o", color=color, markersize=10, fillstyle="none"
            )
        right.set(
            xlabel="iteration", ylabel="mean squared error", title="Validation (ring: chosen)"
        )
        values = np.concatenate([curve[:, 1] for curve in self.validation.values()] or [np.ones(1)])
        if values.max() > 10 * values.min() > 0:
            right.set_yscale("log")
        if self.validation:
            right.legend(frameon=False)


@dataclass(eq=False, repr=False)
class LocalFitDisplay(Display):
    """A fit in one dimension: the data and the function, and below the bandwidth of every support point.

    The picture of the paper's Figure 1. Create it with `from_estimator`.

    Parameters
    ----------
    X, y : ndarray of shape (n,)
        The data.
    grid, curve : ndarray
        Where the function was evaluated, and its values.
    centers, widths : ndarray of shape (n_terms,)
        Support points and their bandwidths in units of X.

    See Also
    --------
    BandwidthDisplay : Bandwidths of several features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import LABRegressor
    >>> from mercerless.inspection import LocalFitDisplay
    >>> x = np.linspace(-2, 2, 150)
    >>> model = LABRegressor(n_support=15, kernel="gaussian", random_state=0).fit(x[:, None], np.sin(2 * x**3))
    >>> len(LocalFitDisplay.from_estimator(model, x[:, None], np.sin(2 * x**3)).centers)
    15
    """

    X: NDArray
    y: NDArray
    grid: NDArray
    curve: NDArray
    centers: NDArray
    widths: NDArray

    _layout: ClassVar = {
        "nrows": 2,
        "ncols": 1,
        "figsize": (6.4, 5),
        "sharex": True,
        "height_ratios": [3, 1.2],
    }

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, y: ArrayLike, *, ax: Any = None) -> Self:
        """Draw the fit of a LABRegressor with one feature.

        Parameters
        ----------
        estimator : LABRegressor
            A fitted model.
        X : array-like of shape (n, 1)
            The data.
        y : array-like of shape (n,)
            The targets.
        ax : sequence of two matplotlib Axes or None, default=None
            Where to draw the fit and, below, the bandwidths; None makes a figure.

        Returns
        -------
        display : LocalFitDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        if estimator.n_features_in_ != 1:
            raise ValueError(
                f"This picture needs one feature; the model has {estimator.n_features_in_}."
            )
        X = np.asarray(X, dtype=float).ravel()
        y = np.asarray(y, dtype=float).ravel()
        grid = np.linspace(X.min(), X.max(), 600)
        centers = estimator.support_vectors_.ravel()
        # from scaled units back to units of X by the local slope of the scaling
        step = 1e-6 * (np.ptp(X) or 1.0)
        slope = (
            estimator.scaling_(centers[:, None] + step)
            - estimator.scaling_(centers[:, None] - step)
        ) / (2 * step)
        widths = estimator.bandwidths_.ravel() / np.abs(slope.ravel())
        display = cls(
            X, y, grid=grid, curve=estimator.predict(grid[:, None]), centers=centers, widths=widths
        )
        return display.plot(ax=ax)

    def _draw(self, top: Any, bottom: Any) -> None:
        top.plot(self.X, self.y, ".", color=NEUTRAL, markersize=4, label="data")
        top.plot(self.grid, self.curve, color=POSITIVE, label="fit")
        top.set(
            ylabel="y", title=f"{len(self.centers)} support points, each with its own bandwidth"
        )
        top.legend(frameon=False, ncols=2, loc="lower right")
        bottom.plot(self.centers, self.widths, "o", color=NEGATIVE, markersize=4)
        bottom.set(xlabel="x", ylabel="bandwidth", yscale="log")
