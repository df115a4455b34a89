"""The automatic stack: many small learners on one block of comparisons, judged out of fold, calibrated and averaged.

A *setting* names one learner (its family and its parameter). `fit_members` fits any settings on the comparisons of
training items with each other, `member_scores` applies them to those of new items, `average_classes` and
`average_numbers` find out from out-of-fold scores which members to keep and how much each weighs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless._memory import row_blocks
from mercerless.selection.averaging import paired_z, stack_weights
from mercerless.selection.calibration import Calibration, calibrate
from mercerless.selection.folds import Split
from mercerless.solvers.similarity import feature_path, neighbor_means, spectral_path, squared_distances

# Relative penalties: all cost the same eigendecomposition for a spectrum, a Cholesky factorization each for features.
SPECTRAL_PENALTIES = tuple(10.0**power for power in range(-5, 2))
FEATURE_PENALTIES = tuple(10.0**power for power in range(-4, 0))
NEIGHBORS = (1, 3, 5, 9, 15, 25)
WIDTHS = (3.0,)
SPECTRAL = ("clip", "flip", "square")
# Families that need the new item's own similarity k(x, x); the ranking of its neighbors does not.
NEED_OWN = ("features", "gaussian")
FAMILIES = (*SPECTRAL, "neighbors", *NEED_OWN)


class Setting(NamedTuple):
    """One learner of the stack.

    Attributes
    ----------
    family : str
        One of ``FAMILIES``.
    parameter : float
        The number of neighbors for ``"neighbors"``, else the penalty relative to the matrix it is added to.
    width : float
        For ``"gaussian"``: the factor of the squared distances, in units of one over their median; else 0.
    """

    family: str
    parameter: float
    width: float = 0.0


class Block(NamedTuple):
    """Comparisons of items, the rows, with other items, the columns."""

    similarities: NDArray  # (m, n)
    own_rows: NDArray | None  # (m,), the rows' similarities to themselves; None where they are not known
    own_columns: NDArray  # (n,)

    def take(self, rows: Any) -> "Block":
        """The block of some rows."""
        return Block(self.similarities[rows], None if self.own_rows is None else self.own_rows[rows], self.own_columns)

    def squares(self) -> NDArray:
        """Squared distances."""
        assert self.own_rows is not None
        return squared_distances(self.similarities, self.own_rows, self.own_columns)


class View(NamedTuple):
    """Settings that are linear in the same features of a row of comparisons."""

    kind: str  # "similarity", "distance" or "gaussian"
    factor: float  # of the squared distances inside a Gaussian
    positions: NDArray  # (n_settings,), where the settings stand among all
    coef: NDArray  # (n, n_settings, q)
    intercept: NDArray  # (n_settings, q)


class Members(NamedTuple):
    """Fitted learners: settings in the order of the scores, linear views, and what the neighbors vote with."""

    settings: tuple[Setting, ...]
    views: tuple[View, ...]
    targets: NDArray  # (n, q)
    weight: NDArray  # (n,)
    own: NDArray  # (n,), the training items' own similarities


class NegativeSpectrum(NamedTuple):
    """What the negative eigenvalues are worth for the task, judged out of fold.

    Attributes
    ----------
    z : float
        By how many standard errors the out-of-fold loss is lower when the negative part is kept with its sign flipped
        than when it is cut off. About normal if it makes no difference.
    verdict : str
        ``"useful"`` (z > 2), ``"harmful"`` (z < -2), ``"undecided"``, or ``"absent"`` when there are no negative
        eigenvalues, so that no setting of the two differs.
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
    weights_without_own: NDArray  # (n_members,), where the rows' own similarities are not known
    calibration: Calibration | None
    family_scores: dict[str, dict[str, float]]
    negative_spectrum: NegativeSpectrum
    out_of_fold: NDArray  # (n, q), probabilities or numbers
    losses: NDArray  # (n,), squared errors in the units of the targets
    certificate: float

    def __call__(self, scores: NDArray, own_known: bool) -> NDArray:
        """Probabilities or numbers from the members' scores (n_members, m, q)."""
        predictions = scores if self.calibration is None else self.calibration(scores)
        return np.tensordot(self.weights if own_known else self.weights_without_own, predictions, 1)


