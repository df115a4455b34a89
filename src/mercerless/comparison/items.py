"""The items of a comparison: a map, odd items and labels, and the model card."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler

from mercerless.comparison.costs import measure_slowdown
from mercerless.comparison.drawing import plain_number, svg
from mercerless.comparison.page import Html, facts, fill, fill_each, join, paragraphs
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


@dataclass(frozen=True)
class ItemLimits:
    """How many items are shown, and which findings about them are reported."""

    points: int = 320  # items on the map and in the search for odd pairs
    map_seconds: float = 0.6  # time of a map of so many items by neighborhoods, on an idle core
    listed: int = 8  # odd items
    classes: int = 12  # in legends and confusion matrices
    colors: int = 5
    size: float = 480.0  # of the map
    rows_for_scales: int = 40  # scales of columns are learned from at least so many rows
    features_for_scales: int = 200  # and for at most so many columns
    less_kept: float = 0.1  # of the ten nearest, that a map with learned scales may lose
    items_for_suspects: int = 20
    suspect_level: float = 0.01  # probability that chance alone gives as many suspects
    suspect_ratio: float = 1.5  # suspects, as a multiple of the number expected by chance


LIMITS = ItemLimits()


class Predicted(NamedTuple):
    """Out-of-fold predictions of a learner: items, targets and predictions (classes by number)."""

    rows: NDArray
    target: NDArray
    predicted: NDArray

    @property
    def is_kept(self) -> bool:
        """Whether there is a prediction for every item."""
        return 0 < len(self.target) == len(self.rows)


def predicted_items(comparison: "Comparison", name: str) -> Predicted:
    """Predictions of a learner for the items of the first repeat's test parts."""
    first = [split for split in comparison.splits if split[0] == comparison.splits[0][0]]
    records = [comparison.results[name][split] for split in first]
    rows = np.concatenate([comparison.rows_of_splits[split] for split in first])
    target, predicted = (
        np.concatenate([getattr(r, field) for r in records]) for field in ("target", "predicted")
    )
    return Predicted(rows, target, predicted)


# ------------------------------------------------------------------------------------------------- suspects


def find_suspects(comparison: "Comparison") -> Suspects | None:
    """Items whose label the better half of the learners (at most five) did not predict, calibrated out of fold."""
    held_out = _joint_probabilities(comparison)
    if held_out is None:
        return None
    return suspect_labels(held_out, np.unique(comparison.problem.y))


def _joint_probabilities(comparison: "Comparison") -> OutOfFold | None:
    """Calibrated shares of the better learners' predictions; None for too few items."""
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
    if len(seen) < LIMITS.items_for_suspects or len(classes) < 2:
        return None
    shares = (votes[seen] + 0.5 / len(classes)) / (votes[seen].sum(axis=1, keepdims=True) + 0.5)
    labels = np.searchsorted(classes, problem.y[seen])
    proba = cross_calibrate(np.log(shares), labels)
    return OutOfFold(seen, proba, labels)


def suspicious_classes(held_out: OutOfFold, threshold: float) -> NDArray:
    """Classes, by number, in which clearly more labels look wrong than by chance.

    If all labels were right, ``sum_i p_ic [p_ic <= t]`` items of class c would have a label of probability at most t.
    These are many in a rare class, whose items are mostly improbable. A class is suspicious if a Poisson test finds
    that it has more.
    """
    proba = held_out.prediction
    n, n_classes = proba.shape
    is_decided = proba.max(axis=1) > 0.5
    right = proba[np.arange(n), held_out.target]
    thresholds = [threshold, threshold / 4.0, threshold / 16.0]
    level = LIMITS.suspect_level / (len(thresholds) * n_classes)
    suspicious = np.zeros(n_classes, dtype=bool)
    for limit in thresholds:
        improbable = np.where((proba <= limit) & is_decided[:, None], proba, 0.0)
        expected = improbable.sum(axis=0)
        is_odd = is_decided & (right <= limit)
        observed = np.bincount(held_out.target[is_odd], minlength=n_classes)
        is_rare = poisson.sf(observed - 1, expected) < level
        suspicious |= is_rare & (observed > LIMITS.suspect_ratio * expected)
    return np.flatnonzero(suspicious)


