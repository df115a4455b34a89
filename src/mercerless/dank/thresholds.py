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
    search_matrices: int = 26

    # ---- the search
    # Folds of the search, fewer if a class has fewer rows.
    n_folds: int = 5
    # The grid of plain machines from which the descent starts; gamma is that of scaled features.
    grid_C: tuple[float, ...] = (0.125, 0.5, 2.0, 8.0, 32.0, 128.0)
    grid_gamma: tuple[float, ...] = (0.0078125, 0.03125, 0.125, 0.5, 2.0, 8.0)
    grid_epsilon: tuple[float, ...] = (0.02, 0.1, 0.3)
    # How far the logarithms of length scales, and of the other parameters, may move from the start.
    reach_of_scales: float = 4.0
    reach_of_others: float = 5.0


LIMITS = DankThresholds()
