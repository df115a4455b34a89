"""Least squares and support vector machines in reproducing kernel Krein spaces."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from mercerless.core.basis import Basis
from mercerless.core.blocks import blockwise, is_dask
from mercerless.core.calibration import Calibration, cross_calibrate
from mercerless.core.conformal import ConformalMixin
from mercerless.core.descent import Descent, GradientSearch
from mercerless.core.estimator import (
    GroupedPredictor,
    KernelPredictor,
    NamedClassifierMixin,
    NamedRegressorMixin,
    Progress,
    class_scores,
    pair_votes,
    signed_targets,
)
from mercerless.core.folds import (
    OutOfFold,
    assign_folds,
    check_groups,
    distinct_items_needed,
    fold_numbers,
    warn_of_lonely_classes,
    warn_of_near_copies,
)
from mercerless.core.kinds import warn_if_distances
from mercerless.core.memory import check_memory, format_bytes, memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_centers, explain_targets
from mercerless.core.svm import Machine, Stabilized, pair_machines, stabilize, tube_machine
from mercerless.core.timing import landmarks_remedy
from mercerless.core.units import Standardizer, kernel_unit
from mercerless.core.validation import (
    check_classes,
    check_number,
    check_option,
    check_random_state,
    check_symmetric,
    check_symmetric_kernel,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn,
    warn_if_folds_are_useless,
    warn_if_tube_is_useless,
    warn_if_useless,
)
from mercerless.krein.selection import (
    Ball,
    Candidates,
    ExactProblem,
    Family,
    KreinRows,
    LandmarkProblem,
    Sphere,
    ValidationObjective,
    held_out_calibrations,
    least,
    make_candidates,
    squared_errors,
    tune_by_gradient,
)
from mercerless.krein.solver import (
    REGULARIZERS,
    KreinSolution,
    KreinSystem,
    build_system,
    part_coef,
    solve_system,
)
from mercerless.krein.thresholds import LIMITS
from mercerless.lowrank import Landmarks, as_landmarks, select_landmarks
from mercerless.spectra import implied_distances


class _KreinModel(KernelPredictor):
    """Base of all Krein models: coefficients of similarities to the training rows, or to landmarks."""

    landmarks_: NDArray | None = None
    dual_coef_: NDArray
    _basis: Basis  # what new items are compared with

    predict = blockwise(KernelPredictor.predict)

    def _matrix(self, basis: Basis) -> NDArray:
        K = check_symmetric(basis.matrix(), basis.matrix_name)
        if basis.given_as_matrix:
            warn_if_distances(K, type(self).__name__)
        return K

    def _evaluate(self, X: Any, *names: str) -> list[NDArray]:
        """``k(X, basis) @ coef.T`` for the attributes named, in blocks of rows so that no large matrix is kept."""
        check_is_fitted(self)
        coefs = [getattr(self, name) for name in names]
        blocks = [[K @ coef.T for coef in coefs] for K in self._comparisons(X)]
        return [np.concatenate(pieces) for pieces in zip(*blocks)]

    def _comparisons(self, X: Any) -> Iterator[NDArray]:
        """``k(X, basis)`` in blocks of rows."""
        items = self._test_items(X)
        bytes_per_row = 24.0 * self.dual_coef_.shape[1]
        for rows in row_blocks(len(items), bytes_per_row, min(2**27, memory_budget() // 2)):
            yield self._basis.compare(items[rows])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")


class _KreinLeastSquares(ConformalMixin, ReasonsMixin, _KreinModel, GroupedPredictor):
    """Base of the regressor and the classifier, which differ in how they choose among candidates."""

    out_of_fold_: OutOfFold | None
    _is_weighted: bool  # whether there were weights besides 0 and 1
    _streams = True
    _ratios: Sequence[float] = LIMITS.ratios
    _without_out_of_fold = (
        "leave alpha_positive at None, or give several, so that cross-validation chooses"
    )
    _score_bytes = 8.0  # of the scores kept for each candidate and target

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        alpha_positive: ArrayLike | None = None,
        alpha_negative: ArrayLike | None = None,
        regularizer: str = "components",
        constraint: Sphere | None = None,
        search: GradientSearch | None = None,
        cv: Any = 5,
        fit_intercept: bool = True,
        landmarks: int | str | Landmarks | None = "auto",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.alpha_positive = alpha_positive
        self.alpha_negative = alpha_negative
        self.regularizer = regularizer
        self.constraint = constraint
        self.search = search
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.landmarks = landmarks
        self.random_state = random_state

    def _fit(
        self,
        X: Any,
        Y: NDArray,
        weight: NDArray,
        groups: ArrayLike | None,
        labels: NDArray | None = None,
        **attributes: Any,
    ) -> None:
        """Choose the penalties, solve, and set every fitted attribute at the end."""
        family = self._checked_family()
        candidates = self._candidates(Y)
        groups = check_groups(groups, len(Y))
        basis, gathered = self._gathered_basis(
            X, weight, Y, groups, fewest=distinct_items_needed(self.cv)
        )
        rows = self._rows(basis, Y, gathered.weight, labels, groups)
        landmarks = self._landmarks(rows, candidates)
        with self._progress() as progress:
            if landmarks is None:
                progress.expect(12.0, len(rows.Y), landmarks_remedy(len(rows.Y)))
            if self.search is not None:
                tuned = self._tune(self.search, rows, family, candidates, progress)
                rows = tuned.rows
                candidates = tuned.candidates
                attributes["tuning_"] = tuned.course
            problem = self._problem(rows, landmarks, candidates)
            index, validation = self._choose(problem, family, candidates, labels, progress)
            if validation["out_of_fold_"] is not None:
                validation["out_of_fold_"] = gathered.spread(validation["out_of_fold_"])
            system = problem.system()
            penalties = candidates.resolve(system, self.regularizer)
            chosen = penalties.take(slice(index, index + 1))
            solution = self._solve(system, chosen, family)
            self._warn_if_inaccurate(solution)
            self._warn_if_not_unique(system, solution)
            if "cv_results_" in validation:
                validation["cv_results_"] |= _grid_columns(penalties, family)
            self._set_fitted(
                _is_weighted=bool(np.any((weight != 0.0) & (weight != 1.0))),
                **self._basis_attributes(problem, system, solution),
                **_penalty_attributes(chosen, family, Y.shape[1:]),
                **_spectral_attributes(system, solution, Y.shape[1:]),
                **validation,
                **attributes,
            )

    def _checked_family(self) -> Family:
        """The problem to solve, after all parameters but the penalties were checked."""
        check_option("regularizer", self.regularizer, REGULARIZERS)
        if self.constraint is not None and not isinstance(self.constraint, Sphere):
            raise ValueError(
                f"constraint must be None, Sphere(radius) or Ball(radius), got {self.constraint!r}."
            )
        if self.search is not None and not isinstance(self.search, GradientSearch):
            raise ValueError(
                f"search must be None (a grid) or GradientSearch(), got {self.search!r}."
            )
        if self.landmarks is not None and self.landmarks != "auto":
            as_landmarks(self.landmarks)
            if self.search is not None:
                raise ValueError(
                    "GradientSearch needs all rows; use landmarks=None, or search=None."
                )
        if self.regularizer == "indefinite":
            warn(
                "regularizer='indefinite' rewards complexity on the negative spectrum, so the "
                "solution depends on rounding and often does not generalize; use "
                "regularizer='components' unless you study this problem.",
                UserWarning,
            )
        constraint = None
        if self.constraint is not None:
            constraint = "ball" if isinstance(self.constraint, Ball) else "sphere"
        return Family(self.regularizer, constraint, self.fit_intercept)

    def _candidates(self, Y: NDArray) -> Candidates:
        """The penalties and radii to choose from."""
        n_outputs = Y[:1].size
        return make_candidates(
            self.alpha_positive,
            self.alpha_negative,
            self.constraint,
            self.regularizer,
            n_outputs,
            self._ratios,
        )

    def _rows(
        self,
        basis: Basis,
        Y: NDArray,
        weight: NDArray,
        labels: NDArray | None,
        groups: NDArray | None = None,
    ) -> KreinRows:
        """The rows that carry weight, with their targets and folds."""
        outputs = Y.reshape(len(Y), -1)
        classify = labels is not None
        folds = fold_numbers(
            self.cv,
            basis.items,
            labels if classify else outputs[:, 0],
            classify=classify,
            groups=groups,
            used=basis.rows,
            precomputed=basis.given_as_matrix,
            random_state=self.random_state,
        )
        if groups is not None:
            groups = groups[basis.rows]
        return KreinRows(basis, outputs[basis.rows], weight[basis.rows], folds, groups)

    def _exact_need(self, rows: KreinRows, candidates: Candidates) -> float:
        """Bytes of the exact solution and of the scores to choose by."""
        scores = self._score_bytes * candidates.size * rows.Y.size
        return LIMITS.exact_bytes * len(rows.Y) ** 2 + scores

    def _landmarks(self, rows: KreinRows, candidates: Candidates) -> Landmarks | None:
        """How to choose landmarks, None for all rows; "auto" decides by the number of rows and memory, and warns."""
        n = len(rows.Y)
        lazy = is_dask(rows.items)
        needs_all_rows = self.landmarks is None or self.search is not None
        if lazy and needs_all_rows:
            raise ValueError(
                "The exact solution needs its data in memory; set landmarks, or use X.compute()."
            )
        if needs_all_rows:
            return None
        if self.landmarks != "auto":
            return as_landmarks(self.landmarks)
        budget = memory_budget()
        need = self._exact_need(rows, candidates)
        if not lazy and n <= LIMITS.exact_rows and need <= budget:
            return None
        affordable = max(1, int(np.sqrt(budget / LIMITS.landmark_bytes)))
        number = min(LIMITS.auto_landmarks, n, affordable)
        if not lazy:
            warn(
                f"{type(self).__name__} uses {number} landmarks for {n} rows: the exact solution "
                f"is for up to {LIMITS.exact_rows} rows and would need {format_bytes(need)}. Set "
                "landmarks to a number, or to None for the exact solution, to choose yourself.",
                UserWarning,
            )
        return Landmarks(number)

    def _problem(
        self, rows: KreinRows, landmarks: Landmarks | None, candidates: Candidates
    ) -> ExactProblem | LandmarkProblem:
        """The problem on all rows or on landmarks, whose folds choose and which is solved in the end."""
        if landmarks is None:
            check_memory(
                self._exact_need(rows, candidates),
                f"The eigendecomposition of {len(rows.Y)} items",
                None,
                "set landmarks or use fewer rows",
            )
            K = self._matrix(rows.basis)
            if rows.groups is None and self._validates(candidates):
                n_classes = rows.Y.shape[1] + 1
                warn_of_near_copies(implied_distances(K), self.cv, n_classes)
            return ExactProblem(rows, K, self.fit_intercept)
        check_symmetric_kernel(rows.kernel)
        if rows.basis.given_as_matrix:
            check_symmetric(rows.items, "X")
        number = min(landmarks.number, len(rows.Y))
        check_memory(
            LIMITS.landmark_bytes * number**2,
            f"The solution on {number} landmarks",
            None,
            "use fewer landmarks",
        )
        random = check_random_state(self.random_state)
        chosen = select_landmarks(rows.kernel, rows.items, number, landmarks.method, random)
        budget = memory_budget()
        bytes_per_row = 32 * candidates.size * rows.Y.shape[1] * rows.n_folds
        scored_rows = max(1, min(LIMITS.scored_rows, int(budget // bytes_per_row)))
        block_bytes = min(LIMITS.block_bytes, budget // 3)
        return LandmarkProblem(rows, chosen, self.fit_intercept, block_bytes, scored_rows, random)

    def _validates(self, candidates: Candidates) -> bool:
        """Whether held-out rows decide."""
        return candidates.size > 1 or self.search is not None

    def _tune(
        self,
        search: GradientSearch,
        rows: KreinRows,
        family: Family,
        candidates: Candidates,
        progress: Progress,
    ) -> "_Tuned":
        """Tune the kernel and the penalties by descent."""
        n = len(rows.Y)
        check_memory(
            LIMITS.gradient_bytes * n**2,
            f"The gradient for {n} items",
            None,
            "use search=None or fewer rows",
        )
        objective = ValidationObjective(
            rows, family, candidates, standardize=not is_classifier(self)
        )
        random = check_random_state(self.random_state)
        with progress.task("gradient") as task:
            course = tune_by_gradient(objective, search, random, task.step)
        kernel = objective.unpack(course.x)[0]
        tuned_rows = rows._replace(basis=rows.basis.with_kernel(kernel))
        return _Tuned(tuned_rows, objective.candidates(course.x), course)

    def _choose(
        self,
        problem: ExactProblem | LandmarkProblem,
        family: Family,
        candidates: Candidates,
        labels: NDArray | None,
        progress: Progress,
    ) -> tuple[int, dict[str, Any]]:
        """The candidate of least mean squared held-out error, and the attributes that describe the validation."""
        rows = problem.rows
        is_given = candidates.size == 1 and self.search is None
        if is_given or rows.n_folds < 2:
            return 0, {"out_of_fold_": None}
        predictions: list[NDArray] = []
        with progress.task("cross-validation") as task:
            folds = task.each("fold", problem.folds())
            errors = squared_errors(folds, candidates, family, predictions)
        error = errors.mean(axis=0)
        best = least(error)
        if np.any(leave_one_out_constant(rows.Y)):
            warn_if_folds_are_useless(errors[:, best], type(self).__name__)
        # the end of a gradient search, validated as the winner of a grid is
        if candidates.size == 1:
            return 0, {"out_of_fold_": None}
        standard_error = np.zeros_like(error)
        if len(errors) > 1:
            standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
        places, predicted = problem.chosen(predictions, best, candidates, family)
        return best, {
            "cv_results_": {"error": error, "standard_error": standard_error},
            "best_index_": best,
            "out_of_fold_": OutOfFold(
                rows.basis.rows[places], predicted, rows.Y[places], rows.groups_of(places)
            ),
        }

    def _solve(self, system: KreinSystem, chosen: Candidates, family: Family) -> KreinSolution:
        """The solution for the only candidate."""
        return solve_system(
            system,
            chosen.alpha_positive[0],
            chosen.alpha_negative[0],
            chosen.radius[0],
            regularizer=family.regularizer,
            constraint=family.constraint,
        )

    def _warn_if_inaccurate(self, solution: KreinSolution) -> None:
        worst = max(solution.constraint_error, solution.stationarity)
        if not worst <= LIMITS.largest_residual:
            warn(
                f"The secular equation was solved to a relative accuracy of {worst:.1e} only; "
                "rescale the kernel or use a larger alpha.",
                ConvergenceWarning,
            )

    def _warn_if_not_unique(self, system: KreinSystem, solution: KreinSolution) -> None:
        """Warn of the hard case of the sphere: a part of f that the targets do not determine."""
        sizes = np.abs(system.target.T)
        is_rounding = sizes <= LIMITS.target_rounding * sizes.max(
            axis=1, initial=0.0, keepdims=True
        )
        squares = solution.spectral.coef**2
        undetermined = np.sum(squares * is_rounding, axis=1)
        if np.any(undetermined > LIMITS.largest_undetermined * squares.sum(axis=1)):
            warn(
                "The minimum is not unique: to reach the radius, f needs directions in which the "
                "targets have no component, so rounding decides; use a smaller radius.",
                ConvergenceWarning,
            )

    def _basis_attributes(
        self, problem: ExactProblem | LandmarkProblem, system: KreinSystem, solution: KreinSolution
    ) -> dict[str, Any]:
        """The items that new ones are compared with, and the coefficients of these comparisons."""
        rows = problem.rows
        basis = problem.fitted_basis()

        def dual(coef: NDArray) -> NDArray:
            return basis.spread(problem.dual(coef).T)

        return {
            "_basis": basis,
            "_train_targets": (rows.Y, rows.weight),
            "kernel_": basis.kernel,
            "X_fit_": basis.kept,
            "landmarks_": basis.landmarks,
            "dual_coef_": dual(solution.coef),
            "dual_coef_positive_": dual(part_coef(system, solution, 1)),
            "dual_coef_negative_": dual(part_coef(system, solution, -1)),
        }

    @property
    def _basis_rows(self) -> NDArray:  # type: ignore[override]
        return self._basis.centers

    def _explain_blocks(self, X: Any, train: ArrayLike | None = None) -> Iterator[Explained]:
        """Shares by the targets of the training rows or, with landmarks, by the landmarks' coefficients."""
        calibration = getattr(self, "calibration_", None)
        if self.landmarks_ is not None:
            yield from self._explain_landmarks(X, calibration)
            return
        if self.radius_ is not None:
            raise ValueError(
                "A constraint makes the model nonlinear in the targets; explain needs "
                "constraint=None."
            )
        Y, weight = self._train_targets
        one_target_each = np.eye(len(Y))
        matrix = self._train_again(train)
        system = build_system(matrix, one_target_each, weight, intercept=self.fit_intercept)
        solution = solve_system(
            system, self.alpha_positive_, self.alpha_negative_, regularizer=self.regularizer
        )
        positive = part_coef(system, solution, 1)
        negative = part_coef(system, solution, -1)
        for comparisons in self._comparisons(X):
            K = self._basis.weighted(comparisons)
            terms = [
                Term("positive", K @ positive),
                Term("negative", K @ negative),
                Term("mean", np.tile(solution.intercept, (len(K), 1))),
            ]
            yield explain_targets(terms, Y, weight, calibration)

    def _explain_landmarks(self, X: Any, calibration: Calibration | None) -> Iterator[Explained]:
        """Shares of the landmarks."""
        for K in self._comparisons(X):
            terms = [
                Term("positive", K, self.dual_coef_positive_),
                Term("negative", K, self.dual_coef_negative_),
            ]
            yield explain_centers(terms, np.atleast_1d(self.intercept_), calibration)

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
        parts = self._evaluate(X, "dual_coef_positive_", "dual_coef_negative_")
        positive, negative = (part.reshape(len(part), *np.shape(self.intercept_)) for part in parts)
        return positive, negative


