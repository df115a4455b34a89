"""The automatic learner for any similarity or distance: a classifier and a regressor."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import MultiOutputMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mercerless.asymmetric.selection import decay_of
from mercerless.core.basis import Basis, basis_type_of, is_precomputed, make_basis
from mercerless.core.blocks import blockwise, is_dask, take_rows
from mercerless.core.conformal import ConformalMixin, conformal_quantile, interval_radius
from mercerless.core.copies import Gathered
from mercerless.core.estimator import (
    GroupedPredictor,
    NamedClassifierMixin,
    NamedRegressorMixin,
    check_diagonal,
    encode_classes,
    encode_numbers,
    recognized,
    run_tasks,
    same_value,
)
from mercerless.core.folds import (
    OutOfFold,
    check_groups,
    count_folds,
    warn_of_lonely_classes,
    warn_of_near_copies,
)
from mercerless.core.gaps import FilledGaps, fill_gaps, fill_rows, fill_used
from mercerless.core.memory import check_memory, format_bytes, memory_budget, row_blocks
from mercerless.core.optional import with_callbacks
from mercerless.core.reasons import Explained
from mercerless.core.threads import blas_threads
from mercerless.core.timing import landmarks_remedy
from mercerless.core.validation import (
    align_by_name,
    align_columns,
    align_matrix,
    check_labels,
    check_option,
    check_random_state,
    check_real,
    check_square,
    check_symmetric,
    check_targets,
    check_weight,
    is_rounding,
    leave_one_out_constant,
    relative_asymmetry,
    warn,
    warn_if_useless,
    weigh_classes,
)
from mercerless.kernels import Kernel, MatrixFunction, PairFunction
from mercerless.kernels.local import center_bandwidths
from mercerless.lowrank import Landmarks
from mercerless.similarity.comparisons import (
    add_neighbors,
    among,
    check_positions,
    compare_both_ways,
    compare_items,
    landmarks_of,
    read_comparisons,
)
from mercerless.similarity.data import SimilarityTask, Training, make_training
from mercerless.similarity.directions import (
    DirectedRows,
    OneDirection,
    OneWay,
    row_families,
    with_rows,
)
from mercerless.similarity.explaining import StackReasonsMixin
from mercerless.similarity.families import Comparisons, StackFamily
from mercerless.similarity.labels import are_labels, check_label_matrix, encode_labels, fit_labels
from mercerless.similarity.landmark_families import TwoWayComparisons
from mercerless.similarity.landmarks import (
    LandmarkItems,
    LandmarkRows,
    as_new_similarities,
    landmark_need,
)
from mercerless.similarity.nearby import NearbyItems
from mercerless.similarity.several import FittedSimilarity, fit_several, named_kernels
from mercerless.similarity.sparse import refuse_hits
from mercerless.similarity.spread import ItemSpread, fit_spread, local_quantiles
from mercerless.similarity.stack import (
    AllItems,
    Average,
    RunTasks,
    Source,
    Stack,
    fit_stack,
    important_items,
    run_in_order,
    without_blocks,
)
from mercerless.similarity.timing import LIMITS as TIMES
from mercerless.similarity.timing import affordable, duration, seconds_per_pair
from mercerless.spectra import (
    KINDS,
    as_similarities,
    check_kind,
    check_kind_of_kernel,
    implied_distances,
    square_similarities,
    symmetrize,
)


@dataclass(frozen=True)
class SimilarityLimits:
    """When ``landmarks="auto"`` compares with landmarks only, and how much memory a fit needs."""

    #: Landmarks, if there are three times as many items.
    landmarks: int = 400
    #: More items are compared with landmarks only.
    all_items: int = 5000
    #: Matrices of all items that are kept, and in every worker.
    matrices: tuple[int, int] = (1, 10)
    #: The same with both directions.
    directed_matrices: tuple[int, int] = (3, 16)
    #: Bytes for a new item and a training item: every view of the similarities, and sorted copies for neighbors.
    row_bytes: float = 80.0
    #: The same with both directions.
    directed_row_bytes: float = 160.0
    #: Relative gradient at which a calibration counts as solved.
    gradient: float = 1e-6


LIMITS = SimilarityLimits()


@dataclass(frozen=True, eq=False)
class PreparedStack:
    """The training data of a stack, and the attributes that describe it."""

    source: AllItems | LandmarkItems
    training: Training
    attributes: dict[str, Any]
    landmarks: NDArray | None  # positions of the landmarks; None if all items are compared
    # if the matrix is directed and new rows may have one direction only
    one_way: OneDirection | None

    def comparisons(self) -> Comparisons:
        """The comparisons of all items."""
        if isinstance(self.source, LandmarkItems):
            return self.source.rows.all()
        return self.source.comparisons

    def limited_threads(self) -> Any:
        """Few threads for small matrices of many landmarks' sums."""
        if self.landmarks is None:
            return nullcontext()
        return blas_threads(len(self.landmarks))


