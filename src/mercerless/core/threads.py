"""How many threads BLAS may use: one for small matrices, where several would mostly wait for each other."""

import os
from collections.abc import Iterator, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock, local
from typing import Any

from threadpoolctl import LibController, ThreadpoolController

__all__ = ["allowed_threads", "blas_threads", "one_blas_thread"]

_HELD = Lock()  # held by the thread that limits BLAS, which alone may release it
# of every thread: how many others it may start for blocks of kernels while BLAS is held
_LOCAL = local()


def blas_threads(rows: Any, min_rows: int = 1500) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for matrices of few rows; larger ones get as many as the user allows.

    `rows` is their number, or an unchecked argument of the user with one entry per row.
    Eigendecompositions of fewer than `min_rows` rows take longer with two threads than with one.
    """
    shape = getattr(rows, "shape", None)
    if isinstance(rows, int):
        n_rows = rows
    elif shape is not None:
        n_rows = shape[0] if shape else 0
    else:
        n_rows = len(rows) if isinstance(rows, Sized) else 0
    return one_blas_thread() if n_rows < min_rows else nullcontext()


@contextmanager
def one_blas_thread(*, alone: bool = False) -> Iterator[None]:
    """Limit BLAS to one thread, and with `alone` the blocks of kernels too.

    Of several callers at once the first one sets the limit: threadpoolctl lets no other thread undo it.
    """
    before = getattr(_LOCAL, "allowed", None)
    _LOCAL.allowed = 1 if alone else allowed_threads()
    try:
        if not _HELD.acquire(blocking=False):
            yield
            return
        # by hand, because threadpoolctl's limit takes longer than a small matrix
        counts = {library: library.num_threads for library in _blas() if library.num_threads > 1}
        try:
            for library in counts:
                library.set_num_threads(1)
            yield
        finally:
            for library, count in counts.items():
                library.set_num_threads(count)
            _HELD.release()
    finally:
        _LOCAL.allowed = before


def allowed_threads() -> int:
    """The number of threads of BLAS, unless this thread limits it, but at most one per core."""
    held = getattr(_LOCAL, "allowed", None)
    if held is not None:
        return held
    counts = [library.num_threads for library in _blas()]
    try:
        counts.append(len(os.sched_getaffinity(0)))
    except AttributeError:  # not on this system
        counts.append(os.cpu_count() or 1)
    return max(1, min(counts))


@cache
def _blas() -> list[LibController]:
    """The loaded libraries: finding them takes milliseconds, so it is done once."""
    return ThreadpoolController().select(user_api="blas").lib_controllers
