"""Functions of items as kernels: of pairs and of lists, called once per pair, in parallel, noisy and failing."""

import os
import time
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercerless import KreinRidgeClassifier, KreinSVC, SimilarityClassifierCV, SimilarityFeatures
from mercerless.comparison.problem import make_problem
from mercerless.kernels import (
    Kernel,
    MatrixFunction,
    PairFunction,
    Precomputed,
    Strings,
    as_kernel,
    items,
    memo,
)


def words(n, seed=0):
    """Words over two alphabets that share letters, and which alphabet it was."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return ["".join(rng.choice(list(("abcdxyz", "efghxyz")[c]), rng.integers(5, 12))) for c in y], y


def common(a, b):
    """The share of letters that two words have in common."""
    return len(set(a) & set(b)) / len(set(a) | set(b))


def counting(function=common):
    """A function that counts its calls."""

    def counted(a, b):
        counted.calls += 1
        return function(a, b)

    counted.calls = 0
    return counted


def of_lists(function=common):
    """A function of two lists that counts the pairs it compares."""

    def table(A, B):
        table.pairs += len(A) * len(B)
        return np.array([[function(a, b) for b in B] for a in A], dtype=float).reshape(
            len(A), len(B)
        )

    table.pairs = 0
    return table


# -------------------------------------------------------------------------------------------------- once per pair


@pytest.mark.parametrize(
    "model", [KreinSVC(), KreinRidgeClassifier(random_state=0), SimilarityClassifierCV()], ids=repr
)
def test_five_folds_cost_one_matrix_and_give_the_same_scores(model):
    X, y = words(80)
    function, plain = counting(), counting()
    scores = cross_val_score(clone(model).set_params(kernel=function), X, y, cv=5)
    assert_array_equal(
        scores,
        cross_val_score(model.set_params(kernel=PairFunction(plain, cache=False)), X, y, cv=5),
    )
    matrix = 80 * 81 / 2
    assert function.calls < 1.25 * matrix  # the pairs tried for symmetry are part of it
    assert plain.calls > 4 * matrix


def test_a_grid_costs_one_matrix():
    X, y = words(80)
    function = counting()
    grid = GridSearchCV(KreinSVC(function), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=5, refit=True).fit(
        X, y
    )
    assert function.calls < 1.35 * 80 * 81 / 2
    assert grid.best_score_ == max(grid.cv_results_["mean_test_score"]) > 0.9


def test_functions_of_lists_compare_every_pair_once_too():
    X, y = words(80)
    table = of_lists()
    scores = cross_val_score(KreinSVC(MatrixFunction(table)), X, y, cv=5)
    assert table.pairs < 1.5 * 80 * 81 / 2  # blocks reach below the diagonal
    assert_array_equal(scores, cross_val_score(KreinSVC(common), X, y, cv=5))


def test_rows_of_numbers_and_objects_are_known_again_and_changed_ones_are_not():
    X = np.random.default_rng(0).normal(size=(20, 3))
    function = counting(lambda a, b: float(a @ b))
    kernel = PairFunction(function, symmetric=True)
    K = kernel(X)
    calls = function.calls
    assert_allclose(kernel(X[5:].copy(), X[:5].copy()), K[5:, :5])
    assert function.calls <= calls + 3  # which are asked again
    changed = X.copy()
    changed[0, 0] += 1.0
    assert_allclose(kernel(changed), changed @ changed.T)

    sets = [{1, 2}, {2, 3}, {1, 3}]
    overlap = PairFunction(lambda a, b: len(a & b), symmetric=True)
    assert overlap(sets)[0, 1] == 1
    sets[0].add(3)  # in place
    assert_array_equal(overlap(sets), [[3, 2, 2], [2, 2, 1], [2, 1, 2]])


def test_a_function_that_depends_on_something_that_changed_is_asked_again():
    scale = {"factor": 1.0}
    X, _ = words(20)
    kernel = PairFunction(lambda a, b: scale["factor"] * common(a, b))
    K = kernel(X)
    scale["factor"] = 2.0
    assert_allclose(kernel(X), 2 * K)


class Scaled:
    """A callable object, which cloning copies."""

    calls = 0

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, a, b):
        type(self).calls += 1
        return self.factor * common(a, b)

    def method(self, a, b):
        return self(a, b)


def test_callable_objects_methods_and_partials_are_told_apart_by_content():
    X, y = words(60)
    for function in (Scaled(2.0), Scaled(3.0).method, partial(Scaled(4.0).method)):
        Scaled.calls = 0
        cross_val_score(KreinSVC(function), X, y, cv=5)
        assert 0 < Scaled.calls < 1.4 * 60 * 61 / 2
    assert_allclose(PairFunction(Scaled(5.0))(X), 5.0 * PairFunction(common)(X))
    assert_allclose(PairFunction(Scaled(7.0))(X), 7.0 * PairFunction(common)(X))


def test_directed_values_are_never_taken_for_the_other_direction():
    X, _ = words(30)
    kernel = PairFunction(lambda a, b: len(a) - 2.0 * len(b), symmetric=False)
    half = kernel(X[:15], X[15:])
    assert_allclose(kernel(X)[:15, 15:], half)
    assert_allclose(
        kernel(X[15:], X[:15]), [[len(a) - 2.0 * len(b) for b in X[:15]] for a in X[15:]]
    )
    told = PairFunction(kernel.function, symmetric=True)  # as the user says
    assert_allclose(told(X), np.triu(kernel(X)) + np.triu(kernel(X), 1).T)
    assert_allclose(kernel(X), [[len(a) - 2.0 * len(b) for b in X] for a in X])


def test_the_store_is_bounded_and_the_oldest_items_make_room(monkeypatch):
    monkeypatch.setattr(memo, "_MOST_BYTES", 8 * 30**2)
    X, _ = words(90)
    X = list(dict.fromkeys(X))
    function = counting()
    kernel = PairFunction(function, symmetric=True)
    expected = PairFunction(common, cache=False)(X)
    # of the first twenty, ten make room for the next; then the others are asked for beside these
    for part in (slice(0, 20), slice(20, 40), slice(10, 40), slice(40, 60), slice(0, 20)):
        assert_allclose(kernel(X[part]), expected[part, part])
    assert len(memo.store_of(function, True).values) <= 30
    assert_allclose(kernel(X), expected)  # too many to be kept
    store = memo.store_of(function, True)
    calls = function.calls
    assert_allclose(kernel(X[:20]), expected[:20, :20])  # still known
    assert function.calls <= calls + 3 and store is memo.store_of(function, True)


def test_items_that_cannot_be_written_down_are_compared_all_the_same():
    makers = [lambda k=k: k for k in range(5)]
    kernel = PairFunction(lambda a, b: a() * b())
    assert_array_equal(kernel(makers), np.outer(np.arange(5), np.arange(5)))


# ----------------------------------------------------------------------------------------------- functions of lists


@pytest.mark.parametrize(
    "function, lists",
    [
        (lambda A, B: cdist(A, B, "cityblock"), True),
        (rbf_kernel, True),
        (of_lists(lambda a, b: float(a @ b)), True),
        (lambda a, b: float(a @ b), False),
        (lambda a, b: np.float32(a[0] * b[0]), False),
        (lambda a, b: cdist([a], [b]), False),
    ],
    ids=["cdist", "rbf_kernel", "loop", "dot", "float32", "one by one"],
)
def test_a_function_of_lists_is_recognized(function, lists):
    X = np.random.default_rng(0).normal(size=(12, 3))
    kernel = as_kernel(function, X)
    assert isinstance(kernel, MatrixFunction if lists else PairFunction)
    expected = function(X, X) if lists else [[np.squeeze(function(a, b)) for b in X] for a in X]
    assert_allclose(kernel(X), expected, rtol=1e-12)
    assert_allclose(kernel.diag(X), np.diagonal(expected), rtol=1e-6)
    assert_allclose(
        SimilarityFeatures(function).fit(X).transform(X[:4]), np.array(expected)[:4], rtol=1e-6
    )


def test_functions_of_lists_of_strings_are_recognized_and_learned_with():
    process = pytest.importorskip("rapidfuzz.process")
    X, y = words(60)
    model = SimilarityClassifierCV(process.cdist, random_state=0).fit(X, y)
    assert isinstance(model.kernel_, MatrixFunction) and model.kernel_.symmetric
    assert model.score(*words(40, seed=1)) > 0.9
    table = of_lists()
    by_list, by_pair = (
        SimilarityClassifierCV(f, random_state=0).fit(X, y) for f in (table, common)
    )
    assert_allclose(by_list.predict_proba(X), by_pair.predict_proba(X), atol=1e-10)


def test_a_directed_function_of_lists_keeps_its_directions():
    X, y = words(40)
    table = of_lists(lambda a, b: common(a, b) + 0.01 * len(a))
    assert MatrixFunction(table).checked(X).symmetric is False
    assert_allclose(MatrixFunction(table)(X), table(X, X))
    asked = SimilarityClassifierCV(table, symmetrize=True, random_state=0).fit(X, y)
    pairs = SimilarityClassifierCV(
        lambda a, b: common(a, b) + 0.01 * len(a), symmetrize=True, random_state=0
    ).fit(X, y)
    assert_allclose(asked.predict_proba(X), pairs.predict_proba(X), atol=1e-10)


def test_a_function_whose_values_depend_on_the_other_items_is_refused():
    X = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(
        ValueError,
        match=r"items 0 and 2 the value \S+ among 3 items and 1 alone; a value must depend",
    ):
        SimilarityFeatures(lambda A, B: cdist(A, B) / cdist(A, B).max()).fit(X)


def test_a_wrong_shape_is_one_sentence():
    with pytest.raises(
        ValueError, match=r"returned shape \(2,\) for lists of 2 and 2 items; it must return a row"
    ):
        MatrixFunction(lambda A, B: np.ones(len(A)), symmetric=True)(["a", "b"])


# ------------------------------------------------------------------------------------------------- strings by name


@pytest.mark.parametrize("name", ["levenshtein", "jaro_winkler", "indel", "hamming"])
def test_strings_are_compared_by_name(name):
    distance = pytest.importorskip("rapidfuzz.distance")
    X, y = words(60)
    scorer = getattr(distance, items.STRING_SIMILARITIES[name]).normalized_similarity
    K = as_kernel(name)(X)
    assert_allclose(K, [[scorer(a, b) for b in X] for a in X], rtol=1e-12)
    assert_allclose(as_kernel(name).diag(X), 1.0)
    for model in (KreinSVC(name), SimilarityClassifierCV(name, random_state=0)):
        fitted = clone(model).fit(X, y)
        precomputed = clone(model).set_params(kernel="precomputed").fit(K, y)
        new = words(20, seed=1)[0]
        assert_array_equal(fitted.predict(new), precomputed.predict(as_kernel(name)(new, X)))
    assert_array_equal(make_problem(X, y, similarity=name).X, K)


def test_what_is_no_string_is_refused_with_its_number():
    pytest.importorskip("rapidfuzz")
    with pytest.raises(ValueError, match="'indel' compares strings, but item 1 is of type int"):
        SimilarityFeatures("indel").fit(["a", 7, "b"])
    with pytest.raises(
        ValueError, match="'indel' compares strings, but item 1 is of type NoneType"
    ):
        SimilarityFeatures("indel").fit(["a", "ab", "b"]).transform(["b", None])
    with pytest.raises(ValueError, match="similarity='soundex' is not known; use 'levenshtein'"):
        Strings("soundex")(["a"])


def test_without_rapidfuzz_one_sentence_names_the_extra(monkeypatch):
    for name in ("rapidfuzz", "rapidfuzz.distance", "rapidfuzz.process"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    expected = r"^Comparing strings needs rapidfuzz; install it with: pip install 'mercerless\[strings\]'\.$"
    for work in (KreinSVC("levenshtein").fit, lambda X, y: Strings()(X, X[:1])):
        with pytest.raises(ImportError, match=expected):
            work(*words(20))


# ------------------------------------------------------------------------------------------- kernels of one's own


class Letters(Kernel):
    """A kernel that takes words."""

    takes_objects = True

    def __call__(self, X, Y=None):
        return np.array([[common(a, b) for b in (X if Y is None else Y)] for a in X])

    def diag(self, X):
        return np.ones(len(X))


def test_an_own_kernel_takes_words_alone_and_in_sums():
    X, y = words(40)
    for kernel, function in (
        (Letters(), common),
        (0.5 * Letters() + 1.0 * Letters(), lambda a, b: 1.5 * common(a, b)),
    ):
        own, by_function = KreinSVC(kernel).fit(X, y), KreinSVC(function).fit(X, y)
        assert_allclose(own.decision_function(X), by_function.decision_function(X), atol=1e-6)
    assert not Precomputed().takes_objects


# ---------------------------------------------------------------------------------------- errors, noise, interruptions


def test_errors_and_nan_name_the_items_and_lose_nothing():
    X = [str(k) for k in range(30)]
    broken = {"on": True}

    def fragile(a, b):
        fragile.calls += 1
        if broken["on"] and {a, b} == {"3", "17"}:
            raise ZeroDivisionError("division by zero")
        return float(int(a) * int(b))

    fragile.calls = 0
    kernel = PairFunction(fragile, symmetric=True)
    with pytest.raises(
        ValueError, match=r"raised ZeroDivisionError \(division by zero\) for items 3 and 17\.$"
    ):
        kernel(X)
    before, broken["on"] = fragile.calls, False
    assert_array_equal(kernel(X), np.outer(np.arange(30.0), np.arange(30.0)))
    assert fragile.calls - before < 30 * 31 / 2 - 90  # rows 0, 1 and 2 were known
    with pytest.raises(
        ValueError, match="returned nan for items 2 and 5; it must return finite numbers"
    ):
        PairFunction(lambda a, b: np.nan if (a, b) == ("2", "5") else 1.0, symmetric=True)(X)
    with pytest.raises(ValueError, match=r"returned nan for items (27 and \d+|\d+ and 27);"):
        # in the pairs tried for symmetry
        PairFunction(lambda a, b: np.nan if "27" in (a, b) else 1.0)(X)
    with pytest.raises(ValueError, match="returned inf for items 2 and 5"):
        MatrixFunction(
            of_lists(lambda a, b: np.inf if (a, b) == ("2", "5") else 1.0), symmetric=True
        )(X)
    with pytest.raises(
        ValueError,
        match=r"raised KeyError \('7'\) for the lists of items \d+ to \d+ and \d+ to \d+\.",
    ):
        MatrixFunction(of_lists(lambda a, b: {}["7"] if a == "7" else 1.0), symmetric=True)(X)


def test_an_interrupted_matrix_goes_on_where_it_was():
    X, _ = words(40)

    def patient(a, b):
        patient.calls += 1
        if patient.calls == 500:
            raise KeyboardInterrupt
        return common(a, b)

    patient.calls = 0
    kernel = PairFunction(patient, symmetric=True)
    with pytest.raises(KeyboardInterrupt):
        kernel(X)
    assert_allclose(kernel(X), PairFunction(common)(X))
    assert patient.calls < 40 * 41 / 2 + 300  # not 500 more


def test_a_noisy_function_is_symmetric_up_to_its_noise_and_keeps_its_values():
    rng = np.random.default_rng(0)
    X, _ = words(40)
    kernel = PairFunction(lambda a, b: rng.binomial(1000, common(a, b)) / 1000)
    with pytest.warns(UserWarning, match="noisy: for items"):
        checked = kernel.checked(X)
    assert checked.symmetric is True
    K = checked(X)
    assert_array_equal(K, K.T)
    assert_array_equal(checked(X[:10], X[20:]), K[:10, 20:])
    drift = PairFunction(lambda a, b: common(a, b) + 0.001 * rng.normal() + 0.2 * (a < b))
    assert drift.checked(X).symmetric is False


def test_progress_is_told_on_standard_error(monkeypatch, capsys):
    X, _ = words(20)
    clock = iter(np.arange(0.0, 1e6, 1.5))
    monkeypatch.setattr(items, "perf_counter", lambda: next(clock))
    PairFunction(common, symmetric=True, cache=False, progress=True)(X)
    assert " of 210 comparisons, about " in capsys.readouterr().err
    PairFunction(common, symmetric=True, cache=False)(X)
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------------------------------------- in parallel


def slow(a, b, *, here):
    """Takes a while, and says whether it ran in another process than ``here``."""
    time.sleep(0.004)
    return float(a * b + (os.getpid() != here) * 0.25)


@pytest.mark.slow
def test_slow_functions_are_called_in_parallel_and_fast_ones_are_not():
    here = os.getpid()
    X = list(range(1, 61))
    exact = np.outer(X, X)
    K = PairFunction(partial(slow, here=here), symmetric=True, n_jobs=2, cache=False)(X)
    elsewhere = K - exact > 0.2
    assert_array_equal(K - exact, 0.25 * elsewhere)
    # how many depends on how fast workers start on a busy machine
    assert 0.0 < elsewhere.mean() < 1.0
    fast = PairFunction(
        lambda a, b: a * b + 0.25 * (os.getpid() != here), symmetric=True, n_jobs=2, cache=False
    )
    assert_array_equal(fast(X), exact)


def odd(a, b):
    """Takes a while, and fails for one pair."""
    time.sleep(0.004)
    return 1.0 / (a + b - 115)


@pytest.mark.slow
def test_errors_in_workers_name_the_items():
    with pytest.raises(
        ValueError, match=r"raised ZeroDivisionError \(.*\) for items \d+ and \d+\.$"
    ) as error:
        PairFunction(odd, symmetric=True, n_jobs=2, cache=False)(list(range(60)))
    i, j = (int(word.strip(".")) for word in str(error.value).split()[-3::2])
    assert i + j == 115


def odd_at_last(a, b):
    """Takes a while, and fails for the last pair."""
    time.sleep(0.02)
    return 1.0 / (min(a, b) - 198)


@pytest.mark.slow
def test_errors_in_workers_name_the_items_of_all_where_only_some_are_tried(monkeypatch):
    monkeypatch.setattr("mercerless.kernels.items._WORKER_START", 0.0)
    X, kernel = list(range(200)), PairFunction(odd_at_last, n_jobs=2, cache=False)
    monkeypatch.setattr(
        PairFunction,
        "_some_pairs",
        lambda self, items: np.column_stack([np.arange(150, 199), np.full(49, 199)]),
    )
    with pytest.raises(
        ValueError, match=r"raised ZeroDivisionError \(.*\) for items (198 and 199|199 and 198)\.$"
    ):
        kernel.checked(X)
