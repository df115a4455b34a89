"""Functions of items as kernels: of pairs and of lists, called once per pair, in parallel, noisy and failing."""

import functools
import os
import threading
import time
import types
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

from mercerless import KreinRidgeClassifier, KreinSVC, SimilarityClassifier, SimilarityFeatures
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

ASKED_AGAIN = 6  # at most, of up to 39 items


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
    "model", [KreinSVC(), KreinRidgeClassifier(random_state=0), SimilarityClassifier()], ids=repr
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
    assert function.calls <= calls + ASKED_AGAIN
    changed = X.copy()
    changed[0, 0] += 1.0
    assert_allclose(kernel(changed), changed @ changed.T)

    sets = [{1, 2}, {2, 3}, {1, 3}]
    overlap = PairFunction(lambda a, b: len(a & b), symmetric=True)
    assert overlap(sets)[0, 1] == 1
    sets[0].add(3)  # in place
    assert_array_equal(overlap(sets), [[3, 2, 2], [2, 2, 1], [2, 1, 2]])


GAMMA = 1.0
N_CALLS = 0
EMBEDDINGS: dict = {}
SETTINGS = types.ModuleType("settings_of_a_user")


class Weights:
    """A class whose attribute a function reads."""

    factor = 1.0


def gaussian(a, b):
    return float(np.exp(-GAMMA * (len(a) - len(b)) ** 2) + common(a, b))


def through_another_function(a, b):
    return 2.0 * gaussian(a, b)


def through_inner_code(a, b):
    return sum(GAMMA * common(a, b) for _ in range(1))


def through_a_module(a, b):
    return SETTINGS.factor * common(a, b)


def through_a_class(a, b):
    return Weights.factor * common(a, b)


def through_embeddings(a, b):
    return float(EMBEDDINGS[a] @ EMBEDDINGS[b])


def recursive(a, b):
    return GAMMA * common(a, b) if len(a) < 3 else recursive(a[:2], b) + 0.5 * len(set(a) & set(b))


def default(a, b, factor=[1.0]):  # noqa: B006
    return factor[0] * common(a, b)


def keyword(a, b, *, factor=[1.0]):  # noqa: B006
    return factor[0] * common(a, b)


@functools.cache
def cached(a, b):
    return default(a, b)


def attribute(a, b):
    return attribute.factor * common(a, b)


def closure():
    factor = 1.0

    def inner(a, b):
        return sum(factor * common(a, b) for _ in range(1))

    def change():
        nonlocal factor
        factor = 3.0

    return inner, change


class Forgetful:
    """A callable object that leaves its factor out of its pickle."""

    def __init__(self):
        self.factor = 1.0

    def __getstate__(self):
        return {}

    def __call__(self, a, b):
        return self.factor * common(a, b)


def changing(name, monkeypatch):
    """A function, and what changes its values."""
    if name in ("gaussian", "through_another_function", "through_inner_code", "recursive"):
        return globals()[name], lambda: monkeypatch.setitem(globals(), "GAMMA", 5.0)
    if name == "through_embeddings":
        rng = np.random.default_rng(0)
        monkeypatch.setitem(
            globals(), "EMBEDDINGS", {word: rng.normal(size=4) for word in words(62)[0]}
        )

        def retrain():
            for word in words(62)[0][7:9]:
                EMBEDDINGS[word] = rng.normal(size=4)

        return through_embeddings, retrain
    if name == "through_a_module":
        SETTINGS.factor = 1.0
        return through_a_module, lambda: setattr(SETTINGS, "factor", 3.0)
    if name == "through_a_class":
        return through_a_class, lambda: monkeypatch.setattr(Weights, "factor", 3.0)
    if name == "default":
        return default, lambda: monkeypatch.setattr(default, "__defaults__", ([3.0],))
    if name == "keyword":
        return keyword, lambda: monkeypatch.setattr(keyword, "__kwdefaults__", {"factor": [3.0]})
    if name == "cached":

        def change():
            cached.cache_clear()
            monkeypatch.setattr(default, "__defaults__", ([3.0],))

        cached.cache_clear()
        return cached, change
    if name == "attribute":
        attribute.factor = 1.0
        return attribute, lambda: setattr(attribute, "factor", 3.0)
    if name == "code":
        function = counting()
        return function, lambda: setattr(function, "__code__", other.__code__)
    if name == "closure":
        return closure()
    if name == "forgetful":
        function = Forgetful()
        return function, lambda: setattr(function, "factor", 3.0)
    if name == "method":
        scaled = Scaled(1.0)
        return scaled.method, lambda: setattr(scaled, "factor", 3.0)
    if name == "partial":
        factors = [1.0]
        return partial(default, factor=factors), lambda: factors.insert(0, 3.0)
    raise KeyError(name)


