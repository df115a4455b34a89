"""Several similarities of the same items: a stack for each, one for their normalized sum, and weights over these."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercerless.core.averaging_old import Mixture, mix
from mercerless.core.estimator import is_precomputed
from mercerless.core.folds import OutOfFold, splits_of, warn_of_near_copies
from mercerless.core.reasons import Explained
from mercerless.core.validation import (
    align_matrix,
    check_random_state,
    check_real,
    leave_one_out_constant,
    warn_if_useless,
)
from mercerless.lowrank import Landmarks, as_landmarks
from mercerless.similarity.comparisons import among, check_positions, find_rows
from mercerless.similarity.data import SimilarityTask, Training, make_training
from mercerless.similarity.explaining import ExplainedStack, known_comparisons, rows_of_points
from mercerless.similarity.families import Comparisons, median_square
from mercerless.similarity.landmarks import LandmarkItems, LandmarkRows, RowReader
from mercerless.similarity.reasons import mixed_shares
from mercerless.similarity.stack import AllItems, Stack, fit_stack, without_blocks

SUM = "sum"


@dataclass(frozen=True, eq=False)
class SeveralComparisons:
    """Comparisons of the same items by every similarity, and by their sum."""

    blocks: dict[str, Comparisons]

    def __len__(self) -> int:
        return len(self.blocks[SUM])

    def take(self, rows: Any) -> "SeveralComparisons":
        """Comparisons of some rows."""
        return SeveralComparisons({name: block.take(rows) for name, block in self.blocks.items()})


@dataclass(frozen=True, eq=False)
class ExplainedSeveral:
    """The stacks of several similarities and of their sum, and the data that split their scores among items."""

    stacks: dict[str, ExplainedStack]
    mixture: Mixture

    @property
    def n_members(self) -> int:
        """Members of all stacks."""
        return sum(one.n_members for one in self.stacks.values())

    def shares(self, new: SeveralComparisons, classes: Any) -> Explained:
        """Contribution of every training item to the predictions of new rows, by similarity."""
        shares = {name: one.shares(new.blocks[name], classes) for name, one in self.stacks.items()}
        return mixed_shares(shares, self.mixture)


class Several(NamedTuple):
    """Fitted stacks of several similarities, with the methods of a `Stack`.

    Where a stack asks the model that it belongs to, this asks each of its own models.
    """

    models: dict[str, Any]  # an estimator of one similarity each
    units: dict[str, float]  # their median squared distances
    total: Stack  # on the sum
    mixture: Mixture

    def __call__(self, new: SeveralComparisons) -> NDArray:
        """Probabilities or standardized numbers of new items."""
        predictions = [stack(new.blocks[name]) for name, stack in self.stacks.items()]
        return self.mixture(np.stack(predictions))

    @property
    def stacks(self) -> dict[str, Stack]:
        """The stack of every similarity, and that of the sum."""
        return {name: model.stack_ for name, model in self.models.items()} | {SUM: self.total}

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of a model that describe the average."""
        return {
            "weights_": self.mixture.weights,
            "similarity_scores_": self.mixture.scores,
            "certificate_": self.mixture.residual,
            "similarities_": self.models,
        }

    @property
    def n_fenced(self) -> int:
        """Extreme targets that were cut for the sum."""
        return self.total.n_fenced

    def predict(self, model: Any, X: Any, diag: Any, reverse: Any) -> NDArray:
        """Probabilities or standardized numbers of new items."""
        return self(self.compare(model, X, diag, reverse))

    def compare(self, model: Any, X: Any, diag: Any, reverse: Any) -> SeveralComparisons:
        """Comparisons of new items by every similarity, all at once."""
        if reverse is not None:
            raise ValueError(
                "reverse is for one precomputed similarity with direction='mean' or 'both', not "
                "for several."
            )
        new = new_items_of(X, diag, self.models)
        blocks = {}
        for name, one in self.models.items():
            items, diagonal = new[name]
            blocks[name] = one.stack_.compare(one, items, diagonal, None)
        return SeveralComparisons(blocks | {SUM: self.summed(blocks)})

    def held_out(self, model: Any, diag: Any, reverse: Any) -> OutOfFold:
        """Out-of-fold predictions of the average."""
        return model.out_of_fold_

    def check_sparsify(self, model: Any) -> None:
        """Raise: the landmarks of several similarities are shared."""
        raise ValueError(
            "sparsify is for a model of one similarity that was fitted on all comparisons."
        )

    def rows_with_shares(self, model: Any) -> NDArray:
        """Training rows that have a share in predictions."""
        rows = [one.stack_.rows_with_shares(one) for one in self.models.values()]
        first = next(iter(self.models.values()))
        if first.landmarks_ is None:
            return rows[0]
        of_sum = rows_of_points(first, self.total)
        return np.unique(np.concatenate([*rows, of_sum]))

    def explained(self, model: Any, train: Any, items: NDArray) -> ExplainedSeveral:
        """The stacks with the data that split their scores among these items."""
        given = items_of(train, self.models)
        explained = {}
        for name, one in self.models.items():
            explained[name] = one.stack_.explained(one, given[name], items)
        first = next(iter(self.models.values()))
        of_sum: Any
        if first.landmarks_ is None:
            of_sum = self.summed({name: one.known for name, one in explained.items()})
        else:
            of_sum = known_comparisons(first, self.total, None, items)
        stacks = explained | {SUM: ExplainedStack(self.total, of_sum)}
        return ExplainedSeveral(stacks, self.mixture)

    def summed(self, blocks: dict[str, Comparisons]) -> Comparisons:
        """Comparisons by the sum of squared distances."""
        total = None
        for name, block in blocks.items():
            if block.row_diagonal is None:
                raise ValueError(
                    f"The new items' own similarities k(x, x) of similarity {name!r} are needed "
                    "and differ in the training items; pass them as diag, a dict or list as X."
                )
            squares = block.squares / self.units[name]
            if total is not None and total.shape != squares.shape:
                raise ValueError(
                    f"The similarities disagree in size: {name!r} has {len(squares)} new items, "
                    f"those before {len(total)}."
                )
            total = squares if total is None else total + squares
        assert total is not None
        return Comparisons.of_squares(total)


