"""Check inputs before any work is done; every message states in one sentence what is wrong and what to do."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils import check_random_state as check_legacy_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight
from sklearn.utils.validation import validate_data as check_data

from mercerless.core.memory import row_blocks

#: What to do about an error of scikit-learn or NumPy with these words.
REMEDIES = {
    "could not convert string to float": "Encode words as numbers, or pass a data frame to TableClassifier or "
    "TableRegressor; strings are compared with kernel='levenshtein', and classes need a classifier.",
    "Sparse data was passed": "Sparse rows work with kernel='linear', 'cosine', 'rbf', 'chi2' or 'tanimoto'.",
    "Expected 2D array": "Distances that pdist gives need scipy.spatial.distance.squareform(X) and "
    "kernel='precomputed'.",
    "Found array with dim": "Pass X.reshape(len(X), -1), or kernel='dtw' for series of channels.",
    "setting an array element": "Items of different lengths need kernel='dtw' or a function of two items.",
    "DType": "Turn dates and durations into numbers, such as days.",
}
OF_MATRICES = {
    "features, but": "A matrix has one row for each new item, and one column for each of the training items."
}

# ------------------------------------------------------------------------------------------- tables and items


@contextmanager
def remedies(of: dict[str, str] = REMEDIES) -> Iterator[None]:
    """Let the messages of scikit-learn's checks end with what to do."""
    try:
        yield
    except (TypeError, ValueError) as error:
        for cause, remedy in of.items():
            if cause in str(error):
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"{str(error).rstrip('.')}. {remedy}") from None
        raise


def check_readable(A: Any, name: str = "X") -> None:
    """Raise for masked entries: NumPy would read the numbers beneath the mask."""
    if isinstance(A, np.ma.MaskedArray) and np.ma.is_masked(A):
        raise ValueError(
            f"{name} has masked entries, and what is beneath the mask would count; pass "
            f"{name}.filled(np.nan) if gaps are allowed, or leave these rows out."
        )


def validate_data(estimator: Any, X: Any, *args: Any, **options: Any) -> Any:
    """scikit-learn's check, after our own checks of input that it would misread.

    Columns of new rows are matched by name (see `align_columns`). Training rows become the model's own: a copy, unless
    they are a matrix of comparisons, which no model keeps, or a memory map, which may be larger than the memory.
    """
    for A, name in zip((X, *args), ("X", "y")):
        check_readable(A, name)
    X = as_frame(X)
    is_matrix = get_tags(estimator).input_tags.pairwise
    if options.get("reset", True):
        check_unique(labels_of(X))
        if not is_matrix and not isinstance(X, np.memmap) and not options.get("skip_check_array"):
            options["copy"] = True
    else:
        X = align_columns(X, column_labels(estimator))
    with remedies(REMEDIES | OF_MATRICES if is_matrix else REMEDIES):
        return check_data(estimator, X, *args, **options)


def check_real(A: ArrayLike, name: str = "X", *, allow_nan: bool = False) -> NDArray:
    """A finite, real, non-empty, two-dimensional array, itself if it is one: float32 is kept, all else becomes float64.

    With `allow_nan`, NaN marks missing entries; infinite entries raise in any case.
    """
    check_readable(A, name)
    if isinstance(A, np.ndarray) and A.ndim == 2 and A.size and A.dtype in (np.float64, np.float32):
        # a finite sum proves all entries finite, without a temporary
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(A.sum()):
                return A
    finite = "allow-nan" if allow_nan else True
    with remedies():
        return check_array(
            as_frame(A), dtype=[np.float64, np.float32], ensure_all_finite=finite, input_name=name
        )


