"""Support vector machines with an indefinite kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d

from mercerless.core.basis import Basis
from mercerless.core.blocks import blockwise
from mercerless.core.estimator import pair_votes
from mercerless.core.folds import fold_numbers, some_rows
from mercerless.core.memory import check_memory
from mercerless.core.svm import Machine, Stabilized, pair_machines, stabilize, tube_machine
from mercerless.core.units import Standardizer, kernel_unit
from mercerless.core.validation import (
    check_classes,
    check_number,
    check_option,
    check_targets,
    check_weight,
    warn,
    warn_if_tube_is_useless,
)
from mercerless.krein.model import KreinModel
from mercerless.krein.thresholds import LIMITS

# machines of some rows for C, from their kernel matrix, targets and weights
Train = Callable[[NDArray, NDArray, float, NDArray], Iterable[Machine]]
# the loss of scores (n, n_machines) for targets, one number per row
Loss = Callable[[NDArray, NDArray], NDArray]


class _KreinMachine(KreinModel):
    """Base of the support vector machines: from items to coefficients for the original kernel."""

    C_: float
    C: float | str
    negative_penalty: float
    center: bool

    def _check_parameters(self) -> None:
        if self.C != "auto":
            check_number("C", self.C)
        if self.negative_penalty != np.inf:  # infinity drops the negative part
            check_number("negative_penalty", self.negative_penalty)

    def _stabilized(self, X: Any, weight: NDArray) -> tuple[Basis, NDArray, Stabilized]:
        """The items that carry weight, their weights, and their matrix with the negative eigenvalues flipped."""
        basis = self._train_basis(X, weight)
        remedy = (
            "use fewer rows, a linear machine on KreinEmbedding(landmarks=...), or KreinRidge or "
            "KreinRidgeClassifier with landmarks"
        )
        n = len(basis)
        check_memory(LIMITS.machine_bytes * n**2, f"The machine of {n} items", remedy=remedy)
        weight = weight[basis.rows]
        K = self._matrix(basis)
        return basis, weight, stabilize(K, self.negative_penalty, weight, center=self.center)

    def _fit(
        self,
        X: Any,
        target: NDArray,
        weight: NDArray,
        train: Train,
        loss: Loss,
        *,
        classify: bool,
        **attributes: Any,
    ) -> None:
        """Choose C if requested, train on the flipped matrix, and store coefficients for the original kernel."""
        with self._progress() as progress:
            basis, weight, stabilized = self._stabilized(X, weight)
            target = target[basis.rows]
            kernel = stabilized.kernel
            factor = self.C
            if factor == "auto":
                rows = some_rows(len(kernel), LIMITS.cost_rows, 0)
                folds = fold_numbers(
                    LIMITS.cost_folds,
                    basis.take(rows),
                    target[rows],
                    classify=classify,
                    precomputed=basis.given_as_matrix,
                    random_state=0,
                )
                factor = best_cost(
                    kernel[np.ix_(rows, rows)], target[rows], weight[rows], folds, train, loss
                )
            C = float(factor) / kernel_unit(kernel, weight)
            machines = list(progress.each("machine", train(kernel, target, C, weight)))
            self._check_machines(machines, target, C * weight)
            self._store(basis, machines, stabilized, C_=C, **attributes)

    def _check_machines(self, machines: list[Machine], target: NDArray, bound: NDArray) -> None:
        """Warn if the machines are of no use."""

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
        units = attributes.pop("units", None)
        if units is not None:
            coef = coef * units.spread
            intercept = units.undo(intercept)
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


def best_cost(
    K: NDArray, target: NDArray, weight: NDArray, folds: NDArray, train: Train, loss: Loss
) -> float:
    """C, in units of `kernel_unit`: the smallest with a held-out loss within one per cent of the least.

    The folds share the flipped matrix of all rows, so that one factorization serves them all; it uses no targets.
    """
    if len(np.unique(folds)) < 2:  # a single item
        return 1.0
    unit = kernel_unit(K, weight)

    def held_out_loss(cost: float) -> float:
        losses = np.zeros(len(K))
        for fold in np.unique(folds):
            own = np.flatnonzero(folds != fold)
            new = np.flatnonzero(folds == fold)
            own_kernel = K[np.ix_(own, own)]
            machines = list(train(own_kernel, target[own], cost / unit, weight[own]))
            coef = np.column_stack([machine.coef for machine in machines])
            intercept = np.array([machine.intercept for machine in machines])
            losses[new] = loss(K[np.ix_(new, own)] @ coef + intercept, target[new])
        return float(np.average(losses, weights=weight))

    errors: list[float] = []
    for cost in LIMITS.costs:
        errors.append(held_out_loss(cost))
        if len(errors) > 2 and min(errors[-2:]) > min(errors):  # strong costs take long
            break
    # rounding must not decide between equal ones
    return LIMITS.costs[int(np.argmax(np.array(errors) <= 1.01 * min(errors)))]


class KreinSVC(ClassifierMixin, _KreinMachine):
    """Support vector classification with an indefinite kernel.

    Trains on the flipped kernel matrix ``|K|`` (stabilization in the Krein space) and predicts with the original
    kernel: ``f(x) = sum_i coef_i k(x, x_i) + b``. With `negative_penalty` c the machine minimizes
    ``(||f+||^2 + c ||f-||^2) / 2 + C sum loss(y f)``; c = 1 is the Krein machine, c = inf clips the spectrum.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float or "auto", default="auto"
        Inverse strength of the penalty, for items of variance one in feature space: multiplying all similarities by a
        number changes nothing. "auto" chooses from .1 to 1000 by the errors on three folds, of 1500 items at most.
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
        C of the machine on ``|K|``: the given or chosen one over the mean diagonal of the centered ``|K|``.
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
        C: float | str = "auto",
        negative_penalty: float = 1.0,
        loss: str = "hinge",
        center: bool = False,
        class_weight: dict | str | None = None,
        decision_function_shape: str = "ovr",
        tol: float = 1e-3,
        max_iter: int = -1,
    ):
        self.kernel = kernel
        self.C = C
        self.negative_penalty = negative_penalty
        self.loss = loss
        self.center = center
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_parameters()
        check_option("loss", self.loss, ("hinge", "squared_hinge"))
        check_option("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        n_classes = len(classes)

        def train(K: NDArray, labels: NDArray, C: float, weight: NDArray) -> Iterator[Machine]:
            options: Any = {"tol": self.tol, "max_iter": self.max_iter}
            return pair_machines(K, labels, n_classes, C, weight, loss=self.loss, **options)

        def is_wrong(scores: NDArray, labels: NDArray) -> NDArray:
            return pair_votes(scores, n_classes).argmax(axis=1) != labels

        self._fit(X, labels, weight, train, is_wrong, classify=True, classes_=classes)

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


class KreinSVR(RegressorMixin, _KreinMachine):
    """Support vector regression with an indefinite kernel.

    Minimizes ``(||f+||^2 + negative_penalty ||f-||^2) / 2 + C sum max(0, |y - f| - epsilon)`` by training on the
    flipped kernel matrix, and predicts with the original kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float or "auto", default="auto"
        Inverse strength of the penalty, for items and targets of variance one; "auto" as of `KreinSVC`, by the
        absolute error.
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
        C: float | str = "auto",
        epsilon: float = 0.1,
        negative_penalty: float = 1.0,
        center: bool = False,
        tol: float = 1e-3,
        max_iter: int = -1,
    ):
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.negative_penalty = negative_penalty
        self.center = center
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_parameters()
        check_number("epsilon", self.epsilon, zero=True)
        target = column_or_1d(check_targets(y, type(self).__name__), warn=True)[:, None]
        weight = check_weight(sample_weight, len(target))
        units = Standardizer.fit(target, weight)

        def train(K: NDArray, target: NDArray, C: float, weight: NDArray) -> list[Machine]:
            options: Any = {"tol": self.tol, "max_iter": self.max_iter}
            return [tube_machine(K, target, C, self.epsilon, weight, **options)]

        def absolute_error(scores: NDArray, target: NDArray) -> NDArray:
            return np.abs(scores[:, 0] - target)

        standardized = units(target)[:, 0]
        self._fit(X, standardized, weight, train, absolute_error, classify=False, units=units)

    def _check_machines(self, machines: list[Machine], target: NDArray, bound: NDArray) -> None:
        name = type(self).__name__
        warn_if_tube_is_useless(name, target, machines[0].coef, bound, self.epsilon)

    def _predict(self, X: Any) -> NDArray:
        return self._scores(X)[:, 0]
