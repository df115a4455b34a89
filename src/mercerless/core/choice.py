"""Choose on held-out rows without making the out-of-fold predictions of these rows too good."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mercerless.core.folds import Split


def choice_parts(folds: Sequence[Split]) -> list[NDArray]:
    """Places of the held-out rows, part by part: those of the folds, or five parts of a single hold-out."""
    if not folds:
        return []
    sizes = [len(valid) for _, valid in folds]
    places = np.arange(sum(sizes))
    if len(sizes) == 1:
        return np.array_split(places, min(5, len(places)))
    return np.split(places, np.cumsum(sizes)[:-1])


def cross_chosen(
    settings: Sequence[NDArray], losses: Sequence[NDArray], folds: Sequence[Split]
) -> NDArray:
    """Out-of-fold predictions, of each part by the setting with the smallest loss on the other parts.

    `settings` are the predictions (n_held, n_outputs) with each of several settings, such as numbers of iterations;
    `losses` (n_held,) are those of single rows. Models of the other parts were trained on this one, so a target can
    still tip the choice for its own row from one setting to another; it enters the predictions in no other way.
    """
    predictions = np.empty_like(settings[0])
    parts = choice_parts(folds)
    for part in parts:
        others = np.setdiff1d(np.arange(len(predictions)), part) if len(parts) > 1 else part
        best = int(np.argmin([loss[others].sum() for loss in losses]))
        predictions[part] = settings[best][part]
    return predictions
