"""Everything else that can serve as a kernel: a matrix, a metric's name, scikit-learn's kernels."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Hyperparameter, PairwiseKernel
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernelBase
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from mercerless.core.memory import check_memory, slices
from mercerless.core.units import length_scales
from mercerless.core.validation import check_real
from mercerless.kernels.base import Kernel, check_cotangent, check_pair, check_theta
from mercerless.kernels.dot_product import Polynomial, Sigmoid
from mercerless.kernels.items import PairFunction, takes_objects
from mercerless.kernels.named import (
    SERIES_DISTANCES,
    STRING_SIMILARITIES,
    Gower,
    Molecules,
    Series,
    Strings,
    Tanimoto,
)
from mercerless.kernels.stationary import Gaussian, Laplace, Stationary


class Precomputed(Kernel):
    """The kernel whose rows are the matrix itself: ``k(X) = X``.

    Examples
    --------
    >>> from mercerless.kernels import Precomputed
    >>> Precomputed()([[2.0, 1.0], [1.0, 2.0]])
    array([[2., 1.],
           [1., 2.]])
    """

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        return check_real(X, "K")

    def diag(self, X: ArrayLike) -> NDArray:
        K = check_real(X, "K")
        if K.shape[0] != K.shape[1]:
            raise ValueError(
                "The diagonal k(x, x) of new rows is not in a precomputed matrix of shape "
                f"{K.shape}; pass it separately."
            )
        return np.diagonal(K).copy()


#: Distances of `scipy.spatial.distance.cdist` that depend on the two rows only, without names of other kernels.
SCIPY_METRICS = frozenset(
    "braycurtis canberra chebyshev cityblock correlation dice euclidean jensenshannon minkowski "
    "rogerstanimoto russellrao sokalsneath sqeuclidean yule".split()
)
#: Kernels of scikit-learn that are positive definite with their default parameters.
DEFINITE_METRICS = frozenset("rbf laplacian linear polynomial poly cosine chi2".split())
_BOOLEAN_METRICS = frozenset("dice rogerstanimoto russellrao sokalsneath yule".split())


class Metric(Kernel):
    """One of scikit-learn's pairwise kernels, or one of SciPy's distances, by name.

    Parameters
    ----------
    metric : str, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, such as ``"linear"`` or ``"chi2"``, or of a distance of
        `scipy.spatial.distance.cdist`, such as ``"braycurtis"``.
    params : dict or None, default=None
        Further arguments for it, such as ``{"gamma": 0.1}``.

    Examples
    --------
    >>> from mercerless.kernels import Metric
    >>> Metric("linear")([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __init__(self, metric: str = "rbf", params: dict[str, Any] | None = None):
        self.metric = metric
        self.params = params

    @property
    def is_similarity(self) -> bool:  # type: ignore[override]
        """Whether larger values mean more similar items."""
        return self.metric not in SCIPY_METRICS

    @property
    def definite(self) -> bool | None:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        if self.metric == "sigmoid":
            return False
        return True if self.metric in DEFINITE_METRICS and not self.params else None

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        X, Y, same = check_pair(X, Y)
        params = self.params or {}
        if self.metric in SCIPY_METRICS:
            if self.metric in _BOOLEAN_METRICS:
                X, Y = X != 0, Y != 0
            return cdist(X, Y, self.metric, **params)
        return pairwise_kernels(X, None if same else Y, metric=self.metric, **params)

    def diag(self, X: ArrayLike) -> NDArray:
        X = check_real(X)
        return np.concatenate([np.diagonal(self(X[rows])) for rows in slices(0, len(X), 64)])


class GaussianProcessKernel(Kernel):
    """A kernel of `sklearn.gaussian_process.kernels` under this library's contract.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel. Its `theta` and bounds are taken over, fixed hyperparameters stay fixed.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from mercerless.kernels import GaussianProcessKernel
    >>> GaussianProcessKernel(RBF(2.0))([[0.0]], [[2.0]]).round(3)
    array([[0.607]])
    """

    def __init__(self, kernel: GaussianProcessKernelBase):
        self.kernel = kernel

    @property
    def definite(self) -> bool | None:  # type: ignore[override]
        """Whether every matrix is positive semi-definite; None if unknown."""
        # all of them are covariances, but for the wrapper of arbitrary pairwise functions
        kernels = [self.kernel, *self.kernel.get_params().values()]
        return None if any(isinstance(kernel, PairwiseKernel) for kernel in kernels) else True

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        X, Y, same = check_pair(X, Y)
        return self.kernel(X, None if same else Y)

    def diag(self, X: ArrayLike) -> NDArray:
        return self.kernel.diag(check_real(X))

    @property
    def theta(self) -> NDArray:
        return np.asarray(self.kernel.theta, dtype=float)

    @property
    def bounds(self) -> NDArray:
        return np.asarray(self.kernel.bounds, dtype=float).reshape(-1, 2)

    def with_theta(self, theta: ArrayLike) -> "GaussianProcessKernel":
        return GaussianProcessKernel(
            self.kernel.clone_with_theta(check_theta(theta, len(self.theta)))
        )

    def pullback(self, X: ArrayLike, Y: ArrayLike | None, G: ArrayLike) -> NDArray:
        # scikit-learn differentiates square matrices only, so a rectangle is cut out of the square of all rows
        X, Y, G = check_cotangent(X, Y, G)
        if not len(self.theta):
            return np.zeros(0)
        rows = X if Y is X else np.vstack([X, Y])
        check_memory(
            8 * len(rows) ** 2 * (len(self.theta) + 1),
            "scikit-learn's tensor of kernel derivatives",
            remedy="use one of mercerless.kernels, which need no tensor",
        )
        tensor = self.kernel(rows, eval_gradient=True)[1]
        block = tensor if Y is X else tensor[: len(X), len(X) :]
        return np.einsum("ij,ijp->p", G, block)


class Covariance(GaussianProcessKernelBase):
    """Any kernel of this library as a kernel of `sklearn.gaussian_process`, the other way round.

    For `sklearn.gaussian_process.GaussianProcessRegressor`, which tunes its parameters, for
    `sklearn.kernel_ridge.KernelRidge`, which calls other functions with single rows, and for scikit-learn's algebra of
    kernels, such as ``Covariance(Laplace()) + WhiteKernel()``. `sklearn.svm.SVC` takes kernels as they are.

    Parameters
    ----------
    kernel : Kernel
        The kernel; a Gaussian process needs a positive definite one.

    Notes
    -----
    Gaussian processes need the derivative of every entry. It is computed by differences of fourth order, with a
    relative error of about 1e-11.

    Examples
    --------
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from mercerless.kernels import Covariance, Laplace
    >>> model = GaussianProcessRegressor(Covariance(Laplace()), alpha=1e-6).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> model.predict([[1.0]]).round(3)
    array([1.])
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        nested = self.kernel.get_params() if deep else {}
        return {"kernel": self.kernel, **{f"kernel__{name}": nested[name] for name in nested}}

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        if not eval_gradient:
            return self.kernel(X, Y)
        if Y is not None:
            raise ValueError("Derivatives are for the square matrix; pass Y=None.")
        K = self.kernel(X)
        slopes = np.zeros((*K.shape, self.n_dims))
        step = 1e-3
        for i, direction in enumerate(np.eye(self.n_dims)):
            for steps, weight in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
                near = self.kernel.with_theta(self.theta + steps * step * direction)
                slopes[:, :, i] += weight / (12 * step) * near(X)
        return K, slopes

    def diag(self, X: Any) -> NDArray:
        return self.kernel.diag(X)

    def is_stationary(self) -> bool:
        return isinstance(self.kernel, Stationary)

    @property
    def requires_vector_input(self) -> bool:
        return not takes_objects(self.kernel)

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        size = len(self.kernel.theta)
        return [Hyperparameter("theta", "numeric", self.kernel.bounds, size)] if size else []

    @property
    def n_dims(self) -> int:
        return len(self.kernel.theta)

    @property
    def theta(self) -> NDArray:
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: ArrayLike) -> None:
        self.kernel = self.kernel.with_theta(theta)

    @property
    def bounds(self) -> NDArray:
        return self.kernel.bounds

    def __repr__(self) -> str:
        return f"Covariance({self.kernel!r})"


def _named(name: str, X: NDArray | None, weight: NDArray | None) -> Kernel:
    """The kernel of this name; of scikit-learn's kernels our own version, faster and tunable, if X is given."""
    n_features = 1 if X is None or X.ndim == 1 else X.shape[1]
    root = np.sqrt(n_features)
    makers: dict[str, Callable[[], Kernel]] = {
        "precomputed": Precomputed,
        "gaussian": lambda: Gaussian(np.sqrt(0.5) if X is None else length_scales(X, weight)),
        "tanimoto": Tanimoto,
        "jaccard": lambda: Tanimoto(presence=True),
        "gower": lambda: Gower() if X is None else Gower.of(X),
        "smiles": Molecules,
    }
    if X is not None:
        makers["rbf"] = lambda: Gaussian(root / np.sqrt(2))
        makers["laplacian"] = lambda: Laplace(n_features)
        makers["poly"] = makers["polynomial"] = lambda: Polynomial(3, root, 1.0)
        makers["sigmoid"] = lambda: Sigmoid(root, 1.0)
    if name in makers:
        return makers[name]()
    families: dict[Callable[[str], Kernel], Iterable[str]] = {
        Metric: SCIPY_METRICS.union(PAIRWISE_KERNEL_FUNCTIONS),
        Strings: STRING_SIMILARITIES,
        Series: SERIES_DISTANCES,
    }
    for family, names in families.items():
        if name in names:
            return family(name)
    known = sorted(set(makers).union(*families.values()))
    similar = ", ".join(get_close_matches(name, known) or known)
    raise ValueError(
        f"kernel={name!r} is not known; use {similar}, a kernel object, or a function of two items."
    )


def as_kernel(kernel: Any, X: NDArray | None = None, weight: NDArray | None = None) -> Kernel:
    """Convert the ``kernel`` argument of an estimator to a `Kernel`.

    Parameters
    ----------
    kernel : Kernel, str, sklearn.gaussian_process.kernels.Kernel or callable
        - one of this library's kernels, returned as it is;
        - ``"precomputed"``: the rows are the matrix;
        - ``"gaussian"``: `Gaussian` with a length scale for every feature, its standard deviation times
          ``sqrt(n_features / 2)``: what `sklearn.svm.SVC` takes for standardized features with ``gamma="scale"``;
        - a name of `sklearn.metrics.pairwise.pairwise_kernels`, with its default parameters: for ``"rbf"``,
          ``"laplacian"``, ``"poly"``, ``"polynomial"`` and ``"sigmoid"``, whose rate is ``1 / n_features``, the same
          function as `Gaussian`, `Laplace`, `Polynomial` or `Sigmoid` if X is given, else as `Metric`;
        - ``"tanimoto"`` and ``"jaccard"``: `Tanimoto` of amounts or of nonzero entries in rows; ``"gower"``: `Gower`
          of mixed tables with gaps; ``"smiles"``: `Molecules`;
        - ``"dtw"``, ``"msm"`` or another name of `Series`, elastic distances by aeon;
        - ``"levenshtein"``, ``"jaro_winkler"``, ``"hamming"`` or another name of `Strings`;
        - ``"braycurtis"``, ``"canberra"`` or another distance of SciPy, as `Metric`;
        - a Gaussian process kernel of scikit-learn;
        - a function of two items, as `PairFunction`; a function of two lists goes into `MatrixFunction`.
    X : ndarray or None, default=None
        The training items, for the kernels that depend on them.
    weight : ndarray of shape (n,) or None, default=None
        Weights of the training items, which count like repetitions; None if all are equal.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> from mercerless.kernels import as_kernel
    >>> as_kernel("linear")
    Metric(metric='linear')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Covariance):
        return kernel.kernel
    if isinstance(kernel, GaussianProcessKernelBase):
        return GaussianProcessKernel(clone(kernel))
    if isinstance(kernel, str):
        return _named(kernel, X, weight)
    if isinstance(kernel, type):
        raise TypeError(
            f"kernel={kernel.__name__} is a class; pass an instance, {kernel.__name__}()."
        )
    if callable(kernel):
        return PairFunction(kernel)
    raise TypeError(
        f"kernel must be a kernel object, a name, or a function of two items, not "
        f"{type(kernel).__name__}; a matrix is data: kernel='precomputed' and fit(matrix, y), or "
        "fit([D1, D2], y) of SimilarityClassifier and SimilarityRegressor."
    )
