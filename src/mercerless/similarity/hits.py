"""Hits: sparse similarities, most pairs unknown or zero. Nothing dense of the size of the matrix is ever made.

A search (BLAST, DIAMOND, MMseqs2, Foldseek), a citation graph or a threshold gives every item a few hits among the
training items. Rows of hits are a block, as dense comparisons are; its families are here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import block_array, csr_array
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler, normalize

from mercerless.core.folds import assign_folds, splits_of
from mercerless.similarity.families import Family

#: Pseudo-hits that pull votes toward the shares of the classes, or the mean of the numbers.
PRIOR = 0.5
#: The same where labels have spread along the hits, which are shares themselves.
PRIOR_OF_SPREAD = 1e-3
#: Floor of the best relative similarity to a class.
SMALLEST_RELATIVE = 5e-4
#: Smallest share, as of classes that a fold does not have.
SMALLEST_SHARE = 1e-13


@dataclass(frozen=True, eq=False)
class HitRows:
    """Hits of some items, the rows, among the training items, the columns; entries are positive similarities."""

    similarities: csr_array

    @cached_property
    def largest(self) -> NDArray:
        """The largest similarity of every row, 0 without hits."""
        return np.asarray(self.similarities.max(axis=1).todense(), dtype=float).ravel()

    @cached_property
    def relative(self) -> csr_array:
        """Similarities relative to the largest of their row."""
        return normalize(self.similarities, "max")

    @cached_property
    def transitions(self) -> csr_array:
        """Relative similarities that sum to one in every row."""
        return normalize(self.relative, "l1")

    @cached_property
    def counts(self) -> NDArray:
        """How many hits every row has."""
        return np.diff(self.similarities.indptr)

    @property
    def row_of_hit(self) -> NDArray:
        """The row of every entry."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int32), self.counts)

    @cached_property
    def rank_of_hit(self) -> NDArray:
        """The place of every entry in its row, 0 for the best hit; equal ones in the order of their columns."""
        S = self.similarities
        order = np.lexsort((-S.data, self.row_of_hit))
        ranks = np.empty(len(order), dtype=np.int32)
        ranks[order] = np.arange(len(order)) - S.indptr[self.row_of_hit]
        return ranks

    def powered(self, power: float, number: int | None = None) -> csr_array:
        """Powers of the relative similarities, of all hits or of the best of every row."""
        U = self.relative
        if number is None:
            return csr_array((U.data**power, U.indices, U.indptr), U.shape)
        kept = self.rank_of_hit < number
        ends = np.concatenate([[0], np.cumsum(np.minimum(self.counts, number))])
        return csr_array((U.data[kept] ** power, U.indices[kept], ends), U.shape)


@dataclass(frozen=True, eq=False)
class HitBlock:
    """Hits of rows among the training items: in either direction and, if both are known, in each."""

    views: dict[str, HitRows]
    weight: NDArray

    @classmethod
    def of(cls, there: csr_array, back: csr_array | None, weight: NDArray) -> "HitBlock":
        """From the hits of rows, and of the items that have them as hits if these are known."""
        if back is None:
            return cls({"hits": HitRows(there)}, weight)
        views = {"hits": HitRows(csr_array(there + back)), "rows": HitRows(there)}
        return cls(views | {"columns": HitRows(back)}, weight)

    def new(self, there: csr_array, back: csr_array | None) -> "HitBlock":
        """New rows and their hits among the same training items."""
        return HitBlock.of(there, back, np.ones(there.shape[0]))

    def split(self, train: NDArray, test: NDArray) -> tuple["HitBlock", "HitBlock"]:
        """The training and the held-out rows of a fold, with their hits among the training rows."""
        S = self.there
        weight = self.weight[train] / self.weight[train].mean()
        back = None
        back_of_test = None
        if self.is_directed:
            back = csr_array(S[train][:, train].T)
            back_of_test = csr_array(S[train][:, test].T)
        known = HitBlock.of(csr_array(S[train][:, train]), back, weight)
        return known, known.new(csr_array(S[test][:, train]), back_of_test)

    def families(self, classify: bool) -> Sequence[Family]:
        """The families of learners on hits."""
        families: list[Family] = [Votes(view, classify) for view in self.views]
        families += [RidgeRows(view, classify) for view in self.views]
        heads = [("ridge", 30.0), ("ridge", 3.0)]
        if classify:
            heads.append(("tied", 1.0))
        families.append(ShareModels("shares", heads, classify))
        return families

    @property
    def there(self) -> csr_array:
        """The hits of the rows."""
        return self.views["rows" if self.is_directed else "hits"].similarities

    @property
    def is_directed(self) -> bool:
        """Whether both directions are known."""
        return len(self.views) > 1

    def __len__(self) -> int:
        return self.there.shape[0]


