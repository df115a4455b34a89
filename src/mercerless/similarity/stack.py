"""The automatic stack: families judged out of fold, calibrated and averaged, and fitted again on all items.

The story of a fit, `fit_stack`, is the same for comparisons of all items, of both directions, and with landmarks: the
`Source` gives out-of-fold scores of every setting, `average_classes` and `average_numbers` choose the settings to keep
and their weights, and the kept ones are fitted on all items.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mercerless.core import averaging_old as averaging
from mercerless.core.averaging_old import STACKED_CLASSES, STACKED_NUMBERS, Units, paired_z
from mercerless.core.calibration import Calibration, calibrate, fit_temperature, sharpen
from mercerless.core.folds import OutOfFold, Split, splits_of
from mercerless.similarity.families import (
    NEED_DIAGONAL,
    Comparisons,
    Members,
    Setting,
    StackFamily,
    all_settings,
    default_families,
    fit_members,
    keep_settings,
)

RunTasks = Callable[[str, Callable, Sequence], Iterable]


def run_in_order(_: str, function: Callable, tasks: Sequence) -> Iterable:
    """Map a function over tasks, one after another."""
    return map(function, tasks)


@dataclass(frozen=True)
class StackRules:
    """Numbers and thresholds of the average and of its verdicts."""

    #: How many settings of every family are averaged.
    n_best: int = 3
    #: Strength that pulls the weights toward each other.
    pull: float = 0.1
    #: The same for classes of few items, whose weights are uncertain (45 sets: log-loss lower by .0045 +- .0011).
    small_pull: float = 0.3
    small_items: int = 100
    #: The same for comparisons with landmarks.
    landmark_pull: float = 0.02
    #: Of more items, settings with a factorization each (with landmarks, all settings) are judged in one fold first,
    #: and the worst are left out.
    race_items: int = 500
    #: How many interquartile ranges beyond the quartiles a target is extreme.
    fence: float = 3.0
    #: Standard errors by which extreme targets must be better than cut ones to be kept.
    extreme_targets: float = 1.5
    #: Standard errors by which an average with optional families must be better than one without.
    optional_families: float = 1.0
    #: Standard errors beyond which the negative part of a spectrum is useful or harmful.
    verdict: float = 2.0


RULES = StackRules()


# Families with a factorization for every setting.
COSTLY_FAMILIES = {"features", "gaussian", "profiles", "row_profiles", "row_cosines"}


class NegativeSpectrum(NamedTuple):
    """Value of the negative eigenvalues for the task, judged out of fold.

    Attributes
    ----------
    z : float
        Number of standard errors by which the out-of-fold loss is lower if the negative part is kept with its sign
        flipped than if it is cut off. About normal if it makes no difference.
    verdict : str
        ``"useful"`` (z > 2), ``"harmful"`` (z < -2), ``"undecided"``, ``"absent"`` when there are no negative
        eigenvalues, so that no setting of the two differs, or ``"unknown"`` if items are compared with landmarks that
        are not among them.
    sentence : str
        The same in words.
    """

    z: float
    verdict: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Average(NamedTuple):
    """The choice by out-of-fold scores: the members to keep, their weights, and their losses."""

    settings: tuple[Setting, ...]
    weights: NDArray  # (n_members,)
    weights_without_diag: NDArray  # (n_members,), where the rows' own similarities are not known
    calibration: Calibration | None
    temperatures: tuple[float, float]  # of the averages by the two weights
    family_scores: dict[str, dict[str, float]]
    negative_spectrum: NegativeSpectrum
    out_of_fold: NDArray  # (n, q), probabilities or numbers
    out_of_fold_without_diag: NDArray  # the same by `weights_without_diag`
    losses: NDArray  # (n,), squared errors in the units of the targets
    certificate: float
    # (n_blocks, n, q), by what was chosen without each block of `cross_fit`; dropped when all is fitted
    by_block: NDArray | None = None

    def __call__(self, scores: NDArray, diagonal_known: bool) -> NDArray:
        """Probabilities or numbers from the members' scores (n_members, m, q)."""
        if self.calibration is None:
            weights = self.weights if diagonal_known else self.weights_without_diag
            return np.tensordot(weights, scores, 1)
        return self.pooled(self.calibration(scores), diagonal_known)

    def pooled(self, proba: NDArray, diagonal_known: bool) -> NDArray:
        """Probabilities from the members' calibrated ones."""
        weights = self.weights if diagonal_known else self.weights_without_diag
        temperature = self.temperatures[0 if diagonal_known else 1]
        return sharpen(np.tensordot(weights, proba, 1), temperature)


