"""The learners for hits: sparse similarities in, probabilities or numbers out."""

from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from mercerless.core.averaging_old import Units
from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import (
    FittedEstimator,
    NamedClassifierMixin,
    NamedRegressorMixin,
    all_or_nothing,
)
from mercerless.core.folds import OutOfFold, Split, check_groups, hold_out, make_folds
from mercerless.core.threads import blas_threads
from mercerless.core.validation import (
    check_classes,
    check_option,
    check_random_state,
    check_targets,
    check_weight,
    leave_one_out_constant,
    warn,
    warn_if_useless,
)
from mercerless.similarity.hit_kind import kind_of_hits
from mercerless.similarity.hit_stack import HitStack, fit_hit_stack
from mercerless.similarity.hits import EITHER, THRESHOLDS, ItemHits, TrainingHits


class HitInput(NamedTuple):
    """The training data of a learner on hits: the items that carry weight."""

    hits: TrainingHits
    n_items: int  # how many there are, including those without weight
    used: NDArray  # their positions among all items
    weight: NDArray  # their weights, of mean one
    all_groups: NDArray | None  # of all items
    kind: str
    unit: float | None  # of distances

    @property
    def groups(self) -> NDArray | None:
        """Groups of the items that carry weight."""
        if self.all_groups is None:
            return None
        return self.all_groups[self.used]

    def of_all(self, values: NDArray) -> NDArray:
        """Values of the items that carry weight among those of all items, which are 0."""
        spread = np.zeros((self.n_items, *values.shape[1:]), dtype=values.dtype)
        spread[self.used] = values
        return spread


class HitsLearner(ConformalMixin, FittedEstimator):
    """Base of the classifier and the regressor on hits."""

    _stack: HitStack
    kind_: str
    unit_: float | None
    used_: NDArray
    n_features_in_: int

    def __init__(
        self,
        *,
        kind: str = "auto",
        direction: str = "rows",
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kind = kind
        self.direction = direction
        self.cv = cv
        self.random_state = random_state

    def _read(self, X: Any, n: int, weight: NDArray, groups: ArrayLike | None) -> HitInput:
        """Hits of the items that carry weight among each other, checked."""
        check_option("direction", self.direction, ("rows", "both"))
        hits = check_hits(X, "X", type(self).__name__)
        if hits.shape != (n, n):
            raise ValueError(
                f"X has shape {hits.shape} but y {n} items; give one row and one column per "
                "training item (new items have rows of their own in predict)."
            )
        used = np.flatnonzero(weight > 0.0)
        if len(used) < n:
            hits = csr_array(hits[used][:, used])
        kind = kind_of_hits(hits, self.kind)
        hits = _without_diagonal(hits)
        unit = _unit_of(hits, kind)
        similarities = csr_array(_similarities(hits, unit))
        if not similarities.nnz:
            raise ValueError(
                "X has no hits among the items that carry weight, so that there is nothing to "
                "learn from; the diagonal does not count."
            )
        group_of: NDArray | None = None
        if groups is not None:
            check_consistent_length(weight, groups)
            check_groups(groups, n)
            group_of = column_or_1d(groups)
        training = TrainingHits(similarities, self.direction == "both")
        _warn_of_items_without_hits(training.counts, "training items")
        weight = weight[used] / weight[used].mean()
        return HitInput(training, n, used, weight, group_of, kind, unit)

    def _fit_stack(
        self, data: HitInput, given: NDArray, targets: NDArray, classify: bool
    ) -> dict[str, Any]:
        """Fit families and their average; returns the attributes that describe them.

        `given` are the targets by which folds are made and that are shown, `targets` those of the learners.
        """
        name = type(self).__name__
        random = check_random_state(self.random_state)
        splits = self._splits(given, data, classify, random)
        with blas_threads(len(given)):
            stack = fit_hit_stack(data.hits, targets, data.weight, classify, splits, random)
        truth = targets[stack.held_out]
        losses = ((stack.out_of_fold - truth) ** 2).sum(axis=1)
        weight = data.weight[stack.held_out]
        warn_if_useless(losses, leave_one_out_constant(truth, weight), name, weight)
        self._stack = stack
        average = stack.average
        groups = data.groups
        if groups is not None:
            groups = np.unique(groups, return_inverse=True)[1][stack.held_out]
        return {
            "members_": tuple(stack.family_of[average.chosen].tolist()),
            "weights_": average.weights,
            "out_of_fold_": OutOfFold(
                data.used[stack.held_out], stack.out_of_fold, given[stack.held_out], groups
            ),
            "certificate_": average.certificate,
            "kind_": data.kind,
            "unit_": data.unit,
            "used_": data.used,
        }

    def _splits(
        self, targets: NDArray, data: HitInput, classify: bool, random: np.random.RandomState
    ) -> list[Split]:
        """Folds of the items that carry weight, or of many items a single tenth that is held out."""
        items = np.arange(len(targets))[:, None]
        options: dict[str, Any] = {"classify": classify, "random_state": random}
        if isinstance(self.cv, int) and len(targets) > THRESHOLDS.folded_items:
            return [hold_out(0.1, items, targets, groups=data.groups, **options)]
        if self.cv is None or isinstance(self.cv, Integral):
            return make_folds(self.cv, items, targets, groups=data.groups, **options)
        # a splitter or an iterable counts all items, those without weight too
        every = data.of_all(targets)
        return make_folds(self.cv, every, every, groups=data.all_groups, used=data.used, **options)

    def _predict(self, X: Any, reverse: Any) -> NDArray:
        """Predictions of the stack for new items."""
        check_is_fitted(self)
        rows = self._new_hits(X, "X")
        if self.direction == "rows":
            if reverse is not None:
                raise ValueError("reverse is for direction='both'; leave it out.")
            columns = None
        else:
            if reverse is None:
                raise ValueError(
                    "A model with direction='both' needs the hits of the training items on the new "
                    "ones as well; pass them as reverse, one row per new item, or fit with "
                    "direction='rows'."
                )
            columns = self._new_hits(reverse, "reverse")
            if columns.shape != rows.shape:
                raise ValueError(
                    f"reverse has shape {columns.shape} but X {rows.shape}; both have a row per "
                    "new item and a column per training item."
                )
        new = ItemHits.of(rows, columns)
        _warn_of_items_without_hits(new[EITHER].counts, "new items")
        return self._stack(new)

    def _new_hits(self, X: Any, name: str) -> csr_array:
        """Similarities of new items to the training items that carry weight."""
        hits = check_hits(X, name, type(self).__name__)
        if hits.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {hits.shape[1]} columns but the model was fitted on "
                f"{self.n_features_in_} items; give the hits of new items among the training items."
            )
        return csr_array(_similarities(hits, self.unit_)[:, self.used_])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stack")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        return tags


