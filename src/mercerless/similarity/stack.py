"""The automatic stack: many small learners on one block of comparisons, judged out of fold, calibrated and averaged.

A *setting* names one learner (its family and its parameter). `fit_members` fits any settings on the comparisons of
training items with each other, `member_scores` applies them to those of new items, `average_classes` and
`average_numbers` find out from out-of-fold scores which members to keep and how much each weighs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core import averaging
from mercerless.core.averaging import STACKED_CLASSES, STACKED_NUMBERS, Units, paired_z
from mercerless.core.calibration import Calibration, calibrate, fit_temperature, sharpen
from mercerless.core.folds import Split
from mercerless.core.memory import row_blocks
from mercerless.similarity.solver import (
    class_distances,
    feature_path,
    kernel_path,
    logistic_similarities,
    neighbor_means,
    spectral_path,
    squared_distances,
)

# Relative penalties: all cost the same eigendecomposition for a spectrum, a Cholesky factorization each for features.
SPECTRAL_PENALTIES = tuple(10.0**power for power in range(-5, 2))
FEATURE_PENALTIES = tuple(10.0**power for power in range(-4, 0))
NEIGHBORS = (1, 3, 5, 9, 15, 25)
WIDTHS = (3.0,)
PROFILE_PENALTIES = tuple(10.0**power for power in range(-5, -1))
PROFILE_WIDTHS = (0.1, 1.0)
CLASS_NEIGHBORS = (1, 3)
LOGISTIC_STEPS = (10, 30, 80)
# up to which logistic regressions take part: for more they cost more than they bring
LOGISTIC_ITEMS = 200
SPECTRAL = ("clip", "flip", "square")
LOGISTIC = ("logistic_similarities", "logistic_distances")
# Families that need the new item's own similarity k(x, x); the ranking of its neighbors does not.
NEED_DIAGONAL = ("features", "logistic_distances", "gaussian", "profiles", "class_distances")
FAMILIES = (*SPECTRAL, "logistic_similarities", "neighbors", *NEED_DIAGONAL)
_NEED_DISTANCES = (*NEED_DIAGONAL, "profile_neighbors")  # with the families of landmarks
N_BEST = 3  # settings of every family that are averaged
PULL = 0.1  # of the weights toward each other


class Setting(NamedTuple):
    """One learner of the stack.

    Attributes
    ----------
    family : str
        One of ``FAMILIES``.
    parameter : float
        The number of neighbors for ``"neighbors"`` and ``"class_distances"``, that of steps for the logistic families,
        else the penalty relative to the matrix it is added to.
    width : float
        For ``"gaussian"`` and ``"profiles"``: the factor of the squared distances, in units of one over their median;
        else 0.
    log : bool
        For ``"class_distances"``: whether their logarithm is the score.
    """

    family: str
    parameter: float
    width: float = 0.0
    log: bool = False


class Block(NamedTuple):
    """Comparisons of items, the rows, with other items, the columns."""

    similarities: NDArray  # (m, n)
    # (m,), the rows' similarities to themselves; None where they are not known
    row_diagonal: NDArray | None
    column_diagonal: NDArray  # (n,)

    def take(self, rows: Any) -> "Block":
        """The block of some rows."""
        diagonal = None if self.row_diagonal is None else self.row_diagonal[rows]
        return Block(self.similarities[rows], diagonal, self.column_diagonal)

    def squares(self) -> NDArray:
        """Squared distances."""
        assert self.row_diagonal is not None
        return squared_distances(self.similarities, self.row_diagonal, self.column_diagonal)

    def distances(self) -> NDArray:
        """Distances."""
        squares = self.squares()
        return np.sqrt(squares, out=squares)


class Profiles(NamedTuple):
    """Training items as rows of standardized distances: what an item is like is said by its distances to all others."""

    mean: NDArray  # (n,) of every column
    # (n,), one over the standard deviation, 0 for constant columns, times the root of the weight
    factor: NDArray
    rows: NDArray  # (n, n)

    def squares(self, block: Block | None = None) -> NDArray:
        """Squared distances of new profiles, or of the training items' own, to those of the training items."""
        profiles = self.rows if block is None else (block.distances() - self.mean) * self.factor
        norms = [np.einsum("ij,ij->i", P, P) for P in (profiles, self.rows)]
        return squared_distances(profiles @ self.rows.T, *norms)


