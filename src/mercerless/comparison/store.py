"""Finished fits on disk, so that an interrupted comparison can go on."""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np

from mercerless.comparison.learners import Learner
from mercerless.comparison.options import Options
from mercerless.comparison.problem import Problem
from mercerless.comparison.work import Result, Task
from mercerless.core.files import replacing


@dataclass(frozen=True)
class Store:
    """A folder per data and settings with a file per fit; None if it cannot be written."""

    folder: Path | None

    @classmethod
    def of(cls, problem: Problem, learners: list[Learner], options: Options) -> "Store":
        """The folder of a comparison; emptied unless it is resumed."""
        settings = (options.metric, options.random_state, version("mercerless"))
        named = [(one.name, repr(one.make(problem)) if one.is_users else "") for one in learners]
        data = (problem.X, problem.y, problem.groups, repr(problem.kernel))
        key = joblib.hash((settings, named, data))
        home = os.environ.get("SCIKIT_LEARN_DATA", Path("~", "scikit_learn_data"))
        folder = Path(home).expanduser() / "mercerless" / "compare" / str(key)
        with suppress(OSError):
            if not options.resume:
                shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
            return cls(folder)
        return cls(None)

    def write(self, result: Result, n_items: int) -> None:
        """Keep a fit on so many items."""
        if self.folder is None or result.predictions is None:
            return
        task = result.task
        name = f"{n_items} {joblib.hash(task)}.npz"
        with (
            suppress(OSError),
            replacing(self.folder / name) as partial,
            open(partial, "wb") as file,
        ):
            np.savez(
                file,
                task=np.array(task, dtype=str),
                predictions=result.predictions,
                seconds=[result.fit_seconds, result.predict_seconds],
                notes=np.array(result.notes, dtype=str),
            )

    def read(self, n_items: int) -> dict[Task, Result]:
        """The fits on so many items that are kept; damaged files are left out."""
        results = {}
        for path in self.folder.glob(f"{n_items} *.npz") if self.folder else ():
            with suppress(OSError, ValueError, KeyError, EOFError), np.load(path) as file:
                learner, repeat, fold, share = file["task"].tolist()
                task = Task(learner, int(repeat), int(fold), float(share))
                fit, predict = file["seconds"].tolist()
                notes = tuple(file["notes"].tolist())
                results[task] = Result(task, file["predictions"], fit, predict, notes=notes)
        return results
