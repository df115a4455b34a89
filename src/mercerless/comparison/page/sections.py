"""The sections of the page: each has a title, paragraphs, charts and tables, or is left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from mercerless.comparison.page import charts
from mercerless.comparison.page.charts import number
from mercerless.comparison.scores import item_losses
from mercerless.comparison.work import Task
from mercerless.spectra import as_similarities, indefiniteness, symmetrize

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison

MOST_CLASSES = 12
MOST_DOTS = 1200
MOST_COLUMNS = 60
MOST_MAPPED = 400
N_SUSPECTS = 12


@dataclass
class Table:
    """Cells below a header; cells of numbers are aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    kind: str = ""


@dataclass
class Section:
    """A part of the page with an entry in its contents."""

    key: str
    title: str
    text: list[str] = field(default_factory=list)
    charts: list[tuple[str, str]] = field(default_factory=list)  # title and SVG
    tables: list[Table] = field(default_factory=list)
    code: str = ""


def sections_of(comparison: "Comparison", rows: bool) -> list[Section]:
    """All sections that apply, in the order of the page."""
    if comparison.recommended is None:
        return [learners_section(comparison), *data_sections(comparison, rows)]
    makers: list[Callable[[Comparison], Section | None]] = [
        learners_section,
        importance_section,
        classes_section,
        numbers_section,
        threshold_section,
        curve_section,
        *([map_section] if rows else []),
    ]
    made = [section for make in makers if (section := make(comparison)) is not None]
    made += data_sections(comparison, rows)
    return [*made, code_section(comparison), card_section(comparison)]


def data_sections(comparison: "Comparison", rows: bool) -> list[Section]:
    """Columns of a table, and items with suspicious labels."""
    made = [columns_section(comparison, rows)] if comparison.problem.is_table else []
    if rows and comparison.recommended is not None:
        made.append(suspects_section(comparison))
    return made


# --------------------------------------------------------------------------------------------------------- learners


def learners_section(comparison: "Comparison") -> Section:
    """The scores of all learners, as a plot and a table."""
    section = Section("learners", "Learners")
    table = comparison.table
    if table:
        names = [row["learner"] for row in table]
        judged = comparison.judgment
        reference = comparison.ranked.index(comparison.chosen)
        places = [comparison.ranked.index(name) for name in names]
        losses = np.array([row["loss"] for row in table])
        widths = np.array([judged.critical * judged.standard_error[i, reference] for i in places])
        kinds = ["chosen" if i == reference else "" for i in places]
        titles = [row["title"] for row in table]
        axis = f"{comparison.loss_title} of held-out items (left is better)"
        plot = charts.score_plot(titles, losses, widths, kinds, axis)
        section.charts.append(("", plot))
        section.text.append(
            "Every learner was trained and tested on the same splits of the same rows. A line is the 95 % interval of "
            "the difference to the recommended learner, for all learners together."
        )
        section.tables.append(score_table(comparison))
    if comparison.left_out:
        rows = [[comparison.titles[name], state] for name, state in comparison.left_out.items()]
        section.tables.append(Table(["Did not finish", "Why"], rows))
    return section


def score_table(comparison: "Comparison") -> Table:
    """A row per learner with its scores and times."""
    shown = [name for name in comparison.scores["guess"]]
    header = ["Learner", *shown, "Compared with the recommended", "Fit", "1000 predictions"]
    rows = []
    for row in comparison.table:
        scores = [
            f"{row[name]:.3f}" if name != "RMSE" and name != "MAE" else number(row[name])
            for name in shown
        ]
        compared = row["compared"] or "recommended"
        rows.append(
            [
                row["title"],
                *scores,
                compared,
                seconds(row["fit seconds"]),
                seconds(row["predict seconds per 1000"]),
            ]
        )
    guess = comparison.scores["guess"]
    rows.append(
        [
            "Constant guess",
            *(f"{guess[n]:.3f}" if n not in ("RMSE", "MAE") else number(guess[n]) for n in shown),
            "",
            "",
            "",
        ]
    )
    return Table(header, rows, "scores")


