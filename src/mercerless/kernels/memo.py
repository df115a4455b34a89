"""What functions of items returned, by item: folds, grids and later fits of the same items do not compute it again.

A function may depend on more than its two items: on globals, a closure, the attributes of an object. So values are kept
together with a fingerprint of all that can be reached from the function, and are forgotten when it changes. What has no
fingerprint is not kept at all.
"""

import functools
import os
import pickle
import site
import sys
import sysconfig
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercerless.core.memory import memory_budget

# of all stores together, 5792 items; an eighth of the memory budget if that is less
_MOST_BYTES = 2**28
_MOST_FUNCTIONS = 8
# Types of these modules are told apart by their content alone, others also by identity.
_BY_VALUE = frozenset(
    {"builtins", "collections", "datetime", "decimal", "fractions", "numpy", "pandas"}
)
_NUMBERS_AND_TEXT = "biufcmMSU"  # kinds of arrays whose dtype, shape and bytes say all
# folders of Python and of installed packages
_LIBRARIES = tuple(
    str(Path(folder)) + os.sep
    for folder in {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        site.getusersitepackages(),
    }
)
_LruCache = type(functools.lru_cache(len))
# set by Python itself, some of them only when a class is first used
_CLASS_INTERNALS = frozenset(
    {
        "__annotations__",
        "__dict__",
        "__doc__",
        "__module__",
        "__slotnames__",
        "__weakref__",
        "_abc_impl",
    }
)


class PairStore:
    """Values of one function for pairs of items; the least recently used items make room for new ones."""

    def __init__(self) -> None:
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
            self.values = values
            free = [*free, *range(size, grown)]
        while len(free) < len(new):
            key, place = self.places.popitem(last=False)
            self.items.pop(key, None)
            self.values[place] = self.values[:, place] = np.nan
            free.append(place)
        self.places.update(zip(new, free))


class Memory:
    """What one function returned, as long as all that it depends on is the same."""

    def __init__(self, function: Any):
        self.function = function  # kept alive: its identity is its name
        self.state: bytes | None = None
        self.stores: dict[Hashable, PairStore] = {}

    def store(self, *kind: Hashable) -> PairStore:
        """The store of values of this kind, such as those that hold in both directions."""
        return self.stores.setdefault(kind, PairStore())

    def clear(self) -> None:
        """Forget everything."""
        for store in list(self.stores.values()):
            store.clear()

    def n_bytes(self) -> int:
        """Size of all values."""
        return sum(store.values.nbytes for store in list(self.stores.values()))


_MEMORIES: OrderedDict[Hashable, Memory] = OrderedDict()
_MEMORIES_LOCK = Lock()


