"""Learning rates: the exponents that the papers prove.

An exponent e of a theorem means: with the stated choice of the penalty, and up to constants and logarithms, the error
of a sample of size n is at most ``n**-e`` with high probability. The functions check the theorems' conditions and raise
an error that names the one that fails. A rate that holds up to an arbitrarily small epsilon is returned without it by
default.

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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh
from scipy.optimize import minimize_scalar

from mercerless.core.validation import check_symmetric

__all__ = [
    "LabRate",
    "best_decay",
    "hyper_ridge_exponent",
    "hyper_svr_exponent",
    "krein_exponent",
    "lab_exponent",
    "rademacher_bound",
]


def krein_exponent(
    approximation: float,
    capacity: float,
    decay: float,
    growth: float | None = None,
    epsilon: float = 0.0,
) -> float:
    """The exponent of the squared error of least squares in a reproducing kernel Krein space.

    Theorem 1 of Liu et al. (with `growth`), and Corollaries 3.1 and 3.2 (without): the penalty is the indefinite inner
    product for the theorem, and any nonnegative one, such as the Krein method's two penalties, for Corollary 3.2.

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
        ``n**eta`` in size. From 1 on the exponent is that of a Hilbert space. None means a nonnegative penalty, with
        the same exponent.
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
    beta = approximation
    s = capacity
    gamma = decay
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
            _require(
                gamma + growth > 1, f"decay + growth > 1, got {gamma} + {growth}; raise the decay"
            )
            terms += [gamma + growth - 1, (2 - s * (1 - growth)) / (2 * (1 + s))]
    return float(min(terms))


def hyper_svr_exponent(
    approximation: float,
    capacity: float,
    decay: float,
    p: float = np.inf,
    q: float = 2.0,
    epsilon: float = 0.0,
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
    r = approximation
    s = capacity
    a = decay
    _check_parameters(r, s, a)
    _require(p > 0 and q > 1, f"p > 0 and q > 1, got {p} and {q}")
    theta = min(2 / q, 1.0 if np.isinf(p) else p / (p + 1))
    limit = (1 + s) / (s * (2 + s - theta))
    _require(a < limit, f"decay < (1 + s) / (s (2 + s - theta)) = {limit:.4g}, got {a}")
    exponent = min(a * r, (1 + a * r - a) / (2 - theta), 1 / (2 + s - theta) - a * s / (1 + s)) / q
    _require(
        0 <= epsilon < exponent, f"epsilon in [0, Theta / q) = [0, {exponent:.4g}), got {epsilon}"
    )
    return float(exponent - epsilon)


def hyper_ridge_exponent(
    approximation: float, capacity: float, decay: float, epsilon: float = 0.0
) -> float:
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
    r = approximation
    s = capacity
    a = decay
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

    Examples
    --------
    >>> from mercerless.theory import lab_exponent
    >>> rate = lab_exponent(1.0)
    >>> rate.error, rate.support
    (0.25, 0.25)
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
        Maps a decay in (0, 1] to an exponent; raises ValueError if the theorem does not cover the decay.

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
        raise ValueError(
            "no decay in (0, 1] meets the theorem's conditions; lower the capacity or raise the growth."
        )
    low = grid[max(best - 1, 0)]
    high = grid[min(best + 1, 999)]
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


def _check_parameters(approximation: float, capacity: float = 1.0, decay: float = 1.0) -> None:
    """Raise ValueError for parameters that no theorem allows."""
    for name, value in (("approximation", approximation), ("decay", decay)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} must be in (0, 1], got {value}.")
    if not capacity > 0:
        raise ValueError(
            f"capacity must be positive, got {capacity}; for a smooth kernel pass a small number."
        )


def _require(holds: bool, condition: str) -> None:
    """Raise ValueError if a theorem's condition does not hold."""
    if not holds:
        raise ValueError(f"the theorem needs {condition}.")
