"""The Python sessions in the pages on the foundation give what they say, and so does the command's report."""

import doctest
from pathlib import Path

import pytest

from mercerless.cli import main

DOCS = Path(__file__).resolve().parents[1] / "docs"


QUICK = ("one-idea", "kernels", "spectra", "datasets", "saving", "tools")
PAGES = sorted(path.stem for path in DOCS.glob("*.md") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in QUICK else [pytest.mark.slow]) for page in PAGES]
)
def test_sessions_in_the_documentation(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8").replace("```", "\n")
    session = doctest.DocTestParser().get_doctest(text, {}, page, f"{page}.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(session).failed == 0


def test_the_report_of_inspect_is_the_one_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["inspect"])
    assert capsys.readouterr().out in (DOCS / "spectra.md").read_text(encoding="utf-8")
