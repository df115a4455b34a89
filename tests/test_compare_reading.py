"""Files as people have them: each is read as what it says, or raises one sentence that names the option."""

import bz2
import gzip
import lzma
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmwrite
from scipy.spatial.distance import squareform

pd = pytest.importorskip("pandas")

from mercerless.comparison import compare, read_problem

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(size=(N, 3)).round(4)
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1)).round(6)
S = np.exp(-D).round(6)
IDS = [f"item{i:02d}" for i in range(N)]
Y = np.where(np.arange(N) % 3 == 0, "left", "right")
SHUFFLED = RNG.permutation(N)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=Y)
NAMED = TABLE.set_index(pd.Index(IDS))
BARE = NAMED.drop(columns="target")
WORDS = ["".join(RNG.choice(list("ACGT"), 9)) for _ in range(N)]
CSV = TABLE.to_csv(index=False)
BY_ID = pd.DataFrame({"id": IDS, "label": Y}).iloc[SHUFFLED].to_csv(index=False)
SQUARE = pd.DataFrame(D, IDS, IDS)
NEAR = np.where(S > 0.2, S, 0.0)


def lines(rows, mark=","):
    return "\n".join(mark.join(map(str, row)) for row in rows) + "\n"


def pairs(values, upper=True):
    return [
        (IDS[i], IDS[j], values[i, j]) for i in range(N) for j in range(i + 1 if upper else 0, N)
    ]


def zipped(name, content):
    import io

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def series(equal=True):
    rows = []
    for i, row in enumerate(X):
        values = list(row) if equal or i % 2 else list(row[:2])
        rows.append(",".join(map(str, values)) + ":" + Y[i])
    head = "#comment\n@problemName t\n@timestamps false\n@classLabel true left right\n@data\n"
    return head + "\n".join(rows)


def hits(values, header=False):
    """Twelve columns, a worse second hit for every pair, none for unlike pairs."""
    rows = [
        [IDS[i], IDS[j], 90.0, 9, 1, 0, 1, 9, 1, 9, 1e-5, score]
        for i, j in zip(*np.nonzero(values))
        for score in (values[i, j], values[i, j] / 2)
    ]
    names = "qseqid sseqid pident length mismatch gapopen qstart qend sstart send evalue bitscore"
    return lines(([names.split()] if header else []) + rows, "\t")


LOWER = [list(row[: i + 1]) for i, row in enumerate(D)]
STRICT = [list(row[:i]) for i, row in enumerate(D)]
ARFF = "% a comment\n@RELATION t\n" + "".join(f"@attribute {c} numeric\n" for c in "abc")
ARFF += "@attribute target {left,right}\n@DATA\n" + TABLE.to_csv(index=False, header=False)
FASTA = "".join(f">{i} a protein\n{w[:4]}\n{w[4:]}\n" for i, w in zip(IDS, WORDS))
R_TABLE = '"a" "b" "c" "target"\n' + lines(
    [[f'"{i}"', *row, f'"{y}"'] for i, row, y in zip(IDS, X, Y)], " "
)
FILE, COLUMN, NAMES = {"labels": "y.txt"}, {"labels": "target"}, {"labels": "y.csv"}

