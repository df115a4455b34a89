"""The stack on few comparisons: every item is compared with landmarks only.

All features of a row of comparisons are the same in every fold; a fold only decides which rows are summed. So one pass
over the rows gives the sums of products of features of every fold, and from them follow the members of all folds and
those of all rows. The rows may stream from a file or a cluster. The families are in `landmark_families`.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mercerless.core.blocks import reduce_rows, take_rows
from mercerless.core.memory import memory_budget
from mercerless.core.validation import largest_entry
from mercerless.similarity.families import (
    Comparisons,
    Members,
    Setting,
    StackFamily,
    Standardizer,
    all_settings,
    keep_settings,
)
from mercerless.similarity.landmark_families import (
    LIMITS,
    Products,
    Sample,
    SummedFamily,
    Sums,
    TwoWayComparisons,
    Voters,
    landmark_families,
)
from mercerless.similarity.nearby import NearbyComparisons, NearbyFamily
from mercerless.similarity.stack import (
    RULES,
    RunTasks,
    average_classes,
    average_numbers,
    race,
    run_in_order,
)
from mercerless.spectra import as_similarities


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads rows of comparisons with landmarks, or of items that are compared with them, as similarities."""

    kind: str
    column_diagonal: NDArray  # (m,), the landmarks' own similarities
    constant: float | None  # the items' own similarity if it is the same for all
    columns: NDArray | None = None  # of the rows as given: those that are landmarks; None for all
    compare: Callable[[Any], NDArray] | None = None  # compares items; None if comparisons are given
    is_directed: bool = False  # whether rows as given go out to all landmarks, and then back

    def __call__(self, X: Any, diagonal: NDArray | None) -> Comparisons:
        """Comparisons of rows, with the items' own similarities if they are known."""
        C = X
        if self.compare is not None:
            C = self.compare(X)
        if diagonal is None and self.constant is not None:
            diagonal = np.full(len(C), self.constant)
        if self.is_directed:
            out, back = np.hsplit(C, 2)
            return self._directed(self._chosen(out), self._chosen(back), diagonal)
        similarities = as_new_similarities(self._chosen(C), self.kind)
        return Comparisons(similarities, diagonal, self.column_diagonal)

    def _chosen(self, C: NDArray) -> NDArray:
        """The columns that are landmarks."""
        if self.columns is None:
            return C
        return C[:, self.columns]

    def _directed(self, out: NDArray, back: NDArray, diagonal: NDArray | None) -> TwoWayComparisons:
        mean = as_new_similarities((out + back) / 2.0, self.kind)
        return TwoWayComparisons(mean, diagonal, self.column_diagonal, np.hstack([out, back]))

    def keep(self, columns: NDArray) -> "RowReader":
        """The reader of some of the landmarks only."""
        return replace(self, columns=columns, column_diagonal=self.column_diagonal[columns])


def as_new_similarities(matrix: NDArray, kind: str) -> NDArray:
    """Rows of items as similarities; raises for negative distances, and for entries whose squares are not finite."""
    size = largest_entry(matrix)
    if not size < 1e75:
        raise ValueError(
            f"X has comparisons of size {size:.0e}, which cannot be squared; leave out these "
            "items, or give finite comparisons in the units of the training items."
        )
    if kind == "distance" and matrix.min() < -1e-3 * abs(float(matrix.mean())):
        raise ValueError(f"Distances must not be negative, but the smallest is {matrix.min():.3g}.")
    return as_similarities(matrix, kind)


@dataclass(frozen=True, eq=False)
class LandmarkRows:
    """Items to learn from, whose comparisons with the landmarks come block by block."""

    X: Any  # (n, ...) array, memory map or Dask array
    diagonal: NDArray | None  # (n,), or None if it is not known or the same for all
    read: RowReader
    landmarks: NDArray  # (m,), the landmarks' positions among the items, -1 if they are others
    hits: csr_array | None = None  # (n, n), the nearest items found through the landmarks

    def take(self, rows: NDArray) -> Comparisons:
        """The comparisons of some items."""
        diagonal = None
        if self.diagonal is not None:
            diagonal = self.diagonal[rows]
        compared = self.read(take_rows(self.X, rows), diagonal)
        if self.hits is None:
            return compared
        return NearbyComparisons(
            compared.similarities,
            compared.row_diagonal,
            compared.column_diagonal,
            csr_array(self.hits[rows]),
        )

    def all(self) -> Comparisons:
        """The comparisons of all items."""
        return self.read(self.X, self.diagonal)

    def keep(self, columns: NDArray) -> "LandmarkRows":
        """Comparisons with some of the landmarks only."""
        return replace(self, read=self.read.keep(columns), landmarks=self.landmarks[columns])