def seconds(value: float) -> str:
    """A time in words."""
    return f"{1000 * value:.0f} ms" if value < 1.0 else f"{value:.1f} s"


def importance_section(comparison: "Comparison") -> Section | None:
    """What the columns contribute."""
    importance = comparison.race.importance
    if importance is None:
        return None
    axis = f"rise of the {'log-loss' if comparison.problem.is_classification else 'squared error'}"
    plot = charts.importance_plot(importance.columns, importance.mean, importance.spread, axis)
    text = (
        f"How much worse predictions of {importance.n_rows} held-out rows become if one column is shuffled, by "
        f"the fastest learner that is nearly as good as the best ({importance.learner.lower()}). Lines show the spread "
        "over shuffles. Of columns that say the same, each looks less important than both together."
    )
    if len(importance.columns) < comparison.problem.X.shape[1]:
        text += f" The {len(importance.columns)} columns that go with the labels most closely were tried."
    return Section("importance", "Importance of columns", [text], [("", plot)])


# ------------------------------------------------------------------------------------------------------ predictions


def held_out(comparison: "Comparison") -> tuple[NDArray, NDArray]:
    """Out-of-fold predictions of the recommended learner, and the items that they are for."""
    predictions = comparison.predictions(comparison.chosen)[0]
    missing = np.isnan(predictions)
    items = np.flatnonzero(~(missing.any(axis=1) if missing.ndim == 2 else missing))
    return predictions[items], items


def classes_section(comparison: "Comparison") -> Section | None:
    """Confusion of classes, recall and precision, and how far probabilities can be trusted."""
    problem = comparison.problem
    if not problem.is_classification:
        return None
    probabilities, items = held_out(comparison)
    codes = np.searchsorted(problem.classes, problem.y[items])
    called = probabilities.argmax(axis=1)
    n_classes = len(problem.classes)
    counts = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(counts, (codes, called), 1)
    section = Section("classes", "Classes")
    section.text.append(
        "Predictions of the recommended learner for items that it was not trained on. Rows are the given "
        "classes, columns the predicted ones."
    )
    names = [charts.shorten(str(name), 18) for name in problem.classes]
    if n_classes <= MOST_CLASSES:
        rows = [[name, *row] for name, row in zip(names, counts.tolist())]
        section.tables.append(Table(["given \\ predicted", *names], rows, "confusion"))
    recall = np.diag(counts) / np.maximum(counts.sum(axis=1), 1)
    precision = np.diag(counts) / np.maximum(counts.sum(axis=0), 1)
    order = (
        range(n_classes)
        if n_classes <= 2 * MOST_CLASSES
        else np.argsort(recall)[: 2 * MOST_CLASSES]
    )
    rows = [
        [names[k], int(counts[k].sum()), f"{recall[k]:.1%}", f"{precision[k]:.1%}"] for k in order
    ]
    section.tables.append(Table(["Class", "Items", "Recall", "Precision"], rows))
    if n_classes == 2:
        scores, is_positive = probabilities[:, 1], codes == 1
        wrong_rate, hit_rate, _ = roc_curve(is_positive, scores)
        roc = charts.rate_plot(
            *thinned(wrong_rate, hit_rate), "false positive rate", "true positive rate", True
        )
        section.charts.append(
            (
                f"ROC curve of {names[1]} (AUC {comparison.scores[comparison.chosen]['AUC']:.3f})",
                roc,
            )
        )
        precisions, recalls, _ = precision_recall_curve(is_positive, scores)
        section.charts.append(
            (
                "Precision and recall",
                charts.rate_plot(*thinned(recalls, precisions), "recall", "precision", False),
            )
        )
    x, y = calibration(probabilities, codes)
    section.charts.append(
        (
            "Calibration: on the diagonal, probabilities can be taken at their word",
            charts.rate_plot(
                x, y, "predicted probability", "share of items of the class", True, dots=True
            ),
        )
    )
    return section


