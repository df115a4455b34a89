"""A comparison as one self-contained HTML page: no network, for screens of any size and for print."""

import shlex
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercerless.comparison.drawing import (
    NO_NUMBER,
    legend_line,
    look,
    minus,
    round_step,
    spectrum_svg,
    svg,
    text_at,
    ticks_between,
)
from mercerless.comparison.items import (
    MapItems,
    answer,
    card_section,
    copy_sentences,
    distances_of,
    map_figure,
    map_section,
    odd_items,
    odd_section,
    odd_sentences,
    predicted_items,
    some_items,
)
from mercerless.comparison.page import Html, facts, fill, fill_each, join, paragraphs, whole_page
from mercerless.comparison.portrait import column_names, data_section
from mercerless.comparison.predictions import LIMITS as PREDICTION_LIMITS
from mercerless.comparison.predictions import (
    Refits,
    confusion_section,
    download_section,
    importance_section,
    metrics_section,
    numbers_section,
    rank_items,
    ranking_section,
    seconds_for_page,
    whose_predictions,
)
from mercerless.comparison.scoring import N_FOLDS, SIZES, is_mean_of_items
from mercerless.comparison.vote import VOTE
from mercerless.comparison.words import (
    duration,
    format_difference,
    format_score,
    is_share,
    metric_words,
)
from mercerless.core.folds import find_copies
from mercerless.core.memory import format_bytes
from mercerless.inspection.maps import draw_map

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison

__all__ = ["render", "render_matrix", "render_short"]


@threadpool_limits.wrap(limits=1)  # several threads wait for each other on busy cores
def render(comparison: "Comparison", command: str | None = None, rows: bool = True) -> str:
    """Return the page, HTML that needs nothing else; `command` reproduces it, None means the call in Python.

    Without `rows`, nothing on the page shows a single item with its name or its values.

    Whatever is not a template is escaped.
    """
    started = time.perf_counter()
    problem = comparison.problem
    refits = Refits.within_budget(comparison)
    held = predicted_items(comparison, comparison.recommended)
    odd = odd_items(comparison, held)
    importance = Html()
    if not problem.is_matrix:
        importance = importance_section(comparison, refits, column_names(problem))
    ranking = rank_items(comparison) if problem.is_classification else None
    left = seconds_for_page(comparison) - (time.perf_counter() - started)
    map_seconds = PREDICTION_LIMITS.map_share * left
    map_of_items = Html()
    worth_a_look = Html()
    download = Html()
    if rows:
        map_of_items = map_section(comparison, held, odd.items, map_seconds)
        worth_a_look = odd_section(problem, odd)
        if held.is_kept:
            download = download_section(comparison)
    sections = [
        _use(comparison, command),
        data_section(comparison, rows),
        map_of_items,
        _plot(comparison),
        _table(comparison),
        metrics_section(comparison),
        _predictions(comparison, held),
        ranking_section(comparison, ranking),
        importance,
        worth_a_look,
        _curves(comparison),
        download,
        _left_out(comparison),
        _repeat(comparison, command or comparison.python_command),
        card_section(comparison),
    ]
    # the beginning is written last, because it states how long everything took
    head = _head(comparison, time.perf_counter() - started)
    return whole_page(
        f"{problem.name}: what works",
        [head, *sections],
        comparison.versions["mercerless"],
        comparison.finished,
        has_script=True,
    )


def render_matrix(
    X: NDArray,
    kind: str,
    name: str,
    y: NDArray | None,
    classify: bool,
    lines: list[str],
    eigenvalues: NDArray,
) -> str:
    """Return the page on a matrix of this kind, HTML that needs nothing else, with or without labels or numbers y.

    The first of `lines` describes the matrix; in the others a name fills 17 characters, and its value follows. The
    eigenvalues are those of the symmetric similarities, descending.
    """
    names = [f"item {i + 1}" for i in range(len(X))]
    rows = some_items(len(X), ())
    drawn = draw_map(distances_of(X, kind, rows))
    odd = odd_sentences(X, kind, names)
    if y is not None and classify:
        odd += copy_sentences(find_copies(X, precomputed=True), y, names)
    pairs = [(line[:17].strip(), line[17:]) for line in lines[1:]]
    sections = [
        fill("words.head-of-matrix", name=name, what=lines[0], facts=facts(pairs)),
        fill("items.map-section", map=map_figure(drawn, MapItems(rows, names, y, classify))),
        fill("items.odd", content=paragraphs(odd)) if odd else Html(),
        fill("data.spectrum", picture=spectrum_svg(eigenvalues)),
    ]
    finished = time.strftime("%Y-%m-%d %H:%M %Z")
    return whole_page(f"{name}: what it is", sections, version("mercerless"), finished)


