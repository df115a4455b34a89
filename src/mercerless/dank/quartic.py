"""The quartic support vector problem: exact projection, duality gap, and a second-order solver.

The problem solved here is the one that remains of DANK when its rank penalty is absent or linearized::

    maximize  p @ v - epsilon * |v|_1 - v @ K @ v / 2 - curvature / 4 * (v**2) @ A @ (v**2)
    subject to  lo <= v <= hi  and  sum(v) == 0

with ``lo <= 0 <= hi``, ``K`` positive semi-definite and ``A`` positive semi-definite with entries >= 0.
"""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve
from scipy.linalg.lapack import dpotrf
from scipy.optimize import brentq

from mercerless.dank.thresholds import LIMITS


class Quartic(NamedTuple):
    """The problem of this module."""

    K: NDArray
    A: NDArray  # K**2 in DANK
    curvature: float
    p: NDArray
    lo: NDArray
    hi: NDArray
    epsilon: float = 0.0


class QuarticSolution(NamedTuple):
    """A feasible point, the gradient there, and its certificate."""

    v: NDArray
    gradient: NDArray  # of the smooth part
    intercept: float
    gap: float  # relative, see duality_gap


class _Point(NamedTuple):
    v: NDArray
    kv: NDArray  # K @ v
    q: NDArray  # A @ v**2


def project(z: NDArray, lo: NDArray, hi: NDArray) -> NDArray:
    """The nearest point to z with ``lo <= v <= hi``, ``sum(v) == 0``, exactly, in O(n log n).

    It is ``v(nu) = clip(z - nu, lo, hi)`` with the multiplier ``nu`` at which the sum vanishes: piecewise linear and
    decreasing in ``nu``. Breakpoints are sorted, the right piece is found by bisection and solved in closed form.
    Clipping and then moving onto the plane, as the paper does, leaves the box and is no projection.
    """

    def total(nu: float) -> float:
        return float(np.clip(z - nu, lo, hi).sum())

    breaks = np.sort(np.concatenate([z - hi, z, z - lo]))  # z: where an entry is exactly zero
    right = 1 + bisect_left(breaks[1:-1], True, key=lambda nu: total(nu) < 0)
    left = right - 1
    above = total(breaks[left])
    below = total(breaks[right])
    fraction = above / (above - below) if above > below else 0.0
    nu = breaks[left] + fraction * (breaks[right] - breaks[left])
    v = np.clip(z - nu, lo, hi)
    for _ in range(3):
        free = (v > lo) & (v < hi) & (v != 0.0)
        if not free.any():
            break
        v[free] -= v.sum() / free.sum()
        v = np.clip(v, lo, hi)
    return v


def duality_gap(
    gradient: NDArray, v: NDArray, lo: NDArray, hi: NDArray, epsilon: float = 0.0
) -> tuple[float, float]:
    """Bound on how far a concave objective at ``v`` is from its maximum, and the intercept.

    For ``h(v) = (smooth concave)(v) - epsilon * |v|_1`` on ``lo <= v <= hi``, ``sum(v) == 0`` and the gradient
    of the smooth part at ``v``::

        gap = min_b sum_i max_{lo_i <= z <= hi_i} ((gradient_i - b) * z - epsilon * |z|)
              - (gradient @ v - epsilon * |v|_1)  >=  max h - h(v)

    The minimizing ``b`` is the intercept of the machine, or their midpoint if there are several. Each summand is
    nonnegative, so there is no cancellation. Cost O(n log n).
    """
    rows, sides = _edges(gradient, lo, hi, epsilon)
    b = float(np.mean(gradient[rows] - sides * epsilon))
    g = gradient - b
    at_the_better_bound = np.maximum(hi * (g - epsilon), lo * (g + epsilon))
    best = np.maximum(at_the_better_bound, 0.0)
    here = g * v - epsilon * np.abs(v)
    return float(np.maximum(best - here, 0.0).sum()), b


