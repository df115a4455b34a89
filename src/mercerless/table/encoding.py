"""Tables as they are: columns of words and missing values as numbers that a kernel can compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OrdinalEncoder

from mercerless.core.copies import Observations
from mercerless.core.folds import assign_folds, find_copies, join_groups
from mercerless.core.numerals import read_amount
from mercerless.core.optional import import_optional
from mercerless.core.scaling import standard_scaling
from mercerless.core.validation import (
    align_columns,
    check_real,
    holds_words,
    is_number_type,
    labels_of,
    warn,
)
from mercerless.lab.model import Rows, Settings
from mercerless.lab.selection import held_out_losses
from mercerless.table.small import mean_one


@dataclass(frozen=True)
class EncodingLimits:
    """When categories have columns, and how an encoding is chosen."""

    #: A column with more categories always has target statistics.
    most_indicators: int = 30
    #: Rows of a category, or of missing values, that has a column for itself.
    fewest_rows: int = 5
    #: A target statistic is pulled to the mean of all by so many rows.
    prior_rows: float = 10.0
    #: Folds of the target statistics of training rows.
    folds: int = 5
    #: Rows that give the median of columns without gaps.
    median_rows: int = 20_000
    #: Rows on which an encoding is chosen.
    choice_rows: int = 3000
    #: Target statistics must lower the error by this share of it ...
    gain: float = 0.03
    #: ... and by so many standard errors: rare categories with few held-out rows mislead otherwise.
    standard_errors: float = 2.0
    #: Rows from which on a warning follows if none of their words is known.
    strange_rows: int = 10
    #: Share of words that look like numbers from which on a warning follows.
    numbers_as_text: float = 0.9
    #: The code of a missing category ...
    missing: int = -2
    #: ... and of one that was not seen.
    unknown: int = -1


LIMITS = EncodingLimits()


class Columns(NamedTuple):
    """The columns of a table: which are categories, and their codes.

    Attributes
    ----------
    categories : ndarray of int
        The columns that are categories.
    encoder : OrdinalEncoder or None
        Their codes.
    of_frame : bool
        Whether new rows must be a data frame: it has categories, dates or durations.
    kinds : dict of int to str
        Of a data frame, what other columns hold: "number", "date", "zoned date", "duration", "order" (ordered
        categories) or "empty".
    orders : dict of int to list of str
        The values of columns of ordered categories, in their order.
    """

    categories: NDArray
    encoder: Any = None
    of_frame: bool = False
    kinds: dict[int, str] = {}  # noqa: RUF012, never changed
    orders: dict[int, list[str]] = {}  # noqa: RUF012

    def numbers(self, X: Any) -> NDArray:
        """All columns as numbers, those of categories as codes; NaN for missing numbers."""
        if is_frame(X):
            table = np.stack([self._column(X.iloc[:, j], j) for j in range(X.shape[1])], axis=1)
        elif self.encoder is None:
            table = X
        else:
            table = np.array(X, dtype=np.float64)
        if self.encoder is not None:
            words = _words(X, self.categories)
            table[:, self.categories] = self.encoder.transform(words)
            self._warn_of_strange_words(table, words, X)
        return check_real(table, allow_nan=True)

    def _column(self, column: Any, place: int) -> NDArray:
        """A column of a data frame as numbers: zeros for a category, whose codes come later."""
        kind = self.kinds.get(place, "number")
        if place in self.categories:
            return np.zeros(len(column))
        if kind == "empty":
            return np.full(len(column), np.nan)
        if kind == "order":
            return _ranks(column, self.orders[place])
        given = _kind(column)
        may_be_numbers = kind == "number" and given == "word"
        if self.kinds and given not in (kind, "empty") and not may_be_numbers:
            raise ValueError(
                f"Column {column.name!r} of X holds {_plural(given)}, but {_plural(kind)} when the "
                "model was fitted; convert it."
            )
        return _numbers(column)

    def _warn_of_strange_words(self, table: NDArray, words: NDArray, X: Any) -> None:
        """Warn if a column has no word of the training rows: most likely these are written in another way."""
        for place, j in enumerate(self.categories):
            known = self.encoder.categories_[place]
            has_known = np.any(table[:, j] >= 0)
            if has_known or len(known) > LIMITS.most_indicators:
                continue
            strange = [word for word in words[:, place] if word is not None and word == word]
            if len(strange) >= LIMITS.strange_rows:
                name = X.columns[j] if is_frame(X) else j
                warn(
                    f"No value of column {name!r} of X, such as {strange[0]!r}, was there when the "
                    f"model was fitted, such as {known[0]!r}; all count as unknown. Write them "
                    "alike if they mean the same."
                )


def as_frame(X: Any, columns: Sequence[Any] | None = None) -> Any:
    """A list of dicts, and a table of polars or Arrow, as a pandas data frame; anything else as it is.

    A key that a dict lacks is a missing value; `columns` are those of the training rows, which all dicts may lack.
    """
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(row, dict) for row in X):
        pandas = import_optional("pandas", extra="table", what="A list of dicts")
        frame = pandas.DataFrame(list(X))
        if columns is not None:
            lacking = [name for name in columns if name not in frame.columns]
            frame = frame.reindex(columns=[*frame.columns, *lacking])
        return frame
    if hasattr(X, "to_pandas") and not hasattr(X, "iloc"):
        return X.to_pandas()
    return X


def is_frame(X: Any) -> bool:
    """Whether X is a data frame with columns."""
    return hasattr(X, "iloc") and X.ndim == 2 and X.shape[1] > 0


def holds_more_than_numbers(X: Any) -> bool:
    """Whether X is a data frame with a column of words, categories, dates or other objects."""
    return is_frame(X) and not all(map(is_number_type, X.dtypes))


def read_columns(X: Any, categorical_features: Any) -> Columns:
    """The columns that are categories: by their type in a data frame, or as given by numbers, names or a mask."""
    chosen = _chosen(X, categorical_features)
    kinds = {}
    orders = {}
    if is_frame(X):
        others = [j for j in range(X.shape[1]) if j not in chosen]
        kinds = {j: _kind(X.iloc[:, j]) for j in others}
        kinds = {j: "number" if kind == "word" else kind for j, kind in kinds.items()}
        orders = {j: _order(X.iloc[:, j]) for j in others if kinds[j] == "order"}
        if isinstance(categorical_features, str):
            _warn_of_numbers_as_text(X, chosen)
    if len(chosen) == 0:
        holds_more = any(kind not in ("number", "empty") for kind in kinds.values())
        return Columns(chosen, None, holds_more, kinds, orders)
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=LIMITS.unknown,
        encoded_missing_value=LIMITS.missing,
        dtype=np.float64,
    )
    return Columns(chosen, encoder.fit(_words(X, chosen)), is_frame(X), kinds, orders)


def _chosen(X: Any, requested: Any) -> NDArray:
    if requested is None:
        return np.zeros(0, dtype=int)
    if isinstance(requested, str) and requested == "from_dtype":
        kinds = list(X.dtypes) if is_frame(X) else []
        return np.array(
            [j for j, kind in enumerate(kinds) if _is_category(kind, X.iloc[:, j])], dtype=int
        )
    if isinstance(requested, str) or not np.iterable(requested):
        raise ValueError(
            f"categorical_features={requested!r} is not known; use 'from_dtype', None, or a list "
            "of columns or a mask."
        )
    d = X.shape[1]
    chosen = np.asarray(list(requested))
    if chosen.dtype == bool and len(chosen) == d:
        return np.flatnonzero(chosen)
    if chosen.size and chosen.dtype.kind in "UO":
        names = list(map(str, getattr(X, "columns", ())))
        strange = [name for name in chosen if name not in names]
        if strange:
            raise ValueError(
                f"categorical_features names {str(strange[0])!r}, which is no column of X."
            )
        chosen = np.array([names.index(name) for name in chosen])
    if chosen.size and (chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= d):
        raise ValueError(
            f"categorical_features={requested!r} must be columns of X, which has {d}, or a mask of "
            "so many."
        )
    return np.unique(chosen.astype(int))


def _is_category(kind: Any, column: Any) -> bool:
    """Words are categories; so is the category type, unless its values have an order, which is a number."""
    if hasattr(kind, "categories"):
        return not kind.ordered
    return holds_words(column)


def _words(X: Any, columns: NDArray) -> NDArray:
    """Columns of categories: numbers of an array as they are, objects of a data frame as words or None."""
    if not is_frame(X):
        return np.asarray(X)[:, columns]
    out = np.empty((len(X), len(columns)), dtype=object)
    for place, j in enumerate(columns):
        missing = X.iloc[:, j].isna()
        out[:, place] = [None if gap else _word(value) for value, gap in zip(X.iloc[:, j], missing)]
    return out


def _word(value: Any) -> str:
    """1 and 1.0 are the same category: a gap makes a column of whole numbers one of floats."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _plural(kind: str) -> str:
    plurals = {"order": "categories", "zoned date": "dates with a time zone"}
    return plurals.get(kind, f"{kind}s")


