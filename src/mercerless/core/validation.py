"""Check inputs before any work is done; every message states in one sentence what is wrong and what to do."""

import sys
import warnings
from collections.abc import Iterable
from copy import copy
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils import check_random_state as check_legacy_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data as check_data

from mercerless.core.memory import row_blocks
from mercerless.core.optional import import_optional

#: Asymmetry, relative to the largest entry, that is taken for rounding.
SYMMETRY_RTOL = 1e-8


def is_rounding(asymmetry: float, dtype: DTypeLike = np.float64) -> bool:
    """Whether an asymmetry, relative to the largest entry, is no more than rounding in this type."""
    tolerance = 1e-5 if dtype == np.float32 else SYMMETRY_RTOL
    return asymmetry <= tolerance


def check_readable(A: Any, name: str = "X") -> None:
    """Raise for masked entries, whose hidden numbers NumPy would read, and for words in a table of another package."""
    if hasattr(A, "to_pandas") and np.asarray(A).dtype.kind not in "biuf" and np.ndim(A) == 2:
        raise ValueError(
            f"{name} is not a pandas table and holds more than numbers; pass {name}.to_pandas()."
        )
    if isinstance(A, np.ma.MaskedArray) and np.ma.is_masked(A):
        raise ValueError(
            f"{name} has masked entries, and what is beneath the mask would count; pass "
            f"{name}.filled(np.nan) if gaps are allowed, or leave these rows out."
        )


def validate_data(
    estimator: Any, X: Any, *args: Any, own: bool | None = None, **options: Any
) -> Any:
    """scikit-learn's check, after our own checks of input that it would misread.

    Columns of new rows are matched by name (see `align_columns`). With `own`, the rows are the model's own (see
    `own_copy`). By default training rows are the model's own, except a matrix of comparisons, which no model keeps.
    """
    for A, name in zip((X, *args), ("X", "y")):
        check_readable(A, name)
    for y in args:
        _check_words_of_labels(y)
    is_training = options.get("reset", True)
    if is_training:
        _check_unique_columns(X)
    else:
        X = align_columns(X, column_labels(estimator))
    try:
        checked = check_data(estimator, X, *args, **options)
    except ValueError as error:
        if "could not convert string to float" in str(error):
            name = type(estimator).__name__
            raise ValueError(_sentence_about_words(name, X, *args)) from None
        if "Found array with dim" in str(error):
            raise ValueError(
                f"{error} Pass X.reshape(len(X), -1), or kernel='dtw' for series of channels."
            ) from None
        if "inhomogeneous" in str(error) or "setting an array element" in str(error):
            raise ValueError(
                "The items of X have different lengths; pass kernel='dtw' to compare series, or a "
                "function of two items."
            ) from None
        if (
            not is_training
            and "features, but" in str(error)
            and get_tags(estimator).input_tags.pairwise
        ):
            raise ValueError(
                f"X has {np.shape(X)[1]} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input: one row for each new item, and "
                f"one column for each of the {estimator.n_features_in_} training items."
            ) from None
        raise
    except TypeError as error:
        if type(error).__name__ == "DTypePromotionError":
            raise TypeError(
                "X holds dates or durations beside numbers; turn them into numbers, such as days, "
                "or pass the data frame to TableClassifier or TableRegressor."
            ) from None
        raise
    if own is None:
        own = is_training and not get_tags(estimator).input_tags.pairwise
    if is_training and own:
        _warn_of_distances(estimator, checked[0] if isinstance(checked, tuple) else checked)
    if not own or options.get("skip_check_array", False):
        return checked
    if isinstance(checked, tuple):
        return own_copy(checked[0], X), *checked[1:]
    return own_copy(checked, X)


def _sentence_about_words(name: str, X: Any, y: Any = None) -> str:
    """What to do if X or y cannot be read as numbers."""
    word = _first_word(X)
    if word is None:
        word = _first_word(y)
        return (
            f"y holds words, such as {word!r}, and {name} predicts numbers; use a classifier for "
            "classes."
        )
    remedy = "encode them, or pass a data frame to TableClassifier or TableRegressor"
    if np.ndim(X) == 1:
        remedy = "pass kernel='levenshtein' to compare strings"
    return f"X holds words, such as {word!r}, and {name} reads numbers from it; {remedy}."


