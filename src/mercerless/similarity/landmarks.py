"""The automatic stack on few comparisons: every item is compared with landmarks only.

All features of a row of comparisons are the same in every fold; a fold only decides which rows are summed. So one pass
over the rows gives the sums of products of features of every fold, and from them follow the members of all folds and
those of all rows. The rows may stream from a file or a cluster.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import add, attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpstrf

from mercerless.core.blocks import reduce_rows, take_rows
from mercerless.core.folds import splits_of
from mercerless.core.memory import memory_budget, row_blocks
from mercerless.core.validation import check_random_state
from mercerless.similarity.solver import (
    class_distances,
    landmark_path,
    neighbor_means,
    ridge_path,
    squared_distances,
)
from mercerless.similarity.stack import (
    CLASS_NEIGHBORS,
    FEATURE_PENALTIES,
    NEIGHBORS,
    PROFILE_PENALTIES,
    SPECTRAL,
    SPECTRAL_PENALTIES,
    Average,
    Block,
    Setting,
    average_classes,
    average_numbers,
    fence,
    median_square,
    weigh_members,
)

PULL = 0.02  # of the weights toward each other; for all comparisons it is five times as strong
WIDTHS = {
    "gaussian": (0.3, 1.0, 3.0, 10.0),
    "profiles": (0.1, 0.3, 1.0),
    "similarity_profiles": (0.1, 0.3, 1.0),
    "embedding": (0.3, 1.0, 3.0),
}
POINTS = ("profiles", "similarity_profiles", "embedding")  # Gaussians at some of the rows
# eigenvalues of the landmarks' matrix, relative to the largest, that are not inverted
_NEGLIGIBLE = 1e-2
_FOLD_BYTES = 88.0  # for a number in the sums of five folds, twice, and of all rows
# for an out-of-fold prediction by a hundred settings, with the work space of their calibration
_JUDGED_BYTES = 6000.0
# of a Gaussian's own value 1, by which some of its rows may fail to span the others
_RESIDUAL = 1e-8


class LandmarkRows(NamedTuple):
    """Items to learn from, whose comparisons with the landmarks come block by block."""

    X: Any  # (n, ...) array, memory map or Dask array
    diagonal: NDArray | None  # (n,), or None where it is not known or the same for all
    block: Callable[[Any, NDArray | None], Block]  # from some of both
    landmarks: NDArray  # (m,), the landmarks' positions among the items, -1 where they are others

    def take(self, rows: NDArray) -> Block:
        """The comparisons of some items."""
        return self.block(
            take_rows(self.X, rows), None if self.diagonal is None else self.diagonal[rows]
        )


class Scaling(NamedTuple):
    """Columns standardized; constant ones become 0."""

    mean: NDArray
    factor: NDArray

    def __call__(self, A: NDArray) -> NDArray:
        """Scaled columns."""
        return (A - self.mean) * self.factor


class LandmarkSpectrum(NamedTuple):
    """The spectrum of the landmarks' own centered matrix: what a row's similarities say in its coordinates."""

    columns: NDArray  # (k,), the landmarks that are training items
    shift: NDArray  # (k,), their column means minus the mean of all
    values: NDArray  # (rank,)
    vectors: NDArray  # (k, rank)

    def __call__(self, similarities: NDArray) -> NDArray:
        """Coordinates, times the eigenvalues."""
        chosen = similarities[:, self.columns]
        return (chosen - chosen.mean(axis=1, keepdims=True) - self.shift) @ self.vectors


class Span(NamedTuple):
    """Points whose Gaussians of one width span those of the others, and the Cholesky triangle of their matrix."""

    columns: NDArray
    triangle: NDArray


class Points(NamedTuple):
    """Some training rows in the coordinates of a family, at which Gaussians are placed."""

    rows: NDArray  # (r, p)
    unit: float = 1.0  # the median squared distance between them
    spans: tuple[Span, ...] = ()  # one per width of the family

    def squares(self, points: NDArray) -> NDArray:
        """Squared distances to them."""
        norms = [np.einsum("ij,ij->i", P, P) for P in (points, self.rows)]
        return squared_distances(points @ self.rows.T, *norms)


class Frame(NamedTuple):
    """How rows of comparisons become features, whatever the fold."""

    diagonal: NDArray  # (m,), the landmarks' own similarities
    unit: float  # the median squared distance
    distances: Scaling | None  # None where own similarities are not known
    similarities: Scaling
    spectrum: LandmarkSpectrum | None  # None where the landmarks are not training items
    points: dict[str, Points]
    positions: NDArray  # (r,), of the points among the training items

    def base(self, block: Block, kind: str) -> NDArray:
        """What the features of a family are made of."""
        if kind == "gaussian":
            return block.squares()
        if kind in self.points:
            return self.points[kind].squares(self.coordinates(block, kind))
        return self.coordinates(block, kind)

    def coordinates(self, block: Block, kind: str) -> NDArray:
        """Standardized distances or similarities, or coordinates in the landmarks' spectrum."""
        if kind in ("features", "profiles") and self.distances is not None:
            return self.distances(block.distances())
        if kind == "similarity_profiles" or self.spectrum is None:
            return self.similarities(block.similarities)
        if kind == "similarity":
            return self.spectrum(block.similarities)
        positive = self.spectrum.values > 0.0
        return self.spectrum(block.similarities)[:, positive] / np.sqrt(
            self.spectrum.values[positive]
        )

    def features(self, base: NDArray, kind: str, width: float) -> NDArray:
        """What a view is linear in; Gaussians at points are not yet orthonormal, see `orthonormal`."""
        if not width:
            return base
        if kind == "gaussian":
            return np.exp(base * (-width / self.unit))
        return np.exp(base[:, self.span(kind, width).columns] * (-width / self.points[kind].unit))

    def span(self, kind: str, width: float) -> Span:
        """The points that carry the Gaussians of one width."""
        return self.points[kind].spans[WIDTHS[kind].index(width)]

    def orthonormal(self, F: NDArray, kind: str, width: float) -> NDArray:
        """Gaussians at points as orthonormal functions of their space; other features as they are."""
        if kind not in self.points:
            return F
        return solve_triangular(
            self.span(kind, width).triangle, F.T, lower=True, check_finite=False
        ).T


