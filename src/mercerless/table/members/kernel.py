"""The kernel members: ridge regression with Gaussian or Laplace kernels and bandwidths learned by the evidence.

On all rows up to some thousand, and on centers above.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, lapack
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mercerless.core.memory import row_blocks
from mercerless.table.members.base import Member, Rows
from mercerless.table.views import Tails

ALL_ROWS = 2500  # up to here every row is a center
CENTERS = 1000  # of more rows
MOST_ROWS = 20_000  # from which coefficients of centers are learned
LOOK_ROWS = 1000  # from which machines on centers learn first
N_BEST = 3  # of them go on
SHARED_ROWS = 300  # on which a common factor of bandwidths is chosen
SHARED_WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
SHARED_NOISES = np.logspace(-4, 1, 11)
ROUNDING = 1e-12  # of normal equations, beside their mean diagonal
IN_CACHE = 2**22  # bytes of a block of a kernel matrix
PULL = 0.05  # of the log bandwidths of features toward each other


class Search(NamedTuple):
    """How long bandwidths are sought: steps of descents on so many rows."""

    steps: dict[int, int]
    steps_again: dict[int, int]  # on the view with short tails, from the bandwidths of the first


THOROUGH = Search({250: 16, 500: 8}, {500: 8})
OF_FOLD = Search({200: 12}, {200: 6})  # without the rows that a fold holds out
#: Beside the thorough one, on 10 tables of 10,000 rows: error +.2 +- .2 %, processor time of the whole fit -6 %.
OF_MANY_ROWS = Search({250: 20}, {250: 8})


class Scales(NamedTuple):
    """Parameters of ``amplitude exp(-h) + linear (x'z / d + 1)`` and of the noise.

    h is ``sum_j s_j (x_j - z_j)^2 / 2`` (Gaussian) or ``sum_j sqrt(s_j) |x_j - z_j|`` (Laplace).
    """

    s: NDArray  # (d,), squared inverse bandwidths
    amplitude: float = 1.0
    linear: float = 0.1
    noise: float = 0.1
    is_laplace: bool = False

    def compare(self, A: NDArray, B: NDArray) -> NDArray:
        """The kernel of rows."""
        K = self.distances(A, B)
        np.negative(K, out=K)  # in place: new arrays of this size cost more than the exponentials
        np.exp(K, out=K)
        K *= self.amplitude
        K += A @ (self.linear / A.shape[1] * B.T)
        K += self.linear
        return K

    def distances(self, A: NDArray, B: NDArray) -> NDArray:
        """h, for all pairs of rows."""
        if self.is_laplace:
            root = np.sqrt(self.s)
            return cdist(A * root, B * root, "cityblock")
        root = np.sqrt(self.s / 2.0)
        return squared_distances(A * root, B * root)

    def by_evidence(self, rows: Rows, X: NDArray, steps: dict[int, int]) -> Self:
        """One bandwidth for every feature of the view X of the rows, by the evidence of some of them.

        Minimizes ``q log det(K) / 2 + tr(Y' K^-1 Y) / 2 + .05 sum_j (log s_j - mean)^2`` where K is the kernel matrix
        plus the noise, by L-BFGS: so many `steps` on so many rows, first on few, then on more.
        """
        order = np.random.RandomState(rows.seed).permutation(len(X))
        bounds = [(-14.0, 4.0)] * X.shape[1] + [(-8.0, 6.0)] * 2 + [(-9.0, 4.0)]
        z = np.log([*self.s, self.amplitude, self.linear, self.noise])
        for n_rows, n_steps in steps.items():
            places = order[:n_rows]
            evidence = Evidence(X[places], rows.Y[places], rows.weight[places])
            result = minimize(
                evidence,
                z,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": n_steps},
            )
            z = result.x
        amplitude, linear, noise = np.exp(z[-3:]).tolist()
        return self._replace(s=np.exp(z[:-3]), amplitude=amplitude, linear=linear, noise=noise)

    def by_leave_one_out(self, rows: Rows, X: NDArray, is_laplace: bool) -> Self:
        """The factor of the bandwidths, and the noise, of least leave-one-out error on some rows."""
        order = np.random.RandomState(rows.seed).permutation(len(X))
        places = order[:SHARED_ROWS]
        A = X[places]
        weight = rows.weight[places]
        start = type(self)(self.s, is_laplace=is_laplace)
        typical = float(np.median(start.distances(A, A))) or 1.0
        smallest = np.inf
        best = self
        for width in SHARED_WIDTHS:
            factor = (width / typical) ** (2 if is_laplace else 1)
            scales = start._replace(s=factor * self.s)
            values, vectors = eigh(scales.compare(A, A))
            moments = vectors.T @ rows.Y[places]
            for noise in SHARED_NOISES:
                shrunk = 1.0 / (np.maximum(values, 0.0) + noise)
                coef = vectors @ (shrunk[:, None] * moments)
                inverse_diagonal = vectors**2 @ shrunk
                residuals = coef / inverse_diagonal[:, None]
                error = weight @ np.sum(residuals**2, axis=1)
                if error < smallest:
                    smallest = error
                    best = scales._replace(noise=float(noise))
        return best


def squared_distances(A: NDArray, B: NDArray) -> NDArray:
    """Squared Euclidean distances of rows."""
    squares = A @ (-2.0 * B.T)
    squares += np.sum(A**2, axis=1)[:, None]
    squares += np.sum(B**2, axis=1)
    return np.maximum(squares, 0.0, out=squares)


class Evidence:
    """The negative logarithm of the evidence and its slope, in log s, log amplitude, log linear and log noise."""

    def __init__(self, X: NDArray, Y: NDArray, weight: NDArray) -> None:
        self.X = X
        self.Y = Y
        self.squares = X**2
        self.linear = X @ X.T / X.shape[1] + 1.0
        self.noise = 1.0 / weight

    def __call__(self, z: NDArray) -> tuple[float, NDArray]:
        s = np.exp(z[:-3])
        amplitude, linear, noise = np.exp(z[-3:])
        A = self.X * np.sqrt(s / 2.0)
        G = amplitude * np.exp(-squared_distances(A, A))
        K = G + linear * self.linear
        K[np.diag_indices_from(K)] += noise * self.noise
        try:
            inverse, half_logdet = invert(K)
        except LinAlgError:
            return 1e10, np.zeros_like(z)

        coef = inverse @ self.Y
        n_outputs = self.Y.shape[1]
        apart = z[:-3] - z[:-3].mean()
        fit = np.sum(self.Y * coef) / 2.0
        value = fit + n_outputs * half_logdet + PULL * apart @ apart

        W = (n_outputs * inverse - coef @ coef.T) / 2.0  # the slope in K
        V = W * G
        squares = V.sum(axis=1) @ self.squares
        products = np.sum(self.X * (V @ self.X), axis=0)
        slope = np.empty_like(z)
        slope[:-3] = 2.0 * PULL * apart - s * (squares - products)
        slope[-3] = V.sum()
        slope[-2] = linear * np.sum(W * self.linear)
        slope[-1] = noise * (np.diagonal(W) @ self.noise)
        return float(value), slope


def invert(K: NDArray) -> tuple[NDArray, float]:
    """The inverse of a positive definite matrix, and half of its log determinant, from one Cholesky factor."""
    L = cholesky(K, lower=True)
    half_logdet = float(np.log(np.diagonal(L)).sum())
    inverse = lapack.dpotri(L, lower=1, overwrite_c=1)[0]  # its lower half; the upper one is 0
    strict_upper = np.triu(inverse.T, 1)
    return inverse + strict_upper, half_logdet


class Sums(NamedTuple):
    """The normal equations ``(K W K' + noise C) coef = K W Y`` of machines on centers, over rows in parts.

    K is the kernel of the centers with the rows, C that of the centers with each other, and W has the rows' weights.
    """

    centers: NDArray  # (m, d)
    penalty: NDArray  # C
    gram: NDArray  # (m, m)
    moment: NDArray  # (m, q)

    def add(self, scales: Scales, X: NDArray, rows: Rows) -> Self:
        """Sums over more rows, with X as their view."""
        gram, moment = self.gram.copy(), self.moment.copy()
        for block in row_blocks(len(X), 8.0 * len(self.centers), IN_CACHE):
            root = np.sqrt(rows.weight[block])
            K = root * scales.compare(self.centers, X[block])
            gram += K @ K.T
            moment += K @ (root[:, None] * rows.Y[block])
        return self._replace(gram=gram, moment=moment)

    def solve(self, noise: float) -> NDArray:
        """The coefficients of the centers."""
        A = self.gram + noise * self.penalty
        A[np.diag_indices_from(A)] += ROUNDING * np.trace(A) / len(A)
        return cho_solve(cho_factor(A, lower=True, overwrite_a=True), self.moment)


class Kernel(Member):
    """Kernel ridge regression on a view of the rows.

    Bandwidths of features are learned again without the rows that a fold holds out: otherwise held-out
    errors are too small (by 15 % at 700 rows, by 40 % at 150), and such machines get too much weight.
    """

    def __init__(
        self, name: str, view: Tails | None, scales: Scales, of_folds: Sequence[Scales] = ()
    ) -> None:
        self.name = name
        self.view = view
        self.scales = scales
        self.of_folds = of_folds  # none if they are the same for all folds
        self.sums: Sums | None = None  # over the rows of a fold, to which held-out rows are added

    def fit(self, rows: Rows, fold: int | None = None, held_out: Rows | None = None) -> None:
        self.used = self.scales
        if fold is not None and self.of_folds:
            self.used = self.of_folds[fold]
        if len(rows) <= ALL_ROWS:
            self._fit_on_all(rows)
            return
        if fold is None and self.sums is not None and len(rows.folds) == 1:
            rest = rows.take(rows.folds[0][1])
            sums = self.sums.add(self.used, self._look(rest.Z), rest)
        else:
            sums = self._sums_of(rows)
        self.sums = None if fold is None else sums
        self.centers = sums.centers
        self.coef = sums.solve(self.used.noise)

    def _fit_on_all(self, rows: Rows) -> None:
        """Every row is a center."""
        X = self._look(rows.Z)
        K = self.used.compare(X, X)
        K[np.diag_indices_from(K)] += self.used.noise / rows.weight
        self.centers = X
        self.coef = cho_solve(cho_factor(K, lower=True, overwrite_a=True), rows.Y)

    def _sums_of(self, rows: Rows) -> Sums:
        """Normal equations of some centers over at most `MOST_ROWS` rows."""
        order = np.random.RandomState(rows.seed).permutation(len(rows))[:MOST_ROWS]
        some = rows.take(order)
        X = self._look(some.Z)
        centers = X[:CENTERS]
        C = self.used.compare(centers, centers)
        nothing = Sums(centers, C, np.zeros_like(C), np.zeros_like(some.Y[:CENTERS]))
        return nothing.add(self.used, X, some)

    def predict(self, Z: NDArray) -> NDArray:
        X = self._look(Z)
        outputs = np.empty((len(X), self.coef.shape[1]))
        for some in row_blocks(len(X), 8.0 * len(self.centers), IN_CACHE):
            outputs[some] = self.used.compare(X[some], self.centers) @ self.coef
        return outputs

    def _look(self, Z: NDArray) -> NDArray:
        return Z if self.view is None else self.view(Z)


def one_bandwidth(rows: Rows) -> Scales:
    """The same bandwidth for all features, at which typical distances are near 1."""
    n_features = rows.Z.shape[1]
    return Scales(np.full(n_features, 1.0 / n_features))


def scales_of_views(rows: Rows, tails: Tails, search: Search) -> tuple[Scales, Scales]:
    """Bandwidths by the evidence, of the rows as they are and with short tails."""
    plain = one_bandwidth(rows).by_evidence(rows, rows.Z, search.steps)
    short = plain.by_evidence(rows, tails(rows.Z), search.steps_again)
    return plain, short


def kernel_members(rows: Rows) -> list[Kernel]:
    """Gaussian and Laplace machines with a bandwidth for each feature, and with one for all; of many rows the best."""
    tails = Tails.fit(rows.Z)
    part = rows
    plain_of_folds: list[Scales] = []
    short_of_folds: list[Scales] = []
    if len(rows.folds) == 1:
        part = rows.take(rows.folds[0][0])
    else:
        for train, _ in rows.folds:
            plain, short = scales_of_views(rows.take(train), tails, OF_FOLD)
            plain_of_folds.append(plain)
            short_of_folds.append(short)
    search = THOROUGH if len(rows) <= ALL_ROWS else OF_MANY_ROWS
    plain, short = scales_of_views(part, tails, search)

    X = tails(part.Z)
    laplace = short.by_leave_one_out(part, X, is_laplace=True)
    factor = laplace.s / short.s
    laplace_of_folds = [laplace._replace(s=factor * scales.s) for scales in short_of_folds]
    one = one_bandwidth(part)
    gaussian_of_one = one.by_leave_one_out(part, X, is_laplace=False)
    laplace_of_one = one.by_leave_one_out(part, X, is_laplace=True)
    machines = [
        Kernel("Gaussian", None, plain, plain_of_folds),
        Kernel("Gaussian, short tails", tails, short, short_of_folds),
        Kernel("Laplace, short tails", tails, laplace, laplace_of_folds),
        Kernel("Gaussian, one bandwidth", tails, gaussian_of_one),
        Kernel("Laplace, one bandwidth", tails, laplace_of_one),
    ]
    return machines if len(rows) <= ALL_ROWS else best_at_first_look(machines, rows)


def best_at_first_look(machines: list[Kernel], rows: Rows) -> list[Kernel]:
    """The machines of least error in the first fold if they learn from few of its rows."""
    train, test = rows.folds[0]
    few = rows.take(np.random.RandomState(rows.seed).permutation(train)[:LOOK_ROWS])
    held_out = rows.take(test[: 2 * LOOK_ROWS])

    def error(machine: Kernel) -> float:
        machine.fit(few, 0)
        return held_out.error_of(machine.predict(held_out.Z))

    return sorted(machines, key=error)[:N_BEST]