def _first_word(values: Any) -> str | None:
    """The first string that is no number."""
    for value in np.asarray(values, dtype=object).ravel():
        try:
            float(value)
        except ValueError:
            return str(value)
        except TypeError:
            continue
    return None


def labels_of(table: Any, axis: str = "columns") -> list[str] | None:
    """The labels of a data frame's rows ("index") or columns as strings; None for anything else."""
    is_frame = hasattr(table, "iloc") and hasattr(table, "columns")
    return list(map(str, getattr(table, axis))) if is_frame else None


def column_labels(estimator: Any) -> list[str] | None:
    """Labels of the columns that an estimator was fitted on, None if there were none."""
    labels = getattr(estimator, "_column_labels", None)
    if labels is None:
        labels = getattr(estimator, "feature_names_in_", None)
    if labels is None:
        return None
    return list(map(str, labels))


def align_columns(X: Any, known: list[str] | None, name: str = "X") -> Any:
    """The columns of a data frame that have these labels, in their order; X as it is if it lacks one of them.

    Labels that merely number the columns do not count as labels.
    """
    given = labels_of(X)
    if known is None or given is None or given == known:
        return X
    merely_numbers = given == list(map(str, range(len(known))))
    if merely_numbers or not set(known) <= set(given):
        return X
    position = {label: i for i, label in enumerate(given)}
    if len(position) < len(given):
        repeated = sorted(label for label in set(known) if given.count(label) > 1)
        if repeated:
            _raise_repeated(repeated[0], given.count(repeated[0]), name)
    return X.iloc[:, [position[label] for label in known]]


def named_matrix(X: Any) -> Any:
    """A matrix of another package that knows the names of its items, as skbio's, as a data frame; else X."""
    return X.to_data_frame() if hasattr(X, "to_data_frame") and hasattr(X, "ids") else X


def align_matrix(X: Any, may_cut: bool) -> Any:
    """A data frame of comparisons with its columns in the order of its rows, if both have names.

    If it `may_cut`, columns of further items are left out. Labels that number positions are ignored.
    """
    X = named_matrix(X)
    rows = labels_of(X, "index")
    columns = labels_of(X)
    if rows is None or columns is None or rows == columns:
        return X
    _check_unique_columns(X)
    numbered = [type(axis).__name__ == "RangeIndex" for axis in (X.index, X.columns)]
    is_other_order = len(rows) == len(columns) and len(set(rows)) == len(rows)
    if any(numbered) or not (is_other_order or (may_cut and len(rows) < len(columns))):
        return X
    return align_columns(X, rows)


def _check_unique_columns(X: Any) -> None:
    """Raise if columns of a data frame share a label."""
    labels = labels_of(X)
    if labels is not None and len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        _raise_repeated(repeated, labels.count(repeated), "X")


def _raise_repeated(label: str, number: int, name: str) -> None:
    raise ValueError(
        f"{name} has {number} columns of the name {label!r}; give each a name of its own, or pass "
        f"{name}.to_numpy() to go by position."
    )


def own_copy(rows: NDArray, given: Any) -> NDArray:
    """Checked rows that a model may keep: a copy if they share memory with what the user gave and may change later.

    Of items, arrays and plain containers are copied; other objects are kept, as their identity may matter. A memory map
    is not copied: it may be larger than the memory.
    """
    if isinstance(given, np.memmap):
        return rows
    if rows.dtype == object:
        changeable = (np.ndarray, list, dict, set, bytearray)
        items = np.empty_like(rows)
        for place, item in np.ndenumerate(rows):
            items[place] = copy(item) if type(item) in changeable else item
        return items
    is_view = not rows.flags.owndata
    if is_view or (hasattr(given, "__array__") and np.may_share_memory(rows, np.asarray(given))):
        return rows.copy(order="K")
    return rows


