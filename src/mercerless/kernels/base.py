"""The kernel contract, the algebra of kernels, and evaluation in row blocks."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernelBase

from mercerless.core.memory import slices
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
        as a one-dimensional array of objects, or as a numeric table as it was given.

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
        n_features = X.shape[1]
        self._check_features(n_features)
        out = np.empty((len(X), len(Y)), dtype=np.result_type(X, Y))
        prepared = self._prepare(X, Y)

        def evaluate(rows: slice, columns: slice, block: NDArray) -> None:
            self._evaluate(X[rows], Y[columns], block, prepared, rows, columns)

        n = len(X)
        is_symmetric = same and self.symmetric
        # of the products of all rows with themselves BLAS computes one half
        at_once = self._by_products and n_features >= 128 and n < 10 * n_features
        min_rows = 500 if n_features >= 64 else 1200  # of fewer rows mirroring costs what it saves
        if is_symmetric and self._by_tiles and not at_once and n >= min_rows:
            fill_symmetric(evaluate, out)
        else:
            height = 512 if self._by_products else max(64, 2**16 // len(Y))
            blocks = list(slices(0, n, n if is_symmetric and at_once else height))
            _in_threads(lambda rows: evaluate(rows, slice(0, len(Y)), out[rows]), blocks, out.size)
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
        X, Y, G = check_cotangent(X, Y, G)
        self._check_features(X.shape[1])
        if not self.parameters:
            return np.zeros(0)
        prepared = self._prepare(X, Y)

        def pull(rows: slice) -> NDArray:
            return self._pull(X[rows], Y, G[rows], prepared, rows)

        total = np.sum(over_row_blocks(pull, len(X), len(Y), 8), axis=0)
        # d parameter / d theta, entry by entry
        return total * np.where(self._is_log(), self._current(), 1.0)

    def _prepare(self, X: NDArray, Y: NDArray) -> Any:
        """Precompute the values that all row blocks share (row norms, scaled copies)."""
        return None

    def _evaluate(
        self, X: NDArray, Y: NDArray, out: NDArray, prepared: Any, rows: slice, columns: slice
    ) -> None:
        """Fill `out` with the values of these rows and columns; their places in the matrix are also given."""
        raise NotImplementedError

    def _pull(self, X: NDArray, Y: NDArray, G: NDArray, prepared: Any, rows: slice) -> NDArray:
        """The derivative of ``sum(G * k)`` in the parameters themselves, concatenated."""
        raise NotImplementedError

    def _check_features(self, n_features: int) -> None:
        name = type(self).__name__
        for parameter in self.parameters:
            given = getattr(self, parameter.name)
            if isinstance(given, (int, float)) and 0.0 < given < np.inf:
                continue  # mostly, and a small matrix takes microseconds
            value = np.asarray(given, dtype=float)
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

    def _flat(self, values: Iterable[Any]) -> NDArray:
        """One value per parameter, or an array like it, entry by entry like `theta`."""
        parts = [
            np.broadcast_to(value, np.shape(getattr(self, p.name))).ravel()
            for p, value in zip(self.parameters, values)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _current(self) -> NDArray:
        return self._flat(getattr(self, p.name) for p in self.parameters)

    def _is_log(self) -> NDArray:
        return self._flat(p.scale == "log" for p in self.parameters).astype(bool)

    def _to_theta(self, values: NDArray) -> NDArray:
        return np.log(values, out=values, where=self._is_log())

    @property
    def theta(self) -> NDArray:
        """The tunable parameters as one vector, positive ones as logarithms; `pullback` differentiates in it."""
        return self._to_theta(self._current())

    @property
    def bounds(self) -> NDArray:
        """The range of every entry of `theta`, of shape (n_theta, 2), as ``scipy.optimize.minimize`` takes it."""
        low = self._flat(p.low for p in self.parameters)
        high = self._flat(p.high for p in self.parameters)
        return np.column_stack([self._to_theta(low), self._to_theta(high)])

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
        is_log = self._is_log()
        rest = check_theta(theta, len(is_log)).copy()
        np.exp(rest, out=rest, where=is_log)
        values: dict[str, Any] = {}
        for p in self.parameters:
            shape = np.shape(getattr(self, p.name))
            new, rest = np.split(rest, [int(np.prod(shape))])
            values[p.name] = new.reshape(shape) if shape else float(new[0])
        return clone(self).set_params(**values)

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
        X, Y, G = check_cotangent(X, Y, G)
        inner = self.kernel.pullback(X, Y, G) * self.factor
        return np.append(inner, np.vdot(G, self.kernel(X, Y)))


class _Pair(Kernel):
    """Base of sums, differences and products of two kernels."""

    _combine: np.ufunc

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

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        X, Y, G = check_cotangent(X, Y, G)
        left, right = self._cotangents(X, Y, G)
        return np.concatenate([self.left.pullback(X, Y, left), self.right.pullback(X, Y, right)])

    def _cotangents(self, X: NDArray, Y: NDArray, G: NDArray) -> tuple[NDArray, NDArray]:
        """The cotangents of both operands."""
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

    _combine = np.add

    def _cotangents(self, X, Y, G):
        return G, G


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

    definite = None
    _combine = np.subtract

    def _cotangents(self, X, Y, G):
        return G, -G


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

    _combine = np.multiply

    def _cotangents(self, X, Y, G):
        return G * self.right(X, Y), G * self.left(X, Y)


def over_row_blocks(
    work: Callable[[slice], T], n_rows: int, n_columns: int, itemsize: int
) -> list[T]:
    """``work(rows)`` for blocks of rows that fit the cache, in their order, on as many threads as the user allows.

    `n_columns` counts the columns in use at a time, `itemsize` their bytes. Blocks of half a megabyte stay in the
    second-level cache between the matrix product and the elementwise part.
    """
    height = max(16, 2**19 // (n_columns * itemsize))
    return _in_threads(work, list(slices(0, n_rows, height)), n_rows * n_columns)


def cached_pieces(block: NDArray) -> Iterator[slice]:
    """Slices of the rows of a block, each of which fits the second-level cache."""
    return slices(0, len(block), max(1, 2**16 // max(1, block.shape[1])))


def fill_symmetric(
    evaluate: Callable[[slice, slice, NDArray], None], out: NDArray, *, side: int = 264
) -> None:
    """Call ``evaluate(rows, columns, tile)`` for the tiles on and above the diagonal of `out`, and mirror them.

    Lines of a tile whose length is a power of two would share few places in the cache, and mirroring would be slow.
    """
    n = len(out)

    def fill(rows: slice) -> None:
        height = rows.stop - rows.start
        memory = np.empty(height * side, dtype=out.dtype)  # all tiles use it
        for columns in slices(rows.start, n, side):
            width = columns.stop - columns.start
            tile = memory[: height * width].reshape(height, width)
            evaluate(rows, columns, tile)
            if columns == rows:
                is_below = np.tri(height, k=-1, dtype=bool)
                np.copyto(tile, tile.T.copy(), where=is_below)
            else:
                out[columns, rows] = tile.T
            out[rows, columns] = tile

    _in_threads(fill, list(slices(0, n, side)), out.size)


def _in_threads(work: Callable[[slice], T], blocks: list[slice], n_entries: int) -> list[T]:
    """``work(block)`` for all blocks, on as many threads as BLAS has, which is held to one meanwhile.

    Blocks depend on the shapes only, so that results do not depend on the number of threads. With fewer entries than
    2^18 a thread costs more than it saves.
    """
    threads = min(allowed_threads(), len(blocks)) if n_entries >= 2**18 else 1
    with one_blas_thread(alone=True), np.errstate(under="ignore"):
        if threads == 1:
            return list(map(work, blocks))
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, blocks))


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
) -> tuple[NDArray, NDArray, NDArray]:
    X, Y, _ = check_pair(X, Y)
    G = check_real(G, "G")
    shape = (len(X), len(Y))
    if G.shape != shape:
        raise ValueError(f"G has shape {G.shape} but k(X, Y) has shape {shape}; they must agree.")
    return X, Y, G


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
