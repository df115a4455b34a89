"""Support vector machines that adapt their kernel matrix to the data (DANK)."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR
from sklearn.utils import check_consistent_length, check_scalar, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercerless._memory import check_memory, memory_budget, row_blocks
from mercerless._optional import with_callbacks
from mercerless._validation import check_labels, check_symmetric, check_targets, check_weight
from mercerless.estimators.base import KernelEstimator, used_items
from mercerless.estimators.hyper import HyperRidge
from mercerless.kernels import Gaussian, Kernel, Precomputed
from mercerless.selection.calibration import calibrate_scores
from mercerless.selection.folds import make_folds
from mercerless.solvers.dank import DankSolution, DankStep, solve_dank
from mercerless.solvers.dank_tuning import Fold, Tuned, tune_dank

_OUT_OF_SAMPLE = ("inductive", "nearest", "reciprocal", "hyper")
_CHECKED_ROWS = 2000  # a kernel of unknown definiteness is checked on so many rows


@dataclass(frozen=True, eq=False)
class AdaptationPart:
    """The factored adaptation of one part of the training rows.

    Attributes
    ----------
    rows : ndarray of shape (n_part,)
        Training rows of the part.
    support : ndarray of shape (n_support,)
        Those with a nonzero dual coefficient.
    factor : ndarray of shape (n_support, rank)
        F on the support is ``factor @ factor.T``.
    offset : ndarray of shape (rank,)
        The row of the factor that all other rows, and new points, have in common.
    """

    rows: NDArray
    support: NDArray
    factor: NDArray
    offset: NDArray

    def factor_rows(self, rows: NDArray) -> NDArray:
        """Rows of the factor for any training rows of the part."""
        found = np.minimum(np.searchsorted(self.support, rows), max(len(self.support) - 1, 0))
        result = np.tile(self.offset, (len(rows), 1))
        if len(self.support):
            hit = self.support[found] == rows
            result[hit] = self.factor[found[hit]]
        return result


@dataclass(frozen=True, eq=False)
class Adaptation:
    """The matrix F by which DANK multiplies the kernel matrix, in factored form.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Training rows that took part.
    parts : tuple of AdaptationPart
        One, or one per part of a decomposition; F is 1 between different parts.
    """

    rows: NDArray
    parts: tuple[AdaptationPart, ...]

    @property
    def rank(self) -> int:
        """Rank of F, summed over parts."""
        return sum(part.factor.shape[1] for part in self.parts)

    def matrix(self, rows: ArrayLike | None = None, columns: ArrayLike | None = None) -> NDArray:
        """A block of F.

        Parameters
        ----------
        rows, columns : array-like of int or None, default=None
            Training rows; None means all that took part, for columns the same as rows.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The entries of F.
        """
        rows = self.rows if rows is None else np.asarray(rows)
        columns = rows if columns is None else np.asarray(columns)
        F = np.ones((len(rows), len(columns)))
        for part in self.parts:
            i, j = np.flatnonzero(np.isin(rows, part.rows)), np.flatnonzero(np.isin(columns, part.rows))
            F[np.ix_(i, j)] = part.factor_rows(rows[i]) @ part.factor_rows(columns[j]).T
        return F

    def eigenvalues(self) -> NDArray:
        """Nonzero eigenvalues of F over all rows that took part, per part, descending.

        Returns
        -------
        ndarray of shape (rank,)
            The eigenvalues.
        """
        found = []
        for part in self.parts:
            rest = len(part.rows) - len(part.support)
            gram = part.factor.T @ part.factor + rest * np.outer(part.offset, part.offset)
            found.append(eigvalsh(gram))
        return np.sort(np.concatenate(found))[::-1]


class _Task(NamedTuple):
    """One two-class or regression problem on some training rows."""

    rows: NDArray
    target: NDArray
    weight: NDArray
    epsilon: float
    is_classification: bool


class _Settings(NamedTuple):
    """The parameters a fit uses, as given or as tuned."""

    C: float
    epsilon: float
    centerings: tuple[float | str, ...]  # one per task, or "auto"


class _Fitted(NamedTuple):
    """What one task leaves: coefficients on training rows, adaptation and certificate."""

    rows: NDArray
    dual: NDArray  # v on rows
    expansion: NDArray  # coefficients of the inductive predictor on rows
    intercepts: NDArray  # one per part
    centering: float
    gap: float
    n_iter: int
    n_evaluations: int
    history: tuple[DankStep, ...]
    adaptation: Adaptation


class _BaseKernel:
    """Blocks of the base kernel matrix: evaluated when needed for a Gaussian, cut from one matrix otherwise."""

    def __init__(self, kernel: Kernel, items: Any, memory_limit: Any):
        self.kernel, self.memory_limit = kernel, memory_limit
        self.items = np.asarray(items, dtype=float) if isinstance(kernel, Gaussian) else items

    @cached_property
    def matrix(self) -> NDArray | None:
        """The whole matrix, formed where it is first used; None for a Gaussian."""
        if isinstance(self.kernel, Gaussian):
            return None
        n = len(self.items)
        # libsvm works on a copy, and equal rows are found on sorted copies
        name, copies = "the kernel matrix", 6.5
        if isinstance(self.kernel, Precomputed):
            name, copies = "X", 5.5
        remedy = "split vectors with n_parts, use a Gaussian, whose matrix is never formed, or raise memory_limit"
        check_memory(8.0 * copies * n**2, f"The kernel matrix of {n} items", self.memory_limit, remedy)
        matrix = check_symmetric(self.kernel(self.items), name).astype(float, copy=False)
        if self.kernel.definite is not True:
            _refuse_indefinite(matrix)
        return matrix

    def __call__(self, rows: NDArray, columns: NDArray) -> NDArray:
        if self.matrix is not None:
            return self.matrix[np.ix_(rows, columns)]
        return self.kernel(self.items[rows], None if columns is rows else self.items[columns])

    def diagonal(self, rows: NDArray) -> NDArray:
        return self.kernel.diag(self.items)[rows]

    def machine(self, task: _Task, C: float, tol: float) -> NDArray:
        """Dual solution of the plain support vector machine, equal for equal rows."""
        settings: dict[str, Any] = {"kernel": "precomputed", "tol": tol}
        if self.matrix is None:
            settings |= {"kernel": "rbf", "gamma": 0.5}
            data = self.items[task.rows] / np.asarray(self.kernel.length_scale)
        else:
            data = self.matrix[np.ix_(task.rows, task.rows)]
        # libsvm's tolerance is absolute, so regression targets are brought to unit size first
        size = 1.0 if task.is_classification else float(np.ptp(task.target)) or 1.0
        if task.is_classification:
            model = SVC(C=C, **settings).fit(data, task.target, sample_weight=task.weight)
        else:
            model = SVR(C=C / size, epsilon=task.epsilon / size, **settings)
            model.fit(data, (task.target - task.target.mean()) / size, sample_weight=task.weight)
        v = np.zeros(len(task.rows))
        v[model.support_] = size * model.dual_coef_[0]
        return _share_among_equal_rows(np.column_stack([data, task.target]), v, task.weight)


def _share_among_equal_rows(data: NDArray, v: NDArray, weight: NDArray) -> NDArray:
    """The dual solution that treats equal rows equally; libsvm's share between them is arbitrary."""
    groups = np.unique(data, axis=0, return_inverse=True)[1].ravel()
    if groups.max() + 1 == len(v):
        return v
    return weight * (np.bincount(groups, v) / np.bincount(groups, weight))[groups]


