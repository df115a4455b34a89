"""The automatic stack for directed similarities: learners on the mean of both directions and on both of them.

To the families of `mercerless.similarity.stack` on the mean come those that tell ``k(x, z)`` from ``k(z, x)``. A
*row* of an item holds its comparisons out to all training items and back from them; where back is not known the same
learners work on half a row.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.asymmetric.selection import affinities
from mercerless.asymmetric.solver import two_sided_path
from mercerless.core.averaging import paired_z
from mercerless.core.folds import Split
from mercerless.similarity.solver import kernel_path, neighbor_means, squared_distances
from mercerless.similarity.stack import (
    FEATURE_PENALTIES,
    NEIGHBORS,
    PROFILE_PENALTIES,
    PROFILE_WIDTHS,
    Average,
    Block,
    Members,
    Setting,
    View,
    default_settings,
    fence,
    figures_of,
    fit_members,
    log_loss,
    median_square,
    member_scores,
    out_of_fold_scores,
    weigh_members,
)

# Relative to the spectral norm of the centered similarities: large ones for graphs, small ones for smooth kernels.
SIDE_PENALTIES = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
SIDES = ("left", "right")


class DirectedRows(NamedTuple):
    """Comparisons of items out to the training items and back from them; back is None where only one way is known."""

    out: NDArray  # (m, n)
    back: NDArray | None  # (m, n)
    # offset and unit of exp(-(d - offset) / unit) if they are dissimilarities
    decay: tuple[float, float] | None

    def take(self, rows: NDArray, columns: NDArray) -> "DirectedRows":
        """Of some items to some training items."""
        where = np.ix_(rows, columns)
        return DirectedRows(
            self.out[where], None if self.back is None else self.back[where], self.decay
        )

    def values(self) -> NDArray:
        """Both ways side by side."""
        return self.out if self.back is None else np.hstack([self.out, self.back])

    def affinities(self) -> "DirectedRows":
        """The same, large for like items."""
        if self.decay is None:
            return self
        back = None if self.back is None else affinities(self.back, self.decay)
        return DirectedRows(affinities(self.out, self.decay), back, None)


class DirectedMembers(NamedTuple):
    """Fitted learners on rows of comparisons."""

    settings: tuple[Setting, ...]
    views: tuple[View, ...]
    targets: NDArray  # (n, q)
    weight: NDArray  # (n,)
    mean: NDArray  # (n or 2 n,) of every column
    factor: NDArray  # (n or 2 n,), the root of its weight over its standard deviation
    profiles: NDArray  # (n, n or 2 n), standardized rows
    directions: NDArray  # (n, n or 2 n), rows of length one


class DirectedStack(NamedTuple):
    """A fitted stack: its average, its members on the mean of both directions and those on rows."""

    average: Average
    members: Members
    directed: DirectedMembers
    n_fenced: int = 0

    def __call__(self, block: Block, rows: DirectedRows) -> NDArray:
        """Probabilities or numbers of new items."""
        scores = np.concatenate(
            [member_scores(self.members, block), directed_scores(self.directed, rows)]
        )
        return self.average(scores, block.row_diagonal is not None)


def directed_settings(both_ways: bool) -> tuple[Setting, ...]:
    """All settings on rows: ridges on standardized rows, Gaussians of them, cosines, neighbors by these, two sides."""
    linear = [Setting("row_features", penalty) for penalty in FEATURE_PENALTIES]
    gaussian = [
        Setting("row_profiles", penalty, width)
        for width in PROFILE_WIDTHS
        for penalty in PROFILE_PENALTIES
    ]
    cosine = [Setting("row_cosines", penalty) for penalty in FEATURE_PENALTIES]
    neighbors = [Setting("row_neighbors", count) for count in NEIGHBORS]
    sides = [
        Setting(side, penalty) for side in SIDES[: 1 + both_ways] for penalty in SIDE_PENALTIES
    ]
    return (*linear, *gaussian, *cosine, *neighbors, *sides)


def fit_directed_members(
    rows: DirectedRows, Y: NDArray, settings: Sequence[Setting], weight: NDArray
) -> DirectedMembers:
    """Fit every setting on the rows of the training items, targets (n, q) and positive weights.

    Cost: two products of rows, a Cholesky factorization per penalty and width, an LU factorization per penalty of the
    sides. A column carries its item's weight, so that weights equal repetition.
    """
    weight = weight / weight.mean()
    values = rows.values()
    like = rows.affinities()
    columns = np.tile(weight, values.shape[1] // len(weight))
    mean = weight @ values / len(values)
    spread = np.sqrt(weight @ (values - mean) ** 2 / len(values))
    constant = spread <= 1e-13 * np.abs(mean)
    factor = np.where(constant, 0.0, np.sqrt(columns) / np.where(constant, 1.0, spread))
    members = DirectedMembers(
        tuple(settings),
        (),
        Y,
        weight,
        mean,
        factor,
        (values - mean) * factor,
        _directions(like.values(), columns),
    )
    products = _products(members, rows)
    unit = median_square(products.squares)
    views = []
    for (kind, width), group in groupby(
        enumerate(settings), key=lambda pair: (pair[1].family, pair[1].width)
    ):
        positions, chosen = zip(*group)
        penalties = [setting.parameter for setting in chosen]
        if kind in SIDES:
            coef, intercept = two_sided_path(
                like.out if kind == "left" else like.out.T, Y, penalties, weight
            )
        elif kind != "row_neighbors":
            coef, intercept = kernel_path(products.kernel(kind, width / unit), Y, penalties, weight)
        else:
            continue
        views.append(View(kind, width / unit, np.array(positions), coef, intercept))
    return members._replace(views=tuple(views))


def _directions(values: NDArray, columns: NDArray) -> NDArray:
    """Rows of length one, so that inner products are cosines; rows of zeros stay."""
    values = values * np.sqrt(columns)
    length = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    return np.divide(values, length, out=np.zeros_like(values), where=length > 0.0)


class _Products(NamedTuple):
    """Of the rows of items with those of the training items."""

    inner: NDArray  # of standardized rows
    squares: NDArray  # their squared distances
    cosines: NDArray

    def kernel(self, kind: str, factor: float) -> NDArray:
        """What a family is linear in; all zero where it is constant up to rounding: centering must leave nothing."""
        if kind == "row_profiles":
            return np.exp(-factor * self.squares)
        values = self.inner if kind == "row_features" else self.cosines
        return values if np.ptp(values) > 1e-10 * np.abs(values).max() else np.zeros_like(values)


def _products(members: DirectedMembers, rows: DirectedRows) -> _Products:
    P = (rows.values() - members.mean) * members.factor
    inner = P @ members.profiles.T
    norms = [np.einsum("ij,ij->i", A, A) for A in (P, members.profiles)]
    columns = np.tile(members.weight, members.directions.shape[1] // len(members.weight))
    cosines = _directions(rows.affinities().values(), columns) @ members.directions.T
    return _Products(inner, squared_distances(inner, *norms), cosines)


def directed_scores(members: DirectedMembers, rows: DirectedRows) -> NDArray:
    """Every learner's scores (n_settings, m, q) for new rows."""
    m = len(rows.out)
    n_outputs = members.targets.shape[1]
    scores = np.zeros((len(members.settings), m, n_outputs))
    if not members.settings:
        return scores
    sides = dict(zip(SIDES, rows.affinities()))
    products = _products(members, rows)
    for view in members.views:
        features = (
            sides[view.kind] if view.kind in SIDES else products.kernel(view.kind, view.factor)
        )
        values = features @ view.coef.reshape(len(view.coef), -1)
        values = values.reshape(m, len(view.positions), n_outputs) + view.intercept
        scores[view.positions] = values.swapaxes(0, 1)
    counts = {
        i: int(s.parameter) for i, s in enumerate(members.settings) if s.family == "row_neighbors"
    }
    if counts:
        votes = neighbor_means(
            1.0 - products.cosines, members.targets, sorted(set(counts.values())), members.weight
        )
        for position, count in counts.items():
            scores[position] = votes[count]
    return scores


