"""Which features predictions need, by the learner itself and through scikit-learn's inspection."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.neighbors import KNeighborsRegressor

from mercerless import TableClassifier, TableRegressor
from mercerless.table.importance import TrainingSample

QUICK = {"members": ["local"], "max_iter": 10, "random_state": 0}


def mixed(n, seed=0):
    """A frame with a word that matters, a number that does, with gaps, and two columns of noise."""
    random = np.random.RandomState(seed)
    frame = pd.DataFrame(random.normal(size=(n, 2)), columns=["noise", "number"])
    frame["word"] = random.choice(list("uvw"), n)
    frame["name"] = random.choice(list("abcdef"), n)
    y = 2 * frame["number"] + frame["word"].map({"u": 0.0, "v": 1.0, "w": 2.0})
    y = y.to_numpy() + 0.3 * random.normal(size=n)
    frame.loc[:5, "number"] = np.nan
    return frame, y


@pytest.mark.parametrize("classify", [False, True])
def test_features_that_matter_are_important_and_noise_is_not(classify):
    frame, y = mixed(200)
    if classify:
        model = TableClassifier(**QUICK).fit(frame, np.where(y > 1, "high", "low"))
    else:
        model = TableRegressor(**QUICK).fit(frame, y)
    importances = dict(zip(frame.columns, model.feature_importances_))
    assert sum(importances.values()) == pytest.approx(1.0)
    assert importances["number"] > importances["word"] > 0.05
    assert importances["noise"] + importances["name"] < 0.05
    assert model.feature_importances_ is model.feature_importances_  # computed once
    first = model.feature_importances_
    model.fit(frame[["noise", "number"]], y > 1 if classify else y)
    assert len(model.feature_importances_) == 2 != len(first)


def test_features_that_only_serve_to_remember_rows_are_not_important():
    random = np.random.RandomState(1)
    X = random.normal(size=(240, 5))
    y = X[:, 0] + 1.5 * random.normal(size=240)
    model = TableRegressor(**QUICK).fit(X, y)
    assert model.feature_importances_[0] > 0.7
    # on rows that a nearest neighbor has seen, noise is as important as the signal
    sample = model._sample
    seen = permutation_importance(KNeighborsRegressor(1).fit(X, y), X, y, random_state=0)
    assert seen.importances_mean[0] < 0.4 * seen.importances_mean.sum()
    assert sample.table.shape == (240, 5)


def test_importances_by_hand():
    random = np.random.RandomState(0)
    table = random.normal(size=(5000, 3))
    target = table @ [1.0, 2.0, 0.0]
    sample = TrainingSample.of(table, target, np.ones(5000), None, most_rows=900)
    assert len(sample.table) == 900
    assert len(TrainingSample.of(table, target, np.ones(5000), None, most_values=30).table) == 10
    # the squared change of a permuted feature is twice its variance, here 1 to 4 to 0
    importances = sample.importances(TableRegressor(**QUICK), np.zeros(0, dtype=int))
    assert_allclose(importances, [0.2, 0.8, 0.0], atol=0.03)


def test_importances_count_held_out_rows_by_their_weights():
    """In rows of weight the first feature varies most; over all rows both features are alike."""
    random = np.random.RandomState(0)
    has_weight = np.arange(600) % 2 == 0
    table = random.normal(size=(600, 2)) * np.where(has_weight[:, None], [3.0, 0.3], [0.3, 3.0])
    sample = TrainingSample(table, table.sum(axis=1), np.where(has_weight, 1.0, 0.02), None)
    importances = sample.importances(TableRegressor(**QUICK), np.zeros(0, dtype=int))
    # the mean square of a row's change: that of the row itself, and that of all rows
    changes = np.array([3.0, 0.3]) ** 2 + (3.0**2 + 0.3**2) / 2
    assert_allclose(importances, changes / changes.sum(), atol=0.06)


def test_groups_are_not_on_both_sides():
    random = np.random.RandomState(0)
    groups = np.repeat(np.arange(30), 8)
    identity = random.normal(size=30)[groups]  # tells the group, which tells the target
    effect = random.normal(size=30)[groups]
    X = np.column_stack([identity, random.normal(size=240)])
    y = effect + X[:, 1] + 0.1 * random.normal(size=240)
    grouped = TableRegressor(**QUICK).fit(X, y, groups=groups).feature_importances_
    plain = TableRegressor(**QUICK).fit(X, y).feature_importances_
    assert grouped[0] < 0.1 < plain[0]


def test_importances_select_features_and_need_held_out_rows():
    random = np.random.RandomState(0)
    X = random.normal(size=(120, 4))
    y = X[:, 1] + 0.1 * random.normal(size=120)
    model = TableRegressor(**QUICK)
    assert not hasattr(model, "feature_importances_")
    selected = SelectFromModel(model).fit(X, y).get_support()
    assert list(selected) == [False, True, False, False]
    with pytest.raises(AttributeError, match="at least ten rows"):
        TableRegressor(**QUICK).fit(X[:4], y[:4]).feature_importances_  # noqa: B018


@pytest.mark.parametrize("classify", [False, True])
def test_inspection_of_scikit_learn_works_on_frames(classify):
    frame, y = mixed(150)
    target = y > 1 if classify else y
    model = (TableClassifier if classify else TableRegressor)(**QUICK).fit(frame, target)
    curve = partial_dependence(model, frame, ["number"], grid_resolution=8)["average"][0]
    assert curve[-1] - curve[0] > (0.4 if classify else 2.0)
    words = partial_dependence(model, frame, ["word"], categorical_features=["word"])
    assert np.all(np.diff(words["average"][0]) > 0)
    both = partial_dependence(model, frame, ["number", "noise"], kind="average", grid_resolution=4)
    assert both["average"].shape == (1, 4, 4)
    peer = permutation_importance(model, frame, target, n_repeats=2, random_state=0)
    assert peer.importances_mean.argmax() == model.feature_importances_.argmax() == 1


def test_partial_dependence_is_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from sklearn.inspection import PartialDependenceDisplay

    frame, y = mixed(120)
    model = TableRegressor(**QUICK).fit(frame, y)
    display = PartialDependenceDisplay.from_estimator(
        model, frame, ["number", "word"], categorical_features=["word"], grid_resolution=5
    )
    assert len(display.lines_.ravel()) == 2
    pyplot.close("all")


def test_codes_of_categories_are_categories():
    """The codes of words have no order: what they mean must be learned, not a slope."""
    random = np.random.RandomState(0)
    words = random.choice(list("abcdefgh"), 240)
    effect = dict(zip("abcdefgh", [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]))
    frame = pd.DataFrame({"word": words, "number": random.normal(size=240)})
    y = np.array([effect[word] for word in words]) + frame["number"] + 0.1 * random.normal(size=240)
    seen = []

    class Spy(TableRegressor):
        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append(self.categorical_features)
            return super().fit(X, y, sample_weight, groups)

    model = Spy(**QUICK).fit(frame, y)
    assert 0.3 < model.feature_importances_[0] < 0.7
    assert list(seen[-1]) == [0]


def test_weights_of_classes_by_their_names_count_once():
    frame, y = mixed(150)
    labels = np.where(y > 2.5, "high", "low")
    weights = {"high": 4.0, "low": 1.0}
    model = TableClassifier(**QUICK, class_weight=weights).fit(frame, labels)
    rows = np.where(labels == "high", 4.0, 1.0)
    as_rows = TableClassifier(**QUICK).fit(frame, labels, sample_weight=rows)
    assert_allclose(model.feature_importances_, as_rows.feature_importances_)
