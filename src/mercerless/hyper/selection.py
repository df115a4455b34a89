"""Choose a hyper-kernel and its penalty by leaving items out: a pair is held out if one of its items is."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercerless.core.folds import cv_of_rows, fold_numbers
from mercerless.core.tuning import slices_of
from mercerless.core.units import length_scales
from mercerless.hyper.learning import Regression, Report, learn_kernel, make_design, tensor_trends
from mercerless.hyper.solver import (
    Design,
    NormalEquations,
    Target,
    WhitenedPath,
    normal_equations,
    ridge_nonnegative,
    whiten,
)
from mercerless.hyper.targets import PairTarget
from mercerless.hyper.tensor import TensorProblem, item_basis, tensor_ridge_missing
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.hyper import (
    GaussianHyper,
    HyperKernel,
    TensorHyper,
    WishartHyper,
    random_pairs,
)

Folds = Sequence[NDArray | slice]


def spread_of(X: NDArray) -> NDArray:
    """The unit of all length scales that are tried, for every feature: in it their variances add up to one."""
    return np.sqrt(2.0) * length_scales(X)


class RegressionChoice(NamedTuple):
    """The task with its hyper-kernel and its penalty, and the relative error of every candidate."""

    task: Regression
    results: list[dict]
    # squared errors per fold of the choice, relative to those of a constant kernel; None if nothing was compared
    against_constant: NDArray | None = None


def hyper_candidates(hyper_kernel: Any, X: NDArray, kind: str = "classes") -> list:
    """The hyper-kernels to compare: the given one, or a family with one length scale per feature.

    Given similarities may be those of the features as they are, so that one scale for all features is tried as well.
    """
    if isinstance(hyper_kernel, HyperKernel | TensorHyper):
        hyper_kernel._check(X.shape[1])
        return [hyper_kernel]
    spread = spread_of(X)
    spreads: list[Any] = [spread]
    if kind == "similarity":
        spreads.append(float(np.sqrt(X.var(axis=0).sum())) or 1.0)
    grid = [(scale * a, b) for scale in spreads for a in (0.25, 0.5, 1.0, 2.0) for b in range(3)]
    if hyper_kernel == "gaussian":
        return [GaussianHyper(scale, (0.5, 1.0, 2.0)[b]) for scale, b in grid]
    if hyper_kernel == "wishart":
        # (1 + u/2c)^-(b+3)/2 decays like the Gaussian exp(-u/2s) where c = s (b+3)/2
        degrees = (1, 4, 16)
        return [
            WishartHyper(scale * np.sqrt((degrees[b] + 3) / 2), degrees[b]) for scale, b in grid
        ]
    if hyper_kernel == "tensor":
        scales = (0.25, 0.5, 1.0, 2.0, 4.0)
        return [
            TensorHyper(spread * a, trend=trend) for trend in ("distance", None) for a in scales
        ]
    raise ValueError(
        "hyper_kernel must be 'auto', 'gaussian', 'wishart', 'tensor' or such an object, not "
        f"{hyper_kernel!r}."
    )


def choose_regression(
    task: Regression, X: NDArray, target: PairTarget, cv: Any, random, report: Report | None = None
) -> RegressionChoice:
    """Choose by leaving items out: every pair that touches a left-out item is left out."""
    candidates = hyper_candidates(task.hyper_kernel, X, target.kind)
    if isinstance(candidates[0], TensorHyper):
        choice = _search_tensor(task, X, target, candidates, cv, random, report)
        if target.missing:  # iterations for missing entries need a penalty
            alpha = max(choice.task.alpha or 0.0, LIMITS.least_alpha_missing)
            choice = choice._replace(task=choice.task._replace(alpha=alpha))
        return choice
    if task.epsilon is None:
        return _search_ridge(task, X, target, candidates, cv, random, report)
    # the squared loss ranks hyper-kernels alike, and is far faster
    squared = task._replace(alpha=None if len(candidates) > 1 else 1e-4)
    chosen, results, _ = _search_ridge(squared, X, target, candidates, cv, random, report)
    task = task._replace(hyper_kernel=chosen.hyper_kernel, alpha=chosen.alpha)
    if task.C is not None or len(X) < 3:
        return RegressionChoice(task, results)
    choice = _search_loss_weight(task, X, target, cv, random)
    return choice._replace(results=results + choice.results)


def _search_ridge(
    task: Regression,
    X: NDArray,
    target: PairTarget,
    candidates: list,
    cv: Any,
    random,
    report: Report | None,
) -> RegressionChoice:
    """Choose hyper-kernel and penalty on a sample of items and centers.

    All folds and penalties share one pass over the pairs per hyper-kernel.
    """
    alphas = np.array(LIMITS.alphas if task.alpha is None else [task.alpha])
    if len(candidates) * len(alphas) == 1 or len(X) < 3:
        hyper = candidates[len(candidates) // 2]
        alpha = float(alphas[len(alphas) // 2])
        return RegressionChoice(task._replace(hyper_kernel=hyper, alpha=alpha), [])
    X, target, folds = _folded_sample(X, target, LIMITS.search_items, cv, random)
    pairs = random_pairs(X, LIMITS.search_centers, random)
    T = target(slice(None), slice(None))
    squares = max(float((fold_squares(T, folds) @ [2.0, 1.0]).sum()), np.finfo(float).tiny)
    results: list[dict] = []
    by_fold: list[NDArray] = []
    for hyper in candidates:
        centers = hyper.centers_of(pairs)
        gram = hyper.gram(centers)
        # coefficients that cannot be negative cannot cancel either, so they need no whitening
        whitening = None if task.nonnegative else whiten(gram)
        design = make_design(hyper, X, centers)
        equations = fold_equations(design, target, folds, task.fit_intercept, whitening)
        squared_errors = ridge_validation(equations, gram, alphas, task.nonnegative)
        errors = np.sqrt(squared_errors.sum(axis=1) / squares)
        by_fold += list(squared_errors)
        results += _table(hyper, alphas, errors)
        if report is not None and report({"stage": "search", "error": float(errors.min())}):
            break
    best = _best(results)
    task = task._replace(hyper_kernel=results[best]["hyper_kernel"], alpha=results[best]["alpha"])
    constant = constant_squares(T, folds) @ [2.0, 1.0]
    return RegressionChoice(task, results, _relative(by_fold[best], constant))


def _folded_sample(
    X: NDArray, target: PairTarget, most: int, cv: Any, random
) -> tuple[NDArray, PairTarget, list[slice]]:
    """At most this many items, ordered so that folds are consecutive, their target, and the folds as slices."""
    index = random.permutation(len(X))[:most]
    y = None if target.kind == "similarity" else target.values
    fold_of = fold_numbers(cv_of_rows(cv, index, len(X), y), X[index], random_state=random)
    order = index[np.argsort(fold_of, kind="stable")]
    return X[order], target.take(order), slices_of(fold_of)


def _table(hyper: Any, alphas: Any, errors: NDArray) -> list[dict]:
    return [
        {"hyper_kernel": hyper, "alpha": float(alpha), "error": float(error)}
        for alpha, error in zip(alphas, errors)
    ]


def _best(results: list[dict]) -> int:
    return int(np.argmin([row["error"] for row in results]))


def _relative(errors: NDArray, constant: NDArray) -> NDArray | None:
    """Errors per fold relative to those of a constant kernel; None if a constant is perfect in a fold."""
    return None if np.any(constant <= 0) else errors / constant


def _search_loss_weight(
    task: Regression, X: NDArray, target: PairTarget, cv: Any, random
) -> RegressionChoice:
    """Choose the weight of the loss, through the alpha it belongs to, on a few items and all their pairs."""
    if isinstance(cv, Integral):
        cv = min(cv, 3)  # these fits are slow
    X, target, folds = _folded_sample(X, target, LIMITS.search_items_svr, cv, random)
    T = target(slice(None), slice(None))
    alphas = LIMITS.svr_alphas
    errors = np.zeros((len(alphas), len(folds)))
    for f, fold in enumerate(folds):
        rest = np.delete(np.arange(len(X)), fold)
        for k, alpha in enumerate(alphas):
            exact = task._replace(alpha=alpha, n_landmarks=None)
            kernel, _ = learn_kernel(exact, X[rest], target.take(rest), random)
            errors[k, f] = float(np.nansum((kernel(X[fold], X) - T[fold]) ** 2))
    squares = max(float(fold_squares(T, folds).sum()), np.finfo(float).tiny)
    results = _table(task.hyper_kernel, alphas, np.sqrt(errors.sum(axis=1) / squares))
    for row in results:
        row["C"] = task._replace(alpha=row["alpha"]).loss_weight(len(X))
    best = _best(results)
    constant = constant_squares(T, folds).sum(axis=1)
    task = task._replace(alpha=alphas[best])
    return RegressionChoice(task, results, _relative(errors[best], constant))


def _search_tensor(
    task: Regression,
    X: NDArray,
    target: PairTarget,
    candidates: list,
    cv: Any,
    random,
    report: Report | None,
) -> RegressionChoice:
    """Choose the tensor hyper-kernel, and its noise if it was given by name, on a sample of items.

    Scales, noise and trend are compared at ``alpha = 0`` without refits. Missing entries are first filled by a fit with
    medium parameters, and never counted as errors.
    """
    named = isinstance(task.hyper_kernel, str)
    middle = candidates[2] if named else candidates[0]
    if len(X) < 3 or (not named and task.alpha is not None):
        return RegressionChoice(task._replace(hyper_kernel=middle, alpha=task.alpha or 0.0), [])
    index = random.permutation(len(X))[: LIMITS.search_items_tensor]
    cv = cv_of_rows(cv, index, len(X))
    X = X[index]
    S = target.take(index).values
    used = ~np.isnan(S)
    if not used.all():
        S = _fill(X, S, middle)
    fold_of = fold_numbers(cv, X, random_state=random)
    folds = [np.flatnonzero(fold_of == fold) for fold in np.unique(fold_of)]
    comparison = _TensorComparison(X, S, used, folds, report)
    noises = LIMITS.tensor_noises if named else (middle.item_noise,)
    results = comparison.compare(candidates, noises)
    if named and X.shape[1] <= LIMITS.search_features:
        # trends of single features at the two best scales only
        ranked = sorted(results, key=lambda row: row["error"])
        scales = {row["hyper_kernel"].length_scale.tobytes(): row for row in reversed(ranked)}
        best_rows = sorted(scales.values(), key=lambda row: row["error"])[:2]
        with_features = [
            clone(row["hyper_kernel"]).set_params(trend="features") for row in best_rows
        ]
        results += comparison.compare(with_features, noises)
    hyper = results[_best(results)]["hyper_kernel"]
    alpha = LIMITS.tensor_alpha if task.alpha is None else task.alpha
    constant = constant_squares(np.where(used, S, np.nan), folds).sum(axis=1)
    errors = comparison.errors_by_fold(hyper).sum(axis=1)
    task = task._replace(hyper_kernel=hyper, alpha=alpha)
    return RegressionChoice(task, results, _relative(errors, constant))


class _TensorComparison:
    """Relative errors of tensor hyper-kernels on left-out items, both with training items and among themselves."""

    def __init__(
        self, X: NDArray, S: NDArray, used: NDArray, folds: list[NDArray], report: Report | None
    ):
        self.X = X
        self.S = S
        self.used = used
        self.folds = folds
        self.report = report
        squares = fold_squares(np.where(used, S, 0.0), folds).sum(axis=0)
        self.squares = np.maximum(squares, np.finfo(float).tiny)
        self.bases: dict[bytes, Any] = {}

    def compare(self, hypers: list[TensorHyper], noises: Sequence[float]) -> list[dict]:
        """Hyper-kernels with all noises, at ``alpha = 0``, without refits."""
        rows: list[dict] = []
        for hyper in hypers:
            problem = self._problem(hyper)
            for noise in noises:
                errors = problem.leave_out_errors(noise, self.folds, self.used)
                error = float(np.sqrt(np.mean(errors / self.squares)))
                noisy = clone(hyper).set_params(item_noise=noise)
                rows += _table(noisy, [0.0], np.array([error]))
            if self.report is not None and self.report({"stage": "search", "error": error}):
                break
        return rows

    def errors_by_fold(self, hyper: TensorHyper) -> NDArray:
        """Squared errors of every fold, with training items and within the fold."""
        problem = self._problem(hyper)
        noise = hyper.item_noise
        return np.array([problem.leave_out_errors(noise, [fold], self.used) for fold in self.folds])

    def _problem(self, hyper: TensorHyper) -> TensorProblem:
        key = np.asarray(hyper.length_scale, dtype=float).tobytes()
        if key not in self.bases:
            self.bases[key] = item_basis(hyper.items(self.X))
        return TensorProblem(self.S, self.bases[key], tensor_trends(hyper, self.X))


def _fill(X: NDArray, S: NDArray, hyper: TensorHyper) -> NDArray:
    """The similarities with unknown entries from a fit with medium parameters."""
    basis = item_basis(hyper.items(X))
    trends = tensor_trends(hyper, X)
    solution = tensor_ridge_missing(S, basis, trends, 1e-2, 1e-2, tol=1e-3, max_iter=100)
    assert solution.item_values is not None
    return np.where(np.isnan(S), solution.item_values, S)


def fold_squares(S: NDArray, folds: Folds) -> NDArray:
    """Sums of squares over fold x rest and over fold x fold, for every fold; NaN counts as 0."""
    square = np.nan_to_num(S) ** 2
    whole = np.array([square[fold].sum() for fold in folds])
    within = np.array([square[fold][:, fold].sum() for fold in folds])
    return np.column_stack([whole - within, within])


def constant_squares(S: NDArray, folds: Folds) -> NDArray:
    """The squared errors of the mean of all pairs of other items, of the same shape as `fold_squares`."""
    rows = []
    for fold in folds:
        rest = np.delete(np.delete(S, fold, axis=0), fold, axis=1)
        known = rest[~np.isnan(rest)]
        mean = known.mean() if len(known) else 0.0
        rows.append(fold_squares(S - mean, [fold])[0])
    return np.array(rows)


def fold_equations(
    design: Design,
    target: Target,
    folds: list[slice],
    fit_intercept: bool = False,
    whitening: NDArray | None = None,
) -> dict[tuple[int, int], NormalEquations]:
    """Normal equations of every pair of folds of items, in one pass over all pairs.

    Leaving a fold of items out means leaving out all pairs that touch it; the training equations of every fold are
    then sums of these, and so are its validation errors.
    """
    options: dict[str, Any] = {"whitening": whitening}
    return {
        (f, g): normal_equations(
            design, target, fit_intercept, rows=folds[f], columns=folds[g], **options
        )
        for f in range(len(folds))
        for g in range(f, len(folds))
    }


def without_fold(
    equations: dict[tuple[int, int], NormalEquations], fold: int
) -> tuple[NormalEquations, NormalEquations]:
    """The equations of the pairs that do not touch a fold of items, and of those that do."""
    inside = [value for key, value in equations.items() if fold not in key]
    outside = [value for key, value in equations.items() if fold in key]
    return NormalEquations.total(inside), NormalEquations.total(outside)


def ridge_validation(
    equations: dict[tuple[int, int], NormalEquations],
    gram: NDArray,
    alphas: NDArray,
    nonnegative: bool = False,
) -> NDArray:
    """Squared errors on pairs that touch a left-out fold, of shape (n_alphas, n_folds).

    The equations are whitened, unless coefficients must not be negative.
    """
    n_folds = 1 + max(g for _, g in equations)
    errors = np.zeros((len(alphas), n_folds))
    for fold in range(n_folds):
        train, held_out = without_fold(equations, fold)
        if nonnegative:
            solutions = [ridge_nonnegative(train, gram, alpha) for alpha in alphas]
            columns = [np.append(s.coef, s.intercept) for s in solutions]
        else:
            path = WhitenedPath(train, len(gram))
            columns = [np.append(*path.solve(alpha)[:2]) for alpha in alphas]
        coef = np.column_stack(columns)[: len(held_out.rhs)]
        errors[:, fold] = held_out.errors(coef)
    return errors
