"""What the page shows: numbers and charts per section; the template has the words."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    confusion_matrix,
    precision_recall_curve,
    precision_recall_fscore_support,
    roc_curve,
)

from mercerless.comparison.learners import GUESS, as_similarities, view
from mercerless.comparison.page.charts import (
    Chart,
    curve_chart,
    row_chart,
    scatter_chart,
    unit_chart,
)
from mercerless.comparison.race import CURVE_SHARES
from mercerless.comparison.work import Task
from mercerless.spectra import indefiniteness

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison

N_COLORS = 8
MOST_CLASSES = 12
MOST_DOTS = 1200
MOST_COLUMNS = 60
MOST_MAPPED = 400
MOST_BARS = 20
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


class Threshold(NamedTuple):
    """A row of the table of thresholds."""

    threshold: float
    recall: float
    precision: float
    called: float  # share of the items


def sections_of(comparison: "Comparison", rows: bool) -> dict[str, Any]:
    """What each section shows; a section that does not apply is None."""
    problem = comparison.problem
    shown: dict[str, Any] = {"learners": {"chart": None}}
    if problem.is_table:
        shown["columns"] = columns(problem.X)
    if comparison.recommended is None:
        return shown
    if problem.is_classification:
        probabilities, items = held_out(comparison)
        codes = np.searchsorted(problem.classes, problem.y[items])
        names = [shorten(str(name), 18) for name in problem.classes]
        shown["classes"] = classes(names, probabilities, codes)
        if len(names) == 2:
            shown["threshold"] = thresholds(probabilities[:, 1], codes == 1)
    else:
        shown["numbers"] = numbers(comparison)
    if rows and not problem.is_table:
        shown["map"] = item_map(comparison)
    repeats = {task.repeat for task in comparison.race.results if task.learner != GUESS}
    return shown | {
        "learners": {"chart": score_chart(comparison)},
        "importance": importance(comparison),
        "curve": learning_curve(comparison),
        "code": comparison.code(),
        "card": {"repeats": len(repeats)},
    }


def shorten(text: str, most: int = 30) -> str:
    """A label that fits."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def held_out(comparison: "Comparison") -> tuple[NDArray, NDArray]:
    """Out-of-fold predictions of the recommended learner, and the items that they are for."""
    predictions = comparison.predictions(comparison.chosen)[0]
    by_item = predictions.reshape(len(predictions), -1)
    items = np.flatnonzero(np.isfinite(by_item).all(axis=1))
    return predictions[items], items


# --------------------------------------------------------------------------------------------------------- learners


def score_chart(comparison: "Comparison") -> Chart:
    """A dot per learner, with the interval of its difference to the recommended one."""
    table = pd.DataFrame(comparison.table[::-1])
    is_chosen = table["learner"] == comparison.chosen
    values = table["loss"].to_numpy()
    ends = values[is_chosen][0] + np.array(table["interval"].tolist())
    axis = f"{comparison.metric_title} of held-out items (left is better)"
    if comparison.metric == "squared_error":
        total = comparison.problem.y.var()
        values, ends = 1.0 - values / total, 1.0 - ends[:, ::-1] / total
        axis = "R² of held-out items (right is better)"
    titles = [shorten(title) for title in table["title"]]
    chart = row_chart("Learners", axis, titles, ends)
    for place, value in enumerate(values):
        chart.add("line", "interval", ends[place], [place, place])
        chart.add("dots", "dot chosen" if is_chosen[place] else "dot", [value], [place], 4)
    return chart


def importance(comparison: "Comparison") -> dict[str, Any] | None:
    """A bar per column, the largest first."""
    found = comparison.race.importance
    if found is None:
        return None
    order = np.argsort(-found.mean)[:MOST_BARS][::-1]
    axis, unit = "rise of the log-loss", 1.0
    if not comparison.problem.is_classification:
        axis, unit = "fall of R²", comparison.problem.y.var()
    mean, spread = found.mean[order] / unit, found.spread[order] / unit
    labels = [shorten(found.columns[i]) for i in order]
    chart = row_chart("Importance", axis, labels, [0.0, *(mean + spread), *(mean - spread)])
    for place, (m, s) in enumerate(zip(mean, spread)):
        chart.add("bars", "bar", [0.0, m], [place - 0.3, place + 0.3])
        chart.add("line", "whisker", [m - s, m + s], [place, place])
    return {"found": found, "chart": chart}


def learning_curve(comparison: "Comparison") -> dict[str, Any] | None:
    """The loss for fewer training items."""
    race, name = comparison.race, comparison.ranked[0]
    sizes, losses = [], []
    for share in (*CURVE_SHARES, 1.0):
        tasks = [Task(name, 0, fold, share) for fold in range(min(2, race.n_splits))]
        if all(task in race.results for task in tasks):
            sizes.append(np.mean([len(race.split(task)[0]) for task in tasks]))
            losses.append(np.mean([race.loss(task) for task in tasks]))
    if len(sizes) < 3:
        return None
    chart = curve_chart("", "training items", comparison.metric_title, sizes, losses)
    gain = (losses[-2] - losses[-1]) / abs(losses[-2])
    return {"title": comparison.titles[name], "gain": gain, "chart": chart}


# ------------------------------------------------------------------------------------------------------ predictions