class View(NamedTuple):
    """Settings that are linear in the same features of a row of comparisons."""

    kind: str  # "similarity" for the spectral families, else the family
    # of the squared distances inside a Gaussian; 0: the features are the comparisons themselves
    factor: float
    positions: NDArray  # (n_settings,), where the settings stand among all
    coef: NDArray  # (n, n_settings, q)
    intercept: NDArray  # (n_settings, q)


class Members(NamedTuple):
    """Fitted learners: settings in the order of the scores, linear views, and what the neighbors vote with."""

    settings: tuple[Setting, ...]
    views: tuple[View, ...]
    targets: NDArray  # (n, q)
    weight: NDArray  # (n,)
    diagonal: NDArray  # (n,), the training items' own similarities
    unit: float  # the median squared distance
    profiles: Profiles | None


class NegativeSpectrum(NamedTuple):
    """What the negative eigenvalues are worth for the task, judged out of fold.

    Attributes
    ----------
    z : float
        By how many standard errors the out-of-fold loss is lower when the negative part is kept with its sign flipped
        than when it is cut off. About normal if it makes no difference.
    verdict : str
        ``"useful"`` (z > 2), ``"harmful"`` (z < -2), ``"undecided"``, ``"absent"`` when there are no negative
        eigenvalues, so that no setting of the two differs, or ``"unknown"`` where items are compared with landmarks
        that are not among them.
    sentence : str
        The same in words.
    """

    z: float
    verdict: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Average(NamedTuple):
    """What out-of-fold scores say: the members to keep, their weights, and how good they are."""

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
        weights = self.weights if diagonal_known else self.weights_without_diag
        if self.calibration is None:
            return np.tensordot(weights, scores, 1)
        proba = np.tensordot(weights, self.calibration(scores), 1)
        return sharpen(proba, self.temperatures[0 if diagonal_known else 1])


class Stack(NamedTuple):
    """A fitted stack: its average and its members."""

    average: Average
    members: Members
    n_fenced: int = 0  # extreme targets that were cut

    def __call__(self, similarities: NDArray, diagonal: NDArray | None) -> NDArray:
        """Probabilities or numbers of new rows."""
        block = Block(similarities, diagonal, self.members.diagonal)
        return self.average(member_scores(self.members, block), diagonal is not None)


def default_settings(classify: bool = True, n: int = 0) -> tuple[Setting, ...]:
    """All settings that compete for n items, in the order of ``FAMILIES``."""
    spectral = [Setting(family, penalty) for family in SPECTRAL for penalty in SPECTRAL_PENALTIES]
    first, second = [[Setting(family, steps) for steps in LOGISTIC_STEPS] for family in LOGISTIC]
    neighbors = [Setting("neighbors", count) for count in NEIGHBORS]
    features = [Setting("features", penalty) for penalty in FEATURE_PENALTIES]
    gaussian = [
        Setting("gaussian", penalty, width) for width in WIDTHS for penalty in FEATURE_PENALTIES
    ]
    profiles = [
        Setting("profiles", penalty, width)
        for width in PROFILE_WIDTHS
        for penalty in PROFILE_PENALTIES
    ]
    classes = [
        Setting("class_distances", count, log=log)
        for log in (False, True)
        for count in CLASS_NEIGHBORS
    ]
    if not classify:
        return (*spectral, *neighbors, *features, *gaussian, *profiles)
    if n > LOGISTIC_ITEMS:
        return (*spectral, *neighbors, *features, *gaussian, *profiles, *classes)
    return (*spectral, *first, *neighbors, *features, *second, *gaussian, *profiles, *classes)


def fit_members(
    block: Block, Y: NDArray, settings: Sequence[Setting], weight: NDArray | None = None
) -> Members:
    """Fit every setting on the comparisons of training items with each other, targets (n, q) and positive weights.

    One ``eigh`` for the spectral families, a Cholesky factorization per penalty and width for others, and two products
    with the targets per step for the logistic ones.
    """
    weight = np.ones(len(Y)) if weight is None else weight
    groups: dict[tuple[str, float], list[int]] = {}
    for position, setting in enumerate(settings):
        if setting.family not in ("neighbors", "class_distances"):
            kind = "similarity" if setting.family in SPECTRAL else setting.family
            groups.setdefault((kind, setting.width), []).append(position)
    distant = any(setting.family in ("gaussian", "class_distances") for setting in settings)
    unit = median_square(block.squares()) if distant else 1.0
    profiles = (
        _fit_profiles(block, weight) if any(kind == "profiles" for kind, _ in groups) else None
    )
    views = []
    for kind, widths in groupby(groups, key=itemgetter(0)):
        base = (
            _base(block, kind, None)
            if kind != "profiles" or profiles is None
            else profiles.squares()
        )
        scale = median_square(base) if kind == "profiles" else unit
        for _, width in widths:
            positions = groups[kind, width]
            factor = width / scale
            chosen = [settings[i] for i in positions]
            coef, intercept = _fit_view(kind, _features(base, factor), Y, chosen, weight)
            views.append(View(kind, factor, np.array(positions), coef, intercept))
    return Members(tuple(settings), tuple(views), Y, weight, block.column_diagonal, unit, profiles)