def directed_item_weights(
    members: DirectedMembers, train: DirectedRows, new: DirectedRows
) -> NDArray:
    """How every learner, linear in the targets, weighs those of the training items (n_settings, m, n) at new rows."""
    linear = fit_directed_members(train, np.eye(len(train.out)), members.settings, members.weight)
    return directed_scores(linear, new)


def _both_scores(
    K: NDArray,
    rows: DirectedRows,
    Y: NDArray,
    settings: Sequence[Setting],
    n_plain: int,
    weight: NDArray,
    split: Split,
) -> NDArray:
    """Fit every setting, the first `n_plain` on K, on the training items of a split and score its test items."""
    train, test = split
    plain = out_of_fold_scores(K, Y, split, settings[:n_plain], weight)
    directed = fit_directed_members(
        rows.take(train, train), Y[train], settings[n_plain:], weight[train]
    )
    return np.concatenate([plain, directed_scores(directed, rows.take(test, train))])


def fit_directed_stack(
    K: NDArray,
    rows: DirectedRows,
    Y: NDArray,
    weight: NDArray,
    splits: Sequence[Split],
    classify: bool,
    blocks: Sequence[Split] | None = None,
    run: Callable[[str, Callable, Sequence], Iterable] = lambda _, function, things: map(
        function, things
    ),
) -> DirectedStack:
    """The whole selection, as `mercerless.similarity.stack.fit_stack`, with the learners on rows as well.

    K are symmetric similarities: of the mean of both directions, or of rows of one. Learners on rows take part where
    the average with them is better out of fold by a standard error than that of the learners on K.
    """
    plain = default_settings(classify, len(Y))
    settings = (*plain, *directed_settings(rows.back is not None))
    fenced = None if classify else fence(Y, weight)
    targets = Y if fenced is None else np.hstack([Y, fenced])
    scores = np.zeros((len(settings), *targets.shape))
    score = partial(_both_scores, K, rows, targets, settings, len(plain), weight)
    for (_, test), of_fold in zip(splits, run("fold", score, splits)):
        scores[:, test] = of_fold
    blocks = splits if blocks is None else blocks
    weigh = partial(
        weigh_members, Y=Y, fenced=fenced, weight=weight, blocks=blocks, classify=classify
    )
    average, targets = _simpler(
        weigh(scores[: len(plain)], plain), weigh(scores, settings), Y, weight, blocks
    )
    fit = partial(_fit_both, K, rows, targets, weight, plain)
    ((members, directed),) = run("members", fit, [average.settings])
    return DirectedStack(average, members, directed, int(np.sum(targets != Y)))


