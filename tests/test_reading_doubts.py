"""Files and frames that were once read wrongly without a word: now right, or with a question."""

import json

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from mercerless import persistence
from mercerless.cli import main
from mercerless.commands import inspect, predict
from mercerless.commands.fit import describe
from mercerless.comparison import read_problem
from mercerless.comparison.labels import read_labels
from mercerless.comparison.learners import Terms, select_learners
from mercerless.comparison.options import Options
from mercerless.comparison.problem import make_problem
from mercerless.comparison.result import _work_folder
from mercerless.comparison.words import check_positive_class

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(size=(N, 3)).round(3)
Y = np.where(np.arange(N) % 3 == 0, "left", "right")
D = np.abs(X[:, :1] - X[:, 0]).round(3)
IDS = [f"item{i:02d}" for i in range(N)]
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])
SHUFFLED = RNG.permutation(N)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "y.txt").write_text("\n".join(Y))
    return tmp_path


def write(name, content, encoding="utf-8"):
    with open(name, "w", encoding=encoding, newline="") as file:
        file.write(content)
    return name


def guesses(problem):
    return {guess.what: f"{guess.value} ({guess.why})" for guess in problem.guesses}


# -------------------------------------------------------------------------------------------------------- sheets


def workbook(rows, merged=()):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    book.create_sheet("other").merge_cells("A1:C30")  # which must not count
    book.save("t.xlsx")
    return "t.xlsx"


ROWS = [[*map(float, row), label] for row, label in zip(X, Y)]


def test_merged_cells_of_the_rows_all_have_the_value():
    order = np.argsort(Y, kind="stable")
    n_left = int((Y == "left").sum())
    merged = [f"D2:D{n_left + 1}", f"D{n_left + 2}:D{N + 1}"]
    path = workbook([["a", "b", "c", "label"], *(ROWS[i] for i in order)], merged)
    problem = read_problem(path)
    np.testing.assert_array_equal(problem.y, Y[order])
    np.testing.assert_allclose(problem.X, X[order])
    assert "every cell of D2:D11 and 1 more has the value" in guesses(problem)["merged cells"]


@pytest.mark.parametrize(
    "header, merged, names",
    [
        ([["size", None, "w", "label"], ["a", "b", None, None]], "A1:B1 C1:C2 D1:D2", "a b w"),
        (
            [["size", None, "of", "label"], ["a", "b", "a", None]],
            "A1:B1 D1:D2",
            "size a,size b,of a",
        ),
        ([["size", None, None, "label"], [2019, 2020, 2021, None]], "A1:C1 D1:D2", None),
        ([["a", "b", "c", "label"], []], "A1:A2 B1:B2 C1:C2 D1:D2", "a b c"),
    ],
)
def test_a_header_of_merged_cells_is_one_line(header, merged, names):
    problem = read_problem(workbook([*header, *ROWS], merged.split()))
    np.testing.assert_allclose(problem.X, X)
    np.testing.assert_array_equal(problem.y, Y)
    expected = ["size 2019", "size 2020", "size 2021"]
    if names is not None:
        expected = names.split("," if "," in names else " ")
    assert list(problem.roles) == expected and problem.target == "label"
    assert "lines 1 to 2 are one header" in guesses(problem)["merged cells"]


@pytest.mark.parametrize(
    "above, merged",
    [
        ([["A title", None, None, None]], ["A1:D1"]),
        ([["A title"], ["of 2020"], []], []),
        ([[], []], []),
    ],
)
def test_titles_and_empty_lines_above_a_table_of_a_sheet(above, merged):
    problem = read_problem(workbook([*above, ["a", "label", "b", "c"], *_label_second()], merged))
    np.testing.assert_allclose(problem.X, X)
    np.testing.assert_array_equal(problem.y, Y)


def _label_second():
    return [[a, label, b, c] for a, b, c, label in ROWS]


def test_a_matrix_may_begin_anywhere_in_a_sheet():
    rows = [[None, None, *IDS], *([None, item, *map(float, row)] for item, row in zip(IDS, D))]
    for above in ([], [[]], [[None, "Distances"]]):
        problem = read_problem(workbook([*above, *rows]), labels="y.txt")
        assert problem.kind == "distance" and problem.ids == tuple(IDS)
        np.testing.assert_allclose(problem.X, D)


