"""Support vector machines that adapt their kernel matrix (DANK), solved to a certified optimum."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpstrf
from scipy.sparse.linalg import eigsh
from sklearn.svm import SVC, SVR

from mercerless.core.folds import find_copies
from mercerless.core.memory import row_blocks
from mercerless.core.svm import single_precision_unit
from mercerless.dank.quartic import (
    Quartic,
    duality_gap,
    gap_scale,
    linear_terms,
    snap,
    solve_quartic,
)
from mercerless.dank.thresholds import LIMITS

Gram = Callable[[NDArray, NDArray], NDArray]


class DankTask(NamedTuple):
    """One two-class or regression problem on a subset of the training rows."""

    rows: NDArray  # numbers of the training items
    target: NDArray  # labels -1, +1 or numbers
    weight: NDArray  # positive multiplicities
    epsilon: float  # half width of the tube, 0 for classes
    is_classification: bool

    def take(self, positions: NDArray) -> "DankTask":
        """The same problem on a subset of its rows, given by their positions."""
        return self._replace(
            rows=self.rows[positions], target=self.target[positions], weight=self.weight[positions]
        )

    def bounds(self, C: float) -> tuple[NDArray, NDArray]:
        """Bounds of the dual coefficients."""
        limit = C * self.weight
        if self.is_classification:
            return np.minimum(self.target * limit, 0.0), np.maximum(self.target * limit, 0.0)
        return -limit, limit


def plain_machine(task: DankTask, data: NDArray, C: float, tol: float, **kernel: Any) -> NDArray:
    """Dual solution of libsvm's machine, the same for equal rows; zero if all targets are equal.

    Targets are of unit size, since libsvm's tolerance is absolute.
    """
    if np.ptp(task.target) == 0:
        return np.zeros(len(task.rows))
    unit = 1.0
    if kernel.get("kernel") == "precomputed":
        unit = single_precision_unit(data)
        scaled = data / unit
    else:  # squared distances lose their digits far from the origin
        scaled = data - np.median(data, axis=0)
    if task.is_classification:
        model = SVC(C=C * unit, tol=tol, **kernel)
    else:
        model = SVR(C=C * unit, epsilon=task.epsilon, tol=tol, **kernel)
    model.random_state = 0  # libsvm takes a seed of the global generator otherwise
    model.fit(scaled, task.target, sample_weight=task.weight)
    v = np.zeros(len(task.rows))
    v[model.support_] = model.dual_coef_[0] / unit
    # libsvm's share between equal rows is arbitrary
    copies = find_copies(np.column_stack([data, task.target]))
    of_copies = np.bincount(copies, v) / np.bincount(copies, task.weight)
    return task.weight * of_copies[copies]


class DankStep(NamedTuple):
    """One outer step, as passed to callbacks."""

    objective: float  # less the constant eta * tau * sum(weights)
    gap: float  # relative, on the working set
    rank: int  # of the adaptation


class DankSolution(NamedTuple):
    """Solution of the DANK problem and its certificate."""

    dual: NDArray  # v
    expansion: NDArray  # v * F(., a new point): coefficients of the inductive predictor
    intercept: float
    gap: float  # relative, over all rows
    objective: float
    support: NDArray  # rows with v != 0
    factor: NDArray  # (n_support, rank): F on the support is factor @ factor.T
    offset: NDArray  # (rank,): the same for any point with v = 0
    n_working: int
    n_iter: int = 0  # outer steps


class _DankProblem(NamedTuple):
    """The problem restricted to the working set."""

    K: NDArray
    A: NDArray  # K**2 per unit weight
    p: NDArray
    lo: NDArray
    hi: NDArray
    weight: NDArray
    outside: float  # weight of the rows not in the working set
    centering_penalty: float
    rank_penalty: float
    epsilon: float


class _Adaptation(NamedTuple):
    """F = sum_r (values_r - rank_penalty / 2) a_r a_r^T per unit weight, with a_r the vectors."""

    values: NDArray  # kept eigenvalues of M
    vectors: NDArray  # (n_support, rank)
    offset: NDArray  # (rank,), the same of any row with v = 0
    dropped: float  # sum of lambda * (rank_penalty - lambda) over the other eigenvalues


class _State(NamedTuple):
    """A point, and the values there that an outer step needs."""

    v: NDArray
    kv: NDArray  # K v
    quartic: NDArray  # gradient of the quartic term
    smooth: NDArray  # (F * K) v
    adaptation: _Adaptation | None
    rank: int
    value: float
    gap: float
    scale: float

    def linear(self, share: float) -> NDArray:
        """The term to add to p so that the model with this share of the quartic term has h's gradient here."""
        return self.kv + share * self.quartic - self.smooth

    def improves(self, other: "_State") -> bool:
        """Whether the objective is higher here than there, or equal up to rounding with a smaller gap."""
        rounding = 1e-12 * (abs(other.value) + other.scale)
        is_equal = self.value >= other.value - rounding
        return self.value > other.value or (self.gap < other.gap and is_equal)


