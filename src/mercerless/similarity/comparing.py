"""From items to blocks of comparisons, in training and for new items: one similarity of an estimator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from mercerless.core.basis import Basis, MatrixBasis, is_precomputed, make_basis
from mercerless.core.blocks import map_rows
from mercerless.core.estimator import GroupedPredictor, check_diagonal
from mercerless.core.memory import check_memory, format_bytes, memory_budget
from mercerless.core.validation import (
    check_option,
    check_random_state,
    check_real,
    check_square,
    check_symmetric,
    is_dask,
    is_rounding,
    relative_asymmetry,
    warn,
)
from mercerless.kernels import Precomputed
from mercerless.kernels.local import center_bandwidths
from mercerless.similarity.blocks import Block
from mercerless.similarity.hits import HitBlock
from mercerless.spectra import KINDS, check_kind, check_kind_of_kernel


@dataclass(frozen=True)
class SimilarityLimits:
    """When ``landmarks="auto"`` compares with landmarks only, and what a fit needs."""

    #: More items are compared with landmarks only.
    all_items: int = 5000
    #: Landmarks, if there are three times as many items.
    landmarks: int = 400
    #: Matrices of all items in double precision that are held at once.
    matrices: float = 12.0


LIMITS = SimilarityLimits()
DIRECTIONS = ("symmetric", "mean", "both", "rows")


class NewItems(NamedTuple):
    """New items as one similarity reads them."""

    items: Any
    back: Any  # the other direction; None if it is not needed, or computed
    own: NDArray | None  # comparisons with themselves, as they were given

    def take(self, rows: slice) -> "NewItems":
        """Some of the rows."""
        back = None if self.back is None else self.back[rows]
        own = None if self.own is None else self.own[rows]
        return NewItems(self.items[rows], back, own)


class ComparesItems(GroupedPredictor):
    """An estimator that turns items into blocks of comparisons.

    `_training_blocks` compares training items, `_check_new` and `_new_blocks` compare new ones with the same centers.
    """

    kind: Any
    direction: str
    landmarks: Any
    random_state: Any
    kind_: str
    landmarks_: NDArray | None
    _templates: dict[str, Any]  # blocks without rows
    _basis: Basis | None = None
    unit_: float | None  # of sparse distances
    _used: NDArray  # positions of the training hits that carry weight

    # training

    def _training_blocks(self, X: Any, weight: NDArray) -> tuple[dict[str, Any], dict[str, Any]]:
        """Blocks of the rows that carry weight, and the attributes with which new rows are compared."""
        check_option("direction", self.direction, DIRECTIONS)
        check_option("kind", self.kind, ("auto", *KINDS))
        if issparse(X) and is_precomputed(self.kernel):
            return self._training_hits(X, weight)
        kernel, items = self._train_items(X, weight)
        if not is_precomputed(kernel):
            check_kind_of_kernel(kernel, self.kind)
            if center_bandwidths(kernel):
                raise ValueError(
                    "The kernel has bandwidths for every training item, and new items have none; "
                    "use one bandwidth per feature, or AsymmetricRidge, which needs none of new "
                    "items."
                )
        check_consistent_length(items, weight)
        if is_precomputed(self.kernel) and self._columns_are_landmarks(items):
            return self._with_given_columns(kernel, items, weight)
        basis = make_basis(kernel, items, weight)
        landmarks = self._landmark_positions(basis)
        if landmarks is None:
            return self._with_all_items(basis, weight[basis.rows])
        return self._with_landmarks(basis, landmarks, weight[basis.rows])

    def _with_all_items(self, basis: Basis, weight: NDArray) -> tuple[dict, dict]:
        """All items compared with each other."""
        check_memory(
            full_need(len(basis)),
            f"The comparison of {len(basis)} items with each other",
            remedy="set landmarks, or use fewer rows",
        )
        matrix = check_square(basis.matrix(), basis.matrix_name)
        mean = matrix
        if self.direction == "symmetric":
            mean = matrix = check_symmetric(matrix, basis.matrix_name)
        elif self.direction != "rows":
            mean = (matrix + matrix.T) / 2.0
        kind = check_kind(mean, self.kind, basis.matrix_name)
        blocks = directed_blocks(
            matrix, matrix.T, np.diagonal(matrix), kind, self.direction, weight
        )
        return blocks, self._attributes(blocks, basis.fitted(), kind, None)

    def _with_landmarks(
        self, basis: Basis, landmarks: NDArray, weight: NDArray
    ) -> tuple[dict, dict]:
        """All items compared with some of them."""
        n = len(basis)
        check_memory(
            8.0 * n * (6.0 * len(landmarks) + 2500.0),
            f"The comparison of {n} items with {len(landmarks)} landmarks",
            remedy="use fewer landmarks or rows",
        )
        fitted = basis.fitted(landmarks)
        if isinstance(basis, MatrixBasis):
            there = basis.items[:, landmarks]
            back = basis.items[landmarks].T
            own = np.diagonal(basis.items)
        else:
            centers = fitted.items
            m = len(landmarks)
            there = compare_rows(lambda rows: fitted.kernel(rows, centers), basis.items, m)
            back = there
            if self._needs_back:
                back = compare_rows(lambda rows: fitted.kernel(centers, rows).T, basis.items, m)
            own = compare_rows(fitted.kernel.diag, basis.items, None)
        of_landmarks = there[landmarks]
        if self.direction == "symmetric":
            of_landmarks = check_symmetric(of_landmarks, basis.matrix_name)
        kind = check_kind(of_landmarks, self.kind, basis.matrix_name)
        blocks = directed_blocks(there, back, own, kind, self.direction, weight, landmarks)
        return blocks, self._attributes(blocks, fitted, kind, basis.rows[landmarks])

    def _with_given_columns(self, kernel: Any, C: Any, weight: NDArray) -> tuple[dict, dict]:
        """Rows compared with landmarks, which are the columns of X."""
        if self.direction not in ("symmetric", "rows"):
            raise ValueError(
                f"direction={self.direction!r} needs both directions of all pairs, but the columns "
                "of X are landmarks; pass the square matrix, or direction='rows'."
            )
        C = check_real(C.compute() if is_dask(C) else C)
        n, m = C.shape
        rows = np.full(m, -1)
        if not isinstance(self.landmarks, str):
            rows = check_positions(self.landmarks, n, m)
        used = np.flatnonzero(weight)
        known = rows >= 0
        of_landmarks = C[np.ix_(rows[known], np.flatnonzero(known))]
        if known.sum() > 1:
            if not is_rounding(relative_asymmetry(of_landmarks), C.dtype):
                raise ValueError(
                    "The columns of X do not match landmarks: comparisons of landmarks with each "
                    "other are not symmetric; name the training row of every column, -1 for none."
                )
            kind = check_kind(of_landmarks, self.kind)
        elif self.kind == "auto":
            raise ValueError(
                "Cannot infer whether X holds similarities or distances, because its landmarks "
                "are not among its rows; pass kind='similarity', 'distance' or 'dissimilarity'."
            )
        else:
            kind = self.kind
        place = np.full(n, -1)
        place[used] = np.arange(len(used))
        own = np.zeros(n)
        if known.any():
            own_of_known = np.diagonal(of_landmarks)
            own[:] = own_of_known.mean()
            own[rows[known]] = own_of_known
        elif kind == "similarity":
            own[:] = C.max()
        center_rows = np.where(known, place[rows], -1)
        weight = weight[used] / weight[used].mean()
        block = Block.of(C[used], own[used], kind, weight=weight, center_rows=center_rows)
        basis = MatrixBasis(kernel, None, np.arange(m), m)
        blocks = {"": block.single()}
        return blocks, self._attributes(blocks, basis, kind, rows)

    def _training_hits(self, X: Any, weight: NDArray) -> tuple[dict, dict]:
        """Hits of the items that carry weight among each other."""
        self._forget_columns()
        hits = check_hits(X, "X")
        n = len(weight)
        if hits.shape != (n, n):
            raise ValueError(
                f"X has shape {hits.shape} but y {n} items; give one row and one column per "
                "training item (new items have rows of their own in predict)."
            )
        kind = kind_of_hits(hits, self.kind)
        used = np.flatnonzero(weight)
        hits = without_diagonal(csr_array(hits[used][:, used]))
        unit = 1.0
        if kind == "distance" and hits.nnz:
            unit = float(np.median(hits.data)) or 1.0
        hits = hit_similarities(hits, kind, unit)
        if not hits.nnz:
            raise ValueError(
                "X has no hits among the items that carry weight, so that there is nothing to "
                "learn from; the diagonal does not count."
            )
        if self.direction == "symmetric" and abs(hits - hits.T).max() > 1e-8 * hits.max():
            raise ValueError(
                "X is not symmetric: hits in one direction differ from those in the other; pass "
                "direction='rows' if new items have hits of their own only, or 'both'."
            )
        if self.direction == "mean":
            hits = csr_array((hits + hits.T) / 2.0)
        back = csr_array(hits.T) if self.direction == "both" else None
        block = HitBlock.of(hits, back, weight[used] / weight[used].mean())
        warn_of_items_without_hits(block, "training items")
        attributes = {
            "kernel_": Precomputed(),
            "kind_": kind,
            "X_fit_": None,
            "landmarks_": None,
            "unit_": unit if kind == "distance" else None,
            "n_features_in_": n,
            "_used": used,
            "_templates": {"": block},
        }
        return {"": block}, attributes

    def _attributes(
        self, blocks: Mapping[str, Block], basis: Basis, kind: str, landmarks: NDArray | None
    ) -> dict[str, Any]:
        return {
            "kernel_": basis.kernel,
            "kind_": kind,
            "X_fit_": basis.kept,
            "landmarks_": landmarks,
            "_basis": basis,
            "_templates": {name: block.template() for name, block in blocks.items()},
        }

    # landmarks

    @property
    def _names_columns(self) -> bool:
        """Whether landmarks are the columns of X: "columns", or their row numbers."""
        return isinstance(self.landmarks, (list, tuple, np.ndarray)) or (
            isinstance(self.landmarks, str) and self.landmarks == "columns"
        )

    @property
    def _streams(self) -> bool:  # type: ignore[override]
        return self.landmarks is not None

    @property
    def _directed(self) -> bool:  # type: ignore[override]
        return self.direction != "symmetric"

    @property
    def _needs_back(self) -> bool:
        return self.direction in ("mean", "both")

    def _columns_are_landmarks(self, X: Any) -> bool:
        """Whether the columns of a precomputed X are landmarks; raises if nothing says so."""
        is_square = X.shape[0] == X.shape[1]
        if self._names_columns and (not is_square or isinstance(self.landmarks, str)):
            return True
        if not is_square:
            raise ValueError(
                "X must be square (one row and one column per training item), not of shape "
                f"{X.shape}; if its columns are landmarks, pass landmarks='columns', or the row "
                "number of each among the training items."
            )
        return False

    def _landmark_positions(self, basis: Basis) -> NDArray | None:
        """Positions of the landmarks among the items of a basis; None for all of them."""
        n = len(basis)
        requested = self.landmarks
        if requested is None:
            return None
        if isinstance(requested, (list, tuple, np.ndarray)):
            positions = check_positions(requested, basis.n_train)
            if not np.all(np.isin(positions, basis.rows)):
                raise ValueError("landmarks names rows of weight 0; landmarks must carry weight.")
            return np.searchsorted(basis.rows, positions)
        if isinstance(requested, str):
            check_option("landmarks", requested, ("auto", "columns", None))
            reason = self._too_much(basis)
            if requested == "columns" or reason is None:
                return None
            requested = min(LIMITS.landmarks, max(1, n // 3))
            warn(
                f"{type(self).__name__} compares the {n} items with {requested} landmarks only: "
                f"{reason}. Set landmarks to a number to choose it, or to None for all comparisons."
            )
        if not isinstance(requested, (int, np.integer)) or requested < 1:
            raise ValueError(
                f"landmarks must be a positive number, row numbers, 'auto', 'columns' or None, got "
                f"{self.landmarks!r}."
            )
        if requested >= n and not is_dask(basis.items):
            return None
        random = check_random_state(self.random_state)
        return np.sort(random.permutation(n)[: int(requested)])

    def _too_much(self, basis: Basis) -> str | None:
        """Why comparing all items with each other is too much, in words; None if it is not."""
        n = len(basis)
        if is_dask(basis.items):
            return "they are not in memory"
        if n > LIMITS.all_items:
            return f"all comparisons are for up to {LIMITS.all_items} items"
        need = full_need(n)
        budget = memory_budget()
        if need > budget:
            return f"all would need {format_bytes(need)}, and the budget is {format_bytes(budget)}"
        return None

    # new items

    def _check_new(self, X: Any, diag: Any, reverse: Any) -> NewItems:
        """New items, checked."""
        check_is_fitted(self)
        is_matrix = is_precomputed(self.kernel)
        if (issparse(X) and is_matrix) or "unit_" in vars(self):
            return self._check_new_hits(X, reverse)
        items = self._test_items(X)
        back = None
        if reverse is not None:
            if not (is_matrix and self._needs_back):
                raise ValueError(
                    "reverse is for kernel='precomputed' with direction='mean' or 'both'; "
                    "otherwise it is not needed."
                )
            back = self._reverse_rows(reverse, np.shape(items))
        elif is_matrix and self._needs_back:
            raise ValueError(
                f"direction={self.direction!r} needs both directions of new items: pass the "
                "comparisons of the training items with them as reverse (one row per new item), "
                "or fit with direction='rows' if new items have one."
            )
        own = None
        if diag is not None:
            own = check_diagonal(diag, len(items))
        elif is_matrix and self.kind_ != "distance":
            self._warn_of_unknown_own()
        return NewItems(items, back, own)

    def _warn_of_unknown_own(self) -> None:
        own = next(iter(self._templates.values())).center_own
        if np.ptp(own) > 1e-8 * np.abs(own).max():
            warn(
                "The training items' comparisons with themselves differ, and those of the new "
                "items are not given: their mean is taken; pass them as diag."
            )

    def _new_blocks(self, new: NewItems) -> dict[str, Any]:
        """Blocks of new items."""
        if "unit_" in vars(self):
            return {"": self._templates[""].new(new.items, new.back)}
        basis = self._basis
        assert basis is not None
        there = basis.compare(new.items)
        back = basis.compare_back(new.items, new.back) if self._needs_back else there
        if basis.landmarks is None:
            there, back = basis.weighted(there), basis.weighted(back)
        elif new.back is not None:
            back = back[:, basis.landmarks]
        own = new.own
        if self.kind_ == "distance":
            own = np.zeros(len(there))
        elif own is None and not is_precomputed(self.kernel):
            own = self.kernel_.diag(new.items)
        templates = self._templates
        if self.direction in ("symmetric", "rows"):
            return {"": templates[""].new(there, own)}
        blocks = {"mean": templates["mean"].new((there + back) / 2.0, own)}
        if self.direction == "both":
            blocks["both"] = templates["both"].new(np.hstack([there, back]), own)
        return blocks

    def _check_new_hits(self, X: Any, reverse: Any) -> NewItems:
        """Hits of new items among the training items that carry weight."""
        if "unit_" not in vars(self):
            raise ValueError("X is sparse, but the model was fitted on dense X; pass X.toarray().")
        needs_back = self._needs_back
        if needs_back and reverse is None:
            raise ValueError(
                f"direction={self.direction!r} needs both directions of new items: pass the hits "
                "of the training items on them as reverse (one row per new item)."
            )
        if reverse is not None and not needs_back:
            raise ValueError("reverse is for direction='mean' or 'both'.")
        found = []
        for given, name in ((X, "X"), (reverse, "reverse")):
            if given is None:
                continue
            hits = check_hits(given, name)
            if hits.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"{name} has {hits.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input: one column per training item."
                )
            found.append(self._similarities_of_hits(csr_array(hits[:, self._used])))
        back = found[1] if needs_back else None
        there = found[0]
        if self.direction == "mean":
            there, back = csr_array((there + back) / 2.0), None
        warn_of_items_without_hits(self._templates[""].new(there, back), "new items")
        return NewItems(there, back, None)

    def _similarities_of_hits(self, hits: csr_array) -> csr_array:
        """Similarities of hits of new items, in the unit of the training hits."""
        return hit_similarities(hits, self.kind_, self.unit_ or 1.0)


def full_need(n: int) -> float:
    """Bytes of a fit that compares n items with each other."""
    return 8.0 * LIMITS.matrices * n**2


def directed_blocks(
    there: NDArray,
    back: NDArray,
    own: NDArray,
    kind: str,
    direction: str,
    weight: NDArray,
    landmarks: NDArray | None = None,
) -> dict[str, Block]:
    """The blocks of comparisons in both directions: one, the mean, or the mean and both side by side."""
    options: dict[str, Any] = {"weight": weight / weight.mean(), "center_rows": landmarks}
    if direction in ("symmetric", "rows"):
        is_symmetric = direction == "symmetric"
        return {"": Block.of(there, own, kind, symmetric=is_symmetric, **options).single()}
    blocks = {"mean": Block.of((there + back) / 2.0, own, kind, **options).single()}
    if direction == "both":
        one, other = (
            Block.of(part, own, kind, symmetric=False, **options) for part in (there, back)
        )
        blocks["both"] = one.beside(other).single()
    return blocks


def compare_rows(function: Callable, items: Any, n_columns: int | None) -> NDArray:
    """``function(items)``, chunk by chunk for a Dask array."""
    if not is_dask(items):
        return function(items)
    width = items.shape[1] + (n_columns or 1)
    return map_rows(function, items, 16.0 * width, n_columns=n_columns).compute()


def check_positions(positions: ArrayLike, n: int, number: int | None = None) -> NDArray:
    """Distinct row numbers of landmarks; with a `number` one for each column, -1 for columns that are not rows."""
    rows = np.asarray(positions)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise ValueError("landmarks as a list must hold row numbers of the training items.")
    if number is not None and len(rows) != number:
        raise ValueError(
            f"landmarks names {len(rows)} landmarks but X has {number} columns; every column is "
            "the comparison with one landmark."
        )
    smallest = 0 if number is None else -1
    if rows.min() < smallest or rows.max() >= n:
        wrong = rows.max() if rows.max() >= n else rows.min()
        raise ValueError(f"landmarks names row {wrong} of {n} items.")
    known = rows[rows >= 0]
    if len(np.unique(known)) < len(known):
        row = np.flatnonzero(np.bincount(known) > 1)[0]
        raise ValueError(f"landmarks names row {row} twice; landmarks must be different items.")
    return rows if number is not None else np.sort(rows)


def check_hits(X: Any, name: str) -> csr_array:
    """Hits as a sparse array of finite, nonnegative float64 without duplicates; nothing of the user's is changed."""
    if not issparse(X):
        raise TypeError(
            f"{name} must be a sparse array of hits (scipy.sparse), got {type(X).__name__}."
        )
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a sparse array of real numbers with two dimensions, got {X.ndim} of "
            f"{X.dtype}."
        )
    hits = csr_array(X, dtype=np.float64, copy=True)
    hits.sum_duplicates()
    n_repeated = X.nnz - hits.nnz
    if n_repeated:
        warn(
            f"{name} lists {n_repeated} hits of pairs that it has already; the values of a pair "
            "are added, as scipy does. Keep the best hit of each pair."
        )
    if not np.all(np.isfinite(hits.data)):
        raise ValueError(
            f"{name} has entries that are not finite (NaN or infinity); leave unknown pairs out."
        )
    if np.any(hits.data < 0.0):
        raise ValueError(
            f"{name} has negative entries; hits need scores that grow from zero, such as bit "
            "scores, or distances with kind='distance'."
        )
    return hits