def _refuse_indefinite(K: NDArray) -> None:
    """Raise ValueError when K, or a part of it, has an eigenvalue clearly below zero."""
    if len(K) > _CHECKED_ROWS:
        rows = np.linspace(0, len(K) - 1, _CHECKED_ROWS).astype(int)
        K = K[np.ix_(rows, rows)]
    largest = float(np.abs(K).sum(axis=1).max())
    try:
        cholesky(K + 1e-8 * max(largest, np.finfo(float).tiny) * np.eye(len(K)), lower=True)
    except LinAlgError:
        smallest = float(eigvalsh(K, subset_by_index=[0, 0])[0])
        raise ValueError(
            f"The base kernel is indefinite: the smallest eigenvalue of its matrix is {smallest:.3g}; repair the "
            "matrix first with mercerless.spectra.SpectrumTransformer, or use mercerless.KreinSVC or KreinSVR, which "
            "take indefinite kernels."
        ) from None


class _DANK(KernelEstimator):
    """What the classifier and the regressor share."""

    def _check_parameters(self) -> None:
        check_scalar(self.C, "C", Real, min_val=0, include_boundaries="neither")
        if not np.isfinite(self.C):
            raise ValueError("C must be finite; use a large number such as 1e4 for a hard margin.")
        if self.centering != "auto":
            if isinstance(self.centering, str):
                raise ValueError(f"centering must be 'auto' or a positive number, not {self.centering!r}.")
            check_scalar(self.centering, "centering", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.adaptivity, "adaptivity", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.rank_penalty, "rank_penalty", Real, min_val=0)
        check_scalar(self.tol, "tol", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.n_parts, "n_parts", Integral, min_val=1)
        if self.tune not in (None, "gradient"):
            raise ValueError(f"tune must be None or 'gradient', not {self.tune!r}.")
        if self.out_of_sample not in _OUT_OF_SAMPLE:
            raise ValueError(f"out_of_sample must be one of {_OUT_OF_SAMPLE}, not {self.out_of_sample!r}.")
        if self.n_parts > 1 and self.out_of_sample != "inductive":
            raise ValueError("n_parts > 1 predicts inductively only; use out_of_sample='inductive'.")

    def _begin(self, X: Any, y: NDArray, weight: NDArray) -> tuple[Kernel, Any]:
        """Check the parameters and the items; from here on the estimator counts as not fitted."""
        self._check_parameters()
        vars(self).pop("dual_coef_", None)
        kernel, items = self._train_items(X, weight)
        vectors = items.ndim == 2 and not isinstance(kernel, Precomputed)
        if self.out_of_sample == "hyper" and not vectors:
            raise ValueError("out_of_sample='hyper' learns a function of feature vectors; use 'inductive' here.")
        if self.n_parts > 1 and not vectors:
            raise ValueError("n_parts > 1 clusters feature vectors; pass vectors and a kernel on them.")
        check_consistent_length(items, y)
        return kernel, items

    def _fit(self, kernel: Kernel, items: Any, y: NDArray, tasks: list[_Task]) -> dict[str, Any]:
        """Solve all tasks; returns the fitted attributes."""
        tuned = None
        settings = _Settings(self.C, tasks[0].epsilon, (self.centering,) * len(tasks))
        if self.tune == "gradient":
            kernel, settings, tuned = self._tune(kernel, items, y, tasks)
            tasks = [task._replace(epsilon=settings.epsilon) for task in tasks]
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)

        def report(step: DankStep) -> bool:
            sub = context.subcontext(task_name="outer step")
            sub.call_on_fit_task_begin(estimator=self, metadata=step._asdict())
            return bool(sub.call_on_fit_task_end(estimator=self, metadata=step._asdict()))

        used = np.unique(np.concatenate([task.rows for task in tasks]))
        clusters = self._clusters(items[used])
        labels = np.full(len(items), -1)
        labels[used] = 0 if clusters is None else clusters.labels_
        bases = self._bases(kernel, items, labels)
        fitted = [self._solve(bases, t, labels, settings.C, c, report) for t, c in zip(tasks, settings.centerings)]
        self._warn(fitted)
        attributes = self._attributes(kernel, items, fitted)
        if self.out_of_sample == "hyper":
            attributes["extension_"] = tuple(self._extend(items, f.adaptation) for f in fitted)
        if tuned is not None:
            attributes |= {"C_": settings.C, "epsilon_": settings.epsilon, "tuning_": tuned}
        attributes |= {"clusters_": clusters, "support_part_": labels[attributes["support_"]]}
        context.call_on_fit_task_end(estimator=self)
        return attributes

    def _warn(self, fitted: list[_Fitted]) -> None:
        worst = max(f.gap for f in fitted)
        if not worst <= self.tol:
            warnings.warn(
                f"The relative duality gap is {worst:.1e} after {max(f.n_iter for f in fitted)} outer steps, above "
                f"tol={self.tol:.1e}; raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _tune(self, kernel: Kernel, items: Any, y: NDArray, tasks: list[_Task]) -> tuple[Kernel, _Settings, Tuned]:
        """Length scales, C, centering and epsilon by the gradient of the validation loss, from a coarse grid."""
        if not isinstance(kernel, Gaussian):
            raise ValueError("tune='gradient' needs a Gaussian kernel; search other kernels with GridSearchCV.")
        if any(np.any(task.weight != 1.0) for task in tasks):
            raise ValueError("tune='gradient' takes no weights; repeat rows instead, or leave tune=None.")
        classify = tasks[0].is_classification
        used = np.unique(np.concatenate([task.rows for task in tasks]))
        X = np.asarray(items, dtype=float)[used]
        if self.kernel == "gaussian":
            kernel = Gaussian(np.full(X.shape[1], float(kernel.length_scale)))
        scales = np.asarray(kernel.length_scale, dtype=float)
        splits = _splits(X, y[used], classify=classify, random_state=self.random_state)
        if not splits:
            raise ValueError(
                "tune='gradient' needs at least two rows of every class, or two rows for regression, that are not "
                "copies of each other."
            )
        size = 1.0 if classify else float(np.std(y[used])) or 1.0
        target = y[used] if classify else (y[used] - y[used].mean()) / size
        grid: dict[str, Any] = {"C": 2.0 ** np.arange(-3, 8, 2), "gamma": 0.5 * 4.0 ** np.arange(-3, 3)}
        machine: SVC | SVR = SVC()
        if not classify:
            machine, grid["epsilon"] = SVR(), [0.02, 0.1, 0.3]
        search = GridSearchCV(
            machine, grid, cv=splits, scoring=None if classify else "neg_mean_squared_error", n_jobs=self.n_jobs
        ).fit(X / scales, target)
        best = search.best_params_
        kernel = Gaussian(scales * np.sqrt(0.5 / best["gamma"]))
        folds = self._folds(kernel, np.asarray(items, dtype=float), tasks, used, splits, size, best)
        tuned = tune_dank(
            kernel,
            [fold for fold, _ in folds],
            C=best["C"],
            epsilon=best.get("epsilon", 0.0),
            n_samples=len(used),
            is_classification=classify,
        )
        centerings = []
        for k, task in enumerate(tasks):
            own = [(f.centering / len(f.target)) for f, number in folds if number == k]
            centerings.append(tuned.centering_factor * float(np.mean(own)) * len(task.rows) * size**2)
        return tuned.kernel, _Settings(tuned.C * size, tuned.epsilon * size, tuple(centerings)), tuned

    def _folds(self, kernel, X, tasks, used, splits, size, best) -> list[tuple[Fold, int]]:
        """A training and a validation set for every task and split, with the plain machine as start."""
        folds = []
        for number, task in enumerate(tasks):
            shift = 0.0 if task.is_classification else task.target.mean()
            for train, test in splits:
                i, j = (np.flatnonzero(np.isin(task.rows, used[part])) for part in (train, test))
                if len(i) == 0 or len(j) == 0 or np.ptp(task.target[i]) == 0:
                    continue
                targets = (task.target - shift) / size
                piece = _Task(np.arange(len(i)), targets[i], task.weight[i], best.get("epsilon", 0.0), task[4])
                base = _BaseKernel(kernel, X[task.rows[i]], self.memory_limit)
                v = base.machine(piece, best["C"], 1e-3)
                centering = float(v @ v) / (4 * self.adaptivity) or 1.0
                folds.append((Fold(X[task.rows[i]], targets[i], X[task.rows[j]], targets[j], v, centering), number))
        return folds

    def _extend(self, items: NDArray, adaptation: Adaptation) -> Kernel:
        """The change F - 1 as a function of two items, learned from its values on the training rows."""
        learner = HyperRidge(memory_limit=self.memory_limit, random_state=self.random_state)
        return learner.fit(items[adaptation.rows], adaptation.matrix() - 1.0).kernel_

    def _clusters(self, items: Any) -> KMeans | None:
        """k-means from centres that always divide the largest cluster: the largest part decides time and memory."""
        if self.n_parts == 1:
            return None
        if self.n_parts > len(items):
            raise ValueError(f"n_parts={self.n_parts} exceeds the number of rows, {len(items)}.")
        halves = BisectingKMeans(self.n_parts, bisecting_strategy="largest_cluster", random_state=self.random_state)
        centres = halves.fit(items).cluster_centers_
        return KMeans(self.n_parts, init=centres, n_init=1, max_iter=1).fit(items)

    def _bases(self, kernel: Kernel, items: Any, labels: NDArray) -> list[_BaseKernel]:
        """One base kernel per part, so that a worker gets no more than its rows and its share of the memory."""
        if self.n_parts == 1:
            return [_BaseKernel(kernel, used_items(kernel, items, np.flatnonzero(labels == 0)), self.memory_limit)]
        share = memory_budget(self.memory_limit) // max(1, effective_n_jobs(self.n_jobs))
        return [_BaseKernel(kernel, items[labels == part], share) for part in range(self.n_parts)]

    def _solve(self, bases: list[_BaseKernel], task: _Task, labels: NDArray, C: float, centering, report) -> _Fitted:
        """Plain machine first, then DANK, on all rows or on every part, with one common centering."""
        numbers, inverse = np.unique(labels[task.rows], return_inverse=True)
        parts = [np.flatnonzero(inverse == k) for k in range(len(numbers))]
        pieces = []
        for number, i in zip(numbers, parts):
            own = np.searchsorted(np.flatnonzero(labels == number), task.rows[i])  # rows of the part's base kernel
            pieces.append((bases[number], _Task(own, task.target[i], task.weight[i], *task[3:])))
        # Steps are reported from this process only.
        run, report = (list, report) if self.n_parts == 1 else (Parallel(n_jobs=self.n_jobs), None)
        svm_tol = float(np.clip(10 * self.tol, 1e-6, 1e-3))
        starts = _run(run, _start, [(*piece, C, svm_tol) for piece in pieces])
        if centering == "auto":
            trace = sum(float((v**2 / q.weight) @ base.diagonal(q.rows)) for v, (base, q) in zip(starts, pieces))
            # Without support vectors every F fits; any positive number will do.
            centering = trace / (4 * self.adaptivity) or 1.0
        settings = dict(
            centering=float(centering),
            rank_penalty=self.rank_penalty,
            tol=self.tol,
            max_iter=self.max_iter,
            memory_limit=pieces[0][0].memory_limit,
            callback=report,
        )
        solutions = _run(run, _solve_piece, [(*piece, v, C, settings) for piece, v in zip(pieces, starts)])
        intercepts = np.zeros(self.n_parts)
        intercepts[numbers] = [solution.intercept for solution in solutions]
        return _join(task, parts, solutions, intercepts, float(centering))

    def _attributes(self, kernel: Kernel, items: Any, fitted: list[_Fitted]) -> dict[str, Any]:
        dual = np.zeros((2, len(fitted), len(items)))
        for k, f in enumerate(fitted):
            dual[0, k, f.rows] = f.dual
            dual[1, k, f.rows] = f.expansion
        support = np.flatnonzero(dual[0].any(axis=0))
        precomputed = isinstance(kernel, Precomputed)
        borrows = self.out_of_sample in ("nearest", "reciprocal")
        return {
            "_fit_diagonal": kernel.diag(items) if borrows else None,
            "kernel_": kernel,
            "X_fit_": items if borrows and not precomputed else None,
            "support_": support,
            "support_vectors_": None if precomputed else items[support],
            "adaptation_": tuple(f.adaptation for f in fitted),
            "rank_": max(f.adaptation.rank for f in fitted),
            "gap_": max(f.gap for f in fitted),
            "n_iter_": max(f.n_iter for f in fitted),
            "n_evaluations_": sum(f.n_evaluations for f in fitted),
            "history_": tuple(f.history for f in fitted),
            "centering_": np.array([f.centering for f in fitted]),
            "dual_solution_": dual[0][:, support],
            "intercept_": np.squeeze([f.intercepts for f in fitted], axis=1 if self.n_parts == 1 else ()),
            "dual_coef_": dual[1][:, support],
        }

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _values(self, X: Any) -> NDArray:
        """Decision values of all tasks, shape (n_new, n_tasks)."""
        check_is_fitted(self)
        items = self._test_items(X)
        if self.out_of_sample == "reciprocal":  # the ranks need the whole batch
            return self._borrowed(items, _reciprocal_twins)
        width = len(self._fit_diagonal) if self.out_of_sample == "nearest" else len(self.support_)
        values = []
        for block in row_blocks(len(items), 24 * max(width, 1), min(2**26, memory_budget(self.memory_limit) // 2)):
            rows = items[block]
            if self.clusters_ is not None:
                values.append(self._by_parts(rows))
            elif self.out_of_sample == "inductive":
                values.append(self._similarity(rows, self.support_) @ self.dual_coef_.T + self.intercept_)
            elif self.out_of_sample == "hyper":
                values.append(self._extended(rows))
            else:
                values.append(self._borrowed(rows, _nearest_twins))
        return np.concatenate(values)

    def _by_parts(self, items: NDArray) -> NDArray:
        """Every item is decided by the machine of its own cluster."""
        labels = self.clusters_.predict(items)
        values = np.empty((len(items), len(self.intercept_)))
        for part in np.unique(labels):
            rows, columns = labels == part, self.support_part_ == part
            values[rows] = self.intercept_[:, part]
            if columns.any():
                K = self.kernel_(items[rows], self.support_vectors_[columns])
                values[rows] += K @ self.dual_coef_[:, columns].T
        return values

    def _similarity(self, items: Any, columns: NDArray) -> NDArray:
        """Base kernel of new items against training rows."""
        if isinstance(self.kernel_, Precomputed):
            return items[:, columns]
        if len(columns) == 0:
            return np.zeros((len(items), 0))
        if columns is self.support_:
            return self.kernel_(items, self.support_vectors_)
        return self.kernel_(items, self.X_fit_[columns])

    def _borrowed(self, items: Any, twins: Callable[[NDArray, NDArray], NDArray]) -> NDArray:
        """Decision values when every new item borrows the column of F of a training row, its twin."""
        precomputed = isinstance(self.kernel_, Precomputed)
        own = np.zeros(len(items)) if precomputed else self.kernel_.diag(items)
        on_support = self._similarity(items, self.support_)
        values = np.empty((len(items), len(self.adaptation_)))
        for k, adaptation in enumerate(self.adaptation_):
            K = self._similarity(items, adaptation.rows)
            twin = twins(own[:, None] + self._fit_diagonal[adaptation.rows] - 2 * K)
            F = adaptation.matrix(adaptation.rows[twin], self.support_)
            values[:, k] = (F * on_support) @ self.dual_solution_[k] + self.intercept_[k]
        return values

    def _extended(self, items: NDArray) -> NDArray:
        """Decision values with F as the hyper family learned it."""
        values = np.empty((len(items), len(self.extension_)))
        K = self._similarity(items, self.support_)
        for k, change in enumerate(self.extension_):
            F = 1.0 + change(items, self.support_vectors_) if len(self.support_) else np.ones_like(K)
            values[:, k] = (F * K) @ self.dual_solution_[k] + self.intercept_[k]
        return values


def _splits(*args: Any, **options: Any) -> list[tuple[NDArray, NDArray]]:
    """Up to five folds whose training parts have every class; none where that cannot be."""
    y, used = args[1], options.get("used", slice(None))
    counts = np.unique(y[used], return_counts=True)[1] if options["classify"] else np.array([len(y[used])])
    folds = make_folds(min(5, counts.min()), *args, **options) if counts.min() > 1 else []
    complete = not options["classify"] or all(len(np.unique(y[used][train])) == len(counts) for train, _ in folds)
    return folds if complete else []


def _nearest_twins(distance: NDArray) -> NDArray:
    """Nearest training row of every new item, from squared distances (n_new, n_train)."""
    return np.argmin(distance, axis=1)


def _reciprocal_twins(distance: NDArray) -> NDArray:
    """Training row with the smallest product of both neighbour ranks, equation (11) of the paper."""
    among_train = np.argsort(np.argsort(distance, axis=1, kind="stable"), axis=1) + 1.0
    among_new = np.argsort(np.argsort(distance, axis=0, kind="stable"), axis=0) + 1.0
    return np.argmin(among_train * among_new, axis=1)


def _start(base: _BaseKernel, task: _Task, C: float, tol: float) -> NDArray:
    """Dual solution of the plain machine; zero for a part that has one class or one target only."""
    if np.ptp(task.target) == 0:
        return np.zeros(len(task.rows))
    return base.machine(task, C, tol)


def _bounds(task: _Task, C: float) -> tuple[NDArray, NDArray]:
    limit = C * task.weight
    if task.is_classification:
        return np.minimum(task.target * limit, 0.0), np.maximum(task.target * limit, 0.0)
    return -limit, limit


def _run(runner: Any, function: Callable, arguments: list[tuple]) -> list:
    """Call the function on all arguments, here or through joblib."""
    if runner is list:
        return [function(*args) for args in arguments]
    return runner(delayed(function)(*args) for args in arguments)


def _solve_piece(base: _BaseKernel, task: _Task, start: NDArray, C: float, settings: dict) -> DankSolution:
    lo, hi = _bounds(task, C)

    def gram(rows: NDArray, columns: NDArray) -> NDArray:
        picked = task.rows[rows]
        return base(picked, picked if columns is rows else task.rows[columns])

    return solve_dank(gram, task.target, lo, hi, start=start, epsilon=task.epsilon, weight=task.weight, **settings)


def _join(
    task: _Task, parts: list[NDArray], solutions: list[DankSolution], intercepts: NDArray, centering: float
) -> _Fitted:
    """Put the solutions of the parts together."""
    dual, expansion = np.zeros(len(task.rows)), np.zeros(len(task.rows))
    blocks = []
    for members, solution in zip(parts, solutions):
        dual[members] = solution.dual
        expansion[members] = solution.expansion
        rows = task.rows[members]
        blocks.append(AdaptationPart(rows, rows[solution.support], solution.factor, solution.offset))
    return _Fitted(
        rows=task.rows,
        dual=dual,
        expansion=expansion,
        intercepts=intercepts,
        centering=centering,
        gap=max(solution.gap for solution in solutions),
        n_iter=max(solution.n_iter for solution in solutions),
        n_evaluations=sum(solution.n_evaluations for solution in solutions),
        history=solutions[0].history,
        adaptation=Adaptation(task.rows, tuple(blocks)),
    )


class DANKClassifier(ClassifierMixin, _DANK):
    """Support vector classification with a kernel matrix that adapts to the data.

    Solves, for every pair of classes with labels y in {-1, +1}::

        max_alpha min_F  sum(alpha) - (y alpha)^T (F * K) (y alpha) / 2
                         + centering * |F - 1|_F^2 + centering * rank_penalty * trace(F)
        0 <= alpha <= C,  sum(y alpha) = 0,  F positive semi-definite

    to a certified relative duality gap. The larger `centering`, the nearer to the plain machine. In the sample,
    the adapted machine is the plain one with an additional ridge on each row that grows with the row's own
    coefficient; for new points it predicts with the original kernel and re-weighted coefficients.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        The base kernel, positive semi-definite: a kernel object, ``"precomputed"``, one of scikit-learn's metric
        names, or a function of two items. With a Gaussian the full matrix is never formed.
    C : float, default=1.0
        Bound on the dual coefficients, as in `sklearn.svm.SVC`.
    centering : "auto" or float, default="auto"
        Weight of the distance from F to the matrix of ones (the paper's eta). ``"auto"`` takes
        ``sum(alpha^2 K_ii) / (4 adaptivity)`` of the plain machine.
    adaptivity : float, default=0.25
        For ``centering="auto"``: the mean squared change of F that is aimed at, free of scale; 0.25 is the paper's
        choice, values near 0 give the plain machine. Tune it like C.
    rank_penalty : float, default=0.01
        Weight of the trace of F (the paper's tau); the rank is at most ``1 + 2 adaptivity / rank_penalty``, and
        from ``2 adaptivity`` on it is 1.
    out_of_sample : {"inductive", "nearest", "reciprocal", "hyper"}, default="inductive"
        How F continues to new points. ``"inductive"``: as for a training row with coefficient zero; a prediction
        depends on nothing but the point. ``"nearest"``: the column of the nearest training row.
        ``"reciprocal"``: the paper's rule, the training row with the smallest product of neighbour ranks;
        transductive, a prediction changes with the rest of the batch, for comparison only. ``"hyper"``: F - 1 as
        a function of two points, learned from its training values by `HyperRidge`; far slower.
    tune : {None, "gradient"}, default=None
        ``"gradient"`` chooses one length scale per feature (one only when the kernel is a `Gaussian` with one), C,
        and the centering: 5-fold cross-validation of plain machines on a coarse grid, then descent along the
        exact gradient of DANK's validation loss. The parameters C and centering are then ignored.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with ``sample_weight``.
    probability : bool, default=False
        Whether to fit `predict_proba`, from the scores of five held-out folds.
    n_parts : int, default=1
        Solve on that many k-means clusters independently, with one common centering and F = 1 between clusters,
        for data whose working set does not fit in memory. A new point is decided by the machine of its cluster.
    tol : float, default=1e-4
        Relative duality gap to reach.
    max_iter : int, default=50
        Limit on the outer steps.
    memory_limit : int, str or None, default=None
        Bytes that matrices may take, such as ``"2GB"``; None means half of what is free.
    n_jobs : int or None, default=None
        Workers for the parts, and for a kernel that is a function.
    random_state : int, RandomState or None, default=None
        For the clusters and the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    adaptation_ : tuple of Adaptation
        The factored F of every pair of classes (0-1, 0-2, ..., 1-2, ...); one for two classes.
    rank_ : int
        Largest rank of F over the pairs.
    gap_ : float
        Largest relative duality gap over the pairs (and parts), for all rows.
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
    clusters_ : KMeans or None
        The clusters of the parts.
    support_part_ : ndarray of shape (n_support,)
        The part of every support vector.
    centering_ : ndarray of shape (n_pairs,)
        The weights of the centering term that were used.
    n_iter_ : int
        Largest number of outer steps over the pairs.
    n_evaluations_ : int
        Products with the kernel matrix or its square, the unit that a gradient method pays per iteration.
    extension_ : tuple of Kernel
        With ``out_of_sample="hyper"``, F - 1 as a function for every pair.
    history_ : tuple of tuples
        Objective, relative gap on the working set and rank after every outer step, per pair.
    kernel_ : Kernel
        The base kernel, tuned if asked.
    C_, epsilon_ : float
        With ``tune="gradient"``, the values that were used.
    tuning_ : Tuned
        With ``tune="gradient"``, the course and result of the descent.
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
    double precision. On the sets of the paper, neither the paper's rule nor the inductive one beat a tuned plain
    machine on average; see the user guide.

    References
    ----------
    Liu, Huang, Gong, Yang, Li. Learning data-adaptive non-parametric kernels. JMLR 21 (2020).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercerless import DANKClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = DANKClassifier(C=4.0).fit(X, y)
    >>> bool(model.gap_ <= 1e-4), model.rank_ <= 51
    (True, True)
    >>> round(model.score(X, y), 1)
    1.0
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float = 1.0,
        centering: float | str = "auto",
        adaptivity: float = 0.25,
        rank_penalty: float = 0.01,
        out_of_sample: str = "inductive",
        tune: str | None = None,
        class_weight: dict | str | None = None,
        probability: bool = False,
        n_parts: int = 1,
        tol: float = 1e-4,
        max_iter: int = 50,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.C = C
        self.centering = centering
        self.adaptivity = adaptivity
        self.rank_penalty = rank_penalty
        self.out_of_sample = out_of_sample
        self.tune = tune
        self.class_weight = class_weight
        self.probability = probability
        self.n_parts = n_parts
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "DANKClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : array-like of shape (n,)
            The classes.
        sample_weight : array-like of shape (n,) or None, default=None
            A weight w counts like w repetitions of the row; 0 leaves it out.

        Returns
        -------
        DANKClassifier
            The fitted estimator.
        """
        y = check_labels(y, type(self).__name__)
        given = check_weight(sample_weight, len(y))
        given = np.ones(len(y)) if given is None else given
        weight = given * compute_sample_weight(self.class_weight, y)
        kernel, items = self._begin(X, y, weight)
        used = np.flatnonzero(weight > 0)
        classes = np.unique(y[used])
        if len(classes) < 2:
            raise ValueError(f"The training rows have one class only, {classes[0]!r}; at least two are needed.")
        tasks = []
        for i, j in combinations(range(len(classes)), 2):
            rows = used[np.isin(y[used], classes[[i, j]])]
            tasks.append(_Task(rows, np.where(y[rows] == classes[j], 1.0, -1.0), weight[rows], 0.0, True))
        attributes = self._fit(kernel, items, y, tasks)
        attributes["classes_"] = classes
        if self.probability:
            attributes["calibration_"] = self._calibrate(items, y, given, classes)
        self._set(attributes)
        return self

    def _calibrate(self, X: Any, y: NDArray, weight: NDArray, classes: NDArray):
        """Slope and bias of the scores, from rows that the scoring model has not seen."""
        precomputed = self.__sklearn_tags__().input_tags.pairwise
        rows = np.flatnonzero(weight > 0)
        folds = _splits(X, y, classify=True, used=rows, precomputed=precomputed, random_state=self.random_state)
        if not folds:
            raise ValueError(
                "probability=True needs at least two rows of every class that are not copies of each other."
            )
        scores = np.empty((len(rows), len(classes)))
        for train, test in folds:
            model = clone(self).set_params(probability=False)
            train, held_out = rows[train], rows[test]
            seen = X[np.ix_(train, train)] if precomputed else X[train]
            unseen = X[np.ix_(held_out, train)] if precomputed else X[held_out]
            model.fit(seen, y[train], sample_weight=weight[train])
            scores[test] = _class_scores(model.decision_function(unseen))
        return calibrate_scores(scores, np.searchsorted(classes, y[rows]), weight[rows])

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
        return values[:, 0] if len(self.classes_) == 2 else _votes(values, len(self.classes_))

    def predict(self, X: Any) -> NDArray:
        """Classes of new items.

        Parameters
        ----------
        X : as for `decision_function`
            The items.

        Returns
        -------
        ndarray of shape (n,)
            The classes.
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(_class_scores(self.decision_function(X)), axis=1)]

    @available_if(lambda self: self.probability)
    def predict_proba(self, X: Any) -> NDArray:
        """Probabilities of the classes, from scores of held-out folds.

        Parameters
        ----------
        X : as for `decision_function`
            The items.

        Returns
        -------
        ndarray of shape (n, n_classes)
            The probabilities.
        """
        scores = _class_scores(self.decision_function(X))
        return softmax(self.calibration_.slope * scores + self.calibration_.bias, axis=1)


def _class_scores(decision: NDArray) -> NDArray:
    return np.column_stack([-decision, decision]) / 2 if decision.ndim == 1 else decision


def _votes(values: NDArray, n_classes: int) -> NDArray:
    """Votes of the pairs, plus less than half a vote of summed confidence."""
    votes, confidence = np.zeros((2, len(values), n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        votes[:, j] += values[:, k] > 0
        votes[:, i] += values[:, k] <= 0
        confidence[:, j] += values[:, k]
        confidence[:, i] -= values[:, k]
    return votes + confidence / (3 * (np.abs(confidence) + 1))


class DANKRegressor(RegressorMixin, _DANK):
    """Support vector regression with a kernel matrix that adapts to the data.

    Solves::

        max_v min_F  y @ v - epsilon * |v|_1 - v^T (F * K) v / 2
                     + centering * |F - 1|_F^2 + centering * rank_penalty * trace(F)
        |v_i| <= C,  sum(v) = 0,  F positive semi-definite

    to a certified relative duality gap; see `DANKClassifier` for what F does.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        The base kernel, positive semi-definite: a kernel object, ``"precomputed"``, one of scikit-learn's metric
        names, or a function of two items. With a Gaussian the full matrix is never formed.
    C : float, default=1.0
        Bound on the dual coefficients, as in `sklearn.svm.SVR`.
    epsilon : float, default=0.1
        Half width of the tube in which errors cost nothing.
    centering : "auto" or float, default="auto"
        Weight of the distance from F to the matrix of ones (the paper's eta). ``"auto"`` takes
        ``sum(v^2 K_ii) / (4 adaptivity)`` of the plain machine.
    adaptivity : float, default=0.25
        For ``centering="auto"``: the mean squared change of F that is aimed at, free of scale; 0.25 is the paper's
        choice, values near 0 give the plain machine. Tune it like C.
    rank_penalty : float, default=0.01
        Weight of the trace of F (the paper's tau); the rank is at most ``1 + 2 adaptivity / rank_penalty``.
    out_of_sample : {"inductive", "nearest", "reciprocal", "hyper"}, default="inductive"
        How F continues to new points, see `DANKClassifier`.
    tune : {None, "gradient"}, default=None
        ``"gradient"`` chooses the length scales, C, the centering and epsilon, see `DANKClassifier`.
    n_parts : int, default=1
        Solve on that many k-means clusters independently, see `DANKClassifier`.
    tol : float, default=1e-4
        Relative duality gap to reach.
    max_iter : int, default=50
        Limit on the outer steps.
    memory_limit : int, str or None, default=None
        Bytes that matrices may take, such as ``"2GB"``; None means half of what is free.
    n_jobs : int or None, default=None
        Workers for the parts, and for a kernel that is a function.
    random_state : int, RandomState or None, default=None
        For the clusters.

    Attributes
    ----------
    adaptation_ : tuple of one Adaptation
        The factored F.
    rank_ : int
        Rank of F.
    gap_ : float
        Relative duality gap, the largest over the parts, for all rows.
    support_ : ndarray of shape (n_support,)
        Training rows with a nonzero dual coefficient.
    support_vectors_ : ndarray of shape (n_support, n_features), list or None
        Those rows; None for a precomputed kernel.
    dual_coef_ : ndarray of shape (1, n_support)
        Coefficients of the inductive predictor: ``k(x, support_vectors_) @ dual_coef_.T + intercept_``.
    dual_solution_ : ndarray of shape (1, n_support)
        The dual solution v itself.
    intercept_ : ndarray of shape (1,) or (1, n_parts)
        Intercept.
    clusters_ : KMeans or None
        The clusters of the parts.
    support_part_ : ndarray of shape (n_support,)
        The part of every support vector.
    centering_ : ndarray of shape (1,)
        The weight of the centering term that was used.
    n_iter_ : int
        Number of outer steps.
    n_evaluations_ : int
        Products with the kernel matrix or its square, the unit that a gradient method pays per iteration.
    extension_ : tuple of one Kernel
        With ``out_of_sample="hyper"``, F - 1 as a function.
    history_ : tuple of one tuple
        Objective, relative gap on the working set and rank after every outer step.
    kernel_ : Kernel
        The base kernel, tuned if asked.
    C_, epsilon_ : float
        With ``tune="gradient"``, the values that were used.
    tuning_ : Tuned
        With ``tune="gradient"``, the course and result of the descent.
    n_features_in_ : int
        Number of features.

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
    >>> model.predict([[1.5]]).round(2)
    array([0.95])
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        centering: float | str = "auto",
        adaptivity: float = 0.25,
        rank_penalty: float = 0.01,
        out_of_sample: str = "inductive",
        tune: str | None = None,
        n_parts: int = 1,
        tol: float = 1e-4,
        max_iter: int = 50,
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.centering = centering
        self.adaptivity = adaptivity
        self.rank_penalty = rank_penalty
        self.out_of_sample = out_of_sample
        self.tune = tune
        self.n_parts = n_parts
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "DANKRegressor":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features), (n, n) for a precomputed kernel, or a sequence of n items
            The training items.
        y : array-like of shape (n,)
            The targets.
        sample_weight : array-like of shape (n,) or None, default=None
            A weight w counts like w repetitions of the row; 0 leaves it out.

        Returns
        -------
        DANKRegressor
            The fitted estimator.
        """
        check_scalar(self.epsilon, "epsilon", Real, min_val=0)
        y = column_or_1d(check_targets(y, type(self).__name__), warn=True)
        weight = check_weight(sample_weight, len(y))
        weight = np.ones(len(y)) if weight is None else weight
        kernel, items = self._begin(X, y, weight)
        used = np.flatnonzero(weight > 0)
        self._set(self._fit(kernel, items, y, [_Task(used, y[used], weight[used], float(self.epsilon), False)]))
        return self

    def predict(self, X: Any) -> NDArray:
        """Predict the targets of new items.

        Parameters
        ----------
        X : as for `fit`; shape (n, n_train) for a precomputed kernel
            The items.

        Returns
        -------
        ndarray of shape (n,)
            The predictions.
        """
        return self._values(X)[:, 0]