def solve_dank(
    gram: Gram,
    p: NDArray,
    lo: NDArray,
    hi: NDArray,
    *,
    centering_penalty: float,
    rank_penalty: float,
    start: NDArray,
    epsilon: float = 0.0,
    weight: NDArray | None = None,
    tol: float = 1e-4,
    max_iter: int = 50,
    callback: Callable[[DankStep], bool | None] | None = None,
) -> DankSolution:
    """Maximize over v, minimize over F, to a relative duality gap of `tol` on all rows::

        p @ v - epsilon |v|_1 - v @ (F * K) @ v / 2
            + eta * |F - 1|_F^2 + eta * rank_penalty * trace(F)
        subject to lo <= v <= hi, sum(v) == 0, F positive semi-definite

    with both norms of F taken over rows repeated ``weight`` times. ``gram(rows, columns)`` gives blocks of the positive
    semi-definite K (for the working set with ``columns is rows``), ``start`` is the plain machine's dual solution,
    `max_iter` limits the outer steps per working set, and a true answer of the callback stops them. As in the paper,
    eta is the centering penalty (> 0) and tau the rank penalty (>= 0): eigenvalues below half of it vanish.

    Eliminating F leaves a concave function of v alone. With ``M = sqrt(w) sqrt(w)^T + D_u K D_u``,
    ``u = v / (2 sqrt(eta * w))`` and eigenvalues ``lambda``::

        F = sum_r max(lambda_r - tau / 2, 0) u_r u_r^T
        h(v) = p @ v - epsilon |v|_1 + eta * (n^2 - sum_r max(lambda_r - tau / 2, 0)^2)
        gradient of the smooth part = p - (F * K) v

    For ``tau = 0`` h is a quartic, see `solve_quartic`. For ``tau > 0`` the quartic less the smooth term of h is
    convex; an outer step replaces that difference by its tangent and solves the quartic problem that is left,
    so h grows at every step. Two liberties make this faster: a model with only a share of the quartic term,
    matched along v, and Anderson's extrapolation of the tangents. Neither is a bound, so their steps are kept
    only when h grew.
    All rows with ``v = 0`` act as one row of M, so F needs an ``(n_support + 1)`` matrix only. Rows enter the
    problem through a working set, and a check of all rows adds those that violate their optimality condition.

    Cost: per outer step a few Cholesky factorizations of the free block and the leading eigenpairs of an
    ``(n_support + 1)`` matrix. Memory: six matrices of m rows and columns for m working rows, not of n.
    Degenerate cases: ``start = 0`` is optimal for every F and is returned as it is. The problem is concave in v, so a
    gap near zero certifies a global optimum.

    Differences from Liu, Huang, Gong, Yang, Li, JMLR 21 (2020): Algorithm 1 there needs a plus sign in line 7, its
    projection is not one, and its Lipschitz constant makes the method stand still; nothing of it is used. The
    multiplicities are new.
    """
    if weight is None:
        weight = np.ones(len(p))
    center = (p.max() + p.min()) / 2  # sum(v) = 0, so this only protects p @ v from cancellation
    whole = _WholeProblem(
        gram, p - center, lo, hi, weight, centering_penalty, rank_penalty, epsilon
    )
    v = snap(start, lo, hi)
    working = whole.first_working_set(v)
    n_iter = 0
    working_tol = max(1e-2, tol / 2)
    known: _Adaptation | None = None
    for _ in range(LIMITS.max_rounds):
        if len(working) == len(p):
            working_tol = tol
        problem = whole.restricted_to(working)
        start_of_set = _evaluate(problem, v[working], known)
        course = _outer_steps(problem, start_of_set, working_tol, max_iter, callback)
        n_iter += course.n_steps
        solution, violators = whole.extended(problem, course.state, working)
        is_settled = len(violators) == 0 and working_tol <= tol
        if solution.gap <= tol or course.stopped or is_settled:
            break
        v = solution.dual
        known = course.state.adaptation  # rows that come in have v = 0
        working = np.union1d(working, violators)
        working_tol = tol / 2
        del problem  # before a larger one is made
    return solution._replace(intercept=solution.intercept + center, n_iter=n_iter)


