"""Regression in a hyper-RKHS: ridge and epsilon-insensitive, exact or with a few sections.

The unknown is a kernel ``k = sum_p coef_p section_p``. Its values at pairs of n items are linear in ``coef``; the
matrix of that map (n^2 rows) is never formed: a *design* evaluates it block by block. The target is a callable giving
blocks of an n x n symmetric matrix in which NaN marks entries that are not used.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from mercerless.core.memory import memory_budget
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.hyper import pair_index

Target = Callable[[slice, slice], NDArray]


class SeparableDesign(NamedTuple):
    """Sections of the form ``decay(i, j) * features[i, p] * features[j, p]``."""

    decay: Callable[[slice, slice], NDArray]  # that block of the shared factor
    features: NDArray  # (n_items, n_terms)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of items and of terms."""
        return self.features.shape

    @property
    def bytes_per_pair(self) -> int:
        """What applying the design needs for one pair."""
        return 24

    def apply(self, rows: slice, columns: slice, coef: NDArray) -> NDArray:
        """The block of the kernel with these coefficients."""
        values = (self.features[rows] * coef) @ self.features[columns].T
        values *= self.decay(rows, columns)
        return values

    def adjoint(self, rows: slice, columns: slice, U: NDArray) -> NDArray:
        """``sum_ij U_ij section_p(i, j)`` over a block."""
        inner = (self.decay(rows, columns) * U) @ self.features[columns]
        return np.einsum("ip,ip->p", self.features[rows], inner)

    def matrix(self, rows: slice, columns: slice) -> NDArray:
        """The design matrix of a block, one row per ordered pair."""
        values = self.features[rows][:, None, :] * self.features[columns]
        values *= self.decay(rows, columns)[:, :, None]
        return values.reshape(-1, self.features.shape[1])

    def matrix_of_pairs(self, rows: slice, first: NDArray, second: NDArray) -> NDArray:
        """The design matrix of some pairs of items of a block, given by their positions there."""
        features = self.features[rows]
        values = features[first] * features[second]
        values *= self.decay(rows, rows)[first, second][:, None]
        return values


class BlockDesign(NamedTuple):
    """Sections without structure, evaluated block by block."""

    blocks: Callable[[slice, slice], NDArray]  # the array (n_rows, n_columns, n_terms) of sections
    shape: tuple[int, int]  # items and terms

    @property
    def bytes_per_pair(self) -> int:
        """What applying the design needs for one pair."""
        return 80 * self.shape[1]

    def apply(self, rows: slice, columns: slice, coef: NDArray) -> NDArray:
        """The block of the kernel with these coefficients."""
        return self.blocks(rows, columns) @ coef

    def adjoint(self, rows: slice, columns: slice, U: NDArray) -> NDArray:
        """``sum_ij U_ij section_p(i, j)`` over a block."""
        return U.ravel() @ self.matrix(rows, columns)

    def matrix(self, rows: slice, columns: slice) -> NDArray:
        """The design matrix of a block, one row per ordered pair."""
        return self.blocks(rows, columns).reshape(-1, self.shape[1])

    def matrix_of_pairs(self, rows: slice, first: NDArray, second: NDArray) -> NDArray:
        """The design matrix of some pairs of items of a block, given by their positions there."""
        return self.blocks(rows, rows)[first, second]


Design = SeparableDesign | BlockDesign


def keep_sections(design: Design) -> Design:
    """The design with its sections evaluated once and kept, if they cost more than to read them and fit into memory.

    Only for solvers that visit the same blocks, given by slices, in every iteration.
    """
    n, p = design.shape
    need = 8.0 * p * n * (n + 1) / 2
    if isinstance(design, SeparableDesign) or need > LIMITS.kept_share * memory_budget():
        return design

    @cache
    def kept(top: int, bottom: int, left: int, right: int) -> NDArray:
        return design.blocks(slice(top, bottom), slice(left, right))

    def blocks(rows: slice, columns: slice) -> NDArray:
        return kept(rows.start, rows.stop, columns.start, columns.stop)

    return design._replace(blocks=blocks)


