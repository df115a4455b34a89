"""Ridge regression with the tensor hyper-kernel and a pair trend: closed form, missing entries, leave-fold-out."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh, lstsq, solve_triangular

from mercerless.hyper.solver import conjugate_gradients, whiten

_TREND_RIDGE = 1e-12  # 1 / rho, relative to the trend's own normal matrix


class ItemBasis(NamedTuple):
    """The item kernel as ``vectors @ diag(values) @ vectors.T``, and the map that takes new items into it."""

    values: NDArray  # (rank,), not negative
    vectors: NDArray  # (n_items, rank), orthonormal
    projection: NDArray  # (n_landmarks, rank): G(z, landmarks) @ projection = G(z, items) @ vectors

    @property
    def complete(self) -> bool:
        """Whether no direction is left out."""
        return self.vectors.shape[0] == self.vectors.shape[1]


class TensorSolution(NamedTuple):
    """A symmetric kernel ``trend + r(z).core.r(z')``, and what is known of training items beyond it."""

    trend_coef: NDArray  # (n_trends,)
    core: NDArray  # (rank, rank), for two new items with r(z) = G(z, landmarks) @ projection
    # (rank, n_items): r(z) @ item_coef for a new and a training item, without trend
    item_coef: NDArray | None
    item_values: NDArray | None  # (n_items, n_items), fitted between training items, trend included
    # relative residual of the linear system; for the closed form, of the trend's equations
    certificate: float
    n_iter: int = 0  # 0 for the closed form


def item_basis(G: NDArray) -> ItemBasis:
    """The complete basis from the full item kernel matrix."""
    values, vectors = eigh(G)
    return ItemBasis(np.maximum(values, 0.0), vectors, vectors)


def landmark_basis(G_landmarks: NDArray, G_items: NDArray) -> ItemBasis:
    """The basis of the Nystroem approximation from a few landmark items."""
    L = whiten(G_landmarks)
    features = solve_triangular(L, G_items.T, lower=True).T
    values, P = eigh(features.T @ features)
    kept = values > 1e-12 * max(float(values[-1]), np.finfo(float).tiny)
    values = values[kept]
    P = P[:, kept]
    root = np.sqrt(values)
    projection = solve_triangular(L.T, P) * root
    return ItemBasis(values, features @ (P / root), projection)


class _Transformed(NamedTuple):
    """A symmetric matrix seen from the basis: ``U^T M U``, ``U^T M``."""

    inner: NDArray
    half: NDArray


class TensorProblem:
    """Everything of a fully observed problem that does not depend on the penalties: solve many of them cheaply.

    The problem is ``min |S - K|_F^2 + alpha |K - trend|^2`` over kernels of the tensor hyper-RKHS with item kernel
    ``G + noise [same item]``; the trend is not penalized. With ``sigma = values + noise`` and
    ``w_ij = 1/(sigma_i sigma_j + alpha)`` the trend solves ``A beta = b``, ``A_lk = sum w T_l T_k``,
    ``b_l = sum w T_l T``, and the rest is ``core = w * (T - sum_l beta_l T_l)``, T the target in the basis.
    ``alpha = 0`` without trend is bilinear ridge. Cost: ``(q + 1) n^2 rank`` once, then ``q^2 n^2`` per solve.
    """

    def __init__(self, S: NDArray, basis: ItemBasis, trends: list[NDArray]):
        self.S = S
        self.basis = basis
        self.trends = trends
        U = basis.vectors
        half = [U.T @ M for M in (S, *trends)]
        self.transformed = [_Transformed(h @ U, h) for h in half]
        # inner products between all matrices: whole, and half transformed row by row (for the complement)
        self._whole = self._rows = None
        if not basis.complete:
            matrices = (S, *trends)
            self._whole = np.zeros((len(matrices), len(matrices)))
            for i, a in enumerate(matrices):
                for j, b in enumerate(matrices[: i + 1]):
                    self._whole[i, j] = self._whole[j, i] = np.vdot(a, b)
            self._rows = np.array([[np.einsum("ij,ij->i", a, b) for b in half] for a in half])

    def weights(self, noise: float, alpha: float) -> tuple[NDArray, NDArray, float]:
        """``1/(sigma_i sigma_j + alpha)`` inside the basis, between it and its complement, and in the complement."""
        sigma = self.basis.values + noise
        floor = 1e-14 * max(float(sigma.max(initial=0.0)), np.finfo(float).tiny) ** 2
        inside = 1.0 / np.maximum(np.multiply.outer(sigma, sigma) + alpha, floor)
        return (
            inside,
            1.0 / np.maximum(sigma * noise + alpha, floor),
            1.0 / max(noise**2 + alpha, floor),
        )

    def solve_trend(self, noise: float, alpha: float) -> tuple[NDArray, float]:
        """The trend's coefficients, by generalized least squares, and the relative residual of its equations."""
        q = len(self.trends)
        if q == 0:
            return np.zeros(0), 0.0
        inside, mixed, outside = self.weights(noise, alpha)
        flat = np.stack([t.inner.ravel() for t in self.transformed])
        products = (flat * inside.ravel()) @ flat.T
        if self._whole is not None and self._rows is not None:
            plain = flat @ flat.T
            by_row = np.array(
                [
                    [np.einsum("ij,ij->i", a.inner, b.inner) for b in self.transformed]
                    for a in self.transformed
                ]
            )
            products += 2.0 * (self._rows - by_row) @ mixed
            products += outside * (self._whole - 2.0 * self._rows.sum(axis=2) + plain)
        A = products[1:, 1:]
        b = products[1:, 0]
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(A), np.finfo(float).tiny))
        system = A * scale[:, None] * scale + _TREND_RIDGE * np.eye(q)
        u = lstsq(system, b * scale, cond=1e-14)[0]
        residual = np.linalg.norm(system @ u - b * scale) / (
            np.linalg.norm(b * scale) + np.finfo(float).tiny
        )
        return u * scale, float(residual)

    def solve(self, noise: float, alpha: float, *, with_items: bool = True) -> TensorSolution:
        """The kernel for one pair of penalties; without items, what is known of training items alone is left out."""
        beta, certificate = self.solve_trend(noise, alpha)
        U = self.basis.vectors
        sigma = self.basis.values + noise
        inside, mixed, outside = self.weights(noise, alpha)
        half = self.transformed[0].half - sum(
            (b * t.half for b, t in zip(beta, self.transformed[1:])), 0.0
        )
        inner = half @ U
        core = inside * inner
        if not with_items:
            return TensorSolution(beta, core, None, None, certificate)
        trend = np.zeros_like(self.S)
        scratch = np.empty_like(self.S)
        for b, F in zip(beta, self.trends):
            trend += np.multiply(F, b, out=scratch)
        residual = np.subtract(self.S, trend, out=scratch)
        item_coef = (core * sigma) @ U.T
        fitted = U @ (np.multiply.outer(sigma, sigma) * core) @ U.T
        if not self.basis.complete:
            rest = half - inner @ U.T  # U^T residual on the complement
            item_coef += (mixed * noise)[:, None] * rest
            cross = U @ ((mixed * sigma * noise)[:, None] * rest)
            both = residual - U @ half - half.T @ U.T + U @ inner @ U.T
            fitted += cross + cross.T + outside * noise**2 * both
        return TensorSolution(beta, core, item_coef, trend + (fitted + fitted.T) / 2, certificate)

    def leave_out_errors(
        self, noise: float, folds: list[NDArray], used: NDArray | None = None
    ) -> NDArray:
        """Squared errors on pairs that touch a left-out fold of items, at ``alpha = 0``, without any refit.

        With ``Q = (G + noise)^-1`` and fold B, the residual of the model fitted on the other items is
        ``R = Q_BB^-1 (Q S)_B`` on B x rest, and ``R_B + R_B^T - Q_BB^-1 (Q S Q)_BB Q_BB^-1`` on B x B. The trend
        is kept at its coefficients from all items (close to refitting it). Needs a complete basis.
        """
        U = self.basis.vectors
        sigma = self.basis.values + noise
        sigma = np.maximum(sigma, 1e-13 * sigma.max())
        beta, _ = self.solve_trend(noise, 0.0)
        R = self.S - sum((b * F for b, F in zip(beta, self.trends)), np.zeros_like(self.S))
        Q = (U / sigma) @ U.T
        QR = Q @ R
        errors = np.zeros(2)
        for fold in folds:
            rest = np.setdiff1d(np.arange(len(R)), fold)
            factor = cho_factor(Q[np.ix_(fold, fold)])
            rows = cho_solve(factor, QR[fold])
            both = cho_solve(factor, cho_solve(factor, QR[fold] @ Q[:, fold]).T)
            square = rows[:, fold] + rows[:, fold].T - both
            for k, (block, columns) in enumerate(((rows[:, rest], rest), (square, fold))):
                if used is not None:
                    block = block[used[np.ix_(fold, columns)]]
                errors[k] += float(np.sum(block**2))
        return errors


