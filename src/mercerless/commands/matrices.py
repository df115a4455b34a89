"""A matrix without labels, to look at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import squareform

from mercerless.comparison.problem import check_matrix
from mercerless.comparison.read.files import open_file
from mercerless.comparison.read.formats import Items, Pairs, read_content
from mercerless.comparison.read.labels import LABEL_NAMES, take_names
from mercerless.comparison.read.options import ReadOptions
from mercerless.comparison.read.reading import find_array, mirrored, pair_matrix, pick, square
from mercerless.kernels import as_kernel
from mercerless.spectra import DissimilarityKernel, check_kind, symmetrize


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
    file = open_file(path, options.format)
    content = read_content(file, options)
    if isinstance(content, Items):
        return NamedMatrix(file.name, as_kernel("levenshtein")(list(content.values)), "similarity")
    if isinstance(content, Pairs):
        listed = list(dict.fromkeys([*content.frame["from"], *content.frame["to"]]))
        kind = options.kind or content.kind or "similarity"
        return NamedMatrix(file.name, pair_matrix(content, listed, kind)[0], kind)
    if isinstance(content, dict):
        values: Any = pick(
            content, options.array or find_array(content, None, file.name), file.name
        )
        values = squareform(values) if np.ndim(values) == 1 else values
        values = values.toarray() if issparse(values) else values
    else:
        frame, names = take_names(
            content.set_axis(list(map(str, content.columns)), axis=1), options, []
        )
        frame = frame.drop(columns=list(options.drop))
        if frame.shape[1] == frame.shape[0] + 1:
            frame = frame.drop(columns=[c for c in frame.columns if c.lower() in LABEL_NAMES][:1])
        values = square(mirrored(frame), names)[0].to_numpy()
    values = check_matrix(values, repr(file.name))
    return NamedMatrix(
        file.name, values, check_kind(values, options.kind or "auto", file.name, "--kind")
    )
