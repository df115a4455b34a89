"""The classifier for hits: sparse similarities in, probabilities out."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercerless.core.conformal import ConformalMixin
from mercerless.core.estimator import FittedEstimator
from mercerless.core.folds import OutOfFold, Split, hold_out, make_folds
from mercerless.core.threads import blas_threads
from mercerless.core.validation import (
    align_by_name,
    check_classes,
    check_option,
    check_random_state,
    leave_one_out_constant,
    warn_if_useless,
)
from mercerless.similarity.hits import HitStack, fit_hit_stack

KINDS = ("similarity", "distance")
_FOLDED_ITEMS = 20_000  # above, a single tenth is held out


class HitsClassifier(ClassifierMixin, ConformalMixin, FittedEstimator):
    """Classifier for sparse similarities: hits of a sequence search, links of a graph, thresholded similarities.

    Every item has a few hits among the training items; all other pairs are unknown, or not similar. Six families of
    classifiers (votes of the hits, ridge regression on the rows, propagation of labels along the hits, and logistic
    regressions on the classes' shares among the hits, at one and at two steps) are judged out of fold, calibrated and
    averaged. Nothing dense is made, and time and memory are linear in the number of hits.

    Parameters
    ----------
    kind : {"similarity", "distance"}, default="similarity"
        What the stored entries are. Distances d become ``exp(-(d / m)^2)`` with their median m.
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
    certificate_ : float
        Relative gradient of the calibration, or residual of the weights, whichever is larger.
    n_features_in_ : int
        The number of training items.

    See Also
    --------
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

    _stack: HitStack

    def __init__(
        self,
        *,
        kind: str = "similarity",
        cv: Any = 5,
        class_weight: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kind = kind
        self.cv = cv
        self.class_weight = class_weight
        self.random_state = random_state

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
        check_option("kind", self.kind, KINDS)
        name = type(self).__name__
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, name)
        hits = check_hits(X, "X")
        n = len(labels)
        if hits.shape != (n, n):
            raise ValueError(
                f"X has shape {hits.shape} but y {n} items; give one row and one column per training "
                "item (new items have rows of their own in predict)."
            )
        if weight is None:
            weight = np.ones(n)
        used = np.flatnonzero(weight > 0.0)
        unit = _unit_of(hits, self.kind)
        hits = _similarities(_without_diagonal(hits), unit)[used][:, used]
        weight = weight[used] / weight[used].mean()
        onehot = np.eye(len(classes))[labels[used]]
        if groups is not None:
            groups = np.asarray(align_by_name(X, groups))[used]
        random = check_random_state(self.random_state)
        splits = self._splits(labels[used], groups, random)
        with blas_threads(len(used)):
            stack = fit_hit_stack(hits, onehot, weight, splits, random)
        truth = onehot[stack.held_out]
        losses = ((stack.out_of_fold - truth) ** 2).sum(axis=1)
        held_weight = weight[stack.held_out]
        warn_if_useless(losses, leave_one_out_constant(truth, held_weight), name, held_weight)
        self._set_fitted(
            classes_=classes,
            members_=tuple(stack.family_of[stack.average.chosen].tolist()),
            weights_=stack.average.weights,
            out_of_fold_=OutOfFold(
                used[stack.held_out], stack.out_of_fold, labels[used][stack.held_out]
            ),
            certificate_=stack.average.certificate,
            unit_=unit,
            used_=used,
            n_features_in_=n,
        )
        self._stack = stack
        return self

    def _splits(
        self, labels: NDArray, groups: NDArray | None, random: np.random.RandomState
    ) -> list[Split]:
        """Folds, or of many items a single tenth that is held out."""
        items = np.arange(len(labels))[:, None]
        options: dict[str, Any] = {"classify": True, "groups": groups, "random_state": random}
        if isinstance(self.cv, int) and len(labels) > _FOLDED_ITEMS:
            return [hold_out(0.1, items, labels, **options)]
        return make_folds(self.cv, items, labels, **options)

    def predict_proba(self, X: Any) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : sparse array of shape (m, n_train)
            Hits of the new items among the training items, one row per new item.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        hits = check_hits(X, "X")
        if hits.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {hits.shape[1]} columns but the model was fitted on {self.n_features_in_} items; "
                "give the hits of new items among the training items."
            )
        return self._stack(_similarities(hits, self.unit_)[:, self.used_])

    def predict(self, X: Any) -> NDArray:
        """The most probable class.

        Parameters
        ----------
        X : sparse array of shape (m, n_train)
            Hits of the new items among the training items, one row per new item.

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stack")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        return tags


def check_hits(X: Any, name: str) -> csr_array:
    """Hits as a sparse array of finite, nonnegative float64 without duplicates; nothing of the user's is changed."""
    if not issparse(X):
        raise TypeError(
            f"{name} must be a sparse array of hits (scipy.sparse), got {type(X).__name__}; for a full "
            "matrix use SimilarityClassifier."
        )
    hits = csr_array(X, dtype=np.float64, copy=True)
    hits.sum_duplicates()
    if not np.all(np.isfinite(hits.data)):
        raise ValueError(
            f"{name} has entries that are not finite; leave unknown pairs out instead."
        )
    if np.any(hits.data < 0.0):
        raise ValueError(
            f"{name} has negative entries; hits need scores that grow from zero, such as bit scores, or "
            "distances with kind='distance'."
        )
    return hits


def _without_diagonal(hits: csr_array) -> csr_array:
    rows = np.repeat(np.arange(hits.shape[0]), np.diff(hits.indptr))
    kept = rows != hits.indices
    return csr_array((hits.data[kept], (rows[kept], hits.indices[kept])), shape=hits.shape)


def _unit_of(hits: csr_array, kind: str) -> float | None:
    """The median of distances, their unit; None for similarities."""
    if kind == "similarity":
        return None
    off_diagonal = _without_diagonal(hits).data
    positive = off_diagonal[off_diagonal > 0.0]
    return float(np.median(positive)) if len(positive) else 1.0


def _similarities(hits: csr_array, unit: float | None) -> csr_array:
    """Similarities of hits; distances have a unit. Pairs that are not similar at all are dropped."""
    data = hits.data
    if unit is not None:
        data = np.maximum(np.exp(-((hits.data / unit) ** 2)), np.finfo(float).tiny)
    similarities = csr_array((data, hits.indices, hits.indptr), shape=hits.shape)
    if unit is None:
        similarities.eliminate_zeros()
    return similarities
