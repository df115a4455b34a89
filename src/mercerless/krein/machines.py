"""Support vector machines with an indefinite kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.svm import SVC, SVR
from sklearn.utils import column_or_1d

from mercerless.core.blocks import blockwise
from mercerless.core.estimator import pair_votes
from mercerless.core.folds import some_rows
from mercerless.core.memory import check_memory
from mercerless.core.svm import (
    Machine,
    hinge_machines,
    single_precision_unit,
    stabilize,
    tube_machine,
)
from mercerless.core.tuning import SCALES, choose_machine, folds_of, held_out_blocks, settings_of
from mercerless.core.units import Standardizer, kernel_unit
from mercerless.core.validation import check_classes, check_number, check_targets, check_weight
from mercerless.kernels import Gaussian
from mercerless.krein.model import KreinModel
from mercerless.krein.thresholds import LIMITS


class _KreinMachine(KreinModel):
    """Base of the support vector machines: from items to coefficients for the original kernel."""

    C: float | str
    negative_penalty: float
    #: Factors of the default kernel's length scale to choose from.
    _scales: tuple[float, ...] = (1.0,)

    def _fit(
        self,
        X: Any,
        target: NDArray,
        weight: NDArray,
        units: Standardizer | None = None,
        **attributes: Any,
    ) -> None:
        """Choose C if requested, train on the flipped matrix, and store coefficients for the original kernel."""
        if self.C != "auto":
            check_number("C", self.C)
        if self.negative_penalty != np.inf:  # infinity drops the negative part
            check_number("negative_penalty", self.negative_penalty)
        with self._progress() as progress:
            basis = self._train_basis(X, weight)
            n, target, weight = len(basis), target[basis.rows], weight[basis.rows]
            remedy = (
                "use fewer rows, a linear machine on KreinEmbedding(landmarks=...), or KreinRidge "
                "or KreinRidgeClassifier with landmarks"
            )
            check_memory(LIMITS.machine_bytes * n**2, f"The machine of {n} items", remedy=remedy)
            C: Any = self.C
            rows = some_rows(n, LIMITS.tuned_rows, 0)
            if C == "auto" and self.kernel == "gaussian":
                kernels = [Gaussian(scale * basis.kernel.length_scale) for scale in self._scales]
                matrices = [kernel(basis.take(rows)) for kernel in kernels]
                best, C = self._choose(matrices, target[rows], weight[rows])
                basis = basis.with_kernel(kernels[best])
            flipped = stabilize(self._matrix(basis), self.negative_penalty, weight, center=True)
            if C == "auto":
                of_rows = flipped.kernel[np.ix_(rows, rows)]
                of_rows /= single_precision_unit(of_rows)
                _, C = self._choose([of_rows], target[rows], weight[rows])
            C = float(C) / kernel_unit(flipped.kernel, weight)
            machines = self._machines(flipped.kernel, target, C, weight)
            progress.step({"stage": "machines"})
        beta = np.column_stack([machine.coef for machine in machines])
        coef = flipped.projector @ beta
        coef -= np.outer(weight / weight.sum(), coef.sum(axis=0))  # 0, up to rounding
        intercept = np.array([machine.intercept for machine in machines]) - flipped.mean @ coef
        if units is not None:
            coef, intercept = coef * units.spread, units.undo(intercept)
        self._set_fitted(
            _basis=basis.fitted(),
            kernel_=basis.kernel,
            X_fit_=basis.kept,
            C_=C,
            support_=basis.rows[np.any(beta != 0, axis=1)],
            n_iter_=max(1, *(machine.n_iter for machine in machines)),
            dual_coef_=basis.spread(coef.T),
            intercept_=intercept,
            certificate_=max(machine.gap for machine in machines),
            n_negative_=flipped.n_negative,
            **attributes,
        )

    def _choose(
        self, matrices: list[NDArray], target: NDArray, weight: NDArray
    ) -> tuple[int, float]:
        """The number of the best positive matrix, and C, chosen on folds.

        The folds share one factorization, of the flipped matrix of all rows; it uses no targets.
        """
        if len(target) < LIMITS.tuned_folds:
            return 0, 1.0
        classify = is_classifier(self)
        folds = folds_of(matrices[0], target, classify, LIMITS.tuned_folds)
        settings = settings_of(classify, epsilon=getattr(self, "epsilon", None))
        if not classify:
            settings.pop()  # the strongest takes long and gains nothing
        matrices_of = [partial(held_out_blocks, K, folds) for K in matrices]
        make = SVC if classify else SVR
        choice = choose_machine(matrices_of, target, settings, make, type(self).__name__, weight)
        return choice.kernel, choice.setting["C"]

    def _machines(
        self, K: NDArray, target: NDArray, C: float, weight: NDArray
    ) -> Sequence[Machine]:
        """The machines on a flipped matrix."""
        raise NotImplementedError

    def _scores(self, X: Any) -> NDArray:
        return self._evaluate(X, "dual_coef_")[0] + self.intercept_


class KreinSVC(ClassifierMixin, _KreinMachine):
    """Support vector classification with an indefinite kernel.

    Trains on the flipped kernel matrix ``|K|``, centered before (stabilization in the Krein space), and predicts with
    the original kernel: ``f(x) = sum_i coef_i k(x, x_i) + b``. With `negative_penalty` c the machine minimizes
    ``(||f+||^2 + c ||f-||^2) / 2 + C sum loss(y f)``; c = 1 is the Krein machine, c = inf clips the spectrum.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float or "auto", default="auto"
        Inverse strength of the penalty, for items of variance one in feature space: multiplying all similarities by a
        number changes nothing. "auto" chooses from .01 to 1000 by the errors on folds, of 600 items at most.
    negative_penalty : float, default=1.0
        Penalty of f- relative to that of f+.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
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
        Negative eigenvalues of the centered kernel matrix.
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
        class_weight: dict | str | None = None,
        tol: float = 1e-3,
        max_iter: int = -1,
    ):
        self.kernel = kernel
        self.C = C
        self.negative_penalty = negative_penalty
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        self._fit(X, labels, weight, classes_=classes)

    def _machines(self, K: NDArray, target: NDArray, C: float, weight: NDArray) -> list[Machine]:
        options: Any = {"tol": self.tol, "max_iter": self.max_iter}
        return hinge_machines(K, target, target.max() + 1, C, weight, **options)

    @blockwise
    def decision_function(self, X: Any) -> NDArray:
        """Scores of new items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The new items.

        Returns
        -------
        scores : ndarray of shape (n,) for two classes, else (n, n_classes)
            Per class: the votes of the pairs plus a bounded sum of their scores, which breaks ties.
        """
        scores = self._scores(X)
        n_classes = len(self.classes_)
        return scores[:, 0] if n_classes == 2 else pair_votes(scores, n_classes)

    def _predict(self, X: Any) -> NDArray:
        votes = pair_votes(self._scores(X), len(self.classes_))
        return self.classes_[votes.argmax(axis=1)]


