"""Families of learners on hits, for classes and for numbers.

Votes of the hits, ridge regression on the rows, propagation of labels along the hits, and linear models on votes at
one and at two steps. With both directions known, votes and ridge regression are families of their own for the hits of
an item, for the items that have it as a hit, and for both; the linear models use all of them.
"""

from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.extmath import randomized_svd

from mercerless.core.folds import some_rows
from mercerless.similarity.hits import (
    DIRECTIONS,
    EITHER,
    THRESHOLDS,
    Ballots,
    HitRows,
    HitTraining,
    ItemHits,
    beside,
    lengths_of,
    scale_rows,
)


class HitFamily(Protocol):
    """A family of learners on hits; one object may hold several that share their features."""

    @property
    def names(self) -> tuple[str, ...]:
        """The family of every setting."""

    def fit(self, train: HitTraining, random: np.random.RandomState) -> Self:
        """Learn from the training items."""

    def scores(self, new: ItemHits) -> NDArray:
        """Scores (n_settings, n_rows, n_outputs) of new items."""


def _named(name: str, view: str) -> str:
    """The name of a family on one of the views."""
    if view == EITHER:
        return name
    return f"{name} of {view}"


class Votes:
    """Mean targets of the best hits, weighed by powers of the relative similarity; of classes their shares."""

    settings = ((1, 0.0), (3, 1.0), (10, 1.0), (None, 1.0), (None, 4.0), (None, 12.0))
    ballots: Ballots

    def __init__(self, view: str = EITHER):
        self.view = view

    @property
    def names(self) -> tuple[str, ...]:
        return (_named("votes", self.view),) * len(self.settings)

    def fit(self, train: HitTraining, random: np.random.RandomState) -> Self:
        self.ballots = train.ballots
        return self

    def scores(self, new: ItemHits) -> NDArray:
        hits = new[self.view]
        scores = []
        for number, power in self.settings:
            votes = self.ballots.count(hits.powered(power, number))
            scores.append(self.ballots.scores(votes))
        return np.stack(scores)


class RidgeRows:
    """Ridge regression on the rows of hits, each shifted to begin near zero and scaled to length one."""

    penalties = (10.0, 1.0, 0.1)
    mean: NDArray
    coef: list[NDArray]

    def __init__(self, view: str = EITHER):
        self.view = view

    @property
    def names(self) -> tuple[str, ...]:
        return (_named("ridge", self.view),) * len(self.penalties)

    def fit(self, train: HitTraining, random: np.random.RandomState) -> Self:
        X = self._features(train.hits)
        self.mean = train.ballots.mean
        target = train.targets - self.mean
        coef = np.zeros((X.shape[1], target.shape[1]))
        self.coef = []
        for penalty in self.penalties:
            coef = ridge_by_gradients(X, target, train.weight, penalty, start=coef)
            self.coef.append(coef)
        return self

    def scores(self, new: ItemHits) -> NDArray:
        X = self._features(new)
        return np.stack([X @ coef + self.mean for coef in self.coef])

    def _features(self, hits: ItemHits) -> csr_array:
        view = hits[self.view]
        S = view.similarities
        rows = view.row_of_hit
        smallest = np.full(S.shape[0], np.inf)
        np.minimum.at(smallest, rows, S.data)
        smallest = np.minimum(smallest, view.largest)
        span = view.largest - smallest
        span = np.where(span > 0.0, span, np.maximum(view.largest, 1.0))
        values = S.data - smallest[rows] + THRESHOLDS.floor_of_rows * span[rows]
        X = csr_array((values, S.indices, S.indptr), S.shape)
        return scale_rows(X, lengths_of(X))


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
    """Targets spread along the hits of the training items; new items take the mean of their hits."""

    settings = ((0.5, 8), (0.9, 25))  # how much comes from the hits, and steps
    names = ("propagation",) * len(settings)
    spread: list[Ballots]

    def fit(self, train: HitTraining, random: np.random.RandomState) -> Self:
        U = train.hits[EITHER].relative
        graph = csr_array(U.maximum(U.T))
        graph = scale_rows(graph, graph.sum(axis=1))
        start = train.ballots.sums
        self.spread = []
        for share, n_steps in self.settings:
            sums = start
            for _ in range(n_steps):
                sums = share * (graph @ sums) + (1.0 - share) * start
            self.spread.append(Ballots(sums, train.ballots.mean, train.classify))
        return self

    def scores(self, new: ItemHits) -> NDArray:
        P = new[EITHER].transitions
        strength = THRESHOLDS.prior_of_spread
        return np.stack([spread.scores(spread.count(P), strength) for spread in self.spread])


