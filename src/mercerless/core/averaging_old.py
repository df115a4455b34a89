"""Average several models by their out-of-fold predictions.

One function, `average`, finds nonnegative weights that minimize a loss of the averaged predictions, pulled toward equal
weights so that a few rows do not decide. An `AveragingRule` states how the learners differ; `cross_fitted` gives
every held-out row the average that was fitted on the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from scipy.special import softmax

from mercerless.core.calibration import fit_temperature
from mercerless.core.validation import weights_or_ones


@dataclass(frozen=True)
class AveragingRule:
    """Which loss is minimized, how strong the pull toward equal weights is, and which members are dropped.

    The weights v of M members minimize ``loss(v) + pull * unit * |v - 1/M|^2`` over v >= 0.

    Mean log-loss on held-out items, 36 data sets with two splits each, for calibrated classifiers of similarities, the
    three best of every family:

    ======================================================================= ==========
    squared error of probabilities (pull .1), arithmetic mean, temperature   .1757
    log-loss of averaged log-odds, pull .2 n / 10 / 2 / .5                   .1758 / .1770 / .1811 / .1856
    squared error of probabilities, geometric mean, temperature              .1766
    log-loss of averaged probabilities                                       .1786 to .1832
    ======================================================================= ==========

    Dropping members of weight below .02 adds .0001, below .05 adds .0016. So the rules differ by their parameters more
    than by their kind: what matters is a pull that grows with the number of rows.
    """

    #: "squared_error" of ``sum_m v_m p_m``, or "log_loss" of ``softmax(sum_m v_m log p_m)``.
    loss: str = "squared_error"
    pull: float = 0.1
    #: "weight": the sum of the rows' weights. "best": the smallest loss of a member, so that a nearly perfect one is
    #: not diluted. "row": that loss per row and output. "one": 1.
    unit: str = "weight"
    #: The sum of the weights: "fixed" to one while minimizing, "normalized" to one afterwards, or "free".
    total: str = "normalized"
    #: Members with a smaller share are dropped, one after another.
    smallest: float = 0.0
    #: So are the smallest of more members than this.
    max_members: int | None = None


#: Classes in a stack of similarities: best of the rules above.
STACKED_CLASSES = AveragingRule(pull=0.1, unit="weight")
#: Numbers in a stack of similarities: the sum of the weights is free, because cross-validated members overshoot.
STACKED_NUMBERS = AveragingRule(pull=0.1, unit="best", total="free")
#: Numbers of a table: a Gaussian prior of standard deviation .3 on the weights; a member of weight below .15 is not
#: worth its size.
TABLE_NUMBERS = AveragingRule(pull=10.0, unit="row", total="fixed", smallest=0.15, max_members=3)
#: Classes of a table, whose members are scores: log-odds are averaged, so that their slopes matter and a sum does not.
#: A pull of 8 instead of 2: log-loss of new rows -.0002 +- .0006 and accuracy +.0048 +- .0020 on 15 tables of at most
#: 300 rows (three splits), -.0019 +- .0016 and -.0008 +- .0011 on eight of at most 550 (five splits); 16 is worse.
TABLE_CLASSES = AveragingRule(
    loss="log_loss", pull=8.0, unit="one", total="free", smallest=0.1, max_members=4
)
#: The two regressors of an asymmetric kernel: no pull but for a tie, which gives a half each.
TWO_SIDES = AveragingRule(pull=1e-12, unit="best", total="fixed")


class Weights(NamedTuple):
    """Weights of an average."""

    weights: NDArray  # (n_members,), at least 0
    # the certificate: the largest violation of the optimality conditions, relative to the gradient at 0
    residual: float
    out_of_fold: NDArray | None = None  # (n, q), by weights from other folds, if there are folds


def average(
    predictions: Sequence[NDArray] | NDArray,
    target: NDArray,
    weight: NDArray | None,
    rule: AveragingRule,
    folds: Sequence[tuple[NDArray, NDArray]] = (),
) -> Weights:
    """Weights of several models from their out-of-fold predictions; see `AveragingRule` for the problem.

    Predictions have the shape (n_members, n, q): numbers or probabilities for targets (n, q), or for "log_loss"
    logarithms of probabilities for class numbers (n,). Both problems are convex; squared errors are solved exactly by
    an active set on the normal equations. If all weights are 0 (no member is better than nothing), normalized ones are
    equal. With `folds` the weighted sum of every fold has weights from the items outside of it.
    """
    predictions = np.asarray(predictions)
    weight = weights_or_ones(weight, len(target))
    if rule.loss == "log_loss":
        problem: Any = _LogLoss(predictions, target, weight, rule)
    else:
        problem = _SquaredError(predictions, target, weight, rule)
    members = problem.order
    while True:
        solution, residual = problem.solve(members)
        shares = problem.shares(solution, members)
        too_many = rule.max_members is not None and len(members) > rule.max_members
        if len(members) == 1 or not (too_many or shares.min() < rule.smallest):
            break
        members = np.delete(members, shares.argmin())
    weights = np.zeros(len(predictions))
    weights[members] = solution
    if not folds:
        return Weights(weights, residual)

    def fit(values: NDArray, rows: NDArray) -> Callable[[NDArray], NDArray]:
        of_rows = average(values[:, rows], target[rows], weight[rows], rule).weights
        return lambda held_out: np.tensordot(of_rows, held_out, 1)

    return Weights(weights, residual, cross_fitted(fit, predictions, folds))


def cross_fitted(
    fit: Callable[[NDArray, NDArray], Any],
    predictions: NDArray,
    folds: Sequence[tuple[NDArray, NDArray]],
    by_fold: NDArray | None = None,
) -> NDArray:
    """Averages (n, q) of the items that folds hold out, each fitted on the other items.

    ``fit(predictions, rows)`` gives the function that averages. `by_fold` (n_members, n_folds, n, q) are predictions
    for which nothing was chosen on the fold; otherwise `predictions` (n_members, n, q) serve all folds.
    """
    averaged = np.empty(predictions.shape[1:])
    for number, (train, test) in enumerate(folds):
        values = predictions
        if by_fold is not None:
            values = by_fold[:, number]
        averaged[test] = fit(values, train)(values[:, test])
    return averaged


class _SquaredError:
    """``min_{v >= 0} sum_i w_i |y_i - sum_m v_m p_mi|^2 + pull |v - 1/M|^2``, perhaps with ``sum(v) = 1``.

    With the sum fixed, the residual is the weighted sum of the members' residuals and ``|v - 1/M|^2`` is ``|v|^2`` up
    to a constant, so that v is a multiple of the solution of a problem without the constraint whose right-hand side is
    equal for all members.
    """

    def __init__(self, predictions: NDArray, target: NDArray, weight: NDArray, rule: AveragingRule):
        root = np.sqrt(weight)[:, None]
        n_members = len(predictions)
        self.rule = rule
        self.target = (target * root).ravel()
        self.vectors = (predictions * root).reshape(n_members, -1)
        errors = self.vectors - self.target
        if rule.total == "fixed":
            self.vectors = errors
        losses = (errors**2).sum(axis=1)
        best = losses.min()
        units = {
            "weight": weight.sum(),
            "best": max(best, 1e-8 * (self.target @ self.target)) or 1.0,
            "row": best / len(self.target),
        }
        self.pull = rule.pull * units[rule.unit]
        self.order = np.arange(n_members)
        if rule.smallest > 0.0:
            self.order = np.argsort(losses, kind="stable")
        if rule.total == "fixed" and best == 0.0:
            self.order = losses.argmin(keepdims=True)  # a perfect member takes all

    def solve(self, members: NDArray) -> tuple[NDArray, float]:
        """Weights of these members, and the certificate."""
        n_members = len(members)
        if n_members == 1 and self.rule.total != "free":
            return np.ones(1), 0.0
        vectors = self.vectors[members]
        products = vectors @ vectors.T
        # members that are nearly perfect, or nearly equal, leave rounding errors alone
        rounding = 8 * n_members * np.finfo(float).eps * np.trace(products)
        pull = max(self.pull, rounding)
        matrix = products + pull * np.eye(n_members)
        if self.rule.total == "fixed":
            right = np.full(n_members, np.trace(matrix) / n_members)  # any number, equal for all
        else:
            right = vectors @ self.target + pull / n_members
        factor = cholesky(matrix, lower=True)
        solution, _ = nnls(factor.T, solve_triangular(factor, right, lower=True))
        gradient = matrix @ solution - right
        violation = np.where(solution > 0.0, np.abs(gradient), np.maximum(-gradient, 0.0))
        residual = float(violation.max() / (np.abs(right).max() or 1.0))
        if self.rule.total == "free":
            return solution, residual
        if not solution.any():
            return np.full(n_members, 1.0 / n_members), residual
        return solution / solution.sum(), residual

    def shares(self, solution: NDArray, members: NDArray) -> NDArray:
        """Contribution of each member: its weight."""
        return solution


class _LogLoss:
    """``min_{v >= 0} sum_i w_i logloss_i(softmax(sum_m v_m log p_mi)) + pull |v - 1/M|^2``, by Newton steps."""

    def __init__(self, logs: NDArray, labels: NDArray, weight: NDArray, rule: AveragingRule):
        units = {"weight": weight.sum(), "one": 1.0}
        self.pull = rule.pull * units[rule.unit]
        self.labels = labels
        self.weight = weight
        self.order = np.arange(len(logs))
        log_odds = logs - logs.mean(axis=2, keepdims=True)
        self.spread = np.maximum(np.std(log_odds, axis=(1, 2)), 1e-12)
        # classes before rows: reductions over a short last axis are slow
        self.log_odds = np.ascontiguousarray(log_odds.swapaxes(1, 2))

    def solve(self, members: NDArray) -> tuple[NDArray, float]:
        """Weights of these members, and the certificate."""
        log_odds = self.log_odds[members]
        of_label = log_odds[:, self.labels, np.arange(len(self.labels))]
        equal = np.full(len(members), 1.0 / len(members))

        def value(v: NDArray) -> tuple[float, NDArray]:
            """The objective, and the probabilities (n_classes, n)."""
            logits = np.tensordot(v, log_odds, 1)
            logits -= logits.max(axis=0)
            right = logits[self.labels, np.arange(len(self.labels))]
            proba = np.exp(logits, out=logits)
            total = proba.sum(axis=0)
            proba /= total
            loss = self.weight @ (np.log(total) - right)
            return float(loss + self.pull * np.sum((v - equal) ** 2)), proba

        v = equal
        at, proba = value(v)
        for _ in range(100):
            expected = (log_odds * proba).sum(axis=1)
            gradient = (expected - of_label) @ self.weight + 2.0 * self.pull * (v - equal)
            is_free = (v > 0.0) | (gradient < 0.0)
            violation = np.abs(gradient[is_free]).max(initial=0.0)
            if violation <= 1e-10 * self.weight.sum():
                break
            deviation = (log_odds - expected[:, None])[is_free]
            spread = (deviation * (proba * self.weight)).reshape(len(deviation), -1)
            hessian = spread @ deviation.reshape(len(deviation), -1).T
            hessian += 2.0 * self.pull * np.eye(len(hessian))
            direction = np.zeros_like(v)
            direction[is_free] = -np.linalg.solve(hessian, gradient[is_free])
            step = 1.0
            trial, proba = value(np.maximum(v + direction, 0.0))
            while trial > at and step > 1e-6:
                step /= 2.0
                trial, proba = value(np.maximum(v + step * direction, 0.0))
            if trial > at:
                break
            v = np.maximum(v + step * direction, 0.0)
            at = trial
        residual = float(violation / self.weight.sum())
        if not v.sum() > 0.0:
            return equal, residual
        return v, residual

    def shares(self, solution: NDArray, members: NDArray) -> NDArray:
        """Contribution of each member: its part of the spread of the averaged log-odds."""
        spread = solution * self.spread[members]
        return spread / spread.sum()


class Units(NamedTuple):
    """Mean and scale by which targets are standardized."""

    mean: NDArray  # (q,)
    scale: NDArray  # (q,), one for constant targets

    @classmethod
    def of(cls, Y: NDArray, weight: NDArray) -> "Units":
        """Units of weighted targets (n, q)."""
        mean = weight @ Y / weight.sum()
        scale = np.sqrt(weight @ (Y - mean) ** 2 / weight.sum())
        return cls(mean, np.where(scale > 1e-13 * np.abs(mean), scale, 1.0))

    def enter(self, values: NDArray) -> NDArray:
        """Standardize values (..., q)."""
        return (values - self.mean) / self.scale

    def leave(self, values: NDArray) -> NDArray:
        """Undo `enter`."""
        return values * self.scale + self.mean


class Mixture(NamedTuple):
    """A weighted average of several stacks' predictions."""

    weights: NDArray  # (n_stacks,)
    temperature: float | None  # the power of averaged probabilities; None for numbers
    scores: dict[str, dict[str, float]]  # of every stack and of the average, out of fold
    out_of_fold: NDArray  # (n, q)
    residual: float

    def __call__(self, predictions: NDArray) -> NDArray:
        """The average of predictions (n_stacks, n, q); of probabilities the geometric mean."""
        if self.temperature is None:
            return np.tensordot(self.weights, predictions, 1)
        return geometric_mean(self.weights, predictions, self.temperature)


