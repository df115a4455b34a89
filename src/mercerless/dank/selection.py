"""DANK's parameters by the gradient of the validation loss."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit
from sklearn.base import BaseEstimator

from mercerless.core.descent import GradientSearch
from mercerless.core.folds import fold_numbers
from mercerless.core.validation import check_random_state
from mercerless.dank.quartic import Quartic, adjoint, snap, solve_quartic
from mercerless.dank.solver import DankTask, plain_machine
from mercerless.dank.thresholds import LIMITS


class CenteringPenalty(BaseEstimator):
    """The weight of the distance from DANK's matrix F to the matrix of ones, given as a number.

    For the `adaptivity` of an estimator, instead of a target for the change of F.

    Parameters
    ----------
    penalty : float, default=1.0
        The paper's eta, positive. Its effect depends on the scale of the kernel and of C; a large one
        gives the plain machine.

    See Also
    --------
    mercerless.DANKClassifier : Takes it.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercerless import CenteringPenalty, DANKClassifier
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> DANKClassifier(adaptivity=CenteringPenalty(3.0)).fit(X, y).centering_penalty_
    array([3.])
    """

    def __init__(self, penalty: float = 1.0):
        self.penalty = penalty


class HeldOut(NamedTuple):
    """The training and validation set of one machine, and the start of its solution."""

    X: NDArray
    target: NDArray  # labels -1, +1 or numbers
    X_test: NDArray
    target_test: NDArray
    start: NDArray  # a dual point, such as the plain machine's
    penalty: float  # of the centering, at the start


class Tuned(NamedTuple):
    """Parameters of the smallest penalized validation loss found."""

    kernel: Any
    C: float
    penalty_factor: float  # on the machines' own centering penalties
    epsilon: float
    losses: tuple[float, ...]  # of every evaluation, over all descents
    gradient: float  # largest entry at the end: the certificate of stationarity


class Choice(NamedTuple):
    """The parameters of a fit."""

    kernel: Any
    C: float
    epsilon: float
    # after a search: of the centering, one per task
    penalties: Sequence[float] | None = None
    tuned: Tuned | None = None


def descend(
    start: Choice,
    X: NDArray,
    y: NDArray,
    tasks: Sequence[DankTask],
    search: GradientSearch,
    adaptivity: float,
    random_state: Any,
) -> Choice:
    """Choose length scales, C, centering penalties and epsilon by the validation gradient, from this start.

    ``y`` are the classes or the standardized numbers of all rows of X.
    """
    classify = tasks[0].is_classification
    folds = fold_numbers(LIMITS.n_folds, X, y, classify=classify, random_state=random_state)
    groups = []
    for task in tasks:
        task = task._replace(epsilon=start.epsilon)
        group = [
            _held_out(start, X, task, folds[task.rows] == fold, adaptivity)
            for fold in np.unique(folds)
        ]
        groups.append([machine for machine in group if len(machine.target_test)])
    machines = [machine for group in groups for machine in group]
    if folds.max() == 0 or (classify and any(np.ptp(m.target) == 0 for m in machines)):
        raise ValueError(
            "GradientSearch needs at least two rows of every class, or two rows for regression, "
            "that are not copies of each other."
        )
    tuned = tune_dank(
        start.kernel,
        machines,
        C=start.C,
        epsilon=start.epsilon,
        n_samples=len(y),
        is_classification=classify,
        search=search,
        random_state=random_state,
    )
    penalties = []
    for task, group in zip(tasks, groups):
        per_row = float(np.mean([machine.penalty / len(machine.target) for machine in group]))
        penalties.append(tuned.penalty_factor * per_row * len(task.rows))
    return Choice(tuned.kernel, tuned.C, tuned.epsilon, penalties, tuned)


def _held_out(
    start: Choice, X: NDArray, task: DankTask, is_held_out: NDArray, adaptivity: float
) -> HeldOut:
    """A training and a validation set of the task, with the plain machine as start."""
    training = task.take(np.flatnonzero(~is_held_out))
    test = task.take(np.flatnonzero(is_held_out))
    scaled = X[training.rows] / np.asarray(start.kernel.length_scale)
    v = plain_machine(training, scaled, start.C, 1e-3, kernel="rbf", gamma=0.5)
    penalty = float(v @ v) / (4 * adaptivity) or 1.0
    return HeldOut(X[training.rows], training.target, X[test.rows], test.target, v, penalty)


def tune_dank(
    kernel: Any,
    machines: Sequence[HeldOut],
    *,
    C: float,
    epsilon: float = 0.0,
    n_samples: int,
    is_classification: bool,
    search: GradientSearch,
    random_state: Any = None,
) -> Tuned:
    """Minimize, over the logarithms of all length scales, C, the centering penalty and epsilon (unless 0)::

        n_samples * (validation loss) + sum(log(1 + (theta - mean(theta))^2 / spread^2)) + (other changes)^2 / 8

    by L-BFGS-B with exact gradients, where ``spread^2 = 1 / (n_features * sqrt(n_samples))``: from the start itself,
    and ``search.n_restarts`` times from the solution with a wider prior, first from the same start, then from random
    length scales around it. The best of all is a stationary point at best: the loss is not convex. Iterations of the
    first descent are limited by ``search.max_iter``, those of the others by half of it each.

    The validation loss is half the logarithm of the mean squared error in regression (with targets of unit size), and
    in classification the mean logistic loss of ``slope * y * f`` with the slope fitted along. It is averaged over the
    machines, which have no rank penalty: their solutions are piecewise smooth functions of the parameters.
    The other terms are the logarithm of a prior: a Cauchy density around the common length scale, which holds most
    features to it and lets go of the few that pay for it, and broad normal densities for the rest. The spread is such
    that a feature whose length scale leaves the others by a factor of e pays ``log(n_features) + log(n_samples) / 2``,
    the price of one more parameter in the extended Bayesian information criterion.

    With the solution's free rows R, ``H v_R`` their Hessian block and r the loss's derivative in the validation
    scores, one adjoint solve ``H z + beta = (K_TV r)_R, sum(z) = sum(r)`` per machine gives the derivative in every
    parameter: for the kernel it is that of ``sum(G * K)`` with ``G = r v^T`` on validation-training pairs and
    ``-(z v^T) - 2 curvature (z v) (v^2)^T * K`` on training pairs. Cost per evaluation and machine: one fit, one
    Cholesky factorization, two pullbacks. If no row is free, z is shared by the two rows between which the intercept
    lies. If a row is just reaching or leaving a bound or the tube's edge the loss has a kink, and this is the
    derivative on one side of it, a generalized (Clarke) gradient only; descents often end in such kinks. Repeated rows
    with a C so small that they hardly bend the problem (``C^2 / penalty`` below 1e-6) leave the solution itself
    undetermined to about 1e-7, and the derivative with it.
    """
    n_theta = len(kernel.theta)
    # the last is the slope
    anchor = np.concatenate([kernel.theta, np.log([C, 1.0, epsilon or 1.0, 2.0])])
    state = [machine.start / C for machine in machines]
    losses: list[float] = []

    def objective(x: NDArray, spread: float) -> tuple[float, NDArray]:
        loss, gradient = _mean_loss(x, kernel, machines, state, epsilon, is_classification)
        losses.append(loss)
        value, pull = _prior(x[:n_theta], x[n_theta:] - anchor[n_theta:], spread)
        return loss + value / n_samples, gradient + pull / n_samples

    reach_of_scales = np.full(n_theta, LIMITS.reach_of_scales)
    reach = np.concatenate([reach_of_scales, np.full(4, LIMITS.reach_of_others)])
    bounds = np.column_stack([anchor - reach, anchor + reach])

    def descend(start: NDArray, spread: float, steps: int) -> OptimizeResult:
        options = {"maxiter": steps, "maxfun": steps + steps // 2, "gtol": search.tol}
        return minimize(
            objective, start, (spread,), "L-BFGS-B", jac=True, bounds=bounds, options=options
        )

    # The narrow prior holds back features that would help in the end, so a descent with a wide prior comes first.
    narrow = n_theta**-0.5 * n_samples**-0.25
    wide = n_samples**-0.25
    half = max(search.max_iter // 2, 1)
    random = check_random_state(random_state)
    results = [descend(anchor, narrow, search.max_iter)]
    for restart in range(search.n_restarts):
        # one length scale has no spread: the first restart would be the same descent
        if restart or n_theta > 1:
            moved = anchor.copy()
            moved[:n_theta] += random.uniform(-1.0, 1.0, n_theta) if restart else 0.0
            results.append(descend(descend(moved, wide, half).x, narrow, half))
    best = min(results, key=lambda result: result.fun)
    C, factor, tube = np.exp(best.x[n_theta : n_theta + 3])
    return Tuned(
        kernel.with_theta(best.x[:n_theta]),
        float(C),
        float(factor),
        float(tube) if epsilon > 0 else 0.0,
        tuple(losses),
        float(np.abs(best.jac).max()),
    )


def _mean_loss(
    x: NDArray,
    kernel: Any,
    machines: Sequence[HeldOut],
    state: list[NDArray],
    epsilon: float,
    is_classification: bool,
) -> tuple[float, NDArray]:
    """The mean validation loss and its derivative; ``state`` keeps the machines' solutions for the next call."""
    n_theta = len(x) - 4
    current = kernel.with_theta(x[:n_theta])
    C, factor, tube, slope = np.exp(x[n_theta:])
    tube = tube if epsilon > 0 else 0.0
    total = 0.0
    gradient = np.zeros_like(x)
    for k, m in enumerate(machines):
        machine = _DankMachine(
            current, m.X, m.target, C, factor * m.penalty, tube, is_classification
        )
        machine.solve(state[k] * C)
        state[k] = machine.v / C
        loss, r, d_slope = _validation_loss(
            machine.decision(m.X_test), m.target_test, slope, is_classification
        )
        total += loss / len(machines)
        gradient[:-1] += machine.pull(m.X_test, r) / len(machines)
        gradient[-1] += d_slope / len(machines)
    if epsilon == 0:
        gradient[n_theta + 2] = 0.0
    if not is_classification:
        gradient[-1] = 0.0
    return total, gradient