class _Similarity(ConformalMixin, StackReasonsMixin, GroupedPredictor):
    """Base of the classifier and the regressor.

    The story of a fit: `_task` checks the targets, `_prepare` compares the items (all of them or with landmarks) and
    deals the folds, `_fit_stack` fits the stack, `_finish` sets the attributes. The story of a prediction:
    `_new_blocks` checks new items, `_compare` compares them, the stack predicts.

    Several similarities are a `Several` of such models, made in `_fit_several`. It has the methods of a `Stack`: what
    depends on the number of similarities is asked of `stack_`. A `Stack` asks back the model that it belongs to.
    """

    stack_: Any  # Stack or Several
    one_way_: OneWay | None
    decay_: tuple[float, float] | None
    kind_: str
    diagonal_: float | None
    used_: Any
    members_: tuple
    multilabel_ = False
    gaps_: FilledGaps | None = None
    landmarks_: NDArray | None = None
    similarities_: dict[str, Any]
    mean_: NDArray  # of a regressor's targets, as scale_
    scale_: NDArray
    _basis: Basis  # what new items are compared with
    _nearby_: NearbyItems | None = None  # among which the nearest of new items are looked for
    _completed_rows_: NDArray  # the items between which missing comparisons were completed

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: Any = "auto",
        landmarks: int | str | Landmarks | ArrayLike | None = "auto",
        direction: str = "symmetric",
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.kind = kind
        self.landmarks = landmarks
        self.direction = direction
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @abstractmethod
    def _task(self, y: Any, sample_weight: Any, groups: Any) -> SimilarityTask:
        """The checked targets, weights and groups."""

    def _learn(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None = None
    ) -> None:
        task = self._task(y, sample_weight, groups)
        self._check_parameters()
        refuse_hits(X, type(self).__name__)
        kernels = named_kernels(self.kernel, X)
        if task.has_labels and (kernels is not None or self.direction == "both"):
            raise ValueError(
                "Several labels per item take one similarity, and direction='symmetric' or 'mean'; "
                "fit one model per column of y."
            )
        if kernels is None:
            self._fit_one(X, task)
        else:
            self._fit_several(kernels, X, task)

    def _check_parameters(self) -> None:
        check_option("direction", self.direction, ("symmetric", "mean", "both"))
        for kind in self.kind.values() if isinstance(self.kind, dict) else [self.kind]:
            check_option("kind", kind, ("auto", *KINDS))
        if isinstance(self.cv, Integral):
            count_folds(self.cv)
        kernels = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel]
        if isinstance(self.kernel, dict):
            kernels = list(self.kernel.values())
        if any(center_bandwidths(kernel) for kernel in kernels):
            raise ValueError(
                "The kernel has bandwidths for every training item, and new items have none; use "
                "one bandwidth per feature, or AsymmetricRidge, which needs none of new items."
            )

    def _finish(self, attributes: dict[str, Any]) -> Self:
        """Set the attributes of a fit, in the units that users see."""
        self._set_fitted(**attributes)
        return self

    # several similarities

    def _fit_several(self, kernels: dict[str, Any], X: Any, task: SimilarityTask) -> None:
        """Fit an average over several similarities."""
        self._forget_columns()
        with self._progress() as progress:
            several, attributes = fit_several(self, kernels, X, task, self._fit_similarity)
            progress.step({"stage": "weights"})
        attributes["_basis"] = None  # each model has its own, as gaps_
        self._finish(attributes | several.attributes | {"stack_": several})

    def _fit_similarity(
        self, options: dict[str, Any], X: Any, task: SimilarityTask
    ) -> FittedSimilarity:
        """A model of one of several similarities."""
        # parameters as they are: a clone would copy matrices and functions
        model = type(self)(**self.get_params(deep=False) | options)
        return model._fit_as_part(X, task)

    @with_callbacks  # closes the progress report, which no file can hold
    def _fit_as_part(self, X: Any, task: SimilarityTask) -> FittedSimilarity:
        """Fit this model for one of several similarities, which may well be useless alone."""
        prepared = self._prepare(X, task)
        stack = self._fit_stack(prepared)
        self._finish(self._attributes_of(without_blocks(stack), prepared))
        return FittedSimilarity(self, stack, prepared.comparisons(), prepared.landmarks)

    # one similarity

    def _fit_one(self, X: Any, task: SimilarityTask, candidates: NDArray | None = None) -> None:
        """Fit the stack of one similarity; warns if the folds or the stack are of no use."""
        prepared = self._prepare(X, task, candidates, gathers=True)
        if task.groups is None and prepared.landmarks is None:
            # not those of `comparisons`, which would keep them during the fit
            distances = implied_distances(prepared.comparisons().similarities)
            warn_of_near_copies(distances, self.cv, prepared.training.n_classes)
            del distances
        stack = self._fit_stack(prepared)
        self._warn_if_useless(stack, prepared.training)
        self._finish(self._attributes_of(without_blocks(stack), prepared))

    @with_callbacks
    def _fit_alone(self, X: Any, task: SimilarityTask, candidates: NDArray | None) -> None:
        """`_fit_one` of a new model."""
        self._fit_one(X, task, candidates)

    # one similarity: from items to comparisons

    def _prepare(
        self, X: Any, task: SimilarityTask, candidates: NDArray | None = None, gathers: bool = False
    ) -> PreparedStack:
        """From training items to their comparisons, targets and folds.

        If it `gathers`, the first of equal items with equal targets carries the weight of all of them. Items that are
        equal for one of several similarities may differ for another, so these do not.
        """
        gaps = None
        with_weight = task.used
        if is_precomputed(self.kernel) and not self._has_landmarks:
            X = align_matrix(X, may_cut=True)
            X, gaps = self._without_gaps(X, task)
        kernel, items = self._train_items(X, task.weight, try_pairs=False)
        check_kind_of_kernel(kernel, self.kind)
        check_consistent_length(items, task.y)
        if gathers:
            task = task.gathered(items, basis_type_of(kernel).given_as_matrix, self.cv)
        landmarks = None
        if self._all_are_cheaper(kernel, items, len(task.used)):
            kernel = recognized(kernel, self.kernel, items)
        else:
            if not self._has_landmarks:
                kernel = recognized(kernel, self.kernel, items)
            if self.direction != "both" or self._has_landmarks:
                landmarks = self._requested_landmarks(kernel, items, len(task.used))
        if landmarks is not None and task.has_labels:
            raise ValueError(
                "Several labels per item need all comparisons; set landmarks=None, or fit one "
                "model per column of y."
            )
        if landmarks is not None:
            prepared = self._with_landmarks(kernel, items, task, landmarks, candidates)
        else:
            prepared = self._with_all_items(kernel, items, task)
        prepared.attributes.setdefault("gaps_", gaps)
        if gaps is not None:
            # copies are among them, which the basis leaves out
            prepared.attributes["_completed_rows_"] = with_weight
        return prepared

    def _without_gaps(self, X: Any, task: SimilarityTask) -> tuple[Any, FilledGaps | None]:
        """A matrix of comparisons with the missing ones completed, and how; warns."""
        X, gaps = fill_used(X, task.used, len(task.y))
        if gaps is not None:
            self._warn_of_gaps(gaps, len(task.used))
        return X, gaps

    def _warn_of_gaps(self, gaps: FilledGaps, n: int) -> None:
        share = 100.0 * gaps.n_filled / n**2
        warn(
            f"X has {gaps.n_filled} missing comparisons ({share:.2g} %), which were completed "
            f"by {gaps.how}."
        )

    def _all_comparisons(self, basis: Basis) -> tuple[NDArray, dict[str, Any]]:
        """The square matrix; pairs for which a function gave None are completed, as `gaps_` then says."""
        matrix = basis.matrix()
        if isinstance(basis.kernel, PairFunction) and np.isnan(matrix).any():
            matrix, gaps = fill_gaps(matrix)
            self._warn_of_gaps(gaps, len(matrix))
            return matrix, {"gaps_": gaps}
        return check_square(matrix, basis.matrix_name), {}

    def _with_all_items(self, kernel: Kernel, items: Any, task: SimilarityTask) -> PreparedStack:
        """Comparisons of all items with each other."""
        basis = self._all_items_basis(kernel, items, task)
        matrix, completed = self._all_comparisons(basis)
        is_both = self.direction == "both"
        asymmetry = 0.0
        if self._directed:
            asymmetry = relative_asymmetry(matrix)
        is_directed = asymmetry > (1e-5 if matrix.dtype == np.float32 and not is_both else 1e-8)
        if is_both:
            matrix = matrix.astype(np.float64)
            mean = symmetrize(matrix)
            kind = check_kind(matrix, self.kind, basis.matrix_name)
        else:
            mean = symmetrize(matrix) if is_directed else check_symmetric(matrix, basis.matrix_name)
            kind = check_kind(mean, self.kind, basis.matrix_name)
        comparisons = Comparisons.of(square_similarities(mean, kind))
        training = make_training(
            task,
            _without_tiny_distances(mean) if kind == "distance" else comparisons.similarities,
            self.cv,
            classify=is_classifier(self),
            precomputed=True,
            random_state=self.random_state,
        )

        # columns of rows without weight stay in a precomputed test matrix
        has_other_columns = basis.given_as_matrix and len(basis) < basis.n_train
        attributes = {
            "kernel_": basis.kernel,
            "X_fit_": basis.kept,
            "_basis": basis.fitted(),
            "_basis_rows": basis.rows,
            "used_": basis.rows if has_other_columns else slice(None),
            "kind_": kind,
            "diagonal_": same_value(comparisons.column_diagonal),
            "landmarks_": None,
        } | completed
        families: tuple[StackFamily, ...] = ()
        rows = None
        if is_both:
            rows = DirectedRows(matrix, matrix.T, decay_of(matrix, kind))
            families = row_families(both_ways=True, classify=is_classifier(self))
            comparisons = with_rows(comparisons, rows)
            attributes |= {"decay_": rows.decay, "asymmetry_": asymmetry}
        one_way = None
        if is_directed and basis.given_as_matrix:
            one_way = OneDirection(matrix, comparisons, kind, attributes["diagonal_"], rows)
        source = AllItems(comparisons, training.fold_of, row_families=families)
        return PreparedStack(source, training, attributes, None, one_way)

    def _all_items_basis(self, kernel: Kernel, items: Any, task: SimilarityTask) -> Basis:
        """The items that carry weight, if all their comparisons fit into memory."""
        if basis_type_of(kernel).given_as_matrix and items.shape[0] != items.shape[1]:
            raise ValueError(
                "X must be square (one row and one column per training item), not of shape "
                f"{items.shape}; set landmarks if its columns are comparisons with landmarks only."
            )
        basis = make_basis(kernel, items, task.weight)
        n = len(basis)
        remedy = "set landmarks or use fewer rows"
        check_memory(self._full_need(n), f"The stack on {n} items", remedy=remedy)
        return basis

    def _full_need(self, n: int) -> float:
        """Bytes: the matrices, and in every worker a fold's part of them with an eigendecomposition's work space."""
        n_folds = self.cv if isinstance(self.cv, Integral) else 5
        n_workers = min(effective_n_jobs(self.n_jobs), n_folds)
        kept, of_worker = LIMITS.matrices
        if self.direction == "both":
            kept, of_worker = LIMITS.directed_matrices
        return 8.0 * n**2 * (kept + of_worker * n_workers)

    def _all_are_cheaper(self, kernel: Kernel, items: Any, n: int) -> bool:
        """Whether all n (n - 1) / 2 pairs are no more than n pairs with each of the landmarks, drawn at random.

        New items are then compared with all items, at most twice as many as landmarks, and the model is better.
        """
        if not self._has_landmarks or self.direction != "symmetric":
            return False
        if basis_type_of(kernel).given_as_matrix or is_dask(items):
            return False
        if isinstance(self.landmarks, (list, tuple, np.ndarray)):
            return False
        requested = landmarks_of(self.landmarks)
        is_drawn = requested.method == "uniform" and requested.seconds is None
        fits = n <= LIMITS.all_items and self._full_need(n) <= memory_budget()
        n_compared = requested.number + (requested.neighbors or 0)
        return is_drawn and fits and n - 1 <= 2 * n_compared

    @property
    def _has_landmarks(self) -> bool:
        """Whether landmarks are requested by number or name."""
        return self.landmarks is not None and not isinstance(self.landmarks, str)

    @property
    def _directed(self) -> bool:  # type: ignore[override]
        return self.direction != "symmetric"

    @property
    def _streams(self) -> bool:  # type: ignore[override]
        return self.landmarks is not None and self.direction != "both"

    def _requested_landmarks(
        self, kernel: Kernel, items: Any, n: int
    ) -> Landmarks | NDArray | None:
        """How many landmarks and how chosen, their positions, or None for all items; "auto" warns if it uses them."""
        if self.landmarks is None:
            return None
        if not isinstance(self.landmarks, str):
            if isinstance(self.landmarks, (list, tuple, np.ndarray)):
                return check_positions(self.landmarks, len(items))
            requested = landmarks_of(self.landmarks)
            if requested.seconds is None:
                return requested
            return self._landmarks_in_time(kernel, items, n, requested, requested.seconds)
        if self.landmarks != "auto":
            raise ValueError(
                f"landmarks must be a number, Landmarks, 'auto' or None, got {self.landmarks!r}."
            )
        reason = self._too_much(kernel, items, n)
        chosen = Landmarks(_auto_landmarks(n))
        takes = ""
        if reason is None:
            per_pair = self._slow_pairs(kernel, items, n)
            if per_pair is None:
                return None
            reason = f"all comparisons would take about {duration(per_pair * n**2 / 2)}"
            budget = Landmarks(seconds=TIMES.all_seconds)
            chosen, seconds = affordable(budget, per_pair, n, self._n_directions, chosen.number)
            takes = f", which takes about {duration(seconds)}"
        warn(
            f"{type(self).__name__} compares the {n} items with {chosen.number} landmarks "
            f"only{takes}: {reason}. Set landmarks to a number or to Landmarks(seconds=...) to "
            "choose it yourself, or to None for all comparisons.",
            UserWarning,
        )
        return chosen

    @property
    def _n_directions(self) -> int:
        """How often a function is called for two items."""
        return 1 if self.direction == "symmetric" else 2

    def _slow_pairs(self, kernel: Kernel, items: Any, n: int) -> float | None:
        """Seconds for a pair of items, if a function is so slow that all comparisons are too much; else None."""
        is_function = isinstance(kernel, (PairFunction, MatrixFunction))
        if not is_function or n <= 3 * TIMES.fewest:
            return None
        per_pair = seconds_per_pair(kernel, items)
        if per_pair * n**2 / 2 > TIMES.all_seconds:
            return per_pair
        return None

    def _landmarks_in_time(
        self, kernel: Kernel, items: Any, n: int, requested: Landmarks, budget: float
    ) -> Landmarks:
        """As many landmarks as the time allows that was requested."""
        if basis_type_of(kernel).given_as_matrix or is_dask(items):
            raise ValueError(
                "Landmarks(seconds=...) is for functions and kernels that compare items in memory; "
                "give a number of landmarks instead."
            )
        per_pair = seconds_per_pair(kernel, items)
        most = min(requested.number, n)
        chosen, seconds = affordable(requested, per_pair, n, self._n_directions, most)
        if seconds > 2.0 * budget:
            warn(
                f"{chosen.number} landmarks, the fewest, take about {duration(seconds)} for {n} "
                f"items, more than the {duration(budget)} of landmarks; fewer items take less.",
                UserWarning,
            )
        return chosen

    def _too_much(self, kernel: Kernel, items: Any, n: int) -> str | None:
        """Why comparing all items with each other is too much, in words; None if it is not."""
        if basis_type_of(kernel).given_as_matrix:
            is_square = items.shape[0] == items.shape[1]
            if self.direction == "mean" or not is_square:
                return None
        if is_dask(items):
            return "they are not in memory"
        if n > LIMITS.all_items:
            return f"the stack on all comparisons is for up to {LIMITS.all_items} items"
        need = self._full_need(n)
        budget = memory_budget()
        if need > budget >= landmark_need(n, _auto_landmarks(n)):
            return (
                f"all comparisons would need {format_bytes(need)} of memory and the budget is "
                f"{format_bytes(budget)}"
            )
        return None

    def _with_landmarks(
        self,
        kernel: Kernel,
        items: Any,
        task: SimilarityTask,
        requested: Any,
        candidates: NDArray | None,
    ) -> PreparedStack:
        """Comparisons of all items with landmarks."""
        random = check_random_state(self.random_state)
        training = make_training(
            task,
            items,
            self.cv,
            classify=is_classifier(self),
            precomputed=False,
            random_state=self.random_state,
        )
        used = training.used
        columns = None
        if len(used) < len(items):
            if self._compares_all_items(kernel, items, requested):
                columns = used
                items = items[:, used]
            items = items[used]
        if isinstance(requested, np.ndarray):
            requested = _used_positions(requested, used, task.copies)
            is_rectangle = basis_type_of(kernel).given_as_matrix and self.direction != "both"
            if not is_rectangle:  # whose columns stay, those of copies too
                requested = requested[np.sort(np.unique(requested, return_index=True)[1])]
        if self.direction == "both":
            rows = self._compared_both_ways(kernel, items, requested, training, len(task.y), random)
        elif basis_type_of(kernel).given_as_matrix:
            rows = self._given_comparisons(items, requested, training.Y, training.weight, random)
        else:
            kernel, rows = self._compared(
                kernel, items, requested, training.Y, training.weight, random, candidates
            )
        n_folds = int(training.fold_of.max()) + 1
        check_memory(
            landmark_need(len(used), len(rows.landmarks), n_folds),
            f"The sums of {n_folds} folds",
            remedy="use fewer folds (cv) or fewer landmarks",
        )
        attributes = _compared_with(rows, kernel, items, used)
        if columns is not None:
            attributes["landmarks_"] = columns[attributes["landmarks_"]]
        if self.direction == "both":
            attributes |= {"decay_": None, "asymmetry_": None}
        n_neighbors = getattr(requested, "neighbors", None)
        if n_neighbors is not None:
            nearby, rows = self._with_neighbors(kernel, items, rows, n_neighbors)
            attributes["_nearby_"] = nearby
        source = LandmarkItems(rows, training.fold_of, random)
        return PreparedStack(source, training, attributes, rows.landmarks, None)

    def _compares_all_items(self, kernel: Kernel, items: Any, requested: Any) -> bool:
        """Whether items are a symmetric matrix of which some columns are to be landmarks."""
        is_matrix = basis_type_of(kernel).given_as_matrix and not is_dask(items)
        if not is_matrix or self.direction == "both" or not isinstance(requested, Landmarks):
            return False
        is_square = items.shape[0] == items.shape[1]
        return is_square and is_rounding(relative_asymmetry(items), items.dtype)

    def _with_neighbors(
        self, kernel: Kernel, items: Any, rows: LandmarkRows, number: int
    ) -> tuple[NearbyItems, LandmarkRows]:
        """Comparisons with the nearest items that are found through the landmarks."""
        if basis_type_of(kernel).given_as_matrix or self.direction == "both":
            raise ValueError(
                "Landmarks(neighbors=...) is for one kernel or function, which can compare further "
                "items, and direction='symmetric' or 'mean'; leave neighbors out."
            )
        compare = partial(_averaged, kernel) if self.direction == "mean" else kernel
        return add_neighbors(rows, items, compare, number)

    def _compared_both_ways(
        self,
        kernel: Kernel,
        items: Any,
        requested: Any,
        training: Training,
        n_given: int,
        random: np.random.RandomState,
    ) -> LandmarkRows:
        """Comparisons with landmarks in both directions, of a kernel or read from a square matrix."""
        if is_dask(items):
            raise ValueError(
                "direction='both' with landmarks needs the items in memory; use direction='mean'."
            )
        compare: Kernel | None = kernel
        if basis_type_of(kernel).given_as_matrix:
            compare = None
            if items.shape[1] != n_given:
                raise ValueError(
                    "direction='both' with landmarks reads the landmarks' rows and columns of the "
                    f"square matrix of all training items, but X has {items.shape[1]} columns for "
                    f"{n_given} items; give the square matrix, or a kernel or function."
                )
            items = items[:, training.used]
        return compare_both_ways(
            compare, items, requested, self.kind, training.Y, training.weight, random
        )

    def _compared(
        self,
        kernel: Kernel,
        items: Any,
        requested: Any,
        Y: NDArray,
        weight: NDArray,
        random: Any,
        candidates: Any,
    ) -> tuple[Kernel, LandmarkRows]:
        """Comparisons with landmarks and what compared; a function that fails on two items may be one of two lists."""
        state = random.get_state()
        compare = partial(_averaged, kernel) if self.direction == "mean" else kernel
        try:
            return kernel, compare_items(
                kernel, compare, items, requested, self.kind, Y, weight, random, candidates
            )
        except ValueError:
            candidate = recognized(kernel, self.kernel, items)
            if type(candidate) is type(kernel):
                raise
        random.set_state(state)
        return self._compared(candidate, items, requested, Y, weight, random, candidates)

    def _given_comparisons(
        self, C: Any, requested: Any, Y: NDArray, weight: NDArray, random: np.random.RandomState
    ) -> LandmarkRows:
        """Precomputed comparisons with landmarks, the columns."""
        if self.direction == "mean":
            raise ValueError(
                "direction='mean' with landmarks is for kernels and functions, which can be asked "
                "for both directions; average X with mercerless.spectra.symmetrize first."
            )
        return read_comparisons(C, requested, self.kind, Y, weight, random)

    # one similarity: from comparisons to a stack

    def _fit_stack(self, prepared: PreparedStack) -> Stack:
        """From comparisons to out-of-fold scores, their average, and members on all items."""
        training = prepared.training
        n_tasks = int(training.fold_of.max()) + 2  # the folds, and the members on all items
        with prepared.limited_threads(), self._progress(n_tasks) as progress:
            if isinstance(prepared.source, AllItems):
                n_items = len(training.Y)
                remedies = [landmarks_remedy(n_items), "n_jobs=2 shares the folds"]
                progress.expect(35.0, n_items, ", and ".join(filter(None, remedies)))
            run = partial(run_tasks, progress, self.n_jobs)
            stack = self._stack_of(prepared.source, training, run)
        certificate = stack.average.certificate
        if not certificate <= LIMITS.gradient:
            message = f"The calibration stopped at a relative gradient of {certificate:.1e}."
            warn(message, ConvergenceWarning)
        return stack

    def _attributes_of(self, stack: Stack, prepared: PreparedStack) -> dict[str, Any]:
        """All attributes of a fit."""
        training = prepared.training
        attributes = prepared.attributes | training.encoding | stack.attributes
        out_of_fold, place = training.out_of_fold(stack.judged, stack.average.out_of_fold)
        attributes |= {
            "out_of_fold_": out_of_fold,
            "_judged_place_": place,
            "stack_": stack,
            "one_way_": None,
        }
        if prepared.landmarks is not None:
            attributes["landmark_curve_"] = stack.curve
        elif not is_classifier(self):
            attributes["spread_"] = _spread_of(prepared, stack.average)
        if prepared.one_way is not None:

            def fit_quietly(source: AllItems) -> Stack:
                return without_blocks(self._stack_of(source, training, run_in_order))

            attributes["one_way_"] = prepared.one_way.fit(fit_quietly, training.fold_of)
        return attributes

    def _stack_of(self, source: Source, training: Training, run: RunTasks) -> Stack:
        """The stack for the targets, or for several labels per item."""
        if training.encoding.get("multilabel_"):
            assert isinstance(source, AllItems)
            return fit_labels(source, training.Y, training.weight, training.block_of, run)
        return fit_stack(
            source, training.Y, training.weight, is_classifier(self), training.block_of, run=run
        )

    def _warn_if_useless(self, stack: Stack, training: Training) -> None:
        """Warn of a stack that is worse than a constant."""
        Y = training.Y[stack.judged]
        weight = training.weight[stack.judged]
        constant = leave_one_out_constant(Y, weight)
        warn_if_useless(stack.average.losses, constant, type(self).__name__, weight)

    # new items

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stack_")

    def _predict(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """Probabilities or standardized numbers of new items."""
        check_is_fitted(self)
        return self.stack_.predict(self, X, diag, reverse)

    # new items of one similarity: answers to the stack

    def _predict_new(self, X: Any, diag: ArrayLike | None, reverse: ArrayLike | None) -> NDArray:
        """The stack's predictions for new items, block by block."""
        blocks = []
        for items, back, diagonal in self._new_blocks(X, diag, reverse):
            if back is None and self.one_way_ is not None:
                blocks.append(self.one_way_(items[:, self.used_], diagonal))
            else:
                blocks.append(self.stack_(self._compare(items, back, diagonal)))
        return np.concatenate(blocks)

    def _new_blocks(
        self, X: Any, diag: ArrayLike | None, reverse: ArrayLike | None
    ) -> Iterator[tuple[Any, NDArray | None, NDArray | None]]:
        """New items in blocks, their other direction and their own similarities as far as they are known."""
        items = self._test_rows(X)
        back = self._check_reverse(reverse, np.shape(items))
        diagonal = None
        if diag is not None:
            diagonal = check_diagonal(diag, len(items))
        row_bytes = LIMITS.row_bytes
        if self.direction == "both":
            row_bytes = LIMITS.directed_row_bytes
        n_bytes = row_bytes * len(self.stack_.members.diagonal)
        budget = 2**24
        if n_bytes * len(items) > budget:
            budget = max(budget, min(2**28, memory_budget() // 2))
        for rows in row_blocks(len(items), n_bytes, budget):
            of_rows = None if diagonal is None else diagonal[rows]
            back_rows = None if back is None else back[rows]
            yield items[rows], back_rows, self._diagonal(items[rows], of_rows)

    def _compare_new(
        self, X: Any, diag: ArrayLike | None, reverse: ArrayLike | None = None
    ) -> Comparisons:
        """Comparisons of new items, all at once."""
        items = self._test_rows(X)
        size = len(self.stack_.members.diagonal)
        back = self._check_reverse(reverse, np.shape(items))
        diagonal = None
        if diag is not None:
            diagonal = check_diagonal(diag, len(items))
        check_memory(
            16.0 * len(items) * size,
            f"{len(items)} items compared with {size}",
            remedy="give fewer at once",
        )
        return self._compare(items, back, self._diagonal(items, diagonal))

    def _test_rows(self, X: Any) -> Any:
        """New items; of comparisons with all columns of the training rows those with landmarks."""
        if self.gaps_ is not None and self._basis.given_as_matrix and self.landmarks_ is None:
            X = fill_rows(X, self.gaps_.model, self._completed_rows_, self._column_labels)
        if self.landmarks_ is None or not self._basis.given_as_matrix:
            return self._test_items(X)
        labels = self._column_labels
        if labels is not None:
            X = align_columns(X, [labels[column] for column in self.landmarks_])
        rows = check_real(X)
        m = len(self.landmarks_)
        if rows.shape[1] == m:
            self._check_labels(X, self.landmarks_)
            return rows
        if rows.shape[1] == self.n_features_in_:
            self._check_labels(X)
            return rows[:, self.landmarks_]
        every = (
            f", or the {self.n_features_in_} of the training rows"
            if self.n_features_in_ != m
            else ""
        )
        raise ValueError(
            f"X has {rows.shape[1]} columns but the model compares with {m} landmarks; give one "
            f"column for each of them, in the order of landmarks_{every}."
        )

    def _compare(self, items: Any, back: NDArray | None, diagonal: NDArray | None) -> Comparisons:
        """Comparisons of new items with the training items."""
        columns = self.stack_.members.diagonal
        if self.direction != "both":
            compared = Comparisons(self._new_similarities(items, back), diagonal, columns)
            if self._nearby_ is None:
                return compared
            return self._nearby_.of_new(items, compared)
        rows = self._new_rows(items, back)
        assert rows.back is not None
        means = as_new_similarities((rows.out + rows.back) / 2.0, self.kind_)
        if self.landmarks_ is not None:
            return TwoWayComparisons(means, diagonal, columns, rows.values())
        return with_rows(Comparisons(means, diagonal, columns), rows)

    def _new_similarities(self, items: Any, reverse: NDArray | None) -> NDArray:
        """Similarities of new items to the training items; with the direction "mean", of both directions if known."""
        basis = self._basis
        matrix = self._completed(basis.compare(items))
        is_one_way = basis.kernel.symmetric and self.landmarks_ is None
        if basis.given_as_matrix:
            is_one_way = reverse is None
        if self.direction == "mean" and not is_one_way:
            matrix = (matrix + self._completed(basis.compare_back(items, reverse))) / 2.0
        return as_new_similarities(basis.weighted(matrix), self.kind_)

    def _new_rows(self, items: Any, back: NDArray | None) -> DirectedRows:
        """Both directions of new items; one that is not known is taken for both."""
        basis = self._basis
        out = basis.weighted(self._completed(basis.compare(items))).astype(np.float64)
        if basis.given_as_matrix and back is None:
            return DirectedRows(out, out, self.decay_)
        other = basis.weighted(self._completed(basis.compare_back(items, back)))
        return DirectedRows(out, other.astype(np.float64), self.decay_)

    def _completed(self, rows: NDArray) -> NDArray:
        """Rows of new items, completed if a function gave None for some pairs."""
        if not isinstance(self.kernel_, PairFunction) or not np.isnan(rows).any():
            return rows
        if self.gaps_ is None:
            raise ValueError(
                f"The kernel function gave None for {int(np.isnan(rows).sum())} pairs of new "
                "items, but for none of the training items, so that nothing says how to complete "
                "them; return a number, or fit all comparisons (landmarks=None) with such pairs "
                "among them."
            )
        return self.gaps_.model.fill(rows)

    def _check_reverse(self, reverse: ArrayLike | None, shape: tuple[int, ...]) -> NDArray | None:
        """The other direction of new rows, checked; warns if it is missing and would be needed."""
        if reverse is not None:
            if self.direction == "symmetric" or not self._basis.given_as_matrix:
                raise ValueError(
                    "reverse is for kernel='precomputed' with direction='mean' or 'both'; "
                    "otherwise it is not needed."
                )
            if self.landmarks_ is not None:
                reverse = self._test_rows(reverse)
            return self._reverse_rows(reverse, shape)
        if self.direction == "both" and self.landmarks_ is not None and self._basis.given_as_matrix:
            raise ValueError(
                "A model with direction='both' and landmarks needs both directions of new items; "
                "pass the similarities of the landmarks to them as reverse (one row per new item), "
                "or fit with direction='mean'."
            )
        if self.one_way_ is not None:
            warn(
                "The training matrix is directed but only one direction of the new rows is given: "
                "they are judged by a stack fitted on that direction alone. Pass the similarities "
                "of the training items to the new ones as reverse (one row per new item) to use "
                "both."
            )
        return None

    def _diagonal(self, items: Any, diagonal: NDArray | None) -> NDArray | None:
        """The new items' own similarities, if they are given or known."""
        if self.kind_ == "distance":
            return np.zeros(len(items))
        is_as_in_training = diagonal is None and self.diagonal_ is not None
        if is_as_in_training and (self.landmarks_ is not None or self._basis.given_as_matrix):
            return np.full(len(items), self.diagonal_)
        if diagonal is None and not self._basis.given_as_matrix:
            diagonal = self.kernel_.diag(items)
        if diagonal is None:
            return None
        return self._completed_diagonal(as_similarities(diagonal, self.kind_))

    def _completed_diagonal(self, own: NDArray) -> NDArray:
        """Own similarities of new items; those for which a function gave None are the training items' median."""
        is_missing = np.isnan(own)
        if not is_missing.any():
            return own
        if self.gaps_ is None:
            raise ValueError(
                f"The kernel function gave None for {int(is_missing.sum())} new items compared "
                "with themselves, but a number for every training item; return a number."
            )
        return np.where(is_missing, np.median(self.stack_.members.diagonal), own)

    def _held_out(  # type: ignore[override]
        self, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> OutOfFold:
        """The out-of-fold predictions of the stack that judges new items given in this way."""
        check_is_fitted(self)
        if self.multilabel_:
            raise ValueError(
                "Prediction sets and suspects are for one label per item; fit one model per "
                "column of y."
            )
        return self.stack_.held_out(self, diag, reverse)

    def _held_out_by(self, diag: ArrayLike | None, reverse: ArrayLike | None) -> OutOfFold:
        """Out-of-fold predictions of the whole average, or of the one for new items given in this way."""
        held_out = self.out_of_fold_
        is_known = self.kind_ == "distance" or diag is not None or self.diagonal_ is not None
        average = self.stack_.average
        if self.one_way_ is not None and reverse is None:
            average = self.one_way_.stack.average
            is_known = is_known or self.one_way_.constant is not None
        elif is_known or not self._basis.given_as_matrix:
            return held_out
        prediction = average.out_of_fold if is_known else average.out_of_fold_without_diag
        return held_out._replace(prediction=self._decode(prediction[self._judged_place_]))

    def _decode(self, values: NDArray) -> NDArray:
        """Values of the stack as they are given to users."""
        return values

    def _in_units(self, explained: Explained) -> Explained:
        """Shares in the units of a regressor's targets."""
        return explained.scaled(self.scale_[0], self.mean_[0])

    def _check_explainable(self, reverse: ArrayLike | None) -> None:
        """Raise if there are no shares of training items."""
        if getattr(self, "one_way_", None) is not None and reverse is None:
            raise ValueError(
                "explain needs both directions of new items; pass the other one as reverse."
            )
        if self.multilabel_:
            raise ValueError("explain is for one label per item; fit one model per column of y.")
        if is_classifier(self) and len(self.classes_) < 2:
            raise ValueError(
                "The training items have one class only, so that there is nothing to explain."
            )
        if not is_classifier(self) and len(self.mean_) > 1:
            raise ValueError("explain takes models of one output; fit one model per output.")

    def sparsify(
        self,
        landmarks: int,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Any:
        """A model that compares new items with few of the training items only, those that matter.

        A pursuit (see `mercerless.lowrank.Landmarks`) among all items of a precomputed matrix, else among four times as
        many as are kept, those with the largest coefficients, and the stack on the comparisons with them.

        Parameters
        ----------
        landmarks : int
            How many items to keep.
        X, y, sample_weight, groups : array-like
            What this model was fitted on, matched by name as in `fit`.

        Returns
        -------
        SimilarityClassifier or SimilarityRegressor
            A new model; its `landmarks_` are the items that were kept.
        """
        check_is_fitted(self)
        self.stack_.check_sparsify(self)
        if self.multilabel_:
            raise ValueError("sparsify is for one label per item; fit one model per column of y.")
        if self.direction == "both":
            raise ValueError("sparsify is for direction='symmetric' or 'mean', not 'both'.")
        y = align_by_name(X, y)
        sample_weight = align_by_name(X, sample_weight)
        task = self._task(y, sample_weight, align_by_name(X, groups))
        model = clone(self).set_params(landmarks=landmarks_of(Landmarks(landmarks, "pursuit")))
        candidates = None
        if not self._basis.given_as_matrix:
            n_candidates = min(4 * landmarks, len(self.stack_.members.diagonal))
            candidates = important_items(self.stack_, n_candidates)
        model._fit_alone(X, task, candidates)
        return model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # columns of comparisons with landmarks are not the rows' items: cross-validation splits rows only
        tags.input_tags.pairwise = tags.input_tags.pairwise and not self._has_landmarks
        tags.input_tags.allow_nan = tags.input_tags.pairwise
        return tags


def _spread_of(prepared: PreparedStack, average: Average) -> ItemSpread | None:
    """Scales of the errors of single targets that follow the items, in standardized units; None if one scale does."""
    training = prepared.training
    if training.Y.shape[1] > 1:
        return None
    return fit_spread(
        prepared.comparisons(),
        average.out_of_fold[:, 0],
        training.Y[:, 0],
        training.weight,
        training.fold_of,
    )


def _without_tiny_distances(D: NDArray) -> NDArray:
    """Distances, 0 if they are so small that rounding of their squares may have caused them.

    Copies have equal rows of these. Rows of squares would not do: beside pairs that are far apart, such as those of
    different parts of a graph, squares of all near items are equal up to rounding.
    """
    D = D.astype(np.float64)
    return np.where(D <= 1e-8 * D.max(axis=1, keepdims=True), 0.0, D)


def _auto_landmarks(n: int) -> int:
    return min(LIMITS.landmarks, max(1, n // 3))


def _averaged(kernel: Kernel, X: Any, Y: Any) -> NDArray:
    """The mean of both directions."""
    return (kernel(X, Y) + kernel(Y, X).T) / 2.0


def _used_positions(positions: NDArray, used: NDArray, copies: Gathered | None) -> NDArray:
    """Positions among the items that carry weight, for a copy that of the item that stands for it."""
    if copies is not None:
        positions = copies.first[positions]
    if not np.all(np.isin(positions, used)):
        row = positions[~np.isin(positions, used)][0]
        raise ValueError(
            f"landmarks names row {row}, which has the weight 0; landmarks must carry weight."
        )
    return np.searchsorted(used, positions)


def _compared_with(rows: LandmarkRows, kernel: Kernel, items: Any, used: NDArray) -> dict[str, Any]:
    """The attributes that describe the landmarks that items are compared with."""
    n_landmarks = len(rows.landmarks)
    basis_type = basis_type_of(kernel)
    landmark_items = None
    if rows.read.is_directed:
        landmarks = used[rows.landmarks]
        if not basis_type.given_as_matrix:
            landmark_items = take_rows(items, rows.landmarks)
    elif basis_type.given_as_matrix:
        landmarks = rows.read.columns
        if landmarks is None:
            landmarks = np.arange(n_landmarks)
    else:
        landmark_items = take_rows(items, rows.landmarks)
        landmarks = used[rows.landmarks]
    return {
        "kernel_": kernel,
        "X_fit_": landmark_items,
        "_basis": basis_type(kernel, landmark_items, np.arange(n_landmarks), n_landmarks),
        "_basis_rows": among(used, rows.landmarks),
        "used_": slice(None),
        "kind_": rows.read.kind,
        "diagonal_": rows.read.constant,
        "landmarks_": landmarks,
    }


class SimilarityClassifier(NamedClassifierMixin, _Similarity):
    """The automatic classifier for any similarity or distance: a stack of calibrated learners.

    No single remedy for an indefinite matrix wins everywhere, and picking one by cross-validation often picks
    wrongly. This estimator fits several families, calibrates each out of fold, and predicts the average ::

        p(c | x) = sum_m weights[m] * softmax(slope[m] * score[m](x) + bias[m])[c],   weights >= 0, sum 1

    with the weights that minimize the out-of-fold Brier score, raised to a power (an average of calibrated learners is
    underconfident) that minimizes the out-of-fold log-loss. The families are

    - ``"clip"``, ``"flip"``, ``"square"``: ridge regression with the centered similarities' negative eigenvalues
      cut off, with their sign changed, or with all of them squared;
    - ``"neighbors"``: votes of the nearest training items;
    - ``"features"``: ridge regression on the standardized distances to the training items;
    - ``"gaussian"``: ridge regression on ``exp(-factor * distance**2)`` of the training items;
    - ``"profiles"``: kernel ridge regression with a Gaussian of the rows of standardized distances, which is positive
      definite whatever the distances are: two items are alike if their distances to all others are;
    - ``"class_distances"``: the mean distance to the nearest items of every class, or its logarithm;
    - ``"pairs"``, for 11 to 50 classes: votes of kernel ridge regressions for every two classes;
    - ``"logistic_similarities"``, ``"logistic_distances"``, for at most 200 items: logistic regression on the centered
      similarities or on the standardized distances, stopped early.

    Parameters
    ----------
    kernel : Kernel, str, callable, or list or dict of these, default="gaussian"
        A kernel, ``"precomputed"``, a name of scikit-learn's pairwise kernels, or a function of two items (strings,
        series, graphs) that returns a similarity or a distance. A list or dict of several compares the same items in
        several ways: one stack for each and one for the sum of their squared distances, each divided by its median, are
        averaged in turn. Several matrices are given as a list or dict X with ``"precomputed"``, and items that are
        described differently for each similarity as a dict X.
    kind : {"auto", "similarity", "distance", "dissimilarity"}, or dict of these, default="auto"
        What the matrix holds. Distances d become similarities ``-d**2 / 2``, dissimilarities (which may be negative or
        differ from 0 on the diagonal) ``-d``. ``"auto"`` detects it by `mercerless.spectra.matrix_kind`. A dict is for
        several similarities that have names.
    landmarks : int, Landmarks, array-like of int, None or "auto", default="auto"
        Compare every item with this many landmarks only, in training and prediction. A number draws them at random;
        ``Landmarks(number, "pursuit")`` compares with twice as many and keeps the most informative ones;
        ``Landmarks(number, neighbors=...)`` also compares each item with its nearest, found through the landmarks;
        an array holds their row numbers. None compares all items. ``"auto"`` does so up to 5000 items, if memory and
        (for a function of two items) ten minutes suffice; otherwise it uses at most 400 landmarks, with a warning.
        With half as many random landmarks as items, comparing all of them is no more work, so this is done.

        Precomputed X then has one column per landmark, for new items too. Landmarks need not be training items. If they
        are, more families can be used: their rows are detected if every landmark is nearest to itself; otherwise pass
        their row numbers. A number below that of the columns keeps some of these.
    direction : {"symmetric", "mean", "both"}, default="symmetric"
        What to do with a matrix that differs from its transpose: ``"symmetric"`` raises, ``"mean"`` averages the two
        directions, ``"both"`` also learns from each of them (see Notes), of one similarity. For
        precomputed rows of new items pass the other direction as ``reverse`` to `predict`; without it a second stack,
        fitted on one direction, predicts them, with a warning. With ``"both"`` and landmarks, precomputed X
        is the square matrix, of which the landmarks' rows and columns are read, and ``reverse`` is required.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights. Probabilities are then those of classes in these
        proportions; prediction sets cover as stated.
    cv : int, cross-validation splitter or iterable of splits, default=5
        Folds for scores, calibration and weights; a number is reduced to the number of items, and classes may be
        smaller than it. Every item must be tested exactly once.
    n_jobs : int or None, default=None
        Folds fitted at the same time, by `joblib`. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels; the numbers of the columns if y has several labels per item.
    multilabel_ : bool
        Whether y had several labels per item. Then `weights_` has a row per label, `negative_spectrum_` is a tuple,
        `family_scores_` are means over the labels, and `out_of_fold_` holds the probability of every label.
    members_ : tuple of Setting
        The learners with a weight above 0: family, parameter (penalty or number of neighbors) and width.
    weights_ : ndarray of shape (n_members,)
        Their weights, of sum 1.
    weights_without_diag_ : ndarray of shape (n_members,)
        The weights if a new item's own similarity is not known: 0 for the families that need it.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"accuracy"`` and ``"log_loss"`` of its setting of least log-loss, and the
        sum of its ``"weight"``. The key ``"stack"`` holds the average itself. All are cross-fitted, see `out_of_fold_`.
    negative_spectrum_ : NegativeSpectrum
        Whether the negative eigenvalues help: ``z``, ``verdict`` and ``sentence``.
    out_of_fold_ : OutOfFold
        The average's probabilities for the training items of positive weight (with landmarks for some of many);
        `rows`, `prediction` and `target` (the number of the class). No item was used for its own learners, and
        settings, calibration, weights and temperature were chosen again on other items, in five parts (or `cv`) that
        are drawn without regard to the classes. If `cv` is a splitter or an iterable, its folds are these parts.
    calibration_ : Calibration
        Slopes and biases of the members.
    temperatures_ : tuple of float
        The powers of the averaged probabilities, for `weights_` and for `weights_without_diag_`.
    kind_ : str
        What the matrix was taken for.
    diagonal_ : float or None
        The training items' own similarity if it is the same for all, else None.
    certificate_ : float
        The largest relative violation of the optimality conditions of calibration and weights.
    gaps_ : FilledGaps or None
        For a precomputed matrix with missing comparisons: how many were completed (`n_filled`), by means of rows and
        columns and which `rank`, and the share `r2` of the variance of known entries, held out, that this explains.
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The training items, or those that are landmarks; None for precomputed input.
    stack_ : Stack
        The fitted learners.
    landmarks_ : ndarray of shape (n_landmarks,) or None
        Positions of the landmarks among the training items, or among the columns of precomputed X; None if all
        items were compared.
    landmark_curve_ : dict of int to float
        Only with landmarks: the out-of-fold log-loss (of a small stack, on at most 2000 items) with a quarter, half,
        and all of them. If it still falls, more landmarks would help.
    similarities_ : dict of str to SimilarityClassifier
        Only with several similarities: the fitted model of each, by its name or number. They hold the attributes that
        describe one stack, such as `members_` and `family_scores_`.
    similarity_scores_ : dict of str to dict
        Only with several similarities: the out-of-fold ``"accuracy"`` and ``"log_loss"`` of each stack, of that on
        the ``"sum"`` and of the average, ``"stack"``, and their ``"weight"``.
    used_ : ndarray or slice
        Which training items have a weight above 0.
    asymmetry_ : float
        Only for ``direction="both"``: the largest difference between the two directions, relative to the largest entry;
        None with landmarks.
    decay_ : tuple of float or None
        Only for ``direction="both"``: offset and unit of ``exp(-(d - offset) / unit)``, the affinity of a distance or
        dissimilarity d.
    one_way_ : tuple or None
        For a precomputed directed matrix: the stack for new items whose other direction is not given, on the average
        of both directions or on the distances between standardized rows, whichever was better on held-out rows of one
        direction.
    n_features_in_ : int
        The number of features, or of training items for precomputed similarities.

    See Also
    --------
    SimilarityRegressor : The same for numbers.
    KreinRidgeClassifier : One member with two penalties, faster.
    AsymmetricRidgeClassifier : Two families for directed similarities alone, faster.
    SimilarityFeatures : Similarities as features for any model.

    Notes
    -----
    One eigendecomposition, two products of matrices and 16 Cholesky factorizations per fold. With m landmarks one
    pass over the rows, ``O(n m^2)``, memory that does not grow with n but for X, and three further families:
    ``"similarity_profiles"`` (profiles of similarities), ``"profile_neighbors"`` (neighbors by profiles) and
    ``"embedding"`` (Gaussians in the positive axes of the landmarks' spectrum); X may be a memory map or a Dask array.
    Distances come from
    similarities as ``k(x, x) + k(z, z) - 2 k(x, z)``, cut at 0. A new item's ``k(x, x)`` comes from the kernel; for
    precomputed rows it is taken from the training diagonal if that is constant, else it must be passed as ``diag`` to
    `predict`, or the families that need it are left out, with weights chosen for that case.

    ``direction="both"`` is for citations, attention, divergences, distances of one shape to another: averaging loses
    what the direction says. All families work on the mean of both directions, and these on an item's row, its
    similarities out to all training items and back from them: ``"row_profiles"`` (a Gaussian of standardized rows),
    ``"row_cosines"`` and ``"row_neighbors"`` (ridge regression and votes by the cosine of rows), and
    ``"class_shares"`` (logistic regression on the classes' shares among the items that one and two steps lead to).
    They take part only if the average with them is better out of fold by a standard error than the average without.
    scikit-learn's cross-validation hands over one direction of a precomputed matrix only, and so scores the second
    stack; split with ``K[test][:, train]`` and ``reverse=K[train][:, test].T`` yourself, or pass a function.

    Missing comparisons of a precomputed matrix are NaN, up to 30 % of it and of every row of a new item. The mirrored
    entry fills them, else means of rows and columns plus a matrix of the rank (0, 1, 3, 8 or 20) that best predicts
    known entries; new rows are completed by the same model. A warning states how much that explains, see `gaps_`.

    ``sample_weight`` counts like repetition: equal items with equal targets are one item with the sum of their weights,
    which enters every ridge regression, the votes of neighbors and the calibration. Items of weight 0 are left out.
    Exceptions, in which copies stay items of their own and weights only come close to repetition: a splitter as `cv`,
    several similarities, and fewer distinct items than two for every fold.

    References
    ----------
    .. [1] Y. Chen, E. K. Garcia, M. R. Gupta, A. Rahimi, L. Cazzanti. Similarity-based classification: concepts and
       algorithms. Journal of Machine Learning Research 10, 2009.
    .. [2] L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    Examples
    --------
    >>> from mercerless import SimilarityClassifier
    >>> from mercerless.datasets import load_digit_shapes
    >>> shapes = load_digit_shapes(200)
    >>> D, y = shapes.D, shapes.target
    >>> model = SimilarityClassifier(kernel="precomputed", random_state=0).fit(D[:150, :150], y[:150])
    >>> model.kind_
    'distance'
    >>> model.score(D[150:, :150], y[150:]) > 0.8
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: Any = "auto",
        landmarks: int | str | Landmarks | ArrayLike | None = "auto",
        direction: str = "symmetric",
        class_weight: dict | str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(
            kernel,
            kind=kind,
            landmarks=landmarks,
            direction=direction,
            cv=cv,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _task(self, y: Any, sample_weight: Any, groups: Any) -> SimilarityTask:
        if are_labels(y):
            return self._task_of_labels(y, sample_weight, groups)
        labels = check_labels(y, type(self).__name__)
        given = check_weight(sample_weight, len(labels))
        weight = weigh_classes(self.class_weight, labels, given)
        groups = check_groups(groups, len(labels))
        if groups is not None:
            is_used = weight > 0.0
            warn_of_lonely_classes(labels[is_used], groups[is_used])
        return SimilarityTask(labels, weight, groups, encode_classes)

    def _task_of_labels(self, y: Any, sample_weight: Any, groups: Any) -> SimilarityTask:
        """The task for a column of 0 and 1 for each of several labels."""
        if self.class_weight is not None:
            raise ValueError(
                "class_weight is for one label per item; fit one model per column of y."
            )
        labels = check_label_matrix(y)
        weight = check_weight(sample_weight, len(labels))
        groups = check_groups(groups, len(labels))
        return SimilarityTask(labels, weight, groups, encode_labels, has_labels=True)

    def _finish(self, attributes: dict[str, Any]) -> Self:
        if attributes.get("multilabel_"):
            return super()._finish(attributes)
        held_out = attributes["out_of_fold_"]
        numbers = np.searchsorted(attributes["classes_"], held_out.target)
        attributes["out_of_fold_"] = held_out._replace(target=numbers)
        return super()._finish(attributes)

    @blockwise
    def predict_proba(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sequence of items
            New items; for precomputed input their similarities (or distances) to the training items or landmarks, one
            row per new item. For several similarities the same list or dict as in training.
        diag : array-like of shape (n_samples,), float or None, default=None
            For precomputed similarities whose training diagonal is not constant: the new items' own similarities
            ``k(x, x)``. Without them the families that need distances are left out.
        reverse : array-like of shape (n_samples, n_train) or None, default=None
            For a precomputed directed matrix and a direction of "mean" or "both": the similarities of the training
            items to the new ones, one row per new item. Without it a stack for one direction judges, with a warning.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`. After a fit with several labels per item, the probability of each
            label to be present; they do not sum to 1.
        """
        return self._predict(X, diag, reverse)

    @blockwise
    def decision_function(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """Log-odds of the second of two classes or of each of several labels, or log-probabilities of more classes.

        Parameters
        ----------
        X, diag, reverse : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The decision values.
        """
        proba = self.predict_proba(X, diag, reverse)
        if self.multilabel_:
            return logit(np.clip(proba, 1e-15, 1.0 - 1e-15))
        logs = np.log(np.maximum(proba, np.finfo(float).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    @blockwise
    def predict(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """The most probable class.

        Parameters
        ----------
        X, diag, reverse : array-like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels. After a fit with several labels per item, 0 and 1 in the shape (n_samples, n_labels).
        """
        proba = self.predict_proba(X, diag, reverse)
        if self.multilabel_:
            return (proba > 0.5).astype(int)
        return self.classes_[proba.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.direction != "both" and not self._has_landmarks
        return tags


class SimilarityRegressor(MultiOutputMixin, NamedRegressorMixin, _Similarity):
    """The automatic regressor for any similarity or distance: a stack of learners.

    The same families as `SimilarityClassifier` but those of classes and the logistic ones, without calibration
    ::

        f(x) = mean + sum_m weights[m] * (score[m](x) - mean),   weights >= 0

    with the weights that minimize the out-of-fold squared error (they need not sum to 1). Where some targets lie more
    than three interquartile ranges beyond the quartiles, everything is also fitted on targets cut there, and the given
    ones are used only if that is better out of fold by 1.5 standard errors: one or two rows cannot decide.

    Parameters
    ----------
    kernel, kind, landmarks, direction, cv, n_jobs, random_state : object
        As for `SimilarityClassifier`.

    Attributes
    ----------
    members_, weights_, weights_without_diag_, negative_spectrum_, stack_, one_way_
        As for `SimilarityClassifier`.
    asymmetry_, decay_
        As for `SimilarityClassifier`, only for ``direction="both"``.
    kernel_, X_fit_, kind_, diagonal_, used_, landmarks_, gaps_, n_features_in_
        As for `SimilarityClassifier`.
    landmark_curve_, similarities_, similarity_scores_
        As for `SimilarityClassifier`, only with landmarks or several similarities; squared errors relative to the
        variance in place of the log-loss.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"r2"`` and ``"mse"`` (relative to the variance of each target) of its best
        setting, and the sum of its ``"weight"``. The key ``"stack"`` holds the average itself. All are cross-fitted.
    out_of_fold_ : OutOfFold
        The average's predictions for the training items of positive weight, with learners, settings and weights from
        other folds; `rows`, `prediction` and `target`.
    mean_, scale_ : ndarray of shape (n_targets,)
        Mean and standard deviation of the targets.
    n_fenced_ : int
        How many training targets were cut because they are extreme; 0 where the given ones were used.
    spread_ : ItemSpread or None
        Scales of the errors that follow the item, for `predict_interval`; None if one scale for all is as good on
        held-out items, and with landmarks, several outputs or several similarities.
    certificate_ : float
        The relative violation of the optimality conditions of the weights.

    See Also
    --------
    SimilarityClassifier : The same for labels, with the details.
    KreinRidge : One member with two penalties, faster.

    References
    ----------
    .. [1] L. Breiman. Stacked regressions. Machine Learning 24, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import SimilarityRegressor
    >>> x = np.linspace(0, 3, 60)[:, None]
    >>> model = SimilarityRegressor(random_state=0).fit(x[::2], np.sin(x[::2, 0]))
    >>> model.score(x[1::2], np.sin(x[1::2, 0])) > 0.99
    True
    """

    spread_: ItemSpread | None = None

    def _task(self, y: Any, sample_weight: Any, groups: Any) -> SimilarityTask:
        numbers = check_targets(y, type(self).__name__)
        weight = check_weight(sample_weight, len(numbers))
        return SimilarityTask(numbers, weight, check_groups(groups, len(numbers)), encode_numbers)

    def _finish(self, attributes: dict[str, Any]) -> Self:
        super()._finish(attributes | {"n_fenced_": attributes["stack_"].n_fenced})
        self.out_of_fold_ = self.out_of_fold_._replace(
            prediction=self._decode(self.out_of_fold_.prediction)
        )
        return self

    def _interval_radius(self, X: Any, coverage: float, **new: Any) -> NDArray:
        """Half the width of intervals: relative to the scale of the errors of each item, if there are such scales."""
        out_of_fold = self._held_out(**new)
        is_usual = np.array_equal(out_of_fold.prediction, self.out_of_fold_.prediction)
        if self.spread_ is None or not is_usual:
            return interval_radius(out_of_fold, coverage)
        errors = np.abs(out_of_fold.prediction - out_of_fold.target)
        ratios = errors / self.spread_.out_of_fold[self._judged_place_]
        scales = []
        predictions = []
        for items, back, diagonal in self._new_blocks(X, new.get("diag"), new.get("reverse")):
            block = self._compare(items, back, diagonal)
            of_block = self.stack_(block)[:, 0]
            scales.append(self.spread_(block, of_block))
            predictions.append(of_block)
        groups = out_of_fold.groups
        if groups is not None and len(np.unique(groups)) < len(groups):
            factors = conformal_quantile(ratios, coverage, groups)
        else:
            known = self.spread_.predictions[self._judged_place_]
            factors = local_quantiles(ratios, known, np.concatenate(predictions), coverage)
        return factors * np.concatenate(scales)

    def _decode(self, values: NDArray) -> NDArray:
        values = values * self.scale_ + self.mean_
        return values[:, 0] if self.out_of_fold_.target.ndim == 1 else values

    @blockwise
    def predict(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        """Predicted numbers.

        Parameters
        ----------
        X, diag, reverse : array-like
            New items, their own similarities and their other direction, as for `SimilarityClassifier.predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        return self._decode(self._predict(X, diag, reverse))
