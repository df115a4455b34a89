"""The data and the predictions in the report: portrait, near-repeats, suspects, thresholds, importance, metrics."""

import csv
import io
import re
import time
from base64 import b64decode
from dataclasses import replace
from html import escape
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import (
    cohen_kappa_score,
    f1_score,
    matthews_corrcoef,
    precision_score,
    roc_auc_score,
)
from threadpoolctl import threadpool_info, threadpool_limits

from mercerless import compare
from mercerless.comparison import items, portrait, predictions, report
from mercerless.comparison.items import predicted_items
from mercerless.comparison.options import Options
from mercerless.comparison.page import Html, fill
from mercerless.comparison.problem import make_problem
from mercerless.comparison.reading import read_problem
from mercerless.comparison.report import anchored_curves, render, time_to_decide
from mercerless.comparison.result import compare_problem
from mercerless.core.folds import OutOfFold


@pytest.fixture(scope="module")
def table():
    """Two classes that depend on the first of four columns only, with words and gaps in the others."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["signal", "<noise>", "gaps"])
    X["words"] = rng.choice(["ash", "elm"], 150)
    X.loc[:29, "gaps"] = np.nan
    y = np.where(X["signal"] + 0.3 * rng.normal(size=150) > 0.5, "sick", "well")
    return compare(X, y, learners=["dummy", "linear", "neighbors"], repeats=2, name="patients")


@pytest.fixture(scope="module")
def page(table):
    with pytest.MonkeyPatch.context() as patch:  # however busy the machine
        patch.setattr(predictions, "LIMITS", replace(predictions.LIMITS, seconds=600.0))
        return render(table)


def section(page, title):
    """The part of the page under this heading."""
    return page.split(f"<h2>{title}", 1)[1].split("</section>", 1)[0]


# ------------------------------------------------------------------------------------------------- templates


def test_whatever_is_not_html_is_escaped():
    assert fill("words.paragraph", text="<b>&") == "<p>&lt;b&gt;&amp;</p>"
    assert fill("words.paragraph", text=Html("<b>")) == "<p><b></p>"
    assert fill("words.paragraph", text=None) == "<p>None</p>"
    with pytest.raises(KeyError):
        fill("words.paragraph")


# ---------------------------------------------------------------------------------------------------- the data


def test_the_portrait_names_types_gaps_and_distributions(page):
    data = section(page, "The data")
    rows = dict(re.findall(r"<tr[^>]*><th scope=row>([^<]*)</th>(.*?)</tr>", data))
    assert list(rows) == ["target", "signal", "&lt;noise&gt;", "gaps", "words"]
    assert "20 %" in rows["gaps"] and "<svg class=small" in rows["gaps"]
    assert "category" in rows["words"] and re.search(r"(ash|elm) \(\d+ %\)", rows["words"])
    assert "to predict" in rows["target"] and "none: all items differ" in data


HOSTILE = "<script>alert('\"&')</script>"


def first_rows(problem):
    """The names in the head of the first rows, and the cells of each row, as HTML."""
    text = portrait._first_rows(problem)
    names = re.findall("<th scope=col>(.*?)</th>", text)
    rows = [re.findall("<td.*?</td>", row) for row in re.findall("<tr>(<td.*?)</tr>", text)]
    return names, rows


def test_the_first_rows_are_those_of_the_data():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2021-01-05", periods=60, freq="D").astype(str)
    X = pd.DataFrame({"day": days, "big": 1_234_567.0 + np.arange(60), "part": np.arange(60) / 7})
    X["town"] = pd.Series(["ash", "elm"] * 30)
    X.loc[1, "part"] = np.nan
    X.loc[2, "town"] = None
    names, rows = first_rows(make_problem(X, pd.Series(np.arange(60) % 2, name="ill")))
    assert names == ["ill", "day", "big", "part", "town"] and len(rows) == 5
    plain = [[cell.removeprefix("<td>").removesuffix("</td>") for cell in row] for row in rows]
    assert plain[0] == ["0", "2021-01-05", "1234567", "0", "ash"]
    assert plain[1] == ["1", "2021-01-06", "1234568", "", "elm"]
    assert plain[2] == ["0", "2021-01-07", "1234569", "0.285714", ""]
    wide = make_problem(np.random.default_rng(0).normal(size=(40, 70)), np.arange(40) % 2)
    names, rows = first_rows(wide)
    assert names[:2] == ["target", "column 1"] and {len(row) for row in rows} == {61}
    assert "the first 60 of 70 columns" in portrait._first_rows(wide)


def test_a_page_without_rows_has_no_name_and_no_value_of_a_single_item(tmp_path):
    """Every item has a name and a measurement that occurs nowhere else."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"secret": 1000.0 + rng.permutation(90) / 7, "x": rng.normal(size=90)})
    X.index = pd.Index([f"patient-{i}" for i in range(90)], name="id")
    X.loc["patient-7", "x"] = 60.0  # far from all others: worth a look
    X["state"] = np.where(X["x"] > 0, "sick", "well")
    X.to_csv(tmp_path / "patients.csv")
    problem = read_problem(tmp_path / "patients.csv", labels="state")
    result = compare_problem(problem, Options(learners=["dummy", "linear"], repeats=1, n_jobs=1))
    result.report(tmp_path / "all.html")
    result.report(tmp_path / "shared.html", rows=False)
    whole = (tmp_path / "all.html").read_text()
    shared = (tmp_path / "shared.html").read_text()
    values = [
        f"{value:.6g}" for value in X["secret"] if value % 1
    ]  # a median is rounded to fewer digits
    single = [*X.index, *values]
    assert sum(text in whole for text in single) > 90
    assert [text for text in single if text in shared] == []
    titles = re.compile("<h[23]>([^<]*)")
    left_out = {"The first rows", "The items", "Worth a look", "Predictions to look into"}
    assert set(titles.findall(whole)) - set(titles.findall(shared)) == left_out
    assert "not shown on this page, as requested" in shared and "as requested" not in whole
    assert "What was inferred" in whole and "What was inferred" not in shared