class Stack(NamedTuple):
    """A fitted stack: its average and its members."""

    average: Average
    members: Members

    def __call__(self, similarities: NDArray, own: NDArray | None) -> NDArray:
        """Probabilities or numbers of new rows."""
        block = Block(similarities, own, self.members.own)
        return self.average(member_scores(self.members, block), own is not None)


def default_settings() -> tuple[Setting, ...]:
    """All settings that compete, in the order of ``FAMILIES``."""
    spectral = [Setting(family, penalty) for family in SPECTRAL for penalty in SPECTRAL_PENALTIES]
    neighbors = [Setting("neighbors", count) for count in NEIGHBORS]
    features = [Setting("features", penalty) for penalty in FEATURE_PENALTIES]
    gaussian = [Setting("gaussian", penalty, width) for width in WIDTHS for penalty in FEATURE_PENALTIES]
    return (*spectral, *neighbors, *features, *gaussian)


def fit_members(K: NDArray, Y: NDArray, settings: Sequence[Setting], weight: NDArray | None = None) -> Members:
    """Fit every setting on symmetric similarities and targets (n, q), with positive weights.

    Cost: one ``eigh`` for all settings of the three spectral families, one Gram matrix for ``"features"`` and one for
    ``"gaussian"`` with a Cholesky factorization per penalty; nothing for neighbors.
    """
    weight = np.ones(len(K)) if weight is None else weight
    groups: dict[tuple[str, float], list[int]] = {}
    for position, setting in enumerate(settings):
        if setting.family != "neighbors":
            kind = {"features": "distance", "gaussian": "gaussian"}.get(setting.family, "similarity")
            groups.setdefault((kind, setting.width), []).append(position)
    own = np.diagonal(K).copy()
    block, views = Block(K, own, own), []
    for (kind, width), positions in groups.items():
        chosen, factor = [settings[i] for i in positions], 0.0
        if kind == "similarity":
            coef, intercept = spectral_path(K, Y, chosen, weight)
        else:
            factor = width / _median(block.squares()) if kind == "gaussian" else 0.0
            penalties = [setting.parameter for setting in chosen]
            coef, intercept = feature_path(_features(block, kind, factor), Y, penalties, weight, kind == "distance")
        views.append(View(kind, factor, np.array(positions), coef, intercept))
    return Members(tuple(settings), tuple(views), Y, weight, own)


def _median(squares: NDArray) -> float:
    """The median of the entries above the diagonal; where it is 0 the mean, and where that is 0, one."""
    median = float(np.median(squares[np.triu_indices(len(squares), 1)])) if len(squares) > 1 else 0.0
    return median or float(squares.mean()) or 1.0


def _features(block: Block, kind: str, factor: float) -> NDArray:
    """What a view is linear in: similarities, distances, or ``exp(-factor * distance^2)``."""
    if kind == "similarity":
        return block.similarities
    squares = block.squares()
    if kind == "distance":
        return np.sqrt(squares, out=squares)
    squares *= -factor
    return np.exp(squares, out=squares)


