"""Kernels of any objects: functions of pairs and of lists, and values that are kept."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from mercerless import KreinSVC, SimilarityClassifier, config_context
from mercerless.kernels import Cached, MatrixFunction, PairFunction, Strings

WORDS = ["kernel", "colonel", "mercer", "merciless", "space", "spice", "ace", "ice", "lace"]
LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])


def shared(a, b):
    return len(set(a) & set(b)) / len(set(a) | set(b))


def in_lists(A, B):
    return np.array([[shared(a, b) for b in B] for a in A])


EXPECTED = in_lists(WORDS, WORDS)


class Counted:
    """A function of two items that remembers its calls."""

    def __init__(self, function=shared, fails_at=None):
        self.function = function
        self.calls = []
        self.fails_at = fails_at

    def __call__(self, a, b):
        if len(self.calls) == self.fails_at:
            raise KeyboardInterrupt
        self.calls.append((a, b))
        return self.function(a, b)


KERNELS = {
    "pairs": PairFunction(shared),
    "directed": PairFunction(shared, symmetric=False),
    "lists": MatrixFunction(in_lists),
    "cached": PairFunction(Cached(shared)),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
def test_values(kernel):
    assert_allclose(kernel(WORDS), EXPECTED, rtol=1e-15)
    assert_allclose(kernel(WORDS[:3], WORDS), EXPECTED[:3], rtol=1e-15)
    assert_allclose(kernel(np.array(WORDS)[2:], WORDS[:4]), EXPECTED[2:, :4], rtol=1e-15)
    assert_allclose(kernel.diag(WORDS), np.ones(9))
    assert_allclose(kernel(WORDS[:1]), [[1.0]])


def test_workers():
    numbers = list(range(1, 120))
    expected = np.gcd.outer(numbers, numbers)
    assert_array_equal(PairFunction(math.gcd, n_jobs=2)(numbers), expected)
    assert_array_equal(PairFunction(Cached(math.gcd), n_jobs=2)(numbers), expected)


def test_symmetric_functions_cost_half_the_calls():
    counted = Counted()
    PairFunction(counted)(WORDS)
    assert len(counted.calls) == 45 + 10  # and ten pairs to check the other direction
    everything = Counted()
    PairFunction(everything, symmetric=False)(WORDS)
    assert len(everything.calls) == 81


@pytest.mark.parametrize("kind", [PairFunction, MatrixFunction])
def test_directions_may_differ_by_rounding_of_single_precision(kind):
    X = np.random.default_rng(0).normal(size=(20, 3))

    def kernel(noise, dtype):
        def of_lists(A, B):
            A, B = np.atleast_2d(A), np.atleast_2d(B)
            larger = np.asarray(A)[:, :1] > np.asarray(B)[:, 0]
            return (cdist(A, B) * (1 + noise * larger)).astype(dtype)

        return kind(of_lists if kind is MatrixFunction else lambda a, b: of_lists(a, b)[0, 0])

    kernel(5e-7, np.float32)(X)  # rounding of single precision
    kernel(1e-12, np.float64)(X)
    kernel(5e-7, np.float64)(X)  # as of one minus a value in single precision
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match=r"not symmetric.*direction='mean'.*direction='both'"):
            kernel(1e-3, dtype)(X)


def test_a_pair_without_a_value_is_a_gap():
    def gaps(a, b):
        return None if {a, b} == {"space", "ice"} else shared(a, b)

    for function in (gaps, Cached(gaps)):
        K = PairFunction(function)(WORDS)
        assert_array_equal(np.argwhere(np.isnan(K)), [[4, 7], [7, 4]])
        again = PairFunction(function)(WORDS[4:5], WORDS)
        assert np.isnan(again[0, 7])


@pytest.mark.parametrize(
    "kernel, message",
    [
        (PairFunction(lambda a, b: 1 / (a != "space")), "ZeroDivisionError .*items 4 and 4"),
        (PairFunction(lambda a, b: np.nan), "returned nan, which is not a finite number.*0 and 0"),
        (PairFunction(in_lists), "MatrixFunction"),
        (PairFunction(lambda a, b: "near"), "could not convert.*items 0 and 0"),
        (MatrixFunction(lambda A, B: np.ones(3)), "returned shape .*a row per item"),
        (MatrixFunction(shared), "PairFunction"),
        (
            MatrixFunction(lambda A, B: np.full((len(A), len(B)), np.inf)),
            "returned inf for items 0",
        ),
        (MatrixFunction(lambda A, B: np.ones((len(A), len(B))) / len(B)), "two items only"),
    ],
)
def test_what_functions_do_wrong_is_one_sentence(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(WORDS)


def test_memory_is_checked_before_any_call():
    counted = Counted()
    with config_context(memory_limit="100kB"), pytest.raises(MemoryError):
        PairFunction(counted)(["a"] * 200)
    assert not counted.calls


# ------------------------------------------------------------------------------------------------ values that are kept


@pytest.mark.parametrize("in_folder", [False, True])
def test_every_pair_is_computed_once(in_folder, tmp_path):
    counted = Counted()
    cached = Cached(counted, tmp_path / "values" if in_folder else None)
    assert_array_equal(PairFunction(cached)(WORDS), EXPECTED)
    n_calls = len(counted.calls)
    assert_array_equal(PairFunction(cached)(WORDS), EXPECTED)
    assert_array_equal(PairFunction(cached)(WORDS[::-1], WORDS[2:]), EXPECTED[::-1, 2:])
    cross_val_score(KreinSVC(cached), WORDS, LABELS, cv=3)
    clone(KreinSVC(PairFunction(cached))).fit(WORDS, LABELS).predict(WORDS)
    assert len(counted.calls) == n_calls
    assert cached("space", "other") == cached("space", "other") == shared("space", "other")
    assert len(counted.calls) == n_calls + 1


def test_folders_outlive_objects_and_interruptions(tmp_path):
    interrupted = Counted(fails_at=20)
    with pytest.raises(KeyboardInterrupt):
        PairFunction(Cached(interrupted, tmp_path))(WORDS)
    counted = Counted()
    assert_array_equal(PairFunction(Cached(counted, tmp_path))(WORDS), EXPECTED)
    remaining = 45 - len(interrupted.calls)
    assert remaining <= len(counted.calls) - 10 <= remaining + 9  # at most one row is lost
    other = Cached(lambda a, b: 2 * shared(a, b), tmp_path, version="2")
    assert_array_equal(PairFunction(other)(WORDS), 2 * EXPECTED)
    assert_array_equal(PairFunction(Cached(counted, tmp_path))(WORDS), EXPECTED)


def test_processes_share_a_folder(tmp_path):
    code = (
        "import math, sys; from mercerless.kernels import Cached, PairFunction; "
        "PairFunction(Cached(math.gcd, sys.argv[1]))(list(range(1, 40)))"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, tmp_path]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    counted = Counted(math.gcd)
    PairFunction(Cached(counted, tmp_path))(list(range(1, 40)))
    assert not counted.calls


def test_directions_of_asymmetric_functions_are_kept_apart():
    cached = Cached(lambda a, b: float(len(a) - len(b)))
    K = PairFunction(cached, symmetric=False)(WORDS)
    assert_array_equal(K, -K.T)
    assert_array_equal(PairFunction(cached, symmetric=False)(WORDS), K)


def test_items_are_known_by_their_content(tmp_path):
    arrays = [np.arange(5.0), [1, "a", {"b": 2}], {3, 1, 2}, "text", ("x", 1)]
    counted = Counted(lambda a, b: 1.0 + (a is b))
    PairFunction(Cached(counted, tmp_path))(arrays)
    n_calls = len(counted.calls)
    again = [np.arange(10.0)[:5].copy(), [1, "a", {"b": 2}], {2, 3, 1}, "te" + "xt", ("x", 1)]
    PairFunction(Cached(counted, tmp_path))(again)
    assert len(counted.calls) == n_calls
    with pytest.raises(ValueError, match="has no content that can be written down"):
        PairFunction(Cached(shared))([(i for i in range(3)), (i for i in range(3))])


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(ValueError, match=f"cannot use the folder '{file}'"):
        PairFunction(Cached(shared, os.fspath(file)))(WORDS)


# ---------------------------------------------------------------------------------------------------- in estimators


def test_functions_in_estimators():
    precomputed = KreinSVC("precomputed").fit(EXPECTED, LABELS).predict(EXPECTED)
    for kernel in (shared, Cached(shared), MatrixFunction(in_lists), PairFunction(shared)):
        assert_array_equal(KreinSVC(kernel).fit(WORDS, LABELS).predict(WORDS), precomputed)
    model = SimilarityClassifier(shared, random_state=0).fit(WORDS * 4, np.tile(LABELS, 4))
    assert model.predict_proba(WORDS).shape == (9, 2)


def test_strings_by_name():
    distance = pytest.importorskip("rapidfuzz.distance")
    names = {"levenshtein": "Levenshtein", "jaro": "Jaro", "lcs": "LCSseq", "prefix": "Prefix"}
    for name, scorer in names.items():
        similarity = getattr(distance, scorer).normalized_similarity
        expected = [[similarity(a, b) for b in WORDS] for a in WORDS]
        K = Strings(name)(WORDS)
        assert_allclose(K, expected)
        assert_array_equal(K, K.T)
    assert_allclose(Strings("token_set_ratio")(["a new cat"], ["cat a new"]), [[1.0]])
    with pytest.raises(ValueError, match="compares strings, but item 1 is of type NoneType"):
        Strings()(["cat", None])
