"""Ridge regression and classification with asymmetric kernels and directed similarities."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mercerless.asymmetric.selection import (
    ALPHAS,
    SIDES,
    AsymmetricChoice,
    affinities,
    choose_asymmetric_ridge,
    decay_of,
)
from mercerless.asymmetric.solver import asymmetric_ridge, largest_singular_value
from mercerless.core.calibration import Calibration, calibrate_scores, cross_calibrate
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import (
    KernelPredictor,
    class_scores,
    matrix_name,
    signed_targets,
    used_items,
    used_rows,
)
from mercerless.core.folds import OutOfFold
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_targets
from mercerless.core.validation import (
    check_classes,
    check_number,
    check_option,
    check_square,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn,
    warn_if_useless,
)
from mercerless.kernels import Precomputed
from mercerless.spectra import check_kind


class _Asymmetric(ConformalMixin, ReasonsMixin, KernelPredictor):
    """What the regressor and the classifier share."""

    _directed = True

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: str = "auto",
        alpha: float | None = None,
        side: str = "auto",
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.kind = kind
        self.alpha = alpha
        self.side = side
        self.fit_intercept = fit_intercept

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _check_parameters(self) -> None:
        check_option("side", self.side, ("auto", *SIDES))
        check_number("alpha", self.alpha, zero=True, none=True)

    def _affinities(
        self, X: Any, Y: NDArray, weight: NDArray | None
    ) -> tuple[NDArray, dict[str, Any]]:
        """The matrix of the items that carry weight, dissimilarities turned round, and what is kept of them."""
        kernel, items = self._train_items(X, weight)
        precomputed = isinstance(kernel, Precomputed)
        check_consistent_length(items, Y)
        remedy = "use fewer rows or KreinRidge"
        check_memory(
            50.0 * len(items) ** 2, f"Ridge regression on {len(items)} items", remedy=remedy
        )
        items = used_items(kernel, items, used_rows(weight, len(Y)))
        K = check_square(kernel(items), matrix_name(kernel))
        kind = check_kind(K, self.kind, matrix_name(kernel))
        decay = decay_of(K, kind)
        attributes = {
            "kernel_": kernel,
            "X_fit_": None if precomputed else items,
            "kind_": kind,
            "decay_": decay,
        }
        return affinities(K, decay), attributes

    def _choose(self, K: NDArray, Y: NDArray, weight: NDArray | None) -> AsymmetricChoice:
        """Ridge and side; warnings where the systems are badly solved, or the model is worse than a constant."""
        alphas = (
            [self.alpha] if self.alpha is not None else ALPHAS * (largest_singular_value(K) or 1.0)
        )
        sides = ("left", "right", "weighted") if self.side == "auto" else (self.side,)
        try:
            choice = choose_asymmetric_ridge(K, Y, alphas, sides, weight, self.fit_intercept)
        except np.linalg.LinAlgError as error:
            raise ValueError(str(error)) from None
        certificate = choice.solution.residual
        if certificate > 1e-6:
            message = (
                f"The linear systems were solved to a relative residual of {certificate:.1e} only; "
            )
            warn(message + "use a larger alpha.", ConvergenceWarning)
        losses = np.sum(choice.residuals**2, axis=1)
        constant = leave_one_out_constant(Y, weight)
        warn_if_useless(losses, constant, type(self).__name__, weight)
        return choice

    def _fit(self, X: Any, Y: NDArray, weight: NDArray | None) -> dict[str, Any]:
        """All attributes; leave-one-out predictions are of the rows that carry weight."""
        self._check_parameters()
        K, attributes = self._affinities(X, Y, weight)
        used = used_rows(weight, len(Y))
        with self._progress(0):
            choice = self._choose(K, Y[used], None if weight is None else weight[used])
        coef = np.concatenate([choice.coef, choice.one_way.left[None]])
        # their columns stay in a precomputed test matrix
        if attributes["X_fit_"] is None and len(used) < len(Y):
            coef = np.zeros((3, *Y.shape))
            coef[:, used] = [*choice.coef, choice.one_way.left]
        return (
            attributes
            | _told(choice)
            | {
                "_basis_rows": used,
                "_train_targets": (
                    Y[used],
                    None if weight is None else weight[used],
                    choice.one_way.alpha,
                ),
                "alpha_": choice.solution.alpha,
                "side_": choice.side,
                "side_weights_": choice.shares,
                "dual_coef_": np.concatenate(coef[:2]).T,
                "intercept_": choice.intercept,
                "out_of_fold_": OutOfFold(used, Y[used] - choice.residuals, Y[used]),
                "certificate_": choice.solution.residual,
                "one_way_": (
                    coef[2].T,
                    choice.one_way.intercept_left,
                    Y[used] - choice.one_way.loo_left,
                ),
            }
        )

    def _scores(self, X: Any, reverse: ArrayLike | None) -> NDArray:
        """Values of the functions for new items, block by block."""
        check_is_fitted(self)
        left, right, intercept = *np.split(self.dual_coef_.T, 2), self.intercept_
        if self._lacks_reverse(reverse):
            left = self.one_way_[0].T
            intercept = self.one_way_[1]
        blocks = []
        for to, back in self._directions(X, reverse):
            values = intercept if to is None else to @ left + intercept
            blocks.append(values if back is None else values + back @ right)
        return np.concatenate(blocks)

    def _directions(
        self, X: Any, reverse: ArrayLike | None
    ) -> Iterator[tuple[NDArray | None, NDArray | None]]:
        """Similarities to and from the training items in blocks of new items, as far as they are used."""
        items = self._test_items(X)
        precomputed = isinstance(self.kernel_, Precomputed)
        other = None if reverse is None else self._reverse_rows(reverse, items.shape)
        use_left = self.side_ != "right"
        use_right = self.side_ != "left"
        if self._lacks_reverse(reverse):
            use_left = True
            use_right = False
            self._warn_one_way()
        for rows in row_blocks(
            len(items), 12.0 * self.dual_coef_.shape[1], min(2**27, memory_budget() // 2)
        ):
            block = items[rows]
            to = None
            back = None
            if use_left:
                to = affinities(
                    block if precomputed else self.kernel_(block, self.X_fit_), self.decay_
                )
            if use_right:
                values = other[rows] if other is not None else self.kernel_(self.X_fit_, block).T
                back = affinities(values, self.decay_)
            yield to, back

    def _explain_blocks(
        self, X: Any, reverse: ArrayLike | None = None, train: ArrayLike | None = None
    ) -> Iterator[Explained]:
        Y, weight, one_way_alpha = self._train_targets
        lacks = self._lacks_reverse(reverse)
        K = affinities(self._train_again(train), self.decay_)
        alpha = one_way_alpha if lacks else self.alpha_
        solution = asymmetric_ridge(K, np.eye(len(Y)), alpha, weight, self.fit_intercept)
        used = self._basis_rows if self.X_fit_ is None else slice(None)
        left, right = (1.0, 0.0) if lacks else self.side_weights_
        calibration = self._calibration_for(reverse) if is_classifier(self) else None
        for to, back in self._directions(X, reverse):
            terms = []
            if to is not None:
                terms.append(
                    Term(
                        "to training items",
                        left * (to[:, used] @ solution.left + solution.intercept_left),
                    )
                )
            if back is not None:
                values = back[:, used] @ solution.right + solution.intercept_right
                terms.append(Term("from training items", right * values))
            yield explain_targets(terms, Y, weight, calibration)

    def _held_out(self, reverse: ArrayLike | None = None) -> OutOfFold:
        """The leave-one-out predictions of the regressor that judges new items given in this way."""
        held = super()._held_out()
        if not self._lacks_reverse(reverse):
            return held
        return held._replace(prediction=self.one_way_[2].reshape(held.prediction.shape))

    def _lacks_reverse(self, reverse: Any) -> bool:
        """Whether the other direction is needed and not there."""
        return self.side_ != "left" and reverse is None and isinstance(self.kernel_, Precomputed)

    def _warn_one_way(self) -> None:
        message = (
            f"The {self.side_} regressor needs the similarities of the training items to the new "
            "ones, which are not "
            "given: the left regressor is used instead. Pass them as reverse (one row per new "
            "item), or fit with "
            "side='left'."
        )
        warn(message, UserWarning)


def _told(choice: AsymmetricChoice) -> dict[str, Any]:
    """The errors of all penalties and sides that were tried."""
    alphas = np.array(sorted({alpha for alpha, _ in choice.errors}))
    sides = dict.fromkeys(side for _, side in choice.errors)
    errors = {
        side: np.array([choice.errors.get((alpha, side), np.nan) for alpha in alphas])
        for side in sides
    }
    return {"alphas_": alphas, "loo_errors_": errors}


class AsymmetricRidge(MultiOutputMixin, RegressorMixin, _Asymmetric):
    """Ridge regression with a kernel, or a matrix of directed similarities, that need not be symmetric.

    An asymmetric kernel ``k(t, x)`` has two regressors: ``f1(t) = k(t, X) a + c`` with ``(K + alpha I) a + c = y``, and
    ``f2(t) = k(X, t)^T b + d`` with ``(K + alpha I)^T b + d = y``; a and b sum to zero. What each is worth is a matter
    of the data: their weights, like alpha, minimize the exact leave-one-out error. A symmetric kernel without intercept
    gives kernel ridge regression.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        Any kernel, also an asymmetric function of two items; "precomputed" means that X is the matrix ``k(x_i, x_j)``.
    kind : {"auto", "similarity", "distance", "dissimilarity"}, default="auto"
        What the matrix holds. Distances and dissimilarities d become ``exp(-d / median)``. ``"auto"`` asks
        `mercerless.spectra.matrix_kind`.
    alpha : float or None, default=None
        The ridge; None chooses one of 1e-8 to 1 times the spectral norm of the centered matrix.
    side : {"auto", "left", "right", "mean"}, default="auto"
        f1, f2, their mean, or their mean with the weights of least leave-one-out error.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalized.

    Attributes
    ----------
    alpha_ : float
        The ridge used.
    side_ : str
        The side used; ``"weighted"`` for weights that were chosen, if one side alone is not as good.
    side_weights_ : ndarray of shape (2,)
        The weights of f1 and f2.
    dual_coef_ : ndarray of shape (n_outputs, 2 n)
        Coefficients of ``k(t, x_j)`` and then of ``k(x_j, t)``; zero where a direction is not used.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts.
    out_of_fold_ : OutOfFold
        The prediction for every training row without it: `rows`, `prediction` and `target`.
    alphas_ : ndarray of shape (n_alphas,)
        The ridges tried.
    loo_errors_ : dict of str to ndarray of shape (n_alphas,)
        Mean squared leave-one-out error of every side and ridge tried; NaN where the system was singular.
    certificate_ : float
        The relative residual of the linear systems.
    kind_ : str
        What the matrix was taken for.
    decay_ : tuple of float or None
        Offset and unit of ``exp(-(d - offset) / unit)`` for distances and dissimilarities.
    one_way_ : tuple of ndarray
        Coefficients, intercepts and leave-one-out predictions of the best left regressor, for new rows of a precomputed
        matrix whose other direction is not given.
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
        attributes = self._fit(X, y.reshape(len(y), -1), check_weight(sample_weight, len(y)))
        if y.ndim == 1:
            held = attributes["out_of_fold_"]
            attributes["out_of_fold_"] = held._replace(
                prediction=held.prediction[:, 0], target=held.target[:, 0]
            )
        self._set_fitted(**attributes)

    def predict(self, X: Any, reverse: ArrayLike | None = None) -> NDArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like
            Rows or items; for a precomputed matrix ``k(t, x_j)``, one row per new item.
        reverse : array-like of shape (n_new, n) or None, default=None
            For a precomputed matrix ``k(x_j, t)``, one row per new item; needed unless the side is "left". Without it
            the left regressor is used, with a warning.

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
    kernel, kind, alpha, side, fit_intercept : object
        As for `AsymmetricRidge`.
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
    kernel_, X_fit_, kind_, decay_, one_way_
        As in `AsymmetricRidge`.
    calibration_, one_way_calibration_ : Calibration
        Slope and bias of the probabilities, and those of `one_way_`.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    AsymmetricRidge : The regressor.

    References
    ----------
    F. He, M. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning Analysis of Kernel Ridgeless Regression with Asymmetric
    Kernel Learning", 2024, section 2.1.

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
        fit_intercept: bool = True,
        class_weight: dict | str | None = None,
    ) -> None:
        super().__init__(kernel, kind=kind, alpha=alpha, side=side, fit_intercept=fit_intercept)
        self.class_weight = class_weight

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        two = len(classes) == 2
        Y = (
            signed_targets(labels, 2)
            if two
            else (labels[:, None] == np.arange(len(classes))).astype(float)
        )
        attributes = self._fit(X, Y, weight)
        used = used_rows(weight, len(Y))
        labels = labels[used]
        weight = None if weight is None else weight[used]
        left_out = [
            class_scores(attributes["out_of_fold_"].prediction),
            class_scores(attributes["one_way_"][2]),
        ]
        calibrations = [calibrate_scores(scores, labels, weight) for scores in left_out]
        crossed = [cross_calibrate(scores, labels, weight) for scores in left_out]
        attributes |= dict(zip(("calibration_", "one_way_calibration_"), calibrations))
        attributes["out_of_fold_"] = OutOfFold(used, crossed[0], labels)
        attributes["one_way_"] = (*attributes["one_way_"][:2], crossed[1])
        self._set_fitted(**attributes, classes_=classes)

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
        calibration = self._calibration_for(reverse)
        shifted = class_scores(scores) + calibration.bias / calibration.slope
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
        return softmax(self._calibration_for(reverse).slope * scores, axis=1)

    def _calibration_for(self, reverse: Any) -> Calibration:
        """The calibration of the regressor that predicts."""
        return self.one_way_calibration_ if self._lacks_reverse(reverse) else self.calibration_
