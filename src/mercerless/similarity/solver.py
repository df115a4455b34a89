"""Learners on one matrix of similarities: ridges on its spectrum and on features, neighbors, and the 1-norm machine."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import linprog

from mercerless.spectra import repaired_values


class SparseMachine(NamedTuple):
    """The solution of `sparse_machine`."""

    coef: NDArray  # (p,), most are exactly 0
    intercept: float
    objective: float
    # the certificate: the duality gap with a feasible dual point, relative to the objective
    gap: float


def sparse_machine(K: NDArray, signs: NDArray, C: NDArray | float) -> SparseMachine:
    """``min_{a, b} sum_j |a_j| + sum_i C_i max(0, 1 - y_i (K_i a + b))``.

    K (n, p) holds similarities of n items to p items, symmetric or not, definite or not; y is -1 or +1.

    Notes
    -----
    A linear program in ``2 p + n + 1`` unknowns, convex for any K, solved by the dual simplex method of HiGHS, so the
    minimum is global and the solution a vertex: at most n coefficients are not 0. The dual is
    ``max sum_i u_i`` with ``0 <= u_i <= C_i``, ``|K^T (y u)| <= 1``, ``y^T u = 0``; the certificate scales the solver's
    multipliers into this set (and counts ``|y^T u|``). The similarities are divided by their largest entry first.
    Degenerate cases: a zero K gives a = 0; with one class a = 0 and b its label. The intercept is not always unique.
    """
    n, p = K.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    largest = np.abs(K).max()
    if largest == 0.0 or np.all(signs == signs[0]):
        intercept = 1.0 if C @ signs >= 0.0 else -1.0
        objective = float(C @ np.maximum(0.0, 1.0 - signs * intercept))
        return SparseMachine(np.zeros(p), intercept, objective, 0.0)
    signed = K * (signs / largest)[:, None]
    prices = C * largest
    unit = max(1.0, float(prices.max()))
    constraints = np.hstack([signed, -signed, signs[:, None], np.eye(n)])
    costs = np.concatenate([np.ones(2 * p), [0.0], prices]) / unit
    bounds = [(0.0, None)] * (2 * p) + [(None, None)] + [(0.0, None)] * n
    result = linprog(costs, A_ub=-constraints, b_ub=-np.ones(n), bounds=bounds, method="highs-ds")
    if result.x is None:
        return SparseMachine(np.zeros(p), 0.0, float(C.sum()), np.inf)
    coef = result.x[:p] - result.x[p : 2 * p]
    intercept = float(result.x[2 * p])
    # values of the scaled problem: |a| + sum prices * hinge
    primal = np.abs(coef).sum() + prices @ np.maximum(0.0, 1.0 - signed @ coef - signs * intercept)
    dual = np.clip(-result.ineqlin.marginals * unit, 0.0, prices)
    dual /= max(1.0, float(np.abs(signed.T @ dual).max()))
    gap = max(primal - dual.sum(), abs(signs @ dual)) / max(primal, np.finfo(float).tiny)
    return SparseMachine(coef / largest, intercept, float(primal / largest), float(gap))


def spectral_path(
    K: NDArray, Y: NDArray, settings: Sequence[tuple], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """``min_f sum_i w_i (y_i - f(x_i))^2 + penalty * max(t) * |f|_t^2``, f in the span of the centered similarities.

    ``|f|_t`` is the norm that replaces every eigenvalue s of the centered matrix by ``t(s)``: ``max(s, 0)`` for
    ``"clip"``, ``|s|`` for ``"flip"``, ``s^2`` for ``"square"``; directions with ``t = 0`` are not used. All settings
    (name of t, penalty, ...) and targets share one eigendecomposition. Predictions use the similarities as they are:
    ``f(x) = k_x @ coef + intercept``, with coef (n, n_settings, q) and intercept (n_settings, q), since the
    coefficients sum to zero. Whole weights equal repeated items. A centered matrix of zero, or one without an
    eigenvalue that t keeps, gives the weighted mean of ``Y``.
    """
    root, column_mean, centered = _center(K, weight)
    # eigh reads one triangle only, so the last bits of asymmetry do not matter
    values, vectors = eigh(centered, driver="evd", overwrite_a=True, check_finite=False)
    kept = np.abs(values) > 1e-8 * np.abs(values).max()
    values = values[kept]
    vectors = vectors[:, kept]
    mean = (root**2 * Y).mean(axis=0)
    target = vectors.T @ (root * (Y - mean))
    coef = root[:, :, None] * np.tensordot(vectors, _filtered(values, target, settings), 1)
    return coef, mean - np.tensordot(column_mean, coef, 1)


def _filtered(values: NDArray, target: NDArray, settings: Sequence[tuple]) -> NDArray:
    """Coefficients (rank, n_settings, q) of eigenvectors: ``(t/s) / (t + penalty max t)`` times the target."""
    filters = np.empty((len(values), len(settings)))
    for column, (name, penalty, *_) in enumerate(settings):
        transformed = repaired_values(values, name)
        largest = transformed.max(initial=0.0)
        # s is never zero, and t = 0 gives 0 unless nothing is kept at all
        filters[:, column] = transformed / values / (transformed + penalty * (largest or 1.0))
    return filters[:, :, None] * target[:, None, :]


def logistic_similarities(
    K: NDArray, Y: NDArray, steps: Sequence[float], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """`logistic_path` on rows of the centered similarities; coef (n, n_steps, q) and intercept as `spectral_path`."""
    root, column_mean, centered = _center(K, weight)
    slopes, biases = logistic_path(centered, root, Y, steps)
    coef = root[:, :, None] * slopes
    return coef, biases - np.tensordot(column_mean, coef, 1)


def logistic_path(
    A: NDArray, root: NDArray, Y: NDArray, steps: Sequence[float]
) -> tuple[NDArray, NDArray]:
    """``min_{c, b} sum_i w_i logloss_i`` of ``softmax(A_i c / root_i + b)`` stopped early, after each number of steps.

    Rows of A (n, p) are centered features times the roots (n, 1) of the weights, Y > 0 for an item's class. Returns
    slopes (p, n_steps, q) and biases (n_steps, q).

    Notes
    -----
    Steps of Nesterov's accelerated gradient from 0, of one over a bound of the curvature (half the Frobenius norm of
    ``A A^T``, and for the biases, which centered features leave alone, half the sum of the weights). Stopping early is
    the penalty: what few directions of large variance explain comes first, and it costs less than to solve for several
    penalties to the end. No step depends on the scale of A or on the order of its rows.
    """
    onehot = (Y > 0.0).astype(float)
    curvature = (
        np.append(np.full(A.shape[1], np.linalg.norm(A @ A.T) or 1.0), (root**2).sum()) / 2.0
    )
    design = np.column_stack([A / root, np.ones(len(Y))])
    back = design.T * (root.T**2 / curvature[:, None])
    old = theta = np.zeros((design.shape[1], Y.shape[1]))
    points = []
    for step in range(int(max(steps))):
        ahead = theta + step / (step + 3.0) * (theta - old)
        proba = design @ ahead
        np.exp(proba - proba.max(axis=1, keepdims=True), out=proba)
        proba /= proba.sum(axis=1, keepdims=True)
        old = theta
        theta = ahead - back @ (proba - onehot)
        if step + 1 in steps:
            points.append(theta)
    path = np.stack(points, axis=1)
    return path[:-1], path[-1]


def landmark_path(
    gram: NDArray, cross: NDArray, values: NDArray, settings: Sequence[tuple]
) -> NDArray:
    """`spectral_path` for the matrix ``F diag(1 / values) F^T`` of low rank, from sums of products of rows.

    F (n, rank) are centered similarities to landmarks times the eigenvectors of the landmarks' own centered matrix,
    which has these eigenvalues; ``gram = F^T F`` and ``cross = F^T (Y - mean)``. Coefficients (rank, n_settings, q) of
    a row of F.

    Notes
    -----
    With ``F^T F = E diag(g) E^T`` and ``R = diag(g)^(1/2) E^T``, ``F = Q R`` for orthonormal columns Q, so that the
    eigenvalues of the matrix are those of ``R diag(1 / values) R^T``.
    """
    if not len(gram):
        return np.empty((0, len(settings), cross.shape[1]))
    sizes, axes = eigh(gram, driver="evd", check_finite=False)
    kept = sizes > 1e-14 * sizes.max()
    R = np.sqrt(sizes[kept])[:, None] * axes[:, kept].T
    spectrum, vectors = eigh((R / values) @ R.T, driver="evd", check_finite=False)
    kept_too = np.abs(spectrum) > 1e-8 * np.abs(spectrum).max(initial=0.0)
    spectrum = spectrum[kept_too]
    vectors = vectors[:, kept_too]
    target = vectors.T @ ((axes[:, kept].T @ cross) / np.sqrt(sizes[kept])[:, None])
    return np.tensordot((R / values).T @ vectors, _filtered(spectrum, target, settings), 1)


def _center(K: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray, NDArray]:
    """Roots of the weights (of mean 1), weighted column means, and the centered matrix times both roots."""
    weight = np.ones(len(K)) if weight is None else weight / weight.mean()
    root = np.sqrt(weight)[:, None]
    column_mean = weight @ K / len(K)
    centered = K - column_mean
    centered -= (column_mean - weight @ column_mean / len(K))[:, None]
    centered *= root
    centered *= root.T
    return root, column_mean, centered


def feature_path(
    F: NDArray,
    Y: NDArray,
    penalties: Sequence[float],
    weight: NDArray | None = None,
    standardize: bool = False,
    logistic: bool = False,
) -> tuple[NDArray, NDArray]:
    """``min_c sum_i w_i (y_i - mean - (F_i - mean) c)^2 + penalty * |A|_F * sum_j c_j^2 / w_j``.

    Ridge regression on a row of ``F`` as features (divided by their standard deviations where `standardize`), in its
    dual form with ``A`` the weighted Gram matrix of the centered rows; one Cholesky factorization per penalty, all
    targets at once: coef (n, n_penalties, q) of the columns of ``F`` as given, and intercept (n_penalties, q). Column j
    belongs to training item j, so it carries that item's weight and whole weights equal repeated items. Constant
    columns get the coefficient 0; if all are constant the prediction is the weighted mean of ``Y``. Where `logistic`,
    it is `logistic_path` on the same features, and the penalties are its numbers of steps.
    """
    n = len(F)
    weight = np.ones(n) if weight is None else weight / weight.mean()
    root = np.sqrt(weight)[:, None]
    column_mean = weight @ F / n
    features = (F - column_mean) * root * root.T
    spread = np.sqrt(np.einsum("ij,ij->j", features, features) / (n * weight))
    # what is left of a constant column after centering is rounding
    constant = spread <= 1e-13 * np.abs(column_mean)
    inverse = np.where(constant, 0.0, 1.0 / np.where(constant | (not standardize), 1.0, spread))
    features *= inverse
    mean = weight @ Y / n
    if logistic:
        slopes, level = logistic_path(features, root, Y, penalties)
    else:
        dual = ridge_path(features @ features.T, root * (Y - mean), penalties)
        slopes = np.tensordot(features.T, dual, 1)
        level = mean
    coef = (inverse[:, None] * root)[:, :, None] * slopes
    return coef, level - np.tensordot(column_mean, coef, 1)


def kernel_path(
    K: NDArray, Y: NDArray, penalties: Sequence[float], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """``min_f sum_i w_i (y_i - f(x_i))^2 + penalty * |K_c|_F * |f|^2``, f a constant plus a function of the kernel.

    ``K_c`` is the centered matrix of a positive definite kernel; one Cholesky factorization per penalty. As for
    `spectral_path`, ``f(x) = k_x @ coef + intercept`` with coefficients that sum to zero.
    """
    root, column_mean, centered = _center(K, weight)
    mean = (root**2 * Y).mean(axis=0)
    coef = root[:, :, None] * ridge_path(centered, root * (Y - mean), penalties)
    return coef, mean - np.tensordot(column_mean, coef, 1)


def ridge_path(A: NDArray, target: NDArray, penalties: Sequence[float]) -> NDArray:
    """``(A + penalty |A|_F I)^-1 target`` for every penalty, of shape (n, n_penalties, q); A is overwritten."""
    norm = np.linalg.norm(A) or 1.0
    diagonal = np.diagonal(A).copy()
    solutions = np.empty((len(A), len(penalties), target.shape[1]))
    if not len(A):
        return solutions
    for position, penalty in enumerate(penalties):
        np.fill_diagonal(A, diagonal + penalty * norm)
        solutions[:, position] = cho_solve(
            cho_factor(A, check_finite=False), target, check_finite=False
        )
    return solutions


def squared_distances(K: NDArray, row_diagonal: NDArray, column_diagonal: NDArray) -> NDArray:
    """``max(0, k(x, x) + k(z, z) - 2 k(x, z))``, the squared distances that similarities imply.

    Negative ones, which an indefinite kernel can give, are cut at 0, and so is what rounding leaves of a zero (its root
    would be a distance of 1e-8).
    """
    squares = K * -2.0
    squares += row_diagonal[:, None]
    squares += column_diagonal
    largest = max(np.abs(diagonal).max(initial=0.0) for diagonal in (row_diagonal, column_diagonal))
    squares[squares <= 8.0 * np.finfo(float).eps * largest] = 0.0
    return squares


def neighbor_means(
    distances: NDArray, Y: NDArray, counts: Sequence[int], weight: NDArray | None = None
) -> dict[int, NDArray]:
    """The (weighted) mean target of the ``k`` nearest training items, for several ``k``; those above n mean all.

    `distances` may be any quantity that increases with the distance within each row. Items as far as the k-th, up to
    rounding, share what is left of the k votes; a thousandth of the nearest items' mean breaks tied votes.
    """
    n = distances.shape[1]
    weight = np.ones(n) if weight is None else weight
    weighted = np.column_stack([weight[:, None] * Y, weight])
    sizes = {count: min(count, n) for count in [1, *counts]}
    tol = 1e-10 * np.abs(distances).max(axis=1, keepdims=True)
    ranked = np.partition(distances, sorted({size - 1 for size in sizes.values()}), axis=1)
    means: dict[int, NDArray] = {}
    for count, size in sizes.items():
        last = ranked[:, size - 1 : size]
        nearer = (distances < last - tol).astype(float)
        tied = (np.abs(distances - last) <= tol).astype(float)
        share = (size - nearer.sum(axis=1)) / tied.sum(axis=1)
        sums = nearer @ weighted + share[:, None] * (tied @ weighted)
        means[count] = sums[:, :-1] / sums[:, -1:]
    return {count: (means[count] + 1e-3 * means[1]) / 1.001 for count in counts}


def nearest_of_classes(
    distances: NDArray, onehot: NDArray, count: int, log: bool = False
) -> NDArray:
    """What every item (m, n) adds to `class_distances` of its class, or to their logarithm (of at least 1e-3).

    A logarithm belongs to the nearest items together, and is split evenly.
    """
    shares = np.zeros(distances.shape)
    for members in (np.flatnonzero(column > 0.0) for column in onehot.T):
        size = min(count, len(members))
        if size:
            nearest = members[np.argpartition(distances[:, members], size - 1, axis=1)[:, :size]]
            values = np.take_along_axis(distances, nearest, axis=1) / size
            if log:
                values[:] = np.log(np.maximum(values.sum(axis=1, keepdims=True), 1e-3)) / size
            np.put_along_axis(shares, nearest, values, axis=1)
    return shares


def class_distances(distances: NDArray, onehot: NDArray, count: int) -> NDArray:
    """The mean distance (m, n_classes) to the `count` nearest items of every class; to all of a smaller class.

    A class without items is as far away as the farthest item.
    """
    means = np.tile(distances.max(axis=1, initial=0.0)[:, None], (1, onehot.shape[1]))
    for label, members in enumerate(onehot.T > 0.0):
        size = min(count, int(members.sum()))
        if size:
            means[:, label] = np.partition(distances[:, members], size - 1, axis=1)[:, :size].mean(
                axis=1
            )
    return means
