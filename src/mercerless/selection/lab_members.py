"""What competes with the local forms of LAB from some thousand rows on: wide kernel machines, and boosted trees."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from mercerless._blocks import reduce_rows
from mercerless._memory import row_blocks
from mercerless.selection.calibration import calibrate_scores
from mercerless.selection.folds import Split
from mercerless.selection.lab import FORMS, Expansion, Extra, LocalLearner, Projected, Rows, Total, fixed_columns
from mercerless.selection.scaling import BLOCK_BYTES
from mercerless.solvers.lab import Moments, moments
from mercerless.solvers.lab_wide import norm_penalty, slope_map, slopes, solve_logistic, solve_wide

_FEWEST_TREES = 100
_TRIAL_CENTERS, _TRIAL_ROWS, _TRIAL_HELD = 1000, 3000, 2000  # on which bandwidth and map are chosen
_SLOPE_ROWS = 1500
_RIDGES = np.array([1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
_ROUNDS = 2
_LOGISTIC_FACTORS = (1.0, 0.3, 0.1, 0.03)  # of the ridge of least squares
_LAPLACE_WORK = 2e9  # rows x centers x features
_BOOSTING = {"learning_rate": 0.06, "l2_regularization": 1.0, "early_stopping": False}
_BOOSTING_WORK, _BOOSTING_CELLS = 4e7, 1e9  # rows x classes x iterations at most, and times the features
_BOOSTING_STEP = 50
_SMALLEST_SHARE = 0.1


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
    """`moments` of a block of rows in smaller ones, as many centers need."""
    per_row = 24.0 * (len(options["S"]) + X.shape[1])
    return reduce_rows(partial(moments, **options), Moments.merge, [X, Y, weight], per_row, BLOCK_BYTES)


class Wide(NamedTuple):
    """A kernel with one shared bandwidth per feature, or one for all after a linear map."""

    form: str
    log_bandwidths: NDArray  # (d,) or ()
    projection: NDArray | None = None  # (d, r)

    @property
    def kernel(self) -> Projected:
        widths = np.exp(self.log_bandwidths)
        return Projected(FORMS[self.form](widths if np.ndim(widths) else float(widths)), self.projection)

    def wider(self, factor: float) -> "Wide":
        return self._replace(log_bandwidths=self.log_bandwidths + np.log(factor))


class _Trial(NamedTuple):
    """A kernel with its coefficients on a part of the rows."""

    loss: float
    wide: Wide
    ridge: float
    coef: NDArray


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

    def sums(self, rows: Rows, wide: Wide, S: NDArray) -> Moments:
        """The moments of some rows, block by block."""
        fixed = partial(fixed_columns, linear=self.linear)
        return blocked_moments(rows.X, rows.Y, rows.weight, kernel=wide.kernel, S=S, fixed=fixed)

    def predict(self, X: NDArray, wide: Wide, S: NDArray, coef: NDArray) -> NDArray:
        m = len(S)
        return wide.kernel(X, S) @ coef[:m] + fixed_columns(X, self.linear) @ coef[m:]

    def _few(self, numbers: NDArray, limit: int) -> NDArray:
        order = np.random.RandomState(self.seed).permutation(len(numbers))[:limit]
        return numbers[np.sort(order)]

    def judge(self, numbers: NDArray) -> Judge:
        held = self.rows.take(numbers)
        return Judge(held.Y, held.weight, None if self.labels is None else self.labels[numbers])

    def trial(self, wide: Wide) -> _Trial:
        """The best ridge on few rows and centers."""
        train, valid = self._few(self.train, _TRIAL_ROWS), self._few(self.valid, _TRIAL_HELD)
        rows, held = self.rows.take(train), self.rows.take(valid)
        S, judge = rows.X[:: -(-len(rows) // _TRIAL_CENTERS)], self.judge(valid)
        P = norm_penalty(wide.kernel(S, S), fixed_columns(S[:1], self.linear).shape[1])
        coefs = solve_wide(self.sums(rows, wide, S), P, _RIDGES)
        losses = [judge(self.predict(held.X, wide, S, coef)) for coef in coefs]
        best = int(np.argmin(losses))
        return _Trial(losses[best], wide, float(_RIDGES[best]), coefs[best])

    def search(self, wide: Wide) -> _Trial:
        """Widen or narrow as long as that helps."""
        best = self.trial(wide)
        for factor in (0.5, 2.0):
            moved = False
            while abs(np.mean(best.wide.log_bandwidths - wide.log_bandwidths)) < 2.5:
                other = self.trial(best.wide.wider(factor))
                if other.loss >= best.loss:
                    break
                best, moved = other, True
            if moved:
                break
        return best

    def turned(self, best: _Trial) -> _Trial:
        """Rounds of a linear map from the slopes of the function, each kept only where the loss falls."""
        for _ in range(_ROUNDS):
            other = self.trial(self._mapped(best))
            if other.loss >= best.loss:
                break
            best = other
        return best

    def _mapped(self, trial: _Trial) -> Wide:
        train = self._few(self.train, _TRIAL_ROWS)
        S = self.rows.X[train][:: -(-len(train) // _TRIAL_CENTERS)].astype(np.float64)
        X = self.rows.X[self._few(self.train, _SLOPE_ROWS)].astype(np.float64)
        A = np.eye(X.shape[1]) if trial.wide.projection is None else trial.wide.projection
        A = A * np.exp(-trial.wide.log_bandwidths)
        Z, C, m = X @ A, S @ A, len(S)
        K = Projected(FORMS["exponential"](1.0))(Z, C)
        gradients = slopes(Z, C, K, trial.coef[:m]) @ A.T
        if self.linear:
            gradients = gradients + trial.coef[m + 1 :].T[:, None] / np.sqrt(X.shape[1])
        B = slope_map(gradients)
        pairs = np.random.RandomState(self.seed).randint(len(X), size=(2, 1000))
        differences = X[pairs[0]] - X[pairs[1]]
        old, new = (np.median(np.linalg.norm(differences @ M, axis=1)) for M in (A, B))
        return Wide("exponential", np.array(0.0), B * (old / new if new > 0 else 1.0))

    def candidate(self, best: _Trial) -> tuple[Extra, Expansion, bool]:
        """All training rows and as many centers as are worth it, with three ridges about the chosen one.

        With it the expansion without coefficients, and whether they minimize the log-loss.
        """
        wide, support = best.wide, self._few(self.train, self.n_centers)
        S, held, judge = self.rows.X[support], self.rows.take(self.valid), self.judge(self.valid)
        sums = self.sums(self.rows.take(self.train), wide, S)
        P = norm_penalty(wide.kernel(S, S), fixed_columns(S[:1], self.linear).shape[1])
        ridges = best.ridge * np.array([0.3, 1.0, 3.0])
        predictions = [self.predict(held.X, wide, S, coef) for coef in solve_wide(sums, P, ridges)]
        losses = [judge(p) for p in predictions]
        choice = int(np.argmin(losses))
        model = Expansion(wide.form, support, wide.log_bandwidths, float(np.log(ridges[choice])), None)
        model = model._replace(projection=wide.projection)
        whole = sums.merge(self.sums(held, wide, S))
        ordinary = Extra(predictions[choice], partial(self._finish, model, whole, P))
        if self.labels is None:
            return ordinary, model, False
        other, other_model, loss = self._logistic(model, sums.gram, whole, P)
        return (other, other_model, True) if loss < losses[choice] else (ordinary, model, False)

    def refit(self, model: Expansion, logistic: bool, total: Total | None) -> Expansion:
        """A machine of the same kernel and ridge on all training rows."""
        model = model._replace(support=self._few(self.train, self.n_centers))
        wide, S = Wide(model.form, model.log_bandwidths, model.projection), self.rows.X[model.support]
        P = norm_penalty(wide.kernel(S, S), fixed_columns(S[:1], self.linear).shape[1])
        sums = self.sums(self.rows, wide, S)
        return self._finish_logistic(model, sums, P, None, total) if logistic else self._finish(model, sums, P, total)

    def _columns(self, numbers: NDArray, model: Expansion) -> NDArray:
        """The columns of some rows, in single precision."""
        X, S = self.rows.X[numbers], self.rows.X[model.support]
        out = np.empty((len(X), len(S) + fixed_columns(S[:1], self.linear).shape[1]), dtype=np.float32)
        for rows in row_blocks(len(X), 24.0 * len(S), BLOCK_BYTES):
            out[rows, : len(S)] = model.kernel(X[rows], S)
            out[rows, len(S) :] = fixed_columns(X[rows], self.linear)
        return out

    def _logistic(self, model: Expansion, gram: NDArray, whole: Moments, P: NDArray) -> tuple[Extra, Expansion, float]:
        """Coefficients of least log-loss instead of squared error, from a large ridge to smaller ones."""
        assert self.labels is not None
        q, loss, ridge = self.rows.Y.shape[1], np.inf, 0.0
        best: tuple[float, float, NDArray, NDArray] = (loss, ridge, np.empty(0), np.empty(0))
        Phi, valid, judge = self._columns(self.train, model), self._columns(self.valid, model), self.judge(self.valid)
        labels, weight, coef = self.labels[self.train], self.rows.take(self.train).weight, None
        for factor in _LOGISTIC_FACTORS:
            ridge = float(factor * np.exp(model.log_ridge))
            coef = solve_logistic(Phi, labels, weight, P, ridge, gram, q, coef).coef
            predictions = valid @ coef
            loss = judge(predictions)
            if loss < best[0]:
                best = (loss, ridge, predictions, coef)
            if loss > 1.02 * best[0]:
                break
        loss, ridge, predictions, coef = best
        model = model._replace(log_ridge=float(np.log(ridge)))
        finish = partial(self._finish_logistic, model, whole, P, coef)
        return Extra(predictions, finish), model, loss

    def _finish_logistic(
        self, model: Expansion, whole: Moments, P: NDArray, coef: NDArray | None, total: Total | None
    ) -> Expansion:
        """From the held-out rows too; of larger data the rows on which bandwidths are learned are enough."""
        every, q = np.arange(len(self.rows)), self.rows.Y.shape[1]
        assert self.labels is not None
        Phi, ridge = self._columns(every, model), float(np.exp(model.log_ridge))
        coef = solve_logistic(Phi, self.labels, self.rows.weight, P, ridge, whole.gram, q, coef).coef
        return self._with(model, coef)

    def _finish(self, model: Expansion, sums: Moments, P: NDArray, total: Total | None) -> Expansion:
        """The coefficients from all rows."""
        if total is not None:
            S = self.rows.X[model.support]
            fixed = partial(fixed_columns, linear=self.linear)
            sums = total(partial(blocked_moments, kernel=model.kernel, S=S, fixed=fixed))
        return self._with(model, solve_wide(sums, P, [float(np.exp(model.log_ridge))])[0])

    def _with(self, model: Expansion, coef: NDArray) -> Expansion:
        m, d = len(model.support), self.rows.X.shape[1]
        linear = np.zeros((1 + d, coef.shape[1]))
        linear[: len(coef) - m] = coef[m:]
        linear[1:] /= np.sqrt(d)
        return model._replace(coef=coef[:m], linear=linear)


def wide_candidates(
    learners: Sequence[WideLearner], shared: Mapping[str, Sequence[NDArray]], everything: WideLearner
) -> dict[str, Extra]:
    """A Laplace machine with a bandwidth per feature, and an exponential one with a learned map of the features.

    One learner for every fold; `shared` has the log bandwidths of the local forms in every fold. Where the Laplace form
    would be slow, as for images, a Gaussian with one bandwidth takes its place. With several folds the kernel of the
    first is fitted to all rows.
    """
    n, d = len(learners[0].train), learners[0].rows.X.shape[1]
    starts = shared.get("laplace", next(iter(shared.values())))
    if "laplace" in shared and n * min(n, everything.n_centers) * d <= _LAPLACE_WORK:
        first = "laplace, many centers"
        trials = [learner.search(Wide("laplace", start)) for learner, start in zip(learners, starts)]
    else:
        first = "gaussian, many centers"
        trials = [learner.search(Wide("gaussian", np.array(0.5 * np.log(d)))) for learner in learners]
    turned = [
        learner.turned(learner.search(Wide("exponential", start - 0.5 * np.log(d))))
        for learner, start in zip(learners, starts)
    ]
    out = {}
    for name, found in ((first, trials), ("exponential, learned map", turned)):
        parts = [learner.candidate(trial) for learner, trial in zip(learners, found)]
        extra, model, logistic = parts[0]
        if len(parts) > 1:
            predictions = np.concatenate([part[0].predictions for part in parts])
            extra = Extra(predictions, partial(everything.refit, model, logistic))
        out[name] = extra
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
    """

    name: str
    models: list
    center: NDArray
    scale: NDArray
    weight: float
    scaling: Any

    def __call__(self, X: NDArray) -> NDArray:
        """One column per function, or per class: log-odds."""
        Z = X if self.scaling is None else self.scaling(X, X.dtype)
        return raw_predictions(self.models, Z, len(self.center)) * self.scale + self.center

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
        return Labeled(self.rows.take(numbers), None if self.labels is None else self.labels[numbers])

    def joined(self, other: "Labeled | None") -> "Labeled":
        """With the rows of another."""
        if other is None:
            return self
        a, b = self.rows, other.rows
        weight = None if a.weight is None or b.weight is None else np.concatenate([a.weight, b.weight])
        labels = None if self.labels is None or other.labels is None else np.concatenate([self.labels, other.labels])
        return Labeled(Rows(np.vstack([a.X, b.X]), np.vstack([a.Y, b.Y]), weight), labels)

    def judge(self, predictions: NDArray) -> float:
        return Judge(self.rows.Y, self.rows.weight, self.labels)(predictions)