def _fit_view(
    kind: str, F: NDArray, Y: NDArray, settings: Sequence[Setting], weight: NDArray
) -> tuple[NDArray, NDArray]:
    """Coefficients and intercepts of the settings that are linear in F."""
    if kind == "similarity":
        return spectral_path(F, Y, settings, weight)
    penalties = [setting.parameter for setting in settings]
    if kind == "profiles":
        return kernel_path(F, Y, penalties, weight)
    if kind == "logistic_similarities":
        return logistic_similarities(F, Y, penalties, weight)
    logistic = kind == "logistic_distances"
    return feature_path(
        F, Y, penalties, weight, standardize=logistic or kind == "features", logistic=logistic
    )


def _fit_profiles(block: Block, weight: NDArray) -> Profiles:
    """Standardize the columns of distances; a column carries its item's weight, so that weights equal repetition."""
    D = block.distances()
    weight = weight / weight.mean()
    mean = weight @ D / len(D)
    spread = np.sqrt(weight @ (D - mean) ** 2 / len(D))
    constant = spread <= 1e-13 * np.abs(mean)
    factor = np.where(constant, 0.0, np.sqrt(weight) / np.where(constant, 1.0, spread))
    return Profiles(mean, factor, (D - mean) * factor)


def median_square(squares: NDArray, different: NDArray | None = None) -> float:
    """The median between different items, those above the diagonal; where it is 0 the mean, where that is 0, one."""
    values = squares[np.triu_indices(len(squares), 1) if different is None else different]
    return float((np.median(values) if len(values) else 0.0) or squares.mean() or 1.0)


def _base(block: Block, kind: str, profiles: Profiles | None) -> NDArray:
    """What the features of a view are made of: similarities, distances, or squared distances of items or profiles."""
    if kind in ("similarity", "logistic_similarities"):
        return block.similarities
    if kind == "profiles" and profiles is not None:
        return profiles.squares(block)
    return block.distances() if kind in ("features", "logistic_distances") else block.squares()


def _features(base: NDArray, factor: float) -> NDArray:
    """What a view is linear in: the base itself, or ``exp(-factor * base)``."""
    if factor == 0.0:
        return base
    features = base * -factor
    return np.exp(features, out=features)


def member_scores(members: Members, block: Block) -> NDArray:
    """Every learner's scores (n_settings, m, q) for new rows; 0 from what needs their unknown own similarities."""
    m = len(block.similarities)
    n_outputs = members.targets.shape[1]
    scores = np.zeros((len(members.settings), m, n_outputs))
    for rows in row_blocks(m, 40.0 * block.similarities.shape[1]):
        some = block.take(rows)
        for kind, views in groupby(members.views, key=attrgetter("kind")):
            if some.row_diagonal is None and kind in NEED_DIAGONAL:
                continue
            base = _base(some, kind, members.profiles)
            for view in views:
                values = _features(base, view.factor) @ view.coef.reshape(len(view.coef), -1)
                values = (
                    values.reshape(len(values), len(view.positions), n_outputs) + view.intercept
                )
                scores[view.positions, rows] = values.swapaxes(0, 1)
        _score_neighbors(members, some, scores[:, rows])
    return scores


def _score_neighbors(members: Members, block: Block, scores: NDArray) -> None:
    """Fill in the scores of neighbors and of distances to classes."""
    counts = sorted(
        {int(setting.parameter) for setting in members.settings if setting.family == "neighbors"}
    )
    ranks = block.column_diagonal - 2.0 * block.similarities if counts else block.similarities
    votes = neighbor_means(ranks, members.targets, counts, members.weight) if counts else {}
    distances = None
    for index, setting in enumerate(members.settings):
        if setting.family == "neighbors":
            scores[index] = votes[int(setting.parameter)]
        elif setting.family == "class_distances" and block.row_diagonal is not None:
            distances = (
                block.distances() / np.sqrt(members.unit) if distances is None else distances
            )
            away = class_distances(distances, members.targets, int(setting.parameter))
            if setting.log:  # of a thousandth of the usual distance at least: copies have none
                away = np.log(np.maximum(away, 1e-3))
            scores[index] = away.mean(axis=1, keepdims=True) - away


