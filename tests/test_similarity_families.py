"""Families on blocks of comparisons, against scikit-learn and brute force."""

import numpy as np
import pytest
from draws import eigenvalues, few, labels_of, matrix_of, scales, seeds
from hypothesis import given
from numpy.testing import assert_allclose
from oracles.similarity import sparse_machine_dual
from scipy.spatial.distance import cdist
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from mercerless.similarity import families as f
from mercerless.similarity.blocks import Block
from mercerless.similarity.linear import sparse_machine

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
LABELS = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
Y = np.where(np.arange(3) == LABELS[:, None], 1.0, -1.0)
TRAIN, NEW = slice(0, 40), slice(40, 60)
D = cdist(X, X, "cityblock")
PENALTIES = (1e-3, 1e-1)
COUNTS = (1, 3, 5, 9, 15, 25)
CLASSES = ((1, False), (1, True), (3, False), (3, True))


def blocks(landmarks=None, weight=None, kind="distance", D=D):
    weight = np.ones(40) if weight is None else weight
    columns = np.arange(40) if landmarks is None else landmarks
    own = np.diagonal(D)
    known = Block.of(D[TRAIN][:, columns], own[TRAIN], kind, weight=weight, center_rows=landmarks)
    return known, known.new(D[NEW][:, columns], own[NEW])


def ridge(F, G, weight, penalty):
    """scikit-learn's ridge regression, with the penalty relative to the weighted, centered Gram matrix."""
    centered = np.sqrt(weight)[:, None] * (F - np.average(F, axis=0, weights=weight))
    alpha = penalty * np.linalg.norm(centered @ centered.T)
    return Ridge(alpha).fit(F, Y[TRAIN], weight).predict(G)


def standardized(A, B):
    return (A - A.mean(axis=0)) / A.std(axis=0), (B - A.mean(axis=0)) / A.std(axis=0)


def unit_of(squares, landmarks=None):
    columns = np.arange(40) if landmarks is None else landmarks
    return np.median(squares[np.arange(40)[:, None] != columns])


@pytest.mark.parametrize("landmarks", [None, np.arange(0, 40, 4)])
def test_gaussians_are_ridge_regressions(landmarks):
    known, new = blocks(landmarks)
    A, B = known.distances, new.distances
    unit = unit_of(A**2, landmarks)
    features = {
        2: [np.exp(-3 * C**2 / unit) for C in (A, B)],
        1: [np.exp(-C / np.sqrt(unit)) for C in (A, B)],
    }
    settings = [(power, penalty) for power in features for penalty in PENALTIES]
    scores = f.Gaussians("g", settings).fit(known, Y[TRAIN]).scores(new)
    for (power, penalty), score in zip(settings, scores):
        assert_allclose(score, ridge(*features[power], np.ones(40), penalty), atol=1e-8)


def test_weights_are_those_of_ridge_regression():
    weight = RNG.uniform(0.5, 2.0, 40)
    weight /= weight.mean()
    known, new = blocks(weight=weight)
    unit = unit_of(known.squares)
    F, G = (np.exp(-3 * block.squares / unit) for block in (known, new))
    score = f.Gaussians("g", [(2, PENALTIES[1])]).fit(known, Y[TRAIN]).scores(new)[0]
    assert_allclose(score, ridge(F, G, weight, PENALTIES[1]), atol=1e-8)


@pytest.mark.parametrize("name", ["clip", "flip", "square"])
def test_spectral_families_are_ridge_regressions_on_the_changed_spectrum(name):
    known, _ = blocks()
    center = np.eye(40) - 1 / 40
    values, vectors = np.linalg.eigh(center @ known.similarities @ center)
    changed = {"clip": np.maximum(values, 0), "flip": np.abs(values), "square": values**2}[name]
    K = (vectors * changed) @ vectors.T
    target = Y[TRAIN] - Y[TRAIN].mean(axis=0)
    again = known.new(D[TRAIN, TRAIN], np.zeros(40))
    scores = (
        f.Spectral("spectrum", [(name, p) for p in PENALTIES]).fit(known, Y[TRAIN]).scores(again)
    )
    for penalty, score in zip(PENALTIES, scores):
        ridged = K + penalty * np.linalg.norm(K) * np.eye(40)
        assert_allclose(
            score, K @ np.linalg.solve(ridged, target) + Y[TRAIN].mean(axis=0), atol=1e-8
        )


