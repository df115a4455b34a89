"""The elements of the DANK paper as plain functions on matrices: equations, bounds and the printed algorithms.

Everything here is dense and meant for reading, checking and comparing; `mercerless.DANKClassifier` and `DANKRegressor`
are the machines. The variable is ``v``: the labels times alpha for classification, ``alpha_hat - alpha_check`` for
regression, so that one function serves both.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, eigvalsh
from scipy.optimize import brentq

from mercerless.core.validation import check_number, check_symmetric
from mercerless.dank.quartic import duality_gap, gap_at, gap_scale, project
from mercerless.dank.solver import DankSolution, DankTask, plain_machine, solve_dank


def dank_adaptation(
    v: ArrayLike, K: ArrayLike, centering_penalty: float, rank_penalty: float = 0.01
) -> NDArray:
    """The best matrix F for given dual coefficients, equations (7) to (9) and (24) of the paper.

    ``F(v) = J(1 1^T + Gamma(v))`` with ``Gamma(v) = diag(v) K diag(v) / (4 eta)``, where J subtracts ``tau / 2`` from
    every eigenvalue and drops those that are not positive then.

    Parameters
    ----------
    v : array-like of shape (n,)
        The labels times alpha, or ``alpha_hat - alpha_check``.
    K : array-like of shape (n, n)
        The base kernel matrix, positive semi-definite.
    centering_penalty : float
        The paper's eta, positive.
    rank_penalty : float, default=0.01
        The paper's tau.

    Returns
    -------
    ndarray of shape (n, n)
        F, which minimizes the objective (4) over all positive semi-definite matrices.

    See Also
    --------
    dank_objective : The objective that F minimizes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_adaptation
    >>> dank_adaptation([1.0, -1.0], np.eye(2), centering_penalty=1.0, rank_penalty=0.0)
    array([[1.25, 1.  ],
           [1.  , 1.25]])
    """
    K = _check_kernel(K)
    v = _check_dual(v, K)
    check_number("centering_penalty", centering_penalty)
    check_number("rank_penalty", rank_penalty, zero=True)
    values, vectors = eigh(1.0 + v[:, None] * K * v / (4.0 * centering_penalty))
    shrunk = np.maximum(values - rank_penalty / 2, 0.0)
    return (vectors * shrunk) @ vectors.T


def dank_objective(
    v: ArrayLike,
    K: ArrayLike,
    y: ArrayLike,
    F: ArrayLike | None = None,
    *,
    centering_penalty: float,
    rank_penalty: float = 0.01,
    epsilon: float = 0.0,
) -> float:
    """The objective H of problems (4) and (22) at a given F, or h of (5) and (23) at the best one.

    Parameters
    ----------
    v : array-like of shape (n,)
        The labels times alpha, or ``alpha_hat - alpha_check``.
    K : array-like of shape (n, n)
        The base kernel matrix.
    y : array-like of shape (n,)
        Labels -1 and 1, for which ``y @ v`` is the sum of alpha, or numbers.
    F : array-like of shape (n, n) or None, default=None
        The adaptive matrix, positive semi-definite; None: `dank_adaptation`.
    centering_penalty, rank_penalty : float
        The paper's eta and tau.
    epsilon : float, default=0.0
        Half width of the tube, 0 for classification.

    Returns
    -------
    float
        The value.

    See Also
    --------
    dank_gradient : The gradient of h.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_objective
    >>> v, y = np.array([1.0, -1.0]), np.array([1.0, -1.0])
    >>> dank_objective(v, np.eye(2), y, np.ones((2, 2)), centering_penalty=1.0, rank_penalty=0.0)
    1.0
    >>> dank_objective(v, np.eye(2), y, centering_penalty=1.0, rank_penalty=0.0)
    0.875
    """
    K = _check_kernel(K)
    v = _check_dual(v, K)
    if F is None:
        F = dank_adaptation(v, K, centering_penalty, rank_penalty)
    F = check_symmetric(F, "F")
    linear = float(_check_dual(y, K) @ v) - epsilon * float(np.abs(v).sum())
    distance = float(np.sum((F - 1.0) ** 2))
    nuclear_norm = float(np.trace(F))
    penalty = centering_penalty * (distance + rank_penalty * nuclear_norm)
    return linear - float(v @ ((F * K) @ v)) / 2 + penalty


def dank_gradient(
    v: ArrayLike,
    K: ArrayLike,
    y: ArrayLike,
    *,
    centering_penalty: float,
    rank_penalty: float = 0.01,
) -> NDArray:
    """The gradient ``y - (F(v) * K) v`` of the smooth part of h in v, equations (25) and (26).

    In alpha (classification) it is y times this. In ``alpha_hat`` and ``alpha_check`` it is this and minus this, both
    less epsilon; the second line of (25) is printed with the wrong sign in front of F.

    Parameters
    ----------
    v : array-like of shape (n,)
        The labels times alpha, or ``alpha_hat - alpha_check``.
    K : array-like of shape (n, n)
        The base kernel matrix.
    y : array-like of shape (n,)
        Labels -1 and 1, or numbers.
    centering_penalty, rank_penalty : float
        The paper's eta and tau.

    Returns
    -------
    ndarray of shape (n,)
        The gradient.

    See Also
    --------
    dank_objective : The function whose gradient this is.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_gradient
    >>> dank_gradient([1.0, -1.0], np.eye(2), [1, -1], centering_penalty=1.0, rank_penalty=0.0)
    array([-0.25,  0.25])
    """
    K = _check_kernel(K)
    v = _check_dual(v, K)
    F = dank_adaptation(v, K, centering_penalty, rank_penalty)
    return _check_dual(y, K) - (F * K) @ v


def dank_eigenvalue_bound(
    K: ArrayLike,
    C: float,
    centering_penalty: float,
    rank_penalty: float = 0.01,
    *,
    sharp: bool = False,
) -> float:
    """The bound of Lemma 1 on the largest eigenvalue of F, over all feasible dual coefficients.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The base kernel matrix.
    C : float
        Bound on the dual coefficients.
    centering_penalty, rank_penalty : float
        The paper's eta and tau.
    sharp : bool, default=False
        Whether C^2 replaces the n C^2 of the paper: the spectral norm of ``diag(v)`` is its largest entry.

    Returns
    -------
    float
        ``n - tau / 2 + n C^2 / (4 eta) lambda_max(K)``, or without the second n; 0 if that is negative, since F is 0
        then.

    See Also
    --------
    dank_lipschitz : Theorem 4, which rests on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_eigenvalue_bound
    >>> dank_eigenvalue_bound(np.eye(4), C=1.0, centering_penalty=1.0, rank_penalty=0.0)
    5.0
    >>> dank_eigenvalue_bound(np.eye(4), 1.0, 1.0, 0.0, sharp=True)
    4.25
    """
    K = _check_kernel(K)
    check_number("C", C)
    check_number("centering_penalty", centering_penalty)
    check_number("rank_penalty", rank_penalty, zero=True)
    n = len(K)
    largest = float(eigvalsh(K, subset_by_index=[n - 1, n - 1])[0])
    square = C**2 if sharp else n * C**2
    bound = n - rank_penalty / 2 + square / (4.0 * centering_penalty) * largest
    return max(float(bound), 0.0)


def dank_change_bound(
    first: ArrayLike,
    second: ArrayLike,
    K: ArrayLike,
    centering_penalty: float,
    *,
    regression: bool = False,
    sharp: bool = False,
) -> float:
    """The bound of Lemmas 3 and 8 on how far F moves between two dual points, in the Frobenius norm.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        The dual points, labels times alpha or ``alpha_hat - alpha_check``.
    K : array-like of shape (n, n)
        The base kernel matrix.
    centering_penalty : float
        The paper's eta.
    regression : bool, default=False
        Whether it is that of Lemma 8, with ``|v1 + v2|`` in place of ``|v1| + |v2|``; it holds for classification too.
    sharp : bool, default=False
        Whether the largest entry of K replaces its Frobenius norm in the bound of Lemma 8.

    Returns
    -------
    float
        ``|K|_F (|v1| + |v2|) |v1 - v2| / (4 eta)``, for any rank penalty.

    See Also
    --------
    dank_lipschitz : Theorem 4, which rests on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_change_bound
    >>> dank_change_bound([1.0, 0.0], [0.0, 0.0], np.eye(2), centering_penalty=1.0, sharp=True)
    0.25
    """
    K = _check_kernel(K)
    first = _check_dual(first, K)
    second = _check_dual(second, K)
    check_number("centering_penalty", centering_penalty)
    size = float(np.linalg.norm(K))
    if sharp:
        size = float(np.abs(K).max())
    lengths = float(np.linalg.norm(first) + np.linalg.norm(second))
    if regression or sharp:
        lengths = float(np.linalg.norm(first + second))
    return size * lengths * float(np.linalg.norm(first - second)) / (4.0 * centering_penalty)


def dank_lipschitz(
    K: ArrayLike,
    C: float,
    centering_penalty: float,
    *,
    regression: bool = False,
    sharp: bool = False,
) -> float:
    """The Lipschitz constant L of the gradient of h, Theorems 4 and 10.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The base kernel matrix.
    C : float
        Bound on the dual coefficients.
    centering_penalty : float
        The paper's eta.
    regression : bool, default=False
        Whether L is that of Theorem 10, which is used twice there: ``|grad - grad'| <= 2 L (...)``.
    sharp : bool, default=False
        Whether it is ours, of the gradient in v: ``lambda_max(K) + 3 kappa^2 n C^2 / (4 eta)``, valid for both and
        for any rank penalty. A step of 1 / L with it is far longer.

    Returns
    -------
    float
        ``kappa (n + 3 n C^2 |K|_F / (4 eta))``, for regression ``2 kappa (n + 9 n C^2 |K|_F / (4 eta))``; kappa is the
        largest entry of K.

    See Also
    --------
    dank_nesterov : Algorithms 1 and 2, whose step it sets.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_lipschitz
    >>> dank_lipschitz(np.eye(4), C=1.0, centering_penalty=1.0)
    10.0
    >>> dank_lipschitz(np.eye(4), C=1.0, centering_penalty=1.0, sharp=True)
    4.0
    """
    K = _check_kernel(K)
    check_number("C", C)
    check_number("centering_penalty", centering_penalty)
    n = len(K)
    kappa = float(np.abs(K).max())
    square = n * C**2 / (4.0 * centering_penalty)
    if sharp:
        largest = float(eigvalsh(K, subset_by_index=[n - 1, n - 1])[0])
        return largest + 3.0 * kappa**2 * square
    if regression:
        return float(2.0 * kappa * (n + 9.0 * square * np.linalg.norm(K)))
    return float(kappa * (n + 3.0 * square * np.linalg.norm(K)))


class PartsBound(NamedTuple):
    """The bound of Theorem 6 on solving on parts.

    Attributes
    ----------
    between : float
        Q(pi), the sum of ``|K_ij|`` over pairs of rows in different parts.
    printed : float
        The bound of the theorem, ``(B2 - B1) C^2 Q / 2``. It does not hold: for F = 1 it is 0, but a plain machine on
        parts is not the machine on all rows.
    corrected : float
        ``B2 C^2 Q`` with the largest size B2 of an entry, which does.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_parts_bound
    >>> dank_parts_bound(np.ones((2, 2)), [0, 1], C=1.0, smallest=1.0, largest=1.0)
    PartsBound(between=2.0, printed=0.0, corrected=2.0)
    """

    between: float
    printed: float
    corrected: float


def dank_parts_bound(
    K: ArrayLike, parts: ArrayLike, C: float, smallest: float, largest: float
) -> PartsBound:
    """How much the objective (18) can lose by solving on parts, Theorem 6 as printed and corrected.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The base kernel matrix.
    parts : array-like of shape (n,)
        The part of every row.
    C : float
        Bound on the dual coefficients.
    smallest, largest : float
        The paper's B1 and B2: bounds on the entries of both solutions F.

    Returns
    -------
    PartsBound
        Q(pi) and both bounds.

    See Also
    --------
    dank_screening : Theorem 7, on the support vectors.

    Notes
    -----
    Proof of the corrected bound, with ``|H(a, F) - H_parts(a, F)| <= B2 C^2 Q / 2`` for every a in the box and every F
    with entries of at most B2, and both solutions saddle points: ``H(a*, F*) <= H(a*, F') <= H_parts(a*, F') + B2 C^2 Q
    / 2 <= H_parts(a', F') + B2 C^2 Q / 2 <= H(a', F') + B2 C^2 Q``, and the same with the roles exchanged. The proof in
    print bounds ``|a_i a_j - a'_i a'_j| F_ij`` by ``(B2 - B1) C^2``, and compares F' with F* where neither is the
    minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_parts_bound
    >>> dank_parts_bound(np.ones((3, 3)), [0, 0, 1], C=2.0, smallest=0.9, largest=1.1).between
    4.0
    """
    K = _check_kernel(K)
    differs = _are_apart(parts, len(K))
    between = float(np.abs(K[differs]).sum())
    printed = 0.5 * float(largest - smallest) * C**2 * between
    size = max(abs(float(smallest)), abs(float(largest)))  # entries of F may be negative
    return PartsBound(between, printed, size * C**2 * between)


class Screening(NamedTuple):
    """Rows that Theorem 7 recognizes as no support vectors of the whole problem.

    Attributes
    ----------
    recognized : ndarray of shape (n,)
        Whether a row meets the condition (21).
    threshold : ndarray of shape (n,)
        The bound that the gradient must not exceed.
    least : ndarray of shape (n,)
        The least gradient that any solution on parts can have; it is above the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_screening
    >>> found = dank_screening(np.eye(2), [0, 1], [0, 1], [0.5, 0], C=1.0, smallest=1, largest=1)
    >>> found.threshold, found.least
    (array([-2., -2.]), array([0., 0.]))
    """

    recognized: NDArray
    threshold: NDArray
    least: NDArray


def dank_screening(
    K: ArrayLike,
    parts: ArrayLike,
    alpha: ArrayLike,
    gradient: ArrayLike,
    *,
    C: float,
    smallest: float,
    largest: float,
) -> Screening:
    """Rows that stay without a coefficient in the whole problem, from its solution on parts: Theorem 7.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The base kernel matrix.
    parts : array-like of shape (n,)
        The part of every row.
    alpha : array-like of shape (n,)
        The solution on parts, not negative; a row with a coefficient is never recognized.
    gradient : array-like of shape (n,)
        Of the objective (20) there, in alpha: ``1 - y * ((F * K_parts) @ (y * alpha))``.
    C : float
        Bound on the dual coefficients.
    smallest, largest : float
        The paper's B1 and B2: bounds on the entries of both solutions F.

    Returns
    -------
    Screening
        The rows, the threshold ``-(B2 - B1 + B2) C (|K_parts,i|_1 + kappa)`` of (21), and what the gradient can reach.

    See Also
    --------
    dank_parts_bound : Theorem 6, on the objective.

    Notes
    -----
    The condition is never met: with alpha in [0, C] and F at most B2 the gradient is at least
    ``1 - B2 C |K_parts,i|_1``, which is above the threshold. (The paper compares with ``1 - n B2 kappa C`` instead, and
    its experiment with plus the threshold.) Nor is it sufficient, as its proof bounds two sums over j by their largest
    summand. No rule that knows of the whole solution only that it lies in [0, C] can recognize a row: at zero every
    gradient is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_screening
    >>> gradient = np.array([-5.0, 0.0])
    >>> dank_screening(np.eye(2), [0, 1], [0, 1], gradient, C=1.0, smallest=1, largest=1).recognized
    array([ True, False])
    """
    sizes = np.abs(_check_kernel(K))
    within = np.where(_are_apart(parts, len(sizes)), 0.0, sizes).sum(axis=0)
    threshold = -(2.0 * largest - smallest) * C * (within + sizes.max())
    recognized = (np.asarray(alpha) == 0) & (np.asarray(gradient, dtype=float) <= threshold)
    size = max(abs(float(smallest)), abs(float(largest)))  # entries of F may be negative
    return Screening(recognized, threshold, 1.0 - size * C * within)


class NesterovSolution(NamedTuple):
    """The last point of an accelerated gradient method, and its course.

    Attributes
    ----------
    dual : ndarray of shape (n,)
        v: the labels times alpha, or ``alpha_hat - alpha_check``.
    adaptation : ndarray of shape (n, n)
        F there.
    objectives, gaps, steps : ndarray of shape (n_iter + 1,)
        h, the relative duality gap, and the length of the step that led there (NaN at the start), after every step.
    ascents : ndarray of shape (n_iter,) or None
        With ``monotone=True`` h at the points theta of line 6, which never falls; else None.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_nesterov
    >>> found = dank_nesterov(np.eye(2), [1, -1], C=1.0, centering_penalty=1.0)
    >>> found.dual.round(2)
    array([ 0.85, -0.85])
    """

    dual: NDArray
    adaptation: NDArray
    objectives: NDArray
    gaps: NDArray
    steps: NDArray
    ascents: NDArray | None = None


def dank_nesterov(
    K: ArrayLike,
    y: ArrayLike,
    C: float,
    centering_penalty: float,
    rank_penalty: float = 0.01,
    *,
    epsilon: float | None = None,
    as_printed: bool = False,
    accelerate: bool = True,
    monotone: bool = False,
    intercept: bool = True,
    lipschitz: float | None = None,
    tol: float = 1e-4,
    gap: float = 0.0,
    max_iter: int = 2000,
) -> NesterovSolution:
    """Algorithms 1 and 2 of the paper, and its projected gradient method (17), as printed or corrected.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The base kernel matrix.
    y : array-like of shape (n,)
        Labels -1 and 1, or numbers.
    C : float
        Bound on the dual coefficients.
    centering_penalty, rank_penalty : float
        The paper's eta and tau.
    epsilon : float or None, default=None
        Half width of the tube: Algorithm 2 on both duals. None: Algorithm 1, for labels.
    as_printed : bool, default=False
        Whether line 7 has the printed minus sign, the projection alternates between box and plane, and for
        regression the plane is that of (22) and the gradient that of (25). Such a run does not reach the solution.
    accelerate : bool, default=True
        False: the projected gradient method (17).
    monotone : bool, default=False
        Whether theta of line 6 is the best of its last value, the gradient step and the point itself, the variant
        after (17).
    intercept : bool, default=True
        False: the problem (18) without the plane ``v @ 1 = 0``, that is a machine without an intercept.
    lipschitz : float or None, default=None
        The constant L; None: that of Theorem 4 or 10, `dank_lipschitz`.
    tol : float, default=1e-4
        Length of a step at which to stop, the paper's line 10; a larger constant L makes shorter steps and so stops
        earlier. 0 goes on.
    gap : float, default=0.0
        Relative duality gap at which to stop.
    max_iter : int, default=2000
        Most steps.

    Returns
    -------
    NesterovSolution
        The last point and the course.

    See Also
    --------
    mercerless.DANKClassifier : Solves the same problem to a certified gap in a few outer steps.
    dank_lipschitz : The constant, and a better one.

    Notes
    -----
    The rate printed after (17) is Theorem 2 of Nesterov (2005), which is about theta of line 6:
    ``h* - h(theta_t) <= 2 L |alpha*|^2 / ((t + 1) (t + 2))`` for a start at 0, corrected and with a true Lipschitz
    constant L. In print it has beta in place of theta, for which nothing is guaranteed, and 8 in place of 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from mercerless.theory import dank_lipschitz, dank_nesterov
    >>> X, labels = make_moons(40, noise=0.2, random_state=0)
    >>> K, y = rbf_kernel(X), np.where(labels == 1, 1.0, -1.0)
    >>> L = dank_lipschitz(K, C=1.0, centering_penalty=5.0, sharp=True)
    >>> found = dank_nesterov(K, y, 1.0, 5.0, lipschitz=L, tol=0.0, gap=1e-4)
    >>> printed = dank_nesterov(K, y, 1.0, 5.0, as_printed=True)
    >>> bool(found.gaps[-1] <= 1e-4 < printed.gaps[-1])
    True
    """
    K = _check_kernel(K)
    y = _check_dual(y, K)
    check_number("C", C)
    check_number("epsilon", epsilon, zero=True, none=True)
    check_number("lipschitz", lipschitz, none=True)
    if epsilon is None and not np.all(np.abs(y) == 1.0):
        raise ValueError("y must have the labels -1 and 1; for numbers give epsilon.")
    problem = _FirstOrder(K, y, C, centering_penalty, rank_penalty, epsilon, as_printed, intercept)
    if lipschitz is None:
        lipschitz = dank_lipschitz(K, C, centering_penalty, regression=epsilon is not None)
    if epsilon is not None:
        lipschitz = 2.0 * lipschitz  # lines 6 and 7 of Algorithm 2
    sign = -1.0 if as_printed else 1.0
    x = np.zeros(problem.n_variables)
    summed = np.zeros_like(x)
    length = np.nan
    course = []
    ascents: list[float] = []
    best = x
    for t in range(max_iter + 1):
        gradient, value, relative_gap = problem.evaluate(x)
        course.append((value, relative_gap, length))
        if t == max_iter or relative_gap <= gap or length <= tol:
            break
        theta = problem.project(x + gradient / lipschitz)
        if monotone:
            best = max((best, theta, x), key=problem.value)
            ascents.append(problem.value(best))
            theta = best
        new = theta
        if accelerate:
            summed += (t + 1) * gradient
            beta = problem.project(sign * summed / (2.0 * lipschitz))
            new = (t + 1) / (t + 3) * theta + 2 / (t + 3) * beta
        length = float(np.linalg.norm(problem.dual(new) - problem.dual(x)))
        x = new
    v = problem.dual(x)
    objectives, gaps, steps = np.array(course).T
    F = dank_adaptation(v, K, centering_penalty, rank_penalty)
    return NesterovSolution(v, F, objectives, gaps, steps, np.array(ascents) if monotone else None)


class _FirstOrder:
    """The problem of a first-order method: gradient, objective, gap and projection, for alpha or for both duals."""

    def __init__(
        self,
        K: NDArray,
        y: NDArray,
        C: float,
        centering_penalty: float,
        rank_penalty: float,
        epsilon: float | None,
        as_printed: bool,
        intercept: bool,
    ):
        self.K = K
        self.y = y
        self.C = C
        self.penalties = {"centering_penalty": centering_penalty, "rank_penalty": rank_penalty}
        self.is_regression = epsilon is not None
        self.epsilon = epsilon or 0.0
        self.as_printed = as_printed
        self.intercept = intercept
        # the dual is signs * x, summed over both halves for regression
        self.signs = y
        if self.is_regression:
            self.signs = np.repeat([1.0, -1.0], len(y))
        self.n_variables = len(self.signs)
        # every x in the box has signs * x between these
        self.lo = np.minimum(self.signs * C, 0.0)
        self.hi = np.maximum(self.signs * C, 0.0)

    def dual(self, x: NDArray) -> NDArray:
        """v of a point of the box."""
        signed = self.signs * x
        if self.is_regression:
            return signed[: len(self.y)] + signed[len(self.y) :]
        return signed

    def value(self, x: NDArray) -> float:
        """h in alpha, or in both duals."""
        h = dank_objective(self.dual(x), self.K, self.y, **self.penalties)
        return h - self.epsilon * float(x.sum())

    def evaluate(self, x: NDArray) -> tuple[NDArray, float, float]:
        """The gradient in x, h, and the relative duality gap, which the printed gradient does not enter."""
        v = self.dual(x)
        F = dank_adaptation(v, self.K, **self.penalties)
        value = dank_objective(v, self.K, self.y, F, epsilon=self.epsilon, **self.penalties)
        in_v = self.y - (F * self.K) @ v
        if self.is_regression:
            in_check = -in_v
            if self.as_printed:  # (25): minus in front of F in both lines
                in_check = in_v - 2.0 * self.y
            gradient = np.concatenate([in_v, in_check]) - self.epsilon
            lo = np.full(len(v), -self.C)
            hi = np.full(len(v), self.C)
        else:
            gradient = self.signs * in_v
            lo = self.lo
            hi = self.hi
        if self.intercept:
            bound, _ = duality_gap(in_v, v, lo, hi, self.epsilon)
        else:
            bound = gap_at(in_v, v, lo, hi, self.epsilon)
        return gradient, value, bound / gap_scale(self.y, v, self.epsilon)

    def project(self, x: NDArray) -> NDArray:
        """The nearest feasible point; as printed, alternating projections onto the box and the plane."""
        if not self.intercept:
            return np.clip(x, 0.0, self.C)
        if not self.as_printed:
            return self.signs * project(self.signs * x, self.lo, self.hi)
        normal = self.signs
        if self.is_regression:  # (22): v @ y = 0
            normal = self.signs * np.tile(self.y, 2)
        square = max(float(normal @ normal), np.finfo(float).tiny)
        for _ in range(1000):
            x = np.clip(x, 0.0, self.C)
            miss = float(normal @ x)
            if abs(miss) <= 1e-12 * self.C * len(x):
                break
            x = x - miss / square * normal
        return x


class ConstrainedDank(NamedTuple):
    """A solution under the constraints (3), as one of the relaxation (4).

    Attributes
    ----------
    dual : ndarray of shape (n,)
        The labels times alpha.
    adaptation : ndarray of shape (n, n)
        The matrix F.
    radius : float
        The Frobenius norm of F - 1.
    rank : int
        The rank of F.
    centering_penalty, rank_penalty : float
        The eta and tau whose relaxation has this solution.
    objective : float
        That of (3): the margin problem's, without penalties.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_constrained
    >>> K, y = np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])
    >>> found = dank_constrained(K, y, C=10.0, radius=1.0)
    >>> found.dual.round(3), round(found.centering_penalty, 3)
    (array([ 0.667,  0.667, -0.667, -0.667]), 0.222)
    """

    dual: NDArray
    adaptation: NDArray
    radius: float
    rank: int
    centering_penalty: float
    rank_penalty: float
    objective: float


def dank_constrained(
    K: ArrayLike,
    y: ArrayLike,
    C: float,
    radius: float,
    rank: int | None = None,
    *,
    tol: float = 1e-6,
) -> ConstrainedDank:
    """The machine under the hard constraints (3), ``|F - 1|_F <= R`` and ``rank(F) < r``, through its multipliers.

    Every R has its eta: the solution of the relaxation (4) with tau = 0 is that of (3) with ``R = |F - 1|_F``, which
    falls continuously from infinity to 0 as eta grows. A bound r on the rank is not convex, and (3) has no saddle point
    then; what is returned is the relaxation with the smallest tau, found by bisection, whose F has a rank below r and
    the distance R, as the paper's relaxation intends.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The base kernel matrix, positive semi-definite.
    y : array-like of shape (n,)
        Labels -1 and 1.
    C : float
        Bound on alpha.
    radius : float
        The paper's R, positive.
    rank : int or None, default=None
        The paper's r, at least 2: F has a smaller rank; None: any.
    tol : float, default=1e-6
        Relative accuracy of the radius, and relative duality gap.

    Returns
    -------
    ConstrainedDank
        The solution and its eta and tau, for `mercerless.CenteringPenalty` and ``rank_penalty``.

    See Also
    --------
    mercerless.DANKClassifier : The relaxation (4).

    Notes
    -----
    Without a bound on the rank the best F for given v is ``1 + R M / |M|_F``, ``M = diag(v) K diag(v)``, so that (3) is
    the support vector machine with ``R |M|_F / 2`` as an additional penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import dank_constrained
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> X, labels = make_moons(16, noise=0.2, random_state=0)
    >>> y = np.where(labels == 1, 1.0, -1.0)
    >>> found = dank_constrained(rbf_kernel(X), y, C=2.0, radius=0.5, rank=4)
    >>> found.rank, round(found.radius, 4)
    (3, 0.5)
    """
    K = _check_kernel(K)
    y = _check_dual(y, K)
    if set(np.unique(y)) != {-1.0, 1.0}:
        raise ValueError("y must have the labels -1 and 1, both of them.")
    check_number("C", C)
    check_number("radius", radius)
    if rank is not None and not rank >= 2:
        raise ValueError(f"rank must be at least 2, since F has a smaller one, not {rank}.")
    relaxed = _Relaxation(K, y, float(C), tol)
    solution, eta = relaxed.at_radius(radius, 0.0)
    tau = 0.0
    if rank is not None and solution.factor.shape[1] >= rank:
        tau = relaxed.smallest_rank_penalty(radius, rank)
        solution, eta = relaxed.at_radius(radius, tau)
    F = _matrix_of(solution)
    v = solution.dual
    objective = float(y @ v) - float(v @ ((F * K) @ v)) / 2
    distance = float(np.linalg.norm(F - 1.0))
    rank_of_F = int(np.linalg.matrix_rank(F, hermitian=True))
    return ConstrainedDank(v, F, distance, rank_of_F, eta, tau, objective)


class _Relaxation:
    """The relaxation (4) of one problem for many multipliers."""

    def __init__(self, K: NDArray, y: NDArray, C: float, tol: float):
        task = DankTask(np.arange(len(y)), y, np.ones(len(y)), 0.0, is_classification=True)
        self.K = K
        self.y = y
        self.tol = tol
        self.lo, self.hi = task.bounds(C)
        self.start = plain_machine(task, K, C, 1e-6, kernel="precomputed")
        # of the last solution, from which the next one is sought
        self.log_eta: float | None = None

    def solve(self, eta: float, tau: float) -> DankSolution:
        def gram(rows: NDArray, columns: NDArray) -> NDArray:
            return self.K[np.ix_(rows, columns)]

        return solve_dank(
            gram,
            self.y,
            self.lo,
            self.hi,
            centering_penalty=eta,
            rank_penalty=tau,
            start=self.start,
            tol=self.tol / 10,
        )

    def at_radius(self, radius: float, tau: float) -> tuple[DankSolution, float]:
        """The solution with this distance of F from 1, and its eta."""

        def excess(log_eta: float) -> float:
            distance = np.linalg.norm(_matrix_of(self.solve(np.exp(log_eta), tau)) - 1.0)
            return float(np.log(distance / radius))

        if self.log_eta is None:
            # at the plain machine's coefficients, which the solution has if it hardly adapts
            v = self.start
            size = float(np.linalg.norm(v[:, None] * self.K * v))
            self.log_eta = float(np.log(max(size / (4.0 * radius), np.finfo(float).tiny)))
        low, high = _bracket(excess, self.log_eta)
        self.log_eta = brentq(excess, low, high, xtol=self.tol, rtol=1e-14)
        eta = float(np.exp(self.log_eta))
        return self.solve(eta, tau), eta

    def smallest_rank_penalty(self, radius: float, rank: int) -> float:
        """By bisection: the smallest tau with fewer eigenvalues than `rank`; it is below twice the radius."""

        def has_rank_below(log_tau: float) -> bool:
            solution, _ = self.at_radius(radius, float(np.exp(log_tau)))
            return solution.factor.shape[1] < rank

        high = float(np.log(1.9 * radius))
        low = high - 16.0
        if not has_rank_below(high):
            raise ValueError(
                f"no rank penalty gives a rank below {rank} at this radius; use a larger rank or "
                "radius."
            )
        for _ in range(10):
            middle = (low + high) / 2
            if has_rank_below(middle):
                high = middle
            else:
                low = middle
        return float(np.exp(high))


def _bracket(excess: Callable[[float], float], start: float) -> tuple[float, float]:
    """An interval around the root of a function that falls, by steps of 1 from the start."""
    step = 1.0 if excess(start) >= 0 else -1.0
    for _ in range(60):
        end = start + step
        if excess(end) * step <= 0:
            return min(start, end), max(start, end)
        start = end
    raise ValueError("no centering penalty has this radius; use a larger one.")


def _matrix_of(solution: DankSolution) -> NDArray:
    """F between all rows, from its factors."""
    rows = np.tile(solution.offset, (len(solution.dual), 1))
    rows[solution.support] = solution.factor
    return rows @ rows.T


def _are_apart(parts: ArrayLike, n: int) -> NDArray:
    parts = np.asarray(parts)
    if parts.shape != (n,):
        raise ValueError(
            f"parts must have one entry per row of K, shape ({n},), not {parts.shape}."
        )
    return parts[:, None] != parts


def _check_kernel(K: ArrayLike) -> NDArray:
    return check_symmetric(K, "K").astype(float, copy=False)


def _check_dual(v: ArrayLike, K: NDArray) -> NDArray:
    v = np.asarray(v, dtype=float)
    if v.shape != (len(K),):
        raise ValueError(
            f"v and y must have one entry per row of K, shape ({len(K)},), not {v.shape}."
        )
    return v