class LandmarkView(NamedTuple):
    """Settings that are linear in the same features."""

    kind: str
    width: float
    positions: NDArray  # (n_settings,)
    coef: NDArray  # (p, n_settings, q)
    intercept: NDArray  # (n_settings, q)


class Voters(NamedTuple):
    """Labeled items among the landmarks or the points."""

    columns: NDArray
    targets: NDArray
    weight: NDArray


class LandmarkMembers(NamedTuple):
    """Fitted learners on comparisons with landmarks."""

    settings: tuple[Setting, ...]
    frame: Frame
    views: tuple[LandmarkView, ...]
    landmarks: Voters
    points: Voters

    @property
    def diagonal(self) -> NDArray:
        """The landmarks' own similarities."""
        return self.frame.diagonal


class Sums(NamedTuple):
    """Weighted sums of products of features and targets, by fold."""

    weight: NDArray  # (n_folds,)
    target: NDArray  # (n_folds, q)
    # (n_folds, p), (n_folds, p, p), (n_folds, p, q)
    views: tuple[tuple[NDArray, NDArray, NDArray], ...]

    def __add__(self, other: "Sums") -> "Sums":  # type: ignore[override]
        views = tuple(tuple(a + b for a, b in zip(*pair)) for pair in zip(self.views, other.views))
        return Sums(self.weight + other.weight, self.target + other.target, views)  # type: ignore[arg-type]


class LandmarkStack(NamedTuple):
    """A fitted stack on comparisons with landmarks."""

    average: Average
    members: LandmarkMembers
    judged: NDArray  # positions of the items with out-of-fold predictions
    curve: dict[int, float]  # out-of-fold loss of a small stack by the number of landmarks
    n_fenced: int = 0

    def __call__(self, similarities: NDArray, diagonal: NDArray | None) -> NDArray:
        """Probabilities or numbers of new rows."""
        block = Block(similarities, diagonal, self.members.diagonal)
        return self.average(landmark_scores(self.members, block), diagonal is not None)