def test_profiles_are_kernel_ridge_regression_on_rows():
    known, new = blocks()
    A, B = standardized(known.distances, new.distances)
    squares = cdist(A, A, "sqeuclidean")
    unit = np.median(squares[np.triu_indices(40, 1)])
    K, T = np.exp(-squares / unit), np.exp(-cdist(B, A, "sqeuclidean") / unit)
    center = np.eye(40) - 1 / 40
    ridged = center @ K @ center
    ridged = ridged + 0.01 * np.linalg.norm(ridged) * np.eye(40)
    dual = center @ np.linalg.solve(ridged, center @ Y[TRAIN])
    level = Y[TRAIN].mean(axis=0) - (K @ dual).mean(axis=0)
    score = f.Profiles("profiles", [(1.0, 0.01)]).fit(known, Y[TRAIN]).scores(new)[0]
    assert_allclose(score, T @ dual + level, atol=1e-8)


def test_profiles_of_many_rows_are_close_to_exact_ones(monkeypatch):
    known, new = blocks(np.arange(8))
    exact = f.Profiles("profiles", [(1.0, 1e-2)]).fit(known, Y[TRAIN]).scores(new)
    monkeypatch.setattr(f, "POINTS", 39)
    placed = f.Profiles("profiles", [(1.0, 1e-2)]).fit(known, Y[TRAIN]).scores(new)
    assert_allclose(placed, exact, atol=0.15)


def test_the_embedding_of_vectors_keeps_their_distances():
    E = cdist(X, X)
    known, new = blocks(np.arange(0, 40, 4), D=E)
    family = f.Embedding("embedding", [(1.0, 1e-2)]).fit(known, Y[TRAIN])
    places = np.vstack([family.place(known), family.place(new)])
    assert_allclose(cdist(places, places), E / np.sqrt(known.scale), atol=1e-6)


def test_landmarks_that_are_no_items_have_all_families_but_those_of_classes():
    outside = Block.of(
        D[TRAIN, NEW], np.zeros(40), "distance", weight=np.ones(40), center_rows=np.full(20, -1)
    )
    names = {family.name for family in outside.families(classify=True)}
    assert names == {"gaussian", "profiles", "neighbors"}


def test_neighbors_are_those_of_scikit_learn():
    known, new = blocks()
    scores = f.Neighbors("neighbors", COUNTS).fit(known, Y[TRAIN]).scores(new)
    for count, score in zip(COUNTS, scores):
        model = KNeighborsRegressor(count, metric="precomputed").fit(D[TRAIN, TRAIN], Y[TRAIN])
        assert_allclose(score, model.predict(D[NEW, TRAIN]))


def test_weights_of_neighbors_are_repetition():
    counts = RNG.randint(1, 4, size=40)
    rows = np.repeat(np.arange(40), counts)
    repeated = Block.of(
        D[np.ix_(rows, rows)], np.zeros(len(rows)), "distance", weight=np.ones(len(rows))
    )
    known, new = blocks(weight=counts.astype(float))
    weighted = f.Neighbors("n", COUNTS).fit(known, Y[TRAIN]).scores(new)
    plain = f.Neighbors("n", COUNTS).fit(repeated, Y[rows])
    assert_allclose(weighted, plain.scores(repeated.new(D[40:60][:, rows], None)))


def test_neighbors_of_equal_distance_share_the_votes_whatever_their_order():
    steps = np.round(D)  # many ties
    order = RNG.permutation(40)
    known, new = blocks(D=steps)
    shuffled = Block.of(steps[np.ix_(order, order)], np.zeros(40), "distance", weight=np.ones(40))
    one = f.Neighbors("n", COUNTS).fit(known, Y[TRAIN]).scores(new)
    other = (
        f.Neighbors("n", COUNTS)
        .fit(shuffled, Y[order])
        .scores(shuffled.new(steps[40:60][:, order], None))
    )
    assert_allclose(one, other, atol=1e-12)


def test_distances_to_classes_by_brute_force():
    known, new = blocks()
    scores = f.ClassDistances("classes", CLASSES).fit(known, Y[TRAIN]).scores(new)
    unit = np.median(D[TRAIN, TRAIN][~np.eye(40, dtype=bool)])
    for setting, score in zip(CLASSES, scores):
        count, is_log = setting
        away = np.empty((20, 3))
        for label in range(3):
            of_class = np.sort(D[NEW, TRAIN][:, LABELS[TRAIN] == label], axis=1)[:, :count] / unit
            away[:, label] = np.log(of_class.mean(axis=1)) if is_log else of_class.mean(axis=1)
        assert_allclose(score, away.mean(axis=1, keepdims=True) - away, atol=1e-9)


