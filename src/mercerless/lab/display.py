"""Pictures of a LAB model: its bandwidths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Display
from mercerless.lab.model import LocalForm


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
    KernelMatrixDisplay : A kernel matrix.

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
        feature_names: Sequence[str] | None = None,
        max_features: int = 20,
        ax: Any = None,
    ) -> Self:
        """Draw the bandwidths of a fitted LAB model.

        Parameters
        ----------
        estimator : LABRegressor, LABClassifier or LocalForm
            A fitted model, or a kernel form among the ``members_`` of a `TableRegressor` or `TableClassifier`.
        feature_names : sequence of str or None, default=None
            Names (of a form those of ``encoding_.names``); None takes the names seen in fit, or numbers.
        max_features : int, default=20
            How many features are drawn.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : BandwidthDisplay
            The drawn display.
        """
        if isinstance(estimator, LocalForm):
            form = estimator
            names = [f"x{j}" for j in range(form.centers.shape[1])]
        else:
            check_is_fitted(estimator)
            form = estimator.expansion_
            names = [f"x{j}" for j in range(estimator.n_features_in_)]
            names = list(getattr(estimator, "feature_names_in_", names))
        if feature_names is not None:
            names = list(feature_names)
        widths = form.bandwidths
        if len(names) != widths.shape[1]:
            raise ValueError(
                f"There are {len(names)} feature names for {widths.shape[1]} features."
            )
        order = form(form.support_vectors)[:, 0]
        display = cls(1 / widths, order=order, feature_names=names, form=form.name)
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
