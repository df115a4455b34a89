"""mercerless: learn with the similarity you have.

A kernel gives a matrix (`mercerless.kernels`). Spectra say what the matrix is (`mercerless.spectra`). A solver turns
matrices into coefficients and a certificate. Selection chooses among solutions on held-out items. An estimator wears
one of each. Every name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers see
    from mercerless import (
        comparison,
        datasets,
        inspection,
        kernels,
        lowrank,
        persistence,
        spectra,
        theory,
    )
    from mercerless._memory import config_context
    from mercerless._validation import UselessModelWarning
    from mercerless.comparison import Comparison, compare
    from mercerless.estimators.asymmetric import AsymmetricRidge, AsymmetricRidgeClassifier
    from mercerless.estimators.dank import DANKClassifier, DANKRegressor
    from mercerless.estimators.directed import DirectedClassifierCV, DirectedRegressorCV
    from mercerless.estimators.embedding import KreinEmbedding
    from mercerless.estimators.hyper import HyperClassifier, HyperRegressor, HyperRidge, HyperSVR
    from mercerless.estimators.krein import KreinRidge, KreinRidgeClassifier, KreinSVC, KreinSVR
    from mercerless.estimators.lab import LABClassifier, LABRegressor
    from mercerless.estimators.similarity import (
        SimilarityClassifierCV,
        SimilarityFeatures,
        SimilarityRegressorCV,
        SimilaritySVC,
    )
    from mercerless.selection.dank import CenteringPenalty
    from mercerless.selection.descent import GradientSearch
    from mercerless.selection.krein import Ball, Sphere
    from mercerless.selection.lab_support import Support

__version__ = "0.1.0"

__all__ = [
    "AsymmetricRidge",
    "AsymmetricRidgeClassifier",
    "Ball",
    "CenteringPenalty",
    "Comparison",
    "DANKClassifier",
    "DANKRegressor",
    "DirectedClassifierCV",
    "DirectedRegressorCV",
    "GradientSearch",
    "HyperClassifier",
    "HyperRegressor",
    "HyperRidge",
    "HyperSVR",
    "KreinEmbedding",
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
    "Sphere",
    "Support",
    "UselessModelWarning",
    "compare",
    "comparison",
    "config_context",
    "datasets",
    "inspection",
    "kernels",
    "lowrank",
    "persistence",
    "spectra",
    "theory",
]

#: The modules of the names that do not stand for a module themselves.
_HOMES = {
    "_memory": "config_context",
    "_validation": "UselessModelWarning",
    "comparison": "Comparison compare",
    "estimators.asymmetric": "AsymmetricRidge AsymmetricRidgeClassifier",
    "estimators.dank": "DANKClassifier DANKRegressor",
    "estimators.directed": "DirectedClassifierCV DirectedRegressorCV",
    "estimators.embedding": "KreinEmbedding",
    "estimators.hyper": "HyperClassifier HyperRegressor HyperRidge HyperSVR",
    "estimators.krein": "KreinRidge KreinRidgeClassifier KreinSVC KreinSVR",
    "estimators.lab": "LABClassifier LABRegressor",
    "estimators.similarity": "SimilarityClassifierCV SimilarityFeatures SimilarityRegressorCV SimilaritySVC",
    "selection.dank": "CenteringPenalty",
    "selection.descent": "GradientSearch",
    "selection.krein": "Ball Sphere",
    "selection.lab_support": "Support",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a checker that saw this would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'mercerless' has no attribute {name!r}")
        if name not in _HOME_OF:
            return import_module(f"mercerless.{name}")
        thing = globals()[name] = getattr(import_module(f"mercerless.{_HOME_OF[name]}"), name)
        return thing


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
