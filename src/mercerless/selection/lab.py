"""The choice of a local kernel model: scaling, support, start, descent, growth, validation, weights of its forms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans, MiniBatchKMeans

from mercerless._blocks import is_dask, reduce_rows, take_rows
from mercerless.kernels.local import LocalExponential, LocalGaussian, LocalLaplace
from mercerless.selection.averaging import combine
from mercerless.selection.copies import MergedRows, merge_copies
from mercerless.selection.folds import Split, find_copies, hold_out, join_groups, make_folds
from mercerless.selection.scaling import BLOCK_BYTES, FeatureScaling, possible_scalings
from mercerless.solvers.lab import (
    RIDGE_BOUNDS,
    SHARED_BOUNDS,
    Evaluation,
    LocalRegression,
    Moments,
    State,
    descend,
    evidence,
    initial_state,
    interpolation,
    least_squares,
    moments,
    noise_variances,
    shared_evidence,
    solve_coefficients,
)
from mercerless.solvers.lab_wide import single_exponential

FORMS: dict[str, Any] = {"gaussian": LocalGaussian, "laplace": LocalLaplace, "exponential": LocalExponential}
OBJECTIVES = ("evidence", "least_squares", "interpolation")
SELECTIONS = ("kmeans", "y", "random", "extreme")
CHECKPOINTS = (0, 5, 10, 20, 40, 80, 150)
_AUTO_FORMS = ("gaussian", "laplace")
ALL_ROWS = 1000  # up to so many rows kernel ridge regression on all of them is tried too
_MAX_SUPPORT = 200
_LEARNING_ROWS = 10_000  # the bandwidths of larger data are learned on blocks of at least so many rows
_ROWS_PER_POINT = 20  # of a support point
_BANDWIDTHS_PER_ROW = 8  # many features mean many bandwidths, which need more rows
_LAPLACE_WORK = 2e8  # rows x support points x features above which "auto" leaves out the form without matrix products
_MORE_BLOCKS = 3
_WIDE_CENTERS, _FEWEST_CENTERS = 3000, 500
_TREE_ROWS, _TREE_BYTES = 200_000, 20.0  # at most so many rows; bytes per value: in single and double precision, bins
_WIDE_BYTES = 100.0  # times the square of the centers: about a dozen matrices at once
_FOLDED_ROWS, _FOLDED_CLASSES, _FOLDED_RARE = 1300, 2500, 5000  # cross-validated; more are held out in part
_FEWEST_RARE = 100  # held-out rows outside of the largest class
_FEWEST_DISTINCT = 10  # with fewer, equal rows are the nature of the data (see `folds`) and are not merged
_SINGLE = 2**21  # entries times features above which kernels are learned in single precision
_SHARED_ITERATIONS = 60
_SHARED_ROWS = 2000  # enough for one bandwidth per feature
_RIDGES = np.logspace(-7, 0.5, 16)
_SCALING_ROWS, _SCALING_DRAWS, _SCALING_GAIN = 3000, 3, 0.98  # rows and hold-outs that choose a scaling, and its gain
_SCALING_RACE = 1.15  # times the smallest error, above which a scaling is given up
_RIDGE_ROWS, _START_ROWS = 300, 200  # on which kernel ridge regression on all rows is tuned, and from where it starts
_STALLED = 0.998  # of the error, that the eightieth iteration must reach from the fortieth for more of them
_TINY = 1e-300
_RACE_START = 20  # no descent is given up before so many iterations

Total = Callable[..., Moments]  # sums a function of X, Y and weight over blocks of all rows, or a limit of them
Report = Callable[[dict], bool]  # told of {"stage", "iteration", "value"} after every iteration; True ends the descent


def _silent(info: dict) -> bool:
    return False


class Support(BaseEstimator):
    """How the support of a local model is chosen, and whether it grows, the dynamic strategy of the LAB paper.

    Parameters
    ----------
    n_support : int, float or "auto", default="auto"
        The number, as in `LABRegressor`; where the support grows, the number at the start.
    selection : {"kmeans", "y", "random", "extreme"}, default="kmeans"
        The rows nearest to k-means centers, evenly spaced in the order of the target (the paper's choice), at random,
        or (a bad example, for reproduction) the rows with the largest targets.
    max_error : float or None, default=None
        Rows with a larger squared error, in units of the standardized target, become support points, in every round at
        most a tenth of the number at the start. None means no growth.
    max_support : int or None, default=None
        Growth ends at so many support points; None means all rows.

    See Also
    --------
    LABRegressor : Takes it as `n_support`.

    Examples
    --------
    >>> from mercerless import LABRegressor, Support
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(200, function="f1", random_state=0)
    >>> support = Support(20, selection="y", max_error=0.5)
    >>> paper = LABRegressor(support, kernel="gaussian", objective="interpolation", max_iter=50, random_state=0)
    >>> bool(paper.fit(X, y).max_error_ <= 0.5)
    True
    """

    def __init__(
        self,
        n_support: int | float | str = "auto",
        *,
        selection: str = "kmeans",
        max_error: float | None = None,
        max_support: int | None = None,
    ) -> None:
        self.n_support = n_support
        self.selection = selection
        self.max_error = max_error
        self.max_support = max_support


class Settings(NamedTuple):
    """What a fit may do."""

    objective: str = "evidence"
    n_support: int = 100  # the initial number when growing
    selection: str = "kmeans"
    ridge: float | None = None  # None learns it (with the evidence) or takes 1e-5
    max_iter: int = 150  # of the local stage
    growth: float | None = None  # the squared error above which training rows become support points
    max_support: int = 1000  # where growth stops
    seed: int = 0
    linear: bool = True  # whether the features enter linearly as well

    @property
    def learns_ridge(self) -> bool:
        return self.objective == "evidence" and self.ridge is None

    def fixed(self, X: NDArray) -> NDArray:
        """The columns beside those of the kernel, for which interpolation has no room."""
        return np.zeros((len(X), 0)) if self.objective == "interpolation" else fixed_columns(X, self.linear)


_DEFAULTS = Settings()


@dataclass(frozen=True)
class Rows:
    """Scaled rows in memory, standardized targets, and weights of mean one."""

    X: NDArray
    Y: NDArray
    weight: NDArray | None = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Any) -> "Rows":
        """Some of the rows."""
        return Rows(self.X[rows], self.Y[rows], None if self.weight is None else self.weight[rows])


class Projected(NamedTuple):
    """A kernel of linearly mapped rows."""

    kernel: Any
    projection: NDArray | None = None  # (d, r)

    @property
    def plain(self) -> Any:
        """The kernel itself where nothing is mapped."""
        return self.kernel if self.projection is None else self

    def __call__(self, X: NDArray, S: NDArray) -> NDArray:
        """``kernel(X A, S A)``, where mapped in float64; the exponential of rows in single precision is so as well."""
        single = X.dtype == S.dtype == np.float32
        if self.projection is not None:
            X, S = X @ self.projection, S @ self.projection
        if single and isinstance(self.kernel, LocalExponential) and np.ndim(self.kernel.bandwidths) < 2:
            return single_exponential(X / self.kernel.bandwidths, S / self.kernel.bandwidths)
        return self.kernel(X, S)


class Expansion(NamedTuple):
    """One weighted sum of kernels, in scaled units."""

    form: str
    support: NDArray  # (m,), the rows that are centers
    log_bandwidths: NDArray  # (m, d), or shared: (d,) or ()
    log_ridge: float
    linear_weight: float | None = None  # of the linear kernel where all rows are centers; None for local models
    coef: NDArray = np.zeros((0, 0))  # (m, n_outputs)
    linear: NDArray = np.zeros((0, 0))  # (1 + d, n_outputs): the intercept and the coefficients of the features
    weight: float = 1.0  # in the average
    projection: NDArray | None = None  # (d, r), a linear map of the features that the kernel sees

    @property
    def kernel(self) -> Any:
        widths = np.exp(self.log_bandwidths)
        return Projected(FORMS[self.form](widths if np.ndim(widths) else float(widths)), self.projection).plain

    def predict(self, X: NDArray, source: NDArray) -> NDArray:
        """Predictions for X; `source` has the rows that `support` counts."""
        return self.kernel(X, source[self.support]) @ self.coef + self.linear[0] + X @ self.linear[1:]


class Candidate(NamedTuple):
    """An expansion, not yet with coefficients, and its out-of-fold predictions."""

    expansion: Expansion | None  # None where it is still to be learned from all rows
    predictions: NDArray  # (n_validation, n_outputs)
    loss: NDArray  # the objective after every iteration
    certificate: float = 0.0  # of the descent
    curve: Sequence[tuple[int, float]] = ()  # iterations and validation errors
    n_iter: int = 0  # that validation chose
    checkpoints: Mapping[int, NDArray] = {}  # predictions of the first fold's validation rows, by iteration


class Extra(NamedTuple):
    """What else competes: its out-of-fold predictions, and how it is fitted to all rows."""

    predictions: NDArray  # (n_validation, n_outputs)
    finish: Callable[..., Any]  # of `total` as in `with_coefficients`; gives an expansion, or any form


class Blend(NamedTuple):
    """Several expansions and what their validation told."""

    expansions: list[Any]  # their weights sum to one; forms that are no expansions among them
    validation_rows: NDArray  # that were predicted out of fold
    predictions: NDArray  # of the blend for these, made without them
    curves: dict[str, NDArray]  # per form of a local model: iterations and mean squared validation errors
    errors: dict[str, float]  # of everything that was tried
    loss_curve: NDArray  # of the heaviest local part
    certificate: float  # of that part: the projected gradient at the end relative to the start
    max_error: float  # the largest squared error on a training row, what growth bounds


class LocalForm(NamedTuple):
    """One kernel form of a fitted LAB model; the model predicts the sum of ``weight * form(X)``.

    Attributes
    ----------
    name : str
        "gaussian", "laplace" or "exponential".
    kernel : Kernel
        The kernel with its bandwidths, which act on scaled features.
    support : ndarray of shape (n_support,)
        The training rows that are support points.
    support_vectors, centers : ndarray of shape (n_support, n_features)
        These rows, as they were given and scaled; the kernel is evaluated in the precision of the centers.
    dual_coef : ndarray of shape (n_functions, n_support)
        The coefficients.
    coef : ndarray of shape (n_functions, n_features)
        The coefficients of the scaled features themselves.
    intercept : ndarray of shape (n_functions,)
        The constants.
    alpha : float
        The ridge.
    weight : float
        The weight in the average; all sum to one.
    scaling : callable
        Scales features.
    projection : ndarray of shape (n_features, n_directions) or None
        A linear map of the scaled features, of which the kernel is a function; None for the features themselves.
    """

    name: str
    kernel: Any
    support: NDArray
    support_vectors: NDArray
    centers: NDArray
    dual_coef: NDArray
    coef: NDArray
    intercept: NDArray
    alpha: float
    weight: float
    scaling: FeatureScaling
    projection: NDArray | None = None

    @property
    def bandwidths(self) -> NDArray:
        """The bandwidths of every support point, (n_support, n_features); of mapped features along each alone."""
        if self.projection is None:
            return np.broadcast_to(self.kernel.bandwidths, self.centers.shape)
        return np.broadcast_to(self.kernel.bandwidths / np.linalg.norm(self.projection, axis=1), self.centers.shape)

    @property
    def n_parameters(self) -> int:
        """Numbers in the nonlinear part."""
        mapped = 0 if self.projection is None else self.projection.size
        return self.centers.size + np.size(self.kernel.bandwidths) + self.dual_coef.size + mapped

    def __call__(self, X: NDArray) -> NDArray:
        """``kernel(Z A, centers A) @ dual_coef.T + intercept + Z @ coef.T`` with Z the scaled X, A the projection."""
        Z = self.scaling(X, self.centers.dtype)
        K = Projected(self.kernel, self.projection)(Z, self.centers)
        return K @ self.dual_coef.T + self.intercept + Z @ self.coef.T

    def in_units(self, center: NDArray, scale: NDArray) -> "LocalForm":
        """The form for targets that were standardized by these."""
        dual_coef, coef = self.dual_coef * scale[:, None], self.coef * scale[:, None]
        return self._replace(dual_coef=dual_coef, coef=coef, intercept=self.intercept * scale + center)


def fixed_columns(X: NDArray, linear: bool = True) -> NDArray:
    """Ones and, where `linear`, the features divided by ``sqrt(d)``: the linear part of a local model, in float64."""
    ones = np.ones((len(X), 1))
    return np.hstack([ones, X / np.sqrt(X.shape[1])]) if linear else ones


def start_widths(form: str, n_features: int) -> NDArray:
    """A grid of shared bandwidths; distances grow with d for the Laplace form and with sqrt(d) for the others."""
    return (n_features if form == "laplace" else np.sqrt(n_features)) * 2.0 ** np.arange(-4, 6)


def objective_function(name: str, support: NDArray) -> Callable[..., Evaluation]:
    """The objective by its name; interpolation needs the rows of the centers."""
    if name == "interpolation":
        return partial(interpolation, support=support)
    return {"evidence": evidence, "least_squares": least_squares}[name]


def select_support(X: NDArray, Y: NDArray, n_support: int, method: str, seed: int) -> NDArray:
    """Choose distinct rows as centers.

    "kmeans": the rows nearest to k-means centers; "y": evenly spaced in the order of the (first) target, the paper's
    choice; "random"; "extreme": the rows with the largest targets, the paper's bad example.
    """
    n = len(X)
    if n_support >= n:
        return np.arange(n)
    random = np.random.RandomState(seed)
    if method == "random":
        return random.permutation(n)[:n_support]
    if method in ("y", "extreme"):
        order = np.argsort(Y[:, 0], kind="stable")
        places = np.round(np.linspace(0, n - 1, n_support)).astype(int)
        return order[n - n_support :] if method == "extreme" else order[places]
    # k-means on at most 20,000 rows; every center takes its nearest row that is still free
    rows = np.sort(random.permutation(n)[:20_000])
    Z = X[rows]
    if len(np.unique(Z[: 4 * n_support], axis=0)) < n_support and len(np.unique(Z, axis=0)) < n_support:
        return random.permutation(n)[:n_support]
    if len(Z) > 4000:
        means = MiniBatchKMeans(n_support, n_init=1, max_iter=20, batch_size=4096, random_state=random)
    else:
        means = KMeans(n_support, n_init=1, max_iter=30, random_state=random)
    distances = means.fit(Z).transform(Z)
    free = np.ones(len(Z), dtype=bool)
    chosen = np.empty(n_support, dtype=int)
    for j in range(n_support):
        i = int(np.argmin(np.where(free, distances[:, j], np.inf)))
        free[i], chosen[j] = False, i
    return rows[chosen]


def fold_supports(rows: Rows, folds: Sequence[Split], settings: Settings) -> list[NDArray]:
    """The support of every fold, numbered by its training rows, with as many rows per support point as in the whole."""
    supports = []
    for train, _ in folds:
        share = 1.0 if len(folds) == 1 else len(train) / len(rows)
        size = min(max(1, round(share * settings.n_support)), len(train))
        supports.append(select_support(rows.X[train], rows.Y[train], size, settings.selection, settings.seed))
    return supports


class _Checkpoint(NamedTuple):
    """A state on the way of a descent, and how well it does on validation rows."""

    state: State
    error: float
    predictions: NDArray


@dataclass
class Watch:
    """Follows a descent: reports every iteration, judges some on validation rows, and says when going on is no use.

    `checkpoints` are the iterations that are judged, the end always is; `limit` says how many are enough. `rival` has
    the predictions of another form for the validation rows, by iteration: a descent that they leave no weight ends.
    """

    report: Report = _silent
    validation: Rows | None = None
    checkpoints: Sequence[int] = ()
    limit: int | None = None
    rival: Mapping[int, NDArray] = field(default_factory=dict)
    kept: list[_Checkpoint] = field(default_factory=list)

    def start(self, problem: LocalRegression, state: State) -> bool:
        """Judge the start; True ends the descent before it begins."""
        return 0 in self.checkpoints and self._judge(problem, state)

    def after(self, stage: str, problem: LocalRegression, state: State) -> bool:
        """What happens after an iteration; True ends the descent."""
        stop = state.iteration in self.checkpoints and self._judge(problem, state)
        return self.report({"stage": stage, "iteration": state.iteration, "value": state.value}) or stop

    def end(self, problem: LocalRegression, state: State) -> None:
        """Judge the end, unless that was a checkpoint."""
        if not self.kept or self.kept[-1].state.iteration != state.iteration:
            self._judge(problem, state)

    def _judge(self, problem: LocalRegression, state: State) -> bool:
        """Keep the state and its error; True after two checkpoints above 1.02 times the best, a stall, or a defeat."""
        if self.validation is None:
            return False
        P, Y = problem.predict(state, self.validation.X), self.validation.Y
        w = np.ones(len(Y)) if self.validation.weight is None else self.validation.weight
        error = float(np.sum((P - Y) ** 2 * w[:, None]) / np.sum(w))
        self.kept.append(_Checkpoint(state, error, P))
        if self.limit is not None and len(self.kept) >= self.limit:
            return True
        if state.iteration < _RACE_START:
            return False
        best = min(checkpoint.error for checkpoint in self.kept)
        worse = min(checkpoint.error for checkpoint in self.kept[-2:]) > 1.02 * best
        stalled = state.iteration >= 4 * _RACE_START and len(self.kept) > 1 and error > _STALLED * self.kept[-2].error
        return (
            worse
            or stalled
            or (state.iteration in self.rival and combine([self.rival[state.iteration], P], Y, w)[1] == 0)
        )


@dataclass(frozen=True)
class LocalLearner:
    """Learns the bandwidths of one form on given rows."""

    form: str
    settings: Settings
    report: Report = _silent
    shared: list[NDArray] = field(default_factory=list)  # the log bandwidths of the shared stages so far

    def problem(self, rows: Rows, support: NDArray, S: NDArray | None = None) -> LocalRegression:
        """What the local stage minimizes; S are the centers where they are not among the rows."""
        objective, S = objective_function(self.settings.objective, support), rows.X[support] if S is None else S
        return LocalRegression(FORMS[self.form], objective, rows.X, S, rows.Y, self.settings.fixed, rows.weight)

    def learn_shared(self, rows: Rows, support: NDArray, max_iter: int = _SHARED_ITERATIONS) -> State:
        """One bandwidth per feature, shared by all centers: the start of the local stage.

        At most 2000 rows, or 4 per center, decide: these are few numbers. The descent ends when five iterations
        together gain less than 0.025 % of the error, or a quarter of a unit of log evidence.
        """
        S, limit, d = rows.X[support], max(_SHARED_ROWS, 4 * len(support)), rows.X.shape[1]
        if len(rows) > limit:
            rows = rows.take(np.sort(np.random.RandomState(self.settings.seed).permutation(len(rows))[:limit]))
        fixed = partial(fixed_columns, linear=self.settings.linear)
        problem = LocalRegression(FORMS[self.form], evidence, rows.X, S, rows.Y, fixed, rows.weight)
        few = replace(problem, X=rows.X[:_SHARED_ROWS], Y=rows.Y[:_SHARED_ROWS], weight=None)
        _, log_width, log_ridge = initial_state(few, start_widths(self.form, d), _RIDGES)
        return descend(
            problem,
            np.full(d, log_width),
            log_ridge,
            pull=1e-3 / d,
            max_iter=max_iter,
            tol=max(5e-5, 0.1 / len(rows)),
            watch=partial(Watch(self.report).after, f"{self.form}: shared bandwidths", problem),
        ).end

    def learn(self, rows: Rows, support: NDArray, watch: Watch | None = None) -> tuple[Expansion, NDArray, float]:
        """Shared bandwidths first, then one vector per center, then, where asked, more centers.

        Returns the expansion without coefficients, the objective after every iteration, and the certificate.
        """
        settings, watch, losses = self.settings, watch or Watch(self.report), []
        shared = self.learn_shared(rows, support)
        self.shared.append(shared.log_bandwidths)
        state = self._tiled(shared, len(support))
        problem = self.problem(rows, support)
        if watch.start(problem, state):
            return Expansion(self.form, support, state.log_bandwidths, state.log_ridge), np.zeros(0), 1.0
        while True:
            path = descend(
                problem,
                state.log_bandwidths,
                state.log_ridge,
                anchor=shared.log_bandwidths,
                pull=1 / (9 * len(rows)),
                learn_ridge=settings.learns_ridge,
                max_iter=settings.max_iter if settings.growth is None else max(5, settings.max_iter // 5),
                watch=partial(watch.after, f"{self.form}: local bandwidths", problem),
            )
            state = path.end
            losses.append(path.values)
            new = grow(problem, state, support, settings)
            if len(new) == 0:
                break
            widths = np.vstack([state.log_bandwidths, np.tile(shared.log_bandwidths, (len(new), 1))])
            state, support = state._replace(log_bandwidths=widths), np.concatenate([support, new])
            problem = self.problem(rows, support)
        loss = np.concatenate(losses)
        watch.end(problem, state._replace(iteration=len(loss) - 1))
        return Expansion(self.form, support, state.log_bandwidths, state.log_ridge), loss, path.certificate

    def _tiled(self, shared: State, m: int) -> State:
        """The start of the local stage."""
        ridge = 1e-5 if self.settings.ridge is None else self.settings.ridge
        log_ridge = shared.log_ridge if self.settings.learns_ridge else float(np.log(ridge))
        return State(0, shared.value, np.tile(shared.log_bandwidths, (m, 1)), log_ridge)

    def validate(
        self, rows: Rows, folds: Sequence[Split], supports: Sequence[NDArray], rival: Candidate | None = None
    ) -> Candidate:
        """A model whose number of iterations is chosen on validation rows; one hold-out keeps its bandwidths."""
        steps = CHECKPOINTS if self.settings.growth is None else ()  # growth has its own rule when to stop
        watches: list[Watch] = []
        for (train, valid), support in zip(folds, supports):
            watch = Watch(self.report, rows.take(valid), steps)
            if watches:
                watch.limit = len(watches[0].kept)
            elif rival is not None:
                watch.rival = rival.checkpoints
            _, loss, certificate = self.learn(rows.take(train), support, watch)
            watches.append(watch)
        sizes = [float(len(valid)) for _, valid in folds]
        columns = list(zip(*(watch.kept for watch in watches)))  # the checkpoints that all folds have
        errors = [float(np.average([c.error for c in column], weights=sizes)) for column in columns]
        best, first = int(np.argmin(errors)), watches[0].kept
        curve = [(checkpoint.state.iteration, error) for checkpoint, error in zip(first, errors)]
        expansion, state = None, first[best].state
        if len(folds) == 1 and self.settings.growth is None:
            expansion = Expansion(self.form, folds[0][0][supports[0]], state.log_bandwidths, state.log_ridge)
        predictions = np.concatenate([checkpoint.predictions for checkpoint in columns[best]])
        by_iteration = {checkpoint.state.iteration: checkpoint.predictions for checkpoint in first}
        return Candidate(expansion, predictions, loss, certificate, curve, state.iteration, by_iteration)

    def learn_again(self, candidate: Candidate, rows: Rows) -> Candidate:
        """Learn the bandwidths from all rows, with the number of iterations that the folds chose."""
        if candidate.expansion is not None:
            return candidate
        settings = self.settings
        support = select_support(rows.X, rows.Y, settings.n_support, settings.selection, settings.seed)
        if settings.growth is None and candidate.n_iter == 0:
            state = self._tiled(self.learn_shared(rows, support), len(support))
            expansion = Expansion(self.form, support, state.log_bandwidths, state.log_ridge)
            return candidate._replace(expansion=expansion, loss=np.zeros(0))
        if settings.growth is None:
            settings = settings._replace(max_iter=candidate.n_iter)
        expansion, loss, certificate = replace(self, settings=settings).learn(rows, support)
        return candidate._replace(expansion=expansion, loss=loss, certificate=certificate)

    def refine(
        self, candidate: Candidate, rows: Rows, blocks: Iterable[Callable[[], Rows]], held: NDArray
    ) -> Candidate:
        """Continue the descent on further blocks, with a point of the validation curve after each.

        One whose result is worse on the held-out rows is undone.
        """
        model, curve, held_out = candidate.expansion, list(candidate.curve), rows.take(held)
        assert model is not None
        best = min([error for _, error in curve], default=np.inf)
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
                best, model = error, model._replace(log_bandwidths=end.log_bandwidths, log_ridge=end.log_ridge)
        return candidate._replace(expansion=model, curve=curve)


def feature_scales(X: NDArray, Y: NDArray, seed: int = 0) -> NDArray:
    """Log bandwidths (d,) of the features for standardized targets: large where a feature does not matter at all.

    Those of the shared stage, without a linear part, so that what matters linearly counts too.
    """
    settings = Settings(n_support=min(100, max(1, len(X) // 4)), seed=seed, linear=False)
    support = select_support(X, Y, settings.n_support, settings.selection, seed)
    return LocalLearner("gaussian", settings).learn_shared(Rows(X, Y), support).log_bandwidths


def grow(problem: LocalRegression, state: State, support: NDArray, settings: Settings) -> NDArray:
    """Rows with the largest squared errors for the support (the paper's dynamic strategy), at most a tenth more."""
    if settings.growth is None:
        return support[:0]
    errors = np.sum((problem.predict(state, problem.X) - problem.Y) ** 2, axis=1)
    errors[support] = 0.0
    room = settings.max_support - len(support)
    n_new = min(max(1, settings.n_support // 10), room, int(np.sum(errors > settings.growth)))
    return np.argsort(-errors, kind="stable")[: max(0, n_new)]


def all_rows_candidates(form: str, rows: Rows, folds: Sequence[Split], report: Report = _silent) -> list[Extra]:
    """Kernel ridge regression with all rows as centers, tuned in two ways.

    One bandwidth and ridge by exact leave-one-out; and one bandwidth per feature, a linear kernel and the ridge by
    `shared_evidence`, learned again for every fold. Both are chosen on at most 300 rows, which carry over.
    """
    rows = replace(rows, X=np.asarray(rows.X, dtype=float))
    plain = Expansion(form, np.arange(len(rows)), *_ridge_grid(form, _some_rows(rows)), 0.0)
    start = _ridge_grid(form, _some_rows(rows, _START_ROWS), linear=True)
    predictions = []
    for train, valid in folds:
        part = rows.take(train)
        model = with_coefficients(_ridge_descent(form, part, start), part)
        predictions.append(model.predict(rows.X[valid], part.X))
    return [
        Extra(_exact_folds(plain, rows, folds), lambda total: with_coefficients(plain, rows)),
        Extra(
            np.concatenate(predictions),
            lambda total: with_coefficients(_ridge_descent(form, rows, start, report), rows),
        ),
    ]


def _some_rows(rows: Rows, limit: int | None = None) -> Rows:
    """The rows on which kernel ridge regression on all of them is tuned."""
    return rows.take(np.sort(np.random.RandomState(0).permutation(len(rows))[: limit or _RIDGE_ROWS]))


def _ridge_grid(form: str, rows: Rows, linear: bool = False) -> tuple[NDArray, float]:
    """Log bandwidth and log ridge with the smallest leave-one-out error, or `shared_evidence` with a linear kernel.

    Every second bandwidth of the grid, then the neighbors of the best.
    """
    X, n, ridges, widths = rows.X, len(rows), np.logspace(-6, 1, 15), start_widths(form, rows.X.shape[1])
    root = np.sqrt(1 / noise_variances(rows.weight, n))
    Z = root[:, None] * rows.Y

    def tuned(width: float) -> tuple[float, float, float]:
        K = FORMS[form](float(width))(X, X)
        K = ((K + K.T) / 2 + (X @ X.T / X.shape[1] + 1 if linear else 0.0)) * root[:, None] * root
        e, V = eigh(K, overwrite_a=True, check_finite=False, driver="evd")
        shifted = np.maximum(e, 0)[:, None] + ridges
        q = V.T @ Z
        if linear:
            values = np.log(np.sum(q * q, axis=1) @ (1 / shifted) / n + _TINY) + np.sum(np.log(shifted), axis=0) / n
        else:
            diagonals = (V * V) @ (1 / shifted)
            residuals = [V @ (q / s[:, None]) / g[:, None] for s, g in zip(shifted.T, diagonals.T)]
            values = np.array([np.sum(residual**2) for residual in residuals])
        k = int(np.argmin(values))
        return float(values[k]), float(np.log(width)), float(np.log(ridges[k]))

    trials = {k: tuned(widths[k]) for k in range(0, len(widths), 2)}
    best = min(trials, key=lambda k: trials[k])
    trials |= {k: tuned(widths[k]) for k in (best - 1, best + 1) if 0 <= k < len(widths)}
    _, log_width, log_ridge = min(trials.values())
    return np.asarray(log_width), log_ridge


def _ridge_descent(
    form: str, rows: Rows, start: tuple[NDArray, float], report: Report = _silent, max_iter: int = 20
) -> Expansion:
    """Minimize the evidence in the shared log bandwidths, the log weight of the linear kernel and the log ridge."""
    some, d = _some_rows(rows), rows.X.shape[1]
    X = some.X
    L = X @ X.T / d + 1
    pull = 1.0 / len(some)  # a Gaussian prior of unit variance on the differences of the log bandwidths
    values: list[float] = []

    def value(z: NDArray) -> tuple[float, NDArray]:
        k = FORMS[form](np.exp(z[:d]))
        K = k(X, X)
        linear = np.exp(z[d])
        try:
            at = shared_evidence((K + K.T) / 2 + linear * L, some.Y, np.exp(z[d + 1]), some.weight)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(z)
        spread = z[:d] - z[:d].mean()
        gradient = np.append(
            k.pullback(X, X, at.kernel_gradient, K) + 2 * pull * spread,
            [linear * np.sum(at.kernel_gradient * L), at.ridge_gradient],
        )
        return at.value + pull * (spread @ spread), gradient

    def after(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun))
        stop = report({"stage": f"{form}: all rows", "iteration": len(values), "value": values[-1]})
        if stop or (len(values) > 5 and values[-6] - values[-1] < 5e-4):
            raise StopIteration

    bounds = [SHARED_BOUNDS] * d + [(-12.0, 6.0), (np.log(1e-8), RIDGE_BOUNDS[1])]
    z = minimize(
        value,
        np.append(np.full(d, start[0]), [0.0, start[1]]),
        jac=True,
        method="L-BFGS-B",
        callback=after,
        options={"maxiter": max_iter},
        bounds=bounds,
    ).x
    return Expansion(form, np.arange(len(rows)), z[:d], float(z[d + 1]), float(np.exp(z[d])))


def _ridge_factor(model: Expansion, rows: Rows) -> Any:
    """The factorization of the matrix of a kernel ridge model with all rows as centers, in double precision.

    A matrix that rounding has made indefinite is shifted until it is not.
    """
    X, shift = np.asarray(rows.X, dtype=np.float64), 0.0
    K = model.kernel(X, X)
    A = (K + K.T) / 2 + model.linear_weight * (X @ X.T / X.shape[1] + 1)
    A[np.diag_indices(len(A))] += np.exp(model.log_ridge) * noise_variances(rows.weight, len(rows))
    while True:
        try:
            return cho_factor(A + shift * np.eye(len(A)), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            shift = max(100 * shift, 1e-12 * float(np.trace(A)) / len(A))


def _exact_folds(model: Expansion, rows: Rows, folds: Sequence[Split]) -> NDArray:
    """Predictions of every fold without its rows, from one factorization: ``y - (A^-1)_ff^-1 (A^-1 y)_f``."""
    factor = _ridge_factor(model, rows)
    coef = cho_solve(factor, rows.Y, check_finite=False)
    predictions = []
    for _, valid in folds:
        unit = np.zeros((len(rows), len(valid)))
        unit[valid, np.arange(len(valid))] = 1
        block = cho_solve(factor, unit, check_finite=False)[valid]
        predictions.append(rows.Y[valid] - np.linalg.solve(block, coef[valid]))
    return np.concatenate(predictions)


def with_coefficients(
    model: Expansion, rows: Rows, settings: Settings = _DEFAULTS, total: Total | None = None
) -> Expansion:
    """Solve for the coefficients; with `total` from all rows, of which these are a part."""
    (n, d), m = rows.X.shape, len(model.support)
    if model.linear_weight is not None:
        coef = cho_solve(_ridge_factor(model, rows), rows.Y, check_finite=False)
        linear = model.linear_weight * np.vstack([coef.sum(axis=0), rows.X.T @ coef / d])
        return model._replace(coef=coef, linear=linear)
    kernel, S, ridge = model.kernel, rows.X[model.support], float(np.exp(model.log_ridge))
    linear = np.zeros((1 + d, rows.Y.shape[1]))
    if settings.objective == "interpolation":
        coef = interpolation(kernel(rows.X, S), np.zeros((n, 0)), rows.Y, ridge, support=model.support).coef
        return model._replace(coef=coef, linear=linear)
    function = partial(moments, kernel=kernel, S=S, fixed=settings.fixed)
    sums = function(rows.X, rows.Y, rows.weight) if total is None else total(function)
    coef = solve_coefficients(sums, ridge)
    linear[: len(coef) - m] = coef[m:]
    linear[1:] /= np.sqrt(d)
    return model._replace(coef=coef[:m], linear=linear)


def blend_forms(
    forms: Sequence[str],
    rows: Rows,
    settings: Settings,
    folds: Sequence[Split],
    *,
    all_rows: bool = False,
    total: Total | None = None,
    more: Sequence[Callable[[], Rows]] = (),
    extra: Callable[..., dict[str, Extra]] | None = None,
    weigh: Callable[..., tuple[NDArray, list[float]]] | None = None,
    report: Report = _silent,
) -> Blend:
    """Fit models of the given forms and weigh them by their out-of-fold predictions.

    Without `folds` the form with the smallest objective is kept. Where `rows` are a part of the data, `total` is as in
    `with_coefficients`, and `more` give rows to refine the bandwidths on. `extra` gives what else competes.
    """
    learners = {form: LocalLearner(form, settings, report) for form in forms}
    candidates: dict[str, Any] = _candidates(learners, rows, settings, folds, all_rows)
    if extra is not None and folds:
        candidates |= extra(rows, folds, learners, {name: of.predictions for name, of in candidates.items()})
    held = np.concatenate([valid for _, valid in folds]) if folds else np.zeros(0, dtype=int)
    weigh_held = partial(_weigh, max_parts=2 + all_rows + (extra is not None), weigh=weigh)
    share, errors = weigh_held(candidates, rows.take(held), numbers=held)
    kept = [name for name in candidates if share[name] > 0]
    blocks = more if len(folds) == 1 and settings.objective != "interpolation" else ()
    expansions = []
    for name in kept:
        if isinstance(candidates[name], Extra):
            expansions.append(candidates[name].finish(total)._replace(weight=share[name]))
            continue
        learned = learners[name].learn_again(candidates[name], rows)
        candidates[name] = learners[name].refine(learned, rows, blocks, held)
        model = candidates[name].expansion
        assert model is not None
        expansions.append(with_coefficients(model, rows, settings, total)._replace(weight=share[name]))
    main = candidates[max(candidates, key=lambda name: (name in learners, share[name]))]
    residual = np.sum([e.weight * _predict(e, rows.X) for e in expansions], axis=0) - rows.Y
    max_error = float(np.max(np.sum(residual**2, axis=1)))
    predictions = cross_weighed(candidates, held, rows, folds, share, weigh_held)
    curves = {name: np.array(candidates[name].curve) for name in learners if candidates[name].curve}
    return Blend(expansions, held, predictions, curves, errors, main.loss, main.certificate, max_error)


def _predict(part: Any, X: NDArray) -> NDArray:
    """Predictions of an expansion or another form for its own rows, which are scaled."""
    return part.predict(X, X) if isinstance(part, Expansion) else part(X)


def _candidates(
    learners: Mapping[str, LocalLearner], rows: Rows, settings: Settings, folds: Sequence[Split], all_rows: bool
) -> dict[str, Any]:
    """Everything that is tried, by name; forms after the first race against it."""
    candidates: dict[str, Any] = {}
    rival, supports = None, fold_supports(rows, folds, settings)
    for form, learner in learners.items():
        if folds:
            rival = learner.validate(rows, folds, supports, rival if settings.growth is None else None)
            candidates[form] = rival
        else:
            support = select_support(rows.X, rows.Y, settings.n_support, settings.selection, settings.seed)
            expansion, loss, certificate = learner.learn(rows, support)
            candidates[form] = Candidate(expansion, np.zeros((0, rows.Y.shape[1])), loss, certificate)
        if all_rows and folds:
            plain, learned = all_rows_candidates(form, rows, folds, learner.report)
            candidates |= {f"{form}, all rows, one bandwidth": plain, f"{form}, all rows": learned}
    return candidates


def cross_weighed(
    candidates: Mapping[str, Any], held: NDArray, rows: Rows, folds: Sequence[Split], share: Mapping, weigh: Callable
) -> NDArray:
    """Out-of-fold predictions of the average, each by weights that the other folds give, where there are others."""
    predictions = np.sum([share[name] * candidates[name].predictions for name in candidates], axis=0)
    if len(folds) < 3:
        return predictions
    ends = np.cumsum([0, *(len(valid) for _, valid in folds)])
    for start, end in pairwise(ends):
        others = np.r_[0:start, end : len(held)]
        parts = weigh(candidates, rows.take(held[others]), numbers=held[others], among=others)[0]
        predictions[start:end] = np.sum([parts[n] * candidates[n].predictions[start:end] for n in candidates], axis=0)
    return predictions


def _weigh(
    candidates: Mapping[str, Any],
    held: Rows,
    max_parts: int,
    numbers: NDArray,
    weigh: Callable | None,
    among: Any = ...,
) -> tuple[dict, dict]:
    """Weights and validation errors of the candidates; without validation rows the smallest objective has it all."""
    if len(held):
        predictions = [c.predictions[among] for c in candidates.values()]
        if weigh is None:
            share = combine(predictions, held.Y, held.weight, max_parts)
            errors = [float(np.mean(np.sum((p - held.Y) ** 2, axis=1))) for p in predictions]
        else:
            share, errors = weigh(predictions, numbers, held.weight, max_parts)
        return {name: float(w) for name, w in zip(candidates, share)}, dict(zip(candidates, errors))
    best = min(candidates, key=lambda name: candidates[name].loss[-1] if len(candidates[name].loss) else np.inf)
    return {name: float(name == best) for name in candidates}, {}


@dataclass(frozen=True)
class Table:
    """The training rows wherever they are (memory, memory map, Dask), equal ones merged."""

    X: Any
    merged: MergedRows  # with standardized targets
    copies: NDArray  # the number of the distinct row of every row
    groups: NDArray | None = None  # of the distinct rows

    @property
    def shape(self) -> tuple[int, int]:
        """Distinct rows and features."""
        return len(self.merged.first), self.X.shape[1]


def merge_rows(X: Any, Y: NDArray, weight: NDArray | None, groups: NDArray | None) -> Table:
    """The table of distinct rows; groups that share a copy become one."""
    copies = find_copies(X)
    if copies.max() + 1 < _FEWEST_DISTINCT:
        copies = np.arange(len(X))
    merged = merge_copies(Y, weight, copies)
    return Table(X, merged, copies, None if groups is None else join_groups(groups, copies)[merged.first])


@dataclass(frozen=True)
class ScaledTable:
    """A table as learners see it."""

    table: Table
    scaling: FeatureScaling
    dtype: Any
    weight: NDArray | None = None  # of the distinct rows

    def rows(self, numbers: NDArray) -> Rows:
        """Some of the distinct rows, in memory."""
        merged = self.table.merged
        X = self.scaling(take_rows(self.table.X, merged.first[numbers]), self.dtype)
        return Rows(X, merged.Y[numbers], self.weights(numbers))

    def weights(self, numbers: NDArray) -> NDArray | None:
        """Weights of some of the distinct rows, with mean one."""
        return None if self.weight is None else self.weight[numbers] / self.weight[numbers].mean()

    def total(self, n_support: int, function: Callable[..., Moments], limit: int | None = None) -> Moments:
        """The moments of all rows, or a limit of them, block by block; for a Dask array where its chunks are."""
        n = self.table.shape[0]
        if limit is not None and limit < n and not is_dask(self.table.X):
            rows = self.rows(np.sort(np.random.RandomState(0).permutation(n)[:limit]))
            return function(rows.X, rows.Y, rows.weight)
        X, (Y, weight) = self.table.X, self.table.merged.spread(self.weight, len(self.table.X))
        work = partial(_scaled_moments, function=function, scaling=self.scaling, dtype=self.dtype)
        return reduce_rows(work, Moments.merge, [X, Y, weight], 32.0 * (X.shape[1] + n_support), BLOCK_BYTES)


def _scaled_moments(
    X: NDArray, Y: NDArray, weight: NDArray | None, *, function: Callable, scaling: FeatureScaling, dtype: Any
) -> Moments:
    return function(scaling(X, dtype), Y, weight)


class Plan(NamedTuple):
    """What a fit does with a table."""

    settings: Settings
    kernel: str  # a form or "auto"
    rows: NDArray  # the distinct rows on which bandwidths are learned
    more: list[NDArray]  # further such blocks
    all_rows: bool  # whether kernel ridge regression with all rows as centers competes
    validation_fraction: float | None
    n_features: int
    all_members: bool = False  # whether trees and, from some thousand rows on, wide machines compete
    n_centers: int = 0  # of wide machines, as many as a quarter of the memory holds
    n_boosting: int = 0  # rows from which trees are learned, likewise

    @property
    def work(self) -> int:
        """Rows times support points times features."""
        return len(self.rows) * self.settings.n_support * self.n_features

    @property
    def forms(self) -> tuple[str, ...]:
        if self.kernel != "auto":
            return (self.kernel,)
        return _AUTO_FORMS if self.work <= _LAPLACE_WORK else ("gaussian",)

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float32 if self.work > _SINGLE else np.float64)

    @property
    def max_support(self) -> int:
        if self.settings.growth is None:
            return self.settings.n_support
        return min(len(self.rows), self.settings.max_support)

    def n_bytes(self, n: int, n_outputs: int) -> float:
        """What a fit on n rows needs besides the data; measured, and asserted in the tests."""
        m, d = self.max_support, self.n_features
        learning = len(self.rows) * (4.5 * self.dtype.itemsize * (m + d) + 32 * n_outputs) + 400.0 * m * d
        others = _WIDE_BYTES * self.n_centers**2 + _TREE_BYTES * self.n_boosting * d if self.all_members else 0.0
        learning += (80.0 * n * n if self.all_rows else 0.0) + others
        return learning + 64.0 * n * n_outputs + 1.25 * BLOCK_BYTES


def center_count(n: int, budget: float) -> int:
    """Centers of wide machines for n rows: at most 3000, and no more than a quarter of the memory holds; 0 for none."""
    most = int(min(_WIDE_CENTERS, n, np.sqrt(budget / 4 / _WIDE_BYTES)))
    return most if n > ALL_ROWS and most >= _FEWEST_CENTERS else 0


def boosting_rows(n: int, d: int, budget: float) -> int:
    """Rows from which trees are learned: at most 200,000, and no more than a quarter of the memory holds."""
    return int(min(n, _TREE_ROWS, budget / 4 / (_TREE_BYTES * d)))


def support_size(n_support: Any, n: int) -> int:
    """Support points for n rows: a whole number, a fraction, or "auto"."""
    if n_support == "auto":
        return max(1, min(_MAX_SUPPORT, n // 4))
    return int(n_support) if isinstance(n_support, Integral) else max(1, round(n_support * n))


def learning_rows(m: int, d: int, budget: float) -> int:
    """Rows at a time: enough for m support points, and for their bandwidths as far as half of the memory allows."""
    least = max(_LEARNING_ROWS, _ROWS_PER_POINT * m)
    return max(least, min(m * d // _BANDWIDTHS_PER_ROW, int(0.5 * budget / (4.5 * 4 * (m + d)))))


def learning_blocks(n: int, limit: int, random: np.random.RandomState) -> tuple[NDArray, list[NDArray]]:
    """The rows on which bandwidths are learned, and up to three further blocks, at least half as large."""
    order = random.permutation(n) if n > limit else np.arange(n)
    rows, *more = (np.sort(order[i : i + limit]) for i in range(0, min(n, (1 + _MORE_BLOCKS) * limit), limit))
    return rows, [block for block in more if len(block) >= limit // 2]


class LABSolution(NamedTuple):
    """A fitted model in standardized units."""

    forms: list[LocalForm]
    blend: Blend  # what validation told; its errors are those of single rows, not of the means of copies
    held: NDArray  # the distinct rows that were predicted out of fold
    copy_correlation: float


def fit_lab(
    table: Table,
    plan: Plan,
    labels: NDArray | None,
    random: np.random.RandomState,
    report: Report = _silent,
    extra: Callable[..., dict[str, Extra]] | None = None,
    weigh: Callable[..., tuple[NDArray, list[float]]] | None = None,
) -> LABSolution:
    """Choose a scaling, learn the bandwidths on some rows and the coefficients on all; labels are spread over folds."""
    scaled = ScaledTable(table, choose_scaling(table, plan), plan.dtype)
    rows = scaled.rows(plan.rows)
    correlation = 0.0 if labels is not None else copy_correlation(table.merged, plan, rows)
    scaled = replace(scaled, weight=table.merged.weights(correlation))
    rows = replace(rows, weight=scaled.weights(plan.rows))
    folds = _split(table, plan, rows, labels, random)
    more, rest = plan.more, np.setdiff1d(np.arange(table.shape[0]), plan.rows)
    if table.groups is not None and len(folds) == 1:  # further rows must not know the held-out groups
        held = table.groups[plan.rows[folds[0][1]]]
        more, (rest,) = ([block[~np.isin(table.groups[block], held)] for block in blocks] for blocks in (more, [rest]))
    room = plan.n_boosting - len(plan.rows)
    if extra is not None and len(rest) and room > 0 and not is_dask(table.X):
        rest = rest if len(rest) <= room else np.sort(random.permutation(rest)[:room])
        extra = partial(extra, further=partial(_numbered_rows, scaled, rest))
    blend = blend_forms(
        plan.forms,
        rows,
        plan.settings,
        folds,
        all_rows=plan.all_rows,
        total=None if len(plan.rows) == table.shape[0] else partial(scaled.total, plan.settings.n_support),
        more=[partial(scaled.rows, block) for block in more if len(block)],
        extra=extra,
        weigh=weigh,
        report=report,
    )
    held = plan.rows[blend.validation_rows]
    # errors of merged rows are those of their means; what rows deviate from their means comes on top
    noise = float(np.mean(table.merged.deviations[held])) if len(held) else 0.0
    curves = {form: curve + [0, noise] for form, curve in blend.curves.items()}
    errors = {name: error + (noise if weigh is None else 0.0) for name, error in blend.errors.items()}
    blend = blend._replace(curves=curves, errors=errors)
    forms = [_fitted_form(table, plan, rows, scaled.scaling, expansion) for expansion in blend.expansions]
    return LABSolution(forms, blend, held, correlation)


def _numbered_rows(scaled: ScaledTable, numbers: NDArray) -> tuple[Rows, NDArray]:
    return scaled.rows(numbers), numbers


def _fitted_form(table: Table, plan: Plan, rows: Rows, scaling: FeatureScaling, e: Any) -> Any:
    if not isinstance(e, Expansion):
        return e._replace(scaling=scaling)
    support = table.merged.first[plan.rows[e.support]]
    vectors, centers = take_rows(table.X, support).astype(np.float64), rows.X[e.support]
    if e.linear_weight is not None:  # the others are seen as they were learned, of large tables in single precision
        centers = centers.astype(np.float64)
    coef, intercept, alpha = e.linear[1:].T, e.linear[0], float(np.exp(e.log_ridge))
    kernel = e._replace(projection=None).kernel
    return LocalForm(
        e.form, kernel, support, vectors, centers, e.coef.T, coef, intercept, alpha, e.weight, scaling, e.projection
    )


def _split(table: Table, plan: Plan, rows: Rows, labels: NDArray | None, random: np.random.RandomState) -> list[Split]:
    """Five folds up to 100 rows, then three, one hold-out of many rows; copies and groups on one side.

    Three folds are for up to 1300 rows, 2500 of classes, 5000 where few held-out rows would be of the smaller classes.
    """
    n, numbers = len(rows), plan.rows
    if plan.validation_fraction is None or n < 5:
        return []
    classes = None if labels is None else labels[table.merged.first[numbers]]
    groups = None if table.groups is None else table.groups[numbers]
    options: dict[str, Any] = {"classify": labels is not None, "groups": groups, "random_state": random}
    most = _FOLDED_ROWS
    if classes is not None:
        rare = plan.validation_fraction * (n - np.bincount(classes).max())
        most = _FOLDED_CLASSES if rare >= _FEWEST_RARE else _FOLDED_RARE
    if n <= most:
        return make_folds(5 if n <= 100 else 3, rows.X, classes, **options)
    return [hold_out(plan.validation_fraction, rows.X, classes, **options)]


def choose_scaling(table: Table, plan: Plan) -> FeatureScaling:
    """Standardized features; where they have tails, a scaling that lowers the held-out error of small models enough."""
    settings, merged = plan.settings, table.merged
    numbers = plan.rows[np.sort(np.random.RandomState(settings.seed).permutation(len(plan.rows))[:_SCALING_ROWS])]
    sample = take_rows(table.X, merged.first[numbers])
    scalings = possible_scalings(table.X, sample)
    if len(scalings) == 1:
        return scalings[0]
    scaled = [Rows(scaling(sample, np.float32), merged.Y[numbers]) for scaling in scalings]
    errors = dict.fromkeys(range(len(scalings)), 0.0)
    for i in range(_SCALING_DRAWS):
        draw = settings._replace(seed=(settings.seed + i) % 2**32)
        for k in errors:
            errors[k] += min(held_out_error(form, scaled[k], draw) for form in plan.forms)
        errors = {k: error for k, error in errors.items() if error <= _SCALING_RACE * min(errors.values())}
        if len(errors) == 1:
            break
    best = min(errors, key=lambda k: errors[k])
    return scalings[best if errors[best] < _SCALING_GAIN * errors.get(0, np.inf) else 0]


def copy_correlation(merged: MergedRows, plan: Plan, rows: Rows) -> float:
    """How alike the errors of copies are: 1 where their targets are equal, 0 where they differ like any two rows."""
    if not merged.pure_error > 0 or np.all(merged.counts == merged.counts[0]):
        return 1.0
    few = np.sort(np.random.RandomState(plan.settings.seed).permutation(len(rows))[:3000])
    return merged.correlation(held_out_error(plan.forms[0], rows.take(few), plan.settings))


def held_out_error(form: str, rows: Rows, settings: Settings) -> float:
    """The squared error of a small model with shared bandwidths on a third of the rows, learned from the others."""
    settings = settings._replace(objective="evidence")
    order = np.random.RandomState(settings.seed).permutation(len(rows))
    held, train = rows.take(order[: len(rows) // 3]), rows.take(order[len(rows) // 3 :])
    support = _random_support(train, settings)
    end = LocalLearner(form, settings).learn_shared(train, support, max_iter=30)
    model = with_coefficients(Expansion(form, support, end.log_bandwidths, end.log_ridge), train, settings)
    return float(np.mean(np.sum((model.predict(held.X, train.X) - held.Y) ** 2, axis=1)))


def _random_support(rows: Rows, settings: Settings) -> NDArray:
    return select_support(rows.X, rows.Y, min(settings.n_support, 100, len(rows)), "random", settings.seed)
