"""BLAS keeps one thread for small matrices, and the user's number afterwards."""

import os
import threading
import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info, threadpool_limits

from mercerless import KreinRidge, LABClassifier, LABRegressor, SimilarityClassifier
from mercerless.core.threads import allowed_threads, blas_threads, one_blas_thread
from mercerless.kernels import Gaussian


def threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this BLAS has one thread only")
        yield
        assert threads() == {2}  # whatever happened, the user's number is back


class Seen(Gaussian):
    """A kernel that notes the threads of BLAS and its own when it is evaluated."""

    noted: list = []  # noqa: RUF012

    def __call__(self, X, Y=None):
        self.noted.append((threads(), allowed_threads()))
        return super().__call__(X, Y)


def test_small_matrices_have_one_thread_and_large_ones_all():
    with blas_threads(100):
        assert threads() == {1}
    with blas_threads(5000):
        assert threads() == {2}


@pytest.mark.parametrize(
    "rows", [[1, 2], np.zeros((3, 2000)), None, 7.5, np.float64(1), np.array(1.0), "ab", iter([])]
)
def test_the_number_of_rows_is_told_by_whatever_is_given(rows):
    with blas_threads(rows):
        assert threads() == {1}
    with blas_threads(np.zeros((1500, 1))), blas_threads(list(range(1500))):
        assert threads() == {2}


def test_blocks_of_kernels_keep_their_threads_while_blas_is_held():
    alone = allowed_threads()
    with one_blas_thread():
        assert allowed_threads() == alone and threads() == {1}
        with one_blas_thread(alone=True):
            assert allowed_threads() == 1
        assert allowed_threads() == alone


def test_of_several_holders_the_first_gives_back():
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=hold)
    with one_blas_thread():
        other.start()
        assert inside.wait(10) and threads() == {1}
    assert threads() == {2}
    leave.set()
    other.join()
    assert threads() == {2}


def test_an_error_gives_back():
    with pytest.raises(ValueError, match="NaN"):
        KreinRidge().fit([[np.nan]] * 20, np.arange(20.0))
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0


@pytest.mark.parametrize("n, expected", [(60, {1}), (1600, {2})])
def test_a_fit_is_held_by_its_size(n, expected):
    Seen.noted.clear()
    X = np.linspace(0, 1, n)[:, None]
    KreinRidge(Seen(0.1), alpha_positive=1e-3, alpha_negative=1e-3).fit(X, np.sin(9 * X[:, 0]))
    assert Seen.noted and all(found == expected for found, _ in Seen.noted)


@pytest.mark.parametrize(
    "model, method",
    [
        (SimilarityClassifier(), "_stack_of"),
        (LABRegressor(5), "_learn"),
        (LABClassifier(5), "_learn"),
    ],
)
def test_automatic_choice_and_lab_are_held(model, method, monkeypatch):
    found, original = [], getattr(type(model), method)

    def noted(self, *args, **options):
        found.append(threads())
        return original(self, *args, **options)

    monkeypatch.setattr(type(model), method, noted)
    model.fit(np.random.RandomState(0).normal(size=(60, 3)), np.arange(60) % 2)
    assert found and all(each == {1} for each in found)


def test_workers_of_scikit_learn_are_not_oversubscribed():
    class Noting(SimilarityClassifier):
        """Notes how many threads its worker may use while it fits."""

        def _fit_stack(self, *args):
            blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
            counts = [each["num_threads"] for each in blas]
            type(self).most = max([allowed_threads(), *counts])
            return super()._fit_stack(*args)

    def threads_of_the_fit(model, X, y):
        return type(model).most

    X = np.random.RandomState(0).normal(size=(80, 3))
    y = np.arange(80) % 2
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these labels are noise
        most = cross_val_score(
            Noting(random_state=0), X, y, cv=2, n_jobs=2, scoring=threads_of_the_fit
        )
    assert np.all(most >= 1)
    assert 2 * most.max() <= max(2, n_cores)