def test_long_and_hostile_cells_are_cut_and_escaped():
    pd = pytest.importorskip("pandas")
    long = HOSTILE * 3
    X = pd.DataFrame({HOSTILE: [long, "elm"] * 30, "x": np.arange(60.0) % 7})
    y = pd.Series([HOSTILE, "well"] * 30, name=HOSTILE)
    problem = make_problem(X, y)
    names, rows = first_rows(problem)
    assert names == [escape(HOSTILE), escape(HOSTILE), "x"]
    assert rows[0][1] == f'<td title="{escape(long)}">{escape(long[:23])}…</td>'
    assert rows[1][1] == "<td>elm</td>"
    everything = portrait._first_rows(problem) + portrait._columns(problem)
    assert "<script" not in everything and "alert('" not in everything
    enormous = portrait._cell("a" * 1_000_000)
    assert len(enormous) < 2 * portrait.LIMITS.whole_cell


@pytest.mark.parametrize("name", ["income", " ", None, 3, HOSTILE])
def test_the_target_has_its_own_name(name):
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(60, 3))
    is_named = name in ("income", HOSTILE)
    expected = name if is_named else "target"
    for y in (pd.Series(X[:, 0], name=name), pd.DataFrame({name: X[:, 0]})):
        problem = make_problem(X, y)
        assert problem.target == expected
        assert f"<tr class=best><th scope=row>{escape(expected)}</th>" in portrait._columns(problem)
        told = dict(portrait._facts(problem))["target"]
        assert told.startswith(f"{name}, from" if is_named else "from")
    assert make_problem(X, X[:, 0]).target == "target"


