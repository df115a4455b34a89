"""Groups: items that are held out together, so that what is announced is what new groups will see."""

import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris, make_blobs
from sklearn.model_selection import GroupKFold, cross_validate

from mercerless import KreinRidge, KreinRidgeClassifier, SimilarityClassifier, SimilarityRegressor
from mercerless.core.conformal import conformal_quantile, conformal_rank, set_thresholds
from mercerless.core.folds import OutOfFold, check_groups, warn_of_near_copies
from mercerless.datasets import load_digit_shapes

pytestmark = pytest.mark.filterwarnings("ignore::mercerless.UselessModelWarning")

CLASSIFIERS = (SimilarityClassifier, KreinRidgeClassifier)
REGRESSORS = (SimilarityRegressor, KreinRidge)


def copies(n_groups=80, size=4, seed=0, noise=0.01, n_classes=2):
    """Groups of near-copies; the label is that of the group and has nothing to do with the items."""
    rng = np.random.RandomState(seed)
    groups = np.repeat(np.arange(n_groups), size)
    X = rng.normal(size=(n_groups, 5))[groups] + noise * rng.normal(size=(len(groups), 5))
    labels = rng.permutation(np.arange(n_groups) % n_classes)[groups]
    return X, labels, groups


def accuracy(model):
    held = model.out_of_fold_
    return np.mean(held.prediction.argmax(axis=1) == held.target)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_announced_accuracy_is_that_of_new_groups(cls):
    X, y, groups = copies()
    model = cls(random_state=0).fit(X, y, groups=groups)
    assert accuracy(model) < 0.65
    with pytest.warns(UserWarning, match="near-copies of others, in 80 sets.*pass groups"):
        blind = cls(random_state=0).fit(X, y)
    assert accuracy(blind) > 0.95


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_sets_cover_new_groups(cls):
    shares = []
    for seed in range(6):
        X, y, groups = copies(seed=seed)
        new, truth, _ = copies(seed=100 + seed)
        sets = cls(random_state=0).fit(X, y, groups=groups).predict_set(new, 0.9)
        shares.append(sets[np.arange(len(new)), truth].mean())
    assert np.mean(shares) > 0.87


@pytest.mark.parametrize("cls", REGRESSORS)
def test_intervals_cover_new_groups(cls):
    shares = []
    for seed in range(4):
        rng = np.random.RandomState(seed)
        X, _, groups = copies(n_groups=120, size=3, seed=seed)
        y = (X[:, 0] > 0) + rng.normal(size=120)[groups]
        train = groups < 60
        model = cls(random_state=0).fit(X[train], y[train], groups=groups[train])
        low, high = model.predict_interval(X[~train], 0.8).T
        shares.append(np.mean((low <= y[~train]) & (y[~train] <= high)))
    assert 0.72 < np.mean(shares) < 0.9


@pytest.mark.parametrize("cls", [*CLASSIFIERS, *REGRESSORS])
def test_groups_of_one_item_are_no_groups(cls):
    X, y, _ = copies(n_groups=60, size=1)
    alone = cls(random_state=0).fit(X, y, groups=[f"g{i}" for i in range(60)])
    plain = cls(random_state=0).fit(X, y)
    assert_array_equal(alone.predict(X), plain.predict(X))
    if cls is not KreinRidgeClassifier:  # whose calibration deals its own folds
        assert_array_equal(alone.out_of_fold_.prediction, plain.out_of_fold_.prediction)
    if cls in REGRESSORS:
        assert_array_equal(alone.predict_interval(X), plain.predict_interval(X))


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_class_in_one_group_warns_and_counts_as_wrong(cls):
    X, y, groups = copies(n_groups=40, noise=0.3)
    y = np.where(groups == 3, 2, y)
    with pytest.warns(UserWarning, match=r"1 of 3 classes \(2\) are in one group each"):
        model = cls(random_state=0).fit(X, y, groups=groups)
    held = model.out_of_fold_
    assert np.all(held.prediction.argmax(axis=1)[held.target == 2] != 2)


@pytest.mark.parametrize("cls", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(40), "one group only"),
        (np.arange(39), "39 entries but there are 40 items"),
        (3, "a single value but there are 40"),
        ([None, *range(39)], "missing for 1 items, the first is item 0"),
        (np.r_[np.nan, np.arange(39)], "missing for 1 items, the first is item 0"),
    ],
)
def test_bad_groups_raise_one_sentence(cls, groups, message):
    X, y, _ = copies(n_groups=10)
    with pytest.raises(ValueError, match=message) as error:
        cls().fit(X, y, groups=groups)
    assert str(error.value).count(". ") == 0


