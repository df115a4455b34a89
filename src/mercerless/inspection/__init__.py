"""Displays: pictures of matrices, spectra and fitted models, in the manner of scikit-learn's displays."""

from mercerless.inspection.spectra import KernelMatrixDisplay, SpectrumDisplay

__all__ = ["KernelMatrixDisplay", "SpectrumDisplay"]
