"""Similarities by name: shares of common bits or amounts, mixed tables with gaps, series that are warped."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercerless.core.memory import check_memory, row_blocks
from mercerless.core.optional import import_optional
from mercerless.core.validation import as_items, check_option, check_real
from mercerless.kernels.base import Kernel
from mercerless.kernels.items import MatrixFunction


class Tanimoto(Kernel):
    """The Tanimoto similarity ``<x, y> / (|x|^2 + |y|^2 - <x, y>)``, of bits or counts in rows.

    For bits, such as fingerprints of molecules, it is the share of common bits among all that are set. Two rows of
    zeros have similarity 1. Positive semi-definite for rows without negative entries, which it requires.

    Parameters
    ----------
    presence : bool, default=False
        Whether only zero and nonzero are distinguished: then it is Jaccard's similarity of the sets of columns.

    Examples
    --------
    >>> from mercerless.kernels import Tanimoto
    >>> Tanimoto()([[1, 1, 0], [1, 0, 1]]).round(2)
    array([[1.  , 0.33],
           [0.33, 1.  ]])
    """

    definite = True
    is_similarity = True
    _by_tiles = True

    def __init__(self, presence: bool = False):
        self.presence = presence

    def diag(self, X: ArrayLike) -> NDArray:
        X = check_real(X)
        self._embed(X)
        return np.ones(len(X), dtype=X.dtype)

    def _embed(self, X: NDArray) -> NDArray:
        if self.presence:
            return (X != 0).astype(X.dtype)
        if X.min(initial=0.0) < 0:
            raise ValueError(
                "The Tanimoto similarity compares amounts, but X has negative entries; pass bits "
                "or counts, or use kernel='gaussian' for features of any sign."
            )
        return X

    def _prepare(self, X, Y):
        U = self._embed(X)
        V = U if Y is X else self._embed(Y)
        return U, V, np.einsum("ij,ij->i", U, U), np.einsum("ij,ij->i", V, V)

    def _evaluate(self, X, Y, out, prepared, rows, columns):
        U, V, uu, vv = prepared
        common = np.matmul(U[rows], V[columns].T, out=out)
        total = uu[rows][:, None] + vv[columns]
        total -= common
        both_empty = total == 0
        np.divide(common, total, out=out, where=~both_empty)
        out[both_empty] = 1.0


class Gower(Kernel):
    """Gower's similarity of rows of mixed tables with gaps: the mean over the columns that both rows have.

    A column of numbers adds ``1 - |a - b| / range``, at least 0; any other column 1 for equal values and 0 for others.
    None, NaN and pandas' NA are gaps.

    Parameters
    ----------
    ranges : sequence of float or None, default=None
        The range of each column, NaN for a column of words. None takes them from the rows of a square matrix;
        estimators with ``kernel="gower"`` take them from the training rows.
    names : list or None, default=None
        Names of the columns: those of data frames are matched by name.

    References
    ----------
    J. C. Gower, "A general coefficient of similarity and some of its properties", Biometrics 27, 1971.

    Examples
    --------
    >>> from mercerless.kernels import Gower
    >>> Gower()([[1.0, "red"], [3.0, "red"], [2.0, None]])
    array([[1. , 0.5, 0.5],
           [0.5, 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """

    is_similarity = True
    takes_objects = True

    def __init__(self, ranges: ArrayLike | None = None, names: list | None = None):
        self.ranges = ranges
        self.names = names

    @classmethod
    def of(cls, X: Any) -> "Gower":
        """The kernel with the ranges of the columns of X.

        Parameters
        ----------
        X : data frame, array or sequence of rows
            The rows.

        Returns
        -------
        Gower
            The kernel.
        """
        first = as_items(X)[0]
        names = list(first.index) if hasattr(first, "index") and hasattr(first, "iloc") else None
        ranges = []
        for column in _cells(X, names).T:
            known = [value for value in column if not _is_gap(value)]
            is_numeric = bool(known) and all(isinstance(value, _number_types()) for value in known)
            ranges.append(float(max(known)) - float(min(known)) if is_numeric else np.nan)
        return cls(ranges, names)

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        if self.ranges is None:
            if Y is not None and Y is not X:
                raise ValueError(
                    "Gower's similarity to other rows needs the ranges of the columns; use "
                    "Gower.of(X), or kernel='gower' in an estimator."
                )
            return Gower.of(X)(X)
        ranges = np.asarray(self.ranges, dtype=float)
        left = self._encode(_cells(X, self.names), ranges)
        right = left if Y is None or Y is X else self._encode(_cells(Y, self.names), ranges)
        check_memory(8.0 * len(left[0]) * len(right[0]), "The matrix of Gower's similarities")
        out = np.empty((len(left[0]), len(right[0])))
        for rows in row_blocks(len(out), 64.0 * out.shape[1], 2**23):
            out[rows] = self._block(left[0][rows], left[1][rows], *right, ranges)
        if np.isnan(out).any():
            i, j = np.argwhere(np.isnan(out))[0]
            raise ValueError(
                f"Rows {i} and {j} have no column that is known in both, so Gower's similarity "
                "has no value; leave out rows with many gaps, or fill some."
            )
        return out

    def diag(self, X: Any) -> NDArray:
        return np.ones(len(as_items(X)))

    @staticmethod
    def _encode(cells: NDArray, ranges: NDArray) -> tuple[NDArray, NDArray]:
        """Numbers as they are and words as numbers of their own, and which cells are known."""
        if cells.shape[1] != len(ranges):
            raise ValueError(
                f"X has {cells.shape[1]} columns but Gower's similarity was made for {len(ranges)}."
            )
        known = np.array([[not _is_gap(value) for value in row] for row in cells], dtype=bool)
        values = np.zeros(cells.shape, dtype=object)
        values[known] = cells[known]
        for j in np.flatnonzero(~np.isnan(ranges)):
            words = [value for value in values[:, j] if not isinstance(value, _number_types())]
            if words:
                raise ValueError(
                    f"Column {j} held numbers and now holds {words[0]!r}; pass a number or a gap."
                )
        return values, known.reshape(cells.shape)

    @staticmethod
    def _block(A, has_a, B, has_b, ranges):
        total = np.zeros((len(A), len(B)))
        n_known = np.zeros((len(A), len(B)))
        for j, width in enumerate(ranges):
            both = has_a[:, j][:, None] & has_b[:, j]
            if np.isnan(width):
                alike = (A[:, j][:, None] == B[:, j]).astype(float)
            else:
                distance = np.abs(A[:, j].astype(float)[:, None] - B[:, j].astype(float))
                alike = np.maximum(1.0 - distance / (width or 1.0), 0.0)
            total += np.where(both, alike, 0.0)
            n_known += both
        with np.errstate(invalid="ignore"):
            return total / n_known


def _number_types() -> tuple[type, ...]:
    return (int, float, np.number, np.bool_)


def _cells(X: Any, names: list | None) -> NDArray:
    """The cells of a table or of a sequence of rows, of shape (n, n_columns); rows of data frames in this order."""
    items = as_items(X)
    if items.ndim == 2:
        return items.astype(object)
    if any(not hasattr(row, "__len__") or isinstance(row, str) for row in items):
        raise ValueError("Gower's similarity compares rows; pass a data frame or a list of rows.")
    sizes = {len(row) for row in items}
    if len(sizes) != 1:
        raise ValueError(
            f"Rows have {min(sizes)} to {max(sizes)} cells; pass rows of equal length."
        )
    rows = []
    for row in items:
        if names is not None and hasattr(row, "reindex"):
            missing = [name for name in names if name not in row.index]
            if missing:
                raise ValueError(f"X lacks the column {missing[0]!r} of the training rows.")
            row = row[names]
        rows.append(list(row))
    cells = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        cells[i] = row
    return cells


def _is_gap(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


class Series(MatrixFunction):
    """An elastic distance of time series by name, computed by `aeon <https://www.aeon-toolkit.org>`_.

    Series may differ in length. Estimators also take the name alone as ``kernel``.

    Parameters
    ----------
    distance : str, default="dtw"
        ``"dtw"``, dynamic time warping.
    window : float or None, default=0.2
        How far two series may be shifted against each other, as a share of their length; None is any distance.

    Examples
    --------
    >>> import importlib.util
    >>> from mercerless.kernels import Series
    >>> if importlib.util.find_spec("aeon"):
    ...     Series("dtw", window=None)([[0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0]])
    """

    symmetric = True  # type: ignore[assignment]
    cache = True
    progress = False

    def __init__(self, distance: str = "dtw", window: float | None = 0.2):
        self.distance = distance
        self.window = window

    def _check_function(self, items: NDArray) -> None:
        check_option("distance", self.distance, ("dtw",))
        import_optional("aeon", "series", "Comparing time series")

    def function(self, A: Any, B: Any) -> NDArray:  # type: ignore[override]
        """The distances of all pairs.

        Parameters
        ----------
        A, B : list of array-like of shape (n_times,)
            The series.

        Returns
        -------
        ndarray of shape (len(A), len(B))
            The distances.
        """
        distances = import_optional("aeon.distances", "series", "Comparing time series")
        series = [
            [np.asarray(each, dtype=np.float64).reshape(1, -1) for each in side] for side in (A, B)
        ]
        return np.sqrt(distances.dtw_pairwise_distance(*series, window=self.window))

    def _identity(self) -> Any:
        return ("series", self.distance, self.window)
