"""The automatic learner of tables: words, dates and gaps as they are, and nothing to tune."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.model_selection import TimeSeriesSplit, check_cv
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from mercerless.core.averaging import Average, average_of
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import FittedEstimator, Progress, all_or_nothing
from mercerless.core.folds import (
    OutOfFold,
    Split,
    assign_folds,
    check_groups,
    hold_out,
    make_folds,
    splits_of,
    warn_of_lonely_classes,
)
from mercerless.core.optional import with_callbacks
from mercerless.core.threads import one_blas_thread
from mercerless.core.validation import (
    check_classes,
    check_number,
    check_random_state,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn_if_useless,
)
from mercerless.table.columns import Column, as_frame, is_frame, is_lazy
from mercerless.table.encoder import TableEncoder
from mercerless.table.intervals import Scatter
from mercerless.table.members.base import Member, Rows, class_scores, error_of
from mercerless.table.members.kernel import kernel_members
from mercerless.table.members.linear import Linear
from mercerless.table.members.trees import Boosted, Randomized
from mercerless.table.target import NumberTarget, Way, class_targets, number_scores, ways_of_numbers
from mercerless.table.views import Standard, isolated

MEMBERS = ("kernel", "linear", "boosted", "randomized")
ALL_FOLDS = 2500  # rows up to which every row is held out once; of more, a fifth is held out
MOST_HELD_OUT = 5000
#: Of the average toward equal weights, for numbers and for classes: 15 instead of 3 lowers the squared errors of 51
#: tables by .9 +- .3 %.
PULL = (15.0, 3.0)
SMALLEST_WEIGHT = 0.01  # of a candidate, relative to the largest; smaller ones are dropped
KEPT_ROWS = 300  # for feature importances


class Training(NamedTuple):
    """Checked training rows with weight."""

    columns: list[Column]
    target: NDArray
    weight: NDArray
    groups: NDArray | None
    used: NDArray  # places of the rows among all rows given to fit
    folds: list[Split] | None  # by `cv` or time, if these decide


class Solution(NamedTuple):
    """What the members and their average learned."""

    members: list[Member]
    ways: list[Way]
    average: Average
    held_out: NDArray  # places of held-out rows
    errors: dict[str, float]


class _Table(ConformalMixin, FittedEstimator):
    """What the regressor and the classifier share."""

    encoder_: TableEncoder
    members_: list[Member]
    _weighing: Average
    _seed: Any
    _units: Standard
    _ways: list[Way]
    _sample: NDArray
    _importances: NDArray | None
    _scatter: Scatter
    _without_out_of_fold = "fit it on more rows"

    def __init__(
        self,
        members: str | Sequence[str] = "auto",
        *,
        kinds: Mapping[Any, str] | None = None,
        cv: Any = None,
        time_ordered: bool = False,
        max_rows: int = 500_000,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.members = members
        self.kinds = kinds
        self.cv = cv
        self.time_ordered = time_ordered
        self.max_rows = max_rows
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
        X : array-like or data frame of shape (n, n_features)
            The table: an array, a frame of pandas, polars or Arrow, a list of dicts, or an array or frame of Dask.
        y : array-like of shape (n,)
            The targets, or the labels, in the order of the rows.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the rows in all losses; rows of weight 0 are left out.
        groups : array-like of shape (n,) or None, default=None
            Rows of one group (a patient, a machine, a stretch of time) are held out together.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        self._seed = self.random_state
        if not isinstance(self.random_state, (int, np.integer)):
            self._seed = check_random_state(self.random_state).randint(2**31 - 1)
        with self._progress() as progress, one_blas_thread():
            self._fit(X, y, sample_weight, groups, progress)
        return self

    def _check_parameters(self) -> None:
        check_number("max_rows", self.max_rows, whole=True)
        names = MEMBERS if self.members == "auto" else self.members
        if isinstance(names, str) or not set(names) <= set(MEMBERS):
            raise ValueError(
                f"members={self.members!r} must be 'auto' or a list of {', '.join(MEMBERS)}."
            )
        if self.time_ordered and self.cv is not None:
            raise ValueError("Pass either cv or time_ordered=True, not both.")

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress) -> None:
        raise NotImplementedError

    def _training(self, X: Any, target: NDArray, weight: NDArray, groups: Any) -> Training:
        """Checked rows with weight, at most `max_rows` of them."""
        check_consistent_length(X, target)
        if groups is not None:
            groups = check_groups(groups, len(target))
        used = np.flatnonzero(weight)
        if len(used) > self.max_rows:
            order = np.random.RandomState(self._seed).permutation(len(used))
            used = used[np.sort(order[: self.max_rows])]
        if len(used) < len(target) or is_lazy(X):
            X = rows_of(X, used)
        self.encoder_ = TableEncoder(self.kinds, random_state=self._seed)
        columns = self.encoder_.read_training(X)
        if len(used) < 2:
            raise ValueError(f"X has n_samples={len(used)} with weight; at least two are needed.")
        folds = self._given_folds(target, weight, used, groups)
        if groups is not None:
            groups = groups[used]
        # in steps of a millionth: trees break ties by the last digits
        weight = np.round(weight[used] / weight[used].mean(), 6).clip(1e-6)
        return Training(columns, target[used], weight, groups, used, folds)

    def _given_folds(
        self, target: NDArray, weight: NDArray, used: NDArray, groups: NDArray | None
    ) -> list[Split] | None:
        """Folds of the rows that are used, in the order of time or by a splitter of all given rows."""
        if self.time_ordered:
            return list(TimeSeriesSplit(min(5, len(used) - 1)).split(used))
        if self.cv is None or isinstance(self.cv, (int, np.integer)):
            return None
        splitter = check_cv(self.cv, target, classifier=is_classifier(self))
        place = np.full(len(target), -1)
        place[used] = np.arange(len(used))
        folds = []
        for train, test in splitter.split(np.zeros((len(target), 1)), target, groups):
            train, test = place[train], place[test]
            folds.append((train[train >= 0], test[test >= 0]))
        held_out = np.concatenate([test for _, test in folds])
        if len(np.unique(held_out)) < len(held_out):
            raise ValueError("cv holds out a row twice; use a splitter without overlaps.")
        return [split for split in folds if len(split[0]) and len(split[1])]

    def _folds(self, training: Training, labels: NDArray | None) -> list[Split]:
        """The folds that the members are judged on."""
        n = len(training.target)
        target = training.target if labels is None else labels
        if training.folds is not None:
            return training.folds
        items = row_codes(training.columns)
        options: dict[str, Any] = {"classify": labels is not None, "groups": training.groups}
        options["random_state"] = self._seed
        if n <= ALL_FOLDS or self.cv is not None:
            return make_folds(self.cv, items, target, **options)
        share = min(0.2, MOST_HELD_OUT / n)
        return [hold_out(share, items, target, **options)]

    def _encode(self, training: Training, Y: NDArray, folds: Sequence[Split]) -> NDArray:
        """Training rows in comparable units; target means of held-out rows come from the rows of their fold."""
        n = len(Y)
        rest = np.setdiff1d(np.arange(n), np.concatenate([test for _, test in folds]))
        folds = list(folds)
        if len(rest):
            inner = assign_folds(5, len(rest), random_state=self._seed)
            folds += [(rest[train], rest[test]) for train, test in splits_of(inner)]
        A = self.encoder_.learn(training.columns, Y, training.weight, folds)
        self._units = Standard.fit(A)
        return self._units(A)

    def _solve(
        self, rows: Rows, target: NumberTarget | None, groups: NDArray | None, progress: Progress
    ) -> Solution:
        """Held-out predictions of all members, their average, and the members with weight learned from all rows."""
        held_out = np.sort(np.concatenate([test for _, test in rows.folds]))
        members: list[Member] = []
        outputs: list[NDArray] = []
        for member in self._candidates(rows):
            predicted = member.out_of_fold(rows, outputs)
            progress.step({"stage": member.name})
            if predicted is not None:
                members.append(member)
                outputs.append(predicted)
        outputs = [values[held_out] for values in outputs]
        weight = rows.weight[held_out]
        if target is None:
            assert rows.labels is not None
            truth = rows.labels[held_out]
            ways = [Way(number, 0, np.zeros(0)) for number in range(len(members))]
        else:
            truth = rows.Y[held_out, :1]
            ways = ways_of_numbers(target, rows.Y[held_out], outputs, weight)
        scores = candidate_scores(target, ways, dict(enumerate(outputs)))
        together = None if groups is None else groups[held_out]
        parts = assign_folds(5, len(held_out), together=together, random_state=rows.seed)
        average = average_of(
            scores, truth, weight, classify=target is None, parts=parts, pull=PULL[target is None]
        )
        errors = {
            members[way.member].name + " of short tails" * way.column: error_of(
                values, truth, weight
            )
            for way, values in zip(ways, scores)
        }
        kept = np.flatnonzero(average.weights > SMALLEST_WEIGHT * average.weights.max())
        average = average.take(kept)
        ways = [ways[place] for place in kept]
        for number in sorted({way.member for way in ways}):
            members[number].refit(rows)
            progress.step({"stage": members[number].name})
        return Solution(members, ways, average, held_out, errors)

    def _candidates(self, rows: Rows) -> Any:
        """The members, the cheap ones first, so that trees know their rivals."""
        names = MEMBERS if self.members == "auto" else self.members
        if "kernel" in names:
            yield from kernel_members(rows)
        makers = {"linear": Linear, "boosted": Boosted, "randomized": Randomized}
        for name, make in makers.items():
            # randomized trees lower squared errors by .1 % only, and make models large
            if name in names and not (name == "randomized" and rows.labels is None):
                yield make()

    def _notes(self) -> list[str]:
        """Sentences about the fit."""
        notes = [f"Column {name!r} {why}." for name, why in self.encoder_.dropped_.items()]
        dates = [name for name, kind in self.encoder_.kinds_.items() if kind == "date"]
        if dates and self.cv is None and not self.time_ordered:
            notes.append(
                f"Rows have dates ({dates[0]!r}) but were held out at random; if new rows come "
                "later than these, sort the rows by time and pass time_ordered=True."
            )
        return notes

    def _finish(self, rows: Rows, solution: Solution, notes: list[str], **others: Any) -> None:
        """Set all attributes at once."""
        used = sorted({way.member for way in solution.ways})
        ways = [way._replace(member=used.index(way.member)) for way in solution.ways]
        members = [solution.members[number] for number in used]
        weights = dict.fromkeys((member.name for member in members), 0.0)
        for way, weight in zip(ways, solution.average.weights):
            weights[members[way.member].name] += float(weight)
        if hasattr(self.encoder_, "feature_names_in_"):
            others["feature_names_in_"] = self.encoder_.feature_names_in_
        self._set_fitted(
            n_features_in_=self.encoder_.n_features_in_,
            encoder_=self.encoder_,
            members_=members,
            weights_=weights,
            _weighing=solution.average,
            errors_=solution.errors,
            certificate_=solution.average.residual,
            notes_=self._notes() + notes,
            _units=self._units,
            _ways=ways,
            _sample=rows.Z[:: -(-len(rows) // KEPT_ROWS)].astype(np.float32),
            _importances=None,
            **others,
        )

    def _rows(self, X: Any) -> NDArray:
        """New rows in comparable units."""
        check_is_fitted(self)
        return self._units(self.encoder_.encode(X))

    def _average(self, Z: NDArray) -> NDArray:
        """Probabilities, or numbers in standard units (n, 1), of encoded rows."""
        with one_blas_thread():
            outputs = {number: member.predict(Z) for number, member in enumerate(self.members_)}
        return self._weighing(candidate_scores(getattr(self, "target_", None), self._ways, outputs))

    @property
    def feature_importances_(self) -> NDArray:
        """How much predictions change if the values of a feature are permuted; with sum 1.

        The mean squared change of the predictions of up to 300 training rows, over five permutations. For the loss on
        rows of your own, use `sklearn.inspection.permutation_importance`.
        """
        check_is_fitted(self)
        if self._importances is None:
            Z = self._sample.astype(np.float64)
            sources = self.encoder_.sources_[self._units.order]
            random = np.random.RandomState(0)
            usual = self._average(Z)
            changes = np.zeros(self.n_features_in_)
            for feature in np.unique(sources):
                columns = np.flatnonzero(sources == feature)
                for _ in range(5):
                    permuted = Z.copy()
                    permuted[:, columns] = Z[random.permutation(len(Z))][:, columns]
                    changes[feature] += np.mean((self._average(permuted) - usual) ** 2)
            total = changes.sum()
            self._importances = changes / total if total > 0.0 else changes
        return self._importances

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


class TableRegressor(RegressorMixin, _Table):
    """Regression on a table as it is, with its words, dates and empty cells, and nothing to tune.

    Kernel machines, a linear model, boosted trees and extremely randomized trees predict held-out rows; nonnegative
    weights average them, and those with weight learn from all rows. Members also predict ``asinh`` of the target, which
    helps if it has tails. Predictions stay in the range of the training targets.

    For several targets use `sklearn.multioutput.MultiOutputRegressor`.

    Parameters
    ----------
    members : "auto" or list of str, default="auto"
        What is averaged: "kernel", "linear", "boosted", "randomized"; "auto" means all.
    kinds : dict or None, default=None
        The kinds of columns that should not be inferred, as in `TableEncoder`.
    cv : int, splitter, iterable or None, default=None
        How rows are held out. None means five folds up to 2500 rows, and a fifth of more rows (at most 5000).
    time_ordered : bool, default=False
        Whether the rows are in the order of time: then members are judged on rows later than those they learned from.
    max_rows : int, default=500_000
        Rows from which the model learns; of more, a random sample.
    random_state : int, RandomState or None, default=0
        Makes folds and trees repeatable.

    Attributes
    ----------
    encoder_ : TableEncoder
        The encoding of the table.
    members_ : list
        The models with weight, with a ``name`` each.
    weights_ : dict of str to float
        Their weights.
    errors_ : dict of str to float
        Mean squared error of all candidates on held-out rows, of standardized targets.
    out_of_fold_ : OutOfFold
        Predictions of held-out rows by averages of the other folds.
    notes_ : list of str
        Sentences about the fit: columns that were left out, and what may be wrong.
    target_ : NumberTarget
        The units of the target.
    certificate_ : float
        Relative violation of the optimality conditions of the weights.
    feature_importances_ : ndarray of shape (n_features,)
        How much predictions change if a feature is permuted; computed at first use.
    n_features_in_ : int
        Columns of the table.

    See Also
    --------
    TableClassifier : The classifier.
    TableEncoder : The encoding alone.

    Examples
    --------
    >>> from mercerless import TableRegressor
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(150, function="f1", noise=0.05, random_state=0)
    >>> model = TableRegressor().fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.8)
    True
    """

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress) -> None:
        X = as_frame(X)
        y = check_targets(y, type(self).__name__)
        if y.ndim == 2 and y.shape[1] > 1:
            raise ValueError(
                f"y has {y.shape[1]} targets; wrap {type(self).__name__} in "
                "sklearn.multioutput.MultiOutputRegressor."
            )
        y = column_or_1d(y, warn=True)
        weight = check_weight(sample_weight, len(y))
        gross = isolated(y)
        weight[gross] = 0.0
        training = self._training(X, y, weight, groups)
        notes = []
        if len(gross):
            notes.append(
                f"{len(gross)} rows were left out, the first is row {gross[0]}: their targets lie "
                "far beyond all others."
            )
        y = training.target
        weight = training.weight
        target = NumberTarget.fit(y, weight)
        folds = self._folds(training, None)
        Z = self._encode(training, target(y)[:, :1], folds)
        rows = Rows(Z, target(y), None, 0, weight, folds, self._seed)
        solution = self._solve(rows, target, training.groups, progress)
        held_out = solution.held_out
        assert solution.average.out_of_fold is not None
        standard = np.clip(solution.average.out_of_fold[:, 0], target.low, target.high)
        predicted = target.given(standard)
        truth = y[held_out]
        losses = (predicted - truth) ** 2
        constant = leave_one_out_constant(truth, weight[held_out])
        warn_if_useless(losses, constant, type(self).__name__, weight[held_out])
        groups = None if training.groups is None else training.groups[held_out]
        scatter = Scatter.fit(Z[held_out], standard, np.abs(predicted - truth), groups, rows.seed)
        self._finish(
            rows,
            solution,
            notes,
            target_=target,
            out_of_fold_=OutOfFold(training.used[held_out], predicted, truth, groups),
            _scatter=scatter,
        )

    def predict(self, X: Any) -> NDArray:
        """Predict targets, lazily for data of Dask.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            The predictions.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return lazily(self.predict, X, ())
        return self.target_.given(self._standard(self._rows(X)))

    def _standard(self, Z: NDArray) -> NDArray:
        """Predictions in standard units, within the range of the training targets."""
        return np.clip(self._average(Z)[:, 0], self.target_.low, self.target_.high)

    def _interval_radius(self, X: Any, coverage: float, **new: Any) -> NDArray:
        Z = self._rows(X)
        return self._scatter.radius(Z, self._standard(Z), coverage)


