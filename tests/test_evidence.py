"""Every number on a page comes from a row, and every claim has a command."""

import re

import pytest

pytest.importorskip("pandas")

from benchmarks import pages, tables


def test_pages_show_what_the_rows_give():
    stale = pages.rewrite(check=True)
    assert not stale, f"{', '.join(stale)}: numbers differ from benchmarks/**/results; run python -m benchmarks pages"


def test_every_table_is_shown():
    shown = {name for path in pages.pages() for name in pages.names(path.read_text(encoding="utf-8"))}
    assert not set(tables.tables()) - shown


def test_evidence_has_no_typed_tables_of_numbers():
    for path in pages.pages():
        if path.parent.name == "evidence":
            text = pages.MARK.sub("", path.read_text(encoding="utf-8"))
            typed = [line for line in text.splitlines() if re.match(r"\|.*\d\.\d", line)]
            assert not typed, f"{path.name}: {typed[0]}"


def test_a_number_that_its_row_no_longer_gives_is_found(tmp_path, monkeypatch):
    """The check must be able to fail: change a row and a page."""
    assert pages.filled("a <!-- figure: x -->1<!-- end --> b", {"x": "2"}, {}) == "a <!-- figure: x -->2<!-- end --> b"
    text = "<!-- table: t -->\nold\n<!-- end -->\n"
    assert pages.filled(text, {}, {"t": lambda: "| a |"}) == "<!-- table: t -->\n\n| a |\n\n<!-- end -->\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("about <!-- figure: cells -->49<!-- end --> cells\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "figures", lambda: {"cells": "48"})
    assert pages.rewrite(check=True) == ["README.md"] and "49" in (tmp_path / "README.md").read_text()
    assert pages.rewrite() == ["README.md"] and "49" not in (tmp_path / "README.md").read_text()
    assert pages.rewrite() == []


@pytest.mark.parametrize(
    "text, message",
    [
        ("a <!-- figure: nothing -->1<!-- end -->", "no figure is called nothing"),
        ("a <!-- figure: x -->1", "has no <!-- end -->"),
        ("a <!-- figure: x -->1 <!-- figure: x -->2<!-- end -->", "has no <!-- end -->"),
        ("<!-- figure: x -->1<!-- end --> begins", "begins a line"),
    ],
)
def test_markers_that_would_not_work_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        pages.filled(text, {"x": "1"}, {})


@pytest.mark.parametrize("value, digits, text", [(76.25, 1, "76.3"), (0.9983, 4, "0.9983"), (float("nan"), 1, "")])
def test_rounding_is_that_of_people(value, digits, text):
    assert tables.number(value, digits) == text


def test_a_missing_file_or_row_is_named():
    with pytest.raises(FileNotFoundError, match="benchmarks list"):
        tables.results("papers/nothing")
    with pytest.raises(LookupError, match="0 rows"):
        tables.cell(tables.results("papers/krein_table1"), "rmse", method="nothing")
