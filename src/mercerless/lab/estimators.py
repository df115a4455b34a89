"""The machine of the LAB paper: one expansion on few support points with learned local bandwidths."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import is_dask
from mercerless.core.estimator import (
    NamedClassifierMixin,
    NamedRegressorMixin,
    Progress,
    signed_targets,
)
from mercerless.core.scaling import FeatureScaling
from mercerless.core.validation import (
    align_columns,
    check_number,
    check_option,
    check_random_state,
    validate_data,
    warn,
)
from mercerless.lab.base import (
    LocalClassifierMixin,
    LocalEstimator,
    LocalRegressorMixin,
    TrainingRows,
    counting,
    judge_held_out,
    out_of_fold,
)
from mercerless.lab.data import Plan, Table, class_units, merge_rows, range_scaling, target_units
from mercerless.lab.machine import LocalMachine, fit_machine, largest_error
from mercerless.lab.model import FORMS, LocalForm, Settings, has_linear_part
from mercerless.lab.optimizers import SGD, check_optimizer
from mercerless.lab.spread import fit_spreads
from mercerless.lab.support import Support, check_support, support_size


class _LAB(LocalEstimator):
    """Base of the regressor and the classifier, which differ in their targets."""

    expansion_: LocalForm
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
        random_state: int | np.random.RandomState | None = None,
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

    @property
    def _optimizers(self) -> tuple[SGD, ...]:
        """The steps on batches, one after the other; none for L-BFGS."""
        if self.optimizer is None:
            return ()
        if isinstance(self.optimizer, SGD):
            return (self.optimizer,)
        return tuple(self.optimizer)

    def _check_optimizer(self) -> None:
        given = self.optimizer
        is_sequence = isinstance(given, (list, tuple)) and len(given) > 0
        if not (given is None or isinstance(given, SGD) or is_sequence) or not all(
            isinstance(optimizer, SGD) for optimizer in self._optimizers
        ):
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

    @property
    def _support(self) -> Support:
        if isinstance(self.n_support, Support):
            return self.n_support
        return Support(self.n_support)

    def _check_parameters(self, n: int) -> None:
        check_option("kernel", self.kernel, tuple(FORMS))
        check_option("objective", self.objective, ("evidence", "least_squares", "interpolation"))
        check_support(self._support, n)
        check_number("alpha", self.alpha, none=True)
        if self.validation_fraction is not None and not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} must lie between 0 and 1, or be "
                "None."
            )
        self._check_optimizer()
        self._check_learning()

    def _read_rows(
        self, X: Any, y: Any, check: Callable, **options: Any
    ) -> tuple[Any, NDArray, None]:
        self._keep_labels(X)
        if is_dask(X):
            return *self._dask_rows(X, y, check), None
        dtypes = [np.float64, np.float32]
        rows, y = validate_data(self, X, y, dtype=dtypes, ensure_min_samples=2, **options)
        return rows, check(y, type(self).__name__), None

    def _plan(self, shape: tuple[int, int], random: np.random.RandomState) -> Plan:
        """The plan for a table of this many distinct rows and features."""
        n, d = shape
        support = self._support
        m = support_size(support.n_support, n)
        seed = random.randint(2**31 - 1)
        rows, more = self._learning_blocks(shape, m, random)
        max_support = support.max_support
        if max_support is None:
            max_support = len(rows)
        settings = Settings(
            objective=self.objective,
            n_support=min(m, len(rows)),
            selection=support.selection,
            ridge=self.alpha,
            max_iter=self.max_iter,
            growth=support.max_error,
            growth_step=support.step,
            max_support=max_support,
            seed=seed,
            linear=has_linear_part(d, m),
            optimizers=self._optimizers,
        )
        # Algorithm 1 holds nothing out
        fraction = None if settings.optimizers else self.validation_fraction
        return Plan(settings, (self.kernel,), rows, more, fraction, d)

    def _learn(
        self, training: TrainingRows, Y: NDArray, labels: NDArray | None, progress: Progress
    ) -> tuple[Table, LocalMachine, int]:
        """The machine for rows and standardized targets, and how many iterations it took."""
        X = training.rows
        self._check_parameters(len(X))
        random = check_random_state(self.random_state)
        table = merge_rows(X, Y, training.weight, training.groups)
        plan = self._plan(table.shape, random)
        self._check_memory(plan, X.shape, Y.shape[1], "set a smaller max_rows or n_support")
        report, n_iter = counting(progress)
        machine = fit_machine(table, plan, labels, random, report)
        if plan.settings.grows and not is_dask(X):
            self._warn_of_growth(table, plan, machine, largest_error(machine.form, X, Y))
        name = type(self).__name__
        judge_held_out(table, machine.held, machine.out_of_fold, machine.copy_correlation, name)
        form = machine.form.numbered(training.used)
        return table, machine._replace(form=form), n_iter()

    @staticmethod
    def _warn_of_growth(table: Table, plan: Plan, machine: LocalMachine, error: float) -> None:
        """Warn if growth reached its bound for the rows that it saw, but other rows have larger errors."""
        bound = plan.settings.growth
        if bound is None or machine.max_error > bound or error <= bound * (1 + 1e-6):
            return
        if len(plan.rows) < table.shape[0]:
            n = len(table.copies)
            remedy = f"growth saw {len(plan.rows)} rows; set max_rows={n} to use all"
        else:
            remedy = "equal rows have different targets, which no function fits; raise max_error"
        warn(
            f"The largest squared error of a training row is {error:.3g}, more than "
            f"max_error={bound}: {remedy}.",
            ConvergenceWarning,
        )

    def _finish(self, machine: LocalMachine, units: FeatureScaling, **others: Any) -> None:
        """Set everything together, so that an interrupted fit leaves nothing half done."""
        form = machine.form.in_units(units.center, units.scale)
        self._set_fitted(
            expansion_=form,
            support_=form.support,
            support_vectors_=form.support_vectors,
            bandwidths_=np.array(form.bandwidths),
            dual_coef_=form.dual_coef,
            coef_=form.coef,
            intercept_=form.intercept,
            alpha_=form.alpha,
            scaling_=form.scaling,
            n_support_=len(form.support),
            n_parameters_=form.n_parameters + form.coef.size + form.intercept.size,
            loss_curve_=machine.loss_curve,
            validation_curve_=machine.curve,
            certificate_=machine.certificate,
            max_error_=machine.max_error,
            copy_correlation_=machine.copy_correlation,
            _n_functions=len(form.intercept),
            **others,
        )
        bound = self._support.max_error
        if bound is not None and self.max_error_ > bound:
            warn(
                f"Growth ended at {self.n_support_} support points with a squared error of "
                f"{self.max_error_:.3g}, more "
                f"than max_error={bound}; raise max_support or max_error.",
                ConvergenceWarning,
            )
        if not np.isfinite(self.certificate_):
            warn(
                "The steps on batches did not lower the error of the last support; lower the "
                "learning_rate of the optimizer, or use optimizer=None.",
                ConvergenceWarning,
            )

    def _new_rows(self, X: Any) -> NDArray:
        check_is_fitted(self)
        X = align_columns(X, self._column_labels)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        self._check_labels(X, may_differ=True)
        return rows

    def _predict_rows(self, rows: NDArray) -> NDArray:
        return self.expansion_(rows)

    def _kernel_forms(self) -> list[LocalForm]:
        return [self.expansion_]

    def _kernels(self, rows: NDArray) -> Iterator[tuple[LocalForm, NDArray]]:
        yield self.expansion_, self.expansion_.compare(rows)


class LABRegressor(MultiOutputMixin, LocalRegressorMixin, NamedRegressorMixin, _LAB):
    """Regression on few support points, each with its own learned bandwidth for every feature.

    ``f(x) = sum_j dual_coef_j k(x, s_j) + linear part``, ``k(x, s_j) = exp(-sum_f ((x_f - s_jf) / h_jf)^2 / 2)`` or
    the Laplace form ``exp(-sum_f |x_f - s_jf| / h_jf)``. The bandwidths minimize the evidence of the coefficients given
    all rows, which also learns the ridge; first one bandwidth per feature, then one per feature and support point,
    pulled toward the shared one. Validation stops the descent. Features and targets are standardized (features with
    tails through asinh, features in the same units by one scale, if held-out rows prefer that). With more than 50
    features and fewer support points there is no linear part.

    Parameters
    ----------
    n_support : int, float, "auto" or Support, default="auto"
        Support points: a number, a fraction of the rows, or ``min(200, n / 4)``. `Support` also sets how they are
        chosen, and adds more where errors are large, as the paper does.
    kernel : {"gaussian", "laplace", "exponential"}, default="gaussian"
        The form.
    objective : {"evidence", "least_squares", "interpolation"}, default="evidence"
        The objective of the bandwidths: the evidence, which also learns the ridge; the regularized squared error; or
        the paper's squared error off the support of the function that interpolates the support.
    alpha : float or None, default=None
        The ridge per row; None learns it with the evidence and means 1e-5 otherwise.
    validation_fraction : float or None, default=0.2
        The rows held out, above 1300 rows, to choose the number of iterations; smaller data are cross-validated. None
        means no validation: all iterations.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time; None means 10,000, 20 per support point, or (within half of
        the memory limit) one for every 8 bandwidths, whichever is more. Of larger data up to three more such blocks
        refine the bandwidths, each kept only if validation improves. The coefficients come from all rows, which are
        read block by block and may be a memory map or a Dask array. A fit needs about
        ``4.5 itemsize max_rows (n_support + n_features)`` bytes besides the data, see `mercerless.config_context`.
    optimizer : Adam, SGD, a list of these or None, default=None
        None descends by L-BFGS. Otherwise the paper's Algorithm 1, which needs ``objective="interpolation"``: steps on
        batches (of a list one after the other), features and target scaled to [-1, 1], no shared bandwidths, bounds,
        pull or validation.
    random_state : int, RandomState or None, default=None
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
        to [-1, 1]), which a `Support` that grows bounds; of equal rows, that of the mean of their targets.
    n_distinct_ : int
        Distinct training rows: equal rows are merged, with the mean of their targets.
    out_of_fold_ : OutOfFold or None
        Predictions of the rows that validation held out (all of them up to 1300, else a part): `rows`, `prediction`
        and `target`; None without validation. The rows of a fold are predicted after the number of iterations that the
        other folds choose. The scaling, which is decided once for all rows, has seen every target.
    spread_ : list of Spread, or None
        Per output, the model of the standard deviations of `predict`; its `gain` is 0 if there is one for all rows.
    copy_correlation_ : float
        The assumed correlation r of the errors of equal rows; k of them count as ``k / (1 + (k - 1) r)`` rows.
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

    def _fit_training(self, training: TrainingRows, progress: Progress) -> None:
        target = training.target
        Y = target.reshape(len(target), -1)
        units = range_scaling(Y) if self._optimizers else target_units(Y, training.weight)
        table, machine, n_iter = self._learn(training, units(Y), None, progress)
        predictions = machine.out_of_fold * units.scale + units.center
        held = out_of_fold(training, table, machine.held, predictions)
        self._finish(
            machine,
            units,
            n_iter_=n_iter,
            n_distinct_=table.shape[0],
            out_of_fold_=held,
            spread_=fit_spreads(machine.form, training.rows, training.used, held),
            _one_output=target.ndim == 1,
        )