def _warn_of_distances(estimator: Any, X: Any) -> None:
    """Warn if a table of features looks like a matrix of distances."""
    is_square = isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[0] == X.shape[1] > 2
    if not is_square or np.any(np.diagonal(X)) or not (X.min() >= 0.0 < X.max()):
        return
    if not is_rounding(relative_asymmetry(X), X.dtype):
        return
    warn(
        f"X looks like the distances of {len(X)} items (symmetric, nonnegative, zeros on the "
        f"diagonal) but {type(estimator).__name__} reads it as a table of features; if these are "
        "distances, use SimilarityClassifier or SimilarityRegressor with kernel='precomputed'."
    )


def check_row_order(X: Any, *values: Any) -> None:
    """Raise if values of rows have the labels of the rows of X in another order; everything is read by position.

    Parameters
    ----------
    X : object
        The rows: a data frame, a series of items, or a dict or list of data frames of the same rows.
    *values : object
        Targets, weights or groups, one for each row; only those with a pandas index are looked at.
    """
    rows = None
    for given in values:
        if not hasattr(given, "iloc") or not hasattr(getattr(given, "index", None), "get_indexer"):
            continue
        if rows is None:
            rows = _row_labels(X)
        labels = given.index
        if rows is None or len(rows) != len(labels) or not labels.is_unique or rows.equals(labels):
            continue
        positions = np.asarray(labels.get_indexer(rows))
        if np.any(positions < 0) or np.array_equal(positions, np.arange(len(positions))):
            continue
        name = getattr(given, "name", None)
        name = "the values" if name is None else repr(name)
        raise ValueError(
            f"X and {name} have the same row labels in different orders; pass y.loc[X.index] to go by "
            "label, or y.to_numpy() to go by position (the same for weights and groups)."
        )


def _row_labels(X: Any) -> Any:
    """The pandas index of a table or series, or of the first one in a dict or list of tables; unique, or None."""
    tables = [X]
    if isinstance(X, dict):
        tables = list(X.values())
    elif isinstance(X, (list, tuple)):
        tables = [table for table in X if len(getattr(table, "shape", ())) == 2]
    for table in tables:
        index = getattr(table, "index", None)
        if hasattr(table, "iloc") and hasattr(index, "get_indexer"):
            return index if index is not None and index.is_unique else None
    return None


def check_matrix(X: Any, name: str = "X") -> None:
    """Raise if a matrix of comparisons, as it was given, is condensed or has missing entries."""
    check_not_condensed(X, name)
    if not hasattr(X, "__array__"):
        return
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind != "f":
        return
    missing = ~np.isfinite(array)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise ValueError(
            f"{name} has {missing.sum()} comparisons that are NaN or infinite, the first in row "
            f"{row}, column {column}; compare these items again, leave out their rows and columns, or put "
            "mercerless.spectra.GapFiller() before the estimator."
        )


def check_not_condensed(X: Any, name: str = "X") -> None:
    """Raise if X is a vector as long as the distances that `scipy.spatial.distance.pdist` gives."""
    if not (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind == "f"):
        return
    n_items = int(np.ceil(np.sqrt(2 * len(X))))
    if len(X) > 1 and n_items * (n_items - 1) // 2 == len(X):
        raise ValueError(
            f"{name} has one dimension, like the distances of {n_items} items that pdist gives; "
            f"pass scipy.spatial.distance.squareform({name}) with kernel='precomputed', or "
            f"{name}.reshape(-1, 1) if it is one feature."
        )


def check_random_state(random_state: Any) -> np.random.RandomState:
    """scikit-learn's check; None never means the global generator, and a Generator seeds what is returned."""
    if random_state is None:
        return np.random.RandomState()
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.integers(2**32 - 1))
    return check_legacy_random_state(random_state)


