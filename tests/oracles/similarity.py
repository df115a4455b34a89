"""Independent routes for the similarity average: dense formulas, loops and general-purpose optimizers."""

import numpy as np
from scipy.optimize import linprog, minimize, minimize_scalar
from scipy.special import log_softmax


def spectral_ridge(K, Y, family, penalty, K_new):
    """Center, transform the spectrum, form the new rows' transformed similarities, and solve the ridge system."""
    n = len(K)
    H = np.eye(n) - 1.0 / n
    centered = H @ K @ H
    s, V = np.linalg.eigh(centered)
    keep = np.abs(s) > 1e-8 * np.abs(s).max()
    s, V = s[keep], V[:, keep]
    t = {"clip": np.maximum(s, 0.0), "flip": np.abs(s), "square": s**2}[family]
    transformed = V @ np.diag(t) @ V.T
    rows = (K_new - K.mean(axis=0)) @ H @ V @ np.diag(t / s) @ V.T
    if t.max() <= 0.0:
        return np.tile(Y.mean(axis=0), (len(K_new), 1))
    return Y.mean(axis=0) + rows @ np.linalg.solve(
        transformed + penalty * t.max() * np.eye(n), Y - Y.mean(axis=0)
    )


def feature_ridge(F, Y, penalty, F_new, standardize):
    """Primal ridge regression on centered (standardized) columns."""
    mean = F.mean(axis=0)
    scale = F.std(axis=0) if standardize else np.ones(F.shape[1])
    A, B = (F - mean) / scale, (F_new - mean) / scale
    strength = penalty * np.linalg.norm(A @ A.T)
    return Y.mean(axis=0) + B @ np.linalg.solve(
        A.T @ A + strength * np.eye(F.shape[1]), A.T @ (Y - Y.mean(axis=0))
    )


def neighbor_mean(distances, Y, k):
    """Sort every row; without ties this is what k nearest neighbors means."""
    means = np.array([Y[np.argsort(row)[:k]].mean(axis=0) for row in distances])
    nearest = np.array([Y[np.argmin(row)] for row in distances])
    return (means + 1e-3 * nearest) / 1.001


def calibration_value(theta, scores, onehot, weight, slope_precision=0.05, offset_precision=0.5):
    """The objective of the calibration for one setting."""
    repeated = weight / weight.sum() / scores.shape[1]  # weights count like repeated items
    mean = np.sum(repeated[:, None] * scores)
    inputs = (scores - mean) / np.sqrt(np.sum(repeated[:, None] * (scores - mean) ** 2))
    losses = -(log_softmax(theta[0] * inputs + theta[1:], axis=1) * onehot).sum(axis=1)
    prior = slope_precision * (theta[0] - 1.0) ** 2 + offset_precision * np.sum(theta[1:] ** 2)
    return weight @ losses + 0.5 * prior


def calibration(scores, onehot, weight):
    """The minimizer by a general bounded optimizer."""
    start = np.concatenate([[1.0], np.zeros(onehot.shape[1])])
    bounds = [(0.0, None)] + [(None, None)] * onehot.shape[1]
    result = minimize(
        calibration_value,
        start,
        (scores, onehot, weight),
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000, "maxfun": 100_000},
    )
    return result.x, result.fun


def profile_ridge(D, Y, width, penalty, D_new):
    """Kernel ridge on Gaussians of standardized rows of distances, the kernel centered by a projection."""
    n = len(D)
    profiles, new = ((d - D.mean(axis=0)) / D.std(axis=0) for d in (D, D_new))
    squares = ((profiles[:, None] - profiles) ** 2).sum(axis=2)
    unit = np.median([squares[i, j] for i in range(n) for j in range(i)])
    K = np.exp(-width * squares / unit)
    k = np.exp(-width * ((new[:, None] - profiles) ** 2).sum(axis=2) / unit)
    H = np.eye(n) - 1.0 / n
    centered = H @ K @ H
    dual = np.linalg.solve(
        centered + penalty * np.linalg.norm(centered) * np.eye(n), Y - Y.mean(axis=0)
    )
    return Y.mean(axis=0) + (k - K.mean(axis=0)) @ H @ dual


def class_distance(distances, labels, count, n_classes):
    """Sort the distances to every class; a class without items is as far as the farthest item."""
    means = np.empty((len(distances), n_classes))
    for i, row in enumerate(distances):
        for label in range(n_classes):
            nearest = sorted(row[labels == label])[:count]
            means[i, label] = np.mean(nearest) if nearest else row.max()
    return means


def temperature(proba, labels, weight):
    """A general minimizer for the power of probabilities."""

    def value(b):
        losses = -log_softmax(b * np.log(proba), axis=1)[np.arange(len(proba)), labels]
        return weight @ losses + 1.5 * (b - 1.0) ** 2

    return minimize_scalar(value, bounds=(0.0, 50.0), method="bounded", options={"xatol": 1e-10}).x


def weights_value(v, predictions, Y, weight, penalty):
    """The objective of the average's weights for probabilities."""
    residual = Y - np.tensordot(v, predictions, 1)
    return weight @ (residual**2).sum(axis=1) + penalty * weight.sum() * np.sum(
        (v - 1.0 / len(v)) ** 2
    )


def sparse_machine_dual(K, y, C):
    """The optimal value of the 1-norm machine from its dual linear program."""
    signed = y[:, None] * K
    result = linprog(
        -np.ones(len(y)),
        A_ub=np.vstack([signed.T, -signed.T]),
        b_ub=np.ones(2 * K.shape[1]),
        A_eq=y[None, :],
        b_eq=[0.0],
        bounds=[(0.0, price) for price in np.broadcast_to(C, len(y))],
        method="highs-ipm",
    )
    return -result.fun


def sparse_machine_value(coef, intercept, K, y, C):
    """The objective of the 1-norm machine."""
    return np.abs(coef).sum() + np.sum(C * np.maximum(0.0, 1.0 - y * (K @ coef + intercept)))
