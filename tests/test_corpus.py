"""Files as people have them: each is read as what it is, or refused with the sentence that helps."""

import bz2
import gzip
import io
import lzma
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat
from scipy.spatial.distance import squareform

from mercerless.comparison import read_problem
from mercerless.comparison.columns import coerce
from mercerless.comparison.problem import make_problem
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


def series_text(equal=True, dimensions=1):
    """Time series as sktime writes them."""
    rows = []
    for i, row in enumerate(X):
        values = list(row) if equal or i % 2 else [row[0], *(row[:2] + row[1:]) / 2, row[2]]
        rows.append(":".join([",".join(map(str, values))] * dimensions + [Y[i]]))
    head = "#comment\n@problemName t\n@timestamps false\n@univariate true\n"
    return head + "@classLabel true left right\n@data\n" + "\n".join(rows)


def arff_text():
    rows = [f"{a},{b},{c},{y}" for (a, b, c), y in zip(X, Y)]
    head = (
        "% a comment\n@RELATION t\n@ATTRIBUTE a NUMERIC\n@attribute 'b' real\n@attribute c real\n"
    )
    return head + "@attribute target {left,right}\n\n@DATA\n" + "\n".join(rows)


def hits(values, mark="\t"):
    """Hits of a search: 12 columns, a worse second hit for every pair, none for unlike pairs."""
    rows = []
    for i in range(N):
        for j in range(N):
            if values[i, j] > 0.0:
                for score in (values[i, j], values[i, j] / 2):
                    rows.append([IDS[i], IDS[j], 90.0, 9, 1, 0, 1, 9, 1, 9, 1e-5, score])
    return lines(rows, mark)


def printed(values, names, width=7, digits=7):
    """What R's print(dist) shows: a lower triangle in blocks of columns."""
    blocks = []
    for start in range(0, len(names) - 1, width):
        columns = list(range(start, min(start + width, len(names) - 1)))
        rows = [" " * 7 + " ".join(f"{names[j]:>9}" for j in columns)]
        for i in range(1, len(names)):
            cells = [f"{values[i, j]:9.{digits}f}" if j < i else " " * 9 for j in columns]
            rows.append(f"{names[i]:7}" + " ".join(cells))
        blocks.append("\n".join(rows))
    return "\n".join(blocks)


