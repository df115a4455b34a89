"""The automatic learner of tables: words, dates and gaps as they are, and nothing to tune."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

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
    by_appearance,
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
    warn,
    warn_if_useless,
)
from mercerless.table.columns import Column, as_frame, is_lazy, lazily, row_codes, rows_of
from mercerless.table.encoder import Dates, TableEncoder
from mercerless.table.intervals import Periods, Scatter
from mercerless.table.members.base import Member, Rows
from mercerless.table.members.kernel import kernel_members
from mercerless.table.members.linear import Linear
from mercerless.table.members.trees import Boosted, Randomized
from mercerless.table.target import ClassTarget, NumberTarget
from mercerless.table.views import Standard, isolated

ALL_FOLDS = 2500  # rows up to which every row is held out once
#: Held out of more rows, but at most a fifth. A tenth of 10,000 rows, so that trees need not learn again, saves 10 % of
#: the processor time but raises the errors of 12 tables by 3 +- 2 %.
MOST_HELD_OUT = 2500
#: Of the average toward equal weights, for numbers and for classes: 15 instead of 3 lowers the squared errors of 51
#: tables by .9 +- .3 %.
PULL = {"numbers": 15.0, "classes": 3.0}
#: Of a candidate, relative to the largest; members with smaller ones are dropped.
SMALLEST_WEIGHT = 0.01


class Training(NamedTuple):
    """Checked training rows with weight."""

    columns: list[Column]
    y: NDArray
    weight: NDArray
    groups: NDArray | None
    used: NDArray  # places of the rows among all rows given to fit
    splits: list[Split] | None  # by `cv` or time, if these decide


class _Table(ConformalMixin, FittedEstimator):
    """What the regressor and the classifier share."""

    encoder_: TableEncoder
    members_: list[Member]
    target_: Any  # a NumberTarget or a ClassTarget
    _seed: Any  # an int
    _units: Standard
    _residuals: list[NDArray]
    _weighing: Average
    _names: ClassVar[tuple[str, ...]] = ("kernel", "linear", "boosted")
    _without_out_of_fold = "fit it on more rows"

    def __init__(
        self,
        members: str | Sequence[str] = "auto",
        *,
        kinds: Mapping[str, str] | None = None,
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
        check_number("max_rows", self.max_rows, whole=True)
        names = self._names if self.members == "auto" else self.members
        if isinstance(names, str) or not names or not set(names) <= set(self._names):
            raise ValueError(
                f"members={self.members!r} must be 'auto' or a list of {', '.join(self._names)}."
            )
        if self.time_ordered and self.cv is not None:
            raise ValueError("Pass either cv or time_ordered=True, not both.")
        self._seed = self.random_state
        if not isinstance(self._seed, (int, np.integer)):
            self._seed = check_random_state(self._seed).randint(2**31 - 1)
        with self._progress() as progress, one_blas_thread():
            self._fit(as_frame(X), y, sample_weight, groups, progress)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress) -> None:
        raise NotImplementedError

    def _sample(self, weight: NDArray) -> NDArray:
        """The rows with weight, at most `max_rows` of them."""
        used = np.flatnonzero(weight)
        if len(used) > self.max_rows:
            used = np.sort(np.random.RandomState(self._seed).permutation(used)[: self.max_rows])
        return used

    def _training(
        self, X: Any, y: NDArray, weight: NDArray, groups: Any, used: NDArray
    ) -> Training:
        """These rows of the data, checked."""
        check_consistent_length(X, y)
        if groups is not None:
            groups = check_groups(groups, len(y))
        if len(used) < len(y) or is_lazy(X):
            X = rows_of(X, used)
        self._n_with_weight = int(np.count_nonzero(weight))
        self.encoder_ = TableEncoder(self.kinds, random_state=self._seed)
        columns = self.encoder_.read_training(X)
        if len(used) < 2:
            raise ValueError(f"X has n_samples={len(used)} with weight; at least two are needed.")
        splits = self._splits(y, used, groups)
        if groups is not None:
            groups = groups[used]
        # in steps of a millionth: trees break ties by the last digits
        weight = np.round(weight[used] / weight[used].mean(), 6).clip(1e-6)
        return Training(columns, y[used], weight, groups, used, splits)

    def _splits(self, y: NDArray, used: NDArray, groups: NDArray | None) -> list[Split] | None:
        """Folds of the used rows, in the order of time or by a splitter of all given rows."""
        if self.time_ordered:
            return list(TimeSeriesSplit(min(5, len(used) - 1)).split(used))
        if self.cv is None or isinstance(self.cv, (int, np.integer)):
            return None
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        place = np.full(len(y), -1)
        place[used] = np.arange(len(used))
        folds = [
            (np.setdiff1d(place[train], -1), np.setdiff1d(place[test], -1))
            for train, test in splitter.split(np.zeros((len(y), 1)), y, groups)
        ]
        held_out = np.concatenate([test for _, test in folds])
        if len(np.unique(held_out)) < len(held_out):
            raise ValueError("cv holds out a row twice; use a splitter without overlaps.")
        return [split for split in folds if len(split[0]) and len(split[1])]

    def _folds(self, training: Training, y: NDArray) -> list[Split]:
        """The folds that the members are judged on."""
        if training.splits is not None:
            return training.splits
        options: dict[str, Any] = {"classify": is_classifier(self), "groups": training.groups}
        dropped = self.encoder_.dropped_
        items = row_codes([c for c in training.columns if c.name not in dropped])
        if len(y) <= ALL_FOLDS or self.cv is not None:
            return make_folds(self.cv, items, y, random_state=self._seed, **options)
        share = min(0.2, MOST_HELD_OUT / len(y))
        return [hold_out(share, items, y, random_state=self._seed, **options)]

    def _encode(self, training: Training, Y: NDArray, folds: Sequence[Split]) -> NDArray:
        """Training rows in comparable units; target means of held-out rows come from the rows of their fold."""
        folds = list(folds)
        held_out = np.concatenate([test for _, test in folds])
        rest = np.setdiff1d(np.arange(len(Y)), held_out)
        if len(rest):
            inner = assign_folds(5, len(rest), random_state=self._seed)
            folds += [(rest[train], rest[test]) for train, test in splits_of(inner)]
        A = self.encoder_.learn(training.columns, Y, training.weight, folds)
        self._units = Standard.fit(A)
        return self._units(A)

    def _learn(
        self, training: Training, y: NDArray, target: Any, progress: Progress
    ) -> tuple[Rows, NDArray, NDArray | None, NDArray]:
        """Held-out predictions of all members, their average, and the members with weight learned from all rows.

        Sets the attributes that regression and classification share; returns the held-out rows, their places and
        groups, and their predictions by averages of other rows.
        """
        Y = target(y)
        self.encoder_.learn_text(training.columns, Y[:, : target.n_encoded])
        folds = self._folds(training, y)
        Z = self._encode(training, Y[:, : target.n_encoded], folds)
        labels = y if is_classifier(self) else None
        rows = Rows(Z, Y, labels, target.n_classes, training.weight, folds, self._seed)
        members: list[Member] = []
        outputs: list[NDArray] = []
        for member in self._candidates(rows):
            predicted = member.out_of_fold(rows, outputs)
            progress.step({"stage": member.name})
            if predicted is not None:
                members.append(member)
                outputs.append(predicted)

        places = np.sort(np.concatenate([test for _, test in folds]))
        held_out = rows.take(places)
        groups = None if training.groups is None else training.groups[places]
        outputs = [values[places] for values in outputs]
        residuals = [target.residuals(held_out.Y, values, held_out.weight) for values in outputs]
        candidates = [target.candidates(*pair) for pair in zip(outputs, residuals)]
        owner = np.repeat(np.arange(len(members)), [len(scores) for scores in candidates])
        scores = np.concatenate(candidates)
        average = average_of(
            scores,
            held_out.Y[:, :1] if labels is None else labels[places],
            held_out.weight,
            classify=labels is not None,
            parts=assign_folds(5, len(places), together=groups, random_state=self._seed),
            pull=PULL["numbers" if labels is None else "classes"],
        )
        used = np.unique(owner[average.weights >= SMALLEST_WEIGHT * average.weights.max()])
        for place in used:
            members[place].fit(rows)
            progress.step({"stage": members[place].name})
        weights = {members[i].name: float(average.weights[owner == i].sum()) for i in used}
        errors = {}
        for member, scores in zip(members, candidates):
            errors[member.name] = min(map(held_out.error_of, scores))
        self._set_fitted(
            n_features_in_=self.encoder_.n_features_in_,
            encoder_=self.encoder_,
            members_=[members[place] for place in used],
            weights_=weights,
            errors_=errors,
            certificate_=average.residual,
            notes_=self._notes(),
            target_=target,
            _residuals=[residuals[place] for place in used],
            _weighing=average.take(np.isin(owner, used)),
        )
        assert average.out_of_fold is not None
        return held_out, places, groups, average.out_of_fold

    def _candidates(self, rows: Rows) -> Iterator[Member]:
        """The members, the cheap ones first, so that trees know their rivals."""
        names = self._names if self.members == "auto" else self.members
        if "kernel" in names:
            yield from kernel_members(rows)
        makers = {"linear": Linear, "boosted": Boosted, "randomized": Randomized}
        for name, make in makers.items():
            if name in names:
                yield make()

    def _notes(self) -> list[str]:
        """Sentences about the fit."""
        encoder = self.encoder_
        notes = [f"Column {name!r} {why}." for name, why in encoder.dropped_.items()]
        if self._n_with_weight > self.max_rows:
            notes.append(
                f"Learned from a random sample of {self.max_rows} of {self._n_with_weight} rows; "
                "raise max_rows to use more."
            )
        dates = [part.is_ascending for _, part in encoder._parts if isinstance(part, Dates)]
        if dates and self.time_ordered and not any(dates):
            notes.append("time_ordered=True, but the dates of the rows do not ascend; sort them.")
            warn(notes[-1])
        elif dates and self.cv is None and not self.time_ordered:
            notes.append(
                "Rows have dates but were held out at random; if new rows come later than these, "
                "sort the rows by time and pass time_ordered=True."
            )
        return notes

    def _rows(self, X: Any) -> NDArray:
        """New rows in comparable units."""
        check_is_fitted(self)
        return self._units(self.encoder_.encode(X))

    def _average(self, Z: NDArray) -> NDArray:
        """Probabilities, or numbers in standard units (n, 1), of encoded rows."""
        with one_blas_thread():
            scores = [
                self.target_.candidates(member.predict(Z), residuals)
                for member, residuals in zip(self.members_, self._residuals)
            ]
        return self._weighing(np.concatenate(scores))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


class TableRegressor(RegressorMixin, _Table):
    """Regression on a table as it is, with its words, dates and empty cells, and nothing to tune.

    Kernel machines, a linear model and boosted trees predict held-out rows; nonnegative weights average them, and
    those with weight learn from all rows. Members also predict ``asinh`` of the target, which
    helps if it has tails. Predictions stay in the range of the training targets.

    For several targets use `sklearn.multioutput.MultiOutputRegressor`.

    Parameters
    ----------
    members : "auto" or list of str, default="auto"
        What is averaged: "kernel", "linear", "boosted"; "auto" means all.
    kinds : dict or None, default=None
        The kinds of columns that should not be inferred, as in `TableEncoder`.
    cv : int, splitter, iterable or None, default=None
        How rows are held out. None means five folds up to 2500 rows, and a fifth of more rows (at most 2500). If
        all folds of a splitter look forward, intervals are as wide as the hardest of their periods asks.
    time_ordered : bool, default=False
        Whether the rows are in the order of time: then members are judged on rows later than those they learned from,
        and intervals are as wide as the hardest of five periods asks.
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
        Mean squared error of every member on held-out rows, of standardized targets.
    out_of_fold_ : OutOfFold
        Predictions of held-out rows by averages of the other folds.
    notes_ : list of str
        Sentences about the fit: columns that were left out, and what may be wrong.
    target_ : object
        The units of the targets, as the members see them.
    certificate_ : float
        Relative violation of the optimality conditions of the weights.
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
        name = type(self).__name__
        y = check_targets(y, name)
        if y.ndim == 2 and y.shape[1] > 1:
            raise ValueError(
                f"y has {y.shape[1]} targets; wrap {name} in "
                "sklearn.multioutput.MultiOutputRegressor."
            )
        y = column_or_1d(y, warn=True)
        weight = check_weight(sample_weight, len(y))
        used = self._sample(weight)
        gross = used[isolated(y[used])]
        training = self._training(X, y, weight, groups, np.setdiff1d(used, gross))
        target = NumberTarget.fit(training.y, training.weight)
        rows, places, groups, averages = self._learn(training, training.y, target, progress)
        if len(gross):
            self.notes_.append(
                f"Left out {len(gross)} of {len(y)} rows, the first is row {gross[0]}: their targets "
                "lie far beyond all others."
            )
        standard = target.clip(averages[:, 0])
        predicted = target.given(standard)
        truth = training.y[places]
        errors = np.abs(predicted - truth)
        constant = leave_one_out_constant(truth, rows.weight)
        warn_if_useless(errors**2, constant, name, rows.weight)
        self.out_of_fold_ = OutOfFold(training.used[places], predicted, truth, groups)
        splits = training.splits
        self._scatter: Scatter | Periods
        if splits and all(train.max() < test.min() for train, test in splits):
            starts = sorted(test.min() for _, test in splits)
            period = np.searchsorted(starts, places, side="right")
            self._scatter = Periods(errors, period, groups)
        else:
            self._scatter = Scatter.fit(rows.Z, standard, errors, groups, self._seed)

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
        return self.target_.clip(self._average(Z)[:, 0])

    def _interval_radius(self, X: Any, coverage: float, **new: Any) -> NDArray:
        Z = self._rows(X)
        return self._scatter.radius(Z, self._standard(Z), coverage)


