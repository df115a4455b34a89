"""The machine of the LAB paper: one expansion on few support points with learned local bandwidths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import blockwise, check_rows, is_dask, map_rows, reduce_rows, take_rows
from mercerless.core.calibration import Calibration, calibrate_scores, cross_calibrate
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import (
    FittedEstimator,
    Progress,
    all_or_nothing,
    class_scores,
    signed_targets,
)
from mercerless.core.folds import (
    OutOfFold,
    Split,
    assign_folds,
    check_groups,
    hold_out,
    make_folds,
    some_rows,
    warn_of_lonely_classes,
)
from mercerless.core.memory import check_memory, row_blocks
from mercerless.core.optional import with_callbacks
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_centers
from mercerless.core.threads import one_blas_thread
from mercerless.core.units import BLOCK_BYTES, Standardizer, warn_if_nothing_varies
from mercerless.core.validation import (
    check_classes,
    check_labels,
    check_number,
    check_option,
    check_random_state,
    check_targets,
    check_weight,
    labels_of,
    leave_one_out_constant,
    validate_data,
    warn,
    warn_if_useless,
)
from mercerless.kernels.local import FixedPoints
from mercerless.lab.learning import Learned, LocalLearner, Validated
from mercerless.lab.model import FORMS, LocalForm, Rows, Scaling
from mercerless.lab.optimizers import SGD, check_optimizer
from mercerless.lab.solver import Moments
from mercerless.lab.support import Support, check_support, support_size

#: Bandwidths are learned on at least so many rows, and on so many per support point.
LEARNING_ROWS, ROWS_PER_POINT = 10_000, 20
#: Up to so many rows there are five folds, then three, above one hold-out; the last number also for classes.
FIVE_FOLDS, THREE_FOLDS, THREE_FOLDS_OF_CLASSES = 100, 1300, 2500
#: Entries times features above which kernels are learned in single precision, except for interpolation, whose matrix
#: is not regularized.
SINGLE = 2**21
#: With more features, and fewer support points than features, there is no linear part.
MANY_FEATURES = 50


class Training(NamedTuple):
    """The rows of a fit that have weight: in memory, a memory map or a Dask array."""

    X: Any
    target: NDArray  # numbers, or the numbers of the classes
    Y: NDArray  # the columns to fit, standardized
    weight: NDArray
    groups: NDArray | None
    used: NDArray  # the positions of these rows among all rows given to fit


class HeldOut(NamedTuple):
    """Predictions of rows that validation held out; none without validation."""

    rows: NDArray  # positions among those of the training
    predictions: NDArray  # (n_held_out, n_outputs)


class _LAB(ConformalMixin, ReasonsMixin, FittedEstimator):
    """Base of the regressor and the classifier, which differ in their targets."""

    expansion_: LocalForm
    _classifies = False
    _without_out_of_fold = (
        "fit it on at least five rows with validation_fraction=0.2 and optimizer=None"
    )

    def __init__(
        self,
        n_support: int | float | str | Support = "auto",
        *,
        kernel: str = "gaussian",
        objective: str = "evidence",
        alpha: float | None = None,
        validation_fraction: float | None = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        optimizer: SGD | Sequence[SGD] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_support = n_support
        self.kernel = kernel
        self.objective = objective
        self.alpha = alpha
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.optimizer = optimizer
        self.random_state = random_state

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
        X : array-like, data frame or dask.array.Array of shape (n, n_features)
            The rows. A float32 or float64 memory map, or a Dask array, is read block by block.
        y : array-like of shape (n,), or (n, n_outputs) for a regressor
            The targets, or the labels.
        sample_weight : array-like of shape (n,) or None, default=None
            Row weights; rows of weight 0 are left out.
        groups : array-like of shape (n,) or None, default=None
            Rows of one group (a patient, a machine, a stretch of time) are never on both sides of a validation split.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._column_labels = labels_of(X)
        with self._progress() as progress, one_blas_thread():
            self._learn(X, y, sample_weight, groups, progress)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress) -> None:
        """Check the targets, fit, and set the fitted attributes."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, check: Callable, **options: Any) -> tuple[Any, NDArray]:
        """Checked rows and targets; a Dask array is checked as it is read."""
        name = type(self).__name__
        if is_dask(X):
            rows = check_rows(X)
            self.n_features_in_ = rows.shape[1]
            y = check(None if y is None else np.asarray(y), name)
            check_consistent_length(rows, y)
            if len(rows) < 2:
                raise ValueError("X has one row; at least two are needed.")
            return rows, y
        dtypes = [np.float64, np.float32]
        rows, y = validate_data(self, X, y, dtype=dtypes, ensure_min_samples=2, **options)
        return rows, check(y, name)

    def _training(
        self, X: Any, target: NDArray, Y: NDArray, weight: NDArray, groups: Any
    ) -> Training:
        """Without the rows of weight 0."""
        groups = check_groups(groups, len(target))
        used = np.flatnonzero(weight > 0)
        if len(used) < 2:
            raise ValueError("Only one row has a positive sample_weight; at least two are needed.")
        if len(used) < len(target):
            X, target, Y, weight = X[used], target[used], Y[used], weight[used]
            groups = None if groups is None else groups[used]
        return Training(X, target, Y, weight, groups, used)

    @property
    def _optimizers(self) -> Sequence[SGD]:
        """The steps on batches, one after the other; none for L-BFGS."""
        if self.optimizer is None:
            return ()
        return self.optimizer if isinstance(self.optimizer, (list, tuple)) else (self.optimizer,)

    @property
    def _support(self) -> Support:
        return self.n_support if isinstance(self.n_support, Support) else Support(self.n_support)

    def _check_parameters(self, n: int) -> None:
        check_option("kernel", self.kernel, tuple(FORMS))
        check_option("objective", self.objective, ("evidence", "interpolation"))
        check_support(self._support, n)
        check_number("alpha", self.alpha, none=True)
        check_number("max_iter", self.max_iter, whole=True)
        check_number("max_rows", self.max_rows, whole=True, none=True)
        fraction = self.validation_fraction
        if fraction is not None and not 0 < fraction < 1:
            raise ValueError(
                f"validation_fraction={fraction!r} must lie between 0 and 1, or be None."
            )
        given = self.optimizer
        if not all(isinstance(optimizer, SGD) for optimizer in self._optimizers):
            raise ValueError(
                f"optimizer={given!r} must be None, Adam(...), SGD(...), or a list of these."
            )
        if given is not None and self.objective != "interpolation":
            raise ValueError(
                f"optimizer={given!r} takes the steps of the paper's Algorithm 1, which minimize "
                f"objective='interpolation', not {self.objective!r}."
            )
        for optimizer in self._optimizers:
            check_optimizer(optimizer)

    def _fit_machine(
        self, training: Training, units: Standardizer, progress: Progress
    ) -> tuple[dict[str, Any], HeldOut]:
        """The fitted attributes that regressors and classifiers share, and the predictions of validation."""
        X, n = training.X, len(training.X)
        self._check_parameters(n)
        d = X.shape[1]
        random = check_random_state(self.random_state)
        seed = random.randint(2**31 - 1)
        support = self._support
        needs_others = self.objective == "interpolation" or support.max_error is not None
        n_support = support_size(support.n_support, n, needs_others)
        limit = self.max_rows or max(LEARNING_ROWS, ROWS_PER_POINT * n_support)
        numbers = some_rows(n, limit, random)
        n_support = min(n_support, len(numbers))
        n_iter = 0

        def report(info: dict) -> bool:
            nonlocal n_iter
            n_iter += 1
            return progress.step(info)

        scaling = Scaling.to_range(X) if self._optimizers else Scaling.standard(X, training.weight)
        n_varying = max(1, int(np.isfinite(scaling.scale).sum()))
        learner = LocalLearner(
            form=self.kernel,
            objective=self.objective,
            ridge=self.alpha,
            max_iter=self.max_iter,
            support=support,
            n_support=n_support,
            n_varying=n_varying,
            linear=n_varying <= max(MANY_FEATURES, n_support),
            optimizers=self._optimizers,
            seed=seed,
            report=report,
        )
        is_large = len(numbers) * n_support * d > SINGLE
        dtype = np.float32 if is_large and self.objective == "evidence" else np.float64
        self._check_memory(len(numbers), d, learner, np.dtype(dtype).itemsize)
        weight = training.weight / training.weight.mean()
        rows = Rows(scaling(take_rows(X, numbers), dtype), training.Y[numbers], weight[numbers])
        warn_if_nothing_varies(rows.X, 1.0)
        folds = self._folds(training, numbers, rows, random)
        if folds:
            validated = learner.validate(rows, folds)
        else:
            nothing = np.zeros((0, rows.Y.shape[1]))
            validated = Validated(learner.learn(rows), nothing, np.zeros((0, 2)))
        learned = validated.learned

        def total(function: Callable[..., Moments]) -> Moments:
            if len(numbers) == n:
                return function(rows.X, rows.Y, rows.weight)
            return reduce_rows(
                lambda X, Y, weight: function(scaling(X, dtype), Y, weight),
                Moments.merge,
                [X, training.Y, weight],
                32.0 * (d + n_support),
                BLOCK_BYTES,
            )

        coef, linear = learner.coefficients(learned, rows, total)
        support = numbers[learned.support]
        form = LocalForm(
            name=self.kernel,
            kernel=FORMS[self.kernel](np.exp(learned.log_bandwidths)),
            support=training.used[support],
            support_vectors=take_rows(X, support).astype(np.float64),
            centers=rows.X[learned.support],
            dual_coef=coef.T,
            coef=linear[1:].T,
            intercept=linear[0],
            alpha=float(np.exp(learned.log_ridge)),
            scaling=scaling,
        )
        errors = np.sum((form(take_rows(X, numbers)) - rows.Y) ** 2, axis=1)
        self._warn_of_growth(errors, learned, n)
        form = form.in_units(units)
        sizes = [form.centers, form.kernel.bandwidths, form.dual_coef, form.coef, form.intercept]
        max_error = float(errors.max())
        attributes = {
            "expansion_": form,
            "support_": form.support,
            "support_vectors_": form.support_vectors,
            "bandwidths_": np.array(form.bandwidths),
            "dual_coef_": form.dual_coef,
            "coef_": form.coef,
            "intercept_": form.intercept,
            "alpha_": form.alpha,
            "scaling_": form.scaling,
            "n_support_": len(form.support),
            "n_parameters_": sum(np.size(array) for array in sizes),
            "n_iter_": max(1, n_iter),
            "loss_curve_": learned.losses,
            "validation_curve_": validated.curve,
            "growth_curve_": np.array(learned.growth or [(len(form.support), max_error)]),
            "certificate_": learned.certificate,
            "max_error_": max_error,
        }
        held_out = np.concatenate([np.zeros(0, dtype=int), *[test for _, test in folds]])
        return attributes, HeldOut(numbers[held_out], validated.predictions)

    @staticmethod
    def _check_memory(n: int, d: int, learner: LocalLearner, itemsize: int) -> None:
        m = learner.n_support
        if learner.grows:
            m = min(n, learner.support.max_support or n)
        need = n * 4.5 * itemsize * (m + d) + 400.0 * m * d + 1.25 * BLOCK_BYTES
        if learner.form == "laplace":  # the distances that `FixedPoints` keeps
            need += min(FixedPoints.most_bytes, itemsize * n * m * d)
        what = f"Learning {m} support points of {d} features on {n} rows"
        check_memory(need, what, remedy="set a smaller max_rows or n_support")

    def _folds(
        self, training: Training, numbers: NDArray, rows: Rows, random: np.random.RandomState
    ) -> list[Split]:
        """Five folds of few rows, then three, one hold-out of many; groups and equal rows on one side."""
        n = len(numbers)
        # Algorithm 1 holds nothing out
        if self.validation_fraction is None or self._optimizers or n < 5:
            return []
        options: dict[str, Any] = {
            "classify": self._classifies,
            "groups": None if training.groups is None else training.groups[numbers],
            "random_state": random,
        }
        labels = training.target[numbers] if self._classifies else None
        if n <= (THREE_FOLDS_OF_CLASSES if self._classifies else THREE_FOLDS):
            return make_folds(5 if n <= FIVE_FOLDS else 3, rows.X, labels, **options)
        return [hold_out(self.validation_fraction, rows.X, labels, **options)]

    def _warn_of_growth(self, errors: NDArray, learned: Learned, n: int) -> None:
        """Warn if growth did not reach its bound, with the remedy, or if Algorithm 1 diverged."""
        bound = self._support.max_error
        if bound is not None and errors.max() > bound * (1 + 1e-6):
            remedy = "raise max_support or max_error"
            if errors.argmax() in learned.support:
                remedy = (
                    "that row is a support point, which the ridge keeps from being met; use "
                    "objective='interpolation' with a small alpha, or raise max_error"
                )
            warn(
                f"Growth ended at {len(learned.support)} support points with a squared error of "
                f"{errors.max():.3g}, more than max_error={bound}: {remedy}.",
                ConvergenceWarning,
            )
        elif bound is not None and len(errors) < n:
            warn(
                f"max_error={bound} holds for the {len(errors)} rows that growth saw; set "
                f"max_rows={n} to use all.",
                ConvergenceWarning,
            )
        if not np.isfinite(learned.certificate):
            warn(
                "The steps on batches did not lower the error of the last support; lower the "
                "learning_rate of the optimizer, or use optimizer=None.",
                ConvergenceWarning,
            )

    def _scores(self, X: Any) -> NDArray:
        """Predictions in row blocks, one column per function."""
        check_is_fitted(self)
        rows = self._new_rows(X)
        bytes_per_row = 24.0 * (rows.shape[1] + self.n_support_)
        n_functions = len(self.intercept_)
        return map_rows(
            self.expansion_.__call__, rows, bytes_per_row, n_columns=n_functions, budget=BLOCK_BYTES
        )

    def _new_rows(self, X: Any) -> NDArray:
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def _explain_blocks(self, X: Any) -> Iterator[Explained]:
        """Shares of the support points; the linear part belongs to the base."""
        rows = self._new_rows(X)
        form = self.expansion_
        calibration = getattr(self, "calibration_", None)
        for block in row_blocks(len(rows), 48.0 * self.n_support_, BLOCK_BYTES):
            K = form.compare(rows[block])
            base = form(rows[block]) - K @ form.dual_coef.T
            explained = explain_centers([Term(form.name, K, form.dual_coef)], base, calibration)
            relevance = (K * np.abs(form.dual_coef).sum(axis=0)) @ (1.0 / form.bandwidths)
            total = relevance.sum(axis=1, keepdims=True)
            yield explained._replace(relevance=relevance / np.where(total > 0, total, 1.0))

    @property
    def _basis_rows(self) -> NDArray:  # type: ignore[override]
        return self.support_


