"""Make folds and hold-outs: shuffled, balanced over classes, with copies and groups of items always on one side."""

from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import check_cv

from mercerless.core.validation import check_random_state, check_readable, is_missing, warn

Split = tuple[NDArray, NDArray]


def find_copies(items: Any, *, precomputed: bool = False) -> NDArray:
    """Number the distinct items in the order of their first appearance; copies have the same number.

    Vectors are copies if all features are equal, items of a precomputed matrix if their rows are equal up to rounding,
    and objects if they are equal and can be hashed, or are lists of such. All others, and rows of Dask, are distinct.
    """
    if precomputed:
        return _equal_matrix_rows(np.asarray(items))
    if hasattr(items, "dask"):
        return np.arange(len(items))
    if isinstance(items, np.ndarray) and items.dtype.kind in "biuf":
        return by_appearance(hash((row + 0).tobytes()) for row in items)  # -0 becomes 0
    return by_appearance(map(_key, items))


def by_appearance(keys: Iterable) -> NDArray:
    """Numbers of labels in the order of their first appearance: other names change nothing."""
    seen: dict[Any, int] = {}
    keys = keys.tolist() if isinstance(keys, np.ndarray) else keys
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=int)


def _key(item: Any) -> Any:
    """A key that equal objects share; the identity of an object that cannot be hashed."""
    if isinstance(item, np.ndarray) and item.dtype != object:
        return item.shape, item.dtype.str, item.tobytes()
    if isinstance(item, (list, tuple)):
        return type(item).__name__, *map(_key, item)
    try:
        hash(item)
    except TypeError:
        return id(item)
    return item


def _equal_matrix_rows(K: NDArray) -> NDArray:
    """Numbers of rows that are equal up to rounding: so are their products with three random vectors."""
    K = np.nan_to_num(K, posinf=0.0, neginf=0.0)
    vectors = np.random.RandomState(0).uniform(0.5, 1.5, (K.shape[1], 3))
    rounding = 1e-6 if K.dtype == np.float32 else 1e-12
    reach = rounding * np.abs(K) @ vectors[:, :1]
    values = K @ vectors
    order = np.argsort(values[:, 0], kind="stable")
    steps = np.abs(np.diff(values[order], axis=0))
    is_new = np.any(steps > reach[order[1:]], axis=1)
    numbers = np.empty(len(K), dtype=int)
    numbers[order] = np.cumsum(np.r_[True, is_new])
    return by_appearance(numbers)


def join_groups(groups: NDArray, copies: NDArray) -> NDArray:
    """Numbers of the smallest sets that hold whole groups and whole sets of copies."""
    first = by_appearance(groups)
    second = by_appearance(copies) + first.max() + 1
    size = second.max() + 1
    links = coo_array((np.ones(len(first)), (first, second)), shape=(size, size))
    _, component = connected_components(links, directed=False)
    return component[first]


def check_groups(groups: Any, n: int) -> NDArray | None:
    """The group of every item as a number from 0; None if there are no groups."""
    if groups is None:
        return None
    check_readable(groups, "groups")
    array = np.asarray(groups)
    if array.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"groups has shape {array.shape} but there are {n} items; give one group for each."
        )
    names = array.ravel().tolist()
    missing = [i for i, name in enumerate(names) if is_missing(name)]
    if missing:
        raise ValueError(
            f"groups is missing for {len(missing)} items, the first is item {missing[0]}; "
            "give items that belong to no other a group of their own."
        )
    codes = by_appearance(names)
    if codes.max() == 0:
        raise ValueError("groups has one group only; at least two are needed to hold one out.")
    return codes