def named_kernels(kernel: Any, X: Any) -> dict[str, Any] | None:
    """Kernels by name if there are several; None for one. Matrices may be given as a list or dict X."""
    if isinstance(kernel, dict):
        kernels = {str(name): one for name, one in kernel.items()}
    elif isinstance(kernel, (list, tuple)):
        kernels = {str(i): one for i, one in enumerate(kernel)}
    elif is_precomputed(kernel) and isinstance(X, dict):
        kernels = {str(name): kernel for name in X}
    elif is_precomputed(kernel) and _are_matrices(X):
        kernels = {str(i): kernel for i in range(len(X))}
    else:
        return None
    if not kernels or SUM in kernels:
        raise ValueError(f"kernel must name at least one similarity, and none of them {SUM!r}.")
    return kernels


def _are_matrices(X: Any) -> bool:
    """Whether X is a list of matrices, and not a matrix."""
    return (
        isinstance(X, (list, tuple)) and len(X) > 0 and all(np.ndim(matrix) == 2 for matrix in X)
    ) or (isinstance(X, np.ndarray) and X.ndim == 3)


def items_of(X: Any, names: dict[str, Any]) -> dict[str, Any]:
    """The items of each similarity: its own entry of a dict, its own matrix of a list, or the same items for all."""
    kernels = list(names)
    if isinstance(X, dict):
        given = {str(name): items for name, items in X.items()}
        missing = [name for name in kernels if name not in given]
        if missing:
            known = ", ".join(map(repr, given)) or "nothing"
            raise ValueError(
                f"Similarity {missing[0]!r} is missing from X, which has {known}; give all that "
                "were fitted."
            )
        return {name: given[name] for name in kernels}
    one = next(iter(names.values()))
    if _are_matrices(X) and is_precomputed(getattr(one, "kernel", one)):
        if len(X) != len(kernels):
            raise ValueError(
                f"X has {len(X)} matrices but there are {len(kernels)} similarities; give one for "
                "each."
            )
        return dict(zip(kernels, X))
    if (
        X is not None
        and sum(is_precomputed(getattr(one, "kernel", one)) for one in names.values()) > 1
    ):
        raise ValueError(
            f"X is one matrix but there are {len(kernels)} similarities; give a list or dict of "
            "them."
        )
    return {name: X for name in kernels}