def geometric_mean(weights: NDArray, proba: NDArray, temperature: float) -> NDArray:
    """``prod_m p_m^(w_m b)`` with sum 1 over the classes, for probabilities (n_members, n, n_classes)."""
    logs = np.tensordot(weights, np.log(np.maximum(proba, np.finfo(float).tiny)), 1)
    return softmax(temperature * logs, axis=-1)


def mix(
    predictions: NDArray,
    Y: NDArray,
    weight: NDArray,
    names: Sequence[str],
    classify: bool,
    blocks: Sequence[tuple[NDArray, NDArray]] = (),
    by_block: NDArray | None = None,
) -> Mixture:
    """Average stacks by their out-of-fold predictions.

    Probabilities are averaged geometrically, so that a stack that is sure of a class decides, and sharpened by a
    temperature. Targets are +-1 per class, or standardized numbers. The out-of-fold predictions of the average in a
    block have weights from the items outside of it, and from the stacks' predictions `by_block`
    (n_stacks, n_blocks, n, q), which were chosen without it.
    """
    target = (Y > 0.0).astype(float) if classify else Y
    fit = _class_mixer(target, weight) if classify else _number_mixer(target, weight)
    everything = np.arange(len(Y))
    mixed = fit(predictions, everything)
    out_of_fold = mixed(predictions)
    if by_block is not None and blocks:
        out_of_fold = cross_fitted(fit, predictions, blocks, by_block)
    scores = {}
    for name, values, share in zip(names, predictions, mixed.weights):
        scores[name] = _figures(values, target, weight, classify) | {"weight": float(share)}
    scores["stack"] = _figures(out_of_fold, target, weight, classify)
    scores["stack"]["weight"] = float(mixed.weights.sum())
    return Mixture(mixed.weights, mixed.temperature, scores, out_of_fold, mixed.residual)