@dataclass(frozen=True, eq=False)
class Ballots:
    """Votes of the items that are hit: their targets times their weights, and their weights."""

    sums: NDArray  # (n, q + 1)
    mean: NDArray  # (q,), of the targets: shares of the classes, or means of the numbers
    classify: bool

    @classmethod
    def of(cls, targets: NDArray, weight: NDArray, classify: bool) -> "Ballots":
        """Those of training items with these targets, one column per class or number."""
        weighted = targets * weight[:, None]
        mean = weighted.sum(axis=0) / weight.sum()
        return cls(np.column_stack([weighted, weight]), mean, classify)

    def scores(self, hits: csr_array, strength: float = PRIOR) -> NDArray:
        """Mean targets of the hits, weighed by the entries; see `means`."""
        return self.means(hits @ self.sums, strength)

    def means(self, votes: NDArray, strength: float = PRIOR) -> NDArray:
        """The votes' mean targets, pulled toward the mean by pseudo-votes; of classes their logarithms."""
        total = votes[:, -1:] + strength
        means = (votes[:, :-1] + strength * self.mean) / total
        if self.classify:
            return np.log(np.maximum(means, SMALLEST_SHARE))
        return means


class HitFamily(Family):
    """Base of the families on hits."""

    def __init__(self, name: str, settings: Sequence[Any], classify: bool):
        super().__init__(name, settings)
        self.classify = classify

    def prepare(self, known: HitBlock, Y: NDArray) -> None:
        Y = np.asarray(Y, dtype=float)
        self.targets = (Y > 0.0).astype(float) if self.classify else Y
        self.ballots = Ballots.of(self.targets, known.weight, self.classify)


class Votes(HitFamily):
    """Mean targets of the best hits, weighed by powers of the relative similarity; of classes their shares."""

    def __init__(self, view: str, classify: bool):
        powers = ((1, 0.0), (3, 1.0), (10, 1.0), (None, 1.0), (None, 4.0), (None, 12.0))
        super().__init__("votes" if view == "hits" else f"votes of {view}", powers, classify)
        self.view = view

    def scores(self, new: HitBlock) -> NDArray:
        hits = new.views[self.view]
        return np.stack(
            [self.ballots.scores(hits.powered(power, number)) for number, power in self.settings]
        )


class RidgeRows(HitFamily):
    """Ridge regression on the rows of hits, each shifted to begin near zero and scaled to length one."""

    def __init__(self, view: str, classify: bool):
        name = "ridge" if view == "hits" else f"ridge of {view}"
        super().__init__(name, (10.0, 1.0, 0.1), classify)
        self.view = view

    def solve(self, known: HitBlock, Y: NDArray) -> None:
        X = self._features(known)
        target = self.targets - self.ballots.mean
        self.models = [
            Ridge(penalty, fit_intercept=False, solver="sparse_cg", tol=1e-4).fit(
                X, target, known.weight
            )
            for penalty in self.settings
        ]

    def scores(self, new: HitBlock) -> NDArray:
        X = self._features(new)
        predictions = [model.predict(X).reshape(len(new), -1) for model in self.models]
        return np.stack(predictions) + self.ballots.mean

    def _features(self, hits: HitBlock) -> csr_array:
        view = hits.views[self.view]
        S = view.similarities
        rows = view.row_of_hit
        smallest = view.largest.copy()
        np.minimum.at(smallest, rows, S.data)
        span = view.largest - smallest
        span = np.where(span > 0.0, span, np.maximum(view.largest, 1.0))
        values = S.data - smallest[rows] + 0.1 * span[rows]
        X = csr_array((values, S.indices, S.indptr), S.shape)
        return normalize(X, "l2")


