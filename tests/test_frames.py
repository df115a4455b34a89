"""Data frames mean the same in every memory format and order of rows and columns."""

import numpy as np
import pytest

from mercerless._validation import holds_words, is_number_type
from mercerless.comparison.problem import make_problem

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