def as_items(X: Any) -> NDArray:
    """Items in the order given, whatever labels they carry: a numeric table as it is, else one object per entry.

    The entries of a list, tuple or series are not looked into.
    """
    check_readable(X)
    if (
        hasattr(X, "toarray")
        or isinstance(X, (str, bytes, set, frozenset, dict))
        or not hasattr(X, "__len__")
    ):
        raise ValueError(
            f"X must be a sequence of items (strings, series, rows), not {type(X).__name__}; pass a list or an array."
        )
    if len(X) == 0:
        raise ValueError("There are no items in X; pass at least one.")
    if labels_of(X) is not None:
        if all(getattr(dtype, "kind", "O") in "biuf" for dtype in X.dtypes):
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            X = [X.iloc[i] for i in range(len(X))]
    elif hasattr(X, "__array__"):
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and (X.ndim, X.dtype.kind) in {
        (1, "O"),
        *((2, kind) for kind in "biuf"),
    }:
        return X
    return np.fromiter(X, dtype=object, count=len(X))


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array; does not import Dask."""
    return type(X).__module__.startswith("dask.array")


def check_matrix(X: Any) -> None:
    """Raise if a matrix of comparisons, as it was given, has missing entries."""
    array = np.asarray(X) if hasattr(X, "__array__") else np.empty(0)
    if array.ndim != 2 or array.dtype.kind != "f":
        return
    for row, column in np.argwhere(~np.isfinite(array)):  # the first
        raise ValueError(
            f"X has comparisons that are NaN or infinite, the first in row {row}, column {column}; "
            "compare these items again, leave out their rows and columns, or put "
            "mercerless.spectra.GapFiller() before the estimator."
        ) from None


def check_random_state(random_state: Any) -> np.random.RandomState:
    """scikit-learn's check; None never means the global generator, and a Generator seeds what is returned."""
    if random_state is None:
        return np.random.RandomState()
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.integers(2**32 - 1))
    return check_legacy_random_state(random_state)


# ------------------------------------------------------------------------------------------- names


def labels_of(table: Any, axis: str = "columns") -> list[str] | None:
    """The labels of a data frame's rows ("index") or columns as strings; None for anything else."""
    is_frame = hasattr(table, "iloc") and hasattr(table, "columns")
    return list(map(str, getattr(table, axis))) if is_frame else None


def column_labels(estimator: Any) -> list[str] | None:
    """Labels of the columns that an estimator was fitted on, None if there were none."""
    names = getattr(estimator, "feature_names_in_", None)
    labels = getattr(estimator, "_column_labels", None) or names
    return None if labels is None else list(map(str, labels))


def check_unique(labels: list[str] | None, name: str = "X") -> None:
    """Raise if columns of a data frame share a label."""
    if labels is not None and len(set(labels)) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(
            f"{name} has {labels.count(label)} columns of the name {label!r}; give each a name of its "
            f"own, or pass {name}.to_numpy() to go by position."
        )


def align_columns(
    X: Any, known: list[str] | None, name: str = "X", *, complete: bool = False
) -> Any:
    """The columns of a data frame that have these labels, in their order; others are left out.

    X as it is without labels, if its labels or the known ones merely number the columns, or if it lacks one of them:
    `complete` raises then.
    """
    given = labels_of(X)
    if known is None or given is None or given == known:
        return X
    numbers = list(map(str, range(len(known))))
    missing = sorted(set(known) - set(given))
    if missing and complete and numbers not in (known, given):
        raise ValueError(f"{name} lacks the column {missing[0]!r} of the training items; add it.")
    if missing or given == numbers:
        return X
    check_unique([label for label in given if label in set(known)], name)
    position = {label: i for i, label in enumerate(given)}
    return X.iloc[:, [position[label] for label in known]]


def as_frame(X: Any) -> Any:
    """A matrix that knows the names of its items, as skbio's, as a data frame; anything else as it is."""
    return X.to_data_frame() if hasattr(X, "to_data_frame") and hasattr(X, "ids") else X


def align_matrix(X: Any, may_cut: bool) -> Any:
    """A data frame of comparisons with its columns in the order of its rows, if both have names.

    If it `may_cut`, columns of further items are left out. Labels that number positions are ignored.
    """
    X = as_frame(X)
    rows = labels_of(X, "index")
    columns = labels_of(X)
    if rows is None or columns is None or rows == columns:
        return X
    check_unique(columns)
    is_numbered = "RangeIndex" in (type(X.index).__name__, type(X.columns).__name__)
    is_other_order = len(rows) == len(columns) and set(rows) == set(columns)
    if is_other_order or (may_cut and len(rows) < len(columns) and not is_numbered):
        return align_columns(X, rows)
    return X


