"""What to use, in a few sentences: which learner, how sure that is, and what else a user should know."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.learners import GUESS
from mercerless.comparison.page.charts import number
from mercerless.comparison.race import N_FOLDS
from mercerless.comparison.statistics import CLIP, chance_of_shuffled

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison

N_SHUFFLES = 199
#: A chance above this means that nothing was learned.
CHANCE = 0.05
#: Classes are unbalanced if the smallest has a smaller share.
BALANCED = 0.2
#: Grades of the statistics in the order of sentences, and their words.
GRADES = {
    "better": "better than",
    "probably better": "probably better than",
    "not distinguishable": "not distinguishable from",
    "probably worse": "probably worse than",
    "worse": "worse than",
}
#: A learner that predicts faster by this factor is named.
MUCH_FASTER = 3.0


@dataclass(frozen=True)
class Verdict:
    """The recommended learner (None if there is none), and the sentences."""

    recommended: str | None
    sentences: tuple[str, ...]
    chance: float  # that any learner does as well on shuffled labels

    @property
    def learned(self) -> bool:
        """Whether predictions go with the labels beyond chance."""
        return self.chance <= CHANCE


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names with commas and an "and"."""
    names = list(names)
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    if len(names) < 2:
        return names[0]
    comma = "," if any(" and " in name for name in names) else ""
    return f"{', '.join(names[:-1])}{comma} and {names[-1]}"


def recommend(comparison: "Comparison") -> str:
    """The automatic learner, unless a rival is better beyond doubt; the best one if it is missing."""
    names = comparison.ranked
    judged, control = comparison.judgment, comparison.control
    possible = list(range(len(names)))
    if control is not None:
        possible = [i for i in possible if judged.better[i, control]] or [control]
    return names[min(possible, key=lambda i: judged.loss[i])]


def reach_verdict(comparison: "Comparison") -> Verdict:
    """The verdict of a comparison."""
    if not comparison.ranked:
        sentence = (
            "No learner has finished, so nothing can be recommended yet; continue with: "
            f"{comparison.command_to_continue}"
        )
        return Verdict(None, (sentence,), 1.0)
    name, chance = recommend(comparison), chance_of_nothing(comparison)
    sentences = [first_sentence(comparison, name, chance)]
    if chance <= CHANCE:
        sentences += [
            warning(comparison, name),
            compared(comparison, name),
            alternative(comparison, name),
        ]
    return Verdict(name, tuple(filter(None, sentences)), chance)


def first_sentence(comparison: "Comparison", name: str, chance: float) -> str:
    """What to use, and how good it is."""
    if chance > CHANCE:
        return (
            "Nothing was learned: the predictions go with the labels no better than with shuffled labels "
            f"(p = {chance:.2f}), so no learner is better than a guess on these data."
        )
    score, guess = comparison.scores[name], comparison.scores["guess"]
    if comparison.problem.is_classification:
        other, form = ("AUC", ".3f") if comparison.is_unbalanced else ("accuracy", ".1%")
        figures = f"a log-loss of {score['log-loss']:.3f} and an {other} of {score[other]:{form}}"
        baseline = f"{guess['log-loss']:.3f} and {guess[other]:{form}}"
    else:
        figures = f"an R² of {score['R²']:.3f} and a mean absolute error of {number(score['MAE'])}"
        baseline = number(guess["MAE"])
    return (
        f"Recommended: {lower(comparison.titles[name])}, with {figures} on items it has not seen "
        f"({baseline} for a constant guess{rows_used(comparison)})."
    )


def warning(comparison: "Comparison", name: str) -> str:
    """What a reader of the first sentence may miss: a better guess, or a missing automatic learner."""
    score, guess = comparison.scores[name], comparison.scores[GUESS]
    loss = "log-loss" if comparison.problem.is_classification else "RMSE"
    if score[loss] >= guess[loss]:
        return f"The {loss} of a constant guess is not worse: do not rely on these predictions."
    first = comparison.race.learners[0]
    if first.is_automatic and first.name not in comparison.ranked:
        return (
            f"The {lower(first.title)} did not finish; to include it, continue with: "
            f"{comparison.command_to_continue}"
        )
    return ""


