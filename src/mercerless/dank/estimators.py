"""Support vector machines that adapt their kernel matrix to the data (DANK)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR
from sklearn.utils import check_consistent_length, column_or_1d

from mercerless.core.basis import Basis, make_basis
from mercerless.core.descent import GradientSearch, check_search
from mercerless.core.estimator import KernelPredictor, Progress, class_scores, pair_votes
from mercerless.core.folds import some_rows
from mercerless.core.kinds import warn_if_distances
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.tuning import (
    SCALES,
    choose_machine,
    folds_of,
    held_out_blocks,
    order_by_content,
    settings_of,
)
from mercerless.core.units import Standardizer, kernel_unit
from mercerless.core.validation import (
    UselessModelWarning,
    check_classes,
    check_number,
    check_size,
    check_symmetric,
    check_targets,
    check_weight,
    warn,
)
from mercerless.dank.selection import CenteringPenalty, Choice, descend
from mercerless.dank.solver import DankSolution, DankStep, DankTask, plain_machine, solve_dank
from mercerless.dank.thresholds import LIMITS
from mercerless.kernels import Gaussian, Kernel


@dataclass(frozen=True, eq=False)
class Adaptation:
    """The matrix F by which DANK multiplies the kernel matrix, in factored form."""

    rows: NDArray  # the training rows that took part
    support: NDArray  # those with a nonzero dual coefficient
    factor: NDArray  # (n_support, rank): F on the support is factor @ factor.T
    # (rank,): the row of the factor that all other rows, and new points, have in common
    offset: NDArray

    @property
    def rank(self) -> int:
        """Rank of F."""
        return self.factor.shape[1]

    def factor_rows(self, rows: NDArray) -> NDArray:
        """Rows of the factor for any training rows."""
        factor = np.tile(self.offset, (len(rows), 1))
        is_support = np.isin(rows, self.support)
        factor[is_support] = self.factor[np.searchsorted(self.support, rows[is_support])]
        return factor

    def matrix(self, rows: ArrayLike | None = None, columns: ArrayLike | None = None) -> NDArray:
        """A block of F; None means all training rows that took part, for columns the same as rows."""
        if rows is None:
            rows = self.rows
        if columns is None:
            columns = rows
        return self.factor_rows(np.asarray(rows)) @ self.factor_rows(np.asarray(columns)).T

    def eigenvalues(self) -> NDArray:
        """Nonzero eigenvalues of F over all rows that took part, descending."""
        factor = self.factor_rows(self.rows)
        return eigvalsh(factor.T @ factor)[::-1]


class _Gram:
    """Blocks of the base kernel matrix of the training rows: evaluated on demand for a Gaussian, else cut from it.

    Memory is checked before it is used.
    """

    def __init__(self, basis: Basis):
        self.kernel = basis.kernel
        self.items = basis.items
        self.matrix = None
        if isinstance(self.kernel, Gaussian):
            self.items = np.asarray(self.items, dtype=float)
            return
        # libsvm works on a copy, and equal rows are found on sorted copies
        copies = 5.5 if basis.given_as_matrix else 6.5
        need = 8.0 * copies * len(basis) ** 2
        remedy = "fit on fewer rows, or use a Gaussian, whose matrix is never formed"
        check_memory(need, f"The kernel matrix of {len(basis)} items", remedy=remedy)
        self.matrix = check_base(self.kernel, basis.matrix(), basis.matrix_name)

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        if self.matrix is not None:
            return self.matrix[np.ix_(rows, columns)]
        items = self.items[rows]
        return self.kernel(items, None if columns is rows else self.items[columns])

    def solve(self, task: DankTask, start: NDArray, C: float, **options: Any) -> DankSolution:
        """DANK on the rows of the task."""

        def gram(rows: NDArray, columns: NDArray) -> NDArray:
            working = task.rows[rows]
            if columns is not rows:
                return self.block(working, task.rows[columns])
            remedy = "fit on fewer rows, or lower C"
            need = 8.0 * LIMITS.working_matrices * len(rows) ** 2
            check_memory(need, f"A working set of {len(rows)} rows", remedy=remedy)
            return self.block(working, working)

        lo, hi = task.bounds(C)
        options |= {"start": start, "epsilon": task.epsilon, "weight": task.weight}
        return solve_dank(gram, task.target, lo, hi, **options)

    def start(self, task: DankTask, C: float, tol: float) -> NDArray:
        """Dual solution of the plain support vector machine."""
        if self.matrix is not None:
            K = self.block(task.rows, task.rows)
            return plain_machine(task, K, C, tol, kernel="precomputed")
        scaled = self.items[task.rows] / np.asarray(self.kernel.length_scale)
        return plain_machine(task, scaled, C, tol, kernel="rbf", gamma=0.5)


class _Fitted(NamedTuple):
    """A task and its solution."""

    task: DankTask
    solution: DankSolution
    penalty: float  # of the centering


def check_base(kernel: Kernel, matrix: NDArray, name: str) -> NDArray:
    """The matrix, in float64; raise if it is not symmetric, too large, or has an eigenvalue clearly below zero."""
    matrix = check_symmetric(matrix, name).astype(float, copy=False)
    check_size(matrix, name)
    if kernel.definite is True:
        return matrix
    checked = np.linspace(0, len(matrix) - 1, min(len(matrix), LIMITS.checked_rows)).astype(int)
    K = matrix[np.ix_(checked, checked)]
    largest = float(np.abs(K).sum(axis=1).max())
    jitter = 1e-8 * max(largest, np.finfo(float).tiny)
    try:
        cholesky(K + jitter * np.eye(len(K)), lower=True)
    except LinAlgError:
        smallest = float(eigvalsh(K, subset_by_index=[0, 0])[0])
        raise ValueError(
            "The base kernel is indefinite: the smallest eigenvalue of its matrix is "
            f"{smallest:.3g}; repair the matrix first with mercerless.spectra.SpectrumTransformer, "
            "or use mercerless.KreinSVC or KreinSVR, which take indefinite kernels."
        ) from None
    return matrix


class _DANK(KernelPredictor):
    """Base of the classifier and the regressor."""

    C: Any
    adaptivity: Any
    epsilon: Any = 0.0
    _make: Callable[..., SVC | SVR]  # the plain machine

    def _check_parameters(self) -> None:
        if self.C != "auto":
            check_number("C", self.C)
        if isinstance(self.adaptivity, CenteringPenalty):
            check_number("penalty", self.adaptivity.penalty)
        else:
            check_number("adaptivity", self.adaptivity)
        check_number("rank_penalty", self.rank_penalty, zero=True)
        check_number("tol", self.tol)
        check_number("max_iter", self.max_iter, whole=True)
        check_search(self.search)
        if self.search is not None and isinstance(self.adaptivity, CenteringPenalty):
            raise ValueError(
                "search chooses the centering penalty; give adaptivity a number to start from."
            )

    def _check_search(self, basis: Basis, weight: NDArray) -> None:
        """Raise if the search cannot be done with these items."""
        if not isinstance(basis.kernel, Gaussian):
            raise ValueError(
                "GradientSearch needs a Gaussian kernel; search other kernels with GridSearchCV."
            )
        if np.any(weight != 1.0):
            raise ValueError(
                "GradientSearch takes no weights; repeat rows instead, or leave search=None."
            )
        n = len(weight)
        remedy = "search on fewer rows and take kernel_, C_ and epsilon_ from there"
        need = 8.0 * LIMITS.search_matrices * n**2
        check_memory(need, f"GradientSearch on {n} rows", remedy=remedy)

    def _fit(
        self, X: Any, y: NDArray, weight: NDArray, tasks_of: Callable[..., list[DankTask]]
    ) -> dict[str, Any]:
        """Choose the parameters and solve every task; returns the fitted attributes. Rows of weight 0 are left out."""
        self._check_parameters()
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, y)
        basis = make_basis(kernel, items, weight)
        if basis.given_as_matrix:
            warn_if_distances(basis.items, type(self).__name__)
        y = y[basis.rows]
        weight = weight[basis.rows]
        if self.search is not None:
            self._check_search(basis, weight)
        gram = _Gram(basis)
        tasks = tasks_of(y, weight)
        choice = self._choose(gram, y, weight)
        if self.search is not None:
            adaptivity = self.adaptivity
            choice = descend(
                choice, gram.items, y, tasks, self.search, adaptivity, self.random_state
            )
        gram.kernel = choice.kernel
        basis = basis.with_kernel(choice.kernel)
        penalties: Sequence[float | None] = choice.penalties or [None] * len(tasks)
        with self._progress() as progress:
            fitted = [
                self._solve(
                    gram, task._replace(epsilon=choice.epsilon), choice.C, penalty, progress
                )
                for task, penalty in zip(tasks, penalties)
            ]
        self._warn(fitted, choice)
        attributes = self._attributes(basis, fitted)
        attributes |= {"kernel_": choice.kernel, "C_": choice.C, "epsilon_": choice.epsilon}
        if choice.tuned is not None:
            attributes["tuning_"] = choice.tuned
        return attributes

    def _choose(self, gram: _Gram, y: NDArray, weight: NDArray) -> Choice:
        """C, epsilon and the length scale: as given, or chosen by the plain machine on folds."""
        classify = self._make is SVC
        kernel = gram.kernel
        size = float(np.average(kernel.diag(gram.items), weights=weight)) or 1.0
        settings = settings_of(classify, C=self.C, epsilon=self.epsilon)
        epsilon = settings[0].get("epsilon", 0.0)
        if self.C != "auto":
            return Choice(kernel, self.C / size, epsilon)
        if len(y) < LIMITS.fewest_rows:
            return Choice(kernel, 1.0 / size, epsilon)
        most = min(LIMITS.tuned_rows, int(np.sqrt(memory_budget() / LIMITS.tuned_bytes)))
        rows = some_rows(len(y), most, 0)
        K = gram.block(rows, rows)
        order = order_by_content(K)
        K = K[np.ix_(order, order)]
        rows = rows[order]
        y = y[rows]
        weight = weight[rows]
        folds = folds_of(K, y, classify, LIMITS.n_folds, LIMITS.n_draws)
        kernels = [kernel]
        matrices = [K / size]  # libsvm keeps matrices in single precision
        if self.kernel == "gaussian":
            # without the widest, which needs a C so large that F changes too much
            kernels = [Gaussian(scale * kernel.length_scale) for scale in SCALES[:-1]]
            matrices = [one(gram.items[rows]) for one in kernels]
        held_out = [partial(held_out_blocks, K, folds) for K in matrices]
        best = choose_machine(held_out, y, settings, self._make, type(self).__name__, weight)
        C = best.setting["C"] / kernel_unit(matrices[best.kernel], weight)
        C = min(C, LIMITS.largest_C) / size
        return Choice(kernels[best.kernel], C, best.setting.get("epsilon", 0.0))

    def _solve(
        self, gram: _Gram, task: DankTask, C: float, penalty: float | None, progress: Progress
    ) -> _Fitted:
        """The plain machine first, then DANK."""
        start = gram.start(task, C, float(np.clip(10 * self.tol, 1e-6, 1e-3)))
        if isinstance(self.adaptivity, CenteringPenalty):
            penalty = float(self.adaptivity.penalty)
        elif penalty is None:
            diagonal = gram.kernel.diag(gram.items)[task.rows]
            # Without support vectors every F fits; any positive number will do.
            penalty = float((start**2 / task.weight) @ diagonal) / (4 * self.adaptivity) or 1.0

        def report(step: DankStep) -> bool:
            return progress.step({"stage": "outer step", **step._asdict()})

        solution = gram.solve(
            task,
            start,
            C,
            centering_penalty=penalty,
            rank_penalty=self.rank_penalty,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=report,
        )
        return _Fitted(task, solution, penalty)

    def _warn(self, fitted: list[_Fitted], choice: Choice) -> None:
        worst = max((f.solution for f in fitted), key=lambda solution: solution.gap)
        if not worst.gap <= self.tol:
            warn(
                f"The relative duality gap is {worst.gap:.1e} after {worst.n_iter} outer steps, "
                f"above tol={self.tol:.1e}; raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
            )
        if any(f.solution.factor.shape[1] == 0 for f in fitted):
            warn(
                f"{type(self).__name__} predicts a constant: rank_penalty={self.rank_penalty} "
                "leaves no eigenvalue of F. Use a rank_penalty far below twice the number of rows.",
                UselessModelWarning,
            )

    def _attributes(self, basis: Basis, fitted: list[_Fitted]) -> dict[str, Any]:
        dual = np.zeros((len(fitted), len(basis)))
        expansion = np.zeros((len(fitted), len(basis)))
        adaptations = []
        for k, (task, solution, _) in enumerate(fitted):
            dual[k, task.rows] = solution.dual
            expansion[k, task.rows] = solution.expansion
            rows = basis.rows[task.rows]
            support = rows[solution.support]
            adaptations.append(Adaptation(rows, support, solution.factor, solution.offset))
        support = np.flatnonzero(dual.any(axis=0))
        if len(support) == 0:  # equal targets: one row, with coefficient zero
            support = np.zeros(1, dtype=int)
        support_basis = basis.fitted(support)
        return {
            "_support_basis": support_basis,
            "support_": basis.rows[support],
            "support_vectors_": support_basis.kept,
            "adaptation_": tuple(adaptations),
            "rank_": max(adaptation.rank for adaptation in adaptations),
            "certificate_": max(f.solution.gap for f in fitted),
            "n_iter_": max(f.solution.n_iter for f in fitted),
            "centering_penalty_": np.array([f.penalty for f in fitted]),
            "dual_solution_": dual[:, support],
            "intercept_": np.array([f.solution.intercept for f in fitted]),
            "dual_coef_": expansion[:, support],
        }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _values(self, X: Any) -> NDArray:
        """Decision values of all tasks, shape (n_new, n_tasks): new items are like rows with coefficient zero."""
        items = self._test_items(X)
        budget = min(2**26, memory_budget() // 2)
        blocks = row_blocks(len(items), 24 * len(self.support_), budget)
        compare = self._support_basis.compare
        parts = [compare(items[rows]) @ self.dual_coef_.T for rows in blocks]
        return np.concatenate(parts) + self.intercept_


class DANKClassifier(ClassifierMixin, _DANK):
    """Support vector classification with a kernel matrix that adapts to the data.

    Solves, for every pair of classes with labels y in {-1, +1}::

        max_alpha min_F  sum(alpha) - (y alpha)^T (F * K) (y alpha) / 2
                         + eta * |F - 1|_F^2 + eta * rank_penalty * trace(F)
        0 <= alpha <= C,  sum(y alpha) = 0,  F positive semi-definite

    to a certified relative duality gap. The larger the centering penalty eta, the nearer to the plain machine. In the
    sample, the adapted machine is the plain one with an additional ridge on each row that grows with the row's own
    coefficient; for new points it predicts with the original kernel and re-weighted coefficients.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        The base kernel, positive semi-definite: a kernel object, ``"precomputed"``, one of scikit-learn's metric
        names, or a function of two items. "gaussian" has one length scale per feature, in units of its spread. With a
        Gaussian the full matrix is never formed.
    C : float or "auto", default="auto"
        Bound on the dual coefficients, as in `sklearn.svm.SVC`, for a kernel matrix of mean diagonal one: multiplying
        all similarities by a number changes nothing. "auto" chooses C, and the common factor of the length scales of
        "gaussian", for the plain machine on five folds, of 600 rows at most.
    adaptivity : float or CenteringPenalty, default=0.25
        The target for the mean squared change of F, free of scale; 0.25 is the paper's choice, values near 0 give
        the plain machine. Tune it like C. It sets ``eta = sum(alpha^2 K_ii) / (4 adaptivity)`` of the plain
        machine; a `CenteringPenalty` gives eta itself.
    rank_penalty : float, default=0.01
        Weight of the trace of F (the paper's tau); the rank is at most ``1 + 2 adaptivity / rank_penalty``, and
        from ``2 adaptivity`` on it is 1. From about twice the number of rows on nothing is left of F, which warns.
    search : GradientSearch or None, default=None
        A `GradientSearch` chooses one length scale per feature (one only when the kernel is a `Gaussian` with one), C,
        and eta by descent along the exact gradient of DANK's validation loss, from the parameters chosen without it.
        ``GradientSearch(1, 25)`` is usually enough: besides the first descent, each restart descends from the solution
        under a wider prior, all but the first from random length scales.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``.
    tol : float, default=1e-4
        Relative duality gap to reach.
    max_iter : int, default=50
        Limit on the outer steps.
    random_state : int, RandomState or None, default=0
        For the folds and the restarts of the search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    adaptation_ : tuple of Adaptation
        The factored F of every pair of classes (0-1, 0-2, ..., 1-2, ...); one for two classes.
    rank_ : int
        Largest rank of F over the pairs.
    certificate_ : float
        Largest relative duality gap over the pairs: bounds how far the objective is from its optimum.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero dual coefficient in some pair; one row with coefficient zero if there are none.
    support_vectors_ : ndarray of shape (n_support, n_features), list or None
        Those rows; None for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of the inductive decision function: ``k(x, support_vectors_) @ dual_coef_.T + intercept_``.
    dual_solution_ : ndarray of shape (n_pairs, n_support)
        The dual solutions ``y alpha`` themselves.
    intercept_ : ndarray of shape (n_pairs,)
        Intercepts.
    centering_penalty_ : ndarray of shape (n_pairs,)
        The eta of every pair.
    n_iter_ : int
        Largest number of outer steps over the pairs.
    kernel_ : Kernel
        The base kernel with the chosen length scales.
    C_ : float
        The bound used: the chosen one, or the given one over the mean diagonal of the kernel matrix.
    tuning_ : Tuned
        With a search, the course and result of the descent.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    DANKRegressor : The same for regression.
    KreinSVC : For base kernels that are not positive semi-definite.
    sklearn.svm.SVC : The plain machine, reached for ``adaptivity`` near 0.

    Notes
    -----
    ``sample_weight`` counts like repeated rows; scaling C per row alone does not in this model. The fit works in
    double precision. There are no probabilities: calibrate with `sklearn.calibration.CalibratedClassifierCV`. A new
    point is treated as a training row with coefficient zero; the paper's rule for new points, and its division of the
    rows into clusters, are code on the paper's page of the user guide.

    References
    ----------
    Liu, Huang, Gong, Yang, Li. Learning data-adaptive non-parametric kernels. JMLR 21 (2020).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercerless import DANKClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = DANKClassifier(C=4.0).fit(X, y)
    >>> model.certificate_ <= 1e-4, model.rank_ <= 51
    (True, True)
    >>> round(model.score(X, y), 1)
    1.0
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float | str = "auto",
        adaptivity: float | CenteringPenalty = 0.25,
        rank_penalty: float = 0.01,
        search: GradientSearch | None = None,
        class_weight: dict | str | None = None,
        tol: float = 1e-4,
        max_iter: int = 50,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.kernel = kernel
        self.C = C
        self.adaptivity = adaptivity
        self.rank_penalty = rank_penalty
        self.search = search
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    _make = SVC

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        name = type(self).__name__
        weight, classes, labels = check_classes(y, sample_weight, self.class_weight, name)

        def tasks_of(labels: NDArray, weight: NDArray) -> list[DankTask]:
            tasks = []
            for pair in combinations(range(len(classes)), 2):
                rows = np.flatnonzero(np.isin(labels, pair))
                signs = np.where(labels[rows] == pair[1], 1.0, -1.0)
                tasks.append(DankTask(rows, signs, weight[rows], 0.0, is_classification=True))
            return tasks

        attributes = self._fit(X, labels, weight, tasks_of)
        del attributes["epsilon_"]
        self._set_fitted(classes_=classes, **attributes)

    def decision_function(self, X: Any) -> NDArray:
        """Scores of new items.

        Parameters
        ----------
        X : as for `fit`; shape (n, n_train) for a precomputed kernel
            The items.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            For two classes the value whose sign decides; otherwise the votes of all pairs, ties broken by their
            summed confidence.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else pair_votes(values, len(self.classes_))

    def _predict(self, X: Any) -> NDArray:
        scores = class_scores(self.decision_function(X))
        return self.classes_[scores.argmax(axis=1)]


class DANKRegressor(RegressorMixin, _DANK):
    """Support vector regression with a kernel matrix that adapts to the data.

    Solves::

        max_v min_F  y @ v - epsilon * |v|_1 - v^T (F * K) v / 2
                     + eta * |F - 1|_F^2 + eta * rank_penalty * trace(F)
        |v_i| <= C,  sum(v) = 0,  F positive semi-definite

    to a certified relative duality gap; see `DANKClassifier` for what F does.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        The base kernel, positive semi-definite, see `DANKClassifier`.
    C : float or "auto", default="auto"
        Bound on the dual coefficients, as in `sklearn.svm.SVR`, for targets of standard deviation one; see
        `DANKClassifier`.
    epsilon : float or "auto", default="auto"
        Half width of the tube in which errors cost nothing, in standard deviations of y. "auto" chooses it with C; .05
        if C is given.
    adaptivity : float or CenteringPenalty, default=0.25
        The target for the mean squared change of F, free of scale, or eta itself, see `DANKClassifier`.
    rank_penalty : float, default=0.01
        See `DANKClassifier`.
    search : GradientSearch or None, default=None
        A `GradientSearch` chooses the length scales, C, eta and epsilon, see `DANKClassifier`.
    tol, max_iter, random_state : object
        See `DANKClassifier`.

    Attributes
    ----------
    certificate_ : float
        Relative duality gap: bounds how far the objective is from its optimum.
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the inductive predictor: ``k(x, support_vectors_) @ dual_coef_.T + intercept_``.
    intercept_ : ndarray of shape (1,)
        Intercept.
    adaptation_, rank_, dual_solution_, centering_penalty_, n_iter_ :
        As of the classifier, which has one per pair of classes; this has one.
    support_, support_vectors_, kernel_, C_, n_features_in_ :
        As of the classifier.
    tuning_ : Tuned
        With a search, the course and result of the descent.
    epsilon_ : float
        Half the width of the tube that was used, in standard deviations of y.

    See Also
    --------
    DANKClassifier : The same for classification.
    KreinSVR : For base kernels that are not positive semi-definite.
    sklearn.svm.SVR : The plain machine, reached for ``adaptivity`` near 0.

    References
    ----------
    Liu, Huang, Gong, Yang, Li. Learning data-adaptive non-parametric kernels. JMLR 21 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import DANKRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = DANKRegressor(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(1)
    array([1.])
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float | str = "auto",
        epsilon: float | str = "auto",
        adaptivity: float | CenteringPenalty = 0.25,
        rank_penalty: float = 0.01,
        search: GradientSearch | None = None,
        tol: float = 1e-4,
        max_iter: int = 50,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.adaptivity = adaptivity
        self.rank_penalty = rank_penalty
        self.search = search
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    _make = SVR

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        if self.epsilon != "auto":
            check_number("epsilon", self.epsilon, zero=True)
        values = column_or_1d(check_targets(y, type(self).__name__), warn=True)
        weight = check_weight(sample_weight, len(values))
        units = Standardizer.fit(values[:, None], weight)

        def tasks_of(target: NDArray, weight: NDArray) -> list[DankTask]:
            rows = np.arange(len(target))
            return [DankTask(rows, target, weight, 0.0, is_classification=False)]

        attributes = self._fit(X, units(values[:, None])[:, 0], weight, tasks_of)
        spread = float(units.spread[0])
        for name in ("dual_coef_", "dual_solution_"):
            attributes[name] = spread * attributes[name]
        attributes["intercept_"] = units.mean[0] + spread * attributes["intercept_"]
        self._set_fitted(**attributes)

    def _predict(self, X: Any) -> NDArray:
        return self._values(X)[:, 0]
