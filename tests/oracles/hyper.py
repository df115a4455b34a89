"""Hyper-kernels, their expansions and their regressions from the definitions, entry by entry."""

import numpy as np


def gaussian_hyper(a, b, c, d, s2, sh2):
    """The Gaussian hyper-kernel's definition with the densities' constants dropped."""

    def g(x, y, v):
        return np.exp(-np.sum((x - y) ** 2) / (2 * v))

    return g(a, b, s2) * g(c, d, s2) * g((a + b) / 2, (c + d) / 2, s2 + sh2)


def wishart_hyper(a, b, c, d, D, degrees):
    """(det D / det(D + S))^((degrees + 3) / 2) with the d x d scatter matrix of the four points."""
    points = np.array([a, b, c, d])
    centered = points - points.mean(axis=0)
    S = centered.T @ centered
    return np.exp((degrees + 3) / 2 * (np.linalg.slogdet(D)[1] - np.linalg.slogdet(D + S)[1]))


def all_pairs(X):
    """The m^2 ordered pairs, row by row."""
    return [(a, b) for a in X for b in X]


def matrix(kappa, pairs, others):
    return np.array([[kappa(*p, *q) for q in others] for p in pairs])


def full_ridge(K, Y, alpha):
    """Eq. (6): all m^2 ordered pairs."""
    return np.linalg.solve(K + alpha * Y.size * np.eye(Y.size), Y.ravel())


def landmark_ridge(B, gram, Y, alpha):
    """Eq. (9) on all ordered pairs, with sections B (m^2, P)."""
    return np.linalg.solve(B.T @ B + alpha * Y.size * gram, B.T @ Y.ravel())


def tensor_hyper(G1, G2, G3, G4):
    """kappa((a, b), (c, d)) = (G(a, c) G(b, d) + G(a, d) G(b, c)) / 2 on all pairs: G1 = G(a, c), G2 = G(b, d),
    G3 = G(a, d), G4 = G(b, c)."""
    n, m = G1.shape[0], G2.shape[0]
    K = np.einsum("ac,bd->abcd", G1, G2) + np.einsum("ad,bc->abcd", G3, G4)
    return (K / 2).reshape(n * m, -1)


def universal_kriging(K, F, y, alpha, rcond=1e-9):
    """Coefficients c and trend beta of min (y - K c - F beta)^2 + alpha c.K.c, trend unpenalized."""
    values, vectors = np.linalg.eigh(K)
    # antisymmetric functions of a pair are in the null space; they are orthogonal to all data
    inverse = np.where(
        values > rcond * values[-1], 1 / (np.maximum(values, 0) + alpha + 1e-300), 0.0
    )
    if alpha > 0:
        inverse = 1 / (np.maximum(values, 0) + alpha)
    Ki = (vectors * inverse) @ vectors.T
    beta = np.linalg.solve(F.T @ Ki @ F, F.T @ Ki @ y) if F.shape[1] else np.zeros(0)
    return Ki @ (y - F @ beta), beta


def flipped_matrices(K, K_new):
    """|K|, and new rows multiplied by sign(K), both by the matrix sign function."""
    values, vectors = np.linalg.eigh(K)
    sign = vectors @ np.diag(np.sign(values)) @ vectors.T
    flipped = K @ sign
    return (flipped + flipped.T) / 2, K_new @ sign
