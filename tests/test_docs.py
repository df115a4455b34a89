"""The pages: sessions give what they show, code can be imported, links lead somewhere, public names have a page."""

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import mercerless

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROOT = DOCS.parent
MADE = ("gallery", "generated", "_build", "_extra")  # `make docs` writes them
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("papers/*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"")


def text_of(page):
    return page.read_text(encoding="utf-8")


def named(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in text_of(page)], ids=named)
def test_sessions(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    text = text_of(page).replace("```", "\n")
    session = doctest.DocTestParser().get_doctest(text, {}, page.stem, page.name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(session).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_of_the_pages_can_be_imported(page):
    for block in re.findall(r"```python\n(.*?)```", text_of(page), re.DOTALL):
        imports = [
            node
            for node in ast.walk(ast.parse(block))
            if isinstance(node, ast.ImportFrom) and node.module.startswith("mercerless")
        ]
        exec(compile(ast.Module(imports, []), named(page), "exec"), {})


def test_the_first_example_of_the_readme_runs():
    pytest.importorskip("pandas")
    block = re.search(r"```python\n(.*?)```", text_of(ROOT / "README.md"), re.DOTALL)[1]
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def without_code(page):
    return re.sub(r"```.*?```|`[^`\n]*`", "", text_of(page), flags=re.DOTALL)


def anchors(page):
    """What a link into a page may end in: its headings as GitHub writes them, and labels."""
    headings = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    labels = re.findall(r"^\(([\w-]+)\)=$", text_of(page), re.MULTILINE)
    return {re.sub(r"\s", "-", heading) for heading in plain} | set(labels)


def leads_somewhere(page, link):
    parts = urlsplit(link)
    if parts.scheme or {*MADE, "sample-report.html"} & set(Path(parts.path).parts):
        return parts.scheme in ("https", "mailto", "")
    target = page.parent / parts.path if parts.path else page
    return target.exists() and (not parts.fragment or parts.fragment in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    labels = set().union(*map(anchors, PAGES))
    links = [one or other for one, other in LINK.findall(without_code(page))]
    assert [link for link in links if not leads_somewhere(page, link) and link not in labels] == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A heading\n", encoding="utf-8")
    links = ["page.md#a-heading", "none.md", "page.md#none", "http://x", "https://x.org"]
    assert [leads_somewhere(page, link) for link in links] == [True, False, False, False, True]


def test_every_public_name_is_on_the_page_of_the_api():
    listed = set(text_of(DOCS / "api.md").split())
    assert set(mercerless.__all__) - listed == set()
