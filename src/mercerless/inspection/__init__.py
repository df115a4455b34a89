"""Displays: pictures of matrices, spectra and fitted models, in the manner of scikit-learn's displays."""

from mercerless.dank.display import AdaptationDisplay, DANKConvergenceDisplay
from mercerless.hyper.display import KernelLineDisplay, LearnedKernelDisplay
from mercerless.inspection.reasons import ReasonsDisplay
from mercerless.inspection.spectra import KernelMatrixDisplay, SpectrumDisplay
from mercerless.krein.display import (
    KreinPartsDisplay,
    SecularCurveDisplay,
    ValidationSurfaceDisplay,
)
from mercerless.lab.display import BandwidthDisplay, DescentDisplay, LocalFitDisplay
from mercerless.similarity.display import StackDisplay

__all__ = [
    "AdaptationDisplay",
    "BandwidthDisplay",
    "DANKConvergenceDisplay",
    "DescentDisplay",
    "KernelLineDisplay",
    "KernelMatrixDisplay",
    "KreinPartsDisplay",
    "LearnedKernelDisplay",
    "LocalFitDisplay",
    "ReasonsDisplay",
    "SecularCurveDisplay",
    "SpectrumDisplay",
    "StackDisplay",
    "ValidationSurfaceDisplay",
]
