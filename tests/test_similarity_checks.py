"""scikit-learn's estimator checks, on vectors and on precomputed similarities."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mercerless.estimators.similarity import (
    SimilarityClassifierCV,
    SimilarityFeatures,
    SimilarityRegressorCV,
    SimilaritySVC,
)

# Folds are drawn over items, so an item repeated twice may sit in two folds while one of weight 2 sits in one; and the
# k nearest items are counted, not weighed. test_similarity.py shows what does hold.
REPETITION = {"check_sample_weight_equivalence_on_dense_data": "folds and neighbours count items, not repetitions"}
# The optimum is the same (test_similarity.py), but the optimal vertex of a linear programme need not be unique.
VERTEX = {"check_sample_weight_equivalence_on_dense_data": "optimal vertices of a linear programme are not unique"}
# These two checks hand over vectors or random numbers although the estimator is tagged pairwise.
NOT_PAIRWISE = {
    "check_decision_proba_consistency": "passes vectors to a precomputed kernel",
    "check_classifiers_one_label_sample_weights": "passes an asymmetric matrix to a precomputed kernel",
}


def expected_failures(estimator):
    if isinstance(estimator, SimilaritySVC):
        return VERTEX if estimator.kernel != "precomputed" else {}
    if isinstance(estimator, SimilarityClassifierCV) and estimator.kernel == "precomputed":
        return NOT_PAIRWISE
    if isinstance(estimator, SimilarityFeatures) or estimator.kernel == "precomputed":
        return {}
    return REPETITION


@parametrize_with_checks(
    [
        SimilarityClassifierCV(random_state=0),
        SimilarityClassifierCV(kernel="precomputed", random_state=0),
        SimilarityRegressorCV(random_state=0),
        SimilarityRegressorCV(kernel="precomputed", random_state=0),
        SimilarityFeatures(random_state=0),
        SimilarityFeatures(kernel="precomputed", n_landmarks=5, random_state=0),
        SimilaritySVC(),
        SimilaritySVC(kernel="precomputed"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)