def boost(given: Labeled, n_iter: int, seed: int, models: Sequence[Any] | None = None) -> list:
    """Boosted trees with so many iterations, continued where models are given."""
    rows, labels = given
    kind = HistGradientBoostingRegressor if labels is None else HistGradientBoostingClassifier
    targets = rows.Y.T if labels is None else [labels]
    leaf = 20 if len(rows) >= 2000 else 10
    models = models or [kind(**_BOOSTING, min_samples_leaf=leaf, random_state=seed, warm_start=True) for _ in targets]
    for model, target in zip(models, targets):
        model.set_params(max_iter=n_iter).fit(rows.X, target, sample_weight=rows.weight)
    return list(models)


def _stages(models: Sequence[Any], X: NDArray, n_functions: int) -> list[NDArray]:
    """Predictions after every tenth iteration."""
    if hasattr(models[0], "classes_"):
        every = models[0].staged_decision_function(X)
        scores = [s.reshape(len(X), -1) for i, s in enumerate(every) if i % 10 == 9]
        return [_all_classes(s, models[0].classes_, n_functions) for s in scores]
    columns = [[p for i, p in enumerate(model.staged_predict(X)) if i % 10 == 9] for model in models]
    return [np.stack(stage, axis=1) for stage in zip(*columns)]