def other_counting(function=common):
    def counted(a, b):
        return 2.0 * function(a, b) + 0 * counted.calls

    return counted


other = other_counting()

CHANGES = [
    "gaussian",
    "through_another_function",
    "through_embeddings",
    "through_inner_code",
    "through_a_module",
    "through_a_class",
    "recursive",
    "default",
    "keyword",
    "cached",
    "attribute",
    "code",
    "closure",
    "forgetful",
    "method",
    "partial",
]


@pytest.fixture
def nothing_is_asked_again(monkeypatch):
    """Only the fingerprint of a function can tell that it has changed."""
    monkeypatch.setattr(items._OfItems, "_has_changed", lambda *_: False)


@pytest.mark.parametrize("n", [21, 22, 61])
@pytest.mark.parametrize("name", CHANGES)
def test_a_function_that_depends_on_something_that_changed_is_called_anew(
    name, n, monkeypatch, nothing_is_asked_again
):
    X = words(n)[0]
    function, change = changing(name, monkeypatch)
    kernel = PairFunction(function)
    before = kernel(X)
    kernel.diag(X)
    change()
    expected = np.array([[function(a, b) for b in X] for a in X])
    assert np.abs(expected - before).max() > 0.1
    assert_allclose(kernel.diag(X), np.diagonal(expected))
    assert_allclose(kernel(X), expected)
    assert_allclose(kernel(X[:3], X[3:]), expected[:3, 3:])


@pytest.mark.parametrize("n", [21, 22])
def test_a_function_of_lists_that_has_changed_is_called_anew(
    n, monkeypatch, nothing_is_asked_again
):
    X = words(n)[0]
    kernel = MatrixFunction(of_lists(gaussian))
    before = kernel(X)
    monkeypatch.setitem(globals(), "GAMMA", 5.0)
    expected = np.array([[gaussian(a, b) for b in X] for a in X])
    assert np.abs(expected - before).max() > 0.1
    assert_allclose(kernel(X), expected)


@pytest.mark.parametrize("n", [21, 22, 61])
@pytest.mark.parametrize("lists", [False, True])
def test_changes_out_of_sight_are_seen_by_asking_pairs_of_different_items(n, lists, monkeypatch):
    """All values with themselves stay 1: only pairs of different items tell."""
    X = np.random.default_rng(n).permutation(1000)[:n].astype(float)[:, None]
    monkeypatch.setenv("GAMMA_OF_A_TEST", "1e-4")

    def hidden(a, b):
        gamma = float(os.environ["GAMMA_OF_A_TEST"])
        return float(np.exp(-gamma * np.abs(a - b)).item())

    # with symmetric=None the pairs tried first would tell already
    kernel = (
        MatrixFunction(of_lists(hidden), symmetric=True)
        if lists
        else PairFunction(hidden, symmetric=True)
    )
    kernel(X)
    monkeypatch.setenv("GAMMA_OF_A_TEST", "1e-1")
    expected = np.array([[hidden(a, b) for b in X] for a in X])
    assert_allclose(kernel(X), expected)
    monkeypatch.setenv("GAMMA_OF_A_TEST", "1e-3")
    kernel.diag(X)  # asks as well, and forgets
    assert not memo.MEMORIES.of(kernel.function).store(type(kernel).__name__, True).places