@pytest.mark.parametrize(
    "labels, target", [(None, "species"), ("town", "town"), ("kinds.txt", "target")]
)
def test_the_target_of_a_file_is_its_column(labels, target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = ["ash", "elm"] * 20
    lines = [f"{i % 7},{i * i % 11},{'ab'[i % 3 % 2]},{kind}" for i, kind in enumerate(kinds)]
    (tmp_path / "trees.csv").write_text("\n".join(["wide,high,town,species", *lines]))
    (tmp_path / "kinds.txt").write_text("\n".join(kinds))
    assert read_problem("trees.csv", labels=labels).target == target


def test_dates_and_long_numbers_are_readable():
    """Dates have first and last day and a histogram; no exponents, no midnight; what is left out is said."""
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2021-01-05", periods=60, freq="D")
    X = pd.DataFrame({"day": days.astype(str), "income": 12_345.4 + np.arange(60)})
    X["note"] = [f"remark {i}" for i in range(60)]
    problem = make_problem(X, np.arange(60) % 2)
    told = dict(portrait._facts(problem))
    assert told["left out"].startswith("column 'note': it is text")
    cells = re.findall(r"<td class=words>(.*?)</td>", portrait._columns(problem))
    assert cells[1] == "2021-01-05 to 2021-03-05"
    assert cells[2].startswith("12,345 to 12,404, median 12,375, mean 12,375 ± 17.46")
    hours = portrait._column_row("day", "date", pd.Series(days + pd.Timedelta("90min")))
    assert hours["values"] == "2021-01-05 01:30 to 2021-03-05 01:30" and hours["distinct"] == 60


def test_copies_and_groups_are_said():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[1] = X[0]
    problem = make_problem(X, np.arange(60) % 2, groups=np.arange(60) // 3)
    told = dict(portrait._facts(problem))
    assert told["copies"].startswith("1 item is equal to another")
    assert told["groups"].startswith("20, never split")


def windows(n_series=6, n_windows=40, seed=0):
    """Overlapping windows of random walks, the series one after the other."""
    rng = np.random.default_rng(seed)
    walks = np.cumsum(rng.normal(size=(n_series, n_windows + 20)), axis=1)
    rows = [walk[i : i + 20] for walk in walks for i in range(n_windows)]
    return np.array(rows), np.repeat(np.arange(n_series), n_windows)


def test_windows_of_a_series_are_found_unless_groups_hold_them():
    X, series = windows()
    y = np.random.default_rng(1).normal(size=len(X))
    (warning,) = portrait.near_repeats(make_problem(X, y, kind="table"))
    assert "nearly repeat" in warning and "--groups" in warning
    assert portrait.near_repeats(make_problem(X, y, kind="table", groups=series)) == []
    D = np.sqrt(((X[:, None] - X) ** 2).sum(2))
    assert len(portrait.near_repeats(make_problem(D, y, kind="distance"))) == 1
    order = np.random.default_rng(2).permutation(len(X))
    assert portrait.near_repeats(make_problem(X[order], y, kind="table")) == []
    classes = series % 2  # the file is sorted by series, not by class alone
    assert len(portrait.near_repeats(make_problem(X, classes, kind="table"))) == 1


def test_twins_are_found_wherever_they_stand():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 4)), 2, axis=0) + 1e-4 * rng.normal(size=(120, 4))
    order = rng.permutation(120)
    y = rng.normal(size=120)
    (warning,) = portrait.near_repeats(make_problem(X[order], y, kind="table"))
    assert "have a twin" in warning and "--groups" in warning
    of_twins = np.repeat(np.arange(60), 2)[order]
    assert portrait.near_repeats(make_problem(X[order], y, kind="table", groups=of_twins)) == []
    line = rng.normal(size=(120, 1)) * np.ones(4)  # one direction only, where neighbors are near
    assert portrait.near_repeats(make_problem(line, y, kind="table")) == []