def out_of_fold_scores(
    K: NDArray,
    Y: NDArray,
    split: Split,
    settings: Sequence[Setting],
    weight: NDArray | None = None,
    rows: NDArray | None = None,
) -> NDArray:
    """Fit every setting on the training items of a split and score its test items.

    `rows` is what the test items' rows are taken from, if not from K: one direction, where K is the mean of two.
    """
    train, test = split
    diagonal = np.diagonal(K)
    block = Block(K[np.ix_(train, train)], diagonal[train], diagonal[train])
    members = fit_members(block, Y[train], settings, None if weight is None else weight[train])
    held_out = (K if rows is None else rows)[np.ix_(test, train)]
    return member_scores(members, Block(held_out, diagonal[test], diagonal[train]))


def fit_stack(
    K: NDArray,
    Y: NDArray,
    weight: NDArray,
    splits: Sequence[Split],
    classify: bool,
    rows: NDArray | None = None,
    blocks: Sequence[Split] | None = None,
    run: Callable[[str, Callable, Sequence], Iterable] = lambda _, function, things: map(
        function, things
    ),
) -> Stack:
    """The whole selection: out-of-fold scores of all settings, their average, and its members fitted on all items.

    Targets are +-1 per class, or standardized numbers. `run` maps a function over the folds and over the one final fit,
    `rows` as for `out_of_fold_scores`, `blocks` (by default the folds) as for `cross_fit`. Without folds, for one item
    alone, the scores are 0.
    """
    settings = default_settings(classify, len(Y))
    fenced = None if classify else fence(Y, weight)
    targets = Y if fenced is None else np.hstack([Y, fenced])  # which share all decompositions
    scores = np.zeros((len(settings), *targets.shape))
    score = partial(out_of_fold_scores, K, targets, settings=settings, weight=weight, rows=rows)
    for (_, test), of_fold in zip(splits, run("fold", score, splits)):
        scores[:, test] = of_fold
    blocks = splits if blocks is None else blocks
    average, targets = weigh_members(scores, settings, Y, fenced, weight, blocks, classify)
    diagonal = np.diagonal(K).copy()  # a view would keep the matrix alive
    fit = partial(fit_members, Block(K, diagonal, diagonal), targets, weight=weight)
    (members,) = run("members", fit, [average.settings])
    return Stack(average, members, int(np.sum(targets != Y)))


