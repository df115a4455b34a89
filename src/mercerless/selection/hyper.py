"""What the hyper-kernel estimators share: targets on pairs, centers, designs, and the choice of parameters."""

from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils.multiclass import type_of_target

from mercerless._validation import check_square, relative_asymmetry
from mercerless.kernels.hyper import GaussianHyper, HyperKernel, TensorHyper, WishartHyper, random_pairs
from mercerless.selection.folds import fold_numbers, make_folds
from mercerless.solvers.hyper import (
    BlockDesign,
    Design,
    HyperSolution,
    NormalEquations,
    SeparableDesign,
    Target,
    normal_equations,
    ridge_nonnegative,
    whiten,
    whitened_path,
)
from mercerless.solvers.hyper_tensor import TensorProblem, item_basis, tensor_ridge_missing

TARGETS = ("auto", "classes", "product", "gaussian", "similarity")
ALPHAS = np.logspace(-9, 0, 10)
TENSOR_ALPHAS = np.array([0.0, 1e-4, 1e-3, 1e-2, 1e-1])
TENSOR_NOISES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# parameters are chosen on at most this many items and centers
SEARCH_ITEMS = 300
SEARCH_CENTERS = 150
SEARCH_ITEMS_TENSOR = 500
# trends of single features cost two matrices each
SEARCH_FEATURES = 30


# items whose closeness to each other is kept in memory: 8 MB
_KEPT_ITEMS = 1000


class PairTarget(NamedTuple):
    """The values that the kernel should take at pairs of items, block by block.

    Parameters
    ----------
    kind : {"classes", "product", "gaussian", "similarity"}
        How ``values`` become a matrix: 1 for equal classes and -1/(c-1) for others; the product of standardised
        values; a Gaussian of their difference; or the matrix itself.
    values : ndarray
        Class codes, standardised values, or the matrix, NaN where unknown.
    n_classes : int
        The number c of classes.
    """

    kind: str
    values: NDArray
    n_classes: int = 0

    def __call__(self, rows: Any, columns: Any) -> NDArray:
        """A block of the target."""
        if self.kind == "similarity":
            return self.values[rows][:, columns]
        left, right = self.values[rows][:, None], self.values[columns]
        if self.kind == "classes":
            return np.where(left == right, 1.0, -1.0 / max(1, self.n_classes - 1))
        return left * right if self.kind == "product" else np.exp(-0.5 * (left - right) ** 2)

    def take(self, index: NDArray) -> "PairTarget":
        """The target of some of the items."""
        values = self.values[np.ix_(index, index)] if self.kind == "similarity" else self.values[index]
        return self._replace(values=values)

    @property
    def missing(self) -> bool:
        """Whether some entries are unknown."""
        return self.kind == "similarity" and bool(np.isnan(self.values).any())


def encode_target(
    y: Any, n_items: int, kind: str, classes: NDArray | None = None, moments: tuple[float, float] | None = None
) -> tuple[PairTarget, NDArray | None, tuple | None]:
    """Turn labels, values or a similarity matrix into a `PairTarget`, with what encoded it.

    Parameters
    ----------
    y : array-like
        Labels or values of shape (n_items,), or similarities of shape (n_items, n_items).
    n_items : int
        The number of rows of X.
    kind : str
        One of ``TARGETS``.
    classes : ndarray or None, default=None
        Classes seen in fit.
    moments : tuple of float or None, default=None
        Mean and standard deviation seen in fit.

    Returns
    -------
    tuple
        The target, the classes or None, the moments or None.
    """
    if kind not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {kind!r}.")
    array = np.asarray(y)
    if kind == "auto":
        if array.ndim == 2 and array.shape[1] > 1:
            kind = "similarity"
        else:
            kind = "product" if type_of_target(array, input_name="y").startswith("continuous") else "classes"
    if kind == "similarity":
        return PairTarget(kind, check_similarity(array, n_items)), None, None
    if array.ndim != 1 or len(array) != n_items:
        raise ValueError(f"y has shape {array.shape} but X has {n_items} rows; pass one label or value per row.")
    if kind == "classes":
        found = np.unique(array) if classes is None else classes
        codes = np.searchsorted(found, array)
        if classes is not None and not np.array_equal(found[np.minimum(codes, len(found) - 1)], array):
            raise ValueError("y has classes that were not seen in fit; score only data of the same classes.")
        return PairTarget(kind, codes, len(found)), found, None
    values = array.astype(float)
    mean, spread = moments or (float(values.mean()), float(values.std()))
    return PairTarget(kind, (values - mean) / (spread or 1.0)), None, (mean, spread)


