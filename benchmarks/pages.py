"""Numbers in pages come from rows: what stands between markers is declared in tables.toml and figures.toml.

<!-- table: krein_table1 -->  ...  <!-- end -->       on lines of their own, with empty lines around the table
gains <!-- figure: lab_rank -->1.25<!-- end --> ...   within a sentence, never at the beginning of a line
"""

import re
from pathlib import Path

from benchmarks.tables import FIGURES, TABLES

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


def filled(text, figures=FIGURES, tables=TABLES):
    """The page with what its markers ask for."""
    if any(BEGINNING.search(content) for _, _, content in MARK.findall(text)) or len(
        BEGINNING.findall(text)
    ) != len(MARK.findall(text)):
        raise ValueError("a marker has no <!-- end -->")
    if at_start := re.search(r"^<!-- figure: (\w+)", text, re.MULTILINE):
        raise ValueError(
            f"figure {at_start[1]} begins a line, where Markdown takes all of it for HTML: move a word before it"
        )

    def fill(match):
        kind, name, _ = match.groups()
        declared = tables if kind == "table" else figures
        if name not in declared:
            raise ValueError(f"no {kind} is called {name}; benchmarks/{kind}s.toml declares them")
        content = declared[name].render()
        if kind == "table":
            content = f"\n\n{content}\n\n"
        return f"<!-- {kind}: {name} -->{content}<!-- end -->"

    return MARK.sub(fill, text)


def rewrite(check=False):
    """Fill all pages, or with `check` only list those that would change; returns their names."""
    stale = []
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        try:
            new = filled(text)
        except (ValueError, LookupError, FileNotFoundError) as error:
            raise type(error)(f"{name}: {error}") from error
        if new != text:
            stale.append(name)
            if not check:
                path.write_text(new, encoding="utf-8")
    return stale
