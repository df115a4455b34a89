"""Tables as they are in LAB: missing values, words, dates, and what is decided about bad input."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine, make_friedman1
from sklearn.exceptions import NotFittedError

from mercerless import TableClassifier, TableRegressor, persistence
from mercerless.core.scaling import robust_scaling, standard_scaling
from mercerless.datasets import make_lab_function
from mercerless.lab.model import Expansion, Rows, with_coefficients
from mercerless.table import plan
from mercerless.table.encoding import (
    encode_table,
    fit_encoding,
    read_columns,
    training_statistics,
    tree_columns,
)
from mercerless.table.members.trees import tree_candidate
from mercerless.table.weighing import Labeled

QUICK = {"members": ["local"], "max_iter": 10, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame({
        "number": rng.normal(size=n),
        "gaps": rng.normal(size=n),
        "word": rng.choice(["x", "y", "z"], n),
        "place": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
        "date": pd.date_range("2020-01-01", periods=n),
    })  # fmt: skip
    y = (
        frame["number"]
        + 2 * (frame["word"] == "x")
        + frame["place"].cat.codes
        + 0.05 * rng.normal(size=n)
    )
    hidden = rng.uniform(size=n) < 0.3
    y = y + 1.5 * hidden  # that a value is missing says something
    frame.loc[hidden, "gaps"] = np.nan
    frame.loc[rng.uniform(size=n) < 0.05, "word"] = None
    return frame, y.to_numpy()


def test_a_table_is_fitted_as_it_is(table):
    X, y = table
    model = TableRegressor(**QUICK).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.85
    assert model.encoding_.names[:5] == ["number", "gaps", "place", "date", "gaps is missing"]
    assert model.n_features_in_ == 5 and model.members_[0].bandwidths.shape[1] == len(
        model.encoding_.names
    )
    by_hand = sum(form.weight * form(model.encoding_(X[300:])) for form in model.members_)
    assert_allclose(model.predict(X[300:]), by_hand[:, 0])
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[300:]), model.predict(X[300:]))
    labels = np.where(y > np.median(y), "much", "little")
    classifier = TableClassifier(**QUICK).fit(X[:300], labels[:300])
    assert classifier.score(X[300:], labels[300:]) > 0.8


def test_what_new_rows_may_hold(table):
    X, y = table
    model = TableRegressor(**QUICK).fit(X[:300], y[:300])
    new = X[300:310].copy()
    base = model.predict(new)
    new.loc[300, "word"] = "never seen"
    new.loc[301, "number"] = np.nan
    changed = model.predict(new)
    assert np.isfinite(changed).all()
    assert_array_equal(changed[2:], base[2:])
    numbers = new["number"].fillna(X["number"][:300].median())
    assert_allclose(model.predict(new.assign(number=numbers)), changed)
    with pytest.raises(ValueError, match="pass a data frame"):
        model.predict(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="'number' of X has type"):
        model.predict(new.assign(number="a word"))
    with pytest.raises(ValueError, match="infinite"):
        model.predict(new.assign(number=np.inf))
    columns = ["gaps", "number", "word", "place", "date"]
    assert_array_equal(model.predict(new[columns].assign(more=1)), changed)
    with pytest.raises(ValueError, match="missing"):
        model.predict(new[columns[1:]])


def test_gaps_are_filled_and_marked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    X[:6, 1] = X[:6, 2] = np.nan  # missing together: one mark
    X[0, 0] = np.nan  # too few for a mark
    columns = read_columns(X, None)
    encoding = fit_encoding(X, columns, np.zeros((50, 1)), np.ones(50), "", list("abcd"))
    assert encoding.names == ["a", "b", "c", "d", "b is missing"]
    Z = encoding(X)
    assert_array_equal(Z[:, :4], np.where(np.isnan(X), np.nanmedian(X, axis=0), X))
    assert_array_equal(Z[:, 4], np.arange(50) < 6)
    whole = X[6:]
    plain = fit_encoding(whole, columns, np.zeros((44, 1)), np.ones(44), "", list("abcd"))
    assert plain(whole) is whole  # nothing to do, nothing copied
    assert_array_equal(plain(X[:1]), np.where(np.isnan(X[:1]), np.median(whole, axis=0), X[:1]))


@pytest.mark.parametrize("scaling", [standard_scaling, robust_scaling])
def test_trees_see_gaps_and_categories_as_such(scaling):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    X.loc[:9, "a"] = X.loc[:9, "b"] = np.nan  # missing together: one mark
    X.loc[20, "c"] = np.nan  # too few for a mark
    X["many"], X["two"] = rng.choice(list("uvwx"), 60), rng.choice(list("yz"), 60)
    X.loc[0, "many"] = "rare"
    columns = read_columns(X, "from_dtype")
    encoding = fit_encoding(
        columns.numbers(X), columns, np.zeros((60, 1)), np.ones(60), "indicators", list(X)
    )
    Z = encoding(X)
    seen = tree_columns(encoding)
    out = seen(scaling(Z)(Z))
    assert out.shape == (60, 5) and seen.categories == [3]
    assert_array_equal(np.isnan(out), np.isin(np.arange(5), [0, 1]) & (np.arange(60) < 10)[:, None])
    assert_array_equal(
        out[:, 3], [4 if word == "rare" else "uvwx".index(word) for word in X["many"]]
    )
    assert_array_equal(out[:, 4] > 0, X["two"] == "z")
    for j in range(3):  # the order of numbers is theirs
        known = ~np.isnan(out[:, j])
        assert_array_equal(np.argsort(out[known, j]), np.argsort(Z[known, j]))
    statistics = fit_encoding(
        columns.numbers(X), columns, rng.normal(size=(60, 1)), np.ones(60), "targets", list(X)
    )
    assert tree_columns(statistics).categories == [] and tree_columns(statistics)(
        statistics(X)
    ).shape == (60, 5)
    whole = fit_encoding(
        np.ones((9, 2)),
        read_columns(np.ones((9, 2)), None),
        np.zeros((9, 1)),
        np.ones(9),
        "",
        ["a", "b"],
    )
    assert tree_columns(whole)(Z) is Z


def test_trees_split_categories_and_bear_a_column_that_a_fold_does_not_know():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"word": rng.choice(list("abcdefghijklmnopqrst"), 400), "late": rng.normal(size=400)}
    )
    y = X["word"].isin(list("acfhkmpt")).to_numpy().astype(float)
    X.loc[:299, "late"] = np.nan
    columns = read_columns(X, "from_dtype")
    encoding = fit_encoding(
        columns.numbers(X), columns, y[:, None], np.ones(len(y)), "indicators", list(X)
    )
    Z = encoding(X)
    scaling, folds = standard_scaling(Z), [(np.arange(300), np.arange(300, 400))]
    rows, labels = Rows(scaling(Z), 2 * y[:, None] - 1), y.astype(int)
    found = tree_candidate(Labeled(rows, labels), folds, 0, columns=tree_columns(encoding))
    trees = found.refit()
    assert trees.columns.categories == [1] and trees.models[0].is_categorical_.tolist() == [
        False,
        True,
    ]
    assert np.mean((found.out_of_fold[:, 0] > 0) == labels[300:]) > 0.98
    assert np.mean((trees._replace(scaling=scaling)(Z)[:, 0] > 0) == labels) > 0.98


def test_a_column_that_is_missing_throughout_has_no_say(table):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    without = TableRegressor(**QUICK).fit(X, y)
    gap = TableRegressor(**QUICK).fit(np.column_stack([X, np.full(80, np.nan)]), y)
    assert_allclose(gap.predict(np.column_stack([X, np.arange(80.0)])), without.predict(X))
    with pytest.raises(ValueError, match="Every value of X is missing"):
        TableRegressor(**QUICK).fit(np.full((80, 2), np.nan), y)


def test_indicators_and_target_statistics_by_hand():
    values = np.array([0.0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    X = values[:, None]
    Y = np.repeat([[1.0], [0.0], [-1.0]], 5, axis=0) + [[0.3]]
    columns = read_columns(X, [0])
    indicators = fit_encoding(X, columns, Y, np.ones(len(Y)), "indicators", ["c"])
    assert_array_equal(indicators(X), values[:, None] == [0, 1, 2])
    means = fit_encoding(X, columns, Y, np.ones(len(Y)), "targets", ["c"])
    expected = 0.3 + np.repeat([5 / 15, 0, -5 / 15], 5)  # pulled to the mean by ten rows
    assert_allclose(means(X)[:, 0], expected)
    assert_allclose(means(np.array([[7.0]])), [[0.3]])  # never seen: the mean of all
    weight = np.where(values == 0, 2.0, 1.0)
    heavy = fit_encoding(X, columns, Y, weight, "targets", ["c"])(X)[0, 0]
    mean = np.average(Y[:, 0], weights=weight)
    total = 10 * 15 / 20  # weights have mean one
    assert_allclose(heavy, mean + (1.3 - mean) * total / (total + 10))


def test_no_training_row_sees_its_own_target():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, size=(60, 1)).astype(float)
    Y = rng.normal(size=(60, 1))
    columns = read_columns(X, [0])
    encoding = fit_encoding(X, columns, Y, np.ones(len(Y)), "targets", ["c"])
    together = np.arange(60) // 2  # pairs of copies
    base = training_statistics(encoding, X, Y, np.ones(60), together, seed=0)[0]
    for i in range(0, 60, 7):
        other = Y.copy()
        other[i] += 100
        changed = training_statistics(encoding, X, other, np.ones(60), together, seed=0)[0]
        same = together == together[i]
        assert_array_equal(changed[same], base[same])
        assert not np.array_equal(changed, base)
    assert_array_equal(base[::2][X[::2] == X[1::2]], base[1::2][X[::2] == X[1::2]])


def test_a_number_of_the_row_is_not_learned_from_noise():
    rng = np.random.default_rng(0)
    n = 300
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 100, size=n)])
    y = X[:, 0] + rng.normal(size=n)  # the category says nothing
    model = TableRegressor(**QUICK, categorical_features=[1]).fit(X[:200], y[:200])
    assert model.encoding_.names == ["x0", "x1, mean target"]
    plain = TableRegressor(**QUICK).fit(X[:200, :1], y[:200])
    assert model.score(X[200:], y[200:]) > plain.score(X[200:, :1], y[200:]) - 0.1


def test_target_statistics_win_if_many_categories_interact_with_a_number():
    """Five rows of each category: too few to learn 28 slopes."""
    rng = np.random.default_rng(0)
    categories = rng.integers(0, 28, size=150)
    effect = rng.normal(size=28)
    numbers = rng.normal(size=(150, 2))
    y = np.sin(2 * effect[categories]) * np.abs(numbers[:, 0])
    X = np.column_stack([numbers, categories])
    Y = ((y - y.mean()) / y.std())[:, None]
    for seed in range(3):
        encoding, Z = encode_table(
            X, read_columns(X, [2]), Y, np.ones(150), None, list("abc"), np.random.RandomState(seed)
        )
        assert encoding.names == ["a", "b", "c, mean target"]
        assert Z.shape == (150, 3)


def flawed_stones(n, seed):
    """Size, two irrelevant numbers and one of six qualities; the rare worst one is cheap, but found in large stones."""
    random = np.random.RandomState(seed)
    quality = random.choice(6, n, p=[0.02, 0.08, 0.2, 0.3, 0.25, 0.15])
    size = np.exp(0.5 * random.normal(size=n) + 0.5 - quality / 12)
    factor = np.exp([-1.2, -0.3, 0.0, 0.1, 0.2, 0.3])[quality]
    price = size**3 * factor * np.exp(0.1 * random.normal(size=n))
    return np.column_stack([size, random.normal(size=(n, 2)), quality]), price


def test_a_rare_category_is_not_lost_to_its_mean_target():
    """Its mean price says nothing of it, and on a single third of the rows that can look like a gain."""
    for seed in (0, 9, 18, 23):
        X, price = flawed_stones(300, seed)
        columns = read_columns(X, [3])
        Y = ((price - price.mean()) / price.std())[:, None]
        random = np.random.RandomState(seed)
        encoding, _ = encode_table(X, columns, Y, np.ones(300), None, list("abcd"), random)
        assert "d is 0.0" in encoding.names, seed


def test_categories_of_an_array_are_those_of_a_frame():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=120)
    X = np.column_stack([rng.normal(size=120), codes])
    y = X[:, 0] + np.array([0.0, 2, -1, 1])[codes]
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(codes)})
    models = [
        TableRegressor(**QUICK, categorical_features=[1]).fit(X, y),
        TableRegressor(**QUICK, categorical_features=[False, True]).fit(X, y),
        TableRegressor(**QUICK).fit(frame, y),
        TableRegressor(**QUICK, categorical_features=["b"]).fit(frame.astype({"b": float}), y),
    ]
    rows = [X, X, frame, frame]
    for model, given in zip(models, rows):
        assert_allclose(model.predict(given), models[0].predict(X))
    assert_allclose(models[2].predict(frame.astype({"b": float})), models[0].predict(X))  # 1.0 is 1


@pytest.mark.parametrize("given, message", [
    ("words", "is not known; use 'from_dtype'"),
    ([5], "must be columns of X, which has 2"),
    ([-1], "must be columns of X"),
    ([0.5], "must be columns of X"),
    (["c"], "names 'c', which is no column"),
])  # fmt: skip
def test_bad_categories(given, message):
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [1.0, 2, 3]})
    with pytest.raises(ValueError, match=message):
        TableRegressor(categorical_features=given).fit(frame, [1.0, 2, 3])


def test_dates_may_be_objects_and_what_is_no_column_of_numbers_is_named(table):
    X, y = table
    dates = X["date"].dt.date.astype(object)
    dates[X.index[::7]] = None
    objects, times = X.assign(date=dates), X.assign(date=X["date"].where(X.index % 7 != 0))
    model = TableRegressor(**QUICK).fit(objects[:300], y[:300])
    expected = TableRegressor(**QUICK).fit(times[:300], y[:300]).predict(times[300:])
    assert_array_equal(model.predict(objects[300:]), expected)
    with pytest.raises(ValueError, match="'date' of X has type object"):
        TableRegressor(**QUICK).fit(X.assign(date=[[1, 2]] * len(X)), y)


WORDS = ["string", "large_string", "dictionary", "object", "str"]


@pytest.mark.parametrize("words", WORDS)
def test_columns_in_the_memory_of_arrow_are_read_as_others(words):
    """Words, numbers, truth values, dates and durations, each with a gap."""
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame({
        "word": rng.choice(["x", "y"], n),
        "number": rng.normal(size=n),
        "count": pd.array(rng.integers(5, size=n), dtype="Int64"),
        "flag": pd.array(rng.uniform(size=n) < 0.5, dtype="boolean"),
        "time": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(1000, size=n), "h"),
        "took": pd.to_timedelta(rng.integers(1000, size=n), "s"),
    })  # fmt: skip
    frame.loc[3] = None
    types = {
        "number": pa.float64(),
        "count": pa.int64(),
        "flag": pa.bool_(),
        "time": pa.timestamp("us"),
        "took": pa.duration("us"),
    }
    kinds = {
        "string": pd.ArrowDtype(pa.string()),
        "large_string": pd.ArrowDtype(pa.large_string()),
        "dictionary": pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    }
    arrow = frame.astype({name: pd.ArrowDtype(kind) for name, kind in types.items()})
    arrow["word"] = frame["word"].astype(object).where(frame["word"].notna(), None)
    arrow["word"] = arrow["word"].astype(kinds.get(words, words))
    y = rng.normal(size=n) + 3 * (frame["word"] == "x")
    for names in (list(frame), ["number", "count", "flag"]):
        model = TableRegressor(["local"], max_iter=3, random_state=0)
        expected = model.fit(frame[names], y).predict(frame[names])
        read = model.encoding_.columns.categories
        assert_array_equal(model.predict(arrow[names]), expected)
        assert_array_equal(model.fit(arrow[names], y).predict(arrow[names]), expected)
        assert_array_equal(model.encoding_.columns.categories, read)
        assert len(read) == ("word" in names)


def test_columns_labeled_by_numbers_are_matched():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=[10, 20, 30])
    model = TableRegressor(**QUICK).fit(X, X[10])
    assert_array_equal(model.predict(X.set_axis([0, 1, 2], axis=1)), model.predict(X))
    assert_array_equal(model.predict(X[[30, 20, 10]]), model.predict(X))


def test_bad_targets():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0].copy()
    y[3] = np.inf
    for rows in (X, pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 20})):
        with pytest.raises(ValueError, match="y contains infinity"):
            TableRegressor(**QUICK).fit(rows, y)
    infinite = np.where(X > 2, np.inf, X)
    with pytest.raises(ValueError, match="infinity"):
        TableRegressor(**QUICK).fit(infinite, X[:, 0])
    frame = pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 20})
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TableRegressor(**QUICK).fit(frame, X[:-1, 0])
    with pytest.raises(ValueError, match="requires y"):
        TableRegressor(**QUICK).fit(frame, None)
    with pytest.raises(ValueError, match="one row"):
        TableRegressor(**QUICK).fit(frame[:1], X[:1, 0])


def test_one_row_per_group_and_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    settings = {"members": ["local"], "max_iter": 5, "random_state": 0}
    alone = TableRegressor(**settings).fit(X, y, groups=np.arange(30))
    assert np.isfinite(alone.predict(X)).all()


@pytest.mark.slow
@pytest.mark.parametrize("classes", [False, True])
def test_bad_tables_have_an_answer_with_the_defaults(classes):
    """Columns without a value, more columns than rows, one row per group; for numbers also a constant target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 70))
    X[:, 3] = np.nan  # nothing is known of it, and nothing needs to be
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    target = (y > 0).astype(int) if classes else y
    model = (TableClassifier if classes else TableRegressor)(max_iter=5, random_state=0)
    model.fit(X, target, groups=np.arange(60))
    new = X.copy()
    new[:, 3] = rng.normal(size=60)
    assert np.isfinite(model.predict(X)).all() and model.score(X, target) > 0.5
    # a value of a column that had none says nothing
    assert_array_equal(model.predict(new), model.predict(X))
    if classes:
        with pytest.raises(ValueError, match="class"):
            model.fit(X, np.ones(60))
    else:
        level = TableRegressor(max_iter=5, random_state=0).fit(X, np.full(60, 4.2))
        assert_allclose(level.predict(X), 4.2, rtol=1e-8)


