"""Memory for functions of two items: folds, grids and later fits of the same items do not compute a value again.

A function may depend on more than its two items: on globals, a closure, the attributes of an object. So values are kept
together with a fingerprint of everything that can be reached from the function, and are forgotten if it changes. Values
of functions without a fingerprint are not kept.
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
from inspect import CO_VARARGS, CO_VARKEYWORDS
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

from mercerless.core.memory import memory_budget, row_blocks

_LruCache = type(functools.lru_cache(len))


class PairStore:
    """Values of one function for pairs of items; the least recently used items make room for new ones."""

    def __init__(self) -> None:
        self.places: OrderedDict[Hashable, int] = OrderedDict()
        self.items: dict[Hashable, Any] = {}  # kept alive, if their identity is part of the key
        self.values = np.empty((0, 0))
        self.lock = Lock()

    def read(self, rows: list, columns: list) -> NDArray | None:
        """The values of all pairs, NaN if unknown; None if all are."""
        with self.lock:
            row_places = np.array([self.places.get(key, -1) for key in rows])
            column_places = np.array([self.places.get(key, -1) for key in columns])
            i = np.flatnonzero(row_places >= 0)
            j = np.flatnonzero(column_places >= 0)
            if not len(i) or not len(j):
                return None
            known = self.values[np.ix_(row_places[i], column_places[j])]
        if known.shape == (len(rows), len(columns)):
            return known
        out = np.full((len(rows), len(columns)), np.nan)
        out[np.ix_(i, j)] = known
        return out

    def read_diagonal(self, keys: list) -> NDArray:
        """The values of items with themselves, NaN if unknown."""
        out = np.full(len(keys), np.nan)
        with self.lock:
            for k, key in enumerate(keys):
                if key in self.places:
                    place = self.places[key]
                    out[k] = self.values[place, place]
        return out

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
            i = np.array([self.places[key] for key in rows])
            j = np.array([self.places[key] for key in columns])
            if _are_consecutive(i) and _are_consecutive(j):  # as those of new items are
                part = self.values[i[0] : i[-1] + 1, j[0] : j[-1] + 1]
                for some in row_blocks(len(part), 9 * len(j), 2**19):
                    np.copyto(part[some], block[some], where=~np.isnan(block[some]))
            else:
                where = np.ix_(i, j)
                self.values[where] = np.where(np.isnan(block), self.values[where], block)

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self.places.clear()
            self.items.clear()
            self.values = np.empty((0, 0))

    def _make_room(self, keys: list, capacity: int) -> None:
        """Give every key a place; if there are none left, the least recently used items lose theirs."""
        new = [key for key in keys if key not in self.places]
        for key in keys:
            if key in self.places:
                self.places.move_to_end(key)
        size = len(self.values)
        free = sorted(set(range(size)) - set(self.places.values()))
        if len(free) < len(new) and size < capacity:
            grown = min(capacity, max(size + len(new) - len(free), size + size // 2))
            values = np.empty((grown, grown))
            values[:size, :size] = self.values
            values[:size, size:] = np.nan
            values[size:] = np.nan
            self.values = values
            free = [*free, *range(size, grown)]
        freed: list[int] = []
        while len(free) + len(freed) < len(new):
            key, place = self.places.popitem(last=False)
            self.items.pop(key, None)
            freed.append(place)
        freed.sort()  # next to each other, values are written faster
        self.values[freed] = np.nan
        self.values[:, freed] = np.nan
        free += freed
        self.places.update(zip(new, free))


def _are_consecutive(places: NDArray) -> bool:
    return len(places) > 0 and bool(np.all(np.diff(places) == 1))


class Memory:
    """The values of one function, and the fingerprint of everything it depended on when they were computed."""

    def __init__(self, function: Any):
        self.function = function  # kept alive, since its identity is part of the key
        self.state: bytes | None = None
        self.fingerprint: str | None = None  # of the state before the function was called here
        self.stores: dict[Hashable, PairStore] = {}

    def store(self, *kind: Hashable) -> PairStore:
        """The store of values of this kind, such as those valid in both directions."""
        return self.stores.setdefault(kind, PairStore())

    def clear(self) -> None:
        """Forget everything."""
        for store in list(self.stores.values()):
            store.clear()

    def n_bytes(self) -> int:
        """Size of all values."""
        return sum(store.values.nbytes for store in list(self.stores.values()))


class Memories:
    """The memories of all functions; those of the least recently used ones make room for new ones."""

    #: Size of all stores together, enough for 5792 items; an eighth of the memory budget if that is less.
    most_bytes = 2**28
    #: Number of functions whose values are kept.
    most_functions = 8

    def __init__(self) -> None:
        self.by_function: OrderedDict[Hashable, Memory] = OrderedDict()
        self.lock = Lock()

    def of(self, function: Any) -> Memory:
        """The memory of a function, now the most recently used one."""
        key = _function_key(function)
        with self.lock:
            memory = self.by_function.setdefault(key, Memory(function))
            self.by_function.move_to_end(key)
            while len(self.by_function) > 1 and self._is_full():
                self.by_function.popitem(last=False)
        return memory

    def _is_full(self) -> bool:
        n_bytes = sum(memory.n_bytes() for memory in self.by_function.values())
        return len(self.by_function) > self.most_functions or n_bytes > self.most_bytes


MEMORIES = Memories()


def most_items() -> int:
    """The number of items for which a store has room."""
    return int(np.sqrt(min(MEMORIES.most_bytes, memory_budget() // 8) / 8))


@contextmanager
def remembering(function: Any) -> Iterator[Memory | None]:
    """The memory of a function, emptied if anything it depends on has changed; None if that cannot be detected.

    Changes that the function itself makes while it is called here (a counter, a random generator) do not count.
    """
    state = state_of(function)
    if state is None:
        yield None
        return
    memory = MEMORIES.of(function)
    if memory.state != state:
        memory.clear()
        memory.fingerprint = fingerprint(function)
    try:
        yield memory
    finally:
        memory.state = state_of(function)


def item_keys(items: NDArray) -> list | None:
    """Keys of items, by content; None if an item cannot be written down."""
    try:
        return [_key(item) for item in items]
    except Exception:  # pickling an object may raise anything
        return None


def _key(item: Any) -> Hashable:
    """Digest of an item, with the identities of objects in it that are not determined by their content."""
    key = _plain_key(item)
    if key is not None:
        return key
    writer = _Writer(with_classes=False)
    digest = writer.digest(item)
    return (digest, *writer.identities) if writer.identities else digest


def _plain_key(item: Any) -> bytes | None:
    """Digest of a string or an array; None for anything else."""
    if type(item) in (str, np.str_):
        return _digest(b"s" + item.encode("utf-8", "surrogatepass"))
    if type(item) is np.ndarray and item.dtype.kind in "biufcmMSU":  # determined by its bytes
        kind = f"{item.dtype.str}{item.shape}".encode()
        return _digest(kind + np.ascontiguousarray(item).tobytes())
    return None


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def kept_items(keys: list, items: NDArray) -> list[tuple[Hashable, Any]]:
    """The items whose keys contain an identity, which no other object can get while they are kept alive."""
    return [(key, item) for key, item in zip(keys, items) if isinstance(key, tuple)]


def _function_key(function: Any) -> Hashable:
    """Key of a function: its identity, or the parts and contents of objects that cloning copies."""
    if isinstance(function, partial):
        arguments = _content((function.args, function.keywords))
        return ("partial", _function_key(function.func), arguments)
    if isinstance(function, MethodType):
        return ("method", id(function.__func__), _content(function.__self__))
    if isinstance(function, (FunctionType, BuiltinFunctionType, type)):
        return ("function", id(function))
    return ("object", id(type(function)), _content(function))


def _content(thing: Any) -> Hashable:
    """A digest of an object; its identity if it cannot be written down."""
    try:
        return _digest(pickle.dumps(thing, protocol=5))
    except Exception:  # pickling an object may raise anything
        return id(thing)


def state_of(function: Any) -> bytes | None:
    """Fingerprint of a function and of everything that can be reached from it; None if it cannot be written down.

    Out of reach are files, state inside compiled code, the settings of installed packages, and names that are looked up
    with `getattr` or `globals`.
    """
    try:
        return _Writer(with_classes=True).digest(function)
    except Exception:  # pickling an object may raise anything
        return None


def fingerprint(function: Any) -> str | None:
    """The state of a function as it is the same in every process; None if it cannot be written down."""
    try:
        return _StableWriter(with_classes=True).digest(function).hex()
    except Exception:  # pickling an object may raise anything
        return None


def stable_keys(items: NDArray) -> list[bytes]:
    """Keys of items by content, the same in every process; raises ValueError for items that have none."""
    keys: list[bytes] = []
    for number, item in enumerate(items):
        writer = _StableWriter(with_classes=False)
        try:
            key = _plain_key(item) or writer.digest(item)
        except Exception:  # pickling an object may raise anything
            key = None
        if key is None or writer.identities:
            raise ValueError(
                "Comparisons can be kept in a folder if items are strings, numbers, arrays or "
                f"containers of these, but item {number} is of type {type(item).__name__}; "
                "use cache=True."
            )
        keys.append(key)
    return keys


class _Sink:
    """A file that keeps only the digest of its content."""

    def __init__(self) -> None:
        self.hash = blake2b(digest_size=16)

    def write(self, content: Any) -> None:
        """Add to the digest."""
        self.hash.update(content)


class _Writer(pickle.Pickler):
    """Writes objects to be compared, never to be read again.

    pickle writes functions and classes by name. This writes those outside installed packages with their content: code,
    defaults, closure and the globals that the code names; with `with_classes`, the attributes of classes.
    """

    #: Objects of these modules are equal if their content is; others only if they are the same object.
    by_value = frozenset(
        {"builtins", "collections", "datetime", "decimal", "fractions", "numpy", "pandas"}
    )
    #: Attributes that Python itself sets, some of them only at the first use of a class.
    class_internals = frozenset(
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
    #: Parts of functions, classes and modules that pickle cannot write.
    machinery = (
        CodeType,
        ModuleType,
        staticmethod,
        classmethod,
        property,
        GetSetDescriptorType,
        MemberDescriptorType,
        MappingProxyType,
        _LruCache,
    )

    def __init__(self, *, with_classes: bool):
        self.with_classes = with_classes
        self.identities: list[int] = []  # of objects that are not determined by their content
        self.plain: set[type] = set()  # types already seen that pickle writes well, for speed
        self.sink = _Sink()
        super().__init__(self.sink, protocol=5)

    def digest(self, thing: Any) -> bytes:
        """Digest of an object."""
        self.dump(thing)
        return self.sink.hash.digest()

    def reducer_override(self, thing: Any) -> Any:
        """How pickle writes an object: a stub, its name, and its content, which may refer to the object itself."""
        if type(thing) in self.plain:
            return NotImplemented
        if isinstance(thing, FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, self.machinery):
            return _machinery(thing)
        return self._object(thing)

    def _function(self, function: FunctionType) -> Any:
        if _is_installed(function.__module__):
            return NotImplemented
        return _stub, ("function", function.__qualname__), _parts(function)

    def _class(self, kind: type) -> Any:
        if not self.with_classes or _is_installed(kind.__module__):
            return NotImplemented
        attributes = {
            name: value for name, value in vars(kind).items() if name not in self.class_internals
        }
        return _stub, ("class", kind.__qualname__), (kind.__bases__, attributes)

    def _object(self, thing: Any) -> Any:
        kind = type(thing)
        is_by_value = kind.__module__.partition(".")[0] in self.by_value
        if not is_by_value:
            self.identities.append(id(thing))
        if _chooses_its_pickle(kind):  # and may omit something
            content = getattr(thing, "__dict__", None)
            return _stub, ("object", kind), (content, thing.__reduce_ex__(5))
        if is_by_value:
            self.plain.add(kind)
        return NotImplemented


class _StableWriter(_Writer):
    """Writes sets in an order of their content, not in that of hashes, which differ from process to process."""

    def persistent_id(self, thing: Any) -> Any:
        """The content of a set; None for anything else, which is written as usual."""
        if not isinstance(thing, (set, frozenset)):
            return None
        digests = []
        for element in thing:
            writer = _StableWriter(with_classes=self.with_classes)
            digests.append(writer.digest(element))
            self.identities += writer.identities
        return type(thing).__name__, sorted(digests)


def _machinery(thing: Any) -> tuple:
    """How the parts of functions, classes and modules are written."""
    if isinstance(thing, CodeType):
        names = (thing.co_names, thing.co_varnames, thing.co_freevars)
        return _stub, ("code", thing.co_code, *names, *_unusual_arguments(thing)), thing.co_consts
    if isinstance(thing, ModuleType):
        if not _is_installed(thing.__name__):
            raise pickle.PicklingError("which attributes matter is unknown")
        return _stub, ("module", thing.__name__)
    if isinstance(thing, (staticmethod, classmethod)):
        return _stub, (type(thing).__name__,), thing.__func__
    if isinstance(thing, property):
        return _stub, ("property",), (thing.fget, thing.fset, thing.fdel)
    if isinstance(thing, MappingProxyType):
        return _stub, ("mapping",), dict(thing)
    if isinstance(thing, _LruCache):
        return _stub, ("lru_cache",), thing.__wrapped__
    return _stub, ("slot", thing.__name__)


def _unusual_arguments(code: CodeType) -> tuple:
    """How many arguments are by keyword only and whether there are ``*args`` and ``**kwargs``; nothing if none are."""
    stars = code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    if not code.co_kwonlyargcount and not stars:
        return ()
    return code.co_argcount, code.co_kwonlyargcount, stars


def _stub(*name: Any) -> None:
    """Takes the place of the function that pickle would call to make the object again."""


def _parts(function: FunctionType) -> tuple:
    """Everything that the values of a function can depend on, as far as its code names it."""
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
    """The named attributes of a user's module and of modules inside it; any other value unchanged."""
    if not isinstance(value, ModuleType) or _is_installed(value.__name__):
        return value
    if value in seen:
        return value.__name__
    found = {name: vars(value)[name] for name in names if name in vars(value)}
    return {name: _attributes(each, names, (*seen, value)) for name, each in found.items()}


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Folders of Python and of installed packages."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(kind) for kind in kinds}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return tuple(str(Path(folder)) + os.sep for folder in folders)


def _is_installed(name: str | None) -> bool:
    """Whether a module belongs to Python, to this package or to an installed one."""
    if name is None or name == "__main__":
        return False
    package = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:  # compiled into Python, or made in memory
        return package in sys.stdlib_module_names
    return package == "mercerless" or file.startswith(_libraries())


def _chooses_its_pickle(kind: type) -> bool:
    """Whether a user's class defines how its objects are pickled."""
    own = [vars(base) for base in kind.__mro__ if not _is_installed(base.__module__)]
    hooks = ("__reduce__", "__reduce_ex__", "__getstate__")
    return any(hook in attributes for attributes in own for hook in hooks)