def test_a_word_beside_a_table_does_not_cost_its_header():
    rows = [[*row, None, "look" if i == 3 else None] for i, row in enumerate(ROWS)]
    problem = read_problem(workbook([["a", "b", "c", "label"], *rows]))
    np.testing.assert_array_equal(problem.y, Y)
    assert list(problem.roles)[:3] == ["a", "b", "c"]


# ---------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("word", ["Total", "Mittelwert", ""])
def test_sums_and_means_below_a_table_are_no_item(word):
    table = TABLE.assign(target=(X @ [1, 2, 3]).round(3))
    table.insert(0, "shop", [f"shop {'abc'[i % 3]}" for i in range(N)])
    numbers = table.drop(columns="shop")
    last = numbers.mean() if word == "Mittelwert" else numbers.sum()
    path = write("t.csv", table.to_csv(index=False) + ",".join([word, *map(str, last)]) + "\n")
    problem = read_problem(path)
    assert len(problem.y) == N and "sums or means" in guesses(problem)["left out"]
    np.testing.assert_allclose(problem.y, table["target"])
    almost = last + 0.5 * numbers.std()
    write("t.csv", table.to_csv(index=False) + ",".join(["shop a", *map(str, almost)]) + "\n")
    assert len(read_problem("t.csv").y) == N + 1


@pytest.mark.parametrize("first", ["sample_id", "Probe"])
def test_ascending_whole_numbers_above_decimals_are_a_header(first):
    values = np.column_stack([X, X[:, ::-1]])
    rows = [",".join([item, *map(str, row)]) for item, row in zip(IDS, values)]
    header = ",".join([first, *map(str, range(900, 912, 2))])
    problem = read_problem(write("t.csv", "\n".join([header, *rows])))
    np.testing.assert_allclose(problem.X, values[:, :5])
    np.testing.assert_allclose(problem.y, values[:, 5])
    assert list(problem.roles) == ["900", "902", "904", "906", "908"]


def test_points_that_only_separate_thousands():
    numbers = [123, 1234, 56789, 1234567, *range(900, 900 + N - 4)]
    german = [f"{number:,}".replace(",", ".") for number in numbers]
    rows = [f"{number};{i % 7};{label}" for i, (number, label) in enumerate(zip(german, Y))]
    problem = read_problem(write("t.csv", "\n".join(["a;b;label", *rows])))
    np.testing.assert_allclose(problem.X[:, 0], numbers)
    assert "read as 1234" in guesses(problem)["numbers"]
    # decimals with three digits, and hardly a whole number beside them
    rows = [f"{1.001 + 0.1 * i:.3f};{i % 7};{label}" for i, label in enumerate(Y)]
    rows[3] = f"2;3;{Y[3]}"
    problem = read_problem(write("t.csv", "\n".join(["a;b;label", *rows])))
    np.testing.assert_allclose(problem.X[4:, 0], 1.001 + 0.1 * np.arange(4, N))
    rows = [f"192.168.{100 + i}.{200 + i};{i % 7};{label}" for i, label in enumerate(Y)]
    problem = read_problem(write("t.csv", "\n".join(["a;b;label", *rows])))
    assert "numbers" not in guesses(problem)


def test_decimal_commas_may_come_late():
    cells = [*map(str, range(200)), *(f"{i},5" for i in range(200))]
    rows = [f"{cell};{i % 7};{'left' if i % 3 else 'right'}" for i, cell in enumerate(cells)]
    problem = read_problem(write("t.csv", "\n".join(["a;b;label", *rows])))
    np.testing.assert_allclose(problem.X[200:, 0], np.arange(200) + 0.5)


def test_a_mark_in_the_texts_of_most_rows_separates_no_cells():
    table = TABLE.assign(go=[f"GO:{i % 3};GO:7" for i in range(N)], label=Y)
    problem = read_problem(write("t.csv", "A title\n" + table.to_csv(index=False)))
    np.testing.assert_allclose(problem.X[["a", "b", "c"]], X)


def test_errors_of_excel_in_other_languages_are_gaps():
    rows = [f"{'#NV' if i == 3 else i};{i % 7};{'#WERT!' if i < 6 else Y[i]}" for i in range(N)]
    problem = read_problem(write("t.csv", "\n".join(["a;b;label", *rows])))
    assert set(problem.y) == {"left", "right"} and len(problem.y) == N - 6


