"""Classify and regress with a kernel learned from the labels: the paper's two stages in one estimator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import check_is_fitted

from mercerless.core.estimator import FittedEstimator, all_or_nothing
from mercerless.core.folds import cv_of_rows, fold_numbers, some_rows
from mercerless.core.memory import check_memory, row_blocks
from mercerless.core.svm import libsvm, stabilize
from mercerless.core.threads import blas_threads
from mercerless.core.tuning import (
    SCALES,
    Fold,
    choose_machine,
    held_out_blocks,
    settings_of,
    slices_of,
)
from mercerless.core.units import kernel_unit, length_scales
from mercerless.core.validation import (
    check_classes,
    check_number,
    check_option,
    check_random_state,
    check_targets,
    validate_data,
)
from mercerless.hyper.estimators import HyperRidge, HyperSVR, is_tensor
from mercerless.hyper.learning import loss_weight
from mercerless.hyper.selection import LeftOutItems, spread_of
from mercerless.hyper.targets import encode_target, order_of_items
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.base import Kernel
from mercerless.kernels.hyper import GaussianHyper, WishartHyper, random_pairs
from mercerless.kernels.stationary import Gaussian


class _LearnedKernelMachine(FittedEstimator):
    """Base of the classifier and the regressor: a kernel learned from y, then a support vector machine."""

    # the kinds of target that the learner may have, the default first
    _target_kinds: tuple[str, ...]
    _make: ClassVar[type]  # the machine

    def __init__(
        self,
        learner: HyperRidge | HyperSVR | None = None,
        *,
        C: float | None = None,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.learner = learner
        self.C = C
        self.cv = cv
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The items.
        y : array-like of shape (n_samples,)
            The labels, or the values.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_number("C", self.C, none=True)
        learner = self._make_learner()
        dtypes = [np.float64, np.float32]
        items, given = validate_data(self, X, y, dtype=dtypes, y_numeric=self._make is SVR)
        n = len(items)
        remedy = (
            "give the kernel_ of a HyperRidge to KreinRidgeClassifier or KreinRidge, with landmarks"
        )
        check_memory(40.0 * n**2, f"The kernel matrix of {n} items", remedy=remedy)
        targets, attributes = self._encode(given)
        with blas_threads(n):
            order = order_of_items(items, encode_target(targets, n, learner.target).target)
            cv = cv_of_rows(self.cv, order, n, targets, classify=self._make is SVC)
            candidate, setting, results = self._choose(learner, items[order], targets[order], cv)
            kernel: Kernel = candidate["kernel"]
            fitted = None
            if candidate["alpha"] is not None:
                rows = some_rows(n, LIMITS.learned_items, check_random_state(self.random_state))
                _set_choice(learner, kernel, candidate["alpha"], len(rows))
                fitted = learner.fit(items[rows], given[rows])
                # a constant has no effect on a machine with an intercept
                kernel = clone(fitted.kernel_).set_params(intercept=0.0)
            items, targets = items[order], targets[order]
            K = kernel(items)
            projector = None
            # libsvm stops anywhere if the kernel is indefinite, often far from a useful machine
            if kernel.definite is not True:
                K, projector, *_ = stabilize(K)
            machine = libsvm(self._make, K, targets, None, kernel_unit(K), **setting)
        self._set_fitted(
            kernel_=kernel,
            learner_=fitted,
            C_=setting["C"],
            machine_=machine,
            projector_=projector,
            X_fit_=items,
            certificate_=0.0 if fitted is None else fitted.certificate_,
            cv_results_=results,
            **attributes,
        )
        return self

    def _evaluate(self, method: str, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        items = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        values = []
        for rows in row_blocks(len(items), 16.0 * len(self.X_fit_)):
            K = self.kernel_(items[rows], self.X_fit_)
            K = K if self.projector_ is None else K @ self.projector_
            values.append(getattr(self.machine_, method)(K))
        return np.concatenate(values)

    def _make_learner(self) -> HyperRidge | HyperSVR:
        """A copy of the learner, or the default one; its target is filled in if it is not set."""
        learner = self.learner
        if learner is None:  # a machine follows: more digits of the kernel would not change it
            learner = HyperRidge("gaussian", tol=1e-4)
        if not isinstance(learner, (HyperRidge, HyperSVR)):
            raise TypeError(
                f"learner must be HyperRidge(...), HyperSVR(...) or None, not {learner!r}."
            )
        if is_tensor(learner.hyper_kernel):
            raise ValueError(
                "labels need the Gaussian or Wishart hyper-kernel; the tensor extends similarities."
            )
        learner = clone(learner)
        if learner.target == "auto":
            learner.target = self._target_kinds[0]
        check_option("the learner's target", learner.target, self._target_kinds)
        return learner

    def _choose(
        self, learner: HyperRidge | HyperSVR, X: NDArray, y: NDArray, cv: Any
    ) -> tuple[dict, dict, list[dict]]:
        """The best kernel, learned anew without each fold, the machine's best setting, and losses of all kernels."""
        learner._regression(X, learner.target)  # checks the parameters before any work
        random = check_random_state(self.random_state)
        classify = self._make is SVC
        settings = settings_of(classify, C=self.C, epsilon=getattr(self, "epsilon", None))
        hypers = _hypers(learner, X)
        given = learner._options(len(X), tensor=False)["alpha"]
        alphas = LIMITS.learned_alphas if given is None else (given,)
        plain = [Gaussian(a * length_scales(X)) for a in SCALES if self.learner is None]
        candidates: list = [{"kernel": kernel, "alpha": None} for kernel in plain]
        candidates += [{"kernel": hyper, "alpha": alpha} for hyper in hypers for alpha in alphas]
        if len(X) < LIMITS.fewest_items or len(candidates) * len(settings) == 1:
            return candidates[0], settings[len(settings) // 2], []
        rows = some_rows(len(X), LIMITS.tune_items, random)
        cv = cv_of_rows(cv, rows, len(X), y, classify=classify)
        fold_of = fold_numbers(cv, X[rows], y[rows], classify=classify, random_state=random)
        rows = rows[np.argsort(fold_of, kind="stable")]
        folds = slices_of(fold_of)
        X = X[rows].astype(float, copy=False)
        y = y[rows]
        target = encode_target(y, len(y), learner.target).target
        pairs = random_pairs(X, LIMITS.tune_landmarks, random)
        held_out: list[Any] = [partial(held_out_blocks, kernel(X), folds) for kernel in plain]
        for hyper in hypers:
            left_out = LeftOutItems(hyper, X, target, folds, pairs)
            held_out += [partial(_learned_blocks, left_out, alpha, X, folds) for alpha in alphas]
        choice = choose_machine(
            held_out, y, settings, self._make, type(self).__name__, n_plain=len(plain) or None
        )
        for candidate, loss in zip(candidates, choice.losses):
            candidate["loss"] = loss
        return candidates[choice.kernel], choice.setting, candidates

    def _encode(self, y: NDArray) -> tuple[NDArray, dict[str, Any]]:
        """Checked targets as the machine sees them, and the fitted attributes that undo that."""
        raise NotImplementedError


def _hypers(learner: HyperRidge | HyperSVR, X: NDArray) -> list:
    """The hyper-kernel of the learner, or a few of its family."""
    if not isinstance(learner.hyper_kernel, str):
        return [learner.hyper_kernel]
    scales = [a * spread_of(X) for a in LIMITS.learned_scales]
    if learner.hyper_kernel == "wishart":
        return [WishartHyper(1.87 * scale) for scale in scales]
    return [GaussianHyper(scale) for scale in scales]


def _set_choice(learner: HyperRidge | HyperSVR, hyper: Any, alpha: float, n: int) -> None:
    """Fill in the chosen hyper-kernel and penalty for this many items."""
    learner.set_params(hyper_kernel=hyper)
    if isinstance(learner, HyperRidge):
        learner.set_params(alpha=alpha)
    elif learner.C is None:
        learner.set_params(C=loss_weight(alpha, n))


def _learned_blocks(
    left_out: LeftOutItems, alpha: float, X: NDArray, folds: list[slice]
) -> Iterator[tuple[NDArray, NDArray, Fold]]:
    """For every fold the learned kernel of the other rows, without negative directions, and the rows of the fold."""
    for f, fold in enumerate(folds):
        rest = np.delete(X, fold, axis=0)
        kernel = left_out.kernel(f, alpha)
        stable = stabilize(kernel(rest))
        yield stable.kernel, kernel(X[fold], rest) @ stable.projector, fold


class HyperClassifier(ClassifierMixin, _LearnedKernelMachine):
    """Learn a kernel from the labels, then classify with it: the paper's two stages in one estimator.

    The learner is `HyperRidge` (or `HyperSVR`) on the ideal kernel of the labels; `sklearn.svm.SVC` follows with the
    learned kernel, its negative directions flipped. One search on held-out
    items, with the kernel learned anew without each fold, chooses the kernel by ridge regression and then C.

    Parameters
    ----------
    learner : HyperRidge, HyperSVR or None, default=None
        The learner, with all its options. If its hyper-kernel is a name, the search chooses its scale and penalty;
        with an object and an ``alpha`` (or ``C``) it chooses the machine's C only. None:
        ``HyperRidge("gaussian")``, with plain Gaussians among the candidates, which a learned kernel has to beat by a
        standard error.
    C : float or None, default=None
        The machine's loss weight, relative to the variance of the items in feature space (the mean diagonal of the
        centered kernel matrix); None: by the search.
    cv : int, splitter or iterable, default=5
        Folds of the search.
    random_state : int, RandomState or None, default=0
        Draws folds and centers. Up to 3000 rows, their order makes no difference.

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    kernel_ : Kernel
        The kernel, learned or a plain Gaussian; give it to any estimator with a ``kernel`` parameter.
    learner_ : HyperRidge, HyperSVR or None
        The fitted learner; None if a plain Gaussian was chosen.
    C_ : float
        The machine's loss weight, relative as C.
    machine_ : sklearn.svm.SVC
        The machine on the matrix ``kernel_(X) @ projector_``.
    projector_ : ndarray of shape (n_samples, n_samples) or None
        Flips the negative directions of the kernel matrix; None if the kernel is positive definite.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training items in the order of the machine's matrix.
    certificate_ : float
        That of the learner; 0 without one.
    cv_results_ : list of dict
        Kernel (or hyper-kernel), alpha (None for a plain Gaussian) and mean squared loss of ridge regression with
        every candidate; empty if there was one.

    See Also
    --------
    HyperRidge : The learner alone.
    KreinRidgeClassifier : Takes ``kernel_``, with landmarks for many rows.

    Notes
    -----
    The kernel is learned from 1000 rows at most, drawn at random; the machine is trained on all. On ordinary tables a
    tuned Gaussian `SVC` is about as accurate, and cheaper.

    References
    ----------
    .. [1] Liu, Shi, Huang, Yang, Suykens. "Generalization properties of hyper-RKHS and its applications". Journal of
       Machine Learning Research 22, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercerless import HyperClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HyperClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _target_kinds = ("classes",)
    _make = SVC

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of every item.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray of shape (n,)
            The classes.
        """
        numbers = self._evaluate("predict", X)
        return self.classes_[numbers]

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Signed distances from the decision boundary, as the machine gives them.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            The values.
        """
        return self._evaluate("decision_function", X)

    def _encode(self, y: NDArray) -> tuple[NDArray, dict[str, Any]]:
        _, classes, labels = check_classes(y, None, None, type(self).__name__)
        return labels, {"classes_": classes}


class HyperRegressor(RegressorMixin, _LearnedKernelMachine):
    """Learn a kernel from the targets, then regress with it.

    The learner is `HyperRidge` (or `HyperSVR`) on a Gaussian of the differences of standardized targets or on their
    products; `sklearn.svm.SVR` follows with the learned kernel, see `HyperClassifier`.

    Parameters
    ----------
    learner : HyperRidge, HyperSVR or None, default=None
        The learner, see `HyperClassifier`. None: ``HyperRidge("gaussian", target="gaussian")``, with plain
        Gaussians among the candidates.
    C : float or None, default=None
        The machine's loss weight, relative to the variance of the items in feature space and to the standard deviation
        of y; None: by the search.
    epsilon : float or None, default=None
        Half the width of the machine's tube, in standard deviations of y; None: by the search.
    cv, random_state : object
        See `HyperClassifier`.

    Attributes
    ----------
    kernel_, learner_, C_, machine_, projector_, X_fit_, certificate_, cv_results_ : object
        As of `HyperClassifier`; losses are relative to the variance of y.
    moments_ : tuple of float
        Mean and standard deviation of y.

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
    >>> model = HyperRegressor().fit(X[::2], np.sin(2 * X[::2, 0]))
    >>> model.score(X[1::2], np.sin(2 * X[1::2, 0])) > 0.95
    True
    """

    _target_kinds = ("gaussian", "product")
    _make = SVR

    def __init__(
        self,
        learner: HyperRidge | HyperSVR | None = None,
        *,
        C: float | None = None,
        epsilon: float | None = None,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = 0,
    ):
        super().__init__(learner, C=C, cv=cv, random_state=random_state)
        self.epsilon = epsilon

    def predict(self, X: ArrayLike) -> NDArray:
        """The value of every item.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The items.

        Returns
        -------
        ndarray of shape (n,)
            The values.
        """
        values = self._evaluate("predict", X)
        mean, deviation = self.moments_
        return mean + deviation * values

    def _encode(self, y: NDArray) -> tuple[NDArray, dict[str, Any]]:
        check_number("epsilon", self.epsilon, zero=True, none=True)
        y = check_targets(y, type(self).__name__)
        moments = float(y.mean()), float(y.std()) or 1.0
        return (y - moments[0]) / moments[1], {"moments_": moments}
