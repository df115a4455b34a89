"""Hyper-kernels: kernels on pairs of items, whose sections are kernels themselves.

A hyper-kernel ``kappa((a, b), (c, d))`` is positive semi-definite on pairs and unchanged when a and b change places.
Every function of its space is a symmetric kernel. A set of pairs is an array of shape (n_pairs, 2, n_features).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist, pdist
from sklearn.base import BaseEstimator
from sklearn.utils.random import sample_without_replacement

from mercerless.core.memory import row_blocks
from mercerless.core.validation import check_number, check_option, check_random_state, check_real
from mercerless.kernels.stationary import Gaussian


class PairIndex(NamedTuple):
    """The pairs ``i <= j`` of n items and how often each occurs among all n^2 ordered pairs."""

    first: NDArray
    second: NDArray
    weight: NDArray  # 1 on the diagonal, 2 off it


def pair_index(n_items: int) -> PairIndex:
    """All unordered pairs of n items, with weights that make sums over them sums over all ordered pairs."""
    first, second = np.triu_indices(n_items)
    return PairIndex(first, second, np.where(first == second, 1.0, 2.0))


def take_pairs(X: NDArray, first: NDArray, second: NDArray) -> NDArray:
    """The pairs with the given indices, of shape (n_pairs, 2, n_features)."""
    return np.stack([X[first], X[second]], axis=1)


def random_pairs(X: NDArray, n_pairs: int, random_state: Any = None) -> NDArray:
    """Distinct unordered pairs of rows, at random; all pairs if there are not more."""
    n = len(X)
    random = check_random_state(random_state)
    # every unordered pair is there at most twice
    drawn = sample_without_replacement(n**2, min(n**2, 2 * n_pairs), random_state=random)
    ends = np.sort(np.column_stack(np.divmod(drawn, n)), axis=1)
    distinct = np.unique(ends, axis=0)
    if len(distinct) > n_pairs:
        distinct = distinct[random.permutation(len(distinct))[:n_pairs]]
    return take_pairs(X, *distinct.T)


class HyperKernel(BaseEstimator):
    """Base class of the hyper-kernels that expand a learned kernel in sections ``kappa(center, .)``.

    A subclass defines what a center is (`centers_of`), a pair's own section in terms of it (`center_scale`),
    evaluates sections on index pairs (`sections`), the inner products of sections (`gram`), and whole expansions.
    """

    def __call__(self, pairs: ArrayLike, others: ArrayLike | None = None) -> NDArray:
        """The matrix of hyper-kernel values between two sets of pairs.

        Parameters
        ----------
        pairs : array-like of shape (n, 2, n_features)
            The rows.
        others : array-like of shape (m, 2, n_features) or None, default=None
            The columns; None means ``pairs``.

        Returns
        -------
        ndarray of shape (n, m)
            The values.
        """
        pairs = check_pairs(pairs, "pairs")
        others = pairs if others is None else check_pairs(others, "others")
        self._check(pairs.shape[2])
        values = self._sections(pairs[:, 0], pairs[:, 1], self.centers_of(others))
        values *= self.center_scale(others)
        return values

    def centers_of(self, pairs: NDArray) -> NDArray:
        """The center of each pair in an expansion."""
        raise NotImplementedError

    def center_scale(self, pairs: NDArray) -> NDArray:
        """The factors in ``kappa(pair, .) = center_scale * section(center, .)``, one per pair."""
        raise NotImplementedError

    def gram(self, centers: NDArray) -> NDArray:
        """Inner products of sections: ``|sum_p c_p section_p|^2 = c @ gram @ c``, positive semi-definite."""
        raise NotImplementedError

    def blocks(self, X: NDArray, Y: NDArray, centers: NDArray) -> NDArray:
        """All sections at all pairs of rows of X and Y, of shape (n, m, n_centers)."""
        raise NotImplementedError

    def _sections(self, A: NDArray, B: NDArray, centers: NDArray) -> NDArray:
        """Sections at the pairs (A[i], B[i]): shape (n, n_centers)."""
        raise NotImplementedError

    def _check(self, n_features: int) -> None:
        raise NotImplementedError


def check_pairs(pairs: ArrayLike, name: str) -> NDArray:
    """Pairs of items as an array of shape (n_pairs, 2, n_features)."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 3 or pairs.shape[1] != 2:
        raise ValueError(
            f"{name} must have shape (n_pairs, 2, n_features), not {pairs.shape}; stack the two "
            "items of each pair with numpy.stack([A, B], axis=1)."
        )
    flat = check_real(pairs.reshape(len(pairs), -1), name)
    return flat.reshape(pairs.shape)


