"""Ridge regression with the tensor hyper-kernel and a pair trend: closed form, missing entries, leave-fold-out."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh, lstsq, solve_triangular

from mercerless.hyper.solver import conjugate_gradients, whiten
from mercerless.hyper.thresholds import LIMITS


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
    """A symmetric kernel ``trend + r(z).core.r(z')``, and the training items' own components."""

    trend_coef: NDArray  # (n_trends,)
    core: NDArray  # (rank, rank), for two new items with r(z) = G(z, landmarks) @ projection
    # (rank, n_items): r(z) @ item_coef for a new and a training item, without trend
    item_coef: NDArray
    item_values: NDArray  # (n_items, n_items), fitted between training items, trend included
    # relative residual of the linear system; for the closed form, of the trend's equations
    certificate: float
    n_iter: int = 0  # 0 for the closed form


def item_basis(G: NDArray) -> ItemBasis:
    """The complete basis from the full item kernel matrix."""
    values, vectors = eigh(G, driver="evd", check_finite=False)
    return ItemBasis(np.maximum(values, 0.0), vectors, vectors)


def landmark_basis(G_landmarks: NDArray, G_items: NDArray) -> ItemBasis:
    """The basis of the Nystroem approximation from a few landmark items."""
    L = whiten(G_landmarks)
    features = solve_triangular(L, G_items.T, lower=True).T
    values, P = eigh(features.T @ features, driver="evd", check_finite=False)
    kept = values > 1e-12 * max(float(values[-1]), np.finfo(float).tiny)
    values = values[kept]
    P = P[:, kept]
    root = np.sqrt(values)
    projection = solve_triangular(L.T, P) * root
    return ItemBasis(values, features @ (P / root), projection)


class _Weights(NamedTuple):
    """The weights ``1/(sigma_i sigma_j + alpha)`` of the closed form."""

    inside: NDArray  # (rank, rank), within the basis
    mixed: NDArray  # (rank,), between the basis and its complement
    outside: float  # in the complement


class TensorProblem:
    """The part of a fully observed problem that does not depend on the penalties, to solve for many of them cheaply.

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
        # U^T M and U^T M U of the target and of all trends
        self.halves = [basis.vectors.T @ M for M in (S, *trends)]
        self.inners = [half @ basis.vectors for half in self.halves]

    def weights(self, noise: float, alpha: float) -> _Weights:
        """The weights for one pair of penalties, bounded if all denominators vanish."""
        sigma = self.basis.values + noise
        largest = max(float(sigma.max(initial=0.0)), np.finfo(float).tiny)
        floor = 1e-14 * largest**2
        inside = np.maximum(np.multiply.outer(sigma, sigma) + alpha, floor)
        mixed = np.maximum(sigma * noise + alpha, floor)
        outside = max(noise**2 + alpha, floor)
        return _Weights(1.0 / inside, 1.0 / mixed, 1.0 / outside)

    def solve_trend(self, noise: float, alpha: float) -> tuple[NDArray, float]:
        """The trend's coefficients, by generalized least squares, and the relative residual of its equations."""
        q = len(self.trends)
        if q == 0:
            return np.zeros(0), 0.0
        products = self._weighted_products(self.weights(noise, alpha))
        A = products[1:, 1:]
        b = products[1:, 0]
        squares = np.maximum(np.diagonal(A), np.finfo(float).tiny)
        unit = 1.0 / np.sqrt(squares)
        system = A * unit[:, None] * unit
        system[np.diag_indices(q)] += LIMITS.trend_ridge
        right_side = b * unit
        u = lstsq(system, right_side, cond=1e-14)[0]
        residual = np.linalg.norm(system @ u - right_side)
        size = np.linalg.norm(right_side) + np.finfo(float).tiny
        return u * unit, float(residual / size)

    def _weighted_products(self, weights: _Weights) -> NDArray:
        """Inner products of the target and all trends, every eigendirection of pairs with its weight."""
        flat = np.stack([inner.ravel() for inner in self.inners])
        products = (flat * weights.inside.ravel()) @ flat.T
        if self.basis.complete:
            return products
        matrices = [self.S, *self.trends]
        whole = np.array([[np.vdot(a, b) for b in matrices] for a in matrices])
        rows = _row_products(self.halves)
        rows_inside = _row_products(self.inners)
        outside = whole - 2.0 * rows.sum(axis=2) + rows_inside.sum(axis=2)
        products += 2.0 * (rows - rows_inside) @ weights.mixed
        products += weights.outside * outside
        return products

    def trend(self, beta: NDArray) -> NDArray:
        """The trend with these coefficients between all items."""
        return sum((b * F for b, F in zip(beta, self.trends)), np.zeros_like(self.S))

    def solve(self, noise: float, alpha: float) -> TensorSolution:
        """The kernel for one pair of penalties."""
        beta, certificate = self.solve_trend(noise, alpha)
        weights = self.weights(noise, alpha)
        U = self.basis.vectors
        sigma = self.basis.values + noise
        trend = self.trend(beta)
        residual = self.S - trend
        half = U.T @ residual
        inner = half @ U
        core = weights.inside * inner
        item_coef = (core * sigma) @ U.T
        fitted = U @ (np.multiply.outer(sigma, sigma) * core) @ U.T
        if not self.basis.complete:
            mixed = half - inner @ U.T  # the rows of the residual outside of the basis
            outside = residual - U @ half - mixed.T @ U.T
            item_coef += (weights.mixed * noise)[:, None] * mixed
            cross = U @ ((weights.mixed * sigma * noise)[:, None] * mixed)
            fitted += cross + cross.T + weights.outside * noise**2 * outside
        fitted = (fitted + fitted.T) / 2
        return TensorSolution(beta, core, item_coef, trend + fitted, certificate)

    def leave_out_errors(
        self, noise: float, folds: list[NDArray], used: NDArray | None = None
    ) -> NDArray:
        """Squared errors on pairs that touch each left-out fold of items, at ``alpha = 0``, without any refit.

        With ``Q = (G + noise)^-1`` and fold B, the residual of the model fitted on the other items is
        ``R = Q_BB^-1 (Q S)_B`` on B x rest, and ``R_B + R_B^T - Q_BB^-1 (Q S Q)_BB Q_BB^-1`` on B x B. The trend
        is kept at its coefficients from all items (close to refitting it). Needs a complete basis. The result has shape
        (n_folds, 2): sums over both blocks.
        """
        U = self.basis.vectors
        sigma = self.basis.values + noise
        sigma = np.maximum(sigma, 1e-13 * sigma.max())
        beta, _ = self.solve_trend(noise, 0.0)
        Q = (U / sigma) @ U.T
        QR = Q @ (self.S - self.trend(beta))
        errors = []
        for fold in folds:
            factor = cho_factor(Q[np.ix_(fold, fold)])
            rows = cho_solve(factor, QR[fold])
            QRQ = QR[fold] @ Q[:, fold]
            both = cho_solve(factor, cho_solve(factor, QRQ).T)
            within = rows[:, fold]
            rows[:, fold] = within + within.T - both
            if used is not None:
                rows[~used[fold]] = 0.0
            oblong = np.delete(rows, fold, axis=1)
            square = rows[:, fold]
            errors.append([np.sum(oblong**2), np.sum(square**2)])
        return np.array(errors)


def _row_products(matrices: list[NDArray]) -> NDArray:
    """Inner products between the rows of all matrices, of shape (n_matrices, n_matrices, n_rows)."""
    return np.array([[np.einsum("ij,ij->i", a, b) for b in matrices] for a in matrices])


def tensor_ridge_missing(
    S: NDArray,
    basis: ItemBasis,
    trends: list[NDArray],
    noise: float,
    alpha: float,
    *,
    tol: float = 1e-5,
    max_iter: int = 300,
) -> TensorSolution:
    """Solve the tensor ridge problem using only the entries of S that are not NaN.

    ``min_{Z, beta} |S - U (D * Z) U^T - sum_l beta_l F_l|^2_observed + alpha |Z|_F^2`` with
    ``D_ij = sqrt(sigma_i sigma_j)``, by conjugate gradients preconditioned with the closed form for the full matrix.
    Needs ``alpha > 0``. Certificate: preconditioned residual relative to its start. Cost: four products
    n x n x rank per iteration. With a landmark basis the complement is left out of the model.
    """
    used = ~np.isnan(S)
    if not used.any():
        raise ValueError(
            "the similarity matrix has no known entry; pass at least one that is not NaN."
        )
    problem = _ObservedProblem(used, basis, trends, noise, alpha)
    rhs = problem.gradient(np.where(used, S, 0.0))
    x, residual, n_iter = conjugate_gradients(
        problem.product, problem.precondition, rhs, tol, max_iter
    )
    Z, beta = problem.split(x)
    core = Z / np.maximum(problem.D, np.finfo(float).tiny)
    core = (core + core.T) / 2
    U = basis.vectors
    values = problem.trend(beta) + U @ (problem.D**2 * core) @ U.T
    item_coef = (core * problem.sigma) @ U.T
    trend_coef = beta / problem.trend_norms
    return TensorSolution(trend_coef, core, item_coef, values, residual, n_iter)


class _ObservedProblem:
    """The normal equations of `tensor_ridge_missing` in ``Z`` and ``beta``, one vector, and their preconditioner.

    The preconditioner is the exact solution for a full matrix in which every entry counts by the share of known ones.
    """

    def __init__(
        self, used: NDArray, basis: ItemBasis, trends: list[NDArray], noise: float, alpha: float
    ):
        self.used = used
        self.share = float(used.mean())
        self.U = basis.vectors
        self.sigma = basis.values + noise
        self.alpha = alpha
        self.D = np.sqrt(np.multiply.outer(self.sigma, self.sigma))
        self.weight = 1.0 / (self.share * self.D**2 + alpha)
        self.trend_penalty = LIMITS.trend_ridge * used.sum()

        # trends of unit mean square, as rows, and the same seen from the basis
        self.flat = np.array(trends).reshape(len(trends), used.size)
        mean_squares = np.mean(self.flat**2, axis=1)
        self.trend_norms = np.sqrt(np.maximum(mean_squares, np.finfo(float).tiny))
        self.flat /= self.trend_norms[:, None]
        transformed = [self.U.T @ F.reshape(used.shape) @ self.U for F in self.flat]
        self.inner = np.array(transformed).reshape(len(trends), self.D.size)
        self.factor = cho_factor(self._trend_system())

    def _trend_system(self) -> NDArray:
        """The preconditioner's equations of the trends after the elimination of Z."""
        shrinkage = (self.D**2 * self.weight).ravel()
        explained = (self.inner * shrinkage) @ self.inner.T
        system = self.share * (self.flat @ self.flat.T - self.share * explained)
        rounding = 1e-12 * max(float(np.trace(system)), 0.0)
        system[np.diag_indices_from(system)] += self.trend_penalty + rounding
        return system

    def split(self, v: NDArray) -> tuple[NDArray, NDArray]:
        """Z and beta of one vector of unknowns."""
        return v[: self.D.size].reshape(self.D.shape), v[self.D.size :]

    def trend(self, beta: NDArray) -> NDArray:
        """The trend with these coefficients between all items."""
        return (beta @ self.flat).reshape(self.used.shape)

    def gradient(self, R: NDArray) -> NDArray:
        """The adjoint of the model at a matrix of residuals, which are 0 for unknown entries."""
        return np.append(self.D * (self.U.T @ R @ self.U), self.flat @ R.ravel())

    def product(self, v: NDArray) -> NDArray:
        """The normal matrix times a vector."""
        Z, beta = self.split(v)
        kernel = self.U @ (self.D * Z) @ self.U.T + self.trend(beta)
        penalty = np.append(self.alpha * Z, self.trend_penalty * beta)
        return self.gradient(np.where(self.used, kernel, 0.0)) + penalty

    def precondition(self, v: NDArray) -> NDArray:
        """The exact solution if all entries counted by the share of known ones."""
        g, h = self.split(v)
        coupling = self.inner @ (self.D * self.weight * g).ravel()
        beta = cho_solve(self.factor, h - self.share * coupling)
        trend = (beta @ self.inner).reshape(self.D.shape)
        Z = self.weight * (g - self.share * self.D * trend)
        return np.append(Z, beta)
