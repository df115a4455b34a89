"""Tables in other shapes than pandas' frames, and columns that are written in another way than in training."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import (
    KreinRidge,
    KreinSVC,
    LABRegressor,
    SimilarityClassifier,
    SimilarityRegressor,
    TableClassifier,
    TableRegressor,
    persistence,
)
from mercerless.table.encoding import fit_encoding, read_columns

QUICK = {"members": ["local"], "max_iter": 5, "random_state": 0}


def mixed(n=80):
    random = np.random.RandomState(0)
    frame = pd.DataFrame({"size": random.normal(size=n), "kind": random.choice(list("ab"), n)})
    y = frame["size"].to_numpy() + (frame["kind"] == "a") + 0.1 * random.normal(size=n)
    frame.loc[3:9, "size"] = np.nan
    return frame, y


def as_dicts(frame):
    """Without the keys of missing values."""
    return [{k: v for k, v in row.items() if v == v} for row in frame.to_dict("records")]


def as_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


def as_polars(frame):
    return pytest.importorskip("polars").DataFrame(frame.to_dict("list"))


@pytest.mark.parametrize("shape", [as_dicts, as_arrow, as_polars])
def test_other_frames_are_those_of_pandas(shape):
    frame, y = mixed()
    expected = TableRegressor(**QUICK).fit(frame, y)
    model = TableRegressor(**QUICK).fit(shape(frame), y)
    assert list(model.feature_names_in_) == ["size", "kind"]
    assert_allclose(model.predict(shape(frame)), expected.predict(frame), rtol=1e-9)
    assert_allclose(expected.predict(shape(frame)), expected.predict(frame), rtol=1e-9)
    assert_allclose(model.predict_interval(shape(frame[:5])), expected.predict_interval(frame[:5]))
    labels = np.where(y > 0.5, "high", "low")
    classifier = TableClassifier(**QUICK).fit(shape(frame), labels)
    assert_array_equal(classifier.predict(shape(frame)), classifier.predict(frame))


def test_one_dict_of_a_service_may_lack_keys_and_have_others():
    frame, y = mixed()
    model = TableRegressor(**QUICK).fit(as_dicts(frame), y)
    one = model.predict([{"kind": "a"}])
    assert_allclose(one, model.predict(pd.DataFrame({"size": [np.nan], "kind": ["a"]})))
    assert_allclose(
        model.predict([{"kind": "a", "size": 1}]), model.predict([{"size": 1.0, "kind": "a"}])
    )
    more = [{"kind": "a", "size": 1.0, "other": 3.0}]  # left out, as in a data frame
    assert_allclose(model.predict(more), model.predict(pd.DataFrame(more)))
    assert_allclose(model.predict(more), model.predict([{"kind": "a", "size": 1.0}]))


def with_sizes(n=60):
    """A table with an ordered category, a date and a number, and a target that depends on all."""
    random = np.random.RandomState(0)
    sizes = random.choice(["small", "medium", "large"], n)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(random.randint(0, 300, n), unit="D")
    order = pd.Categorical(sizes, ["small", "medium", "large"], ordered=True)
    frame = pd.DataFrame({"size": order, "day": days, "x": random.normal(size=n)})
    y = order.codes + 0.01 * np.asarray(days.day_of_year) + 0.3 * frame["x"]
    return frame, y


@pytest.mark.parametrize(
    "written",
    [
        lambda sizes: pd.Categorical(sizes, ["large", "medium", "small"], ordered=True),
        lambda sizes: pd.Categorical(sizes, ["tiny", "small", "medium", "large"], ordered=True),
        lambda sizes: sizes.astype(str).astype("category"),
        lambda sizes: sizes.astype(str),
    ],
    ids=["reversed", "with another", "unordered", "words"],
)
def test_ordered_categories_have_the_order_of_the_training_rows(written, tmp_path):
    frame, y = with_sizes()
    model = TableRegressor(**QUICK).fit(frame, y)
    expected = model.predict(frame)
    assert_array_equal(model.predict(frame.assign(size=written(frame["size"]))), expected)
    few = frame[frame["size"] != "small"]
    few = few.assign(size=few["size"].cat.remove_unused_categories())
    assert_array_equal(model.predict(few), expected[frame["size"] != "small"])
    persistence.save(model, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    assert_array_equal(again.predict(frame.assign(size=written(frame["size"]))), expected)


def test_a_strange_value_of_an_ordered_category_raises():
    frame, y = with_sizes()
    model = TableRegressor(**QUICK).fit(frame, y)
    with pytest.raises(ValueError, match=r"has 'huge', which is none .*small, medium, large"):
        model.predict(frame.assign(size="huge"))
    bins = frame.assign(x=pd.cut(frame["x"], 4))
    model = TableRegressor(**QUICK).fit(bins, y)
    with pytest.raises(ValueError, match="Column 'x' of X has"):  # other bins for other rows
        model.predict(bins.assign(x=pd.cut(frame["x"][:20], 4).reindex(frame.index)))


@pytest.mark.parametrize(
    "column, values, message",
    [
        ("day", 20210105, "holds numbers, but dates when"),
        ("day", "2021-01-05", "holds words, but dates when"),
        ("x", pd.Timestamp("2021-01-05"), "holds dates, but numbers when"),
        ("x", pd.Categorical([1.0, 2.0] * 30), "holds categories, but numbers when"),
    ],
)
def test_columns_of_another_kind_raise(column, values, message):
    frame, y = with_sizes()
    model = TableRegressor(**QUICK).fit(frame, y)
    with pytest.raises(ValueError, match=message):
        model.predict(frame.assign(**{column: values}))
    assert np.isfinite(model.predict(frame.assign(**{column: np.nan}))).all()
    assert_array_equal(
        model.predict(frame.assign(x=frame["x"].astype(object))), model.predict(frame)
    )


def test_a_column_that_was_empty_in_training_may_hold_anything():
    frame, y = with_sizes()
    model = TableRegressor(**QUICK).fit(frame.assign(note=None), y)
    expected = model.predict(frame.assign(note=None))
    for values in ("late", 3.0, pd.Timestamp("2021-01-05")):
        assert_array_equal(model.predict(frame.assign(note=values)), expected)


def test_complex_columns_raise():
    frame, y = with_sizes()
    with pytest.raises(ValueError, match="Column 'x' of X is complex"):
        TableRegressor(**QUICK).fit(frame.assign(x=frame["x"] + 1j), y)


@pytest.mark.parametrize(
    "form", ["{:.3f}", "{:.3f} %", "${:,.2f}", "{:,.2f} \u20ac", "EUR {:.2f}", "{:e}"]
)
def test_numbers_as_text_give_a_warning(form):
    frame, _ = with_sizes()
    texts = [form.format(1000 * value) for value in frame["x"]]
    with pytest.warns(UserWarning, match="Column 'x' of X holds numbers as text, such as"):
        read_columns(frame.assign(x=texts), "from_dtype")
    commas = [text.replace(".", ",") for text in texts]
    with pytest.warns(UserWarning, match="Column 'x' of X holds numbers as text, such as"):
        read_columns(frame.assign(x=commas), "from_dtype")


@pytest.mark.parametrize(
    "words",
    [
        [f"{i:05d}" for i in range(60)],
        [f"no. {i}" for i in range(60)],
        ["1", "2", "3"] * 20,
        [f"{i}.02.2020" for i in range(60)],
    ],
    ids=["codes", "names", "few", "dates"],
)
def test_codes_and_names_give_no_warning(words):
    frame, _ = with_sizes()
    columns = read_columns(frame.assign(x=words), "from_dtype")  # warnings are errors
    assert_array_equal(columns.categories, [2])


def test_words_that_are_all_written_in_another_way_give_a_warning():
    frame, y = mixed()
    model = TableRegressor(**QUICK).fit(frame, y)
    with pytest.warns(UserWarning, match="No value of column 'kind' of X, such as 'a ',"):
        model.predict(frame.assign(kind=frame["kind"] + " "))
    model.predict(frame.assign(kind=["a"] + ["c"] * 79))  # one that is known, or few rows
    model.predict(frame[:3].assign(kind="c"))
    model.predict(frame.assign(kind=None))


def test_groups_must_not_be_missing():
    frame, y = mixed()
    groups = np.arange(80) // 4
    for model in (TableRegressor(**QUICK), LABRegressor(max_iter=5)):
        X = frame[["size"]].fillna(0.0)
        with pytest.raises(ValueError, match="groups is missing for 4 items, the first is item 0"):
            model.fit(X, y, groups=np.where(groups == 0, np.nan, groups))
        with pytest.raises(ValueError, match="groups is missing for 1 items, the first is item 0"):
            model.fit(X, y, groups=[None, *map(str, groups[1:])])
        with pytest.raises(ValueError, match=r"groups has shape \(80, 2\)"):
            model.fit(X, y, groups=np.stack([groups, groups], axis=1))


def test_words_where_numbers_are_needed():
    frame, y = mixed()
    with pytest.raises(ValueError, match="X holds words, such as 'a', and TableRegressor reads"):
        TableRegressor(**QUICK).fit(frame.to_numpy()[:, ::-1], y)
    X = frame[["size"]].fillna(0.0)
    for model in (TableRegressor(**QUICK), KreinRidge(), SimilarityRegressor()):
        with pytest.raises(
            ValueError, match=r"y holds words, such as 'low', and .* predicts numbers"
        ):
            model.fit(X, np.where(y > 100, "high", "low"))


@pytest.mark.parametrize("model", [TableClassifier(**QUICK), KreinSVC(), SimilarityClassifier()])
def test_missing_labels_are_counted(model):
    frame, y = mixed()
    X = frame[["size"]].fillna(0.0)
    labels = pd.Series(np.where(y > 0.5, "high", "low"))
    for dtype in (object, "string"):
        with pytest.raises(ValueError, match="y has no label in 1 of 80 rows, the first in row 3"):
            model.fit(X, labels.astype(dtype).mask(np.arange(80) == 3))


def test_dates_where_numbers_are_needed():
    frame, y = with_sizes()
    with pytest.raises(TypeError, match="X holds dates or durations beside numbers; turn them"):
        KreinRidge().fit(frame[["day", "x"]], y)


def test_dates_of_a_table_without_words_are_not_read_as_numbers():
    frame, y = with_sizes()
    plain = frame[["day", "x"]]
    model = TableRegressor(**QUICK).fit(plain, y)
    seconds = plain.assign(day=plain["day"].astype("int64"))
    with pytest.raises(ValueError, match="'day' of X holds numbers, but dates when the model was"):
        model.predict(seconds)
    with pytest.raises(ValueError, match="with categories or dates; pass a data frame"):
        model.predict(seconds.to_numpy())
    assert np.isfinite(model.predict(plain.assign(day=np.nan))).all()


@pytest.mark.parametrize("form", [lambda days: days, lambda days: days.astype(object)])
def test_dates_with_and_without_a_time_zone_are_not_mixed(form):
    frame, y = with_sizes()
    plain = frame[["day", "x"]]
    zoned = plain.assign(day=form(plain["day"].dt.tz_localize("US/Eastern")))
    model = TableRegressor(**QUICK).fit(zoned, y)
    in_utc = plain["day"].dt.tz_localize("US/Eastern").dt.tz_convert("UTC")
    assert_allclose(model.predict(plain.assign(day=form(in_utc))), model.predict(zoned))
    with pytest.raises(ValueError, match="holds dates, but dates with a time zone when"):
        model.predict(plain)
    with pytest.raises(ValueError, match="holds dates with a time zone, but dates when"):
        TableRegressor(**QUICK).fit(plain, y).predict(zoned)


def test_a_word_that_is_neither_of_two_lies_between_them():
    """Not with the one whose name comes first."""
    frame, y = mixed()
    model = TableRegressor(**QUICK).fit(frame, y)
    row = frame[:1].assign(size=0.0)
    a, b, unseen, missing = (
        model.predict(row.assign(kind=word))[0] for word in ("a", "b", "c", None)
    )
    assert b + 0.3 < unseen < a - 0.3
    assert missing == unseen
    share = np.mean(frame["kind"] == "b")
    assert_allclose(model.encoding_(row.assign(kind="c"))[0, -1], share)
    weighted = TableRegressor(**QUICK).fit(frame, y, np.where(frame["kind"] == "b", 3.0, 1.0))
    value = weighted.encoding_(row.assign(kind="c"))[0, -1]
    assert_allclose(value, 3 * share / (1 + 2 * share))


def test_infinity_among_words_is_a_word():
    frame, y = mixed()
    words = frame["kind"].astype(object)
    words[:10] = np.inf
    model = TableRegressor(**QUICK).fit(frame.assign(kind=words), y)
    assert "kind is inf" in model.encoding_.names


def test_gaps_of_new_rows_are_the_median_of_a_sorted_table():
    rows = np.arange(50_000.0)[:, None]
    encoding = fit_encoding(
        rows, read_columns(rows, None), np.zeros((50_000, 1)), np.ones(50_000), "", ["time"]
    )
    assert_allclose(encoding(np.array([[np.nan]])), [[25_000]], rtol=1e-3)