class OddItems(NamedTuple):
    """Items to look at: their places, the cells of their rows, and sentences about them."""

    items: list[int]
    rows: list[dict[str, str]]
    sentences: list[str]


def odd_items(comparison: "Comparison", held: Predicted) -> OddItems:
    """Items whose label or number does not fit the predictions of learners that have not seen it."""
    if not held.is_kept:
        return OddItems([], [], [])
    if comparison.problem.is_classification:
        return _odd_labels(comparison)
    odd = suspect_numbers(OutOfFold(held.rows, held.predicted, held.target))
    if not len(odd.items):
        return OddItems([], [], [])
    items = [int(item) for item in odd.items[: LIMITS.listed]]
    rows = [
        {
            "given": plain_number(given),
            "guess": plain_number(guess),
            "last": f"{size:.1f} usual errors off",
        }
        for given, guess, size in zip(odd.given, odd.suggested, odd.size)
    ]
    count = "1 number is" if len(odd.items) == 1 else f"{len(odd.items)} numbers are"
    sentence = f"{count} more than five usual errors away from what the first learner predicts."
    return OddItems(items, rows[: LIMITS.listed], [sentence])


def _odd_labels(comparison: "Comparison") -> OddItems:
    """Labels that look wrong, in classes with more of them than by chance."""
    suspects = comparison.suspects
    held_out = _joint_probabilities(comparison)
    if suspects is None or held_out is None or not len(suspects.items):
        return OddItems([], [], [])
    classes = np.unique(comparison.problem.y)
    suspicious = classes[suspicious_classes(held_out, suspects.threshold)]
    chosen = np.flatnonzero(np.isin(suspects.given, suspicious))
    by_chance = suspects.false_alarms * len(held_out.rows)
    if not len(chosen):
        count = "1 label is" if len(suspects.items) == 1 else f"{len(suspects.items)} labels are"
        sentence = (
            f"No label clearly looks wrong: {count} doubtful, chance alone gives about "
            f"{by_chance:.0f}, and no class has clearly more than its share."
        )
        return OddItems([], [], [sentence])
    look = "1 label looks" if len(chosen) == 1 else f"{len(chosen)} labels look"
    sentence = (
        f"{look} wrong, clearly more of their classes than by chance: learners that had not seen "
        "these items call the given label improbable."
    )
    if len(chosen) > LIMITS.listed:
        sentence += f" The {LIMITS.listed} most improbable:"
    chosen = chosen[: LIMITS.listed]
    rows = [
        {
            "given": str(suspects.given[place]),
            "guess": str(suspects.suggested[place]),
            "last": _probability(float(suspects.probability[place])),
        }
        for place in chosen
    ]
    return OddItems([int(item) for item in suspects.items[chosen]], rows, [sentence])


def _probability(share: float) -> str:
    return "below 0.1 %" if share < 0.001 else percent(share, 1)


# ------------------------------------------------------------------------------------------ the answer, the card


def answer(comparison: "Comparison") -> str:
    """The recommendation and its expected score, in one sentence."""
    best = comparison.table[0]
    advice = f"Use {best['title']}"
    if not comparison.is_decided:
        advice = f"Not decided yet, best so far is {best['title']}"
    expected = expectation(comparison)
    article = "an" if expected.startswith(("a", "e", "i", "R", "f1")) else "a"
    return f"{advice}: expect {article} {expected} on new items like these."


def expectation(comparison: "Comparison") -> str:
    """The score of the recommended learner, with its interval."""
    best = comparison.table[0]
    low = best["low"]
    high = best["high"]
    if is_share(comparison.metric) or comparison.metric == "r2":  # no model is better than perfect
        low = max(low, 0.0) if is_share(comparison.metric) else low
        high = min(high, 1.0)
    score, low, high = (
        format_score(comparison.metric, value) for value in (best["score"], low, high)
    )
    return f"{metric_words(comparison.metric)} of {score} (95 % interval {low} to {high})"


