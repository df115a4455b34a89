"""How sure: sets and intervals of a stated coverage from out-of-fold predictions, whatever the distribution.

Every out-of-fold prediction says how wrong the model is on an item it has not seen. If new items come from where the
training items came from, their errors rank among these as any other: of n errors the ``ceil((n + 1) coverage)``-th
smallest is not exceeded with probability `coverage` at least.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class OutOfFold(NamedTuple):
    """Predictions for training items by models that have not seen them.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Which training items were predicted: all of positive weight, or those of a hold-out.
    prediction : ndarray of shape (m, n_classes), (m,) or (m, n_outputs)
        Probabilities of the classes, or numbers.
    target : ndarray of shape (m,) or (m, n_outputs)
        What was given: the number of the class in ``classes_``, or numbers.
    """

    rows: NDArray
    prediction: NDArray
    target: NDArray


def check_coverage(coverage: float) -> float:
    """A number strictly between 0 and 1."""
    try:
        value = float(coverage)
    except (TypeError, ValueError):
        value = np.nan
    if not 0.0 < value < 1.0:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, such as 0.9.")
    return value


def conformal_rank(n: int, coverage: float, what: str = "out-of-fold predictions") -> int:
    """The rank ``ceil((n + 1) coverage)`` among n errors; says how many are needed where there are fewer."""
    rank = int(np.ceil((n + 1) * coverage - 1e-9))
    if rank > n:
        need = int(np.ceil(coverage / (1.0 - coverage) - 1e-9))
        most = f"; ask for at most {np.floor(1000.0 * n / (n + 1)) / 1000.0:g}" if n else ""
        raise ValueError(
            f"coverage={coverage:g} needs at least {need} {what}, but there are {n}{most}."
        )
    return rank


def interval_radius(held: OutOfFold, coverage: float) -> NDArray:
    """The absolute error, per output, that a new item exceeds with probability ``1 - coverage`` at most."""
    errors = np.abs(held.prediction - held.target)
    return np.sort(errors, axis=0)[conformal_rank(len(errors), coverage) - 1]


def set_thresholds(
    held: OutOfFold, coverage: float, by_class: bool = False, names: NDArray | None = None
) -> NDArray:
    """The smallest probability, per class, with which a class enters a prediction set.

    One for all classes, or (`by_class`) one each from the items of that class, so that every class is covered as
    stated and not only the mean over classes. `names` are told where a class has too few items.
    """
    n_classes = held.prediction.shape[1]
    right = held.prediction[np.arange(len(held.target)), held.target]
    if not by_class:
        return np.full(n_classes, _threshold(right, coverage, "out-of-fold predictions"))
    names = np.arange(n_classes) if names is None else names
    of_classes = [right[held.target == label] for label in range(n_classes)]
    return np.array(
        [
            _threshold(values, coverage, f"items of class {name!s}")
            for values, name in zip(of_classes, names)
        ]
    )


def _threshold(right: NDArray, coverage: float, what: str) -> float:
    """The probability of the right class that a new item's falls short of with probability ``1 - coverage`` at most."""
    return float(np.sort(right)[len(right) - conformal_rank(len(right), coverage, what)])