class KreinSVR(RegressorMixin, _KreinMachine):
    """Support vector regression with an indefinite kernel.

    Minimizes ``(||f+||^2 + negative_penalty ||f-||^2) / 2 + C sum max(0, |y - f| - epsilon)`` by training on the
    flipped kernel matrix, and predicts with the original kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A kernel object, ``"precomputed"``, one of scikit-learn's metric names, or a function of two items.
    C : float or "auto", default="auto"
        Inverse strength of the penalty, for items and targets of variance one. "auto" as of `KreinSVC`, up to 100; for
        the default kernel it also chooses the length scale.
    epsilon : float, default=0.1
        Half the width of the tube without loss, in standard deviations of y.
    negative_penalty, tol, max_iter : object
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

    _scales = SCALES[:-1]  # the widest needs a C that takes long

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float | str = "auto",
        epsilon: float = 0.1,
        negative_penalty: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = -1,
    ):
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.negative_penalty = negative_penalty
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        check_number("epsilon", self.epsilon, zero=True)
        target = column_or_1d(check_targets(y, type(self).__name__), warn=True)[:, None]
        weight = check_weight(sample_weight, len(target))
        units = Standardizer.fit(target, weight)
        self._fit(X, units(target)[:, 0], weight, units)

    def _machines(self, K: NDArray, target: NDArray, C: float, weight: NDArray) -> list[Machine]:
        options: Any = {"tol": self.tol, "max_iter": self.max_iter}
        return [tube_machine(K, target, C, self.epsilon, weight, **options)]

    def _predict(self, X: Any) -> NDArray:
        return self._scores(X)[:, 0]