def _prior(theta: NDArray, change: NDArray, spread: float) -> tuple[float, NDArray]:
    """Minus the logarithm of the prior for length scales and for the change of the rest, and its derivative."""
    deviation = theta - theta.mean()
    pull = 2 * deviation / (spread**2 + deviation**2)
    value = np.log1p((deviation / spread) ** 2).sum() + change @ change / 8
    return float(value), np.concatenate([pull - pull.mean(), change / 4])


def _validation_loss(
    f: NDArray, target: NDArray, slope: float, is_classification: bool
) -> tuple[float, NDArray, float]:
    """Loss, its derivative in the scores, and in the logarithm of the slope."""
    if not is_classification:
        error = f - target
        mean = max(float(np.mean(error**2)), np.finfo(float).tiny)
        return 0.5 * np.log(mean), error / (len(f) * mean), 0.0
    margin = slope * target * f
    r = -expit(-margin) / len(f)
    return float(np.mean(np.logaddexp(0.0, -margin))), r * slope * target, float(r @ margin)


class _DankMachine:
    """One training fold: solve, predict, and pull derivatives back."""

    tol = 1e-10

    def __init__(
        self,
        kernel: Any,
        X: NDArray,
        target: NDArray,
        C: float,
        penalty: float,
        epsilon: float,
        is_classification: bool,
    ):
        self.kernel = kernel
        self.X = X
        K = kernel(X)
        limit = np.full(len(target), C)
        lo = -limit
        hi = limit
        if is_classification:
            lo = np.minimum(0.0, C * target)
            hi = np.maximum(0.0, C * target)
        self.problem = Quartic(K, K**2, 1.0 / (4.0 * penalty), target, lo, hi, epsilon)

    def solve(self, start: NDArray) -> None:
        solution = solve_quartic(
            self.problem, snap(start, self.problem.lo, self.problem.hi), tol=self.tol
        )
        self.v = solution.v
        self.b = solution.intercept

    def decision(self, X: NDArray) -> NDArray:
        return self.kernel(X, self.X) @ self.v + self.b

    def pull(self, X: NDArray, r: NDArray) -> NDArray:
        """Derivatives of a loss with score derivatives r: in theta, log C, log penalty, log epsilon."""
        q = self.problem
        v = self.v
        a = self.kernel(X, self.X).T @ r
        z, image, sides = adjoint(q, v, a, float(r.sum()))
        of_quartic = 2 * q.curvature * np.outer(z * v, v**2) * q.K
        theta = self.kernel.pullback(X, self.X, np.outer(r, v))
        theta += self.kernel.pullback(self.X, None, -np.outer(z, v) - of_quartic)
        bound = np.where((v == q.lo) | (v == q.hi), v, 0.0)
        # v on its bounds moves with C, and the free rows and the intercept with them
        in_C = bound @ (a - image)
        # d curvature = -curvature d log(penalty)
        in_penalty = q.curvature * (z @ (v * (q.A @ v**2)))
        in_epsilon = -q.epsilon * (z @ sides)
        return np.concatenate([theta, [in_C, in_penalty, in_epsilon]])
