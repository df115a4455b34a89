"""Comparisons kept in a folder: shared by runs and processes, refused for other functions; batches and gaps."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercerless
from mercerless import KreinSVC, SimilarityClassifier
from mercerless.kernels import MatrixFunction, PairFunction
from mercerless.kernels.disk import GAP, ValueFolder
from mercerless.kernels.memo import MEMORIES


def words(n):
    return [f"{'abcdefg'[k % 7] * (k % 5 + 1)}{k}" for k in range(n)]


def common(a, b):
    return len(set(a) & set(b)) / len(set(a) | set(b))


def expected(A, B=None):
    return np.array([[common(a, b) for b in (A if B is None else B)] for a in A])


class Calls:
    """Counts calls in a file, so that no state of the function changes."""

    def __init__(self, folder):
        self.file = Path(folder) / "calls.txt"

    def __call__(self):
        return self.file.stat().st_size if self.file.exists() else 0


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def counted(tmp_path):
    """A function that counts its calls in a file, and the count."""
    path = str(tmp_path / "calls.txt")

    def function(a, b):
        with open(path, "a") as file:
            file.write("x")
        return len(set(a) & set(b)) / len(set(a) | set(b))

    return function, Calls(tmp_path)


def forget():
    """As in a new process."""
    MEMORIES.by_function.clear()


def asked_again(n):
    return 5 + n // 20


def test_later_runs_do_not_pay_again_and_new_items_cost_their_pairs(folder, counted):
    function, calls = counted
    X = words(30)
    kernel = PairFunction(function, symmetric=True, cache=folder)
    assert_allclose(kernel(X), expected(X))
    assert calls() == 30 * 31 // 2
    forget()
    assert_allclose(kernel(X), expected(X))
    assert calls() <= 30 * 31 // 2 + asked_again(30)
    forget()
    more = words(36)
    before = calls()
    assert_allclose(kernel(more), expected(more))
    new_pairs = 36 * 37 // 2 - 30 * 31 // 2
    assert new_pairs <= calls() - before <= new_pairs + asked_again(36)
    forget()
    before = calls()
    assert_allclose(kernel(more[5:20], more[10:36:2]), expected(more[5:20], more[10:36:2]))
    assert_allclose(kernel.diag(more), 1.0)
    assert calls() - before <= 3 * asked_again(36)


def test_refitting_with_30_new_items_calls_the_function_for_their_pairs_only(folder, counted):
    function, calls = counted
    X = words(150)
    y = [word[0] in "abcd" for word in X]
    known, new = X[:120], X[120:]
    model = SimilarityClassifier(
        PairFunction(function, symmetric=True, cache=folder), random_state=0
    )
    model.fit(known, y[:120])
    assert 120 * 121 // 2 <= calls() <= 120 * 121 // 2 + asked_again(120)
    forget()  # as in a service that starts anew
    before = calls()
    model.fit(X, y)
    new_pairs = 30 * 120 + 30 * 31 // 2
    assert new_pairs <= calls() - before <= new_pairs + 2 * asked_again(150)
    by_matrix = SimilarityClassifier("precomputed", random_state=0).fit(expected(X), y)
    probabilities = by_matrix.predict_proba(expected(new, X))
    # six words have the letters of another one: in the matrix they are copies
    assert_allclose(model.predict_proba(new), probabilities, atol=1e-4)


def test_directions_are_kept_apart(folder):
    X = words(20)
    directed = PairFunction(lambda a, b: len(a) - 2.0 * len(b) + len(set(a)), cache=folder)
    truth = np.array([[len(a) - 2.0 * len(b) + len(set(a)) for b in X] for a in X])
    assert_allclose(directed(X), truth)
    forget()
    assert_allclose(directed(X), truth)
    forget()
    assert_allclose(directed(X[::-1]), truth[::-1, ::-1])


def test_a_failure_at_the_last_call_loses_nothing(folder, counted):
    function, calls = counted
    X = words(40)
    n_pairs = 40 * 41 // 2
    broken = folder.parent / "broken"
    broken.touch()

    def failing(a, b):
        value = function(a, b)
        if a == b == X[-1] and os.path.exists(broken):
            raise RuntimeError("no connection")
        return value

    kernel = PairFunction(failing, symmetric=True, cache=folder)
    with pytest.raises(ValueError, match=r"RuntimeError \(no connection\) for items 39 and 39"):
        kernel(X)
    assert calls() == n_pairs
    broken.unlink()
    forget()
    assert_allclose(kernel(X), expected(X))
    assert calls() <= n_pairs + 1 + asked_again(40)


SCRIPT = """
import sys, time
from mercerless.kernels import PairFunction

def compare(a, b):
    with open(sys.argv[2], "a") as file:
        file.write("x")
    if len(sys.argv) > 3:
        time.sleep(float(sys.argv[3]))
    return len(set(a) & set(b)) / len(set(a) | set(b)) if a not in {"x", "yy", "zzz"} else 0.5

