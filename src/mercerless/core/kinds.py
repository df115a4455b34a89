"""A warning for matrices of distances that are given as kernels."""

import numpy as np
from numpy.typing import NDArray

from mercerless.core.units import warn_if_nothing_varies
from mercerless.core.validation import warn
from mercerless.spectra import matrix_kind


def warn_if_distances(K: NDArray, learner: str) -> None:
    """Warn if a square matrix holds distances, by the rule of `mercerless.spectra.matrix_kind`, or equal rows.

    For learners that read a matrix as a kernel, in which large values mean similar items.
    """
    warn_if_nothing_varies(K[:, :100], K.std())
    if np.diagonal(K).mean() >= K.mean():  # of distances it is the smallest; and this is cheap
        return
    if matrix_kind(K).kind not in ("distance", "dissimilarity"):
        return
    warn(
        f"X looks like distances, but {learner} reads it as a kernel, in which large values "
        "mean similar items; use SimilarityClassifier or SimilarityRegressor, or put "
        "mercerless.spectra.DissimilarityKernel() before this estimator in a pipeline."
    )
