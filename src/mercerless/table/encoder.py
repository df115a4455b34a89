"""A table as a matrix of numbers: gaps, categories, text and dates encoded, ids and constants dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import RidgeCV
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from mercerless.core.folds import Split, assign_folds, splits_of
from mercerless.core.validation import (
    align_columns,
    check_option,
    check_row_order,
    check_size,
    check_weight,
    validate_data,
    warn,
)
from mercerless.table.columns import (
    DATE,
    Column,
    as_frame,
    days,
    is_frame,
    read_table,
    spell_numbers,
)
from mercerless.table.views import Standard, first_of_copies

KINDS = ("number", "category", "words", "text", "date", "drop")
MOST_LEVELS = 30  # categories with more values have target means instead of 0/1 columns
FEWEST_ROWS = 3  # of a category with a 0/1 column
PRIOR_ROWS = 10.0  # by which target means are pulled to the mean of all
MANY_CLASSES = 20  # integer targets with more values are numbers


@dataclass(frozen=True)
class Training:
    """What the encoding of a column may use besides its values."""

    Y: NDArray | None  # targets around their means (n, q)
    weight: NDArray
    folds: Sequence[Split]  # for target means, each row once in a test part


class Part:
    """One way to encode a column. It knows the suffixes of its columns' names, and does not change after fit."""

    suffixes: Sequence[str]

    def fit(self, column: Column, training: Training) -> NDArray:
        """The columns of numbers (n, q) of the training rows."""
        raise NotImplementedError

    def transform(self, column: Column) -> NDArray:
        """Those of new rows."""
        raise NotImplementedError


class Numbers(Part):
    """Numbers with gaps at the median, and a mark of the gaps."""

    suffixes = ("", " is missing")

    def fit(self, column: Column, training: Training) -> NDArray:
        self.fill = np.nanmedian(column.as_numbers())
        return self.transform(column)

    def transform(self, column: Column) -> NDArray:
        values = column.as_numbers()
        gaps = np.isnan(values)
        return np.stack([np.where(gaps, self.fill, values), gaps], axis=1)


class Levels(Part):
    """A 0/1 column for every frequent value, and for gaps; other values have the shares of the training rows."""

    def fit(self, column: Column, training: Training) -> NDArray:
        counts = Counter(column.as_words())  # in the order of first appearance
        fewest = min(FEWEST_ROWS, max(counts.values()))
        self.levels = [word for word, count in counts.items() if count >= fewest]
        self.suffixes = [f" is {'missing' if word is None else word}" for word in self.levels]
        self.shares = np.zeros(len(self.levels))
        self.shares = self.transform(column).mean(axis=0)
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
        numbers = [""] if training.Y.shape[1] == 1 else range(1, training.Y.shape[1] + 1)
        self.suffixes = [f", mean target {k}".rstrip() for k in numbers]
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
        self.means = np.zeros((len(totals) + 1, Y.shape[1]))  # the last is that of unknown words
        for k, y in enumerate(Y.T):
            sums = np.bincount(number, weights=weight * y)
            self.means[:-1, k] = sums / (totals + PRIOR_ROWS)

    def _look_up(self, words: NDArray) -> NDArray:
        return self.means[[self.place.get(word, -1) for word in words]]