def _products(F: NDArray, root: NDArray, weighted: NDArray, folds: list[NDArray]) -> Products:
    """Sums over the rows of each fold of features, of their products, and of those with the targets."""
    n_features = F.shape[1]
    first = np.empty((len(folds), n_features))
    second = np.empty((len(folds), n_features, n_features))
    cross = np.empty((len(folds), n_features, weighted.shape[1]))
    for number, rows in enumerate(folds):
        part = F[rows]
        first[number] = part.T @ root[rows, 0]
        np.matmul(part.T, part, out=second[number])
        cross[number] = part.T @ weighted[rows]
    return Products(first, second, cross)


def sum_rows(
    read: RowReader,
    families: Sequence[SummedFamily],
    n_folds: int,
    X: Any,
    targets: NDArray,
    weight: NDArray,
    fold_of: NDArray,
    diagonal: NDArray | None,
) -> Sums:
    """The sums over some rows."""
    comparisons = read(X, diagonal)
    folds = [np.flatnonzero(fold_of == k) for k in range(n_folds)]
    root = np.sqrt(weight)[:, None]
    weighted = targets * root
    products = {}
    for family in families:
        base = family.base(comparisons)
        for width, _ in family.by_width():
            F = family.summed_features(base, width) * root
            products[family.name, width] = _products(F, root, weighted, folds)
    total = np.bincount(fold_of, weights=weight, minlength=n_folds)
    return Sums(total, np.stack([root[rows, 0] @ weighted[rows] for rows in folds]), products)


@dataclass(frozen=True, eq=False)
class LearnedLandmarks:
    """Families on comparisons with landmarks, and the sums that the members of every fold and of all rows come from."""

    families: tuple[Any, ...]
    sample: Sample
    landmarks: NDArray  # (m,), positions of the landmarks that are in the sample, else -1
    targets: NDArray
    weight: NDArray
    fold_of: NDArray
    sums: Sums
    random: np.random.RandomState
    optional: tuple[StackFamily, ...] = ()
    first_scores: NDArray | None = None  # of the first fold, if it was raced

    @property
    def judged(self) -> NDArray:
        """The items of the sample."""
        return self.sample.rows

    @property
    def points(self) -> NDArray:
        """Positions among the items at which Gaussians are placed."""
        return self.sample.positions

    def raced(self, run: RunTasks, classify: bool) -> "LearnedLandmarks":
        """The same without settings that are no good in the first fold."""
        fold_of = self.fold_of[self.judged]
        folds = np.unique(fold_of)
        if len(self.judged) <= RULES.race_items or len(folds) < 2:
            return self
        (scores,) = run("fold", self.score_fold, folds[:1].tolist())
        rows = self.judged[fold_of == folds[0]]
        settings = all_settings(self.families)
        names = {setting.family for setting in settings}
        weight = self.weight[rows]
        is_kept = race(settings, scores, self.targets[rows], weight, classify, names)
        kept = [setting for setting, stays in zip(settings, is_kept) if stays]
        families = keep_settings(self.families, kept)
        return replace(self, families=families, first_scores=scores[is_kept])

    def out_of_fold(self, run: RunTasks = run_in_order) -> NDArray:
        """Scores of all settings for the sample, each by learners without its fold."""
        return scores_by_fold(self, run)

    def score_fold(self, fold: int) -> NDArray:
        """Scores of a fold's rows by learners without them."""
        members = self.members(self.families, slice(None), left=fold)
        rows = np.flatnonzero(self.fold_of[self.judged] == fold)
        return members.scores(self.sample.comparisons.take(rows))

    def fit(self, settings: Sequence[Setting], outputs: slice) -> Members:
        """Settings fitted on all items."""
        members = self.members(keep_settings(self.families, settings), outputs)
        families = tuple(
            family.predicting() if isinstance(family, SummedFamily) else family
            for family in members.families
        )
        return replace(members, families=families)

    def members(
        self, families: Sequence[Any], outputs: slice = slice(None), left: int | None = None
    ) -> Members:
        """The learners of all rows, or of those outside of a fold."""
        voters = {
            "landmarks": self._voters(self.landmarks, outputs, left),
            "points": self._voters(self.points, outputs, left),
        }
        fitted = []
        for family in families:
            if isinstance(family, NearbyFamily):
                items = np.flatnonzero(self.fold_of != left)
                fitted.append(family.fit_items(items, self.targets[:, outputs], self.weight))
                continue
            member = copy(family)
            if isinstance(family, SummedFamily):
                member.models = family.solve_all(self.sums, left, outputs)
            if hasattr(family, "votes_at"):
                member.voters = voters[family.votes_at]
                member.targets = member.voters.targets
            fitted.append(member)
        diagonal = self.sample.comparisons.column_diagonal
        n_outputs = self.targets[:0, outputs].shape[1]
        row_bytes = 8.0 * (7 * len(diagonal) + 3 * len(self.points))
        return Members(tuple(fitted), diagonal, n_outputs, row_bytes)

    def _voters(self, items: NDArray, outputs: slice, left: int | None) -> Voters:
        """Items that vote: those that are training items, and not of the fold that is left out."""
        is_labeled = items >= 0
        if left is not None:
            is_labeled &= self.fold_of[items] != left
        rows = items[is_labeled]
        return Voters(np.flatnonzero(is_labeled), self.targets[rows, outputs], self.weight[rows])

    def curve(self, Y: NDArray, weight: NDArray, classify: bool) -> dict[int, float]:
        """Losses with fewer landmarks."""
        fold_of = self.fold_of[self.judged]
        return landmark_curve(self.sample.comparisons, Y, weight, fold_of, classify, self.random)


