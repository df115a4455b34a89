"""Similarities by name: shares of common bits or amounts, mixed tables with gaps, series that are warped."""

import warnings
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack
from sklearn.metrics.pairwise import pairwise_kernels

from mercerless.core.folds import by_appearance
from mercerless.core.memory import check_memory, row_blocks, slices
from mercerless.core.optional import import_optional
from mercerless.core.validation import as_items, check_option, check_real, is_missing
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
        uu = uu[rows]
        vv = vv[columns]
        common = np.matmul(U[rows], V[columns].T, out=out)
        total = np.add.outer(np.where(uu > 0, uu, 1), vv)  # no zeros, even for empty rows
        total -= common
        np.divide(common, total, out=out)
        out[np.ix_(uu == 0, vv == 0)] = 1.0


#: Kernels of sparse rows by name.
SPARSE_KERNELS = frozenset(
    "chi2 cosine laplacian linear poly polynomial rbf sigmoid tanimoto".split()
)


class SparseRows(MatrixFunction):
    """A kernel of the rows of a sparse matrix by name, without ever making them dense.

    Estimators use it for sparse feature rows, such as those of a TF-IDF vectorizer.

    Parameters
    ----------
    metric : str, default="cosine"
        ``"chi2"``, ``"cosine"``, ``"laplacian"``, ``"linear"``, ``"poly"``, ``"rbf"`` or ``"sigmoid"`` as in
        scikit-learn, or ``"tanimoto"``.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from mercerless.kernels.named import SparseRows
    >>> SparseRows("linear")(SparseRows.items(csr_array([[1.0, 0.0], [2.0, 3.0]])))
    array([[ 1.,  2.],
           [ 2., 13.]])
    """

    symmetric = True
    is_similarity = True
    _pairs_at_once = 2**24
    _is_checked = False

    def __init__(self, metric: str = "cosine"):
        self.metric = metric

    @staticmethod
    def items(X: Any) -> NDArray:
        """The rows of a sparse matrix as items.

        Parameters
        ----------
        X : sparse matrix of shape (n, n_features)
            The matrix.

        Returns
        -------
        ndarray of object of shape (n,)
            One sparse matrix per row.
        """
        X = csr_array(X)
        if not np.isfinite(X.data).all():
            raise ValueError("X has entries that are NaN or infinite; replace them first.")
        return np.fromiter((X[[i]] for i in range(X.shape[0])), dtype=object, count=X.shape[0])

    def diag(self, X: Any) -> NDArray:
        blocks = [list(X[rows]) for rows in slices(0, len(X), 64)]
        return np.concatenate([np.diagonal(self.function(block, block)) for block in blocks])

    def function(self, A: Any, B: Any) -> NDArray:  # type: ignore[override]
        """The values of all pairs.

        Parameters
        ----------
        A, B : list of sparse matrices of one row
            The rows.

        Returns
        -------
        ndarray of shape (len(A), len(B))
            The values.
        """
        X, Y = vstack(A, format="csr"), vstack(B, format="csr")
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns, but {Y.shape[1]} were seen in fit")
        is_negative = min(X.data.min(initial=0.0), Y.data.min(initial=0.0)) < 0.0
        if is_negative and self.metric in ("chi2", "tanimoto"):
            raise ValueError(f"{self.metric!r} compares amounts, but X has negative entries")
        if self.metric == "chi2":
            return _sparse_chi2(X, Y)
        if self.metric != "tanimoto":
            return pairwise_kernels(X, Y, metric=self.metric)
        common = (X @ Y.T).toarray()
        total = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1) - common
        return np.divide(common, total, out=np.ones_like(common), where=total != 0)


def _sparse_chi2(X: csr_array, Y: csr_array) -> NDArray:
    """``exp(-sum((x - y)^2 / (x + y)))``: one entry alone adds itself, two add their sum without 4 x y / (x + y)."""
    distances = np.add.outer(X.sum(axis=1), Y.sum(axis=1))
    columns = Y.tocsc()
    for i in range(X.shape[0]):
        x = X[[i]]
        both = columns[:, x.indices].tocoo()
        mine = x.data[both.col]
        total = mine + both.data
        shared = np.divide(4 * mine * both.data, total, out=np.zeros_like(total), where=total > 0)
        distances[i] -= np.bincount(both.row, shared, minlength=len(distances[i]))
    return np.exp(-distances)


