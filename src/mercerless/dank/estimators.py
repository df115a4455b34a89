"""Support vector machines that adapt their kernel matrix to the data (DANK)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR
from sklearn.utils import check_consistent_length, column_or_1d

from mercerless.core.basis import Basis, make_basis
from mercerless.core.descent import GradientSearch
from mercerless.core.estimator import KernelPredictor, Progress, class_scores, pair_votes
from mercerless.core.folds import fold_numbers, some_rows
from mercerless.core.kinds import warn_if_distances
from mercerless.core.memory import check_memory, memory_budget, row_blocks, with_settings
from mercerless.core.tuning import (
    SCALES,
    choose_machine,
    held_out_blocks,
    order_by_content,
    settings_of,
)
from mercerless.core.units import Standardizer, kernel_unit
from mercerless.core.validation import (
    UselessModelWarning,
    check_classes,
    check_number,
    check_option,
    check_size,
    check_symmetric,
    check_targets,
    check_weight,
    warn,
    warn_if_tube_is_useless,
    warn_if_useless,
)
from mercerless.dank.selection import CenteringPenalty, Choice, cluster, descend
from mercerless.dank.solver import DankSolution, DankStep, DankTask, plain_machine, solve_dank
from mercerless.dank.thresholds import LIMITS
from mercerless.kernels import Gaussian, Kernel


@dataclass(frozen=True, eq=False)
class AdaptationPart:
    """The factored adaptation of one part of the training rows."""

    rows: NDArray  # of the part
    support: NDArray  # those with a nonzero dual coefficient
    factor: NDArray  # (n_support, rank): F on the support is factor @ factor.T
    # (rank,): the row of the factor that all other rows, and new points, have in common
    offset: NDArray

    def factor_rows(self, rows: NDArray) -> NDArray:
        """Rows of the factor for any training rows of the part."""
        places = np.minimum(np.searchsorted(self.support, rows), max(len(self.support) - 1, 0))
        result = np.tile(self.offset, (len(rows), 1))
        if len(self.support):
            hit = self.support[places] == rows
            result[hit] = self.factor[places[hit]]
        return result


@dataclass(frozen=True, eq=False)
class Adaptation:
    """The matrix F by which DANK multiplies the kernel matrix, in factored form; 1 between different parts."""

    rows: NDArray  # the training rows that took part
    parts: tuple[AdaptationPart, ...]

    @property
    def rank(self) -> int:
        """Rank of F, summed over parts."""
        return sum(part.factor.shape[1] for part in self.parts)

    def matrix(self, rows: ArrayLike | None = None, columns: ArrayLike | None = None) -> NDArray:
        """A block of F; None means all training rows that took part, for columns the same as rows."""
        if rows is None:
            rows = self.rows
        if columns is None:
            columns = rows
        rows = np.asarray(rows)
        columns = np.asarray(columns)
        F = np.ones((len(rows), len(columns)))
        for part in self.parts:
            i = np.flatnonzero(np.isin(rows, part.rows))
            j = np.flatnonzero(np.isin(columns, part.rows))
            F[np.ix_(i, j)] = part.factor_rows(rows[i]) @ part.factor_rows(columns[j]).T
        return F

    def eigenvalues(self) -> NDArray:
        """Nonzero eigenvalues of F over all rows that took part, descending."""
        values = []
        for part in self.parts:
            n_others = len(part.rows) - len(part.support)
            of_others = n_others * np.outer(part.offset, part.offset)
            values.append(eigvalsh(part.factor.T @ part.factor + of_others))
        return np.sort(np.concatenate(values))[::-1]


class _Gram:
    """Blocks of the base kernel matrix of given training rows: evaluated on demand for a Gaussian, else cut from it.

    All rows are numbers of training items. Memory is checked before it is used, against a budget in bytes (None: the
    limit in force at that time).
    """

    def __init__(self, basis: Basis, rows: NDArray, budget: int | None = None):
        self.kernel = basis.kernel
        self.matrix_name = basis.matrix_name
        # libsvm works on a copy, and equal rows are found on sorted copies
        self.copies = 5.5 if basis.given_as_matrix else 6.5
        self.rows = rows
        self.budget = budget
        self.items = basis.take(rows)
        if isinstance(self.kernel, Gaussian):
            self.items = np.asarray(self.items, dtype=float)

    @cached_property
    def matrix(self) -> NDArray | None:
        """The whole matrix, formed at its first use; None for a Gaussian."""
        if isinstance(self.kernel, Gaussian):
            return None
        n = len(self.rows)
        need = 8.0 * self.copies * n**2
        remedy = "split vectors with n_parts, or use a Gaussian, whose matrix is never formed"
        check_memory(need, f"The kernel matrix of {n} items", self.budget, remedy)
        return check_base(self.kernel, self.kernel(self.items), self.matrix_name)

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        i = np.searchsorted(self.rows, rows)
        j = i if columns is rows else np.searchsorted(self.rows, columns)
        if self.matrix is not None:
            return self.matrix[np.ix_(i, j)]
        return self.kernel(self.items[i], None if j is i else self.items[j])

    def of(self, task: DankTask) -> Callable[[NDArray, NDArray], NDArray]:
        """Blocks by positions in the task; a square one is a working set, whose matrices must fit."""

        def gram(rows: NDArray, columns: NDArray) -> NDArray:
            if columns is not rows:
                return self.block(task.rows[rows], task.rows[columns])
            remedy = "split the data with n_parts, or lower C"
            need = 8.0 * LIMITS.working_matrices * len(rows) ** 2
            check_memory(need, f"A working set of {len(rows)} rows", self.budget, remedy)
            working = task.rows[rows]
            return self.block(working, working)

        return gram

    def trace(self, task: DankTask, v: NDArray) -> float:
        """The sum of ``v^2 K_ii`` over the task's rows, each counted as often as its weight."""
        diagonal = self.kernel.diag(self.items)[np.searchsorted(self.rows, task.rows)]
        return float((v**2 / task.weight) @ diagonal)

    def start(self, task: DankTask, C: float, tol: float) -> NDArray:
        """Dual solution of the plain support vector machine."""
        if isinstance(self.kernel, Gaussian):
            items = self.items[np.searchsorted(self.rows, task.rows)]
            scaled = items / np.asarray(self.kernel.length_scale)
            return plain_machine(task, scaled, C, tol, kernel="rbf", gamma=0.5)
        return plain_machine(task, self.block(task.rows, task.rows), C, tol, kernel="precomputed")

    def solve(
        self, task: DankTask, start: NDArray, C: float, options: dict[str, Any]
    ) -> DankSolution:
        lo, hi = task.bounds(C)
        return solve_dank(
            self.of(task),
            task.target,
            lo,
            hi,
            start=start,
            epsilon=task.epsilon,
            weight=task.weight,
            **options,
        )


