"""Results of the papers: exponents of learning rates, sample sizes, and what their assumptions mean on a sample.

An exponent e of a theorem means: with the stated choice of the penalty, and up to constants and logarithms, the error
of a sample of size n is at most ``n**-e`` with high probability. The functions check the theorems' conditions and raise
an error that names the one that fails. A rate that holds up to an arbitrarily small epsilon is returned without it by
default. The papers' pages have the other bounds and lemmas as code.

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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigvalsh
from scipy.stats import linregress

from mercerless.core.validation import check_number, check_random_state, check_symmetric
from mercerless.spectra import decompose

__all__ = [
    "EigenvalueGrowth",
    "LabRate",
    "effective_dimension",
    "eigenvalue_growth",
    "hyper_ridge_exponent",
    "hyper_svr_exponent",
    "krein_exponent",
    "krein_sample_size",
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
    approximation: float, capacity: float, decay: float, p: float = np.inf, q: float = 2.0
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

    Returns
    -------
    float
        The exponent ``Theta / q`` of the error in the norm of ``L^(p q / (p + 1))``, less a slack that may be
        arbitrarily small. m counts items: the error is ``m**-exponent`` for a sample of m items, which has m^2 pairs.

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
    theta_of_paper = min(
        a * r, (1 + a * r - a) / (2 - theta), 1 / (2 + s - theta) - a * s / (1 + s)
    )
    return float(theta_of_paper / q)


def hyper_ridge_exponent(approximation: float, capacity: float, decay: float) -> float:
    """The exponent of the error of least squares regression of a kernel in a hyper-RKHS (Theorem 8, corrected).

    Parameters
    ----------
    approximation : float
        r in (0, 1]: the regularization error falls like ``alpha**r``.
    capacity : float
        s > 0, the exponent of the log covering number.
    decay : float
        The penalty is ``m**-decay``, in (0, 1] and below ``(1 + s) / (s (2 + s))``.

    Returns
    -------
    float
        The exponent ``Theta`` of the error in the norm of L2 (of its square: twice that) for m items, which have m^2
        pairs, less a slack that may be arbitrarily small.

    Notes
    -----
    ``Theta = min(decay r / 2, 1 / (2 + s) - decay s / (1 + s))``. In print the first term is ``decay r``. But the
    assumption ``D(alpha) <= C alpha**r`` bounds the *squared* norm of the bias, so the norm falls like
    ``alpha**(r / 2)`` and, for the least favorable targets, no faster: with r = 1 and decay = 1/2 ridge regression
    without noise has a norm of about ``m**-.25`` already, where (19) promises ``m**-.5``. The paper's remark that
    ``1 / m`` is reached for r = 1 holds, with the decay 1 instead of 1/2. The second term is as printed, without a
    proof there; the proof of Theorem 7 with theta = 1, the squared loss's, has ``(1 - decay s) / (2 (1 + s))`` in its
    place, which is smaller if ``decay < 1 / (2 + s)``.

    Examples
    --------
    >>> from mercerless.theory import hyper_ridge_exponent
    >>> round(hyper_ridge_exponent(1.0, 1e-9, 0.5), 6)
    0.25
    """
    r = approximation
    s = capacity
    a = decay
    _check_parameters(r, s, a)
    limit = (1 + s) / (s * (2 + s))
    _require(a < limit, f"decay < (1 + s) / (s (2 + s)) = {limit:.4g}, got {a}")
    return float(min(a * r / 2, 1 / (2 + s) - a * s / (1 + s)))


class LabRate(NamedTuple):
    """The rates of Theorem 5 for locally adaptive bandwidths.

    Attributes
    ----------
    error : float
        The squared norm of the error falls like ``n**-error``.
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

    Notes
    -----
    The error is that of the squared norm ``||f - f_rho||^2``, the excess risk which the proof bounds; the theorem is
    printed without the square.

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


def effective_dimension(K: ArrayLike, alpha: float) -> float:
    """The effective dimension of a kernel on a sample: the degrees of freedom of ridge regression with this penalty.

    Its growth ``alpha**-s`` as alpha falls is the capacity s of the exponents. An indefinite matrix counts by ``|K|``,
    the kernel of the associated Hilbert space.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix of a sample.
    alpha : float
        The penalty.

    Returns
    -------
    float
        ``trace(|K| (|K| + n alpha)^-1)``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import effective_dimension
    >>> effective_dimension(np.eye(4), 0.25)
    2.0
    """
    check_number("alpha", alpha)
    sizes = np.abs(eigvalsh(check_symmetric(K)))
    return float(np.sum(sizes / (sizes + len(sizes) * alpha)))


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
    check_number("radius", radius, zero=True)
    K = check_symmetric(K)
    return float(radius * np.sqrt(np.abs(eigvalsh(K)).sum()) / len(K))  # the trace of |K|


