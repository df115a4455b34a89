"""The bases of all estimators: checked training and new items, fitted attributes, progress.

Also what classifiers share: targets for classes, one column of scores per class, votes of pairs.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import sklearn
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import assert_all_finite, check_consistent_length, get_tags
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from mercerless.core.basis import Basis, is_precomputed, make_basis
from mercerless.core.blocks import check_rows
from mercerless.core.memory import with_settings
from mercerless.core.optional import CallbackSupportMixin, with_callbacks
from mercerless.core.threads import blas_threads
from mercerless.core.timing import Progress
from mercerless.core.validation import (
    align_columns,
    align_matrix,
    as_items,
    check_matrix,
    check_real,
    check_row_order,
    is_dask,
    labels_of,
    validate_data,
    weights_or_ones,
)
from mercerless.kernels import Kernel, PairFunction, Precomputed, as_kernel
from mercerless.kernels.base import own_kernel
from mercerless.kernels.items import takes_objects
from mercerless.kernels.named import SPARSE_KERNELS, SparseRows
from mercerless.lowrank import as_landmarks, select_landmarks

E = TypeVar("E")
P = ParamSpec("P")
T = TypeVar("T")


#: Methods that read rows of data.
_DATA_METHODS = frozenset(
    "fit partial_fit fit_predict predict predict_proba predict_log_proba decision_function transform "
    "fit_transform inverse_transform score predict_interval predict_set explain suspects".split()
)


def in_plain_surroundings(method: Callable[..., T]) -> Callable[..., T]:
    """A method that reads data, the same under every global setting of scikit-learn and NumPy.

    Targets, weights and groups with the labels of the rows of X in another order raise before any work.
    """
    names = list(inspect.signature(method).parameters)[1:]

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> T:
        given = dict(zip(names, args)) | kwargs
        check_row_order(given.pop(names[0], None), **given)
        with (
            np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"),
            sklearn.config_context(transform_output="default"),
        ):
            return method(self, *args, **kwargs)

    call._is_plain = True  # type: ignore[attr-defined]
    return call


def all_or_nothing(fit: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """Let a fit that fails or is interrupted leave the estimator as it was: fitted as before, or not at all."""

    @wraps(fit)
    def transaction(self: E, *args: P.args, **kwargs: P.kwargs) -> T:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return transaction


class FittedEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of all estimators: sets attributes at the end of a fit, and reports progress to callbacks."""

    _column_labels: list[str] | None = None
    #: Attributes that validation sets before the fit.
    _set_by_validation: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        own = {name: method for name, method in vars(cls).items() if name in _DATA_METHODS}
        if hasattr(cls, "score"):
            own.setdefault("score", cls.score)
        for name, method in own.items():
            if inspect.isfunction(method) and not hasattr(method, "_is_plain"):
                setattr(cls, name, in_plain_surroundings(method))
        for method in filter(inspect.isfunction, vars(cls).values()):
            # errors show this name, and the class may be a private base
            inspect.unwrap(method).__qualname__ = method.__name__
        super().__init_subclass__(**kwargs)

    def __getattr__(self, name: str) -> Any:
        other = {"predict_interval": "predict_set", "predict_set": "predict_interval"}.get(name)
        if other is not None and hasattr(type(self), other):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; use {other}"
            )
        return object.__getattribute__(self, name)  # which raises again

    def _set_fitted(self, **attributes: Any) -> None:
        """Set all fitted attributes at once, and remove those of an earlier fit."""
        validated = self._set_by_validation
        for name in [name for name in vars(self) if name.endswith("_") and name not in validated]:
            delattr(self, name)
        self.__dict__.update(attributes)

    @contextmanager
    def _progress(self, max_subtasks: int | None = None) -> Iterator[Progress]:
        """Report the beginning and the end of a fit to callbacks; yields the `Progress` that reports its steps."""
        context = self._init_callback_context(max_subtasks=max_subtasks)
        context.call_on_fit_task_begin(estimator=self)
        yield Progress(self, context)
        context.call_on_fit_task_end(estimator=self)


