"""What claims to be out of fold: an item's own target moves none of it, and the figures told are made of it."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import SimilarityClassifier, SimilarityRegressor, SimilaritySVC
from mercerless.core.averaging_old import Units, mix
from mercerless.core.calibration import calibrate, calibrate_scores, cross_calibrate
from mercerless.core.conformal import set_thresholds
from mercerless.core.folds import OutOfFold, assign_folds, blind_folds, splits_of
from mercerless.core.suspects import suspect_labels
from mercerless.kernels import TL1, Gaussian
from mercerless.similarity import landmarks
from mercerless.similarity import stack as similarity
from mercerless.similarity.directions import row_profiles
from mercerless.similarity.families import Setting, all_settings, default_families
from mercerless.similarity.stack import cross_fit, fence, log_loss, weigh_members

pytestmark = pytest.mark.filterwarnings("ignore:.*is worse than a constant")

N = 48
FOLDS = splits_of(np.arange(N) % 4)
ITEM = 7


def data(seed=0, n=N):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    return X, y, np.digitize(y, [-0.6, 0.6])


class Frozen:
    """A function that first keeps what it returns, and then returns it again in the units of new targets."""

    def __init__(self, function):
        self.function, self.kept, self.units = function, [], None
        self.new_units = None

    def replay(self, units, new_units):
        self.units, self.new_units = units, new_units

    def __call__(self, *args, **options):
        scores = self.function(*args, **options)
        if self.new_units is None:
            self.kept.append(scores)
            return scores
        kept = self.kept.pop(0)
        q = self.units.mean.size
        kept = np.concatenate([kept[..., :q]] * (scores.shape[-1] // q), axis=-1)
        if np.all(self.units.scale == 1.0):
            return kept
        given = (
            np.tile(self.units.mean, kept.shape[-1] // q),
            np.tile(self.units.scale, kept.shape[-1] // q),
        )
        return Units(*map(partial(_repeat, kept.shape[-1] // q), self.new_units)).enter(
            Units(*given).leave(kept)
        )


def _repeat(times, values):
    return np.tile(values, times)


CASES = {
    "classes": (SimilarityClassifier(Gaussian(1.5), cv=FOLDS), "out_of_fold_scores"),
    "numbers": (SimilarityRegressor(Gaussian(1.5), cv=FOLDS), "out_of_fold_scores"),
    "classes, landmarks": (
        SimilarityClassifier(Gaussian(1.5), cv=FOLDS, landmarks=12, random_state=0),
        "landmarks",
    ),
    "numbers, landmarks": (
        SimilarityRegressor(Gaussian(1.5), cv=FOLDS, landmarks=12, random_state=0),
        "landmarks",
    ),
    "classes, several": (
        SimilarityClassifier([Gaussian(1.5), TL1(2.0)], cv=FOLDS, random_state=0),
        "out_of_fold_scores",
    ),
    "numbers, several": (
        SimilarityRegressor([Gaussian(1.5), TL1(2.0)], cv=FOLDS, random_state=0),
        "out_of_fold_scores",
    ),
    "classes, directed": (SimilarityClassifier(TL1(2.0), direction="both", cv=FOLDS), "directed"),
    "numbers, directed": (SimilarityRegressor(TL1(2.0), direction="both", cv=FOLDS), "directed"),
}
HOMES = {
    "out_of_fold_scores": (similarity, "out_of_fold_scores"),
    "landmarks": (landmarks, "scores_by_fold"),
    "directed": (similarity, "out_of_fold_scores"),
}


def changed(target, value=None):
    """The targets with another one for `ITEM`."""
    again = target.copy()
    again[ITEM] = (target[ITEM] + 1) % 3 if value is None else value
    return again


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_an_items_own_target_does_not_move_its_out_of_fold_prediction(name, weighted, monkeypatch):
    """Learners have not seen it; with their scores held fast, neither has anything that is chosen from these."""
    model, home = CASES[name]
    X, y, labels = data()
    weight = np.random.RandomState(1).uniform(0.5, 2.0, N) if weighted else None
    frozen = Frozen(getattr(*HOMES[home]))
    monkeypatch.setattr(*HOMES[home], frozen)
    classify = "classes" in name
    target = labels if classify else y
    before = model.fit(X, target, sample_weight=weight).out_of_fold_

    again = changed(labels) if classify else changed(y, 1.7)
    units = Units(np.zeros(1), np.ones(1))
    new_units = units
    if classify:
        units = Units(np.zeros(3), np.ones(3))
    else:
        weights = np.ones(N) if weight is None else weight
        units = Units.of(y[:, None], weights)
        new_units = Units.of(again[:, None], weights)
    frozen.replay(units, new_units)
    after = model.fit(X, again, sample_weight=weight).out_of_fold_
    assert not frozen.kept

    in_block = np.arange(N) % 4 == ITEM % 4
    # calibrations begin at that of all items, which the target does move, and end within 1e-10 of their optimum
    assert_allclose(after.prediction[ITEM], before.prediction[ITEM], rtol=0, atol=1e-9)
    moved = np.abs(after.prediction - before.prediction).reshape(N, -1).max(axis=1)
    assert moved[in_block].max() < 1e-9 < moved[~in_block].max()


def test_fixed_scores_of_numbers_with_extreme_targets():
    """The decision for given or fenced targets and their units are those of the other blocks as well."""
    rng = np.random.RandomState(0)
    settings = all_settings(default_families(classify=False))
    Y = rng.normal(size=(N, 1))
    Y[1:4] = 20.0
    fenced = fence(Y, np.ones(N))
    noise = rng.normal(size=(len(settings), N, 1))
    scores = np.concatenate([Y + noise, fenced + 0.5 * noise], axis=2)
    first = weigh_members(scores, settings, Y, fenced, np.ones(N), FOLDS, False)[0]
    moved = Y.copy()
    moved[ITEM] = 40.0
    again = weigh_members(
        scores, settings, moved, fence(moved, np.ones(N)), np.ones(N), FOLDS, False
    )[0]
    in_block = np.arange(N) % 4 == ITEM % 4
    assert_allclose(again.out_of_fold[in_block], first.out_of_fold[in_block], atol=1e-10)
    assert_allclose(
        again.out_of_fold_without_diag[in_block],
        first.out_of_fold_without_diag[in_block],
        atol=1e-10,
    )
    assert np.abs(again.out_of_fold - first.out_of_fold).max() > 1e-6


def test_figures_of_families_are_chosen_inside_the_blocks():
    """By hand: calibrate and choose on the other blocks, and score the block."""
    rng = np.random.RandomState(0)
    settings = [Setting(family, p) for family in ("clip", "flip") for p in (0.1, 1.0, 10.0)] + [
        Setting(family, p) for family in ("square", "neighbors") for p in (1.0, 3.0)
    ]
    labels = rng.randint(3, size=N)
    Y = 2.0 * np.eye(3)[labels] - 1.0
    weight = rng.uniform(0.5, 2.0, N)
    scores = 0.3 * Y + rng.normal(size=(len(settings), N, 3))
    average, _ = weigh_members(scores, settings, Y, None, weight, FOLDS, True)
    proba = np.zeros((N, 3))
    for train, test in FOLDS:
        calibrations = [
            calibrate(scores[i : i + 1, train], np.eye(3)[labels[train]], weight[train]).take(0)
            for i in range(3)
        ]
        losses = [
            log_loss(one(scores[i, train]), np.eye(3)[labels[train]]) @ weight[train]
            for i, one in enumerate(calibrations)
        ]
        best = int(np.argmin(losses))
        proba[test] = calibrations[best](scores[best, test])
    expected = average.family_scores["clip"]
    hits = proba.argmax(axis=1) == labels
    assert_allclose(expected["accuracy"], np.average(hits, weights=weight))
    assert_allclose(
        expected["log_loss"], np.average(log_loss(proba, np.eye(3)[labels]), weights=weight)
    )


@pytest.mark.parametrize("name", ["classes", "numbers", "classes, directed", "numbers, directed"])
def test_the_figures_told_are_those_of_the_out_of_fold_predictions(name):
    X, y, labels = data()
    weight = np.random.RandomState(1).uniform(0.5, 2.0, N)
    target = labels if "classes" in name else y
    model = CASES[name][0].fit(X, target, sample_weight=weight)
    held, told = model.out_of_fold_, model.family_scores_["stack"]
    if "classes" in name:
        hits = held.prediction.argmax(axis=1) == held.target
        right = held.prediction[np.arange(N), held.target]
        assert_allclose(told["accuracy"], np.average(hits, weights=weight))
        assert_allclose(told["log_loss"], np.average(-np.log(right), weights=weight))
    else:
        error = np.average((held.prediction - y) ** 2, weights=weight)
        assert_allclose(told["mse"], error / model.scale_[0] ** 2)
        assert_allclose(told["r2"], 1.0 - told["mse"])


def test_blocks_know_nothing_of_the_classes():
    X, _, labels = data(n=60)
    copied = np.concatenate([X, X[:9]])
    numbers = [
        blind_folds(
            5,
            assign_folds(5, 69, labels=some, random_state=1),
            copied,
            classify=True,
            used=np.arange(69),
        )
        for some in (np.resize(labels, 69), np.resize(labels, 69)[::-1])
    ]
    assert_array_equal(*numbers)
    assert_array_equal(numbers[0][:9], numbers[0][60:])
    assert np.ptp(np.bincount(numbers[0])) <= 3 and len(np.unique(numbers[0])) == 5
    given = np.arange(60) % 3
    for cv, classify in ((splits_of(given), True), (5, False)):
        kept = blind_folds(cv, given, X, classify=classify, used=np.arange(60))
        assert_array_equal(kept, given)


@pytest.mark.parametrize("options", [{}, {"landmarks": 15}, {"kernel": [TL1(2.0), TL1(3.0)]}])
def test_classifiers_choose_on_blocks_that_know_nothing_of_the_classes(options, monkeypatch):
    X, _, labels = data()
    seen = []

    def spy(choice, scores, settings, Y, weight, blocks, pull):
        seen.append(blocks)
        return cross_fit(choice, scores, settings, Y, weight, blocks, pull)

    monkeypatch.setattr(similarity, "cross_fit", spy)
    model = SimilarityClassifier(**{"kernel": TL1(2.0), "random_state": 0} | options)
    model.fit(X, labels).fit(X, labels[::-1])
    expected = splits_of(assign_folds(5, N, random_state=0))
    assert len(seen) >= 2
    for blocks in seen:
        assert_array_equal(
            np.concatenate([b for _, b in blocks]), np.concatenate([b for _, b in expected])
        )


def test_weights_of_several_see_only_other_blocks():
    """The mixture of one block by hand, in the units of the other blocks."""
    rng = np.random.RandomState(0)
    Y = rng.normal(size=(N, 1))
    predictions = Y + rng.normal(size=(3, N, 1))
    by_block = np.stack([predictions + 0.1 * rng.normal(size=(3, N, 1)) for _ in FOLDS], axis=1)
    weight = rng.uniform(0.5, 2.0, N)
    mixture = mix(predictions, Y, weight, ["a", "b", "c"], False, FOLDS, by_block)
    assert_allclose(
        mixture.scores["stack"]["mse"],
        np.average((mixture.out_of_fold - Y)[:, 0] ** 2, weights=weight),
    )
    train, test = FOLDS[1]
    alone = mix(by_block[:, 1, train], Y[train], weight[train], ["a", "b", "c"], False)
    units = Units.of(Y[train], weight[train])
    expected = units.leave(np.tensordot(alone.weights, units.enter(by_block[:, 1, test]), 1))
    assert_allclose(mixture.out_of_fold[test], expected)


def test_sets_cover_where_there_is_nothing_to_learn():
    """The shares of the classes are held out too: folds of equal shares give 0.80."""
    hits = []
    for seed in range(50):
        rng = np.random.RandomState(seed)
        scores, labels = rng.normal(size=(60, 3)), rng.randint(3, size=60)
        held = OutOfFold(np.arange(60), cross_calibrate(scores, labels), labels)
        new = calibrate_scores(scores, labels)(rng.normal(size=(300, 3)))
        sets = new >= set_thresholds(held, 0.8)
        hits.append(sets.mean())  # every class is right for a third of new items
    assert 0.83 < np.mean(hits) < 0.93  # the standard error is about 0.013


def test_sets_of_rows_without_diag_are_those_of_the_families_that_need_none():
    X, _, labels = data(n=90)
    K = X @ X.T  # the diagonal differs
    model = SimilarityClassifier("precomputed", random_state=0).fit(K[:60, :60], labels[:60])
    average, new = model.stack_.average, K[60:, :60]
    assert model.diagonal_ is None
    assert not np.allclose(average.out_of_fold, average.out_of_fold_without_diag)
    for diag, held in (
        (None, average.out_of_fold_without_diag),
        (np.diagonal(K)[60:], average.out_of_fold),
    ):
        threshold = set_thresholds(model.out_of_fold_._replace(prediction=held), 0.9)
        expected = model.predict_proba(new, diag=diag) >= threshold
        sets = model.predict_set(new, 0.9, allow_empty=True, diag=diag)
        assert_array_equal(sets, expected)
    hits = average.out_of_fold_without_diag.argmax(axis=1) == labels[:60]
    assert np.mean(hits) > 0.5


@pytest.mark.parametrize("cls", [SimilarityClassifier, SimilarityRegressor])
def test_items_of_weight_zero_do_not_count_in_either_direction(cls):
    X, y, labels = data(n=60)
    rng = np.random.RandomState(0)
    K = np.tanh(X @ rng.normal(size=(2, 2)) @ X.T) + np.exp(-((X[:, None] - X) ** 2).sum(2))
    weight = np.where(np.arange(50) % 5 == 2, 0.0, 1.0)
    kept = np.flatnonzero(weight)
    target = labels if cls is SimilarityClassifier else y
    folds = splits_of(np.arange(50) % 4)
    inner = splits_of((np.arange(50) % 4)[kept])
    model = cls("precomputed", kind="similarity", direction="both", cv=folds)
    model.fit(K[:50, :50], target[:50], sample_weight=weight)
    alone = cls("precomputed", kind="similarity", direction="both", cv=inner)
    alone.fit(K[np.ix_(kept, kept)], target[kept])
    method = "predict_proba" if cls is SimilarityClassifier else "predict"
    new, back = K[50:, :50], K[:50, 50:].T
    assert_allclose(
        getattr(model, method)(new, reverse=back),
        getattr(alone, method)(new[:, kept], reverse=back[:, kept]),
        atol=1e-8,
    )
    assert_array_equal(model.out_of_fold_.rows, kept)


def test_symmetrized_items_of_weight_zero_do_not_count_in_either_direction():
    X, _, labels = data(n=60)
    rng = np.random.RandomState(0)
    K = np.tanh(X @ rng.normal(size=(2, 2)) @ X.T) + np.exp(-((X[:, None] - X) ** 2).sum(2))
    weight = np.where(np.arange(50) % 5 == 2, 0.0, 1.0)
    kept = np.flatnonzero(weight)
    options = {"kernel": "precomputed", "kind": "similarity", "direction": "mean"}
    model = SimilarityClassifier(**options, cv=splits_of(np.arange(50) % 4))
    model.fit(K[:50, :50], labels[:50], sample_weight=weight)
    alone = SimilarityClassifier(**options, cv=splits_of((np.arange(50) % 4)[kept]))
    alone.fit(K[np.ix_(kept, kept)], labels[kept])
    new, back = K[50:, :50], K[:50, 50:].T
    assert_allclose(
        model.predict_proba(new, reverse=back),
        alone.predict_proba(new[:, kept], reverse=back[:, kept]),
        atol=1e-8,
    )


def test_scale_of_targets_is_that_of_repeated_items():
    X, y, _ = data()
    counts = np.random.RandomState(0).randint(1, 4, N)
    weighted = SimilarityRegressor(Gaussian(1.5), cv=FOLDS).fit(X, y, sample_weight=counts)
    repeated = np.repeat(y, counts)
    assert_allclose(weighted.mean_, repeated.mean())
    assert_allclose(weighted.scale_, repeated.std())
    scaled = SimilarityRegressor(Gaussian(1.5), cv=FOLDS).fit(X, y, sample_weight=5.0 * counts)
    assert_allclose(scaled.scale_, weighted.scale_)


def test_class_weight_multiplies_sample_weight():
    X, _, labels = data()
    y = (labels > 0).astype(int)
    counts = np.random.RandomState(0).randint(1, 4, N)
    both = SimilaritySVC(Gaussian(1.5), class_weight={0: 3.0, 1: 0.5})
    product = counts * np.where(y == 0, 3.0, 0.5)
    values = both.fit(X, y, sample_weight=counts).decision_function(X)
    expected = SimilaritySVC(Gaussian(1.5)).fit(X, y, sample_weight=product).decision_function(X)
    assert_allclose(values, expected, atol=1e-8)
    alone = SimilaritySVC(Gaussian(1.5)).fit(X, y, sample_weight=counts).decision_function(X)
    assert np.abs(values - alone).max() > 1e-3


def test_models_that_are_too_sure_raise_no_more_false_alarms():
    """Labels are drawn by probabilities of which the models announce the cube."""
    alarms, stated = [], []
    for seed in range(40):
        rng = np.random.RandomState(seed)
        proba = rng.dirichlet([2.0, 1.0], 60)
        labels = (rng.uniform(size=60) > proba[:, 0]).astype(int)
        sure = proba**3 / (proba**3).sum(axis=1, keepdims=True)
        found = suspect_labels(OutOfFold(np.arange(60), sure, labels), np.arange(2))
        alarms.append(len(found.items) / 60)
        stated.append(found.false_alarms)
    assert np.mean(alarms) < 0.06  # 0.10 without the power; the standard error is 0.004
    assert 0.02 < np.mean(stated) <= 0.05


def test_models_that_know_nothing_accuse_no_one():
    shares = []
    for seed in range(40):
        rng = np.random.RandomState(seed)
        proba = rng.dirichlet([3.0, 3.0], 30)
        labels = rng.randint(2, size=30)
        found = suspect_labels(OutOfFold(np.arange(30), proba, labels), np.arange(2))
        shares.append(len(found.items) / 30)
    assert np.mean(shares) < 0.05


def test_a_suspect_has_another_label_that_is_more_probable_than_not():
    rng = np.random.RandomState(0)
    labels = rng.randint(4, size=80)
    proba = 0.1 * rng.dirichlet(np.ones(4), 80) + 0.9 * np.eye(4)[labels]
    proba[:5] = [0.05, 0.05, 0.45, 0.45]
    proba[5:9] = [0.05, 0.05, 0.1, 0.8]
    given = np.where(np.arange(80) < 9, 0, labels)
    found = suspect_labels(OutOfFold(np.arange(80), proba, given), np.arange(4), 0.2)
    assert_array_equal(np.sort(found.items), [5, 6, 7, 8])
    assert_array_equal(found.suggested, 3)


def test_weights_count_in_the_fence():
    """Weighted quartiles are those of repeated targets."""
    rng = np.random.RandomState(0)
    Y = np.concatenate([rng.normal(size=30), [9.0, 9.5, 10.0, 10.5]])[:, None]
    counts = np.concatenate([np.ones(30, dtype=int), np.full(4, 12)])
    assert fence(Y, np.ones(34)) is not None
    assert fence(Y, counts.astype(float)) is None
    assert fence(np.repeat(Y, counts, axis=0), np.ones(counts.sum())) is None


def test_diagonals_are_taken_by_name():
    X, _, labels = data(n=60)
    first, second = X @ X.T, 5.0 * (X @ X.T + 1.0) ** 2
    train = {"a": first[:45, :45], "b": second[:45, :45]}
    new = {"a": first[45:, :45], "b": second[45:, :45]}
    diag = {"a": np.diagonal(first)[45:], "b": np.diagonal(second)[45:]}
    model = SimilarityClassifier("precomputed", random_state=0).fit(train, labels[:45])
    expected = model.predict_proba(new, diag=diag)
    other_order = {name: diag[name] for name in ("b", "a")}
    assert_allclose(model.predict_proba(new, diag=other_order), expected)
    assert_allclose(model.predict_proba(new, diag=[diag["a"], diag["b"]]), expected)


def test_rows_of_one_direction_are_judged_by_the_better_stack():
    X, _, labels = data(n=90)
    gauss = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2.0)
    offset = 3.0 * np.random.RandomState(0).normal(size=(90, 1))
    K = gauss + offset - offset.T  # the mean of both directions is the Gaussian
    model = SimilarityClassifier("precomputed", direction="mean", random_state=0)
    model.fit(K[:60, :60], labels[:60])
    one_way = model.one_way_
    assert one_way.profiles is not None  # rows alone say little of the mean of both
    held = one_way.stack.average.out_of_fold
    assert not np.allclose(held, model.out_of_fold_.prediction)
    threshold = set_thresholds(model.out_of_fold_._replace(prediction=held), 0.9)
    with pytest.warns(UserWarning, match="only one direction"):
        proba = model.predict_proba(K[60:, :60])
    with pytest.warns(UserWarning, match="only one direction"):
        sets = model.predict_set(K[60:, :60], 0.9, allow_empty=True)
    assert_array_equal(sets, proba >= threshold)


def test_profiles_of_new_rows_ignore_constant_columns():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(20, 5))
    rows[:, 2] = 7.0
    new = rng.normal(size=(4, 5)) + 1.0
    profiles = row_profiles(rows)
    others = [0, 1, 3, 4]
    scale = rows[:, others].std(axis=0)
    expected = ((new[:, None, others] - rows[:, others]) / scale) ** 2
    assert_allclose(profiles.similarities(new), -0.5 * expected.sum(axis=2))
    assert_allclose(profiles.similarities(), profiles.similarities(rows), atol=1e-12)


def test_important_items_have_the_largest_coefficients():
    X, _, labels = data(n=60)
    model = SimilarityClassifier(Gaussian(1.5), random_state=0).fit(X, labels)
    shares = np.zeros(60)
    for family in model.stack_.members.families:
        for part in getattr(family, "models", ()):
            for column, setting in enumerate(part.settings):
                sizes = np.sqrt((part.coef[:, column] ** 2).sum(axis=1))
                weight = model.weights_[model.members_.index(setting)]
                shares += weight * sizes / sizes.sum()
    items = similarity.important_items(model.stack_, 10)
    assert shares[items].min() >= np.delete(shares, items).max()


def test_given_targets_of_reasons_are_those_of_the_items():
    X, _, labels = data(n=60)
    names = np.array(["a", "b", "c"])[labels]
    weight = np.where(np.arange(50) < 20, 0.0, 1.0)
    model = SimilarityClassifier(Gaussian(1.5), random_state=0)
    reasons = model.fit(X[:50], names[:50], sample_weight=weight).explain(X[50:], 3)
    known = reasons.items >= 0
    assert reasons.items[known].min() >= 20
    assert_array_equal(reasons.given[known], names[reasons.items[known]])


def test_learners_on_rows_are_decided_for_without_the_block():
    """What was chosen without a block decides for it, on the other blocks, and the whole decides for new items."""
    rng = np.random.RandomState(0)
    Y = rng.normal(size=(N, 1))
    settings = all_settings(default_families(classify=False))
    scores = Y + rng.normal(size=(len(settings), N, 1))
    average, _ = weigh_members(scores, settings, Y, None, np.ones(N), FOLDS, False)
    good, bad = Y + 0.1, Y + rng.normal(size=(N, 1))
    by_good, by_bad = (np.stack([values] * 4) for values in (good, bad))
    with_rows = average._replace(out_of_fold=bad, by_block=by_good)
    plain = average._replace(out_of_fold=good, by_block=by_bad)
    chosen, _ = similarity.simpler_average((plain, Y), (with_rows, Y), Y, np.ones(N), FOLDS)
    assert_array_equal(chosen.out_of_fold, bad)
    swapped, _ = similarity.simpler_average((with_rows, Y), (plain, Y), Y, np.ones(N), FOLDS)
    assert_array_equal(swapped.out_of_fold, bad)


def test_units_of_several_are_medians_of_distances_that_are_not_zero():
    X, _, labels = data()
    X = X[np.arange(N) // 3 % 9]  # many copies
    D = np.abs(X[:, None] - X).sum(axis=2)
    model = SimilarityClassifier("precomputed", kind="distance", cv=FOLDS)
    units = model.fit({"a": D, "b": 3.0 * D}, labels).stack_.units
    assert_allclose(units["a"], np.median(D[D > 0.0] ** 2))
    assert_allclose(units["b"], 9.0 * units["a"])
