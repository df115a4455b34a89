"""The items of a comparison: a map of them, what the recommended learner takes for what, and what looks odd."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler

from mercerless.comparison.problem import Problem, take
from mercerless.comparison.scoring import N_FOLDS
from mercerless.comparison.words import duration, format_score, is_share, metric_words
from mercerless.core.calibration import cross_calibrate
from mercerless.core.folds import OutOfFold, find_copies
from mercerless.core.memory import format_bytes
from mercerless.core.suspects import (
    OddPair,
    Suspects,
    disagreeing_copies,
    far_items,
    most_asymmetric,
    suspect_labels,
    suspect_numbers,
    worst_triangles,
)
from mercerless.inspection.maps import Map, draw_map
from mercerless.lab.selection import feature_scales
from mercerless.spectra import implied_distances, symmetrize

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison

#: At most this many items are on the map and in the search for odd pairs.
MAX_POINTS = 320
_LISTED = 8
_MOST_CLASSES = 12  # of a confusion matrix
# rows and columns for which the scales of a table's columns are learned
_FEWEST_FOR_SCALES = 40
_MOST_FEATURES = 200
# of the ten nearest, that a map by learned scales may keep less than one by the columns as they are
_LESS_KEPT = 0.1
_COLORS = 5
_SIZE = 480
# circle, square, triangle, diamond, cross: classes can be told apart without their colors
_SHAPES = (
    "M{x:.1f} {y:.1f}m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0",
    "M{x:.1f} {y:.1f}m-3.2 -3.2h6.4v6.4h-6.4z",
    "M{x:.1f} {y:.1f}m0 -4.2l4 7h-8z",
    "M{x:.1f} {y:.1f}m0 -4.4l4 4.4l-4 4.4l-4 -4.4z",
    "M{x:.1f} {y:.1f}m-1.3 -4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
)


class Predicted(NamedTuple):
    """Out-of-fold predictions of the recommended learner: items, targets and predictions (classes by number)."""

    rows: NDArray
    target: NDArray
    predicted: NDArray


def predicted_items(comparison: "Comparison", name: str) -> Predicted:
    """What a learner predicted for the items of the first repeat's test parts."""
    first = [split for split in comparison.splits if split[0] == comparison.splits[0][0]]
    records = [comparison.results[name][split] for split in first]
    rows = np.concatenate([comparison.rows_of_splits[split] for split in first])
    target, predicted = (
        np.concatenate([getattr(r, field) for r in records]) for field in ("target", "predicted")
    )
    return Predicted(rows, target, predicted)


