"""Descent with restarts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize


class Descent(NamedTuple):
    """The best point found, its value, the largest entry of its projected gradient, and the work done.

    The gradient is divided by the value where that exceeds one.
    """

    x: NDArray
    value: float
    gradient: float
    n_evaluations: int
    values: NDArray  # (n_starts,) after the short runs


def minimize_with_restarts(
    function: Callable[[NDArray], tuple[float, NDArray]],
    starts: Sequence[NDArray],
    bounds: NDArray,
    *,
    short_iter: int = 20,
    long_iter: int = 200,
    tol: float = 1e-6,
    callback: Callable[[dict], bool | None] | None = None,
) -> Descent:
    """Minimize a smooth function by L-BFGS-B: a short run from every start, then a long one from the best.

    The scheme of Oglic and Gaertner (2018), appendix C: 10 starts of 20 iterations, then 200. Guarantee: a stationary
    point within the bounds, no worse than any start. `callback` gets a dict after every run and stops when it
    returns True.
    """
    bounds = np.asarray(bounds, dtype=float)
    n_evaluations = 0

    def descend(start, limit):
        nonlocal n_evaluations
        options = {"maxiter": limit, "gtol": tol, "ftol": 1e-10}
        start = np.clip(start, *bounds.T)
        run = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        n_evaluations += run.nfev
        return run

    best, values, stopped = None, [], False
    for i, start in enumerate(starts):
        run = descend(start, short_iter)
        values.append(float(run.fun))
        if np.isfinite(run.fun) and (best is None or run.fun < best.fun):
            best = run
        if callback is not None and callback({"stage": "start", "index": i, "value": float(run.fun)}):
            stopped = True
            break
    if best is None:
        raise ValueError("the function is not finite at any start.")
    if not stopped and long_iter > 0:
        run = descend(best.x, long_iter)
        best = run if run.fun <= best.fun else best
    projected = np.clip(best.x - best.jac, *bounds.T) - best.x
    gradient = float(np.abs(projected).max(initial=0.0) / max(abs(best.fun), 1.0))
    return Descent(best.x, float(best.fun), gradient, n_evaluations, np.array(values))