class ShareFeatures:
    """Votes of the hits of an item for every class or number, at one and at two steps.

    Features of training items leave out their own label: of two steps ``P (Q Y)``, item i gets back its own label
    times ``(P Q)_ii = sum_j P_ij Q_ji``, which is subtracted.
    """

    ballots: Ballots
    after: dict[str, list[NDArray]]  # votes (n, q + 1) of the training items by a second step

    def fit(self, train: HitTraining) -> Self:
        self.ballots = train.ballots
        self.after = {}
        for view, steps in self._second_steps(train.hits):
            self.after[view] = [self.ballots.count(step) for step in steps]
        return self

    def of_training(self, train: HitTraining) -> NDArray:
        """Features (n, n_features, q) of the training items, without their own labels."""
        returned = {}
        for view, steps in self._second_steps(train.hits):
            P = train.hits[view].transitions
            returned[view] = [_returning(P, step)[:, None] * self.ballots.sums for step in steps]
        return self._features(train.hits, returned)

    def of_new(self, new: ItemHits) -> NDArray:
        """Features (m, n_features, q) of new items."""
        return self._features(new, None)

    def _second_steps(self, hits: ItemHits) -> Iterator[tuple[str, list[csr_array]]]:
        """The second steps after one of each view: onward and back; with both directions known, onward or back.

        Back from what an item hits are those that hit the same; in a graph of citations, what is cited together.
        """
        if not hits.is_directed:
            P = hits[EITHER].transitions
            yield EITHER, [P, _backward(P)]
            return
        yield EITHER, [hits[EITHER].transitions]
        for view in DIRECTIONS:
            yield view, [_backward(hits[view].transitions)]

    def _features(self, hits: ItemHits, returned: dict[str, list[NDArray]] | None) -> NDArray:
        features = []
        for view, after in self.after.items():
            rows = hits[view]
            for power, number in ((0.0, 3), (1.0, None), (4.0, None)):
                votes = self.ballots.count(rows.powered(power, number))
                features.append(self.ballots.scores(votes))
            if self.ballots.classify:
                features.append(self._best_of_class(rows))
                features.append(self._count_of_class(rows))
            else:
                best = self.ballots.count(rows.powered(0.0, 1))
                features.append(self.ballots.scores(best))
            for number, votes_of_hits in enumerate(after):
                votes = rows.transitions @ votes_of_hits
                if returned is not None:
                    votes = self._without(votes, returned[view][number])
                features.append(self.ballots.scores(votes))
        return np.stack(features, axis=1)

    def _without(self, votes: NDArray, own: NDArray) -> NDArray:
        """Votes less those of the item itself; remainders of rounding are 0."""
        left = votes - own
        if self.ballots.classify:
            return np.maximum(left, 0.0)
        left[:, -1] = np.maximum(left[:, -1], 0.0)
        return left

    def _best_of_class(self, hits: HitRows) -> NDArray:
        """Logarithm of the best relative similarity to each class, less its mean over the classes."""
        U = hits.relative
        rows = hits.row_of_hit
        of_class = self.ballots.sums[:, :-1]
        classes = of_class.argmax(axis=1)[U.indices]
        best = np.zeros((U.shape[0], of_class.shape[1]))
        np.maximum.at(best, (rows, classes), U.data)
        smallest = np.ones(U.shape[0])
        np.minimum.at(smallest, rows, U.data)
        floor = np.maximum(0.5 * smallest, THRESHOLDS.smallest_relative)
        logs = np.log(np.maximum(best, floor[:, None]))
        return logs - logs.mean(axis=1, keepdims=True)

    def _count_of_class(self, hits: HitRows) -> NDArray:
        """Logarithm of one plus the number of hits of each class."""
        is_of_class = (self.ballots.sums[:, :-1] > 0.0).astype(float)
        return np.log1p(hits.powered(0.0) @ is_of_class)


def _backward(P: csr_array) -> csr_array:
    """The transitions back along the hits."""
    Q = csr_array(P.T)
    return scale_rows(Q, Q.sum(axis=1))


def _returning(P: csr_array, Q: csr_array) -> NDArray:
    """``diag(P Q)``: how much of two steps comes back to each item."""
    return np.asarray(P.multiply(csr_array(Q.T)).sum(axis=1)).ravel()


