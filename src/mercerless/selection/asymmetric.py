"""Choosing ridge and side of regressions with asymmetric kernels by the exact leave-one-out error."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.solvers.asymmetric import AsymmetricRidgeSolution, asymmetric_ridge

# times the spectral norm of the centered matrix: directed matrices need large ones, smooth kernels small ones
ALPHAS = np.array([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0])
SIDES = ("left", "right", "mean")
_SHARES = {"left": np.array([1.0, 0.0]), "right": np.array([0.0, 1.0]), "mean": np.array([0.5, 0.5])}


class AsymmetricChoice(NamedTuple):
    """What the leave-one-out error chose."""

    solution: AsymmetricRidgeSolution
    side: str
    errors: dict[tuple[float, str], float]  # of all ridges and sides
    one_way: AsymmetricRidgeSolution  # the best for the left side alone, which needs one direction of new rows only

    @property
    def coef(self) -> NDArray:
        """Coefficients (2, n, q) of both directions, zero where one is not used."""
        return _SHARES[self.side][:, None, None] * np.stack([self.solution.left, self.solution.right])

    @property
    def intercept(self) -> NDArray:
        """The intercepts (q,) of the side."""
        return _SHARES[self.side] @ np.stack([self.solution.intercept_left, self.solution.intercept_right])

    @property
    def residuals(self) -> NDArray:
        """The leave-one-out residuals (n, q) of the side."""
        return _side(self.solution, self.side)


def _side(solution: AsymmetricRidgeSolution, side: str) -> NDArray:
    """The leave-one-out residuals of one side."""
    if side == "mean":
        return (solution.loo_left + solution.loo_right) / 2
    return solution.loo_left if side == "left" else solution.loo_right


def leave_one_out_errors(solution: AsymmetricRidgeSolution, weight: NDArray | None = None) -> dict[str, float]:
    """The (weighted) mean squared leave-one-out error of the left, the right and the mean regressor."""
    sums = {side: np.sum(_side(solution, side) ** 2, axis=1) for side in SIDES}
    return {side: float(np.average(values, weights=weight)) for side, values in sums.items()}


def choose_asymmetric_ridge(
    K: NDArray,
    Y: NDArray,
    alphas: Sequence[float] | NDArray,
    sides: Sequence[str],
    weight: NDArray | None = None,
    fit_intercept: bool = False,
) -> AsymmetricChoice:
    """The ridge and the side with the smallest exact leave-one-out error; singular ridges are passed over.

    Of equal sides the first is taken.
    """
    best: tuple[float, AsymmetricRidgeSolution, str] | None = None
    one_way: tuple[float, AsymmetricRidgeSolution] | None = None
    errors, failure = {}, None
    for alpha in alphas:
        try:
            solution = asymmetric_ridge(K, Y, alpha, weight, fit_intercept)
        except np.linalg.LinAlgError as error:
            failure = error
            continue
        by_side = leave_one_out_errors(solution, weight)
        # a tie, as for symmetric matrices, is decided by order and not by rounding
        if one_way is None or by_side["left"] < (1 - 1e-9) * one_way[0]:
            one_way = (by_side["left"], solution)
        for side in sides:
            errors[float(alpha), side] = by_side[side]
            if best is None or by_side[side] < (1 - 1e-9) * best[0]:
                best = (by_side[side], solution, side)
    if best is None or one_way is None:
        raise failure or ValueError("There is no ridge to try.")
    return AsymmetricChoice(best[1], best[2], errors, one_way[1])
