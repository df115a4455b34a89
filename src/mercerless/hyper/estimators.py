"""Learn a kernel from labels or extend a similarity to new items: estimators in a hyper-RKHS."""

from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import LazyRows, blockwise, check_rows, is_dask, take_rows
from mercerless.core.estimator import (
    FittedEstimator,
    NamedClassifierMixin,
    NamedRegressorMixin,
    all_or_nothing,
)
from mercerless.core.folds import cv_of_rows, some_rows
from mercerless.core.memory import check_memory
from mercerless.core.optional import with_callbacks
from mercerless.core.threads import blas_threads
from mercerless.core.validation import (
    align_by_name,
    check_classes,
    check_number,
    check_option,
    check_random_state,
    check_targets,
    validate_data,
    warn,
    warn_if_folds_are_useless,
    warn_if_useless,
)
from mercerless.hyper.machine import (
    ChosenStages,
    KernelStage,
    KreinStage,
    Labels,
    LinearStage,
    Numbers,
    Stage,
    auto_parts,
    choose_stages,
    normalized,
)
from mercerless.hyper.selection import (
    PairTarget,
    Regression,
    choose_regression,
    encode_target,
    learn_kernel,
    order_by_content,
    pairs_of_grid,
    with_solvable_penalty,
)
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.base import own_kernel
from mercerless.kernels.hyper import TensorHyper
from mercerless.krein.estimators import KreinRidge, KreinRidgeClassifier
from mercerless.lowrank import Landmarks, as_landmarks


