"""Choose the penalties of least squares in Krein spaces: one decomposition per fold, then every candidate is cheap.

`Family` is the problem to solve, `Candidates` are its penalties and radii. `ExactProblem` and
`LandmarkProblem` make the folds; `ValidationObjective` is the held-out error as a smooth function of all parameters.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches

from mercerless.core.basis import Basis
from mercerless.core.blocks import reduce_rows, take_rows
from mercerless.core.calibration import Calibration, calibrate_scores
from mercerless.core.descent import Descent, GradientSearch, Report, minimize_with_restarts
from mercerless.core.memory import row_blocks
from mercerless.core.validation import check_symmetric
from mercerless.kernels import DeltaGauss, Epanechnikov, Gaussian, Kernel, Sigmoid
from mercerless.krein.solver import (
    KreinSystem,
    LossPullback,
    TrainingSpectrum,
    augmented_rows,
    build_low_rank_system,
    build_system,
    row_factor,
    spectral_loss,
    spectral_solution,
    training_spectrum,
)
from mercerless.krein.thresholds import LIMITS
from mercerless.lowrank import LandmarkMap, nystroem


class Sphere(BaseEstimator):
    """Fix the standard deviation of f on the training rows: a `constraint` of the Krein least-squares models.

    Parameters
    ----------
    radius : float, array-like or None, default=None
        That standard deviation; several are candidates for cross-validation (an array of shape (n_radii, n_outputs)
        has one per output). None: factors from .25 to 1 of the targets' own.

    See Also
    --------
    Ball : Bounds it instead.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge, Sphere
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge(constraint=Sphere(0.5), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(float(model.predict(X).std()), 8)
    0.5
    """

    def __init__(self, radius: ArrayLike | None = None):
        self.radius = radius


class Ball(Sphere):
    """Bound the standard deviation of f on the training rows: a `constraint` of the Krein least-squares models.

    Parameters
    ----------
    radius : float, array-like or None, default=None
        The bound, or several to choose from, as for `Sphere`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import Ball, KreinRidge
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge(constraint=Ball(0.5), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.predict(X).std() < 0.5 + 1e-8)
    True
    """


class Family(NamedTuple):
    """Which of the problems of `krein.solver` is solved."""

    regularizer: str
    constraint: str | None
    intercept: bool


class Candidates(NamedTuple):
    """Penalties and radii to choose from, one per row; relative ones are made absolute for each decomposition."""

    alpha_positive: NDArray  # (S,) or, if relative, n alpha / max|s|
    alpha_negative: NDArray  # (S,) or, if relative, the ratio to alpha_positive
    # (S, 1) or (S, n_outputs) or, if relative, factors of the targets' root mean squares; inf without constraint
    radius: NDArray
    relative: tuple[bool, bool, bool]

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.alpha_positive)

    def take(self, chosen: slice) -> "Candidates":
        """A range of the candidates."""
        return Candidates(
            self.alpha_positive[chosen],
            self.alpha_negative[chosen],
            self.radius[chosen],
            self.relative,
        )

    def resolve(self, system: KreinSystem, regularizer: str) -> "Candidates":
        """The same in absolute numbers, with a radius for each output."""
        plus = self.alpha_positive
        minus = self.alpha_negative
        radius = np.broadcast_to(self.radius, (self.size, len(system.spread)))
        relative_plus, relative_minus, relative_radius = self.relative
        if relative_plus and regularizer != "covariance":
            plus = plus * (np.abs(system.values).max(initial=0.0) / system.n)
        if relative_minus:
            minus = minus * plus
        if relative_radius:
            radius = radius * system.spread
        return Candidates(plus, minus, radius, (False, False, False))


def make_candidates(
    alpha_positive: ArrayLike | None,
    alpha_negative: ArrayLike | None,
    constraint: Sphere | None,
    regularizer: str,
    n_outputs: int = 1,
    ratios: Sequence[float] = LIMITS.ratios,
) -> Candidates:
    """All combinations of the given penalties and radii, which are checked, and of the defaults for the others."""
    plus = np.array(LIMITS.strengths)
    if alpha_positive is not None:
        plus = np.sort(_nonnegative(alpha_positive, "alpha_positive"))[::-1]
    minus = np.array(ratios)
    if alpha_negative is not None:
        minus = _nonnegative(alpha_negative, "alpha_negative")
    has_two_penalties = regularizer == "components"
    if not has_two_penalties:
        minus = np.ones(1)
    radii, radius_is_relative = _radii(constraint, n_outputs)
    i, j, k = (indices.ravel() for indices in np.indices((len(minus), len(plus), len(radii))))
    relative = (
        alpha_positive is None,
        alpha_negative is None or not has_two_penalties,
        radius_is_relative,
    )
    return Candidates(plus[j], minus[i], radii[k], relative)


def _radii(constraint: Sphere | None, n_outputs: int) -> tuple[NDArray, bool]:
    """Radii (n_radii, 1 or n_outputs) to choose from, and whether they are relative to the targets."""
    if constraint is None:
        return np.full((1, 1), np.inf), False
    if constraint.radius is None:
        return np.array(LIMITS.radii)[:, None], True
    radii = _nonnegative(constraint.radius, "radius", 2)
    if radii.shape[1] not in (1, n_outputs):
        raise ValueError(f"radius has {radii.shape[1]} columns, but y has {n_outputs} outputs.")
    return radii, False


def _nonnegative(values: ArrayLike, name: str, ndim: int = 1) -> NDArray:
    """One nonnegative number or several, as an array of `ndim` axes whose first runs over candidates."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.size == 0 or array.ndim > ndim or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError(
            f"{name} must be a nonnegative number, several to choose from, or None, got {values!r}."
        )
    return array if array.ndim == ndim else array.reshape(array.size, *[1] * (ndim - 1))


