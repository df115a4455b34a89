"""Find labels that look wrong."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.calibration import fit_temperature, sharpen
from mercerless.core.folds import OutOfFold

#: Pull of the power of the probabilities toward 1.
TEMPERATURE_PULL = 0.15
#: Largest share of all items that would be suspects if no label were wrong.
FALSE_ALARMS = 0.05


class Suspects(NamedTuple):
    """Training items with labels that are improbable to models that have not seen them, the most improbable first.

    Attributes
    ----------
    items : ndarray of int of shape (n_suspects,)
        Which training items.
    given, suggested : ndarray of shape (n_suspects,)
        The label that was given and the most probable one.
    probability : ndarray of shape (n_suspects,)
        The out-of-fold probability of the given label, corrected if the models were too sure.
    threshold : float
        Items whose given label has at most this probability are suspects.
    false_alarms : float
        The share of all items that would be suspects if no label were wrong and the probabilities were right.
    """

    items: NDArray
    given: NDArray
    suggested: NDArray
    probability: NDArray
    threshold: float
    false_alarms: float

    def __str__(self) -> str:
        if not len(self.items):
            return "No label looks wrong."
        alarms = f"if none were wrong, {100.0 * self.false_alarms:.1f} % of all items would look so"
        look = "1 label looks" if len(self.items) == 1 else f"{len(self.items)} labels look"
        return f"{look} wrong ({alarms})."


def suspect_labels(held_out: OutOfFold, classes: NDArray) -> Suspects:
    """Items whose label is less probable than a threshold that correctly labeled items rarely fall below.

    Out-of-fold probabilities of small data are too sure, so they are first raised to the power, at most 1, that makes
    the given labels most probable. Only items for which another label is more probable than not can be suspects. If no
    label were wrong and labels were drawn with these probabilities p, a share ``mean_i sum_c p_ic [p_ic <= t]`` of the
    items would have a label of probability t at most. The threshold is the largest t, below one half, for which that
    share is at most 5 %. Models that do not beat the shares of the classes suspect no item.

    The data cannot decide everything: if 5 % of the items of a region have another label than the rest, calibrated
    probabilities are 5 %, whether these labels are wrong or not.
    """
    target = held_out.target
    onehot = np.eye(held_out.prediction.shape[1])[target]
    weight = np.ones(len(target))
    power = fit_temperature(held_out.prediction, onehot, weight, pull=TEMPERATURE_PULL)
    proba = sharpen(held_out.prediction, min(1.0, power))
    probability = proba[np.arange(len(proba)), target]
    suggested = proba.argmax(axis=1)

    is_decided = proba.max(axis=1) > 0.5
    shares_of_classes = np.bincount(target, minlength=proba.shape[1]) / len(target)
    if _mean_loss(probability) >= _mean_loss(shares_of_classes[target]):
        is_decided[:] = False
    threshold, false_alarms = _alarm_threshold(proba[is_decided], len(proba))

    is_improbable = probability <= threshold
    is_suspect = is_decided & is_improbable & (suggested != target)
    places = np.flatnonzero(is_suspect)
    places = places[np.argsort(probability[places], kind="stable")]
    return Suspects(
        items=held_out.rows[places],
        given=classes[target[places]],
        suggested=classes[suggested[places]],
        probability=probability[places],
        threshold=threshold,
        false_alarms=false_alarms,
    )


def _alarm_threshold(proba: NDArray, n: int) -> tuple[float, float]:
    """The largest threshold below one half with a share of false alarms of at most 5 %, and that share."""
    improbable = np.sort(proba[proba < 0.5])
    false_alarms = np.cumsum(improbable) / n
    n_below = np.searchsorted(false_alarms, FALSE_ALARMS + 1e-12, side="right")
    if n_below == 0:
        return 0.0, 0.0
    return float(improbable[n_below - 1]), float(false_alarms[n_below - 1])


def _mean_loss(right: NDArray) -> float:
    """The mean log-loss of these probabilities of the right class."""
    return float(-np.log(np.maximum(right, np.finfo(float).tiny)).mean())
