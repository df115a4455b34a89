"""Least squares and support vector machines in reproducing kernel Krein spaces."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercerless._blocks import blockwise, is_dask, reduce_rows, take_rows
from mercerless._memory import check_memory, format_bytes, memory_budget, row_blocks
from mercerless._optional import with_callbacks
from mercerless._validation import (
    check_classes,
    check_symmetric,
    check_symmetric_kernel,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn_if_folds_are_useless,
)
from mercerless.estimators.base import KernelEstimator, used_items, used_rows
from mercerless.kernels import DeltaGauss, Epanechnikov, Gaussian, Kernel, Precomputed, Sigmoid
from mercerless.lowrank import nystroem, select_landmarks
from mercerless.selection.calibration import calibrate_scores
from mercerless.selection.descent import minimize_with_restarts
from mercerless.selection.folds import fold_numbers
from mercerless.selection.krein import (
    RADII,
    RATIOS,
    STRENGTHS,
    Settings,
    candidate_settings,
    exact_folds,
    fold_factors,
    fold_predictions,
    low_rank_folds,
    merge_factors,
    squared_errors,
)
from mercerless.solvers.krein import (
    CONSTRAINTS,
    REGULARIZERS,
    KreinSolution,
    KreinSystem,
    build_low_rank_system,
    build_system,
    part_coef,
    row_factor,
    solve_system,
    validation_loss,
)
from mercerless.solvers.svm import (
    Stabilized,
    hinge_machine,
    hinge_machines,
    squared_hinge_machine,
    stabilize,
    tube_machine,
)

_SOLVERS = ("auto", "exact", "nystroem")
_TUNES = ("cv", "gradient")
_EXACT_ROWS = 4000  # above, "auto" uses landmarks
# Peaks as measured, asserted in tests/test_memory.py: bytes for each pair of rows, and each pair of landmarks
_EXACT_BYTES = 42.0
_GRADIENT_BYTES = 76.0
_MACHINE_BYTES = 58.0
_LANDMARK_BYTES = 270.0
_BLOCK_BYTES = 2**28  # what a block of rows may need on the way to its factor, where the budget allows
_SCORED_ROWS = 20_000  # per fold; more do not change a calibration


class _Rows(NamedTuple):
    """The rows that carry weight, as a solver needs them."""

    kernel: Kernel
    items: Any
    used: NDArray
    Y: NDArray
    weight: NDArray | None
    folds: NDArray


class _ExactProblem:
    """The family's problems on the full kernel matrix."""

    samples = False  # whether `row_folds` may leave rows out

    def __init__(self, rows: _Rows, K: NDArray, intercept: bool):
        self.rows, self.K, self.intercept = rows, K, intercept

    def folds(self) -> Iterator:
        return (fold for fold, _ in self.row_folds())

    def row_folds(self) -> Iterator:
        return exact_folds(self.K, self.rows.Y, self.rows.weight, self.rows.folds, self.intercept)

    def system(self) -> KreinSystem:
        return build_system(self.K, self.rows.Y, self.rows.weight, intercept=self.intercept)

    def dual(self, coef: NDArray) -> NDArray:
        return coef


class _LandmarkFeatures:
    """From rows to the features of the approximate kernel; holds the landmarks only, so it travels well."""

    def __init__(self, kernel: Kernel, items: Any, landmarks: NDArray, transform: NDArray):
        self.kernel, self.transform = kernel, transform
        self.precomputed = isinstance(kernel, Precomputed)
        self.landmarks = landmarks if self.precomputed else take_rows(items, landmarks)

    def __call__(self, rows: Any) -> NDArray:
        K = rows[:, self.landmarks] if self.precomputed else self.kernel(rows, self.landmarks)
        return K @ self.transform


