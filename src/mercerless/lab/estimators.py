"""Compact regressors and classifiers with learned local bandwidths."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import blockwise, check_rows, is_dask, map_rows, take_rows
from mercerless.core.calibration import Calibration, calibrate_scores, cross_calibrate
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import (
    FittedEstimator,
    Progress,
    class_scores,
    signed_targets,
    used_rows,
)
from mercerless.core.folds import OutOfFold, find_copies
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.optional import with_callbacks
from mercerless.core.reasons import Explained, ReasonsMixin, Term, explain_centers
from mercerless.core.scaling import BLOCK_BYTES, FeatureScaling, standard_scaling
from mercerless.core.threads import one_blas_thread
from mercerless.core.validation import (
    align_by_name,
    align_columns,
    check_classes,
    check_labels,
    check_number,
    check_option,
    check_random_state,
    check_targets,
    leave_one_out_constant,
    validate_data,
    warn,
    warn_if_useless,
)
from mercerless.core.validation import check_weight_or_none as check_weight
from mercerless.lab.model import FORMS, OBJECTIVES, LocalForm, Projected, Settings
from mercerless.lab.support import SELECTIONS, Support, support_size
from mercerless.table.encoding import (
    Columns,
    Encoding,
    encode_table,
    fit_encoding,
    holds_more_than_numbers,
    is_frame,
    read_columns,
    tree_columns,
)
from mercerless.table.fit import LABSolution, fit_lab
from mercerless.table.members.wide import Judge, extra_candidates, pool_weights
from mercerless.table.outliers import are_gross, outlier_weights
from mercerless.table.plan import (
    ALL_ROWS,
    Plan,
    Table,
    boosting_rows,
    center_count,
    learning_blocks,
    learning_rows,
    merge_rows,
)
from mercerless.table.spread import Spread, fit_spread, posterior_of, signs_of
from mercerless.table.target import (
    Transformed,
    TransformedForms,
    choose_transform,
    join_transformed,
    kernel_forms,
    sum_of_forms,
    target_units,
)

_FEWEST_FOR_OUTLIERS = 100


class _LAB(ConformalMixin, ReasonsMixin, FittedEstimator):
    """What the regressor and the classifier share: everything but the targets."""

    forms_: list[LocalForm]
    _without_out_of_fold = "fit it on at least five rows with validation_fraction=0.2"

    def __init__(
        self,
        n_support: int | float | str | Support = "auto",
        *,
        kernel: str = "auto",
        objective: str = "evidence",
        alpha: float | None = None,
        validation_fraction: float | None = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        categorical_features: Any = "from_dtype",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_support = n_support
        self.kernel = kernel
        self.objective = objective
        self.alpha = alpha
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.categorical_features = categorical_features
        self.random_state = random_state

    @property
    def _support(self) -> Support:
        return self.n_support if isinstance(self.n_support, Support) else Support(self.n_support)

    @property
    def _has_defaults(self) -> bool:
        """Whether other members may compete: nothing asks for the local forms alone."""
        chosen = (self.n_support, self.kernel, self.objective)
        return chosen == ("auto", "auto", "evidence") and self.validation_fraction is not None

    def _check_parameters(self, n: int) -> None:
        support = self._support
        check_option("kernel", self.kernel, ("auto", *FORMS))
        check_option("objective", self.objective, OBJECTIVES)
        check_option("selection", support.selection, SELECTIONS)
        _check_support(support.n_support, n)
        check_number("max_error", support.max_error, none=True)
        check_number("max_support", support.max_support, whole=True, none=True)
        check_number("alpha", self.alpha, none=True)
        if self.validation_fraction is not None and not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} must lie between 0 and 1, or be "
                "None."
            )
        check_number("max_iter", self.max_iter, whole=True, none=True)
        check_number("max_rows", self.max_rows, whole=True, none=True)

    def _train_rows(
        self, X: Any, y: Any, check: Callable, **options: Any
    ) -> tuple[Any, NDArray, Columns]:
        """Validated rows of numbers and codes, targets in memory, and what the columns are.

        A Dask array is checked as it is read.
        """
        self._keep_labels(X)
        words = holds_more_than_numbers(X)
        if not (is_dask(X) or words):
            options |= {
                "dtype": [np.float64, np.float32],
                "ensure_min_samples": 2,
                "ensure_all_finite": "allow-nan",
            }
            rows, y = validate_data(self, X, y, **options)
            columns = read_columns(X if is_frame(X) else rows, self.categorical_features)
            return (
                columns.numbers(X if columns.of_frame else rows),
                check(y, type(self).__name__),
                columns,
            )
        if words:
            validate_data(self, X, skip_check_array=True)
            columns = read_columns(X, self.categorical_features)
            rows = columns.numbers(X)
        else:
            rows = check_rows(X)
            columns = read_columns(X, None)
            self.n_features_in_ = rows.shape[1]
        y = check(None if y is None else np.asarray(y), type(self).__name__)
        check_consistent_length(rows, y)
        if len(rows) < 2:
            raise ValueError("X has one row; at least two are needed.")
        return rows, y, columns

    def _encode(
        self, X: Any, columns: Columns, Y: NDArray, weight: NDArray | None, groups: Any
    ) -> tuple[Encoding, Any, np.random.RandomState]:
        """The encoding of the table, its rows as numbers, and what draws the rest."""
        self._check_parameters(len(X))
        random = check_random_state(self.random_state)
        names = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])]))
        if is_dask(X):
            return (
                fit_encoding(
                    take_rows(X, np.arange(min(len(X), 2000))), columns, Y, weight, "", names
                ),
                X,
                random,
            )
        return *encode_table(X, columns, Y, weight, groups, names, random), random

    def _plan(self, shape: tuple[int, int], random: np.random.RandomState) -> Plan:
        """What to do with so many distinct rows and features."""
        n, d = shape
        support = self._support
        m = support_size(support.n_support, n)
        seed = random.randint(2**31 - 1)
        limit = learning_rows(m, d, memory_budget()) if self.max_rows is None else self.max_rows
        rows, more = learning_blocks(n, limit, random)
        settings = Settings(
            self.objective,
            min(m, len(rows)),
            support.selection,
            self.alpha,
            self.max_iter,
            support.max_error,
            len(rows) if support.max_support is None else support.max_support,
            seed,
            linear=d <= max(50, m),
        )
        all_rows = self._has_defaults and 5 <= n <= ALL_ROWS
        plan = Plan(settings, self.kernel, rows, more, all_rows, self.validation_fraction, d)
        if not self._has_defaults:
            return plan
        n_centers = center_count(len(rows), memory_budget())
        n_boosting = boosting_rows(n, d, memory_budget())
        return plan._replace(all_members=True, n_centers=n_centers, n_boosting=n_boosting)

    def _learn(
        self,
        X: Any,
        encoding: Encoding,
        Y: NDArray,
        weight: NDArray | None,
        groups: Any,
        labels: NDArray | None,
        random: np.random.RandomState,
        progress: Progress,
    ) -> tuple[Table, LABSolution, int]:
        """The solution for encoded rows and standardized targets, and how many iterations it took."""
        n_iter = 0
        table = merge_rows(X, Y, weight, groups)
        plan = self._plan(table.shape, random)
        size = f"{plan.max_support} support points of {X.shape[1]} features"
        remedy = "set a smaller max_rows or n_support"
        n_bytes = plan.n_bytes(len(X), Y.shape[1])
        check_memory(
            n_bytes, f"Learning {size} on {len(plan.rows)} of {len(X)} rows", remedy=remedy
        )

        def report(info: dict) -> bool:
            nonlocal n_iter
            n_iter += 1
            return progress.step(info)

        classes = None if labels is None else labels[table.merged.first]
        extra = None
        if plan.all_members:
            extra = partial(
                extra_candidates, numbers=plan.rows, labels=classes, n_centers=plan.n_centers
            )
            extra = partial(extra, columns=tree_columns(encoding))
        weigh = None if extra is None or classes is None else partial(_pooled, classes[plan.rows])
        return table, fit_lab(table, plan, labels, random, report, extra, weigh), max(1, n_iter)

    def _warn_if_useless(
        self, table: Table, solution: LABSolution, labels: NDArray | None = None
    ) -> None:
        """Judge the average on the rows held out."""
        if len(solution.held):
            truth = table.merged.Y[solution.held]
            weight = table.merged.weights(solution.copy_correlation)
            weight = None if weight is None else weight[solution.held]
            predictions = solution.blend.predictions
            # scores of any scale: what counts are their probabilities
            if labels is not None and self._has_defaults:
                classes = labels[table.merged.first[solution.held]]
                scores = class_scores(predictions)
                predictions = calibrate_scores(scores, classes, weight)(scores)
                truth = np.eye(scores.shape[1])[classes]
            losses = ((predictions - truth) ** 2).sum(axis=1)
            warn_if_useless(
                losses, leave_one_out_constant(truth, weight), type(self).__name__, weight
            )

    def _finish(self, solution: LABSolution, units: FeatureScaling, **others: Any) -> None:
        """Set everything together, so that an interrupted fit leaves nothing half done."""
        forms = [form.in_units(units.center, units.scale) for form in solution.forms]
        self._set_fitted(
            **_stacked(forms, len(others["encoding_"].names), len(units.center)),
            loss_curve_=solution.blend.loss_curve,
            validation_curve_=solution.blend.curves,
            validation_errors_=solution.blend.errors,
            certificate_=solution.blend.certificate,
            max_error_=solution.blend.max_error,
            copy_correlation_=solution.copy_correlation,
            **others,
        )
        wanted = self._support.max_error
        if wanted is not None and self.max_error_ > wanted:
            warn(
                f"Growth ended at {self.n_support_} support points with a squared error of "
                f"{self.max_error_:.3g}, more "
                f"than max_error={wanted}; raise max_support or max_error.",
                ConvergenceWarning,
            )

    def _scores(self, X: ArrayLike) -> NDArray:
        """The average of the forms, in row blocks, one column per function."""
        rows = self._new_rows(X)
        sizes = [len(form.centers) for form in kernel_forms(self.forms_)]
        per_row = 24.0 * (rows.shape[1] + max(sizes, default=1))
        average = partial(sum_of_forms, self.forms_)
        return map_rows(average, rows, per_row, n_columns=len(self.dual_coef_), budget=BLOCK_BYTES)

    def _new_rows(self, X: Any) -> NDArray:
        """Rows as the forms see them."""
        check_is_fitted(self)
        columns = self.encoding_.columns
        X = rows = align_columns(X, self._column_labels)
        if columns.of_frame or holds_more_than_numbers(X):
            if not is_frame(X):
                raise ValueError(
                    "The model was fitted on a data frame with categories; pass a data frame."
                )
            validate_data(self, X, reset=False, skip_check_array=True)
        else:
            dtypes = [np.float64, np.float32]
            rows = validate_data(self, X, dtype=dtypes, reset=False, ensure_all_finite="allow-nan")
        self._check_labels(X, may_differ=True)
        return self.encoding_(rows)

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
        for some in row_blocks(
            len(rows), 24.0 * len(kernel_forms(self.forms_)) * len(items), BLOCK_BYTES
        ):
            base = sum_of_forms(self.forms_, rows[some])
            relevance = np.zeros((len(rows[some]), rows.shape[1]))
            terms = []
            for form, K in _kernels(self.forms_, rows[some]):
                places = np.searchsorted(items, form.support)
                matrix = np.zeros((len(K), len(items)))
                coef = np.zeros((len(self.dual_coef_), len(items)))
                matrix[:, places] = K
                coef[:, places] = form.weight * form.dual_coef
                terms.append(Term(form.name, matrix, coef))
                base -= matrix @ coef.T
                relevance += (
                    matrix[:, places]
                    * np.abs(coef[:, places]).sum(axis=0)
                    @ (1.0 / form.bandwidths)
                )
            total = relevance.sum(axis=1, keepdims=True)
            explained = explain_centers(terms, base, calibration)
            yield explained._replace(relevance=relevance / np.where(total > 0, total, 1.0))

    def _explained_items(self) -> NDArray:
        return np.unique(self.support_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forms_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class LABRegressor(MultiOutputMixin, RegressorMixin, _LAB):
    """Regression on few support points, each with its own learned bandwidth for every feature.

    ``f(x) = sum_j dual_coef_j k(x, s_j) + linear part``, ``k(x, s_j) = exp(-sum_f ((x_f - s_jf) / h_jf)^2 / 2)`` or
    the Laplace form ``exp(-sum_f |x_f - s_jf| / h_jf)``. The bandwidths minimize the evidence of the coefficients given
    all rows, which also learns the ridge; first one bandwidth per feature, then one per feature and support point,
    pulled toward the shared one. Validation stops the descent and weighs the forms. Features and targets are
    standardized (features with tails through asinh, features in the same units by one scale, where held-out rows ask
    for that), so none of this needs tuning. With more than 50 features and fewer support points there is no
    linear part. Where one target has tails, the same is learned for its logarithm, a power, asinh or normal scores,
    whichever small models like best, and averaged in by validation; its predictions are those of the mean target.

    Parameters
    ----------
    n_support : int, float, "auto" or Support, default="auto"
        Support points: a number, a fraction of the rows, or ``min(200, n / 4)``. With "auto" and at most 1000 rows,
        kernel ridge regression with all rows as centers is tried as well and enters where validation prefers it; above,
        kernel machines on up to 3000 centers; from some 6000 on experts, kernel machines on clusters of rows and their
        neighbors; from 100 rows on boosted trees. A number, a named kernel, another objective or no validation means
        the local forms alone.
        `Support` also says how they are chosen, and adds more where errors are large, as the paper does.
    kernel : {"auto", "gaussian", "laplace", "exponential"}, default="auto"
        The form; a named one is fitted alone. "auto" fits the Gaussian and the Laplace form on the same support points
        and weighs them by validation; often one remains. If rows, support points and features multiply to more than
        2 * 10^8, it is the Gaussian form, which is far faster there.
    objective : {"evidence", "least_squares", "interpolation"}, default="evidence"
        What the bandwidths minimize: the evidence, which also learns the ridge; the regularized squared error; or the
        paper's squared error off the support of the function that interpolates the support.
    alpha : float or None, default=None
        The ridge per row of the local forms; None learns it with the evidence and means 1e-5 otherwise. Other members
        learn their own.
    validation_fraction : float or None, default=0.2
        The rows held out, above 1300 rows, to choose the form and the number of iterations; smaller data are
        cross-validated. None means no validation: all iterations, and the form with the smallest objective.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time; None means 10,000, 20 per support point, or (within half of
        the memory limit) one for every 8 bandwidths, whichever is more. Of larger data up to three more such blocks
        refine the bandwidths, each kept only where validation improves. The coefficients come from all rows
        (those of up to 3000 centers from 40 per center), which are read block by block and may be a memory map or a
        Dask array. A fit needs about
        ``4.5 itemsize max_rows (n_support + n_features)`` bytes besides the data, see `mercerless.config_context`.
    categorical_features : "from_dtype", None, or array-like of bool, int or str, default="from_dtype"
        The columns that are categories: of a data frame those of words or of an unordered category type; or the
        columns given by a mask, by numbers or by names. The places of ordered categories are numbers, as are dates.
    random_state : int, RandomState or None, default=None
        Makes the folds and the selection repeatable.

    Attributes
    ----------
    forms_ : list of LocalForm, and Trees, Experts and TransformedForms where they have weight
        The model: predictions are the sum of ``form.weight * form(encoding_(X))``. Each has ``name``, ``kernel``,
        ``support``, ``support_vectors``, ``centers``, ``dual_coef``, ``coef``, ``intercept``, ``alpha``, ``weight``,
        ``scaling`` and ``projection``; boosted trees have ``models``, experts the ``members`` of their parts; forms of
        a transformed target are ``forms`` of one member, with the ``transform`` back.
    support_ : ndarray of shape (n_terms,)
        The training row of every term, form after form; distinct within a form.
    support_vectors_ : ndarray of shape (n_terms, n_features)
        These rows.
    bandwidths_ : ndarray of shape (n_terms, n_features)
        The bandwidths, in units of the scaled features (`scaling_`): large where a feature does not matter.
    dual_coef_ : ndarray of shape (n_outputs, n_terms)
        The coefficients of the terms in the average of the forms, for a transformed target in its units.
    alpha_ : ndarray of shape (n_forms,)
        The ridges.
    encoding_ : Encoding
        Turns a table into numbers without gaps, ``encoding_(X)``; its ``names`` are those of the columns that come out.
        Missing numbers are the median, beside a column that marks them; categories are 0/1 columns, or the mean targets
        of their rows (for training rows those of other folds), whichever has the smaller held-out error.
    scaling_ : callable
        Scales the encoded features as the model sees them.
    n_support_, n_parameters_ : int
        Distinct support points, and the size of the model: all numbers it needs to predict, besides scaling and trees.
    n_iter_ : int
        All iterations of all descents.
    loss_curve_ : ndarray
        The objective after every iteration of the local form with most weight; empty if none has weight.
    validation_curve_ : dict of str to ndarray of shape (n_checkpoints, 2)
        Per form: iterations and validation errors (mean squared, standardized targets).
    validation_errors_ : dict of str to float
        The validation error of everything that was tried. Choices such as the number of iterations are made for the
        rows of a fold on the other folds, so that these errors are those of a procedure and not minima. Bandwidths and
        ridge of machines on many centers, from 1000 rows on, are chosen on the held-out rows themselves.
    certificate_ : float
        The projected gradient at the end of a descent relative to its start, the largest of the members with weight:
        0 at a stationary point, 1 without any step; early stopping leaves it positive. Members without a descent count
        as 0.
    max_error_ : float
        The largest squared error on a training row, standardized; what a `Support` that grows bounds.
    n_distinct_ : int
        Distinct training rows: equal rows are merged, with the mean of their targets.
    out_of_fold_ : OutOfFold or None
        Predictions of the rows that validation held out (all of them up to 1300, else a part): `rows`, `prediction`
        and `target`; None without validation. As in `validation_errors_`, a row is predicted by choices, and by weights
        of the members, that other held-out rows made. What is decided once for all rows (encoding, scaling, transform
        of the target, outliers) has seen every target.
    spread_ : list of Spread, or None
        Per output, what the standard deviations of `predict` are made of: its `gain` is 0 where there is one for all.
    outliers_ : ndarray of int
        Training rows (of those with weight) taken for gross errors, far off the function, whose weight was lowered to
        less than half; none with a given number of support points or kernel.
    copy_correlation_ : float
        The assumed correlation r of the errors of equal rows; k of them count as ``k / (1 + (k - 1) r)`` rows.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    LABClassifier : The classifier.
    AsymmetricRidge : Ridge regression for any given asymmetric kernel.

    Notes
    -----
    Beyond the paper: all rows, not only the support, determine the coefficients; the ridge is learned; there is a
    linear part; bounds and a pull keep the bandwidths sane. ``objective="interpolation"`` and
    ``n_support=Support(..., selection="y", max_error=...)`` give the paper's method.

    References
    ----------
    F. He, M. He, L. Shi, X. Huang, J. A. K. Suykens, "Learning Analysis of Kernel Ridgeless Regression with Asymmetric
    Kernel Learning", 2024.

    Examples
    --------
    >>> from mercerless import LABRegressor
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(400, function="f1", noise=0.05, random_state=0)
    >>> model = LABRegressor(n_support=30, kernel="gaussian", random_state=0).fit(X[:300], y[:300])
    >>> model.bandwidths_.shape, model.n_parameters_
    ((30, 2), 153)
    >>> bool(model.score(X[300:], y[300:]) > 0.9)
    True
    """

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> "LABRegressor":
        """Learn support, bandwidths and coefficients.

        Parameters
        ----------
        X : array-like, data frame or dask.array.Array of shape (n, n_features)
            The rows, with NaN where a value is missing; a float32 or float64 memory map, or a Dask array (without
            missing values), is read block by block.
        y : array-like of shape (n,) or (n, n_outputs)
            The targets. If X and y have a pandas index of the same unique names in another order, they are
            matched by name; otherwise, and with a RangeIndex, by position.
        sample_weight : array-like of shape (n,) or None, default=None
            Row weights, matched as y; rows of weight 0 are left out.
        groups : array-like of shape (n,) or None, default=None
            Rows of one group (a patient, a machine, a stretch of time) are never on both sides of a validation split;
            matched as y.

        Returns
        -------
        LABRegressor
            The fitted estimator.
        """
        y, sample_weight, groups = (
            align_by_name(X, values) for values in (y, sample_weight, groups)
        )
        rows, target, columns = self._train_rows(
            X, y, check_targets, multi_output=True, y_numeric=True
        )
        given = check_weight(sample_weight, len(rows))
        used = used_rows(given, len(rows))
        rows, target, weight, groups = _drop_weightless(rows, target, given, groups)
        Y = np.asarray(target, dtype=np.float64).reshape(len(target), -1)
        units = target_units(Y, weight)
        with self._progress() as progress, one_blas_thread():
            encoding, rows, random = self._encode(rows, columns, units(Y), weight, groups)
            table, solution, n_iter, outliers = self._learn_targets(
                rows, encoding, Y, units, weight, groups, random, progress
            )
            self._warn_if_useless(table, solution)
            held = _held_out(table, solution, given, units, target.astype(np.float64))
            others = {
                "n_iter_": n_iter,
                "n_distinct_": table.shape[0],
                "encoding_": encoding,
                "out_of_fold_": held,
            }
            others |= {"_one_output": target.ndim == 1, "outliers_": outliers}
            others["spread_"] = _fit_spreads(solution.forms, rows, used, held)
            self._finish(solution, units, **others)
        return self

    def _learn_targets(
        self,
        X: Any,
        encoding: Encoding,
        Y: NDArray,
        units: FeatureScaling,
        weight: NDArray | None,
        groups: Any,
        random: np.random.RandomState,
        progress: Progress,
    ) -> tuple[Table, LABSolution, int, NDArray]:
        """The solution, averaged with one for transformed targets where that may pay, iterations, and outliers."""
        again = deepcopy(random)  # for the same folds
        gaps = encoding.gaps(X)
        used, outliers = self._without_outliers(X, units(Y), weight, gaps)
        table, solution, n_iter = self._learn(
            X, encoding, units(Y), used, groups, None, random, progress
        )
        gross = (
            len(outliers) > 0
            and used is not None
            and are_gross(used if weight is None else used / weight)
        )
        transformed = None if gross else self._transform(X, Y, used)
        if transformed is None:
            return table, solution, n_iter, outliers
        reused, others = self._without_outliers(X, transformed.standardized, weight, gaps)
        _, other, more = self._learn(
            X, encoding, transformed.standardized, reused, groups, None, again, progress
        )
        # gross errors are so in both
        both = None if used is None or reused is None else np.maximum(used, reused)
        solution = join_transformed(solution, other, table, transformed, both, units)
        alone = all(isinstance(form, TransformedForms) for form in solution.forms)
        return table, solution, n_iter + more, others if alone else outliers

    def _without_outliers(
        self, X: Any, Y: NDArray, weight: NDArray | None, gaps: NDArray
    ) -> tuple[NDArray | None, NDArray]:
        """The weights of rows, those of gross errors lowered, and these rows."""
        trust = None
        if self._has_defaults and not is_dask(X) and len(X) >= _FEWEST_FOR_OUTLIERS:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            trust = outlier_weights(X, Y, weight, find_copies(X), seed, gaps)
        if trust is None:
            return weight, np.zeros(0, dtype=int)
        return trust if weight is None else weight * trust, np.flatnonzero(trust < 0.5)

    def _transform(self, X: Any, Y: NDArray, weight: NDArray | None) -> Transformed | None:
        """A transform of the targets that may pay: of one output with tails, in memory."""
        if not self._has_defaults or is_dask(X) or Y.shape[1] > 1:
            return None
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return choose_transform(X, Y, weight, find_copies(X), seed)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict targets, in row blocks, lazily for a Dask array; where asked, how far they scatter around these.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.
        return_std : bool, default=False
            Whether to give the standard deviation of a new target as well, noise included: the root of the mean square
            of the out-of-fold errors; where that proves itself on held-out errors, it grows with the prediction and
            with the posterior variance of the process that the evidence fitted (see `spread_`).

        Returns
        -------
        y : ndarray of shape (n,) or (n, n_outputs)
            The predictions.
        std : ndarray of shape (n,) or (n, n_outputs)
            The standard deviations, only with ``return_std=True``.
        """
        if return_std:
            self._held_out()  # says where there are no errors to learn from
        predicted = self._predict(X)
        return (predicted, self._std(X)) if return_std else predicted

    @blockwise
    def _predict(self, X: ArrayLike) -> NDArray:
        scores = self._scores(X)
        return scores[:, 0] if self._one_output else scores

    @blockwise
    def _std(self, X: ArrayLike) -> NDArray:
        """Standard deviations of new targets."""
        rows = self._new_rows(X)
        scores = self._scores(X)
        posterior = posterior_of(self.forms_)
        std = np.empty(scores.shape)
        for some in row_blocks(len(rows), 24.0 * (rows.shape[1] + 1000), BLOCK_BYTES):
            for output, spread in enumerate(self.spread_):
                std[some, output] = spread(signs_of(posterior, rows[some], scores[some, output]))
        return std[:, 0] if self._one_output else std


