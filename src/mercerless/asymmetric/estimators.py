"""Ridge regression and classification with asymmetric kernels and directed similarities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercerless.asymmetric.selection import (
    LIMITS,
    SHARES,
    Choice,
    affinities,
    choices_of,
    decay_of,
    no_bandwidths,
    solutions_of,
)
from mercerless.asymmetric.solver import (
    AsymmetricRidgeSolution,
    asymmetric_ridge,
    coupled_ridge,
    largest_singular_value,
)
from mercerless.core.basis import Basis
from mercerless.core.calibration import calibrate_scores, cross_calibrate
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import KernelPredictor, class_scores, signed_targets
from mercerless.core.folds import OutOfFold, count_folds, find_copies
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_centers
from mercerless.core.validation import (
    check_classes,
    check_number,
    check_option,
    check_square,
    check_targets,
    check_weight,
    leave_one_out_constant,
    relative_asymmetry,
    warn,
    warn_if_useless,
)
from mercerless.kernels.local import at_centers, center_bandwidths
from mercerless.spectra import check_kind, check_kind_of_kernel


class _Asymmetric(ConformalMixin, ReasonsMixin, KernelPredictor):
    """Base of the regressor and the classifier."""

    _directed = True
    _basis: Basis  # what new items are compared with

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: str = "auto",
        alpha: float | None = None,
        side: str = "auto",
        coupled: bool = False,
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.kind = kind
        self.alpha = alpha
        self.side = side
        self.coupled = coupled
        self.fit_intercept = fit_intercept

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _fit(self, X: Any, Y: NDArray, weight: NDArray, **attributes: Any) -> OutOfFold:
        """Choose ridge and side by the leave-one-out error, and set the fitted attributes.

        Equal items are one with the mean of their targets and the sum of their weights: the solution is the same, and
        an item is left out with all its copies. Returns the leave-one-out predictions.
        """
        self._check_parameters()
        basis = self._train_basis(X, weight)
        used = basis.rows
        targets = Y[used]
        basis, Y, weight, place = _without_copies(basis, targets, weight[used])
        basis = basis.with_kernel(at_centers(basis.kernel, basis.rows, basis.n_train))
        check_kind_of_kernel(basis.kernel, self.kind)
        n = len(basis)
        check_memory(
            (LIMITS.coupled_bytes_per_pair if self.coupled else LIMITS.bytes_per_pair) * n**2,
            f"Ridge regression on {n} items",
            remedy="use fewer rows, KreinRidge or SimilarityClassifier",
        )
        matrix = check_square(basis.matrix(), basis.matrix_name)
        kind = check_kind(matrix, self.kind, basis.matrix_name)
        decay = decay_of(matrix, kind)
        with self._progress() as progress:
            solutions = self._solutions(affinities(matrix, decay), Y, weight)
            progress.step({"stage": "ridges"})
        sides = self._sides(matrix)
        choices = choices_of(solutions, sides, weight)
        choice = min(choices, key=lambda choice: choice.error)  # ties go to the first
        self._warn_if_useless(choice, Y, weight)
        basis = basis.fitted()
        self._set_fitted(
            _basis=basis,
            kernel_=basis.kernel,
            X_fit_=basis.kept,
            kind_=kind,
            decay_=decay,
            alpha_=choice.solution.alpha,
            side_=choice.side,
            side_weights_=choice.shares,
            dual_coef_=np.hstack([basis.spread(coef.T) for coef in choice.coef]),
            intercept_=choice.intercept,
            certificate_=choice.solution.residual,
            alphas_=np.array([solution.alpha for solution in solutions]),
            loo_errors_={
                side: np.array([each.error for each in choices if each.side == side])
                for side in sides
            },
            **attributes,
        )
        return OutOfFold(used, (Y - choice.residuals)[place], targets)

    def _check_parameters(self) -> None:
        check_option("side", self.side, ("auto", *SHARES))
        check_number("alpha", self.alpha, zero=True, none=True)
        if self.side not in ("auto", "left") and center_bandwidths(self.kernel):
            raise no_bandwidths(self.side)

    def _sides(self, K: NDArray) -> tuple[str, ...]:
        """The sides to choose from: one if both are equal, or if new items have no bandwidths."""
        if self.side != "auto":
            return (self.side,)
        if center_bandwidths(self.kernel) or relative_asymmetry(K) <= 1e-9:
            return ("left",)
        return ("left", "right", "weighted")

    def _solutions(self, K: NDArray, Y: NDArray, weight: NDArray) -> list[AsymmetricRidgeSolution]:
        """The solutions of all ridges."""
        alphas: Any = [self.alpha]
        if self.alpha is None:
            relative = LIMITS.alphas + LIMITS.coupled_alphas if self.coupled else LIMITS.alphas
            norm = largest_singular_value(K) or float(np.abs(K).max()) or 1.0
            # so many rows of an item have so many times the norm
            alphas = np.array(relative) * norm * weight.mean()
        system = coupled_ridge if self.coupled else asymmetric_ridge
        return solutions_of(lambda alpha: system(K, Y, alpha, weight, self.fit_intercept), alphas)

    def _warn_if_useless(self, choice: Choice, Y: NDArray, weight: NDArray) -> None:
        """Warn if the systems are badly solved or the model is worse than a constant."""
        certificate = choice.solution.residual
        if certificate > LIMITS.largest_residual:
            warn(
                f"The linear systems were solved to a relative residual of {certificate:.1e} only; "
                "use a larger alpha.",
                ConvergenceWarning,
            )
        losses = np.sum(choice.residuals**2, axis=1)
        constant = leave_one_out_constant(Y, weight)
        warn_if_useless(losses, constant, type(self).__name__, weight)

    def _scores(self, X: Any, reverse: ArrayLike | None) -> NDArray:
        """Values of the functions for new items, block by block."""
        blocks = [sum(K @ coef.T for _, K, coef in terms) for terms in self._terms(X, reverse)]
        return np.concatenate(blocks) + self.intercept_

    def _terms(self, X: Any, reverse: ArrayLike | None) -> Iterator[list[Term]]:
        """The directions that are used, as affinities and coefficients, in blocks of new items."""
        check_is_fitted(self)
        items = self._test_items(X)
        left, right = np.hsplit(self.dual_coef_, 2)
        back = None
        if reverse is not None:
            back = self._reverse_rows(reverse, items.shape)
        elif self.side_ != "left" and self._basis.given_as_matrix:
            raise ValueError(
                f"The {self.side_} regressor needs the similarities of the training items to the "
                "new ones: pass them as reverse (one row per new item), or fit with side='left'."
            )
        bytes_per_row = 12.0 * self.dual_coef_.shape[1]
        for rows in row_blocks(len(items), bytes_per_row, min(2**27, memory_budget() // 2)):
            terms = []
            if self.side_ != "right":
                values = affinities(self._basis.compare(items[rows]), self.decay_)
                terms.append(Term("to training items", values, left))
            if self.side_ != "left":
                given = None if back is None else back[rows]
                values = affinities(self._basis.compare_back(items[rows], given), self.decay_)
                terms.append(Term("from training items", values, right))
            yield terms

    def _explain_blocks(self, X: Any, reverse: ArrayLike | None = None) -> Iterator[Explained]:
        weighted = self._basis.weighted
        for blocks in self._terms(X, reverse):
            terms = [Term(name, weighted(K), weighted(coef)) for name, K, coef in blocks]
            yield explain_centers(terms, self.intercept_, getattr(self, "calibration_", None))

    @property
    def _basis_rows(self) -> NDArray:  # type: ignore[override]
        return self._basis.rows


def _without_copies(
    basis: Basis, Y: NDArray, weight: NDArray
) -> tuple[Basis, NDArray, NDArray, NDArray]:
    """Distinct items, their mean targets and summed weights, and the distinct item of every row."""
    if center_bandwidths(basis.kernel):  # items with bandwidths of their own are never equal
        return basis, Y, weight, np.arange(len(Y))
    place = find_copies(basis.items, precomputed=basis.given_as_matrix)
    first = np.unique(place, return_index=True)[1]
    if len(first) == len(Y) or len(first) < 2 * count_folds(None):
        return basis, Y, weight, np.arange(len(Y))
    total = np.bincount(place, weights=weight)
    sums = [np.bincount(place, weights=weight * column) for column in Y.T]
    distinct = replace(basis, items=basis.take(first), rows=basis.rows[first])
    return distinct, np.column_stack(sums) / total[:, None], total, place


class AsymmetricRidge(MultiOutputMixin, RegressorMixin, _Asymmetric):
    """Ridge regression with a kernel, or a matrix of directed similarities, that need not be symmetric.

    An asymmetric kernel ``k(t, x)`` has two regressors: ``f1(t) = k(t, X) a + c`` with ``(K + alpha I) a + c = y``, and
    ``f2(t) = k(X, t)^T b + d`` with ``(K + alpha I)^T b + d = y``; a and b sum to zero. Which of them is better depends
    on the data: their weights, like alpha, minimize the exact leave-one-out error. A symmetric kernel without intercept
    gives kernel ridge regression.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        Any kernel, also an asymmetric function of two items; "precomputed" means that X is the matrix ``k(x_i, x_j)``.
    kind : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        Kind of the matrix. Distances and dissimilarities d become ``exp(-d / median)``. ``"auto"`` infers it by
        `mercerless.spectra.matrix_kind`.
    alpha : float or None, default=None
        The ridge; None chooses one of 1e-8 to 1 times the spectral norm of the centered matrix and the mean weight.
    side : {"auto", "left", "right", "mean"}, default="auto"
        f1, f2 or their mean; "auto" takes f1, f2 or a weighted mean, whichever has the least leave-one-out error. A
        kernel with bandwidths for every training item, such as `LocalGaussian` of a matrix, has f1 only: new items have
        no bandwidths.
    coupled : bool, default=False
        Whether the residuals of one regressor are the coefficients of the other, ``K a + alpha b + c = y`` and
        ``K^T b + alpha a + d = y``: AsK-LS of He et al. (2023) with ``alpha = 1 / gamma``. Eight times as expensive.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalized.

    Attributes
    ----------
    alpha_ : float
        The ridge used.
    side_ : str
        The side used; ``"weighted"`` for a mean with weights that were chosen.
    side_weights_ : ndarray of shape (2,)
        The weights of f1 and f2.
    dual_coef_ : ndarray of shape (n_outputs, 2 n)
        Coefficients of ``k(t, x_j)`` and then of ``k(x_j, t)``; zero for a direction that is not used.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts.
    out_of_fold_ : OutOfFold
        The prediction for every training row without it: `rows`, `prediction` and `target`.
    alphas_ : ndarray of shape (n_alphas,)
        The ridges tried, without those for which the system was singular.
    loo_errors_ : dict of str to ndarray of shape (n_alphas,)
        Mean squared leave-one-out error of every side and ridge tried.
    certificate_ : float
        The relative residual of the linear systems.
    kind_ : str
        The kind of the matrix, given or inferred.
    decay_ : tuple of float or None
        Offset and unit of ``exp(-(d - offset) / unit)`` for distances and dissimilarities.
    kernel_ : Kernel
        The kernel.
    X_fit_ : array or None
        The training items.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    LABRegressor : Learns an asymmetric kernel.
    AsymmetricRidgeClassifier : The classifier.

    References
    ----------
    F. He, M. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning Analysis of Kernel Ridgeless Regression with Asymmetric
    Kernel Learning", 2024, section 2.1.
    M. He, F. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning with Asymmetric Kernels: Least Squares and Feature
    Interpretation", IEEE PAMI 45(8), 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import AsymmetricRidge
    >>> x = np.linspace(0, 1, 30)
    >>> K = np.exp(-np.subtract.outer(x, x) ** 2 / 0.05 / (0.5 + x))  # a bandwidth for every column
    >>> model = AsymmetricRidge(kernel="precomputed", side="left").fit(K, np.sin(6 * x))
    >>> bool(model.score(K, np.sin(6 * x)) > 0.99)
    True
    """

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        y = check_targets(y, type(self).__name__)
        weight = check_weight(sample_weight, len(y))
        held_out = self._fit(X, y.reshape(len(y), -1), weight)
        shape = (-1, *y.shape[1:])
        self.out_of_fold_ = held_out._replace(
            prediction=held_out.prediction.reshape(shape), target=held_out.target.reshape(shape)
        )

    def predict(self, X: Any, reverse: ArrayLike | None = None) -> NDArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like
            Rows or items; for a precomputed matrix ``k(t, x_j)``, one row per new item.
        reverse : array-like of shape (n_new, n) or None, default=None
            For a precomputed matrix ``k(x_j, t)``, one row per new item; needed unless ``side_`` is "left".

        Returns
        -------
        ndarray of shape (n_new,) or (n_new, n_outputs)
            The predictions.
        """
        P = self._scores(X, reverse)
        return P[:, 0] if self.out_of_fold_.target.ndim == 1 else P