#: (file, its text, bytes or writer, options); all hold the same table
TABLES = {
    "comma": ("t.csv", CSV, COLUMN),
    "semicolon": ("t.csv", TABLE.to_csv(index=False, sep=";"), COLUMN),
    "decimal comma": (
        "t.csv",
        TABLE.to_csv(index=False, sep=";", decimal=","),
        {**COLUMN, "decimal": ","},
    ),
    "tab": ("t.tsv", TABLE.to_csv(index=False, sep="\t"), COLUMN),
    "bar": ("t.txt", TABLE.to_csv(index=False, sep="|"), COLUMN),
    "aligned": ("t.txt", TABLE.to_string(index=False), COLUMN),
    "aligned with index": ("t.txt", TABLE.to_string(), COLUMN),
    "unusual separator": ("t.csv", CSV.replace(",", "^"), {**COLUMN, "sep": "^"}),
    "windows": ("t.csv", CSV.replace("\n", "\r\n"), COLUMN),
    "byte order mark": ("t.csv", "\ufeff" + CSV, COLUMN),
    "utf-16": ("t.csv", CSV.encode("utf-16"), COLUMN),
    "western Windows": (
        "t.csv",
        CSV.replace("target", "größe").encode("cp1252"),
        {"labels": "größe"},
    ),
    "quoted": ("t.csv", TABLE.to_csv(index=False, quoting=1), COLUMN),
    "comments": ("t.csv", "# by hand\n# twice\n" + CSV, COLUMN),
    "header in a comment": ("t.csv", "# by NumPy\n# " + CSV, COLUMN),
    "index": ("t.csv", TABLE.to_csv(), COLUMN),
    "named rows": ("t.csv", NAMED.to_csv(), COLUMN),
    "ids": ("t.csv", NAMED.to_csv(index_label="id"), COLUMN),
    "another index": ("t.csv", NAMED.to_csv(index_label="sample"), {**COLUMN, "index": "sample"}),
    "counted header": ("t.csv", pd.DataFrame(X).assign(target=Y).to_csv(index=False), COLUMN),
    "no header": ("t.csv", TABLE.to_csv(index=False, header=False), {"labels": "column 4"}),
    "years": (
        "t.csv",
        TABLE.set_axis(["2001", "2002", "2007", "target"], axis=1).to_csv(index=False),
        {**COLUMN, "header": "yes"},
    ),
    "R's write.table": ("t.txt", R_TABLE, COLUMN),
    "gzip": ("t.csv.gz", gzip.compress(CSV.encode()), COLUMN),
    "bzip2": ("t.csv.bz2", bz2.compress(CSV.encode()), COLUMN),
    "xz": ("t.csv.xz", lzma.compress(CSV.encode()), COLUMN),
    "gzip by another name": ("t.csv", gzip.compress(CSV.encode()), COLUMN),
    "unknown ending": ("t.results", CSV, COLUMN),
    "another format": ("t.json", CSV, {**COLUMN, "format": "text"}),
    "parquet": ("t.parquet", NAMED.to_parquet, COLUMN),
    "excel": ("t.xlsx", NAMED.to_excel, COLUMN),
    "JSON records": ("t.json", TABLE.to_json(orient="records"), COLUMN),
    "JSON lines": ("t.jsonl", TABLE.to_json(orient="records", lines=True), COLUMN),
    "ARFF": ("t.arff", ARFF, {}),
    "ARFF by another name": ("t.txt", ARFF.partition("\n")[2], {}),
    "ARFF with apostrophes in quotes": (
        "t.arff",
        ARFF.replace("@attribute target", "@attribute z string\n@attribute target")
        .replace(",left\n", ',"O\'Neil, 2",left\n')
        .replace(",right\n", ',"a \\"b\\" c",right\n'),
        {"drop": ("z",)},
    ),
    "series of one length": ("t.ts", series(), {}),
    "npz": ("t.npz", lambda path: np.savez(path, X=X, y=Y), {}),
    "labels by name": ("t.csv", BARE.to_csv(), NAMES),
    "labels of a named column": ("t.csv", BARE.to_csv(), {"labels": "y.csv:label"}),
    "a column left out": (
        "t.csv",
        TABLE.assign(z=1).to_csv(index=False),
        {**COLUMN, "drop": ("z",)},
    ),
    "cells over several lines": (
        "t.csv",
        TABLE.assign(z='a "quote",\n\nand more').to_csv(index=False),
        {**COLUMN, "drop": ("z",)},
    ),
    "other ends of lines inside cells": (
        "t.csv",
        TABLE.assign(z="a\u2028b\x0bc\x85d").to_csv(index=False),
        {**COLUMN, "drop": ("z",)},
    ),
    "twelve columns of whole numbers beside": (
        "t.csv",
        TABLE.assign(**{f"k{j}": 1 for j in range(9)}).to_csv(index=False),
        {**COLUMN, "drop": tuple(f"k{j}" for j in range(9))},
    ),
}
#: (file, content, options, matrix)
MATRICES = {
    "bare": ("D.csv", lines(D), FILE, D),
    "spaces": ("D.txt", lines(D, " "), FILE, D),
    "named": ("D.csv", SQUARE.to_csv(), FILE, D),
    "a corner": ("D.csv", SQUARE.to_csv(index_label="name"), FILE, D),
    "header only": ("D.csv", SQUARE.to_csv(index=False), FILE, D),
    "another order of columns": ("D.csv", SQUARE.iloc[:, SHUFFLED].to_csv(), FILE, D),
    "scikit-bio": ("D.lsmat", SQUARE.to_csv(sep="\t"), FILE, D),
    "labels beside": ("D.csv", SQUARE.assign(label=Y).to_csv(index=False), {"labels": "label"}, D),
    "labels by name": ("D.csv", SQUARE.to_csv(), NAMES, D),
    "lower triangle": ("D.csv", lines(LOWER), FILE, D),
    "lower, no diagonal": ("D.csv", lines(STRICT[1:]), FILE, D),
    "lower, named": ("D.csv", lines([i, *row] for i, row in zip(IDS, LOWER)), FILE, D),
    "upper": ("D.csv", lines([""] * i + list(r[i:]) for i, r in enumerate(D)), FILE, D),
    "pairs": ("p.csv", lines([("a", "b", "distance"), *pairs(D)]), NAMES, D),
    "pairs without a header": (
        "p.tsv",
        lines(pairs(S, upper=False), "\t"),
        {**NAMES, "format": "pairs", "kind": "similarity"},
        S,
    ),
    "hits by ending": ("h.m8", hits(NEAR), NAMES, NEAR),
    "hits by header": ("h.tsv", hits(NEAR, header=True), NAMES, NEAR),
    "hits with comments": (
        "h.txt",
        "# BLASTP\n# Fields: query, subject\n" + hits(NEAR) + "# BLAST processed 30 queries\n",
        {**NAMES, "format": "hits"},
        NEAR,
    ),
    "hits by option": ("h.tsv", hits(NEAR), {**NAMES, "format": "hits"}, NEAR),
    "npy": ("D.npy", lambda path: np.save(path, D), FILE, D),
    "condensed": ("d.npy", lambda path: np.save(path, squareform(D)), FILE, D),
    "npz": ("K.npz", lambda path: np.savez(path, K=S, y=Y), {}, S),
    "npz, several": ("K.npz", lambda path: np.savez(path, one=S, two=D, y=Y), {"array": "two"}, D),
    "sparse npz": ("S.npz", lambda path: sparse.save_npz(path, sparse.csr_array(NEAR)), FILE, NEAR),
    "Matrix Market": ("S.mtx", lambda path: mmwrite(path, sparse.csr_array(NEAR)), FILE, NEAR),
    "asymmetric by option": (
        "K.csv",
        lines(np.triu(S) + np.eye(N)),
        {**FILE, "kind": "similarity"},
        np.triu(S) + np.eye(N),
    ),
}
STRINGS = {
    "FASTA": ("s.fasta", FASTA, FILE),
    "FASTA by another name": ("s.txt", FASTA, FILE),
    "FASTA, labels by name": ("s.fa", FASTA, NAMES),
    "lines": ("s.log", "\n".join(WORDS), {**FILE, "format": "lines"}),
    "column": ("s.csv", lines([("word", "class"), *zip(WORDS, Y)]), {"labels": "class"}),
    "column beside ids": (
        "s.csv",
        lines([("id", "word", "class"), *zip(IDS, WORDS, Y)]),
        {"labels": "class"},
    ),
    "molecules": ("m.smi", lines(zip(WORDS, IDS), " "), NAMES),
}
REFUSED = {
    "no labels named": ("t.csv", CSV, {}, "--labels COLUMN"),
    "no such column": ("t.csv", CSV, {"labels": "nose"}, "neither a file nor a column"),
    "matrix without labels": ("D.csv", SQUARE.to_csv(), {}, "--labels FILE"),
    "decimal comma": (
        "t.csv",
        TABLE.to_csv(index=False, sep=";", decimal=","),
        COLUMN,
        "--decimal ,",
    ),
    "decimal commas beside whole numbers": (
        "t.csv",
        CSV.replace(",", ";").replace(f"{X[0, 0]};", "7;").replace(".", ","),
        COLUMN,
        "--decimal ,",
    ),
    "spaces and commas": ("D.txt", lines(D, " ").replace(".", ","), FILE, "--sep space"),
    "years": (
        "t.csv",
        TABLE.set_axis(["2001", "2002", "2007", "target"], axis=1).to_csv(index=False),
        COLUMN,
        "--header yes",
    ),
    "a list of strings": ("s.txt", "\n".join(WORDS), FILE, "--format lines"),
    "ragged": ("t.csv", CSV + "1,2\n", COLUMN, "line 32 has 2 cells"),
    "title above": ("t.csv", "Export\n" + CSV, COLUMN, "line 1 has 1 cells"),
    "open quote": ("t.csv", CSV.replace("right", '"right', 1), COLUMN, "cannot be divided"),
    "one name twice": ("t.csv", CSV.replace("a,b", "a,a", 1), COLUMN, "--header no"),
    "asymmetric square": ("K.csv", lines(np.triu(S) + np.eye(N)), FILE, "--kind similarity"),
    "gaps in a matrix": ("D.csv", SQUARE.where(S > 0.1).to_csv(), FILE, "missing or infinite"),
    "pairs of unknown kind": ("p.csv", lines(pairs(D)), {**NAMES, "format": "pairs"}, "--kind"),
    "pairs and too few labels": ("p.csv", lines(pairs(D)), NAMES, "--format pairs"),
    "pairs twice": (
        "p.csv",
        lines([("a", "b", "distance"), *pairs(D), (IDS[0], IDS[1], 99.0)]),
        NAMES,
        "listed twice",
    ),
    "pairs missing": (
        "p.csv",
        lines([("a", "b", "distance"), *pairs(D)[1:]]),
        NAMES,
        "list all pairs",
    ),
    "other names": (
        "D.csv",
        SQUARE.set_axis([f"x{i}" for i in range(N)]).to_csv(),
        NAMES,
        "are not those",
    ),
    "several texts": (
        "s.csv",
        lines([("u", "v", "class"), *zip(WORDS, WORDS, Y)]),
        {"labels": "class", "kind": "strings"},
        "--drop COLUMN",
    ),
    "an empty sequence": ("s.fasta", FASTA + ">last\n", FILE, "no sequence"),
    "damaged gzip": ("t.csv.gz", gzip.compress(CSV.encode())[:-20], COLUMN, "damaged"),
    "relational ARFF": (
        "t.arff",
        "@relation t\n@attribute bag relational\n@attribute a numeric\n@end bag\n@data\n'1\\n2',x\n",
        {},
        "write it as .ts",
    ),
    "zipped": ("t.zip", zipped("t.csv", CSV), COLUMN, "unpack it"),
    "several arrays": ("K.npz", lambda path: np.savez(path, u=S, v=S, y=Y), {}, "--array NAME"),
    "pickled array": (
        "K.npy",
        lambda path: np.save(path, np.array([{}, 1], object), allow_pickle=True),
        FILE,
        "pickle",
    ),
    "not text": ("t.csv", b"\x01\x00\x02\x07" * 20, COLUMN, "--format"),
    "PDF": ("t.csv", b"%PDF-1.7", COLUMN, "is a PDF"),
    "pickle": ("t.pkl", b"\x80\x04\x95", COLUMN, "never loaded"),
    "empty": ("t.csv", b"", COLUMN, "is empty"),
    "infinite": ("t.csv", CSV.replace(str(X[0, 0]), "inf", 1), COLUMN, "--missing inf"),
    "a header only": ("t.csv", "a,b,target\n", COLUMN, "a header and no rows"),
    "no label": (
        "t.csv",
        TABLE.assign(target=None).to_csv(index=False),
        COLUMN,
        "All labels are missing",
    ),
    "lists in cells": (
        "t.json",
        TABLE.assign(a=[[1, 2]] * N).to_json(orient="records"),
        COLUMN,
        "has lists",
    ),
    "another kind": ("s.fasta", FASTA, {**FILE, "kind": "table"}, "correct --kind"),
    "a similarity of several texts": (
        "s.csv",
        lines([("u", "v", "class"), *zip(WORDS, WORDS, Y)]),
        {"labels": "class", "similarity": "levenshtein"},
        "--drop COLUMN",
    ),
    "one class": (
        "t.csv",
        TABLE.assign(target="x").to_csv(index=False),
        COLUMN,
        "nothing to learn",
    ),
    "a class per item": (
        "t.csv",
        NAMED.to_csv(index_label="u"),
        {"labels": "u"},
        "fewer than five items",
    ),
    "a class per number": (
        "t.csv",
        TABLE.assign(u=range(N)).to_csv(index=False),
        {"labels": "u", "task": "classification"},
        "--task regression",
    ),
    "unknown format": ("t.csv", CSV, {"format": "docx"}, "format='docx' is not known"),
    "sheets": ("t.xlsx", None, COLUMN, "--sheet NAME"),
    "a sheet of text": ("t.csv", CSV, {**COLUMN, "sheet": "2"}, "--sheet is for excel files"),
    "several separators": (
        "t.csv",
        CSV,
        {**COLUMN, "sep": "ab"},
        "--sep 'ab' is not one character",
    ),
}


