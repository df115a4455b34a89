"""Conformal prediction: sets and intervals with a guaranteed coverage, from out-of-fold predictions.

An out-of-fold prediction shows how wrong the model is on an item it has not seen. If new items come from the same
distribution as the training items, whatever it is, their errors rank among these like any other: the
``ceil((n + 1) coverage)``-th smallest of n errors is not exceeded with probability at least `coverage`. If items come
in groups, it is new groups that come from the same distribution: every group counts as one, its items share its count.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import blockwise
from mercerless.core.folds import OutOfFold
from mercerless.core.suspects import Suspects, suspect_labels
from mercerless.core.validation import warn


def check_coverage(coverage: Any) -> None:
    """Raise unless the coverage lies strictly between 0 and 1."""
    if not (isinstance(coverage, (float, np.floating)) and 0.0 < coverage < 1.0):
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, such as 0.9.")


def conformal_rank(n: int, coverage: float, what: str = "out-of-fold predictions") -> int:
    """The rank ``ceil((n + 1) coverage)`` among n errors; raises if that needs more errors."""
    rank = int(np.ceil((n + 1) * coverage - 1e-9))
    if rank > n:
        need = int(np.ceil(coverage / (1.0 - coverage) - 1e-9))
        most = f"; ask for at most {np.floor(1000.0 * n / (n + 1)) / 1000.0:g}" if n else ""
        raise ValueError(
            f"coverage={coverage:g} needs at least {need} {what}, but there are {n}{most}."
        )
    return rank


def conformal_quantile(
    errors: NDArray,
    coverage: float,
    groups: NDArray | None = None,
    what: str = "out-of-fold predictions",
) -> NDArray:
    """The error, in each column of (n, ...), that a new item exceeds with probability at most ``1 - coverage``.

    An item of a new group ranks among the G groups, whose items share the mass ``1 / (G + 1)`` evenly (Lee, Barber and
    Willett, "Distribution-free inference with hierarchical data", 2023). Groups of one item give the usual rank.
    """
    if groups is None:
        return np.sort(errors, axis=0)[conformal_rank(len(errors), coverage, what) - 1]
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    conformal_rank(len(sizes), coverage, f"groups of {what}")
    order = np.argsort(errors, axis=0, kind="stable")
    mass = np.cumsum(1.0 / (sizes[group[order]] * (len(sizes) + 1.0)), axis=0)
    position = (mass < coverage - 1e-9).sum(axis=0)
    ordered = np.take_along_axis(errors, order, axis=0)
    return np.take_along_axis(ordered, position[None], axis=0)[0]


def set_thresholds(held_out: OutOfFold, coverage: float, by_class: bool, names: NDArray) -> NDArray:
    """The smallest probability, per class, with which a class enters a prediction set.

    One for all classes, or (`by_class`) one for each from its own items, so that every class is covered as stated and
    not only the average over classes. `names` are those of the classes in error messages.
    """
    truth = held_out.target
    proba_of_truth = held_out.prediction[np.arange(len(truth)), truth]
    if not by_class:
        return np.full(len(names), -conformal_quantile(-proba_of_truth, coverage, held_out.groups))
    thresholds = np.empty(len(names))
    for label, name in enumerate(names):
        of_class = truth == label
        groups = held_out.groups if held_out.groups is None else held_out.groups[of_class]
        what = f"items of class {name!s}"
        thresholds[label] = -conformal_quantile(-proba_of_truth[of_class], coverage, groups, what)
    return thresholds


def _warn_of_missed_class(
    held_out: OutOfFold, thresholds: NDArray, coverage: float, names: NDArray
) -> None:
    """Warn if the sets cover a class clearly less often than stated, beyond chance in any of the classes."""
    truth = held_out.target
    rows = np.arange(len(truth))
    is_likeliest = held_out.prediction.argmax(axis=1) == truth
    is_covered = (held_out.prediction[rows, truth] >= thresholds[truth]) | is_likeliest
    counts = np.bincount(truth, minlength=len(names))
    covered = np.bincount(truth, weights=is_covered, minlength=len(names))
    chance = binom.cdf(covered, counts, coverage)
    worst = int(chance.argmin())
    if chance[worst] >= 0.05 / len(names):
        return
    warn(
        f"The sets cover {coverage:.0%} of all items, but only {covered[worst] / counts[worst]:.0%} "
        f"of those of class {names[worst]!s}, out of fold; pass by_class=True to cover every class "
        "as often."
    )


class ConformalMixin:
    """Prediction sets and intervals with a guaranteed coverage, from the attribute ``out_of_fold_``."""

    classes_: NDArray
    out_of_fold_: Any  # an OutOfFold, or None
    predict: Any
    predict_proba: Any
    # how to get out-of-fold predictions, for the message if there are none
    _without_out_of_fold = "fit it with cross-validation"

    @available_if(is_classifier)
    @blockwise
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        by_class: bool = False,
        allow_empty: bool = False,
        **new: Any,
    ) -> NDArray:
        """Sets of classes that contain the true one with a given probability.

        A class is in the set if its probability is at least the one that a share `coverage` of the training items,
        out of fold, gave to their own class. The only assumption is that new items come from the same distribution as
        the training items; the guarantee holds on average over items, not for each. After a fit with groups new items
        may be of new groups, which come from the same distribution as those of the training items.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict`.
        coverage : float, default=0.9
            How often the true class is in the set, strictly between 0 and 1.
        by_class : bool, default=False
            Whether the coverage holds within every class, not only on average over all; needs
            ``coverage / (1 - coverage)`` items of every class.
        allow_empty : bool, default=False
            Whether a set may be empty if no class is probable enough. Otherwise the most probable class is always in
            the set, and the sets of a model that is right more often than `coverage` cover more than stated.
        **new : dict
            Further arguments of `predict_proba`, such as ``reverse``.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Which classes are in the set, in the order of ``classes_``.
        """
        check_coverage(coverage)
        held_out = self._held_out(**new)
        if len(self.classes_) < 2:
            raise ValueError(
                "The training items have one class only; prediction sets need at least two."
            )
        proba = self.predict_proba(X, **new)
        thresholds = set_thresholds(held_out, coverage, by_class, self.classes_)
        if not by_class:
            _warn_of_missed_class(held_out, thresholds, coverage, self.classes_)
        sets = proba >= thresholds
        if not allow_empty:
            sets[np.arange(len(sets)), proba.argmax(axis=1)] = True
        return sets

    @available_if(is_regressor)
    @blockwise
    def predict_interval(self, X: Any, coverage: float = 0.9, **new: Any) -> NDArray:
        """Intervals that contain the true number with a given probability.

        The prediction, plus and minus the out-of-fold error that a share `coverage` of the training items does not
        exceed; for models that predict standard deviations relative to these, so that intervals are wide where the
        targets scatter. The only assumption is that new items come from the same distribution as the training items;
        the guarantee holds on average over items, not for each. After a fit with groups new items may be of new groups,
        which come from the same distribution as those of the training items.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict`.
        coverage : float, default=0.9
            How often the number lies in the interval, strictly between 0 and 1.
        **new : dict
            Further arguments of `predict`, such as ``reverse``.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends; with several outputs each is covered separately.
        """
        check_coverage(coverage)
        radius = self._interval_radius(X, coverage, **new)
        prediction = self.predict(X, **new)
        return np.stack([prediction - radius, prediction + radius], axis=-1)

    def _interval_radius(self, X: Any, coverage: float, **new: Any) -> NDArray:
        """How far intervals reach on both sides of the predictions: the same everywhere, unless overridden."""
        held_out = self._held_out(**new)
        errors = np.abs(held_out.prediction - held_out.target)
        return conformal_quantile(errors, coverage, held_out.groups)

    @property
    def suspects_(self) -> Suspects:
        """Training items whose label looks wrong to models that have not seen them; classifiers only."""
        if not is_classifier(self):
            raise AttributeError(f"{type(self).__name__} has no suspects_; classifiers have it.")
        return suspect_labels(self._held_out(), self.classes_)

    def _held_out(self, *given: Any, **new: Any) -> OutOfFold:
        """The out-of-fold predictions that correspond to new items given in this way."""
        check_is_fitted(self)
        held_out = getattr(self, "out_of_fold_", None)
        if held_out is None:
            raise ValueError(
                f"This {type(self).__name__} has no out-of-fold predictions to estimate its errors "
                f"from; {self._without_out_of_fold}."
            )
        return held_out
