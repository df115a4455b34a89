"""A comparison as one self-contained HTML page: no script, no network, for screens of any size and for print."""

import struct
import time
import zlib
from base64 import b64encode
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercerless.comparison.items import (
    answer,
    copy_sentences,
    distances_of,
    map_svg,
    odd_sentences,
    render_card,
    render_items,
    some_items,
)
from mercerless.comparison.learners import MatrixSpectrum
from mercerless.comparison.negative import negative_sentences
from mercerless.comparison.scoring import MAX_TEST, N_FOLDS, OF_ITEMS
from mercerless.comparison.words import (
    WORDS,
    duration,
    format_difference,
    format_score,
    is_share,
    metric_words,
)
from mercerless.core.folds import find_copies
from mercerless.core.memory import format_bytes
from mercerless.inspection.maps import draw_map, likeness_order
from mercerless.spectra import as_similarities, symmetrize

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison

__all__ = ["render", "render_matrix", "render_short"]

#: At most this many items are drawn in the ordered matrix.
MAX_DRAWN = 320
#: How many learning curves get a color of their own.
N_COLORED = 5
FAMILIES = {
    "baseline": "ordinary baseline",
    "raw": "matrix as it is",
    "repair": "spectrum repaired",
    "mercerless": "mercerless",
    "vote": "vote",
    "yours": "your own",
}


def render(comparison: "Comparison", command: str | None = None) -> str:
    """Return the page, HTML that needs nothing else; `command` reproduces it, None means the call in Python.

    Every name that came from outside is escaped.
    """
    sections = [
        _head(comparison),
        render_items(comparison),
        _recommended(comparison),
        _plot(comparison),
        ""
        if comparison.terms.spectrum is None
        else _spectrum(comparison, comparison.terms.spectrum),
        _curves(comparison),
        _table(comparison),
        _not_compared(comparison),
        _data(comparison),
        _reproduce(comparison, command or comparison.python_command),
        render_card(comparison),
    ]
    title = f"{comparison.problem.name}: what works"
    return _fill(title, sections, comparison.versions["mercerless"], comparison.finished)


def _fill(title: str, sections: list[str], number: str, finished: str) -> str:
    """The page of some sections."""
    page = files("mercerless.comparison")
    return Template(page.joinpath("report.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        style=page.joinpath("report.css").read_text(encoding="utf-8"),
        sections="\n".join(filter(None, sections)),
        version=escape(number),
        finished=escape(finished),
    )


def render_matrix(
    X: NDArray,
    kind: str,
    name: str,
    y: NDArray | None,
    classify: bool,
    facts: list[str],
    eigenvalues: NDArray,
) -> str:
    """Return the page on a matrix of this kind, HTML that needs nothing else, with or without labels or numbers y.

    A fact is a line: a few words, then what they are said of from the 18th character on. The eigenvalues are those of
    the symmetric similarities, descending. Every name that came from outside is escaped.
    """
    names = [f"item {i + 1}" for i in range(len(X))]
    rows = some_items(len(X), ())
    drawn = draw_map(distances_of(X, kind, rows))
    listed = "".join(
        f"<dt>{escape(line[:17].strip())}</dt><dd>{escape(line[17:])}</dd>" for line in facts[1:]
    )
    odd = odd_sentences(X, kind, names)
    if y is not None and classify:
        odd += copy_sentences(find_copies(X, precomputed=True), y, names)
    words = "".join(f"<p>{escape(line)}</p>" for line in odd)
    sections = [
        f"<header><h1>{escape(name)}</h1>\n<p class=soft>{escape(facts[0])}</p></header>",
        f'<section class=verdict aria-label="What it is"><dl>{listed}</dl></section>',
        "<section><h2>The "
        f"items</h2>\n{map_svg(drawn, y, names, rows, classify, None, ())}</section>",
        f"<section><h2>Worth a look</h2>\n{words}</section>" if odd else "",
        f"<section><h2>The eigenvalues</h2>\n<figure class=map>{_spectrum_svg(eigenvalues)}"
        "<figcaption>Heights are square roots of sizes.</figcaption></figure></section>",
    ]
    return _fill(
        f"{name}: what it is", sections, version("mercerless"), time.strftime("%Y-%m-%d %H:%M %Z")
    )


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
        bounds = " to ".join(
            _points(comparison, row[key]) for key in ("difference_low", "difference_high")
        )
        is_best = row["verdict"] == "recommended"
        difference = "" if is_best else _points(comparison, row["difference"])
        cells = (
            _score(comparison, row["score"]),
            difference,
            "" if is_best else bounds,
            duration(row["fit_time"]),
        )
        listed = "".join(f"<td>{cell}</td>" for cell in (*cells, escape(row["verdict"])))
        rows.append(f"<tr><th scope=row>{escape(row['title'])}</th>{listed}</tr>")
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in header)
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in comparison.verdict)
    return f"<div>{words}<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


