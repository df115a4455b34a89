"""Choose ridge and side of regressions with asymmetric kernels by the exact leave-one-out error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from mercerless.asymmetric.solver import (
    AsymmetricRidgeSolution,
    LandmarkComparisons,
    asymmetric_ridge,
    coupled_ridge,
    landmark_ridge,
)
from mercerless.core.averaging_old import TWO_SIDES, average


def _shares_of_sides() -> Mapping[str, tuple[float, float]]:
    return {"left": (1.0, 0.0), "right": (0.0, 1.0), "mean": (0.5, 0.5)}


@dataclass(frozen=True)
class AsymmetricThresholds:
    """Grids, memory, and thresholds of warnings and errors."""

    # Ridges, relative to the spectral norm of the centered matrix: directed matrices need large ones, smooth kernels
    # small ones.
    alphas: tuple[float, ...] = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
    # Further ridges of coupled systems, which are singular at the singular values of the matrix and never beyond.
    coupled_alphas: tuple[float, ...] = (3.0, 10.0, 30.0)
    # The weights of the left and the right regressor by the name of the side.
    shares: Mapping[str, tuple[float, float]] = field(default_factory=_shares_of_sides)
    # Memory at the peak, per pair of items; the same for coupled systems.
    bytes_per_pair: float = 50.0
    coupled_bytes_per_pair: float = 160.0
    # Memory of a fit on landmarks, per item and landmark.
    bytes_per_comparison: float = 60.0
    # Landmarks of which less is left, relatively, once the others are known, are dropped: the system squares this.
    independent: float = 1e-7
    # Larger certificates cause a warning.
    largest_residual: float = 1e-6
    # Errors that differ by less, relatively, are equal: the order decides, not rounding.
    tie: float = 1e-9


LIMITS = AsymmetricThresholds()


class AsymmetricChoice(NamedTuple):
    """The choice by the leave-one-out error."""

    solution: AsymmetricRidgeSolution
    side: str
    shares: NDArray  # (2,), the weights of the left and the right regressor
    errors: dict[tuple[float, str], float]  # of all ridges and sides
    # the best for the left side alone, which needs one direction of new rows only
    one_way: AsymmetricRidgeSolution

    @property
    def coef(self) -> NDArray:
        """Coefficients (2, n, q) of both directions, zero for a direction that is not used."""
        return self.shares[:, None, None] * np.stack([self.solution.left, self.solution.right])

    @property
    def intercept(self) -> NDArray:
        """The intercepts (q,) of the side."""
        return self.shares @ np.stack([self.solution.intercept_left, self.solution.intercept_right])

    @property
    def residuals(self) -> NDArray:
        """The leave-one-out residuals (n, q) of the side."""
        return _residuals(self.solution, self.shares)


def _residuals(solution: AsymmetricRidgeSolution, shares: Sequence[float] | NDArray) -> NDArray:
    """The leave-one-out residuals of a weighted mean of both sides."""
    weighted = [
        share * loo for share, loo in zip(shares, (solution.loo_left, solution.loo_right)) if share
    ]
    return np.sum(weighted, axis=0)


def best_shares(solution: AsymmetricRidgeSolution, weight: NDArray | None = None) -> NDArray:
    """The weights, of at least 0 and sum 1, of both sides that minimize the squared leave-one-out error.

    A half each if both agree, or if a residual is infinite.
    """
    left = solution.loo_left
    right = solution.loo_right
    if not (np.all(np.isfinite(left)) and np.all(np.isfinite(right))):
        return np.array([0.5, 0.5])
    residuals = np.stack([left, right])
    share = average(residuals, np.zeros_like(left), weight, TWO_SIDES).weights[0]
    return np.array([share, 1.0 - share])


def leave_one_out_error(
    solution: AsymmetricRidgeSolution,
    shares: Sequence[float] | NDArray,
    weight: NDArray | None = None,
) -> float:
    """The (weighted) mean squared leave-one-out error of a weighted mean of both sides."""
    return float(np.average(np.sum(_residuals(solution, shares) ** 2, axis=1), weights=weight))


def choose_asymmetric_ridge(
    K: NDArray,
    Y: NDArray,
    alphas: Sequence[float] | NDArray,
    sides: Sequence[str],
    weight: NDArray | None = None,
    fit_intercept: bool = False,
    coupled: bool = False,
) -> AsymmetricChoice:
    """The ridge and the side with the smallest exact leave-one-out error; singular ridges are skipped.

    Besides `AsymmetricThresholds.shares` there is ``"weighted"``, the best weights of both. Ties go to the first side.
    """
    system = coupled_ridge if coupled else asymmetric_ridge

    def solve(alpha: float) -> AsymmetricRidgeSolution:
        return system(K, Y, alpha, weight, fit_intercept)

    return _choose(solve, alphas, sides, weight)


def choose_landmark_ridge(
    comparisons: LandmarkComparisons,
    Y: NDArray,
    alphas: Sequence[float] | NDArray,
    sides: Sequence[str],
    weight: NDArray | None = None,
    fit_intercept: bool = False,
) -> AsymmetricChoice:
    """The same for functions of landmarks."""

    def solve(alpha: float) -> AsymmetricRidgeSolution:
        return landmark_ridge(comparisons, Y, alpha, weight, fit_intercept)

    return _choose(solve, alphas, sides, weight)


def _choose(
    solve: Callable[[float], AsymmetricRidgeSolution],
    alphas: Sequence[float] | NDArray,
    sides: Sequence[str],
    weight: NDArray | None,
) -> AsymmetricChoice:
    best: tuple[float, AsymmetricRidgeSolution, str, NDArray] | None = None
    one_way: tuple[float, AsymmetricRidgeSolution] | None = None
    errors = {}
    failure = None
    for alpha in alphas:
        try:
            solution = solve(alpha)
        except np.linalg.LinAlgError as error:
            failure = error
            continue
        left_error = leave_one_out_error(solution, LIMITS.shares["left"], weight)
        if one_way is None or left_error < (1 - LIMITS.tie) * one_way[0]:
            one_way = (left_error, solution)
        for side in sides:
            if side == "weighted":
                shares = best_shares(solution, weight)
            else:
                shares = np.array(LIMITS.shares[side])
            side_error = leave_one_out_error(solution, shares, weight)
            errors[float(alpha), side] = side_error
            if best is None or side_error < (1 - LIMITS.tie) * best[0]:
                best = (side_error, solution, side, shares)
    if best is None or one_way is None:
        raise failure or ValueError("There is no ridge to try.")
    return AsymmetricChoice(best[1], best[2], best[3], errors, one_way[1])


def independent_landmarks(K: NDArray) -> NDArray:
    """Positions, ascending, of landmarks whose rows and columns the others do not determine; K is their matrix.

    A pivoted QR decomposition of columns and rows together; the remainder of a dropped landmark is below
    `AsymmetricThresholds.independent`, relative to the largest.
    """
    factor, pivots = qr(np.vstack([K, K.T]), mode="r", pivoting=True, check_finite=False)
    left_over = np.abs(np.diagonal(factor))
    n_kept = int(np.sum(left_over > LIMITS.independent * left_over[0]))
    return np.sort(pivots[: max(1, n_kept)])


def affinities(values: NDArray, decay: tuple[float, float] | None) -> NDArray:
    """Similarities as they are, dissimilarities as ``exp(-(d - offset) / unit)``."""
    if decay is None:
        return values
    offset, unit = decay
    return np.exp((offset - values) / unit)


def decay_of(D: NDArray, kind: str) -> tuple[float, float] | None:
    """Offset and unit of ``exp(-(d - offset) / unit)``: the smallest dissimilarity (0 for distances) and the median.

    None for similarities.
    """
    if kind == "similarity":
        return None
    others = D[~np.eye(len(D), dtype=bool)] if len(D) > 1 else D.ravel()
    offset = 0.0 if kind == "distance" else float(D.min())
    return offset, float(np.median(others) - offset) or float(np.mean(others) - offset) or 1.0