def render_short(comparison: "Comparison") -> str:
    """Return the verdict and the scores as a small piece of HTML without a style of its own, for notebooks."""
    header = (
        "learner",
        metric_words(comparison.metric),
        "difference",
        "interval",
        "fit",
        "verdict",
    )
    rows = []
    for row in comparison.table:
        is_best = row["verdict"] == "recommended"
        cells = (
            _score(comparison, row["score"]),
            "" if is_best else _points(comparison, row["difference"]),
            "" if is_best else _interval(comparison, row),
            duration(row["fit_time"]),
            comparison.place_of_first if is_best else row["verdict"],
        )
        listed = fill_each("words.short-cell", ({"text": cell} for cell in cells))
        rows.append(fill("words.short-row", title=row["title"], cells=listed))
    return fill(
        "words.short",
        words=paragraphs(comparison.verdict),
        head=fill_each("words.short-head", ({"name": name} for name in header)),
        rows=join(rows),
    )


# -------------------------------------------------------------------------------------------------------- words


def _head(comparison: "Comparison", seconds: float) -> Html:
    problem = comparison.problem
    what = {
        "similarity": "similarities between {} items",
        "distance": "distances between {} items",
        "dissimilarity": "dissimilarities between {} items",
        "strings": "{} strings, compared by edit distance",
        "table": "a table of {} items",
    }[problem.kind].format(f"{len(problem.y):,}")
    if problem.kind == "table":
        what += f" and {problem.X.shape[1]} columns"
    what = what[:1].upper() + what[1:]
    target = "a number to predict"
    if problem.is_classification:
        target = f"{len(np.unique(problem.y))} classes"
    tested = ""
    if len(problem.y) > N_FOLDS * SIZES.most_tested:
        tested = f"each split tested on {SIZES.most_tested:,} items; "
    # an undecided verdict begins with the sentence of the answer
    verdict = comparison.verdict if comparison.is_decided else comparison.verdict[1:]
    sentences = [answer(comparison), *verdict]
    if comparison.interrupted:
        sentences.append("The run was interrupted: this is what was finished by then.")
    repeats = len({repeat for repeat, _ in comparison.splits})
    searching = "each searching its own parameters inside every training part"
    if any(row["form"] == "defaults" for row in comparison.table):
        searching = "searching their parameters inside every training part, or with their defaults"
    return fill(
        "words.head",
        searching=searching,
        name=problem.name,
        what=what,
        target=target,
        n_learners=len(comparison.names),
        n_splits=len(comparison.splits),
        some="" if len(comparison.splits) == N_FOLDS * repeats else "of ",
        repeats=repeats,
        folds=N_FOLDS,
        tested=tested,
        elapsed=duration(comparison.elapsed + seconds),
        report=duration(seconds),
        sentences=paragraphs(sentences),
    )


def _use(comparison: "Comparison", command: str | None) -> Html:
    """The section with the shortest code for the recommended learner; the full program is folded."""
    shell = _fit_command(comparison, command)
    best = comparison.table[0]
    how = "with its default settings" if best["form"] == "defaults" else "with its search"
    if best["learner"] == VOTE:
        how = "with the settings of its members"
    return fill(
        "words.use",
        title=best["title"],
        how=how,
        python="estimator = result.estimator()  # result = mercerless.compare(X, y)\n"
        "estimator.fit(X, y)",
        shell=fill("words.use-shell", command=shell) if shell else Html(),
        code=comparison.code(),
    )


