"""The learners on hits: against dense formulas, identities, honesty, bad input, and size."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from mercerless import (
    HitsClassifier,
    HitsRegressor,
    SimilarityClassifier,
    SimilarityRegressor,
    UselessModelWarning,
    persistence,
)
from mercerless.core.conformal import set_thresholds
from mercerless.similarity import hit_families as f
from mercerless.similarity import hits as h
from mercerless.similarity.hit_stack import fit_hit_stack
from mercerless.similarity.sparse import check_hits


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
    return h.HitTraining(h.ItemHits.of(S), np.eye(y.max() + 1)[y], np.ones(len(y)), True)


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
    kept = h.HitRows(S).powered(1.0, 3).toarray()
    dense = S.toarray() / S.toarray().max(axis=1, keepdims=True)
    for row, found in zip(dense, kept):
        largest = np.sort(row[row > 0])[::-1][:3]
        assert_allclose(np.sort(found[found > 0])[::-1], largest)


def test_votes_against_dense_formulas(data):
    S, y, R, _ = data
    family = f.Votes().fit(training(S, y), np.random.RandomState(0))
    U = R.toarray() / R.toarray().max(axis=1, keepdims=True)
    Y = np.eye(3)[y]
    prior = Y.mean(axis=0)
    for setting, scores in zip(family.settings, family.scores(h.ItemHits.of(R))):
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
        coef = f.ridge_by_gradients(X, Y, weight, 0.5, coef)
    expected = Ridge(0.5, fit_intercept=False).fit(X.toarray(), Y, sample_weight=weight).coef_.T
    assert_allclose(coef, expected, atol=2e-3 * np.abs(expected).max())


def test_features_of_training_items_do_not_know_their_own_label(data):
    """Relabeling one item changes the features of others, never its own."""
    S, y, _, _ = data
    changed = y.copy()
    changed[7] = (y[7] + 1) % 3
    before, after = [
        f.ShareFeatures().fit(train).of_training(train)
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


def test_weight_zero_leaves_items_out_of_their_groups(data):
    S, y, R, _ = data
    weight = np.ones(180)
    weight[:40] = 0.0
    kept = np.flatnonzero(weight)
    groups = np.random.default_rng(0).integers(30, size=180)
    first = HitsClassifier(random_state=0).fit(S, y, sample_weight=weight, groups=groups)
    second = HitsClassifier(random_state=0).fit(S[kept][:, kept], y[kept], groups=groups[kept])
    assert_allclose(first.predict_proba(R), second.predict_proba(R[:, kept]), rtol=1e-10)


def test_class_weights_multiply_sample_weights(data):
    S, y, R, _ = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    factors = np.array([0.3, 1.0, 4.0])
    by_class = HitsClassifier(class_weight=dict(enumerate(factors)), random_state=0)
    by_item = HitsClassifier(random_state=0).fit(S, y, sample_weight=weight * factors[y])
    both = by_class.fit(S, y, sample_weight=weight)
    assert_allclose(both.predict_proba(R), by_item.predict_proba(R), rtol=1e-10)


def test_distances_are_hits_too(data):
    S, y, R, truth = data
    distances = csr_array((1.0 / S.data, S.indices, S.indptr), S.shape)
    new = csr_array((1.0 / R.data, R.indices, R.indptr), R.shape)
    model = HitsClassifier(kind="distance", random_state=0).fit(distances, y)
    assert np.mean(model.predict(new) == truth) > 0.85
    # their unit is that of the training items, whatever comes with a new item
    together = model.predict_proba(new)
    for i in range(5):
        assert_allclose(model.predict_proba(csr_array(new[[i]])), together[[i]], rtol=1e-10)
    near = csr_array((0.1 * new.data, new.indices, new.indptr), new.shape)
    assert np.abs(model.predict_proba(near) - together).max() > 1e-3


def test_items_without_hits_get_the_shares_of_the_classes(data, model):
    with pytest.warns(UserWarning, match="2 of 2 new items have no hits"):
        proba = model.predict_proba(csr_array((2, 180)))
    assert_allclose(proba[0], proba[1])
    assert proba.max() < 0.75


@pytest.mark.slow
def test_sets_cover_and_groups_stay_together():
    S, y = planted(400, noise=0.7, n_hits=5, seed=3)
    with pytest.warns(UserWarning, match="1 of 300 training items have no hits"):
        model = HitsClassifier(random_state=0).fit(S[:300][:, :300], y[:300])
    with pytest.warns(UserWarning, match="of 100 new items have no hits"):
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
        (csr_array(np.eye(180)), "no hits"),
        (csr_array(np.eye(180, k=1) * 1j), "real numbers"),
        (coo_array(np.ones(180)), "two dimensions"),
    ],
)
@pytest.mark.parametrize("learner", [HitsClassifier, HitsRegressor])
def test_bad_input_raises_one_sentence(data, X, message, learner):
    message = message.replace("Classifier", learner.__name__.removeprefix("Hits"))
    with pytest.raises((TypeError, ValueError), match=message) as error:
        learner().fit(X, data[1])
    assert str(error.value).count(". ") == 0


@pytest.mark.parametrize(
    "options, message",
    [({"kind": "dissimilarity"}, "kind"), ({"direction": "columns"}, "direction")],
)
def test_bad_options(data, options, message):
    with pytest.raises(ValueError, match=message):
        HitsClassifier(**options).fit(data[0], data[1])


def test_bad_targets_and_groups(data):
    S, y, _, _ = data
    with pytest.raises(ValueError, match="NaN"):
        HitsRegressor().fit(S, np.where(y == 0, np.nan, y))
    with pytest.raises(ValueError, match="one class only"):
        HitsClassifier().fit(S, np.zeros(180))
    with pytest.raises(ValueError, match="inconsistent"):
        HitsClassifier().fit(S, y, groups=y[:50])
    with pytest.raises(ValueError, match="one group only"):
        HitsClassifier().fit(S, y, groups=np.zeros(180))


def test_items_and_classes_without_hits(data):
    """A class of which nothing is known, and items without hits: the others are learned all the same."""
    S, y, R, truth = data
    alone = np.arange(0, 12)
    labels = y.copy()
    labels[alone] = 3
    keep = np.ones(180)
    keep[alone] = 0.0
    cut = csr_array(S.multiply(keep[:, None]).multiply(keep))
    with (
        pytest.warns(UserWarning, match="12 of 180 training items have no hits"),
        pytest.warns(UserWarning, match="No item of class .*3.* has a hit"),
    ):
        model = HitsClassifier(random_state=0).fit(cut, labels)
    proba = model.predict_proba(csr_array(R.multiply(keep)))
    assert np.mean(proba.argmax(axis=1) == truth) > 0.85
    assert proba[:, 3].max() < 0.35


def test_a_class_of_one_item():
    S, y = planted(220, 2)
    y[:] = 0
    y[5] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        model = HitsClassifier(random_state=0).fit(S, y)
    assert np.all(np.isfinite(model.predict_proba(S)))


@pytest.mark.parametrize("learner", [SimilarityClassifier, SimilarityRegressor])
def test_learners_for_full_matrices_name_the_one_for_hits(data, learner):
    message = learner.__name__.replace("Similarity", "Hits")
    with pytest.raises(TypeError, match=message):
        learner("precomputed").fit(data[0], data[1])
    with pytest.raises(TypeError, match=message):
        learner().fit(data[0], data[1])


def directed(n=500, seed=0):
    """A graph in which every class links into the next one: which class links to an item says its class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    rows = np.repeat(np.arange(n), 6)
    is_noise = rng.uniform(size=len(rows)) < 0.3
    pools = [np.flatnonzero(y == (c + 1) % 3) for c in range(3)]
    columns = np.array([rng.choice(pools[y[i]]) for i in rows])
    columns = np.where(is_noise, rng.integers(n, size=len(rows)), columns)
    links = csr_array(coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)))
    links.data[:] = 1.0
    return links, y