def test_a_symmetric_rectangle_is_known_in_the_other_direction(nothing_is_asked_again):
    X, _ = words(30)
    function = counting()
    kernel = PairFunction(function, symmetric=True)
    K = kernel(X[:10], X[10:])
    calls = function.calls
    assert_array_equal(kernel(X[10:], X[:10]), K.T)
    assert_array_equal(kernel(X[12:20], X[3:7]), K.T[2:10, 3:7])
    assert function.calls == calls


def test_pairs_asked_again_are_other_ones_every_time():
    X = [str(k) for k in range(40)]
    asked = []

    def noted(a, b):
        asked.append((a, b))
        return 1.0 + (a == b)

    kernel = PairFunction(noted, symmetric=True)
    kernel(X)
    rounds = []
    for _ in range(3):
        before = len(asked)
        kernel(X)
        again = asked[before:]
        assert 5 <= len(again) <= 7 and all(a != b for a, b in again)
        rounds.append(tuple(again))
    assert len(set(rounds)) == 3


def test_what_cannot_be_written_down_is_not_kept():
    X, _ = words(15)
    lock = threading.Lock()
    scale = {"factor": 1.0}

    def locked(a, b):
        with lock:
            locked.calls += 1
            return scale["factor"] * common(a, b)

    locked.calls = 0
    kernel = PairFunction(locked, symmetric=True)
    kernel(X)
    kernel(X)
    assert locked.calls == 2 * 15 * 16 / 2
    assert memo.state_of(locked) is None


def test_what_a_function_itself_changes_is_no_change():
    X, _ = words(20)
    count, seen = 0, {}
    rng = np.random.default_rng(0)

    def remembers(a, b):
        nonlocal count
        count += 1
        seen[a, b] = rng.normal()
        return common(a, b)

    kernel = PairFunction(remembers)
    K = kernel(X)
    calls = count
    for again in (kernel(X), as_kernel(remembers, X)(X)):
        assert_array_equal(again, K)
    assert count < calls + 50


def test_a_function_of_pairs_and_the_same_of_lists_share_nothing(nothing_is_asked_again):
    def either(a, b):
        return np.full((len(a), len(b)), 2.0) if isinstance(a, list) else 1.0

    X = list("abcdef")
    assert_array_equal(PairFunction(either, symmetric=True)(X), np.ones((6, 6)))
    assert_array_equal(MatrixFunction(either, symmetric=True)(X), np.full((6, 6), 2.0))


# ------------------------------------------------------------------------------------------- what tells items apart


class Unit:
    """An object that leaves its content out of its pickle, as those around compiled code do."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return Unit, (0,)


class Opaque:
    """The same, without a dictionary to look into."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return Opaque, (0,)


class Meters(np.ndarray):
    """An array with a unit that its bytes do not tell."""

    def __new__(cls, value, unit):
        array = np.asarray(value).view(cls)
        array.unit = unit
        return array

    def __reduce__(self):
        rebuild, arguments, state = super().__reduce__()
        return rebuild, arguments, (*state, self.unit)


class Tagged(str):
    """A string with something to it."""


def tagged(tag):
    text = Tagged("a")
    text.tag = tag
    return text


@pytest.mark.parametrize(
    "first, second",
    [
        (np.array([1.0, 2.0], np.float32), np.array([1.0, 2.0], np.float32).view(np.int32)),
        (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)),
        (np.arange(6.0), np.arange(6.0)[None]),
        (np.array([(1, 2)], "i4,f4"), np.array([(1, 2)], "i4,f4").view("i4,i4")),
        (np.ma.array([1.0, 2.0], mask=[0, 0]), np.ma.array([1.0, 2.0], mask=[0, 1])),
        (Meters([1.0], "m"), Meters([1.0], "km")),
        (np.array([1, "1"], object), np.array([1, 1], object)),
        (Unit(1), Unit(2)),
        ([Unit(1)], [Unit(2)]),
        (Opaque(1), Opaque(2)),
        ([(Opaque(1), 1)], [(Opaque(2), 1)]),
        ({"a": (Unit(1),)}, {"a": (Unit(2),)}),
        (np.array([Unit(1)], object), np.array([Unit(2)], object)),
        (tagged(1), tagged(2)),
        ("1", b"1"),
        (1, 1.0),
        (0.0, -0.0),
        ((1, 2), [1, 2]),
        ({1: 2}, {1: 3}),
    ],
)
def test_items_that_differ_in_anything_are_never_taken_for_each_other(first, second):
    keys = memo.item_keys([first, second])
    assert keys is None or keys[0] != keys[1]
    X = np.empty(2, dtype=object)
    X[:] = [None, None]
    X[0], X[1] = first, second
    kernel = PairFunction(lambda a, b: float(a is first) + float(b is first), symmetric=True)
    assert_array_equal(kernel(X), [[2, 1], [1, 0]])


