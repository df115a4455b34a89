"""Random features with signs for stationary kernels, definite or not: no landmarks, one pass over the rows."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercerless.core.estimator import KernelTransformer
from mercerless.core.memory import check_memory, memory_budget, row_blocks
from mercerless.core.validation import check_number, check_random_state
from mercerless.kernels import DeltaGauss, Exponential, Gaussian, Kernel, Laplace
from mercerless.kernels.base import Constant, Difference, Product, Scale, Sum

Draw = Callable[[np.random.RandomState, tuple[int, int]], NDArray]


class SpectralPart(NamedTuple):
    """A signed multiple of a probability distribution of frequencies: ``weight * E cos(w @ (x - y))``."""

    weight: float
    draw: Draw  # (random, (n, n_features)) -> frequencies


class SignedRandomFeatures(KernelTransformer):
    """Random cosines and sines whose signed inner products estimate a stationary kernel without bias.

    A stationary kernel is the Fourier transform of a measure, which is positive if the kernel is positive definite and
    signed if it is a difference of such kernels. Frequencies are drawn from the positive and from the negative part ::

        z(x) = sqrt(|weight| / m) * [cos(w @ x), sin(w @ x)],     (z(x) * signs) @ z(y) = k(x, y) on average

    with m frequencies for each part, in proportion to its weight, so that the diagonal is exact and the error of an
    entry falls as ``n_components ** -0.5``. Parts of both signs are features of their own, so that a linear model with
    a squared penalty on these features is ridge regression in the Krein space with the norm of both parts
    (``regularizer="strong"`` of `KreinRidge`), at a cost that is linear in the number of rows.

    Parameters
    ----------
    kernel : Kernel or str, default="gaussian"
        `Gaussian`, `Laplace`, `Exponential`, `DeltaGauss`, `Constant`, and sums, differences, products and multiples
        of these.
    n_components : int, default=200
        The number of features, half cosines and half sines, at least two for every Gaussian or other part of the
        kernel; of an odd number one is left out.
    random_state : int, RandomState or None, default=None
        Draws the frequencies.

    Attributes
    ----------
    signs_ : ndarray of shape (n_components,)
        1 for features of the positive part and -1 for those of the negative part.
    frequencies_ : ndarray of shape (n_components // 2, n_features)
        The frequencies: cosines first, sines of the same afterwards.
    amplitudes_ : ndarray of shape (n_components // 2,)
        The factors of the cosines and sines.
    kernel_ : Kernel
        The resolved kernel.
    n_features_in_ : int
        Features seen in fit.

    See Also
    --------
    KreinEmbedding : Coordinates for any similarity, from landmarks.
    sklearn.kernel_approximation.RBFSampler : The same for a Gaussian alone.

    Notes
    -----
    `fit` draws frequencies. It uses only the number of features of the rows (and, if the kernel is a name, their
    spread), so that rows can be transformed and learned from in batches.

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. A. K. Suykens. Fast learning in reproducing kernel Krein spaces via signed
       measures. AISTATS, 2021 (arXiv 2006.00247).

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import SignedRandomFeatures
    >>> from mercerless.kernels import DeltaGauss
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> features = SignedRandomFeatures(DeltaGauss(1.0, 0.5), 4000, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> error = (Z * features.signs_) @ Z.T - DeltaGauss(1.0, 0.5)(X)
    >>> bool(np.sqrt(np.mean(error**2)) < 0.04)
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int = 200,
        *,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def _learn(self, X: Any) -> None:
        check_number("n_components", self.n_components, whole=True)
        kernel, items = self._train_items(X)
        n_features = items.shape[1] if hasattr(items, "shape") and len(items.shape) == 2 else 0
        parts = [part for part in spectral_parts(kernel) if part.weight != 0.0]
        counts = _shares([part.weight for part in parts], self.n_components // 2)
        what = f"{self.n_components} random frequencies"
        check_memory(8.0 * sum(counts) * n_features, what, remedy="use fewer components")
        random = check_random_state(self.random_state)
        frequencies = [part.draw(random, (m, n_features)) for part, m in zip(parts, counts)]
        sizes = [np.sqrt(abs(part.weight) / m) for part, m in zip(parts, counts)]
        signs = [np.sign(part.weight) for part in parts]
        self._set_fitted(
            kernel_=kernel,
            frequencies_=np.concatenate([np.empty((0, n_features)), *frequencies]),
            amplitudes_=np.repeat(np.array(sizes), counts),
            signs_=np.tile(np.repeat(np.array(signs), counts), 2),
        )

    def _transform(self, items: Any) -> NDArray:
        half = len(self.frequencies_)
        what = f"{2 * half} features of {len(items)} rows"
        check_memory(16.0 * half * len(items), what, remedy="transform fewer rows at a time")
        out = np.empty((len(items), 2 * half))
        for rows in row_blocks(len(items), 16.0 * half, min(2**27, memory_budget() // 2)):
            angles = np.asarray(items[rows], dtype=float) @ self.frequencies_.T
            np.cos(angles, out=out[rows, :half])
            np.sin(angles, out=out[rows, half:])
            out[rows, :half] *= self.amplitudes_
            out[rows, half:] *= self.amplitudes_
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False  # no matrix has frequencies
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.signs_)


def spectral_parts(kernel: Kernel) -> list[SpectralPart]:
    """The signed distributions of frequencies of a stationary kernel; raises for kernels without a known one."""
    if isinstance(kernel, Gaussian):
        return [SpectralPart(1.0, partial(_normal, kernel.length_scale))]
    if isinstance(kernel, DeltaGauss):
        return spectral_parts(Gaussian(kernel.length_scale) - Gaussian(kernel.inner_scale))
    if isinstance(kernel, Laplace):
        return [SpectralPart(1.0, partial(_cauchy, kernel.length_scale))]
    if isinstance(kernel, Exponential):
        return [SpectralPart(1.0, partial(_radial_cauchy, kernel.length_scale))]
    if isinstance(kernel, Constant):
        return [SpectralPart(float(kernel.value), lambda random, shape: np.zeros(shape))]
    if isinstance(kernel, Scale):
        factor = float(kernel.factor)
        return [
            part._replace(weight=factor * part.weight) for part in spectral_parts(kernel.kernel)
        ]
    if isinstance(kernel, (Sum, Difference)):
        sign = -1.0 if isinstance(kernel, Difference) else 1.0
        right = [part._replace(weight=sign * part.weight) for part in spectral_parts(kernel.right)]
        return spectral_parts(kernel.left) + right
    if isinstance(kernel, Product):
        right = spectral_parts(kernel.right)
        return [_product(one, other) for one in spectral_parts(kernel.left) for other in right]
    raise ValueError(
        f"the distribution of frequencies of {kernel!r} is not known; use Gaussian, Laplace, "
        "Exponential, DeltaGauss, Constant, or sums, differences, products and multiples of these."
    )


def _normal(scale: Any, random: np.random.RandomState, shape: tuple[int, int]) -> NDArray:
    return random.standard_normal(shape) / scale


def _cauchy(scale: Any, random: np.random.RandomState, shape: tuple[int, int]) -> NDArray:
    return random.standard_cauchy(shape) / scale


def _radial_cauchy(scale: Any, random: np.random.RandomState, shape: tuple[int, int]) -> NDArray:
    """Frequencies of ``exp(-|x - y| / scale)``: a normal vector over an independent normal number."""
    return random.standard_normal(shape) / random.standard_normal((shape[0], 1)) / scale


def _product(one: SpectralPart, other: SpectralPart) -> SpectralPart:
    """A product of kernels has sums of independent frequencies."""
    return SpectralPart(
        one.weight * other.weight,
        lambda random, shape: one.draw(random, shape) + other.draw(random, shape),
    )


def _shares(weights: list[float], total: int) -> NDArray:
    """Number of frequencies for every part, in proportion to the sizes of their weights, at least one each."""
    sizes = np.cumsum(np.abs(weights))
    n_parts = len(weights)
    ends = np.round(max(total - n_parts, 0) * sizes / sizes[-1:]).astype(int)
    return 1 + np.diff(ends, prepend=0)
