"""The comparison of all learners on one data set, by nested cross-validation, with honest statistics."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.datasets import get_data_home

from mercerless._optional import import_optional
from mercerless.comparison.code import code_for
from mercerless.comparison.learners import LEARNERS, Learner, Setting, count_settings, select_learners
from mercerless.comparison.negative import NegativePart, judge_negative_part, negative_sentences
from mercerless.comparison.problem import Problem, make_problem
from mercerless.comparison.report import render, render_short
from mercerless.comparison.schedule import N_FOLDS, Run, Store, contributions, outer_folds
from mercerless.comparison.statistics import Differences, Split, compare_splits
from mercerless.comparison.vote import VOTE, Records, best_three, vote_learner, vote_record, vote_records
from mercerless.comparison.words import METRICS, WORDS, duration, parse_budget
from mercerless.spectra import Indefiniteness, indefiniteness

__all__ = ["Comparison", "compare"]


def compare(
    X: ArrayLike | Sequence[str],
    y: ArrayLike,
    *,
    kind: str | None = None,
    task: str | None = None,
    groups: ArrayLike | None = None,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    metric: str | None = None,
    learners: Sequence[str] | None = None,
    budget: float | str | None = "2m",
    repeats: int | None = None,
    curves: bool = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    name: str = "data",
    resume: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare every applicable learner on one data set and recommend one.

    All learners are scored on the same repeated five-fold splits, and each searches its own parameters inside every
    training part (nested cross-validation).

    Parameters
    ----------
    X : array-like of shape (n, n) or (n, n_features), or sequence of str
        Similarities or distances between the items, a table of numbers, or strings (compared by edit distance).
    y : array-like of shape (n,)
        Classes, or numbers.
    kind : {"similarity", "distance", "dissimilarity", "table", "strings"} or None, default=None
        What X is; None finds out.
    task : {"classification", "regression"} or None, default=None
        What y is; None finds out.
    groups : array-like of shape (n,) or None, default=None
        Items of one group are never split between training and test.
    X_test, y_test : array-like or None, default=None
        A given test set (for matrices: rows against the training items). It is scored once at the end and takes no
        part in the recommendation.
    metric : {"accuracy", "balanced_accuracy", "r2"} or None, default=None
        The score that counts; None means accuracy or R².
    learners : sequence of str or None, default=None
        Names of the learners to run; None means all that apply.
    budget : float, str or None, default="2m"
        Seconds, or a string such as ``"90s"``, ``"2m"`` or ``"1h"``; None means no limit. It decides how many repeats
        are run and whether costly learners are left out; what was left out is said.
    repeats : int or None, default=None
        Run exactly this many repeats, whatever they cost; None lets the budget decide.
    curves : bool, default=True
        Whether to train on parts of the training sets too, for learning curves.
    n_jobs : int or None, default=None
        How many tasks run at the same time, by `joblib`, whose parallel backends (also Dask) can be set around
        the call. The scores do not depend on it.
    random_state : int, default=0
        Seed of the splits and of the learners.
    name : str, default="data"
        What to call the data in the report.
    resume : bool, default=False
        Continue a comparison of the same data and settings that was interrupted.
    progress : callable of (text, done, total) or None, default=None
        Told how far each step is.

    Returns
    -------
    Comparison
        The table, the recommended learner and the report.

    Examples
    --------
    >>> from mercerless import compare
    >>> from mercerless.datasets import load_digit_shapes
    >>> shapes = load_digit_shapes(100)
    >>> result = compare(shapes.D, shapes.target, learners=["dummy", "neighbors"], repeats=1)
    >>> result.recommended
    'neighbors'
    >>> [row["learner"] for row in result.table]
    ['neighbors', 'dummy']
    """
    problem = make_problem(
        X, y, kind=kind, task=task, groups=groups, X_test=X_test, y_test=y_test, name=name, guesses=()
    )
    return compare_problem(
        problem,
        metric=metric,
        learners=learners,
        budget=budget,
        repeats=repeats,
        curves=curves,
        n_jobs=n_jobs,
        random_state=random_state,
        resume=resume,
        progress=progress,
    )


