"""mercerless: learn with the similarity you have.

A kernel gives a matrix (`mercerless.kernels`). Spectra say what the matrix is (`mercerless.spectra`). A solver turns
matrices into coefficients and a certificate. An estimator wears one solver.
"""

from mercerless import datasets, inspection, kernels, lowrank, persistence, spectra, theory
from mercerless._memory import config_context
from mercerless._validation import UselessModelWarning
from mercerless.comparison import Comparison, compare
from mercerless.estimators.asymmetric import AsymmetricRidge, AsymmetricRidgeClassifier
from mercerless.estimators.dank import DANKClassifier, DANKRegressor
from mercerless.estimators.hyper import HyperClassifier, HyperRegressor, HyperRidge, HyperSVR
from mercerless.estimators.krein import KreinRidge, KreinRidgeClassifier, KreinSVC, KreinSVR
from mercerless.estimators.lab import LABClassifier, LABRegressor
from mercerless.estimators.similarity import (
    SimilarityClassifierCV,
    SimilarityFeatures,
    SimilarityRegressorCV,
    SimilaritySVC,
)

__version__ = "0.1.0"

__all__ = [
    "AsymmetricRidge",
    "AsymmetricRidgeClassifier",
    "Comparison",
    "DANKClassifier",
    "DANKRegressor",
    "HyperClassifier",
    "HyperRegressor",
    "HyperRidge",
    "HyperSVR",
    "KreinRidge",
    "KreinRidgeClassifier",
    "KreinSVC",
    "KreinSVR",
    "LABClassifier",
    "LABRegressor",
    "SimilarityClassifierCV",
    "SimilarityFeatures",
    "SimilarityRegressorCV",
    "SimilaritySVC",
    "UselessModelWarning",
    "compare",
    "config_context",
    "datasets",
    "inspection",
    "kernels",
    "lowrank",
    "persistence",
    "spectra",
    "theory",
]
