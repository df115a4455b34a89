"""Learn a kernel from labels or extend a similarity to new items: estimators in a hyper-RKHS."""

import warnings
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from mercerless._blocks import LazyRows, blockwise, check_rows, is_dask, take_rows
from mercerless._memory import check_memory
from mercerless._optional import CallbackSupportMixin, with_callbacks
from mercerless._validation import check_classes
from mercerless.kernels.base import Kernel, Scale
from mercerless.kernels.hyper import GaussianHyper, HyperKernel, TensorHyper, pair_index, take_pairs
from mercerless.kernels.learned import HyperExpansion, TensorExpansion
from mercerless.lowrank import select_landmarks
from mercerless.selection.folds import first_until, fold_numbers, make_folds
from mercerless.selection.hyper import (
    Choice,
    PairTarget,
    choose_centers,
    encode_target,
    hyper_candidates,
    make_design,
    ordered_folds,
    search_ridge,
    search_tensor,
    spread_of,
    tensor_trends,
)
from mercerless.selection.hyper_machine import HELD_ROWS, KernelStage, KreinStage, LinearStage, Stage, choose_stages
from mercerless.solvers.hyper import (
    HyperSolution,
    normal_equations,
    ridge_cg,
    ridge_exact,
    ridge_nonnegative,
    ridge_path,
    svr_admm,
    whiten,
)
from mercerless.solvers.hyper_tensor import (
    TensorProblem,
    TensorSolution,
    item_basis,
    landmark_basis,
    tensor_ridge_missing,
)
from mercerless.solvers.svm import tube_machine

_METHODS = ("uniform", "kmeans", "leverage")
_EXACT_ITEMS = 100  # up to here all pairs are used as sections
_EXACT_ITEMS_TENSOR = 2000
_DEFAULT_LANDMARKS = 500
_DIRECT_WORK = 2e9  # multiplications of the normal equations above which conjugate gradients are used