def test_sorted_classes_grids_and_copies_are_no_repeats():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 60)
    X = rng.normal(size=(180, 4)) + 5.0 * y[:, None]
    assert portrait.near_repeats(make_problem(X, y, kind="table")) == []
    grid = np.array(np.meshgrid(*[np.arange(4.0)] * 4)).reshape(4, -1).T
    assert portrait.near_repeats(make_problem(grid, rng.normal(size=256), kind="table")) == []
    y = np.repeat(np.arange(20), 10)
    X = rng.normal(size=(200, 4)) + 9.0 * rng.normal(size=(20, 4))[y]
    assert portrait.near_repeats(make_problem(X, y, kind="table")) == []
    twice = np.repeat(rng.normal(size=(60, 4)), 2, axis=0)
    assert portrait.near_repeats(make_problem(twice, rng.normal(size=120), kind="table")) == []


# ---------------------------------------------------------------------------------------------------- suspects


def drawn_labels(proba, rng):
    return np.array([rng.choice(len(p), p=p) for p in proba])


def test_labels_are_suspects_only_beyond_chance():
    """Labels drawn with the stated probabilities accuse no class, also a rare one; wrong labels do theirs."""
    rng = np.random.default_rng(0)
    accused = 0
    for _ in range(40):
        sure = rng.uniform(0.8, 0.99, 600)
        proba = np.column_stack([sure, 0.7 * (1 - sure), 0.3 * (1 - sure)])
        labels = drawn_labels(proba, rng)
        held_out = OutOfFold(np.arange(600), proba, labels)
        accused += len(items.suspicious_classes(held_out, 0.2)) > 0
    assert accused <= 2
    proba = np.tile([0.98, 0.015, 0.005], (600, 1))
    labels = drawn_labels(proba, rng)
    labels[:30] = 2
    held_out = OutOfFold(np.arange(600), proba, labels)
    assert items.suspicious_classes(held_out, 0.2).tolist() == [2]


def test_a_page_without_suspects_says_so(page, table):
    suspects = table.suspects
    words = section(page, "Worth a look") if len(suspects.items) else "No label clearly looks wrong"
    assert "No label clearly looks wrong" in words or "clearly more of their classes" in words


# -------------------------------------------------------------------------------------------------- predictions


@pytest.mark.parametrize("n_classes", [2, 4])
def test_metrics_from_counts_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(n_classes)
    target = rng.integers(0, n_classes, 200)
    predicted = np.where(rng.uniform(size=200) < 0.6, target, rng.integers(0, n_classes, 200))
    found = predictions._class_metrics(SimpleNamespace(y=target), target, predicted)
    assert found["Matthews correlation"] == pytest.approx(matthews_corrcoef(target, predicted))
    assert found["Cohen's kappa"] == pytest.approx(cohen_kappa_score(target, predicted))
    if n_classes == 2:
        rarer = np.bincount(target).argmin()
        expected = precision_score(target, predicted, pos_label=rarer)
        assert found["precision"] == pytest.approx(expected)
    else:
        assert found["mean F1"] == pytest.approx(f1_score(target, predicted, average="macro"))


def test_thresholds_are_those_of_least_cost():
    rng = np.random.default_rng(0)
    score = rng.uniform(size=80).round(1)  # with ties
    is_positive = rng.uniform(size=80) < score
    for cost in (0.1, 0.5, 1.0, 2.0, 10.0):
        threshold = predictions.best_threshold(is_positive, score, cost)

        def total(limit, cost=cost):
            called = score >= limit
            return cost * (is_positive & ~called).sum() + (~is_positive & called).sum()

        assert total(threshold) == min(map(total, [*np.unique(score), 2.0]))


def test_the_page_ranks_two_classes_and_finds_the_column_that_matters(page):
    assert "Precision, recall and F1 are of sick, the rarer class" in page
    curves = section(page, "Where to draw the line")
    assert curves.count("<svg class=axes") == 2 and "as much as 5 false alarms" in curves
    important = section(page, "Which columns matter")
    assert re.findall("<span class=name>([^<]*)<", important)[0] == "signal"