class TableClassifier(ClassifierMixin, _Table):
    """Classification of a table as it is, with its words, dates and empty cells, and nothing to tune.

    The members of `TableRegressor` (logistic regression as the linear one) predict held-out rows; their calibrated
    probabilities are averaged with nonnegative weights and sharpened.

    Parameters
    ----------
    members, kinds, cv, time_ordered, max_rows
        As in `TableRegressor`.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the sample weights.
    random_state : int, RandomState or None, default=0
        Makes folds and trees repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    encoder_, members_, weights_, notes_, certificate_, n_features_in_
        As in `TableRegressor`.
    errors_ : dict of str to float
        Log-loss of all members on held-out rows, each calibrated.
    out_of_fold_ : OutOfFold
        Probabilities of held-out rows by averages of the other folds; `target` is the number of the class.
    feature_importances_ : ndarray of shape (n_features,)
        As in `TableRegressor`, of the probabilities.

    See Also
    --------
    TableRegressor : The regressor.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercerless import TableClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TableClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        members: str | Sequence[str] = "auto",
        *,
        kinds: Mapping[Any, str] | None = None,
        cv: Any = None,
        time_ordered: bool = False,
        max_rows: int = 500_000,
        class_weight: dict | str | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        super().__init__(
            members,
            kinds=kinds,
            cv=cv,
            time_ordered=time_ordered,
            max_rows=max_rows,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress) -> None:
        name = type(self).__name__
        X = as_frame(X)
        weight, classes, numbers = check_classes(y, sample_weight, self.class_weight, name)
        training = self._training(X, numbers, weight, groups)
        if training.groups is not None:
            warn_of_lonely_classes(classes[training.target], training.groups)
        # numbered by first appearance, so that names do not matter
        present, first, labels = np.unique(training.target, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        labels = rank[labels]
        classes = classes[present]
        if len(classes) < 2:
            raise ValueError("y has one class only among the rows that are used.")
        Y = class_targets(labels, len(classes))
        folds = self._folds(training, labels)
        Z = self._encode(training, Y, folds)
        rows = Rows(Z, Y, labels, len(classes), training.weight, folds, self._seed)
        solution = self._solve(rows, None, training.groups, progress)
        held_out = solution.held_out
        weight = training.weight[held_out]
        assert solution.average.out_of_fold is not None
        proba = solution.average.out_of_fold[:, rank]
        truth = np.argsort(rank)[labels[held_out]]
        shares = others_share(truth, weight, len(classes))
        right = np.maximum(proba[np.arange(len(truth)), truth], np.finfo(float).tiny)
        warn_if_useless(-np.log(right), -np.log(shares), name, weight, capped=False)
        groups = None if training.groups is None else training.groups[held_out]
        self._finish(
            rows,
            solution,
            [],
            classes_=classes,
            out_of_fold_=OutOfFold(training.used[held_out], proba, truth, groups),
            _rank=rank,
        )

    def predict_proba(self, X: Any) -> NDArray:
        """Predict probabilities, lazily for data of Dask.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
            The probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return lazily(self.predict_proba, X, (len(self.classes_),))
        return self._average(self._rows(X))[:, self._rank]

    def predict(self, X: Any) -> NDArray:
        """Predict labels, lazily for data of Dask.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            The labels.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return lazily(self.predict, X, (), self.classes_.dtype)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def candidate_scores(
    target: NumberTarget | None, ways: Sequence[Way], outputs: dict[int, NDArray]
) -> NDArray:
    """Scores of all candidates (n_ways, n, n_classes), or numbers in standard units (n_ways, n, 1)."""
    if target is not None:
        return number_scores(target, ways, outputs)
    return np.stack([class_scores(outputs[way.member]) for way in ways])


def others_share(labels: NDArray, weight: NDArray, n_classes: int) -> NDArray:
    """The share of every row's class among the other rows, with a pull of one row toward equal shares."""
    of_class = np.bincount(labels, weights=weight, minlength=n_classes)
    return (of_class[labels] - weight + 1.0 / n_classes) / (weight.sum() - weight + 1.0)


