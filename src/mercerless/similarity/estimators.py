"""Learners for any similarity or distance: the automatic stack, similarities as features, and a sparse machine."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from mercerless.asymmetric.selection import decay_of
from mercerless.core.blocks import is_dask, take_rows
from mercerless.core.estimator import (
    KernelPredictor,
    KernelTransformer,
    check_diagonal,
    class_scores,
    landmark_rows,
    matrix_name,
    recognized,
    same_value,
    used_items,
    used_rows,
)
from mercerless.core.folds import OutOfFold, warn_of_near_copies
from mercerless.core.memory import check_memory, format_bytes, memory_budget
from mercerless.core.optional import with_callbacks
from mercerless.core.threads import blas_threads
from mercerless.core.validation import (
    align_by_name,
    align_columns,
    check_labels,
    check_number,
    check_option,
    check_random_state,
    check_real,
    check_square,
    check_symmetric,
    check_weight,
    relative_asymmetry,
    warn,
)
from mercerless.kernels import Kernel, MatrixFunction, PairFunction, Precomputed
from mercerless.lowrank import Landmarks, as_landmarks
from mercerless.similarity.base import (
    KernelStack,
    RowProfiles,
    StackClassifier,
    StackRegressor,
    Task,
    Training,
    row_profiles,
)
from mercerless.similarity.comparisons import (
    METHODS,
    among,
    check_positions,
    compare_items,
    read_comparisons,
)
from mercerless.similarity.directions import DirectedRows, row_families, with_rows
from mercerless.similarity.explaining import StackReasonsMixin
from mercerless.similarity.families import Comparisons, StackFamily
from mercerless.similarity.landmarks import (
    LandmarkItems,
    LandmarkRows,
    as_new_similarities,
    landmark_need,
)
from mercerless.similarity.several import Several, fit_several, named_kernels, new_items_of
from mercerless.similarity.solver import SparseMachine, sparse_machine
from mercerless.similarity.sparse import refuse_hits
from mercerless.similarity.stack import AllItems, Stack, fit_stack, important_items, without_blocks
from mercerless.spectra import KINDS, as_similarities, check_kind, square_similarities, symmetrize

DIRECTIONS = ("symmetric", "mean", "both")
_AUTO_LANDMARKS = 400
_ALL_ITEMS = 5000  # above, "auto" compares with landmarks only
# that all calls of a function may take, else "auto" compares with landmarks only
_ALL_SECONDS = 600.0


def _fit_quietly(training: Training, classify: bool, source: AllItems) -> Stack:
    """A stack for the same targets and folds, without progress or warnings."""
    stack = fit_stack(source, training.Y, training.weight, classify, training.block_of)
    return without_blocks(stack)


class OneWay(NamedTuple):
    """A stack for rows of one direction, on their distances to the training rows if there are profiles of these."""

    stack: Stack
    kind: str
    constant: float | None  # the rows' own similarity
    profiles: RowProfiles | None
    rows: DirectedRows | None  # empty, with the decay, if the stack has families on rows

    def __call__(self, rows: NDArray) -> NDArray:
        """Predictions for new rows."""
        if self.rows is not None:
            rows = rows.astype(np.float64)
        if self.profiles is None:
            K = as_new_similarities(rows, self.kind)
        else:
            K = self.profiles.similarities(rows)
        diagonal = None
        if self.constant is not None:
            diagonal = np.full(len(K), self.constant)
        new = Comparisons(K, diagonal, self.stack.members.diagonal)
        if self.rows is not None:
            new = with_rows(new, self.rows._replace(out=rows))
        return self.stack(new)


@dataclass(frozen=True, eq=False)
class OneDirection:
    """A directed training matrix, for new items whose other direction is not given."""

    matrix: NDArray
    mean: Comparisons  # of both directions
    kind: str
    constant: float | None  # the items' own similarity if it is the same for all
    rows: DirectedRows | None  # both directions, if there are families on rows

    def fit(self, fit: Callable[[AllItems], Stack], fold_of: NDArray) -> OneWay:
        """The stack for rows of one direction.

        It learns from the distances between standardized rows, with families on rows of one direction if there are
        families on rows. Otherwise a stack that learns from the mean of both directions competes, and the better one
        on held-out rows of one direction is used.
        """
        profiles = row_profiles(self.matrix)
        profiled = Comparisons.of(profiles.similarities())
        if self.rows is not None:
            one_way = self.rows._replace(back=None)
            comparisons = with_rows(profiled, one_way)
            source = AllItems(comparisons, fold_of, row_families=row_families(both_ways=False))
            return OneWay(fit(source), self.kind, 0.0, profiles, one_way._replace(out=np.empty(0)))
        held_out = replace(self.mean, similarities=as_similarities(self.matrix, self.kind))
        on_mean = fit(AllItems(self.mean, fold_of, held_out))
        on_profiles = fit(AllItems(profiled, fold_of))
        figures = [stack.average.family_scores["stack"] for stack in (on_mean, on_profiles)]
        loss = "log_loss" if "log_loss" in figures[0] else "mse"
        first, second = (figure[loss] for figure in figures)
        if first <= second:
            return OneWay(on_mean, self.kind, self.constant, None, None)
        return OneWay(on_profiles, self.kind, 0.0, profiles, None)


@dataclass(frozen=True, eq=False)
class PreparedStack:
    """What a stack is fitted from, and the attributes that describe it."""

    source: AllItems | LandmarkItems
    training: Training
    attributes: dict[str, Any]
    landmarks: NDArray | None  # positions of the landmarks; None if all items are compared
    one_way: (
        OneDirection | None
    )  # if the matrix is directed and new rows may have one direction only

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


class _SimilarityStack(StackReasonsMixin, KernelStack):
    """What the classifier and the regressor share: similarities in, a stack, new rows."""

    one_way_: OneWay | None
    decay_: tuple[float, float] | None

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        kind: str = "auto",
        landmarks: int | str | Landmarks | ArrayLike | None = "auto",
        direction: str = "symmetric",
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(kernel, kind=kind, cv=cv, n_jobs=n_jobs, random_state=random_state)
        self.landmarks = landmarks
        self.direction = direction

    @property
    def _directed(self) -> bool:  # type: ignore[override]
        return self.direction != "symmetric"

    @property
    def _remedy(self) -> str:  # type: ignore[override]
        if self.direction == "both":
            return "use fewer rows or AsymmetricRidge"
        return "set landmarks or use fewer rows"

    @property
    def _matrices(self) -> tuple[int, int]:  # type: ignore[override]
        return (3, 16) if self.direction == "both" else (1, 7)

    @property
    def _row_bytes(self) -> float:  # type: ignore[override]
        # a matrix for every view of the similarities, and their sorted copies for neighbors
        return 160.0 if self.direction == "both" else 80.0

    def _check_parameters(self) -> None:
        check_option("direction", self.direction, DIRECTIONS)
        if self.direction == "both" and self._has_landmarks:
            raise ValueError(
                "direction='both' compares all items; set landmarks=None, or direction='mean'."
            )
        for kind in self.kind.values() if isinstance(self.kind, dict) else [self.kind]:
            check_option("kind", kind, ("auto", *KINDS))
        super()._check_parameters()

    def _train_matrix(
        self, kernel: Kernel, items: Any, used: NDArray
    ) -> tuple[NDArray, dict[str, Any]]:
        if isinstance(kernel, Precomputed) and items.shape[0] != items.shape[1]:
            raise ValueError(
                "X must be square (one row and one column per training item), not of shape "
                f"{items.shape}; set "
                "landmarks if its columns are comparisons with landmarks only."
            )
        if isinstance(kernel, (PairFunction, MatrixFunction)):
            kernel = kernel.checked(items[used])
        return super()._train_matrix(kernel, items, used)

    def _fit(self, X: Any, task: Task) -> dict[str, Any]:
        self._check_parameters()
        refuse_hits(X, type(self).__name__)
        kernels = named_kernels(self.kernel, X)
        if kernels is None:
            return self._fit_prepared(self._prepare(X, task))
        self._forget_columns()
        with self._progress() as progress:
            fit_one = partial(self._fit_similarity, task=task)
            several, attributes, judged = fit_several(self, kernels, X, task, fit_one)
            progress.step({"stage": "weights"})
        attributes["out_of_fold_"] = OutOfFold(
            judged, several.mixture.out_of_fold, task.y[judged], task.groups_of(judged)
        )
        mixture = several.mixture
        return attributes | {
            "weights_": mixture.weights,
            "similarity_scores_": mixture.scores,
            "certificate_": mixture.residual,
            "similarities_": several.models,
            "stack_": several,
        }

    def _fit_similarity(
        self, options: dict[str, Any], X: Any, block_of: NDArray, task: Task
    ) -> tuple[Self, Comparisons, NDArray | None]:
        """A model of one of several similarities, its comparisons, and the landmarks' rows."""
        # parameters as they are: a clone would copy matrices and functions
        model = type(self)(**self.get_params(deep=False) | options)
        model._is_one_of_several = True
        model._block_of = block_of
        prepared = model._fit_alone(X, task)
        model._block_of = None
        return model, prepared.comparisons(), prepared.landmarks

    @with_callbacks  # closes the progress report, which no file can hold
    def _fit_alone(self, X: Any, task: Task, candidates: NDArray | None = None) -> PreparedStack:
        """Fit this model for one similarity, and return what it was fitted on."""
        prepared = self._prepare(X, task, candidates)
        self._finish(self._fit_prepared(prepared))
        return prepared

    def _prepare(self, X: Any, task: Task, candidates: NDArray | None = None) -> PreparedStack:
        """From a basis of training items to their comparisons, targets and folds."""
        kernel, items = self._train_items(X, task.weight, try_pairs=False)
        check_consistent_length(items, task.y)
        if not self._has_landmarks:
            kernel = recognized(kernel, self.kernel, items)
        landmarks = None
        if self.direction != "both":
            landmarks = self._wanted_landmarks(kernel, items, len(task.used))
        if landmarks is not None:
            return self._with_landmarks(kernel, items, task, landmarks, candidates)
        return self._with_all_items(kernel, items, task)

    def _fit_prepared(self, prepared: PreparedStack) -> dict[str, Any]:
        """From comparisons to out-of-fold scores, their average, members on all items, and all attributes."""
        with prepared.limited_threads():
            attributes = prepared.attributes | self._fit_stack(prepared.source, prepared.training)
        if prepared.landmarks is not None:
            attributes["landmark_curve_"] = attributes["stack_"].curve
        attributes["one_way_"] = None
        if prepared.one_way is not None:
            fit = partial(_fit_quietly, prepared.training, is_classifier(self))
            attributes["one_way_"] = prepared.one_way.fit(fit, prepared.training.fold_of)
        return attributes

    def _with_all_items(self, kernel: Kernel, items: Any, task: Task) -> PreparedStack:
        """Comparisons of all items with each other."""
        name = matrix_name(kernel)
        matrix, attributes = self._train_matrix(kernel, items, task.used)
        is_both = self.direction == "both"
        asymmetry = 0.0
        if self._directed:
            asymmetry = relative_asymmetry(matrix)
        is_directed = asymmetry > (1e-5 if matrix.dtype == np.float32 and not is_both else 1e-8)
        if is_both:
            matrix = matrix.astype(np.float64)
            mean = symmetrize(matrix)
            kind = check_kind(matrix, self.kind, name)
        else:
            mean = symmetrize(matrix) if is_directed else check_symmetric(matrix, name)
            kind = check_kind(mean, self.kind, name)
        comparisons = Comparisons.of(square_similarities(mean, kind))
        training = self._training(comparisons.similarities, task, precomputed=True)
        if task.groups is None and not self._is_one_of_several:
            n_classes = len(training.encoding.get("classes_", [0]))
            warn_of_near_copies(comparisons.distances, self.cv, n_classes)
        attributes |= {
            "kind_": kind,
            "diagonal_": same_value(comparisons.column_diagonal),
            "landmarks_": None,
            "_basis_rows": training.used,
        }
        families: tuple[StackFamily, ...] = ()
        rows = None
        if is_both:
            rows = DirectedRows(matrix, matrix.T, decay_of(matrix, kind))
            families = row_families(both_ways=True)
            comparisons = with_rows(comparisons, rows)
            attributes |= {"decay_": rows.decay, "asymmetry_": asymmetry}
        one_way = None
        if is_directed and isinstance(kernel, Precomputed):
            one_way = OneDirection(matrix, comparisons, kind, attributes["diagonal_"], rows)
        source = AllItems(comparisons, training.fold_of, row_families=families)
        return PreparedStack(source, training, attributes, None, one_way)

    @property
    def _has_landmarks(self) -> bool:
        """Whether landmarks are requested by number or name."""
        return self.landmarks is not None and not isinstance(self.landmarks, str)

    @property
    def _streams(self) -> bool:  # type: ignore[override]
        return self.landmarks is not None and self.direction != "both"

    def _wanted_landmarks(self, kernel: Kernel, items: Any, n: int) -> Landmarks | NDArray | None:
        """How many landmarks and how chosen, their positions, or None for all items; "auto" says when it uses them."""
        if self.landmarks is None:
            return None
        if not isinstance(self.landmarks, str):
            if isinstance(self.landmarks, (list, tuple, np.ndarray)):
                return check_positions(self.landmarks, len(items))
            return as_landmarks(self.landmarks, METHODS)
        if self.landmarks != "auto":
            raise ValueError(
                f"landmarks must be a number, Landmarks, 'auto' or None, got {self.landmarks!r}."
            )
        reason = self._too_much(kernel, items, n)
        if reason is None:
            return None
        number = _auto_landmarks(n)
        warn(
            f"{type(self).__name__} compares the {n} items with {number} landmarks only: {reason}. "
            "Set landmarks to "
            "a number to choose it yourself, or to None for all comparisons.",
            UserWarning,
        )
        return Landmarks(number)

    def _too_much(self, kernel: Kernel, items: Any, n: int) -> str | None:
        """Why comparing all items with each other is too much, in words; None where it is not."""
        directed = isinstance(kernel, Precomputed) and (
            self.direction == "mean" or items.shape[0] != items.shape[1]
        )
        if directed:
            return None
        if is_dask(items):
            return "they are not in memory"
        if n > _ALL_ITEMS:
            return f"the stack on all comparisons is for up to {_ALL_ITEMS} items"
        need = self._full_need(n)
        budget = memory_budget()
        if need > budget >= landmark_need(n, _auto_landmarks(n)):
            return f"all comparisons would need {format_bytes(need)} of memory and the budget is {format_bytes(budget)}"
        if isinstance(kernel, (PairFunction, MatrixFunction)) and n > 2 * _AUTO_LANDMARKS:
            start = time.perf_counter()
            kernel(items[:3], items[-3:])
            seconds = (time.perf_counter() - start) / 9 * n**2 / 2
            if seconds > _ALL_SECONDS:
                return f"all comparisons would take about {seconds / 60:.0f} minutes"
        return None

    def _with_landmarks(
        self, kernel: Kernel, items: Any, task: Task, wanted: Any, candidates: NDArray | None
    ) -> PreparedStack:
        """Comparisons of all items with landmarks."""
        random = check_random_state(self.random_state)
        training = self._training(items, task, precomputed=False)
        used = training.used
        items = items if len(used) == len(items) else items[used]
        if isinstance(wanted, np.ndarray):
            wanted = _used_positions(wanted, used)
        if isinstance(kernel, Precomputed):
            rows = self._given_comparisons(items, wanted, training.Y, training.weight, random)
        else:
            kernel, rows = self._compared(
                kernel, items, wanted, training.Y, training.weight, random, candidates
            )
        n_folds = int(training.fold_of.max()) + 1
        check_memory(
            landmark_need(len(used), len(rows.landmarks), n_folds),
            f"The sums of {n_folds} folds",
            remedy="use fewer folds (cv) or fewer landmarks",
        )
        attributes = _compared_with(rows, kernel, items, used)
        source = LandmarkItems(rows, training.fold_of, random)
        return PreparedStack(source, training, attributes, rows.landmarks, None)

    def _compared(
        self,
        kernel: Kernel,
        items: Any,
        wanted: Any,
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
                kernel, compare, items, wanted, self.kind, Y, weight, random, candidates
            )
        except ValueError:
            candidate = recognized(kernel, self.kernel, items)
            if type(candidate) is type(kernel):
                raise
        random.set_state(state)
        return self._compared(candidate, items, wanted, Y, weight, random, candidates)

    def _given_comparisons(
        self, C: Any, wanted: Any, Y: NDArray, weight: NDArray, random: np.random.RandomState
    ) -> LandmarkRows:
        """Precomputed comparisons with landmarks, the columns."""
        if self.direction == "mean":
            raise ValueError(
                "direction='mean' with landmarks is for kernels and functions, which can be asked "
                "for both "
                "directions; average X with mercerless.spectra.symmetrize first."
            )
        return read_comparisons(C, wanted, self.kind, Y, weight, random)

    def _check_reverse(self, reverse: ArrayLike | None, shape: tuple[int, ...]) -> NDArray | None:
        if self.direction == "symmetric" or not isinstance(self.kernel_, Precomputed):
            if reverse is not None:
                raise ValueError(
                    "reverse is for kernel='precomputed' with direction='mean' or 'both'; "
                    "otherwise it is not needed."
                )
        return super()._check_reverse(reverse, shape)

    def _predict(
        self, X: Any, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> NDArray:
        check_is_fitted(self)
        if not isinstance(self.stack_, Several):
            return super()._predict(X, diag, reverse)
        if reverse is not None:
            raise ValueError("reverse is for one precomputed similarity with direction='mean'.")
        return self.stack_(self._named_blocks(X, diag))

    def _compare(self, items: Any, back: NDArray | None, diagonal: NDArray | None) -> Comparisons:
        columns = self.stack_.members.diagonal
        if self.direction != "both":
            return Comparisons(self._new_similarities(items, back), diagonal, columns)
        rows = self._new_rows(items, back)
        assert rows.back is not None
        means = as_similarities((rows.out + rows.back) / 2.0, self.kind_)
        return with_rows(Comparisons(means, diagonal, columns), rows)

    def _new_rows(self, items: Any, back: NDArray | None) -> DirectedRows:
        """Both directions of new items; one that is not known is taken for both."""
        if isinstance(self.kernel_, Precomputed):
            out = items[:, self.used_].astype(np.float64)
            back = out if back is None else back[:, self.used_].astype(np.float64)
        else:
            out = self.kernel_(items, self.X_fit_).astype(np.float64)
            back = self.kernel_(self.X_fit_, items).T.astype(np.float64)
        return DirectedRows(out, back, self.decay_)

    def _new_block(
        self, X: Any, diag: ArrayLike | None, reverse: ArrayLike | None = None
    ) -> Comparisons:
        """Comparisons of new items, all at once."""
        items = self._test_rows(X)
        size = len(self.stack_.members.diagonal)
        back = self._check_reverse(reverse, np.shape(items))
        diagonal = None if diag is None else check_diagonal(diag, len(items))
        check_memory(
            16.0 * len(items) * size,
            f"{len(items)} items compared with {size}",
            remedy="give fewer at once",
        )
        return self._compare(items, back, self._diagonal(items, diagonal))

    def _named_blocks(self, X: Any, diag: Any) -> dict[str, Comparisons]:
        """Comparisons of new items by every one of several similarities, whose models are of this class."""
        new = new_items_of(X, diag, self.similarities_)
        return {
            name: type(self)._new_block(model, *new[name])
            for name, model in self.similarities_.items()
        }

    def _test_rows(self, X: Any) -> Any:
        """New items; of comparisons with all columns of the training rows those with landmarks."""
        if self.landmarks_ is None or not isinstance(self.kernel_, Precomputed):
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
            "column for each of "
            f"them, in the order of landmarks_{every}."
        )

    def _new_similarities(self, items: Any, reverse: NDArray | None) -> NDArray:
        """Similarities of new items to the training items."""
        if isinstance(self.kernel_, Precomputed):
            matrix = (
                self.kernel_(items) if reverse is None else (self.kernel_(items) + reverse) / 2.0
            )
        else:
            both = self.direction == "mean" and (
                self.landmarks_ is not None or not self.kernel_.symmetric
            )
            compare = partial(_averaged, self.kernel_) if both else self.kernel_
            matrix = compare(items, self.X_fit_)
        return as_new_similarities(matrix[:, self.used_], self.kind_)

    def _held_out(  # type: ignore[override]
        self, diag: ArrayLike | None = None, reverse: ArrayLike | None = None
    ) -> OutOfFold:
        check_is_fitted(self)
        return (
            self.out_of_fold_
            if isinstance(self.stack_, Several)
            else super()._held_out(diag, reverse)
        )

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
        if isinstance(self.stack_, Several) or self.landmarks_ is not None:
            raise ValueError(
                "sparsify is for a model of one similarity that was fitted on all comparisons."
            )
        if self.direction == "both":
            raise ValueError("sparsify is for direction='symmetric' or 'mean', not 'both'.")
        y = align_by_name(X, y)
        sample_weight = align_by_name(X, sample_weight)
        task = self._task(y, sample_weight, align_by_name(X, groups))
        model = clone(self).set_params(
            landmarks=as_landmarks(Landmarks(landmarks, "pursuit"), METHODS)
        )
        candidates = None
        if not isinstance(self.kernel_, Precomputed):
            candidates = important_items(
                self.stack_, min(4 * landmarks, len(self.stack_.members.diagonal))
            )
        model._fit_alone(X, task, candidates)
        return model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # columns of comparisons with landmarks are not the rows' items: cross-validation splits rows only
        tags.input_tags.pairwise = tags.input_tags.pairwise and not self._has_landmarks
        return tags


