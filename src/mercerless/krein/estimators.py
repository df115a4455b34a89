"""The estimators of this package under one name, which saved models use."""

from mercerless.krein.machines import KreinSVC, KreinSVR
from mercerless.krein.ridge import KreinRidge, KreinRidgeClassifier

__all__ = ["KreinRidge", "KreinRidgeClassifier", "KreinSVC", "KreinSVR"]
