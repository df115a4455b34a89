"""TableRegressor and TableClassifier: promises to users, by public doors."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.multioutput import MultiOutputRegressor

pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from mercerless import TableClassifier, TableRegressor, UselessModelWarning

FAST = {"members": ["linear"]}  # where the members do not matter
WORDS = "oak elm ash fir yew beech birch maple cedar lime willow alder rowan hazel larch spruce pine plum".split()


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:250], y[:250], X[250:], y[250:]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))
    X, y = X[order], np.array(["malignant", "benign"])[y[order]]
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def fitted(diabetes):
    return TableRegressor().fit(*diabetes[:2])


@pytest.fixture(scope="module")
def classifier(cancer):
    return TableClassifier().fit(*cancer[:2])


def loss(model, X, y):
    return log_loss(y, model.predict_proba(X), labels=model.classes_)


# how good


def test_regression_is_ahead_of_plain_models(diabetes, fitted):
    X, y, T, z = diabetes
    for peer in (LinearRegression(), ExtraTreesRegressor(random_state=0)):
        assert fitted.score(T, z) > peer.fit(X, y).score(T, z) - 0.01


def test_classification_has_a_small_log_loss(cancer, classifier):
    assert loss(classifier, *cancer[2:]) < 0.12


@pytest.mark.parametrize("load", [load_iris, pytest.param(load_wine, marks=pytest.mark.slow)])
def test_several_classes(load):
    X, y = load(return_X_y=True)
    model = TableClassifier().fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_skewed_target_is_predicted_by_means_on_its_own_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.exp(1.2 * X[:, 0] + 0.4 * rng.normal(size=500))
    model = TableRegressor(["kernel", "linear"]).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.6
    assert abs(model.predict(X[300:]).mean() / y[300:].mean() - 1.0) < 0.15
    assert any("short tails" in name for name in model.errors_)


def test_held_out_errors_are_those_of_new_rows():
    """On tables of many useless features, where bandwidths learned on all rows would look too good."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1100, 12))
        y = X[:, 0] + np.sin(2.0 * X[:, 1]) + rng.normal(size=1100)
        model = TableRegressor(["kernel"], random_state=seed).fit(X[:100], y[:100])
        held_out = model.out_of_fold_
        announced = np.mean((held_out.prediction - held_out.target) ** 2)
        ratios.append(announced / np.mean((model.predict(X[100:]) - y[100:]) ** 2))
    assert 0.85 < np.mean(ratios) < 1.35