def new_items_of(X: Any, diag: Any, models: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """New items and their own similarities, by the name of the similarity."""
    given = items_of(X, models)
    diagonals = _diagonals_of(diag, models)
    _check_labels(given)
    return {name: (given[name], diagonals[name]) for name in models}


def _diagonals_of(diag: Any, names: Any) -> dict[str, Any]:
    """Own similarities by name."""
    is_one_number = not isinstance(diag, (dict, list, tuple)) and np.ndim(diag) == 0
    if is_one_number or isinstance(diag, dict):
        return _by_name(diag, names, "diag", None)
    if len(diag) != len(names):
        raise ValueError(
            f"diag has {len(diag)} entries but there are {len(names)} similarities; give a dict or "
            "None."
        )
    return dict(zip(names, diag))


class FittedSimilarity(NamedTuple):
    """One of several similarities, fitted."""

    model: Any
    stack: Stack  # that of the model, with its predictions by blocks
    comparisons: Comparisons  # of the training items
    rows: NDArray | None  # of the landmarks


FitOne = Callable[[dict[str, Any], Any, SimilarityTask], FittedSimilarity]


def fit_several(
    estimator: Any, kernels: dict[str, Any], X: Any, task: SimilarityTask, fit_one: FitOne
) -> tuple[Several, dict[str, Any]]:
    """Fit a stack for each similarity, one for their sum, and the weights over these, on the same folds.

    `fit_one` fits the model of one similarity from its parameters, items and task. Also returns attributes of the
    targets, and out-of-fold predictions.
    """
    given = items_of(X, kernels)
    for name, kernel in kernels.items():
        if is_precomputed(kernel):
            given[name] = align_matrix(given[name], may_cut=estimator.landmarks is None)
    _check_sizes(given, len(task.y))
    _check_direction(estimator, kernels)
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    training = _shared_training(estimator, kernels, given, task, seed)
    landmarks = _same_landmarks(estimator, kernels, given, training.used, seed)
    shared = {
        "cv": training.splits_of_all(len(task.y)),
        "random_state": seed,
        "landmarks": landmarks,
    }
    with_blocks = task._replace(block_of=training.block_of)
    kinds = _by_name(estimator.kind, kernels, "kind", "auto")
    fitted: dict[str, _SimilarityInUnits] = {}
    for name, kernel in kernels.items():
        options = shared | {"kernel": kernel, "kind": kinds[name]}
        fitted[name] = _fit_named(fit_one, name, options, given[name], with_blocks)

    squares = np.sum([one.squares for one in fitted.values()], axis=0)
    rows = next(iter(fitted.values())).rows
    if rows is None and task.groups is None:
        warn_of_near_copies(np.sqrt(squares), estimator.cv, training.n_classes)
    total = _fit_sum(squares, rows, training, is_classifier(estimator), seed)
    models = {name: one.model for name, one in fitted.items()}
    stacks = [*(one.stack for one in fitted.values()), total]
    mixture = _mix(stacks, [*models, SUM], training, estimator)
    units = {name: one.unit for name, one in fitted.items()}
    several = Several(models, units, without_blocks(total), mixture)
    basis_rows = training.used
    if rows is not None:
        basis_rows = among(training.used, rows)
    attributes = {
        "_basis_rows": basis_rows,
        "out_of_fold_": training.out_of_fold(total.judged, mixture.out_of_fold)[0],
    }
    return several, training.encoding | attributes


def _check_direction(estimator: Any, kernels: dict[str, Any]) -> None:
    if estimator.direction == "both":
        raise ValueError("direction='both' takes one similarity; fit one model for each.")
    if estimator.direction == "mean" and any(map(is_precomputed, kernels.values())):
        raise ValueError(
            "Average the matrices with mercerless.spectra.symmetrize first; several take no "
            "direction='mean'."
        )


def _mix(stacks: list[Any], names: list[str], training: Training, estimator: Any) -> Mixture:
    """The weights over the stacks, after a warning if their average is worse than a constant."""
    classify = is_classifier(estimator)
    judged = stacks[-1].judged
    Y = training.Y[judged]
    weight = training.weight[judged]
    blocks = splits_of(training.block_of[judged])
    by_block = None
    if len(blocks) > 1:
        by_block = np.stack([stack.average.by_block for stack in stacks])
    predictions = np.stack([stack.average.out_of_fold for stack in stacks])
    mixture = mix(predictions, Y, weight, names, classify, blocks, by_block)

    averaged = mixture.out_of_fold
    if classify:
        averaged = 2.0 * averaged - 1.0  # in the units of Y
    losses = ((averaged - Y) ** 2).sum(axis=1)
    warn_if_useless(losses, leave_one_out_constant(Y, weight), type(estimator).__name__, weight)
    return mixture


def _shared_training(
    estimator: Any, kernels: dict[str, Any], given: dict[str, Any], task: SimilarityTask, seed: int
) -> Training:
    """Targets, folds and blocks that all similarities share; copies are those of the first."""
    first = next(iter(kernels))
    is_matrix = is_precomputed(kernels[first])
    items = given[first]
    if is_matrix:
        items = np.asarray(items)
    return make_training(
        task,
        items,
        estimator.cv,
        classify=is_classifier(estimator),
        precomputed=is_matrix,
        random_state=seed,
    )


class _SimilarityInUnits(NamedTuple):
    """One of several similarities, fitted, and its distances relative to the usual one."""

    model: Any
    stack: Stack
    rows: NDArray | None
    unit: float  # its median squared distance
    squares: NDArray  # squared distances in that unit


def _fit_named(
    fit_one: FitOne, name: str, options: dict[str, Any], X: Any, task: SimilarityTask
) -> _SimilarityInUnits:
    """The model of one similarity, with its name in error messages."""
    try:
        fitted = fit_one(options, X, task)
    except (ValueError, TypeError) as error:
        raise type(error)(f"Similarity {name!r}: {error}") from error
    squares = fitted.comparisons.squares
    unit = median_square(squares, squares > 0.0)
    return _SimilarityInUnits(fitted.model, fitted.stack, fitted.rows, unit, squares / unit)


def _by_name(value: Any, names: Any, what: str, default: Any) -> dict[str, Any]:
    """The value for each similarity: its own of a dict, which may leave some out, or the same for all."""
    if not isinstance(value, dict):
        return dict.fromkeys(names, value)
    given = {str(name): one for name, one in value.items()}
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(map(repr, names))
        raise ValueError(f"{what} has {unknown[0]!r}, but the similarities are {known}.")
    return {name: given.get(name, default) for name in names}


def _check_sizes(given: dict[str, Any], n: int) -> None:
    for name, items in given.items():
        size = items.shape[0] if hasattr(items, "shape") else len(items)
        if size != n:
            raise ValueError(
                f"The similarities disagree in size: {name!r} has {size} items but y has {n} "
                "labels."
            )
    _check_labels(given)


def _check_labels(given: dict[str, Any]) -> None:
    """Raise if rows of tables have labels in another order: they are read by position."""
    known: tuple[str, NDArray] | None = None
    for name, items in given.items():
        # no labels, or none given
        if not hasattr(items, "iloc") or type(items.index).__name__ == "RangeIndex":
            continue
        labels = np.asarray(items.index)
        known = known or (name, labels)
        for i, (one, other) in enumerate(zip(known[1], labels)):
            if one != other:
                raise ValueError(
                    f"The similarities disagree in labels: row {i} is {one!r} in {known[0]!r} and "
                    f"{other!r} in {name!r}; bring their rows and columns into the same order."
                )


def _same_landmarks(
    estimator: Any, kernels: dict[str, Any], given: dict[str, Any], used: NDArray, seed: int
) -> NDArray | None:
    """Landmarks that all similarities share, as positions; inferred if only comparisons with landmarks are given."""
    requested = estimator.landmarks
    n = len(next(iter(given.values())))
    if requested is None or isinstance(requested, str):
        return None
    if isinstance(requested, (list, tuple, np.ndarray)):
        return check_positions(requested, n)
    landmarks: Landmarks = as_landmarks(requested, ("uniform",))
    for name, part in given.items():
        if is_precomputed(kernels[name]) and np.shape(part)[1] == landmarks.number < n:
            kind = _by_name(estimator.kind, kernels, "kind", "auto")[name]
            rows = find_rows(check_real(part), kind)[1]
            if rows.min() < 0:
                raise ValueError(
                    f"Similarity {name!r}: not all columns are found among the rows; name them in "
                    "landmarks."
                )
            return rows
    return np.sort(used[np.random.RandomState(seed).permutation(len(used))[: landmarks.number]])


def _fit_sum(
    squares: NDArray, rows: NDArray | None, training: Training, classify: bool, seed: int
) -> Stack:
    """The stack on the sum of squared distances, to all items or to landmarks at these rows."""
    comparisons = Comparisons.of_squares(squares)
    source: AllItems | LandmarkItems = AllItems(comparisons, training.fold_of)
    if rows is not None:
        read = RowReader("similarity", comparisons.column_diagonal, 0.0)
        compared = LandmarkRows(comparisons.similarities, None, read, rows)
        source = LandmarkItems(compared, training.fold_of, check_random_state(seed))
    return fit_stack(source, training.Y, training.weight, classify, training.block_of)
