"""The page: complete, well formed, small, without anything from the network, and its code runs."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

from mercerless import compare
from mercerless.comparison.page import render
from mercerless.comparison.page.charts import ticks

RNG = np.random.default_rng(7)
N = 300
X = RNG.normal(size=(N, 5))
FRAME = pd.DataFrame(X, columns=["age", "<b>bold</b>", "c", "d", "e"])
FRAME["city"] = RNG.choice(["Ulm & Köln", "Bonn"], N)
FRAME.loc[::7, "c"] = np.nan
TWO = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0, "yes", "no")
DATA = {
    "two classes": (FRAME, TWO, ["table", "linear", "neighbors"]),
    "three classes": (FRAME, RNG.choice(["a", "b", "c"], N), ["linear", "neighbors"]),
    "numbers": (FRAME, X[:, 0] + 0.1 * RNG.normal(size=N), ["linear", "neighbors"]),
    "a matrix": (np.abs(X[:, :1] - X[:, :1].T), TWO, ["similarity", "neighbors"]),
}
ALWAYS = {"learners", "curve", "code", "card"}
TABLE = ALWAYS | {"importance", "columns"}
SECTIONS = {
    "two classes": TABLE | {"classes", "threshold"},
    "three classes": TABLE | {"classes"},
    "numbers": TABLE | {"numbers"},
    "a matrix": ALWAYS | {"classes", "threshold", "map"},
}
VOID = {"meta", "br", "img", "link"}


class Checker(HTMLParser):
    """Collects the ids, the links, and tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.wrong = [], set(), [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values["id"]} if "id" in values else set()
        self.links += [values[key] for key in ("href", "src") if key in values]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("cache")))
    yield {
        name: compare(data, y, learners=learners, searches=False, repeats=1)
        for name, (data, y, learners) in DATA.items()
    }
    patch.undo()


@pytest.mark.parametrize("name", DATA)
def test_the_page_is_whole(results, name):
    page = render(results[name])
    checker = Checker()
    checker.feed(page)
    assert not checker.wrong and not checker.open
    assert SECTIONS[name] <= checker.ids
    assert {
        link.removeprefix("#") for link in checker.links
    } <= checker.ids  # nothing from elsewhere
    assert len(page) < 300_000
    for svg in re.findall(r"<svg.*?</svg>", page, re.S):
        for element in ElementTree.fromstring(svg).iter():
            for value in element.attrib.values():
                assert "nan" not in value.lower().split() and "inf" not in value.lower().split()
    body = page.partition("<main>")[2]
    assert "<b>bold</b>" not in body
    assert all(sentence.split()[0] in body for sentence in results[name].verdict.sentences)
    assert not any("  " in sentence for sentence in results[name].verdict.sentences)
    assert not re.search(
        r"\bnan\b|\bNone\b|\binf\b", re.sub(r"<pre>.*?</pre>", "", body, flags=re.S)
    )


def test_a_page_without_rows_shows_no_item(results):
    page = render(results["two classes"], rows=False)
    assert "Map of the items" not in page
    assert "Bonn (" not in page


def test_the_importance_of_columns_is_found(results):
    for name in ("two classes", "numbers"):
        importance = results[name].race.importance
        assert importance.columns[importance.mean.argmax()] == "age"
        assert importance.mean.max() > 5 * np.abs(np.delete(importance.mean, 0)).max() / 2


def test_the_learning_curve_ends_at_all_training_items(results):
    race = results["two classes"].race
    assert {task.share for task in race.results} >= {0.5, 1.0}


def test_a_page_is_written_even_if_nothing_finished(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))

    class Failing(LogisticRegression):
        def fit(self, X, y):
            raise RuntimeError("it fails")

    result = compare(X, TWO, learners=[("bad", Failing())], repeats=1)
    assert result.recommended is None
    assert "failed" in result.report(tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_the_code_on_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    FRAME.assign(target=TWO).to_csv("t.csv", index=False)
    from mercerless.comparison import read_problem
    from mercerless.comparison.options import Options
    from mercerless.comparison.result import compare_problem

    problem = read_problem("t.csv", labels="target")
    result = compare_problem(
        problem, Options(learners=["table", "linear"], repeats=1, searches=False, curves=False)
    )
    for name in ("table", "linear"):
        script = result.code(name) + "\nprint(model.score(X, y) > 0.7)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.stdout.split() == ["True"], done.stderr


@pytest.mark.parametrize("low, high", [(0, 1), (-3.2, 1e5), (1e-9, 2e-9), (5, 5.0001)])
def test_ticks_are_round_and_inside(low, high):
    values = ticks(low, high)
    assert 2 <= len(values) <= 11
    assert values.min() >= low - 1e-12 and values.max() <= high * (1 + 1e-12)