def test_items_equal_in_content_are_the_same_item():
    for item, again in [
        ("a", str(np.str_("a"))),
        (np.arange(4.0)[::2], np.array([0.0, 2.0])),
        ([1, "a", None], [1, "a", None]),
        ({"b": np.arange(3)}, {"b": np.arange(3)}),
    ]:
        keys = memo.item_keys([item, again])
        assert keys is not None and keys[0] == keys[1]


def test_an_object_changed_in_place_is_another_item():
    X = [Unit(1.0), Unit(2.0), Unit(3.0)]
    kernel = PairFunction(lambda a, b: a.value * b.value, symmetric=True)
    kernel(X)
    X[0].value = 5.0
    assert_array_equal(kernel(X), np.outer([5.0, 2.0, 3.0], [5.0, 2.0, 3.0]))


def test_partials_share_values_only_if_all_their_arguments_are_the_same(
    monkeypatch, nothing_is_asked_again
):
    def scaled(a, b, factor=1.0):
        globals()["N_CALLS"] += 1  # out of sight: for the other partials it would be a change
        return factor * common(a, b)

    monkeypatch.setitem(globals(), "N_CALLS", 0)
    X, _ = words(20)
    K = PairFunction(common)(X)
    for factor in (2.0, 3.0):
        assert_allclose(PairFunction(partial(scaled, factor=factor))(X), factor * K)
    positional = partial(lambda c, a, b: c * common(a, b), 2.0)
    assert_allclose(PairFunction(positional)(X), 2.0 * K)
    assert_allclose(PairFunction(partial(positional.func, 5.0))(X), 5.0 * K)
    calls = N_CALLS
    for factor in (3.0, 2.0, 3.0):  # each has a memory of its own
        PairFunction(partial(scaled, factor=factor))(X)
    assert N_CALLS < calls + 30


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
    monkeypatch.setattr(memo.Memories, "most_bytes", 8 * 30**2)
    X, _ = words(90)
    X = list(dict.fromkeys(X))
    function = counting()
    kernel = PairFunction(function, symmetric=True)
    expected = PairFunction(common, cache=False)(X)
    # of the first twenty, ten make room for the next; then the others are asked for beside these
    for part in (slice(0, 20), slice(20, 40), slice(10, 40), slice(40, 60), slice(0, 20)):
        assert_allclose(kernel(X[part]), expected[part, part])
    store = memo.MEMORIES.of(function).store("PairFunction", True)
    assert 0 < len(store.values) <= 30
    assert_allclose(kernel(X), expected)  # too many to be kept
    calls = function.calls
    assert_allclose(kernel(X[:20]), expected[:20, :20])  # still known
    assert function.calls <= calls + ASKED_AGAIN
    assert store is memo.MEMORIES.of(function).store("PairFunction", True)


def test_pairs_that_show_symmetry_are_not_compared_again():
    X = [*dict.fromkeys(words(70, seed=4)[0])]
    n_pairs = len(X) * (len(X) + 1) // 2
    function = counting()
    assert_allclose(PairFunction(function)(X), PairFunction(common, cache=False)(X))
    # of 100 pairs the other direction, and 5 + n / 20 known ones that are asked again
    assert function.calls <= n_pairs + 100 + 5 + len(X) // 20


def test_pairs_that_show_symmetry_leave_known_values():
    X = [*dict.fromkeys(words(40, seed=5)[0])][:13]
    function = counting()
    PairFunction(function)(X)
    calls = function.calls
    PairFunction(function)(X)
    assert function.calls <= calls + 10  # five known pairs for the symmetry, and five


