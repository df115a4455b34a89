"""mercerless: learn with the similarity you have.

A kernel gives a matrix (`mercerless.kernels`). Spectra describe the matrix (`mercerless.spectra`). A solver turns
matrices into coefficients and a certificate. Selection chooses among solutions on held-out items. An estimator
combines one of each. Every name is loaded when it is first used; ``__init__.pyi`` lists them for editors.
"""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

_MODULES = "comparison datasets inspection kernels lowrank persistence spectra theory"
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

__all__ = [*_HOME_OF, *_MODULES.split()]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mercerless' has no attribute {name!r}")
    if name not in _HOME_OF:
        return import_module(f"mercerless.{name}")
    thing = globals()[name] = getattr(import_module(f"mercerless.{_HOME_OF[name]}"), name)
    return thing


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