def landmark_settings(classify: bool, distances: bool, labeled: bool) -> tuple[Setting, ...]:
    """All settings that compete, where own similarities are known and landmarks are training items (or not)."""
    spectral = [Setting(family, penalty) for family in SPECTRAL for penalty in SPECTRAL_PENALTIES]
    neighbors = [Setting("neighbors", count) for count in NEIGHBORS]
    classes = [
        Setting("class_distances", count, log=log)
        for log in (False, True)
        for count in CLASS_NEIGHBORS
    ]
    settings = [*spectral, *neighbors, *_widths("embedding")] if labeled else []
    settings += _widths("similarity_profiles")
    if distances:
        settings += [Setting("features", penalty) for penalty in FEATURE_PENALTIES]
        settings += [*_widths("gaussian"), *_widths("profiles")]
        settings += [Setting("profile_neighbors", count) for count in NEIGHBORS]
        settings += classes if classify and labeled else []
    return tuple(settings)


def _widths(family: str) -> list[Setting]:
    penalties = PROFILE_PENALTIES if family in POINTS else FEATURE_PENALTIES
    return [Setting(family, penalty, width) for width in WIDTHS[family] for penalty in penalties]


def _groups(settings: Sequence[Setting]) -> dict[tuple[str, float], list[int]]:
    """Positions of the settings that share features, views of one kind one after another."""
    groups: dict[tuple[str, float], list[int]] = {}
    for position, setting in enumerate(settings):
        if setting.family not in ("neighbors", "class_distances", "profile_neighbors"):
            kind = "similarity" if setting.family in SPECTRAL else setting.family
            groups.setdefault((kind, setting.width), []).append(position)
    return groups


def fit_frame(
    block: Block, weight: NDArray, rows: NDArray, landmarks: NDArray, points: NDArray
) -> Frame:
    """Everything that makes features, from a sample of rows (all, where there are not too many).

    `rows` are the sample's positions among the items, `landmarks` those of the columns (or -1), and `points` the
    positions within the sample at which Gaussians are placed.
    """
    known = block.row_diagonal is not None
    spectrum = _fit_spectrum(block.similarities, rows, landmarks)
    frame = Frame(
        diagonal=block.column_diagonal,
        unit=median_square(block.squares(), rows[:, None] != landmarks) if known else 1.0,
        distances=_standardize(block.distances(), weight) if known else None,
        similarities=_standardize(block.similarities, weight),
        spectrum=spectrum,
        points={},
        positions=rows[points],
    )
    chosen = block.take(points)
    for kind in POINTS:
        if (kind == "profiles" and not known) or (kind == "embedding" and spectrum is None):
            continue
        coordinates = frame.coordinates(chosen, kind)
        squares = Points(coordinates).squares(coordinates)
        unit = median_square(squares)
        spans = tuple(_span(np.exp(squares * (-width / unit))) for width in WIDTHS[kind])
        frame.points[kind] = Points(coordinates, unit, spans)
    return frame


def _standardize(A: NDArray, weight: NDArray) -> Scaling:
    """Weighted means and one over standard deviations of columns."""
    mean = weight @ A / weight.sum()
    spread = np.sqrt(weight @ (A - mean) ** 2 / weight.sum())
    constant = spread <= 1e-13 * np.abs(mean)
    return Scaling(mean, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread)))


