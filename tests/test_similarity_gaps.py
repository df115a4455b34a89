"""Pairs that were not compared: NaN in a precomputed matrix and in rows of new items."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from mercerless import SimilarityClassifier, SimilarityRegressor
from mercerless.core.gaps import fill_gaps
from mercerless.kernels import PairFunction

pytestmark = pytest.mark.filterwarnings("ignore:X has .* missing comparisons")

RNG = np.random.RandomState(0)
X = RNG.normal(size=(160, 4))
D = cdist(X, X)
Y = np.digitize(X[:, 0] + 0.2 * RNG.normal(size=160), [-0.5, 0.5])
NUMBERS = X[:, 0] + np.sin(X[:, 1])
PRE = {"kernel": "precomputed", "random_state": 0}


def holes(shape, share, symmetric=True, seed=1):
    is_hole = np.random.RandomState(seed).uniform(size=shape) < share
    if symmetric:
        is_hole = np.triu(is_hole, 1)
        is_hole = is_hole | is_hole.T
    return is_hole


TRAIN = np.where(holes((110, 110), 0.2), np.nan, D[:110, :110])
NEW = np.where(holes((50, 110), 0.2, symmetric=False), np.nan, D[110:, :110])


def test_the_fit_says_what_the_completion_explains():
    with pytest.warns(
        UserWarning,
        match=r"X has \d+ missing comparisons \(\d+ %\), which were completed by means of rows and "
        r"columns and a matrix of rank \d+, which explain 9\d % of the variance of known entries",
    ):
        model = SimilarityClassifier(**PRE).fit(TRAIN, Y[:110])
    assert model.gaps_.n_filled == np.isnan(TRAIN).sum()
    assert 0.9 < model.gaps_.r2 < 1.0
    # the entries that were really missing are explained as well as those held out
    filled = fill_gaps(TRAIN).X
    gaps = np.isnan(TRAIN)
    truth = D[:110, :110][gaps]
    r2 = 1 - ((filled[gaps] - truth) ** 2).mean() / truth.var()
    assert abs(r2 - model.gaps_.r2) < 0.05


@pytest.mark.parametrize(
    ("cls", "target"), [(SimilarityClassifier, Y), (SimilarityRegressor, NUMBERS)]
)
def test_nearly_as_good_as_without_gaps(cls, target):
    full = cls(**PRE).fit(D[:110, :110], target[:110]).score(D[110:, :110], target[110:])
    model = cls(**PRE).fit(TRAIN, target[:110])
    assert model.score(NEW, target[110:]) > full - 0.08
    assert model.score(D[110:, :110], target[110:]) > full - 0.05


def test_new_rows_are_completed_by_the_model_of_the_matrix():
    gaps = np.isnan(NEW)
    filled = fill_gaps(TRAIN).gaps.model.fill(NEW)
    truth = D[110:, :110][gaps]
    means = np.nanmean(NEW, axis=1)[:, None] + np.nanmean(TRAIN, axis=0) - np.nanmean(TRAIN)
    error = ((filled[gaps] - truth) ** 2).mean()
    assert error < 0.15 * ((means[gaps] - truth) ** 2).mean()


def test_known_entries_of_new_rows_stay():
    rows = NEW.copy()
    rows[0, ~np.isnan(rows[0])] *= 3.0  # beyond what was seen in training
    filled = fill_gaps(TRAIN).gaps.model.fill(rows)
    known = ~np.isnan(rows)
    assert_array_equal(filled[known], rows[known])


def test_rows_without_gaps_are_left_alone():
    model = SimilarityClassifier(**PRE).fit(TRAIN, Y[:110])
    both = np.vstack([NEW[:5], D[110:115, :110]])
    assert_array_equal(model.predict_proba(both)[5:], model.predict_proba(D[110:115, :110]))


def test_items_without_weight_have_no_part():
    weight = (np.arange(110) < 90).astype(float)
    model = SimilarityClassifier(**PRE).fit(TRAIN, Y[:110], weight)
    removed = SimilarityClassifier(**PRE).fit(TRAIN[:90, :90], Y[:90])
    assert_allclose(model.predict_proba(NEW), removed.predict_proba(NEW[:, :90]), atol=1e-9)


def test_frames_in_any_order_none_and_several_matrices():
    pd = pytest.importorskip("pandas")
    plain = SimilarityClassifier(**PRE).fit(TRAIN, Y[:110]).predict_proba(NEW)
    names = [f"i{k}" for k in range(110)]
    frame = pd.DataFrame(TRAIN, index=names, columns=names)
    shuffled = frame.sample(frac=1.0, axis=1, random_state=0)
    model = SimilarityClassifier(**PRE).fit(shuffled, Y[:110])
    new = pd.DataFrame(NEW, columns=names).sample(frac=1.0, axis=1, random_state=1)
    assert_allclose(model.predict_proba(new), plain, atol=1e-12)
    objects = np.where(np.isnan(TRAIN), None, TRAIN)
    assert_array_equal(SimilarityClassifier(**PRE).fit(objects, Y[:110]).predict_proba(NEW), plain)
    matrices = {"a": TRAIN, "b": D[:110, :110] ** 0.5}
    several = SimilarityClassifier(**PRE).fit(matrices, Y[:110])
    assert several.similarities_["a"].gaps_ is not None
    assert several.similarities_["b"].gaps_ is None
    assert several.predict_proba({"a": NEW, "b": D[110:, :110] ** 0.5}).shape == (50, 3)


def test_explain_and_pickles():
    model = SimilarityClassifier(**PRE).fit(TRAIN, Y[:110])
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    reasons = model.explain(NEW[:2], train=TRAIN)
    completed = SimilarityClassifier(**PRE).fit(fill_gaps(TRAIN).X, Y[:110])
    expected = completed.explain(model.gaps_.model.fill(NEW[:2]), train=fill_gaps(TRAIN).X)
    assert_allclose(reasons.score, expected.score, atol=1e-9)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.where(holes((110, 110), 0.4), np.nan, TRAIN), "% of the matrix is missing, more than"),
        (np.where(np.arange(110) == 7, np.nan, TRAIN), "Item 8 of the matrix is compared with no"),
        (np.where(holes((110, 110), 0.01), np.inf, TRAIN), "NaN or infinite"),
    ],
)
def test_too_many_gaps_say_what_to_do(matrix, message):
    matrix = np.where(np.isfinite(matrix.T), matrix, matrix.T)
    with pytest.raises(ValueError, match=message):
        SimilarityClassifier(**PRE).fit(matrix, Y[:110])


def test_too_many_gaps_in_a_new_row():
    model = SimilarityClassifier(**PRE).fit(TRAIN, Y[:110])
    rows = NEW.copy()
    rows[3, :50] = np.nan
    with pytest.raises(ValueError, match=r"\d+ % of row 3 of X is missing, more than the 30 %"):
        model.predict(rows)
    full = SimilarityClassifier(**PRE).fit(D[:110, :110], Y[:110])
    with pytest.raises(ValueError, match="NaN or infinite"):
        full.predict(NEW)
    with pytest.raises(ValueError, match="NaN or infinite"):
        SimilarityClassifier(**PRE, landmarks=20).fit(TRAIN, Y[:110])


# ------------------------------------------------------------------------------------------------- functions


ITEMS = [f"item {k}" for k in range(160)]


def with_none(is_hole):
    """Distances of items by their numbers, None for pairs in holes."""

    def distance(a, b):
        i = int(a[5:])
        j = int(b[5:])
        return None if is_hole[i, j] else float(D[i, j])

    return PairFunction(distance, symmetric=True)


@pytest.fixture(scope="module")
def by_function():
    is_hole = holes((160, 160), 0.15)
    model = SimilarityClassifier(with_none(is_hole), kind="distance", random_state=0)
    with pytest.warns(UserWarning, match="X has .* missing comparisons"):
        model.fit(ITEMS[:110], Y[:110])
    return model, np.where(is_hole, np.nan, D)


def test_pairs_that_a_function_leaves_out_are_completed_as_nan_is(by_function):
    model, matrix = by_function
    other = SimilarityClassifier(kind="distance", **PRE).fit(matrix[:110, :110], Y[:110])
    assert model.gaps_.n_filled == other.gaps_.n_filled == np.isnan(matrix[:110, :110]).sum()
    assert_allclose(
        model.predict_proba(ITEMS[110:]), other.predict_proba(matrix[110:, :110]), atol=1e-10
    )
    again = pickle.loads(pickle.dumps(other))
    assert again.gaps_.n_filled == other.gaps_.n_filled


def test_a_model_of_a_function_with_gaps_explains(by_function):
    model, _ = by_function
    explained = model.explain(ITEMS[110:113])
    assert np.all(np.isfinite(explained.score))
    total = explained.base + explained.shares.sum(axis=1) + explained.rest
    assert_allclose(total, explained.score, atol=1e-8)


def test_pairs_left_out_with_landmarks_or_of_new_items_only_raise():
    is_hole = holes((160, 160), 0.15)
    few = SimilarityClassifier(with_none(is_hole), kind="distance", landmarks=30, random_state=0)
    with pytest.raises(ValueError, match=r"for \d+ pairs of items and landmarks; only all"):
        few.fit(ITEMS[:110], Y[:110])
    is_hole[:110, :110] = False
    model = SimilarityClassifier(with_none(is_hole), kind="distance", random_state=0)
    model.fit(ITEMS[:110], Y[:110])
    with pytest.raises(ValueError, match="but for none of the training items"):
        model.predict(ITEMS[110:])


def test_gaps_of_items_that_have_copies():
    """Copies are one item after the gaps were completed; new rows have a column for each of them."""
    places = np.r_[np.arange(60), [5, 9]]
    matrix = D[np.ix_(places, places)]
    matrix[20:22, 30:33] = matrix[30:33, 20:22] = np.nan
    new = D[60:90][:, places]
    model = SimilarityClassifier(**PRE).fit(matrix, Y[places])
    assert len(model._basis_rows) == 60
    complete = model.predict_proba(new)
    with_holes = np.where(holes(new.shape, 0.05, symmetric=False), np.nan, new)
    assert np.abs(model.predict_proba(with_holes) - complete).max() < 0.2
    proba = np.sort(complete, axis=1)
    reasons = model.explain(new, train=matrix)
    assert_allclose(reasons.score, np.log(proba[:, -1] / proba[:, -2]), atol=1e-8)


def test_a_matrix_with_gaps_that_is_given_again_in_another_order():
    pd = pytest.importorskip("pandas")
    names = [f"item {k}" for k in range(110)]
    train = pd.DataFrame(TRAIN, index=names, columns=names)
    new = pd.DataFrame(NEW[:5], columns=names)
    weight = np.where(np.arange(110) % 10 == 3, 0.0, 1.0)
    model = SimilarityRegressor(**PRE).fit(train, NUMBERS[:110], sample_weight=weight)
    order = np.random.RandomState(2).permutation(110)
    reasons = model.explain(new, train=train.iloc[order, order])
    assert_allclose(reasons.score, model.predict(new), atol=1e-8)
    assert_array_equal(reasons.items, model.explain(new, train=train).items)


@pytest.mark.parametrize("own", [None, 2.0])
def test_a_function_that_does_not_compare_items_with_themselves(own):
    """All own similarities are missing, or some of them: new items have the median of the training items."""

    def similarity(a, b):
        i, j = int(a[5:]), int(b[5:])
        if i == j and (own is None or i % 3 == 0):
            return None
        return float(np.exp(-D[i, j])) + (0.1 * (i % 4) if i == j else 0.0)

    for cls, target in ((SimilarityClassifier, Y), (SimilarityRegressor, NUMBERS)):
        model = cls(PairFunction(similarity, symmetric=True), kind="similarity", random_state=0)
        model.fit(ITEMS[:110], target[:110])
        predict = model.predict_proba if cls is SimilarityClassifier else model.predict
        together = predict(ITEMS[110:])
        assert np.all(np.isfinite(together))
        middle = np.median(model.stack_.members.diagonal)
        given = [
            middle if own is None or i % 3 == 0 else 1.0 + 0.1 * (i % 4) for i in range(110, 160)
        ]
        assert_allclose(predict(ITEMS[110:], diag=given), together, atol=1e-10)


def test_only_new_items_without_their_own_similarity_raise():
    def similarity(a, b):
        i, j = int(a[5:]), int(b[5:])
        return None if i == j > 110 else float(np.exp(-D[i, j])) + (0.1 * (i % 4) if i == j else 0)

    for landmarks in (None, 30):
        kernel = PairFunction(similarity, symmetric=True)
        model = SimilarityClassifier(
            kernel, kind="similarity", landmarks=landmarks, random_state=0
        ).fit(ITEMS[:110], Y[:110])
        with pytest.raises(ValueError, match="None for 49 new items compared with themselves"):
            model.predict(ITEMS[110:])