def _simpler(
    plain: tuple[Average, NDArray],
    both: tuple[Average, NDArray],
    Y: NDArray,
    weight: NDArray,
    blocks: Sequence[Split],
) -> tuple[Average, NDArray]:
    """The average without learners on rows, unless that with them is better out of fold by a standard error.

    They double the learners to choose from, which costs small data more than it brings where both directions say the
    same. The families' own figures stay those of all. For the out-of-fold predictions of a block the averages that
    were chosen without it decide, on the other blocks.
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
            if paired_z(new, old, weight[train]) > 1.0:
                out_of_fold[test] = with_rows.out_of_fold[test]
                without_diag[test] = with_rows.out_of_fold_without_diag[test]

    average, targets = both
    table = with_rows.family_scores
    new = _losses(with_rows.out_of_fold, Y, classify)
    old = _losses(without_rows.out_of_fold, Y, classify)
    if not paired_z(new, old, weight) > 1.0:
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


def _fit_both(
    K: NDArray,
    rows: DirectedRows,
    Y: NDArray,
    weight: NDArray,
    plain: Sequence[Setting],
    kept: Sequence[Setting],
) -> tuple[Members, DirectedMembers]:
    """The kept members on all items, first those on K, which come first in every order."""
    diagonal = np.diagonal(K).copy()
    first = [s for s in kept if s in plain]
    second = [s for s in kept if s not in plain]
    members = fit_members(Block(K, diagonal, diagonal), Y, first, weight)
    return members, fit_directed_members(rows, Y, second, weight)
