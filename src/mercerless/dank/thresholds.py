"""Sizes, grids and limits of a DANK fit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DankThresholds:
    """Sizes, grids and limits of the solver and of the search, each with its reason."""

    # ---- the solver
    # Up to this many rows every row is in the working set.
    all_rows: int = 500
    # Times that the working set grows.
    max_rounds: int = 20
    # Matrices of the working set's size at the peak: K, its square, K on the support, M, its eigenvectors, a copy.
    working_matrices: int = 6
    # Besides the support vectors of the plain machine, rows within this share of the margin are in the first working
    # set, at most as many as this share of the support vectors.
    near_margin: float = 0.05
    near_share: float = 1 / 3
    # Below this size a full eigendecomposition is faster than Lanczos iterations.
    dense_eigen: int = 150
    # Rounds of the active-set method, after which the interior-point method takes over, and its steps.
    max_active_set_rounds: int = 8
    max_interior_steps: int = 60

    # ---- the estimators
    # A kernel of unknown definiteness is checked on at most this many rows.
    checked_rows: int = 2000
    # Matrices of all rows at the peak of a search: those of one machine and of its derivative.
    search_matrices: int = 8

    # ---- the choice of parameters
    # Length scale, C and epsilon are chosen on at most this many rows, and on this many folds.
    tuned_rows: int = 600
    # Fewer rows if the memory limit is below this many bytes for each pair of them.
    tuned_bytes: int = 256
    # With fewer rows nothing is compared, and C is 1.
    fewest_rows: int = 10
    n_folds: int = 5
    # Draws of these folds: two instead of one add .010 to R2 on five sets of 200 rows (two splits, two seeds each).
    n_draws: int = 2
    # Larger values of C, for a mean diagonal of one, take hundreds of outer steps.
    largest_C: float = 1000.0
    # How far the logarithms of length scales, and of the other parameters, may move from the start of a search.
    reach_of_scales: float = 4.0
    reach_of_others: float = 5.0


LIMITS = DankThresholds()
