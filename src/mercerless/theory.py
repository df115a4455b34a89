"""Learning rates: the exponents that the papers prove, and their counterparts observed on data.

An exponent e of a theorem means: with the stated choice of the penalty, and up to constants and logarithms, the error
of a sample of size n is at most ``n**-e`` with high probability. The functions check the theorems' conditions and
say which one fails. A rate that holds up to an arbitrarily small epsilon is returned without it by default.

References
----------
Krein: F. Liu, L. Shi, X. Huang, J. Yang and J. Suykens, "Analysis of regularized least squares in reproducing kernel
Krein spaces", Machine Learning, 2021; D. Oglic and T. Gaertner, "Learning in reproducing kernel Krein spaces", ICML
2018.
Hyper: F. Liu, L. Shi, X. Huang, J. Yang and J. Suykens, "Generalization properties of hyper-RKHS and its applications",
Journal of Machine Learning Research 22, 2021.
LAB: F. He, M. He, L. Shi, X. Huang and J. Suykens, "Learning analysis of kernel ridgeless regression with asymmetric
kernel learning", 2024.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigvalsh
from scipy.optimize import minimize_scalar
from scipy.stats import linregress
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from mercerless._validation import as_items, check_symmetric
from mercerless.kernels import as_kernel

__all__ = [
    "EigenvalueGrowth",
    "LabRate",
    "LearningCurve",
    "Rate",
    "best_decay",
    "eigenvalue_growth",
    "fit_rate",
    "hyper_ridge_exponent",
    "hyper_svr_exponent",
    "krein_exponent",
    "lab_exponent",
    "learning_curve",
    "rademacher_bound",
]


def krein_exponent(
    approximation: float, capacity: float, decay: float, growth: float | None = None, epsilon: float = 0.0
) -> float:
    """The exponent of the squared error of least squares in a reproducing kernel Krein space.

    Theorem 1 of Liu et al. (with `growth`), and Corollaries 3.1 and 3.2 (without): the penalty is the indefinite inner
    product for the theorem, any nonnegative one for Corollary 3.2, where the Krein method's two penalties belong.

    Parameters
    ----------
    approximation : float
        Beta in (0, 1]: the regularization error falls like ``alpha**beta``; 1 if the target lies in the space.
    capacity : float
        s > 0: the log covering number of the unit ball grows like ``(1 / radius)**s``; any small number for a smooth
        kernel, ``2 d / tau`` for tau derivatives in d dimensions.
    decay : float
        Gamma in (0, 1]: the penalty is ``n**-gamma``.
    growth : float or None, default=None
        Eta = min(eta1, eta2) > 0: the largest and the smallest eigenvalue of the kernel matrix grow at least like
        ``n**eta`` in size; see `eigenvalue_growth`. From 1 on the exponent is that of a Hilbert space, and so it is for
        None, a nonnegative penalty.
    epsilon : float, default=0.0
        The theorem's slack, which may be arbitrarily small; 0 is the supremum.

    Returns
    -------
    float
        The exponent of ``||clipped f - f_rho||^2``.

    Notes
    -----
    ``min(gamma beta, gamma + eta - 1, (2 - s gamma (1 - beta)) / (2 (1 + s)), (2 - s (1 - eta)) / (2 (1 + s)),
    (1 - s (gamma (1 + s) - 1) (2 + s) - s epsilon) / (1 + s))``; the terms with eta only if it is below 1. Conditions:
    ``gamma + eta > 1``, ``eta > 1 - 2 / s``, and ``epsilon < 1 / s - (gamma (1 + s) - 1) (2 + s)``.

    Examples
    --------
    >>> from mercerless.theory import krein_exponent
    >>> round(krein_exponent(1.0, 1e-9, 1.0), 6)
    1.0
    >>> round(krein_exponent(1.0, 0.1, 0.8, growth=0.6), 3)
    0.4
    """
    beta, s, gamma = approximation, capacity, decay
    _check_parameters(beta, s, gamma)
    limit = 1 / s - (gamma + s * gamma - 1) * (2 + s)
    condition = f"0 <= epsilon < 1/s - (gamma + s gamma - 1)(2 + s) = {limit:.4g}, got {epsilon}"
    _require(0 <= epsilon < limit, f"{condition}; lower the decay or the capacity")
    terms = [
        gamma * beta,
        (2 - s * gamma * (1 - beta)) / (2 * (1 + s)),
        (1 - s * (gamma + s * gamma - 1) * (2 + s) - s * epsilon) / (1 + s),
    ]
    if growth is not None:
        least = max(0.0, 1 - 2 / s)
        _require(growth > least, f"growth > max(0, 1 - 2/s) = {least:.4g}, got {growth}")
        if growth < 1:
            _require(gamma + growth > 1, f"decay + growth > 1, got {gamma} + {growth}; raise the decay")
            terms += [gamma + growth - 1, (2 - s * (1 - growth)) / (2 * (1 + s))]
    return float(min(terms))


def hyper_svr_exponent(
    approximation: float, capacity: float, decay: float, p: float = np.inf, q: float = 2.0, epsilon: float = 0.0
) -> float:
    """The exponent of the error of support vector regression of a kernel in a hyper-RKHS (Theorem 7).

    Parameters
    ----------
    approximation : float
        r in (0, 1]: the regularization error falls like ``alpha**r``.
    capacity : float
        s > 0, the exponent of the log covering number.
    decay : float
        The penalty is ``m**-decay``, in (0, 1] and below ``(1 + s) / (s (2 + s - theta))``; the tube's width may be
        ``m**-gamma`` for any gamma from ``decay * approximation`` on.
    p, q : float, default=inf and 2
        The noise has a median of p-average type q, p in (0, inf], q in (1, inf); theta = min(2 / q, p / (p + 1)).
    epsilon : float, default=0.0
        The theorem's slack.

    Returns
    -------
    float
        The exponent ``Theta / q - epsilon`` of the error in the norm of ``L^(p q / (p + 1))``; m counts pairs.

    Examples
    --------
    >>> from mercerless.theory import hyper_svr_exponent
    >>> round(hyper_svr_exponent(1.0, 1e-9, 1.0), 6)
    0.5
    """
    r, s, a = approximation, capacity, decay
    _check_parameters(r, s, a)
    _require(p > 0 and q > 1, f"p > 0 and q > 1, got {p} and {q}")
    theta = min(2 / q, 1.0 if np.isinf(p) else p / (p + 1))
    limit = (1 + s) / (s * (2 + s - theta))
    _require(a < limit, f"decay < (1 + s) / (s (2 + s - theta)) = {limit:.4g}, got {a}")
    exponent = min(a * r, (1 + a * r - a) / (2 - theta), 1 / (2 + s - theta) - a * s / (1 + s)) / q
    _require(0 <= epsilon < exponent, f"epsilon in [0, Theta / q) = [0, {exponent:.4g}), got {epsilon}")
    return float(exponent - epsilon)


def hyper_ridge_exponent(approximation: float, capacity: float, decay: float, epsilon: float = 0.0) -> float:
    """The exponent of the error of least squares regression of a kernel in a hyper-RKHS (Theorem 8).

    Parameters
    ----------
    approximation : float
        r in (0, 1]: the regularization error falls like ``alpha**r``.
    capacity : float
        s > 0, the exponent of the log covering number.
    decay : float
        The penalty is ``m**-decay``, in (0, 1] and below ``(1 + s) / (s (2 + s))``.
    epsilon : float, default=0.0
        The theorem's slack.

    Returns
    -------
    float
        The exponent ``Theta - epsilon`` of the error in the norm of L2 (of its square: twice that); m counts pairs.

    Examples
    --------
    >>> from mercerless.theory import hyper_ridge_exponent
    >>> round(hyper_ridge_exponent(1.0, 1e-9, 0.5), 6)
    0.5
    """
    r, s, a = approximation, capacity, decay
    _check_parameters(r, s, a)
    limit = (1 + s) / (s * (2 + s))
    _require(a < limit, f"decay < (1 + s) / (s (2 + s)) = {limit:.4g}, got {a}")
    exponent = min(a * r, 1 / (2 + s) - a * s / (1 + s))
    _require(0 <= epsilon < exponent, f"epsilon in [0, Theta) = [0, {exponent:.4g}), got {epsilon}")
    return float(exponent - epsilon)


class LabRate(NamedTuple):
    """The rates of Theorem 5 for locally adaptive bandwidths.

    Attributes
    ----------
    error : float
        The error falls like ``n**-error``.
    support : float
        The number of support points grows at most like ``n**support``.
    decay : float
        The penalty that gives this is ``n**-decay``.
    """

    error: float
    support: float
    decay: float


def lab_exponent(approximation: float, xi: float = 0.0) -> LabRate:
    """The exponents of the error and of the model size of kernel machines with local bandwidths (Theorem 5).

    Parameters
    ----------
    approximation : float
        Beta in (0, 1]: the regularization error falls like ``penalty**beta``.
    xi : float, default=0.0
        The theorem's slack, below beta / 4, which may be arbitrarily small; 0 is the supremum.

    Returns
    -------
    LabRate
        Error ``beta / 4 - xi``, decay ``beta / (2 (1 + xi) (xi + beta - xi beta))``, support
        ``decay + xi - beta / 4``.

    Examples
    --------
    >>> from mercerless.theory import lab_exponent
    >>> lab_exponent(1.0)
    LabRate(error=0.25, support=0.25, decay=0.5)
    """
    beta = approximation
    _check_parameters(beta)
    _require(0 <= xi < beta / 4, f"xi in [0, beta / 4) = [0, {beta / 4:.4g}), got {xi}")
    decay = beta / (2 * (1 + xi) * (xi + beta - xi * beta))
    return LabRate(float(beta / 4 - xi), float(decay + xi - beta / 4), float(decay))


def best_decay(exponent: Callable[[float], float]) -> tuple[float, float]:
    """The decay of the penalty with the largest exponent.

    Parameters
    ----------
    exponent : callable
        From a decay in (0, 1] to an exponent; a ValueError counts as "not covered by the theorem".

    Returns
    -------
    decay, exponent : float
        The best decay and its exponent.

    Examples
    --------
    >>> from mercerless.theory import best_decay, krein_exponent
    >>> decay, exponent = best_decay(lambda gamma: krein_exponent(0.5, 0.5, gamma))
    >>> round(decay, 3), round(exponent, 3)
    (0.857, 0.429)
    """

    def loss(decay):
        try:
            return -exponent(float(decay))
        except ValueError:
            return np.inf

    grid = np.linspace(1e-3, 1.0, 1000)
    values = np.array([loss(d) for d in grid])
    best = int(np.argmin(values))
    if not np.isfinite(values[best]):
        raise ValueError("no decay in (0, 1] meets the theorem's conditions; lower the capacity or raise the growth.")
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, 999)]
    finer = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    if np.isfinite(finer.fun) and finer.fun < values[best]:
        return float(finer.x), float(-finer.fun)
    return float(grid[best]), float(-values[best])


def rademacher_bound(K: ArrayLike, radius: float = 1.0) -> float:
    """Bound on the Rademacher complexity of a ball of the Krein space in its strong topology.

    ``radius / sqrt(n) * sqrt(mean(diag(|K|)))`` bounds ``E sup |mean(sigma_i f(x_i))|`` over all f with
    ``||f+||^2 + ||f-||^2 <= radius^2``, for fair random signs sigma.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix of a sample.
    radius : float, default=1.0
        Radius of the ball.

    Returns
    -------
    float
        The bound.

    Notes
    -----
    The kernel of the associated Hilbert space is ``|K|`` on the sample. Oglic and Gaertner, section 3.2, write the mean
    over the sample with a factor 1/sqrt(n) in place of 1/n; with that factor the bound has no 1/sqrt(n).

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import rademacher_bound
    >>> rademacher_bound(np.diag([1.0, -1.0, 1.0, -1.0]))
    0.5
    """
    K = check_symmetric(K)
    return float(radius * np.sqrt(np.abs(eigvalsh(K)).sum()) / len(K))  # the trace of |K|


class Rate(NamedTuple):
    """A power law ``constant * size**-exponent`` fitted to observed errors.

    Attributes
    ----------
    exponent : float
        The fitted exponent; negative when the values grow.
    constant : float
        The fitted factor.
    standard_error : float
        Of the exponent, from the scatter around the line.
    """

    exponent: float
    constant: float
    standard_error: float


def fit_rate(sizes: ArrayLike, errors: ArrayLike) -> Rate:
    """Fit ``constant * size**-exponent`` by least squares on logarithms.

    Parameters
    ----------
    sizes : array-like of shape (n_sizes,)
        Sample sizes.
    errors : array-like of shape (n_sizes,) or (n_sizes, n_repeats)
        Positive errors; repeats are averaged first.

    Returns
    -------
    Rate
        Exponent, constant and standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import fit_rate
    >>> sizes = np.array([10, 100, 1000])
    >>> round(fit_rate(sizes, 3 / np.sqrt(sizes)).exponent, 6)
    0.5
    """
    sizes, errors = np.asarray(sizes, dtype=float), np.asarray(errors, dtype=float)
    errors = errors.mean(axis=1) if errors.ndim == 2 else errors
    if len(sizes) < 2 or not (np.all(sizes > 0) and np.all(errors > 0)):
        raise ValueError("a rate needs at least two sizes and positive errors.")
    line = linregress(np.log(sizes), np.log(errors))
    return Rate(float(-line.slope), float(np.exp(line.intercept)), float(line.stderr))


class EigenvalueGrowth(NamedTuple):
    """How the extreme eigenvalues of a kernel matrix grow with the sample.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        Sample sizes.
    largest, smallest : ndarray of shape (n_sizes, n_repeats)
        The extreme eigenvalues.
    positive, negative : float
        Fitted exponents eta1 and eta2 of ``largest`` and of ``-smallest``; NaN where an eigenvalue has not the sign
        that Assumption 4 of Liu et al. asks for.
    """

    sizes: NDArray
    largest: NDArray
    smallest: NDArray
    positive: float
    negative: float

    @property
    def exponent(self) -> float:
        """Eta, the smaller of the two, for `krein_exponent`."""
        return float(np.min([self.positive, self.negative]))


def eigenvalue_growth(
    kernel: Any, X: Any, sizes: Sequence[int], n_repeats: int = 10, random_state: Any = None
) -> EigenvalueGrowth:
    """Estimate eta1 and eta2: exponents of the growth of the extreme eigenvalues with the sample size.

    Parameters
    ----------
    kernel : str, Kernel or callable
        The kernel; for ``"precomputed"`` X is its matrix.
    X : array-like of shape (n, n_features) or (n, n)
        The pool of rows.
    sizes : sequence of int
        Sizes of random subsets, at least two.
    n_repeats : int, default=10
        Subsets per size.
    random_state : int, RandomState or None, default=None
        Their seed.

    Returns
    -------
    EigenvalueGrowth
        The eigenvalues and the fitted exponents.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Log
    >>> from mercerless.theory import eigenvalue_growth
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> growth = eigenvalue_growth(Log(), X, [25, 50, 100], random_state=0)
    >>> bool(0.9 < growth.negative < 1.1)
    True
    """
    rng = check_random_state(random_state)
    X = np.asarray(X)
    if len(sizes) < 2 or max(sizes) > len(X) or min(sizes) < 1:
        raise ValueError(f"sizes must be at least two numbers between 1 and the {len(X)} rows, got {list(sizes)}.")
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    function = as_kernel(kernel, None if precomputed or X.ndim < 2 else X)
    largest, smallest = np.empty((2, len(sizes), n_repeats))
    for i, size in enumerate(sizes):
        for j in range(n_repeats):
            rows = rng.permutation(len(X))[:size]
            K = X[np.ix_(rows, rows)] if precomputed else function(X[rows])
            values = eigvalsh(check_symmetric(K, "the kernel matrix"))
            largest[i, j], smallest[i, j] = values[-1], values[0]
    up = -fit_rate(sizes, largest).exponent if np.all(largest.mean(axis=1) > 0) else np.nan
    # below rounding of the largest eigenvalue a negative one is none
    down = np.all(-smallest.mean(axis=1) > 1e-10 * np.abs(largest).mean(axis=1))
    return EigenvalueGrowth(
        np.asarray(sizes), largest, smallest, up, -fit_rate(sizes, -smallest).exponent if down else np.nan
    )


class LearningCurve(NamedTuple):
    """Observed errors against sample size.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        Training sizes.
    errors : ndarray of shape (n_sizes, n_repeats)
        Mean squared error against the true values, one column per random subset.
    rate : Rate
        The power law fitted to their means.
    """

    sizes: NDArray
    errors: NDArray
    rate: Rate


def learning_curve(
    estimator: BaseEstimator | Callable[[int], BaseEstimator],
    X: Any,
    y: ArrayLike,
    X_test: Any,
    truth: ArrayLike,
    sizes: Sequence[int],
    *,
    n_repeats: int = 10,
    clip: float | None = None,
    random_state: Any = None,
) -> LearningCurve:
    """The excess risk of an estimator on growing random subsets, and its fitted rate.

    Parameters
    ----------
    estimator : estimator or callable
        The regressor, or a function from the sample size to one, for penalties that fall with it.
    X, y : array-like
        The pool of training rows.
    X_test, truth : array-like
        Test rows and the values of the target function there, without noise.
    sizes : sequence of int
        Training sizes.
    n_repeats : int, default=10
        Random subsets per size.
    clip : float or None, default=None
        Predictions are cut at -clip and clip first, the papers' projection.
    random_state : int, RandomState or None, default=None
        The seed of the subsets.

    Returns
    -------
    LearningCurve
        Sizes, errors and the fitted rate.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from mercerless.theory import learning_curve
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(2000, 3)), rng.normal(size=2000)
    >>> curve = learning_curve(LinearRegression(), X, X[:, 0] + noise, X, X[:, 0], [50, 200, 800], random_state=0)
    >>> bool(0.7 < curve.rate.exponent < 1.3)
    True
    """
    rng = check_random_state(random_state)
    X = as_items(X) if hasattr(X, "iloc") else X  # by position, whatever the labels
    y, truth = np.asarray(y, dtype=float), np.asarray(truth, dtype=float)
    if min(sizes) < 1 or max(sizes) > len(y):
        raise ValueError(f"sizes must lie between 1 and the {len(y)} training rows, got {list(sizes)}.")
    errors = np.empty((len(sizes), n_repeats))
    for i, size in enumerate(sizes):
        model = clone(estimator) if hasattr(estimator, "fit") else estimator(size)
        for j in range(n_repeats):
            rows = rng.permutation(len(y))[:size]
            predicted = clone(model).fit(X[rows], y[rows]).predict(X_test)
            predicted = predicted if clip is None else np.clip(predicted, -clip, clip)
            errors[i, j] = np.mean((predicted - truth) ** 2)
    return LearningCurve(np.asarray(sizes), errors, fit_rate(sizes, errors))


def _check_parameters(approximation: float, capacity: float = 1.0, decay: float = 1.0) -> None:
    """Refuse what no theorem allows."""
    for name, value in (("approximation", approximation), ("decay", decay)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} must be in (0, 1], got {value}.")
    if not capacity > 0:
        raise ValueError(f"capacity must be positive, got {capacity}; for a smooth kernel pass a small number.")


def _require(holds: bool, condition: str) -> None:
    """Refuse what does not meet a theorem's condition."""
    if not holds:
        raise ValueError(f"the theorem needs {condition}.")
