"""Stage 1 of the hyper-kernel estimators: targets on pairs, the kernel learned from them, and its parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils.multiclass import type_of_target

from mercerless.core.blocks import is_dask
from mercerless.core.descent import Report
from mercerless.core.folds import cv_of_rows, fold_numbers, make_folds
from mercerless.core.memory import with_settings
from mercerless.core.validation import (
    check_labels,
    check_option,
    check_size,
    check_square,
    check_targets,
    relative_asymmetry,
)
from mercerless.hyper.solver import (
    BlockDesign,
    ComparedPath,
    Design,
    HyperSolution,
    InverseFactor,
    NormalEquations,
    SeparableDesign,
    Target,
    WhitenedPath,
    hyper_path,
    normal_equations,
    ridge_cg,
    ridge_exact,
    ridge_nonnegative,
    svr_admm,
    svr_exact,
    unit_of_targets,
    whiten,
    whitened_sums,
)
from mercerless.hyper.tensor import (
    TensorProblem,
    TensorSolution,
    item_basis,
    landmark_basis,
    tensor_ridge_missing,
)
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.base import Kernel
from mercerless.kernels.hyper import (
    GaussianHyper,
    HyperKernel,
    TensorHyper,
    WishartHyper,
    pair_index,
    random_pairs,
    take_pairs,
)
from mercerless.kernels.learned import HyperExpansion, TensorExpansion
from mercerless.kernels.stationary import Gaussian
from mercerless.lowrank import select_landmarks


@dataclass(frozen=True)
class PairTarget:
    """The values that the kernel should take at pairs of items, block by block.

    1 for equal classes and -1/(c-1) for others; the product of standardized values; a Gaussian of their difference; or
    a matrix of similarities, NaN if unknown.
    """

    kind: str  # "classes", "product", "gaussian" or "similarity"
    values: NDArray  # class codes, standardized values, or the matrix
    n_classes: int = 0

    def __call__(self, rows: Any, columns: Any) -> NDArray:
        """A block of the target."""
        if self.kind == "similarity":
            return self.values[rows][:, columns]
        left = self.values[rows][:, None]
        right = self.values[columns]
        if self.kind == "classes":
            return np.where(left == right, 1.0, -1.0 / max(1, self.n_classes - 1))
        if self.kind == "product":
            return left * right
        return np.exp(-0.5 * (left - right) ** 2)

    def take(self, index: NDArray) -> "PairTarget":
        """The target of a subset of the items."""
        if self.kind == "similarity":
            return replace(self, values=self.values[np.ix_(index, index)])
        return replace(self, values=self.values[index])

    @property
    def missing(self) -> bool:
        """Whether any entry is unknown."""
        return self.kind == "similarity" and bool(np.isnan(self.values).any())


class EncodedTarget(NamedTuple):
    """A target on pairs, and the classes or moments that encode it."""

    target: PairTarget
    classes: NDArray | None  # of labels
    moments: tuple[float, float] | None  # mean and standard deviation of values


def encode_target(
    y: Any,
    n_items: int,
    kind: str,
    classes: NDArray | None = None,
    moments: tuple[float, float] | None = None,
) -> EncodedTarget:
    """Turn labels, values or a similarity matrix into a `PairTarget`, by given classes or moments if any."""
    if y is None:
        raise ValueError(
            "this estimator requires y to be passed, but the target y is None: pass labels, values "
            "or a similarity matrix."
        )
    check_option("target", kind, ("auto", "classes", "product", "gaussian", "similarity"))
    array = _without_objects(np.asarray(y))
    if kind == "auto":
        kind = _kind_of_target(array)
    if kind == "similarity":
        return EncodedTarget(PairTarget(kind, check_similarity(array, n_items)), None, None)
    if array.ndim != 1 or len(array) != n_items:
        raise ValueError(
            f"y has shape {array.shape} but X has {n_items} rows; pass one label or value per row."
        )
    if kind == "classes":
        if np.any(array != array):
            raise ValueError("y contains NaN; leave rows without a label out.")
        if classes is None:
            classes = np.unique(array)
        codes = np.searchsorted(classes, array)
        if not np.array_equal(classes[np.minimum(codes, len(classes) - 1)], array):
            raise ValueError(
                "y has classes that were not seen in fit; score only data of the same classes."
            )
        return EncodedTarget(PairTarget(kind, codes, len(classes)), classes, None)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"target={kind!r} needs numbers, but y has the type {array.dtype}; use "
            "target='classes' for labels."
        )
    values = check_targets(array, "y")
    mean, spread = moments or (float(values.mean()), float(values.std()))
    target = PairTarget(kind, (values - mean) / (spread or 1.0))
    return EncodedTarget(target, None, (mean, spread))


def _without_objects(array: NDArray) -> NDArray:
    """Labels of type object as checked ones; as numbers if all are, such as those of a pandas column."""
    if array.dtype != object or array.ndim != 1:
        return array
    values = array.tolist()
    if all(isinstance(value, Real) for value in values):
        return np.array(values)
    return check_labels(array, "this estimator")


def _kind_of_target(array: NDArray) -> str:
    if array.ndim == 2 and array.shape[1] > 1:
        return "similarity"
    if type_of_target(array, input_name="y").startswith("continuous"):
        return "product"
    return "classes"


def order_by_content(X: Any, y: NDArray | None, *cvs: Any) -> NDArray | None:
    """An order of the rows that is the same for the same rows however they are arranged: by features, then by target.

    Draws of folds and landmarks from rows in this order give the same model. None if the rows must stay as they are:
    more than `LIMITS.large` of them, or if folds are given by position.
    """
    are_numbers = all(cv is None or isinstance(cv, Integral) for cv in cvs)
    if len(X) > LIMITS.large or not are_numbers:
        return None
    if is_dask(X):
        X = X.compute()
    codes = [] if y is None else [np.unique(y, return_inverse=True)[1]]
    last_feature_first = X.T[::-1]
    return np.lexsort([*codes, *last_feature_first])  # the last key counts first


def check_similarity(S: Any, n_items: int) -> NDArray:
    """A square, symmetrized matrix of similarities, NaN if unknown in both directions."""
    S = check_square(S, "y", allow_nan=True).astype(float)
    if len(S) != n_items:
        raise ValueError(
            f"y has similarities of {len(S)} items but X has {n_items} rows; pass the same items."
        )
    known = ~np.isnan(S)
    if not known.any():
        raise ValueError("y has no known similarity; pass at least one entry that is not NaN.")
    check_size(S[known], "y")
    if not known.all():
        S = np.where(known, S, S.T)
        known = ~np.isnan(S)
    if relative_asymmetry(np.where(known, S, 0.0)) > 1e-8:
        raise ValueError(
            "y is not symmetric, as a learned kernel is; average both directions with (y + y.T) / "
            "2."
        )
    return (S + S.T) / 2


def make_design(hyper: HyperKernel, X: NDArray, centers: NDArray) -> Design:
    """The map from coefficients to kernel values at pairs of rows of X."""
    if isinstance(hyper, GaussianHyper):
        features = hyper.features(X, centers)
        if len(X) > LIMITS.kept_items:
            return SeparableDesign(lambda rows, columns: hyper.decay(X[rows], X[columns]), features)
        decay = hyper.decay(X)  # kept, since every iteration needs it again
        return SeparableDesign(lambda rows, columns: decay[rows][:, columns], features)
    return BlockDesign(
        lambda rows, columns: hyper.blocks(X[rows], X[columns], centers), (len(X), len(centers))
    )


def choose_centers(hyper: HyperKernel, X: NDArray, n_centers: int, method: str, random) -> NDArray:
    """Centers of an expansion: random pairs, means of clusters of midpoints, pairs by their leverage scores, or a grid.

    A grid has all pairs of random items, of as many as have at most `n_centers` pairs.
    """
    n_centers = min(n_centers, len(X) * (len(X) + 1) // 2)
    if isinstance(hyper, GaussianHyper) and hyper.constant:
        n_centers = 1  # more would be copies of it
    if method == "uniform":
        return hyper.centers_of(random_pairs(X, n_centers, random))
    if method == "grid":
        items = X[random.permutation(len(X))[: items_of_grid(n_centers)]]
        first, second, _ = pair_index(len(items))
        return hyper.centers_of(take_pairs(items, first, second))
    if method == "leverage":
        candidates = random_pairs(X, min(4 * n_centers, 4000), random)
        return hyper.centers_of(candidates[leverage_sample(hyper(candidates), n_centers, random)])
    candidates = random_pairs(X, 10 * n_centers, random)
    middle = candidates.mean(axis=1)
    n_centers = min(n_centers, len(np.unique(middle, axis=0)))
    batch_size = max(1024, 2 * n_centers)
    clusters = MiniBatchKMeans(n_centers, n_init=1, batch_size=batch_size, random_state=random)
    means = clusters.fit(middle).cluster_centers_
    if isinstance(hyper, GaussianHyper):
        return means
    nearest = np.unique([np.argmin(((middle - mean) ** 2).sum(axis=1)) for mean in means])
    return hyper.centers_of(candidates[nearest])


def pairs_of_grid(n_items: int) -> int:
    """Number of pairs of this many items, including each item with itself."""
    return n_items * (n_items + 1) // 2


def items_of_grid(n_pairs: int) -> int:
    """The largest number of items with at most this many pairs."""
    return int((np.sqrt(8 * n_pairs + 1) - 1) // 2)


def leverage_sample(K: NDArray, size: int, random_state) -> NDArray:
    """Draw indices with probability proportional to their ridge leverage scores.

    The scores are ``diag(K (K + ridge)^-1)`` with the ridge at the size-th eigenvalue, so that they sum to about
    ``size``. Cost: one eigendecomposition of K.
    """
    n = len(K)
    if size >= n:
        return np.arange(n)
    values, vectors = eigh(K, driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    ridge = max(values[n - size], 1e-12 * values[-1], np.finfo(float).tiny)
    scores = np.square(vectors) @ (values / (values + ridge))
    scores = np.maximum(scores, 1e-12 * scores.max())
    return random_state.choice(n, size, replace=False, p=scores / scores.sum())


class Regression(NamedTuple):
    """How a kernel is learned; `choose_regression` replaces the name of a hyper-kernel and fills in alpha or C."""

    hyper_kernel: Any
    alpha: float | None = None
    # weight of the epsilon-insensitive loss; None: the one that belongs to alpha
    C: float | None = None
    epsilon: float | None = None  # half the width of its tube; None: the squared loss
    n_landmarks: int | None = None  # sections, or items of the tensor; None: all
    landmark_method: str = "uniform"
    n_parts: int = 1
    solver: str = "auto"
    nonnegative: bool = False
    fit_intercept: bool = False
    tol: float = 1e-5
    max_iter: int = 300
    n_jobs: int | None = None
    # of the targets: an absolute loss grows with it, a squared one and the penalty with its square
    unit: float = 1.0

    def loss_weight(self, n_items: float) -> float:
        """C for a part of this many items: as given, or the equivalent of the squared loss with alpha."""
        if self.C is not None:
            return float(self.C)
        assert self.alpha is not None
        return float(self.unit / (2.0 * self.alpha * n_items**2))


def with_solvable_penalty(task: Regression, target: PairTarget) -> Regression:
    """The task with the least penalty with which the tensor can be solved: iterations for missing entries need one."""
    is_tensor = isinstance(task.hyper_kernel, TensorHyper)
    if not (is_tensor and target.missing):
        return task
    return task._replace(alpha=max(task.alpha or 0.0, LIMITS.least_alpha_missing))


def learn_kernel(
    task: Regression, X: Any, target: PairTarget, random, report: Report | None = None
) -> tuple[Kernel, HyperSolution | TensorSolution]:
    """Learn the kernel from the target; also return the solution of the worst part. X may be lazy, rows by index."""
    hyper = task.hyper_kernel
    n_centers = task.n_landmarks
    if isinstance(hyper, TensorHyper):
        return _learn_tensor(task, X[:], target, random, report)
    if n_centers is None and not task.nonnegative:
        return _learn_all_pairs(task, X[:], target)
    if n_centers is None:
        # non-negative least squares needs the normal equations: the sections of all pairs, as landmarks
        n_centers = pairs_of_grid(len(X))
    if task.landmark_method == "grid":
        return _learn_on_grids(task, X, target, random, report)
    centers = choose_centers(hyper, X, n_centers, task.landmark_method, random)
    gram = hyper.gram(centers)
    parts = np.array_split(random.permutation(len(X)), task.n_parts)
    seeds = random.randint(2**31 - 1, size=len(parts))
    if len(parts) == 1:
        solutions = [_solve_part(task, X[:], target, centers, gram, seeds[0], report)]
    else:  # iterations in other processes are not reported
        solutions = Parallel(n_jobs=task.n_jobs)(
            delayed(with_settings(_solve_part))(
                task, X[part], target.take(part), centers, gram, seed
            )
            for part, seed in zip(parts, seeds)
        )
    coef = np.mean([s.coef for s in solutions], axis=0)
    intercept = float(np.mean([s.intercept for s in solutions]))
    worst = max(solutions, key=lambda solution: solution.certificate)
    return HyperExpansion(hyper, centers, coef, intercept), worst


@dataclass(frozen=True)
class KernelPath:
    """Kernels learned from the same pairs with several penalties; they share landmarks and normal equations."""

    hyper_kernel: HyperKernel
    centers: NDArray
    whitening: NDArray  # of the sections of the centers
    equations: NormalEquations  # whitened

    @classmethod
    def of_items(cls, task: Regression, X: NDArray, target: PairTarget, random) -> "KernelPath":
        """The path of all pairs of the items: kernels as `learn_kernel` gives them with the same random numbers."""
        assert task.n_landmarks is not None
        hyper = task.hyper_kernel
        centers = choose_centers(hyper, X, task.n_landmarks, task.landmark_method, random)
        whitening = whiten(hyper.gram(centers))
        design = make_design(hyper, X, centers)
        equations = normal_equations(design, target, task.fit_intercept, whitening=whitening)
        return cls(hyper, centers, whitening, equations)

    @staticmethod
    def serves(task: Regression, n_items: int) -> bool:
        """Whether `learn_kernel` would solve the normal equations of this regression, all items at once."""
        if task.n_landmarks is None or isinstance(task.hyper_kernel, TensorHyper):
            return False
        is_plain = task.epsilon is None and not task.nonnegative and task.n_parts == 1
        is_direct = task.solver != "cg" and not _is_large(task, n_items, task.n_landmarks)
        return is_plain and is_direct and task.landmark_method != "grid"

    @cached_property
    def _path(self) -> WhitenedPath:
        return WhitenedPath(self.equations, len(self.whitening))

    def kernel(self, alpha: float) -> HyperExpansion:
        """The kernel for one penalty."""
        solution = self._path.solution(self.whitening, alpha)
        return HyperExpansion(self.hyper_kernel, self.centers, solution.coef, solution.intercept)


class ComparedKernelPath(KernelPath):
    """The path of kernels that are only compared: without an eigendecomposition, so the last digits may differ."""

    @cached_property
    def _compared(self) -> ComparedPath:
        return ComparedPath(self.equations, len(self.whitening))

    def kernel(self, alpha: float) -> HyperExpansion:
        """The kernel for one penalty."""
        U, intercepts = self._compared.solve(np.array([alpha]))
        coef = solve_triangular(self.whitening.T, U[:, 0], check_finite=False)
        return HyperExpansion(self.hyper_kernel, self.centers, coef, float(intercepts[0]))


class OneKernel(NamedTuple):
    """The path of a constant hyper-kernel on labels or numbers, up to a factor: one Gaussian for all penalties.

    It and the target are both positive semi-definite matrices, so the factor is not negative.
    """

    hyper_kernel: GaussianHyper
    centers: NDArray  # one

    def kernel(self, alpha: float) -> HyperExpansion:
        """The kernel of factor one."""
        return HyperExpansion(self.hyper_kernel, self.centers, np.ones(len(self.centers)))


class FoldPaths:
    """The path of every training set of a cross-validation, from one pass over the pairs of all items.

    The landmarks are chosen among all items, held-out ones too, as they are for the final kernel: of these no target is
    used. The products of sections are summed for every pair of folds, and training sets add what they need.
    """

    def __init__(self, task: Regression, X: NDArray, fold_of: NDArray, random):
        assert task.n_landmarks is not None
        hyper = task.hyper_kernel
        self.hyper_kernel = hyper
        self.fit_intercept = task.fit_intercept
        self.X = X
        self.fold_of = fold_of
        self.centers = choose_centers(hyper, X, task.n_landmarks, task.landmark_method, random)
        # with an intercept beside it the factor of a constant hyper-kernel could be negative
        self.is_known = getattr(hyper, "constant", False) and not task.fit_intercept
        if self.is_known:
            return
        self.whitening = whiten(hyper.gram(self.centers))
        order = np.argsort(fold_of, kind="stable")
        edges = np.concatenate([[0], np.cumsum(np.bincount(fold_of))])
        folds = [slice(a, b) for a, b in pairwise(edges)]
        self.equations = fold_equations(
            make_design(hyper, X[order], self.centers),
            lambda rows, columns: np.zeros((rows.stop - rows.start, columns.stop - columns.start)),
            folds,
            task.fit_intercept,
            self.whitening,
        )

    def without(self, fold: int, target: PairTarget) -> KernelPath | OneKernel:
        """The path of the items outside of a fold; the target is theirs alone, in their order."""
        if self.is_known:
            return OneKernel(self.hyper_kernel, self.centers)
        rows = np.flatnonzero(self.fold_of != fold)
        inside = [value for key, value in self.equations.items() if fold not in key]
        products = NormalEquations.total(inside).gram
        design = make_design(self.hyper_kernel, self.X[rows], self.centers)
        T = target(slice(None), slice(None))
        sums = whitened_sums(design, self.whitening, T)
        if not self.fit_intercept:
            sums = sums[:-1]
        equations = NormalEquations(products, sums, float(np.sum(T**2)), float(T.size))
        return ComparedKernelPath(self.hyper_kernel, self.centers, self.whitening, equations)


def _is_large(task: Regression, n_items: int, n_centers: int) -> bool:
    """Whether conjugate gradients are cheaper than the normal equations, unless a solver is given."""
    if task.solver != "auto":
        return False
    if not isinstance(task.hyper_kernel, GaussianHyper):
        # every iteration would evaluate all sections again
        return n_centers > LIMITS.direct_sections
    return float(n_items) ** 2 * n_centers**2 > LIMITS.direct_work


def _learn_on_grids(
    task: Regression, X: Any, target: PairTarget, random, report: Report | None
) -> tuple[Kernel, HyperSolution]:
    """Algorithm 1 of the paper: every part has landmarks of its own, a grid of its items; the kernels are averaged."""
    parts = np.array_split(random.permutation(len(X)), task.n_parts)
    seeds = random.randint(2**31 - 1, size=len(parts))
    if len(parts) == 1:
        found = [_solve_on_grid(task, X[:], target, seeds[0], report)]
    else:
        found = Parallel(n_jobs=task.n_jobs)(
            delayed(with_settings(_solve_on_grid))(task, X[part], target.take(part), seed)
            for part, seed in zip(parts, seeds)
        )
    centers = np.concatenate([centers for centers, _ in found])
    solutions = [solution for _, solution in found]
    coef = np.concatenate([solution.coef for solution in solutions]) / len(parts)
    intercept = float(np.mean([solution.intercept for solution in solutions]))
    worst = max(solutions, key=lambda solution: solution.certificate)
    return HyperExpansion(task.hyper_kernel, centers, coef, intercept), worst


def _solve_on_grid(
    task: Regression, X: NDArray, target: PairTarget, seed: int, report: Report | None = None
) -> tuple[NDArray, HyperSolution]:
    """One part's own landmarks and its solution, equation (9)."""
    hyper = task.hyper_kernel
    assert task.n_landmarks is not None
    random = np.random.RandomState(seed)
    centers = choose_centers(hyper, X, task.n_landmarks, "grid", random)
    return centers, _solve_part(task, X, target, centers, hyper.gram(centers), seed, report)