class LABRegressor(MultiOutputMixin, RegressorMixin, _LAB):
    """Regression on few support points, each with its own learned bandwidth for every feature.

    ``f(x) = sum_j dual_coef_j k(x, s_j) + linear part``, ``k(x, s_j) = exp(-sum_f ((x_f - s_jf) / h_jf)^2 / 2)`` or
    the Laplace form ``exp(-sum_f |x_f - s_jf| / h_jf)``. The bandwidths minimize the evidence of the coefficients given
    all rows, which also learns the ridge; first one bandwidth per feature, then one per feature and support point,
    pulled toward the shared one. Validation stops the descent. Features and targets are standardized. With more than
    50 features and fewer support points there is no linear part.

    Parameters
    ----------
    n_support : int, float, "auto" or Support, default="auto"
        Support points: a number, a fraction of the rows, or "auto": half of the rows, from 100 (or all) to 200; a
        quarter up to 200 for interpolation and growth, where the other rows decide. `Support` also sets how they are
        chosen, and adds more where errors are large, as the paper does.
    kernel : {"gaussian", "laplace", "exponential"}, default="gaussian"
        The form.
    objective : {"evidence", "interpolation"}, default="evidence"
        The objective of the bandwidths: the evidence, which also learns the ridge, or the paper's squared error off the
        support of the function that interpolates the support.
    alpha : float or None, default=None
        The ridge per row; None learns it with the evidence and means 1e-5 otherwise.
    validation_fraction : float or None, default=0.2
        The rows held out, above 1300 rows, to choose the number of iterations; smaller data are cross-validated. None
        means no validation: all iterations.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned; None means 10,000, or 20 per support point if that is more. The
        coefficients come from all rows, which are read block by block and may be a memory map or a Dask array. A fit
        needs about ``4.5 itemsize max_rows (n_support + n_features)`` bytes besides the data.
    optimizer : Adam, SGD, a list of these or None, default=None
        None descends by L-BFGS. Otherwise the paper's Algorithm 1, which needs ``objective="interpolation"``: steps on
        batches (of a list one after the other), features and target scaled to [-1, 1], no shared bandwidths, bounds,
        pull or validation.
    random_state : int, RandomState or None, default=0
        Makes the folds and the selection repeatable.

    Attributes
    ----------
    expansion_ : LocalForm
        The function: ``expansion_(X)`` are the predictions, one column per output. It holds its ``kernel``,
        ``centers`` (scaled support vectors) and the values of the attributes below.
    support_ : ndarray of shape (n_support,)
        The training rows that are support points.
    support_vectors_ : ndarray of shape (n_support, n_features)
        These rows.
    bandwidths_ : ndarray of shape (n_support, n_features)
        The bandwidths, in units of the scaled features (`scaling_`): large where a feature does not matter.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        The coefficients of the support points.
    coef_ : ndarray of shape (n_outputs, n_features)
        The coefficients of the scaled features.
    intercept_ : ndarray of shape (n_outputs,)
        The constants.
    alpha_ : float
        The ridge.
    scaling_ : callable
        Scales features as the kernel sees them.
    n_support_, n_parameters_ : int
        Support points, and the size of the model: all numbers it needs to predict, besides the scaling.
    n_iter_ : int
        All iterations of all descents.
    loss_curve_ : ndarray
        The objective after every iteration; with an `optimizer` the mean squared error of every batch.
    validation_curve_ : ndarray of shape (n_checkpoints, 2)
        Iterations and validation errors (mean squared, standardized targets); empty without validation.
    certificate_ : float
        The projected gradient at the end of the descent relative to its start: 0 at a stationary point, 1 without any
        step; early stopping leaves it positive, and steps on batches that diverged make it infinite.
    max_error_ : float
        The largest squared error on a row that the bandwidths were learned on, standardized (with an `optimizer` scaled
        to [-1, 1]), which a `Support` that grows bounds.
    growth_curve_ : ndarray of shape (n_rounds, 2)
        Support points and the largest squared error after every round of growth; one round without growth.
    out_of_fold_ : OutOfFold or None
        Predictions of the rows that validation held out (all of them up to 1300, else a part): `rows`, `prediction`
        and `target`; None without validation. The rows of a fold are predicted after the number of iterations that the
        other folds choose. The scaling, which is decided once for all rows, has seen every target.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    LABClassifier : The classifier.
    TableRegressor : Averages such machines with others; for tables with words and gaps.
    AsymmetricRidge : Ridge regression for any given asymmetric kernel.

    Notes
    -----
    Beyond the paper: all rows, not only the support, determine the coefficients; the ridge is learned; there is a
    linear part; bounds and a pull keep the bandwidths sane. ``objective="interpolation"`` is the paper's objective;
    with ``n_support=Support(..., selection="y", step=..., max_error=...)`` and ``optimizer=Adam(...)`` it is learned by
    the paper's Algorithm 1.

    References
    ----------
    F. He, M. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning Analysis of Kernel Ridgeless Regression with Asymmetric
    Kernel Learning", 2024.

    Examples
    --------
    >>> from mercerless import LABRegressor
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(400, function="f1", noise=0.05, random_state=0)
    >>> model = LABRegressor(n_support=30, random_state=0).fit(X[:300], y[:300])
    >>> model.bandwidths_.shape, model.n_parameters_
    ((30, 2), 153)
    >>> bool(model.score(X[300:], y[300:]) > 0.9)
    True
    """

    def _learn(self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress) -> None:
        rows, target = self._read(X, y, check_targets, multi_output=True, y_numeric=True)
        weight = check_weight(sample_weight, len(target))
        Y = target.reshape(len(target), -1)
        units = Standardizer.fit(Y, weight)
        if self._optimizers:
            ranges = Scaling.to_range(Y[weight > 0])
            units = Standardizer(ranges.center, ranges.scale)
        training = self._training(rows, target, units(Y), weight, groups)
        attributes, held = self._fit_machine(training, units, progress)
        held_out = None
        if len(held.rows):
            truth = training.Y[held.rows]
            losses = np.sum((held.predictions - truth) ** 2, axis=1)
            weight = training.weight[held.rows]
            constant = leave_one_out_constant(truth, weight)
            warn_if_useless(losses, constant, type(self).__name__, weight)
            truth = training.target[held.rows]
            held_out = OutOfFold(
                training.used[held.rows],
                units.undo(held.predictions).reshape(truth.shape),
                truth,
                None if training.groups is None else training.groups[held.rows],
            )
        self._set_fitted(**attributes, out_of_fold_=held_out)
        self._one_output = target.ndim == 1

    @blockwise
    def predict(self, X: Any) -> NDArray:
        """Predict targets, in row blocks, lazily for a Dask array.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
            The predictions.
        """
        scores = self._scores(X)
        return scores[:, 0] if self._one_output else scores