class KreinRows(NamedTuple):
    """The rows that carry weight."""

    basis: Basis
    Y: NDArray
    weight: NDArray
    folds: NDArray  # the fold that holds each of them out
    groups: NDArray | None = None  # which of them are held out together

    def groups_of(self, places: NDArray) -> NDArray | None:
        """The groups of some of these rows, if there are groups."""
        if self.groups is None:
            return None
        return self.groups[places]

    @property
    def items(self) -> Any:
        """The items."""
        return self.basis.items

    @property
    def kernel(self) -> Kernel:
        """The kernel that compares them."""
        return self.basis.kernel

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.folds.max()) + 1


class KreinFold(NamedTuple):
    """One split: the decomposed training part, and rows ``basis(x)``, targets and weights of the held-out part.

    The held-out part may also be the triangular factor of its rows ``sqrt(weight) * [1, basis, target]``, with weights
    of one: sums of squares are the same.
    """

    system: KreinSystem
    constant: NDArray  # (n_held_out,), the column of ones, or its part of the factor
    basis: NDArray  # (n_held_out, n_basis)
    target: NDArray  # (n_held_out, n_outputs)
    weight: NDArray


class ExactProblem:
    """The folds and the whole of a problem on the full kernel matrix: one decomposition each."""

    def __init__(self, rows: KreinRows, K: NDArray, intercept: bool):
        self.rows = rows
        self.K = K
        self.intercept = intercept

    def folds(self) -> Iterator[KreinFold]:
        """The folds, for `squared_errors`."""
        return (fold for fold, _ in self.row_folds())

    def chosen(
        self, predictions: list[NDArray], index: int, candidates: Candidates, family: Family
    ) -> tuple[NDArray, NDArray]:
        """All rows in the order of the folds, and one candidate's predictions of `squared_errors` for them."""
        order = np.argsort(self.rows.folds, kind="stable")
        return order, np.concatenate([each[:, index] for each in predictions])

    def row_folds(self) -> Iterator[tuple[KreinFold, NDArray]]:
        """The folds, and which rows they hold out."""
        for number in range(self.rows.n_folds):
            train = np.flatnonzero(self.rows.folds != number)
            test = np.flatnonzero(self.rows.folds == number)
            Y = self.rows.Y
            weight = self.rows.weight
            system = build_system(
                self.K[np.ix_(train, train)],
                Y[train],
                weight[train],
                intercept=self.intercept,
                overwrite=True,
            )
            basis = self.K[np.ix_(test, train)]
            yield KreinFold(system, np.ones(len(test)), basis, Y[test], weight[test]), test

    def system(self) -> KreinSystem:
        """The problem of all rows."""
        return build_system(self.K, self.rows.Y, self.rows.weight, intercept=self.intercept)

    def fitted_basis(self) -> Basis:
        """The rows, with which new items are compared."""
        return self.rows.basis.fitted()

    def dual(self, coef: NDArray) -> NDArray:
        """Coefficients of similarities to the rows."""
        return coef