class _Tuned(NamedTuple):
    """The result of a gradient search."""

    rows: KreinRows  # with the tuned kernel
    candidates: Candidates  # the tuned penalties and radius alone
    course: Descent


def _grid_columns(penalties: Candidates, family: Family) -> dict[str, Any]:
    """The candidates as columns of ``cv_results_``."""
    return {
        "alpha_positive": penalties.alpha_positive,
        "alpha_negative": penalties.alpha_negative,
        "radius": penalties.radius if family.constraint else None,
    }


def _penalty_attributes(
    chosen: Candidates, family: Family, shape: tuple[int, ...]
) -> dict[str, Any]:
    """The penalties and the radius that were used."""
    return {
        "alpha_positive_": float(chosen.alpha_positive[0]),
        "alpha_negative_": float(chosen.alpha_negative[0]),
        "radius_": _shaped(chosen.radius[0], shape) if family.constraint else None,
    }


def _spectral_attributes(
    system: KreinSystem, solution: KreinSolution, shape: tuple[int, ...]
) -> dict[str, Any]:
    """The solution in the basis of eigenvectors, and its certificates; single targets have the shape ()."""
    spectral = solution.spectral
    return {
        "intercept_": _shaped(solution.intercept, shape),
        "eigenvalues_": system.values,
        "spectral_target_": system.target.reshape(-1, *shape),
        "total_weight_": system.n,
        "multiplier_": _shaped(1.0 + spectral.multiplier, shape),
        "mu_": _shaped(spectral.multiplier / system.n, shape),
        "n_iter_": max(1, spectral.n_iter),
        "certificate_": max(solution.constraint_error, solution.stationarity),
        "is_minimum_": bool(np.all(spectral.is_minimum)),
    }


