"""Estimators say what memory they need before any work, and keep to it; the limit holds in threads and processes."""

import pickle
import re
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mercerless import (
    AsymmetricRidge,
    DANKClassifier,
    DirectedEmbedding,
    GradientSearch,
    KreinEmbedding,
    KreinRidge,
    KreinSVC,
    SignedRandomFeatures,
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
from mercerless.kernels import TL1, Gaussian, Gower
from mercerless.spectra import SpectrumTransformer

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(350, 6))
Y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2])
MODELS = [
    AsymmetricRidge(TL1(6.0)),
    DANKClassifier(Gaussian(2.0)),
    KreinRidge(TL1(6.0), landmarks=None),
    KreinSVC(TL1(6.0)),
    SimilarityRegressor(TL1(6.0), landmarks=None),
]


def peak_of(function):
    tracemalloc.start()
    try:
        function()
    except MemoryError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_what_does_not_fit_raises_before_any_work(model):
    with config_context(memory_limit="300kB"):
        with pytest.raises(MemoryError, match=r"needs? .* but the budget is 300 kB .*; "):
            model.fit(X, Y)
        assert peak_of(lambda: model.fit(X, Y)) < 700_000


MANY = RANDOM.normal(size=(4000, 6))
FEATURES = SignedRandomFeatures(Gaussian(2.0), n_components=400, random_state=0).fit(X)
SEARCH = GradientSearch(n_restarts=2, max_iter=2)
NEEDS = {  # work, and the peak as a share of the memory that it asks for
    "ridge": (lambda: AsymmetricRidge(TL1(6.0)).fit(X, Y), 0.8),
    "search": (lambda: DANKClassifier(Gaussian(2.0), search=SEARCH).fit(X[:200], Y[:200]), 0.6),
    "working set": (lambda: DANKClassifier(Gaussian(2.0), C=1.0).fit(X, Y), 0.4),
    "eigenvectors": (lambda: KreinRidge(TL1(6.0), landmarks=None).fit(X, Y), 0.9),
    "landmarks": (lambda: KreinRidge(TL1(6.0), landmarks=300).fit(X, Y), 0.33),
    "machine": (lambda: KreinSVC(TL1(6.0), C=1.0).fit(X, Y), 1.0),
    "items": (lambda: SimilarityRegressor(TL1(6.0), landmarks=None).fit(X, Y), 0.4),
    "columns": (lambda: SimilarityRegressor(TL1(6.0), landmarks=100).fit(X, Y), 0.4),
    "embedding": (lambda: KreinEmbedding(TL1(6.0)).fit(X), 1.0),
    "singular vectors": (lambda: DirectedEmbedding(TL1(6.0)).fit(X), 1.3),
    "linear program": (lambda: SimilaritySVC("rbf").fit(X[:120], Y[:120]), 1.2),
    "repair": (lambda: SpectrumTransformer("clip").fit(TL1(6.0)(X)), 1.0),
    "random features": (lambda: FEATURES.transform(MANY), 1.5),
    "features": (lambda: SimilarityFeatures(TL1(6.0)).fit(X).transform(MANY), 0.5),
    "Gower": (lambda: Gower.of(MANY)(MANY[:900], MANY), 1.25),
}


@pytest.mark.parametrize(
    "name",
    [*(name for name in NEEDS if name != "search"), pytest.param("search", marks=pytest.mark.slow)],
)
def test_the_memory_that_is_asked_for_is_that_of_the_peak(name):
    work, share = NEEDS[name]
    limit, is_enough = 1.0, False
    while not is_enough:
        try:
            with config_context(memory_limit=limit):
                work()
            is_enough = True
        except MemoryError as error:
            size, unit = re.search(r"needs? ([0-9.e+]+) (\w+)", str(error)).groups()
            limit = 1.01 * memory_budget(size + unit.replace("bytes", ""))
    with config_context(memory_limit=limit):
        assert peak_of(work) == pytest.approx(share * limit, rel=0.4)


def test_a_search_that_does_not_fit_raises_before_any_work():
    with config_context(memory_limit=8 * 7.9 * 200**2):  # of eight matrices
        with pytest.raises(MemoryError, match=r"GradientSearch on 200 rows needs 2\.56 MB"):
            DANKClassifier(Gaussian(2.0), search=SEARCH).fit(X[:200], Y[:200])


def test_a_solution_on_landmarks_that_does_not_fit_raises():
    model = KreinRidge(TL1(6.0), landmarks=300)
    with config_context(memory_limit="3MB"):  # enough to draw the landmarks
        with pytest.raises(MemoryError, match=r"solution on 300 landmarks .* use fewer landmarks"):
            model.fit(X, Y)
        assert len(model.set_params(landmarks=60).fit(X, Y).landmarks_) == 60


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_predictions_of_many_rows_come_in_blocks(model):
    many = np.tile(X, (60, 1))  # 21,000 x 350 similarities take 59 MB
    model.fit(X, Y)
    with config_context(memory_limit="16MB"):
        assert peak_of(lambda: model.predict(many)) < 18e6 + many.nbytes


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
            return memory_budget()

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.submit(first), pool.submit(second)
        assert one.result(20) == 1000
        assert two.result(20) == 2000


def budget_of(*_):
    return float(memory_budget())


def test_a_function_with_settings_keeps_them_wherever_it_is_called():
    with config_context(memory_limit=12345):
        carried = with_settings(budget_of)
    assert pickle.loads(pickle.dumps(carried))() == 12345
    with config_context(memory_limit=99):
        assert carried("any", "arguments") == 12345
    assert with_settings(budget_of)() > 1e6


@pytest.mark.parametrize("n_rows", [1, 7, 100])
@pytest.mark.parametrize("bytes_per_row", [0.0, 7.5, 1e9])
def test_blocks_hold_every_row_once_and_keep_to_the_budget(n_rows, bytes_per_row):
    blocks = list(row_blocks(n_rows, bytes_per_row, budget=40))
    rows = np.concatenate([np.arange(n_rows)[block] for block in blocks])
    assert np.array_equal(rows, range(n_rows))
    sizes = [block.stop - block.start for block in blocks]
    assert max(sizes) == 1 or max(sizes) * bytes_per_row <= 40


def test_sizes_are_read():
    sizes = {
        "7": 7,
        "2kB": 2000,
        "2 KiB": 2048,
        "1.5MB": 1_500_000,
        "3gib": 3 * 2**30,
        "1T": 10**12,
    }
    assert {text: memory_budget(text) for text in sizes} == sizes


@pytest.mark.parametrize("text", ["2 iB", "much", "GB", "-1", 0, -5, "0MB"])
def test_what_is_no_size_raises(text):
    with pytest.raises(ValueError, match="memory_limit="), config_context(memory_limit=text):
        pass
    assert memory_budget() > 1e6


def test_exactly_the_budget_fits_and_one_byte_more_does_not():
    with config_context(memory_limit=1000):
        check_memory(1000, "This")
        message = r"This needs 1 kB but the budget is 1 kB .*; buy more\."
        with pytest.raises(MemoryError, match=message):
            check_memory(1001, "This", remedy="buy more")
        check_memory(1001, "This", memory_limit=2000)  # what is given wins


def test_half_of_what_is_free_is_the_default():
    assert 0.3 * available_memory() < memory_budget() < 0.7 * available_memory()
