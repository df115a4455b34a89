"""A transformer that makes scikit-learn's neighbors work on similarities."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
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