def check_row_order(X: Any, **values: Any) -> None:
    """Raise if values of rows have the labels of the rows of X in another order; everything is read by position.

    Parameters
    ----------
    X : object
        The rows: a data frame, a series of items, or a dict or list of data frames of the same rows.
    **values : object
        Targets, weights or groups, one for each row, by name; only those with a pandas index are looked at.
    """
    tables = list(X.values()) if isinstance(X, dict) else [X]
    if isinstance(X, (list, tuple)):
        tables = [table for table in X if getattr(table, "ndim", 0) == 2]
    rows = next((table.index for table in map(as_frame, tables) if _has_index(table)), None)
    for name, given in values.items():
        if rows is None or not _has_index(given):
            continue
        labels = given.index
        if len(rows) != len(labels) or rows.equals(labels):
            continue
        if rows.is_unique and labels.is_unique and rows.isin(labels).all():
            raise ValueError(
                f"X and {name} have the same row labels in different orders; pass {name}.loc[X.index] to go by "
                f"label, or {name}.to_numpy() to go by position."
            )


def _has_index(table: Any) -> bool:
    """Whether this is a table or series of pandas."""
    return hasattr(table, "iloc") and hasattr(getattr(table, "index", None), "get_indexer")


# ------------------------------------------------------------------------------------------- matrices, options


def is_rounding(asymmetry: float, dtype: DTypeLike = np.float64) -> bool:
    """Whether an asymmetry, relative to the largest entry, is no more than rounding in this type."""
    return asymmetry <= (1e-5 if dtype == np.float32 else 1e-8)


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
        difference = K[rows, rows.start :] - K[rows.start :, rows].T
        worst = max(worst, largest_entry(difference))
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
    if none and value is None:
        return
    is_number = isinstance(value, Integral if whole else Real) and not isinstance(
        value, (bool, np.bool_)
    )
    if is_number and np.isfinite(value) and (value > 0 or (zero and value == 0)):
        return
    kind = "whole " if whole else "finite " if is_number and not np.isfinite(value) else ""
    sign = "nonnegative" if zero else "positive"
    otherwise = ", or None" if none else ""
    raise ValueError(f"{name}={value!r} must be a {sign} {kind}number{otherwise}.")


def check_option(name: str, value: Any, options: Iterable[str | None]) -> None:
    """Raise if this is not one of the options: words, or None."""
    known = list(options)
    if not (isinstance(value, (str, type(None))) and value in known):
        words = ", ".join(map(repr, known[:-1])) + " or " if len(known) > 1 else ""
        raise ValueError(f"{name}={value!r} is not known; use {words}{known[-1]!r}.")


# ------------------------------------------------------------------------------------------- targets and weights


def check_targets(y: Any, name: str) -> NDArray:
    """Finite numbers to predict, in float64: one per row, or one row of several outputs each."""
    _check_given(y, name)
    if np.asarray(y).dtype.kind in "mM":
        raise ValueError("y holds dates or durations; turn them into numbers, such as days, first.")
    with remedies():
        y = check_array(y, ensure_2d=False, dtype=[np.float64, np.float32], input_name="y")
    check_size(y, "y")
    return y.astype(np.float64, copy=False)


def _check_given(y: Any, name: str) -> None:
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    check_readable(y, "y")


def check_size(values: NDArray, name: str) -> None:
    """Raise if products of entries would overflow or underflow."""
    size = largest_entry(values)
    if not (size == 0.0 or 1e-75 < size < 1e75):
        raise ValueError(
            f"{name} has entries of size {size:.0e}; divide them, and those of new items, by "
            f"{size:.0e}."
        )


