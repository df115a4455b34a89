"""Targets in the units of the members: numbers as they are and with short tails, or a column of -1 and 1 per class."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

SKEWED = 4.0
N_QUANTILES = 25  # of the residuals, over which the way back from short tails is averaged


class NumberTarget(NamedTuple):
    """Two standardized columns of a target y: y, and ``asinh((y - median) / width)``, which shortens its tails.

    For targets that are nowhere negative and reach beyond four times their median, the column is nearly a logarithm:
    the median is 0, and the width a quarter of the lower quartile of the positive ones.
    """

    median: float
    width: float
    center: NDArray  # (2,)
    scale: NDArray
    low: float  # the range of y in standard units, beyond which nothing is predicted
    high: float

    @classmethod
    def fit(cls, y: NDArray, weight: NDArray) -> Self:
        """The units of y."""
        low, median, high = np.percentile(y, [25, 50, 75])
        width = float((high - low) / 1.349 or y.std() or 1.0)
        if y.min() >= 0.0 and y.max() > SKEWED * median:
            median = 0.0
            width = float(np.percentile(y[y > 0.0], 25)) / 4.0
        target = cls(float(median), width, np.zeros(2), np.ones(2), -np.inf, np.inf)
        Y = target(y)
        center = np.average(Y, axis=0, weights=weight)
        scale = np.sqrt(np.average((Y - center) ** 2, axis=0, weights=weight))
        scale[scale <= 1e-13 * np.abs(center)] = 1.0
        target = target._replace(center=center, scale=scale)
        column = target(y)[:, 0]
        return target._replace(low=float(column.min()), high=float(column.max()))

    def __call__(self, y: NDArray) -> NDArray:
        Y = np.stack([y, np.arcsinh((y - self.median) / self.width)], axis=1)
        return (Y - self.center) / self.scale

    def given(self, standard: NDArray) -> NDArray:
        """Numbers in the units of y from standard ones."""
        return standard * self.scale[0] + self.center[0]

    def back(self, column: NDArray, residuals: NDArray) -> NDArray:
        """The mean of y in standard units from outputs of the short-tailed column and quantiles of its residuals."""
        short = (column[:, None] + residuals) * self.scale[1] + self.center[1]
        y = np.sinh(np.clip(short, -30.0, 30.0)) * self.width + self.median
        standard = (y - self.center[0]) / self.scale[0]
        return np.clip(standard, self.low, self.high).mean(axis=1)


class Way(NamedTuple):
    """How one column of a member's outputs becomes a candidate of the average."""

    member: int
    column: int
    residuals: NDArray  # quantiles, of the short-tailed column


def ways_of_numbers(
    target: NumberTarget, Y: NDArray, outputs: Sequence[NDArray], weight: NDArray
) -> list[Way]:
    """Every column of held-out outputs, for targets Y (n, 2)."""
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    ways = []
    for member, values in enumerate(outputs):
        for column in range(values.shape[1]):
            residuals = np.zeros(0)
            if column == 1:
                errors = Y[:, 1] - values[:, 1]
                order = np.argsort(errors)
                shares = np.cumsum(weight[order]) - weight[order] / 2.0
                residuals = np.interp(levels, shares / weight.sum(), errors[order])
            ways.append(Way(member, column, residuals))
    return ways


def number_scores(
    target: NumberTarget, ways: Sequence[Way], outputs: dict[int, NDArray]
) -> NDArray:
    """Candidates (n_ways, n, 1) in standard units of y from the outputs of the members, by their number."""
    scores = []
    for way in ways:
        column = outputs[way.member][:, way.column]
        if way.column == 1:
            column = target.back(column, way.residuals)
        scores.append(np.clip(column, target.low, target.high))
    return np.stack(scores)[:, :, None]


def class_targets(labels: NDArray, n_classes: int) -> NDArray:
    """A column of -1 and 1 for every class; one, for the second, of two classes."""
    signs = 2.0 * np.eye(n_classes)[labels] - 1.0
    return signs[:, 1:] if n_classes == 2 else signs
