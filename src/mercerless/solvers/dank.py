"""Support vector machines that adapt their kernel matrix (DANK), solved to a certified optimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpstrf
from scipy.sparse.linalg import LinearOperator, eigsh

from mercerless._memory import check_memory, row_blocks
from mercerless.solvers.quartic import duality_gap, gap_scale, snap, solve_quartic

_DENSE_EIGEN = 150  # below this size a full eigendecomposition is faster than Lanczos iterations
_ALL_ROWS = 500  # up to this size every row is in the working set
_MAX_ROUNDS = 20  # of the working set
_MATRICES = 6  # of the working set's size, at the peak: K, its square, K on the support, M, its eigenvectors, a copy

Gram = Callable[[np.ndarray, np.ndarray], np.ndarray]


class DankStep(NamedTuple):
    """One outer step: what a callback sees and a convergence display draws."""

    objective: float  # less the constant centering * rank_penalty * sum(weights)
    gap: float  # relative, on the working set
    rank: int  # of the adaptation


class DankSolution(NamedTuple):
    """Solution of the DANK problem and its certificate."""

    dual: np.ndarray  # v
    expansion: np.ndarray  # v * F(., a new point): coefficients of the inductive predictor
    intercept: float
    gap: float  # relative, over all rows
    objective: float
    support: np.ndarray  # rows with v != 0
    factor: np.ndarray  # (n_support, rank): F on the support is factor @ factor.T
    offset: np.ndarray  # (rank,): the same for any point with v = 0
    history: tuple[DankStep, ...]
    n_iter: int  # outer steps
    n_evaluations: int  # products with the kernel matrix or its square
    n_working: int


class _Problem(NamedTuple):
    """The problem restricted to the working set."""

    K: np.ndarray
    A: np.ndarray  # K**2 per unit weight
    p: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    weight: np.ndarray
    outside: float  # weight of the rows not in the working set
    centering: float
    rank_penalty: float
    epsilon: float


class _Adaptation(NamedTuple):
    """F = sum_r (values_r - rank_penalty / 2) a_r a_r^T per unit weight, a_r = vectors or, where v = 0, offset."""

    values: np.ndarray  # kept eigenvalues of M
    vectors: np.ndarray  # (n_support, rank)
    offset: np.ndarray  # (rank,)
    dropped: float  # sum of lambda * (rank_penalty - lambda) over the other eigenvalues


class _State(NamedTuple):
    """A point and everything an outer step needs to know there."""

    v: np.ndarray
    kv: np.ndarray  # K v
    quartic: np.ndarray  # gradient of the quartic term
    smooth: np.ndarray  # (F * K) v
    adaptation: _Adaptation | None
    rank: int
    value: float
    gap: float
    scale: float

    def linear(self, share: float) -> np.ndarray:
        """What to add to p so that the model with this share of the quartic term has h's gradient here."""
        return self.kv + share * self.quartic - self.smooth


