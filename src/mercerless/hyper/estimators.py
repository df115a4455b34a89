"""Learn a kernel from labels or extend a similarity to new items: regression in a hyper-RKHS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercerless.core.estimator import FittedEstimator, all_or_nothing
from mercerless.core.folds import cv_of_rows
from mercerless.core.threads import blas_threads
from mercerless.core.validation import (
    check_number,
    check_random_state,
    validate_data,
    warn,
    warn_if_folds_are_useless,
)
from mercerless.hyper.learning import Regression, check_memory_of, learn_kernel, loss_weight
from mercerless.hyper.selection import choose_regression
from mercerless.hyper.targets import encode_target, order_of_items
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.base import own_kernel
from mercerless.kernels.hyper import TensorHyper, check_pairs


class _HyperLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittedEstimator):
    """Base of `HyperRidge` and `HyperSVR`, which differ in their parameters."""

    hyper_kernel: Any
    target: str
    landmarks: Any
    fit_intercept: bool
    cv: Any
    tol: float
    random_state: Any
    _remedy: str  # for a fit that did not converge

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The items.
        y : array-like of shape (n_samples,) or (n_samples, n_samples)
            Labels, values, or similarities between the items (NaN if unknown).

        Returns
        -------
        self
            The fitted estimator.
        """
        rows = validate_data(self, X, dtype=[np.float64, np.float32])
        target, classes, moments = encode_target(y, len(rows), self.target)
        task = self._regression(rows, target.kind)
        order = order_of_items(rows, target)
        labels = None if target.kind == "similarity" else target.values
        cv = cv_of_rows(self.cv, order, len(rows), labels)
        items = rows[order].astype(float, copy=False)
        target = target.take(order)
        unit = target.unit if task.epsilon is not None else 1.0
        target = replace(target, values=target.values / unit)
        random = check_random_state(self.random_state)
        with blas_threads(len(rows)):
            task, results, against_constant = choose_regression(task, items, target, cv, random)
            if against_constant is not None:
                warn_if_folds_are_useless(against_constant, type(self).__name__)
            check_memory_of(task, items)
            kernel, solution = learn_kernel(task, items, target, random)
        if task.epsilon is not None:
            kernel.set_params(coef=unit * kernel.coef, intercept=unit * kernel.intercept)
        if not solution.certificate <= 100 * self.tol:
            warn(
                f"{type(self).__name__} stopped at a relative residual of "
                f"{solution.certificate:.1e} (tol={self.tol}); {self._remedy}.",
                ConvergenceWarning,
            )
        self._set_fitted(
            kernel_=kernel,
            hyper_kernel_=task.hyper_kernel,
            alpha_=task.alpha,
            cv_results_=results,
            target_kind_=target.kind,
            classes_=classes,
            moments_=moments,
            X_fit_=rows,
            certificate_=solution.certificate,
            n_iter_=max(1, solution.n_iter),
        )
        if task.epsilon is not None:
            self.C_ = loss_weight(task.alpha, len(rows))
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        """The learned kernel between new items and the training items.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray of shape (n, n_samples)
            The kernel matrix.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self.kernel_(X, self.X_fit_)

    @property
    def _n_features_out(self) -> int:
        return len(self.X_fit_)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Agreement of the kernel between the items of X with the target: 1 minus the relative squared error.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.
        y : array-like of shape (n,) or (n, n)
            Labels, values or similarities of the same kind as in fit; NaN entries are ignored.

        Returns
        -------
        float
            ``1 - sum((k(X, X) - target)**2) / sum(target**2)``: 1 is perfect, 0 no better than the zero kernel.
        """
        check_is_fitted(self)
        items = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        encoded = encode_target(y, len(items), self.target_kind_, self.classes_, self.moments_)
        target = encoded.target(slice(None), slice(None))
        misses = np.where(np.isnan(target), 0.0, self.kernel_(items) - target)
        total = max(np.nansum(target**2), np.finfo(float).tiny)
        return float(1.0 - np.sum(misses**2) / total)

    def _regression(self, X: NDArray, kind: str) -> Regression:
        """The checked parameters for these items and this kind of target."""
        hyper_kernel = self.hyper_kernel
        if not isinstance(hyper_kernel, str):
            hyper_kernel = own_kernel(hyper_kernel)
        elif hyper_kernel == "auto":
            extends = kind == "similarity" and isinstance(self, HyperRidge)
            hyper_kernel = "tensor" if extends else "gaussian"
        options = self._options(len(X), is_tensor(hyper_kernel))
        landmarks = self._checked_landmarks(X, is_tensor(hyper_kernel))
        return Regression(
            hyper_kernel, landmarks, fit_intercept=self.fit_intercept, tol=self.tol, **options
        )

    def _options(self, n_items: int, tensor: bool) -> dict[str, Any]:
        """The checked parameters of this loss."""
        raise NotImplementedError

    def _checked_landmarks(self, X: NDArray, tensor: bool) -> Any:
        """The number of landmarks, pairs, or None for all pairs (items)."""
        landmarks = self.landmarks
        if landmarks is None:
            return None
        if isinstance(landmarks, str) and landmarks == "auto":
            most = LIMITS.exact_items_tensor if tensor else LIMITS.exact_items
            return None if len(X) <= most else LIMITS.default_landmarks
        if not isinstance(landmarks, np.ndarray):
            check_number("landmarks", landmarks, whole=True)
            return landmarks
        if tensor:
            raise ValueError("landmarks of the tensor hyper-kernel are items; give their number.")
        pairs = check_pairs(landmarks, "landmarks")
        if pairs.shape[2] != X.shape[1]:
            raise ValueError(
                f"landmarks have {pairs.shape[2]} features but X has {X.shape[1]}; pass pairs of "
                "such items."
            )
        return pairs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.requires_fit = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def is_tensor(hyper_kernel: Any) -> bool:
    """Whether this is the tensor hyper-kernel, or its name."""
    if isinstance(hyper_kernel, str):
        return hyper_kernel == "tensor"
    return isinstance(hyper_kernel, TensorHyper)


