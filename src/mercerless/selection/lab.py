"""The complete fit of a local kernel model: support, start, descent, growth, validation, weights of several forms."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize
from sklearn.cluster import KMeans, MiniBatchKMeans

from mercerless.selection.averaging import combine
from mercerless.solvers.lab import (
    LOCAL_BOUNDS,
    RIDGE_BOUNDS,
    SHARED_BOUNDS,
    Evaluation,
    Moments,
    descend,
    evidence,
    initial_state,
    interpolation,
    least_squares,
    moments,
    shared_evidence,
    solve_coefficients,
)

OBJECTIVES = ("evidence", "least_squares", "interpolation")
SELECTIONS = ("kmeans", "y", "random", "extreme")
CHECKPOINTS = (5, 10, 20, 40, 80, 150)
SHARED_ITERATIONS = 60
SHARED_ROWS = 2000  # enough for one bandwidth per feature
RIDGES = np.logspace(-7, 0.5, 16)
# no descent is given up before so many iterations
RACE_START = 20


class Settings(NamedTuple):
    """What a fit may do.

    Parameters
    ----------
    objective : {"evidence", "least_squares", "interpolation"}
        What the bandwidths minimise.
    n_support : int
        Support points of a local model, the initial number when growing.
    selection : {"kmeans", "y", "random", "extreme"}
        How they are chosen.
    ridge : float or None
        The ridge; None learns it (with the evidence) or takes 1e-5.
    max_iter : int
        Iterations of the local stage.
    growth : float or None
        The squared error (of the standardised targets) above which training rows become support points.
    max_support : int
        Where growth stops.
    seed : int
        The seed of the selection.
    linear : bool
        Whether the features enter linearly as well.
    """

    objective: str = "evidence"
    n_support: int = 100
    selection: str = "kmeans"
    ridge: float | None = None
    max_iter: int = 150
    growth: float | None = None
    max_support: int = 1000
    seed: int = 0
    linear: bool = True


class Expansion(NamedTuple):
    """One weighted sum of kernels.

    Parameters
    ----------
    form : str
        The kernel form.
    support : ndarray of shape (m,)
        Rows that are centres.
    log_bandwidths : ndarray of shape (m, d), (d,) or ()
        One row per centre, or shared.
    log_ridge : float
        The ridge.
    linear_weight : float or None
        The weight of the linear kernel of a kernel ridge model with all rows as centres; None for local models.
    coef : ndarray of shape (m, n_outputs) or None
        The coefficients.
    linear : ndarray of shape (1 + d, n_outputs) or None
        The intercept and the coefficients of the features.
    weight : float
        Its weight in the model.
    """

    form: str
    support: NDArray
    log_bandwidths: NDArray
    log_ridge: float
    linear_weight: float | None = None
    coef: NDArray | None = None
    linear: NDArray | None = None
    weight: float = 1.0


class Candidate(NamedTuple):
    """An expansion with its predictions on the validation rows.

    Parameters
    ----------
    expansion : Expansion or None
        Without coefficients; None where it is still to be learned from all rows.
    predictions : ndarray of shape (n_validation, n_outputs)
        Out-of-fold predictions.
    curve : list of (int, float)
        Iterations and validation errors.
    loss : ndarray
        The objective after every iteration.
    stationarity : float
        The certificate of the descent.
    n_iter : int
        The number of iterations that validation chose.
    checkpoints : list of dict
        Per fold: iterations and predictions of the validation rows.
    """

    expansion: Expansion | None
    predictions: NDArray
    curve: list
    loss: NDArray
    stationarity: float
    n_iter: int = 0
    checkpoints: Sequence[Mapping[int, NDArray]] = ()


class LABSolution(NamedTuple):
    """A fitted model.

    Parameters
    ----------
    expansions : list of Expansion
        The parts with their weights, which sum to 1.
    validation_rows : ndarray
        The rows that were predicted out of fold.
    validation_predictions : ndarray of shape (n_validation, n_outputs)
        The model's predictions for them, made without them.
    validation_curves : dict of str to list of (int, float)
        Per form of a local model: iterations and mean squared validation errors.
    candidates : dict of str to float
        The validation error of everything that was tried.
    loss_curve : ndarray
        The objective of the heaviest local part after every iteration.
    stationarity : float
        Certificate of that part: the projected gradient at the end relative to the start.
    max_error : float
        The largest squared error on a training row, what growth bounds.
    """

    expansions: list
    validation_rows: NDArray
    validation_predictions: NDArray
    validation_curves: dict
    candidates: dict
    loss_curve: NDArray
    stationarity: float
    max_error: float


def held_out_error(form: str, kernel: Callable, X: NDArray, Y: NDArray, settings: Settings) -> float:
    """The squared error of a small model with shared bandwidths on a third of the rows, learned from the others."""
    order = np.random.RandomState(settings.seed).permutation(len(X))
    held, train = order[: len(X) // 3], order[len(X) // 3 :]
    support = select_support(X[train], Y[train], min(settings.n_support, 100, len(train)), "random", settings.seed)
    b, log_ridge, _ = learn_shared_start(form, kernel, X[train], Y[train], support, settings, max_iter=30)
    model = with_coefficients(
        Expansion(form, support, b, log_ridge), kernel, X[train], Y[train], linear=settings.linear
    )
    return float(np.mean(np.sum((evaluate(model, kernel, X[held], X[train]) - Y[held]) ** 2, axis=1)))


def select_support(X: NDArray, Y: NDArray, n_support: int, method: str, seed: int) -> NDArray:
    """Choose distinct rows as centres.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    Y : ndarray of shape (n, n_outputs)
        The targets.
    n_support : int
        How many.
    method : {"kmeans", "y", "random", "extreme"}
        The rows nearest to k-means centres; evenly spaced in the order of the (first) target, the paper's choice; at
        random; or the rows with the largest targets, the paper's bad example.
    seed : int
        The seed.

    Returns
    -------
    ndarray of shape (n_support,)
        Distinct row numbers.
    """
    n = len(X)
    if n_support >= n:
        return np.arange(n)
    random = np.random.RandomState(seed)
    if method == "random":
        return random.permutation(n)[:n_support]
    if method in ("y", "extreme"):
        order = np.argsort(Y[:, 0], kind="stable")
        if method == "extreme":
            return order[n - n_support :]
        return order[np.round(np.linspace(0, n - 1, n_support)).astype(int)]
    # k-means on at most 20,000 rows; every centre takes its nearest row that is still free
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


def fixed_columns(X: NDArray, linear: bool = True) -> NDArray:
    """Ones and the features divided by ``sqrt(d)``: the linear part of a local model.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    linear : bool, default=True
        False gives the ones only.

    Returns
    -------
    ndarray of shape (n, 1 + d) or (n, 1)
        The columns, in float64.
    """
    ones = np.ones((len(X), 1))
    return np.hstack([ones, X / np.sqrt(X.shape[1])]) if linear else ones


def start_widths(form: str, n_features: int) -> NDArray:
    """The grid of shared bandwidths for standardised features.

    Parameters
    ----------
    form : str
        The kernel form; distances grow with d for the Laplace form and with sqrt(d) for the others.
    n_features : int
        The number of features d.

    Returns
    -------
    ndarray
        Bandwidths.
    """
    return (n_features if form == "laplace" else np.sqrt(n_features)) * 2.0 ** np.arange(-4, 6)


def learn_shared_start(
    form: str,
    kernel: Callable,
    X: NDArray,
    Y: NDArray,
    support: NDArray,
    settings: Settings,
    weights: NDArray | None = None,
    callback: Callable | None = None,
    max_iter: int = SHARED_ITERATIONS,
) -> tuple[NDArray, float, float]:
    """One bandwidth per feature, shared by all centres: the start of the local stage.

    At most 2000 rows, or 4 per centre, decide: these are few numbers. The descent ends when five iterations together
    gain less than 0.025 % of the error, or a quarter of a unit of log evidence.

    Parameters
    ----------
    form, kernel
        The kernel form and its class.
    X, Y, support, weights
        Rows, targets, the rows that are centres, square roots of the row weights.
    settings : Settings
        The settings.
    callback : callable or None, default=None
        Called after every iteration.
    max_iter : int, default=60
        Iterations.

    Returns
    -------
    log_bandwidths : ndarray of shape (d,)
        The shared bandwidths.
    log_ridge : float
        The ridge.
    value : float
        The evidence there.
    """
    S, F, limit = X[support], fixed_columns(X, settings.linear), max(SHARED_ROWS, 4 * len(support))
    if len(X) > limit:
        rows = np.sort(np.random.RandomState(settings.seed).permutation(len(X))[:limit])
        X, F, Y, weights = X[rows], F[rows], Y[rows], None if weights is None else weights[rows]
    few = slice(SHARED_ROWS)
    _, log_width, log_ridge = initial_state(kernel, X[few], S, F[few], Y[few], start_widths(form, X.shape[1]), RIDGES)
    path = descend(
        kernel,
        evidence,
        X,
        S,
        F,
        Y,
        np.full(X.shape[1], log_width),
        log_ridge,
        pull=1e-3 / X.shape[1],
        bounds=SHARED_BOUNDS,
        max_iter=max_iter,
        weights=weights,
        tol=max(5e-5, 0.1 / len(X)),
        callback=_named(callback, f"{form}: shared bandwidths"),
    )
    return path.log_bandwidths[-1], path.log_ridges[-1], float(path.values[-1])


def shared_value(form: str, kernel: Callable, X: NDArray, Y: NDArray, settings: Settings) -> float:
    """The evidence that shared bandwidths reach, to compare scalings of the features.

    Parameters
    ----------
    form, kernel
        The kernel form and its class.
    X, Y : ndarray
        Rows and targets.
    settings : Settings
        The settings.

    Returns
    -------
    float
        Minus the log evidence per row.
    """
    support = select_support(X, Y, min(settings.n_support, 100, len(X)), "random", settings.seed)
    return learn_shared_start(form, kernel, X, Y, support, settings, max_iter=30)[2]


def learn_local(
    form: str,
    kernel: Callable,
    X: NDArray,
    Y: NDArray,
    support: NDArray,
    settings: Settings,
    weights: NDArray | None = None,
    keep: Sequence[int] = (),
    on_state: Callable[[int, NDArray, NDArray, float], bool] | None = None,
    callback: Callable | None = None,
) -> tuple[Expansion, NDArray, float]:
    """Shared bandwidths first, then one vector per centre, then, where asked, more centres.

    Parameters
    ----------
    form, kernel
        The kernel form and its class.
    X, Y, support, weights
        Rows, targets, the rows that are centres, square roots of the row weights.
    settings : Settings
        The settings.
    keep : sequence of int, default=()
        Iterations at which `on_state` is called.
    on_state : callable or None, default=None
        Called with ``iteration, support, log_bandwidths, log_ridge``; True ends the descent.
    callback : callable or None, default=None
        Called after every iteration; True ends the descent.

    Returns
    -------
    expansion : Expansion
        Without coefficients.
    loss : ndarray
        The objective after every iteration.
    stationarity : float
        The certificate.
    """
    shared, log_ridge, _ = learn_shared_start(form, kernel, X, Y, support, settings, weights, callback)
    learn_ridge = settings.objective == "evidence" and settings.ridge is None
    log_ridge = log_ridge if learn_ridge else np.log(1e-5 if settings.ridge is None else settings.ridge)
    state = np.tile(shared, (len(support), 1))
    if on_state is not None and on_state(0, support, state, log_ridge):
        return Expansion(form, support, state, log_ridge), np.zeros(0), 1.0
    losses, certificate, done = [], 1.0, 0
    while True:
        F = _fixed_for(settings, X)
        path = descend(
            kernel,
            objective_function(settings.objective, support),
            X,
            X[support],
            F,
            Y,
            state,
            log_ridge,
            anchor=np.tile(shared, (len(support), 1)),
            pull=1 / (9 * len(X)),
            bounds=LOCAL_BOUNDS,
            learn_ridge=learn_ridge,
            max_iter=settings.max_iter if settings.growth is None else _round_length(settings),
            keep=[k - done for k in keep],
            weights=weights,
            on_keep=None if on_state is None else partial(_shifted, on_state, done, support),
            callback=_named(callback, f"{form}: local bandwidths"),
        )
        state, log_ridge, certificate = path.log_bandwidths[-1], path.log_ridges[-1], path.stationarity
        losses.append(path.values)
        done += max(1, len(path.values) - 1)
        if settings.growth is None:
            break
        grown = grow(kernel, X, Y, F, support, state, log_ridge, settings, weights)
        if len(grown) == len(support):
            break
        state = np.vstack([state, np.tile(shared, (len(grown) - len(support), 1))])
        support = grown
    return Expansion(form, support, state, log_ridge), np.concatenate(losses), certificate


def grow(
    kernel: Callable,
    X: NDArray,
    Y: NDArray,
    F: NDArray,
    support: NDArray,
    log_bandwidths: NDArray,
    log_ridge: float,
    settings: Settings,
    weights: NDArray | None = None,
) -> NDArray:
    """Add the rows with the largest squared errors to the support (the paper's dynamic strategy).

    Parameters
    ----------
    kernel, X, Y, F, support, log_bandwidths, log_ridge, settings, weights
        The current model.

    Returns
    -------
    ndarray
        The support with at most a tenth more rows, all distinct; unchanged when every error is at most
        ``settings.growth`` or the cap is reached.
    """
    K = kernel(np.exp(log_bandwidths))(X, X[support])
    coef = objective_function(settings.objective, support)(K, F, Y, np.exp(log_ridge), weights).coef
    errors = np.sum((np.hstack([K, F]) @ coef - Y) ** 2, axis=1)
    errors[support] = 0.0
    room = settings.max_support - len(support)
    n_new = min(max(1, settings.n_support // 10), room, int(np.sum(errors > settings.growth)))
    if errors.max() <= settings.growth or n_new <= 0:
        return support
    return np.concatenate([support, np.argsort(-errors, kind="stable")[:n_new]])


def _round_length(settings: Settings) -> int:
    return max(5, settings.max_iter // 5)


def objective_function(name: str, support: NDArray) -> Callable[..., Evaluation]:
    """The objective by its name.

    Parameters
    ----------
    name : {"evidence", "least_squares", "interpolation"}
        The name.
    support : ndarray
        The rows of the centres, which the interpolation needs.

    Returns
    -------
    callable
        ``objective(K, F, Y, ridge, weights)``.
    """
    if name == "interpolation":
        return partial(interpolation, support=support)
    return {"evidence": evidence, "least_squares": least_squares}[name]


def local_candidate(
    form: str,
    kernel: Callable,
    X: NDArray,
    Y: NDArray,
    folds: Sequence,
    settings: Settings,
    weights: NDArray | None = None,
    callback: Callable | None = None,
    rival: Candidate | None = None,
    supports: Sequence[NDArray] | None = None,
) -> Candidate:
    """A local model whose number of iterations is chosen on validation rows.

    Parameters
    ----------
    form, kernel
        The kernel form and its class.
    X, Y, weights
        Rows, targets, square roots of the row weights.
    folds : sequence of (train, validation)
        One hold-out, whose bandwidths are kept, or several folds, after which `learn_again` uses all rows.
    settings : Settings
        The settings.
    callback : callable or None, default=None
        Called after every iteration.
    rival : Candidate or None, default=None
        Another form on the same folds.
    supports : sequence of ndarray or None, default=None
        What `fold_supports` gave, where it is known.

    Returns
    -------
    Candidate
        The model, its out-of-fold predictions and its validation curve. The descent of a fold ends after two
        checkpoints (from 20 iterations on) above 1.02 times the best error, or when its rival leaves the form no weight
        in `combine`.
    """
    per_fold: list[list[_Checkpoint]] = []
    supports = fold_supports(X, Y, folds, settings) if supports is None else supports
    for i, fold in enumerate(folds):
        limit = len(per_fold[0]) if per_fold else None
        other = rival.checkpoints[i] if rival is not None and not per_fold else {}
        kept, loss, certificate = _run_fold(
            form, kernel, X, Y, fold, supports[i], settings, weights, limit, other, callback
        )
        per_fold.append(kept)
    length = min(len(kept) for kept in per_fold)
    sizes = np.array([len(valid) for _, valid in folds], dtype=float)
    errors = [float(np.average([kept[i].error for kept in per_fold], weights=sizes)) for i in range(length)]
    best = int(np.argmin(errors))
    curve = [(per_fold[0][i].iteration, errors[i]) for i in range(length)]
    expansion = None
    if len(folds) == 1 and settings.growth is None:
        state = per_fold[0][best]
        expansion = Expansion(form, state.support, state.log_bandwidths, state.log_ridge)
    predictions = np.concatenate([kept[best].predictions for kept in per_fold])
    by_fold = [{state.iteration: state.predictions for state in kept} for kept in per_fold]
    return Candidate(expansion, predictions, curve, loss, certificate, curve[best][0], by_fold)


def fold_supports(X: NDArray, Y: NDArray, folds: Sequence, settings: Settings) -> list[NDArray]:
    """The support of every fold, numbered by its training rows, with as many rows per support point as in the whole.

    Parameters
    ----------
    X, Y : ndarray
        Rows and targets.
    folds : sequence of (train, validation)
        The folds.
    settings : Settings
        The settings.

    Returns
    -------
    list of ndarray
        The supports.
    """
    supports = []
    for train, _ in folds:
        share = 1.0 if len(folds) == 1 else len(train) / len(X)
        size = min(max(1, round(share * settings.n_support)), len(train))
        supports.append(select_support(X[train], Y[train], size, settings.selection, settings.seed))
    return supports


def learn_again(
    candidate: Candidate,
    form: str,
    kernel: Callable,
    X: NDArray,
    Y: NDArray,
    settings: Settings,
    weights: NDArray | None = None,
    callback: Callable | None = None,
) -> Candidate:
    """Learn the bandwidths from all rows, with the number of iterations that the folds chose.

    Parameters
    ----------
    candidate : Candidate
        What `local_candidate` found; returned as it is where it already has an expansion.
    form, kernel, X, Y, settings, weights, callback
        As in `local_candidate`.

    Returns
    -------
    Candidate
        With its expansion.
    """
    if candidate.expansion is not None:
        return candidate
    support = select_support(X, Y, settings.n_support, settings.selection, settings.seed)
    if settings.growth is None and candidate.n_iter == 0:
        b, r, _ = learn_shared_start(form, kernel, X, Y, support, settings, weights, callback)
        return candidate._replace(
            expansion=Expansion(form, support, np.tile(b, (len(support), 1)), r), loss=np.zeros(0)
        )
    chosen = settings if settings.growth is not None else settings._replace(max_iter=candidate.n_iter)
    expansion, loss, certificate = learn_local(form, kernel, X, Y, support, chosen, weights, callback=callback)
    return candidate._replace(expansion=expansion, loss=loss, stationarity=certificate)


def refine(
    expansion: Expansion,
    kernel: Callable,
    S: NDArray,
    blocks: Iterable[Callable[[], tuple]],
    validation: tuple[NDArray, NDArray],
    settings: Settings,
    error: float,
    callback: Callable | None = None,
) -> tuple[Expansion, list[float]]:
    """Continue the descent on further blocks of rows; a block whose result is worse on validation rows is undone.

    Parameters
    ----------
    expansion : Expansion
        A local model learned on a first block.
    kernel : callable
        The class of its kernel.
    S : ndarray of shape (m, d)
        Its centres.
    blocks : iterable of callable
        Each gives rows, targets and square roots of the row weights of a block, or None for these.
    validation : tuple of ndarray
        Validation rows and targets.
    settings : Settings
        The settings.
    error : float
        The validation error so far.
    callback : callable or None, default=None
        Called after every iteration.

    Returns
    -------
    expansion : Expansion
        The model with the smallest validation error.
    errors : list of float
        The validation error after every block.
    """
    V, v = validation
    errors = []
    objective = objective_function(settings.objective, expansion.support)
    for block in blocks:
        X, Y, w = block()
        F = _fixed_for(settings, X)
        path = descend(
            kernel, objective, X, S, F, Y, expansion.log_bandwidths, expansion.log_ridge, weights=w,
            pull=1 / (9 * len(X)), learn_ridge=settings.objective == "evidence" and settings.ridge is None,
            max_iter=min(20, settings.max_iter), callback=_named(callback, f"{expansion.form}: further rows"),
        )  # fmt: skip
        k = kernel(np.exp(path.log_bandwidths[-1]))
        coef = objective(k(X, S), F, Y, np.exp(path.log_ridges[-1]), w).coef
        errors.append(float(np.mean(np.sum((np.hstack([k(V, S), _fixed_for(settings, V)]) @ coef - v) ** 2, axis=1))))
        if errors[-1] < error:
            error = errors[-1]
            expansion = expansion._replace(log_bandwidths=path.log_bandwidths[-1], log_ridge=path.log_ridges[-1])
    return expansion, errors


class _Checkpoint(NamedTuple):
    """A state on the way of a descent, and how well it does on validation rows."""

    iteration: int
    error: float
    predictions: NDArray
    support: NDArray
    log_bandwidths: NDArray
    log_ridge: float


def _run_fold(form, kernel, X, Y, fold, support, settings, weights, limit, rival, callback):
    """Descend on the training rows of a fold and judge every checkpoint on its validation rows.

    `rival` has the predictions of another form at the same checkpoints.
    """
    train, valid = fold
    A, b, V, v = X[train], Y[train], X[valid], Y[valid]
    w = None if weights is None else weights[train]
    wv = np.ones(len(valid)) if weights is None else weights[valid]
    F, Fv = _fixed_for(settings, A), _fixed_for(settings, V)
    kept: list[_Checkpoint] = []

    def check(iteration, support, log_b, log_r):
        k, S = kernel(np.exp(log_b)), A[support]
        coef = objective_function(settings.objective, support)(k(A, S), F, b, np.exp(log_r), w).coef
        P = np.hstack([k(V, S), Fv]) @ coef
        error = float(np.sum(((P - v) * wv[:, None]) ** 2) / np.sum(wv**2))
        kept.append(_Checkpoint(iteration, error, P, train[support], log_b, log_r))
        best = min(state.error for state in kept)
        worse = iteration >= RACE_START and min(state.error for state in kept[-2:]) > 1.02 * best
        race = iteration >= RACE_START and iteration in rival
        behind = race and combine([rival[iteration], P], v, wv)[1] == 0
        return worse or behind or (limit is not None and len(kept) >= limit)

    if settings.growth is not None:  # its own rule says when to stop
        end, loss, certificate = learn_local(form, kernel, A, b, support, settings, w, callback=callback)
        check(len(loss) - 1, end.support, end.log_bandwidths, end.log_ridge)
    else:
        keep = [k for k in CHECKPOINTS if k <= settings.max_iter] or [settings.max_iter]
        _, loss, certificate = learn_local(form, kernel, A, b, support, settings, w, keep, check, callback)
    return kept, loss, certificate


def _fixed_for(settings, X):
    return fixed_columns(X, settings.linear) if settings.objective != "interpolation" else np.zeros((len(X), 0))


def _shifted(on_state, done, support, iteration, log_bandwidths, log_ridge):
    return on_state(done + iteration, support, log_bandwidths, log_ridge)


def _named(callback, stage):
    return None if callback is None else lambda info: callback({"stage": stage, **info})


def shared_candidates(
    form: str,
    kernel: Callable,
    X: NDArray,
    Y: NDArray,
    folds: Sequence,
    weights: NDArray | None = None,
    callback: Callable | None = None,
) -> list[Candidate]:
    """Kernel ridge regression with all rows as centres, tuned in two ways.

    One bandwidth and ridge by exact leave-one-out, which is ordinary tuned kernel ridge regression; and one bandwidth
    per feature, a linear kernel and the ridge by `shared_evidence`.

    Parameters
    ----------
    form, kernel
        The kernel form and its class.
    X, Y, weights
        Rows, targets, square roots of the row weights.
    folds : sequence of (train, validation)
        Folds for the out-of-fold predictions, for which the bandwidths per feature are learned again.
    callback : callable or None, default=None
        Called after every iteration.

    Returns
    -------
    list of Candidate
        Two candidates.
    """
    plain, start = _shared_grid(form, kernel, X, Y, weights)
    log_b, log_linear, log_ridge, values = _shared_descent(form, kernel, X, Y, start, weights, callback)
    everything = np.arange(len(X))
    found = []
    for b, linear, r, loss in ((plain[0], -np.inf, plain[1], np.zeros(0)), (log_b, log_linear, log_ridge, values)):
        model = Expansion(form, everything, b, r, float(np.exp(linear)))
        if not np.ndim(b):
            predictions = _exact_folds(kernel, X, Y, model, folds, weights)
        else:
            predictions = []
            for train, valid in folds:
                w = None if weights is None else weights[train]
                fold = _shared_descent(form, kernel, X[train], Y[train], start, w, None)[:3]
                part = with_coefficients(
                    Expansion(form, np.arange(len(train)), fold[0], fold[2], float(np.exp(fold[1]))),
                    kernel,
                    X[train],
                    Y[train],
                    w,
                )
                predictions.append(evaluate(part, kernel, X[valid], X[train]))
            predictions = np.concatenate(predictions)
        found.append(Candidate(model, predictions, [], loss, 0.0))
    return found


def _shared_grid(form, kernel, X, Y, weights):
    """The plain model with the smallest leave-one-out error, and a start for the evidence."""
    n = len(X)
    root = np.ones(n) if weights is None else np.maximum(weights, 1e-8)
    Z = root[:, None] * Y
    L = (X @ X.T / X.shape[1] + 1) * root[:, None] * root
    plain, start = (np.inf,), (np.inf,)
    for width in start_widths(form, X.shape[1]):
        K = kernel(float(width))(X, X) * root[:, None] * root
        K = (K + K.T) / 2
        for linear in (False, True):
            e, V = eigh(K + L if linear else K, overwrite_a=linear, check_finite=False, driver="evd")
            e = np.maximum(e, 0)
            q, V2 = V.T @ Z, V * V
            for ridge in np.logspace(-6, 1, 15):
                if linear:
                    value = np.log(np.sum(q**2 / (e + ridge)[:, None]) / n + 1e-300) + np.sum(np.log(e + ridge)) / n
                    start = min(start, (value, np.log(width), 0.0, np.log(ridge)))
                else:
                    residual = (V @ (q / (e + ridge)[:, None])) / (V2 @ (1 / (e + ridge)))[:, None]
                    plain = min(plain, (float(np.sum(residual**2)), np.log(width), np.log(ridge)))
    return plain[1:], start[1:]


def _shared_descent(form, kernel, X, Y, start, weights, callback, max_iter=40):
    """Minimise the evidence in the shared log bandwidths, the log weight of the linear kernel and the log ridge."""
    n, d = X.shape
    L = X @ X.T / d + 1
    pull = 1.0 / n  # a Gaussian prior of unit variance on the differences of the log bandwidths
    values = []

    def fun(z):
        k = kernel(np.exp(z[:d]))
        K = k(X, X)
        linear = np.exp(z[d])
        try:
            ev = shared_evidence((K + K.T) / 2 + linear * L, Y, np.exp(z[d + 1]), weights)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(z)
        spread = z[:d] - z[:d].mean()
        gradient = np.append(
            k.pullback(X, X, ev.kernel_gradient, K) + 2 * pull * spread,
            [linear * np.sum(ev.kernel_gradient * L), ev.ridge_gradient],
        )
        return ev.value + pull * (spread @ spread), gradient

    def after(intermediate_result):
        values.append(float(intermediate_result.fun))
        info = {"stage": f"{form}: all rows", "iteration": len(values), "value": values[-1]}
        stop = callback is not None and callback(info)
        if stop or (len(values) > 5 and values[-6] - values[-1] < 5e-4):
            raise StopIteration

    z0 = np.append(np.full(d, start[0]), start[1:])
    result = minimize(
        fun,
        z0,
        jac=True,
        method="L-BFGS-B",
        callback=after,
        options={"maxiter": max_iter},
        bounds=[SHARED_BOUNDS] * d + [(-12.0, 6.0), (np.log(1e-8), RIDGE_BOUNDS[1])],
    )
    z = result.x
    return z[:d], float(z[d]), float(z[d + 1]), np.array(values)


def _shared_matrix(kernel, X, model, weights):
    K = kernel(_widths(model.log_bandwidths))(X, X)
    A = (K + K.T) / 2 + model.linear_weight * (X @ X.T / X.shape[1] + 1)
    noise = np.exp(model.log_ridge) * (np.ones(len(X)) if weights is None else np.maximum(weights, 1e-8) ** -2)
    A[np.diag_indices(len(A))] += noise
    return A


def _exact_folds(kernel, X, Y, model, folds, weights):
    """Predictions of every fold without its rows, from one factorisation: ``y - (A^-1)_ff^-1 (A^-1 y)_f``."""
    factor = cho_factor(_shared_matrix(kernel, X, model, weights), lower=True, check_finite=False)
    coef = cho_solve(factor, Y, check_finite=False)
    predictions = []
    for _, valid in folds:
        unit = np.zeros((len(X), len(valid)))
        unit[valid, np.arange(len(valid))] = 1
        block = cho_solve(factor, unit, check_finite=False)[valid]
        predictions.append(Y[valid] - np.linalg.solve(block, coef[valid]))
    return np.concatenate(predictions)


def with_coefficients(
    model: Expansion,
    kernel: Callable,
    X: NDArray,
    Y: NDArray,
    weights: NDArray | None = None,
    total: Callable[[Callable], Moments] | None = None,
    objective: str = "evidence",
    linear: bool = True,
) -> Expansion:
    """Solve for the coefficients of an expansion on all rows.

    Parameters
    ----------
    model : Expansion
        The expansion.
    kernel : callable
        The class of its kernel.
    X, Y, weights
        The rows that `model.support` counts, targets, square roots of the row weights.
    total : callable or None, default=None
        ``total(function)`` merges ``function(X, Y, w)`` of blocks of all rows; None means X itself.
    objective : str, default="evidence"
        ``"interpolation"`` solves on the support alone.
    linear : bool, default=True
        Whether the features enter linearly as well.

    Returns
    -------
    Expansion
        The expansion with ``coef`` and ``linear``.
    """
    d, m = X.shape[1], len(model.support)
    if model.linear_weight is not None:
        factor = cho_factor(_shared_matrix(kernel, X, model, weights), lower=True, check_finite=False)
        coef = cho_solve(factor, Y, check_finite=False)
        linear = model.linear_weight * np.vstack([coef.sum(axis=0), X.T @ coef / d])
        return model._replace(coef=coef, linear=linear)
    k, S = kernel(_widths(model.log_bandwidths)), X[model.support]
    if objective == "interpolation":
        coef = interpolation(k(X, S), np.zeros((len(X), 0)), Y, np.exp(model.log_ridge), support=model.support).coef
        return model._replace(coef=coef, linear=np.zeros((1 + d, Y.shape[1])))
    function = partial(moments, kernel=k, S=S, fixed=partial(fixed_columns, linear=linear))
    sums = function(X, Y, None if weights is None else weights**2) if total is None else total(function)
    coef = solve_coefficients(sums, float(np.exp(model.log_ridge)))
    part = np.zeros((1 + d, Y.shape[1]))
    part[: len(coef) - m] = coef[m:]
    part[1:] /= np.sqrt(d)
    return model._replace(coef=coef[:m], linear=part)


def evaluate(model: Expansion, kernel: Callable, X: NDArray, source: NDArray) -> NDArray:
    """The predictions of one expansion.

    Parameters
    ----------
    model : Expansion
        With coefficients.
    kernel : callable
        The class of its kernel.
    X : ndarray of shape (n, d)
        The rows to predict.
    source : ndarray
        The rows that `model.support` counts.

    Returns
    -------
    ndarray of shape (n, n_outputs)
        The predictions.
    """
    K = kernel(_widths(model.log_bandwidths))(X, source[model.support])
    return K @ model.coef + model.linear[0] + X @ model.linear[1:]


def _widths(log_bandwidths):
    widths = np.exp(log_bandwidths)
    return widths if np.ndim(widths) else float(widths)


def fit_lab(
    kernels: Mapping[str, Callable],
    X: NDArray,
    Y: NDArray,
    settings: Settings,
    folds: Sequence,
    *,
    all_rows: bool = False,
    weights: NDArray | None = None,
    total: Callable[[Callable], Moments] | None = None,
    more: Sequence[Callable[[], tuple]] = (),
    callback: Callable | None = None,
) -> LABSolution:
    """Fit local kernel models of the given forms and weigh them by their out-of-fold predictions.

    Parameters
    ----------
    kernels : mapping of str to callable
        The forms to try: names and classes with one bandwidth argument.
    X : ndarray of shape (n, d)
        Standardised rows, in memory.
    Y : ndarray of shape (n, n_outputs)
        Standardised targets.
    settings : Settings
        The settings.
    folds : sequence of (train, validation)
        See `local_candidate`; an empty sequence means no validation: the form with the smallest objective is kept.
    all_rows : bool, default=False
        Whether kernel ridge regression with all rows as centres is also tried.
    weights : ndarray of shape (n,) or None, default=None
        Square roots of row weights with mean 1.
    total : callable or None, default=None
        See `with_coefficients`; where X is only a part of the rows.
    more : sequence of callable, default=()
        Further rows on which to `refine` the bandwidths, where X is only a part of the data.
    callback : callable or None, default=None
        ``callback({"stage", "iteration", "value"})`` after every iteration; True ends the descent under way.

    Returns
    -------
    LABSolution
        The model, its out-of-fold predictions, curves and certificate.
    """
    found = _candidates(kernels, X, Y, settings, folds, all_rows, weights, callback)
    rows = np.concatenate([valid for _, valid in folds]) if folds else np.zeros(0, dtype=int)
    share, errors = _weigh(found, Y[rows], None if weights is None else weights[rows], 3 if all_rows else 2)
    kept = [name for name in found if share[name] > 0]
    for name in kept:
        if name in kernels:
            found[name] = learn_again(found[name], name, kernels[name], X, Y, settings, weights, callback)
            if more and len(folds) == 1 and settings.objective != "interpolation":
                found[name] = _refined(found[name], kernels[name], X, Y, folds[0][1], more, settings, callback)
    parts = []
    for name in kept:
        model = found[name].expansion
        rows_of = total if model.linear_weight is None else None
        part = with_coefficients(
            model, kernels[model.form], X, Y, weights, rows_of, settings.objective, settings.linear
        )
        parts.append(part._replace(weight=share[name]))
    main = max(kept, key=lambda name: (found[name].expansion.linear_weight is None, share[name]))
    fitted = sum(p.weight * evaluate(p, kernels[p.form], X, X) for p in parts)
    return LABSolution(
        parts,
        rows,
        sum(share[name] * found[name].predictions for name in kept),
        {name: c.curve for name, c in found.items() if c.curve},
        errors,
        found[main].loss,
        found[main].stationarity,
        float(np.max(np.sum((fitted - Y) ** 2, axis=1))),
    )


def _candidates(kernels, X, Y, settings, folds, all_rows, weights, callback):
    """Everything that is tried, by name; forms after the first race against it."""
    found: dict[str, Candidate] = {}
    rival, supports = None, fold_supports(X, Y, folds, settings)
    for form, kernel in kernels.items():
        if all_rows:
            plain, learned = shared_candidates(form, kernel, np.asarray(X, dtype=float), Y, folds, weights, callback)
            found[f"{form}, all rows, one bandwidth"] = plain
            found[f"{form}, all rows"] = learned
        if folds:
            other = rival if settings.growth is None else None
            found[form] = rival = local_candidate(
                form, kernel, X, Y, folds, settings, weights, callback, other, supports
            )
        else:
            support = select_support(X, Y, settings.n_support, settings.selection, settings.seed)
            expansion, loss, certificate = learn_local(
                form, kernel, X, Y, support, settings, weights, callback=callback
            )
            found[form] = Candidate(expansion, np.zeros((0, Y.shape[1])), [], loss, certificate)
    return found


def _weigh(found, Y, weights, max_parts):
    """Weights and validation errors of the candidates; without validation rows the smallest objective has it all."""
    if len(Y):
        share = combine([c.predictions for c in found.values()], Y, weights, max_parts)
        errors = {name: float(np.mean(np.sum((c.predictions - Y) ** 2, axis=1))) for name, c in found.items()}
        return {name: float(w) for name, w in zip(found, share)}, errors
    best = min(found, key=lambda name: found[name].loss[-1] if len(found[name].loss) else np.inf)
    return {name: float(name == best) for name in found}, {}


def _refined(candidate, kernel, X, Y, valid, more, settings, callback):
    """The candidate after `refine` on further rows, with its longer validation curve."""
    model, last = candidate.expansion, candidate.curve[-1][0]
    error = min(e for _, e in candidate.curve)
    refined, later = refine(model, kernel, X[model.support], more, (X[valid], Y[valid]), settings, error, callback)
    curve = candidate.curve + [(last + 20 * (i + 1), e) for i, e in enumerate(later)]
    return candidate._replace(expansion=refined, curve=curve)