class LABClassifier(ClassifierMixin, _LAB):
    """Classification on few support points, each with its own learned bandwidth for every feature.

    Least squares on targets of plus and minus one (one column for two classes, one per class otherwise) with the model
    and the objective of `LABRegressor`. Above 1000 rows coefficients of least log-loss compete for the wide machines.
    By default the members are weighed by log-loss, which is then their error in ``validation_errors_``; with a number
    of support points, or a named kernel, by squared error. Probabilities are ``softmax(slope * scores + bias)``, fitted
    on out-of-fold scores.

    Parameters
    ----------
    n_support : int, float, "auto" or Support, default="auto"
        Support points, as in `LABRegressor`.
    kernel : {"auto", "gaussian", "laplace", "exponential"}, default="auto"
        The form, as in `LABRegressor`.
    objective : {"evidence", "least_squares", "interpolation"}, default="evidence"
        What the bandwidths minimize, as in `LABRegressor`.
    alpha : float or None, default=None
        The ridge per row of the local forms; None learns it with the evidence and means 1e-5 otherwise. Other members
        learn their own.
    validation_fraction : float or None, default=0.2
        The rows held out, above 2500 rows, to choose the form and the number of iterations; smaller data, and up to
        5000 rows of which few would be outside of the largest class, are cross-validated. None means no validation:
        all iterations, and the form with the smallest objective.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time, as in `LABRegressor`.
    categorical_features : "from_dtype", None, or array-like of bool, int or str, default="from_dtype"
        The columns that are categories, as in `LABRegressor`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the sample weights.
    random_state : int, RandomState or None, default=None
        Makes the folds and the selection repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    calibration_ : Calibration
        Slope and bias of the probabilities: ``calibration_(scores)``, where the scores are the sum of
        ``form.weight * form(encoding_(X))`` (f of two classes counts as -f / 2 and f / 2).
    forms_ : list of LocalForm, and Trees and Experts where they have weight
        The model, as in `LABRegressor`, with one function for two classes and one per class otherwise.
    support_, support_vectors_, bandwidths_, dual_coef_, alpha_, n_support_, n_parameters_
        As in `LABRegressor`.
    encoding_, scaling_, n_iter_, loss_curve_, validation_curve_, validation_errors_, certificate_, max_error_
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
    >>> model = LABClassifier(n_support=20, kernel="gaussian", random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        n_support: int | float | str | Support = "auto",
        *,
        kernel: str = "auto",
        objective: str = "evidence",
        alpha: float | None = None,
        validation_fraction: float | None = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        categorical_features: Any = "from_dtype",
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
            categorical_features=categorical_features,
            random_state=random_state,
        )
        self.class_weight = class_weight

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> "LABClassifier":
        """Learn support, bandwidths, coefficients and the calibration of probabilities.

        Parameters
        ----------
        X : array-like, data frame or dask.array.Array of shape (n, n_features)
            The rows, with NaN where a value is missing; a float32 or float64 memory map, or a Dask array (without
            missing values), is read block by block.
        y : array-like of shape (n,)
            The labels. If X and y have a pandas index of the same unique names in another order, they are
            matched by name; otherwise, and with a RangeIndex, by position.
        sample_weight : array-like of shape (n,) or None, default=None
            Row weights, matched as y; rows of weight 0 are left out.
        groups : array-like of shape (n,) or None, default=None
            Rows of one group (a patient, a machine, a stretch of time) are never on both sides of a validation split;
            matched as y.

        Returns
        -------
        LABClassifier
            The fitted estimator.
        """
        y, sample_weight, groups = (
            align_by_name(X, values) for values in (y, sample_weight, groups)
        )
        rows, target, columns = self._train_rows(X, y, check_labels)
        weight, classes, labels = check_classes(
            target, sample_weight, self.class_weight, type(self).__name__
        )
        weight = check_weight(weight, len(labels))
        rows, labels, weight, groups = _drop_weightless(rows, labels, weight, groups)
        Y = signed_targets(labels, len(classes))
        mean = Y.mean(axis=0)  # and one scale for all, so that rare classes are not blown up
        units = standard_scaling(Y)._replace(
            center=mean, scale=np.full(len(mean), np.sqrt(np.mean((Y - mean) ** 2)))
        )
        with self._progress() as progress, one_blas_thread():
            encoding, rows, random = self._encode(rows, columns, units(Y), weight, groups)
            table, solution, n_iter = self._learn(
                rows, encoding, units(Y), weight, groups, labels, random, progress
            )
            self._warn_if_useless(table, solution, labels)
            predictions = solution.blend.predictions * units.scale + units.center
            calibration = _calibrate(table, solution.held, predictions, labels, weight, Y)
            held = _held_out(
                table, solution, check_weight(sample_weight, len(target)), units, labels
            )
            if held is not None:
                held = held._replace(
                    prediction=cross_calibrate(class_scores(held.prediction), held.target)
                )
            others = {
                "n_iter_": n_iter,
                "n_distinct_": table.shape[0],
                "encoding_": encoding,
                "out_of_fold_": held,
            }
            self._finish(solution, units, classes_=classes, calibration_=calibration, **others)
        return self

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
        scores = class_scores(self._scores(X)) + self.calibration_.bias / self.calibration_.slope
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


def _stacked(members: list[Any], n_features: int, n_functions: int) -> dict[str, Any]:
    """The attributes of all kernel forms together."""
    forms = kernel_forms(members)
    support = np.concatenate([np.zeros(0, dtype=int), *(form.support for form in forms)])
    fixed = n_functions * (1 + n_features) if forms else 0
    return {
        "forms_": members,
        "scaling_": members[0].scaling,
        "support_": support,
        "support_vectors_": np.vstack(
            [np.zeros((0, n_features)), *(form.support_vectors for form in forms)]
        ),
        "bandwidths_": np.vstack([np.zeros((0, n_features)), *(form.bandwidths for form in forms)]),
        "dual_coef_": np.hstack(
            [np.zeros((n_functions, 0)), *(form.weight * form.dual_coef for form in forms)]
        ),
        "alpha_": np.array([form.alpha for form in forms]),
        "n_support_": len(np.unique(support)),
        "n_parameters_": sum(form.n_parameters for form in forms) + fixed,
    }


def _kernels(members: list[Any], X: NDArray) -> Iterator[tuple[LocalForm, NDArray]]:
    """The kernel forms with their matrices, for a transformed target times the mean slope of its way back."""
    for member in members:
        if isinstance(member, TransformedForms):
            pairs = list(_kernels(member.forms, X))
            total = sum_of_forms(member.forms, X)
            base = total - np.sum([form.weight * K @ form.dual_coef.T for form, K in pairs], axis=0)
            slope = member.transform.slope(base, total)
            yield from (
                (form._replace(weight=member.weight * form.weight), slope * K) for form, K in pairs
            )
        elif isinstance(member, LocalForm):
            Z = member.scaling(X, member.centers.dtype)
            yield member, Projected(member.kernel, member.projection)(Z, member.centers)


def _pooled(
    labels: NDArray,
    predictions: list[NDArray],
    rows: NDArray,
    weight: NDArray | None,
    max_members: int,
) -> tuple[NDArray, list[float]]:
    """Weights of the members of a classifier, and the log-loss of each."""
    judge = Judge(predictions[0], weight, labels[rows])
    return pool_weights(predictions, labels[rows], weight, max_members), [
        judge(p) for p in predictions
    ]


def _check_support(n_support: Any, n: int) -> None:
    number = (
        float(n_support) if isinstance(n_support, Real) and not isinstance(n_support, bool) else 0.0
    )
    whole = isinstance(n_support, Integral) and number >= 1
    fraction = not isinstance(n_support, Integral) and 0 < number <= 1
    if not (whole or fraction or n_support == "auto"):
        raise ValueError(
            f"n_support={n_support!r} must be a positive whole number, a fraction of the rows, "
            "'auto', or a Support."
        )
    if whole and number > n:
        raise ValueError(
            f"n_support={n_support} is more than the {n} training rows; use fewer, a fraction such "
            "as 0.25, or 'auto'."
        )


def _drop_weightless(
    X: Any, y: NDArray, weight: NDArray | None, groups: Any
) -> tuple[Any, NDArray, Any, Any]:
    """Without the rows of weight 0."""
    if groups is not None:
        groups = column_or_1d(groups)
        check_consistent_length(y, groups)
    if weight is None or np.all(weight > 0):
        return X, y, weight, groups
    used = weight > 0
    if used.sum() < 2:
        raise ValueError("Only one row has a positive sample_weight; at least two are needed.")
    return X[np.flatnonzero(used)], y[used], weight[used], None if groups is None else groups[used]


def _held_out(
    table: Table,
    solution: LABSolution,
    weight: NDArray | None,
    units: FeatureScaling,
    target: NDArray,
) -> OutOfFold | None:
    """Out-of-fold predictions in the units of the targets, for every row, copies included; None without validation."""
    if len(solution.held) == 0:
        return None
    place = np.full(table.shape[0], -1)
    place[solution.held] = np.arange(len(solution.held))
    place = place[table.copies]
    rows = np.flatnonzero(place >= 0)
    used = np.arange(len(target)) if weight is None else np.flatnonzero(weight > 0)
    predictions = solution.blend.predictions[place[rows]] * units.scale + units.center
    shape = (len(rows), *target.shape[1:]) if target.dtype.kind == "f" else predictions.shape
    return OutOfFold(used[rows], predictions.reshape(shape), target[rows])


def _fit_spreads(forms: list, X: Any, used: NDArray, held: OutOfFold | None) -> list[Spread] | None:
    """The scatter of errors around predictions, for every output; from at most 5000 rows."""
    if held is None:
        return None
    few = np.linspace(0, len(held.rows) - 1, min(len(held.rows), 5000)).round().astype(int)
    rows = take_rows(X, np.searchsorted(used, held.rows[few]))
    posterior = posterior_of(forms)
    predictions, targets = (values[few].reshape(len(few), -1) for values in held[1:])
    return [
        fit_spread(target - prediction, signs_of(posterior, rows, prediction, seen=True))
        for prediction, target in zip(predictions.T, targets.T)
    ]


def _calibrate(
    table: Table,
    held: NDArray,
    predictions: NDArray,
    labels: NDArray,
    weight: NDArray | None,
    Y: NDArray,
) -> Calibration:
    """Slope and bias from out-of-fold scores; copies with the same label count as one row with their weight."""
    copies = table.copies
    weight = np.ones(len(labels)) if weight is None else weight
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