def _edges(gradient: NDArray, lo: NDArray, hi: NDArray, epsilon: float) -> tuple[NDArray, NDArray]:
    """One row or two, and the sides of the tube: the intercept is the mean of ``gradient - side * epsilon`` there."""
    breaks = np.concatenate([gradient - epsilon, gradient + epsilon])
    steps = np.concatenate([hi, -lo])
    used = np.flatnonzero(steps > 0)
    order = used[np.argsort(breaks[used], kind="stable")]
    slope = np.cumsum(steps[order]) - hi.sum()
    flat = 1e-12 * steps.sum()
    first = int(np.searchsorted(slope, -flat))
    first = min(first, len(order) - 1)
    n_edges = 2 if slope[first] <= flat else 1  # every intercept between two breaks is a minimum
    edges = order[first : first + n_edges]
    sides = np.where(edges < len(lo), 1.0, -1.0)
    return edges % len(lo), sides


def linear_terms(p: NDArray, v: NDArray, epsilon: float = 0.0) -> float:
    """``p @ v - epsilon * |v|_1``."""
    return float(p @ v - epsilon * np.abs(v).sum())


def gap_scale(p: NDArray, v: NDArray, epsilon: float = 0.0) -> float:
    """Size of the objective, that of its linear terms: a gap is judged relative to it."""
    return max(abs(linear_terms(p, v, epsilon)), 1e-200)


def _point(problem: Quartic, v: NDArray) -> _Point:
    return _Point(v, problem.K @ v, problem.A @ v**2)


def _gradient(problem: Quartic, point: _Point) -> NDArray:
    return problem.p - point.kv - problem.curvature * point.v * point.q


def _hessian_product(problem: Quartic, point: _Point, d: NDArray) -> NDArray:
    """Product of ``-Hessian = K + curvature * (diag(q) + 2 D_v A D_v)`` with ``d``."""
    v = point.v
    of_quartic = point.q * d + 2 * v * (problem.A @ (v * d))
    return problem.K @ d + problem.curvature * of_quartic


def _hessian_diagonal(problem: Quartic, point: _Point) -> NDArray:
    of_quartic = point.q + 2 * point.v**2 * problem.A.diagonal()
    diagonal = problem.K.diagonal() + problem.curvature * of_quartic
    unit = diagonal.max()
    if unit == 0:  # a matrix of zeros has no unit of its own: the box and the linear term give one
        widest = (problem.hi - problem.lo).max()
        unit = np.abs(problem.p).max() / widest or 1.0
    return np.maximum(diagonal, 1e-12 * unit)


def _hessian_block(problem: Quartic, point: _Point, rows: NDArray) -> NDArray:
    v = point.v[rows]
    block = np.ix_(rows, rows)
    H = problem.A[block]
    H *= 2 * problem.curvature * v
    H *= v[:, None]
    H += problem.K[block]
    H.flat[:: len(rows) + 1] += problem.curvature * point.q[rows]
    return H