class Stack(NamedTuple):
    """A fitted stack: its average and its members.

    `similarity.several.Several` has the same methods, for several similarities.
    """

    average: Any  # `Average`, or `similarity.labels.LabelAverages`
    members: Members
    judged: NDArray  # positions of the items with out-of-fold predictions
    points: NDArray  # positions of the items at which Gaussians are placed, with landmarks
    n_fenced: int = 0  # extreme targets that were cut
    # out-of-fold loss of a small stack by the number of landmarks; empty without landmarks
    curve: dict[int, float] | None = None

    def __call__(self, new: Comparisons) -> NDArray:
        """Probabilities or numbers of new rows."""
        return self.average(self.members.scores(new), new.has_distances)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of a model that describe the stack."""
        average = self.average
        attributes = {
            "members_": average.settings,
            "weights_": average.weights,
            "weights_without_diag_": average.weights_without_diag,
            "family_scores_": average.family_scores,
            "negative_spectrum_": average.negative_spectrum,
            "certificate_": average.certificate,
        }
        if average.calibration is not None:
            attributes["calibration_"] = average.calibration
            attributes["temperatures_"] = average.temperatures
        return attributes

    # questions about new items and about training items: the model knows how they are compared

    def predict(self, model: Any, X: Any, diag: Any, reverse: Any) -> NDArray:
        """Probabilities or standardized numbers of new items."""
        return model._predict_new(X, diag, reverse)

    def compare(self, model: Any, X: Any, diag: Any, reverse: Any) -> Comparisons:
        """Comparisons of new items, all at once."""
        return model._compare_new(X, diag, reverse)

    def held_out(self, model: Any, diag: Any, reverse: Any) -> OutOfFold:
        """Out-of-fold predictions for the training items, as new items given in this way are predicted."""
        return model._held_out_by(diag, reverse)

    def check_sparsify(self, model: Any) -> None:
        """Raise if the items that matter cannot be chosen among all."""
        if model.landmarks_ is not None:
            raise ValueError("sparsify is for a model that was fitted on all comparisons.")

    def rows_with_shares(self, model: Any) -> NDArray:
        """Training rows that have a share in predictions."""
        return model._rows_with_shares()

    def explained(self, model: Any, train: Any, items: NDArray) -> Any:
        """The stack with the data that split its scores among these items."""
        return model._explained_stack(train, items)


class Learned(Protocol):
    """Families, and how they are fitted with and without a fold."""

    @property
    def families(self) -> tuple[StackFamily, ...]:
        """Families that compete."""

    @property
    def optional(self) -> tuple[StackFamily, ...]:
        """Families that take part if they make the average better."""

    @property
    def judged(self) -> NDArray:
        """Positions of the items with out-of-fold scores."""

    @property
    def points(self) -> NDArray:
        """Positions of the items at which Gaussians are placed, with landmarks."""

    def raced(self, run: RunTasks, classify: bool) -> "Learned":
        """The same without settings that are no good in the first fold."""

    def out_of_fold(self, run: RunTasks) -> NDArray:
        """Scores (n_settings, n_judged, n_outputs) of every setting, by learners that have not seen the item."""

    def fit(self, settings: Sequence[Setting], outputs: slice) -> Members:
        """Settings fitted on all items, for some columns of the targets."""

    def curve(self, Y: NDArray, weight: NDArray, classify: bool) -> dict[int, float]:
        """Losses with fewer comparisons."""


class Source(Protocol):
    """Comparisons of training items to learn from."""

    def pull(self, classify: bool) -> float:
        """How strongly the weights are pulled toward each other."""

    def learn(self, targets: NDArray, weight: NDArray, classify: bool) -> Learned:
        """Families for these targets and weights."""


@dataclass(frozen=True)
class AllItems:
    """Comparisons of all training items with each other."""

    comparisons: Any  # `Comparisons`
    fold_of: NDArray
    # the source of held-out rows if it is another one: a single direction, if `comparisons` are the mean of both
    held_out: Any = None
    row_families: tuple[StackFamily, ...] = ()  # optional families

    def pull(self, classify: bool) -> float:
        """How strongly the weights are pulled toward each other."""
        is_small = len(self.fold_of) <= RULES.small_items
        return RULES.small_pull if classify and is_small else RULES.pull

    def learn(self, targets: NDArray, weight: NDArray, classify: bool) -> "LearnedItems":
        """Families fitted on the items of all folds but one, and at last on all."""
        has_one_class_each = classify and bool(np.all((targets > 0.0).sum(axis=1) == 1))
        n_classes = targets.shape[1] if has_one_class_each else 0
        families = default_families(classify, len(targets), n_classes)
        return LearnedItems(families, self.row_families, self, targets, weight)


@dataclass(frozen=True)
class LearnedItems:
    """Families on comparisons of all training items with each other."""

    families: tuple[StackFamily, ...]
    optional: tuple[StackFamily, ...]
    source: AllItems
    targets: NDArray
    weight: NDArray
    first_scores: NDArray | None = None  # of the first fold, if it was raced

    @property
    def judged(self) -> NDArray:
        """All items."""
        return np.arange(len(self.targets))

    @property
    def points(self) -> NDArray:
        """None: there are no landmarks."""
        return np.array([], dtype=int)

    def raced(self, run: RunTasks, classify: bool) -> "LearnedItems":
        """The same without settings that are no good in the first fold; most cost a factorization in every fold."""
        splits = splits_of(self.source.fold_of)
        if len(self.targets) <= RULES.race_items or len(splits) < 2:
            return self
        families = (*self.families, *self.optional)
        (scores,) = run("fold", self._scorer(families), splits[:1])
        test = splits[0][1]
        settings = all_settings(families)
        weight = self.weight[test]
        is_kept = race(settings, scores, self.targets[test], weight, classify, COSTLY_FAMILIES)
        kept = [setting for setting, stays in zip(settings, is_kept) if stays]
        return replace(
            self,
            families=keep_settings(self.families, kept),
            optional=keep_settings(self.optional, kept),
            first_scores=scores[is_kept],
        )

    def out_of_fold(self, run: RunTasks) -> NDArray:
        """Scores of every setting, by learners fitted on the other folds; 0 for one item alone."""
        families = (*self.families, *self.optional)
        scores = np.zeros((len(all_settings(families)), *self.targets.shape))
        splits = splits_of(self.source.fold_of) if len(self.targets) > 1 else []
        if self.first_scores is not None:
            scores[:, splits[0][1]] = self.first_scores
            splits = splits[1:]
        for (_, test), of_fold in zip(splits, run("fold", self._scorer(families), splits)):
            scores[:, test] = of_fold
        return scores

    def _scorer(self, families: Sequence[StackFamily]) -> Callable[[Split], NDArray]:
        """Scores the held-out items of a split."""
        held_out = self.source.held_out
        if held_out is None:
            held_out = self.source.comparisons
        return partial(
            out_of_fold_scores,
            self.source.comparisons,
            held_out,
            self.targets,
            families,
            self.weight,
        )

    def fit(self, settings: Sequence[Setting], outputs: slice) -> Members:
        """Settings fitted on all items."""
        kept = keep_settings((*self.families, *self.optional), settings)
        families = tuple(family.for_predictions() for family in kept)
        targets = np.ascontiguousarray(self.targets[:, outputs])
        return fit_members(self.source.comparisons, targets, families, self.weight)

    def curve(self, Y: NDArray, weight: NDArray, classify: bool) -> dict[int, float]:
        """Nothing: all comparisons are used."""
        return {}


def race(
    settings: Sequence[Setting],
    scores: NDArray,
    Y: NDArray,
    weight: NDArray,
    classify: bool,
    families: set[str],
) -> NDArray:
    """Which settings stay after one fold: as many of these families as are averaged, one more of a large family.

    All of clip and flip stay, since they are compared penalty by penalty (`NegativeSpectrum`).
    """
    if classify:
        losses = calibrate(scores, (Y > 0.0).astype(float), weight).loss
    else:
        losses = ((scores - Y) ** 2).mean(axis=2) @ weight / weight.sum()
    is_kept = np.ones(len(settings), dtype=bool)
    for name in families - {"clip", "flip"}:
        index = np.flatnonzero([setting.family == name for setting in settings])
        number = RULES.n_best + int(len(index) > 2 * RULES.n_best)
        worst = np.argsort(losses[index], kind="stable")[number:]
        is_kept[index[worst]] = False
    return is_kept


def out_of_fold_scores(
    comparisons: Comparisons,
    held_out: Comparisons,
    targets: NDArray,
    families: Sequence[StackFamily],
    weight: NDArray,
    split: Split,
) -> NDArray:
    """Fit families on the training items of a split and score its test items."""
    train, test = split
    members = fit_members(comparisons.select(train, train), targets[train], families, weight[train])
    return members.scores(held_out.select(test, train))


def fit_stack(
    source: Source,
    Y: NDArray,
    weight: NDArray,
    classify: bool,
    block_of: NDArray,
    run: RunTasks = run_in_order,
) -> Stack:
    """The whole selection: out-of-fold scores of all settings, their average, and its members fitted on all items.

    Targets are +-1 per class, or standardized numbers. `run` maps a function over the folds and over the one final fit,
    `block_of` numbers the blocks of `cross_fit`.
    """
    fenced = None if classify else fence(Y, weight)
    targets = Y if fenced is None else np.hstack([Y, fenced])  # which share all decompositions
    learned = source.learn(targets, weight, classify).raced(run, classify)
    scores = learned.out_of_fold(run)

    judged = learned.judged
    shown = Y[judged]
    cut = None if fenced is None else fenced[judged]
    weigh = partial(
        weigh_members,
        Y=shown,
        fenced=cut,
        weight=weight[judged],
        blocks=splits_of(block_of[judged]),
        classify=classify,
        pull=source.pull(classify),
    )
    settings = all_settings(learned.families)
    average, used = weigh(scores[: len(settings)], settings)
    if learned.optional:
        every = weigh(scores, (*settings, *all_settings(learned.optional)))
        average, used = simpler_average(
            (average, used), every, shown, weight[judged], splits_of(block_of[judged])
        )

    outputs = slice(0, Y.shape[1])
    n_fenced = 0
    if fenced is not None and used is cut:
        outputs = slice(Y.shape[1], None)
        n_fenced = int(np.sum(fenced != Y))
    (members,) = run("members", partial(learned.fit, outputs=outputs), [average.settings])
    curve = learned.curve(shown, weight[judged], classify)
    return Stack(average, members, judged, learned.points, n_fenced, curve)


def weigh_members(
    scores: NDArray,
    settings: Sequence[Setting],
    Y: NDArray,
    fenced: NDArray | None,
    weight: NDArray,
    blocks: Sequence[Split],
    classify: bool,
    pull: float = RULES.pull,
) -> tuple[Average, NDArray]:
    """The average of the best settings with its out-of-fold predictions, and the targets its members are fitted on.

    `blocks` are the splits of `cross_fit`.
    """
    if classify:
        choice = average_classes(scores, Y, weight, settings, pull)
        targets = Y
    else:
        choice, targets = choose_targets(scores, Y, fenced, weight, settings, pull)
    return cross_fit(choice, scores, settings, Y, weight, blocks, pull), targets


def simpler_average(
    plain: tuple[Average, NDArray],
    both: tuple[Average, NDArray],
    Y: NDArray,
    weight: NDArray,
    blocks: Sequence[Split],
) -> tuple[Average, NDArray]:
    """The average without optional families, unless that with them is better out of fold by a standard error.

    They double the learners to choose from, which loses more than it gains on small data whose directions agree. The
    families' own figures stay those of all. For the out-of-fold predictions of a block the averages that were chosen
    without it decide, on the other blocks.
    """
    without_rows = plain[0]
    with_rows = both[0]
    classify = with_rows.calibration is not None
    out_of_fold = without_rows.out_of_fold.copy()
    without_diag = without_rows.out_of_fold_without_diag.copy()
    if with_rows.by_block is not None and without_rows.by_block is not None:
        for number, (train, test) in enumerate(blocks):
            new = _losses(with_rows.by_block[number, train], Y[train], classify)
            old = _losses(without_rows.by_block[number, train], Y[train], classify)
            if paired_z(new, old, weight[train]) > RULES.optional_families:
                out_of_fold[test] = with_rows.out_of_fold[test]
                without_diag[test] = with_rows.out_of_fold_without_diag[test]

    average, targets = both
    table = with_rows.family_scores
    new = _losses(with_rows.out_of_fold, Y, classify)
    old = _losses(without_rows.out_of_fold, Y, classify)
    if not paired_z(new, old, weight) > RULES.optional_families:
        average, targets = plain
        table = {name: row | {"weight": 0.0} for name, row in table.items()} | average.family_scores
    table["stack"] |= figures_of(out_of_fold, Y, weight, classify)
    average = average._replace(
        family_scores=table, out_of_fold=out_of_fold, out_of_fold_without_diag=without_diag
    )
    return average, targets


def _losses(prediction: NDArray, Y: NDArray, classify: bool) -> NDArray:
    """Log-losses of classes, or squared errors of numbers."""
    return log_loss(prediction, Y > 0.0) if classify else ((prediction - Y) ** 2).sum(axis=1)


def without_blocks(stack: Any) -> Any:
    """A stack without the predictions by blocks, which only the fit needs."""
    if stack.average.by_block is None:
        return stack
    return stack._replace(average=stack.average._replace(by_block=None))


def important_items(stack: Stack, number: int) -> NDArray:
    """Training items with the largest shares of their members' coefficients, weighed as the members are."""
    shares = np.zeros(len(stack.members.diagonal))
    weight_of = dict(zip(stack.members.settings, np.abs(stack.average.weights)))
    for family in stack.members.families:
        for setting, sizes in family.item_sizes():
            total = max(float(sizes.sum()), np.finfo(float).tiny)
            shares += sizes / total * weight_of[setting]
    return np.sort(np.argsort(-shares, kind="stable")[:number])


