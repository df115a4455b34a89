"""Choose ridge and side of regressions with asymmetric kernels by the exact leave-one-out error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.asymmetric.solver import AsymmetricRidgeSolution


@dataclass(frozen=True)
class AsymmetricThresholds:
    """Grids, memory, and thresholds of warnings and errors."""

    # Ridges, relative to the spectral norm of the centered matrix: directed matrices need large ones, smooth kernels
    # small ones.
    alphas: tuple[float, ...] = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
    # Further ridges of coupled systems, which are singular at the singular values of the matrix and never beyond.
    coupled_alphas: tuple[float, ...] = (3.0, 10.0, 30.0)
    # Memory at the peak, per pair of items; the same for coupled systems.
    bytes_per_pair: float = 50.0
    coupled_bytes_per_pair: float = 160.0
    # Larger certificates cause a warning.
    largest_residual: float = 1e-6


LIMITS = AsymmetricThresholds()
#: The weights of the left and the right regressor by the name of the side.
SHARES = {"left": (1.0, 0.0), "right": (0.0, 1.0), "mean": (0.5, 0.5)}


def no_bandwidths(side: str) -> ValueError:
    """The error for sides that compare bandwidths of training items with new ones."""
    return ValueError(
        f"side={side!r} compares training items with new ones, which have no bandwidths; use "
        "side='left', or one bandwidth per feature."
    )


class Choice(NamedTuple):
    """A ridge and a side: the regressor ``k(t, X) @ coef[0] + k(X, t).T @ coef[1] + intercept``."""

    solution: AsymmetricRidgeSolution
    side: str
    shares: NDArray  # (2,), the weights of the left and the right regressor
    residuals: NDArray  # (n, q), leave-one-out
    error: float  # their mean square

    @property
    def coef(self) -> NDArray:
        """Coefficients (2, n, q) of both directions, zero for a direction that is not used."""
        return self.shares[:, None, None] * np.stack([self.solution.left, self.solution.right])

    @property
    def intercept(self) -> NDArray:
        """The intercepts (q,) of the side."""
        return self.shares @ np.stack([self.solution.intercept_left, self.solution.intercept_right])


def best_shares(solution: AsymmetricRidgeSolution, weight: NDArray) -> NDArray:
    """The weights, of at least 0 and sum 1, of both sides that minimize the squared leave-one-out error.

    A half each if both agree, or if a residual is infinite.
    """
    left = solution.loo_left
    right = solution.loo_right
    if not (np.all(np.isfinite(left)) and np.all(np.isfinite(right))):
        return np.array([0.5, 0.5])
    difference = left - right
    norm = float(np.sum(weight[:, None] * difference**2))
    if norm <= 1e-24 * float(np.sum(weight[:, None] * right**2)):
        return np.array([0.5, 0.5])
    share = np.clip(-np.sum(weight[:, None] * difference * right) / norm, 0.0, 1.0)
    return np.array([share, 1.0 - share])


def solutions_of(
    system: Callable[[float], AsymmetricRidgeSolution], alphas: Iterable[float]
) -> list[AsymmetricRidgeSolution]:
    """The solutions of all ridges for which the system is not singular; raises if there are none."""
    solutions = []
    failure = None
    for alpha in alphas:
        try:
            solutions.append(system(alpha))
        except np.linalg.LinAlgError as error:
            failure = error
    if not solutions:
        raise ValueError(str(failure))
    return solutions


def choices_of(
    solutions: Iterable[AsymmetricRidgeSolution], sides: Sequence[str], weight: NDArray
) -> list[Choice]:
    """All ridges and sides with their (weighted) mean squared leave-one-out errors.

    Besides `SHARES` there is ``"weighted"``, the best weights of both.
    """
    choices = []
    for solution in solutions:
        for side in sides:
            if side == "weighted":
                shares = best_shares(solution, weight)
            else:
                shares = np.array(SHARES[side])
            sides_used = zip(shares, (solution.loo_left, solution.loo_right))
            residuals = np.sum([share * loo for share, loo in sides_used if share], axis=0)
            error = float(np.average(np.sum(residuals**2, axis=1), weights=weight))
            choices.append(Choice(solution, side, shares, residuals, error))
    return choices


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