def check_labels(y: Any, name: str) -> NDArray:
    """One label per row, none missing (None, NaN, pandas' NA), and not strings mixed with other types."""
    _check_given(y, name)
    y = column_or_1d(y, warn=True)
    if y.dtype == object:
        is_word = np.array([isinstance(label, str) for label in y])
        rows = [i for i, label in enumerate(y) if is_missing(label)]
        if rows:
            raise ValueError(
                f"y has no label in {len(rows)} of {len(y)} rows, the first in row {rows[0]} "
                "counted from 0 (NaN or None); leave out the rows without a label."
            )
        if is_word.any() and not is_word.all():
            kinds = sorted({type(label).__name__ for label in y})
            raise ValueError(
                f"y has labels of several types, {', '.join(kinds)}; make all of them strings."
            )
        if all(isinstance(label, Real) for label in y):
            y = np.array(y.tolist())
    check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(y)
    return y


def is_missing(value: Any) -> bool:
    """Whether this is None, NaN, NaT or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def check_weight(sample_weight: Any, n: int) -> NDArray:
    """Finite weights of at least 0, one per row and not all 0; ones if none are given.

    A weight counts like repetitions of its row, so the sum is kept: C and ridges are relative to it.
    """
    check_readable(sample_weight, "sample_weight")
    weight = _check_sample_weight(
        sample_weight, np.empty((n, 0)), dtype=np.float64, ensure_non_negative=True, copy=True
    )
    if not weight.any():
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
    means nothing. "balanced" gives every class the same share of the total weight.
    """
    y = check_labels(y, name)
    weight = check_weight(sample_weight, len(y))
    used = weight > 0
    classes, number = np.unique(y[used], return_inverse=True)
    factor = compute_class_weight(
        class_weight, classes=classes, y=y[used], sample_weight=weight[used]
    )
    weight[used] *= factor[number]
    weight = check_weight(weight, len(y))
    classes = np.unique(y[weight > 0])
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r} (rows of weight zero do not count); a "
            "classifier needs at least two."
        )
    labels = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return weight, classes, labels


# ------------------------------------------------------------------------------------------- warnings


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
    *,
    fewest: int = 20,
    margin: float = 1e-6,
) -> None:
    """Warn when held-out losses are worse than a constant's on the same rows by more than three standard errors.

    `constant` has the losses of the best constant that does not know the row. `fewest` rows are needed, and a
    difference of more than the share `margin` of the constant's loss.
    """
    weight = weights_or_ones(weight, len(losses))
    if len(losses) < fewest or not np.all(np.isfinite(constant)):
        return
    mean_constant = float(np.average(constant, weights=weight))
    if mean_constant == 0.0:
        return
    # a few bad rows would otherwise also widen the standard error
    cap = 10.0 * mean_constant
    difference = np.minimum(losses, cap) - np.minimum(constant, cap)
    mean = np.average(difference, weights=weight)
    error = np.sqrt(weight**2 @ (difference - mean) ** 2) / weight.sum()
    if mean > max(3.0 * error, margin * mean_constant):
        ratio = float(np.average(losses, weights=weight)) / mean_constant
        warn(
            f"{name} is worse than a constant on held-out training rows: its mean loss is "
            f"{ratio:.3g} times as large. Check that similarities are not taken for distances or "
            "the other way round, and that rows and labels are in the same order.",
            UselessModelWarning,
        )


def warn_if_folds_are_useless(errors: NDArray, name: str) -> None:
    """Warn when the folds' errors, relative to those of a constant, are clearly above one."""
    warn_if_useless(errors, np.ones(len(errors)), name, fewest=3, margin=0.05)


def leave_one_out_constant(Y: NDArray, weight: NDArray | None = None) -> NDArray:
    """The squared error in every row of the (weighted) mean of the other rows, summed over the columns."""
    Y = np.asarray(Y, dtype=float).reshape(len(Y), -1)
    weight = weights_or_ones(weight, len(Y))
    rest = weight.sum() - weight
    mean = np.average(Y, axis=0, weights=weight)
    inside = ((Y - mean) ** 2).sum(axis=1)
    inside[inside <= 1e-24 * float(mean @ mean)] = 0.0  # equal targets differ by rounding
    return inside * (weight.sum() / np.where(rest > 0, rest, np.inf)) ** 2