class NormalEquations(NamedTuple):
    """Sums of least squares over all used pairs: ``|B c - y|^2 = c.gram.c - 2 c.rhs + square``."""

    gram: NDArray  # B^T B
    rhs: NDArray  # B^T y
    square: float  # y.y
    n_pairs: float  # ordered pairs that were used

    @classmethod
    def total(cls, parts: Sequence["NormalEquations"]) -> "NormalEquations":
        """The sum of several."""
        totals: list[Any] = [sum(terms) for terms in zip(*parts)]
        return cls(*totals)

    def errors(self, coef: NDArray) -> NDArray:
        """``|B c - y|^2`` for every column of coefficients."""
        quadratic = np.einsum("pk,pk->k", coef, self.gram @ coef)
        return np.maximum(quadratic - 2 * (self.rhs @ coef) + self.square, 0.0)


class HyperSolution(NamedTuple):
    """Coefficients of the sections, a constant added to the kernel, and the certificate."""

    coef: NDArray
    intercept: float
    certificate: float  # relative optimality residual or duality gap, depending on the solver
    n_iter: int = 0  # 0 for direct solvers


def ridge_exact(
    K: NDArray, y: NDArray, weight: NDArray, alpha: float, fit_intercept: bool = False
) -> HyperSolution:
    """Solve ``min_c sum_r w_r ((K c)_r + b - y_r)^2 / sum(w) + alpha * c.K.c`` over unordered pairs r.

    Assumes K positive semi-definite, ``alpha > 0``, weights positive. Equals Eq. (6) of the paper on all n^2 ordered
    pairs (whose coefficients are ``c / w``) at an eighth of the time and a quarter of the memory, because pairs (i, j)
    and (j, i) have the same section. Certificate: relative residual of the linear system. Cost: one Cholesky
    factorization of K, which is overwritten in a copy. Global optimum. A constant K or y is no special case.
    """
    root = np.sqrt(weight)
    ridge = alpha * weight.sum()
    system = K * root[:, None] * root
    system[np.diag_indices_from(system)] += ridge
    scale = float(np.abs(system).max())
    factor = _factor(system, jitter=0.0)
    # (W^1/2 K W^1/2 + ridge) u + b W^1/2 1 = W^1/2 y,  sum(W^1/2 u) = 0
    of_y, of_ones = cho_solve(factor, np.column_stack([root * y, root])).T
    intercept = 0.0
    if fit_intercept:
        intercept = float(root @ of_y / (root @ of_ones))
    u = of_y - intercept * of_ones
    coef = root * u
    residual = root * (K @ coef + intercept - y) + ridge * u
    size = np.linalg.norm(root * y) + scale * np.linalg.norm(u) + np.finfo(float).tiny
    return HyperSolution(coef, intercept, float(np.linalg.norm(residual) / size))


def normal_equations(
    design: Design,
    target: Target,
    fit_intercept: bool = False,
    *,
    whitening: NDArray | None = None,
    rows: slice | None = None,
    columns: slice | None = None,
) -> NormalEquations:
    """Accumulate ``B^T B``, ``B^T y``, ``y.y`` over all pairs of items, in bounded memory.

    Only pairs on and above the diagonal are visited; the others count double. Cost: ``n^2 P^2 / 2`` multiplications
    for n items and P terms (twice that with whitening); memory: ``P^2`` plus one block of 2^25 bytes.
    Sections of near centers are nearly equal, so coefficients are large and cancel; only in the whitened basis do
    the sums keep their digits.
    """
    n, p = design.shape
    q = p + fit_intercept
    # a product with small blocks takes less than a triangular solve
    inverse = None if whitening is None else dtrtri(whitening, lower=1)[0]
    gram = np.zeros((q, q))
    rhs = np.zeros(q)
    square = 0.0
    n_pairs = 0.0
    for left, right, weight in _blocks(n, rows, columns, 24 * q + design.bytes_per_pair, 2**25):
        y, B, pair_weight = _equations_of_block(design, target, left, right)
        if inverse is not None:
            B = dtrmm(1.0, inverse, B.T, lower=1, overwrite_b=1).T
        if fit_intercept:
            B = np.column_stack([B, np.ones(len(B))])
        if left == right:  # elsewhere all weights are one
            root = np.sqrt(pair_weight)
            B *= root[:, None]
            y = y * root  # not in place: it may be a part of the user's matrix
        used = ~np.isnan(y)
        if not used.all():
            B = B[used]
            y = y[used]
        gram += weight * (B.T @ B)
        rhs += weight * (B.T @ y)
        square += weight * float(y @ y)
        n_pairs += weight * float(np.sum(pair_weight[used]))
    return NormalEquations(gram, rhs, square, n_pairs)


