"""Model files of ``mercerless fit``: an estimator and how to read new items for it."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from mercerless import persistence
from mercerless.comparison.learners import Learner
from mercerless.comparison.problem import Problem
from mercerless.comparison.read.options import ReadOptions

FORMAT = 3


@dataclass(frozen=True)
class About:
    """What a model file says about the data it was fitted on."""

    format: int
    learner: str
    takes: str
    kind: str
    task: str
    n: int  # training items
    options: dict[str, Any]
    columns: dict[str, bool]  # of a table, and whether they hold numbers
    names: list[str] | None
    items: list[Any] | None  # strings or series, which new ones are compared with
    similarity: str | None

    @classmethod
    def of(cls, problem: Problem, learner: Learner) -> "About":
        """The description of a problem and the learner fitted on it."""
        import pandas as pd

        columns = {}
        if problem.is_table:
            is_number = pd.api.types.is_numeric_dtype
            columns = {name: bool(is_number(problem.X[name])) for name in problem.X.columns}
        items, similarity = None, None
        if problem.kind in ("strings", "series"):
            items = [item if isinstance(item, str) else item.tolist() for item in problem.X]
            kernel = problem.kernel
            similarity = (
                kernel if isinstance(kernel, str) else f"{kernel.__module__}:{kernel.__name__}"
            )
        return cls(
            FORMAT,
            learner.name,
            learner.takes,
            problem.kind,
            problem.task,
            problem.n_items,
            problem.options.as_dict(),
            columns,
            list(problem.names) if problem.names else None,
            items,
            similarity,
        )


def save(estimator: Any, about: About, path: Any) -> None:
    """Write a model and its description."""
    persistence.save({"estimator": estimator, "description": json.dumps(asdict(about))}, path)


def load(path: str) -> tuple[Any, About]:
    """The estimator and the description in a file from ``mercerless fit``."""
    model = persistence.load(path)
    try:
        about = About(**json.loads(model["description"]))
        ReadOptions.from_dict(about.options)
        if (
            not isinstance(about.columns, dict)
            or about.format != FORMAT
            or not callable(model["estimator"].predict)
        ):
            raise ValueError
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError):
        raise ValueError(
            f"{path!r} was not written by 'mercerless fit', or by an older version: fit again."
        ) from None
    return model["estimator"], about