def tree_candidate(
    rows: Rows, folds: Sequence[Split], labels: NDArray | None, seed: int, further: Labeled | None = None
) -> Extra | None:
    """Boosted trees whose number of iterations is chosen on the held-out rows.

    `further` are more rows to learn from, beside those of one hold-out: the trees are then not fitted again. None where
    a fold has one class, or many features and classes would take too long.
    """
    q, every = rows.Y.shape[1], Labeled(rows, labels)
    most = _most_iterations(rows, further, q)
    if most == 0 or (labels is not None and any(len(np.unique(labels[train])) < 2 for train, _ in folds)):
        return None
    n_iter, stages = 0, []
    models: list[Any] = []
    for number, (train, valid) in enumerate(folds):
        part, held = every.take(train).joined(further), every.take(valid)
        models = [] if number == 0 else boost(part, n_iter, seed)
        while number == 0 and n_iter < most:
            n_iter = min(most, n_iter + _BOOSTING_STEP)
            models = boost(part, n_iter, seed, models or None)
            losses = [held.judge(p) for p in _stages(models, held.rows.X, q)]
            if np.argmin(losses) < 0.7 * len(losses):
                break
        stages.append(_stages(models, held.rows.X, q))
    predictions = [np.concatenate(stage) for stage in zip(*stages)]
    if further is not None:
        return Extra(predictions[-1], partial(_as_trees, models, q))
    judge = every.take(np.concatenate([valid for _, valid in folds])).judge
    best = int(np.argmin([judge(p) for p in predictions]))
    return Extra(predictions[best], partial(_finish_trees, every, 10 * (best + 1), seed))