def _equations_of_block(
    design: Design, target: Target, left: slice, right: slice
) -> tuple[NDArray, NDArray, NDArray]:
    """Targets, design matrix and weights of the pairs of a block; on the diagonal of all pairs each is there once."""
    y = target(left, right)
    if left != right:
        return y.ravel(), design.matrix(left, right), np.ones(y.size)
    first, second, weight = pair_index(len(y))
    return y[first, second], design.matrix_of_pairs(left, first, second), weight


def _blocks(
    n: int, rows: slice | None, columns: slice | None, bytes_per_pair: int, budget: int
) -> Iterator[tuple[slice, slice, float]]:
    """Blocks covering rows x columns once, or, when both are one run, its upper triangle with weights 2."""
    rows = rows or slice(0, n)
    columns = columns or slice(0, n)
    side = max(1, int(np.sqrt(budget / max(1, bytes_per_pair))))
    for top in range(rows.start, rows.stop, side):
        left = slice(top, min(top + side, rows.stop))
        first = top if rows == columns else columns.start
        for start in range(first, columns.stop, side):
            right = slice(start, min(start + side, columns.stop))
            yield left, right, 1.0 if left == right else 2.0


def whiten(gram: NDArray) -> NDArray:
    """The Cholesky factor of the sections' inner products, with a relative jitter of 1e-11."""
    factor, _ = _factor(gram)
    return np.tril(factor)


class WhitenedPath:
    """Solve ``min_c |B c - y|^2 / N + alpha * |c|^2`` over orthonormal terms for any alpha with one factorization.

    The equations are whitened ones from `normal_equations`; when they have one more term than ``n_terms``, that is an
    unpenalized intercept, which is eliminated. Certificate: relative residual of the normal equations. Cost: one
    eigendecomposition, then ``P^2`` per alpha. Differs from Eq. (9) of the paper in the centers' sections not being
    scaled by their own closeness (which makes the penalty singular) and in the whitening's jitter.
    """

    def __init__(self, equations: NormalEquations, n_terms: int):
        p = n_terms
        gram, rhs, _, self.n_pairs = equations
        self.A = gram[:p, :p]
        self.r = rhs[:p]
        self.column = np.zeros(p)
        self.mean = 0.0
        if len(gram) > p:
            number = max(gram[p, p], 1e-300)
            self.column = gram[:p, p] / number
            self.mean = rhs[p] / number
            self.A = self.A - number * np.outer(self.column, self.column)
            self.r = self.r - number * self.mean * self.column
        symmetric = (self.A + self.A.T) / 2
        values, self.vectors = eigh(symmetric, driver="evd", overwrite_a=True, check_finite=False)
        self.values = np.maximum(values, 0.0)
        self.projected = self.vectors.T @ self.r

    def solve(self, alpha: float) -> tuple[NDArray, float, float]:
        """Coefficients of the orthonormal terms, intercept, and relative residual."""
        ridge = alpha * self.n_pairs
        damped = self.values + ridge + np.finfo(float).tiny
        u = self.vectors @ (self.projected / damped)
        residual = np.linalg.norm(self.A @ u + ridge * u - self.r)
        size = np.linalg.norm(self.r) + np.finfo(float).tiny
        return u, float(self.mean - self.column @ u), float(residual / size)

    def solution(self, whitening: NDArray, alpha: float) -> HyperSolution:
        """The same with coefficients of the terms that were whitened."""
        u, intercept, residual = self.solve(alpha)
        return HyperSolution(solve_triangular(whitening.T, u), intercept, residual)