def check_real(A: ArrayLike, name: str = "X", *, allow_nan: bool = False) -> NDArray:
    """A finite, real, non-empty, two-dimensional array, itself if it is one: float32 is kept, all else becomes float64.

    With `allow_nan`, NaN marks missing entries; infinite entries raise in any case.
    """
    if hasattr(A, "toarray"):
        raise TypeError(
            f"{name} is a sparse matrix; pass a dense array, for example {name}.toarray()."
        )
    check_readable(A, name)
    array = np.asarray(A)
    if array.dtype.kind == "c":
        raise ValueError(
            f"{name} is complex (Complex data not supported); pass its real part or its modulus."
        )
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name} has dtype {array.dtype} and cannot be read as numbers ({error}); pass a "
                "numeric array."
            ) from None
    if array.ndim != 2:
        remedy = f"{name}.reshape(1, -1) for one row or {name}.reshape(-1, 1) for one column"
        if array.ndim > 2:
            remedy = f"{name}.reshape(len({name}), -1), or kernel='dtw' for series of channels"
        raise ValueError(
            f"{name} must be two-dimensional, not {array.ndim}-dimensional; use {remedy}."
        )
    if array.size == 0:
        raise ValueError(
            f"{name} has shape {array.shape} and so no entries; pass at least one row and one "
            "column."
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    # A finite sum proves all entries finite without a temporary; otherwise look closely.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum())
    if suspicious:
        missing = int(np.isnan(array).sum())
        infinite = int(np.isinf(array).sum())
        if infinite or (missing and not allow_nan):
            raise ValueError(
                f"{name} has {missing} NaN and {infinite} infinite entries out of {array.size}; "
                "remove those rows or replace the values first."
            )
    return array


def is_number_type(dtype: Any) -> bool:
    """Whether a column of this type holds real numbers or truth values, in NumPy's, pandas' or Arrow's memory."""
    types = import_optional("pandas", "table", "Reading tables").api.types
    if hasattr(dtype, "categories") or types.is_complex_dtype(dtype):
        return False
    return bool(types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype))


def as_items(X: Any) -> NDArray:
    """Items in the order given, whatever labels they carry: a numeric table as it is, else one object per entry.

    The entries of a list, tuple or series are not looked into.
    """
    if hasattr(X, "toarray"):
        raise TypeError(
            "X is a sparse matrix; pass a dense array, X.toarray(), or the list of its rows."
        )
    check_readable(X)
    if isinstance(X, (str, bytes, set, frozenset, dict)) or not (
        hasattr(X, "__len__") and hasattr(X, "__iter__")
    ):
        raise ValueError(
            f"X must be a sequence of items (strings, series, rows), not {type(X).__name__}."
        )
    if len(X) == 0:
        raise ValueError("There are no items in X; pass at least one.")
    if hasattr(X, "iloc") and len(X.shape) == 2:  # a data frame
        numeric = all(map(is_number_type, X.dtypes))
        X = (
            X.to_numpy(dtype=np.float64, na_value=np.nan)
            if numeric
            else [X.iloc[i] for i in range(len(X))]
        )
    elif hasattr(X, "__array__"):
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and (
        (X.ndim == 1 and X.dtype == object) or (X.ndim == 2 and X.dtype.kind in "biuf")
    ):
        return X
    items = np.empty(len(X), dtype=object)
    for i, item in enumerate(X):  # one by one: NumPy would look into a list of equally long items
        items[i] = item
    return items


def check_square(K: ArrayLike, name: str = "K", *, allow_nan: bool = False) -> NDArray:
    """A finite, real, square floating array; with `allow_nan`, NaN marks missing entries."""
    K = check_real(K, name, allow_nan=allow_nan)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{name} must be square (one row and one column per training item), not of shape "
            f"{K.shape}; pass the similarities of all training items to each other."
        )
    return K


def largest_entry(K: NDArray) -> float:
    """``max|K|`` without a further array; 0 if there are no entries."""
    return max(float(K.max(initial=0.0)), -float(K.min(initial=0.0)))


def relative_asymmetry(K: NDArray) -> float:
    """``max|K - K^T| / max|K|`` of a square array, block by block; 0 for the zero matrix."""
    largest = largest_entry(K)
    if largest == 0.0:
        return 0.0
    worst = 0.0
    # blocks small enough for the processor's cache
    for rows in row_blocks(len(K), 2 * K.itemsize * len(K), 2**19):
        # only the part on and above the diagonal: the rest is its mirror image
        worst = max(worst, float(np.abs(K[rows, rows.start :] - K[rows.start :, rows].T).max()))
    return worst / largest


def check_symmetric_kernel(kernel: Any) -> None:
    """Raise for a kernel that is declared asymmetric, if its square matrix is never computed."""
    if kernel.symmetric is False:
        raise asymmetric_kernel("The kernel is not symmetric: its two directions differ")