@dataclass(frozen=True, eq=False)
class _WholeProblem:
    """The problem on all rows, with K read in blocks; working sets are cut from it and checked against it."""

    gram: Gram
    p: NDArray
    lo: NDArray
    hi: NDArray
    weight: NDArray
    centering_penalty: float
    rank_penalty: float
    epsilon: float

    def first_working_set(self, v: NDArray) -> NDArray:
        """Support vectors of the plain machine and the rows within 5 % of becoming one, nearest first."""
        n = len(self.p)
        if n <= LIMITS.all_rows:
            return np.arange(n)
        support = np.flatnonzero(v)
        gradient = self.p - self.decision(np.arange(n), v)
        _, b = duality_gap(gradient, v, self.lo, self.hi, self.epsilon)
        margin = self.epsilon or float(np.abs(self.p).max())
        gain = self.gain(gradient - b)
        gain[support] = -np.inf
        near = _largest(gain, -LIMITS.near_margin * margin, len(support), LIMITS.near_share)
        working = np.union1d(support, near)
        if len(working) == 0:  # all labels are equal: any rows will do
            return np.arange(LIMITS.all_rows)
        return working

    def restricted_to(self, working: NDArray) -> _DankProblem:
        """The problem of the working set, with its part of K in memory."""
        weight = self.weight[working]
        K = self.gram(working, working)
        A = np.square(K)
        if np.any(weight != 1.0):
            A /= weight
            A /= weight[:, None]
        return _DankProblem(
            K=K,
            A=A,
            p=self.p[working],
            lo=self.lo[working],
            hi=self.hi[working],
            weight=weight,
            outside=float(np.delete(self.weight, working).sum()),
            centering_penalty=self.centering_penalty,
            rank_penalty=self.rank_penalty,
            epsilon=self.epsilon,
        )

    def extended(
        self, problem: _DankProblem, state: _State, working: NDArray
    ) -> tuple[DankSolution, NDArray]:
        """The state of the working set as a solution on all rows, and the rows that violate optimality most."""
        n = len(self.p)
        v = np.zeros(n)
        v[working] = state.v
        support = np.flatnonzero(v)
        factor, offset = _factor(problem, state)
        expansion = np.zeros(n)
        expansion[support] = v[support] * (factor @ offset)

        rest = np.setdiff1d(np.arange(n), working, assume_unique=True)
        gradient = self.p.copy()
        gradient[working] -= state.smooth
        gradient[rest] -= self.decision(rest, expansion)
        gap, b = duality_gap(gradient, v, self.lo, self.hi, self.epsilon)
        gap /= gap_scale(self.p, v, self.epsilon)
        gain = self.gain(gradient - b)[rest]
        violators = rest[_largest(gain, 0.0, len(working))]
        solution = DankSolution(
            dual=v,
            expansion=expansion,
            intercept=b,
            gap=gap,
            objective=state.value,
            support=support,
            factor=factor,
            offset=offset,
            n_working=len(working),
        )
        return solution, violators

    def gain(self, residual: NDArray) -> NDArray:
        """Derivative of the objective when a row leaves v = 0 in its better direction."""
        up = np.where(self.hi > 0, residual - self.epsilon, -np.inf)
        down = np.where(self.lo < 0, -residual - self.epsilon, -np.inf)
        return np.maximum(up, down)

    def decision(self, rows: NDArray, coefficient: NDArray) -> NDArray:
        """``K[rows] @ coefficient`` in row blocks, without the zero coefficients."""
        columns = np.flatnonzero(coefficient)
        values = np.zeros(len(rows))
        if len(columns):
            for block in row_blocks(len(rows), 8 * len(columns)):
                values[block] = self.gram(rows[block], columns) @ coefficient[columns]
        return values


