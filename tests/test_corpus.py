"""Files as people have them: each is read as what it is, or refused with the sentence that helps."""

import bz2
import gzip
import io
import lzma
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat
from scipy.spatial.distance import squareform

from mercerless.comparison import read_problem
from mercerless.comparison.columns import coerce
from mercerless.comparison.tables import parse_table

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(size=(N, 3)).round(4)
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1)).round(6)
S = np.exp(-D).round(6)
HALF = np.where((np.add.outer(np.arange(N), np.arange(N)) % 2 == 0), D.astype(str), "NA")
IDS = [f"item{i:02d}" for i in range(N)]
Y = np.where(np.arange(N) % 3 == 0, "left", "right")
SHUFFLED = RNG.permutation(N)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=Y)
WORDS = ["".join(RNG.choice(list("ACGT"), 9)) for _ in range(N)]


def lines(rows, mark=","):
    return "\n".join(mark.join(map(str, row)) for row in rows) + "\n"


def named(values, mark=",", corner=""):
    return lines([[corner, *IDS], *([item, *row] for item, row in zip(IDS, values))], mark)


def text(content, labels=True):
    """A writer of a text file, with the labels beside it."""

    def write(folder, name):
        (folder / name).write_text(content, encoding="utf-8")
        if labels:
            (folder / "y.txt").write_text("\n".join(Y))

    return write


def raw(content):
    def write(folder, name):
        (folder / name).write_bytes(content)
        (folder / "y.txt").write_text("\n".join(Y))

    return write


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def frame(method, **options):
    return lambda folder, name: getattr(TABLE.set_index(pd.Index(IDS)), method)(
        folder / name, **options
    )


def arrays(save, **values):
    return lambda folder, name: save(folder / name, **values)


def pairs(values, upper=True, ids=IDS):
    return [
        (ids[i], ids[j], values[i, j]) for i in range(N) for j in range(i + 1 if upper else 0, N)
    ]


def r_table(values, columns):
    rows = [" ".join(f'"{name}"' for name in columns)]
    rows += [" ".join([f'"{item}"', *map(str, row)]) for item, row in zip(IDS, values)]
    return "\n".join(rows)


def with_labels(content, labels):
    def write(folder, name):
        (folder / name).write_text(content)
        (folder / "y.csv").write_text(labels)

    return write


CSV = TABLE.to_csv(index=False)
GERMAN = TABLE.to_csv(index=False, sep=";", decimal=",")
LOWER, STRICT = ([row[: i + d] for i, row in enumerate(D)] for d in (1, 0))
PHYLIP = f"  {N}\n" + "".join(f"{item} {' '.join(map(str, row))}\n" for item, row in zip(IDS, D))
PHYLIP_LOWER = f"{N}\n" + "".join(
    f"{item} {' '.join(map(str, row))}\n" for item, row in zip(IDS, STRICT)
)
WRAPPED = f"{N}\n" + "".join(
    f"{item} {' '.join(map(str, row[:20]))}\n   {' '.join(map(str, row[20:]))}\n"
    for item, row in zip(IDS, D)
)
BY_ID = lines([("id", "label"), *((IDS[i], Y[i]) for i in SHUFFLED)])
FASTA = "".join(f">{item} a protein\n{word[:4]}\n{word[4:]}\n" for item, word in zip(IDS, WORDS))
FILE = {"labels": "y.txt"}
COLUMN = {"labels": "target"}

