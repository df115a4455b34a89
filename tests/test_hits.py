"""The classifier on hits: against dense formulas, identities, honesty, bad input, and size."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import coo_array, csr_array
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

from mercerless import HitsClassifier, persistence
from mercerless.similarity import hits as h


def planted(n=240, n_classes=3, n_hits=12, noise=0.35, seed=0):
    """Hits of items that mostly point to items of their own class, and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    rows, columns, values = [], [], []
    for i in range(n):
        others = np.delete(np.arange(n), i)
        same = others[y[others] == y[i]]
        for _ in range(n_hits):
            is_noise = rng.uniform() < noise
            columns.append(rng.choice(others if is_noise else same))
            rows.append(i)
            values.append(rng.uniform(20, 60) if is_noise else rng.uniform(30, 300))
    S = csr_array(coo_array((values, (rows, columns)), shape=(n, n)))
    S.sum_duplicates()
    return S, y


@pytest.fixture(scope="module")
def data():
    S, y = planted()
    return S[:180][:, :180], y[:180], S[180:][:, :180], y[180:]


@pytest.fixture(scope="module")
def model(data):
    S, y, _, _ = data
    return HitsClassifier(random_state=0).fit(S, y)


def training(S, y):
    return h.HitTraining(h.HitRows(S), np.eye(y.max() + 1)[y], np.ones(len(y)))


def test_it_learns_and_is_calibrated(data, model):
    _, _, R, truth = data
    proba = model.predict_proba(R)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.mean(model.predict(R) == truth) > 0.9
    held = model.out_of_fold_
    announced = log_loss(held.target, held.prediction)
    assert abs(announced - log_loss(truth, proba)) < 0.2


def test_best_hits_of_a_row_against_a_loop(data):
    S = data[0]
    kept = h.HitRows(S).best(3).toarray()
    dense = S.toarray() / S.toarray().max(axis=1, keepdims=True)
    for row, found in zip(dense, kept):
        largest = np.sort(row[row > 0])[::-1][:3]
        assert_allclose(np.sort(found[found > 0])[::-1], largest)


def test_votes_against_dense_formulas(data):
    S, y, R, _ = data
    family = h.Votes().fit(training(S, y), np.random.RandomState(0))
    U = R.toarray() / R.toarray().max(axis=1, keepdims=True)
    Y = np.eye(3)[y]
    prior = Y.mean(axis=0)
    for setting, scores in zip(family.settings, family.scores(h.HitRows(R))):
        if setting[0] is None:
            votes = np.where(U > 0, U ** setting[1], 0.0) @ Y
            expected = np.log((votes + 0.5 * prior) / (votes.sum(axis=1, keepdims=True) + 0.5))
            assert_allclose(scores, expected, rtol=1e-12)


def test_ridge_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    X = csr_array(rng.uniform(size=(60, 40)) * (rng.uniform(size=(60, 40)) < 0.2))
    Y = rng.normal(size=(60, 3))
    weight = rng.uniform(0.5, 2.0, 60)
    start = np.zeros((40, 3))
    coef = start
    for _ in range(5):  # warm starts lead to the exact solution
        coef = h.ridge_by_gradients(X, Y, weight, 0.5, coef)
    expected = Ridge(0.5, fit_intercept=False).fit(X.toarray(), Y, sample_weight=weight).coef_.T
    assert_allclose(coef, expected, atol=2e-3 * np.abs(expected).max())


def test_features_of_training_items_do_not_know_their_own_label(data):
    """Relabeling one item changes the features of others, never its own."""
    S, y, _, _ = data
    changed = y.copy()
    changed[7] = (y[7] + 1) % 3
    before, after = [
        h.ClassFeatures().fit(train).of_training(train)
        for train in (training(S, y), training(S, changed))
    ]
    prior = [np.eye(3)[labels].mean(axis=0) for labels in (y, changed)]
    assert np.abs(before[7] - after[7]).max() < 0.05  # through the prior only
    assert np.abs(before - after).max() > 0.1
    assert not np.allclose(*prior)


def test_an_own_hit_does_not_count(data, model):
    S, y, R, _ = data
    with_diagonal = csr_array(S + csr_array(np.diag(np.full(len(y), 1000.0))))
    again = HitsClassifier(random_state=0).fit(with_diagonal, y)
    assert_allclose(again.predict_proba(R), model.predict_proba(R), rtol=1e-10)