# -------------------------------------------------------------------------------------------------------- words


def _head(comparison: "Comparison") -> str:
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
    target = "a number to predict"
    if problem.is_classification:
        target = f"{len(np.unique(problem.y))} classes"
    tested = (
        f"each split tested on {MAX_TEST:,} items; " if len(problem.y) > N_FOLDS * MAX_TEST else ""
    )
    lines = "".join(
        f"<p>{escape(sentence)}</p>" for sentence in (answer(comparison), *comparison.verdict)
    )
    if comparison.interrupted:
        lines += "<p>The run was interrupted: this is what was finished by then.</p>"
    return (
        f"<header><h1>{escape(problem.name)}</h1>\n<p class=soft>{escape(what)}, {escape(target)}. "
        f"{len(comparison.names)} learners on the same {len(comparison.splits)} splits "
        f"({_folds(comparison)}), each searching its own parameters inside every training "
        f"part; {tested}{escape(duration(comparison.elapsed))} in all.</p></header>\n"
        f'<section class=verdict aria-label="Verdict">{lines}</section>'
    )


def _folds(comparison: "Comparison") -> str:
    """How many repeats of how many folds the splits are; with a word where some are missing."""
    repeats = len({repeat for repeat, _ in comparison.splits})
    some = "" if len(comparison.splits) == N_FOLDS * repeats else "of "
    return f"{some}{repeats} &times; {N_FOLDS}-fold"


def _recommended(comparison: "Comparison") -> str:
    return (
        "<section><h2>Use this</h2>\n<p>The recommended learner with the search it was scored "
        "with. One click selects "
        f"the code.</p>\n<pre tabindex=0><code>{escape(comparison.code())}</code></pre></section>"
    )


def _not_compared(comparison: "Comparison") -> str:
    rows = [(name, reason) for name, reason in comparison.left_out.items()]
    rows += [(name, f"failed: {error}") for name, error in comparison.failed.items()]
    unsettled = [row["title"] for row in comparison.table if not row["converged"]]
    if not rows and not unsettled:
        return ""
    listed = "".join(
        f"<dt>{escape(comparison.learner(name).title)}</dt><dd>{escape(reason)}</dd>"
        for name, reason in rows
    )
    listed += "".join(
        f"<dt>{escape(title)}</dt><dd>scored, but its solver stopped before it converged in some "
        "fits</dd>"
        for title in unsettled
    )
    return f"<section><h2>Left out, or with a caveat</h2><dl>{listed}</dl></section>"