def _fit_spectrum(C: NDArray, rows: NDArray, landmarks: NDArray) -> LandmarkSpectrum | None:
    """The spectrum of the landmarks that are among the rows; None where fewer than two are."""
    columns = np.flatnonzero(np.isin(landmarks, rows))
    if len(columns) < 2:
        return None
    W = C[np.ix_(np.searchsorted(rows, landmarks[columns]), columns)]
    W = (W + W.T) / 2.0
    shift = W.mean(axis=0) - W.mean()
    centered = W - W.mean(axis=1, keepdims=True) - shift
    values, vectors = eigh(centered, driver="evd", check_finite=False)
    kept = np.abs(values) > max(_NEGLIGIBLE * np.abs(values).max(), 1e-13 * np.abs(W).max())
    return LandmarkSpectrum(columns, shift, values[kept], vectors[:, kept])


def _span(K: NDArray) -> Span:
    """Rows of a Gaussian matrix that span the others."""
    factor, order, rank, _ = dpstrf(K, tol=_RESIDUAL, lower=1)
    return Span(order[:rank] - 1, np.tril(factor[:rank, :rank]))


def _sum_rows(
    block: Callable[[Any, NDArray | None], Block],
    frame: Frame,
    groups: Sequence[tuple[str, float]],
    n_folds: int,
    X: Any,
    Y: NDArray,
    weight: NDArray,
    fold_of: NDArray,
    diagonal: NDArray | None,
) -> Sums:
    """The sums over some rows."""
    comparisons = block(X, diagonal)
    folds = [np.flatnonzero(fold_of == k) for k in range(n_folds)]
    root = np.sqrt(weight)[:, None]
    targets = Y * root
    sums = []
    for kind, views in groupby(groups, key=itemgetter(0)):
        base = frame.base(comparisons, kind)
        for _, width in views:
            F = frame.orthonormal(frame.features(base, kind, width), kind, width) * root
            by_fold = [(F[rows], root[rows, 0], targets[rows]) for rows in folds]
            first = np.stack([H.T @ w for H, w, _ in by_fold])
            sums.append(
                (
                    first,
                    np.stack([H.T @ H for H, _, _ in by_fold]),
                    np.stack([H.T @ Z for H, _, Z in by_fold]),
                )
            )
    total = np.bincount(fold_of, weights=weight, minlength=n_folds)
    return Sums(total, np.stack([root[rows, 0] @ targets[rows] for rows in folds]), tuple(sums))


def solve_views(
    frame: Frame,
    sums: Sums,
    layout: Sequence[tuple[str, float]],
    settings: Sequence[Setting],
    columns: slice = slice(None),
    left: int | None = None,
) -> tuple[LandmarkView, ...]:
    """The views of some settings from sums laid out as told, for some target columns, without the fold `left`."""
    kept = np.ones(len(sums.weight), dtype=bool)
    if left is not None:
        kept[left] = False
    n = float(sums.weight[kept].sum())
    views = []
    mean = sums.target[kept].sum(axis=0)[columns] / n
    for (kind, width), positions in _groups(settings).items():
        first, second, cross = (
            sums_of[kept].sum(axis=0) for sums_of in sums.views[layout.index((kind, width))]
        )
        center = first / n
        cross = cross[:, columns] - np.outer(first, mean)
        gram = second - np.outer(first, center)
        chosen = [settings[i] for i in positions]
        if kind == "similarity":
            assert frame.spectrum is not None
            coef = landmark_path(gram, cross, frame.spectrum.values, chosen)
        else:
            coef = ridge_path(gram, cross, [setting.parameter for setting in chosen])
        intercept = mean - np.tensordot(center, coef, 1)
        if kind in frame.points:  # back to Gaussians as they are
            flat = coef.reshape(len(coef), -1)
            coef = solve_triangular(
                frame.span(kind, width).triangle, flat, lower=True, trans="T", check_finite=False
            )
            coef = coef.reshape(-1, *intercept.shape)
        views.append(LandmarkView(kind, width, np.array(positions), coef, intercept))
    return tuple(views)