def ridge_cg(
    design: Design,
    target: Target,
    gram: NDArray,
    alpha: float,
    *,
    fit_intercept: bool = False,
    tol: float = 1e-5,
    max_iter: int = 200,
    random_state=None,
) -> HyperSolution:
    """Solve ``min_c |B c - y|^2 / N + alpha * c.gram.c`` by conjugate gradients, never forming ``B`` or ``B^T B``.

    The preconditioner is the same system on a random sample of pairs, factorized once. Certificate: residual of the
    normal equations in the preconditioner's norm, relative to the right-hand side; it ends below ``tol`` or at
    ``max_iter``. Cost: ``n^2 P`` per iteration for separable designs, usually 5 to 15 iterations; memory: a few
    blocks and ``P^2``.
    """
    n, p = design.shape
    q = p + fit_intercept
    kept = keep_sections(design)
    rhs, count = _right_hand_side(kept, target, fit_intercept)
    ridge = alpha * count
    factor = _sampled_factor(
        design, gram, ridge, count, fit_intercept, max(2000, 6 * q), random_state
    )

    def product(c: NDArray) -> NDArray:
        out = np.zeros(q)
        out[:p] = ridge * (gram @ c[:p])
        shift = float(c[p]) if fit_intercept else 0.0
        for left, right, weight in _blocks(n, None, None, design.bytes_per_pair, 2**22):
            values = kept.apply(left, right, c[:p]) + shift
            if count < n * n:
                values[np.isnan(target(left, right))] = 0.0
            out[:p] += weight * kept.adjoint(left, right, values)
            if fit_intercept:
                out[p] += weight * values.sum()
        return out

    precondition = partial(cho_solve, factor)
    c, residual, n_iter = conjugate_gradients(product, precondition, rhs, tol, max_iter)
    return HyperSolution(c[:p], float(c[p]) if fit_intercept else 0.0, residual, n_iter)


def conjugate_gradients(
    product: Callable[[NDArray], NDArray],
    precondition: Callable[[NDArray], NDArray],
    rhs: NDArray,
    tol: float,
    max_iter: int,
) -> tuple[NDArray, float, int]:
    """The solution of ``product(x) = rhs``, its relative residual in the preconditioner's norm, and the iterations."""
    x = np.zeros_like(rhs)
    residual = rhs.copy()
    direction = precondition(residual)
    square = float(residual @ direction)
    first = max(square, np.finfo(float).tiny)
    n_iter = 0
    while square > tol**2 * first and n_iter < max_iter:
        n_iter += 1
        image = product(direction)
        step = square / float(direction @ image)
        x += step * direction
        residual -= step * image
        preconditioned = precondition(residual)
        previous = square
        square = max(0.0, float(residual @ preconditioned))
        direction = preconditioned + square / previous * direction
    return x, float(np.sqrt(square / first)), n_iter


def _right_hand_side(design: Design, target: Target, fit_intercept: bool) -> tuple[NDArray, float]:
    n, p = design.shape
    rhs = np.zeros(p + fit_intercept)
    count = 0.0
    for left, right, weight in _blocks(n, None, None, design.bytes_per_pair, 2**22):
        y = target(left, right)
        used = ~np.isnan(y)
        y = np.where(used, y, 0.0)
        rhs[:p] += weight * design.adjoint(left, right, y)
        count += weight * used.sum()
        if fit_intercept:
            rhs[p] += weight * y.sum()
    return rhs, count


def _sampled_factor(design, gram, ridge, count, fit_intercept, n_sample, random_state):
    """Cholesky factor of the normal matrix estimated on random rectangles of pairs."""
    n, p = design.shape
    side = min(n, max(1, int(np.sqrt(n_sample / 8))))
    H = np.zeros((p + fit_intercept,) * 2)
    for _ in range(8):
        left, right = (random_state.permutation(n)[:side] for _ in range(2))
        B = design.matrix(left, right)
        if fit_intercept:
            B = np.column_stack([B, np.ones(len(B))])
        H += B.T @ B
    H *= count / (8.0 * side**2)
    H[:p, :p] += ridge * gram
    return _factor(H)