def fence(Y: NDArray, weight: NDArray) -> NDArray | None:
    """Targets cut at three interquartile ranges beyond the quartiles; None if none is beyond."""
    weights = np.broadcast_to(weight[:, None], Y.shape)
    low, high = np.quantile(Y, [0.25, 0.75], axis=0, weights=weights, method="inverted_cdf")
    reach = np.where(high > low, RULES.fence * (high - low), np.inf)
    fenced = np.clip(Y, low - reach, high + reach)
    return None if np.array_equal(fenced, Y) else fenced


def select_settings(settings: Sequence[Setting], loss: NDArray) -> NDArray:
    """Positions of the settings of least loss in every family, at most `StackRules.n_best` of each."""
    chosen: list[int] = []
    for family in dict.fromkeys(setting.family for setting in settings):
        index = np.array([i for i, setting in enumerate(settings) if setting.family == family])
        chosen += index[np.argsort(loss[index], kind="stable")[: RULES.n_best]].tolist()
    return np.array(sorted(chosen))


class ChosenAverage(NamedTuple):
    """A choice on some items: the average, and for every family its setting of least loss."""

    average: Average
    best: dict[str, int]  # positions among all settings
    calibration: Calibration | None  # of all settings


def average_classes(
    scores: NDArray,
    Y: NDArray,
    weight: NDArray,
    settings: Sequence[Setting],
    pull: float = RULES.pull,
    start: Calibration | None = None,
) -> ChosenAverage:
    """Calibrate out-of-fold scores of targets +-1, weigh the best of every family by the Brier score, and sharpen."""
    onehot = (Y > 0.0).astype(float)
    calibration = calibrate(scores, onehot, weight, start=start)
    proba = calibration(scores)
    losses = log_loss(proba, onehot)
    hits = proba.argmax(axis=2) == onehot.argmax(axis=1)
    figures = {"accuracy": hits @ weight / weight.sum(), "log_loss": losses @ weight / weight.sum()}
    chosen = select_settings(settings, figures["log_loss"])
    best = _best_settings(settings, figures["log_loss"])
    average = _average(settings, chosen, best, scores, proba, onehot, weight, losses, figures, pull)
    kept = [settings.index(setting) for setting in average.settings]
    averaged = [
        np.tensordot(weights, proba[kept], 1)
        for weights in (average.weights, average.weights_without_diag)
    ]
    first, second = (fit_temperature(p, onehot, weight) for p in averaged)
    out_of_fold = sharpen(averaged[0], first)
    without_diag = sharpen(averaged[1], second)
    hits = out_of_fold.argmax(axis=1) == onehot.argmax(axis=1)
    average.family_scores["stack"] |= {
        "accuracy": float(hits @ weight / weight.sum()),
        "log_loss": float(log_loss(out_of_fold, onehot) @ weight / weight.sum()),
    }
    average = average._replace(
        calibration=calibration.take(kept),
        temperatures=(first, second),
        out_of_fold=out_of_fold,
        out_of_fold_without_diag=without_diag,
        losses=4.0 * ((out_of_fold - onehot) ** 2).sum(axis=1),  # in the units of Y
        certificate=max(calibration.gradient, average.certificate),
    )
    return ChosenAverage(average, best, calibration)