def test_pairs_that_show_symmetry_serve_noisy_functions_in_both_directions():
    rng = np.random.default_rng(0)
    X = [*dict.fromkeys(words(40)[0])]
    kernel = PairFunction(lambda a, b: common(a, b) + 0.01 * rng.normal())
    with pytest.warns(UserWarning, match="noisy"):
        K = kernel(X)
    assert_array_equal(K, K.T)


@pytest.mark.parametrize("n_known", [1, 7, 300])
def test_values_of_new_items_beside_known_ones(n_known):
    X = [str(k) + "x" * (k % 7) for k in range(600)]
    kernel = PairFunction(lambda a, b: hash(a) * 0.5 + 0.5 * hash(b), symmetric=True)
    expected = np.array([[hash(a) * 0.5 + 0.5 * hash(b) for b in X] for a in X])
    kernel(X[100 : 100 + n_known])
    assert_allclose(kernel(X), expected)
    assert_allclose(kernel(X[::-1]), expected[::-1, ::-1])
    assert_allclose(kernel(X[5:50], X[40:300:2]), expected[5:50, 40:300:2])


def test_a_store_that_grows_knows_no_other_pairs():
    X = [f"word {k}" for k in range(60)]
    store = memo.PairStore()
    keys = memo.item_keys(np.array(X, dtype=object))
    for part in (slice(0, 40), slice(40, 45), slice(45, 60)):
        n = part.stop - part.start
        store.write(keys[part], keys[part], np.full((n, n), 2.5))
    known = store.read(keys, keys)
    of_part = np.repeat([0, 1, 2], [40, 5, 15])
    assert_array_equal(known, np.where(of_part[:, None] == of_part, 2.5, np.nan))


def test_returned_values_of_any_number_type():
    values = [1, 2.5, np.float32(0.5), np.int64(3), True, np.array([4.0])]
    kernel = PairFunction(lambda a, b: values[(a + b) % len(values)], symmetric=True)
    expected = [[float(np.ravel(values[(a + b) % 6])[0]) for b in range(9)] for a in range(9)]
    assert_array_equal(kernel(list(range(9))), expected)


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
    model = SimilarityClassifier(process.cdist, random_state=0).fit(X, y)
    assert isinstance(model.kernel_, MatrixFunction) and model.kernel_.symmetric
    assert model.score(*words(40, seed=1)) > 0.9
    table = of_lists()
    by_list, by_pair = (SimilarityClassifier(f, random_state=0).fit(X, y) for f in (table, common))
    assert_allclose(by_list.predict_proba(X), by_pair.predict_proba(X), atol=1e-10)


def test_a_directed_function_of_lists_keeps_its_directions():
    X, y = words(40)
    table = of_lists(lambda a, b: common(a, b) + 0.01 * len(a))
    assert MatrixFunction(table).checked(X).symmetric is False
    assert_allclose(MatrixFunction(table)(X), table(X, X))
    asked = SimilarityClassifier(table, direction="mean", random_state=0).fit(X, y)
    pairs = SimilarityClassifier(
        lambda a, b: common(a, b) + 0.01 * len(a), direction="mean", random_state=0
    ).fit(X, y)
    assert_allclose(asked.predict_proba(X), pairs.predict_proba(X), atol=1e-10)


def test_a_function_whose_values_depend_on_the_other_items_raises():
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
    for model in (KreinSVC(name), SimilarityClassifier(name, random_state=0)):
        fitted = clone(model).fit(X, y)
        precomputed = clone(model).set_params(kernel="precomputed").fit(K, y)
        new = words(20, seed=1)[0]
        assert_array_equal(fitted.predict(new), precomputed.predict(as_kernel(name)(new, X)))


