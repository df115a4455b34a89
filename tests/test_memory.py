"""Every estimator knows what it needs: it says so before any work, and then keeps to it.

Peaks are of memory that Python and NumPy allocate (`tracemalloc`); libsvm and HiGHS have caches of their own (libsvm's
is at most 200 MB), and the training data are the caller's. LAB works on blocks of fixed size: see test_lab.py.
"""

import pickle
import re
import threading
import time
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed

from mercerless import (
    AsymmetricRidge,
    AsymmetricRidgeClassifier,
    DANKClassifier,
    DANKRegressor,
    GradientSearch,
    HyperClassifier,
    HyperRegressor,
    HyperRidge,
    HyperSVR,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    SimilarityClassifier,
    SimilarityFeatures,
    SimilarityRegressor,
    SimilaritySVC,
    config_context,
)
from mercerless.core.memory import (
    available_memory,
    check_memory,
    memory_budget,
    row_blocks,
    with_settings,
)
from mercerless.core.timing import seconds_of_products
from mercerless.dank import estimators as dank
from mercerless.kernels import TL1, Gaussian, GaussianHyper, PairFunction, TensorHyper

N = 350
BLOCK = 2**25  # what a block of pairs of items takes in the hyper solvers, whatever the limit
OVERHEAD = 1e6  # Python objects, imports on the way, vectors of length N


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Import what is imported on first use, so that it is not counted."""
    X, y = rows(60)
    for model in (KreinRidgeClassifier(TL1(6.0)), SimilarityClassifier(TL1(6.0))):
        model.fit(X, y > 0)


def rows(n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


def labels(n=N):
    X, y = rows(n)
    return X, (y > 0).astype(int)


def three(n=N):
    X, y = rows(n)
    return X, np.digitize(y, [-0.5, 0.5])


def similarities(n=200):
    X, _ = rows(n)
    return X, TL1(6.0)(X)


def peak_of(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


K = TL1(6.0)
FIXED = dict(alpha_positive=0.01, alpha_negative=0.01)
REFUSE = {
    "KreinRidge": (KreinRidge(K, landmarks=None), rows),
    "KreinRidge, fixed penalties": (KreinRidge(K, landmarks=None, **FIXED), rows),
    "KreinRidge, gradient": (KreinRidge(Gaussian(2.0), search=GradientSearch(1, 1)), rows),
    "KreinRidge, gradient of a function": (KreinRidge(K, search=GradientSearch(1, 1)), rows),
    "KreinRidge, landmarks": (KreinRidge(K, landmarks=100), rows),
    "KreinRidgeClassifier": (KreinRidgeClassifier(K, landmarks=None), three),
    "KreinRidgeClassifier, landmarks": (KreinRidgeClassifier(K, landmarks=100), three),
    "KreinSVC": (KreinSVC(K), labels),
    "KreinSVC, three classes": (KreinSVC(K), three),
    "KreinSVC, squared hinge": (KreinSVC(K, loss="squared_hinge"), labels),
    "KreinSVR": (KreinSVR(K), rows),
    "SimilarityClassifier": (SimilarityClassifier(K), three),
    "SimilarityRegressor": (SimilarityRegressor(K), rows),
    "SimilaritySVC": (SimilaritySVC(K, C=1.0), lambda: labels(120)),
    "AsymmetricRidge": (AsymmetricRidge(K), rows),
    "AsymmetricRidge, coupled": (AsymmetricRidge(K, alpha=0.1, coupled=True), rows),
    "AsymmetricRidgeClassifier": (AsymmetricRidgeClassifier(K), three),
    "DANKClassifier": (DANKClassifier(Gaussian(2.0)), labels),
    "DANKClassifier, three classes": (DANKClassifier(Gaussian(2.0)), three),
    "DANKClassifier, a matrix": (DANKClassifier("laplacian"), labels),
    "DANKRegressor": (DANKRegressor(Gaussian(2.0)), rows),
    "DANKClassifier, search": (DANKClassifier(Gaussian(2.0), search=GradientSearch(0, 1), random_state=0), labels),
    "HyperRidge, landmarks": (HyperRidge(GaussianHyper(2.0), alpha=1e-3, landmarks=100, random_state=0), labels),
    "HyperRidge, all pairs": (HyperRidge(GaussianHyper(2.0), alpha=1e-3, landmarks=None), lambda: labels(25)),
    "HyperRidge, tensor": (HyperRidge(TensorHyper(2.0), alpha=1e-3), similarities),
    "HyperSVR": (HyperSVR(GaussianHyper(2.0), C=1.0, landmarks=100, random_state=0, tol=1e-2), labels),
    "HyperClassifier": (
        HyperClassifier(HyperRidge(GaussianHyper(2.0), alpha=1e-3, landmarks=100), C=1.0, random_state=0), labels,
    ),
    "HyperRegressor": (
        HyperRegressor(HyperRidge(GaussianHyper(2.0), alpha=1e-3, landmarks=100), C=1.0, random_state=0), rows,
    ),
}  # fmt: skip


def need_of(error):
    amount, unit = re.search(
        r"needs? ([0-9.e+]+) (\w+) but the budget is .*; ", str(error)
    ).groups()
    return 1.01 * float(amount) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def refused(model, X, y):
    with pytest.raises(MemoryError):
        model.fit(X, y)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if "search" in n else n for n in REFUSE]
)
def test_states_its_need_before_work_and_keeps_to_it(name):
    """A budget that is too small is refused with the need; with that as the budget, the peak stays below it."""
    model, data = REFUSE[name]
    X, y = data()
    # the speed of the machine is measured once in a process, with 4 MB that are not of this fit
    seconds_of_products(1.0, 1_000_000)

    with config_context(memory_limit=3e5):
        before = peak_of(lambda: refused(model, X, y))
    stated, n_stages = 3e5, 0
    while True:
        try:
            with warnings.catch_warnings(), config_context(memory_limit=stated):
                warnings.simplefilter("ignore")  # of convergence
                peak = peak_of(lambda: model.fit(X, y))
            break
        except MemoryError as error:
            assert need_of(error) > stated
            stated, n_stages = need_of(error), n_stages + 1
    # a working set grows in a few steps, and every stage may have a need of its own
    assert 1 <= n_stages <= 6
    assert before <= max(0.3 * stated, 1.5 * OVERHEAD), (
        f"used {before:.3g} bytes before it refused {stated:.3g}"
    )
    overhead = OVERHEAD + (BLOCK if name.startswith("Hyper") else 0)
    assert peak <= stated + overhead, f"stated {stated:.3g} bytes, used {peak:.3g}"


def test_similarity_features_state_their_need():
    X, _ = rows()
    features = SimilarityFeatures(K, landmarks=300).fit(X)
    with (
        pytest.raises(MemoryError, match="as features needs") as error,
        config_context(memory_limit="300kB"),
    ):
        features.transform(X)
    with config_context(memory_limit=need_of(error.value)):
        assert peak_of(lambda: features.transform(X)) <= need_of(error.value) + OVERHEAD


SWITCH = {
    "KreinRidge": (KreinRidge(K), rows),
    "KreinRidgeClassifier": (KreinRidgeClassifier(K), three),
}


@pytest.mark.parametrize("name", SWITCH)
@pytest.mark.parametrize("limit", [5e5, 2e6])
def test_auto_switches_once_says_so_and_stays_within_the_limit(name, limit):
    model, data = SWITCH[name]
    X, y = data()
    with warnings.catch_warnings(record=True) as caught, config_context(memory_limit=limit):
        warnings.simplefilter("always")
        peak = peak_of(lambda: model.fit(X, y))
    assert [str(w.message) for w in caught if "landmarks for 350 rows" in str(w.message)] and len(
        caught
    ) == 1
    assert model.landmarks_ is not None
    assert peak <= limit + OVERHEAD
    assert model.score(X, y) > 0.5


PREDICT = ["KreinRidge", "KreinSVC", "SimilarityClassifier", "DANKClassifier", "AsymmetricRidge"]


@pytest.mark.parametrize("name", PREDICT)
def test_predictions_of_many_rows_come_in_blocks(name):
    model, data = REFUSE[name]
    X, y = data(200)
    many = np.tile(X, (100, 1))  # 20,000 x 200 similarities take 32 MB
    with config_context(memory_limit="16MB"):
        model.fit(X, y)
        assert peak_of(lambda: model.predict(many)) <= 16e6 + many.nbytes + OVERHEAD


# ------------------------------------------------------------------------------------------------ threads and processes


def in_a_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@pytest.mark.parametrize("start", ["thread", "pool", "joblib", "waiting pool"])
def test_threads_inside_a_context_see_it_and_those_outside_do_not(start):
    def seen():
        if start == "thread":
            found = []
            thread = threading.Thread(target=lambda: found.append(memory_budget()))
            thread.start()
            thread.join()
            return found
        if start == "joblib":
            return Parallel(n_jobs=2, backend="threading")(
                delayed(memory_budget)() for _ in range(4)
            )
        if start == "pool":
            return [in_a_thread(memory_budget)]
        return [waiting.submit(memory_budget).result()]

    with ThreadPoolExecutor(1) as waiting:
        waiting.submit(memory_budget).result()  # its thread is older than the context
        with config_context(memory_limit=12345):
            assert set(seen()) == {12345}
            with config_context(memory_limit="54kB"):
                assert set(seen()) == {54000}
            assert set(seen()) == {12345}
            with config_context(memory_limit=None):
                assert min(seen()) > 1e6
        with pytest.raises(ZeroDivisionError), config_context(memory_limit=777):
            _ = 1 / 0
        assert min(seen()) > 1e6


def test_every_thread_with_a_context_has_its_own_and_they_may_close_in_any_order():
    first_open, second_open, first_closed = (threading.Event() for _ in range(3))

    def first():
        with config_context(memory_limit=1000):
            first_open.set()
            assert second_open.wait(10)
            inside = memory_budget()
        first_closed.set()
        return inside

    def second():
        assert first_open.wait(10)
        with config_context(memory_limit=2000):
            second_open.set()
            assert first_closed.wait(10)
            return memory_budget(), in_a_thread(memory_budget)

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.submit(first), pool.submit(second)
        assert one.result(20) == 1000
        assert two.result(20) == (2000, 2000)
    assert memory_budget() > 1e6


def test_a_fit_inside_a_thread_keeps_to_the_limit():
    X, y = rows()
    with config_context(memory_limit=3e5), pytest.raises(MemoryError, match="the budget is 300 kB"):
        in_a_thread(lambda: KreinRidge(K, landmarks=None).fit(X, y))


def budget_of(*_):
    """The budget where this is called."""
    time.sleep(0.01)
    return float(memory_budget())


def test_a_function_with_settings_keeps_them_wherever_it_is_called():
    with config_context(memory_limit=12345):
        carried = with_settings(budget_of)
    assert pickle.loads(pickle.dumps(carried))() == 12345
    with config_context(memory_limit=99):
        assert carried("any", "arguments") == 12345
        assert with_settings(carried)() == 12345
    assert with_settings(budget_of)() > 1e6


@pytest.mark.slow
def test_processes_that_this_package_starts_see_the_context(monkeypatch):
    monkeypatch.setattr("mercerless.kernels.items.PairFunction._worker_start", 0.0)
    # a function that is noisy, were the processes not to agree on the limit
    kernel = PairFunction(budget_of, symmetric=True, n_jobs=2)
    with config_context(memory_limit=12345):
        assert set(dank._run(2, budget_of, [(1,), (2,), (3,)])) == {12345}
        assert set(kernel(list(range(20))).ravel()) == {12345}


# -------------------------------------------------------------------------------------------------- sizes and blocks


@pytest.mark.parametrize("n_rows", [1, 7, 100])
@pytest.mark.parametrize("bytes_per_row", [0.0, 1.0, 7.5, 1e9])
def test_blocks_hold_every_row_once_and_keep_to_the_budget(n_rows, bytes_per_row):
    blocks = list(row_blocks(n_rows, bytes_per_row, budget=40))
    assert np.array_equal(
        np.concatenate([np.arange(n_rows)[rows] for rows in blocks]), range(n_rows)
    )
    sizes = [rows.stop - rows.start for rows in blocks]
    assert min(sizes) >= 1
    assert max(sizes) == 1 or max(sizes) * bytes_per_row <= 40
    assert (
        len(blocks) == 1 or (sizes[0] + 1) * max(bytes_per_row, 1.0) > 40
    )  # no smaller than need be


@pytest.mark.parametrize(
    "text, size",
    [
        ("7", 7),
        ("2kB", 2000),
        ("2 KiB", 2048),
        ("1.5MB", 1_500_000),
        ("1MiB", 2**20),
        ("3GB", 3 * 10**9),
        ("3gib", 3 * 2**30),
        ("1T", 10**12),
        ("1TiB", 2**40),
    ],
)
def test_sizes_are_read(text, size):
    assert memory_budget(text) == size


@pytest.mark.parametrize("text", ["2 iB", "much", "GB", "-1", 0, -5, "0MB"])
def test_what_is_no_size_raises(text):
    with pytest.raises(ValueError, match="memory_limit="):
        memory_budget(text)
    with pytest.raises(ValueError, match="memory_limit="), config_context(memory_limit=text):
        pass
    assert memory_budget() > 1e6


def test_exactly_the_budget_fits_and_one_byte_more_does_not():
    with config_context(memory_limit=1000):
        check_memory(1000, "This")
        with pytest.raises(
            MemoryError, match=r"This needs 1 kB but the budget is 1 kB .*; buy more\."
        ):
            check_memory(1001, "This", remedy="buy more")
        check_memory(1001, "This", memory_limit=2000)  # what is given wins


def test_half_of_what_is_free_is_the_default():
    free = available_memory()
    assert 0.3 * free < memory_budget() < 0.7 * free
