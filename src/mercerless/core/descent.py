"""Descent of a smooth function from several starts, and the smallest value of a grid."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import BaseEstimator

from mercerless.core.validation import check_number

# called with {"stage", "value", ...} after every step; True ends the search
Report = Callable[[dict], bool]


class Descent(NamedTuple):
    """The best point, and the work done."""

    x: NDArray
    value: float  # the function there
    # the certificate: largest entry of the projected gradient, divided by a value above one
    gradient: float
    n_evaluations: int
    values: NDArray  # (n_starts,), after the short runs


class GradientSearch(BaseEstimator):
    """Choose parameters by descending the validation error along its exact gradient, from several random starts.

    For the `search` of an estimator, in place of a grid; the parameters of the kernel are tuned as well.

    Parameters
    ----------
    n_restarts : int, default=10
        Random starts. `KreinRidge` follows each for 20 iterations of L-BFGS-B at most, `DANKClassifier`, which starts
        from a grid as well, to the end.
    max_iter : int, default=200
        Iterations from the best of them; for `DANKClassifier` of every descent, 25 are enough as a rule.
    tol : float, default=1e-6
        Where to stop: the largest entry of the projected gradient.

    See Also
    --------
    mercerless.KreinRidge : Takes it.
    mercerless.DANKClassifier : Takes it.

    References
    ----------
    D. Oglic and T. Gaertner, "Learning in reproducing kernel Krein spaces", ICML 2018, appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import GradientSearch, KreinRidge
    >>> from mercerless.kernels import Gaussian
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = KreinRidge(Gaussian(9.0), search=GradientSearch(2, 10), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.kernel_.length_scale < 9.0)
    True
    """

    def __init__(self, n_restarts: int = 10, max_iter: int = 200, tol: float = 1e-6):
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol


def check_search(search: Any) -> None:
    """Raise unless this is None or a `GradientSearch` with sensible numbers."""
    if search is None:
        return
    if not isinstance(search, GradientSearch):
        raise ValueError(f"search must be None or a mercerless.GradientSearch, not {search!r}.")
    check_number("n_restarts", search.n_restarts, whole=True, zero=True)
    check_number("max_iter", search.max_iter, whole=True)


def minimize_with_restarts(
    function: Callable[[NDArray], tuple[float, NDArray]],
    starts: Sequence[NDArray],
    bounds: NDArray,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
    start_iter: int = 20,
    callback: Report | None = None,
) -> Descent:
    """Minimize a smooth function by L-BFGS-B: `start_iter` iterations from every start, then `max_iter` from the best.

    Guarantee: a stationary point within the bounds, no worse than any start. `callback` gets a dict after every run
    and stops when it returns True.
    """
    bounds = np.asarray(bounds, dtype=float)

    def descend(start: NDArray, limit: int) -> OptimizeResult:
        options = {"maxiter": limit, "gtol": tol, "ftol": 1e-10}
        return minimize(
            function,
            np.clip(start, *bounds.T),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=options,
        )

    runs: list[OptimizeResult] = []
    for i, start in enumerate(starts):
        runs.append(descend(start, min(start_iter, max_iter)))
        info = {"stage": "start", "index": i, "value": float(runs[-1].fun)}
        if callback is not None and callback(info):
            max_iter = 0
            break
    values = np.array([float(run.fun) for run in runs])
    if not np.isfinite(values).any():
        raise ValueError("the function is not finite at any start.")
    best = runs[int(np.argmin(np.where(np.isfinite(values), values, np.inf)))]
    if max_iter > 0:
        runs.append(descend(best.x, max_iter))
        best = runs[-1] if runs[-1].fun <= best.fun else best
    projected = np.clip(best.x - best.jac, *bounds.T) - best.x
    gradient = float(np.abs(projected).max(initial=0.0) / max(abs(best.fun), 1.0))
    return Descent(best.x, float(best.fun), gradient, sum(run.nfev for run in runs), values)
