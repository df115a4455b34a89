"""Bases of the machine on local bandwidths and of the table learner: held-out rows, predictions, explanations."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from mercerless.core.blocks import blockwise, check_rows, map_rows
from mercerless.core.calibration import Calibration, calibrate_scores, cross_calibrate
from mercerless.core.conformal import ConformalMixin, conformal_quantile
from mercerless.core.estimator import FittedEstimator, Progress, all_or_nothing, class_scores
from mercerless.core.folds import OutOfFold, assign_folds, warn_of_lonely_classes
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.optional import with_callbacks
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_centers
from mercerless.core.scaling import BLOCK_BYTES
from mercerless.core.threads import one_blas_thread
from mercerless.core.validation import (
    align_by_name,
    check_classes,
    check_labels,
    check_number,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn_if_useless,
)
from mercerless.lab.data import Plan, Table, drop_weightless, learning_blocks, learning_rows
from mercerless.lab.model import LocalForm
from mercerless.lab.spread import Spread, posterior_of, signs_of


class TrainingRows(NamedTuple):
    """The rows of a fit that have weight, with their targets, weights and groups."""

    rows: Any
    target: NDArray  # numbers, or the numbers of the classes
    weight: NDArray
    groups: NDArray | None
    used: NDArray  # the places of these rows among all rows given to fit
    columns: Any  # of a table: the types of its columns
    classes: NDArray = np.zeros(0)  # the names of the classes; none for numbers

    def weight_of(self, places: NDArray) -> NDArray:
        """The weights of rows by their places among all rows given to fit."""
        return self.weight[np.searchsorted(self.used, places)]


class LocalEstimator(ConformalMixin, ReasonsMixin, FittedEstimator):
    """Base of estimators whose predictions are sums of local forms, and perhaps of other members.

    A subclass has the parameters ``validation_fraction``, ``max_iter``, ``max_rows`` and ``random_state``.
    """

    validation_fraction: float | None
    max_iter: int
    max_rows: int | None
    _n_functions: int  # outputs, or 1 for two classes, or classes

    @with_callbacks
    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame or dask.array.Array of shape (n, n_features)
            The rows: numbers, and for a learner of tables also words, dates and gaps. A float32 or float64 memory map,
            or a Dask array (without missing values), is read block by block.
        y : array-like of shape (n,), or (n, n_outputs) for a regressor
            The targets, or the labels. If X and y have a pandas index of the same unique names in another order, they
            are matched by name; otherwise, and with a RangeIndex, by position.
        sample_weight : array-like of shape (n,) or None, default=None
            Row weights, matched as y; rows of weight 0 are left out.
        groups : array-like of shape (n,) or None, default=None
            Rows of one group (a patient, a machine, a stretch of time) are never on both sides of a validation split;
            matched as y.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = self._as_rows(X)
        y = align_by_name(X, y)
        sample_weight = align_by_name(X, sample_weight)
        groups = align_by_name(X, groups)
        training = self._read_training(X, y, sample_weight, groups)
        with self._progress() as progress, one_blas_thread():
            self._fit_training(training, progress)
        return self

    def _as_rows(self, X: Any) -> Any:
        """X in a form that has rows."""
        return X

    def _read_training(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> TrainingRows:
        """Validated rows, targets, weights and groups."""
        raise NotImplementedError

    def _read_rows(
        self, X: Any, y: Any, check: Callable, **options: Any
    ) -> tuple[Any, NDArray, Any]:
        """Validated rows of numbers, targets in memory, and the types of the columns."""
        raise NotImplementedError

    def _fit_training(self, training: TrainingRows, progress: Progress) -> None:
        """Learn, and set the fitted attributes."""
        raise NotImplementedError

    def _new_rows(self, X: Any) -> NDArray:
        """Validated new rows, as the forms see them."""
        raise NotImplementedError

    def _predict_rows(self, rows: NDArray) -> NDArray:
        """Predictions for validated rows, one column per function."""
        raise NotImplementedError

    def _kernel_forms(self) -> list[LocalForm]:
        """The parts of the model with support points, with their weights in the average."""
        raise NotImplementedError

    def _kernels(self, rows: NDArray) -> Iterator[tuple[LocalForm, NDArray]]:
        """These with their kernel matrices."""
        raise NotImplementedError

    def _check_learning(self) -> None:
        """Check the parameters of the learning that both share."""
        check_number("max_iter", self.max_iter, whole=True, none=True)
        check_number("max_rows", self.max_rows, whole=True, none=True)

    def _dask_rows(self, X: Any, y: Any, check: Callable) -> tuple[Any, NDArray]:
        """A Dask array that is checked as it is read, and targets in memory."""
        rows = check_rows(X)
        self.n_features_in_ = rows.shape[1]
        return rows, self._targets_of(rows, y, check)

    def _targets_of(self, rows: Any, y: Any, check: Callable) -> NDArray:
        """Checked targets of rows that scikit-learn has not seen."""
        if y is not None:
            y = np.asarray(y)
        y = check(y, type(self).__name__)
        check_consistent_length(rows, y)
        if len(rows) < 2:
            raise ValueError("X has one row; at least two are needed.")
        return y

    def _learning_blocks(
        self, shape: tuple[int, int], m: int, random: np.random.RandomState
    ) -> tuple[NDArray, list[NDArray]]:
        """The rows to learn m support points on, and further blocks."""
        n, d = shape
        limit = self.max_rows
        if limit is None:
            limit = learning_rows(m, d, memory_budget())
        return learning_blocks(n, limit, random)

    @staticmethod
    def _check_memory(plan: Plan, shape: tuple[int, int], n_outputs: int, remedy: str) -> None:
        n, d = shape
        points = f"{plan.max_support} support points of {d} features"
        what = f"Learning {points} on {len(plan.rows)} of {n} rows"
        check_memory(plan.n_bytes(n, n_outputs), what, remedy=remedy)

    def _scores(self, X: ArrayLike) -> NDArray:
        """Predictions in row blocks, one column per function."""
        rows = self._new_rows(X)
        sizes = [len(form.centers) for form in self._kernel_forms()]
        per_row = 24.0 * (rows.shape[1] + max(sizes, default=1))
        return map_rows(
            self._predict_rows, rows, per_row, n_columns=self._n_functions, budget=BLOCK_BYTES
        )

    def _explain_blocks(self, X: ArrayLike) -> Iterator[Explained]:
        """Shares of the support points, form by form; linear parts, trees and experts belong to the base."""
        rows = self._new_rows(X)
        items = self._explained_items()
        calibration = getattr(self, "calibration_", None)
        if not len(items):
            raise ValueError(
                "Validation preferred boosted trees or experts on parts alone, which have no "
                "support points."
            )
        bytes_per_row = 24.0 * len(self._kernel_forms()) * len(items)
        for some in row_blocks(len(rows), bytes_per_row, BLOCK_BYTES):
            base = self._predict_rows(rows[some])
            relevance = np.zeros((len(rows[some]), rows.shape[1]))
            terms = []
            for form, K in self._kernels(rows[some]):
                places = np.searchsorted(items, form.support)
                matrix = np.zeros((len(K), len(items)))
                coef = np.zeros((self._n_functions, len(items)))
                matrix[:, places] = K
                coef[:, places] = form.weight * form.dual_coef
                terms.append(Term(form.name, matrix, coef))
                base -= matrix @ coef.T
                sizes = matrix[:, places] * np.abs(coef[:, places]).sum(axis=0)
                relevance += sizes @ (1.0 / form.bandwidths)
            total = relevance.sum(axis=1, keepdims=True)
            explained = explain_centers(terms, base, calibration)
            yield explained._replace(relevance=relevance / np.where(total > 0, total, 1.0))

    def _explained_items(self) -> NDArray:
        supports = [form.support for form in self._kernel_forms()]
        return np.unique(np.concatenate([np.zeros(0, dtype=int), *supports]))


class LocalRegressorMixin(LocalEstimator):
    """Mixin for numbers as targets: predictions, and how far targets scatter around them."""

    spread_: list[Spread]
    _one_output: bool

    def _read_training(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> TrainingRows:
        rows, target, columns = self._read_rows(
            X, y, check_targets, multi_output=True, y_numeric=True
        )
        given = check_weight(sample_weight, len(rows))
        rows, target, weight, groups = drop_weightless(rows, target, given, groups)
        target = np.asarray(target, dtype=np.float64)
        return TrainingRows(rows, target, weight, groups, np.flatnonzero(given), columns)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict targets, in row blocks, lazily for a Dask array; with `return_std` also how far they scatter.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.
        return_std : bool, default=False
            Whether to return the standard deviation of a new target as well, noise included: the root of the mean
            square of the out-of-fold errors; if that fits held-out errors better, it grows with the prediction and with
            the posterior variance of the process that the evidence fitted (see `spread_`).

        Returns
        -------
        y : ndarray of shape (n,) or (n, n_outputs)
            The predictions.
        std : ndarray of shape (n,) or (n, n_outputs)
            The standard deviations, only with ``return_std=True``.
        """
        if return_std:
            self._held_out()  # raises if there are no errors to learn from
            return self._predict(X), self._std(X)
        return self._predict(X)

    @blockwise
    def _predict(self, X: ArrayLike) -> NDArray:
        scores = self._scores(X)
        return scores[:, 0] if self._one_output else scores

    def _spread_form(self) -> LocalForm | None:
        """The form whose posterior variance the spread knows: that with most centers."""
        forms = self._kernel_forms()
        return max(forms, key=lambda form: (len(form.centers), form.weight), default=None)

    def _interval_radius(self, X: Any, coverage: float, **new: Any) -> NDArray:
        """A multiple of the standard deviations, which the out-of-fold errors exceed as rarely."""
        self._held_out()  # raises if there are no errors to learn from
        multiples = np.array(
            [conformal_quantile(spread.ratios, coverage, spread.groups) for spread in self.spread_]
        )
        if self._one_output:
            multiples = multiples[0]
        return multiples * self._std(X)

    @blockwise
    def _std(self, X: ArrayLike) -> NDArray:
        """Standard deviations of new targets."""
        rows = self._new_rows(X)
        scores = self._scores(X)
        posterior = posterior_of(self._spread_form())
        std = np.empty(scores.shape)
        for some in row_blocks(len(rows), 24.0 * (rows.shape[1] + 1000), BLOCK_BYTES):
            for output, spread in enumerate(self.spread_):
                std[some, output] = spread(signs_of(posterior, rows[some], scores[some, output]))
        return std[:, 0] if self._one_output else std


