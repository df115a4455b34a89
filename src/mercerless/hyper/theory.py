"""Results of the hyper-kernel paper: constants of its bounds, and its error decomposition on a finite population."""

from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.validation import check_number, check_real, check_symmetric
from mercerless.hyper.solver import HyperSolution, ridge_exact, svr_exact
from mercerless.kernels.hyper import HyperKernel, pair_index, take_pairs


def hyper_concentration(
    m: int, distance: float, *, variance: float = 1.0, bound: float = 1.0, theta: float = 0.0
) -> float:
    """The probability of Lemma 11 that the mean over pairs is far above its expectation, equation (25).

    Parameters
    ----------
    m : int
        The number of items, whose ``m (m - 1)`` ordered pairs are averaged.
    distance : float
        The lemma's epsilon, positive: the mean exceeds ``E xi`` by ``epsilon**(1 - theta / 2) sqrt((E xi)**theta +
        epsilon**theta)``.
    variance : float, default=1.0
        The lemma's c1: ``E xi^2 <= c1 (E xi)**theta``.
    bound : float, default=1.0
        The lemma's T, a bound on ``|xi - E xi|``.
    theta : float, default=0.0
        The exponent of the variance condition, in [0, 1].

    Returns
    -------
    float
        ``exp(-(m - 1) epsilon**(2 - theta) / (4 c1 + 4/3 T epsilon**(1 - theta)))``.

    See Also
    --------
    hyper_fixed_error : Proposition 13, which rests on it.

    Examples
    --------
    >>> from mercerless.theory import hyper_concentration
    >>> round(hyper_concentration(101, 0.3), 4)
    0.1293
    """
    check_number("m", m, whole=True)
    check_number("distance", distance)
    check_number("variance", variance, zero=True)
    check_number("bound", bound)
    _check_exponent(theta)
    spread = 4.0 * variance + 4.0 / 3.0 * bound * distance ** (1.0 - theta)
    return float(np.exp(-(m - 1) * distance ** (2.0 - theta) / spread))


class NoiseConstants(NamedTuple):
    """The constants that a noise condition gives.

    Attributes
    ----------
    theta : float
        The exponent (17) of the variance condition.
    C_q : float
        That of Proposition 9, from excess error to distance.
    C_theta : float
        That of Lemma 12, from excess error to variance.

    Examples
    --------
    >>> from mercerless.theory import hyper_noise_constants
    >>> hyper_noise_constants(2.0).theta
    1.0
    """

    theta: float
    C_q: float
    C_theta: float


def hyper_noise_constants(q: float, p: float = np.inf, norm: float = 2.0) -> NoiseConstants:
    """The constants of equation (17), Proposition 9 and Lemma 12 for a median of p-average type q.

    Parameters
    ----------
    q : float
        The type, above 1.
    p : float, default=inf
        The average, positive.
    norm : float, default=2.0
        The norm in L^p of ``1 / (b a**(q - 1))``, from Definition 4. It is at least 2: both sides of a median have a
        probability of at least ``b a**(q - 1)``, and together at most 1.

    Returns
    -------
    NoiseConstants
        ``theta = min(2 / q, p / (p + 1))``, ``C_q = 2**(1 - 1/q) q**(1/q) norm**(1/q)`` and ``C_theta = 2**(2 - theta)
        q**theta norm**theta``.

    See Also
    --------
    hyper_svr_exponent : The rate that they lead to.

    Notes
    -----
    Proposition 9 bounds the norm in ``L^(p q / (p + 1))``; it is printed as that in L2. Lemma 12 is printed without the
    minus one in the exponent of the norm, which Proposition 9 has.

    Examples
    --------
    >>> from mercerless.theory import hyper_noise_constants
    >>> hyper_noise_constants(2.0, norm=3.0).C_theta
    12.0
    """
    if not (q > 1 and p > 0):
        raise ValueError(f"the theorem needs q > 1 and p > 0, got {q} and {p}.")
    if not norm >= 2:
        raise ValueError(f"norm must be at least 2, since no median allows less, got {norm}.")
    theta = min(2.0 / q, 1.0 if np.isinf(p) else p / (p + 1.0))
    of_distance = 2.0 ** (1.0 - 1.0 / q) * (q * norm) ** (1.0 / q)
    of_variance = 2.0 ** (2.0 - theta) * (q * norm) ** theta
    return NoiseConstants(float(theta), float(of_distance), float(of_variance))


