"""Learners on one matrix of similarities: ridges on its spectrum and on features, neighbors, and the 1-norm machine."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, get_lapack_funcs
from scipy.optimize import linprog

from mercerless.core.linalg import EigenFactors
from mercerless.spectra import repaired_values


class SparseMachine(NamedTuple):
    """The solution of `sparse_machine`."""

    coef: NDArray  # (p,), most are exactly 0
    intercept: float
    objective: float
    # the certificate: the duality gap with a feasible dual point, relative to the objective
    gap: float


def sparse_machine(K: NDArray, signs: NDArray, C: NDArray | float) -> SparseMachine:
    """``min_{a, b} sum_j |a_j| + sum_i C_i max(0, 1 - y_i (K_i a + b))``.

    K (n, p) holds similarities of n items to p items, symmetric or not, definite or not; y is -1 or +1.

    Notes
    -----
    A linear program in ``2 p + n + 1`` unknowns, convex for any K, solved by the dual simplex method of HiGHS, so the
    minimum is global and the solution a vertex: at most n coefficients are not 0. The dual is
    ``max sum_i u_i`` with ``0 <= u_i <= C_i``, ``|K^T (y u)| <= 1``, ``y^T u = 0``; the certificate scales the solver's
    multipliers into this set (and counts ``|y^T u|``). The similarities are divided by their largest entry first.
    Degenerate cases: a zero K gives a = 0; with one class a = 0 and b its label. The intercept is not always unique.
    """
    n, p = K.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    largest = np.abs(K).max()
    has_one_class = np.all(signs == signs[0])
    if largest == 0.0 or has_one_class:
        intercept = 1.0 if C @ signs >= 0.0 else -1.0
        hinge = np.maximum(0.0, 1.0 - signs * intercept)
        return SparseMachine(np.zeros(p), intercept, float(C @ hinge), 0.0)

    # the unknowns: positive and negative parts of the coefficients, the intercept, and the margin violations
    signed = K * (signs / largest)[:, None]
    constraints = np.hstack([signed, -signed, signs[:, None], np.eye(n)])
    prices = C * largest
    unit = max(1.0, float(prices.max()))
    costs = np.concatenate([np.ones(2 * p), [0.0], prices]) / unit
    nonnegative = (0.0, None)
    free = (None, None)
    bounds = [nonnegative] * (2 * p) + [free] + [nonnegative] * n
    result = linprog(costs, A_ub=-constraints, b_ub=-np.ones(n), bounds=bounds, method="highs-ds")
    if result.x is None:
        return SparseMachine(np.zeros(p), 0.0, float(C.sum()), np.inf)
    positive = result.x[:p]
    negative = result.x[p : 2 * p]
    coef = positive - negative
    intercept = float(result.x[2 * p])

    # the certificate, of the scaled problem
    hinge = np.maximum(0.0, 1.0 - signed @ coef - signs * intercept)
    primal = np.abs(coef).sum() + prices @ hinge
    dual = np.clip(-result.ineqlin.marginals * unit, 0.0, prices)
    dual /= max(1.0, float(np.abs(signed.T @ dual).max()))
    violation = abs(signs @ dual)
    gap = max(primal - dual.sum(), violation) / max(primal, np.finfo(float).tiny)
    return SparseMachine(coef / largest, intercept, float(primal / largest), float(gap))


def spectral_path(
    K: NDArray, Y: NDArray, settings: Sequence[tuple], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """``min_f sum_i w_i (y_i - f(x_i))^2 + penalty * max(t) * |f|_t^2``, f in the span of the centered similarities.

    ``|f|_t`` is the norm that replaces every eigenvalue s of the centered matrix by ``t(s)``: ``max(s, 0)`` for
    ``"clip"``, ``|s|`` for ``"flip"``, ``s^2`` for ``"square"``; directions with ``t = 0`` are not used. All settings
    (name of t, penalty, ...) and targets share one eigendecomposition. Predictions use the similarities as they are:
    ``f(x) = k_x @ coef + intercept``, with coef (n, n_settings, q) and intercept (n_settings, q), since the
    coefficients sum to zero. Whole weights equal repeated items. A centered matrix of zero, or one without an
    eigenvalue that t keeps, gives the weighted mean of ``Y``.
    """
    root, column_mean, centered = _center(K, weight)
    spectrum = EigenFactors.of(centered).above(1e-8)
    mean = (root**2 * Y).mean(axis=0)
    target = spectrum.enter(root * (Y - mean))
    coefficients = _filtered(spectrum.values, target, settings)
    coef = root[:, :, None] * spectrum.leave(coefficients)
    intercept = mean - np.tensordot(column_mean, coef, 1)
    return coef, intercept


def _filtered(values: NDArray, target: NDArray, settings: Sequence[tuple]) -> NDArray:
    """Coefficients (rank, n_settings, q) of eigenvectors: ``(t/s) / (t + penalty max t)`` times the target."""
    filters = np.empty((len(values), len(settings)))
    for column, (name, penalty, *_) in enumerate(settings):
        transformed = repaired_values(values, name)
        largest = transformed.max(initial=0.0)
        # s is never zero, and t = 0 gives 0 unless nothing is kept at all
        ridge = penalty * (largest or 1.0)
        filters[:, column] = transformed / values / (transformed + ridge)
    return filters[:, :, None] * target[:, None, :]


def logistic_similarities(
    K: NDArray, Y: NDArray, steps: Sequence[float], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """`logistic_path` on rows of the centered similarities; coef (n, n_steps, q) and intercept as `spectral_path`."""
    root, column_mean, centered = _center(K, weight)
    slopes, biases = logistic_path(centered, root, Y, steps)
    coef = root[:, :, None] * slopes
    intercept = biases - np.tensordot(column_mean, coef, 1)
    return coef, intercept


def logistic_path(
    A: NDArray, root: NDArray, Y: NDArray, steps: Sequence[float]
) -> tuple[NDArray, NDArray]:
    """``min_{c, b} sum_i w_i logloss_i`` of ``softmax(A_i c / root_i + b)`` stopped early, after each number of steps.

    Rows of A (n, p) are centered features times the roots (n, 1) of the weights, Y > 0 for an item's class. Returns
    slopes (p, n_steps, q) and biases (n_steps, q).

    Notes
    -----
    Steps of Nesterov's accelerated gradient from 0, of one over a bound of the curvature (half the Frobenius norm of
    ``A A^T``, and for the biases, which centered features leave alone, half the sum of the weights). Stopping early is
    the penalty: the few directions of large variance are fitted first, and it costs less than solving for several
    penalties to the end. No step depends on the scale of A or on the order of its rows.
    """
    gram = A @ A.T
    curvature = (np.linalg.norm(gram) or 1.0) / 2.0
    # slopes are ``A^T (root * alpha) / curvature``, so that a step costs one product; classes before items
    onehot = np.ascontiguousarray((Y > 0.0).T, dtype=float)
    to_logits = gram
    to_logits *= root / (root.T * curvature)
    bias_rate = root[:, 0] ** 2 / ((root**2).sum() / 2.0)
    alpha = np.zeros(onehot.shape)
    bias = np.zeros(len(onehot))
    old_alpha = alpha
    old_bias = bias
    alphas = []
    biases = []
    for step in range(int(max(steps))):
        momentum = step / (step + 3.0)
        ahead = alpha + momentum * (alpha - old_alpha)
        ahead_bias = bias + momentum * (bias - old_bias)
        logits = ahead @ to_logits
        logits += ahead_bias[:, None]
        logits -= logits.max(axis=0)
        proba = np.exp(logits, out=logits)
        proba /= proba.sum(axis=0)
        proba -= onehot
        old_alpha = alpha
        old_bias = bias
        alpha = ahead - proba
        bias = ahead_bias - proba @ bias_rate
        if step + 1 in steps:
            alphas.append(alpha)
            biases.append(bias)
    duals = np.stack(alphas).transpose(2, 0, 1)
    slopes = np.tensordot(A.T, root[:, :, None] * duals, 1) / curvature
    return slopes, np.stack(biases)


def landmark_path(
    gram: NDArray, cross: NDArray, values: NDArray, settings: Sequence[tuple]
) -> NDArray:
    """`spectral_path` for the matrix ``F diag(1 / values) F^T`` of low rank, from sums of products of rows.

    F (n, rank) are centered similarities to landmarks times the eigenvectors of the landmarks' own centered matrix,
    which has these eigenvalues; ``gram = F^T F`` and ``cross = F^T (Y - mean)``. Coefficients (rank, n_settings, q) of
    a row of F.

    Notes
    -----
    With ``F^T F = E diag(g) E^T`` and ``R = diag(g)^(1/2) E^T``, ``F = Q R`` for orthonormal columns Q, so that the
    eigenvalues of the matrix are those of ``R diag(1 / values) R^T``.
    """
    if not len(gram):
        return np.empty((0, len(settings), cross.shape[1]))
    sizes, axes = eigh(gram, driver="evd", check_finite=False)
    kept = sizes > 1e-14 * sizes.max()
    lengths = np.sqrt(sizes[kept])[:, None]
    to_axes = axes[:, kept].T
    R = lengths * to_axes
    divided = R / values
    spectrum, vectors = eigh(divided @ R.T, driver="evd", check_finite=False)
    amounts = np.abs(spectrum)
    kept_too = amounts > 1e-8 * amounts.max(initial=0.0)
    spectrum = spectrum[kept_too]
    vectors = vectors[:, kept_too]
    target = vectors.T @ ((to_axes @ cross) / lengths)
    return np.tensordot(divided.T @ vectors, _filtered(spectrum, target, settings), 1)


def _center(K: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray, NDArray]:
    """Roots of the weights (of mean 1), weighted column means, and the centered matrix times both roots."""
    weight = _mean_one(weight, len(K))
    root = np.sqrt(weight)[:, None]
    column_mean = weight @ K / len(K)
    total_mean = weight @ column_mean / len(K)
    centered = K - column_mean
    centered -= (column_mean - total_mean)[:, None]
    centered *= root
    centered *= root.T
    return root, column_mean, centered


def _mean_one(weight: NDArray | None, n: int) -> NDArray:
    """Weights of mean one; ones if there are none."""
    if weight is None:
        return np.ones(n)
    return weight / weight.mean()


def feature_path(
    F: NDArray,
    Y: NDArray,
    penalties: Sequence[float],
    weight: NDArray | None = None,
    standardize: bool = False,
    logistic: bool = False,
) -> tuple[NDArray, NDArray]:
    """``min_c sum_i w_i (y_i - mean - (F_i - mean) c)^2 + penalty * |A|_F * sum_j c_j^2 / w_j``.

    Ridge regression on a row of ``F`` as features (divided by their standard deviations if `standardize`), in its
    dual form with ``A`` the weighted Gram matrix of the centered rows; one Cholesky factorization per penalty, all
    targets at once: coef (n, n_penalties, q) of the columns of ``F`` as given, and intercept (n_penalties, q). Column j
    belongs to training item j, so it carries that item's weight and whole weights equal repeated items. Constant
    columns get the coefficient 0; if all are constant the prediction is the weighted mean of ``Y``. If `logistic`,
    it is `logistic_path` on the same features, and the penalties are its numbers of steps.
    """
    weight = _mean_one(weight, len(F))
    rows = CenteredFeatures.of(F, weight, standardize)
    if logistic:
        return rows.logistic_path(Y, penalties)
    return rows.ridge_path(Y, penalties)


class CenteredFeatures(NamedTuple):
    """Centered and scaled features of the training items, which several learners share."""

    weight: NDArray  # (n,), of mean one
    mean: NDArray  # (p,), of the columns
    factor: NDArray  # (p,), of the columns; 0 for constant ones
    rows: NDArray  # (n, p), ``(F - mean) * factor``
    inner: NDArray  # (n, n), inner products of the rows

    @classmethod
    def of(cls, F: NDArray, weight: NDArray, standardize: bool) -> Self:
        """From features (n, n), columns of the training items, and weights of mean one."""
        mean = weight @ F / len(F)
        rows = F - mean
        spread = np.sqrt(weight @ rows**2 / len(F))
        # a constant column is only rounding after centering
        is_constant = spread <= 1e-13 * np.abs(mean)
        divisor = np.ones(len(spread))
        if standardize:
            divisor = np.where(is_constant, 1.0, spread)
        factor = np.where(is_constant, 0.0, np.sqrt(weight) / divisor)
        rows *= factor
        return cls(weight, mean, factor, rows, rows @ rows.T)

    def ridge_path(self, Y: NDArray, penalties: Sequence[float]) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts of `feature_path`."""
        root = np.sqrt(self.weight)[:, None]
        mean = self.weight @ Y / len(Y)
        gram = self.inner * root
        gram *= root.T
        dual = ridge_path(gram, root * (Y - mean), penalties)
        slopes = np.tensordot(self.rows.T, root[:, :, None] * dual, 1)
        return self._of_columns(slopes, mean)

    def logistic_path(self, Y: NDArray, steps: Sequence[float]) -> tuple[NDArray, NDArray]:
        """The same by logistic regression, after so many steps."""
        root = np.sqrt(self.weight)[:, None]
        slopes, level = logistic_path(self.rows * root, root, Y, steps)
        return self._of_columns(slopes, level)

    def _of_columns(self, slopes: NDArray, level: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients (p, n_settings, q) and intercepts (n_settings, q) for features as given."""
        coef = self.factor[:, None, None] * slopes
        return coef, level - np.tensordot(self.mean, coef, 1)


def kernel_path(
    K: NDArray, Y: NDArray, penalties: Sequence[float], weight: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """``min_f sum_i w_i (y_i - f(x_i))^2 + penalty * |K_c|_F * |f|^2``, f a constant plus a function of the kernel.

    ``K_c`` is the centered matrix of a positive definite kernel; one Cholesky factorization per penalty. As for
    `spectral_path`, ``f(x) = k_x @ coef + intercept`` with coefficients that sum to zero.
    """
    root, column_mean, centered = _center(K, weight)
    mean = (root**2 * Y).mean(axis=0)
    dual = ridge_path(centered, root * (Y - mean), penalties)
    coef = root[:, :, None] * dual
    intercept = mean - np.tensordot(column_mean, coef, 1)
    return coef, intercept


def pair_path(
    K: NDArray, Y: NDArray, penalties: Sequence[float], weight: NDArray
) -> tuple[NDArray, NDArray]:
    """`kernel_path` for every pair of classes a and b, +1 and -1, on the items of these two alone.

    Returns coef (n, n_penalties, q) and intercept (n_penalties, q, q): an item of class a has in column b its
    coefficient of the pair (a, b), so that the value of the pair is ``g_ab - g_ba + intercept_ab``, with ``g_ab`` the
    sum of ``k(x, i) coef_ib`` over the items i of a. A class without items has coefficients of 0 and loses every pair.
    """
    n_classes = Y.shape[1]
    coef = np.zeros((len(K), len(penalties), n_classes))
    intercept = np.zeros((len(penalties), n_classes, n_classes))
    members = [np.flatnonzero(column > 0.0) for column in Y.T]
    for a, b in combinations(range(n_classes), 2):
        rows = np.concatenate([members[a], members[b]])
        if not len(rows):
            continue
        n_first = len(members[a])
        signs = np.ones((len(rows), 1))
        signs[n_first:] = -1.0
        part = K.take(rows, axis=0).take(rows, axis=1)
        dual, level = kernel_path(part, signs, penalties, weight[rows])
        coef[members[a], :, b] = dual[:n_first, :, 0]
        coef[members[b], :, a] = -dual[n_first:, :, 0]
        intercept[:, a, b] = level[:, 0]
        intercept[:, b, a] = -level[:, 0]
    return coef, intercept


def ridge_path(A: NDArray, target: NDArray, penalties: Sequence[float]) -> NDArray:
    """``(A + penalty |A|_F I)^-1 target`` for every penalty, of shape (n, n_penalties, q).

    A is positive semi-definite; negative eigenvalues beyond the smallest ridge can only come from rounding, as in the
    Gaussians of rows among which one is very long, and are cut off.
    """
    norm = np.linalg.norm(A) or 1.0
    solutions = np.empty((len(A), len(penalties), target.shape[1]))
    if not len(A):
        return solutions
    factorize, substitute = get_lapack_funcs(("potrf", "potrs"), (A, target))
    work = np.empty(A.shape, order="F")
    diagonal = np.diagonal(A)
    for position, penalty in enumerate(penalties):
        np.copyto(work.T, A)  # A is symmetric, and rows to columns is a plain copy
        np.fill_diagonal(work, diagonal + penalty * norm)
        factor, info = factorize(work, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return _ridge_path_of_spectrum(A, target, norm * np.asarray(penalties))
        solutions[:, position], _ = substitute(factor, target, lower=1)
    return solutions


def _ridge_path_of_spectrum(A: NDArray, target: NDArray, ridges: NDArray) -> NDArray:
    """``(A + ridge I)^-1 target`` for every ridge, with the negative eigenvalues of A cut off."""
    values, vectors = eigh(A, driver="evd")
    divisors = np.maximum(values, 0.0)[:, None] + ridges
    coordinates = (vectors.T @ target)[:, None] / divisors[:, :, None]
    return np.tensordot(vectors, coordinates, 1)


def main_axes(rows: NDArray, inner: NDArray, rank: int, weight: NDArray) -> NDArray:
    """Orthonormal axes (p, rank or fewer) that hold most of the weighted rows (n, p), given their inner products.

    A step of subspace iteration from the rows that a pivoted Cholesky factorization chooses: close to the main
    principal axes, in ``O(n^2 rank)``, the same for rows in any order and for repeated rows in place of weights.
    """
    start = np.linalg.qr(inner[:, pivots_of(inner, rank)])[0]
    block = inner @ (weight[:, None] * start)
    return np.linalg.qr(rows.T @ (weight[:, None] * np.linalg.qr(block)[0]))[0]


def pivots_of(gram: NDArray, number: int) -> NDArray:
    """Positions of rows that explain most of the others, one after another: those of the largest residual."""
    left = np.diagonal(gram).copy()
    smallest = 1e-10 * left.max(initial=0.0)
    factor = np.empty((min(number, len(gram)), len(gram)))
    pivots: list[int] = []
    while len(pivots) < len(factor):
        place = int(left.argmax())
        if left[place] <= smallest:
            break
        known = factor[: len(pivots)]
        row = (gram[place] - known[:, place] @ known) / np.sqrt(left[place])
        factor[len(pivots)] = row
        left -= row**2
        left[place] = 0.0
        pivots.append(place)
    return np.array(pivots, dtype=int)


def squared_distances(K: NDArray, row_diagonal: NDArray, column_diagonal: NDArray) -> NDArray:
    """``max(0, k(x, x) + k(z, z) - 2 k(x, z))``, the squared distances that similarities imply.

    Negative ones, which an indefinite kernel can give, are cut at 0, and so is what rounding leaves of a zero (its root
    would be a distance of 1e-8). Rounding is relative to the two items themselves: one of great length must not bring
    all others together.
    """
    squares = _differences(K, row_diagonal, column_diagonal)
    of_rows = 8.0 * np.finfo(float).eps * np.abs(row_diagonal)
    of_columns = 8.0 * np.finfo(float).eps * np.abs(column_diagonal)
    least = max(of_rows.min(initial=np.inf), of_columns.min(initial=np.inf))
    most = max(of_rows.max(initial=0.0), of_columns.max(initial=0.0))
    squares[squares <= least] = 0.0
    if most > least:
        rows, columns = np.nonzero((squares > least) & (squares <= most))
        is_rounding = squares[rows, columns] <= np.maximum(of_rows[rows], of_columns[columns])
        squares[rows[is_rounding], columns[is_rounding]] = 0.0
    return squares


def squares_of_products(products: NDArray, of_rows: NDArray, of_columns: NDArray) -> NDArray:
    """Squared distances between vectors from their inner products and their squared lengths.

    What rounding leaves of a zero is cut off, relative to the longest vector of the columns and to that of the row, so
    that the distances of a row do not depend on the other rows.
    """
    squares = _differences(products, of_rows, of_columns)
    longest = np.maximum(of_rows, of_columns.max(initial=0.0))[:, None]
    squares[squares <= 8.0 * np.finfo(float).eps * longest] = 0.0
    return squares


def _differences(K: NDArray, row_diagonal: NDArray, column_diagonal: NDArray) -> NDArray:
    """``k(x, x) + k(z, z) - 2 k(x, z)``."""
    differences = K * -2.0
    differences += row_diagonal[:, None]
    differences += column_diagonal
    return differences


def neighbor_means(
    distances: NDArray, Y: NDArray, counts: Sequence[int], weight: NDArray | None = None
) -> dict[int, NDArray]:
    """The (weighted) mean target of the ``k`` nearest training items, for several ``k``; those above n mean all.

    `distances` may be any quantity that increases with the distance within each row. Items as far as the k-th, up to
    rounding, share what is left of the k votes; a thousandth of the nearest items' mean breaks tied votes. Rounding is
    relative to the nearest items, so that one that is far from all others makes no ties.
    """
    n = distances.shape[1]
    if weight is None:
        weight = np.ones(n)
    weighted = np.column_stack([weight[:, None] * Y, weight])
    sizes = [min(count, n) for count in [1, *counts]]
    most = min(n, max(25, *counts))  # at least so many show how large distances are
    if n <= 2 * most:
        sums = _sums_of_votes(distances, _ends_of_votes(distances, sizes, most), weighted)
    else:
        # one more than are counted shows whether items beyond are as far as the last
        nearest = np.argpartition(distances, most, axis=1)[:, : most + 1]
        ranked = np.take_along_axis(distances, nearest, axis=1)
        ends = _ends_of_votes(ranked, sizes, most)
        votes = np.stack([end.votes(ranked) for end in ends], axis=1)
        sums = np.moveaxis(votes @ weighted[nearest], 1, 0)
        farthest = ranked.max(axis=1, keepdims=True)
        is_tied = np.any([farthest - end.last <= end.rounding for end in ends], axis=(0, 2))
        if is_tied.any():
            tied_ends = [end.take(is_tied) for end in ends]
            sums[:, is_tied] = _sums_of_votes(distances[is_tied], tied_ends, weighted)
    means = sums[..., :-1] / sums[..., -1:]
    nearest_mean = means[0]
    mixed = (means[1:] + 1e-3 * nearest_mean) / 1.001
    return dict(zip(counts, mixed))


class _EndOfVotes(NamedTuple):
    """How far the last of the nearest items is that vote, in each of m rows."""

    size: int  # how many vote
    last: NDArray  # (m, 1)
    rounding: NDArray  # (m, 1), differences that count as none

    def take(self, rows: NDArray) -> "_EndOfVotes":
        """The same for some of the rows."""
        return _EndOfVotes(self.size, self.last[rows], self.rounding[rows])

    def votes(self, distances: NDArray) -> NDArray:
        """Votes (m, n) of the nearest items; those as far as the last share what is left."""
        nearer = distances < self.last - self.rounding
        tied = np.abs(distances - self.last) <= self.rounding
        share = (self.size - nearer.sum(axis=1)) / tied.sum(axis=1)
        return nearer + share[:, None] * tied


def _ends_of_votes(distances: NDArray, sizes: Sequence[int], most: int) -> list[_EndOfVotes]:
    """Where the votes of so many nearest items end.

    Rounding is relative to the items that vote, and by far less to the `most` nearest: distances of copies are zeros up
    to rounding themselves. Items that are farther away do not matter.
    """
    ranked = np.partition(distances, sorted({0, most - 1, *(size - 1 for size in sizes)}), axis=1)
    nearest = np.abs(ranked[:, :1])
    smallest = 1e-16 * np.abs(ranked[:, most - 1 : most])
    ends = []
    for size in sizes:
        last = ranked[:, size - 1 : size]
        rounding = np.maximum(1e-10 * np.maximum(nearest, np.abs(last)), smallest)
        ends.append(_EndOfVotes(size, last, rounding))
    return ends


def _sums_of_votes(distances: NDArray, ends: Sequence[_EndOfVotes], weighted: NDArray) -> NDArray:
    """Sums (n_sizes, m, q + 1) of the votes, weights last, over all items."""
    return np.stack([end.votes(distances) @ weighted for end in ends])


def nearest_of_classes(
    distances: NDArray, onehot: NDArray, count: int, log: bool = False
) -> NDArray:
    """Contribution of every item (m, n) to `class_distances` of its class, or to their logarithm (of at least 1e-3).

    A logarithm belongs to the nearest items together, and is split evenly.
    """
    shares = np.zeros(distances.shape)
    for column in onehot.T:
        members = np.flatnonzero(column > 0.0)
        size = min(count, len(members))
        if size == 0:
            continue
        order = np.argpartition(distances[:, members], size - 1, axis=1)
        nearest = members[order[:, :size]]
        values = np.take_along_axis(distances, nearest, axis=1) / size
        if log:
            mean = values.sum(axis=1, keepdims=True)
            values[:] = np.log(np.maximum(mean, 1e-3)) / size
        np.put_along_axis(shares, nearest, values, axis=1)
    return shares


def class_distances(distances: NDArray, onehot: NDArray, counts: Sequence[int]) -> NDArray:
    """Mean distances (n_counts, m, n_classes) to so many nearest items of every class; to all of a smaller class.

    A class without items is as far away as the farthest item.
    """
    means = np.empty((len(counts), len(distances), onehot.shape[1]))
    for label, column in enumerate(onehot.T):
        members = np.flatnonzero(column > 0.0)
        sizes = [min(count, len(members)) for count in counts]
        if not len(members):
            means[:, :, label] = distances.max(axis=1, initial=0.0)
            continue
        of_class = distances.take(members, axis=1)
        of_class.partition(sorted({size - 1 for size in sizes}), axis=1)
        for position, size in enumerate(sizes):
            means[position, :, label] = of_class[:, :size].mean(axis=1)
    return means