def _data(comparison: "Comparison") -> str:
    problem = comparison.problem
    facts = [("kind", problem.kind), ("items", f"{len(problem.y):,}"), ("task", problem.task)]
    if problem.is_classification:
        labels, counts = np.unique(problem.y, return_counts=True)
        most = [f"{label} ({count})" for label, count in zip(labels[:12], counts[:12])]
        facts.append(("classes", ", ".join(most) + (" and more" if len(labels) > 12 else "")))
    else:
        low, middle, high = np.percentile(problem.y, [0, 50, 100])
        facts.append(("target", f"from {low:.4g} to {high:.4g}, median {middle:.4g}"))
    if problem.is_matrix:
        amount = problem.asymmetry
        facts.append(
            ("symmetric", f"no, by up to {amount:.2g} of the largest entry" if amount else "yes")
        )
    if problem.groups is not None:
        facts.append(
            ("groups", f"{len(np.unique(problem.groups))}, never split between training and test")
        )
    if problem.y_test is not None:
        facts.append(
            (
                "given test set",
                f"{len(problem.y_test)} items, scored once, no part in the recommendation",
            )
        )
    listed = "".join(f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in facts)
    guesses = "".join(
        f"<li><strong>{escape(guess.what)}:</strong> {escape(guess.value)}, because "
        f"{escape(guess.why)} "
        f"<span class=soft>(override with <code>--{escape(guess.option)}</code>)</span></li>"
        for guess in problem.guesses
    )
    guesses = f"<h3>Found out, not told</h3><ul>{guesses}</ul>" if guesses else ""
    return f"<section><h2>The data</h2><dl>{listed}</dl>{guesses}</section>"


def _reproduce(comparison: "Comparison", command: str) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in comparison.versions.items())
    return (
        "<section><h2>Repeat it</h2>\n<p>The same splits and seeds, and so the same scores:</p>\n"
        f"<pre tabindex=0><code>{escape(command)}</code></pre>\n"
        f"<p class=soft>Seed {comparison.random_state}; {escape(versions)}.</p>\n"
        f"<h3>How the differences are judged</h3>\n<p class=soft>{_method(comparison)} All pairs "
        "of learners are "
        "judged together by the studentized range (Tukey), so that without any real difference one "
        "is claimed in at "
        "most 5 % of such reports. “Not distinguishable” does not mean equal: more items would "
        "tell.</p></section>"
    )


def _method(comparison: "Comparison") -> str:
    if comparison.metric not in OF_ITEMS:
        return (
            "The variance of a difference is that between the splits, corrected for overlapping "
            "training sets (Nadeau "
            f"and Bengio 2003): {escape(metric_words(comparison.metric))} is no mean over items, "
            "which would tell more."
        )
    return (
        "The variance of a difference has two parts: of the items, from out-of-fold predictions, "
        "corrected for "
        "overlapping training sets (Nadeau and Bengio 2003), and of the training, what splits "
        "differ by beyond what "
        "their items explain."
    )


# ---------------------------------------------------------------------------------------------- dots and intervals


def _plot(comparison: "Comparison") -> str:
    rows = comparison.table
    if len(rows) < 2:
        return ""
    factor = 100.0 if is_share(comparison.metric) else 1.0
    low, high, step = _axis(
        [(row["difference_low"] * factor, row["difference_high"] * factor) for row in rows[1:]]
    )

    lines = "".join(_line(comparison, row, low, high) for row in rows)
    ticks = "".join(
        f'<span style="left:{100.0 * (tick - low) / (high - low):.2f}%">{_tick(tick, step)}</span>'
        for tick in step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    )
    title = escape(_capital(metric_words(comparison.metric)))
    unit = (
        "percentage points"
        if is_share(comparison.metric)
        else f"units of {metric_words(comparison.metric)}"
    )
    return (
        f"<section><h2>{title}, and the difference to the recommended</h2>\n"
        f"<p>Dots are mean differences in {escape(unit)}; bars are intervals that hold for all "
        "learners together. A "
        "bar that reaches the dashed line (filled dot): not distinguishable from the recommended "
        "one.</p>\n"
        f'<figure class=plot aria-label="Scores and differences of all learners, also in the table below">'
        f'<div class=lines>{lines}</div><div class="row ticks-row" style="border:0"><div></div>'
        f'<div class="ticks axis" aria-hidden=true>{ticks}</div><div></div></div></figure></section>'
    )