class _LandmarkProblem:
    """The same on landmarks: one pass over blocks of rows, of which only triangular factors are kept."""

    samples = True

    def __init__(self, rows: _Rows, landmarks: NDArray, intercept: bool, seed, memory_limit):
        self.rows, self.landmarks, self.intercept, self.seed = rows, landmarks, intercept, seed
        self.block_bytes = min(_BLOCK_BYTES, memory_budget(memory_limit) // 3)
        low_rank = nystroem(rows.kernel, rows.items, landmarks, random_state=seed, memory_limit=memory_limit)
        self.error = low_rank.error
        self.transform = low_rank.transform * np.sqrt(np.abs(low_rank.values))
        self.signature = np.sign(low_rank.values)
        self.features = _LandmarkFeatures(rows.kernel, rows.items, landmarks, self.transform)
        # a block's similarities, its features, and their copy with the targets; the factors need less
        self.bytes_per_row = 24.0 * (len(landmarks) + rows.Y.shape[1])
        self.factors = reduce_rows(
            partial(fold_factors, self.features, len(self.signature), int(rows.folds.max()) + 1),
            merge_factors,
            (rows.items, rows.Y, rows.weight, rows.folds),
            self.bytes_per_row,
            self.block_bytes,
        )

    def folds(self) -> Iterator:
        return low_rank_folds(self.factors, self.signature, self.intercept)

    def row_folds(self) -> Iterator:
        for i, fold in enumerate(self.folds()):
            rows = np.flatnonzero(self.rows.folds == i)
            if len(rows) > _SCORED_ROWS:
                rows = np.sort(self.seed.choice(rows, _SCORED_ROWS, replace=False))
            for part in row_blocks(len(rows), self.bytes_per_row, self.block_bytes):
                block = rows[part]
                weight = None if self.rows.weight is None else self.rows.weight[block]
                basis = self.features(take_rows(self.rows.items, block))
                yield fold._replace(basis=basis, target=self.rows.Y[block], weight=weight, constant=None), block

    def system(self) -> KreinSystem:
        factor = row_factor(self.factors, self.factors[0].shape[1])
        return build_low_rank_system(factor, self.signature, intercept=self.intercept)

    def dual(self, coef: NDArray) -> NDArray:
        return np.tensordot(self.transform, coef, axes=(1, 0))


class _KreinLeastSquares(KernelEstimator):
    """What the regressor and the classifier share; how they choose a setting differs."""

    _streams = True

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        alpha_positive: float | None = None,
        alpha_negative: float | None = None,
        regularizer: str = "components",
        constraint: str | None = None,
        radius: ArrayLike | None = None,
        tune: str = "cv",
        strengths: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        radii: ArrayLike | None = None,
        cv: Any = 5,
        n_restarts: int = 10,
        max_iter: int = 200,
        fit_intercept: bool = True,
        solver: str = "auto",
        n_landmarks: int = 1000,
        landmarks: str = "uniform",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        self.kernel = kernel
        self.alpha_positive = alpha_positive
        self.alpha_negative = alpha_negative
        self.regularizer = regularizer
        self.constraint = constraint
        self.radius = radius
        self.tune = tune
        self.strengths = strengths
        self.ratios = ratios
        self.radii = radii
        self.cv = cv
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name, options in (
            ("regularizer", REGULARIZERS), ("constraint", CONSTRAINTS), ("solver", _SOLVERS), ("tune", _TUNES),
        ):  # fmt: skip
            if getattr(self, name) not in options:
                known = ", ".join(map(repr, options))
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}.")
        for name in ("alpha_positive", "alpha_negative"):
            value = getattr(self, name)
            if value is not None and not (np.isscalar(value) and np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a nonnegative number, or None to choose it, got {value!r}.")
        if self.radius is not None:
            radius = np.asarray(self.radius, dtype=float)
            if radius.ndim > 1 or not np.all(np.isfinite(radius)) or np.any(radius < 0):
                raise ValueError(f"radius must be nonnegative, one number or one per output, got {self.radius!r}.")
        if not (isinstance(self.n_landmarks, (int, np.integer)) and self.n_landmarks >= 1):
            raise ValueError(f"n_landmarks must be a positive whole number, got {self.n_landmarks!r}.")
        if self.tune == "gradient" and self.solver == "nystroem":
            raise ValueError("tune='gradient' needs the exact solver; use solver='exact', or tune='cv'.")

    def _fit(self, X: Any, Y: NDArray, weight: NDArray | None, labels: NDArray | None = None) -> None:
        """Choose the settings, solve, and set every fitted attribute at the end."""
        if self.regularizer == "indefinite":
            warnings.warn(
                "regularizer='indefinite' subtracts the norm of f- from the penalty, so that it rewards complexity on "
                "the negative spectrum: the solution depends on rounding and cut-offs and often does not "
                "generalise; use regularizer='components' unless you study this problem.",
                UserWarning,
                stacklevel=3,
            )
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, Y)
        rows = self._rows(kernel, items, Y, weight, labels)
        n_folds = int(rows.folds.max()) + 1
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)
        solver = self._solver(rows)
        if self.tune == "gradient":
            rows, settings, tuning = self._tune_by_gradient(rows, context)
        else:
            settings = self._settings()
        problem = self._problem(rows, solver)
        index, chosen = self._choose(problem, rows, settings, labels, n_folds, context)
        system = problem.system()
        plus, minus, radius = settings.take(index).resolve(system, self.regularizer)
        radius = None if radius is None else radius[0]
        solution = solve_system(
            system, plus[0], minus[0], radius, regularizer=self.regularizer, constraint=self.constraint
        )
        self._warn(solution)
        everything = settings.resolve(system, self.regularizer)
        fitted = self._attributes(problem, rows, system, solution, solver, len(Y))
        fitted |= {
            "alpha_positive_": float(plus[0]),
            "alpha_negative_": float(minus[0]),
            "radius_": None if radius is None else self._squeeze(radius),
            **chosen,
        }
        if "cv_results_" in fitted:
            names = ("alpha_positive", "alpha_negative", "radius")
            fitted["cv_results_"] |= dict(zip(names, everything))
        if self.tune == "gradient":
            fitted["tuning_"] = tuning
        for name in {"cv_results_", "best_index_", "tuning_"} - set(fitted):  # of an earlier fit
            self.__dict__.pop(name, None)
        for name, value in fitted.items():
            setattr(self, name, value)
        context.call_on_fit_task_end(estimator=self)

    def _rows(self, kernel, items, Y, weight, labels) -> _Rows:
        n = len(Y)
        used = used_rows(weight, n)
        folds = fold_numbers(
            self.cv, items, Y[:, 0] if labels is None else labels, classify=labels is not None, used=used,
            precomputed=isinstance(kernel, Precomputed), random_state=self.random_state,
        )  # fmt: skip
        if len(used) < n:
            weight, Y = weight[used], Y[used]
        return _Rows(kernel, used_items(kernel, items, used), used, Y, weight, folds)

    def _solver(self, rows: _Rows) -> str:
        n = len(rows.Y)
        if is_dask(rows.items):
            if self.solver == "exact" or self.tune == "gradient":
                raise ValueError("The exact solver needs its data in memory; use solver='nystroem', or X.compute().")
            return "nystroem"
        if self.solver != "auto" or self.tune == "gradient":
            return "exact" if self.solver == "auto" else self.solver
        if n <= _EXACT_ROWS and _EXACT_BYTES * n**2 <= memory_budget(self.memory_limit):
            return "exact"
        warnings.warn(
            f"{type(self).__name__} uses {self._n_landmarks(n)} landmarks for {n} rows: the exact solver is for up to "
            f"{_EXACT_ROWS} rows and would need {format_bytes(_EXACT_BYTES * n**2)}. Set solver='nystroem' or "
            "solver='exact' to choose yourself.",
            UserWarning,
            stacklevel=4,
        )
        return "nystroem"

    def _n_landmarks(self, n: int) -> int:
        """As many as asked for; where the solver was left open, no more than memory allows."""
        m = min(self.n_landmarks, n)
        if self.solver == "auto":
            m = min(m, max(1, int(np.sqrt(memory_budget(self.memory_limit) / _LANDMARK_BYTES))))
        return m

    def _settings(self) -> Settings:
        default_ratios = RATIOS if self._default_ratios is None else self._default_ratios
        ratios = default_ratios if self.ratios is None else np.atleast_1d(self.ratios)
        return candidate_settings(
            self.alpha_positive, self.alpha_negative, self.radius,
            constrained=self.constraint is not None,
            two_penalties=self.regularizer == "components",
            strengths=STRENGTHS if self.strengths is None else np.sort(np.atleast_1d(self.strengths))[::-1],
            ratios=ratios,
            radii=RADII if self.radii is None else np.atleast_1d(self.radii),
        )  # fmt: skip

    def _problem(self, rows: _Rows, solver: str):
        n = len(rows.Y)
        if solver == "exact":
            check_memory(
                _EXACT_BYTES * n**2, f"The eigendecomposition of {n} items", self.memory_limit,
                "use solver='nystroem', fewer rows, or raise memory_limit",
            )  # fmt: skip
            name = "X" if isinstance(rows.kernel, Precomputed) else "the kernel matrix"
            return _ExactProblem(rows, check_symmetric(rows.kernel(rows.items), name), self.fit_intercept)
        check_symmetric_kernel(rows.kernel)
        if isinstance(rows.kernel, Precomputed):
            check_symmetric(rows.items, "X")
        seed, m = check_random_state(self.random_state), self._n_landmarks(n)
        check_memory(
            _LANDMARK_BYTES * m**2, f"The solution on {m} landmarks", self.memory_limit,
            "use fewer landmarks, or raise memory_limit",
        )  # fmt: skip
        landmarks = select_landmarks(rows.kernel, rows.items, m, self.landmarks, seed)
        return _LandmarkProblem(rows, landmarks, self.fit_intercept, seed, self.memory_limit)

    def _choose_by_squared_error(self, problem, rows, settings, context):
        """The setting of least mean squared validation error."""
        if settings.size == 1 or len(rows.Y) < 2:
            return 0, {}
        with self._task(context, "cross-validation") as report:
            errors = squared_errors(_reported(problem.folds(), report), settings, self.regularizer, self.constraint)
        error = errors.mean(axis=0)
        spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.zeros_like(error)
        best = int(np.argmin(np.where(np.isnan(error), np.inf, error)))
        if np.any(leave_one_out_constant(rows.Y)):
            warn_if_folds_are_useless(errors[:, best], type(self).__name__, stacklevel=5)
        return best, {"cv_results_": {"error": error, "standard_error": spread}, "best_index_": best}

    def _tune_by_gradient(self, rows: _Rows, context):
        """Descend the mean validation error of the folds in the kernel's parameters, penalties and radius."""
        n = len(rows.Y)
        check_memory(
            _GRADIENT_BYTES * n**2, f"The gradient for {n} items", self.memory_limit, "use tune='cv' or fewer rows"
        )
        objective = _ValidationObjective(rows, self)
        rng = check_random_state(self.random_state)
        starts = [objective.start(rng) for _ in range(max(1, self.n_restarts))]
        if len(starts[0]) == 0:
            raise ValueError(
                "tune='gradient' has nothing to tune: the kernel has no parameters and all penalties are given; use "
                "tune='cv'."
            )
        with self._task(context, "gradient") as report:
            descent = minimize_with_restarts(
                objective, starts, objective.bounds(), max_iter=self.max_iter, callback=report
            )
        descent = descent._replace(value=float(np.exp(descent.value)), values=np.exp(descent.values))
        kernel, plus, minus, radius = objective.unpack(descent.x)
        one = np.array([1.0])
        settings = Settings(plus * one, minus * one, None if radius is None else one, False, False, radius)
        return rows._replace(kernel=kernel), settings, descent

    @contextmanager
    def _task(self, context, name: str) -> Iterator[Callable[[dict], bool]]:
        """A subtask for callbacks, and the function that reports its steps and learns whether to stop."""
        task = context.subcontext(task_name=name, max_subtasks=None)
        task.call_on_fit_task_begin(estimator=self)

        def report(info: dict) -> bool:
            step = task.subcontext(task_name=str(info.get("stage", name)))
            step.call_on_fit_task_begin(estimator=self, metadata=info)
            return bool(step.call_on_fit_task_end(estimator=self, metadata=info))

        yield report
        task.call_on_fit_task_end(estimator=self)

    def _warn(self, solution: KreinSolution) -> None:
        worst = max(solution.constraint_error, solution.stationarity)
        if not worst <= 1e-8:
            warnings.warn(
                f"The secular equation was solved to a relative accuracy of {worst:.1e} only; rescale the kernel or "
                "use a larger alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _attributes(self, problem, rows: _Rows, system, solution, solver: str, n: int) -> dict[str, Any]:
        spectral = solution.spectral
        parts = (part_coef(system, solution, 1), part_coef(system, solution, -1))
        coefs = [problem.dual(coef) for coef in (solution.coef, *parts)]
        precomputed = isinstance(rows.kernel, Precomputed)
        if solver == "exact":
            landmarks, fit_items = None, None if precomputed else rows.items
            if precomputed and len(rows.used) < n:  # columns of rows without weight stay in the test matrix
                full = np.zeros((len(coefs), n) + coefs[0].shape[1:], dtype=coefs[0].dtype)
                full[:, rows.used] = coefs
                coefs = list(full)
        else:
            landmarks = rows.used[problem.landmarks]
            fit_items = None if precomputed else problem.features.landmarks
        return {
            "kernel_": rows.kernel,
            "X_fit_": fit_items,
            "landmarks_": landmarks,
            "solver_": solver,
            "dual_coef_": self._squeeze(coefs[0]),
            "dual_coef_positive_": self._squeeze(coefs[1]),
            "dual_coef_negative_": self._squeeze(coefs[2]),
            "intercept_": self._squeeze(solution.intercept),
            "eigenvalues_": system.values,
            "spectral_target_": self._squeeze(system.target),
            "total_weight_": system.n,
            "multiplier_": self._squeeze(1.0 + spectral.multiplier),
            "n_iter_": max(1, spectral.n_iter),
            "certificate_": max(solution.constraint_error, solution.stationarity),
            "is_minimum_": bool(np.all(spectral.is_minimum)),
        }

    def _squeeze(self, values: NDArray) -> Any:
        """Drop the axis of outputs where the targets had none."""
        if not self._single_output:
            return values
        values = np.asarray(values)[..., 0]
        return float(values) if values.ndim == 0 else values

    def _evaluate(self, X: Any, *coefs: NDArray) -> list[NDArray]:
        """``k(X, basis) @ coef`` for each, in blocks of rows so that no large matrix is kept."""
        X = self._test_items(X)
        precomputed = isinstance(self.kernel_, Precomputed)
        parts = []
        for rows in row_blocks(len(X), 24.0 * len(coefs[0]), min(2**27, memory_budget(self.memory_limit) // 2)):
            block = X[rows]
            if precomputed:
                K = self.kernel_(block)
                K = K if self.landmarks_ is None else K[:, self.landmarks_]
            else:
                K = self.kernel_(block, self.X_fit_)
            parts.append([K @ coef for coef in coefs])
        return [np.concatenate(pieces) for pieces in zip(*parts)]

    def predict_parts(self, X: Any) -> tuple[NDArray, NDArray]:
        """The parts f+ and f- at new items, which with `intercept_` add to f.

        Parameters
        ----------
        X : array-like or sequence
            The new items, as for `predict`.

        Returns
        -------
        positive, negative : ndarray of shape (n,) or (n, n_outputs)
            The parts.
        """
        check_is_fitted(self)
        return tuple(self._evaluate(X, self.dual_coef_positive_, self.dual_coef_negative_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")


class KreinRidge(RegressorMixin, _KreinLeastSquares):
    """Least squares with an indefinite kernel: one penalty for each part of the spectrum.

    Minimises ``mean((y - f)^2) + alpha_positive ||f+||^2 + alpha_negative ||f-||^2`` over functions ``f = f+ + f-`` of
    the reproducing kernel Krein space, plus an intercept, where ``f+`` and ``f-`` live on the positive and the negative
    eigenvalues of the centred kernel matrix; optionally with the variance of f fixed (``constraint="sphere"``) or
    bounded (``"ball"``). The solution is the global minimum, from one eigendecomposition. For a positive definite
    kernel and equal penalties it equals ``KernelRidge(alpha=n * alpha_positive)`` on the centred kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    alpha_positive, alpha_negative : float or None, default=None
        Penalties of f+ and f-. None: chosen by cross-validation. The regularizers "indefinite" and "covariance"
        have one penalty, `alpha_positive`.
    regularizer : {"components", "indefinite", "covariance"}, default="components"
        The two penalties above (equal ones are the strong topology); the indefinite inner product <f, f>, which is
        unstable and warns; or the empirical covariance, a multiple of mean(f^2).
    constraint : {None, "sphere", "ball"}, default=None
        Whether the standard deviation of f on the training rows equals, or is at most, `radius`.
    radius : float, array-like of shape (n_outputs,) or None, default=None
        That standard deviation. None: chosen by cross-validation. Not used without a constraint.
    tune : {"cv", "gradient"}, default="cv"
        How None is filled in: over a grid, with one eigendecomposition per fold; or by descending the validation
        error from several starts, which tunes the parameters of the kernel as well.
    strengths, ratios, radii : array-like or None, default=None
        The grid: ``n alpha_positive / max|eigenvalue|`` (default 17 values from 1e-7 to 10),
        ``alpha_negative / alpha_positive`` (default .01, .1, 1, 10, 100), and ``radius / std(y)`` (default 6 values
        from .25 to 1).
    cv : int, splitter or iterable, default=5
        Folds; every row must be held out once.
    n_restarts, max_iter : int, default=10 and 200
        Starts, and L-BFGS-B iterations from the best of them, for ``tune="gradient"``.
    fit_intercept : bool, default=True
        Whether to centre kernel and targets. Without it the constraint is on mean(f^2).
    solver : {"auto", "exact", "nystroem"}, default="auto"
        Full eigendecomposition, or landmarks in one pass over blocks of rows. "auto" is exact up to 4000 rows if
        memory allows, and says so where it is not.
    n_landmarks : int, default=1000
        Landmarks of "nystroem"; all rows give the exact solution.
    landmarks : {"uniform", "kmeans", "pivoted"}, default="uniform"
        How they are chosen.
    memory_limit : int, str or None, default=None
        Bytes, or for example "2GB"; None is half of what is free.
    n_jobs : int or None, default=None
        Processes for a kernel that is a function of two items.
    random_state : int, RandomState or None, default=0
        Folds, landmarks and restarts.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_basis,) or (n_basis, n_outputs)
        Coefficients of the kernel's rows k(x, .) against the training rows, or the landmarks.
    dual_coef_positive_, dual_coef_negative_ : ndarray
        The coefficients of f+ and f-, which add to `dual_coef_`.
    intercept_ : float or ndarray of shape (n_outputs,)
    alpha_positive_, alpha_negative_, radius_ : float
        What was used.
    multiplier_ : float or ndarray of shape (n_outputs,)
        Lagrange multiplier of the constraint; 0 where it does not bind, negative where it shrinks f.
    certificate_ : float
        Largest relative error of the constraint and of stationarity.
    is_minimum_ : bool
        Whether the solution is the global minimum (always, but for "indefinite" without a constraint).
    eigenvalues_ : ndarray of shape (k,)
        Kept eigenvalues of the centred kernel.
    spectral_target_ : ndarray of shape (k,) or (k, n_outputs)
        The centred targets in the basis of their eigenvectors.
    total_weight_ : float
        Sum of the weights, the number of rows without.
    cv_results_ : dict
        The grid in absolute values, and mean and standard error over folds of the error relative to the
        variance of the targets.
    best_index_ : int
    kernel_ : Kernel
        The kernel that was used, with tuned parameters after ``tune="gradient"``.
    tuning_ : Descent
        After ``tune="gradient"``.
    solver_ : str
    landmarks_ : ndarray or None

    See Also
    --------
    KreinRidgeClassifier : The classifier.
    KreinSVR : Support vector regression in a Krein space.
    SimilarityRegressorCV : The automatic choice among many models of a similarity.

    References
    ----------
    D. Oglic and T. Gaertner, "Learning in reproducing kernel Krein spaces", ICML 2018.
    F. Liu, L. Shi, X. Huang, J. Yang and J. Suykens, "Analysis of regularized least squares in reproducing kernel
    Krein spaces", Machine Learning, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge
    >>> from mercerless.kernels import DeltaGauss
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KreinRidge(DeltaGauss(1.0, 0.2)).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    _default_ratios: Sequence[float] | None = None

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "KreinRidge":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : array-like of shape (n,) or (n, n_outputs)
            The targets.
        sample_weight : array-like of shape (n,), optional
            A weight w counts like w repetitions of the row; 0 leaves it out.

        Returns
        -------
        self : KreinRidge
            The fitted model.
        """
        self._check_parameters()
        Y = check_targets(y, type(self).__name__)
        self._single_output = Y.ndim == 1
        self._fit(X, Y.reshape(len(Y), -1), check_weight(sample_weight, len(Y)))
        return self

    def _choose(self, problem, rows, settings, labels, n_folds, context):
        return self._choose_by_squared_error(problem, rows, settings, context)

    @blockwise
    def predict(self, X: Any) -> NDArray:
        """Predict the targets of new items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The new items.

        Returns
        -------
        y : ndarray of shape (n,) or (n, n_outputs)
            The predictions.
        """
        check_is_fitted(self)
        return self._evaluate(X, self.dual_coef_)[0] + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class KreinRidgeClassifier(ClassifierMixin, _KreinLeastSquares):
    """Classification by least squares with an indefinite kernel, with calibrated probabilities.

    One-vs-rest targets of +-1 for `KreinRidge`'s problem, all classes sharing one eigendecomposition. Scores of the
    held-out folds choose the penalties and calibrate the scores (Platt's method; with more classes one slope and one
    bias per class), so that `predict`, `decision_function` and `predict_proba` agree.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    alpha_positive, alpha_negative : float or None, default=None
        Penalties of f+ and f-. None: chosen by cross-validation.
    regularizer : {"components", "indefinite", "covariance"}, default="components"
        See `KreinRidge`.
    constraint : {None, "sphere", "ball"}, default=None
        See `KreinRidge`.
    radius : float, array-like of shape (n_outputs,) or None, default=None
        See `KreinRidge`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    encoding : {"signed", "standardized"}, default="signed"
        Targets +-1, or those of Oglic and Gaertner: sqrt(n-/n+) and -sqrt(n+/n-), that is +-1 with mean zero and
        variance one. This shifts and scales f; calibrated probabilities hardly notice. With ``calibrate=False`` it is
        the paper's rule, the sign of f, which cuts at the classes' prior and is no substitute for `class_weight`.
    calibrate : bool, default=True
        Whether to calibrate on held-out scores. Without, the penalties are chosen by squared error, the scores are f
        itself, and there is no `predict_proba`.
    tune : {"cv", "gradient"}, default="cv"
        See `KreinRidge`; the validation error is the squared error of the targets.
    strengths, ratios, radii : array-like or None, default=None
        The grid of `KreinRidge`, but for `ratios` only 10: a light trust in the negative spectrum,
        which needs no search.
    cv : int, splitter or iterable, default=5
        Folds, stratified; every row must be held out once.
    n_restarts, max_iter : int, default=10 and 200
        See `KreinRidge`.
    fit_intercept : bool, default=True
        Whether to centre kernel and targets.
    solver : {"auto", "exact", "nystroem"}, default="auto"
        See `KreinRidge`.
    n_landmarks : int, default=1000
        Landmarks of "nystroem".
    landmarks : {"uniform", "kmeans", "pivoted"}, default="uniform"
        How they are chosen.
    memory_limit : int, str or None, default=None
        Bytes, or for example "2GB"; None is half of what is free.
    n_jobs : int or None, default=None
        Processes for a kernel that is a function of two items.
    random_state : int, RandomState or None, default=0
        Folds, landmarks and restarts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_, intercept_, alpha_positive_, alpha_negative_, radius_, multiplier_, certificate_ :
        As for `KreinRidge`; one output for two classes, else one per class.
    calibration_ : Calibration or None
        Slope and biases of the held-out scores' softmax, and its mean log-loss.
    cv_results_ : dict
        The grid and the calibrated log-loss (or squared error) of each setting.

    See Also
    --------
    KreinRidge : The regressor.
    KreinSVC : Support vector classification in a Krein space.
    SimilarityClassifierCV : The automatic choice among many models of a similarity.

    References
    ----------
    D. Oglic and T. Gaertner, "Learning in reproducing kernel Krein spaces", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import KreinRidgeClassifier
    >>> from mercerless.kernels import TL1
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinRidgeClassifier(TL1(4.0)).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    _default_ratios: Sequence[float] | None = (10.0,)

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        alpha_positive: float | None = None,
        alpha_negative: float | None = None,
        regularizer: str = "components",
        constraint: str | None = None,
        radius: ArrayLike | None = None,
        class_weight: dict | str | None = None,
        encoding: str = "signed",
        calibrate: bool = True,
        tune: str = "cv",
        strengths: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        radii: ArrayLike | None = None,
        cv: Any = 5,
        n_restarts: int = 10,
        max_iter: int = 200,
        fit_intercept: bool = True,
        solver: str = "auto",
        n_landmarks: int = 1000,
        landmarks: str = "uniform",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            kernel, alpha_positive=alpha_positive, alpha_negative=alpha_negative, regularizer=regularizer,
            constraint=constraint, radius=radius, tune=tune, strengths=strengths, ratios=ratios, radii=radii, cv=cv,
            n_restarts=n_restarts, max_iter=max_iter, fit_intercept=fit_intercept, solver=solver,
            n_landmarks=n_landmarks, landmarks=landmarks, memory_limit=memory_limit, n_jobs=n_jobs,
            random_state=random_state,
        )  # fmt: skip
        self.class_weight = class_weight
        self.encoding = encoding
        self.calibrate = calibrate

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "KreinRidgeClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : array-like of shape (n,)
            The targets.
        sample_weight : array-like of shape (n,), optional
            A weight w counts like w repetitions of the row; 0 leaves it out.

        Returns
        -------
        self : KreinRidgeClassifier
            The fitted model.
        """
        self._check_parameters()
        if self.encoding not in ("signed", "standardized"):
            raise ValueError(f"encoding must be 'signed' or 'standardized', got {self.encoding!r}.")
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, type(self).__name__)
        Y = np.where(labels[:, None] == np.arange(len(classes)), 1.0, -1.0)
        Y = Y[:, 1:] if len(classes) == 2 else Y
        if self.encoding == "standardized":
            mean = np.average(Y, axis=0, weights=weight)
            Y = (Y - mean) / np.sqrt(1.0 - mean**2)
        self._single_output = Y.shape[1] == 1
        self._fit(X, Y, weight, labels)
        self.classes_ = classes
        return self

    def _choose(self, problem, rows, settings, labels, n_folds, context):
        """The setting of least calibrated log-loss on held-out scores, or of least squared error."""
        if not self.calibrate or n_folds < 2:
            index, chosen = self._choose_by_squared_error(problem, rows, settings, context)
            return index, chosen | {"calibration_": None}
        S, (n, n_outputs) = settings.size, rows.Y.shape
        n_scored = min(n, n_folds * _SCORED_ROWS) if problem.samples else n
        check_memory(
            16.0 * S * n_scored * n_outputs, f"Held-out scores of {S} settings", self.memory_limit, "use fewer settings"
        )
        pieces, scored = [], []
        with self._task(context, "cross-validation") as report:
            for fold, held_out in _reported(problem.row_folds(), report):
                piece = np.empty((S, len(held_out), n_outputs))
                for block, predicted in fold_predictions(fold, settings, self.regularizer, self.constraint):
                    piece[block] = predicted.transpose(1, 0, 2)
                pieces.append(piece)
                scored.append(held_out)
        scores, scored = np.concatenate(pieces, axis=1), np.concatenate(scored)
        truth, weight = labels[rows.used][scored], None if rows.weight is None else rows.weight[scored]
        calibrations = [calibrate_scores(_per_class(s), truth, weight) for s in scores]
        losses = np.array([c.loss for c in calibrations])
        best = int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))
        chosen = {"calibration_": calibrations[best]}
        if S > 1:
            chosen |= {"cv_results_": {"error": losses}, "best_index_": best}
        return best, chosen

    def _logits(self, X: Any) -> NDArray:
        check_is_fitted(self)
        f = self._evaluate(X, self.dual_coef_)[0] + self.intercept_
        scores = _per_class(f.reshape(len(f), -1))
        return scores if self.calibration_ is None else self.calibration_.slope * scores + self.calibration_.bias

    @blockwise
    def decision_function(self, X: Any) -> NDArray:
        """Scores of new items: the calibrated log-odds (f itself with ``calibrate=False``).

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The new items.

        Returns
        -------
        scores : ndarray of shape (n,) for two classes, else (n, n_classes)
            The scores.
        """
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    @blockwise
    def predict(self, X: Any) -> NDArray:
        """The most probable class of new items.

        Parameters
        ----------
        X : array-like or sequence
            The new items, as for `decision_function`.

        Returns
        -------
        y : ndarray of shape (n,)
            The predictions.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(lambda self: self.calibrate)
    @blockwise
    def predict_proba(self, X: Any) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sequence
            The new items, as for `decision_function`.

        Returns
        -------
        p : ndarray of shape (n, n_classes)
            The probabilities.
        """
        return softmax(self._logits(X), axis=1)


class _ValidationObjective:
    """Logarithm of the mean validation error over folds and its gradient, as a function of one vector.

    The logarithm makes the first step of the descent independent of the units of the targets; with errors in the
    thousands it would end at the bounds.

    The vector holds the kernel's theta, then the logarithms of those of alpha_positive, alpha_negative and
    radius / std(y) that were not given.
    """

    def __init__(self, rows: _Rows, model: _KreinLeastSquares):
        self.rows, self.model = rows, model
        self.std = np.sqrt(np.average((rows.Y - np.average(rows.Y, axis=0, weights=rows.weight)) ** 2, axis=0,
                                      weights=rows.weight))  # fmt: skip
        self.K = None if len(rows.kernel.theta) else self._matrix(rows.kernel)
        first = self._matrix(rows.kernel)
        self.scale = float(np.abs(first).max()) or 1.0
        free = [("positive", model.alpha_positive is None)]
        free += [("negative", model.alpha_negative is None and model.regularizer == "components")]
        free += [("radius", model.radius is None and model.constraint is not None)]
        self.free = [name for name, is_free in free if is_free]

    def _matrix(self, kernel: Kernel) -> NDArray:
        return check_symmetric(kernel(self.rows.items), "the kernel matrix")

    def bounds(self) -> NDArray:
        limits = {"positive": (1e-10, 1e4), "negative": (1e-10, 1e4), "radius": (1e-3, 10.0)}
        unit = {"positive": self.scale, "negative": self.scale, "radius": 1.0}
        own = [np.log(np.multiply(limits[name], unit[name])) for name in self.free]
        middle = _initial_theta(self.rows.kernel, self.rows.items, np.random.RandomState(0))
        reach = np.maximum(5.0, np.abs(middle))
        low, high = self.rows.kernel.bounds.T
        box = np.column_stack([np.maximum(low, middle - reach), np.minimum(high, middle + reach)])
        return np.vstack([box, *own]) if own else box

    def start(self, rng: np.random.RandomState) -> NDArray:
        """A random start after Oglic and Gaertner (2018), appendix E.1, on scales that do not depend on units."""
        theta = _initial_theta(self.rows.kernel, self.rows.items, rng)
        n, y = len(self.rows.Y), self.rows.Y[:, 0]
        width = np.ptp(y) or 1.0
        square = ((y - y.mean()) / width) ** 2
        low, high = max(1e-4, square.mean() - 2.5 * square.std()), square.mean() + 2.5 * square.std()
        draws = {
            "positive": self.scale * rng.choice(np.logspace(-1, 2, 5)) / n,
            "negative": self.scale * rng.choice(np.logspace(-1, 2, 5)) / n,
            "radius": np.sqrt((high - low) * rng.uniform() + low) * width / (self.std[0] or 1.0),
        }
        return np.r_[theta, [np.log(draws[name]) for name in self.free]]

    def unpack(self, x: NDArray) -> tuple[Kernel, float, float, NDArray | None]:
        cut, model = len(self.rows.kernel.theta), self.model
        values = dict(zip(self.free, np.exp(x[cut:])))
        plus = values.get("positive", model.alpha_positive)
        minus = values.get("negative", plus if model.alpha_negative is None else model.alpha_negative)
        radius = None
        if model.constraint is not None:
            radius = values["radius"] * self.std if "radius" in values else np.asarray(model.radius, dtype=float)
        kernel = self.rows.kernel.with_theta(x[:cut]) if cut else self.rows.kernel
        return kernel, float(plus), float(minus), radius

    def __call__(self, x: NDArray) -> tuple[float, NDArray]:
        kernel, plus, minus, radius = self.unpack(x)
        rows, model, cut = self.rows, self.model, len(self.rows.kernel.theta)
        K = self._matrix(kernel) if self.K is None else self.K
        G = np.zeros_like(K) if cut else None
        n_folds = int(rows.folds.max()) + 1
        loss, gradient = 0.0, dict.fromkeys(("positive", "negative", "radius"), 0.0)
        for fold in range(n_folds):
            train, test = np.flatnonzero(rows.folds != fold), np.flatnonzero(rows.folds == fold)
            if len(train) == 0:
                train = test
            w = (None, None) if rows.weight is None else (rows.weight[train], rows.weight[test])
            part = validation_loss(
                K[np.ix_(train, train)], rows.Y[train], K[np.ix_(test, train)], rows.Y[test], plus, minus, radius,
                sample_weight=w[0], weight_val=w[1], regularizer=model.regularizer, constraint=model.constraint,
                intercept=model.fit_intercept, kernel_gradient=bool(cut),
            )  # fmt: skip
            loss += part.loss / n_folds
            gradient["positive"] += part.alpha_positive * plus / n_folds
            gradient["negative"] += part.alpha_negative * minus / n_folds
            if radius is not None:
                gradient["radius"] += float(np.sum(part.radius * radius)) / n_folds
            if cut:
                G[np.ix_(train, train)] += part.train / n_folds
                G[np.ix_(test, train)] += part.validation / n_folds
        if "positive" in self.free and model.regularizer != "components":
            gradient["negative"] = 0.0
        theta = kernel.pullback(rows.items, None, G) if cut else np.zeros(0)
        full = np.r_[theta, [gradient[name] for name in self.free]]
        if not (np.isfinite(loss) and np.all(np.isfinite(full))):
            return 1e3, np.zeros_like(x)
        loss = max(loss, np.finfo(float).tiny)
        return float(np.log(loss)), full / loss


def _initial_theta(kernel: Kernel, X: Any, rng: np.random.RandomState) -> NDArray:
    """Random kernel parameters: per kind of kernel where the paper gives a rule, else near the given ones."""
    theta = kernel.theta
    if len(theta) == 0:
        return theta
    c = 0.4 * (1.0 + rng.uniform(size=len(theta)))
    if isinstance(kernel, (Gaussian, DeltaGauss)) and np.ndim(kernel.length_scale) == 0:
        rows = X[rng.permutation(len(X))[:500]]
        squared = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)[np.triu_indices(len(rows), 1)]
        scale = np.sqrt((np.median(squared) if len(squared) else 1.0) or 1.0) / np.sqrt(c[0])
        if isinstance(kernel, DeltaGauss):
            shift = rng.uniform(-0.95, 0.95)
            return np.log([(1 - shift) * scale, (1 + shift) * scale])
        return np.array([np.log(scale)])
    if isinstance(kernel, Gaussian):
        return np.log(np.sqrt(X.shape[1]) * c * np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0))
    if isinstance(kernel, (Sigmoid, Epanechnikov)):
        size = np.abs(X).max(axis=0) if np.ndim(kernel.length_scale) else np.linalg.norm(X, axis=1).max()
        size = np.atleast_1d(np.where(size > 0, size, 1.0))
        m = len(size)
        size = size * np.sqrt(X.shape[1] if m > 1 else 1)
        power = 1.0 if isinstance(kernel, Epanechnikov) else 0.5
        return np.r_[np.log(size / c[:m] ** power), theta[m:]]
    return theta + rng.uniform(-1.0, 1.0, size=len(theta))


