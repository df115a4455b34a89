"""What functions of items returned, by item: folds, grids and later fits of the same items do not compute it again."""

import pickle
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from functools import partial
from hashlib import blake2b
from threading import Lock
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercerless._memory import memory_budget

# of all stores together, 5792 items; an eighth of the memory budget where that is less
_MOST_BYTES = 2**28
_MOST_STORES = 8
# Their content says all there is to say; other objects are also told apart by identity.
_VALUES = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    tuple,
    list,
    dict,
    set,
    frozenset,
    np.ndarray,
    np.generic,
)


class PairStore:
    """Values of one function for pairs of items; the least recently used items make room for new ones."""

    def __init__(self, function: Any):
        self.function = function  # kept alive: its identity is its name
        self.places: OrderedDict[Hashable, int] = OrderedDict()
        self.items: dict[Hashable, Any] = {}  # kept alive, for those told apart by identity
        self.values = np.empty((0, 0))
        self.lock = Lock()

    def read(self, rows: list, columns: list) -> NDArray:
        """The values of all pairs, NaN where they are not known."""
        out = np.full((len(rows), len(columns)), np.nan)
        with self.lock:
            r, c = (
                np.array([self.places.get(key, -1) for key in keys]) for keys in (rows, columns)
            )
            known = np.flatnonzero(r >= 0), np.flatnonzero(c >= 0)
            out[np.ix_(*known)] = self.values[np.ix_(r[known[0]], c[known[1]])]
        return out

    def read_diagonal(self, keys: list) -> NDArray:
        """The values of items with themselves, NaN where they are not known."""
        with self.lock:
            diagonal = np.diagonal(self.values)
            return np.array(
                [diagonal[self.places[key]] if key in self.places else np.nan for key in keys]
            )

    def write(
        self, rows: list, columns: list, block: NDArray, items: Iterable[tuple[Hashable, Any]] = ()
    ) -> None:
        """Keep the values that are not NaN, if there is room for their items."""
        keys = list(dict.fromkeys([*rows, *columns]))
        capacity = most_items()
        if len(keys) > capacity:
            return
        with self.lock:
            self._make_room(keys, capacity)
            self.items.update(items)
            where = np.ix_(*([self.places[key] for key in side] for side in (rows, columns)))
            self.values[where] = np.where(np.isnan(block), self.values[where], block)

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self.places.clear()
            self.items.clear()
            self.values = np.empty((0, 0))

    def _make_room(self, keys: list, capacity: int) -> None:
        """Give every key a place, the oldest others' where there are no more."""
        new = [key for key in keys if key not in self.places]
        for key in keys:
            if key in self.places:
                self.places.move_to_end(key)
        size = len(self.values)
        free = sorted(set(range(size)) - set(self.places.values()))
        if len(free) < len(new) and size < capacity:
            grown = min(capacity, max(size + len(new) - len(free), size + size // 2))
            values = np.full((grown, grown), np.nan)
            values[:size, :size] = self.values
            self.values, free = values, [*free, *range(size, grown)]
        while len(free) < len(new):
            key, place = self.places.popitem(last=False)
            self.items.pop(key, None)
            self.values[place] = self.values[:, place] = np.nan
            free.append(place)
        self.places.update(zip(new, free))


_STORES: OrderedDict[Hashable, PairStore] = OrderedDict()
_STORES_LOCK = Lock()


def most_items() -> int:
    """How many items a store may hold."""
    return int(np.sqrt(min(_MOST_BYTES, memory_budget() // 8) / 8))


def store_of(function: Any, symmetric: bool) -> PairStore:
    """The store of a function; one for values that hold in both directions and another for those that do not."""
    key = (symmetric, _function_key(function))
    with _STORES_LOCK:
        store = _STORES.setdefault(key, PairStore(function))
        _STORES.move_to_end(key)
        others = list(_STORES)[:-1]
        while others and (
            len(_STORES) > _MOST_STORES
            or sum(s.values.nbytes for s in _STORES.values()) > _MOST_BYTES
        ):
            del _STORES[others.pop(0)]
    return store


def item_keys(items: NDArray) -> list | None:
    """What tells items from each other, by content; None where they cannot be written down."""
    try:
        return [_key(item) for item in items]
    except Exception:  # an object may refuse to be pickled in any way
        return None


def _key(item: Any) -> Hashable:
    if isinstance(item, str):
        content = b"s" + item.encode("utf-8", "surrogatepass")
    elif isinstance(item, np.ndarray) and item.dtype != object:
        content = f"{item.dtype.str}{item.shape}".encode() + np.ascontiguousarray(item).tobytes()
    else:
        content = pickle.dumps(item, protocol=5)
    digest = blake2b(content, digest_size=16).digest()
    by_value = type(item) in _VALUES or type(item).__module__.startswith(("numpy", "pandas"))
    return digest if by_value else (digest, id(item))


def kept_items(keys: list, items: NDArray) -> list[tuple[Hashable, Any]]:
    """The items whose keys hold their identity, so that no other object can take it."""
    return [(key, item) for key, item in zip(keys, items) if isinstance(key, tuple)]


def _function_key(function: Any) -> Hashable:
    """What tells functions apart: the identity of plain ones; parts and contents of those that cloning copies."""
    if isinstance(function, partial):
        return (
            "partial",
            _function_key(function.func),
            _content((function.args, function.keywords)),
        )
    if isinstance(function, MethodType):
        return ("method", id(function.__func__), _content(function.__self__))
    if isinstance(function, (FunctionType, BuiltinFunctionType, type)):
        return ("function", id(function))
    return ("object", id(type(function)), _content(function))


def _content(thing: Any) -> Hashable:
    """A digest of an object; its identity where it cannot be written down."""
    try:
        return blake2b(pickle.dumps(thing, protocol=5), digest_size=16).digest()
    except Exception:  # an object may refuse to be pickled in any way
        return id(thing)
