"""Damaged and forged files: whatever the bytes, one sentence, and never a traceback, an allocation or a wrong number.

The number of mutated files per format is 100, or what the environment variable MERCERLESS_FUZZ says; ``make test-all``
tries 2,000 of each, and 100,000 is for the patient.
"""

import io
import json
import os
import struct
import sys
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mercerless import config_context, persistence
from mercerless.cli import main
from mercerless.comparison import formats, tables
from mercerless.comparison.reading import read_problem
from mercerless.comparison.records import Record, Store, Task

EXAMPLES = int(os.environ.get("MERCERLESS_FUZZ", 100))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 12)).round(3)


def _rows(pattern):
    return "\n".join(pattern.format(i=i, j=(i * 5) % 12, x=X[i, 0], y=i % 2) for i in range(12))


TEXTS = {
    ".json": "[" + _rows('{{"a": {x}, "b": "w{j}", "y": {y}}}').replace("\n", ",") + "]",
    ".arff": "@relation t\n@attribute a real\n@attribute y {0,1}\n@data\n" + _rows("{x},{y}"),
    ".ts": "@problemName t\n@classLabel true 0 1\n@data\n" + _rows("{x},{j},{i}:{y}"),
    ".smi": _rows("CC(=O)N{j}C m{i} {y}"),
    ".m8": _rows("p{i}\tp{j}\t90.0\t9\t1\t0\t1\t9\t1\t9\t1e-5\t{j}.5"),
    ".graphml": '<graphml><key id="d" attr.name="y"/><graph edgedefault="directed">'
    + _rows('<node id="{i}"><data key="d">{y}</data></node><edge source="{i}" target="{j}"/>')
    + "</graph></graphml>",
    ".dist": "      a   b   c\nb 1.5\nc 2.5 3.5\nd 1.0 2.0 4.0\n",
}


def written(suffix):
    """The bytes of a good file."""
    buffer = io.BytesIO()
    if suffix == ".npy":
        np.save(buffer, X)
    elif suffix == ".npz":
        np.savez_compressed(buffer, K=X, y=np.arange(12) % 2)
    elif suffix == ".csv":
        buffer.write(
            (
                "a,b,y\n" + "\n".join(f'{a},"{b}",{i % 2}' for i, (a, b) in enumerate(X[:, :2]))
            ).encode()
        )
    elif suffix in TEXTS:
        buffer.write(TEXTS[suffix].encode())
    elif suffix == ".mat":
        from scipy.io import savemat

        savemat(buffer, {"K": X, "y": np.arange(12) % 2})
    else:
        frame = (
            tables.pandas()
            .DataFrame(X[:, :3], columns=["a", "b", "y"])
            .assign(word=list("uvwuvwuvwuvw"))
        )
        {".parquet": frame.to_parquet, ".feather": frame.to_feather, ".xlsx": frame.to_excel}[
            suffix
        ](buffer)
    return buffer.getvalue()


