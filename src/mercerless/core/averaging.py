"""The one way to average learners: screen, calibrate and weigh them by their held-out predictions.

Every automatic learner makes held-out predictions of all its settings, and `average_of` combines them ::

    average = average_of(scores, labels, weight, classify=True, kinds=kinds, parts=parts)
    average = average.take(average.weights > 0)       # average.kept: settings to fit on all rows
    proba = average(new_scores)                       # scores of these settings, (n_kept, n_new, n_classes)
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from mercerless.core.calibration import Calibration, calibrate, fit_temperature, sharpen

#: Settings of every kind that take part.
N_BEST = 3
#: Pull toward equal weights, in rows for the square root of the number of members.
#:
#: Difference of the mean log-loss from 30 rows, +- its standard error over data sets:
#:
#: ========================== ================= ================ =================
#: pull                       24 similarities   5 several        20 tables
#: ========================== ================= ================ =================
#: 10 rows                    -.0001 +- .0009   -.0021 +- .0030  -.0056 +- .0032
#: 3 sqrt(M) rows             -.0004 +- .0005   +.0001 +- .0001  -.0064 +- .0037
#: .5 M rows                  -.0003 +- .0007   +.0029 +- .0020  -.0090 +- .0056
#: 20 in log-odds             +.0025 +- .0018   -.0008 +- .0054  -.0023 +- .0011
#: 8 in log-odds              +.0045 +- .0027   +.0051 +- .0073  -.0057 +- .0035
#: ========================== ================= ================ =================
#:
#: (In log-odds: weights of least log-loss of ``softmax(sum_m v_m log p_m)``.) A pull that grows like M**2 costs up to
#: .1 if one of several similarities is noise: weights must be able to leave many members out.
PULL = 3.0


@dataclass(frozen=True)
class Average:
    """A weighted average of settings: of calibrated probabilities, sharpened by a power, or of numbers."""

    kept: NDArray  # (n_kept,), which of the candidates take part
    weights: NDArray  # (n_kept,), at least 0; for classes their sum is 1
    # the certificate: largest relative violation of the weights' optimality conditions
    residual: float
    calibration: Calibration | None = None
    temperature: float = 1.0  # the power of averaged probabilities
    best: Mapping[Hashable, int] = field(default_factory=dict)  # place among these of every kind
    out_of_fold: NDArray | None = None  # (n, q), by averages of the other parts
    #: the same (n, q) of the best setting of every kind alone
    kinds_out_of_fold: Mapping[Hashable, NDArray] = field(default_factory=dict)

    def members(self, scores: NDArray) -> NDArray:
        """Probabilities or numbers of every kept setting, from its scores (n_kept, n, q)."""
        return scores if self.calibration is None else self.calibration(scores)

    def combine(self, members: NDArray) -> NDArray:
        """The average of `members`."""
        mean = np.tensordot(self.weights, members, 1)
        return mean if self.calibration is None else sharpen(mean, self.temperature)

    def __call__(self, scores: NDArray) -> NDArray:
        """Probabilities or numbers (n, q) from scores of the kept settings (n_kept, n, q)."""
        return self.combine(self.members(scores))

    def take(self, settings: Any) -> "Average":
        """The same average of some of its settings, such as those of positive weight."""
        calibration = None if self.calibration is None else self.calibration.take(settings)
        return replace(
            self, kept=self.kept[settings], weights=self.weights[settings], calibration=calibration
        )


def average_of(
    scores: NDArray,
    target: NDArray,
    weight: NDArray,
    *,
    classify: bool,
    kinds: Any = None,
    parts: NDArray | None = None,
    pull: float = PULL,
    by_gain: bool = False,
) -> Average:
    """The average of the best settings of every kind, from the held-out scores of all settings.

    The weights v of M members are ``argmin_{v >= 0} sum_i w_i |y_i - sum_m v_m p_mi|^2 + pull e sqrt(M) |v - c|^2``,
    where y is one-hot and p are calibrated probabilities with e = 1, or y and p are numbers and e is the smallest mean
    squared error of a member. The prior c are equal weights. Averages of calibrated probabilities are underconfident,
    so these are sharpened last.

    Parameters
    ----------
    scores : ndarray of shape (n_settings, n, q)
        Held-out scores of every class, or numbers.
    target : ndarray of shape (n,) or (n, q)
        Numbers of the classes, or standardized numbers.
    weight : ndarray of shape (n,)
        Weights of the rows, which enter every loss relative to their mean.
    classify : bool
        Whether targets are classes.
    kinds : sequence of hashable or None, default=None
        The family of every setting; the three best settings of each take part. None keeps all.
    parts : ndarray of int of shape (n,) or None, default=None
        The part of every row, for `out_of_fold`: settings are chosen, calibrated and weighed again without each part.
        Deal parts regardless of the classes (groups stay together): parts with equal shares of the classes reveal the
        shares of the rows they hold out, which on pure noise gives accuracies of .57 for .50.
    pull : float, default=3.0
        Strength of the prior.
    by_gain : bool, default=False
        Whether the prior c is in proportion to the square of what every member gains over a constant, so that members
        that have learned nothing are not pulled in. For similarities, with equal ones as the reference: log-loss
        -.0028 +- .0014 on 43 sets and -.0023 on a second draw of these, +.0015 +- .0003 on 8 with few items per class,
        -.0004 +- .0005 on 14 groups of several similarities, most of them with pure noise.
    """
    weight = weight * (len(weight) / weight.sum())
    fit = partial(_fit, classify=classify, kinds=kinds, pull=pull, by_gain=by_gain)
    average = fit(scores, target, weight)
    if parts is None:
        return average
    out_of_fold = np.empty(scores.shape[1:])
    of_kinds = {kind: np.empty(scores.shape[1:]) for kind in average.best}
    for number in np.unique(parts):
        train = parts != number
        test = ~train
        part = fit(scores[:, train], target[train], weight[train])
        members = part.members(scores[part.kept][:, test])
        out_of_fold[test] = part.combine(members)
        for kind, place in part.best.items():
            of_kinds[kind][test] = members[place]
    return replace(average, out_of_fold=out_of_fold, kinds_out_of_fold=of_kinds)


def _fit(
    scores: NDArray,
    target: NDArray,
    weight: NDArray,
    *,
    classify: bool,
    kinds: Any,
    pull: float,
    by_gain: bool,
) -> Average:
    """Screen, calibrate, weigh and sharpen."""
    kept = np.arange(len(scores))
    best = {}
    if kinds is not None:
        leaders = best_of(kinds, scores, target, weight, classify)
        kept = np.sort(np.concatenate(list(leaders.values())))
        best = {kind: int(np.searchsorted(kept, own[0])) for kind, own in leaders.items()}
        scores = scores[kept]
    strength = pull * np.sqrt(len(kept))
    if not classify:
        weights, residual = _weigh(scores, target, weight, strength, by_gain, relative=True)
        return Average(kept, weights, residual, best=best)
    onehot = np.eye(scores.shape[2])[target]
    calibration = calibrate(scores, onehot, weight)
    proba = calibration(scores)
    weights, residual = _weigh(proba, onehot, weight, strength, by_gain)
    total = weights.sum()
    weights = weights / total if total > 0.0 else np.full(len(kept), 1.0 / len(kept))
    temperature = fit_temperature(np.tensordot(weights, proba, 1), onehot, weight)
    residual = max(residual, calibration.gradient)
    return Average(kept, weights, residual, calibration, temperature, best)


def best_of(
    kinds: Sequence[Hashable], scores: NDArray, target: NDArray, weight: NDArray, classify: bool
) -> dict[Hashable, list[int]]:
    """The best settings of every kind, the best first.

    Classes are judged by the squared correlation of scores and class indicators, which is what one slope and one bias
    per class explain, so that nothing needs to be calibrated; numbers by their squared error.
    """
    share = weight / weight.sum()
    if classify:
        onehot = np.eye(scores.shape[2])[target]
        centered = scores - (share @ scores)[:, None]
        products = np.einsum("mnq,nq->m", centered, share[:, None] * (onehot - share @ onehot))
        variance = np.einsum("mnq,mnq->mn", centered, centered) @ share
        quality = np.sign(products) * products**2 / np.maximum(variance, np.finfo(float).tiny)
    else:
        quality = -((scores - target) ** 2).mean(axis=2) @ share
    leaders: dict[Hashable, list[int]] = {}
    for position in np.argsort(-quality, kind="stable").tolist():
        own = leaders.setdefault(kinds[position], [])
        if len(own) < N_BEST:
            own.append(position)
    return leaders


def _weigh(
    predictions: NDArray,
    target: NDArray,
    weight: NDArray,
    pull: float,
    by_gain: bool,
    relative: bool = False,
) -> tuple[NDArray, float]:
    """Nonnegative weights of least squared error, and the relative violation of their optimality conditions."""
    n_members = len(predictions)
    root = np.sqrt(weight)[:, None]
    vectors = (predictions * root).reshape(n_members, -1)
    wanted = (target * root).ravel()
    losses = ((vectors - wanted) ** 2).sum(axis=1)
    if relative:
        pull *= losses.min() / len(wanted)
    prior = np.ones(n_members)
    if by_gain:
        constant = (((target - weight @ target / weight.sum()) * root) ** 2).sum()
        prior = np.maximum(constant - losses, 1e-9 * constant + 1e-99) ** 2
    prior /= prior.sum()
    products = vectors @ vectors.T
    # nearly perfect or nearly equal members leave nothing but rounding errors
    rounding = 1e-10 * np.trace(products) / n_members + np.finfo(float).tiny
    matrix = products + max(pull, rounding) * np.eye(n_members)
    right = vectors @ wanted + pull * prior
    factor = cholesky(matrix, lower=True)
    weights, _ = nnls(factor.T, solve_triangular(factor, right, lower=True))
    gradient = matrix @ weights - right
    violation = np.where(weights > 0.0, np.abs(gradient), np.maximum(-gradient, 0.0))
    return weights, float(violation.max() / (np.abs(right).max() or 1.0))


def paired_z(losses: NDArray, others: NDArray, weight: NDArray) -> float:
    """How many standard errors `losses` lie below `others` on weighted average, on the same rows.

    Positive if `losses` are better; 0 if the two agree up to rounding.
    """
    difference = others - losses
    mean = weight @ difference / weight.sum()
    error = np.sqrt(weight**2 @ (difference - mean) ** 2) / weight.sum()
    if abs(mean) <= 1e-10 * (1.0 + np.abs(losses).mean()):
        return 0.0
    return float(mean / error) if error > 0.0 else float(np.sign(mean) * np.inf)