class KernelEstimator(FittedEstimator):
    """Base of the estimators that take a ``kernel``: vectors, a precomputed matrix, or any objects.

    A subclass has the parameter ``kernel``. Its fit calls `_train_items` and at last `_set_fitted`, its predict calls
    `_test_items`.
    """

    kernel: Any
    kernel_: Kernel
    X_fit_: Any
    _streams = False  # whether fit takes Dask arrays, block by block
    # whether both directions of a function are compared, as with direction="mean" or "both"
    _directed = False

    def _train_items(self, X: Any, weight: NDArray | None = None) -> tuple[Kernel, Any]:
        """The resolved kernel and all validated training items; sets ``n_features_in_`` but keeps nothing else.

        Rows of weight 0 do not affect the kernel's default parameters.
        """
        self._forget_columns()
        given = self.kernel
        if is_precomputed(given) and not is_dask(X):
            X = align_matrix(X, may_cut=get_tags(self).input_tags.pairwise)
            self._column_labels = labels_of(X)
            X = self._check_rows(X)
            check_consistent_length(X, weight)
            return Precomputed(), X
        if issparse(X) and get_tags(self).input_tags.sparse:
            given = SparseRows(given)
            X = given.items(X)
        elif takes_objects(as_kernel(given)):
            X = self._check_items(X, reset=True)
        elif is_dask(X):
            X = check_rows(X)
            if not self._streams:
                raise TypeError(
                    f"{type(self).__name__} needs its data in memory; call X.compute() first, or "
                    "use an estimator with landmarks, such as KreinRidge."
                )
            self.n_features_in_ = X.shape[1]
        else:
            self._column_labels = labels_of(X)
            X = self._check_rows(X)
        check_consistent_length(X, weight)
        weight = weights_or_ones(weight, len(X))
        used = np.flatnonzero(weight)
        relative = weight[used] / weight[used].mean()
        kernel = as_kernel(given, X if len(used) == len(X) else X[used], relative)
        if self._directed and isinstance(kernel, PairFunction) and not isinstance(given, Kernel):
            kernel = PairFunction(kernel.function, symmetric=False)  # kernels declare it themselves
        return own_kernel(kernel), X

    def _train_basis(self, X: Any, weight: NDArray | None = None) -> Basis:
        """The training items that carry weight, checked, with the resolved kernel."""
        kernel, items = self._train_items(X, weight)
        return make_basis(kernel, items, weight)

    def _forget_columns(self) -> None:
        """Forget the columns of an earlier fit."""
        for name in (*self._set_by_validation, "_column_labels"):
            self.__dict__.pop(name, None)

    def _test_items(self, X: Any) -> Any:
        """Validated new items; rows of similarities to the training items for a precomputed kernel."""
        check_is_fitted(self)
        if isinstance(self.kernel_, SparseRows):
            return SparseRows.items(X)
        if takes_objects(as_kernel(self.kernel)):
            return self._check_items(X, reset=False)
        if is_dask(X):
            X = check_rows(X)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} columns but {self.n_features_in_} were seen in fit."
                )
            return X
        if is_precomputed(self.kernel):
            X = align_columns(X, self._column_labels, complete=True)
        return self._check_rows(X, reset=False)

    def _check_rows(self, X: Any, **options: Any) -> NDArray:
        """Rows of finite numbers; of a matrix of comparisons the first that is missing is named."""
        try:
            return validate_data(self, X, dtype=[np.float64, np.float32], **options)
        except ValueError:
            if is_precomputed(self.kernel):
                check_matrix(X)
            raise

    def _reverse_rows(self, reverse: ArrayLike, shape: tuple[int, ...]) -> NDArray:
        """Check `reverse`, the other direction of new rows of a precomputed matrix; both have this shape."""
        if not is_precomputed(self.kernel_):
            raise ValueError(
                "reverse is for a precomputed matrix; with a kernel both directions are computed."
            )
        reverse = align_columns(reverse, self._column_labels, "reverse", complete=True)
        rows = check_real(reverse, "reverse")
        if rows.shape != shape:
            raise ValueError(
                f"reverse has shape {rows.shape} but X {shape}; give one row per new item."
            )
        return rows

    def _check_items(self, X: Any, reset: bool) -> NDArray:
        """Rows of a numeric table, checked as in scikit-learn, or objects as they are: a list is not looked into."""
        items = as_items(X)
        if items.ndim == 2:
            return self._check_rows(X, reset=reset)
        if reset:  # the model's own
            items = items.copy()
            for i, item in enumerate(items):
                if isinstance(item, (np.ndarray, list)):
                    items[i] = copy(item)
        return items

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = isinstance(self.kernel, str) and self.kernel in SPARSE_KERNELS
        return tags


