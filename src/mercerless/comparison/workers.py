"""Where tasks run: here, in processes that can be stopped at any moment, or on the joblib backend that the user set.

All three take work with `start` while `free`, hand back what is finished with `wait`, and stop at once with `close`.
"""

import os
import pickle
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import joblib
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky import ProcessPoolExecutor
from joblib.parallel import get_active_backend

from mercerless.core.memory import with_settings


class Job(NamedTuple):
    """A call ``function(shared, *arguments)`` that yields results, and the caller's name for it."""

    name: Any
    function: Callable[..., Iterator[Any]]
    arguments: tuple = ()


class Finished(NamedTuple):
    """A job with its results: all if its `end` is "done", those so far if it is "late", "stopped" or "died"."""

    job: Job
    results: list[Any]
    end: str = "done"


def make_workers(
    shared: Any, n_jobs: int | None, can_stop: bool, processes: "list[StartedProcess] | None" = None
) -> "Here | Processes | Backend":
    """Return workers for `n_jobs` jobs at the same time.

    ``can_stop`` if they must be able to stop a running job; ``processes`` that were started early are used first.
    """
    kind = type(get_active_backend()[0]).__name__
    if kind not in ("LokyBackend", "SequentialBackend"):
        return Backend(shared, n_jobs)
    n_jobs = max(1, effective_n_jobs(n_jobs))
    if n_jobs == 1 and not can_stop:
        return Here(shared)
    return Processes(shared, n_jobs, processes)


class Here:
    """One job after the other in this process; time limits are not kept."""

    n_jobs = 1
    ready = True
    are_none = False

    def __init__(self, shared: Any):
        self.shared = shared
        self.finished: list[Finished] = []

    @property
    def free(self) -> int:
        """How many more jobs it takes now."""
        return 1 - len(self.finished)

    def start(self, job: Job, limit: float = float("inf")) -> None:
        """Run a job."""
        self.finished.append(Finished(job, list(job.function(self.shared, *job.arguments))))

    def wait(self, timeout: float = float("inf")) -> list[Finished]:
        """Return the finished jobs."""
        finished = self.finished
        self.finished = []
        return finished

    def stop(self) -> list[Finished]:
        """Nothing is running."""
        return []

    def close(self) -> None:
        """Nothing is running."""


class NoWorkers:
    """Placeholder if no process could start in time: everything runs in the calling process."""

    n_jobs = 1
    ready = False
    free = 0
    are_none = True

    def stop(self) -> list[Finished]:
        """Nothing is running."""
        return []

    def close(self) -> None:
        """Nothing is running."""


# ---------------------------------------------------------------------------------------------------- processes


class StartedProcess:
    """A process that makes the imports of jobs before it gets their data."""

    def __init__(self) -> None:
        # more threads than cores wait for each other, on a busy machine for most of the time
        env = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        self.executor = ProcessPoolExecutor(1, env=env)
        self.ready: Future = self.executor.submit(_warm)

    def close(self) -> None:
        """End it."""
        self.executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def started_early(n_jobs: int) -> Iterator[list[StartedProcess]]:
    """Start processes; those that are still in the list at the end are ended."""
    n_processes = effective_n_jobs(n_jobs) if n_jobs else 0
    processes = [StartedProcess() for _ in range(n_processes)]
    try:
        yield processes
    finally:
        for process in processes:
            process.close()


class _Slot:
    """One process with at most one job; `begun` is when the job began, None while the process is starting."""

    def __init__(self, path: Path, process: StartedProcess):
        self.path = path
        self.results = path.parent / f"results-{uuid4().hex}"
        self.process = process
        self.job: Job | None = None
        self.limit = float("inf")
        self.future: Future = process.ready
        self.begun: float | None = None

    @property
    def is_free(self) -> bool:
        return self.job is None

    def start(self, job: Job, limit: float) -> None:
        self.begun = time.perf_counter()
        self.job = job
        self.limit = limit
        self.results.unlink(missing_ok=True)
        self.future = self.process.executor.submit(
            with_settings(_call), self.path, job.function, job.arguments, self.results
        )

    def overdue(self, now: float) -> bool:
        return self.job is not None and self.begun is not None and now - self.begun > self.limit

    def take(self, end: str) -> Finished:
        """Give back the job with all results that are complete."""
        job = self.job
        self.job = None
        assert job is not None
        return Finished(job, _read_results(self.results), end)


