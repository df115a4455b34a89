"""Parts of LAB, each against what its docstring says."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier

from mercerless import LABClassifier, LABRegressor
from mercerless.core.averaging_old import TABLE_NUMBERS, average
from mercerless.core.calibration import calibrate_scores
from mercerless.core.choice import choice_parts
from mercerless.core.folds import OutOfFold, make_folds
from mercerless.core.scaling import standard_scaling
from mercerless.datasets import make_lab_function
from mercerless.lab import spread as lab_spread
from mercerless.lab.data import ScaledTable, merge_rows, target_units
from mercerless.lab.model import Rows, Settings
from mercerless.lab.selection import LocalLearner, Watch, _losses
from mercerless.lab.support import fold_supports, select_support
from mercerless.table.encoding import TreeColumns, read_columns
from mercerless.table.fit import TableSolution
from mercerless.table.members.trees import Trees, raw_predictions
from mercerless.table.members.wide import Wide, WideLearner
from mercerless.table.outliers import scaled_residuals
from mercerless.table.plan import boosting_rows, center_count
from mercerless.table.target import join_transformed, possible_transforms
from mercerless.table.weighing import Labeled, Pool, as_scores

QUICK = {"n_support": 12, "kernel": "gaussian", "max_iter": 5, "random_state": 0}


def waves(n, seed=0):
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n)


@pytest.mark.parametrize("classify", [False, True])
def test_rows_of_weight_zero_are_as_removed_and_others_keep_their_numbers(classify):
    X, y = waves(120)
    target = (y > 0).astype(int) if classify else y
    used = np.arange(120) % 4 != 1
    learner = LABClassifier if classify else LABRegressor
    model = learner(**QUICK).fit(X, target, used.astype(float))
    removed = learner(**QUICK).fit(X[used], target[used])
    held, expected = model.out_of_fold_, removed.out_of_fold_
    assert_array_equal(held.rows, np.flatnonzero(used)[expected.rows])
    assert_array_equal(held.target, target[held.rows])
    assert_allclose(held.prediction, expected.prediction, rtol=1e-6, atol=1e-8)
    if not classify:
        for value, other in zip(model.predict(X, return_std=True), removed.predict(X, True)):
            assert_allclose(value, other, rtol=1e-6, atol=1e-8)
    # copies of a row have its prediction
    rows = np.r_[np.arange(120), 5, 5, 77]
    copied = learner(**QUICK).fit(X[rows], target[rows]).out_of_fold_
    assert_array_equal(copied.target, target[rows][copied.rows])
    if not classify:  # calibrated probabilities of copies can be of different folds
        by_row = dict(zip(copied.rows, copied.prediction))
        assert by_row[120] == by_row[121] == by_row[5] and by_row[122] == by_row[77]


def test_losses_of_rows_are_those_of_the_curve():
    X, y = waves(90)
    rows = Rows(X, y[:, None], 0.1 + np.random.RandomState(0).rand(90))
    folds = make_folds(3, X, random_state=0)
    supports = [select_support(X[train], rows.Y[train], 10, "kmeans", 0) for train, _ in folds]
    learner = LocalLearner("gaussian", Settings(n_support=10, max_iter=5))
    curve = learner.validate(rows, folds, supports).curve
    watches = []
    for (train, valid), support in zip(folds, supports):
        watches.append(Watch(validation=rows.take(valid), checkpoints=(0, 5)))
        learner.learn(rows.take(train), support, watches[-1])
    for place, (_, error) in enumerate(curve):
        predictions = np.concatenate([watch.kept[place].predictions for watch in watches])
        assert_allclose(_losses(predictions, rows, folds).mean(), error, rtol=1e-9)


def test_all_rows_are_learned_with_the_iterations_of_the_folds():
    X, y = make_lab_function(100, function="f1", random_state=0)
    rows = Rows(X, y[:, None])
    learner = LocalLearner("gaussian", Settings(n_support=15, max_iter=60))
    folds = make_folds(3, X, random_state=0)
    supports = fold_supports(rows, folds, learner.settings)
    candidate = learner.validate(rows, folds, supports)._replace(n_iter=7)
    assert len(learner.learn_again(candidate, rows).loss) == 1 + 7


def test_folds_have_support_points_in_proportion():
    X, y = waves(90)
    rows = Rows(X, y[:, None])
    folds = make_folds(3, X, random_state=0)
    settings = Settings(n_support=30)
    assert [len(support) for support in fold_supports(rows, folds, settings)] == [20, 20, 20]
    assert [len(support) for support in fold_supports(rows, folds[:1], settings)] == [30]


def test_weights_of_some_rows_have_mean_one():
    X, y = waves(20)
    weight = np.arange(1.0, 21.0)
    table = ScaledTable(
        merge_rows(X, y[:, None], weight, None), standard_scaling(X), np.float64, weight
    )
    rows = table.rows(np.arange(10, 20))
    assert_allclose(rows.weight, weight[10:] / weight[10:].mean())
    assert_array_equal(rows.Y[:, 0], y[10:])


def test_sizes_within_the_memory():
    assert center_count(1000, 1e12) == 0
    assert center_count(1001, 1e12) == 1001
    assert center_count(10**6, 1e12) == 3000
    assert center_count(10**6, 4 * 100.0 * 700**2) == 700
    assert center_count(10**6, 4 * 100.0 * 400**2) == 0
    assert boosting_rows(10**7, 10, 1e12) == 2_000_000
    assert boosting_rows(10**6, 10, 4 * 20.0 * 10 * 5000) == 5000


def test_a_class_that_trees_have_not_seen_is_the_least_likely():
    X, y = waves(90)
    labels = np.where(y > 0, 2, 0)
    trees = HistGradientBoostingClassifier(max_iter=5).fit(X, labels)
    scores = raw_predictions([trees], X, 4)
    assert scores.shape == (90, 4)
    assert_array_equal(scores.argmax(axis=1), np.where(trees.decision_function(X) > 0, 2, 0))
    lowest = scores[:, [0, 2]].min(axis=1)
    assert_allclose(scores[:, [1, 3]], np.column_stack([lowest, lowest]) - 2.0)


def test_losses_and_pools_count_weights_as_repeated_rows():
    random = np.random.RandomState(0)
    truth = random.normal(size=80)
    labels = (truth + 0.5 * random.normal(size=80) > 0).astype(int)
    members = [(truth + random.normal(size=80))[:, None], 3 * random.normal(size=(80, 1))]
    members.append((2 * truth + random.normal(size=80))[:, None])
    counts = random.randint(1, 4, size=80)
    rows = np.repeat(np.arange(80), counts)
    X, Y = truth[:, None], truth[:, None]
    for classes in (None, labels):
        weighted = Labeled(Rows(X, Y, counts / counts.mean()), classes)
        of_rows = None if classes is None else classes[rows]
        repeated = Labeled(Rows(X[rows], Y[rows]), of_rows)
        loss = repeated.loss(members[0][rows])
        assert_allclose(weighted.loss(members[0]), loss)
        if classes is None:
            assert_allclose(weighted.judge(members[0]), loss)

    def pool(members, numbers, weight):
        held = Labeled(Rows(X[numbers], Y[numbers], weight), labels[numbers])
        return Pool.of([member[numbers] for member in members], held, 2).weights

    every = np.arange(80)
    share = pool(members, every, counts / counts.mean())
    assert_allclose(share, pool(members, rows, np.ones(len(rows))), atol=0.05)
    held = Labeled(Rows(X, Y, counts / counts.mean()), labels)
    slopes = [calibrate_scores(as_scores(member), labels, counts).slope for member in members]
    assert_allclose(Pool.of(members, held, 2).slopes, slopes)
    # scores of another unit have the same say
    scaled = pool([members[0], members[1], 10 * members[2]], every, np.ones(80))
    assert_allclose(scaled, pool(members, every, np.ones(80)), atol=1e-6)


def test_a_wide_machine_of_more_rows_has_centers_in_proportion():
    X, y = waves(90)
    rows = Rows(X, y[:, None])
    learner = WideLearner(Labeled(rows, None), np.arange(60), np.arange(60, 90), True, n_centers=30)
    machine = learner.candidate(learner.trial(Wide("gaussian", np.log(np.full(3, 2.0)))))
    assert len(machine.model.support) == 30
    everything = WideLearner(
        Labeled(rows, None), np.arange(90), np.arange(60, 90), True, n_centers=30
    )
    model = everything.refit(machine, 60)
    assert len(model.support) == 45 and len(np.unique(model.support)) == 45
    assert np.mean((model.predict(X, X) - rows.Y) ** 2) < 0.3


def test_residuals_are_compared_with_those_of_rows_with_the_same_gaps():
    random = np.random.RandomState(0)
    residual = np.r_[random.normal(size=(80, 1)), 10 * random.normal(size=(20, 1))]
    gaps = (np.arange(100) >= 80)[:, None]
    without = scaled_residuals(residual, gaps[:, :0])
    with_gaps = scaled_residuals(residual, gaps)
    assert_array_equal(with_gaps[:80], without[:80])
    assert np.median(with_gaps[80:]) < 1.5 < np.median(without[80:])
    few = (np.arange(100) >= 96)[:, None]
    assert_array_equal(scaled_residuals(residual, few), without)


def test_ordered_categories_are_places_and_their_gaps_are_gaps():
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"size": pd.Series(["mid", None, "high", "low"], dtype=kind)})
    columns = read_columns(frame, "from_dtype")
    assert len(columns.categories) == 0
    assert_array_equal(columns.numbers(frame)[:, 0], [1, np.nan, 2, 0])


def test_one_and_one_point_zero_are_the_same_category():
    whole = pd.DataFrame({"code": [1, 2, 1, 3], "x": [0.0, 1, 2, 3]})
    columns = read_columns(whole, ["code"])
    gaps = pd.DataFrame({"code": [1.0, np.nan, 2.5, 3], "x": [0.0, 1, 2, 3]})
    assert_array_equal(columns.numbers(whole)[:, 0], [0, 1, 0, 2])
    assert_array_equal(columns.numbers(gaps)[:, 0], [0, -1, -1, 2])  # 2.5 and gaps were not seen


def test_the_way_back_and_the_weights_of_held_out_rows_are_those_of_others():
    """Of the average with a transformed target: neither its errors nor its weights know the row."""
    random = np.random.RandomState(1)
    n = 50
    X, y = random.normal(size=(n, 3)), np.exp(random.normal(size=n))
    log = possible_transforms(y)[0]
    unit = target_units(y[:, None], np.ones(len(y)))
    weight = 0.5 + random.rand(n)
    table = merge_rows(X, unit(y[:, None]), weight, None)
    held = random.permutation(n)
    form = Trees(
        "boosted trees", [], np.zeros(1), np.ones(1), 1.0, standard_scaling(X), TreeColumns()
    )

    def solution(truth, noise):
        predictions = truth[held] + noise * random.normal(size=(n, 1))
        return TableSolution([form], held, predictions, {}, {}, 0.0, 1.0)

    plain, other = solution(unit(y[:, None]), 0.5), solution(log.standardized, 0.5)
    joined = join_transformed(plain, other, table, log, weight, unit)
    z = other.out_of_fold[:, 0] * log.units.scale[0] + log.units.center[0]
    errors = log.z[held] - z
    truth = unit(y[:, None])[held]
    parts = np.array_split(np.arange(n), 5)
    through = np.empty((n, 1))
    for part in parts:
        others = np.setdiff1d(np.arange(n), part)
        back = log.back(errors[others], weight[held][others])
        through[part] = (back(z[part])[:, None] - unit.center) / unit.scale
    for part in parts:
        others = np.setdiff1d(np.arange(n), part)
        pair = [plain.out_of_fold, through]
        of_others = [p[others] for p in pair]
        shares = average(of_others, truth[others], weight[held][others], TABLE_NUMBERS).weights
        expected = sum(share * p[part] for share, p in zip(shares, pair))
        assert_allclose(joined.out_of_fold[part], expected, rtol=1e-9)
    assert len(choice_parts([(held, held)])) == 5


def test_the_spread_is_learned_at_the_rows_that_were_held_out(monkeypatch):
    seen = []

    def signs(posterior, rows, prediction, seen_before=False, **options):
        seen.append(rows)
        return np.zeros((len(rows), 1))

    monkeypatch.setattr(lab_spread, "signs_of", signs)
    X = np.arange(8.0).reshape(4, 2)  # rows 1, 3, 5 and 7 of eight have weight
    held = OutOfFold(np.array([5, 1]), np.zeros(2), np.ones(2))
    lab_spread.fit_spreads(None, X, np.array([1, 3, 5, 7]), held)
    assert_array_equal(seen[0], X[[2, 0]])
