"""Displays: pictures of matrices, spectra and fitted models, in the manner of scikit-learn's displays."""

from mercerless.inspection.dank import AdaptationDisplay, DANKConvergenceDisplay
from mercerless.inspection.hyper import KernelLineDisplay, LearnedKernelDisplay
from mercerless.inspection.krein import (
    KreinPartsDisplay,
    SecularCurveDisplay,
    ValidationSurfaceDisplay,
)
from mercerless.inspection.lab import BandwidthDisplay, DescentDisplay, LocalFitDisplay
from mercerless.inspection.reasons import ReasonsDisplay
from mercerless.inspection.similarity import StackDisplay
from mercerless.inspection.spectra import KernelMatrixDisplay, SpectrumDisplay

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