@pytest.mark.parametrize("classes", [False, True])
def test_a_saved_table_model_is_the_same(table, tmp_path, classes):
    pytest.importorskip("skops")
    X, y = table
    target = (y > np.median(y)).astype(int) if classes else y
    model = (TableClassifier if classes else TableRegressor)(max_iter=5, random_state=0).fit(
        X[:150], target[:150]
    )
    assert "boosted trees" in model.validation_errors_
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    method = "predict_proba" if classes else "predict"
    assert_allclose(getattr(again, method)(X[150:]), getattr(model, method)(X[150:]), rtol=1e-12)


def test_a_matrix_that_rounding_made_indefinite_still_factors():
    # equal but for rounding in single precision, many columns, hardly any ridge
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 3)), 10, axis=0).astype(np.float32)
    X += 1e-7 * rng.normal(size=X.shape).astype(np.float32)
    model = Expansion("gaussian", np.arange(300), np.array(1.0), float(np.log(1e-16)), 1.0)
    fitted = with_coefficients(model, Rows(X, X[:, :1].astype(float)))
    assert np.isfinite(fitted.predict(X.astype(float), X.astype(float))).all()


def test_the_slow_form_is_left_out_where_there_is_much_work(monkeypatch):
    X, y = make_lab_function(100, function="f1", noise=0.01, random_state=0)
    settings = {"members": ["local"], "max_iter": 3, "random_state": 0}
    assert set(TableRegressor(**settings).fit(X, y).validation_curve_) == {"gaussian", "laplace"}
    limit = replace(plan.LIMITS, laplace_work=25 * X.size - 1)
    monkeypatch.setattr(plan, "LIMITS", limit)
    assert set(TableRegressor(**settings).fit(X, y).validation_curve_) == {"gaussian"}
    limit = replace(plan.LIMITS, laplace_work=25 * X.size)
    monkeypatch.setattr(plan, "LIMITS", limit)
    assert set(TableRegressor(**settings).fit(X, y).validation_curve_) == {"gaussian", "laplace"}