def card_section(comparison: "Comparison") -> Html:
    """The model card: the recommended model, its training data, its score and its limits."""
    problem = comparison.problem
    best = comparison.table[0]
    unknown = "how it treats people or groups, and what happens when the data change over time"
    if problem.groups is None:
        unknown += "; items are assumed to be independent of each other"
    source = f"{len(problem.y):,} items of {problem.name}, {problem.kind}, {problem.task}"
    how = f"{len(comparison.splits)} splits of {N_FOLDS}-fold cross-validation"
    if best["form"] == "defaults":
        how += ", with its default settings"
    else:
        how += ", any search inside every training part"
    if best["part"] < 1.0:
        how += f", trained on {best['n_train']:,} items only"
    cost = f"{duration(best['fit_time'])} to fit, {format_bytes(best['size'])} saved"
    listed = [
        ("model", best["title"]),
        ("learned from", source),
        ("expected", expectation(comparison)),
        ("measured by", how),
        (
            "meant for",
            "new items like these; any other item gets a prediction too, without a warning",
        ),
        ("not known", unknown),
        ("time and size", cost),
    ]
    return fill("items.card", facts=facts(listed))


def percent(share: float, digits: int = 0) -> str:
    """A share for people."""
    return f"{100.0 * share:.{digits}f} %"


def item_names(problem: Problem) -> Sequence[str]:
    """Names of the items, or their positions, counted from 1."""
    if problem.ids is not None:
        return problem.ids
    return [f"item {i + 1}" for i in range(len(problem.y))]


def some_items(n: int, requested: Sequence[int]) -> NDArray:
    """At most `LIMITS.points` items, evenly spread, and those that are requested."""
    spread = np.linspace(0, n - 1, min(n, LIMITS.points)).round().astype(int)
    return np.union1d(spread, np.array(requested, dtype=int))


def distances_of(X: Any, kind: str, rows: NDArray, preprocessor: Any = None) -> NDArray:
    """Distances between some items: of standardized columns for a table, as implied by the entries for similarities."""
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
    """Some rows of a table, the given ones among them and enough for scales, and their standardized columns."""
    evenly_spread = np.linspace(0, len(X) - 1, min(len(X), 5000)).round().astype(int)
    kept = np.union1d(rows, evenly_spread)
    columns = take(X, kept)
    if preprocessor is not None:
        columns = clone(preprocessor).fit_transform(columns)
    numbers = np.nan_to_num(np.asarray(columns, dtype=float))
    return kept, StandardScaler().fit_transform(numbers)


def learned_distances(problem: Problem, rows: NDArray) -> NDArray | None:
    """Distances between some rows of a table by the scales that LAB's evidence finds; None for few rows or features."""
    kept, scaled = _scaled_columns(problem.X, rows, problem.preprocessor)
    if len(kept) < LIMITS.rows_for_scales or not 2 <= scaled.shape[1] <= LIMITS.features_for_scales:
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


# ----------------------------------------------------------------------------------------------------- the map


def map_section(
    comparison: "Comparison", held: Predicted, marked: Sequence[int], seconds: float = np.inf
) -> Html:
    """The section with the map of the items; by neighborhoods if that takes at most `seconds`."""
    problem = comparison.problem
    rows = some_items(len(problem.y), marked)
    n_maps = 2 if problem.kind == "table" else 1
    map_seconds = LIMITS.map_seconds * (len(rows) / LIMITS.points) ** 2 * measure_slowdown()
    has_time = n_maps * map_seconds <= seconds
    distances = distances_of(problem.X, problem.kind, rows, problem.preprocessor)
    drawn = draw_map(distances, by_neighborhoods=has_time)
    is_learned = False
    D = None
    if problem.kind == "table" and has_time:
        D = learned_distances(problem, rows)
    if D is not None:
        by_scales = draw_map(D, by_neighborhoods=True)
        is_learned = by_scales.kept > drawn.kept - LIMITS.less_kept
        drawn = by_scales if is_learned else drawn
    guess = None
    if held.is_kept:
        guess = dict(zip(held.rows.tolist(), held.predicted.tolist()))
    items = MapItems(
        rows, item_names(problem), problem.y, problem.is_classification, guess, marked, is_learned
    )
    return fill("items.map-section", map=map_figure(drawn, items))


