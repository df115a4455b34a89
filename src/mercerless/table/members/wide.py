"""Kernel machines on many centers, with one bandwidth per feature or a learned linear map of the features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import reduce_rows
from mercerless.core.memory import row_blocks
from mercerless.core.scaling import BLOCK_BYTES
from mercerless.lab.model import FORMS, Expansion, Projected, Rows, Total, fixed_columns
from mercerless.lab.solver import Moments, moments
from mercerless.table.members.candidate import Candidate, Contest
from mercerless.table.members.wide_solver import (
    norm_penalty,
    slope_map,
    slopes,
    solve_logistic,
    solve_wide,
)
from mercerless.table.weighing import Labeled


@dataclass(frozen=True)
class WideLimits:
    """Rows and centers of the search, and what more of them must gain."""

    #: Centers with which bandwidth and map are chosen ...
    trial_centers: int = 1000
    #: ... on so many rows ...
    trial_rows: int = 3000
    #: ... and judged on so many held-out ones.
    trial_held: int = 2000
    #: Rows whose slopes make a map.
    slope_rows: int = 1500
    #: Maps in turn.
    rounds: int = 2
    #: From so many centers on, twice as many must be worth it ...
    least_centers: int = 600
    #: ... by lowering the loss to this share ...
    worth: float = 0.99
    #: ... and are not tried if the loss is so many times that of the best of the others.
    hopeless: float = 1.5
    #: Rows per center that determine the coefficients.
    rows_per_center: int = 40
    #: From this ridge on, sums of products in single precision are enough.
    single_ridge: float = 0.03
    #: Rows x centers x features above which there is no Laplace machine.
    laplace_work: float = 2e9
    #: With more features the evidence learns their bandwidths badly.
    many_features: int = 50
    #: Ridges that compete.
    ridges: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    #: Factors of the ridge of least squares that compete for the least log-loss.
    logistic_factors: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03)


LIMITS = WideLimits()


@dataclass(frozen=True)
class WideMachines:
    """Machines on up to so many centers, which start from the bandwidths of the local ones."""

    n_centers: int

    def candidates(self, contest: Contest, tried: Sequence[Candidate]) -> list[Candidate]:
        if not contest.folds or not self.n_centers:
            return []
        learners = [
            WideLearner(
                contest.labeled,
                train,
                valid,
                linear=contest.settings.linear,
                seed=contest.settings.seed,
                n_centers=self.n_centers,
                total=contest.total,
            )
            for train, valid in contest.folds
        ]
        everything = replace(learners[0], train=np.arange(len(contest.rows)))
        shared = {candidate.name: candidate.scales for candidate in tried if candidate.scales}
        valid = contest.folds[0][1]
        judge = learners[0].judge(valid)
        goal = min(judge(candidate.out_of_fold[: len(valid)]) for candidate in tried)
        return wide_candidates(learners, shared, everything, goal)


def blocked_moments(X: NDArray, Y: NDArray, weight: NDArray, **options: Any) -> Moments:
    """`moments` of a block of rows in smaller ones, as many centers need; no smaller than a third of the sums."""
    per_row = 24.0 * (len(options["S"]) + X.shape[1])
    budget = max(BLOCK_BYTES, per_row * len(options["S"]) / 3)
    return reduce_rows(partial(moments, **options), Moments.add, [X, Y, weight], per_row, budget)


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

    known: Labeled
    train: NDArray
    valid: NDArray
    linear: bool
    seed: int = 0
    n_centers: int = 3000
    total: Total | None = None  # sums moments over all rows of the table, if `rows` are a part

    @property
    def rows(self) -> Rows:
        return self.known.rows

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

    def judge(self, numbers: NDArray) -> Callable[[NDArray], float]:
        """The function that gives the loss of predictions for some rows."""
        return self.known.take(numbers).judge

    def trial(self, wide: Wide, ridges: Sequence[float] = LIMITS.ridges) -> _Trial:
        """The best ridge on few rows and centers."""
        train = self._few(self.train, LIMITS.trial_rows)
        valid = self._few(self.valid, LIMITS.trial_held)
        rows = self.rows.take(train)
        S = self.rows.X[train[: LIMITS.trial_centers]]
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
        """Rounds of a linear map from the slopes of the function, each kept only if the loss falls."""
        for _ in range(LIMITS.rounds):
            other = self.trial(self._mapped(best), _near(best.ridge))
            if other.loss >= best.loss:
                break
            best = other
        return best

    def _mapped(self, trial: _Trial) -> Wide:
        X = self.rows.X[self._few(self.train, LIMITS.slope_rows)].astype(np.float64)
        S = self.rows.X[self._few(self.train, LIMITS.trial_centers)].astype(np.float64)
        A = trial.wide.projection
        if A is None:
            A = np.eye(X.shape[1])
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
        old = np.median(np.linalg.norm(differences @ A, axis=1))
        new = np.median(np.linalg.norm(differences @ B, axis=1))
        if new > 0:  # the same median distance as before
            B = B * (old / new)
        return Wide("exponential", np.array(0.0), B)

    def candidate(self, best: _Trial, goal: float = np.inf) -> _Machine:
        """All training rows, and as many centers as are worth it; few if the loss is far above the `goal`."""
        most = min(self.n_centers, len(self.train))
        support = self._few(self.train, most)
        quarter = -(-most // 4)
        half = -(-most // 2)
        least = min(most, LIMITS.least_centers)
        size = next(m for m in (quarter, half, most) if m >= least)
        machine = self._machine(best, support[:size])
        while machine.loss <= LIMITS.hopeless * goal and len(machine.model.support) < most:
            more = self._machine(best, support[: 2 * len(machine.model.support)], machine)
            if more.loss > LIMITS.worth * machine.loss:
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
        dtype = np.float32 if ridges.min() >= LIMITS.single_ridge else np.float64
        sums = self.sums(self.rows.take(self.train), wide, S, dtype)
        P = self.penalty(wide, S)
        model = Expansion(
            wide.form, support, wide.log_bandwidths, 0.0, None, projection=wide.projection
        )
        if like is not None and like.logistic:
            n_centers = len(like.model.support)
            start = None
            if len(support) > n_centers:  # new centers start from zero
                new = [n_centers] * (len(support) - n_centers)
                start = np.insert(like.coef, new, 0.0, axis=0)
            return self._logistic(model, sums, P, ridges, start)
        coefs = solve_wide(sums, P, ridges)
        predictions = self.predict(self.rows.X[self.valid], wide, S, coefs)
        losses = [judge(p) for p in predictions]
        k = int(np.argmin(losses))
        model = model._replace(log_ridge=float(np.log(ridges[k])))
        machine = _Machine(losses[k], predictions[k], model, False, coefs[k], sums, P)
        if like is not None or self.known.labels is None:
            return machine
        other = self._logistic(model, sums, P, ridges[k] * np.array(LIMITS.logistic_factors))
        return other if other.loss < machine.loss else machine

    def finish(self, machine: _Machine) -> Expansion:
        """The machine on all rows, the held-out ones too."""
        model = machine.model
        sums = machine.sums
        wide = Wide(model.form, model.log_bandwidths, model.projection)
        S = self.rows.X[model.support]
        if self.total is None or machine.logistic:
            sums = sums.merge(self.sums(self.rows.take(self.valid), wide, S))
        return self._finish(machine._replace(sums=sums))

    def refit(self, machine: _Machine, n: int) -> Expansion:
        """A machine of the same kernel and ridge on all training rows, of which the other had n."""
        size = -(-len(machine.model.support) * len(self.train) // n)
        model = machine.model._replace(support=self._few(self.train, size))
        wide = Wide(model.form, model.log_bandwidths, model.projection)
        S = self.rows.X[model.support]
        machine = machine._replace(
            model=model, sums=self.sums(self.rows, wide, S), P=self.penalty(wide, S)
        )
        return self._finish(machine._replace(coef=np.zeros((0, 0))))

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
        q = self.rows.Y.shape[1]
        best = None
        Phi = self._columns(self.train, model)
        valid = self._columns(self.valid, model)
        judge = self.judge(self.valid)
        known = self.known.take(self.train)
        shares = known.class_shares
        weight = known.rows.weight
        for ridge in ridges:
            coef = solve_logistic(Phi, shares, weight, P, float(ridge), sums.gram, q, coef).coef
            predictions = valid @ coef
            loss = judge(predictions)
            if best is None or loss < best.loss:
                of_ridge = model._replace(log_ridge=float(np.log(ridge)))
                best = _Machine(loss, predictions, of_ridge, True, coef, sums, P)
            if loss > 1.02 * best.loss:
                break
        assert best is not None
        return best

    def _finish(self, machine: _Machine) -> Expansion:
        """The coefficients; for the log-loss the rows on which bandwidths are learned are enough."""
        model = machine.model
        ridge = float(np.exp(machine.model.log_ridge))
        if machine.logistic:
            Phi = self._columns(np.arange(len(self.rows)), model)
            start = machine.coef if machine.coef.size else None
            weight = self.rows.weight
            q = self.rows.Y.shape[1]
            shares = self.known.class_shares
            solution = solve_logistic(
                Phi, shares, weight, machine.P, ridge, machine.sums.gram, q, start
            )
            return self._with(model._replace(certificate=solution.certificate), solution.coef)
        sums = machine.sums
        if self.total is not None:
            dtype = np.float32 if ridge >= LIMITS.single_ridge else np.float64
            options = {
                "S": self.rows.X[model.support],
                "fixed": partial(fixed_columns, linear=self.linear),
            }
            limit = LIMITS.rows_per_center * len(model.support)
            sums = self.total(
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


def _near(ridge: float) -> Sequence[float]:
    """The ridges about one."""
    ridges = LIMITS.ridges
    place = int(np.argmin(np.abs(np.log(np.array(ridges) / ridge))))
    return ridges[max(0, place - 1) : place + 2]


def wide_candidates(
    learners: Sequence[WideLearner],
    shared: Mapping[str, Sequence[NDArray]],
    everything: WideLearner,
    goal: float = np.inf,
) -> list[Candidate]:
    """A Laplace machine with a bandwidth per feature, and an exponential one with a learned map of the features.

    `shared` has the log bandwidths of the local forms in every fold. For many features a Gaussian with one bandwidth
    competes as well. Factor, ridge and centers of the first fold serve all, and its kernel is fitted to all rows. A
    machine whose loss on the first fold is far above the `goal`, the least of other members, keeps few centers.
    """
    n = len(learners[0].train)
    d = learners[0].rows.X.shape[1]
    starts = shared.get("laplace", next(iter(shared.values())))
    kernels_of: dict[str, list[Wide]] = {}
    if "laplace" in shared and n * min(n, everything.n_centers) * d <= LIMITS.laplace_work:
        kernels_of["laplace, many centers"] = [Wide("laplace", start) for start in starts]
    if d > LIMITS.many_features or not kernels_of:
        one_bandwidth = Wide("gaussian", np.array(0.5 * np.log(d)))
        kernels_of["gaussian, many centers"] = [one_bandwidth] * len(starts)
    kernels_of["exponential, learned map"] = [
        Wide("exponential", start - 0.5 * np.log(d)) for start in starts
    ]
    candidates = []
    for name, kernels in kernels_of.items():
        turn = kernels[0].form == "exponential"
        trial = learners[0].search(kernels[0])
        factor = float(np.exp(np.mean(trial.wide.log_bandwidths - kernels[0].log_bandwidths)))
        near = _near(trial.ridge)
        if turn:
            trial = learners[0].turned(trial)
        machine = learners[0].candidate(trial, goal)
        goal = min(goal, machine.loss)
        predictions = [machine.predictions]
        for learner, kernel in zip(learners[1:], kernels[1:]):
            trial = learner.trial(kernel.wider(factor), near)
            if turn:
                trial = learner.turned(trial)
            predictions.append(learner.again(trial, machine).predictions)
        refit = partial(everything.refit, machine, n)
        if len(learners) == 1:
            refit = partial(learners[0].finish, machine)
        candidates.append(Candidate(name, np.concatenate(predictions), refit))
    return candidates
