"""Tables and figures of pages come from rows, and every claim has a command."""

import argparse
import json
import re
import runpy
import sys

import pytest

pytest.importorskip("pandas")

import pandas as pd

from benchmarks import frames, history, machine, pages, tables, trust
from benchmarks.__main__ import main
from benchmarks.claims import CLAIMS, HERE, Claim, chosen
from benchmarks.run import known_runs, plan, run_all


def test_pages_show_what_the_rows_give():
    stale = pages.rewrite(check=True)
    assert not stale, f"{', '.join(stale)}: run python -m benchmarks pages"


def test_every_table_is_shown():
    text = "".join(path.read_text(encoding="utf-8") for path in pages.pages())
    shown = {name for kind, name, _ in pages.MARK.findall(text) if kind == "table"}
    assert set(tables.TABLES) == shown


def test_every_page_of_evidence_ends_with_what_is_left_out():
    folder = pages.ROOT / "docs" / "evidence"
    pages_of_evidence = [path for path in folder.glob("*.md") if path.stem != "index"]
    headings = {
        path.stem: re.findall(r"^## (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in pages_of_evidence
    }
    assert len(headings) >= 11
    assert {found[-1] for found in headings.values()} == {"Left out"}


@pytest.mark.parametrize("name", tables.TABLES)
def test_every_table_has_its_rows(name):
    header, _, *lines = tables.TABLES[name].render().splitlines()
    assert lines and {line.count(" | ") for line in lines} == {header.count(" | ")}


class Said:
    """Stands in for a declaration."""

    def __init__(self, text):
        self.text = text

    def render(self):
        return self.text


def test_a_number_that_its_row_no_longer_gives_is_found(tmp_path, monkeypatch):
    """The check must be able to fail."""
    text = "<!-- table: t -->\nold\n<!-- end -->\n"
    new = pages.filled(text, {}, {"t": Said("| a |")})
    assert new == "<!-- table: t -->\n\n| a |\n\n<!-- end -->\n"
    (tmp_path / "docs").mkdir()
    page = tmp_path / "README.md"
    page.write_text("about <!-- figure: krein_cells -->49<!-- end --> cells\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setitem(tables.FIGURES, "krein_cells", Said("48"))
    assert pages.rewrite(check=True) == ["README.md"] and "49" in page.read_text()
    assert pages.rewrite() == ["README.md"] and "-->48<!--" in page.read_text()
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
def test_markers_that_would_not_work_raise(text, message):
    with pytest.raises(ValueError, match=message):
        pages.filled(text, {"x": Said("1")}, {})


NAN = float("nan")


@pytest.mark.parametrize(
    "template, value, text",
    [
        ("{x:.1f}", 76.25, "76.3"),  # halves up, though the nearest even is 76.2
        ("{x:.4r}", 0.9983, ".9983"),
        ("{x:.2r}", -0.125, "-.13"),
        ("{x:.1p} %", 0.0625, "6.3 %"),
        ("{x:+.1f}", -0.25, "\N{MINUS SIGN}0.3"),
        ("{x:+.1f}", 0.25, "+0.3"),
        ("{x:,}", 1234, "1,234"),
        ("{x:.1f} s", NAN, ""),
        ("rank[ ({x:.1f})]", NAN, "rank"),
        ("rank[ ({x:.1f})]", 2.0, "rank (2.0)"),
        ("{x:.0f}", tables.Span(1.0, 2.0), "1 to 2"),
        ("{x:.0f}", tables.Span(1.1, 1.2), "1"),
    ],
)
def test_templates(template, value, text):
    assert tables.fill(template, {"x": value}) == text


@pytest.fixture
def fresh():
    """Frames are read anew in a test that replaces results, and after it."""
    tables.load.cache_clear()
    yield
    tables.load.cache_clear()


@pytest.fixture
def scores(fresh, monkeypatch):
    """Two learners on two sets, one of them on a second split."""
    columns = ["set", "learner", "split", "score"]
    values = [("b", "x", 0, 0.5), ("b", "y", 0, 0.75), ("a", "x", 0, 0.25), ("b", "x", 1, 1.0)]
    rows = pd.DataFrame(values, columns=columns)
    monkeypatch.setattr(tables, "results", lambda name: rows)


def test_a_table_is_averaged_ordered_named_and_has_its_best_in_bold(scores):
    table = tables.Table(
        data="papers/any",
        by=("set", "learner"),
        titles="set",
        columns="learner",
        value="{score:.2f}",
        heads="of {}",
        names={"set": {"b": "B"}, "learner": {"y": "Y", "x": "X"}},
        best="max",
    )
    lines = ["| set | of Y | of X |", "| --- | --- | --- |", "| B | **0.75** | **0.75** |"]
    assert table.render().splitlines() == [*lines, "| a |  | **0.25** |"]


def test_two_rows_for_one_cell_or_figure_raise(scores):
    table = tables.Table(data="papers/any", titles="set", columns="learner", value="{score}")
    with pytest.raises(LookupError, match="two rows"):
        table.render()
    with pytest.raises(LookupError, match="4 rows"):
        tables.Figure(data="papers/any", text="{score:.2f}").render()


def test_the_first_named_column_orders_before_the_second(scores):
    names = {"set": "a | b", "learner": "y | x"}
    table = tables.Table(data="papers/any", titles="set | learner | split", names=names)
    lines = table.render().splitlines()[2:]
    assert lines == ["| a | x | 0 |", "| b | y | 0 |", "| b | x | 0 |", "| b | x | 1 |"]


@pytest.mark.parametrize(
    "declaration, text",
    [
        ({"text": "{score:.2f}", "where": "set == 'a'"}, "0.25"),
        ({"text": "{count}", "where": "score > 0.4"}, "3"),
        ({"text": "{score:.3f}", "of": "mean"}, "0.625"),
        ({"text": "{score:.2f}", "of": "span"}, "0.25 to 1.00"),
        ({"text": "{learner}", "where": "set == 'b'", "join": "and"}, "x, y and x"),
        ({"text": "{learner}", "where": "set == 'c'", "join": ", ", "empty": "none"}, "none"),
        (
            {
                "text": "{x:.2f}",
                "by": ["set", "learner"],
                "wide": ["set", "learner", "score"],
                "where": "set == 'b'",
            },
            "0.75",
        ),
    ],
)
def test_a_figure_is_a_cell_an_aggregate_or_a_list(scores, declaration, text):
    assert tables.Figure(data="papers/any", **declaration).render() == text


def measured(learner, name, score, split=0, rows=1000, task="regression"):
    keys = {"set": name, "split": split, "rows": rows, "learner": learner, "task": task}
    scores = {"score": score, "log_loss": 1 - score, "auc": score}
    seconds = {"cpu_seconds": 2.0, "predict_seconds": 0.5}
    return keys | scores | seconds | {"variant": "clean"}


def test_tables_of_learners_take_rows_as_they_come(fresh, monkeypatch):
    """Several splits of some sets, learners that lack a set or a split, and learners of some sets only."""
    boosted = frames.BOOSTED
    rows = [
        measured(learner, f"set{i}", score - i / 10)
        for i in range(3)
        for learner, score in zip(boosted, (0.9, 0.8, 0.7))
    ]
    rows += [measured(k, "set0", s, split=1) for k, s in zip(boosted, (0.1, 0.2, 0.9))]
    rows += [
        measured("table", "set1", -5.0, split=1),
        measured("lightgbm", "alone", 0.9, rows=5000),
    ]
    rows += [measured("svm", "set0", 0.95), measured("svm", "set2", 0.6)]
    rows += [measured(learner, "classes", 0.5, task="classes") for learner in boosted]
    monkeypatch.setattr(tables, "results", lambda name: pd.DataFrame(rows))
    scores = frames.table_scores("r2")
    assert scores.loc[(1000, "set0")].tolist() == [0.5, 0.5, 0.8]
    assert scores.loc[(1000, "set1"), "table"] == 0.8
    assert len(scores) == 3, "ranks are of sets that all have"
    shown = {
        name: tables.TABLES[name].render()
        for name in ("lab_bands", "lab_pairs", "lab_readme", "lab_bands_seconds")
    }
    line = "| regression, R2, at most 1,000 rows | 3 | **1.50** | 2.17 | 2.33 |"
    assert line in shown["lab_bands"]
    assert "| regression, R2 | support vector machine | 2 | 1, 0, 1 |" in shown["lab_pairs"]
    assert "| regression, R2 | LightGBM | 3 | 2, 1, 0 | +0.067 |" in shown["lab_pairs"]
    assert "**1.50**, 2.17, 2.33 (3 sets) |" in shown["lab_readme"]
    assert "| at most 1,000 rows | 5 | 10, 10, 10 | 2.5, 2.5, 2.5 |" in shown["lab_bands_seconds"]
    figures = {
        name: tables.FIGURES[f"lab_bands_{name}"].render() for name in ("splits", "sets", "behind")
    }
    assert figures["splits"] == "1 to 2 (1,000 rows)" and figures["sets"] == "4"
    assert figures["behind"] == "set0 with 1,000 rows (.5000, CatBoost .8000)"


def test_the_steps_of_a_frame_come_in_their_order(scores, monkeypatch):
    """`only` and `with` before the mean, `then`, `where` and `sort` after it; a list of frames is stacked."""
    means = tables.Source(
        data="papers/any",
        only="learner == 'x'",
        with_={"twice": "2 * score"},
        by=("set",),
        then={"gain": "twice - score.min()"},
        where="gain > 0",
        sort="-set",
        keep=("set", "gain"),
    )
    assert means.rows().to_dict("list") == {"set": ["b", "a"], "gain": [1.25, 0.25]}
    monkeypatch.setitem(tables.FRAMES, "means", means)
    merged = tables.Source(data="papers/any", merge="means", where="learner == 'y'")
    assert merged.rows().gain.tolist() == [1.25]
    assert len(tables.Source(data=["papers/any", "means"]).rows()) == 6
    long = tables.Source(data="means", melt=("set", "name", "value"))
    assert long.rows().to_dict("list") == {
        "set": ["b", "a"],
        "name": ["gain", "gain"],
        "value": [1.25, 0.25],
    }


def test_a_missing_file_or_row_is_named():
    with pytest.raises(FileNotFoundError, match="benchmarks list"):
        tables.results("papers/nothing")
    figure = tables.Figure(
        data="papers/krein_table1", where="method == 'nothing'", text="{rmse:.1f}"
    )
    with pytest.raises(LookupError, match="0 rows"):
        figure.render()


# ---------------------------------------------------------------------------------------------------- commands
@pytest.mark.parametrize(
    "words, names, options",
    [
        ("papers krein --table 3 --sets yacht", ["papers krein table3"], ["--sets", "yacht"]),
        ("papers krein table3", ["papers krein table3"], []),
        ("papers hyper --figure 2", ["papers hyper figure2"], []),
        ("papers dank --figure 4", ["papers dank figures"], []),
        ("papers lab compare --full", ["papers lab compare"], ["--full"]),
        (
            "papers similarity",
            [
                "papers similarity real",
                "papers similarity generated",
                "papers similarity regression",
            ],
            [],
        ),
        ("speed krein --rows 500", ["speed krein"], ["--rows", "500"]),
    ],
)
def test_words_choose_claims(words, names, options):
    claims, rest = chosen(words.split())
    assert [claim.name for claim in claims] == names and rest == options


def test_a_group_alone_is_all_of_it():
    assert {claim.script for claim in chosen(["speed"])[0]} == {
        c.script for c in CLAIMS if c.group == "speed"
    }


@pytest.mark.parametrize(
    "words, said",
    [
        ("papers krain", "there are krein"),
        ("papers krein table4", "table1, table2, table3, figures"),
    ],
)
def test_unknown_words_are_answered_with_the_known(words, said, capsys):
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err


def test_every_script_and_every_file_of_rows_belongs_to_a_claim():
    scripts = {(c.group, c.script) for c in CLAIMS}
    for path in (*HERE.glob("papers/*.py"), *HERE.glob("speed/*.py")):
        if "__main__" in path.read_text(encoding="utf-8"):
            assert (path.parent.name, path.stem) in scripts, (
                f"{path.name}: say in benchmarks/claims.csv what it shows"
            )
    for path in (*HERE.glob("papers/results/*.csv"), *HERE.glob("speed/results/*.csv")):
        assert any(path.stem.startswith(s) for g, s in scripts if g == path.parts[-3]), (
            f"no claim writes {path.name}"
        )
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def test_every_command_on_a_page_names_a_claim():
    """A part that no claim has would be answered with the known ones, and not be run."""
    root = HERE.parent
    pages = [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/**/*.md")]
    commands = {}
    for page in pages:
        if "_build" not in page.parts:
            text = page.read_text(encoding="utf-8")
            for words in re.findall(r"python -m benchmarks ((?:papers|speed) [^`\n.]+)", text):
                commands.setdefault(words, page.name)
    assert len(commands) > 40
    for words, page in commands.items():
        claims, options = chosen(words.split())
        is_option = not options or options[0].startswith("-")
        has_positional = len(claims) == 1 and claims[0].part == ""
        assert claims and (is_option or has_positional), f"{page}: {words}"


class Parsed(Exception):
    """A script has understood its words."""


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_scripts_understand_the_words_of_their_claims(claim, monkeypatch):
    def understood(self, *args, **kwargs):
        parse(self, *args, **kwargs)
        raise Parsed

    parse = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", understood)
    monkeypatch.syspath_prepend(str(claim.path.parent))
    for further in (claim.reduced, claim.full):
        monkeypatch.setattr(sys, "argv", [str(claim.path), *claim.words(further)])
        try:
            with pytest.raises(Parsed):
                runpy.run_path(str(claim.path), run_name="__main__")
        except ImportError as error:
            pytest.skip(f"needs {error.name}")


def test_list_names_command_and_rows(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert (
        "python -m benchmarks papers krein table3" in out
        and "benchmarks/papers/results/krein_table3.csv" in out
    )


# ---------------------------------------------------------------------------------------------------- all, resumed
SCRIPTS = {
    "quick": "from pathlib import Path\nf = Path(__file__).parent / 'results'\n"
    "with open(f / 'quick.csv', 'a') as file:\n    file.write('row\\n')\n",
    "endless": "import time\ntime.sleep(60)\n",
    "broken": "raise SystemExit('no rows today')\n",
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Three scripts that end in a moment, or at the limit, or badly."""
    (tmp_path / "papers").mkdir()
    for name, text in SCRIPTS.items():
        (tmp_path / "papers" / f"{name}.py").write_text(text)
    monkeypatch.setattr("benchmarks.claims.HERE", tmp_path)
    monkeypatch.setattr("benchmarks.run.HERE", tmp_path)
    claims = [Claim("papers", name, "", name, name, needs_data="no") for name in SCRIPTS]
    claims.append(Claim("papers", "quick", "data", "needs data", "quick"))
    monkeypatch.delenv("MERCERLESS_DATA", raising=False)
    return claims, tmp_path / "runs" / "reduced"


def claims_of(folder):
    return json.loads((folder / "state.json").read_text())["claims"]


def silently(line, flush):
    """Print nothing."""


@pytest.mark.slow
def test_all_keeps_limits_resumes_and_writes_the_machine(small):
    claims, folder = small
    lines = []

    def say(line, flush):
        lines.append(line)

    assert not run_all(folder, claims, limit=5.0, say=say)  # one failed
    ends = {
        "papers quick": "done",
        "papers endless": "limit",
        "papers broken": "failed",
        "papers quick data": "no data",
    }
    assert {name: entry["status"] for name, entry in claims_of(folder).items()} == ends
    assert (folder / "logs" / "papers_broken.txt").read_text() == "no rows today\n"
    assert {"numpy", "scipy", "scikit-learn"} <= json.loads((folder / "machine.json").read_text())[
        "versions"
    ].keys()
    lines.clear()
    run_all(folder, [claims[0]], say=say)
    assert lines[0].split()[2:4] == ["finished", "before"]
    assert (folder / "papers" / "results" / "quick.csv").read_text() == "row\n"  # not run twice


def test_the_plan_says_what_is_on_record(small):
    claims, folder = small
    assert "0 of 4 claims are on record" in plan(claims)
    run_all(folder, [claims[0], *claims[2:]], limit=20.0, say=silently)
    words = plan(claims)
    assert "1 of 4 claims are on record" in words and words.count("not on record") == 3


def test_the_reduced_run_is_on_record_and_ends_within_an_hour():
    """A claim that is newer than the last run of everything comes on record with the next release."""
    known = known_runs()
    names = {claim.name for claim in CLAIMS}
    assert set(known) <= names and len(names - set(known)) <= 5, "run python -m benchmarks all"
    assert sum(entry["seconds"] for entry in known.values()) < 3600
    assert sum(entry["cpu_seconds"] for entry in known.values()) < 2 * 3600
    folder = HERE / "runs" / "reduced"
    for claim in (claim for claim in CLAIMS if claim.name in known):
        assert known[claim.name]["words"] == claim.words(claim.reduced), claim.name
        assert (folder / claim.csv.relative_to(HERE)).exists(), claim.name


def test_another_commit_runs_a_claim_again_and_keeps_the_others(small, monkeypatch):
    claims, folder = small
    quick, other = claims[0], claims[0]._replace(part="again")
    run_all(folder, [quick, other], say=silently)
    first = claims_of(folder)["papers quick"]["commit"]
    monkeypatch.setattr("benchmarks.machine.commit", lambda: "another")
    run_all(folder, [quick], say=silently)
    # not beside those of the first commit
    assert (folder / "papers" / "results" / "quick.csv").read_text() == "row\n"
    found = {name: entry["commit"] for name, entry in known_runs().items()}
    assert found == {"papers quick": "another", "papers quick again": first}


def test_another_machine_begins_anew(small, monkeypatch):
    claims, folder = small
    run_all(folder, claims[:1], say=silently)
    monkeypatch.setattr("benchmarks.machine.processor", lambda: "another")
    run_all(folder, [claims[2]], say=silently)
    assert list(claims_of(folder)) == ["papers broken"]
    assert not (folder / "papers" / "results" / "quick.csv").exists()


def test_the_benchmark_of_the_page_start_finds_its_command_and_example():
    start = runpy.run_path(str(HERE / "speed" / "start.py"))
    assert start["command"]()[:2] == ["mercerless", "compare"]
    assert 0 < len(start["code"]()) < 5, "the page promises a prediction in five lines"
    rows = pd.read_csv(HERE / "speed" / "results" / "start.csv")
    assert rows.seconds[:3].sum() < 300, "a newcomer gives it five minutes"


# ---------------------------------------------------------------------------------------------------- history
def rows(*ratios, better="more", processor="here"):
    return pd.DataFrame(
        {
            "commit": [f"c{k}" for k in range(len(ratios))],
            "processor": processor,
            "what": "w",
            "ratio": ratios,
        }
    ).assign(better=better)


@pytest.mark.parametrize(
    "found, named",
    [
        (rows(4.0, 4.2, 2.0), "c2"),
        (rows(1.4, 1.5, 3.0, better="less"), "c2"),
        (rows(4.0, 3.6, 4.4), None),
        (rows(1.4, 1.0, better="less"), None),
        (pd.concat([rows(4.0), rows(1.0, processor="elsewhere")]), None),
    ],
)
def test_a_slower_commit_is_named(found, named):
    sentences = history.slower(found)
    assert [named in sentence for sentence in sentences] == ([True] if named else [])


def test_every_speed_benchmark_has_a_history():
    scripts = {claim.script for claim in CLAIMS if claim.group == "speed"}
    assert scripts == set(history.SCRIPTS)
    for script in scripts:
        assert len(history.read(script)), (
            f"{script} has no ratio on record: python -m benchmarks speed {script}"
        )


def test_history_keeps_one_entry_for_a_commit_and_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "FOLDER", tmp_path)
    # no number, though it reads like one
    monkeypatch.setattr(history, "commit", lambda: "081e86239")
    first, again = history.append("krein"), history.append("krein")
    assert len(first) == len(again) == len(history.ratios("krein")) == 3
    monkeypatch.setattr(history, "commit", lambda: "later")
    assert len(history.append("krein")) == 6 and not history.slower(history.read("krein"))


@pytest.mark.parametrize("script", history.SCRIPTS)
def test_every_speed_benchmark_has_ratios(script):
    names = history.ratios(script).what
    assert len(names) and names.is_unique


def test_the_machine_is_described():
    found = machine.describe()
    assert found["versions"]["numpy"] and "cores" in found["processor"] and found["commit"]
    assert any(info["user_api"] == "blas" for info in found["blas"])


def test_runs_of_the_suite_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "RESULTS", tmp_path / "results" / "runs.csv")
    lines = [
        "== Prescott (Katmai)",
        "1 failed, 953 passed, 3 skipped, 2 xfailed, 1 error in 61.20s (0:01:01)",
    ]
    covered = ["TOTAL    12000   340   4000   200   96%", "12 passed in 9.60s"]
    for _ in range(2):  # the row of a run takes the place of the one before
        trust.merge([*trust.count("mutations", ["105 of 107 bugs caught"], "abc")])
        trust.merge([*trust.count("coverage", covered, "0815")])
        trust.merge([*trust.count("test-portable", lines, "abc")])
    portable, coverage, bugs = trust.RESULTS.read_text().splitlines()[1:]
    assert portable == "test-portable Prescott (Katmai),abc,953,2,3,2,61,"
    assert coverage == "coverage,0815,12,0,0,0,10,96"
    assert bugs == "mutations,abc,105,2,0,0,,"
    assert not [*trust.count("test", ["collected 12 items", "3 passed the gate"], "abc")]
