"""The memory guard: one limit, set once by a context, asked everywhere."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_LIMIT: ContextVar[int | float | str | None] = ContextVar("memory_limit", default=None)


@contextmanager
def config_context(*, memory_limit: int | float | str | None = None) -> Iterator[None]:
    """Settings that hold for everything inside a ``with`` block.

    Parameters
    ----------
    memory_limit : int, float, str or None, default=None
        Bytes that one computation may use, or for example ``"2GB"``; None means half of what is free when asked. What
        does not fit raises MemoryError before any work; what can work in smaller blocks does.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from mercerless import KreinRidge, config_context
    >>> with config_context(memory_limit="1MB"):
    ...     KreinRidge(n_landmarks=None).fit(np.zeros((5000, 1)), np.zeros(5000))
    Traceback (most recent call last):
    MemoryError: ...
    """
    memory_budget(memory_limit)
    token = _LIMIT.set(memory_limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def available_memory() -> int:
    """Bytes that this process can still use: of the machine and of its control group, 4 GiB where nothing is told."""
    sizes = []
    try:
        with open("/proc/meminfo") as lines:
            sizes += [
                int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")
            ]
    except OSError:
        try:
            sizes.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, ValueError, OSError):
            pass
    try:
        with (
            open("/sys/fs/cgroup/memory.max") as limit,
            open("/sys/fs/cgroup/memory.current") as current,
        ):
            sizes.append(int(limit.read()) - int(current.read()))
    except (OSError, ValueError):
        pass
    return max(0, min(sizes, default=2**32))


def memory_budget(memory_limit: int | float | str | None = None) -> int:
    """Bytes that a computation may use: those given (also ``"2GB"``), else the context's, else half of what is free."""
    memory_limit = _LIMIT.get() if memory_limit is None else memory_limit
    if memory_limit is None:
        return available_memory() // 2
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", memory_limit.lower())
        if match is None or match.group(2) == "i":
            raise ValueError(
                f"memory_limit={memory_limit!r} is not a size; write for example '2GB' or '500MiB'."
            )
        memory_limit = float(match.group(1)) * _UNITS[match.group(2)]
    if not memory_limit > 0:
        raise ValueError(
            f"memory_limit={memory_limit!r} must be positive; write for example '2GB', or None for half of "
            "what is free."
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
            f"{what} needs {format_bytes(n_bytes)} but the budget is {format_bytes(budget)} (half of what is free, "
            f"unless mercerless.config_context(memory_limit=...) says otherwise); {remedy}."
        )


def row_blocks(n_rows: int, bytes_per_row: float, budget: int = 2**26) -> Iterator[slice]:
    """Slices of consecutive rows, each needing at most ``budget`` bytes and holding at least one row."""
    step = max(1, int(budget // max(1.0, bytes_per_row)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