@pytest.mark.parametrize("name", ["levenshtein", "jaro", "jaro_winkler"])
def test_short_and_long_strings_have_the_same_values(name, monkeypatch):
    pytest.importorskip("rapidfuzz")
    X, Y = words(70)[0], words(30, seed=1)[0]
    kernel = Strings(name)
    in_one_call = kernel(X), kernel(X, Y)
    whole = Strings._whole
    monkeypatch.setattr(Strings, "_whole", lambda self, A, B: whole(self, A, B, n_pairs=500))
    in_blocks = kernel(X), kernel(X, Y)
    monkeypatch.setattr(items, "_are_short", lambda strings: False)
    one_by_one = kernel(X), kernel(X, Y)
    for k in range(2):
        assert_array_equal(in_blocks[k], in_one_call[k])
        assert_array_equal(one_by_one[k], in_one_call[k])
    assert_array_equal(in_one_call[0], in_one_call[0].T)


def test_values_of_long_strings_are_kept_and_those_of_short_ones_compared_again(monkeypatch):
    pytest.importorskip("rapidfuzz")
    compared = []
    original = Strings.function

    def counted(self, A, B):
        compared.append(len(A) * len(B))
        return original(self, A, B)

    monkeypatch.setattr(Strings, "function", counted)
    short = words(40)[0]
    n_first, n_again = [], []
    for X in (short, [20 * word for word in short]):
        compared.clear()
        Strings()(X)
        n_first.append(sum(compared))
        compared.clear()
        Strings()(X)
        n_again.append(sum(compared))
    assert n_again[0] == n_first[0] == 1600
    assert n_again[1] < 10 < n_first[1]  # a few values are compared again to see a change


def test_one_long_string_in_twenty_changes_nothing():
    assert items._are_short(np.array([*["a" * 64] * 19, "a" * 1000]))
    assert not items._are_short(np.array([*["a" * 64] * 18, "a" * 65, "a" * 65]))


def test_what_is_no_string_is_refused_with_its_number():
    pytest.importorskip("rapidfuzz")
    with pytest.raises(ValueError, match="'indel' compares strings, but item 1 is of type int"):
        SimilarityFeatures("indel").fit(["a", 7, "b"])
    with pytest.raises(
        ValueError, match="'indel' compares strings, but item 1 is of type NoneType"
    ):
        SimilarityFeatures("indel").fit(["a", "ab", "b"]).transform(["b", None])
    with pytest.raises(ValueError, match="compares strings, but item 2 is of type bytes"):
        Strings()(["a"], ["b", "c", b"d"])
    with pytest.raises(ValueError, match="similarity='soundex' is not known; use 'levenshtein'"):
        Strings("soundex")(["a"])


