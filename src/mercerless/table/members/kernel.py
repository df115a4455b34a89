"""The kernel members: ridge regression with Gaussian or Laplace kernels and bandwidths learned by the evidence.

On all rows up to some thousand, and on centers above.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import (
    LinAlgError,
    cho_factor,
    cho_solve,
    cholesky,
    eigh,
    lapack,
    solve_triangular,
)
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mercerless.core.memory import row_blocks
from mercerless.table.members.base import Member, Rows
from mercerless.table.views import Tails

ALL_ROWS = 2500  # up to here every row is a center
CENTERS = 1000  # of more rows
MOST_ROWS = 20_000  # from which coefficients of centers are learned
STEPS = {250: 16, 500: 8}  # rows on which bandwidths are learned, and the steps of their descent
STEPS_AGAIN = {500: 8}  # on a second view, from the bandwidths of the first
STEPS_OF_FOLD, STEPS_OF_FOLD_AGAIN = {200: 12}, {200: 6}  # without the rows that a fold holds out
LAPLACE_RATES = (0.15, 0.4, 1.0)  # of the Laplace kernel relative to the Gaussian one
RATE_ROWS = 1500  # on which it is chosen
SHARED_ROWS = 300  # on which one bandwidth for all features is chosen
SHARED_WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
SHARED_NOISES = np.logspace(-4, 1, 11)
PULL = 0.05  # of the log bandwidths of features toward each other
SINGLE_CENTERS = 500  # from here on single precision is faster, if it passes a test of precision
SINGLE_ERROR = 1e-4  # of predictions, in standard deviations of the target


class Scales(NamedTuple):
    """Parameters of ``a exp(-sum_j s_j (x_j - z_j)^2 / 2) + b (x'z / d + 1)`` and of the noise."""

    s: NDArray  # (d,), squared inverse bandwidths
    amplitude: float
    linear: float
    noise: float

    @classmethod
    def by_evidence(
        cls, rows: Rows, X: NDArray, steps: dict[int, int], start: Self | None = None
    ) -> Self:
        """One bandwidth for every feature of the view X of the rows, by the evidence of some of them.

        Minimizes ``q log det(K) / 2 + tr(Y' K^-1 Y) / 2 + .05 sum_j (log s_j - mean)^2`` where K is the kernel matrix
        plus the noise, by L-BFGS: so many `steps` on so many rows, first on few, then on more.
        """
        order = np.random.RandomState(rows.seed).permutation(len(X))
        d = X.shape[1]
        bounds = [(-14.0, 4.0)] * d + [(-8.0, 6.0)] * 2 + [(-9.0, 4.0)]
        first = start or cls(np.full(d, 1.0 / d), 1.0, 0.1, 0.1)
        z = np.log(np.append(first.s, first[1:]))
        for n_rows, n_steps in steps.items():
            places = order[:n_rows]
            evidence = _Evidence(X[places], rows.Y[places], rows.weight[places])
            options = {"maxiter": n_steps}
            z = minimize(evidence, z, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return cls(np.exp(z[:-3]), *np.exp(z[-3:]).tolist())

    @classmethod
    def by_leave_one_out(cls, rows: Rows, X: NDArray, laplace: bool) -> Self:
        """One bandwidth for all features, and the noise, of least leave-one-out error on some rows."""
        places = np.random.RandomState(rows.seed).permutation(len(X))[:SHARED_ROWS]
        A, Y, weight = X[places], rows.Y[places], rows.weight[places]
        d = A.shape[1]
        distances = cdist(A, A, "cityblock" if laplace else "sqeuclidean")
        typical = float(np.median(distances[np.triu_indices_from(distances, 1)])) or 1.0
        linear = 0.1 * (A @ A.T / d + 1.0)
        best = np.inf, 1.0, 1.0
        for width in SHARED_WIDTHS:
            values, vectors = eigh(np.exp(-width / typical * distances) + linear)
            moments = vectors.T @ Y
            for noise in SHARED_NOISES:
                inverse = vectors**2 @ (1.0 / (values + noise))
                coef = vectors @ (moments / (values + noise)[:, None])
                squares = np.sum((coef / inverse[:, None]) ** 2, axis=1)
                best = min(best, (float(np.average(squares, weights=weight)), width, noise))
        _, width, noise = best
        s = (width / typical) ** 2 if laplace else 2.0 * width / typical
        return cls(np.full(d, s), 1.0, 0.1, float(noise))


class _Evidence:
    """The negative logarithm of the evidence and its slope, in log s, log a, log b and log noise."""

    def __init__(self, X: NDArray, Y: NDArray, weight: NDArray) -> None:
        self.X = X
        self.Y = Y
        self.squares = X**2
        self.linear = X @ X.T / X.shape[1] + 1.0
        self.noise = 1.0 / weight

    def __call__(self, z: NDArray) -> tuple[float, NDArray]:
        X, Y = self.X, self.Y
        q = Y.shape[1]
        s = np.exp(z[:-3])
        amplitude, linear, noise = np.exp(z[-3:])
        sums = self.squares @ s
        squares = np.maximum(sums[:, None] + sums - 2.0 * (X * s) @ X.T, 0.0)
        G = amplitude * np.exp(-0.5 * squares)
        K = G + linear * self.linear
        K[np.diag_indices_from(K)] += noise * self.noise
        try:
            inverse, half_logdet = invert(K)
        except LinAlgError:
            return 1e10, np.zeros_like(z)
        coef = inverse @ Y
        apart = z[:-3] - z[:-3].mean()
        value = np.sum(Y * coef) / 2.0 + q * half_logdet + PULL * apart @ apart

        W = (q * inverse - coef @ coef.T) / 2.0  # the slope in K
        V = W * G
        slope = -s * (V.sum(axis=1) @ self.squares - np.sum(X * (V @ X), axis=0))
        others = [V.sum(), linear * np.sum(W * self.linear), noise * (np.diagonal(W) @ self.noise)]
        return float(value), np.append(slope + 2.0 * PULL * apart, others)


class CenterSums(NamedTuple):
    """Sums over rows from which the coefficients of centers come, in the basis that the Cholesky factor makes."""

    centers: NDArray
    factor: NDArray  # of the kernel of the centers
    gram: NDArray
    moment: NDArray

    def coef(self) -> NDArray:
        """The coefficients of the centers."""
        solution = cho_solve(cho_factor(self.gram, lower=True), self.moment)
        return solve_triangular(self.factor, solution, lower=True, trans="T")


class Kernel(Member):
    """Kernel ridge regression on a view of the rows, with a Gaussian or a Laplace kernel.

    The Laplace kernel is ``exp(-rate sum_j sqrt(s_j) |x_j - z_j|)``, with the rate of least error in the first fold.
    Bandwidths of features are learned again without the rows that a fold holds out: otherwise held-out
    errors are too small (by 15 % at 700 rows, by 40 % at 150), and such machines get too much weight.
    """

    def __init__(
        self,
        name: str,
        view: Tails | None,
        laplace: bool,
        scales: Scales,
        scales_of_folds: Sequence[Scales] = (),
        rates: Sequence[float] = (1.0,),
    ) -> None:
        self.name = name
        self.view = view
        self.laplace = laplace
        self.scales = scales
        self.scales_of_folds = scales_of_folds  # none if they are the same for all folds
        self.rates = rates
        self.rate = rates[0]
        self.sums: CenterSums | None = None  # of many rows, from the training rows of the last fold

    def out_of_fold(self, rows: Rows, rivals: Sequence[NDArray]) -> NDArray | None:
        X = self._look(rows.Z)
        final = self.scales
        outputs = np.full_like(rows.Y, np.nan)
        for number, (train, test) in enumerate(rows.folds):
            if self.scales_of_folds:
                self.scales = self.scales_of_folds[number]
            if len(self.rates) > 1 and number == 0:
                self.rate = self._best_rate(rows, X, train[:RATE_ROWS], test[:RATE_ROWS])
            solve = self._solve if len(rows) <= ALL_ROWS else self._solve_centers
            outputs[test] = self._apply(X[test], *solve(rows, X, train))
        self.scales, self.scales_of_folds = final, ()
        return outputs

    def _best_rate(self, rows: Rows, X: NDArray, train: NDArray, test: NDArray) -> float:
        """The rate of the Laplace kernel with the smallest error on the test rows."""
        errors = []
        for rate in self.rates:
            self.rate = rate
            outputs = self._apply(X[test], *self._solve(rows, X, train))
            errors.append(np.mean((outputs - rows.Y[test]) ** 2))
        return self.rates[int(np.argmin(errors))]

    def _apply(self, X: NDArray, centers: NDArray, coef: NDArray) -> NDArray:
        """Outputs of rows of the view."""
        outputs = np.empty((len(X), coef.shape[1]))
        for some in row_blocks(len(X), 8.0 * len(centers)):
            outputs[some] = self._compare(X[some], centers) @ coef
        return outputs

    def _solve(self, rows: Rows, X: NDArray, train: NDArray) -> tuple[NDArray, NDArray]:
        """These rows as centers, and their coefficients."""
        K = self._compare(X[train], X[train])
        K[np.diag_indices_from(K)] += self.scales.noise / rows.weight[train]
        return X[train], cho_solve(cho_factor(K, lower=True, overwrite_a=True), rows.Y[train])

    def _solve_centers(self, rows: Rows, X: NDArray, train: NDArray) -> tuple[NDArray, NDArray]:
        """Centers among these rows, and their coefficients: least squares on at most 20,000 of the rows."""
        order = np.random.RandomState(rows.seed).permutation(len(train))
        train = train[order[:MOST_ROWS]]
        centers = X[train[:CENTERS]]
        C = self._compare(centers, centers)
        C[np.diag_indices_from(C)] += 1e-8 * np.trace(C) / len(C)
        factor = cholesky(C, lower=True)
        gram = self.scales.noise * np.eye(len(C))
        self.sums = CenterSums(centers, factor, gram, np.zeros((len(C), rows.Y.shape[1])))
        self._add(rows, X, train)
        return centers, self.sums.coef()

    def _add(self, rows: Rows, X: NDArray, places: NDArray) -> None:
        """Add rows to the sums for centers."""
        assert self.sums is not None
        centers, factor, gram, moment = self.sums
        for some in row_blocks(len(places), 8.0 * CENTERS):
            block = places[some]
            root = np.sqrt(rows.weight[block])
            K = self._compare(centers, X[block]) * root
            F = solve_triangular(factor, K, lower=True, overwrite_b=True)
            gram += F @ F.T
            moment += F @ (root[:, None] * rows.Y[block])

    def refit(self, rows: Rows) -> None:
        X = self._look(rows.Z)
        everything = np.arange(len(rows))
        if len(rows) <= ALL_ROWS:
            self.centers, self.coef = self._solve(rows, X, everything)
        elif self.sums is not None and len(rows.folds) == 1:
            self._add(rows, X, rows.folds[0][1])
            self.centers, self.coef = self.sums.centers, self.sums.coef()
        else:
            self.centers, self.coef = self._solve_centers(rows, X, everything)
        self.sums = None
        self._fold_in(rows.Z[:200])

    def _fold_in(self, Z: NDArray) -> None:
        """Keep the linear part as coefficients, and centers in single precision if predictions hardly change."""
        d = self.centers.shape[1]
        self.linear = self.scales.linear / d * (self.centers.T @ self.coef)
        self.intercept = self.scales.linear * self.coef.sum(axis=0)
        if len(self.centers) >= SINGLE_CENTERS:
            precise = self.predict(Z)
            double = self.centers
            self.centers = double.astype(np.float32)
            if np.abs(self.predict(Z) - precise).max() > SINGLE_ERROR:
                self.centers = double

    def predict(self, Z: NDArray) -> NDArray:
        X = self._look(Z)
        out = X @ self.linear + self.intercept
        kind = self.centers.dtype
        coef = self.scales.amplitude * self.coef
        for some in row_blocks(len(X), 8.0 * len(self.centers), 2**23):
            out[some] += self._shape(X[some].astype(kind), self.centers) @ coef.astype(kind)
        return out

    def _look(self, Z: NDArray) -> NDArray:
        return Z if self.view is None else self.view(Z)

    def _compare(self, A: NDArray, B: NDArray) -> NDArray:
        """The kernel of rows of the view."""
        linear = self.scales.linear * (A @ B.T / A.shape[1] + 1.0)
        return self.scales.amplitude * self._shape(A, B) + linear

    def _shape(self, A: NDArray, B: NDArray) -> NDArray:
        """The Gaussian or Laplace kernel, in the precision of the rows."""
        root = np.sqrt(self.scales.s).astype(A.dtype)
        if self.laplace:
            return np.exp(-city_block(A * (self.rate * root), B * (self.rate * root)))
        P, Q = A * root, B * root
        squares = P @ Q.T
        squares *= -2.0
        squares += np.sum(P**2, axis=1)[:, None]
        squares += np.sum(Q**2, axis=1)
        return np.exp(-0.5 * np.maximum(squares, 0.0))


def city_block(A: NDArray, B: NDArray) -> NDArray:
    """Sums of absolute differences; in single precision four times faster, block by block in the cache."""
    if A.dtype == np.float64:
        return cdist(A, B, "cityblock")
    sums = np.zeros((len(A), len(B)), dtype=A.dtype)
    B = np.ascontiguousarray(B.T)
    difference = np.empty((64, B.shape[1]), dtype=A.dtype)
    for start in range(0, len(A), 64):
        block = A[start : start + 64]
        out = difference[: len(block)]
        for j in range(A.shape[1]):
            np.subtract(block[:, j, None], B[j], out=out)
            np.abs(out, out=out)
            sums[start : start + 64] += out
    return sums


def invert(K: NDArray) -> tuple[NDArray, float]:
    """The inverse of a positive definite matrix, and half of its log determinant, from one Cholesky factor."""
    L = cholesky(K, lower=True)
    half_logdet = float(np.log(np.diagonal(L)).sum())
    inverse = lapack.dpotri(L, lower=1, overwrite_c=1)[0]  # its lower half; the upper one is 0
    inverse += inverse.T.copy()
    inverse[np.diag_indices_from(inverse)] /= 2.0
    return inverse, half_logdet


def kernel_members(rows: Rows) -> Iterator[Kernel]:
    """Gaussian and Laplace machines with a bandwidth for each feature, and a Gaussian one with one for all."""
    tails = Tails.fit(rows.Z)
    if len(rows.folds) == 1:
        parts = [(rows.take(rows.folds[0][0]), STEPS, STEPS_AGAIN)]
    else:  # all rows, and those that folds learn from
        parts = [(rows, STEPS, STEPS_AGAIN)]
        for train, _ in rows.folds:
            parts.append((rows.take(train), STEPS_OF_FOLD, STEPS_OF_FOLD_AGAIN))
    plain = [Scales.by_evidence(part, part.Z, steps) for part, steps, _ in parts]
    short = [
        Scales.by_evidence(part, tails(part.Z), steps, start)
        for (part, _, steps), start in zip(parts, plain)
    ]
    yield Kernel("Gaussian", None, False, plain[0], plain[1:])
    yield Kernel("Gaussian, short tails", tails, False, short[0], short[1:])
    # a Laplace kernel is less smooth and leaves less to the noise
    rough = [scales._replace(noise=scales.noise / 2.0) for scales in short]
    yield Kernel("Laplace, short tails", tails, True, rough[0], rough[1:], LAPLACE_RATES)
    for name, laplace in (("Gaussian, one bandwidth", False), ("Laplace, one bandwidth", True)):
        shared = Scales.by_leave_one_out(rows, tails(rows.Z), laplace)
        yield Kernel(name, tails, laplace, shared)