def thinned(x: NDArray, y: NDArray, most: int = 200) -> tuple[NDArray, NDArray]:
    """At most so many points of a curve."""
    kept = np.unique(np.linspace(0, len(x) - 1, most).astype(int))
    return x[kept], y[kept]


def calibration(probabilities: NDArray, codes: NDArray) -> tuple[NDArray, NDArray]:
    """Mean probability and share of items, in bins of about equally many probabilities of all classes."""
    is_class = (codes[:, None] == np.arange(probabilities.shape[1])).ravel()
    values = probabilities.ravel()
    if probabilities.shape[1] == 2:
        values, is_class = probabilities[:, 1], codes == 1
    bins = np.clip((values * 10).astype(int), 0, 9)
    counts = np.bincount(bins, minlength=10)
    filled = counts >= 5
    x = np.bincount(bins, weights=values, minlength=10)[filled] / counts[filled]
    y = np.bincount(bins, weights=is_class, minlength=10)[filled] / counts[filled]
    return x, y


def numbers_section(comparison: "Comparison") -> Section | None:
    """Predicted against actual numbers, and the residuals."""
    problem = comparison.problem
    if problem.is_classification:
        return None
    predictions, items = held_out(comparison)
    actual = problem.y[items]
    shown = np.random.default_rng(0).permutation(len(items))[:MOST_DOTS]
    scatter = charts.scatter_plot(
        predictions[shown], actual[shown], "predicted", "actual", "dot", True
    )
    residuals = actual - predictions
    against = charts.scatter_plot(
        predictions[shown], residuals[shown], "predicted", "residual", "dot", False
    )
    low, high = np.quantile(residuals, [0.001, 0.999])
    inside = residuals[(residuals >= low) & (residuals <= high)]
    spread = charts.histogram(inside, "residual (actual minus predicted)", "items")
    quantiles = np.quantile(np.abs(residuals), [0.5, 0.9, 0.99])
    text = (
        "Predictions of the recommended learner for items that it was not trained on. Half of them are off by "
        f"less than {number(quantiles[0])}, nine of ten by less than {number(quantiles[1])}, 99 of 100 by less than "
        f"{number(quantiles[2])}."
    )
    plots = [
        ("Predicted vs. actual", scatter),
        ("Residuals", against),
        ("Distribution of residuals", spread),
    ]
    return Section("numbers", "Predicted vs. actual", [text], plots)


def threshold_section(comparison: "Comparison") -> Section | None:
    """Recall and precision of other thresholds than one half."""
    problem = comparison.problem
    if not problem.is_classification or len(problem.classes) != 2:
        return None
    probabilities, items = held_out(comparison)
    is_positive = problem.y[items] == problem.classes[1]
    rows = []
    for threshold in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        called = probabilities[:, 1] >= threshold
        hits = int((called & is_positive).sum())
        precision = f"{hits / called.sum():.1%}" if called.any() else "none"
        rows.append(
            [f"{threshold:g}", f"{hits / is_positive.sum():.1%}", precision, f"{called.mean():.1%}"]
        )
    text = (
        f"If items with at least this probability of {problem.classes[1]} are called so: lower thresholds "
        "find more of them (recall), higher ones are right more often (precision)."
    )
    table = Table(["Threshold", "Recall", "Precision", "Items called"], rows)
    return Section("threshold", "Choosing a threshold", [text], tables=[table])