class HitsClassifier(NamedClassifierMixin, HitsLearner):
    """Classifier for sparse similarities: hits of a sequence search, links of a graph, thresholded similarities.

    Every item has a few hits among the training items; all other pairs are unknown, or not similar. Six families of
    classifiers (votes of the hits, ridge regression on the rows, propagation of labels along the hits, and logistic
    regressions on the classes' shares among the hits, at one and at two steps) are judged out of fold, calibrated and
    averaged. Nothing dense is made, and time and memory are linear in the number of hits.

    Parameters
    ----------
    kind : {"auto", "similarity", "distance"}, default="auto"
        What the stored entries are. Distances d become ``exp(-(d / m)^2)`` with their median m. ``"auto"`` takes
        entries that are smaller for hits with more common hits as distances, and says so unless a zero diagonal is
        stored as well; everything else as similarities.
    direction : {"rows", "both"}, default="rows"
        Whether to learn from the hits of every item only, or also from the items that have it as a hit: citations and
        links of a graph. New items then need the hits of the training items on them, as ``reverse``.
    cv : int, splitter or iterable, default=5
        The folds on which families are judged. Above 20,000 items a single tenth is held out instead of a number of
        folds.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; they multiply the sample weights.
    random_state : int, RandomState, Generator or None, default=None
        Makes folds and random projections repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    members_ : tuple of str
        The family of every averaged setting.
    weights_ : ndarray of shape (n_members,)
        Their weights, with sum 1.
    out_of_fold_ : OutOfFold
        Probabilities of the held-out items; calibration and weights come from other folds.
    kind_ : str
        ``"similarity"`` or ``"distance"``.
    certificate_ : float
        Relative gradient of the calibration, or residual of the weights, whichever is larger.
    n_features_in_ : int
        The number of training items.

    See Also
    --------
    HitsRegressor : For numbers.
    SimilarityClassifier : For a full matrix, or a function of two items.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mercerless import HitsClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["kinase", "protease"], 50)
    >>> first, second = rng.integers(100, size=(2, 2000))
    >>> hit = (y[first] == y[second]) | (rng.uniform(size=2000) < 0.2)
    >>> scores = csr_array((rng.uniform(50, 300, hit.sum()), (first[hit], second[hit])), (100, 100))
    >>> model = HitsClassifier(random_state=0).fit(scores[:80][:, :80], y[:80])
    """

    def __init__(
        self,
        *,
        kind: str = "auto",
        direction: str = "rows",
        cv: Any = 5,
        class_weight: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(kind=kind, direction=direction, cv=cv, random_state=random_state)
        self.class_weight = class_weight

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
        X : sparse array of shape (n, n)
            Row i has the hits of item i among the training items. The diagonal is ignored: an item is no hit of its
            own.
        y : array-like of shape (n,)
            The classes.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the items; items of weight 0 are left out, as items and as hits.
        groups : array-like of shape (n,) or None, default=None
            Items of one group (a family, a patient) are never on both sides of a split.

        Returns
        -------
        self : HitsClassifier
            The fitted model.
        """
        name = type(self).__name__
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, name)
        data = self._read(X, len(labels), weight, groups)
        labels = labels[data.used]
        _warn_of_classes_without_hits(data.hits.matrix, labels, classes)
        attributes = self._fit_stack(data, labels, np.eye(len(classes))[labels], classify=True)
        self._set_fitted(classes_=classes, n_features_in_=len(weight), **attributes)
        return self

    def predict_proba(self, X: Any, reverse: Any = None) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : sparse array of shape (m, n_train)
            Hits of the new items among the training items, one row per new item.
        reverse : sparse array of shape (m, n_train) or None, default=None
            For ``direction="both"``: hits of the training items on the new ones, one row per new item.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._predict(X, reverse)

    def predict(self, X: Any, reverse: Any = None) -> NDArray:
        """The most probable class.

        Parameters
        ----------
        X, reverse : sparse array of shape (m, n_train)
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        return self.classes_[self.predict_proba(X, reverse).argmax(axis=1)]


class HitsRegressor(MultiOutputMixin, NamedRegressorMixin, HitsLearner):
    """Regressor for sparse similarities: hits of a search, links of a graph, thresholded similarities.

    As `HitsClassifier`: means of the hits' numbers, ridge regression on the rows, propagation of the numbers along the
    hits, and ridge regressions on means at one and at two steps are judged out of fold and averaged.

    Parameters
    ----------
    kind : {"auto", "similarity", "distance"}, default="auto"
        What the stored entries are. Distances d become ``exp(-(d / m)^2)`` with their median m. ``"auto"`` takes
        entries that are smaller for hits with more common hits as distances, and says so unless a zero diagonal is
        stored as well; everything else as similarities.
    direction : {"rows", "both"}, default="rows"
        Whether to learn from the hits of every item only, or also from the items that have it as a hit: citations and
        links of a graph. New items then need the hits of the training items on them, as ``reverse``.
    cv : int, splitter or iterable, default=5
        The folds on which families are judged. Above 20,000 items a single tenth is held out instead of a number of
        folds.
    random_state : int, RandomState, Generator or None, default=None
        Makes folds and random projections repeatable.

    Attributes
    ----------
    members_ : tuple of str
        The family of every averaged setting.
    weights_ : ndarray of shape (n_members,)
        Their weights, at least 0; their sum is free.
    out_of_fold_ : OutOfFold
        Predictions of the held-out items, by weights from other folds.
    kind_ : str
        ``"similarity"`` or ``"distance"``.
    certificate_ : float
        Relative residual of the weights.
    n_features_in_ : int
        The number of training items.

    See Also
    --------
    HitsClassifier : For classes.
    SimilarityRegressor : For a full matrix, or a function of two items.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mercerless import HitsRegressor
    >>> rng = np.random.default_rng(0)
    >>> place = rng.uniform(size=100)
    >>> near = np.abs(place[:, None] - place) < 0.1
    >>> hits = csr_array(np.where(near, 1.0 - np.abs(place[:, None] - place), 0.0))
    >>> y = np.sin(6.0 * place)
    >>> model = HitsRegressor(random_state=0).fit(hits[:80][:, :80], y[:80])
    >>> model.score(hits[80:][:, :80], y[80:]) > 0.9
    True
    """

    _units: Units

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
        X : sparse array of shape (n, n)
            Row i has the hits of item i among the training items. The diagonal is ignored: an item is no hit of its
            own.
        y : array-like of shape (n,) or (n, n_outputs)
            The numbers.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the items; items of weight 0 are left out, as items and as hits.
        groups : array-like of shape (n,) or None, default=None
            Items of one group (a family, a patient) are never on both sides of a split.

        Returns
        -------
        self : HitsRegressor
            The fitted model.
        """
        y = check_targets(y, type(self).__name__)
        weight = check_weight(sample_weight, len(y))
        data = self._read(X, len(y), weight, groups)
        given = y[data.used]
        columns = given.reshape(len(given), -1)
        units = Units.of(columns, data.weight)
        attributes = self._fit_stack(data, given, units.enter(columns), classify=False)
        self._units = units
        held_out = attributes["out_of_fold_"]
        prediction = units.leave(held_out.prediction).reshape(held_out.target.shape)
        attributes["out_of_fold_"] = held_out._replace(prediction=prediction)
        self._set_fitted(n_features_in_=len(weight), **attributes)
        return self

    def predict(self, X: Any, reverse: Any = None) -> NDArray:
        """Predicted numbers.

        Parameters
        ----------
        X : sparse array of shape (m, n_train)
            Hits of the new items among the training items, one row per new item.
        reverse : sparse array of shape (m, n_train) or None, default=None
            For ``direction="both"``: hits of the training items on the new ones, one row per new item.

        Returns
        -------
        ndarray of shape (m,) or (m, n_outputs)
            Predictions.
        """
        prediction = self._units.leave(self._predict(X, reverse))
        if self.out_of_fold_.target.ndim == 1:
            return prediction[:, 0]
        return prediction


def check_hits(X: Any, name: str, learner: str) -> csr_array:
    """Hits as a sparse array of finite, nonnegative float64 without duplicates; nothing of the user's is changed.

    Values of duplicates are added, with a warning.
    """
    if hasattr(X, "iloc") and all(hasattr(dtype, "fill_value") for dtype in X.dtypes):
        raise TypeError(
            f"{name} is a data frame of sparse columns; bring rows and columns into the same order "
            f"and pass {name}.sparse.to_coo()."
        )
    if not issparse(X):
        other = learner.replace("Hits", "Similarity")
        raise TypeError(
            f"{name} must be a sparse array of hits (scipy.sparse), got {type(X).__name__}; for a "
            f"full matrix use {other}."
        )
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a sparse array of real numbers with two dimensions, got "
            f"{X.ndim} of {X.dtype}."
        )
    hits = csr_array(X, dtype=np.float64, copy=True)
    hits.sum_duplicates()
    n_repeated = X.nnz - hits.nnz
    if n_repeated:
        warn(
            f"{name} lists {n_repeated} hits of pairs that it has already; the values of a pair "
            "are added, as scipy does. Keep the best hit of each pair."
        )
    if not np.all(np.isfinite(hits.data)):
        raise ValueError(
            f"{name} has entries that are not finite; leave unknown pairs out instead."
        )
    if np.any(hits.data < 0.0):
        raise ValueError(
            f"{name} has negative entries; hits need scores that grow from zero, such as bit "
            "scores, or distances with kind='distance'."
        )
    return hits


def refuse_hits(X: Any, learner: str) -> None:
    """Raise if X is sparse, with the learner to use instead."""
    if issparse(X):
        other = learner.replace("Similarity", "Hits")
        raise TypeError(
            f"X is a sparse array; use {other}, which learns from hits, or pass X.toarray() if the "
            "entries that are not stored are similarities of 0."
        )


def _warn_of_items_without_hits(n_hits: NDArray, what: str) -> None:
    """Warn if some items have no hits."""
    n_alone = int(np.sum(n_hits == 0))
    if n_alone:
        warn(
            f"{n_alone} of {len(n_hits)} {what} have no hits; all that is known of them is the "
            "average over all items."
        )


def _warn_of_classes_without_hits(matrix: csr_array, labels: NDArray, classes: NDArray) -> None:
    """Warn if no item of a class has a hit or is one."""
    n_hits = np.diff(matrix.indptr) + np.bincount(matrix.indices, minlength=len(labels))
    of_class = np.bincount(labels, weights=n_hits, minlength=len(classes))
    is_present = np.bincount(labels, minlength=len(classes)) > 0
    alone = classes[is_present & (of_class == 0)]
    if len(alone):
        warn(
            f"No item of class {alone.tolist()[0]!r} has a hit or is one, so that nothing but its "
            "share is known of it."
        )


def _without_diagonal(hits: csr_array) -> csr_array:
    rows = np.repeat(np.arange(hits.shape[0]), np.diff(hits.indptr))
    kept = rows != hits.indices
    return csr_array((hits.data[kept], (rows[kept], hits.indices[kept])), shape=hits.shape)


def _unit_of(hits: csr_array, kind: str) -> float | None:
    """The median of distances, their unit; None for similarities."""
    if kind == "similarity":
        return None
    positive = hits.data[hits.data > 0.0]
    if not len(positive):
        return 1.0
    return float(np.median(positive))


def _similarities(hits: csr_array, unit: float | None) -> csr_array:
    """Similarities of hits; distances have a unit. Pairs that are not similar at all are dropped."""
    if unit is None:
        hits.eliminate_zeros()
        return hits
    values = np.exp(-((hits.data / unit) ** 2))
    values = np.maximum(values, np.finfo(float).tiny)
    return csr_array((values, hits.indices, hits.indptr), shape=hits.shape)