#: Types of the cells of a column of numbers.
NUMBERS = (int, float, np.number, np.bool_)


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
            known = [value for value in column if not is_missing(value)]
            is_numeric = bool(known) and all(isinstance(value, NUMBERS) for value in known)
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
        left = _cells(X, self.names, len(ranges))
        right = left if Y is None or Y is X else _cells(Y, self.names, len(ranges))
        n, m = len(left), len(right)
        check_memory(8.0 * n * m, "The matrix of Gower's similarities")
        values = self._encode(np.vstack([left, right]), ranges)
        out = np.empty((n, m))
        for rows in row_blocks(n, 64.0 * m, 2**23):
            out[rows] = self._block(values[:n][rows], values[n:], ranges)
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
    def _encode(cells: NDArray, ranges: NDArray) -> NDArray:
        """Numbers as they are, words as numbers of their own, and NaN for gaps."""
        values = np.full(cells.shape, np.nan)
        for j, width in enumerate(ranges):
            known = np.flatnonzero([not is_missing(value) for value in cells[:, j]])
            column = cells[known, j]
            words = [value for value in column if not isinstance(value, NUMBERS)]
            if np.isnan(width):
                column = by_appearance(column)
            elif words:
                raise ValueError(
                    f"Column {j} held numbers and now holds {words[0]!r}; pass a number or a gap."
                )
            values[known, j] = column
        return values

    @staticmethod
    def _block(A: NDArray, B: NDArray, ranges: NDArray) -> NDArray:
        total = np.zeros((len(A), len(B)))
        n_known = np.zeros((len(A), len(B)))
        for a, b, width in zip(A.T, B.T, ranges):
            distance = np.abs(a[:, None] - b)
            alike = np.maximum(1.0 - distance / (width or 1.0), 0.0)
            if np.isnan(width):
                alike = distance == 0.0
            both = ~np.isnan(distance)
            total += np.where(both, alike, 0.0)
            n_known += both
        with np.errstate(invalid="ignore"):
            return total / n_known


def _cells(X: Any, names: list | None, n_columns: int | None = None) -> NDArray:
    """The cells of a table or of a sequence of rows, of shape (n, n_columns); rows of data frames in this order."""
    items = as_items(X)
    if items.ndim == 1 and any(
        not hasattr(row, "__len__") or isinstance(row, str) for row in items
    ):
        raise ValueError("Gower's similarity compares rows; pass a data frame or a list of rows.")
    rows = []
    for row in items:
        if names is not None and hasattr(row, "reindex"):
            missing = [name for name in names if name not in row.index]
            if missing:
                raise ValueError(f"X lacks the column {missing[0]!r} of the training rows.")
            row = row[names]
        rows.append(list(row))
    sizes = sorted({len(row) for row in rows})
    if sizes != [n_columns or sizes[0]]:
        expected = "rows of equal length" if n_columns is None else f"rows of {n_columns}"
        raise ValueError(f"Rows have {' or '.join(map(str, sizes[:3]))} cells; pass {expected}.")
    return np.array(rows, dtype=object)


#: Similarities of strings by name: rapidfuzz's distances, normalized to 1 for equal strings, and ratios of words.
STRING_SIMILARITIES = {
    "levenshtein": "distance.Levenshtein",
    "damerau_levenshtein": "distance.DamerauLevenshtein",
    "osa": "distance.OSA",
    "indel": "distance.Indel",
    "lcs": "distance.LCSseq",
    "hamming": "distance.Hamming",
    "jaro": "distance.Jaro",
    "jaro_winkler": "distance.JaroWinkler",
    "prefix": "distance.Prefix",
    "postfix": "distance.Postfix",
    "token_sort_ratio": "fuzz.token_sort_ratio",
    "token_set_ratio": "fuzz.token_set_ratio",
}


