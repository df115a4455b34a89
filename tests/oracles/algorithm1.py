"""Algorithm 1 of the LAB paper in a few lines, gradients by central differences, nothing of mercerless."""

import numpy as np


def scaled(A):
    """Columns in [-1, 1]."""
    low, high = A.min(axis=0), A.max(axis=0)
    return 2 * (A - low) / (high - low) - 1


def kernel(T, S, theta):
    """Equation (4): one column per support point, with its own theta."""
    return np.exp(-np.sum((theta * (T[:, None] - S)) ** 2, axis=2))


def interpolant(T, X, y, support, theta, ridge=1e-5):
    """Equation (11) with the ridge of section 5.1."""
    S = X[support]
    alpha = np.linalg.solve(kernel(S, S, theta) + ridge * np.eye(len(S)), y[support])
    return kernel(T, S, theta) @ alpha


def gradient(X, y, support, batch, theta, h=1e-5):
    """Of the sum of squares in line 8, by central differences."""
    G = np.empty_like(theta)
    for index in np.ndindex(theta.shape):
        ends = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[index] += sign * h
            ends.append(np.sum((interpolant(X[batch], X, y, support, moved) - y[batch]) ** 2))
        G[index] = (ends[0] - ends[1]) / (2 * h)
    return G


def adam(rate):
    m, v, t = 0.0, 0.0, 0

    def step(G):
        nonlocal m, v, t
        t += 1
        m, v = 0.9 * m + 0.1 * G, 0.999 * v + 0.001 * G * G
        return rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)

    return step


def sgd(rate):
    return lambda G: rate * G


def algorithm1(X, y, start, sigma, new_step, n_steps, k, bound, most):
    """Support and theta, for X and y in [-1, 1]; every batch is all rows that are not in the support."""
    support = np.argsort(y, kind="stable")[np.round(np.linspace(0, len(y) - 1, start)).astype(int)]
    theta = np.full((start, X.shape[1]), np.sqrt(sigma / X.shape[1]))
    while True:
        rest = np.setdiff1d(np.arange(len(y)), support)
        step = new_step()
        for _ in range(n_steps):
            theta = theta - step(gradient(X, y, support, rest, theta))
        errors = (interpolant(X[rest], X, y, support, theta) - y[rest]) ** 2
        if errors.max() <= bound or len(support) >= most:
            return support, theta
        new = rest[np.argsort(-errors, kind="stable")[:k]]
        theta = np.vstack([theta, np.full((len(new), X.shape[1]), theta.mean())])
        support = np.concatenate([support, new])
