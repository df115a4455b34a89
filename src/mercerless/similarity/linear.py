"""The support vector machine with the 1-norm of its coefficients as penalty: a linear program."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog


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
    has_one_class = np.all(signs == signs[0])
    if largest == 0.0 or has_one_class:
        intercept = 1.0 if C @ signs >= 0.0 else -1.0
        hinge = np.maximum(0.0, 1.0 - signs * intercept)
        return SparseMachine(np.zeros(p), intercept, float(C @ hinge), 0.0)

    # the unknowns: positive and negative parts of the coefficients, the intercept, and the margin violations
    signed = K * (signs / largest)[:, None]
    constraints = np.hstack([signed, -signed, signs[:, None], np.eye(n)])
    prices = C * largest
    unit = max(1.0, float(prices.max()))
    costs = np.concatenate([np.ones(2 * p), [0.0], prices]) / unit
    nonnegative = (0.0, None)
    free = (None, None)
    bounds = [nonnegative] * (2 * p) + [free] + [nonnegative] * n
    result = linprog(costs, A_ub=-constraints, b_ub=-np.ones(n), bounds=bounds, method="highs-ds")
    if result.x is None:
        return SparseMachine(np.zeros(p), 0.0, float(C.sum()), np.inf)
    positive = result.x[:p]
    negative = result.x[p : 2 * p]
    coef = positive - negative
    intercept = float(result.x[2 * p])

    # the certificate, of the scaled problem
    hinge = np.maximum(0.0, 1.0 - signed @ coef - signs * intercept)
    primal = np.abs(coef).sum() + prices @ hinge
    dual = np.clip(-result.ineqlin.marginals * unit, 0.0, prices)
    dual /= max(1.0, float(np.abs(signed.T @ dual).max()))
    violation = abs(signs @ dual)
    gap = max(primal - dual.sum(), violation) / max(primal, np.finfo(float).tiny)
    return SparseMachine(coef / largest, intercept, float(primal / largest), float(gap))
