"""What editors and type checkers see of `mercerless`, whose names are loaded when they are first used."""

from mercerless import comparison as comparison
from mercerless import datasets as datasets
from mercerless import inspection as inspection
from mercerless import kernels as kernels
from mercerless import lowrank as lowrank
from mercerless import persistence as persistence
from mercerless import spectra as spectra
from mercerless import theory as theory
from mercerless.asymmetric.embedding import DirectedEmbedding as DirectedEmbedding
from mercerless.asymmetric.estimators import AsymmetricRidge as AsymmetricRidge
from mercerless.asymmetric.estimators import AsymmetricRidgeClassifier as AsymmetricRidgeClassifier
from mercerless.comparison import Comparison as Comparison
from mercerless.comparison import compare as compare
from mercerless.core.descent import GradientSearch as GradientSearch
from mercerless.core.memory import config_context as config_context
from mercerless.core.validation import UselessModelWarning as UselessModelWarning
from mercerless.dank.estimators import DANKClassifier as DANKClassifier
from mercerless.dank.estimators import DANKRegressor as DANKRegressor
from mercerless.dank.selection import CenteringPenalty as CenteringPenalty
from mercerless.hyper.estimators import HyperRidge as HyperRidge
from mercerless.hyper.estimators import HyperSVR as HyperSVR
from mercerless.hyper.machine import HyperClassifier as HyperClassifier
from mercerless.hyper.machine import HyperRegressor as HyperRegressor
from mercerless.krein.embedding import KreinEmbedding as KreinEmbedding
from mercerless.krein.features import SignedRandomFeatures as SignedRandomFeatures
from mercerless.krein.machines import KreinSVC as KreinSVC
from mercerless.krein.machines import KreinSVR as KreinSVR
from mercerless.krein.ridge import KreinRidge as KreinRidge
from mercerless.krein.ridge import KreinRidgeClassifier as KreinRidgeClassifier
from mercerless.krein.selection import Ball as Ball
from mercerless.krein.selection import Sphere as Sphere
from mercerless.lab.estimators import LABClassifier as LABClassifier
from mercerless.lab.estimators import LABRegressor as LABRegressor
from mercerless.lab.optimizers import SGD as SGD
from mercerless.lab.optimizers import Adam as Adam
from mercerless.lab.support import Support as Support
from mercerless.lowrank import Landmarks as Landmarks
from mercerless.similarity.estimators import HitsClassifier as HitsClassifier
from mercerless.similarity.estimators import HitsRegressor as HitsRegressor
from mercerless.similarity.estimators import SimilarityClassifier as SimilarityClassifier
from mercerless.similarity.estimators import SimilarityRegressor as SimilarityRegressor
from mercerless.similarity.features import SimilarityFeatures as SimilarityFeatures
from mercerless.similarity.features import SimilaritySVC as SimilaritySVC
from mercerless.table.encoder import TableEncoder as TableEncoder
from mercerless.table.estimators import TableClassifier as TableClassifier
from mercerless.table.estimators import TableRegressor as TableRegressor

__version__: str
__all__: list[str]