def hyper_fixed_error(
    m: int,
    alpha: float,
    regularization_error: float,
    *,
    theta: float,
    C_theta: float,
    bound: float = 1.0,
    target_bound: float = 1.0,
    size: float = 1.0,
    delta: float = 0.05,
) -> float:
    """The bound (28) of Proposition 13 on the sample error S2 of the fixed kernel ``k_lambda``.

    Parameters
    ----------
    m : int
        The number of items.
    alpha : float
        The paper's lambda.
    regularization_error : float
        D(lambda), see `hyper_error_decomposition`.
    theta, C_theta : float
        The variance condition, see `hyper_noise_constants`.
    bound, target_bound : float, default=1.0
        The paper's B, at which kernels are clipped, and M*, the largest value of the target.
    size : float, default=1.0
        The paper's G, the root of the largest ``hyper_kernel(pair, pair)``; 1 for hyper-kernels of this library.
    delta : float, default=0.05
        The bound holds with probability ``1 - delta / 4``.

    Returns
    -------
    float
        ``D / 2 + 16 (C_theta + 1) (B + M* + G sqrt(D / lambda)) log(4 / delta) m**(-1 / (2 - theta)) + (G sqrt(D /
        lambda) + M*) / m``.

    See Also
    --------
    hyper_uniform_error : Proposition 14, for all kernels of a ball.

    Examples
    --------
    >>> from mercerless.theory import hyper_fixed_error
    >>> few, many = (hyper_fixed_error(m, 0.1, 0.1, theta=1.0, C_theta=4.0) for m in (100, 10_000))
    >>> round(few, 2), round(many, 2)
    (10.59, 0.16)
    """
    check_number("m", m, whole=True)
    check_number("alpha", alpha)
    check_number("regularization_error", regularization_error, zero=True)
    _check_exponent(theta)
    _check_probability(delta)
    largest = size * np.sqrt(regularization_error / alpha)
    rate = np.log(4.0 / delta) * m ** (-1.0 / (2.0 - theta))
    middle = 16.0 * (C_theta + 1.0) * (bound + target_bound + largest) * rate
    return float(regularization_error / 2 + middle + (largest + target_bound) / m)


def hyper_uniform_error(
    m: int,
    radius: float,
    *,
    theta: float,
    C_theta: float,
    capacity: float,
    C_s: float = 1.0,
    bound: float = 1.0,
    target_bound: float = 1.0,
    delta: float = 0.05,
) -> float:
    """The epsilon* of Proposition 14: S1 is at most 20 of it, half the excess error, and ``(B + M*) / m``.

    Parameters
    ----------
    m : int
        The number of items.
    radius : float
        The paper's R, a bound of at least 1 on the norm of the learned kernel.
    theta, C_theta : float
        The variance condition, see `hyper_noise_constants`.
    capacity, C_s : float
        The covering numbers (16): ``log N <= C_s (1 / radius)**s``.
    bound, target_bound : float, default=1.0
        The paper's B and M*.
    delta : float, default=0.05
        The bound holds with probability ``1 - delta / 4``.

    Returns
    -------
    float
        ``16 (M* + B) (C_theta + 1) (log(4 / delta) m**(-1 / (2 - theta)) + C_s m**(-1 / (2 + s - theta)) R**(s / (1 +
        s)))``.

    See Also
    --------
    hyper_fixed_error : Proposition 13, for one kernel.

    Notes
    -----
    The statement of the proposition has a further factor ``R**s``, which its proof and (38) do not have; it is left
    out here.

    Examples
    --------
    >>> from mercerless.theory import hyper_uniform_error
    >>> round(hyper_uniform_error(10_000, 10.0, theta=1.0, C_theta=4.0, capacity=0.1), 3)
    0.116
    """
    check_number("m", m, whole=True)
    if not radius >= 1:
        raise ValueError(f"radius must be at least 1, got {radius}.")
    check_number("capacity", capacity)
    _check_exponent(theta)
    _check_probability(delta)
    factor = 16.0 * (target_bound + bound) * (C_theta + 1.0)
    of_confidence = np.log(4.0 / delta) * m ** (-1.0 / (2.0 - theta))
    of_capacity = C_s * m ** (-1.0 / (2.0 + capacity - theta))
    of_radius = radius ** (capacity / (1.0 + capacity))
    return float(factor * (of_confidence + of_capacity * of_radius))


def hyper_output_error(
    m: int, bound: float, moment: float = 1.0, c: float = 1.0, d: int = 1, delta: float = 0.05
) -> float:
    """The bound (30) on the cost of clipping the observed similarities at B.

    Parameters
    ----------
    m : int
        The number of items.
    bound : float
        The paper's B.
    moment, c : float, default=1.0
        M and c of the moment hypothesis (12): ``E |y|^l <= c l! M^l``.
    d : int, default=1
        Any natural number; a larger one pays for a larger B.
    delta : float, default=0.05
        The bound holds with probability ``1 - delta / 4``.

    Returns
    -------
    float
        ``c ((d + 1)! + 2**(d + 2) d**d) M**(d + 1) B**-d + 12 M 2**(d + 1) log(4 / delta) / m``.

    See Also
    --------
    hyper_error_decomposition : All terms on a population.

    Examples
    --------
    >>> from mercerless.theory import hyper_output_error
    >>> round(hyper_output_error(10_000, bound=100.0), 3)
    0.121
    """
    check_number("m", m, whole=True)
    check_number("bound", bound)
    check_number("d", d, whole=True)
    _check_probability(delta)
    tail = c * (factorial(d + 1) + 2.0 ** (d + 2) * float(d) ** d) * moment ** (d + 1) / bound**d
    return float(tail + 12.0 * moment * 2.0 ** (d + 1) / m * np.log(4.0 / delta))


