"""Blocks of comparisons: rows x centers, with what several families need of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercerless.core.linalg import EigenFactors
from mercerless.similarity.families import (
    ClassDistances,
    Cosines,
    Embedding,
    Family,
    Gaussians,
    Neighbors,
    Profiles,
    Shares,
    Spectral,
    center,
    median_square,
)
from mercerless.spectra import as_similarities

#: Penalties of ridge regressions, relative to the matrix that they are added to.
PENALTIES = tuple(10.0**power for power in range(-5, 2))
SPECTRAL = [(mode, penalty) for mode in ("clip", "flip", "square") for penalty in PENALTIES]
NEIGHBORS = (5, 15)
CLASSES = ((1, False), (1, True), (3, False), (3, True))


@dataclass(frozen=True, eq=False)
class Block:
    """Comparisons of rows with centers, which are all training items or landmarks."""

    similarities: NDArray  # (n, m)
    squares: NDArray  # (n, m), squared distances
    weight: NDArray  # (n,), of mean one
    center_rows: NDArray  # (m,), the training row of every center; -1 if it is none, or held out
    center_own: NDArray  # (m,), similarities of the centers to themselves
    kind: str
    all_items: bool  # every training row is a center: held-out rows are not
    symmetric: bool  # and k(x, z) = k(z, x): there is a spectrum
    unit: float  # median squared distance between different items
    scale: float = (
        1.0  # by which given similarities are divided: a power of two, so that no digit is lost
    )
    is_new: bool = False  # the rows are not training rows

    @classmethod
    def of(
        cls,
        matrix: NDArray,
        own: NDArray,
        kind: str,
        *,
        weight: NDArray,
        center_rows: NDArray | None = None,
        symmetric: bool = True,
    ) -> "Block":
        """Training rows compared with centers: with each other, or with landmarks.

        `own` are comparisons of rows with themselves; centers that are not rows have their mean.
        """
        S = as_similarities(matrix, kind)
        scale = float(np.ldexp(1.0, np.frexp(np.abs(S).max())[1]))
        S = S / scale
        own = as_similarities(own, kind) / scale
        all_items = center_rows is None
        if center_rows is None:
            center_rows = np.arange(len(S))
        center_own = np.where(center_rows >= 0, own[center_rows], own.mean())
        squares = squares_of(S, own, center_own)
        if all_items:
            np.fill_diagonal(squares, 0.0)
        is_spectral = symmetric and all_items
        unit = median_square(squares, center_rows)
        return cls(
            S, squares, weight, center_rows, center_own, kind, all_items, is_spectral, unit, scale
        )

    def new(self, matrix: NDArray, own: NDArray | None) -> "Block":
        """New rows compared with the same centers; unknown comparisons with themselves are the centers' mean."""
        S = as_similarities(matrix, self.kind) / self.scale
        if own is None:
            own = np.full(len(S), self.center_own.mean())
        else:
            own = as_similarities(own, self.kind) / self.scale
        squares = squares_of(S, own, self.center_own)
        weight = np.ones(len(S))
        return replace(self, similarities=S, squares=squares, weight=weight, is_new=True)

    def beside(self, other: "Block") -> "Block":
        """The same rows with the centers of both blocks."""
        return replace(
            self,
            similarities=np.hstack([self.similarities, other.similarities]),
            squares=np.hstack([self.squares, other.squares]),
            center_rows=np.concatenate([self.center_rows, other.center_rows]),
            center_own=np.concatenate([self.center_own, other.center_own]),
            symmetric=False,
        )

    def plus(self, others: Sequence["Block"]) -> "Block":
        """The sum of the squared distances of this block and others, each relative to its unit."""
        squares = np.zeros_like(self.squares)
        for block in (self, *others):
            squares += block.squares / block.unit
        return replace(
            self,
            similarities=-0.5 * squares,
            squares=squares,
            center_own=np.zeros_like(self.center_own),
            kind="distance",
            unit=median_square(squares, self.center_rows),
            scale=1.0,
        )

    def single(self) -> "Block":
        """The same in single precision and one layout, in which models are fitted."""
        names = ("similarities", "squares", "weight", "center_own")
        arrays = {name: getattr(self, name).astype(np.float32, order="C") for name in names}
        return replace(self, **arrays)

    def split(self, train: NDArray, test: NDArray) -> tuple["Block", "Block"]:
        """The training and the held-out rows of a fold."""
        place = np.full(len(self.similarities), -1)
        place[train] = np.arange(len(train))
        center_rows = np.where(self.center_rows >= 0, place[self.center_rows], -1)
        kept = np.arange(len(center_rows))
        if self.all_items:
            kept = np.flatnonzero(center_rows >= 0)

        def part(rows: NDArray, is_new: bool) -> Block:
            return replace(
                self,
                similarities=self.similarities[np.ix_(rows, kept)],
                squares=self.squares[np.ix_(rows, kept)],
                weight=self.weight[rows] / self.weight[rows].mean(),
                center_rows=center_rows[kept],
                center_own=self.center_own[kept],
                is_new=is_new,
            )

        return part(train, False), part(test, True)

    def template(self) -> "Block":
        """The same centers without rows: what a fitted model keeps."""
        nothing = np.empty((0, len(self.center_rows)))
        return replace(self, similarities=nothing, squares=nothing, weight=np.empty(0))

    def families(self, classify: bool) -> Sequence[Family]:
        """The families of learners on these comparisons."""
        plain = [(None, penalty) for penalty in PENALTIES[:5]]
        cosines = Cosines("cosines", plain[1:])
        votes = Shares("shares", plain[:4]) if classify else cosines
        known = self.center_rows[self.center_rows >= 0]
        if len(known) > len(np.unique(known)):  # both directions
            return [votes, cosines] if classify and self.all_items else [cosines]
        profiles = [(width, penalty) for width in (1.0, 0.3) for penalty in PENALTIES[:4]]
        if classify and self.all_items:  # where the others are worth .0000 +- .0002 of log-loss
            profiles = profiles[1:4]
        powers = (2, 1) if classify else (2, 1, 0)
        gaussians = [(power, penalty) for power in powers for penalty in PENALTIES[1:5]]
        families: list[Family] = [
            Gaussians("gaussian", gaussians),
            Profiles("profiles", profiles),
            Neighbors("neighbors", NEIGHBORS),
        ]
        if self.all_items:
            families.append(votes)
        elif len(known) > 1:
            families.append(Embedding("embedding", [(1.0, one) for one in PENALTIES[:4]]))
            if classify:
                narrow = Embedding("narrow_embedding", [(3.0, one) for one in PENALTIES[:4]])
                families.append(narrow)
        if self.symmetric:
            families.append(Spectral("spectrum", SPECTRAL))
        if classify and len(known):
            families.append(ClassDistances("classes", CLASSES))
        return families

    def __len__(self) -> int:
        return len(self.similarities)

    @cached_property
    def distances(self) -> NDArray:
        """Distances of rows to centers."""
        return np.sqrt(self.squares)

    @cached_property
    def scaling(self) -> tuple[NDArray, NDArray]:
        """Mean and scale of the distances to every center."""
        share = self.weight / self.weight.sum()
        mean = share @ self.distances
        scale = np.sqrt(share @ (self.distances - mean) ** 2)
        return mean, np.where(scale > 1e-6 * mean, scale, np.inf)

    def profiles(self, scaling: tuple[NDArray, NDArray]) -> NDArray:
        """Standardized distances to the centers."""
        mean, scale = scaling
        return (self.distances - mean) / scale

    @cached_property
    def spectrum(self) -> EigenFactors:
        """Eigenvalues and eigenvectors of the centered similarities."""
        root = np.sqrt(self.weight)
        return EigenFactors.of(root[:, None] * center(self.similarities, self.weight) * root)


def squares_of(S: NDArray, row_own: NDArray, center_own: NDArray) -> NDArray:
    """``k(x, x) + k(z, z) - 2 k(x, z)``; negative ones, and what rounding leaves of a zero, are 0."""
    squares = -2.0 * S
    squares += row_own[:, None]
    squares += center_own
    rounding = 1e-15 * np.add.outer(np.abs(row_own), np.abs(center_own))
    squares[squares <= rounding] = 0.0
    return squares
