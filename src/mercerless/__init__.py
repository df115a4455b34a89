"""mercerless: learn with the similarity you have.

A kernel gives a matrix (`mercerless.kernels`). Spectra say what the matrix is (`mercerless.spectra`). A solver turns
matrices into coefficients and a certificate. An estimator wears one solver.
"""

from mercerless import datasets, kernels, lowrank, spectra

__version__ = "0.1.0"

__all__ = [
    "datasets",
    "kernels",
    "lowrank",
    "spectra",
]