def weigh_members(
    scores: NDArray,
    settings: Sequence[Setting],
    Y: NDArray,
    fenced: NDArray | None,
    weight: NDArray,
    blocks: Sequence[Split],
    classify: bool,
    pull: float = PULL,
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


def without_blocks(stack: Any) -> Any:
    """A stack without the predictions by blocks, which only the fit needs."""
    return stack._replace(average=stack.average._replace(by_block=None))


def important_items(stack: Stack, number: int) -> NDArray:
    """Training items with the largest shares of their members' coefficients, weighed as the members are."""
    shares = np.zeros(len(stack.members.diagonal))
    for view in stack.members.views:
        sizes = np.linalg.norm(view.coef, axis=2)
        shares += (
            sizes
            / np.maximum(sizes.sum(axis=0), np.finfo(float).tiny)
            @ np.abs(stack.average.weights[view.positions])
        )
    return np.sort(np.argsort(-shares, kind="stable")[:number])


def fence(Y: NDArray, weight: NDArray) -> NDArray | None:
    """Targets cut at three interquartile ranges beyond the quartiles; None where none is."""
    weights = np.broadcast_to(weight[:, None], Y.shape)
    low, high = np.quantile(Y, [0.25, 0.75], axis=0, weights=weights, method="inverted_cdf")
    reach = np.where(high > low, 3.0 * (high - low), np.inf)
    fenced = np.clip(Y, low - reach, high + reach)
    return None if np.array_equal(fenced, Y) else fenced


def select_settings(settings: Sequence[Setting], loss: NDArray) -> NDArray:
    """Positions of the settings of least loss in every family, at most `N_BEST` of each."""
    chosen: list[int] = []
    for family in dict.fromkeys(setting.family for setting in settings):
        index = np.array([i for i, setting in enumerate(settings) if setting.family == family])
        chosen += index[np.argsort(loss[index], kind="stable")[:N_BEST]].tolist()
    return np.array(sorted(chosen))


class ChosenAverage(NamedTuple):
    """What is chosen on some items: the average, and for every family its setting of least loss."""

    average: Average
    best: dict[str, int]  # positions among all settings
    calibration: Calibration | None  # of all settings


def average_classes(
    scores: NDArray, Y: NDArray, weight: NDArray, settings: Sequence[Setting], pull: float = PULL
) -> ChosenAverage:
    """Calibrate out-of-fold scores of targets +-1, weigh the best of every family by the Brier score, and sharpen."""
    onehot = (Y > 0.0).astype(float)
    calibration = calibrate(scores, onehot, weight)
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
    pull: float = PULL,
) -> ChosenAverage:
    """Weigh the best of every family by the squared error; figures and losses are those of the `truth`.

    Where `robust`, rows with targets or predictions beyond three standard deviations weigh less in the weights.
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
    pull: float = PULL,
) -> tuple[ChosenAverage, NDArray]:
    """The average of members fitted on the targets or, where some are extreme, on fenced ones, and these targets.

    `scores` of fenced targets follow those of the others. Extreme targets, which hurt the members, are only kept where
    the out-of-fold error of the others is higher by 1.5 standard errors; two rows alone cannot make it so.
    """
    q = Y.shape[1]
    as_given = average_numbers(scores[:, :, :q], Y, weight, settings, Y, fenced is not None, pull)
    if fenced is None:
        return as_given, Y
    cut = average_numbers(scores[:, :, q:], fenced, weight, settings, Y, pull=pull)
    gain = paired_z(as_given.average.losses, cut.average.losses, weight)
    return (as_given, Y) if gain > 1.5 else (cut, fenced)


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
    """The weighted average of the chosen settings' predictions, and what is told about the families."""
    rule = replace(STACKED_CLASSES if normalize else STACKED_NUMBERS, pull=pull)
    full = averaging.average(predictions[chosen], target, weight, rule)
    free = np.array([settings[i].family not in _NEED_DISTANCES for i in chosen])
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
    pull: float = PULL,
) -> Average:
    """The chosen average with out-of-fold predictions and figures that the held-out items' targets have no part in.

    For every block everything is chosen again on the items outside of it: settings, calibration, weights, temperature,
    the best setting of every family, and of numbers the targets (given or fenced), mean and scale. `scores`
    (n_settings, n, q, or 2 q with those of fenced targets) are out of fold. The blocks should know nothing of the
    classes: folds that hold the same share of every class tell what the shares of the held-out items are.
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
    choose = _chosen_classes if classify else _chosen_numbers
    for number, (train, test) in enumerate(blocks):
        by_block[number], other, of_family = choose(scores, settings, Y, weight, train, pull)
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
) -> tuple[NDArray, NDArray, NDArray]:
    """Probabilities by what is chosen on some items: with and without own similarities, and by every family."""
    average, best, calibration = average_classes(
        scores[:, train], Y[train], weight[train], settings, pull
    )
    assert calibration is not None
    kept = [settings.index(setting) for setting in average.settings]
    positions = list(best.values())
    of_families = calibration.take(positions)(scores[positions])
    return average(scores[kept], True), average(scores[kept], False), of_families


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
    z = paired_z(losses[best["flip"]], losses[best["clip"]], weight)
    if _never_differ(settings, scores):
        return NegativeSpectrum(
            0.0, "absent", "There is no negative spectrum to speak of: flip and clip agree."
        )
    amount = f"{abs(z):.1f} standard errors"
    if z > 2.0:
        return NegativeSpectrum(
            z, "useful", f"The negative spectrum is useful: flip beats clip by {amount}."
        )
    if z < -2.0:
        return NegativeSpectrum(
            z, "harmful", f"The negative spectrum is noise: clip beats flip by {amount}."
        )
    ahead = (
        f"{'flip' if z > 0.0 else 'clip'} is ahead by {amount} only"
        if z
        else "flip and clip do equally well"
    )
    return NegativeSpectrum(
        z, "undecided", f"Whether the negative spectrum helps is undecided: {ahead}."
    )