class GaussianHyper(HyperKernel):
    r"""The Gaussian hyper-kernel, in its separable form.

    With distances in units of ``length_scale`` and ``t = 1 + pair_scale**2``,

    ``kappa((a, b), (c, d)) = exp(-|a-b|^2/2) exp(-|c-d|^2/2) exp(-|(a+b)/2 - (c+d)/2|^2 / 2t)``,

    the product of the two pairs' closeness and the closeness of their midpoints. It is 1 for equal items: the
    Gaussian densities' constants (1e-1057 for 784 features and scales of 1) are dropped, they only rescale the penalty.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        The scale sigma of the Gaussian between the two items of a pair.
    pair_scale : float, default=1.0
        The scale sigma_h that relates pairs to each other, in units of ``length_scale``. If it is large, all midpoints
        are alike, and the only kernels are multiples of the Gaussian with this length scale.

    See Also
    --------
    WishartHyper : The same without a fixed direction-free scale.
    TensorHyper : For extending a similarity to new items.

    Notes
    -----
    By the theorem of Apollonius ``|m - c|^2 = |a-c|^2/2 + |b-c|^2/2 - |a-b|^2/4`` for the midpoint m of a and b, so a
    section is ``decay(a, b) * phi_c(a) * phi_c(b)`` with ``decay = exp(-|a-b|^2 (1/2 - 1/8t))`` and
    ``phi_c(a) = exp(-|a-c|^2 / 4t)``: any expansion is one matrix product, and a pair acts through its midpoint only.

    References
    ----------
    .. [1] Liu, Shi, Huang, Yang, Suykens. "Generalization properties of hyper-RKHS and its applications". Journal of
       Machine Learning Research 22, 2021.
    .. [2] Kondor, Jebara. "Gaussian and Wishart hyperkernels". NIPS, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels.hyper import GaussianHyper
    >>> pairs = np.array([[[0.0], [0.0]], [[0.0], [2.0]]])
    >>> GaussianHyper(pair_scale=1.0)(pairs).round(4)
    array([[1.    , 0.1054],
           [0.1054, 0.0183]])
    """

    def __init__(self, length_scale: ArrayLike = 1.0, pair_scale: float = 1.0):
        self.length_scale = length_scale
        self.pair_scale = pair_scale

    @property
    def _t(self) -> float:
        return 1.0 + float(self.pair_scale) ** 2

    def _check(self, n_features: int) -> None:
        Gaussian(self.length_scale)._check_features(n_features)
        check_number("pair_scale", self.pair_scale)

    def centers_of(self, pairs: NDArray) -> NDArray:
        return pairs.mean(axis=1)

    def center_scale(self, pairs: NDArray) -> NDArray:
        return np.exp(-0.5 * _square((pairs[:, 0] - pairs[:, 1]) / self.length_scale))

    def gram(self, centers: NDArray) -> NDArray:
        return self._gaussian(centers, None, self._t)

    def features(self, X: NDArray, centers: NDArray) -> NDArray:
        """The factors ``phi_c(x) = exp(-|x - c|^2 / 4t)``.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            The items.
        centers : ndarray of shape (n_centers, n_features)
            The centers.

        Returns
        -------
        ndarray of shape (n, n_centers)
            The factors.
        """
        return self._gaussian(X, centers, 2.0 * self._t)

    def decay(self, X: NDArray, Y: NDArray | None = None) -> NDArray:
        """The factor ``exp(-|x - y|^2 (1/2 - 1/8t))`` that all sections share.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            The rows.
        Y : ndarray of shape (m, n_features) or None, default=None
            The columns; None means X.

        Returns
        -------
        ndarray of shape (n, m)
            The factors.
        """
        return self._gaussian(X, Y, 1.0 / (1.0 - 0.25 / self._t))

    def _gaussian(self, X: NDArray, Y: NDArray | None, variance: float) -> NDArray:
        """``exp(-|x - y|^2 / (2 variance))`` in units of the length scale."""
        return Gaussian(np.sqrt(variance) * np.asarray(self.length_scale))(X, Y)

    def _sections(self, A: NDArray, B: NDArray, centers: NDArray) -> NDArray:
        values = self._gaussian((A + B) / 2, centers, self._t)
        values *= np.exp(-0.5 * _square((A - B) / self.length_scale))[:, None]
        return values


