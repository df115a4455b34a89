"""Learn a kernel from labels or extend a similarity to new items: regression in a hyper-RKHS."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercerless.core.estimator import FittedEstimator, all_or_nothing
from mercerless.core.folds import cv_of_rows
from mercerless.core.optional import with_callbacks
from mercerless.core.threads import blas_threads
from mercerless.core.validation import (
    check_number,
    check_option,
    check_random_state,
    validate_data,
    warn,
    warn_if_folds_are_useless,
)
from mercerless.hyper.learning import Regression, check_memory_of, learn_kernel, pairs_of_grid
from mercerless.hyper.selection import choose_regression
from mercerless.hyper.targets import encode_target, order_of_items
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.base import own_kernel
from mercerless.kernels.hyper import TensorHyper
from mercerless.lowrank import Landmarks, as_landmarks


class _HyperLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittedEstimator):
    """Base of `HyperRidge` and `HyperSVR`, which differ in their parameters."""

    hyper_kernel: Any
    target: str
    landmarks: Any
    n_parts: int | str
    cv: Any
    tol: float
    n_jobs: int | None
    random_state: Any
    _remedy: str  # for a fit that did not converge

    @with_callbacks
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
        order = order_of_items(rows, target)
        labels = None if target.kind == "similarity" else target.values
        cv = cv_of_rows(self.cv, order, len(rows), labels)
        items = rows[order].astype(float, copy=False)
        target = target.take(order)
        task = self._regression(len(rows), target.kind)
        unit = target.unit if task.epsilon is not None else 1.0
        target = target.divided_by(unit)
        random = check_random_state(self.random_state)
        with self._progress() as progress, blas_threads(len(rows)):

            def report(info: dict) -> bool:
                """Call back after a candidate or iteration; whether a callback requests a stop."""
                return progress.step({"stage": "iteration", **info})

            choice = choose_regression(task, items, target, cv, random, report)
            task = choice.task
            if choice.against_constant is not None:
                warn_if_folds_are_useless(choice.against_constant, type(self).__name__)
            check_memory_of(task, items, target)
            kernel, solution = learn_kernel(task, items, target, random, report)
            if unit != 1.0:
                kernel = kernel.multiplied_by(unit)
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
            cv_results_=choice.results,
            target_kind_=target.kind,
            classes_=classes,
            moments_=moments,
            X_fit_=rows,
            certificate_=solution.certificate,
            n_iter_=max(1, solution.n_iter),
        )
        if task.epsilon is not None:
            self.C_ = task.loss_weight(len(rows))
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

    def _regression(self, n_items: int, kind: str) -> Regression:
        """The checked parameters for this many items and this kind of target."""
        hyper_kernel = self.hyper_kernel
        if not isinstance(hyper_kernel, str):
            hyper_kernel = own_kernel(hyper_kernel)
        elif hyper_kernel == "auto":
            extends = kind == "similarity" and isinstance(self, HyperRidge)
            hyper_kernel = "tensor" if extends else "gaussian"
        tensor = is_tensor(hyper_kernel)
        n_parts = 1 if tensor and self.n_parts == "auto" else self._count_parts(n_items)
        n_landmarks, method = self._count_landmarks(n_items, tensor, n_parts)
        task = Regression(
            hyper_kernel,
            n_landmarks=n_landmarks,
            landmark_method=method,
            n_parts=n_parts,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )
        return task._replace(**self._options(tensor))

    def _options(self, tensor: bool) -> dict[str, Any]:
        """The checked parameters of this loss."""
        raise NotImplementedError

    def _count_parts(self, n_items: int) -> int:
        n_parts = self.n_parts
        if n_parts == "auto":
            is_small = self.landmarks is None or n_items <= 2 * LIMITS.part_items
            return 1 if is_small else -(-n_items // LIMITS.part_items)
        if not (isinstance(n_parts, Integral) and 1 <= n_parts <= n_items):
            raise ValueError(
                f"n_parts must be an integer between 1 and the {n_items} items, or 'auto', not "
                f"{n_parts!r}."
            )
        if n_parts > 1 and self.landmarks is None:
            raise ValueError("n_parts > 1 needs centers that the parts share; set landmarks.")
        return int(n_parts)

    def _count_landmarks(self, n_items: int, tensor: bool, n_parts: int) -> tuple[int | None, str]:
        """The number of landmarks, None for all pairs (items), and how they are chosen."""
        if self.landmarks is None:
            return None, "uniform"
        if isinstance(self.landmarks, str) and self.landmarks == "auto":
            most = LIMITS.exact_items_tensor if tensor else LIMITS.exact_items
            is_small = n_items <= most and n_parts == 1
            return None if is_small else LIMITS.default_landmarks, "uniform"
        landmarks = as_landmarks(self.landmarks, ("uniform", "leverage", "grid"))
        if landmarks.method == "grid" and not tensor:
            return pairs_of_grid(landmarks.number), "grid"
        return landmarks.number, landmarks.method

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
    landmarks : int, Landmarks, "auto" or None, default="auto"
        Number of sections in the expansion (of landmark items for the tensor hyper-kernel); None uses all pairs (all
        items). "auto" is None up to 100 items (2000 for the tensor) and 500 above. `Landmarks` also sets how pairs are
        chosen: "uniform", "leverage", or "grid", the paper's: all pairs of so many items, in every part of its own. The
        tensor hyper-kernel takes random items.
    n_parts : int or "auto", default=1
        Divide the items and average the parts' kernels. All parts share their centers (unless these are grids), so the
        result is as small as one part's. "auto": parts of about 500 if there are more than 1000 items. Gaussian and
        Wishart only.
    solver : {"auto", "direct", "cg"}, default="auto"
        Normal equations accumulated in blocks, or conjugate gradients without them. "auto" decides by size, and falls
        back to the former if the latter miss `tol` by far and ten times as much work is enough; with the Wishart
        hyper-kernel it takes the former up to 2000 sections.
    nonnegative : bool, default=False
        Only non-negative coefficients: the learned kernel is positive definite. Gaussian and Wishart only.
    fit_intercept : bool, default=False
        Whether a constant is added to the kernel. Helps targets that do not decay with distance. Gaussian and
        Wishart only; the tensor's trend has one.
    cv : int, splitter or iterable, default=5
        Folds of items; a pair belongs to the training set only if both its items do.
    tol : float, default=1e-5
        Relative residual at which iterative solvers stop, or after 300 iterations.
    n_jobs : int or None, default=None
        Parts fitted at a time, through joblib.
    random_state : int, RandomState or None, default=0
        Draws centers, folds and parts. Up to 3000 items, their order makes no difference.

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
        Relative residual of the linear system; the worst part's.
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

    _remedy = "use a larger alpha, or solver='direct'"

    def __init__(
        self,
        hyper_kernel: Any = "auto",
        *,
        alpha: float | None = None,
        target: str = "auto",
        landmarks: int | Landmarks | str | None = "auto",
        n_parts: int | str = 1,
        solver: str = "auto",
        nonnegative: bool = False,
        fit_intercept: bool = False,
        cv: Any = 5,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.hyper_kernel = hyper_kernel
        self.alpha = alpha
        self.target = target
        self.landmarks = landmarks
        self.n_parts = n_parts
        self.solver = solver
        self.nonnegative = nonnegative
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _options(self, tensor: bool) -> dict[str, Any]:
        check_number("alpha", self.alpha, zero=tensor, none=True)
        check_option("solver", self.solver, ("auto", "direct", "cg"))
        is_default = self.n_parts in (1, "auto") and not (self.nonnegative or self.fit_intercept)
        if tensor and not is_default:
            raise ValueError(
                "n_parts, nonnegative and fit_intercept belong to the Gaussian and Wishart "
                "hyper-kernels; set hyper_kernel='gaussian' or leave them at their defaults."
            )
        return {
            "alpha": self.alpha,
            "solver": self.solver,
            "nonnegative": self.nonnegative,
            "fit_intercept": self.fit_intercept,
            "max_iter": LIMITS.max_iter,
        }


class HyperSVR(_HyperLearner):
    """Learn a kernel from labels or similarities by support vector regression in a hyper-RKHS.

    Minimizes ``|k|^2 / 2 + C sum_ij max(0, |k(x_i, x_j) + b - Y_ij| - epsilon)`` over kernels k of the hyper-RKHS and
    constants b; ``k + b`` is the learned kernel. Without an intercept b is 0.

    Parameters
    ----------
    hyper_kernel : {"auto", "gaussian", "wishart"} or HyperKernel, default="auto"
        A name lets cross-validation choose its scales; an object is used as it is. "auto" is "gaussian".
    C : float or None, default=None
        The weight of the loss; None: by cross-validation.
        Relative to the size of the targets: similarities in other units give the same kernel in these units.
    epsilon : float, default=0.1
        Half the width of the tube in which errors are free, relative as C.
    target : {"auto", "classes", "product", "gaussian", "similarity"}, default="auto"
        The target on pairs, see `HyperRidge`.
    landmarks : int, Landmarks, "auto" or None, default="auto"
        Number of sections in the expansion, solved by ADMM; None uses all pairs, solved by libsvm. "auto" is None up
        to 100 items and 500 above. `Landmarks` also sets how pairs are chosen, see `HyperRidge`.
    n_parts : int or "auto", default=1
        Divide the items and average the parts' kernels, which share their centers; see `HyperRidge`.
    fit_intercept : bool, default=True
        Whether a constant is added to the kernel.
    cv : int, splitter or iterable, default=5
        Folds of items.
    tol : float, default=1e-3
        Relative residuals at which ADMM stops (the objective is then exact to about 1e-4); libsvm's tolerance.
    max_iter : int, default=2000
        Most iterations of ADMM.
    n_jobs : int or None, default=None
        Parts fitted at a time, through joblib.
    random_state : int, RandomState or None, default=0
        Draws centers, folds and parts. Up to 3000 items, their order makes no difference.

    Attributes
    ----------
    alpha_ : float
        The ridge penalty with which the hyper-kernel was chosen.
    C_ : float
        The loss's weight used.
    certificate_ : float
        Relative duality gap (libsvm) or the larger relative residual (ADMM).
    kernel_, hyper_kernel_, cv_results_, target_kind_, classes_, moments_, n_iter_, X_fit_ : object
        As of `HyperRidge`.

    See Also
    --------
    HyperRidge : The same with the squared loss; faster, and with the tensor hyper-kernel.

    Notes
    -----
    The hyper-kernel's scales are chosen with the squared loss; C then with this one, as ``1 / (2 alpha n^2)`` for a
    range of alpha, n the number of items, so that the choice does not depend on n. If ``cv`` is a number, it is chosen
    on at most three folds.

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
        landmarks: int | Landmarks | str | None = "auto",
        n_parts: int | str = 1,
        fit_intercept: bool = True,
        cv: Any = 5,
        tol: float = 1e-3,
        max_iter: int = 2000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.hyper_kernel = hyper_kernel
        self.C = C
        self.epsilon = epsilon
        self.target = target
        self.landmarks = landmarks
        self.n_parts = n_parts
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _options(self, tensor: bool) -> dict[str, Any]:
        check_number("C", self.C, none=True)
        check_number("epsilon", self.epsilon, zero=True)
        if tensor:
            raise ValueError(
                "HyperSVR takes the Gaussian and Wishart hyper-kernels; use HyperRidge for the "
                "tensor."
            )
        return {
            "C": self.C,
            "epsilon": self.epsilon,
            "fit_intercept": self.fit_intercept,
            "max_iter": self.max_iter,
        }
