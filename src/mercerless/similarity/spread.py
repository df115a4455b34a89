"""How far off predictions of an item are: a scale of errors that follows the item, for intervals.

The out-of-fold errors of the training items show where predictions are good. The scale of a new item is a mixture of
the mean absolute error of all items, of its nearest items, and of the items with the nearest predictions. An interval
is a multiple of the scale, by a factor that covers the errors of those items whose predictions are nearest.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from mercerless.core.averaging_old import paired_z
from mercerless.core.conformal import conformal_quantile
from mercerless.core.folds import Split, splits_of
from mercerless.similarity.families import Comparisons
from mercerless.similarity.solver import neighbor_means


@dataclass(frozen=True)
class SpreadRules:
    """How scales are learned, and when they are used."""

    #: Items to learn a scale from.
    n_items: int = 60
    #: Nearest items whose errors are averaged.
    n_neighbors: int = 25
    #: Share of the items, those with the nearest predictions, whose errors are averaged.
    prediction_share: float = 0.15
    #: Smallest scale, relative to the mean absolute error.
    smallest: float = 0.3
    #: Standard errors by which a scale must raise the held-out density of the errors.
    gain: float = 1.0
    #: Share of the items, those with the nearest predictions, whose errors an interval covers as stated. On 12 sets the
    #: coverage in the worst fifth of the predictions is off by .045 instead of .051.
    factor_share: float = 0.5
    #: At least so many of them are expected outside of their intervals.
    factor_outside: float = 6.0


RULES = SpreadRules()


class ItemSpread(NamedTuple):
    """Scales of errors, learned from the out-of-fold errors of the training items."""

    errors: NDArray  # (n,), absolute
    predictions: NDArray  # (n,)
    weight: NDArray  # (n,)
    # (3,), of the mean errors of all, of the nearest items, and of the nearest predictions
    mixture: NDArray
    out_of_fold: NDArray  # (n,), scales of the training items by the errors of other folds

    def __call__(self, new: Comparisons, predictions: NDArray) -> NDArray:
        """Scales of new items."""
        known = np.arange(len(self.errors))
        local = local_errors(new, predictions, self.errors, self.predictions, self.weight, known)
        return _scales(local, self.mixture)


def local_quantiles(
    ratios: NDArray, known_predictions: NDArray, predictions: NDArray, coverage: float
) -> NDArray:
    """For every new prediction, the conformal quantile of the ratios of the items with the nearest predictions.

    `ratios` are those of the errors of known items to their scales. Half of the items are the nearest, more if fewer
    than six of these would be expected outside of their intervals.
    """
    n = len(ratios)
    fewest = int(np.ceil(RULES.factor_outside / (1.0 - coverage) - 1e-9))
    number = min(n, max(int(np.ceil(RULES.factor_share * n)), fewest))
    order = np.argsort(known_predictions, kind="stable")
    ascending = known_predictions[order]
    # the nearest are a window of this order, which moves on when the next item is nearer than the first
    first = ascending[: n - number]
    following = ascending[number:]
    starts = np.searchsorted((first + following) / 2.0, predictions)
    used, window_of = np.unique(starts, return_inverse=True)
    quantiles = [conformal_quantile(ratios[order[k : k + number]], coverage) for k in used]
    return np.array(quantiles)[window_of]


def local_errors(
    new: Comparisons,
    predictions: NDArray,
    errors: NDArray,
    known_predictions: NDArray,
    weight: NDArray,
    known: NDArray,
) -> NDArray:
    """Mean errors (m, 3) of all known items, of those nearest to each item, and of those with the nearest predictions.

    The columns of `new` are the items at the positions `known`.
    """
    of_known = errors[known][:, None]
    of_weight = weight[known]
    n_known = len(known)
    everywhere = np.average(of_known[:, 0], weights=of_weight)
    ranks = new.column_diagonal - 2.0 * new.similarities
    n_near = min(RULES.n_neighbors, n_known)
    nearest = neighbor_means(ranks, of_known, [n_near], of_weight)[n_near][:, 0]
    gaps = np.abs(predictions[:, None] - known_predictions[known])
    n_alike = max(1, int(RULES.prediction_share * n_known))
    alike = neighbor_means(gaps, of_known, [n_alike], of_weight)[n_alike][:, 0]
    return np.column_stack([np.full(len(predictions), everywhere), nearest, alike])


def _scales(local: NDArray, mixture: NDArray) -> NDArray:
    return np.maximum(local @ mixture, RULES.smallest * local[:, 0])


def _mixture(local: NDArray, errors: NDArray, weight: NDArray) -> NDArray:
    """Nonnegative weights of the three mean errors that predict an error best, relative to the usual one."""
    root = np.sqrt(weight) / local.mean(axis=1)
    return nnls(local * root[:, None], errors * root)[0]


def fit_spread(
    comparisons: Comparisons,
    predictions: NDArray,
    targets: NDArray,
    weight: NDArray,
    fold_of: NDArray,
) -> ItemSpread | None:
    """Scales that follow the items, or None if the same scale for all is as good on held-out items.

    Local mean errors of an item are those of the other folds, and so is the mixture of them. The density is Laplace's,
    ``log(scale) + error / scale`` is compared.
    """
    errors = np.abs(predictions - targets)
    splits = splits_of(fold_of)
    if len(errors) < RULES.n_items or len(splits) < 2 or not errors.any():
        return None
    local = np.empty((len(errors), 3))
    for train, test in splits:
        part = comparisons.select(test, train)
        local[test] = local_errors(part, predictions[test], errors, predictions, weight, train)
    scales = _held_out_scales(local, errors, weight, splits)
    varying = np.log(scales) + errors / scales
    constant = np.log(local[:, 0]) + errors / local[:, 0]
    if not paired_z(varying, constant, weight) > RULES.gain:
        return None
    return ItemSpread(errors, predictions, weight, _mixture(local, errors, weight), scales)


def _held_out_scales(
    local: NDArray, errors: NDArray, weight: NDArray, splits: list[Split]
) -> NDArray:
    """Scales of every item, mixed as is best for the other folds."""
    scales = np.empty(len(errors))
    for train, test in splits:
        mixture = _mixture(local[train], errors[train], weight[train])
        scales[test] = _scales(local[test], mixture)
    return scales
