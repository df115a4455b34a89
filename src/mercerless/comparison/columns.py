"""Roles of the columns of a table, and the preprocessing that every learner on them begins with."""

from collections.abc import Mapping
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from mercerless.comparison.limits import LIMITS, NAMES
from mercerless.core.optional import import_optional
from mercerless.core.validation import is_number_type

if TYPE_CHECKING:
    from pandas import DataFrame, Series


class PreparedTable(NamedTuple):
    """A table ready for learners.

    ``X`` is an array if every column is a number in every row, else a DataFrame that `preprocessor` turns into
    numbers. ``roles`` has for every column "number", "category" (or "category None" if that word is a level) or "date",
    with its format.
    """

    X: Any
    roles: dict[str, str]
    preprocessor: ColumnTransformer | None
    left_out: dict[str, str]  # why other columns are not used


class DateFeatures(TransformerMixin, BaseEstimator):
    """Dates as numbers: days since 1970, month, day of the week and hour; NaN for missing dates."""

    def fit(self, X: "DataFrame", y: Any = None) -> Self:
        """Count the columns; nothing else is learned."""
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: "DataFrame") -> NDArray:
        """Return four numbers per column."""
        pd = import_optional("pandas", "table", "Reading dates")
        numbers = []
        for _, column in X.items():
            dates = as_dates(column)
            days = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
            numbers += [days, dates.dt.month, dates.dt.day_of_week, dates.dt.hour]
        return np.column_stack([values.to_numpy(np.float64) for values in numbers])


def as_dates(column: "Series", form: str = "ISO8601") -> "Series":
    """Return a column as dates; other values become missing."""
    pd = import_optional("pandas", "table", "Reading dates")
    return pd.to_datetime(column, errors="coerce", utc=True, format=form)


def date_role(texts: "Series") -> tuple[str, str]:
    """Return the role "date", with its format unless that is ISO's, and the reason if the dates cannot be read.

    Both are '' for a column without dates. One format must suit all cells; if day and month cannot be distinguished,
    and it matters, there is no format.
    """
    if texts.str.match(r"\d{4}-\d{2}(-\d{2})?").all() and not as_dates(texts).isna().any():
        return "date", ""
    if not texts.str.contains(r"\d[/. ,-]").all():
        return "", ""
    days = (
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%d.%m.%Y",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%d/%m/%y",
        "%m/%d/%y",
        "%d.%m.%y",
        "%d %b %Y",
        "%d-%b-%Y",
        "%b %d, %Y",
        "%b %d %Y",
        "%d %B %Y",
        "%B %d, %Y",
        "%B %d %Y",
        "%d. %B %Y",
    )
    times = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
    forms = [day + time for day in days for time in times]
    read = {
        form: as_dates(texts, form)
        for form in forms
        if not as_dates(texts.iloc[:1], form).isna().any()
    }
    read = {form: dates for form, dates in read.items() if not dates.isna().any()}
    if not read:
        return "", ""
    first, *others = read.values()
    if any(not first.equals(other) for other in others):
        example = texts.iloc[int((first != others[0]).to_numpy().argmax())]
        reason = f"its dates, such as {example}, may begin with the day or the month"
        return "", f"{reason}; write them as 2020-12-31"
    return f"date {next(iter(read))}", ""


def date_format(role: str) -> str:
    """Return the format of a role "date"."""
    return role.removeprefix("date").strip() or "ISO8601"


def find_columns(frame: "DataFrame") -> PreparedTable:
    """Infer the roles of the columns of a table.

    Numbers are kept, missing ones imputed by the median beside a column that marks them; words become 0/1 columns and
    dates numbers. Columns that are empty, constant, or different in every row are left out.
    """
    roles = {}
    left_out = {}
    for name, column in frame.items():
        role, reason = _role(str(name), column)
        if reason:
            left_out[str(name)] = reason
        else:
            roles[str(name)] = role
    if not roles:
        shown = list(left_out.items())[:3]
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in shown)
        if len(left_out) > len(shown):
            reasons += f"; {len(left_out) - len(shown)} more"
        raise ValueError(f"There is no column to learn from ({reasons}).")
    X = coerce(frame, roles)
    if set(roles.values()) == {"number"} and not X.isna().any(axis=None):
        return PreparedTable(X.to_numpy(np.float64), roles, None, left_out)
    return PreparedTable(X, roles, make_preprocessor(roles), left_out)


def _role(name: str, column: "Series") -> tuple[str, str]:
    """Return the role of a column, and the reason to leave it out, or ''."""
    present = column.dropna()
    distinct = present.nunique()
    if distinct == 0:
        return "", "it is empty"
    if distinct == 1 and len(present) == len(column):
        value = shorten(str(present.iloc[0]), 40, placeholder=" ...")  # on one line
        return "", f"it is {value} in every row"
    if name.lower() in NAMES.numbering and distinct == len(column):
        return "", "it numbers or names the rows"
    if is_number_type(column.dtype):
        return "number", ""
    if column.dtype.kind == "M":
        return "date", ""
    role, reason = date_role(present.astype(str))
    if role or reason:
        return role, reason
    if distinct > len(column) / 2 and (
        distinct > LIMITS.categories or distinct == len(present) > 10
    ):
        if present.astype(str).str.fullmatch(r"[+-]?\d*\.?\d+").all():
            return "", "its numbers are text; convert them, such as with pandas.to_numeric"
        if _are_measures(present.astype(str)):
            example = shorten(str(present.iloc[0]), 40, placeholder=" ...")
            return "", f"its numbers have units or other marks ({example}); write the numbers alone"
        reason = f"it is text ({distinct} different in {len(column)} rows)"
        return "", f"{reason}, which --kind strings would compare"
    if (present.astype(str) == "None").any():
        return "category None", ""  # a level, so that new rows are read alike
    return "category", ""


def _are_measures(texts: "Series") -> bool:
    """Whether all cells are numbers with a short word before or behind them, such as "12.5 kg" or "$ 5"."""
    measure = r"(?:[^\d\s]{1,4} ?)?[+-]?\d[\d.,]*(?: ?[^\d\s]{1,4})?"
    return bool(texts.str.fullmatch(measure).all())


def coerce(frame: "DataFrame", roles: Mapping[str, str]) -> "DataFrame":
    """Return the columns in `roles`, in that order, each of the type of its role."""
    pd = import_optional("pandas", "table", "Reading tables")
    columns = {}
    for name, role in roles.items():
        column = frame[name]
        if role == "number":
            columns[name] = column.astype(np.float64)
        elif role.startswith("date"):
            is_read = column.dtype.kind == "M"
            columns[name] = column if is_read else as_dates(column, date_format(role))
        else:
            # pandas makes a column without any word one of floats
            columns[name] = column.astype(object).map(str, na_action="ignore").astype(object)
    return pd.DataFrame(columns)


def make_preprocessor(roles: Mapping[str, str]) -> ColumnTransformer:
    """Return the transformer that turns columns into numbers, to be fitted on training rows only."""
    numbers = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    words = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=LIMITS.categories, sparse_output=False
    )
    dates = make_pipeline(
        DateFeatures(), SimpleImputer(strategy="median", keep_empty_features=True)
    )
    steps = {"number": numbers, "category": words, "date": dates}
    named = {
        role: [name for name, kind in roles.items() if kind.split()[0] == role] for role in steps
    }
    return ColumnTransformer([(role, steps[role], named[role]) for role in steps if named[role]])