@pytest.fixture(scope="module")
def graph():
    S, y = directed()
    train, new = np.arange(350), np.arange(350, 500)
    reverse = csr_array(S[train][:, new].T)
    return S[train][:, train], y[train], S[new][:, train], reverse, y[new]


def test_both_directions_are_better_than_one(graph):
    S, y, R, reverse, truth = graph
    rows = HitsClassifier(random_state=0).fit(S, y)
    both = HitsClassifier(direction="both", random_state=0).fit(S, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some new items have no hits
        one = log_loss(truth, rows.predict_proba(R))
        two = log_loss(truth, both.predict_proba(R, reverse=reverse))
    assert two < 0.75 * one
    assert {"votes of rows", "ridge of columns", "shares"} <= set(both.members_)


def test_reversed_links_change_the_roles_of_rows_and_columns(graph):
    """With all links turned round, rows and columns change places and nothing else happens."""
    S, y, R, reverse, _ = graph
    folds = [(np.flatnonzero(np.arange(350) % 5 != k), np.arange(k, 350, 5)) for k in range(5)]
    first = HitsClassifier(direction="both", cv=folds, random_state=0).fit(S, y)
    second = HitsClassifier(direction="both", cv=folds, random_state=0).fit(csr_array(S.T), y)
    proba = first.predict_proba(R, reverse=reverse)
    turned = second.predict_proba(reverse, reverse=R)
    assert np.abs(proba - turned).max() < 0.05  # random coordinates differ


def test_held_out_rows_look_as_new_items_do(graph):
    """The parts of a fold are those that a user would cut out, in both directions."""
    S = graph[0]
    train, test = np.arange(0, 250), np.arange(250, 350)
    cut = h.TrainingHits(S, both_directions=True).of(test, train)
    dense = S.toarray()
    out = dense[np.ix_(test, train)]
    back = dense[np.ix_(train, test)].T
    for view, expected in (("rows", out), ("columns", back), ("hits", out + back)):
        assert_allclose(cut[view].similarities.toarray(), expected)


def test_features_against_dense_formulas(graph):
    """One and two steps of all three views, for new items and, without their own labels, for training items."""
    S, y, R, reverse, _ = graph
    Y = np.eye(3)[y]
    mean = Y.mean(axis=0)
    hits = h.ItemHits.of(S, csr_array(S.T))
    train = h.HitTraining(hits, Y, np.ones(350), True)
    features = f.ShareFeatures().fit(train)

    def share(votes):
        return np.log((votes + 0.5 * mean) / (votes.sum(axis=1, keepdims=True) + 0.5))

    def normal(A):
        total = A.sum(axis=1, keepdims=True)
        return np.divide(A, total, out=np.zeros_like(A), where=total > 0)

    out, back = S.toarray(), S.toarray().T
    new_out, new_back = R.toarray(), reverse.toarray()
    known = {"hits": out + back, "rows": out, "columns": back}
    new = {"hits": new_out + new_back, "rows": new_out, "columns": new_back}
    found = features.of_new(h.ItemHits.of(R, reverse))
    own = features.of_training(train)
    for number, view in enumerate(known):
        P = normal(known[view] / np.maximum(known[view].max(axis=1, keepdims=True), 1e-9))
        Q = P if view == "hits" else normal(P.T)
        N = new[view] / np.maximum(new[view].max(axis=1, keepdims=True), 1e-9)
        assert_allclose(found[:, 6 * number + 1], share(N @ Y), atol=1e-12)
        assert_allclose(found[:, 6 * number + 5], share(normal(N) @ Q @ Y), atol=1e-12)
        counts = np.log1p((new[view] > 0).astype(float) @ Y)
        assert_allclose(found[:, 6 * number + 4], counts, atol=1e-12)
        steps = P @ Q
        np.fill_diagonal(steps, 0.0)
        assert_allclose(own[:, 6 * number + 5], share(steps @ Y), atol=1e-12)


def test_reverse_is_checked(graph, data, model):
    S, y, R, reverse, _ = graph
    both = HitsClassifier(direction="both", random_state=0).fit(S, y)
    with pytest.raises(ValueError, match="pass them as reverse"):
        both.predict(R)
    with pytest.raises(ValueError, match="shape"):
        both.predict(R, reverse=reverse[:3])
    with pytest.raises(ValueError, match="among the training items"):
        both.predict(R, reverse=reverse[:, :9])
    with pytest.raises(ValueError, match="direction='both'"):
        model.predict(data[2], reverse=data[2])


def places(n=400, reach=0.25, seed=0):
    """Items on a circle with hits in their neighborhood, and a number that varies smoothly along it."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    gap = np.abs((angle[:, None] - angle + np.pi) % (2 * np.pi) - np.pi)
    S = np.where((gap < reach) & (rng.uniform(size=gap.shape) < 0.5), np.exp(-gap), 0.0)
    y = 50.0 + 8.0 * np.sin(2 * angle) + rng.normal(size=n)
    return csr_array(S), y


@pytest.fixture(scope="module")
def numbers():
    S, y = places()
    return S[:300][:, :300], y[:300], S[300:][:, :300], y[300:]


@pytest.fixture(scope="module")
def regressor(numbers):
    return HitsRegressor(random_state=0).fit(numbers[0], numbers[1])


def test_numbers_are_learned_and_intervals_cover(numbers, regressor):
    _, _, R, truth = numbers
    assert regressor.score(R, truth) > 0.9
    held_out = regressor.out_of_fold_
    announced = np.mean((held_out.prediction - held_out.target) ** 2)
    assert 0.5 < np.mean((regressor.predict(R) - truth) ** 2) / announced < 2.0
    ends = regressor.predict_interval(R, coverage=0.8)
    assert 0.68 < np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) < 0.92


def test_means_of_numbers_against_dense_formulas(numbers):
    S, y, R, _ = numbers
    Y = np.column_stack([y - y.mean(), y**2])
    weight = np.linspace(0.5, 1.5, 300)
    mean = weight @ Y / weight.sum()
    train = h.HitTraining(h.ItemHits.of(S), Y, weight, False)
    U = R.toarray() / R.toarray().max(axis=1, keepdims=True)
    scores = f.Votes().fit(train, None).scores(h.ItemHits.of(R))
    expected = (U @ (weight[:, None] * Y) + 0.5 * mean) / ((U @ weight) + 0.5)[:, None]
    assert_allclose(scores[3], expected, rtol=1e-12)
    own = f.ShareFeatures().fit(train).of_training(train)
    dense = S.toarray()
    P = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1e-300)
    back = P.T / np.maximum(P.T.sum(axis=1, keepdims=True), 1e-300)
    for column, Q in ((4, P), (5, back)):
        steps = P @ Q
        np.fill_diagonal(steps, 0.0)
        total = (steps @ weight)[:, None] + 0.5
        expected = (steps @ (weight[:, None] * Y) + 0.5 * mean) / total
        assert_allclose(own[:, column], expected, rtol=1e-8)


def test_weights_from_other_folds(numbers):
    """The published predictions of a fold do not depend on its own targets, but for the members that saw them."""
    S, y, _, _ = numbers
    Y = ((y - y.mean()) / y.std())[:, None]
    train, test = np.arange(0, 200), np.arange(200, 300)
    splits = [(train, test)]
    hits = h.TrainingHits(S, both_directions=False)
    random = np.random.RandomState
    first = fit_hit_stack(hits, Y, np.ones(300), False, splits, random(0))
    changed = Y.copy()
    changed[250] += 50.0  # one target of the hold-out, whose own part is judged by the others
    second = fit_hit_stack(hits, changed, np.ones(300), False, splits, random(0))
    assert_allclose(first.out_of_fold[50], second.out_of_fold[50], rtol=1e-12)
    assert np.abs(first.out_of_fold - second.out_of_fold).max() > 1e-6


def test_units_of_numbers_do_not_matter(numbers, regressor):
    S, y, R, _ = numbers
    other = HitsRegressor(random_state=0).fit(csr_array(1e3 * S), 1e6 * y - 5.0)
    assert_allclose((other.predict(1e3 * R) + 5.0) / 1e6, regressor.predict(R), rtol=1e-6)


def test_several_outputs(numbers, regressor):
    S, y, R, _ = numbers
    two = HitsRegressor(random_state=0).fit(S, np.column_stack([y, -3.0 * y]))
    # ridge regression sees the means of both outputs
    assert_allclose(two.predict(R)[:, 0], regressor.predict(R), atol=0.1)
    assert_allclose(two.predict(R)[:, 1], -3.0 * two.predict(R)[:, 0], rtol=1e-6)
    assert two.predict_interval(R).shape == (100, 2, 2)


def test_weight_zero_leaves_items_out_of_regression(numbers):
    S, y, R, _ = numbers
    weight = np.ones(300)
    weight[::7] = 0.0
    kept = np.flatnonzero(weight)
    first = HitsRegressor(random_state=0).fit(S, y, sample_weight=weight)
    second = HitsRegressor(random_state=0).fit(S[kept][:, kept], y[kept])
    assert_allclose(first.predict(R), second.predict(R[:, kept]), rtol=1e-10)


def test_cross_validation_splits_rows_and_columns(numbers):
    S, y = places(150, reach=0.6)
    scores = cross_val_score(HitsRegressor(random_state=0), S, y, cv=2)
    assert scores.min() > 0.5


def test_a_saved_model_predicts_the_same(data, model, tmp_path):
    pytest.importorskip("skops")
    persistence.save(model, tmp_path / "hits.skops")
    again = persistence.load(tmp_path / "hits.skops")
    assert_allclose(again.predict_proba(data[2]), model.predict_proba(data[2]), rtol=1e-12)


def test_other_columns_at_predict_raise(data, model):
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


def test_repeated_hits_are_added_with_a_warning(data, model):
    S = data[0][:5]
    listed = coo_array(S)
    twice = coo_array(
        (
            np.r_[listed.data, listed.data[:3]],
            (np.r_[listed.row, listed.row[:3]], np.r_[listed.col, listed.col[:3]]),
        ),
        shape=S.shape,
    )
    with pytest.warns(UserWarning, match="X lists 3 hits of pairs that it has already"):
        added = check_hits(twice, "X", "HitsClassifier")
    assert_allclose(added.toarray(), twice.toarray())
    check_hits(listed, "X", "HitsClassifier")  # warnings are errors


def test_a_frame_of_sparse_columns_is_explained(data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame.sparse.from_spmatrix(data[0])
    with pytest.raises(TypeError, match=r"pass X\.sparse\.to_coo\(\)"):
        HitsClassifier().fit(frame, data[1])
    with pytest.raises(TypeError, match="for a full matrix use SimilarityClassifier"):
        HitsClassifier().fit(pd.DataFrame(data[0].toarray()), data[1])


def test_sets_of_a_model_with_groups_are_those_of_new_groups(data):
    S, y, R, _ = data
    groups = np.array([f"group {k}" for k in np.random.default_rng(0).integers(30, size=180)])
    model = HitsClassifier(random_state=0).fit(S, y, groups=groups)
    held = model.out_of_fold_
    assert_array_equal(held.groups, np.unique(groups, return_inverse=True)[1][held.rows])
    thresholds = set_thresholds(held, 0.9)
    assert np.all(thresholds != set_thresholds(held._replace(groups=None), 0.9))
    expected = model.predict_proba(R) >= thresholds
    assert_array_equal(model.predict_set(R, 0.9, allow_empty=True), expected)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_groups_are_not_one_group(data, missing):
    S, y, _, _ = data
    groups = np.arange(180).astype(object) // 3
    groups[[4, 90]] = missing
    with pytest.raises(ValueError, match="groups is missing for 2 items, the first is item 4"):
        HitsClassifier(random_state=0).fit(S, y, groups=groups)


def test_folds_of_the_user_count_all_items(data):
    S, y, R, _ = data
    weight = np.ones(180)
    weight[::9] = 0.0
    kept = np.flatnonzero(weight)
    fold_of = np.random.default_rng(0).integers(4, size=180)
    splits = [(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(4)]
    of_kept = [
        (np.flatnonzero(fold_of[kept] != k), np.flatnonzero(fold_of[kept] == k)) for k in range(4)
    ]
    first = HitsClassifier(cv=splits, random_state=0).fit(S, y, sample_weight=weight)
    second = HitsClassifier(cv=of_kept, random_state=0).fit(S[kept][:, kept], y[kept])
    assert_allclose(first.predict_proba(R), second.predict_proba(R[:, kept]), rtol=1e-10)
    assert_array_equal(np.sort(first.out_of_fold_.rows), kept)


def test_distances_of_items_without_weight_do_not_count(data):
    S, y, R, _ = data
    D, new = (
        csr_array((1.0 / hits.data, hits.indices, hits.indptr), hits.shape) for hits in (S, R)
    )
    weight = np.ones(180)
    weight[::4] = 0.0
    kept = np.flatnonzero(weight)
    D = csr_array(D.multiply(np.where(weight > 0.0, 1.0, 50.0)[:, None]))
    first = HitsClassifier(kind="distance", random_state=0).fit(D, y, sample_weight=weight)
    second = HitsClassifier(kind="distance", random_state=0).fit(D[kept][:, kept], y[kept])
    assert first.unit_ == second.unit_
    assert_allclose(first.predict_proba(new), second.predict_proba(new[:, kept]), rtol=1e-10)
