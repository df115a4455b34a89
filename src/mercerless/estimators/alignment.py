"""Combinations of given kernels: kernel target alignment and the uniform combination."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted, validate_data

from mercerless._validation import check_classes, check_memory
from mercerless.kernels import Gaussian, Kernel

_WEIGHTS = ("alignment", "uniform")


class AlignmentClassifier(ClassifierMixin, BaseEstimator):
    """A support vector machine with a non-negative combination of given kernels.

    The weights are those of largest alignment with the ideal kernel of the labels, after centring all matrices
    [1]_, or uniform.

    Parameters
    ----------
    kernels : sequence of Kernel or None, default=None
        The kernels; None: Gaussians with length scales ``2**-5, ..., 2**5``.
    weights : {"alignment", "uniform"}, default="alignment"
        How they are weighted.
    C : float or None, default=None
        The machine's loss weight; None: by cross-validation.
    cv : int, default=5
        Number of folds.
    memory_limit : int, float, str or None, default=None
        Bytes this may use; None: half of what is free.

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    weights_ : ndarray of shape (n_kernels,)
        The weights, summing to 1.
    kernel_ : Kernel
        The combination.
    C_ : float
        The loss weight used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when X has them.

    See Also
    --------
    HyperClassifier : Learns the kernel from a far larger family.

    References
    ----------
    .. [1] Cortes, Mohri, Rostamizadeh. "Algorithms for learning kernels based on centered alignment". Journal of
       Machine Learning Research 13, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import AlignmentClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AlignmentClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        *,
        weights: str = "alignment",
        C: float | None = None,
        cv: int = 5,
        memory_limit: int | float | str | None = None,
    ):
        self.kernels = kernels
        self.weights = weights
        self.C = C
        self.cv = cv
        self.memory_limit = memory_limit

    def fit(self, X: ArrayLike, y: ArrayLike) -> "AlignmentClassifier":
        """Weigh the kernels and fit the machine.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The items.
        y : array-like of shape (n_samples,)
            The labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        _, classes, codes = check_classes(y, None, None, type(self).__name__)
        if self.weights not in _WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(_WEIGHTS)}, not {self.weights!r}.")
        kernels = list(self.kernels) if self.kernels is not None else [Gaussian(2.0**k) for k in range(-5, 6)]
        check_memory(
            8.0 * (3 * len(kernels) + 2) * len(X) ** 2,
            f"{len(kernels)} matrices of {len(X)} items",
            self.memory_limit,
            "use fewer rows or kernels",
        )
        matrices = [kernel(X).astype(float) for kernel in kernels]
        weights = np.full(len(kernels), 1.0 / len(kernels))
        if self.weights == "alignment":
            weights = align(matrices, np.where(codes[:, None] == codes, 1.0, -1.0 / (len(classes) - 1)))
        K = sum(w * M for w, M in zip(weights, matrices))
        C, machine = self._machine(K, y, codes)
        self.classes_, self.weights_, self.C_ = classes, weights, C
        self.kernel_, self._svm, self.X_fit_ = _combine(kernels, weights), machine, X
        return self

    def _machine(self, K: NDArray, y: NDArray, codes: NDArray) -> tuple[float, Any]:
        folds = min(self.cv, int(np.bincount(codes).min()))
        if self.C is not None or folds < 2:
            C = 1.0 if self.C is None else float(self.C)
            return C, SVC(kernel="precomputed", C=C).fit(K, y)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": np.logspace(-2, 3, 6)}, cv=StratifiedKFold(folds))
        search.fit(K, y)
        return float(search.best_params_["C"]), search.best_estimator_

    def decision_function(self, X: ArrayLike) -> NDArray:
        """The machine's decision values.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            The values.
        """
        K = self._matrix(X)
        return self._svm.decision_function(K)

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of every item.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray of shape (n,)
            The classes.
        """
        K = self._matrix(X)
        return self._svm.predict(K)

    def _matrix(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        return self.kernel_(validate_data(self, X, dtype=[np.float64, np.float32], reset=False), self.X_fit_)


def align(matrices: Sequence[NDArray], target: NDArray) -> NDArray:
    """Non-negative weights, summing to 1, of the combination with the largest centred alignment with a target.

    ``max_w <K_w, T> / |K_w|`` over ``w >= 0`` with all matrices centred is, up to scale, the non-negative least squares
    problem ``min_w |K_w - T|^2``.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n, n)
        The kernel matrices.
    target : ndarray of shape (n, n)
        The ideal kernel.

    Returns
    -------
    ndarray of shape (n_kernels,)
        The weights; uniform when no kernel is aligned with the target.
    """
    flat = np.stack([_centre(M).ravel() for M in matrices])
    gram, linear = flat @ flat.T, flat @ _centre(target).ravel()
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    # nnls on a square root of the Gram matrix: the matrices themselves are n^2 long
    values, vectors = np.linalg.eigh(gram / scale)
    kept = values > 1e-14 * max(values[-1], np.finfo(float).tiny)
    root = (vectors[:, kept] * np.sqrt(values[kept])).T
    right = (vectors[:, kept] / np.sqrt(values[kept])).T @ (linear / scale)
    weights, _ = nnls(root, right) if kept.any() else (np.zeros(len(gram)), 0.0)
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(gram), 1.0 / len(gram))


def _centre(M: NDArray) -> NDArray:
    means = M.mean(axis=0)
    return M - means - means[:, None] + means.mean()


def _combine(kernels: Sequence[Kernel], weights: NDArray) -> Kernel:
    used = [float(w) * kernel for w, kernel in zip(weights, kernels) if w > 0]
    total = used[0]
    for kernel in used[1:]:
        total = total + kernel
    return total
