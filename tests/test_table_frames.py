"""Tables in other shapes than pandas' frames: lists of dicts, Arrow, polars."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import TableClassifier, TableRegressor

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