class LandmarkProblem:
    """The same on landmarks: one pass over blocks of rows, keeping only triangular factors."""

    def __init__(
        self,
        rows: KreinRows,
        landmarks: NDArray,
        intercept: bool,
        block_bytes: int,
        scored_rows: int,
        random: np.random.RandomState,
    ):
        self.rows = rows
        self.landmarks = landmarks
        self.intercept = intercept
        self.random = random
        self.block_bytes = block_bytes
        self.scored_rows = scored_rows
        self.systems: list[KreinSystem] = []  # of the folds, once they were built
        low_rank = nystroem(rows.kernel, rows.items, landmarks, random_state=random)
        self.features = low_rank.feature_map(rows.kernel, rows.items)
        self.signs = low_rank.signs
        # a block's similarities, its features, and their copy with the targets; the factors need less
        self.bytes_per_row = 24.0 * (len(landmarks) + rows.Y.shape[1])
        self.factors = reduce_rows(
            partial(_fold_factors, self.features, len(self.signs), rows.n_folds),
            _merge_factors,
            (rows.items, rows.Y, rows.weight, rows.folds),
            self.bytes_per_row,
            block_bytes,
        )

    def folds(self) -> Iterator[KreinFold]:
        """Folds from triangular factors alone: training on the others, squared errors on one; no rows are needed."""
        k = len(self.signs)
        for i, held_out in enumerate(self.factors):
            if i == len(self.systems):
                others = row_factor(
                    (R for j, R in enumerate(self.factors) if j != i), held_out.shape[1]
                )
                self.systems.append(
                    build_low_rank_system(others, self.signs, intercept=self.intercept)
                )
            constant = held_out[:, 0]
            basis = held_out[:, 1 : 1 + k]
            target = held_out[:, 1 + k :]
            yield KreinFold(self.systems[i], constant, basis, target, np.ones(len(held_out)))

    def chosen(
        self, predictions: list[NDArray], index: int, candidates: Candidates, family: Family
    ) -> tuple[NDArray, NDArray]:
        """Some rows of every fold, and one candidate's predictions for them."""
        only = candidates.take(slice(index, index + 1))
        return held_out_predictions(self.row_folds(), only, family)

    def row_folds(self) -> Iterator[tuple[KreinFold, NDArray]]:
        """The folds, and which rows they hold out: at most `scored_rows` of each, in blocks."""
        for i, fold in enumerate(self.folds()):
            rows = np.flatnonzero(self.rows.folds == i)
            if len(rows) > self.scored_rows:
                rows = np.sort(self.random.choice(rows, self.scored_rows, replace=False))
            for span in row_blocks(len(rows), self.bytes_per_row, self.block_bytes):
                block = rows[span]
                basis = self.features(take_rows(self.rows.items, block))
                held_out = KreinFold(
                    fold.system,
                    np.ones(len(block)),
                    basis,
                    self.rows.Y[block],
                    self.rows.weight[block],
                )
                yield held_out, block

    def system(self) -> KreinSystem:
        """The problem of all rows."""
        factor = row_factor(self.factors, self.factors[0].shape[1])
        return build_low_rank_system(factor, self.signs, intercept=self.intercept)

    def fitted_basis(self) -> Basis:
        """The landmarks, with which new items are compared."""
        return self.rows.basis.fitted(self.landmarks)

    def dual(self, coef: NDArray) -> NDArray:
        """Coefficients of similarities to the landmarks."""
        return np.tensordot(self.features.weights, coef, axes=(1, 0))


