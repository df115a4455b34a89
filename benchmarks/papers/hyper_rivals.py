"""Rivals of the hyper-kernels: other kernel learners, and ordinary ways of extending a similarity to new items."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from mercerless.kernels import Gaussian


class AlignmentClassifier(ClassifierMixin, BaseEstimator):
    """A support vector machine with a non-negative combination of Gaussians of length scales ``2**-5, ..., 2**5``.

    Weights are those of `align`, after Cortes, Mohri and Rostamizadeh (Journal of Machine Learning Research 13, 2012),
    or uniform; C is chosen by cross-validation unless given.
    """

    def __init__(self, weights="alignment", C=None, cv=5):
        self.weights = weights
        self.C = C
        self.cv = cv

    def fit(self, X, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        kernels = [Gaussian(2.0**k) for k in range(-5, 6)]
        matrices = [kernel(X) for kernel in kernels]
        weights = np.full(len(kernels), 1.0 / len(kernels))
        if self.weights == "alignment":
            weights = align(
                matrices, np.where(codes[:, None] == codes, 1.0, -1.0 / (len(self.classes_) - 1))
            )
        self.weights_, self.X_fit_ = weights, X
        self.kernels_ = [(w, kernel) for w, kernel in zip(weights, kernels) if w > 0]
        folds = min(self.cv, int(np.bincount(codes).min()))
        machine = SVC(kernel="precomputed", C=1.0 if self.C is None else self.C)
        if self.C is None and folds > 1:
            machine = GridSearchCV(machine, {"C": np.logspace(-2, 3, 6)}, cv=StratifiedKFold(folds))
        self.machine_ = machine.fit(sum(w * M for w, M in zip(weights, matrices)), y)
        return self

    def predict(self, X):
        return self.machine_.predict(sum(w * kernel(X, self.X_fit_) for w, kernel in self.kernels_))


class IndefiniteMKL(ClassifierMixin, BaseEstimator):
    """Multiple indefinite kernel learning: a linear kernel and Gaussians of widths 0.1 and 100, signed coefficients.

    ``min |Y - sum_k K_k a_k|^2 + alpha sum_k |a_k|_1`` after Kowalski, Szafranski and Ralaivola (ICML 2009) with the
    1-norm, as the hyper-kernel paper has it: a lasso on the columns of all matrices. Classes are coded +-1, one against
    the rest; the penalty is chosen by cross-validation.
    """

    def __init__(self, cv=5):
        self.cv = cv

    def _columns(self, X):
        # exp(-|x - z|^2 / sigma^2)
        kernels = (Gaussian(0.1 / np.sqrt(2)), Gaussian(100 / np.sqrt(2)))
        return np.hstack([X @ self.X_fit_.T, *(kernel(X, self.X_fit_) for kernel in kernels)])

    def fit(self, X, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.X_fit_ = X
        columns = self._columns(X)
        # two classes have opposite signs, and so have their machines
        positive = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        self.machines_ = []
        for code in positive:
            signs = np.where(codes == code, 1.0, -1.0)
            machine = LassoCV(alphas=20, cv=self.cv, max_iter=2000)
            self.machines_.append(machine.fit(columns, signs))
        return self

    def predict(self, X):
        columns = self._columns(X)
        values = [machine.predict(columns) for machine in self.machines_]
        if len(values) == 1:
            return self.classes_[(values[0] > 0).astype(int)]
        return self.classes_[np.argmax(values, axis=0)]


def align(matrices, target):
    """Non-negative weights, summing to 1, of the combination with the largest centered alignment with a target.

    ``max_w <K_w, T> / |K_w|`` over ``w >= 0`` with all matrices centered is, up to scale, non-negative least squares,
    ``min_w |K_w - T|^2``; solved on a square root of the Gram matrix, as the matrices are n^2 long.
    """
    flat = np.stack([_center(M).ravel() for M in matrices])
    gram, linear = flat @ flat.T, flat @ _center(target).ravel()
    scale = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = np.linalg.eigh(gram / scale)
    kept = values > 1e-14 * max(values[-1], np.finfo(float).tiny)
    root = (vectors[:, kept] * np.sqrt(values[kept])).T
    right = (vectors[:, kept] / np.sqrt(values[kept])).T @ (linear / scale)
    weights = nnls(root, right)[0] if kept.any() else np.zeros(len(gram))
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(gram), 1.0 / len(gram))


def _center(M):
    means = M.mean(axis=0)
    return M - means - means[:, None] + means.mean()


class WeightedExtension(BaseEstimator):
    """Extensions of the form ``W(Z) S``: every new item is a weighted mean of training items."""

    def transform(self, X):
        """Similarities of new items to the training items."""
        return self._weights(X) @ self.similarity_

    def similarities(self, X):
        """Similarities among new items."""
        weights = self._weights(X)
        return weights @ self.similarity_ @ weights.T


class BilinearExtension(WeightedExtension):
    """Ridge regression of the rows of S on a Gaussian of the items, from both sides.

    ``k(z, a) = G(z, A) (G + alpha I)^-1 S`` for training items a, and the same from the right for two new items. Length
    scale and penalty are chosen by leaving out folds of items unless both are given.
    """

    def __init__(self, length_scale=None, alpha=None, cv=5, random_state=None):
        self.length_scale = length_scale
        self.alpha = alpha
        self.cv = cv
        self.random_state = random_state

    def fit(self, X, y):
        spread = float(np.sqrt(X.var(axis=0).sum())) or 1.0
        scales = (
            [spread * a for a in (0.25, 0.5, 1.0, 2.0, 4.0)]
            if self.length_scale is None
            else [self.length_scale]
        )
        alphas = 10.0 ** np.arange(-6, 2) if self.alpha is None else [self.alpha]
        settings = [(scale, alpha) for scale in scales for alpha in alphas]
        if len(settings) > 1:
            order = check_random_state(self.random_state).permutation(len(X))
            edges = np.linspace(0, len(X), min(self.cv, len(X)) + 1).astype(int)
            folds = np.split(order, edges[1:-1])
            settings.sort(
                key=lambda setting: _fold_error(Gaussian(setting[0])(X), y, setting[1], folds)
            )
        scale, self.alpha_ = settings[0]
        self.kernel_, self.similarity_, self.X_fit_ = Gaussian(scale), y, X
        self.factor_ = cho_factor(self.kernel_(X) + self.alpha_ * np.eye(len(X)))
        return self

    def _weights(self, X):
        return cho_solve(self.factor_, self.kernel_(self.X_fit_, X)).T


def _fold_error(G, S, alpha, folds):
    """The relative squared error of leaving folds of items out: fold x rest and fold x fold weigh the same."""
    errors, squares = np.zeros(2), np.full(2, np.finfo(float).tiny)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(S)), fold)
        system = G[np.ix_(rest, rest)] + alpha * np.eye(len(rest))
        W = cho_solve(cho_factor(system), G[np.ix_(rest, fold)]).T
        half = W @ S[np.ix_(rest, rest)]
        for k, (values, truth) in enumerate(
            ((half, S[np.ix_(fold, rest)]), (half @ W.T, S[np.ix_(fold, fold)]))
        ):
            errors[k] += np.sum((values - truth) ** 2)
            squares[k] += np.sum(truth**2)
    return float(np.mean(errors / squares))


class NearestExtension(WeightedExtension):
    """Every new item has the similarities of its nearest training item."""

    def fit(self, X, y):
        self.index_, self.similarity_ = NearestNeighbors(n_neighbors=1).fit(X), y
        return self

    def _weights(self, X):
        return np.eye(len(self.similarity_))[self.index_.kneighbors(X, return_distance=False)[:, 0]]
