"""Many items (a race of settings, main axes of profiles, nearest items), few items, and many classes."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_classification
from stacks import scores_of_settings

from mercerless import SimilarityClassifier, SimilarityRegressor
from mercerless.core.folds import splits_of
from mercerless.persistence import load, save
from mercerless.similarity import landmarks as landmarks_module
from mercerless.similarity import stack as stacks_module
from mercerless.similarity.families import (
    GRIDS,
    ClassPairs,
    Comparisons,
    Profiles,
    Setting,
    all_settings,
    default_families,
    fit_members,
)
from mercerless.similarity.solver import main_axes, neighbor_means, pivots_of
from mercerless.similarity.stack import RULES, AllItems, race, run_in_order

X, Y = load_digits(return_X_y=True)
KEPT = np.flatnonzero(Y < 4)[:300]
X = X[KEPT]
Y = Y[KEPT]
D = cdist(X, X, "cityblock")
TARGETS = np.where(Y[:, None] == np.arange(4), 1.0, -1.0)


def comparisons(rows, columns):
    return Comparisons.of_squares(D[np.ix_(rows, columns)] ** 2)


@pytest.fixture
def early_race(monkeypatch):
    """Settings are raced from 100 items on."""
    rules = replace(RULES, race_items=100)
    monkeypatch.setattr(stacks_module, "RULES", rules)
    monkeypatch.setattr(landmarks_module, "RULES", rules)


def learned(n=140, n_folds=4):
    items = np.arange(n)
    source = AllItems(comparisons(items, items), items % n_folds)
    return source.learn(TARGETS[:n], np.ones(n), classify=True)


def test_a_race_keeps_the_settings_of_least_loss_of_every_family():
    rng = np.random.default_rng(0)
    settings = [Setting("clip", 10.0**k) for k in range(5)]
    settings += [Setting("flip", 10.0**k) for k in range(5)]
    settings += [Setting("profiles", 10.0**k) for k in range(8)]
    settings += [Setting("gaussian", 10.0**k) for k in range(4)]
    truth = rng.normal(size=(60, 1))
    errors = rng.permutation(len(settings)) + 1.0
    scores = truth + errors[:, None, None] * rng.choice([-1.0, 1.0], size=(len(settings), 60, 1))
    names = {"clip", "flip", "profiles", "gaussian"}
    kept = race(settings, scores, truth, np.ones(60), False, names)
    assert kept[:10].all()  # clip and flip are compared penalty by penalty
    assert_array_equal(np.flatnonzero(kept[10:18]), np.sort(np.argsort(errors[10:18])[:4]))
    assert_array_equal(np.flatnonzero(kept[18:]), np.sort(np.argsort(errors[18:])[:3]))


def test_scores_of_raced_settings_are_those_without_a_race(early_race):
    everything = learned()
    raced = everything.raced(run_in_order, classify=True)
    settings = all_settings(everything.families)
    left = all_settings(raced.families)
    assert len(left) < len(settings)
    scores = everything.out_of_fold(run_in_order)
    positions = [settings.index(setting) for setting in left]
    assert_allclose(raced.out_of_fold(run_in_order), scores[positions], atol=1e-10)


def test_scores_of_raced_settings_with_landmarks_are_those_without_a_race(early_race):
    n = 160
    reader = landmarks_module.RowReader("distance", np.zeros(25), 0.0)
    rows = landmarks_module.LandmarkRows(D[:n, :25], None, reader, np.arange(25))
    random = np.random.RandomState(0)
    source = landmarks_module.LandmarkItems(rows, np.arange(n) % 4, random)
    everything = source.learn(TARGETS[:n], np.ones(n), classify=True)
    raced = everything.raced(run_in_order, classify=True)
    settings = all_settings(everything.families)
    left = all_settings(raced.families)
    assert len(left) < len(settings)
    positions = [settings.index(setting) for setting in left]
    expected = everything.out_of_fold(run_in_order)[positions]
    assert_allclose(raced.out_of_fold(run_in_order), expected, atol=1e-8)


def test_a_race_asks_the_first_fold_only(early_race):
    everything = learned()
    first = splits_of(everything.source.fold_of)[0][1]
    left = all_settings(everything.raced(run_in_order, classify=True).families)
    # labels of the first fold decide: other learners win if these are drawn at random
    targets = everything.targets.copy()
    targets[first] = targets[np.random.default_rng(0).permutation(first)]
    other = replace(everything, targets=targets).raced(run_in_order, classify=True)
    assert all_settings(other.families) != left


@pytest.mark.parametrize("landmarks", [None, 30])
def test_few_items_are_not_raced_and_many_are(early_race, landmarks):
    def fit(n):
        model = SimilarityClassifier(
            "precomputed", kind="distance", landmarks=landmarks, random_state=0
        )
        columns = slice(n) if landmarks is None else slice(30)
        return model.fit(D[:n, columns], Y[:n])

    calls = []
    original = stacks_module.race

    def counted(settings, *arguments):
        calls.append(len(settings))
        return original(settings, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacks_module, "race", counted)
        patch.setattr(landmarks_module, "race", counted)
        fit(90)
        assert not calls
        model = fit(200)
        assert len(calls) == 1
    assert model.score(D[200:, slice(200) if landmarks is None else slice(30)], Y[200:]) > 0.85
    assert {"clip", "flip", "profiles"} <= set(model.family_scores_)


def test_numbers_are_raced_too(early_race):
    y = np.cos(Y) + 0.1 * np.random.default_rng(0).normal(size=len(Y))
    y[3] = 40.0  # an extreme target, so that two kinds of targets are learned
    model = SimilarityRegressor("precomputed", kind="distance", landmarks=None, random_state=0)
    model.fit(D[:200, :200], y[:200])
    assert np.corrcoef(model.predict(D[200:, :200]), y[200:])[0, 1] > 0.9


# ------------------------------------------------------------------------------------------------- main axes


def rows_of_rank(n, p, rank, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ (
        rng.normal(size=(rank, p)) * 0.8 ** np.arange(rank)[:, None]
    )


def test_main_axes_hold_nearly_as_much_as_the_best():
    rows = rows_of_rank(80, 90, 60) + 0.01 * np.random.default_rng(1).normal(size=(80, 90))
    axes = main_axes(rows, rows @ rows.T, 12, np.ones(len(rows)))
    assert_allclose(axes.T @ axes, np.eye(12), atol=1e-12)
    best = np.linalg.svd(rows, compute_uv=False)[:12]
    assert np.sum((rows @ axes) ** 2) > 0.99 * np.sum(best**2)


def test_main_axes_of_few_dimensions_are_all_of_them():
    rows = rows_of_rank(50, 40, 5)
    axes = main_axes(rows, rows @ rows.T, 12, np.ones(len(rows)))
    assert axes.shape == (40, 5)
    assert_allclose(rows @ axes @ axes.T, rows, atol=1e-10)
    nothing = np.zeros((6, 4))
    assert main_axes(nothing, nothing @ nothing.T, 3, np.ones(6)).shape == (4, 0)


def test_main_axes_do_not_depend_on_the_order_of_rows():
    rows = rows_of_rank(60, 60, 30)
    order = np.random.default_rng(2).permutation(60)
    axes = main_axes(rows, rows @ rows.T, 8, np.ones(60))
    others = main_axes(rows[order], rows[order] @ rows[order].T, 8, np.ones(60))
    assert_allclose(others @ others.T, axes @ axes.T, atol=1e-9)


def test_pivots_are_those_of_a_loop_of_projections():
    rows = rows_of_rank(30, 30, 20)
    pivots = pivots_of(rows @ rows.T, 6)
    left = rows.copy()
    for pivot in pivots:
        assert pivot == np.argmax((left**2).sum(axis=1))
        direction = left[pivot] / np.linalg.norm(left[pivot])
        left = left - np.outer(left @ direction, direction)


def test_profiles_for_predictions_are_projected_if_there_are_many_items(monkeypatch):
    items = np.arange(150)
    weight = np.random.default_rng(0).integers(1, 4, size=150).astype(float)
    exact = fit_members(comparisons(items, items), TARGETS[:150], [Profiles()], weight)
    monkeypatch.setattr("mercerless.similarity.families.GRIDS", replace(GRIDS, exact_profiles=100))
    family = Profiles().for_predictions()
    cheap = fit_members(comparisons(items, items), TARGETS[:150], [family], weight)
    assert cheap.families[0].rows.shape == (150, 100)
    new = comparisons(np.arange(150, 200), items)
    settings = exact.settings
    both = [scores_of_settings(members, settings, new) for members in (exact, cheap)]
    assert np.abs(both[0] - both[1]).max() < 0.1  # the smallest of 150 axes hold little


def test_profiles_of_many_dimensions_are_not_projected(monkeypatch):
    squares = np.random.default_rng(0).uniform(1.0, 4.0, size=(150, 150))
    squares = (squares + squares.T) / 2.0
    np.fill_diagonal(squares, 0.0)
    train = Comparisons.of_squares(squares)
    exact = fit_members(train, TARGETS[:150], [Profiles()], np.ones(150)).scores(train)
    monkeypatch.setattr("mercerless.similarity.families.GRIDS", replace(GRIDS, exact_profiles=100))
    family = Profiles().for_predictions()
    cheap = fit_members(Comparisons.of_squares(squares), TARGETS[:150], [family], np.ones(150))
    assert cheap.families[0].rows.shape == (150, 150)
    assert_allclose(cheap.scores(train), exact, atol=1e-12)


def test_main_axes_of_weighted_rows_are_those_of_repeated_rows():
    rows = rows_of_rank(40, 50, 30)
    weight = np.random.default_rng(3).integers(1, 4, size=40)
    repeated = np.repeat(rows, weight, axis=0)
    axes = main_axes(rows, rows @ rows.T, 8, weight.astype(float))
    others = main_axes(repeated, repeated @ repeated.T, 8, np.ones(len(repeated)))
    assert_allclose(others @ others.T, axes @ axes.T, atol=1e-9)


def test_main_axes_hold_all_of_a_profile_of_few_dimensions(monkeypatch):
    items = np.arange(60)
    points = np.random.default_rng(0).normal(size=(80, 1))
    squares = (points - points.T) ** 2 * np.ones((80, 80))
    train = Comparisons.of_squares(squares[:60, :60])
    new = Comparisons.of_squares(squares[60:, :60])
    exact = fit_members(train, TARGETS[:60], [Profiles()], np.ones(60)).scores(new)
    monkeypatch.setattr("mercerless.similarity.families.GRIDS", replace(GRIDS, exact_profiles=10))
    family = Profiles().for_predictions()
    cheap = fit_members(train, TARGETS[items], [family], np.ones(60)).scores(new)
    assert_allclose(cheap, exact, atol=1e-3)


# ------------------------------------------------------------------------------------------------- nearest items


def test_votes_of_the_nearest_do_not_depend_on_others_rows():
    rng = np.random.default_rng(0)
    away = np.round(rng.uniform(size=(30, 90)), 2)
    targets = rng.normal(size=(90, 2))
    together = neighbor_means(away, targets, [1, 5, 9])
    alone = [neighbor_means(away[[i]], targets, [1, 5, 9]) for i in range(30)]
    for count in (1, 5, 9):
        assert_allclose(together[count], np.concatenate([row[count] for row in alone]), atol=1e-12)


# ------------------------------------------------------------------------------------------------- few items


def test_classes_of_few_items_have_more_equal_weights(monkeypatch):
    def largest_share(n):
        model = SimilarityClassifier("precomputed", kind="distance", random_state=0)
        return model.fit(D[:n, :n], Y[:n]).weights_.max()

    few = largest_share(100)
    many = largest_share(101)
    monkeypatch.setattr(stacks_module, "RULES", replace(RULES, small_pull=RULES.pull))
    assert few < 0.9 * largest_share(100)
    assert many == largest_share(101)


def test_numbers_of_few_items_are_pulled_as_others():
    source = AllItems(comparisons(np.arange(50), np.arange(50)), np.arange(50) % 5)
    assert source.pull(classify=True) > source.pull(classify=False) == RULES.pull


# ------------------------------------------------------------------------------------------------- pairs of classes


def pair_decisions(K, K_new, y, weight, penalty, a, b):
    """Weighted kernel ridge regression with an intercept on two classes, by its normal equations."""
    rows = np.flatnonzero((y == a) | (y == b))
    sign = np.where(y[rows] == a, 1.0, -1.0)
    w = weight[rows] / weight[rows].mean()
    n = len(rows)
    center = np.eye(n) - np.outer(np.ones(n), w) / n
    root = np.sqrt(w)
    centered = root[:, None] * (center @ K[np.ix_(rows, rows)] @ center.T) * root
    ridge = penalty * np.linalg.norm(centered)
    mean = np.average(sign, weights=w)
    dual = np.linalg.solve(centered + ridge * np.eye(n), root * (sign - mean))
    coef = root * dual
    return K_new[:, rows] @ coef + mean - (w @ K[np.ix_(rows, rows)] / n) @ coef


def test_votes_of_pairs_against_a_loop_over_them():
    items = np.arange(90)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, size=90)
    family = ClassPairs().fit(comparisons(items, items), TARGETS[:90], weight)
    new = comparisons(np.arange(90, 110), items)
    K = family.features(family.learn_base(comparisons(items, items)), GRIDS.pair_width)
    K_new = family.features(family.base(new), GRIDS.pair_width)
    for setting, scores in zip(family.settings, family.scores(new)):
        expected = np.zeros((20, 4))
        for a in range(4):
            for b in range(4):
                if a != b:
                    decision = pair_decisions(K, K_new, Y[:90], weight, setting.parameter, a, b)
                    expected[:, a] += np.clip(decision, -1.0, 1.0) / 3.0
        assert_allclose(scores, expected, atol=1e-8)


def test_a_class_without_items_loses_every_pair():
    items = np.flatnonzero(Y[:90] < 3)
    family = ClassPairs().fit(comparisons(items, items), TARGETS[items], np.ones(len(items)))
    scores = family.scores(comparisons(np.arange(90, 110), items))
    assert_allclose(scores[:, :, 3], -1.0)


@pytest.mark.parametrize(
    ("n_classes", "takes_part"), [(10, False), (11, True), (50, True), (51, False)]
)
def test_pairs_take_part_for_more_than_ten_classes(n_classes, takes_part):
    names = {setting.family for setting in all_settings(default_families(True, 300, n_classes))}
    assert ("pairs" in names) is takes_part
    assert "pairs" not in {s.family for s in all_settings(default_families(False, 300, n_classes))}


@pytest.mark.slow
def test_a_model_of_fifteen_classes_has_pairs_and_is_saved_and_explained(tmp_path):
    points, y = make_classification(
        400,
        20,
        n_informative=10,
        n_classes=15,
        n_clusters_per_class=1,
        class_sep=1.5,
        random_state=15,
    )
    D = cdist(points, points, "cityblock")
    model = SimilarityClassifier("precomputed", kind="distance", random_state=0)
    model.fit(D[:315, :315], y[:315])
    assert model.family_scores_["pairs"]["weight"] > 0.0
    proba = model.predict_proba(D[315:, :315])
    assert np.mean(proba.argmax(axis=1) == y[315:]) > 0.6
    explained = model.explain(D[315:318, :315], train=D[:315, :315])
    total = explained.base + explained.shares.sum(axis=1) + explained.rest
    assert_allclose(total, explained.score, atol=1e-8)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_allclose(again.predict_proba(D[315:, :315]), proba, atol=1e-12)


def test_several_labels_have_no_pairs_of_classes():
    labels = (np.arange(60)[:, None] // 2 ** np.arange(6)) % 2  # twelve columns of targets
    model = SimilarityClassifier("precomputed", kind="distance", random_state=0)
    model.fit(D[:60, :60], labels)
    assert "pairs" not in model.family_scores_
