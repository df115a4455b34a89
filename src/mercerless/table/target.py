"""Targets with tails: a member of the average that predicts a monotone transform of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import boxcox, inv_boxcox, ndtri
from scipy.stats import boxcox_normmax, iqr, rankdata

from mercerless.core.averaging_old import TABLE_NUMBERS, average
from mercerless.core.folds import assign_folds
from mercerless.core.scaling import FeatureScaling, standard_scaling
from mercerless.core.validation import weights_or_ones
from mercerless.lab.data import Table, target_units
from mercerless.lab.model import LocalForm, Rows
from mercerless.table.fit import TableSolution
from mercerless.table.small import small_predictions, small_table
from mercerless.table.weighing import weighted_sum


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
    #: ... and the same below which gross errors are none: the transform explains them.
    explained: float = 0.5
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
        The transform of the targets; "rank" makes normal scores of them.
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
    units: FeatureScaling  # of z

    @property
    def standardized(self) -> NDArray:
        """(n, 1)"""
        return self.units(self.z[:, None])

    def take(self, rows: NDArray) -> "Transformed":
        """The same transform of some of the targets, or of repeated ones."""
        return self._replace(y=self.y[rows], z=self.z[rows])

    def back(self, errors: NDArray, weight: NDArray) -> TargetTransform:
        """The mean of ``inverse(z + e)`` over the errors e of predictions: without it their mean would be biased.

        Equal errors are one with the sum of their weights.
        """
        low = self.z.min()
        high = self.z.max()
        margin = LIMITS.margin * (high - low)
        knots = np.linspace(low - margin, high + margin, LIMITS.knots)
        ascending, place = np.unique(errors, return_inverse=True)
        share = np.bincount(place, weights=weight)
        ranks = (np.cumsum(share) - share / 2) / share.sum()
        quantiles = (np.arange(LIMITS.errors) + 0.5) / LIMITS.errors
        typical_errors = np.interp(quantiles, ranks, ascending)
        moved = np.clip(knots[:, None] + typical_errors, knots[0], knots[-1])
        return TargetTransform(self.name, knots, self.inverse(moved).mean(axis=1))


def possible_transforms(y: NDArray, weight: NDArray | None = None) -> list[Transformed]:
    """Logarithm, Box and Cox's power, asinh and normal scores of targets with tails; none of others.

    The weights enter the units of what comes out.
    """
    standard = standard_scaling(y[:, None])(y[:, None])[:, 0]
    skewness = float(np.mean(standard**3))
    kurtosis = float(np.mean(standard**4))
    if abs(skewness) <= LIMITS.skewed and kurtosis <= 3.0 + LIMITS.tailed:
        return []
    middle = float(np.median(y))
    width = float(iqr(y)) or float(y.std())
    # positive numbers whose tail is on the right, with median one
    sign = 1.0 if skewness > 0 else -1.0
    smallest = float((sign * y).min())
    shift = 0.0 if smallest > 0 else width / 2 - smallest
    unit = float(np.median(sign * y + shift))
    u = (sign * y + shift) / unit
    power = float(np.clip(boxcox_normmax(u, method="mle"), LIMITS.smallest_power, 1.0))
    normal_scores = ndtri((rankdata(y) - 0.5) / len(y))
    order = np.argsort(y)

    def of_log(z: NDArray) -> NDArray:
        return sign * (unit * np.exp(sign * z) - shift)

    def of_power(z: NDArray) -> NDArray:
        return sign * (unit * inv_boxcox(np.maximum(sign * z, -1.0 / power), power) - shift)

    def of_asinh(z: NDArray) -> NDArray:
        return middle + width * np.sinh(z)

    def of_rank(z: NDArray) -> NDArray:
        return np.interp(z, normal_scores[order], y[order])

    weight = weights_or_ones(weight, len(y))

    def transformed(name: str, z: NDArray, inverse: Callable[[NDArray], NDArray]) -> Transformed:
        return Transformed(name, y, z, inverse, target_units(z[:, None], weight))

    return [
        transformed("log", sign * np.log(u), of_log),
        transformed("power", sign * boxcox(u, power), of_power),
        transformed("asinh", np.arcsinh((y - middle) / width), of_asinh),
        transformed("rank", normal_scores, of_rank),
    ]


def choose_transform(
    X: NDArray,
    Y: NDArray,
    weight: NDArray,
    together: NDArray,
    seed: int,
    most: float = LIMITS.hopeless,
) -> Transformed | None:
    """The transform through which small models have the smallest squared error on held-out targets.

    None if targets have no tails, or if the error is larger than `most` times that without a transform; the weights
    decide what it is worth in the end. `together` numbers sets of copies.
    """
    y = Y[:, 0]
    if len(y) < LIMITS.fewest:
        return None
    transforms = possible_transforms(y, weight)
    if not transforms:
        return None
    sample, rows, _ = small_table(X, Y, weight, seed)
    fold = assign_folds(3, len(sample), together=together[sample], random_state=seed)

    def squared_error(z: NDArray, candidate: Transformed | None) -> float:
        """Of out-of-fold predictions of z, brought back to y."""
        units = standard_scaling(z[:, None])
        standardized = Rows(rows.X, units(z[sample, None]), rows.weight)
        predictions = small_predictions(standardized, rows.weight, fold, seed)[:, 0]
        predictions = predictions * units.scale[0] + units.center[0]
        if candidate is not None:
            way_back = candidate.back(z[sample] - predictions, rows.weight)
            predictions = way_back(predictions)
        return float(np.average((predictions - y[sample]) ** 2, weights=rows.weight))

    without = squared_error(y, None)
    errors = [squared_error(transform.z, transform) for transform in transforms]
    best = int(np.argmin(errors))
    if errors[best] > most * without:
        return None
    return transforms[best]


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
    reach : float
        The largest difference to the average of the other members that was seen on held-out rows: in the model's
        predictions it differs by no more. Far from all training rows the way back would amplify what is
        extrapolated. Infinite if there are no other members.
    """

    name: str
    forms: list
    transform: TargetTransform
    weight: float
    scaling: Any
    reach: float = np.inf

    def __call__(self, X: NDArray) -> NDArray:
        """Predictions of the target, one column."""
        return self.transform(sum_of_forms(self.forms, X))

    def numbered(self, used: NDArray) -> "TransformedForms":
        """With support points that are counted among all rows given to fit, of which these were used."""
        return self._replace(forms=numbered_members(self.forms, used))

    def in_units(self, center: NDArray, scale: NDArray) -> "TransformedForms":
        """For targets that were standardized by these."""
        transform = self.transform._replace(target=self.transform.target * scale[0] + center[0])
        return self._replace(transform=transform, reach=self.reach * float(scale[0]))