def asymmetric_kernel(problem: str) -> ValueError:
    """The error of a kernel whose two directions differ."""
    return ValueError(
        f"{problem}; average them with direction='mean' if the estimator has it, otherwise with "
        "kernel=PairFunction(lambda a, b: (f(a, b) + f(b, a)) / 2), or use both "
        "with mercerless.SimilarityClassifier or SimilarityRegressor and direction='both'."
    )


def check_symmetric(K: ArrayLike, name: str = "K") -> NDArray:
    """A finite, real, symmetric floating array: `K` itself, or its symmetric part if rounding made it asymmetric."""
    K = check_square(K, name)
    amount = relative_asymmetry(K)
    if not is_rounding(amount, K.dtype):
        if name == "the kernel matrix":
            raise asymmetric_kernel(
                f"{name} is not symmetric: the directions differ by {amount:.2g} of it"
            )
        if not np.tril(K, -1).any() or not np.triu(K, 1).any():
            raise ValueError(
                f"{name} has one triangle only, the other is zero; mirror it: "
                f"{name} + {name}.T - np.diag(np.diag({name}))."
            )
        raise ValueError(
            f"{name} is not symmetric: max|{name} - {name}.T| is {amount:.2g} of max|{name}|; "
            f"average both directions with mercerless.spectra.symmetrize({name}), or use both with "
            "mercerless.SimilarityClassifier or SimilarityRegressor and direction='both'."
        )
    if amount == 0.0:
        return K
    symmetric = K + K.T
    symmetric /= 2.0
    return symmetric


def check_number(
    name: str, value: Any, *, zero: bool = False, whole: bool = False, none: bool = False
) -> None:
    """Raise unless this is a positive finite number; `zero` and `none` allow 0 and None, `whole` means an integer."""
    number = isinstance(value, Integral if whole else Real) and not isinstance(
        value, (bool, np.bool_)
    )
    if (none and value is None) or (
        number and np.isfinite(value) and (value > 0 or (zero and value == 0))
    ):
        return
    kind = "whole " if whole else "finite " if number and not np.isfinite(value) else ""
    sign = "nonnegative" if zero else "positive"
    otherwise = ", or None" if none else ""
    raise ValueError(f"{name}={value!r} must be a {sign} {kind}number{otherwise}.")


def check_option(name: str, value: Any, options: Iterable[str | None]) -> None:
    """Raise if this is not one of the options: words, or None."""
    known = list(options)
    if not ((value is None or isinstance(value, str)) and value in known):
        *others, last = map(repr, known)
        raise ValueError(
            f"{name}={value!r} is not known; use "
            f"{', '.join(others) + ' or ' if others else ''}{last}."
        )


def check_targets(y: Any, name: str) -> NDArray:
    """Finite numbers to predict, in float64: one per row, or one row of several outputs each."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    check_readable(y, "y")
    if np.asarray(y).dtype.kind in "mM":
        raise ValueError("y holds dates or durations; turn them into numbers, such as days, first.")
    try:
        y = check_array(y, ensure_2d=False, dtype=[np.float64, np.float32], input_name="y")
    except ValueError as error:
        if "could not convert string to float" in str(error):
            raise ValueError(_sentence_about_words(name, (), y)) from None
        raise
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, not {y.ndim}.")
    check_size(y, "y")
    return y.astype(np.float64, copy=False)


def check_size(values: NDArray, name: str) -> None:
    """Raise if products of entries would overflow or underflow."""
    size = max(float(values.max()), -float(values.min()))
    if not (size == 0.0 or 1e-75 < size < 1e75):
        raise ValueError(
            f"{name} has entries of size {size:.0e}; divide them, and those of new items, by "
            f"{size:.0e}."
        )


def check_labels(y: Any, name: str) -> NDArray:
    """One label per row, none missing."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    check_readable(y, "y")
    y = column_or_1d(y, warn=True)
    if y.dtype == object:
        y = _checked_label_objects(y)
    check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(y)
    return y


