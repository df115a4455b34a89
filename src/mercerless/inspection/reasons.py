"""A picture of the reasons for one prediction: the training items for and against it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.display import Color, Display


@dataclass(eq=False, repr=False)
class ReasonsDisplay(Display):
    """Shares of training items in the score of one prediction, as bars for and against it.

    Create it with `from_estimator`, or with `from_predictions` from the result of ``explain``.

    Parameters
    ----------
    names : sequence of str
        The label of every bar.
    shares : ndarray of shape (n_bars,)
        Their lengths, which add up to the score.
    title : str
        The prediction in words.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        Its figure.

    See Also
    --------
    AverageDisplay : The value of every family of an average.

    Examples
    --------
    >>> from mercerless import KreinRidgeClassifier
    >>> from mercerless.inspection import ReasonsDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinRidgeClassifier(random_state=0).fit(X[::2], y[::2])
    >>> display = ReasonsDisplay.from_estimator(model, X[1:2], k=3)
    >>> display.title.split(" rather")[0]
    '0'
    """

    names: Sequence[str]
    shares: NDArray
    title: str

    _layout: ClassVar = {"figsize": (6.4, 3.6)}

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        index: int = 0,
        k: int = 5,
        item_names: Sequence[Any] | None = None,
        ax: Any = None,
        **new: Any,
    ) -> Self:
        """Explain a prediction of a fitted model and draw it.

        Parameters
        ----------
        estimator : estimator with ``explain``
            Fitted.
        X : array-like or sequence of items
            New items, as for its ``explain``.
        index : int, default=0
            The item whose prediction is drawn.
        k : int, default=5
            Number of training items named for and against the prediction.
        item_names : sequence or None, default=None
            Names of the training items; None numbers them.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        **new : dict
            Further arguments of ``explain``, such as ``train`` or ``reverse``.

        Returns
        -------
        display : ReasonsDisplay
            The drawn display.
        """
        if not hasattr(estimator, "explain"):
            raise ValueError(
                f"{type(estimator).__name__} has no explain; its predictions are not sums over "
                "items."
            )
        return cls.from_predictions(
            estimator.explain(X, k, **new), index=index, item_names=item_names, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        reasons: Any,
        *,
        index: int = 0,
        item_names: Sequence[Any] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw one of the explained predictions.

        Parameters
        ----------
        reasons : Reasons
            The result of ``explain``.
        index : int, default=0
            The prediction to draw.
        item_names : sequence or None, default=None
            Names of the training items; None numbers them.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ReasonsDisplay
            The drawn display.
        """
        if not -len(reasons.score) <= index < len(reasons.score):
            raise ValueError(
                f"index={index} is not one of the {len(reasons.score)} explained predictions."
            )
        items = np.flatnonzero(reasons.items[index] >= 0)
        # from the strongest for the prediction to the strongest against it
        order = items[np.argsort(-reasons.shares[index, items], kind="stable")]
        names = [reasons.name(index, place, item_names) for place in order]
        shares = [*reasons.shares[index, order], reasons.rest[index], reasons.base[index]]
        title = reasons.text(index).splitlines()[0]
        labels = [*names, "all other items", "without any item"]
        return cls(labels, np.array(shares), title).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        rows = np.arange(len(self.shares))[::-1]
        named = np.arange(len(rows)) < len(rows) - 2
        colors = np.where(self.shares >= 0.0, Color.POSITIVE, Color.NEGATIVE)
        ax.barh(rows, self.shares, height=0.7, color=np.where(named, colors, Color.NEUTRAL))
        ax.axvline(0.0, color=Color.NEUTRAL, linewidth=0.8)
        for row, share in zip(rows, self.shares):
            side = 1 if share >= 0.0 else -1
            ax.annotate(
                f"{share:+.2g}",
                (share, row),
                (3 * side, 0),
                textcoords="offset points",
                va="center",
                ha="left" if side > 0 else "right",
            )
        ax.margins(x=0.15)
        ax.set(yticks=rows, yticklabels=self.names, xlabel="share of the score")
        ax.set_title(self.title, loc="left", fontsize="medium")
