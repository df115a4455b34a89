"""The data and the predictions in the report: portrait, near-repeats, suspects, thresholds, importance, metrics."""

import csv
import io
import re
from base64 import b64decode
from dataclasses import replace
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
from mercerless.comparison.page import Html, fill
from mercerless.comparison.problem import make_problem
from mercerless.comparison.report import anchored_curves, render, time_to_decide
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
    confusion = section(page, "What is taken for what")
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
    assert all(line.startswith("To tell it from") for line in words)


def test_a_page_is_written_by_one_thread(table, monkeypatch):
    """On busy cores threads wait for each other: a page took 69 s with two, 3 s of processor time with one."""
    seen = []

    def listen(comparison):
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


def test_cramers_v_by_hand():
    a = np.array([0, 0, 1, 1, 2, 2] * 20)
    assert portrait.cramers_v(a, 5 - a) == pytest.approx(1.0)
    counts = np.array([[30, 10], [10, 30]])
    rows, columns = np.repeat([0, 0, 1, 1], counts.ravel()), np.repeat([0, 1, 0, 1], counts.ravel())
    phi_square = chi2_contingency(counts, correction=False).statistic / 80
    corrected = (phi_square - 1 / 79) / (2 - 1 / 79 - 1)
    assert portrait.cramers_v(rows, columns) == pytest.approx(np.sqrt(corrected))
