"""Hits instead of a matrix: sparse similarities, most pairs unknown or zero; nothing dense is ever made.

A search (BLAST, DIAMOND, MMseqs2, Foldseek), a citation graph or a threshold gives every item a few hits among the
training items. Six families of classifiers read them: votes of the hits, ridge regression on the rows, propagation of
labels, and three logistic regressions on shares of the classes among the hits, at one and at two steps. They are judged
out of fold, calibrated and averaged, as the families for full matrices are.

Rows of new items hold hits among the training items. In a fold, held-out rows keep only their hits among the fold's
training items, so that they look as new items do. An item is never a hit of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

from mercerless.core.averaging import STACKED_CLASSES, average
from mercerless.core.calibration import Calibration, calibrate, fit_temperature, sharpen
from mercerless.core.folds import Split


@dataclass(frozen=True)
class HitThresholds:
    """Constants of the learner on hits, chosen on amp_edit, protein, coilyork, ECG200, digits, letters and a graph."""

    prior: float = 0.5  # pseudo-hits, spread over the classes as they are frequent
    smallest_relative: float = 5e-4  # floor of the best relative similarity to a class
    floor_of_rows: float = (
        0.1  # what the smallest hit of a row counts in ridge regression, of the row's range
    )
    ridge_steps: int = 60  # of conjugate gradients
    ridge_tolerance: float = 1e-4
    coordinates: int = 64  # of the sparse matrix; at most an eighth of the items
    clip: float = 0.005  # share of the training items at each end beyond which features are clipped
    few_items: int = 200  # below, families with many coefficients are left out
    logistic_rows: int = 30_000  # rows that logistic regressions see at most
    best_settings: int = 2  # of every family that are averaged
    pull: float = 0.02  # of the weights toward each other


THRESHOLDS = HitThresholds()


@dataclass(frozen=True)
class HitRows:
    """Hits of some items, the rows, among the training items, the columns; entries are positive similarities."""

    similarities: csr_array

    @property
    def shape(self) -> tuple[int, int]:
        return self.similarities.shape

    @cached_property
    def relative(self) -> csr_array:
        """Similarities relative to the largest of their row."""
        return scale_rows(self.similarities, _row_largest(self.similarities))

    @cached_property
    def transitions(self) -> csr_array:
        """Relative similarities that sum to one in every row."""
        return scale_rows(self.relative, self.relative.sum(axis=1))

    @cached_property
    def counts(self) -> NDArray:
        """How many hits every row has."""
        return np.diff(self.similarities.indptr)

    def best(self, number: int) -> csr_array:
        """The relative similarities of the best hits of every row."""
        S = self.relative
        rows = np.repeat(np.arange(S.shape[0]), self.counts)
        order = np.lexsort((S.indices, -S.data, rows))
        rank = np.arange(len(rows)) - S.indptr[rows]
        kept = order[rank < number]
        return csr_array((S.data[kept], (rows[kept], S.indices[kept])), shape=S.shape)


def scale_rows(S: csr_array, divisors: NDArray) -> csr_array:
    """The matrix with each row divided by a number; rows of zeros stay zeros."""
    factors = np.zeros(S.shape[0])
    np.divide(1.0, divisors, out=factors, where=divisors > 0.0)
    return csr_array(diags_array(factors) @ S)


def _row_largest(S: csr_array) -> NDArray:
    return np.asarray(S.max(axis=1).todense(), dtype=float).ravel()


def log_shares(votes: NDArray, prior: NDArray, strength: float = THRESHOLDS.prior) -> NDArray:
    """Logarithms of the classes' shares of the votes, smoothed by pseudo-votes that are spread as the prior."""
    total = votes.sum(axis=1, keepdims=True) + strength
    return np.log((votes + strength * prior) / total)


class HitTraining(NamedTuple):
    """HitTraining items of hits: their hits among each other, classes as one column each, and weights of mean one."""

    hits: HitRows
    onehot: NDArray
    weight: NDArray

    @property
    def ballots(self) -> NDArray:
        """What a hit of each item adds to the votes: its class, times its weight."""
        return self.onehot * self.weight[:, None]

    @property
    def prior(self) -> NDArray:
        """The classes' shares of the weights."""
        return self.ballots.sum(axis=0) / self.weight.sum()


class HitFamily(Protocol):
    """A family of classifiers on hits."""

    name: str
    n_settings: int

    def fit(self, train: HitTraining, random: np.random.RandomState) -> "HitFamily":
        """Learn from the training items."""

    def scores(self, new: HitRows) -> NDArray:
        """Scores (n_settings, n_rows, n_classes) of new items."""