def check_similarity(S: Any, n_items: int) -> NDArray:
    """A square, symmetrised matrix of similarities, NaN where unknown.

    Parameters
    ----------
    S : array-like of shape (n_items, n_items)
        The similarities.
    n_items : int
        The number of rows of X.

    Returns
    -------
    ndarray
        A symmetric float64 array; an entry known in one direction only is taken for both.
    """
    S = check_square(S, "y", allow_nan=True).astype(float)
    if len(S) != n_items:
        raise ValueError(
            f"y holds similarities of {len(S)} items but X has {n_items} rows; they must be the same items."
        )
    known = ~np.isnan(S)
    if not known.any():
        raise ValueError("y has no known similarity; pass at least one entry that is not NaN.")
    if not known.all():
        S = np.where(known, S, S.T)
        known = ~np.isnan(S)
    if relative_asymmetry(np.where(known, S, 0.0)) > 1e-8:
        raise ValueError("y is not symmetric; a learned kernel is: average both directions with (y + y.T) / 2 first.")
    return (S + S.T) / 2


def make_design(hyper: HyperKernel, X: NDArray, centers: NDArray) -> Design:
    """The map from coefficients to kernel values at pairs of rows of X.

    Parameters
    ----------
    hyper : HyperKernel
        The hyper-kernel.
    X : ndarray of shape (n, n_features)
        The items.
    centers : ndarray
        The centers.

    Returns
    -------
    SeparableDesign or BlockDesign
        The design.
    """
    if isinstance(hyper, GaussianHyper):
        if len(X) <= _KEPT_ITEMS:  # every iteration needs it again
            decay = hyper.decay(X)
            return SeparableDesign(lambda rows, columns: decay[rows][:, columns], hyper.features(X, centers))
        return SeparableDesign(lambda rows, columns: hyper.decay(X[rows], X[columns]), hyper.features(X, centers))
    return BlockDesign(lambda rows, columns: hyper.blocks(X[rows], X[columns], centers), (len(X), len(centers)))