@dataclass(frozen=True)
class MapItems:
    """The items on a map: which, their names, targets, predictions, and those that are marked as odd."""

    rows: NDArray
    names: Sequence[str]
    y: NDArray | None = None
    classify: bool = False
    guess: dict[int, float] | None = None
    marked: Sequence[int] = ()
    has_learned_scales: bool = False

    @property
    def classes(self) -> NDArray:
        """The classes; none for numbers."""
        if self.y is None or not self.classify:
            return np.zeros(0)
        return np.unique(self.y)

    @property
    def ranks(self) -> NDArray | None:
        """The order of the items' numbers, from 0 to 1; None for classes."""
        if self.y is None or self.classify:
            return None
        order = np.argsort(np.argsort(self.y[self.rows], kind="stable"))
        return order / max(1, len(self.rows) - 1)

    def title(self, item: int, classes: NDArray) -> str:
        """The text shown for an item under the pointer."""
        words = str(self.names[item])
        if self.y is not None:
            value = self.y[item]
            is_number = self.y.dtype.kind == "f" and not len(classes)
            words += f": {plain_number(value)}" if is_number else f": {value}"
        if self.guess is not None and item in self.guess:
            guess = self.guess[item]
            words += (
                f", predicted {classes[int(guess)]}"
                if len(classes)
                else f", predicted {plain_number(guess)}"
            )
        return words


def map_figure(drawn: Map, items: MapItems) -> Html:
    """The map: shapes and colors of classes, or shades of numbers; wrong and suspect items are ringed."""
    low = drawn.points.min(axis=0)
    high = drawn.points.max(axis=0)
    spread = float(np.max(high - low)) or 1.0
    middle = (low + high) / 2.0
    places = 16.0 + (LIMITS.size - 32.0) * (drawn.points - middle + spread / 2.0) / spread
    height = float(np.ptp(places[:, 1])) + 32.0
    places[:, 1] -= places[:, 1].min() - 16.0
    classes = items.classes
    ranks = items.ranks
    marks = []
    n_missed = 0
    for place, item in enumerate(items.rows.tolist()):
        x, top = places[place]
        code = 0
        is_missed = False
        if items.y is not None and len(classes):
            code = int(np.searchsorted(classes, items.y[item]))
            is_missed = items.guess is not None and int(items.guess.get(item, code)) != code
        n_missed += is_missed
        style = f'fill="var(--c{code % LIMITS.colors})"'
        if ranks is not None:
            opacity = 0.12 + 0.88 * ranks[place]
            style = f'fill="var(--c0)" fill-opacity="{opacity:.2f}" stroke="var(--c0)"'
        ring = f'<circle class=miss cx="{x:.1f}" cy="{top:.1f}" r="6.5"/>' if is_missed else ""
        if item in items.marked:
            ring += f'<circle class=odd cx="{x:.1f}" cy="{top:.1f}" r="9.5"/>'
        shape = _shape(code).format(x=x, y=top)
        title = escape(items.title(item, classes))
        marks.append(f'<g><title>{title}</title><path d="{shape}" {style}/>{ring}</g>')
    label = f"Map of {len(items.rows)} items; near ones are alike"
    return fill(
        "items.map",
        legend=_legend(classes, ranks is not None),
        picture=svg(LIMITS.size, round(height), label, "".join(marks)),
        caption=_map_caption(drawn, items, n_missed),
    )


