"""Records of the fits of a comparison: typed in memory, JSON only in files."""

import json
import shutil
import time
import warnings
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercerless.core.files import write_text


class Level(NamedTuple):
    """How a learner is trained; sorted by the number of items, then a search above the defaults."""

    part: float = 1.0  # of the training set
    form: str = "search"  # or "defaults"; alphabetical order is the right one


class Task(NamedTuple):
    """One learner on a part of one split; `fold` is -1 for the given test set."""

    learner: str
    repeat: int
    fold: int
    part: float = 1.0
    form: str = "search"

    @property
    def level(self) -> Level:
        """How the learner is trained."""
        return Level(self.part, self.form)

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.learner}_{self.form}_{self.repeat}_{self.fold}_{self.part:.6g}"


class Record(NamedTuple):
    """One fit: its task, scores and costs; `error` is the reason if there is no score.

    `target` and `predicted` hold classes by number, or numbers; both are empty if no score needs them. `probability`
    has a column for every class; for a learner without probabilities that ranks two classes, one column of scores,
    larger for the second class; it is empty for numbers and learners that do not rank.
    """

    task: Task
    n_train: int
    scores: dict[str, float]
    fit_time: float = 0.0
    predict_time: float = 0.0  # for one item
    size: int = 0
    converged: bool = True
    target: NDArray = np.empty(0)
    predicted: NDArray = np.empty(0)
    probability: NDArray = np.empty((0, 0))
    error: str | None = None

    @property
    def split(self) -> tuple[int, int]:
        """Repeat and fold."""
        return self.task.repeat, self.task.fold

    @property
    def is_split(self) -> bool:
        """Whether it is a score of cross-validation, not of the given test set and not an error."""
        return self.error is None and self.task.fold >= 0

    def to_plain(self) -> dict[str, Any]:
        """Plain values that go into JSON."""
        plain = {**self._asdict(), **self.task._asdict()}
        del plain["task"]
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in plain.items()
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Self:
        """The record that `to_plain` wrote; raises KeyError or TypeError for anything else."""
        task = Task(*(plain.pop(name) for name in Task._fields))
        if plain.keys() != {*cls._fields} - {"task"}:
            raise KeyError("not a record")
        for name in ("target", "predicted"):
            plain[name] = np.array(plain[name])
        probability = np.array(plain["probability"], dtype=np.float64)
        plain["probability"] = probability if probability.size else np.empty((0, 0))
        return cls(task, **plain)


def _digest(content: str) -> str:
    """Return a checksum, by which damaged records are detected."""
    return blake2b(content.encode(), digest_size=12).hexdigest()


def remove_old_runs(folder: Path, days: int = 14) -> None:
    """Delete the folders of runs that nobody continued for so many days."""
    oldest = time.time() - days * 86_400
    for run in folder.iterdir():
        if run.is_dir() and run.stat().st_mtime < oldest:
            shutil.rmtree(run, ignore_errors=True)


class Store:
    """Records of finished tasks; with a folder, each is also a file that appears complete or not at all."""

    def __init__(self, folder: Path | None = None, resume: bool = False):
        self.folder = folder
        self.records: dict[Task, Record] = {}
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.folder = None
            warnings.warn(
                "What is finished is kept in memory only, so that --resume will not work: "
                f"{error.strerror} ({str(folder.parent)!r}; the environment variable "
                "SCIKIT_LEARN_DATA names another place).",
                stacklevel=2,
            )
            return
        with suppress(OSError):
            remove_old_runs(folder.parent)
        damaged = 0
        for path in folder.glob("*.json"):
            if not resume:
                path.unlink(missing_ok=True)
                continue
            try:
                digest, _, content = path.read_text().partition("\n")
                if digest != _digest(content):
                    raise ValueError
                record = Record.from_plain(json.loads(content))
                self.records[record.task] = record
            except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
                damaged += 1
        if damaged:
            warnings.warn(
                f"{damaged} files of the interrupted run are damaged; their fits are run again.",
                stacklevel=2,
            )

    def put(self, record: Record) -> None:
        """Keep a record."""
        self.records[record.task] = record
        if self.folder is None:
            return
        try:
            # another run of the same data may have finished
            self.folder.mkdir(parents=True, exist_ok=True)
            content = json.dumps(record.to_plain())
            write_text(self.folder / f"{record.task.key}.json", f"{_digest(content)}\n{content}")
        except OSError:  # a full disk: only resuming is lost
            self.clear()
            self.folder = None

    def clear(self) -> None:
        """Delete the files; the records stay in memory."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
