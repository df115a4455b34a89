"""The training items that new items are compared with.

Either a kernel compares items, or X holds the comparisons (``kernel="precomputed"``). `make_basis` decides which;
everything after that uses the basis.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.blocks import take_rows
from mercerless.core.validation import align_columns, weights_or_ones
from mercerless.kernels import Kernel, Precomputed


def is_precomputed(kernel: Any) -> bool:
    """Whether a kernel, as users pass it, means that X is the matrix of comparisons."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


@dataclass(frozen=True)
class Basis:
    """The training items of a fit that carry weight, or the landmarks among them, compared by a kernel.

    It provides the matrix of these items (`matrix`), comparisons of new items with them (`compare`), the items that a
    model keeps (`kept`), and the coefficient of every column of X (`spread`).
    """

    kernel: Kernel
    # these items; of a precomputed matrix their rows and columns, None once a model is fitted
    items: Any
    rows: NDArray  # their positions among all training items
    n_train: int  # how many training items there are, including those without weight
    #: Positions of landmarks among all training items, if there are any.
    landmarks: NDArray | None = None

    matrix_name = "the kernel matrix"  # name of the matrix of the training items in messages
    given_as_matrix = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def centers(self) -> NDArray:
        """The training item of every term of the model: the landmarks, or all items that carry weight."""
        return self.rows if self.landmarks is None else self.landmarks

    def with_kernel(self, kernel: Kernel) -> Self:
        """The same items with another kernel, such as a tuned one."""
        return replace(self, kernel=kernel)

    def matrix(self) -> NDArray:
        """Comparisons of all these items with each other."""
        return self.kernel(self.items)

    @property
    def kept(self) -> Any:
        """The items that a fitted model keeps, its ``X_fit_``."""
        return self.items

    def take(self, positions: NDArray) -> Any:
        """The items at these positions; of a matrix their rows and columns."""
        if len(positions) == len(self.items):
            return self.items
        return self.items[positions]

    def fitted(self, landmarks: NDArray | None = None) -> Self:
        """The basis that a model keeps to compare new items with; `landmarks` are positions among its items."""
        if landmarks is None:
            return self
        items = take_rows(self.items, landmarks)
        return replace(self, items=items, landmarks=self.rows[landmarks])

    def compare(self, new: Any) -> NDArray:
        """Comparisons of new items, one row each, with what the coefficients of a model belong to."""
        return self.kernel(new, self.items)

    def compare_back(self, new: Any, reverse: NDArray | None) -> NDArray:
        """Comparisons in the other direction, of these items with new ones; `reverse` has them if X is a matrix."""
        return self.kernel(self.items, new).T

    def weighted(self, comparisons: NDArray) -> NDArray:
        """Of the columns of `compare`, those of items that carry weight: all, as no others are kept."""
        return comparisons

    def spread(self, coef: NDArray) -> NDArray:
        """Coefficients (n_outputs, n_items) of these items as those of the columns of `compare`."""
        return coef


@dataclass(frozen=True)
class MatrixBasis(Basis):
    """Items of a precomputed matrix: rows of new items have a column for every training item, used or not."""

    matrix_name = "X"
    given_as_matrix = True

    def matrix(self) -> NDArray:
        """The matrix itself."""
        return self.items

    @property
    def kept(self) -> None:
        """None, because a model does not keep the matrix."""
        return None

    def take(self, positions: NDArray) -> Any:
        """The rows and columns at these positions."""
        if len(positions) == len(self.items):
            return self.items
        return self.items[np.ix_(positions, positions)]

    def fitted(self, landmarks: NDArray | None = None) -> Self:
        """The positions alone, without the matrix."""
        positions = None if landmarks is None else self.rows[landmarks]
        return replace(self, items=None, landmarks=positions)

    def compare(self, new: Any) -> NDArray:
        """The rows of X, or of these the columns of the landmarks."""
        comparisons = self.kernel(new)
        return comparisons if self.landmarks is None else comparisons[:, self.landmarks]

    def compare_back(self, new: Any, reverse: NDArray | None) -> NDArray:
        """Those that the user gave, or of these the columns of the landmarks."""
        assert reverse is not None  # estimators ask for it
        return reverse if self.landmarks is None else reverse[:, self.landmarks]

    def weighted(self, comparisons: NDArray) -> NDArray:
        """The columns of items that carry weight."""
        if self.landmarks is not None or len(self.rows) == self.n_train:
            return comparisons
        return comparisons[:, self.rows]

    def spread(self, coef: NDArray) -> NDArray:
        """Those of the landmarks as they are, else of all training items, 0 for items without weight."""
        if self.landmarks is not None or len(self.rows) == self.n_train:
            return coef
        full = np.zeros((len(coef), self.n_train), dtype=coef.dtype)
        full[:, self.rows] = coef
        return full


def align_train(train: Any, labels: list[str] | None) -> Any:
    """A matrix of the training items, given again, in the order of their labels, if it is a data frame with names."""
    if labels is None or not hasattr(train, "iloc"):
        return train
    train = align_columns(train, labels, "train")
    return align_columns(train.T, labels, "train").T


def make_basis(kernel: Kernel, items: Any, weight: NDArray | None = None) -> Basis:
    """The basis of all training items whose weight is not 0."""
    n = len(items)
    rows = np.flatnonzero(weights_or_ones(weight, n))
    basis_type = MatrixBasis if is_precomputed(kernel) else Basis
    everything = basis_type(kernel, items, np.arange(n), n)
    return basis_type(kernel, everything.take(rows), rows, n)