def member_scores(members: Members, block: Block) -> NDArray:
    """Every learner's scores (n_settings, m, q) for new rows; 0 from what needs their unknown own similarities."""
    m, n_outputs = len(block.similarities), members.targets.shape[1]
    scores = np.zeros((len(members.settings), m, n_outputs))
    counts = sorted({int(setting.parameter) for setting in members.settings if setting.family == "neighbors"})
    for rows in row_blocks(m, 24.0 * block.similarities.shape[1]):
        part = block.take(rows)
        for view in members.views:
            if part.own_rows is None and view.kind != "similarity":
                continue
            values = _features(part, view.kind, view.factor) @ view.coef.reshape(len(view.coef), -1)
            values = values.reshape(len(values), len(view.positions), n_outputs) + view.intercept
            scores[view.positions, rows] = values.swapaxes(0, 1)
        if counts:
            ranks = part.own_columns - 2.0 * part.similarities
            votes = neighbor_means(ranks, members.targets, counts, members.weight)
            for index, setting in enumerate(members.settings):
                if setting.family == "neighbors":
                    scores[index, rows] = votes[int(setting.parameter)]
    return scores


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
    members = fit_members(K[np.ix_(train, train)], Y[train], settings, None if weight is None else weight[train])
    held_out = (K if rows is None else rows)[np.ix_(test, train)]
    return member_scores(members, Block(held_out, np.diagonal(K)[test], members.own))


def fit_stack(
    K: NDArray,
    Y: NDArray,
    weight: NDArray,
    splits: Sequence[Split],
    classify: bool,
    rows: NDArray | None = None,
    run: Callable[[str, Callable, Sequence], Iterable] = lambda _, function, things: map(function, things),
) -> Stack:
    """The whole selection: out-of-fold scores of all settings, their average, and its members fitted on all items.

    Targets are +-1 per class, or standardized numbers. `run` maps a function over the folds and over the one final fit
    (in parallel, telling of progress); `rows` as for `out_of_fold_scores`. One item alone has no other to learn from:
    without folds the scores are 0.
    """
    settings = default_settings()
    scores = np.zeros((len(settings), *Y.shape))
    score = partial(out_of_fold_scores, K, Y, settings=settings, weight=weight, rows=rows)
    for (_, test), part in zip(splits, run("fold", score, splits)):
        scores[:, test] = part
    average = (average_classes if classify else average_numbers)(scores, Y, weight, settings)
    (members,) = run("members", partial(fit_members, K, Y, weight=weight), [average.settings])
    return Stack(average, members)


def select_settings(settings: Sequence[Setting], *criteria: NDArray) -> NDArray:
    """Positions of the settings that minimize a criterion in their family; the first criterion breaks ties."""
    chosen = set()
    for family in dict.fromkeys(setting.family for setting in settings):
        index = np.array([i for i, setting in enumerate(settings) if setting.family == family])
        for criterion in criteria:
            chosen.add(int(index[np.lexsort((criteria[0][index], criterion[index]))[0]]))
    return np.array(sorted(chosen))


def average_classes(scores: NDArray, Y: NDArray, weight: NDArray, settings: Sequence[Setting]) -> Average:
    """Calibrate out-of-fold scores of targets +-1, keep the best of every family, and weigh them by the Brier score."""
    onehot = (Y > 0.0).astype(float)
    calibration = calibrate(scores, onehot, weight)
    proba = calibration(scores)
    losses, hits = _log_loss(proba, onehot), proba.argmax(axis=2) == onehot.argmax(axis=1)
    figures = {"accuracy": hits @ weight / weight.sum(), "log_loss": losses @ weight / weight.sum()}
    chosen = select_settings(settings, figures["log_loss"], -figures["accuracy"])
    average = _average(settings, chosen, scores, proba, onehot, weight, losses, figures)
    hits = average.out_of_fold.argmax(axis=1) == onehot.argmax(axis=1)
    average.family_scores["stack"] |= {
        "accuracy": float(hits @ weight / weight.sum()),
        "log_loss": float(_log_loss(average.out_of_fold, onehot) @ weight / weight.sum()),
    }
    kept = [settings.index(setting) for setting in average.settings]
    return average._replace(
        calibration=calibration.take(kept),
        losses=4.0 * average.losses,  # in the units of Y
        certificate=max(calibration.gradient, average.certificate),
    )