def write(folder, name, content):
    (folder / "y.txt").write_text("\n".join(Y))
    (folder / "y.csv").write_text(BY_ID)
    path = folder / name
    if callable(content):
        content(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content is None:
        with pd.ExcelWriter(path) as writer:
            TABLE.to_excel(writer, sheet_name="one")
            TABLE.to_excel(writer, sheet_name="two")
    else:
        path.write_text(content, encoding="utf-8", newline="")


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(name, content, options):
        write(tmp_path, name, content)
        return read_problem(name, **options)

    return read


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES)
def test_tables(read, case):
    problem = read(*case)
    assert (problem.kind, problem.task) == ("table", "classification")
    np.testing.assert_allclose(problem.X.to_numpy(dtype=float), X)
    np.testing.assert_array_equal(problem.y, Y)


@pytest.mark.parametrize("case", MATRICES.values(), ids=MATRICES)
def test_matrices(read, case):
    *file, expected = case
    problem = read(*file)
    is_hits = expected is NEAR
    assert problem.kind == ("hits" if is_hits else "distance" if expected is D else "similarity")
    order = np.arange(N) if problem.names is None else [problem.names.index(i) for i in IDS]
    np.testing.assert_allclose(problem.matrix[np.ix_(order, order)], expected, atol=1e-12)
    np.testing.assert_array_equal(problem.y[order], Y)


