"""The kernel contract, the algebra of kernels, and evaluation in row blocks."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernelBase

from mercerless.core.memory import row_blocks
from mercerless.core.threads import allowed_threads, one_blas_thread
from mercerless.core.validation import check_real

T = TypeVar("T")


class Parameter(NamedTuple):
    """A tunable constructor parameter: its name, the map to an unconstrained scale, and its range.

    Parameters
    ----------
    name : str
        The constructor's name for it.
    scale : str
        ``"log"`` for positive parameters, ``"identity"`` for signed ones: the scale on which `theta` holds it.
    low, high : float
        The range, on the parameter's own scale.

    Examples
    --------
    >>> from mercerless.kernels import Gaussian
    >>> Gaussian(2.0).parameters
    (Parameter(name='length_scale', scale='log', low=1e-05, high=100000.0),)
    """

    name: str
    scale: str = "log"
    low: float = 1e-5
    high: float = 1e5


class Kernel(BaseEstimator):
    """Base class of all kernels: a matrix for any two sets of rows, and its reverse derivative.

    A subclass implements ``_evaluate``, which fills one block of the matrix and must be thread safe, ``diag``, and,
    if it declares parameters, ``_pull``, one row block of `pullback`. Kernels hold no state besides their
    constructor's parameters, so they clone, pickle, compare and print like any estimator.

    Attributes
    ----------
    symmetric : bool
        Whether ``k(x, y) == k(y, x)``.
    definite : bool or None
        True: every matrix ``k(X, X)`` is positive semi-definite. False: some are not. None: not known.
    is_similarity : bool
        Whether larger values always mean more similar items; functions of the user may compute distances.
    takes_objects : bool
        Whether items may be any objects. Then a subclass implements ``__call__(X, Y=None)`` itself and gets the items
        as a one-dimensional array of objects, or as a table if all items are equally long rows of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels import Kernel
    >>> class SharedLetters(Kernel):
    ...     takes_objects = True
    ...     def __call__(self, X, Y=None):
    ...         return np.array([[len(set(x) & set(y)) for y in (X if Y is None else Y)] for x in X], dtype=float)
    >>> SharedLetters()(["maple", "apple"], ["pear"])
    array([[3.],
           [3.]])
    """

    symmetric: bool = True
    definite: bool | None = None
    is_similarity: bool = False
    takes_objects: bool = False
    parameters: tuple[Parameter, ...] = ()
    #: Whether a small tile of the matrix costs no more than its share: then of a symmetric one only half is computed.
    _by_tiles: bool = False
    #: Whether `_evaluate` is one matrix product and then elementwise in pieces: then it fills many whole rows at once.
    _by_products: bool = False
    #: Whether a parameter may have one value per feature.
    _per_feature: bool = True
    #: The fewest rows of a tile, if there are few features: a matrix product of fewer would be slow.
    _min_rows: int = 64

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        """The matrix of ``k(x, y)`` for all rows x of X and y of Y.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.
        Y : array-like of shape (m, n_features) or None, default=None
            The columns; None means X.

        Returns
        -------
        ndarray of shape (n, m)
            The matrix; float32 when both inputs are.
        """
        X, Y, same = check_pair(X, Y)
        self._check_features(X.shape[1])
        out = np.empty((len(X), len(Y)), dtype=np.result_type(X, Y))
        is_symmetric = same and self.symmetric
        is_dominated_by_products = X.shape[1] >= 128 and len(X) < 10 * X.shape[1]
        if is_symmetric and self._by_products and is_dominated_by_products:
            with one_blas_thread():  # threads of BLAS would change the last bits
                self._fill_from_products(X, out)
            np.fill_diagonal(out, self.diag(X))
            return out
        prepared = self._prepare(X, Y)

        def evaluate(rows: slice, columns: slice, block: NDArray) -> None:
            self._evaluate(X[rows], Y[columns], block, prepared, rows, columns)

        def evaluate_rows(rows: slice) -> None:
            evaluate(rows, slice(0, len(Y)), out[rows])

        is_wide = X.shape[1] >= 64
        min_symmetric = 500 if is_wide else 1200  # for fewer rows mirroring costs what it saves
        if not self._by_tiles:
            over_row_blocks(evaluate_rows, len(X), len(Y), out.itemsize)
        elif is_symmetric and len(X) >= min_symmetric:
            fill_symmetric(evaluate, out)
        elif self._by_products:
            slabs = list(slices(0, len(X), 512))
            _in_threads(evaluate_rows, slabs, out.size)
        else:
            fill_tiles(evaluate, out, min_rows=256 if is_wide else self._min_rows)
        if is_symmetric:
            np.fill_diagonal(out, self.diag(X))
        return out

    def diag(self, X: ArrayLike) -> NDArray:
        """The diagonal ``k(x, x)`` without the matrix.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            The values.
        """
        raise NotImplementedError

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        """The gradient of ``sum(G * k(X, Y))`` in `theta`, without a tensor of derivatives.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.
        Y : array-like of shape (m, n_features) or None
            The columns; None means X.
        G : array-like of shape (n, m)
            The cotangent: the derivative of a loss in every entry of the matrix.

        Returns
        -------
        ndarray of shape (n_theta,)
            The gradient, in float64.
        """
        X, Y, G, _ = check_cotangent(X, Y, G)
        self._check_features(X.shape[1])
        if not self.parameters:
            return np.zeros(0)
        prepared = self._prepare(X, Y)
        sums: dict[int, NDArray] = {}

        def pull(rows: slice) -> None:
            sums[rows.start] = self._pull(X[rows], Y, G[rows], prepared, rows)

        over_row_blocks(pull, len(X), len(Y), 8)
        # summed in row order, so that the result does not depend on which thread was first
        total = np.sum([sums[start] for start in sorted(sums)], axis=0)
        return total * self._chain()

    def _prepare(self, X: NDArray, Y: NDArray) -> Any:
        """Precompute the values that all row blocks share (row norms, scaled copies)."""
        return None

    def _evaluate(
        self, X: NDArray, Y: NDArray, out: NDArray, prepared: Any, rows: slice, columns: slice
    ) -> None:
        """Fill `out` with the values of these rows and columns, whose places in the matrix are also given."""
        raise NotImplementedError

    def _fill_from_products(self, X: NDArray, out: NDArray) -> None:
        """Fill the symmetric matrix from the inner products of all rows, half of which BLAS computes."""
        raise NotImplementedError

    def _pull(self, X: NDArray, Y: NDArray, G: NDArray, prepared: Any, rows: slice) -> NDArray:
        """The derivative of ``sum(G * k)`` in the parameters themselves, concatenated."""
        raise NotImplementedError

    def _check_features(self, n_features: int) -> None:
        name = type(self).__name__
        for parameter in self.parameters:
            value = np.asarray(getattr(self, parameter.name), dtype=float)
            if value.ndim and not self._per_feature:
                raise ValueError(f"{name} takes one {parameter.name}, not one per feature.")
            if value.ndim and value.shape != (n_features,):
                raise ValueError(
                    f"{name} has {value.size} values of {parameter.name} but X has {n_features} "
                    "features; give one value or one per feature."
                )
            is_positive = parameter.scale == "log"
            if not np.all(np.isfinite(value)) or (is_positive and not np.all(value > 0)):
                kind = "positive" if is_positive else "finite"
                raise ValueError(f"{name} needs {kind} {parameter.name}, not {value}.")

    @property
    def theta(self) -> NDArray:
        """The tunable parameters as one vector, positive ones as logarithms; `pullback` differentiates in it."""
        values = self._flat_parameters()
        return np.concatenate(
            [np.log(v) if p.scale == "log" else v for p, v in zip(self.parameters, values)]
            or [np.zeros(0)]
        )

    def _flat_parameters(self) -> list[NDArray]:
        return [np.asarray(getattr(self, p.name), dtype=float).ravel() for p in self.parameters]

    @property
    def bounds(self) -> NDArray:
        """The range of every entry of `theta`, of shape (n_theta, 2), as ``scipy.optimize.minimize`` takes it."""
        rows = []
        for p in self.parameters:
            low, high = np.log([p.low, p.high]) if p.scale == "log" else (p.low, p.high)
            rows += [(low, high)] * np.size(getattr(self, p.name))
        return np.array(rows, dtype=float).reshape(-1, 2)

    def with_theta(self, theta: ArrayLike) -> Self:
        """A copy with other tunable parameters.

        Parameters
        ----------
        theta : array-like of shape (n_theta,)
            The parameters on the scale of `theta`.

        Returns
        -------
        Kernel
            A new kernel; this one is unchanged.
        """
        theta = check_theta(theta, len(self.theta))
        values: dict[str, Any] = {}
        for p in self.parameters:
            old = np.asarray(getattr(self, p.name), dtype=float)
            new = theta[: old.size].reshape(old.shape)
            theta = theta[old.size :]
            new = np.exp(new) if p.scale == "log" else new.copy()
            values[p.name] = new if old.ndim else float(new)
        return clone(self).set_params(**values)

    def _chain(self) -> NDArray:
        """d parameter / d theta, entry by entry."""
        values = self._flat_parameters()
        return np.concatenate(
            [v if p.scale == "log" else np.ones_like(v) for p, v in zip(self.parameters, values)]
        )

    def __add__(self, other: "Kernel | float") -> "Kernel":
        return Sum(self, _as_operand(other))

    def __radd__(self, other: "Kernel | float") -> "Kernel":
        return Sum(_as_operand(other), self)

    def __sub__(self, other: "Kernel | float") -> "Kernel":
        return Difference(self, _as_operand(other))

    def __rsub__(self, other: "Kernel | float") -> "Kernel":
        return Difference(_as_operand(other), self)

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        return Product(self, other) if isinstance(other, Kernel) else Scale(self, float(other))

    def __rmul__(self, other: float) -> "Kernel":
        return Scale(self, float(other))

    def __neg__(self) -> "Kernel":
        return Scale(self, -1.0)


class Constant(Kernel):
    """The same value for every pair: ``k(x, y) = value``.

    Parameters
    ----------
    value : float, default=1.0
        The value; signed.

    Examples
    --------
    >>> from mercerless.kernels import Constant, Gaussian
    >>> (Gaussian(1.0) + Constant(2.0)).diag([[0.0], [3.0]])
    array([3., 3.])
    """

    parameters = (Parameter("value", "identity", -1e5, 1e5),)

    def __init__(self, value: float = 1.0):
        self.value = value

    @property
    def definite(self) -> bool:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        return self.value >= 0

    def diag(self, X: ArrayLike) -> NDArray:
        X = check_real(X)
        return np.full(len(X), self.value, dtype=X.dtype)

    def _evaluate(self, X, Y, out, prepared, rows, columns):
        out[...] = self.value

    def _pull(self, X, Y, G, prepared, rows):
        return np.array([G.sum(dtype=np.float64)])


class Scale(Kernel):
    """A kernel times a number: ``factor * kernel``.

    Parameters
    ----------
    kernel : Kernel
        The kernel that is scaled.
    factor : float, default=1.0
        The factor; signed, and tunable.

    Examples
    --------
    >>> from mercerless.kernels import Gaussian
    >>> (0.5 * Gaussian(1.0)).diag([[0.0], [3.0]])
    array([0.5, 0.5])
    """

    parameters = (Parameter("factor", "identity", -1e5, 1e5),)

    def __init__(self, kernel: Kernel, factor: float = 1.0):
        self.kernel = kernel
        self.factor = factor

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether ``k(x, y) == k(y, x)``."""
        return self.kernel.symmetric

    @property
    def definite(self) -> bool | None:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        if self.factor == 0:
            return True
        if self.factor > 0:
            return self.kernel.definite
        return False if self.kernel.definite else None

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        K = self.kernel(X, Y)  # which may be the user's own matrix
        return K * K.dtype.type(self.factor)

    def diag(self, X: ArrayLike) -> NDArray:
        d = self.kernel.diag(X)
        return d * d.dtype.type(self.factor)

    @property
    def theta(self) -> NDArray:
        return np.append(self.kernel.theta, float(self.factor))

    @property
    def bounds(self) -> NDArray:
        p = self.parameters[0]
        of_factor = [0.0, p.high] if self.factor > 0 else [p.low, 0.0]
        return np.vstack([self.kernel.bounds, of_factor])

    def with_theta(self, theta: ArrayLike) -> "Scale":
        theta = check_theta(theta, len(self.theta))
        return Scale(self.kernel.with_theta(theta[:-1]), float(theta[-1]))

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        X, Y, G, _ = check_cotangent(X, Y, G)
        inner = self.kernel.pullback(X, Y, G) * self.factor
        return np.append(inner, np.vdot(G, self.kernel(X, Y)))


