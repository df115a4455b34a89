"""The report: complete in one file, escaped, readable without sight or color, and shown to a real browser."""

import json
import re
import shutil
import struct
import subprocess
import zlib
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from mercerless.comparison import portrait, scoring
from mercerless.comparison.drawing import encode_png, spectrum_svg
from mercerless.comparison.learners import LEARNERS
from mercerless.comparison.page import whole_page
from mercerless.comparison.problem import make_problem
from mercerless.comparison.report import _axis, _score, _table, family_words, render
from mercerless.comparison.result import compare
from mercerless.comparison.words import format_score
from mercerless.datasets import load_digit_shapes

HOSTILE = "<script>alert(1)</script>\"'&"
BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report on a matrix and one on a table, with hostile names in them."""
    rng = np.random.default_rng(0)
    shapes = load_digit_shapes(100)
    labels = np.array([HOSTILE, "plain"])[shapes.target % 2]
    X = rng.normal(size=(60, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(scoring, "SIZES", replace(scoring.SIZES, parts=(0.5,), smallest=20))
        matrix = compare(
            shapes.D, labels, learners=["dummy", "neighbors", "stack"], repeats=1, name=HOSTILE
        )
        table = compare(
            X,
            X[:, 0],
            X_test=X[:20] + 0.5,
            y_test=X[:20, 0],
            learners=["dummy", "neighbors", "linear"],
            repeats=1,
            name="table",
        )
    matrix.reasons["features"] = HOSTILE
    matrix.learners.append(next(own for own in LEARNERS if own.name == "features"))
    return {"matrix": matrix, "table": table}


def test_splits_that_were_not_finished_are_said(reports):
    whole = reports["matrix"]
    part = replace(whole, records=[record for record in whole.records if record.task.fold != 4])
    assert "on the same 5 splits (1 &times; 5-fold)" in render(whole)
    assert "on the same 4 splits (of 1 &times; 5-fold)" in render(part)


class Page(HTMLParser):
    """Counts tags, collects attributes, and checks that everything opened is closed."""

    EMPTY = frozenset({"meta", "link", "br", "path", "rect", "image"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("which", ["matrix", "table"])
def test_well_formed_and_self_contained(reports, which):
    text = render(reports[which])
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "iframe" not in page.tags and "object" not in page.tags
    assert "http://" not in text and "https://" not in text and "@import" not in text
    for _, attributes in page.attributes:
        for name in ("src", "href"):
            assert attributes.get(name, "data:").startswith(("data:", "#"))
        assert not any(name.startswith("on") for name in attributes)
    assert "default-src 'none'" in text
    script = re.search("<script>(.*?)</script>", text, re.S)[1]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text  # of all scripts a browser runs this one only
    assert len(text) < 2_000_000


def test_names_from_outside_are_escaped(reports):
    text = render(reports["matrix"], command=f"mercerless compare {HOSTILE}")
    assert HOSTILE not in text and text.count("<script") == 1
    # title, heading, class, reason, command
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def test_accessible(reports):
    page = Page(render(reports["matrix"]))
    assert ("html", {"lang": "en"}) in page.attributes
    pictures = [attributes for tag, attributes in page.attributes if tag == "svg"]
    assert len(pictures) >= 3
    assert all(picture.get("aria-label") or picture.get("aria-hidden") for picture in pictures)
    headers = [attributes for tag, attributes in page.attributes if tag == "th"]
    assert headers and all(header.get("scope") in ("col", "row") for header in headers)
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and max(np.diff(levels)) <= 1


def luminance(color):
    values = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(values <= 0.03928, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_contrast_of_text_in_both_modes(reports):
    style = re.search("<style>(.*?)</style>", render(reports["table"]), re.S)[1]
    blocks = re.findall(r":root \{.*?\}", style, re.S)[:2]
    modes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in blocks]
    assert len(modes) == 2 and modes[0]["ground"] != modes[1]["ground"]
    for colors in modes:
        for ink in ("ink", "soft", "accent", "good"):
            for ground in ("ground", "panel"):
                low, high = sorted((luminance(colors[ink]), luminance(colors[ground])))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, ground)


def test_every_number_of_the_table_is_there(reports):
    comparison = reports["matrix"]
    text = render(comparison)
    for row in comparison.table:
        assert format_score(comparison.metric, row["score"]) in text and row["title"] in text
    assert all(version in text for version in comparison.versions.values())
    assert comparison.python_command[:40] in text.replace("&#x27;", "'").replace("&quot;", '"')
    assert "negative part of the spectrum" in text


@pytest.mark.parametrize("which", ["matrix", "table"])
def test_every_column_of_the_table_has_its_own_numbers(reports, which):
    comparison = reports[which]
    text = _table(comparison)
    has_test = which == "table"
    assert ("given test set" in text) == has_test
    lines = re.findall(r"<tr[^>]*>(?:(?!<tr).)*?</tr>", text, re.DOTALL)
    for row in comparison.table:
        (line,) = [line for line in lines if f"<code>{row['learner']}</code>" in line]
        cells = re.findall(r'data-value="([^"]*)">(.*?)</td>', line, re.DOTALL)
        is_first = row["verdict"] == "recommended"
        expected = [row["score"], 0.0 if is_first else row["difference"]]
        if has_test:
            expected.append(row["test_score"])
            assert cells[2][1] == _score(comparison, row["test_score"])
        expected += [row["fit_time"], 1000 * row["predict_time"], row["size"]]
        assert [float(value) for value, _ in cells[:-1]] == pytest.approx(expected)
        assert cells[0][1].startswith(_score(comparison, row["score"]))


def test_learners_far_behind_do_not_squeeze_the_axis():
    low, high, step = _axis([(-0.03, 0.01), (-0.05, -0.01), (-0.9, -0.8)])
    assert -0.1 < low < -0.05 and high > 0.01 and 0 < step < 0.1


def test_png_decodes_to_the_same_pixels():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    data = encode_png(pixels)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (4, 3)
    start = data.index(b"IDAT")
    length = struct.unpack(">I", data[start - 4 : start])[0]
    raw = zlib.decompress(data[start + 4 : start + 4 + length])
    np.testing.assert_array_equal(np.frombuffer(raw, np.uint8).reshape(3, 5)[:, 1:], pixels)
    image = pytest.importorskip("matplotlib.image")
    import io

    shown = image.imread(io.BytesIO(data), format="png")
    assert shown.shape[:2] == (3, 4) and shown[0, 0, :3].sum() < shown[-1, -1, :3].sum()


# ----------------------------------------------------------------------------------------------------- real browser


def browse(url, tmp_path, *options):
    """Load a page in a headless browser; return its document, its console lines and the addresses it asked for."""
    log = tmp_path / "net.json"
    command = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-default-apps",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--log-net-log={log}",
        "--enable-logging=stderr",
        "--v=0",
        "--virtual-time-budget=2000",
        *options,
        "--dump-dom",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    asked = re.findall(r'"url":\s*"([^"]+)"', log.read_text())
    return (
        done.stdout,
        console,
        [address for address in asked if address.startswith(("http", "ws", "ftp"))],
    )


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome on the path")
@pytest.mark.parametrize("which", ["matrix", "table"])
def test_a_browser_renders_it_without_errors_or_requests(reports, which, tmp_path):
    page = tmp_path / "report.html"
    reports[which].report(page)
    document, console, asked = browse(page.as_uri(), tmp_path)
    assert console == []
    # the browser's own calls
    own = [address for address in asked if not re.search(r"google|gstatic|chrome", address)]
    assert own == []
    assert reports[which].table[0]["title"] in document and "</footer>" in document
    shot = tmp_path / "shot.png"
    browse(
        page.as_uri(),
        tmp_path,
        f"--screenshot={shot}",
        "--window-size=400,1200",
        "--hide-scrollbars",
    )
    image = pytest.importorskip("matplotlib.image").imread(shot)
    assert image[..., :3].std() > 0.05  # something was painted


@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome on the path")
def test_the_browser_test_can_fail(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        "<body><script>console.error('broken')</script><img src='http://127.0.0.1:9/x.png'></body>"
    )
    _, console, asked = browse(page.as_uri(), tmp_path)
    assert any("broken" in line for line in console) and any(
        "127.0.0.1" in address for address in asked
    )


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome on the path")
def test_nothing_is_wider_than_a_phone(reports, tmp_path):
    """The page is measured by a script that only this test adds."""
    text = re.sub("'sha256-[^']+'", "'unsafe-inline'", render(reports["matrix"]))
    script = (
        "<script>addEventListener('load', () => { document.body.dataset.sizes = JSON.stringify("
        "[document.documentElement.scrollWidth, innerWidth]); })</script>"
    )
    page = tmp_path / "measured.html"
    page.write_text(text.replace("</body>", script + "</body>"))
    document, _, _ = browse(page.as_uri(), tmp_path, "--window-size=500,900")
    content, window = json.loads(re.search(r'data-sizes="([^"]+)"', document)[1])
    assert content <= window


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome on the path")
def test_only_tables_wider_than_the_screen_are_marked(tmp_path):
    rng = np.random.default_rng(0)
    wide = portrait._first_rows(make_problem(rng.normal(size=(60, 40)), np.arange(60) % 2))
    narrow = portrait._first_rows(make_problem(rng.normal(size=(60, 2)), np.arange(60) % 2))
    page = tmp_path / "wide.html"
    page.write_text(whole_page("rows", [wide, narrow], "0", "today", has_script=True))
    document, console, _ = browse(page.as_uri(), tmp_path, "--window-size=500,900")
    assert console == []
    assert re.findall('<div class="(scroll[^"]*)"', document) == ["scroll wide", "scroll"]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome on the path")
def test_a_click_sorts_the_table(reports, tmp_path):
    """The page's own script runs under its policy; the click comes from a script that only this test adds."""
    text = re.sub("('sha256-[^']+')", "'unsafe-inline'", render(reports["table"]))
    click = (
        "<script>for (let i = 0; i < 2; i++)"
        " [...document.querySelectorAll('table.sortable')].find(t => t.tHead.textContent.includes('1000'))"
        ".querySelectorAll('th button')[1].click()</script>"
    )
    page = tmp_path / "sorted.html"
    page.write_text(text.replace("</body>", click + "</body>"))
    document, console, _ = browse(page.as_uri(), tmp_path)
    assert console == []
    shown = document.split("<h2>All numbers")[1].split("</section>")[0]
    names = re.findall("<small><code>([a-z]+)</code>", shown)
    expected = [row["learner"] for row in sorted(reports["table"].table, key=lambda r: r["score"])]
    assert names == expected and 'aria-sort="ascending"' in shown


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome on the path")
@pytest.mark.parametrize("text, shown", [("MN 12", 1), ("number", 12), ("(", 0), ("", 13)])
def test_typing_filters_the_columns(tmp_path, text, shown):
    """The page's own script runs; the typing comes from a script that only this test adds."""
    rng = np.random.default_rng(0)
    problem = make_problem(rng.normal(size=(60, 12)), np.arange(60) % 2)
    section = portrait._columns(problem)
    assert "<input" not in section  # without scripts there is no box that does nothing
    page = tmp_path / "filtered.html"
    whole = whole_page("columns", [section], "0", "today", has_script=True)
    typed = (
        f"<script>{{ const box = document.querySelector('input[type=search]'); box.value = '{text}';"
        " box.dispatchEvent(new Event('input')); }</script>"
    )
    whole = re.sub("('sha256-[^']+')", "'unsafe-inline'", whole)
    page.write_text(whole.replace("</body>", typed + "</body>"))
    document, console, _ = browse(page.as_uri(), tmp_path)
    assert console == []
    rows = re.findall(r"<tr([^>]*)><th scope=\"row\">", document)
    assert len(rows) == 13
    assert sum("hidden" not in row for row in rows) == shown
    assert ("<details open" in document) == (text in ("MN 12", "number"))


