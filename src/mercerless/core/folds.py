"""Make folds and hold-outs: shuffled, balanced over classes, with copies and groups of items always on one side."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length, column_or_1d

from mercerless.core.memory import row_blocks
from mercerless.core.validation import check_random_state, check_readable, warn

Split = tuple[NDArray, NDArray]


def find_copies(items: Any, *, precomputed: bool = False) -> NDArray:
    """Number the distinct items in the order of their first appearance; copies have the same number.

    Vectors are copies if all features are equal, items of a precomputed matrix if their rows are equal up to rounding,
    and objects if they are equal and can be hashed, or are lists of such. All others, and rows of Dask, are distinct.
    """
    if precomputed:
        return _equal_matrix_rows(np.asarray(items))
    if isinstance(items, np.ndarray) and items.dtype != object:
        return by_appearance(_row_hashes(items))
    if hasattr(items, "dask"):
        return np.arange(len(items))
    return _numbered(_key(item) for item in items)


def _row_hashes(X: NDArray) -> NDArray:
    """64 bits per row, computed block by block so that the data is not copied."""
    keys = np.empty(len(X), dtype=np.int64)
    for start in range(0, len(X), 4096):
        block = np.asarray(X[start : start + 4096])
        block = block + 0 if block.dtype.kind == "f" else block  # -0 becomes 0
        keys[start : start + 4096] = [hash(row.tobytes()) for row in block]
    return keys


def _numbered(keys: Iterable) -> NDArray:
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=int)


def _key(item: Any) -> Any:
    """A key that equal objects share; the identity of an object that cannot be hashed."""
    if isinstance(item, np.ndarray) and item.dtype != object:
        return item.shape, item.dtype.str, item.tobytes()
    if isinstance(item, (list, tuple)):
        return type(item).__name__, *map(_key, item)
    try:
        hash(item)
        return item if isinstance(item == item, bool) else id(item)
    except Exception:  # whatever an object's own __hash__ or __eq__ may raise
        return id(item)


def _equal_matrix_rows(K: NDArray) -> NDArray:
    """Numbers of equal rows, up to rounding: neighbors by a random projection, compared entry by entry."""
    K = np.nan_to_num(K, posinf=0.0, neginf=0.0)
    tolerance = (1e-5 if K.dtype == np.float32 else 1e-10) * np.abs(K).max(axis=1)
    values = K @ np.random.RandomState(0).uniform(0.5, 1.5, K.shape[1])
    order = np.argsort(values, kind="stable")
    first, second = order[:-1], order[1:]
    reach = 1.5 * K.shape[1] * np.maximum(tolerance[first], tolerance[second])
    near = np.flatnonzero(values[second] - values[first] <= reach)
    is_new = np.ones(len(K), dtype=bool)
    for block in row_blocks(len(near), 16.0 * K.shape[1]):
        k = near[block]
        difference = np.abs(K[first[k]] - K[second[k]])
        is_new[k + 1] = np.any(difference > tolerance[first[k]][:, None], axis=1)
    numbers = np.empty(len(K), dtype=int)
    numbers[order] = np.cumsum(is_new)
    return by_appearance(numbers)


def join_groups(groups: NDArray, copies: NDArray) -> NDArray:
    """Numbers of the smallest sets that hold whole groups and whole sets of copies."""
    first, second = by_appearance(groups), by_appearance(copies)
    size = first.max() + second.max() + 2
    links = coo_array((np.ones(len(first)), (first, first.max() + 1 + second)), shape=(size, size))
    return connected_components(links, directed=False)[1][first]


def check_groups(groups: Any, n: int) -> NDArray | None:
    """The group of every item as a number from 0; None if there are no groups."""
    if groups is None:
        return None
    check_readable(groups, "groups")
    names = np.asarray(groups)
    if names.ndim == 0 or names.shape[0] != n:
        size = "a single value" if names.ndim == 0 else f"{names.shape[0]} entries"
        raise ValueError(f"groups has {size} but there are {n} items; name the group of each.")
    if names.ndim > 1 and names.shape[1:] != (1,):
        raise ValueError(f"groups has shape {names.shape}; give one group for each item.")
    names = column_or_1d(names)
    missing = np.array([name is None or name != name for name in names.tolist()])
    if missing.any():
        raise ValueError(
            f"groups is missing for {missing.sum()} items, the first is item {missing.argmax()}; "
            "give items that belong to no other a group of their own."
        )
    codes = _numbered(names.tolist())
    if codes.max() == 0:
        raise ValueError("groups has one group only; at least two are needed to hold one out.")
    return codes


def warn_of_lonely_classes(labels: NDArray, groups: NDArray) -> None:
    """Warn of classes that occur in one group only: no model has seen them when they are held out."""
    pairs = {(label, group) for label, group in zip(labels.tolist(), groups.tolist())}
    counts: dict[Any, int] = {}
    for label, _ in pairs:
        counts[label] = counts.get(label, 0) + 1
    lonely = sorted(label for label, count in counts.items() if count == 1)
    if lonely:
        names = ", ".join(repr(label) for label in lonely[:5])
        more = ", ..." if len(lonely) > 5 else ""
        warn(
            f"The items of {len(lonely)} of {len(counts)} classes ({names}{more}) are in one group "
            "each: no model has seen such a class when its items are held out, so out-of-fold "
            "figures count them as wrong, and prediction sets may leave the class out; add items "
            "of other groups, or leave the class out."
        )


#: When items come in sets of near-copies: how much farther the next item is than those of a set are from each other,
GAP = 5.0
#: the share of the links between items that may lie within the gap,
BETWEEN = 0.05
#: the share of the items that must be in such sets,
IN_SETS = 1 / 3
#: the largest share of all items that one set may hold (more is a cluster),
SET_SIZE = 0.1
#: the sets for every class that are too many to be clusters of the classes,
SETS_PER_CLASS = 3
#: and the fewest items that are checked.
FEWEST_ITEMS = 30


def warn_of_near_copies(distances: NDArray, cv: Any, n_classes: int = 1) -> None:
    """Warn if many items are near-copies of others and nothing keeps these in one fold.

    `distances` (n, n) are symmetric. Single linkage joins items by links from short to long. If the lengths
    of the links have a gap and the links below it join a third of the items or more to small sets, the sets are
    near-copies: measurements of the same thing, say, that a fold should not separate.
    """
    n = len(distances)
    is_number = cv is None or isinstance(cv, Integral)
    if not is_number or n < FEWEST_ITEMS:
        return
    tree = linkage(squareform(distances, checks=False), "single")
    lengths = tree[:, 2]
    # copies stay together by themselves; distances implied by a kernel have rounding errors
    lengths = lengths[lengths > 1e-6 * lengths[-1]]
    n_between = max(1, int(BETWEEN * len(lengths)))
    fewest = int(IN_SETS * len(lengths) / 2)  # a link joins two items at least
    ratios = (lengths[n_between:] / lengths[:-n_between])[fewest:]
    if not len(ratios) or ratios.max() < GAP:
        return
    below = fewest + int(ratios.argmax())
    threshold = np.sqrt(lengths[below] * lengths[below + n_between])
    sizes = np.bincount(fcluster(tree, threshold, "distance"))
    is_set = (sizes > 1) & (sizes <= max(2, SET_SIZE * n))
    n_sets = int(is_set.sum())
    n_in_sets = int(sizes[is_set].sum())
    if n_in_sets < IN_SETS * n or n_sets <= SETS_PER_CLASS * n_classes:
        return
    warn(
        f"{n_in_sets} of the {n} items are near-copies of others, in {n_sets} sets: most are at "
        f"least {GAP:g} times closer to those of their set than to all other items. If they "
        "are not separate cases (repeated measurements, siblings, parts of one thing), "
        "out-of-fold figures and prediction sets are far too good; pass groups to fit, one number "
        "or name per set, or a cv of your own if they are separate."
    )


def assign_folds(
    n_folds: int,
    n: int,
    *,
    labels: ArrayLike | None = None,
    together: NDArray | None = None,
    random_state: Any = None,
) -> NDArray:
    """Deal items to folds at random, each class evenly, with fold sizes as equal as possible.

    Items with the same number in `together` stay in one fold; without such sets, sizes differ by at most one, also
    within each class. A class with fewer items than folds is missing in some test parts.
    """
    random = check_random_state(random_state)
    classes = np.zeros(n, dtype=int)
    if labels is not None:
        classes = by_appearance(labels)
    sets = _set_numbers(together, n)
    sizes = np.bincount(sets, minlength=1)
    n_folds = max(1, min(n_folds, len(sizes)))
    totals = np.bincount(classes, minlength=1)
    counts = np.zeros((n_folds, len(totals)), dtype=int)
    fold_of_set = np.zeros(len(sizes), dtype=int)
    order = random.permutation(len(sizes))
    # whole sets first, the largest before the others: each to the fold with the least of its classes
    large = order[sizes[order] > 1]
    large = large[np.argsort(-sizes[large], kind="stable")]
    members = np.argsort(sets, kind="stable")
    ends = np.cumsum(sizes)
    for number in large:
        in_set = members[ends[number] - sizes[number] : ends[number]]
        of_class = np.bincount(classes[in_set], minlength=len(totals))
        fold = np.lexsort((counts.sum(axis=1), counts @ (of_class / totals)))[0]
        counts[fold] += of_class
        fold_of_set[number] = fold
    # then single items, class by class, to the fold with the fewest of the class, the smallest of several
    single = order[sizes[order] == 1]
    class_of = np.empty(len(sizes), dtype=int)
    class_of[sets] = classes
    for label in range(len(totals)):
        of_label = single[class_of[single] == label]
        slots = _lowest_slots(counts[:, label], counts.sum(axis=1), len(of_label))
        fold_of_set[of_label] = slots
        counts[:, label] += np.bincount(slots, minlength=n_folds)
    return fold_of_set[sets]


def by_appearance(labels: ArrayLike) -> NDArray:
    """Numbers of the labels in the order of their first appearance: other names of the classes change nothing."""
    _, first, codes = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def _set_numbers(together: NDArray | None, n: int) -> NDArray:
    """Numbers of the sets of items that stay together; every item by itself if there are none."""
    if together is None:
        return np.arange(n)
    return by_appearance(together)


def _lowest_slots(heights: NDArray, sizes: NDArray, n: int) -> NDArray:
    """Columns of `n` bricks, put one by one on the lowest column; ties go to the smallest fold."""
    bricks_per_column = -(-n // len(heights))  # rounded up
    level = heights.min() + bricks_per_column
    while np.maximum(level - heights, 0).sum() < n:
        level += 1
    free_slots = np.maximum(level - heights, 0)
    column = np.repeat(np.arange(len(heights)), free_slots)
    height = np.concatenate([np.arange(h, max(level, h)) for h in heights])
    lowest_first = np.lexsort((sizes[column], height))
    return column[lowest_first[:n]]


def fold_numbers(
    cv: Any,
    items: Any,
    y: Any = None,
    *,
    classify: bool = False,
    groups: Any = None,
    precomputed: bool = False,
    used: NDArray | None = None,
    random_state: Any = None,
) -> NDArray:
    """The fold that leaves out each item, as numbers from 0; every item is left out once.

    A number as `cv` (None: 5) is dealt by `assign_folds`, with copies and groups kept together and classes even; a
    splitter or an iterable of (train, test) is used as it is. `used` are the items that carry weight; `items` may be
    these alone.
    """
    if y is None:
        y = np.zeros(len(items))
    target = np.asarray(y)
    n = len(target)
    if used is None:
        used = np.arange(n)
    all_groups = groups
    if groups is not None:
        all_groups = np.asarray(groups)
        check_consistent_length(target, all_groups)
        groups = all_groups[used]
    if cv is None or isinstance(cv, Integral):
        n_folds = count_folds(cv)
        copies = find_copies(items, precomputed=precomputed)
        copies = copies if len(copies) == len(used) else copies[used]
        together = _together(copies, groups, n_folds)
        labels = target[used] if classify else None
        return assign_folds(
            n_folds, len(used), labels=labels, together=together, random_state=random_state
        )
    fold_of = np.full(n, -1)
    splitter = check_cv(cv, target, classifier=classify)
    for i, (_, test) in enumerate(splitter.split(np.zeros((n, 1)), target, all_groups)):
        if np.any(fold_of[test] >= 0):
            raise ValueError(
                "cv must hold out every row once: its test sets overlap; use for example cv=5."
            )
        fold_of[test] = i
    if np.any(fold_of[used] < 0):
        raise ValueError(
            "cv must hold out every row once: its test sets leave rows out; use for example cv=5."
        )
    return np.unique(fold_of[used], return_inverse=True)[1]


def count_folds(cv: Any) -> int:
    """How many folds a number as `cv` means."""
    if cv is not None and cv < 2:
        raise ValueError(f"cv={cv} must be at least 2 folds.")
    if cv is None:
        return 5
    return int(cv)


def distinct_items_needed(cv: Any) -> float:
    """Fewest distinct items for equal ones to be copies, which stay in one fold.

    With fewer than two for every fold, as in a table of categories, equal items are the nature of the data. A splitter
    or an iterable decides itself where each of equal items is held out: no number is enough.
    """
    if cv is None or isinstance(cv, Integral):
        return 2 * count_folds(cv)
    return np.inf


def _together(copies: NDArray, groups: NDArray | None, n_folds: int) -> NDArray | None:
    """Numbers of the sets that must stay in one fold: of copies and groups, of groups alone, or none."""
    if groups is not None:
        codes = by_appearance(groups)
        if len(codes) and codes.max() == 0:
            raise ValueError("groups has one group only; at least two are needed to hold one out.")
        joined = join_groups(codes, copies)
        return (
            joined if joined.max(initial=0) + 1 >= min(n_folds, codes.max(initial=0) + 1) else codes
        )
    n_distinct = len(np.unique(copies))
    enough = n_distinct >= distinct_items_needed(n_folds)
    return copies if enough and n_distinct < len(copies) else None


def make_folds(cv: Any, items: Any, y: ArrayLike | None = None, **options: Any) -> list[Split]:
    """Training and test items of every fold of `fold_numbers`, which has the same arguments."""
    return splits_of(fold_numbers(cv, items, y, **options))


def cv_of_rows(
    cv: Any, rows: NDArray, n: int, y: ArrayLike | None = None, *, classify: bool = False
) -> Any:
    """`cv` of n items for the items at these rows: a number stays, folds of a splitter or iterable are restricted."""
    if cv is None or isinstance(cv, Integral):
        return cv
    return splits_of(fold_numbers(cv, np.zeros(n), y, classify=classify)[rows])


def splits_of(fold_of: NDArray) -> list[Split]:
    """Training and test items of numbered folds; numbers without items are skipped."""
    return [
        (np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in np.unique(fold_of)
    ]


def hold_out(
    fraction: float,
    items: Any,
    y: Any = None,
    *,
    classify: bool = False,
    groups: Any = None,
    random_state: Any = None,
) -> Split:
    """Training and held-out items: about `fraction` of the items and of each class, copies and groups on one side.

    Two sorted arrays of item numbers, neither of them empty if there are two items or groups.
    """
    copies = find_copies(items)
    if groups is not None:
        groups = np.asarray(groups)
    sets = _set_numbers(_together(copies, groups, 2), len(copies))
    sizes = np.bincount(sets)
    first = np.unique(sets, return_index=True)[1]
    order = check_random_state(random_state).permutation(len(sizes))
    if classify:
        order = order[np.argsort(by_appearance(y)[first[order]], kind="stable")]
    is_held_out = np.zeros(len(sizes), dtype=bool)
    owed = 0.0
    for number in order:
        owed += fraction * sizes[number]
        if owed >= sizes[number] / 2:
            is_held_out[number] = True
            owed = owed - sizes[number]
    if len(sizes) > 1 and (is_held_out.all() or not is_held_out.any()):
        is_held_out[order[0]] = not is_held_out[order[0]]
    return np.flatnonzero(~is_held_out[sets]), np.flatnonzero(is_held_out[sets])


def some_rows(n: int, most: int | None, random_state: Any) -> NDArray:
    """All rows, or a random sample of them in their order."""
    if most is None or n <= most:
        return np.arange(n)
    return np.sort(check_random_state(random_state).permutation(n)[:most])


class OutOfFold(NamedTuple):
    """Predictions for training items by models that have not seen them.

    Attributes
    ----------
    rows : ndarray of int of shape (m,)
        Which training items were predicted: all of positive weight, or those of a hold-out.
    prediction : ndarray of shape (m, n_classes), (m,) or (m, n_outputs)
        Probabilities of the classes, or numbers.
    target : ndarray of shape (m,) or (m, n_outputs)
        What was given: the number of the class in ``classes_``, or numbers.
    groups : ndarray of int of shape (m,) or None
        The groups that were held out together; None if there are none.
    """

    rows: NDArray
    prediction: NDArray
    target: NDArray
    groups: NDArray | None = None