def _line(comparison: "Comparison", row: dict[str, Any], low: float, high: float) -> str:
    """A learner's name, its dot and interval between the ends of the axis, and its score."""
    factor = 100.0 if is_share(comparison.metric) else 1.0
    zero, center, left, right = (
        100.0 * (factor * value - low) / (high - low)
        for value in (0.0, row["difference"], row["difference_low"], row["difference_high"])
    )
    best = row["verdict"] == "recommended"
    state = "best" if best else "tie" if row["verdict"] == "not distinguishable" else "worse"
    marks = f'<i class=zero style="left:{zero:.2f}%"></i>'
    if not best and center >= 0:
        begin = max(0.0, left)
        marks += (
            f'<i class=bar style="left:{begin:.2f}%;width:{min(100.0, right) - begin:.2f}%"></i>'
        )
    if center >= 0:
        marks += f'<i class=dot style="left:{center:.2f}%"></i>'
    else:
        marks += f"<i class=off>&#9664; {_points(comparison, row['difference'])}</i>"
    interval = " to ".join(
        _points(comparison, row[key]) for key in ("difference_low", "difference_high")
    )
    return (
        f'<div class="row {state}"><div class=name>{escape(row["title"])}'
        f"<small>{_caption(row)}</small></div><div class=track aria-hidden=true>{marks}</div>"
        "<div "
        f"class=value>{_score(comparison, row['score'])}<small>{'recommended' if best else interval}</small>"
        "</div></div>"
    )


def _caption(row: dict[str, Any]) -> str:
    """What kind of learner a row is, and how many items it was trained on where that is not all."""
    small = f", trained on {row['n_train']:,} items" if row["part"] < 1.0 else ""
    return FAMILIES[row["family"]] + small


