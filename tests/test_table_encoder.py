"""TableEncoder: what columns are, what they become, and what is left out."""

import sys
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

pd = pytest.importorskip("pandas")
pytest.importorskip("skrub")

from mercerless import TableEncoder

N = 200


def mixed_table(n=N, seed=0):
    """A table of every kind of column, and numbers that depend on each."""
    rng = np.random.default_rng(seed)
    date = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "color": rng.choice(["red", "green", "blue"], n),
            "job": rng.choice([f"{a} {b}" for a in ("head", "junior") for b in range(20)], n),
            "day": date,
            "text": [f"{rng.choice(['cats', 'dogs'])} live in house {i}" for i in range(n)],
        }
    )
    X.loc[4::9, "size"] = np.nan
    y = X["size"].fillna(0.0) + (X.color == "red") + X.text.str.contains("cats") * 2.0
    y = y + np.sin(2 * np.pi * date.day_of_year / 365.25) + X.job.str.startswith("head")
    return X, y.to_numpy(float)


def test_kinds_are_inferred_by_the_documented_rule():
    X, y = mixed_table()
    X["iso"] = X.day.dt.strftime("%Y-%m-%d")
    X["german"] = X.day.dt.strftime("%d.%m.%Y")
    X["digits"] = [f"{v:.4f}" for v in np.random.default_rng(1).normal(size=N)]
    encoder = TableEncoder().fit(X, y)
    assert encoder.kinds_ == {
        "size": "number",
        "color": "category",
        "job": "words",
        "day": "date",
        "text": "text",
        "iso": "date",
        "german": "date",
        "digits": "number",
    }


def test_every_encoded_column_is_finite_and_named_by_its_source():
    X, y = mixed_table()
    encoder = TableEncoder().fit(X, y)
    A = encoder.transform(X)
    names = encoder.get_feature_names_out()
    assert A.shape == (N, len(names)) and len(set(names)) == len(names)
    assert np.isfinite(A).all()
    assert all(name.startswith(X.columns[s]) for name, s in zip(names, encoder.sources_))


def test_known_values_are_encoded_as_documented():
    X, y = mixed_table()
    encoder = TableEncoder().fit(X, y)
    A = pd.DataFrame(encoder.transform(X), columns=encoder.get_feature_names_out())
    gaps = X["size"].isna()
    assert np.array_equal(A["size is missing"], gaps)
    assert np.allclose(A.loc[gaps, "size"], X["size"].median())
    assert np.array_equal(A["day, year"], X.day.dt.year)
    assert np.array_equal(A["day, weekday"], X.day.dt.day_of_week)
    angle = 2 * np.pi * (X.day.dt.day_of_year - 1) / 365.25
    assert np.allclose(A["day, season sine"], np.sin(angle))
    assert np.array_equal(A["color is red"], X.color == "red")


def test_date_strings_are_encoded_as_dates():
    X, _ = mixed_table()
    as_dates = TableEncoder().fit_transform(X[["day"]])
    for form in ("%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%S"):
        strings = pd.DataFrame({"day": X.day.dt.strftime(form)})
        assert np.array_equal(TableEncoder().fit_transform(strings), as_dates)


def test_date_strings_of_another_form_are_gaps_when_predicted():
    strings = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=50).strftime("%Y-%m-%d")})
    encoder = TableEncoder().fit(strings)
    encoded = encoder.transform(pd.DataFrame({"day": ["never"]}))
    assert encoded[0, 0] == encoder.transform(strings.iloc[[25]])[0, 0]  # the median date


@pytest.mark.parametrize("values", ["ids", "constant", "empty", "copy", "negative"])
def test_a_column_without_information_is_dropped_with_a_reason(values):
    X, y = mixed_table()
    columns = {
        "ids": [f"C{i:04}" for i in range(N)],
        "constant": np.ones(N),
        "empty": np.full(N, np.nan),
        "copy": X["size"],
        "negative": 3.0 - 2.0 * X["size"],
    }
    plain = TableEncoder().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = TableEncoder().fit(X.assign(more=columns[values]), y)
    assert "more" in encoder.dropped_
    assert np.array_equal(encoder.get_feature_names_out(), plain.get_feature_names_out())


