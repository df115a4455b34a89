"""A picture of an average: losses of its families alone, and their weights in the average."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercerless.core.display import Color, Display


@dataclass(eq=False, repr=False)
class AverageDisplay(Display):
    """Out-of-fold loss and weight of every family of a `SimilarityClassifier` or `SimilarityRegressor`.

    Create it with `from_estimator`. Left: the loss of the family's best setting alone, with the average's as a line.
    Right: the sum of the family's weights. The title is the verdict on the negative part of the spectrum.

    Parameters
    ----------
    scores : mapping of str to mapping
        The estimator's ``family_scores_``.
    loss : str
        The loss to show, ``"log_loss"`` or ``"mse"``.
    sentence : str, default=""
        The verdict on the negative part of the spectrum.

    See Also
    --------
    SpectrumDisplay : The eigenvalues the verdict is about.

    Examples
    --------
    >>> from mercerless import SimilarityClassifier
    >>> from mercerless.datasets import load_digit_shapes
    >>> from mercerless.inspection import AverageDisplay
    >>> shapes = load_digit_shapes(100)
    >>> model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(shapes.D, shapes.target)
    >>> AverageDisplay.from_estimator(model).loss
    'log_loss'
    """

    scores: Mapping[str, Mapping[str, float]]
    loss: str
    sentence: str = ""

    _layout: ClassVar = {"nrows": 1, "ncols": 2, "sharey": True, "figsize": (8.5, 3.2)}

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the families of a fitted average, or its similarities if it has several.

        Parameters
        ----------
        estimator : SimilarityClassifier or SimilarityRegressor
            Fitted.
        ax : sequence of two matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AverageDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        scores = getattr(estimator, "family_scores_", None)
        if scores is None:
            raise ValueError(
                f"{type(estimator).__name__} is not an average of families; pass a SimilarityClassifier or "
                "SimilarityRegressor."
            )
        loss = "log_loss" if "log_loss" in scores["average"] else "mse"
        return cls(scores, loss=loss, sentence=str(estimator.negative_spectrum_)).plot(ax=ax)

    def _draw(self, left: Any, right: Any) -> None:
        families = [name for name in self.scores if name != "average"]
        rows = np.arange(len(families))[::-1]
        left.axvline(self.scores["average"][self.loss], color=Color.NEGATIVE, label="average")
        left.scatter(
            [self.scores[name][self.loss] for name in families],
            rows,
            color=Color.POSITIVE,
            zorder=3,
            label="alone",
        )
        label = (
            "out-of-fold log-loss" if self.loss == "log_loss" else "out-of-fold error / variance"
        )
        left.set(xlabel=label, yticks=rows, yticklabels=families)
        left.grid(axis="x", alpha=0.3)
        left.legend(frameon=False)
        left.set_title(self.sentence, loc="left", fontsize="medium")
        weights = [self.scores[name]["weight"] for name in families]
        right.barh(rows, weights, height=0.6, color=Color.POSITIVE)
        for row, weight in zip(rows, weights):
            right.annotate(
                f"{weight:.2f}", (weight, row), (4, 0), textcoords="offset points", va="center"
            )
        right.set(xlabel="weight", xlim=(0.0, 1.15 * max(*weights, 1e-6)))
