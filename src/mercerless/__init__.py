"""mercerless: learn with the similarity you have.

A kernel gives a matrix (`mercerless.kernels`). Spectra say what the matrix is (`mercerless.spectra`). A solver turns
matrices into coefficients and a certificate. An estimator wears one solver.
"""

from mercerless import datasets, kernels, lowrank, spectra
from mercerless.estimators.krein import KreinRidge, KreinRidgeClassifier, KreinSVC, KreinSVR
from mercerless.estimators.similarity import (
    SimilarityClassifierCV,
    SimilarityFeatures,
    SimilarityRegressorCV,
    SimilaritySVC,
)

__version__ = "0.1.0"

__all__ = [
    "KreinRidge",
    "KreinRidgeClassifier",
    "KreinSVC",
    "KreinSVR",
    "SimilarityClassifierCV",
    "SimilarityFeatures",
    "SimilarityRegressorCV",
    "SimilaritySVC",
    "datasets",
    "kernels",
    "lowrank",
    "spectra",
]
