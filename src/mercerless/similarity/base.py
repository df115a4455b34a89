"""What the automatic stacks of symmetric and of directed similarities share: folds, warnings, methods, new items."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import blockwise
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import (
    GroupedPredictor,
    check_diagonal,
    encode_classes,
    encode_numbers,
    matrix_name,
    run_tasks,
    used_items,
    used_rows,
    used_weights,
)
from mercerless.core.folds import (
    OutOfFold,
    blind_folds,
    check_groups,
    count_folds,
    fold_numbers,
    warn_of_lonely_classes,
)
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.reasons import Explained, ReasonsMixin
from mercerless.core.validation import (
    check_labels,
    check_square,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn,
    warn_if_useless,
)
from mercerless.kernels import Kernel, Precomputed
from mercerless.similarity.families import Comparisons
from mercerless.similarity.stack import Average, Source, fit_stack, without_blocks
from mercerless.spectra import as_similarities


class Training(NamedTuple):
    """What a stack learns from: the items that carry weight, their targets, weights and folds."""

    used: NDArray  # their positions
    given: NDArray  # their targets as given
    Y: NDArray  # (n, q), the targets of the learners
    weight: NDArray
    fold_of: NDArray
    block_of: NDArray  # folds that know nothing of the classes, for `similarity.cross_fit`
    encoding: dict[str, Any]  # attributes that tell what Y means
    groups: NDArray | None  # numbers of the groups that are held out together

    def out_of_fold(self, judged: NDArray, prediction: NDArray) -> OutOfFold:
        """Predictions for some of these items, by models that have not seen them."""
        groups = None
        if self.groups is not None:
            groups = self.groups[judged]
        return OutOfFold(self.used[judged], prediction, self.given[judged], groups)


class Task(NamedTuple):
    """What is to be learned about the items: given at the door, for all items."""

    y: NDArray
    weight: NDArray  # one per item, not all 0
    groups: NDArray | None  # numbers of the groups that are held out together
    # targets of the learners and attributes that describe them, from y and the weights
    encode: Callable[[NDArray, NDArray], tuple[NDArray, dict[str, Any]]]

    @property
    def used(self) -> NDArray:
        """Positions of the items that carry weight."""
        return used_rows(self.weight, len(self.y))

    def groups_of(self, rows: NDArray) -> NDArray | None:
        """The groups of some items, if there are groups."""
        if self.groups is None:
            return None
        return self.groups[rows]


class RowProfiles(NamedTuple):
    """Standardized rows of training items of a directed matrix, which new rows of one direction are compared with."""

    mean: NDArray
    scale: NDArray
    rows: NDArray

    def similarities(self, new: NDArray | None = None) -> NDArray:
        """``-|p - q|^2 / 2`` of new or of the training rows, so that a stack's distances are those of the profiles."""
        profiles = self.rows if new is None else (new - self.mean) / self.scale
        return -0.5 * euclidean_distances(profiles, self.rows, squared=True)


def row_profiles(rows: NDArray) -> RowProfiles:
    """Rows with every column standardized; constant columns do not count."""
    mean = rows.mean(axis=0)
    scale = rows.std(axis=0)
    scale = np.where(scale > 1e-13 * np.abs(mean), scale, np.inf)
    return RowProfiles(mean, scale, (rows - mean) / scale)