class TableClassifier(ClassifierMixin, _Table):
    """Classification of a table as it is, with its words, dates and empty cells, and nothing to tune.

    The members of `TableRegressor` (logistic regression as the linear one) and extremely randomized trees predict
    held-out rows; their calibrated probabilities are averaged with nonnegative weights and sharpened.

    Parameters
    ----------
    members, kinds, cv, time_ordered, max_rows
        As in `TableRegressor`; members may be "randomized" too.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the sample weights.
    random_state : int, RandomState or None, default=0
        Makes folds and trees repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    encoder_, members_, weights_, notes_, target_, certificate_, n_features_in_
        As in `TableRegressor`.
    errors_ : dict of str to float
        Log-loss of all members on held-out rows, each calibrated.
    out_of_fold_ : OutOfFold
        Probabilities of held-out rows by averages of the other folds; `target` is the number of the class.

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

    _names = (*_Table._names, "randomized")

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
        weight, classes, numbers = check_classes(y, sample_weight, self.class_weight, name)
        training = self._training(X, numbers, weight, groups, self._sample(weight))
        warn_of_lonely_classes(classes[training.y], training.groups, training.weight)
        # numbered by first appearance, so that names do not matter
        labels = by_appearance(training.y)
        present, first = np.unique(training.y, return_index=True)
        if len(present) < 2:
            raise ValueError("y has one class only among the rows that are used.")
        target = ClassTarget(len(present))
        rows, places, groups, averages = self._learn(training, labels, target, progress)
        self.classes_ = classes[present]
        self._rank = labels[first]
        truth = np.searchsorted(present, training.y[places])
        proba = averages[:, self._rank]
        truth_shares = np.eye(len(present))[truth]
        errors = np.sum((proba - truth_shares) ** 2, axis=1)
        constant = leave_one_out_constant(truth_shares, rows.weight)
        warn_if_useless(errors, constant, name, rows.weight)
        self.out_of_fold_ = OutOfFold(training.used[places], proba, truth, groups)

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
