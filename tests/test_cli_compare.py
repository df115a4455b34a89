"""``mercerless compare`` from end to end: every kind of data, every kind of bad input, and Ctrl-C."""

import errno
import io
import json
import os
import pickle
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mercerless.cli import main
from mercerless.comparison.progress import progress_bar
from mercerless.datasets import load_digit_shapes

SHAPES = load_digit_shapes(80)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
D = SHAPES.D
Y = SHAPES.target % 2


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return main(["compare", *map(str, arguments), "--jobs", "1"])


def quick(*names):
    return ("--learners", ",".join(("dummy", *names)), "--repeats", "1")


@pytest.mark.slow
def test_a_distance_matrix(tmp_path, capsys):
    np.save(tmp_path / "D.npy", D)
    np.save(tmp_path / "y.npy", Y)
    assert (
        run(
            "D.npy",
            "--labels",
            "y.npy",
            *quick("neighbors"),
            "--output",
            "out.html",
            "--save",
            "out.json",
        )
        == 0
    )
    printed, errors = capsys.readouterr()
    assert errors == ""  # no progress bar where nobody watches
    assert "D.npy: distance, 80 items, 2 classes" in printed
    assert (
        "kind: distance (X is square: nothing is negative and the diagonal is zero; --kind overrides)"
        in printed
    )
    assert "Nearest neighbors" in printed and "report  out.html" in printed
    assert json.loads(Path("out.json").read_text())["recommended"] == "neighbors"
    text = Path("out.html").read_text()
    command = re.search(r"<code>(mercerless compare .*?)</code>", text)[1].replace("&#x27;", "'")
    assert (
        "problem = read_problem(&#x27;D.npy&#x27;, labels=&#x27;y.npy&#x27;, kind=&#x27;distance&#x27;"
        in text
    )
    words = shlex.split(command)[2:]
    assert main(["compare", *words, "--jobs", "1", "--save", "again.json"]) == 0
    first, again = (
        json.loads(Path(name).read_text())["table"] for name in ("out.json", "again.json")
    )
    assert [row["score"] for row in first] == [row["score"] for row in again]


def test_a_similarity_matrix_with_text_labels(tmp_path, capsys):
    np.savetxt(tmp_path / "K.csv", np.exp(-D), delimiter=",")
    (tmp_path / "y.txt").write_text("\n".join(np.array(["odd", "even"])[Y]))
    assert run("K.csv", "--labels", "y.txt", *quick("krein-ridge")) == 0
    assert "similarity, 80 items, 2 classes" in capsys.readouterr().out
    assert Path("mercerless-compare.html").exists()


def write_table(path):
    rows = [f"{a:.4f},{b:.4f},{'red' if c > 0 else 'blue'},{a + 2 * b:.4f}" for a, b, c in X]
    path.write_text("\n".join(["a,b,color,price", *rows]))


def test_a_table(tmp_path, capsys):
    write_table(tmp_path / "t.csv")
    assert run("t.csv", *quick("linear"), "--labels", "price") == 0
    printed = capsys.readouterr().out
    assert "table, 60 items, 3 columns, numeric target" in printed and "Linear model" in printed


@pytest.mark.slow
def test_strings(tmp_path, capsys):
    pytest.importorskip("rapidfuzz")
    words = ["".join(RNG.choice(list("AC" if i % 2 else "GT"), 8)) for i in range(60)]
    (tmp_path / "s.tsv").write_text(
        "\n".join(f"{word}\t{'even' if i % 2 else 'odd'}" for i, word in enumerate(words))
    )
    assert run("s.tsv", *quick("neighbors")) == 0
    printed = capsys.readouterr().out
    assert "strings, 60 items, 2 classes" in printed and "edit distance" in printed
    assert "read_problem(&#x27;s.tsv&#x27;, task=" in Path("mercerless-compare.html").read_text()


def test_the_built_in_data(capsys, monkeypatch):
    monkeypatch.setattr("mercerless.datasets.load_digit_shapes", lambda: SHAPES)
    assert main(["compare", *quick("neighbors"), "--jobs", "1"]) == 0
    assert "digit shapes: distance, 80 items, 10 classes" in capsys.readouterr().out


