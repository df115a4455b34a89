"""Targets with tails: a member of the average that predicts a monotone transform of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import boxcox, inv_boxcox, ndtri
from scipy.stats import boxcox_normmax, iqr, rankdata

from mercerless.core.averaging import TABLE_NUMBERS, average
from mercerless.core.folds import assign_folds, some_rows
from mercerless.core.scaling import FeatureScaling, robust_scaling, standard_scaling
from mercerless.lab.data import Table
from mercerless.lab.model import LocalForm, Rows
from mercerless.table.fit import TableSolution
from mercerless.table.outliers import FOLDS, SMALL_ROWS, out_of_fold


@dataclass(frozen=True)
class TransformLimits:
    """When transforms compete, and how the way back is tabulated."""

    #: The skewness from which transforms compete.
    skewed: float = 1.0
    #: The excess kurtosis from which they do.
    tailed: float = 3.0
    #: Below it the inverse of a bounded transform goes to infinity, or it is the logarithm.
    smallest_power: float = 0.2
    #: Times the squared error of small models without a transform, above which one is given up.
    hopeless: float = 1.1
    #: With fewer rows there is no transform.
    fewest: int = 100
    #: Share of the range of the transformed targets, beyond which nothing is predicted.
    margin: float = 0.1
    #: Knots of the way back.
    knots: int = 2001
    #: Quantiles of the errors over which it is a mean.
    errors: int = 200


LIMITS = TransformLimits()


class TargetTransform(NamedTuple):
    """The way back from predictions of transformed targets: the mean target for each, on a grid.

    Attributes
    ----------
    name : {"log", "power", "asinh", "rank"}
        What was done with the targets; "rank" makes normal scores of them.
    transformed, target : ndarray of shape (n_knots,)
        Knots: predictions of the transformed target, and the mean of the target over the out-of-fold errors of these.
    """

    name: str
    transformed: NDArray
    target: NDArray

    def __call__(self, predictions: NDArray) -> NDArray:
        """Predictions in the units of the targets, within about the range of those seen."""
        return np.interp(predictions, self.transformed, self.target)

    def slope(self, start: NDArray, end: NDArray) -> NDArray:
        """The mean slope between predictions of the transformed target."""
        same = np.abs(end - start) < 1e-6 * (self.transformed[-1] - self.transformed[0])
        end = np.where(same, start + self.transformed[1] - self.transformed[0], end)
        return (self(end) - self(start)) / (end - start)


class Transformed(NamedTuple):
    """One output through a transform, and its inverse."""

    name: str
    y: NDArray  # (n,)
    z: NDArray  # (n,)
    inverse: Callable[[NDArray], NDArray]

    @property
    def units(self) -> FeatureScaling:
        return standard_scaling(self.z[:, None])

    @property
    def standardized(self) -> NDArray:
        """(n, 1)"""
        return self.units(self.z[:, None])

    def back(self, errors: NDArray, weight: NDArray | None = None) -> TargetTransform:
        """The mean of ``inverse(z + e)`` over the errors e of predictions: without it their mean would be biased."""
        low = self.z.min()
        high = self.z.max()
        margin = LIMITS.margin * (high - low)
        knots = np.linspace(low - margin, high + margin, LIMITS.knots)
        order = np.argsort(errors)
        share = np.ones(len(errors)) if weight is None else weight[order]
        places = (np.cumsum(share) - share / 2) / share.sum()
        typical = np.interp((np.arange(LIMITS.errors) + 0.5) / LIMITS.errors, places, errors[order])
        moved = np.clip(knots[:, None] + typical, knots[0], knots[-1])
        return TargetTransform(self.name, knots, self.inverse(moved).mean(axis=1))


def possible_transforms(y: NDArray) -> list[Transformed]:
    """Logarithm, Box and Cox's power, asinh and normal scores of targets with tails; none of others."""
    standard = standard_scaling(y[:, None])(y[:, None])[:, 0]
    side = float(np.mean(standard**3))
    if not (abs(side) > LIMITS.skewed or np.mean(standard**4) > 3.0 + LIMITS.tailed):
        return []
    middle = float(np.median(y))
    width = float(iqr(y)) or float(y.std())
    sign = 1.0 if side > 0 else -1.0
    shift = 0.0 if (sign * y).min() > 0 else width / 2 - float((sign * y).min())
    unit = float(np.median(sign * y + shift))
    u = (sign * y + shift) / unit
    power = float(np.clip(boxcox_normmax(u, method="mle"), LIMITS.smallest_power, 1.0))
    scores = ndtri((rankdata(y) - 0.5) / len(y))
    order = np.argsort(y)

    def power_back(z: NDArray) -> NDArray:
        return sign * (unit * inv_boxcox(np.maximum(sign * z, -1.0 / power), power) - shift)

    return [
        Transformed("log", y, sign * np.log(u), lambda z: sign * (unit * np.exp(sign * z) - shift)),
        Transformed("power", y, sign * boxcox(u, power), power_back),
        Transformed(
            "asinh", y, np.arcsinh((y - middle) / width), lambda z: middle + width * np.sinh(z)
        ),
        Transformed("rank", y, scores, lambda z: np.interp(z, scores[order], y[order])),
    ]