def _most_iterations(rows: Rows, further: Labeled | None, q: int) -> int:
    """A multiple of ten that the work allows; 0 where that is too few."""
    n = len(rows) + (0 if further is None else len(further.rows))
    most = min(_BOOSTING_WORK / (n * q), _BOOSTING_CELLS / (n * q * rows.X.shape[1]))
    return 0 if most < 12 else int(np.clip(most, 60, 600)) // 10 * 10


def _as_trees(models: list, q: int, total: Total | None) -> Trees:
    return Trees("boosted trees", models, np.zeros(q), np.ones(q), 1.0, None)


def _finish_trees(every: Labeled, n_iter: int, seed: int, total: Total | None) -> Trees:
    return _as_trees(boost(every, n_iter, seed), every.rows.Y.shape[1], total)


def pool_weights(
    predictions: Sequence[NDArray], labels: NDArray, weight: NDArray | None, max_parts: int = 4
) -> NDArray:
    """Weights with sum 1 for scores of several models: log-odds, each calibrated, are averaged to the least log-loss.

    ``min over a >= 0 of sum_i w_i logloss_i(sum_c a_c log p_c) + 2 |a - 1/C|^2``, convex. Parts with less
    than a tenth of the spread of the log-odds are dropped and the rest solved again, until at most `max_parts` remain.
    """
    weight = np.ones(len(labels)) if weight is None else weight * (len(labels) / weight.sum())
    calibrations = [calibrate_scores(as_scores(p), labels, weight) for p in predictions]
    logs = np.stack([log_softmax(c.logits(as_scores(p)), axis=1) for c, p in zip(calibrations, predictions)])
    spread = np.maximum(np.std(logs - logs.mean(axis=2, keepdims=True), axis=(1, 2)), 1e-12)
    parts = list(range(len(logs)))
    while True:
        a = _pool(logs[parts], labels, weight)
        share = a * spread[parts] / (a @ spread[parts])
        if len(parts) == 1 or (share.min() >= _SMALLEST_SHARE and len(parts) <= max_parts):
            break
        del parts[int(np.argmin(share))]
    out = np.zeros(len(logs))
    out[parts] = a * [calibrations[c].slope for c in parts]
    return out / out.sum()


