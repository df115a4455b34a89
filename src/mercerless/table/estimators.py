"""The automatic learner of tables: data frames with words, dates and gaps, and nothing to tune."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import is_dask, take_rows
from mercerless.core.copies import Observations, near_copies
from mercerless.core.estimator import (
    NamedClassifierMixin,
    NamedRegressorMixin,
    Progress,
    class_scores,
    signed_targets,
)
from mercerless.core.folds import find_copies, join_groups
from mercerless.core.memory import memory_budget
from mercerless.core.scaling import FeatureScaling
from mercerless.core.validation import (
    align_columns,
    check_option,
    check_random_state,
    validate_data,
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
from mercerless.lab.data import Table, class_units, merge_rows, target_units
from mercerless.lab.estimators import LABClassifier, LABRegressor
from mercerless.lab.model import LocalForm, Settings, has_linear_part
from mercerless.lab.spread import fit_spreads
from mercerless.lab.support import Support, support_size
from mercerless.table.distill import RULES as DISTILL_RULES
from mercerless.table.distill import distill_classes, distill_numbers
from mercerless.table.encoding import (
    Columns,
    Encoding,
    TableReader,
    as_frame,
    encode_table,
    fit_encoding,
    holds_more_than_numbers,
    is_frame,
    read_columns,
    tree_columns,
)
from mercerless.table.fit import TableSolution, solve_table
from mercerless.table.importance import TrainingSample
from mercerless.table.outliers import LIMITS as OUTLIER_LIMITS
from mercerless.table.outliers import are_gross, trust_in_targets
from mercerless.table.plan import (
    LIMITS,
    MEMBERS,
    TablePlan,
    boosting_rows,
    center_count,
    local_forms,
)
from mercerless.table.target import LIMITS as TRANSFORM_LIMITS
from mercerless.table.target import (
    Transformed,
    TransformedForms,
    choose_transform,
    join_transformed,
    kernel_forms,
    numbered_members,
    predict_average,
    sum_of_forms,
)
from mercerless.table.weighing import warn_if_no_better_than_shares


class _Table(LocalEstimator):
    """Base of the regressor and the classifier, which differ in their targets."""

    members: str | Sequence[str]
    categorical_features: Any
    random_state: int | np.random.RandomState | None
    members_: list[Any]
    encoding_: Encoding
    _sample: TrainingSample | None
    _importances: NDArray | None
    _without_out_of_fold = "fit it on at least five rows"

    def _member_names(self) -> tuple[str, ...]:
        """The kinds of members that may compete."""
        if isinstance(self.members, str):
            check_option("members", self.members, ("auto",))
            return MEMBERS
        names = tuple(self.members)
        unknown = [name for name in names if name not in MEMBERS]
        if unknown or "local" not in names:
            raise ValueError(
                f"members={self.members!r} must be 'auto' or a list of {', '.join(MEMBERS)}; "
                "'local' must be among them, the others start from its bandwidths."
            )
        return names

    def _check_parameters(self) -> None:
        self._member_names()
        fraction = self.validation_fraction
        if fraction is None or not 0 < fraction < 1:
            raise ValueError(f"validation_fraction={fraction!r} must lie between 0 and 1.")
        self._check_learning()

    def _as_rows(self, X: Any) -> Any:
        return as_frame(X)

    def _read_rows(
        self, X: Any, y: Any, check: Callable, **options: Any
    ) -> tuple[Any, NDArray, Columns]:
        self._keep_labels(X)
        if is_dask(X):
            return *self._dask_rows(X, y, check), read_columns(X, None)
        if holds_more_than_numbers(X):
            validate_data(self, X, skip_check_array=True)
            columns = read_columns(X, self.categorical_features)
            rows = columns.numbers(X)
            return rows, self._targets_of(rows, y, check), columns
        options |= {
            "dtype": [np.float64, np.float32],
            "ensure_min_samples": 2,
            "ensure_all_finite": "allow-nan",
        }
        rows, y = validate_data(self, X, y, **options)
        columns = read_columns(X if is_frame(X) else rows, self.categorical_features)
        rows = columns.numbers(X if columns.of_frame else rows)
        return rows, check(y, type(self).__name__), columns

    def _encode(
        self, training: TrainingRows, Y: NDArray
    ) -> tuple[Encoding, TrainingRows, np.random.RandomState]:
        """The encoding of the table, its rows as numbers, and what draws the rest."""
        self._check_parameters()
        random = own_random_state(self.random_state)
        X = training.rows
        columns = training.columns
        weight = training.weight
        names = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])]))
        if is_dask(X):
            sample = take_rows(X, np.arange(min(len(X), 2000)))
            return fit_encoding(sample, columns, Y, weight, "", names), training, random
        training = together(training)
        encoding, rows = encode_table(X, columns, Y, weight, training.groups, names, random)
        return encoding, training._replace(rows=rows), random

    def _plan(self, shape: tuple[int, int], random: np.random.RandomState) -> TablePlan:
        """The plan for a table of this many distinct rows and features."""
        n, d = shape
        names = self._member_names()
        m = support_size("auto", n)
        seed = random.randint(2**31 - 1)
        rows, more = self._learning_blocks(shape, m, random)
        settings = Settings(
            n_support=min(m, len(rows)),
            max_iter=self.max_iter,
            max_support=len(rows),
            seed=seed,
            linear=has_linear_part(d, m),
        )
        n_centers = 0
        n_boosting = 0
        if "wide" in names or "experts" in names:
            n_centers = center_count(len(rows), memory_budget())
        if "trees" in names or "experts" in names:
            n_boosting = boosting_rows(n, d, memory_budget())
        return TablePlan(
            settings=settings,
            forms=local_forms(len(rows) * settings.n_support * d),
            rows=rows,
            more=more,
            validation_fraction=self.validation_fraction,
            n_features=d,
            members=names,
            all_rows="ridge" in names and 5 <= n <= LIMITS.all_rows,
            n_centers=n_centers,
            n_boosting=n_boosting,
        )

    def _learn(
        self,
        training: TrainingRows,
        encoding: Encoding,
        Y: NDArray,
        labels: NDArray | None,
        random: np.random.RandomState,
        progress: Progress,
        scaling: FeatureScaling | None = None,
    ) -> tuple[Table, TableSolution, int]:
        """The solution for encoded rows and standardized targets, and how many iterations it took.

        Without a scaling of the features one is chosen.
        """
        X = training.rows
        table = merge_rows(X, Y, training.weight, training.groups)
        plan = replace(self._plan(table.shape, random), scaling=scaling)
        self._check_memory(plan, X.shape, Y.shape[1], "set a smaller max_rows or fewer members")
        report, n_iter = counting(progress)
        columns = tree_columns(encoding)
        solution = solve_table(table, plan, columns, labels, training.weight, random, report)
        return table, solution, n_iter()

    def _finish(
        self, solution: TableSolution, n_functions: int, used: NDArray, **others: Any
    ) -> None:
        """Set everything together, so that an interrupted fit leaves nothing half done.

        `used` are the numbers of the rows with weight among all rows given to fit.
        """
        members = numbered_members(solution.members, used)
        n_features = len(others["encoding_"].names)
        self._set_fitted(
            members_=members,
            weights_=np.array([member.weight for member in members]),
            validation_curve_=solution.curves,
            validation_errors_=solution.errors,
            certificate_=solution.certificate,
            copy_correlation_=solution.copy_correlation,
            n_parameters_=count_parameters(members, n_functions, n_features),
            _n_functions=n_functions,
            _importances=None,
            **others,
        )

    def _new_rows(self, X: Any) -> NDArray:
        check_is_fitted(self)
        columns = self.encoding_.columns
        X = rows = align_columns(as_frame(X, self._column_labels), self._column_labels)
        if columns.of_frame or holds_more_than_numbers(X):
            if not is_frame(X):
                raise ValueError(
                    "The model was fitted on a data frame with categories or dates; pass a data "
                    "frame."
                )
            validate_data(self, X, reset=False, skip_check_array=True)
        else:
            dtypes = [np.float64, np.float32]
            rows = validate_data(self, X, dtype=dtypes, reset=False, ensure_all_finite="allow-nan")
        self._check_labels(X, may_differ=True)
        return self.encoding_(rows)

    def _predict_rows(self, rows: NDArray) -> NDArray:
        return predict_average(self.members_, rows)

    @property
    def estimators_(self) -> list[Self]:
        """The members as fitted models of their own, in the order of `members_`; they take the table as it is.

        Each predicts by one member alone, and has no out-of-fold predictions, intervals and importances: those of this
        model are of the average.
        """
        check_is_fitted(self)
        return [self._alone(member) for member in self.members_]

    def _alone(self, member: Any) -> Self:
        """A copy of this model that consists of one member."""
        alone = copy(self)
        members = [member._replace(weight=1.0)]
        alone.__dict__.update(
            members_=members,
            weights_=np.ones(1),
            n_parameters_=count_parameters(members, self._n_functions, len(self.encoding_.names)),
            out_of_fold_=None,
            spread_=None,
            _sample=None,
            _importances=None,
            _without_out_of_fold="use the model with all members",
        )
        return alone

    @property
    def feature_importances_(self) -> NDArray:
        """How much predictions need each feature: at least 0, with sum 1; computed at the first access.

        A model with the same parameters is learned from two thirds of at most 1500 training rows. The importance of a
        feature is by how much its error on the others grows (mean squared error, or log-loss) if the values of the
        feature are permuted, on average over five permutations.
        """
        check_is_fitted(self)
        if self._sample is None:
            raise AttributeError(
                f"This {type(self).__name__} has no feature_importances_: they need at least ten "
                "rows in memory."
            )
        if self._importances is None:
            categories = self.encoding_.columns.categories
            self._importances = self._sample.importances(self, categories)
        return self._importances

    def distill(
        self, X: Any = None, *, n_support: int | float | str | Support = "auto"
    ) -> Pipeline:
        """One small machine that predicts nearly what the average does, for those who need speed.

        A `LABRegressor` or `LABClassifier` learns what this model predicts, which needs no targets. Part of the rows
        are held out first to measure what is lost.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features) or None, default=None
            Rows, as given to `fit`, on which it learns; None means up to 1500 training rows that the model keeps.
        n_support : int, float, "auto" or Support, default="auto"
            Its support points, as in `LABRegressor`.

        Returns
        -------
        sklearn.pipeline.Pipeline
            The encoding of the table and the fitted machine. Its ``held_out_loss_`` is what a machine of the other
            rows misses on held-out ones: the share of the variance of the predictions, or the divergence of the
            probabilities in nats. Above .05 it gives a warning.
        """
        check_is_fitted(self)
        if X is not None:
            rows = self._new_rows(X)
        elif self._sample is None:
            raise ValueError("The model keeps no training rows; pass some rows as X.")
        else:
            rows = self.encoding_.encode(self._sample.table)
        if len(rows) < DISTILL_RULES.fewest_rows:
            raise ValueError(
                f"distill needs at least {DISTILL_RULES.fewest_rows} rows, and there are "
                f"{len(rows)}; pass more rows as X."
            )
        return self._distill(rows, n_support)

    def _distill(self, rows: NDArray, n_support: Any) -> Pipeline:
        """A machine that learns what the average predicts for encoded rows."""
        raise NotImplementedError

    def _kernel_forms(self) -> list[LocalForm]:
        return kernel_forms(self.members_)

    def _kernels(self, rows: NDArray) -> Iterator[tuple[LocalForm, NDArray]]:
        return _kernels(self.members_, rows)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class TableRegressor(MultiOutputMixin, LocalRegressorMixin, NamedRegressorMixin, _Table):
    """Regression on a table as it is, with its words, dates and empty cells, and nothing to tune.

    Several kinds of models compete on held-out rows, and their average predicts: machines on few support points with
    local bandwidths (as `LABRegressor`), kernel ridge regression on all rows of small tables, kernel machines on up to
    3000 centers, experts on parts of many rows, and boosted trees. If one target has tails, a second model is
    fitted to its logarithm, a power, asinh or normal scores, whichever is best in small trials, and averaged in;
    predictions are means on the original scale.

    A table is an array, a frame of pandas, polars or Arrow, or a list of dicts (in which a key may be missing), with
    NaN where a value is missing. A sample weight of 3 counts like three equal rows.

    Parameters
    ----------
    members : "auto" or list of str, default="auto"
        What may compete: "local", which must be among them, "ridge" (up to 1000 rows), "linear" (for classes), "wide"
        (above 1000 rows), "trees" (from 100 rows on) and "experts" (from some 6000 rows on); "auto" means all.
    transform_target : "auto" or None, default="auto"
        Whether a transform of one target with tails competes.
    downweight_outliers : "auto" or None, default="auto"
        Whether rows with grossly wrong targets lose weight if that improves the predictions of held-out rows.
    categorical_features : "from_dtype", None, or array-like of bool, int or str, default="from_dtype"
        The columns that are categories: of a data frame those of words or of an unordered category type; or the
        columns given by a mask, by numbers or by names. The places of ordered categories are numbers, as are dates.
    validation_fraction : float, default=0.2
        The rows held out, above 1300 rows, to choose settings and weights; smaller tables are cross-validated.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time, as in `LABRegressor`; coefficients come from all rows (those of
        up to 3000 centers from 40 per center), which may be a memory map or a Dask array.
    random_state : int, RandomState or None, default=None
        Makes the folds and the selection repeatable.

    Attributes
    ----------
    members_ : list of LocalForm, Trees, Experts and TransformedForms
        The members with weight. Each has a ``name``, a ``weight`` and a ``scaling``, can be called,
        ``member(encoding_(X))``, and printed. Predictions are the sum of ``member.weight * member(encoding_(X))``;
        they leave the range of the training targets by at most a quarter of it, and a member that predicts a
        transformed target differs from the others by at most what it did on held-out rows (its ``reach``).
        Kernel forms hold ``support``, ``support_vectors``, ``bandwidths``, ``dual_coef``, ``coef``, ``intercept`` and
        ``alpha``; boosted trees their ``models``; a transformed target its own members as ``forms``.
    weights_ : ndarray of shape (n_members,)
        The weights in the average, which sum to one.
    estimators_ : list of TableRegressor
        The members as fitted models of their own, each of one member: they take the table as it is, and can be printed,
        explained and saved.
    encoding_ : Encoding
        Turns a table into numbers without gaps, ``encoding_(X)``; its ``names`` are those of the columns that come out.
        Missing numbers are the median, beside a column that marks them; categories are 0/1 columns, or the mean targets
        of their rows (for training rows those of other folds), whichever has the smaller held-out error.
    validation_errors_ : dict of str to float
        The validation error of everything that was tried (mean squared, standardized targets). Choices such as the
        number of iterations are made for the rows of a fold on the other folds, so that these errors are those of a
        procedure and not minima. Bandwidths and ridge of machines on many centers, from 1000 rows on, are chosen on the
        held-out rows themselves.
    validation_curve_ : dict of str to ndarray of shape (n_checkpoints, 2)
        Per local form: iterations and validation errors.
    out_of_fold_ : OutOfFold or None
        Predictions of the rows that validation held out (all of them up to 1300, else a part): `rows`, `prediction`
        and `target`; None for fewer than five rows. As in `validation_errors_`, a row is predicted by choices, and by
        weights of the members, that other held-out rows made. What is decided once for all rows (encoding, scaling,
        transform of the target, outliers) has seen every target.
    spread_ : list of Spread, or None
        Per output, what the standard deviations of `predict` are made of: its `gain` is 0 if there is one for all.
    outliers_ : ndarray of int
        Training rows whose weight was lowered to less than half, as gross errors.
    certificate_ : float
        The projected gradient at the end of a descent relative to its start, the largest of the members with weight:
        0 at a stationary point, 1 without any step; early stopping leaves it positive. Members without a descent count
        as 0.
    copy_correlation_ : float
        The assumed correlation r of the errors of equal rows with different targets; k of them count as
        ``k / (1 + (k - 1) r)`` rows. Equal rows with equal targets count as one row with the sum of their weights.
    n_distinct_ : int
        Distinct training rows: equal rows are merged, with the mean of their targets.
    n_iter_ : int
        All iterations of all descents.
    n_parameters_ : int
        Numbers in the kernel members.
    feature_importances_ : ndarray of shape (n_features,)
        How much predictions need each feature, at least 0 and with sum 1: by how much the squared error of held-out
        rows grows if its values are permuted. Computed on first use, by one more fit on part of the rows.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    TableClassifier : The classifier.
    LABRegressor : One machine on few support points.

    Examples
    --------
    >>> from mercerless import TableRegressor
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(150, function="f1", noise=0.05, random_state=0)
    >>> model = TableRegressor(max_iter=10, random_state=0).fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.8)
    True
    >>> len(model.members_) == len(model.weights_)
    True
    """

    def __init__(
        self,
        members: str | Sequence[str] = "auto",
        *,
        transform_target: str | None = "auto",
        downweight_outliers: str | None = "auto",
        categorical_features: Any = "from_dtype",
        validation_fraction: float = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.members = members
        self.transform_target = transform_target
        self.downweight_outliers = downweight_outliers
        self.categorical_features = categorical_features
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.random_state = random_state

    def _predict_rows(self, rows: NDArray) -> NDArray:
        """Within the range of the training targets and a quarter of it on both sides."""
        return np.clip(super()._predict_rows(rows), *self._bounds)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("transform_target", self.transform_target, ("auto", None))
        check_option("downweight_outliers", self.downweight_outliers, ("auto", None))

    def _fit_training(self, training: TrainingRows, progress: Progress) -> None:
        target = training.target
        Y = target.reshape(len(target), -1)
        units = target_units(Y, training.weight)
        sample = training_sample(training)
        groups = training.groups  # as they were given, without near-copies
        encoding, training, random = self._encode(training, units(Y))
        table, solution, n_iter, outliers = self._learn_targets(
            training, encoding, Y, units, random, progress
        )
        predictions = solution.out_of_fold
        judge_held_out(
            table, solution.held, predictions, solution.copy_correlation, type(self).__name__
        )
        predictions = predictions * units.scale + units.center
        grouped = training._replace(groups=groups)
        held = out_of_fold(grouped, table, solution.held, predictions)
        spread_form = largest_form(solution.members)
        members = [member.in_units(units.center, units.scale) for member in solution.members]
        self._finish(
            solution._replace(members=members),
            Y.shape[1],
            training.used,
            n_iter_=n_iter,
            n_distinct_=table.shape[0],
            encoding_=encoding,
            out_of_fold_=held,
            outliers_=training.used[outliers],
            spread_=fit_spreads(spread_form, training.rows, training.used, held),
            _one_output=target.ndim == 1,
            _bounds=target_bounds(Y),
            _sample=sample,
        )

    def _learn_targets(
        self,
        training: TrainingRows,
        encoding: Encoding,
        Y: NDArray,
        units: FeatureScaling,
        random: np.random.RandomState,
        progress: Progress,
    ) -> tuple[Table, TableSolution, int, NDArray]:
        """Fit the model and, if the target has tails, a second one on the transformed target; average the two.

        Also returns the number of iterations and the rows whose targets are gross errors. Rows that look so, but that a
        transform explains, are the tail of the target.
        """
        same_folds = deepcopy(random)
        X = training.rows
        weight = training.weight
        gaps = encoding.gaps(X)
        trust = self._trust(X, units(Y), weight, gaps)
        has_gross_errors = np.any(trust < 0.5) and are_gross(trust)
        transformed = None
        if has_gross_errors:
            transformed = self._transform(X, Y, weight, TRANSFORM_LIMITS.explained)
            if transformed is not None:
                trust = np.ones(len(X))
        outliers = np.flatnonzero(trust < 0.5)
        trusted = training._replace(weight=weight * trust)
        table, solution, n_iter = self._learn(trusted, encoding, units(Y), None, random, progress)
        if not has_gross_errors:
            transformed = self._transform(X, Y, weight * trust, TRANSFORM_LIMITS.hopeless)
        if transformed is None:
            return table, solution, n_iter, outliers

        Z = transformed.standardized
        trust_in_transformed = self._trust(X, Z, weight, gaps)
        trusted = training._replace(weight=weight * trust_in_transformed)
        scaling = solution.members[0].scaling
        _, other, n_more = self._learn(trusted, encoding, Z, None, same_folds, progress, scaling)
        # gross errors are so in both
        in_either = weight * np.maximum(trust, trust_in_transformed)
        solution = join_transformed(solution, other, table, transformed, in_either, units)
        if all(isinstance(member, TransformedForms) for member in solution.members):
            outliers = np.flatnonzero(trust_in_transformed < 0.5)
        return table, solution, n_iter + n_more, outliers

    def _distill(self, rows: NDArray, n_support: Any) -> Pipeline:
        predictions = self._predict_rows(rows)
        if self._one_output:
            predictions = predictions[:, 0]
        machine = LABRegressor(n_support, random_state=0)
        reader = TableReader(self.encoding_, self._column_labels)
        return distill_numbers(reader, rows, predictions, machine)

    def _trust(self, X: Any, Y: NDArray, weight: NDArray, gaps: NDArray) -> NDArray:
        """Factors of the weights of rows, below one for gross errors."""
        if self.downweight_outliers is None or is_dask(X) or len(X) < OUTLIER_LIMITS.fewest_rows:
            return np.ones(len(X))
        copies = find_copies(X)
        observed = Observations.of(copies, Y)
        if len(observed) < OUTLIER_LIMITS.fewest_rows:
            return np.ones(len(X))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        trust = trust_in_targets(
            observed.take(X),
            observed.take(Y),
            observed.total(weight),
            observed.take(copies),
            seed,
            observed.take(gaps),
        )
        return observed.spread(trust)

    def _transform(self, X: Any, Y: NDArray, weight: NDArray, most: float) -> Transformed | None:
        """A transform of the targets worth trying: for one output with tails, in memory.

        With it the squared error of small models is at most `most` times that without.
        """
        if self.transform_target is None or is_dask(X) or Y.shape[1] > 1:
            return None
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        copies = find_copies(X)
        observed = Observations.of(copies, Y)
        transformed = choose_transform(
            observed.take(X),
            observed.take(Y),
            observed.total(weight),
            observed.take(copies),
            seed,
            most,
        )
        if transformed is None:
            return None
        return transformed.take(observed.number)


class TableClassifier(LocalClassifierMixin, NamedClassifierMixin, _Table):
    """Classification of a table as it is, with its words, dates and empty cells, and nothing to tune.

    The members of `TableRegressor` on targets of plus and minus one (one column for two classes, one per class
    otherwise), and logistic regression; above 1000 rows coefficients of least log-loss compete for the wide machines.
    The members are weighed by log-loss, which is their error in ``validation_errors_``. Probabilities are
    ``softmax(slope * scores + bias)``, fitted on out-of-fold scores. Tables and weights are those of `TableRegressor`.

    Parameters
    ----------
    members : "auto" or list of str, default="auto"
        What may compete, as in `TableRegressor`.
    categorical_features : "from_dtype", None, or array-like of bool, int or str, default="from_dtype"
        The columns that are categories, as in `TableRegressor`.
    validation_fraction : float, default=0.2
        The rows held out, above 2500 rows, to choose settings and weights; smaller tables, and up to 5000 rows of which
        few would be outside of the largest class, are cross-validated.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time, as in `TableRegressor`.
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
        ``member.weight * member(encoding_(X))`` (f of two classes counts as -f / 2 and f / 2). The scores are
        averaged log-odds, so that the slope is near one.
    members_ : list of LocalForm, Linear, Trees and Experts
        The members with weight, as in `TableRegressor`, each of which predicts log-odds: one function for two classes,
        and one per class otherwise.
    estimators_ : list of TableClassifier
        The members as fitted models of their own, as in `TableRegressor`; probabilities have the calibration of the
        average.
    weights_, encoding_, validation_errors_, validation_curve_, certificate_, n_iter_, n_parameters_
        As in `TableRegressor`.
    n_distinct_ : int
        As in `TableRegressor`.
    feature_importances_ : ndarray of shape (n_features,)
        As in `TableRegressor`, of the log-loss.
    out_of_fold_ : OutOfFold or None
        Probabilities of the rows that validation held out, as in `TableRegressor`; `target` is the number of the class.
    copy_correlation_ : float
        0: equal rows are observations of their class.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    TableRegressor : The regressor.
    LABClassifier : One machine on few support points.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercerless import TableClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TableClassifier(["local"], max_iter=10, random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        members: str | Sequence[str] = "auto",
        *,
        categorical_features: Any = "from_dtype",
        validation_fraction: float = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        class_weight: dict | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.members = members
        self.categorical_features = categorical_features
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.class_weight = class_weight
        self.random_state = random_state

    def _fit_training(self, training: TrainingRows, progress: Progress) -> None:
        labels = training.target
        Y = signed_targets(labels, len(training.classes))
        units = class_units(Y, training.weight)
        sample = training_sample(training)
        groups = training.groups  # as they were given, without near-copies
        encoding, training, random = self._encode(training, units(Y))
        table, solution, n_iter = self._learn(
            training, encoding, units(Y), labels, random, progress
        )
        log_odds = solution.out_of_fold
        grouped = training._replace(groups=groups)
        calibration, held = self._calibrate(grouped, table, solution.held, log_odds, units(Y))
        if held is not None:
            weight = training.weight_of(held.rows)
            warn_if_no_better_than_shares(held, weight, type(self).__name__)
        self._finish(
            solution,
            Y.shape[1],
            training.used,
            classes_=training.classes,
            calibration_=calibration,
            n_iter_=n_iter,
            n_distinct_=table.shape[0],
            encoding_=encoding,
            out_of_fold_=held,
            _sample=sample,
        )

    def _distill(self, rows: NDArray, n_support: Any) -> Pipeline:
        scores = class_scores(self._predict_rows(rows))
        machine = LABClassifier(n_support, random_state=0)
        reader = TableReader(self.encoding_, self._column_labels)
        return distill_classes(reader, rows, self.calibration_(scores), self.classes_, machine)


def own_random_state(random_state: Any) -> np.random.RandomState:
    """A generator that nothing else draws from; for a whole number the one that scikit-learn makes of it.

    A second model, of a transformed target, draws the same folds from a copy of it.
    """
    random = check_random_state(random_state)
    is_shared = random_state is None or random is random_state or random_state is np.random
    if is_shared:
        return np.random.RandomState(random.randint(2**31 - 1))
    return random


def count_parameters(members: Sequence[Any], n_functions: int, n_features: int) -> int:
    """How many numbers the kernel members have, their linear parts included."""
    forms = kernel_forms(members)
    if not forms:
        return 0
    n_linear = n_functions * (1 + n_features)
    return sum(form.n_parameters for form in forms) + n_linear


def target_bounds(Y: NDArray, margin: float = 0.25) -> tuple[NDArray, NDArray]:
    """The range of the targets, and a share of it on both sides, beyond which nothing is predicted."""
    low = Y.min(axis=0)
    high = Y.max(axis=0)
    reach = margin * (high - low)
    return low - reach, high + reach


def together(training: TrainingRows) -> TrainingRows:
    """The rows with groups that also hold near-copies together, if there are any."""
    sets = near_copies(training.rows, training.columns.categories)
    if sets is None:
        return training
    if training.groups is not None:
        sets = join_groups(training.groups, sets)
    return training._replace(groups=sets)


def training_sample(training: TrainingRows) -> TrainingSample | None:
    """Training rows for `feature_importances_`; None for a Dask array and very few rows."""
    rows = training.rows
    if is_dask(rows) or len(rows) < 10:
        return None
    return TrainingSample.of(rows, training.target, training.weight, training.groups)


def largest_form(members: Sequence[Any]) -> LocalForm | None:
    """The kernel form with most centers."""
    forms = kernel_forms(members)
    return max(forms, key=lambda form: (len(form.centers), form.weight), default=None)


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
            yield member, member.compare(X)
