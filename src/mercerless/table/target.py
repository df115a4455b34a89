"""Targets in the units of the members, and their outputs as candidates of the average."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.estimator import class_scores

SKEWED = 4.0
N_QUANTILES = 25  # of the residuals, over which the way back from short tails is averaged
LEVELS = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES


class NumberTarget(NamedTuple):
    """Two standardized columns of a target y: y, and ``asinh((y - median) / width)``, which shortens its tails.

    For targets that are nowhere negative and reach beyond four times their median, the column is nearly a logarithm:
    the median is 0, and the width a quarter of the lower quartile of the positive ones.
    """

    median: float
    width: float
    center: NDArray  # (2,)
    scale: NDArray
    low: float = -np.inf  # the range of y in standard units, beyond which nothing is predicted
    high: float = np.inf
    n_classes: int = 0
    n_encoded: int = 1  # columns of which words have means

    @classmethod
    def fit(cls, y: NDArray, weight: NDArray) -> Self:
        """The units of y."""
        low, median, high = np.percentile(y, [25, 50, 75])
        width = float((high - low) / 1.349 or y.std() or 1.0)
        if y.min() >= 0.0 and y.max() > SKEWED * median:
            positive = y[y > 0.0]
            median = 0.0
            width = float(np.percentile(positive, 25)) / 4.0
        target = cls(float(median), width, np.zeros(2), np.ones(2))
        Y = target(y)
        center = np.average(Y, axis=0, weights=weight)
        variance = np.average((Y - center) ** 2, axis=0, weights=weight)
        scale = np.sqrt(variance)
        scale[scale <= 1e-13 * np.abs(center)] = 1.0
        standard = (y - center[0]) / scale[0]
        return target._replace(
            center=center, scale=scale, low=float(standard.min()), high=float(standard.max())
        )

    def __call__(self, y: NDArray) -> NDArray:
        short = np.arcsinh((y - self.median) / self.width)
        Y = np.stack([y, short], axis=1)
        return (Y - self.center) / self.scale

    def clip(self, standard: NDArray) -> NDArray:
        """Numbers in standard units, within the range of y."""
        return np.clip(standard, self.low, self.high)

    def given(self, standard: NDArray) -> NDArray:
        """Numbers in the units of y from standard ones."""
        return standard * self.scale[0] + self.center[0]

    def residuals(self, Y: NDArray, outputs: NDArray, weight: NDArray) -> NDArray:
        """Quantiles of the residuals of the short-tailed column of held-out outputs."""
        errors = Y[:, 1] - outputs[:, -1]
        order = np.argsort(errors)
        errors = errors[order]
        weight = weight[order]
        shares = (np.cumsum(weight) - weight / 2.0) / weight.sum()
        return np.interp(LEVELS, shares, errors)

    def candidates(self, outputs: NDArray, residuals: NDArray) -> NDArray:
        """Predictions (n_columns, n, 1) in standard units from the columns of a member's outputs.

        From the short-tailed column, the mean over the quantiles of its residuals.
        """
        columns = [outputs[:, 0]]
        if outputs.shape[1] > 1:
            standard = outputs[:, 1:] + residuals
            short = standard * self.scale[1] + self.center[1]
            y = np.sinh(np.clip(short, -30.0, 30.0)) * self.width + self.median
            columns.append(self.clip((y - self.center[0]) / self.scale[0]).mean(axis=1))
        return self.clip(np.stack(columns))[:, :, None]


class ClassTarget(NamedTuple):
    """A column of -1 and 1 for every class; one, for the second, of two classes."""

    n_classes: int
    n_encoded: int | None = None

    def __call__(self, labels: NDArray) -> NDArray:
        signs = 2.0 * np.eye(self.n_classes)[labels] - 1.0
        return signs[:, 1:] if self.n_classes == 2 else signs

    def residuals(self, Y: NDArray, outputs: NDArray, weight: NDArray) -> NDArray:
        """Classes need none."""
        return np.zeros(0)

    def candidates(self, outputs: NDArray, residuals: NDArray) -> NDArray:
        """Scores (1, n, n_classes)."""
        return class_scores(outputs)[None]
