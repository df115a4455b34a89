"""Support vector machines in a Krein space: a positive kernel for training, the original one for prediction.

Stabilisation (Loosli, Canu and Ong, 2016) minimises over f+ and maximises over f-; its dual is that of an
ordinary machine with the kernel matrix ``|K| = V |s| V'``. With a factor c for the penalty of f-,
||f+||^2 + c ||f-||^2, the matrix is ``V diag(s+ + |s-| / c) V'``. Both are ``K @ projector``, so coefficients of the
machine times the projector are coefficients for the original kernel, and new items need nothing but ``k(x, x_i)``.
"""

from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.svm import SVC, SVR

from mercerless.solvers.krein import center_kernel, kept
from mercerless.solvers.linear import hinge_sums, squared_hinge


class Stabilized(NamedTuple):
    """A positive semi-definite matrix ``kernel = K @ projector`` (K centred if asked) and how to get back."""

    kernel: NDArray
    projector: NDArray
    mean: NDArray  # column means of K, 0 unless centred
    share: NDArray | None  # the rows' shares of the mean, None unless centred
    n_negative: int

    def original(self, beta: NDArray, intercept: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts for the original kernel's rows ``k(x, .)``."""
        coef = self.projector @ beta
        if self.share is not None:
            coef = coef - np.outer(self.share, coef.sum(axis=0))
        return coef, intercept - self.mean @ coef


def stabilize(
    K: NDArray,
    negative_penalty: float = 1.0,
    weight: NDArray | None = None,
    *,
    center: bool = False,
    rtol: float = 1e-12,
) -> Stabilized:
    """Flip the negative eigenvalues of the symmetric `K`, divided by `negative_penalty` (inf drops them). O(n^3).

    Positive weights count as repeated rows: the eigenvalues are those of ``W^1/2 K W^1/2``.
    """
    Kt, mean, root, total = center_kernel(K, weight, center)
    s, V = eigh(Kt, driver="evd", check_finite=False, overwrite_a=True)
    keep = kept(s, rtol, np.abs(K).max() * total)
    s, V = s[keep], V[:, keep]
    factor = np.where(s > 0, 1.0, -1.0 / negative_penalty).astype(s.dtype)
    left, right = (V, V) if root is None else (V * root[:, None], V / root[:, None])
    matrix = (right * (factor * s)) @ right.T
    share = None
    if center:
        share = np.full(len(K), 1.0 / total) if root is None else root**2 / total
    return Stabilized((matrix + matrix.T) / 2, (left * factor) @ right.T, mean, share, int(np.sum(s < 0)))


class Machine(NamedTuple):
    """``f = K @ coef + intercept`` on the training rows, and the relative duality gap."""

    coef: NDArray
    intercept: float
    gap: float
    n_iter: int


def hinge_machine(
    K: NDArray, sign: NDArray, C: float = 1.0, weight: NDArray | None = None, *, tol: float = 1e-3, max_iter: int = -1
) -> Machine:
    """Minimize ``coef' K coef / 2 + C sum(weight * max(0, 1 - sign * f))`` for a positive semi-definite `K`.

    libsvm through `sklearn.svm.SVC`; `tol` is its tolerance on the dual gradient. One class gives f = sign.
    """
    if np.all(sign == sign[0]):
        return Machine(np.zeros(len(K)), float(sign[0]), 0.0, 0)
    w = np.ones(len(K)) if weight is None else weight
    model = SVC(kernel="precomputed", C=C, tol=tol, max_iter=max_iter).fit(K, sign, sample_weight=weight)
    beta = np.zeros(len(K))
    beta[model.support_] = model.dual_coef_[0]
    b = float(model.intercept_[0])
    return Machine(beta, b, _hinge_gap(K, sign, beta, b, C * w), int(np.sum(model.n_iter_)))


def hinge_machines(
    K: NDArray, labels: NDArray, C: float = 1.0, weight: NDArray | None = None, *, tol: float = 1e-3, max_iter: int = -1
) -> list[Machine]:
    """The machines of `hinge_machine` for all pairs i < j of the classes 0, 1, ..., in one call of libsvm.

    The machine of a pair has class j as the positive one, and coefficients of 0 for rows of other classes.
    """
    n_classes = int(labels.max()) + 1
    w = np.ones(len(K)) if weight is None else weight
    model = SVC(kernel="precomputed", C=C, tol=tol, max_iter=max_iter).fit(K, labels, sample_weight=weight)
    supports, machines = labels[model.support_], []
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        beta, rows = np.zeros(len(K)), np.flatnonzero((labels == i) | (labels == j))
        for one, other in ((i, j), (j, i)):  # libsvm keeps one row of coefficients per rival
            of_one = supports == one
            beta[model.support_[of_one]] = model.dual_coef_[other - (other > one), of_one]
        flip = 1.0 if n_classes == 2 else -1.0  # with two classes scikit-learn has turned the signs already
        beta, b = flip * beta, flip * float(model.intercept_[k])
        sign = np.where(labels[rows] == j, 1.0, -1.0)
        gap = _hinge_gap(K[np.ix_(rows, rows)], sign, beta[rows], b, C * w[rows])
        machines.append(Machine(beta, b, gap, int(model.n_iter_[k])))
    return machines


def _hinge_gap(K: NDArray, sign: NDArray, beta: NDArray, b: float, cost: NDArray) -> float:
    """The relative duality gap of a machine with hinge loss."""
    Kb = K @ beta
    norm, loss = beta @ Kb, np.maximum(0.0, 1.0 - sign * (Kb + b))
    return _relative(norm / 2 + cost @ loss, np.abs(beta).sum() - norm / 2)


def tube_machine(
    K: NDArray,
    y: NDArray,
    C: float = 1.0,
    epsilon: float = 0.1,
    weight: NDArray | None = None,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
) -> Machine:
    """Minimize ``coef' K coef / 2 + C sum(weight * max(0, |y - f| - epsilon))`` for a positive semi-definite `K`."""
    w = np.ones(len(K)) if weight is None else weight
    model = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=tol, max_iter=max_iter).fit(K, y, sample_weight=weight)
    beta = np.zeros(len(K))
    beta[model.support_] = model.dual_coef_[0]
    b = float(model.intercept_[0])
    Kb = K @ beta
    norm, loss = beta @ Kb, np.maximum(0.0, np.abs(y - Kb - b) - epsilon)
    primal, dual = norm / 2 + C * (w @ loss), y @ beta - epsilon * np.abs(beta).sum() - norm / 2
    return Machine(beta, b, _relative(primal, dual), int(np.sum(model.n_iter_)))


