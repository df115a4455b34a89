"""What must hold for every file and every command: orders, names, subsets and options change nothing unsaid."""

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mercerless import KreinSVC
from mercerless.cli import main
from mercerless.commands import _arguments, _common, inspect
from mercerless.commands import predict as predict_command
from mercerless.comparison import items, learners, predictions
from mercerless.comparison.columns import DateFeatures, find_columns
from mercerless.comparison.learners import (
    SharedKreinSVC,
    SharedKreinSVR,
    SharedSpectrum,
    forget_decompositions,
)
from mercerless.comparison.problem import as_distances, make_problem, select
from mercerless.comparison.reading import read_problem
from mercerless.comparison.tables import Pairs
from mercerless.core.gaps import _complete, fill_gaps
from mercerless.spectra import SpectrumTransformer

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(11)
N = 40
X = RNG.normal(size=(N, 3))
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
DIRECTED = D + np.triu(RNG.uniform(0.1, 0.5, size=(N, N)), 1)
Y = np.arange(N) % 2
NAMES = tuple(f"n{i:02d}" for i in RNG.permutation(N))


@pytest.fixture(autouse=True)
def private_place(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


# ------------------------------------------------------------------------------------------------------ problems


def test_a_selection_takes_everything_of_its_items():
    rows = np.array([31, 4, 17, 5, 22, 8])
    problem = make_problem(
        DIRECTED, Y, kind="dissimilarity", ids=NAMES, groups=np.arange(N) % 7, X_test=D, y_test=Y
    )
    chosen = select(problem, rows)
    assert chosen.ids == tuple(NAMES[i] for i in rows)
    np.testing.assert_array_equal(chosen.X, DIRECTED[np.ix_(rows, rows)])
    np.testing.assert_array_equal(chosen.X_test, D[:, rows])
    np.testing.assert_array_equal(chosen.groups, rows % 7)
    np.testing.assert_array_equal(chosen.y, Y[rows])


def test_marked_test_items_are_rows_against_the_training_items():
    test = np.isin(np.arange(N), [2, 3, 30, 31])
    problem = make_problem(DIRECTED, Y, kind="dissimilarity", ids=NAMES, test=test)
    np.testing.assert_array_equal(problem.X_test, DIRECTED[test][:, ~test])
    np.testing.assert_array_equal(problem.X, DIRECTED[~test][:, ~test])
    np.testing.assert_array_equal(problem.y_test, Y[test])


def test_the_digest_tells_problems_apart_by_everything_they_hold():
    base = {"X": X, "y": Y, "groups": np.arange(N) % 8, "X_test": X[:6], "y_test": Y[:6]}
    changed = {
        "X": X + 1.0,
        "y": 1 - Y,
        "groups": np.arange(N) % 7,
        "X_test": X[6:12],
        "y_test": 1 - Y[:6],
    }
    digests = [make_problem(**base).digest()]
    digests += [make_problem(**{**base, field: value}).digest() for field, value in changed.items()]
    assert len(set(digests)) == 1 + len(changed)
    assert make_problem(**base).digest() == digests[0]


def test_neighbors_keep_their_order_in_every_kind():
    near = np.argsort(D[0])
    for rows, kind in ((D, "distance"), (D**2 - 1.0, "dissimilarity"), (3.0 - D, "similarity")):
        distances = as_distances(rows, kind, float(rows.min()), float(rows.max()))
        assert distances.min() >= 0.0
        np.testing.assert_array_equal(np.argsort(distances[0]), near)


# ------------------------------------------------------------------------------------------------------- columns


def test_dates_become_days_months_weekdays_and_hours():
    dates = pd.Series(["1970-01-02 06:00", "2021-03-07 23:30", None])
    numbers = DateFeatures().fit(dates.to_frame()).transform(dates.to_frame())
    np.testing.assert_allclose(numbers[0], [1.25, 1, 4, 6])  # a Friday
    np.testing.assert_allclose(numbers[1, 1:], [3, 6, 23])  # a Sunday
    assert np.isnan(numbers[2]).all()


def test_gaps_of_numbers_are_medians_beside_a_mark():
    column = np.where(np.arange(N) % 5 == 0, np.nan, X[:, 0])
    table = find_columns(pd.DataFrame({"a": column, "b": X[:, 1]}))
    prepared = table.preprocessor.fit_transform(table.X)
    np.testing.assert_array_equal(prepared[:, 2], np.isnan(column))
    np.testing.assert_array_equal(prepared[::5, 0], np.full(8, np.nanmedian(column)))
    # what is learned belongs to the training rows
    half = table.preprocessor.fit(table.X.iloc[:20]).transform(table.X)
    np.testing.assert_array_equal(half[::5, 0], np.full(8, np.nanmedian(column[:20])))


# --------------------------------------------------------------------------------------------------------- files


def table_text(order):
    lines = [f"{NAMES[i]},{X[i, 0]},{X[i, 1]},{X[i, 2]}" for i in order]
    return "\n".join(["id,a,b,c", *lines])


def test_labels_and_groups_in_files_are_found_by_the_names_of_the_items():
    straight = np.arange(N)
    Path("x.csv").write_text(table_text(straight))
    for name, values in (("y", Y), ("g", straight % 6)):
        for order, end in ((straight, ""), (RNG.permutation(N), "-shuffled")):
            lines = [f"{NAMES[i]},{values[i]}" for i in order]
            Path(f"{name}{end}.csv").write_text("\n".join(["id,label", *lines]))
    problems = [
        read_problem("x.csv", labels=f"y{end}.csv", groups=f"g{end}.csv")
        for end in ("", "-shuffled")
    ]
    for problem in problems:
        np.testing.assert_array_equal(problem.y, Y)
        np.testing.assert_array_equal(problem.groups, straight % 6)


def test_a_column_of_train_and_test_splits_the_rows():
    which = np.where(np.arange(N) % 4 == 0, "test", "train")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(split=which, label=Y)
    frame.to_csv("t.csv", index=False)
    problem = read_problem("t.csv", labels="label")
    np.testing.assert_allclose(problem.X_test, X[::4])
    np.testing.assert_allclose(problem.X, np.delete(X, np.arange(0, N, 4), axis=0))


def test_the_test_set_of_an_npz_is_found_whatever_comes_first():
    arrays = {"y_test": Y[30:], "X_test": DIRECTED[30:, :30], "y": Y[:30], "X": DIRECTED[:30, :30]}
    for order in (list(arrays), list(arrays)[::-1]):
        np.savez("a.npz", **{name: arrays[name] for name in order})
        problem = read_problem("a.npz", kind="dissimilarity")
        np.testing.assert_array_equal(problem.X_test, arrays["X_test"])
        np.testing.assert_array_equal(problem.y_test, Y[30:])


@pytest.mark.parametrize("kind", ["distance", "similarity"])
def test_pairs_that_are_not_listed_are_the_farthest(kind):
    values = D if kind == "distance" else 10.0 - D
    i, j = np.triu_indices(N, 1)
    is_near = values[i, j] <= 2.0 if kind == "distance" else values[i, j] >= 8.0
    is_near |= i == 0  # everyone is in some pair
    i, j = i[is_near], j[is_near]
    lines = [f"{NAMES[a]},{NAMES[b]},{values[a, b]}" for a, b in zip(i, j)]
    Path("p.csv").write_text("\n".join([f"a,b,{kind}", *lines]))
    Path("y.csv").write_text("\n".join(["id,label", *(f"{NAMES[k]},{Y[k]}" for k in range(N))]))
    problem = read_problem("p.csv", labels="y.csv")
    place = [problem.ids.index(name) for name in NAMES]
    matrix = problem.X[np.ix_(place, place)]
    assert problem.kind == kind
    np.testing.assert_array_equal(problem.y[place], Y)
    np.testing.assert_allclose(matrix[i, j], values[i, j])
    np.testing.assert_array_equal(matrix, matrix.T)
    listed = np.eye(N, dtype=bool)
    listed[i, j] = listed[j, i] = True
    extreme = values[i, j].max() if kind == "distance" else 0.0
    np.testing.assert_array_equal(matrix[~listed], np.full((~listed).sum(), extreme))


@pytest.mark.parametrize(
    "kind, nowhere, unlisted", [("distance", 9.0, 5.0), ("similarity", 0.0, 0.0)]
)
def test_new_items_are_farthest_from_training_items_that_no_pair_names(kind, nowhere, unlisted):
    first = ["new 1", "new 1", "new 2", "train 1"]
    second = ["train 1", "train 2", "train 1", "new 3"]
    values = np.array([1.5, 2.5, 3.5, 5.0])
    pairs = Pairs(Path("new.tsv"), first, second, values, "value", "a list of pairs", kind)
    description = {"ids": ["train 3", "train 2", "train 1"], "kind": kind, "largest": 9.0}
    rows, names = predict_command.pair_rows(pairs, description)
    expected = {
        "new 1": [nowhere, 2.5, 1.5],
        "new 2": [nowhere, unlisted, 3.5],
        "new 3": [nowhere, unlisted, 5.0],
    }
    assert sorted(names) == sorted(expected)
    for name, row in zip(names, rows):
        np.testing.assert_array_equal(row, expected[name])


# ---------------------------------------------------------------------------------------------------------- gaps


def test_gaps_are_completed_in_the_same_way_for_items_in_any_order():
    base = X @ X.T + 3.0
    holes = base.copy()
    for i, j in ((2, 9), (11, 30), (5, 17)):
        holes[i, j] = holes[j, i] = np.nan
    holes[4, 6] = np.nan  # its mirror image is known
    done = fill_gaps(holes)
    assert done.n_filled == 7 and done.r2 > 0.9
    known = ~np.isnan(holes)
    np.testing.assert_array_equal(done.X[known], base[known])
    np.testing.assert_array_equal(done.X, done.X.T)
    assert done.X[4, 6] == base[6, 4]
    assert np.abs(done.X - base)[~known].max() < 0.1 * base.std()


def test_directions_of_a_directed_matrix_are_completed_apart():
    out, back = RNG.normal(size=(2, N))
    base = out[:, None] + 3.0 * back  # sums of a row's and a column's number
    holes = base.copy()
    holes[3, 8] = np.nan
    done = fill_gaps(holes)
    assert done.rank == 0 or done.r2 > 0.99
    assert abs(done.X[3, 8] - base[3, 8]) < 0.3 and done.X[8, 3] == base[8, 3]


def test_rank_zero_is_the_means_of_its_row_and_column():
    out, back = RNG.normal(size=(2, N))
    base = 50.0 + out[:, None] + 3.0 * back
    holes = base.copy()
    holes[3, 8] = np.nan
    expected = np.nanmean(holes[3]) + np.nanmean(holes[:, 8]) - np.nanmean(holes)
    assert _complete(holes, 0)[0][3, 8] == pytest.approx(expected)
    assert abs(expected - base[3, 8]) < 0.5


# --------------------------------------------------------------------------------------------- learners and items


@pytest.mark.parametrize(
    "plain, shared, settings",
    [
        (KreinSVC, SharedKreinSVC, [{"center": True}, {"center": False}]),
        (KreinSVC, SharedKreinSVC, [{"negative_penalty": 1.0}, {"negative_penalty": 9.0}]),
        (SpectrumTransformer, SharedSpectrum, [{"mode": "clip"}, {"mode": "flip"}]),
    ],
)
def test_decompositions_are_shared_only_by_equal_settings(plain, shared, settings):
    K = 2.0 - D**1.5  # indefinite
    train, new = K[:30, :30], K[30:, :30]
    outputs = []
    for setting in settings:
        options = setting if plain is SpectrumTransformer else {**setting, "kernel": "precomputed"}
        models = [make(**options).fit(train, Y[:30]) for make in (plain, shared)]
        name = "transform" if plain is SpectrumTransformer else "decision_function"
        expected, output = (getattr(model, name)(new) for model in models)
        np.testing.assert_allclose(output, expected, atol=1e-8)
        outputs.append(output)
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3


@pytest.mark.parametrize("machine", [SharedKreinSVC, SharedKreinSVR])
def test_machines_of_other_penalties_share_one_decomposition(machine):
    forget_decompositions()
    K = 2.0 - D**1.5
    machine(kernel="precomputed", C=1.0).fit(K, Y)
    (first,) = learners._MEMORY.results.values()
    machine(kernel="precomputed", C=10.0).fit(K, Y)
    (second,) = learners._MEMORY.results.values()
    assert second is first


@pytest.mark.parametrize("kind", ["table", "distance", "similarity"])
def test_distances_of_some_items_are_those_among_all(kind):
    given = {"table": X, "distance": D, "similarity": X @ X.T}[kind]
    rows = np.array([3, 8, 21, 22, 39])
    among_all = items.distances_of(given, kind, np.arange(N))
    np.testing.assert_allclose(
        items.distances_of(given, kind, rows), among_all[np.ix_(rows, rows)], atol=1e-9
    )


def fake_comparison(splits, rows_of_splits, predicted, y):
    """What the sections on items read of a comparison of one learner."""
    records = {
        split: SimpleNamespace(
            target=y[rows_of_splits[split]], predicted=predicted[split[0]][rows_of_splits[split]]
        )
        for split in splits
    }
    return SimpleNamespace(
        problem=SimpleNamespace(y=y),
        splits=splits,
        rows_of_splits=rows_of_splits,
        results={"one": records},
        names=["one", "dummy"],
    )


def test_predictions_of_items_are_those_of_the_first_repeat():
    y = RNG.integers(0, 3, 60)
    predicted = {0: y.copy(), 1: (y + 1) % 3}
    rows = {(r, f): np.arange(60)[(np.arange(60) + r) % 5 == f] for r in (0, 1) for f in range(5)}
    found = items.predicted_items(fake_comparison(sorted(rows), rows, predicted, y), "one")
    np.testing.assert_array_equal(np.sort(found.rows), np.arange(60))
    np.testing.assert_array_equal(found.target, y[found.rows])
    np.testing.assert_array_equal(found.predicted, found.target)


def test_suspects_are_the_items_that_were_predicted_otherwise():
    """Also if the first items were never tested, so that places and items differ."""
    y = np.repeat([0, 1], 60)[RNG.permutation(120)]
    wrong = np.array([37, 90])
    predicted = y.copy()
    predicted[wrong] = 1 - predicted[wrong]
    rows = {(0, f): np.arange(20 + f, 120, 5) for f in range(5)}
    suspects = items.find_suspects(fake_comparison(sorted(rows), rows, {0: predicted}, y))
    assert set(suspects.items) == set(wrong)


def test_the_confusion_matrix_has_given_classes_in_its_rows():
    y = np.repeat(["ash", "elm", "oak"], [10, 20, 30])
    codes = np.repeat([0, 1, 2], [10, 20, 30])
    predicted = codes.copy()
    predicted[:7] = 2  # ash taken for oak
    predicted[10:12] = 0
    held = items.Predicted(np.arange(60), codes, predicted)
    page = predictions.confusion_section(held, SimpleNamespace(y=y), "")
    assert "hardest class is ash" in page and "7 of 10 are taken for oak" in page
    assert "30 %" in page and "90 %" in page


# ------------------------------------------------------------------------------------------------------ commands


def parse(*words):
    parser = argparse.ArgumentParser()
    _arguments.add_data_arguments(parser)
    _arguments.add_run_arguments(parser)
    return parser.parse_args(words)


def test_every_option_about_the_data_arrives(monkeypatch, capsys):
    given = {}

    def listen(path, **options):
        given.update(options, path=path)
        return make_problem(X, Y)

    monkeypatch.setattr(_common, "read_problem", listen)
    words = "t.csv --labels L --kind table --task regression --groups G --array A --drop p --drop q"
    words += " --similarity indel --no-split --format table --sheet 2 --missing NN --missing=-9"
    _common.read(parse(*words.split()))
    assert given == {
        "path": "t.csv",
        "labels": "L",
        "kind": "table",
        "task": "regression",
        "groups": "G",
        "array": "A",
        "drop": ["p", "q"],
        "similarity": "indel",
        "use_split": False,
        "format": "table",
        "sheet": "2",
        "missing": ["NN", "-9"],
    }
    _common.read(parse("t.csv"))
    assert given["use_split"] is True and given["drop"] == [] and given["kind"] is None


def test_every_option_about_the_run_arrives(monkeypatch):
    given = {}
    monkeypatch.setattr(
        _common, "compare_problem", lambda problem, options: given.update(vars(options))
    )
    words = "t.csv --metric mae --learners a,b --budget 90s --repeats 4 --jobs 3 --seed 5"
    args = parse(*words.split(), "--no-curves", "--resume")
    args.command = "compare"
    args.started = 17.0
    args.processes = ["a process"]
    _common.run_comparison(args, None)
    assert given.pop("progress") is not None
    assert given == {
        "metric": "mae",
        "learners": ["a", "b"],
        "budget": "90s",
        "repeats": 4,
        "curves": False,
        "n_jobs": 3,
        "random_state": 5,
        "resume": True,
        "started": 17.0,
        "processes": ["a process"],
    }
    args = parse("t.csv", "--budget", "none")
    args.command = "compare"
    args.started = 18.0
    args.processes = []
    _common.run_comparison(args, None)
    assert given["budget"] is None and given["learners"] is None and given["curves"] is True


def test_inspect_finds_labels_by_the_names_of_the_items(capsys):
    lines = [[NAMES[i], *map(repr, D[i].tolist())] for i in range(N)]
    Path("d.csv").write_text("\n".join(",".join(line) for line in [["", *NAMES], *lines]))
    order = RNG.permutation(N)
    Path("y.csv").write_text("\n".join(["id,label", *(f"{NAMES[i]},{Y[i]}" for i in order)]))
    args = argparse.Namespace(
        file="d.csv", array=None, labels="y.csv", kind=None, format=None, sheet=None
    )
    matrix = inspect.read(args)
    np.testing.assert_array_equal(matrix.labels, Y)
    assert matrix.kind == "distance"


@pytest.mark.parametrize(
    "factor, labels, name",
    [
        (1.0, None, "SimilarityClassifier"),
        (1.0, X[:, 0], "SimilarityRegressor"),
        (9.0, None, "SimilarityClassifier"),
        (9.0, X[:, 0], "SimilarityRegressor"),
    ],
)
def test_inspect_suggests_what_suits_the_matrix_and_its_labels(factor, labels, name):
    values = 2.0 - D**1.5
    values = values + (np.triu(values, 1) * (factor - 1.0) if factor > 1.0 else 0.0)
    matrix = inspect.InspectedMatrix(values, "m", labels, "similarity")
    report = inspect.indefiniteness(inspect.similarities(matrix))
    lines = [line for line in inspect.describe(matrix, report) if f"mercerless.{name}(" in line]
    assert len(lines) == 1
    assert ('direction="both"' in lines[0]) == (factor > 1.0)


def test_cells_that_a_spreadsheet_would_run_are_written_as_text():
    for cell in ("=1+1", "+cmd", "-x", "@a", "\tb", "\rc"):
        assert predict_command.harmless(cell) == f"'{cell}"
    for cell in ("-1.5", "+2e3", "a=b", "", 3, -2.5):
        assert predict_command.harmless(cell) == cell


def test_an_output_that_is_an_input_raises():
    Path("a.csv").write_text("1")
    Path("b.csv").symlink_to("a.csv")
    Path("c.csv").write_text("1")
    for place in (["a.csv"], ["c.csv", "a.csv"], [None, "b.csv"]):
        with pytest.raises(ValueError, match="also an input"):
            _common.check_not_input(Path("a.csv"), *place)
    _common.check_not_input(Path("a.csv"), "c.csv", None)
    _common.check_not_input(Path("new.csv"), "new.csv")


@pytest.mark.parametrize(
    "error, code",
    [(ValueError("no"), 2), (OSError("no"), 2), (KeyboardInterrupt(), 130), (None, 0)],
)
def test_exit_codes(monkeypatch, capsys, error, code):
    def run(args):
        if error is not None:
            raise error

    monkeypatch.setattr(inspect, "run", run)
    assert main(["inspect"]) == code
    assert ("mercerless inspect: " in capsys.readouterr().err) == (code != 0)