def _reported(folds: Iterator, report: Callable[[dict], bool]) -> Iterator:
    """Pass folds on, telling callbacks after each."""
    for i, fold in enumerate(folds):
        yield fold
        report({"stage": "fold", "index": i})


def _per_class(scores: NDArray) -> NDArray:
    """One column per class; two classes share one score."""
    return np.column_stack([-scores[:, 0] / 2, scores[:, 0] / 2]) if scores.shape[1] == 1 else scores


class _KreinMachine(KernelEstimator):
    """What the support vector machines share."""

    def __init__(self, kernel, C, negative_penalty, center, tol, max_iter, memory_limit, n_jobs):
        self.kernel = kernel
        self.C = C
        self.negative_penalty = negative_penalty
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        for name in ("C", "negative_penalty"):
            value = getattr(self, name)
            if not (np.isscalar(value) and value > 0):
                raise ValueError(f"{name} must be positive, got {value!r}.")

    def _stabilized(self, X: Any, weight: NDArray | None, n: int):
        """The kernel, the items of positive weight, their positions, and their flipped kernel matrix."""
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, np.empty(n))
        used = used_rows(weight, n)
        check_memory(
            _MACHINE_BYTES * n**2, f"The machine of {n} items", self.memory_limit, "use fewer rows, or "
            "KreinRidge or KreinRidgeClassifier with solver='nystroem'",
        )  # fmt: skip
        name = "X" if isinstance(kernel, Precomputed) else "the kernel matrix"
        items = used_items(kernel, items, used)
        K = check_symmetric(kernel(items), name)
        w = None if weight is None else weight[used]
        return kernel, items, used, self._stabilize(K, w)

    def _stabilize(self, K: NDArray, weight: NDArray | None) -> Stabilized:
        return stabilize(K, self.negative_penalty, weight, center=self.center)

    def _store(self, kernel, items, used, machines, stabilized, n: int, **attributes) -> None:
        beta = np.column_stack([m.coef for m in machines])
        part, intercept = stabilized.original(beta, np.array([m.intercept for m in machines]))
        coef = part
        if isinstance(kernel, Precomputed):  # columns of rows without weight stay in the test matrix
            coef = np.zeros((n, part.shape[1]))
            coef[used] = part
        gap = max(m.gap for m in machines)
        # libsvm stops on the gradient of the dual and warns for itself
        if gap > 1e-6 and getattr(self, "loss", "hinge") == "squared_hinge":
            warnings.warn(
                f"The relative duality gap is {gap:.1e}; the kernel matrix may be badly scaled, lower C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        attributes |= {
            "kernel_": kernel,
            "X_fit_": None if isinstance(kernel, Precomputed) else items,
            "support_": used[np.any(beta != 0, axis=1)],
            "n_iter_": max(1, *(m.n_iter for m in machines)),
            "dual_coef_": coef,
            "intercept_": intercept,
            "certificate_": float(gap),
            "n_negative_": stabilized.n_negative,
        }
        for name, value in attributes.items():
            setattr(self, name, value)

    def _scores(self, X: Any) -> NDArray:
        check_is_fitted(self)
        X = self._test_items(X)
        step = row_blocks(len(X), 24.0 * len(self.dual_coef_), min(2**27, memory_budget(self.memory_limit) // 2))
        return np.concatenate([self._similarities(X[rows]) @ self.dual_coef_ for rows in step]) + self.intercept_

    def _similarities(self, X: Any) -> NDArray:
        return self.kernel_(X) if isinstance(self.kernel_, Precomputed) else self.kernel_(X, self.X_fit_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")


class KreinSVC(ClassifierMixin, _KreinMachine):
    """Support vector classification with an indefinite kernel.

    Trains on the flipped kernel matrix ``|K|`` (stabilisation in the Krein space) and predicts with the original
    kernel: ``f(x) = sum_i coef_i k(x, x_i) + b``. With `negative_penalty` c the machine minimises
    ``(||f+||^2 + c ||f-||^2) / 2 + C sum loss(y f)``; c = 1 is the Krein machine, c = inf clips the spectrum.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float, default=1.0
        Inverse strength of the penalty.
    negative_penalty : float, default=1.0
        Penalty of f- relative to that of f+.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        libsvm's loss, or its square, solved to full accuracy by Newton's method.
    center : bool, default=False
        Whether to centre the kernel matrix first, which changes ``|K|`` but not K's own machine.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For more than two classes: one score per class, or one per pair.
    tol : float, default=1e-3
        libsvm's tolerance.
    max_iter : int, default=-1
        libsvm's limit of iterations; -1 for none.
    memory_limit : int, str or None, default=None
        Bytes, or for example "2GB"; None is half of what is free.
    n_jobs : int or None, default=None
        Processes for a kernel that is a function of two items.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n, n_pairs)
        Coefficients for the original kernel, dense even though the machine on ``|K|`` is sparse.
    intercept_ : ndarray of shape (n_pairs,)
    support_ : ndarray
        Rows that support the machine on ``|K|``.
    certificate_ : float
        Largest relative duality gap.
    n_negative_ : int
        Negative eigenvalues of the kernel matrix.

    See Also
    --------
    KreinRidgeClassifier : Least squares, faster to tune.
    sklearn.svm.SVC : The machine for positive definite kernels.

    References
    ----------
    G. Loosli, S. Canu and C. S. Ong, "Learning SVM in Krein spaces", IEEE PAMI 38(6), 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import KreinSVC
    >>> from mercerless.kernels import TL1
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(KreinSVC(TL1(4.0)).fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float = 1.0,
        negative_penalty: float = 1.0,
        loss: str = "hinge",
        center: bool = False,
        class_weight: dict | str | None = None,
        decision_function_shape: str = "ovr",
        tol: float = 1e-3,
        max_iter: int = -1,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
    ):
        super().__init__(kernel, C, negative_penalty, center, tol, max_iter, memory_limit, n_jobs)
        self.loss = loss
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "KreinSVC":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : array-like of shape (n,)
            The targets.
        sample_weight : array-like of shape (n,), optional
            A weight w counts like w repetitions of the row; 0 leaves it out.

        Returns
        -------
        self : KreinSVC
            The fitted model.
        """
        self._check_parameters()
        if self.loss not in ("hinge", "squared_hinge"):
            raise ValueError(f"loss must be 'hinge' or 'squared_hinge', got {self.loss!r}.")
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise ValueError(f"decision_function_shape must be 'ovr' or 'ovo', got {self.decision_function_shape!r}.")
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, type(self).__name__)
        kernel, items, used, stabilized = self._stabilized(X, weight, len(labels))
        w = None if weight is None else weight[used]
        context = self._init_callback_context(max_subtasks=len(_pairs(len(classes))))
        context.call_on_fit_task_begin(estimator=self)
        if self.loss == "hinge" and len(np.unique(labels[used])) == len(classes) > 2:
            machines = hinge_machines(
                stabilized.kernel, labels[used], self.C, w, tol=self.tol, max_iter=self.max_iter
            )  # one call: some 40 times faster for ten classes
        else:
            machines = []
            for i, j in _pairs(len(classes)):
                task = context.subcontext(task_name="pair")
                task.call_on_fit_task_begin(estimator=self)
                machines.append(self._pair(stabilized.kernel, labels[used], w, i, j))
                task.call_on_fit_task_end(estimator=self)
        self._store(kernel, items, used, machines, stabilized, len(labels), classes_=classes)
        context.call_on_fit_task_end(estimator=self)
        return self

    def _pair(self, K: NDArray, labels: NDArray, weight: NDArray | None, i: int, j: int):
        """The machine of class j against class i; positive scores mean j."""
        rows = np.flatnonzero((labels == i) | (labels == j))
        sign = np.where(labels[rows] == j, 1.0, -1.0)
        w = None if weight is None else weight[rows]
        block = K[np.ix_(rows, rows)]
        if self.loss == "hinge":
            machine = hinge_machine(block, sign, self.C, w, tol=self.tol, max_iter=self.max_iter)
        else:
            machine = squared_hinge_machine(block, sign, self.C, w)
        coef = np.zeros(len(labels))
        coef[rows] = machine.coef
        return machine._replace(coef=coef)

    @blockwise
    def decision_function(self, X: Any) -> NDArray:
        """Scores of new items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The new items.

        Returns
        -------
        scores : ndarray of shape (n,) for two classes, else (n, n_classes) or (n, n_pairs)
            Per class: the votes of the pairs plus a bounded sum of their scores, which breaks ties. Per pair
            (i, j): positive scores mean class i, as in scikit-learn.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return -scores if self.decision_function_shape == "ovo" else self._votes(scores)

    def _votes(self, scores: NDArray) -> NDArray:
        votes, sums = np.zeros((2, len(scores), len(self.classes_)))
        for k, (i, j) in enumerate(_pairs(len(self.classes_))):
            votes[:, j] += scores[:, k] > 0
            votes[:, i] += scores[:, k] <= 0
            sums[:, j] += scores[:, k]
            sums[:, i] -= scores[:, k]
        return votes + sums / (3.0 * (np.abs(sums) + 1.0))

    @blockwise
    def predict(self, X: Any) -> NDArray:
        """The class of new items.

        Parameters
        ----------
        X : array-like or sequence
            The new items, as for `decision_function`.

        Returns
        -------
        y : ndarray of shape (n,)
            The predictions.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return self.classes_[(scores[:, 0] > 0).astype(int)]
        return self.classes_[self._votes(scores).argmax(axis=1)]


class KreinSVR(RegressorMixin, _KreinMachine):
    """Support vector regression with an indefinite kernel.

    Minimises ``(||f+||^2 + negative_penalty ||f-||^2) / 2 + C sum max(0, |y - f| - epsilon)`` by training on the
    flipped kernel matrix, and predicts with the original kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float, default=1.0
        Inverse strength of the penalty.
    epsilon : float, default=0.1
        Half the width of the tube without loss.
    negative_penalty : float, default=1.0
        Penalty of f- relative to that of f+; inf clips the spectrum.
    center : bool, default=False
        Whether to centre the kernel matrix first.
    tol : float, default=1e-3
        libsvm's tolerance.
    max_iter : int, default=-1
        libsvm's limit of iterations; -1 for none.
    memory_limit : int, str or None, default=None
        Bytes, or for example "2GB"; None is half of what is free.
    n_jobs : int or None, default=None
        Processes for a kernel that is a function of two items.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n, 1)
        Coefficients for the original kernel.
    intercept_ : ndarray of shape (1,)
    support_ : ndarray
        Rows that support the machine on the flipped matrix.
    certificate_ : float
        The relative duality gap.
    n_negative_ : int
        Negative eigenvalues of the kernel matrix.

    See Also
    --------
    KreinRidge : Least squares, faster to tune.

    References
    ----------
    G. Loosli, S. Canu and C. S. Ong, "Learning SVM in Krein spaces", IEEE PAMI 38(6), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinSVR
    >>> from mercerless.kernels import DeltaGauss
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> bool(KreinSVR(DeltaGauss(1.0, 0.2), C=10).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        negative_penalty: float = 1.0,
        center: bool = False,
        tol: float = 1e-3,
        max_iter: int = -1,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
    ):
        super().__init__(kernel, C, negative_penalty, center, tol, max_iter, memory_limit, n_jobs)
        self.epsilon = epsilon

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "KreinSVR":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : array-like of shape (n,)
            The targets.
        sample_weight : array-like of shape (n,), optional
            A weight w counts like w repetitions of the row; 0 leaves it out.

        Returns
        -------
        self : KreinSVR
            The fitted model.
        """
        self._check_parameters()
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must be nonnegative, got {self.epsilon!r}.")
        y = column_or_1d(check_targets(y, type(self).__name__), warn=True)
        weight = check_weight(sample_weight, len(y))
        context = self._init_callback_context()
        context.call_on_fit_task_begin(estimator=self)
        kernel, items, used, stabilized = self._stabilized(X, weight, len(y))
        w = None if weight is None else weight[used]
        machine = tube_machine(
            stabilized.kernel, y[used], self.C, self.epsilon, w, tol=self.tol, max_iter=self.max_iter
        )
        self._store(kernel, items, used, [machine], stabilized, len(y))
        context.call_on_fit_task_end(estimator=self)
        return self

    @blockwise
    def predict(self, X: Any) -> NDArray:
        """Predict the targets of new items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The new items.

        Returns
        -------
        y : ndarray of shape (n,)
            The predictions.
        """
        return self._scores(X)[:, 0]


def _pairs(n_classes: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