class LABClassifier(ClassifierMixin, _LAB):
    """Classification on few support points, each with its own learned bandwidth for every feature.

    Least squares on targets of plus and minus one (one column for two classes, one per class otherwise) with the model
    and the objective of `LABRegressor`. Probabilities are ``softmax(slope * scores + bias)``, fitted on out-of-fold
    scores.

    Parameters
    ----------
    n_support : int, float, "auto" or Support, default="auto"
        Support points, as in `LABRegressor`.
    kernel : {"gaussian", "laplace", "exponential"}, default="gaussian"
        The form.
    objective : {"evidence", "interpolation"}, default="evidence"
        The objective of the bandwidths, as in `LABRegressor`.
    alpha : float or None, default=None
        The ridge per row; None learns it with the evidence and means 1e-5 otherwise.
    validation_fraction : float or None, default=0.2
        The rows held out, above 2500 rows, to choose the number of iterations; smaller data, and up to 5000 rows of
        which few would be outside of the largest class, are cross-validated. None means no validation: all iterations.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time, as in `LABRegressor`.
    optimizer : Adam, SGD, a list of these or None, default=None
        Steps of the paper's Algorithm 1, as in `LABRegressor`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the sample weights.
    random_state : int, RandomState or None, default=0
        Makes the folds and the selection repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    calibration_ : Calibration
        Slope and bias of the probabilities: ``calibration_(scores)`` with ``scores = expansion_(X)``
        (f of two classes counts as -f / 2 and f / 2).
    expansion_ : LocalForm
        The function, as in `LABRegressor`, with one column for two classes and one per class otherwise.
    support_, support_vectors_, bandwidths_, dual_coef_, coef_, intercept_, alpha_, n_support_, n_parameters_
        As in `LABRegressor`.
    scaling_, n_iter_, loss_curve_, validation_curve_, certificate_, max_error_, growth_curve_
        As in `LABRegressor`.
    out_of_fold_ : OutOfFold or None
        Probabilities of the rows that validation held out, as in `LABRegressor`; `target` is the number of the class.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    LABRegressor : The regressor.
    TableClassifier : Averages such machines with others; for tables with words and gaps.
    AsymmetricRidgeClassifier : For any given asymmetric kernel.

    References
    ----------
    F. He, M. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning Analysis of Kernel Ridgeless Regression with Asymmetric
    Kernel Learning", 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercerless import LABClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LABClassifier(n_support=20, random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    classes_: NDArray
    calibration_: Calibration
    _classifies = True

    def __init__(
        self,
        n_support: int | float | str | Support = "auto",
        *,
        kernel: str = "gaussian",
        objective: str = "evidence",
        alpha: float | None = None,
        validation_fraction: float | None = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        optimizer: SGD | Sequence[SGD] | None = None,
        class_weight: dict | str | None = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_support,
            kernel=kernel,
            objective=objective,
            alpha=alpha,
            validation_fraction=validation_fraction,
            max_iter=max_iter,
            max_rows=max_rows,
            optimizer=optimizer,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _learn(self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress) -> None:
        rows, y = self._read(X, y, check_labels)
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        Y = signed_targets(labels, len(classes))
        # one scale for all classes, so that rare ones are not blown up
        units = Standardizer.fit(Y, weight)
        units = units._replace(scale=np.full(Y.shape[1], np.sqrt(np.mean(units.spread**2))))
        if self._optimizers:
            units = Standardizer(np.zeros(Y.shape[1]), np.ones(Y.shape[1]))
        training = self._training(rows, labels, units(Y), weight, groups)
        groups = training.groups
        warn_of_lonely_classes(classes[training.target], groups, training.weight)
        attributes, (held, predictions) = self._fit_machine(training, units, progress)
        held_out = None
        if len(held):
            scores = class_scores(units.undo(predictions))
            truth, weight = training.target[held], training.weight[held]
            folds = None
            if groups is not None:
                groups = groups[held]
                folds = assign_folds(5, len(held), together=groups, random_state=0)
            proba = cross_calibrate(scores, truth, weight, folds)
            held_out = OutOfFold(training.used[held], proba, truth, groups)
            indicator = np.eye(len(classes))[truth]
            losses = np.sum((proba - indicator) ** 2, axis=1)
            constant = leave_one_out_constant(indicator, weight)
            warn_if_useless(losses, constant, type(self).__name__, weight)
        else:  # the targets themselves, with the slope's prior keeping it modest
            scores = class_scores(units.undo(training.Y))
            truth, weight = training.target, training.weight
        self._set_fitted(
            **attributes,
            classes_=classes,
            calibration_=calibrate_scores(scores, truth, weight),
            out_of_fold_=held_out,
        )

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
