"""Equal rows, merged into one."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.validation import weights_or_ones


class MergedRows(NamedTuple):
    """The distinct rows: equal rows are one, with the mean of their targets."""

    first: NDArray  # (n_distinct,), the first row of every set of equal rows
    Y: NDArray  # (n_distinct, n_outputs), weighted mean targets
    total: (
        NDArray | None
    )  # sums of the weights; None if every row is distinct and there are no weights
    counts: NDArray  # the number of observations in every set: of rows with different targets
    deviations: NDArray  # the weighted mean of the squared distances of their targets to the mean
    # the variance of the targets of equal rows, without bias; 0 if all are equal
    pure_error: float

    def correlation(self, error: float) -> float:
        """The correlation of the errors of equal rows, from a held-out error of merged rows.

        With ``y_ij = f(x_i) + u_i + e_ij`` a single row has the squared error ``var u + var e``, and ``var e`` is the
        pure error: ``r = 1 - var e / (var u + var e)``.
        """
        single = error + self.pure_error * float(np.mean(1 - 1 / self.counts))
        return float(np.clip(1 - self.pure_error / single, 0, 1)) if single > 0 else 1.0

    def weights(self, correlation: float) -> NDArray | None:
        """``k / (1 + (k - 1) r)`` for k equal rows, the inverse variance of their mean, times their mean weight."""
        return None if self.total is None else self.total / (1 + (self.counts - 1) * correlation)

    def spread(self, weight: NDArray | None, n: int) -> tuple[NDArray, NDArray | None]:
        """Equivalent targets and weights of all n rows: a copy after the first has no weight."""
        if len(self.first) == n:
            return self.Y, weight
        Y = np.zeros((n, self.Y.shape[1]))
        w = np.zeros(n)
        Y[self.first] = self.Y
        w[self.first] = weight
        return Y, w


def merge_copies(Y: NDArray, weight: NDArray | None, copies: NDArray) -> MergedRows:
    """Merge rows with the same number in `copies`, which counts distinct rows in the order of first appearance.

    Rows that also have the same targets are one row with the sum of their weights, so that a whole weight is the same
    as repetition. Equal rows with different targets are observations whose errors may be correlated.
    """
    first, counts = np.unique(copies, return_index=True, return_counts=True)[1:]
    if len(first) == len(copies):
        return MergedRows(first, Y, weight, counts, np.zeros(len(first)), 0.0)
    w = weights_or_ones(weight, len(copies))
    observations = np.unique(np.column_stack([copies, Y]), axis=0, return_inverse=True)[1].ravel()
    first_of_observation = np.unique(observations, return_index=True)[1]
    w = np.bincount(observations, weights=w)
    Y_seen = Y[first_of_observation]
    of_row = copies[first_of_observation]
    counts = np.bincount(of_row)
    total = np.bincount(of_row, weights=w)
    # relative to the first of the set, so that equal targets stay what they are
    shift = Y_seen - Y[first[of_row]]
    sums = [np.bincount(of_row, weights=w * column) for column in shift.T]
    means = np.stack(sums, axis=1) / total[:, None]
    square = w * np.sum((shift - means[of_row]) ** 2, axis=1)
    deviations = np.bincount(of_row, weights=square) / total
    pure_error = 0.0
    if counts.max() > 1:
        freedom = w.sum() - np.sum(np.bincount(of_row, weights=w**2) / total)
        pure_error = float(square.sum() / freedom)
    return MergedRows(first, Y[first] + means, total, counts, deviations, pure_error)
