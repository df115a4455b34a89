"""How sure: sets and intervals of a stated coverage from out-of-fold predictions, whatever the distribution.

Every out-of-fold prediction says how wrong the model is on an item it has not seen. If new items come from where the
training items came from, their errors rank among these as any other: of n errors the ``ceil((n + 1) coverage)``-th
smallest is not exceeded with probability `coverage` at least.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercerless.core.blocks import blockwise
from mercerless.core.folds import OutOfFold
from mercerless.core.suspects import Suspects, suspect_labels


def check_coverage(coverage: float) -> float:
    """A number strictly between 0 and 1."""
    try:
        value = float(coverage)
    except (TypeError, ValueError):
        value = np.nan
    if not 0.0 < value < 1.0:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, such as 0.9.")
    return value


def conformal_rank(n: int, coverage: float, what: str = "out-of-fold predictions") -> int:
    """The rank ``ceil((n + 1) coverage)`` among n errors; says how many are needed where there are fewer."""
    rank = int(np.ceil((n + 1) * coverage - 1e-9))
    if rank > n:
        need = int(np.ceil(coverage / (1.0 - coverage) - 1e-9))
        most = f"; ask for at most {np.floor(1000.0 * n / (n + 1)) / 1000.0:g}" if n else ""
        raise ValueError(
            f"coverage={coverage:g} needs at least {need} {what}, but there are {n}{most}."
        )
    return rank


def interval_radius(held: OutOfFold, coverage: float) -> NDArray:
    """The absolute error, per output, that a new item exceeds with probability ``1 - coverage`` at most."""
    errors = np.abs(held.prediction - held.target)
    return np.sort(errors, axis=0)[conformal_rank(len(errors), coverage) - 1]


def set_thresholds(
    held: OutOfFold, coverage: float, by_class: bool = False, names: NDArray | None = None
) -> NDArray:
    """The smallest probability, per class, with which a class enters a prediction set.

    One for all classes, or (`by_class`) one each from the items of that class, so that every class is covered as
    stated and not only the mean over classes. `names` are told where a class has too few items.
    """
    n_classes = held.prediction.shape[1]
    right = held.prediction[np.arange(len(held.target)), held.target]
    if not by_class:
        return np.full(n_classes, _threshold(right, coverage, "out-of-fold predictions"))
    names = np.arange(n_classes) if names is None else names
    of_classes = [right[held.target == label] for label in range(n_classes)]
    return np.array(
        [
            _threshold(values, coverage, f"items of class {name!s}")
            for values, name in zip(of_classes, names)
        ]
    )


def _threshold(right: NDArray, coverage: float, what: str) -> float:
    """The probability of the right class that a new item's falls short of with probability ``1 - coverage`` at most."""
    return float(np.sort(right)[len(right) - conformal_rank(len(right), coverage, what)])


class ConformalMixin:
    """Prediction sets and intervals of a stated coverage from ``out_of_fold_``, an `OutOfFold` or None."""

    classes_: NDArray
    out_of_fold_: Any  # an OutOfFold, or None
    predict: Any
    predict_proba: Any
    # what to do where there are no out-of-fold predictions
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
        """Sets of classes that hold the right one with a stated probability.

        A class is in the set if its probability is at least the one that a share `coverage` of the training items,
        out of fold, gave to their own class. This needs no assumption but that new items come from where the training
        items came from; it holds on average over items, not for each.

        Parameters
        ----------
        X : array-like or sequence of items
            New items, as for `predict`.
        coverage : float, default=0.9
            How often the right class is in the set, strictly between 0 and 1.
        by_class : bool, default=False
            Whether the coverage holds within every class and not only on average over all; needs
            ``coverage / (1 - coverage)`` items of every class.
        allow_empty : bool, default=False
            Whether a set may be empty, where no class is probable enough. Otherwise the most probable class is always
            in, and where a model is right more often than `coverage` the sets are right as often as it.
        **new : dict
            Further arguments of `predict_proba`, such as ``reverse``.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Which classes are in the set, in the order of ``classes_``.
        """
        coverage = check_coverage(coverage)
        held = self._held_out(**new)
        if len(self.classes_) < 2:
            raise ValueError(
                "The training items have one class only, so that there is nothing to be unsure of."
            )
        proba = self.predict_proba(X, **new)
        sets = proba >= set_thresholds(held, coverage, by_class, self.classes_)
        if not allow_empty:
            sets[np.arange(len(sets)), proba.argmax(axis=1)] = True
        return sets

    @available_if(is_regressor)
    @blockwise
    def predict_interval(self, X: Any, coverage: float = 0.9, **new: Any) -> NDArray:
        """Intervals that hold the true number with a stated probability.

        The prediction, plus and minus the error that a share `coverage` of the training items stayed below out of
        fold. This needs no assumption but that new items come from where the training items came from; it holds on
        average over items, not for each.

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
            Lower and upper ends; of several outputs each is covered by itself.
        """
        radius = interval_radius(self._held_out(**new), check_coverage(coverage))
        prediction = self.predict(X, **new)
        return np.stack([prediction - radius, prediction + radius], axis=-1)

    @property
    def suspects_(self) -> Suspects:
        """Training items whose given label looks wrong to models that have not seen them; classifiers only."""
        if not is_classifier(self):
            raise AttributeError(f"{type(self).__name__} has no labels, so that none is suspect.")
        return suspect_labels(self._held_out(), self.classes_)

    def _held_out(self, *given: Any, **new: Any) -> OutOfFold:
        """The out-of-fold predictions that stand for new items given in this way."""
        check_is_fitted(self)
        held = getattr(self, "out_of_fold_", None)
        if held is None:
            raise ValueError(
                f"This {type(self).__name__} made no out-of-fold predictions, which tell how sure "
                "it is; "
                f"{self._without_out_of_fold}."
            )
        return held
