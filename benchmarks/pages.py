"""Numbers in pages come from rows: what stands between markers is made by tables.py.

<!-- table: krein_table1 -->  ...  <!-- end -->       on lines of their own, with empty lines around the table
gains <!-- figure: lab_rank -->1.25<!-- end --> ...   within a sentence, never at the beginning of a line
"""

import re
from pathlib import Path

from benchmarks.tables import figures, tables

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"<!-- (table|figure): (\w+) -->(.*?)<!-- end -->", re.DOTALL)
BEGINNING = re.compile(r"<!-- (?:table|figure):")


def pages():
    """README and every page that people write."""
    generated = (ROOT / "docs" / "gallery", ROOT / "docs" / "_build")
    written = (
        p for p in (ROOT / "docs").rglob("*.md") if not any(p.is_relative_to(g) for g in generated)
    )
    return [ROOT / "README.md", *sorted(written)]


UNIT = r"(?:%|(?:per cent|percent|points?|seconds?|s|minutes|hours|GB|MB|times|splits?|draws?)\b)"
NUMBER = re.compile(rf"(?<![\w.^-])(?:\d[\d,]*\.\d+|\.\d+|\d[\d,]*(?= {UNIT}))(?!\w)(?: ?{UNIT})?")
NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|</?[a-z][^>]*>", re.DOTALL
)


def typed(text):
    """Numbers of a page's prose that look measured (a decimal point, a unit, splits) outside of all markers."""
    return [found[0] for found in NUMBER.finditer(NO_PROSE.sub(" ", MARK.sub(" ", text)))]


def names(text):
    """The tables and figures that a page asks for."""
    return [match[2] for match in MARK.finditer(text)]


def filled(text, numbers, makers):
    """The page with what its markers ask for; `numbers` are texts by name, `makers` functions by name."""
    if len(BEGINNING.findall(text)) != len(MARK.findall(text)) or any(
        BEGINNING.search(m[2]) for m in MARK.findall(text)
    ):
        raise ValueError("a marker has no <!-- end -->")
    if found := re.search(r"^<!-- figure: (\w+)", text, re.MULTILINE):
        raise ValueError(
            f"figure {found[1]} begins a line, where Markdown takes all of it for HTML: move a word before it"
        )

    def fill(match):
        kind, name, _ = match.groups()
        known = makers if kind == "table" else numbers
        if name not in known:
            raise ValueError(
                f"no {kind} is called {name}; benchmarks/tables.py has: {', '.join(sorted(known))}"
            )
        made = f"\n\n{makers[name]()}\n\n" if kind == "table" else numbers[name]
        return f"<!-- {kind}: {name} -->{made}<!-- end -->"

    return MARK.sub(fill, text)


def rewrite(check=False):
    """Fill all pages, or with `check` only say which would change; returns these."""
    numbers, makers, stale = figures(), tables(), []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        try:
            new = filled(text, numbers, makers)
        except (ValueError, LookupError, FileNotFoundError) as error:
            raise type(error)(f"{path.relative_to(ROOT)}: {error}") from error
        if new != text:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(new, encoding="utf-8")
    return stale
