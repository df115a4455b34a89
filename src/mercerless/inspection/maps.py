"""Maps: items as points of a plane, with similar items close together."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.linalg import eigh
from scipy.spatial.distance import squareform
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from mercerless.spectra import implied_distances


@dataclass(frozen=True)
class MapRules:
    """How the items of a map are placed and judged."""

    neighbors: int = 10  # items of a neighborhood
    fewest: int = 12  # with fewer items, neighborhoods are meaningless
    steps: int = 500  # of t-SNE; twice as many keep no more neighbors


RULES = MapRules()


class Map(NamedTuple):
    """Points of a plane, the method that placed them, and how well it keeps the items' neighborhoods."""

    points: NDArray  # (n, 2)
    method: str
    # by method: the mean share of an item's ten nearest items that are among the ten nearest on the map
    preserved: dict[str, float]

    @property
    def kept(self) -> float:
        """The share of neighbors that this map keeps."""
        return self.preserved[self.method]


def draw_map(D: NDArray, by_neighborhoods: bool = True) -> Map:
    """Place items in a plane by their distances: by the two largest directions, or by neighborhoods (t-SNE).

    Returns the map that keeps more of the items' ten nearest neighbors; ties go to the first, whose distances have a
    meaning. Without ``by_neighborhoods``, which take most of the time, it is always the first.
    """
    plain = principal_plane(D)
    maps = {"principal directions": plain}
    if by_neighborhoods and len(D) >= RULES.fewest:
        start = 1e-4 * plain / (plain.std(axis=0).max() or 1.0)
        start = start + 1e-6 * np.random.RandomState(0).normal(size=start.shape)
        perplexity = min(30.0, (len(D) - 1) / 3.0)
        tsne = TSNE(
            metric="precomputed",
            init=start,
            perplexity=perplexity,
            max_iter=RULES.steps,
            random_state=0,
        )
        # on a busy machine the threads of t-SNE wait for each other at every one of its steps
        with threadpool_limits(limits=1):
            maps["neighborhoods"] = tsne.fit_transform(np.maximum(D, 0.0)).astype(float)
    preserved = {name: kept_neighbors(D, points) for name, points in maps.items()}
    best = max(
        preserved, key=lambda name: (round(preserved[name], 2), name == "principal directions")
    )
    return Map(maps[best], best, preserved)


def principal_plane(D: NDArray) -> NDArray:
    """Coordinates (n, 2) of the two largest positive eigenvalues of the centered ``-D^2 / 2``."""
    n = len(D)
    squares = -0.5 * D**2
    squares = squares - squares.mean(axis=0)
    squares = squares - squares.mean(axis=1, keepdims=True)
    if n < 2:
        return np.zeros((n, 2))
    symmetric = (squares + squares.T) / 2.0
    values, vectors = eigh(symmetric, subset_by_index=(max(0, n - 2), n - 1))
    lengths = np.sqrt(np.maximum(values[::-1], 0.0))
    points = vectors[:, ::-1] * lengths
    # the sign of an axis is arbitrary: the largest coordinate is positive
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    return points * np.where(largest < 0.0, -1.0, 1.0)


def kept_neighbors(D: NDArray, points: NDArray) -> float:
    """The mean share of an item's ten nearest (by D) that are among its ten nearest points."""
    k = min(RULES.neighbors, len(D) - 1)
    if k < 1:
        return 1.0
    away = np.where(np.eye(len(D), dtype=bool), np.inf, 0.0)
    plane = ((points[:, None] - points) ** 2).sum(axis=2)
    nearest_items = np.argsort(D + away, axis=1, kind="stable")[:, :k]
    nearest_points = np.argsort(plane + away, axis=1, kind="stable")[:, :k]
    shares = [
        len(np.intersect1d(items, points)) / k
        for items, points in zip(nearest_items, nearest_points)
    ]
    return float(np.mean(shares))


def likeness_order(K: NDArray, y: NDArray | None = None) -> NDArray:
    """Items by y, and for equal y by the leaves of average linkage on the distances that similarities imply."""
    distances = squareform(implied_distances(K), checks=False)
    leaves = leaves_list(linkage(distances, method="average"))
    if y is None:
        return leaves
    return leaves[np.argsort(y[leaves], kind="stable")]