def average_numbers(
    scores: NDArray,
    Y: NDArray,
    weight: NDArray,
    settings: Sequence[Setting],
    truth: NDArray,
    robust: bool = False,
    pull: float = RULES.pull,
) -> ChosenAverage:
    """Weigh the best of every family by the squared error; figures and losses are those of the `truth`.

    If `robust`, rows with targets or predictions beyond three standard deviations count less in the weights.
    """
    mse = ((scores - Y) ** 2).mean(axis=2) @ weight / weight.sum()
    chosen = select_settings(settings, mse)
    errors = ((scores - truth) ** 2).mean(axis=2)
    mse = errors @ weight / weight.sum()
    height = (
        np.abs(np.concatenate([Y[None], scores[chosen]])).max(axis=(0, 2))
        if robust
        else np.zeros(len(Y))
    )
    light = weight / np.maximum(1.0, height / 3.0) ** 2
    best = _best_settings(settings, mse)
    average = _average(
        settings,
        chosen,
        best,
        scores,
        scores,
        Y,
        light,
        errors,
        {"r2": 1.0 - mse, "mse": mse},
        pull,
        False,
    )
    losses = ((average.out_of_fold - truth) ** 2).sum(axis=1)
    loss = float(losses @ weight / weight.sum() / Y.shape[1])
    average.family_scores["stack"] |= {"r2": 1.0 - loss, "mse": loss}
    return ChosenAverage(average._replace(losses=losses), best, None)


