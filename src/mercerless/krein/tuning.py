"""Tune kernel, penalties and radius of least squares in Krein spaces by descent of the held-out error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from mercerless.core.descent import Descent, GradientSearch, Report, minimize_with_restarts
from mercerless.core.units import Standardizer
from mercerless.core.validation import check_symmetric
from mercerless.kernels import DeltaGauss, Epanechnikov, Gaussian, Kernel, Sigmoid
from mercerless.krein.selection import Candidates, Family, KreinRows
from mercerless.krein.solver import LossPullback, TrainingSpectrum, spectral_loss, training_spectrum


class ValidationObjective:
    """Logarithm of the mean squared error over folds and its gradient, as a function of one vector.

    The vector holds the kernel's theta, then the logarithms of those of alpha_positive, alpha_negative and
    radius / std(y) not given. The error is relative to the variance of the targets.
    """

    def __init__(self, rows: KreinRows, family: Family, candidates: Candidates):
        self.rows = rows
        self.family = family
        self.given = candidates
        values = (candidates.alpha_positive, candidates.alpha_negative, candidates.radius)
        for name, each, relative in zip(candidates._fields, values, candidates.relative):
            if not relative and len(np.unique(each, axis=0)) > 1:
                raise ValueError(
                    f"GradientSearch takes one number or None as {name}; several are for "
                    "search=None."
                )
        units = Standardizer.fit(rows.Y, rows.weight)
        self.std = units.spread
        #: All outputs count alike, whatever their units.
        self.Y = units(rows.Y)
        #: Training and held-out rows of every fold.
        self.splits = [
            (np.flatnonzero(rows.folds != fold), np.flatnonzero(rows.folds == fold))
            for fold in range(rows.n_folds)
        ]
        K = self._matrix(rows.basis.kernel)
        self.scale = float(np.abs(K).max()) or 1.0
        #: The matrix and the decompositions of the folds, kept if the kernel has nothing to tune.
        self.kept = None
        if len(rows.basis.kernel.theta) == 0:
            self.kept = K, list(self._spectra(K))
        is_there = (True, family.regularizer == "components", family.constraint is not None)
        names = zip(("positive", "negative", "radius"), is_there, candidates.relative)
        self.free = [name for name, there, relative in names if there and relative]

    def _matrix(self, kernel: Kernel) -> NDArray:
        return check_symmetric(kernel(self.rows.basis.items), "the kernel matrix")

    def bounds(self) -> NDArray:
        """A box around the kernel's usual parameters, and the ranges of the others."""
        alphas = np.log(np.multiply((1e-10, 1e4), self.scale))
        limits = {"positive": alphas, "negative": alphas, "radius": np.log((1e-3, 10.0))}
        kernel = self.rows.basis.kernel
        middle = initial_theta(kernel, self.rows.basis.items, np.random.RandomState(0))
        reach = np.maximum(5.0, np.abs(middle))
        around = np.column_stack([middle - reach, middle + reach])
        lowest, highest = kernel.bounds.T
        is_usual = (lowest < middle) & (middle < highest)
        within = np.clip(around, lowest[:, None], highest[:, None])
        of_kernel = np.where(is_usual[:, None], within, around)
        return np.vstack([of_kernel, *[limits[name] for name in self.free]])

    def start(self, random: np.random.RandomState) -> NDArray:
        """A random start after Oglic and Gaertner (2018), appendix E.1, on scales that do not depend on units."""
        theta = initial_theta(self.rows.basis.kernel, self.rows.basis.items, random)
        n = len(self.rows.Y)
        y = self.rows.Y[:, 0]
        width = np.ptp(y) or 1.0
        square = ((y - y.mean()) / width) ** 2
        low = max(1e-4, square.mean() - 2.5 * square.std())
        high = square.mean() + 2.5 * square.std()
        draws = {
            "positive": self.scale * random.choice(np.logspace(-1, 2, 5)) / n,
            "negative": self.scale * random.choice(np.logspace(-1, 2, 5)) / n,
            "radius": np.sqrt((high - low) * random.uniform() + low) * width / (self.std[0] or 1.0),
        }
        return np.r_[theta, [np.log(draws[name]) for name in self.free]]

    def unpack(self, x: NDArray) -> tuple[Kernel, float, float, NDArray]:
        """The kernel, both penalties and the radius of a vector."""
        cut = len(self.rows.basis.kernel.theta)
        values = dict(zip(self.free, np.exp(x[cut:])))
        plus = values.get("positive", self.given.alpha_positive[0])
        equal_penalties = self.given.relative[1]
        minus = values.get("negative", plus if equal_penalties else self.given.alpha_negative[0])
        radius = self.given.radius[0]
        if "radius" in values:
            radius = values["radius"] * self.std
        kernel = self.rows.basis.kernel.with_theta(x[:cut]) if cut else self.rows.basis.kernel
        return kernel, float(plus), float(minus), radius

    def candidates(self, x: NDArray) -> Candidates:
        """The penalties and the radius of a vector as the only candidates."""
        _, plus, minus, radius = self.unpack(x)
        absolute = (False, False, False)
        return Candidates(np.array([plus]), np.array([minus]), np.atleast_2d(radius), absolute)

    def _spectra(self, K: NDArray) -> Iterator[TrainingSpectrum]:
        """The decompositions of the training parts of all folds."""
        rows = self.rows
        for train, _ in self.splits:
            yield training_spectrum(
                K[np.ix_(train, train)],
                self.Y[train],
                rows.weight[train],
                intercept=self.family.intercept,
                overwrite=True,
            )

    def __call__(self, x: NDArray) -> tuple[float, NDArray]:
        kernel, plus, minus, radius = self.unpack(x)
        radius = radius / np.where(self.std > 0, self.std, 1.0)
        if self.kept is None:
            K = self._matrix(kernel)
            spectra: Iterable[TrainingSpectrum] = self._spectra(K)
        else:
            K, spectra = self.kept
        rows, family = self.rows, self.family
        n_folds = len(self.splits)
        loss = 0.0
        gradient = dict.fromkeys(("positive", "negative", "radius"), 0.0)
        cotangents = []
        for (train, test), spectrum in zip(self.splits, spectra):
            of_fold = spectral_loss(
                spectrum,
                K[np.ix_(test, train)],
                self.Y[test],
                plus,
                minus,
                radius,
                weight_val=rows.weight[test],
                regularizer=family.regularizer,
                constraint=family.constraint,
                intercept=family.intercept,
                kernel_gradient=self.kept is None,
            )
            loss += of_fold.loss / n_folds
            gradient["positive"] += of_fold.alpha_positive * plus / n_folds
            gradient["negative"] += of_fold.alpha_negative * minus / n_folds
            if family.constraint is not None:
                gradient["radius"] += float(np.sum(of_fold.radius * radius)) / n_folds
            if self.kept is None:
                cotangents.append(_cotangent(of_fold, train, test, len(K)))
        theta = np.zeros(0)
        if self.kept is None:
            left, right = (np.hstack(sides) for sides in zip(*cotangents))
            G = left @ (right.T / n_folds)
            if not np.all(np.isfinite(G)):
                return 1e3, np.zeros_like(x)
            theta = kernel.pullback(rows.basis.items, None, G)
        full = np.r_[theta, [gradient[name] for name in self.free]]
        if not (np.isfinite(loss) and np.all(np.isfinite(full))):
            return 1e3, np.zeros_like(x)
        loss = max(loss, np.finfo(float).tiny)
        return float(np.log(loss)), full / loss