def kind_of_hits(hits: csr_array, kind: str) -> str:
    """The kind as given; "auto" means similarities, and raises if a stored diagonal is smallest in most rows."""
    if kind == "dissimilarity":
        raise ValueError("Hits are similarities or distances; pass kind='distance'.")
    if kind != "auto":
        return kind
    rows = np.repeat(np.arange(hits.shape[0]), np.diff(hits.indptr))
    is_own = rows == hits.indices
    smallest = np.full(hits.shape[0], np.inf)
    np.minimum.at(smallest, rows[~is_own], hits.data[~is_own])
    own = hits.data[is_own]
    if np.sum(own < smallest[rows[is_own]]) > hits.shape[0] / 2:
        raise ValueError(
            "X is smallest on the diagonal, as distances are; pass kind='distance', or "
            "kind='similarity' if these are similarities without a diagonal."
        )
    return "similarity"


def without_diagonal(hits: csr_array) -> csr_array:
    """Hits of other items: an item is never a hit of its own."""
    rows = np.repeat(np.arange(hits.shape[0]), np.diff(hits.indptr))
    kept = rows != hits.indices
    return csr_array((hits.data[kept], (rows[kept], hits.indices[kept])), shape=hits.shape)


def hit_similarities(hits: csr_array, kind: str, unit: float) -> csr_array:
    """Similarities of hits: distances become ``exp(-(d / unit)^2)``; similarities of 0 are left out."""
    if kind == "distance":
        values = np.maximum(np.exp(-((hits.data / unit) ** 2)), np.finfo(float).tiny)
        return csr_array((values, hits.indices, hits.indptr), shape=hits.shape)
    hits.eliminate_zeros()
    return hits


def warn_of_items_without_hits(block: HitBlock, what: str) -> None:
    """Warn if some items have no hits."""
    alone = np.flatnonzero(block.views["hits"].counts == 0).tolist()
    if alone:
        listed = ", ".join(map(str, alone[:5])) + (", ..." if len(alone) > 5 else "")
        warn(
            f"{len(alone)} of {len(block)} {what} have no hits ({listed}); they are predicted by the "
            "average over all items."
        )
