"""Support vector machines in a Krein space: a positive kernel for training, the original one for prediction.

Stabilization (Loosli, Canu and Ong, 2016) minimizes over f+ and maximizes over f-; its dual is that of an
ordinary machine with the kernel matrix ``|K| = V |s| V'``. With a factor c for the penalty of f-,
||f+||^2 + c ||f-||^2, the matrix is ``V diag(s+ + |s-| / c) V'``. Both are ``K @ projector``, so coefficients of the
machine times the projector are coefficients for the original kernel, and new items need nothing but ``k(x, x_i)``.
"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.svm import SVC, SVR

from mercerless.core.validation import largest_entry, weights_or_ones


class Stabilized(NamedTuple):
    """A positive semi-definite matrix ``kernel = K @ projector`` and the way back."""

    kernel: NDArray
    projector: NDArray  # from its coefficients to those for the rows of the original kernel
    n_negative: int
    mean: NDArray  # of the columns of K if it was centered, else zero


def stabilize(
    K: NDArray,
    negative_penalty: float = 1.0,
    weight: NDArray | None = None,
    *,
    center: bool = False,
) -> Stabilized:
    """Flip the negative eigenvalues of the symmetric `K`, divided by `negative_penalty` (inf drops them). O(n^3).

    Positive weights count as repeated rows: the eigenvalues are those of ``W^1/2 K W^1/2``. If K is centered first,
    the coefficients for its rows sum to zero, and those of K itself are the same, less ``mean @ coef``.
    """
    weight = weights_or_ones(weight, len(K))
    Kt, mean, root, total = center_kernel(K, weight, center)
    s, V = eigh(Kt, driver="evd", check_finite=False, overwrite_a=True)
    keep = kept(s, 1e-12, largest_entry(K) * total)
    s = s[keep]
    V = V[:, keep]
    factor = np.where(s > 0, 1.0, -1.0 / negative_penalty).astype(s.dtype)
    left = V
    if np.any(weight != 1.0):
        V /= root[:, None]
        left = V * root[:, None] ** 2
    matrix = (V * (factor * s)) @ V.T
    return Stabilized((matrix + matrix.T) / 2, (left * factor) @ V.T, int(np.sum(s < 0)), mean)


class Machine(NamedTuple):
    """``f = K @ coef + intercept`` on the training rows, and the relative duality gap."""

    coef: NDArray
    intercept: float
    gap: float
    n_iter: int


def hinge_machines(
    K: NDArray,
    labels: NDArray,
    n_classes: int,
    C: float,
    weight: NDArray,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
) -> list[Machine]:
    """Minimize ``coef' K coef / 2 + C sum(weight * max(0, 1 - sign * f))`` for all pairs i < j.

    The machine of a pair has class j as the positive one, and coefficients of 0 for rows of other classes. In one call
    of libsvm, which is some 40 times faster for ten classes; `tol` is its tolerance on the dual gradient. A pair with
    rows of one class only always predicts that class.
    """
    present = np.unique(labels)
    centered, offset = without_offset(K)
    unit = single_precision_unit(centered)
    if len(present) > 1:
        model = libsvm(
            SVC, centered / unit, labels, weight, 1 / unit, C=C, tol=tol, max_iter=max_iter
        )
    numbers = {pair: k for k, pair in enumerate(combinations(present.tolist(), 2))}
    # with two classes scikit-learn has turned the signs already
    flip = 1.0 if len(present) == 2 else -1.0
    machines = []
    for i, j in combinations(range(n_classes), 2):
        beta = np.zeros(len(K))
        b = 1.0 if j in present else -1.0
        gap = 0.0
        n_iter = 0
        if (i, j) in numbers:
            for one, other in ((i, j), (j, i)):  # libsvm keeps one row of coefficients per rival
                mine = labels[model.support_] == one
                rival = int(np.searchsorted(present, other)) - (other > one)
                beta[model.support_[mine]] = flip * model.dual_coef_[rival, mine] / unit
            b = flip * float(model.intercept_[numbers[i, j]]) - float(beta @ offset)
            n_iter = int(model.n_iter_[numbers[i, j]])
            rows = np.flatnonzero((labels == i) | (labels == j))
            sign = np.where(labels[rows] == j, 1.0, -1.0)
            Kb = K[np.ix_(rows, rows)] @ beta[rows]
            norm = float(beta[rows] @ Kb)
            loss = np.maximum(0.0, 1.0 - sign * (Kb + b))
            primal = norm / 2 + C * float(weight[rows] @ loss)
            gap = _relative(primal, float(np.abs(beta).sum() - norm / 2))
        machines.append(Machine(beta, b, gap, n_iter))
    return machines


def libsvm(
    make: Any, K: NDArray, y: NDArray, weight: NDArray | None, unit: float, C: float, **options: Any
) -> SVC | SVR:
    """The machine of scikit-learn on a matrix, with C relative to its unit."""
    machine = make(kernel="precomputed", C=C / unit, cache_size=500, **options)
    machine.random_state = 0  # libsvm takes a seed of the global generator otherwise
    return machine.fit(K, y, sample_weight=weight)


def without_offset(K: NDArray) -> tuple[NDArray, NDArray]:
    """``K - m_i - m_j`` with rows of mean zero, and m: nothing to a machine with an intercept, digits to libsvm."""
    mean = K.mean(axis=1)
    offset = mean - mean.mean() / 2
    return K - offset[:, None] - offset, offset


def single_precision_unit(K: NDArray) -> float:
    """A power of two near the largest entry: libsvm keeps matrices in single precision, from 1e-38 to 1e38."""
    largest = largest_entry(K)
    return float(np.ldexp(1.0, np.frexp(largest)[1])) if largest > 0.0 else 1.0


def tube_machine(
    K: NDArray,
    y: NDArray,
    C: float,
    epsilon: float,
    weight: NDArray,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
) -> Machine:
    """Minimize ``coef' K coef / 2 + C sum(weight * max(0, |y - f| - epsilon))`` for a positive semi-definite `K`."""
    centered, offset = without_offset(K)
    unit = single_precision_unit(centered)
    options: Any = {"C": C, "epsilon": epsilon, "tol": tol, "max_iter": max_iter}
    model = libsvm(SVR, centered / unit, y, weight, 1 / unit, **options)
    beta = np.zeros(len(K))
    beta[model.support_] = model.dual_coef_[0] / unit
    b = float(model.intercept_[0]) - float(beta @ offset)
    Kb = K @ beta
    norm = float(beta @ Kb)
    loss = np.maximum(0.0, np.abs(y - Kb - b) - epsilon)
    primal = norm / 2 + C * float(weight @ loss)
    dual = y @ beta - epsilon * np.abs(beta).sum() - norm / 2
    return Machine(beta, b, _relative(primal, dual), int(np.sum(model.n_iter_)))