class ShareFeatures:
    """Votes of the hits of an item for every class or number, at one and at two steps.

    Features of training items leave out their own label: of two steps ``P (Q Y)``, item i gets back its own label
    times ``(P Q)_ii = sum_j P_ij Q_ji``, which is subtracted.
    """

    def __init__(self, known: HitBlock, ballots: Ballots):
        self.ballots = ballots
        self.after = {  # votes (n, q + 1) of the training items by a second step
            view: [step @ ballots.sums for step in steps] for view, steps in second_steps(known)
        }

    def of_training(self, known: HitBlock) -> NDArray:
        """Features (n, n_features, q) of the training items, without their own labels."""
        returned = {}
        for view, steps in second_steps(known):
            P = known.views[view].transitions
            # diag(P Q): how much of two steps comes back
            shares = [np.asarray(P.multiply(csr_array(Q.T)).sum(axis=1)).ravel() for Q in steps]
            returned[view] = [share[:, None] * self.ballots.sums for share in shares]
        return self._features(known, returned)

    def of_new(self, new: HitBlock) -> NDArray:
        """Features (m, n_features, q) of new items."""
        return self._features(new, None)

    def _features(self, hits: HitBlock, returned: dict[str, list[NDArray]] | None) -> NDArray:
        features = []
        for view, after in self.after.items():
            rows = hits.views[view]
            for power, number in ((0.0, 3), (1.0, None), (4.0, None)):
                features.append(self.ballots.scores(rows.powered(power, number)))
            if self.ballots.classify:
                features.append(self._best_of_class(rows))
                features.append(self._count_of_class(rows))
            else:
                features.append(self.ballots.scores(rows.powered(0.0, 1)))
            for number, votes_of_hits in enumerate(after):
                votes = rows.transitions @ votes_of_hits
                if returned is not None:
                    votes = votes - returned[view][number]
                    positive = slice(None) if self.ballots.classify else slice(-1, None)
                    votes[:, positive] = np.maximum(votes[:, positive], 0.0)
                features.append(self.ballots.means(votes))
        return np.stack(features, axis=1)

    def _best_of_class(self, hits: HitRows) -> NDArray:
        """Logarithm of the best relative similarity to each class, less its mean over the classes."""
        U = hits.relative
        rows = hits.row_of_hit
        of_class = self.ballots.sums[:, :-1]
        votes = of_class.sum(axis=1)[U.indices] > 0.0
        classes = of_class.argmax(axis=1)[U.indices]
        best = np.zeros((U.shape[0], of_class.shape[1]))
        np.maximum.at(best, (rows[votes], classes[votes]), U.data[votes])
        smallest = np.ones(U.shape[0])
        np.minimum.at(smallest, rows, U.data)
        floor = np.maximum(0.5 * smallest, SMALLEST_RELATIVE)
        logs = np.log(np.maximum(best, floor[:, None]))
        return logs - logs.mean(axis=1, keepdims=True)

    def _count_of_class(self, hits: HitRows) -> NDArray:
        """Logarithm of one plus the number of hits of each class."""
        is_of_class = (self.ballots.sums[:, :-1] > 0.0).astype(float)
        return np.log1p(hits.powered(0.0) @ is_of_class)


def second_steps(hits: HitBlock) -> Iterator[tuple[str, list[csr_array]]]:
    """The second steps after one of each view: onward and back; with both directions known, onward or back.

    Back from what an item hits are those that hit the same; in a graph of citations, what is cited together.
    """

    def backward(P: csr_array) -> csr_array:
        return normalize(csr_array(P.T), "l1")

    P = hits.views["hits"].transitions
    yield "hits", [P] if hits.is_directed else [P, backward(P)]
    for view in list(hits.views)[1:]:
        yield view, [backward(hits.views[view].transitions)]


