"""The papers' exponents in the form of their proofs, not of their theorems."""

import numpy as np


def krein_from_the_proof(beta, s, gamma, eta, epsilon):
    """Liu et al., (B.3) and (B.4); eta None or >= 1 leaves its terms out."""
    candidates = [gamma * (1 - beta) / 2, (gamma * (1 + s) - 1) * (2 + s) + epsilon]
    rates = [gamma * beta]
    if eta is not None and eta < 1:
        candidates.append((1 - eta) / 2)
        rates.append(gamma + eta - 1)
    return min([*rates, (1 - s * max(candidates)) / (1 + s)])


def lab_from_the_proof(beta, xi):
    """He et al., proof of Theorem 5: q = 1 - xi and tau give error, decay of the penalty and growth."""
    q, tau = 1 - xi, beta / 4 / (xi + beta - xi * beta)
    error = (1 - q * (1 - beta)) * tau - (1 - q)
    decay = 2 * tau / (2 - q)
    return error, decay, decay - error


def hyper_svr_of_a_smooth_kernel(r, theta, alpha):
    """The remark after Theorem 7: the limit s -> 0."""
    return min(alpha * r, 1 / (2 - theta) + (r - 1) / (2 - theta) * alpha)


def constrained_eigenvalue(K, y, penalty, radius):
    """Liu et al., (4.4) and (4.8): the smallest real eigenvalue of the non-symmetric matrix, for invertible K."""
    m = len(K)
    block = penalty * np.linalg.inv(K)
    corner = -np.outer(y, y) / (m**3 * radius**2)
    values = np.linalg.eigvals(np.block([[block, -np.eye(m)], [corner, block]]))
    return values[np.abs(values.imag) < 1e-7 * np.abs(values).max()].real.min()


def bias_of_ridge(penalty, r):
    """The norm of the bias of ridge regression without noise, for a target with ``D(penalty) ~ penalty**r``.

    Eigenvalues e of the integral operator are dense on a logarithmic scale, the target has the squared coefficients
    e**r there: D = sum(penalty / (e + penalty) e**r), and bias^2 = sum((penalty / (e + penalty))**2 e**r).
    """
    e = np.logspace(-1, -30, 8000)
    if r == 1:
        square = e / np.log(1 / e) ** 1.1  # so that D is of the order of the penalty
    else:
        square = e**r
    return np.sqrt(np.sum((penalty / (e + penalty)) ** 2 * square))


def largest_quadratic(A, b, c, radius=1.0):
    """``max |g' A g + b' g + c|`` over the ball of radius `radius`, by a fine walk over all directions of 4 dimensions.

    Random directions, and for each the best length in closed form; a lower bound that is close for a small ball.
    """
    directions = np.random.default_rng(0).normal(size=(4000, len(b)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    quadratic = np.einsum("ij,jk,ik->i", directions, A, directions)
    linear = directions @ b
    with np.errstate(divide="ignore", invalid="ignore"):
        stationary = np.nan_to_num(-linear / (2 * quadratic))
    lengths = np.stack([np.clip(stationary, -radius, radius), np.full(len(linear), radius)])
    return np.abs(quadratic * lengths**2 + linear * lengths + c).max()