def choose_transform(
    X: NDArray, Y: NDArray, weight: NDArray | None, together: NDArray, seed: int
) -> Transformed | None:
    """The transform through which small models have the smallest squared error on held-out targets.

    None where targets have no tails, or where it is larger than without by a tenth: what it is worth in the end the
    weights say. Above 3000 rows, where that costs more, it must be smaller by 3 %. `together` numbers sets of copies.
    """
    y = Y[:, 0]
    candidates = possible_transforms(y) if len(y) >= LIMITS.fewest else []
    if not candidates:
        return None
    few = some_rows(len(X), SMALL_ROWS, seed)
    used = None if weight is None else weight[few] / weight[few].mean()
    scaled = robust_scaling(X[few])(X[few])
    fold = assign_folds(FOLDS, len(few), together=together[few], random_state=seed)
    errors = [
        _squared_error(scaled, y, few, candidate, used, fold, seed)
        for candidate in (None, *candidates)
    ]
    best = int(np.argmin(errors[1:]))
    return candidates[best] if errors[1 + best] <= LIMITS.hopeless * errors[0] else None


def _squared_error(
    X: NDArray,
    y: NDArray,
    few: NDArray,
    candidate: Transformed | None,
    weight: NDArray | None,
    fold: NDArray,
    seed: int,
) -> float:
    """Of out-of-fold predictions through a transform."""
    z = y if candidate is None else candidate.z
    units = standard_scaling(z[:, None])
    predictions = out_of_fold(Rows(X, units(z[few, None]), weight), weight, fold, seed)[:, 0]
    predictions = predictions * units.scale[0] + units.center[0]
    if candidate is not None:
        predictions = candidate.back(z[few] - predictions, weight)(predictions)
    return float(np.average((predictions - y[few]) ** 2, weights=weight))


class TransformedForms(NamedTuple):
    """Forms that predict a transformed target, together one member of a fitted LAB model.

    Attributes
    ----------
    name : str
        "log of the target" and the like.
    forms : list of LocalForm and Trees
        Their weighted sum predicts the transformed target.
    transform : TargetTransform
        The way back.
    weight : float
        The weight in the average.
    scaling : callable
        Scales features.
    """

    name: str
    forms: list
    transform: TargetTransform
    weight: float
    scaling: Any

    def __call__(self, X: NDArray) -> NDArray:
        """Predictions of the target, one column."""
        return self.transform(sum_of_forms(self.forms, X))

    def in_units(self, center: NDArray, scale: NDArray) -> "TransformedForms":
        """For targets that were standardized by these."""
        transform = self.transform._replace(target=self.transform.target * scale[0] + center[0])
        return self._replace(transform=transform)


def sum_of_forms(forms: Sequence[Any], X: NDArray) -> NDArray:
    """The average that forms predict, one column per function."""
    return np.sum([form.weight * form(X) for form in forms], axis=0)


def kernel_forms(members: Sequence[Any]) -> list[LocalForm]:
    """All forms with support points, those of a transformed target too, with their weight in the average."""
    forms = []
    for member in members:
        if isinstance(member, TransformedForms):
            forms += [
                form._replace(weight=member.weight * form.weight)
                for form in kernel_forms(member.forms)
            ]
        elif isinstance(member, LocalForm):
            forms.append(member)
    return forms


def join_transformed(
    plain: TableSolution,
    other: TableSolution,
    table: Table,
    transformed: Transformed,
    weight: NDArray | None,
    unit: FeatureScaling,
) -> TableSolution:
    """The average of forms of the standardized target and of those of the transformed one, weighed on held-out rows.

    `other` predicts the standardized transformed target, from the same rows and folds. Out-of-fold predictions of the
    average have weights from other held-out rows. `weight` are those of the rows, `unit` that of the target.
    """
    if not np.array_equal(plain.held, other.held):  # a generator that others draw from as well
        return plain
    held = plain.held
    units = transformed.units
    place = np.full(table.shape[0], -1)
    place[held] = np.arange(len(held))
    rows = np.flatnonzero(place[table.copies] >= 0)
    predictions = other.out_of_fold[:, 0] * units.scale[0] + units.center[0]
    errors = transformed.z[rows] - predictions[place[table.copies[rows]]]
    of_errors = np.ones(len(rows)) if weight is None else weight[rows]
    place_of_error = place[table.copies[rows]]
    parts = [part for part in np.array_split(np.arange(len(held)), 5) if len(part)]

    def way_back(used: NDArray) -> TargetTransform:
        back = transformed.back(errors[used], of_errors[used])
        return back._replace(target=(back.target - unit.center[0]) / unit.scale[0])

    back = way_back(np.ones(len(errors), dtype=bool))
    through = np.empty((len(held), 1))
    for part in parts:  # by errors of other rows
        others = ~np.isin(place_of_error, part)
        through[part, 0] = way_back(others)(predictions[part])
    pair = [plain.out_of_fold, through]
    truth = table.merged.Y[held]
    of_rows = np.bincount(table.copies, weights=weight)[held]

    def weigh(rows: Any) -> NDArray:
        return average(np.stack(pair)[:, rows], truth[rows], of_rows[rows], TABLE_NUMBERS).weights

    name = f"{transformed.name} of the target"
    rest, share = weigh(slice(None))
    members: list[Any] = []
    if rest > 0:
        members = [member._replace(weight=float(rest * member.weight)) for member in plain.members]
    if share > 0:
        inner = [member.in_units(units.center, units.scale) for member in other.members]
        members.append(TransformedForms(name, inner, back, float(share), inner[0].scaling))
    averaged = np.empty_like(truth)
    for part in parts:
        weights = weigh(np.isin(np.arange(len(held)), part, invert=True))
        averaged[part] = sum(w * p[part] for w, p in zip(weights, pair))
    error = float(np.average(np.sum((pair[1] - truth) ** 2, axis=1), weights=of_rows))
    certificates = []  # of what has weight
    if rest > 0:
        certificates.append(plain.certificate)
    if share > 0:
        certificates.append(other.certificate)
    return plain._replace(
        members=members,
        out_of_fold=averaged,
        errors=plain.errors | {name: error},
        certificate=max(certificates),
    )