def _fit_command(comparison: "Comparison", command: str | None) -> str:
    """The command that fits the recommended learner; none without a file."""
    try:
        words = shlex.split(command or "mercerless compare DATA")
    except ValueError:  # it is no command
        return ""
    if words[:2] != ["mercerless", "compare"] or len(words) < 3 or words[2].startswith("--"):
        return ""
    about_data = words[2:]
    for option in ("--metric", "--learners"):
        if option in about_data:
            about_data = about_data[: about_data.index(option)]
    name = comparison.recommended
    if comparison.table[0]["form"] == "defaults":
        name += "@defaults"
    chosen = ["--metric", comparison.metric, "--learner", name]
    if comparison.recommended == VOTE:  # only a comparison makes it
        members = [
            text
            for text in comparison.specification
            if text.partition("@")[0] in comparison.members
        ]
        chosen = ["--metric", comparison.metric, "--learners", ",".join(members)]
    return shlex.join(["mercerless", "fit", *about_data, *chosen])


def _predictions(comparison: "Comparison", held: Any) -> Html:
    """The section with predictions of the recommended learner against the given targets."""
    if not held.is_kept:
        return Html()
    caption = whose_predictions(comparison)
    if comparison.problem.is_classification:
        return confusion_section(held, comparison.problem, caption)
    return numbers_section(held, caption)


def _left_out(comparison: "Comparison") -> Html:
    reasons = dict(comparison.left_out)
    reasons |= {name: f"failed: {error}" for name, error in comparison.failed.items()}
    listed = [(comparison.learner(name).title, reason) for name, reason in reasons.items()]
    listed += [
        (row["title"], "scored, but its solver stopped before it converged in some fits")
        for row in comparison.table
        if not row["converged"]
    ]
    return fill("words.left-out", facts=facts(listed)) if listed else Html()


def _repeat(comparison: "Comparison", command: str) -> Html:
    method = fill("words.by-items")
    if not is_mean_of_items(comparison.metric):
        method = fill("words.by-splits", metric=metric_words(comparison.metric))
    return fill(
        "words.repeat",
        command=command,
        seed=comparison.random_state,
        versions=", ".join(f"{name} {number}" for name, number in comparison.versions.items()),
        method=method,
    )


# ---------------------------------------------------------------------------------------------- dots and intervals


def _plot(comparison: "Comparison") -> Html:
    rows = comparison.table
    if len(rows) < 2:
        return Html()
    factor = 100.0 if is_share(comparison.metric) else 1.0
    low, high, step = _axis(
        [(row["difference_low"] * factor, row["difference_high"] * factor) for row in rows[1:]]
    )
    ticks = [
        {"left": f"{100.0 * (tick - low) / (high - low):.2f}", "text": _tick(tick, step)}
        for tick in ticks_between(low, high)
    ]
    metric = metric_words(comparison.metric)
    return fill(
        "race.plot",
        title=metric[:1].upper() + metric[1:],
        first="recommended" if comparison.is_decided else "best so far",
        unit="percentage points" if is_share(comparison.metric) else f"units of {metric}",
        lines=join(_line(comparison, row, low, high) for row in rows),
        ticks=fill_each("race.tick", ticks),
        decide=paragraphs(time_to_decide(comparison)),
    )


def _line(comparison: "Comparison", row: dict[str, Any], low: float, high: float) -> Html:
    """A learner's name, its dot and interval between the ends of the axis, and its score."""
    factor = 100.0 if is_share(comparison.metric) else 1.0

    def place(value: float) -> float:
        return 100.0 * (factor * value - low) / (high - low)

    is_best = row["verdict"] == "recommended"
    center = place(row["difference"])
    marks = [fill("race.zero", left=f"{place(0.0):.2f}")]
    if not is_best and center >= 0:
        begin = max(0.0, place(row["difference_low"]))
        width = min(100.0, place(row["difference_high"])) - begin
        marks.append(fill("race.bar", left=f"{begin:.2f}", width=f"{width:.2f}"))
    if center >= 0:
        marks.append(fill("race.dot", left=f"{center:.2f}"))
    else:
        marks.append(fill("race.off", text=_points(comparison, row["difference"])))
    state = {"recommended": "best", "not distinguishable": "tie"}.get(row["verdict"], "worse")
    return fill(
        "race.line",
        state=state,
        title=row["title"],
        caption=_caption(row),
        marks=join(marks),
        score=_score(comparison, row["score"]),
        interval=comparison.place_of_first if is_best else _interval(comparison, row),
    )


def family_words(family: str) -> str:
    """Description of a family of learners."""
    words = {
        "baseline": "ordinary baseline",
        "raw": "matrix as it is",
        "repair": "spectrum repaired",
        "mercerless": "mercerless",
        "vote": "vote",
        "yours": "your own",
    }
    return words[family]