def test_dropping_ids_warns_and_kinds_override_it():
    X = pd.DataFrame({"a": np.arange(50.0), "id": [f"C{i:04}" for i in range(50)]})
    with pytest.warns(UserWarning, match="'id' of X is left out"):
        TableEncoder().fit(X)
    assert TableEncoder({"id": "drop"}).fit(X).dropped_ == {"id": "is dropped by kinds"}
    assert TableEncoder({"id": "text"}).fit(X).kinds_["id"] == "text"


def test_target_means_of_noise_words_do_not_predict():
    """Means around those of other folds would be anticorrelated with a row's own target."""
    rng = np.random.default_rng(0)
    correlations = []
    for seed in range(20):
        X = pd.DataFrame({"word": rng.choice([f"w{i}" for i in range(90)], N)})
        y = rng.normal(size=N)
        encoder = TableEncoder({"word": "words"}, random_state=seed)
        A = encoder.fit_transform(X, y)
        mean = A[:, list(encoder.get_feature_names_out()).index("word, mean target")]
        correlations.append(np.corrcoef(mean, y)[0, 1])
    assert abs(np.mean(correlations)) < 3.0 * np.std(correlations) / np.sqrt(20) + 0.01


def test_target_means_of_a_row_do_not_depend_on_its_own_target():
    X, y = mixed_table()
    flipped = y.copy()
    flipped[7] += 1000.0
    first, second = (TableEncoder().fit_transform(X[["job"]], t)[:, 0] for t in (y, flipped))
    center = flipped.mean() - y.mean()
    assert abs(first[7] - second[7]) <= center  # only the mean of all rows has moved


def test_target_means_are_those_of_a_direct_computation():
    X, y = mixed_table()
    encoder = TableEncoder().fit(X[["job"]], y)
    words = X.job
    centered = y - y.mean()
    expected = [centered[words == w].sum() / ((words == w).sum() + 10.0) for w in words]
    assert np.allclose(encoder.transform(X[["job"]])[:, 0], expected)


def test_unknown_words_count_as_the_mean_of_all():
    X, y = mixed_table()
    encoder = TableEncoder().fit(X[["color", "job"]], y)
    A = encoder.transform(X[["color", "job"]])
    new = encoder.transform(pd.DataFrame({"color": ["pink"], "job": ["astronaut"]}))
    names = list(encoder.get_feature_names_out())
    assert new[0, names.index("job, mean target")] == 0.0
    k = names.index("color is red")
    assert np.isclose(new[0, k], A[:, k].mean())


def test_classes_have_a_mean_each_and_need_no_numbers():
    X, y = mixed_table()
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7])).astype(str)
    names = TableEncoder().fit(X[["job"]], labels).get_feature_names_out()
    assert sum("mean target" in name for name in names) == 3
    binary = TableEncoder().fit(X[["job"]], labels == "0").get_feature_names_out()
    assert sum("mean target" in name for name in binary) == 1


@pytest.mark.parametrize("n_values, n_means", [(2, 1), (3, 3), (20, 20), (21, 1)])
def test_whole_numbers_of_more_than_twenty_values_are_a_target_of_numbers(n_values, n_means):
    X, _ = mixed_table()
    y = np.arange(N) % n_values
    names = TableEncoder().fit(X[["job"]], y).get_feature_names_out()
    assert sum("mean target" in name for name in names) == n_means
    names = TableEncoder().fit(X[["job"]], y.astype(str)).get_feature_names_out()
    assert sum("mean target" in name for name in names) == (n_values if n_values > 2 else 1)


def test_works_without_targets():
    X, _ = mixed_table()
    encoder = TableEncoder().fit(X)
    assert not any("target" in name for name in encoder.get_feature_names_out())
    assert np.array_equal(encoder.transform(X), encoder.fit_transform(X))


def test_without_skrub_a_warning_names_the_extra(monkeypatch):
    X, y = mixed_table()
    monkeypatch.setitem(sys.modules, "skrub", None)
    with pytest.warns(UserWarning, match=r"mercerless\[table\]"):
        encoder = TableEncoder().fit(X[["size", "job", "text"]], y)
    assert "text" in encoder.dropped_
    assert "job, mean target" in encoder.get_feature_names_out()