def _largest(gain: NDArray, above: float, n_working: int, share: float = 1 / 3) -> NDArray:
    """Rows with the largest gains, at most as many as this share of the working set."""
    rows = np.flatnonzero(gain > above)
    limit = max(100, int(share * n_working))
    if len(rows) <= limit:
        return rows
    return rows[np.argpartition(-gain[rows], limit)[:limit]]


class _Course(NamedTuple):
    """The result of the outer steps on a working set."""

    state: _State
    n_steps: int
    stopped: bool  # by the callback


def _outer_steps(
    problem: _DankProblem, state: _State, tol: float, max_iter: int, callback: Callable | None
) -> _Course:
    """Outer steps on the working set: each solves a quartic model that has the objective's gradient at its start.

    A step that does not improve the objective is undone, and the next model is more cautious: first without
    extrapolation, then with more of the quartic term, then solved more exactly.
    """
    share = _quartic_share(state)
    inner_tol = np.inf
    # linear terms given to the model, and found at its solution
    memory: list[tuple[NDArray, NDArray]] = []
    linear = state.linear(share)
    for step in range(max_iter):
        now = DankStep(state.value, state.gap, state.rank)
        is_stopped = callback is not None and bool(callback(now))
        if is_stopped or state.gap <= tol:
            return _Course(state, step, is_stopped)
        # An inner gap near the target would stall the outer loop; the inner solver ends quadratically.
        inner_tol = max(0.03 * tol, min(1e-2, 0.05 * state.gap, inner_tol))
        curvature = share / (4.0 * problem.centering_penalty)
        p = problem.p + linear
        model = Quartic(problem.K, problem.A, curvature, p, problem.lo, problem.hi, problem.epsilon)
        inner = solve_quartic(model, state.v, scale=state.scale, tol=inner_tol)
        new = _evaluate(problem, inner.v, n_guess=state.rank + 2)
        if new.improves(state):
            memory = [*memory[-4:], (linear, new.linear(share))]
            state = new
            linear = _mix(memory)
        elif len(memory) > 0:
            memory = []
            linear = state.linear(share)
        elif share < 1.0:
            share = 1.0 if share > 0.9 else 0.5 * (1.0 + share)
            linear = state.linear(share)
        elif inner_tol > 1e-3 * tol:
            inner_tol /= 10.0
        else:
            break
    return _Course(state, step + 1, stopped=False)


def _mix(memory: list[tuple[NDArray, NDArray]]) -> NDArray:
    """Anderson's extrapolation of the fixed-point iteration of linear terms."""
    given, answers = np.array(memory).transpose(1, 0, 2)
    residual = answers - given
    steps = np.diff(residual, axis=0)
    weights, *_ = np.linalg.lstsq(steps.T, residual[-1], rcond=1e-8)
    return answers[-1] - weights @ np.diff(answers, axis=0)


def _quartic_share(state: _State) -> float:
    """Share of the quartic term that has the gradient of the rank-penalized one along v."""
    if state.adaptation is None:
        return 1.0
    whole = float(state.v @ state.quartic)
    if whole <= 0:
        return 1.0
    return float(np.clip(state.v @ (state.smooth - state.kv) / whole, 0.0, 1.0))


def _evaluate(
    problem: _DankProblem, v: NDArray, known: _Adaptation | None = None, n_guess: int = 12
) -> _State:
    """Value (less a constant, without cancellation), gradient, adaptation and gap at v.

    The adaptation is computed unless it is known; `n_guess` is how many eigenpairs are asked for first.
    """
    eta = problem.centering_penalty
    tau = problem.rank_penalty
    kv = problem.K @ v
    quartic = v * (problem.A @ v**2) / (4 * eta)
    scale = gap_scale(problem.p, v, problem.epsilon)
    value = linear_terms(problem.p, v, problem.epsilon)
    value -= float(v @ kv) / 2 + float(v @ quartic) / 4
    adaptation = None
    smooth = kv + quartic
    rank = 1 + int(np.count_nonzero(v))
    if tau > 0:
        adaptation = known or _adapt(problem, v, n_guess)
        rank = len(adaptation.values)
        smooth = _penalized_gradient(problem, v, adaptation)
        trace = float((v**2 / problem.weight) @ problem.K.diagonal()) / (4 * eta)
        value += eta * (tau * trace - rank * tau**2 / 4 - adaptation.dropped)
    gap, _ = duality_gap(problem.p - smooth, v, problem.lo, problem.hi, problem.epsilon)
    return _State(v, kv, quartic, smooth, adaptation, rank, value, gap / scale, scale)


