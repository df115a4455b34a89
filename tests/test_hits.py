"""Sparse similarities: hits of a search, links of a graph."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array, random_array
from sklearn.linear_model import LogisticRegression, Ridge

from mercerless import HitsClassifier, HitsRegressor, SimilarityClassifier
from mercerless.core.folds import assign_folds
from mercerless.similarity import hits as h

RNG = np.random.RandomState(0)


def graph(n=360, q=4, links=4.0, share=0.6, seed=0, directed=False):
    """A planted graph: links prefer the own class or, directed, the next one."""
    random = np.random.RandomState(seed)
    labels = random.randint(q, size=n)
    likes = (labels[:, None] + directed) % q == labels
    chance = np.where(likes, share, (1 - share) / (q - 1)) * links / (n / q)
    A = random.uniform(size=(n, n)) < chance
    np.fill_diagonal(A, False)
    if not directed:
        A = np.triu(A)
        A = A | A.T
    return csr_array(A.astype(float)), labels


LINKS, LABELS = graph()
TRAIN, NEW = np.arange(240), np.arange(240, 360)
KNOWN, BETWEEN = LINKS[TRAIN][:, TRAIN], LINKS[NEW][:, TRAIN]
pytestmark = pytest.mark.filterwarnings("ignore:.*have no hits")


def best_hit(hits, labels):
    best = np.asarray(hits.argmax(axis=1)).ravel()
    return labels[best]


def test_one_door_for_dense_and_sparse():
    one = SimilarityClassifier("precomputed").fit(KNOWN, LABELS[TRAIN])
    other = HitsClassifier(direction="symmetric").fit(KNOWN, LABELS[TRAIN])
    assert_array_equal(one.predict_proba(BETWEEN), other.predict_proba(BETWEEN))
    assert isinstance(other, SimilarityClassifier)


def test_more_is_learned_than_by_the_best_hit():
    model = HitsClassifier().fit(KNOWN, LABELS[TRAIN])
    assert model.score(BETWEEN, LABELS[NEW]) > np.mean(
        best_hit(BETWEEN, LABELS[TRAIN]) == LABELS[NEW]
    )
    held_out = model.out_of_fold_
    announced = np.mean(held_out.prediction.argmax(axis=1) == held_out.target)
    assert abs(announced - model.score(BETWEEN, LABELS[NEW])) < 0.12


def test_links_of_new_items_among_each_other_help():
    gains = []
    for seed in range(3):
        links, labels = graph(links=3.0, seed=seed, share=0.75)
        known, between = links[:150][:, :150], links[150:][:, :150]
        model = SimilarityClassifier("precomputed").fit(known, labels[:150])
        among = model.predict(between, among=links[150:][:, 150:])
        gains.append(np.mean(among == labels[150:]) - model.score(between, labels[150:]))
    assert np.mean(gains) > 0.05


def rows_by(A, norm):
    size = norm(A)[:, None]
    return np.divide(A, size, out=np.zeros_like(A), where=size > 0)


@pytest.mark.filterwarnings("ignore::mercerless.UselessModelWarning")
@pytest.mark.parametrize("cls", [HitsClassifier, HitsRegressor])
@pytest.mark.parametrize("direction", ["symmetric", "both"])
def test_linked_predictions_are_a_regression_on_means_around_items(cls, direction):
    random = np.random.RandomState(0)
    n, weight = 60, random.uniform(0.5, 2.0, 60)
    S = np.where(random.uniform(size=(80, 80)) < 0.15, random.uniform(size=(80, 80)), 0.0)
    S = np.maximum(S, S.T) if direction == "symmetric" else S
    np.fill_diagonal(S, 0.0)
    y = random.randint(3, size=n) if cls is HitsClassifier else random.normal(size=n)
    model = cls(direction=direction).fit(csr_array(S[:n, :n]), y, sample_weight=weight)
    back = {"reverse": csr_array(S[:n, n:].T)} if direction == "both" else {}
    among = csr_array(S[n:, n:])
    actual = model.predict(csr_array(S[n:, :n]), among=among, **back)

    relative = rows_by(S, lambda A: A.max(axis=1))
    P = rows_by(np.maximum(relative, relative.T), lambda A: A.max(axis=1))
    P = rows_by(P, lambda A: A.sum(axis=1))
    weight = weight / weight.mean()
    targets = (
        np.eye(3)[y] if cls is HitsClassifier else (y[:, None] - np.average(y, weights=weight))
    )
    mean = np.average(targets, axis=0, weights=weight)

    def around(P, weight):
        """Weighted mean targets, with a little of the mean of all."""
        P = P[:, :n] * weight
        return (P @ targets + 1e-3 * mean) / (P.sum(axis=1, keepdims=True) + 1e-3)

    steps = 0.15 * sum(np.linalg.matrix_power(0.85 * P, k) for k in range(20))
    steps += np.linalg.matrix_power(0.85 * P, 20)
    spread = around(steps, weight)
    for fold in range(5):
        of_fold = assign_folds(5, n, random_state=0) == fold
        spread[:n][of_fold] = around(steps, np.where(of_fold, 0.0, weight))[:n][of_fold]
    two = P @ P
    np.fill_diagonal(two, 0.0)
    F = np.hstack([around(P, weight), around(two, weight), spread])
    F = (F - F[:n].mean(axis=0)) / F[:n].std(axis=0)
    if cls is HitsClassifier:
        machine = LogisticRegression(max_iter=500).fit(F[:n], y, weight)
        assert_array_equal(actual, machine.predict(F[n:]))
        proba = model.predict_proba(csr_array(S[n:, :n]), among=among, **back)
        assert_allclose(proba, machine.predict_proba(F[n:]), atol=1e-4)
    else:
        assert_allclose(actual, Ridge(1.0).fit(F[:n], y, weight).predict(F[n:]), atol=1e-6)


def test_items_without_hits_are_predicted_by_the_shares_and_listed():
    model = HitsClassifier().fit(KNOWN, LABELS[TRAIN])
    nothing = csr_array((2, 240))
    with pytest.warns(UserWarning, match=r"2 of 2 new items have no hits \(0, 1\)"):
        proba = model.predict_proba(nothing)
    shares = np.bincount(LABELS[TRAIN]) / 240
    assert_allclose(proba[0], shares, atol=0.15)


def test_directed_graphs_use_both_directions():
    links, labels = graph(directed=True, links=3.0, share=0.8)
    known, there, back = (
        links[:240][:, :240],
        links[240:][:, :240],
        csr_array(links[:240][:, 240:].T),
    )
    with pytest.raises(ValueError, match="not symmetric"):
        SimilarityClassifier("precomputed").fit(known, labels[:240])
    rows = HitsClassifier(direction="rows").fit(known, labels[:240])
    both = HitsClassifier(direction="both").fit(known, labels[:240])
    assert np.mean(both.predict(there, reverse=back) == labels[240:]) > 0.05 + rows.score(
        there, labels[240:]
    )
    with pytest.raises(ValueError, match="reverse"):
        both.predict(there)


def test_numbers_are_predicted():
    place = RNG.uniform(size=160)
    gaps = np.abs(place[:, None] - place)
    near = csr_array(np.where(gaps < 0.08, 1.0 - gaps, 0.0))
    y = np.sin(6 * place)
    model = HitsRegressor().fit(near[:120][:, :120], y[:120])
    assert model.score(near[120:][:, :120], y[120:]) > 0.9
    ends = model.predict_interval(near[120:][:, :120])
    assert np.mean((ends[:, 0] <= y[120:]) & (y[120:] <= ends[:, 1])) > 0.75


def test_distances_have_their_median_as_unit():
    points = RNG.normal(size=(150, 2))
    D = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    labels = (points[:, 0] > 0).astype(int)
    near = csr_array(np.where((D < 0.7) & (D > 0), D, 0.0))
    model = HitsClassifier(kind="distance").fit(near[:100][:, :100], labels[:100])
    proba = model.predict_proba(near[100:][:, :100])
    assert np.mean(proba.argmax(axis=1) == labels[100:]) > 0.8
    scaled = HitsClassifier(kind="distance").fit(9.0 * near[:100][:, :100], labels[:100])
    assert_allclose(scaled.predict_proba(9.0 * near[100:][:, :100]), proba, atol=1e-4)


def test_weights_of_zero_names_and_the_diagonal_change_nothing():
    proba = HitsClassifier().fit(KNOWN, LABELS[TRAIN]).predict_proba(BETWEEN)
    named = np.array(["d", "c", "b", "a"])[LABELS]
    with_own = csr_array(KNOWN + 5.0 * csr_array(np.eye(240)))
    other = HitsClassifier().fit(with_own, named[TRAIN]).predict_proba(BETWEEN)
    assert_allclose(other[:, ::-1], proba, atol=1e-4)
    weight = np.r_[np.ones(200), np.zeros(40)]
    fewer = HitsClassifier().fit(KNOWN[:200][:, :200], LABELS[:200])
    zeros = HitsClassifier().fit(KNOWN, LABELS[TRAIN], sample_weight=weight)
    assert_allclose(zeros.predict_proba(BETWEEN), fewer.predict_proba(BETWEEN[:, :200]))


def test_noise_is_not_learned():
    accuracies = []
    for seed in range(6):
        S = csr_array(random_array((150, 150), density=0.05, rng=np.random.default_rng(seed)))
        labels = np.random.RandomState(seed).randint(2, size=150)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            held_out = HitsClassifier().fit(S, labels).out_of_fold_
        accuracies.append(np.mean(held_out.prediction.argmax(axis=1) == labels))
    assert np.mean(accuracies) < 0.56


# families by brute force


def block_and_votes(n=30, m=12):
    random = np.random.RandomState(1)
    dense = random.uniform(size=(n + m, n)) * (random.uniform(size=(n + m, n)) < 0.3)
    dense[:n][np.arange(n), np.arange(n)] = 0.0
    labels = random.randint(3, size=n)
    known = h.HitBlock.of(csr_array(dense[:n]), None, np.ones(n))
    new = known.new(csr_array(dense[n:]), None)
    return known, new, dense, labels


def test_votes_by_brute_force():
    known, new, dense, labels = block_and_votes()
    Y = np.where(np.arange(3) == labels[:, None], 1.0, -1.0)
    scores = h.Votes("hits", True).fit(known, Y).scores(new)
    shares = np.bincount(labels) / 30
    for (number, power), score in zip(h.Votes("hits", True).settings, scores):
        for row, values in zip(score, dense[30:]):
            order = np.argsort(-values)[: number or np.count_nonzero(values)]
            order = order[values[order] > 0]
            weights = (values[order] / values.max()) ** power
            votes = np.bincount(labels[order], weights, minlength=3)
            expected = np.log((votes + h.PRIOR * shares) / (weights.sum() + h.PRIOR))
            assert_allclose(row, expected, atol=1e-10)


def test_rows_of_hits_are_features_of_ridge_regression():
    known, new, _, labels = block_and_votes()
    Y = np.eye(3)[labels]
    family = h.RidgeRows("hits", True)
    X, Z = (family._features(block).toarray() for block in (known, new))
    centered = Y - Y.mean(axis=0)
    for penalty, score in zip(family.settings, family.fit(known, Y).scores(new)):
        coef = np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ centered)
        assert_allclose(score, Z @ coef + Y.mean(axis=0), atol=1e-3)


def test_features_of_an_item_do_not_know_its_own_label():
    known, _, _, labels = block_and_votes()
    Y = np.eye(3)[labels]
    other = Y.copy()
    other[4] = np.roll(other[4], 1)
    features = []
    for targets in (Y, other):
        ballots = h.Ballots(h.Ballots.of(targets, known.weight, True).sums, np.full(3, 1 / 3), True)
        features.append(h.ShareFeatures(known, ballots).of_training(known)[4])
    assert_allclose(features[0], features[1], atol=1e-10)


def test_two_steps_by_brute_force():
    known, new, dense, labels = block_and_votes()
    ballots = h.Ballots.of(np.eye(3)[labels], known.weight, True)
    features = h.ShareFeatures(known, ballots).of_new(new)
    P = dense[:30] / np.maximum(dense[:30].sum(axis=1, keepdims=True), 1e-300)
    R = dense[30:] / np.maximum(dense[30:].sum(axis=1, keepdims=True), 1e-300)
    votes = R @ P @ np.eye(3)[labels]
    total = (R @ P).sum(axis=1, keepdims=True)
    expected = np.log((votes + h.PRIOR * np.bincount(labels) / 30) / (total + h.PRIOR))
    assert_allclose(features[:, 5], expected, atol=1e-8)


@pytest.mark.parametrize(
    "X, message",
    [
        (csr_array(-np.eye(240)), "negative entries"),
        (csr_array(np.full((240, 240), np.nan)), "not finite"),
        (csr_array((240, 240)), "no hits among"),
        (KNOWN[:, :100], "one row and one column per"),
        (csr_array(np.where(np.eye(240), 0.1, 1.0)), "smallest on the diagonal"),
    ],
)
def test_mistakes_raise_one_sentence(X, message):
    with pytest.raises(ValueError, match=message):
        HitsClassifier().fit(X, LABELS[TRAIN])


def test_repeated_pairs_are_said():
    pairs = KNOWN.tocoo()
    rows, columns = (np.append(index, index[0]) for index in pairs.coords)
    twice = coo_array((np.ones(len(rows)), (rows, columns)), shape=(240, 240))
    with pytest.warns(UserWarning, match="lists 1 hits of pairs"):
        HitsClassifier().fit(twice, LABELS[TRAIN])


def test_dense_rows_for_a_model_of_hits_raise():
    model = HitsClassifier().fit(KNOWN, LABELS[TRAIN])
    with pytest.raises(TypeError, match="must be a sparse array"):
        model.predict(BETWEEN.toarray())
    dense = SimilarityClassifier("precomputed").fit(
        np.minimum(KNOWN.toarray() + np.eye(240), 1), LABELS[TRAIN]
    )
    with pytest.raises(ValueError, match="X is sparse"):
        dense.predict(BETWEEN)