def _check_words_of_labels(y: Any) -> None:
    """Raise if a label is missing among words; scikit-learn's message would not say where, or fail."""
    if not hasattr(y, "dtype") or np.ndim(y) != 1:
        return
    labels = np.asarray(y)
    if labels.dtype == object and any(isinstance(label, str) for label in labels):
        _check_not_missing(labels)


def _check_not_missing(labels: NDArray) -> None:
    is_missing = [
        label is None
        or type(label).__name__ in ("NAType", "NaTType")
        or (isinstance(label, Real) and np.isnan(float(label)))
        for label in labels
    ]
    rows = np.flatnonzero(is_missing)
    if len(rows):
        raise ValueError(
            f"y has no label in {len(rows)} of {len(labels)} rows, the first in row {rows[0]} "
            "counted from 0 (NaN or None); leave out the rows without a label."
        )


def _checked_label_objects(labels: NDArray) -> NDArray:
    """Labels of type object, numbers as an array of numbers.

    Raises if a label is missing (None, NaN, pandas' NA), or if strings are mixed with other types.
    """
    _check_not_missing(labels)
    is_string = [isinstance(label, str) for label in labels]
    if any(is_string) and not all(is_string):
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"y has labels of several types, {', '.join(kinds)}; make all of them strings."
        )
    if all(isinstance(label, Real) for label in labels):
        return np.array(labels.tolist())
    return labels


def check_weight(sample_weight: Any, n: int) -> NDArray:
    """Finite weights of at least 0, one per row and not all 0; ones if none are given.

    A weight counts like repetitions of its row, so the sum is kept: C and ridges are relative to it.
    """
    if sample_weight is None:
        return np.ones(n)
    check_readable(sample_weight, "sample_weight")
    weight = np.asarray(sample_weight, dtype=float)
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight must have one weight per row, shape ({n},), not {weight.shape}."
        )
    if not np.all(np.isfinite(weight)):
        raise ValueError(
            "sample_weight has values that are not finite; give every row a finite weight of at "
            "least 0."
        )
    if weight.min() < 0:
        raise ValueError(
            f"sample_weight has the negative entry {weight.min():.3g}; weights must be at least 0."
        )
    if weight.max() == 0:
        raise ValueError("sample_weight is zero for every row; at least one must be positive.")
    return weight


def weights_or_ones(weight: NDArray | None, n: int) -> NDArray:
    """The weights of n rows; ones unless given."""
    return np.ones(n) if weight is None else weight


def check_classes(
    y: Any, sample_weight: Any, class_weight: Any, name: str
) -> tuple[NDArray, NDArray, NDArray]:
    """Sample weights times class weights, the classes (at least two), and the class number of every row.

    Rows of weight 0 are left out: a class that has no other rows is not among the classes, and the number of such a row
    means nothing.
    """
    y = check_labels(y, name)
    weight = weigh_classes(class_weight, y, check_weight(sample_weight, len(y)))
    classes = np.unique(y[weight > 0])
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r} (rows of weight zero do not count); a "
            "classifier needs at least two."
        )
    labels = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return weight, classes, labels


