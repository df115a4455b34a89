"""The page's templates: HTML files of named pieces with placeholders; whatever is not HTML yet is escaped."""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any


class Html(str):
    """Text that is HTML already; every other text is escaped on its way into a template."""


@cache
def _read(name: str) -> str:
    return files("mercerless.comparison").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _pieces(name: str) -> dict[str, Template]:
    """The pieces of a template file; each begins with a comment line that names it."""
    _, *parts = re.split(r"^<!-- ([\w-]+) -->\n", _read(f"{name}.html"), flags=re.MULTILINE)
    return {piece: Template(text.strip("\n")) for piece, text in zip(parts[::2], parts[1::2])}


def fill(name: str, /, **values: Any) -> Html:
    """Fill the piece ``"file.piece"`` with values; all but `Html` are escaped."""
    file, _, piece = name.partition(".")
    safe = {
        key: value if isinstance(value, Html) else escape(str(value))
        for key, value in values.items()
    }
    return Html(_pieces(file)[piece].substitute(safe))


def fill_each(name: str, rows: Iterable[Mapping[str, Any]]) -> Html:
    """Fill a piece once per row."""
    return join(fill(name, **row) for row in rows)


def join(parts: Iterable[Html], between: str = "") -> Html:
    """Put pieces one after the other."""
    return Html(between.join(parts))


def paragraphs(sentences: Iterable[str]) -> Html:
    """A paragraph per sentence."""
    return fill_each("words.paragraph", ({"text": sentence} for sentence in sentences))


def facts(pairs: Iterable[tuple[str, Any]]) -> Html:
    """A list of names and descriptions."""
    return fill(
        "words.facts",
        entries=fill_each("words.fact", ({"what": what, "value": value} for what, value in pairs)),
    )


def whole_page(
    title: str, sections: Iterable[Html], version: str, finished: str, has_script: bool = False
) -> Html:
    """The page with its style inside; by a digest, a browser runs only its own script.

    The script sorts and filters tables, and marks those that are wider than the screen.
    """
    script = Html()
    allowed = Html()
    if has_script:
        text = _read("sort.js") + _read("filter.js") + _read("wide.js")
        digest = b64encode(sha256(text.encode()).digest()).decode()
        script = fill("page.script", text=Html(text))
        allowed = fill("page.allowed", digest=digest)
    return fill(
        "page.whole",
        title=title,
        style=Html(_read("report.css")),
        script=script,
        allowed=allowed,
        sections=join(filter(None, sections), "\n"),
        version=version,
        finished=finished,
    )
