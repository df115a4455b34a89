"""Sizes, grids and limits of a hyper-kernel fit."""

from dataclasses import dataclass

import numpy as np


def _powers_of_ten(lowest: int, highest: int) -> tuple[float, ...]:
    return tuple(np.logspace(lowest, highest, highest - lowest + 1).tolist())


@dataclass(frozen=True)
class HyperThresholds:
    """Sizes, grids and limits of both stages, each with its reason."""

    # ---- stage 1: the learned kernel
    # Up to this many items all pairs (items, for the tensor) are sections of the expansion, above it landmarks.
    exact_items: int = 100
    exact_items_tensor: int = 2000
    default_landmarks: int = 500
    # Parts have about this many items if their number is "auto".
    part_items: int = 500
    # Iterations of HyperRidge's conjugate gradients.
    max_iter: int = 300
    # With more multiplications for the normal equations than this, conjugate gradients are used.
    direct_work: float = 2e9
    # The same for sections that are not separable: up to this many centers a value of a section costs more than its
    # share of the normal equations.
    direct_sections: int = 2000
    # Up to this many items their closeness to each other is kept in memory, at most 8 MB.
    kept_items: int = 1000
    # Sections that are not separable are kept during iterations if they take at most this share of the memory budget.
    kept_share: float = 0.5
    # Operations for each center and pair of items in a fit of HyperRidge and of HyperSVR, and of the search, measured.
    ridge_operations: float = 500.0
    tube_operations: float = 10_000.0
    search_operations: float = 6e10
    # Products of matrices of all items that a fit with a tensor hyper-kernel takes, measured.
    tensor_products: float = 20.0
    # Over-relaxation of ADMM.
    relaxation: float = 1.6
    # Relative to the largest diagonal entry: sections of neighboring centers are equal to this many digits.
    jitter: float = 1e-11
    # Iterations for missing entries need a penalty of at least this.
    least_alpha_missing: float = 1e-4
    # The trend of the tensor is not penalized but for rounding: 1 / rho, relative to its own normal matrix.
    trend_ridge: float = 1e-12

    # ---- the search of stage 1
    # Hyper-kernels and penalties are compared on at most this many items and centers.
    search_items: int = 300
    search_centers: int = 150
    search_items_tensor: int = 500
    search_items_svr: int = 75
    # Trends of single features cost two matrices each; they are tried up to this many features.
    search_features: int = 30
    # The penalties compared by ridge regression, by support vector regression and by the tensor.
    alphas: tuple[float, ...] = _powers_of_ten(-9, 0)
    svr_alphas: tuple[float, ...] = _powers_of_ten(-6, -1)
    tensor_alphas: tuple[float, ...] = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
    tensor_noises: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)

    # ---- the search of both stages
    # Both stages are compared on at most this many items by machines on the matrix, and on features.
    tune_items: int = 600
    tune_rows: int = 10_000
    # Kernels that are only compared are learned from at most this many items and landmarks.
    compared_items: int = 2000
    compared_landmarks: int = 200
    # This many held-out rows are enough for a comparison.
    held_out_rows: int = 2000
    # Up to this many labels folds are drawn several times, so often that about this many are held out in all.
    enough_labels: int = 300
    most_draws: int = 5
    # With fewer items nothing is compared.
    fewest_items: int = 10
    # This penalty leaves the learned kernel near the base kernel; it is always a candidate.
    smooth_alpha: float = 1e-2
    # A machine needs no kernel fitted closer than this penalty, and iterative solvers slow down below it.
    closest_alpha: float = 1e-7
    # Length scales of the base kernel, in units of the spread of the data.
    base_scales: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)

    # ---- stage 2: the machine
    # With more items than this the machine works on low-rank features.
    large: int = 3000
    # A pass of the linear machine evaluates this many Newton steps, of lengths 1, 1/2, ...
    step_lengths: int = 8
    # Number of features that rank candidates as well as all features do.
    compared_components: int = 400
    # The loss weights compared by machines on the matrix and on features, for labels and for numbers.
    matrix_weights_of_labels: tuple[float, ...] = _powers_of_ten(-2, 3)
    matrix_weights_of_numbers: tuple[float, ...] = _powers_of_ten(-1, 4)
    feature_weights_of_labels: tuple[float, ...] = _powers_of_ten(-1, 3)
    feature_weights_of_numbers: tuple[float, ...] = _powers_of_ten(-3, 6)
    # Memory for a block of rows.
    block_bytes: int = 2**27


LIMITS = HyperThresholds()
