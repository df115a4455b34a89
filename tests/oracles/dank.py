"""Independent routes to DANK's quantities: dense formulas, a Newton projection, a first-order solver."""

import numpy as np


def dense_adaptation(K, v, centering, rank_penalty, weight=None):
    """F of the paper's equation (9), for rows repeated ``weight`` times (integers), on the original rows."""
    n = len(v)
    weight = np.ones(n, dtype=int) if weight is None else np.asarray(weight, dtype=int)
    copies = np.repeat(np.arange(n), weight)
    u = (v / weight)[copies]
    M = np.ones((len(u), len(u))) + u[:, None] * K[np.ix_(copies, copies)] * u / (4 * centering)
    values, vectors = np.linalg.eigh(M)
    F = (vectors * np.maximum(values - rank_penalty / 2, 0)) @ vectors.T
    return F, copies


def dense_objective(K, p, v, centering, rank_penalty, epsilon=0.0, weight=None):
    """H(v, F) of the paper's equation (4) at the minimizing F, every term written out."""
    F, copies = dense_adaptation(K, v, centering, rank_penalty, weight)
    counts = np.bincount(copies)
    u = (v / counts)[copies]
    return (
        p @ v
        - epsilon * np.abs(v).sum()
        - u @ ((F * K[np.ix_(copies, copies)]) @ u) / 2
        + centering * ((F - 1) ** 2).sum()
        + centering * rank_penalty * np.trace(F)
    )


def newton_projection(z, lo, hi, shrink=0.0):
    """The same projection by safeguarded Newton steps on its multiplier."""

    def candidate(nu):
        u = z - nu
        return np.clip(np.sign(u) * np.maximum(np.abs(u) - shrink, 0), lo, hi)

    left, right = (z - hi).min() - np.max(shrink) - 1, (z - lo).max() + np.max(shrink) + 1
    nu = 0.5 * (left + right)
    for _ in range(100):
        v = candidate(nu)
        total = v.sum()
        if abs(total) <= 1e-15 * np.abs(v).sum():
            break
        if total > 0:
            left = nu
        else:
            right = nu
        slope = np.sum((v > lo) & (v < hi) & (v != 0))
        step = nu + total / slope if slope else np.inf
        nu = step if left < step < right else 0.5 * (left + right)
        if right - left <= 1e-16 * max(1.0, abs(left)):
            break
    return candidate(nu)


def random_feasible(rng, lo, hi, count):
    """Feasible points: uniform in the box, some coordinates at bounds or zero, then brought onto the plane."""
    points = []
    while len(points) < count:
        z = rng.uniform(lo, hi) * rng.uniform(0, 1.5)
        z = np.where(rng.random(len(lo)) < 0.3, 0.0, z)
        points.append(newton_projection(z, lo, hi))
    return points


def first_order_solution(K, p, lo, hi, centering, rank_penalty, epsilon=0.0, n_steps=4000):
    """Accelerated proximal gradient with restarts on the dense problem: slow, simple, independent."""
    v = np.zeros(len(p))
    y, t = v.copy(), 1.0
    bound = np.sum(np.maximum(-lo, hi) ** 2)
    L = np.linalg.norm(K, 2) + 3 * np.abs(K).max() ** 2 * bound / (4 * centering)
    best = -np.inf
    L /= 50.0  # backtracking finds what is needed
    for _ in range(n_steps):
        F, _ = dense_adaptation(K, y, centering, rank_penalty)
        gradient = p - (F * K) @ y
        value_y = dense_objective(K, p, y, centering, rank_penalty)
        while True:
            new = newton_projection(y + gradient / L, lo, hi, epsilon / L)
            d = new - y
            model = value_y + gradient @ d - L / 2 * d @ d
            if dense_objective(K, p, new, centering, rank_penalty) >= model - 1e-12 * abs(value_y):
                break
            L *= 2.0
        value = dense_objective(K, p, new, centering, rank_penalty, epsilon)
        if value < best:
            t, y = 1.0, v.copy()
            best = value
            continue
        best = value
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = new + (t - 1) / t_new * (new - v)
        v, t = new, t_new
    return v


def polished_machine(K, y, C, v, n_rounds=40):
    """A support vector machine in double precision, from libsvm's answer (which knows K in single precision).

    Active set steps: solve for the free rows, release or fix the rows that break an optimality condition. Returns
    the decision values on the training rows; raises when the conditions do not hold to 1e-9 in the end.
    """
    alpha = v * y
    at_zero, at_bound = alpha < 1e-7 * C, alpha > C * (1 - 1e-7)
    for _ in range(n_rounds):
        free = np.flatnonzero(~(at_zero | at_bound))
        fixed = np.where(at_bound, C * y, 0.0)
        A = np.ones((len(free) + 1, len(free) + 1))
        A[:-1, :-1] = K[np.ix_(free, free)]
        A[-1, -1] = 0.0
        start = np.append(v[free], 0.0)
        rhs = np.append(y[free] - K[free] @ fixed, -fixed.sum())
        solution = start + np.linalg.lstsq(A, rhs - A @ start, rcond=1e-13)[0]
        v = fixed.copy()
        v[free] = solution[:-1]
        decision = K @ v + solution[-1]
        alpha, margin = v * y, y * decision
        outside = (alpha < -1e-9) | (alpha > C + 1e-9)
        release_zero, release_bound = at_zero & (margin < 1 - 1e-9), at_bound & (margin > 1 + 1e-9)
        if not (outside | release_zero | release_bound).any():
            return decision
        at_zero = (at_zero & ~release_zero) | (outside & (alpha < 0))
        at_bound = (at_bound & ~release_bound) | (outside & (alpha > C))
        v = np.clip(alpha, 0, C) * y
    raise RuntimeError("the active sets did not settle")