#: name of the case: (file, writer, arguments, what X shall be)
TABLES = {
    "comma": ("t.csv", text(CSV), COLUMN, X),
    "the label column is found": ("t.csv", text(CSV), {}, X),
    "semicolon and decimal comma": ("t.csv", text(GERMAN), COLUMN, X),
    "decimal comma, quoted": ("t.csv", text(re.sub(r"([^;\n]+)", r'"\1"', GERMAN)), COLUMN, X),
    "tab": ("t.tsv", text(TABLE.to_csv(index=False, sep="\t")), COLUMN, X),
    "bar": ("t.txt", text(TABLE.to_csv(index=False, sep="|")), COLUMN, X),
    "spaces": ("t.txt", text(TABLE.to_csv(index=False, sep=" ")), COLUMN, X),
    "aligned": ("t.txt", text(TABLE.to_string(index=False)), COLUMN, X),
    "aligned with index": ("t.txt", text(TABLE.to_string()), COLUMN, X),
    "windows": ("t.csv", text(CSV.replace("\n", "\r\n")), COLUMN, X),
    "byte order mark": ("t.csv", text("\ufeff" + CSV), COLUMN, X),
    "utf-16": ("t.csv", raw(CSV.encode("utf-16")), COLUMN, X),
    "Excel in Western Europe": (
        "t.csv",
        raw(GERMAN.replace("target", "größe").encode("cp1252")),
        {"labels": "größe"},
        X,
    ),
    "everything quoted": ("t.csv", text(TABLE.to_csv(index=False, quoting=1)), COLUMN, X),
    "comments": ("t.csv", text("# made by hand\n" + CSV.replace("\n", "\n# more\n", 1)), COLUMN, X),
    "index column": ("t.csv", text(TABLE.to_csv()), COLUMN, X),
    "named rows": ("t.csv", text(TABLE.set_index(pd.Index(IDS)).to_csv()), COLUMN, X),
    "numeric header": ("t.csv", text(pd.DataFrame(X).assign(target=Y).to_csv()), COLUMN, X),
    "numeric header without index": (
        "t.csv",
        text(pd.DataFrame(X).assign(target=Y).to_csv(index=False)),
        COLUMN,
        X,
    ),
    "no header": ("t.csv", text(TABLE.to_csv(index=False, header=False)), {}, X),
    "id column": (
        "t.csv",
        text(TABLE.assign(id=IDS)[["a", "id", "b", "c", "target"]].to_csv(index=False)),
        COLUMN,
        X,
    ),
    "years as header": (
        "t.csv",
        text(
            TABLE.set_axis(["2001", "2002", "2007", "target"], axis=1)
            .set_index(pd.Index(IDS, name="name"))
            .to_csv()
        ),
        COLUMN,
        X,
    ),
    "R's write.table": ("t.txt", text(r_table(TABLE.to_numpy(), TABLE.columns)), COLUMN, X),
    "R's write.csv": ("t.csv", text(TABLE.set_axis(range(1, N + 1)).to_csv(quoting=2)), COLUMN, X),
    "gzip": ("t.csv.gz", raw(gzip.compress(CSV.encode())), COLUMN, X),
    "bzip2": ("t.csv.bz2", raw(bz2.compress(CSV.encode())), COLUMN, X),
    "xz": ("t.tsv.xz", raw(lzma.compress(TABLE.to_csv(index=False, sep="\t").encode())), COLUMN, X),
    "zip": ("t.zip", raw(zipped("t.csv", CSV)), COLUMN, X),
    "parquet with index": ("t.parquet", frame("to_parquet"), COLUMN, X),
    "parquet": ("t.parquet", frame("to_parquet", index=False), COLUMN, X),
    "feather": ("t.feather", lambda folder, name: TABLE.to_feather(folder / name), COLUMN, X),
    "integers and booleans": (
        "t.csv",
        text(TABLE.assign(a=np.arange(N), b=np.arange(N) % 2 == 0).to_csv(index=False)),
        COLUMN,
        np.column_stack([np.arange(N), np.arange(N) % 2 == 0, X[:, 2]]),
    ),
    "constant and empty columns": (
        "t.csv",
        text(TABLE.assign(k=1, e=np.nan).to_csv(index=False)),
        COLUMN,
        X,
    ),
    "labels by id": (
        "t.csv",
        with_labels(TABLE.drop(columns="target").set_index(pd.Index(IDS)).to_csv(), BY_ID),
        {"labels": "y.csv"},
        X,
    ),
}
MATRICES = {
    "bare": ("D.csv", text(lines(D)), FILE, D),
    "bare, spaces": ("D.txt", text(lines(D, " ")), FILE, D),
    "decimal comma": ("D.txt", text(lines(D, " ").replace(".", ",")), FILE, D),
    "decimal comma and semicolons": ("D.csv", text(lines(D, ";").replace(".", ",")), FILE, D),
    "named": ("D.csv", text(named(D)), FILE, D),
    "missing on the diagonal": ("D.csv", text(named(D).replace("0.0", "NA", 1)), FILE, D),
    "named, with a corner": ("D.csv", text(named(D, corner="name")), FILE, D),
    "header only": ("D.csv", text(lines([IDS, *D])), FILE, D),
    "numeric header": ("D.csv", text(pd.DataFrame(D).to_csv(index=False)), FILE, D),
    "numeric header and index": ("D.csv", text(pd.DataFrame(D).to_csv()), FILE, D),
    "columns in another order": (
        "D.csv",
        text(pd.DataFrame(D, IDS, IDS).iloc[:, SHUFFLED].to_csv()),
        FILE,
        D,
    ),
    "R's write.table": ("D.txt", text(r_table(D, IDS)), FILE, D),
    "label column": (
        "D.csv",
        text(pd.DataFrame(D, columns=IDS).assign(label=Y).to_csv(index=False)),
        {},
        D,
    ),
    "labels by id": ("D.csv", with_labels(named(D), BY_ID), {"labels": "y.csv"}, D),
    "labels by id without header": (
        "D.csv",
        with_labels(named(D), BY_ID.split("\n", 1)[1]),
        {"labels": "y.csv"},
        D,
    ),
    "labels with header": (
        "D.csv",
        with_labels(lines(D), lines([["label"], *Y[:, None]])),
        {"labels": "y.csv"},
        D,
    ),
    "lower triangle": ("D.csv", text(lines(LOWER)), FILE, D),
    "lower triangle without diagonal": ("D.csv", text(lines(STRICT[1:])), FILE, D),
    "lower triangle, named": (
        "D.csv",
        text(lines([item, *row] for item, row in zip(IDS, LOWER))),
        FILE,
        D,
    ),
    "upper triangle": (
        "D.csv",
        text(lines([""] * i + list(row[i:]) for i, row in enumerate(D))),
        FILE,
        D,
    ),
    "upper triangle, from the left": (
        "D.csv",
        text(lines(row[i:] for i, row in enumerate(D))),
        FILE,
        D,
    ),
    "PHYLIP": ("D.phy", text(PHYLIP), FILE, D),
    "PHYLIP, lower": ("D.dist", text(PHYLIP_LOWER), FILE, D),
    "PHYLIP, wrapped": ("D.phy", text(WRAPPED), FILE, D),
    "condensed text": ("d.txt", text(lines(squareform(D)[:, None])), FILE, D),
    "pairs": (
        "p.csv",
        with_labels(lines([("a", "b", "distance"), *pairs(D)]), BY_ID),
        {"labels": "y.csv"},
        D,
    ),
    "pairs in both directions": (
        "p.tsv",
        with_labels(lines(pairs(D, upper=False), "\t"), BY_ID),
        {"labels": "y.csv", "kind": "distance"},
        D,
    ),
    "similarities by pairs": (
        "p.csv",
        with_labels(lines([("a", "b", "similarity"), *pairs(S, upper=False)]), BY_ID),
        {"labels": "y.csv"},
        S,
    ),
    "npy": (
        "D.npy",
        lambda folder, name: (np.save(folder / name, D), text("")(folder, "x")),
        FILE,
        D,
    ),
    "condensed npy": (
        "d.npy",
        lambda f, name: (np.save(f / name, squareform(D)), text("")(f, "x")),
        FILE,
        D,
    ),
    "npz": ("D.npz", arrays(np.savez, D=D, y=Y), {}, D),
    "npz by part": (
        "K.npz",
        arrays(np.savez, K_train=S, K_test=S[:4], y_train=Y, y_test=Y[:4]),
        {},
        S,
    ),
    "npz by part, otherwise": (
        "K.npz",
        arrays(np.savez, train_K=S, test_K=S[:4], Ytrain=Y, Ytest=Y[:4]),
        {},
        S,
    ),
    "sparse npz": (
        "S.npz",
        lambda f, name: (sparse.save_npz(f / name, sparse.csr_array(S)), text("")(f, "x")),
        FILE,
        S,
    ),
    "MATLAB": (
        "D.mat",
        lambda f, name: savemat(f / name, {"D": D, "y": np.arange(N) % 3 == 0}),
        {},
        D,
    ),
    "MATLAB words": ("D.mat", lambda f, name: savemat(f / name, {"D": D, "y": Y}), {}, D),
    "MATLAB cells": (
        "D.mat",
        lambda f, name: savemat(f / name, {"D": D, "labels": np.array(Y, object)}),
        {},
        D,
    ),
    "parquet": (
        "D.parquet",
        lambda f, name: (pd.DataFrame(D, IDS, IDS).to_parquet(f / name), text("")(f, "x")),
        FILE,
        D,
    ),
    "gzip": ("D.csv.gz", raw(gzip.compress(lines(D).encode())), FILE, D),
}
STRINGS = {
    "lines": ("s.txt", text("\n".join(WORDS)), FILE),
    "FASTA": ("s.fasta", text(FASTA), FILE),
    "FASTA by another name": ("s.txt", text(FASTA), FILE),
    "FASTA with labels by id": ("s.fa", with_labels(FASTA, BY_ID), {"labels": "y.csv"}),
    "column": ("s.csv", text(lines([("word", "class"), *zip(WORDS, Y)])), {}),
    "column beside ids": ("s.csv", text(lines([("id", "word", "class"), *zip(IDS, WORDS, Y)])), {}),
    "tabs without header": ("s.tsv", text(lines(zip(WORDS, Y), "\t")), {}),
}


