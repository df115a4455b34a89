"""Independent routes to the Krein problems: dense formulas, random search, a nonsymmetric eigenproblem."""

import numpy as np


def sphere_objective(penalty, target, u):
    """sum(p u^2) - 2 t'u, which on a sphere differs from the full objective by a constant."""
    return np.sum(penalty * u**2, axis=-1) - 2 * np.sum(target * u, axis=-1)


def ball_objective(penalty, target, u):
    return np.sum((u - target) ** 2, axis=-1) + np.sum(penalty * u**2, axis=-1)


def brute_force(objective, penalty, target, radius, ball, rng, starts=400, steps=4000):
    """Least value over random feasible points, each improved by projected gradient descent."""
    k = len(target)
    u = rng.standard_normal((starts, k))
    u *= radius / np.linalg.norm(u, axis=1, keepdims=True)
    if ball:
        u *= rng.uniform(size=(starts, 1)) ** (1 / k)
    step = 0.4 / (np.abs(penalty).max() + 1)
    for _ in range(steps):
        gradient = (penalty + (1.0 if ball else 0.0)) * u - target
        u = u - step * gradient
        norm = np.linalg.norm(u, axis=1, keepdims=True)
        u = u * np.where(~np.full(norm.shape, ball) | (norm > radius), radius / norm, 1.0)
    return objective(penalty, target, u).min()


def gander_multiplier(penalty, target, radius):
    """Smallest real eigenvalue of the block matrix of Gander, Golub and von Matt (1989)."""
    C = np.diag(penalty)
    block = np.block([[C, -np.eye(len(C))], [-np.outer(target, target) / radius**2, C]])
    values = np.linalg.eigvals(block)
    return values[np.abs(values.imag) < 1e-7 * (1 + np.abs(values.real))].real.min()


def dense_two_penalties(K, y, alpha_positive, alpha_negative):
    """Training predictions of mean squared error + alpha+ |f+|^2 + alpha- |f-|^2 by an explicit linear system."""
    n = len(y)
    H = np.eye(n) - 1 / n
    Kc = H @ K @ H
    s, V = np.linalg.eigh(Kc)
    used = np.abs(s) > 1e-12 * np.abs(s).max()
    penalty = (
        V[:, used] * np.where(s[used] > 0, alpha_positive, alpha_negative) / np.abs(s[used])
    ) @ V[:, used].T
    inside = V[:, used] @ V[:, used].T
    # minimize |u - yc|^2 + n u' penalty u over u in the range
    u = np.linalg.lstsq(inside + n * penalty, inside @ (y - y.mean()), rcond=1e-13)[0]
    return y.mean() + u


def repeat_rows(X, y, weight):
    index = np.repeat(np.arange(len(y)), weight)
    return X[index], y[index]
