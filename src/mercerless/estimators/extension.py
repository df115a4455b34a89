"""Ordinary ways of extending a similarity to new items, as baselines: bilinear ridge and nearest neighbours."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercerless._validation import check_memory
from mercerless.estimators.hyper_search import check_similarity, make_folds
from mercerless.kernels import Gaussian, Kernel, as_kernel


class _WeightedExtension(TransformerMixin, BaseEstimator):
    """Extensions of the form ``W(Z) S``: every new item is a weighted mean of training items."""

    def transform(self, X: ArrayLike) -> NDArray:
        """Similarities of new items to the training items.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The new items.

        Returns
        -------
        ndarray of shape (n, n_samples)
            The extended similarities.
        """
        return self._weights(X) @ self.similarity_

    def similarities(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray:
        """Similarities among new items.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The rows.
        Y : array-like of shape (m, n_features) or None, default=None
            The columns; None means X.

        Returns
        -------
        ndarray of shape (n, m)
            The extended similarities.
        """
        left = self._weights(X)
        right = left if Y is None else self._weights(Y)
        return left @ self.similarity_ @ right.T

    def _weights(self, X: ArrayLike) -> NDArray:
        raise NotImplementedError

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class BilinearExtension(_WeightedExtension):
    """Extend a similarity by ridge regression of its rows on an item kernel, from both sides.

    ``k(z, a) = G(z, A) (G + alpha I)^-1 S`` for training items a, and the same from the right for two new items.

    Parameters
    ----------
    kernel : str, Kernel or None, default=None
        The item kernel G; None: a Gaussian whose scale cross-validation chooses.
    alpha : float or None, default=None
        The ridge penalty; None: by cross-validation over items.
    cv : int, default=5
        Number of folds of items.
    memory_limit : int, float, str or None, default=None
        Bytes this may use; None: half of what is free.
    random_state : int, RandomState or None, default=None
        Draws the folds.

    Attributes
    ----------
    kernel_ : Kernel
        The item kernel.
    alpha_ : float
        The ridge penalty.
    similarity_ : ndarray of shape (n_samples, n_samples)
        The training similarities.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training items.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when X has them.

    See Also
    --------
    HyperRidge : Contains this as the tensor hyper-kernel without trend and penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import BilinearExtension
    >>> X = np.linspace(0, 1, 40).reshape(-1, 1)
    >>> S = -np.abs(X - X.T)
    >>> model = BilinearExtension(random_state=0).fit(X[::2], S[::2, ::2])
    >>> bool(np.abs(model.transform(X[1::2]) - S[1::2, ::2]).max() < 0.1)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel | None = None,
        *,
        alpha: float | None = None,
        cv: int = 5,
        memory_limit: int | float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.cv = cv
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> "BilinearExtension":
        """Choose the kernel and the penalty and factorise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The items.
        y : array-like of shape (n_samples, n_samples)
            Their similarities.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, S = _check_fit(self, X, y)
        if self.alpha is not None and not self.alpha > 0:
            raise ValueError(f"alpha must be positive or None, not {self.alpha!r}.")
        check_memory(
            48.0 * len(X) ** 2,
            f"Extending the similarities of {len(X)} items",
            self.memory_limit,
            "use fewer items or raise memory_limit",
        )
        kernels, alphas = self._candidates(X), self._alphas()
        best = kernels[0], alphas[0]
        if len(kernels) * len(alphas) > 1 and len(X) > 2:
            order, slices = make_folds(len(X), self.cv, check_random_state(self.random_state))
            folds = [order[s] for s in slices]
            errors = {
                (k, a): _fold_error(kernels[k](X), S, alphas[a], folds)
                for k in range(len(kernels))
                for a in range(len(alphas))
            }
            k, a = min(errors, key=errors.get)
            best = kernels[k], alphas[a]
        factor = cho_factor(best[0](X).astype(float) + best[1] * np.eye(len(X)))
        self.kernel_, self.alpha_, self._factor = best[0], best[1], factor
        self.similarity_, self.X_fit_ = S, X
        return self

    def _candidates(self, X: NDArray) -> list[Any]:
        if self.kernel is not None:
            return [as_kernel(self.kernel, X)]
        spread = float(np.sqrt(X.var(axis=0).sum())) or 1.0
        return [Gaussian(spread * a) for a in (0.25, 0.5, 1.0, 2.0, 4.0)]

    def _alphas(self) -> list[float]:
        return [float(self.alpha)] if self.alpha is not None else [10.0**k for k in range(-6, 2)]

    def _weights(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return cho_solve(self._factor, self.kernel_(self.X_fit_, X)).T


class NearestExtension(_WeightedExtension):
    """Extend a similarity by giving every new item the mean similarities of its nearest training items.

    Parameters
    ----------
    n_neighbors : int, default=1
        How many neighbours are averaged.

    Attributes
    ----------
    similarity_ : ndarray of shape (n_samples, n_samples)
        The training similarities.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, when X has them.

    See Also
    --------
    BilinearExtension : The stronger baseline.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import NearestExtension
    >>> X = np.array([[0.0], [1.0]])
    >>> NearestExtension().fit(X, np.eye(2)).transform([[0.9], [0.1]])
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, n_neighbors: int = 1):
        self.n_neighbors = n_neighbors

    def fit(self, X: ArrayLike, y: ArrayLike) -> "NearestExtension":
        """Index the items.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The items.
        y : array-like of shape (n_samples, n_samples)
            Their similarities.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, S = _check_fit(self, X, y)
        if not 1 <= self.n_neighbors <= len(X):
            raise ValueError(f"n_neighbors must lie between 1 and the {len(X)} items, not {self.n_neighbors!r}.")
        self._index = NearestNeighbors(n_neighbors=self.n_neighbors).fit(X)
        self.similarity_ = S
        return self

    def _weights(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        nearest = self._index.kneighbors(X, return_distance=False)
        weights = np.zeros((len(X), len(self.similarity_)))
        np.put_along_axis(weights, nearest, 1.0 / self.n_neighbors, axis=1)
        return weights


def _check_fit(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray]:
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None: pass the similarities.")
    X = validate_data(estimator, X, dtype=[np.float64, np.float32])
    S = check_similarity(y, len(X))
    if np.isnan(S).any():
        raise ValueError("y has missing similarities (NaN); use HyperRidge, which needs only some of them.")
    return X, S


def _fold_error(G: NDArray, S: NDArray, alpha: float, folds: list[NDArray]) -> float:
    """The relative squared error of leaving folds of items out: fold x rest and fold x fold weigh the same."""
    errors, squares = np.zeros(2), np.full(2, np.finfo(float).tiny)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(S)), fold)
        system = G[np.ix_(rest, rest)] + alpha * np.eye(len(rest))
        W = cho_solve(cho_factor(system), G[np.ix_(rest, fold)]).T
        half = W @ S[np.ix_(rest, rest)]
        for k, (values, truth) in enumerate(((half, S[np.ix_(fold, rest)]), (half @ W.T, S[np.ix_(fold, fold)]))):
            errors[k] += float(np.sum((values - truth) ** 2))
            squares[k] += float(np.sum(truth**2))
    return float(np.mean(errors / squares))