def _caption(row: dict[str, Any]) -> str:
    """Description of a learner in a row, and the number of its training items if these are not all."""
    caption = family_words(row["family"])
    if row["part"] < 1.0:
        caption += f", trained on {row['n_train']:,} items"
    if row["form"] == "defaults":
        caption += ", default settings"
    return caption


def _axis(intervals: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the limits and the step of the axis; learners far behind fall off its left end."""
    lows = np.sort([low for low, _ in intervals])
    median = float(np.median(lows))
    not_far_behind = [low for low in lows if low >= 2.5 * median] or [median]
    lowest = not_far_behind[0]
    highest = max(high for _, high in intervals)
    low = min(lowest, -1e-6)
    high = max(highest, -0.04 * lowest)
    room = 0.04 * (high - low)
    low -= room
    high += room
    return low, high, round_step(low, high)


def time_to_decide(comparison: "Comparison") -> list[str]:
    """How many items, and about how long, it takes to tell the recommended learner from the next one."""
    rivals = [name for name in comparison.ties if name not in (VOTE, "dummy")]
    if not rivals or not comparison.is_decided or comparison.recommended == VOTE:
        return []
    differences = comparison.differences
    place = comparison.names.index(rivals[0])
    difference = float(differences.difference[0, place])
    width = differences.critical * float(differences.standard_error[0, place])
    title = comparison.learner(rivals[0]).title
    n_items = len(comparison.problem.y)
    if difference <= 0.0 or (width / difference) ** 2 > 1000.0:
        return [f"No number of items that one could collect would tell it apart from {title}."]
    factor = (width / difference) ** 2
    items = float(f"{factor * n_items:.2g}")
    seconds = factor * comparison.elapsed
    return [
        f"Telling it apart from {title} would take about {items:,.0f} items like these instead of "
        f"{n_items:,}, if the difference stays as it is, and at least "
        f"{duration(float(f'{seconds:.2g}'))} for such a comparison; more repeats of these items "
        "would not decide it."
    ]


def _score(comparison: "Comparison", score: float) -> str:
    return minus(format_score(comparison.metric, score))


def _points(comparison: "Comparison", difference: float) -> str:
    return minus(format_difference(comparison.metric, difference))


def _interval(comparison: "Comparison", row: dict[str, Any]) -> str:
    low = _points(comparison, row["difference_low"])
    high = _points(comparison, row["difference_high"])
    return f"{low} to {high}"


def _tick(value: float, step: float) -> str:
    digits = max(0, int(np.ceil(-np.log10(step))))
    text = f"{value:+.{digits}f}"
    return "0" if not float(text) else minus(text)


# ------------------------------------------------------------------------------------------------------ the table


def _table(comparison: "Comparison") -> Html:
    rows = comparison.table
    has_test = any(row["test_score"] is not None for row in rows)
    names = [metric_words(comparison.metric), "difference"]
    if has_test:
        names.append("given test set")
    names += ["fit", "1000 items"]
    head = [fill("race.head", name=name) for name in names]
    head += [fill("race.head-extra", name=name) for name in ("size", "settings")]
    body = join(_table_row(comparison, row, has_test) for row in rows)
    return fill("race.table", head=join(head), body=body)


def _table_row(comparison: "Comparison", row: dict[str, Any], has_test: bool) -> Html:
    is_best = row["verdict"] == "recommended"
    half = _score(comparison, (row["high"] - row["low"]) / 2)
    score = _score(comparison, row["score"])
    cells = [fill("race.cell-small", value=row["score"], text=score, small=f"±{half}")]
    if is_best:
        cells.append(fill("race.cell-mark", value=0.0, text=comparison.place_of_first))
    else:
        verdict = "" if row["verdict"] == "worse" else row["verdict"]
        difference = _points(comparison, row["difference"])
        cells.append(
            fill("race.cell-small", value=row["difference"], text=difference, small=verdict)
        )
    if has_test:
        test = row["test_score"]
        text = NO_NUMBER if test is None else _score(comparison, test)
        cells.append(fill("race.cell", value="nan" if test is None else test, text=text))
    for seconds in (row["fit_time"], 1000 * row["predict_time"]):
        cells.append(fill("race.cell", value=seconds, text=duration(seconds)))
    settings = row["settings"] or ("none" if row["learner"] == "dummy" else "own")
    if row["form"] == "defaults":
        settings = "defaults"
    cells.append(fill("race.cell-extra", value=row["size"], text=format_bytes(row["size"])))
    cells.append(fill("race.cell-extra", value=row["settings"], text=settings))
    return fill(
        "race.row",
        state=Html(" class=best") if is_best else Html(),
        title=row["title"],
        more=fill("race.name", name=row["learner"]),
        cells=join(cells),
    )


# ------------------------------------------------------------------------------------------------ learning curves


def _curves(comparison: "Comparison") -> Html:
    """Learning curves: the best learners in color, the others gray."""
    curves = anchored_curves(comparison)
    if not curves:
        return Html()
    most_colors = 5
    colored = [name for name in curves if name != "dummy"][:most_colors] or list(curves)
    entries = [
        {"line": legend_line(rank), "title": comparison.learner(name).title}
        for rank, name in enumerate(colored)
    ]
    metric = metric_words(comparison.metric)
    over = f"the {N_FOLDS} splits of the first repeat"
    if len(comparison.curve_folds) < N_FOLDS:
        over = "the first split"
    caption = (
        f"Mean {metric} by the number of training items; curves end at the scores of the table, "
        f"and what fewer items cost is measured on {over}."
    )
    if len(curves) > len(colored):
        caption += " Other learners are gray, where they are in sight."
    return fill(
        "race.curves",
        picture=_curves_svg(comparison, curves, colored),
        legend=fill_each("race.curve-entry", entries),
        caption=caption,
    )


def anchored_curves(comparison: "Comparison") -> dict[str, list[tuple[int, float]]]:
    """Learning curves that end at the scores of the table; differences along them are of the same splits."""
    scores = {row["learner"]: row["score"] for row in comparison.table}
    curves = {}
    for name, points in comparison.curves.items():
        if len(points) > 1:
            shift = scores[name] - points[-1][1]
            curves[name] = [(size, score + shift) for size, score in points]
    return curves


def _curves_svg(
    comparison: "Comparison", curves: dict[str, list[tuple[int, float]]], colored: list[str]
) -> Html:
    sizes = sorted({size for points in curves.values() for size, _ in points})
    shown = [score for name in colored for _, score in curves[name]]
    room = 0.06 * (max(shown) - min(shown)) + 1e-9
    low = min(shown) - room
    high = max(shown) + room
    # room for large labels on narrow screens
    width = 720
    height = 300
    left = 86
    base = 268

    def place(size: float, score: float) -> tuple[float, float]:
        across = np.log(size / sizes[0]) / np.log(sizes[-1] / sizes[0])
        up = (score - low) / (high - low)
        return left + (width - left - 14) * across, base - (base - 10) * up

    lines = []
    for name in reversed(list(curves)):
        style = 'stroke="var(--line)" stroke-width="1.5"'
        if name in colored:
            style = look(colored.index(name), 2 + (name == colored[0]))
        path = "L".join("{:.1f} {:.1f}".format(*place(*point)) for point in curves[name])
        lines.append(f'<path d="M{path}" fill="none" {style}/>')
    rules = ""
    for score in ticks_between(low, high):
        y = place(sizes[0], score)[1]
        rules += f'<path d="M{left} {y:.1f}H{width - 14}" stroke="var(--line)" stroke-width=".6"/>'
        rules += text_at(left - 6, y + 4, _score(comparison, score), "end")
    labels = "".join(
        text_at(place(size, low)[0], base + 17, f"{size:,}", "middle") for size in _apart(sizes)
    )
    inside = (
        f'<clipPath id="inside"><rect x="{left}" y="0" width="{width}" height="{base}"/></clipPath>'
    )
    drawn = f'{inside}{rules}<g clip-path="url(#inside)">{"".join(lines)}</g>{labels}'
    return svg(width, height, f"Learning curves of {len(curves)} learners", drawn, "curves")


def _apart(sizes: list[int]) -> list[int]:
    """Sizes of training sets whose labels do not touch, the largest among them."""
    kept = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if kept[-1] / size >= (sizes[-1] / sizes[0]) ** 0.08:
            kept.append(size)
    return kept[::-1]