def scores_by_fold(learned: LearnedLandmarks, run: RunTasks) -> NDArray:
    """Scores of all settings for the sample, each by learners without its fold; 0 for one item alone."""
    n_settings = len(all_settings(learned.families))
    scores = np.zeros((n_settings, len(learned.judged), learned.targets.shape[1]))
    fold_of = learned.fold_of[learned.judged]
    folds: list[int] = []
    if len(learned.targets) > 1:  # none for one item alone
        folds = np.unique(fold_of).tolist()
    if learned.first_scores is not None:
        scores[:, fold_of == folds[0]] = learned.first_scores
        folds = folds[1:]
    for fold, of_fold in zip(folds, run("fold", learned.score_fold, folds)):
        scores[:, fold_of == fold] = of_fold
    return scores


@dataclass(frozen=True, eq=False)
class LandmarkItems:
    """Comparisons of training items with landmarks, to learn from.

    One pass over the rows, then one over those that are judged (all if there are not many). Cost:
    ``O(n (m^2 + r^2))`` per width with m landmarks and r points, and a Cholesky factorization per width, penalty and
    fold.
    """

    rows: LandmarkRows
    fold_of: NDArray
    random: np.random.RandomState

    def pull(self, classify: bool) -> float:
        """How strongly the weights are pulled toward each other."""
        return RULES.landmark_pull

    def learn(self, targets: NDArray, weight: NDArray, classify: bool) -> LearnedLandmarks:
        """Families with their units and sums."""
        n = len(targets)
        judged = np.arange(n)
        size = n_judged(n, targets.shape[1])
        if size < n:
            judged = _sample_rows(self.random, n, size, self.rows.landmarks)
        points = np.sort(self.random.permutation(len(judged))[: n_points(n)])
        comparisons = self.rows.take(judged)
        sample = Sample(comparisons, weight[judged], judged, self.rows.landmarks, points)
        families = landmark_families(classify, sample)
        if self.rows.hits is not None:
            families = (*families, NearbyFamily(self.rows.hits, classify))
        return learn_sums(self.rows, sample, families, targets, weight, self.fold_of, self.random)


def learn_sums(
    rows: LandmarkRows,
    sample: Sample,
    families: Sequence[Any],
    targets: NDArray,
    weight: NDArray,
    fold_of: NDArray,
    random: np.random.RandomState,
) -> LearnedLandmarks:
    """Families with the units of the sample, and all their sums, in one pass over the rows."""
    families = [family.learn(sample) for family in families]
    summed = [family for family in families if isinstance(family, SummedFamily)]
    n_folds = int(fold_of.max()) + 1
    m = len(rows.landmarks)
    widest = max((f.n_features(width, m) for f in summed for width, _ in f.by_width()), default=0)
    function = partial(sum_rows, rows.read, summed, n_folds)
    arrays = [rows.X, targets, weight, fold_of, rows.diagonal]
    sums = reduce_rows(function, add, arrays, 8.0 * (8 * m + 4 * widest))
    landmarks = np.where(np.isin(rows.landmarks, sample.rows), rows.landmarks, -1)
    return LearnedLandmarks(
        tuple(families), sample, landmarks, targets, weight, fold_of, sums, random
    )


def n_points(n: int) -> int:
    """Number of rows at which Gaussians are placed: all of few, so that nothing is lost, 500 of many, or what fits."""
    most = 1000 if n <= 3000 else 500
    fitting = int(np.sqrt(memory_budget() / 2 / (9 * LIMITS.fold_bytes)))
    return min(n, most, max(20, fitting))


def landmark_need(n: int, m: int, n_folds: int = 5) -> float:
    """Bytes for the sums of the folds with m landmarks: of four views of these and six of Gaussians at points,
    with half as much to work with.
    """
    return 8.0 * (2 * n_folds + 1) * (6 * m**2 + 9 * n_points(n) ** 2)