def warn_of_lonely_classes(labels: NDArray, groups: NDArray | None, weight: NDArray) -> None:
    """Warn of classes of one item, or one group of items: no model has seen them when it is held out."""
    sets = np.arange(len(labels)) if groups is None else groups
    labels, sets = labels[weight > 0], sets[weight > 0]
    classes = np.unique(labels).tolist()
    lonely = [label for label in classes if len(np.unique(sets[labels == label])) == 1]
    if lonely:
        warn(
            f"{len(lonely)} of {len(classes)} classes, such as {lonely[0]!r}, have one "
            f"{'item' if groups is None else 'group of items'} only: no model has seen such a class when it is "
            "held out, so out-of-fold figures count it as wrong, and prediction sets may leave it "
            "out; add items, or leave the class out."
        )


def assign_folds(
    n_folds: int,
    n: int,
    *,
    labels: Iterable | None = None,
    together: NDArray | None = None,
    random_state: Any = None,
) -> NDArray:
    """Deal items to folds at random, each class evenly, with fold sizes as equal as possible.

    Items with the same number in `together` stay in one fold; without such sets, sizes differ by at most one, also
    within each class. A class with fewer items than folds is missing in some test parts.
    """
    random = check_random_state(random_state)
    classes = np.zeros(n, dtype=int) if labels is None else by_appearance(labels)
    sets = np.arange(n) if together is None else by_appearance(together)
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
    target = np.zeros(len(items)) if y is None else np.asarray(y)
    n = len(target)
    used = np.arange(n) if used is None else used
    groups = None if groups is None else np.asarray(groups)
    if cv is None or isinstance(cv, Integral):
        n_folds = count_folds(cv)
        copies = find_copies(items, precomputed=precomputed)
        copies = copies if len(copies) == len(used) else copies[used]
        return assign_folds(
            n_folds,
            len(used),
            labels=target[used] if classify else None,
            together=_together(copies, None if groups is None else groups[used], n_folds),
            random_state=random_state,
        )
    fold_of = np.full(n, -1)
    splitter = check_cv(cv, target, classifier=classify)
    n_tests = np.zeros(n, dtype=int)
    for i, (_, test) in enumerate(splitter.split(np.zeros((n, 1)), target, groups)):
        fold_of[test] = i
        n_tests[test] += 1
    if np.any(n_tests > 1) or np.any(n_tests[used] < 1):
        problem = "overlap" if np.any(n_tests > 1) else "leave rows out"
        raise ValueError(
            f"cv must hold out every row once: its test sets {problem}; use for example cv=5."
        )
    return np.unique(fold_of[used], return_inverse=True)[1]


def count_folds(cv: Any) -> int:
    """How many folds a number as `cv` means."""
    n_folds = 5 if cv is None else int(cv)
    if n_folds < 2:
        raise ValueError(f"cv={cv} must be at least 2 folds.")
    return n_folds


def _together(copies: NDArray, groups: NDArray | None, n_folds: int) -> NDArray | None:
    """Numbers of the sets that must stay in one fold: of copies and groups, of groups alone, or none.

    With fewer than two distinct items for every fold, as in a table of categories, equal items are the nature of the
    data and no copies.
    """
    if groups is not None:
        codes = cast(NDArray, check_groups(groups, len(copies)))
        joined = join_groups(codes, copies)
        return joined if joined.max() >= min(n_folds - 1, codes.max()) else codes
    n_distinct = len(np.unique(copies))
    return copies if 2 * n_folds <= n_distinct < len(copies) else None


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


def hold_out(fraction: float, items: Any, y: Any = None, **options: Any) -> Split:
    """Training and held-out items: about `fraction` of the items and of each class, copies and groups on one side.

    Two sorted arrays of item numbers, neither of them empty if there are two items or groups. The options are those of
    `fold_numbers`.
    """
    n_folds = max(2, Fraction(fraction).limit_denominator(100).denominator)
    fold_of = fold_numbers(n_folds, items, y, **options)
    n_folds = fold_of.max() + 1
    n_held_out = np.clip(round(fraction * n_folds), 1, max(1, n_folds - 1))
    return np.flatnonzero(fold_of >= n_held_out), np.flatnonzero(fold_of < n_held_out)


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
