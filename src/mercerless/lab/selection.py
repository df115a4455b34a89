"""Learning the bandwidths of one form: shared by all centers first, then one vector per center."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.averaging_old import TABLE_NUMBERS, average
from mercerless.core.choice import cross_chosen
from mercerless.core.descent import Report
from mercerless.core.folds import Split, some_rows
from mercerless.lab.model import (
    FORMS,
    Expansion,
    Rows,
    Settings,
    Total,
    fixed_columns,
    with_coefficients,
)
from mercerless.lab.optimizers import bandwidths_of, take_steps
from mercerless.lab.solver import (
    Evaluation,
    LocalRegression,
    State,
    descend,
    evidence,
    initial_state,
    interpolation,
    least_squares,
    relative_norm,
)
from mercerless.lab.support import grow, select_support


@dataclass(frozen=True)
class SearchLimits:
    """Starts, checkpoints and stopping rules of descents."""

    #: Iterations of the local bandwidths after which validation judges.
    checkpoints: tuple[int, ...] = (0, 5, 10, 20, 40, 80, 150)
    #: Ridges from which the search starts.
    ridges: tuple[float, ...] = tuple(np.logspace(-7, 0.5, 16))
    #: Iterations of the shared bandwidths.
    shared_iterations: int = 60
    #: Rows that are enough for one bandwidth per feature.
    shared_rows: int = 2000
    #: Share of the error that two checkpoints must reach for more iterations, and the eightieth iteration alone.
    stalled: float = 0.998
    #: No descent is given up before so many iterations ...
    fewest_iterations: int = 10
    #: ... or for another form before so many.
    race_start: int = 20


LIMITS = SearchLimits()


def silent(info: dict) -> bool:
    return False


class Validated(NamedTuple):
    """An expansion, not yet with coefficients, and its out-of-fold predictions."""

    expansion: Expansion | None  # None if it is still to be learned from all rows
    predictions: NDArray  # (n_validation, n_outputs)
    loss: NDArray  # the objective after every iteration
    certificate: float = 0.0  # of the point that the descent ended at, or that validation chose
    curve: Sequence[tuple[int, float]] = ()  # iterations and validation errors
    n_iter: int = 0  # that validation chose
    # predictions of the first fold's validation rows, by iteration
    checkpoints: Mapping[int, NDArray] = {}


def start_widths(form: str, n_features: int) -> NDArray:
    """A grid of shared bandwidths; distances grow with d for the Laplace form and with sqrt(d) for the others."""
    typical = n_features if form == "laplace" else np.sqrt(n_features)
    return typical * 2.0 ** np.arange(-4, 6)


def objective_function(name: str, support: NDArray) -> Callable[..., Evaluation]:
    """The objective by its name; interpolation needs the rows of the centers."""
    if name == "interpolation":
        return partial(interpolation, support=support)
    return {"evidence": evidence, "least_squares": least_squares}[name]


class _Checkpoint(NamedTuple):
    """A state of a descent, and its error on validation rows."""

    state: State
    error: float
    predictions: NDArray


@dataclass
class Watch:
    """Follows a descent: reports every iteration, judges some on validation rows, and detects when to stop.

    `checkpoints` are the iterations that are judged, besides the end; `limit` is the largest number of iterations.
    `rival` has the predictions of another form for the validation rows, by iteration: a descent that gets no weight
    beside them ends.
    """

    report: Report = silent
    validation: Rows | None = None
    checkpoints: Sequence[int] = ()
    limit: int | None = None
    rival: Mapping[int, NDArray] = field(default_factory=dict)
    kept: list[_Checkpoint] = field(default_factory=list)

    def start(self, problem: LocalRegression, state: State) -> bool:
        """Judge the start; True ends the descent before it begins."""
        return 0 in self.checkpoints and self._judge(problem, state)

    def after(self, stage: str, problem: LocalRegression, state: State) -> bool:
        """Report and judge an iteration; True ends the descent."""
        is_useless = state.iteration in self.checkpoints and self._judge(problem, state)
        info = {"stage": stage, "iteration": state.iteration, "value": state.value}
        return self.report(info) or is_useless

    def end(self, problem: LocalRegression, state: State) -> None:
        """Judge the end, unless that was a checkpoint."""
        if not self.kept or self.kept[-1].state.iteration != state.iteration:
            self._judge(problem, state)

    def _judge(self, problem: LocalRegression, state: State) -> bool:
        """Keep the state and its error; True after two checkpoints without a gain, a stall, or a defeat."""
        if self.validation is None:
            return False
        P = problem.predict(state, self.validation.X)
        Y = self.validation.Y
        w = self.validation.weight
        error = float(np.sum((P - Y) ** 2 * w[:, None]) / np.sum(w))
        self.kept.append(_Checkpoint(state, error, P))
        if self.limit is not None and len(self.kept) >= self.limit:
            return True
        if state.iteration < LIMITS.fewest_iterations:
            return False
        errors = [checkpoint.error for checkpoint in self.kept]
        has_gained = min(errors[-2:]) <= LIMITS.stalled * min(errors[:-2], default=np.inf)
        is_stalled = (
            state.iteration >= 4 * LIMITS.race_start
            and len(errors) > 1
            and error > LIMITS.stalled * errors[-2]
        )
        if is_stalled or not has_gained:
            return True
        if state.iteration < LIMITS.race_start or state.iteration not in self.rival:
            return False
        both = average([self.rival[state.iteration], P], Y, w, TABLE_NUMBERS)
        return bool(both.weights[1] == 0)


@dataclass(frozen=True)
class LocalLearner:
    """Learns the bandwidths of one form on given rows."""

    form: str
    settings: Settings
    report: Report = silent
    # the log bandwidths of the shared stages so far
    shared: list[NDArray] = field(default_factory=list)

    def problem(self, rows: Rows, support: NDArray, S: NDArray | None = None) -> LocalRegression:
        """The problem of the local stage; S are the centers if they are not among the rows."""
        objective = objective_function(self.settings.objective, support)
        if S is None:
            S = rows.X[support]
        return LocalRegression(
            FORMS[self.form], objective, rows.X, S, rows.Y, self.settings.fixed, rows.weight
        )

    def learn_shared(
        self, rows: Rows, support: NDArray, max_iter: int = LIMITS.shared_iterations
    ) -> State:
        """One bandwidth per feature, shared by all centers: the start of the local stage.

        At most 2000 rows, or 4 per center, decide: these are few numbers. The descent ends when five iterations
        together gain less than 0.025 % of the error, or a quarter of a unit of log evidence.
        """
        S = rows.X[support]
        limit = max(LIMITS.shared_rows, 4 * len(support))
        d = rows.X.shape[1]
        if len(rows) > limit:
            rows = rows.take(some_rows(len(rows), limit, self.settings.seed))
        fixed = partial(fixed_columns, linear=self.settings.linear)
        problem = LocalRegression(FORMS[self.form], evidence, rows.X, S, rows.Y, fixed, rows.weight)
        first = rows.take(slice(LIMITS.shared_rows))
        smaller = replace(problem, X=first.X, Y=first.Y, weight=first.weight)
        _, log_width, log_ridge = initial_state(smaller, start_widths(self.form, d), LIMITS.ridges)
        return descend(
            problem,
            np.full(d, log_width),
            log_ridge,
            pull=1e-3 / d,
            max_iter=max_iter,
            tol=max(5e-5, 0.1 / len(rows)),
            watch=partial(Watch(self.report).after, f"{self.form}: shared bandwidths", problem),
        ).end

    def learn(
        self, rows: Rows, support: NDArray, watch: Watch | None = None
    ) -> tuple[Expansion, NDArray, float]:
        """Shared bandwidths first, then one vector per center, then, on request, more centers.

        Returns the expansion without coefficients, the objective after every iteration, and the certificate.
        """
        settings = self.settings
        if settings.optimizers:
            return self.learn_in_batches(rows, support)
        watch = watch or Watch(self.report)
        losses = []
        shared = self.learn_shared(rows, support)
        self.shared.append(shared.log_bandwidths)
        state = self._tiled(shared, len(support))
        problem = self.problem(rows, support)
        if watch.start(problem, state):
            expansion = Expansion(self.form, support, state.log_bandwidths, state.log_ridge)
            return expansion, np.zeros(0), 1.0
        max_iter = settings.max_iter
        if settings.grows:
            max_iter = max(5, max_iter // 5)
        while True:
            path = descend(
                problem,
                state.log_bandwidths,
                state.log_ridge,
                anchor=shared.log_bandwidths,
                pull=1 / (9 * len(rows)),
                learn_ridge=settings.learns_ridge,
                max_iter=max_iter,
                watch=partial(watch.after, f"{self.form}: local bandwidths", problem),
            )
            state = path.end
            losses.append(path.values)
            new = grow(problem, state, support, settings)
            if len(new) == 0:
                break
            widths = np.vstack(
                [state.log_bandwidths, np.tile(shared.log_bandwidths, (len(new), 1))]
            )
            state = state._replace(log_bandwidths=widths)
            support = np.concatenate([support, new])
            problem = self.problem(rows, support)
        loss = np.concatenate(losses)
        watch.end(problem, state._replace(iteration=len(loss) - 1))
        expansion = Expansion(self.form, support, state.log_bandwidths, state.log_ridge)
        return expansion, loss, state.certificate

    def learn_in_batches(self, rows: Rows, support: NDArray) -> tuple[Expansion, NDArray, float]:
        """Algorithm 1 of the paper: steps on batches for the support, rows with large errors join it, and again.

        New support points start with the mean of theta, as in the authors' code; the paper does not say. The
        certificate is the largest derivative in a log bandwidth at the end relative to the start, both of the
        objective (12) on all rows; infinite if the steps for the last support raised that objective or broke down.
        """
        settings = self.settings
        random = np.random.RandomState(settings.seed)
        d = rows.X.shape[1]
        problem = self.problem(rows, support)
        theta = np.full((len(support), d), np.sqrt(settings.optimizers[0].initial_scale / d))
        first, before = self._on_all_rows(problem, theta)
        losses = []
        while True:
            is_last = not settings.grows or len(support) >= settings.max_support
            broke_down = False
            for optimizer in settings.optimizers:
                n_steps = optimizer.n_steps
                if is_last:
                    n_steps = optimizer.final_steps or n_steps
                steps = take_steps(
                    problem,
                    self.form,
                    theta,
                    support,
                    optimizer,
                    n_steps,
                    random,
                    self.report,
                    ridge=float(np.exp(settings.log_ridge)),
                )
                theta = steps.theta
                broke_down |= steps.diverged
                losses.append(steps.values)
            state = self._state_of(theta)
            new = grow(problem, state, support, settings)
            if len(new) == 0 or broke_down:
                break
            theta = np.vstack([theta, np.full((len(new), d), theta.mean())])
            support = np.concatenate([support, new])
            problem = self.problem(rows, support)
            _, before = self._on_all_rows(problem, theta)
        last, after = self._on_all_rows(problem, theta)
        certificate = relative_norm([first, last])
        if broke_down or after > before:
            certificate = np.inf
        expansion = Expansion(self.form, support, state.log_bandwidths, settings.log_ridge)
        return expansion, np.concatenate(losses), certificate

    def _state_of(self, theta: NDArray) -> State:
        """The state with the paper's bandwidths."""
        log_bandwidths = np.log(bandwidths_of(self.form, theta))
        return State(0, 0.0, log_bandwidths, self.settings.log_ridge)

    def _on_all_rows(self, problem: LocalRegression, theta: NDArray) -> tuple[float, float]:
        """The largest derivative of the objective (12) in a log bandwidth, and its value, on all rows."""
        if len(problem.X) == len(problem.S):
            return 0.0, 0.0
        kernel = problem.kernel(bandwidths_of(self.form, theta))
        K = kernel(problem.X, problem.S)
        ridge = float(np.exp(self.settings.log_ridge))
        at = problem.objective(K, problem.F, problem.Y, ridge, problem.weight)
        gradient = kernel.pullback(problem.X, problem.S, at.kernel_gradient, K)
        return float(np.abs(gradient).max()), at.value

    def _tiled(self, shared: State, m: int) -> State:
        """The start of the local stage."""
        log_ridge = self.settings.log_ridge
        if self.settings.learns_ridge:
            log_ridge = shared.log_ridge
        return State(0, shared.value, np.tile(shared.log_bandwidths, (m, 1)), log_ridge)

    def validate(
        self,
        rows: Rows,
        folds: Sequence[Split],
        supports: Sequence[NDArray],
        rival: Validated | None = None,
    ) -> Validated:
        """A model whose number of iterations is chosen on validation rows; one hold-out keeps its bandwidths.

        The predictions of a fold are those after the iterations that the other folds choose.
        """
        # growth has its own rule when to stop
        checkpoints = LIMITS.checkpoints if not self.settings.grows else ()
        watches: list[Watch] = []
        for (train, valid), support in zip(folds, supports):
            watch = Watch(self.report, rows.take(valid), checkpoints)
            if watches:
                watch.limit = len(watches[0].kept)
            elif rival is not None:
                watch.rival = rival.checkpoints
            _, loss, _ = self.learn(rows.take(train), support, watch)
            watches.append(watch)
        sizes = [float(len(valid)) for _, valid in folds]
        # the checkpoints that all folds have
        columns = list(zip(*(watch.kept for watch in watches)))
        errors = [float(np.average([c.error for c in column], weights=sizes)) for column in columns]
        best = int(np.argmin(errors))
        first = watches[0].kept
        curve = [(checkpoint.state.iteration, error) for checkpoint, error in zip(first, errors)]
        expansion = None
        state = first[best].state
        if len(folds) == 1 and not self.settings.grows:
            expansion = Expansion(
                self.form, folds[0][0][supports[0]], state.log_bandwidths, state.log_ridge
            )
        settings = [np.concatenate([c.predictions for c in column]) for column in columns]
        predictions = cross_chosen(settings, [_losses(p, rows, folds) for p in settings], folds)
        by_iteration = {checkpoint.state.iteration: checkpoint.predictions for checkpoint in first}
        return Validated(
            expansion, predictions, loss, state.certificate, curve, state.iteration, by_iteration
        )

    def learn_again(self, candidate: Validated, rows: Rows) -> Validated:
        """Learn the bandwidths from all rows, with the number of iterations that the folds chose."""
        if candidate.expansion is not None:
            return candidate
        settings = self.settings
        support = select_support(
            rows.X, rows.Y, settings.n_support, settings.selection, settings.seed
        )
        if not settings.grows and candidate.n_iter == 0:
            state = self._tiled(self.learn_shared(rows, support), len(support))
            expansion = Expansion(self.form, support, state.log_bandwidths, state.log_ridge)
            return candidate._replace(
                expansion=expansion, loss=np.zeros(0), certificate=state.certificate
            )
        if not settings.grows:
            settings = settings._replace(max_iter=candidate.n_iter)
        expansion, loss, certificate = replace(self, settings=settings).learn(rows, support)
        return candidate._replace(expansion=expansion, loss=loss, certificate=certificate)

    def without_validation(self, rows: Rows) -> Validated:
        """A model of all rows with all iterations, where nothing can be held out."""
        settings = self.settings
        support = select_support(
            rows.X, rows.Y, settings.n_support, settings.selection, settings.seed
        )
        expansion, loss, certificate = self.learn(rows, support)
        return Validated(expansion, np.zeros((0, rows.Y.shape[1])), loss, certificate)

    def finish(
        self,
        candidate: Validated,
        rows: Rows,
        blocks: Iterable[Callable[[], Rows]],
        held: NDArray,
        total: Total | None,
    ) -> tuple[Validated, Expansion]:
        """Bandwidths from all rows to learn on, refined on further blocks, and coefficients from every row."""
        learned = self.refine(self.learn_again(candidate, rows), rows, blocks, held)
        assert learned.expansion is not None
        model = with_coefficients(learned.expansion, rows, self.settings, total)
        return learned, model._replace(certificate=learned.certificate)

    def refine(
        self, candidate: Validated, rows: Rows, blocks: Iterable[Callable[[], Rows]], held: NDArray
    ) -> Validated:
        """Continue the descent on further blocks, with a point of the validation curve after each.

        One whose result is worse on the held-out rows is undone.
        """
        model = candidate.expansion
        curve = list(candidate.curve)
        held_out = rows.take(held)
        assert model is not None
        best = min([error for _, error in curve], default=np.inf)
        certificate = candidate.certificate
        for block in blocks:
            further = block()
            problem = self.problem(further, model.support, rows.X[model.support])
            end = descend(
                problem,
                model.log_bandwidths,
                model.log_ridge,
                pull=1 / (9 * len(further)),
                learn_ridge=self.settings.learns_ridge,
                max_iter=min(20, self.settings.max_iter),
                watch=partial(Watch(self.report).after, f"{self.form}: further rows", problem),
            ).end
            residual = problem.predict(end, held_out.X) - held_out.Y
            error = float(np.mean(np.sum(residual**2, axis=1)))
            curve.append((curve[-1][0] + 20, error))
            if error < best:
                best = error
                certificate = end.certificate
                model = model._replace(log_bandwidths=end.log_bandwidths, log_ridge=end.log_ridge)
        return candidate._replace(expansion=model, curve=curve, certificate=certificate)


