"""Small transformers that make scikit-learn's baselines work on any data of a comparison."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data


class LargestMinus(TransformerMixin, BaseEstimator):
    """Similarities to the training items as distances: the largest training similarity minus the similarity."""

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        X = validate_data(self, X)
        self.largest_ = float(np.max(X))
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        return np.maximum(self.largest_ - validate_data(self, X, reset=False), 0.0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


class CodedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of any labels around one that takes only the numbers 0, 1, 2, ..."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict_proba(self, X: Any) -> NDArray:
        return self.estimator_.predict_proba(X)

    def predict(self, X: Any) -> NDArray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