def most_items() -> int:
    """How many items a store may hold."""
    return int(np.sqrt(min(_MOST_BYTES, memory_budget() // 8) / 8))


def memory_of(function: Any) -> Memory:
    """The memory of a function; those of the least recently used functions make room for new ones."""
    key = _function_key(function)
    with _MEMORIES_LOCK:
        memory = _MEMORIES.setdefault(key, Memory(function))
        _MEMORIES.move_to_end(key)
        others = list(_MEMORIES)[:-1]
        while others and (
            len(_MEMORIES) > _MOST_FUNCTIONS
            or sum(each.n_bytes() for each in _MEMORIES.values()) > _MOST_BYTES
        ):
            del _MEMORIES[others.pop(0)]
    return memory


@contextmanager
def remembering(function: Any) -> Iterator[Memory | None]:
    """Memory for calls of a function, empty if anything it depends on has changed since the last; None if unknown.

    What the function itself changes while it is called here (a counter, a random generator) does not count.
    """
    state = state_of(function)
    if state is None:
        yield None
        return
    memory = memory_of(function)
    if memory.state != state:
        memory.clear()
    try:
        yield memory
    finally:
        memory.state = state_of(function)


def item_keys(items: NDArray) -> list | None:
    """What tells items from each other, by content; None if one cannot be written down."""
    try:
        return [_key(item) for item in items]
    except Exception:  # an object may refuse to be pickled in any way
        return None


def _key(item: Any) -> Hashable:
    """Digest of an item, together with the identities of objects in it whose content may not be all there is."""
    if type(item) in (str, np.str_):
        return _digest(b"s" + item.encode("utf-8", "surrogatepass"))
    if type(item) is np.ndarray and item.dtype.kind in _NUMBERS_AND_TEXT:
        kind = f"{item.dtype.str}{item.shape}".encode()
        return _digest(kind + np.ascontiguousarray(item).tobytes())
    writer = _Writer(with_classes=False)
    digest = writer.digest(item)
    return (digest, *writer.identities) if writer.identities else digest


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


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
    """A digest of an object; its identity if it cannot be written down."""
    try:
        return _digest(pickle.dumps(thing, protocol=5))
    except Exception:  # an object may refuse to be pickled in any way
        return id(thing)


def state_of(function: Any) -> bytes | None:
    """Fingerprint of a function and of all that can be reached from it; None if something cannot be written down.

    Out of reach are files, state inside compiled code, the settings of installed packages, and names that are looked up
    with `getattr` or `globals`.
    """
    try:
        return _Writer(with_classes=True).digest(function)
    except Exception:  # an object may refuse to be pickled in any way
        return None


class _Sink:
    """A file that keeps only the digest of what is written."""

    def __init__(self) -> None:
        self.hash = blake2b(digest_size=16)

    def write(self, content: Any) -> None:
        """Take what pickle writes."""
        self.hash.update(content)


class _Writer(pickle.Pickler):
    """Writes objects to be compared, never to be read again.

    pickle writes functions and classes by name. This writes those outside installed packages with their content: code,
    defaults, closure and the globals that the code names; with `with_classes`, the attributes of classes.
    """

    def __init__(self, *, with_classes: bool):
        self.with_classes = with_classes
        self.identities: list[int] = []  # of objects that are not told apart by content alone
        self.plain: set[type] = set()  # types met before that pickle writes well, for speed
        self.sink = _Sink()
        super().__init__(self.sink, protocol=5)

    def digest(self, thing: Any) -> bytes:
        """Digest of an object."""
        self.dump(thing)
        return self.sink.hash.digest()

    def reducer_override(self, thing: Any) -> Any:
        """What is written of an object: a stub, its name, and its content, which may refer to the object itself."""
        if type(thing) in self.plain:
            return NotImplemented
        if isinstance(thing, FunctionType):
            if _is_installed(thing.__module__):
                return NotImplemented
            return _stub, ("function", thing.__qualname__), _parts(thing)
        if isinstance(thing, type):
            if not self.with_classes or _is_installed(thing.__module__):
                return NotImplemented
            attributes = {k: v for k, v in vars(thing).items() if k not in _CLASS_INTERNALS}
            return _stub, ("class", thing.__qualname__), (thing.__bases__, attributes)
        if isinstance(thing, CodeType):
            names = (thing.co_names, thing.co_varnames, thing.co_freevars)
            return _stub, ("code", thing.co_code, *names), thing.co_consts
        if isinstance(thing, ModuleType):
            if not _is_installed(thing.__name__):
                raise pickle.PicklingError("which attributes matter is unknown")
            return _stub, ("module", thing.__name__)
        if isinstance(thing, (staticmethod, classmethod)):
            return _stub, (type(thing).__name__,), thing.__func__
        if isinstance(thing, property):
            return _stub, ("property",), (thing.fget, thing.fset, thing.fdel)
        if isinstance(thing, (GetSetDescriptorType, MemberDescriptorType)):
            return _stub, ("slot", thing.__name__)
        if isinstance(thing, MappingProxyType):
            return _stub, ("mapping",), dict(thing)
        if isinstance(thing, _LruCache):
            return _stub, ("lru_cache",), thing.__wrapped__
        kind = type(thing)
        is_by_value = kind.__module__.partition(".")[0] in _BY_VALUE
        if not is_by_value:
            self.identities.append(id(thing))
        if _chooses_its_pickle(kind):  # and may leave something out
            content = getattr(thing, "__dict__", None)
            return _stub, ("object", kind), (content, thing.__reduce_ex__(5))
        if is_by_value:
            self.plain.add(kind)
        return NotImplemented


def _stub(*name: Any) -> None:
    """Stands for what pickle would call to make the object again."""


def _parts(function: FunctionType) -> tuple:
    """All that the values of a function can depend on, as far as its code names it."""
    code = function.__code__
    names = _names(code)
    closure = [_cell_content(cell) for cell in function.__closure__ or ()]
    reached = {name: function.__globals__[name] for name in names if name in function.__globals__}
    return (
        code,
        function.__defaults__,
        function.__kwdefaults__,
        function.__dict__,
        [_attributes(value, names) for value in closure],
        {name: _attributes(value, names) for name, value in reached.items()},
    )


def _names(code: CodeType) -> list[str]:
    """Names that code, and the code inside it, looks up: globals and attributes, sorted."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return sorted({*code.co_names, *(name for names in inner for name in names)})


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def _attributes(value: Any, names: list[str], seen: tuple = ()) -> Any:
    """The named attributes of a module of the user and of modules inside it; any other value as it is."""
    if not isinstance(value, ModuleType) or _is_installed(value.__name__):
        return value
    if value in seen:
        return value.__name__
    found = {name: vars(value)[name] for name in names if name in vars(value)}
    return {name: _attributes(each, names, (*seen, value)) for name, each in found.items()}


def _is_installed(name: str | None) -> bool:
    """Whether a module belongs to Python, to this package or to an installed one."""
    if name is None or name == "__main__":
        return False
    package = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:  # compiled into Python, or made in memory
        return package in sys.stdlib_module_names
    return package == "mercerless" or file.startswith(_LIBRARIES)


def _chooses_its_pickle(kind: type) -> bool:
    """Whether a class of the user defines itself what is pickled of its objects."""
    own = [vars(base) for base in kind.__mro__ if not _is_installed(base.__module__)]
    hooks = ("__reduce__", "__reduce_ex__", "__getstate__")
    return any(hook in attributes for attributes in own for hook in hooks)