def choose_targets(
    scores: NDArray,
    Y: NDArray,
    fenced: NDArray | None,
    weight: NDArray,
    settings: Sequence[Setting],
    pull: float = RULES.pull,
) -> tuple[ChosenAverage, NDArray]:
    """The average of members fitted on the targets or, if some are extreme, on fenced ones, and these targets.

    `scores` of fenced targets follow those of the others. Extreme targets, which hurt the members, are kept only if
    the out-of-fold error of the others is higher by 1.5 standard errors; two rows alone cannot cause that.
    """
    q = Y.shape[1]
    as_given = average_numbers(scores[:, :, :q], Y, weight, settings, Y, fenced is not None, pull)
    if fenced is None:
        return as_given, Y
    cut = average_numbers(scores[:, :, q:], fenced, weight, settings, Y, pull=pull)
    gain = paired_z(as_given.average.losses, cut.average.losses, weight)
    return (as_given, Y) if gain > RULES.extreme_targets else (cut, fenced)


def _average(
    settings: Sequence[Setting],
    chosen: NDArray,
    best: dict[str, int],
    scores: NDArray,
    predictions: NDArray,
    target: NDArray,
    weight: NDArray,
    losses: NDArray,
    figures: dict[str, NDArray],
    pull: float,
    normalize: bool = True,
) -> Average:
    """The weighted average of the chosen settings' predictions, and the figures of the families."""
    rule = replace(STACKED_CLASSES if normalize else STACKED_NUMBERS, pull=pull)
    full = averaging.average(predictions[chosen], target, weight, rule)
    free = np.array([settings[i].family not in NEED_DIAGONAL for i in chosen])
    without = averaging.average(predictions[chosen[free]], target, weight, rule)
    reduced = np.zeros(len(chosen))
    reduced[free] = without.weights
    table: dict[str, dict[str, float]] = {}
    for family, position in best.items():
        table[family] = {name: float(values[position]) for name, values in figures.items()}
        of_family = [settings[i].family == family for i in chosen]
        table[family]["weight"] = float(full.weights[of_family].sum())
    table["stack"] = {"weight": float(full.weights.sum())}
    kept = (full.weights > 0.0) | (reduced > 0.0)
    return Average(
        settings=tuple(settings[i] for i in chosen[kept]),
        weights=full.weights[kept],
        weights_without_diag=reduced[kept],
        calibration=None,
        temperatures=(1.0, 1.0),
        family_scores=table,
        negative_spectrum=_judge_negative_spectrum(settings, best, scores, losses, weight),
        out_of_fold=np.tensordot(full.weights, predictions[chosen], 1),
        out_of_fold_without_diag=np.tensordot(reduced, predictions[chosen], 1),
        losses=losses[chosen[0]],
        certificate=max(full.residual, without.residual),
    )


