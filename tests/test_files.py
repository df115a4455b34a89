import pickle
import zipfile
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
from scipy import sparse

from mercerless import config_context
from mercerless.commands import inspect
from mercerless.comparison import formats, sheets
from mercerless.comparison.files import existing_file
from mercerless.comparison.labels import read_labels
from mercerless.comparison.limits import LIMITS

SQUARE = np.array([[1.0, 2.5], [-3e-7, 4.0]])


def read_matrix(path, name=None):
    return inspect.read_matrix(str(path), name)[0]


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "1,2.5\n-3e-7,4\n",
        "1, 2.5\r\n-3e-7, 4\r\n",
        "1;2.5\n-3e-7;4",
        "1\t2.5\n-3e-7\t4\n",
        "1 2.5\n-3e-7 4\n",
        "  1   2.5\n -3e-7   4\n\n",
        "# a comment\n1,2.5\n# another\n-3e-7,4\n",
        "a,b\n1,2.5\n-3e-7,4\n",
        '"a","b"\n1,2.5\n-3e-7,4\n',
        ",a,b\na,1,2.5\nb,-3e-7,4\n",
        'name,a,b\n"x, y",1,2.5\nb,-3e-7,4\n',
        "a,1,2.5\nb,-3e-7,4\n",
        "a b\nx 1 2.5\ny -3e-7 4\n",
        ",0,1\n0,1,2.5\n1,-3e-7,4\n",
        '"","1","2"\n"1",1,2.5\n"2",-3e-7,4\n',
        "\ufeff1,2.5\n-3e-7,4\n",
    ],
)
def test_text_tables(tmp_path, text):
    np.testing.assert_array_equal(read_matrix(write(tmp_path, text)), SQUARE)


@pytest.mark.parametrize(
    "text, message",
    [
        ("1,2\n3\n", "line 2 has 1 entries"),
        ("1,2\n3,4,5\n", "line 2 has 3 entries"),
        ("a,1,2\nb,3,4,5\n", "line 2 has 4 entries"),
        (
            "# note\n1,2\n\n3,x\n",
            "line 4, column 'column 2' has 'x' where a finite number should be",
        ),
        ("1,,2\n3,4,5\n", "is a table of 2 rows and 3 columns, not a square matrix"),
        (
            '1,"2,000"\n3,4\n',
            "line 1, column 'column 2' has '2,000'; write numbers without thousands separators",
        ),
        ("a,b\n", "header but no rows"),
        ("# only\n\n", "no rows"),
        ("", "empty"),
    ],
)
def test_text_that_is_no_table_raises_with_its_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_matrix(write(tmp_path, text))


@pytest.mark.parametrize(
    "text, gap", [(",2\n2,1\n", (0, 0)), (",3,4\n3,0,5\n4,5,0\n", (0, 0)), ("1,NA\n2,3\n", (0, 1))]
)
def test_a_square_table_keeps_its_gaps_which_are_completed_later(tmp_path, text, gap):
    matrix = read_matrix(write(tmp_path, text))
    assert matrix.shape == (text.count("\n"),) * 2
    assert np.argwhere(np.isnan(matrix)).tolist() == [list(gap)]


def test_npy_and_npz_keep_float32_and_convert_integers(tmp_path):
    np.save(tmp_path / "a.npy", SQUARE.astype(np.float32))
    assert read_matrix(tmp_path / "a.npy").dtype == np.float32
    np.save(tmp_path / "b.npy", np.eye(3, dtype=np.int16))
    assert read_matrix(tmp_path / "b.npy").dtype == np.float64
    np.save(tmp_path / "c.npy", np.eye(3, dtype=bool))
    np.testing.assert_array_equal(read_matrix(tmp_path / "c.npy"), np.eye(3))
    np.savez_compressed(tmp_path / "d.npz", y=np.arange(2), K=SQUARE, X=np.ones((2, 5)))
    np.testing.assert_array_equal(read_matrix(tmp_path / "d.npz"), SQUARE)
    assert read_matrix(tmp_path / "d.npz", name="X").shape == (2, 5)
    assert set(formats.read(tmp_path / "d.npz")) == {"y", "K", "X"}


