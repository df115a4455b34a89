"""The mixin of estimators whose fit makes out-of-fold predictions: prediction sets and intervals."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercerless._blocks import blockwise
from mercerless.selection.conformal import (
    OutOfFold,
    check_coverage,
    interval_radius,
    set_thresholds,
)
from mercerless.selection.suspects import Suspects, suspect_labels


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
        coverage, held = check_coverage(coverage), self._held_out(**new)
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
                f"This {type(self).__name__} made no out-of-fold predictions, which tell how sure it is; "
                f"{self._without_out_of_fold}."
            )
        return held