def _losses(predictions: NDArray, rows: Rows, folds: Sequence[Split]) -> NDArray:
    """Squared errors of the held-out rows, weighted as in the mean of a fold."""
    parts = [rows.take(valid) for _, valid in folds]
    truth = np.concatenate([part.Y for part in parts])
    weights = np.concatenate([part.weight / np.mean(part.weight) for part in parts])
    return weights * np.sum((predictions - truth) ** 2, axis=1)


def feature_scales(X: NDArray, Y: NDArray) -> NDArray:
    """Log bandwidths (d,) of the features for standardized targets: large where a feature does not matter at all.

    Those of the shared stage, without a linear part, so that what matters linearly counts too.
    """
    settings = Settings(n_support=min(100, max(1, len(X) // 4)), linear=False)
    support = select_support(X, Y, settings.n_support, settings.selection, settings.seed)
    return LocalLearner("gaussian", settings).learn_shared(Rows(X, Y), support).log_bandwidths


def held_out_error(form: str, rows: Rows, settings: Settings) -> float:
    """The squared error of a small model with shared bandwidths on a third of the rows, learned from the others."""
    return float(np.mean(held_out_losses(form, rows, settings)))


def held_out_losses(form: str, rows: Rows, settings: Settings, third: int = 0) -> NDArray:
    """The same for every row of the first, second or last third in a random order."""
    settings = settings._replace(objective="evidence")
    order = np.random.RandomState(settings.seed).permutation(len(rows))
    start = third * (len(rows) // 3)
    end = len(rows) if third == 2 else start + len(rows) // 3
    held = rows.take(order[start:end])
    train = rows.take(np.concatenate([order[:start], order[end:]]))
    support = _random_support(train, settings)
    state = LocalLearner(form, settings).learn_shared(train, support, max_iter=30)
    model = with_coefficients(
        Expansion(form, support, state.log_bandwidths, state.log_ridge), train, settings
    )
    return np.sum((model.predict(held.X, train.X) - held.Y) ** 2, axis=1)


def _random_support(rows: Rows, settings: Settings) -> NDArray:
    return select_support(
        rows.X, rows.Y, min(settings.n_support, 100, len(rows)), "random", settings.seed
    )