def test_units_and_order_do_not_matter(data, model):
    S, y, R, _ = data
    scaled = HitsClassifier(random_state=0).fit(csr_array(S * 1e6), y)
    assert_allclose(scaled.predict_proba(csr_array(R * 1e6)), model.predict_proba(R), atol=1e-6)
    folds = [(np.arange(180) % 3 != k, np.arange(180) % 3 == k) for k in range(3)]
    folds = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in folds]
    order = np.random.RandomState(0).permutation(180)
    place = np.argsort(order)
    moved = [(np.sort(place[train]), np.sort(place[test])) for train, test in folds]
    first = HitsClassifier(cv=folds, random_state=0).fit(S, y)
    second = HitsClassifier(cv=moved, random_state=0).fit(S[order][:, order], y[order])
    # random coordinates of the sparse matrix differ
    difference = first.predict_proba(R) - second.predict_proba(R[:, order])
    assert np.abs(difference).max() < 0.05


def test_weight_zero_leaves_items_out(data):
    S, y, R, _ = data
    weight = np.ones(180)
    weight[::9] = 0.0
    kept = np.flatnonzero(weight)
    first = HitsClassifier(random_state=0).fit(S, y, sample_weight=weight)
    second = HitsClassifier(random_state=0).fit(S[kept][:, kept], y[kept])
    assert_allclose(first.predict_proba(R), second.predict_proba(R[:, kept]), rtol=1e-10)
    assert np.all(np.isin(first.out_of_fold_.rows, kept))


def test_distances_are_hits_too(data):
    S, y, R, truth = data
    distances = csr_array((1.0 / S.data, S.indices, S.indptr), S.shape)
    new = csr_array((1.0 / R.data, R.indices, R.indptr), R.shape)
    model = HitsClassifier(kind="distance", random_state=0).fit(distances, y)
    assert np.mean(model.predict(new) == truth) > 0.85


def test_items_without_hits_get_the_shares_of_the_classes(data, model):
    proba = model.predict_proba(csr_array((2, 180)))
    assert_allclose(proba[0], proba[1])
    assert proba.max() < 0.75


@pytest.mark.slow
def test_sets_cover_and_groups_stay_together():
    S, y = planted(400, noise=0.7, n_hits=5, seed=3)
    model = HitsClassifier(random_state=0).fit(S[:300][:, :300], y[:300])
    sets = model.predict_set(S[300:][:, :300], coverage=0.8)
    assert np.mean(sets[np.arange(100), y[300:]]) > 0.7
    # near-copies: hits that know the answer only within a group
    groups = np.repeat(np.arange(60), 4)
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(2, size=60), 4)
    rows, columns = np.nonzero(groups[:, None] == groups)
    far = rng.integers(240, size=(2, 1200))
    rows, columns = np.r_[rows, far[0]], np.r_[columns, far[1]]
    values = np.r_[np.full(960, 300.0), rng.uniform(20, 60, 1200)]
    copies = csr_array(coo_array((values, (rows, columns)), shape=(240, 240)))
    blind = HitsClassifier(random_state=0).fit(copies, labels)
    honest = HitsClassifier(random_state=0).fit(copies, labels, groups=groups)

    def accuracy(model):
        held = model.out_of_fold_
        return np.mean(held.prediction.argmax(axis=1) == held.target)

    assert accuracy(blind) > 0.95
    assert accuracy(honest) < 0.75


@pytest.mark.parametrize(
    "X, message",
    [
        (np.eye(180), "SimilarityClassifier"),
        (csr_array((180, 90)), "one row and one column"),
        (csr_array(-np.eye(180, k=1)), "negative"),
        (csr_array(np.where(np.eye(180, k=1) > 0, np.nan, 0.0)), "not finite"),
    ],
)
def test_bad_input_is_told_in_one_sentence(data, X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        HitsClassifier().fit(X, data[1])


def test_a_saved_model_predicts_the_same(data, model, tmp_path):
    pytest.importorskip("skops")
    persistence.save(model, tmp_path / "hits.skops")
    again = persistence.load(tmp_path / "hits.skops")
    assert_allclose(again.predict_proba(data[2]), model.predict_proba(data[2]), rtol=1e-12)


def test_other_columns_at_predict_are_told(data, model):
    with pytest.raises(ValueError, match="among the training items"):
        model.predict(csr_array((3, 20)))


@pytest.mark.slow
def test_many_items_take_linear_memory():
    """20,000 items with 20 hits each and 10 classes: nothing dense of n x n, which would be 3.2 GB, is made."""
    n = 20_500
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=n)
    order = np.argsort(y, kind="stable")
    start = np.searchsorted(y[order], np.arange(11))
    rows = np.repeat(np.arange(n), 20)
    same = order[rng.integers(start[y[rows]], start[y[rows] + 1])]
    columns = np.where(rng.uniform(size=len(rows)) < 0.5, same, rng.integers(n, size=len(rows)))
    values = rng.uniform(10, 100, len(rows))
    S = csr_array(coo_array((values, (rows, columns)), shape=(n, n)))
    model = HitsClassifier(random_state=0).fit(S, y)
    assert len(model.out_of_fold_.rows) < 3000  # a single tenth is held out
    assert np.mean(model.predict(S[:500]) == y[:500]) > 0.95