def test_fits_for_the_page_are_left_out_if_they_take_too_long(table):
    refits = predictions.Refits(table, seconds=0.0)
    words = predictions.importance_section(table, refits, ["a", "b", "c", "d"])
    assert "is left out" in words and refits.fitted == {}


class SlowScores:
    """A classifier whose every score takes a while, however few rows there are, and that counts its calls."""

    _estimator_type = "classifier"

    def __init__(self, inner):
        self.inner = inner
        self.classes_ = inner.classes_
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def fit(self, X, y):
        raise AssertionError("the page fits nothing again here")

    def predict(self, X):
        self.calls += 1
        time.sleep(0.2)
        return self.inner.predict(X)


def test_columns_are_shuffled_as_often_as_scores_of_few_rows_allow(table):
    split = predictions.first_splits(table)[0]
    generous = predictions.Refits(table, seconds=600.0)
    fitted = generous.fit(table.recommended, split)
    slow = fitted._replace(estimator=SlowScores(fitted.estimator))
    refits = predictions.Refits(table, seconds=1.0)
    refits.fitted[table.recommended, split] = slow
    names = ["signal", "<noise>", "gaps", "words"]
    assert "signal" in predictions.importance_section(table, refits, names)
    # one of each column; by the time for the rows alone there would be up to five
    assert slow.estimator.calls == 2 + 4


def test_scales_are_learned_for_the_map_only_if_there_is_time(table, monkeypatch):
    held = predicted_items(table, table.recommended)
    calls = []
    monkeypatch.setattr(items, "learned_distances", lambda *args: calls.append(args))
    items.map_section(table, held, [], seconds=0.0)
    assert calls == []
    items.map_section(table, held, [])
    assert len(calls) == 1


def test_the_file_holds_every_prediction(page, table):
    address = re.search('href="data:text/csv;base64,([^"]+)"', page)[1]
    rows = list(csv.DictReader(io.StringIO(b64decode(address).decode())))
    assert len(rows) == 300
    classes = np.unique(table.problem.y)
    for row in rows[::17]:
        split = int(row["repeat"]) - 1, int(row["fold"]) - 1
        item = int(row["item"].split()[1]) - 1
        place = table.rows_of_splits[split].tolist().index(item)
        record = table.results[table.recommended][split]
        assert row["given"] == table.problem.y[item]
        assert row["predicted"] == classes[int(record.predicted[place])]
        given = [float(value) for name, value in row.items() if name.startswith("probability of")]
        ranking = table.results[predictions.ranking_learner(table)][split]
        np.testing.assert_allclose(given, ranking.probability[place], atol=1e-6)


def test_curves_come_from_the_probabilities_that_were_scored(table):
    """The areas of the splits, computed from the items that the page ranks, are the scores of the table."""
    ranking = predictions.rank_items(table)
    fold_of_item = {}
    for split in table.splits[:5]:
        fold_of_item.update(dict.fromkeys(table.rows_of_splits[split].tolist(), split))
    splits = np.array([fold_of_item[item][1] for item in ranking.rows.tolist()])
    assert len(ranking.rows) == len(set(ranking.rows.tolist())) == 150
    assert np.array_equal(ranking.is_positive, table.problem.y[ranking.rows] == "sick")
    for fold in range(5):
        kept = splits == fold
        area = roc_auc_score(ranking.is_positive[kept], ranking.score[kept])
        scored = table.results[ranking.learner][0, fold].scores["roc_auc"]
        assert area == pytest.approx(scored, abs=1e-6)


def test_a_vote_names_whose_probabilities_the_file_has(table):
    voted = SimpleNamespace(
        problem=table.problem,
        recommended="linear",
        names=["neighbors", "linear"],
        results=table.results,
        splits=table.splits,
        learner=table.learner,
    )
    assert predictions._probability_head(voted, "neighbors") == [
        "probability of sick by Nearest neighbors",
        "probability of well by Nearest neighbors",
    ]
    assert predictions._probability_head(voted, "linear")[0] == "probability of sick"


