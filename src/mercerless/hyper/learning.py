"""Learn a kernel from a target on pairs of items: centers, parts of the items, and the right solver."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import eigh

from mercerless.core.memory import check_memory, with_settings
from mercerless.hyper.solver import (
    BlockDesign,
    Design,
    HyperSolution,
    SeparableDesign,
    WhitenedPath,
    normal_equations,
    ridge_cg,
    ridge_exact,
    ridge_nonnegative,
    svr_admm,
    svr_exact,
    whiten,
)
from mercerless.hyper.targets import PairTarget
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
    pair_index,
    random_pairs,
    take_pairs,
)
from mercerless.kernels.learned import HyperExpansion, TensorExpansion

Report = Callable[[dict], bool]


class Regression(NamedTuple):
    """How a kernel is learned; the search replaces the name of a hyper-kernel and fills in alpha or C."""

    hyper_kernel: Any
    alpha: Any = None  # a number; None until it is chosen
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

    def loss_weight(self, n_items: float) -> float:
        """C for a part of this many items: as given, or the equivalent of the squared loss with alpha."""
        if self.C is not None:
            return float(self.C)
        return float(1.0 / (2.0 * self.alpha * n_items**2))


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
    """Centers of an expansion: random pairs, pairs by their leverage scores, or a grid.

    A grid has all pairs of random items, of as many as have at most `n_centers` pairs.
    """
    n_centers = min(n_centers, pairs_of_grid(len(X)))
    if hyper.constant:
        n_centers = 1  # more would be copies of it
    if method == "uniform":
        return hyper.centers_of(random_pairs(X, n_centers, random))
    if method == "grid":
        n_items = int((np.sqrt(8 * n_centers + 1) - 1) // 2)
        first, second, _ = pair_index(n_items)
        return hyper.centers_of(take_pairs(X[random.permutation(len(X))], first, second))
    candidates = random_pairs(X, min(4 * n_centers, 4000), random)
    return hyper.centers_of(candidates[leverage_sample(hyper(candidates), n_centers, random)])


def pairs_of_grid(n_items: int) -> int:
    """Number of pairs of this many items, including each item with itself."""
    return n_items * (n_items + 1) // 2


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


def learn_kernel(
    task: Regression, X: NDArray, target: PairTarget, random, report: Report | None = None
) -> tuple[Kernel, HyperSolution | TensorSolution]:
    """Learn the kernel from the target; also return the solution of the worst part.

    Parts share their centers, and the average of their kernels is as small as one of them; with a grid every part has
    its own, Algorithm 1 of the paper.
    """
    if isinstance(task.hyper_kernel, TensorHyper):
        return _learn_tensor(task, X, target, random, report)
    if task.n_landmarks is None and not task.nonnegative:
        return _learn_all_pairs(task, X, target)
    if task.n_landmarks is None:
        # non-negative least squares needs the normal equations: the sections of all pairs, as landmarks
        task = task._replace(n_landmarks=pairs_of_grid(len(X)))
    shared = None
    if task.landmark_method != "grid":
        assert task.n_landmarks is not None
        shared = choose_centers(
            task.hyper_kernel, X, task.n_landmarks, task.landmark_method, random
        )
    parts = np.array_split(random.permutation(len(X)), task.n_parts)
    seeds = random.randint(2**31 - 1, size=len(parts))
    if len(parts) == 1:
        found = [_solve_part(task, X, target, shared, seeds[0], report)]
    else:  # iterations in other processes are not reported
        found = Parallel(n_jobs=task.n_jobs)(
            delayed(with_settings(_solve_part))(task, X[part], target.take(part), shared, seed)
            for part, seed in zip(parts, seeds)
        )
    solutions = [solution for _, solution in found]
    if shared is not None:
        centers = shared
        coef = np.mean([solution.coef for solution in solutions], axis=0)
    else:
        centers = np.concatenate([centers for centers, _ in found])
        coef = np.concatenate([solution.coef for solution in solutions]) / len(parts)
    intercept = float(np.mean([solution.intercept for solution in solutions]))
    worst = max(solutions, key=lambda solution: solution.certificate)
    return HyperExpansion(task.hyper_kernel, centers, coef, intercept), worst


def _solve_part(
    task: Regression,
    X: NDArray,
    target: PairTarget,
    centers: NDArray | None,
    seed: int,
    report: Report | None = None,
) -> tuple[NDArray, HyperSolution]:
    """One part's centers and solution; a module-level function so that any joblib backend can run it."""
    random = np.random.RandomState(seed)
    hyper = task.hyper_kernel
    if centers is None:
        assert task.n_landmarks is not None
        centers = choose_centers(hyper, X, task.n_landmarks, task.landmark_method, random)
    design = make_design(hyper, X, centers)
    gram = hyper.gram(centers)
    options: dict[str, Any] = {"fit_intercept": task.fit_intercept}
    if task.nonnegative:
        equations = normal_equations(design, target, **options)
        return centers, ridge_nonnegative(equations, gram, task.alpha)
    options |= {"tol": task.tol, "max_iter": task.max_iter, "callback": report}
    if task.epsilon is not None:
        C = task.loss_weight(len(X))
        return centers, svr_admm(design, target, gram, C, task.epsilon, **options)
    if _is_large(task, *design.shape):
        work = float(len(X)) ** 2 * len(centers) ** 2
        may_be_direct = task.solver == "auto" and work <= 10 * LIMITS.direct_work
        if may_be_direct:  # more iterations than these would take longer than to solve directly
            options["max_iter"] = min(task.max_iter, len(centers) // 16)
        solution = ridge_cg(design, target, gram, task.alpha, random_state=random, **options)
        if not may_be_direct or solution.certificate <= task.tol:
            return centers, solution
    whitening = whiten(gram)
    equations = normal_equations(design, target, task.fit_intercept, whitening=whitening)
    return centers, WhitenedPath(equations, len(centers)).solution(whitening, task.alpha)


def _is_large(task: Regression, n_items: int, n_centers: int) -> bool:
    """Whether to use conjugate gradients: as the solver says, or if they are cheaper than the normal equations."""
    if task.solver != "auto":
        return task.solver == "cg"
    if not isinstance(task.hyper_kernel, GaussianHyper):
        # every iteration would evaluate all sections again
        return n_centers > LIMITS.direct_sections
    return float(n_items) ** 2 * n_centers**2 > LIMITS.direct_work


def _learn_all_pairs(
    task: Regression, X: NDArray, target: PairTarget
) -> tuple[Kernel, HyperSolution]:
    """All known pairs as sections: equation (6), or the support vector regression (7) of the paper."""
    hyper = task.hyper_kernel
    first, second, weight = pair_index(len(X))
    y = target(slice(None), slice(None))[first, second]
    known = ~np.isnan(y)
    first, second, weight, y = (column[known] for column in (first, second, weight, y))
    pairs = take_pairs(X, first, second)
    K = hyper(pairs)
    if task.epsilon is None:
        solution = ridge_exact(K, y, weight, task.alpha, task.fit_intercept)
    else:
        C = task.loss_weight(np.sqrt(weight.sum()))
        solution = svr_exact(K, y, weight, C, task.epsilon, task.fit_intercept, tol=task.tol)
    coef = solution.coef * hyper.center_scale(pairs)
    return HyperExpansion(hyper, hyper.centers_of(pairs), coef, solution.intercept), solution


def _learn_tensor(
    task: Regression, X: NDArray, target: PairTarget, random, report: Report | None
) -> tuple[Kernel, TensorSolution]:
    hyper = task.hyper_kernel
    if task.n_landmarks is None or task.n_landmarks >= len(X):
        landmarks = X
        basis = item_basis(hyper.items(X))
    else:
        landmarks = X[random.permutation(len(X))[: task.n_landmarks]]
        basis = landmark_basis(hyper.items(landmarks), hyper.items(X, landmarks))
    S = target(slice(None), slice(None))
    trends = tensor_trends(hyper, X)
    if target.missing:
        options: dict[str, Any] = {"tol": task.tol, "max_iter": task.max_iter, "callback": report}
        solution = tensor_ridge_missing(S, basis, trends, hyper.item_noise, task.alpha, **options)
    else:
        problem = TensorProblem(S, basis, trends)
        solution = problem.solve(hyper.item_noise, task.alpha, with_items=hyper.remember_items)
    remembered: tuple = (None, None, None)
    if hyper.remember_items:
        remembered = (X, solution.item_coef, solution.item_values)
    expansion = TensorExpansion(
        hyper,
        landmarks,
        basis.projection,
        solution.core,
        hyper.knots(X),
        solution.trend_coef,
        *remembered,
    )
    return expansion, solution


def tensor_trends(hyper: TensorHyper, X: NDArray) -> list[NDArray]:
    """The trend functions between the training items."""
    return list(hyper.trends(X, X, hyper.knots(X), np.eye(len(X), dtype=bool)))


def check_memory_of(task: Regression, X: NDArray, target: PairTarget) -> None:
    """Raise MemoryError, before any work, if the kernel cannot be learned within the memory limit."""
    n = len(X)
    hyper = task.hyper_kernel
    n_pairs = pairs_of_grid(n)
    if isinstance(hyper, TensorHyper):
        need = 8.0 * n**2 * (14 + 4.5 * hyper.n_trends(X.shape[1], hyper.knots(X)))
        check_memory(need, f"The similarities of {n} items", remedy="use fewer items or trend=None")
    elif task.n_landmarks is None and not task.nonnegative:
        if target.missing:
            n_pairs = int(np.sum(~np.isnan(target.values[np.triu_indices(n)])))
        twice = task.epsilon is not None and not task.fit_intercept  # every pair comes twice
        need = (4 if twice else 1) * 34.0 * n_pairs**2
        check_memory(need, f"The hyper-kernel matrix of {n_pairs} pairs", remedy="set landmarks")
    else:
        n_centers = task.n_landmarks or n_pairs
        n_part = 0 if task.epsilon is None else -(-n // task.n_parts)
        need = 48.0 * n_centers**2 + 84.0 * n_part**2
        what = f"The system of {n_centers} centers"
        check_memory(need, what, remedy="use fewer landmarks, or n_parts")
