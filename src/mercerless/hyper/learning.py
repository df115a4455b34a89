"""Learn a kernel from a target on pairs of items: sections, and the right solver."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.memory import check_memory
from mercerless.core.svm import tube_machine
from mercerless.hyper.solver import (
    BlockDesign,
    Design,
    HyperSolution,
    SeparableDesign,
    WhitenedPath,
    normal_equations,
    ridge_cg,
    ridge_exact,
    svr_admm,
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


class Regression(NamedTuple):
    """How a kernel is learned; the search replaces the name of a hyper-kernel and fills in alpha."""

    hyper_kernel: Any
    # number of sections (items of the tensor), pairs (n_landmarks, 2, n_features), or None for all
    landmarks: Any = None
    alpha: Any = None  # a number; None until it is chosen
    epsilon: float | None = None  # half the width of the tube; None: the squared loss
    fit_intercept: bool = False
    tol: float = 1e-5
    max_iter: int = 300


def loss_weight(alpha: float, n_items: int) -> float:
    """C of support vector regression that belongs to the penalty alpha of the mean loss over all pairs."""
    return float(1.0 / (2.0 * alpha * n_items**2))


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


def learn_kernel(
    task: Regression, X: NDArray, target: PairTarget, random: Any
) -> tuple[Kernel, HyperSolution | TensorSolution]:
    """Learn the kernel from the target."""
    hyper = task.hyper_kernel
    if isinstance(hyper, TensorHyper):
        return _learn_tensor(task, X, target, random)
    pairs = task.landmarks
    if pairs is None and (task.epsilon is None or task.fit_intercept):
        return _learn_all_pairs(task, X, target)
    if pairs is None:  # libsvm's machines have an intercept
        first, second, _ = pair_index(len(X))
        pairs = take_pairs(X, first, second)
    elif not isinstance(pairs, np.ndarray):
        pairs = random_pairs(X, pairs, random)
    centers = hyper.centers_of(pairs)
    design = make_design(hyper, X, centers)
    gram = hyper.gram(centers)
    if task.epsilon is None:
        solution = _solve_ridge(task, design, target, gram, random)
    else:
        solution = svr_admm(
            design,
            target,
            gram,
            loss_weight(task.alpha, len(X)),
            task.epsilon,
            fit_intercept=task.fit_intercept,
            tol=task.tol,
            max_iter=task.max_iter,
        )
    return HyperExpansion(hyper, centers, solution.coef, solution.intercept), solution


def _solve_ridge(
    task: Regression, design: Design, target: PairTarget, gram: NDArray, random: Any
) -> HyperSolution:
    """Conjugate gradients if they are cheaper than the normal equations, and converge; else these."""
    n_items, n_centers = design.shape
    work = float(n_items) ** 2 * n_centers**2
    is_large = work > LIMITS.direct_work
    if isinstance(design, BlockDesign):  # every iteration would evaluate all sections again
        is_large = n_centers > LIMITS.direct_sections
    if is_large:
        may_be_direct = work <= 10 * LIMITS.direct_work
        # more iterations than these would take longer than to solve directly
        most = n_centers // 16 if may_be_direct else task.max_iter
        solution = ridge_cg(
            design,
            target,
            gram,
            task.alpha,
            fit_intercept=task.fit_intercept,
            tol=task.tol,
            max_iter=min(task.max_iter, most),
            random_state=random,
        )
        if solution.certificate <= task.tol or not may_be_direct:
            return solution
    whitening = whiten(gram)
    equations = normal_equations(design, target, task.fit_intercept, whitening=whitening)
    return WhitenedPath(equations, n_centers).solution(whitening, task.alpha)


def _learn_all_pairs(
    task: Regression, X: NDArray, target: PairTarget
) -> tuple[Kernel, HyperSolution]:
    """All known pairs as sections: equation (6), or the support vector regression (7) of the paper."""
    hyper = task.hyper_kernel
    first, second, weight = pair_index(len(X))
    y = target(slice(None), slice(None))[first, second]
    known = ~np.isnan(y)
    weight = weight[known]
    y = y[known]
    pairs = take_pairs(X, first[known], second[known])
    K = hyper(pairs)
    if task.epsilon is None:
        solution = ridge_exact(K, y, weight, task.alpha, task.fit_intercept)
    else:
        C = loss_weight(task.alpha, len(X))
        machine = tube_machine(K, y, C, task.epsilon, weight, tol=task.tol)
        solution = HyperSolution(machine.coef, machine.intercept, machine.gap, machine.n_iter)
    coef = solution.coef * hyper.center_scale(pairs)
    return HyperExpansion(hyper, hyper.centers_of(pairs), coef, solution.intercept), solution


def _learn_tensor(
    task: Regression, X: NDArray, target: PairTarget, random: Any
) -> tuple[Kernel, TensorSolution]:
    hyper = task.hyper_kernel
    if task.landmarks is None or task.landmarks >= len(X):
        landmarks = X
        basis = item_basis(hyper.items(X))
    else:
        landmarks = X[random.permutation(len(X))[: task.landmarks]]
        basis = landmark_basis(hyper.items(landmarks), hyper.items(X, landmarks))
    S = target.values
    trends = tensor_trends(hyper, X)
    noise = hyper.item_noise
    if target.missing:
        options: dict[str, Any] = {"tol": task.tol, "max_iter": task.max_iter}
        solution = tensor_ridge_missing(S, basis, trends, noise, task.alpha, **options)
    else:
        solution = TensorProblem(S, basis, trends).solve(noise, task.alpha)
    expansion = TensorExpansion(
        hyper,
        landmarks,
        basis.projection,
        solution.core,
        hyper.knots(X),
        solution.trend_coef,
        X,
        solution.item_coef,
        solution.item_values,
    )
    return expansion, solution


def tensor_trends(hyper: TensorHyper, X: NDArray) -> list[NDArray]:
    """The trend functions between the training items."""
    return list(hyper.trends(X, X, hyper.knots(X), np.eye(len(X), dtype=bool)))


def check_memory_of(task: Regression, X: NDArray) -> None:
    """Raise MemoryError, before any work, if the kernel cannot be learned within the memory limit."""
    n = len(X)
    hyper = task.hyper_kernel
    if isinstance(hyper, TensorHyper):
        n_trends = 2 + hyper.n_knots + 2 * X.shape[1] * (hyper.trend == "features")
        need = 8.0 * n**2 * (14 + 4.5 * n_trends)
        check_memory(need, f"The similarities of {n} items", remedy="use fewer items or trend=None")
    elif task.landmarks is None:
        n_pairs = n * (n + 1) // 2
        check_memory(
            34.0 * n_pairs**2, f"The hyper-kernel matrix of {n_pairs} pairs", remedy="set landmarks"
        )
    else:
        given = task.landmarks
        n_centers = len(given) if isinstance(given, np.ndarray) else given
        n_arrays = 0 if task.epsilon is None else n
        need = 48.0 * n_centers**2 + 84.0 * n_arrays**2
        what = f"The system of {n_centers} centers"
        check_memory(need, what, remedy="use fewer landmarks, or fewer items")
