"""Three copies of every row: each family that validates itself keeps them on one side of a fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from mercerless import (
    DANKClassifier,
    GradientSearch,
    HyperRidge,
    KreinRidge,
    KreinRidgeClassifier,
    SimilarityClassifier,
    SimilarityRegressor,
)
from mercerless.comparison.problem import make_problem
from mercerless.comparison.scoring import outer_folds
from mercerless.kernels import Gaussian

RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(360, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
Y = F + 0.5 * RANDOM.normal(size=360)
LABELS = (Y > 0).astype(int)
ONCE, THRICE, TEST = np.arange(60), np.tile(np.arange(60), 3), np.arange(60, 360)


def matrices(rows):
    return RBF()(X[rows]), RBF()(X[TEST], X[rows])


@pytest.mark.parametrize("precomputed", [False, True])
def test_krein_chooses_the_same_strength(precomputed):
    """With copies on both sides the error of the weakest penalty is nearly zero, and it is chosen."""
    errors, scores = [], []
    for rows in (ONCE, THRICE):
        train, test = matrices(rows) if precomputed else (X[rows], X[TEST])
        model = KreinRidge("precomputed" if precomputed else Gaussian(1.0), random_state=0).fit(
            train, Y[rows]
        )
        errors.append(model.cv_results_["error"].min())
        scores.append(model.score(test, Y[TEST]))
    assert errors[1] > 0.7 * errors[0]
    assert scores[1] > scores[0] - 0.1


def test_krein_classifier_stays_modest():
    """Noisy labels: probabilities learned from copies would be near 0 and 1."""
    models = [
        KreinRidgeClassifier(Gaussian(1.0), random_state=0).fit(X[rows], LABELS[rows])
        for rows in (ONCE, THRICE)
    ]
    extreme = [np.mean(np.abs(model.predict_proba(X[TEST])[:, 1] - 0.5)) for model in models]
    assert extreme[1] < extreme[0] + 0.12
    assert models[1].score(X[TEST], LABELS[TEST]) > models[0].score(X[TEST], LABELS[TEST]) - 0.05


@pytest.mark.parametrize("learner", [SimilarityClassifier, SimilarityRegressor])
def test_similarity(learner):
    y, scores = (LABELS if learner is SimilarityClassifier else Y), []
    for rows in (ONCE, THRICE):
        train, test = matrices(rows)
        scores.append(
            learner(kernel="precomputed", random_state=0).fit(train, y[rows]).score(test, y[TEST])
        )
    assert scores[1] > scores[0] - 0.06


@pytest.mark.slow
def test_dank_search_stays_modest():
    """Noisy labels: held-out copies of training rows would be known by heart, and the loss near zero."""
    losses = []
    for rows in (ONCE, THRICE):
        model = DANKClassifier(Gaussian(1.0), search=GradientSearch(0, 2), random_state=0).fit(
            X[rows], LABELS[rows]
        )
        losses.append(min(model.tuning_.losses))
    assert losses[1] > 0.8 * losses[0]


@pytest.mark.slow
def test_hyper_errors_are_honest():
    """Noisy similarities: copies on both sides would have been learned by heart."""
    errors = []
    for rows in (ONCE[:30], np.tile(ONCE[:30], 3)):
        model = HyperRidge(landmarks=60, random_state=0).fit(X[rows], LABELS[rows])
        errors.append(min(row["error"] for row in model.cv_results_))
    assert errors[1] > 0.8 * errors[0]


def test_compare_holds_out_copies_together():
    problem = make_problem(X[THRICE], LABELS[THRICE])
    for train, test in outer_folds(problem, 0, 0):
        assert not set(THRICE[train]) & set(THRICE[test])
        assert_allclose(len(test), 36, atol=3)