def read(tmp_path, monkeypatch, case):
    name, write, arguments = case[:3]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, name)
    return read_problem(name, **arguments)


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES)
def test_tables(tmp_path, monkeypatch, case):
    problem = read(tmp_path, monkeypatch, case)
    assert (problem.kind, problem.task) == ("table", "classification")
    np.testing.assert_array_equal(problem.X, case[3])
    np.testing.assert_array_equal(problem.y, Y)


@pytest.mark.parametrize("case", MATRICES.values(), ids=MATRICES)
def test_matrices(tmp_path, monkeypatch, case):
    problem = read(tmp_path, monkeypatch, case)
    expected = "distance" if case[3] is D else "similarity"
    assert (problem.kind, problem.task) == (expected, "classification")
    np.testing.assert_allclose(problem.X, case[3], atol=1e-12)
    np.testing.assert_array_equal(problem.y == problem.y[0], Y == Y[0])
    assert not any(label.endswith(" ") for label in map(str, problem.y))


@pytest.mark.parametrize("case", STRINGS.values(), ids=STRINGS)
def test_strings(tmp_path, monkeypatch, case):
    pytest.importorskip("rapidfuzz")
    problem = read(tmp_path, monkeypatch, case)
    assert problem.kind == "strings" and problem.items == tuple(WORDS)
    np.testing.assert_array_equal(problem.y, Y)