def row_codes(columns: Sequence[Column]) -> NDArray:
    """Rows as numbers that are equal for rows of equal values, one unit in the last place aside."""
    codes = np.empty((len(columns[0].values), len(columns)))
    for j, column in enumerate(columns):
        if column.kind == "word":
            place: dict[Any, int] = {}
            codes[:, j] = [place.setdefault(word, len(place)) for word in column.values]
        else:
            codes[:, j] = np.nan_to_num(column.as_numbers(), nan=0.0)
    return Standard.fit(codes)(codes)


def rows_of(X: Any, places: NDArray) -> Any:
    """Some rows of a table, in memory."""
    if is_frame(X) and not is_lazy(X):
        return X.iloc[places]
    if not hasattr(X, "columns"):
        return X[places].compute() if is_lazy(X) else np.asarray(X)[places]
    import dask
    import pandas

    parts = X.to_delayed()
    sizes = dask.compute(*map(dask.delayed(len), parts))
    bounds = np.searchsorted(places, np.cumsum([0, *sizes]))
    starts = np.cumsum([0, *sizes])
    subsets = [
        part.iloc[places[first:last] - start]
        for part, start, first, last in zip(parts, starts, bounds, bounds[1:])
    ]
    return pandas.concat(dask.compute(*subsets), ignore_index=True)


def lazily(method: Any, X: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Results of a method for a Dask array or frame, one block at a time; `shape` is that of one row's result."""
    import dask
    import dask.array as da

    sizes: Any = [np.nan]
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
        sizes = X.chunks[0]
    apply = dask.delayed(method, pure=False)
    parts = np.ravel(X.to_delayed())
    blocks = [
        da.from_delayed(apply(part), (size, *shape), dtype)
        for part, size in zip(parts, np.broadcast_to(sizes, len(parts)).tolist())
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)