def _auto_landmarks(n: int) -> int:
    return min(_AUTO_LANDMARKS, max(1, n // 3))


def _averaged(kernel: Kernel, X: Any, Y: Any) -> NDArray:
    """The mean of both directions."""
    return (kernel(X, Y) + kernel(Y, X).T) / 2.0


def _used_positions(positions: NDArray, used: NDArray) -> NDArray:
    """Positions among the items that carry weight."""
    if not np.all(np.isin(positions, used)):
        row = positions[~np.isin(positions, used)][0]
        raise ValueError(
            f"landmarks names row {row}, which has the weight 0; landmarks must carry weight."
        )
    return np.searchsorted(used, positions)


def _compared_with(rows: LandmarkRows, kernel: Kernel, items: Any, used: NDArray) -> dict[str, Any]:
    """The attributes that describe the landmarks that items are compared with."""
    attributes: dict[str, Any] = {
        "kernel_": kernel,
        "_basis_rows": among(used, rows.landmarks),
        "used_": slice(None),
        "kind_": rows.read.kind,
        "diagonal_": rows.read.constant,
    }
    if not isinstance(kernel, Precomputed):
        attributes["X_fit_"] = take_rows(items, rows.landmarks)
        attributes["landmarks_"] = used[rows.landmarks]
        return attributes
    columns = rows.read.columns
    if columns is None:
        columns = np.arange(len(rows.landmarks))
    return attributes | {"X_fit_": None, "landmarks_": columns}


class SimilarityClassifier(StackClassifier, _SimilarityStack):
    """The automatic classifier for any similarity or distance: a stack of calibrated learners.

    No single remedy for an indefinite matrix wins everywhere, and picking one by cross-validation often picks
    wrongly. This estimator fits eight families, calibrates each out of fold, and predicts the average ::

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
        differ from 0 on the diagonal) ``-d``. ``"auto"`` asks `mercerless.spectra.matrix_kind`. A dict is for several
        similarities that have names.
    landmarks : int, Landmarks, array-like of int, None or "auto", default="auto"
        Compare every item with this many landmarks only, in training and prediction. A number draws them at random;
        ``Landmarks(number, "pursuit")`` compares with twice as many and keeps those that say most about the targets;
        an array holds their row numbers. None compares all items. ``"auto"`` does so up to 5000 items, if memory and
        (for a function of two items) ten minutes suffice, and else takes 400 landmarks and says so.

        Precomputed X then has one column per landmark, for new items too. The landmarks need not be training items: the
        rows of those that are, which more families can use, are found by themselves where a landmark is the nearest
        to itself, or told by an array. A number below that of the columns keeps some of these.
    direction : {"symmetric", "mean", "both"}, default="symmetric"
        What to do with a matrix that differs from its transpose: ``"symmetric"`` raises, ``"mean"`` averages the two
        directions, ``"both"`` also learns from each of them (see Notes), from all items of one similarity. For
        precomputed rows of new items pass the other direction as ``reverse`` to `predict`; without it they are judged,
        with a warning, by a second stack that knows one direction only.
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
        The class labels.
    members_ : tuple of Setting
        The learners with a weight above 0: family, parameter (penalty or number of neighbors) and width.
    weights_ : ndarray of shape (n_members,)
        Their weights, of sum 1.
    weights_without_diag_ : ndarray of shape (n_members,)
        The weights when a new item's own similarity is not known: 0 for all but the first four families.
    family_scores_ : dict of str to dict
        For every family the out-of-fold ``"accuracy"`` and ``"log_loss"`` of its setting of least log-loss, and the
        sum of its ``"weight"``. The key ``"stack"`` holds the average itself. All are cross-fitted, see `out_of_fold_`.
    negative_spectrum_ : NegativeSpectrum
        Whether the negative eigenvalues help: ``z``, ``verdict`` and ``sentence``.
    out_of_fold_ : OutOfFold
        The average's probabilities for the training items of positive weight (with landmarks for some of many);
        `rows`, `prediction` and `target` (the number of the class). No item was used for its own learners, and
        settings, calibration, weights and temperature were chosen again on other items, in five parts (or `cv`) that
        are dealt without a look at the classes. If `cv` is a splitter or an iterable, its folds are these parts.
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
    kernel_ : Kernel
        The resolved kernel.
    X_fit_ : array-like or None
        The training items, or those that are landmarks; None for precomputed input.
    stack_ : Stack
        The fitted learners.
    landmarks_ : ndarray of shape (n_landmarks,) or None
        Positions of the landmarks among the training items, or among the columns of precomputed X; None where all
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
        Only for ``direction="both"``: the largest difference between the two directions, relative to the largest entry.
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
    One eigendecomposition, three products of matrices and 16 Cholesky factorizations per fold. With m landmarks one
    pass over the rows, ``O(n m^2)``, memory that does not grow with n but for X, and three further families:
    ``"similarity_profiles"`` (profiles of similarities), ``"profile_neighbors"`` (neighbors by profiles) and
    ``"embedding"`` (Gaussians in the positive axes of the landmarks' spectrum); X may be a memory map or a Dask array.
    Distances come from
    similarities as ``k(x, x) + k(z, z) - 2 k(x, z)``, cut at 0. A new item's ``k(x, x)`` comes from the kernel; for
    precomputed rows it is taken from the training diagonal if that is constant, else it must be passed as ``diag`` to
    `predict`, or the four families that need it are left out, with weights chosen for that case.

    ``direction="both"`` is for citations, attention, divergences, distances of one shape to another: averaging loses
    what the direction says. All families work on the mean of both directions, and these on an item's row, its
    similarities out to all training items and back from them: ``"row_features"`` (ridge regression on the standardized
    row), ``"row_profiles"`` (a Gaussian of standardized rows), ``"row_cosines"`` and ``"row_neighbors"`` (ridge
    regression and votes by the cosine of rows), ``"left"`` and ``"right"`` (the two regressors of `AsymmetricRidge`).
    They take part only if the average with them is better out of fold by a standard error than the average without.
    scikit-learn's cross-validation hands over one direction of a precomputed matrix only, and so scores the second
    stack; split with ``K[test][:, train]`` and ``reverse=K[train][:, test].T`` yourself, or pass a function.

    ``sample_weight`` enters every ridge regression and the calibration as repetition of items would; neighbors' votes
    are weighted. Items of weight 0 are left out. Cross-validation splits items, not repetitions.

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

    def _finish(self, attributes: dict[str, Any]) -> Self:
        if not isinstance(attributes["stack_"], Several):
            average = attributes["stack_"].average
            attributes |= {
                "calibration_": average.calibration,
                "temperatures_": average.temperatures,
            }
        return super()._finish(attributes)


class SimilarityRegressor(StackRegressor, _SimilarityStack):
    """The automatic regressor for any similarity or distance: a stack of learners.

    The same families as `SimilarityClassifier` but ``"class_distances"`` and the logistic ones, without calibration
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
    kernel_, X_fit_, kind_, diagonal_, used_, landmarks_, n_features_in_
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


class SimilarityFeatures(KernelTransformer):
    """Similarities to the training items, or to some of them, as features for any model.

    Item x becomes the vector of ``k(x, z)`` over the landmarks z. Nothing is asked of the similarity: it may be
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
        kernel, items = self._train_items(X)
        precomputed = isinstance(kernel, Precomputed)
        items = check_square(items, "X") if precomputed else items
        landmarks = landmark_rows(
            kernel, items, _some_landmarks(self.landmarks, len(items)), self.random_state
        )
        self._set_fitted(
            X_fit_=None if precomputed else items[landmarks], kernel_=kernel, landmarks_=landmarks
        )

    def _transform(self, items: Any) -> NDArray:
        check_memory(16.0 * len(items) * len(self.landmarks_), "Similarities as features")
        return self._compare_with(items, self.landmarks_)

    @property
    def _n_features_out(self) -> int:
        return len(self.landmarks_)


def _some_landmarks(wanted: Any, n: int) -> Landmarks | None:
    """How many of n items and how to choose them: None means all, a fraction below 1 that part."""
    if isinstance(wanted, float | np.floating) and 0.0 < wanted < 1.0:
        return Landmarks(max(1, round(wanted * n)))
    return None if wanted is None else as_landmarks(wanted)


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
        Positions of the training items with a coefficient that is not 0, for any class.
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
    >>> model = SimilaritySVC(kernel="sigmoid").fit(X[::2], y[::2])
    >>> len(model.support_) < 75
    True
    """

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
        y = check_labels(y, type(self).__name__)
        weight = check_weight(sample_weight, len(y))
        kernel, items = self._train_items(X, weight)
        check_consistent_length(items, y)
        used = used_rows(weight, len(y))
        precomputed = isinstance(kernel, Precomputed)
        items = used_items(kernel, items, used)
        labels = y[used]
        weight = np.ones(len(used)) if weight is None else weight[used]
        K = self._matrix(kernel, items, len(np.unique(labels)))
        unit = np.abs(np.diagonal(K)).mean() or np.abs(K).mean() or 1.0
        price = self.C / unit * weight * compute_sample_weight(self.class_weight, labels)
        with self._progress(0):
            machines = _one_against_rest(K, labels, price, self.n_jobs)
        coef = np.array([machine.coef for machine in machines])
        kept = np.flatnonzero(np.any(coef != 0.0, axis=0))
        gap = max(machine.gap for machine in machines)
        if not gap <= 1e-5:
            message = (
                f"The linear program stopped at a relative duality gap of {gap:.1e}; rescale C."
            )
            warn(message, ConvergenceWarning)
        intercept = np.array([machine.intercept for machine in machines])
        attributes = {
            "kernel_": kernel,
            "X_fit_": None if precomputed else items[kept],
            "classes_": np.unique(labels),
        }
        self._set_fitted(
            **attributes,
            support_=used[kept],
            dual_coef_=coef[:, kept],
            intercept_=intercept,
            certificate_=gap,
        )

    def _matrix(self, kernel: Kernel, items: Any, n_classes: int) -> NDArray:
        """The matrix of the training items, where it fits."""
        need = 150.0 * min(effective_n_jobs(self.n_jobs), n_classes) * len(items) ** 2
        remedy = "use fewer rows, or SimilarityFeatures with a linear machine"
        check_memory(need, f"The linear program of {len(items)} items", remedy=remedy)
        return check_square(kernel(items), matrix_name(kernel)).astype(np.float64)

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
        if len(self.support_) == 0:
            values = np.tile(self.intercept_, (len(items), 1))
        else:
            values = self._compare_with(items, self.support_) @ self.dual_coef_.T + self.intercept_
        return values if len(self.classes_) > 2 else values[:, 0]

    def _predict(self, X: Any) -> NDArray:
        values = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(values))
        return self.classes_[class_scores(values).argmax(axis=1)]


def _one_against_rest(
    K: NDArray, y: NDArray, price: NDArray, n_jobs: int | None
) -> list[SparseMachine]:
    """One machine for at most two classes, else one per class."""
    classes = np.unique(y)
    positive = classes[-1:] if len(classes) <= 2 else classes
    return Parallel(n_jobs=n_jobs)(
        delayed(sparse_machine)(K, np.where(y == label, 1.0, -1.0), price) for label in positive
    )
