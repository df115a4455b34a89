"""The memory guard, one limit that is respected everywhere, and the context manager that sets it and progress."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


_DEFAULTS: dict[str, Any] = {"memory_limit": None, "progress": None}
_SETTING: ContextVar[dict[str, Any]] = ContextVar("mercerless_setting", default=_DEFAULTS)
#: Stands for the value of the enclosing block.
_ENCLOSING = "enclosing"


@contextmanager
def config_context(
    *, memory_limit: int | float | str | None = _ENCLOSING, progress: bool | str | None = _ENCLOSING
) -> Iterator[None]:
    """Settings that hold for everything inside a ``with`` block.

    Parameters
    ----------
    memory_limit : int, float, str or None, default="enclosing"
        Bytes that one computation may use, or for example ``"2GB"``; None means half of what is free at that moment.
        Computations that can work in smaller blocks do so; others raise MemoryError before any work. If not given,
        the limit of the enclosing block holds.
    progress : bool or None, default="enclosing"
        Whether fits and comparisons that take more than a minute are announced on standard error. None announces them,
        and prints lines of progress in terminals and notebooks; True prints these everywhere; False prints nothing.

    Yields
    ------
    None
        Nothing.

    Notes
    -----
    The settings hold in the thread that opens the block, and in the threads and processes that this package starts for
    its ``n_jobs``. Those that others start, as ``cross_val_score(n_jobs=2)`` does, need a block inside the function
    that they run.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge, config_context
    >>> with config_context(memory_limit="1MB"):
    ...     KreinRidge(landmarks=None).fit(np.arange(5000.0)[:, None], np.zeros(5000))
    Traceback (most recent call last):
    MemoryError: ...
    """
    given = {"memory_limit": memory_limit, "progress": progress}
    changes = {name: value for name, value in given.items() if value != _ENCLOSING}
    setting = _SETTING.get() | changes
    if setting["progress"] not in (True, False, None):
        raise ValueError(f"progress={progress!r} is not known; use True, False or None.")
    memory_budget(setting["memory_limit"])
    token = _SETTING.set(setting)
    try:
        yield
    finally:
        _SETTING.reset(token)


def with_settings(function: Callable[..., T]) -> Callable[..., T]:
    """The function under the settings that hold now, wherever it is called: in another thread or process."""
    return partial(_call_with, _SETTING.get(), function)


def _call_with(settings: dict[str, Any], function: Callable[..., T], *args: Any, **kw: Any) -> T:
    token = _SETTING.set(settings)
    try:
        return function(*args, **kw)
    finally:
        _SETTING.reset(token)


def progress_setting() -> bool | None:
    """The context's setting of progress; None if it depends on the terminal."""
    return _SETTING.get()["progress"]


def available_memory() -> int:
    """Bytes that this process can still use: of the machine and of its control group; 4 GiB if neither is known."""
    sizes = []
    with suppress(OSError), open("/proc/meminfo") as lines:
        sizes += [int(line.split()[1]) * 1024 for line in lines if "MemAvailable:" in line]
    if not sizes:
        with suppress(AttributeError, ValueError, OSError):
            sizes.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with (
        suppress(OSError, ValueError),
        open("/sys/fs/cgroup/memory.max") as limit,
        open("/sys/fs/cgroup/memory.current") as current,
    ):
        sizes.append(int(limit.read()) - int(current.read()))
    return max(0, min(sizes, default=2**32))


def memory_budget(memory_limit: int | float | str | None = None) -> int:
    """Bytes that a computation may use: those given (also ``"2GB"``), else the context's, else half of what is free."""
    if memory_limit is None:
        memory_limit = _SETTING.get()["memory_limit"]
    if memory_limit is None:
        return available_memory() // 2
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", memory_limit.lower())
        if match is None or match.group(2) == "i":
            raise ValueError(
                f"memory_limit={memory_limit!r} is not a size; write for example '2GB' or '500MiB'."
            )
        number, unit = match.groups()
        base = 1024 if unit.endswith("i") else 1000
        power = " kmgt".index(unit[0]) if unit else 0
        memory_limit = float(number) * float(base**power)
    if not memory_limit > 0:
        raise ValueError(
            f"memory_limit={memory_limit!r} must be positive; write for example '2GB', or None for "
            "half of what is free."
        )
    return int(memory_limit)


def format_bytes(n_bytes: float) -> str:
    """A size for people, such as ``"1.5 GB"``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def check_memory(
    n_bytes: float,
    what: str,
    memory_limit: int | float | str | None = None,
    remedy: str = "use fewer rows or a low-rank solver",
) -> None:
    """Raise MemoryError, before any work, when `what`, the subject of the sentence, will not fit."""
    budget = memory_budget(memory_limit)
    if n_bytes > budget:
        raise MemoryError(
            f"{what} needs {format_bytes(n_bytes)} but the budget is {format_bytes(budget)} (half "
            "of what is free, "
            f"unless mercerless.config_context(memory_limit=...) sets another limit); {remedy}."
        )


def row_blocks(n_rows: int, bytes_per_row: float, budget: int = 2**26) -> Iterator[slice]:
    """Slices of consecutive rows, each needing at most ``budget`` bytes and holding at least one row."""
    return slices(0, n_rows, max(1, int(budget // max(1.0, bytes_per_row))))


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Consecutive slices of `step` numbers; the last may be shorter."""
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))