class ShareModels(HitFamily):
    """Linear models on votes of the hits at one and at two steps.

    A setting is "ridge", a ridge regression, or "tied", a logit with the same coefficients for all classes, and a
    penalty.
    """

    def solve(self, known: HitBlock, Y: NDArray) -> None:
        self.features = ShareFeatures(known, self.ballots)
        Phi = self.features.of_training(known)
        columns = Phi.reshape(len(Phi), -1)
        self.scaler = StandardScaler().fit(columns, sample_weight=known.weight)
        self.models = []
        for kind, penalty in self.settings:
            if kind == "tied":
                model: Any = tied_logit(Phi, self.targets, known.weight, penalty)
            else:
                F = self.scaler.transform(columns)
                model = Ridge(penalty).fit(F, self.targets, known.weight)
            self.models.append(model)

    def scores(self, new: HitBlock) -> NDArray:
        Phi = self.features.of_new(new)
        F = self.scaler.transform(Phi.reshape(len(Phi), -1))
        scores = []
        for (kind, _), model in zip(self.settings, self.models):
            if kind == "tied":
                scores.append(tied_scores(model, Phi))
            else:
                scores.append(model.predict(F).reshape(len(F), -1))
        return np.stack(scores)


def tied_logit(Phi: NDArray, onehot: NDArray, weight: NDArray, penalty: float) -> NDArray:
    """Coefficients (n_features + q,) of a conditional logit on the features of classes, the same for all classes."""

    def loss(theta: NDArray) -> tuple[float, NDArray]:
        logs = log_softmax(tied_scores(theta, Phi), axis=1)
        error = weight[:, None] * (np.exp(logs) - onehot)
        gradient = np.concatenate([np.einsum("ic,ifc->f", error, Phi), error.sum(axis=0)])
        log_loss = -np.sum(weight[:, None] * onehot * logs)
        value = log_loss + 0.5 * penalty * theta @ theta
        return float(value), gradient + penalty * theta

    start = np.zeros(Phi.shape[1] + Phi.shape[2])
    return minimize(loss, start, jac=True, method="L-BFGS-B").x


def tied_scores(theta: NDArray, Phi: NDArray) -> NDArray:
    """Scores (m, q) by a conditional logit."""
    n_features = Phi.shape[1]
    return np.tensordot(Phi, theta[:n_features], axes=(1, 0)) + theta[n_features:]


def predict_linked(
    known: HitBlock, new: HitBlock, among: csr_array, Y: NDArray, labels: NDArray | None
) -> NDArray:
    """Predictions of new rows with links among each other, from the graph of all rows.

    A logistic (or ridge) regression of the training rows' targets on the mean targets around every row, at one step, at
    two, and spread along the links. No row sees its own target: of two steps the return is left out, and targets spread
    from the other four of five parts.
    """
    n = len(known)
    links = [
        [known.there, new.views["columns" if new.is_directed else "hits"].similarities.T],
        [new.there, among],
    ]
    whole = HitRows(csr_array(block_array(links, format="csr"))).relative
    both = HitRows(csr_array(whole.maximum(whole.T)))
    P = both.transitions
    targets = Y if labels is None else (Y > 0.0).astype(float)
    weighted = np.column_stack([targets * known.weight[:, None], known.weight])
    mean = weighted[:, :-1].sum(axis=0) / known.weight.sum()
    votes = np.vstack([weighted, np.zeros((len(new), weighted.shape[1]))])

    def means(values: NDArray) -> NDArray:
        return (values[:, :-1] + PRIOR_OF_SPREAD * mean) / (values[:, -1:] + PRIOR_OF_SPREAD)

    one_step = P @ votes
    returning = np.asarray(P.multiply(P.T).sum(axis=1)).reshape(-1, 1)
    spread = spread_along(P, votes)
    for _, test in splits_of(assign_folds(5, n, random_state=0)):
        without = votes.copy()
        without[test] = 0.0
        spread[test] = spread_along(P, without)[test]
    two_steps = P @ one_step - returning * votes
    F = np.hstack([means(one_step), means(two_steps), means(spread)])
    F = StandardScaler().fit(F[:n]).transform(F)
    if labels is None:
        ridge = Ridge(1.0).fit(F[:n], targets, known.weight)
        return ridge.predict(F[n:]).reshape(len(new), -1)
    model = LogisticRegression(max_iter=500).fit(F[:n], labels, known.weight)
    proba = np.zeros((len(new), Y.shape[1]))
    proba[:, model.classes_] = model.predict_proba(F[n:])
    return proba


def spread_along(P: csr_array, start: NDArray, share: float = 0.85, n_steps: int = 20) -> NDArray:
    """Votes after some steps; a share of each step comes from the links, the rest from the start."""
    votes = start
    for _ in range(n_steps):
        votes = share * (P @ votes) + (1.0 - share) * start
    return votes
