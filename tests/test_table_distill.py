"""One small machine in place of the average."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, r2_score

from mercerless import LABClassifier, LABRegressor, TableClassifier, TableRegressor

RANDOM = np.random.RandomState(0)
X = RANDOM.normal(size=(900, 3))
F = np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def numbers():
    y = F[:300] + 0.1 * RANDOM.normal(size=300)
    return TableRegressor(max_iter=20, random_state=0).fit(X[:300], y)


def test_numbers(numbers):
    small = numbers.distill(n_support=40)
    machine = small[-1]
    assert isinstance(machine, LABRegressor)
    assert machine.n_support_ == 40
    average = numbers.predict(X[300:])
    missed = 1 - r2_score(average, small.predict(X[300:]))
    assert 0 < small.held_out_loss_ < 0.02
    # Held-out rows are like new ones, but a millionth of the variance depends on single rows in the tails.
    assert missed < max(4 * small.held_out_loss_, 1e-4)
    assert r2_score(F[300:], small.predict(X[300:])) > 0.97


def test_rows_without_targets(numbers):
    small = numbers.distill(X[300:700], n_support=40)
    # it learns from these rows and not from those that the model keeps
    support = small[-1].support_vectors_
    assert all((X[300:700] == row).all(axis=1).any() for row in support)
    assert_allclose(small.predict(X[700:]), numbers.predict(X[700:]), atol=0.5)


def test_several_outputs():
    Y = np.column_stack([F, X[:, 2]])[:120]
    model = TableRegressor(["local"], max_iter=10, random_state=0).fit(X[:120], Y)
    assert model.distill(n_support=30).predict(X[:7]).shape == (7, 2)


def test_classes_of_words_and_gaps():
    color = RANDOM.choice(["red", "green", "blue"], size=600)
    frame = pd.DataFrame({"a": X[:600, 0], "color": color, "b": X[:600, 1]})
    frame.loc[::11, "a"] = np.nan
    margin = X[:600, 1] + (color == "red") + 0.5 * RANDOM.normal(size=600)
    labels = np.array(["low", "middle", "high"])[np.digitize(margin, [-0.3, 0.9])]
    model = TableClassifier(max_iter=20, random_state=0).fit(frame[:300], labels[:300])
    small = model.distill(n_support=40)
    assert isinstance(small[-1], LABClassifier)
    assert list(small.classes_) == list(model.classes_)
    P = model.predict_proba(frame[300:])
    Q = small.predict_proba(frame[300:])
    divergence = np.mean(np.sum(P * np.log(P / Q), axis=1))
    assert 0 < divergence < 4 * small.held_out_loss_ < 0.4
    assert log_loss(labels[300:], Q, labels=small.classes_) < 0.7


def test_much_is_lost(numbers):
    with pytest.warns(UserWarning, match="raise n_support"):
        small = numbers.distill(n_support=1)
    assert small.held_out_loss_ > 0.05


def test_too_few_rows(numbers):
    with pytest.raises(ValueError, match="at least 20 rows"):
        numbers.distill(X[:5])
    few = TableRegressor(["local"], random_state=0).fit(X[:8], F[:8])
    with pytest.raises(ValueError, match="pass some rows as X"):
        few.distill()


def test_columns_are_read_by_name():
    frame = pd.DataFrame(X[:100], columns=["a", "b", "c"])
    model = TableRegressor(["local"], max_iter=5, random_state=0).fit(frame, F[:100])
    small = model.distill(n_support=30)
    expected = small.predict(frame)
    assert_allclose(small.predict(frame[["c", "a", "b"]].assign(more=1.0)), expected)
    assert_allclose(small.predict(frame.to_dict("records")), expected)
    assert_allclose(small.predict(frame.to_numpy()), expected)
    assert_allclose(small.predict(frame.set_axis([0, 1, 2], axis=1)), expected)
    with pytest.raises(ValueError, match="X lacks the column 'b', which it had in fit"):
        small.predict(frame[["a", "c"]])
    with pytest.raises(ValueError, match="X has 2 columns, but 3 were seen in fit"):
        small.predict(X[:5, :2])


def test_a_frame_is_needed_if_it_had_words():
    frame = pd.DataFrame({"a": X[:100, 0], "word": np.where(X[:100, 1] > 0, "u", "v")})
    model = TableRegressor(["local"], max_iter=5, random_state=0).fit(frame, F[:100])
    small = model.distill(n_support=30)
    assert_allclose(small.predict(frame[["word", "a"]]), small.predict(frame))
    with pytest.raises(ValueError, match="with categories or dates; pass a data frame"):
        small.predict(X[:5, :2])