def solve_dank(
    gram: Gram,
    p: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    *,
    centering: float,
    rank_penalty: float,
    start: np.ndarray,
    epsilon: float = 0.0,
    weight: np.ndarray | None = None,
    tol: float = 1e-4,
    max_iter: int = 50,
    memory_limit: int | str | None = None,
    callback: Callable[[DankStep], bool | None] | None = None,
) -> DankSolution:
    """Maximise over v, minimise over F::

        p @ v - epsilon |v|_1 - v @ (F * K) @ v / 2
            + centering * |F - 1|_F^2 + centering * rank_penalty * trace(F)
        subject to lo <= v <= hi, sum(v) == 0, F positive semi-definite

    with both norms of F taken over rows repeated ``weight`` times.

    Parameters
    ----------
    gram : callable
        ``gram(rows, columns)`` returns that block of the base kernel matrix K, positive semi-definite.
    p, lo, hi : ndarray of shape (n,)
        The targets (labels -1, +1 in classification) and the bounds, ``lo <= 0 <= hi``. Classification has
        ``lo, hi`` between 0 and ``C * weight * label``, regression ``-C * weight`` and ``C * weight``.
    centering : float
        The paper's eta, > 0: how strongly F is drawn to the matrix of ones.
    rank_penalty : float
        The paper's tau, >= 0: weight of the trace norm; eigenvalues below half of it vanish.
    start : ndarray of shape (n,)
        Dual solution of the plain support vector machine.
    epsilon : float, default=0.0
        Half width of the insensitive tube; 0 in classification.
    weight : ndarray of shape (n,) or None, default=None
        Positive multiplicities of the rows.
    tol : float, default=1e-4
        Relative duality gap to reach on all rows.
    max_iter : int, default=50
        Limit on the outer steps per working set.
    memory_limit : int, str or None, default=None
        Bytes that the working set's matrices may take; None means half of what is free.
    callback : callable or None, default=None
        Called with each `DankStep`; a true answer stops the iteration.

    Returns
    -------
    DankSolution
        The problem is concave in v after F is eliminated, so a gap near zero certifies a global optimum.

    Notes
    -----
    Eliminating F leaves a concave function of v alone. With ``M = sqrt(w) sqrt(w)^T + D_u K D_u``,
    ``u = v / (2 sqrt(centering * w))``, eigenvalues ``lambda`` and ``t = rank_penalty``::

        F = sum_r max(lambda_r - t / 2, 0) u_r u_r^T
        h(v) = p @ v - epsilon |v|_1 + centering * (n^2 - sum_r max(lambda_r - t / 2, 0)^2)
        gradient of the smooth part = p - (F * K) v

    For ``t = 0`` h is a quartic, see `solve_quartic`. For ``t > 0`` the quartic less the smooth term of h is
    convex; an outer step replaces that difference by its tangent and solves the quartic problem that is left,
    so h grows at every step. Two liberties make this faster: a model with only a share of the quartic term,
    matched along v, and Anderson's extrapolation of the tangents. Neither is a bound, so their steps are kept
    only when h grew.
    All rows with ``v = 0`` act as one row of M, so F needs an ``(n_support + 1)`` matrix only. Rows enter the
    problem through a working set, and a check of all rows adds those that violate their optimality condition.

    Cost: per outer step a few Cholesky factorisations of the free block and the leading eigenpairs of an
    ``(n_support + 1)`` matrix. Memory: at most ``6 m^2`` numbers for ``m`` working rows, not ``n^2``.
    Degenerate cases: ``start = 0`` is optimal for every F and is returned as it is.

    Differences from the paper: its Algorithm 1 needs a plus sign in line 7, its projection is not one, and its
    Lipschitz constant makes the method stand still; nothing of it is used. The multiplicities are new.

    References
    ----------
    Liu, Huang, Gong, Yang, Li. Learning data-adaptive non-parametric kernels. JMLR 21 (2020).
    """
    n = len(p)
    weight = np.ones(n) if weight is None else weight
    centre = (p.max() + p.min()) / 2  # sum(v) = 0, so this only protects p @ v from cancellation
    p = p - centre
    v = snap(start, lo, hi)
    penalties = {"centering": centering, "rank_penalty": rank_penalty, "epsilon": epsilon}
    working = _first_working_set(gram, p, v, lo, hi, epsilon)
    history: list[DankStep] = []
    evaluations, n_rounds, local_tol = 1, 0, 1e-2
    for _ in range(_MAX_ROUNDS):
        n_rounds += 1
        problem = _on_working_set(gram, working, p, lo, hi, weight, memory_limit, penalties)
        local_tol = tol if len(working) == n else max(local_tol, tol / 2)
        state, used, stopped = _majorise_minimise(problem, v[working], local_tol, max_iter, history, callback)
        evaluations += used + 1
        found = _on_all_rows(gram, problem, state, working, p)
        v = found.v
        gap, b = duality_gap(found.gradient, v, lo, hi, epsilon)
        gap /= gap_scale(p, v, epsilon)
        gain = _gain(found.gradient - b, lo, hi, epsilon)
        violators = found.rest[_largest(gain[found.rest], 0.0, len(working))]
        if gap <= tol or stopped or (len(violators) == 0 and local_tol <= tol):
            break
        working = np.union1d(working, violators)
        local_tol = tol / 2
        del problem  # before a larger one is made
    return DankSolution(
        dual=v,
        expansion=found.expansion,
        intercept=b + centre,
        gap=gap,
        objective=state.value,
        support=np.flatnonzero(v),
        factor=found.factor,
        offset=found.offset,
        history=tuple(history),
        n_iter=len(history) - n_rounds,
        n_evaluations=evaluations,
        n_working=len(working),
    )


