"""Targets on pairs of items: the ideal kernel of labels or numbers, or a matrix of similarities."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from mercerless.core.tuning import order_by_content
from mercerless.core.units import length_scales
from mercerless.core.validation import (
    check_labels,
    check_option,
    check_size,
    check_square,
    check_targets,
    relative_asymmetry,
)
from mercerless.hyper.thresholds import LIMITS
from mercerless.kernels.stationary import Gaussian

KINDS = ("auto", "classes", "product", "gaussian", "similarity")


@dataclass(frozen=True)
class PairTarget:
    """The values that the kernel should take at pairs of items, block by block.

    1 for equal classes and -1/(c-1) for others; the product of standardized values; a Gaussian of their difference; or
    a matrix of similarities, NaN if unknown.
    """

    kind: str  # "classes", "product", "gaussian" or "similarity"
    values: NDArray  # class codes, standardized values, or the matrix
    n_classes: int = 0

    def __call__(self, rows: Any, columns: Any) -> NDArray:
        """A block of the target."""
        if self.kind == "similarity":
            return self.values[rows][:, columns]
        left = self.values[rows][:, None]
        right = self.values[columns]
        if self.kind == "classes":
            return np.where(left == right, 1.0, -1.0 / max(1, self.n_classes - 1))
        if self.kind == "product":
            return left * right
        return np.exp(-0.5 * (left - right) ** 2)

    def take(self, index: NDArray) -> "PairTarget":
        """The target of a subset of the items."""
        if self.kind == "similarity":
            return replace(self, values=self.values[np.ix_(index, index)])
        return replace(self, values=self.values[index])

    @property
    def missing(self) -> bool:
        """Whether any entry is unknown."""
        return self.kind == "similarity" and bool(np.isnan(self.values).any())

    @property
    def unit(self) -> float:
        """The size of its entries: the root of their mean square for similarities, 1 for labels and numbers."""
        if self.kind != "similarity":
            return 1.0
        return float(np.sqrt(np.nanmean(self.values**2))) or 1.0


class EncodedTarget(NamedTuple):
    """A target on pairs, and the classes or moments that encode it."""

    target: PairTarget
    classes: NDArray | None  # of labels
    moments: tuple[float, float] | None  # mean and standard deviation of values


def encode_target(
    y: Any,
    n_items: int,
    kind: str,
    classes: NDArray | None = None,
    moments: tuple[float, float] | None = None,
) -> EncodedTarget:
    """Turn labels, values or a similarity matrix into a `PairTarget`, by given classes or moments if any."""
    if y is None:
        raise ValueError(
            "this estimator requires y to be passed, but the target y is None: pass labels, values "
            "or a similarity matrix."
        )
    check_option("target", kind, KINDS)
    array = np.asarray(y)
    if array.dtype == object and array.ndim == 1:
        array = check_labels(array, "this estimator")
    if kind == "auto":
        kind = _kind_of_target(array)
    if kind == "similarity":
        return EncodedTarget(PairTarget(kind, _check_similarity(array, n_items)), None, None)
    if array.ndim != 1 or len(array) != n_items:
        raise ValueError(
            f"y has shape {array.shape} but X has {n_items} rows; pass one label or value per row."
        )
    if kind == "classes":
        return _encode_classes(array, classes)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"target={kind!r} needs numbers, but y has the type {array.dtype}; use "
            "target='classes' for labels."
        )
    values = check_targets(array, "y")
    mean, spread = moments or (float(values.mean()), float(values.std()))
    target = PairTarget(kind, (values - mean) / (spread or 1.0))
    return EncodedTarget(target, None, (mean, spread))


def _kind_of_target(array: NDArray) -> str:
    if array.ndim == 2 and array.shape[1] > 1:
        return "similarity"
    if type_of_target(array, input_name="y").startswith("continuous"):
        return "product"
    return "classes"


def _encode_classes(labels: NDArray, classes: NDArray | None) -> EncodedTarget:
    if np.any(labels != labels):
        raise ValueError("y contains NaN; leave rows without a label out.")
    if classes is None:
        classes = np.unique(labels)
    codes = np.searchsorted(classes, labels)
    if not np.array_equal(classes[np.minimum(codes, len(classes) - 1)], labels):
        raise ValueError(
            "y has classes that were not seen in fit; score only data of the same classes."
        )
    return EncodedTarget(PairTarget("classes", codes, len(classes)), classes, None)


def _check_similarity(S: Any, n_items: int) -> NDArray:
    """A square, symmetrized matrix of similarities, NaN if unknown in both directions."""
    S = check_square(S, "y", allow_nan=True).astype(float)
    if len(S) != n_items:
        raise ValueError(
            f"y has similarities of {len(S)} items but X has {n_items} rows; pass the same items."
        )
    known = ~np.isnan(S)
    if not known.any():
        raise ValueError("y has no known similarity; pass at least one entry that is not NaN.")
    check_size(S[known], "y")
    if not known.all():
        S = np.where(known, S, S.T)
        known = ~np.isnan(S)
    if relative_asymmetry(np.where(known, S, 0.0)) > 1e-8:
        raise ValueError(
            "y is not symmetric, as a learned kernel is; average both directions with (y + y.T) / "
            "2."
        )
    return (S + S.T) / 2


def order_of_items(X: NDArray, target: PairTarget) -> NDArray:
    """The order by content, or as they are if there are many items."""
    if len(X) > LIMITS.ordered_items:
        return np.arange(len(X))
    values = [target.values] if target.values.ndim == 1 else []
    if target.kind == "classes":  # names of classes have no order
        values = [np.bincount(target.values)[target.values]]
    K = Gaussian(length_scales(X))(X)
    return order_by_content(K, *values)
