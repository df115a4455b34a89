"""Validation loss of DANK and its derivative in the kernel's parameters, C, centering and epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit

from mercerless.solvers.quartic import Quartic, adjoint, snap, solve_quartic


class Fold(NamedTuple):
    """One machine: what it is trained and validated on, and where its solution starts."""

    X: np.ndarray
    target: np.ndarray  # labels -1, +1 or numbers
    X_test: np.ndarray
    target_test: np.ndarray
    start: np.ndarray  # a dual point, such as the plain machine's
    centering: float  # at the start


class Tuned(NamedTuple):
    """Parameters of the smallest penalised validation loss found."""

    kernel: Any
    C: float
    centering_factor: float  # on the folds' own
    epsilon: float
    losses: tuple[float, ...]  # of every evaluation, over all descents
    n_evaluations: int
    gradient: float  # largest entry at the end: the certificate of stationarity


def tune_dank(
    kernel: Any,
    folds: Sequence[Fold],
    *,
    C: float,
    epsilon: float = 0.0,
    n_samples: int,
    is_classification: bool,
    max_iter: int = 25,
) -> Tuned:
    """Minimise, over the logarithms of all length scales, C, centering and epsilon::

        n_samples * (validation loss) + sum(log(1 + (theta - mean(theta))^2 / spread^2)) + (other changes)^2 / 8

    by L-BFGS-B with exact gradients, where ``spread^2 = 1 / (n_features * sqrt(n_samples))``; twice, from the start
    itself and from the solution with a wider prior, and the better of both.

    The validation loss is half the logarithm of the mean squared error in regression, and in classification the
    mean logistic loss of ``slope * y * f`` with the slope fitted along. It is averaged over the folds; the machines
    are those without rank penalty, whose solutions are piecewise smooth functions of the parameters.
    The other terms are the logarithm of a prior: a Cauchy density around the common length scale, which holds most
    features to it and lets go of the few that pay for it, and broad normal densities for the rest. The spread is such
    that a feature whose length scale leaves the others by a factor of e pays ``log(n_features) + log(n_samples) / 2``,
    the price of one more parameter in the extended Bayesian information criterion.

    Parameters
    ----------
    kernel : Kernel
        With `theta` and `pullback`; positive semi-definite.
    folds : sequence of Fold
        The machines, with targets of mean size 1.
    C, epsilon : float
        Where to start; epsilon is not tuned when 0.
    n_samples : int
        Number of rows, the weight of the validation loss against the prior.
    is_classification : bool
        Which loss.
    max_iter : int, default=25
        Limit on the iterations of either descent; both together take three times as many evaluations at most.

    Returns
    -------
    Tuned
        A stationary point at best: the loss is not convex.

    Notes
    -----
    With the solution's free rows R, ``H v_R`` their Hessian block and r the loss's derivative in the validation
    scores, one adjoint solve ``H z + beta = (K_TV r)_R, sum(z) = sum(r)`` per fold gives the derivative in every
    parameter: for the kernel it is that of ``sum(G * K)`` with ``G = r v^T`` on validation-training pairs and
    ``-(z v^T) - 2 curvature (z v) (v^2)^T * K`` on training pairs. Cost per evaluation and fold: one fit, one
    Cholesky factorisation, two pullbacks. Where no row is free, z is shared by the two rows between which the intercept
    lies. Where a row is just reaching or leaving a bound or the tube's edge the loss has a kink, and this is the
    derivative on one side of it, a generalised (Clarke) gradient only; descents end in such kinks often. Repeated rows
    with a C so small that they hardly bend the problem (``C^2 / centering`` below 1e-6) leave the solution itself
    undetermined to about 1e-7, and the derivative with it.
    """
    n_theta = len(kernel.theta)
    anchor = np.concatenate([kernel.theta, np.log([C, 1.0, epsilon or 1.0, 2.0])])  # the last is the slope
    state = [fold.start / C for fold in folds]
    losses: list[float] = []

    def objective(x: np.ndarray, spread: float) -> tuple[float, np.ndarray]:
        loss, gradient = _mean_loss(x, kernel, folds, state, epsilon, is_classification)
        losses.append(loss)
        value, pull = _prior(x[:n_theta], x[n_theta:] - anchor[n_theta:], spread)
        return loss + value / n_samples, gradient + pull / n_samples

    reach = np.concatenate([np.full(n_theta, 4.0), np.full(4, 5.0)])
    bounds = np.column_stack([anchor - reach, anchor + reach])

    def descend(start: np.ndarray, spread: float, steps: int) -> OptimizeResult:
        options = {"maxiter": steps, "maxfun": steps + steps // 2}
        return minimize(objective, start, (spread,), "L-BFGS-B", jac=True, bounds=bounds, options=options)

    # The narrow prior holds a feature back that would pay in the end, so a wide one shows the way first.
    narrow, wide = n_theta**-0.5 * n_samples**-0.25, n_samples**-0.25
    results = [descend(anchor, narrow, max_iter)]
    if n_theta > 1:
        half = max(max_iter // 2, 1)
        results.append(descend(descend(anchor, wide, half).x, narrow, half))
    result = min(results, key=lambda r: r.fun)
    x = result.x
    C, factor, tube = np.exp(x[n_theta : n_theta + 3])
    return Tuned(
        kernel.with_theta(x[:n_theta]),
        float(C),
        float(factor),
        float(tube) if epsilon > 0 else 0.0,
        tuple(losses),
        len(losses),
        float(np.abs(result.jac).max()),
    )


def _mean_loss(
    x: np.ndarray, kernel: Any, folds: Sequence[Fold], state: list[np.ndarray], epsilon: float, is_classification: bool
) -> tuple[float, np.ndarray]:
    """The validation loss over the folds and its derivative; ``state`` keeps their solutions for the next call."""
    n_theta = len(x) - 4
    current = kernel.with_theta(x[:n_theta])
    C, factor, tube, slope = np.exp(x[n_theta:])
    tube = tube if epsilon > 0 else 0.0
    total, gradient = 0.0, np.zeros_like(x)
    for k, fold in enumerate(folds):
        part = _Machine(current, fold.X, fold.target, C, factor * fold.centering, tube, is_classification)
        part.solve(state[k] * C)
        state[k] = part.v / C
        loss, r, d_slope = _validation_loss(part.decision(fold.X_test), fold.target_test, slope, is_classification)
        total += loss / len(folds)
        gradient[:-1] += part.pull(fold.X_test, r) / len(folds)
        gradient[-1] += d_slope / len(folds)
    if epsilon == 0:
        gradient[n_theta + 2] = 0.0
    if not is_classification:
        gradient[-1] = 0.0
    return total, gradient


def _prior(theta: np.ndarray, change: np.ndarray, spread: float) -> tuple[float, np.ndarray]:
    """Minus the logarithm of the prior for length scales and for the change of the rest, and its derivative."""
    deviation = theta - theta.mean()
    pull = 2 * deviation / (spread**2 + deviation**2)
    value = np.log1p((deviation / spread) ** 2).sum() + change @ change / 8
    return float(value), np.concatenate([pull - pull.mean(), change / 4])


def _validation_loss(f, target, slope, is_classification) -> tuple[float, np.ndarray, float]:
    """Loss, its derivative in the scores, and in the logarithm of the slope."""
    if not is_classification:
        error = f - target
        mean = max(float(np.mean(error**2)), np.finfo(float).tiny)
        return 0.5 * np.log(mean), error / (len(f) * mean), 0.0
    margin = slope * target * f
    r = -expit(-margin) / len(f)
    return float(np.mean(np.logaddexp(0.0, -margin))), r * slope * target, float(r @ margin)


class _Machine:
    """One training fold: solve, predict, and pull derivatives back."""

    tol = 1e-10

    def __init__(self, kernel, X, target, C, centering, epsilon, is_classification):
        self.kernel, self.X = kernel, X
        K = kernel(X)
        limit = np.full(len(target), C)
        lo, hi = -limit, limit
        if is_classification:
            lo, hi = np.minimum(0.0, C * target), np.maximum(0.0, C * target)
        self.problem = Quartic(K, K**2, 1.0 / (4.0 * centering), target, lo, hi, epsilon)

    def solve(self, start: np.ndarray) -> None:
        q = self.problem
        start = snap(start, q.lo, q.hi)
        found = solve_quartic(
            q.K, q.A, q.p, q.lo, q.hi, curvature=q.curvature, epsilon=q.epsilon, start=start, tol=self.tol
        )
        self.v, self.b = found.v, found.intercept

    def decision(self, X: np.ndarray) -> np.ndarray:
        return self.kernel(X, self.X) @ self.v + self.b

    def pull(self, X: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Derivatives of a loss with score derivatives r: in theta, log C, log centering, log epsilon."""
        q, v = self.problem, self.v
        a = self.kernel(X, self.X).T @ r
        z, image, sides = adjoint(q, v, a, float(r.sum()))
        pair = -np.outer(z, v) - 2 * q.curvature * np.outer(z * v, v**2) * q.K
        theta = self.kernel.pullback(X, self.X, np.outer(r, v)) + self.kernel.pullback(self.X, None, pair)
        bound = np.where((v == q.lo) | (v == q.hi), v, 0.0)
        in_C = bound @ (a - image)  # v on its bounds moves with C, and the free rows and the intercept with them
        in_centering = q.curvature * (z @ (v * (q.A @ v**2)))  # d curvature = -curvature d log(centering)
        in_epsilon = -q.epsilon * (z @ sides)
        return np.concatenate([theta, [in_C, in_centering, in_epsilon]])