class LocalClassifierMixin(LocalEstimator):
    """Mixin for classes as targets: predictions from calibrated scores."""

    class_weight: dict | str | None
    classes_: NDArray
    calibration_: Calibration

    def _read_training(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> TrainingRows:
        rows, target, columns = self._read_rows(X, y, check_labels)
        given, classes, labels = check_classes(
            target, sample_weight, self.class_weight, type(self).__name__
        )
        rows, labels, weight, groups = drop_weightless(rows, labels, given, groups)
        if groups is not None:
            warn_of_lonely_classes(classes[labels], groups)
        return TrainingRows(rows, labels, weight, groups, np.flatnonzero(given), columns, classes)

    @staticmethod
    def _calibrate(
        training: TrainingRows, table: Table, held: NDArray, scores: NDArray, Y: NDArray
    ) -> tuple[Calibration, OutOfFold | None]:
        """The calibration of scores of held-out rows, and these rows' probabilities.

        The probabilities of a row are calibrated without it and its group, and with the weights of the final ones, so
        that both are comparable. `Y` are the scores if there are no held-out rows.
        """
        labels = training.target
        calibration = calibrate_held_out(table, held, scores, labels, training.weight, Y)
        predicted = out_of_fold(training, table, held, scores)
        if predicted is not None:
            scores = class_scores(predicted.prediction)
            weight = training.weight_of(predicted.rows)
            groups = predicted.groups
            fold_of = None
            if groups is not None and len(np.unique(groups)) < len(groups):
                fold_of = assign_folds(5, len(scores), together=groups, random_state=0)
            probabilities = cross_calibrate(scores, predicted.target, weight, fold_of)
            predicted = predicted._replace(prediction=probabilities)
        return calibration, predicted

    @blockwise
    def decision_function(self, X: ArrayLike) -> NDArray:
        """The scores, shifted by the calibration's bias so that the largest has the largest probability.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            One score for two classes, positive for the second; else one per class.
        """
        scores = class_scores(self._scores(X))
        scores = scores + self.calibration_.bias / self.calibration_.slope
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            The labels.
        """
        scores = class_scores(self.decision_function(X))
        return self.classes_[scores.argmax(axis=1)]

    @blockwise
    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Predict probabilities.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
            The probabilities, in the order of ``classes_``.
        """
        scores = self._scores(X)
        return self.calibration_(class_scores(scores))


def counting(progress: Progress) -> tuple[Callable[[dict], bool], Callable[[], int]]:
    """A function that reports iterations to the callbacks, and one that returns their number, at least one."""
    n_iter = 0

    def report(info: dict) -> bool:
        nonlocal n_iter
        n_iter += 1
        return progress.step(info)

    return report, lambda: max(1, n_iter)


def judge_held_out(
    table: Table,
    held: NDArray,
    predictions: NDArray,
    correlation: float,
    name: str,
    labels: NDArray | None = None,
) -> None:
    """Warn if predictions of held-out rows are worse than a constant; with `labels`, their probabilities."""
    if not len(held):
        return
    truth = table.merged.Y[held]
    weight = table.weights(correlation)[held]
    if labels is not None:
        classes = labels[table.merged.first[held]]
        scores = class_scores(predictions)
        predictions = calibrate_scores(scores, classes, weight)(scores)
        truth = np.eye(scores.shape[1])[classes]
    losses = ((predictions - truth) ** 2).sum(axis=1)
    warn_if_useless(losses, leave_one_out_constant(truth, weight), name, weight)


def out_of_fold(
    training: TrainingRows, table: Table, held: NDArray, predictions: NDArray
) -> OutOfFold | None:
    """Out-of-fold predictions for every row, copies included; None without validation.

    `held` are distinct rows of the table, `predictions` theirs, in the units of the targets. If groups were given to
    fit, those of the rows are the sets that were held out together.
    """
    if len(held) == 0:
        return None
    place = np.full(table.shape[0], -1)
    place[held] = np.arange(len(held))
    place = place[table.copies]
    rows = np.flatnonzero(place >= 0)
    predictions = predictions[place[rows]]
    target = training.target
    if target.dtype.kind == "f":
        predictions = predictions.reshape(len(rows), *target.shape[1:])
    groups = None
    if training.groups is not None and table.groups is not None:
        groups = table.groups[table.copies[rows]]
    return OutOfFold(training.used[rows], predictions, target[rows], groups)


def calibrate_held_out(
    table: Table, held: NDArray, predictions: NDArray, labels: NDArray, weight: NDArray, Y: NDArray
) -> Calibration:
    """Slope and bias from out-of-fold scores; copies with the same label count as one row with their weight."""
    copies = table.copies
    # no validation: the targets themselves, with the slope's prior keeping it modest
    if len(held) == 0:
        copies = held = np.arange(len(labels))
        predictions = Y
    place = np.full(copies.max() + 1, -1)
    place[held] = np.arange(len(held))
    rows = np.flatnonzero(place[copies] >= 0)
    pairs, pair_of = np.unique(
        np.stack([place[copies[rows]], labels[rows]]), axis=1, return_inverse=True
    )
    counts = np.bincount(pair_of.ravel(), weights=weight[rows])
    return calibrate_scores(class_scores(predictions)[pairs[0]], pairs[1], counts)
