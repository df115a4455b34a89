"""Groups: items that are held out together, so that what is announced is what new groups will see."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GroupKFold, cross_validate

from mercerless import KreinRidge, KreinRidgeClassifier, SimilarityClassifier, SimilarityRegressor

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
    assert accuracy(cls(random_state=0).fit(X, y)) > 0.95


@pytest.mark.filterwarnings("ignore:The sets cover 90% of all items, but only")  # of a class
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
def test_a_class_of_one_item_is_said(cls):
    X, y, _ = copies(n_groups=40, noise=0.3)
    y[5] = 2
    with pytest.warns(UserWarning, match="1 of 3 classes, such as 2, have one item only"):
        cls(random_state=0).fit(X, y)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_class_in_one_group_warns_and_counts_as_wrong(cls):
    X, y, groups = copies(n_groups=40, noise=0.3)
    y = np.where(groups == 3, 2, y)
    with pytest.warns(UserWarning, match="1 of 3 classes, such as 2, have one group of items only"):
        model = cls(random_state=0).fit(X, y, groups=groups)
    held = model.out_of_fold_
    assert np.all(held.prediction.argmax(axis=1)[held.target == 2] != 2)


@pytest.mark.parametrize("cls", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(40), "one group only"),
        (np.arange(39), "but there are 40 items"),
        (3, "but there are 40 items"),
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
