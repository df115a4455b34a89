"""Scales of features for the present map of comparisons, until it needs none."""

import numpy as np
from numpy.typing import NDArray


def feature_scales(X: NDArray, Y: NDArray) -> NDArray:
    """Log bandwidths (d,) of standardized features: equal ones."""
    return np.zeros(X.shape[1])