class Processes:
    """Processes with one thread and one job each, so that a job can be ended without touching the others."""

    are_none = False

    def __init__(self, shared: Any, n_jobs: int, processes: list[StartedProcess] | None = None):
        self.n_jobs = n_jobs
        self.folder = Path(tempfile.mkdtemp(prefix="mercerless-"))
        joblib.dump(shared, self._path)  # large arrays become memory maps that all processes share
        self.slots = []
        for _ in range(n_jobs):
            process = processes.pop() if processes else StartedProcess()
            self.slots.append(_Slot(self._path, process))

    @property
    def _path(self) -> Path:
        return self.folder / "shared"

    @property
    def ready(self) -> bool:
        """Whether a process has started."""
        return any(slot.job is not None or slot.future.done() for slot in self.slots)

    @property
    def free(self) -> int:
        """How many more jobs it takes now: processes that have started and have nothing to do."""
        return sum(slot.is_free and slot.future.done() for slot in self.slots)

    def start(self, job: Job, limit: float = float("inf")) -> None:
        """Run a job in a free process for at most `limit` seconds."""
        next(slot for slot in self.slots if slot.is_free and slot.future.done()).start(job, limit)

    def wait(self, timeout: float = float("inf")) -> list[Finished]:
        """Return finished or stopped jobs within `timeout` seconds; [] if there are none or a process is ready."""
        begun = time.perf_counter()
        while True:
            pending = [
                slot.future for slot in self.slots if not slot.is_free or not slot.future.done()
            ]
            if not pending:
                return []
            now = time.perf_counter()
            patience = min([timeout - (now - begun), *self._patience(now), 5.0])
            done = wait(pending, max(0.0, patience), FIRST_COMPLETED).done
            finished = self._collect()
            if finished or done or time.perf_counter() - begun >= timeout:
                return finished

    def _patience(self, now: float) -> list[float]:
        return [
            slot.begun + slot.limit - now
            for slot in self.slots
            if slot.job is not None and slot.begun is not None
        ]

    def _collect(self) -> list[Finished]:
        finished = []
        now = time.perf_counter()
        for i, slot in enumerate(self.slots):
            if slot.job is None:
                if slot.future.done() and slot.future.exception() is not None:
                    raise MemoryError(
                        "A worker process could not start; use fewer jobs (n_jobs) or fewer items."
                    )
            elif slot.future.done():
                died = isinstance(slot.future.exception(), BrokenExecutor)
                if not died:
                    slot.future.result()
                finished.append(slot.take("died" if died else "done"))
                if died:
                    self._renew(i)
            elif slot.overdue(now):
                finished.append(slot.take("late"))
                self._renew(i)
        return finished

    def _renew(self, i: int) -> None:
        """End a process and start another in its place."""
        self.slots[i].process.close()
        self.slots[i] = _Slot(self._path, StartedProcess())

    def stop(self) -> list[Finished]:
        """Return the results that the running jobs have so far."""
        return [slot.take("stopped") for slot in self.slots if slot.job is not None]

    def close(self) -> None:
        """End all processes."""
        for slot in self.slots:
            slot.process.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _load(path: Path) -> Any:
    """Read the data that all jobs share, once per process."""
    return joblib.load(path, mmap_mode="r")


def _warm() -> int:
    """Make the imports of every job, so that the first one is not slower than the others."""
    from mercerless.comparison import schedule  # noqa: F401 - imported for the time it takes

    return os.getpid()


def _call(
    shared: Path, function: Callable[..., Iterator[Any]], arguments: tuple, results: Path
) -> None:
    """Write every result to a file at once, so that it outlives the process."""
    for result in function(_load(shared), *arguments):
        with results.open("ab") as file:
            pickle.dump(result, file)


def _read_results(path: Path) -> list[Any]:
    """Return the complete results in a file; the last one may be cut off."""
    results: list[Any] = []
    if path.exists():
        with path.open("rb") as file:
            try:
                while True:
                    results.append(pickle.load(file))
            except (EOFError, pickle.UnpicklingError):
                pass
    return results


# ------------------------------------------------------------------------------------------- a backend of joblib


class Backend:
    """The joblib backend that the user has set, such as Dask: jobs go in waves, limits are kept by not waiting."""

    ready = True
    are_none = False

    def __init__(self, shared: Any, n_jobs: int | None):
        self.shared = shared
        self.n_jobs = max(1, effective_n_jobs(n_jobs))
        self.backend = get_active_backend()[0]
        self.jobs: list[Job] = []
        self.running = 0
        self.results: queue.Queue = queue.Queue()

    @property
    def free(self) -> int:
        """How many more jobs it takes now: waves are of up to four jobs for each worker."""
        return 0 if self.running else 4 * self.n_jobs - len(self.jobs)

    def start(self, job: Job, limit: float = float("inf")) -> None:
        """Add a job to the next wave."""
        self.jobs.append(job)

    def wait(self, timeout: float = float("inf")) -> list[Finished]:
        """Begin a wave if none is under way; return the finished jobs."""
        if not self.running and self.jobs:
            jobs, self.jobs, self.running = self.jobs, [], len(self.jobs)
            threading.Thread(target=self._wave, args=(jobs,), daemon=True).start()
        try:
            result = self.results.get(
                timeout=None if timeout == float("inf") else max(0.0, timeout)
            )
        except queue.Empty:
            return []
        if isinstance(result, BaseException):
            raise result
        self.running -= 1
        return [result]

    def _wave(self, jobs: list[Job]) -> None:
        """Run the jobs in a thread of its own, so that nobody has to wait for them beyond the deadline."""
        calls = (
            delayed(with_settings(_numbered))(i, job.function, self.shared, job.arguments)
            for i, job in enumerate(jobs)
        )
        try:
            parallel = Parallel(self.n_jobs, backend=self.backend, return_as="generator_unordered")
            for i, result in parallel(calls):
                self.results.put(Finished(jobs[i], result))
        except BaseException as error:  # handed to the thread that waits
            self.results.put(error)

    def stop(self) -> list[Finished]:
        """Jobs that run elsewhere have no results before they are finished."""
        return []

    def close(self) -> None:
        """Start nothing more."""
        self.jobs = []


def _numbered(
    i: int, function: Callable[..., Any], shared: Any, arguments: tuple
) -> tuple[int, Any]:
    # a search inside would wait for whatever else runs on the cluster
    with parallel_config("sequential"):
        return i, list(function(shared, *arguments))