def curve_section(comparison: "Comparison") -> Section | None:
    """The loss for fewer training items."""
    race = comparison.race
    name = race.curve_learner
    points = []
    for share in sorted({task.share for task in race.results if task.learner == name}):
        losses, sizes = [], []
        for fold in range(min(2, race.n_splits)):
            task = Task(name, 0, fold, share)
            if task not in race.results:
                break
            train, test = race.split(task)
            subset = comparison.problem.select(test)
            vars(subset)["classes"] = comparison.problem.classes
            predictions = np.asarray(race.results[task].predictions)
            losses.append(item_losses(subset, predictions, race.options.metric).mean())
            sizes.append(len(train))
        else:
            points.append((np.mean(sizes), np.mean(losses)))
    if len(points) < 3:
        return None
    x, y = np.array(points).T
    gain = (y[-2] - y[-1]) / abs(y[-2])
    outlook = (
        f"The last doubling lowered it by {gain:.0%}: more data would help."
        if gain > 0.03
        else "The last doubling changed little: more data of the same kind would hardly help."
    )
    title = comparison.titles[name].lower()
    text = (
        f"{comparison.loss_title.capitalize()} of the {title} for fewer training items. {outlook}"
    )
    plot = charts.curve_plot(x, y, "training items", comparison.loss_title)
    return Section("curve", "Learning curve", [text], [("", plot)])


# ------------------------------------------------------------------------------------------------------------- data


def map_section(comparison: "Comparison") -> Section | None:
    """A map of the items of a matrix, and its eigenvalues."""
    problem = comparison.problem
    if problem.is_table:
        return None
    items = np.sort(np.random.default_rng(0).permutation(problem.n_items)[:MOST_MAPPED])
    K = as_similarities(symmetrize(problem.matrix[np.ix_(items, items)]), problem.matrix_kind)
    centered = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    eigenvalues, vectors = np.linalg.eigh(centered)
    points = vectors[:, -2:] * np.sqrt(np.maximum(eigenvalues[-2:], 0.0))
    kinds: list[str] | str = "dot"
    if problem.is_classification and len(problem.classes) <= MOST_CLASSES:
        codes = np.searchsorted(problem.classes, problem.y[items])
        kinds = [f"dot c{code % charts.N_COLORS}" for code in codes]
    plot = charts.scatter_plot(
        points[:, 1], points[:, 0], "first axis", "second axis", kinds, False
    )
    measures = indefiniteness(K)
    spectrum = charts.curve_plot(
        np.arange(1, len(eigenvalues) + 1), eigenvalues[::-1], "number", "eigenvalue"
    )
    text = (
        f"The {problem.matrix_kind} matrix of {problem.n_items} items. {measures.n_negative} eigenvalues of "
        f"{len(items)} items are negative, {100 * measures.negative_mass:.1f} % of the sum of all sizes"
        + (
            ": a kernel machine without repair has no guarantee here."
            if not measures.is_psd
            else ", so that it is a kernel."
        )
    )
    return Section(
        "map", "The matrix", [text], [("Map of the items", plot), ("Eigenvalues", spectrum)]
    )


def columns_section(comparison: "Comparison", rows: bool) -> Section:
    """What is in every column."""
    X = comparison.problem.X
    described = [describe_column(X[name], rows) for name in X.columns[:MOST_COLUMNS]]
    text = f"{len(X):,} rows and {X.shape[1]:,} columns."
    if X.shape[1] > MOST_COLUMNS:
        text += f" The first {MOST_COLUMNS} are shown."
    table = Table(["Column", "Holds", "Missing", "Different", "Values"], described)
    return Section("columns", "Columns", [text], tables=[table])