def cross_fit(
    choice: ChosenAverage,
    scores: NDArray,
    settings: Sequence[Setting],
    Y: NDArray,
    weight: NDArray,
    blocks: Sequence[Split],
    pull: float = RULES.pull,
) -> Average:
    """The chosen average with out-of-fold predictions and figures that do not depend on the held-out items' targets.

    For every block everything is chosen again on the items outside of it: settings, calibration, weights, temperature,
    the best setting of every family, and of numbers the targets (given or fenced), mean and scale. `scores`
    (n_settings, n, q, or 2 q with those of fenced targets) are out of fold. The blocks should be independent of the
    classes: folds that hold the same share of every class reveal the shares of the held-out items.
    """
    average = choice.average
    if len(blocks) < 2:
        return average
    classify = choice.calibration is not None
    families = list(choice.best)
    out = np.zeros(Y.shape)
    without_diag = np.zeros(Y.shape)
    of_families = np.zeros((len(families), *Y.shape))
    by_block = np.zeros((len(blocks), *Y.shape))
    for number, (train, test) in enumerate(blocks):
        if classify:
            chosen = _chosen_classes(
                scores, settings, Y, weight, train, pull, start=choice.calibration
            )
        else:
            chosen = _chosen_numbers(scores, settings, Y, weight, train, pull)
        by_block[number], other, of_family = chosen
        out[test] = by_block[number, test]
        without_diag[test] = other[test]
        of_families[:, test] = of_family[:, test]
    table = average.family_scores
    for name, prediction in zip([*families, "stack"], [*of_families, out]):
        table[name] |= figures_of(prediction, Y, weight, classify)
    return average._replace(
        out_of_fold=out, out_of_fold_without_diag=without_diag, by_block=by_block
    )