def test_a_list_of_names_above_lists_of_numbers_in_json():
    rows = [["a", "label", "b"], *([a, label, b] for a, b, _, label in ROWS)]
    problem = read_problem(write("t.json", json.dumps(rows)))
    np.testing.assert_allclose(problem.X, X[:, :2])
    np.testing.assert_array_equal(problem.y, Y)


def test_lower_case_of_fasta_is_no_other_letter():
    words = ["".join(RNG.choice(list("ACGT"), 12)) for _ in range(N)]
    upper = "".join(f">{item}\n{word}\n" for item, word in zip(IDS, words))
    lower = "".join(f">{item}\n{word[:6]}{word[6:].lower()}\n" for item, word in zip(IDS, words))
    expected = read_problem(write("u.fa", upper), labels="y.txt")
    problem = read_problem(write("l.fa", lower), labels="y.txt")
    np.testing.assert_array_equal(problem.X, expected.X)


@pytest.mark.parametrize("form", ["arff", "feather"])
def test_numbers_that_a_file_declares_to_be_categories(form):
    codes = np.arange(N) % 3
    marks = np.arange(N) % 5 + 0.5
    if form == "arff":
        head = "@relation r\n@attribute a numeric\n@attribute code {0,1,2}\n"
        head += "@attribute class {0.5,1.5,2.5,3.5,4.5}\n@data\n"
        rows = [f"{a},{code},{mark}\n" for a, code, mark in zip(X[:, 0], codes, marks)]
        path = write("t.arff", head + "".join(rows))
    else:
        path = "t.feather"
        columns = {"code": pd.Categorical(codes), "class": pd.Categorical(marks)}
        pd.DataFrame({"a": X[:, 0], **columns}).to_feather(path)
    problem = read_problem(path)
    assert problem.roles == {"a": "number", "code": "category"}
    assert problem.task == "classification"
    assert read_problem(path, task="regression").task == "regression"


def test_evalues_in_the_place_of_bit_scores_raise():
    def hits(order):
        cells = [f"{i}\t{j}\t99.0\t90\t1\t0\t1\t90\t1\t90\t" for i in IDS for j in IDS]
        ends = {"evalue": "1e-30", "bits": "150"}
        return "".join(f"{cell}{ends[order[0]]}\t{ends[order[1]]}\n" for cell in cells)

    pd.DataFrame({"id": IDS, "label": Y}).to_csv("y.csv", index=False)
    problem = read_problem(write("h.tsv", hits(["evalue", "bits"])), labels="y.csv")
    assert (problem.X == 150.0).all()
    with pytest.raises(ValueError, match="with the evalue before the bit score"):
        read_problem(write("h.tsv", hits(["bits", "evalue"])), labels="y.csv")


def test_names_of_several_words_in_phylip():
    rows = [f"Homo sap{i:02d} " + " ".join(map(str, row)) for i, row in enumerate(D)]
    path = write("d.phy", "\n".join([str(N), *rows]) + "\n")
    problem = read_problem(path, labels="y.txt")
    assert problem.kind == "distance" and problem.ids[:2] == ("Homo_sap00", "Homo_sap01")
    np.testing.assert_allclose(problem.X, D)


def test_numbers_in_brackets_are_no_molecules():
    rows = [f"[{i + 1}] {a} {b} {label}" for i, (a, b, _, label) in enumerate(ROWS)]
    problem = read_problem(write("t.txt", "\n".join(rows)))
    assert problem.kind == "table"
    np.testing.assert_allclose(problem.X, X[:, :2])


# -------------------------------------------------------------------------------------------------------- labels


def test_a_label_too_many_is_no_header():
    TABLE.to_csv("t.csv", index=False)
    write("more.txt", "\n".join([*Y, "left"]))
    with pytest.raises(ValueError, match="There are 31 labels for 30 items"):
        read_problem("t.csv", labels="more.txt")
    numbers = RNG.normal(size=N + 1).round(4)
    write("more.txt", "\n".join(map(str, numbers)))
    with pytest.raises(ValueError, match="There are 31 labels for 30 items"):
        read_problem("t.csv", labels="more.txt")
    for header, labels in (("species", Y), ("0", numbers[1:]), ("price", numbers[1:])):
        write("more.txt", "\n".join([header, *map(str, labels)]))
        np.testing.assert_array_equal(read_labels("more.txt", N), labels)