class Votes:
    """Shares of the classes among the best hits, weighed by powers of the relative similarity."""

    name = "votes"
    settings = ((1, 0.0), (3, 1.0), (10, 1.0), (None, 1.0), (None, 4.0), (None, 12.0))
    n_settings = len(settings)

    def fit(self, train: HitTraining, random: np.random.RandomState) -> "Votes":
        self.ballots = train.ballots
        self.prior = train.prior
        return self

    def scores(self, new: HitRows) -> NDArray:
        scores = []
        for number, power in self.settings:
            voters = new.relative if number is None else new.best(number)
            weights = csr_array((voters.data**power, voters.indices, voters.indptr), voters.shape)
            scores.append(log_shares(weights @ self.ballots, self.prior))
        return np.stack(scores)


class RidgeRows:
    """Ridge regression on the rows of hits, each shifted to begin near zero and scaled to length one."""

    name = "ridge"
    penalties = (10.0, 1.0, 0.1)
    n_settings = len(penalties)

    def fit(self, train: HitTraining, random: np.random.RandomState) -> "RidgeRows":
        X = self._features(train.hits)
        self.mean = train.prior
        target = train.onehot - self.mean
        coef = np.zeros((X.shape[1], target.shape[1]))
        self.coef = []
        for penalty in self.penalties:
            coef = ridge_by_gradients(X, target, train.weight, penalty, start=coef)
            self.coef.append(coef)
        return self

    def scores(self, new: HitRows) -> NDArray:
        X = self._features(new)
        return np.stack([X @ coef + self.mean for coef in self.coef])

    def _features(self, hits: HitRows) -> csr_array:
        S = hits.similarities
        rows = np.repeat(np.arange(S.shape[0]), hits.counts)
        largest = np.zeros(S.shape[0])
        smallest = np.full(S.shape[0], np.inf)
        np.maximum.at(largest, rows, S.data)
        np.minimum.at(smallest, rows, S.data)
        span = np.where(largest > smallest, largest - smallest, np.maximum(largest, 1.0))
        values = S.data - smallest[rows] + THRESHOLDS.floor_of_rows * span[rows]
        X = csr_array((values, S.indices, S.indptr), S.shape)
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return scale_rows(X, lengths)


def ridge_by_gradients(
    X: csr_array, Y: NDArray, weight: NDArray, penalty: float, start: NDArray
) -> NDArray:
    """``min sum_i w_i |X_i B - Y_i|^2 + penalty |B|^2`` by conjugate gradients on all columns of Y at once.

    Stops when every residual is below the tolerance relative to its right-hand side, or after the steps allowed.
    Cost: two products with X per step.
    """

    def normal(B: NDArray) -> NDArray:
        return X.T @ (weight[:, None] * (X @ B)) + penalty * B

    right = X.T @ (weight[:, None] * Y)
    goal = THRESHOLDS.ridge_tolerance**2 * (right**2).sum(axis=0)
    B = start.copy()
    residual = right - normal(B)
    direction = residual.copy()
    size = (residual**2).sum(axis=0)
    for _ in range(THRESHOLDS.ridge_steps):
        is_active = size > goal
        if not is_active.any():
            break
        image = normal(direction)
        curvature = (direction * image).sum(axis=0)
        step = np.where(is_active & (curvature > 0.0), size / np.maximum(curvature, 1e-300), 0.0)
        B += step * direction
        residual -= step * image
        new_size = (residual**2).sum(axis=0)
        direction = residual + new_size / np.maximum(size, 1e-300) * direction
        size = new_size
    return B


class Propagation:
    """Labels spread along the hits of the training items; new items take the mean of their hits."""

    name = "propagation"
    settings = ((0.5, 8), (0.9, 25))  # how much comes from the hits, and steps
    n_settings = len(settings)

    def fit(self, train: HitTraining, random: np.random.RandomState) -> "Propagation":
        U = train.hits.relative
        graph = csr_array(U.maximum(U.T))
        graph = scale_rows(graph, graph.sum(axis=1))
        self.prior = train.prior
        self.spread = []
        for share, n_steps in self.settings:
            labels = train.ballots
            for _ in range(n_steps):
                labels = share * (graph @ labels) + (1.0 - share) * train.ballots
            self.spread.append(labels)
        return self

    def scores(self, new: HitRows) -> NDArray:
        scores = [log_shares(new.transitions @ labels, self.prior, 1e-3) for labels in self.spread]
        return np.stack(scores)