@pytest.mark.parametrize("cls", [SimilarityClassifier, KreinRidgeClassifier])
def test_metadata_routing(cls):
    X, y, groups = copies(n_groups=24, noise=0.3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = cls(random_state=0).set_fit_request(groups=True)
        scores = cross_validate(
            model, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True
        )
    assert all(fitted.out_of_fold_.groups is not None for fitted in scores["estimator"])


def test_items_without_weight_and_their_groups():
    X, y, groups = copies(n_groups=30, noise=0.4)
    weight = (groups != 4).astype(float)
    used = weight > 0
    for cls in CLASSIFIERS:
        model = cls(random_state=0).fit(X, y, weight, groups)
        removed = cls(random_state=0).fit(X[used], y[used], groups=groups[used])
        assert_allclose(model.predict_proba(X), removed.predict_proba(X), atol=1e-9)
        assert 4 not in model.out_of_fold_.groups


class TestQuantile:
    def test_sets_within_every_class_count_groups(self):
        proba = np.linspace(0.01, 0.99, 80)
        held = OutOfFold(np.arange(80), np.column_stack([proba, 1 - proba]), np.zeros(80, int))
        of_groups = held._replace(groups=np.arange(80) // 4)
        assert set_thresholds(of_groups, 0.9, by_class=False)[0] == pytest.approx(proba[4])
        both = held._replace(target=np.arange(80) // 40, groups=np.arange(80) // 8)
        with pytest.raises(ValueError, match="needs at least 9 groups of items of class 0"):
            set_thresholds(both, 0.9, by_class=True)

    def test_groups_of_one_give_the_usual_rank(self):
        errors = np.random.RandomState(0).normal(size=(37, 2))
        expected = np.sort(errors, axis=0)[conformal_rank(37, 0.8) - 1]
        assert_array_equal(conformal_quantile(errors, 0.8, np.arange(37)), expected)

    def test_every_group_counts_as_one(self):
        errors = np.r_[np.arange(9.0), np.full(91, 100.0)]
        groups = np.r_[np.arange(9), np.full(91, 9)]
        assert conformal_quantile(errors, 0.8, groups) == 8.0
        assert conformal_quantile(errors, 0.9, groups) == 100.0

    def test_too_few_groups_say_how_many(self):
        with pytest.raises(ValueError, match="needs at least 9 groups of out-of-fold predictions"):
            conformal_quantile(np.zeros(80), 0.9, np.arange(80) % 8)

    def test_coverage_of_unequal_groups_by_simulation(self):
        rng = np.random.RandomState(0)
        hits = []
        for _ in range(4000):
            level = rng.normal(size=16)
            groups = np.repeat(np.arange(15), rng.randint(1, 9, 15))
            errors = level[groups] + 0.1 * rng.normal(size=len(groups))
            hits.append(level[15] + 0.1 * rng.normal() <= conformal_quantile(errors, 0.75, groups))
        assert 0.73 < np.mean(hits) < 0.79


class TestNearCopies:
    @pytest.mark.parametrize("size", [2, 4, 10])
    def test_sets_of_any_size_are_found(self, size):
        X, _, _ = copies(n_groups=60, size=size)
        with pytest.warns(
            UserWarning, match=f"{60 * size} of the {60 * size} items.*in (59|60) sets"
        ):
            warn_of_near_copies(cdist(X, X), 5)

    def test_found_among_other_items(self):
        X, _, _ = copies(n_groups=60, size=2)
        X = np.vstack([X, np.random.RandomState(1).normal(size=(100, 5))])
        with pytest.warns(UserWarning, match="120 of the 220 items"):
            warn_of_near_copies(cdist(X, X), 5)

    def test_a_splitter_knows_what_it_does(self):
        X, _, _ = copies()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_near_copies(cdist(X, X), GroupKFold(3))

    def test_ordinary_items_are_none(self):
        rng = np.random.RandomState(0)
        sets = [rng.normal(size=(200, d)) for d in (1, 2, 5, 30)]
        sets += [rng.standard_cauchy(size=(200, d)) for d in (1, 3)]
        sets += [np.exp(2 * rng.normal(size=(200, 2))), load_iris().data]
        sets += [make_blobs(200, centers=k, cluster_std=0.05, random_state=0)[0] for k in (3, 10)]
        sets += [rng.randint(6, size=(150, 4)).astype(float)]
        matrices = [cdist(X, X) for X in sets] + [load_digit_shapes(300).D]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for D, n_classes in zip(matrices, [1] * 8 + [3, 10, 1, 10]):
                warn_of_near_copies(D, 5, n_classes)


def test_numbers_of_groups():
    assert check_groups(None, 3) is None
    assert_array_equal(check_groups(["b", "a", "b"], 3), [0, 1, 0])
    assert_array_equal(check_groups([7, "a", 7], 3), [0, 1, 0])
