"""The comparison of learners on one data set: its scores, its statistics, and what it recommends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from mercerless.comparison.code import code_for
from mercerless.comparison.learners import GUESS, Learner, Requested, select_learners
from mercerless.comparison.options import Options, check_metric, silent
from mercerless.comparison.page import render
from mercerless.comparison.page.charts import number
from mercerless.comparison.problem import Problem, make_problem
from mercerless.comparison.race import Race
from mercerless.comparison.scores import TITLES, all_losses, mean_scores, predictions_by_repeat
from mercerless.comparison.statistics import Judgment, judge
from mercerless.comparison.verdict import BALANCED, Verdict, reach_verdict
from mercerless.comparison.work import Task, Workers
from mercerless.core.files import write_text

__all__ = ["Comparison", "compare"]


def compare(
    X: Any,
    y: ArrayLike,
    *,
    kind: str | None = None,
    task: str | None = None,
    kernel: str | Callable | None = None,
    groups: ArrayLike | None = None,
    metric: str | None = None,
    learners: Requested | None = None,
    budget: float | str | None = "2m",
    repeats: int | None = None,
    curves: bool = True,
    searches: bool = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    name: str = "data",
    resume: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare every applicable learner on one data set and recommend one.

    All learners are scored on the same five splits of the same rows: first with their defaults, the automatic learner
    before all others, then with a search inside every training part, then on further repeats.

    Parameters
    ----------
    X : array-like, DataFrame, sparse matrix or sequence
        A table, a square matrix of similarities or distances, a sparse square of hits, or items: strings, series or
        whatever `kernel` takes.
    y : array-like of shape (n,)
        Classes, or numbers.
    kind : {"similarity", "distance", "dissimilarity", "table", "strings", "series", "hits"} or None, default=None
        What X is; None infers it.
    task : {"classification", "regression"} or None, default=None
        Whether y holds classes or numbers; None infers it.
    kernel : str, callable or None, default=None
        How items are compared: a function of two items or the name of one; None is ``"levenshtein"`` for strings and
        ``"dtw"`` for series.
    groups : array-like of shape (n,) or None, default=None
        Items of one group are never split between training and test.
    metric : {"log_loss", "accuracy", "squared_error", "absolute_error"} or None, default=None
        What learners are ranked by; None is the log-loss of classes and the squared error of numbers.
    learners : sequence of str, estimators or pairs of both, mapping of str to estimators, or None, default=None
        Only these: names of learners, or estimators of your own, which ``("mine", estimator)`` names. A mapping runs
        your estimators beside all that apply, which is what None means.
    budget : float, str or None, default="2m"
        Seconds, or a string such as ``"90s"``, ``"2m"`` or ``"1h"``; None means no limit. Work that runs at its end is
        stopped.
    repeats : int or None, default=None
        Run exactly this many repeats, whatever they cost; None lets the budget decide.
    curves : bool, default=True
        Whether to train on parts of the training items too, for a learning curve.
    searches : bool, default=True
        Whether to search parameters of the baselines too, after all defaults are scored.
    n_jobs : int or None, default=None
        Number of processes; -1 is one per core. Scores do not depend on it.
    random_state : int, default=0
        Seed of the splits.
    name : str, default="data"
        Name of the data in the report.
    resume : bool, default=False
        Use the finished fits of an earlier comparison of the same data and settings.
    progress : callable of (text, done, total) or None, default=None
        Called to report progress.

    Returns
    -------
    Comparison
        The table, the recommended learner and the report.

    Examples
    --------
    >>> from mercerless import compare
    >>> from mercerless.datasets import load_digit_shapes
    >>> shapes = load_digit_shapes(100)
    >>> learners = ["similarity", "neighbors"]
    >>> result = compare(shapes.D, shapes.target, learners=learners, repeats=1, searches=False)
    >>> result.recommended
    'similarity'
    """
    options = Options(
        metric,
        learners,
        budget,
        repeats,
        curves,
        searches,
        n_jobs,
        random_state,
        resume,
        progress or silent,
        time.perf_counter(),
    )
    problem = make_problem(X, y, kind=kind, task=task, kernel=kernel, groups=groups, name=name)
    return compare_problem(problem, options)


def compare_problem(
    problem: Problem, options: Options | None = None, workers: Workers | None = None
) -> Comparison:
    """Compare learners on a problem; see `compare`."""
    options = options or Options()
    check_metric(options.metric, problem.task)
    chosen = select_learners(problem, options.learners)
    return Comparison(Race(problem, chosen, options).run(workers))