def test_read_matrix_is_writable_and_leaves_the_file(tmp_path):
    np.save(tmp_path / "a.npy", SQUARE)
    read_matrix(tmp_path / "a.npy")[:] = 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), SQUARE)


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"a": np.eye(2), "b": np.eye(2)}, "several matrices: a, b"),
        ({"a": np.arange(2), "b": np.arange(3)}, "no matrix among a, b"),
        ({"a": np.arange(2)}, "1-dimensional"),
        ({"a": np.eye(2) * 1j}, "complex"),
        ({"a": np.array([["x", "y"]])}, "text"),
        ({"a": np.empty((0, 0))}, "no entries"),
        ({}, "no arrays"),
    ],
)
def test_npz_that_holds_no_matrix_raises(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_matrix(tmp_path / "a.npz")


def test_unknown_array_name_lists_the_names(tmp_path):
    np.savez(tmp_path / "a.npz", K=np.eye(2), y=np.arange(2))
    with pytest.raises(ValueError, match="no array 'Q'; it has K, y"):
        read_matrix(tmp_path / "a.npz", name="Q")


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a pickle was executed",)


@pytest.mark.parametrize("name", ["a.npy", "b.npz", "c.npy", "d.npz"])
def test_pickles_are_never_loaded(tmp_path, name):
    path = tmp_path / name
    if name == "a.npy":
        np.save(path, np.array([[Bomb()]], dtype=object), allow_pickle=True)
    elif name == "b.npz":
        np.savez(path, K=np.array([[Bomb()]], dtype=object))
    else:
        path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="damaged or holds pickled"):
        read_matrix(path)


@pytest.mark.parametrize("name", ["a.npy", "b.npz"])
@pytest.mark.parametrize("keep", [4, 60, 0.9])
def test_truncated_files_raise(tmp_path, name, keep):
    path = tmp_path / name
    (np.save if name == "a.npy" else np.savez)(path, np.eye(20))
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if keep > 1 else keep * len(content))])
    with pytest.raises(ValueError, match="damaged"):
        read_matrix(path)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia"])
def test_sparse_matrices_are_read_or_named(tmp_path, form):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.csr_array(SQUARE).asformat(form))
    if form == "dia":
        with pytest.raises(ValueError, match="unusual sparse matrix; save it in CSR format"):
            read_matrix(path)
    else:
        np.testing.assert_array_equal(read_matrix(path), SQUARE)


@pytest.mark.parametrize("form", ["csr", "coo"])
def test_a_sparse_matrix_with_entries_outside_raises(tmp_path, form):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.csr_array(SQUARE).asformat(form))
    with np.load(path) as file:
        arrays = dict(file)
    name = "indices" if form == "csr" else "col"
    arrays[name] = arrays[name] + 1_000_000
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="damaged or unusual sparse matrix"):
        read_matrix(path)


def test_a_changed_byte_in_an_npz_is_noticed(tmp_path):
    np.savez(tmp_path / "a.npz", K=np.eye(20))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        read_matrix(tmp_path / "a.npz")