class ClassFeatures:
    """For every item and class: shares of the class among the hits, at one and at two steps.

    Features of training items leave their own label out: of two steps ``P (P Y)``, item i gets back its own label
    times ``(P P)_ii``, which is subtracted.
    """

    def fit(self, train: HitTraining) -> "ClassFeatures":
        P = train.hits.transitions
        self.ballots = train.ballots
        self.prior = train.prior
        self.forward = P @ self.ballots
        Q = csr_array(P.T)
        self.backward_transitions = scale_rows(Q, Q.sum(axis=1))
        self.backward = self.backward_transitions @ self.ballots
        self.forward_transitions = P
        return self

    def of_training(self, train: HitTraining) -> NDArray:
        """Features (n, n_features, n_classes) of the training items, without their own labels."""
        P = train.hits.transitions
        back_by_forward = P.multiply(csr_array(self.forward_transitions.T)).sum(axis=1)
        back_by_backward = P.multiply(csr_array(self.backward_transitions.T)).sum(axis=1)
        returned = [
            np.asarray(back).ravel()[:, None] for back in (back_by_forward, back_by_backward)
        ]
        return self._features(train.hits, [share * self.ballots for share in returned])

    def of_new(self, new: HitRows) -> NDArray:
        """Features (m, n_features, n_classes) of new items."""
        return self._features(new, [0.0, 0.0])

    def _features(self, hits: HitRows, returned: Sequence[Any]) -> NDArray:
        U = hits.relative
        sharp = csr_array((U.data**4, U.indices, U.indptr), U.shape)
        first = hits.best(3)
        unweighted = csr_array((np.ones_like(first.data), first.indices, first.indptr), first.shape)
        P = hits.transitions
        two_steps = [P @ labels for labels in (self.forward, self.backward)]
        features = [
            log_shares(unweighted @ self.ballots, self.prior),
            log_shares(U @ self.ballots, self.prior),
            log_shares(sharp @ self.ballots, self.prior),
            self._best_of_class(hits),
            np.log1p(self._count_of_class(hits)),
            *[
                log_shares(np.maximum(votes - own, 0.0), self.prior)
                for votes, own in zip(two_steps, returned)
            ],
        ]
        return np.stack(features, axis=1)

    def _best_of_class(self, hits: HitRows) -> NDArray:
        """Logarithm of the best relative similarity to each class, less its mean over the classes."""
        U = hits.relative
        rows = np.repeat(np.arange(U.shape[0]), hits.counts)
        classes = self.ballots.argmax(axis=1)[U.indices]
        best = np.zeros((U.shape[0], self.ballots.shape[1]))
        np.maximum.at(best, (rows, classes), U.data)
        smallest = np.ones(U.shape[0])
        np.minimum.at(smallest, rows, U.data)
        floor = np.maximum(0.5 * smallest, THRESHOLDS.smallest_relative)
        logs = np.log(np.maximum(best, floor[:, None]))
        return logs - logs.mean(axis=1, keepdims=True)

    def _count_of_class(self, hits: HitRows) -> NDArray:
        """How many hits are of each class."""
        U = hits.relative
        ones = csr_array((np.ones_like(U.data), U.indices, U.indptr), U.shape)
        return ones @ (self.ballots > 0.0)


class TiedLogit:
    """A conditional logit on the class features with the same coefficients for all classes."""

    name = "tied shares"
    n_settings = 1
    penalty = 1.0

    def fit(self, train: HitTraining, random: np.random.RandomState) -> "TiedLogit":
        self.features = ClassFeatures().fit(train)
        Phi = self.features.of_training(train)
        rows = some_rows(train, random)
        self.theta = self._solve(Phi[rows], train.onehot[rows], train.weight[rows])
        return self

    def scores(self, new: HitRows) -> NDArray:
        return self._logits(self.theta, self.features.of_new(new))[None]

    def _logits(self, theta: NDArray, Phi: NDArray) -> NDArray:
        n_features = Phi.shape[1]
        return np.tensordot(Phi, theta[:n_features], axes=(1, 0)) + theta[n_features:]

    def _solve(self, Phi: NDArray, onehot: NDArray, weight: NDArray) -> NDArray:
        def loss(theta: NDArray) -> tuple[float, NDArray]:
            logs = log_softmax(self._logits(theta, Phi), axis=1)
            error = weight[:, None] * (np.exp(logs) - onehot)
            gradient = np.concatenate([np.einsum("ic,ifc->f", error, Phi), error.sum(axis=0)])
            value = -np.sum(weight[:, None] * onehot * logs) + 0.5 * self.penalty * theta @ theta
            return float(value), gradient + self.penalty * theta

        start = np.zeros(Phi.shape[1] + Phi.shape[2])
        return minimize(loss, start, jac=True, method="L-BFGS-B").x