def _adapt(problem: _DankProblem, v: NDArray, n_guess: int) -> _Adaptation:
    """Eigenpairs of M above ``tau / 2``, from the support.

    All rows with v = 0 act as one row of their weight m, so the spectrum of M is that of the ``n_support + 1`` matrix
    ``e e^T + [[0, 0], [0, Gamma]]`` with ``e = (sqrt(m), sqrt(w))``.
    """
    support = np.flatnonzero(v)
    weight = problem.weight[support]
    unsupported = problem.outside + problem.weight[v == 0].sum()
    e = np.sqrt(np.append(unsupported, weight))
    gamma = _gamma(problem, v, support)
    M = np.outer(e, e)
    M[1:, 1:] += gamma
    values, vectors = _leading_eigenpairs(M, problem.rank_penalty / 2, n_guess)

    # Sums of lambda and lambda^2 over the dropped ones, written so that the large part e e^T never cancels.
    along = e @ vectors
    rest = e - vectors @ along  # e outside the kept space
    kept = vectors[1:]
    gamma_kept = gamma @ kept
    inner = kept.T @ gamma_kept
    norm = float(rest @ rest)
    first = norm + float(np.trace(gamma) - np.trace(inner))
    second = norm**2 + 2 * float(rest[1:] @ (gamma @ rest[1:]))
    second += float(np.vdot(gamma, gamma) - 2 * np.sum(gamma_kept**2) + np.sum(inner**2))
    dropped = max(problem.rank_penalty * first - second, 0.0)
    return _Adaptation(values, kept / np.sqrt(weight)[:, None], along / values, dropped)


def _gamma(problem: _DankProblem, v: NDArray, support: NDArray) -> NDArray:
    """``Gamma = D_u K D_u`` on the support, with ``u = v / (2 sqrt(eta * w))``."""
    gamma = problem.K[np.ix_(support, support)]
    u = v[support] / (2.0 * np.sqrt(problem.centering_penalty * problem.weight[support]))
    gamma *= u
    gamma *= u[:, None]
    return gamma


def _leading_eigenpairs(M: NDArray, above: float, n_guess: int) -> tuple[NDArray, NDArray]:
    """Eigenpairs of the symmetric M with eigenvalue > above. M may be overwritten."""
    count = n_guess
    while len(M) > LIMITS.dense_eigen and count < len(M) // 4:
        first = np.random.default_rng(0).standard_normal(len(M))
        values, vectors = eigsh(M, k=count, which="LA", tol=1e-10, v0=first)
        if values.min() <= above:
            break
        count *= 2
    else:
        values, vectors = eigh(M.T, driver="evd", check_finite=False, overwrite_a=True)
    kept = values > above
    return values[kept], vectors[:, kept]


def _penalized_gradient(problem: _DankProblem, v: NDArray, adaptation: _Adaptation) -> NDArray:
    """``(F * K) v`` on the working set."""
    vectors = np.tile(adaptation.offset, (len(v), 1))
    vectors[v != 0] = adaptation.vectors
    strengths = adaptation.values - problem.rank_penalty / 2
    products = problem.K @ (v[:, None] * (vectors * strengths))
    return np.einsum("ir,ir->i", products, vectors)


def _factor(problem: _DankProblem, state: _State) -> tuple[NDArray, NDArray]:
    """F as ``factor @ factor.T`` on the support, and the row of the factor for a point with v = 0."""
    if state.adaptation is not None:
        root = np.sqrt(state.adaptation.values - problem.rank_penalty / 2)
        return state.adaptation.vectors * root, state.adaptation.offset * root
    support = np.flatnonzero(state.v)
    root_weight = np.sqrt(problem.weight[support])
    gamma = _gamma(problem, state.v, support)
    F = np.ones((len(support) + 1, len(support) + 1))
    F[1:, 1:] += gamma / root_weight / root_weight[:, None]
    L, pivots, rank, _ = dpstrf(F.T, tol=1e-12 * F.diagonal().max(), lower=1, overwrite_a=1)
    factor = np.empty((len(F), rank))
    factor[pivots - 1] = np.tril(L[:, :rank])
    return factor[1:], factor[0]