@pytest.mark.parametrize("seed", range(40))
def test_what_pandas_writes_is_read_back(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    makers = (
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-20, 20),
        lambda: rng.integers(0, 100, n),
        lambda: rng.choice(["u", "v v", "w;x", "y,z", 'q"r'], n),
    )
    table = pd.DataFrame({j: makers[rng.integers(3)]() for j in range(rng.integers(1, 7))})
    table["target"] = rng.choice(["yes", "no"], n) if rng.random() < 0.5 else rng.integers(0, 2, n)
    if rng.random() < 0.5:
        table.columns = [f"c{name}" for name in table.columns]
    header, separator = rng.random() < 0.8, rng.choice([",", ";", "\t", "|"])
    index = header and rng.random() < 0.5
    decimal = "," if separator != "," and rng.random() < 0.5 else "."
    written = table.to_csv(sep=separator, decimal=decimal, header=header, index=index)
    found = parse_table(written, Path("t.csv"))
    assert found.named == header and found.ids == (tuple(map(str, table.index)) if index else None)
    for (own, cells), (name, expected) in zip(found.frame.items(), table.items()):
        assert not header or own == str(name)
        np.testing.assert_array_equal(cells.to_numpy(), expected.to_numpy())


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(CSV.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    np.testing.assert_array_equal(read_problem("-").X, X)


def test_what_is_missing_dated_or_in_words(tmp_path):
    dates = pd.date_range("2020-01-31", periods=N, freq="36h")
    table = TABLE.assign(
        color=RNG.choice(["red", "blue", "none"], N),
        date=dates,
        note=[f"text {i} {w}" for i, w in enumerate(WORDS)],
    )
    table.loc[3, "a"], table.loc[4, "color"], table.loc[5, "date"] = np.nan, None, pd.NaT
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        problem = read_problem(tmp_path / name, labels="target")
        assert problem.roles == {
            "a": "number",
            "b": "number",
            "c": "number",
            "color": "category",
            "date": "date",
        }
        numbers = problem.preprocessor.fit_transform(problem.X)
        assert np.isfinite(numbers).all() and problem.n_features == numbers.shape[1] == 4 + 4 + 4
        assert numbers[3, 0] == np.nanmedian(table["a"]) and numbers[3, 3] == 1.0
        left_out = {guess.value: guess.why for guess in problem.guesses if guess.what == "left out"}
        assert list(left_out) == ["column 'note'"]


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%b %d, %Y", "%d-%b-%Y", "%d/%m/%Y %H:%M"]
)
def test_dates_of_one_format_are_read_by_it_also_where_they_are_few(tmp_path, form):
    """What a month is was learned from all rows: new ones, in which it could be a day too, are read alike."""
    dates = pd.date_range("2020-01-31", periods=N, freq="36h")
    TABLE.assign(when=dates.strftime(form)).to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(tmp_path / "t.csv", labels="target")
    assert problem.roles["when"] == f"date {form}"
    days = problem.preprocessor.fit_transform(problem.X)[:, 3]
    expected = (dates.normalize() if "%H" not in form else dates) - pd.Timestamp(0)
    np.testing.assert_allclose(days, expected / pd.Timedelta(days=1))
    few = coerce(pd.DataFrame({"when": dates[1:5].strftime(form)}), {"when": problem.roles["when"]})
    assert (few["when"].dt.day == dates[1:5].day).all()