def _shaped(values: NDArray, shape: tuple[int, ...]) -> Any:
    """One value per output; a number if the targets had one axis."""
    return values if shape else float(values[0])


class KreinRidge(NamedRegressorMixin, _KreinLeastSquares):
    """Least squares with an indefinite kernel: one penalty for each part of the spectrum.

    Minimizes ``mean((y - f)^2) + alpha_positive ||f+||^2 + alpha_negative ||f-||^2`` over functions ``f = f+ + f-`` of
    the reproducing kernel Krein space, plus an intercept, where ``f+`` and ``f-`` live on the positive and the negative
    eigenvalues of the centered kernel matrix; optionally with the variance of f fixed or bounded. The solution is the
    global minimum, from one eigendecomposition. For a positive definite kernel and equal penalties it equals
    ``KernelRidge(alpha=n * alpha_positive)`` on the centered kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    alpha_positive, alpha_negative : float, array-like or None, default=None
        Penalties of f+ and f-. Arrays are the grid that cross-validation chooses from. None: 17 values of
        ``n alpha_positive / max|eigenvalue|`` from 1e-7 to 10, and ``alpha_negative / alpha_positive`` of .01, .1, 1,
        10 and 100. Regularizers with one penalty use `alpha_positive`.
    regularizer : {"components", "strong", "indefinite", "covariance"}, default="components"
        The two penalties above; equal ones, the norm of the strong topology, which flips the negative eigenvalues; the
        indefinite inner product <f, f>, which is unstable and warns; or the empirical covariance, a multiple of
        mean(f^2).
    constraint : Sphere, Ball or None, default=None
        Whether the standard deviation of f on the training rows equals, or is at most, a radius.
    search : GradientSearch or None, default=None
        None chooses from the grid, with one eigendecomposition per fold. `GradientSearch` descends the held-out error
        instead, which tunes the parameters of the kernel as well.
    cv : int, splitter or iterable, default=5
        Folds; every row must be held out once. With a number, equal rows with equal targets are one row with the sum of
        their weights; a splitter keeps them apart, and weights then choose and calibrate nearly as repetition does.
    fit_intercept : bool, default=True
        Whether to center kernel and targets. Without it the constraint is on mean(f^2).
    landmarks : int, Landmarks, None or "auto", default="auto"
        Landmarks to use instead of all rows, in one pass over blocks of rows; all rows as landmarks give the exact
        solution. None is exact. "auto" is exact up to 4000 rows if memory allows, else uses up to 1000 and warns.
    random_state : int, RandomState or None, default=None
        Folds, landmarks and restarts.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_outputs, n_basis)
        Coefficients of the similarities to the training rows, or the landmarks.
    dual_coef_positive_, dual_coef_negative_ : ndarray of shape (n_outputs, n_basis)
        The coefficients of f+ and f-, which add to `dual_coef_`.
    intercept_ : float or ndarray of shape (n_outputs,)
    alpha_positive_, alpha_negative_, radius_ : float
        The penalties and the radius that were used; the radius is None without a constraint.
    multiplier_ : float or ndarray of shape (n_outputs,)
        Lagrange multiplier of the constraint; 0 if it does not bind, negative if it shrinks f.
    mu_ : float or ndarray of shape (n_outputs,)
        The same as the papers count it: ``(multiplier_ - 1) / n``, the root of the secular equation, which is -1/n if
        the constraint does not bind.
    certificate_ : float
        Largest relative error of the constraint and of stationarity.
    is_minimum_ : bool
        Whether the solution is the global minimum (always, but for "indefinite" without a constraint).
    eigenvalues_ : ndarray of shape (k,)
        Kept eigenvalues of the centered kernel.
    spectral_target_ : ndarray of shape (k,) or (k, n_outputs)
        The centered targets in the basis of their eigenvectors.
    total_weight_ : float
        Sum of the weights; without weights, the number of rows.
    cv_results_ : dict
        The candidates in absolute values, and the mean and standard error over folds of their squared errors, relative
        to the variance of the targets.
    best_index_ : int
    out_of_fold_ : OutOfFold or None
        Predictions for the rows that cross-validation held out (with landmarks at most 4000 of a fold): `rows`,
        `prediction` and `target`; None if the penalties are given or were found by `GradientSearch`.
    kernel_ : Kernel
        The kernel that was used, with tuned parameters after `GradientSearch`.
    tuning_ : Descent
        After `GradientSearch`: its course and result.
    landmarks_ : ndarray or None
        The rows that are landmarks; None for the exact solution.
    X_fit_ : ndarray or None
        The training items that new ones are compared with; None for a precomputed matrix.

    See Also
    --------
    KreinRidgeClassifier : The classifier.
    KreinSVR : Support vector regression in a Krein space.
    SimilarityRegressor : The automatic choice among many models of a similarity.

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
    >>> model = KreinRidge(DeltaGauss(1.0, 0.2), random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    def _learn(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None = None
    ) -> None:
        Y = check_targets(y, type(self).__name__)
        self._fit(X, Y, check_weight(sample_weight, len(Y)), groups)
        held_out = self.out_of_fold_
        if Y.ndim == 1 and held_out is not None:
            self.out_of_fold_ = held_out._replace(
                prediction=held_out.prediction[:, 0], target=held_out.target[:, 0]
            )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets of new items and, on request, their standard deviations.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The new items.
        return_std : bool, default=False
            Whether to return the standard deviation of a new target, noise included, as well. It is that of the
            Gaussian process whose posterior mean this is, so the kernel must not be precomputed and must not have
            negative eigenvalues.

        Returns
        -------
        y : ndarray of shape (n,) or (n, n_outputs)
            The predictions.
        std : ndarray of shape (n,)
            The standard deviations, only with ``return_std=True``.
        """
        predicted = super().predict(X)
        return (predicted, self._std(X)) if return_std else predicted

    def _std(self, X: Any) -> NDArray:
        """Standard deviations of new targets; raises if there is no Gaussian process."""
        self._check_process()
        Y, counts = self._train_targets  # the numbers of equal rows with equal targets
        n = counts.sum()
        shares = counts / n if self.fit_intercept else np.zeros(len(Y))
        K = self._train_again(None)
        mean = shares @ K
        center = float(shares @ mean)
        noise = n * self.alpha_positive_
        centered = K - mean - mean[:, None] + center
        factor = cho_factor(centered + np.diag(noise / counts), lower=True)
        residual = Y[:, 0] - shares @ Y[:, 0]
        variance = noise * float(residual @ cho_solve(factor, residual)) / n
        blocks = []
        diagonal = self.kernel_.diag(self._test_items(X))
        done = 0
        for rows in self._comparisons(X):
            shift = rows @ shares
            crossed = rows - shift[:, None] - mean + center
            alone = diagonal[done : done + len(rows)] - 2.0 * shift + center
            done += len(rows)
            explained = np.einsum("ij,ji->i", crossed, cho_solve(factor, crossed.T))
            blocks.append(1.0 + self.fit_intercept / n + np.maximum(alone - explained, 0.0) / noise)
        return np.sqrt(variance * np.concatenate(blocks))

    def _check_process(self) -> None:
        """Raise if no Gaussian process has the prediction as its posterior mean."""
        check_is_fitted(self)
        if np.any(self.eigenvalues_ < -1e-8 * np.abs(self.eigenvalues_).max(initial=0.0)):
            raise ValueError(
                "The kernel has negative eigenvalues, so no Gaussian process has it as covariance; "
                "use predict_interval."
            )
        if self._basis.given_as_matrix:
            raise ValueError(
                "return_std needs k(x, x) of new items, which a precomputed matrix does not have; "
                "use predict_interval."
            )
        is_exact = self.landmarks_ is None and self.radius_ is None
        is_plain = not self._is_weighted and self._train_targets[0].shape[1] == 1
        has_norm = self.regularizer in ("components", "strong") and self.alpha_positive_ > 0.0
        if not (is_exact and is_plain and has_norm):
            raise ValueError(
                "return_std is for one output, all rows, a positive alpha_positive, neither "
                "weights nor constraint nor another regularizer; use predict_interval."
            )

    def _predict(self, X: Any) -> NDArray:
        f = self._evaluate(X, "dual_coef_")[0]
        return f.reshape(len(f), *np.shape(self.intercept_)) + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class KreinRidgeClassifier(NamedClassifierMixin, _KreinLeastSquares):
    """Classification by least squares with an indefinite kernel, with calibrated probabilities.

    One-vs-rest targets of +-1 for `KreinRidge`'s problem, all classes sharing one eigendecomposition. Scores of the
    held-out folds choose the penalties and calibrate the scores (Platt's method; with more classes one slope and one
    bias per class), so that `predict`, `decision_function` and `predict_proba` agree.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    alpha_positive, alpha_negative : float, array-like or None, default=None
        Penalties of f+ and f-, arrays to choose from, or None: for the first the grid of `KreinRidge`, and ten times
        as much for the second, a light trust in the negative spectrum.
    regularizer : {"components", "strong", "indefinite", "covariance"}, default="components"
        See `KreinRidge`.
    constraint : Sphere, Ball or None, default=None
        See `KreinRidge`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    search : GradientSearch or None, default=None
        None chooses from the grid by the calibrated log-loss. `GradientSearch` tunes the kernel too, by the squared
        error of the targets.
    cv : int, splitter or iterable, default=5
        Folds, stratified; every row must be held out once.
    landmarks : int, Landmarks, None or "auto", default="auto"
        See `KreinRidge`.
    random_state : int, RandomState or None, default=None
        Folds, landmarks and restarts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_, dual_coef_positive_, dual_coef_negative_, intercept_ : ndarray
        As for `KreinRidge`; one output for two classes, else one per class.
    alpha_positive_, alpha_negative_, radius_, multiplier_, mu_, certificate_, is_minimum_ : float
        As for `KreinRidge`.
    eigenvalues_, spectral_target_, total_weight_, kernel_, X_fit_, landmarks_, best_index_ : object
        As for `KreinRidge`.
    calibration_ : Calibration
        Slope and biases of the held-out scores' softmax, and its mean log-loss.
    out_of_fold_ : OutOfFold or None
        Probabilities of the rows that cross-validation held out, as for `KreinRidge`; `target` is the number of the
        class.
    cv_results_ : dict
        The grid and the calibrated log-loss of each candidate.

    See Also
    --------
    KreinRidge : The regressor; on targets +-1, the sign of its prediction is the papers' classifier.
    KreinSVC : Support vector classification in a Krein space.
    SimilarityClassifier : The automatic choice among many models of a similarity.

    References
    ----------
    D. Oglic and T. Gaertner, "Learning in reproducing kernel Krein spaces", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import KreinRidgeClassifier
    >>> from mercerless.kernels import TL1
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KreinRidgeClassifier(TL1(4.0), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    _ratios = (10.0,)
    _without_out_of_fold = "fit it on more than one item"
    _score_bytes = 16.0

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        alpha_positive: ArrayLike | None = None,
        alpha_negative: ArrayLike | None = None,
        regularizer: str = "components",
        constraint: Sphere | None = None,
        class_weight: dict | str | None = None,
        search: GradientSearch | None = None,
        cv: Any = 5,
        landmarks: int | str | Landmarks | None = "auto",
        random_state: Any = None,
    ):
        super().__init__(
            kernel,
            alpha_positive=alpha_positive,
            alpha_negative=alpha_negative,
            regularizer=regularizer,
            constraint=constraint,
            search=search,
            cv=cv,
            landmarks=landmarks,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _learn(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None = None
    ) -> None:
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        groups = check_groups(groups, len(labels))
        if groups is not None:
            is_used = weight > 0.0
            warn_of_lonely_classes(classes[labels[is_used]], groups[is_used])
        Y = signed_targets(labels, len(classes))
        self._fit(X, Y[:, 0] if len(classes) == 2 else Y, weight, groups, labels, classes_=classes)

    def _validates(self, candidates: Candidates) -> bool:
        """Always: held-out rows calibrate the scores."""
        return True

    def _choose(
        self,
        problem: ExactProblem | LandmarkProblem,
        family: Family,
        candidates: Candidates,
        labels: NDArray | None,
        progress: Progress,
    ) -> tuple[int, dict[str, Any]]:
        """The candidate of least calibrated log-loss on held-out scores, and what describes the validation."""
        rows = problem.rows
        if rows.n_folds < 2:
            n_classes = max(rows.Y.shape[1], 2)
            uncalibrated = Calibration(1.0, np.zeros(n_classes), np.nan, 0.0)
            return 0, {"calibration_": uncalibrated, "out_of_fold_": None}
        assert labels is not None
        labels = labels[rows.basis.rows]
        with progress.task("cross-validation") as task:
            folds = task.each("fold", problem.row_folds())
            calibrations, scores, places = held_out_calibrations(
                folds, candidates, family, labels, rows.weight, class_scores
            )
        losses = np.array([calibration.loss for calibration in calibrations])
        best = least(losses)
        truth = labels[places]
        weight = rows.weight[places]
        groups = rows.groups_of(places)
        blocks = None
        if groups is not None:
            blocks = assign_folds(5, len(groups), together=groups, random_state=0)
        proba = cross_calibrate(class_scores(scores[best]), truth, weight, blocks)
        is_wrong = proba.argmax(axis=1) != truth
        constant_is_wrong = truth != np.bincount(truth, weight).argmax()
        warn_if_useless(is_wrong * 1.0, constant_is_wrong * 1.0, type(self).__name__, weight)
        attributes: dict[str, Any] = {
            "calibration_": calibrations[best],
            "out_of_fold_": OutOfFold(rows.basis.rows[places], proba, truth, groups),
        }
        if candidates.size > 1:
            attributes |= {"cv_results_": {"error": losses}, "best_index_": best}
        return best, attributes

    def _logits(self, X: Any) -> NDArray:
        f = self._evaluate(X, "dual_coef_")[0] + self.intercept_
        return self.calibration_.logits(class_scores(f))

    @blockwise
    def decision_function(self, X: Any) -> NDArray:
        """Scores of new items: the calibrated log-odds.

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

    def _predict(self, X: Any) -> NDArray:
        logits = self._logits(X)
        return self.classes_[logits.argmax(axis=1)]

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


