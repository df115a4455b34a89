"""Least squares in reproducing kernel Krein spaces: a regressor and a classifier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from mercerless.core.blocks import blockwise, is_dask
from mercerless.core.calibration import calibrate_scores, cross_calibrate
from mercerless.core.conformal import ConformalMixin
from mercerless.core.descent import GradientSearch, check_search
from mercerless.core.estimator import GroupedPredictor, class_scores, signed_targets
from mercerless.core.folds import (
    OutOfFold,
    assign_folds,
    check_groups,
    fold_numbers,
    warn_of_lonely_classes,
)
from mercerless.core.memory import check_memory
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_centers
from mercerless.core.validation import (
    check_classes,
    check_option,
    check_random_state,
    check_symmetric,
    check_symmetric_kernel,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn,
    warn_if_folds_are_useless,
    warn_if_useless,
)
from mercerless.krein.model import KreinModel
from mercerless.krein.selection import (
    Candidates,
    ExactProblem,
    Family,
    HeldOut,
    KreinRows,
    LandmarkProblem,
    Problem,
    Sphere,
    best_gaussian,
    held_out_scores,
    least,
    make_candidates,
    squared_errors,
)
from mercerless.krein.solver import (
    REGULARIZERS,
    KreinSolution,
    KreinSystem,
    part_coef,
    solve_system,
)
from mercerless.krein.thresholds import LIMITS
from mercerless.krein.tuning import ValidationObjective, tune_by_gradient
from mercerless.lowrank import Landmarks, as_landmarks, select_landmarks


class _KreinLeastSquares(ConformalMixin, ReasonsMixin, KreinModel, GroupedPredictor):
    """Base of the regressor and the classifier, which differ in how they choose among candidates."""

    out_of_fold_: OutOfFold | None
    _streams = True
    _ratios: Sequence[float] = LIMITS.ratios

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
        random_state: Any = 0,
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
        family = self._check_parameters()
        candidates = make_candidates(
            self.alpha_positive,
            self.alpha_negative,
            self.constraint,
            self.regularizer,
            Y[:1].size,
            self._ratios,
        )
        groups = check_groups(groups, len(Y))
        rows = self._rows(X, Y, weight, groups, labels)
        with self._progress() as progress:
            if self.search is not None:
                what = f"The gradient for {len(rows.Y)} items"
                need = LIMITS.gradient_bytes * len(rows.Y) ** 2
                check_memory(need, what, remedy="use search=None or fewer rows")
                objective = ValidationObjective(rows, family, candidates)
                random = check_random_state(self.random_state)
                course = tune_by_gradient(objective, self.search, random, progress.step)
                rows = rows._replace(basis=rows.basis.with_kernel(objective.unpack(course.x)[0]))
                candidates = objective.candidates(course.x)
                attributes["tuning_"] = course
            problem = self._problem(rows, candidates)
            best = 0
            attributes["out_of_fold_"] = None
            if rows.n_folds > 1 and (candidates.size > 1 or labels is not None):
                splits = progress.each("fold", problem.folds())
                held_out = held_out_scores(splits, candidates, family)
                best, chosen = self._choose(held_out, rows, labels, groups)
                attributes |= chosen | {"best_index_": best}
            system = problem.system()
            penalties = candidates.resolve(system, self.regularizer)
            plus, minus, radius = (values[best] for values in penalties[:3])
            solution = solve_system(
                system,
                plus,
                minus,
                radius,
                regularizer=family.regularizer,
                constraint=family.constraint,
            )
        _check_solution(system, solution)
        has_radius = family.constraint is not None
        if "cv_results_" in attributes:
            attributes["cv_results_"] |= {
                "alpha_positive": penalties.alpha_positive,
                "alpha_negative": penalties.alpha_negative,
                "radius": penalties.radius if has_radius else None,
            }
        basis = problem.fitted_basis()
        spectral = solution.spectral
        shape = Y.shape[1:]

        def dual(coef: NDArray) -> NDArray:
            """The coefficients of the similarities that new items have."""
            return basis.spread(problem.dual(coef).T)

        self._set_fitted(
            _basis=basis,
            kernel_=basis.kernel,
            X_fit_=basis.kept,
            landmarks_=basis.landmarks,
            dual_coef_=dual(solution.coef),
            dual_coef_positive_=dual(part_coef(system, solution, 1)),
            dual_coef_negative_=dual(part_coef(system, solution, -1)),
            intercept_=_shaped(solution.intercept, shape),
            alpha_positive_=float(plus),
            alpha_negative_=float(minus),
            radius_=_shaped(radius, shape) if has_radius else None,
            eigenvalues_=system.values,
            spectral_target_=system.target.reshape(-1, *shape),
            total_weight_=system.n,
            multiplier_=_shaped(1.0 + spectral.multiplier, shape),
            mu_=_shaped(spectral.multiplier / system.n, shape),
            n_iter_=max(1, spectral.n_iter),
            certificate_=max(solution.constraint_error, solution.stationarity),
            is_minimum_=bool(np.all(spectral.is_minimum)),
            **attributes,
        )

    def _rows(
        self, X: Any, Y: NDArray, weight: NDArray, groups: NDArray | None, labels: NDArray | None
    ) -> KreinRows:
        """The rows that carry weight and their folds, with the length scale of the default kernel chosen on these."""
        basis = self._train_basis(X, weight)
        outputs = Y.reshape(len(Y), -1)
        folds = fold_numbers(
            self.cv,
            basis.items,
            outputs[:, 0] if labels is None else labels,
            classify=labels is not None,
            groups=groups,
            used=basis.rows,
            precomputed=basis.given_as_matrix,
            random_state=self.random_state,
        )
        rows = KreinRows(basis, outputs[basis.rows], weight[basis.rows], folds)
        if labels is not None and rows.n_folds < 2:
            raise ValueError("cv must have at least two folds, which calibrate the scores.")
        chooses = self.kernel == "gaussian" and self.alpha_positive is None and rows.n_folds > 1
        if chooses and labels is None:
            # .033 more R2 on 20 sets, standard error .010; nothing for classes
            rows = rows._replace(basis=basis.with_kernel(best_gaussian(rows)))
        return rows

    def _check_parameters(self) -> Family:
        """The problem to solve, after all parameters but the penalties were checked."""
        check_option("regularizer", self.regularizer, REGULARIZERS)
        if self.constraint is not None and not isinstance(self.constraint, Sphere):
            raise ValueError(
                f"constraint must be None, Sphere(radius) or Ball(radius), got {self.constraint!r}."
            )
        check_search(self.search)
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
                "regularizer='components' unless you study this problem."
            )
        constraint = None if self.constraint is None else self.constraint._kind
        return Family(self.regularizer, constraint, self.fit_intercept)

    def _problem(self, rows: KreinRows, candidates: Candidates) -> Problem:
        """The problem on all rows or on landmarks, which makes the folds and is solved in the end."""
        n = len(rows.Y)
        kernel, items = rows.basis.kernel, rows.basis.items
        lazy = is_dask(items)
        landmarks = self.landmarks
        if landmarks == "auto":
            landmarks = LIMITS.auto_landmarks
            if not lazy and (n <= LIMITS.exact_rows or self.search is not None):
                landmarks = None
            elif not lazy:
                warn(
                    f"{type(self).__name__} uses {landmarks} landmarks for {n} rows: the exact "
                    f"solution is for up to {LIMITS.exact_rows} rows. Set landmarks to a number, "
                    "or to None for the exact solution, to choose yourself."
                )
        if landmarks is None:
            if lazy:
                raise ValueError(
                    "The exact solution needs its data in memory; set landmarks, or use "
                    "X.compute()."
                )
            check_memory(
                LIMITS.exact_bytes * n**2 + LIMITS.score_bytes * candidates.size * rows.Y.size,
                f"The eigendecomposition of {n} items",
                remedy="set landmarks or use fewer rows",
            )
            return ExactProblem(rows, self._matrix(rows.basis), self.fit_intercept)
        check_symmetric_kernel(kernel)
        if rows.basis.given_as_matrix:
            check_symmetric(items, "X")
        landmarks = as_landmarks(landmarks)
        number = min(landmarks.number, n)
        what = f"The solution on {number} landmarks"
        check_memory(LIMITS.landmark_bytes * number**2, what, remedy="use fewer landmarks")
        random = check_random_state(self.random_state)
        chosen = select_landmarks(kernel, items, number, landmarks.method, random)
        return LandmarkProblem(rows, chosen, self.fit_intercept, random)

    def _choose(
        self, held_out: HeldOut, rows: KreinRows, labels: NDArray | None, groups: NDArray | None
    ) -> tuple[int, dict[str, Any]]:
        """The candidate that held-out rows prefer, and the fitted attributes that describe the validation."""
        raise NotImplementedError

    @property
    def _basis_rows(self) -> NDArray:  # type: ignore[override]
        return self._basis.centers

    def _explain_blocks(self, X: Any) -> Iterator[Explained]:
        """Shares of the training items, or of the landmarks, in f+ and f-."""
        calibration = getattr(self, "calibration_", None)
        positive = self._basis.weighted(self.dual_coef_positive_)
        negative = self._basis.weighted(self.dual_coef_negative_)
        for comparisons in self._comparisons(X):
            K = self._basis.weighted(comparisons)
            terms = [Term("positive", K, positive), Term("negative", K, negative)]
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


def _check_solution(system: KreinSystem, solution: KreinSolution) -> None:
    """Warn of inaccuracy, and of the hard case of the sphere: a part of f that the targets do not determine."""
    worst = max(solution.constraint_error, solution.stationarity)
    if not worst <= LIMITS.largest_residual:
        warn(
            f"The secular equation was solved to a relative accuracy of {worst:.1e} only; "
            "rescale the kernel or use a larger alpha.",
            ConvergenceWarning,
        )
    sizes = np.abs(system.target.T)
    is_rounding = sizes <= LIMITS.target_rounding * sizes.max(axis=1, initial=0.0, keepdims=True)
    squares = solution.spectral.coef**2
    undetermined = np.sum(squares * is_rounding, axis=1)
    if np.any(undetermined > LIMITS.largest_undetermined * squares.sum(axis=1)):
        warn(
            "The minimum is not unique: to reach the radius, f needs directions in which the "
            "targets have no component, so rounding decides; use a smaller radius.",
            ConvergenceWarning,
        )


def _shaped(values: NDArray, shape: tuple[int, ...]) -> Any:
    """One value per output; a number if the targets had one axis."""
    return values if shape else float(values[0])


class KreinRidge(RegressorMixin, _KreinLeastSquares):
    """Least squares with an indefinite kernel: one penalty for each part of the spectrum.

    Minimizes ``mean((y - f)^2) + alpha_positive ||f+||^2 + alpha_negative ||f-||^2`` over functions ``f = f+ + f-`` of
    the reproducing kernel Krein space, plus an intercept, where ``f+`` and ``f-`` live on the positive and the negative
    eigenvalues of the centered kernel matrix; optionally with the variance of f fixed or bounded. The solution is the
    global minimum, from one eigendecomposition. For a positive definite kernel and equal penalties it equals
    ``KernelRidge(alpha=n * alpha_positive)`` on the centered kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items. "gaussian"
        has a length scale for each feature, in units of its spread; if `alpha_positive` is not given, their common
        factor is chosen on the folds, of 600 rows at most.
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
        solution. None is exact. "auto" is exact up to 4000 rows, else uses 1000 and warns.
    random_state : int, RandomState or None, default=0
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

    _without_out_of_fold = (
        "leave alpha_positive at None, or give several, so that cross-validation chooses"
    )

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

    def _choose(
        self, held_out: HeldOut, rows: KreinRows, labels: NDArray | None, groups: NDArray | None
    ) -> tuple[int, dict[str, Any]]:
        """The candidate of least mean squared held-out error."""
        errors = squared_errors(held_out, rows)
        error = errors.mean(axis=0)
        best = least(error)
        if np.any(leave_one_out_constant(rows.Y)):
            warn_if_folds_are_useless(errors[:, best], type(self).__name__)
        used = rows.basis.rows[held_out.rows]
        standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
        return best, {
            "cv_results_": {"error": error, "standard_error": standard_error},
            "out_of_fold_": OutOfFold(
                used,
                held_out.scores[best],
                rows.Y[held_out.rows],
                None if groups is None else groups[used],
            ),
        }

    def _predict(self, X: Any) -> NDArray:
        f = self._evaluate(X, "dual_coef_")[0]
        return f.reshape(len(f), *np.shape(self.intercept_)) + self.intercept_

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
    random_state : int, RandomState or None, default=0
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
        random_state: Any = 0,
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
        warn_of_lonely_classes(classes[labels], groups, weight)
        Y = signed_targets(labels, len(classes))
        self._fit(X, Y[:, 0] if len(classes) == 2 else Y, weight, groups, labels, classes_=classes)

    def _choose(
        self, held_out: HeldOut, rows: KreinRows, labels: NDArray | None, groups: NDArray | None
    ) -> tuple[int, dict[str, Any]]:
        """The candidate of least calibrated log-loss on held-out scores."""
        assert labels is not None
        used = rows.basis.rows[held_out.rows]
        truth = labels[used]
        weight = rows.weight[held_out.rows]
        calibrations = [
            calibrate_scores(class_scores(scores), truth, weight) for scores in held_out.scores
        ]
        losses = np.array([calibration.loss for calibration in calibrations])
        best = least(losses)
        blocks = None
        if groups is not None:
            groups = groups[used]
            blocks = assign_folds(5, len(groups), together=groups, random_state=0)
        proba = cross_calibrate(class_scores(held_out.scores[best]), truth, weight, blocks)
        is_wrong = proba.argmax(axis=1) != truth
        constant_is_wrong = truth != np.bincount(truth, weight).argmax()
        warn_if_useless(is_wrong * 1.0, constant_is_wrong * 1.0, type(self).__name__, weight)
        return best, {
            "calibration_": calibrations[best],
            "cv_results_": {"error": losses},
            "out_of_fold_": OutOfFold(used, proba, truth, groups),
        }

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