def save_bad_files(folder):
    good = "\n".join(",".join(f"{value:.3f}" for value in row) for row in D)
    (folder / "y.txt").write_text("\n".join(map(str, Y)))
    (folder / "D.csv").write_text(good)
    (folder / "short.txt").write_text("\n".join(map(str, Y[:-1])))
    (folder / "wide.csv").write_text("\n".join(line + ",1.0" for line in good.splitlines()))
    (folder / "text.csv").write_text(good.replace("0.000", "zero", 1))
    (folder / "nan.csv").write_text(re.sub(r"0\.[0-9]+", "nan", good))
    (folder / "gap.csv").write_text(re.sub(r"0\.[0-9]+", "", good))
    (folder / "thousands.csv").write_text(good.replace("0.000", '"1,234.5"', 1))
    (folder / "ragged.csv").write_text(good.replace("0.000", "1,234.5", 1))
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 20)
    np.savez(folder / "pickled.npz", D=np.array([{"a": 1}], dtype=object), y=Y)
    (folder / "pickle.npy").write_bytes(pickle.dumps(D))
    (folder / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    (folder / "notes.pdf").write_bytes(b"%PDF-1.7")
    np.savez(folder / "negative.npz", D=D - 1.0, y=Y)
    np.savez(folder / "complex.npz", D=D * 1j, y=Y)
    np.savez(folder / "bare.npz", D=D)


BAD = [
    (["nothing.csv"], "There is no file 'nothing.csv'"),
    (["D.csv", "--labels", "short.txt"], "There are 79 labels for 80 items"),
    (["D.csv", "--labels", "nowhere.txt"], "'nowhere.txt' is neither a file nor in 'D.csv'"),
    (["D.csv"], "has no labels; give them with --labels"),
    (["bare.npz"], "has no labels; give them with --labels"),
    (["wide.csv", "--labels", "y.txt", "--kind", "distance"], "must be square"),
    (["text.csv", "--labels", "y.txt"], "has 'zero' where a finite number should be"),
    (
        ["nan.csv", "--labels", "y.txt"],
        "of the matrix is missing, more than the 30 % that can be completed",
    ),
    (
        ["gap.csv", "--labels", "y.txt"],
        "of the matrix is missing, more than the 30 % that can be completed",
    ),
    (["thousands.csv", "--labels", "y.txt"], "write numbers without thousands separators"),
    (
        ["ragged.csv", "--labels", "y.txt"],
        "thousands separators must be quoted or, better, written without them",
    ),
    (["empty.csv", "--labels", "y.txt"], "'empty.csv' is empty"),
    (["binary.csv", "--labels", "y.txt"], "'binary.csv' is not text"),
    (["pickled.npz"], "holds pickled Python objects, which are never loaded"),
    (["pickle.npy", "--labels", "y.txt"], "holds pickled Python objects, which are never loaded"),
    (["broken.parquet", "--labels", "y.txt"], "is not a readable parquet file"),
    (["notes.pdf", "--labels", "y.txt"], "seems to be a PDF; save its table as .csv"),
    (["negative.npz", "--kind", "distance"], "they must not be negative"),
    (["complex.npz"], "holds complex numbers"),
    (
        ["D.csv", "--labels", "y.txt", "--learners", "magic"],
        "There is no learner 'magic' for this data",
    ),
    (["D.csv", "--labels", "y.txt", "--budget", "soon"], "budget='soon' is not a time"),
    (
        ["D.csv", "--labels", "y.txt", "--output", "report.pdf"],
        "must have a name that ends in .html",
    ),
    (
        ["D.csv", "--labels", "y.txt", "--output", "nowhere/report.html"],
        "There is no folder 'nowhere'",
    ),
    (["D.csv", "--labels", "y.txt", "--metric", "r2"], "metric='r2' does not suit classification"),
    (["D.csv", "--labels", "y.txt", "--drop", "color"], "has no column 'color' to drop"),
]


@pytest.mark.parametrize("arguments, sentence", BAD, ids=[" ".join(case[0]) for case in BAD])
def test_bad_input_is_one_sentence_and_nothing_is_written(arguments, sentence, tmp_path, capsys):
    if "parquet" in arguments[0]:
        pytest.importorskip("pyarrow")
    save_bad_files(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert run(*arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("mercerless compare: ") and sentence in message
    assert message.count("\n") == 1 and "Traceback" not in message
    assert [
        name for name in sorted(path.name for path in tmp_path.iterdir()) if name != "cache"
    ] == before


def test_a_matrix_too_large_for_memory(tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "D.npy", D)
    np.save(tmp_path / "y.npy", Y)
    monkeypatch.setattr("mercerless.core.memory.available_memory", lambda: 100_000)
    assert run("D.npy", "--labels", "y.npy") == 2
    message = capsys.readouterr().err
    assert "needs" in message and "but the budget is" in message and message.count("\n") == 1


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["compare", "--help"])
    printed = capsys.readouterr().out
    assert stop.value.code == 0 and "examples:" in printed and "exit codes: 0 done, 2" in printed


def test_progress_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar() as progress:
        progress("repeat 1, split 2 of 5", 3, 11)
    assert "repeat 1, split 2 of 5" in terminal.getvalue() and "3/11" in terminal.getvalue()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent the POSIX way")
def test_interrupting_writes_the_report_and_resume_goes_on(tmp_path):
    np.savez(tmp_path / "d.npz", D=D, y=Y)
    command = [
        sys.executable,
        "-m",
        "mercerless.cli",
        "compare",
        "d.npz",
        "--jobs",
        "1",
        "--repeats",
        "400",
        "--learners",
        "dummy,neighbors",
    ]
    environment = {**os.environ, "SCIKIT_LEARN_DATA": str(tmp_path / "cache")}
    place = {"cwd": tmp_path, "env": environment, "text": True}
    # a test run in the background has SIGINT ignored, and its children would inherit that
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed, **place
    )
    try:
        deadline = time.monotonic() + 100
        while len(list((tmp_path / "cache").rglob("*.json"))) < 12 and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert (
        "Nearest neighbors" in printed and "interrupted; the report has what was finished" in errors
    )
    assert "interrupted" in (tmp_path / "mercerless-compare.html").read_text()
    finished = len(list((tmp_path / "cache").rglob("*.json")))
    assert finished >= 12
    command[command.index("400")] = "1"
    done = subprocess.run([*command, "--resume"], capture_output=True, timeout=100, **place)
    assert (
        done.returncode == 0
        and "interrupted" not in (tmp_path / "mercerless-compare.html").read_text()
    )


def test_no_dask_scheduler_is_one_sentence(tmp_path, capsys):
    pytest.importorskip("distributed")
    np.savez(tmp_path / "d.npz", D=D, y=Y)
    before = set(threading.enumerate())
    assert main(["compare", "d.npz", "--dask", "nonsense://here"]) == 2
    # the loop of a failed client, collected late, stops other clients
    assert set(threading.enumerate()) <= before
    assert "There is no Dask scheduler at 'nonsense://here'" in capsys.readouterr().err


@pytest.mark.slow
def test_on_a_dask_cluster(tmp_path, capsys):
    distributed = pytest.importorskip("distributed")
    np.savez(tmp_path / "d.npz", D=D, y=Y)
    assert run("d.npz", *quick("neighbors"), "--save", "here.json") == 0
    small = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**small) as cluster:
        there = ("--dask", cluster.scheduler_address, "--save", "there.json")
        assert main(["compare", "d.npz", *quick("neighbors"), *there]) == 0
    here, there = (
        json.loads(Path(name).read_text())["table"] for name in ("here.json", "there.json")
    )
    assert [row["score"] for row in here] == [row["score"] for row in there]