def describe_column(column: pd.Series, rows: bool) -> list[str]:
    """Name, type, gaps, number of values and their range or the most frequent."""
    filled = column.dropna()
    missing = f"{column.isna().mean():.0%}" if column.isna().any() else ""
    n_distinct = f"{filled.nunique():,}"
    name = charts.shorten(str(column.name), 40)
    if pd.api.types.is_bool_dtype(column):
        return [name, "yes or no", missing, n_distinct, f"{filled.mean():.0%} yes"]
    if pd.api.types.is_numeric_dtype(column):
        values = filled.to_numpy(dtype=float)
        if not len(values):
            return [name, "nothing", missing, "0", ""]
        low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
        return [
            name,
            "numbers",
            missing,
            n_distinct,
            f"{number(low)} … {number(middle)} … {number(high)}",
        ]
    if pd.api.types.is_datetime64_any_dtype(column):
        return [
            name,
            "dates",
            missing,
            n_distinct,
            f"{filled.min():%Y-%m-%d} … {filled.max():%Y-%m-%d}",
        ]
    counts = filled.astype(str).value_counts()
    frequent = ", ".join(
        f"{charts.shorten(word, 20)} ({n:,})" for word, n in counts.head(3).items()
    )
    return [
        name,
        "words",
        missing,
        n_distinct,
        frequent if rows and counts.iloc[0:1].sum() > 1 else "",
    ]


def suspects_section(comparison: "Comparison") -> Section:
    """Items with labels that the recommended learner finds most unlikely."""
    problem = comparison.problem
    predictions, items = held_out(comparison)
    names = problem.names or [str(i + 1) for i in range(problem.n_items)]
    if problem.is_classification:
        codes = np.searchsorted(problem.classes, problem.y[items])
        chance = predictions[np.arange(len(items)), codes]
        order = np.argsort(chance)[:N_SUSPECTS]
        called = problem.classes[predictions[order].argmax(axis=1)]
        rows = [
            [names[items[i]], problem.y[items[i]], name, f"{chance[i]:.1%}"]
            for i, name in zip(order, called)
        ]
        header = ["Item", "Given", "Predicted", "Probability of the given class"]
    else:
        error = problem.y[items] - predictions
        order = np.argsort(-np.abs(error))[:N_SUSPECTS]
        rows = [
            [names[items[i]], number(problem.y[items[i]]), number(predictions[i]), number(error[i])]
            for i in order
        ]
        header = ["Item", "Given", "Predicted", "Residual"]
    text = (
        "Items with labels that are most at odds with the predictions: check these first for errors. "
        "Items are named by their names or their row numbers."
    )
    return Section("suspects", "Labels to check", [text], tables=[Table(header, rows)])


def code_section(comparison: "Comparison") -> Section:
    """Code to copy."""
    name = comparison.chosen
    text = ["Fit the recommended learner on all of the data:"]
    return Section("code", "Code to copy", text, code=comparison.code(name))


def card_section(comparison: "Comparison") -> Section:
    """The facts that belong to a model that is passed on."""
    problem, race = comparison.problem, comparison.race
    name = comparison.chosen
    groups = (
        f", groups whole ({len(np.unique(problem.groups))})" if problem.groups is not None else ""
    )
    repeats = len({task.repeat for task in race.results if task.learner == name})
    scores = ", ".join(
        f"{title} {number(value)}" for title, value in comparison.scores[name].items()
    )
    what = "classes" if problem.is_classification else "a number"
    if problem.is_classification:
        shares = pd.Series(problem.y).value_counts(normalize=True)
        shown = ", ".join(
            f"{charts.shorten(str(k), 20)} {share:.0%}" for k, share in shares.head(6).items()
        )
        what = f"{len(problem.classes)} classes ({shown}{', …' if len(shares) > 6 else ''})"
    rows = [
        ["Data", f"{problem.name}: {problem.n_items:,} items, {problem.kind}"],
        ["Predicts", f"{problem.target}: {what}"],
        ["Learner", comparison.titles[name]],
        ["Scores", scores],
        [
            "Tested by",
            f"{race.n_splits} of 5 splits, repeated {repeats} times{groups}; seed {race.options.random_state}",
        ],
        [
            "Holds for",
            "new items from the same source as these; not for other places, times or ways to measure",
        ],
        ["Versions", f"mercerless {version('mercerless')}, scikit-learn {version('scikit-learn')}"],
        ["Date", comparison.finished],
    ]
    return Section("card", "Model card", tables=[Table([], rows, "card")])