def tensor_ridge_missing(
    S: NDArray,
    basis: ItemBasis,
    trends: list[NDArray],
    noise: float,
    alpha: float,
    *,
    tol: float = 1e-5,
    max_iter: int = 300,
    callback: Callable[[dict], bool] | None = None,
) -> TensorSolution:
    """Solve the tensor ridge problem using only the entries of S that are not NaN.

    ``min_{Z, beta} |S - U (D * Z) U^T - sum_l beta_l F_l|^2_observed + alpha |Z|_F^2`` with
    ``D_ij = sqrt(sigma_i sigma_j)``, by conjugate gradients preconditioned with the closed form for the full matrix.
    Needs ``alpha > 0``. Certificate: preconditioned residual relative to its start. Cost: four products
    n x n x rank per iteration. With a landmark basis the complement is left out of the model.
    """
    used = ~np.isnan(S)
    share = float(used.mean())
    if share == 0.0:
        raise ValueError(
            "the similarity matrix has no known entry; pass at least one that is not NaN."
        )
    U = basis.vectors
    sigma = basis.values + noise
    D = np.sqrt(np.multiply.outer(sigma, sigma))
    flat = np.stack([F.ravel() for F in trends]) if trends else np.zeros((0, S.size))
    norms = np.sqrt(np.maximum(np.mean(flat**2, axis=1, keepdims=True), np.finfo(float).tiny))
    flat = flat / norms
    inner = (
        np.stack([(U.T @ F.reshape(S.shape) @ U).ravel() for F in flat])
        if trends
        else np.zeros((0, D.size))
    )
    weight = 1.0 / (share * D**2 + alpha)
    system = share * (flat @ flat.T - share * (inner * (D**2 * weight).ravel()) @ inner.T)
    system += (_TREND_RIDGE * S.size * share + 1e-12 * max(float(np.trace(system)), 0.0)) * np.eye(
        len(flat)
    )
    factor = cho_factor(system) if trends else None

    def split(v: NDArray) -> tuple[NDArray, NDArray]:
        return v[: D.size].reshape(D.shape), v[D.size :]

    def gradient(R: NDArray) -> NDArray:
        return np.append(D * (U.T @ R @ U), flat @ R.ravel())

    def product(v: NDArray) -> NDArray:
        Z, beta = split(v)
        K = U @ (D * Z) @ U.T + (beta @ flat).reshape(S.shape)
        penalty = np.append(alpha * Z, _TREND_RIDGE * S.size * share * beta)
        return gradient(np.where(used, K, 0.0)) + penalty

    def precondition(v: NDArray) -> NDArray:
        g, h = split(v)
        if factor is None:
            return np.append(weight * g, h)
        beta = cho_solve(factor, h - share * inner @ (D * weight * g).ravel())
        return np.append(weight * (g - share * D * (beta @ inner).reshape(D.shape)), beta)

    x, residual, n_iter = conjugate_gradients(
        product, precondition, gradient(np.where(used, S, 0.0)), tol, max_iter, callback
    )
    Z, beta = split(x)
    core = Z / np.maximum(D, np.finfo(float).tiny)
    core = (core + core.T) / 2
    trend = (beta @ flat).reshape(S.shape)
    values = trend + U @ (D**2 * core) @ U.T
    return TensorSolution(beta / norms[:, 0], core, (core * sigma) @ U.T, values, residual, n_iter)
