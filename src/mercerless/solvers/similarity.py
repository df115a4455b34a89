"""The 1-norm support vector machine on similarities, a linear programme."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog


class SparseMachine(NamedTuple):
    """The solution of `sparse_machine`.

    Attributes
    ----------
    coef : ndarray of shape (n,)
        Coefficients of the columns; most are exactly 0.
    intercept : float
        The intercept.
    objective : float
        The value of the problem.
    gap : float
        The certificate: the duality gap with a feasible dual point, relative to the objective.
    """

    coef: NDArray
    intercept: float
    objective: float
    gap: float


def sparse_machine(K: NDArray, signs: NDArray, C: NDArray | float) -> SparseMachine:
    """``min_{a, b} sum_j |a_j| + sum_i C_i max(0, 1 - y_i (K_i a + b))``.

    Parameters
    ----------
    K : ndarray of shape (n, p)
        Similarities of n items to p items: symmetric or not, definite or not.
    signs : ndarray of shape (n,)
        The labels y, -1 or +1.
    C : ndarray of shape (n,) or float
        The price of a margin violation, positive.

    Returns
    -------
    SparseMachine
        Coefficients, intercept and certificate.

    Notes
    -----
    A linear programme in ``2 p + n + 1`` unknowns, convex for any K, solved by the dual simplex method of HiGHS, so the
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
    coef, intercept = result.x[:p] - result.x[p : 2 * p], float(result.x[2 * p])
    # values of the scaled problem: |a| + sum prices * hinge
    primal = np.abs(coef).sum() + prices @ np.maximum(0.0, 1.0 - signed @ coef - signs * intercept)
    dual = np.clip(-result.ineqlin.marginals * unit, 0.0, prices)
    dual /= max(1.0, float(np.abs(signed.T @ dual).max()))
    gap = max(primal - dual.sum(), abs(signs @ dual)) / max(primal, np.finfo(float).tiny)
    return SparseMachine(coef / largest, intercept, float(primal / largest), float(gap))
