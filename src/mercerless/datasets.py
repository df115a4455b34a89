"""Data sets: one that is built in, and three generators."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch, check_random_state

from mercerless.core.validation import check_number, check_option

__all__ = ["load_digit_shapes", "make_balls3d", "make_clowns", "make_lab_function"]


# ---------------------------------------------------------------------------------------------------- built in


def load_digit_shapes(n_samples: int = 400, *, threshold: float = 8.0) -> Bunch:
    """Load handwritten digits compared by their shape: indefinite similarities that need no download.

    The 8 x 8 images of `sklearn.datasets.load_digits` become sets of points, the pixels at least as dark as
    `threshold`, compared by the modified Hausdorff distance [1]_: the larger of the two mean distances from a
    point of one set to the nearest point of the other. It is not a metric, and about 30 % of the spectrum of its
    similarities is negative.

    Parameters
    ----------
    n_samples : int, default=400
        The number of images, taken from the start; at most 1797. The classes are about equally frequent.
    threshold : float, default=8.0
        Pixels of at least this value belong to the shape; the images have values from 0 to 16.

    Returns
    -------
    shapes : Bunch
        ``D``, the distances, and ``K = -H D**2 H / 2`` with ``H`` the centering matrix, the similarities, both
        of shape (n_samples, n_samples); ``target``, the digit; ``images`` of shape (n_samples, 8, 8);
        ``DESCR``. ``K`` is centered on all items; to keep test items out of the centering, begin with ``D``
        and `mercerless.spectra.DissimilarityKernel`.

    References
    ----------
    .. [1] M.-P. Dubuisson and A. K. Jain. A modified Hausdorff distance for object matching. ICPR 1994.

    Examples
    --------
    >>> from mercerless.datasets import load_digit_shapes
    >>> shapes = load_digit_shapes()
    >>> shapes.D.shape, bool((shapes.D == shapes.D.T).all())
    ((400, 400), True)
    """
    digits = load_digits()
    if not 1 <= n_samples <= len(digits.target):
        raise ValueError(f"n_samples must be between 1 and {len(digits.target)}, got {n_samples}.")
    images = digits.images[:n_samples]
    inside = images.reshape(n_samples, -1) >= threshold
    if not inside.any(axis=1).all():
        raise ValueError(
            f"threshold={threshold} leaves an image without pixels; use a value up to 15."
        )
    D = _modified_hausdorff(inside, np.indices(images.shape[1:]).reshape(2, -1).T)
    K = -0.5 * D**2
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    description = (
        f"{n_samples} handwritten digits of scikit-learn as point sets, with modified Hausdorff "
        "distances D and the similarities K that double centering gives."
    )
    return Bunch(
        D=D, K=(K + K.T) / 2, target=digits.target[:n_samples], images=images, DESCR=description
    )


def _modified_hausdorff(inside: NDArray[np.bool_], points: NDArray) -> NDArray[np.float64]:
    """Compare every pair of subsets of `points`; row i of `inside` marks the points of subset i."""
    between = cdist(points, points)
    # nearest[i, p]: how far point p is from subset i, so that the mean over a subset is a matrix product
    nearest = np.stack([between[:, subset].min(axis=1) for subset in inside])
    one_sided = (inside / inside.sum(axis=1, keepdims=True)) @ nearest.T
    return np.maximum(one_sided, one_sided.T)


# -------------------------------------------------------------------------------------------------- generators


def make_clowns(
    n_samples: int = 200,
    *,
    spread: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray, NDArray]:
    """Generate the two classes *clowns* of the DANK paper's Figure 1: a noisy parabola and a blob in its cup.

    Parameters
    ----------
    n_samples : int, default=200
        The number of points; if it is odd, the blob has one more.
    spread : float, default=1.0
        The standard deviation of the blob.
    random_state : int, RandomState or None, default=None
        Makes the draw repeatable.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Standardized coordinates.
    y : ndarray of shape (n_samples,)
        1 for the blob, -1 for the parabola.

    Notes
    -----
    As in the SVM and Kernel Methods toolbox (Canu et al. 2005), from which the paper's set comes: the parabola
    is ``(u, u**2 + e)`` with u uniform on [-3, 3] and e standard normal, the blob is normal around (0, 6).

    Examples
    --------
    >>> from mercerless.datasets import make_clowns
    >>> X, y = make_clowns(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 0)
    """
    check_number("n_samples", n_samples, whole=True)
    rng = check_random_state(random_state)
    n_parabola = n_samples // 2
    u = rng.uniform(-3.0, 3.0, n_parabola)
    parabola = np.column_stack([u, u**2 + rng.standard_normal(n_parabola)])
    blob = spread * rng.standard_normal((n_samples - n_parabola, 2)) + [0.0, 6.0]
    X = np.vstack([blob, parabola])
    y = np.repeat([1, -1], [len(blob), n_parabola])
    return StandardScaler().fit_transform(X), y


#: Number of features, half-width of the cube and the function itself, as printed in the LAB paper, section 5.1.
_LAB_FUNCTIONS: dict[str, tuple[int, float, Callable]] = {
    "f1": (2, 2.0, lambda a, b: (1 + np.sin(2 * a + 3 * b)) / (3.5 + np.sin(a - b))),
    "f2": (
        6,
        1.0,
        lambda a, b, c, d, e, f: (
            10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 5 * d + 10 * e + 0 * f
        ),
    ),
    "f3": (4, 0.25, lambda a, b, c, d: np.exp(2 * np.pi * a * np.sin(d) + np.sin(b * c))),
}


def make_lab_function(
    n_samples: int = 500,
    *,
    function: str = "f1",
    noise: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray, NDArray]:
    """Generate one of the three regression test functions of the LAB paper (after Cherkassky et al. 1996).

    Parameters
    ----------
    n_samples : int, default=500
        The number of points.
    function : {"f1", "f2", "f3"}, default="f1"
        Two features on [-2, 2], six on [-1, 1] (the last irrelevant), or four on [-0.25, 0.25].
    noise : float, default=0.0
        The variance of the noise divided by the variance of the function, as in the paper's Figure 5.
    random_state : int, RandomState or None, default=None
        Makes the draw repeatable.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Uniform on the cube.
    y : ndarray of shape (n_samples,)
        The function plus noise.

    Notes
    -----
    The functions are as the paper prints them. Cherkassky et al. have ``exp(2 a sin(pi d)) + sin(b c)`` for the
    third and exchange the coefficients 5 and 10 of the second.

    Examples
    --------
    >>> from mercerless.datasets import make_lab_function
    >>> X, y = make_lab_function(300, function="f2", random_state=0)
    >>> X.shape
    (300, 6)
    """
    check_number("n_samples", n_samples, whole=True)
    check_option("function", function, _LAB_FUNCTIONS)
    check_number("noise", noise, zero=True)
    n_features, half_width, formula = _LAB_FUNCTIONS[function]
    rng = check_random_state(random_state)
    X = rng.uniform(-half_width, half_width, (n_samples, n_features))
    y = formula(*X.T)
    return X, y + np.sqrt(noise) * y.std() * rng.standard_normal(n_samples) if noise else y


def make_balls3d(
    n_samples: int = 200,
    *,
    radii: tuple[float, float] = (0.04, 0.06),
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray, NDArray]:
    """Generate distances between the surfaces of balls of two sizes: the negative spectrum helps tell them apart.

    Parameters
    ----------
    n_samples : int, default=200
        The number of balls; if it is odd, the second size has one more.
    radii : tuple of two floats, default=(0.04, 0.06)
        The radius of each class; the balls lie in the unit cube without overlap.
    random_state : int, RandomState or None, default=None
        Makes the draw repeatable.

    Returns
    -------
    D : ndarray of shape (n_samples, n_samples)
        Shortest distances from surface to surface, zero on the diagonal; not a metric.
    y : ndarray of shape (n_samples,)
        1 for the first radius, -1 for the second.

    Notes
    -----
    The set *balls3D* of the krein paper's Table 2 (Pekalska and Haasdonk 2009), drawn anew from its description.
    The leading eigenvectors are the positions, which do not depend on the size. About 11 % of the spectrum is
    negative, and learners that use it (flip) are more accurate than those that discard it (clip).

    Examples
    --------
    >>> from mercerless.datasets import make_balls3d
    >>> D, y = make_balls3d(50, random_state=0)
    >>> bool((D[~np.eye(50, dtype=bool)] > 0).all())
    True
    """
    check_number("n_samples", n_samples, whole=True)
    rng = check_random_state(random_state)
    radius = np.repeat(radii, [n_samples // 2, n_samples - n_samples // 2]).astype(float)
    if not 0 < radius.min() <= radius.max() < 0.5:
        raise ValueError(f"radii must lie between 0 and 0.5, got {radii}.")
    centers = np.empty((n_samples, 3))
    # the large balls first, since they are harder to place
    placed: list[int] = []
    for ball in np.argsort(-radius, kind="stable"):
        for _ in range(1000):
            center = rng.uniform(radius[ball], 1 - radius[ball], 3)
            gaps = np.linalg.norm(centers[placed] - center, axis=1) - radius[placed] - radius[ball]
            if (gaps > 0).all():
                break
        else:
            raise ValueError(
                f"{n_samples} balls of radii {radii} do not fit into the unit cube; use fewer or "
                "smaller balls."
            )
        centers[ball] = center
        placed.append(ball)
    D = cdist(centers, centers) - (radius[:, None] + radius)
    np.fill_diagonal(D, 0.0)
    return D, np.repeat([1, -1], [n_samples // 2, n_samples - n_samples // 2])