def landmark_scores(members: LandmarkMembers, block: Block) -> NDArray:
    """Every learner's scores (n_settings, b, q); 0 from those that need own similarities which are not known."""
    n_outputs = members.points.targets.shape[1]
    scores = np.zeros((len(members.settings), len(block.similarities), n_outputs))
    frame = members.frame
    width = 5 * block.similarities.shape[1] + 3 * len(frame.positions)
    for rows in row_blocks(len(block.similarities), 8.0 * width):
        some = block.take(rows)
        bases: dict[str, NDArray] = {}
        for kind, views in groupby(members.views, key=attrgetter("kind")):
            if some.row_diagonal is None and kind in ("features", "gaussian", "profiles"):
                continue
            base = bases[kind] = frame.base(some, kind)
            for view in views:
                values = (
                    np.tensordot(frame.features(base, kind, view.width), view.coef, 1)
                    + view.intercept
                )
                scores[view.positions, rows] = values.swapaxes(0, 1)
        _score_votes(members, some, bases, scores[:, rows])
    return scores


def _score_votes(
    members: LandmarkMembers, block: Block, bases: dict[str, NDArray], scores: NDArray
) -> None:
    """Fill in the scores of neighbors and of distances to classes."""
    near = members.landmarks
    points = members.points
    families = {setting.family for setting in members.settings}
    distances = votes = profile_votes = None
    if "neighbors" in families and len(near.columns):
        ranks = (members.diagonal - 2.0 * block.similarities)[:, near.columns]
        votes = _votes(members.settings, "neighbors", ranks, near)
    if "profile_neighbors" in families and block.row_diagonal is not None and len(points.columns):
        squares = (
            bases["profiles"] if "profiles" in bases else members.frame.base(block, "profiles")
        )
        profile_votes = _votes(
            members.settings, "profile_neighbors", squares[:, points.columns], points
        )
    if "class_distances" in families and block.row_diagonal is not None and len(near.columns):
        distances = block.distances()[:, near.columns] / np.sqrt(members.frame.unit)
    for index, setting in enumerate(members.settings):
        if setting.family == "neighbors" and votes is not None:
            scores[index] = votes[int(setting.parameter)]
        elif setting.family == "profile_neighbors" and profile_votes is not None:
            scores[index] = profile_votes[int(setting.parameter)]
        elif setting.family == "class_distances" and distances is not None:
            away = class_distances(distances, near.targets, int(setting.parameter))
            away = np.log(np.maximum(away, 1e-3)) if setting.log else away
            scores[index] = away.mean(axis=1, keepdims=True) - away


def _votes(
    settings: Sequence[Setting], family: str, ranks: NDArray, voters: Voters
) -> dict[int, NDArray]:
    counts = sorted({int(setting.parameter) for setting in settings if setting.family == family})
    return neighbor_means(ranks, voters.targets, counts, voters.weight)


class _Summed(NamedTuple):
    """What the members of every fold and of all rows are made from."""

    frame: Frame
    landmarks: NDArray  # (m,)
    Y: NDArray
    weight: NDArray
    fold_of: NDArray
    layout: tuple[tuple[str, float], ...]
    sums: Sums

    def members(
        self, settings: Sequence[Setting], columns: slice = slice(None), left: Any = None
    ) -> LandmarkMembers:
        """The learners without a fold, or of all rows."""
        views = solve_views(self.frame, self.sums, self.layout, settings, columns, left)
        voters = [
            self._voters(items, columns, left) for items in (self.landmarks, self.frame.positions)
        ]
        return LandmarkMembers(tuple(settings), self.frame, views, *voters)

    def _voters(self, items: NDArray, columns: slice, left: Any) -> Voters:
        labeled = items >= 0
        if left is not None:
            labeled &= self.fold_of[items] != left
        rows = items[labeled]
        return Voters(np.flatnonzero(labeled), self.Y[rows, columns], self.weight[rows])


def n_points(n: int) -> int:
    """At how many rows Gaussians are placed: all of few, so that nothing is lost, 500 of many, or what fits."""
    return min(
        n,
        1000 if n <= 3000 else 500,
        max(20, int(np.sqrt(memory_budget() / 2 / (9 * _FOLD_BYTES)))),
    )


def landmark_need(n: int, m: int, n_folds: int = 5) -> float:
    """Bytes for the sums of the folds with m landmarks: of six views of these and nine of Gaussians at points."""
    return 8.0 * (2 * n_folds + 1) * (6 * m**2 + 9 * n_points(n) ** 2)