def _relative(primal: float, dual: float) -> float:
    return float((primal - dual) / max(abs(primal), np.finfo(float).tiny))


def center_kernel(
    K: NDArray, weight: NDArray, intercept: bool, overwrite: bool = False
) -> tuple[NDArray, NDArray, NDArray, float]:
    """``W^1/2 H K H' W^1/2``, the column means of K, the roots of the weights, and the sum of the weights."""
    Kt = K if overwrite else K.copy()
    root = np.sqrt(weight).astype(K.dtype)
    total = float(weight.sum())
    mean = np.zeros(len(K), dtype=K.dtype)
    if intercept:
        share = (weight / total).astype(K.dtype)
        mean = share @ K
        grand = share @ mean
        Kt -= mean[:, None]
        Kt -= mean[None, :]
        Kt += grand
    if np.any(weight != 1.0):
        Kt *= root[:, None]
        Kt *= root[None, :]
    return Kt, mean, root, total


def kept(values: NDArray, rtol: float, size: float = 0.0) -> NDArray:
    """Mask of eigenvalues inside the hypothesis space; never below the rounding of the decomposition.

    `size` bounds the norm of the matrix before centering: its rounding errors remain after centering.
    """
    rounding = 8 * np.finfo(values.dtype).eps
    return np.abs(values) > max(
        max(rtol, rounding) * np.abs(values).max(initial=0.0), rounding * float(size)
    )