def test_a_model_of_noise_is_no_worse_than_the_mean():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.normal(size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        model = TableRegressor().fit(X[:200], y[:200])
    assert r2_score(y[200:], model.predict(X[200:])) > -0.1


# columns without information


@pytest.mark.parametrize(
    "values", ["ids", "numbers", "constant", "empty", "copy", "customers", "sentences"]
)
def test_a_useless_column_hardly_changes_the_log_loss(cancer, values):
    X, y, T, z = cancer
    n = len(X) + len(T)
    rng = np.random.RandomState(0)
    whole = pd.DataFrame(np.vstack([X, T])[:, :8]).rename(columns=str)
    column = {
        "ids": [f"C{i:05}" for i in range(n)],
        "numbers": rng.permutation(n).astype(float),
        "constant": 1.0,
        "empty": np.nan,
        "copy": whole["3"],
        "customers": [f"C{i:05}" for i in rng.randint(0, 250, n)],
        "sentences": [" ".join(rng.choice(WORDS, 6)) for _ in range(n)],
    }[values]
    losses = []
    for table in (whole, whole.assign(more=column)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = TableClassifier().fit(table.iloc[: len(X)], y)
        losses.append(loss(model, table.iloc[len(X) :], z))
    assert losses[1] - losses[0] < 0.01


def test_a_column_that_is_left_out_does_not_change_the_folds():
    """Equal rows are held out together, whatever their ids are."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 20, 200), "b": rng.integers(0, 3, 200)})
    y = X.a + rng.normal(size=200)
    expected = TableRegressor(["linear", "boosted"]).fit(X, y).predict(X)
    for column in ([f"C{i:04}" for i in range(200)], np.nan, 7):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = TableRegressor(["linear", "boosted"]).fit(X.assign(more=column), y)
        assert "more" in model.encoder_.dropped_
        assert_allclose(model.predict(X.assign(more=column)), expected)


def test_constant_targets_and_extreme_numbers():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        assert_allclose(TableRegressor().fit(X, np.full(60, 3.0)).predict(X), 3.0)
    for size in (1e300, 1e-300):
        with pytest.raises(ValueError, match="Column 'x0' of X has entries of size"):
            TableRegressor().fit(size * X, X[:, 0])


def test_dates_that_do_not_ascend_are_no_order_of_time():
    rng = np.random.default_rng(0)
    days = pd.date_range("2020", periods=80)
    X = pd.DataFrame({"a": rng.normal(size=80), "day": days[::-1]})
    with pytest.warns(UserWarning, match="do not ascend; sort them"):
        TableRegressor(**FAST, time_ordered=True).fit(X, X.a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableRegressor(**FAST, time_ordered=True).fit(X.assign(day=days), X.a)


def test_notes_say_what_was_left_out_and_that_dates_were_held_out_at_random():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": 1, "day": pd.date_range("2020", periods=80)})
    model = TableRegressor(**FAST).fit(X, X.a)
    assert any("'b'" in note and "constant" in note for note in model.notes_)
    assert any("dates" in note and "time_ordered" in note for note in model.notes_)
    assert not any(
        "time_ordered" in n for n in model.set_params(time_ordered=True).fit(X, X.a).notes_
    )


# time, groups and folds


def test_time_ordered_folds_look_forward_and_intervals_cover_the_future():
    """A random walk: neighbors in time give the target away, unless folds look forward."""
    rng = np.random.default_rng(0)
    covered = {False: [], True: []}
    for _ in range(4):
        t = np.arange(400.0)
        drift = np.cumsum(rng.normal(size=400))
        X = np.column_stack([t, rng.normal(size=400)])
        y = drift + X[:, 1] + 0.3 * rng.normal(size=400)
        for ordered in covered:
            model = TableRegressor(["kernel"], time_ordered=ordered).fit(X[:300], y[:300])
            low, high = model.predict_interval(X[300:340], 0.8).T
            covered[ordered].append(np.mean((low <= y[300:340]) & (y[300:340] <= high)))
    assert np.mean(covered[True]) > np.mean(covered[False]) + 0.15


def test_intervals_after_forward_folds_are_as_wide_as_the_hardest_period_asks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    noise = np.where(np.arange(240) // 40 == 2, 3.0, 0.3)  # the second of five periods
    y = X[:, 0] + noise * rng.normal(size=240)
    model = TableRegressor(**FAST, time_ordered=True).fit(X, y)
    half = np.diff(model.predict_interval(X, 0.8), axis=1)[:, 0] / 2.0
    held_out = model.out_of_fold_
    errors = np.abs(held_out.target - held_out.prediction)
    hardest = np.sort(errors[(held_out.rows >= 80) & (held_out.rows < 120)])
    assert_allclose(half, hardest[32])  # the quantile .8 of 40 errors, rounded up


def test_useless_text_does_not_part_equal_rows():
    """Rows that occur three times: whoever holds one of them out alone knows its label."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 6, (70, 4))).add_prefix("x")
    X = pd.concat([X, X, X], ignore_index=True)
    y = np.tile(rng.integers(0, 2, 70), 3)
    sentences = [" ".join(rng.choice(WORDS, 6)) for _ in y]
    plain = TableClassifier(["linear", "kernel"]).fit(X, y)
    wider = TableClassifier(["linear", "kernel"]).fit(X.assign(more=sentences), y)
    assert "more" in wider.encoder_.dropped_
    assert_allclose(wider.out_of_fold_.prediction, plain.out_of_fold_.prediction)


def test_time_ordered_is_a_time_series_split(diabetes):
    X, y, T, _ = diabetes
    ordered = TableRegressor(**FAST, time_ordered=True).fit(X, y)
    split = TableRegressor(**FAST, cv=TimeSeriesSplit(5)).fit(X, y)
    assert_allclose(ordered.predict(T), split.predict(T))
    assert ordered.out_of_fold_.rows.min() > 0
    with pytest.raises(ValueError, match="not both"):
        TableRegressor(time_ordered=True, cv=3).fit(X, y)


def test_groups_are_held_out_together():
    """Every group has an offset of its own, which its other rows reveal."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    X = np.column_stack([rng.normal(size=40)[groups], rng.normal(size=200)])
    y = rng.normal(size=40)[groups] + 0.1 * rng.normal(size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        apart = TableRegressor().fit(X, y, groups=groups).out_of_fold_
        split = TableRegressor(cv=GroupKFold(5)).fit(X, y, groups=groups).out_of_fold_
        mixed = TableRegressor().fit(X, y).out_of_fold_
    errors = [np.mean((o.prediction - o.target) ** 2) for o in (apart, split, mixed)]
    assert min(errors[:2]) > 3.0 * errors[2]


def test_overlapping_folds_raise(diabetes):
    X, y, *_ = diabetes
    rows = np.arange(len(y))
    with pytest.raises(ValueError, match="holds out a row twice"):
        TableRegressor(cv=[(rows[50:], rows[:50]), (rows[:200], rows[40:])]).fit(X, y)


def test_a_held_out_label_does_not_reach_its_own_prediction(cancer):
    """Flip one label: its own held-out probability may move by what weights and bandwidths of all rows move only."""
    X, y, *_ = cancer
    first = TableClassifier(["kernel", "linear"]).fit(X, y).out_of_fold_
    flipped = y.copy()
    flipped[17] = "benign" if y[17] == "malignant" else "malignant"
    second = TableClassifier(["kernel", "linear"]).fit(X, flipped).out_of_fold_
    moved = np.abs(second.prediction - first.prediction)[:, 0]
    assert moved[17] < 0.02 + 3.0 * np.quantile(moved, 0.9)


# intervals and sets


def test_intervals_cover_as_often_as_stated_where_errors_vary():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2600, 4))
    y = X[:, 0] + (0.1 + np.exp(X[:, 1])) * rng.normal(size=2600)
    model = TableRegressor(["linear", "kernel"]).fit(X[:600], y[:600])
    T, z = X[600:], y[600:]
    low, high = model.predict_interval(T, 0.9).T
    inside = (low <= z) & (z <= high)
    assert abs(inside.mean() - 0.9) < 0.03
    for fifth in np.array_split(np.argsort(model.predict(T)), 5):
        assert abs(inside[fifth].mean() - 0.9) < 0.06
    wide, narrow = (high - low)[T[:, 1] > 0.5].mean(), (high - low)[T[:, 1] < -0.5].mean()
    assert wide > 1.5 * narrow


def test_intervals_are_bounded_with_very_heavy_tails():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 3))
    y = np.exp(2.5 * X[:, 0] + rng.normal(size=700)) - 100.0
    model = TableRegressor(["kernel", "linear"]).fit(X[:400], y[:400])
    low, high = model.predict_interval(X[400:]).T
    width = high - low
    assert width.max() <= np.ptp(y[:400])
    assert width.mean() <= 2.0 * np.median(width)
    assert np.mean((low <= y[400:]) & (y[400:] <= high)) > 0.86


def test_sets_contain_the_class_as_often_as_stated(cancer, classifier):
    *_, T, z = cancer
    sets = classifier.predict_set(T, 0.95)
    place = np.searchsorted(classifier.classes_, z)
    assert sets[np.arange(len(z)), place].mean() > 0.93


def test_wrong_labels_are_suspects(cancer):
    X, y, *_ = cancer
    wrong = y.copy()
    places = np.random.RandomState(0).permutation(len(y))[:10]
    wrong[places] = np.where(y[places] == "benign", "malignant", "benign")
    suspects = TableClassifier().fit(X, wrong).suspects_.items
    assert len(set(suspects) & set(places)) >= 7


# what must not matter


@pytest.mark.parametrize("steps", [-1, 1])
def test_one_unit_in_the_last_place_changes_nothing(steps):
    X, y = load_diabetes(return_X_y=True)
    moved = np.nextafter(X, steps * np.inf)
    first, second = (TableRegressor().fit(A[:50], y[:50]).predict(A[50:]) for A in (X, moved))
    assert np.abs(first - second).max() < 0.01 * y.std()
    labels = y > np.median(y)
    P, Q = (TableClassifier().fit(A[:50], labels[:50]).predict_proba(A[50:]) for A in (X, moved))
    assert np.abs(P - Q).max() < 0.01


def test_units_shifts_and_the_order_of_columns_change_nothing(diabetes, fitted):
    X, y, T, _ = diabetes
    expected = fitted.predict(T)
    order = np.random.RandomState(0).permutation(X.shape[1])
    factor = 10.0 ** np.arange(X.shape[1])
    for change in (lambda A: A[:, order], lambda A: factor * A, lambda A: A + 3.0):
        assert_allclose(TableRegressor().fit(change(X), y).predict(change(T)), expected, rtol=1e-6)
    assert_allclose(TableRegressor().fit(X, 5.0 * y - 9.0).predict(T), 5.0 * expected - 9.0)


def test_names_of_classes_do_not_matter(cancer, classifier):
    X, y, T, _ = cancer
    other = np.where(y == "benign", "z", "a")
    P = TableClassifier().fit(X, other).predict_proba(T)
    assert_allclose(P[:, ::-1], classifier.predict_proba(T), atol=1e-12)


def test_one_gross_row_costs_little():
    X, y = load_diabetes(return_X_y=True)
    clean = TableRegressor().fit(X[:300], y[:300]).score(X[300:], y[300:])
    gross, target = X.copy(), y.copy()
    gross[7] *= 1e6
    target[7] += 100.0 * y.std()
    model = TableRegressor().fit(gross[:300], target[:300])
    assert model.score(X[300:], y[300:]) > clean - 0.02
    assert any("row 7" in note for note in model.notes_)
    only_features = TableRegressor().fit(gross[:300], y[:300])
    assert only_features.score(X[300:], y[300:]) > clean - 0.02


def test_two_fits_are_one_and_random_state_decides(diabetes):
    X, y, T, _ = diabetes
    names = ["boosted", "linear"]
    first = TableRegressor(names).fit(X, y).predict(T)
    assert np.array_equal(TableRegressor(names).fit(X, y).predict(T), first)
    assert not np.array_equal(TableRegressor(names, random_state=1).fit(X, y).predict(T), first)


def test_rows_of_weight_zero_are_as_if_left_out(diabetes):
    X, y, T, _ = diabetes
    weight = np.ones(len(y))
    weight[::4] = 0.0
    kept = weight > 0
    target = np.where(kept, y, 1e6)
    weighted = TableRegressor().fit(X, target, sample_weight=weight)
    assert_allclose(weighted.predict(T), TableRegressor().fit(X[kept], y[kept]).predict(T))
    assert np.array_equal(np.unique(weighted.out_of_fold_.rows), np.flatnonzero(kept))


def test_weights_draw_predictions_to_the_heavy_rows():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.where(np.arange(200) % 2, 1.0, -1.0) + 0.1 * X[:, 0]
    heavy = np.where(np.arange(200) % 2, 20.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessModelWarning)
        assert TableRegressor().fit(X, y, sample_weight=heavy).predict(X).mean() > 0.6


def test_class_weight_balanced_finds_more_of_a_rare_class():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=400) < 0.1).astype(int)
    X = rng.normal(size=(400, 3)) + y[:, None]
    plain = TableClassifier().fit(X, y).predict(X).mean()
    assert TableClassifier(class_weight="balanced").fit(X, y).predict(X).mean() > plain + 0.05


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_global_output_settings_do_not_matter(diabetes, output):
    X, y, T, _ = diabetes
    expected = TableRegressor(["linear", "boosted"]).fit(X, y).predict(T)
    with sklearn.config_context(transform_output=output):
        model = TableRegressor(["linear", "boosted"]).fit(X, y)
        assert np.array_equal(model.predict(T), expected)


# large data


def test_data_of_dask_give_the_model_of_the_same_rows_in_memory():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "c": rng.choice(list("xyz"), 300)})
    y = X.a + (X.c == "x")
    expected = TableRegressor(["linear", "boosted"]).fit(X, y)
    frame = dd.from_pandas(X, npartitions=4)
    model = TableRegressor(["linear", "boosted"]).fit(frame, y)
    lazy = model.predict(frame)
    assert isinstance(lazy, da.Array)
    assert_allclose(lazy.compute(), expected.predict(X))
    A = X[["a"]].to_numpy()
    of_array = TableRegressor(**FAST).fit(da.from_array(A, chunks=(70, 1)), y)
    assert_allclose(of_array.predict(A), TableRegressor(**FAST).fit(A, y).predict(A))
    classes = TableClassifier(**FAST).fit(frame, X.c)
    assert_allclose(classes.predict_proba(frame).compute(), classes.predict_proba(X))
    assert np.array_equal(classes.predict(frame).compute(), classes.predict(X))


@pytest.mark.parametrize("lazy", [False, True])
def test_of_more_than_max_rows_a_sample_is_used(lazy):
    X = np.random.default_rng(0).normal(size=(900, 2))
    table = da.from_array(X, chunks=(200, 2)) if lazy else X
    model = TableRegressor(**FAST, max_rows=300).fit(table, X[:, 0] + X[:, 1])
    assert len(model.out_of_fold_.rows) <= 300 and model.out_of_fold_.rows.max() > 500
    assert any("300 of 900 rows" in note for note in model.notes_)
    assert model.score(X, X[:, 0] + X[:, 1]) > 0.99


@pytest.mark.slow
def test_a_fifth_of_many_rows_is_held_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3500, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=3500)
    model = TableRegressor().fit(X[:3000], y[:3000])
    assert len(model.out_of_fold_.rows) == 600
    assert model.score(X[3000:], y[3000:]) > 0.97
    kernels = [name for name in model.errors_ if name.startswith(("Gaussian", "Laplace"))]
    assert len(kernels) <= 3  # the others stopped after a first look


# doors


def test_members_and_weights_are_named(fitted):
    assert {member.name for member in fitted.members_} == set(fitted.weights_)
    assert all(weight > 0 for weight in fitted.weights_.values())
    only = TableRegressor(["linear"]).fit(*load_diabetes(return_X_y=True))
    assert set(only.weights_) == {"linear"}


def test_models_are_small_and_survive_pickling(diabetes, fitted):
    dumped = pickle.dumps(fitted)
    assert len(dumped) < 2e6
    assert np.array_equal(pickle.loads(dumped).predict(diabetes[2]), fitted.predict(diabetes[2]))


def test_a_failed_fit_leaves_the_model_as_it_was(diabetes):
    X, y, T, _ = diabetes
    model = TableRegressor(**FAST).fit(X, y)
    before = model.predict(T)
    with pytest.raises(ValueError):
        model.fit(X, np.full(len(y), np.nan))
    assert np.array_equal(model.predict(T), before)


def test_all_members_by_name_are_the_default(diabetes):
    X, y, T, _ = diabetes
    every = TableRegressor(["boosted", "linear", "kernel"]).fit(X[:80], y[:80])
    default = TableRegressor().fit(X[:80], y[:80])
    assert_allclose(every.predict(T), default.predict(T), rtol=1e-9)


def test_several_targets_are_for_multi_output(diabetes):
    X, y, T, _ = diabetes
    Y = np.column_stack([y, -y])
    with pytest.raises(ValueError, match="MultiOutputRegressor"):
        TableRegressor(**FAST).fit(X, Y)
    both = MultiOutputRegressor(TableRegressor(**FAST)).fit(X, Y).predict(T)
    assert_allclose(both[:, 0], -both[:, 1], rtol=1e-6)


def test_errors_are_one_sentence(diabetes):
    X, y, *_ = diabetes
    with pytest.raises(ValueError, match="members="):
        TableRegressor(["forest"]).fit(X, y)
    with pytest.raises(ValueError, match="max_rows=0"):
        TableRegressor(max_rows=0).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        TableClassifier().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="at least two"):
        TableRegressor().fit(X[:1], y[:1])


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.filterwarnings("ignore:.* have one item only")
def test_very_few_rows_are_enough_to_predict(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    assert np.isfinite(TableRegressor().fit(X, X[:, 0]).predict(X)).all()
    labels = np.arange(n) % 2
    assert np.isfinite(TableClassifier().fit(X, labels).predict_proba(X)).all()