class _HyperLearner(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What `HyperRidge` and `HyperSVR` share: checking, scoring, transforming, parts."""

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike):
        """Learn the kernel.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n_samples, n_features)
            The items. Of a Dask array or a memory map only the rows of one part at a time are read.
        y : array-like of shape (n_samples,) or (n_samples, n_samples)
            Labels, values, or similarities between the items (NaN where unknown).

        Returns
        -------
        self
            The fitted estimator.
        """
        if y is None:
            raise ValueError(
                "this estimator requires y to be passed, but the target y is None: pass labels, values "
                "or a similarity matrix."
            )
        X, items = _training_items(self, X)
        target, classes, moments = encode_target(y, len(X), self.target)
        self._check_parameters(len(X), target)
        if target.kind == "similarity":  # a matrix of all pairs is in memory, so the items can be
            items = items[:]
        random = check_random_state(self.random_state)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)
        report = partial(self._report, context)
        choice = self._choose(items, target, random, report)
        kernel, solution = self._learn(items, target, choice, random, report)
        self._warn(solution)
        self.kernel_, self.hyper_kernel_, self.alpha_ = kernel, choice.hyper, choice.alpha
        self.cv_results_, self.target_kind_, self.classes_ = choice.results, target.kind, classes
        self.certificate_, self.n_iter_ = solution.certificate, max(1, solution.n_iter)
        self.X_fit_, self._moments = X, moments
        context.call_on_fit_task_end(estimator=self)
        return self

    def _choose(self, items: Any, target: PairTarget, random, report: Any = None) -> Choice:
        """The hyper-kernel and the penalty, by cross-validation where they are not given."""
        name = self.hyper_kernel
        if isinstance(name, str) and name == "auto":
            name = "tensor" if target.kind == "similarity" and self._can_tensor else "gaussian"
        return self._search(items, target, name, random, report)

    def _report(self, context: Any, info: dict) -> bool:
        """Tell the callbacks about one candidate or iteration; whether one of them wants to stop."""
        step = context.subcontext(task_name=info.get("stage", "iteration"))
        step.call_on_fit_task_begin(estimator=self, metadata=info)
        return bool(step.call_on_fit_task_end(estimator=self, metadata=info))

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
        """How well the kernel between the items of X agrees with the target: 1 minus the relative squared error.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.
        y : array-like of shape (n,) or (n, n)
            Labels, values or similarities of the same kind as in fit; NaN entries are left out.

        Returns
        -------
        float
            ``1 - sum((k(X, X) - target)**2) / sum(target**2)``: 1 is perfect, 0 no better than the zero kernel.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        target, _, _ = encode_target(y, len(X), self.target_kind_, self.classes_, self._moments)
        T = target(slice(None), slice(None))
        gap = np.where(np.isnan(T), 0.0, self.kernel_(X) - T)
        return float(1.0 - np.sum(gap**2) / max(np.nansum(T**2), np.finfo(float).tiny))

    def _check_parameters(self, n_items: int, target: PairTarget) -> None:
        if self.landmark_method not in _METHODS:
            raise ValueError(f"landmark_method must be one of {', '.join(_METHODS)}, not {self.landmark_method!r}.")
        n = self.n_landmarks
        if not (n is None or n == "auto" or (isinstance(n, Integral) and n >= 1)):
            raise ValueError(f"n_landmarks must be a positive integer, 'auto' or None, not {n!r}.")
        self._check_n_parts(n_items)
        if not (isinstance(self.cv, Integral) and self.cv >= 2):
            raise ValueError(f"cv must be an integer of at least 2 folds of items, not {self.cv!r}.")

    def _check_n_parts(self, n_items: int) -> None:
        if not (isinstance(self.n_parts, Integral) and 1 <= self.n_parts <= n_items):
            raise ValueError(f"n_parts must be an integer between 1 and the {n_items} items, not {self.n_parts!r}.")
        if self.n_parts > 1 and self.n_landmarks is None:
            raise ValueError("n_parts > 1 needs centers that the parts share; set n_landmarks.")

    def _warn(self, solution: HyperSolution | TensorSolution) -> None:
        limit = 100 * self.tol
        if not solution.certificate <= limit:
            warnings.warn(
                f"{type(self).__name__} stopped at a relative residual of {solution.certificate:.1e} (tol={self.tol}); "
                "increase max_iter or the regularisation.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _n_centers(self, n_items: int) -> int | None:
        """None for all pairs."""
        if self.n_landmarks == "auto":
            return None if n_items <= _EXACT_ITEMS and self.n_parts == 1 else _DEFAULT_LANDMARKS
        return self.n_landmarks

    def _learn(self, X: NDArray, target: PairTarget, choice: Choice, random, report) -> tuple[Kernel, Any]:
        n_centers = self._n_centers(len(X))
        if n_centers is None:
            return self._learn_exact(X[:], target, choice)
        check_memory(
            48.0 * n_centers**2,
            f"The system of {n_centers} centers",
            self.memory_limit,
            "use fewer landmarks or raise memory_limit",
        )
        centers = choose_centers(choice.hyper, X, n_centers, self.landmark_method, random)
        gram = choice.hyper.gram(centers)
        parts = np.array_split(random.permutation(len(X)), self.n_parts)
        seeds = random.randint(2**31 - 1, size=len(parts))
        if len(parts) == 1:
            solutions = [_solve_part(self, choice, X[:], target, centers, gram, seeds[0], report)]
        else:  # iterations in other processes are not reported
            worker = clone_with(self)
            solutions = Parallel(n_jobs=self.n_jobs)(
                delayed(_solve_part)(worker, choice, X[part], target.take(part), centers, gram, seed)
                for part, seed in zip(parts, seeds)
            )
        coef = np.mean([s.coef for s in solutions], axis=0)
        intercept = float(np.mean([s.intercept for s in solutions]))
        worst = max(solutions, key=lambda s: s.certificate)
        return HyperExpansion(choice.hyper, centers, coef, intercept), worst

    def _learn_exact(self, X: NDArray, target: PairTarget, choice: Choice) -> tuple[Kernel, HyperSolution]:
        index = pair_index(len(X))
        y = target(slice(None), slice(None))[index.first, index.second]
        used = ~np.isnan(y)
        first, second, weight, y = (a[used] for a in (*index, y))
        check_memory(
            34.0 * len(y) ** 2,
            f"The hyper-kernel matrix of {len(y)} pairs",
            self.memory_limit,
            "set n_landmarks or raise memory_limit",
        )
        pairs = take_pairs(X, first, second)
        hyper = choice.hyper
        solution = self._solve_exact(hyper(pairs), y, weight, choice)
        return HyperExpansion(
            hyper, hyper.centers_of(pairs), solution.coef * hyper.center_scale(pairs), solution.intercept
        ), solution

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
        self.rows, self.shape = rows, rows.shape

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> NDArray:
        return self.rows[index].astype(np.float64, copy=False)


def _solve_part(
    learner: "_HyperLearner",
    choice: Choice,
    X: NDArray,
    target: PairTarget,
    centers: NDArray,
    gram: NDArray,
    seed: int,
    report: Any = None,
) -> HyperSolution:
    """One part's solution; a module-level function so that any joblib backend can run it."""
    return learner._solve_landmarks(
        make_design(choice.hyper, X, centers), target, gram, choice, np.random.RandomState(seed), report
    )


class HyperRidge(_HyperLearner):
    """Learn a kernel from labels, or extend a similarity matrix to new items, by ridge regression in a hyper-RKHS.

    Minimises ``mean_ij (k(x_i, x_j) - Y_ij)^2 + alpha |k|^2`` over symmetric kernels k of the hyper-RKHS. The target
    Y is the ideal kernel of labels or values (learning a kernel for classification or regression) or a given matrix
    of similarities, indefinite or with missing entries (extending it to new items).

    Parameters
    ----------
    hyper_kernel : {"auto", "gaussian", "wishart", "tensor"}, HyperKernel or TensorHyper, default="auto"
        A name lets cross-validation choose its scales; an object is used as it is. "auto" is "tensor" for a similarity
        matrix and "gaussian" for labels.
    alpha : float or None, default=None
        The penalty, relative to hyper-kernels with value 1 for equal items; None: by cross-validation. 0 is allowed
        for the tensor hyper-kernel, which then keeps all training similarities exactly.
    target : {"auto", "classes", "product", "gaussian", "similarity"}, default="auto"
        What y says about pairs: 1 for equal and ``-1/(c-1)`` for different classes; the product of standardised
        values; a Gaussian of their difference; the values themselves. "auto" tells by the shape and type of y.
    n_landmarks : int, "auto" or None, default="auto"
        Number of sections in the expansion (of landmark items for the tensor hyper-kernel); None uses all pairs (all
        items). "auto" is None up to 100 items (2000 for the tensor) and 500 above.
    landmark_method : {"uniform", "kmeans", "leverage"}, default="uniform"
        Random pairs, means of clusters of midpoints, or pairs by leverage scores. The tensor hyper-kernel takes
        random items, or with "kmeans" those nearest to cluster means.
    n_parts : int, default=1
        Divide the items and average the parts' kernels. All parts share their centers, so the result is as small as
        one part's. Gaussian and Wishart only.
    solver : {"auto", "direct", "cg"}, default="auto"
        Normal equations accumulated in blocks, or conjugate gradients without them; by size.
    nonnegative : bool, default=False
        Only non-negative coefficients: the learned kernel is positive definite. Gaussian and Wishart only.
    fit_intercept : bool, default=False
        Whether a constant is added to the kernel. Helps targets that do not decay with distance. Gaussian and
        Wishart only; the tensor's trend has one.
    cv : int, default=5
        Number of folds of items; a pair belongs to the training set only when both its items do.
    tol : float, default=1e-5
        Relative residual at which iterative solvers stop.
    max_iter : int, default=300
        Most iterations of iterative solvers.
    memory_limit : int, float, str or None, default=None
        Bytes this may use; None: half of what is free.
    n_jobs : int or None, default=None
        Parts fitted at a time, through joblib.
    random_state : int, RandomState or None, default=None
        Draws centers, folds and parts.

    Attributes
    ----------
    kernel_ : HyperExpansion or TensorExpansion
        The learned kernel: call it on any items, or give it to any estimator with a ``kernel`` parameter.
    hyper_kernel_ : HyperKernel or TensorHyper
        The hyper-kernel used.
    alpha_ : float
        The penalty used.
    cv_results_ : list of dict
        Hyper-kernel, alpha and relative validation error of every candidate; empty when nothing was searched.
    target_kind_ : str
        How y was understood.
    classes_ : ndarray or None
        The classes when y held labels.
    certificate_ : float
        Relative residual of the linear system; the worst part's.
    n_iter_ : int
        Iterations, 1 for direct solvers.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training items.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when X has them.

    See Also
    --------
    HyperSVR : The same with the epsilon-insensitive loss.
    HyperClassifier : A learned kernel and a support vector machine in one.

    Notes
    -----
    For the tensor hyper-kernel the penalty is ``sum_ij (k - Y)^2 + alpha |k - trend|^2``, without the mean. Rows of X
    that equal training items are recognised, see `TensorHyper`.

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

    _can_tensor = True

    def __init__(
        self,
        hyper_kernel: Any = "auto",
        *,
        alpha: float | None = None,
        target: str = "auto",
        n_landmarks: int | str | None = "auto",
        landmark_method: str = "uniform",
        n_parts: int = 1,
        solver: str = "auto",
        nonnegative: bool = False,
        fit_intercept: bool = False,
        cv: int = 5,
        tol: float = 1e-5,
        max_iter: int = 300,
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.hyper_kernel = hyper_kernel
        self.alpha = alpha
        self.target = target
        self.n_landmarks = n_landmarks
        self.landmark_method = landmark_method
        self.n_parts = n_parts
        self.solver = solver
        self.nonnegative = nonnegative
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self, n_items: int, target: PairTarget) -> None:
        super()._check_parameters(n_items, target)
        tensor = self._is_tensor(target)
        alpha = self.alpha
        allowed = isinstance(alpha, Real) and np.isfinite(alpha) and (alpha > 0 or (tensor and alpha == 0))
        if alpha is not None and not allowed:
            raise ValueError(f"alpha must be {'at least 0' if tensor else 'positive'} or None, not {alpha!r}.")
        if self.solver not in ("auto", "direct", "cg"):
            raise ValueError(f"solver must be 'auto', 'direct' or 'cg', not {self.solver!r}.")
        if tensor and (self.n_parts > 1 or self.nonnegative or self.fit_intercept):
            raise ValueError(
                "n_parts, nonnegative and fit_intercept belong to the Gaussian and Wishart hyper-kernels; set "
                "hyper_kernel='gaussian' or leave them at their defaults."
            )

    def _is_tensor(self, target: PairTarget) -> bool:
        if isinstance(self.hyper_kernel, str):
            return self.hyper_kernel == "tensor" or (self.hyper_kernel == "auto" and target.kind == "similarity")
        return isinstance(self.hyper_kernel, TensorHyper)

    def _search(self, X: NDArray, target: PairTarget, name: Any, random, report) -> Choice:
        candidates = hyper_candidates(name, X)
        if isinstance(candidates[0], TensorHyper):
            S = target(slice(None), slice(None))
            return search_tensor(
                X,
                S,
                candidates,
                self.alpha,
                search_noise=isinstance(name, str),
                cv=self.cv,
                random=random,
                callback=report,
            )
        return search_ridge(
            X,
            target,
            candidates,
            self.alpha,
            cv=self.cv,
            fit_intercept=self.fit_intercept,
            nonnegative=self.nonnegative,
            random=random,
            callback=report,
        )

    def _learn(self, X: NDArray, target: PairTarget, choice: Choice, random, report) -> tuple[Kernel, Any]:
        if isinstance(choice.hyper, TensorHyper):
            return self._learn_tensor(X, target, choice, random, report)
        if self.nonnegative and self._n_centers(len(X)) is None:
            # the sections of all pairs, as landmarks: non-negative least squares needs the normal equations
            return clone_with(self, n_landmarks=len(X) * (len(X) + 1) // 2)._learn(X, target, choice, random, report)
        return super()._learn(X, target, choice, random, report)

    def _solve_exact(self, K: NDArray, y: NDArray, weight: NDArray, choice: Choice) -> HyperSolution:
        return ridge_exact(K, y, weight, choice.alpha, self.fit_intercept)

    def _solve_landmarks(
        self, design, target: PairTarget, gram: NDArray, choice: Choice, random, report
    ) -> HyperSolution:
        n, p = design.shape
        direct = self.nonnegative or self.solver == "direct" or (self.solver == "auto" and n**2 * p**2 <= _DIRECT_WORK)
        if not direct:
            return ridge_cg(
                design,
                target,
                gram,
                choice.alpha,
                fit_intercept=self.fit_intercept,
                tol=self.tol,
                max_iter=self.max_iter,
                random_state=random,
                callback=report,
            )
        if self.nonnegative:
            return ridge_nonnegative(normal_equations(design, target, self.fit_intercept), gram, choice.alpha)
        whitening = whiten(gram)
        equations = normal_equations(design, target, self.fit_intercept, whitening=whitening)
        return ridge_path(equations, whitening, np.array([choice.alpha]))[0]

    def _learn_tensor(
        self, X: NDArray, target: PairTarget, choice: Choice, random, report
    ) -> tuple[Kernel, TensorSolution]:
        hyper, n = choice.hyper, len(X)
        count = self.n_landmarks
        if count == "auto":
            count = None if n <= _EXACT_ITEMS_TENSOR else _DEFAULT_LANDMARKS
        knots = hyper.knots(X)
        check_memory(
            8.0 * n**2 * (14 + 4.5 * hyper.n_trends(X.shape[1], knots)),
            f"The similarities of {n} items",
            self.memory_limit,
            "use fewer items or trend=None",
        )
        if count is None or count >= n:
            landmarks, basis = X, item_basis(hyper.items(X))
        else:
            method = "kmeans" if self.landmark_method == "kmeans" else "uniform"
            landmarks = X[select_landmarks(None, X, count, method, random)]
            basis = landmark_basis(hyper.items(landmarks), hyper.items(X, landmarks))
        S, trends = target(slice(None), slice(None)), tensor_trends(hyper, X)
        if target.missing:
            solution = tensor_ridge_missing(
                S,
                basis,
                trends,
                hyper.item_noise,
                max(choice.alpha, 1e-4),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=report,
            )
        else:
            problem = TensorProblem(S, basis, trends)
            solution = problem.solve(hyper.item_noise, choice.alpha, with_items=hyper.remember_items)
        memory = (X, solution.item_coef, solution.item_values) if hyper.remember_items else (None, None, None)
        kernel = TensorExpansion(hyper, landmarks, basis.projection, solution.core, knots, solution.trend_coef, *memory)
        return kernel, solution


def clone_with(estimator: BaseEstimator, **changes) -> Any:
    """An unfitted copy of an estimator with some parameters changed.

    Parameters
    ----------
    estimator : BaseEstimator
        The estimator.
    **changes
        The parameters to change.

    Returns
    -------
    BaseEstimator
        The copy.
    """
    return type(estimator)(**{**estimator.get_params(deep=False), **changes})


class HyperSVR(_HyperLearner):
    """Learn a kernel from labels or similarities by support vector regression in a hyper-RKHS.

    Minimises ``|k|^2 / 2 + C sum_ij max(0, |k(x_i, x_j) + b - Y_ij| - epsilon)`` over kernels k of the hyper-RKHS and
    constants b; ``k + b`` is the learned kernel.

    Parameters
    ----------
    hyper_kernel : {"auto", "gaussian", "wishart"} or HyperKernel, default="auto"
        A name lets cross-validation choose its scales; an object is used as it is. "auto" is "gaussian".
    C : float or None, default=None
        The weight of the loss; None: by cross-validation.
    epsilon : float, default=0.1
        Half the width of the tube in which errors are free.
    target : {"auto", "classes", "product", "gaussian", "similarity"}, default="auto"
        What y says about pairs, see `HyperRidge`.
    n_landmarks : int, "auto" or None, default="auto"
        Number of sections in the expansion, solved by ADMM; None uses all pairs, solved by libsvm. "auto" is None up
        to 100 items and 500 above.
    landmark_method : {"uniform", "kmeans", "leverage"}, default="uniform"
        Random pairs, means of clusters of midpoints, or pairs by leverage scores.
    n_parts : int, default=1
        Divide the items and average the parts' kernels, which share their centers.
    cv : int, default=5
        Number of folds of items.
    tol : float, default=1e-3
        Relative residuals at which ADMM stops (the objective is then exact to about 1e-4); libsvm's tolerance.
    max_iter : int, default=2000
        Most iterations of ADMM.
    memory_limit : int, float, str or None, default=None
        Bytes this may use; None: half of what is free.
    n_jobs : int or None, default=None
        Parts fitted at a time, through joblib.
    random_state : int, RandomState or None, default=None
        Draws centers, folds and parts.

    Attributes
    ----------
    kernel_ : HyperExpansion
        The learned kernel.
    hyper_kernel_ : HyperKernel
        The hyper-kernel used.
    alpha_ : float
        The ridge penalty with which the hyper-kernel was chosen.
    C_ : float
        The loss's weight used.
    cv_results_ : list of dict
        Relative validation errors of all candidates.
    target_kind_ : str
        How y was understood.
    classes_ : ndarray or None
        The classes when y held labels.
    certificate_ : float
        Relative duality gap (libsvm) or the larger relative residual (ADMM).
    n_iter_ : int
        Iterations.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training items.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when X has them.

    See Also
    --------
    HyperRidge : The same with the squared loss; faster, and with the tensor hyper-kernel.

    Notes
    -----
    The hyper-kernel's scales are chosen with the squared loss; C then with this one, as ``1 / (2 alpha n^2)`` for a
    range of alpha, n the number of items, so that the choice does not depend on n.

    References
    ----------
    .. [1] Liu, Shi, Huang, Yang, Suykens. "Generalization properties of hyper-RKHS and its applications". Journal of
       Machine Learning Research 22, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import HyperSVR
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HyperSVR(n_landmarks=60, random_state=0).fit(X[::5], y[::5])
    >>> model.score(X[1::5], y[1::5]) > 0.3
    True
    """

    _can_tensor = False

    def __init__(
        self,
        hyper_kernel: Any = "auto",
        *,
        C: float | None = None,
        epsilon: float = 0.1,
        target: str = "auto",
        n_landmarks: int | str | None = "auto",
        landmark_method: str = "uniform",
        n_parts: int = 1,
        cv: int = 5,
        tol: float = 1e-3,
        max_iter: int = 2000,
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.hyper_kernel = hyper_kernel
        self.C = C
        self.epsilon = epsilon
        self.target = target
        self.n_landmarks = n_landmarks
        self.landmark_method = landmark_method
        self.n_parts = n_parts
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike):
        super().fit(X, y)
        self.C_ = self._C_for(self.alpha_, len(self.X_fit_)) if self.C is None else float(self.C)
        return self

    fit.__doc__ = _HyperLearner.fit.__doc__

    @staticmethod
    def _C_for(alpha: float, n_items: float) -> float:
        return float(1.0 / (2.0 * alpha * n_items**2))

    def _check_parameters(self, n_items: int, target: PairTarget) -> None:
        super()._check_parameters(n_items, target)
        if self.C is not None and not (isinstance(self.C, Real) and np.isfinite(self.C) and self.C > 0):
            raise ValueError(f"C must be positive or None, not {self.C!r}.")
        if not (isinstance(self.epsilon, Real) and np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be at least 0, not {self.epsilon!r}.")
        if isinstance(self.hyper_kernel, TensorHyper) or (
            isinstance(self.hyper_kernel, str) and self.hyper_kernel == "tensor"
        ):
            raise ValueError("HyperSVR takes the Gaussian and Wishart hyper-kernels; use HyperRidge for the tensor.")

    def _search(self, X: NDArray, target: PairTarget, name: Any, random, report) -> Choice:
        candidates = hyper_candidates(name, X)
        choice = search_ridge(
            X,
            target,
            candidates,
            None if len(candidates) > 1 else 1e-4,
            cv=self.cv,
            fit_intercept=True,
            nonnegative=False,
            random=random,
            callback=report,
        )
        if self.C is not None or len(X) < 3:
            return choice
        return self._search_C(X, target, choice, random)

    def _search_C(self, X: NDArray, target: PairTarget, choice: Choice, random) -> Choice:
        """Choose the loss's weight on at most 75 items and all their pairs, by items left out."""
        index = random.permutation(len(X))[:75]
        order, folds = ordered_folds(fold_numbers(min(self.cv, 3), X[index], random_state=random))
        X, target = X[index[order]], target.take(index[order])
        everything, alphas = np.arange(len(X)), np.logspace(-6, -1, 6)
        T = target(everything, everything)
        errors, square = np.zeros(len(alphas)), np.finfo(float).tiny
        for fold in folds:
            held, rest = everything[fold], np.delete(everything, fold)
            square += float(np.nansum(T[held] ** 2))
            for k, alpha in enumerate(alphas):
                kernel, _ = self._learn_exact(X[rest], target.take(rest), choice._replace(alpha=float(alpha)))
                errors[k] += float(np.nansum((kernel(X[held], X) - T[held]) ** 2))
        results = [
            {
                "hyper_kernel": choice.hyper,
                "alpha": float(a),
                "C": self._C_for(float(a), len(X)),
                "error": float(np.sqrt(e / square)),
            }
            for a, e in zip(alphas, errors)
        ]
        return choice._replace(alpha=float(alphas[int(np.argmin(errors))]), results=choice.results + results)

    def _solve_exact(self, K: NDArray, y: NDArray, weight: NDArray, choice: Choice) -> HyperSolution:
        C = self._C_for(choice.alpha, np.sqrt(weight.sum())) if self.C is None else float(self.C)
        return HyperSolution(*tube_machine(K, y, C, self.epsilon, weight, tol=self.tol))

    def _solve_landmarks(
        self, design, target: PairTarget, gram: NDArray, choice: Choice, random, report
    ) -> HyperSolution:
        n = design.shape[0]
        check_memory(84.0 * n**2, f"The pairs of {n} items", self.memory_limit, "use n_parts or raise memory_limit")
        C = self._C_for(choice.alpha, n) if self.C is None else float(self.C)
        return svr_admm(design, target, gram, C, self.epsilon, tol=self.tol, max_iter=self.max_iter, callback=report)


_LARGE = 3000  # items above which stage 2 works on low-rank features
# both stages are compared on at most this many items: with the machine on the whole matrix, and on features
_TUNE_ITEMS = 600
_TUNE_ROWS = 10_000
# where candidates are compared, stage 1 has at most this many items and sections
_TUNE_STAGE1 = 2000
_TUNE_LANDMARKS = 200
_PART_ITEMS = 500  # items in a part where the number of parts is chosen
_SMOOTH = 1e-2  # a penalty that leaves the learned kernel near the base kernel; always a candidate
_FEWEST = 10  # items below which nothing is compared
_BASE_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


class _TwoStage(BaseEstimator):
    """A kernel learned from y, then a kernel machine: what the classifier and the regressor share."""

    _classify: bool

    def __init__(
        self,
        hyper_kernel: Any = "gaussian",
        *,
        loss: str = "squared",
        alpha: float | None = None,
        C: float | None = None,
        machine: str = "auto",
        nonnegative: bool = False,
        n_landmarks: int | str | None = "auto",
        landmark_method: str = "uniform",
        n_parts: int | str = "auto",
        max_samples: int | None = 10_000,
        n_components: int = 500,
        cv: int = 5,
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.hyper_kernel = hyper_kernel
        self.loss = loss
        self.alpha = alpha
        self.C = C
        self.machine = machine
        self.nonnegative = nonnegative
        self.n_landmarks = n_landmarks
        self.landmark_method = landmark_method
        self.n_parts = n_parts
        self.max_samples = max_samples
        self.n_components = n_components
        self.cv = cv
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learner(self, settings: dict, n_items: int, loss: str | None = None) -> _HyperLearner:
        """Stage 1 with the chosen hyper-kernel and penalty for so many items."""
        shared = {
            name: getattr(self, name)
            for name in ("n_landmarks", "landmark_method", "cv", "memory_limit", "n_jobs", "random_state")
        }
        shared |= {"target": self._target, "hyper_kernel": self.hyper_kernel, "n_parts": 1, **settings}
        if (loss or self.loss) == "squared":
            # a machine follows: more digits of the kernel would not change it
            return HyperRidge(nonnegative=self.nonnegative, tol=1e-4, **shared)
        alpha = shared.pop("alpha", None)
        C = None if alpha is None else HyperSVR._C_for(alpha, n_items / shared["n_parts"])
        return HyperSVR(C=C, **shared)

    def _parts(self, n_items: int, n_rows: int) -> int:
        """The number of parts for a sample of all rows; given ones keep their size."""
        if self.n_parts != "auto":
            return -(-self.n_parts * n_items // n_rows)
        return 1 if self.n_landmarks is None else _auto_parts(n_items)

    def _training_data(self, X: Any, y: Any, **checks) -> tuple[Any, NDArray]:
        """Checked rows, in memory or not, and one target per row."""
        if not is_dask(X):
            return validate_data(self, X, y, dtype=[np.float64, np.float32], **checks)
        X, y = check_rows(X), column_or_1d(np.asarray(y))
        check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(X, y)
        self.n_features_in_ = X.shape[1]
        return X, y

    def _evaluate(self, method: str, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        return self.machine_.evaluate(method, validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def _check_parameters(self, X: Any) -> str:
        """Which machine to use; raises for parameters that cannot be."""
        if self.loss not in ("squared", "epsilon_insensitive"):
            raise ValueError(f"loss must be 'squared' or 'epsilon_insensitive', not {self.loss!r}.")
        if self.machine not in ("auto", "svm", "linear", "krein"):
            raise ValueError(f"machine must be 'auto', 'svm', 'linear' or 'krein', not {self.machine!r}.")
        if self.C is not None and not (isinstance(self.C, Real) and np.isfinite(self.C) and self.C > 0):
            raise ValueError(f"C must be positive or None, not {self.C!r}.")
        if isinstance(self.hyper_kernel, TensorHyper) or str(self.hyper_kernel) == "tensor":
            raise ValueError("labels need the Gaussian or Wishart hyper-kernel; the tensor extends similarities.")
        most = self.max_samples
        if not (most is None or (isinstance(most, Integral) and most >= 1)):
            raise ValueError(f"max_samples must be a positive integer or None, not {most!r}.")
        if self.n_parts != "auto":  # stage 1 would say so after the search
            self._learner({"n_parts": self.n_parts}, 1)._check_n_parts(len(X))
        machine = self.machine
        if machine == "auto":
            machine = "svm" if len(X) <= _LARGE else "linear"
        if machine == "svm" and is_dask(X) and len(X) > _LARGE:
            raise ValueError("machine='svm' needs all rows in memory; use machine='linear', or X.compute().")
        return machine

    def _stage(self, machine: str) -> Stage:
        if machine == "linear":
            return LinearStage(self._classify, self.n_components, self.cv, self.memory_limit, self.random_state)
        stage = KernelStage(None if self._classify else self.epsilon, self.memory_limit)
        return stage if machine == "svm" else KreinStage(self._krein_machine(), stage)

    def _fit_stages(self, X: Any, y: NDArray) -> None:
        machine = self._check_parameters(X)
        if is_dask(X) and len(X) <= _LARGE:
            X = X.compute()
        random = check_random_state(self.random_state)
        stage = self._stage(machine)
        stage.guard(len(X))
        few = _some_rows(len(X), _TUNE_ROWS if machine == "linear" else _TUNE_ITEMS, random)
        settings, C, results = self._tune(stage, take_rows(X, few), y[few], random)
        rows = _some_rows(len(X), self.max_samples, random)
        items = X if len(rows) == len(X) else take_rows(X, rows)
        settings["n_parts"] = self._parts(len(rows), len(X))
        learner = self._learner(settings, len(rows)).fit(items, y[rows])
        stage.fit(_normalised(learner.kernel_, take_rows(X, rows[:: max(1, len(rows) // _TUNE_ROWS)])), X, y, C)
        if not stage.certificate <= 1e-6:
            warnings.warn(
                f"The linear machine stopped at a relative gap of {stage.certificate:.1e}; use a smaller C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.learner_, self.machine_, self.C_ = learner, stage, stage.C
        self.kernel_, self.hyper_kernel_, self.cv_results_ = stage.kernel, learner.hyper_kernel_, results

    def _tune(self, stage: Stage, X: NDArray, y: NDArray, random) -> tuple[dict, float | None, list[dict]]:
        """Stage 1's settings and stage 2's loss weight, by cross-validation over both, and its results."""
        given = {"alpha": self.alpha} if self.alpha is not None and self.loss == "squared" else {}
        learner = self._learner(given, len(X))
        target, _, _ = encode_target(y, len(X), self._target)
        learner._check_parameters(len(X), target)
        candidates = self._candidates(learner._choose(X.astype(float, copy=False), target, random), X)
        if self.C is not None:
            stage.grid = np.array([float(self.C)])
        if len(X) < _FEWEST or len(candidates) * len(stage.grid) == 1:
            return candidates[0], 1.0 if self.C is None else float(self.C), []

        def learn(index: int, rows: NDArray) -> Kernel:
            rows = rows[np.sort(check_random_state(0).permutation(len(rows))[:_TUNE_STAGE1])]
            few = min(self.n_landmarks, _TUNE_LANDMARKS) if isinstance(self.n_landmarks, Integral) else _TUNE_LANDMARKS
            small = {**candidates[index], "n_landmarks": few, "n_parts": _auto_parts(len(rows))}
            # the squared loss ranks candidates alike and is far faster
            return _normalised(self._learner(small, len(rows), "squared").fit(X[rows], y[rows]).kernel_, X[rows])

        n_base = sum(getattr(one["hyper_kernel"], "constant", False) for one in candidates)
        folds = make_folds(self.cv, X, y, classify=self._classify, random_state=random)
        splits = first_until(folds, HELD_ROWS)
        choice = choose_stages(stage, learn, len(candidates), X, y, splits, n_base)
        scores = choice.scores.max(axis=1)
        results = [{**settings, "score": float(score)} for settings, score in zip(candidates, scores)]
        # a regression on features chooses its C on all rows
        free = isinstance(stage, LinearStage) and not self._classify and self.C is None
        return candidates[choice.index], None if free else choice.C, results

    def _candidates(self, choice: Choice, X: NDArray) -> list[dict]:
        """The base kernel itself, first; stage 1's best setting of every length scale; and smoother ones."""
        found = {_scale_of(choice.hyper): {"hyper_kernel": choice.hyper, "alpha": choice.alpha}}
        # a machine needs no kernel fitted closer than that, and iterative solvers slow down
        rows = [row for row in choice.results if row["alpha"] >= 1e-7]
        for row in sorted(rows, key=lambda row: row["error"]):
            found.setdefault(_scale_of(row["hyper_kernel"]), {key: row[key] for key in ("hyper_kernel", "alpha")})
        learned, base = list(found.values())[:4], []
        if self.alpha is None:
            learned += [{**one, "alpha": _SMOOTH} for one in learned if one["alpha"] < _SMOOTH]
        if isinstance(self.hyper_kernel, str) and self.hyper_kernel == "gaussian" and len(X) >= _FEWEST:
            spread = spread_of(X)
            base = [{"hyper_kernel": GaussianHyper(spread * a, np.inf), "alpha": 1e-6} for a in _BASE_SCALES]
        return base + learned


def _auto_parts(n_items: int) -> int:
    return -(-n_items // _PART_ITEMS) if n_items > 2 * _PART_ITEMS else 1


def _some_rows(n_rows: int, most: int | None, random) -> NDArray:
    """All rows, or a random sample of them in their order."""
    if most is None or n_rows <= most:
        return np.arange(n_rows)
    return np.sort(random.permutation(n_rows)[:most])


def _scale_of(hyper: HyperKernel) -> bytes:
    return np.asarray(hyper.length_scale, dtype=float).tobytes()


def _normalised(kernel: HyperExpansion, X: NDArray) -> Kernel:
    """The learned kernel without its constant, which no machine with an intercept sees, and with a unit diagonal.

    Otherwise a large constant would set the scale, and the loss weights that are compared would be far too small.
    """
    kernel = HyperExpansion(kernel.hyper_kernel, kernel.centers, kernel.coef)
    size = float(np.mean(np.abs(kernel.diag(X))))
    return Scale(kernel, 1.0 / size) if size > 0 else kernel


class HyperClassifier(ClassifierMixin, _TwoStage):
    """Learn a kernel from the labels, then classify with it: the paper's two stages in one estimator.

    Stage 1 is `HyperRidge` (or `HyperSVR`) on the ideal kernel of the labels. Stage 2 is a support vector machine with
    the learned kernel, scaled to a unit mean diagonal and with its negative directions flipped; for many items a linear
    machine on low-rank features, from sums over blocks of rows. Candidates of stage 1, the plain Gaussian kernel among
    them, are compared by stage 2 on held-out items.

    Parameters
    ----------
    hyper_kernel : {"gaussian", "wishart"} or HyperKernel, default="gaussian"
        The hyper-kernel; a name lets cross-validation choose its scales. The candidates of "gaussian" include
        ``pair_scale=inf``, the plain Gaussian kernel, which is chosen where learning does not help.
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        The loss of stage 1; candidates are always compared with the squared one.
    alpha : float or None, default=None
        Stage 1's penalty for the squared loss; None: by cross-validation.
    C : float or None, default=None
        Stage 2's loss weight; None: by cross-validation with the kernel learned anew in every fold, together with
        the hyper-kernel and alpha when ``hyper_kernel`` is a name.
    machine : {"auto", "svm", "linear", "krein"}, default="auto"
        Stage 2: `SVC`, a linear machine with squared hinge loss on low-rank features, both with the kernel's negative
        directions flipped, or `KreinRidgeClassifier`. "auto" is "svm" up to 3000 items, then "linear".
    nonnegative : bool, default=False
        Whether stage 1 gives a positive definite kernel (squared loss).
    n_landmarks : int, "auto" or None, default="auto"
        Sections in stage 1, see `HyperRidge`.
    landmark_method : {"uniform", "kmeans", "leverage"}, default="uniform"
        How they are chosen.
    n_parts : int or "auto", default="auto"
        Parts of all rows in stage 1, proportionally fewer of a sample; "auto": parts of about 500 items where there are
        more than 1000.
    max_samples : int or None, default=10000
        Rows that stage 1 learns from at most, drawn at random; None: all. Stage 2 always uses all.
    n_components : int, default=500
        Rank of stage 2's low-rank features.
    cv : int, default=5
        Folds of every cross-validation.
    memory_limit : int, float, str or None, default=None
        Bytes this may use; None: half of what is free.
    n_jobs : int or None, default=None
        Parts fitted at a time.
    random_state : int, RandomState or None, default=None
        The seed.

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
    cv_results_ : list of dict
        Hyper-kernel, alpha and score (right predictions, or squared errors times -1) of the candidates compared with
        both stages; empty when there was one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when X has them.

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
    >>> model = HyperClassifier(n_landmarks=50, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _target, _classify = "classes", True

    def fit(self, X: ArrayLike, y: ArrayLike) -> "HyperClassifier":
        """Learn the kernel and the classifier.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n_samples, n_features)
            The items; of a Dask array or a memory map only blocks and samples are read.
        y : array-like of shape (n_samples,)
            The labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = self._training_data(X, y)
        _, classes, _ = check_classes(y, None, None, type(self).__name__)
        self._fit_stages(X, y)
        self.classes_ = classes
        return self

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

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray:
        """The class of every item.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            The classes.
        """
        return self._evaluate("predict", X)

    def _krein_machine(self):
        from mercerless.estimators.krein import KreinRidgeClassifier

        return KreinRidgeClassifier(cv=self.cv, random_state=self.random_state)


class HyperRegressor(RegressorMixin, _TwoStage):
    """Learn a kernel from the targets, then regress with it.

    Stage 1 is `HyperRidge` (or `HyperSVR`) on the product of standardised targets or a Gaussian of their differences.
    Stage 2 is a support vector regression with the learned kernel, scaled to a unit mean diagonal and with its negative
    directions flipped; for many items ridge regression on low-rank features, from sums over blocks of rows. Candidates
    of stage 1, the plain Gaussian kernel among them, are compared by stage 2 on held-out items.

    Parameters
    ----------
    hyper_kernel : {"gaussian", "wishart"} or HyperKernel, default="gaussian"
        The hyper-kernel; a name lets cross-validation choose its scales. The candidates of "gaussian" include
        ``pair_scale=inf``, the plain Gaussian kernel, which is chosen where learning does not help.
    target : {"gaussian", "product"}, default="gaussian"
        The ideal kernel of stage 1: near for near values, or the product of standardised values.
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        The loss of stage 1; candidates are always compared with the squared one.
    alpha : float or None, default=None
        Stage 1's penalty for the squared loss; None: by cross-validation.
    C : float or None, default=None
        Stage 2's loss weight; None: by cross-validation with the kernel learned anew in every fold.
    epsilon : float, default=0.05
        Half the width of stage 2's tube, in standard deviations of y.
    machine : {"auto", "svm", "linear", "krein"}, default="auto"
        Stage 2: `SVR` or ridge regression on low-rank features, both with the kernel's negative directions flipped, or
        `KreinRidge`. "auto" is "svm" up to 3000 items, then "linear".
    nonnegative : bool, default=False
        Whether stage 1 gives a positive definite kernel (squared loss).
    n_landmarks : int, "auto" or None, default="auto"
        Sections in stage 1, see `HyperRidge`.
    landmark_method : {"uniform", "kmeans", "leverage"}, default="uniform"
        How they are chosen.
    n_parts : int or "auto", default="auto"
        Parts of all rows in stage 1, proportionally fewer of a sample; "auto": parts of about 500 items where there are
        more than 1000.
    max_samples : int or None, default=10000
        Rows that stage 1 learns from at most, drawn at random; None: all. Stage 2 always uses all.
    n_components : int, default=500
        Rank of stage 2's low-rank features.
    cv : int, default=5
        Folds of every cross-validation.
    memory_limit : int, float, str or None, default=None
        Bytes this may use; None: half of what is free.
    n_jobs : int or None, default=None
        Parts fitted at a time.
    random_state : int, RandomState or None, default=None
        The seed.

    Attributes
    ----------
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
    cv_results_ : list of dict
        Hyper-kernel, alpha and score (right predictions, or squared errors times -1) of the candidates compared with
        both stages; empty when there was one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when X has them.

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
    >>> model = HyperRegressor(random_state=0, n_landmarks=50).fit(X[::2], np.sin(2 * X[::2, 0]))
    >>> model.score(X[1::2], np.sin(2 * X[1::2, 0])) > 0.95
    True
    """

    def __init__(
        self,
        hyper_kernel: Any = "gaussian",
        *,
        target: str = "gaussian",
        loss: str = "squared",
        alpha: float | None = None,
        C: float | None = None,
        epsilon: float = 0.05,
        machine: str = "auto",
        nonnegative: bool = False,
        n_landmarks: int | str | None = "auto",
        landmark_method: str = "uniform",
        n_parts: int | str = "auto",
        max_samples: int | None = 10_000,
        n_components: int = 500,
        cv: int = 5,
        memory_limit: int | float | str | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(
            hyper_kernel,
            loss=loss,
            alpha=alpha,
            C=C,
            machine=machine,
            nonnegative=nonnegative,
            n_landmarks=n_landmarks,
            landmark_method=landmark_method,
            n_parts=n_parts,
            max_samples=max_samples,
            n_components=n_components,
            cv=cv,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.target = target
        self.epsilon = epsilon

    _classify = False

    @property
    def _target(self) -> str:
        if self.target not in ("gaussian", "product"):
            raise ValueError(f"target must be 'gaussian' or 'product', not {self.target!r}.")
        return self.target

    def fit(self, X: ArrayLike, y: ArrayLike) -> "HyperRegressor":
        """Learn the kernel and the regression.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n_samples, n_features)
            The items; of a Dask array or a memory map only blocks and samples are read.
        y : array-like of shape (n_samples,)
            The values.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = self._training_data(X, y, y_numeric=True)
        y = y.astype(float)
        mean, spread = float(y.mean()), float(y.std()) or 1.0
        self._fit_stages(X, (y - mean) / spread)
        self._moments = (mean, spread)
        return self

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray:
        """The value of every item.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            The values.
        """
        values = self._evaluate("predict", X)
        mean, spread = self._moments
        return values * spread + mean

    def _krein_machine(self):
        from mercerless.estimators.krein import KreinRidge

        return KreinRidge(cv=self.cv, random_state=self.random_state)
