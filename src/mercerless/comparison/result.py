"""The comparison of all learners on one data set, by nested cross-validation, with honest statistics."""

import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from mercerless.comparison.code import code_for, describe
from mercerless.comparison.items import find_suspects
from mercerless.comparison.learners import Learner, Terms, count_settings, select_learners
from mercerless.comparison.negative import NegativePart
from mercerless.comparison.options import Options, Requested
from mercerless.comparison.problem import Problem, listed, make_problem
from mercerless.comparison.progress import progress_bar
from mercerless.comparison.records import Level, Record, Store
from mercerless.comparison.report import render, render_short
from mercerless.comparison.schedule import Run
from mercerless.comparison.scoring import N_FOLDS, contributions, is_mean_of_items, make_split
from mercerless.comparison.statistics import (
    Differences,
    ScoredSplit,
    compare_scores,
    compare_splits,
)
from mercerless.comparison.verdict import text_of, verdict_of
from mercerless.comparison.vote import (
    VOTE,
    Records,
    best_three,
    chosen_records,
    vote_learner,
    vote_record,
    vote_records,
)
from mercerless.comparison.words import (
    check_metric,
    check_positive_class,
    duration,
    needs_probabilities,
)
from mercerless.core.files import write_text
from mercerless.core.optional import import_optional
from mercerless.core.suspects import Suspects
from mercerless.spectra import Indefiniteness

__all__ = ["Comparison", "compare"]