def _factor(H: NDArray) -> tuple[NDArray, bool]:
    """Cholesky factor of ``H``, in its place, with the smallest relative ridge that makes it possible."""
    n = len(H)
    diagonal = H.diagonal().copy()
    top = float(diagonal.max()) or 1.0
    ridge = 1e-12
    while True:
        H.flat[:: n + 1] = diagonal + ridge * top
        # H.T has LAPACK's order of entries, so nothing is copied; its upper triangle is the lower one of H
        upper, failed = dpotrf(H.T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            return upper, False
        if ridge >= 1.0:
            raise LinAlgError("the Hessian has no Cholesky factor")
        ridge *= 100.0
        for i in range(1, n):
            H[i, :i] = H[:i, i]


def _solve_on_plane(factor: tuple, rhs: NDArray, total: float) -> tuple[NDArray, float]:
    """Solve ``H d + b = rhs`` with ``sum(d) == total``."""
    right = np.column_stack([rhs, np.ones_like(rhs)])
    of_rhs, of_ones = cho_solve(factor, right, check_finite=False).T
    b = (of_rhs.sum() - total) / of_ones.sum()
    return of_rhs - b * of_ones, b


def _advance(problem: Quartic, point: _Point, target: NDArray, residual: NDArray) -> _Point:
    """Exact line search from ``point`` to the feasible ``target``.

    Along ``v + t d`` the derivative is a decreasing cubic in ``t`` less the jumps of ``epsilon * |v|_1``. The residual
    is the gradient less the intercept: ``sum(d)`` vanishes but for rounding, which times the intercept would drown the
    derivative of the last steps.
    """
    c = problem.curvature
    epsilon = problem.epsilon  # without its problem: what brentq wraps stays in memory for a while
    v = point.v
    d = target - v
    vd = v * d
    kd = problem.K @ d
    a1 = problem.A @ vd
    a2 = problem.A @ d**2
    cubic = -c * (d**2 @ a2)
    square = -3 * c * vd @ a2
    linear = -(d @ kd) - c * (d**2 @ point.q + 2 * vd @ a1)

    def slope(t: float) -> float:
        pull = residual - epsilon * np.sign(v + t * d)
        return float(((cubic * t + square) * t + linear) * t + pull @ d)

    t = 1.0
    moved = target
    if slope(1.0) < 0:
        if slope(0.0) <= 0:
            return point
        t = brentq(slope, 0.0, 1.0, xtol=1e-14)
        moved = v + t * d
    return _Point(moved, point.kv + t * kd, point.q + 2 * t * a1 + t**2 * a2)


def _active_set_target(
    problem: Quartic, point: _Point, gradient: NDArray, b: float
) -> NDArray | None:
    """Maximizer of the quadratic model at ``point``, by a primal-dual active set method.

    Returns None when the sets do not settle: a cycle, no free variable, or too many rounds.
    """
    lo = problem.lo
    hi = problem.hi
    epsilon = problem.epsilon
    v = point.v
    h = _hessian_diagonal(problem, point)
    d = np.zeros_like(v)
    residual = gradient - b
    seen: set[bytes] = set()
    previous = b""
    for _ in range(LIMITS.max_active_set_rounds):
        u = v + d + residual / h
        shrunk = np.maximum(np.abs(u) - epsilon / h, 0.0)
        z = np.sign(u) * shrunk
        # 2 and -2 at the bounds, 1 and -1 free on either side of zero, 0 at the kink
        state = np.sign(z).astype(np.int8)
        state[z <= lo] = -2
        state[z >= hi] = 2
        if epsilon == 0:  # without a tube, zero is no kink: such a variable is free
            state[state == 0] = 1
        key = state.tobytes()
        if key == previous:
            return snap(v + d, lo, hi)  # keeps zeros, which the kink of the tube would feel
        if key in seen:
            return None
        seen.add(key)
        previous = key
        free = np.flatnonzero(np.abs(state) == 1)
        if len(free) == 0:
            return None
        fixed = np.select([state == 2, state == -2], [hi, lo])
        d = fixed - v
        d[free] = 0.0
        rhs = gradient - _hessian_product(problem, point, d)
        signs = state[free] * epsilon
        factor = _factor(_hessian_block(problem, point, free))
        d[free], b = _solve_on_plane(factor, rhs[free] - signs, -(v.sum() + d.sum()))
        residual = gradient - _hessian_product(problem, point, d) - b
        residual[free] = signs  # exact by construction; the recomputed value carries the ridge
    return None


class _Split(NamedTuple):
    """The variable in parts, each a smooth box problem: with a tube ``v = x_1 - x_2``, else v itself."""

    signs: NDArray  # (n_parts, 1)
    low: NDArray  # (n_parts, n)
    high: NDArray

    def joined(self, x: NDArray) -> NDArray:
        """The v that these parts make."""
        return (self.signs * x).sum(0)

    def slack(self, x: NDArray) -> NDArray:
        """Distances from the lower and from the upper bounds."""
        return np.stack([x - self.low, self.high - x])


def _split(problem: Quartic, v: NDArray) -> tuple[_Split, NDArray]:
    """The parts of the variable, and their values at v."""
    if problem.epsilon == 0:
        whole = _Split(np.ones((1, 1)), problem.lo[None], problem.hi[None])
        return whole, v[None]
    signs = np.array([[1.0], [-1.0]])
    high = np.stack([problem.hi, -problem.lo])
    parts = _Split(signs, np.zeros_like(high), high)
    return parts, np.maximum(signs * v, 0.0)


class _Direction(NamedTuple):
    """A step of the interior point method."""

    x: NDArray
    slack: NDArray
    z: NDArray
    b: float  # the intercept after a full step

    @property
    def is_finite(self) -> bool:
        """Whether the step is finite in spite of rounding."""
        return bool(np.isfinite(self.x).all() and np.isfinite(self.z).all())


class _Barrier:
    """Slacks and multipliers of one interior point, for lower and upper bounds, and Newton's direction from there."""

    def __init__(self, parts: _Split, epsilon: float, slack: NDArray, z: NDArray):
        self.signs = parts.signs
        self.epsilon = epsilon
        self.slack = slack
        self.z = z
        self.mu = float(np.mean(z * slack))
        self.theta = (z / slack).sum(0)
        # the barrier adds 1 / give to the Hessian's diagonal in v
        self.give = (1 / self.theta).sum(0)

    def direction(
        self, factor: tuple, gradient: NDArray, total: float, products: NDArray | float
    ) -> _Direction:
        """The step that aims at these complementarity products of slacks and multipliers."""
        aim = products / self.slack
        shift = aim[0] - aim[1] - self.epsilon
        pushed = (self.signs * shift / self.theta).sum(0) / self.give
        dv, b = _solve_on_plane(factor, gradient + pushed, total)
        shared = self.signs * (dv / self.give - pushed)
        dx = (shared + shift) / self.theta
        d_slack = np.stack([dx, -dx])  # a step toward the upper bound uses up its slack
        dz = aim - self.z - self.z * d_slack / self.slack
        return _Direction(dx, d_slack, dz, b)

    def centered(self, predicted: _Direction) -> NDArray:
        """Mehrotra's products to aim at: smaller the further the predicted step can go, and corrected for it."""
        z = self.z + _longest_step(self.z, predicted.z) * predicted.z
        slack = self.slack + _longest_step(self.slack, predicted.slack) * predicted.slack
        ahead = max(float(np.mean(z * slack)), 0.0)
        aim = self.mu * (ahead / self.mu) ** 3
        return aim - predicted.slack * predicted.z


@np.errstate(divide="ignore", invalid="ignore")
def _interior_point(problem: Quartic, v: NDArray, tol: float) -> NDArray:
    """Primal-dual interior point method with Mehrotra's predictor and corrector, started near ``v``.

    With a tube the variable is split, see `_Split`. The answer is moved onto the bounds whose multipliers dominate
    their slacks, unless that is much worse.
    """
    parts, x = _split(problem, v)
    # Stay near v even if the box is far wider than the solution.
    largest = float(np.abs(v).max()) or np.inf
    margin = np.minimum(0.02 * (parts.high - parts.low), 0.1 * largest)
    x = np.clip(x, parts.low + margin, parts.high - margin)
    point = _point(problem, parts.joined(x))
    gradient = _gradient(problem, point)
    _, b = duality_gap(gradient, point.v, problem.lo, problem.hi, problem.epsilon)
    pull = parts.signs * (gradient - b) - problem.epsilon
    mu = max(float(np.mean(np.abs(pull) * margin)), np.finfo(float).tiny)
    z = mu / parts.slack(x)
    rows = np.arange(len(v))
    for _ in range(LIMITS.max_interior_steps):
        barrier = _Barrier(parts, problem.epsilon, parts.slack(x), z)
        # Stationarity falls with mu; pushing mu further would only amplify rounding.
        if 20 * x.size * barrier.mu <= tol * gap_scale(problem.p, point.v, problem.epsilon):
            break
        if not np.isfinite(barrier.theta).all():
            break  # a slack has vanished in rounding: no step improves this point
        H = _hessian_block(problem, point, rows)
        H.flat[:: len(v) + 1] += 1 / barrier.give
        factor = _factor(H)
        total = -point.v.sum()
        predicted = barrier.direction(factor, gradient, total, 0.0)
        step = barrier.direction(factor, gradient, total, barrier.centered(predicted))
        b = step.b
        if not step.is_finite:
            break
        length = _longest_step(barrier.slack, step.slack)
        length_of_z = _longest_step(z, step.z)
        x = x + 0.995 * length * step.x
        z = z + 0.995 * length_of_z * step.z
        point = _point(problem, parts.joined(x))
        gradient = _gradient(problem, point)
    return _to_active_bounds(problem, parts, x, z, gradient - b)


def _to_active_bounds(
    problem: Quartic, parts: _Split, x: NDArray, z: NDArray, residual: NDArray
) -> NDArray:
    """The feasible point with every variable on the bound whose multiplier dominates its slack, unless x is better."""
    # if no multiplier is active, the typical one is rounding, and distant bounds would seem near
    pull = parts.signs * residual - problem.epsilon
    typical = max(float(np.abs(pull).max()), np.finfo(float).tiny)
    width = parts.high - parts.low
    dominated = parts.slack(x) * typical < z * width
    on_bounds = np.select(list(dominated[::-1]), [parts.high, parts.low], x)
    certified = []
    for end in (on_bounds, x):
        v = project(parts.joined(end), problem.lo, problem.hi)
        certified.append(_certify(problem, _point(problem, v), 1.0))
    moved, stayed = certified
    return stayed.v if stayed.gap < 0.1 * moved.gap else moved.v


def _longest_step(value: NDArray, change: NDArray) -> float:
    """Longest ``t <= 1`` that keeps every ``value + t * change`` nonnegative."""
    falling = change < 0
    return float(np.min(-value[falling] / change[falling], initial=1.0))


def snap(v: NDArray, lo: NDArray, hi: NDArray) -> NDArray:
    """Feasible point next to the nearly feasible ``v`` that keeps zeros and bounds exact.

    Values within rounding of a bound or of zero move onto it, and the sum's residual goes to the variable with the most
    room. `project` would spread it over all variables and so leave no zeros.
    """
    v = np.clip(v, lo, hi)
    # the box may be far wider than the solution
    near = 1e-12 * np.minimum(hi - lo, np.abs(v).max())
    is_near = [np.abs(v) <= near, hi - v <= near, v - lo <= near]
    v = np.select(is_near, [np.zeros_like(v), hi, lo], v)
    if not v.any():
        return v
    room = np.minimum(v - lo, hi - v)
    room[v == 0] = -1.0
    i = int(np.argmax(room))
    excess = v.sum()
    if abs(excess) >= room[i]:
        return project(v, lo, hi)
    v[i] -= excess
    return v


def _onto_bounds(problem: Quartic, v: NDArray, residual: NDArray) -> NDArray:
    """Move entries that a step of nearly 1 left beside a bound (or zero, with a tube) onto it, by their multipliers."""
    low = problem.lo
    high = problem.hi
    if problem.epsilon > 0:  # zero is a bound as well
        low = np.where(v >= 0, 0.0, low)
        high = np.where(v <= 0, 0.0, high)
    slope = residual - problem.epsilon * np.sign(v)
    steepness = np.abs(slope) / (np.abs(slope).max() or 1.0)
    reach = np.minimum(high - low, np.abs(v).max())  # the box may be far wider than the solution
    near = reach * np.minimum(steepness, 1e-6)
    is_at_high = (slope > 0) & (high - v < near)
    is_at_low = (slope < 0) & (v - low < near)
    v = np.select([is_at_high, is_at_low], [high, low], v)
    return snap(v, problem.lo, problem.hi)


def solve_quartic(
    problem: Quartic,
    start: NDArray,
    *,
    tol: float = 1e-6,
    scale: float | None = None,
    max_steps: int = 12,
) -> QuarticSolution:
    """Maximize from a feasible start, until ``gap <= tol * scale``.

    Sequential quadratic programming: each model is solved by a primal-dual active set method, the step by an exact line
    search, which converges quadratically at the end. If the active sets do not settle, an interior point method
    takes over, followed by active set steps that put variables exactly onto their bounds. The scale is by default the
    size of the objective; `max_steps` bounds the models, and the point with the smallest gap is returned.
    The start's length is adjusted first by a line search toward zero. The curvature of DANK is
    ``1 / (4 * centering_penalty)``; 0 gives the support vector machine.

    Cost: one Cholesky factorization of the free block per active set round, O(n^2) otherwise; memory ``3 n^2`` numbers
    with ``K`` and ``A``. The certificate is the relative duality gap: the problem is concave, the maximum global.
    """
    lo = problem.lo
    hi = problem.hi
    point = _point(problem, start)
    point = _advance(problem, point, np.zeros_like(start), _gradient(problem, point))
    best = QuarticSolution(point.v, np.zeros_like(start), 0.0, np.inf)
    n_interior = 0
    for step in range(max_steps + 1):
        now = _certify(problem, point, scale)
        if now.gap < best.gap:
            best = now
        if now.gap <= tol or step == max_steps:
            break
        target = _active_set_target(problem, point, now.gradient, now.intercept)
        if target is not None:
            moved = _advance(problem, point, target, now.gradient - now.intercept)
            if moved is not point:
                point = _point(problem, snap(moved.v, lo, hi))
                continue
        if n_interior == 3:
            break
        interior_tol = max(tol * 10.0 ** -(2 * n_interior), 1e-11)
        inside = _interior_point(problem, point.v, interior_tol)
        n_interior += 1
        point = _point(problem, snap(inside, lo, hi))
    on_bounds = _onto_bounds(problem, best.v, best.gradient - best.intercept)
    settled = _certify(problem, _point(problem, on_bounds), scale)
    return settled if settled.gap <= best.gap else best


def _certify(problem: Quartic, point: _Point, scale: float | None) -> QuarticSolution:
    """How far a point is from the maximum, relative to the scale or, if None, to the size of the objective."""
    gradient = _gradient(problem, point)
    gap, b = duality_gap(gradient, point.v, problem.lo, problem.hi, problem.epsilon)
    if scale is None:
        scale = gap_scale(problem.p, point.v, problem.epsilon)
    return QuarticSolution(point.v, gradient, b, gap / scale)


class Adjoint(NamedTuple):
    """How a loss changes with the problem: by ``z @ (change of the gradient)``, and with v on its bounds."""

    z: NDArray
    image: NDArray  # -Hessian @ z + beta: the cost of a change of v on its bounds
    sides: NDArray  # of the tube where z is not 0: the sign of v, or of the v about to be


def adjoint(problem: Quartic, v: NDArray, a: NDArray, total: float) -> Adjoint:
    """Implicit derivative at the solution v of a loss with derivatives ``a`` in v and ``total`` in the intercept.

    On the rows strictly inside their piece of the box it solves ``-Hessian z + beta = a``, ``sum(z) == total``. If no
    row is inside, v does not move, and the intercept is the mean of the one or two entries of the gradient that bound
    it: z is their share of the total. v has exact bounds and zeros, as `solve_quartic` returns it. The derivative
    exists unless a row on a bound or at zero has a vanishing multiplier, thus almost everywhere; at such a kink it is
    the derivative of the piece on which these rows do not move.
    """
    point = _point(problem, v)
    z = np.zeros_like(v)
    sides = np.sign(v)
    beta = 0.0
    is_free = (v > problem.lo) & (v < problem.hi)
    if problem.epsilon > 0:
        is_free &= v != 0
    free = np.flatnonzero(is_free)
    if len(free):
        factor = _factor(_hessian_block(problem, point, free))
        z[free], beta = _solve_on_plane(factor, a[free], total)
    else:
        rows, edges = _edges(_gradient(problem, point), problem.lo, problem.hi, problem.epsilon)
        np.add.at(z, rows, total / len(rows))
        sides[rows] = edges
    return Adjoint(z, _hessian_product(problem, point, z) + beta, sides)