def test_binary_named_csv(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\x93NUMPY\xff\x00\xfe")
    with pytest.raises(ValueError, match=r"not a readable \.npy file"):
        read_matrix(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(b"a,b\xff\x00\xfe")
    with pytest.raises(ValueError, match="not text"):
        read_matrix(tmp_path / "a.csv")


def test_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        existing_file(tmp_path / "none.npy")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        existing_file(tmp_path)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_memory_is_checked_before_reading(tmp_path, name):
    (np.save if name == "a.npy" else np.savez_compressed)(tmp_path / name, np.zeros((500, 500)))
    with (
        pytest.raises(MemoryError, match="needs 2 MB but the budget is 100 kB"),
        config_context(memory_limit="100kB"),
    ):
        read_matrix(tmp_path / name)


def test_memory_of_text_is_checked_before_reading(tmp_path):
    np.savetxt(tmp_path / "a.csv", np.zeros((200, 200)), delimiter=",")
    with (
        pytest.raises(MemoryError, match=r"Reading .* needs .* but the budget is 500 kB"),
        config_context(memory_limit="500kB"),
    ):
        read_matrix(tmp_path / "a.csv")


def test_labels(tmp_path):
    np.testing.assert_array_equal(
        read_labels(write(tmp_path, 'a\n"b c"\n\na\n', "l.txt")), ["a", "b c", "a"]
    )
    np.save(tmp_path / "l.npy", np.array([[1], [2]]))
    np.testing.assert_array_equal(read_labels(tmp_path / "l.npy"), [1, 2])
    np.savez(tmp_path / "l.npz", K=np.eye(2), labels=np.array(["x", "y"]))
    np.testing.assert_array_equal(read_labels(tmp_path / "l.npz"), ["x", "y"])


@pytest.mark.parametrize("array", [np.eye(3), np.array([1.0, np.inf]), np.array([1j, 2])])
def test_bad_labels_raise(tmp_path, array):
    np.save(tmp_path / "l.npy", array)
    with pytest.raises(ValueError, match="label"):
        read_labels(tmp_path / "l.npy")


def test_npz_without_labels_raises(tmp_path):
    np.savez(tmp_path / "l.npz", K=np.eye(2), Q=np.eye(2))
    with pytest.raises(ValueError, match="no array named y or labels"):
        read_labels(tmp_path / "l.npz")


# --------------------------------------------------------------------------------------------------- Excel files


def forged_sheet(path, rows):
    """A workbook of two cells and further rows, as they would stand in its XML."""
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("pandas")
    workbook = openpyxl.Workbook()
    workbook.active.append(["a", "b"])
    workbook.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            if name.endswith("sheet1.xml"):
                content = content.replace(b"</sheetData>", rows + b"</sheetData>")
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "row, times, things",
    [
        (b"<row><c><v>1</v></c></row>", 1100, "rows"),
        (b"<x:row xmlns:x='no'/>", 1100, "rows"),
        (b"<row/>", 1100, "rows"),
        (b'<row r="99999999999"/>', 1, "rows"),
        (b"<row>" + b"<c><v>1</v></c>" * 50 + b"</row>", 900, "cells"),
        (b'<row r="999"><c r="XFD999"><v>1</v></c></row>', 1, "cells"),
    ],
)
def test_sheets_of_more_cells_than_anyone_waits_for_raise(
    tmp_path, monkeypatch, row, times, things
):
    limits = replace(LIMITS, sheet_rows=1000, sheet_cells=30_000, sheet_chunk=1000)
    monkeypatch.setattr(sheets, "LIMITS", limits)  # tags are cut anywhere
    path = forged_sheet(tmp_path / "t.xlsx", row * times)
    with pytest.raises(ValueError, match=f"more than .* {things}"):
        formats.read(path)


def test_rows_are_counted_although_their_tags_are_cut_anywhere(tmp_path, monkeypatch):
    path = forged_sheet(tmp_path / "t.xlsx", b"<row/>" * 1000)  # and the one of the names
    with zipfile.ZipFile(path) as archive:
        monkeypatch.setattr(sheets, "LIMITS", replace(LIMITS, sheet_chunk=7, sheet_rows=1001))
        sheets._check_tags(archive, "it")
        monkeypatch.setattr(sheets, "LIMITS", replace(LIMITS, sheet_chunk=7, sheet_rows=1000))
        with pytest.raises(ValueError, match="more than 1,000 rows"):
            sheets._check_tags(archive, "it")


def test_a_sheet_within_the_bounds_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "LIMITS", replace(LIMITS, sheet_rows=1000, sheet_cells=2000))
    path = forged_sheet(tmp_path / "t.xlsx", b"<row><c><v>1</v></c><c><v>2</v></c></row>" * 999)
    table = formats.read(path)
    assert table.frame.shape == (999, 2) and list(table.frame.columns) == ["a", "b"]


@pytest.mark.slow
def test_twenty_million_rows_raise_before_they_are_read(tmp_path):
    path = forged_sheet(tmp_path / "t.xlsx", b"<row/>" * 20_000_000)
    assert path.stat().st_size < 2e6
    with pytest.raises(ValueError, match="more than 1,048,576 rows"):
        formats.read(path)


def test_cells_of_a_sheet_are_those_that_pandas_reads(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pd = pytest.importorskip("pandas")
    workbook = openpyxl.Workbook()
    for row in (
        [None, "name", "x"],
        [1, "a,b", 2.0],
        [],
        [1.5, 'say "no"', "#DIV/0!", True],
        [datetime(2020, 1, 31), "", -3],
        [None, None, None],
    ):
        workbook.active.append(row)
    workbook.active["A20"] = None
    path = tmp_path / "t.xlsx"
    workbook.save(path)
    frame = pd.read_excel(path, header=None, dtype=object, na_filter=False)
    expected = frame.to_csv(index=False, header=False, lineterminator="\n")
    with open(path, "rb") as file:
        assert sheets.read_sheet(file, path) == expected


def test_a_class_called_like_a_column_of_labels_is_no_header(tmp_path):
    (tmp_path / "l.txt").write_text("y\nn\ny\nn\n")
    assert read_labels(tmp_path / "l.txt", 4).tolist() == ["y", "n", "y", "n"]
    assert read_labels(tmp_path / "l.txt", 3).tolist() == ["n", "y", "n"]
    (tmp_path / "l.txt").write_text("y\na\nb\na\n")
    assert read_labels(tmp_path / "l.txt", 3).tolist() == ["a", "b", "a"]
