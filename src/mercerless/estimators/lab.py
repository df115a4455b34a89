"""Compact regressors and classifiers with learned local bandwidths."""

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from mercerless._blocks import blockwise, check_rows, is_dask, reduce_rows, take_rows
from mercerless._memory import check_memory, memory_budget, row_blocks
from mercerless._optional import CallbackSupportMixin, with_callbacks
from mercerless._validation import (
    check_classes,
    check_labels,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn_if_useless,
)
from mercerless.kernels.local import LocalExponential, LocalGaussian, LocalLaplace
from mercerless.selection.calibration import calibrate_scores
from mercerless.selection.copies import MergedRows, merge_copies
from mercerless.selection.folds import find_copies, hold_out, join_groups, make_folds
from mercerless.selection.lab import (
    OBJECTIVES,
    SELECTIONS,
    LABSolution,
    Settings,
    fit_lab,
    held_out_error,
    shared_value,
)
from mercerless.selection.scaling import FeatureScaling, robust_scaling, same_units, standard_scaling
from mercerless.solvers.lab import Moments

FORMS = {"gaussian": LocalGaussian, "laplace": LocalLaplace, "exponential": LocalExponential}
_AUTO_FORMS = ("gaussian", "laplace")
_ALL_ROWS = 1000  # up to so many rows kernel ridge regression on all of them is tried too
_MAX_SUPPORT = 200
_LEARNING_ROWS = 10_000  # the bandwidths of larger data are learned on blocks of at least so many rows
_ROWS_PER_POINT = 20  # of a support point
_BANDWIDTHS_PER_ROW = 8  # many features mean many bandwidths, which need more rows
_LAPLACE_WORK = 1e9  # rows x support points x features above which "auto" leaves out the form without matrix products
_MORE_BLOCKS = 3
_FEWEST_DISTINCT = 10  # with fewer, equal rows are the nature of the data (see `folds`) and are not merged
_BLOCK_BYTES = 2**25  # what a block of rows needs in passes over all rows
_SINGLE = 2**21  # entries times features above which kernels are learned in single precision


class _Part(NamedTuple):
    """One fitted expansion in scaled units."""

    form: str
    kernel: Any
    centres: NDArray
    coef: NDArray