class AsymmetricRidgeClassifier(ClassifierMixin, _Asymmetric):
    """Classification by `AsymmetricRidge` on indicator targets, for any number of classes.

    Two classes have the targets plus and minus one, more have one column each. Ridge and side minimize the exact
    leave-one-out squared error; probabilities are ``softmax(slope * scores + bias)``, fitted on leave-one-out scores.

    Parameters
    ----------
    kernel, kind, alpha, side, coupled, fit_intercept : object
        As for `AsymmetricRidge`. With ``coupled=True`` two classes give the machine AsK-LS.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    alpha_, side_, side_weights_, dual_coef_, intercept_, alphas_, loo_errors_, certificate_
        As in `AsymmetricRidge`.
    out_of_fold_ : OutOfFold
        Probabilities of every training row without it: `rows`, `prediction` and `target` (the number of the class).
    kernel_, X_fit_, kind_, decay_
        As in `AsymmetricRidge`.
    calibration_ : Calibration
        Slope and bias of the probabilities.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    AsymmetricRidge : The regressor.

    References
    ----------
    F. He, M. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning Analysis of Kernel Ridgeless Regression with Asymmetric
    Kernel Learning", 2024, section 2.1.
    M. He, F. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning with Asymmetric Kernels: Least Squares and Feature
    Interpretation", IEEE PAMI 45(8), 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import AsymmetricRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AsymmetricRidgeClassifier().fit(X, y).predict(X[[0, 60, 120]])
    array([0, 1, 2])
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: str = "auto",
        alpha: float | None = None,
        side: str = "auto",
        coupled: bool = False,
        fit_intercept: bool = True,
        class_weight: dict | str | None = None,
    ) -> None:
        super().__init__(
            kernel, kind=kind, alpha=alpha, side=side, coupled=coupled, fit_intercept=fit_intercept
        )
        self.class_weight = class_weight

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        if len(classes) == 2:
            Y = signed_targets(labels, 2)
        else:
            Y = (labels[:, None] == np.arange(len(classes))).astype(float)
        rows, scores, _ = self._fit(X, Y, weight, classes_=classes)[:3]
        scores, truth, weight = class_scores(scores), labels[rows], weight[rows]
        self.calibration_ = calibrate_scores(scores, truth, weight)
        self.out_of_fold_ = OutOfFold(rows, cross_calibrate(scores, truth, weight), truth)

    def decision_function(self, X: Any, reverse: ArrayLike | None = None) -> NDArray:
        """The scores, shifted by the calibration's bias so that the largest has the largest probability.

        Parameters
        ----------
        X : array-like
            Rows or items; for a precomputed matrix ``k(t, x_j)``, one row per new item.
        reverse : array-like of shape (n_new, n) or None, default=None
            For a precomputed matrix ``k(x_j, t)``, one row per new item.

        Returns
        -------
        ndarray of shape (n_new,) or (n_new, n_classes)
            One score for two classes, positive for the second; else one per class.
        """
        scores = self._scores(X, reverse)
        shifted = class_scores(scores) + self.calibration_.bias / self.calibration_.slope
        return shifted[:, 1] - shifted[:, 0] if len(self.classes_) == 2 else shifted

    def predict(self, X: Any, reverse: ArrayLike | None = None) -> NDArray:
        """Predict labels.

        Parameters
        ----------
        X, reverse : array-like
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_new,)
            The labels.
        """
        scores = class_scores(self.decision_function(X, reverse))
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any, reverse: ArrayLike | None = None) -> NDArray:
        """Predict probabilities.

        Parameters
        ----------
        X, reverse : array-like
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_new, n_classes)
            The probabilities, in the order of ``classes_``.
        """
        scores = class_scores(self.decision_function(X, reverse))
        return softmax(self.calibration_.slope * scores, axis=1)