@pytest.mark.slow
def test_all_rows_follow_the_protocol():
    """The default on small data, whose fits are too slow for every check of scikit-learn's."""
    X, y = make_friedman1(40, random_state=0)
    model = TableRegressor(random_state=0, max_iter=5).fit(X, y)
    assert_array_equal(clone(model).fit(X.tolist(), y.tolist()).predict(X), model.predict(X))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    Y = np.stack([y, -y], axis=1)
    assert clone(model).fit(X, Y).predict(X).shape == (40, 2)
    weighted = clone(model).fit(X, y, np.linspace(0.5, 2, 40))
    # the targets have no noise, so that training rows are interpolated with any weights
    new = X + 0.1
    assert np.isfinite(weighted.predict(new)).all() and not np.allclose(
        weighted.predict(new), model.predict(new)
    )
    labels = TableClassifier(random_state=0, max_iter=5).fit(X, y > y.mean())
    assert labels.score(X, y > y.mean()) > 0.8


@pytest.mark.parametrize("parameters, message", [
    ({"members": "all"}, "members='all' is not known; use 'auto'"),
    ({"members": ["trees"]}, "'local' must be among them"),
    ({"members": ["local", "forest"]}, "must be 'auto' or a list of local, ridge, linear, wide, trees, experts"),
    ({"transform_target": "log"}, "transform_target='log' is not known"),
    ({"downweight_outliers": True}, "downweight_outliers=True is not known"),
    ({"validation_fraction": None}, "validation_fraction=None must lie between 0 and 1"),
    ({"max_iter": 0}, "max_iter=0 must be a positive whole number"),
])  # fmt: skip
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TableRegressor(**parameters).fit(np.eye(9), np.arange(9.0))