class _AllRows(NamedTuple):
    """A state of the working set, seen from all rows."""

    v: np.ndarray
    expansion: np.ndarray
    gradient: np.ndarray
    factor: np.ndarray
    offset: np.ndarray
    rest: np.ndarray  # rows outside the working set


def _on_all_rows(gram: Gram, problem: _Problem, state: _State, working: np.ndarray, p: np.ndarray) -> _AllRows:
    """Extend the working set's solution by zeros, and evaluate the gradient of the smooth part everywhere."""
    factor, offset = _factor(problem, state)
    v, expansion = np.zeros((2, len(p)))
    v[working] = state.v
    support = np.flatnonzero(v)
    expansion[support] = v[support] * (factor @ offset)
    gradient = p.copy()
    gradient[working] -= state.smooth
    rest = np.setdiff1d(np.arange(len(p)), working, assume_unique=True)
    gradient[rest] -= _decision(gram, rest, expansion)
    return _AllRows(v, expansion, gradient, factor, offset, rest)


def _on_working_set(
    gram: Gram,
    working: np.ndarray,
    p: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    weight: np.ndarray,
    memory_limit: int | str | None,
    penalties: dict[str, float],
) -> _Problem:
    """The problem of the working set, after asking whether its matrices and those derived from them will fit."""
    check_memory(
        8 * _MATRICES * len(working) ** 2,
        f"A working set of {len(working)} rows",
        memory_limit,
        remedy="split the data with n_parts, lower C, or raise memory_limit",
    )
    K = gram(working, working)
    return _Problem(
        K=K,
        A=_squared_per_weight(K, weight[working]),
        p=p[working],
        lo=lo[working],
        hi=hi[working],
        weight=weight[working],
        outside=float(weight.sum() - weight[working].sum()),
        **penalties,
    )


def _squared_per_weight(K: np.ndarray, weight: np.ndarray) -> np.ndarray:
    A = K**2
    A /= weight
    A /= weight[:, None]
    return A


def _gain(residual: np.ndarray, lo: np.ndarray, hi: np.ndarray, epsilon: float) -> np.ndarray:
    """Derivative of the objective when a row leaves v = 0 in its better direction."""
    up = np.where(hi > 0, residual - epsilon, -np.inf)
    down = np.where(lo < 0, -residual - epsilon, -np.inf)
    return np.maximum(up, down)


def _first_working_set(gram: Gram, p, v, lo, hi, epsilon: float) -> np.ndarray:
    """Support vectors of the plain machine and the rows within 5 % of becoming one, nearest first."""
    if len(p) <= _ALL_ROWS:
        return np.arange(len(p))
    gradient = p - _decision(gram, np.arange(len(p)), v)
    _, b = duality_gap(gradient, v, lo, hi, epsilon)
    slack = 0.05 * (epsilon if epsilon > 0 else float(np.abs(p).max()))
    gain = np.where(v != 0, -np.inf, _gain(gradient - b, lo, hi, epsilon))
    working = np.union1d(np.flatnonzero(v), _largest(gain, -slack, int(np.count_nonzero(v))))
    return working if len(working) else np.arange(_ALL_ROWS)  # nothing to separate: any rows will do