def squared_hinge_machine(
    K: NDArray, sign: NDArray, C: float = 1.0, weight: NDArray | None = None, *, max_iter: int = 1000
) -> Machine:
    """Minimize ``coef' K coef / 2 + C sum(weight * max(0, 1 - sign * f)^2)`` for a positive semi-definite `K`.

    The linear machine of `squared_hinge` on the features of an eigendecomposition; at its optimum
    ``coef = 2 C weight * sign * max(0, 1 - sign * f)``. Certificate: the duality gap. Rows of weight zero and a single
    class (f = sign) are allowed.
    """
    w = np.ones(len(K)) if weight is None else weight
    values, Z = eigh(K, driver="evd")
    Z *= np.sqrt(np.maximum(values, 0.0))
    run = partial(hinge_sums, Z, (sign * np.sqrt(w))[:, None])
    solution = squared_hinge(run, Z.shape[1], np.array([C]), tol=1e-20, max_iter=max_iter)
    b = float(solution.intercept[0])
    loss = np.maximum(0.0, 1.0 - sign * (Z @ solution.coef[:, 0] + b))
    beta = 2.0 * C * w * sign * loss
    norm = float(beta @ K @ beta)
    primal, dual = norm / 2 + C * (w @ loss**2), np.abs(beta).sum() - norm / 2 - C * (w @ loss**2)
    return Machine(beta, b, _relative(primal, dual), solution.n_iter)


def _relative(primal: float, dual: float) -> float:
    return float((primal - dual) / max(abs(primal), np.finfo(float).tiny))