def hyper_excess_constant(
    *,
    C_0: float,
    C_theta: float,
    C_s: float = 1.0,
    bound: float = 1.0,
    target_bound: float = 1.0,
    size: float = 1.0,
    moment: float = 1.0,
    c: float = 1.0,
) -> float:
    """The constant C of Proposition 15: the excess error is at most ``4 C log(4 / delta) m**-Theta`` and two tails.

    Parameters
    ----------
    C_0 : float
        That of (15): ``D(lambda) <= C_0 lambda**r``.
    C_theta : float
        The variance condition, see `hyper_noise_constants`.
    C_s : float, default=1.0
        That of the covering numbers (16).
    bound, target_bound, size : float, default=1.0
        The paper's B, M* and G.
    moment, c : float, default=1.0
        M and c of the moment hypothesis (12).

    Returns
    -------
    float
        The largest of ``3 C_0``, ``(C_theta + 1) (672 M* + 640 B)``, ``32 (C_theta + 1) G sqrt(C_0)``, ``2 G
        sqrt(C_0)`` and ``640 (C_theta + 1) (M* + B) C_s (3 c M + 4 M)``.

    See Also
    --------
    hyper_svr_exponent : The exponent Theta.

    Notes
    -----
    As printed. From Propositions 10, 13 and 14 to (38) a B gets lost in the bound on S2, so that 640 B should be 672 B,
    and a factor 2 in its last term. The excess error is at most
    ``2 (D + S2 + 20 epsilon* + (B + M*) / m + output error + epsilon)`` with the bounds of `hyper_fixed_error`,
    `hyper_uniform_error` and `hyper_output_error`.

    Examples
    --------
    >>> from mercerless.theory import hyper_excess_constant
    >>> hyper_excess_constant(C_0=1.0, C_theta=4.0)
    44800.0
    """
    root = size * np.sqrt(C_0)
    terms = [
        3.0 * C_0,
        (C_theta + 1.0) * (672.0 * target_bound + 640.0 * bound),
        32.0 * (C_theta + 1.0) * root,
        2.0 * root,
        640.0 * (C_theta + 1.0) * (target_bound + bound) * C_s * (3.0 * c * moment + 4.0 * moment),
    ]
    return float(max(terms))


class HyperErrors(NamedTuple):
    """The error decomposition of a kernel learned from a sample of a finite population (Proposition 10).

    ``excess + penalty <= regularization + learned + fixed + output + tube`` holds for every sample.

    Attributes
    ----------
    excess : float
        The excess error of the learned kernel over all pairs of the population.
    penalty : float
        ``lambda |k|^2`` of the learned kernel.
    regularization : float
        D(lambda), equation (14).
    learned : float
        S1: how much less the learned kernel errs on the sample than on the population.
    fixed : float
        S2: how much more the population's kernel ``k_lambda`` errs on the sample.
    output : float
        The output error, ``mean |clipped Y - Y|``; 0 without a bound.
    tube : float
        epsilon; 0 for the squared loss.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import GaussianHyper
    >>> from mercerless.theory import hyper_error_decomposition
    >>> X = np.linspace(0, 1, 12)[:, None]
    >>> K = np.exp(-np.abs(X - X.T))
    >>> found = hyper_error_decomposition(GaussianHyper(), X, K, np.arange(0, 12, 2), alpha=1e-3)
    >>> found.excess + found.penalty <= found.regularization + found.learned + found.fixed
    True
    """

    excess: float
    penalty: float
    regularization: float
    learned: float
    fixed: float
    output: float = 0.0
    tube: float = 0.0


