"""The fit of the automatic learner: blocks -> families on folds -> average -> the kept settings on all rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.averaging import Average, average_of, paired_z
from mercerless.core.folds import Split
from mercerless.core.units import Standardizer
from mercerless.core.validation import UselessModelWarning, warn

#: Interquartile ranges beyond which a number is extreme.
FENCE = 3.0
#: Standard errors by which extreme numbers must help before they are used as they are.
FENCE_ERRORS = 1.5
#: Standard errors beyond which a difference counts.
VERDICT = 2.0
#: Weights below this are left out.
SMALLEST_WEIGHT = 1e-6


class Setting(NamedTuple):
    """One learner of an average."""

    similarity: str  # the block that it learns from
    family: str
    parameter: Any  # penalty, number of neighbors, ...


class NegativeSpectrum(NamedTuple):
    """Value of the negative eigenvalues for the task, judged out of fold.

    Attributes
    ----------
    z : float
        Number of standard errors by which the out-of-fold loss is lower if the negative part is kept with its sign
        flipped than if it is cut off. About normal if it makes no difference.
    verdict : str
        ``"useful"`` (z > 2), ``"harmful"`` (z < -2), ``"undecided"``, ``"absent"`` when there are no negative
        eigenvalues, or ``"unknown"`` without a symmetric matrix of all items.
    """

    z: float
    verdict: str

    def __str__(self) -> str:
        if self.verdict == "unknown":
            return "The spectrum is unknown: items are not all compared, or in one direction."
        if self.verdict == "absent":
            return "The negative part of the spectrum is absent: flip and clip agree."
        better, worse = ("flip", "clip") if self.z > 0.0 else ("clip", "flip")
        amount = f"{abs(self.z):.1f} standard errors"
        if self.verdict == "undecided":
            return (
                "Whether the negative part of the spectrum helps is undecided: "
                f"{better} is ahead of {worse} by {amount} only."
            )
        return (
            f"The negative part of the spectrum is {self.verdict}: {better} beats {worse} by "
            f"{amount}."
        )


class Targets(NamedTuple):
    """What is learned: classes, or numbers in units of their deviation."""

    Y: NDArray  # (n, q): +-1 for every class, or the standardized numbers and, if some are extreme, cut ones
    labels: NDArray | None  # (n,), numbers of the classes
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def of_classes(cls, labels: NDArray, n_classes: int) -> "Targets":
        """A column of +-1 for every class."""
        return cls(np.where(np.arange(n_classes) == labels[:, None], 1.0, -1.0), labels)

    @classmethod
    def of_numbers(cls, y: NDArray, weight: NDArray) -> "Targets":
        """Standardized numbers and, if some lie beyond the fences, the same cut there as a second column."""
        units = Standardizer.fit(y[:, None], weight)
        low, high = np.quantile(y, [0.25, 0.75])
        reach = FENCE * (high - low)
        fenced = np.clip(y, low - reach, high + reach)
        columns = [y]
        if high > low and not np.array_equal(y, fenced):
            columns.append(fenced)
        Y = units(np.column_stack(columns))
        return cls(Y, None, float(units.mean[0]), float(units.spread[0]))

    @property
    def classify(self) -> bool:
        return self.labels is not None

    def of_average(self, rows: Any) -> NDArray:
        """The targets of `average_of`."""
        return self.Y[rows] if self.labels is None else self.labels[rows]

    def in_units(self, prediction: NDArray) -> NDArray:
        """Predictions of an average in the units of the targets."""
        return prediction if self.classify else prediction[:, 0] * self.scale + self.mean


@dataclass(frozen=True, eq=False)
class FittedFamilies:
    """The members that an average kept, fitted on all rows."""

    members: Sequence[tuple[str, Any]]  # the block and the fitted family
    settings: Sequence[Setting]
    average: Average
    targets: Targets
    judged: NDArray  # the rows that were held out
    out_of_fold: NDArray  # (n_judged, n_classes) probabilities, or (n_judged,) numbers
    family_scores: dict[str, dict[str, float]]
    negative_spectrum: dict[str, NegativeSpectrum]

    def __call__(self, new: Mapping[str, Any]) -> NDArray:
        """Probabilities (n, n_classes), or numbers (n,), of new rows."""
        scores = [family.scores(new[name]) for name, family in self.members]
        return self.targets.in_units(self.average(np.concatenate(scores)))


def fit_families(
    blocks: Mapping[str, Any],
    targets: Targets,
    weight: NDArray,
    splits: Sequence[Split],
    parts: NDArray,
    run: Callable = map,
) -> FittedFamilies:
    """Judge the families of all blocks on folds, average the best, and fit these on all rows.

    `splits` hold out every row once, or a single part of many rows; `parts` (n,) are those of the honest figures.
    ``run(function, splits)`` may work in parallel.
    """
    classify = targets.classify
    members = [(name, family) for name in blocks for family in blocks[name].families(classify)]
    settings = [
        Setting(name, *family.described(one)) for name, family in members for one in family.settings
    ]
    kinds = [setting[:2] for setting in settings]

    def held_out_scores(split: Split) -> NDArray:
        fold = {name: block.split(*split) for name, block in blocks.items()}
        Y = targets.Y[split[0]]
        scores = []
        for name, family in members:
            train, test = fold[name]
            scores.append(family.fit(train, Y).scores(test))
        return np.concatenate(scores)

    judged = np.concatenate([test for _, test in splits])
    order = np.argsort(judged)
    judged = judged[order]
    scores = np.concatenate(list(run(held_out_scores, splits)), axis=1)[:, order]
    weight = weight[judged]
    if not classify:
        column = choose_column(scores, targets, weight, judged, kinds)
        targets = targets._replace(Y=targets.Y[:, column])
        scores = scores[:, :, column]
    target = targets.of_average(judged)
    average = average_of(
        scores, target, weight, classify=classify, kinds=kinds, parts=parts[judged], by_gain=True
    )
    assert average.out_of_fold is not None
    warn_if_no_better(average.out_of_fold, targets.Y[judged], weight, classify)
    spectrum = {name: judge_spectrum(name, average, target, weight) for name in blocks}
    kept_kinds = [kinds[position] for position in average.kept]
    figures_of_families = family_scores(kept_kinds, target, weight, average)
    out_of_fold = targets.in_units(average.out_of_fold)

    average = average.take(average.weights >= min(SMALLEST_WEIGHT, average.weights.max()))
    average = replace(
        average, best={}, kinds_out_of_fold={}
    )  # files of models cannot hold their keys
    fitted = []
    is_kept = np.isin(np.arange(len(settings)), average.kept)
    for name, family in members:
        own, is_kept = np.split(is_kept, [len(family.settings)])
        if own.any():
            family = family.keep(np.flatnonzero(own))
            fitted.append((name, family.fit(blocks[name], targets.Y)))
    return FittedFamilies(
        fitted,
        [settings[position] for position in average.kept],
        average,
        targets,
        judged,
        out_of_fold,
        figures_of_families,
        spectrum,
    )


def choose_column(
    scores: NDArray, targets: Targets, weight: NDArray, judged: NDArray, kinds: Sequence
) -> list[int]:
    """Which column of targets serves: cut numbers, unless the held-out error of plain ones is clearly lower."""
    if targets.Y.shape[1] == 1:
        return [0]
    Y = targets.Y[judged]
    losses = []
    for column in ([0], [1]):
        values = scores[:, :, column]
        average = average_of(
            values, Y[:, column], weight, classify=False, kinds=kinds, by_gain=True
        )
        prediction = average(values[average.kept])
        losses.append((prediction[:, 0] - Y[:, 0]) ** 2)
    return [0] if paired_z(losses[0], losses[1], weight) > FENCE_ERRORS else [1]


def losses_of(prediction: Any, target: NDArray) -> NDArray:
    """Log-loss of probabilities, or squared error, of every row."""
    if target.ndim == 2:
        return ((prediction - target) ** 2).sum(axis=1)
    of_truth = prediction[np.arange(len(target)), target]
    return -np.log(np.maximum(of_truth, np.finfo(float).tiny))


def judge_spectrum(
    name: str, average: Average, target: NDArray, weight: NDArray
) -> NegativeSpectrum:
    """Compare flip with clip on held-out rows."""
    flip = average.kinds_out_of_fold.get((name, "flip"))
    clip = average.kinds_out_of_fold.get((name, "clip"))
    if flip is None or clip is None:
        return NegativeSpectrum(0.0, "unknown")
    if np.abs(flip - clip).max() <= 1e-3:
        return NegativeSpectrum(0.0, "absent")
    z = paired_z(losses_of(flip, target), losses_of(clip, target), weight)
    if abs(z) <= VERDICT:
        return NegativeSpectrum(z, "undecided")
    return NegativeSpectrum(z, "useful" if z > 0.0 else "harmful")


def family_scores(
    kinds: Sequence[tuple[str, str]], target: NDArray, weight: NDArray, average: Average
) -> dict[str, dict[str, float]]:
    """Cross-fitted figures of the best setting of every family, and of the whole as "average", with their weights."""
    several = len({name for name, _ in kinds}) > 1
    found = {}
    for kind in dict.fromkeys(kinds):
        name = ": ".join(kind) if several else kind[1]
        found[name] = figures(average.kinds_out_of_fold[kind], target, weight)
        own = [one == kind for one in kinds]
        found[name]["weight"] = float(average.weights[own].sum())
    found["average"] = figures(average.out_of_fold, target, weight)
    found["average"]["weight"] = float(average.weights.sum())
    return found


def figures(prediction: Any, target: NDArray, weight: NDArray) -> dict[str, float]:
    """Accuracy and log-loss, or squared error and R2 of standardized numbers."""
    loss = float(np.average(losses_of(prediction, target), weights=weight))
    if target.ndim == 2:
        return {"mse": loss, "r2": 1.0 - loss}
    is_right = prediction.argmax(axis=1) == target
    return {"accuracy": float(np.average(is_right, weights=weight)), "log_loss": loss}


def warn_if_no_better(prediction: NDArray, Y: NDArray, weight: NDArray, classify: bool) -> None:
    """Warn unless held-out squared errors are lower than those of the best constant by two standard errors.

    A row counts with at most ten times the constant's mean error, so that one row does not decide.
    """
    if classify:
        Y = (Y > 0.0).astype(float)
    constant = ((Y - np.average(Y, axis=0, weights=weight)) ** 2).sum(axis=1)
    mean = float(np.average(constant, weights=weight))
    if not np.all(np.isfinite(constant)) or mean == 0.0:
        return
    losses = ((prediction - Y) ** 2).sum(axis=1)
    most = 10.0 * mean
    if paired_z(np.minimum(losses, most), np.minimum(constant, most), weight) >= VERDICT:
        return
    gain = 100.0 * (1.0 - float(np.average(losses, weights=weight)) / mean)
    better = f"{gain:.1f} % lower than" if gain > 0.0 else f"{-gain:.1f} % higher than"
    warn(
        f"The model is no better than a constant, as far as {len(Y)} held-out items can tell: its "
        f"squared error is {better} that of the mean; check the similarity, its kind and the "
        "targets, or add items.",
        UselessModelWarning,
    )