def _shape(code: int) -> str:
    """The shape of a class: colors repeat after five, with other shapes."""
    circle = "M{x:.1f} {y:.1f}m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0"
    square = "M{x:.1f} {y:.1f}m-3.2 -3.2h6.4v6.4h-6.4z"
    triangle = "M{x:.1f} {y:.1f}m0 -4.2l4 7h-8z"
    diamond = "M{x:.1f} {y:.1f}m0 -4.4l4 4.4l-4 4.4l-4 -4.4z"
    cross = "M{x:.1f} {y:.1f}m-1.3 -4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z"
    shapes = (circle, square, triangle, diamond, cross)
    return shapes[(code + code // LIMITS.colors) % len(shapes)]


def _map_caption(drawn: Map, items: MapItems, n_missed: int) -> str:
    sentences = []
    if items.y is not None and len(items.y) > len(items.rows):
        sentences.append(f"{len(items.rows):,} of {len(items.y):,} items.")
    how = "neighborhoods on it mean something, distances between clusters do not (t-SNE)"
    if drawn.method == "principal directions":
        how = "distances on it are the two largest directions of the distances between the items"
    sentences.append(
        "Similar items are near each other: of the ten nearest neighbors of an item, the map keeps "
        f"{percent(drawn.kept)} on average; {how}."
    )
    sentences.append("Point at an item for its name.")
    if items.has_learned_scales:
        sentences.append(
            "Columns count by how much they matter for the targets (LAB's learned scales)."
        )
    if n_missed:
        sentences.append(
            f"Thin rings: the {n_missed:,} of these that the first learner predicted wrongly "
            "out of fold, in the first repeat."
        )
    if len(items.marked):
        sentences.append("Thick rings: listed below as odd.")
    return " ".join(sentences)


def _legend(classes: NDArray, has_numbers: bool) -> Html:
    if has_numbers:
        return fill("items.legend-numbers")
    if len(classes) < 2:
        return Html()
    entries = []
    for code, label in enumerate(classes[: LIMITS.classes]):
        path = _shape(code).format(x=6, y=6)
        color = f"var(--c{code % LIMITS.colors})"
        shape = Html(
            f'<svg viewBox="0 0 12 12" aria-hidden=true><path d="{path}" fill="{color}"/></svg>'
        )
        entries.append({"shape": shape, "label": label})
    more = Html()
    if len(classes) > LIMITS.classes:
        more = fill("items.legend-more", count=len(classes) - LIMITS.classes)
    return fill("items.legend", entries=fill_each("items.legend-entry", entries), more=more)


# ------------------------------------------------------------------------------------------------------ odd items


def odd_section(problem: Problem, odd: OddItems) -> Html:
    """The section on odd items; empty if there are none."""
    names = item_names(problem)
    blocks = [paragraphs(odd.sentences)]
    if odd.rows:
        last = "probability of the given" if problem.is_classification else "distance"
        named = [{"name": names[item], **row} for item, row in zip(odd.items, odd.rows)]
        blocks.append(fill("items.odd-table", last=last, rows=fill_each("items.odd-row", named)))
    sentences = []
    if problem.is_classification:
        copied = problem.X if problem.is_matrix else problem.numbered
        copies = find_copies(copied, precomputed=problem.is_matrix)
        sentences += copy_sentences(copies, problem.y, names)
    sentences += odd_sentences(problem.X, problem.kind, names, problem.preprocessor)
    blocks.append(paragraphs(sentences))
    content = join(blocks)
    return fill("items.odd", content=content) if content else Html()


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
            "farther apart than a way through the item named last."
        )
    return lines


def _pairs(pairs: Sequence[OddPair], rows: NDArray, names: Sequence[str]) -> str:
    return "; ".join(
        f"{names[rows[pair.first]]} and {names[rows[pair.second]]} (by {percent(pair.amount, 1)} "
        "of the largest entry"
        + ("" if pair.through is None else f", through {names[rows[pair.through]]}")
        + ")"
        for pair in pairs
    )