def hyper_error_decomposition(
    hyper_kernel: HyperKernel,
    X: ArrayLike,
    K: ArrayLike,
    rows: ArrayLike,
    Y: ArrayLike | None = None,
    *,
    alpha: float,
    epsilon: float | None = None,
    bound: float | None = None,
) -> HyperErrors:
    """Every term of Proposition 10 on a population whose pairs are all known, for support vector or ridge regression.

    Parameters
    ----------
    hyper_kernel : HyperKernel
        A Gaussian or Wishart hyper-kernel.
    X : array-like of shape (N, n_features)
        The population, all items equally likely.
    K : array-like of shape (N, N)
        The target ``k_rho`` between them.
    rows : array-like of shape (m,)
        The items of the sample.
    Y : array-like of shape (m, m) or None, default=None
        The observations on the sample; None: the target without noise.
    alpha : float
        The paper's lambda.
    epsilon : float or None, default=None
        Half the width of the tube: errors are absolute ones and the kernel is that of (11), as in the proposition.
        None: the same for squared errors and the kernel of (10).
    bound : float or None, default=None
        The paper's B, at which the kernel and the observations are clipped, with an epsilon only. None: nowhere.

    Returns
    -------
    HyperErrors
        The terms. ``excess + penalty <= regularization + learned + fixed + output + tube`` holds for every sample.

    See Also
    --------
    mercerless.HyperRidge : The regression (10).
    mercerless.HyperSVR : The regression (11), with ``fit_intercept=False``.

    Notes
    -----
    Errors on the population are those against the target. With absolute errors, noise would change them by what depends
    on its distribution, which is not known here; the inequality holds as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import GaussianHyper
    >>> from mercerless.theory import hyper_error_decomposition
    >>> X = np.linspace(0, 1, 10)[:, None]
    >>> K = np.exp(-np.abs(X - X.T))
    >>> found = hyper_error_decomposition(GaussianHyper(), X, K, np.arange(10), alpha=1e-3)
    >>> bool(abs(found.learned) < 1e-12 and abs(found.fixed) < 1e-12)  # the sample is the population
    True
    """
    X = check_real(X, "X").astype(float, copy=False)
    K = check_symmetric(K, "K").astype(float, copy=False)
    rows = np.asarray(rows)
    block = np.ix_(rows, rows)
    observed = K[block]
    if Y is not None:
        observed = check_symmetric(Y, "Y").astype(float, copy=False)
    check_number("alpha", alpha)
    check_number("epsilon", epsilon, zero=True, none=True)
    check_number("bound", bound, none=True)
    if bound is not None and epsilon is None:
        raise ValueError("bound is for absolute errors; give epsilon as well.")

    error = _mean_square
    clip = np.inf
    tube_of_population = None
    if epsilon is not None:
        error = _mean_size
        tube_of_population = 0.0
        clip = np.inf if bound is None else bound
    of_sample = _Learned(hyper_kernel, X[rows], observed, alpha, epsilon)
    of_population = _Learned(hyper_kernel, X, K, alpha, tube_of_population)
    excess = error(np.clip(of_sample(X), -clip, clip) - K)
    bias = error(of_population(X) - K)

    noise = error(observed - K[block])
    of_learned = error(np.clip(of_sample(X[rows]), -clip, clip) - observed) - noise
    of_fixed = error(of_population(X[rows]) - observed) - noise
    return HyperErrors(
        excess=excess,
        penalty=alpha * of_sample.square_norm,
        regularization=bias + alpha * of_population.square_norm,
        learned=excess - of_learned,
        fixed=of_fixed - bias,
        output=_mean_size(np.clip(observed, -clip, clip) - observed),
        tube=epsilon or 0.0,
    )


class _Learned:
    """The solution of (10), or of (11) for an epsilon, on all pairs of some items, with its norm in the hyper-RKHS."""

    def __init__(
        self, hyper_kernel: HyperKernel, X: NDArray, Y: NDArray, alpha: float, epsilon: float | None
    ):
        first, second, weight = pair_index(len(X))
        self.hyper_kernel = hyper_kernel
        self.pairs = take_pairs(X, first, second)
        gram = hyper_kernel(self.pairs)
        y = Y[first, second]
        solution: HyperSolution
        if epsilon is None:
            solution = ridge_exact(gram, y, weight, alpha, False)
        else:
            C = 1.0 / (2.0 * alpha * float(weight.sum()))
            solution = svr_exact(gram, y, weight, C, epsilon, False, tol=1e-9)
        self.coef = solution.coef
        self.square_norm = float(self.coef @ gram @ self.coef)

    def __call__(self, X: NDArray) -> NDArray:
        first, second, _ = pair_index(len(X))
        values = self.hyper_kernel(take_pairs(X, first, second), self.pairs) @ self.coef
        K = np.empty((len(X), len(X)))
        K[first, second] = values
        K[second, first] = values
        return K


def _mean_square(A: NDArray) -> float:
    return float(np.mean(A**2))


def _mean_size(A: NDArray) -> float:
    return float(np.mean(np.abs(A)))


def _check_probability(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1), got {delta}.")


def _check_exponent(theta: float) -> None:
    if not 0 <= theta <= 1:
        raise ValueError(f"theta must be in [0, 1], got {theta}.")
