"""The data before any learning: types, gaps, distributions, copies, near-repeats, and pictures of a matrix."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from mercerless.comparison.drawing import (
    histogram_svg,
    plain_number,
    shades_svg,
    shares_svg,
    spectrum_svg,
)
from mercerless.comparison.items import distances_of
from mercerless.comparison.learners import MatrixSpectrum
from mercerless.comparison.negative import negative_sentences
from mercerless.comparison.page import Html, facts, fill, fill_each, join, paragraphs
from mercerless.comparison.problem import Problem, listed, take
from mercerless.comparison.words import metric_words
from mercerless.core.folds import find_copies
from mercerless.inspection.maps import likeness_order
from mercerless.spectra import as_similarities, symmetrize

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison


@dataclass(frozen=True)
class DataLimits:
    """How much of the data the portrait shows, and the thresholds of its findings."""

    columns: int = 10  # of a table; the next are folded
    most_columns: int = 200
    bins: int = 16  # of a histogram
    levels: int = 5  # of a column of words that are named
    drawn: int = 320  # items of the ordered matrix
    edges: int = 30  # lines between classes in it
    repeats: int = 2000  # items that are searched for near-repeats
    beside: int = 2  # items at most so far apart in the file are beside each other
    apart: int = 10  # items farther apart than this are not
    nearer: float = 0.8  # of the distance to the nearest item apart: an item beside that repeats
    twin: float = 0.05  # of the distance to the third nearest: an item that is almost a copy
    share: float = 0.3  # of items with such a neighbor, for a warning
    shuffles: int = 3  # of the file, to estimate the share by chance
    fewest: int = 50  # items, below which nothing is reported
    fewest_columns: int = 3  # of a table: along one or two, sorted rows are near each other
    alike: float = 0.95  # of Cramér's V: columns that nearly follow from each other
    alike_columns: int = 60  # that are compared for it
    alike_levels: int = 12  # of a column for it; more numbers are cut into as many parts
    fewest_values: int = 20  # of some column: in tables of a few levels many rows are alike
    together: float = 0.3  # of Cramér's V: pairs of columns that are listed
    most_pairs: int = 8  # of them
    by_chance: float = (
        0.05  # of tables without associations that list one, or mark one with the target
    )
    first_rows: int = 5
    first_columns: int = 60  # of the first rows
    cell: int = 24  # characters of a cell that are shown
    whole_cell: int = 2000  # that a pointer on it shows


LIMITS = DataLimits()


def data_section(comparison: "Comparison", rows: bool = True) -> Html:
    """The section on the data; without `rows`, none of a table is shown."""
    problem = comparison.problem
    matrix = Html()
    columns = Html()
    first_rows = Html()
    if comparison.terms.spectrum is not None:
        matrix = _matrix(comparison, comparison.terms.spectrum)
    if not problem.is_matrix:
        if rows:
            first_rows = _first_rows(problem)
        columns = _columns(problem)
    described = list(_facts(problem))
    if not rows:
        described.append(("single items", "not shown on this page, as requested"))
    guesses = Html()
    if problem.guesses and rows:  # reasons may name items
        entries = fill_each("data.guess", (guess._asdict() for guess in problem.guesses))
        guesses = fill("data.guesses", entries=entries)
    return fill(
        "data.section",
        facts=facts(described),
        warnings=fill_each("data.warning", ({"text": text} for text in near_repeats(problem))),
        first_rows=first_rows,
        columns=columns,
        matrix=matrix,
        guesses=guesses,
    )


def _facts(problem: Problem) -> Iterator[tuple[str, Any]]:
    yield "kind", problem.kind
    yield "items", f"{len(problem.y):,}"
    yield "task", problem.task
    is_named = problem.target != "target"
    if problem.is_classification:
        if is_named:
            yield "target", problem.target
        labels, counts = np.unique(problem.y, return_counts=True)
        named = [f"{label} ({count:,})" for label, count in zip(labels[:12], counts[:12])]
        yield "classes", ", ".join(named) + (" and more" if len(labels) > 12 else "")
    else:
        low, middle, high = np.percentile(problem.y, [0, 50, 100])
        ends = f"from {plain_number(low)} to {plain_number(high)}"
        name = f"{problem.target}, " if is_named else ""
        yield "target", f"{name}{ends}, median {plain_number(middle)}"
    if problem.is_matrix:
        amount = problem.asymmetry
        yield "symmetric", f"no, by up to {amount:.2g} of the largest entry" if amount else "yes"
    yield "copies", _copies(problem)
    alike = [] if problem.is_matrix else alike_columns(problem)
    if alike:
        told = "nearly follow from each other, so that they share their importance"
        yield "alike", "; ".join(f"{listed(names)} {told}" for names in alike)
    if problem.groups is not None:
        named = [
            guess.value.removeprefix("column ").strip("'")
            for guess in problem.guesses
            if guess.what == "groups"
        ]
        count = f"{len(np.unique(problem.groups)):,}"
        yield "groups", ", ".join([*named, count]) + ", never split between training and test"
    for guess in problem.guesses:
        if guess.what == "left out":
            yield "left out", f"{guess.value}: {guess.why}"
    if problem.y_test is not None:
        count = f"{len(problem.y_test):,} items"
        yield "given test set", f"{count}, scored once, no part in the recommendation"


def _copies(problem: Problem) -> str:
    """How many items are equal to an earlier one."""
    items = problem.X if problem.is_matrix else problem.numbered
    numbers = find_copies(items, precomputed=problem.is_matrix)
    repeated = len(numbers) - len(np.unique(numbers))
    if not repeated:
        return "none: all items differ"
    equal = "item is equal to another" if repeated == 1 else "items are equal to an earlier one"
    return f"{repeated:,} {equal}; copies are kept together in the splits"


# ------------------------------------------------------------------------------------------------ associations


class Association(NamedTuple):
    """Two columns, their Cramér's V, and the probability that chance gives as much."""

    one: str
    other: str
    value: float
    by_chance: float