def rows_used(comparison: "Comparison") -> str:
    """A remark if not all rows or splits were used."""
    race, n_items = comparison.race, comparison.problem.n_items
    if n_items < race.n_all:
        return f"; all learners got the same sample of {n_items:,} of the {race.n_all:,} items"
    if race.n_splits < N_FOLDS:
        return f"; {race.n_splits} of {N_FOLDS} splits were run, the same for all learners"
    return ""


def lower(title: str) -> str:
    """A title inside a sentence; names and abbreviations keep their capitals."""
    first = title.split()[0]
    is_name = first == "Krein" or first[1:] != first[1:].lower()
    return title if is_name else title[0].lower() + title[1:]


def compared(comparison: "Comparison", name: str) -> str:
    """How the recommended learner compares with the others."""
    names = comparison.ranked
    place = names.index(name)
    titles: dict[str, list[str]] = {}
    for i, rival in enumerate(names):
        if i != place:
            grade = comparison.judgment.grade(place, i)
            titles.setdefault(grade, []).append(lower(comparison.titles[rival]))
    parts = [f"{words} {listed(titles[key])}" for key, words in GRADES.items() if key in titles]
    if not parts:
        return (
            "No other learner finished, so it is not compared with anything but a constant guess."
        )
    sentence = f"By {comparison.metric_title} it is {listed(parts, 5)}"
    if comparison.is_unbalanced and comparison.metric != "accuracy":
        sentence += (
            f"; learners are ranked by {comparison.metric_title}, because the smallest class has only "
            f"{comparison.smallest_share:.1%} of the items and accuracy says little"
        )
    return sentence + "."


def alternative(comparison: "Comparison", name: str) -> str:
    """A learner that is as good as far as can be seen, and predicts much faster."""
    names, judged = comparison.ranked, comparison.judgment
    place = names.index(name)
    largest = judged.loss[place] + judged.standard_error[place]
    equal = [
        rival
        for i, rival in enumerate(names)
        if judged.grade(place, i) == "not distinguishable" and judged.loss[i] <= largest[i]
    ]
    seconds = {rival: comparison.seconds(rival)[1] for rival in equal}
    fastest = min(equal, key=lambda one: (comparison.learner(one).is_searched, seconds[one]))
    factor = seconds[name] / max(seconds[fastest], 1e-6)
    if fastest == name or factor < MUCH_FASTER:
        return ""
    title = lower(comparison.titles[fastest])
    return f"As good as far as these data show, and {factor:,.0f} times faster at predictions: {title}."


# --------------------------------------------------------------------------------------------------- shuffled labels


def chance_of_nothing(comparison: "Comparison") -> float:
    """The chance that any learner does as well if labels are shuffled within the test sets."""
    problem, race = comparison.problem, comparison.race
    rng = np.random.default_rng(0)
    tests = [race.split(task)[1] for task in race.tasks(GUESS)]
    items = np.concatenate(tests)
    orders = [np.concatenate([rng.permutation(test) for test in tests]) for _ in range(N_SHUFFLES)]
    given = np.searchsorted(problem.classes, problem.y) if problem.is_classification else problem.y
    labels = [given[order] for order in (items, *orders)]
    losses = np.array(
        [mean_losses(comparison.predictions(name)[0][items], labels) for name in comparison.ranked]
    )
    return chance_of_shuffled(losses[:, 0], losses[:, 1:])


def mean_losses(predictions: NDArray, labels: list[NDArray]) -> list[float]:
    """Mean loss of predictions for each list of numbers, or of codes of classes."""
    if predictions.ndim == 1:
        return [((predictions - y) ** 2).mean() for y in labels]
    costs, rows = -np.log(np.clip(predictions, CLIP, 1.0)), np.arange(len(predictions))
    return [costs[rows, codes].mean() for codes in labels]