def test_a_full_disk_loses_the_report_but_not_the_outcome(tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "D.npy", D)
    np.save(tmp_path / "y.npy", Y)

    def full(self, *_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    assert (
        run(
            "D.npy", "--labels", "y.npy", *quick("neighbors"), "--no-curves", "--output", "out.html"
        )
        == 2
    )
    printed, errors = capsys.readouterr()
    assert "Nearest neighbors has the best mean accuracy" in printed
    assert (
        errors
        == "mercerless compare: Cannot write 'out.html': No space left on device; give another place.\n"
    )


def test_a_report_without_rows_repeats_itself_without_rows(tmp_path):
    np.save(tmp_path / "D.npy", D)
    np.save(tmp_path / "y.npy", Y)
    shared = ("--no-rows", "--no-curves", "--output", "out.html")
    assert run("D.npy", "--labels", "y.npy", *quick("neighbors"), *shared) == 0
    text = Path("out.html").read_text()
    assert "not shown on this page" in text and "<h2>The items" not in text
    command = re.search(r"<code>(mercerless compare .*?)</code>", text)[1]
    assert command.endswith("--no-rows")
    fitting = re.search(r"<code>(mercerless fit .*?)</code>", text)[1]
    assert "--no-rows" not in fitting


def test_no_jobs(tmp_path, capsys):
    np.save(tmp_path / "D.npy", D)
    np.save(tmp_path / "y.npy", Y)
    assert main(["compare", "D.npy", "--labels", "y.npy", "--jobs", "0"]) == 2
    assert "n_jobs=0 would do nothing; use 1 or more" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path, capsys):
    (tmp_path / "closed").mkdir(mode=0o500)
    np.save(tmp_path / "D.npy", D)
    assert run("D.npy", "--output", "closed/out.html") == 2
    assert "cannot be written to; give another place." in capsys.readouterr().err