def strongest_pairs(problem: Problem) -> list[Association]:
    """The pairs of columns with the strongest associations beyond chance."""
    pairs = list(combinations(_column_codes(problem).items(), 2))
    found = []
    for (one, a), (other, b) in pairs:
        value = cramers_v(a, b)
        if value > LIMITS.together:
            found.append(Association(one, other, value, _chance(a, b)))
    beyond_chance = [pair for pair in found if pair.by_chance * len(pairs) < LIMITS.by_chance]
    beyond_chance.sort(key=lambda pair: -pair.value)
    return beyond_chance[: LIMITS.most_pairs]


def target_associations(problem: Problem) -> dict[str, Association]:
    """The association of every column that can be compared with the target."""
    role = "category" if problem.is_classification else "number"
    target = _codes(problem.y[_compared_rows(problem)], role)
    if target is None:
        return {}
    return {
        name: Association(name, problem.target, cramers_v(code, target), _chance(code, target))
        for name, code in _column_codes(problem).items()
    }


def alike_columns(problem: Problem) -> list[list[str]]:
    """Groups of columns that nearly follow from each other, by Cramér's V of their parts or levels."""
    codes = _column_codes(problem)
    groups: list[list[str]] = []
    for name, code in codes.items():
        is_like = [
            any(cramers_v(code, codes[other]) >= LIMITS.alike for other in group)
            for group in groups
        ]
        joined = [group for group, like in zip(groups, is_like) if like]
        groups = [group for group, like in zip(groups, is_like) if not like]
        groups.append([*(other for group in joined for other in group), name])
    return [group for group in groups if len(group) > 1]


def _compared_rows(problem: Problem) -> NDArray:
    """Rows from the whole file, since a sorted one begins with a single class."""
    n_rows = len(problem.y)
    return np.linspace(0, n_rows - 1, min(n_rows, LIMITS.repeats)).round().astype(int)


def _column_codes(problem: Problem) -> dict[str, NDArray]:
    """The columns that can be compared, as numbers of their parts or levels."""
    rows = take(problem.X, _compared_rows(problem))
    codes: dict[str, NDArray] = {}
    for place, name in enumerate(column_names(problem)[: LIMITS.alike_columns]):
        values = rows[name] if hasattr(rows, "iloc") else rows[:, place]
        code = _codes(values, _role_of(problem, name))
        if code is not None:
            codes[name] = code
    return codes


