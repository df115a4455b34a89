"""Experts on parts of many rows: kernel machines on a part and its neighbors, which together see all rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from mercerless.core.folds import Split, some_rows
from mercerless.core.memory import row_blocks
from mercerless.core.scaling import BLOCK_BYTES
from mercerless.lab.model import Expansion, Rows, with_coefficients
from mercerless.lab.solver import leave_one_out, noise_variances, single_exponential
from mercerless.table.members.candidate import Candidate, Contest


@dataclass(frozen=True)
class ExpertLimits:
    """Sizes of parts and neighborhoods."""

    #: With memory for so many centers of wide machines, there is memory for the matrices of an expert.
    centers: int = 1200
    #: With fewer rows a wide machine has most of them as centers.
    fewest_rows: int = 5000
    #: Further rows from which they learn, at most.
    most_rows: int = 200_000
    #: Rows of a part.
    part_rows: int = 1000
    #: Rows around a part.
    neighbors: int = 500
    #: The largest part, in parts.
    largest: float = 1.6
    #: Neighborhoods on which width and ridge are chosen.
    anchors: int = 6
    #: Rows of such a neighborhood ...
    around: int = 600
    #: ... and of those on which the bandwidths of other members compete.
    around_race: int = 300
    #: Weight of a linear kernel and a constant beside the exponential kernel.
    linear_weight: float = 0.3
    #: Doublings of the median distance.
    widest: int = 6
    #: Ridges that compete.
    ridges: tuple[float, ...] = tuple(np.logspace(-6, 1, 15))
    #: Their name among the members.
    name: str = "experts on parts"


LIMITS = ExpertLimits()


@dataclass(frozen=True)
class ExpertsOnParts:
    """Experts, if there is one hold-out of many rows, and memory for `n_centers` centers of a wide machine."""

    n_centers: int

    def candidates(self, contest: Contest, tried: Sequence[Candidate]) -> list[Candidate]:
        if len(contest.folds) != 1 or self.n_centers < LIMITS.centers:
            return []
        scales = [candidate.scales[0] for candidate in tried if candidate.scales]
        further = None
        if contest.more is not None:
            further = contest.more.rows
            seed = contest.settings.seed
            further = further.take(some_rows(len(further), LIMITS.most_rows, seed))
        experts = expert_candidate(
            contest.rows, contest.folds[0], scales, contest.settings.seed, further
        )
        if experts is None:
            return []
        return [experts]


class Experts(NamedTuple):
    """Kernel machines on parts of the rows, together one member of a fitted LAB model.

    Attributes
    ----------
    name : str
        "experts on parts".
    bandwidths : ndarray of shape (n_features,)
        The kernel is ``exp(-|(x - z) / bandwidths|)``.
    alpha : float
        The ridge.
    part_centers : ndarray of shape (n_parts, n_features)
        A row belongs to the part with the nearest one, in units of the bandwidths.
    vectors : ndarray of shape (n_rows, n_features)
        The scaled training rows.
    members : list of ndarray
        The rows of every part and its neighbors.
    dual_coef : list of ndarray of shape (n_members, n_functions)
        Their coefficients.
    linear : ndarray of shape (n_parts, 1 + n_features, n_functions)
        Constants, and coefficients of the scaled features.
    center, scale : ndarray of shape (n_functions,)
        The units of the predictions.
    weight : float
        The weight in the average.
    scaling : callable
        Scales features.
    """

    name: str
    bandwidths: NDArray
    alpha: float
    part_centers: NDArray
    vectors: NDArray
    members: list
    dual_coef: list
    linear: NDArray
    center: NDArray
    scale: NDArray
    weight: float
    scaling: Any

    def __call__(self, X: NDArray) -> NDArray:
        """One column per function."""
        Z = X
        if self.scaling is not None:
            Z = self.scaling(X, self.vectors.dtype)
        parts = _nearest(Z / self.bandwidths, self.part_centers / self.bandwidths)
        out = np.empty((len(Z), len(self.center)))
        order = np.argsort(parts, kind="stable")
        starts = np.flatnonzero(np.diff(parts[order])) + 1
        for rows in np.split(order, starts):
            if not len(rows):
                continue
            p = parts[rows[0]]
            S = self.vectors[self.members[p]] / self.bandwidths
            for block in row_blocks(len(rows), 24.0 * len(S), BLOCK_BYTES):
                A = Z[rows[block]]
                K = single_exponential(A / self.bandwidths, S)
                linear = self.linear[p, 0] + A @ self.linear[p, 1:]
                out[rows[block]] = K @ self.dual_coef[p] + linear
        return out * self.scale + self.center

    def in_units(self, center: NDArray, scale: NDArray) -> "Experts":
        """``scale * self(X) + center``."""
        return self._replace(center=self.center * scale + center, scale=self.scale * scale)


class ExpertMetric(NamedTuple):
    """The bandwidths and the ridge of the experts, and their mean squared leave-one-out error."""

    error: float
    bandwidths: NDArray
    ridge: float
    doublings: int = 0  # of the median distance


def expert_candidate(
    rows: Rows, fold: Split, scales: Sequence[NDArray], seed: int, further: Rows | None = None
) -> Candidate | None:
    """Experts on the training rows of a fold and `further` rows; None for few rows.

    `scales` are log bandwidths of the features that other forms have learned. As they are, half as strong and not at
    all, they compete by the leave-one-out error of neighborhoods, see `choose_metric`.
    """
    train, valid = fold
    known = rows.take(train).joined(further)
    if len(known) < LIMITS.fewest_rows:
        return None
    plain = np.zeros(rows.X.shape[1])
    metrics = [plain, *(share * (scale - scale.mean()) for scale in scales for share in (0.5, 1.0))]
    metric = choose_metric(known, metrics, seed)
    centers = part_centers(known.X / metric.bandwidths, seed) * metric.bandwidths
    experts = fit_experts(known, metric, centers)
    every = known.joined(rows.take(valid))
    refit = partial(fit_experts, every, metric, experts.part_centers)
    return Candidate(LIMITS.name, experts(rows.X[valid]), refit)


def choose_metric(rows: Rows, scales: Sequence[NDArray], seed: int) -> ExpertMetric:
    """The log bandwidths of the smallest error on small neighborhoods, with the width and ridge of larger ones.

    An eigendecomposition of 600 rows takes six times as long as one of 300.
    """
    trials = [choose_width(rows, scale, seed, LIMITS.around_race) for scale in scales]
    best = min(range(len(scales)), key=lambda i: trials[i].error)
    return choose_width(rows, scales[best], seed, LIMITS.around, trials[best].doublings)


def choose_width(rows: Rows, scale: NDArray, seed: int, size: int, start: int = 1) -> ExpertMetric:
    """Double or halve the width as long as the leave-one-out error of some neighborhoods falls.

    `size` is the number of rows of a neighborhood; the search starts with a width of so many doublings.
    """
    Z = rows.X * np.exp(-scale).astype(rows.X.dtype)
    places = [_around(Z, Z[i], size) for i in some_rows(len(Z), LIMITS.anchors, seed)]
    random = np.random.RandomState(seed)
    steps = [np.linalg.norm(Z[i] - Z[random.permutation(i)], axis=1) for i in places]
    unit = float(np.median(np.concatenate(steps))) or 1.0
    errors: dict[int, NDArray] = {}

    def error(k: int) -> float:
        if k not in errors:
            errors[k] = np.mean(
                [_errors(rows.take(i), Z[i] / (unit * 2.0**k)) for i in places], axis=0
            )
        return float(errors[k].min())

    best = start
    for step in (1, -1):
        while abs(best + step) <= LIMITS.widest and error(best + step) < error(best):
            best += step
    ridge = float(LIMITS.ridges[errors[best].argmin()])
    return ExpertMetric(error(best), unit * 2.0**best * np.exp(scale), ridge, best)


def _errors(rows: Rows, Z: NDArray) -> NDArray:
    """Mean squared leave-one-out errors of one neighborhood for all ridges."""
    root = np.sqrt(1 / noise_variances(rows.weight, len(rows)))
    linear = rows.X @ rows.X.T / rows.X.shape[1] + 1.0
    K = single_exponential(Z, Z) + LIMITS.linear_weight * linear
    K = (K + K.T).astype(np.float64) / 2 * root[:, None] * root
    return leave_one_out(K, root[:, None] * rows.Y, np.array(LIMITS.ridges)) / np.sum(root**2)


def part_centers(Z: NDArray, seed: int) -> NDArray:
    """The centers of k-means clusters; oversized clusters are split again."""
    centers = _clusters(Z, max(1, round(len(Z) / LIMITS.part_rows)), seed)
    for _ in range(5):
        parts = _nearest(Z, centers)
        sizes = np.bincount(parts, minlength=len(centers))
        large = np.flatnonzero(sizes > LIMITS.largest * LIMITS.part_rows)
        kept = centers[(sizes > 0) & (sizes <= LIMITS.largest * LIMITS.part_rows)]
        if not len(large):
            return kept
        split = [_clusters(Z[parts == p], -(-sizes[p] // LIMITS.part_rows), seed) for p in large]
        centers = np.vstack([kept, *split])
    return centers[np.unique(_nearest(Z, centers))]


def _clusters(Z: NDArray, number: int, seed: int) -> NDArray:
    return (
        MiniBatchKMeans(number, n_init=1, batch_size=4096, max_iter=20, random_state=seed)
        .fit(Z)
        .cluster_centers_
    )


def fit_experts(rows: Rows, metric: ExpertMetric, centers: NDArray) -> Experts:
    """A machine for the rows that are nearest to each center, and for some around them."""
    Z = rows.X / metric.bandwidths.astype(rows.X.dtype)
    C = centers / metric.bandwidths
    parts = _nearest(Z, C)
    log_bandwidths = np.log(metric.bandwidths)
    members = []
    dual_coef = []
    linear = []
    for p, center in enumerate(C):
        largest = int(2 * LIMITS.largest * LIMITS.part_rows)
        size = min(int(np.sum(parts == p)), largest) + LIMITS.neighbors
        around = _around(Z, center, size, first=parts == p)
        support = np.arange(len(around))
        log_ridge = np.log(metric.ridge)
        model = Expansion("exponential", support, log_bandwidths, log_ridge, LIMITS.linear_weight)
        model = with_coefficients(model, rows.take(around))
        members.append(around)
        dual_coef.append(model.coef)
        linear.append(model.linear)
    q = rows.Y.shape[1]
    return Experts(
        name=LIMITS.name,
        bandwidths=metric.bandwidths,
        alpha=metric.ridge,
        part_centers=centers,
        vectors=rows.X,
        members=members,
        dual_coef=dual_coef,
        linear=np.stack(linear),
        center=np.zeros(q),
        scale=np.ones(q),
        weight=1.0,
        scaling=None,
    )


def _around(Z: NDArray, center: NDArray, size: int, first: NDArray | None = None) -> NDArray:
    """The rows nearest to a center, those marked as `first` before all others."""
    distances = np.einsum("ij,ij->i", Z, Z) - 2 * (Z @ center)
    if first is not None:
        distances[first] -= 2 * np.ptp(distances) + 1
    if size >= len(Z):
        return np.arange(len(Z))
    return np.argpartition(distances, size - 1)[:size]


def _nearest(Z: NDArray, centers: NDArray) -> NDArray:
    """The number of the nearest center of every row."""
    out = np.empty(len(Z), dtype=np.intp)
    half = np.einsum("ij,ij->i", centers, centers) / 2
    for rows in row_blocks(len(Z), 24.0 * len(centers), BLOCK_BYTES):
        out[rows] = np.argmin(half - Z[rows] @ centers.T, axis=1)
    return out