def _cotangent(
    of_fold: LossPullback, train: NDArray, test: NDArray, n: int
) -> tuple[NDArray, NDArray]:
    """Factors of one fold's cotangent of the matrix of all n rows."""
    rank = of_fold.left.shape[1]
    left = np.zeros((n, rank + of_fold.coef.shape[1]))
    right = np.zeros_like(left)
    left[train, :rank] = of_fold.left
    right[train, :rank] = of_fold.right
    left[test, rank:] = of_fold.residual
    right[train, rank:] = of_fold.coef
    return left, right


def tune_by_gradient(
    objective: ValidationObjective,
    search: GradientSearch,
    random: np.random.RandomState,
    report: Report | None = None,
) -> Descent:
    """Descend the mean held-out error in the kernel's parameters, penalties and radius; values are errors again."""
    starts = [objective.start(random) for _ in range(max(1, search.n_restarts))]
    if len(starts[0]) == 0:
        raise ValueError(
            "GradientSearch has nothing to tune: the kernel has no parameters and all penalties "
            "are given; use search=None."
        )
    descent = minimize_with_restarts(
        objective,
        starts,
        objective.bounds(),
        max_iter=search.max_iter,
        tol=search.tol,
        callback=report,
    )
    return descent._replace(value=float(np.exp(descent.value)), values=np.exp(descent.values))


def initial_theta(kernel: Kernel, X: Any, random: np.random.RandomState) -> NDArray:
    """Random kernel parameters: by the paper's rule if it has one for the kernel, else near the given ones."""
    theta = kernel.theta
    if len(theta) == 0:
        return theta
    c = 0.4 * (1.0 + random.uniform(size=len(theta)))
    is_shared = np.ndim(getattr(kernel, "length_scale", 0)) == 0
    if isinstance(kernel, (Gaussian, DeltaGauss)) and is_shared:
        some = X[random.permutation(len(X))[:500]]
        squares = pdist(some, "sqeuclidean")
        typical = np.median(squares) if len(squares) else 1.0
        scale = np.sqrt((typical or 1.0) / c[0])
        if isinstance(kernel, DeltaGauss):
            shift = random.uniform(-0.95, 0.95)
            return np.log([(1 - shift) * scale, (1 + shift) * scale])
        return np.log([scale])
    root = 1.0 if is_shared else np.sqrt(X.shape[1])
    if isinstance(kernel, Gaussian):
        width = np.ptp(X, axis=0)
        return np.log(root * c * np.where(width > 0, width, 1.0))
    if isinstance(kernel, (Sigmoid, Epanechnikov)):
        size = np.linalg.norm(X, axis=1).max() if is_shared else np.abs(X).max(axis=0)
        size = root * np.atleast_1d(np.where(size > 0, size, 1.0))
        power = 1.0 if isinstance(kernel, Epanechnikov) else 0.5
        return np.r_[np.log(size / c[: len(size)] ** power), theta[len(size) :]]
    return theta + random.uniform(-1.0, 1.0, size=len(theta))