class _Mixed(NamedTuple):
    """An average that was fitted on part of the items."""

    weights: NDArray
    temperature: float | None
    units: Units | None
    residual: float

    def __call__(self, predictions: NDArray) -> NDArray:
        if self.temperature is not None:
            return geometric_mean(self.weights, predictions, self.temperature)
        assert self.units is not None
        standardized = self.units.enter(predictions)
        return self.units.leave(np.tensordot(self.weights, standardized, 1))


def _class_mixer(onehot: NDArray, weight: NDArray) -> Callable[[NDArray, NDArray], _Mixed]:
    """The fit of an average of probabilities, for `cross_fitted`."""

    def fit(proba: NDArray, rows: NDArray) -> _Mixed:
        proba = proba[:, rows]
        found = average(proba, onehot[rows], weight[rows], STACKED_CLASSES)
        pooled = geometric_mean(found.weights, proba, 1.0)
        temperature = fit_temperature(pooled, onehot[rows], weight[rows])
        return _Mixed(found.weights, temperature, None, found.residual)

    return fit


def _number_mixer(Y: NDArray, weight: NDArray) -> Callable[[NDArray, NDArray], _Mixed]:
    """The fit of an average of numbers in the units of the items it is fitted on, for `cross_fitted`."""

    def fit(values: NDArray, rows: NDArray) -> _Mixed:
        units = Units.of(Y[rows], weight[rows])
        values = units.enter(values[:, rows])
        found = average(values, units.enter(Y[rows]), weight[rows], STACKED_NUMBERS)
        return _Mixed(found.weights, None, units, found.residual)

    return fit