def krein_sample_size(
    K: ArrayLike, epsilon: float, delta: float, *, radius: float = 1.0, largest_target: float = 1.0
) -> int:
    """Rows after which no function of a ball has a test error far from its training error (Theorem 4).

    With at least this many rows, ``|training error - test error| < epsilon`` holds with probability ``1 - delta`` for
    the mean squared errors of all f with ``||f+||^2 + ||f-||^2 <= radius^2`` at once.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix of a sample, for the mean and the largest entry of the diagonal of ``|K|``, which stand
        for those of the associated Hilbert space's kernel.
    epsilon : float
        The difference, positive.
    delta : float
        The probability that it is exceeded, in (0, 1).
    radius : float, default=1.0
        Radius R of the ball.
    largest_target : float, default=1.0
        Bound M on the size of the targets.

    Returns
    -------
    int
        The number of rows.

    Notes
    -----
    ``((4 b R sqrt(mean) + b^2 sqrt(log(2 / delta) / 2)) / epsilon)^2`` with ``b = M + R sqrt(largest)``. The theorem
    states the order ``max(complexity^2, log(1 / delta)) / epsilon^2`` without its constant. This has one: the
    complexity of the ball is at most ``R sqrt(mean / n)`` (`rademacher_bound`), that of its squared losses 2 b times
    as much (Talagrand's contraction, as ``|f - y| <= b``), symmetrization doubles it, and McDiarmid's inequality adds
    ``b^2 sqrt(log(2 / delta) / (2 n))``.

    References
    ----------
    D. Oglic and T. Gaertner, "Learning in reproducing kernel Krein spaces", ICML 2018, Theorem 4; P. Bartlett and
    S. Mendelson, "Rademacher and Gaussian complexities", Journal of Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from mercerless.theory import krein_sample_size
    >>> krein_sample_size([[0.5, 0.1], [0.1, 0.5]], epsilon=0.5, delta=0.05)
    309
    """
    check_number("epsilon", epsilon)
    check_number("radius", radius)
    check_number("largest_target", largest_target)
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1), got {delta}.")
    spectrum = decompose(K)
    diagonal = np.einsum("ij,j,ij->i", spectrum.vectors, np.abs(spectrum.values), spectrum.vectors)
    largest_residual = largest_target + radius * np.sqrt(diagonal.max())
    complexity = 4 * largest_residual * radius * np.sqrt(diagonal.mean())
    deviation = largest_residual**2 * np.sqrt(np.log(2 / delta) / 2)
    return int(np.ceil(((complexity + deviation) / epsilon) ** 2))


class EigenvalueGrowth(NamedTuple):
    """How the extreme eigenvalues of a kernel matrix grow with the sample: Assumption 4 of Liu et al.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of rows.
    largest, smallest : ndarray of shape (n_sizes, n_repeats)
        The extreme eigenvalues of random subsets of the rows.
    positive : float
        The exponent eta1 of the largest; NaN if it is not positive.
    negative : float
        The exponent eta2 of minus the smallest; NaN if it is not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.theory import eigenvalue_growth
    >>> round(eigenvalue_growth(np.ones((40, 40)), random_state=0).positive, 3)
    1.0
    """

    sizes: NDArray
    largest: NDArray
    smallest: NDArray
    positive: float
    negative: float

    @property
    def eta(self) -> float:
        """The smaller exponent, the `growth` of `krein_exponent`; NaN if the matrix is definite."""
        return float(np.minimum(self.positive, self.negative))


def eigenvalue_growth(
    K: ArrayLike, sizes: ArrayLike | None = None, *, n_repeats: int = 10, random_state: Any = None
) -> EigenvalueGrowth:
    """Estimate eta of Assumption 4: exponents of the extreme eigenvalues of random subsets of the rows.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix of a sample.
    sizes : array-like of int or None, default=None
        At least two numbers of rows; None: an eighth, a quarter, a half and all of them.
    n_repeats : int, default=10
        Random subsets of each size.
    random_state : int, RandomState or None, default=None
        The subsets.

    Returns
    -------
    EigenvalueGrowth
        The eigenvalues and the exponents of ``constant * size**eta``, fitted to the means of the repeats by least
        squares of logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Log
    >>> from mercerless.theory import eigenvalue_growth
    >>> X = np.random.default_rng(0).uniform(size=(120, 3))
    >>> growth = eigenvalue_growth(Log()(X), random_state=0)
    >>> round(growth.negative, 1)
    1.0
    """
    check_number("n_repeats", n_repeats, whole=True)
    K = check_symmetric(K)
    n = len(K)
    if sizes is None:
        sizes = np.maximum(1, np.array([n // 8, n // 4, n // 2, n]))
    sizes = np.unique(np.asarray(sizes, dtype=int))
    if len(sizes) < 2 or sizes.max() > n or sizes.min() < 1:
        raise ValueError(
            f"sizes must be at least two numbers between 1 and the {n} rows, got {sizes.tolist()}."
        )
    random = check_random_state(random_state)
    extremes = np.empty((2, len(sizes), n_repeats))
    for i, j in np.ndindex(extremes.shape[1:]):
        rows = random.permutation(n)[: sizes[i]]
        extremes[:, i, j] = eigvalsh(K[np.ix_(rows, rows)])[[0, -1]]
    smallest, largest = extremes
    noise = 1e-10 * np.abs(extremes).max(axis=0).mean(axis=1)
    positive = _growth_exponent(sizes, largest.mean(axis=1), noise)
    negative = _growth_exponent(sizes, -smallest.mean(axis=1), noise)
    return EigenvalueGrowth(sizes, largest, smallest, positive, negative)


def _growth_exponent(sizes: NDArray, values: NDArray, noise: NDArray) -> float:
    """The slope of logarithms; NaN if a value is not above rounding."""
    if not np.all(values > noise):
        return np.nan
    return float(linregress(np.log(sizes), np.log(values)).slope)


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