def test_dates_that_may_begin_with_the_day_or_the_month_are_left_out_with_a_word(tmp_path):
    dates = pd.to_datetime([f"2020-{1 + i % 9:02d}-{1 + i % 11:02d}" for i in range(N)])
    TABLE.assign(when=dates.strftime("%d/%m/%Y")).to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(tmp_path / "t.csv", labels="target")
    assert "when" not in problem.roles
    why = next(guess.why for guess in problem.guesses if guess.value == "column 'when'")
    assert re.fullmatch(
        r"its dates, such as ../../2020, may begin with the day or the month; write them as .*", why
    )


def test_pairs_without_a_number_are_completed_and_those_not_listed_are_the_farthest(tmp_path):
    listed = [
        (a, b, "" if (a, b) == (IDS[0], IDS[1]) else value)
        for a, b, value in pairs(D)
        if (a, b) != (IDS[2], IDS[3])
    ]
    with_labels(lines([("a", "b", "distance"), *listed]), BY_ID)(tmp_path, "p.csv")
    problem = read_problem(tmp_path / "p.csv", labels=str(tmp_path / "y.csv"))
    words = {guess.what: guess for guess in problem.guesses}
    assert problem.X[2, 3] == problem.X[3, 2] == D[~np.isin(D, D[2, 3])].max()
    assert "2 entries that it does not have are" in words["matrix"].why
    assert (
        words["missing entries"].value == f"2 of {N * N} completed"
        and problem.X[0, 1] != problem.X[2, 3]
    )
    assert abs(problem.X[0, 1] - D[0, 1]) < np.abs(D - D[0, 1]).max()


def test_a_sheet_is_read_by_the_rules_of_a_text(tmp_path):
    """Names of rows, gaps, dates, whole numbers as labels: as if it had been saved as CSV."""
    table = TABLE.assign(
        color=RNG.choice(["red", "blue"], N), when=pd.date_range("2020-01-31", periods=N), target=7
    )
    table.loc[3, "a"], table.loc[4, "color"], table.loc[::2, "target"] = np.nan, None, 8
    table.set_index(pd.Index(IDS)).to_excel(tmp_path / "t.xlsx")
    problem = read_problem(tmp_path / "t.xlsx", labels="target")
    assert problem.ids == tuple(IDS) and np.isnan(problem.X.loc[3, "a"])
    assert problem.roles == dict.fromkeys("abc", "number") | {"color": "category", "when": "date"}
    np.testing.assert_array_equal(np.unique(problem.y), [7, 8])
    pd.DataFrame(D, IDS, IDS).to_excel(tmp_path / "d.xlsx")
    pd.DataFrame({"label": Y}, IDS).iloc[SHUFFLED].to_excel(tmp_path / "y.xlsx")
    problem = read_problem(tmp_path / "d.xlsx", labels=str(tmp_path / "y.xlsx"))
    np.testing.assert_allclose(problem.X, D)
    assert problem.kind == "distance" and problem.y.tolist() == Y.tolist()


def test_sheets_are_one_and_a_damaged_file_says_so(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
        TABLE.to_excel(writer, sheet_name="first")
        TABLE.to_excel(writer, sheet_name="second")
    with pytest.raises(ValueError, match="has sheets 'first', 'second'; keep one of them"):
        read_problem(tmp_path / "t.xlsx", labels="target")
    pd.DataFrame().to_excel(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="has no cells"):
        read_problem(tmp_path / "t.xlsx", labels="target")
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match="is not a readable xlsx file"):
        read_problem(tmp_path / "t.xlsx", labels="target")