def _without_weights(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit that takes no weights say so, and what to do instead."""

    @wraps(fit)
    def checked(self, X, y, *others, **options):
        weight = options.pop("sample_weight", others[0] if others else None)
        if weight is not None:
            raise TypeError(
                f"{type(self).__name__} takes no sample_weight; repeat rows instead, each as often "
                "as it should count."
            )
        return fit(self, X, y, *others[1:], **options)

    return checked


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
    @_without_weights
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the kernel.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n_samples, n_features)
            The items. A Dask array or a memory map is read one part at a time.
        y : array-like of shape (n_samples,) or (n_samples, n_samples)
            Labels, values, or similarities between the items (NaN if unknown). If X and y have a pandas index of
            the same unique names in another order, they are matched by name; otherwise, and with a RangeIndex, by
            position.

        Returns
        -------
        self
            The fitted estimator.
        """
        y = align_by_name(X, y)
        if hasattr(y, "T"):  # the columns of similarities are items as well
            y = align_by_name(X, y.T).T
        rows, items = _training_items(self, X)
        target, classes, moments = encode_target(y, len(rows), self.target)
        if target.kind == "similarity":  # a matrix of all pairs is in memory, so the items can be
            items = items[:]
        values = None if target.kind == "similarity" else target.values
        order = order_by_content(rows, values, self.cv)
        if order is not None:
            items = items[order]
            target = target.take(order)
        task = _regression(self, len(rows), target.kind)
        random = check_random_state(self.random_state)
        with self._progress() as progress, blas_threads(len(rows)):
            remedy = "n_parts='auto' divides the rows, and n_jobs=2 shares the parts"
            progress.expect(_expected_products(task, len(rows)), len(rows), remedy)

            def report(info: dict) -> bool:
                """Call back after a candidate or iteration; whether a callback requests a stop."""
                return progress.step({"stage": "iteration", **info})

            choice = choose_regression(task, items, target, self.cv, random, report)
            task = with_solvable_penalty(choice.task, target)
            if choice.against_constant is not None:
                warn_if_folds_are_useless(choice.against_constant, type(self).__name__)
            _check_memory(task, items, target)
            kernel, solution = learn_kernel(task, items, target, random, report)
            self._warn(solution.certificate)
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

    def _warn(self, certificate: float) -> None:
        if not certificate <= 100 * self.tol:
            warn(
                f"{type(self).__name__} stopped at a relative residual of {certificate:.1e} "
                f"(tol={self.tol}); {self._remedy}.",
                ConvergenceWarning,
            )

    @blockwise
    def transform(self, X: ArrayLike) -> NDArray:
        """The learned kernel between new items and the training items.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_samples)
            The kernel matrix, lazy for a Dask array.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        known = self.X_fit_.compute() if is_dask(self.X_fit_) else self.X_fit_
        return self.kernel_(X, known)

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
        everything = slice(None)
        target = encoded.target(everything, everything)
        is_unknown = np.isnan(target)
        misses = np.where(is_unknown, 0.0, self.kernel_(items) - target)
        total = max(np.nansum(target**2), np.finfo(float).tiny)
        return float(1.0 - np.sum(misses**2) / total)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.requires_fit = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _training_items(estimator: BaseEstimator, X: Any) -> tuple[Any, Any]:
    """The validated rows, and the same as float64 for the solvers: an array, or rows that are read when indexed."""
    if is_dask(X):
        items = LazyRows(X)
        estimator.n_features_in_ = items.shape[1]
        return items.X, _Float64Rows(items)
    X = validate_data(estimator, X, dtype=[np.float64, np.float32])
    return X, X if X.dtype == np.float64 else _Float64Rows(X)


class _Float64Rows:
    """Rows that become float64 when they are read."""

    def __init__(self, rows: Any):
        self.rows = rows
        self.shape = rows.shape

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> NDArray:
        return self.rows[index].astype(np.float64, copy=False)


class HyperRidge(_HyperLearner):
    """Learn a kernel from labels, or extend a similarity matrix to new items, by ridge regression in a hyper-RKHS.

    Minimizes ``mean_ij (k(x_i, x_j) - Y_ij)^2 + alpha |k|^2`` over symmetric kernels k of the hyper-RKHS. The target
    Y is the ideal kernel of labels or values (learning a kernel for classification or regression) or a given matrix
    of similarities, indefinite or with missing entries (extending it to new items).

    Parameters
    ----------
    hyper_kernel : {"auto", "gaussian", "wishart", "tensor"}, HyperKernel or TensorHyper, default="auto"
        A name lets cross-validation choose its scales; an object is used as it is. "auto" is "tensor" for a similarity
        matrix and "gaussian" for labels.
    alpha : float or None, default=None
        The penalty, relative to hyper-kernels with value 1 for equal items; None: by cross-validation. 0 is allowed
        for the tensor hyper-kernel, which then keeps all training similarities exactly; if entries are missing, it has
        at least 1e-4 (see ``alpha_``).
    target : {"auto", "classes", "product", "gaussian", "similarity"}, default="auto"
        The target on pairs: 1 for equal and ``-1/(c-1)`` for different classes; the product of standardized
        values; a Gaussian of their difference; the values themselves. "auto" decides by the shape and type of y.
    landmarks : int, Landmarks, "auto" or None, default="auto"
        Number of sections in the expansion (of landmark items for the tensor hyper-kernel); None uses all pairs (all
        items). "auto" is None up to 100 items (2000 for the tensor) and 500 above. `Landmarks` also sets how pairs are
        chosen: "uniform", "kmeans" (means of clusters of midpoints), "leverage", or "grid", the paper's: all pairs of
        so many items, in every part of its own. The tensor hyper-kernel takes random items, or with "kmeans" those
        nearest to cluster means.
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
    random_state : int, RandomState or None, default=None
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
        random_state: int | np.random.RandomState | None = None,
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
    epsilon : float, default=0.1
        Half the width of the tube in which errors are free.
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
    random_state : int, RandomState or None, default=None
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
        random_state: int | np.random.RandomState | None = None,
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


def _regression(learner: HyperRidge | HyperSVR, n_items: int, kind: str) -> Regression:
    """The checked parameters of a learner for this many items and this kind of target."""
    hyper_kernel = learner.hyper_kernel
    if not isinstance(hyper_kernel, str):
        hyper_kernel = own_kernel(hyper_kernel)
    elif hyper_kernel == "auto":
        extends = kind == "similarity" and isinstance(learner, HyperRidge)
        hyper_kernel = "tensor" if extends else "gaussian"
    tensor = _is_tensor(hyper_kernel)
    n_parts = _count_parts(learner, n_items)
    if tensor and learner.n_parts == "auto":
        n_parts = 1
    n_landmarks, method = _count_landmarks(learner, n_items, tensor, n_parts)
    task = Regression(
        hyper_kernel,
        n_landmarks=n_landmarks,
        landmark_method=method,
        n_parts=n_parts,
        tol=learner.tol,
        n_jobs=learner.n_jobs,
    )
    if isinstance(learner, HyperSVR):
        _check_svr(learner)
        return task._replace(
            C=learner.C,
            epsilon=learner.epsilon,
            fit_intercept=learner.fit_intercept,
            max_iter=learner.max_iter,
        )
    _check_ridge(learner, tensor)
    return task._replace(
        alpha=learner.alpha,
        solver=learner.solver,
        nonnegative=learner.nonnegative,
        fit_intercept=learner.fit_intercept,
        max_iter=LIMITS.max_iter,
    )


def _is_tensor(hyper_kernel: Any) -> bool:
    return isinstance(hyper_kernel, TensorHyper) or (
        isinstance(hyper_kernel, str) and hyper_kernel == "tensor"
    )


def _check_ridge(learner: HyperRidge, tensor: bool) -> None:
    check_number("alpha", learner.alpha, zero=tensor, none=True)
    check_option("solver", learner.solver, ("auto", "direct", "cg"))
    if tensor and (
        learner.n_parts not in (1, "auto") or learner.nonnegative or learner.fit_intercept
    ):
        raise ValueError(
            "n_parts, nonnegative and fit_intercept belong to the Gaussian and Wishart "
            "hyper-kernels; set hyper_kernel='gaussian' or leave them at their defaults."
        )


def _check_svr(learner: HyperSVR) -> None:
    check_number("C", learner.C, none=True)
    check_number("epsilon", learner.epsilon, zero=True)
    if _is_tensor(learner.hyper_kernel):
        raise ValueError(
            "HyperSVR takes the Gaussian and Wishart hyper-kernels; use HyperRidge for the tensor."
        )


def _count_parts(learner: HyperRidge | HyperSVR, n_items: int) -> int:
    n_parts = learner.n_parts
    if isinstance(n_parts, str) and n_parts == "auto":
        if learner.landmarks is None:
            return 1
        return auto_parts(n_items)
    if not (isinstance(n_parts, Integral) and 1 <= n_parts <= n_items):
        raise ValueError(
            f"n_parts must be an integer between 1 and the {n_items} items, or 'auto', not "
            f"{n_parts!r}."
        )
    if n_parts > 1 and learner.landmarks is None:
        raise ValueError("n_parts > 1 needs centers that the parts share; set landmarks.")
    return int(n_parts)


def _count_landmarks(
    learner: HyperRidge | HyperSVR, n_items: int, tensor: bool, n_parts: int
) -> tuple[int | None, str]:
    """The number of landmarks, None for all pairs (items), and how they are chosen."""
    if learner.landmarks is None:
        return None, "uniform"
    if isinstance(learner.landmarks, str) and learner.landmarks == "auto":
        most = LIMITS.exact_items_tensor if tensor else LIMITS.exact_items
        if n_items <= most and n_parts == 1:
            return None, "uniform"
        return LIMITS.default_landmarks, "uniform"
    landmarks = as_landmarks(learner.landmarks, ("uniform", "kmeans", "leverage", "grid"))
    if landmarks.method == "grid" and not tensor:
        return pairs_of_grid(landmarks.number), "grid"
    return landmarks.number, landmarks.method


def _expected_products(task: Regression, n: int) -> float:
    """The measured work of a fit, in products of two matrices of n rows."""
    if isinstance(task.hyper_kernel, TensorHyper):  # solved by eigendecompositions of n rows
        return LIMITS.tensor_products
    n_centers = task.n_landmarks
    if n_centers is None:
        n_centers = n * (n + 1) // 2
    per_center = LIMITS.ridge_operations
    if task.epsilon is not None:
        per_center = LIMITS.tube_operations
    operations = per_center * n_centers * float(n) ** 2 / task.n_parts
    if task.alpha is None:
        operations += LIMITS.search_operations
    return operations / (2.0 * float(n) ** 3)


def _check_memory(task: Regression, X: Any, target: PairTarget) -> None:
    """Raise MemoryError, before any work, if the kernel cannot be learned within the memory limit."""
    n = len(X)
    hyper = task.hyper_kernel
    n_centers = task.n_landmarks
    if isinstance(hyper, TensorHyper):
        size = 14 + 4.5 * hyper.n_trends(X.shape[1], hyper.knots(X[:]))
        check_memory(
            8.0 * n**2 * size,
            f"The similarities of {n} items",
            remedy="use fewer items or trend=None",
        )
        return
    n_pairs = n * (n + 1) // 2
    if n_centers is None and not task.nonnegative:
        if target.missing:
            n_pairs = int(np.sum(~np.isnan(target.values[np.triu_indices(n)])))
        copies = 34.0
        if task.epsilon is not None and not task.fit_intercept:  # every pair comes twice
            copies *= 4.0
        remedy = "set landmarks"
        check_memory(
            copies * n_pairs**2, f"The hyper-kernel matrix of {n_pairs} pairs", remedy=remedy
        )
        return
    if n_centers is None:
        n_centers = n_pairs
    remedy = "use fewer landmarks"
    check_memory(48.0 * n_centers**2, f"The system of {n_centers} centers", remedy=remedy)
    if task.epsilon is not None:
        n = -(-n // task.n_parts)
        check_memory(84.0 * n**2, f"The pairs of {n} items", remedy="use n_parts")


class _TwoStage(FittedEstimator):
    """Base of the classifier and the regressor: a kernel learned from y, then a kernel machine."""

    _target_kinds: tuple[str, ...]  # the kinds of target that stage 1 may have, the default first

    def __init__(
        self,
        learner: HyperRidge | HyperSVR | None = None,
        *,
        C: float | None = None,
        machine: str = "auto",
        max_samples: int | None = 10_000,
        n_components: int = 500,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.learner = learner
        self.C = C
        self.machine = machine
        self.max_samples = max_samples
        self.n_components = n_components
        self.cv = cv
        self.random_state = random_state

    @_without_weights
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n_samples, n_features)
            The items; of a Dask array or a memory map only blocks and samples are read.
        y : array-like of shape (n_samples,)
            The labels, or the values. If X and y have a pandas index of the same unique names in another order, they
            are matched by name; otherwise, and with a RangeIndex, by position.

        Returns
        -------
        self
            The fitted estimator.
        """
        y = align_by_name(X, y)
        with blas_threads(y):
            self._learn(X, y)
        return self

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray:
        """The class, or the value, of every item.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            The classes or values.
        """
        return self._evaluate("predict", X)

    @abstractmethod
    def _learn(self, X: ArrayLike, y: ArrayLike) -> None:
        """Check the targets and fit both stages."""

    def _fit_stages(self, X: Any, y: NDArray, targets: Labels | Numbers) -> dict[str, Any]:
        """Choose both stages on a sample, learn the kernel on at most max_samples rows, fit the machine on all.

        Returns the fitted attributes.
        """
        if is_dask(X) and len(X) <= LIMITS.large:
            X = X.compute()
        cv = list(self.cv) if np.iterable(self.cv) else self.cv
        stage = self._make_stage(X, targets, cv)
        learner = self._make_learner(cv, len(X))
        X_given = X
        y_given = y
        order = order_by_content(X, y, cv, learner.cv)
        if order is not None:
            X = X[order]
            y = y[order]
        random = check_random_state(self.random_state)

        chosen = self._choose_stages(stage, learner, X, y, cv, random)
        rows = some_rows(len(X), self.max_samples, random)
        learner = _with_choice(learner, chosen.task, len(rows), len(X))
        if len(rows) == len(X):
            learner.fit(X_given, y_given)
        else:
            learner.fit(take_rows(X, rows), y[rows])

        sample = take_rows(X, rows[:: max(1, len(rows) // LIMITS.tune_rows)])
        kernel = normalized(learner.kernel_, sample)
        stage.fit(kernel, X, y, chosen.C)
        _warn_machine(stage.certificate)
        return {
            "learner_": learner,
            "machine_": stage,
            "C_": stage.C,
            "kernel_": kernel,
            "cv_results_": chosen.results,
            "hyper_kernel_": learner.hyper_kernel_,
            "certificate_": max(learner.certificate_, stage.certificate),
        }

    def _choose_stages(
        self, stage: Stage, learner: HyperRidge | HyperSVR, X: Any, y: NDArray, cv: Any, random
    ) -> ChosenStages:
        """Compare settings of both stages on a sample of the rows."""
        most = LIMITS.tune_rows if isinstance(stage, LinearStage) else LIMITS.tune_items
        sample = some_rows(len(X), most, random)
        classify = stage.targets.classify
        folds = [
            cv_of_rows(splitter, sample, len(X), y, classify=classify)
            for splitter in (learner.cv, cv)
        ]
        undivided = clone(learner).set_params(n_parts=1)
        task = _regression(undivided, len(sample), learner.target)
        chosen = choose_stages(
            stage,
            task,
            learner.target,
            take_rows(X, sample),
            y[sample],
            folds,
            random,
            learner.random_state,
        )
        if chosen.comparison is not None:
            losses = chosen.comparison.losses
            warn_if_useless(losses, chosen.comparison.constant, type(self).__name__)
        return chosen

    def _make_learner(self, cv: Any, n_items: int) -> HyperRidge | HyperSVR:
        """A copy of stage 1, or the default one; its target and seed are filled in if they are not set."""
        learner = self.learner
        if learner is None:  # a machine follows: more digits of the kernel would not change it
            learner = HyperRidge("gaussian", n_parts="auto", cv=cv, tol=1e-4)
        if not isinstance(learner, (HyperRidge, HyperSVR)):
            raise TypeError(
                f"learner must be HyperRidge(...), HyperSVR(...) or None, not {learner!r}."
            )
        learner = clone(learner)
        if learner.target == "auto":
            learner.target = self._target_kinds[0]
        check_option("the learner's target", learner.target, self._target_kinds)
        if _is_tensor(learner.hyper_kernel):
            raise ValueError(
                "labels need the Gaussian or Wishart hyper-kernel; the tensor extends similarities."
            )
        if learner.random_state is None:
            learner.random_state = self.random_state
        _count_parts(learner, n_items)  # raises now rather than after the search
        return learner

    def _make_stage(self, X: Any, targets: Labels | Numbers, cv: Any) -> Stage:
        """Stage 2, unfitted; raises before any work if it cannot be fitted."""
        self._check_parameters()
        machine = self.machine
        n = len(X)
        if machine == "auto":
            machine = "svm" if n <= LIMITS.large else "linear"
        if machine == "svm" and is_dask(X):
            raise ValueError(
                "machine='svm' needs all rows in memory; use machine='linear', or X.compute()."
            )
        judge = KernelStage(getattr(self, "epsilon", 0.0), targets)
        stage: Stage = judge
        if machine == "linear":
            size = min(n, 2 * self.n_components)
            remedy = "use fewer components"
            check_memory(16.0 * size**2, f"A sample of {size} rows for the features", remedy=remedy)
            stage = LinearStage(self.n_components, cv, self.random_state, targets)
        elif machine == "krein":
            estimator = KreinRidgeClassifier if targets.classify else KreinRidge
            stage = KreinStage(estimator(cv=cv, random_state=self.random_state), judge)
        else:
            remedy = "use machine='linear'"
            check_memory(40.0 * n**2, f"The flipped kernel matrix of {n} items", remedy=remedy)
        if self.C is not None:
            stage.grid = np.array([float(self.C)])
        return stage

    def _check_parameters(self) -> None:
        check_option("machine", self.machine, ("auto", "svm", "linear", "krein"))
        check_number("C", self.C, none=True)
        check_number("max_samples", self.max_samples, whole=True, none=True)

    def _training_data(self, X: Any, y: Any, **checks: Any) -> tuple[Any, NDArray]:
        """Checked rows, in memory or not, and one target per row."""
        if not is_dask(X):
            return validate_data(self, X, y, dtype=[np.float64, np.float32], **checks)
        X = check_rows(X)
        y = column_or_1d(np.asarray(y))
        check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(X, y)
        self.n_features_in_ = X.shape[1]
        return X, y

    def _evaluate(self, method: str, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        return self.machine_.evaluate(
            method, validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        )


def _with_choice(
    learner: HyperRidge | HyperSVR, task: Regression, n_sample: int, n_rows: int
) -> Any:
    """Stage 1 with the chosen settings; its parts of all rows become proportionally fewer of a sample."""
    if learner.n_parts == "auto":
        n_parts = _count_parts(learner, n_sample)
    else:
        n_parts = -(-_count_parts(learner, n_rows) * n_sample // n_rows)
    learner.set_params(hyper_kernel=task.hyper_kernel, n_parts=n_parts)
    if isinstance(learner, HyperRidge):
        return learner.set_params(alpha=task.alpha)
    return learner.set_params(C=task.loss_weight(n_sample / n_parts))


def _warn_machine(certificate: float) -> None:
    if not certificate <= 1e-6:
        warn(
            f"The linear machine stopped at a relative gap of {certificate:.1e}; use a smaller C.",
            ConvergenceWarning,
        )


class HyperClassifier(NamedClassifierMixin, _TwoStage):
    """Learn a kernel from the labels, then classify with it: the paper's two stages in one estimator.

    Stage 1 is `HyperRidge` (or `HyperSVR`) on the ideal kernel of the labels. Stage 2 is a support vector machine with
    the learned kernel, scaled to a unit mean diagonal and with its negative directions flipped; for many items a linear
    machine on low-rank features, from sums over blocks of rows. Candidates of stage 1, the plain Gaussian kernel among
    them, are compared by stage 2 on held-out items.

    Parameters
    ----------
    learner : HyperRidge, HyperSVR or None, default=None
        Stage 1, with all its options. If its hyper-kernel is a name, its scales and alpha are chosen together with
        C; the candidates of "gaussian" include ``pair_scale=inf``, the plain Gaussian kernel, which is chosen if
        learning does not help. Its ``n_parts`` are parts of all rows, proportionally fewer of a sample. None:
        ``HyperRidge("gaussian", n_parts="auto")``.
    C : float or None, default=None
        Stage 2's loss weight; None: by cross-validation with the kernel learned anew in every fold.
    machine : {"auto", "svm", "linear", "krein"}, default="auto"
        Stage 2: `SVC`, a linear machine with squared hinge loss on low-rank features, both with the kernel's negative
        directions flipped, or `KreinRidgeClassifier`. "auto" is "svm" up to 3000 items, then "linear".
    max_samples : int or None, default=10000
        Rows that stage 1 learns from at most, drawn at random; None: all. Stage 2 always uses all.
    n_components : int, default=500
        Rank of stage 2's low-rank features.
    cv : int, splitter or iterable, default=5
        Folds on which both stages are compared, and of the default learner. If it is a number, they are drawn up to
        five times for fewer than 300 labels, of which a single draw leaves the choice to chance.
    random_state : int, RandomState or None, default=None
        The seed, also of a learner that has none. Up to 3000 rows, their order makes no difference.

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    kernel_ : Kernel
        The learned kernel, scaled.
    hyper_kernel_ : HyperKernel
        The hyper-kernel used.
    learner_ : HyperRidge or HyperSVR
        Stage 1.
    C_ : float or None
        Stage 2's loss weight.
    machine_ : object
        Stage 2.
    certificate_ : float
        The larger of stage 1's certificate and the relative optimality gap of a linear machine.
    cv_results_ : list of dict
        Hyper-kernel, alpha and score (right predictions) of the candidates compared with both stages; empty if there
        was one.

    See Also
    --------
    HyperRidge : Stage 1 alone.

    Notes
    -----
    On ordinary tables a tuned Gaussian `SVC` is about as accurate, and cheaper; see the benchmarks.

    References
    ----------
    .. [1] Liu, Shi, Huang, Yang, Suykens. "Generalization properties of hyper-RKHS and its applications". Journal of
       Machine Learning Research 22, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import HyperClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HyperClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _target_kinds = ("classes",)

    def _learn(self, X: ArrayLike, y: ArrayLike) -> None:
        X, y = self._training_data(X, y)
        _, classes, _ = check_classes(y, None, None, type(self).__name__)
        attributes = self._fit_stages(X, y, Labels())
        self._set_fitted(classes_=classes, **attributes)

    @blockwise
    def decision_function(self, X: ArrayLike) -> NDArray:
        """Signed distances from the decision boundary, as stage 2 gives them.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes)
            The values.
        """
        return self._evaluate("decision_function", X)


class HyperRegressor(NamedRegressorMixin, _TwoStage):
    """Learn a kernel from the targets, then regress with it.

    Stage 1 is `HyperRidge` (or `HyperSVR`) on the product of standardized targets or a Gaussian of their differences.
    Stage 2 is a support vector regression with the learned kernel, scaled to a unit mean diagonal and with its negative
    directions flipped; for many items ridge regression on low-rank features, from sums over blocks of rows. Candidates
    of stage 1, the plain Gaussian kernel among them, are compared by stage 2 on held-out items.

    Parameters
    ----------
    learner : HyperRidge, HyperSVR or None, default=None
        Stage 1, see `HyperClassifier`. None: ``HyperRidge("gaussian", n_parts="auto", target="gaussian")``.
    C : float or None, default=None
        Stage 2's loss weight; None: by cross-validation with the kernel learned anew in every fold.
    epsilon : float, default=0.05
        Half the width of stage 2's tube, in standard deviations of y.
    machine : {"auto", "svm", "linear", "krein"}, default="auto"
        Stage 2: `SVR` or ridge regression on low-rank features, both with the kernel's negative directions flipped, or
        `KreinRidge`. "auto" is "svm" up to 3000 items, then "linear".
    max_samples, n_components, cv, random_state : object
        See `HyperClassifier`.

    Attributes
    ----------
    kernel_, hyper_kernel_, learner_, C_, machine_, certificate_, cv_results_ : object
        As of `HyperClassifier`; scores are squared errors times -1.

    See Also
    --------
    HyperClassifier : The same for labels.

    References
    ----------
    .. [1] Liu, Shi, Huang, Yang, Suykens. "Generalization properties of hyper-RKHS and its applications". Journal of
       Machine Learning Research 22, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import HyperRegressor
    >>> X = np.linspace(0, 3, 80).reshape(-1, 1)
    >>> model = HyperRegressor(random_state=0).fit(X[::2], np.sin(2 * X[::2, 0]))
    >>> model.score(X[1::2], np.sin(2 * X[1::2, 0])) > 0.95
    True
    """

    _target_kinds = ("gaussian", "product")

    def __init__(
        self,
        learner: HyperRidge | HyperSVR | None = None,
        *,
        C: float | None = None,
        epsilon: float = 0.05,
        machine: str = "auto",
        max_samples: int | None = 10_000,
        n_components: int = 500,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(
            learner,
            C=C,
            machine=machine,
            max_samples=max_samples,
            n_components=n_components,
            cv=cv,
            random_state=random_state,
        )
        self.epsilon = epsilon

    def _learn(self, X: ArrayLike, y: ArrayLike) -> None:
        X, y = self._training_data(X, y, y_numeric=True)
        y = check_targets(y, type(self).__name__)
        targets = Numbers(float(y.mean()), float(y.std()) or 1.0)
        self._set_fitted(**self._fit_stages(X, y, targets))