def n_judged(n: int, n_outputs: int) -> int:
    """How many rows have out-of-fold predictions: as many as decide, and as their scores fit in the memory."""
    most = max(4_000, min(20_000, 60_000 // n_outputs))
    fitting = int(memory_budget() // (LIMITS.judged_bytes * n_outputs))
    return min(n, most, max(500, fitting))


def _sample_rows(random: np.random.RandomState, n: int, size: int, landmarks: NDArray) -> NDArray:
    """The landmarks that are items, and others at random, ascending."""
    first = np.unique(landmarks[landmarks >= 0])
    others = random.permutation(n)
    others = others[~np.isin(others, first)]
    return np.sort(np.append(first, others[: size - len(first)]))


def landmark_curve(
    comparisons: Comparisons,
    Y: NDArray,
    weight: NDArray,
    fold_of: NDArray,
    classify: bool,
    random: np.random.RandomState,
) -> dict[int, float]:
    """The out-of-fold log-loss (or squared error) with a quarter, half and all of the landmarks.

    Of a small stack (features, and Gaussians at 200 rows) on at most 1000 rows, so that it costs little.
    """
    rows = np.sort(random.permutation(len(Y))[: LIMITS.curve_rows])
    points = np.sort(random.permutation(len(rows))[: LIMITS.curve_points])
    order = random.permutation(comparisons.similarities.shape[1])
    every = np.arange(len(rows))
    subset = comparisons.take(rows).symmetric()
    Y = Y[rows]
    weight = weight[rows]
    fold_of = np.unique(fold_of[rows], return_inverse=True)[1]
    curve = {}
    for size in sorted({max(1, len(order) // 4), max(1, len(order) // 2), len(order)}):
        part = subset.take_columns(np.sort(order[:size]))
        nowhere = np.full(size, -1)
        read = RowReader("similarity", part.column_diagonal, None)
        data = LandmarkRows(part.similarities, part.row_diagonal, read, nowhere)
        sample = Sample(part, weight, every, nowhere, points)
        families = [_small(family) for family in landmark_families(classify, sample)]
        learned = learn_sums(data, sample, families, Y, weight, fold_of, random)
        scores = learned.out_of_fold()
        settings = all_settings(families)
        if classify:
            average = average_classes(scores, Y, weight, settings, RULES.landmark_pull).average
            curve[size] = average.family_scores["stack"]["log_loss"]
        else:
            average = average_numbers(
                scores, Y, weight, settings, Y, pull=RULES.landmark_pull
            ).average
            curve[size] = average.family_scores["stack"]["mse"]
    return curve


def _small(family: Any) -> Any:
    """The settings of a family that take part in the small stack."""
    return family.keep(
        [
            setting
            for setting in family.settings
            if setting.width in LIMITS.curve_widths and setting.family != "profile_neighbors"
        ]
    )


def pursue_landmarks(block: Comparisons, Y: NDArray, weight: NDArray, number: int) -> NDArray:
    """The columns whose standardized distances (or similarities) together predict the targets best, greedily.

    ``number`` times the column a with the largest ``|a^T R|^2 / |a|^2``, R the residual of the centered targets, is
    taken and projected out of R and of all columns, in ``O(number * m^2)`` after one Gram matrix. Columns of which less
    than a thousandth is left are passed over. If the best gains no more than the best of m columns of noise would,
    about ``1 + 2 log(m) / q`` times the mean residual per row left, the first others follow: to go on would be to fit
    the noise of the targets.
    """
    A = block.distances if block.has_distances else block.similarities
    A = Standardizer.fit(A, weight, weight.sum())(A) * np.sqrt(weight)[:, None]
    residual = np.sqrt(weight)[:, None] * (Y - weight @ Y / weight.sum())
    gram = A.T @ A
    cross = A.T @ residual
    left = float((residual**2).sum())
    start = np.diagonal(gram).copy()
    free = np.ones(len(gram), dtype=bool)
    chosen = []
    noise = 1.0 + 2.0 * np.log(len(gram)) / Y.shape[1]
    for k in range(min(number, len(gram), len(Y) - 1)):
        sizes = np.diagonal(gram)
        usable = free & (sizes > 1e-3 * start) & (start > 0.0)
        gain = np.where(
            usable, np.einsum("ij,ij->i", cross, cross) / np.where(usable, sizes, 1.0), 0.0
        )
        best = int(np.argmax(gain))
        if gain[best] <= noise * left / (len(Y) - k):
            break
        direction = gram[:, best] / np.sqrt(gram[best, best])
        cross = cross - np.outer(direction, cross[best] / np.sqrt(gram[best, best]))
        gram = gram - np.outer(direction, direction)
        left -= float(gain[best])
        free[best] = False
        chosen.append(best)
    return np.append(np.array(chosen, dtype=int), np.flatnonzero(free)[: number - len(chosen)])