def compare(
    X: ArrayLike | Sequence[str] | Mapping[str, ArrayLike],
    y: ArrayLike,
    *,
    kind: str | None = None,
    task: str | None = None,
    kernel: str | Callable | None = None,
    groups: ArrayLike | None = None,
    X_test: ArrayLike | Mapping[str, ArrayLike] | None = None,
    y_test: ArrayLike | None = None,
    metric: str | None = None,
    learners: Requested | None = None,
    budget: float | str | None = "2m",
    repeats: int | None = None,
    curves: bool = True,
    n_jobs: int | None = None,
    random_state: int = 0,
    name: str = "data",
    resume: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> "Comparison":
    """Compare every applicable learner on one data set and recommend one.

    All learners are scored on the same repeated five-fold splits: first with their defaults, then with a search of
    their parameters inside every training part (nested cross-validation).

    The parameters up to `y_test` describe the data, `metric` and `learners` what is compared, `budget` to `n_jobs` how
    long it may take, and the others how it is reported and repeated.

    Parameters
    ----------
    X : array-like of shape (n, n) or (n, n_features), DataFrame, sequence, or dict of str to arrays
        Similarities or distances between the items; a table of numbers, or of numbers, words and dates in a DataFrame;
        or the items themselves: strings, or whatever `kernel` takes. A dict has several matrices of the same items:
        all learners take the first, and automatic stacks each of them and all together.
    y : array-like of shape (n,)
        Classes, or numbers.
    kind : {"similarity", "distance", "dissimilarity", "table", "strings"} or None, default=None
        Kind of X; None infers it.
    task : {"classification", "regression"} or None, default=None
        Whether y holds classes or numbers; None infers it.
    kernel : str, callable or None, default=None
        How items are compared: a function of two items, similarity or distance, or the name of one for strings
        (``"levenshtein"``, ``"jaro_winkler"``, ...); None compares strings by edit distance.
    groups : array-like of shape (n,) or None, default=None
        Items of one group are never split between training and test.
    X_test, y_test : array-like or None, default=None
        A given test set (for matrices: rows against the training items, of an asymmetric one also both directions side
        by side). It is scored once at the end and takes no part in the recommendation.
    metric : str or None, default=None
        The score that counts, a name of scikit-learn's scorers, or ``"mae"``, ``"mse"``, ``"rmse"`` or
        ``"log_loss"``; None means accuracy or R². Learners search their parameters by it too.
    learners : sequence of str, estimators or pairs of both, mapping of str to estimators, or None, default=None
        Only these: names or titles (``"table@0.25"`` trains on that part of the training sets, ``"boosting@defaults"``
        does not search), or estimators of your own, which ``("mine", estimator)`` names. A mapping such as ``{"mine":
        estimator}`` runs them beside all that apply, which is what None means.
    budget : float, str or None, default="2m"
        Seconds, or a string such as ``"90s"``, ``"2m"`` or ``"1h"``; None means no limit. Defaults are scored first,
        then searches are run, cheap ones first, and repeats; at the end running fits are stopped. The verdict names
        the learners that were not searched, were trained on parts of the training sets, or not at all.
    repeats : int or None, default=None
        Run exactly this many repeats of every search, whatever they cost; None lets the budget decide.
    curves : bool, default=True
        Whether to train on parts of the training sets too, for learning curves.
    n_jobs : int or None, default=None
        How many tasks run at the same time, by `joblib`, whose parallel backends (also Dask) can be set around
        the call. The scores do not depend on it.
    random_state : int, default=0
        Seed of the splits and of the learners.
    name : str, default="data"
        Name of the data in the report.
    resume : bool, default=False
        Continue a comparison of the same data and settings that was interrupted, or not decided within its budget.
    progress : callable of (text, done, total) or None, default=None
        Called to report progress; None shows a bar on a terminal.

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
    started = time.perf_counter()
    problem = make_problem(
        X,
        y,
        kind=kind,
        task=task,
        groups=groups,
        X_test=X_test,
        y_test=y_test,
        similarity=kernel,
        name=name,
    )
    options: dict[str, Any] = {
        "metric": metric,
        "learners": learners,
        "budget": budget,
        "repeats": repeats,
        "curves": curves,
        "n_jobs": n_jobs,
        "random_state": random_state,
        "resume": resume,
        "started": started,
    }
    if progress is not None:
        return compare_problem(problem, Options(**options, progress=progress))
    with progress_bar() as bar:
        return compare_problem(problem, Options(**options, progress=bar))


def compare_problem(problem: Problem, options: Options | None = None) -> "Comparison":
    """Compare learners on a problem; see `compare`."""
    options = options or Options()
    metric = check_metric(options.metric, problem.task)
    check_positive_class(metric, problem.y)
    chosen, limits = select_learners(problem, options.learners)
    options.progress("spectrum" if problem.is_matrix else "starting", 0, 1)
    terms = Terms(problem, metric, options.random_state)
    mute = _without_probabilities(chosen, terms)
    scored = [learner for learner in chosen if learner.name not in mute]
    store = Store(_work_folder(terms, scored), options.resume)
    if options.resume:
        kept = len(store.records)
        found = (
            f"resumed with {kept} finished fits"
            if kept
            else "resumed nothing: no fits were kept, a new run begins"
        )
        options.progress(found, 0, 1)
    run = Run(terms, scored, options, limits, store).go()
    comparison = Comparison(
        terms,
        chosen,
        records=list(run.store.records.values()),
        negative=run.negative,
        reasons={**run.reasons(), **mute},
        failed=run.failed,
        interrupted=run.interrupted,
        budget=options.seconds,
        elapsed=run.elapsed,
        limits=limits,
        missing_seconds=run.missing_seconds(),
    )
    comparison.check_comparable()
    if comparison.is_decided and not run.interrupted:
        run.store.clear()
    return comparison


def _without_probabilities(learners: list[Learner], terms: Terms) -> dict[str, str]:
    """Learners that cannot be scored because the metric needs probabilities, with the reason."""
    if not needs_probabilities(terms.scoring):
        return {}
    mute = [
        learner.name for learner in learners if not hasattr(learner.build(terms), "predict_proba")
    ]
    if len(mute) == len(learners):
        do = "does" if len(mute) == 1 else "do"
        raise ValueError(
            f"metric={terms.scoring!r} scores probabilities, which {listed(mute)} {do} not give; "
            "use another metric, or other learners."
        )
    return dict.fromkeys(mute, f"it gives no probabilities, which {terms.scoring} scores")


def _work_folder(terms: Terms, learners: list[Learner]) -> Path:
    """Return the folder of finished tasks, kept until the run is complete: one per data and settings."""
    names = []
    for learner in learners:
        is_yours = learner.family == "yours"
        names.append(_full_repr(learner.make(terms)) if is_yours else learner.name)
    settings = repr((terms.scoring, names, terms.random_state, version("mercerless")))
    digest = blake2b(terms.problem.digest() + settings.encode(), digest_size=12)
    # as scikit-learn's get_data_home
    home = os.environ.get("SCIKIT_LEARN_DATA", Path("~", "scikit_learn_data"))
    return Path(home).expanduser() / "mercerless" / "compare" / digest.hexdigest()


def _full_repr(estimator: BaseEstimator) -> str:
    """Return an estimator with all its parameters; its own repr leaves out what is long."""
    with np.printoptions(threshold=sys.maxsize, precision=17):
        return repr((type(estimator), sorted(estimator.get_params().items())))


@dataclass(repr=False)
class Comparison:
    """The outcome of `compare`: all scores, the statistics of their differences, and the recommendation.

    Parameters
    ----------
    terms : Terms
        The data and what was inferred about it, the score that counts, the spectrum, and the seed.
    learners : list of Learner
        The learners that were requested, or all that apply.
    records : list of Record
        One per fit: learner, repeat, fold, part of the training set, scores, times, size.
    negative : NegativePart or None
        Effect of the negative part on held-out labels; None if there is no such part, or no time was left to judge it.
    reasons : dict of str to str
        Why a learner may lack scores.
    failed : dict of str to str
        Learners that failed, with the error.
    interrupted : bool
        Whether the user stopped the run before its end.
    budget : float or None
        Seconds that were allowed.
    elapsed : float
        Seconds that were used.
    limits : dict of str to Level
        Levels up to which learners were requested.
    missing_seconds : float
        Rough time that scoring every learner on all items would still take.
    to_continue : str
        The command that continues an unfinished run.
    finished : str
        Date and time.

    See Also
    --------
    compare : Makes it.

    Examples
    --------
    >>> from mercerless import compare
    >>> from mercerless.datasets import load_digit_shapes
    >>> shapes = load_digit_shapes(100)
    >>> result = compare(shapes.D, shapes.target, learners=["dummy", "neighbors"], repeats=1)
    >>> result.table[0]["learner"], len(result.records)
    ('neighbors', 10)
    """

    terms: Terms
    learners: list[Learner]
    records: list[Record]
    negative: NegativePart | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    budget: float | None = None
    elapsed: float = 0.0
    limits: dict[str, Level] = field(default_factory=dict)
    missing_seconds: float = 0.0
    to_continue: str = "mercerless.compare(X, y, ..., resume=True, budget={budget!r})"
    finished: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M %Z"))

    @property
    def problem(self) -> Problem:
        """The data, and what was inferred about it."""
        return self.terms.problem

    @property
    def metric(self) -> str:
        """The score that counts."""
        return self.terms.scoring

    @property
    def random_state(self) -> int:
        """Seed of the splits and of the learners."""
        return self.terms.random_state

    # ------------------------------------------------------------------------------------------ scores and order

    @cached_property
    def levels(self) -> dict[str, Level]:
        """The level at which each learner is shown: the highest of the levels with most splits.

        Thus a search replaces the defaults as soon as it has as many splits, whatever either scores.
        """
        counts: dict[str, Counter[Level]] = {}
        for record in self.records:
            name = record.task.learner
            if record.is_split and name not in self.failed:
                counts.setdefault(name, Counter())[record.task.level] += 1
        return {
            name: max(of_levels, key=lambda level: (min(of_levels[level], N_FOLDS), level))
            for name, of_levels in counts.items()
        }

    @property
    def parts(self) -> dict[str, float]:
        """The part of the training sets that each learner is trained on."""
        return {name: level.part for name, level in self.levels.items()}

    @property
    def is_decided(self) -> bool:
        """Whether most of the learners were scored on all splits and all items, so that one can be recommended.

        Learners that failed, that the metric cannot score, and the constant guess do not count.
        """
        rivals = [
            learner.name
            for learner in self.learners
            if learner.name != "dummy"
            and learner.name not in self.failed
            and "gives no probabilities" not in self.reasons.get(learner.name, "")
        ]
        complete = [name for name in rivals if self._is_complete(name)]
        return 2 * len(complete) >= len(rivals)

    def _is_complete(self, name: str) -> bool:
        """Whether a learner has all splits on as many items as were requested."""
        if name not in self._single:
            return False
        n_splits = sum(repeat == 0 for repeat, _ in self._single[name])
        return n_splits == N_FOLDS and self.parts[name] == self.limits.get(name, Level()).part

    @property
    def budget_to_decide(self) -> str:
        """A budget that should suffice for all learners on all items, such as "10m"."""
        minutes = 1.5 * (self.elapsed + self.missing_seconds) / 60.0
        steps = (2, 5, 10, 20, 30, 60, 120, 240, 480)
        return f"{next((step for step in steps if step >= minutes), 960)}m"

    @property
    def command_to_continue(self) -> str:
        """The command that continues a comparison that is not decided."""
        return self.to_continue.format(budget=self.budget_to_decide)

    @cached_property
    def _single(self) -> Records:
        """Records by learner and split, of learners that can be compared with the others."""
        results: Records = {}
        for learner in self.learners:
            of_learner = {
                record.split: record
                for record in self.records
                if record.is_split
                and record.task.learner == learner.name
                and record.task.level == self.levels.get(learner.name)
            }
            if of_learner:
                results[learner.name] = of_learner
        most = max(map(len, results.values()), default=0)
        return {
            name: records
            for name, records in results.items()
            if 2 * min(len(records), N_FOLDS) >= min(most, N_FOLDS)
        }

    @property
    def left_out(self) -> dict[str, str]:
        """Learners without a score that can be compared, with the reason."""
        names = [learner.name for learner in self.learners]
        missing = [name for name in names if name not in self._single and name not in self.failed]
        return {name: self.reasons.get(name, "it was not run") for name in missing}

    @cached_property
    def splits(self) -> list[tuple[int, int]]:
        """The splits, as (repeat, fold), that every compared learner was scored on."""
        common = [set(records) for records in self._single.values()]
        return sorted(set.intersection(*common)) if common else []

    @cached_property
    def results(self) -> Records:
        """The records of single learners and, for tables, of the vote of the three best."""
        return {
            **self._single,
            **vote_records(self.problem, self._single, self.splits, self.metric),
        }

    @cached_property
    def members(self) -> list[str]:
        """The learners that vote, the best first; none if there is no vote."""
        return best_three(self._single, self.splits, self.metric) if VOTE in self.results else []

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
        learner = next(learner for learner in self.learners if learner.name == name)
        return learner.in_form(self.levels.get(name, Level()).form)

    def check_comparable(self) -> None:
        """Raise if nothing can be compared."""
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
            f"The budget of {duration(self.budget or 0)} is too short for a single learner; give "
            "more, or fewer items."
        )

    @cached_property
    def _ranked(self) -> list[str]:
        """Names of the compared learners, the best mean first; ties go to sound, simple and cheap learners."""

        def key(name: str) -> tuple:
            records = [self.results[name][split] for split in self.splits]
            cost = float(np.median([record.fit_time for record in records]))
            unsound = not self._is_sound(name)
            return (
                -round(float(np.mean(self._scores(name))), 12),
                unsound,
                self.learner(name).complexity,
                cost,
            )

        return sorted(self.results, key=key)

    def _is_sound(self, name: str) -> bool:
        """Whether a learner suits the matrix: a plain SVM on an indefinite one does not."""
        return not (self.learner(name).family == "raw" and self.terms.is_indefinite)

    @cached_property
    def names(self) -> list[str]:
        """Names of the compared learners, the recommended one first, the others by mean score."""
        first = self._choose()
        return [first, *(name for name in self._ranked if name != first)]

    def _choose(self) -> str:
        """The winner; without one the vote, unless choosing a single learner does better.

        A learner that is not sound on these data is recommended only if it is better than all that are.
        """
        ranked = self._ranked
        top = next(i for i, name in enumerate(ranked) if name != VOTE)
        if VOTE not in ranked:
            sound = [i for i, name in enumerate(ranked) if self._is_sound(name) and name != "dummy"]
            if (
                not self._is_sound(ranked[top])
                and sound
                and not self._compared(ranked).better(top, sound[0])
            ):
                return ranked[sound[0]]
            return ranked[top]
        compared = self._compared(ranked)
        wins = all(
            compared.better(top, i) for i in range(len(ranked)) if i != top and ranked[i] != VOTE
        )
        return ranked[top] if wins or self._is_choice_better_than_vote() else VOTE

    def _is_choice_better_than_vote(self) -> bool:
        """Whether choosing a single learner does better than the vote by a standard error, or always does the same.

        Learners and members are both chosen by other splits than the one that scores them. One learner may be
        far better than the next two, whose votes then spoil it, even if too few items show it beyond doubt.
        """
        choice = chosen_records(self._single, self.splits, self.metric)
        compared = self._compare_records([choice, self.results[VOTE]])
        # both are zero if the vote is right and wrong on the same items: then one learner is simpler
        return bool(compared.difference[0, 1] >= compared.standard_error[0, 1])

    def _scores(self, name: str, metric: str | None = None) -> list[float]:
        records = self.results[name]
        return [records[split].scores.get(metric or self.metric, np.nan) for split in self.splits]

    @cached_property
    def differences(self) -> Differences:
        """All pairwise differences, in the order of `names`."""
        return self._compared(self.names)

    def _compared(self, names: list[str]) -> Differences:
        return self._compare_records([self.results[name] for name in names])

    def _compare_records(self, records: list[dict[tuple[int, int], Record]]) -> Differences:
        """All pairwise differences of learners, or ways to choose them, each with a record for every split."""
        if is_mean_of_items(self.metric):
            splits = [self._split(split, [of[split] for of in records]) for split in self.splits]
            return compare_splits(splits, N_FOLDS)
        scores = [[of[split].scores[self.metric] for of in records] for split in self.splits]
        return compare_scores(np.array(scores), N_FOLDS)

    def _split(self, split: tuple[int, int], records: list[Record]) -> ScoredSplit:
        """Contributions of the learners' predictions on one split."""
        test = self.rows_of_splits[split]
        repeat = split[0]
        problem = self.problem
        added = np.column_stack(
            [contributions(self.metric, record.target, record.predicted) for record in records]
        )
        if problem.groups is not None:
            return ScoredSplit(repeat, self._groups[test], np.zeros(len(test)), added)
        strata = problem.y[test] if problem.is_classification else np.zeros(len(test))
        return ScoredSplit(repeat, test, strata, added)

    @cached_property
    def rows_of_splits(self) -> dict[tuple[int, int], NDArray]:
        """The test items of every split."""
        return {
            split: make_split(self.problem, *split, self.random_state)[1] for split in self.splits
        }

    @cached_property
    def _groups(self) -> NDArray:
        assert self.problem.groups is not None
        return np.unique(self.problem.groups, return_inverse=True)[1]

    # ------------------------------------------------------------------------------------------- the outcome

    @property
    def recommended(self) -> str:
        """The name of the recommended learner: the one with the best mean score or, without a winner, the vote."""
        return self.names[0]

    @property
    def place_of_first(self) -> str:
        """Title of the first learner: recommended only if most learners were scored."""
        return "recommended" if self.is_decided else "best so far"

    @property
    def ties(self) -> list[str]:
        """Learners that are not distinguishable from the recommended one."""
        return [
            name for i, name in enumerate(self.names) if i and not self.differences.better(0, i)
        ]

    @property
    def has_winner(self) -> bool:
        """Whether the recommended learner is better than every other single one beyond doubt."""
        # a vote that the winner leads is no rival
        return len(self.names) > 1 and not set(self.ties) - {VOTE}

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """One row per learner, best first; differences are to the recommended one, with simultaneous intervals."""
        return [self._row(i, name) for i, name in enumerate(self.names)]

    def _row(self, i: int, name: str) -> dict[str, Any]:
        differences = self.differences
        records = [self.results[name][split] for split in self.splits]
        low, high = differences.interval(i, 0)
        learner = self.learner(name)
        row = {
            "learner": name,
            "title": learner.title,
            "family": learner.family,
            "score": float(differences.mean[i]),
            "low": float(differences.mean[i] - differences.half_width[i]),
            "high": float(differences.mean[i] + differences.half_width[i]),
            "difference": float(differences.difference[i, 0]),
            "difference_low": low,
            "difference_high": high,
            "verdict": "recommended"
            if i == 0
            else "worse"
            if differences.better(0, i)
            else "not distinguishable",
        }
        for metric in dict.fromkeys(metric for record in records for metric in record.scores):
            values = self._scores(name, metric)
            if np.isfinite(values).all():
                row[metric] = float(np.mean(values))
        row["fit_time"] = float(np.median([record.fit_time for record in records]))
        row["predict_time"] = float(np.median([record.predict_time for record in records]))
        row["size"] = int(np.median([record.size for record in records]))
        row["settings"] = self._settings[name]
        row["n_train"] = max(record.n_train for record in records)
        row["part"] = self.parts.get(name, 1.0)
        row["form"] = self.levels.get(name, Level()).form
        row["converged"] = all(record.converged for record in records)
        row["test_score"] = self._tested[name].scores[self.metric] if name in self._tested else None
        return row

    @cached_property
    def _settings(self) -> dict[str, int]:
        """How many settings each learner's search tries."""
        return {name: count_settings(self.estimator(name)) for name in self.names}

    @cached_property
    def _tested(self) -> dict[str, Record]:
        """Records of the given test set by learner."""
        tested = {
            record.task.learner: record
            for record in self.records
            if record.task.fold < 0
            and record.error is None
            and record.task.level == self.levels.get(record.task.learner)
        }
        if self.members and tested.keys() >= set(self.members):
            vote = vote_record(self.problem, self.metric, [tested[name] for name in self.members])
            if vote is not None:
                tested[VOTE] = vote
        return tested

    @cached_property
    def suspects(self) -> Suspects | None:
        """Items whose label the better learners, not having seen it, did not predict; None for numbers or few items."""
        return find_suspects(self) if self.problem.is_classification else None

    @cached_property
    def verdict(self) -> list[str]:
        """The outcome in sentences; it names a winner only if there is one."""
        return verdict_of(self)

    @property
    def spectrum(self) -> Indefiniteness | None:
        """How indefinite the similarities are; None for tables."""
        return None if self.terms.spectrum is None else self.terms.spectrum.indefiniteness

    @cached_property
    def _curve_points(self) -> dict[str, dict[float, dict[int, Record]]]:
        """Records of the first repeat by learner, part of the training set and fold."""
        points: dict[str, dict[float, dict[int, Record]]] = {name: {} for name in self._single}
        for record in self.records:
            name, repeat, fold, part, form = record.task
            if not record.is_split or repeat != 0 or name not in points:
                continue
            level = self.levels[name]
            if form == level.form and part <= level.part:
                points[name].setdefault(part, {})[fold] = record
        return points

    @cached_property
    def curve_folds(self) -> list[int]:
        """The folds of the first repeat that learning curves average: all, or the first if some lack sizes."""
        of_parts = [set(folds) for parts in self._curve_points.values() for folds in parts.values()]
        common = set.intersection(*of_parts) if of_parts else set()
        return sorted(common) if len(common) == N_FOLDS else [0]

    @cached_property
    def curves(self) -> dict[str, list[tuple[int, float]]]:
        """Learning curves: mean score by mean size of the training set, over the same splits for all."""
        curves = {}
        for name in (name for name in self.names if name in self._curve_points):
            of_parts = [
                parts for _, parts in sorted(self._curve_points[name].items()) if 0 in parts
            ]
            records = [[folds[fold] for fold in self.curve_folds] for folds in of_parts]
            curves[name] = [
                (
                    round(np.mean([r.n_train for r in of])),
                    float(np.mean([r.scores[self.metric] for r in of])),
                )
                for of in records
            ]
        return curves

    # ------------------------------------------------------------------------------------------ code and reports

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
        return self.learner(name).build(self.terms)

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
        return code_for(self.problem, learner, learner.build(self.terms))

    @property
    def n_repeats(self) -> int:
        """How many complete repeats were run."""
        repeats = [repeat for repeat, _ in self.splits]
        return sum(repeats.count(repeat) == N_FOLDS for repeat in set(repeats))

    @property
    def specification(self) -> list[str]:
        """The compared learners as `compare` takes them, with their parts of the training sets."""
        names = [learner.name for learner in self.learners if learner.name in self.names]
        texts = []
        for name in names:
            level = self.levels[name]
            text = name
            if level.form == "defaults":
                text += "@defaults"
            if level.part < 1.0:
                text += f"@{level.part:g}"
            texts.append(text)
        return texts

    @property
    def python_command(self) -> str:
        """The call that repeats this comparison exactly."""
        yours = {learner.name: learner for learner in self.learners if learner.family == "yours"}
        listed_learners = []
        unsaid = []
        for text in self.specification:
            name = text.partition("@")[0]
            if name not in yours:
                listed_learners.append(repr(text))
                continue
            estimator = describe(self.learner(name).make(self.terms))
            if "<" in estimator:  # a function or an object that no code makes
                unsaid.append(f"  # {name.replace(' ', '_')}: {estimator}")
                estimator = name.replace(" ", "_")
            listed_learners.append(f"({text!r}, {estimator})")
        return (
            f"mercerless.compare(X, y, kind={self.problem.kind!r}, task={self.problem.task!r}, "
            f"metric={self.metric!r}, "
            f"learners=[{', '.join(listed_learners)}], repeats={max(1, self.n_repeats)}, "
            f"random_state={self.random_state})" + "".join(unsaid)
        )

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that the numbers depend on, by name."""
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
            "versions": self.versions,
            "guesses": [guess._asdict() for guess in self.problem.guesses],
            "negative": None if self.negative is None else self.negative._asdict(),
            "command": self.python_command,
            "code": self.code(),
            "records": [record.to_plain() for record in self.records],
        }
        write_text(path, json.dumps(content, indent=1))

    def report(
        self, path: str | os.PathLike, command: str | None = None, rows: bool = True
    ) -> None:
        """Write the comparison as one self-contained HTML page.

        Parameters
        ----------
        path : path-like
            The file.
        command : str or None, default=None
            The command that reproduces it; None means the call in Python.
        rows : bool, default=True
            Whether the page may show single items: the first rows of a table, the map, items worth a look, and the
            predictions to download. If it is shared, False leaves these out; the ranges and frequent values of
            columns, and dots without names, remain.
        """
        write_text(path, render(self, command, rows))

    def __repr__(self) -> str:
        """One line: what was compared, what is recommended."""
        state = "interrupted, " if self.interrupted else ""
        return (
            f"<Comparison of {len(self.names)} learners on {self.problem.name!r}: "
            f"{state}{self.place_of_first} "
            f"{self.recommended!r}, {len(self.ties)} not distinguishable from it>"
        )

    def _repr_html_(self) -> str:
        """The short table and the verdict for notebooks."""
        return render_short(self)

    def __str__(self) -> str:
        """The short table and the verdict as text."""
        return text_of(self)
