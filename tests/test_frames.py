"""Data frames mean the same in every memory format and order of rows and columns."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from mercerless import (
    AsymmetricRidge,
    AsymmetricRidgeClassifier,
    DANKClassifier,
    DANKRegressor,
    HyperClassifier,
    HyperRegressor,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    LABClassifier,
    LABRegressor,
    SimilarityClassifier,
    SimilarityRegressor,
    SimilaritySVC,
    TableClassifier,
    TableRegressor,
)
from mercerless.comparison.problem import make_problem
from mercerless.core.validation import holds_words, is_number_type

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
Y = np.repeat(["left", "right"], 20)
NAMES = [f"item{i}" for i in RNG.permutation(40)]


def arrow(frame):
    """The same frame in Arrow's memory."""
    pytest.importorskip("pyarrow")
    return frame.convert_dtypes(dtype_backend="pyarrow")


def test_a_distance_matrix_in_arrow_columns_is_a_matrix():
    frame = arrow(pd.DataFrame(D, index=NAMES, columns=NAMES))
    assert "pyarrow" in str(frame.dtypes.iloc[0])
    problem = make_problem(frame, Y)
    assert problem.kind == "distance" and problem.ids == tuple(NAMES)
    np.testing.assert_array_equal(problem.X, D)


def test_gaps_of_a_matrix_in_arrow_columns_are_completed_like_those_of_an_array():
    holes = D.copy()
    holes[2, 7] = holes[7, 2] = np.nan
    problem = make_problem(arrow(pd.DataFrame(holes)), Y, kind="distance")
    np.testing.assert_array_equal(problem.X, make_problem(holes, Y, kind="distance").X)


def test_a_table_in_arrow_columns_is_the_table():
    n = 40
    frame = pd.DataFrame(
        {
            "number": np.where(np.arange(n) == 3, np.nan, X[:, 0]),
            "whole": np.arange(n) % 7,
            "truth": np.arange(n) % 2 == 0,
            "word": np.array(["a", "b", "c", "d"])[np.arange(n) % 4],
            "day": pd.date_range("2020-01-01", periods=n),
        }
    )
    plain, in_arrow = make_problem(frame, Y), make_problem(arrow(frame), Y)
    roles = ["number", "number", "number", "category", "date"]
    assert plain.roles == in_arrow.roles == dict(zip(frame.columns, roles))
    np.testing.assert_array_equal(
        plain.preprocessor.fit_transform(plain.X), in_arrow.preprocessor.fit_transform(in_arrow.X)
    )


def column_of_every_type():
    pa = pytest.importorskip("pyarrow")
    dictionary = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    day = pd.Timestamp("2020-01-01")
    return {
        "number": [
            pd.Series([1, 2]),
            pd.Series([1.5, np.nan]),
            pd.Series([True, False]),
            pd.Series([1, None], dtype="Int8"),
            pd.Series([True, None], dtype="boolean"),
            pd.Series([1.5, None], dtype="double[pyarrow]"),
            pd.Series([1, None], dtype="uint8[pyarrow]"),
            pd.Series([True, None], dtype="bool[pyarrow]"),
            pd.Series([1, None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        ],
        "words": [
            pd.Series(["a", None], dtype=object),
            pd.Series([1.0, "a"], dtype=object),
            pd.Series(["a", None], dtype="string"),
            pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string())),
            pd.Series(["a", None], dtype=pd.ArrowDtype(pa.large_string())),
            pd.Series(["a", None], dtype=dictionary),
        ],
        "neither": [
            pd.Series([1j]),
            pd.Series([day]),
            pd.Series([day]).astype("timestamp[us][pyarrow]"),
            pd.Series([day.date()], dtype="date32[pyarrow]"),
            pd.Series(["a"], dtype="category"),
            pd.Series([True], dtype="category"),
            pd.Series([1.5, None], dtype=object),
        ],
    }


@pytest.mark.parametrize("kind", ["number", "words", "neither"])
def test_numbers_and_words_are_recognized_in_every_type(kind):
    for column in column_of_every_type()[kind]:
        assert is_number_type(column.dtype) == (kind == "number"), column.dtype
        assert holds_words(column) == (kind == "words"), column.dtype


# ------------------------------------------------------------------------------------ names of rows and columns


def shuffled(frame, seed=0):
    order = np.random.default_rng(seed).permutation(frame.shape[-1])
    return frame.iloc[:, order] if frame.ndim == 2 else frame.iloc[order]


def same_problem(first, second):
    np.testing.assert_array_equal(first.X, second.X)
    for field in ("y", "groups", "X_test", "y_test"):
        one, other = getattr(first, field), getattr(second, field)
        assert (one is None) == (other is None), field
        if one is not None:
            np.testing.assert_array_equal(one, other)
    assert first.ids == second.ids and first.kind == second.kind


@pytest.mark.parametrize("kind", ["distance", "table"])
def test_labels_groups_and_columns_are_found_by_their_names(kind):
    """Whatever the order of the columns, labels, groups, test columns and test labels, the problem is the same."""
    values = D if kind == "distance" else X
    columns = NAMES if kind == "distance" else ["a", "b", "c"]
    frame = pd.DataFrame(values, index=NAMES, columns=columns).iloc[:30]
    frame = frame.iloc[:, :30] if kind == "distance" else frame
    test = pd.DataFrame(values, index=NAMES, columns=columns).iloc[30:][frame.columns]
    y = pd.Series(np.arange(30) % 3, index=frame.index)
    groups = pd.Series(np.arange(30) % 6, index=frame.index)
    y_test = pd.Series(np.arange(10) % 3, index=test.index)
    straight = make_problem(frame, y, groups=groups, X_test=test, y_test=y_test)
    assert straight.kind == kind
    np.testing.assert_array_equal(straight.X, frame.to_numpy())
    mixed = make_problem(
        shuffled(frame) if kind == "distance" else frame,
        y,
        groups=groups,
        X_test=shuffled(test, 2),
        y_test=y_test.loc[shuffled(test, 2).index],
    )
    same_problem(straight, mixed)


