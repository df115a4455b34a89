"""A table as a matrix of numbers: gaps, categories, text and dates encoded, ids and constants dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercerless.core.folds import Split, assign_folds, splits_of
from mercerless.core.validation import (
    align_columns,
    check_option,
    check_row_order,
    check_weight,
    labels_of,
    validate_data,
    warn,
)
from mercerless.table.columns import (
    DATE,
    Column,
    as_frame,
    days,
    is_frame,
    objects,
    read_table,
    words_as_numbers,
)
from mercerless.table.views import Standard, first_of_copies

KINDS = ("number", "order", "category", "words", "text", "date", "drop")
MOST_LEVELS = 30  # categories with more values have target means instead of 0/1 columns
FEWEST_ROWS = 3  # of a category with a 0/1 column, and of gaps with a mark
PRIOR_ROWS = 10.0  # by which target means are pulled to the mean of all
MANY_CLASSES = 20  # integer targets with more values are numbers


@dataclass(frozen=True)
class Training:
    """What the encoding of a column may use besides its values."""

    Y: NDArray | None  # targets around their means (n, q)
    weight: NDArray
    folds: Sequence[Split]  # for target means, each row once in a test part
    n_components: int
    random_state: int


class Part:
    """One way to encode a column. A subclass has the names of its columns of numbers, and does not change after fit."""

    names: list[str]

    def fit(self, column: Column, training: Training) -> NDArray:
        """The columns of numbers (n, q) of the training rows."""
        raise NotImplementedError

    def transform(self, column: Column) -> NDArray:
        """Those of new rows."""
        raise NotImplementedError


class Numbers(Part):
    """Numbers with gaps at the median, and a mark of the gaps."""

    def fit(self, column: Column, training: Training) -> NDArray:
        values = self.read(column)
        gaps = np.isnan(values)
        self.has_mark = bool(gaps.sum() >= FEWEST_ROWS)
        self.fill = np.median(values[~gaps])
        self.names = [column.name] + [f"{column.name} is missing"] * self.has_mark
        return self.transform(column)

    def transform(self, column: Column) -> NDArray:
        values = self.read(column)
        gaps = np.isnan(values)
        filled = np.where(gaps, self.fill, values)
        return np.stack([filled, gaps.astype(float)][: len(self.names)], axis=1)

    def read(self, column: Column) -> NDArray:
        """The values as numbers."""
        return column.as_numbers()


class Ranks(Numbers):
    """Ordered categories as the numbers of their places in the order of the training rows."""

    levels: Sequence[str] = ()

    def fit(self, column: Column, training: Training) -> NDArray:
        self.levels = column.levels or sorted({w for w in column.as_words() if w is not None})
        return super().fit(column, training)

    def read(self, column: Column) -> NDArray:
        place: dict[Any, float] = {word: float(i) for i, word in enumerate(self.levels)}
        place[None] = np.nan
        words = column.as_words()
        strange = next((word for word in words if word not in place), None)
        if strange is not None:
            raise ValueError(
                f"Column {column.name!r} of X has {strange!r}, which is none of its ordered "
                f"categories when the model was fitted ({', '.join(self.levels[:5])})."
            )
        return np.array([place[word] for word in words], dtype=float)


class Levels(Part):
    """A 0/1 column for every frequent value, and for gaps; other values have the shares of the training rows."""

    def fit(self, column: Column, training: Training) -> NDArray:
        words, counts = count_words(column.as_words())
        fewest = min(FEWEST_ROWS, max(counts))
        self.levels = [word for word, count in zip(words, counts) if count >= fewest]
        self.names = [
            f"{column.name} is {'missing' if word is None else word}" for word in self.levels
        ]
        self.shares = np.zeros(len(self.levels))
        indicators = self.transform(column)
        self.shares = indicators.mean(axis=0)
        return self.transform(column)

    def transform(self, column: Column) -> NDArray:
        place = {word: i for i, word in enumerate(self.levels)}
        rows = np.vstack([np.eye(len(self.levels)), self.shares])
        return rows[[place.get(word, -1) for word in column.as_words()]]


class TargetMeans(Part):
    """The mean target of the rows with the same word; that of a training row comes from other folds.

    Means are of targets around the mean of all rows: around the mean of the other folds, words that occur once would
    be anticorrelated with their own target.
    """

    def fit(self, column: Column, training: Training) -> NDArray:
        assert training.Y is not None
        q = training.Y.shape[1]
        self.names = [
            f"{column.name}, mean target {k + 1}"[: None if q > 1 else -2] for k in range(q)
        ]
        words = column.as_words()
        means = np.zeros_like(training.Y)
        for train, test in training.folds:
            self._learn(words[train], training.Y[train], training.weight[train])
            means[test] = self._look_up(words[test])
        self._learn(words, training.Y, training.weight)
        return means

    def transform(self, column: Column) -> NDArray:
        return self._look_up(column.as_words())

    def _learn(self, words: NDArray, Y: NDArray, weight: NDArray) -> None:
        self.place: dict[Any, int] = {}
        number = [self.place.setdefault(word, len(self.place)) for word in words]
        totals = np.bincount(number, weights=weight)
        sums = np.stack([np.bincount(number, weights=weight * y) for y in Y.T], axis=1)
        unknown = np.zeros((1, Y.shape[1]))
        self.means = np.vstack([sums / (totals + PRIOR_ROWS)[:, None], unknown])

    def _look_up(self, words: NDArray) -> NDArray:
        return self.means[[self.place.get(word, -1) for word in words]]


class Text(Part):
    """Components of the words' three- and four-letter pieces, by skrub's StringEncoder."""

    most_words = 5000  # of which components are learned
    most_letters = 500  # of a text; the rest is cut off

    def fit(self, column: Column, training: Training) -> NDArray:
        from skrub import StringEncoder

        words = list(dict.fromkeys(self._read(column)))
        words = words[:: -(-len(words) // self.most_words)]
        self.encoder = StringEncoder(
            min(training.n_components, len(words) - 1), random_state=training.random_state
        )
        self.encoder.fit(self._series(words))
        values = self.transform(column)
        self.names = [f"{column.name} {i + 1}" for i in range(values.shape[1])]
        return values

    def transform(self, column: Column) -> NDArray:
        place: dict[str, int] = {}
        number = [place.setdefault(word, len(place)) for word in self._read(column)]
        return np.asarray(self.encoder.transform(self._series(list(place))), dtype=float)[number]

    def _read(self, column: Column) -> list[str]:
        return ["" if word is None else word[: self.most_letters] for word in column.as_words()]

    @staticmethod
    def _series(words: list[str]) -> Any:
        import pandas

        return pandas.Series(objects(words), name="text", dtype="str")


class Dates(Part):
    """Days, year, month and weekday of dates or date strings, and sine and cosine of the season and the time of day."""

    parts: ClassVar = ("", ", year", ", month", ", weekday", ", season sine", ", season cosine")
    times: ClassVar = (", time sine", ", time cosine")

    def __init__(self, parser: Any = None) -> None:
        self.parser = parser  # of date strings

    def fit(self, column: Column, training: Training) -> NDArray:
        dates = self._read(column)
        is_known = ~np.isnat(dates)
        self.fill = np.sort(dates[is_known])[is_known.sum() // 2]
        self.has_mark = bool((~is_known).sum() >= FEWEST_ROWS)
        has_times = bool(np.any(dates[is_known] != dates[is_known].astype("datetime64[D]")))
        suffixes = self.parts + self.times * has_times + (" is missing",) * self.has_mark
        self.names = [f"{column.name}{suffix}" for suffix in suffixes]
        return self.transform(column)

    def transform(self, column: Column) -> NDArray:
        dates = self._read(column)
        gaps = np.isnat(dates)
        dates = np.where(gaps, self.fill, dates)
        day = dates.astype("datetime64[D]")
        month = dates.astype("datetime64[M]").astype(int)
        year = dates.astype("datetime64[Y]")
        season = 2.0 * np.pi * days(dates - year.astype(DATE)) / 365.25
        time = 2.0 * np.pi * days(dates - day.astype(DATE))
        values = {
            "": days(dates),
            ", year": year.astype(int) + 1970,
            ", month": month % 12 + 1,
            ", weekday": (day.astype(int) + 3) % 7,  # Monday is 0
            ", season sine": np.sin(season),
            ", season cosine": np.cos(season),
            ", time sine": np.sin(time),
            ", time cosine": np.cos(time),
            " is missing": gaps,
        }
        block = [values[name[len(column.name) :]] for name in self.names]
        return np.stack(block, axis=1).astype(float)

    def _read(self, column: Column) -> NDArray:
        if column.kind == "date":
            return column.values
        if self.parser is not None and column.kind == "word":
            return parse_dates(self.parser, column)
        raise ValueError(
            f"Column {column.name!r} of X holds {column.kind}s, but dates when the model was "
            "fitted; convert it."
        )


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table as numbers without gaps: numbers, categories, text, dates; ids and constants are dropped.

    What a column is, `kinds` says, or else its values:

    - numbers and dates by their type, as are ordered categories;
    - words that all spell dates are dates, and words that spell numbers (more than 30 different ones) are numbers;
    - words that hardly repeat (more different ones than half the rows) are text if most of them have several words,
      and otherwise ids, which are dropped;
    - up to 30 different words are categories, more are words.

    Numbers have gaps at the median and a column that marks them; categories a 0/1 column for every value; words have
    cross-fitted target means and, as text has, components of their letters by skrub; dates have days, year, month,
    weekday, and sine and cosine of the season. Constants and copies of columns are dropped.

    A table is an array, a frame of pandas, polars or Arrow, or a list of dicts.

    Parameters
    ----------
    kinds : dict or None, default=None
        The kinds of columns by name (or position, for an array), for those that should not be inferred: "number",
        "order", "category", "words", "text", "date" or "drop".
    n_components : int, default=10
        Components of a column of text.
    target : "auto", "classes" or "numbers", default="auto"
        What the targets are; "auto" takes numbers with more than 20 different values as numbers.
    random_state : int, default=0
        Makes folds and components repeatable.

    Attributes
    ----------
    kinds_ : dict of str to str
        The kind of every column.
    dropped_ : dict of str to str
        Columns that are not encoded, with the reason.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Their names, for a data frame.

    Examples
    --------
    >>> from mercerless import TableEncoder
    >>> rows = [{"size": 1.0, "color": "red"}, {"size": 2.5, "color": "blue"}, {"size": 3.0, "color": "red"}]
    >>> TableEncoder().fit(rows).get_feature_names_out()
    array(['size', 'color is red'], dtype=object)
    """

    def __init__(
        self,
        kinds: Mapping[Any, str] | None = None,
        *,
        n_components: int = 10,
        target: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.kinds = kinds
        self.n_components = n_components
        self.target = target
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the encoding.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            The table.
        y : array-like of shape (n,) or None, default=None
            The targets, for target means; without them words have components only.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the rows in target means.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        self.learn(*self._check_training(X, y, sample_weight))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray:
        """Learn the encoding; the target means of every training row come from other rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            The table.
        y : array-like of shape (n,) or None, default=None
            The targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the rows in target means.

        Returns
        -------
        ndarray of shape (n, n_features_out)
            The encoded rows.
        """
        return self.learn(*self._check_training(X, y, sample_weight))

    def transform(self, X: Any) -> NDArray:
        """Encode new rows; columns of a data frame are matched by name.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n, n_features_out)
            The encoded rows.
        """
        return self.encode(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names of the encoded columns.

        Parameters
        ----------
        input_features : object
            Ignored.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        names = [name for _, part in self._parts for name in part.names]
        return np.array(names, dtype=object)[self._kept]

    @property
    def sources_(self) -> NDArray:
        """The column of the table from which every encoded column comes."""
        check_is_fitted(self)
        sources = [place for place, part in self._parts for _ in part.names]
        return np.array(sources, dtype=int)[self._kept]

    def read(self, X: Any) -> list[Column]:
        """The columns of new rows, checked against those of the training rows."""
        check_is_fitted(self)
        X = align_columns(as_frame(X, self._names), self._names)
        given = labels_of(X)
        if given is not None and given != self._names and not self._is_numbered:
            lacking = [name for name in self._names if name not in given]
            if lacking and len(given) != len(self._names):
                raise ValueError(f"X lacks the column {lacking[0]!r}, which it had in fit; add it.")
        X = self._validated(X, reset=False)
        return [c._replace(name=name) for c, name in zip(read_table(X), self._names)]

    def encode(self, X: Any) -> NDArray:
        """The encoded rows as an array, whatever output scikit-learn is set to."""
        columns = self.read(X)
        with sklearn.config_context(transform_output="default"):
            blocks = [part.transform(columns[place]) for place, part in self._parts]
        return np.hstack(blocks)[:, self._kept]

    def _validated(self, X: Any, reset: bool) -> Any:
        """A table whose shape and names scikit-learn has checked."""
        if is_frame(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "OUST" and X.ndim == 2):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if len(X) == 0 or X.shape[1] == 0:
                raise ValueError(f"X has shape {X.shape} and so no entries; pass at least one row.")
            return X
        types = [np.float64, np.float32]
        return validate_data(self, X, dtype=types, reset=reset, ensure_all_finite="allow-nan")

    def _check_training(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[list[Column], NDArray | None, NDArray, Sequence[Split]]:
        """Columns, target columns, weights and folds."""
        check_row_order(X, y, sample_weight)
        X = as_frame(X)
        columns = self.read_training(X)
        n = len(columns[0].values)
        weight = check_weight(sample_weight, n)
        Y, labels = None, None
        if y is not None:
            Y, labels = self._target_columns(np.asarray(y))
        folds = splits_of(assign_folds(5, n, labels=labels, random_state=self.random_state))
        return columns, Y, weight, folds

    def read_training(self, X: Any) -> list[Column]:
        """The columns of training rows; sets the names of features."""
        check_option("target", self.target, ("auto", "classes", "numbers"))
        for kind in (self.kinds or {}).values():
            check_option("kinds", kind, KINDS)
        X = self._validated(X, reset=True)
        columns = read_table(X)
        self._names = [column.name for column in columns]
        self._is_numbered = not is_frame(X)
        strange = [name for name in self.kinds or {} if self._place_of(name) is None]
        if strange:
            raise ValueError(f"kinds names {strange[0]!r}, which is not a column of X.")
        return columns

    def _place_of(self, name: Any) -> int | None:
        """The position of a column given by name or, for an array, by number."""
        if self._is_numbered and isinstance(name, (int, np.integer)):
            return int(name) if 0 <= name < len(self._names) else None
        return self._names.index(str(name)) if str(name) in self._names else None

    def _target_columns(self, y: NDArray) -> tuple[NDArray, NDArray | None]:
        """Targets as columns of numbers, one for each class; and the labels of classes."""
        if y.ndim > 1:
            return y.reshape(len(y), -1).astype(float), None
        values = np.unique(y)
        has_fractions = y.dtype.kind == "f" and bool(np.any(y != np.round(y)))
        is_number = has_fractions or (y.dtype.kind in "biuf" and len(values) > MANY_CLASSES)
        if self.target == "numbers" or (self.target == "auto" and is_number):
            return y[:, None].astype(float), None
        return (y[:, None] == values[min(1, len(values) - 1) * (len(values) == 2) :]) * 1.0, y

    def learn(
        self, columns: list[Column], Y: NDArray | None, weight: NDArray, folds: Sequence[Split]
    ) -> NDArray:
        """Fit the parts of all columns; returns the encoded training rows."""
        if Y is not None:
            Y = Y - np.average(Y, axis=0, weights=weight)
        training = Training(Y, weight, folds, self.n_components, self.random_state)
        given = {self._place_of(name): kind for name, kind in (self.kinds or {}).items()}
        self.kinds_: dict[str, str] = {}
        self.dropped_: dict[str, str] = {}
        self._parts: list[tuple[int, Part]] = []
        blocks = []
        with sklearn.config_context(transform_output="default"):
            for place, column in enumerate(columns):
                kind, parts = self._parts_of(column, given.get(place), Y is not None)
                self.kinds_[column.name] = kind
                for part in parts:
                    blocks.append(part.fit(column, training))
                    self._parts.append((place, part))
        if not blocks:
            reasons = "; ".join(f"{name!r} {why}" for name, why in self.dropped_.items())
            raise ValueError(f"X has no column to learn from: {reasons}.")
        A = np.hstack(blocks)
        unordered = Standard.fit(A)
        Z = np.empty_like(A)
        Z[:, unordered.order] = unordered(A)
        self._kept = np.arange(A.shape[1])
        self._kept = first_of_copies(Z)
        if not len(self._kept):  # every column is constant
            self._kept = np.arange(1)
        encoded = set(self.sources_.tolist())
        for place, column in enumerate(columns):
            if place not in encoded and column.name not in self.dropped_:
                self.dropped_[column.name] = "is constant or a copy of other columns"
        return A[:, self._kept]

    def _parts_of(
        self, column: Column, given: str | None, has_target: bool
    ) -> tuple[str, list[Part]]:
        """The kind of a column and how to encode it."""
        if given == "drop" or column.is_missing.all():
            self.dropped_[column.name] = "is empty" if given != "drop" else "is dropped by kinds"
            return "drop", []
        parser = date_parser(column)
        kind = given or infer_kind(column, parser)
        if kind == "drop":
            self.dropped_[column.name] = "has words that hardly repeat, as ids do"
            warn(
                f"Column {column.name!r} of X is left out: its words hardly repeat, as those of "
                f"ids do, such as {next(w for w in column.values if w is not None)!r}. Pass "
                f"kinds={{{column.name!r}: 'text'}} to use it, or 'drop' to silence this warning."
            )
            return kind, []
        if kind in ("words", "text") and not has_skrub():
            warn(
                f"Column {column.name!r} of X holds text, and skrub, which encodes text and date "
                "strings, is not installed: pip install 'mercerless[table]'; until then text is "
                "left out, and words have only the mean target of equal ones."
            )
            if kind == "text" or not has_target:
                self.dropped_[column.name] = "holds text, which needs skrub"
                return kind, []
            return kind, [TargetMeans()]
        if kind == "words" and not has_target:
            return kind, [Text()]
        makers: dict[str, list[Part]] = {
            "number": [Numbers()],
            "order": [Ranks()],
            "category": [Levels()],
            "words": [TargetMeans(), Text()],
            "text": [Text()],
            "date": [Dates(parser)],
        }
        return kind, makers[kind]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def infer_kind(column: Column, parser: Any) -> str:
    """The kind of a column by its values; the rule is that of `TableEncoder`."""
    if column.kind != "word":
        return column.kind
    if column.has_order:
        return "order"
    words = [word for word in column.values if word is not None]
    n_distinct = len(set(words))
    if parser is not None:
        return "date"
    if n_distinct > MOST_LEVELS and words_as_numbers(column.values) is not None:
        return "number"
    if n_distinct > max(len(words) / 2, FEWEST_ROWS * 3):
        has_spaces = sum(" " in word.strip() for word in words) > len(words) / 2
        return "text" if has_spaces else "drop"
    return "category" if n_distinct <= MOST_LEVELS else "words"


def count_words(words: NDArray) -> tuple[list[Any], list[int]]:
    """Different words in the order of their first appearance, and how often each occurs."""
    counts: dict[Any, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return list(counts), list(counts.values())


def has_skrub() -> bool:
    """Whether skrub can be imported."""
    try:
        import skrub  # noqa: F401
    except ImportError:
        return False
    return True


def date_parser(column: Column) -> Any:
    """skrub's parser of the column's date strings; None if it has none, or without skrub."""
    words = [word for word in column.values if word is not None] if column.kind == "word" else []
    has_digits = all(any(letter.isdigit() for letter in word) for word in words[:50])
    if not words or column.has_order or not has_digits or not has_skrub():
        return None
    if words_as_numbers(objects(words)) is not None:  # 20140531 may be a number
        return None
    import pandas
    from skrub import ToDatetime

    series = pandas.Series(objects(words), dtype="str")
    parser = ToDatetime()
    try:
        parsed = parser.fit_transform(series)
    except ValueError:  # not dates
        return None
    return parser if parsed.notna().all() else None


def parse_dates(parser: Any, column: Column) -> NDArray:
    """Date strings as dates without time zone; NaT if they are missing or not in the format of the training rows."""
    import pandas

    series = pandas.Series(objects(column.values), dtype="str", name=column.name)
    parsed = parser.transform(series)
    if getattr(parsed.dtype, "tz", None) is not None:
        parsed = parsed.dt.tz_convert("UTC").dt.tz_localize(None)
    return parsed.to_numpy(dtype=DATE)