class Text(Part):
    """Components of the words' three- and four-letter pieces, by skrub's StringEncoder."""

    most_words = 5000  # of which components are learned
    most_letters = 500  # of a text; the rest is cut off

    def __init__(self, is_given: bool) -> None:
        self.is_given = is_given  # by `kinds`

    def learn(self, column: Column, n_components: int, random_state: int) -> None:
        """Learn the components."""
        from skrub import StringEncoder

        words = list(dict.fromkeys(self._read(column)))
        words = words[:: -(-len(words) // self.most_words)]
        n_components = min(n_components, len(words) - 1)
        self.encoder = StringEncoder(n_components, random_state=random_state)
        texts_may_be_alike = np.errstate(divide="ignore", invalid="ignore")
        with texts_may_be_alike, sklearn.config_context(transform_output="default"):
            self.encoder.fit(as_series(words))
            self.values: NDArray | None = self.transform(column)  # of training rows, until `fit`

    def explains(self, Y: NDArray) -> bool:
        """Whether `kinds` asks for it, or linear regression predicts left-out rows better than their mean does.

        Components of random sentences raise the log-loss of 15 tables of 400 rows by .011 +- .004.
        """
        regression = RidgeCV([1e-6], scoring="neg_mean_squared_error").fit(self.values, Y)
        return self.is_given or bool(-regression.best_score_ < Y.var(axis=0).mean())

    def fit(self, column: Column, training: Training) -> NDArray:
        assert self.values is not None
        values, self.values = self.values, None
        self.suffixes = [f" {i + 1}" for i in range(values.shape[1])]
        return values

    def transform(self, column: Column) -> NDArray:
        place: dict[str, int] = {}
        number = [place.setdefault(word, len(place)) for word in self._read(column)]
        return np.asarray(self.encoder.transform(as_series(list(place))), dtype=float)[number]

    def _read(self, column: Column) -> list[str]:
        return ["" if word is None else word[: self.most_letters] for word in column.as_words()]


class Dates(Part):
    """Days, year, month and weekday of dates or date strings, and sine and cosine of the season and the time of day."""

    suffixes = (
        *("", ", year", ", month", ", weekday", ", season sine", ", season cosine"),
        *(", time sine", ", time cosine", " is missing"),
    )

    def __init__(self, parser: Any = None) -> None:
        self.parser = parser  # of date strings

    def fit(self, column: Column, training: Training) -> NDArray:
        dates = self._read(column)
        known = dates[~np.isnat(dates)]
        self.is_ascending = bool(np.all(known[1:] >= known[:-1]))
        self.fill = np.sort(known)[len(known) // 2]
        return self.transform(column)

    def transform(self, column: Column) -> NDArray:
        dates = self._read(column)
        gaps = np.isnat(dates)
        dates = np.where(gaps, self.fill, dates)
        day = dates.astype("datetime64[D]")
        month = dates.astype("datetime64[M]")
        year = dates.astype("datetime64[Y]")
        season = 2.0 * np.pi * days(dates - year.astype(DATE)) / 365.25
        time = 2.0 * np.pi * days(dates - day.astype(DATE))
        columns = (
            days(dates),
            year.astype(int) + 1970,
            month.astype(int) % 12 + 1,
            (day.astype(int) + 3) % 7,  # Monday is 0
            np.sin(season),
            np.cos(season),
            np.sin(time),
            np.cos(time),
            gaps,
        )
        return np.stack(columns, axis=1)

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

    - numbers and dates by their type;
    - words that all spell dates are dates, and words that spell numbers (more than 30 different ones) are numbers;
    - words that hardly repeat (more different ones than half the rows) are text if most of them have several words,
      and otherwise ids, which are dropped;
    - up to 30 different words are categories, more are words.

    Numbers have gaps at the median and a column that marks them; categories a 0/1 column for every value; words have
    cross-fitted target means and, as text has, components of their letters by skrub; dates have days, year, month,
    weekday, and sine and cosine of the season. Constants and copies of columns are dropped, and components of text
    that do not explain the target (by leave-one-out), unless `kinds` asks for this text.

    A table is an array, a frame of pandas, polars or Arrow, or a list of dicts.

    Parameters
    ----------
    kinds : dict or None, default=None
        The kinds of columns by name ("x0", "x1", ... for an array), for those that should not be inferred: "number",
        "category", "words", "text", "date" or "drop".
    n_components : int, default=10
        Components of a column of text.
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
        kinds: Mapping[str, str] | None = None,
        *,
        n_components: int = 10,
        random_state: int = 0,
    ) -> None:
        self.kinds = kinds
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the encoding.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            The table.
        y : array-like of shape (n,) or None, default=None
            The targets, for target means; without them words have components only. Whole numbers of up to 20 different
            values are classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the rows in target means.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        self.fit_transform(X, y, sample_weight)
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
        check_row_order(X, y=y, sample_weight=sample_weight)
        columns = self.read_training(as_frame(X), has_target=y is not None)
        n = len(columns[0].values)
        Y, labels = None, None
        if y is not None:
            Y, labels = target_columns(np.asarray(y))
        self.learn_text(columns, Y)
        folds = splits_of(assign_folds(5, n, labels=labels, random_state=self.random_state))
        return self.learn(columns, Y, check_weight(sample_weight, n), folds)

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
        names = []
        for place, part in self._parts:
            names += [f"{self._names[place]}{suffix}" for suffix in part.suffixes]
        return np.array(names, dtype=object)[self._kept]

    @property
    def sources_(self) -> NDArray:
        """The column of the table from which every encoded column comes."""
        check_is_fitted(self)
        sources = [place for place, part in self._parts for _ in part.suffixes]
        return np.array(sources, dtype=int)[self._kept]

    def encode(self, X: Any) -> NDArray:
        """The encoded rows as an array, whatever output scikit-learn is set to."""
        check_is_fitted(self)
        X = align_columns(as_frame(X), self._names)
        columns = read_table(self._validated(X, reset=False))
        columns = [column._replace(name=name) for column, name in zip(columns, self._names)]
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

    def read_training(self, X: Any, has_target: bool = True) -> list[Column]:
        """The columns of training rows; sets the names of features, and how each column is encoded."""
        columns = read_table(self._validated(X, reset=True))
        for column in columns:
            if column.kind == "number":
                check_size(np.nan_to_num(column.values), f"Column {column.name!r} of X")
        self._names = [column.name for column in columns]
        for name, kind in (self.kinds or {}).items():
            check_option("kinds", kind, KINDS)
            if name not in self._names:
                raise ValueError(f"kinds names {name!r}, which is not a column of X.")
        self.kinds_: dict[str, str] = {}
        self.dropped_: dict[str, str] = {}
        self._parts: list[tuple[int, Part]] = []
        for place, column in enumerate(columns):
            self._parts += [(place, part) for part in self._parts_of(column, has_target)]
        if not self._parts:
            reasons = "; ".join(f"{name!r} {why}" for name, why in self.dropped_.items())
            raise ValueError(f"X has no column to learn from: {reasons}.")
        return columns

    def learn_text(self, columns: list[Column], Y: NDArray | None) -> None:
        """Learn components of text, and drop those that do not explain the target.

        Before folds are dealt: texts make equal rows different, and so part copies that folds keep together.
        """
        useless = []
        for place, part in self._parts:
            if isinstance(part, Text):
                part.learn(columns[place], self.n_components, self.random_state)
                if Y is not None and not part.explains(Y):
                    useless.append((place, part))
        if len(useless) == len(self._parts):
            return  # there is nothing else to learn from
        for pair in useless:
            self._parts.remove(pair)
        encoded = {place for place, _ in self._parts}
        for place, _ in useless:
            if place not in encoded:
                self.dropped_[self._names[place]] = "is text that does not explain the target"

    def learn(
        self, columns: list[Column], Y: NDArray | None, weight: NDArray, folds: Sequence[Split]
    ) -> NDArray:
        """Fit the parts of all columns; returns the encoded training rows."""
        if Y is not None:
            Y = Y - np.average(Y, axis=0, weights=weight)
        training = Training(Y, weight, folds)
        with sklearn.config_context(transform_output="default"):
            blocks = [part.fit(columns[place], training) for place, part in self._parts]
        A = np.hstack(blocks)
        units = Standard.fit(A)
        Z = np.empty_like(A)
        Z[:, units.order] = units(A)
        self._kept = np.arange(A.shape[1])
        sources = self.sources_
        self._kept = first_of_copies(Z)
        for place in np.setdiff1d(sources, self.sources_):
            self.dropped_[columns[place].name] = "is constant or a copy of another column"
        return A[:, self._kept]

    def _parts_of(self, column: Column, has_target: bool) -> Sequence[Part]:
        """How to encode a column; sets its kind, and the reason if it is dropped."""
        name = column.name
        parser = date_parser(column)
        kind = (self.kinds or {}).get(name) or infer_kind(column, parser)
        reason = None
        if kind == "drop" or column.is_missing.all():
            reason = "is empty" if column.is_missing.all() else "is dropped by kinds"
        elif kind == "id":
            reason = "has words that hardly repeat, as ids do"
            warn(
                f"Column {name!r} of X is left out: its words hardly repeat, as those of ids do, "
                f"such as {column.values[~column.is_missing][0]!r}. Convert numbers and dates with "
                "pandas.to_numeric or pandas.to_datetime (errors='coerce'); pass "
                f"kinds={{{name!r}: 'text'}} to use words, or 'drop' to silence this warning."
            )
        text = Text(name in (self.kinds or {}))
        parts: dict[str, Sequence[Part]] = {
            "number": [Numbers()],
            "category": [Levels()],
            "words": [TargetMeans(), text] if has_target else [text],
            "text": [text],
            "date": [Dates(parser)],
        }
        used = parts.get(kind, ())
        if kind in ("words", "text") and not has_skrub():
            warn(
                f"Column {name!r} of X holds text, and skrub, which encodes text and date "
                "strings, is not installed: pip install 'mercerless[table]'; until then text is "
                "left out, and words have only the mean target of equal ones."
            )
            used = used[:-1]
            reason = reason if used else "holds text, which needs skrub"
        self.kinds_[name] = "drop" if reason else kind
        if reason:
            self.dropped_[name] = reason
            return ()
        return used

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def target_columns(y: NDArray) -> tuple[NDArray, NDArray | None]:
    """Targets as columns of numbers, one for each class; and the labels of classes."""
    if y.ndim > 1:
        return y.reshape(len(y), -1).astype(float), None
    column = y[:, None]
    classes = np.unique(y)
    has_many_values = y.dtype.kind in "biuf" and len(classes) > MANY_CLASSES
    if has_many_values or type_of_target(y) == "continuous":
        return column.astype(float), None
    if len(classes) == 2:
        classes = classes[1:]
    return (column == classes).astype(float), y


def infer_kind(column: Column, parser: Any) -> str:
    """The kind of a column by its values; the rule is that of `TableEncoder`."""
    if column.kind != "word":
        return column.kind
    words = [word for word in column.values if word is not None]
    n_distinct = len(set(words))
    if parser is not None:
        return "date"
    if n_distinct > MOST_LEVELS and spell_numbers(words):
        return "number"
    if n_distinct > max(len(words) / 2, FEWEST_ROWS * 3):
        has_spaces = sum(" " in word.strip() for word in words) > len(words) / 2
        return "text" if has_spaces else "id"
    return "category" if n_distinct <= MOST_LEVELS else "words"


def has_skrub() -> bool:
    """Whether skrub can be imported."""
    try:
        import skrub  # noqa: F401
    except ImportError:
        return False
    return True


def as_series(words: Any) -> Any:
    """Words as a series of pandas."""
    import pandas

    return pandas.Series(list(words), name="text", dtype="str")


def date_parser(column: Column) -> Any:
    """skrub's parser of the column's date strings; None if it has none, or without skrub."""
    if column.kind != "word":
        return None
    words = column.values[~column.is_missing]
    has_digits = all(any(letter.isdigit() for letter in word) for word in words[:50])
    if not len(words) or not has_digits or not has_skrub():
        return None
    if spell_numbers(words):  # 20140531 may be a number
        return None
    from skrub import ToDatetime

    parser = ToDatetime()
    try:
        parsed = parser.fit_transform(as_series(words))
    except ValueError:  # not dates
        return None
    return parser if parsed.notna().all() else None


def parse_dates(parser: Any, column: Column) -> NDArray:
    """Date strings as dates without time zone; NaT if they are missing or not in the format of the training rows."""
    import pandas

    parsed = parser.transform(as_series(column.values))
    return pandas.to_datetime(parsed, utc=True).dt.tz_localize(None).to_numpy(dtype=DATE)
