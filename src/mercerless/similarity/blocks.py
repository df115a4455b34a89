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
    Rows,
    Shares,
    Spectral,
    center,
)
from mercerless.spectra import as_similarities

#: Penalties of ridge regressions, relative to the matrix that they are added to.
PENALTIES = tuple(10.0**power for power in range(-5, 2))


@dataclass(frozen=True, eq=False)
class Block:
    """Comparisons of rows with centers, which are all training items or landmarks."""

    similarities: NDArray  # (n, m)
    squares: NDArray  # (n, m), squared distances
    weight: NDArray  # (n,), of mean one
    center_rows: NDArray  # (m,), the training row of every center; -1 if it is none, or held out
    center_own: NDArray  # (m,), similarities of the centers to themselves
    kind: str
    all_items: bool  # every training row is a center: held-out rows are no centers
    symmetric: bool  # and k(x, z) = k(z, x): there is a spectrum
    scale: float = (
        1.0  # by which given similarities are divided: a power of two, so that no digit is lost
    )
    is_new: bool = False  # rows are no training rows

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

        `own` are comparisons of rows with themselves, of which centers that are no rows have the mean.
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
        return cls(S, squares, weight, center_rows, center_own, kind, all_items, is_spectral, scale)

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

    def plus(self, others: Sequence["Block"], units: Sequence[float]) -> "Block":
        """The sum of the squared distances of this block and others, each relative to its unit."""
        squares = np.zeros_like(self.squares)
        for block, unit in zip((self, *others), units):
            squares += block.squares / unit
        return replace(
            self,
            similarities=-0.5 * squares,
            squares=squares,
            center_own=np.zeros(len(self.center_own)),
            kind="distance",
            scale=1.0,
        )

    def split(self, train: NDArray, test: NDArray) -> tuple["Block", "Block"]:
        """The training and the held-out rows of a fold, in single precision: folds only choose and weigh."""
        place = np.full(len(self.similarities), -1)
        place[train] = np.arange(len(train))
        center_rows = np.where(self.center_rows >= 0, place[self.center_rows], -1)
        kept = np.arange(len(center_rows))
        if self.all_items:
            kept = np.flatnonzero(center_rows >= 0)

        def part(rows: NDArray, is_new: bool) -> Block:
            weight = self.weight[rows] / self.weight[rows].mean()
            return replace(
                self,
                similarities=self.similarities[np.ix_(rows, kept)].astype(np.float32),
                squares=self.squares[np.ix_(rows, kept)].astype(np.float32),
                weight=weight.astype(np.float32),
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
        some = PENALTIES[1:4]
        few = PENALTIES[:4]
        votes = Shares("shares", few) if classify else Cosines("cosines", PENALTIES[1:5])
        known = self.center_rows[self.center_rows >= 0]
        if len(known) > len(np.unique(known)):  # both directions
            cosines = Cosines("cosines", PENALTIES[1:5])
            return [votes, cosines] if classify and self.all_items else [cosines]
        families: list[Family] = [
            Rows("rows", some),
            Gaussians("gaussian", some),
            Gaussians("gaussian", some, power=1),
            Profiles("profiles", few),
            Neighbors("neighbors"),
        ]
        if self.all_items:
            families.append(votes)
        elif len(known) > 1:
            families.append(Embedding("embedding", few))
        if not (self.all_items and classify):
            families.append(Profiles("profiles", few, width=0.3))
        if self.symmetric:
            families += [Spectral(name, PENALTIES) for name in ("clip", "flip", "square")]
        if classify and len(known):
            families.append(ClassDistances("classes"))
        return families

    def __len__(self) -> int:
        return len(self.similarities)

    @cached_property
    def distances(self) -> NDArray:
        """Distances of rows to centers."""
        return np.sqrt(self.squares)

    @cached_property
    def unit(self) -> float:
        """Median squared distance between different items."""
        is_other = np.arange(len(self))[:, None] != self.center_rows
        others = self.squares[is_other]
        if not len(others):
            return 1.0
        return float(np.median(others) or others.mean() or 1.0)

    @cached_property
    def scaling(self) -> tuple[NDArray, NDArray]:
        """Mean and scale of the distances to every center."""
        share = self.weight / self.weight.sum()
        mean = share @ self.distances
        scale = np.sqrt(share @ (self.distances - mean) ** 2)
        return mean, np.where(scale > 1e-6 * mean, scale, np.inf)

    @cached_property
    def rows(self) -> NDArray:
        """Standardized distances to the centers, the profile of an item."""
        mean, scale = self.scaling
        return (self.distances - mean) / scale

    @cached_property
    def products(self) -> NDArray:
        """Inner products of the profiles."""
        return self.rows @ self.rows.T

    @cached_property
    def spectrum(self) -> EigenFactors:
        """Eigenvalues and eigenvectors of the centered similarities."""
        root = np.sqrt(self.weight)
        return EigenFactors.of(root[:, None] * center(self.similarities, self.weight) * root)


def squares_of(S: NDArray, row_own: NDArray, center_own: NDArray) -> NDArray:
    """``k(x, x) + k(z, z) - 2 k(x, z)``; negative ones, and what rounding leaves of a zero, are 0."""
    squares = row_own[:, None] + center_own - 2.0 * S
    rounding = 1e-15 * (np.abs(row_own)[:, None] + np.abs(center_own))
    squares[squares <= rounding] = 0.0
    return squares