def test_numbered_labels_in_another_order_are_a_question():
    TABLE.to_csv("t.csv", index=False)
    labels = pd.DataFrame({"id": np.arange(1, N + 1), "label": Y})
    labels.to_csv("y.csv", index=False)
    np.testing.assert_array_equal(read_problem("t.csv", labels="y.csv").y, Y)
    labels.iloc[SHUFFLED].to_csv("y.csv", index=False)
    with pytest.raises(ValueError, match="numbers the items in another order"):
        read_problem("t.csv", labels="y.csv")
    TABLE.set_axis(range(1, N + 1)).rename_axis("id").to_csv("t.csv")
    np.testing.assert_array_equal(read_problem("t.csv", labels="y.csv").y, Y)


def test_names_beside_labels_in_arrays_count():
    TABLE.set_axis(IDS).rename_axis("id").to_csv("t.csv")
    np.savez("y.npz", ids=np.array(IDS)[SHUFFLED], y=Y[SHUFFLED])
    np.testing.assert_array_equal(read_problem("t.csv", labels="y.npz").y, Y)
    np.savez("d.npz", D=D, names=np.array(IDS))
    pd.DataFrame({"id": IDS, "label": Y}).iloc[SHUFFLED].to_csv("y.csv", index=False)
    problem = read_problem("d.npz", labels="y.csv")
    assert problem.ids == tuple(IDS)
    np.testing.assert_array_equal(problem.y, Y)


def test_numbers_of_items_behind_labels_are_no_labels():
    TABLE.to_csv("t.csv", index=False)
    scores = RNG.normal(size=N).round(4)
    pd.DataFrame({"score": scores, "id": range(N)}).to_csv("y.csv", index=False)
    np.testing.assert_array_equal(read_problem("t.csv", labels="y.csv").y, scores)
    pd.DataFrame({"score": scores, "other": scores[::-1]}).to_csv("y.csv", index=False)
    with pytest.raises(ValueError, match="has 2 columns that may be labels"):
        read_problem("t.csv", labels="y.csv")


def test_groups_of_a_file_in_the_order_of_the_items_are_mentioned():
    TABLE.assign(label=Y).to_csv("t.csv", index=False)
    groups = pd.DataFrame({"id": IDS, "group": [f"g{i // 3}" for i in range(N)]})
    groups.to_csv("g.csv", index=False)
    found = guesses(read_problem("t.csv", groups="g.csv"))
    assert "in the order of the items" in found["groups"]