class HyperRidge(_HyperLearner):
    """Learn a kernel from labels, or extend a similarity matrix to new items, by ridge regression in a hyper-RKHS.

    Minimizes ``mean_ij (k(x_i, x_j) - Y_ij)^2 + alpha |k|^2`` over symmetric kernels k of the hyper-RKHS. The target
    Y is the ideal kernel of labels or values (learning a kernel for classification or regression) or a given matrix
    of similarities, indefinite or with missing entries (extending it to new items).

    Parameters
    ----------
    hyper_kernel : {"auto", "gaussian", "wishart", "tensor"}, HyperKernel or TensorHyper, default="auto"
        A name lets cross-validation choose its scales, in units of the spread of each feature; an object is used as
        it is. "auto" is "tensor" for a similarity
        matrix and "gaussian" for labels.
    alpha : float or None, default=None
        The penalty, relative to hyper-kernels with value 1 for equal items; None: by cross-validation, or .01 for the
        tensor hyper-kernel. 0 is allowed for that, which then keeps all training similarities exactly; if entries are
        missing, it has at least 1e-4 (see ``alpha_``).
    target : {"auto", "classes", "product", "gaussian", "similarity"}, default="auto"
        The target on pairs: 1 for equal and ``-1/(c-1)`` for different classes; the product of standardized
        values; a Gaussian of their difference; the values themselves. "auto" decides by the shape and type of y.
    landmarks : int, ndarray of shape (n_landmarks, 2, n_features), "auto" or None, default="auto"
        Number of sections in the expansion (of landmark items for the tensor hyper-kernel), of random pairs of items;
        or these pairs themselves. None uses all pairs (all items). "auto" is None up to 100 items (2000 for the
        tensor) and 500 above.
    fit_intercept : bool, default=False
        Whether a constant is added to the kernel. Helps targets that do not decay with distance. Gaussian and
        Wishart only; the tensor's trend has one.
    cv : int, splitter or iterable, default=5
        Folds of items; a pair belongs to the training set only if both its items do.
    tol : float, default=1e-5
        Relative residual at which conjugate gradients stop. They replace the normal equations if these cost more, and
        do 300 iterations at most.
    random_state : int, RandomState or None, default=0
        Draws landmarks and folds. Up to 3000 items, their order makes no difference.

    Attributes
    ----------
    kernel_ : HyperExpansion or TensorExpansion
        The learned kernel: call it on any items, or give it to any estimator with a ``kernel`` parameter.
    hyper_kernel_ : HyperKernel or TensorHyper
        The hyper-kernel used.
    alpha_ : float
        The penalty used.
    cv_results_ : list of dict
        Hyper-kernel, alpha and relative validation error of every candidate; empty if nothing was searched.
    target_kind_ : str
        The kind of target that was used.
    classes_ : ndarray or None
        The classes if y has labels.
    moments_ : tuple of float or None
        Mean and standard deviation if y has values.
    certificate_ : float
        Relative residual of the linear system.
    n_iter_ : int
        Iterations, 1 for direct solvers.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training items.

    See Also
    --------
    HyperSVR : The same with the epsilon-insensitive loss.
    HyperClassifier : A learned kernel and a support vector machine in one.

    Notes
    -----
    For the tensor hyper-kernel the penalty is ``sum_ij (k - Y)^2 + alpha |k - trend|^2``, without the mean. Rows of X
    that equal training items are recognized, see `TensorHyper`.

    References
    ----------
    .. [1] Liu, Shi, Huang, Yang, Suykens. "Generalization properties of hyper-RKHS and its applications". Journal of
       Machine Learning Research 22, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import HyperRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 2))
    >>> S = -np.log1p(np.abs(X[:, None] - X[None]).sum(axis=2))
    >>> model = HyperRidge(random_state=0).fit(X[:40], S[:40, :40])
    >>> error = np.linalg.norm(model.transform(X[40:]) - S[40:, :40]) / np.linalg.norm(S[40:, :40])
    >>> bool(error < 0.1)
    True
    >>> model.kernel_.symmetric, model.kernel_.definite
    (True, False)
    """

    _remedy = "use a larger alpha, or fewer landmarks"

    def __init__(
        self,
        hyper_kernel: Any = "auto",
        *,
        alpha: float | None = None,
        target: str = "auto",
        landmarks: int | NDArray | str | None = "auto",
        fit_intercept: bool = False,
        cv: Any = 5,
        tol: float = 1e-5,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.hyper_kernel = hyper_kernel
        self.alpha = alpha
        self.target = target
        self.landmarks = landmarks
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.random_state = random_state

    def _options(self, n_items: int, tensor: bool) -> dict[str, Any]:
        check_number("alpha", self.alpha, zero=tensor, none=True)
        if tensor and self.fit_intercept:
            raise ValueError(
                "fit_intercept belongs to the Gaussian and Wishart hyper-kernels; the tensor's "
                "trend has a constant. Set hyper_kernel='gaussian' or fit_intercept=False."
            )
        return {"alpha": self.alpha}


class HyperSVR(_HyperLearner):
    """Learn a kernel from labels or similarities by support vector regression in a hyper-RKHS.

    Minimizes ``|k|^2 / 2 + C sum_ij max(0, |k(x_i, x_j) + b - Y_ij| - epsilon)`` over kernels k of the hyper-RKHS and
    constants b; ``k + b`` is the learned kernel. Without an intercept b is 0.

    Parameters
    ----------
    hyper_kernel : {"auto", "gaussian", "wishart"} or HyperKernel, default="auto"
        A name lets cross-validation choose its scales; an object is used as it is. "auto" is "gaussian".
    C : float or None, default=None
        The weight of the loss, relative to the size of the targets: similarities in other units give the same kernel
        in these units. None: by cross-validation.
    epsilon : float, default=0.1
        Half the width of the tube in which errors are free, relative as C.
    target : {"auto", "classes", "product", "gaussian", "similarity"}, default="auto"
        The target on pairs, see `HyperRidge`.
    landmarks : int, ndarray of shape (n_landmarks, 2, n_features), "auto" or None, default="auto"
        Number of sections in the expansion, or pairs, see `HyperRidge`; solved by ADMM. None uses all pairs, solved by
        libsvm if there is an intercept.
    fit_intercept : bool, default=True
        Whether a constant is added to the kernel.
    cv : int, splitter or iterable, default=5
        Folds of items.
    tol : float, default=1e-3
        Relative residuals at which ADMM stops (the objective is then exact to about 1e-4); libsvm's tolerance.
    max_iter : int, default=2000
        Most iterations of ADMM.
    random_state : int, RandomState or None, default=0
        Draws landmarks and folds. Up to 3000 items, their order makes no difference.

    Attributes
    ----------
    alpha_ : float
        The penalty of the mean loss over pairs that belongs to C.
    C_ : float
        The weight of the loss that was used.
    certificate_ : float
        Relative duality gap (libsvm) or the larger relative residual (ADMM).
    kernel_, hyper_kernel_, cv_results_, target_kind_, classes_, moments_, n_iter_, X_fit_ : object
        As of `HyperRidge`.

    See Also
    --------
    HyperRidge : The same with the squared loss; faster, and with the tensor hyper-kernel.

    Notes
    -----
    The hyper-kernel's scales and C, as ``1 / (2 alpha n^2)`` for n items, are chosen with the squared loss.

    References
    ----------
    .. [1] Liu, Shi, Huang, Yang, Suykens. "Generalization properties of hyper-RKHS and its applications". Journal of
       Machine Learning Research 22, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import HyperSVR
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HyperSVR(landmarks=60, random_state=0).fit(X[::5], y[::5])
    >>> model.score(X[1::5], y[1::5]) > 0.3
    True
    """

    _remedy = "increase max_iter, or use a smaller C"

    def __init__(
        self,
        hyper_kernel: Any = "auto",
        *,
        C: float | None = None,
        epsilon: float = 0.1,
        target: str = "auto",
        landmarks: int | NDArray | str | None = "auto",
        fit_intercept: bool = True,
        cv: Any = 5,
        tol: float = 1e-3,
        max_iter: int = 2000,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.hyper_kernel = hyper_kernel
        self.C = C
        self.epsilon = epsilon
        self.target = target
        self.landmarks = landmarks
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _options(self, n_items: int, tensor: bool) -> dict[str, Any]:
        check_number("C", self.C, none=True)
        check_number("epsilon", self.epsilon, zero=True)
        check_number("max_iter", self.max_iter, whole=True)
        if tensor:
            raise ValueError(
                "HyperSVR takes the Gaussian and Wishart hyper-kernels; use HyperRidge for the "
                "tensor."
            )
        alpha = None if self.C is None else 1.0 / (2.0 * self.C * n_items**2)
        return {"alpha": alpha, "epsilon": self.epsilon, "max_iter": self.max_iter}