def graphml(values, labels=True, directed=False):
    keys = '<key id="d0" for="node" attr.name="class"/><key id="d1" for="edge" attr.name="weight"/>'
    nodes = "".join(
        f'<node id="{item}"><data key="d0">{y}</data></node>' if labels else f'<node id="{item}"/>'
        for item, y in zip(IDS, Y)
    )
    edges = "".join(
        f'<edge source="{IDS[i]}" target="{IDS[j]}"><data key="d1">{values[i, j]}</data></edge>'
        for i in range(N)
        for j in range(N if directed else i)
        if values[i, j]
    )
    kind = "directed" if directed else "undirected"
    head = '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    return f'{head}{keys}<graph edgedefault="{kind}">{nodes}{edges}</graph></graphml>'


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
MOLECULES = ["C" * (i % 7 + 1) + "(=O)N" + "c1ccccc1" * (i % 3) + "O" * (i // 7) for i in range(N)]
NEIGHBORS = np.abs(np.subtract.outer(np.arange(N), np.arange(N))) == 1
NEAR = np.where((S > 0.2) | NEIGHBORS, S, 0.0)  # and no hit for unlike pairs
np.fill_diagonal(NEAR, NEAR[~np.eye(N, dtype=bool)].max())
LINKED = (NEAR > 0).astype(float)
RING = np.roll(np.eye(N), 1, axis=1) * 2.0 + np.eye(N) * 2.0
R_LABELS = '"x"\n' + "".join(f'"{IDS[i]}" "{Y[i]}"\n' for i in SHUFFLED)
FILE = {"labels": "y.txt"}
COLUMN = {"labels": "target"}

#: name of the case: (file, writer, arguments, what X shall be)
TABLES = {
    "comma": ("t.csv", text(CSV), COLUMN, X),
    "the label column is found": ("t.csv", text(CSV), {}, X),
    "semicolon and decimal comma": ("t.csv", text(GERMAN), COLUMN, X),
    "a title above the header": ("t.csv", text("Export of May 17\n\n" + GERMAN), COLUMN, X),
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
TABLES |= {
    "an ending nobody knows": ("t.results", text(CSV), COLUMN, X),
    "no ending": ("t", text(CSV), COLUMN, X),
    "parquet by another name": ("t.bin", frame("to_parquet"), COLUMN, X),
    "gzip by another name": ("t.csv", raw(gzip.compress(CSV.encode())), COLUMN, X),
    "JSON records": ("t.json", text(TABLE.to_json(orient="records")), COLUMN, X),
    "JSON columns": ("t.json", text(TABLE.to_json()), COLUMN, X),
    "JSON by rows": ("t.json", text(TABLE.to_json(orient="index")), COLUMN, X),
    "JSON split": ("t.json", text(TABLE.to_json(orient="split")), COLUMN, X),
    "JSON with schema": ("t.json", text(TABLE.to_json(orient="table")), COLUMN, X),
    "JSON lines": ("t.jsonl", text(TABLE.to_json(orient="records", lines=True)), COLUMN, X),
    "JSON lines by another name": (
        "t.txt",
        text(TABLE.to_json(orient="records", lines=True)),
        COLUMN,
        X,
    ),
    "ARFF": ("t.arff", text(arff_text()), {}, X),
    "ARFF by another name": ("t.txt", text(arff_text()), COLUMN, X),
    "time series": ("t.ts", text(series_text()), {}, X),
    "time series by another name": ("t.txt", text(series_text()), {}, X),
    "time series of two dimensions": (
        "t.ts",
        text(series_text(dimensions=2)),
        {},
        np.hstack([X, X]),
    ),
    "labels by R's write.table": (
        "t.csv",
        with_labels(TABLE.drop(columns="target").set_index(pd.Index(IDS)).to_csv(), R_LABELS),
        {"labels": "y.csv"},
        X,
    ),
    "labels by R's write.table, unquoted": (
        "t.csv",
        with_labels(
            TABLE.drop(columns="target").set_index(pd.Index(IDS)).to_csv(),
            R_LABELS.replace('"', ""),
        ),
        {"labels": "y.csv"},
        X,
    ),
}
SPARSE_ROWS = "".join(
    f"{1 if label == 'left' else -1} 1:{a} 2:{b} 3:{c}\n" for (a, b, c), label in zip(X, Y)
)
TABLES |= {
    "Excel's line sep=": ("t.csv", text("sep=;\n" + GERMAN), COLUMN, X),
    "marks at the ends of the lines": ("t.csv", text(CSV.replace("\n", ",\n")), {}, X),
    "marks at the ends of the rows": (
        "t.csv",
        text(CSV.replace("\n", ",,\n").replace(",,", "", 1)),
        {},
        X,
    ),
    "two titles above the header": ("t.csv", text('"Sales, 2020"\nby me\n\n' + CSV), COLUMN, X),
    "single quotes": (
        "t.csv",
        text(TABLE.to_csv(index=False, quotechar="'", quoting=1)),
        COLUMN,
        X,
    ),
    "a header that is a comment": ("t.csv", text("# by me\n# " + CSV), COLUMN, X),
    "JSON records below a name": (
        "t.json",
        text('{"rows": ' + TABLE.to_json(orient="records") + "}"),
        COLUMN,
        X,
    ),
    "R's column X": ("t.csv", text(TABLE.to_csv(index_label="X")), COLUMN, X),
    "Stata": ("t.dta", frame("to_stata", write_index=False), COLUMN, X),
    "Stata by another name": (
        "t.bin",
        frame("to_stata", write_index=False, version=118),
        COLUMN,
        X,
    ),
    "text by the name of arrays": ("t.mat", text(CSV), COLUMN, X),
    "labels after names, between spaces": (
        "t.csv",
        with_labels(
            TABLE.drop(columns="target").set_index(pd.Index(IDS)).to_csv(),
            "".join(f"{IDS[i]} {Y[i]}\n" for i in SHUFFLED),
        ),
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
MATRICES |= {
    "R's print(dist)": ("d.txt", text(printed(D, IDS)), FILE, D),
    "R's print(dist), numbered": (
        "d.out",
        text(printed(D, [str(i + 1) for i in range(N)], width=5)),
        FILE,
        D,
    ),
    "JSON": ("D.json", text(str(D.tolist())), FILE, D),
    "hits": ("h.m8", with_labels(hits(NEAR), BY_ID), {"labels": "y.csv"}, NEAR),
    "hits by another name": ("h.txt", with_labels(hits(NEAR), BY_ID), {"labels": "y.csv"}, NEAR),
    "hits with comments": (
        "h.tsv",
        with_labels("# BLASTP 2.12.0+\n" + hits(NEAR), BY_ID),
        {"labels": "y.csv"},
        NEAR,
    ),
    "GraphML": ("g.graphml", text(graphml(NEAR)), {}, NEAR),
    "GraphML, directed": ("g.graphml", text(graphml(RING, directed=True)), {}, RING),
    "GraphML with labels in a file": (
        "g.xml",
        with_labels(graphml(NEAR, labels=False), BY_ID),
        {"labels": "y.csv"},
        NEAR,
    ),
    "edges": (
        "e.txt",
        with_labels(lines([pair[:2] for pair in pairs(LINKED) if pair[2]], " "), BY_ID),
        {"labels": "y.csv"},
        LINKED,
    ),
    "edges of NetworkX": (
        "e.edgelist",
        with_labels(lines([(*pair[:2], "{}") for pair in pairs(LINKED) if pair[2]], " "), BY_ID),
        {"labels": "y.csv"},
        LINKED,
    ),
    "weighted edges of NetworkX": (
        "e.edgelist",
        with_labels(
            lines(
                [(*pair[:2], {"weight": float(pair[2])}) for pair in pairs(NEAR) if pair[2]], " "
            ),
            BY_ID,
        ),
        {"labels": "y.csv", "kind": "similarity"},
        NEAR,
    ),
}
STRINGS = {
    "lines": ("s.txt", text("\n".join(WORDS)), FILE),
    "FASTA": ("s.fasta", text(FASTA), FILE),
    "FASTA by another name": ("s.txt", text(FASTA), FILE),
    "FASTA with labels by id": ("s.fa", with_labels(FASTA, BY_ID), {"labels": "y.csv"}),
    "column": ("s.csv", text(lines([("word", "class"), *zip(WORDS, Y)])), {}),
    "column beside ids": ("s.csv", text(lines([("id", "word", "class"), *zip(IDS, WORDS, Y)])), {}),
    "tabs without header": ("s.tsv", text(lines(zip(WORDS, Y), "\t")), {}),
    "lines by --format": ("s.log", text("\n".join(WORDS)), {**FILE, "format": "lines"}),
}
SMILES = {
    "molecules": ("m.smi", text("\n".join(MOLECULES)), FILE),
    "molecules and names": (
        "m.smi",
        with_labels(lines(zip(MOLECULES, IDS), " "), BY_ID),
        {"labels": "y.csv"},
    ),
    "molecules, names and labels": ("m.smi", text(lines(zip(MOLECULES, IDS, Y), "\t")), {}),
    "molecules and labels": ("m.smi", text(lines(zip(MOLECULES, Y), "\t")), {}),
    "molecules with a header": (
        "m.smi",
        with_labels(lines([("smiles", "name"), *zip(MOLECULES, IDS)], " "), BY_ID),
        {"labels": "y.csv"},
    ),
    "molecules by another name": (
        "m.txt",
        with_labels(lines(zip(MOLECULES, IDS), " "), BY_ID),
        {"labels": "y.csv"},
    ),
    "molecules in a table": ("m.csv", text(lines([("smiles", "class"), *zip(MOLECULES, Y)])), {}),
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
    assert "labels" in {*case[2], *guesses_of(problem)}  # given, or recorded as a guess
    np.testing.assert_array_equal(problem.X, case[3])
    np.testing.assert_array_equal(problem.y, Y)


@pytest.mark.parametrize("case", MATRICES.values(), ids=MATRICES)
def test_matrices(tmp_path, monkeypatch, case):
    problem = read(tmp_path, monkeypatch, case)
    expected = "distance" if case[3] is D else "similarity"
    assert (problem.kind, problem.task) == (expected, "classification")
    if not case[0].endswith((".npz", ".mat")):  # where an array is named like labels
        assert "labels" in {*case[2], *guesses_of(problem)}  # given, or recorded as a guess
    np.testing.assert_allclose(problem.X, case[3], atol=1e-12)
    np.testing.assert_array_equal(problem.y == problem.y[0], Y == Y[0])
    assert not any(label.endswith(" ") for label in map(str, problem.y))


@pytest.mark.parametrize("case", STRINGS.values(), ids=STRINGS)
def test_strings(tmp_path, monkeypatch, case):
    pytest.importorskip("rapidfuzz")
    problem = read(tmp_path, monkeypatch, case)
    assert problem.kind == "strings" and problem.items == tuple(WORDS)
    np.testing.assert_array_equal(problem.y, Y)


@pytest.mark.parametrize("case", SMILES.values(), ids=SMILES)
def test_molecules(tmp_path, monkeypatch, case):
    pytest.importorskip("rapidfuzz")
    problem = read(tmp_path, monkeypatch, case)
    assert problem.kind == "strings" and problem.items == tuple(MOLECULES)
    np.testing.assert_array_equal(problem.y, Y)


def guesses_of(problem):
    return {guess.what: (guess.value, guess.why) for guess in problem.guesses}


# ----------------------------------------------------------------------------------------------- missing labels

UNLABELED = [3, 11, 12, 29]


def without_some(values, gap):
    values = np.array(values, dtype=object)
    values[UNLABELED] = gap
    return values


@pytest.mark.parametrize("target", ["words", "classes", "numbers"])
@pytest.mark.parametrize(
    "source", ["NA", "", "?", "null", "parquet", "xlsx", "json", "python", "npz"]
)
def test_rows_without_a_label_are_left_out_and_counted(tmp_path, target, source):
    """One rule for text, numbers, Parquet, Excel, JSON, arrays and Python."""
    full = {"words": Y, "classes": (Y == "left").astype(int), "numbers": X[:, 0]}[target]
    path = tmp_path / f"t.{source if source in ('parquet', 'xlsx', 'json', 'npz') else 'csv'}"
    y = without_some(full, None)
    if target != "words":
        y = y.astype(float)
    table = TABLE.assign(target=y)
    if source == "parquet":
        table.to_parquet(path)
    elif source == "xlsx":
        table.to_excel(path, index=False)
    elif source == "json":
        table.to_json(path, orient="records")
    elif source == "npz":
        np.savez(path, X=X, y=y if target != "words" else np.where(pd.isna(y), "", y).astype(str))
    elif source != "python":
        table.assign(target=without_some(full, source)).to_csv(path, index=False)
    if source == "python":
        problem = make_problem(X, y, groups=np.arange(N) % 6)
        np.testing.assert_array_equal(problem.groups, np.delete(np.arange(N) % 6, UNLABELED))
    else:
        problem = read_problem(path)
    kept = np.delete(np.arange(N), UNLABELED)
    np.testing.assert_allclose(problem.X, X[kept])
    np.testing.assert_array_equal(problem.y, full[kept])
    assert guesses_of(problem)["left out"] == ("4 of 30 items", "they have no label")
    assert problem.task == ("regression" if target == "numbers" else "classification")


def test_items_of_a_matrix_without_a_label_are_left_out_on_both_sides():
    y = without_some(Y, np.nan)
    kept = np.delete(np.arange(N), UNLABELED)
    problem = make_problem(D, y, X_test=D[:6], y_test=[*Y[:5], None], ids=IDS)
    np.testing.assert_array_equal(problem.X, D[np.ix_(kept, kept)])
    np.testing.assert_array_equal(problem.X_test, D[:5][:, kept])
    assert problem.ids == tuple(IDS[i] for i in kept) and len(problem.y_test) == 5
    left_out = [guess.value for guess in problem.guesses if guess.what == "left out"]
    assert left_out == ["4 of 30 items", "1 of 6 test items"]
    series = pd.Series(y, dtype="string").where(~pd.isna(y))
    np.testing.assert_array_equal(make_problem(D, series).y, Y[kept])


def test_the_split_follows_the_labeled_rows(tmp_path):
    table = TABLE.assign(
        target=without_some(Y, "NA"), split=np.where(np.arange(N) % 5, "train", "test")
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(tmp_path / "t.csv")
    kept = np.delete(np.arange(N), UNLABELED)
    np.testing.assert_allclose(problem.X, X[kept[kept % 5 > 0]])
    np.testing.assert_allclose(problem.X_test, X[kept[kept % 5 == 0]])


def test_items_that_the_file_of_labels_lacks_are_left_out(tmp_path):
    (tmp_path / "D.csv").write_text(named(D))
    (tmp_path / "y.csv").write_text(BY_ID.replace("item07,", "other,"))
    problem = read_problem(tmp_path / "D.csv", labels=str(tmp_path / "y.csv"))
    assert problem.ids == (*IDS[:7], *IDS[8:])
    assert guesses_of(problem)["left out"] == ("1 of 30 items", "they have no label")


def test_decimal_commas_beside_words_are_numbers(tmp_path):
    """pandas reads a column as text if one of its cells is a word."""
    rows = [f"{a:.2f};{b:.3f};{c:.1f}".replace(".", ",") for a, b, c in 10 * X]
    rows[3] = "unknown;1,5;2,5"
    rows[5] = "1,25;unknown;2,5"
    (tmp_path / "t.csv").write_text("price;area;age\n" + "\n".join(rows))
    problem = read_problem(tmp_path / "t.csv", labels="price")
    assert problem.task == "regression" and len(problem.y) == N - 1
    np.testing.assert_allclose(problem.y[:3], (10 * X[:3, 0]).round(2))
    assert problem.X["area"].dtype.kind == "f" and problem.X["area"].isna().sum() == 1
    np.testing.assert_allclose(problem.X["area"].iloc[:3], (10 * X[:3, 1]).round(3))


def test_only_a_line_of_one_cell_above_equal_lines_is_a_title(tmp_path):
    rows = "\n".join(f"{i};{i % 7};{i % 2}" for i in range(N))
    (tmp_path / "t.csv").write_text("two;words\na;b;y\n" + rows)
    with pytest.raises(ValueError, match="'y' is neither a file nor in"):
        read_problem(tmp_path / "t.csv", labels="y")
    (tmp_path / "t.csv").write_text("two words\na;b;y\n" + rows)
    problem = read_problem(tmp_path / "t.csv", labels="y")
    assert problem.X.shape == (N, 2) and len(problem.y) == N
    (guess,) = [guess for guess in problem.guesses if "first line" in guess.value]
    assert guess.value == "the first line, 'two words'" and guess.why.endswith("all other lines 3")


def test_a_word_among_numeric_targets_is_a_missing_label(tmp_path):
    y = (X[:, 0] + 1.5).astype(object)
    y[[4, 9]] = "not measured"
    TABLE.assign(target=y).to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(tmp_path / "t.csv")
    assert problem.task == "regression" and len(problem.y) == N - 2
    assert guesses_of(problem)["missing labels"][0] == "'not measured'"


@pytest.mark.parametrize("gap, is_level", [("", True), ("NA", True), ("None", False), (None, True)])
def test_none_is_a_level_unless_a_column_of_numbers_has_it(tmp_path, gap, is_level):
    color = np.array(["red", "blue", "None"])[np.arange(N) % 3]
    table = TABLE.assign(color=color)
    if gap is not None:
        table["a"] = without_some(table["a"], gap)
    table.to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(tmp_path / "t.csv", labels="target")
    said = guesses_of(problem)["None"][0]
    assert said == ("a level in color" if is_level else "a missing value in color")
    assert problem.X["color"].isna().sum() == (0 if is_level else 10)
    assert problem.roles["color"] == ("category None" if is_level else "category")
    labels = read_problem(tmp_path / "t.csv", labels="color")
    assert set(labels.y) == {"red", "blue"} | ({"None"} if is_level else set())
    assert len(labels.y) == (N if is_level else 20)


# --------------------------------------------------------------------------------------- classes in front, words


@pytest.mark.parametrize("codes", [[1, 2], [-1, 1], [3, 8]])
@pytest.mark.parametrize("mark", ["\t", ",", "  "])
def test_time_series_with_their_class_in_front(tmp_path, codes, mark):
    """As the UCR archive has them: no header, and the class before the points in time."""
    y = np.array(codes)[(Y == "left").astype(int)]
    series = RNG.normal(size=(N, 24)).round(5)
    (tmp_path / "t.tsv").write_text(lines([[label, *row] for label, row in zip(y, series)], mark))
    problem = read_problem(tmp_path / "t.tsv")
    assert (problem.kind, problem.task) == ("table", "classification")
    np.testing.assert_allclose(problem.X, series)
    np.testing.assert_array_equal(problem.y, y)
    assert guesses_of(problem)["labels"][0] == "column 'column 1'"


def test_codes_in_front_of_a_table_are_classes_and_a_doubt_is_a_question(tmp_path):
    codes = np.arange(N) % 3 + 1
    table = pd.DataFrame(np.column_stack([codes, X, np.arange(N) * 7]))
    table.to_csv(tmp_path / "t.csv", index=False, header=False)
    problem = read_problem(tmp_path / "t.csv")
    np.testing.assert_array_equal(problem.y, codes)
    table.insert(2, "more", np.arange(N) % 2)
    table.to_csv(tmp_path / "t.csv", index=False, header=False)
    with pytest.raises(ValueError, match=r"say --labels 'column 1' or --labels 'column 6'\.$"):
        read_problem(tmp_path / "t.csv")
    np.testing.assert_array_equal(read_problem(tmp_path / "t.csv", labels="column 1").y, codes)
    with_header = table.set_axis(list("uvwxyz"), axis=1).drop(columns="y")
    with_header.to_csv(tmp_path / "t.csv", index=False)
    assert guesses_of(read_problem(tmp_path / "t.csv"))["labels"][0] == "column 'z'"


def test_series_of_unequal_length_are_stretched_on_request(tmp_path):
    (tmp_path / "t.ts").write_text(series_text(equal=False))
    problem = read_problem(tmp_path / "t.ts", kind="table")
    said = guesses_of(problem)["series"][0]
    assert said == "3 to 4 points each, stretched to one length"
    np.testing.assert_allclose(problem.X[:, [0, -1]], X[:, [0, 2]])
    np.testing.assert_allclose(problem.X[1::2, 1], X[1::2, 0] / 3 + X[1::2, 1] * 2 / 3)
    np.testing.assert_array_equal(problem.y, Y)


def test_a_stray_word_in_a_column_of_numbers_is_a_gap_or_a_category(tmp_path):
    table = TABLE.assign(
        a=[*X[:-2, 0], "unknown", "inf"],
        price=[f"{1000 + 37 * i:,}" for i in range(N)],
        cylinders=np.array(["4", "6", "8", "5+"])[np.arange(N) % 4],
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    problem = read_problem(tmp_path / "t.csv", labels="target")
    assert problem.roles == dict.fromkeys(["a", "b", "c", "price"], "number") | {
        "cylinders": "category"
    }
    assert problem.X["a"].isna().tolist() == [False] * (N - 2) + [True] * 2
    np.testing.assert_array_equal(problem.X["price"], 1000 + 37 * np.arange(N))
    said = guesses_of(problem)
    assert said["words among numbers"][0] == "column 'a': 1 cell is 'unknown'"
    assert said["categories"][0] == "column 'cylinders' with '5+'"


def test_a_sheet_is_chosen_by_name_or_number(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
        pd.DataFrame({"note": ["read me"]}).to_excel(writer, sheet_name="about", index=False)
        TABLE.to_excel(writer, sheet_name="my data", index=False)
    for sheet in ("my data", "2"):
        problem = read_problem(tmp_path / "t.xlsx", sheet=sheet)
        np.testing.assert_allclose(problem.X, X)
    with pytest.raises(ValueError, match=r"choose one, such as --sheet 'my data'\.$"):
        read_problem(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="has no sheet '3'; it has 'about', 'my data'"):
        read_problem(tmp_path / "t.xlsx", sheet="3")


#: The first bytes of files that are no data: what each seems to be, and the way out
NO_DATA = {
    "a.pdf": (b"%PDF-1.7", "seems to be a PDF; save its table as .csv"),
    "a.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel or Word file; save it as .xlsx or .csv"),
    "a.docx": (zipped("word/document.xml", "<w/>"), "seems to be a Word file"),
    "a.ods": (zipped("mimetype", "opendocument"), "OpenDocument file; save it as .xlsx or .csv"),
    "a.pkl": (b"\x80\x04\x95", "holds pickled Python objects, which are never loaded"),
    "a.RData": (gzip.compress(b"RDX3\nX\n"), "an R workspace; write the data with write.csv in R"),
    "a.h5": (b"\x89HDF\r\n", "an HDF5 file; save the matrix as .npy"),
    "a.html": (b"<!DOCTYPE html><html>", "seems to be a web page; download the data itself"),
    "a.mat": (b"MATLAB 7.3 MAT-file", "a MATLAB 7.3 file; save it with -v7"),
}


@pytest.mark.parametrize("name", NO_DATA)
def test_what_is_no_data_is_named_with_the_way_out(tmp_path, name):
    content, sentence = NO_DATA[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_problem(tmp_path / name)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


AT_ONCE = {
    "what is no data": (["a.pdf"], "'a.pdf' seems to be a PDF; save its table as .csv."),
    "what is neither text nor known": (["a.bin"], "'a.bin' is not text; save it as UTF-8."),
    "no file": (["none.csv"], "There is no file 'none.csv'; check the path."),
    "no file behind an option": (
        ["--budget", "9s", "none.csv"],
        "There is no file 'none.csv'; check the path.",
    ),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_refusal_imports_neither_numpy_nor_pandas(tmp_path, name):
    words, sentence = AT_ONCE[name]
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    (tmp_path / "a.bin").write_bytes(b"\x01\x00\x02\x07" * 20)
    done = imported_by(tmp_path, ["compare", *words])
    assert done.stdout.split() == ["2", "False", "False"]
    assert done.stderr == f"mercerless compare: {sentence}\n"


def imported_by(folder, words):
    """Run a command; it prints its exit code, and whether NumPy and pandas were imported."""
    code = (
        f"import sys; from mercerless.cli import main; code = main({words!r}); "
        "print(code, 'numpy' in sys.modules, 'pandas' in sys.modules)"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_a_mistyped_option_imports_neither_numpy_nor_pandas(tmp_path):
    code = (
        "import sys; from mercerless.cli import main\n"
        "try: main(['compare', '--bugdet', '9s'])\n"
        "except SystemExit: print('numpy' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "False"]


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
    with pytest.raises(
        ValueError, match="has sheets 'first', 'second'; choose one, such as --sheet first"
    ):
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
    "a separator nobody expects": (
        "t.csv",
        text(CSV.replace(",", "^")),
        {},
        "has one column and no labels; separate cells by commas",
    ),
    "pairs with several numbers": (
        "p.csv",
        with_labels(lines([(*pair, 7, "x") for pair in pairs(D)]), BY_ID),
        {"labels": "y.csv"},
        "lists pairs of items with several columns, column 3, column 4, column 5; keep",
    ),
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
    "most items without label": (
        "D.csv",
        with_labels(named(D), BY_ID.replace("item0", "other").replace("item1", "another")),
        {"labels": "y.csv"},
        "has no label for 'item00' and 19 more of the 30 items",
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
        "several columns of text, first, second; leave out all but the one to compare, such as with "
        "--drop second",
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
        text(TABLE.assign(target="").to_csv(index=False)),
        COLUMN,
        "All 30 labels are missing in column 'target'",
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
def test_bad_input_raises_with_the_sentence_that_helps(tmp_path, monkeypatch, case):
    with pytest.raises((ValueError, OSError)) as caught:
        read(tmp_path, monkeypatch, case)
    message = str(caught.value)
    assert case[3] in message and "\n" not in message


def test_there_are_enough_of_them():
    assert len(TABLES) + len(MATRICES) + len(STRINGS) + len(REFUSED) >= 60


def numbers_of_thousands(form):
    """A table of 40 rows with a number and a numeric target, some below and some above a thousand."""
    values = np.linspace(850.25, 1150.75, 40)
    rows = [(form(value), form(2 * value - 880), i % 7) for i, value in enumerate(values)]
    return values, rows


@pytest.mark.parametrize(
    "mark, form",
    [
        (";", lambda v: f"{v:,.2f}".translate(str.maketrans(",.", ".,"))),
        ("\t", lambda v: f"{v:,.2f}"),
        ("\t", lambda v: f"{v:,.2f}".replace(",", "'")),
        ("\t", lambda v: f"{v:,.2f}".replace(",", "\u00a0").replace(".", ",")),
        (",", lambda v: f'"{v:,.2f}"'),
    ],
    ids=["German", "American", "Swiss", "French", "quoted"],
)
def test_thousands_separators_of_features_and_labels(tmp_path, mark, form):
    values, rows = numbers_of_thousands(form)
    path = tmp_path / "t.csv"
    path.write_text(lines([("size", "price", "age"), *rows], mark), encoding="utf-8")
    problem = read_problem(path, labels="price")
    assert problem.task == "regression"
    np.testing.assert_allclose(problem.y, 2 * values - 880, atol=0.01)
    np.testing.assert_allclose(problem.X[:, 0], values, atol=0.01)


def test_few_labels_with_thousands_separators_are_not_left_out(tmp_path):
    values = np.linspace(100.5, 1009.5, 100)
    rows = [(i % 7, f'"{value:,.1f}"') for i, value in enumerate(values)]
    (tmp_path / "t.csv").write_text(lines([("a", "price"), *rows]))
    problem = read_problem(tmp_path / "t.csv", labels="price")
    np.testing.assert_allclose(problem.y, values, atol=0.051)
    assert "1,000.3" in " ".join(map(str, problem.guesses))


def test_whole_numbers_of_thousands_beside_decimal_commas(tmp_path):
    sizes = [950, 1050, 87, 12345] * 8
    rows = [(f"{size:,}".replace(",", "."), f"{size / 4:.2f}".replace(".", ",")) for size in sizes]
    (tmp_path / "t.csv").write_text(lines([("size", "price"), *rows], ";"))
    problem = read_problem(tmp_path / "t.csv", labels="price")
    np.testing.assert_allclose(problem.X[:, 0], sizes)
    np.testing.assert_allclose(problem.y, np.divide(sizes, 4), atol=0.01)


def test_commas_are_marks_of_thousands_if_smaller_numbers_have_none(tmp_path):
    sizes = [950, 1050, 87, 12345] * 8
    rows = [(f"{size:,}", "yes" if size > 900 else "no") for size in sizes]
    (tmp_path / "t.csv").write_text(lines([("size", "y"), *rows], "\t"))
    np.testing.assert_allclose(read_problem(tmp_path / "t.csv").X[:, 0], sizes)
    three_digits = [
        (f"{size / 1000:.3f}".replace(".", ","), word) for size, (_, word) in zip(sizes, rows)
    ]
    (tmp_path / "d.csv").write_text(lines([("size", "y"), *three_digits], "\t"))
    np.testing.assert_allclose(read_problem(tmp_path / "d.csv").X[:, 0], np.divide(sizes, 1000))


def test_a_decimal_comma_with_three_digits_is_no_mark_of_thousands(tmp_path):
    rows = [
        (f'"{value:.3f}"'.replace(".", ","), "yes" if value < 1 else "no")
        for value in [0.25, 1.5, 0.875] * 10
    ]
    (tmp_path / "t.csv").write_text(
        lines([("size", "age", "y"), *((a, i, y) for i, (a, y) in enumerate(rows))])
    )
    problem = read_problem(tmp_path / "t.csv")
    assert problem.roles["size"] == "category"


def test_errors_of_excel_are_gaps(tmp_path):
    rows = [[i % 9, "left" if i % 2 else "right"] for i in range(40)]
    for i in range(8):
        rows[i][1] = "#N/A"
    rows[20][0] = rows[21][0] = "#DIV/0!"
    (tmp_path / "t.csv").write_text(lines([("a", "y"), *rows]))
    problem = read_problem(tmp_path / "t.csv")
    assert set(problem.y) == {"left", "right"} and len(problem.y) == 32
    assert problem.X["a"].isna().sum() == 2  # these rows are no comments


def test_comments_among_the_rows_are_mentioned(tmp_path):
    rows = [(("#" if i == 5 else "") + f"{i % 9}", "left" if i % 2 else "right") for i in range(40)]
    (tmp_path / "t.csv").write_text("# by the lab\n" + lines([("a", "y"), *rows]))
    problem = read_problem(tmp_path / "t.csv")
    left_out = [guess.value for guess in problem.guesses if guess.what == "left out"]
    assert len(problem.y) == 39 and left_out == ["1 line among the rows"]


def write_named_labels(folder, names):
    (folder / "D.csv").write_text(named(D))
    (folder / "y.csv").write_text(lines([("who", "side"), *zip(names, Y[SHUFFLED])]))


def test_labels_of_other_names_are_not_taken_in_order(tmp_path):
    write_named_labels(tmp_path, [IDS[i].upper() for i in SHUFFLED])
    with pytest.raises(ValueError, match="names other items, such as 'ITEM"):
        read_problem(tmp_path / "D.csv", labels=str(tmp_path / "y.csv"))
    write_named_labels(tmp_path, [IDS[i] for i in SHUFFLED])
    assert list(read_problem(tmp_path / "D.csv", labels=str(tmp_path / "y.csv")).y) == list(Y)
    write_named_labels(tmp_path, range(N))  # row numbers, as data frames write them
    problem = read_problem(tmp_path / "D.csv", labels=str(tmp_path / "y.csv"))
    assert list(problem.y) == list(Y[SHUFFLED])


def test_names_of_labels_that_cannot_be_compared_are_mentioned(tmp_path):
    np.save(tmp_path / "D.npy", D)
    write_named_labels(tmp_path, [IDS[i] for i in SHUFFLED])
    problem = read_problem(tmp_path / "D.npy", labels=str(tmp_path / "y.csv"))
    assert "in the order of the items" in [guess.value for guess in problem.guesses]


@pytest.mark.parametrize("first", [0, 1])
def test_items_that_are_counted_differently_raise(tmp_path, first):
    numbers = range(first, first + N)
    pd.DataFrame(D, index=numbers, columns=numbers).to_csv(tmp_path / "D.csv")
    others = range(1 - first, 1 - first + N)
    (tmp_path / "y.csv").write_text(lines([("id", "side"), *zip(others, Y)]))
    with pytest.raises(ValueError, match=f"counts the items from {1 - first}"):
        read_problem(tmp_path / "D.csv", labels=str(tmp_path / "y.csv"))


def test_labels_that_are_numbers_with_units_are_explained(tmp_path):
    rows = [(i % 9, f"{i}.50 kg") for i in range(40)]
    (tmp_path / "t.csv").write_text(lines([("a", "y"), *rows]))
    with pytest.raises(ValueError, match=r"if the labels are numbers, write them as 1234\.5"):
        read_problem(tmp_path / "t.csv")


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_title_with_empty_cells_beside_it_is_left_out(tmp_path, mark):
    table = lines([TABLE.columns, *TABLE.to_numpy()], mark)
    title = f"Survey of 2021{3 * mark}\n{3 * mark}\n"
    (tmp_path / "t.csv").write_text(title + table)
    (tmp_path / "plain.csv").write_text(table)
    problem = read_problem(tmp_path / "t.csv", labels="target")
    np.testing.assert_array_equal(problem.X, read_problem(tmp_path / "plain.csv").X)
    assert list(problem.y) == list(Y) and "Survey of 2021" in str(problem.guesses)


def test_the_first_line_of_a_triangle_is_no_title(tmp_path):
    rows = [[IDS[i], *D[i, :i], *([""] * (N - i - 1))] for i in range(N)]
    (tmp_path / "D.csv").write_text(lines(rows))
    (tmp_path / "y.txt").write_text("\n".join(Y))
    problem = read_problem(tmp_path / "D.csv", labels=str(tmp_path / "y.txt"))
    np.testing.assert_allclose(problem.X, D)


def amounts(form, mark=","):
    """A table whose column "price" has numbers in this form, and the numbers."""
    values = np.linspace(-1250.5, 1250.5, 40)
    rows = [(form(value), i % 7, "yes" if i % 2 else "no") for i, value in enumerate(values)]
    return lines([("price", "age", "y"), *rows], mark), values


def german(text):
    return text.translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize(
    "form, mark, factor",
    [
        (lambda value: f'"{value:,.2f}"', ",", 1),
        (lambda value: f'"${value:,.2f}"', ",", 1),
        (lambda value: f'"-${-value:,.2f}"' if value < 0 else f'"${value:,.2f}"', ",", 1),
        (lambda value: f'"(${-value:,.2f})"' if value < 0 else f'"${value:,.2f}"', ",", 1),
        (lambda value: f'"({-value:,.2f})"' if value < 0 else f'"{value:,.2f}"', ",", 1),
        (lambda value: f"{value:.2f}".replace("-", "\u2212"), ",", 1),
        (lambda value: german(f"{value:,.2f} \u20ac"), ";", 1),
        (lambda value: german(f'"{value:,.2f} \u20ac"'), ",", 1),
        (lambda value: german(f"{value:,.2f}\u00a0EUR"), "\t", 1),
        (lambda value: f"CHF {value:,.2f}".replace(",", "'"), ";", 1),
        (lambda value: f"{value:.2f} %", ",", 0.01),
        (lambda value: german(f'"{value:.2f}%"'), ",", 0.01),
        (lambda value: german(f"{value:.2f} %"), ";", 0.01),
    ],
)
def test_numbers_with_a_currency_a_percent_sign_or_parentheses(tmp_path, form, mark, factor):
    content, values = amounts(form, mark)
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    problem = read_problem(tmp_path / "t.csv")
    np.testing.assert_allclose(problem.X[:, 0], factor * values, atol=0.006 * factor)
    assert any(guess.what == "numbers" for guess in problem.guesses) or mark == ";"
    problem = read_problem(tmp_path / "t.csv", labels="price")
    np.testing.assert_allclose(problem.y, factor * values, atol=0.006 * factor)


def test_zeros_need_no_percent_sign_and_gaps_stay_gaps(tmp_path):
    content, values = amounts(lambda value: "0" if value < 0 else f"{value:.2f}%")
    (tmp_path / "t.csv").write_text(content.replace(f"{values[-1]:.2f}%", "n/a"))
    column = read_problem(tmp_path / "t.csv").X["price"].to_numpy()
    np.testing.assert_allclose(column[:-1], np.maximum(values, 0)[:-1] / 100, atol=1e-4)
    assert np.isnan(column[-1])


@pytest.mark.parametrize(
    "cells",
    [
        ["$5", "\u20ac5", "\u00a35", "5 kg"],
        ["(1)", "(2)", "(3)", "(4)"],
        ["1 kg", "2 g", "3 kg", "4 g"],
    ],
    ids=["currencies", "all in parentheses", "units"],
)
def test_what_may_not_be_one_scale_stays_text(tmp_path, cells):
    rows = [(cells[i % 4], i % 7, "yes" if i % 3 else "no") for i in range(40)]
    (tmp_path / "t.csv").write_text(lines([("size", "age", "y"), *rows]), encoding="utf-8")
    assert read_problem(tmp_path / "t.csv").roles["size"] == "category"


def test_numbers_with_units_are_left_out_with_a_remedy(tmp_path):
    content, _ = amounts(lambda value: f"{value:.2f} kg")
    (tmp_path / "t.csv").write_text(content)
    reasons = [guess.why for guess in read_problem(tmp_path / "t.csv").guesses]
    assert "its numbers have units or other marks (-1250.50 kg); write the numbers alone" in reasons


def test_a_matrix_of_percentages(tmp_path):
    identity = [[f"{100 * value:.4f}%" for value in row] for row in S]
    (tmp_path / "S.csv").write_text(named(identity))
    (tmp_path / "y.txt").write_text("\n".join(Y))
    problem = read_problem(tmp_path / "S.csv", labels=str(tmp_path / "y.txt"))
    assert problem.kind == "similarity"
    np.testing.assert_allclose(problem.X, S, atol=1e-9)


@pytest.mark.parametrize("name", ["t.libsvm", "t.txt"])
def test_rows_of_libsvm(tmp_path, name):
    (tmp_path / name).write_text(SPARSE_ROWS)
    problem = read_problem(tmp_path / name)
    np.testing.assert_allclose(problem.X, X)
    np.testing.assert_array_equal(problem.y, np.where(Y == "left", 1, -1))


HITS = [
    (IDS[i], IDS[j], 50.0, 120, 10, 2, 1, 120, 3, 122, 1e-9, 200 * S[i, j])
    for i in range(N)
    for j in range(N)
]


@pytest.mark.parametrize(
    "rows, mark",
    [
        (HITS, "\t"),
        (HITS, ","),
        ([(*row, 130, 140) for row in HITS], "\t"),
        ([("query", "target", *"abcdefghi", "bits"), *HITS], "\t"),
        ([("query", "target", "bits", "alntmscore"), *((*h[:2], h[11], 0.5) for h in HITS)], "\t"),
    ],
    ids=["tabs", "commas", "more columns", "header", "columns of one's own"],
)
def test_hits_of_a_search_in_their_dialects(tmp_path, rows, mark):
    (tmp_path / "hits.tsv").write_text(lines(rows, mark))
    (tmp_path / "y.csv").write_text(BY_ID)
    problem = read_problem(tmp_path / "hits.tsv", labels=str(tmp_path / "y.csv"))
    assert problem.kind == "similarity" and problem.ids == tuple(IDS)
    np.testing.assert_allclose(problem.X, 200 * S, atol=1e-9)
    np.testing.assert_array_equal(problem.y, Y)


@pytest.mark.parametrize("values, kind", [(D, "distance"), (100 * S, "similarity")])
def test_a_triangle_without_diagonal_may_have_gaps(tmp_path, values, kind):
    rows = [[IDS[i], *values[i, :i].round(4)] for i in range(N)]
    rows[9][4] = rows[20][7] = "NA"
    (tmp_path / "t.txt").write_text(f"{N}\n" + lines(rows, "\t"))
    (tmp_path / "y.txt").write_text("\n".join(Y))
    problem = read_problem(tmp_path / "t.txt", labels=str(tmp_path / "y.txt"))
    assert problem.kind == kind
    is_known = ~np.eye(N, dtype=bool)
    for i, j in ((9, 3), (20, 6)):
        is_known[i, j] = is_known[j, i] = False
    np.testing.assert_allclose(problem.X[is_known], values[is_known], atol=1e-4)
    diagonal = values[is_known].max() if kind == "similarity" else 0.0
    np.testing.assert_allclose(np.diagonal(problem.X), diagonal, atol=1e-4)


@pytest.mark.parametrize(
    "content, kind",
    [
        ("#mega\n!Title x;\n", "a MEGA file"),
        ("#NEXUS\nBEGIN DISTANCES;\n", "a NEXUS file"),
        ("((a:0.1,b:0.2):0.3,c:0.4);\n", "a tree in Newick format"),
        ('*Vertices 2\n1 "a"\n2 "b"\n*Edges\n1 2 3.5\n', "a Pajek file"),
        ("graph [\n  node [\n    id 0\n  ]\n]\n", "a GML file"),
        ("digraph g {\n  a -> b;\n}\n", "a graph of Graphviz"),
        ("CLUSTAL O(1.2.4) multiple sequence alignment\n\na  ACDE\n", "an alignment of Clustal"),
        ("@a\nACGT\n+\nIIII\n@b\nACGT\n+\nIIII\n", "a FASTQ file"),
        ("<?xml version='1.0'?>\n<rows><row a='1'/></rows>\n", "an XML file"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |\n", "a table of Markdown"),
        ("\\begin{tabular}{ll}\na & b\n\\end{tabular}\n", "a LaTeX file"),
        ("\n  RDKit\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n", "a file of molecules"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", "a Matrix Market file"),
        ("$FL2@(#) SPSS DATA FILE", "an SPSS file"),
        ("HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!", "a SAS transport file"),
    ],
)
def test_formats_that_are_not_read_are_named(tmp_path, content, kind):
    (tmp_path / "data.txt").write_text(content)
    with pytest.raises(ValueError, match=f"seems to be {kind}; save "):
        read_problem(tmp_path / "data.txt", labels="y")


def test_tar_archives_are_named(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "t.csv", "t.csv")
    with pytest.raises(ValueError, match="seems to be a tar archive; unpack it first"):
        read_problem(tmp_path / "t.tar.gz")


def workbook(path, change):
    """A workbook with TABLE in its first sheet, after a change."""
    book = pytest.importorskip("openpyxl").Workbook()
    for row in [list(TABLE.columns), *TABLE.to_numpy().tolist()]:
        book.active.append(row)
    change(book)
    book.save(path)


def test_hidden_sheets_are_left_out(tmp_path):
    def hide(book):
        sheet = book.create_sheet("hidden")
        sheet.append(["a", "b"])
        sheet.sheet_state = "hidden"

    workbook(tmp_path / "t.xlsx", hide)
    np.testing.assert_allclose(read_problem(tmp_path / "t.xlsx").X, X)


def test_formulas_without_values_are_not_gaps(tmp_path):
    def compute(book):
        for row in range(2, N + 2):
            book.active.cell(row, 2, f"=A{row}*2")

    workbook(tmp_path / "t.xlsx", compute)
    with pytest.raises(ValueError, match="has formulas without their values; open it in Excel"):
        read_problem(tmp_path / "t.xlsx")


def test_an_index_with_repeated_values_is_a_column(tmp_path):
    ages = pd.Index(np.arange(N) % 7, name="age")
    TABLE.set_index(ages).to_parquet(tmp_path / "t.parquet")
    problem = read_problem(tmp_path / "t.parquet")
    np.testing.assert_allclose(problem.X, np.column_stack([ages, X]))


def test_durations_are_days(tmp_path):
    hours = pd.to_timedelta(np.arange(N), unit="h")
    TABLE.assign(a=hours).to_parquet(tmp_path / "t.parquet")
    np.testing.assert_allclose(read_problem(tmp_path / "t.parquet").X[:, 0], np.arange(N) / 24)


def test_odd_numbers_and_classes_are_mentioned(tmp_path):
    table = TABLE.assign(nth=np.arange(1, N + 1), b=np.abs(X[:, 1]), c=np.abs(X[:, 2]))
    table.loc[[3, 8], "b"] = -999
    table.loc[[3, 8, 9], "c"] = 999
    table.loc[1::2, "target"] = table.loc[1::2, "target"].str.upper()
    table[["a", "b", "nth", "c", "target"]].to_csv(tmp_path / "t.csv", index=False)
    notes = [f"{guess.what}: {guess.value}" for guess in read_problem(tmp_path / "t.csv").guesses]
    for note in (
        "counts the rows: column 'nth'",
        "odd number: -999 in 2 cells of 'b'",
        "odd number: 999 in 3 cells of 'c'",
        "different classes: 'LEFT', 'left'",
    ):
        assert note in notes
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    told = {guess.what for guess in read_problem(tmp_path / "t.csv").guesses}
    assert told.isdisjoint(("counts the rows", "odd number", "different classes"))


@pytest.mark.parametrize("form", ["%d.%m.%y", "%m/%d/%Y %I:%M %p", "%d. %B %Y"])
def test_further_formats_of_dates(tmp_path, form):
    days = pd.date_range("2020-01-20 15:00", periods=N, freq="29h").strftime(form)
    TABLE.assign(b=days).to_csv(tmp_path / "t.csv", index=False)
    assert read_problem(tmp_path / "t.csv").roles["b"] == f"date {form}"


@pytest.mark.parametrize("form", ["same", "words", "codes", "unit"])
def test_columns_that_tell_the_labels_are_mentioned(tmp_path, form):
    labels = {"left": "L", "right": "R"}
    column = {
        "same": TABLE["target"],
        "words": TABLE["target"].map(labels),
        "codes": (TABLE["target"] == "left").astype(int),
        "unit": 32 + 1.8 * TABLE["c"],
    }[form]
    table = TABLE.assign(a=column)
    label = "c" if form == "unit" else "target"
    table.to_csv(tmp_path / "t.csv", index=False)
    guesses = read_problem(tmp_path / "t.csv", labels=label).guesses
    told = [guess.value for guess in guesses if guess.what == "the labels themselves"]
    assert told == ["column 'a'"]
    table.loc[3, "a"] = table.loc[4, "a"] if form != "unit" else 0.0
    assert table["a"].nunique() > 1
    table.loc[0, "target"], table.loc[1, "target"] = table.loc[1, "target"], table.loc[0, "target"]
    table.to_csv(tmp_path / "t.csv", index=False)
    guesses = read_problem(tmp_path / "t.csv", labels=label).guesses
    assert not any(guess.what == "the labels themselves" for guess in guesses)