def test_pictures_and_table_agree(page, table):
    name = table.recommended
    first = [table.results[name][split].scores["accuracy"] for split in table.splits[:5]]
    confusion = section(page, "Which classes are confused")
    assert f"of the first repeat: accuracy of {100 * np.mean(first):.1f} %" in confusion
    assert f"the mean of 2 repeats, {100 * table.table[0]['score']:.1f} %" in confusion
    counts = [int(n) for n in re.findall(r"<td style=[^>]*>(\d+)<", confusion)]
    right = [int(n) for n in re.findall(r"<td style=[^>]*class=right>(\d+)<", confusion)]
    assert sum(counts) == 150 and sum(right) == round(150 * np.mean(first))


def test_curves_end_at_the_scores_of_the_table():
    rows = [{"learner": "a", "score": 0.9}, {"learner": "b", "score": 0.8}]
    curves = {"a": [(50, 0.7), (100, 0.88)], "b": [(100, 0.8)]}
    found = anchored_curves(SimpleNamespace(table=rows, curves=curves))
    assert list(found) == ["a"] and found["a"][-1] == (100, 0.9)
    assert found["a"][0][1] == pytest.approx(0.72)


def test_numbers_have_residuals_and_their_metrics():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    page = render(compare(X, X[:, 0], learners=["dummy", "linear"], repeats=1, curves=False))
    assert "Residuals against predicted numbers" in page
    assert "rank correlation" in section(page, "Other metrics")


def test_the_time_to_decide_is_said_if_it_is_open(table):
    words = time_to_decide(table)
    assert bool(words) == bool(set(table.ties) - {"dummy"})
    assert all("apart from" in line for line in words)


def test_a_page_is_written_by_one_thread(table, monkeypatch):
    """On busy cores threads wait for each other: a page took 69 s with two, 3 s of processor time with one."""
    seen = []

    def listen(comparison, rows):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return Html()

    monkeypatch.setattr(report, "data_section", listen)
    with threadpool_limits(2):
        render(table)
        after = [pool["num_threads"] for pool in threadpool_info()]
    assert seen and set(seen) == {1} and 2 in after


def test_columns_that_follow_from_each_other_are_named():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    place = rng.choice(["north", "south", "west"], 300)
    frame = pd.DataFrame(
        {
            "a": x[:, 0],
            "b": x[:, 1],
            "minus a": -3.0 * x[:, 0],
            "nearly b": x[:, 1] + 0.7 * x[:, 2],
            "place": place,
            "code": [f"c{len(name)}{name[0]}" for name in place],
            "id": [f"item {i}" for i in range(300)],
        }
    )
    frame.loc[:3, "a"] = np.nan
    problem = make_problem(frame.drop(columns="id"), np.arange(300) % 2)
    assert portrait.alike_columns(problem) == [["a", "minus a"], ["place", "code"]]
    told = dict(portrait._facts(problem))["alike"]
    assert told.startswith("a, minus a nearly follow from each other") and "place, code" in told
    numbers = make_problem(x, np.arange(300) % 2)
    assert "alike" not in dict(portrait._facts(numbers))