def test_columns_of_a_test_table_with_words_are_found_by_their_names():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "w": np.array(["u", "v"])[np.arange(40) % 2]})
    test = frame.iloc[:6]
    straight = make_problem(frame, Y, X_test=test, y_test=Y[:6])
    for given in (test[["w", "b", "a"]], test.assign(more=1.0)[["more", "b", "w", "a"]]):
        problem = make_problem(frame, Y, X_test=given, y_test=Y[:6])
        pd.testing.assert_frame_equal(problem.X_test, straight.X_test)
    by_position = make_problem(frame, Y, X_test=test.to_numpy(), y_test=Y[:6])
    pd.testing.assert_frame_equal(by_position.X_test, straight.X_test)


def test_a_constant_column_is_left_out_of_a_test_array_too():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(b=1.0)
    problem = make_problem(frame, Y, X_test=X[:5], y_test=Y[:5])
    np.testing.assert_array_equal(problem.X_test, X[:5][:, [0, 2]])


@pytest.mark.parametrize("given", ["columns", "rows", "test"])
def test_a_name_twice_raises(given):
    frame = pd.DataFrame(D, index=NAMES, columns=NAMES)
    twice = [NAMES[1], *NAMES[1:]]
    test = frame.iloc[:5]
    if given == "columns":
        frame = shuffled(frame.set_axis(twice, axis=1).set_axis(twice, axis=0))
    elif given == "rows":
        frame = frame.set_axis(twice, axis=0)
    else:
        test = test.set_axis(twice, axis=1)
    with pytest.raises(ValueError, match=f"one name, '{NAMES[1]}'"):
        make_problem(frame, Y, X_test=test, y_test=Y[:5])


def test_a_test_frame_without_a_column_raises():
    frame = pd.DataFrame(D, index=NAMES, columns=NAMES)
    with pytest.raises(ValueError, match=f"X_test has no column '{NAMES[3]}'"):
        make_problem(frame, Y, X_test=frame.iloc[:5].drop(columns=NAMES[3]), y_test=Y[:5])


@pytest.mark.parametrize(
    "y, y_test, sentence",
    [
        (np.arange(40) % 2, [1.9, 0.0], "class 1.9"),
        (np.arange(40) % 2 == 0, [3, 1], "class 3"),
        (np.arange(40) % 2, ["one", "zero"], "y_test does not"),
        (X[:, 0], [np.inf, 1.0], "infinite"),
    ],
)
def test_labels_of_a_test_set_are_not_cast(y, y_test, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_problem(X, y, X_test=X[:2], y_test=y_test)


def test_labels_of_a_test_set_that_mean_the_same_have_the_type_of_y():
    for y, y_test in ((np.arange(40) % 2, [1.0, 0.0]), (np.arange(40) % 2 == 0, [1, 0])):
        problem = make_problem(X, y, X_test=X[:2], y_test=y_test)
        assert problem.y_test.dtype == problem.y.dtype
        np.testing.assert_array_equal(problem.y_test, y_test)
    numbers = make_problem(X, np.arange(40) * 3, X_test=X[:2], y_test=[1.9, 2.5])
    np.testing.assert_array_equal(numbers.y_test, [1.9, 2.5])


def test_columns_of_a_test_set_follow_when_rare_classes_are_dropped():
    rare = np.array([3, 17])
    y = Y.copy()
    y[rare] = "rare"
    kept = np.delete(np.arange(40), rare)
    problem = make_problem(D, y, X_test=D[:6], y_test=Y[:6])
    np.testing.assert_array_equal(problem.X, D[np.ix_(kept, kept)])
    np.testing.assert_array_equal(problem.X_test, D[:6][:, kept])


def test_a_constant_of_several_lines_is_described_in_one_sentence():
    frame = pd.DataFrame({"a": ["one\ntwo " * 30] * 12, "y": np.arange(12.0)})
    with pytest.raises(ValueError, match="in every row") as raised:
        make_problem(frame.drop(columns="y"), frame["y"])
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 200


@pytest.mark.parametrize(
    "model",
    [
        SimilarityRegressor(cv=2),
        DANKRegressor(),
        AsymmetricRidge(),
        LABRegressor(max_iter=5),
        TableRegressor(),
        SimilarityClassifier(cv=2),
        SimilaritySVC(),
        DANKClassifier(),
        AsymmetricRidgeClassifier(),
        LABClassifier(max_iter=5),
        TableClassifier(),
        KreinRidge(),
        KreinSVR(),
        KreinRidgeClassifier(),
        KreinSVC(),
        HyperRegressor(random_state=0),
        HyperClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_labels_in_another_order_than_the_rows_raise(model):
    frame = pd.DataFrame(X, index=NAMES, columns=["a", "b", "c"])
    target = pd.Series(X[:, 0] + X[:, 1], index=NAMES)
    if is_classifier(model):
        target = pd.Series(np.where(target > 0, "high", "low"), index=NAMES)
    weight = pd.Series(RNG.uniform(0.1, 3.0, 40), index=NAMES)
    order = RNG.permutation(40)
    fitted = clone(model).fit(frame, target)
    assert fitted.score(frame, target, weight) > 0.5
    for method in (fitted.score, clone(model).fit):
        with pytest.raises(ValueError, match="in different orders"):
            method(frame, target.iloc[order])
        with pytest.raises(ValueError, match="in different orders"):
            method(frame, target, sample_weight=weight.iloc[order])