def compare_problem(
    problem: Problem,
    *,
    metric: str | None = None,
    learners: Sequence[str] | None = None,
    budget: float | str | None = "2m",
    repeats: int | None = None,
    curves: bool = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    resume: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare learners on a problem; see `compare`."""
    metric = metric or METRICS[problem.task][0]
    if metric not in METRICS[problem.task]:
        raise ValueError(f"metric={metric!r} does not suit {problem.task}; use {' or '.join(METRICS[problem.task])}.")
    if repeats is not None and repeats < 1:
        raise ValueError(f"repeats={repeats} must be at least 1.")
    if n_jobs == 0:
        raise ValueError("n_jobs=0 would do nothing; use 1 or more, or -1 for all cores.")
    if not 0 <= random_state < 2**32:
        raise ValueError(f"random_state={random_state} must be between 0 and 2**32 - 1.")
    seconds = None if repeats is not None else parse_budget(budget)
    chosen, excused = select_learners(problem, None if learners is None else tuple(learners))
    setting = Setting(problem, metric, random_state)
    quiet = progress or (lambda text, done, total: None)
    if problem.is_matrix:
        quiet("spectrum", 0, 1)
        _ = setting.eigenvalues  # once, before the setting is sent to the workers
    folder = _work_folder(problem, metric, chosen, random_state)
    run = Run(
        problem, chosen, setting, seconds, repeats, n_jobs, curves, Store(folder, resume), quiet, left_out=excused
    ).go()
    comparison = Comparison(
        problem=problem,
        metric=metric,
        random_state=random_state,
        learners=chosen,
        records=list(run.store.records.values()),
        left_out=run.left_out,
        failed=run.failed,
        interrupted=run.interrupted,
        budget=seconds,
    )
    comparison.check_comparable()
    if not run.interrupted:
        quiet("negative part of the spectrum", 0, 1)
        comparison.negative  # noqa: B018 - computed here, so that its time is part of the run
        run.store.clear()
    comparison.elapsed = run.elapsed
    return comparison


def _work_folder(problem: Problem, metric: str, learners: list[Learner], random_state: int) -> Path:
    """Return where finished tasks are kept until the run is complete: one folder per data and settings."""
    names = [learner.name for learner in learners]
    settings = repr((metric, names, random_state, version("mercerless")))
    digest = blake2b(problem.digest() + settings.encode(), digest_size=12)
    return Path(get_data_home()) / "mercerless" / "compare" / digest.hexdigest()


@dataclass(repr=False)
class Comparison:
    """The outcome of `compare`: what was scored, what can be said about it, and what to use.

    Parameters
    ----------
    problem : Problem
        The data, and what was found out about it.
    metric : str
        The score that counts.
    random_state : int
        Seed of the splits and of the learners.
    learners : list of Learner
        What was to be run.
    records : list of dict
        One per fit: learner, repeat, fold, part of the training set, scores, times, size.
    left_out, failed : dict of str to str
        Learners without a result, with the reason.
    interrupted : bool
        Whether the user stopped the run before its end.
    budget : float or None
        Seconds that were allowed.
    elapsed : float
        Seconds that were used.
    finished : str
        Date and time.

    See Also
    --------
    compare : Makes it.
    """

    problem: Problem
    metric: str
    random_state: int
    learners: list[Learner]
    records: list[dict[str, Any]]
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    budget: float | None = None
    elapsed: float = 0.0
    finished: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M %Z"))

    # ------------------------------------------------------------------------------------------ scores and order

    @cached_property
    def _single(self) -> Records:
        """Full-size records by learner and split, of learners that can be compared with the others."""
        results: Records = {}
        for record in self.records:
            if record["part"] == 1.0 and record["fold"] >= 0 and "error" not in record:
                results.setdefault(record["learner"], {})[record["repeat"], record["fold"]] = record
        most = max(map(len, results.values()), default=0)
        for name in [name for name, records in results.items() if 2 * len(records) < most]:
            del results[name]
            if name not in self.failed:
                self.left_out.setdefault(name, "the run ended before it had enough splits")
        order = [learner.name for learner in self.learners]
        return {name: results[name] for name in sorted(results, key=order.index)}

    @cached_property
    def splits(self) -> list[tuple[int, int]]:
        """The splits, as (repeat, fold), that every compared learner was scored on."""
        common = [set(records) for records in self._single.values()]
        return sorted(set.intersection(*common)) if common else []

    @cached_property
    def _results(self) -> Records:
        """The records of single learners and, for tables, of the vote of the three best."""
        return {**self._single, **vote_records(self.problem, self._single, self.splits, self.metric)}

    @cached_property
    def members(self) -> list[str]:
        """The learners that vote, the best first; none where there is no vote."""
        return best_three(self._single, self.splits, self.metric) if VOTE in self._results else []

    def learner(self, name: str | None = None) -> Learner:
        """The recommended, or a named, learner.

        Parameters
        ----------
        name : str or None, default=None
            Its name; None means the recommended one.

        Returns
        -------
        Learner
            What it is called and how it is built.
        """
        name = name or self.recommended
        if name == VOTE and self.members:
            return vote_learner([self.learner(member) for member in self.members])
        return next(learner for learner in self.learners if learner.name == name)

    def check_comparable(self) -> None:
        """Raise where nothing can be compared."""
        enough = min(2, len(self.learners)) if self.interrupted else 1
        guess_alone = list(self._single) == ["dummy"] and len(self.learners) > 1
        if len(self._single) >= enough and self.splits and not guess_alone:
            return
        if self.failed and not self.interrupted:
            name, error = next(iter(self.failed.items()))
            raise ValueError(f"Every learner failed; {name}: {error}")
        if self.interrupted:
            raise KeyboardInterrupt
        raise ValueError(
            f"The budget of {duration(self.budget or 0)} is too short for a single learner; give more, or fewer items."
        )

    @cached_property
    def _ranked(self) -> list[str]:
        """Names of the compared learners, the best mean score first, ties in the order of the list of learners."""
        means = {name: np.mean(self._scores(name)) for name in self._results}
        return sorted(means, key=lambda name: -means[name])

    @cached_property
    def names(self) -> list[str]:
        """Names of the compared learners, the recommended one first, the others by mean score."""
        first = self._choose()
        return [first, *(name for name in self._ranked if name != first)]

    def _choose(self) -> str:
        """The winner; without one the vote, where there is one and it is not behind by two standard errors."""
        ranked = self._ranked
        top = next(i for i, name in enumerate(ranked) if name != VOTE)
        if VOTE not in ranked:
            return ranked[top]
        found, vote = self._compared(ranked), ranked.index(VOTE)
        wins = all(found.better(top, i) for i in range(len(ranked)) if i not in (top, vote))
        behind = found.difference[top, vote] > 2.0 * found.standard_error[top, vote]
        return ranked[top] if wins or behind else VOTE

    def _scores(self, name: str, metric: str | None = None) -> list[float]:
        records = self._results[name]
        return [records[split]["scores"].get(metric or self.metric, np.nan) for split in self.splits]

    @cached_property
    def differences(self) -> Differences:
        """All pairwise differences, in the order of `names`."""
        return self._compared(self.names)

    def _compared(self, names: list[str]) -> Differences:
        return compare_splits([self._split(names, *split) for split in self.splits], N_FOLDS)

    def _split(self, names: list[str], repeat: int, fold: int) -> Split:
        """What the learners did on one split."""
        test, problem = self._folds[repeat][fold][1], self.problem
        records = [self._results[name][repeat, fold] for name in names]
        added = np.column_stack(
            [
                contributions(self.metric, np.array(record["target"]), np.array(record["predicted"]))
                for record in records
            ]
        )
        if problem.groups is not None:
            return Split(repeat, self._groups[test], np.zeros(len(test)), added)
        strata = problem.y[test] if problem.is_classification else np.zeros(len(test))
        return Split(repeat, test, strata, added)

    @cached_property
    def _folds(self) -> dict[int, list[tuple[NDArray, NDArray]]]:
        return {repeat: outer_folds(self.problem, repeat, self.random_state) for repeat in {r for r, _ in self.splits}}

    @cached_property
    def _groups(self) -> NDArray:
        return np.unique(self.problem.groups, return_inverse=True)[1]

    # ------------------------------------------------------------------------------------------- what to tell

    @property
    def recommended(self) -> str:
        """The name of the recommended learner: the one with the best mean score or, without a winner, the vote."""
        return self.names[0]

    @property
    def ties(self) -> list[str]:
        """Learners that are not distinguishable from the recommended one."""
        return [name for i, name in enumerate(self.names) if i and not self.differences.better(0, i)]

    @property
    def has_winner(self) -> bool:
        """Whether the recommended learner is better than every other single one beyond doubt."""
        return len(self.names) > 1 and not set(self.ties) - {VOTE}  # a vote that the winner leads is no rival

    def title(self, name: str) -> str:
        """A learner's title.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        str
            What a reader sees.
        """
        if name == VOTE and self.members:
            return self.learner(VOTE).title
        return next(other.title for other in LEARNERS if other.name == name and other.applies(self.problem))

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """One row per learner, best first; differences are to the recommended one, with simultaneous intervals."""
        return [self._row(i, name) for i, name in enumerate(self.names)]

    def _row(self, i: int, name: str) -> dict[str, Any]:
        found, records = self.differences, [self._results[name][split] for split in self.splits]
        low, high = found.interval(i, 0)
        learner = self.learner(name)
        row = {
            "learner": name,
            "title": learner.title,
            "family": learner.family,
            "score": float(found.mean[i]),
            "low": float(found.mean[i] - found.half_width[i]),
            "high": float(found.mean[i] + found.half_width[i]),
            "difference": float(found.difference[i, 0]),
            "difference_low": low,
            "difference_high": high,
            "verdict": "recommended" if i == 0 else "worse" if found.better(0, i) else "not distinguishable",
        }
        for metric in dict.fromkeys(metric for record in records for metric in record["scores"]):
            values = self._scores(name, metric)
            if np.isfinite(values).all():
                row[metric] = float(np.mean(values))
        row["fit_time"] = float(np.median([record["fit_time"] for record in records]))
        row["predict_time"] = float(np.median([record["predict_time"] for record in records]))
        row["size"] = int(np.median([record["size"] for record in records]))
        row["settings"] = count_settings(self._build(learner))
        row["converged"] = all(record["converged"] for record in records)
        row["test_score"] = self._tested[name]["scores"][self.metric] if name in self._tested else None
        return row

    @cached_property
    def _tested(self) -> dict[str, dict[str, Any]]:
        """Records of the given test set by learner."""
        tested = {record["learner"]: record for record in self.records if record["fold"] < 0 and "scores" in record}
        if self.members and tested.keys() >= set(self.members):
            tested[VOTE] = vote_record(self.problem, self.metric, [tested[name] for name in self.members])
        return tested

    @cached_property
    def verdict(self) -> list[str]:
        """The outcome in sentences: a winner only where there is one."""
        best = next(row for row in self.table if row["learner"] != VOTE or self.has_winner)
        among = " of the single learners" if self.recommended == VOTE and best is not self.table[0] else ""
        first = f"{best['title']} has the best mean {WORDS[self.metric]}{among}, {self.format(best['score'])}"
        if len(self.names) == 1:
            return [f"{first}; there is nothing to compare it with."]
        if self.has_winner:
            sentences = [f"{first}, and is better than every other learner compared, beyond the doubt of the splits."]
        else:
            sentences = self._without_winner(first, best)
        if "dummy" in self.ties:
            sentences.append("Even the constant guess is not distinguishable: these data may hold nothing to learn.")
        return sentences

    def _without_winner(self, first: str, best: dict[str, Any]) -> list[str]:
        """Say that there is no winner, and what to use."""
        position = self.names.index(best["learner"])
        single = [name for name in self._single if name != best["learner"]]
        tied = [
            name
            for name in self.names
            if name in single and not self.differences.better(position, self.names.index(name))
        ]
        titles = [self.title(name) for name in tied]
        listed = f"{len(titles)} other learners are" if len(titles) > 3 else _are(titles)
        sentences = [f"{first}, but there is no winner: {listed} not distinguishable from it."]
        if self.recommended == VOTE:
            sentences.append(
                f"Recommended is the vote of the three best, {_and([self.title(name) for name in self.members])}: "
                f"{self.format(self.table[0]['score'])}, with members chosen by other splits than the one that scores "
                "them. Which of several such learners comes first is chance, and its own score is too good."
            )
        rows = [row for row in self.table if row["learner"] in {best["learner"], *tied} - {"dummy"}]
        fastest, chosen = min(rows, key=lambda row: row["fit_time"], default=best), self.table[0]
        if fastest is not chosen and fastest["fit_time"] < chosen["fit_time"] / 2:
            ratio = chosen["fit_time"] / fastest["fit_time"]
            sentences.append(f"Among these, {fastest['title']} is {ratio:.0f} times faster to fit.")
        return sentences

    def format(self, score: float) -> str:
        """A score for people: accuracies as percentages.

        Parameters
        ----------
        score : float
            The score.

        Returns
        -------
        str
            Such as ``"96.0 %"``.
        """
        return f"{score:z.3f}" if self.metric == "r2" else f"{100 * score:z.1f} %"

    def points(self, difference: float) -> str:
        """A difference of scores for people: accuracies in percentage points.

        Parameters
        ----------
        difference : float
            The difference.

        Returns
        -------
        str
            Such as ``"-0.5"``.
        """
        return f"{difference:+.3f}" if self.metric == "r2" else f"{100 * difference:+.1f}"

    @cached_property
    def spectrum(self) -> Indefiniteness | None:
        """How indefinite the similarities are; None for tables."""
        if not self.problem.is_matrix:
            return None
        return indefiniteness(self.problem.similarities, self.problem.eigenvalues)

    @cached_property
    def negative(self) -> NegativePart | None:
        """What held-out labels say about the negative part; None where there is none."""
        if self.spectrum is None or self.spectrum.is_psd or self.interrupted:
            return None
        return judge_negative_part(
            self.problem.similarities, self.problem.y, self.problem.is_classification, self.random_state
        )

    @cached_property
    def curves(self) -> dict[str, list[tuple[int, float]]]:
        """Learning curves: mean score by mean size of the training set, over the splits that have every size."""
        curves: dict[str, list[tuple[int, float]]] = {}
        for name in self.names:
            by_fold: dict[int, dict[float, tuple[int, float]]] = {}
            for record in self.records:
                if record["learner"] == name and record["repeat"] == 0 and record["fold"] >= 0 and "scores" in record:
                    value = record["n_train"], record["scores"][self.metric]
                    by_fold.setdefault(record["fold"], {})[record["part"]] = value
            if not by_fold:
                continue
            most = max(map(len, by_fold.values()))
            full = [points for points in by_fold.values() if len(points) == most]
            curves[name] = [
                (round(size), float(score))
                for size, score in (np.mean([points[part] for points in full], axis=0) for part in sorted(full[0]))
            ]
        return curves

    # ---------------------------------------------------------------------------------------------- what to use

    def _build(self, learner: Learner) -> BaseEstimator:
        return learner.build(self._setting)

    @cached_property
    def _setting(self) -> Setting:
        return Setting(self.problem, self.metric, self.random_state)

    def estimator(self, name: str | None = None) -> BaseEstimator:
        """The recommended, or a named, estimator with its search, not fitted.

        Parameters
        ----------
        name : str or None, default=None
            A learner's name; None means the recommended one.

        Returns
        -------
        BaseEstimator
            The estimator.
        """
        return self._build(self.learner(name))

    def code(self, name: str | None = None) -> str:
        """The recommended, or a named, estimator as code to copy.

        Parameters
        ----------
        name : str or None, default=None
            A learner's name; None means the recommended one.

        Returns
        -------
        str
            A program that loads the data, fits and predicts.
        """
        learner = self.learner(name)
        return code_for(self.problem, learner, self._build(learner))

    @property
    def n_repeats(self) -> int:
        """How many complete repeats were run."""
        repeats = [repeat for repeat, _ in self.splits]
        return sum(repeats.count(repeat) == N_FOLDS for repeat in set(repeats))

    def python_command(self) -> str:
        """The call that repeats this comparison exactly.

        Returns
        -------
        str
            Python code.
        """
        names = [learner.name for learner in self.learners if learner.name in self.names]
        return (
            f"mercerless.compare(X, y, kind={self.problem.kind!r}, task={self.problem.task!r}, metric={self.metric!r}, "
            f"learners={names!r}, repeats={max(1, self.n_repeats)}, random_state={self.random_state})"
        )

    def versions(self) -> dict[str, str]:
        """Versions of everything the numbers depend on.

        Returns
        -------
        dict of str to str
            By name.
        """
        packages = ("mercerless", "scikit-learn", "scipy", "numpy", "joblib")
        return {"python": platform.python_version(), **{name: version(name) for name in packages}}

    def to_pandas(self):
        """The table for pandas, indexed by learner.

        Returns
        -------
        pandas.DataFrame
            The table.
        """
        pd = import_optional("pandas", extra="table", what="A table for pandas")
        return pd.DataFrame(self.table).set_index("learner")

    def save(self, path: str | os.PathLike) -> None:
        """Write everything but the data as JSON.

        Parameters
        ----------
        path : path-like
            The file.
        """
        content = {
            "name": self.problem.name,
            "kind": self.problem.kind,
            "task": self.problem.task,
            "metric": self.metric,
            "n_items": len(self.problem.y),
            "random_state": self.random_state,
            "recommended": self.recommended,
            "verdict": self.verdict,
            "table": self.table,
            "left_out": self.left_out,
            "failed": self.failed,
            "interrupted": self.interrupted,
            "splits": len(self.splits),
            "versions": self.versions(),
            "guesses": [guess._asdict() for guess in self.problem.guesses],
            "negative": None if self.negative is None else self.negative._asdict(),
            "command": self.python_command(),
            "code": self.code(),
            "records": self.records,
        }
        write_atomically(path, json.dumps(content, indent=1))

    def report(self, path: str | os.PathLike, command: str | None = None) -> None:
        """Write the comparison as one self-contained HTML page.

        Parameters
        ----------
        path : path-like
            The file.
        command : str or None, default=None
            What reproduces it; None means the call in Python.
        """
        write_atomically(path, render(self, command))

    def __repr__(self) -> str:
        """One line: what was compared, what is recommended."""
        state = "interrupted, " if self.interrupted else ""
        return (
            f"<Comparison of {len(self.names)} learners on {self.problem.name!r}: {state}recommended "
            f"{self.recommended!r}, {len(self.ties)} not distinguishable from it>"
        )

    def _repr_html_(self) -> str:
        """The short table and the verdict for notebooks."""
        return render_short(self)

    def __str__(self) -> str:
        """The short table and the verdict as text."""
        has_test = self.problem.y_test is not None
        rows = [["learner", WORDS[self.metric], *["given test"] * has_test, "difference", "interval", "fit", ""]]
        for row in self.table:
            behind = row["verdict"] != "recommended"
            interval = f"{self.points(row['difference_low'])} to {self.points(row['difference_high'])}"
            test = "" if row["test_score"] is None else self.format(row["test_score"])
            rows.append(
                [
                    row["title"],
                    self.format(row["score"]),
                    *[test] * has_test,
                    self.points(row["difference"]) * behind,
                    interval * behind,
                    duration(row["fit_time"]),
                    row["verdict"] if row["verdict"] != "worse" else "",
                ]
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        sides = "<" + ">" * (len(widths) - 2) + "<"
        lines = ["  ".join(f"{c:{side}{w}}" for c, side, w in zip(row, sides, widths)).rstrip() for row in rows]
        notes = [f"left out: {self.title(name)} ({reason})" for name, reason in self.left_out.items()]
        notes += [f"failed: {self.title(name)} ({error})" for name, error in self.failed.items()]
        matrix = [] if self.spectrum is None else negative_sentences(self.spectrum, self.negative)[:1]
        return "\n".join([*lines, *notes, "", *self.verdict, *matrix])


def _and(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _are(names: list[str]) -> str:
    return f"{_and(names)} {'is' if len(names) == 1 else 'are'}"


def write_atomically(path: str | os.PathLike, text: str) -> None:
    """Write a text file so that it appears complete or not at all."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise OSError(f"Cannot write {str(path)!r}: {error.strerror}; give another place.") from None
    finally:
        partial.unlink(missing_ok=True)
