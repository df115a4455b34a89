"""Sizes, grids and limits of a hyper-kernel fit."""

from dataclasses import dataclass

import numpy as np


def _powers_of_ten(lowest: int, highest: int) -> tuple[float, ...]:
    return tuple(np.logspace(lowest, highest, highest - lowest + 1).tolist())


@dataclass(frozen=True)
class HyperThresholds:
    """Sizes, grids and limits of the learned kernel and of the machine that uses it, each with its reason."""

    # ---- the learned kernel
    # Up to this many items all pairs (items, for the tensor) are sections of the expansion, above it landmarks.
    exact_items: int = 100
    exact_items_tensor: int = 2000
    default_landmarks: int = 500
    # Up to this many items a fit does not depend on their order.
    ordered_items: int = 3000
    # With more multiplications for the normal equations than this, conjugate gradients are used.
    direct_work: float = 2e9
    # The same for sections that are not separable: up to this many centers a value of a section costs more than its
    # share of the normal equations.
    direct_sections: int = 2000
    # Up to this many items their closeness to each other is kept in memory, at most 8 MB.
    kept_items: int = 1000
    # Sections that are not separable are kept during iterations if they take at most this share of the memory budget.
    kept_share: float = 0.5
    # Over-relaxation of ADMM.
    relaxation: float = 1.6
    # Relative to the largest diagonal entry: sections of neighboring centers are equal to this many digits.
    jitter: float = 1e-11
    # Iterations for missing entries need a penalty of at least this.
    least_alpha_missing: float = 1e-4
    # The trend of the tensor is not penalized but for rounding: 1 / rho, relative to its own normal matrix.
    trend_ridge: float = 1e-12

    # ---- its search
    # Hyper-kernels and penalties are compared on at most this many items and centers.
    search_items: int = 300
    search_centers: int = 150
    search_items_tensor: int = 500
    # Trends of single features cost two matrices each; they are tried up to this many features.
    search_features: int = 30
    # Length scales of hyper-kernels, in units of the spread of the data.
    length_scales: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    # The penalties of ridge regression and of support vector regression, which iterates.
    alphas: tuple[float, ...] = _powers_of_ten(-9, 0)
    svr_alphas: tuple[float, ...] = _powers_of_ten(-6, -1)
    # The penalty of the tensor, whose noise smooths already: within 1 % of the best of five on six similarities.
    tensor_alpha: float = 1e-2
    tensor_noises: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)

    # ---- the machine
    # Kernels are compared on at most this many items, and learned for that with at most this many landmarks.
    tune_items: int = 600
    tune_landmarks: int = 100
    # With fewer items nothing is compared.
    fewest_items: int = 10
    # The kernel of the machine is learned from at most this many items: half a million pairs.
    learned_items: int = 1000
    # Length scales of the learned kernels, in units of the spread of the data.
    learned_scales: tuple[float, ...] = (0.5, 1.0)
    # A machine needs no kernel fitted closer than the first penalty; the second leaves it near the plain Gaussian.
    learned_alphas: tuple[float, ...] = (1e-4, 1e-2)


LIMITS = HyperThresholds()