words = [f"{'abcdefg'[k % 7] * (k % 5 + 1)}{k}" for k in range(25)]
K = PairFunction(compare, symmetric=True, cache=sys.argv[1])(words)
print(repr(float(K.sum())))
"""


def start(script, *arguments, seed="0"):
    source = str(Path(mercerless.__file__).parents[1])
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": source}
    words = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)


def test_processes_share_a_folder_whatever_their_hashes(folder, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    sums = []
    for seed in "123":
        process = start(script, folder, tmp_path / "calls.txt", seed=seed)
        sums.append(float(process.communicate(timeout=100)[0]))
        assert process.returncode == 0
    assert_allclose(sums, expected(words(25)).sum())
    assert Calls(tmp_path)() <= 25 * 26 // 2 + 2 * asked_again(25)


def test_a_run_that_is_killed_loses_a_second_at_most(folder, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    calls = Calls(tmp_path)
    limit = time.monotonic() + 60.0
    with start(script, folder, calls.file, 0.05) as process:
        while calls() < 60 and time.monotonic() < limit:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    killed_at = calls()
    again = start(script, folder, calls.file)
    assert_allclose(float(again.communicate(timeout=100)[0]), expected(words(25)).sum())
    repeated = calls() - 25 * 26 // 2
    assert repeated < killed_at - 10  # of 60 comparisons at least some are known, at 20 a second


def test_threads_write_to_one_folder(folder):
    X = words(40)
    parts = [X[k : k + 15] for k in range(0, 30, 5)]
    results = {}

    def work(k):
        results[k] = PairFunction(common, symmetric=True, cache=str(folder))(parts[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, part in enumerate(parts):
        assert_allclose(results[k], expected(part))
    forget()
    assert_allclose(PairFunction(common, symmetric=True, cache=folder)(X), expected(X))


def test_workers_and_estimators(folder, counted, monkeypatch):
    monkeypatch.setattr(PairFunction, "_worker_start", -1.0)
    function, calls = counted
    X = words(24)
    y = np.arange(24) % 7 < 3

    def slow(a, b):
        time.sleep(0.005)
        return function(a, b)

    kernel = PairFunction(slow, symmetric=True, cache=folder, n_jobs=2)
    first = KreinSVC(kernel).fit(X, y).predict(X)
    n_calls = calls()
    forget()
    assert_array_equal(KreinSVC(kernel).fit(X, y).predict(X), first)
    assert calls() - n_calls <= 4 * asked_again(24)


# --------------------------------------------------------------------------------------------------- what is refused


def test_another_version_raises_although_memory_knows_the_values(folder):
    def common(a, b):
        return float(len(set(a) & set(b)))

    items = ["uvw", "vw", "wx", "xyz"]
    PairFunction(common, symmetric=True, cache=folder)(items)
    with pytest.raises(ValueError, match="of version '' of the function, not '2'"):
        PairFunction(common, symmetric=True, cache=folder, version="2")(items)


def test_another_function_or_version_raises(folder):
    X = words(6)
    PairFunction(common, cache=folder)(X)
    forget()
    with pytest.raises(ValueError, match="holds comparisons of another function"):
        PairFunction(lambda a, b: 2.0 * len(a) * len(b), cache=folder)(X)
    with pytest.raises(ValueError, match="of version '' of the function, not '2'"):
        PairFunction(common, cache=folder, version="2")(X)
    assert_allclose(PairFunction(common, cache=folder)(X), expected(X))


def test_a_function_that_the_user_changed_raises(folder):
    X = words(6)
    scale = [1.0]
    kernel = PairFunction(lambda a, b: scale[0] * len(a) * len(b), cache=folder)
    kernel(X)
    scale[0] = 2.0
    with pytest.raises(ValueError, match="or what it names has changed"):
        kernel(X)


def test_a_function_that_counts_itself_is_the_same(folder):
    X = words(8)

    def function(a, b):
        function.calls += 1
        return common(a, b)

    function.calls = 0
    kernel = PairFunction(function, symmetric=True, cache=folder)
    assert_allclose(kernel(X), expected(X))
    assert_allclose(kernel(words(12)), expected(words(12)))


def test_a_change_out_of_sight_raises(folder, tmp_path):
    X = words(12)
    file = tmp_path / "scale.txt"
    file.write_text("1.0")
    path = str(file)

    def function(a, b):
        with open(path) as text:
            return float(text.read()) * len(a) * len(b)

    kernel = PairFunction(function, symmetric=True, cache=folder)
    kernel(X)
    forget()
    file.write_text("3.0")
    with pytest.raises(ValueError, match="returns other values than those in"):
        kernel(X)


class Unknown:
    def __init__(self, name):
        self.name = name


def test_items_and_functions_that_have_no_lasting_key(folder):
    people = [Unknown("a"), Unknown("b")]
    kernel = PairFunction(lambda a, b: float(a.name == b.name), symmetric=True, cache=folder)
    with pytest.raises(ValueError, match=r"item 0 is of type Unknown; use cache=True"):
        kernel(people)
    lock = threading.Lock()

    def locked(a, b):
        with lock:
            return common(a, b)

    with pytest.raises(ValueError, match=r"pass version='1'"):
        PairFunction(locked, symmetric=True, cache=folder)(words(4))
    kernel = PairFunction(locked, symmetric=True, cache=folder, version="1")
    assert_allclose(kernel(words(4)), expected(words(4)))


def test_folders_that_are_none(tmp_path):
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(ValueError, match=r"cannot keep comparisons .*; give another one as cache"):
        PairFunction(common, cache=file)(words(4))
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "values.sqlite").write_text("no database at all" * 100)
    with pytest.raises(ValueError, match=r"cannot keep comparisons \(file is not a database\)"):
        PairFunction(common, cache=damaged)(words(4))


# ------------------------------------------------------------------------------------------------- batches and gaps


def test_functions_of_a_list_of_pairs(folder):
    sizes = []

    def service(pairs):
        sizes.append(len(pairs))
        return [common(a, b) for a, b in pairs]

    X = words(20)
    kernel = PairFunction(service, batch=32, cache=False)
    assert_allclose(kernel(X), expected(X))
    assert max(sizes) == 32
    # 100 pairs in both directions, then all of one triangle
    assert sum(sizes) == 200 + 210
    assert_allclose(kernel(X[:3], X[5:9]), expected(X[:3], X[5:9]))
    assert_allclose(kernel.diag(X), 1.0)
    kept = PairFunction(lambda pairs: [common(a, b) for a, b in pairs], batch=32, cache=folder)
    assert_allclose(kept(X), expected(X))
    forget()
    assert_allclose(kept(X), expected(X))


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda pairs: [1.0], r"returned 1 values for the 6 pairs of items \(0, 0\) to \(2, 2\)"),
        (lambda pairs: 1 / 0, r"raised ZeroDivisionError .* for the 6 pairs of items \(0, 0\)"),
        (lambda pairs: [np.inf] * len(pairs), "returned inf for items 0 and 0"),
        (lambda pairs: ["no"] * len(pairs), r"raised ValueError .* for items 0 and 0"),
    ],
)
def test_bad_batches(function, message):
    with pytest.raises(ValueError, match=message):
        PairFunction(function, symmetric=True, batch=10)(["a", "b", "c"])


def test_batches_and_workers_exclude_each_other():
    with pytest.raises(ValueError, match="pass n_jobs=None"):
        PairFunction(lambda pairs: [1.0] * len(pairs), batch=10, n_jobs=2)(["a", "b"])
    with pytest.raises(ValueError, match="batch"):
        PairFunction(lambda pairs: [1.0] * len(pairs), batch=0)(["a", "b"])


def test_a_pair_without_a_value_is_a_gap(folder):
    X = words(15)

    def partly(a, b):
        return None if a != b and len(a) + len(b) == 6 else common(a, b)

    truth = expected(X)
    lengths = np.array([len(x) for x in X])
    gaps = (lengths[:, None] + lengths == 6) & ~np.eye(15, dtype=bool)
    assert gaps.any()
    truth[gaps] = np.nan
    for kernel in (
        PairFunction(partly),
        PairFunction(partly, cache=False),
        PairFunction(partly, cache=folder),
        PairFunction(lambda pairs: [partly(a, b) for a, b in pairs], batch=7),
    ):
        assert_allclose(kernel(X), truth)
        assert_allclose(kernel(X), truth)
        assert_allclose(kernel(X[:4], X[3:]), truth[:4, 3:])
    forget()
    assert_allclose(PairFunction(partly, cache=folder)(X), truth)


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_infinite_values_are_no_gaps(value):
    with pytest.raises(ValueError, match=r"for items 0 and \d"):
        PairFunction(lambda a, b: value if a != b else 1.0, symmetric=True)(words(4))
    with pytest.raises(ValueError, match="must return finite numbers"):
        MatrixFunction(lambda A, B: np.full((len(A), len(B)), value), symmetric=True)(words(4))


def test_what_a_folder_reads_is_what_was_written(folder):
    values = ValueFolder(folder, "f", "")
    values.write([b"a", b"b"], [b"b", b"b"], np.array([2.0, GAP]), True)
    values.write([b"b"], [b"a"], np.array([7.0]), False)
    read = values.read([b"b", b"c", b"a"], [b"a", b"b"], True)
    assert_array_equal(read, [[2.0, GAP], [np.nan, np.nan], [np.nan, 2.0]])
    assert_array_equal(
        values.read([b"a", b"b"], [b"a", b"b"], False), [[np.nan] * 2, [7.0, np.nan]]
    )
