"""Similarities as features for any model, and a sparse linear machine on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercerless.core.basis import Basis
from mercerless.core.estimator import (
    KernelPredictor,
    KernelTransformer,
    class_scores,
    landmark_rows,
)
from mercerless.core.kinds import warn_if_distances
from mercerless.core.memory import check_memory
from mercerless.core.validation import (
    UselessModelWarning,
    check_classes,
    check_number,
    check_square,
    warn,
)
from mercerless.lowrank import Landmarks
from mercerless.similarity.linear import SparseMachine, sparse_machine


class SimilarityFeatures(KernelTransformer):
    """Similarities to the training items, or to some of them, as features for any model.

    Item x becomes the vector of ``k(x, z)`` over the landmarks z. Any similarity will do: it may be
    indefinite, asymmetric, or a distance. Follow it with a scaler and a linear model.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items.
    landmarks : int, float, `mercerless.lowrank.Landmarks` or None, default=None
        How many training items to compare with, and how they are chosen: a number, a fraction of them in (0, 1) or
        ``Landmarks(number, method)``, or None for all. A number above that of the training items means all.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks,)
        Positions of the landmarks among the training items, ascending.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The landmarks themselves; None for precomputed input.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    SimilaritySVC : A linear machine on these features that chooses few of them.
    SimilarityClassifier : The automatic choice.

    References
    ----------
    .. [1] E. Pekalska, R. P. W. Duin. Dissimilarity representations allow for building good classifiers. Pattern
       Recognition Letters 23, 2002.
    .. [2] Y. Chen, E. K. Garcia, M. R. Gupta, A. Rahimi, L. Cazzanti. Similarity-based classification: concepts and
       algorithms. Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from mercerless import SimilarityFeatures
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> words = ["cat", "cart", "coat", "dog", "dig", "doge"]
    >>> shared = lambda a, b: len(set(a) & set(b))
    >>> model = make_pipeline(SimilarityFeatures(kernel=shared), LogisticRegression())
    >>> model.fit(words, [0, 0, 0, 1, 1, 1]).predict(["cast", "dug"])
    array([0, 1])
    """

    _basis: Basis

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        landmarks: int | float | Landmarks | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.landmarks = landmarks
        self.random_state = random_state

    def _learn(self, X: Any) -> None:
        basis = self._train_basis(X)
        if basis.given_as_matrix:
            check_square(basis.items, "X")
        requested = _some_landmarks(self.landmarks, len(basis))
        landmarks = landmark_rows(basis.kernel, basis.items, requested, self.random_state)
        fitted = basis.fitted(landmarks)
        self._set_fitted(
            X_fit_=fitted.kept, kernel_=fitted.kernel, landmarks_=landmarks, _basis=fitted
        )

    def _transform(self, items: Any) -> NDArray:
        check_memory(16.0 * len(items) * len(self.landmarks_), "Similarities as features")
        return self._basis.compare(items)

    @property
    def _n_features_out(self) -> int:
        return len(self.landmarks_)


def _some_landmarks(requested: Any, n: int) -> Any:
    """How many of n items and how to choose them: None means all, a fraction below 1 that part."""
    if isinstance(requested, float | np.floating) and 0.0 < requested < 1.0:
        return max(1, round(requested * n))
    return requested


class SimilaritySVC(ClassifierMixin, KernelPredictor):
    """Support vector machine on similarities as features, with the 1-norm of the coefficients as penalty.

    ``min_{a, b} sum_j |a_j| + C / mean|k(z, z)| * sum_i max(0, 1 - y_i (sum_j k(x_i, z_j) a_j + b))``

    A linear program: convex and solved exactly for any similarity, indefinite or asymmetric, without changing it. Few
    training items keep a coefficient, and only those are needed for prediction. Several classes: one against the rest.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items.
    C : float, default=1.0
        The price of a margin violation for similarities whose mean own similarity ``|k(x, x)|`` is one; the larger, the
        more coefficients. Multiplying all similarities by a number changes nothing.
    class_weight : dict, "balanced" or None, default=None
        Factors of C per class.
    n_jobs : int or None, default=None
        Workers for the classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    kernel_ : Kernel
        The kernel that was used.
    support_ : ndarray of shape (n_support,)
        Positions of the training items with a coefficient that is not 0, for any class; the first if there are none.
    dual_coef_ : ndarray of shape (n_problems, n_support)
        Their coefficients; one row for two classes, else one per class.
    intercept_ : ndarray of shape (n_problems,)
        Intercepts.
    X_fit_ : array-like or None
        The items of `support_`; None for precomputed input.
    certificate_ : float
        The largest relative duality gap of the linear programs.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    KreinSVC : Keeps the geometry of the positive and the negative part.
    SimilarityFeatures : The features, for other models.

    References
    ----------
    .. [1] I. Alabdulmohsin, X. Gao, X. Zhang. Support vector machines with indefinite kernels. ACML 2014.

    Examples
    --------
    >>> from mercerless import SimilaritySVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SimilaritySVC().fit(X[::2], y[::2])
    >>> len(model.support_) < 25, model.score(X[1::2], y[1::2]) > 0.9
    (True, True)
    """

    _basis: Basis

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float = 1.0,
        class_weight: dict | str | None = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        check_number("C", self.C)
        name = type(self).__name__
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, name)
        basis = self._train_basis(X, weight)
        labels = labels[basis.rows]
        K = self._matrix(basis, len(classes))
        if basis.given_as_matrix:
            warn_if_distances(K, name)
        unit = np.abs(np.diagonal(K)).mean() or np.abs(K).mean() or 1.0
        price = self.C / unit * weight[basis.rows]
        with self._progress(0):
            machines = _one_against_rest(K, labels, price, self.n_jobs)
        coef = np.array([machine.coef for machine in machines])
        kept = np.flatnonzero(np.any(coef != 0.0, axis=0))
        if not len(kept):
            kept = np.array([0])  # a constant: one item with a coefficient of zero
            warn(
                "SimilaritySVC uses no training item, so it predicts the same for all; raise C, or "
                "choose another kernel.",
                UselessModelWarning,
            )
        gap = max(machine.gap for machine in machines)
        if not gap <= 1e-5:
            message = (
                f"The linear program stopped at a relative duality gap of {gap:.1e}; rescale C."
            )
            warn(message, ConvergenceWarning)
        intercept = np.array([machine.intercept for machine in machines])
        fitted = basis.fitted(kept)
        self._set_fitted(
            _basis=fitted,
            kernel_=fitted.kernel,
            X_fit_=fitted.kept,
            classes_=classes,
            support_=basis.rows[kept],
            dual_coef_=coef[:, kept],
            intercept_=intercept,
            certificate_=gap,
        )

    def _matrix(self, basis: Basis, n_classes: int) -> NDArray:
        """The matrix of the training items, if it fits into memory."""
        n = len(basis)
        need = 150.0 * min(effective_n_jobs(self.n_jobs), n_classes) * n**2
        remedy = "use fewer rows, or SimilarityFeatures with a linear machine"
        check_memory(need, f"The linear program of {n} items", remedy=remedy)
        return check_square(basis.matrix(), basis.matrix_name).astype(np.float64)

    def decision_function(self, X: Any) -> NDArray:
        """The value whose sign decides between two classes, or one value per class.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input their similarities to all training items.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The decision values.
        """
        check_is_fitted(self)
        items = self._test_items(X)
        values = self._basis.compare(items) @ self.dual_coef_.T + self.intercept_
        return values if len(self.classes_) > 2 else values[:, 0]

    def _predict(self, X: Any) -> NDArray:
        values = self.decision_function(X)
        return self.classes_[class_scores(values).argmax(axis=1)]


def _one_against_rest(
    K: NDArray, y: NDArray, price: NDArray, n_jobs: int | None
) -> list[SparseMachine]:
    """One machine for two classes, else one per class, for class numbers y."""
    n_classes = int(y.max()) + 1
    positive = [1] if n_classes == 2 else range(n_classes)
    return Parallel(n_jobs=n_jobs)(
        delayed(sparse_machine)(K, np.where(y == label, 1.0, -1.0), price) for label in positive
    )