def _kind(column: Any) -> str:
    """What a column of a data frame that is no category holds."""
    kind = column.dtype
    if hasattr(kind, "categories"):
        return "order"
    gaps = column.isna()
    if gaps.all():
        return "empty"
    mark = getattr(kind, "kind", "")
    if mark == "m":
        return "duration"
    if holds_words(column):
        return "word"
    is_date = mark == "M" or (
        mark == "O" and all(gap or isinstance(value, date) for value, gap in zip(column, gaps))
    )
    if not is_date:
        return "number"
    first = column[~gaps].iloc[0]
    has_zone = getattr(first, "tzinfo", None) is not None
    return "zoned date" if has_zone else "date"


def _order(column: Any) -> list[str]:
    """The values of a column of ordered categories, in their order."""
    return [_word(value) for value in column.cat.categories]


def _ranks(column: Any, order: list[str]) -> NDArray:
    """The places of values among the ordered categories of the training rows, whatever type the column has."""
    places = {word: float(place) for place, word in enumerate(order)}
    words = [None if gap else _word(value) for value, gap in zip(column, column.isna())]
    strange = next((word for word in words if word is not None and word not in places), None)
    if strange is not None:
        raise ValueError(
            f"Column {column.name!r} of X has {strange!r}, which is none of its ordered "
            "categories when the model was "
            f"fitted ({', '.join(order[:5])}{', ...' if len(order) > 5 else ''})."
        )
    return np.array([np.nan if word is None else places[word] for word in words])