def average_numbers(scores: NDArray, Y: NDArray, weight: NDArray, settings: Sequence[Setting]) -> Average:
    """Keep the best of every family for standardized numbers, and weigh them by the squared error."""
    errors = ((scores - Y) ** 2).mean(axis=2)
    mse = errors @ weight / weight.sum()
    chosen = select_settings(settings, mse, np.abs(scores - Y).mean(axis=2) @ weight)
    figures = {"r2": 1.0 - mse, "mse": mse}
    average = _average(settings, chosen, scores, scores, Y, weight, errors, figures, normalize=False)
    mse = float(average.losses @ weight / weight.sum() / Y.shape[1])
    average.family_scores["stack"] |= {"r2": 1.0 - mse, "mse": mse}
    return average


def _average(
    settings: Sequence[Setting],
    chosen: NDArray,
    scores: NDArray,
    predictions: NDArray,
    target: NDArray,
    weight: NDArray,
    losses: NDArray,
    figures: dict[str, NDArray],
    normalize: bool = True,
) -> Average:
    """The weighted average of the chosen settings' predictions, and what is told about the families."""
    full = stack_weights(predictions[chosen], target, weight, normalize=normalize)
    free = np.array([settings[i].family not in NEED_OWN for i in chosen])
    part = stack_weights(predictions[chosen[free]], target, weight, normalize=normalize)
    reduced = np.zeros(len(chosen))
    reduced[free] = part.weights
    out_of_fold = np.tensordot(full.weights, predictions[chosen], 1)
    best = {family: _best_of(settings, family, list(figures.values())[-1]) for family in FAMILIES}
    table: dict[str, dict[str, float]] = {}
    for family, position in best.items():
        table[family] = {name: float(values[position]) for name, values in figures.items()}
        of_family = [settings[i].family == family for i in chosen]
        table[family]["weight"] = float(full.weights[of_family].sum())
    table["stack"] = {"weight": float(full.weights.sum())}
    z = paired_z(losses[best["flip"]], losses[best["clip"]], weight)
    kept = (full.weights > 0.0) | (reduced > 0.0)
    return Average(
        tuple(settings[i] for i in chosen[kept]),
        full.weights[kept],
        reduced[kept],
        None,
        table,
        _judge_negative_spectrum(z, _never_differ(settings, scores)),
        out_of_fold,
        ((out_of_fold - target) ** 2).sum(axis=1),
        max(full.residual, part.residual),
    )


def _log_loss(proba: NDArray, onehot: NDArray) -> NDArray:
    """The negative logarithm of the probability of the right class, for shapes (..., n, n_classes)."""
    return -np.log(np.maximum((proba * onehot).sum(axis=-1), np.finfo(float).tiny))


def _best_of(settings: Sequence[Setting], family: str, loss: NDArray) -> int:
    """The position of the family's setting of least loss."""
    index = [i for i, setting in enumerate(settings) if setting.family == family]
    return index[int(np.argmin(loss[index]))]


def _never_differ(settings: Sequence[Setting], scores: NDArray) -> bool:
    """Whether flip and clip have the same out-of-fold scores at every penalty: nothing is negative."""
    flip, clip = (scores[[setting.family == name for setting in settings]] for name in ("flip", "clip"))
    return bool(np.abs(flip - clip).max() <= 1e-8 * np.abs(clip).max())


def _judge_negative_spectrum(z: float, absent: bool) -> NegativeSpectrum:
    """Put the z of flip against clip into words."""
    if absent:
        return NegativeSpectrum(0.0, "absent", "There is no negative spectrum to speak of: flip and clip agree.")
    amount = f"{abs(z):.1f} standard errors"
    if z > 2.0:
        return NegativeSpectrum(z, "useful", f"The negative spectrum is useful: flip beats clip by {amount}.")
    if z < -2.0:
        return NegativeSpectrum(z, "harmful", f"The negative spectrum is noise: clip beats flip by {amount}.")
    ahead = f"{'flip' if z > 0.0 else 'clip'} is ahead by {amount} only" if z else "flip and clip do equally well"
    return NegativeSpectrum(z, "undecided", f"Whether the negative spectrum helps is undecided: {ahead}.")