@pytest.mark.parametrize(
    "of_data, of_labels",
    [("{}", "{:03d}"), ("S{:02d}", "s{:02d}"), ("s-{}", "s.{}"), ("a {}", "a_{:02d}")],
)
def test_names_that_are_written_in_another_way_are_named(of_data, of_labels):
    numbers = np.arange(90, 90 + N)
    labels = [of_labels.format(i) for i in numbers]
    labels[N // 3 :] = [of_data.format(i) for i in numbers[N // 3 :]]
    TABLE.set_axis([of_data.format(i) for i in numbers]).rename_axis("id").to_csv("t.csv")
    pd.DataFrame({"id": labels, "label": Y}).to_csv("y.csv", index=False)
    with pytest.raises(ValueError, match="write the names in both files in the same way"):
        read_problem("t.csv", labels="y.csv")


def test_a_coordinate_y_is_no_label_beside_another():
    table = TABLE.rename(columns={"a": "x", "b": "y"}).assign(Class=Y)
    problem = read_problem(write("t.csv", table.to_csv(index=False)))
    assert problem.target == "Class" and list(problem.roles) == ["x", "y", "c"]
    assert "'y' is no label then" in guesses(problem)["labels"]


def test_the_target_of_an_edge_is_no_label():
    ends = RNG.choice(list("ABCDE"), size=(100, 2))
    edges = pd.DataFrame(ends, columns=["Source", "Target"]).assign(weight=1.0)
    write("e.csv", edges.to_csv(index=False))
    with pytest.raises(ValueError, match="seems to be a list of edges without labels"):
        read_problem("e.csv")
    assert read_problem("e.csv", labels="Target").target == "Target"


def test_two_columns_of_numbers_may_be_a_table_or_edges():
    table = pd.DataFrame({"age": RNG.integers(1, N, N), "children": RNG.integers(1, 4, N)})
    table.to_csv("t.csv", index=False)
    pd.DataFrame({"id": np.arange(1, N + 1), "label": Y}).to_csv("y.csv", index=False)
    with pytest.raises(ValueError, match="say --kind table for a table, or --kind similarity"):
        read_problem("t.csv", labels="y.csv")
    problem = read_problem("t.csv", labels="y.csv", kind="table")
    np.testing.assert_array_equal(problem.X, table)


def pair_lines(values):
    pairs = [(i, j) for i in range(N) for j in range(i)]
    rows = [f"{IDS[SHUFFLED[i]]},{IDS[SHUFFLED[j]]},{values[i, j]}" for i, j in pairs]
    return "\n".join(["first,second,distance", *rows])


def test_labels_of_pairs_need_names():
    """Pairs have no order, so that labels in a list could be of any item."""
    write("p.csv", pair_lines(D))
    with pytest.raises(ValueError, match="lists pairs of items, which have no order"):
        read_problem("p.csv", labels="y.txt")
    pd.DataFrame({"id": np.array(IDS)[SHUFFLED], "label": Y}).to_csv("y.csv", index=False)
    problem = read_problem("p.csv", labels="y.csv")
    order = np.argsort(SHUFFLED)
    np.testing.assert_array_equal(problem.y, Y[order])
    np.testing.assert_allclose(problem.X, D[np.ix_(order, order)])


def test_dissimilar_pairs_are_far_and_an_item_is_near_itself():
    write("p.csv", "\n".join(pair_lines(D).split("\n")[:-1]))
    pd.DataFrame({"id": IDS, "label": Y}).to_csv("y.csv", index=False)
    X = read_problem("p.csv", labels="y.csv", kind="dissimilarity").X
    assert (np.diagonal(X) == 0.0).all()
    last, before = SHUFFLED[N - 1], SHUFFLED[N - 2]
    assert X[last, before] == X[before, last] == D.max()


def test_an_item_named_like_labels_is_no_label(capsys):
    names = [*IDS[:-1], "Y"]
    matrix = pd.DataFrame(D, names, names)
    matrix.to_csv("D.csv")
    with pytest.raises(ValueError, match="has no labels"):
        read_problem("D.csv")
    np.testing.assert_allclose(read_problem("D.csv", labels="y.txt").X, D)
    np.testing.assert_allclose(inspect.read_matrix("D.csv")[0], D)
    matrix.to_csv("D.csv", index=False)
    np.testing.assert_allclose(inspect.read_matrix("D.csv")[0], D)


def test_classes_that_may_be_gaps_are_mentioned():
    labels = [*Y[:-6], *(["Unknown"] * 6)]
    assert "'Unknown'" in guesses(make_problem(X, labels))["used as classes"]
    assert "used as classes" not in guesses(make_problem(X, Y))
    assert "used as classes" not in guesses(make_problem(X, np.where(Y == "left", "+", "-")))


@pytest.mark.parametrize("label_file", [True, False])
def test_a_table_with_as_many_columns_as_rows_is_a_question(label_file):
    genes = [f"gene {i}" for i in range(N)]
    table = pd.DataFrame(RNG.normal(size=(N, N)).round(3), columns=genes)
    with pytest.raises(ValueError, match="say kind='table' if it is a table"):
        make_problem(table, Y)
    assert make_problem(table, Y, kind="table").X.shape == (N, N)
    mangled = pd.DataFrame(table.to_numpy(), [f"s-{i}" for i in range(N)])
    mangled.columns = [f"s.{i}" for i in range(N)]  # as R does
    assert make_problem(mangled, Y).kind == "similarity"
    symmetric = pd.DataFrame(D, columns=genes)
    assert make_problem(symmetric, Y).kind == "distance"
    if label_file:
        table.set_axis(IDS).to_csv("t.csv")
        options = {"labels": "y.txt"}
    else:
        table.assign(label=Y).to_csv("t.csv", index=False)
        options = {}
    with pytest.raises(ValueError, match="say --kind table if it is a table"):
        read_problem("t.csv", **options)
    assert read_problem("t.csv", kind="table", **options).X.shape == (N, N)
    assert read_problem("t.csv", kind="similarity", **options).kind == "similarity"


def test_columns_that_may_number_the_rows_and_other_splits_are_mentioned():
    table = TABLE.assign(CustomerID=RNG.permutation(10_000)[:N], label=Y)
    table["set"] = ["train", "val", "test"] * (N // 3)
    found = guesses(read_problem(write("t.csv", table.to_csv(index=False))))
    assert "'CustomerID'" in found["different in every row"]
    assert "none by column 'set'" in found["split"]


# ------------------------------------------------------------------------------------------------------ new rows


class FakeLearner:
    name = "table"
    takes = "given"


def new_rows(path, problem):
    description = json.loads(json.dumps(describe(problem, FakeLearner())))
    return predict.read_rows(path, predict.FileChoice(), description)[0]


@pytest.mark.parametrize("has_label", [True, False])
def test_columns_without_names_are_those_of_the_training_file(has_label):
    """Whether the label came first, names of rows were in front, or a constant column was left out."""
    codes = np.arange(N) % 2
    table = np.column_stack([codes, X, np.full(N, 7.5)])
    write("t.csv", pd.DataFrame(table).to_csv(index=False, header=False))
    problem = read_problem("t.csv", labels="column 1")
    write("n.csv", pd.DataFrame(table[:, not has_label :]).to_csv(index=False, header=False))
    np.testing.assert_allclose(new_rows("n.csv", problem), X)
    with_names = pd.DataFrame(X, IDS).assign(label=codes)
    write("t.csv", with_names.to_csv(header=False))
    problem = read_problem("t.csv", task="classification")
    assert problem.ids == tuple(IDS)
    given = with_names if has_label else with_names.drop(columns="label")
    write("n.csv", given.to_csv(header=False, index=False))
    np.testing.assert_allclose(new_rows("n.csv", problem), X)
    given = given.set_axis([f"new {item}" for item in IDS])
    write("n.csv", given.to_csv(header=False))
    np.testing.assert_allclose(new_rows("n.csv", problem), X)
    write("n.csv", pd.DataFrame(X[:, :2]).to_csv(index=False, header=False))
    with pytest.raises(ValueError, match="has 2 columns; there must be 3"):
        new_rows("n.csv", problem)


@pytest.mark.parametrize("gaps", [True, False])
def test_truth_values_of_r_with_gaps(gaps, capsys):
    flags = np.where(np.arange(N) % 2 == 0, "TRUE", "FALSE").astype(object)
    of_train = flags.copy()
    if gaps:
        of_train[4] = "NA"
    problem = read_problem(write("t.csv", TABLE.assign(flag=of_train, label=Y).to_csv(index=False)))
    write("n.csv", TABLE.assign(flag=flags).to_csv(index=False))
    expected = flags == "TRUE"
    rows = new_rows("n.csv", problem)
    found = rows["flag"] == "True" if gaps else rows[:, 3]
    np.testing.assert_array_equal(found, expected)
    assert capsys.readouterr().out == ""


def test_numbers_of_training_may_be_truth_values_with_gaps_in_new_rows():
    table = TABLE.assign(flag=np.arange(N) % 2 == 0, label=Y)
    table.loc[3, "a"] = np.nan
    problem = read_problem(write("t.csv", table.to_csv(index=False)))
    flags = np.where(np.arange(N) % 2 == 0, "TRUE", "FALSE").astype(object)
    flags[5] = "NA"
    write("n.csv", TABLE.assign(flag=flags).to_csv(index=False))
    expected = (np.arange(N) % 2 == 0).astype(float)
    expected[5] = np.nan
    np.testing.assert_array_equal(new_rows("n.csv", problem)["flag"], expected)


def test_rows_that_get_no_prediction_are_mentioned(capsys):
    problem = read_problem(write("t.csv", TABLE.assign(label=Y).to_csv(index=False)))
    table = TABLE.set_axis(["#1", *IDS[1:]]).rename_axis("id")
    total = ",".join(["Total", *map(str, TABLE[1:].sum())])
    rows = new_rows(write("n.csv", table.to_csv() + total + "\n"), problem)
    np.testing.assert_allclose(rows, X[1:])
    printed = capsys.readouterr().out
    assert "1 line among the rows begin with #" in printed and "sums or means" in printed


def test_words_that_no_training_row_had_are_counted(capsys):
    colors = np.array(["red", "blue"])[np.arange(N) % 2]
    problem = read_problem(write("t.csv", TABLE.assign(k=colors, label=Y).to_csv(index=False)))
    write("n.csv", TABLE[:3].assign(k=["Red", "red", "blue"]).to_csv(index=False))
    new_rows("n.csv", problem)
    assert "1 of 3 words in column 'k', such as 'Red', were not in the" in capsys.readouterr().out


@pytest.mark.parametrize("first", [0, 1])
def test_rows_of_libsvm_may_lack_columns(first):
    def rows(table):
        cells = [[f"{first + j}:{x}" for j, x in enumerate(row) if x] for row in table]
        return "".join(f"{i % 2} {' '.join(row)}\n" for i, row in enumerate(cells))

    problem = read_problem(write("t.libsvm", rows(X)))
    np.testing.assert_allclose(problem.X, X)
    for absent in range(3):
        new = X.copy()
        new[:, absent] = 0.0
        np.testing.assert_allclose(new_rows(write("n.libsvm", rows(new)), problem), new)


def test_a_name_above_strings_is_no_string():
    words = ["".join(RNG.choice(list("ACGT"), 9)) for _ in range(N)]
    problem = read_problem(
        write("t.csv", pd.DataFrame({"word": words, "label": Y}).to_csv(index=False))
    )
    assert new_rows(write("n.txt", "word\nACGT\nTTTT\n"), problem).shape == (2, N)


def test_a_symmetric_matrix_of_new_items_is_mentioned(capsys):
    description = {"kind": "distance", "items": None}
    predict.note_symmetric_rows("n.npy", D, None, description)
    assert "a row must compare a new item with the training items" in capsys.readouterr().out
    predict.note_symmetric_rows("n.npy", D[:, ::-1], None, description)
    predict.note_symmetric_rows("n.csv", D, IDS, description)
    predict.note_symmetric_rows("n.npy", D, None, {"kind": "table", "items": None})
    assert capsys.readouterr().out == ""


def test_further_files_of_a_model_must_name_the_same_items():
    frame = pd.DataFrame(D, IDS, IDS)
    frame.to_csv("D.csv")
    problem = read_problem("D.csv", labels="y.txt")
    description = json.loads(json.dumps(describe(problem, FakeLearner())))
    description["takes"] = "both"
    choice = predict.FileChoice()
    frame.iloc[SHUFFLED].to_csv("t.csv")
    np.testing.assert_allclose(predict.read_train("t.csv", choice, description), D)
    frame.rename(index={IDS[3]: "x"}).to_csv("t.csv")
    with pytest.raises(ValueError, match="has no row for the training item 'item03'"):
        predict.read_train("t.csv", choice, description)
    new = ["n1", "n2", "n3"]
    frame[:3].set_axis(new).iloc[::-1].to_csv("r.csv")
    np.testing.assert_allclose(predict.read_reverse("r.csv", choice, description, new, 3), D[:3])
    with pytest.raises(ValueError, match="names other items than the new ones"):
        predict.read_reverse("r.csv", choice, description, ["n1", "n2", "n4"], 3)


def test_names_beyond_ascii_are_written_for_excel(monkeypatch, tmp_path):
    pytest.importorskip("skops")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    write("t.csv", TABLE.assign(label=Y).to_csv(index=False))
    assert main(["fit", "t.csv", "--learner", "linear"]) == 0
    for name, mark in (("Müller", b"\xef\xbb\xbf"), ("Miller", b"")):
        write("n.csv", TABLE[:2].set_axis([name, "b"]).rename_axis("id").to_csv())
        assert main(["predict", "model.skops", "n.csv"]) == 0
        assert (tmp_path / "predictions.csv").read_bytes().startswith(mark + b"id,prediction")
        assert pd.read_csv("predictions.csv")["id"].tolist() == [name, "b"]


def test_a_model_is_no_data():
    """It is an archive of arrays, one of which may have the right number of columns."""
    pytest.importorskip("skops")
    persistence.save({"matrix": D}, "model.skops")
    with pytest.raises(ValueError, match="seems to be a saved model; give a file of data"):
        read_problem("model.skops", labels="y.txt")


def test_signs_are_no_formulas():
    assert [predict.harmless(cell) for cell in "+-="] == ["+", "-", "'="]


# -------------------------------------------------------------------------------------------------------- frames


def test_several_frames_are_brought_into_one_order():
    other = np.abs(X[:, 1:2] - X[:, 1])
    first = pd.DataFrame(D, IDS, IDS)
    second = pd.DataFrame(other, IDS, IDS)
    mixed = second.iloc[SHUFFLED, SHUFFLED[::-1]]
    problem = make_problem(
        {"a": first, "b": mixed},
        Y,
        X_test={"a": first[:5], "b": mixed.loc[IDS[4::-1]]},
        y_test=Y[:5],
    )
    np.testing.assert_allclose(problem.X, D)
    np.testing.assert_allclose(problem.others["b"].X, other)
    np.testing.assert_allclose(problem.others["b"].X_test, other[:5])
    without_names = make_problem({"a": first, "b": pd.DataFrame(other)}, Y)
    np.testing.assert_allclose(without_names.others["b"].X, other)
    strange = second.rename(index={IDS[3]: "x"}, columns={IDS[3]: "x"})
    with pytest.raises(ValueError, match="X\\['b'\\] and X\\['a'\\] name different items"):
        make_problem({"a": first, "b": strange}, Y)


def test_rows_of_a_frame_are_items_for_a_kernel():
    def compare(a, b):
        return float(np.exp(-np.sum((np.asarray(a) - np.asarray(b)) ** 2)))

    square = pd.DataFrame(np.tile(X, 10), columns=[f"c{i}" for i in range(N)])
    expected = make_problem(square.to_numpy(), Y, similarity=compare)
    problem = make_problem(square, Y, similarity=compare)
    np.testing.assert_allclose(problem.X, expected.X)
    words = ["".join(RNG.choice(list("ACGT"), 9)) for _ in range(N)]
    expected = make_problem(words, Y)
    problem = make_problem(pd.DataFrame({"word": words}), Y, kind="strings")
    np.testing.assert_allclose(problem.X, expected.X)


@pytest.mark.parametrize("triangle", [np.triu, np.tril])
def test_one_triangle_of_a_matrix_is_used_for_both(triangle):
    for matrix in (D, np.exp(-D)):
        problem = make_problem(triangle(matrix), Y)
        np.testing.assert_array_equal(problem.X, matrix)
        assert "one triangle, used for both" in guesses(problem)["matrix"]
    several = make_problem({"a": D, "b": triangle(D)}, Y)
    np.testing.assert_array_equal(several.others["b"].X, D)
    graph = triangle(D * (RNG.random((N, N)) < 0.2))  # directed, without cycles
    np.testing.assert_array_equal(make_problem(graph, Y, kind="similarity").X, graph)


def test_arguments_that_would_be_ignored_or_fail_raise():
    with pytest.raises(ValueError, match="there is no X_test; pass both"):
        make_problem(X, Y, y_test=Y)
    with pytest.raises(ValueError, match="groups is missing for 30 of 30 items"):
        make_problem(X, Y, groups=[None] * N)
    with pytest.raises(ValueError, match="Column 'k' of X has cells of type list"):
        make_problem(TABLE.assign(k=[[1, 2]] * N), Y)


def test_numbers_among_objects_are_numbers():
    np.testing.assert_allclose(make_problem(TABLE.astype(object), Y).X, X)
    with pytest.raises(ValueError, match="its numbers are text; convert them"):
        make_problem(TABLE.astype(str), Y)


def test_labels_that_are_dates_or_bytes():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")[np.arange(N) % 2]
    days[:6] = np.datetime64("NaT")
    assert len(make_problem(X, days).y) == N - 6
    assert make_problem(X, Y.astype("S")).y.tolist() == Y.tolist()


# ----------------------------------------------------------------------------------------------------------- runs


def test_a_run_of_another_grid_is_not_resumed():
    problem = make_problem(X, Y)

    def work_folder(values):
        mine = GridSearchCV(SVC(), {"C": values})
        chosen, _ = select_learners(problem, [("mine", mine)])
        return _work_folder(Terms(problem, "accuracy", 0), chosen)

    many = np.geomspace(0.1, 10.0, 2000)
    other = many.copy()
    other[1000] = 7.0
    assert work_folder(many) == work_folder(many.copy()) != work_folder(other)
    assert work_folder(many.tolist()) != work_folder(other.tolist())


def test_metrics_of_one_class_need_a_class_1():
    check_positive_class("f1", np.array([0, 1, 1]))
    check_positive_class("f1_macro", Y)
    for y in (Y, np.array([0, 1, 2]), np.array([2, 3])):
        with pytest.raises(ValueError, match="use f1_macro, or labels 0 and 1"):
            check_positive_class("f1", y)


def test_learners_are_a_list():
    with pytest.raises(ValueError, match=r"give a list of names: \['neighbors'\]"):
        Options(learners="neighbors")