@pytest.mark.parametrize(
    "cells, expected",
    [
        (["007", "7"], ["007", "7"]),
        (["1_1", "11"], ["1_1", "11"]),
        (["1", "2"], [1, 2]),
        (["1.5", "2"], [1.5, 2.0]),
        (["-1", "+1"], [-1, 1]),
        (["True", "False"], ["True", "False"]),
        (["1e3", "2"], [1000.0, 2.0]),
        (["0x10", "1"], ["0x10", "1"]),
    ],
)
def test_labels_stay_text_unless_they_are_plain_numbers(tmp_path, cells, expected):
    labels = np.array(cells)[np.arange(N) % 2]
    for table in (
        TABLE.assign(target=labels),
        pd.DataFrame({"x": X[:, 0]}).assign(y=labels, z=X[:, 1]),
    ):
        table.to_csv(tmp_path / "t.csv", index=False)
        problem = read_problem(tmp_path / "t.csv", task="classification")
        np.testing.assert_array_equal(problem.y, np.array(expected)[np.arange(N) % 2])


#: (file, writer, arguments, sentence)
REFUSED = {
    "pairs of unknown kind": (
        "p.csv",
        with_labels(lines(pairs(D)), BY_ID),
        {"labels": "y.csv"},
        "is a list of pairs, but are its numbers similarities or distances?",
    ),
    "pairs that contradict each other": (
        "p.csv",
        with_labels(lines([("a", "b", "distance"), *pairs(D), (IDS[0], IDS[1], 99.0)]), BY_ID),
        {"labels": "y.csv"},
        "the pair item00, item01 comes twice with different numbers",
    ),
    "an item without label": (
        "D.csv",
        with_labels(named(D), BY_ID.replace("item07,", "other,")),
        {"labels": "y.csv"},
        "has no label for 'item07'",
    ),
    "two labels for an item": (
        "D.csv",
        with_labels(named(D), BY_ID + "item07,middle\n"),
        {"labels": "y.csv"},
        "has two labels for 'item07'",
    ),
    "ragged": ("t.csv", text(CSV + "1,2\n"), COLUMN, "line 32 has 2 entries, the lines before 4"),
    "several texts": (
        "s.csv",
        text(lines([("first", "second", "class"), *zip(WORDS, WORDS[::-1], Y)])),
        {"kind": "strings"},
        "several columns of text, first, second; leave out all but the one to compare with --drop",
    ),
    "an empty sequence": (
        "s.fasta",
        text(FASTA + ">last\n"),
        FILE,
        "the record 'last' has no sequence",
    ),
    "missing in a matrix": (
        "D.csv",
        text(named(HALF)),
        FILE,
        "of the matrix is missing, more than the 30 %",
    ),
    "an unbalanced quote": ("t.csv", text(CSV.replace("right", '"right', 1)), COLUMN, "'t.csv'"),
    "damaged gzip": (
        "t.csv.gz",
        raw(gzip.compress(CSV.encode())[:-20]),
        COLUMN,
        "is damaged: it cannot be decompressed",
    ),
    "a folder zipped": (
        "t.zip",
        raw(zipped("a/", "")),
        COLUMN,
        "is damaged: it cannot be decompressed",
    ),
    "a vector of the wrong length": (
        "d.txt",
        text(lines(D[0][:, None])),
        {"kind": "distance", **FILE},
        "must be square",
    ),
    "missing labels": (
        "t.csv",
        text(TABLE.assign(target=["", *Y[1:]]).to_csv(index=False)),
        COLUMN,
        "1 labels are missing",
    ),
    "only words that differ": (
        "t.csv",
        text(
            lines(
                [
                    ("a", "b", "y"),
                    *(
                        (f"{w}{i}", f"{i} {w}", c)
                        for i, (w, c) in enumerate(zip(WORDS * 2, [*Y, *Y]))
                    ),
                ]
            )
        ),
        {},
        "There is no column to learn from",
    ),
    "two columns of one name": (
        "t.csv",
        text(CSV.replace("b", "a", 1)),
        COLUMN,
        "several columns named 'a'",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused_with_the_sentence_that_helps(tmp_path, monkeypatch, case):
    with pytest.raises((ValueError, OSError)) as caught:
        read(tmp_path, monkeypatch, case)
    message = str(caught.value)
    assert case[3] in message and "\n" not in message


def test_there_are_enough_of_them():
    assert len(TABLES) + len(MATRICES) + len(STRINGS) + len(REFUSED) >= 60