def _axis(intervals: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the limits and the step of the axis; learners far behind fall off its left end."""
    lows = np.sort([low for low, _ in intervals])
    middle = float(np.median(lows))
    inside = [low for low in lows if low >= 2.5 * middle] or [middle]
    low = min(inside[0], -1e-6)
    high = max(max(high for _, high in intervals), -0.04 * inside[0])
    low, high = low - 0.04 * (high - low), high + 0.04 * (high - low)
    return low, high, _round_step(low, high)


def _round_step(low: float, high: float) -> float:
    """Return a round distance between some five ticks."""
    rough = (high - low) / 5
    size = 10.0 ** np.floor(np.log10(rough))
    return float(next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough))


def _score(comparison: "Comparison", score: float) -> str:
    return _minus(format_score(comparison.metric, score))


def _points(comparison: "Comparison", difference: float) -> str:
    return _minus(format_difference(comparison.metric, difference))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _minus(number: str) -> str:
    return number.replace("-", "&minus;")


def _tick(value: float, step: float) -> str:
    digits = max(0, int(np.ceil(-np.log10(step))))
    text = f"{value:+.{digits}f}"
    return "0" if not float(text) else _minus(text)


def _table(comparison: "Comparison") -> str:
    rows = comparison.table
    others = [
        name for name in WORDS if name != comparison.metric and any(name in row for row in rows)
    ]
    has_test = any(row["test_score"] is not None for row in rows)
    head = [
        metric_words(comparison.metric),
        "difference",
        *(["given test set"] if has_test else []),
        "fit",
        "1000 items",
    ]
    extra = [*(WORDS[name] for name in others), "size", "settings"]
    header = "".join(f"<th scope=col>{escape(name)}</th>" for name in head)
    header += "".join(f"<th scope=col class=extra>{escape(name)}</th>" for name in extra)
    body = "".join(_table_row(comparison, row, others, has_test) for row in rows)
    return (
        "<section><h2>All numbers</h2>\n<p class=soft>Means over the splits, with 95 % intervals "
        "of the single score; "
        "“fit” includes the search; “1000 items” is the time to predict them; “size” is that of "
        "the saved model.</p>\n"
        '<div class=scroll tabindex=0 role=region aria-label="Table of all scores"><table><thead><tr>'
        "<th "
        f"scope=col>learner</th>{header}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def _table_row(
    comparison: "Comparison", row: dict[str, Any], others: list[str], has_test: bool
) -> str:
    half = _score(comparison, (row["high"] - row["low"]) / 2)
    verdict = {
        "recommended": "recommended",
        "not distinguishable": "not distinguishable",
        "worse": "",
    }[row["verdict"]]
    difference = f"{_points(comparison, row['difference'])}<small>{verdict}</small>"
    if row["verdict"] == "recommended":
        difference = f"<span class=mark>{verdict}</span>"
    cells = [
        f"<td>{_score(comparison, row['score'])}<small>±{half}</small></td>",
        f"<td>{difference}</td>",
    ]
    if has_test:
        test = "" if row["test_score"] is None else _score(comparison, row["test_score"])
        cells.append(f"<td>{test}</td>")
    cells.append(
        f"<td>{duration(row['fit_time'])}</td><td>{duration(1000 * row['predict_time'])}</td>"
    )
    for name in others:
        shown = _minus(f"{row[name]:.3g}") if name in row and np.isfinite(row[name]) else "&ndash;"
        cells.append(f"<td class=extra>{shown}</td>")
    settings = row["settings"] or ("none" if row["learner"] == "dummy" else "own")
    cells.append(f"<td class=extra>{format_bytes(row['size'])}</td><td class=extra>{settings}</td>")
    state = " class=best" if row["verdict"] == "recommended" else ""
    name = f"<th scope=row>{escape(row['title'])}<small><code>{escape(row['learner'])}</code></small></th>"
    return f"<tr{state}>{name}{''.join(cells)}</tr>"


# ------------------------------------------------------------------------------------------------------- pictures


def _spectrum(comparison: "Comparison", spectrum: MatrixSpectrum) -> str:
    measures = spectrum.indefiniteness
    values = spectrum.eigenvalues[::-1]
    n_items = len(comparison.problem.y)
    sampled = (
        "" if spectrum.n_items == n_items else f"Of {spectrum.n_items:,} of the {n_items:,} items: "
    )
    facts = sampled + (
        f"{measures.n_positive} positive, {measures.n_negative} negative and {measures.n_zero} "
        "zero eigenvalues; the "
        f"negative ones are {100 * measures.negative_mass:.1f} % of the sum of sizes."
    )
    words = "".join(
        f"<p>{escape(sentence)}</p>"
        for sentence in negative_sentences(measures, comparison.negative)
    )
    if comparison.negative is not None:
        words += (
            "<p class=soft>The learners above are ranked by "
            f"{escape(metric_words(comparison.metric))}, which may "
            "order the clipped and the flipped spectrum otherwise.</p>"
        )
    kind = {
        "distance": "Distances become similarities &minus;d²/2, centered. ",
        "dissimilarity": "Dissimilarities become similarities &minus;d/2, centered. ",
    }.get(comparison.problem.kind, "")
    return (
        f"<section><h2>The matrix</h2>\n{words}\n<div class=pair><figure>{_spectrum_svg(values)}"
        f"<figcaption>{kind}{facts} Heights are square roots of sizes.</figcaption></figure>\n"
        f"<figure>{_matrix_svg(comparison)}</figure></div></section>"
    )


def _spectrum_svg(values: NDArray) -> str:
    """Eigenvalues as bars, in order; signed square roots, so that small ones show."""
    heights = np.sign(values) * np.sqrt(np.abs(values))
    if len(heights) > 400:
        heights = heights[np.linspace(0, len(heights) - 1, 400).round().astype(int)]
    top = max(heights.max(), 0.0)
    bottom = min(heights.min(), 0.0)
    ends = [f"{values[0]:.3g}", _minus(f"{values[-1]:.3g}")]
    width = 480
    height = 260
    # room for the longest label
    left = 14 + 7 * max(len(end.replace("&minus;", "-")) for end in ends)
    unit = (height - 24) / max(top - bottom, 1e-300)
    zero = 12 + top * unit
    step = (width - left - 6) / len(heights)
    bars: dict[str, list[str]] = {"positive": [], "negative": []}
    for i, value in enumerate(heights):
        x = left + i * step
        y = zero - max(value, 0) * unit
        bars["positive" if value >= 0 else "negative"].append(
            f"M{x:.1f} "
            f"{y:.1f}h{max(0.5, 0.85 * step):.2f}v{abs(value) * unit:.1f}h-{max(0.5, 0.85 * step):.2f}z"
        )
    paths = "".join(
        f'<path d="{"".join(path)}" fill="var(--{sign})"/>' for sign, path in bars.items() if path
    )
    ticks = [(12, ends[0]), (zero, "0")] if values[0] > 0 else [(zero, "0")]
    if bottom < 0 and abs(bottom) * unit > 16:
        ticks.append((height - 12, ends[1]))
    texts = "".join(
        f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{text}</text>' for y, text in ticks
    )
    label = (
        f"Eigenvalues from {values[0]:.3g} down to {values[-1]:.3g}, negative ones in another color"
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{paths}'
        f'<path d="M{left} {zero:.1f}H{width}" stroke="var(--soft)" fill="none"/>{texts}</svg>'
    )


def _matrix_svg(comparison: "Comparison") -> str:
    """The matrix with its items ordered by class and likeness (or by target), thinned where it is large."""
    problem = comparison.problem
    X = symmetrize(problem.X) if problem.asymmetry else problem.X
    kept = np.linspace(0, len(X) - 1, min(len(X), MAX_DRAWN)).round().astype(int)
    y = problem.y[kept]
    order = np.argsort(y, kind="stable")
    if problem.is_classification:
        order = likeness_order(as_similarities(X[np.ix_(kept, kept)], problem.kind), y)
    drawn = problem.X[np.ix_(kept[order], kept[order])]
    y = y[order]
    off = drawn[~np.eye(len(drawn), dtype=bool)]
    low, high = np.percentile(off, [1, 99])
    shades = np.clip((drawn - low) / (high - low if high > low else 1.0), 0, 1)
    shades = 1.0 - shades if problem.small_is_like else shades
    image = b64encode(encode_png((255 * shades).round().astype(np.uint8))).decode()
    n = len(drawn)
    edges = (
        np.flatnonzero(y[1:] != y[:-1]) + 1
        if problem.is_classification
        else np.array([], dtype=int)
    )
    lines = "".join(f"M0 {edge}H{n}M{edge} 0V{n}" for edge in edges) if len(edges) <= 30 else ""
    by = "by class, and by likeness inside each" if problem.is_classification else "by target"
    label = f"The {problem.kind} matrix of {n} items ordered {by}; light is similar"
    sampled = "" if n == len(X) else f"{n} of {len(X)} items. "
    return (
        f'<svg viewBox="0 0 {n} {n}" role="img" aria-label="{escape(label)}">'
        f'<image href="data:image/png;base64,{image}" width="{n}" height="{n}" style="image-rendering:pixelated"/>'
        f'<path d="{lines}" stroke="#fff" stroke-opacity=".75" stroke-width="{n / 400:.2f}" fill="none"/></svg>'
        f"<figcaption>{sampled}Items ordered {by}; light is similar.</figcaption>"
    )


#: Anchors of a palette of even lightness steps, dark blue over green to light yellow.
_PALETTE = np.array(
    [[33, 20, 66], [44, 62, 118], [38, 108, 131], [51, 153, 125], [126, 194, 96], [247, 232, 105]]
)


def encode_png(pixels: NDArray) -> bytes:
    """Encode numbers from 0 to 255 as a PNG with a palette from dark to light."""
    positions = np.linspace(0, len(_PALETTE) - 1, 256)
    palette = np.column_stack(
        [np.interp(positions, np.arange(len(_PALETTE)), channel) for channel in _PALETTE.T]
    )

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette.round().astype(np.uint8).tobytes())
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


_DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2 1 2")


def _curves(comparison: "Comparison") -> str:
    """Learning curves: the best learners in color, the others gray."""
    curves = {name: points for name, points in comparison.curves.items() if len(points) > 1}
    if not curves:
        return ""
    colored = list(curves)[:N_COLORED]
    legend = "".join(
        f'<li><svg viewBox="0 0 30 8" aria-hidden="true"><path d="M0 4H30" {_look(i, 3)}/></svg>'
        f"{escape(comparison.learner(name).title)}</li>"
        for i, name in enumerate(colored)
    )
    rest = "; the others in gray, where they are in sight" if len(curves) > len(colored) else ""
    over = f"Mean {metric_words(comparison.metric)} of the {N_FOLDS} splits of the first repeat"
    if len(comparison.curve_folds) < N_FOLDS:
        over = f"{_capital(metric_words(comparison.metric))} on the first split alone (the table has means of all)"
    return (
        "<section><h2>What more data would "
        f"bring</h2>\n<figure>{_curves_svg(comparison, curves, colored)}"
        f"<ul class=legend>{legend}</ul>"
        f"<figcaption>{escape(over)} by the number of training "
        f"items{rest}.</figcaption></figure></section>"
    )


def _look(rank: int, width: float) -> str:
    """How the curve of a learner among the best is drawn."""
    dash = f' stroke-dasharray="{_DASHES[rank]}"' if _DASHES[rank] else ""
    return f'stroke="var(--c{rank})" stroke-width="{width}"{dash}'


def _curves_svg(
    comparison: "Comparison", curves: dict[str, list[tuple[int, float]]], colored: list[str]
) -> str:
    sizes = sorted({size for points in curves.values() for size, _ in points})
    shown = [score for name in colored for _, score in curves[name]]
    low = min(shown)
    high = max(shown)
    low, high = low - 0.06 * (high - low) - 1e-9, high + 0.06 * (high - low) + 1e-9
    # room for large labels on narrow screens
    width = 720
    height = 300
    left = 86
    base = 268

    def place(size: float, score: float) -> str:
        x = left + (width - left - 14) * np.log(size / sizes[0]) / np.log(sizes[-1] / sizes[0])
        return f"{x:.1f} {base - (base - 10) * (score - low) / (high - low):.1f}"

    lines = []
    for name in reversed(list(curves)):
        look = 'stroke="var(--line)" stroke-width="1.5"'
        if name in colored:
            look = _look(colored.index(name), 2 + (name == colored[0]))
        lines.append(
            f'<path d="M{"L".join(place(*point) for point in curves[name])}" fill="none" {look}/>'
        )
    step = _round_step(low, high)
    rules = ""
    for score in step * np.arange(np.ceil(low / step), np.floor(high / step) + 1):
        y = place(sizes[0], score).split()[1]
        rules += f'<path d="M{left} {y}H{width - 14}" stroke="var(--line)" stroke-width=".6"/>'
        rules += f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{_score(comparison, score)}</text>'
    labels = "".join(
        f'<text x="{place(size, low).split()[0]}" y="{base + 17}" text-anchor="middle">{size}</text>'
        for size in sizes
    )
    return (
        f'<svg class=curves viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Learning curves of {len(curves)} learners">'
        f'<clipPath id="inside"><rect x="{left}" y="0" width="{width}" height="{base}"/></clipPath>{rules}'
        f'<g clip-path="url(#inside)">{"".join(lines)}</g>{labels}</svg>'
    )