def _chosen_classes(
    scores: NDArray,
    settings: Sequence[Setting],
    Y: NDArray,
    weight: NDArray,
    train: NDArray,
    pull: float,
    start: Calibration | None,
) -> tuple[NDArray, NDArray, NDArray]:
    """Probabilities by what is chosen on some items: with and without own similarities, and by every family."""
    average, best, calibration = average_classes(
        scores[:, train], Y[train], weight[train], settings, pull, start
    )
    assert calibration is not None
    kept = [settings.index(setting) for setting in average.settings]
    positions = list(best.values())
    of_families = calibration.take(positions)(scores[positions])
    assert average.calibration is not None
    proba = average.calibration(scores[kept])
    return average.pooled(proba, True), average.pooled(proba, False), of_families


def _chosen_numbers(
    scores: NDArray,
    settings: Sequence[Setting],
    Y: NDArray,
    weight: NDArray,
    train: NDArray,
    pull: float,
) -> tuple[NDArray, NDArray, NDArray]:
    """The same for numbers, weighed in units of the items that are chosen on."""
    q = Y.shape[1]
    units = Units.of(Y[train], weight[train])
    target = units.enter(Y[train])
    as_given = units.enter(scores[:, :, :q])
    has_fenced = scores.shape[2] > q
    cut = units.enter(scores[:, :, q:]) if has_fenced else as_given
    fenced = fence(target, weight[train]) if has_fenced else None
    both = np.concatenate([as_given, cut], axis=2)[:, train]
    choice, chosen = choose_targets(both, target, fenced, weight[train], settings, pull)
    used = as_given if chosen is target else cut
    average = choice.average
    kept = [settings.index(setting) for setting in average.settings]
    of_families = used[list(choice.best.values())]
    predictions = average(used[kept], True), average(used[kept], False), of_families
    with_diag, without_diag, of_families = map(units.leave, predictions)
    return with_diag, without_diag, of_families