def _warn_of_numbers_as_text(X: Any, columns: NDArray) -> None:
    """Warn of columns of words that are nearly all different and look like numbers."""
    for j in columns:
        column = X.iloc[:, j].dropna()
        if hasattr(column.dtype, "categories"):
            continue
        words = column.astype(str).unique()
        if len(words) <= max(LIMITS.most_indicators, len(X) / 2):
            continue
        numbers = [word for word in words if read_amount(word) is not None]
        if len(numbers) >= LIMITS.numbers_as_text * len(words):
            warn(
                f"Column {X.columns[j]!r} of X holds numbers as text, such as {numbers[0]!r}, "
                "which are used as categories; convert it to numbers, or leave it out."
            )


def _numbers(column: Any) -> NDArray:
    """A column of numbers, dates or durations of a data frame as numbers; dates are days."""
    kind = column.dtype
    mark = getattr(kind, "kind", "")
    if mark in "mM":
        unit = "datetime64[us]" if mark == "M" else "timedelta64[us]"
        return _days(np.asarray(column, dtype=unit))
    if mark == "c":
        raise ValueError(
            f"Column {column.name!r} of X is complex (Complex data not supported); pass its real "
            "part or its modulus."
        )
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        values = [None if gap else value for value, gap in zip(column, column.isna())]
    if all(value is None or isinstance(value, date) for value in values):
        return _days(np.array([_in_utc(value) for value in values], dtype="datetime64[us]"))
    raise ValueError(
        f"Column {column.name!r} of X has type {kind}, which is neither numbers nor dates; convert "
        "it, or name it in categorical_features."
    )


