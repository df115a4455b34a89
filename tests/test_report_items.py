"""The items in the report: suspects, confusion, map, odd pairs, for labels and for numbers."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from mercerless import compare
from mercerless.comparison import items, predictions
from mercerless.comparison.report import render
from mercerless.datasets import load_digit_shapes


@pytest.fixture(scope="module")
def shapes():
    data = load_digit_shapes(120)
    y = np.array([f"<{label}>" for label in data.target])  # names from outside are escaped
    y[[3, 40]] = [y[0], y[1]] if y[0] != y[3] else [y[1], y[0]]
    learners = ["dummy", "neighbors", "features"]
    return compare(data.D, y, learners=learners, repeats=1, curves=False, name="shapes")


class Checked(HTMLParser):
    """Counts what is opened and closed."""

    def __init__(self):
        super().__init__()
        self.titles, self.depth = 0, 0

    def handle_starttag(self, tag, attrs):
        self.titles += tag == "title"
        self.depth += tag in ("section", "figure", "svg", "g", "table", "div")

    def handle_endtag(self, tag):
        self.depth -= tag in ("section", "figure", "svg", "g", "table", "div")


def test_the_page_begins_with_the_answer_and_ends_with_the_card(shapes, tmp_path):
    shapes.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    order = [
        "Use this",
        "The data",
        "The items",
        "All numbers",
        "Other metrics",
        "Which classes are confused",
        "Worth a look",
        "Model card",
    ]
    places = [page.index(f"<h2>{words}") for words in order]
    assert places == sorted(places) and ": expect an accuracy of" in page[: places[0]]
    assert page.count("<script") == 1 and "<0>" not in page and "&lt;0&gt;" in page


def test_sections_are_whole_and_every_item_has_a_title(shapes):
    checked = Checked()
    checked.feed(render(shapes))
    assert checked.depth == 0 and checked.titles == 121  # and the page's own


def test_planted_labels_are_listed(shapes):
    found = shapes.suspects
    assert {3, 40} & set(found.items.tolist()) and found.false_alarms <= 0.05
    counts = np.array([[8, 2], [0, 9]])
    assert predictions.hard_classes(counts, np.array(["a", "b"])).startswith(
        "The hardest class is a: 80 %"
    )
    assert (
        predictions.hard_classes(np.diag([3, 4]), np.array(["a", "b"]))
        == "Every item was recognized."
    )


def test_numbers_have_a_scatter_and_odd_ones(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    y[9] += 40.0
    page = render(compare(X, y, learners=["dummy", "linear"], repeats=1, curves=False))
    assert "Predicted and given" in page and "item 10" in page.split("Worth a look")[1]


def test_no_interval_is_better_than_perfect():
    row = {"title": "All", "score": 0.99, "low": -0.1, "high": 1.08}
    said = items.answer(SimpleNamespace(table=[row], metric="accuracy", is_decided=True))
    assert said.endswith(
        "accuracy of 99.0 % (95 % interval 0.0 % to 100.0 %) on new items like these."
    )


def test_maps_of_tables_are_by_the_scales_that_matter():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(120, 6))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    found = compare(X, y, learners=["dummy", "linear"], repeats=1, curves=False)
    rows = np.arange(120)
    plain, learned = (
        items.distances_of(X, "table", rows),
        items.learned_distances(found.problem, rows),
    )
    noise = np.linalg.norm(X[:, None, 2:] - X[None, :, 2:], axis=2)[np.triu_indices(120, 1)]
    of_noise = [np.corrcoef(D[np.triu_indices(120, 1)], noise)[0, 1] for D in (plain, learned)]
    assert of_noise[1] < 0.15 and of_noise[0] > 0.5
    assert "(LAB's learned scales)" in render(found).replace("&#x27;", "'")
    assert (
        items.learned_distances(replace(found.problem, X=X[:20], y=y[:20]), np.arange(20)) is None
    )


def test_classes_have_shapes_and_colors_of_their_own():
    drawn = {(items._shape(code), code % 5) for code in range(25)}
    assert len(drawn) == 25


def test_odd_sentences_name_pairs_and_far_items():
    rng = np.random.RandomState(0)
    P = np.vstack([rng.normal(size=(30, 2)), [[90.0, 0.0]]])
    D = np.sqrt(((P[:, None] - P) ** 2).sum(2))
    names = [f"n{i}" for i in range(31)]
    assert items.odd_sentences(D, "distance", names) == ["1 item is far from all others: n30."]
    D[2, 5] = D[5, 2] = 200.0
    D[7, 8] += 1.0
    said = " ".join(items.odd_sentences(D, "distance", names))
    assert "differ most for n7 and n8" in said and re.search(
        r"broken most by n2 and n5 \(by [\d.]+ % .*through n\d+", said
    )
    assert items.copy_sentences(np.array([0, 0, 1]), np.array(["a", "b", "a"]), names) == [
        "1 set of equal items has different labels: n0 (a), n1 (b)."
    ]