def _largest(gain: np.ndarray, above: float, n_working: int) -> np.ndarray:
    """Rows with the largest gains, at most as many as a third of the working set."""
    rows = np.flatnonzero(gain > above)
    limit = max(100, n_working // 3)
    return rows if len(rows) <= limit else rows[np.argpartition(-gain[rows], limit)[:limit]]


def _decision(gram: Gram, rows: np.ndarray, coefficient: np.ndarray) -> np.ndarray:
    """``K[rows] @ coefficient`` in row blocks, without the zero coefficients."""
    columns = np.flatnonzero(coefficient)
    values = np.zeros(len(rows))
    if len(columns):
        for block in row_blocks(len(rows), 8 * len(columns)):
            values[block] = gram(rows[block], columns) @ coefficient[columns]
    return values


def _majorise_minimise(
    problem: _Problem, v: np.ndarray, tol: float, max_iter: int, history: list[DankStep], callback
) -> tuple[_State, int, bool]:
    """Outer steps on the working set; returns the state, the evaluations used, and whether it was stopped."""
    state = _evaluate(problem, v, 0)
    evaluations = 3
    share = _quartic_share(state)
    inner_tol = np.inf
    memory: list[
        tuple[np.ndarray, np.ndarray]
    ] = []  # of pairs: linear term given to the model, linear term found at its solution
    linear = state.linear(share)
    for _ in range(max_iter):
        history.append(DankStep(state.value, state.gap, state.rank))
        if callback is not None and callback(history[-1]):
            return state, evaluations, True
        if state.gap <= tol:
            break
        # An inner gap near the target would stall the outer loop; the inner solver ends quadratically.
        inner_tol = max(0.03 * tol, min(1e-2, 0.05 * state.gap, inner_tol))
        inner = solve_quartic(
            problem.K,
            problem.A,
            problem.p + linear,
            problem.lo,
            problem.hi,
            curvature=share / (4.0 * problem.centering),
            epsilon=problem.epsilon,
            start=state.v,
            scale=state.scale,
            tol=inner_tol,
        )
        new = _evaluate(problem, inner.v, state.rank)
        evaluations += inner.n_evaluations + 3
        rounding = 1e-12 * (abs(state.value) + state.scale)
        if new.value > state.value or (new.gap < state.gap and new.value >= state.value - rounding):
            memory = [*memory[-4:], (linear, new.linear(share))]
            state, linear = new, _mix(memory)
        elif len(memory) > 0:
            memory, linear = [], state.linear(share)
        elif share < 1.0:
            share = 1.0 if share > 0.9 else 0.5 * (1.0 + share)
            linear = state.linear(share)
        elif inner_tol > 1e-3 * tol:
            inner_tol /= 10.0
        else:
            break
    else:
        history.append(DankStep(state.value, state.gap, state.rank))
    return state, evaluations, False


def _mix(memory: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Anderson's extrapolation of the fixed-point iteration of linear terms."""
    given, found = (np.array(x) for x in zip(*memory))
    residual = found - given
    if len(memory) == 1:
        return found[-1]
    steps = np.diff(residual, axis=0).T
    weights, *_ = np.linalg.lstsq(steps, residual[-1], rcond=1e-8)
    return found[-1] - weights @ np.diff(found, axis=0)


def _quartic_share(state: _State) -> float:
    """Share of the quartic term that has the gradient of the rank-penalised one along v."""
    if state.adaptation is None:
        return 1.0
    whole = float(state.v @ state.quartic)
    return float(np.clip(state.v @ (state.smooth - state.kv) / whole, 0.0, 1.0)) if whole > 0 else 1.0


def _evaluate(problem: _Problem, v: np.ndarray, last_rank: int) -> _State:
    """Value (less a constant, without cancellation), gradient, adaptation and gap at v."""
    eta, tau = problem.centering, problem.rank_penalty
    kv, q = problem.K @ v, problem.A @ v**2
    quartic = v * q / (4 * eta)
    scale = gap_scale(problem.p, v, problem.epsilon)
    value = float(problem.p @ v) - problem.epsilon * float(np.abs(v).sum()) - float(v @ kv) / 2
    value -= float(v @ quartic) / 4
    adaptation, smooth, rank = None, kv + quartic, 1 + int(np.count_nonzero(v))
    if tau > 0:
        adaptation = _adapt(problem, v, float(v @ quartic) / (4 * eta), last_rank + 4)
        rank = len(adaptation.values)
        smooth = _penalised_gradient(problem, v, adaptation)
        trace = float((v**2 / problem.weight) @ problem.K.diagonal()) / (4 * eta)
        value += eta * (tau * trace - rank * tau**2 / 4 - adaptation.dropped)
    gap, _ = duality_gap(problem.p - smooth, v, problem.lo, problem.hi, problem.epsilon)
    return _State(v, kv, quartic, smooth, adaptation, rank, value, gap / scale, scale)


def _adapt(problem: _Problem, v: np.ndarray, square_norm: float, n_guess: int) -> _Adaptation:
    """Eigenpairs of M above ``rank_penalty / 2``, from the support side.

    All rows with v = 0 are one row of weight m, so the spectrum of M is that of the ``n_support + 1`` matrix
    ``e e^T + D_u K D_u`` with ``e = (sqrt(m), sqrt(w))`` and u = 0 in the first place. ``square_norm`` is the
    squared Frobenius norm of ``D_u K D_u``.
    """
    rows = np.flatnonzero(v)
    root_weight = np.sqrt(problem.weight[rows])
    unsupported = problem.outside + problem.weight.sum() - problem.weight[rows].sum()
    e = np.append(np.sqrt(max(unsupported, 0.0)), root_weight)
    u = v[rows] / root_weight / (2.0 * np.sqrt(problem.centering))
    K = problem.K[np.ix_(rows, rows)] if len(rows) < len(v) else problem.K
    values, vectors = _leading_eigenpairs(K, u, e, problem.rank_penalty / 2, n_guess)
    along = e @ vectors
    left = e - vectors @ along  # e outside the kept space
    x = vectors[1:]
    gx = u[:, None] * (K @ (u[:, None] * x))
    inner = x.T @ gx
    # Sums of lambda and lambda^2 over the dropped ones, written so that the large part e e^T never cancels.
    norm, ul = float(left @ left), u * left[1:]
    first = norm + float(u**2 @ K.diagonal()) - float(np.trace(inner))
    second = norm**2 + 2 * float(ul @ (K @ ul)) + square_norm - 2 * float((gx**2).sum()) + float((inner**2).sum())
    dropped = max(problem.rank_penalty * first - second, 0.0)
    return _Adaptation(values, x / root_weight[:, None], along / values, dropped)


def _leading_eigenpairs(K, u, e, above: float, n_guess: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of ``e e^T + [[0, 0], [0, D_u K D_u]]`` with eigenvalue > above."""
    size = len(e)

    def product(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        y = e * (e @ x)
        y[1:] += u * (K @ (u * x[1:]))
        return y

    count = n_guess
    while size > _DENSE_EIGEN and count < size // 4:
        operator = LinearOperator((size, size), matvec=product, dtype=float)
        first = np.random.default_rng(0).standard_normal(size)
        values, vectors = eigsh(operator, k=count, which="LA", tol=1e-10, v0=first)
        if values.min() <= above:
            return values[values > above], vectors[:, values > above]
        count *= 2
    M = np.zeros((size, size))
    np.multiply(K, u, out=M[1:, 1:])
    M[1:, 1:] *= u[:, None]
    M = dsyr(1.0, e, a=M.T, lower=1, overwrite_a=1)  # e e^T on one triangle; M.T is in LAPACK's order: no copies
    values, vectors = eigh(M, lower=True, check_finite=False, overwrite_a=True)
    return values[values > above], vectors[:, values > above]


def _penalised_gradient(problem: _Problem, v: np.ndarray, adaptation: _Adaptation) -> np.ndarray:
    """``(F * K) v`` on the working set."""
    rows = np.flatnonzero(v)
    everywhere = np.tile(adaptation.offset, (len(v), 1))
    everywhere[rows] = adaptation.vectors
    scaled = v[rows, None] * adaptation.vectors * (adaptation.values - problem.rank_penalty / 2)
    return np.einsum("ir,ir->i", problem.K[:, rows] @ scaled, everywhere)


def _factor(problem: _Problem, state: _State) -> tuple[np.ndarray, np.ndarray]:
    """F as ``factor @ factor.T`` on the support, and the row of the factor for a point with v = 0."""
    if state.adaptation is not None:
        root = np.sqrt(state.adaptation.values - problem.rank_penalty / 2)
        return state.adaptation.vectors * root, state.adaptation.offset * root
    rows = np.flatnonzero(state.v)
    u = state.v[rows] / problem.weight[rows] / (2.0 * np.sqrt(problem.centering))
    F = np.ones((len(rows) + 1, len(rows) + 1))
    for block in row_blocks(len(rows), 8 * len(rows), budget=2**22):
        F[1:, 1:][block] += u[block, None] * problem.K[np.ix_(rows[block], rows)] * u
    L, pivots, rank, _ = dpstrf(F.T, tol=1e-12 * F.diagonal().max(), lower=1, overwrite_a=1)
    for j in range(1, rank):
        L[:j, j] = 0.0
    factor = np.empty((len(F), rank))
    factor[pivots - 1] = L[:, :rank]
    return factor[1:], factor[0]