class KernelPredictor(KernelEstimator):
    """A kernel estimator with targets: documents `fit` and `predict`; subclasses define `_learn` and `_predict`."""

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items. The columns of a data frame of comparisons are matched with its rows by name.
        y : array-like of shape (n,), or (n, n_outputs) if the estimator takes several
            The targets, or the classes. Read by position; the row labels of X in another order raise.
        sample_weight : array-like of shape (n,) or None, default=None
            A weight w counts like w repetitions of the row; 0 leaves it out, and a class that has no other rows.

        Returns
        -------
        self : estimator
            The fitted model.
        """
        with blas_threads(y):
            self._learn(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> NDArray:
        """Predict the targets, or the classes, of new items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The new items. The columns of a data frame are matched with those of the training data by name; others are
            left out.

        Returns
        -------
        y : ndarray of shape (n,), or (n, n_outputs) for several outputs
            The predictions.
        """
        return self._predict(X)

    @abstractmethod
    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Check the targets and fit."""

    @abstractmethod
    def _predict(self, X: Any) -> NDArray:
        """The predictions, for rows that are in memory."""


class GroupedPredictor(KernelPredictor):
    """A kernel predictor that cross-validates, and holds out whole groups if they are given."""

    @with_callbacks
    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items. The columns of a data frame of comparisons are matched with its rows by name.
        y : array-like of shape (n,), or (n, n_outputs) if the estimator takes several
            The targets, or the classes. Read by position; the row labels of X in another order raise.
        sample_weight : array-like of shape (n,) or None, default=None
            A weight w counts like w repetitions of the row; 0 leaves it out, and a class that has no other rows.
        groups : array-like of shape (n,) or None, default=None
            Items of one group (a patient, a family, a machine) are held out together, so that out-of-fold predictions,
            calibration, prediction sets and intervals are those of new groups.

        Returns
        -------
        self : estimator
            The fitted model.
        """
        with blas_threads(y):
            self._learn(X, y, sample_weight, groups)
        return self

    @abstractmethod
    def _learn(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None = None
    ) -> None:
        """Check the targets and fit."""


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """A kernel estimator that maps items to features; subclasses define `_learn` and `_transform`."""

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the features.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : object
            Ignored.

        Returns
        -------
        self : estimator
            The fitted transformer.
        """
        self._learn(X)
        return self

    def transform(self, X: Any) -> NDArray:
        """Features of items.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n_train) for a precomputed kernel, or a sequence of items
            The items.

        Returns
        -------
        ndarray of shape (n, n_features_out)
            The features.
        """
        return self._transform(self._test_items(X))

    @abstractmethod
    def _learn(self, X: Any) -> None:
        """Fit."""

    @abstractmethod
    def _transform(self, items: Any) -> NDArray:
        """Features of checked items."""


def signed_targets(labels: NDArray, n_classes: int) -> NDArray:
    """Targets +-1 for class numbers: one column for two classes (the second is +1), else one per class."""
    targets = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
    return targets[:, 1:] if n_classes == 2 else targets


def class_scores(scores: NDArray) -> NDArray:
    """One column of scores per class; the one score f of two classes becomes -f / 2 and f / 2."""
    scores = scores.reshape(len(scores), -1)
    return np.hstack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores


def pair_votes(scores: NDArray, n_classes: int) -> NDArray:
    """Votes per class of all pairs i < j (positive scores mean j), plus less than half a vote of summed scores."""
    return _ovr_decision_function(scores > 0, scores, n_classes)


def landmark_rows(kernel: Kernel, items: Any, requested: Any, random_state: Any) -> NDArray:
    """Positions of the landmarks, ascending; of all items if None or more than these are requested."""
    landmarks = as_landmarks(len(items) if requested is None else requested)
    if landmarks.number >= len(items):
        return np.arange(len(items))
    chosen = select_landmarks(kernel, items, landmarks.number, landmarks.method, random_state)
    return np.sort(chosen)


def run_tasks(
    progress: Progress, n_jobs: int | None, name: str, function: Callable, things: Sequence
) -> list:
    """Map a function over things in parallel, reporting a step after each."""
    work = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    results = work(delayed(with_settings(function))(thing) for thing in things)
    return list(progress.each(name, results))


def check_diagonal(diag: ArrayLike, n: int) -> NDArray:
    """Finite numbers, one per new item or the same for all."""
    values = np.asarray(diag, dtype=np.float64)
    assert_all_finite(values, input_name="diag")
    if values.ndim > 1 or values.size not in (1, n):
        raise ValueError(
            f"diag has shape {values.shape} but must hold one number for each of the {n} new items."
        )
    return np.broadcast_to(values, (n,))