def n_judged(n: int, n_outputs: int) -> int:
    """How many rows have out-of-fold predictions: as many as decide, and as their scores fit in the memory."""
    most = max(6_000, min(20_000, 100_000 // n_outputs))
    return min(n, most, max(500, int(memory_budget() // (_JUDGED_BYTES * n_outputs))))


def fit_landmark_stack(
    data: LandmarkRows,
    Y: NDArray,
    weight: NDArray,
    fold_of: NDArray,
    classify: bool,
    random_state: Any = None,
    block_of: NDArray | None = None,
    run: Callable[[str, Callable, Sequence], Iterable] = lambda _, function, things: map(
        function, things
    ),
) -> LandmarkStack:
    """The whole selection on comparisons with landmarks; `run` as for `similarity.fit_stack`.

    `block_of` numbers the blocks of `similarity.cross_fit`, by default the folds.

    One pass over the rows, then one over those that are judged (all where there are not many). Cost:
    ``O(n (m^2 + r^2))`` per view with m landmarks and r points, and a Cholesky factorization per view, penalty and
    fold.
    """
    random = check_random_state(random_state)
    n = len(Y)
    fenced = None if classify else fence(Y, weight)
    targets = Y if fenced is None else np.hstack([Y, fenced])
    size = n_judged(n, targets.shape[1])
    judged = (
        np.arange(n) if size == n else np.sort(np.append(*_sample(random, n, size, data.landmarks)))
    )
    sample = data.take(judged)
    points = np.sort(random.permutation(len(judged))[: n_points(n)])
    frame = fit_frame(sample, weight[judged], judged, data.landmarks, points)
    settings = landmark_settings(
        classify, sample.row_diagonal is not None, frame.spectrum is not None
    )
    landmarks = np.where(np.isin(data.landmarks, judged), data.landmarks, -1)
    summed = _sum(data, frame, landmarks, targets, weight, fold_of, settings)
    scores = _out_of_fold(summed, settings, sample, fold_of[judged], run)
    cut = None if fenced is None else fenced[judged]
    blocks = splits_of((fold_of if block_of is None else block_of)[judged])
    average, chosen = weigh_members(
        scores, settings, Y[judged], cut, weight[judged], blocks, classify, PULL
    )
    columns = slice(0, Y.shape[1])
    n_fenced = 0
    if fenced is not None and chosen is cut:
        columns = slice(Y.shape[1], None)
        n_fenced = int(np.sum(fenced != Y))
    (members,) = run("members", partial(summed.members, columns=columns), [average.settings])
    curve = landmark_curve(sample, Y[judged], weight[judged], fold_of[judged], classify, random)
    return LandmarkStack(average, members, judged, curve, n_fenced)


def _out_of_fold(
    summed: _Summed,
    settings: Sequence[Setting],
    sample: Block,
    fold_of: NDArray,
    run: Callable[[str, Callable, Sequence], Iterable] = lambda _, function, things: map(
        function, things
    ),
) -> NDArray:
    """The scores of all settings for a sample of rows, each by learners without its fold."""
    scores = np.zeros((len(settings), len(fold_of), summed.Y.shape[1]))
    folds = (
        [(k, np.flatnonzero(fold_of == k)) for k in np.unique(fold_of)] if len(summed.Y) > 1 else []
    )
    for (_, rows), of_fold in zip(
        folds, run("fold", partial(_score_fold, summed, settings, sample), folds)
    ):
        scores[:, rows] = of_fold
    return scores


def landmark_curve(
    sample: Block,
    Y: NDArray,
    weight: NDArray,
    fold_of: NDArray,
    classify: bool,
    random: np.random.RandomState,
) -> dict[int, float]:
    """The out-of-fold log-loss (or squared error) with a quarter, half and all of the landmarks: what more would bring.

    Of a small stack (features, and Gaussians at 300 rows) on at most 2000 rows, so that it costs little.
    """
    rows = np.sort(random.permutation(len(Y))[:2000])
    points = np.sort(random.permutation(len(rows))[:300])
    order = random.permutation(sample.similarities.shape[1])
    every = landmark_settings(classify, sample.row_diagonal is not None, labeled=False)
    settings = [s for s in every if s.width in (0.0, 0.3, 1.0) and s.family != "profile_neighbors"]
    few = sample.take(rows)
    curve = {}
    Y = Y[rows]
    weight = weight[rows]
    fold_of = np.unique(fold_of[rows], return_inverse=True)[1]
    for size in sorted({max(1, len(order) // 4), max(1, len(order) // 2), len(order)}):
        columns = np.sort(order[:size])
        block = Block(few.similarities[:, columns], few.row_diagonal, few.column_diagonal[columns])
        nowhere = np.full(size, -1)
        frame = fit_frame(block, weight, np.arange(len(rows)), nowhere, points)
        data = LandmarkRows(
            block.similarities,
            block.row_diagonal,
            partial(_as_block, block.column_diagonal),
            nowhere,
        )
        summed = _sum(data, frame, nowhere, Y, weight, fold_of, settings)
        scores = _out_of_fold(summed, settings, block, fold_of)
        if classify:
            average = average_classes(scores, Y, weight, settings, PULL).average
        else:
            average = average_numbers(scores, Y, weight, settings, Y, pull=PULL).average
        curve[size] = average.family_scores["stack"]["log_loss" if classify else "mse"]
    return curve


def _as_block(column_diagonal: NDArray, similarities: NDArray, diagonal: NDArray | None) -> Block:
    return Block(similarities, diagonal, column_diagonal)


def _sample(
    random: np.random.RandomState, n: int, size: int, landmarks: NDArray
) -> tuple[NDArray, NDArray]:
    """The landmarks that are items, and others at random."""
    first = np.unique(landmarks[landmarks >= 0])
    others = random.permutation(n)
    return first, others[~np.isin(others, first)][: size - len(first)]


def _sum(
    data: LandmarkRows,
    frame: Frame,
    landmarks: NDArray,
    targets: NDArray,
    weight: NDArray,
    fold_of: NDArray,
    settings: Sequence[Setting],
) -> _Summed:
    """All sums, in one pass over the rows."""
    layout = tuple(_groups(settings))
    n_folds = int(fold_of.max()) + 1
    widths = [
        len(frame.span(*view).columns) if view[0] in frame.points else len(landmarks)
        for view in layout
    ]
    bytes_per_row = 8.0 * (6 * len(landmarks) + 4 * max(widths, default=0))
    function = partial(_sum_rows, data.block, frame, layout, n_folds)
    sums = reduce_rows(
        function, add, [data.X, targets, weight, fold_of, data.diagonal], bytes_per_row
    )
    return _Summed(frame, landmarks, targets, weight, fold_of, layout, sums)


def _score_fold(
    summed: _Summed, settings: Sequence[Setting], sample: Block, fold: tuple[int, NDArray]
) -> NDArray:
    """The scores of a fold's rows by learners without them."""
    left, rows = fold
    return landmark_scores(summed.members(settings, left=left), sample.take(rows))


def pursue_landmarks(block: Block, Y: NDArray, weight: NDArray, number: int) -> NDArray:
    """The columns whose standardized distances (or similarities) together say most about the targets, greedily.

    ``number`` times the column a with the largest ``|a^T R|^2 / |a|^2``, R the residual of the centered targets, is
    taken and projected out of R and of all columns, in ``O(number * m^2)`` after one Gram matrix. Columns of which less
    than a thousandth is left are passed over. Where the best gains no more than the best of m columns of noise would,
    about ``1 + 2 log(m) / q`` times the mean residual per row left, the first others follow: to go on would be to fit
    the noise of the targets.
    """
    A = block.similarities if block.row_diagonal is None else block.distances()
    A = _standardize(A, weight)(A) * np.sqrt(weight)[:, None]
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