def _in_utc(value: Any) -> Any:
    """A date without its time zone, if it has one."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(UTC).replace(tzinfo=None)


def _days(times: NDArray) -> NDArray:
    """Dates or durations as numbers of days."""
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 86_400e6)


class Category(NamedTuple):
    """A column of categories as numbers: a 0/1 column for some of them, and the mean targets of all."""

    column: int
    indicators: NDArray  # the codes that have a column
    codes: NDArray  # that have a target statistic
    means: NDArray  # (n_codes + 1, n_statistics): of every code, and of none of them
    pair: NDArray = np.zeros(0)  # both codes, if one column tells two categories apart
    share: float = 0.0  # of the second of these: the value of a code that is neither

    def __call__(self, values: NDArray) -> NDArray:
        place = np.searchsorted(self.codes, values)
        place = np.where(np.isin(values, self.codes), place, len(self.codes))
        indicators = (values[:, None] == self.indicators).astype(np.float64)
        if len(self.pair):
            indicators[~np.isin(values, self.pair)] = self.share
        return np.hstack([indicators, self.means[place]])


class Encoding(NamedTuple):
    """A table of numbers, codes and gaps as numbers without gaps; called with rows.

    Attributes
    ----------
    columns : Columns
        The types of the columns.
    numbers : ndarray of int
        The columns of numbers; columns without any observed value are dropped.
    fill : ndarray
        The value for missing numbers: the median.
    marks : ndarray of int
        The columns of numbers with a 0/1 column that marks missing ones.
    mark_of : ndarray of int
        For every column of numbers the place of its mark among these, -1 if it has none.
    categories : list of Category
        The other columns.
    names : list of str
        The names of the encoded columns.
    """

    columns: Columns
    numbers: NDArray
    fill: NDArray
    marks: NDArray
    mark_of: NDArray
    categories: list[Category]
    names: list[str]

    @property
    def is_plain(self) -> bool:
        """Whether every column is a number and none is marked or left out."""
        return not (self.categories or len(self.marks) or self.columns.encoder) and len(
            self.numbers
        ) == len(self.fill)

    def gaps(self, X: NDArray) -> NDArray:
        """Which values of encoded rows were missing, of the columns that have marks."""
        return X[:, len(self.numbers) : len(self.numbers) + len(self.marks)] > 0

    def __call__(self, X: Any) -> NDArray:
        """The numbers of a table as it was given to fit."""
        return self.encode(self.columns.numbers(X))

    def encode(self, table: NDArray, training: "Sequence[NDArray] | None" = None) -> NDArray:
        """The numbers of a table of numbers and codes; `training` has the target statistics of training rows."""
        if self.is_plain and not np.isnan(table.sum()):
            return table
        gaps = np.isnan(table)
        filled = np.where(gaps, self.fill, table)
        blocks = [filled[:, self.numbers], gaps[:, self.marks].astype(table.dtype)]
        for i, category in enumerate(self.categories):
            block = category(table[:, category.column])
            if training is not None:
                block[:, len(category.indicators) :] = training[i]
            blocks.append(block)
        return np.hstack(blocks)


class TableReader(NamedTuple):
    """Reads new rows for a machine behind an encoding: columns of a data frame by name, in any order."""

    encoding: Encoding
    labels: list[str] | None  # of the columns given to fit

    def __call__(self, X: Any) -> NDArray:
        X = align_columns(as_frame(X, self.labels), self.labels)
        given = labels_of(X)
        lacking = []
        if given is not None and self.labels is not None:
            is_numbered = given == [str(j) for j in range(len(given))]
            lacking = [name for name in self.labels if name not in given and not is_numbered]
        if lacking:
            raise ValueError(f"X lacks the column {lacking[0]!r}, which it had in fit; add it.")
        if self.encoding.columns.of_frame and not is_frame(X):
            raise ValueError(
                "The model was fitted on a data frame with categories or dates; pass a data frame."
            )
        n_columns = np.shape(X)[1] if np.ndim(X) == 2 else None
        n_known = len(self.encoding.fill)
        if n_columns is not None and n_columns != n_known:
            raise ValueError(f"X has {n_columns} columns, but {n_known} were seen in fit.")
        return self.encoding(X)


class TreeColumns(NamedTuple):
    """Scaled rows for trees: marked gaps are missing again, and a category's indicators are one column of codes.

    Scaled around its mean, a 0/1 column is positive where it was 1.
    """

    # for every column of numbers the column of its mark, -1 for none
    mark_of: NDArray = np.zeros(0, dtype=int)
    # the first column of every category, and the first that is not its own
    blocks: Sequence[tuple[int, int]] = ()
    folded: Sequence[bool] = ()  # whether these are several indicators

    @property
    def categories(self) -> list[int]:
        """The columns of codes."""
        widths = [
            1 if folded else end - start for (start, end), folded in zip(self.blocks, self.folded)
        ]
        starts = len(self.mark_of) + np.cumsum([0, *widths])
        return [int(start) for start, folded in zip(starts, self.folded) if folded]

    def __call__(self, Z: NDArray) -> NDArray:
        k = len(self.mark_of)
        marked = np.flatnonzero(self.mark_of >= 0)
        if not (len(marked) or any(self.folded)):
            return Z
        numbers = Z[:, :k].copy()
        numbers[:, marked] = np.where(Z[:, self.mark_of[marked]] > 0, np.nan, numbers[:, marked])
        columns = [numbers]
        for (start, end), folded in zip(self.blocks, self.folded):
            block = Z[:, start:end]
            codes = np.where((block > 0).any(axis=1), block.argmax(axis=1), end - start)[:, None]
            columns.append(codes.astype(Z.dtype) if folded else block)
        return np.hstack(columns)


def tree_columns(encoding: Encoding) -> TreeColumns:
    """The columns for trees, of the rows of an encoding."""
    k = len(encoding.numbers)
    widths = [
        len(category.indicators) + category.means.shape[1] for category in encoding.categories
    ]
    ends = k + len(encoding.marks) + np.cumsum([0, *widths])
    blocks = [(int(start), int(end)) for start, end in pairwise(ends)]
    mark_of = np.where(encoding.mark_of < 0, -1, k + encoding.mark_of)
    return TreeColumns(
        mark_of, blocks, [len(category.indicators) > 1 for category in encoding.categories]
    )


def fit_encoding(
    table: NDArray, columns: Columns, Y: NDArray, weight: NDArray, choice: str, names: Sequence[str]
) -> Encoding:
    """How to encode a table of numbers and codes; `choice` is "indicators" or "targets" (target statistics).

    A column with more than 30 categories always has target statistics: the means of the standardized targets of its
    rows, pulled to that of all by ten rows.
    """
    d = table.shape[1]
    numbers = np.setdiff1d(np.arange(d), columns.categories)
    gaps = _gaps(table, numbers)
    if len(numbers) and gaps.shape[1]:
        known = ~gaps.all(axis=0)
        numbers = numbers[known]
        gaps = gaps[:, known]
    if len(numbers) + len(columns.categories) == 0:
        raise ValueError("Every value of X is missing; there is nothing to learn from.")
    fill = np.zeros(d)
    sample = table
    if gaps.shape[1] == 0:  # rows may be sorted: from all parts of the table
        sample = table[:: -(-len(table) // LIMITS.median_rows)]
    fill[numbers] = np.nanmedian(sample[:, numbers], axis=0)
    places = numbers[:0]
    mark_of = np.full(len(numbers), -1)
    if gaps.shape[1]:  # columns that are missing together have one mark
        _, first, pattern = np.unique(gaps, axis=1, return_index=True, return_inverse=True)
        firsts = first[pattern.ravel()]
        places = np.unique(firsts[gaps.sum(axis=0) >= LIMITS.fewest_rows])
        mark_of = np.where(np.isin(firsts, places), np.searchsorted(places, firsts), -1)
    marks = numbers[places]
    categories = [_fit_category(table[:, j], int(j), Y, weight, choice) for j in columns.categories]
    names = _names(names, numbers, marks, categories, columns)
    return Encoding(columns, numbers, fill, marks, mark_of, categories, names)


def _gaps(table: NDArray, numbers: NDArray) -> NDArray:
    """Where numbers are missing; no columns if none are."""
    if np.isnan(table.sum()):
        return np.isnan(table[:, numbers])
    return np.zeros((len(table), 0), dtype=bool)


def _fit_category(
    values: NDArray, column: int, Y: NDArray, weight: NDArray, choice: str
) -> Category:
    codes, counts = np.unique(values, return_counts=True)
    indicators = codes[counts >= min(LIMITS.fewest_rows, counts.max())]
    if (choice == "targets" and len(codes) > 2) or len(codes) > LIMITS.most_indicators:
        return Category(column, indicators[:0], codes, _means(values, codes, Y, weight))
    no_means = np.zeros((1, 0))
    if len(codes) == 2:
        share = float(np.average(values == codes[1], weights=weight))
        return Category(column, codes[1:], codes[:0], no_means, pair=codes, share=share)
    return Category(column, indicators, codes[:0], no_means)


def _means(values: NDArray, codes: NDArray, Y: NDArray, weight: NDArray) -> NDArray:
    """The mean targets of the rows of every code, pulled to the mean of all; the last line is that mean."""
    w = weight * (len(Y) / weight.sum())
    mean = w @ Y / w.sum()
    place = np.searchsorted(codes, values)
    totals = np.bincount(place, weights=w, minlength=len(codes))
    deviations = (Y - mean).T
    sums = [np.bincount(place, weights=w * y, minlength=len(codes)) for y in deviations]
    shrunk = np.stack(sums, axis=1) / (totals + LIMITS.prior_rows)[:, None]
    return np.vstack([mean + shrunk, mean])


def training_statistics(
    encoding: Encoding, table: NDArray, Y: NDArray, weight: NDArray, together: NDArray, seed: int
) -> list[NDArray]:
    """The target statistics of training rows, each from the other folds, so that no row sees its own target.

    Rows with the same number in `together` are in one fold.
    """
    fold = assign_folds(LIMITS.folds, len(Y), together=together, random_state=seed)
    out = []
    for category in encoding.categories:
        values = table[:, category.column]
        statistics = np.zeros((len(Y), category.means.shape[1]))
        for k in np.unique(fold) if statistics.shape[1] else ():
            others = fold != k
            here = fold == k
            if not others.any():
                statistics[here] = category.means[-1]
                continue
            codes = np.unique(values[others])
            means = _means(values[others], codes, Y[others], weight[others])
            of_others = category._replace(indicators=codes[:0], codes=codes, means=means)
            statistics[here] = of_others(values[here])
        out.append(statistics)
    return out


def _names(
    given: Sequence[str],
    numbers: NDArray,
    marks: NDArray,
    categories: Sequence[Category],
    columns: Columns,
) -> list[str]:
    names = [given[j] for j in numbers] + [f"{given[j]} is missing" for j in marks]
    for place, category in enumerate(categories):
        words = columns.encoder.categories_[place]
        for code in category.indicators:
            word = "missing"
            if code != LIMITS.missing:
                word = words[int(code)]
            names.append(f"{given[category.column]} is {word}")
        q = category.means.shape[1]
        names += [
            f"{given[category.column]}, mean target" + (f" {k + 1}" if q > 1 else "")
            for k in range(q)
        ]
    return names


def encode_table(
    table: NDArray,
    columns: Columns,
    Y: NDArray,
    weight: NDArray,
    groups: NDArray | None,
    names: Sequence[str],
    random: np.random.RandomState,
) -> tuple[Encoding, NDArray]:
    """The encoding with the smaller held-out error, and the training rows by it.

    Target statistics replace indicators if a small model clearly gains by them. Equal rows with equal targets are one
    row with the sum of their weights.
    """
    has_gaps = bool(np.isnan(table.sum()))
    if columns.encoder is None and not has_gaps:
        encoding = fit_encoding(table, columns, Y, weight, "indicators", names)
        return encoding, encoding.encode(table)
    copies = find_copies(table)
    observed = Observations.of(copies, Y)
    values = observed.take(table)
    targets = observed.take(Y)
    weight = observed.total(weight)
    if columns.encoder is None:
        encoding = fit_encoding(values, columns, targets, weight, "indicators", names)
        return encoding, encoding.encode(table)
    if groups is not None:
        together = observed.take(join_groups(groups, copies))
    else:
        together = observed.take(copies)
    seed = random.randint(2**31 - 1)
    encoding, rows = _choose_encoding(
        values, columns, targets, weight, observed.take(copies), together, names, seed
    )
    return encoding, observed.spread(rows)


def _choose_encoding(
    table: NDArray,
    columns: Columns,
    Y: NDArray,
    weight: NDArray,
    copies: NDArray,
    together: NDArray,
    names: Sequence[str],
    seed: int,
) -> tuple[Encoding, NDArray]:
    """Indicators or target statistics of categories, and the rows by these.

    Rows with the same number in `copies` are equal, and those with the same number in `together` stay in one fold.
    """

    def encoded(choice: str) -> tuple[Encoding, NDArray]:
        encoding = fit_encoding(table, columns, Y, weight, choice, names)
        statistics = training_statistics(encoding, table, Y, weight, together, seed)
        return encoding, encoding.encode(table, statistics)

    by_indicators = encoded("indicators")
    by_targets = encoded("targets")
    if by_indicators[0].names == by_targets[0].names:
        return by_indicators
    distinct = np.unique(copies, return_index=True)[1]
    order = np.random.RandomState(seed).permutation(distinct)
    sample = np.sort(order[: LIMITS.choice_rows])
    samples = []
    for _, Z in (by_indicators, by_targets):
        scaled = standard_scaling(Z)(Z[sample])
        samples.append(Rows(scaled, Y[sample], mean_one(weight[sample])))
    if _has_smaller_losses(samples[1], samples[0], seed):
        return by_targets
    return by_indicators


def _has_smaller_losses(new: Rows, usual: Rows, seed: int) -> bool:
    """Whether a small model of the new rows clearly has the smaller losses, each third held out.

    Further thirds are looked at only while the new rows are ahead.
    """
    settings = Settings(seed=seed)
    usual_losses = np.zeros(0)
    gains = np.zeros(0)
    for third in range(3):
        losses = held_out_losses("gaussian", usual, settings, third)
        gain = losses - held_out_losses("gaussian", new, settings, third)
        usual_losses = np.append(usual_losses, losses)
        gains = np.append(gains, gain)
        if gains.mean() <= LIMITS.gain * usual_losses.mean():
            return False
    standard_error = gains.std() / np.sqrt(len(gains))
    return bool(gains.mean() > LIMITS.standard_errors * standard_error)