def find_suspects(comparison: "Comparison") -> Suspects | None:
    """Items whose label the better half of the learners (at most five) did not predict, calibrated out of fold."""
    problem = comparison.problem
    classes = np.unique(problem.y)
    names = [name for name in comparison.names if name != "dummy"]
    names = names[: max(1, min(5, (len(names) + 1) // 2))]
    votes = np.zeros((len(problem.y), len(classes)))
    for split in comparison.splits:
        for name in names:
            votes[
                comparison.rows_of_splits[split],
                comparison.results[name][split].predicted.astype(int),
            ] += 1.0
    seen = np.flatnonzero(votes.sum(axis=1) > 0.0)
    if len(seen) < 20 or len(classes) < 2:
        return None
    shares = (votes[seen] + 0.5 / len(classes)) / (votes[seen].sum(axis=1, keepdims=True) + 0.5)
    labels = np.searchsorted(classes, problem.y[seen])
    proba = cross_calibrate(np.log(shares), labels)
    return suspect_labels(OutOfFold(seen, proba, labels), classes)


def render_items(comparison: "Comparison") -> str:
    """The sections on the items, for the report; nothing where predictions were not kept."""
    problem = comparison.problem
    held = predicted_items(comparison, comparison.recommended)
    if len(held.target) == 0 or len(held.target) != len(held.rows):
        return _map_section(problem, None, None)
    if not problem.is_classification:
        odd = suspect_numbers(OutOfFold(*held[:1], held.predicted, held.target))
        marked = [int(item) for item in odd.items[:_LISTED]]
        listed = [
            (item, f"{given:.4g}", f"{guess:.4g}", f"{size:.1f} usual errors off")
            for item, given, guess, size in zip(*(column[:_LISTED] for column in odd))
        ]
        told = "Their numbers are more than five usual errors away from what the recommended learner predicts."
        odd_section = _odd_section(problem, listed, told)
        return _map_section(problem, held, marked) + _scatter_section(held) + odd_section
    suspects = comparison.suspects
    listed = []
    told = ""
    marked = []
    if suspects is not None and len(suspects.items):
        marked = [int(item) for item in suspects.items[:_LISTED]]
        listed = [
            (item, given, guess, "below 0.1 %" if probability < 0.001 else _percent(probability, 1))
            for item, given, guess, probability in zip(
                *(column[:_LISTED] for column in suspects[:4])
            )
        ]
        more = "" if len(suspects.items) <= _LISTED else f" The {_LISTED} most improbable:"
        told = f"{suspects} Learners that had not seen these items call the given label improbable.{more}"
    return (
        _map_section(problem, held, marked)
        + _confusion_section(held, problem)
        + _odd_section(problem, listed, told)
    )


def answer(comparison: "Comparison") -> str:
    """What to use and how good it will be, in one sentence."""
    best = comparison.table[0]
    score = best["score"]
    low = best["low"]
    high = best["high"]
    if is_share(comparison.metric) or comparison.metric == "r2":  # no model is better than perfect
        low = max(low, 0.0) if is_share(comparison.metric) else low
        high = min(high, 1.0)
    score, low, high = (format_score(comparison.metric, value) for value in (score, low, high))
    expected = f"{metric_words(comparison.metric)} of {score} (95 % interval {low} to {high})"
    advice = f"Use {best['title']}"
    if not comparison.is_decided:
        advice = f"Not decided yet, best so far is {best['title']}"
    return f"{advice}: on new items like these expect {expected}."


def render_card(comparison: "Comparison") -> str:
    """The model card: what the recommended model is, what it learned from, how good it is and where it ends."""
    problem = comparison.problem
    best = comparison.table[0]
    how = f"{len(comparison.splits)} splits of {N_FOLDS}-fold cross-validation, the search inside every training part"
    facts = [
        ("model", best["title"]),
        (
            "learned from",
            f"{len(problem.y):,} items of {problem.name}, {problem.kind}, {problem.task}",
        ),
        (
            "expected",
            answer(comparison)
            .split(": ", 1)[1]
            .removeprefix("on new items like these expect ")
            .rstrip("."),
        ),
        ("measured by", how),
        (
            "meant for",
            "new items from where these came from; other items are judged without a word",
        ),
        (
            "not known",
            "how it treats people or groups, and what happens when the data change over time",
        ),
        (
            "time and size",
            f"{duration(best['fit_time'])} to fit, {format_bytes(best['size'])} saved",
        ),
    ]
    if problem.groups is None:
        facts[-2] = (
            facts[-2][0],
            facts[-2][1] + "; items were taken to be independent of each other",
        )
    listed = "".join(f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in facts)
    return f"<section><h2>Model card</h2><dl>{listed}</dl></section>"


def _percent(share: float, digits: int = 0) -> str:
    return f"{100.0 * share:.{digits}f} %"


def item_names(problem: Problem) -> Sequence[str]:
    """What items are called: their names, or where they stand, counted from 1."""
    return (
        problem.ids if problem.ids is not None else [f"item {i + 1}" for i in range(len(problem.y))]
    )


def some_items(n: int, wanted: Sequence[int]) -> NDArray:
    """At most 320 items, evenly spread, with those that are wanted."""
    return np.union1d(
        np.linspace(0, n - 1, min(n, MAX_POINTS)).round().astype(int), np.array(wanted, dtype=int)
    )


def distances_of(X: Any, kind: str, rows: NDArray, preprocessor: Any = None) -> NDArray:
    """Distances between some items: of a table by its standardized columns, of similarities as they imply them."""
    if kind == "table":
        kept, scaled = _scaled_columns(X, rows, preprocessor)
        return euclidean_distances(scaled[np.searchsorted(kept, rows)])
    chosen = symmetrize(np.asarray(X[np.ix_(rows, rows)], dtype=float))
    if kind in ("distance", "dissimilarity"):
        chosen = chosen - min(0.0, float(chosen.min()))
        np.fill_diagonal(chosen, 0.0)
        return chosen
    return implied_distances(chosen)


def _scaled_columns(X: Any, rows: NDArray, preprocessor: Any) -> tuple[NDArray, NDArray]:
    """Some rows of a table, those told among them and enough for scales, and their standardized columns."""
    kept = np.union1d(rows, np.linspace(0, len(X) - 1, min(len(X), 5000)).round().astype(int))
    numbers = (
        take(X, kept) if preprocessor is None else clone(preprocessor).fit_transform(take(X, kept))
    )
    return kept, StandardScaler().fit_transform(np.nan_to_num(np.asarray(numbers, dtype=float)))


def learned_distances(problem: Problem, rows: NDArray) -> NDArray | None:
    """Distances between some rows of a table by the scales that LAB's evidence finds; None for few rows or features."""
    kept, scaled = _scaled_columns(problem.X, rows, problem.preprocessor)
    if len(kept) < _FEWEST_FOR_SCALES or not 2 <= scaled.shape[1] <= _MOST_FEATURES:
        return None
    y = problem.y[kept]
    Y = (
        (np.unique(problem.y) == y[:, None]).astype(float)
        if problem.is_classification
        else y[:, None].astype(float)
    )
    scale = Y.std(axis=0)
    targets = ((Y - Y.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0))[:, scale > 0.0]
    if targets.shape[1] == 0:
        return None
    return euclidean_distances(
        (scaled / np.exp(feature_scales(scaled, targets)))[np.searchsorted(kept, rows)]
    )


# ------------------------------------------------------------------------------------------------------- pictures


def _map_section(problem: Problem, held: Predicted | None, marked: Sequence[int] | None) -> str:
    rows = some_items(len(problem.y), marked or ())
    drawn = draw_map(distances_of(problem.X, problem.kind, rows, problem.preprocessor))
    learned = False
    if problem.kind == "table" and (D := learned_distances(problem, rows)) is not None:
        by_scales = draw_map(D)
        learned = by_scales.kept > drawn.kept - _LESS_KEPT
        drawn = by_scales if learned else drawn
    guess = None
    if held is not None:
        guess = dict(zip(held.rows.tolist(), held.predicted.tolist()))
    classify = problem.is_classification
    svg = map_svg(
        drawn, problem.y, item_names(problem), rows, classify, guess, marked or (), learned
    )
    return f"<section><h2>The items</h2>\n{svg}</section>"


def map_svg(
    drawn: Map,
    y: NDArray | None,
    names: Sequence[str],
    rows: NDArray,
    classify: bool,
    guess: dict | None,
    marked: Sequence[int],
    learned: bool = False,
) -> str:
    """The map as a figure: shapes and colors of classes, or shades of numbers; wrong and suspect items are ringed."""
    low = drawn.points.min(axis=0)
    high = drawn.points.max(axis=0)
    spread = float(np.max(high - low)) or 1.0
    places = 16.0 + (_SIZE - 32.0) * (drawn.points - (low + high) / 2.0 + spread / 2.0) / spread
    height = float(np.ptp(places[:, 1])) + 32.0
    places[:, 1] -= places[:, 1].min() - 16.0
    classes = np.unique(y) if classify and y is not None else np.zeros(0)
    ranks = (
        None
        if y is None or classify
        else np.argsort(np.argsort(y[rows], kind="stable")) / max(1, len(rows) - 1)
    )
    marks = []
    wrong = False
    for place, item in enumerate(rows.tolist()):
        x, top = places[place]
        code = int(np.searchsorted(classes, y[item])) if len(classes) and y is not None else 0
        missed = (
            bool(len(classes)) and guess is not None and item in guess and int(guess[item]) != code
        )
        wrong |= missed
        style = f'fill="var(--c{code % _COLORS})"'
        if ranks is not None:
            style = f'fill="var(--c0)" fill-opacity="{0.12 + 0.88 * ranks[place]:.2f}" stroke="var(--c0)"'
        title = _title(item, names, y, classes, guess)
        ring = f'<circle class=miss cx="{x:.1f}" cy="{top:.1f}" r="6.5"/>' if missed else ""
        if item in marked:
            ring += f'<circle class=odd cx="{x:.1f}" cy="{top:.1f}" r="9.5"/>'
        shape = _shape(code).format(x=x, y=top)
        marks.append(f'<g><title>{escape(title)}</title><path d="{shape}" {style}/>{ring}</g>')
    caption = _map_caption(
        drawn, len(rows), None if y is None else len(y), wrong, bool(marked), learned
    )
    legend = _legend(classes, y is not None and not classify)
    return (
        f'<figure class=map>{legend}<svg viewBox="0 0 {_SIZE} {height:.0f}" role="img" '
        f'aria-label="Map of {len(rows)} items; near ones are alike">{"".join(marks)}</svg>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _shape(code: int) -> str:
    """The shape of a class: colors repeat after five, with other shapes."""
    return _SHAPES[(code + code // _COLORS) % len(_SHAPES)]


def _title(
    item: int, names: Sequence[str], y: NDArray | None, classes: NDArray, guess: dict | None
) -> str:
    words = str(names[item])
    if y is not None:
        words += f": {y[item]:.4g}" if y.dtype.kind == "f" and not len(classes) else f": {y[item]}"
    if guess is not None and item in guess:
        value = classes[int(guess[item])] if len(classes) else f"{guess[item]:.4g}"
        words += f", predicted {value}"
    return words


def _map_caption(
    drawn: Map, n_drawn: int, n: int | None, wrong: bool, marked: bool, learned: bool
) -> str:
    how = (
        "distances on it are the two largest directions of the distances between the items"
        if drawn.method == "principal directions"
        else "only who is near whom means something on it (t-SNE), not how far clusters are apart"
    )
    kept = _percent(drawn.kept)
    scales = (
        " Columns count by how much they matter for the targets (LAB's learned scales)."
        if learned
        else ""
    )
    some = "" if n is None or n == n_drawn else f"{n_drawn:,} of {n:,} items. "
    rings = (
        " Thin rings: predicted wrongly by the recommended learner, out of fold." if wrong else ""
    )
    rings += " Thick rings: listed below as odd." if marked else ""
    return (
        f"{some}Items that are alike are near each other: the map keeps {kept} of the ten nearest "
        f"of everyone; {how}. "
        f"Point at an item for its name.{scales}{rings}"
    )


def _legend(classes: NDArray, numbers: bool) -> str:
    if numbers:
        return "<p class=soft>Pale: small numbers; full: large ones.</p>"
    if len(classes) < 2:
        return ""
    entries = "".join(
        f'<li><svg viewBox="0 0 12 12" aria-hidden=true><path d="{_shape(i).format(x=6, y=6)}" '
        f'fill="var(--c{i % _COLORS})"/></svg>{escape(str(label))}</li>'
        for i, label in enumerate(classes[:_MOST_CLASSES])
    )
    more = (
        f"<li>and {len(classes) - _MOST_CLASSES} more</li>" if len(classes) > _MOST_CLASSES else ""
    )
    return f'<ul class="legend shapes">{entries}{more}</ul>'


def _confusion_section(held: Predicted, problem: Problem) -> str:
    classes = np.unique(problem.y)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (held.target.astype(int), held.predicted.astype(int)), 1)
    words = f"<p>{escape(hard_classes(counts, classes))}</p>"
    if len(classes) > _MOST_CLASSES:
        return f"<section><h2>What is taken for what</h2>\n{words}</section>"
    totals = np.maximum(counts.sum(axis=1), 1)
    head = "".join(f"<th scope=col>{escape(str(label))}</th>" for label in classes)
    body = ""
    for i, label in enumerate(classes):
        shares = 100.0 * counts[i] / totals[i]
        cells = "".join(
            f'<td style="--share:{share:.0f}%"{" class=right" if i == j else ""}>{count or "&middot;"}</td>'
            for j, (count, share) in enumerate(zip(counts[i], shares))
        )
        body += f"<tr><th scope=row>{escape(str(label))}</th>{cells}<td>{shares[i]:.0f} %</td></tr>"
    return (
        f"<section><h2>What is taken for what</h2>\n{words}\n<div class=scroll tabindex=0 "
        "role=region "
        'aria-label="Confusion matrix"><table class=confusion><thead><tr>'
        f"<th scope=col>given &darr; predicted &rarr;</th>{head}<th "
        "scope=col>right</th></tr></thead>"
        f"<tbody>{body}</tbody></table></div>\n"
        "<p class=soft>The recommended learner on items it had not seen; rows are the given "
        "classes.</p></section>"
    )


def hard_classes(counts: NDArray, classes: NDArray) -> str:
    """The class that is recognized least, and what it is taken for, in a sentence."""
    totals = counts.sum(axis=1)
    recall = np.where(totals > 0, np.diagonal(counts) / np.maximum(totals, 1), np.nan)
    worst = int(np.nanargmin(recall))
    if recall[worst] == 1.0:
        return "Every item was recognized."
    others = counts[worst].copy()
    others[worst] = 0
    rival = int(others.argmax())
    even = np.nanmax(recall) - recall[worst] < 0.05
    begin = (
        "No class is much harder than the others"
        if even
        else f"The hardest class is {classes[worst]}"
    )
    what = f"the worst, {classes[worst]}," if even else "its items"
    taken = f"{others[rival]} of {totals[worst]} are taken for {classes[rival]}"
    return f"{begin}: {_percent(recall[worst])} of {what} are recognized, and {taken}."


def _scatter_section(held: Predicted) -> str:
    kept = np.linspace(0, len(held.rows) - 1, min(len(held.rows), 600)).round().astype(int)
    truth = held.target[kept].astype(float)
    guess = held.predicted[kept].astype(float)
    low = float(min(truth.min(), guess.min()))
    high = float(max(truth.max(), guess.max()))
    unit = (_SIZE - 60.0) / ((high - low) or 1.0)
    left = 48.0
    dots = "".join(
        f'<circle cx="{left + (t - low) * unit:.1f}" cy="{_SIZE - 36 - (g - low) * unit:.1f}" r="3"/>'
        for t, g in zip(truth, guess)
    )
    bottom = _SIZE - 36.0
    right = left + (high - low) * unit
    texts = (
        f'<text x="{left}" y="{_SIZE - 18}">{low:.4g}</text>'
        f'<text x="{right:.0f}" y="{_SIZE - 18}" text-anchor=end>{high:.4g}</text>'
        f'<text x="{(left + right) / 2:.0f}" y="{_SIZE - 4}" text-anchor=middle>given</text>'
        f'<text x="{left - 6}" y="{bottom:.0f}" text-anchor=end>{low:.4g}</text>'
        f'<text x="{left - 6}" y="{bottom - (high - low) * unit + 8:.0f}" text-anchor=end>{high:.4g}</text>'
    )
    errors = np.abs(held.target - held.predicted)
    half, most = np.quantile(errors, [0.5, 0.9])
    return (
        "<section><h2>Predicted and given</h2>\n"
        f"<p>Half of the predictions are within {half:.3g} of the given number, nine of ten within "
        f"{most:.3g}.</p>\n"
        f'<figure class=map><svg viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="Predicted against given numbers">'
        f'<path d="M{left} {bottom}L{right:.1f} {bottom - (right - left):.1f}" stroke="var(--soft)" fill="none" '
        f'stroke-dasharray="4 4"/><g fill="var(--c0)" fill-opacity=".6">{dots}</g>{texts}</svg>'
        "<figcaption>The recommended learner on items it had not seen; upwards what it predicted. "
        "On the dashed line "
        "both are equal.</figcaption></figure></section>"
    )


# ---------------------------------------------------------------------------------------------------- what is odd


def _odd_section(problem: Problem, listed: list[tuple], told: str) -> str:
    names = item_names(problem)
    blocks = []
    if listed:
        last = "probability of the given" if problem.is_classification else "distance"
        head = "".join(
            f"<th scope=col>{name}</th>" for name in ("item", "given", "looks like", last)
        )
        rows = "".join(
            f"<tr><th scope=row>{escape(str(names[item]))}</th>"
            + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
            + "</tr>"
            for item, *cells in listed
        )
        blocks.append(
            f'<p>{escape(told)}</p><div class=scroll tabindex=0 role=region aria-label="Odd items"><table><thead><tr>'
            f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    copies = find_copies(
        problem.X if problem.is_matrix else problem.numbered, precomputed=problem.is_matrix
    )
    if problem.is_classification:
        blocks += [f"<p>{escape(line)}</p>" for line in copy_sentences(copies, problem.y, names)]
    blocks += [
        f"<p>{escape(line)}</p>"
        for line in odd_sentences(problem.X, problem.kind, names, problem.preprocessor)
    ]
    if not blocks:
        return ""
    return f"<section><h2>Worth a look</h2>\n{''.join(blocks)}</section>"


def copy_sentences(copies: NDArray, labels: NDArray, names: Sequence[str]) -> list[str]:
    """Equal items with different labels, in words."""
    groups = disagreeing_copies(copies, labels)
    if not groups:
        return []
    shown = "; ".join(
        ", ".join(f"{names[i]} ({labels[i]})" for i in group[:4]) for group in groups[:3]
    )
    more = " and others" if len(groups) > 3 else ""
    sets = "set of equal items has" if len(groups) == 1 else "sets of equal items have"
    return [f"{len(groups)} {sets} different labels: {shown}{more}."]


def odd_sentences(X: Any, kind: str, names: Sequence[str], preprocessor: Any = None) -> list[str]:
    """Items far from all others, and pairs that break symmetry or the triangle most, in words."""
    rows = some_items(len(X), ())
    D = distances_of(X, kind, rows, preprocessor)
    lines = []
    far = far_items(D)
    if len(far):
        shown = ", ".join(str(names[rows[i]]) for i in far[:5])
        plural = "s are" if len(far) > 1 else " is"
        lines.append(
            f"{len(far)} item{plural} far from all others: "
            f"{shown}{' and more' if len(far) > 5 else ''}."
        )
    if kind == "table":
        return lines
    chosen = np.asarray(X[np.ix_(rows, rows)], dtype=float)
    if pairs := most_asymmetric(chosen, 3):
        lines.append(f"The two directions differ most for {_pairs(pairs, rows, names)}.")
    if kind == "distance" and (pairs := worst_triangles(D, 3)):
        lines.append(
            f"The triangle inequality is broken most by {_pairs(pairs, rows, names)}: they are "
            "farther apart than a "
            "way through the item named last."
        )
    return lines


def _pairs(pairs: Sequence[OddPair], rows: NDArray, names: Sequence[str]) -> str:
    return "; ".join(
        f"{names[rows[pair.first]]} and {names[rows[pair.second]]} (by {_percent(pair.amount, 1)} "
        "of the largest entry"
        + ("" if pair.through is None else f", through {names[rows[pair.through]]}")
        + ")"
        for pair in pairs
    )