class _Pair(Kernel):
    """Base of sums, differences and products of two kernels."""

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether ``k(x, y) == k(y, x)``."""
        return self.left.symmetric and self.right.symmetric

    @property
    def definite(self) -> bool | None:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        return True if self.left.definite and self.right.definite else None

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        return self._combine(self.left(X, Y), self.right(X, Y))

    def diag(self, X: ArrayLike) -> NDArray:
        return self._combine(self.left.diag(X), self.right.diag(X))

    @property
    def theta(self) -> NDArray:
        return np.concatenate([self.left.theta, self.right.theta])

    @property
    def bounds(self) -> NDArray:
        return np.vstack([self.left.bounds, self.right.bounds])

    def with_theta(self, theta: ArrayLike) -> Self:
        cut = len(self.left.theta)
        theta = check_theta(theta, len(self.theta))
        return type(self)(self.left.with_theta(theta[:cut]), self.right.with_theta(theta[cut:]))

    def _combine(self, left: NDArray, right: NDArray) -> NDArray:
        raise NotImplementedError


class Sum(_Pair):
    """The sum of two kernels, written ``left + right``.

    Parameters
    ----------
    left, right : Kernel
        The operands.

    Examples
    --------
    >>> from mercerless.kernels import Gaussian, Laplace
    >>> (Gaussian(1.0) + Laplace(2.0)).diag([[0.0], [3.0]])
    array([2., 2.])
    """

    def _combine(self, left, right):
        return left + right

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        return np.concatenate([self.left.pullback(X, Y, G), self.right.pullback(X, Y, G)])


class Difference(_Pair):
    """The difference of two kernels, written ``left - right``: the textbook indefinite kernel.

    Parameters
    ----------
    left, right : Kernel
        The operands.

    Examples
    --------
    >>> from mercerless.kernels import Gaussian
    >>> (Gaussian(2.0) - Gaussian(1.0)).diag([[0.0], [3.0]])
    array([0., 0.])
    """

    @property
    def definite(self) -> bool | None:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        return None

    def _combine(self, left, right):
        return left - right

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        return np.concatenate([self.left.pullback(X, Y, G), -self.right.pullback(X, Y, G)])


class Product(_Pair):
    """The entrywise product of two kernels, written ``left * right``.

    Parameters
    ----------
    left, right : Kernel
        The operands.

    Examples
    --------
    >>> from mercerless.kernels import Gaussian, Polynomial
    >>> (Gaussian(1.0) * Polynomial(2)).diag([[0.0], [2.0]])
    array([ 1., 25.])
    """

    def _combine(self, left, right):
        return left * right

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        X, Y, G, _ = check_cotangent(X, Y, G)
        return np.concatenate(
            [
                self.left.pullback(X, Y, G * self.right(X, Y)),
                self.right.pullback(X, Y, G * self.left(X, Y)),
            ]
        )


def over_row_blocks(
    work: Callable[[slice], None],
    n_rows: int,
    n_columns: int,
    itemsize: int,
    *,
    block_bytes: int = 2**19,
) -> None:
    """Call ``work(rows)`` for blocks of rows that fit the cache, on as many threads as the user allows.

    `n_columns` counts the columns in use at a time, `itemsize` their bytes. Blocks of `block_bytes` stay in the
    second-level cache between the matrix product and the elementwise part.
    """
    bytes_per_row = n_columns * itemsize
    blocks = list(row_blocks(n_rows, bytes_per_row, max(block_bytes, 16 * bytes_per_row)))
    _in_threads(work, blocks, n_rows * n_columns)


def in_pieces(elementwise: Callable[[NDArray], object], block: NDArray) -> None:
    """Call ``elementwise(piece)``, which works in place, for pieces of rows that fit the second-level cache."""
    for rows in cached_pieces(block):
        elementwise(block[rows])


def over_pieces(work: Callable[[slice], None], block: NDArray) -> None:
    """Call ``work(rows)`` for the same pieces, on several threads if the block is large."""
    _in_threads(work, cached_pieces(block), block.size)


def cached_pieces(block: NDArray, *, n_entries: int = 2**16) -> list[slice]:
    """Slices of the rows of a block, each of which fits the second-level cache."""
    height = max(1, n_entries // max(1, block.shape[1]))
    return list(slices(0, len(block), height))


def fill_tiles(
    evaluate: Callable[[slice, slice, NDArray], None],
    out: NDArray,
    *,
    min_rows: int,
    n_entries: int = 2**16,
) -> None:
    """Call ``evaluate(rows, columns, tile)`` for all tiles of `out`, whole rows if they are short.

    Tiles are contiguous. With the default number of entries they stay in the second-level cache between the distances
    and the elementwise part. Whole rows are filled in their place, others are copied there; but a matrix product of
    fewer than `min_rows` would be slow, and of wide data the columns of whole rows would not stay in the cache.
    """
    n_rows, n_columns = out.shape
    height = max(min_rows, n_entries // max(1, n_columns))
    height = max(1, min(height, n_rows))
    width = n_entries // height

    def fill(rows: slice) -> None:
        if n_columns <= width:
            evaluate(rows, slice(0, n_columns), out[rows])
            return
        for columns, tile in _tiles(rows, slices(0, n_columns, width), out.dtype):
            evaluate(rows, columns, tile)
            out[rows, columns] = tile

    _in_threads(fill, list(slices(0, n_rows, height)), out.size)


def fill_symmetric(
    evaluate: Callable[[slice, slice, NDArray], None], out: NDArray, *, side: int = 264
) -> None:
    """Call ``evaluate(rows, columns, tile)`` for the tiles on and above the diagonal of `out`, and mirror them.

    Lines of a tile whose length is a power of two would share few places in the cache, and mirroring would be slow.
    """
    n = len(out)
    below = np.tri(min(n, side), k=-1, dtype=bool)

    def fill(rows: slice) -> None:
        for columns, tile in _tiles(rows, slices(rows.start, n, side), out.dtype):
            evaluate(rows, columns, tile)
            if columns == rows:
                np.copyto(tile, tile.T.copy(), where=below[: len(tile), : len(tile)])
            else:
                out[columns, rows] = tile.T
            out[rows, columns] = tile

    _in_threads(fill, list(slices(0, n, side)), out.size)


def _tiles(
    rows: slice, all_columns: Iterator[slice], dtype: DTypeLike
) -> Iterator[tuple[slice, NDArray]]:
    """The slices of columns, each with a contiguous array for its tile; all use the same memory."""
    height = rows.stop - rows.start
    memory = np.empty(0, dtype=dtype)
    for columns in all_columns:
        width = columns.stop - columns.start
        if len(memory) < height * width:
            memory = np.empty(height * width, dtype=dtype)
        yield columns, memory[: height * width].reshape(height, width)


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def _in_threads(
    work: Callable[[slice], None], blocks: list[slice], n_entries: int, min_entries: int = 2**18
) -> None:
    """Call ``work(block)`` for all blocks, on as many threads as BLAS has, which is held to one meanwhile.

    Blocks depend on the shapes only, so that results do not depend on the number of threads. With fewer than
    `min_entries` a thread costs more than it saves.
    """
    threads = 1
    if n_entries >= min_entries:
        threads = min(allowed_threads(), len(blocks))
    with one_blas_thread(alone=True), np.errstate(under="ignore"):
        if threads == 1:
            for rows in blocks:
                work(rows)
        else:
            with ThreadPoolExecutor(threads) as pool:
                for _ in pool.map(work, blocks):
                    pass


def check_pair(X: ArrayLike, Y: ArrayLike | None) -> tuple[NDArray, NDArray, bool]:
    if Y is not None and np.ndim(X) == np.ndim(Y) == 1:
        raise ValueError(
            "A kernel takes tables of rows, not two single rows. What calls kernels row by row, "
            "such as scikit-learn's "
            "KernelRidge, takes kernel=mercerless.kernels.Covariance(kernel)."
        )
    A = check_real(X, "X")
    if Y is None or Y is X:
        return A, A, True
    B = check_real(Y, "Y")
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"X has {A.shape[1]} features but Y has {B.shape[1]}; both need the same columns."
        )
    if A.dtype != B.dtype:
        A = A.astype(np.float64)
        B = B.astype(np.float64)
    return A, B, False


def check_cotangent(
    X: ArrayLike, Y: ArrayLike | None, G: ArrayLike
) -> tuple[NDArray, NDArray, NDArray, bool]:
    X, Y, same = check_pair(X, Y)
    return X, Y, check_shape(G, (len(X), len(Y))), same


def check_shape(G: ArrayLike, shape: tuple[int, int]) -> NDArray:
    """The cotangent of a matrix of this shape."""
    G = check_real(G, "G")
    if G.shape != shape:
        raise ValueError(f"G has shape {G.shape} but k(X, Y) has shape {shape}; they must agree.")
    return G


def own_kernel(kernel: T) -> T:
    """A copy for a model to keep: parameters that the user changes later, in arrays too, do not change the model.

    Functions and other objects that a kernel is made of are not copied.
    """
    copied = copy(kernel)
    attributes = vars(copied)
    for name, value in attributes.items():
        if isinstance(value, (np.ndarray, list, dict)):
            attributes[name] = copy(value)
        elif isinstance(value, BaseEstimator):
            attributes[name] = own_kernel(value)
        elif isinstance(value, GaussianProcessKernelBase):
            attributes[name] = clone(value)
    return copied


def check_theta(theta: ArrayLike, n_theta: int) -> NDArray:
    theta = np.asarray(theta, dtype=float)
    if theta.shape != (n_theta,):
        raise ValueError(
            f"theta has shape {theta.shape} but this kernel has {n_theta} tunable parameters."
        )
    return theta


def _as_operand(value: "Kernel | float") -> "Kernel":
    return value if isinstance(value, Kernel) else Constant(float(value))