def svr_admm(
    design: Design,
    target: Target,
    gram: NDArray,
    C: float,
    epsilon: float,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-5,
    max_iter: int = 2000,
) -> HyperSolution:
    """Solve ``min c.gram.c / 2 + C sum_ij max(0, |(B c)_ij + b - y_ij| - epsilon)`` by ADMM.

    The normal matrix is accumulated once; each iteration is one product with B, one with its transpose, and a
    triangular solve. The penalty parameter is balanced by the residuals (a new factorization each time it changes).
    Certificate: the larger of the relative primal and dual residuals; it stops on them, not on a count. Memory: three
    n x n arrays, and B if its sections are not separable and it fits. Global optimum up to the certificate.
    """
    n, p = design.shape
    q = p + fit_intercept
    whole = slice(0, n)
    y = target(whole, whole)
    used = ~np.isnan(y)
    y = np.where(used, y, 0.0)
    L = whiten(gram)
    equations = normal_equations(design, target, fit_intercept=fit_intercept, whitening=L)
    design = keep_sections(design)
    penalty = np.eye(q)
    penalty[p:, p:] = 0.0
    size = float(np.linalg.norm(y)) + np.finfo(float).tiny
    # the residual at the kink of the loss is epsilon + C / rho: start with it of the order of y itself
    rho = C / max(float(np.abs(y).max(initial=0.0)), epsilon, 1e-12)
    factor = _factor(penalty + rho * equations.gram)
    # z = y - B c, u the scaled multiplier
    z, u = np.zeros((2, n, n))
    c = np.zeros(q)
    worst = np.inf
    iteration = 0
    while worst > tol and iteration < max_iter:
        iteration += 1
        sums = whitened_sums(design, L, np.where(used, y - z - u, 0.0))[:q]
        c = cho_solve(factor, rho * sums)
        fit = np.where(used, _apply(design, L, c), 0.0)
        fit = LIMITS.relaxation * fit + (1.0 - LIMITS.relaxation) * (y - z)
        previous = z
        v = y - fit - u
        shrunk = np.maximum(np.abs(v) - C / rho, np.minimum(np.abs(v), epsilon))
        z = np.sign(v) * shrunk
        primal = y - fit - z
        u -= primal
        if iteration % 10:
            continue
        dual = rho * np.linalg.norm(whitened_sums(design, L, z - previous)[:q])
        multiplier = rho * np.linalg.norm(whitened_sums(design, L, u)[:q])
        scale = multiplier + np.linalg.norm(penalty @ c) + np.finfo(float).tiny
        first = float(np.linalg.norm(primal)) / size
        second = float(dual / scale)
        worst = max(first, second)
        if worst > 10 * min(first, second):
            change = 3.0 if first > second else 1 / 3.0
            rho *= change
            u /= change
            factor = _factor(penalty + rho * equations.gram)
    intercept = float(c[p]) if fit_intercept else 0.0
    return HyperSolution(solve_triangular(L.T, c[:p]), intercept, float(worst), iteration)


def _apply(design: Design, L: NDArray, c: NDArray) -> NDArray:
    """B c, with the intercept if c has one, for all ordered pairs and coefficients c of orthonormal terms."""
    n, p = design.shape
    out = np.empty((n, n))
    coef = solve_triangular(L.T, c[:p])
    intercept = float(c[p:].sum())
    for left, right, _ in _blocks(n, None, None, design.bytes_per_pair, 2**22):
        out[left, right] = design.apply(left, right, coef) + intercept
        out[right, left] = out[left, right].T
    return out


def whitened_sums(design: Design, L: NDArray, U: NDArray) -> NDArray:
    """B^T U with the intercept, for symmetric U and orthonormal terms."""
    n, p = design.shape
    out = np.zeros(p + 1)
    for left, right, weight in _blocks(n, None, None, design.bytes_per_pair, 2**22):
        out[:p] += weight * design.adjoint(left, right, U[left, right])
    out[:p] = solve_triangular(L, out[:p], lower=True)
    out[p] = U.sum()
    return out


def _factor(system: NDArray, jitter: float = LIMITS.jitter):
    """cho_factor with a relative jitter, raised only when it fails."""
    scale = max(float(np.abs(np.diagonal(system)).max(initial=0.0)), np.finfo(float).tiny)
    for relative in (jitter, 1e-11, 1e-9, 1e-7, 1e-5):
        try:
            return cho_factor(
                system + relative * scale * np.eye(len(system)), lower=True, overwrite_a=True
            )
        except LinAlgError:
            continue
    raise ValueError(
        "the hyper-kernel matrix is not positive semi-definite; check the hyper-kernel's "
        "parameters."
    )