class _LAB(CallbackSupportMixin, BaseEstimator):
    """What the regressor and the classifier share: everything but the targets."""

    def _check_parameters(self, n: int) -> None:
        for name, options in (("kernel", ("auto", *FORMS)), ("selection", SELECTIONS), ("objective", OBJECTIVES)):
            if getattr(self, name) not in options:
                raise ValueError(f"{name}={getattr(self, name)!r} is not known; use one of {', '.join(options)}.")
        value = self.n_support
        whole = isinstance(value, Integral) and not isinstance(value, bool) and value >= 1
        fraction = isinstance(value, Real) and not isinstance(value, Integral) and 0 < value <= 1
        if not (whole or fraction or value == "auto"):
            raise ValueError(f"n_support={value!r} must be a positive whole number, a fraction of the rows, or 'auto'.")
        if whole and value > n:
            raise ValueError(
                f"n_support={value} is more than the {n} training rows; use fewer, a fraction such as 0.25, or 'auto'."
            )
        for name in ("alpha", "growth"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and np.isfinite(value) and value > 0):
                raise ValueError(f"{name}={value!r} must be a positive number or None.")
        if self.validation_fraction is not None and not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction!r} must lie between 0 and 1, or be None.")
        for name in ("max_iter", "max_rows", "max_support"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Integral) and value >= 1):
                raise ValueError(f"{name}={value!r} must be a positive whole number.")
        if self.dtype not in ("auto", "float32", "float64", np.float32, np.float64):
            raise ValueError(f"dtype={self.dtype!r} must be 'auto', 'float32' or 'float64'.")

    def _train_rows(self, X: Any, y: Any, check: Callable, **options: Any) -> tuple[Any, NDArray]:
        """Validated rows, of which a Dask array is checked as it is read, and targets in memory."""
        if not is_dask(X):
            return validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2, **options)
        X, y = check_rows(X), check(None if y is None else np.asarray(y), type(self).__name__)
        check_consistent_length(X, y)
        if len(X) < 2:
            raise ValueError("X has one row; at least two are needed.")
        self.n_features_in_ = X.shape[1]
        return X, y

    def _n_support(self, n: int) -> int:
        if self.n_support == "auto":
            return max(1, min(_MAX_SUPPORT, n // 4))
        return int(self.n_support) if isinstance(self.n_support, Integral) else max(1, round(self.n_support * n))

    def _folds(self, Z: NDArray, labels: NDArray | None, groups: NDArray | None, random) -> list:
        """Five folds up to 250 rows, three up to 1300, one hold-out above; copies and groups on one side."""
        n, options = len(Z), {"classify": labels is not None, "groups": groups, "random_state": random}
        if self.validation_fraction is None or n < 5:
            return []
        if n <= 1300:
            return make_folds(5 if n <= 250 else 3, Z, labels, **options)
        return [hold_out(self.validation_fraction, Z, labels, **options)]

    def _fit(self, X, Y: NDArray, weight: NDArray | None, groups: ArrayLike | None, labels=None) -> dict[str, Any]:
        """Learn from validated rows and standardised targets; returns the fitted attributes."""
        self._check_parameters(len(X))
        random = check_random_state(self.random_state)
        copies = find_copies(X)
        if copies.max() + 1 < _FEWEST_DISTINCT:
            copies = np.arange(len(X))
        merged = merge_copies(Y, weight, copies)
        groups = None if groups is None else join_groups(np.asarray(groups), copies)[merged.first]
        settings, rows, more = self._plan((len(merged.first), X.shape[1]), random)
        entries = len(rows) * settings.n_support * X.shape[1]
        dtype = np.dtype((np.float32 if entries > _SINGLE else np.float64) if self.dtype == "auto" else self.dtype)
        all_rows = self._tries_all_rows(len(merged.first))
        self._check_memory(X.shape, settings, len(rows), Y.shape[1], dtype.itemsize, all_rows)
        automatic = _AUTO_FORMS if entries <= _LAPLACE_WORK else ("gaussian",)
        forms = automatic if self.kernel == "auto" else (self.kernel,)
        scaling = self._scaling(X, merged, rows, forms, settings)
        Z = scaling(take_rows(X, merged.first[rows]), dtype)
        correlation = 0.0 if labels is not None else _copy_correlation(merged, rows, Z, forms[0], settings)
        weight = merged.weights(correlation)
        folds = self._folds(
            Z, None if labels is None else labels[merged.first[rows]], None if groups is None else groups[rows], random
        )
        if groups is not None and len(folds) == 1:  # further rows must not know the held-out groups
            held = np.unique(groups[rows[folds[0][1]]])
            more = [block[~np.isin(groups[block], held)] for block in more]
        steps: list[None] = []

        def report(info: dict) -> bool:
            steps.append(None)
            return self._report(info)

        part = partial(_some_rows, X, merged, weight, scaling, dtype)
        solution = fit_lab(
            {form: FORMS[form] for form in forms},
            Z,
            merged.Y[rows],
            settings,
            folds,
            all_rows=all_rows,
            weights=None if weight is None else np.sqrt(weight[rows] / weight[rows].mean()),
            callback=report,
            total=None
            if len(rows) == len(merged.first)
            else partial(_total, X, *merged.spread(weight, len(X)), scaling, dtype, settings.n_support),
            more=[partial(part, block) for block in more if len(block)],
        )
        held_out = rows[solution.validation_rows]
        if len(held_out):
            w, truth = None if weight is None else weight[held_out], merged.Y[held_out]
            losses = ((solution.validation_predictions - truth) ** 2).sum(axis=1)
            warn_if_useless(losses, leave_one_out_constant(truth, w), type(self).__name__, w, stacklevel=5)
        attributes = self._attributes(X, Z, merged, rows, scaling, solution)
        return {**attributes, "n_iter_": max(1, len(steps)), "copy_correlation_": correlation, "_copies": copies}

    def _plan(self, shape: tuple[int, int], random: np.random.RandomState) -> tuple[Settings, NDArray, list[NDArray]]:
        """The settings, the rows on which bandwidths are learned, and further such blocks of rows."""
        n, d = shape
        m = self._n_support(n)
        seed = random.randint(2**31 - 1)
        limit = self._learning_rows(m, d) if self.max_rows is None else self.max_rows
        order = random.permutation(n) if n > limit else np.arange(n)
        rows, *more = (np.sort(order[i : i + limit]) for i in range(0, min(n, (1 + _MORE_BLOCKS) * limit), limit))
        settings = Settings(
            self.objective,
            min(m, len(rows)),
            self.selection,
            self.alpha,
            self.max_iter,
            self.growth,
            self.max_support or len(rows),
            seed,
            d <= max(50, m),
        )
        return settings, rows, [block for block in more if len(block) >= limit // 2]

    def _learning_rows(self, m: int, d: int) -> int:
        """Rows at a time: enough for the support points, and for their bandwidths as far as memory allows."""
        least = max(_LEARNING_ROWS, _ROWS_PER_POINT * m)
        affordable = 0.5 * memory_budget(self.memory_limit) / (4.5 * 4 * (m + d))
        return max(least, min(m * d // _BANDWIDTHS_PER_ROW, int(affordable)))

    def _tries_all_rows(self, n: int) -> bool:
        """Whether kernel ridge regression with all rows as centres competes."""
        defaults = self.n_support == "auto" and self.objective == "evidence" and self.alpha is None
        return defaults and self.growth is None and self.validation_fraction is not None and 5 <= n <= _ALL_ROWS

    def _check_memory(self, shape, settings, n_rows: int, n_outputs: int, itemsize: int, all_rows: bool) -> None:
        """Refuse before any work what would not fit; the figures are measured and asserted in the tests."""
        n, d = shape
        m = settings.n_support if self.growth is None else min(n_rows, settings.max_support)
        learning = n_rows * (4.5 * itemsize * (m + d) + 32 * n_outputs) + 400.0 * m * d
        need = learning + 64.0 * n * n_outputs + (80.0 * n * n if all_rows else 0.0) + 1.25 * _BLOCK_BYTES
        what = f"Learning {m} support points of {d} features on {n_rows} of {n} rows"
        check_memory(need, what, self.memory_limit, "set a smaller max_rows or n_support, or raise memory_limit")

    def _scaling(self, X, merged: MergedRows, rows, forms, settings) -> FeatureScaling:
        """Standardised features; where they have tails, whatever scaling the evidence of shared bandwidths prefers."""
        plain = standard_scaling(X)
        order = np.random.RandomState(settings.seed).permutation(len(rows))[:2000]
        sample = rows[np.sort(order)]
        A = take_rows(X, merged.first[sample])
        if np.abs(plain(A)).max() <= 3:  # no tails
            return plain
        choices = [plain, robust_scaling(A)._replace(low=plain.low, high=plain.high)]
        if same_units(A):
            choices.append(plain._replace(scale=np.full(X.shape[1], np.sqrt(np.mean(np.var(A, axis=0))))))
        values = [
            min(shared_value(form, FORMS[form], scaling(A, np.float32), merged.Y[sample], settings) for form in forms)
            for scaling in choices
        ]
        return choices[int(np.argmin(values))]

    def _attributes(self, X, Z, merged: MergedRows, rows, scaling, solution: LABSolution) -> dict[str, Any]:
        parts, bandwidths = [], []
        held = rows[solution.validation_rows]
        # errors of merged rows are those of their means; what rows deviate from their means comes on top
        noise = float(np.mean(merged.deviations[held])) if len(held) else 0.0
        rows = merged.first[rows]
        numbers = 0
        for e in solution.expansions:
            widths = np.exp(e.log_bandwidths)
            centres = Z[e.support].astype(np.float64)
            kernel = FORMS[e.form](widths if np.ndim(widths) else float(widths))
            parts.append(_Part(e.form, kernel, centres, e.weight * e.coef))
            bandwidths.append(np.broadcast_to(widths, centres.shape))
            numbers += centres.size + np.size(widths) + e.coef.size
        linear = sum(e.weight * e.linear for e in solution.expansions)
        support = np.concatenate([rows[e.support] for e in solution.expansions])
        return {
            "scaling_": scaling,
            "kernel_": [e.form for e in solution.expansions],
            "support_": support,
            "support_vectors_": take_rows(X, support).astype(np.float64),
            "bandwidths_": np.vstack(bandwidths),
            "alpha_": np.array([np.exp(e.log_ridge) for e in solution.expansions]),
            "n_support_": len(np.unique(support)),
            "n_parameters_": int(numbers + linear.size),
            "loss_curve_": solution.loss_curve,
            "validation_curve_": {
                form: np.array(curve) + [0, noise] for form, curve in solution.validation_curves.items()
            },
            "validation_errors_": {name: error + noise for name, error in solution.candidates.items()},
            "stationarity_": solution.stationarity,
            "max_error_": solution.max_error,
            "_parts": parts,
            "_linear": linear,
            "n_distinct_": len(merged.first),
            "_validation": (held, solution.validation_predictions),
        }

    def _scores(self, X: ArrayLike) -> NDArray:
        """Standardised predictions, in row blocks."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        out = np.empty((len(X), self._linear.shape[1]))
        widest = max(len(p.centres) for p in self._parts)
        for block in row_blocks(len(X), 24 * (X.shape[1] + widest), _BLOCK_BYTES):
            Z = self.scaling_(X[block], X.dtype)
            out[block] = self._linear[0] + Z @ self._linear[1:]
            for part in self._parts:
                out[block] += part.kernel(Z, part.centres.astype(Z.dtype)) @ part.coef
        return out

    def part_arrays(self, part: int = 0) -> tuple[NDArray, NDArray]:
        """Bandwidths and support vectors of one part of the model.

        Parameters
        ----------
        part : int, default=0
            The part, see ``kernel_``.

        Returns
        -------
        bandwidths : ndarray of shape (n_support, n_features)
            In units of the scaled features.
        support_vectors : ndarray of shape (n_support, n_features)
            The rows.
        """
        check_is_fitted(self)
        start = sum(len(p.centres) for p in self._parts[:part])
        rows = slice(start, start + len(self._parts[part].centres))
        return self.bandwidths_[rows], self.support_vectors_[rows]

    def _report(self, info: dict) -> bool:
        """Tell the callbacks about one iteration."""
        context = getattr(self, "_callback_fit_ctx", None)
        if context is None or not getattr(self, "_skl_callbacks", None):
            return False
        step = context.subcontext(task_name=info["stage"])
        step.call_on_fit_task_begin(estimator=self, metadata=info)
        return bool(step.call_on_fit_task_end(estimator=self, metadata=info))

    def _finish(self, attributes: dict[str, Any]) -> None:
        """Set everything together, so that an interrupted fit leaves nothing half done."""
        for name, value in attributes.items():
            setattr(self, name, value)
        if self.growth is not None and self.max_error_ > self.growth:
            warnings.warn(
                f"Growth ended at {self.n_support_} support points with a squared error of {self.max_error_:.3g}, more "
                f"than growth={self.growth}; raise max_support or growth.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parts")


def _some_rows(X, merged: MergedRows, weight, scaling, dtype, rows) -> tuple:
    root = None if weight is None else np.sqrt(weight[rows] / weight[rows].mean())
    return scaling(take_rows(X, merged.first[rows]), dtype), merged.Y[rows], root


def _copy_correlation(merged: MergedRows, rows, Z, form, settings) -> float:
    """How alike the errors of copies are: 1 where their targets are equal, 0 where they differ like any two rows."""
    if not merged.pure_error > 0 or np.all(merged.counts == merged.counts[0]):
        return 1.0
    few = np.sort(np.random.RandomState(settings.seed).permutation(len(rows))[:3000])
    error = held_out_error(form, FORMS[form], Z[few], merged.Y[rows[few]], settings)
    return merged.correlation(error)


def _total(X, Y, weight, scaling, dtype, m, function: Callable[..., Moments]) -> Moments:
    """The moments of all rows, block by block; for a Dask array where its chunks are."""
    per_row = 8.0 * (4 * X.shape[1] + 4 * m)
    work = partial(_scaled_moments, function=function, scaling=scaling, dtype=dtype)
    return reduce_rows(work, Moments.merge, [X, Y, weight], per_row, _BLOCK_BYTES)


def _scaled_moments(X, Y, weight, *, function, scaling, dtype) -> Moments:
    return function(scaling(X, dtype), Y, weight)


class LABRegressor(MultiOutputMixin, RegressorMixin, _LAB):
    """Regression on few support points, each with its own learned bandwidth for every feature.

    ``f(x) = sum_j dual_coef_j k(x, s_j) + linear part``, ``k(x, s_j) = exp(-sum_f ((x_f - s_jf) / h_jf)^2 / 2)`` or
    the Laplace form ``exp(-sum_f |x_f - s_jf| / h_jf)``. The bandwidths minimise the evidence of the coefficients given
    all rows, which also learns the ridge; first one bandwidth per feature, then one per feature and support point,
    pulled towards the shared one. Validation stops the descent and weighs the forms. Features and targets are
    standardised (features with tails through asinh, features in the same units by one scale, where the evidence prefers
    that), so none of this needs tuning. With more than 50 features and fewer support points there is no linear part.

    Parameters
    ----------
    n_support : int, float or "auto", default="auto"
        Support points: a number, a fraction of the rows, or ``min(200, n / 4)``. With "auto" and at most 1000 rows,
        kernel ridge regression with all rows as centres is tried as well and enters where validation prefers it.
    kernel : {"auto", "gaussian", "laplace", "exponential"}, default="auto"
        The form. "auto" fits the Gaussian and the Laplace form on the same support points and weighs them by
        validation; often one remains. Where rows, support points and features multiply to more than 10^9, it is the
        Gaussian form, which is far faster there.
    selection : {"kmeans", "y", "random", "extreme"}, default="kmeans"
        How support points are chosen: rows nearest to k-means centres, evenly spaced in the order of the target, at
        random, or (a bad example, for reproduction) the rows with the largest targets.
    objective : {"evidence", "least_squares", "interpolation"}, default="evidence"
        What the bandwidths minimise: the evidence, which also learns the ridge; the regularised squared error; or the
        paper's squared error off the support of the function that interpolates the support.
    alpha : float or None, default=None
        The ridge per row; None learns it with the evidence and means 1e-5 otherwise.
    growth : float or None, default=None
        The paper's dynamic strategy: rows whose squared error, in units of the standardised target, exceeds this
        become support points, a tenth of `n_support` at a time, until none does.
    max_support : int or None, default=None
        Where growth ends; None means all rows.
    validation_fraction : float or None, default=0.2
        The rows held out, above 1300 rows, to choose the form and the number of iterations; smaller data are
        cross-validated. None means no validation: all iterations, and the form with the smallest objective.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time; None means 10,000, 20 per support point, or (within half of
        the memory limit) one for every 8 bandwidths, whichever is more.
        Of larger data up to three more such blocks refine the bandwidths, each kept only where validation improves.
        The coefficients always come from all rows, which are read block by block and may be a memory map or a
        Dask array.
    dtype : {"auto", "float32", "float64"}, default="auto"
        The precision of kernel evaluations while learning; "auto" is float32 for larger data. Linear systems are
        always solved in float64.
    memory_limit : int, float, str or None, default=None
        Bytes that fit may use besides the data, such as ``"2GB"``; None means half of what is free. A fit that needs
        more is refused before any work. It needs about ``4.5 itemsize max_rows (n_support + n_features)`` bytes,
        whatever the number of rows.
    random_state : int, RandomState or None, default=None
        Makes the folds and the selection repeatable.

    Attributes
    ----------
    support_ : ndarray of shape (n_terms,)
        The training row of every term; distinct within a form.
    support_vectors_ : ndarray of shape (n_terms, n_features)
        These rows.
    bandwidths_ : ndarray of shape (n_terms, n_features)
        The bandwidths, in units of the scaled features (`scaling_`): large where a feature does not matter.
    dual_coef_ : ndarray of shape (n_terms,) or (n_terms, n_outputs)
        The coefficients.
    kernel_ : list of str
        The form of every part; terms are ordered by part.
    alpha_ : ndarray of shape (n_parts,)
        The ridges.
    scaling_ : callable
        Scales features as the model sees them.
    n_support_ : int
        Distinct support points.
    n_parameters_ : int
        The size of the model: all numbers it needs to predict, besides the scaling.
    n_iter_ : int
        All iterations of all descents.
    loss_curve_ : ndarray
        The objective after every iteration of the heaviest local part.
    validation_curve_ : dict of str to ndarray of shape (n_checkpoints, 2)
        Per form: iterations and validation errors (mean squared, standardised targets).
    validation_errors_ : dict of str to float
        The validation error of everything that was tried.
    stationarity_ : float
        The projected gradient at the end of the descent relative to the start; early stopping leaves it positive.
    max_error_ : float
        The largest squared error on a training row, standardised.
    n_distinct_ : int
        Distinct training rows: equal rows are merged, with the mean of their targets.
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
    linear part; bounds and a pull keep the bandwidths sane. ``objective="interpolation"``, ``selection="y"`` and
    ``growth`` give the paper's method.

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

    def __init__(
        self,
        n_support: int | float | str = "auto",
        *,
        kernel: str = "auto",
        selection: str = "kmeans",
        objective: str = "evidence",
        alpha: float | None = None,
        growth: float | None = None,
        max_support: int | None = None,
        validation_fraction: float | None = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        dtype: str = "auto",
        memory_limit: int | float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_support = n_support
        self.kernel = kernel
        self.selection = selection
        self.objective = objective
        self.alpha = alpha
        self.growth = growth
        self.max_support = max_support
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.random_state = random_state

    @with_callbacks
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> "LABRegressor":
        """Learn support, bandwidths and coefficients.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n, n_features)
            The rows; a float32 or float64 memory map, or a Dask array, is read block by block.
        y : array-like of shape (n,) or (n, n_outputs)
            The targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Row weights; rows of weight 0 are left out.
        groups : array-like of shape (n,) or None, default=None
            Rows of one group (a patient, a machine, a stretch of time) are never on both sides of a validation split.

        Returns
        -------
        LABRegressor
            The fitted estimator.
        """
        X, y = self._train_rows(X, y, check_targets, multi_output=True, y_numeric=True)
        X, y, weight, groups = _drop_weightless(X, y, check_weight(sample_weight, len(X)), groups)
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        scaling = standard_scaling(Y)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        attributes = self._fit(X, scaling(Y), weight, groups)
        del attributes["_copies"]
        attributes["_target"] = scaling
        attributes["_one_output"] = np.ndim(y) == 1
        coef = np.vstack([part.coef for part in attributes["_parts"]]) * scaling.scale
        attributes["dual_coef_"] = coef[:, 0] if np.ndim(y) == 1 else coef
        self._finish(attributes)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    @blockwise
    def predict(self, X: ArrayLike) -> NDArray:
        """Predict targets, in row blocks; lazily for a Dask array.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
            The predictions.
        """
        P = self._scores(X) * self._target.scale + self._target.center
        return P[:, 0] if self._one_output else P


class LABClassifier(ClassifierMixin, _LAB):
    """Classification on few support points, each with its own learned bandwidth for every feature.

    Least squares on indicator targets (plus and minus one for two classes, one column per class otherwise) with the
    model and the objective of `LABRegressor`. Probabilities are ``softmax(slope * scores + bias)``, fitted on
    out-of-fold scores.

    Parameters
    ----------
    n_support : int, float or "auto", default="auto"
        Support points: a number, a fraction of the rows, or ``min(200, n / 4)``. With "auto" and at most 1000 rows,
        kernel ridge regression with all rows as centres is tried as well and enters where validation prefers it.
    kernel : {"auto", "gaussian", "laplace", "exponential"}, default="auto"
        The form. "auto" fits the Gaussian and the Laplace form on the same support points and weighs them by
        validation; often one remains. Where rows, support points and features multiply to more than 10^9, it is the
        Gaussian form, which is far faster there.
    selection : {"kmeans", "y", "random", "extreme"}, default="kmeans"
        How support points are chosen: rows nearest to k-means centres, evenly spaced in the order of the target, at
        random, or (a bad example, for reproduction) the rows with the largest targets.
    objective : {"evidence", "least_squares", "interpolation"}, default="evidence"
        What the bandwidths minimise: the evidence, which also learns the ridge; the regularised squared error; or the
        paper's squared error off the support of the function that interpolates the support.
    alpha : float or None, default=None
        The ridge per row; None learns it with the evidence and means 1e-5 otherwise.
    growth : float or None, default=None
        The paper's dynamic strategy: rows whose squared error, in units of the standardised target, exceeds this
        become support points, a tenth of `n_support` at a time, until none does.
    max_support : int or None, default=None
        Where growth ends; None means all rows.
    validation_fraction : float or None, default=0.2
        The rows held out, above 1300 rows, to choose the form and the number of iterations; smaller data are
        cross-validated. None means no validation: all iterations, and the form with the smallest objective.
    max_iter : int, default=150
        Iterations of the local bandwidths.
    max_rows : int or None, default=None
        Rows on which bandwidths are learned at a time; None means 10,000, 20 per support point, or (within half of
        the memory limit) one for every 8 bandwidths, whichever is more.
        Of larger data up to three more such blocks refine the bandwidths, each kept only where validation improves.
        The coefficients always come from all rows, which are read block by block and may be a memory map or a
        Dask array.
    dtype : {"auto", "float32", "float64"}, default="auto"
        The precision of kernel evaluations while learning; "auto" is float32 for larger data. Linear systems are
        always solved in float64.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the sample weights.
    memory_limit : int, float, str or None, default=None
        Bytes that fit may use besides the data, such as ``"2GB"``; None means half of what is free. A fit that needs
        more is refused before any work. It needs about ``4.5 itemsize max_rows (n_support + n_features)`` bytes,
        whatever the number of rows.
    random_state : int, RandomState or None, default=None
        Makes the folds and the selection repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    support_ : ndarray of shape (n_terms,)
        The training row of every term; distinct within a form.
    support_vectors_ : ndarray of shape (n_terms, n_features)
        These rows.
    bandwidths_ : ndarray of shape (n_terms, n_features)
        The bandwidths, in units of the scaled features (`scaling_`): large where a feature does not matter.
    dual_coef_ : ndarray of shape (n_terms,) or (n_terms, n_outputs)
        The coefficients.
    kernel_ : list of str
        The form of every part; terms are ordered by part.
    alpha_ : ndarray of shape (n_parts,)
        The ridges.
    scaling_ : callable
        Scales features as the model sees them.
    n_support_ : int
        Distinct support points.
    n_parameters_ : int
        The size of the model: all numbers it needs to predict, besides the scaling.
    n_iter_ : int
        All iterations of all descents.
    loss_curve_ : ndarray
        The objective after every iteration of the heaviest local part.
    validation_curve_ : dict of str to ndarray of shape (n_checkpoints, 2)
        Per form: iterations and validation errors (mean squared, standardised targets).
    validation_errors_ : dict of str to float
        The validation error of everything that was tried.
    stationarity_ : float
        The projected gradient at the end of the descent relative to the start; early stopping leaves it positive.
    max_error_ : float
        The largest squared error on a training row, standardised.
    n_distinct_ : int
        Distinct training rows: equal rows are merged, with the mean of their targets.
    copy_correlation_ : float
        The assumed correlation r of the errors of equal rows; k of them count as ``k / (1 + (k - 1) r)`` rows.
    n_features_in_ : int
        Features seen in fit.
    calibration_ : Calibration
        Slope and bias of the probabilities.

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
        n_support: int | float | str = "auto",
        *,
        kernel: str = "auto",
        selection: str = "kmeans",
        objective: str = "evidence",
        alpha: float | None = None,
        growth: float | None = None,
        max_support: int | None = None,
        validation_fraction: float | None = 0.2,
        max_iter: int = 150,
        max_rows: int | None = None,
        dtype: str = "auto",
        class_weight: dict | str | None = None,
        memory_limit: int | float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_support = n_support
        self.kernel = kernel
        self.selection = selection
        self.objective = objective
        self.alpha = alpha
        self.growth = growth
        self.max_support = max_support
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.dtype = dtype
        self.class_weight = class_weight
        self.memory_limit = memory_limit
        self.random_state = random_state

    @with_callbacks
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> "LABClassifier":
        """Learn support, bandwidths, coefficients and the calibration of probabilities.

        Parameters
        ----------
        X : array-like or dask.array.Array of shape (n, n_features)
            The rows; a float32 or float64 memory map, or a Dask array, is read block by block.
        y : array-like of shape (n,)
            The labels.
        sample_weight : array-like of shape (n,) or None, default=None
            Row weights; rows of weight 0 are left out.
        groups : array-like of shape (n,) or None, default=None
            Rows of one group (a patient, a machine, a stretch of time) are never on both sides of a validation split.

        Returns
        -------
        LABClassifier
            The fitted estimator.
        """
        X, y = self._train_rows(X, y, check_labels)
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, type(self).__name__)
        X, labels, weight, groups = _drop_weightless(X, labels, weight, groups)
        Y, target = _indicators(labels, len(classes))
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        attributes = self._fit(X, target(Y), weight, groups, labels)
        attributes["classes_"], attributes["_target"] = classes, target
        attributes["calibration_"] = _calibrate(attributes, target, labels, weight)
        coef = np.vstack([part.coef for part in attributes["_parts"]]) * target.scale
        attributes["dual_coef_"] = coef[:, 0] if len(classes) == 2 else coef
        self._finish(attributes)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
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
        P = self._scores(X) * self._target.scale + self._target.center
        shifted = _both_columns(P) + self.calibration_.bias / self.calibration_.slope
        return shifted[:, 1] - shifted[:, 0] if len(self.classes_) == 2 else shifted

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
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

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
        scores = self.decision_function(X)
        scores = _both_columns(scores[:, None]) if scores.ndim == 1 else scores
        return softmax(self.calibration_.slope * scores, axis=1)


def _drop_weightless(X, y, weight, groups):
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


def _indicators(labels, n_classes):
    """Indicator targets and their common scale, so that rare classes are not blown up."""
    if n_classes == 2:
        Y = np.where(labels == 1, 1.0, -1.0)[:, None]
    else:
        Y = (labels[:, None] == np.arange(n_classes)).astype(float)
    mean, d = Y.mean(axis=0), Y.shape[1]
    return Y, standard_scaling(Y)._replace(center=mean, scale=np.full(d, np.sqrt(np.mean((Y - mean) ** 2))))


def _both_columns(scores):
    return np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores


def _calibrate(attributes, target, labels, weight):
    """Slope and bias from out-of-fold scores; copies with the same label count as one row with their weight."""
    held, predictions = attributes["_validation"]
    copies, weight = attributes.pop("_copies"), np.ones(len(labels)) if weight is None else weight
    if len(held) == 0:  # no validation: the targets themselves, with the slope's prior keeping it modest
        copies = np.arange(len(labels))
        held, predictions = copies, target(_indicators(labels, len(attributes["classes_"]))[0])
    place = np.full(copies.max() + 1, -1)
    place[held] = np.arange(len(held))
    rows = np.flatnonzero(place[copies] >= 0)
    pairs, pair_of = np.unique(np.stack([place[copies[rows]], labels[rows]]), axis=1, return_inverse=True)
    scores = _both_columns(predictions * target.scale + target.center)
    return calibrate_scores(scores[pairs[0]], pairs[1], np.bincount(pair_of.ravel(), weights=weight[rows]))