@pytest.mark.parametrize("case", STRINGS.values(), ids=STRINGS)
def test_strings(read, case):
    problem = read(*case)
    assert problem.kind == "strings"
    assert list(problem.X) == WORDS
    np.testing.assert_array_equal(problem.y, Y)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_one_sentence(read, case):
    *file, sentence = case
    with pytest.raises((ValueError, OSError)) as caught:
        read(*file)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


WORD = st.one_of(
    st.sampled_from(
        [
            "u",
            "v v",
            "w;x",
            "y,z",
            'q"r',
            "a-b",
            "ü",
            "None",
            "x\ty",
            "1 m",
            "p|q",
            "two\nlines",
            '5"',
        ]
    ),
    st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), min_size=1, max_size=9).map(
        lambda text: "w" + text.rstrip() + "w"
    ),
)
GAP = st.none()
CELLS = {
    "numbers": st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 6) + 0.5),
    "whole": st.integers(-1000, 1000),
    "large": st.integers(2**40, 2**62),
    "words": WORD,
    "words and gaps": st.one_of(GAP, WORD),
    "gaps": st.one_of(GAP, st.floats(-5, 5)),
    "only gaps": GAP,
    "flags": st.booleans(),
    "dates": st.datetimes(pd.Timestamp(1950, 1, 1), pd.Timestamp(2050, 1, 1)).map(
        lambda time: pd.Timestamp(time).floor("s")
    ),
    "days": st.dates().map(str),
}
TEXTS = {"csv": ",;|", "tsv": "\t", "txt": ",;|\t"}