def related_columns(n=400):
    """Six columns of noise and of one another, and classes that follow from the first."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "noise"])
    frame["near a"] = frame["a"] + 0.2 * rng.normal(size=n)
    frame["sign of b"] = np.where(frame["b"] > 0.0, "plus", "minus")
    frame["flips"] = rng.choice(["heads", "tails"], n)
    y = pd.Series(np.where(frame["a"] > 0.0, "up", "down"), name="way")
    return frame, y


def test_the_strongest_pairs_are_listed():
    frame, y = related_columns()
    problem = make_problem(frame, y)
    found = portrait.strongest_pairs(problem)
    assert [(pair.one, pair.other) for pair in found] == [("b", "sign of b"), ("a", "near a")]
    assert found[0].value > found[1].value > 0.3
    rows = re.findall(
        r'<tr><td>(.*?)</td><td>(.*?)</td><td data-value="(.*?)">(.*?)</td></tr>',
        portrait._columns(problem),
    )
    assert [row[:2] for row in rows] == [("b", "sign of b"), ("a", "near a")]
    assert [float(row[2]) for row in rows] == pytest.approx([p.value for p in found], abs=1e-6)
    assert "It does not show a cause" in portrait._columns(problem)
    order = np.random.default_rng(1).permutation(len(frame))
    shuffled = make_problem(frame.iloc[order], y.iloc[order])
    assert [p.value for p in portrait.strongest_pairs(shuffled)] == pytest.approx(
        [p.value for p in found]
    )


def test_at_most_eight_pairs_and_none_by_chance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    copies = make_problem(x + 0.01 * rng.normal(size=(200, 6)), np.arange(200) % 2)
    assert len(portrait.strongest_pairs(copies)) == 8
    listed = 0
    for seed in range(10):  # few rows and many pairs, a third of the columns of two values
        noise = np.random.default_rng(seed).normal(size=(60, 15))
        noise[:, ::3] = np.sign(noise[:, ::3])
        problem = make_problem(noise, np.arange(60) % 2)
        values = portrait._column_codes(problem)
        pairs = combinations(values.values(), 2)
        listed += max(portrait.cramers_v(a, b) for a, b in pairs) > 0.3
        assert portrait.strongest_pairs(problem) == []
        assert "Columns that go together" not in portrait._columns(problem)
    assert listed == 10  # each would have listed some


def test_every_column_has_its_association_with_the_target():
    frame, y = related_columns()
    frame.loc[:9, "a"] = np.nan
    problem = make_problem(frame, y)
    data = portrait._columns(problem)
    rows = dict(re.findall(r"<tr[^>]*><th scope=row>([^<]*)</th>(.*?)</tr>", data))
    cells = {name: re.findall("<td[^>]*>(.*?)</td>", row)[3] for name, row in rows.items()}
    assert cells["way"] == "" and cells["noise"] == cells["flips"] == cells["b"] == "chance"
    exact = portrait.target_associations(problem)
    assert cells["a"] == f"{exact['a'].value:.2f}" and exact["a"].value > 0.9
    assert 0.3 < float(cells["near a"]) < float(cells["a"])
    by_size = make_problem(frame, frame["near a"] + 0.0)
    assert portrait.target_associations(by_size)["near a"].value > 0.95


def test_a_file_that_is_sorted_by_class_has_associations():
    x = np.random.default_rng(0).normal(size=(5000, 2))
    y = np.repeat([0, 1], 2500)
    x[:, 0] += 3 * y
    found = portrait.target_associations(make_problem(x, y))
    assert found["column 1"].value > 0.8 and found["column 2"].value < 0.1


def test_cramers_v_by_hand():
    a = np.array([0, 0, 1, 1, 2, 2] * 20)
    assert portrait.cramers_v(a, 5 - a) == pytest.approx(1.0)
    counts = np.array([[30, 10], [10, 30]])
    rows, columns = np.repeat([0, 0, 1, 1], counts.ravel()), np.repeat([0, 1, 0, 1], counts.ravel())
    phi_square = chi2_contingency(counts, correction=False).statistic / 80
    corrected = (phi_square - 1 / 79) / (2 - 1 / 79 - 1)
    assert portrait.cramers_v(rows, columns) == pytest.approx(np.sqrt(corrected))
    with_gaps = np.where(rows == 0, -1, 7)  # codes need not follow each other
    assert portrait.cramers_v(with_gaps, 3 * columns) == pytest.approx(np.sqrt(corrected))