def _run(n_jobs: int | None, function: Callable, arguments: list[tuple]) -> list:
    """Call the function on all tuples of arguments: directly if there is one, else through joblib."""
    if len(arguments) == 1:
        return [function(*arguments[0])]
    return Parallel(n_jobs=n_jobs)(delayed(with_settings(function))(*each) for each in arguments)


class _Fitted(NamedTuple):
    """The solution of one task: for every part of the rows its number, the task there and its solution."""

    numbers: NDArray  # of the parts that have rows of this task
    tasks: list[DankTask]
    solutions: list[DankSolution]
    penalty: float  # of the centering
    adaptation: Adaptation


def matrix_of(basis: Basis, kernel: Kernel, rows: NDArray) -> NDArray:
    """The matrix of this kernel between the training items of these rows."""
    if basis.given_as_matrix:
        return kernel(basis.items[np.ix_(rows, rows)])
    return kernel(basis.items[rows])


def check_base(kernel: Kernel, matrix: NDArray, name: str) -> NDArray:
    """The matrix, in float64; raise if it is not symmetric, too large, or has an eigenvalue clearly below zero."""
    if isinstance(kernel, Gaussian):
        return matrix
    matrix = check_symmetric(matrix, name).astype(float, copy=False)
    check_size(matrix, name)
    if kernel.definite is True:
        return matrix
    K = matrix
    if len(K) > LIMITS.checked_rows:
        rows = np.linspace(0, len(K) - 1, LIMITS.checked_rows).astype(int)
        K = K[np.ix_(rows, rows)]
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

    def _check_parameters(self) -> None:
        positive = {"C": self.C, "adaptivity": self.adaptivity, "tol": self.tol}
        if self.C == "auto":
            del positive["C"]
        if isinstance(self.adaptivity, CenteringPenalty):
            positive["penalty"] = positive.pop("adaptivity").penalty
        for name, value in positive.items():
            check_number(name, value)
        check_number("rank_penalty", self.rank_penalty, zero=True)
        check_number("max_iter", self.max_iter, whole=True)
        check_number("n_parts", self.n_parts, whole=True)
        if isinstance(self.search, GradientSearch):
            check_number("n_restarts", self.search.n_restarts, whole=True, zero=True)
            check_number("max_iter", self.search.max_iter, whole=True)
        elif self.search is not None:
            raise ValueError(
                f"search must be None or a mercerless.GradientSearch, not {self.search!r}."
            )
        check_option("out_of_sample", self.out_of_sample, ("inductive", "reciprocal"))
        if self.n_parts > 1 and self.out_of_sample != "inductive":
            raise ValueError(
                "n_parts > 1 predicts inductively only; use out_of_sample='inductive'."
            )

    def _begin(self, X: Any, y: NDArray, weight: NDArray) -> Basis:
        """Check the parameters and the items."""
        self._check_parameters()
        basis = make_basis(*self._train_items(X, weight))
        items = basis.items
        if self.n_parts > 1 and (items.ndim != 2 or basis.given_as_matrix):
            raise ValueError(
                "n_parts > 1 clusters feature vectors; pass vectors and a kernel on them."
            )
        if basis.given_as_matrix:
            warn_if_distances(basis.items, type(self).__name__)
            diagonal = basis.kernel.diag(items)
            if (
                self.out_of_sample == "reciprocal"
                and np.ptp(diagonal) > 1e-6 * np.abs(diagonal).max()
            ):
                raise ValueError(
                    "out_of_sample='reciprocal' ranks new items by their distances, which need "
                    "their self-similarities; a precomputed matrix has none, and those of the "
                    "training items differ. Use 'inductive', or pass the kernel itself."
                )
        check_consistent_length(items, y)
        return basis

    def _fit(
        self, basis: Basis, y: NDArray, weight: NDArray, tasks: list[DankTask]
    ) -> dict[str, Any]:
        """Choose the parameters, divide the rows, solve every task; returns the fitted attributes."""
        used = np.flatnonzero(weight)
        choice = self._choose(basis, y, weight, used, tasks)
        basis = basis.with_kernel(choice.kernel)
        with self._progress() as progress:
            clusters = self._clusters(choice.kernel, basis.items[used])
            grams = self._grams(basis, used, clusters)
            fitted = []
            for task, penalty in zip(tasks, choice.penalties):
                task = task._replace(epsilon=choice.epsilon)
                fitted.append(self._solve(grams, task, choice.C, penalty, progress))
            self._warn(fitted, choice)
            attributes = self._attributes(basis, fitted)
        in_part = [np.isin(attributes["support_"], gram.rows) for gram in grams]
        attributes["support_part_"] = np.argmax(in_part, axis=0)
        attributes |= {"kernel_": choice.kernel, "clusters_": clusters, "C_": choice.C}
        if tasks[0].is_classification is False:
            attributes["epsilon_"] = choice.epsilon
        if choice.tuned is not None:
            attributes["tuning_"] = choice.tuned
        return attributes

    def _choose(
        self, basis: Basis, y: NDArray, weight: NDArray, used: NDArray, tasks: list[DankTask]
    ) -> Choice:
        """The parameters of the fit: as given, or chosen by the plain machine on folds, and then by the search."""
        penalty = None
        if isinstance(self.adaptivity, CenteringPenalty):
            penalty = self.adaptivity.penalty
        self._check_search(basis, weight, penalty)
        classify = tasks[0].is_classification
        settings = settings_of(classify, C=self.C, epsilon=getattr(self, "epsilon", None))
        kernel = basis.kernel
        most = min(LIMITS.tuned_rows, int(np.sqrt(memory_budget() / LIMITS.tuned_bytes)))
        rows = used[some_rows(len(used), most, 0)]
        K = check_base(kernel, matrix_of(basis, kernel, rows), basis.matrix_name)
        size = float(np.average(K.diagonal(), weights=weight[rows])) or 1.0
        setting = settings[0]
        losses = None
        if self.C != "auto" or len(rows) < LIMITS.fewest_rows:
            C = (1.0 if self.C == "auto" else setting["C"]) / size
        else:
            order = order_by_content(K)
            rows = rows[order]
            draws = [
                fold_numbers(
                    LIMITS.n_folds,
                    K[np.ix_(order, order)],
                    y[rows],
                    classify=classify,
                    precomputed=True,
                    random_state=draw,
                )
                for draw in range(LIMITS.n_draws)
            ]
            folds = [np.flatnonzero(one == k) for one in draws for k in np.unique(one)]
            kernels = [kernel]
            if isinstance(self.kernel, str) and self.kernel == "gaussian":
                # without the widest, which needs a C so large that F changes too much
                kernels = [Gaussian(scale * kernel.length_scale) for scale in SCALES[:-1]]
            # libsvm keeps matrices in single precision
            sized = [matrix_of(basis, one, rows) / size for one in kernels]
            matrices = [partial(held_out_blocks, K, folds) for K in sized]
            make = SVC if classify else SVR
            best = choose_machine(matrices, y[rows], settings, make, weight[rows])
            kernel, setting = kernels[best.kernel], best.setting
            losses = best.losses, best.constant
            C = setting["C"] / kernel_unit(sized[best.kernel], weight[rows])
            C = min(C, LIMITS.largest_C) / size
        start = Choice(kernel, C, setting.get("epsilon", 0.0), [penalty] * len(tasks), None, losses)
        if self.search is None:
            return start
        X = np.asarray(basis.items, dtype=float)
        return descend(start, X, y, tasks, self.search, self.adaptivity, self.random_state)

    def _check_search(self, basis: Basis, weight: NDArray, penalty: float | None) -> None:
        """Raise if the search cannot be done."""
        if self.search is None:
            return
        if penalty is not None:
            raise ValueError(
                "search chooses the centering penalty; give adaptivity a number to start from."
            )
        if not isinstance(basis.kernel, Gaussian):
            raise ValueError(
                "GradientSearch needs a Gaussian kernel; search other kernels with GridSearchCV."
            )
        if np.any(weight[weight > 0] != 1.0):
            raise ValueError(
                "GradientSearch takes no weights; repeat rows instead, or leave search=None."
            )
        n = len(weight)
        remedy = "search on fewer rows and take kernel_, C_ and epsilon_ from there"
        need = 8.0 * LIMITS.search_matrices * n**2
        check_memory(need, f"GradientSearch on {n} rows", remedy=remedy)

    def _warn(self, fitted: list[_Fitted], choice: Choice) -> None:
        solutions = [solution for f in fitted for solution in f.solutions]
        worst = max(solution.gap for solution in solutions)
        if not worst <= self.tol:
            n_iter = max(solution.n_iter for solution in solutions)
            warn(
                f"The relative duality gap is {worst:.1e} after {n_iter} outer steps, above "
                f"tol={self.tol:.1e}; raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
            )
        if any(f.adaptation.rank == 0 for f in fitted):
            warn(
                f"{type(self).__name__} predicts a constant: rank_penalty={self.rank_penalty} "
                "leaves no eigenvalue of F. Use a rank_penalty far below twice the number of rows.",
                UselessModelWarning,
            )
        if choice.losses is not None:
            warn_if_useless(*choice.losses, type(self).__name__)
        is_tube = not fitted[0].tasks[0].is_classification
        # a search chooses epsilon and C, and is judged by its held-out losses
        tubes = fitted if is_tube and choice.tuned is None else []
        for f in tubes:
            weight = np.concatenate([task.weight for task in f.tasks])
            warn_if_tube_is_useless(
                type(self).__name__,
                np.concatenate([task.target for task in f.tasks]),
                np.concatenate([solution.dual for solution in f.solutions]),
                choice.C * weight,
                choice.epsilon,
            )

    def _clusters(self, kernel: Kernel, items: Any) -> KMeans | None:
        if self.n_parts > len(items):
            raise ValueError(f"n_parts={self.n_parts} exceeds the number of rows, {len(items)}.")
        if self.n_parts == 1:
            return None
        return cluster(in_units_of(kernel, items), self.n_parts, self.random_state)

    def _grams(self, basis: Basis, used: NDArray, clusters: KMeans | None) -> list[_Gram]:
        """One base kernel per part, so that a worker gets no more than its rows and its share of the memory."""
        if clusters is None:
            return [_Gram(basis, used)]
        share = memory_budget() // max(1, effective_n_jobs(self.n_jobs))
        parts = [used[clusters.labels_ == part] for part in range(self.n_parts)]
        return [_Gram(basis, rows, share) for rows in parts]

    def _solve(
        self,
        grams: list[_Gram],
        task: DankTask,
        C: float,
        penalty: float | None,
        progress: Progress,
    ) -> _Fitted:
        """Plain machine first, then DANK, on all rows or on every part, with one common centering penalty."""
        tasks = [task.take(np.flatnonzero(np.isin(task.rows, gram.rows))) for gram in grams]
        numbers = np.array([k for k, piece in enumerate(tasks) if len(piece.rows)])
        grams = [grams[k] for k in numbers]
        tasks = [tasks[k] for k in numbers]
        svm_tol = float(np.clip(10 * self.tol, 1e-6, 1e-3))
        starts = _run(
            self.n_jobs,
            _Gram.start,
            [(gram, piece, C, svm_tol) for gram, piece in zip(grams, tasks)],
        )
        if penalty is None:
            trace = sum(gram.trace(piece, v) for gram, piece, v in zip(grams, tasks, starts))
            # Without support vectors every F fits; any positive number will do.
            penalty = trace / (4 * self.adaptivity) or 1.0

        def report(step: DankStep) -> bool:
            return progress.step({"stage": "outer step", **step._asdict()})

        options = {
            "centering_penalty": float(penalty),
            "rank_penalty": self.rank_penalty,
            "tol": self.tol,
            "max_iter": self.max_iter,
            # steps are reported from this process only
            "callback": report if self.n_parts == 1 else None,
        }
        pieces = [(gram, piece, v, C, options) for gram, piece, v in zip(grams, tasks, starts)]
        solutions = _run(self.n_jobs, _Gram.solve, pieces)
        parts = tuple(
            AdaptationPart(piece.rows, piece.rows[found.support], found.factor, found.offset)
            for piece, found in zip(tasks, solutions)
        )
        adaptation = Adaptation(task.rows, parts)
        return _Fitted(numbers, tasks, solutions, float(penalty), adaptation)

    def _attributes(self, basis: Basis, fitted: list[_Fitted]) -> dict[str, Any]:
        dual = np.zeros((len(fitted), len(basis)))
        expansion = np.zeros((len(fitted), len(basis)))
        intercepts = np.zeros((len(fitted), self.n_parts))
        for k, f in enumerate(fitted):
            for number, task, solution in zip(f.numbers, f.tasks, f.solutions):
                dual[k, task.rows] = solution.dual
                expansion[k, task.rows] = solution.expansion
                intercepts[k, number] = solution.intercept
        support = np.flatnonzero(dual.any(axis=0))
        solutions = [s for f in fitted for s in f.solutions]
        support_basis = None
        support_vectors = None
        if len(support):
            support_basis = basis.fitted(support)
            support_vectors = support_basis.kept
        elif not basis.given_as_matrix:  # equal targets have no support vectors
            support_vectors = basis.items[support]
        borrows = self.out_of_sample == "reciprocal"
        return {
            "_fit_basis": basis.fitted() if borrows else None,
            "_fit_diagonal": basis.kernel.diag(basis.items) if borrows else None,
            "_support_basis": support_basis,
            "support_": support,
            "support_vectors_": support_vectors,
            "adaptation_": tuple(f.adaptation for f in fitted),
            "rank_": max(f.adaptation.rank for f in fitted),
            "certificate_": max(s.gap for s in solutions),
            "n_iter_": max(s.n_iter for s in solutions),
            "n_evaluations_": sum(s.n_evaluations for s in solutions),
            "history_": tuple(f.solutions[0].history for f in fitted),
            "centering_penalty_": np.array([f.penalty for f in fitted]),
            "dual_solution_": dual[:, support],
            "intercept_": intercepts[:, 0] if self.n_parts == 1 else intercepts,
            "dual_coef_": expansion[:, support],
        }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _values(self, X: Any) -> NDArray:
        """Decision values of all tasks, shape (n_new, n_tasks)."""
        items = self._test_items(X)
        if self.out_of_sample == "reciprocal":  # the ranks need the whole batch
            return self._adapted(items)
        decide = self._inductive if self.clusters_ is None else self._by_parts
        budget = min(2**26, memory_budget() // 2)
        blocks = row_blocks(len(items), 24 * max(len(self.support_), 1), budget)
        return np.concatenate([decide(items[block]) for block in blocks])

    def _inductive(self, items: Any) -> NDArray:
        """New items are like training rows with coefficient zero."""
        return self._compare_with_support(items) @ self.dual_coef_.T + self.intercept_

    def _by_parts(self, items: NDArray) -> NDArray:
        """The machine of its cluster predicts each item."""
        labels = self.clusters_.predict(in_units_of(self.kernel_, items))
        values = np.empty((len(items), len(self.intercept_)))
        for part in np.unique(labels):
            rows = labels == part
            columns = self.support_part_ == part
            values[rows] = self.intercept_[:, part]
            if columns.any():
                K = self.kernel_(items[rows], self.support_vectors_[columns])
                values[rows] += K @ self.dual_coef_[:, columns].T
        return values

    def _compare_with_support(self, items: Any) -> NDArray:
        """Base kernel of new items against the support vectors."""
        if self._support_basis is None:
            return np.zeros((len(items), 0))
        return self._support_basis.compare(items)

    def _adapted(self, items: Any) -> NDArray:
        """New items get rows of F of their twins, the training rows nearest in both directions."""
        diagonal = np.zeros(len(items))  # the same for all training rows, so it has no effect
        if not self._fit_basis.given_as_matrix:
            diagonal = self.kernel_.diag(items)
        K = self._compare_with_support(items)
        values = np.empty((len(items), len(self.adaptation_)))
        for k, (adaptation, v) in enumerate(zip(self.adaptation_, self.dual_solution_)):
            rows = adaptation.rows
            to_rows = self._fit_basis.fitted(rows).compare(items)
            twins = reciprocal_twins(diagonal[:, None] + self._fit_diagonal[rows] - 2 * to_rows)
            F = adaptation.matrix(rows[twins], self.support_)
            values[:, k] = (F * K) @ v + self.intercept_[k]
        return values


def reciprocal_twins(distance: NDArray) -> NDArray:
    """Training row with the smallest product of both neighbor ranks, equation (11) of the paper."""
    among_train = np.argsort(np.argsort(distance, axis=1, kind="stable"), axis=1) + 1.0
    among_new = np.argsort(np.argsort(distance, axis=0, kind="stable"), axis=0) + 1.0
    return np.argmin(among_train * among_new, axis=1)


def in_units_of(kernel: Kernel, items: NDArray) -> NDArray:
    """The items in units of the length scales of a Gaussian; as they are for another kernel."""
    if isinstance(kernel, Gaussian):
        return np.asarray(items, dtype=float) / np.asarray(kernel.length_scale)
    return items


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
    out_of_sample : {"inductive", "reciprocal"}, default="inductive"
        How F continues to new points. ``"inductive"``: as for a training row with coefficient zero; a prediction
        depends on nothing but the point. ``"reciprocal"``: the paper's rule, the row of F of the training row with the
        smallest product of neighbor ranks; transductive, a prediction changes with the rest of the batch, for
        comparison only.
    search : GradientSearch or None, default=None
        A `GradientSearch` chooses one length scale per feature (one only when the kernel is a `Gaussian` with one), C,
        and eta by descent along the exact gradient of DANK's validation loss, from the parameters chosen without it.
        ``GradientSearch(1, 25)`` is usually enough: besides the first descent, each restart descends from the solution
        under a wider prior, all but the first from random length scales.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``.
    n_parts : int, default=1
        Solve on that many k-means clusters independently, with one common eta and F = 1 between clusters, for data
        whose working set does not fit in memory. A new point is decided by the machine of its cluster.
    tol : float, default=1e-4
        Relative duality gap to reach.
    max_iter : int, default=50
        Limit on the outer steps.
    n_jobs : int or None, default=None
        Workers for the parts and the grid.
    random_state : int, RandomState or None, default=0
        For the clusters, the folds and the restarts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    adaptation_ : tuple of Adaptation
        The factored F of every pair of classes (0-1, 0-2, ..., 1-2, ...); one for two classes.
    rank_ : int
        Largest rank of F over the pairs.
    certificate_ : float
        Largest relative duality gap over the pairs (and parts): bounds how far the objective is from its optimum.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero dual coefficient in some pair.
    support_vectors_ : ndarray of shape (n_support, n_features), list or None
        Those rows; None for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of the inductive decision function: ``k(x, support_vectors_) @ dual_coef_.T + intercept_``.
    dual_solution_ : ndarray of shape (n_pairs, n_support)
        The dual solutions ``y alpha`` themselves.
    intercept_ : ndarray of shape (n_pairs,) or (n_pairs, n_parts)
        Intercepts.
    clusters_, support_part_ : KMeans or None, ndarray of shape (n_support,)
        The clusters of the parts, and the part of every support vector.
    centering_penalty_ : ndarray of shape (n_pairs,)
        The eta of every pair.
    n_iter_, n_evaluations_ : int
        Largest number of outer steps over the pairs, and products with the kernel matrix or its square, the unit that
        a gradient method pays per iteration.
    history_ : tuple of tuples
        Objective, relative gap on the working set and rank after every outer step, per pair.
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
    double precision. There are no probabilities: calibrate with `sklearn.calibration.CalibratedClassifierCV`. On the
    sets of the paper, neither the paper's rule nor the inductive one beat a tuned plain machine on average; see the
    user guide.

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
        out_of_sample: str = "inductive",
        search: GradientSearch | None = None,
        class_weight: dict | str | None = None,
        n_parts: int = 1,
        tol: float = 1e-4,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.kernel = kernel
        self.C = C
        self.adaptivity = adaptivity
        self.rank_penalty = rank_penalty
        self.out_of_sample = out_of_sample
        self.search = search
        self.class_weight = class_weight
        self.n_parts = n_parts
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        weight, classes, labels = check_classes(
            y, sample_weight, self.class_weight, type(self).__name__
        )
        basis = self._begin(X, labels, weight)
        used = np.flatnonzero(weight)
        tasks = []
        for pair in combinations(range(len(classes)), 2):
            rows = used[np.isin(labels[used], pair)]
            signs = np.where(labels[rows] == pair[1], 1.0, -1.0)
            tasks.append(DankTask(rows, signs, weight[rows], epsilon=0.0, is_classification=True))
        self._set_fitted(classes_=classes, **self._fit(basis, labels, weight, tasks))

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
    rank_penalty, out_of_sample : object
        See `DANKClassifier`.
    search : GradientSearch or None, default=None
        A `GradientSearch` chooses the length scales, C, eta and epsilon, see `DANKClassifier`.
    n_parts, tol, max_iter, n_jobs, random_state : object
        See `DANKClassifier`.

    Attributes
    ----------
    certificate_ : float
        Relative duality gap, the largest over the parts: bounds how far the objective is from its optimum.
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the inductive predictor: ``k(x, support_vectors_) @ dual_coef_.T + intercept_``.
    intercept_ : ndarray of shape (1,) or (1, n_parts)
        Intercept.
    adaptation_, rank_, dual_solution_, centering_penalty_, clusters_, support_part_, n_iter_, n_evaluations_ :
        As of the classifier, which has one per pair of classes; this has one.
    support_, support_vectors_, history_, kernel_, C_, n_features_in_ :
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
        out_of_sample: str = "inductive",
        search: GradientSearch | None = None,
        n_parts: int = 1,
        tol: float = 1e-4,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.adaptivity = adaptivity
        self.rank_penalty = rank_penalty
        self.out_of_sample = out_of_sample
        self.search = search
        self.n_parts = n_parts
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        if self.epsilon != "auto":
            check_number("epsilon", self.epsilon, zero=True)
        values = column_or_1d(check_targets(y, type(self).__name__), warn=True)
        weight = check_weight(sample_weight, len(values))
        units = Standardizer.fit(values[:, None], weight)
        target = units(values[:, None])[:, 0]
        basis = self._begin(X, target, weight)
        used = np.flatnonzero(weight)
        task = DankTask(used, target[used], weight[used], epsilon=0.0, is_classification=False)
        attributes = self._fit(basis, target, weight, [task])
        spread = float(units.spread[0])
        for name in ("dual_coef_", "dual_solution_"):
            attributes[name] = spread * attributes[name]
        attributes["intercept_"] = units.mean[0] + spread * attributes["intercept_"]
        self._set_fitted(**attributes)

    def _predict(self, X: Any) -> NDArray:
        return self._values(X)[:, 0]