def test_in_a_notebook(reports):
    text = reports["matrix"]._repr_html_()
    page = Page(text)
    assert (
        page.tags.count("tr") == 4
        and "script" not in page.tags
        and reports["matrix"].verdict[0] in text
    )
    line = repr(reports["matrix"])
    assert len(line) < 200 and "recommended 'stack'" in line  # 98 % where neighbors have 94 %


def test_print_is_light_and_wide():
    style = files("mercerless.comparison").joinpath("templates", "report.css").read_text()
    assert re.findall(r"@media ([^{]*?) *\{", style) == [
        "screen and (prefers-color-scheme: dark)",
        "screen and (max-width: 44rem)",
        "print",
    ]


def test_labels_of_the_spectrum_have_room():
    shown = {1130.0: "1130", 1.13e-05: "1.13e\N{MINUS SIGN}05", 3.0: "3", 48_210.0: "48,200"}
    for largest, label in shown.items():
        page = spectrum_svg(np.array([largest, 0.5 * largest, -0.3 * largest]))
        text = re.search(r'<text x="([0-9.]+)"[^>]*>([^<]*)</text>', page)
        # 11 px: some 6 for a digit
        assert text[2] == label and float(text[1]) >= 6.2 * len(text[2])


def test_a_raw_matrix_is_not_called_repaired(reports):
    raw = next(learner for learner in LEARNERS if learner.name == "svm-raw")
    assert family_words(raw.family) == "matrix as it is"