def weigh_classes(class_weight: Any, labels: NDArray, weight: NDArray) -> NDArray:
    """Sample weights times the weights of the classes, as a dict or "balanced"; None leaves them as they are.

    "balanced" gives every class the same share of the total weight: a weight counts like repetitions here as well.
    """
    if class_weight is None:
        return weight
    if isinstance(class_weight, str) and class_weight == "balanced":
        is_used = weight > 0
        classes, number = np.unique(labels[is_used], return_inverse=True)
        share = weight.sum() / (len(classes) * np.bincount(number, weights=weight[is_used]))
        balanced = np.zeros(len(weight))
        balanced[is_used] = weight[is_used] * share[number]
        return balanced
    return check_weight(compute_sample_weight(class_weight, labels) * weight, len(labels))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that called us, past the frames of this package and scikit-learn."""
    inner_packages = ("mercerless", "sklearn", "contextlib", "joblib")
    frame = sys._getframe(1)
    level = 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in inner_packages
    ):
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, category, stacklevel=level)


class UselessModelWarning(UserWarning):
    """A learner is worse than a constant on its own held-out rows, or does not fit its training rows at all.

    Examples
    --------
    >>> import warnings
    >>> from mercerless import UselessModelWarning
    >>> warnings.simplefilter("error", UselessModelWarning)  # such a fit is to fail
    >>> warnings.simplefilter("default", UselessModelWarning)
    """


def warn_if_useless(
    losses: NDArray,
    constant: NDArray,
    name: str,
    weight: NDArray | None = None,
    capped: bool = True,
) -> None:
    """Warn when held-out losses are worse than a constant's on the same rows by more than three standard errors.

    `constant` has the losses of the best constant that does not know the row. Without `capped` rows count in full
    however large their loss: for rare classes, a model gains on few rows only.
    """
    weight = weights_or_ones(weight, len(losses))
    if len(losses) < 20 or not np.all(np.isfinite(constant)):
        return
    mean_constant = float(np.average(constant, weights=weight))
    if mean_constant == 0.0:
        return
    cap = np.inf
    if capped:
        cap = 10.0 * mean_constant  # a few bad rows would otherwise also widen the standard error
    difference = np.minimum(losses, cap) - np.minimum(constant, cap)
    mean = np.average(difference, weights=weight)
    error = np.sqrt(weight**2 @ (difference - mean) ** 2) / weight.sum()
    if mean > 3.0 * error and mean > 1e-6 * mean_constant:
        _warn_useless(name, float(np.average(losses, weights=weight)) / mean_constant)


def warn_if_tube_is_useless(
    name: str, target: NDArray, coef: NDArray, bound: NDArray, epsilon: float
) -> None:
    """Warn if a support vector regression does not fit its targets: their units do not suit epsilon or C.

    The bounds of the coefficients are C times the weights. Rows at their bound are outside of the tube; the intercept
    alone keeps a few others inside.
    """
    if np.ptp(target) == 0.0:
        return
    if not np.any(coef):
        warn(
            f"{name} uses no training row: all targets lie within epsilon={epsilon:g} "
            "standard deviations of one value. Lower epsilon.",
            UselessModelWarning,
        )
    elif len(coef) >= 30 and np.mean(np.abs(coef) < (1 - 1e-6) * bound) <= 0.05:
        warn(
            f"{name} predicts hardly any training row within epsilon={epsilon:g} standard "
            "deviations of y: C is too small. Raise C.",
            UselessModelWarning,
        )


def warn_if_folds_are_useless(errors: NDArray, name: str) -> None:
    """Warn when the folds' errors, relative to those of a constant, are above one by three standard errors."""
    capped = np.minimum(errors, 10.0)
    if len(errors) >= 3 and capped.mean() - 3.0 * capped.std(ddof=1) / np.sqrt(len(errors)) > 1.05:
        _warn_useless(name, float(errors.mean()))


def _warn_useless(name: str, error: float) -> None:
    warn(
        f"{name} is worse than a constant on held-out training rows: its mean loss is {error:.3g} "
        "times as large. Check that similarities are not taken for distances or the other way "
        "round, and that rows and labels are in the same order.",
        UselessModelWarning,
    )


def leave_one_out_constant(Y: NDArray, weight: NDArray | None = None) -> NDArray:
    """The squared error in every row of the (weighted) mean of the other rows, summed over the columns."""
    Y = np.asarray(Y, dtype=float).reshape(len(Y), -1)
    weight = weights_or_ones(weight, len(Y))
    rest = weight.sum() - weight
    mean = np.average(Y, axis=0, weights=weight)
    inside = ((Y - mean) ** 2).sum(axis=1)
    inside[inside <= 1e-24 * float(mean @ mean)] = 0.0  # equal targets differ by rounding
    return inside * (weight.sum() / np.where(rest > 0, rest, np.inf)) ** 2


def guess_task(y: NDArray) -> tuple[str, str]:
    """Infer whether labels are classes or numbers; returns "classification" or "regression" and the reason."""
    distinct = len(np.unique(y))
    if y.dtype.kind not in "biuf":
        return "classification", f"the labels are words ({distinct} different)"
    if y.dtype.kind == "b" or (
        (y == np.round(y)).all() and distinct <= min(20, max(2, len(y) // 5))
    ):
        return "classification", f"the labels are {distinct} different whole numbers"
    return "regression", f"the labels are numbers with {distinct} different values"