@pytest.mark.parametrize(
    "members, tried",
    [
        (["local"], {"gaussian", "laplace"}),
        (["local", "trees"], {"gaussian", "laplace", "boosted trees"}),
        (["local", "ridge"], {"gaussian", "laplace", "all rows"}),
    ],
)
def test_only_the_chosen_members_compete(members, tried):
    X, y = make_lab_function(100, function="f1", noise=0.1, random_state=0)
    model = TableRegressor(members, max_iter=3, random_state=0).fit(X, y)
    names = {"all rows" if "all rows" in name else name for name in model.validation_errors_}
    assert names == tried
    assert_allclose(model.weights_.sum(), 1)
    average = sum(
        weight * member(X) for weight, member in zip(model.weights_, model.members_, strict=True)
    )
    assert_allclose(average[:, 0], model.predict(X), rtol=1e-10)


def test_members_are_models_of_their_own():
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    frame = frame.assign(sex=np.where(frame.sex > 0, "one", "other"))
    model = TableRegressor(transform_target=None, max_iter=20, random_state=0)
    model.fit(frame[:200], y[:200])
    new = frame[200:260]
    before = model.predict(new)
    alone = model.estimators_
    assert len(alone) == len(model.members_) > 1
    assert [part.members_[0].name for part in alone] == [part.name for part in model.members_]
    parts = [part.predict(new) for part in alone]
    assert all(part.n_parameters_ <= model.n_parameters_ for part in alone)
    np.testing.assert_allclose(np.tensordot(model.weights_, parts, 1), before, rtol=1e-10)
    for part, predicted in zip(alone, parts):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(part)).predict(new), predicted)
        with pytest.raises(ValueError, match="use the model with all members"):
            part.predict_interval(new)
        with pytest.raises(AttributeError, match="feature_importances_"):
            part.feature_importances_  # noqa: B018
    np.testing.assert_array_equal(model.predict(new), before)
    model.predict_interval(new)
    with pytest.raises(NotFittedError):
        TableRegressor().estimators_  # noqa: B018


def test_members_of_a_classifier_add_up_to_its_log_odds():
    X, y = load_wine(return_X_y=True)
    model = TableClassifier(max_iter=20, random_state=0).fit(X[::2], y[::2])
    parts = [part.decision_function(X[1::2]) for part in model.estimators_]
    together = np.tensordot(model.weights_, parts, 1)
    np.testing.assert_allclose(together, model.decision_function(X[1::2]), rtol=1e-9, atol=1e-9)
    for part in model.estimators_:
        assert part.score(X[1::2], y[1::2]) > 0.9