class RowSizes:
    """How many hits an item has, how good the best is, and how many of them are nearly as good."""

    mean_largest: dict[str, float]

    def fit(self, train: HitTraining) -> Self:
        self.mean_largest = {}
        for view, hits in train.hits.views.items():
            mean = float(np.average(hits.largest, weights=train.weight))
            self.mean_largest[view] = mean or 1.0
        return self

    def __call__(self, new: ItemHits) -> NDArray:
        """Columns (m, 3) for every view."""
        columns = []
        for view, mean in self.mean_largest.items():
            hits = new[view]
            columns.append(np.log1p(hits.counts))
            columns.append(np.log1p(hits.largest / mean))
            columns.append(np.log1p(hits.relative.sum(axis=1)))
        return np.column_stack(columns)


class Coordinates:
    """Coordinates of the sparse matrix: singular vectors of its rows, scaled to length one."""

    views: tuple[str, ...]
    column_scale: NDArray
    vectors: NDArray

    def fit(self, train: HitTraining, random: np.random.RandomState) -> Self:
        self.views = (EITHER,)
        if train.hits.is_directed:
            self.views = DIRECTIONS
        U = beside([train.hits[view].relative for view in self.views])
        self.column_scale = 1.0 / np.sqrt(1.0 + np.asarray(U.sum(axis=0)).ravel())
        number = max(1, min(THRESHOLDS.coordinates, len(train.hits) // 8))
        seed = int(random.randint(2**31 - 1))
        _, _, vectors = randomized_svd(self._unit_rows(U), number, random_state=seed)
        self.vectors = vectors.T
        return self

    def __call__(self, new: ItemHits) -> NDArray:
        """Coordinates of items, of length one."""
        U = beside([new[view].relative for view in self.views])
        Z = self._unit_rows(U) @ self.vectors
        lengths = np.linalg.norm(Z, axis=1, keepdims=True)
        return Z / np.where(lengths > 0.0, lengths, 1.0)

    def _unit_rows(self, U: csr_array) -> csr_array:
        X = scale_rows(U, lengths_of(U))
        values = X.data * self.column_scale[X.indices]
        return csr_array((values, X.indices, X.indptr), X.shape)


class ClippedUnits:
    """Columns clipped to quantiles of the training items and standardized; constant ones become 0."""

    def __init__(self, F: NDArray, weight: NDArray):
        ends = [THRESHOLDS.clip, 1.0 - THRESHOLDS.clip]
        self.low, self.high = np.quantile(F, ends, axis=0)
        clipped = np.clip(F, self.low, self.high)
        self.mean = np.average(clipped, axis=0, weights=weight)
        deviation = np.sqrt(np.average((clipped - self.mean) ** 2, axis=0, weights=weight))
        is_constant = deviation <= 1e-13 * np.abs(self.mean)
        self.scale = np.where(is_constant, np.inf, deviation)

    def __call__(self, F: NDArray) -> NDArray:
        return (np.clip(F, self.low, self.high) - self.mean) / self.scale


class TiedLogit:
    """A conditional logit on the features of classes with the same coefficients for all classes."""

    names = ("tied shares",)
    penalty = 1.0
    theta: NDArray

    def fit(self, Phi: NDArray, onehot: NDArray, weight: NDArray) -> Self:
        def loss(theta: NDArray) -> tuple[float, NDArray]:
            logs = log_softmax(self._logits(theta, Phi), axis=1)
            error = weight[:, None] * (np.exp(logs) - onehot)
            gradient = np.concatenate([np.einsum("ic,ifc->f", error, Phi), error.sum(axis=0)])
            value = -np.sum(weight[:, None] * onehot * logs) + 0.5 * self.penalty * theta @ theta
            return float(value), gradient + self.penalty * theta

        start = np.zeros(Phi.shape[1] + Phi.shape[2])
        self.theta = minimize(loss, start, jac=True, method="L-BFGS-B").x
        return self

    def scores(self, Phi: NDArray) -> NDArray:
        return self._logits(self.theta, Phi)[None]

    def _logits(self, theta: NDArray, Phi: NDArray) -> NDArray:
        n_features = Phi.shape[1]
        return np.tensordot(Phi, theta[:n_features], axes=(1, 0)) + theta[n_features:]


class LinearHead:
    """Multinomial logistic regression of classes, or ridge regression of numbers, on standardized columns."""

    models: list[Any]
    n_classes: int

    def __init__(self, name: str, penalties: tuple[float, ...], classify: bool):
        self.names = (name,) * len(penalties)
        self.penalties = penalties
        self.classify = classify

    def fit(self, F: NDArray, targets: NDArray, weight: NDArray) -> Self:
        self.n_classes = targets.shape[1]
        if self.classify:
            targets = targets.argmax(axis=1)
        self.models = [
            self._model(penalty, targets).fit(F, targets, sample_weight=weight)
            for penalty in self.penalties
        ]
        return self

    def _model(self, penalty: float, targets: NDArray) -> Any:
        """An unfitted model; of a single class, the only one in the training part of a fold, a constant."""
        if not self.classify:
            return Ridge(penalty)
        if np.ptp(targets) == 0:
            return DummyClassifier(strategy="prior")
        return LogisticRegression(C=1.0 / penalty, max_iter=200, tol=1e-3)

    def scores(self, F: NDArray) -> NDArray:
        if not self.classify:
            return np.stack([model.predict(F).reshape(len(F), -1) for model in self.models])
        return np.stack([self._log_proba(model, F) for model in self.models])

    def _log_proba(self, model: Any, F: NDArray) -> NDArray:
        """Log-probabilities, a column per class; classes that were not seen have the smallest."""
        scores = np.full((len(F), self.n_classes), THRESHOLDS.smallest_log)
        scores[:, model.classes_] = model.predict_log_proba(F)
        return np.maximum(scores, THRESHOLDS.smallest_log)


class ShareModels:
    """Linear models on votes of the hits at one and at two steps; the features are made once for all of them.

    Classes have a logit with the same coefficients for all of them and, unless items are few, logistic regressions on
    all features and sizes of rows, without and with coordinates of the sparse matrix. Numbers have ridge regressions.
    """

    features: ShareFeatures
    sizes: RowSizes
    units: ClippedUnits
    coordinates: Coordinates
    coordinate_units: ClippedUnits

    def __init__(self, classify: bool, has_many_items: bool):
        self.classify = classify
        self.tied = TiedLogit() if classify else None
        self.plain = None
        self.joint = None
        if has_many_items:
            self.joint = LinearHead("shares and coordinates", (100.0, 30.0), classify)
        if has_many_items or not classify:
            self.plain = LinearHead("shares", (30.0, 3.0), classify)

    @property
    def names(self) -> tuple[str, ...]:
        heads = (self.tied, self.plain, self.joint)
        return tuple(name for head in heads if head is not None for name in head.names)

    def fit(self, train: HitTraining, random: np.random.RandomState) -> Self:
        self.features = ShareFeatures().fit(train)
        Phi = self.features.of_training(train)
        most = THRESHOLDS.logistic_rows if self.classify else None
        rows = some_rows(len(train.hits), most, random)
        seen = train.targets[rows], train.weight[rows]
        if self.tied is not None:
            self.tied.fit(Phi[rows], *seen)
        if self.plain is None:
            return self
        self.sizes = RowSizes().fit(train)
        F = _side_by_side(Phi, self.sizes(train.hits))
        self.units = ClippedUnits(F, train.weight)
        F = self.units(F[rows])
        self.plain.fit(F, *seen)
        if self.joint is None:
            return self
        self.coordinates = Coordinates().fit(train, random)
        Z = self.coordinates(train.hits)
        self.coordinate_units = ClippedUnits(Z, train.weight)
        self.joint.fit(np.hstack([F, self.coordinate_units(Z[rows])]), *seen)
        return self

    def scores(self, new: ItemHits) -> NDArray:
        Phi = self.features.of_new(new)
        scores = []
        if self.tied is not None:
            scores.append(self.tied.scores(Phi))
        if self.plain is not None:
            F = self.units(_side_by_side(Phi, self.sizes(new)))
            scores.append(self.plain.scores(F))
        if self.joint is not None:
            Z = self.coordinate_units(self.coordinates(new))
            scores.append(self.joint.scores(np.hstack([F, Z])))
        return np.concatenate(scores)


def _side_by_side(Phi: NDArray, columns: NDArray) -> NDArray:
    return np.hstack([Phi.reshape(len(Phi), -1), columns])


def default_families(n_items: int, classify: bool, both_directions: bool) -> list[HitFamily]:
    """The families that compete; of few items only those with few coefficients."""
    has_many_items = n_items >= THRESHOLDS.few_items
    views = [EITHER]
    if both_directions:
        views.extend(DIRECTIONS)
    families: list[HitFamily] = []
    for view in views:
        families += [Votes(view), RidgeRows(view)]
    if has_many_items:
        families.append(Propagation())
    families.append(ShareModels(classify, has_many_items))
    return families