def _fold_factors(
    features: LandmarkMap,
    n_features: int,
    n_folds: int,
    rows: NDArray,
    Y: NDArray,
    weight: NDArray,
    fold_of: NDArray,
) -> list[NDArray]:
    """The triangular factor of ``[1, features, Y]`` for the rows of every fold in one block of rows."""
    factors = []
    width = 1 + n_features + Y.shape[1]
    for fold in range(n_folds):
        members = np.flatnonzero(fold_of == fold)
        # LAPACK's order, so that it is factorized in place
        augmented = np.empty((len(members), width), order="F")
        # blocks small enough for the processor's cache
        for span in row_blocks(len(members), 8.0 * width, 2**22):
            block = members[span]
            augmented[span] = augmented_rows(features(rows[block]), Y[block], weight[block])
        factors.append(row_factor([augmented], width, overwrite=True))
    return factors


def _merge_factors(first: list[NDArray], second: list[NDArray]) -> list[NDArray]:
    """The factors of the rows of two blocks from the factors of each."""
    return [row_factor(pair, pair[0].shape[1]) for pair in zip(first, second)]


def _fold_predictions(
    fold: KreinFold, candidates: Candidates, family: Family
) -> Iterator[tuple[slice, NDArray]]:
    """Held-out predictions of all candidates, in blocks: (their slice, (n_held_out, candidates, n_outputs))."""
    system = fold.system
    n_outputs = len(system.offset)
    basis = fold.basis - fold.constant[:, None] * system.center
    # lift the coefficients or the basis, whichever is cheaper
    lift_coef = candidates.size * n_outputs <= system.lift.shape[1]
    if not lift_coef:
        basis = basis @ system.lift
    absolute = candidates.resolve(system, family.regularizer)
    for batch in gen_batches(candidates.size, 64):
        plus, minus, radius, _ = absolute.take(batch)
        solution = spectral_solution(
            system, plus, minus, radius, family.regularizer, family.constraint
        )
        n_problems = (batch.stop - batch.start) * n_outputs
        coef = (solution.coef / system.values).reshape(n_problems, len(system.values)).T
        if lift_coef:
            coef = system.lift @ coef
        predicted = (basis @ coef.astype(basis.dtype)).reshape(len(basis), -1, n_outputs)
        yield batch, predicted + fold.constant[:, None, None] * system.offset


def squared_errors(
    folds: Iterable[KreinFold],
    candidates: Candidates,
    family: Family,
    predictions: list[NDArray] | None = None,
) -> NDArray:
    """Mean squared held-out error of every fold and candidate, shape (n_folds, S), outputs divided by their spread.

    The predictions (n_held_out, S, n_outputs) of every fold are appended to `predictions`, if that is given.
    """
    table = []
    for fold in folds:
        spread = np.where(fold.system.spread > 0, fold.system.spread, 1.0) ** 2
        total = fold.weight @ fold.constant**2
        errors = np.empty(candidates.size)
        pieces = []
        for batch, predicted in _fold_predictions(fold, candidates, family):
            if predictions is not None:
                pieces.append(predicted)
            square = (predicted - fold.target[:, None, :]) ** 2
            square *= fold.weight[:, None, None]
            errors[batch] = (square.sum(axis=0) / spread).mean(axis=1) / total
        table.append(errors)
        if predictions is not None:
            predictions.append(np.concatenate(pieces, axis=1))
    return np.array(table)


def held_out_predictions(
    folds: Iterable[tuple[KreinFold, NDArray]], candidates: Candidates, family: Family
) -> tuple[NDArray, NDArray]:
    """The rows that were held out, and the predictions (n_held_out, n_outputs) of the only candidate for them."""
    pieces = []
    places = []
    for fold, held_out in folds:
        pieces += [predicted[:, 0] for _, predicted in _fold_predictions(fold, candidates, family)]
        places.append(held_out)
    return np.concatenate(places), np.concatenate(pieces)


def held_out_calibrations(
    folds: Iterable[tuple[KreinFold, NDArray]],
    candidates: Candidates,
    family: Family,
    labels: NDArray,
    weight: NDArray,
    columns: Callable[[NDArray], NDArray],
) -> tuple[list[Calibration], NDArray, NDArray]:
    """Calibrate every candidate's held-out scores; `columns` makes one column of scores per class.

    Returns the calibrations with their log-losses, the scores (S, n_held_out, n_outputs), and the rows they belong to.
    """
    pieces = []
    places = []
    for fold, held_out in folds:
        piece = np.empty((candidates.size, *fold.target.shape))
        for batch, predicted in _fold_predictions(fold, candidates, family):
            piece[batch] = predicted.transpose(1, 0, 2)
        pieces.append(piece)
        places.append(held_out)
    scores = np.concatenate(pieces, axis=1)
    rows = np.concatenate(places)
    weight = weight[rows]
    calibrations = [calibrate_scores(columns(each), labels[rows], weight) for each in scores]
    return calibrations, scores, rows