class _KreinMachine(_KreinModel):
    """Base of the support vector machines: from items to coefficients for the original kernel."""

    def __init__(
        self,
        kernel: Any,
        *,
        C: float,
        negative_penalty: float,
        center: bool,
        tol: float,
        max_iter: int,
    ):
        self.kernel = kernel
        self.C = C
        self.negative_penalty = negative_penalty
        self.center = center
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_number("C", self.C)
        if self.negative_penalty != np.inf:  # infinity drops the negative part
            check_number("negative_penalty", self.negative_penalty)

    def _stabilized(
        self, X: Any, target: NDArray, weight: NDArray
    ) -> tuple[Basis, NDArray, Stabilized]:
        """The items that carry weight, their weights, and their matrix with the negative eigenvalues flipped."""
        basis, gathered = self._gathered_basis(X, weight, target)
        n = basis.n_train
        remedy = (
            "use fewer rows, a linear machine on KreinEmbedding(landmarks=...), or KreinRidge or "
            "KreinRidgeClassifier with landmarks"
        )
        check_memory(LIMITS.machine_bytes * n**2, f"The machine of {n} items", None, remedy)
        K = self._matrix(basis)
        weight = gathered.weight[basis.rows]
        return basis, weight, self._stabilize(K, weight)

    def _stabilize(self, K: NDArray, weight: NDArray) -> Stabilized:
        """The matrix with its negative eigenvalues flipped, which does not depend on C."""
        return stabilize(K, self.negative_penalty, weight, center=self.center)

    def _store(
        self, basis: Basis, machines: list[Machine], stabilized: Stabilized, **attributes: Any
    ) -> None:
        """Set the fitted attributes: coefficients for the original kernel."""
        beta = np.column_stack([machine.coef for machine in machines])
        coef, intercept = stabilized.original(
            beta, np.array([machine.intercept for machine in machines])
        )
        gap = max(machine.gap for machine in machines)
        # libsvm stops on the gradient of the dual and has its own warning
        if gap > 1e-6 and getattr(self, "loss", "hinge") == "squared_hinge":
            warn(
                f"The relative duality gap is {gap:.1e}; the kernel matrix may be badly scaled, "
                "lower C.",
                ConvergenceWarning,
            )
        self._set_fitted(
            _basis=basis.fitted(),
            kernel_=basis.kernel,
            X_fit_=basis.kept,
            support_=basis.rows[np.any(beta != 0, axis=1)],
            n_iter_=max(1, *(machine.n_iter for machine in machines)),
            dual_coef_=basis.spread(coef.T),
            intercept_=intercept,
            certificate_=float(gap),
            n_negative_=stabilized.n_negative,
            **attributes,
        )

    def _scores(self, X: Any) -> NDArray:
        return self._evaluate(X, "dual_coef_")[0] + self.intercept_


