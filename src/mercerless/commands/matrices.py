"""A matrix without labels, to look at."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from mercerless.comparison.problem import check_matrix, find_kind
from mercerless.comparison.read.items import Pairs
from mercerless.comparison.read.options import ReadOptions
from mercerless.comparison.read.reading import mirrored, pair_matrix, read_items, square
from mercerless.kernels import as_kernel
from mercerless.spectra import DissimilarityKernel, symmetrize


@dataclass(frozen=True)
class NamedMatrix:
    """A square matrix to look at."""

    name: str
    values: NDArray
    kind: str

    @property
    def similarities(self) -> NDArray:
        """Symmetric similarities; distances are centered."""
        K = symmetrize(self.values)
        if self.kind == "similarity":
            return K
        power = 2.0 if self.kind == "distance" else 1.0
        return DissimilarityKernel(power=power).fit_transform(K)


def read_matrix(path: str, options: ReadOptions) -> NamedMatrix:
    """Read a matrix without labels; strings are compared, a column of labels is left out."""
    name, X = Path(path).name, read_items(path, options, []).X
    kind = options.kind
    if isinstance(X, list):
        X, kind = as_kernel("levenshtein")(X), "similarity"
    elif isinstance(X, Pairs):
        X, _, kind = pair_matrix(X, X.names, kind)
    elif isinstance(X, pd.DataFrame):
        X, _ = square(mirrored(X), None)
    values = check_matrix(X.toarray() if issparse(X) else X, repr(name))
    return NamedMatrix(name, values, kind or find_kind(values, name))