def _learn_all_pairs(
    task: Regression, X: NDArray, target: PairTarget
) -> tuple[Kernel, HyperSolution]:
    hyper = task.hyper_kernel
    first, second, weight = pair_index(len(X))
    y = target(slice(None), slice(None))[first, second]
    known = ~np.isnan(y)
    first, second, weight, y = (column[known] for column in (first, second, weight, y))
    pairs = take_pairs(X, first, second)
    K = hyper(pairs)
    if task.epsilon is None:
        assert task.alpha is not None
        solution = ridge_exact(K, y, weight, task.alpha, task.fit_intercept)
    else:
        C = task.loss_weight(np.sqrt(weight.sum()))
        solution = svr_exact(K, y, weight, C, task.epsilon, task.fit_intercept, tol=task.tol)
    coef = solution.coef * hyper.center_scale(pairs)
    return HyperExpansion(hyper, hyper.centers_of(pairs), coef, solution.intercept), solution


def _solve_part(
    task: Regression,
    X: NDArray,
    target: PairTarget,
    centers: NDArray,
    gram: NDArray,
    seed: int,
    report: Report | None = None,
) -> HyperSolution:
    """One part's solution; a module-level function so that any joblib backend can run it."""
    design = make_design(task.hyper_kernel, X, centers)
    intercept = task.fit_intercept
    n, p = design.shape
    options: dict[str, Any] = {"tol": task.tol, "max_iter": task.max_iter, "callback": report}
    if task.epsilon is not None:
        options["fit_intercept"] = intercept
        return svr_admm(design, target, gram, task.loss_weight(n), task.epsilon, **options)
    assert task.alpha is not None
    if task.nonnegative:
        return ridge_nonnegative(normal_equations(design, target, intercept), gram, task.alpha)
    work = float(n) ** 2 * p**2
    if task.solver == "cg" or _is_large(task, n, p):
        random = np.random.RandomState(seed)
        may_be_direct = task.solver != "cg" and work <= 10 * LIMITS.direct_work
        if may_be_direct:  # more iterations than these would take longer than to solve directly
            options["max_iter"] = min(task.max_iter, p // 16)
        solution = ridge_cg(
            design,
            target,
            gram,
            task.alpha,
            fit_intercept=intercept,
            random_state=random,
            **options,
        )
        if not may_be_direct or solution.certificate <= task.tol:
            return solution
    whitening = whiten(gram)
    equations = normal_equations(design, target, intercept, whitening=whitening)
    return hyper_path(equations, whitening, np.array([task.alpha]))[0]


def _learn_tensor(
    task: Regression, X: NDArray, target: PairTarget, random, report: Report | None
) -> tuple[Kernel, TensorSolution]:
    hyper = task.hyper_kernel
    count = task.n_landmarks
    alpha = task.alpha
    assert alpha is not None
    if count is None or count >= len(X):
        landmarks = X
        basis = item_basis(hyper.items(X))
    else:
        method = "kmeans" if task.landmark_method == "kmeans" else "uniform"
        landmarks = X[select_landmarks(Gaussian(hyper.length_scale), X, count, method, random)]
        basis = landmark_basis(hyper.items(landmarks), hyper.items(X, landmarks))
    S = target(slice(None), slice(None))
    trends = tensor_trends(hyper, X)
    noise = hyper.item_noise
    if target.missing:
        options: dict[str, Any] = {"tol": task.tol, "max_iter": task.max_iter, "callback": report}
        solution = tensor_ridge_missing(S, basis, trends, noise, alpha, **options)
    else:
        solution = TensorProblem(S, basis, trends).solve(
            noise, alpha, with_items=hyper.remember_items
        )
    remembered: tuple = (None, None, None)
    if hyper.remember_items:
        remembered = (X, solution.item_coef, solution.item_values)
    kernel = TensorExpansion(
        hyper,
        landmarks,
        basis.projection,
        solution.core,
        hyper.knots(X),
        solution.trend_coef,
        *remembered,
    )
    return kernel, solution


def hyper_candidates(hyper_kernel: Any, X: NDArray) -> list:
    """The hyper-kernels to compare: the given one, or a family scaled to the data."""
    if isinstance(hyper_kernel, HyperKernel | TensorHyper):
        hyper_kernel._check(X.shape[1])
        return [hyper_kernel]
    spread = spread_of(X)
    if hyper_kernel == "gaussian":
        return [
            GaussianHyper(spread * a, b) for a in (0.25, 0.5, 1.0, 2.0) for b in (0.5, 1.0, 2.0)
        ]
    if hyper_kernel == "wishart":
        # (1 + u/2c)^-(b+3)/2 decays like the Gaussian exp(-u/2s) where c = s (b+3)/2
        return [
            WishartHyper(spread * a * float(np.sqrt((b + 3) / 2)), b)
            for a in (0.25, 0.5, 1.0, 2.0)
            for b in (1, 4, 16)
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


def spread_of(X: Any) -> float:
    """The root of the total variance of the features, the unit of all length scales that are tried."""
    rows = X[:: max(1, len(X) // 10_000)]
    return float(np.sqrt(rows.var(axis=0).sum())) or 1.0


class RegressionChoice(NamedTuple):
    """The task with its hyper-kernel and its penalty, and the relative error of every candidate."""

    task: Regression
    results: list[dict]
    # squared errors per fold of the choice, relative to those of a constant kernel; None if nothing was compared
    against_constant: NDArray | None = None


def choose_regression(
    task: Regression, X: Any, target: PairTarget, cv: Any, random, report: Report | None = None
) -> RegressionChoice:
    """Choose by leaving items out: every pair that touches a left-out item is left out."""
    candidates = hyper_candidates(task.hyper_kernel, X)
    if isinstance(candidates[0], TensorHyper):
        S = target(slice(None), slice(None))
        return _search_tensor(task, X, S, candidates, cv, random, report)
    if task.epsilon is None:
        return _search_ridge(task, X, target, candidates, cv, random, report)
    if target.kind == "similarity":
        task = task._replace(unit=unit_of_targets(target.values))
    # the squared loss ranks hyper-kernels alike, and is far faster
    squared = task._replace(alpha=None if len(candidates) > 1 else 1e-4)
    chosen, results, _ = _search_ridge(squared, X, target, candidates, cv, random, report)
    task = task._replace(hyper_kernel=chosen.hyper_kernel, alpha=chosen.alpha)
    if task.C is not None or len(X) < 3:
        return RegressionChoice(task, results)
    if isinstance(cv, Integral):
        cv = min(cv, 3)  # these fits are slow
    choice = _search_loss_weight(task, X, target, cv, random)
    return choice._replace(results=results + choice.results)


def _search_ridge(
    task: Regression,
    X: Any,
    target: PairTarget,
    candidates: list,
    cv: Any,
    random,
    report: Report | None,
) -> RegressionChoice:
    """Choose hyper-kernel and penalty on a sample of items and centers.

    All folds and penalties share one pass over the pairs per hyper-kernel.
    """
    alphas = np.array(LIMITS.alphas)
    if task.alpha is not None:
        alphas = np.array([task.alpha])
    if len(candidates) * len(alphas) == 1 or len(X) < 3:
        hyper = candidates[len(candidates) // 2]
        alpha = float(alphas[len(alphas) // 2])
        return RegressionChoice(task._replace(hyper_kernel=hyper, alpha=alpha), [])
    X, target, folds = _folded_sample(X, target, LIMITS.search_items, cv, random)
    pairs = random_pairs(X, LIMITS.search_centers, random)
    T = target(slice(None), slice(None))
    squares = fold_squares(T, folds) @ [2.0, 1.0]
    constant = constant_squares(T, folds) @ [2.0, 1.0]
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
        errors = np.sqrt(squared_errors.sum(axis=1) / max(squares.sum(), np.finfo(float).tiny))
        by_fold += list(squared_errors)
        results += [
            {"hyper_kernel": hyper, "alpha": float(alpha), "error": float(error)}
            for alpha, error in zip(alphas, errors)
        ]
        if report is not None and report({"stage": "search", "error": float(errors.min())}):
            break
    best = int(np.argmin([row["error"] for row in results]))
    task = task._replace(hyper_kernel=results[best]["hyper_kernel"], alpha=results[best]["alpha"])
    return RegressionChoice(task, results, _relative(by_fold[best], constant))


def _folded_sample(
    X: Any, target: PairTarget, most: int, cv: Any, random
) -> tuple[NDArray, PairTarget, list[slice]]:
    """At most this many items, ordered so that folds are consecutive, their target, and the folds as slices."""
    index = random.permutation(len(X))[:most]
    y = None if target.kind == "similarity" else target.values
    fold_of = fold_numbers(cv_of_rows(cv, index, len(X), y), X[index], random_state=random)
    order = index[np.argsort(fold_of, kind="stable")]
    edges = np.concatenate([[0], np.cumsum(np.bincount(fold_of))])
    return X[order], target.take(order), [slice(a, b) for a, b in pairwise(edges)]


def _best(results: list[dict]) -> dict:
    return min(results, key=lambda row: row["error"])


def _relative(errors: NDArray, constant: NDArray) -> NDArray | None:
    """Errors per fold relative to those of a constant kernel; None if a constant is perfect in a fold."""
    if np.any(constant <= 0):
        return None
    return errors / constant


def _search_loss_weight(
    task: Regression, X: Any, target: PairTarget, cv: Any, random
) -> RegressionChoice:
    """Choose the weight of the loss, through the alpha it belongs to, on a few items and all their pairs."""
    X, target, folds = _folded_sample(X, target, LIMITS.search_items_svr, cv, random)
    everything = np.arange(len(X))
    T = target(everything, everything)
    alphas = LIMITS.svr_alphas
    errors = np.zeros((len(alphas), len(folds)))
    for f, fold in enumerate(folds):
        rest = np.delete(everything, fold)
        for k, alpha in enumerate(alphas):
            kernel, _ = _learn_all_pairs(task._replace(alpha=alpha), X[rest], target.take(rest))
            errors[k, f] = float(np.nansum((kernel(X[fold], X) - T[fold]) ** 2))
    totals = errors.sum(axis=1) / max(fold_squares(T, folds).sum(), np.finfo(float).tiny)
    results = []
    for alpha, error in zip(alphas, np.sqrt(totals).tolist()):
        C = task._replace(alpha=alpha).loss_weight(len(X))
        results.append({"hyper_kernel": task.hyper_kernel, "alpha": alpha, "C": C, "error": error})
    best = int(np.argmin(totals))
    constant = constant_squares(T, folds).sum(axis=1)
    task = task._replace(alpha=alphas[best])
    return RegressionChoice(task, results, _relative(errors[best], constant))


def _search_tensor(
    task: Regression, X: Any, S: NDArray, candidates: list, cv: Any, random, report: Report | None
) -> RegressionChoice:
    """Choose the tensor hyper-kernel, its noise if it was given by name, and the penalty, on a sample of items.

    Scales, noise and trend are compared at ``alpha = 0`` without refits; then the penalty, with refits. Missing
    entries are first filled by a fit with medium parameters, and never counted as errors.
    """
    middle = candidates[2] if len(candidates) > 2 else candidates[0]
    named = isinstance(task.hyper_kernel, str)
    if len(X) < 3 or (not named and task.alpha is not None):
        return RegressionChoice(task._replace(hyper_kernel=middle, alpha=task.alpha or 0.0), [])
    index = random.permutation(len(X))[: LIMITS.search_items_tensor]
    cv = cv_of_rows(cv, index, len(X))
    X = X[index]
    S = S[np.ix_(index, index)]
    used = ~np.isnan(S)
    if not used.all():
        S = _fill(X, S, middle)
    folds = [fold for _, fold in make_folds(cv, X, random_state=random)]
    noises = LIMITS.tensor_noises if named else (middle.item_noise,)
    comparison = _TensorComparison(X, S, used, folds, noises, report)
    results = comparison.compare(candidates)
    if named and X.shape[1] <= LIMITS.search_features:
        # trends of single features at the two best scales only
        ranked = sorted(results, key=lambda row: row["error"])
        scales = list(dict.fromkeys(float(row["hyper_kernel"].length_scale) for row in ranked))[:2]
        results += comparison.compare(
            [_changed(middle, length_scale=scale, trend="features") for scale in scales]
        )
    hyper = _best(results)["hyper_kernel"]
    if task.alpha is not None:
        return RegressionChoice(task._replace(hyper_kernel=hyper), results)
    penalties, errors = comparison.compare_penalties(hyper)
    task = task._replace(hyper_kernel=hyper, alpha=_best(penalties)["alpha"])
    constant = constant_squares(np.where(used, S, np.nan), folds).sum(axis=1)
    best = int(np.argmin([row["error"] for row in penalties]))
    return RegressionChoice(
        task, results + penalties, _relative(errors[best].sum(axis=1), constant)
    )


class _TensorComparison:
    """Relative errors of tensor hyper-kernels on left-out items, both with training items and among themselves."""

    def __init__(
        self,
        X: NDArray,
        S: NDArray,
        used: NDArray,
        folds: list[NDArray],
        noises: Sequence[float],
        report: Report | None,
    ):
        self.X = X
        self.S = S
        self.used = used
        self.folds = folds
        self.noises = noises
        self.report = report
        self.squares = np.maximum(
            fold_squares(np.where(used, S, 0.0), folds).sum(axis=0), np.finfo(float).tiny
        )
        self.bases: dict[bytes, Any] = {}

    def compare(self, hypers: list[TensorHyper]) -> list[dict]:
        """Hyper-kernels with all noises, at ``alpha = 0``."""
        rows: list[dict] = []
        for hyper in hypers:
            key = np.asarray(hyper.length_scale, dtype=float).tobytes()
            if key not in self.bases:
                self.bases[key] = item_basis(hyper.items(self.X))
            problem = TensorProblem(self.S, self.bases[key], tensor_trends(hyper, self.X))
            for noise in self.noises:
                errors = problem.leave_out_errors(noise, self.folds, self.used)
                error = float(np.sqrt(np.mean(errors / self.squares)))
                noisy = _changed(hyper, item_noise=noise)
                rows.append({"hyper_kernel": noisy, "alpha": 0.0, "error": error})
            if self.report is not None and self.report(
                {"stage": "search", "error": _best(rows)["error"]}
            ):
                break
        return rows

    def compare_penalties(self, hyper: TensorHyper) -> tuple[list[dict], NDArray]:
        """All penalties, refitting without each fold; also the squared errors of every penalty, fold and kind."""
        X = self.X
        S = self.S
        alphas = LIMITS.tensor_alphas
        errors = np.zeros((len(alphas), len(self.folds), 2))
        for f, fold in enumerate(self.folds):
            rest = np.setdiff1d(np.arange(len(X)), fold)
            basis = item_basis(hyper.items(X[rest]))
            problem = TensorProblem(S[np.ix_(rest, rest)], basis, tensor_trends(hyper, X[rest]))
            knots = hyper.knots(X[rest])
            r = hyper.items(X[fold], X[rest]) @ basis.projection
            for k, alpha in enumerate(alphas):
                solution = problem.solve(hyper.item_noise, alpha)
                with_training_items = r @ solution.item_coef, rest
                among_themselves = r @ solution.core @ r.T, fold
                for place, (values, columns) in enumerate((with_training_items, among_themselves)):
                    if len(solution.trend_coef):
                        same = fold[:, None] == columns
                        values = values + hyper.trend_values(
                            X[fold], X[columns], knots, solution.trend_coef, same
                        )
                    block = np.ix_(fold, columns)
                    misses = np.where(self.used[block], values - S[block], 0.0)
                    errors[k, f, place] = float(np.sum(misses**2))
        totals = np.sqrt(np.mean(errors.sum(axis=1) / self.squares, axis=1))
        rows = [
            {"hyper_kernel": hyper, "alpha": alpha, "error": float(error)}
            for alpha, error in zip(alphas, totals)
        ]
        return rows, errors


def _changed(hyper: TensorHyper, **changes) -> TensorHyper:
    return TensorHyper(**{**hyper.get_params(deep=False), **changes})


def _fill(X: NDArray, S: NDArray, hyper: TensorHyper) -> NDArray:
    noise = 1e-2
    basis = item_basis(hyper.items(X))
    solution = tensor_ridge_missing(
        S, basis, tensor_trends(hyper, X), noise, 1e-2, tol=1e-3, max_iter=100
    )
    assert solution.item_values is not None
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


def tensor_trends(hyper: TensorHyper, X: NDArray) -> list[NDArray]:
    """The trend functions between the training items."""
    return list(hyper.trends(X, X, hyper.knots(X), np.eye(len(X), dtype=bool)))


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
    inverse = None if whitening is None else InverseFactor(whitening)
    return {
        (f, g): normal_equations(
            design, target, fit_intercept, whitening=inverse, rows=folds[f], columns=folds[g]
        )
        for f in range(len(folds))
        for g in range(f, len(folds))
    }


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
        inside = [value for key, value in equations.items() if fold not in key]
        outside = [value for key, value in equations.items() if fold in key]
        train = NormalEquations.total(inside)
        held = NormalEquations.total(outside)
        if nonnegative:
            solutions = [ridge_nonnegative(train, gram, alpha) for alpha in alphas]
            coef = np.column_stack([solution.coef for solution in solutions])
            intercepts = np.array([solution.intercept for solution in solutions])
        else:
            coef, intercepts = ComparedPath(train, len(gram)).solve(alphas)
        if len(held.rhs) > len(coef):
            coef = np.vstack([coef, intercepts])
        errors[:, fold] = held.errors(coef)
    return errors
