"""The support of a local model: how many rows, which ones, and which more of them."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

from mercerless.core.validation import check_number, check_option
from mercerless.lab.solver import LocalRegression, State


class Support(BaseEstimator):
    """How the support of a local model is chosen, and whether it grows, the dynamic strategy of the LAB paper.

    Parameters
    ----------
    n_support : int, float or "auto", default="auto"
        The number, as in `LABRegressor`; if the support grows, the number at the start.
    selection : {"kmeans", "y", "random", "extreme"}, default="kmeans"
        The rows nearest to k-means centers, evenly spaced in the order of the target (the paper's choice), at random,
        or (a bad example, for reproduction) the rows with the largest targets.
    step : int or None, default=None
        Rows added in every round, those with the largest errors: k in the paper's Algorithm 1. None means at most a
        tenth of the number at the start, and only rows above `max_error`.
    max_error : float or None, default=None
        Growth ends when no row off the support has a larger squared error: B in Algorithm 1, in units of the
        standardized target (with an `optimizer`, of the target scaled to [-1, 1]). Rows are those that the bandwidths
        are learned on (see `max_rows` of `LABRegressor`). With ``objective="interpolation"`` the errors of the support
        are 0, up to the ridge; otherwise they are not, and a warning says if they exceed the bound. None means no
        growth.
    max_support : int or None, default=None
        Growth ends at so many support points; None means all rows.

    See Also
    --------
    LABRegressor : Takes it as `n_support`.

    Examples
    --------
    >>> from mercerless import LABRegressor, Support
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(200, function="f1", random_state=0)
    >>> support = Support(20, selection="y", max_error=0.5)
    >>> paper = LABRegressor(support, kernel="gaussian", objective="interpolation", max_iter=50, random_state=0)
    >>> bool(paper.fit(X, y).max_error_ <= 0.5)
    True
    """

    def __init__(
        self,
        n_support: int | float | str = "auto",
        *,
        selection: str = "kmeans",
        step: int | None = None,
        max_error: float | None = None,
        max_support: int | None = None,
    ) -> None:
        self.n_support = n_support
        self.selection = selection
        self.step = step
        self.max_error = max_error
        self.max_support = max_support


def check_support(support: Support, n: int) -> None:
    """Raise unless the parameters of a support make sense for n rows."""
    check_option("selection", support.selection, ("kmeans", "y", "random", "extreme"))
    check_number("step", support.step, whole=True, none=True)
    check_number("max_error", support.max_error, none=True)
    check_number("max_support", support.max_support, whole=True, none=True)
    number = 0.0
    n_support = support.n_support
    if isinstance(n_support, Real) and not isinstance(n_support, bool):
        number = float(n_support)
    is_count = isinstance(n_support, Integral) and number >= 1
    is_fraction = not isinstance(n_support, Integral) and 0 < number <= 1
    if not (is_count or is_fraction or n_support == "auto"):
        raise ValueError(
            f"n_support={n_support!r} must be a positive whole number, a fraction of the rows, "
            "'auto', or a Support."
        )
    if is_count and number > n:
        raise ValueError(
            f"n_support={n_support} is more than the {n} training rows; use fewer, a fraction such "
            "as 0.25, or 'auto'."
        )


def select_support(X: NDArray, Y: NDArray, n_support: int, method: str, seed: int) -> NDArray:
    """Choose distinct rows as centers.

    "kmeans": the rows nearest to k-means centers; "y": evenly spaced in the order of the (first) target, the paper's
    choice; "random"; "extreme": the rows with the largest targets, the paper's bad example.
    """
    n = len(X)
    if n_support >= n:
        return np.arange(n)
    random = np.random.RandomState(seed)
    if method == "random":
        return random.permutation(n)[:n_support]
    if method in ("y", "extreme"):
        order = np.argsort(Y[:, 0], kind="stable")
        if method == "extreme":
            return order[n - n_support :]
        places = np.round(np.linspace(0, n - 1, n_support)).astype(int)
        return order[places]
    # k-means on at most 20,000 rows; every center takes its nearest row that is still free
    rows = np.sort(random.permutation(n)[:20_000])
    Z = X[rows]
    options = {"n_init": 1, "random_state": random}
    if len(Z) > 4000:
        means = MiniBatchKMeans(n_support, max_iter=20, batch_size=4096, **options)
    else:
        means = KMeans(n_support, max_iter=30, **options)
    with warnings.catch_warnings():  # of fewer clusters than centers, which are rows all the same
        warnings.simplefilter("ignore", ConvergenceWarning)
        distances = means.fit(Z).transform(Z)
    free = np.ones(len(Z), dtype=bool)
    chosen = np.empty(n_support, dtype=int)
    for j in range(n_support):
        to_center = np.where(free, distances[:, j], np.inf)
        # the two rows of a cluster are equally far, and rounding must not decide
        i = int(np.argmax(to_center <= (1 + 1e-6) * to_center.min()))
        free[i] = False
        chosen[j] = i
    return rows[chosen]


def grow(
    problem: LocalRegression, state: State, support: NDArray, settings: Support, n_start: int
) -> tuple[NDArray, float]:
    """The rows that join the support, the paper's dynamic strategy, and the largest squared error of all rows."""
    errors = np.sum((problem.predict(state, problem.X) - problem.Y) ** 2, axis=1)
    largest = float(errors.max())
    n = len(problem.X)
    room = min(n, settings.max_support or n) - len(support)
    if settings.max_error is None or room <= 0:
        return support[:0], largest
    errors[support] = 0.0
    n_large = int(np.sum(errors > settings.max_error))
    if n_large == 0:
        return support[:0], largest
    n_new = settings.step or min(max(1, n_start // 10), n_large)
    return np.argsort(-errors, kind="stable")[: min(n_new, room)], largest


def support_size(n_support: Any, n: int, needs_others: bool = False) -> int:
    """Support points for n rows: a whole number, a fraction, or "auto".

    "auto" is half of the rows, from 100 (or all) to 200; if the rows off the support decide, a quarter up to 200.
    """
    if n_support == "auto":
        if needs_others:
            return max(1, min(200, n // 4))
        # more accurate than a quarter by .008 on 12 sets (standard error .006, for each of two draws of splits) and by
        # .023 (.014) on 14 other sets of 120 rows; R2 of 12 numeric sets .008 (.006) larger
        return min(n, max(100, min(200, n // 2)))
    if isinstance(n_support, Integral):
        return int(n_support)
    return max(1, round(n_support * n))