class SharesLogit:
    """Multinomial logistic regression on all class features and on the sizes of the rows."""

    name = "shares"
    penalties: tuple[float, ...] = (30.0, 3.0)
    n_settings = 2

    def fit(self, train: HitTraining, random: np.random.RandomState) -> "SharesLogit":
        self.features = ClassFeatures().fit(train)
        self._learn_coordinates(train, random)
        F = self._columns(train.hits, self.features.of_training(train), train.weight)
        rows = some_rows(train, random)
        labels = train.onehot.argmax(axis=1)[rows]
        self.n_classes = train.onehot.shape[1]
        self.models = [
            LogisticRegression(C=1.0 / penalty, max_iter=200, tol=1e-3).fit(
                F[rows], labels, sample_weight=train.weight[rows]
            )
            for penalty in self.penalties
        ]
        return self

    def scores(self, new: HitRows) -> NDArray:
        F = self._columns(new, self.features.of_new(new))
        return np.stack([self._scores_of(model, F) for model in self.models])

    def _scores_of(self, model: LogisticRegression, F: NDArray) -> NDArray:
        """Log-probabilities, a column per class; classes that were not seen have the smallest."""
        logs = model.predict_log_proba(F)
        scores = np.full((len(F), self.n_classes), logs.min(initial=-30.0))
        scores[:, model.classes_] = logs
        return np.maximum(scores, -30.0)

    def _learn_coordinates(self, train: HitTraining, random: np.random.RandomState) -> None:
        """Coordinates of the sparse matrix, which this family does without."""

    def _coordinates(self, hits: HitRows) -> NDArray:
        return np.zeros((hits.shape[0], 0))

    def _columns(self, hits: HitRows, Phi: NDArray, weight: NDArray | None = None) -> NDArray:
        """Standardized columns; with weights, they are those of the training items, which set the units."""
        largest = _row_largest(hits.similarities)
        sizes = [
            np.log1p(hits.counts),
            np.log1p(largest / self._unit(largest, weight)),
            np.log1p(hits.relative.sum(axis=1)),
        ]
        F = np.hstack([Phi.reshape(len(Phi), -1), np.column_stack(sizes), self._coordinates(hits)])
        if weight is not None:
            self.low, self.high = np.quantile(F, [THRESHOLDS.clip, 1.0 - THRESHOLDS.clip], axis=0)
            clipped = np.clip(F, self.low, self.high)
            self.mean = np.average(clipped, axis=0, weights=weight)
            deviation = np.sqrt(np.average((clipped - self.mean) ** 2, axis=0, weights=weight))
            is_constant = deviation <= 1e-13 * np.abs(self.mean)
            self.scale = np.where(is_constant, np.inf, deviation)
        return (np.clip(F, self.low, self.high) - self.mean) / self.scale

    def _unit(self, largest: NDArray, weight: NDArray | None) -> float:
        if weight is not None:
            self.mean_largest = float(np.average(largest, weights=weight)) or 1.0
        return self.mean_largest