class KreinSVC(NamedClassifierMixin, _KreinMachine):
    """Support vector classification with an indefinite kernel.

    Trains on the flipped kernel matrix ``|K|`` (stabilization in the Krein space) and predicts with the original
    kernel: ``f(x) = sum_i coef_i k(x, x_i) + b``. With `negative_penalty` c the machine minimizes
    ``(||f+||^2 + c ||f-||^2) / 2 + C sum loss(y f)``; c = 1 is the Krein machine, c = inf clips the spectrum.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float, default=1.0
        Inverse strength of the penalty, for items of variance one in feature space: multiplying all similarities by a
        number changes nothing.
    negative_penalty : float, default=1.0
        Penalty of f- relative to that of f+.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        libsvm's loss, or its square, solved to full accuracy by Newton's method.
    center : bool, default=False
        Whether to center the kernel matrix first; this changes ``|K|`` but not the machine of a positive definite K.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For more than two classes: one score per class, or one per pair.
    tol : float, default=1e-3
        libsvm's tolerance.
    max_iter : int, default=-1
        libsvm's limit of iterations; -1 for none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_pairs, n)
        Coefficients for the original kernel, dense even though the machine on ``|K|`` is sparse.
    intercept_ : ndarray of shape (n_pairs,)
    C_ : float
        C of the machine on ``|K|``: `C` over the mean diagonal of the centered ``|K|``.
    support_ : ndarray
        Rows that support the machine on ``|K|``.
    certificate_ : float
        Largest relative duality gap.
    n_negative_ : int
        Negative eigenvalues of the kernel matrix.
    kernel_ : Kernel
        The kernel that was used.
    X_fit_ : ndarray or None
        The training items that new ones are compared with; None for a precomputed matrix.

    See Also
    --------
    KreinRidgeClassifier : Least squares, faster to tune.
    KreinEmbedding : With its landmarks, a linear machine on its coordinates is this one for many rows.
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
    ):
        super().__init__(
            kernel,
            C=C,
            negative_penalty=negative_penalty,
            center=center,
            tol=tol,
            max_iter=max_iter,
        )
        self.loss = loss
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_parameters()
        check_option("loss", self.loss, ("hinge", "squared_hinge"))
        check_option("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        n_pairs = len(classes) * (len(classes) - 1) // 2
        with self._progress(n_pairs) as progress:
            remedy = landmarks_remedy(len(labels), "KreinRidgeClassifier")
            progress.expect(5.0, len(labels), remedy)
            basis, weight, stabilized = self._stabilized(X, labels, weight)
            C = self.C / kernel_unit(stabilized.kernel, weight)
            pairs = pair_machines(
                stabilized.kernel,
                labels[basis.rows],
                len(classes),
                C,
                weight,
                loss=self.loss,
                tol=self.tol,
                max_iter=self.max_iter,
            )
            machines = list(progress.each("pair", pairs))
            self._store(basis, machines, stabilized, C_=C, classes_=classes)

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
        return (
            -scores
            if self.decision_function_shape == "ovo"
            else pair_votes(scores, len(self.classes_))
        )

    def _predict(self, X: Any) -> NDArray:
        scores = self._scores(X)
        return self.classes_[pair_votes(scores, len(self.classes_)).argmax(axis=1)]


class KreinSVR(NamedRegressorMixin, _KreinMachine):
    """Support vector regression with an indefinite kernel.

    Minimizes ``(||f+||^2 + negative_penalty ||f-||^2) / 2 + C sum max(0, |y - f| - epsilon)`` by training on the
    flipped kernel matrix, and predicts with the original kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float, default=1.0
        Inverse strength of the penalty, for items and targets of variance one.
    epsilon : float, default=0.1
        Half the width of the tube without loss, in standard deviations of y.
    negative_penalty, center, tol, max_iter : object
        See `KreinSVC`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n)
        Coefficients for the original kernel.
    intercept_ : ndarray of shape (1,)
    C_, support_, certificate_, n_negative_, kernel_, X_fit_ : object
        As of `KreinSVC`.

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
    ):
        super().__init__(
            kernel,
            C=C,
            negative_penalty=negative_penalty,
            center=center,
            tol=tol,
            max_iter=max_iter,
        )
        self.epsilon = epsilon

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_parameters()
        check_number("epsilon", self.epsilon, zero=True)
        target = column_or_1d(check_targets(y, type(self).__name__), warn=True)
        weight = check_weight(sample_weight, len(target))
        with self._progress() as progress:
            remedy = landmarks_remedy(len(target), "KreinRidge")
            progress.expect(5.0, len(target), remedy)
            basis, weight, stabilized = self._stabilized(X, target, weight)
            units = Standardizer.fit(target[basis.rows][:, None], weight)
            target = units(target[basis.rows][:, None])[:, 0]
            C = self.C / kernel_unit(stabilized.kernel, weight)
            machine = tube_machine(
                stabilized.kernel,
                target,
                C,
                self.epsilon,
                weight,
                tol=self.tol,
                max_iter=self.max_iter,
            )
            name = type(self).__name__
            warn_if_tube_is_useless(name, target, machine.coef, C * weight, self.epsilon)
            spread = float(units.spread[0])
            machine = machine._replace(
                coef=spread * machine.coef,
                intercept=float(units.undo(np.array([machine.intercept]))[0]),
            )
            self._store(basis, [machine], stabilized, C_=C)

    def _predict(self, X: Any) -> NDArray:
        return self._scores(X)[:, 0]