class Strings(MatrixFunction):
    """A similarity of strings by name, computed by `rapidfuzz <https://rapidfuzz.github.io/RapidFuzz/>`_.

    All are normalized: 1 for equal strings, 0 for strings with nothing in common. None is positive definite. Estimators
    also take the name alone as ``kernel``.

    Parameters
    ----------
    similarity : str, default="levenshtein"
        ``"levenshtein"``, ``"damerau_levenshtein"``, ``"osa"``, ``"indel"``, ``"lcs"``, ``"hamming"``, ``"jaro"``,
        ``"jaro_winkler"``, ``"prefix"``, ``"postfix"``, ``"token_sort_ratio"`` or ``"token_set_ratio"``.
    n_jobs : int or None, default=None
        How many threads compare.

    Examples
    --------
    >>> from mercerless.kernels import Strings
    >>> Strings("levenshtein")(["cat", "cart", "dog"]).round(2)
    array([[1.  , 0.75, 0.  ],
           [0.75, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    symmetric = True
    is_similarity = True
    _pairs_at_once = 2**22
    _is_checked = False

    def __init__(self, similarity: str = "levenshtein", n_jobs: int | None = None):
        self.similarity = similarity
        self.n_jobs = n_jobs

    def diag(self, X: Any) -> NDArray:
        items = as_items(X)
        self._check_items(items)
        return np.ones(len(items))

    def _check_items(self, items: NDArray) -> None:
        check_option("similarity", self.similarity, STRING_SIMILARITIES)
        _check_types(items, str, self.similarity, "strings")

    def function(self, A: list[str], B: list[str]) -> NDArray:  # type: ignore[override]
        """The similarities of all pairs.

        Parameters
        ----------
        A, B : list of str
            The strings.

        Returns
        -------
        ndarray of shape (len(A), len(B))
            The similarities.
        """
        module, _, name = STRING_SIMILARITIES[self.similarity].partition(".")
        package = import_optional(f"rapidfuzz.{module}", "strings", "Comparing strings")
        process = import_optional("rapidfuzz.process", "strings", "Comparing strings")
        scorer = getattr(package, name)
        scorer = getattr(scorer, "normalized_similarity", scorer)
        largest = 100.0 if module == "fuzz" else 1.0
        workers = effective_n_jobs(self.n_jobs)
        return process.cdist(A, B, scorer=scorer, dtype=np.float64, workers=workers) / largest


def _check_types(items: NDArray, kind: type, name: str, what: str) -> None:
    for i, item in enumerate(items):
        if not isinstance(item, kind):
            raise ValueError(
                f"{name!r} compares {what}, but item {i} is of type {type(item).__name__}; pass a "
                "list or one column of a table, without missing ones."
            )


#: Distances of series by name, all of aeon's symmetric ones for pairs of any lengths, and whether they take a window.
SERIES_DISTANCES = {
    **dict.fromkeys(("dtw", "ddtw", "wdtw", "wddtw", "adtw", "shape_dtw", "soft_dtw"), True),
    **dict.fromkeys(("lcss", "erp", "edr", "twe", "msm"), True),
    "sbd": False,
}


class Series(MatrixFunction):
    """An elastic distance of time series by name, computed by `aeon <https://www.aeon-toolkit.org>`_.

    Series may differ in length and have several channels. Estimators also take the name alone as ``kernel``.

    Parameters
    ----------
    distance : str, default="dtw"
        ``"dtw"``, dynamic time warping (the root of aeon's, a sum of squares), or another name of aeon: ``"ddtw"``,
        ``"wdtw"``, ``"wddtw"``, ``"adtw"``, ``"shape_dtw"``, ``"soft_dtw"``, ``"lcss"``, ``"erp"``, ``"edr"``,
        ``"twe"``, ``"msm"``, ``"sbd"``.
    window : float or None, default=0.2
        How far two series may be shifted against each other, as a share of their length; None is any distance.
        ``"sbd"`` has none.
    params : dict or None, default=None
        Further arguments for aeon, such as ``{"c": 0.5}`` of ``"msm"``.

    Examples
    --------
    >>> from mercerless.kernels import Series
    >>> Series("dtw", window=None)([[0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0]])  # doctest: +SKIP
    array([[0., 0.],
           [0., 0.]])
    """

    symmetric = True
    _is_checked = False

    def __init__(
        self,
        distance: str = "dtw",
        window: float | None = 0.2,
        params: dict[str, Any] | None = None,
    ):
        self.distance = distance
        self.window = window
        self.params = params

    def _check_items(self, items: NDArray) -> None:
        check_option("distance", self.distance, SERIES_DISTANCES)
        n_channels = {np.shape(item)[0] if np.ndim(item) == 2 else 1 for item in items}
        n_dims = {np.ndim(item) for item in items}
        if not n_dims <= {1, 2} or len(n_channels) > 1:
            raise ValueError(
                f"kernel={self.distance!r} compares series of numbers, all of shape (n_times,) or "
                "all of shape (n_channels, n_times) with the same channels; give each item one of "
                "these shapes."
            )

    def function(self, A: Any, B: Any) -> NDArray:  # type: ignore[override]
        """The distances of all pairs.

        Parameters
        ----------
        A, B : list of array-like of shape (n_times,) or (n_channels, n_times)
            The series.

        Returns
        -------
        ndarray of shape (len(A), len(B))
            The distances.
        """
        distances = import_optional("aeon.distances", "series", "Comparing time series")
        series = [[as_channels(each) for each in items] for items in (A, B)]
        params = dict(self.params or {})
        if SERIES_DISTANCES[self.distance]:
            params["window"] = self.window
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numba, about the numbers of aeon
            D = distances.pairwise_distance(*series, method=self.distance, **params)
        return np.sqrt(D) if self.distance == "dtw" else D


def as_channels(series: Any) -> NDArray:
    """A series as an array (n_channels, n_times) in C order: aeon compiles for a minute for each other layout."""
    return np.atleast_2d(np.ascontiguousarray(series, dtype=np.float64))


class Molecules(MatrixFunction):
    """The Tanimoto similarity of molecules in SMILES, of Morgan fingerprints by `RDKit <https://www.rdkit.org>`_.

    Estimators also take ``kernel="smiles"``.

    Parameters
    ----------
    radius : int, default=2
        The radius of the fingerprints: 2 is also known as ECFP4.
    n_bits : int, default=2048
        Their length.

    Examples
    --------
    >>> from mercerless.kernels import Molecules
    >>> Molecules()(["CCO", "CCN"]).round(2)  # doctest: +SKIP
    array([[1.  , 0.33],
           [0.33, 1.  ]])
    """

    symmetric = True
    definite = True
    is_similarity = True

    def __init__(self, radius: int = 2, n_bits: int = 2048):
        self.radius = radius
        self.n_bits = n_bits

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        rows = self.fingerprints(X)
        return Tanimoto()(rows, None if Y is None or Y is X else self.fingerprints(Y))

    def diag(self, X: Any) -> NDArray:
        return np.ones(len(as_items(X)))

    def fingerprints(self, X: Any) -> NDArray:
        """The bits of molecules.

        Parameters
        ----------
        X : sequence of str
            The molecules in SMILES.

        Returns
        -------
        ndarray of shape (n, n_bits)
            Zeros and ones.
        """
        items = as_items(X)
        _check_types(items, str, "smiles", "molecules in SMILES")
        chem = import_optional("rdkit.Chem", "molecules", "Comparing molecules")
        generators = import_optional("rdkit.Chem.rdFingerprintGenerator", "molecules", "It")
        generator = generators.GetMorganGenerator(radius=self.radius, fpSize=self.n_bits)
        bits = np.empty((len(items), self.n_bits))
        for k, smiles in enumerate(items):
            molecule = chem.MolFromSmiles(smiles)
            if molecule is None:
                raise ValueError(
                    f"Item {k}, {smiles!r}, is not a molecule in SMILES; leave it out."
                )
            bits[k] = generator.GetFingerprintAsNumPy(molecule)
        return bits