def numbered_members(members: Sequence[Any], used: NDArray) -> list[Any]:
    """Members whose support points are counted among all rows given to fit, of which these were used."""
    numbered = []
    for member in members:
        if isinstance(member, (LocalForm, TransformedForms)):
            member = member.numbered(used)
        numbered.append(member)
    return numbered


def sum_of_forms(forms: Sequence[Any], X: NDArray) -> NDArray:
    """The average that forms predict, one column per function."""
    return np.sum([form.weight * form(X) for form in forms], axis=0)


def predict_average(members: Sequence[Any], X: NDArray) -> NDArray:
    """The average of all members; one of a transformed target within its reach of the others."""
    plain = [member for member in members if not isinstance(member, TransformedForms)]
    if len(plain) in (0, len(members)):
        return sum_of_forms(members, X)
    total = sum_of_forms(plain, X)
    others = total / sum(member.weight for member in plain)
    for member in members:
        if isinstance(member, TransformedForms):
            within = np.clip(member(X), others - member.reach, others + member.reach)
            total = total + member.weight * within
    return total


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


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors of out-of-fold predictions of the transformed target, one for every row, copies included."""

    transformed: Transformed
    errors: NDArray
    weight: NDArray
    place: NDArray  # of the row among the held-out ones
    unit: FeatureScaling  # of the target

    def way_back(self, without: Sequence[int] | NDArray = ()) -> TargetTransform:
        """The way back by these errors, perhaps without those at some places, to standardized targets."""
        used = ~np.isin(self.place, without)
        back = self.transformed.back(self.errors[used], self.weight[used])
        return back._replace(target=(back.target - self.unit.center[0]) / self.unit.scale[0])


def join_transformed(
    plain: TableSolution,
    other: TableSolution,
    table: Table,
    transformed: Transformed,
    weight: NDArray,
    unit: FeatureScaling,
) -> TableSolution:
    """The average of forms of the standardized target and of those of the transformed one, weighed on held-out rows.

    `other` predicts the standardized transformed target, from the same rows and folds. Out-of-fold predictions of the
    average have weights from other held-out rows. `weight` are those of the rows, `unit` that of the target.
    """
    if not np.array_equal(plain.held, other.held):  # if rounding makes different targets equal
        return plain
    held = plain.held
    units = transformed.units
    predictions = other.out_of_fold[:, 0] * units.scale[0] + units.center[0]
    place_of_row = np.full(table.shape[0], -1)
    place_of_row[held] = np.arange(len(held))
    place = place_of_row[table.copies]
    rows = np.flatnonzero(place >= 0)
    place = place[rows]
    errors = transformed.z[rows] - predictions[place]
    held_out = HeldOutErrors(transformed, errors, weight[rows], place, unit)

    parts = [part for part in np.array_split(np.arange(len(held)), 5) if len(part)]
    through = np.empty((len(held), 1))
    for part in parts:
        through[part, 0] = held_out.way_back(without=part)(predictions[part])
    both = np.stack([plain.out_of_fold, through])
    truth = table.merged.Y[held]
    weight_of_held = np.bincount(table.copies, weights=weight)[held]

    def weigh(places: Any) -> NDArray:
        chosen = both[:, places]
        return average(chosen, truth[places], weight_of_held[places], TABLE_NUMBERS).weights

    averaged = np.empty_like(truth)
    for part in parts:
        others = np.setdiff1d(np.arange(len(held)), part)
        averaged[part] = weighted_sum(weigh(others), both[:, part])

    name = f"{transformed.name} of the target"
    share_of_plain, share = weigh(slice(None))
    members: list[Any] = []
    certificates = []
    if share_of_plain > 0:
        certificates.append(plain.certificate)
        for member in plain.members:
            members.append(member._replace(weight=float(share_of_plain * member.weight)))
    if share > 0:
        certificates.append(other.certificate)
        inner = [member.in_units(units.center, units.scale) for member in other.members]
        back = held_out.way_back()
        scaling = inner[0].scaling
        reach = np.inf
        if share_of_plain > 0:
            reach = float(np.max(np.abs(through - plain.out_of_fold)))
        members.append(TransformedForms(name, inner, back, float(share), scaling, reach))
    squares = np.sum((through - truth) ** 2, axis=1)
    error = float(np.average(squares, weights=weight_of_held))
    return plain._replace(
        members=members,
        out_of_fold=averaged,
        errors=plain.errors | {name: error},
        certificate=max(certificates),
    )
