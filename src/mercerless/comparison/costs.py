"""Times of fits: measured, extrapolated from smaller ones, or guessed before anything was run."""

import time

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid

from mercerless.comparison.learners import FOR_MANY, Learner, Terms
from mercerless.comparison.records import Level, Record
from mercerless.comparison.scoring import N_FOLDS


class Costs:
    """Expected seconds of one split, for every learner and level.

    A level that was run costs what it took. Another one is extrapolated from smaller parts in the same form; a search
    from the defaults, by the number of its fits; and a learner that was not run at all from what it takes elsewhere,
    corrected by how fast the other learners were here.
    """

    def __init__(self, terms: Terms, slowdown: float = 1.0):
        self.terms = terms
        self.slowdown = slowdown
        self.measured: dict[tuple[str, Level], list[float]] = {}
        self.guessed: dict[
            str, tuple[float, float]
        ] = {}  # seconds guessed and measured, by learner

    def note(self, learner: Learner | None, record: Record) -> None:
        """Remember the time of a fit."""
        if learner is None or not record.is_split:
            return
        # predictions are made twice, the second time for the scores
        seconds = record.fit_time + 2 * record.predict_time * len(record.target)
        level = record.task.level
        self.measured.setdefault((learner.name, level), []).append(seconds)
        self.guessed[learner.name] = self._guess(learner, level), seconds

    def is_measured(self, learner: Learner) -> bool:
        """Whether any fit of a learner was measured."""
        return any(name == learner.name for name, _ in self.measured)

    def of_split(self, learner: Learner, level: Level) -> float:
        """Expected seconds of one split."""
        known = self._of_parts(learner, level.form)
        if known:
            return self._extrapolated(learner, known, level.part)
        if level.form == "search":
            defaults = self._of_parts(learner, "defaults")
            if defaults:
                seconds = self._extrapolated(learner, defaults, level.part)
                return seconds * self._n_fits(learner, level.part)
        return self._guess(learner, level) * self._speed()

    def _of_parts(self, learner: Learner, form: str) -> dict[float, float]:
        return {
            level.part: float(np.mean(seconds))
            for (name, level), seconds in self.measured.items()
            if name == learner.name and level.form == form
        }

    def _extrapolated(self, learner: Learner, known: dict[float, float], part: float) -> float:
        """Seconds for a part, from those of others.

        The exponent of the growth is that between the two largest parts known. From a single one it is that of the
        learner's form for many items, or 1, until a split of a larger part is measured.
        """
        if part in known:
            return known[part]
        smaller = sorted(size for size in known if size < part)
        if not smaller:
            return min(known.values())
        largest = smaller[-1]
        growth = self._growth(learner)
        if len(smaller) > 1:
            before = smaller[-2]
            log_seconds = np.log(known[largest] / known[before])
            growth = np.clip(log_seconds / np.log(largest / before), 0.1, 3.0)
        return float(known[largest] * (part / largest) ** growth)

    def _growth(self, learner: Learner) -> float:
        return learner.growth if self.terms.is_large else 1.0

    def _n_items(self, part: float) -> float:
        return part * len(self.terms.problem.y) * (1 - 1 / N_FOLDS)

    def _guess(self, learner: Learner, level: Level) -> float:
        """Seconds of one split, from the learner's usual time for a thousand items."""
        growth = self._growth(learner)
        thousands = self._n_items(level.part) / 1000.0
        seconds = learner.seconds * thousands**growth
        if level.form == "search":
            seconds *= self._n_fits(learner, level.part)
        return seconds

    def _speed(self, prior_seconds: float = 0.3) -> float:
        """How much longer than guessed fits take on this machine: its load at first, then the measured fits.

        Longer fits count more; the load counts as much as ``prior_seconds`` of fits.
        """
        guessed = prior_seconds
        measured = prior_seconds * self.slowdown
        for guess, seconds in self.guessed.values():
            guessed += guess
            measured += seconds
        return measured / guessed

    def _n_fits(self, learner: Learner, part: float) -> float:
        """How many fits on all training items a search is worth; 1 for a learner that has no grid."""
        n_items = int(self._n_items(part))
        terms = self.terms.for_items(n_items)
        search = learner.make(terms)
        if not isinstance(search, GridSearchCV):
            return 1.0
        n_settings = len(ParameterGrid(search.param_grid))
        if terms.is_large:
            share = min(1.0, FOR_MANY.search_items / n_items)
            return 1.0 + n_settings * share ** self._growth(learner)
        return 1.0 + n_settings * N_FOLDS * (1 - 1 / N_FOLDS)


def measure_slowdown(seconds: float = 0.02) -> float:
    """Factor by which other processes on the same cores slow this one down; 1 if there are none."""
    start = time.perf_counter()
    used = time.process_time()
    while time.process_time() - used < seconds:
        pass
    wall = time.perf_counter() - start
    return max(1.0, wall / seconds)
