"""The page: complete, well formed, small, without anything from the network, and its code runs."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

from mercerless import compare
from mercerless.comparison.page import charts, render
from mercerless.comparison.page.sections import classes, sections_of

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
    values = charts.ticks(low, high)
    assert 2 <= len(values) <= 11
    assert values.min() >= low - 1e-12 and values.max() <= high * (1 + 1e-12)


# what the charts show, against the predictions


@pytest.mark.parametrize("low, high", [(0, 1), (-3.2, 1e5), (1e-9, 2e-9), (7, 61), (-0.4, 0.39)])
def test_ticks_have_the_smallest_round_step_of_at_most_five(low, high):
    step = np.diff(charts.ticks(low, high))
    assert np.ptp(step) < 1e-9 * step[0]
    mantissa = step[0] / 10 ** np.floor(np.log10(step[0]) + 1e-9)
    smaller = {1: 0.5, 2: 0.5, 2.5: 0.8, 5: 0.5}[round(mantissa, 6)]
    assert (high - low) / step[0] < 5.01 and (high - low) / (smaller * step[0]) > 4.99
    assert (
        charts.ticks(low, high)[0] - step[0] < low and charts.ticks(low, high)[-1] + step[0] > high
    )


@pytest.mark.parametrize(
    "value, label",
    [(0.0, "0"), (1e-305, "0"), (12345.6, "12,346"), (-2e4, "-20,000"), (9999.4, "9999")]
    + [(1e7, "1e+07"), (0.00123, "0.00123"), (0.00012345, "0.00012"), (1.23456, "1.235")]
    + [("word", "word"), (7, "7")],
)
def test_labels_of_numbers_are_short(value, label):
    assert charts.number(value) == label


def test_places_on_a_chart():
    chart = charts.Chart("", "", "", (10.0, 20.0), (-1.0, 1.0), height=200, left=72)
    assert_allclose(chart.x([10, 15, 20]), [72, 290, 508])
    assert_allclose(chart.y([-1, 0, 1]), [160, 86, 12])
    assert chart.places(charts.Mark("dots", "", [10, 20], [-1, 1])) == [(72, 160), (508, 12)]
    assert [label for _, label in chart.x_ticks] == ["10", "12", "14", "16", "18", "20"]
    rows = charts.row_chart("", "", ["a", "b", "c"], [0.0, 10.0])
    assert rows.height == 118 and rows.x_range == (-0.5, 10.5)
    gaps = np.diff([place for place, _ in rows.y_ticks])
    assert_allclose(gaps, -66 / 3.2, atol=0.06)  # rounded to a tenth
    assert charts.padded([3.0, 3.0]) == (2.85, 3.15) and charts.padded([0.0]) == (-0.05, 0.05)
    curve = charts.curve_chart("", "", "", np.array([4.0, 8.0]), np.array([1.0, 2.0]))
    assert_allclose([*curve.x_range, *curve.y_range], [-0.24, 8.24, 0.85, 2.15])


def marks(chart, shape):
    return [(np.asarray(mark.x), np.asarray(mark.y)) for mark in chart.marks if mark.shape == shape]


@pytest.mark.parametrize("name", ["two classes", "numbers"])
def test_the_chart_of_learners_has_their_losses_and_intervals(results, name):
    result = results[name]
    chart = sections_of(result, True)["learners"]["chart"]
    losses = {row["title"]: row["loss"] for row in result.table}
    dots, lines = marks(chart, "dots"), marks(chart, "line")
    shares = (
        losses
        if name != "numbers"
        else {k: 1 - v / np.var(result.problem.y) for k, v in losses.items()}
    )
    assert {label: x[0] for label, (x, _) in zip(chart.labels, dots)} == pytest.approx(shares)
    assert [y[0] for _, y in dots] == list(range(len(dots)))
    best = chart.labels.index(result.titles[result.chosen])
    assert [mark.kind for mark in chart.marks if mark.shape == "dots"][best] == "dot chosen"
    unit = 1.0 if name != "numbers" else np.var(result.problem.y)
    for (x, _), row in zip(lines, result.table[::-1]):
        place = result.ranked.index(row["learner"]), result.ranked.index(result.chosen)
        width = result.judgment.critical * result.judgment.standard_error[place] / unit
        assert_allclose(np.diff(x), 2 * width)
        assert_allclose(x.mean(), shares[row["title"]])


def test_sections_of_two_classes_have_the_figures_of_their_predictions(results):
    result = results["two classes"]
    shown = sections_of(result, True)
    proba = result.predictions(result.chosen)[0]
    is_yes, scores = TWO == "yes", proba[:, 1]
    counts = [
        [np.sum((TWO == a) & ((scores > 0.5) == (b == "yes"))) for b in ("no", "yes")]
        for a in ("no", "yes")
    ]
    confusion = shown["classes"]
    assert confusion["names"] == ["no", "yes"] and confusion["counts"] == counts
    for k, (name, support, recall, precision) in enumerate(confusion["rows"]):
        assert name == confusion["names"][k] and support == sum(counts[k])
        assert_allclose(recall, counts[k][k] / sum(counts[k]))
        assert_allclose(precision, counts[k][k] / (counts[0][k] + counts[1][k]))
    for threshold, recall, precision, share in shown["threshold"]:
        called = scores >= threshold
        assert_allclose([recall, share], [called[is_yes].mean(), called.mean()])
        assert_allclose(precision, is_yes[called].mean() if called.any() else 0.0)
    assert [row[0] for row in shown["threshold"]][:3] == [0.05, 0.1, 0.2] and len(
        shown["threshold"]
    ) == 11
    roc, precision, trust = confusion["charts"]
    assert all(chart.x_range == chart.y_range == (0.0, 1.0) for chart in confusion["charts"])
    wrong, hit = marks(roc, "line")[0]
    assert_allclose(np.trapezoid(hit, wrong), roc_auc_score(is_yes, scores))
    recall, precise = marks(precision, "line")[0]
    assert 100 < len(recall) <= 200 and {recall.max(), recall.min()} == {0.0, 1.0}
    assert_allclose(
        np.trapezoid(precise[::-1], recall[::-1]),
        average_precision_score(is_yes, scores),
        atol=0.01,
    )
    predicted, actual = marks(trust, "dots")[0]
    bins = np.array_split(np.argsort(scores, kind="stable"), 10)
    assert_allclose(predicted, [scores[b].mean() for b in bins], atol=1e-6)
    assert_allclose(actual, [is_yes[b].mean() for b in bins], atol=1e-6)


def test_importance_and_curve_show_what_the_race_measured(results):
    for name, unit in (("two classes", 1.0), ("numbers", np.var(DATA["numbers"][1]))):
        shown = sections_of(results[name], True)
        found = results[name].race.importance
        chart = shown["importance"]["chart"]
        bars = {label: x[1] for label, (x, _) in zip(chart.labels, marks(chart, "bars"))}
        assert bars == pytest.approx(dict(zip(found.columns, found.mean / unit)))
        assert list(bars.values()) == sorted(bars.values())
        spread = {label: np.ptp(x) / 2 for label, (x, _) in zip(chart.labels, marks(chart, "line"))}
        assert spread == pytest.approx(dict(zip(found.columns, found.spread / unit)))
        curve = shown["curve"]
        x, y = marks(curve["chart"], "line")[0]
        assert x[-1] == 240 and len(x) >= 3 and np.all(np.diff(x) > 0)
        assert_allclose(curve["gain"], (y[-2] - y[-1]) / y[-2])


def test_numbers_are_shown_beside_their_predictions(results):
    result = results["numbers"]
    y, predictions = DATA["numbers"][1], result.predictions(result.chosen)[0].ravel()
    shown = sections_of(result, True)["numbers"]
    assert_allclose(shown["quantiles"], np.quantile(np.abs(y - predictions), [0.5, 0.9, 0.99]))
    against, residuals = (marks(chart, "dots")[0] for chart in shown["charts"])
    assert_allclose(np.sort(against[0]), np.sort(predictions))
    assert_allclose(against[1] - against[0], residuals[1])
    assert_allclose(np.sort(residuals[1]), np.sort(y - predictions))
    diagonal, zero = (marks(chart, "line")[0] for chart in shown["charts"])
    assert_allclose(*diagonal)
    assert_allclose(zero[1], 0.0)
    for chart, ends in zip(shown["charts"], (diagonal, zero)):
        assert_allclose(ends[0], chart.x_range)


def test_the_map_of_a_line_is_a_line(results):
    result = results["a matrix"]
    shown = sections_of(result, True)["map"]
    places, spectrum = shown["charts"]
    x = np.concatenate([x for x, _ in marks(places, "dots")])
    order = np.concatenate([np.flatnonzero(TWO == name) for name in ("no", "yes")])
    assert_allclose(np.abs(x - x[0]), np.abs(X[order, 0] - X[order[0], 0]), atol=1e-6)
    values = marks(spectrum, "line")[0][1]
    assert_allclose(values[0], np.sum((X[:, 0] - X[:, 0].mean()) ** 2))
    assert np.abs(values[1:]).max() < 1e-6 * values[0] and shown["n"] == N


def test_columns_are_described(results):
    table = {row["name"]: row for row in sections_of(results["two classes"], True)["columns"]}
    assert_allclose(table["c"]["missing"], np.isnan(FRAME["c"]).mean())
    assert table["city"]["different"] == 2 and table["age"]["different"] == N
    assert_allclose(table["age"]["mean"], X[:, 0].mean())
    assert table["city"]["mean"] is None and table["city"]["top"] in ("Bonn", "Ulm & Köln")


@pytest.mark.parametrize("q", [3, 12, 13, 24, 25, 30])
def test_of_many_classes_the_worst_are_listed(q):
    codes = np.repeat(np.arange(q), 10)
    called = np.where(np.arange(10 * q) % 10 < codes % 10, (codes + 1) % q, codes)
    shown = classes([f"c{k}" for k in range(q)], np.eye(q)[called] * 0.9 + 0.1 / q, codes)
    recalls = np.array([np.mean(called[codes == k] == k) for k in range(q)])
    names, support, recall, _ = zip(*shown["rows"])
    assert len(shown["counts"]) == (q if q <= 12 else 0) and len(shown["charts"]) == 1
    assert len(names) == min(q, 24) and set(support) == {10}
    assert_allclose(recall, recalls if q <= 24 else np.sort(recalls)[:24])
    assert_allclose(recall, [recalls[int(name[1:])] for name in names])