def _pool(logs: NDArray, labels: NDArray, weight: NDArray) -> NDArray:
    """The factors of `pool_weights` for logarithms of probabilities (n_parts, n, n_classes)."""
    C, rows = len(logs), np.arange(len(labels))

    def value(a: NDArray) -> tuple[float, NDArray]:
        logits = np.tensordot(a, logs, axes=1)
        P = softmax(logits, axis=1)
        loss = -weight @ log_softmax(logits, axis=1)[rows, labels]
        gradient = np.einsum("i,ik,cik->c", weight, P, logs) - logs[:, rows, labels] @ weight
        return float(loss + 2 * np.sum((a - 1 / C) ** 2)), gradient + 4 * (a - 1 / C)

    start = np.full(C, 1 / C)
    a = minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * C).x
    return a if a.sum() > 0 else start


def extra_candidates(
    rows: Rows,
    folds: Sequence[Split],
    learners: Mapping[str, LocalLearner],
    *,
    numbers: NDArray,
    labels: NDArray | None,
    n_centers: int,
    further: Callable[[], tuple[Rows, NDArray]] | None = None,
) -> dict[str, Extra]:
    """Everything that competes with the local forms.

    `numbers` are those of the rows in the table, `labels` the classes of the whole table; `further` gives more rows to
    learn from, and their numbers.
    Without centers there are no wide machines: up to 1000 rows all rows are centers of another candidate anyway.
    """
    settings = next(iter(learners.values())).settings
    out: dict[str, Extra] = {}
    of_rows = None if labels is None else labels[numbers]
    if n_centers:
        options = (settings.linear, of_rows, settings.seed, n_centers)
        wide = [WideLearner(rows, train, valid, *options) for train, valid in folds]
        shared = {form: of.shared for form, of in learners.items()}
        every = np.arange(len(rows))
        out |= wide_candidates(wide, shared, replace(wide[0], train=every))
    if len(rows) >= _FEWEST_TREES:
        more = None
        if further is not None and len(folds) == 1:
            others, places = further()
            more = Labeled(others, None if labels is None else labels[places])
        trees = tree_candidate(rows, folds, of_rows, settings.seed, more)
        out |= {} if trees is None else {"boosted trees": trees}
    return out
