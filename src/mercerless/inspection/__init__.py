"""Displays: pictures of matrices, spectra and fitted models, in the manner of scikit-learn's displays."""

from mercerless.inspection.krein import (
    KreinPartsDisplay,
    LearningRateDisplay,
    SecularCurveDisplay,
    ValidationSurfaceDisplay,
)
from mercerless.inspection.spectra import KernelMatrixDisplay, SpectrumDisplay

__all__ = [
    "KernelMatrixDisplay",
    "KreinPartsDisplay",
    "LearningRateDisplay",
    "SecularCurveDisplay",
    "SpectrumDisplay",
    "ValidationSurfaceDisplay",
]
