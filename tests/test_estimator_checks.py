"""scikit-learn's estimator checks: estimators as they are by default, on vectors and on precomputed matrices.

An expected failure has a reason that is a property of the method, and says which test shows what holds instead.
"""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercerless
from mercerless import Ball
from mercerless.asymmetric.estimators import AsymmetricRidge
from mercerless.dank.estimators import DANKClassifier
from mercerless.hyper.estimators import HyperClassifier, HyperRegressor, HyperRidge, HyperSVR
from mercerless.kernels import Gaussian
from mercerless.kernels.hyper import GaussianHyper
from mercerless.krein.estimators import KreinRidge, KreinRidgeClassifier, KreinSVC, KreinSVR
from mercerless.lab.estimators import LABClassifier, LABRegressor
from mercerless.similarity.estimators import SimilarityClassifier, SimilarityRegressor
from mercerless.similarity.features import SimilarityFeatures
from mercerless.spectra import DissimilarityKernel, SpectrumTransformer
from mercerless.table.estimators import TableClassifier, TableRegressor

# some of the checks' data are noise, and a model that is worse than a constant says so
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*is worse than a constant"),
    pytest.mark.filterwarnings("ignore:SimilaritySVC uses no training item"),
    pytest.mark.filterwarnings("ignore:.*predicts hardly any training row"),
]
PENALTIES = {"alpha_positive": 1e-2, "alpha_negative": 3e-2}
HYPER = GaussianHyper(2.0)
SMALL_TABLE = {"members": ["local"], "max_iter": 5, "random_state": 0}
SMALL_LAB = {"n_support": 5, "kernel": "gaussian", "max_iter": 5, "random_state": 0}

CLASSES = [getattr(mercerless, name) for name in mercerless.__all__]
CLASSES = [
    cls
    for cls in CLASSES
    if inspect.isclass(cls) and issubclass(cls, BaseEstimator) and hasattr(cls, "fit")
    if not cls.__name__.startswith("Hits")  # take sparse hits only: tests/test_hits.py
]
LONG = ("Hyper",)  # two minutes for all checks of one: small ones are among the variants
VARIANTS = [
    AsymmetricRidge(kernel="rbf", alpha=0.5, side="left"),
    AsymmetricRidge(kernel="precomputed", side="left"),
    AsymmetricRidge(kernel="rbf", alpha=0.5, coupled=True),
    DANKClassifier(kernel="linear", n_parts=1),
    DissimilarityKernel(),
    DissimilarityKernel("exponential", power=1.0),
    HyperClassifier(HyperRidge(HYPER, alpha=1e-3, landmarks=20), C=10.0),
    HyperRegressor(HyperRidge(HYPER, alpha=1e-3, landmarks=20), C=10.0),
    HyperRidge(HYPER, landmarks=20, alpha=1e-3),
    HyperSVR(HYPER, landmarks=20, C=1e-3),
    KreinRidge(Gaussian(2.0)),
    KreinRidge(Gaussian(2.0), **PENALTIES, constraint=Ball(10.0)),
    KreinRidge(Gaussian(2.0), **PENALTIES, landmarks=1000),
    KreinRidge("precomputed", **PENALTIES),
    KreinRidgeClassifier(Gaussian(2.0), **PENALTIES),
    KreinRidgeClassifier("precomputed", **PENALTIES),
    KreinSVC(Gaussian(2.0)),
    KreinSVC(Gaussian(2.0), loss="squared_hinge"),
    KreinSVR(Gaussian(2.0)),
    LABClassifier(**SMALL_LAB),
    LABRegressor(**SMALL_LAB),
    TableClassifier(**SMALL_TABLE),
    TableRegressor(**SMALL_TABLE),
    SimilarityClassifier(direction="both"),
    SimilarityClassifier("precomputed", direction="both"),
    SimilarityFeatures(kernel="precomputed", landmarks=5, random_state=0),
    SimilarityRegressor(direction="both"),
    SimilarityRegressor("precomputed", direction="both"),
    *[SpectrumTransformer(mode) for mode in ("clip", "flip", "square", "shift", "truncate")],
]

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
PROBABILITIES = "check_decision_proba_consistency"
LIBSVM = (
    "libsvm stops at a tolerance, so rows in another order give the same to that tolerance only"
)
DRAWN = (
    "support points are drawn from rows, so rows in another order give another model; test_contract.py repeats "
    "them in their order"
)
APART = (
    "the check holds copies out in different folds, so they stay rows of their own, and the calibration's prior and "
    "the k nearest items count rows; test_contract.py has folds that keep them together"
)
FEW = "the check has nine distinct rows, fewer than two for every fold: equal ones count as observations"
# what a row of weight two and two equal rows do not share, by class; test_*.py of the stem show what holds
WEIGHTED = {
    "AsymmetricRidge": FEW,
    "AsymmetricRidgeClassifier": FEW,
    "DANKClassifier": "rows in another order give the same to the solver's tolerance only",
    "DANKRegressor": "rows in another order give the same to the solver's tolerance only",
    "KreinRidgeClassifier": APART,
    "KreinSVC": LIBSVM,
    "KreinSVR": LIBSVM,
    "LABClassifier": DRAWN,
    "LABRegressor": DRAWN,
    "TableClassifier": DRAWN,
    "TableRegressor": DRAWN,
    "SimilarityClassifier": APART,
    "SimilarityRegressor": APART,
}


def expected_failures(estimator):
    """Reasons by name of check."""
    name = type(estimator).__name__
    precomputed = getattr(estimator, "kernel", None) == "precomputed"
    found = {}
    if name in WEIGHTED and not precomputed and not _weights_are_exact(estimator):
        found[WEIGHTS] = WEIGHTED[name]
    if (
        precomputed
        and hasattr(estimator, "predict_proba")
        and hasattr(estimator, "decision_function")
    ):
        found[PROBABILITIES] = "it reads similarities, and the check passes vectors"
    if precomputed and name == "SimilarityClassifier":
        reason = "it reads symmetric matrices, and the check passes others"
        if estimator.direction == "both":
            reason = "given one direction of an asymmetric matrix it warns, and the tests take warnings for errors"
        found["check_classifiers_one_label_sample_weights"] = reason
    if hasattr(estimator, "sparsify"):
        found["check_sparsify_coefficients"] = (
            "there is no coef_: its sparsify keeps the items that matter to predict"
        )
    if precomputed and name.startswith("DANK"):
        reason = "the base kernel must be positive semi-definite, and the check passes matrices that are not"
        found |= {"check_positive_only_tag_during_fit": reason, "check_estimators_dtypes": reason}
    return found


def _weights_are_exact(estimator):
    """Whether a variant needs no tolerance, or leaves no rows out."""
    if isinstance(estimator, AsymmetricRidge):
        return estimator.alpha is not None
    return (
        getattr(estimator, "loss", None) == "squared_hinge"
        or getattr(estimator, "calibrate", True) is False
    )


def defaults(long=False):
    """The public estimators as they are by default, and with a precomputed kernel where they take one."""
    for cls in CLASSES:
        if cls.__name__.startswith(LONG) == long:
            yield cls()
            if "kernel" in inspect.signature(cls).parameters:
                precomputed = cls(kernel="precomputed")
                if precomputed.__sklearn_tags__().input_tags.pairwise:
                    yield precomputed


@parametrize_with_checks(list(defaults()), expected_failed_checks=expected_failures)
def test_defaults(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(list(defaults(long=True)), expected_failed_checks=expected_failures)
def test_long_defaults(estimator, check):
    check(estimator)


@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures)
def test_variants(estimator, check):
    check(estimator)
