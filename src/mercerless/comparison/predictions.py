"""Predictions of the recommended learner for items it has not seen: errors, thresholds, importance, all metrics."""

import csv
import gzip
import io
import time
import warnings
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import (
    average_precision_score,
    get_scorer,
    max_error,
    median_absolute_error,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from mercerless.comparison.drawing import NO_NUMBER, PlotFrame, minus, plain_number, widened
from mercerless.comparison.items import LIMITS as ITEM_LIMITS
from mercerless.comparison.items import Predicted, item_names, percent
from mercerless.comparison.learners import block, group_arguments, matrix_for, rows_between
from mercerless.comparison.page import Html, fill, fill_each, join
from mercerless.comparison.problem import Problem, take
from mercerless.comparison.scoring import inner_folds, keep_groups, make_split, take_part
from mercerless.comparison.words import WORDS, duration, format_score, metric_words
from mercerless.core.memory import format_bytes

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison


@dataclass(frozen=True)
class PredictionLimits:
    """Time for refits of the page, and how much it shows."""

    seconds: float = 15.0  # of fits if there is no budget
    page_share: float = 0.05  # of the budget that the page may take beyond it
    page_seconds: float = 2.0  # the same, at least
    fits_share: float = 0.5  # of the time for the page, at most, goes into fits
    map_share: float = 0.6  # of what is then left of it, at most, goes into the map
    most_seconds: float = 30.0
    dots: int = 600  # of a scatter plot
    curve_points: int = 300
    test_rows: int = 1000  # on which columns are shuffled
    fewest_test_rows: int = 50
    shuffles: int = 5
    columns: int = 12  # that are drawn; the others are folded
    csv_bytes: int = 300_000  # beyond which the predictions are compressed


LIMITS = PredictionLimits()


# ---------------------------------------------------------------------------------------------- fitting again


def seconds_for_page(comparison: "Comparison") -> float:
    """Seconds that the page may take: the rest of the budget, and a little more."""
    if comparison.budget is None:
        return float("inf")
    unused = max(0.0, comparison.budget - comparison.elapsed)
    return unused + max(LIMITS.page_share * comparison.budget, LIMITS.page_seconds)


class Refit(NamedTuple):
    """A learner fitted again on the training part of a split, and the split's test items."""

    estimator: BaseEstimator
    X_test: Any
    rows: NDArray


@dataclass
class Refits:
    """Learners fitted again for the page, within a time limit; fitted ones are kept."""

    comparison: "Comparison"
    seconds: float
    fitted: dict[tuple[str, tuple[int, int]], Refit] = field(default_factory=dict)

    @classmethod
    def within_budget(cls, comparison: "Comparison") -> "Refits":
        """Refits within the time for the page."""
        if comparison.budget is None:
            return cls(comparison, LIMITS.seconds)
        allowed = LIMITS.fits_share * seconds_for_page(comparison)
        return cls(comparison, min(allowed, LIMITS.most_seconds))

    def cost(self, name: str) -> float:
        """Seconds that one fit of a learner takes."""
        row = next(row for row in self.comparison.table if row["learner"] == name)
        return float(row["fit_time"]) + float(row["predict_time"]) * len(self.comparison.problem.y)

    def fit(self, name: str, split: tuple[int, int]) -> Refit | None:
        """Fit a learner on this split; None if the time does not suffice or the fit fails."""
        if (name, split) not in self.fitted:
            if self.cost(name) > self.seconds:
                return None
            start = time.perf_counter()
            try:
                self.fitted[name, split] = _fit_again(self.comparison, name, split)
            except Exception:  # the page must not be lost because a fit fails a second time
                return None
            finally:
                self.seconds -= time.perf_counter() - start
        return self.fitted[name, split]


def _fit_again(comparison: "Comparison", name: str, split: tuple[int, int]) -> Refit:
    problem = comparison.problem
    learner = comparison.learner(name)
    record = comparison.results[name][split]
    train, test = make_split(problem, *split, comparison.random_state)
    train = take_part(problem, train, record.task.part, comparison.random_state)
    X = matrix_for(problem, learner.takes)
    if problem.is_matrix:
        X_train = block(X, train, train)
        X_test = rows_between(X, learner.takes, test, train)
    else:
        X_train = take(X, train)
        X_test = take(X, test)
    estimator = learner.build(comparison.terms.for_items(len(train)))
    group_options = {}
    if problem.groups is not None:
        folds = inner_folds(problem, train)
        keep_groups(estimator, folds)
        group_options = group_arguments(estimator, problem.groups[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same warnings were shown when it was scored
        estimator.fit(X_train, problem.y[train], **group_options)
    return Refit(estimator, X_test, test)


def first_splits(comparison: "Comparison") -> list[tuple[int, int]]:
    """The splits of the first repeat."""
    first = comparison.splits[0][0]
    return [split for split in comparison.splits if split[0] == first]


def whose_predictions(comparison: "Comparison") -> str:
    """A sentence on which items the pictures show, and how their score relates to that of the table."""
    name = comparison.recommended
    scores = [
        comparison.results[name][split].scores[comparison.metric]
        for split in first_splits(comparison)
    ]
    n_repeats = len({repeat for repeat, _ in comparison.splits})
    score = format_score(comparison.metric, float(np.mean(scores)))
    begin = f"{comparison.table[0]['title']} on items it had not seen"
    words = f"{metric_words(comparison.metric)} of {score}"
    if n_repeats == 1:
        return f"{begin}: {words}, as in the table."
    mean = format_score(comparison.metric, comparison.table[0]["score"])
    mean_of_repeats = f"the table has the mean of {n_repeats} repeats, {mean}"
    return f"{begin}, of the first repeat: {words}; {mean_of_repeats}."


# ------------------------------------------------------------------------------------------- classes and numbers


def confusion_section(held: Predicted, problem: Problem, caption: str) -> Html:
    """The section with the confusion matrix."""
    classes = np.unique(problem.y)
    counts = count_pairs(held.target, held.predicted, len(classes))
    matrix = Html()
    if len(classes) <= ITEM_LIMITS.classes:
        matrix = _confusion_matrix(counts, classes)
    return fill(
        "items.confusion",
        words=hard_classes(counts, classes),
        matrix=matrix,
        caption=f"{caption} Rows are the given classes.",
    )


def _confusion_matrix(counts: NDArray, classes: NDArray) -> Html:
    totals = np.maximum(counts.sum(axis=1), 1)
    rows = []
    for i, label in enumerate(classes):
        shares = 100.0 * counts[i] / totals[i]
        cells = [
            {
                "share": f"{share:.0f}",
                "state": Html(" class=right") if i == j else Html(),
                "count": f"{count:,}" if count else "·",
            }
            for j, (count, share) in enumerate(zip(counts[i], shares))
        ]
        right = f"{shares[i]:.0f} %"
        cells_html = fill_each("items.confusion-cell", cells)
        rows.append(fill("items.confusion-row", label=label, cells=cells_html, right=right))
    head = fill_each("items.confusion-head", ({"label": label} for label in classes))
    return fill("items.confusion-matrix", head=head, body=join(rows))


def hard_classes(counts: NDArray, classes: NDArray) -> str:
    """A sentence on the class with the lowest recall and the class it is confused with."""
    totals = counts.sum(axis=1)
    recall = np.where(totals > 0, np.diagonal(counts) / np.maximum(totals, 1), np.nan)
    worst = int(np.nanargmin(recall))
    if recall[worst] == 1.0:
        return "Every item was recognized."
    others = counts[worst].copy()
    others[worst] = 0
    rival = int(others.argmax())
    is_even = np.nanmax(recall) - recall[worst] < 0.05
    begin = f"The hardest class is {classes[worst]}"
    what = "its items"
    if is_even:
        begin = "No class is much harder than the others"
        what = f"the worst, {classes[worst]},"
    taken = f"{others[rival]} of {totals[worst]} are taken for {classes[rival]}"
    return f"{begin}: {percent(recall[worst])} of {what} are recognized, and {taken}."


def numbers_section(held: Predicted, caption: str) -> Html:
    """The section with predicted against given numbers, and residuals."""
    n_dots = min(len(held.rows), LIMITS.dots)
    kept = np.linspace(0, len(held.rows) - 1, n_dots).round().astype(int)
    given = held.target[kept].astype(float)
    predicted = held.predicted[kept].astype(float)
    both = widened(np.concatenate([given, predicted]))
    dashed = 'stroke="var(--soft)" stroke-dasharray="4 4"'
    axes = PlotFrame(both, both, ("given", "predicted"))
    scatter = axes.draw(
        "Predicted against given numbers",
        axes.line(np.array(both), np.array(both), dashed),
        axes.dots(given, predicted),
    )
    ends = widened(predicted)
    axes = PlotFrame(ends, widened(given - predicted), ("predicted", "given minus predicted"))
    residuals = axes.draw(
        "Residuals against predicted numbers",
        axes.line(np.array(ends), np.zeros(2), dashed),
        axes.dots(predicted, given - predicted),
    )
    errors = held.target - held.predicted
    half, most = np.quantile(np.abs(errors), [0.5, 0.9])
    within_half, within_most, bias = (
        plain_number(float(f"{size:.3g}")) for size in (half, most, abs(errors.mean()))
    )
    words = (
        f"Half of the predictions are within {within_half} of the given number, nine of ten within "
        f"{within_most}; on average they are {bias} too {'low' if errors.mean() > 0 else 'high'}."
    )
    return fill(
        "predictions.numbers", words=words, scatter=scatter, residuals=residuals, caption=caption
    )


# ---------------------------------------------------------------------------------------------- two classes


class Ranking(NamedTuple):
    """Out-of-fold scores of two classes: the learner, the items, whether they are positive, and the scores."""

    learner: str
    rows: NDArray
    is_positive: NDArray
    score: NDArray
    is_probability: bool


def ranking_learner(comparison: "Comparison") -> str | None:
    """The best learner whose probabilities, or scores of two classes, were kept; None if there is none."""
    names = [name for name in comparison.names if name != "dummy"]
    for name in names:
        records = comparison.results[name]
        if all(len(records[split].probability) for split in comparison.splits):
            return name
    return None


def rank_items(comparison: "Comparison") -> Ranking | None:
    """Scores of the best learner that ranks two classes, for the rarer of them; None if there is none."""
    problem = comparison.problem
    classes, counts = np.unique(problem.y, return_counts=True)
    learner = ranking_learner(comparison)
    if len(classes) != 2 or learner is None:
        return None
    positive = int(counts.argmin())
    splits = first_splits(comparison)
    items = np.concatenate([comparison.rows_of_splits[split] for split in splits])
    kept = np.concatenate([comparison.results[learner][split].probability for split in splits])
    is_probability = kept.shape[1] == len(classes)
    if is_probability:
        score = kept[:, positive]
    else:
        score = (2 * positive - 1) * kept[:, 0]
    is_positive = problem.y[items] == classes[positive]
    return Ranking(learner, items, is_positive, score, is_probability)


def ranking_section(comparison: "Comparison", ranking: Ranking | None) -> Html:
    """ROC, precision and recall, and thresholds by cost, for two classes."""
    problem = comparison.problem
    classes, counts = np.unique(problem.y, return_counts=True)
    if len(classes) != 2 or not problem.is_classification or ranking is None:
        return Html()
    positive = classes[counts.argmin()]
    negative = classes[1 - counts.argmin()]
    title = comparison.learner(ranking.learner).title
    what = "probabilities" if ranking.is_probability else "scores"
    words = (
        f"By the {what} that {title} gives to items it had not seen, for {positive}, the rarer "
        "class."
    )
    if ranking.learner != comparison.recommended:
        words += (
            f" It is the best learner that gives them; {comparison.table[0]['title']}, the "
            "recommended one, predicts classes only."
        )
    false_rate, true_rate, _ = roc_curve(ranking.is_positive, ranking.score)
    precision, recall, _ = precision_recall_curve(ranking.is_positive, ranking.score)
    share = float(ranking.is_positive.mean())
    unit = (0.0, 1.0)
    dashed = 'stroke="var(--soft)" stroke-dasharray="4 4"'
    solid = 'stroke="var(--c0)" stroke-width="2"'
    axes = PlotFrame(unit, unit, ("false alarms among the others", "found"))
    roc = axes.draw(
        "ROC curve",
        axes.line(np.array(unit), np.array(unit), dashed),
        axes.line(*_thinned(false_rate, true_rate), solid),
    )
    axes = PlotFrame(unit, unit, ("found (recall)", "right if called so (precision)"))
    drawn = axes.draw(
        "Precision by recall",
        axes.line(np.array(unit), np.array([share, share]), dashed),
        axes.line(*_thinned(recall, precision), solid),
    )
    return fill(
        "predictions.curves",
        positive=positive,
        negative=negative,
        words=words,
        roc=roc,
        area=f"{roc_auc_score(ranking.is_positive, ranking.score):.3f}",
        precision=drawn,
        average=f"{average_precision_score(ranking.is_positive, ranking.score):.3f}",
        rows=fill_each("predictions.cost", _cost_rows(ranking)),
        caption=f"Per row the threshold of least cost on these {len(ranking.rows):,} items; "
        "for new items it is a little dearer.",
    )


def _thinned(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    n_points = min(len(x), LIMITS.curve_points)
    kept = np.linspace(0, len(x) - 1, n_points).round().astype(int)
    return x[kept], y[kept]


def best_threshold(is_positive: NDArray, score: NDArray, cost: float) -> float:
    """The threshold of least cost if a miss costs `cost` false alarms; items at and above it are positive."""
    order = np.argsort(-score, kind="stable")
    found = np.concatenate([[0], np.cumsum(is_positive[order])])
    alarms = np.concatenate([[0], np.cumsum(~is_positive[order])])
    total = cost * (found[-1] - found) + alarms
    ordered = score[order]
    is_end = np.concatenate(
        [[True], ordered[1:] != ordered[:-1], [True]]
    )  # equal scores stay together
    best = int(np.where(is_end, total, np.inf).argmin())
    if best == 0:
        return float(np.nextafter(ordered[0], np.inf))
    if best == len(ordered):
        return float(ordered[-1])
    return float((ordered[best - 1] + ordered[best]) / 2.0)


def _cost_rows(ranking: Ranking) -> list[dict[str, Any]]:
    """The best thresholds by how many false alarms a miss costs."""
    costs = {
        0.1: "a tenth of a false alarm",
        0.2: "a fifth of a false alarm",
        0.5: "half of a false alarm",
        1.0: "as much as a false alarm",
        2.0: "as much as 2 false alarms",
        5.0: "as much as 5 false alarms",
        10.0: "as much as 10 false alarms",
    }
    return [_cost_row(ranking, cost, words) for cost, words in costs.items()]


def _cost_row(ranking: Ranking, cost: float, words: str) -> dict[str, Any]:
    threshold = best_threshold(ranking.is_positive, ranking.score, cost)
    called = ranking.score >= threshold
    hits = int((called & ranking.is_positive).sum())
    found = hits / max(1, int(ranking.is_positive.sum()))
    right = hits / max(1, int(called.sum()))
    return {
        "state": Html(" class=best") if cost == 1.0 else Html(),
        "cost": words,
        "threshold": minus(f"{threshold:.3f}"),
        "threshold_value": f"{threshold:.6g}",
        "found": percent(found),
        "found_value": f"{found:.6g}",
        "right": percent(right) if called.any() else NO_NUMBER,
        "right_value": f"{right:.6g}",
        "missed": int((~called & ranking.is_positive).sum()),
        "alarms": int((called & ~ranking.is_positive).sum()),
    }


# ------------------------------------------------------------------------------------------------ importance


def _seconds_of_score(comparison: "Comparison", refit: Refit) -> float:
    """Seconds that the score of a few rows takes."""
    n_rows = min(2, len(refit.rows))
    few = take(refit.X_test, np.arange(n_rows))
    scorer = get_scorer(comparison.metric)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scorer(refit.estimator, few, comparison.problem.y[refit.rows[:n_rows]])
        except ValueError:  # a score such as AUC needs both classes; the predictions were made
            pass
    return time.perf_counter() - start


def importance_section(comparison: "Comparison", refits: Refits, names: Sequence[str]) -> Html:
    """How much worse the recommended learner gets on held-out rows when the values of a column are shuffled."""
    problem = comparison.problem
    if problem.is_matrix or len(names) < 2:
        return Html()
    name = comparison.recommended
    row = comparison.table[0]
    split = first_splits(comparison)[0]
    refit = refits.fit(name, split)
    per_row = max(float(row["predict_time"]), 1e-7) * len(names)
    per_shuffle = 0.0
    n_rows = 0
    if refit is not None:
        # what a score takes however few rows there are
        per_shuffle = _seconds_of_score(comparison, refit) * len(names)
        affordable = int(max(0.0, refits.seconds - per_shuffle) / per_row)
        n_rows = min(len(refit.rows), LIMITS.test_rows, affordable)
    if refit is None or n_rows < min(LIMITS.fewest_test_rows, len(refit.rows)):
        cost = duration(refits.cost(name) + per_shuffle + per_row * LIMITS.fewest_test_rows)
        text = (
            f"Which columns matter is left out: to fit {row['title']} again and to shuffle every "
            f"column takes about {cost}, more than is left of the budget."
        )
        return fill("predictions.not-drawn", text=text)
    affordable_shuffles = int(refits.seconds / (per_shuffle + per_row * n_rows))
    shuffles = max(1, min(LIMITS.shuffles, affordable_shuffles))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importance = permutation_importance(
            refit.estimator,
            take(refit.X_test, np.arange(n_rows)),
            problem.y[refit.rows[:n_rows]],
            scoring=comparison.metric,
            n_repeats=shuffles,
            random_state=comparison.random_state,
        )
    refits.seconds -= time.perf_counter() - start
    order = np.argsort(-importance.importances_mean, kind="stable")
    largest = max(float(importance.importances_mean.max()), 1e-300)
    rows = [
        {
            "name": names[place],
            "width": f"{100.0 * max(0.0, importance.importances_mean[place]) / largest:.1f}",
            "value": _loss(comparison, importance, int(place)),
        }
        for place in order
    ]
    rest = Html()
    if len(rows) > LIMITS.columns + 2:
        folded = fill_each("predictions.importance-row", rows[LIMITS.columns :])
        rest = fill("predictions.importance-rest", count=len(rows) - LIMITS.columns, rows=folded)
        rows = rows[: LIMITS.columns]
    metric = metric_words(comparison.metric)
    return fill(
        "predictions.importance",
        words=f"By how much the {metric} of {row['title']} drops if the values of one column are "
        "shuffled among rows that it had not seen.",
        label="Importance of columns by shuffling; also as numbers beside the bars",
        rows=fill_each("predictions.importance-row", rows),
        rest=rest,
        caption=f"{n_rows:,} rows of one split, {shuffles} "
        f"{'shuffle' if shuffles == 1 else 'shuffles'} each; after ± the standard deviation of "
        "the shuffles. Of two columns that say the same, each may look unimportant.",
    )


def _loss(comparison: "Comparison", importance: Any, place: int) -> str:
    mean = format_score(comparison.metric, float(importance.importances_mean[place]))
    spread = format_score(comparison.metric, float(importance.importances_std[place]))
    return minus(f"{mean.removesuffix(' %')} ± {spread}")


# --------------------------------------------------------------------------------------------------- metrics


def other_metrics(comparison: "Comparison", name: str) -> dict[str, float]:
    """The usual metrics of a learner: means over the splits, from out-of-fold predictions."""
    row = next(row for row in comparison.table if row["learner"] == name)
    known = {WORDS[metric]: row[metric] for metric in WORDS if metric in row}
    records = [comparison.results[name][split] for split in comparison.splits]
    if not all(len(record.target) for record in records):
        return known
    classify = comparison.problem.is_classification
    measure = _class_metrics if classify else _number_metrics
    by_split = [measure(comparison.problem, record.target, record.predicted) for record in records]
    means = {metric: float(np.mean([of[metric] for of in by_split])) for metric in by_split[0]}
    return {**known, **means}


def _class_metrics(problem: Problem, target: NDArray, predicted: NDArray) -> dict[str, float]:
    """Metrics of classes from counts; scikit-learn's functions spend most of their time on checks."""
    classes, sizes = np.unique(problem.y, return_counts=True)
    counts = count_pairs(target, predicted, len(classes)) / len(target)
    hits = np.diagonal(counts)
    given = counts.sum(axis=1)
    called = counts.sum(axis=0)
    recall = hits / np.maximum(given, 1e-300)
    precision = hits / np.maximum(called, 1e-300)
    f1 = 2.0 * hits / np.maximum(given + called, 1e-300)
    by_chance = float(given @ called)
    accuracy = float(hits.sum())
    spread = (1.0 - float(given @ given)) * (1.0 - float(called @ called))
    metrics = {"mean F1": float(np.mean(f1[given + called > 0.0]))}
    if len(classes) == 2:
        rarer = int(sizes.argmin())
        metrics = {
            "precision": float(precision[rarer]),
            "recall": float(recall[rarer]),
            "specificity": float(recall[1 - rarer]),
            "F1": float(f1[rarer]),
        }
    correlation = 0.0
    if spread > 1e-12:
        correlation = (accuracy - by_chance) / np.sqrt(spread)
    metrics["Matthews correlation"] = float(correlation)
    metrics["Cohen's kappa"] = (accuracy - by_chance) / max(1.0 - by_chance, 1e-300)
    return metrics


def count_pairs(target: NDArray, predicted: NDArray, n_classes: int) -> NDArray:
    """Confusion counts: given classes in rows, predicted ones in columns."""
    counts = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(counts, (target.astype(int), predicted.astype(int)), 1)
    return counts


def _number_metrics(problem: Problem, target: NDArray, predicted: NDArray) -> dict[str, float]:
    rank = 0.0
    if np.ptp(predicted) > 0 and np.ptp(target) > 0:
        rank = float(spearmanr(target, predicted).statistic)
    return {
        "median absolute error": float(median_absolute_error(target, predicted)),
        "largest error": float(max_error(target, predicted)),
        "rank correlation": rank,
        "bias": float(np.mean(predicted - target)),
    }


def _digits(column: NDArray) -> int:
    """Digits after the point that show three significant digits of the largest number."""
    largest = np.max(np.abs(column[np.isfinite(column)]), initial=1e-300)
    return int(np.clip(2 - np.floor(np.log10(0.999 * largest)), 0, 6))


def metrics_section(comparison: "Comparison") -> Html:
    """All usual metrics side by side."""
    of_learners = {
        row["title"]: other_metrics(comparison, row["learner"]) for row in comparison.table
    }
    metrics = list(dict.fromkeys(metric for of in of_learners.values() for metric in of))
    if not metrics:
        return Html()
    values = np.array(
        [[of.get(metric, np.nan) for metric in metrics] for of in of_learners.values()]
    )
    digits = [_digits(column) for column in values.T]
    rows = []
    for place, title in enumerate(of_learners):
        cells = []
        for value, places in zip(values[place], digits):
            text = minus(f"{value:z.{places}f}") if np.isfinite(value) else NO_NUMBER
            cells.append({"value": f"{value:.8g}", "text": text})
        state = Html(" class=best") if place == 0 else Html()
        cells_html = fill_each("race.cell", cells)
        rows.append(fill("race.row", state=state, title=title, more=Html(), cells=cells_html))
    words = "Means over the same splits as above."
    classes, counts = np.unique(comparison.problem.y, return_counts=True)
    if comparison.problem.is_classification and len(classes) == 2:
        words += f" Precision, recall and F1 are of {classes[counts.argmin()]}, the rarer class."
    return fill(
        "race.metrics",
        words=words,
        head=fill_each("race.head", ({"name": metric} for metric in metrics)),
        body=join(rows),
    )


# --------------------------------------------------------------------------------------------------- the file


def predictions_csv(comparison: "Comparison") -> tuple[str, int]:
    """Out-of-fold predictions of the recommended learner as CSV, and the number of rows.

    Probabilities are those of the best learner that has them; if it is not the recommended one, the titles of their
    columns name it.
    """
    problem = comparison.problem
    names = item_names(problem)
    classes = np.unique(problem.y)
    ranking = ranking_learner(comparison) if problem.is_classification else None
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["item", "repeat", "fold", "given", "predicted"]
    writer.writerow(head + _probability_head(comparison, ranking))
    count = 0
    for repeat, fold in comparison.splits:
        record = comparison.results[comparison.recommended][repeat, fold]
        items = comparison.rows_of_splits[repeat, fold].tolist()
        probability = np.empty((len(items), 0))
        if ranking is not None:
            probability = comparison.results[ranking][repeat, fold].probability
        for place, item in enumerate(items):
            guess = record.predicted[place]
            predicted = classes[int(guess)] if problem.is_classification else f"{guess:.6g}"
            row = [names[item], repeat + 1, fold + 1, problem.y[item], predicted]
            writer.writerow(row + [f"{value:.6g}" for value in probability[place]])
            count += 1
    return text.getvalue(), count


def _probability_head(comparison: "Comparison", ranking: str | None) -> list[str]:
    """The heads of the columns of probabilities, or of scores of two classes."""
    if ranking is None:
        return []
    classes = np.unique(comparison.problem.y)
    by = "" if ranking == comparison.recommended else f" by {comparison.learner(ranking).title}"
    first = comparison.results[ranking][comparison.splits[0]]
    if first.probability.shape[1] == len(classes):
        return [f"probability of {label}{by}" for label in classes]
    return [f"score for {classes[1]}{by}"]


def download_section(comparison: "Comparison") -> Html:
    """The out-of-fold predictions inside the page, compressed if they are many."""
    text, count = predictions_csv(comparison)
    content = text.encode()
    file = "predictions.csv"
    kind = "text/csv"
    if len(content) > LIMITS.csv_bytes:
        content = gzip.compress(content, mtime=0)
        file = "predictions.csv.gz"
        kind = "application/gzip"
    return fill(
        "predictions.download",
        file=file,
        address=Html(f"data:{kind};base64,{b64encode(content).decode()}"),
        rows=f"{count:,}",
        size=format_bytes(len(content)),
    )