class LABClassifier(LocalClassifierMixin, NamedClassifierMixin, _LAB):
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
    objective : {"evidence", "least_squares", "interpolation"}, default="evidence"
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
    random_state : int, RandomState or None, default=None
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
    scaling_, n_iter_, loss_curve_, validation_curve_, certificate_, max_error_
        As in `LABRegressor`.
    n_distinct_ : int
        As in `LABRegressor`.
    out_of_fold_ : OutOfFold or None
        Probabilities of the rows that validation held out, as in `LABRegressor`; `target` is the number of the class.
    copy_correlation_ : float
        0: equal rows are observations of their class.
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
        random_state: int | np.random.RandomState | None = None,
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

    def _fit_training(self, training: TrainingRows, progress: Progress) -> None:
        labels = training.target
        Y = signed_targets(labels, len(training.classes))
        units = range_scaling(Y) if self._optimizers else class_units(Y, training.weight)
        table, machine, n_iter = self._learn(training, units(Y), labels, progress)
        scores = machine.out_of_fold * units.scale + units.center
        calibration, held = self._calibrate(training, table, machine.held, scores, Y)
        self._finish(
            machine,
            units,
            classes_=training.classes,
            calibration_=calibration,
            n_iter_=n_iter,
            n_distinct_=table.shape[0],
            out_of_fold_=held,
        )
