"""Long fits are announced before the work, once, with what would be faster; short ones print nothing."""

import pickle
import re
from time import perf_counter, process_time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercerless import (
    AsymmetricRidge,
    DANKClassifier,
    HyperRidge,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    LABRegressor,
    SimilarityClassifier,
    SimilarityRegressor,
    TableRegressor,
    config_context,
)
from mercerless.core import timing
from mercerless.core.timing import FitTimes, format_seconds, seconds_of_products
from mercerless.kernels import PairFunction, TensorHyper

ESTIMATED = [
    AsymmetricRidge(),
    KreinRidge(landmarks=None),
    KreinRidgeClassifier(landmarks=None),
    KreinSVC(),
    KreinSVR(),
    SimilarityClassifier(random_state=0),
    SimilarityRegressor(random_state=0),
]


def rows(n=60):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def all_are_long(monkeypatch):
    monkeypatch.setattr(
        timing, "LIMITS", FitTimes(announced=0.0, pause=0.0, slowest=0.0, landmarks=20)
    )


@pytest.mark.parametrize("model", ESTIMATED, ids=lambda model: type(model).__name__)
def test_a_long_fit_is_announced_once_with_a_remedy(model, capsys, all_are_long):
    model.fit(*rows())
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if "will take about" in line]
    assert len(lines) == 1 and not printed.out
    assert re.fullmatch(
        rf"{type(model).__name__}: the fit of 60 rows will take about .*; .*(landmarks|n_parts).*\.",
        lines[0],
    )


@pytest.mark.parametrize(
    "model", [KreinRidge(landmarks=None), KreinSVC()], ids=lambda model: type(model).__name__
)
def test_landmarks_are_not_suggested_if_they_are_hardly_fewer_than_the_rows(
    model, capsys, all_are_long
):
    model.fit(*rows(39))  # less than twice the 20 landmarks
    line = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(rf"{type(model).__name__}: the fit of 39 rows .* on this machine\.", line)


@pytest.mark.parametrize("model", ESTIMATED, ids=lambda model: type(model).__name__)
def test_a_short_fit_prints_nothing(model, capsys):
    model.fit(*rows())
    printed = capsys.readouterr()
    assert not printed.err and not printed.out


def test_the_announcement_comes_before_the_work(capsys, all_are_long):
    class Interrupted(KreinRidge):
        def _problem(self, *args):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted(landmarks=None).fit(*rows())
    assert "Interrupted: the fit of 60 rows will take about" in capsys.readouterr().err


def test_a_context_silences_and_another_shows_every_step(capsys, all_are_long):
    with config_context(progress=False):
        SimilarityClassifier(random_state=0).fit(*rows())
    assert not capsys.readouterr().err
    with config_context(progress=True):
        SimilarityClassifier(random_state=0).fit(*rows())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 3 and all(line.startswith("SimilarityClassifier: ") for line in lines)
    assert ", step 2, after " in lines[2]


@pytest.mark.parametrize(
    "model",
    [
        DANKClassifier(),
        LABRegressor(5, random_state=0),
        TableRegressor(max_rows=50, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_fits_without_an_estimate_are_announced_when_they_have_taken_long(
    model, capsys, all_are_long
):
    model.fit(*rows())
    lines = capsys.readouterr().err.splitlines()
    announced = [line for line in lines if "the fit has taken" in line]
    assert len(announced) == 1 and announced[0].startswith(type(model).__name__)


def test_progress_is_shown_in_terminals_and_notebooks(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    assert not timing.shows_progress()
    monkeypatch.setitem(timing.sys.modules, "ipykernel", timing)
    assert timing.shows_progress()
    monkeypatch.delitem(timing.sys.modules, "ipykernel")
    monkeypatch.setattr(timing.sys, "stderr", Terminal())
    assert timing.shows_progress()
    with config_context(progress=False):
        assert not timing.shows_progress()
        with config_context(memory_limit="2GB"):  # what is not given is as in the enclosing block
            assert not timing.shows_progress()
        with config_context(progress=None):
            assert timing.shows_progress()
    with (
        pytest.raises(ValueError, match="progress='loud' is not known"),
        config_context(progress="loud"),
    ):
        pass


def test_a_clock_in_another_process_prints_nothing(capsys, all_are_long):
    clock = pickle.loads(pickle.dumps(timing.FitClock("here")))
    clock.step("there")
    assert not capsys.readouterr().err


def test_the_limit_of_memory_holds_in_a_block_for_progress():
    X, y = rows(500)
    with config_context(memory_limit="1MB"), config_context(progress=False):
        with pytest.raises(MemoryError, match="budget is 1 MB"):
            KreinRidge(landmarks=None).fit(X, y)


def test_seconds_of_products_are_those_of_products(monkeypatch):
    monkeypatch.setattr(timing, "LIMITS", FitTimes(slowest=0.0))
    timing._operations_per_second.cache_clear()
    A = np.ones((1500, 1500))
    times = []
    for _ in range(3):
        start = perf_counter()
        A @ A
        times.append(perf_counter() - start)
    assert 0.1 < seconds_of_products(1.0, 1500) / min(times) < 10.0  # on a busy machine too
    assert seconds_of_products(2.0, 3000) == pytest.approx(16 * seconds_of_products(1.0, 1500))


def test_nothing_is_measured_for_small_fits(monkeypatch):
    def measured():
        raise AssertionError("measured")

    monkeypatch.setattr(timing, "_operations_per_second", measured)
    assert seconds_of_products(50.0, 1000) == 0.0
    with pytest.raises(AssertionError, match="measured"):
        seconds_of_products(50.0, 20_000)


@pytest.mark.parametrize(
    "seconds, text", [(61.0, "61 seconds"), (240.0, "4 minutes"), (7200.0, "2.0 hours")]
)
def test_times_for_people(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        SimilarityClassifier(landmarks=None, random_state=0),
        KreinRidge(landmarks=None),
        KreinSVC(),
        AsymmetricRidge(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimates_are_right_within_a_factor_of_three(model, monkeypatch):
    """Both by processor time: on a busy machine the speed that is measured first need not last."""
    monkeypatch.setattr(timing, "LIMITS", FitTimes(slowest=0.0))
    monkeypatch.setattr(timing, "perf_counter", process_time)
    monkeypatch.setattr(timing, "_operations_per_second", timing._operations_per_second.__wrapped__)
    X, y = rows(2000)
    with (
        threadpool_limits(1),
        config_context(progress=False),
        timing.fit_clock("the test") as clock,
    ):
        start = process_time()
        model.fit(X, y)
        used = process_time() - start
    assert used / 3.0 < clock.expected < 3.0 * used


def test_a_fit_with_a_tensor_is_not_taken_for_one_with_all_pairs(capsys):
    """It takes about a second; all pairs of the items would take an hour."""
    X = np.random.default_rng(0).normal(size=(700, 2))
    distances = np.abs(X[:, :1] - X[:, 0])
    HyperRidge(TensorHyper(1.0, 0.1, None)).fit(X, np.exp(-distances))
    assert "will take about" not in capsys.readouterr().err


def test_long_comparisons_show_their_progress(capsys, all_are_long):
    """Short ones stay silent."""
    PairFunction(lambda a, b: abs(a - b))(list(range(60)))
    assert " of 1,830 comparisons, 0 seconds left" in capsys.readouterr().err
    with config_context(progress=False):
        PairFunction(lambda a, b: abs(a - b))(list(range(60)))
    assert capsys.readouterr().err == ""


def test_short_comparisons_print_nothing(capsys):
    PairFunction(lambda a, b: abs(a - b))(list(range(60)))
    assert capsys.readouterr().err == ""
