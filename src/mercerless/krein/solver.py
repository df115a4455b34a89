"""Least squares in a reproducing kernel Krein space: one eigendecomposition, then every setting is cheap.

Notation, used in every function of this module
------------------------------------------------
``K`` kernel matrix, ``w`` sample weights (ones by default), ``n = sum(w)``, ``H = I - 1 w'/n`` the centering,
``Kt = W^1/2 H K H' W^1/2 = V diag(s) V'``, ``yt = W^1/2 (y - mean_w)``, ``t = V' yt``, ``u = V' Kt at`` the fitted
values in the eigenbasis. In these coordinates each problem of the family is diagonal::

    minimize  ||u - t||^2 + sum(p * u^2)        (subject to  ||u|| = R  or  ||u|| <= R,  R = sqrt(n) * radius)

    regularizer     p                       from
    components      n alpha_sign(s) / |s|   two penalties, Oglic and Gaertner (2018), (4)
    strong          n alpha / |s|           the same with equal penalties: the norm of the strong topology
    indefinite      n alpha / s             Oglic and Gaertner (2018), (2); Liu et al. (2020), (4.1)
    covariance      alpha                   Liu et al. (2020), (4.6)

Eigenvalues with ``|s| <= rtol * max|s|`` are outside the hypothesis space: a function of the space cannot have a
component there, so they are dropped. (The papers' pseudo-inverses give them penalty zero instead, which adds a
spurious root to the secular equation; a centered matrix always has such an eigenvalue.)
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, qr

from mercerless.core.linalg import EigenFactors
from mercerless.core.svm import center_kernel, kept
from mercerless.core.validation import check_option, largest_entry, weights_or_ones

REGULARIZERS = ("components", "strong", "indefinite", "covariance")


class SphereSolution(NamedTuple):
    """Minimizers of diagonal quadratics on spheres; the last axis of `coef` and `slack` runs over coordinates."""

    coef: NDArray  # u
    slack: NDArray  # p - mu, to full relative accuracy; u = t / slack off the hard case
    multiplier: NDArray  # mu; -1 if the constraint is inactive, so that u = t / (1 + p)
    active: NDArray  # True if ||u|| = R holds with a multiplier
    hard: NDArray  # True if the minimizer is not unique
    constraint_error: NDArray  # | ||u||^2 / R^2 - 1 |, 0 if inactive
    stationarity: NDArray  # max_i |slack_i u_i - t_i| / max|t|
    is_minimum: NDArray  # True if min(slack) >= 0: the global minimum; False: a saddle point
    n_iter: int


def minimize_on_sphere(
    penalty: ArrayLike,
    target: ArrayLike,
    radius: ArrayLike | None = None,
    constraint: str | None = "sphere",
) -> SphereSolution:
    """Minimize ``||u - target||^2 + sum(penalty * u^2)`` subject to ``||u|| = radius`` (or ``<=``, or nothing).

    Arrays broadcast, (..., k) against radii of shape (...): many problems are solved at once. The penalty may have any
    sign, so the problem need not be convex; the solution is global all the same. Without a constraint it is the
    stationary point: the minimum if ``1 + penalty > 0``, otherwise a saddle (see `is_minimum`).

    Notes
    -----
    Stationarity gives ``u = t / (p - mu)`` and the secular equation ``sum(t^2 / (p - mu)^2) = R^2``, whose smallest
    root, ``mu < min(p)``, is the global minimum. With ``delta = min(p) - mu`` and ``gap = p - min(p)``, Newton's
    method on ``1 / ||u||``, concave in delta, increases monotonically from the lower end
    ``max(|t_i| / R - gap_i, ||t_E|| / R)``, E = {gap = 0}, to the root, in a handful of iterations. The slack
    ``gap + delta`` is kept because recomputing it from `mu` cancels.

    Hard case: ``t_E = 0`` and the other coordinates cannot reach the radius. Then mu = min(p) and the missing
    length goes to the first coordinate of E, with a plus sign; any unit vector of E would do.
    Radius zero gives u = 0 and mu = -inf. With no coordinates (k = 0) the solution is empty and inactive.

    Certificate: `constraint_error`, `stationarity` and `is_minimum`. Cost: O(k) per iteration and problem; the
    problems are processed in blocks that fit the cache.
    """
    check_option("constraint", constraint, ("sphere", "ball", None))
    p, t = np.broadcast_arrays(np.asarray(penalty, dtype=float), np.asarray(target, dtype=float))
    shape = p.shape[:-1]
    k = p.shape[-1]
    if radius is None:
        radius = np.inf
    R = np.broadcast_to(np.asarray(radius, dtype=float), shape).ravel()
    p = p.reshape(len(R), k)
    t = t.reshape(len(R), k)
    if constraint is not None and not np.all(R >= 0):
        raise ValueError("radius must be nonnegative.")
    if k == 0 or constraint is None:
        active = np.zeros(len(p), dtype=bool)
    elif constraint == "sphere":
        active = np.ones(len(p), dtype=bool)
    else:  # the ball is inactive only if the free problem is convex and its solution is inside
        smallest = p.min(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.linalg.norm(t / (1.0 + p), axis=1)
        active = ~((smallest > -1.0) & (free <= R))
    slack = 1.0 + p
    with np.errstate(divide="ignore", invalid="ignore"):
        coef = np.where(t == 0.0, 0.0, t / slack)
    multiplier = np.full(len(p), -1.0)
    hard = np.zeros(len(p), dtype=bool)
    n_iter = 0
    for block in _blocks(np.flatnonzero(active), k):
        coef[block], slack[block], multiplier[block], hard[block], steps = _secular(
            p[block], t[block], R[block]
        )
        n_iter = max(n_iter, steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.linalg.norm(coef / np.where(active & (R > 0), R, 1.0)[:, None], axis=1)
        error = np.where(active & (R > 0), np.abs(relative**2 - 1.0), 0.0)
        scale = np.abs(t).max(axis=1, initial=0.0)
        residual = np.where(coef == 0.0, np.where(np.isinf(slack), 0.0, t), slack * coef - t)
    stationarity = np.abs(residual).max(axis=1, initial=0.0) / np.where(scale > 0, scale, 1.0)
    is_minimum = slack.min(axis=1, initial=np.inf) >= 0
    full = shape + (k,)
    return SphereSolution(
        coef.reshape(full),
        slack.reshape(full),
        multiplier.reshape(shape),
        active.reshape(shape),
        hard.reshape(shape),
        error.reshape(shape),
        stationarity.reshape(shape),
        is_minimum.reshape(shape),
        n_iter,
    )


def _blocks(indices: NDArray, k: int, elements: int = 2**15):
    """Split `indices` so that a block of rows of length k stays in the cache."""
    size = max(1, elements // max(k, 1))
    return (indices[i : i + size] for i in range(0, len(indices), size))


def _secular(p: NDArray, t: NDArray, R: NDArray):
    """Root of the secular equation for rows of (p, t), R >= 0; see `minimize_on_sphere`.

    Works with u / R and t / R, so that no square under- or overflows.
    """
    smallest = p.min(axis=1)
    gap = p - smallest[:, None]
    lowest = gap == 0.0
    zero = R == 0.0
    t = t / np.where(zero, 1.0, R)[:, None]
    delta = np.maximum((np.abs(t) - gap).max(axis=1), 0.0)
    delta = np.maximum(delta, np.linalg.norm(np.where(lowest, t, 0.0), axis=1))
    inverse, u, norm = _on_curve(delta, gap, t)
    hard = (delta == 0.0) & (norm <= 1.0)
    steps = 0
    rows = np.flatnonzero(~hard & ~zero)
    while len(rows) and steps < 60:
        cubic = np.einsum("ij,ij->i", u[rows], inverse[rows] * u[rows])  # sum t^2 / slack^3
        new = delta[rows] + norm[rows] ** 2 / cubic * (norm[rows] - 1.0)
        is_larger = new > delta[rows]
        rows = rows[is_larger]
        delta[rows] = new[is_larger]
        inverse[rows], u[rows], norm[rows] = _on_curve(delta[rows], gap[rows], t[rows])
        rows = rows[norm[rows] > 1.0 + 2e-16]
        steps += 1
    slack = gap + delta[:, None]
    if hard.any():
        rows = np.flatnonzero(hard)
        first = lowest[rows].argmax(axis=1)
        u[rows, first] = np.sqrt(np.maximum(1.0 - norm[rows] ** 2, 0.0))
    u *= R[:, None]
    if zero.any():
        u[zero] = 0.0
        slack[zero] = np.inf
        delta[zero] = np.inf
    return u, slack, smallest - delta, hard, steps


def _on_curve(delta: NDArray, gap: NDArray, t: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """``1 / slack``, ``u = t / slack`` and its norm at ``slack = gap + delta``; 0 where the slack is."""
    inverse = gap + delta[:, None]
    if not delta.all():
        inverse[inverse == 0.0] = np.inf
    np.divide(1.0, inverse, out=inverse)
    u = t * inverse
    return inverse, u, np.sqrt(np.einsum("ij,ij->i", u, u))


class SpherePullback(NamedTuple):
    """Cotangents of the data of `minimize_on_sphere`."""

    target: NDArray
    penalty: NDArray
    radius: NDArray


def sphere_pullback(
    solution: SphereSolution, radius: ArrayLike, cotangent: ArrayLike
) -> SpherePullback:
    """Reverse derivative of `minimize_on_sphere`: from ``dL/du`` to ``dL/d(target, penalty, radius)``.

    With ``kappa = sum(g u / slack) / sum(u^2 / slack)`` if the constraint is active, otherwise 0, and
    ``q = (g - kappa u) / slack``: dL/dt = q, dL/dp = -q u, dL/dR = kappa R. In the hard case the solution is not
    differentiable and the cotangents are those of the coordinates with positive slack.
    """
    u = solution.coef
    g = np.asarray(cotangent, dtype=float)
    with np.errstate(divide="ignore"):
        inverse = np.where(solution.slack == 0.0, 0.0, 1.0 / solution.slack)
    curvature = np.sum(u * u * inverse, axis=-1)
    usable = solution.active & (curvature > 0)
    kappa = np.where(
        usable, np.sum(g * u * inverse, axis=-1) / np.where(usable, curvature, 1.0), 0.0
    )
    q = (g - kappa[..., None] * u) * inverse
    return SpherePullback(
        q, -q * u, kappa * np.where(solution.active, np.asarray(radius, dtype=float), 0.0)
    )


def penalty_of(
    values: NDArray,
    alpha_positive: ArrayLike,
    alpha_negative: ArrayLike,
    n: float,
    regularizer: str = "components",
) -> NDArray:
    """Diagonal penalties p, shape (..., k), for alphas of shape (...); the table at the top of this module."""
    plus = np.asarray(alpha_positive, dtype=float)
    minus = np.asarray(alpha_negative, dtype=float)
    if regularizer == "components":
        return n * np.where(values > 0, plus[..., None], minus[..., None]) / np.abs(values)
    if regularizer in ("strong", "indefinite"):
        return n * plus[..., None] / (np.abs(values) if regularizer == "strong" else values)
    if regularizer == "covariance":
        return np.broadcast_to(plus[..., None], plus.shape + values.shape)
    raise ValueError(f"regularizer must be one of {REGULARIZERS}, got {regularizer!r}.")


class KreinSystem(NamedTuple):
    """A least-squares problem in eigencoordinates: ``f(x) = basis(x) @ coef + intercept``.

    ``coef = lift @ (u / values)`` and ``intercept = offset - center @ coef``, where ``basis(x)`` are the kernel's
    values between x and the training rows (exact) or the landmarks (low rank).
    """

    values: NDArray  # (k,) kept eigenvalues of the centered kernel
    target: NDArray  # (k, n_outputs) t
    lift: NDArray  # (n_basis, k)
    center: NDArray  # (n_basis,) mean of the basis over the training rows; 0 without intercept
    offset: NDArray  # (n_outputs,) mean of y; 0 without intercept
    spread: NDArray  # (n_outputs,) root mean square of y - offset
    n: float  # sum of the weights


def build_system(
    K: NDArray,
    Y: NDArray,
    weight: NDArray | None = None,
    *,
    intercept: bool = True,
    rtol: float = 1e-12,
    overwrite: bool = False,
) -> KreinSystem:
    """Center and weight the symmetric `K`, decompose it, and project the targets: O(n^3), once.

    Rows of weight w count as w repeated rows; a weight of zero is a row left out.
    """
    size = largest_entry(K)
    weight = weights_or_ones(weight, len(K))
    centered, mean, root, total = center_kernel(K, weight, intercept, overwrite)
    values, vectors = eigh(centered, driver="evd", overwrite_a=True, check_finite=False)
    keep = kept(values, rtol, size * total)
    values = values[keep].astype(float)
    vectors = vectors[:, keep]
    offset, Yt = center_target(Y, root, intercept)
    lift = _uncenter(vectors, root, total, intercept)
    spread = np.sqrt(np.einsum("ij,ij->j", Yt, Yt) / total)
    return KreinSystem(values, (vectors.T @ Yt).astype(float), lift, mean, offset, spread, total)


def center_target(Y: NDArray, root: NDArray, intercept: bool) -> tuple[NDArray, NDArray]:
    """Weighted mean of the targets, 0 without intercept, and ``W^1/2 (Y - mean)``."""
    offset = np.zeros(Y.shape[1], dtype=Y.dtype)
    if intercept:
        offset = np.average(Y, axis=0, weights=root**2)
    return offset, (Y - offset) * root[:, None]


class KreinSolution(NamedTuple):
    """Solutions for settings of shape (...), targets last but one, and their certificate."""

    coef: NDArray  # (n_basis, ..., n_outputs)
    intercept: NDArray  # (..., n_outputs)
    spectral: SphereSolution  # shapes (..., n_outputs[, k])
    constraint_error: float
    stationarity: float


def solve_system(
    system: KreinSystem,
    alpha_positive: ArrayLike,
    alpha_negative: ArrayLike,
    radius: ArrayLike | None = None,
    *,
    regularizer: str = "components",
    constraint: str | None = None,
) -> KreinSolution:
    """Minimize mean squared error + penalty(f), subject to mean((f - mean f)^2) = radius^2 (or <=), for many settings.

    Alphas are arrays of one shape (...), factors of ||f+||^2 and ||f-||^2 (regularizers with one penalty use the
    first); the radius broadcasts to (..., n_outputs).

    Notes
    -----
    Global for every regularizer when constrained, and without a constraint for all but "indefinite", which then
    gives the stationary point (a saddle if n alpha / s < -1).
    A matrix without kept eigenvalues (K = 0, or constant after centering) or a target without a component in the
    space gives the mean: the sphere cannot be reached by any function of the space, or by none in particular.
    Without a radius, `constraint` has no meaning and None is used.
    """
    solution = spectral_solution(
        system, alpha_positive, alpha_negative, radius, regularizer, constraint
    )
    coef = np.tensordot(
        system.lift, (solution.coef / system.values).astype(system.lift.dtype), axes=(1, -1)
    )
    intercept = system.offset - np.tensordot(system.center, coef, axes=(0, 0))
    return KreinSolution(
        coef,
        intercept,
        solution,
        float(np.max(solution.constraint_error)),
        float(np.max(solution.stationarity)),
    )


def spectral_solution(
    system: KreinSystem,
    alpha_positive: ArrayLike,
    alpha_negative: ArrayLike,
    radius: ArrayLike | None,
    regularizer: str,
    constraint: str | None,
) -> SphereSolution:
    """The coordinates u of `solve_system`, shapes (..., n_outputs[, k])."""
    p = penalty_of(system.values, alpha_positive, alpha_negative, system.n, regularizer)[
        ..., None, :
    ]
    target = system.target.T
    R = None
    if radius is None:
        constraint = None
    else:
        R = np.sqrt(system.n) * np.asarray(radius, dtype=float)
    solution = minimize_on_sphere(p, target, R, constraint)
    size = np.sqrt(system.n) * np.maximum(np.abs(system.offset), system.spread)
    blank = np.abs(target).max(axis=-1, initial=0.0) <= 1e-14 * size
    if not blank.any():
        return solution
    return solution._replace(  # nothing to fit: the mean, not an arbitrary point of the sphere
        coef=np.where(blank[:, None], 0.0, solution.coef),
        constraint_error=np.where(blank, 0.0, solution.constraint_error),
        stationarity=np.where(blank, 0.0, solution.stationarity),
    )


def part_coef(system: KreinSystem, solution: KreinSolution, sign: int) -> NDArray:
    """Coefficients of f+ (sign = 1) or f- (sign = -1), shape (n_basis, ..., n_outputs); they sum to `coef`."""
    side = np.sign(system.values) == sign
    ratio = solution.spectral.coef[..., side] / system.values[side]
    return np.tensordot(system.lift[:, side], ratio.astype(system.lift.dtype), axes=(1, -1))


def row_factor(blocks, n_columns: int, overwrite: bool = False) -> NDArray:
    """Triangular factor R of all rows stacked, from blocks of rows: ``R'R = A'A`` without forming ``A'A``.

    Only the running R is kept, so blocks may come from files or other machines; the factor of stacked factors
    is the factor of all rows. O(rows n_columns^2). The sign of a row of R is arbitrary. ``overwrite`` works in the
    memory of the blocks if they are in Fortran order.
    """
    R = np.zeros((0, n_columns))
    for block in blocks:
        rows = np.vstack([R, block]) if len(R) else block
        # "r" would copy all rows once more
        R = qr(rows, mode="raw", check_finite=False, overwrite_a=overwrite)[1][:n_columns]
    return R


def augmented_rows(features: NDArray, Y: NDArray, weight: NDArray | None = None) -> NDArray:
    """Rows ``sqrt(weight) * [1, features, Y]`` for `row_factor`."""
    weight = weights_or_ones(weight, len(Y))
    rows = np.column_stack([np.ones(len(Y)), features, Y])
    return rows * np.sqrt(weight)[:, None]


def build_low_rank_system(
    factor: NDArray, signature: NDArray, *, intercept: bool = True
) -> KreinSystem:
    """The problem for ``K ~ Phi diag(signature) Phi'`` from the triangular factor of ``[1, Phi, Y]``.

    O(k^3) for k features, whatever the number of rows. With ``Phi = Q R`` (after centering, which the first column
    does) and ``R J R' = Z diag(s) Z'``, J the signature, the eigenpairs of the approximate kernel are (s, Q Z), the
    targets' coordinates ``t = Z' Q'Y``, and the features' coefficients ``J R' Z (u / s)``.
    """
    k = len(signature)
    J = np.asarray(signature, dtype=float)
    n = float(factor[:, 0] @ factor[:, 0])
    T = factor if intercept else qr(factor[:, 1:], mode="r", check_finite=False)[0]
    n_outputs = factor.shape[1] - 1 - k
    center = np.zeros(k)
    offset = np.zeros(n_outputs)
    if intercept:
        means = T[0, 1:] / T[0, 0]
        center = means[:k]
        offset = means[k:]
        T = T[1:, 1:]
    missing = max(0, k - len(T))  # fewer rows than features
    T = np.pad(T, ((0, missing), (0, 0)))
    R = T[:k, :k]
    projected = T[:k, k:]
    values, Z = eigh((R * J) @ R.T, driver="evd", check_finite=False)
    keep = kept(values, 1e-12, float(np.linalg.norm(factor[:, 1 : 1 + k])) ** 2)
    lift = J[:, None] * (R.T @ Z[:, keep])
    spread = np.sqrt(np.einsum("ij,ij->j", T[:, k:], T[:, k:]) / n)
    return KreinSystem(values[keep], Z[:, keep].T @ projected, lift, center, offset, spread, n)


class LossPullback(NamedTuple):
    """A validation loss and its gradients; cotangents of the raw (uncentered) kernel blocks are kept as factors.

    The cotangent of the training block is ``left @ right.T`` up to its antisymmetric part, which has no effect, because
    that block is symmetric; the one of the validation block is ``residual @ coef.T``. The factors are empty without the
    gradient in the kernel.
    """

    loss: float
    alpha_positive: float
    alpha_negative: float
    radius: NDArray  # (n_outputs,)
    left: NDArray = np.zeros((0, 0))  # (n, rank)
    right: NDArray = np.zeros((0, 0))  # (n, rank)
    residual: NDArray = np.zeros((0, 0))  # (n_val, n_outputs) cotangent of the predictions
    coef: NDArray = np.zeros((0, 0))  # (n, n_outputs)

    @property
    def train(self) -> NDArray:
        """The cotangent of the training block, (n, n)."""
        product = self.left @ self.right.T
        return (product + product.T) / 2.0

    @property
    def validation(self) -> NDArray:
        """The cotangent of the validation block, (n_val, n)."""
        return self.residual @ self.coef.T


class TrainingSpectrum(NamedTuple):
    """The centered and weighted kernel matrix of training rows, decomposed, and their targets in its eigenbasis."""

    factors: EigenFactors  # all eigenvalues, ascending
    keep: NDArray  # (n,) those inside the hypothesis space
    target: NDArray  # (n_outputs, n)
    mean: NDArray  # (n,) column means of K; 0 without intercept
    offset: NDArray  # (n_outputs,) mean of the targets; 0 without intercept
    root: NDArray  # (n,) roots of the weights
    n: float  # sum of the weights


def training_spectrum(
    K: NDArray,
    Y: NDArray,
    weight: NDArray | None = None,
    *,
    intercept: bool = True,
    rtol: float = 1e-12,
    overwrite: bool = False,
) -> TrainingSpectrum:
    """The decomposed training rows for `validation_loss`, which depend on neither penalties nor radius."""
    size = largest_entry(K)
    weight = weights_or_ones(weight, len(K))
    Kt, mean, root, n = center_kernel(K, weight, intercept, overwrite)
    factors = EigenFactors.of(Kt)
    keep = kept(factors.values, rtol, size * n)
    offset, Yt = center_target(Y, root, intercept)
    target = factors.enter(Yt).T.astype(float)
    return TrainingSpectrum(factors, keep, target, mean, offset, root, n)


def validation_loss(
    K: NDArray,
    Y: NDArray,
    K_val: NDArray,
    Y_val: NDArray,
    alpha_positive: float,
    alpha_negative: float,
    radius: ArrayLike | None = None,
    *,
    sample_weight: NDArray | None = None,
    intercept: bool = True,
    rtol: float = 1e-12,
    **options: Any,
) -> LossPullback:
    """Mean squared validation error and its gradient in alphas, radius and every entry of both kernel blocks.

    The coefficients are ``a = h(Kt) yt`` with ``h(s) = 1 / (nu_s - mu s)``, ``nu = s p``, so that the cotangent of Kt
    is ``V [L o (th yh')] V'`` with the divided differences L of h (Daleckii and Krein), corrected for the multiplier by
    those of ``(s h)^2``. Divided differences across the two signs are not those of one rational function, because
    ``nu`` differs there; the paper's gradient leaves these terms out. Pairs of a kept and a dropped eigenvalue use
    ``h = 0`` for the dropped one; dropped pairs contribute nothing. If an eigenvalue crosses zero the loss jumps, and
    the gradient is that of the smooth pieces.

    Cost: one eigendecomposition without its vectors (`EigenFactors`); the cotangent of Kt has low rank
    (`_eigen_cotangent`). Checked against central differences. The options are those of `spectral_loss`.
    """
    spectrum = training_spectrum(K, Y, sample_weight, intercept=intercept, rtol=rtol)
    settings = alpha_positive, alpha_negative, radius
    return spectral_loss(spectrum, K_val, Y_val, *settings, intercept=intercept, **options)


def spectral_loss(
    spectrum: TrainingSpectrum,
    K_val: NDArray,
    Y_val: NDArray,
    alpha_positive: float,
    alpha_negative: float,
    radius: ArrayLike | None = None,
    *,
    weight_val: NDArray | None = None,
    regularizer: str = "components",
    constraint: str | None = None,
    intercept: bool = True,
    kernel_gradient: bool = True,
) -> LossPullback:
    """`validation_loss` of training rows that are decomposed already."""
    weight_val = weights_or_ones(weight_val, len(Y_val))
    factors, keep, yh, mean, offset, root, n = spectrum
    s = factors.values[keep].astype(float)
    p = penalty_of(s, alpha_positive, alpha_negative, n, regularizer)
    R = np.ones(len(yh))
    if radius is None:
        constraint = None
    else:
        R = np.sqrt(n) * np.broadcast_to(np.asarray(radius, dtype=float), len(yh))
    solution = minimize_on_sphere(p, yh[:, keep], R, constraint)

    ratio = np.zeros((len(keep), len(yh)))
    ratio[keep] = (solution.coef / s).T
    coef = _uncenter(factors.leave(ratio), root, n, intercept)
    residual = K_val @ coef + (offset - mean @ coef) - Y_val
    share = weight_val / weight_val.sum()
    loss = float(np.sum(share[:, None] * residual**2))
    g = 2.0 * share[:, None] * residual

    coef_bar = K_val.T @ g - np.outer(mean, g.sum(axis=0))
    at_bar = _center_cotangent(coef_bar, root, n, intercept)
    th = factors.enter(at_bar).T  # (T, n)
    back = sphere_pullback(solution, R, th[:, keep] / s)
    d_plus, d_minus = _alpha_gradient(back.penalty, s, n, regularizer)
    radius_bar = back.radius * np.sqrt(n)
    if not kernel_gradient:
        return LossPullback(loss, d_plus, d_minus, radius_bar)

    kappa = np.where(solution.active, back.radius / R, 0.0)
    nu, shift = (np.zeros_like(s), alpha_positive) if regularizer == "covariance" else (s * p, 0.0)
    left, right = _eigen_cotangent(factors, keep, solution, nu, shift, kappa, th, yh)
    left = _uncenter(left, root, n, intercept)
    right = _uncenter(right, root, n, intercept)
    if intercept:  # the mean of the rows of K
        left = np.hstack([left, np.outer(root**2 / n, -g.sum(axis=0))])
        right = np.hstack([right, coef])
    return LossPullback(loss, d_plus, d_minus, radius_bar, left, right, g, coef)


def _eigen_cotangent(
    factors: EigenFactors,
    keep: NDArray,
    solution: SphereSolution,
    nu: NDArray,
    shift: float,
    kappa: NDArray,
    th: NDArray,
    yh: NDArray,
) -> tuple[NDArray, NDArray]:
    """Left and right factor of the cotangent of Kt, up to its antisymmetric part.

    In the eigenbasis it is ``Lh o sym(th yh') - kappa/2 Lw o yh yh'`` for each output, with divided differences of h
    and of ``w = v^2``, ``v = s h``. From ``1/h = nu - mu s`` follow, with nu constant for each sign::

        (h_i - h_j) / (s_i - s_j) = h_i h_j (mu - d_ij)
        (w_i - w_j) / (s_i - s_j) = h_i h_j (nu_i v_i + nu_j v_j - (s_i v_i + s_j v_j) d_ij)
        d_ij = (nu_i - nu_j) / (s_i - s_j)

    so that ``yp = h yh``, ``e = mu h th - kappa nu v yp`` and ``z = h th - kappa s v yp`` give
    ``sym(e yp') - d o sym(z yp')``: rank one, and a part between the two signs. Between a kept and a dropped
    eigenvalue, for which h = 0, it is ``sym(z_i yh_j, yp_i th_j) / (s_i - s_j)``.
    """
    values = factors.values.astype(float)
    s = values[keep]
    # 0 in the hard case, for the coordinates that `sphere_pullback` leaves out as well
    product = s * solution.slack
    h = np.divide(1.0, product, out=np.zeros_like(product), where=product != 0.0)
    v = s * h
    multiplier = (solution.multiplier - shift)[:, None]
    first = th.astype(float)  # z on the kept eigenvalues, th on the others
    second = yh.copy()  # yp and yh
    rank_one = np.zeros_like(yh)
    second[:, keep] *= h
    weighted = kappa[:, None] * v * second[:, keep]
    rank_one[:, keep] = multiplier * h * th[:, keep] - nu * weighted
    first[:, keep] = h * th[:, keep] - s * weighted

    # negative, dropped and positive eigenvalues are contiguous
    n_negative = int(np.sum(s < 0))
    n_positive = len(s) - n_negative
    negative = slice(0, n_negative)
    dropped = slice(n_negative, len(values) - n_positive)
    positive = slice(len(values) - n_positive, len(values))
    within = np.where(keep, second, 0.0)
    Z = factors.vectors
    lefts = [Z @ rank_one.T]
    rights = [Z @ within.T]
    jump = nu[-1] - nu[0] if n_negative and n_positive else 0.0
    blocks = [(negative, positive, jump), (negative, dropped, 1.0), (positive, dropped, 1.0)]
    for rows, columns, factor in blocks:
        if factor != 0.0 and rows.stop > rows.start and columns.stop > columns.start:
            left, right = _cauchy_product(Z, values, rows, columns, first, second)
            lefts.append(factor * left)
            rights.append(right)
    sides = np.hstack(lefts + rights)
    left, right = np.hsplit(factors.tridiagonal.reflect(sides, "N"), 2)
    return left, right


def _cauchy_product(
    Z: NDArray, s: NDArray, rows: slice, columns: slice, first: NDArray, second: NDArray
) -> tuple[NDArray, NDArray]:
    """Factors of ``Z_rows M Z_columns'``, ``M_ij = sum(first_i second_j + second_i first_j) / (s_i - s_j)``.

    The sum is over the leading axis of `first` and `second`. Of rank at most the smaller side of M.
    """
    M = first[:, rows].T @ second[:, columns] + second[:, rows].T @ first[:, columns]
    M /= s[rows, None] - s[columns]
    if len(M) <= M.shape[1]:
        return Z[:, rows], Z[:, columns] @ M.T
    return Z[:, rows] @ M, Z[:, columns]


def _uncenter(at, root, n, intercept):
    """Coefficients on the raw kernel: ``H' W^1/2 at``."""
    has_weights = np.any(root != 1.0)
    coef = at * root[:, None] if has_weights else at
    if intercept:
        share = root[:, None] ** 2 / n if has_weights else 1.0 / n
        coef = coef - share * coef.sum(axis=0)
    return coef


def _center_cotangent(bar, root, n, intercept):
    """Transpose of `_uncenter`."""
    if intercept:
        share = root**2 / n
        bar = bar - share @ bar
    return bar * root[:, None]


def _alpha_gradient(penalty_bar, s, n, regularizer):
    """Chain rule through `penalty_of`, summed over outputs."""
    total = penalty_bar.sum(axis=0)
    if regularizer == "components":
        weighted = n * total / np.abs(s)
        return float(weighted[s > 0].sum()), float(weighted[s < 0].sum())
    if regularizer in ("strong", "indefinite"):
        return float(np.sum(n * total / (np.abs(s) if regularizer == "strong" else s))), 0.0
    return float(total.sum()), 0.0
