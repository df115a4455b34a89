"""What all tests share: where the local data lies, and fixed arrays that nobody may change."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

collect_ignore = ["mutants.py", "portable.py"]  # commands with imports of their own


def frozen(array):
    """A read-only copy, so that a function that writes into its input fails here."""
    array = np.array(array)
    array.flags.writeable = False
    return array


@pytest.fixture
def data_folder():
    """The folder of local data sets; skips where there is none."""
    folder = os.environ.get("MERCERLESS_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("MERCERLESS_DATA names no folder of data sets")
    return Path(folder)


@pytest.fixture
def callbacks():
    """Skips where scikit-learn has no callbacks."""
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")


@pytest.fixture(scope="session")
def vectors():
    """Forty rows of four features."""
    return frozen(np.random.default_rng(0).normal(size=(40, 4)))


@pytest.fixture(scope="session")
def indefinite():
    """A symmetric matrix of sixty items with eigenvalues of both signs."""
    A = np.random.default_rng(1).normal(size=(60, 60))
    return frozen(A + A.T)


@pytest.fixture(autouse=True)
def fixed_draws():
    """What estimators draw from that are given no random_state is the same in every run."""
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(autouse=True)
def dask_settings():
    """Clients that come and go around each other's settings must not leave their own behind."""
    yield
    if "dask" in sys.modules:
        sys.modules["dask"].config.config.pop("scheduler", None)


@pytest.fixture(autouse=True)
def fresh_draws(request, monkeypatch):
    """The generator of a module draws the same numbers in every test, whatever ran before."""
    generator = getattr(request.module, "RNG", None) if request.module else None
    if isinstance(generator, np.random.Generator):
        monkeypatch.setattr(request.module, "RNG", np.random.default_rng(1))
    elif isinstance(generator, np.random.RandomState):
        monkeypatch.setattr(request.module, "RNG", np.random.RandomState(1))