def classes(names: list[str], probabilities: NDArray, codes: NDArray) -> dict[str, Any]:
    """Confusion of classes, recall and precision, and how far probabilities can be trusted."""
    called = probabilities.argmax(axis=1)
    labels = np.arange(len(names))
    precision, recall, _, support = precision_recall_fscore_support(
        codes, called, labels=labels, zero_division=0.0
    )
    order = labels if len(names) <= 2 * MOST_CLASSES else np.argsort(recall)[: 2 * MOST_CLASSES]
    counts = confusion_matrix(codes, called, labels=labels)
    charts = [] if len(names) > 2 else rates(names[1], probabilities[:, 1], codes == 1)
    is_class = codes[:, None] == labels
    if len(names) == 2:
        probabilities, is_class = probabilities[:, 1], is_class[:, 1]
    y, x = calibration_curve(
        is_class.ravel(), probabilities.ravel(), strategy="quantile", n_bins=10
    )
    title = "Calibration: on the diagonal, probabilities can be taken at their word"
    trust = unit_chart(title, "predicted probability", "share of items of the class", x, y)
    trust.add("dots", "dot", x, y, 3).add("line", "reference", [0, 1], [0, 1])
    return {
        "names": names,
        "counts": counts.tolist() if len(names) <= MOST_CLASSES else [],
        "rows": [(names[k], support[k], recall[k], precision[k]) for k in order],
        "charts": [*charts, trust],
    }


def rates(name: str, scores: NDArray, is_positive: NDArray) -> list[Chart]:
    """The ROC curve and the curve of precision and recall."""
    wrong_rate, hit_rate, _ = roc_curve(is_positive, scores)
    precision, recall, _ = precision_recall_curve(is_positive, scores)
    kept = np.unique(np.linspace(0, len(recall) - 1, 200).astype(int))
    title = f"ROC curve of {name}"
    roc = unit_chart(title, "false positive rate", "true positive rate", wrong_rate, hit_rate)
    roc.add("line", "reference", [0, 1], [0, 1])
    title = "Precision and recall"
    return [roc, unit_chart(title, "recall", "precision", recall[kept], precision[kept])]


def thresholds(scores: NDArray, is_positive: NDArray) -> list[Threshold]:
    """What happens if items with at least this score are called positive."""
    rows = []
    for threshold in THRESHOLDS:
        called = scores >= threshold
        hits = (called & is_positive).sum()
        recall, precision = hits / is_positive.sum(), hits / max(called.sum(), 1)
        rows.append(Threshold(threshold, recall, precision, called.mean()))
    return rows


def numbers(comparison: "Comparison") -> dict[str, Any]:
    """Predicted against actual numbers, and the residuals."""
    predictions, items = held_out(comparison)
    actual = comparison.problem.y[items]
    residuals = actual - predictions
    shown = np.random.default_rng(0).permutation(len(items))[:MOST_DOTS]
    x, y, r = predictions[shown], actual[shown], residuals[shown]
    both = np.concatenate([x, y])
    against = scatter_chart("Predicted vs. actual", "predicted", "actual", both, both)
    against.add("line", "reference", against.x_range, against.x_range)
    rest = scatter_chart("Residuals", "predicted", "actual minus predicted", x, r)
    rest.add("line", "reference", rest.x_range, [0.0, 0.0]).add("dots", "dot", x, r, 2.2)
    return {
        "quantiles": np.quantile(np.abs(residuals), [0.5, 0.9, 0.99]),
        "charts": [against.add("dots", "dot", x, y, 2.2), rest],
    }


# ------------------------------------------------------------------------------------------------------------- data


def item_map(comparison: "Comparison") -> dict[str, Any]:
    """A map of the items of a matrix, and its eigenvalues."""
    problem = comparison.problem
    items = np.sort(np.random.default_rng(0).permutation(problem.n_items)[:MOST_MAPPED])
    K = view(problem, "matrix")[np.ix_(items, items)]
    for step in as_similarities(problem):
        K = step.fit_transform(K)
    centered = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    eigenvalues, vectors = np.linalg.eigh(centered)
    y, x = (vectors[:, -2:] * np.sqrt(np.maximum(eigenvalues[-2:], 0.0))).T
    places = scatter_chart("Map of the items", "first axis", "second axis", x, y)
    codes, names = np.zeros(len(items), dtype=int), []
    if problem.is_classification and len(problem.classes) <= MOST_CLASSES:
        codes = np.searchsorted(problem.classes, problem.y[items])
        names = [shorten(str(name)) for name in problem.classes]
    for code in np.unique(codes):
        own = codes == code
        places.add("dots", f"dot c{code % N_COLORS}", x[own], y[own], 2.2)
    order = np.arange(1, len(items) + 1)
    spectrum = curve_chart("Eigenvalues", "number", "eigenvalue", order, eigenvalues[::-1])
    charts = [places, spectrum]
    return {"measures": indefiniteness(K), "n": len(items), "names": names, "charts": charts}


def columns(X: pd.DataFrame) -> list[dict[str, Any]]:
    """What pandas says about every column: gaps, different values, range, and the most frequent value."""
    X = X.iloc[:, :MOST_COLUMNS]
    table = X.describe(include="all").T
    table["missing"] = X.isna().mean()
    table["different"] = X.nunique()
    table = table.astype(object).where(table.notna(), None)
    return table.rename_axis("name").reset_index().to_dict("records")
