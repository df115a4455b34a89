"""Choose the kernel and the parameters of a support vector machine on held-out rows.

Kernels are compared by ridge regression (one eigendecomposition serves all penalties), the parameters of the machine by
the machine itself. Penalties and C are relative to the variance of the items in feature space, and targets
have a standard deviation of one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.svm import SVC, SVR

from mercerless.core.folds import fold_numbers
from mercerless.core.svm import libsvm, without_offset
from mercerless.core.units import kernel_unit
from mercerless.core.validation import warn_if_useless, weights_or_ones

# The rows of a fold, ascending; folds may be of several draws.
Fold = slice | NDArray
# For every fold: the matrix of the other rows, that of the fold's rows with them, and the fold; losses of several draws
# are added.
HeldOut = Iterable[tuple[NDArray, NDArray, Fold]]

#: Length scales of Gaussians, relative to `core.units.length_scales`.
SCALES = (0.35, 0.7, 1.4, 2.8, 5.6)
#: The penalties that kernels are compared with.
RIDGES = np.logspace(-5, 1, 7)
#: Losses that differ less, relative to the least, are equal up to libsvm's tolerance; then the smaller C is chosen.
TIE = 1e-3
#: The parameters of machines to compare.
COSTS = np.logspace(-2, 3, 6).tolist()
TUBES = (0.05, 0.3)


def order_by_content(K: NDArray, *values: NDArray) -> NDArray:
    """An order of items that is the same however they, and their features, are arranged: by their mean similarity.

    Draws of folds and landmarks from items in this order give the same model. Values decide the order of equal items.
    """
    size = float(np.abs(K.diagonal()).mean()) or 1.0
    return np.lexsort([*values, np.round(K.mean(axis=1) / size, 9)])  # the last key counts first


def slices_of(fold_of: NDArray) -> list[slice]:
    """The folds of rows that are ordered by their folds."""
    edges = np.concatenate([[0], np.cumsum(np.bincount(fold_of))])
    return [slice(a, b) for a, b in pairwise(edges)]


def folds_of(
    K: NDArray, y: NDArray, classify: bool, n_folds: int, n_draws: int = 1
) -> list[NDArray]:
    """The rows of every fold of every draw; equal rows of K are held out together."""
    options: Any = {"classify": classify, "precomputed": True}
    draws = [fold_numbers(n_folds, K, y, random_state=draw, **options) for draw in range(n_draws)]
    return [np.flatnonzero(draw == fold) for draw in draws for fold in np.unique(draw)]


def held_out_blocks(K: NDArray, folds: Sequence[Fold]) -> Iterator[tuple[NDArray, NDArray, Fold]]:
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
        positive = np.maximum(s, 0.0)[:, None]
        for k, ridge in enumerate(RIDGES):
            predicted = features @ (projected / (positive + unit * ridge)) + mean
            losses[fold, k] += ((predicted - Y[fold]) ** 2).sum(axis=1)
    return losses[:, losses.sum(axis=0).argmin()]


def machine_losses(
    matrices: HeldOut,
    y: NDArray,
    make: Callable[..., SVC | SVR],
    settings: Sequence[dict[str, float]],
    weight: NDArray,
) -> NDArray:
    """Squared errors, or wrong labels, of every row for every setting of the machine, and last for a constant."""
    classify = make is SVC
    losses = np.zeros((len(y), len(settings) + 1))
    for K, K_new, fold in matrices:
        rest = np.delete(y, fold)
        weight_of_rest = np.delete(weight, fold)
        unit = kernel_unit(K, weight_of_rest)
        centered, offset = without_offset(K)
        guess: Any = np.bincount(rest).argmax() if classify else rest.mean()
        losses[fold, -1] += _losses(guess, y[fold], classify)
        for k, setting in enumerate(settings):
            predicted = guess
            if np.ptp(rest) > 0:
                machine = libsvm(make, centered, rest, weight_of_rest, unit, **setting)
                predicted = machine.predict(K_new - offset)
            losses[fold, k] += _losses(predicted, y[fold], classify)
    return losses


class MachineChoice(NamedTuple):
    """The kernel and the setting of the machine with the smallest losses on held-out rows."""

    kernel: int  # its number
    setting: dict[str, float]
    losses: list[float]  # mean losses of ridge regression with every kernel


def choose_machine(
    kernels: Sequence[Callable[[], HeldOut]],
    y: NDArray,
    settings: Sequence[dict[str, float]],
    make: Callable[..., SVC | SVR],
    learner: str,
    weight: NDArray | None = None,
    n_plain: int | None = None,
) -> MachineChoice:
    """Choose a kernel by ridge regression, then the machine's setting; warn if the learner is worse than a constant.

    The first `n_plain` kernels are preferred unless another one is better by a standard error.
    """
    classify = make is SVC
    weight = weights_or_ones(weight, len(y))
    Y = 1.0 * (y[:, None] == np.unique(y)) if classify else y[:, None]
    losses = np.zeros((1, len(y)))  # a single kernel is not compared
    if len(kernels) > 1:
        losses = np.array([weight * ridge_losses(each(), Y) for each in kernels])
    means = losses.mean(axis=1)
    best, plain = int(means.argmin()), int(means[:n_plain].argmin())
    gain = losses[plain] - losses[best]
    if gain.mean() <= gain.std() / np.sqrt(len(y)):
        best = plain
    of_settings = machine_losses(kernels[best](), y, make, settings, weight)
    totals = weight @ of_settings[:, :-1]
    k = int(np.argmax(totals <= (1.0 + TIE) * totals.min()))
    warn_if_useless(of_settings[:, k], of_settings[:, -1], learner, weight)
    return MachineChoice(best, settings[k], means.tolist())


def _losses(predicted: Any, y: NDArray, classify: bool) -> NDArray:
    return 1.0 * (predicted != y) if classify else (predicted - y) ** 2


def settings_of(classify: bool, C: Any = "auto", epsilon: Any = "auto") -> list[dict[str, float]]:
    """The settings to compare, with the values that are given: neither None nor "auto"."""
    costs = COSTS if C in (None, "auto") else [C]
    if classify:
        return [{"C": C} for C in costs]
    tubes = TUBES if epsilon in (None, "auto") else [epsilon]
    return [{"C": C, "epsilon": epsilon} for epsilon, C in product(tubes, costs)]
