"""Choose the kernel and the parameters of a support vector machine on held-out rows.

Kernels are compared by ridge regression, whose penalties share one eigendecomposition, and then the parameters of the
machine by the machine itself. Penalties and C are relative to the variance of the items in feature space, and targets
have a standard deviation of one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.svm import SVC, SVR

from mercerless.core.units import kernel_unit

# For every fold: the matrix of the other rows, that of the fold's rows with them, and the rows of the fold.
HeldOut = Iterable[tuple[NDArray, NDArray, slice]]

#: The penalties that kernels are compared with.
RIDGES = np.logspace(-5, 1, 7)
#: The parameters of machines to compare.
SETTINGS_OF_LABELS = tuple({"C": C} for C in np.logspace(-2, 3, 6).tolist())
SETTINGS_OF_NUMBERS = tuple(
    {"C": C, "epsilon": epsilon}
    for epsilon, C in product((0.05, 0.3), np.logspace(-2, 3, 6).tolist())
)


def slices_of(fold_of: NDArray) -> list[slice]:
    """The folds of rows that are ordered by their folds."""
    edges = np.concatenate([[0], np.cumsum(np.bincount(fold_of))])
    return [slice(a, b) for a, b in pairwise(edges)]


def held_out_blocks(K: NDArray, folds: Sequence[slice]) -> Iterator[tuple[NDArray, NDArray, slice]]:
    """The blocks of one matrix of all rows, for every fold."""
    for fold in folds:
        rest = np.delete(np.arange(len(K)), fold)
        yield K[np.ix_(rest, rest)], K[fold][:, rest], fold


def ridge_losses(matrices: HeldOut, Y: NDArray) -> NDArray:
    """Squared losses of every row, summed over the columns of Y, with the best penalty."""
    losses = np.zeros((len(Y), len(RIDGES)))
    for K, K_new, fold in matrices:
        rest = np.delete(Y, fold, axis=0)
        mean = rest.mean(axis=0)
        unit = kernel_unit(K)
        s, V = eigh(K, driver="evd", check_finite=False)
        projected = V.T @ (rest - mean)
        features = K_new @ V
        for k, ridge in enumerate(RIDGES):
            predicted = features @ (projected / (np.maximum(s, 0.0) + unit * ridge)[:, None]) + mean
            losses[fold, k] = ((predicted - Y[fold]) ** 2).sum(axis=1)
    return losses[:, losses.sum(axis=0).argmin()]


def machine_on(
    K: NDArray, y: NDArray, make: Callable[..., SVC | SVR], setting: dict[str, float]
) -> SVC | SVR:
    """The machine on a matrix, with C relative to its variance."""
    C = setting["C"] / kernel_unit(K)
    machine = make(kernel="precomputed", cache_size=500, **{**setting, "C": C})
    machine.random_state = 0  # libsvm takes a seed of the global generator otherwise
    return machine.fit(K, y)


def machine_losses(
    matrices: HeldOut,
    y: NDArray,
    make: Callable[..., SVC | SVR],
    settings: Sequence[dict[str, Any]],
) -> NDArray:
    """Squared errors, or wrong labels, of every row for every setting of the machine."""
    losses = np.zeros((len(y), len(settings)))
    for K, K_new, fold in matrices:
        rest = np.delete(y, fold)
        for k, setting in enumerate(settings):
            predicted: Any = rest[0]
            if np.any(rest != rest[0]):
                predicted = machine_on(K, rest, make, setting).predict(K_new)
            wrong = predicted != y[fold] if make is SVC else (predicted - y[fold]) ** 2
            losses[fold, k] = wrong
    return losses


def constant_losses(y: NDArray, folds: Sequence[slice], classify: bool) -> NDArray:
    """The losses of the most frequent label, or the mean, of the other rows."""
    losses = np.zeros(len(y))
    for fold in folds:
        rest = np.delete(y, fold)
        if classify:
            losses[fold] = y[fold] != np.bincount(rest).argmax()
        else:
            losses[fold] = (y[fold] - rest.mean()) ** 2
    return losses
