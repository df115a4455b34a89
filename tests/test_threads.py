"""BLAS keeps one thread for small matrices, and the user's number afterwards."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercerless import KreinRidge
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
