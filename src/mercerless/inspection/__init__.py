"""Displays: pictures of matrices, spectra and fitted models, in the manner of scikit-learn's displays."""

from mercerless.dank.display import AdaptedKernelDisplay
from mercerless.hyper.display import KernelCurveDisplay, LearnedKernelDisplay
from mercerless.inspection.reasons import ReasonsDisplay
from mercerless.inspection.spectra import KernelMatrixDisplay, SpectrumDisplay
from mercerless.krein.display import KreinPartsDisplay, ValidationSurfaceDisplay
from mercerless.lab.display import BandwidthDisplay, GrowthDisplay
from mercerless.similarity.display import AverageDisplay

__all__ = [
    "AdaptedKernelDisplay",
    "AverageDisplay",
    "BandwidthDisplay",
    "GrowthDisplay",
    "KernelCurveDisplay",
    "KernelMatrixDisplay",
    "KreinPartsDisplay",
    "LearnedKernelDisplay",
    "ReasonsDisplay",
    "SpectrumDisplay",
    "ValidationSurfaceDisplay",
]
