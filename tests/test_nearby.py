"""Neighbors through landmarks: what is compared, against a loop, honesty, and bad input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from mercerless import KreinRidge, SimilarityClassifier, SimilarityRegressor
from mercerless.kernels import MatrixFunction
from mercerless.lowrank import Landmarks
from mercerless.similarity.families import Comparisons
from mercerless.similarity.nearby import NearbyComparisons, NearbyFamily

X, Y = load_digits(return_X_y=True)
TRAIN, NEW = slice(0, 260), slice(260, 330)
LANDMARKS = Landmarks(20, neighbors=15)


class Counted:
    """Manhattan distances, and how many were asked for."""

    def __init__(self):
        self.n_pairs = 0

    def __call__(self, A, B):
        self.n_pairs += len(A) * len(B)
        return cdist(np.asarray(A), np.asarray(B), "cityblock")


def learner(function, landmarks=LANDMARKS, kind=SimilarityClassifier, **options):
    kernel = MatrixFunction(function, symmetric=True)
    return kind(kernel, kind="distance", landmarks=landmarks, random_state=0, **options)


@pytest.fixture(scope="module")
def model():
    return learner(Counted()).fit(X[TRAIN], Y[TRAIN])


def test_landmarks_and_neighbors_are_all_that_is_compared():
    plain = Counted()
    learner(plain, Landmarks(20)).fit(X[TRAIN], Y[TRAIN])
    counted = Counted()
    model = learner(counted).fit(X[TRAIN], Y[TRAIN])
    # at most these: a pair of two items that are near each other serves both
    assert plain.n_pairs + 250 * 15 <= counted.n_pairs <= plain.n_pairs + 260 * 15
    counted.n_pairs = 0
    model.kernel_.function.n_pairs = 0
    model._nearby_.compare.function.n_pairs = 0
    model.predict(X[NEW])
    asked = {
        id(f): f.n_pairs for f in (counted, model.kernel_.function, model._nearby_.compare.function)
    }
    assert sum(asked.values()) == 70 * (20 + 15)


def test_hits_against_a_loop_over_all_items(model):
    nearby = model._nearby_
    landmarks = model.landmarks_
    D = cdist(X[TRAIN], X[TRAIN], "cityblock")
    profiles = D[:, landmarks]
    profiles = (profiles - profiles.mean(axis=0)) / profiles.std(axis=0)
    to_landmarks = cdist(X[NEW], X[TRAIN][landmarks], "cityblock")
    new = to_landmarks - D[:, landmarks].mean(axis=0)
    new = new / D[:, landmarks].std(axis=0)
    compared = model._compare(X[NEW], None, np.zeros(70))
    exact = cdist(X[NEW], X[TRAIN], "cityblock")
    for row in range(70):
        away = ((profiles - new[row]) ** 2).sum(axis=1)
        away[landmarks] = np.inf
        found = np.concatenate([np.argsort(away)[:15], landmarks])
        distances = exact[row, found]
        nearest = np.sort(distances)[:15]
        stored = compared.hits[[row]].toarray().ravel()
        assert_allclose(
            np.sort(stored[stored > 0.0])[::-1], np.exp(-(nearest**2) / nearby.unit), rtol=1e-9
        )


def test_training_items_are_no_hits_of_their_own(model):
    task = model._task(Y[TRAIN], None, None)
    rows = learner(Counted())._prepare(X[TRAIN], task).source.rows
    assert not rows.hits.diagonal().any()
    assert np.all(np.diff(rows.hits.indptr) == 15)
    values = rows.hits.data
    assert_allclose(np.median(-np.log(values)), 1.0, rtol=1e-9)


def test_held_out_labels_have_no_part_in_their_own_scores():
    changed = Y[TRAIN].copy()
    folds = [
        (np.arange(260)[np.arange(260) % 4 != k], np.arange(260)[np.arange(260) % 4 == k])
        for k in range(4)
    ]
    changed[folds[0][1]] = (changed[folds[0][1]] + 1) % 10

    def scores(labels):
        fresh = learner(Counted(), cv=folds)
        prepared = fresh._prepare(X[TRAIN], fresh._task(labels, None, None))
        training = prepared.training
        learned = prepared.source.learn(training.Y, training.weight, True)
        first = [s.family.startswith("nearby") for f in learned.families for s in f.settings]
        return learned.score_fold(0)[first]

    assert_allclose(scores(Y[TRAIN]), scores(changed), rtol=1e-9, atol=1e-12)


def test_neighbors_take_part_and_are_forgotten(model):
    assert np.mean(model.predict(X[NEW]) == Y[NEW]) > 0.9
    weight = sum(
        row["weight"] for name, row in model.family_scores_.items() if name.startswith("nearby")
    )
    assert weight > 0.02
    assert model.explain(X[NEW][:2]).items.shape[0] == 2
    again = learner(Counted(), Landmarks(20)).fit(X[TRAIN], Y[TRAIN])
    model_again = learner(Counted()).fit(X[TRAIN], Y[TRAIN])
    model_again.set_params(landmarks=Landmarks(20)).fit(X[TRAIN], Y[TRAIN])
    assert model_again._nearby_ is None  # which would compare new items for nothing
    assert_allclose(model_again.predict_proba(X[NEW]), again.predict_proba(X[NEW]))


@pytest.mark.parametrize("classify", [True, False])
def test_the_unit_of_the_weights_of_neighbors_cancels(classify):
    """Weights are relative: only the prior of the votes would notice their size."""
    rng = np.random.default_rng(0)
    similarities = np.exp(-cdist(X[:60], X[:60]) / 20.0)
    np.fill_diagonal(similarities, 0.0)
    hits = csr_array(np.where(similarities > np.quantile(similarities, 0.8), similarities, 0.0))
    targets = np.where(Y[:60, None] % 3 == np.arange(3), 1.0, -1.0)
    if not classify:
        targets = X[:60, 20:22] / 8.0 - 1.0
    weight = rng.uniform(0.2, 3.0, 60)
    items = np.arange(0, 60, 2)
    others = np.arange(1, 60, 2)
    comparisons = Comparisons.of(similarities + np.eye(60)).take(others)
    new = NearbyComparisons(**vars(comparisons), hits=csr_array(hits[others]))
    family = NearbyFamily(hits, classify)
    expected = family.fit_items(items, targets, weight).scores(new)
    assert_allclose(family.fit_items(items, targets, 7.0 * weight).scores(new), expected)
    assert np.abs(family.fit_items(items, targets, np.ones(60)).scores(new) - expected).max() > 1e-3


def test_numbers_have_neighbors_too():
    y = X[:, 20] + 0.1 * X[:, 30]
    model = learner(Counted(), kind=SimilarityRegressor).fit(X[TRAIN], y[TRAIN])
    assert model.score(X[NEW], y[NEW]) > 0.5
    assert any(setting.family.startswith("nearby") for setting in model.members_)


@pytest.mark.parametrize("neighbors", [0, -3, 2.5, True, "many"])
def test_neighbors_must_be_a_positive_number(neighbors):
    with pytest.raises(ValueError, match="neighbors must be a positive whole number"):
        learner(Counted(), Landmarks(20, neighbors=neighbors)).fit(X[TRAIN], Y[TRAIN])


def test_what_has_no_neighbors_raises():
    D = cdist(X[TRAIN], X[TRAIN][:20], "cityblock")
    given = SimilarityClassifier("precomputed", kind="distance", landmarks=LANDMARKS)
    with pytest.raises(ValueError, match="is for one kernel or function"):
        given.fit(D, Y[TRAIN])
    several = SimilarityClassifier(["rbf", "laplacian"], landmarks=LANDMARKS)
    with pytest.raises(ValueError, match="leave neighbors out"):
        several.fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match="leave neighbors out"):
        KreinRidge(landmarks=LANDMARKS).fit(X[TRAIN], Y[TRAIN])