@st.composite
def frames(draw):
    """A frame of any columns, and how it is written."""
    n = 12
    columns = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=20))
    if draw(st.booleans()):  # wide tables of one kind, such as whole numbers
        columns = columns[:1] * draw(st.integers(1, 40))
    frame = pd.DataFrame(
        {f"c{j}": [draw(CELLS[k]) for _ in range(n)] for j, k in enumerate(columns)}
    )
    frame["target"] = ["yes", "no"] * (n // 2)
    return frame, draw(st.sampled_from([*TEXTS, "parquet", "xlsx", "jsonl"]))


def write_frame(frame, path, draw):
    """Write a frame as pandas does, with any separator, encoding and ends of lines."""
    ending = path.suffix[1:]
    if ending in TEXTS:
        encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
        end = draw(st.sampled_from(["\n", "\r\n"]))
        sep = draw(st.sampled_from(TEXTS[ending]))
        frame.to_csv(path, index=False, sep=sep, encoding=encoding, lineterminator=end)
    elif ending == "jsonl":
        text = frame.to_json(orient="records", lines=True, double_precision=12, date_format="iso")
        path.write_text(text)
    else:
        getattr(frame, {"parquet": "to_parquet", "xlsx": "to_excel"}[ending])(path, index=False)


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_frame_comes_back_from_every_format(tmp_path_factory, data):
    """What pandas writes is read as that frame, whatever its width and its columns."""
    frame, ending = data.draw(frames())
    path = tmp_path_factory.mktemp("frame with spaces") / f"a table.{ending}"
    write_frame(frame, path, data.draw)
    is_unclear = frame.shape[1] - 1 in (1, len(frame))  # a list of strings, or a square
    problem = read_problem(str(path), labels="target", kind="table" if is_unclear else None)
    assert list(problem.X.columns) == list(frame.columns[:-1])
    assert problem.n_items == len(frame)
    for name in problem.X:
        given, expected = problem.X[name], frame[name]
        assert (given.isna() == expected.isna()).all()
        given, expected = given.dropna(), expected.dropna()
        if pd.api.types.is_bool_dtype(expected):
            assert pd.api.types.is_bool_dtype(given) and (given == expected).all()
        elif pd.api.types.is_datetime64_any_dtype(expected):
            pd.testing.assert_index_equal(
                pd.DatetimeIndex(pd.to_datetime(given)).tz_localize(None).as_unit("s"),
                pd.DatetimeIndex(expected).as_unit("s"),
                check_names=False,
            )
        elif pd.api.types.is_numeric_dtype(expected):
            assert pd.api.types.is_numeric_dtype(given)
            np.testing.assert_allclose(
                given.astype(float), expected.astype(float), rtol=1e-9, atol=1e-9
            )
        else:
            assert given.astype(str).tolist() == expected.astype(str).tolist()


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_file_is_read_or_raises_a_sentence(tmp_path, seed):
    rng = np.random.default_rng(seed)
    name, content, options = list(TABLES.values())[rng.integers(len(TABLES))]
    write(tmp_path, name, content)
    path = tmp_path / name
    damaged = bytearray(path.read_bytes())
    for place in rng.integers(0, len(damaged), 5):
        damaged[place] = rng.integers(256)
    path.write_bytes(bytes(damaged[: rng.integers(1, len(damaged) + 1)]))
    if "y.csv" in options.get("labels", ""):
        options = {**options, "labels": str(tmp_path / options["labels"])}
    try:
        read_problem(str(path), **options)
    except (ValueError, OSError) as error:
        assert "\n" not in str(error)


def test_a_row_without_a_label_is_left_out_and_noted(tmp_path):
    TABLE.assign(target=TABLE["target"].where(np.arange(N) % 10 > 0)).to_csv(tmp_path / "t.csv")
    problem = read_problem(str(tmp_path / "t.csv"), labels="target")
    assert problem.n_items == N - 3
    assert any("without a label, which are left out: 3" in str(note) for note in problem.notes)


def test_none_is_a_class_and_a_number_with_a_unit_is_noted(tmp_path):
    frame = TABLE.assign(
        target=np.where(Y == "left", "None", "Some"), a=[f"{x:.2f} mm" for x in X[:, 0]]
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(str(tmp_path / "t.csv"), labels="target")
    np.testing.assert_array_equal(problem.y == "None", Y == "left")
    assert any(" mm'" in str(note) and "--missing" in str(note) for note in problem.notes)


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet", "t.jsonl"])
def test_a_number_means_a_gap_in_every_format(tmp_path, name):
    frame = TABLE.assign(a=np.where(np.arange(N) < 4, -999, 5))
    writers = {
        "t.csv": frame.to_csv,
        "t.xlsx": frame.to_excel,
        "t.parquet": frame.to_parquet,
        "t.jsonl": lambda path: frame.to_json(path, orient="records", lines=True),
    }
    writers[name](tmp_path / name)
    problem = read_problem(str(tmp_path / name), labels="target", missing=("-999",))
    np.testing.assert_array_equal(problem.X["a"].isna(), np.arange(N) < 4)


def test_words_that_mean_gaps(tmp_path):
    frame = TABLE.assign(a=TABLE["a"].astype(object).where(np.arange(N) > 3, "unknown"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(str(tmp_path / "t.csv"), labels="target", missing=("unknown",))
    assert problem.X["a"].isna().sum() == 4
    assert pd.api.types.is_numeric_dtype(problem.X["a"])


def test_groups_are_a_column_that_is_no_feature(tmp_path):
    TABLE.assign(g=np.arange(N) // 3).to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(str(tmp_path / "t.csv"), labels="target", groups="g")
    assert list(problem.X) == ["a", "b", "c"]
    np.testing.assert_array_equal(problem.groups, np.arange(N) // 3)


def test_as_many_series_as_points_in_time_are_no_matrix(tmp_path):
    rows = [",".join(map(str, row)) + ":" + y for row, y in zip(D + np.triu(D), Y)]
    text = "@problemName t\n@classLabel true left right\n@data\n" + "\n".join(rows)
    (tmp_path / "t.ts").write_text(text)
    assert read_problem(str(tmp_path / "t.ts")).kind == "table"


@pytest.mark.filterwarnings("ignore::Warning")  # of numba
def test_series_of_different_lengths_are_compared_by_warping(tmp_path):
    pytest.importorskip("aeon")
    (tmp_path / "t.ts").write_text(series(equal=False))
    problem = read_problem(str(tmp_path / "t.ts"))
    assert (problem.kind, problem.kernel) == ("series", "dtw")
    assert problem.matrix.shape == (N, N)


# ---------------------------------------------------------------------------------------------- data from Python


def test_a_selection_takes_everything_of_its_items(tmp_path):
    items = np.array([25, 4, 17, 5])
    write(tmp_path, "D.csv", SQUARE.to_csv())
    groups = pd.DataFrame({"id": IDS, "g": np.arange(N) // 2})
    groups.to_csv(tmp_path / "g.csv", index=False)
    files = {"labels": str(tmp_path / "y.csv"), "groups": str(tmp_path / "g.csv")}
    problem = read_problem(str(tmp_path / "D.csv"), **files).select(items)
    assert problem.names == tuple(IDS[i] for i in items)
    np.testing.assert_array_equal(problem.X, D[np.ix_(items, items)])
    np.testing.assert_array_equal(problem.groups.astype(int), items // 2)
    np.testing.assert_array_equal(problem.y, Y[items])


@pytest.mark.parametrize(
    "y, task", [([1, 2] * 15, "classification"), (X[:, 0], "regression"), (range(30), "regression")]
)
def test_whole_numbers_of_few_values_are_classes(y, task, tmp_path):
    TABLE.assign(target=list(y)).to_csv(tmp_path / "t.csv", index=False)
    assert read_problem(str(tmp_path / "t.csv"), labels="target").task == task


def test_labels_of_another_order_raise():
    frame, y = TABLE[["a", "b"]].set_axis(IDS), pd.Series(Y, IDS)
    with pytest.raises(ValueError, match=r"y\.loc\[X\.index\]"):
        compare(frame, y.iloc[::-1])


@pytest.mark.skipif(sys.platform == "win32", reason="times of child processes")
@pytest.mark.parametrize(
    "words",
    [["compare", "--bugdet", "9s"], ["compare", "none.csv"], ["fit", "x", "--decimal", ";"]],
)
def test_a_mistyped_option_imports_nothing_heavy(tmp_path, words):
    import resource

    code = (
        f"import sys; from mercerless.cli import main; main({words!r})\n"
        "print('numpy' in sys.modules, 'pandas' in sys.modules)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.split() == ["False", "False"], done.stderr
    assert done.stderr.count("\n") == 1
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3