def least(errors: Sequence[float] | NDArray) -> int:
    """The first of the smallest errors that are numbers."""
    return int(np.argmin(np.where(np.isnan(errors), np.inf, errors)))


class ValidationObjective:
    """Logarithm of the mean squared error over folds and its gradient, as a function of one vector.

    The logarithm makes the first step of the descent independent of the units of the targets. The vector holds the
    kernel's theta, then the logarithms of those of alpha_positive, alpha_negative and radius / std(y) not given. With
    `standardize` all outputs count alike, whatever their units.
    """

    def __init__(
        self, rows: KreinRows, family: Family, candidates: Candidates, standardize: bool = False
    ):
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
        center = np.average(rows.Y, axis=0, weights=rows.weight)
        self.std = np.sqrt(np.average((rows.Y - center) ** 2, axis=0, weights=rows.weight))
        #: Units of the outputs, relative to each other; one output stays as it is.
        self.units = np.ones_like(self.std)
        if standardize and np.any(self.std > 0):
            typical = np.sqrt(np.mean(self.std**2))
            self.units = np.where(self.std > 0, self.std, typical) / typical
        K = self._matrix(rows.kernel)
        self.K = None if len(rows.kernel.theta) else K
        #: Decompositions of the folds, kept if the kernel has nothing to tune.
        self.spectra: dict[int, TrainingSpectrum] = {}
        self.scale = float(np.abs(K).max()) or 1.0
        is_there = (True, family.regularizer == "components", family.constraint is not None)
        names = zip(("positive", "negative", "radius"), is_there, candidates.relative)
        self.free = [name for name, there, relative in names if there and relative]

    def _matrix(self, kernel: Kernel) -> NDArray:
        return check_symmetric(kernel(self.rows.items), "the kernel matrix")

    def bounds(self) -> NDArray:
        """A box around the kernel's usual parameters, and the ranges of the others."""
        alphas = np.log(np.multiply((1e-10, 1e4), self.scale))
        limits = {"positive": alphas, "negative": alphas, "radius": np.log((1e-3, 10.0))}
        kernel = self.rows.kernel
        middle = initial_theta(kernel, self.rows.items, np.random.RandomState(0))
        reach = np.maximum(5.0, np.abs(middle))
        lowest, highest = kernel.bounds.T
        low = np.maximum(lowest, middle - reach)
        high = np.minimum(highest, middle + reach)
        of_kernel = np.column_stack([low, high])
        of_others = [limits[name] for name in self.free]
        return np.vstack([of_kernel, *of_others])

    def start(self, random: np.random.RandomState) -> NDArray:
        """A random start after Oglic and Gaertner (2018), appendix E.1, on scales that do not depend on units."""
        theta = initial_theta(self.rows.kernel, self.rows.items, random)
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
        cut = len(self.rows.kernel.theta)
        values = dict(zip(self.free, np.exp(x[cut:])))
        plus = values.get("positive", self.given.alpha_positive[0])
        equal_penalties = self.given.relative[1]
        minus = values.get("negative", plus if equal_penalties else self.given.alpha_negative[0])
        radius = self.given.radius[0]
        if "radius" in values:
            radius = values["radius"] * self.std
        kernel = self.rows.kernel.with_theta(x[:cut]) if cut else self.rows.kernel
        return kernel, float(plus), float(minus), radius

    def candidates(self, x: NDArray) -> Candidates:
        """The penalties and the radius of a vector as the only candidates."""
        _, plus, minus, radius = self.unpack(x)
        absolute = (False, False, False)
        return Candidates(np.array([plus]), np.array([minus]), np.atleast_2d(radius), absolute)

    def __call__(self, x: NDArray) -> tuple[float, NDArray]:
        kernel, plus, minus, radius = self.unpack(x)
        radius = radius / self.units
        tunes_kernel = self.K is None
        K = self._matrix(kernel) if self.K is None else self.K
        n_folds = self.rows.n_folds
        loss = 0.0
        gradient = dict.fromkeys(("positive", "negative", "radius"), 0.0)
        cotangents = []
        for number in range(n_folds):
            of_fold = self._fold(number, K, plus, minus, radius)
            loss += of_fold.loss / n_folds
            gradient["positive"] += of_fold.alpha_positive * plus / n_folds
            gradient["negative"] += of_fold.alpha_negative * minus / n_folds
            if self.family.constraint is not None:
                gradient["radius"] += float(np.sum(of_fold.radius * radius)) / n_folds
            if tunes_kernel:
                cotangents.append(self._cotangent(number, of_fold))
        theta = np.zeros(0)
        if tunes_kernel:
            left, right = (np.hstack(sides) for sides in zip(*cotangents))
            G = left @ (right.T / n_folds)
            if not np.all(np.isfinite(G)):
                return 1e3, np.zeros_like(x)
            theta = kernel.pullback(self.rows.items, None, G)
        full = np.r_[theta, [gradient[name] for name in self.free]]
        if not (np.isfinite(loss) and np.all(np.isfinite(full))):
            return 1e3, np.zeros_like(x)
        loss = max(loss, np.finfo(float).tiny)
        return float(np.log(loss)), full / loss

    def _split(self, number: int) -> tuple[NDArray, NDArray]:
        """Training and held-out rows of a fold."""
        train = np.flatnonzero(self.rows.folds != number)
        test = np.flatnonzero(self.rows.folds == number)
        return (train if len(train) else test), test

    def _fold(
        self, number: int, K: NDArray, plus: float, minus: float, radius: NDArray
    ) -> LossPullback:
        """One fold's error and its gradient; its decomposition is kept if the kernel has nothing to tune.

        The radius is in the units of the outputs.
        """
        rows = self.rows
        Y = rows.Y / self.units
        family = self.family
        train, test = self._split(number)
        spectrum = self.spectra.get(number)
        if spectrum is None:
            spectrum = training_spectrum(
                K.take(train, axis=0).take(train, axis=1),
                Y[train],
                rows.weight[train],
                intercept=family.intercept,
                overwrite=True,
            )
            if self.K is not None:
                self.spectra[number] = spectrum
        return spectral_loss(
            spectrum,
            K[np.ix_(test, train)],
            Y[test],
            plus,
            minus,
            radius,
            weight_val=rows.weight[test],
            regularizer=family.regularizer,
            constraint=family.constraint,
            intercept=family.intercept,
            kernel_gradient=self.K is None,
        )

    def _cotangent(self, number: int, of_fold: LossPullback) -> tuple[NDArray, NDArray]:
        """Factors of one fold's cotangent of the matrix of all rows."""
        train, test = self._split(number)
        n_outputs = of_fold.coef.shape[1]
        rank = of_fold.left.shape[1]
        left = np.zeros((len(self.rows.Y), rank + n_outputs))
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
    if isinstance(kernel, (Gaussian, DeltaGauss)) and np.ndim(kernel.length_scale) == 0:
        rows = X[random.permutation(len(X))[:500]]
        squared = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)[
            np.triu_indices(len(rows), 1)
        ]
        scale = np.sqrt((np.median(squared) if len(squared) else 1.0) or 1.0) / np.sqrt(c[0])
        if isinstance(kernel, DeltaGauss):
            shift = random.uniform(-0.95, 0.95)
            return np.log([(1 - shift) * scale, (1 + shift) * scale])
        return np.array([np.log(scale)])
    if isinstance(kernel, Gaussian):
        return np.log(
            np.sqrt(X.shape[1]) * c * np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
        )
    if isinstance(kernel, (Sigmoid, Epanechnikov)):
        size = (
            np.abs(X).max(axis=0)
            if np.ndim(kernel.length_scale)
            else np.linalg.norm(X, axis=1).max()
        )
        size = np.atleast_1d(np.where(size > 0, size, 1.0))
        m = len(size)
        size = size * np.sqrt(X.shape[1] if m > 1 else 1)
        power = 1.0 if isinstance(kernel, Epanechnikov) else 0.5
        return np.r_[np.log(size / c[:m] ** power), theta[m:]]
    return theta + random.uniform(-1.0, 1.0, size=len(theta))