def _role_of(problem: Problem, name: str) -> str:
    """Whether a column has numbers, dates or categories."""
    return (problem.roles or {}).get(name, "number").split()[0]


def _codes(values: Any, role: str) -> NDArray | None:
    """Numbers of the parts or levels of a column; None for one that is constant or has too many levels."""
    if role == "number":
        numbers = np.asarray(values, dtype=float)
        if np.isnan(numbers).all():
            return None
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, LIMITS.alike_levels + 1)[1:-1]))
        code = np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers, side="left"))
    else:
        code = np.unique(np.asarray(values).astype(str), return_inverse=True)[1]
    n_codes = len(np.unique(code))
    n_levels = len(np.unique(code[code >= 0]))  # gaps are a code, but no part
    is_fine = n_codes > 1 and n_levels <= max(LIMITS.alike_levels, len(code) // 20)
    return code if is_fine else None


def cramers_v(a: NDArray, b: NDArray) -> float:
    """Association of two columns of codes, 0 to 1, corrected for chance (Bergsma 2013)."""
    n = len(a)
    counts = _count_table(a, b)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    phi_square = ((counts - expected) ** 2 / expected).sum() / n
    r, k = counts.shape
    corrected = max(0.0, phi_square - (k - 1) * (r - 1) / (n - 1))
    rows = r - (r - 1) ** 2 / (n - 1)
    columns = k - (k - 1) ** 2 / (n - 1)
    return float(np.sqrt(corrected / max(min(rows, columns) - 1.0, 1e-12)))


def _count_table(a: NDArray, b: NDArray) -> NDArray:
    """How often each pair of codes occurs; codes that do not occur have no row or column."""
    a_code = a - a.min()
    b_code = b - b.min()
    shape = (a_code.max() + 1, b_code.max() + 1)
    flat = np.bincount(a_code * shape[1] + b_code, minlength=shape[0] * shape[1])
    counts = flat.reshape(shape).astype(float)
    counts = counts[counts.any(axis=1)]
    return counts[:, counts.any(axis=0)]


def _chance(a: NDArray, b: NDArray) -> float:
    """The probability that two independent columns seem as associated as these (chi-square)."""
    return float(chi2_contingency(_count_table(a, b), correction=False).pvalue)


def _association_table(problem: Problem) -> Html:
    """The table of the strongest associations, and an explanation of the measure."""
    pairs = strongest_pairs(problem)
    rows = [
        {
            "one": pair.one,
            "other": pair.other,
            "value": f"{pair.value:.2f}",
            "exact": f"{pair.value:.6f}",
        }
        for pair in pairs
    ]
    table = Html()
    if rows:
        table = fill("data.associations", rows=fill_each("data.association", rows))
    n_columns = len(column_names(problem))
    compared = ""
    if n_columns > LIMITS.alike_columns:
        compared = f" Of the first {LIMITS.alike_columns} of {n_columns:,} columns."
    how = (
        "Association is Cramér's V corrected for chance, from 0 to 1 (one follows from the other), "
        f"of levels or of numbers cut into {LIMITS.alike_levels} parts; “chance” is no more than "
        f"chance gives. It does not show a cause.{compared}"
    )
    return join([table, fill("words.soft", text=how)])


# ----------------------------------------------------------------------------------------------- the first rows


def _first_rows(problem: Problem) -> Html:
    """The first rows as they were read, the target first."""
    names = column_names(problem)
    shown = names[: LIMITS.first_columns]
    rows = take(problem.X, np.arange(LIMITS.first_rows))
    lines = []
    for place in range(LIMITS.first_rows):
        values = rows.iloc[place] if hasattr(rows, "iloc") else rows[place]
        cells = [_cell(problem.y[place]), *map(_cell, list(values)[: len(shown)])]
        lines.append(fill("data.first-row", cells=join(cells)))
    more = Html()
    if len(shown) < len(names):
        text = f"The target and the first {len(shown)} of {len(names):,} columns."
        more = fill("words.soft", text=text)
    head = fill_each("data.first-head", ({"name": name} for name in [problem.target, *shown]))
    return fill("data.first-rows", head=head, rows=join(lines), more=more)


def _cell(value: Any) -> Html:
    """A cell of the table; a long text is cut, and shown whole under the pointer."""
    text = _cell_text(value)
    if len(text) <= LIMITS.cell:
        return fill("data.cell", text=text)
    beginning = text[: LIMITS.cell - 1] + "…"
    return fill("data.cut-cell", text=beginning, whole=text[: LIMITS.whole_cell])


def _cell_text(value: Any) -> str:
    """A number with six digits, and all before the point; a day without its midnight; nothing for a gap."""
    text = str(value)
    is_number = isinstance(value, (float, np.floating))
    is_gap = value is None or text in ("NaT", "<NA>") or (is_number and np.isnan(value))
    if is_gap:
        return ""
    if is_number:
        return f"{value:.15g}" if float(value).is_integer() else f"{value:.6g}"
    if hasattr(value, "isoformat"):  # dates are read as those of UTC
        return text.removesuffix("+00:00").removesuffix(" 00:00:00")
    return text


# ------------------------------------------------------------------------------------------------ near-repeats


def near_repeats(problem: Problem) -> list[str]:
    """Warn if items nearly repeat each other, so that random splits test on what was almost learned.

    Copies do not count, for splits keep them together; nor do pairs of one group.
    """
    n = len(problem.y)
    if n < LIMITS.fewest or not (problem.is_matrix or _has_numbers(problem)):
        return []
    rows = np.arange(min(n, LIMITS.repeats))
    D = distances_of(problem.X, problem.kind, rows, problem.preprocessor)
    D = np.where(D > 1e-9 * D.max(initial=0.0), D, np.inf)
    across = D
    if problem.groups is not None:
        groups = problem.groups[rows]
        across = np.where(groups[:, None] == groups, np.inf, D)
    beside = _share_beside(D, across)
    # by how much chance explains it is only of interest if there is something to explain
    by_chance = 0.0
    if beside >= LIMITS.share:
        by_chance = _share_beside_shuffled(D, across, problem.y[rows], problem.is_classification)
    remedy = "name what they come from with --groups"
    if problem.groups is not None:
        remedy = "choose groups with --groups that hold them together"
    too_good = (
        "Random splits then test on what was almost learned, and the scores may be too good for "
        "items from elsewhere"
    )
    if beside >= LIMITS.share and beside >= 3.0 * by_chance:
        return [
            f"Items beside each other in the file nearly repeat: {100 * beside:.0f} % are nearer "
            f"to one of these than to all others ({100 * by_chance:.0f} % by chance), as windows "
            f"of one series or measurements of one subject are. {too_good}; {remedy}."
        ]
    third = np.partition(D, 2, axis=1)[:, 2]
    twins = float((across.min(axis=1) < LIMITS.twin * third).mean())
    if twins >= LIMITS.share:
        return [
            f"{100 * twins:.0f} % of the items have a twin, another item that is almost equal and "
            f"twenty times as near as the third nearest. {too_good}; {remedy}."
        ]
    return []


def _has_numbers(problem: Problem) -> bool:
    """Whether a table has enough columns, and one of many different values."""
    n_columns = problem.X.shape[1]
    values = problem.numbered[: LIMITS.repeats]
    most = max(len(np.unique(values[:, place])) for place in range(n_columns))
    return n_columns >= LIMITS.fewest_columns and most > LIMITS.fewest_values


def _share_beside(D: NDArray, across: NDArray) -> float:
    """Share of items that are clearly nearer to an item beside them in the file than to all items apart."""
    place = np.arange(len(D))
    away = np.abs(place[:, None] - place)
    beside = np.where((away > 0) & (away <= LIMITS.beside), across, np.inf).min(axis=1)
    apart = np.where(away > LIMITS.apart, D, np.inf).min(axis=1)
    return float((beside < LIMITS.nearer * apart).mean())


def _share_beside_shuffled(D: NDArray, across: NDArray, y: NDArray, classify: bool) -> float:
    """The same after items have changed places with others of their class, or of a similar number."""
    codes = np.unique(y, return_inverse=True)[1]
    if not classify:
        codes = np.argsort(np.argsort(y, kind="stable")) * 10 // len(y)
    rng = np.random.RandomState(0)
    shares = []
    for _ in range(LIMITS.shuffles):
        order = np.arange(len(y))
        for code in np.unique(codes):
            places = np.flatnonzero(codes == code)
            order[places] = rng.permutation(places)
        shuffled = np.ix_(order, order)
        shares.append(_share_beside(D[shuffled], across[shuffled]))
    return float(np.mean(shares))


# ---------------------------------------------------------------------------------------------------- columns


def _columns(problem: Problem) -> Html:
    """A row per column of the table, the target first."""
    names = column_names(problem)
    described = names[: LIMITS.most_columns]
    associations = target_associations(problem)
    rows = [_target_row(problem)]
    for place, name in enumerate(described):
        values = problem.X[name] if hasattr(problem.X, "iloc") else problem.X[:, place]
        row = _column_row(name, _role_of(problem, name), values)
        if name in associations:
            row |= _target_cell(associations[name], len(associations))
        rows.append(row)
    shown = rows[: LIMITS.columns + 1]
    folded = rows[LIMITS.columns + 1 :]
    rest = Html()
    if folded:
        words = f"{len(folded):,} more columns"
        if len(names) > len(described):
            words = f"The next {len(folded):,} of {len(names):,} columns"
        rest = fill("data.more-columns", words=words, columns=_column_table(folded))
    title = fill("data.columns-title")
    return join([title, _column_table(shown), rest, _association_table(problem)], "\n")


def _column_table(rows: list[dict[str, Any]]) -> Html:
    return fill("data.columns", rows=fill_each("data.column", rows))


def column_names(problem: Problem) -> list[str]:
    """Names of the columns, or their positions."""
    if hasattr(problem.X, "columns"):
        return list(problem.X.columns)
    n_columns = problem.X.shape[1]
    names = list(problem.roles or ())
    return names if len(names) == n_columns else [f"column {i + 1}" for i in range(n_columns)]


def _target_row(problem: Problem) -> dict[str, Any]:
    role = "category" if problem.is_classification else "number"
    row = _column_row(problem.target, role, problem.y)
    return {**row, "role": "to predict", "state": Html(" class=best")}


def _target_cell(association: Association, n_columns: int) -> dict[str, str]:
    """A column's association with the target, if it is more than the best of so many gives by chance."""
    if association.by_chance * n_columns >= LIMITS.by_chance:
        return {"with_target": "chance", "with_target_value": "0"}
    return {
        "with_target": f"{association.value:.2f}",
        "with_target_value": f"{association.value:.6f}",
    }


def _column_row(name: str, role: str, values: Any) -> dict[str, Any]:
    """The cells in the row of a column."""
    if hasattr(values, "isna"):
        is_gap = values.isna().to_numpy()
        values = values.to_numpy()
    else:
        is_gap = np.zeros(len(values), dtype=bool)
    present = values[~is_gap]
    if role == "number":
        picture, words, distinct = _of_numbers(name, np.asarray(present, dtype=float))
    elif role == "date":
        picture, words, distinct = _of_dates(name, present)
    else:
        picture, words, distinct = _of_levels(name, np.asarray(present).astype(str))
    share = 100.0 * float(is_gap.mean())
    gaps = "" if share == 0.0 else "<1 %" if share < 1.0 else f"{share:.0f} %"
    return {
        "state": Html(),
        "name": name,
        "role": role,
        "gaps": gaps,
        "gaps_value": f"{share:.4f}",
        "distinct": distinct,
        "with_target": "",
        "with_target_value": "nan",
        "picture": picture,
        "values": words,
    }


def _of_numbers(name: str, numbers: NDArray) -> tuple[Html, str, int]:
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return Html(), "all missing", 0
    low, middle, high = np.percentile(numbers, [0, 50, 100])
    counts = np.histogram(numbers, bins=LIMITS.bins)[0]
    picture = histogram_svg(counts, f"Histogram of {name}; heights are square roots of counts")
    words = f"{plain_number(low)} to {plain_number(high)}, median {plain_number(middle)}"
    if len(numbers) > 1:
        mean = plain_number(float(numbers.mean()))
        words += f", mean {mean} ± {plain_number(float(numbers.std(ddof=1)))}"
    return picture, words, len(np.unique(numbers))


def _of_dates(name: str, dates: NDArray) -> tuple[Html, str, int]:
    if not len(dates):
        return Html(), "all missing", 0
    times = np.array([str(date)[:19] for date in dates], dtype="datetime64[s]")
    seconds = times.astype(np.int64)
    counts = np.histogram(seconds, bins=LIMITS.bins)[0]
    picture = histogram_svg(counts, f"Histogram of {name}; heights are square roots of counts")
    has_hours = bool((seconds % 86_400 != 0).any())
    n_shown = len("2020-12-31 23:59") if has_hours else len("2020-12-31")
    first, last = (str(end).replace("T", " ")[:n_shown] for end in (times.min(), times.max()))
    return picture, f"{first} to {last}", len(np.unique(times))


def _of_levels(name: str, words: NDArray) -> tuple[Html, str, int]:
    if not len(words):
        return Html(), "all missing", 0
    levels, counts = np.unique(words, return_counts=True)
    order = np.argsort(-counts, kind="stable")[: LIMITS.levels]
    shares = counts[order] / len(words)
    named = ", ".join(
        f"{levels[place]} ({100 * share:.0f} %)" for place, share in zip(order, shares)
    )
    more = "" if len(levels) <= len(order) else f" and {len(levels) - len(order):,} more"
    picture = shares_svg(shares, f"Shares of the most frequent values of {name}")
    return picture, named + more, len(levels)


# ------------------------------------------------------------------------------------------------- the matrix


def _matrix(comparison: "Comparison", spectrum: MatrixSpectrum) -> Html:
    measures = spectrum.indefiniteness
    n_items = len(comparison.problem.y)
    words = paragraphs(negative_sentences(measures, comparison.negative))
    if comparison.negative is not None:
        words = join([words, fill("data.ranked", metric=metric_words(comparison.metric))])
    caption = {
        "distance": "Distances become similarities \N{MINUS SIGN}d²/2, centered. ",
        "dissimilarity": "Dissimilarities become similarities \N{MINUS SIGN}d/2, centered. ",
    }.get(comparison.problem.kind, "")
    if spectrum.n_items != n_items:
        caption += f"Of {spectrum.n_items:,} of the {n_items:,} items: "
    caption += (
        f"{measures.n_positive} positive, {measures.n_negative} negative and {measures.n_zero} "
        f"zero eigenvalues; the negative ones hold {100 * measures.negative_mass:.1f} % of the sum "
        "of magnitudes. Heights are square roots of magnitudes."
    )
    picture, ordered = _ordered_matrix(comparison.problem)
    return fill(
        "data.matrix",
        words=words,
        spectrum=spectrum_svg(spectrum.eigenvalues[::-1]),
        caption=caption,
        picture=picture,
        ordered=ordered,
    )


def _ordered_matrix(problem: Problem) -> tuple[Html, str]:
    """The matrix with its items ordered by class and likeness (or by target), thinned if it is large."""
    X = symmetrize(problem.X) if problem.asymmetry else problem.X
    kept = np.linspace(0, len(X) - 1, min(len(X), LIMITS.drawn)).round().astype(int)
    y = problem.y[kept]
    order = np.argsort(y, kind="stable")
    edges = np.zeros(0, dtype=int)
    by = "by target"
    if problem.is_classification:
        order = likeness_order(as_similarities(X[np.ix_(kept, kept)], problem.kind), y)
        ordered = y[order]
        edges = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        by = "by class, and by likeness inside each"
    if len(edges) > LIMITS.edges:
        edges = edges[:0]
    drawn = problem.X[np.ix_(kept[order], kept[order])]
    between = drawn[~np.eye(len(drawn), dtype=bool)]
    low, high = np.percentile(between, [1, 99])
    shades = np.clip((drawn - low) / (high - low if high > low else 1.0), 0, 1)
    if problem.small_is_like:
        shades = 1.0 - shades
    n = len(drawn)
    label = f"The {problem.kind} matrix of {n} items ordered {by}; light is similar"
    sampled = "" if n == len(X) else f"{n} of {len(X):,} items. "
    caption = (
        f"{sampled}Items ordered {by}; light is similar. Nine of ten entries are between "
        f"{np.percentile(between, 5):.3g} and {np.percentile(between, 95):.3g}."
    )
    return shades_svg(shades, edges.tolist(), label), caption
