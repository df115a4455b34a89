"""What competes with the local forms of LAB: wide kernel machines and experts of many rows, and boosted trees."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from mercerless.core.averaging import TABLE_CLASSES, average
from mercerless.core.blocks import reduce_rows
from mercerless.core.calibration import calibrate_scores
from mercerless.core.choice import cross_chosen
from mercerless.core.folds import Split
from mercerless.core.memory import row_blocks
from mercerless.core.scaling import BLOCK_BYTES
from mercerless.lab.model import FORMS, Expansion, Projected, Rows, Total, fixed_columns
from mercerless.lab.selection import LocalLearner
from mercerless.lab.solver import Moments, moments
from mercerless.table.encoding import PLAIN, TreeColumns
from mercerless.table.members.candidate import Extra
from mercerless.table.members.experts import expert_candidate
from mercerless.table.members.wide_solver import (
    norm_penalty,
    slope_map,
    slopes,
    solve_logistic,
    solve_wide,
)

_FEWEST_TREES = 100
# on which bandwidth and map are chosen
_TRIAL_CENTERS = 1000
_TRIAL_ROWS = 3000
_TRIAL_HELD = 2000
_SLOPE_ROWS = 1500
_RIDGES = np.array([1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
_ROUNDS = 2
_LOGISTIC_FACTORS = (1.0, 0.3, 0.1, 0.03)  # of the ridge of least squares
# twice the centers, from so many on, must lower the loss to this share
_LEAST_CENTERS = 600
_WORTH = 0.99
_ROWS_PER_CENTER = 40  # that determine the coefficients
_SINGLE_RIDGE = 0.03  # from which sums of products in single precision are enough
_LAPLACE_WORK = 2e9  # rows x centers x features
_MANY_FEATURES = 50  # of which evidence learns the bandwidths badly
_BOOSTING = {"learning_rate": 0.1, "l2_regularization": 1.0, "early_stopping": False}
# rows x classes x iterations at most, and times the features
_BOOSTING_WORK = 4e7
_BOOSTING_CELLS = 1e9
_BOOSTING_STEP = 50
# leaves of larger trees, which compete from so many rows on
_LARGE_TREES = 127
_MANY_ROWS = 10_000
# steps as good as the last one in which trees would not reach the best of the others
_HOPELESS = 4.0
_USELESS = 1.5  # times the loss of the best of the others, at which further folds do not matter
# where there is memory for so many centers, there is for the matrices of an expert
_EXPERT_CENTERS = 1200


@dataclass(frozen=True)
class Judge:
    """The loss of predictions for some rows: the squared error, or the log-loss of calibrated scores."""

    Y: NDArray
    weight: NDArray | None
    labels: NDArray | None

    def __call__(self, predictions: NDArray) -> float:
        if self.labels is not None:
            return float(calibrate_scores(as_scores(predictions), self.labels, self.weight).loss)
        return float(np.average(np.sum((predictions - self.Y) ** 2, axis=1), weights=self.weight))


def as_scores(predictions: NDArray) -> NDArray:
    """One column per class."""
    return np.hstack([-predictions, predictions]) / 2 if predictions.shape[1] == 1 else predictions


def blocked_moments(X: NDArray, Y: NDArray, weight: NDArray | None, **options: Any) -> Moments:
    """`moments` of a block of rows in smaller ones, as many centers need; no smaller than a third of the sums."""
    per_row = 24.0 * (len(options["S"]) + X.shape[1])
    budget = max(BLOCK_BYTES, per_row * len(options["S"]) / 3)
    return reduce_rows(partial(moments, **options), Moments.merge, [X, Y, weight], per_row, budget)


class Wide(NamedTuple):
    """A kernel with one shared bandwidth per feature, or one for all after a linear map."""

    form: str
    log_bandwidths: NDArray  # (d,) or ()
    projection: NDArray | None = None  # (d, r)

    @property
    def kernel(self) -> Projected:
        widths = np.exp(self.log_bandwidths)
        return Projected(
            FORMS[self.form](widths if np.ndim(widths) else float(widths)), self.projection
        )

    def wider(self, factor: float) -> "Wide":
        return self._replace(log_bandwidths=self.log_bandwidths + np.log(factor))


class _Trial(NamedTuple):
    """A kernel with its coefficients on a part of the rows."""

    loss: float
    wide: Wide
    ridge: float
    coef: NDArray


class _Machine(NamedTuple):
    """A wide machine of the training rows, and what fits it to more."""

    loss: float
    predictions: NDArray  # of the held-out rows
    model: Expansion  # without coefficients
    logistic: bool  # whether the coefficients minimize the log-loss
    coef: NDArray
    sums: Moments
    P: NDArray


@dataclass(frozen=True)
class WideLearner:
    """Learns a wide machine on the rows of one hold-out."""

    rows: Rows
    train: NDArray
    valid: NDArray
    linear: bool
    labels: NDArray | None = None  # of the rows
    seed: int = 0
    n_centers: int = 3000

    def sums(self, rows: Rows, wide: Wide, S: NDArray, dtype: Any = np.float64) -> Moments:
        """The moments of some rows, block by block."""
        fixed = partial(fixed_columns, linear=self.linear)
        return blocked_moments(
            rows.X, rows.Y, rows.weight, kernel=wide.kernel, S=S, fixed=fixed, dtype=dtype
        )

    def predict(
        self, X: NDArray, wide: Wide, S: NDArray, coefs: Sequence[NDArray]
    ) -> list[NDArray]:
        """Predictions with each of several sets of coefficients."""
        every = wide.kernel(X, S) @ np.hstack([coef[: len(S)] for coef in coefs])
        every += fixed_columns(X, self.linear) @ np.hstack([coef[len(S) :] for coef in coefs])
        return np.split(every, len(coefs), axis=1)

    def penalty(self, wide: Wide, S: NDArray) -> NDArray:
        """The norm of the kernel on its centers."""
        return norm_penalty(wide.kernel(S, S), fixed_columns(S[:1], self.linear).shape[1])

    def _few(self, numbers: NDArray, limit: int) -> NDArray:
        """Some of the numbers, in random order."""
        return numbers[np.random.RandomState(self.seed).permutation(len(numbers))[:limit]]

    def judge(self, numbers: NDArray) -> Judge:
        held = self.rows.take(numbers)
        return Judge(held.Y, held.weight, None if self.labels is None else self.labels[numbers])

    def trial(self, wide: Wide, ridges: NDArray = _RIDGES) -> _Trial:
        """The best ridge on few rows and centers."""
        train = self._few(self.train, _TRIAL_ROWS)
        valid = self._few(self.valid, _TRIAL_HELD)
        rows = self.rows.take(train)
        S = self.rows.X[train[:_TRIAL_CENTERS]]
        judge = self.judge(valid)
        coefs = solve_wide(self.sums(rows, wide, S), self.penalty(wide, S), ridges)
        losses = [judge(p) for p in self.predict(self.rows.X[valid], wide, S, coefs)]
        best = int(np.argmin(losses))
        return _Trial(losses[best], wide, float(ridges[best]), coefs[best])

    def search(self, wide: Wide) -> _Trial:
        """Widen or narrow as long as that helps."""
        best = self.trial(wide)
        for factor in (0.5, 2.0):
            moved = False
            while abs(np.mean(best.wide.log_bandwidths - wide.log_bandwidths)) < 2.5:
                other = self.trial(best.wide.wider(factor), _near(best.ridge))
                if other.loss >= best.loss:
                    break
                best = other
                moved = True
            if moved:
                break
        return best

    def turned(self, best: _Trial) -> _Trial:
        """Rounds of a linear map from the slopes of the function, each kept only where the loss falls."""
        for _ in range(_ROUNDS):
            other = self.trial(self._mapped(best), _near(best.ridge))
            if other.loss >= best.loss:
                break
            best = other
        return best

    def _mapped(self, trial: _Trial) -> Wide:
        X = self.rows.X[self._few(self.train, _SLOPE_ROWS)].astype(np.float64)
        S = self.rows.X[self._few(self.train, _TRIAL_CENTERS)].astype(np.float64)
        A = np.eye(X.shape[1]) if trial.wide.projection is None else trial.wide.projection
        A = A * np.exp(-trial.wide.log_bandwidths)
        Z = X @ A
        C = S @ A
        m = len(S)
        K = Projected(FORMS["exponential"](1.0))(Z, C)
        gradients = slopes(Z, C, K, trial.coef[:m]) @ A.T
        if self.linear:
            gradients = gradients + trial.coef[m + 1 :].T[:, None] / np.sqrt(X.shape[1])
        B = slope_map(gradients)
        pairs = np.random.RandomState(self.seed).randint(len(X), size=(2, 1000))
        differences = X[pairs[0]] - X[pairs[1]]
        old, new = (np.median(np.linalg.norm(differences @ M, axis=1)) for M in (A, B))
        return Wide("exponential", np.array(0.0), B * (old / new if new > 0 else 1.0))

    def candidate(self, best: _Trial) -> _Machine:
        """All training rows, and as many centers as are worth it."""
        most = min(self.n_centers, len(self.train))
        support = self._few(self.train, most)
        sizes = (-(-most // 4), -(-most // 2), most)
        machine = self._machine(
            best, support[: next(m for m in sizes if m >= min(most, _LEAST_CENTERS))]
        )
        while len(machine.model.support) < most:
            more = self._machine(best, support[: 2 * len(machine.model.support)], machine)
            if more.loss > _WORTH * machine.loss:
                break
            machine = more
        return machine

    def again(self, best: _Trial, like: _Machine) -> _Machine:
        """As many centers, the ridge and the loss of another."""
        return self._machine(best, self._few(self.train, len(like.model.support)), like)

    def _machine(self, best: _Trial, support: NDArray, like: _Machine | None = None) -> _Machine:
        """With given centers: three ridges about the chosen one, of least squares or log-loss; or `like` another."""
        wide = best.wide
        S = self.rows.X[support]
        judge = self.judge(self.valid)
        ridges = best.ridge * np.array([0.3, 1.0, 3.0])
        if like is not None:  # with more centers perhaps a smaller one
            ridges = np.exp(like.model.log_ridge) * np.array([1.0, 0.3])
        dtype = np.float32 if ridges.min() >= _SINGLE_RIDGE else np.float64
        sums = self.sums(self.rows.take(self.train), wide, S, dtype)
        P = self.penalty(wide, S)
        model = Expansion(
            wide.form, support, wide.log_bandwidths, 0.0, None, projection=wide.projection
        )
        if like is not None and like.logistic:
            more = len(support) - len(like.model.support)
            start = (
                np.insert(like.coef, [len(like.model.support)] * more, 0.0, axis=0)
                if more > 0
                else None
            )
            return self._logistic(model, sums, P, ridges, start)
        coefs = solve_wide(sums, P, ridges)
        predictions = self.predict(self.rows.X[self.valid], wide, S, coefs)
        losses = [judge(p) for p in predictions]
        k = int(np.argmin(losses))
        model = model._replace(log_ridge=float(np.log(ridges[k])))
        machine = _Machine(losses[k], predictions[k], model, False, coefs[k], sums, P)
        if like is not None or self.labels is None:
            return machine
        other = self._logistic(model, sums, P, ridges[k] * np.array(_LOGISTIC_FACTORS))
        return other if other.loss < machine.loss else machine

    def finish(self, machine: _Machine, total: Total | None) -> Expansion:
        """The machine on all rows, the held-out ones too."""
        model = machine.model
        sums = machine.sums
        wide = Wide(model.form, model.log_bandwidths, model.projection)
        S = self.rows.X[model.support]
        if total is None or machine.logistic:
            sums = sums.merge(self.sums(self.rows.take(self.valid), wide, S))
        return self._finish(machine._replace(sums=sums), total)

    def refit(self, machine: _Machine, n: int, total: Total | None) -> Expansion:
        """A machine of the same kernel and ridge on all training rows, of which the other had n."""
        size = -(-len(machine.model.support) * len(self.train) // n)
        model = machine.model._replace(support=self._few(self.train, size))
        wide = Wide(model.form, model.log_bandwidths, model.projection)
        S = self.rows.X[model.support]
        machine = machine._replace(
            model=model, sums=self.sums(self.rows, wide, S), P=self.penalty(wide, S)
        )
        return self._finish(machine._replace(coef=np.zeros((0, 0))), total)

    def _columns(self, numbers: NDArray, model: Expansion) -> NDArray:
        """The columns of some rows, in single precision."""
        X = self.rows.X[numbers]
        S = self.rows.X[model.support]
        out = np.empty(
            (len(X), len(S) + fixed_columns(S[:1], self.linear).shape[1]), dtype=np.float32
        )
        for rows in row_blocks(len(X), 24.0 * len(S), BLOCK_BYTES):
            out[rows, : len(S)] = model.kernel(X[rows], S)
            out[rows, len(S) :] = fixed_columns(X[rows], self.linear)
        return out

    def _logistic(
        self,
        model: Expansion,
        sums: Moments,
        P: NDArray,
        ridges: NDArray,
        coef: NDArray | None = None,
    ) -> _Machine:
        """Coefficients of least log-loss instead of squared error, from a large ridge to smaller ones."""
        assert self.labels is not None
        q = self.rows.Y.shape[1]
        best = None
        Phi = self._columns(self.train, model)
        valid = self._columns(self.valid, model)
        judge = self.judge(self.valid)
        labels = self.labels[self.train]
        weight = self.rows.take(self.train).weight
        for ridge in ridges:
            coef = solve_logistic(Phi, labels, weight, P, float(ridge), sums.gram, q, coef).coef
            predictions = valid @ coef
            loss = judge(predictions)
            if best is None or loss < best.loss:
                of_ridge = model._replace(log_ridge=float(np.log(ridge)))
                best = _Machine(loss, predictions, of_ridge, True, coef, sums, P)
            if loss > 1.02 * best.loss:
                break
        assert best is not None
        return best

    def _finish(self, machine: _Machine, total: Total | None) -> Expansion:
        """The coefficients; for the log-loss the rows on which bandwidths are learned are enough."""
        model = machine.model
        ridge = float(np.exp(machine.model.log_ridge))
        if machine.logistic:
            assert self.labels is not None
            Phi = self._columns(np.arange(len(self.rows)), model)
            start = machine.coef if machine.coef.size else None
            weight = self.rows.weight
            q = self.rows.Y.shape[1]
            solution = solve_logistic(
                Phi, self.labels, weight, machine.P, ridge, machine.sums.gram, q, start
            )
            return self._with(model._replace(certificate=solution.certificate), solution.coef)
        sums = machine.sums
        if total is not None:
            dtype = np.float32 if ridge >= _SINGLE_RIDGE else np.float64
            options = {
                "S": self.rows.X[model.support],
                "fixed": partial(fixed_columns, linear=self.linear),
            }
            limit = _ROWS_PER_CENTER * len(model.support)
            sums = total(
                partial(blocked_moments, kernel=model.kernel, dtype=dtype, **options), limit
            )
        return self._with(model, solve_wide(sums, machine.P, [ridge])[0])

    def _with(self, model: Expansion, coef: NDArray) -> Expansion:
        m = len(model.support)
        d = self.rows.X.shape[1]
        linear = np.zeros((1 + d, coef.shape[1]))
        linear[: len(coef) - m] = coef[m:]
        linear[1:] /= np.sqrt(d)
        return model._replace(coef=coef[:m], linear=linear)


def _near(ridge: float) -> NDArray:
    """The ridges about one."""
    place = int(np.argmin(np.abs(np.log(_RIDGES / ridge))))
    return _RIDGES[max(0, place - 1) : place + 2]


def wide_candidates(
    learners: Sequence[WideLearner],
    shared: Mapping[str, Sequence[NDArray]],
    everything: WideLearner,
) -> dict[str, Extra]:
    """A Laplace machine with a bandwidth per feature, and an exponential one with a learned map of the features.

    `shared` has the log bandwidths of the local forms in every fold. For many features a Gaussian with one bandwidth
    competes as well. Factor, ridge and centers of the first fold serve all, and its kernel is fitted to all rows.
    """
    n = len(learners[0].train)
    d = learners[0].rows.X.shape[1]
    starts = shared.get("laplace", next(iter(shared.values())))
    kernels_of: dict[str, list[Wide]] = {}
    if "laplace" in shared and n * min(n, everything.n_centers) * d <= _LAPLACE_WORK:
        kernels_of["laplace, many centers"] = [Wide("laplace", start) for start in starts]
    if d > _MANY_FEATURES or not kernels_of:
        kernels_of["gaussian, many centers"] = [Wide("gaussian", np.array(0.5 * np.log(d)))] * len(
            starts
        )
    kernels_of["exponential, learned map"] = [
        Wide("exponential", start - 0.5 * np.log(d)) for start in starts
    ]
    out = {}
    for name, kernels in kernels_of.items():
        turn = kernels[0].form == "exponential"
        trial = learners[0].search(kernels[0])
        factor = float(np.exp(np.mean(trial.wide.log_bandwidths - kernels[0].log_bandwidths)))
        machine = learners[0].candidate(learners[0].turned(trial) if turn else trial)
        predictions = [machine.predictions]
        for learner, kernel in zip(learners[1:], kernels[1:]):
            other = learner.trial(kernel.wider(factor), _near(trial.ridge))
            predictions.append(
                learner.again(learner.turned(other) if turn else other, machine).predictions
            )
        finish = (
            partial(learners[0].finish, machine)
            if len(learners) == 1
            else partial(everything.refit, machine, n)
        )
        out[name] = Extra(np.concatenate(predictions), finish)
    return out


class Trees(NamedTuple):
    """Boosted trees as a member of a fitted LAB model.

    Attributes
    ----------
    name : str
        "boosted trees".
    models : list
        Scikit-learn's models: one, or one per output.
    center, scale : ndarray of shape (n_functions,)
        The units of the predictions.
    weight : float
        The weight in the average.
    scaling : callable
        Scales features.
    columns : callable
        What the trees see of scaled features: missing numbers as such, and categories as one column of codes.
    """

    name: str
    models: list
    center: NDArray
    scale: NDArray
    weight: float
    scaling: Any
    columns: TreeColumns

    def __call__(self, X: NDArray) -> NDArray:
        """One column per function, or per class: log-odds."""
        Z = X if self.scaling is None else self.scaling(X, X.dtype)
        return (
            raw_predictions(self.models, self.columns(Z), len(self.center)) * self.scale
            + self.center
        )

    def in_units(self, center: NDArray, scale: NDArray) -> "Trees":
        """For targets that were standardized by these."""
        return self._replace(center=center, scale=scale)


def raw_predictions(models: Sequence[Any], X: NDArray, n_functions: int) -> NDArray:
    """Predicted numbers, or the log-odds of classes; a class that was not seen has the lowest of a row."""
    if not hasattr(models[0], "classes_"):
        return np.stack([model.predict(X) for model in models], axis=1)
    scores = models[0].decision_function(X).reshape(len(X), -1)
    return _all_classes(scores, models[0].classes_, n_functions)


def _all_classes(scores: NDArray, classes: NDArray, n_functions: int) -> NDArray:
    if scores.shape[1] == n_functions:
        return scores
    if scores.shape[1] == 1:
        scores = as_scores(scores)
    out = np.repeat(scores.min(axis=1, keepdims=True) - 2.0, n_functions, axis=1)
    out[:, classes] = scores
    return out


class Labeled(NamedTuple):
    """Rows and, for classification, their classes."""

    rows: Rows
    labels: NDArray | None

    def take(self, numbers: NDArray) -> "Labeled":
        return Labeled(
            self.rows.take(numbers), None if self.labels is None else self.labels[numbers]
        )

    def joined(self, other: "Labeled | None") -> "Labeled":
        """With the rows of another."""
        if other is None:
            return self
        labels = (
            None
            if self.labels is None or other.labels is None
            else np.concatenate([self.labels, other.labels])
        )
        return Labeled(self.rows.joined(other.rows), labels)

    def seen_by(self, columns: TreeColumns) -> "Labeled":
        """As trees see the rows."""
        return self._replace(rows=replace(self.rows, X=columns(self.rows.X)))

    def judge(self, predictions: NDArray) -> float:
        return Judge(self.rows.Y, self.rows.weight, self.labels)(predictions)

    def losses(self, predictions: NDArray) -> NDArray:
        """Of every row the log-loss of log-odds as they are, or the squared error, times its weight.

        Calibrated, few trees would seem as good as enough.
        """
        if self.labels is None:
            losses = np.sum((predictions - self.rows.Y) ** 2, axis=1)
        else:
            logs = log_softmax(as_scores(predictions), axis=1)
            losses = -logs[np.arange(len(logs)), self.labels]
        return losses if self.rows.weight is None else losses * self.rows.weight

    def loss(self, predictions: NDArray) -> float:
        """The mean of these."""
        weight = self.rows.weight
        total = len(self.rows) if weight is None else weight.sum()
        return float(self.losses(predictions).sum() / total)


def boost(
    given: Labeled,
    n_iter: int,
    seed: int,
    models: Sequence[Any] | None = None,
    categories: Sequence[int] = (),
    leaves: int | None = None,
) -> list:
    """Boosted trees with so many iterations, continued where models are given; `categories` are columns of codes."""
    rows, labels = given
    X = rows.X
    empty = np.isnan(rows.X).all(axis=0)
    if empty.any():  # in these rows, not in all: of no use, but an error of the models
        X = np.where(empty, 0.0, X)
    kind = HistGradientBoostingRegressor if labels is None else HistGradientBoostingClassifier
    targets = rows.Y.T if labels is None else [labels]
    leaf = 20 if len(rows) >= 2000 else 10
    leaves = leaves or (31 if len(rows) >= 1000 else 12)
    options: dict[str, Any] = {
        **_BOOSTING,
        "min_samples_leaf": leaf,
        "max_leaf_nodes": leaves,
        "random_state": seed,
    }
    options |= {
        "categorical_features": list(categories) or None,
        "max_features": 1.0 if labels is None else 0.5,
    }
    models = models or [kind(**options, warm_start=True) for _ in targets]
    for model, target in zip(models, targets):
        model.set_params(max_iter=n_iter).fit(X, target, sample_weight=rows.weight)
    return list(models)


def _stages(models: Sequence[Any], X: NDArray, n_functions: int) -> list[NDArray]:
    """Predictions after every tenth iteration."""
    if hasattr(models[0], "classes_"):
        every = models[0].staged_decision_function(X)
        scores = [s.reshape(len(X), -1) for i, s in enumerate(every) if i % 10 == 9]
        return [_all_classes(s, models[0].classes_, n_functions) for s in scores]
    columns = [
        [p for i, p in enumerate(model.staged_predict(X)) if i % 10 == 9] for model in models
    ]
    return [np.stack(stage, axis=1) for stage in zip(*columns)]


def tree_candidate(
    rows: Rows,
    folds: Sequence[Split],
    labels: NDArray | None,
    seed: int,
    further: Labeled | None = None,
    rivals: Sequence[NDArray] = (),
    columns: TreeColumns = PLAIN,
    leaves: int | None = None,
) -> Extra | None:
    """Boosted trees whose number of iterations is chosen on the held-out rows, for those of a fold on the others.

    With `further` rows to learn from the trees are not fitted again; far behind the predictions of `rivals` boosting
    ends early, and where many rows ask for more iterations larger trees compete. `columns` makes what trees see.
    """
    q = rows.Y.shape[1]
    every = Labeled(rows, labels).seen_by(columns)
    given = further
    further = None if further is None else further.seen_by(columns)
    grow = partial(boost, seed=seed, categories=columns.categories, leaves=leaves)
    most = _most_iterations(rows, further, q)
    if most == 0 or (
        labels is not None and any(len(np.unique(labels[train])) < 2 for train, _ in folds)
    ):
        return None
    n_iter = 0
    stages = []
    models: list[Any] = []
    for number, (train, valid) in enumerate(folds):
        known = every.take(train).joined(further)
        held = every.take(valid)
        models = [] if number == 0 else grow(known, n_iter)
        goal = min(
            [held.judge(p[: len(valid)]) for p in rivals] if number == 0 else [], default=np.inf
        )
        loss = np.inf
        while number == 0 and n_iter < most:
            n_iter = min(most, n_iter + _BOOSTING_STEP)
            models = grow(known, n_iter, models=models or None)
            losses = [held.loss(p) for p in _stages(models, held.rows.X, q)]
            before = loss
            loss = min(losses)
            if np.argmin(losses) < 0.7 * len(losses) or loss - goal > _HOPELESS * (before - loss):
                break
        if number == 0 and len(folds) > 1 and loss > _USELESS * goal:
            n_iter = 10  # no use beside the others: only to be named among them
        stages.append(_stages(models, held.rows.X, q))
    predictions = [np.concatenate(stage) for stage in zip(*stages)]
    held = every.take(np.concatenate([valid for _, valid in folds]))
    best = int(np.argmin([held.loss(p) for p in predictions]))
    if further is not None:
        trees = Extra(predictions[-1], partial(_as_trees, models, q, columns))
    else:
        chosen = cross_chosen(predictions, [held.losses(p) for p in predictions], folds)
        trees = Extra(chosen, partial(_finish_trees, every, 10 * (best + 1), grow, columns))
    if leaves or len(folds) > 1 or 10 * (best + 1) < most or len(known.rows) < _MANY_ROWS:
        return trees
    larger = tree_candidate(
        rows, folds, labels, seed, given, [*rivals, trees.predictions], columns, _LARGE_TREES
    )
    return (
        larger
        if larger is not None and held.judge(larger.predictions) < held.judge(trees.predictions)
        else trees
    )


def _most_iterations(rows: Rows, further: Labeled | None, q: int) -> int:
    """A multiple of ten that the work allows; 0 where that is too few."""
    n = len(rows) + (0 if further is None else len(further.rows))
    most = min(_BOOSTING_WORK / (n * q), _BOOSTING_CELLS / (n * q * rows.X.shape[1]))
    return 0 if most < 12 else int(np.clip(most, 60, 400)) // 10 * 10


def _as_trees(models: list, q: int, columns: TreeColumns, total: Total | None) -> Trees:
    return Trees("boosted trees", models, np.zeros(q), np.ones(q), 1.0, None, columns)


def _finish_trees(
    every: Labeled, n_iter: int, grow: Callable, columns: TreeColumns, total: Total | None
) -> Trees:
    return _as_trees(grow(every, n_iter), every.rows.Y.shape[1], columns, total)


def pool_weights(
    predictions: Sequence[NDArray], labels: NDArray, weight: NDArray | None, max_members: int = 4
) -> NDArray:
    """Weights with sum 1 for scores of several models: log-odds, each calibrated, are averaged to the least log-loss.

    The rule is `TABLE_CLASSES`. Members with less than a tenth of the spread of the log-odds are dropped.
    """
    weight = np.ones(len(labels)) if weight is None else weight * (len(labels) / weight.sum())
    calibrations = [calibrate_scores(as_scores(p), labels, weight) for p in predictions]
    logs = np.stack(
        [log_softmax(c.logits(as_scores(p)), axis=1) for c, p in zip(calibrations, predictions)]
    )
    rule = replace(TABLE_CLASSES, max_members=max_members)
    factors = average(logs, labels, weight, rule).weights
    of_scores = factors * [calibration.slope for calibration in calibrations]
    return of_scores / of_scores.sum()


def extra_candidates(
    rows: Rows,
    folds: Sequence[Split],
    learners: Mapping[str, LocalLearner],
    tried: Mapping[str, NDArray],
    *,
    numbers: NDArray,
    labels: NDArray | None,
    n_centers: int,
    members: Sequence[str] = ("wide", "trees", "experts"),
    columns: TreeColumns = PLAIN,
    further: Callable[[], tuple[Rows, NDArray]] | None = None,
) -> dict[str, Extra]:
    """Everything that competes with the local forms and the others that were `tried`, of which there are predictions.

    `numbers` are those of the rows in the table, `labels` the classes of the whole table; `columns` makes what trees
    see; `further` gives trees and experts more rows, and their numbers. Without centers there are no wide machines.
    """
    settings = next(iter(learners.values())).settings
    out: dict[str, Extra] = {}
    of_rows = None if labels is None else labels[numbers]
    if n_centers and "wide" in members:
        options = (settings.linear, of_rows, settings.seed, n_centers)
        wide = [WideLearner(rows, train, valid, *options) for train, valid in folds]
        shared = {form: of.shared for form, of in learners.items()}
        every = np.arange(len(rows))
        out |= wide_candidates(wide, shared, replace(wide[0], train=every))
    more = None
    if further is not None and len(folds) == 1:
        others, places = further()
        more = Labeled(others, None if labels is None else labels[places])
    if len(rows) >= _FEWEST_TREES and "trees" in members:
        rivals = [*tried.values(), *(of.predictions for of in out.values())]
        trees = tree_candidate(rows, folds, of_rows, settings.seed, more, rivals, columns)
        out |= {} if trees is None else {"boosted trees": trees}
    if len(folds) == 1 and n_centers >= _EXPERT_CENTERS and "experts" in members:
        scales = [of.shared[0] for of in learners.values()]
        experts = expert_candidate(
            rows, folds[0], scales, settings.seed, None if more is None else more.rows
        )
        out |= {} if experts is None else {"experts on parts": experts}
    return out