def test_without_rapidfuzz_one_sentence_names_the_extra(monkeypatch):
    for name in ("rapidfuzz", "rapidfuzz.distance", "rapidfuzz.process"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    expected = r"^Comparing strings needs rapidfuzz; install it with: pip install rapidfuzz, or in .*'\.\[strings\]'\.$"
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

    def fragile(a, b):
        fragile.calls += 1
        if fragile.works < 1 and {a, b} == {"3", "17"}:
            fragile.works += 1
            raise ZeroDivisionError("division by zero")
        return float(int(a) * int(b))

    fragile.calls = fragile.works = 0
    kernel = PairFunction(fragile, symmetric=True)
    with pytest.raises(
        ValueError, match=r"raised ZeroDivisionError \(division by zero\) for items 3 and 17\.$"
    ):
        kernel(X)
    before = fragile.calls
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


def test_progress_is_printed_on_standard_error(monkeypatch, capsys):
    X, _ = words(20)
    clock = iter(np.arange(0.0, 1e6, 1.5))
    monkeypatch.setattr(items, "perf_counter", lambda: next(clock))
    PairFunction(common, symmetric=True, cache=False, progress=True)(X)
    assert " of 210 comparisons, about " in capsys.readouterr().err
    PairFunction(common, symmetric=True, cache=False)(X)  # takes more than a minute
    assert " of 210 comparisons, about " in capsys.readouterr().err
    quick = iter(np.arange(0.0, 1e6, 1e-3))
    monkeypatch.setattr(items, "perf_counter", lambda: next(quick))
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


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("n_items", [40, 7])
def test_values_from_workers_that_are_not_finite_raise(value, n_items, monkeypatch):
    monkeypatch.setattr(items.PairFunction, "_worker_start", -1.0)
    names = list(range(n_items))
    last = n_items - 1

    def late(a, b):
        time.sleep(0.001 if n_items > 10 else 0.06)
        return value if (a, b) == (last, last) else 1.0

    kernel = PairFunction(late, symmetric=True, n_jobs=2)
    with (
        parallel_config("threading"),
        pytest.raises(ValueError, match="not a finite number") as error,
    ):
        kernel(names)
    assert f"items {last} and {last}" in str(error.value)
    known = memo.MEMORIES.of(late).store("PairFunction", True).read(*2 * [memo.item_keys(names)])
    assert not np.isinf(known).any()
    assert np.nanmin(known) == 1.0 and np.isnan(known[-1, -1])  # what came before is kept


def test_workers_give_the_values_of_their_items_in_both_forms(monkeypatch):
    monkeypatch.setattr(items.PairFunction, "_worker_start", -1.0)

    def late(a, b):
        time.sleep(0.001)
        late.threads.add(threading.get_ident())
        return 100.0 * a + b

    late.threads = set()
    X, Y = list(range(30)), list(range(40, 65))
    with parallel_config("threading"):
        K = PairFunction(late, symmetric=False, n_jobs=2, cache=False)(X, Y)
    assert_array_equal(K, 100.0 * np.array(X)[:, None] + np.array(Y))
    assert len(late.threads) > 1


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
    monkeypatch.setattr("mercerless.kernels.items.PairFunction._worker_start", 0.0)
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


# ---------------------------------------------------------------------------------------------- pairs of their own


@pytest.mark.parametrize("of_lists", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_some_pairs_are_those_of_the_matrix_and_no_others(of_lists, symmetric):
    words = [
        "".join(chr(97 + (7 * i * j + i) % 5) for j in range(2 + i % 5)) + str(i) for i in range(40)
    ]
    calls = []

    def distance(a, b):
        calls.append((a, b))
        size = abs(len(a) - len(b)) if symmetric else len(a) - 2.0 * len(b)
        return float(size + len(set(a) ^ set(b)))

    def of_two_lists(A, B):
        return np.array([[distance(a, b) for b in B] for a in A])

    kernel_type = MatrixFunction if of_lists else PairFunction
    function = of_two_lists if of_lists else distance
    kernel = kernel_type(function, symmetric=symmetric, cache=False)
    matrix = kernel(words[:10], words)
    rng = np.random.default_rng(0)
    positions = np.array([rng.permutation(40)[:6] for _ in range(10)])
    calls.clear()
    values = kernel.with_some(words[:10], words, positions)
    np.testing.assert_array_equal(values, np.take_along_axis(matrix, positions, axis=1))
    assert len(calls) == 60
    assert set(calls) == {(words[i], words[j]) for i in range(10) for j in positions[i]}


def test_some_pairs_that_cannot_be_compared_are_gaps():
    kernel = PairFunction(lambda a, b: None if "x" in a + b else 1.0, symmetric=True)
    values = kernel.with_some(["a", "x"], ["b", "cx", "d"], np.array([[0, 1], [0, 2]]))
    np.testing.assert_array_equal(np.isnan(values), [[False, True], [True, True]])


def test_an_error_in_some_pairs_names_the_items():
    def fails(a, b):
        if (a, b) == ("u", "r"):
            raise RuntimeError("no answer")
        return 1.0

    kernel = PairFunction(fails, symmetric=False)
    with pytest.raises(ValueError, match="for items 1 and 2"):
        kernel.with_some(["t", "u"], ["p", "q", "r"], np.array([[0, 1], [0, 2]]))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(*parts): return len(parts)", "def f(parts): return len(parts)"),
        ("def f(a, *, b): return a - b", "def f(a, b): return a - b"),
        ("def f(**named): return len(named)", "def f(named): return len(named)"),
    ],
)
def test_how_a_function_takes_its_arguments_is_part_of_its_state(before, after):
    """The code inside is the same."""
    functions = []
    for source in (before, after):
        names = {"__name__": "__main__"}
        exec(source, names)
        functions.append(names["f"])
    first, second = functions
    assert first.__code__.co_code == second.__code__.co_code
    assert memo.state_of(first) != memo.state_of(second)
    assert memo.fingerprint(first) != memo.fingerprint(second)