def figures_of(
    prediction: NDArray, Y: NDArray, weight: NDArray, classify: bool
) -> dict[str, float]:
    """Accuracy and log-loss of probabilities, or the squared error of numbers."""
    if not classify:
        loss = float(((prediction - Y) ** 2).mean(axis=1) @ weight / weight.sum())
        return {"r2": 1.0 - loss, "mse": loss}
    hits = prediction.argmax(axis=1) == Y.argmax(axis=1)
    losses = log_loss(prediction, Y > 0.0)
    return {
        "accuracy": float(hits @ weight / weight.sum()),
        "log_loss": float(losses @ weight / weight.sum()),
    }


def log_loss(proba: NDArray, onehot: NDArray) -> NDArray:
    """The negative logarithm of the probability of the right class, for shapes (..., n, n_classes)."""
    return -np.log(np.maximum((proba * onehot).sum(axis=-1), np.finfo(float).tiny))


def _best_settings(settings: Sequence[Setting], loss: NDArray) -> dict[str, int]:
    """The position of every family's setting of least loss."""
    best: dict[str, int] = {}
    for position, setting in enumerate(settings):
        if setting.family not in best or loss[position] < loss[best[setting.family]]:
            best[setting.family] = position
    return best


def _never_differ(settings: Sequence[Setting], scores: NDArray) -> bool:
    """Whether flip and clip have the same out-of-fold scores at every penalty: nothing is negative."""
    flip, clip = (
        scores[[setting.family == name for setting in settings]] for name in ("flip", "clip")
    )
    return bool(np.abs(flip - clip).max() <= 1e-8 * np.abs(clip).max())


def _judge_negative_spectrum(
    settings: Sequence[Setting],
    best: dict[str, int],
    scores: NDArray,
    losses: NDArray,
    weight: NDArray,
) -> NegativeSpectrum:
    """Put the z of flip against clip into words."""
    if "flip" not in best:
        return NegativeSpectrum(
            0.0, "unknown", "The spectrum is not known: no two items' both comparisons are."
        )
    if _never_differ(settings, scores):
        return NegativeSpectrum(
            0.0, "absent", "The negative part of the spectrum is absent: flip and clip agree."
        )
    z = paired_z(losses[best["flip"]], losses[best["clip"]], weight)
    verdict = verdict_on(z)
    better, worse = ("flip", "clip") if z > 0.0 else ("clip", "flip")
    amount = f"{abs(z):.1f} standard errors"
    if verdict != "undecided":
        return NegativeSpectrum(
            z,
            verdict,
            f"The negative part of the spectrum is {verdict}: {better} beats {worse} by {amount}.",
        )
    evidence = f"{better} is ahead by {amount} only"
    if z == 0.0:
        evidence = "flip and clip do equally well"
    return NegativeSpectrum(
        z, verdict, f"Whether the negative part of the spectrum helps is undecided: {evidence}."
    )


def verdict_on(z: float) -> str:
    """The verdict on the negative part of a spectrum from a difference of z standard errors in its favor."""
    if abs(z) <= RULES.verdict:
        return "undecided"
    return "useful" if z > 0.0 else "harmful"