@dataclass(repr=False)
class Comparison:
    """The outcome of `compare`: scores, the statistics of their differences, and the recommendation.

    Parameters
    ----------
    race : Race
        The finished fits.
    finished : str
        Date and time.
    to_continue : str
        What goes on with the comparison, with a place for the budget.

    See Also
    --------
    compare : Makes it.
    """

    race: Race
    finished: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M"))
    to_continue: str = "compare(X, y, resume=True, budget={budget!r})"

    @property
    def problem(self) -> Problem:
        """The data that were compared on."""
        return self.race.problem

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the comparison."""
        return self.race.interrupted

    @cached_property
    def titles(self) -> dict[str, str]:
        """Title of every learner by its name."""
        return {GUESS: "Constant guess"} | {one.name: one.title for one in self.race.learners}

    @cached_property
    def ranked(self) -> list[str]:
        """Names of the learners with all splits, in the order they were run."""
        return self.race.ranked()

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Learners without all splits, and why."""
        return {
            learner.name: self.race.failures.get(learner.name, "did not finish")
            for learner in self.race.learners
            if learner.name not in self.ranked and not learner.is_searched
        }

    @cached_property
    def control(self) -> int | None:
        """Place of the automatic learner among those ranked: the first, unless it is missing."""
        return 0 if self.ranked and self.learner(self.ranked[0]).is_automatic else None

    @cached_property
    def judgment(self) -> Judgment:
        """Which differences are beyond doubt: those to the automatic learner, or all if it is missing."""
        losses, units = all_losses(self.race, self.ranked)
        return judge(losses, units, self.control)

    def predictions(self, name: str) -> NDArray:
        """Out-of-fold predictions of shape (n_repeats, n_items[, n_classes])."""
        return predictions_by_repeat(self.race, name)

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """The usual scores of every ranked learner and of the constant guess: means of the complete repeats."""
        names = [GUESS, *self.ranked]
        losses, _ = all_losses(self.race, names)
        is_complete = ~np.isnan(losses).any(axis=(0, 2))
        return {
            name: mean_scores(self.problem, self.predictions(name)[is_complete]) for name in names
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the recommended, else the automatic learner did with the data of the first split."""
        named = [self.recommended, *(self.ranked[i] for i in [self.control] if i is not None)]
        found = [self.race.results[Task(name, 0, 0)].notes for name in named if name]
        return next(filter(None, found), ())

    @property
    def metric(self) -> str:
        """What learners are ranked by."""
        default = "log_loss" if self.problem.is_classification else "squared_error"
        return self.race.options.metric or default

    @property
    def metric_title(self) -> str:
        """The name of its loss, which is minimized."""
        return TITLES[self.metric]

    @cached_property
    def smallest_share(self) -> float:
        """Share of the smallest class."""
        _, counts = np.unique(self.problem.y, return_counts=True)
        return float(counts.min() / counts.sum())

    @property
    def is_unbalanced(self) -> bool:
        """Whether there are two classes of which one is rare."""
        return (
            self.problem.is_classification
            and len(self.problem.classes) == 2
            and self.smallest_share < BALANCED
        )

    def seconds(self, name: str) -> tuple[float, float]:
        """Mean seconds of a fit, and of predictions for a thousand items."""
        results = [self.race.results[task] for task in self.race.tasks(name)]
        n_items = sum(
            len(result.predictions) for result in results if result.predictions is not None
        )
        fit = float(np.mean([result.fit_seconds for result in results]))
        return fit, 1000.0 * sum(result.predict_seconds for result in results) / max(n_items, 1)

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """A row per ranked learner, the best first."""
        if not self.ranked:
            return []
        judged, reference = self.judgment, self.ranked.index(self.chosen)
        rows = []
        for i, name in enumerate(self.ranked):
            fit, predict = self.seconds(name)
            rows.append(
                {
                    "learner": name,
                    "title": self.titles[name],
                    "loss": float(judged.loss[i]),
                    **self.scores[name],
                    "compared": judged.grade(i, reference) if i != reference else "recommended",
                    "interval": judged.interval(reference, i),
                    "fit seconds": fit,
                    "predict seconds per 1000": predict,
                }
            )
        return sorted(rows, key=lambda row: row["loss"])

    @cached_property
    def verdict(self) -> Verdict:
        """What to use, in sentences."""
        return reach_verdict(self)

    @property
    def recommended(self) -> str | None:
        """Name of the recommended learner."""
        return self.verdict.recommended

    @property
    def chosen(self) -> str:
        """Name of the recommended learner; raises if there is none."""
        if self.recommended is None:
            raise ValueError(self.verdict.sentences[0])
        return self.recommended

    @property
    def command_to_continue(self) -> str:
        """What goes on with the comparison with more time."""
        double_minutes = ceil((self.race.options.seconds or 60.0) / 30.0)
        return self.to_continue.format(budget=f"{double_minutes}m")

    def learner(self, name: str | None = None) -> Learner:
        """A learner by its name, or the recommended one."""
        name = name or self.chosen
        if name not in self.race.by_name:
            raise ValueError(
                f"There is no learner {name!r} in this comparison; there are {', '.join(self.race.by_name)}."
            )
        return self.race.by_name[name]

    def estimator(self, name: str | None = None) -> BaseEstimator:
        """The unfitted estimator of the recommended, or a named, learner.

        Parameters
        ----------
        name : str or None, default=None
            A learner.
        """
        return clone(self.learner(name).make(self.problem))

    def code(self, name: str | None = None) -> str:
        """Code to copy that fits the recommended, or a named, learner.

        Parameters
        ----------
        name : str or None, default=None
            A learner.
        """
        return code_for(self.problem, self.estimator(name), self.learner(name).takes)

    def to_pandas(self) -> Any:
        """The table as a DataFrame, with the learners as its index."""
        import pandas as pd

        return pd.DataFrame(self.table).set_index("learner")

    def report(self, path: str | Path, rows: bool = True) -> Path:
        """Write the page.

        Parameters
        ----------
        path : str or Path
            The file, which ends in ``.html``.
        rows : bool, default=True
            Whether the page may show single items; False for private data.
        """
        write_text(path, render(self, rows))
        return Path(path)

    def __repr__(self) -> str:
        lines = [*self.verdict.sentences, ""]
        if self.table:
            names = ["title", *self.scores[GUESS], "fit seconds", "compared"]
            table = self.to_pandas()[names].rename(columns={"title": "learner"})
            lines.append(table.to_string(index=False, float_format=number))
        lines += [f"{self.titles[name]}: {state}" for name, state in self.left_out.items()]
        return "\n".join(lines)