@st.composite
def mutated(draw, content):
    """A file with some of its bytes changed, taken out, doubled, or cut off."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        how = draw(st.sampled_from(["change", "delete", "insert", "double", "cut"]))
        if how == "change" and content:
            content[at] = draw(st.integers(0, 255))
        elif how == "delete":
            del content[at : at + draw(st.integers(1, 20))]
        elif how == "insert":
            content[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif how == "double":
            content[at:at] = content[at : at + draw(st.integers(1, 40))]
        elif draw(st.booleans()):
            del content[at:]
    return bytes(content)


FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES <= 2000,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@pytest.mark.parametrize(
    "suffix", [".npy", ".npz", ".csv", ".mat", ".parquet", ".feather", ".xlsx", *TEXTS]
)
def test_mutated_data(tmp_path, suffix):
    if suffix in (".parquet", ".feather", ".xlsx"):
        pytest.importorskip("openpyxl" if suffix == ".xlsx" else "pyarrow")
    path = tmp_path / f"file{suffix}"

    @FUZZ
    @given(mutated(written(suffix)))
    def attack(content):
        path.write_bytes(content)
        try:
            with config_context(memory_limit="50MB"):
                read_problem(path, task="regression")
        except (ValueError, OSError, MemoryError) as error:
            assert str(error) and "\n" not in str(error)

    attack()


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_files_of_every_kind_are_read(tmp_path, compressed):
    from scipy import sparse
    from scipy.io import savemat

    path, empty = tmp_path / "file.mat", np.zeros((0, 3))
    words = np.array(["one", "two", "three"], dtype=object)
    others = {
        "s": sparse.csc_array(X),
        "words": words,
        "part": {"a": X, "b": "text"},
        "empty": empty,
        "c": 1j * X,
    }
    savemat(path, {"K": X, "single": X.astype(np.float32), "bytes": np.arange(5, dtype=np.uint8), **others},
            do_compression=compressed)  # fmt: skip
    arrays = formats.read(path)
    assert_array_equal(arrays["K"], X)
    assert_array_equal(arrays["s"], X)
    assert list(arrays["words"]) == ["one", "two", "three"] and list(arrays["bytes"]) == [
        0,
        1,
        2,
        3,
        4,
    ]


@pytest.mark.parametrize("kind", [0, 8, 10, 11, 19, 20, 200, 60_000])
def test_a_matlab_file_with_numbers_of_no_type_raises_and_does_not_crash(tmp_path, kind):
    from scipy.io import savemat

    savemat(tmp_path / "file.mat", {"K": X})
    content = bytearray((tmp_path / "file.mat").read_bytes())
    at = content.index(X.T.tobytes()) - 8
    assert content[at] == 9
    content[at : at + 4] = kind.to_bytes(4, "little")
    (tmp_path / "file.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"is not a readable \.mat file"):
        formats.read(tmp_path / "file.mat")


def test_mutated_models(tmp_path, capsys):
    pytest.importorskip("skops")
    from mercerless import KreinRidge

    description = {
        "format": 2, "learner": "krein-ridge", "takes": "symmetric", "kind": "similarity", "task": "regression",
        "largest": 1.0, "smallest": 0.0, "n_columns": 12, "prepared": False, "roles": None, "ids": None, "items": None,
        "similarity": None, "missing": [], "matrices": [],
    }  # fmt: skip
    model = KreinRidge("precomputed").fit(X @ X.T, X[:, 0])
    persistence.save(
        {"estimator": model, "description": json.dumps(description)}, tmp_path / "good.skops"
    )
    np.save(tmp_path / "new.npy", (X @ X.T)[:3])
    arguments = [
        str(tmp_path / "bad.skops"),
        str(tmp_path / "new.npy"),
        "--output",
        str(tmp_path / "out.csv"),
    ]

    @FUZZ
    @given(mutated((tmp_path / "good.skops").read_bytes()))
    def attack(content):
        (tmp_path / "bad.skops").write_bytes(content)
        code = main(["predict", *arguments])
        errors = capsys.readouterr().err
        assert code in (0, 2) and errors.count("\n") == (code == 2)

    attack()


@pytest.mark.slow
def test_forged_descriptions(tmp_path, capsys):
    pytest.importorskip("skops")
    from mercerless import KreinRidge

    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
    values = (
        plain
        | st.lists(plain, max_size=3)
        | st.dictionaries(st.text(max_size=3), plain, max_size=3)
    )
    typed = {
        "learner": st.text(), "takes": st.sampled_from(["symmetric", "distances", "given", "several", "", "x"]),
        "kind": st.sampled_from(["similarity", "distance", "dissimilarity", "table", "strings", "", "x"]),
        "largest": st.floats(), "smallest": st.floats(), "prepared": st.booleans(),
        "n_columns": st.sampled_from([12, 12, 1, 2, 0, -1, 10**15]),
        "roles": st.none() | st.dictionaries(st.sampled_from("abc"), st.sampled_from(["number", "text", "date", ""])),
        "ids": st.none() | st.lists(st.text(max_size=2), max_size=12, min_size=12),
        "items": st.none() | st.lists(st.text(max_size=2), max_size=12, min_size=12),
        "similarity": st.none() | st.sampled_from(["levenshtein", "", "x", "x:y", "math:hypot"]),
        "missing": st.lists(st.text(max_size=2)), "matrices": st.lists(st.sampled_from(["matrix", "x"])),
    }  # fmt: skip
    start = {
        "learner": "ridge", "takes": "symmetric", "kind": "similarity", "largest": 1.0, "smallest": 0.0,
        "n_columns": 12, "prepared": False, "roles": None, "ids": None, "items": None, "similarity": None,
        "missing": [], "matrices": [],
    }  # fmt: skip
    model = KreinRidge("precomputed").fit(X @ X.T, X[:, 0])
    np.save(tmp_path / "new.npy", (X @ X.T)[:3])
    (tmp_path / "new.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "new.txt").write_text("AC\nGT\n")
    path = tmp_path / "bad.skops"

    @FUZZ
    @given(
        st.fixed_dictionaries({}, optional=typed),
        st.fixed_dictionaries({}, optional=dict.fromkeys(typed, values)),
    )
    def attack(likely, unlikely):
        forged = start | likely | (unlikely if len(unlikely) == 1 else {})
        persistence.save({"estimator": model, "description": json.dumps(forged)}, path)
        for name in ("new.npy", "new.csv", "new.txt"):
            code = main(
                ["predict", str(path), str(tmp_path / name), "--output", str(tmp_path / "out.csv")]
            )
            errors = capsys.readouterr().err
            assert code in (0, 2) and errors.count("\n") == (code == 2)

    attack()


def test_mutated_records_of_a_run_are_run_again(tmp_path):
    task = Task(learner="dummy", repeat=0, fold=1)
    Store(tmp_path).put(
        Record(task, 30, {"accuracy": 0.5}, target=np.arange(3), predicted=np.arange(3))
    )
    (path,) = tmp_path.glob("*.json")
    good = path.read_bytes()
    assert len(Store(tmp_path, resume=True).records) == 1

    @FUZZ
    @given(mutated(good))
    def attack(content):
        path.write_bytes(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = Store(tmp_path, resume=True).records
        if content.strip() != good.strip():
            assert not found and "damaged" in str(caught[0].message)

    attack()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_header_that_claims_more_than_there_is(tmp_path, suffix):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (30000, 30000), }"
    header += b" " * (118 - 1 - len(header)) + b"\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 64
    if suffix == ".npz":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("K.npy", content)
        content = buffer.getvalue()
    (tmp_path / f"a{suffix}").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"), config_context(memory_limit="100GB"):
        formats.read(tmp_path / f"a{suffix}")


def test_a_home_that_cannot_be_written_to(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "file" / "cache"))
    monkeypatch.chdir(tmp_path)
    Z = RNG.normal(size=(40, 2))
    np.savez("d.npz", X=Z, y=(Z[:, 0] > 0).astype(int))
    quick = ["--learners", "dummy", "--repeats", "1", "--jobs", "1", "--no-curves"]
    assert main(["compare", "d.npz", "--kind", "table", *quick]) == 0
    assert "kept in memory only, so that --resume will not work" in capsys.readouterr().err
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    assert main(["compare", "d.npz", "--kind", "table", *quick, "--resume"]) == 0
    assert "resumed nothing: no fits were kept, a new run begins" in capsys.readouterr().out


@pytest.mark.parametrize(
    "missing, arguments, code, sentence",
    [
        ("pandas", ["inspect", "K.csv"], 2, "needs pandas; install it with: pip install pandas"),
        ("pandas", ["compare", "K.csv"], 2, "needs pandas; install it with: pip install pandas"),
        ("matplotlib", ["inspect", "K.npy"], 0, "picture          none: Drawing needs matplotlib"),
        (
            "matplotlib",
            ["compare", "K.npy"],
            2,
            "The report needs matplotlib; install it with: pip install",
        ),
        ("skops", ["fit", "K.npy"], 2, "needs skops; install it with: pip install skops"),
    ],
)
def test_without_an_extra(tmp_path, monkeypatch, capsys, missing, arguments, code, sentence):
    monkeypatch.chdir(tmp_path)
    np.save("K.npy", X @ X.T)
    np.savetxt("K.csv", X @ X.T, delimiter=",")
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert sentence in captured.out + captured.err and captured.err.count("\n") == (code == 2)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out.startswith("mercerless 0.")
