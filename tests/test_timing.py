"""Progress of long work is printed; short work prints nothing, and no clock decides anything."""

import numpy as np
import pytest

from mercerless import KreinRidge, SimilarityClassifier, config_context
from mercerless.core import timing
from mercerless.core.optional import NoContext
from mercerless.kernels import PairFunction


def fit():
    X = np.random.default_rng(0).normal(size=(60, 2))
    return SimilarityClassifier(random_state=0).fit(X, X[:, 0] > 0)


@pytest.fixture
def all_is_long(monkeypatch):
    monkeypatch.setattr(timing, "ANNOUNCED", 0.0)
    monkeypatch.setattr(timing, "BETWEEN", 0.0)


def test_a_long_fit_is_announced_once(capsys, all_is_long):
    fit()
    error = capsys.readouterr().err
    assert error.count("SimilarityClassifier: the fit has taken 0 seconds so far") == 1
    assert len(error.splitlines()) == 1  # no lines of progress outside of terminals


def test_a_context_silences_and_another_shows_every_step(capsys, all_is_long):
    with config_context(progress=False):
        fit()
    assert capsys.readouterr().err == ""
    with config_context(progress=True), config_context(memory_limit="1GB"):
        fit()
    assert "SimilarityClassifier: " in capsys.readouterr().err.splitlines()[1]


def test_the_announcement_names_what_is_faster(capsys, all_is_long):
    progress = timing.Progress(KreinRidge(), NoContext())
    progress.remedy = "; landmarks=1000 is faster"
    progress.step({"stage": "one"})
    assert capsys.readouterr().err.endswith("so far; landmarks=1000 is faster.\n")


def test_short_work_prints_nothing(capsys):
    fit()
    KreinRidge().fit(np.eye(9), np.arange(9.0))
    PairFunction(lambda a, b: abs(a - b))(list(range(60)))
    assert capsys.readouterr().err == ""


def test_long_comparisons_show_their_progress(capsys, all_is_long):
    PairFunction(lambda a, b: abs(a - b))(list(range(60)))
    assert " of 1,830 comparisons, 0 seconds left" in capsys.readouterr().err


def test_times_for_people():
    assert [timing.format_seconds(s) for s in (7, 600, 36_000)] == [
        "7 seconds",
        "10 minutes",
        "10.0 hours",
    ]