class JointLogit(SharesLogit):
    """The same with coordinates of the sparse matrix: singular vectors of its rows, scaled to length one."""

    name = "shares and coordinates"
    penalties = (100.0, 30.0)

    def _learn_coordinates(self, train: HitTraining, random: np.random.RandomState) -> None:
        n_coordinates = max(1, min(THRESHOLDS.coordinates, train.hits.shape[1] // 8))
        column_sums = np.asarray(train.hits.relative.sum(axis=0)).ravel()
        self.column_scale = 1.0 / np.sqrt(1.0 + column_sums)
        seed = int(random.randint(2**31 - 1))
        _, _, vectors = randomized_svd(
            self._unit_rows(train.hits), n_coordinates, random_state=seed
        )
        self.vectors = vectors.T

    def _unit_rows(self, hits: HitRows) -> csr_array:
        U = hits.relative
        lengths = np.sqrt(np.asarray(U.multiply(U).sum(axis=1)).ravel())
        return csr_array(scale_rows(U, lengths) @ diags_array(self.column_scale))

    def _coordinates(self, hits: HitRows) -> NDArray:
        Z = self._unit_rows(hits) @ self.vectors
        lengths = np.linalg.norm(Z, axis=1, keepdims=True)
        return Z / np.where(lengths > 0.0, lengths, 1.0)


def some_rows(train: HitTraining, random: np.random.RandomState) -> NDArray:
    """The rows that logistic regressions see: all, or a random part of many."""
    n = train.hits.shape[0]
    if n <= THRESHOLDS.logistic_rows:
        return np.arange(n)
    return np.sort(random.permutation(n)[: THRESHOLDS.logistic_rows])


def default_families(n_items: int) -> list[HitFamily]:
    """The families that compete; of few items only those with few coefficients."""
    families: list[HitFamily] = [Votes(), RidgeRows(), TiedLogit()]
    if n_items >= THRESHOLDS.few_items:
        families += [Propagation(), SharesLogit(), JointLogit()]
    return families


class HitAverage(NamedTuple):
    """Which settings are averaged, how they are calibrated, and their weights."""

    chosen: NDArray
    calibration: Calibration
    weights: NDArray
    temperature: float
    certificate: float

    def __call__(self, scores: NDArray) -> NDArray:
        """Probabilities (n, n_classes) of scores (n_settings, n, n_classes) of all settings."""
        proba = np.tensordot(self.weights, self.calibration(scores[self.chosen]), 1)
        return sharpen(proba, self.temperature)


def average_settings(
    scores: NDArray, onehot: NDArray, weight: NDArray, family_of: NDArray
) -> HitAverage:
    """Calibrate held-out scores, keep the best settings of every family, and weigh them by the Brier score."""
    calibration = calibrate(scores, onehot, weight)
    order = np.argsort(calibration.loss, kind="stable")
    best = [
        order[family_of[order] == family][: THRESHOLDS.best_settings]
        for family in dict.fromkeys(family_of)
    ]
    chosen = np.sort(np.concatenate(best))
    kept = calibration.take(chosen)
    proba = kept(scores[chosen])
    rule = replace(STACKED_CLASSES, pull=THRESHOLDS.pull)
    solution = average(proba, onehot, weight, rule)
    averaged = np.tensordot(solution.weights, proba, 1)
    temperature = fit_temperature(averaged, onehot, weight)
    certificate = max(calibration.gradient, solution.residual)
    return HitAverage(chosen, kept, solution.weights, temperature, certificate)


class HitStack(NamedTuple):
    """Families fitted on all hits, and their average."""

    families: list[HitFamily]
    average: HitAverage
    held_out: NDArray  # the items that were judged
    out_of_fold: NDArray  # (n_held_out, n_classes), by calibration and weights of the other folds
    family_of: NDArray

    def __call__(self, new: csr_array) -> NDArray:
        """Probabilities of new items, from their hits among the training items."""
        rows = HitRows(new)
        return self.average(np.concatenate([family.scores(rows) for family in self.families]))


def fit_hit_stack(
    S: csr_array,
    onehot: NDArray,
    weight: NDArray,
    splits: Sequence[Split],
    random: np.random.RandomState,
) -> HitStack:
    """The learner on hits: held-out scores of every family, their average, and the families on all items.

    `S` (n, n) has no diagonal; `splits` are folds, or a single hold-out of many items. Cost: linear in the hits.
    """
    names = [family.name for family in default_families(len(onehot))]
    n_settings = [family.n_settings for family in default_families(len(onehot))]
    family_of = np.repeat(names, n_settings)
    held_out = np.concatenate([test for _, test in splits])
    fold_of = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    blocks = []
    for train, test in splits:
        rows = HitTraining(HitRows(S[train][:, train]), onehot[train], weight[train])
        families = [family.fit(rows, random) for family in default_families(len(onehot))]
        new = HitRows(S[test][:, train])
        blocks.append(np.concatenate([family.scores(new) for family in families]))
    scores = np.concatenate(blocks, axis=1)
    truth = onehot[held_out]
    average = average_settings(scores, truth, weight[held_out], family_of)
    out_of_fold = _cross_fitted(scores, truth, weight[held_out], family_of, fold_of, random)
    everything = HitTraining(HitRows(S), onehot, weight)
    fitted = [family.fit(everything, random) for family in default_families(len(onehot))]
    return HitStack(fitted, average, held_out, out_of_fold, family_of)


def _cross_fitted(
    scores: NDArray,
    truth: NDArray,
    weight: NDArray,
    family_of: NDArray,
    fold_of: NDArray,
    random: np.random.RandomState,
) -> NDArray:
    """Probabilities of every held-out item by an average chosen on the other folds; of one hold-out, on other parts."""
    if fold_of.max() == 0:
        fold_of = random.permutation(len(fold_of)) % 5
    proba = np.empty(truth.shape)
    for fold in np.unique(fold_of):
        others = fold_of != fold
        average = average_settings(scores[:, others], truth[others], weight[others], family_of)
        proba[~others] = average(scores[:, ~others])
    return proba
