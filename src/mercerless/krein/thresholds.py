"""Sizes, memory and grids of a fit of a Krein model."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class KreinThresholds:
    """Sizes, memory and grids, each with its reason. The bytes are measured; tests/test_memory.py asserts them."""

    # ---- landmarks
    # With more rows, landmarks="auto" uses landmarks, at most this many.
    exact_rows: int = 4000
    auto_landmarks: int = 1000
    # Held-out rows per fold with landmarks; more do not change a choice.
    scored_rows: int = 4000

    # ---- memory
    # Bytes per pair of rows of the exact solution, of a gradient search, and of a support vector machine.
    exact_bytes: float = 42.0
    gradient_bytes: float = 76.0
    machine_bytes: float = 58.0
    # Bytes of the scores kept for each candidate, row and target.
    score_bytes: float = 16.0
    # Bytes per pair of landmarks.
    landmark_bytes: float = 270.0
    # For a block of rows on the way to its factor, if the budget allows.
    block_bytes: int = 2**28

    # ---- certificates
    # Larger ones cause a warning.
    largest_residual: float = 1e-8
    # Coordinates of the targets below this share of the largest are rounding; f may have so much of its square there.
    target_rounding: float = 1e-12
    largest_undetermined: float = 1e-3

    # ---- candidates for whatever the user does not give
    # The penalty of the largest eigenvalue's coordinate, n alpha / max|s|: from strong to weak, so that ties go to the
    # stronger one.
    strengths: tuple[float, ...] = tuple(np.logspace(1, -7, 17))
    # alpha_negative / alpha_positive; ratios beyond 100 failed badly.
    ratios: tuple[float, ...] = (1.0, 10.0, 0.1, 100.0, 0.01)
    # C="auto" is chosen on so many rows and folds.
    tuned_rows: int = 600
    tuned_folds: int = 5
    # Standard deviation of f relative to that of the targets.
    radii: tuple[float, ...] = (1.0, 0.9, 0.8, 0.7, 0.5, 0.25)


LIMITS = KreinThresholds()