def test_text_helps_where_words_carry_the_target():
    X, y = mixed_table(400)
    scores = {
        kinds: cross_val_score(make_pipeline(TableEncoder({"text": kinds}), Ridge()), X, y).mean()
        for kinds in ("text", "drop")
    }
    assert scores["text"] > scores["drop"] + 0.2


def test_text_that_does_not_explain_the_target_is_left_out_unless_kinds_ask_for_it():
    """Of fifty columns of noise about one passes a test at one per cent."""
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(50):
        X = pd.DataFrame(
            {"a": range(80), "text": [f"{w:x} b {w}" for w in rng.integers(0, 10**6, 80)]}
        )
        y = rng.normal(size=80)
        kept += "text" not in TableEncoder().fit(X, y).dropped_
    assert kept <= 3
    assert "text" not in TableEncoder({"text": "text"}).fit(X, y).dropped_
    assert "text" not in TableEncoder().fit(X).dropped_
    assert (
        TableEncoder().fit(X[["text"]], y).transform(X[["text"]]).shape[1] > 0
    )  # nothing else is there


def test_blank_cells_are_missing():
    dates = list(pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d"))
    X = pd.DataFrame({"day": dates, "color": ["red", "blue"] * 20})
    blank, missing = X.copy(), X.copy()
    blank.iloc[3::7] = " "
    missing.iloc[3::7] = None
    assert np.array_equal(
        TableEncoder().fit_transform(blank), TableEncoder().fit_transform(missing)
    )


def records(X):
    return [
        {key: value for key, value in row.items() if value == value} for row in X.to_dict("records")
    ]


CONTAINERS = {
    "polars": lambda X: pytest.importorskip("polars").from_pandas(X),
    "Arrow": lambda X: pytest.importorskip("pyarrow").Table.from_pandas(X),
    "dicts": records,
    "nullable": lambda X: X.convert_dtypes(),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_equal_values_are_encoded_alike(name):
    X, y = mixed_table()
    table = CONTAINERS[name](X)
    encoder = TableEncoder().fit(table, y)
    assert np.allclose(encoder.fit_transform(table, y), TableEncoder().fit_transform(X, y))
    assert np.allclose(encoder.transform(table), TableEncoder().fit(X, y).transform(X))


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_global_output_settings_change_the_container_only(output):
    pytest.importorskip(output)
    X, y = mixed_table()
    expected = TableEncoder().fit_transform(X, y)
    with sklearn.config_context(transform_output=output):
        frame = TableEncoder().fit_transform(X, y)
    assert type(frame).__module__.startswith(output)
    assert np.array_equal(np.asarray(frame), expected)


def test_columns_are_matched_by_name():
    X, y = mixed_table()
    encoder = TableEncoder().fit(X, y)
    shuffled = X[X.columns[::-1]].assign(extra=1)
    assert np.array_equal(encoder.transform(shuffled), encoder.transform(X))
    with pytest.raises(ValueError, match="color"):
        encoder.transform(X.drop(columns="color"))


def test_errors_are_one_sentence_that_names_the_column():
    X, y = mixed_table()
    encoder = TableEncoder().fit(X, y)
    with pytest.raises(ValueError, match="'size' of X holds words"):
        encoder.transform(X.assign(size="big"))
    with pytest.raises(ValueError, match="'day' of X holds numbers"):
        encoder.transform(X.assign(day=1.0))
    with pytest.raises(ValueError, match="infinite"):
        encoder.transform(X.assign(size=np.inf))
    with pytest.raises(ValueError, match="kinds='color' is not known"):
        TableEncoder({"size": "color"}).fit(X)
    with pytest.raises(ValueError, match="names 'shade'"):
        TableEncoder({"shade": "drop"}).fit(X)
    with pytest.raises(ValueError, match="no column to learn from"):
        TableEncoder({"size": "drop"}).fit(X[["size"]])


def test_a_pipeline_is_honest_out_of_fold():
    """Noise words with many values tempt target means; out of fold nothing may be gained."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"word": rng.choice([f"w{i}" for i in range(60)], 300)})
    y = rng.normal(size=300)
    model = make_pipeline(TableEncoder(), Ridge())
    assert r2_score(y, cross_val_predict(model, X, y)) < 0.05
    labels = rng.choice(["a", "b"], 300)
    model = make_pipeline(TableEncoder(), LogisticRegression())
    assert cross_val_score(model, X, labels).mean() < 0.6
