"""scikit-learn's estimator checks: every public estimator as it is by default, variants among the slow tests.

An expected failure has a reason that is a property of the method; tests/test_properties.py has what holds instead.
"""

import inspect

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_properties import public_estimators

from mercerless import (
    AsymmetricRidge,
    HyperRidge,
    KreinRidge,
    KreinRidgeClassifier,
    SimilarityClassifier,
    SimilarityRegressor,
)
from mercerless.kernels import Gaussian
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer

# some data of the checks are noise, and a model that is worse than a constant warns
pytestmark = [
    pytest.mark.filterwarnings("ignore::mercerless.UselessModelWarning"),
    pytest.mark.filterwarnings("ignore:SimilaritySVC uses no training item"),
]
PENALTIES = {"alpha_positive": 1e-2, "alpha_negative": 3e-2}
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
LIBSVM = "libsvm stops at a tolerance, so rows in another order agree to that tolerance only"
FOLDS = "copies are separate rows, in other folds than one row of their weight"
DRAWN = "rows are drawn, and copies are separate rows"
REASONS = {
    "Asymmetric": FOLDS,
    "DANK": "rows in another order agree to the tolerance of the solver only",
    "KreinRidgeClassifier": FOLDS,
    "KreinSV": LIBSVM,
    "LAB": DRAWN,
    "TableClassifier": DRAWN,
    "TableRegressor": DRAWN,
    "Similarity": FOLDS,
}


DENSE = [cls for cls in public_estimators() if not cls.__name__.startswith("Hits")]


def expected_failures(estimator):
    """Reasons by name of check."""
    name = type(estimator).__name__
    weights = [why for prefix, why in REASONS.items() if name.startswith(prefix)]
    if name == "AsymmetricRidge" and estimator.alpha is not None:
        weights = []  # no folds
    reasons = {WEIGHTS: weights[-1]} if weights else {}
    if getattr(estimator, "kernel", None) == "precomputed":
        if name in ("AsymmetricRidgeClassifier", "KreinRidgeClassifier", "SimilarityClassifier"):
            vectors = "it reads similarities, and the check passes vectors"
            reasons["check_decision_proba_consistency"] = vectors
        if name.startswith("DANK"):
            definite = "the matrix must be positive semidefinite"
            reasons["check_positive_only_tag_during_fit"] = definite
            reasons["check_estimators_dtypes"] = definite
    return reasons


SLOW = ("Hyper", "LAB", "TableC", "DANKR")  # ten seconds and more for the checks of one class
QUICK = [cls() for cls in DENSE if not cls.__name__.startswith(SLOW)]
VARIANTS = [cls() for cls in DENSE if cls.__name__.startswith(SLOW)]
for cls in DENSE:
    if "kernel" in inspect.signature(cls).parameters:
        precomputed = cls(kernel="precomputed")
        if precomputed.__sklearn_tags__().input_tags.pairwise:
            VARIANTS.append(precomputed)
VARIANTS += [
    AsymmetricRidge(alpha=0.5, side="left"),
    DissimilarityKernel(),
    HyperRidge(alpha=1e-3, landmarks=20),
    KreinRidge(Gaussian(2.0), **PENALTIES),
    KreinRidge(Gaussian(2.0), **PENALTIES, landmarks=1000),
    KreinRidgeClassifier(Gaussian(2.0), **PENALTIES),
    SimilarityClassifier(direction="both"),
    SimilarityRegressor("precomputed", direction="rows"),
    *[SpectrumTransformer(mode) for mode in ("clip", "flip", "square", "shift", "truncate")],
]


@parametrize_with_checks(QUICK, expected_failed_checks=expected_failures)
def test_defaults(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore:.* have one item only")
@pytest.mark.filterwarnings("ignore:.* items have no hits")
@pytest.mark.filterwarnings("ignore:X lists .* hits of pairs that it has already")
@pytest.mark.filterwarnings("ignore:The training items' comparisons with themselves differ")
def test_variants(estimator, check):
    check(estimator)
