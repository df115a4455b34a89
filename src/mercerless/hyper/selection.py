"""Choose a hyper-kernel and its penalty by leaving items out: a pair is held out if one of its items is."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercerless.core.folds import cv_of_rows, fold_numbers
from mercerless.core.tuning import slices_of
from mercerless.core.units import length_scales
from mercerless.hyper.learning import Regression, make_design, tensor_trends
from mercerless.hyper.solver import NormalEquations, WhitenedPath, normal_equations, whiten
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
from mercerless.kernels.learned import HyperExpansion


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
    if hyper_kernel == "tensor":
        return [TensorHyper(spread * a) for a in (0.25, 0.5, 1.0, 2.0, 4.0)]
    scales: list[Any] = [spread * a for a in LIMITS.length_scales]
    if kind == "similarity":
        common = float(np.sqrt(X.var(axis=0).sum())) or 1.0
        scales += [common * a for a in LIMITS.length_scales]
    if hyper_kernel == "gaussian":
        return [GaussianHyper(scale, of_pairs) for scale in scales for of_pairs in (0.5, 1.0, 2.0)]
    if hyper_kernel == "wishart":
        # (1 + u/2c)^-(b+3)/2 decays like the Gaussian exp(-u/2s) where c = s (b+3)/2
        return [
            WishartHyper(scale * np.sqrt((b + 3) / 2), b) for scale in scales for b in (1, 4, 16)
        ]
    raise ValueError(
        "hyper_kernel must be 'auto', 'gaussian', 'wishart', 'tensor' or such an object, not "
        f"{hyper_kernel!r}."
    )


def choose_regression(
    task: Regression, X: NDArray, target: PairTarget, cv: Any, random: Any
) -> RegressionChoice:
    """Choose by leaving items out: every pair that touches a left-out item is left out."""
    candidates = hyper_candidates(task.hyper_kernel, X, target.kind)
    if not isinstance(candidates[0], TensorHyper):
        return _search_ridge(task, X, target, candidates, cv, random)
    choice = _search_tensor(task, X, target, candidates, cv, random)
    if target.missing:  # iterations for missing entries need a penalty
        alpha = max(choice.task.alpha, LIMITS.least_alpha_missing)
        choice = choice._replace(task=choice.task._replace(alpha=alpha))
    return choice


def _search_ridge(
    task: Regression, X: NDArray, target: PairTarget, candidates: list, cv: Any, random: Any
) -> RegressionChoice:
    """Choose hyper-kernel and penalty on a sample of items and pairs.

    The squared loss is far faster than that of support vectors, and ranks hyper-kernels and penalties alike.
    """
    alphas = np.array(LIMITS.alphas if task.epsilon is None else LIMITS.svr_alphas)
    if task.alpha is not None:
        alphas = np.array([task.alpha])
    if len(candidates) * len(alphas) == 1 or len(X) < 3:
        hyper = candidates[len(candidates) // 2]
        alpha = float(alphas[len(alphas) // 2])
        return RegressionChoice(task._replace(hyper_kernel=hyper, alpha=alpha), [])
    rows = random.permutation(len(X))[: LIMITS.search_items]
    cv = cv_of_rows(cv, rows, len(X), None if target.kind == "similarity" else target.values)
    fold_of = fold_numbers(cv, X[rows], random_state=random)
    rows = rows[np.argsort(fold_of, kind="stable")]
    folds = slices_of(fold_of)
    X = X[rows]
    target = target.take(rows)
    pairs = random_pairs(X, LIMITS.search_centers, random)
    T = target(slice(None), slice(None))
    squares = max(float((fold_squares(T, folds) @ [2.0, 1.0]).sum()), np.finfo(float).tiny)
    results: list[dict] = []
    by_fold: list[NDArray] = []
    for hyper in candidates:
        left_out = LeftOutItems(hyper, X, target, folds, pairs, task.fit_intercept)
        for alpha, errors in zip(alphas.tolist(), left_out.errors(alphas)):
            by_fold.append(errors)
            error = float(np.sqrt(errors.sum() / squares))
            results.append({"hyper_kernel": hyper, "alpha": alpha, "error": error})
    constant = constant_squares(T, folds) @ [2.0, 1.0]
    return _best(task, results, by_fold, constant)


def _best(
    task: Regression, results: list[dict], by_fold: list[NDArray], constant: NDArray
) -> RegressionChoice:
    """The candidate with the smallest error, and its squared errors per fold beside a constant's."""
    best = int(np.argmin([row["error"] for row in results]))
    hyper = results[best]["hyper_kernel"]
    task = task._replace(hyper_kernel=hyper, alpha=results[best]["alpha"])
    relative = None
    if np.all(constant > 0):  # else a constant is perfect in a fold
        relative = by_fold[best] / constant
    return RegressionChoice(task, results, relative)