class WishartHyper(HyperKernel):
    r"""The Wishart hyper-kernel: scale mixtures of Gaussian hyper-kernels, normalized to 1 for equal items.

    ``kappa = (det D / det(D + S))**((degrees + 3) / 2)``, S being the scatter of the four items around their mean,
    computed as a 3 x 3 determinant whatever the number of features.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,) or (n_features, n_features), default=1.0
        One scale, one per feature (``D = diag(length_scale**2)``), or the positive definite matrix D itself.
    degrees : float, default=4
        The degrees of freedom b. ``degrees + 3`` must be a positive integer or larger than ``n_features - 1``;
        otherwise the hyper-kernel is not positive semi-definite, which raises an error.

    See Also
    --------
    GaussianHyper : The hyper-kernel with a separable form.

    Notes
    -----
    With d, m the difference and midpoint of a pair in the metric whitened by D, ``det(I + S) = det A``,
    ``A = I + U^T U``, ``U = [d1/sqrt(2), d2/sqrt(2), m1 - m2]``. With ``D = (degrees + 3) / 2`` and growing degrees it
    tends to ``exp(-|d1|^2/2 - |d2|^2/2 - |m1 - m2|^2)``: the Gaussian hyper-kernel of [1]_ with ``sigma_h -> 0`` (the
    paper says ``-> infinity``).

    References
    ----------
    .. [1] Kondor, Jebara. "Gaussian and Wishart hyperkernels". NIPS, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless.kernels.hyper import WishartHyper
    >>> pairs = np.array([[[0.0], [0.0]], [[0.0], [2.0]]])
    >>> WishartHyper(degrees=1)(pairs).round(4)
    array([[1.    , 0.0625],
           [0.0625, 0.04  ]])
    """

    def __init__(self, length_scale: ArrayLike = 1.0, degrees: float = 4):
        self.length_scale = length_scale
        self.degrees = degrees

    def _check(self, n_features: int) -> None:
        scale = np.asarray(self.length_scale, dtype=float)
        if scale.ndim < 2:
            Gaussian(scale)._check_features(n_features)
        elif scale.shape != (n_features, n_features) or np.linalg.eigvalsh(scale)[0] <= 0:
            raise ValueError(
                f"length_scale of shape {scale.shape} must be a positive definite matrix of shape "
                f"({n_features}, {n_features}); give one number, one per feature, or such a matrix."
            )
        exponent = float(self.degrees) + 3.0
        if not ((exponent > 0 and exponent.is_integer()) or exponent > n_features - 1):
            raise ValueError(
                f"the Wishart hyper-kernel with degrees={self.degrees} is not positive "
                f"semi-definite for {n_features} features; use an integer above -3 or a number "
                f"above {n_features - 4}."
            )

    def _whiten(self, X: NDArray) -> NDArray:
        scale = np.asarray(self.length_scale, dtype=float)
        if scale.ndim < 2:
            return X / scale
        return solve_triangular(cholesky(scale, lower=True), X.T, lower=True).T

    def centers_of(self, pairs: NDArray) -> NDArray:
        return pairs

    def center_scale(self, pairs: NDArray) -> NDArray:
        return np.ones(len(pairs))

    def gram(self, centers: NDArray) -> NDArray:
        values = self._sections(centers[:, 0], centers[:, 1], centers)
        return (values + values.T) / 2

    def _about_centers(
        self, X: NDArray, centers: NDArray
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """|x - m|^2 and (x - m).d for every center with midpoint m and difference d, |d|^2, and whitened X."""
        whitened = self._whiten(np.vstack([X, centers[:, 0], centers[:, 1]]))
        n = len(X)
        p = len(centers)
        origin = np.median(whitened[n:], axis=0)
        X = whitened[:n] - origin
        c = whitened[n : n + p] - origin
        d = whitened[n + p :] - origin
        middle = (c + d) / 2
        difference = c - d
        along = X @ difference.T - np.einsum("ij,ij->i", middle, difference)
        return cdist(X, middle, "sqeuclidean"), along, _square(difference), X

    def _sections(self, A: NDArray, B: NDArray, centers: NDArray) -> NDArray:
        to_a, along_a, square, white_a = self._about_centers(A, centers)
        to_b, along_b, _, white_b = self._about_centers(B, centers)
        return self._combine(
            to_a, along_a, to_b, along_b, _square(white_a - white_b)[:, None], square
        )

    def _combine(self, to_a, along_a, to_b, along_b, apart, square) -> NDArray:
        """det(A) ** (-(degrees + 3) / 2) by elimination, which is backward stable for positive definite A.

        Works in the memory of a few arrays: new ones would take most of the time.
        """
        a11 = 1.0 + apart / 2.0
        twice_a12 = along_a - along_b
        a12_over_a11 = twice_a12 * (0.5 / a11)
        # Schur complements of I + U^T U are at least 1, but rounding may make them smaller.
        s22 = twice_a12
        s22 *= a12_over_a11
        s22 *= -0.5
        s22 += 1.0 + square / 2.0
        np.maximum(s22, 1.0, out=s22)
        # a13, a23 and s23 times the root of 8
        a13 = to_a - to_b
        s23 = along_a + along_b
        a12_over_a11 *= a13
        s23 -= a12_over_a11
        eliminated = np.multiply(s23, s23, out=s23)
        eliminated /= s22
        a13 *= a13
        a13 /= a11
        eliminated += a13
        eliminated /= 8.0
        s33 = np.add(to_a, to_b, out=a13)
        s33 *= 0.5
        s33 -= apart / 4.0
        np.maximum(s33, 0.0, out=s33)
        s33 += 1.0
        s33 -= eliminated
        np.maximum(s33, 1.0, out=s33)
        s22 *= s33
        log_det = np.log(s22, out=s22)
        log_det += np.log(a11)
        log_det *= -(float(self.degrees) + 3.0) / 2.0
        return np.exp(log_det, out=log_det)

    def blocks(self, X: NDArray, Y: NDArray, centers: NDArray) -> NDArray:
        to_x, along_x, square, white_x = self._about_centers(X, centers)
        to_y, along_y, _, white_y = self._about_centers(Y, centers)
        apart = cdist(white_x, white_y, "sqeuclidean")[:, :, None]
        values = np.empty((len(X), len(Y), len(centers)), dtype=apart.dtype)
        # few enough rows that the arrays of a step stay in the processor's cache
        for rows in row_blocks(len(X), 40.0 * len(Y) * len(centers), 2**19):
            values[rows] = self._combine(
                to_x[rows, None], along_x[rows, None], to_y, along_y, apart[rows], square
            )
        return values


class TensorHyper(BaseEstimator):
    r"""The tensor hyper-kernel with a pair trend, for extending a similarity to new items.

    ``kappa((a, b), (c, d)) = (G(a, c) G(b, d) + G(a, d) G(b, c)) / 2 + rho * sum_l F_l(a, b) F_l(c, d)``

    where G is a Gaussian kernel between items plus ``item_noise`` for an item with itself, rho is very large (the
    trend is not penalized) and F_l are functions of a pair: 1, whether both are one item, and hat functions of the
    distance. Without a trend and without ridge penalty it is bilinear ridge, ``G(Z, A) (G + noise)^-1 S``.
    The learned kernel recognizes training items by equality of all features and is exact for them.

    Parameters
    ----------
    length_scale : float or array-like of shape (n_features,), default=1.0
        Scale of the item kernel.
    item_noise : float, default=1e-2
        Noise of an item, which it shares only with itself: the smoothing of the extension, relative to
        ``G(a, a) = 1``.
    trend : {"distance", "features", None}, default="distance"
        Unpenalized functions of the pair: of its distance; also ``|a_j - b_j|`` and ``(a_j - b_j)**2`` for every
        feature; or none.
    n_knots : int, default=7
        Hat functions of the distance, at quantiles of the training distances.

    See Also
    --------
    GaussianHyper : The paper's hyper-kernel; better for class labels.

    Examples
    --------
    >>> from mercerless.kernels.hyper import TensorHyper
    >>> TensorHyper(length_scale=2.0)
    TensorHyper(length_scale=2.0)
    """

    def __init__(
        self,
        length_scale: ArrayLike = 1.0,
        item_noise: float = 1e-2,
        trend: str | None = "distance",
        n_knots: int = 7,
    ):
        self.length_scale = length_scale
        self.item_noise = item_noise
        self.trend = trend
        self.n_knots = n_knots

    def _check(self, n_features: int) -> None:
        Gaussian(self.length_scale)._check_features(n_features)
        check_number("item_noise", self.item_noise, zero=True)
        check_option("trend", self.trend, ("distance", "features", None))
        check_number("n_knots", self.n_knots, whole=True)

    def items(self, X: NDArray, Y: NDArray | None = None) -> NDArray:
        """The item kernel without the noise: ``exp(-|x - y|^2 / (2 length_scale^2))``."""
        return Gaussian(self.length_scale)(X, Y)

    def knots(self, X: NDArray) -> NDArray:
        """0 and quantiles of the distances between rows, where the trend's hats sit."""
        rows = X[:: max(1, len(X) // 500)]
        distances = pdist(rows)
        if len(distances) == 0:
            return np.zeros(1)
        quantiles = np.quantile(distances, np.linspace(0, 1, self.n_knots)[1:])
        return np.unique(np.append(0.0, quantiles))

    def trends(self, X: NDArray, Y: NDArray, knots: NDArray, same: NDArray) -> Iterator[NDArray]:
        """The trend functions of rows X and columns Y; ``same`` marks pairs of one item.

        They are 1; whether both are one item; the hat functions but the first, since together they sum to 1; and with
        ``trend="features"`` those of single features.
        """
        if self.trend is None:
            return
        distance = cdist(X, Y)
        position = np.interp(distance, knots, np.arange(len(knots)))
        yield np.ones_like(distance)
        yield same.astype(distance.dtype)
        for k in range(1, len(knots)):
            yield np.maximum(1.0 - np.abs(position - k), 0.0)
        if self.trend == "features":
            for left, right in zip(X.T, Y.T):
                apart = np.abs(left[:, None] - right)
                yield apart
                yield apart**2


def _square(A: NDArray) -> NDArray:
    return np.einsum("ij,ij->i", A, A)
