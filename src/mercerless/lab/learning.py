"""Learning the bandwidths of a local model: shared by all centers first, then one vector per center."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.descent import Report
from mercerless.core.folds import Split, some_rows
from mercerless.lab.model import FORMS, Learned, Rows
from mercerless.lab.optimizers import SGD, learn_in_batches
from mercerless.lab.solver import (
    LocalRegression,
    Moments,
    State,
    descend,
    evidence,
    initial_state,
    interpolation,
    moments,
    solve_coefficients,
)
from mercerless.lab.support import Support, grow, select_support

# sums a function of X, Y and weight over blocks of all rows
Total = Callable[[Callable[..., Moments]], Moments]


@dataclass(frozen=True)
class SearchLimits:
    """Starts, checkpoints and stopping rules of descents."""

    #: Iterations of the local bandwidths after which validation judges.
    checkpoints: tuple[int, ...] = (0, 5, 10, 20, 40, 80, 150)
    #: Ridges and bandwidths from which the search starts, the latter relative to the typical distance.
    ridges: tuple[float, ...] = tuple(np.logspace(-7, 0.5, 16))
    widths: tuple[float, ...] = tuple(2.0 ** np.arange(-4, 6))
    #: Iterations of the shared bandwidths, and rows that are enough for them.
    shared_iterations: int = 60
    shared_rows: int = 2000
    #: Two checkpoints (from `late` on one) must reach this share of the error for more iterations.
    stalled: float = 0.998
    late: int = 80
    #: No descent is given up before so many iterations.
    fewest_iterations: int = 10
    #: The ridge where it is not learned.
    ridge: float = 1e-5


LIMITS = SearchLimits()


class Checkpoint(NamedTuple):
    """A state of a descent, judged on held-out rows."""

    state: State
    support: NDArray
    error: float
    predictions: NDArray


@dataclass
class Watch:
    """Reports every iteration, judges some on held-out rows, and ends a descent that no longer gains there."""

    report: Report
    held_out: Rows | None = None
    checkpoints: Sequence[int] = ()
    limit: int | None = None  # the largest number of judgments
    kept: list[Checkpoint] = field(default_factory=list)

    def __call__(
        self, stage: str, problem: LocalRegression, support: NDArray, state: State
    ) -> bool:
        """True ends the descent."""
        info = {"stage": stage, "iteration": state.iteration, "value": state.value}
        stops = self.report(info) if state.iteration else False
        if state.iteration not in self.checkpoints:
            return stops
        self.judge(problem, support, state)
        return stops or self._is_useless(state.iteration)

    def judge(self, problem: LocalRegression, support: NDArray, state: State) -> None:
        """Keep the state and its error on the held-out rows, unless it was judged already."""
        if self.held_out is None or (
            self.kept and self.kept[-1].state.iteration == state.iteration
        ):
            return
        P = problem.predict(state, self.held_out.X)
        squares = np.sum((P - self.held_out.Y) ** 2, axis=1)
        error = float(np.average(squares, weights=self.held_out.weight))
        self.kept.append(Checkpoint(state, support, error, P))

    def _is_useless(self, iteration: int) -> bool:
        if self.held_out is None:
            return False
        if self.limit is not None and len(self.kept) >= self.limit:
            return True
        if iteration < LIMITS.fewest_iterations:
            return False
        errors = [checkpoint.error for checkpoint in self.kept]
        recent = 1 if iteration >= LIMITS.late else 2
        return min(errors[-recent:]) > LIMITS.stalled * min(errors[:-recent], default=np.inf)


@dataclass(frozen=True)
class LocalLearner:
    """Learns support, bandwidths and coefficients on given rows."""

    form: str
    objective: str  # "evidence" or "interpolation"
    ridge: float | None
    max_iter: int
    support: Support
    n_support: int
    n_varying: int  # features that are not constant: the others change nothing
    linear: bool  # whether the features enter linearly as well
    optimizers: Sequence[SGD]
    seed: int
    report: Report

    @property
    def learns_ridge(self) -> bool:
        """Whether the evidence determines the ridge."""
        return self.objective == "evidence" and self.ridge is None

    @property
    def grows(self) -> bool:
        """Whether rows with large errors join the support."""
        return self.support.max_error is not None

    def fixed(self, X: NDArray) -> NDArray:
        """The columns beside those of the kernel, for which interpolation has no room."""
        if self.objective == "interpolation":
            return np.zeros((len(X), 0))
        return self._linear_columns(X)

    def _linear_columns(self, X: NDArray) -> NDArray:
        """Ones and, if `linear`, the features divided by the root of their number, in float64."""
        ones = np.ones((len(X), 1))
        return np.hstack([ones, X / np.sqrt(self.n_varying)]) if self.linear else ones

    def problem(self, rows: Rows, support: NDArray) -> LocalRegression:
        """The problem of the local stage."""
        objective: Any = evidence
        if self.objective == "interpolation":
            objective = partial(interpolation, support=support)
        S = rows.X[support]
        kernel = FORMS[self.form]
        return LocalRegression(kernel, objective, rows.X, S, rows.Y, self.fixed, rows.weight)

    def shared(self, rows: Rows, support: NDArray) -> State:
        """One bandwidth per feature for all centers, by the evidence: the start of the local stage.

        At most 2000 rows, or 4 per center, decide: these are few numbers. The descent ends when five iterations
        together gain less than 0.025 % of the error, or a quarter of a unit of log evidence.
        """
        S = rows.X[support]
        d = self.n_varying
        rows = rows.take(some_rows(rows.n, max(LIMITS.shared_rows, 4 * len(support)), self.seed))
        kernel = FORMS[self.form]
        fixed = self._linear_columns
        problem = LocalRegression(kernel, evidence, rows.X, S, rows.Y, fixed, rows.weight)
        first = rows.take(slice(LIMITS.shared_rows))
        smaller = replace(problem, X=first.X, Y=first.Y, weight=first.weight)
        typical = d if self.form == "laplace" else np.sqrt(d)
        widths = typical * np.array(LIMITS.widths)
        _, log_width, log_ridge = initial_state(smaller, widths, LIMITS.ridges)
        return descend(
            problem,
            np.full(rows.X.shape[1], log_width),
            log_ridge,
            pull=1e-3 / d,
            max_iter=LIMITS.shared_iterations,
            tol=max(5e-5, 0.1 / rows.n),
            watch=partial(Watch(self.report), "shared bandwidths", problem, support),
        ).end

    def learn(self, rows: Rows, watch: Watch | None = None) -> Learned:
        """Shared bandwidths, one vector per center, and on request more centers, until growth ends."""
        watch = watch or Watch(self.report)
        support = select_support(rows.X, rows.Y, self.n_support, self.support.selection, self.seed)
        if self.optimizers:
            return learn_in_batches(
                partial(self.problem, rows),
                self.form,
                support,
                self.optimizers,
                partial(grow, settings=self.support, n_start=self.n_support),
                self.ridge or LIMITS.ridge,
                np.random.RandomState(self.seed),
                self.report,
            )
        shared = self.shared(rows, support)
        log_ridge = (
            shared.log_ridge if self.learns_ridge else float(np.log(self.ridge or LIMITS.ridge))
        )
        widths = np.tile(shared.log_bandwidths, (len(support), 1))
        state = State(0, shared.value, widths, log_ridge)
        problem = self.problem(rows, support)
        if self.max_iter == 0 or watch("local bandwidths", problem, support, state):
            return Learned(support, widths, log_ridge, np.zeros(0), [], 1.0)
        losses = []
        growth = []
        while True:
            path = descend(
                problem,
                state.log_bandwidths,
                state.log_ridge,
                anchor=shared.log_bandwidths,
                pull=1 / (9 * rows.n),
                learn_ridge=self.learns_ridge,
                max_iter=max(5, self.max_iter // 5) if self.grows else self.max_iter,
                watch=partial(watch, "local bandwidths", problem, support),
            )
            state = path.end
            losses.append(path.values)
            if not self.grows:
                break
            new, error = grow(problem, state, support, self.support, self.n_support)
            growth.append((len(support), error))
            if len(new) == 0:
                break
            start = np.tile(shared.log_bandwidths, (len(new), 1))
            state = state._replace(log_bandwidths=np.vstack([state.log_bandwidths, start]))
            support = np.concatenate([support, new])
            problem = self.problem(rows, support)
        values = np.concatenate(losses)
        watch.judge(problem, support, state._replace(iteration=len(values) - 1))
        return Learned(
            support, state.log_bandwidths, state.log_ridge, values, growth, state.certificate
        )

    def validate(self, rows: Rows, folds: Sequence[Split]) -> Validated:
        """Choose the number of iterations on held-out rows.

        The predictions of a fold are those after the iterations that the other folds choose.
        """
        # growth has its own rule when to stop
        checkpoints = () if self.grows else LIMITS.checkpoints
        watches: list[Watch] = []
        for train, test in folds:
            limit = len(watches[0].kept) if watches else None
            watch = Watch(self.report, rows.take(test), checkpoints, limit)
            share = 1.0 if len(folds) == 1 else len(train) / rows.n
            n_support = min(max(1, round(share * self.n_support)), len(train))
            learned = replace(self, n_support=n_support).learn(rows.take(train), watch)
            watches.append(watch)
        kept = list(zip(*(watch.kept for watch in watches)))  # the checkpoints that all folds have
        errors = np.array([[checkpoint.error for checkpoint in each] for each in kept])
        sizes = np.array([len(test) for _, test in folds], dtype=float)
        best = int(np.argmin(errors @ sizes))
        predictions = []
        for fold in range(len(folds)):
            others = sizes * (np.arange(len(folds)) != fold) if len(folds) > 1 else sizes
            predictions.append(kept[int(np.argmin(errors @ others))][fold].predictions)
        chosen = kept[best][0]
        iterations = [each[0].state.iteration for each in kept]
        if len(folds) == 1 and not self.grows:
            # the bandwidths of the only split are those of the model
            learned = learned._replace(
                support=folds[0][0][chosen.support],
                log_bandwidths=chosen.state.log_bandwidths,
                log_ridge=chosen.state.log_ridge,
                certificate=chosen.state.certificate,
            )
        else:
            max_iter = self.max_iter if self.grows else chosen.state.iteration
            learned = replace(self, max_iter=max_iter).learn(rows)
        curve = np.column_stack([iterations, errors @ sizes / sizes.sum()])
        return Validated(learned, np.concatenate(predictions), curve)

    def coefficients(self, learned: Learned, rows: Rows, total: Total) -> tuple[NDArray, NDArray]:
        """Coefficients (m, n_outputs) of the kernel, and (1 + d, n_outputs) of the linear part, from all rows."""
        m = len(learned.support)
        kernel = FORMS[self.form](np.exp(learned.log_bandwidths))
        S = rows.X[learned.support]
        ridge = float(np.exp(learned.log_ridge))
        linear = np.zeros((1 + rows.X.shape[1], rows.Y.shape[1]))
        if self.objective == "interpolation":
            own = np.arange(m)
            none = np.zeros((m, 0))
            weight = rows.weight[learned.support]
            Y = rows.Y[learned.support]
            return interpolation(kernel(S, S), none, Y, ridge, weight, support=own).coef, linear
        coef = solve_coefficients(
            total(partial(moments, kernel=kernel, S=S, fixed=self.fixed)), ridge
        )
        linear[: len(coef) - m] = coef[m:]
        linear[1:] /= np.sqrt(self.n_varying)
        return coef[:m], linear


class Validated(NamedTuple):
    """A model whose number of iterations was chosen on held-out rows."""

    learned: Learned
    predictions: NDArray  # (n_held_out, n_outputs), fold after fold
    curve: NDArray  # (n_checkpoints, 2), iterations and mean squared errors