def _search_tensor(
    task: Regression,
    X: NDArray,
    target: PairTarget,
    candidates: list[TensorHyper],
    cv: Any,
    random: Any,
) -> RegressionChoice:
    """Choose the tensor hyper-kernel, and its noise if it was given by name, on a sample of items.

    Scales and noise are compared at ``alpha = 0`` without refits, then trends of single features at the best scale.
    Missing entries are first filled by a fit with medium parameters, and never counted as errors.
    """
    alpha = LIMITS.tensor_alpha if task.alpha is None else task.alpha
    task = task._replace(alpha=alpha)
    middle = candidates[len(candidates) // 2]
    is_given = task.hyper_kernel is middle
    if len(X) < 3 or is_given:
        return RegressionChoice(task._replace(hyper_kernel=middle), [])
    rows = random.permutation(len(X))[: LIMITS.search_items_tensor]
    cv = cv_of_rows(cv, rows, len(X))
    X = X[rows]
    S = target.take(rows).values
    used = ~np.isnan(S)
    if not used.all():
        S = _fill(X, S, middle)
    fold_of = fold_numbers(cv, X, random_state=random)
    folds = [np.flatnonzero(fold_of == fold) for fold in np.unique(fold_of)]
    squares = fold_squares(np.where(used, S, 0.0), folds).sum(axis=0)
    squares = np.maximum(squares, np.finfo(float).tiny)
    results: list[dict] = []
    by_fold: list[NDArray] = []

    def compare(hyper: TensorHyper) -> None:
        problem = TensorProblem(S, item_basis(hyper.items(X)), tensor_trends(hyper, X))
        for noise in LIMITS.tensor_noises:
            errors = problem.leave_out_errors(noise, folds, used)
            by_fold.append(errors.sum(axis=1))
            error = float(np.sqrt(np.mean(errors.sum(axis=0) / squares)))
            noisy = clone(hyper).set_params(item_noise=noise)
            results.append({"hyper_kernel": noisy, "alpha": alpha, "error": error})

    for hyper in candidates:
        compare(hyper)
    if X.shape[1] <= LIMITS.search_features:
        best = min(results, key=lambda row: row["error"])["hyper_kernel"]
        compare(clone(best).set_params(trend="features"))
    constant = constant_squares(np.where(used, S, np.nan), folds).sum(axis=1)
    return _best(task, results, by_fold, constant)


def _fill(X: NDArray, S: NDArray, hyper: TensorHyper) -> NDArray:
    """The similarities with unknown entries from a fit with medium parameters."""
    basis = item_basis(hyper.items(X))
    trends = tensor_trends(hyper, X)
    solution = tensor_ridge_missing(S, basis, trends, 1e-2, 1e-2, tol=1e-3, max_iter=100)
    return np.where(np.isnan(S), solution.item_values, S)


def fold_squares(S: NDArray, folds: Sequence[NDArray | slice]) -> NDArray:
    """Sums of squares over fold x rest and over fold x fold, for every fold; NaN counts as 0."""
    square = np.nan_to_num(S) ** 2
    whole = np.array([square[fold].sum() for fold in folds])
    within = np.array([square[fold][:, fold].sum() for fold in folds])
    return np.column_stack([whole - within, within])


def constant_squares(S: NDArray, folds: Sequence[NDArray | slice]) -> NDArray:
    """The squared errors of the mean of all pairs of other items, of the same shape as `fold_squares`."""
    rows = []
    for fold in folds:
        rest = np.delete(np.delete(S, fold, axis=0), fold, axis=1)
        known = rest[~np.isnan(rest)]
        mean = known.mean() if len(known) else 0.0
        rows.append(fold_squares(S - mean, [fold])[0])
    return np.array(rows)


class LeftOutItems:
    """Ridge regressions without each fold of items: folds and penalties share one pass over the pairs.

    Leaving a fold of items out means leaving out all pairs that touch it; the equations of the other pairs are sums
    of those of pairs of folds, and so are the validation errors.
    """

    def __init__(
        self,
        hyper: HyperKernel,
        X: NDArray,
        target: PairTarget,
        folds: list[slice],
        pairs: NDArray,
        fit_intercept: bool = False,
    ):
        self.hyper = hyper
        self.n_folds = len(folds)
        self.centers = hyper.centers_of(pairs)
        self.whitening = whiten(hyper.gram(self.centers))
        design = make_design(hyper, X, self.centers)
        self.equations = {
            (f, g): normal_equations(
                design,
                target,
                fit_intercept,
                whitening=self.whitening,
                rows=folds[f],
                columns=folds[g],
            )
            for f in range(len(folds))
            for g in range(f, len(folds))
        }

    def path(self, fold: int) -> WhitenedPath:
        """The regressions on all pairs that do not touch a fold."""
        inside = [equations for key, equations in self.equations.items() if fold not in key]
        return WhitenedPath(NormalEquations.total(inside), len(self.centers))

    def kernel(self, fold: int, alpha: float) -> HyperExpansion:
        """The kernel that is learned without a fold."""
        solution = self.path(fold).solution(self.whitening, alpha)
        return HyperExpansion(self.hyper, self.centers, solution.coef)

    def errors(self, alphas: NDArray) -> NDArray:
        """Squared errors on pairs that touch a left-out fold, of shape (n_alphas, n_folds)."""
        errors = []
        for fold in range(self.n_folds):
            touching = [equations for key, equations in self.equations.items() if fold in key]
            held_out = NormalEquations.total(touching)
            path = self.path(fold)
            columns = [np.append(*path.solve(alpha)[:2]) for alpha in alphas]
            coef = np.column_stack(columns)[: len(held_out.rhs)]
            errors.append(held_out.errors(coef))
        return np.column_stack(errors)
