"""mercerless: learn with the similarity you have.

A kernel gives a matrix (`mercerless.kernels`). Spectra describe the matrix (`mercerless.spectra`). A solver turns
matrices into coefficients and a certificate. Selection chooses among solutions on held-out items. An estimator
combines one of each. Every name below is loaded when it is first used.
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
    from mercerless.asymmetric.embedding import DirectedEmbedding
    from mercerless.asymmetric.estimators import AsymmetricRidge, AsymmetricRidgeClassifier
    from mercerless.comparison import Comparison, compare
    from mercerless.core.descent import GradientSearch
    from mercerless.core.memory import config_context
    from mercerless.core.validation import UselessModelWarning
    from mercerless.dank.estimators import DANKClassifier, DANKRegressor
    from mercerless.dank.selection import CenteringPenalty
    from mercerless.hyper.estimators import HyperRidge, HyperSVR
    from mercerless.hyper.machine import HyperClassifier, HyperRegressor
    from mercerless.krein.embedding import KreinEmbedding
    from mercerless.krein.features import SignedRandomFeatures
    from mercerless.krein.machines import KreinSVC, KreinSVR
    from mercerless.krein.ridge import KreinRidge, KreinRidgeClassifier
    from mercerless.krein.selection import Ball, Sphere
    from mercerless.lab.estimators import LABClassifier, LABRegressor
    from mercerless.lab.optimizers import SGD, Adam
    from mercerless.lab.support import Support
    from mercerless.lowrank import Landmarks
    from mercerless.similarity.estimators import (
        HitsClassifier,
        HitsRegressor,
        SimilarityClassifier,
        SimilarityRegressor,
    )
    from mercerless.similarity.features import SimilarityFeatures, SimilaritySVC
    from mercerless.table.encoder import TableEncoder
    from mercerless.table.estimators import TableClassifier, TableRegressor

__version__ = "0.3.0"

__all__ = [
    "SGD",
    "Adam",
    "AsymmetricRidge",
    "AsymmetricRidgeClassifier",
    "Ball",
    "CenteringPenalty",
    "Comparison",
    "DANKClassifier",
    "DANKRegressor",
    "DirectedEmbedding",
    "GradientSearch",
    "HitsClassifier",
    "HitsRegressor",
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
    "Landmarks",
    "SignedRandomFeatures",
    "SimilarityClassifier",
    "SimilarityFeatures",
    "SimilarityRegressor",
    "SimilaritySVC",
    "Sphere",
    "Support",
    "TableClassifier",
    "TableEncoder",
    "TableRegressor",
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
    "core.memory": "config_context",
    "core.validation": "UselessModelWarning",
    "comparison": "Comparison compare",
    "asymmetric.embedding": "DirectedEmbedding",
    "asymmetric.estimators": "AsymmetricRidge AsymmetricRidgeClassifier",
    "dank.estimators": "DANKClassifier DANKRegressor",
    "krein.embedding": "KreinEmbedding",
    "krein.features": "SignedRandomFeatures",
    "hyper.estimators": "HyperRidge HyperSVR",
    "hyper.machine": "HyperClassifier HyperRegressor",
    "krein.machines": "KreinSVC KreinSVR",
    "krein.ridge": "KreinRidge KreinRidgeClassifier",
    "lab.estimators": "LABClassifier LABRegressor",
    "similarity.estimators": "HitsClassifier HitsRegressor SimilarityClassifier SimilarityRegressor",
    "similarity.features": "SimilarityFeatures SimilaritySVC",
    "dank.selection": "CenteringPenalty",
    "core.descent": "GradientSearch",
    "krein.selection": "Ball Sphere",
    "lab.optimizers": "SGD Adam",
    "lab.support": "Support",
    "lowrank": "Landmarks",
    "table.encoder": "TableEncoder",
    "table.estimators": "TableClassifier TableRegressor",
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