def _figures(values: NDArray, target: NDArray, weight: NDArray, classify: bool) -> dict[str, float]:
    """How good out-of-fold predictions are: accuracy and log-loss, or squared error and R2 of standardized targets."""
    if classify:
        of_class = np.maximum((values * target).sum(axis=1), np.finfo(float).tiny)
        is_right = values.argmax(axis=1) == target.argmax(axis=1)
        return {
            "accuracy": float(is_right @ weight / weight.sum()),
            "log_loss": float(-np.log(of_class) @ weight / weight.sum()),
        }
    mse = float(((values - target) ** 2).mean(axis=1) @ weight / weight.sum())
    return {"mse": mse, "r2": 1.0 - mse}


def paired_z(losses: NDArray, others: NDArray, weight: NDArray | None = None) -> float:
    """How many standard errors ``losses`` lie below ``others`` on (weighted) average, on the same items.

    Positive if ``losses`` are better; 0 if the two agree everywhere.
    """
    weight = weights_or_ones(weight, len(losses))
    difference = others - losses
    mean = weight @ difference / weight.sum()
    error = np.sqrt((weight**2) @ (difference - mean) ** 2) / weight.sum()
    # differences of the size of rounding mean nothing, however consistent
    if abs(mean) <= 1e-10 * (1.0 + np.abs(losses).mean()):
        return 0.0
    return float(mean / error) if error > 0.0 else float(np.sign(mean) * np.inf)
