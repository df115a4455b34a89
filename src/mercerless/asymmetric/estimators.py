"""Ridge regression and classification with asymmetric kernels and directed similarities."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import MultiOutputMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercerless.asymmetric.selection import (
    LIMITS,
    AsymmetricChoice,
    affinities,
    choose_asymmetric_ridge,
    choose_landmark_ridge,
    decay_of,
    independent_landmarks,
)
from mercerless.asymmetric.solver import (
    LandmarkComparisons,
    asymmetric_ridge,
    coupled_ridge,
    largest_singular_value,
)
from mercerless.core.basis import Basis
from mercerless.core.calibration import Calibration, calibrate_scores, cross_calibrate
from mercerless.core.conformal import ConformalMixin
from mercerless.core.copies import Gathered, Observations
from mercerless.core.estimator import (
    KernelPredictor,
    NamedClassifierMixin,
    NamedRegressorMixin,
    class_scores,
    landmark_rows,
    signed_targets,
)
from mercerless.core.folds import OutOfFold, assign_folds, distinct_items_needed
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_targets
from mercerless.core.timing import landmarks_remedy
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
from mercerless.kernels.local import at_centers, center_bandwidths
from mercerless.lowrank import Landmarks, as_landmarks
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
        landmarks: int | Landmarks | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.kind = kind
        self.alpha = alpha
        self.side = side
        self.coupled = coupled
        self.fit_intercept = fit_intercept
        self.landmarks = landmarks
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _check_parameters(self) -> None:
        check_option("side", self.side, ("auto", *LIMITS.shares))
        check_number("alpha", self.alpha, zero=True, none=True)
        if self.landmarks is not None and self.coupled:
            raise ValueError("coupled=True needs all items; use landmarks=None, or coupled=False.")
        if not self._has_center_bandwidths:
            return
        if self.side not in ("auto", "left"):
            raise ValueError(
                f"side={self.side!r} compares training items with new ones, which have no "
                "bandwidths; use side='left', or one bandwidth per feature."
            )
        if self.landmarks is not None:
            raise ValueError(
                "landmarks need a kernel that compares any two items, but this one has bandwidths "
                "for every training item; use landmarks=None, or one bandwidth per feature."
            )

    @property
    def _has_center_bandwidths(self) -> bool:
        """Whether the kernel has bandwidths for every training item, so that new items cannot be centers."""
        return bool(center_bandwidths(self.kernel))

    def _fit(self, X: Any, Y: NDArray, weight: NDArray) -> dict[str, Any]:
        """Choose ridge and side by the leave-one-out error; returns all fitted attributes.

        Equal items are one with the mean of their targets and the sum of their weights: the solution is the same, and
        an item is left out with all its copies. Items with bandwidths of their own are never equal.
        """
        self._check_parameters()
        fewest = np.inf if self._has_center_bandwidths else distinct_items_needed(None)
        basis, gathered = self._gathered_basis(X, weight, Y, fewest=fewest, whole_items=True)
        basis = basis.with_kernel(at_centers(basis.kernel, basis.rows, basis.n_train))
        check_kind_of_kernel(basis.kernel, self.kind)
        weight = gathered.weight[basis.rows]
        targets = _means_of_copies(Y, gathered)[basis.rows]
        K: NDArray | LandmarkComparisons
        positions = None
        if self.landmarks is None:
            K, kind, decay = self._training_matrix(basis)
        else:
            K, kind, decay, positions = self._landmark_comparisons(basis)
        with self._progress(0) as progress:
            if self.landmarks is None:
                progress.expect(25.0, len(targets), landmarks_remedy(len(targets)))
            choice = self._choose(K, targets, weight)
        basis = basis.fitted(positions)
        rows, place = gathered.places(basis.rows)
        one_way = choice.one_way
        one_way_coef = basis.spread(one_way.left.T)
        to_items, from_items = (basis.spread(coef.T) for coef in choice.coef)
        return {
            "_basis": basis,
            "_train_targets": (targets, weight, one_way.alpha),
            "kernel_": basis.kernel,
            "X_fit_": basis.kept,
            "landmarks_": basis.landmarks,
            "kind_": kind,
            "decay_": decay,
            "alpha_": choice.solution.alpha,
            "side_": choice.side,
            "side_weights_": choice.shares,
            "dual_coef_": np.hstack([to_items, from_items]),
            "intercept_": choice.intercept,
            "out_of_fold_": OutOfFold(rows, (targets - choice.residuals)[place], Y[rows]),
            "certificate_": choice.solution.residual,
            "one_way_": (one_way_coef, one_way.intercept_left, (targets - one_way.loo_left)[place]),
            "_item_of_row": place,
            **_validation_attributes(choice),
        }

    def _training_matrix(self, basis: Basis) -> tuple[NDArray, str, tuple[float, float] | None]:
        """The affinities of all items, the kind of the matrix and the decay of dissimilarities."""
        n = basis.n_train
        bytes_per_pair = LIMITS.coupled_bytes_per_pair if self.coupled else LIMITS.bytes_per_pair
        remedy = "use landmarks, fewer rows or KreinRidge"
        check_memory(bytes_per_pair * n**2, f"Ridge regression on {n} items", remedy=remedy)
        K = check_square(basis.matrix(), basis.matrix_name)
        kind = check_kind(K, self.kind, basis.matrix_name)
        decay = decay_of(K, kind)
        return affinities(K, decay), kind, decay

    def _landmark_comparisons(
        self, basis: Basis
    ) -> tuple[LandmarkComparisons, str, tuple[float, float] | None, NDArray]:
        """Affinities to and from the landmarks, whose matrix gives kind and decay, and the landmarks' positions."""
        requested = as_landmarks(self.landmarks)
        positions = landmark_rows(basis.kernel, basis.items, requested, self.random_state)
        n = len(basis)
        need = LIMITS.bytes_per_comparison * n * len(positions)
        what = f"Ridge regression on {n} items and {len(positions)} landmarks"
        check_memory(need, what, remedy="use fewer landmarks")
        if basis.given_as_matrix:
            matrix = check_square(basis.items, basis.matrix_name)
            to_landmarks = matrix[:, positions]
            from_landmarks = matrix[positions].T
        else:
            landmarks = basis.take(positions)
            to_landmarks = basis.kernel(basis.items, landmarks)
            from_landmarks = basis.kernel(landmarks, basis.items).T
        own = to_landmarks[positions]
        kind = check_kind(own, self.kind, basis.matrix_name)
        decay = decay_of(own, kind)
        comparisons = LandmarkComparisons(
            affinities(to_landmarks, decay),
            affinities(from_landmarks, decay),
            affinities(own, decay),
        )
        kept = independent_landmarks(comparisons.landmarks)
        return comparisons.take(kept), kind, decay, positions[kept]

    def _choose(
        self, K: NDArray | LandmarkComparisons, Y: NDArray, weight: NDArray
    ) -> AsymmetricChoice:
        """Ridge and side; warns if the systems are badly solved or the model is worse than a constant."""
        alphas: Any = [self.alpha]
        if self.alpha is None:
            relative = LIMITS.alphas + LIMITS.coupled_alphas if self.coupled else LIMITS.alphas
            # so many rows of an item have so many times the norm
            alphas = np.array(relative) * (_spectral_norm(K) or 1.0) * weight.mean()
        sides: tuple[str, ...] = (self.side,)
        if self.side == "auto":
            sides = ("left",) if self._has_center_bandwidths else ("left", "right", "weighted")
        problem = (Y, alphas, sides, weight, self.fit_intercept)
        try:
            if isinstance(K, LandmarkComparisons):
                choice = choose_landmark_ridge(K, *problem)
            else:
                choice = choose_asymmetric_ridge(K, *problem, self.coupled)
        except np.linalg.LinAlgError as error:
            raise ValueError(str(error)) from None
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
        return choice

    def _scores(self, X: Any, reverse: ArrayLike | None) -> NDArray:
        """Values of the functions for new items, block by block."""
        check_is_fitted(self)
        left, right = np.split(self.dual_coef_.T, 2)
        intercept = self.intercept_
        if self._lacks_reverse(reverse):
            left = self.one_way_[0].T
            intercept = self.one_way_[1]
        blocks = []
        for to_items, from_items in self._directions(X, reverse):
            values = intercept
            if to_items is not None:
                values = values + to_items @ left
            if from_items is not None:
                values = values + from_items @ right
            blocks.append(values)
        return np.concatenate(blocks)

    def _directions(
        self, X: Any, reverse: ArrayLike | None
    ) -> Iterator[tuple[NDArray | None, NDArray | None]]:
        """Affinities to and from the training items in blocks of new items; None for a direction that is not used."""
        items = self._test_items(X)
        reverse_rows = None
        if reverse is not None:
            reverse_rows = self._reverse_rows(reverse, items.shape)
        uses_left = self.side_ != "right"
        uses_right = self.side_ != "left"
        if self._lacks_reverse(reverse):
            uses_left = True
            uses_right = False
            self._warn_one_way()
        bytes_per_row = 12.0 * self.dual_coef_.shape[1]
        for rows in row_blocks(len(items), bytes_per_row, min(2**27, memory_budget() // 2)):
            to_items = None
            from_items = None
            if uses_left:
                to_items = affinities(self._basis.compare(items[rows]), self.decay_)
            if uses_right:
                given = None
                if reverse_rows is not None:
                    given = reverse_rows[rows]
                values = self._basis.compare_back(items[rows], given)
                if given is not None and self.landmarks_ is not None:
                    values = values[:, self.landmarks_]
                from_items = affinities(values, self.decay_)
            yield to_items, from_items

    def _explain_blocks(
        self, X: Any, reverse: ArrayLike | None = None, train: ArrayLike | None = None
    ) -> Iterator[Explained]:
        if self.landmarks_ is not None:
            raise ValueError(
                "explain needs all training items; fit with landmarks=None to explain predictions."
            )
        Y, weight, alpha = self._train_targets
        left = 1.0
        right = 0.0
        if not self._lacks_reverse(reverse):
            alpha = self.alpha_
            left, right = self.side_weights_
        K = affinities(self._train_again(train), self.decay_)
        one_target_each = np.eye(len(Y))
        solve = coupled_ridge if self.coupled else asymmetric_ridge
        solution = solve(K, one_target_each, alpha, weight, self.fit_intercept)
        calibration = self._calibration_for(reverse) if is_classifier(self) else None
        for to_items, from_items in self._directions(X, reverse):
            terms = []
            if to_items is not None:
                values = self._basis.weighted(to_items) @ solution.left + solution.intercept_left
                terms.append(Term("to training items", left * values))
            if from_items is not None:
                values = self._basis.weighted(from_items) @ solution.right
                values = values + solution.intercept_right
                terms.append(Term("from training items", right * values))
            yield explain_targets(terms, Y, weight, calibration)

    @property
    def _basis_rows(self) -> NDArray:  # type: ignore[override]
        return self._basis.centers

    def _held_out(self, reverse: ArrayLike | None = None) -> OutOfFold:
        """The leave-one-out predictions of the regressor that is used for new items given in this way."""
        held_out = super()._held_out()
        if not self._lacks_reverse(reverse):
            return held_out
        return held_out._replace(prediction=self.one_way_[2].reshape(held_out.prediction.shape))

    def _lacks_reverse(self, reverse: Any) -> bool:
        """Whether the other direction is needed but not given."""
        return self.side_ != "left" and reverse is None and self._basis.given_as_matrix

    def _warn_one_way(self) -> None:
        warn(
            f"The {self.side_} regressor needs the similarities of the training items to the new "
            "ones, which are missing, so the left regressor is used instead; pass them as reverse "
            "(one row per new item), or fit with side='left'.",
            UserWarning,
        )


def _means_of_copies(Y: NDArray, gathered: Gathered) -> NDArray:
    """Weighted mean targets of equal items, at the first of them."""
    is_copy = gathered.first != np.arange(len(Y))
    if not is_copy.any():
        return Y
    # relative to the first, so that equal targets stay what they are
    shift = gathered.given[:, None] * (Y - Y[gathered.first])
    total = np.maximum(gathered.weight, np.finfo(float).tiny)
    columns = [np.bincount(gathered.first, weights=column, minlength=len(Y)) for column in shift.T]
    return Y + np.column_stack(columns) / total[:, None]


def _spectral_norm(K: NDArray | LandmarkComparisons) -> float:
    """That of the centered matrix; with landmarks, of their columns, as if all columns were like these."""
    if isinstance(K, LandmarkComparisons):
        n, m = K.to_landmarks.shape
        return largest_singular_value(K.to_landmarks) * float(np.sqrt(n / m))
    return largest_singular_value(K)


def _validation_attributes(choice: AsymmetricChoice) -> dict[str, Any]:
    """The leave-one-out errors of all penalties and sides that were tried."""
    alphas = np.array(sorted({alpha for alpha, _ in choice.errors}))
    sides = dict.fromkeys(side for _, side in choice.errors)
    errors = {
        side: np.array([choice.errors.get((alpha, side), np.nan) for alpha in alphas])
        for side in sides
    }
    return {"alphas_": alphas, "loo_errors_": errors}


class AsymmetricRidge(MultiOutputMixin, NamedRegressorMixin, _Asymmetric):
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
    landmarks : int, Landmarks or None, default=None
        Functions of so many items instead of all, at a cost that is linear in the number of rows; None: all. For
        comparisons that vary smoothly; matrices of high rank, such as those of graphs, need all items.
    random_state : int, RandomState or None, default=None
        Draws the landmarks.

    Attributes
    ----------
    alpha_ : float
        The ridge used.
    side_ : str
        The side used; ``"weighted"`` for a mean with weights that were chosen.
    side_weights_ : ndarray of shape (2,)
        The weights of f1 and f2.
    dual_coef_ : ndarray of shape (n_outputs, 2 n)
        Coefficients of ``k(t, x_j)`` and then of ``k(x_j, t)``, of the landmarks if there are any; zero for a direction
        that is not used.
    landmarks_ : ndarray or None
        Positions of the landmarks among the training rows; those that others determine, such as copies, are left out.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts.
    out_of_fold_ : OutOfFold
        The prediction for every training row without it: `rows`, `prediction` and `target`.
    alphas_ : ndarray of shape (n_alphas,)
        The ridges tried.
    loo_errors_ : dict of str to ndarray of shape (n_alphas,)
        Mean squared leave-one-out error of every side and ridge tried; NaN if the system was singular.
    certificate_ : float
        The relative residual of the linear systems.
    kind_ : str
        The kind of the matrix, given or inferred.
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
        attributes = self._fit(X, y.reshape(len(y), -1), check_weight(sample_weight, len(y)))
        attributes.pop("_item_of_row")
        if y.ndim == 1:
            held_out = attributes["out_of_fold_"]
            attributes["out_of_fold_"] = held_out._replace(
                prediction=held_out.prediction[:, 0], target=held_out.target[:, 0]
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


class AsymmetricRidgeClassifier(NamedClassifierMixin, _Asymmetric):
    """Classification by `AsymmetricRidge` on indicator targets, for any number of classes.

    Two classes have the targets plus and minus one, more have one column each. Ridge and side minimize the exact
    leave-one-out squared error; probabilities are ``softmax(slope * scores + bias)``, fitted on leave-one-out scores.

    Parameters
    ----------
    kernel, kind, alpha, side, coupled, fit_intercept, landmarks, random_state : object
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
    kernel_, X_fit_, landmarks_, kind_, decay_, one_way_
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
        landmarks: int | Landmarks | None = None,
        random_state: int | np.random.RandomState | None = None,
        class_weight: dict | str | None = None,
    ) -> None:
        super().__init__(
            kernel,
            kind=kind,
            alpha=alpha,
            side=side,
            coupled=coupled,
            fit_intercept=fit_intercept,
            landmarks=landmarks,
            random_state=random_state,
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
        attributes = self._fit(X, Y, weight)
        rows = attributes["out_of_fold_"].rows
        labels = labels[rows]
        item_of_row = attributes.pop("_item_of_row")
        observations = Observations.of(item_of_row, labels)
        calibrate = partial(_calibrated, labels, weight[rows], item_of_row, observations)

        prediction = attributes["out_of_fold_"].prediction
        attributes["calibration_"], proba = calibrate(prediction)
        attributes["out_of_fold_"] = OutOfFold(rows, proba, labels)

        one_way_coef, one_way_intercept, prediction = attributes["one_way_"]
        attributes["one_way_calibration_"], one_way_proba = calibrate(prediction)
        attributes["one_way_"] = (one_way_coef, one_way_intercept, one_way_proba)
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


def _calibrated(
    labels: NDArray,
    weight: NDArray,
    item_of_row: NDArray,
    observations: Observations,
    prediction: NDArray,
) -> tuple[Calibration, NDArray]:
    """The calibration of leave-one-out predictions, and the rows' probabilities, calibrated without their items.

    Equal items of one class count as one with the sum of their weights.
    """
    scores = class_scores(observations.take(prediction))
    classes = observations.take(labels)
    total = observations.total(weight)
    fold_of = assign_folds(5, len(classes), together=observations.take(item_of_row), random_state=0)
    calibration = calibrate_scores(scores, classes, total)
    proba = cross_calibrate(scores, classes, total, fold_of)
    return calibration, observations.spread(proba)