def choose_centers(hyper: HyperKernel, X: NDArray, n_centers: int, method: str, random) -> NDArray:
    """Centers of an expansion.

    Parameters
    ----------
    hyper : HyperKernel
        The hyper-kernel.
    X : ndarray of shape (n, n_features)
        The items.
    n_centers : int
        How many; never more than there are pairs.
    method : {"uniform", "kmeans", "leverage"}
        Random pairs; means of clusters of midpoints; or pairs drawn by their leverage scores.
    random : RandomState
        The source of randomness.

    Returns
    -------
    ndarray
        Midpoints for the Gaussian hyper-kernel, pairs for the Wishart one.
    """
    n_centers = min(n_centers, len(X) * (len(X) + 1) // 2)
    if isinstance(hyper, GaussianHyper) and hyper.constant:
        n_centers = 1  # more would be copies of it
    if method == "uniform":
        return hyper.centers_of(random_pairs(X, n_centers, random))
    if method == "leverage":
        candidates = random_pairs(X, min(4 * n_centers, 4000), random)
        return hyper.centers_of(candidates[leverage_sample(hyper(candidates), n_centers, random)])
    candidates = random_pairs(X, 10 * n_centers, random)
    middle = candidates.mean(axis=1)
    n_centers = min(n_centers, len(np.unique(middle, axis=0)))
    means = MiniBatchKMeans(n_centers, n_init=1, batch_size=max(1024, 2 * n_centers), random_state=random).fit(middle)
    if isinstance(hyper, GaussianHyper):
        return means.cluster_centers_
    nearest = np.unique([np.argmin(((middle - c) ** 2).sum(axis=1)) for c in means.cluster_centers_])
    return hyper.centers_of(candidates[nearest])


def hyper_candidates(hyper_kernel: Any, X: NDArray) -> list:
    """The hyper-kernels to choose from: the given one, or a family scaled to the data.

    Parameters
    ----------
    hyper_kernel : str, HyperKernel or TensorHyper
        A name or an object.
    X : ndarray of shape (n, n_features)
        The items.

    Returns
    -------
    list
        Hyper-kernels, the middle one a reasonable guess.
    """
    if isinstance(hyper_kernel, HyperKernel | TensorHyper):
        hyper_kernel._check(X.shape[1])
        return [hyper_kernel]
    spread = spread_of(X)
    if hyper_kernel == "gaussian":
        return [GaussianHyper(spread * a, b) for a in (0.25, 0.5, 1.0, 2.0) for b in (0.5, 1.0, 2.0)]
    if hyper_kernel == "wishart":
        # (1 + u/2c)^-(b+3)/2 decays like the Gaussian exp(-u/2s) where c = s (b+3)/2
        return [
            WishartHyper(spread * a * float(np.sqrt((b + 3) / 2)), b) for a in (0.25, 0.5, 1.0, 2.0) for b in (1, 4, 16)
        ]
    if hyper_kernel == "tensor":
        scales = (0.25, 0.5, 1.0, 2.0, 4.0)
        return [TensorHyper(spread * a, trend=trend) for trend in ("distance", None) for a in scales]
    raise ValueError(
        f"hyper_kernel must be 'auto', 'gaussian', 'wishart', 'tensor' or such an object, not {hyper_kernel!r}."
    )


def spread_of(X: Any) -> float:
    """The root of the total variance of the features, the unit of all length scales that are tried.

    Parameters
    ----------
    X : array of shape (n, n_features)
        The items; of very many, ten thousand are looked at.

    Returns
    -------
    float
        The spread, 1 for equal items.
    """
    rows = X[:: max(1, len(X) // 10_000)]
    return float(np.sqrt(rows.var(axis=0).sum())) or 1.0


class Choice(NamedTuple):
    """What the search found.

    Parameters
    ----------
    hyper : HyperKernel or TensorHyper
        The hyper-kernel.
    alpha : float
        The ridge penalty.
    results : list of dict
        One entry per candidate with its relative error; empty when nothing was searched.
    """

    hyper: Any
    alpha: float
    results: list[dict]


def ordered_folds(fold_of: NDArray) -> tuple[NDArray, list[slice]]:
    """An order of the items in which folds are consecutive, and the folds as slices of it."""
    order = np.argsort(fold_of, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(fold_of))])
    return order, [slice(a, b) for a, b in pairwise(edges)]


def search_ridge(
    X: NDArray,
    target: PairTarget,
    candidates: list,
    alpha: float | None,
    *,
    cv: int,
    fit_intercept: bool,
    nonnegative: bool,
    random,
    callback: Callable[[dict], bool] | None = None,
) -> Choice:
    """Choose hyper-kernel and penalty by cross-validation split by items.

    Every pair that touches a left-out item is left out. Parameters are chosen on at most 300 random items and 150
    centers; all folds and penalties share one pass over the pairs per hyper-kernel.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        The items.
    target : PairTarget
        The target.
    candidates : list of HyperKernel
        The hyper-kernels.
    alpha : float or None
        The penalty; None to choose it too.
    cv : int
        Number of folds.
    fit_intercept, nonnegative : bool
        As in `HyperRidge`.
    random : RandomState
        The source of randomness.
    callback : callable or None, default=None
        Called with a dict after every hyper-kernel; a true result ends the search.

    Returns
    -------
    Choice
        The best.
    """
    alphas = ALPHAS if alpha is None else np.array([alpha])
    if len(candidates) * len(alphas) == 1 or len(X) < 3:
        return Choice(candidates[len(candidates) // 2], float(alphas[len(alphas) // 2]), [])
    index = random.permutation(len(X))[:SEARCH_ITEMS]
    order, folds = ordered_folds(fold_numbers(cv, X[index], random_state=random))
    X, target = X[index[order]], target.take(index[order])
    pairs = random_pairs(X, SEARCH_CENTERS, random)

    results = []
    for hyper in candidates:
        centers = hyper.centers_of(pairs)
        gram = hyper.gram(centers)
        # coefficients that cannot be negative cannot cancel either, so they need no whitening
        whitening = None if nonnegative else whiten(gram)
        solve = partial(_solve_nonnegative, gram=gram) if nonnegative else None
        equations = fold_equations(make_design(hyper, X, centers), target, folds, fit_intercept, whitening)
        errors = ridge_validation(equations, len(gram), alphas, solve)
        results += [
            {"hyper_kernel": hyper, "alpha": float(a), "error": float(np.sqrt(e))} for a, e in zip(alphas, errors)
        ]
        if callback is not None and callback({"stage": "search", "error": float(np.sqrt(errors.min()))}):
            break
    best = min(results, key=lambda row: row["error"])
    return Choice(best["hyper_kernel"], best["alpha"], results)


def _solve_nonnegative(equations: NormalEquations, alpha: float, gram: NDArray) -> HyperSolution:
    return ridge_nonnegative(equations, gram, alpha)


def search_tensor(
    X: NDArray,
    S: NDArray,
    candidates: list,
    alpha: float | None,
    *,
    search_noise: bool,
    cv: int,
    random,
    callback: Callable[[dict], bool] | None = None,
) -> Choice:
    """Choose the tensor hyper-kernel, its noise and the penalty by leaving folds of items out.

    Scales, noise and trend are compared at ``alpha = 0`` without refits; then the penalty, with refits. Missing
    entries are first filled by a fit with middling parameters, and never counted as errors.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        The items.
    S : ndarray of shape (n, n)
        The similarities, NaN where unknown.
    candidates : list of TensorHyper
        The hyper-kernels.
    alpha : float or None
        The penalty; None to choose it too.
    search_noise : bool
        Whether the noise is chosen as well.
    cv : int
        Number of folds.
    random : RandomState
        The source of randomness.
    callback : callable or None, default=None
        Called with a dict after every hyper-kernel; a true result ends the comparison of hyper-kernels.

    Returns
    -------
    Choice
        The best.
    """
    middle = candidates[2] if len(candidates) > 2 else candidates[0]
    missing = bool(np.isnan(S).any())
    if len(X) < 3 or (len(candidates) == 1 and not search_noise and alpha is not None):
        return Choice(middle, 0.0 if alpha is None else alpha, [])
    index = random.permutation(len(X))[:SEARCH_ITEMS_TENSOR]
    X, S = X[index], S[np.ix_(index, index)]
    used = ~np.isnan(S)
    if missing:
        S = _fill(X, S, middle)
    folds = [fold for _, fold in make_folds(cv, X, random_state=random)]
    squares = _fold_squares(S, folds, used)
    bases: dict[bytes, Any] = {}

    def compare(hypers: list) -> list[dict]:
        rows = []
        for hyper in hypers:
            key = np.asarray(hyper.length_scale, dtype=float).tobytes()
            if key not in bases:
                bases[key] = item_basis(hyper.items(X))
            problem = TensorProblem(S, bases[key], tensor_trends(hyper, X))
            for noise in TENSOR_NOISES if search_noise else (hyper.item_noise,):
                errors = problem.leave_out_errors(noise, folds, used)
                error = float(np.sqrt(np.mean(errors / squares)))
                rows.append({"hyper_kernel": _changed(hyper, item_noise=noise), "alpha": 0.0, "error": error})
            if callback is not None and callback({"stage": "search", "error": min(row["error"] for row in rows)}):
                break
        return rows

    results = compare(candidates)
    if search_noise and X.shape[1] <= SEARCH_FEATURES:  # trends of single features at the best scales only
        ranked = sorted(results, key=lambda row: row["error"])
        scales = list(dict.fromkeys(float(row["hyper_kernel"].length_scale) for row in ranked))[:2]
        results += compare([_changed(middle, length_scale=scale, trend="features") for scale in scales])
    best = min(results, key=lambda row: row["error"])
    if alpha is None:
        penalties = _refit_errors(X, S, best["hyper_kernel"], folds, used, squares)
        results += penalties
        best = min(penalties, key=lambda row: row["error"])
        alpha = best["alpha"]
    return Choice(best["hyper_kernel"], alpha, results)


def _changed(hyper: TensorHyper, **changes) -> TensorHyper:
    return TensorHyper(**{**hyper.get_params(deep=False), **changes})


def _fill(X: NDArray, S: NDArray, hyper: TensorHyper) -> NDArray:
    noise = 1e-2
    basis = item_basis(hyper.items(X))
    solution = tensor_ridge_missing(S, basis, tensor_trends(hyper, X), noise, 1e-2, tol=1e-3, max_iter=100)
    return np.where(np.isnan(S), solution.item_values, S)


def _fold_squares(S: NDArray, folds: list[NDArray], used: NDArray) -> NDArray:
    """Squares of the entries whose errors count: fold x rest and fold x fold."""
    square = np.where(used, S, 0.0) ** 2
    whole, within = 0.0, 0.0
    for fold in folds:
        whole += float(square[fold].sum())
        within += float(square[np.ix_(fold, fold)].sum())
    return np.maximum([whole - within, within], np.finfo(float).tiny)


def _refit_errors(
    X: NDArray, S: NDArray, hyper: TensorHyper, folds: list[NDArray], used: NDArray, squares: NDArray
) -> list[dict]:
    """The validation error of every penalty, refitting without each fold."""
    errors = np.zeros((len(TENSOR_ALPHAS), 2))
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(X)), fold)
        basis = item_basis(hyper.items(X[rest]))
        problem = TensorProblem(S[np.ix_(rest, rest)], basis, tensor_trends(hyper, X[rest]))
        knots = hyper.knots(X[rest])
        r = hyper.items(X[fold], X[rest]) @ basis.projection
        for k, penalty in enumerate(TENSOR_ALPHAS):
            solution = problem.solve(hyper.item_noise, penalty)
            blocks = (r @ solution.item_coef, rest), (r @ solution.core @ r.T, fold)
            for part, (values, columns) in enumerate(blocks):
                if len(solution.trend_coef):
                    same = fold[:, None] == columns
                    values = values + hyper.trend_values(X[fold], X[columns], knots, solution.trend_coef, same)
                gap = np.where(used[np.ix_(fold, columns)], values - S[np.ix_(fold, columns)], 0.0)
                errors[k, part] += float(np.sum(gap**2))
    totals = np.sqrt(np.mean(errors / squares, axis=1))
    return [{"hyper_kernel": hyper, "alpha": float(a), "error": float(e)} for a, e in zip(TENSOR_ALPHAS, totals)]


def tensor_trends(hyper: TensorHyper, X: NDArray) -> list[NDArray]:
    """The trend functions between the training items.

    Parameters
    ----------
    hyper : TensorHyper
        The hyper-kernel.
    X : ndarray of shape (n, n_features)
        The items.

    Returns
    -------
    list of ndarray of shape (n, n)
        One matrix per trend function.
    """
    return list(hyper.trends(X, X, hyper.knots(X), np.eye(len(X), dtype=bool)))


def leverage_sample(K: NDArray, size: int, random_state) -> NDArray:
    """Draw indices with probability proportional to their ridge leverage scores.

    The scores are ``diag(K (K + ridge)^-1)`` with the ridge at the size-th eigenvalue, so that they sum to about
    ``size``. Cost: one eigendecomposition of K.
    """
    n = len(K)
    if size >= n:
        return np.arange(n)
    values, vectors = eigh(K)
    values = np.maximum(values, 0.0)
    ridge = max(values[n - size], 1e-12 * values[-1], np.finfo(float).tiny)
    scores = np.square(vectors) @ (values / (values + ridge))
    scores = np.maximum(scores, 1e-12 * scores.max())
    return random_state.choice(n, size, replace=False, p=scores / scores.sum())


def fold_equations(
    design: Design, target: Target, folds: list[slice], fit_intercept: bool = False, whitening: NDArray | None = None
) -> dict[tuple[int, int], NormalEquations]:
    """Normal equations of every pair of folds of items, in one pass over all pairs.

    Leaving a fold of items out means leaving out all pairs that touch it; the training equations of every fold are
    then sums of these, and so are its validation errors.
    """
    return {
        (f, g): normal_equations(design, target, fit_intercept, whitening=whitening, rows=folds[f], columns=folds[g])
        for f in range(len(folds))
        for g in range(f, len(folds))
    }


def ridge_validation(
    equations: dict[tuple[int, int], NormalEquations], n_terms: int, alphas: NDArray, solve: Callable | None = None
) -> NDArray:
    """Squared errors on pairs that touch a left-out fold, summed over folds, relative to the target's square."""
    n_folds = 1 + max(g for _, g in equations)
    errors, square = np.zeros(len(alphas)), np.finfo(float).tiny
    for fold in range(n_folds):
        inside = [value for key, value in equations.items() if fold not in key]
        outside = [value for key, value in equations.items() if fold in key]
        train, held = (reduce(add, parts) for parts in (inside, outside))
        square += held.square
        if solve is None:
            solutions = [(u, b) for u, b, _ in whitened_path(train, n_terms, alphas)]
        else:
            solutions = [(s.coef, s.intercept) for s in (solve(train, alpha) for alpha in alphas)]
        for k, (c, b) in enumerate(solutions):
            errors[k] += held.error(np.append(c, b) if len(held.rhs) > len(c) else c)
    return errors / square