def test_held_out_landmarks_have_no_class():
    known, _ = blocks(np.arange(0, 40, 4))
    train, test = known.split(np.arange(20), np.arange(20, 40))
    assert (train.center_rows >= 0).sum() == 5 and train.similarities.shape == (20, 10)
    fitted = f.ClassDistances("classes", CLASSES).fit(train, Y[:20])
    assert set(fitted.rows) == {0, 4, 8, 12, 16}
    assert np.all(np.isfinite(fitted.scores(test)))


def test_held_out_items_are_no_centers():
    train, test = blocks()[0].single().split(np.arange(30), np.arange(30, 40))
    assert train.similarities.shape == (30, 30) and test.similarities.shape == (10, 30)
    assert train.similarities.dtype == np.float32


def known_shares(known, targets):
    """The features of training rows, before they are scaled."""
    family = f.Shares("shares", [(None, 1e-3)])
    family.prepare(known, targets)
    return family.known_features * family.scale


def test_shares_by_brute_force():
    K = np.exp(-D)
    known, new = blocks(kind="similarity", D=K)
    family = f.Shares("shares", [(None, 1e-3)]).fit(known, Y[TRAIN])
    onehot = (Y[TRAIN] > 0).astype(float)
    S = K[TRAIN, TRAIN] - np.diag(np.diagonal(K)[TRAIN])
    P = S / S.sum(axis=1, keepdims=True)
    R = K[NEW, TRAIN] / K[NEW, TRAIN].sum(axis=1, keepdims=True)
    assert_allclose(
        family.features(new, None) * family.scale, np.sqrt(np.hstack([R @ onehot, R @ P @ onehot]))
    )
    two_steps = P @ P
    np.fill_diagonal(two_steps, 0.0)
    own = known_shares(known, Y[TRAIN])
    assert_allclose(own, np.sqrt(np.hstack([P @ onehot, two_steps @ onehot])), atol=1e-12)


def test_no_item_votes_for_itself():
    known, _ = blocks(kind="similarity", D=np.exp(-D))
    other = Y[TRAIN].copy()
    other[7] = other[7][[1, 2, 0]]
    assert_allclose(known_shares(known, Y[TRAIN])[7], known_shares(known, other)[7])


@pytest.mark.parametrize("landmarks", [None, np.arange(0, 40, 4)])
def test_linear_families_are_sums_over_targets(landmarks):
    known, new = blocks(landmarks)
    for family in known.families(classify=True):
        if isinstance(family, f.ClassDistances):
            continue
        by_item = family.fit(known, Y[TRAIN], np.eye(40)).scores(new)
        scores = family.fit(known, Y[TRAIN]).scores(new)
        assert_allclose(by_item @ Y[TRAIN], scores, atol=1e-7, err_msg=family.name)
        assert_allclose(by_item.sum(axis=2), 1.0, atol=1e-7)


def test_a_constant_matrix_gives_finite_scores():
    zeros = np.zeros((60, 60))
    for kind in ("distance", "similarity"):
        known, new = blocks(D=zeros, kind=kind)
        for family in known.families(classify=True):
            assert np.all(np.isfinite(family.fit(known, Y[TRAIN]).scores(new))), family.name


def test_units_of_similarities_do_not_matter():
    K = np.tanh(X @ X.T)
    one, new = blocks(kind="similarity", D=K)
    other, other_new = blocks(kind="similarity", D=1e6 * K)
    for a, b in zip(one.families(True), other.families(True)):
        first, second = a.fit(one, Y[TRAIN]).scores(new), b.fit(other, Y[TRAIN]).scores(other_new)
        assert_allclose(first, second, atol=1e-5, err_msg=a.name)


def test_profiles_that_rounding_makes_singular_are_factorized():
    A = np.ones((50, 50), dtype=np.float32)
    triangle, _ = f.definite_factor(A, 1e-9)
    assert np.all(np.isfinite(triangle))


# arbitrary spectra and scales


@few
@given(eigenvalues, seeds, scales)
def test_sparse_machine(values, seed, scale):
    K, rng = matrix_of(values, seed), np.random.default_rng(seed)
    signs = labels_of(len(K), rng)
    found = sparse_machine(scale * K, signs, 1.0 / scale)
    assert found.gap < 1e-6
    hinge = np.maximum(0.0, 1.0 - signs * (scale * K @ found.coef + found.intercept))
    value = scale * np.abs(found.coef).sum() + hinge.sum()
    assert (
        value - sparse_machine_dual(K, signs, np.ones(len(K))) <= (found.gap + 1e-6) * value + 1e-9
    )