class KernelStack(ConformalMixin, ReasonsMixin, GroupedPredictor):
    """A stack of learners on one matrix; what its comparisons are, a subclass says."""

    stack_: Any
    one_way_: Any
    kind_: str
    diagonal_: float | None
    used_: Any
    members_: tuple
    landmarks_: NDArray | None = None
    mean_: NDArray  # of a regressor's targets, as scale_
    scale_: NDArray
    # of the average, as attributes
    _described: tuple[str, ...] = (
        "weights",
        "weights_without_diag",
        "family_scores",
        "negative_spectrum",
        "certificate",
    )
    _remedy: str  # where there are too many items
    _matrices: tuple[int, int]  # of all items: kept, and in every worker
    _row_bytes: float  # for each new item and training item
    # of a model of several similarities, which may well have useless ones
    _is_one_of_several = False
    _block_of: NDArray | None = None  # of a model of several similarities, while it is fitted

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: str = "auto",
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.kind = kind
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stack_")

    def _check_parameters(self) -> None:
        if isinstance(self.cv, Integral):
            count_folds(self.cv)

    def _full_need(self, n: int) -> float:
        """Bytes: the matrices, and in every worker a fold's part of them with an eigendecomposition's work space."""
        workers = min(
            effective_n_jobs(self.n_jobs), self.cv if isinstance(self.cv, Integral) else 5
        )
        return 8.0 * n**2 * (self._matrices[0] + self._matrices[1] * workers)

    @abstractmethod
    def _fit(self, X: Any, task: Task) -> dict[str, Any]:
        """All attributes."""

    @abstractmethod
    def _task(self, y: Any, sample_weight: Any, groups: Any) -> Task:
        """What is to be learned, checked."""

    def _learn(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None = None
    ) -> None:
        self._finish(self._fit(X, self._task(y, sample_weight, groups)))

    def _finish(self, attributes: dict[str, Any]) -> Self:
        """Set the attributes of a fit, in the units that users see."""
        self._set_fitted(**attributes)
        return self

    def _train_matrix(
        self, kernel: Kernel, items: Any, used: NDArray
    ) -> tuple[NDArray, dict[str, Any]]:
        """The square matrix of the items that carry weight, and the attributes that say what they are."""
        precomputed = isinstance(kernel, Precomputed)
        n = len(items)
        items = used_items(kernel, items, used)
        check_memory(
            self._full_need(len(items)), f"The stack on {len(items)} items", remedy=self._remedy
        )
        # of a precomputed matrix only the number of items is needed later, and n_features_in_ holds it
        attributes = {"kernel_": kernel, "X_fit_": None if precomputed else items}
        # columns of rows without weight stay in a precomputed test matrix
        attributes["used_"] = used if precomputed and len(used) < n else slice(None)
        return check_square(kernel(items), matrix_name(kernel)), attributes

    def _training(self, items: Any, task: Task, precomputed: bool) -> Training:
        """Targets, weights and folds of the items that carry weight."""
        used = task.used
        fold_of = fold_numbers(
            self.cv,
            items,
            task.y,
            classify=is_classifier(self),
            groups=task.groups,
            precomputed=precomputed,
            used=used,
            random_state=self.random_state,
        )
        block_of = self._block_of
        if block_of is None:
            block_of = blind_folds(
                self.cv,
                fold_of,
                items,
                classify=is_classifier(self),
                groups=task.groups,
                precomputed=precomputed,
                used=used,
            )
        weight = used_weights(task.weight, used)
        Y, encoding = task.encode(task.y[used], weight)
        groups = task.groups_of(used)
        return Training(used, task.y[used], Y, weight, fold_of, block_of, encoding, groups)

    def _fit_stack(self, source: Source, training: Training) -> dict[str, Any]:
        """Fit the stack, warn if it is no good, and return the attributes that describe it."""
        with self._progress(int(training.fold_of.max()) + 2) as progress:
            stack = fit_stack(
                source,
                training.Y,
                training.weight,
                is_classifier(self),
                training.block_of,
                run=partial(run_tasks, progress, self.n_jobs),
            )
        if not self._is_one_of_several:
            stack = without_blocks(stack)
        average = stack.average
        judged = stack.judged
        self._warn(average, training.Y[judged], training.weight[judged])
        out_of_fold = training.out_of_fold(judged, average.out_of_fold)
        attributes = {f"{name}_": getattr(average, name) for name in self._described}
        attributes |= {"members_": average.settings, "stack_": stack, "out_of_fold_": out_of_fold}
        return training.encoding | attributes

    def _warn(self, average: Average, Y: NDArray, weight: NDArray) -> None:
        """Warn of a stack that is worse than a constant (but for one of several similarities), or was not solved."""
        if not self._is_one_of_several:
            warn_if_useless(
                average.losses, leave_one_out_constant(Y, weight), type(self).__name__, weight
            )
        if not average.certificate <= 1e-6:
            message = (
                f"The calibration stopped at a relative gradient of {average.certificate:.1e}."
            )
            warn(message, ConvergenceWarning)

    def _predict(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """The stack's predictions for new items, block by block."""
        check_is_fitted(self)
        blocks = []
        for items, back, diagonal in self._new_blocks(X, diag, reverse, self._row_bytes):
            if back is None and self.one_way_ is not None:
                blocks.append(self.one_way_(items[:, self.used_]))
            else:
                blocks.append(self.stack_(self._compare(items, back, diagonal)))
        return np.concatenate(blocks)

    def _new_blocks(
        self, X: Any, diag: ArrayLike | None, reverse: ArrayLike | None, row_bytes: float
    ) -> Iterator[tuple[Any, NDArray | None, NDArray | None]]:
        """New items in blocks, their other direction and their own similarities as far as they are known."""
        items = self._test_rows(X)
        back = self._check_reverse(reverse, np.shape(items))
        given = None if diag is None else check_diagonal(diag, len(items))
        n_bytes = row_bytes * len(self.stack_.members.diagonal)
        budget = min(2**28, memory_budget() // 2)
        for rows in row_blocks(len(items), n_bytes, budget):
            diagonal = self._diagonal(items[rows], None if given is None else given[rows])
            yield items[rows], None if back is None else back[rows], diagonal

    def _test_rows(self, X: Any) -> Any:
        """New items, or their rows of comparisons."""
        return self._test_items(X)

    @abstractmethod
    def _compare(self, items: Any, back: NDArray | None, diagonal: NDArray | None) -> Comparisons:
        """Comparisons of new items with the training items."""

    def _check_reverse(self, reverse: ArrayLike | None, shape: tuple[int, ...]) -> NDArray | None:
        """The other direction of new rows, checked; a warning where it is missing and would be needed."""
        if reverse is None:
            if self.one_way_ is not None:
                warn(
                    "The training matrix is directed but only one direction of the new rows is "
                    "given: they are judged "
                    "by a stack fitted on that direction alone. Pass the similarities of the "
                    "training items to the new "
                    "ones as reverse (one row per new item) to use both."
                )
            return None
        return self._reverse_rows(reverse, shape)

    def _diagonal(self, items: Any, diagonal: NDArray | None) -> NDArray | None:
        """The new items' own similarities, where they are given or known."""
        if self.kind_ == "distance":
            return np.zeros(len(items))
        if diagonal is None and self.landmarks_ is not None and self.diagonal_ is not None:
            return np.full(len(items), self.diagonal_)  # as was taken in training
        if diagonal is None and not isinstance(self.kernel_, Precomputed):
            diagonal = self.kernel_.diag(items)
        if diagonal is not None:
            return as_similarities(diagonal, self.kind_)
        return None if self.diagonal_ is None else np.full(len(items), self.diagonal_)

    def _held_out(  # type: ignore[override]
        self, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> OutOfFold:
        """The out-of-fold predictions of the stack that judges new items given in this way."""
        held = super()._held_out()
        if self.one_way_ is not None and reverse is None:
            return held._replace(prediction=self._decode(self.one_way_.stack.average.out_of_fold))
        known = self.kind_ == "distance" or diag is not None or self.diagonal_ is not None
        if known or not isinstance(self.kernel_, Precomputed):
            return held
        return held._replace(prediction=self._decode(self.stack_.average.out_of_fold_without_diag))

    def _decode(self, values: NDArray) -> NDArray:
        """Values of the stack as they are given to users."""
        return values

    def _in_units(self, explained: Explained) -> Explained:
        """Shares in the units of a regressor's targets."""
        return explained.scaled(self.scale_[0], self.mean_[0])

    def _check_explainable(self, reverse: ArrayLike | None) -> None:
        """Say where there are no shares of training items."""
        if getattr(self, "one_way_", None) is not None and reverse is None:
            raise ValueError(
                "explain needs both directions of new items; pass the other one as reverse."
            )
        if is_classifier(self) and len(self.classes_) < 2:
            raise ValueError(
                "The training items have one class only, so that there is nothing to explain."
            )
        if not is_classifier(self) and len(self.mean_) > 1:
            raise ValueError("explain takes models of one output; fit one model per output.")


class StackClassifier(ClassifierMixin, KernelStack):
    """The methods of a stack that classifies."""

    def _task(self, y: Any, sample_weight: Any, groups: Any) -> Task:
        labels = check_labels(y, type(self).__name__)
        weight = check_weight(sample_weight, len(labels))
        groups = check_groups(groups, len(labels))
        if groups is not None:
            is_used = weight > 0.0
            warn_of_lonely_classes(labels[is_used], groups[is_used])
        return Task(labels, weight, groups, encode_classes)

    def _finish(self, attributes: dict[str, Any]) -> Self:
        held = attributes["out_of_fold_"]
        attributes["out_of_fold_"] = held._replace(
            target=np.searchsorted(attributes["classes_"], held.target)
        )
        return super()._finish(attributes)

    @blockwise
    def predict_proba(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input their similarities (or distances) to the training items or landmarks, one
            row per new item. For several similarities the same list or dict as in training.
        diag : array-like of shape (n_samples,), float or None, default=None
            For precomputed similarities whose training diagonal is not constant: the new items' own similarities
            ``k(x, x)``. Without them the families that need distances are left out.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            For a precomputed directed matrix and a direction of "mean" or "both": the similarities of the training
            items to the new ones, one row per new item. Without it a stack for one direction judges, with a warning.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._predict(X, diag, reverse)

    @blockwise
    def decision_function(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """Log-odds of the second of two classes, or log-probabilities of more.

        Parameters
        ----------
        X, diag, reverse : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The decision values.
        """
        logs = np.log(np.maximum(self.predict_proba(X, diag, reverse), np.finfo(float).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    @blockwise
    def predict(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """The most probable class.

        Parameters
        ----------
        X, diag, reverse : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        proba = self.predict_proba(X, diag, reverse)
        return self.classes_[proba.argmax(axis=1)]


class StackRegressor(MultiOutputMixin, RegressorMixin, KernelStack):
    """The methods of a stack that predicts numbers."""

    def _task(self, y: Any, sample_weight: Any, groups: Any) -> Task:
        numbers = check_targets(y, type(self).__name__)
        weight = check_weight(sample_weight, len(numbers))
        return Task(numbers, weight, check_groups(groups, len(numbers)), encode_numbers)

    def _finish(self, attributes: dict[str, Any]) -> Self:
        stack = attributes["stack_"]
        super()._finish(attributes | {"n_fenced_": getattr(stack, "total", stack).n_fenced})
        self.out_of_fold_ = self.out_of_fold_._replace(
            prediction=self._decode(self.out_of_fold_.prediction)
        )
        return self

    def _decode(self, values: NDArray) -> NDArray:
        values = values * self.scale_ + self.mean_
        return values[:, 0] if self.out_of_fold_.target.ndim == 1 else values

    @blockwise
    def predict(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """Predicted numbers.

        Parameters
        ----------
        X, diag, reverse : array-like
            New items, their own similarities and their other direction, as for `SimilarityClassifier.predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        return self._decode(self._predict(X, diag, reverse))
