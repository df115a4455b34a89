"""Independent formulas for the LAB tests: direct kernels, dense solves, automatic derivatives."""

import numpy as np


def local_kernel(form, X, S, H):
    """``k(x_i, s_j)`` from the tensor of differences."""
    scaled = (X[:, None, :] - S[None, :, :]) / np.broadcast_to(H, S.shape)[None]
    if form == "gaussian":
        return np.exp(-0.5 * np.sum(scaled**2, axis=2))
    if form == "exponential":
        return np.exp(-np.sqrt(np.sum(scaled**2, axis=2)))
    return np.exp(-np.sum(np.abs(scaled), axis=2))


def evidence(K, F, Y, ridge, weight=None):
    """Minus twice the log density of a Gaussian with covariance ``I + Phi Phi^T / (ridge N)``, per row."""
    Phi = np.hstack([K, F])
    if weight is not None:
        root = np.sqrt(weight)[:, None]
        Phi, Y = Phi * root, Y * root
    n = len(Phi)
    C = np.eye(n) + Phi @ Phi.T / (ridge * n)
    return np.log(np.trace(Y.T @ np.linalg.solve(C, Y)) / n) + np.linalg.slogdet(C)[1] / n


def torch_gradient(name, form, X, S, H, F, Y, ridge, support=None):
    """Gradient of an objective in the log bandwidths (and the log ridge) by automatic differentiation."""
    import torch

    t = lambda a: torch.tensor(np.asarray(a, dtype=float))  # noqa: E731
    z = t(np.log(H)).requires_grad_()
    r = torch.tensor(float(np.log(ridge)), dtype=torch.float64, requires_grad=True)
    scaled = (t(X)[:, None] - t(S)[None]) / torch.exp(z)[None]
    if form == "gaussian":
        K = torch.exp(-0.5 * (scaled**2).sum(2))
    elif form == "exponential":
        K = torch.exp(-torch.sqrt((scaled**2).sum(2) + 1e-300))
    else:
        K = torch.exp(-scaled.abs().sum(2))
    Y, lam, n = t(Y), torch.exp(r), len(X)
    if name == "interpolation":
        rest = np.setdiff1d(np.arange(n), support)
        coef = torch.linalg.solve(
            K[support] + lam * torch.eye(len(support), dtype=torch.float64), Y[support]
        )
        value = ((K[rest] @ coef - Y[rest]) ** 2).sum() / len(rest)
    else:
        Phi = torch.hstack([K, t(F)])
        A = Phi.T @ Phi + lam * n * torch.eye(Phi.shape[1], dtype=torch.float64)
        coef = torch.linalg.solve(A, Phi.T @ Y)
        Q = ((Phi @ coef - Y) ** 2).sum() / n + lam * (coef**2).sum()
        value = Q
        if name == "evidence":
            value = torch.log(Q) + (torch.logdet(A) - Phi.shape[1] * torch.log(lam * n)) / n
    value.backward()
    return float(value.detach()), z.grad.numpy().ravel(), float(r.grad)


def asymmetric_ridge_loo(K, Y, alpha, intercept=False):
    """Leave-one-out predictions of both regressors by solving every reduced system, the intercept eliminated."""
    n = len(K)
    predictions = np.zeros((2, *Y.shape))
    for i in range(n):
        keep = np.delete(np.arange(n), i)
        for side, M in enumerate((K, K.T)):
            A = M[np.ix_(keep, keep)] + alpha * np.eye(n - 1)
            coef, flat = np.linalg.solve(A, Y[keep]), np.linalg.solve(A, np.ones(n - 1))
            shift = coef.sum(axis=0) / flat.sum() if intercept else np.zeros(Y.shape[1])
            predictions[side, i] = M[i, keep] @ (coef - np.outer(flat, shift)) + shift
    return predictions


def ask_ls(K, y, gamma):
    """The dual system of AsK-LS (He et al., 2023) for labels y of +-1: b1, b2, alpha and beta.

    ``f1(x) = k(x, X) (beta y) + b1`` and ``f2(x) = k(X, x)^T (alpha y) + b2``.
    """
    n = len(K)
    H = K * np.outer(y, y)
    zero = np.zeros(n)
    A = np.block(
        [
            [np.zeros((1, 2)), y[None], zero[None]],
            [np.zeros((1, 2)), zero[None], y[None]],
            [y[:, None], zero[:, None], np.eye(n) / gamma, H],
            [zero[:, None], y[:, None], H.T, np.eye(n) / gamma],
        ]
    )
    solution = np.linalg.solve(A, np.r_[0, 0, np.ones(2 * n)])
    return solution[0], solution[1], solution[2 : 2 + n], solution[2 + n :]


def coupled_ridge_loo(K, Y, alpha, intercept=False):
    """Leave-one-out predictions of both coupled regressors by solving every reduced system by least squares."""
    n = len(K)
    predictions = np.zeros((2, *Y.shape))
    for i in range(n):
        keep = np.delete(np.arange(n), i)
        M, m = K[np.ix_(keep, keep)], n - 1
        one, none = np.ones((m, 1)), np.zeros((m, 1))
        A = np.block(
            [
                [M, alpha * np.eye(m), one, none],
                [alpha * np.eye(m), M.T, none, one],
                [none.T, one.T, np.zeros((1, 2))],
                [one.T, none.T, np.zeros((1, 2))],
            ]
        )
        b = np.vstack([Y[keep], Y[keep], np.zeros((2, Y.shape[1]))])
        if not intercept:
            A, b = A[: 2 * m, : 2 * m], b[: 2 * m]
        z = np.linalg.solve(A, b)
        shifts = z[2 * m :] if intercept else np.zeros((2, Y.shape[1]))
        predictions[0, i] = K[i, keep] @ z[:m] + shifts[0]
        predictions[1, i] = K[keep, i] @ z[m : 2 * m] + shifts[1]
    return predictions
