"""The outcome of a comparison in words: the verdict in sentences, and the short table as text."""

from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING, Any

from mercerless.comparison.negative import negative_sentences
from mercerless.comparison.scoring import N_FOLDS
from mercerless.comparison.vote import VOTE
from mercerless.comparison.words import duration, format_difference, format_score, metric_words

if TYPE_CHECKING:
    from mercerless.comparison.result import Comparison


def verdict_of(comparison: "Comparison") -> list[str]:
    """The outcome in sentences: a winner only if there is one, and a decision only if most learners were scored."""
    if not comparison.is_decided:
        return [*_undecided(comparison), *_missing(comparison)]
    best = next(row for row in comparison.table if row["learner"] != VOTE or comparison.has_winner)
    among = ""
    if comparison.recommended == VOTE and best is not comparison.table[0]:
        among = " of the single learners"
    score = format_score(comparison.metric, best["score"])
    first = f"{best['title']} has the best mean {metric_words(comparison.metric)}{among}, {score}"
    if len(comparison.names) == 1:
        sentences = [f"{first}; there is nothing to compare it with."]
    elif comparison.has_winner:
        n_others = len(set(comparison.names) - {VOTE, best["learner"]})
        rivals = "every other learner compared"
        if comparison.left_out:
            rivals = f"the {n_others} others compared"
        sentences = [f"{first}, and is better than {rivals}, by more than chance."]
    else:
        sentences = _without_winner(comparison, first, best)
    if "dummy" in comparison.ties:
        sentences.append(
            "Even the constant guess is not distinguishable: these data may hold nothing to learn."
        )
    return [*sentences, *_missing(comparison)]


def _undecided(comparison: "Comparison") -> list[str]:
    """Sentences if most learners are missing: the best so far, and how to continue."""
    best = comparison.table[0]
    score = format_score(comparison.metric, best["score"])
    metric = metric_words(comparison.metric)
    time_left = duration(comparison.missing_seconds)
    return [
        "Not decided yet: most learners were not scored on all splits and all items. Best so far "
        f"is {best['title']}, mean {metric} {score}.",
        f"The rest takes about {time_left}; to continue: {comparison.command_to_continue}",
    ]


def _missing(comparison: "Comparison") -> list[str]:
    """Sentences on learners that were not run, failed, were trained on fewer items or not searched."""
    left_out = comparison.left_out
    failed = comparison.failed
    total = len(comparison.learners)
    sentences = []
    if left_out:
        names = _and(_titles(comparison, left_out))
        sentences.append(
            f"{len(left_out)} of {total} learners {_were(left_out)} not run to the end: {names}."
        )
    if failed:
        names = _and(_titles(comparison, failed))
        sentences.append(f"{len(failed)} of {total} learners failed: {names}.")
    rows = [row for row in comparison.table if row["learner"] != VOTE]
    small = [f"{row['title']} ({row['n_train']:,})" for row in rows if row["part"] < 1.0]
    if small:
        full = int(len(comparison.problem.y) * (1 - 1 / N_FOLDS))
        sentences.append(
            f"{len(small)} of {total} learners {_were(small)} trained on less than the {full:,} "
            f"items of a training set: {_and(small)}. With all items {_they(small)} may do better."
        )
    plain = [row["title"] for row in rows if row["form"] == "defaults"]
    if plain:
        sentences.append(
            f"{len(plain)} of {total} learners {_were(plain)} scored with {_their(plain)} default "
            f"settings, without a search: {_and(plain)}. With a search {_they(plain)} may do "
            "better."
        )
    return sentences


def _without_winner(comparison: "Comparison", first: str, best: dict[str, Any]) -> list[str]:
    """Sentences if there is no winner, with the recommendation."""
    names = comparison.names
    table = comparison.table
    position = names.index(best["learner"])
    tied = [
        name
        for i, name in enumerate(names)
        if name not in (VOTE, best["learner"]) and not comparison.differences.better(position, i)
    ]
    listed = f"{len(tied)} other learners are" if len(tied) > 3 else _are(_titles(comparison, tied))
    sentences = [f"{first}, but there is no winner: {listed} not distinguishable from it."]
    if comparison.recommended == VOTE:
        sentences.append(
            "The vote of the three best is recommended, "
            f"{_and(_titles(comparison, comparison.members))}: "
            f"{format_score(comparison.metric, table[0]['score'])}, with members chosen on other "
            "splits than the one that scores them. Which of several such learners comes first is "
            "a matter of chance, and its own score is too optimistic."
        )
    rows = [row for row in table if row["learner"] in {best["learner"], *tied} - {"dummy"}]
    fastest = min(rows, key=lambda row: row["fit_time"], default=best)
    chosen = table[0]
    if fastest is not chosen and fastest["fit_time"] < chosen["fit_time"] / 2:
        ratio = chosen["fit_time"] / fastest["fit_time"]
        sentences.append(f"Among these, {fastest['title']} is {ratio:.0f} times faster to fit.")
    return sentences


def text_of(comparison: "Comparison") -> str:
    """The short table and the verdict as text."""
    metric = comparison.metric
    has_test = comparison.problem.y_test is not None
    rows = [
        [
            "learner",
            metric_words(metric),
            *["given test"] * has_test,
            "difference",
            "interval",
            "fit",
            "",
        ]
    ]
    for row in comparison.table:
        behind = row["verdict"] != "recommended"
        shown = {"worse": "", "recommended": comparison.place_of_first}
        interval = " to ".join(
            format_difference(metric, row[f"difference_{end}"]) for end in ("low", "high")
        )
        test = "" if row["test_score"] is None else format_score(metric, row["test_score"])
        rows.append(
            [
                row["title"],
                format_score(metric, row["score"]),
                *[test] * has_test,
                format_difference(metric, row["difference"]) * behind,
                interval * behind,
                duration(row["fit_time"]),
                shown.get(row["verdict"], row["verdict"]),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    sides = "<" + ">" * (len(widths) - 2) + "<"
    lines = [
        "  ".join(f"{c:{side}{w}}" for c, side, w in zip(row, sides, widths)).rstrip()
        for row in rows
    ]
    for word, reasons in (("left out", comparison.left_out), ("failed", comparison.failed)):
        by_reason: dict[str, list[str]] = {}
        for name, reason in reasons.items():
            by_reason.setdefault(reason, []).append(name)
        lines += [
            f"{word}: {_and(_titles(comparison, names))} ({reason})"
            for reason, names in by_reason.items()
        ]
    matrix = (
        []
        if comparison.spectrum is None
        else negative_sentences(comparison.spectrum, comparison.negative)[:1]
    )
    return "\n".join([*lines, "", *comparison.verdict, *matrix])


def _titles(comparison: "Comparison", names: Iterable[str]) -> list[str]:
    return [comparison.learner(name).title for name in names]


def _and(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _were(names: Sized) -> str:
    return "was" if len(names) == 1 else "were"


def _their(names: Sized) -> str:
    return "its" if len(names) == 1 else "their"


def _they(names: Sized) -> str:
    return "it" if len(names) == 1 else "they"


def _are(names: list[str]) -> str:
    return f"{_and(names)} {'is' if len(names) == 1 else 'are'}"
