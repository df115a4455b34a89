"""The stack on few comparisons: against the full families, dense formulas, and what is given or counted."""

import pickle
import time

import numpy as np
import pytest
from oracles.similarity import feature_ridge
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score
from stacks import fit_settings, with_settings

from mercerless import KreinRidge, SimilarityClassifier, SimilarityRegressor, config_context
from mercerless.kernels import TL1, PairFunction
from mercerless.lowrank import Landmarks
from mercerless.similarity import estimators, timing
from mercerless.similarity import landmarks as few
from mercerless.similarity.comparisons import find_rows
from mercerless.similarity.families import Comparisons, Setting
from mercerless.similarity.landmarks import (
    LandmarkRows,
    RowReader,
    Sample,
    landmark_families,
    learn_sums,
    pursue_landmarks,
)
from mercerless.similarity.solver import landmark_path, spectral_path

N, M = 120, 30


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(160, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    X.flags.writeable = False
    return X, y


@pytest.fixture(scope="module")
def distances(data):
    D = np.abs(data[0][:, None] - data[0]).sum(axis=2)
    D.flags.writeable = False
    return D


@pytest.fixture(scope="module")
def columns():
    return np.sort(np.random.default_rng(3).permutation(N)[:M])


def classifier(**parameters):
    return SimilarityClassifier(
        **({"kernel": "precomputed", "landmarks": M, "random_state": 0} | parameters)
    )


@pytest.fixture(scope="module")
def model(data, distances, columns):
    return classifier().fit(distances[:N, columns], data[1][:N])


def problem_of(K, Y, landmarks, settings, fold_of=None):
    """The sums of a problem on all rows as judged ones and as points."""
    n, diagonal = len(K), np.zeros(len(landmarks))
    rows = LandmarkRows(K[:, landmarks], None, RowReader("similarity", diagonal, 0.0), landmarks)
    every = np.arange(n)
    sample = Sample(rows.take(every), np.ones(n), every, landmarks, every)
    families = with_settings(landmark_families(True, sample), settings)
    fold_of = np.zeros(n, int) if fold_of is None else fold_of
    return learn_sums(rows, sample, families, Y, np.ones(n), fold_of, None)


# ---- mathematics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family, width", [("profiles", 0.1), ("profiles", 1.0), ("features", 0.0), ("gaussian", 3.0)]
)
def test_all_items_as_landmarks_give_the_family_of_all_comparisons(data, distances, family, width):
    K, Y = -0.5 * distances**2, np.eye(3)[data[1]]
    settings = [Setting(family, penalty, width) for penalty in (1e-4, 1e-2)]
    new = Comparisons(K[N:, :N], np.zeros(40), np.zeros(N))
    members = fit_settings(Comparisons(K[:N, :N], np.zeros(N), np.zeros(N)), Y[:N], settings)
    problem = problem_of(K[:N, :N], Y[:N], np.arange(N), settings)
    found = problem.members(problem.families).scores(new)
    np.testing.assert_allclose(found, members.scores(new), atol=1e-6)


def test_landmark_path_of_all_items_is_the_spectral_path():
    random = np.random.RandomState(0)
    A, Y = random.normal(size=(25, 25)), random.normal(size=(25, 2))
    K, new = A + A.T, random.normal(size=(6, 25))
    settings = [(name, penalty) for name in ("clip", "flip", "square") for penalty in (1e-4, 1.0)]
    coef, intercept = spectral_path(K, Y, settings)
    H = np.eye(25) - 1 / 25
    values, vectors = np.linalg.eigh(H @ K @ H)
    kept = np.abs(values) > 1e-8
    values, vectors = values[kept], vectors[:, kept]
    F, rows = (K - K.mean(axis=0)) @ H @ vectors, (new - K.mean(axis=0)) @ H @ vectors
    found = landmark_path(F.T @ F, F.T @ (Y - Y.mean(axis=0)), values, settings)
    expected = np.tensordot(new, coef, 1) + intercept
    np.testing.assert_allclose(
        np.tensordot(rows, found, 1) + Y.mean(axis=0), expected, rtol=1e-7, atol=1e-7
    )
    assert landmark_path(np.empty((0, 0)), np.empty((0, 2)), np.empty(0), settings).shape == (
        0,
        6,
        2,
    )


def test_sums_without_a_fold_are_the_ridge_of_the_other_rows(data, distances, columns):
    K, Y = -0.5 * distances[:N, :N] ** 2, np.eye(3)[data[1][:N]]
    fold_of = np.arange(N) % 4
    settings = [Setting("features", 1e-2)]
    problem = problem_of(K, Y, columns, settings, fold_of)
    rest = fold_of != 2
    scaled = problem.sample.distances(np.sqrt(-2.0 * K[:, columns]))
    expected = feature_ridge(scaled[rest], Y[rest], 1e-2, scaled[~rest], standardize=False)
    block = Comparisons(K[~rest][:, columns], np.zeros((~rest).sum()), np.zeros(M))
    found = problem.members(problem.families, left=2).scores(block)
    np.testing.assert_allclose(found[0], expected, rtol=1e-8, atol=1e-8)


def test_the_held_out_fold_does_not_vote(data, distances, columns):
    K, Y = -0.5 * distances[:N, :N] ** 2, np.eye(3)[data[1][:N]]
    fold_of = np.arange(N) % 4
    settings = [Setting("neighbors", 1), Setting("profile_neighbors", 1)]
    problem = problem_of(K, Y, columns, settings, fold_of)
    rows = np.flatnonzero(fold_of == 1)
    block = Comparisons(K[np.ix_(rows, columns)], np.zeros(len(rows)), np.zeros(M))
    away, among = (problem.members(problem.families, left=left).scores(block) for left in (1, None))
    mine = np.isin(rows, columns)
    np.testing.assert_array_equal(among[0][mine], Y[rows[mine]])  # a landmark is its own nearest
    nearest = columns[fold_of[columns] != 1]
    expected = Y[nearest[distances[np.ix_(rows, nearest)].argmin(axis=1)]]
    np.testing.assert_array_equal(away[0], expected)
    assert not np.array_equal(away[1], Y[rows]) and np.array_equal(among[1], Y[rows])


def test_pursuit_is_the_greedy_projection(data, distances, columns):
    C, Y = distances[:N, columns], np.eye(3)[data[1][:N]]
    block = Comparisons(-0.5 * C**2, np.zeros(N), np.zeros(M))
    found = pursue_landmarks(block, Y, np.ones(N), 6)
    A, R, chosen = (C - C.mean(axis=0)) / C.std(axis=0), Y - Y.mean(axis=0), []
    for _ in range(6):
        gain = ((A.T @ R) ** 2).sum(axis=1) / np.maximum((A**2).sum(axis=0), 1e-9)
        gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        unit = A[:, chosen[-1]] / np.linalg.norm(A[:, chosen[-1]])
        A, R = A - np.outer(unit, unit @ A), R - np.outer(unit, unit @ R)
    n_taken = len(np.flatnonzero(np.cumprod(found == chosen)))
    assert n_taken >= 2 and np.array_equal(
        found[n_taken:], np.setdiff1d(np.arange(M), chosen[:n_taken])[: 6 - n_taken]
    )
    noise = np.random.default_rng(0).normal(size=(N, 3))
    # nothing to go after
    assert pursue_landmarks(block, noise, np.ones(N), 6).tolist() == [0, 1, 2, 3, 4, 5]
    copies = Comparisons(np.tile(block.similarities[:, :1], (1, 4)), np.zeros(N), np.zeros(4))
    # copies follow when nothing is left
    assert pursue_landmarks(copies, Y, np.ones(N), 3).tolist() == [0, 1, 2]


# ---- identities -------------------------------------------------------------------------------------------------


def test_the_order_of_landmarks_and_the_scale_do_not_matter(data, distances, columns, model):
    y, expected = data[1], model.predict_proba(distances[N:, columns])
    order = np.random.default_rng(0).permutation(columns)
    turned = classifier().fit(distances[:N, order], y[:N]).predict_proba(distances[N:, order])
    np.testing.assert_allclose(turned, expected, atol=1e-5)
    large = (
        classifier()
        .fit(1e6 * distances[:N, columns], y[:N])
        .predict_proba(1e6 * distances[N:, columns])
    )
    np.testing.assert_allclose(large, expected, atol=1e-6)


def test_rows_of_weight_zero_are_not_there(data, distances, columns, model):
    y = data[1]
    weight = (np.arange(160) < N).astype(float)
    weighted = classifier().fit(distances[:, columns], y, sample_weight=weight)
    np.testing.assert_allclose(
        weighted.predict_proba(distances[N:, columns]),
        model.predict_proba(distances[N:, columns]),
        atol=1e-8,
    )


def test_a_pickled_model_is_the_same(distances, columns, model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.predict_proba(distances[N:, columns]), model.predict_proba(distances[N:, columns])
    )


# ---- functions --------------------------------------------------------------------------------------------------


class Counted:
    """A distance that counts its calls."""

    def __init__(self, value=None):
        self.calls, self.value = 0, value
        # cannot be written down, so that values of another one are not taken for its own
        self.distinct = lambda: self

    def __call__(self, a, b):
        self.calls += 1
        return float(np.abs(a - b).sum()) if self.value is None else self.value(a, b)


def test_a_function_is_called_for_landmarks_only_and_equals_the_rectangle(data, distances, model):
    X, y = data
    function = Counted()
    direct = SimilarityClassifier(function, landmarks=M, random_state=0).fit(list(X[:N]), y[:N])
    assert function.calls == N * M and direct.kind_ == "distance" and len(direct.X_fit_) == M
    function.calls = 0
    found = direct.predict_proba(list(X[N:]))
    assert function.calls == 40 * M
    rectangle = classifier(landmarks=direct.landmarks_).fit(distances[:N, direct.landmarks_], y[:N])
    np.testing.assert_allclose(
        rectangle.predict_proba(distances[N:, direct.landmarks_]), found, atol=0.1
    )


def test_pursuit_compares_with_twice_as_many_and_keeps_the_best(data):
    X, y = data
    function = Counted()
    wanted = Landmarks(15, "pursuit")
    model = SimilarityClassifier(function, landmarks=wanted, random_state=0).fit(list(X[:N]), y[:N])
    assert function.calls == 2 * N * 15 and len(model.landmarks_) == 15
    function.calls = 0
    model.predict(list(X[N:]))
    assert function.calls == 40 * 15


# ---- given rectangles -------------------------------------------------------------------------------------------


def test_landmark_rows_are_found_among_distances_and_similarities(distances, columns, data):
    kind, rows = find_rows(distances[:N, columns])
    assert kind == "distance" and rows.tolist() == columns.tolist()
    kind, rows = find_rows(TL1(9.0)(data[0][:N])[:, columns])
    assert kind == "similarity" and rows.tolist() == columns.tolist()
    some = np.append(columns[:20], [130, 140, 150])  # three landmarks are not among the rows
    for C in (distances[:N, some], np.exp(-distances[:N, some])):
        found = find_rows(C)[1]
        assert found[:20].tolist() == columns[:20].tolist() and np.all(found[20:] == -1)
    kind, rows = find_rows(distances[:N, N:], "distance")
    assert kind == "distance" and np.all(rows == -1)
    with pytest.raises(ValueError, match=r"not among its rows; pass kind="):
        find_rows(distances[:N, N:])


def test_zeros_of_truncated_similarities_are_no_distances():
    """Rows of zeros, nearest to many columns at once, were taken for landmarks at the distance 0."""
    X, places = np.random.RandomState(0).normal(size=(60, 3)), np.arange(0, 60, 4)
    for reach in (3.0, 1.0):
        C = TL1(reach)(X, X[places])
        assert np.mean(C == 0.0) > 0.5
        kind, rows = find_rows(C)
        assert kind == "similarity"
        assert rows.tolist() == places.tolist()


def test_landmarks_need_not_be_training_items(data, distances):
    y = data[1]
    model = classifier(kind="distance", landmarks=40).fit(distances[:N, N:], y[:N])
    assert model.negative_spectrum_.verdict == "unknown" and "neighbors" not in model.family_scores_
    assert model.score(distances[:N, N:], y[:N]) > 0.6


def test_told_landmarks_equal_found_ones_and_must_match(data, distances, columns, model):
    y, C = data[1], distances[:N, columns]
    told = classifier(landmarks=columns).fit(C, y[:N])
    rows = distances[N:, columns]
    np.testing.assert_allclose(told.predict_proba(rows), model.predict_proba(rows), atol=1e-10)
    with pytest.raises(ValueError, match=r"do not match landmarks: row \d+ has"):
        classifier(landmarks=np.roll(columns, 1)).fit(C, y[:N])
    with pytest.raises(ValueError, match=r"names 29 landmarks but X has 30 columns"):
        classifier(landmarks=columns[1:]).fit(C, y[:N])
    with pytest.raises(ValueError, match=r"names row 120 of 120 items"):
        classifier(landmarks=[3, 120]).fit(C, y[:N])
    with pytest.raises(ValueError, match=r"names row 3 twice"):
        classifier(landmarks=[3, 3]).fit(C, y[:N])
    with pytest.raises(ValueError, match=r"landmarks must be"):
        classifier(landmarks="some").fit(C, y[:N])
    with pytest.raises(ValueError, match=r"landmarks must be a positive whole number"):
        classifier(landmarks=0).fit(C, y[:N])
    with pytest.raises(ValueError, match=r"method='pivoted' is not known"):
        classifier(landmarks=Landmarks(9, "pivoted")).fit(C, y[:N])
    with pytest.raises(ValueError, match=r"which has the weight 0"):
        classifier(landmarks=columns).fit(C, y[:N], sample_weight=np.arange(N) != columns[2])
    with pytest.raises(ValueError, match=r"set landmarks if its columns"):
        classifier(landmarks="auto").fit(C, y[:N])
    with pytest.raises(ValueError, match=r"direction='mean' with landmarks is for kernels"):
        classifier(direction="mean").fit(C, y[:N])


def test_new_rows_have_the_landmarks_or_all_columns(data, distances, model, columns):
    y = data[1]
    some = classifier(landmarks=10).fit(distances[:N, :N], y[:N])
    assert len(some.landmarks_) == 10
    np.testing.assert_array_equal(
        some.predict_proba(distances[N:, :N]), some.predict_proba(distances[N:][:, some.landmarks_])
    )
    with pytest.raises(
        ValueError, match=r"X has 11 columns but the model compares with 10 landmarks.*120"
    ):
        some.predict(distances[N:, :11])
    with pytest.raises(
        ValueError, match=r"X has 29 columns but the model compares with 30 landmarks"
    ):
        model.predict(distances[N:, columns[1:]])


def test_rectangles_cross_validate(data, distances, columns):
    scores = cross_val_score(classifier(cv=3), distances[:, columns], data[1], cv=3)
    assert scores.mean() > 0.6


# ---- streams ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_dask_arrays_and_memory_maps_give_the_same_model(
    data, distances, columns, model, tmp_path, monkeypatch
):
    da = pytest.importorskip("dask.array")
    X, y = data
    C, new = np.array(distances[:N, columns]), distances[N:, columns]
    expected = model.predict_proba(new)
    lazy = classifier().fit(da.from_array(C, chunks=(37, 11)), y[:N])
    np.testing.assert_allclose(
        lazy.predict_proba(da.from_array(new, chunks=(13, M))).compute(), expected, atol=1e-8
    )
    np.save(tmp_path / "C.npy", C)
    mapped = classifier().fit(np.load(tmp_path / "C.npy", mmap_mode="r"), y[:N])
    np.testing.assert_allclose(mapped.predict_proba(new), expected, atol=1e-8)
    kernel = {"kernel": TL1(9.0)}
    direct = classifier(**kernel).fit(X[:N], y[:N]).predict_proba(X[N:])
    lazy = classifier(**kernel).fit(da.from_array(X[:N], chunks=(50, 5)), y[:N])
    np.testing.assert_allclose(lazy.predict_proba(X[N:]), direct, atol=1e-8)
    with pytest.raises(TypeError, match="needs its data in memory"):
        classifier(landmarks=None, **kernel).fit(da.from_array(X[:N], chunks=(50, 5)), y[:N])


def test_a_model_on_landmarks_is_smaller_than_one_on_all_items(data, distances, columns, model):
    """It keeps the points' comparisons once and nothing that only the fit needs, and predicts the same when loaded."""
    on_all = classifier(landmarks=None).fit(distances[:N, :N], data[1][:N])
    saved = pickle.dumps(model.stack_.members)
    assert len(saved) < 0.8 * len(pickle.dumps(on_all.stack_.members))
    new = Comparisons(-0.5 * distances[N:, columns] ** 2, np.zeros(40), np.zeros(M))
    expected = model.stack_.members.scores(new)
    model.stack_.members.scores(new)  # coordinates that are computed on the way are not saved
    again = pickle.dumps(model.stack_.members)
    assert len(again) < 1.02 * len(saved)
    np.testing.assert_allclose(pickle.loads(again).scores(new), expected, rtol=1e-12)


def test_many_rows_are_judged_by_some(data, distances, columns, model, monkeypatch):
    monkeypatch.setattr(few, "n_judged", lambda n, q: 80)
    monkeypatch.setattr(few, "n_points", lambda n: 50)
    some = classifier().fit(distances[:N, columns], data[1][:N])
    assert len(some.out_of_fold_.rows) == 80 == len(some.out_of_fold_.prediction)
    assert set(columns) <= set(some.out_of_fold_.rows)
    assert (
        some.score(distances[N:, columns], data[1][N:])
        > model.score(distances[N:, columns], data[1][N:]) - 0.15
    )


# ---- automatic, sparse, told ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_auto_turns_to_landmarks_and_says_so(data, monkeypatch):
    X, y = data
    auto = SimilarityClassifier(TL1(9.0), random_state=0)
    assert auto.fit(X[:N], y[:N]).landmarks_ is None
    monkeypatch.setattr(estimators, "LIMITS", estimators.SimilarityLimits(all_items=100))
    with pytest.warns(
        UserWarning, match=r"compares the 120 items with 40 landmarks only: .*up to 100 items"
    ):
        assert len(auto.fit(X[:N], y[:N]).landmarks_) == 40
    monkeypatch.setattr(estimators, "LIMITS", estimators.SimilarityLimits(landmarks=30))
    with (
        config_context(memory_limit="900kB"),
        pytest.warns(UserWarning, match=r"need .* of memory and the budget is"),
    ):
        assert auto._too_much(auto.kernel, X[:N], N)
        warnings_of = auto._requested_landmarks(auto.kernel, X[:N], N)
    assert warnings_of.number == 30


def test_all_comparisons_where_they_are_cheaper(data, distances):
    """With landmarks for half of the items, n m calls are no fewer than all n (n - 1) / 2 pairs."""
    X, y = data
    items = list(X[:N])
    calls = []

    def distance(a, b):
        calls.append(1)
        return float(np.abs(a - b).sum())

    few_calls = classifier(kernel=PairFunction(distance, symmetric=True), landmarks=59)
    assert len(few_calls.fit(items, y[:N]).landmarks_) == 59
    n_landmark_calls = len(calls)
    calls.clear()
    kernel = PairFunction(distance, symmetric=True)
    everything = classifier(kernel=kernel, landmarks=60).fit(items, y[:N])
    assert everything.landmarks_ is None
    assert len(calls) <= N * (N + 1) // 2 + 20 and n_landmark_calls <= 59 * N + 20
    full = classifier(landmarks=None).fit(distances[:N, :N], y[:N])
    np.testing.assert_allclose(
        everything.predict_proba(list(X[N:])), full.predict_proba(distances[N:, :N]), atol=1e-9
    )
    # landmarks that are chosen by name or by the pursuit, and given comparisons, stay what they are
    pursued = Landmarks(60, "pursuit")
    assert len(classifier(kernel=TL1(9.0), landmarks=pursued).fit(X[:N], y[:N]).landmarks_) == 60
    named = np.arange(0, N, 2)
    assert len(classifier(kernel=TL1(9.0), landmarks=named).fit(X[:N], y[:N]).landmarks_) == 60
    given = classifier(landmarks=70).fit(distances[:N, :70], y[:N])
    assert len(given.landmarks_) == 70


def slow_distance(a, b):
    """A function that takes a millisecond."""
    end = time.perf_counter() + 1e-3
    while time.perf_counter() < end:
        pass
    return float(np.abs(a - b).sum())


@pytest.mark.slow
def test_auto_uses_as_many_landmarks_as_a_time_allows(data, monkeypatch):
    """What all comparisons and the landmarks take is said beforehand, in one sentence."""
    X, y = data
    limits = timing.TimeLimits(all_seconds=2.6, fewest=12)
    monkeypatch.setattr(timing, "LIMITS", limits)
    monkeypatch.setattr(estimators, "TIMES", limits)
    monkeypatch.setattr(estimators, "seconds_per_pair", lambda kernel, items: 1e-3)
    model = SimilarityClassifier(lambda a, b: float(np.abs(a - b).sum()), random_state=0)
    message = r"compares the 120 items with (\d+) landmarks only, which takes about \d seconds: all comparisons would"
    with pytest.warns(UserWarning, match=message):
        model.fit(list(X[:N]), y[:N])
    assert len(model.landmarks_) == 21  # 2.6 seconds, 120 milliseconds each
    limits = timing.TimeLimits(all_seconds=0.1, fewest=12)
    monkeypatch.setattr(timing, "LIMITS", limits)
    monkeypatch.setattr(estimators, "TIMES", limits)
    with pytest.warns(UserWarning, match="with 12 landmarks only"):
        model.fit(list(X[:N]), y[:N])


def test_landmarks_by_time(data):
    X, y = data
    assert timing.seconds_per_pair(PairFunction(slow_distance), list(X)) >= 1e-3
    fast = Landmarks(30, seconds=3600.0)
    model = SimilarityClassifier(TL1(9.0), landmarks=fast, random_state=0).fit(X[:N], y[:N])
    assert len(model.landmarks_) == 30
    wanted = Landmarks(90, "uniform", seconds=7.2)
    chosen, seconds = timing.affordable(wanted, 1e-3, 120, 1, 90)
    assert (chosen.number, chosen.method) == (60, "uniform") and seconds == pytest.approx(7.2)
    pursued = timing.affordable(Landmarks(90, "pursuit", seconds=7.2), 1e-4, 120, 2, 90)
    assert pursued[0].number == 90 and pursued[1] == pytest.approx(90 * 120 * 4e-4)
    few_items = timing.affordable(wanted, 1.0, 20, 1, 20)
    assert few_items[0].number == 20
    with pytest.warns(UserWarning, match="50 landmarks, the fewest, take about"):
        short = Landmarks(seconds=1e-9)
        SimilarityClassifier(TL1(9.0), landmarks=short, random_state=0).fit(X[:N], y[:N])


@pytest.mark.parametrize("seconds", [0, -1.0, np.inf, "1h"])
def test_bad_times_of_landmarks(data, seconds):
    with pytest.raises(ValueError, match="seconds"):
        classifier(kernel=TL1(9.0), landmarks=Landmarks(seconds=seconds)).fit(*data)


def test_times_are_for_functions_of_similarity_learners(data, distances, columns):
    timed = Landmarks(30, seconds=10.0)
    with pytest.raises(ValueError, match="in memory; give a number"):
        classifier(landmarks=timed).fit(distances[:N, columns], data[1][:N])
    with pytest.raises(ValueError, match="is for SimilarityClassifier"):
        KreinRidge(landmarks=timed).fit(data[0], data[1])


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.2, "1 seconds"), (59, "59 seconds"), (70, "a minute"), (600, "10 minutes"),
        (39_600, "11 hours"), (200_000, "2.3 days"), (1e7, "120 days"),
    ],
)  # fmt: skip
def test_times_in_words(seconds, words):
    assert timing.duration(seconds) == words


@pytest.mark.slow
def test_sparsify_keeps_few_items(data, distances):
    X, y = data
    for kernel, rows, new in (
        ("precomputed", distances[:N, :N], distances[N:, :N]),
        (TL1(9.0), X[:N], X[N:]),
    ):
        full = SimilarityClassifier(kernel, random_state=0).fit(rows, y[:N])
        small = full.sparsify(20, rows, y[:N])
        assert len(small.landmarks_) == 20 and full.landmarks_ is None
        assert small.score(new, y[N:]) > full.score(new, y[N:]) - 0.15
        with pytest.raises(ValueError, match="fitted on all comparisons"):
            small.sparsify(5, rows, y[:N])
    assert small.predict(X[N:]).shape == (40,)


@pytest.mark.slow
def test_numbers_and_what_more_landmarks_bring(data):
    X = data[0]
    y = np.sin(X[:, 0]) + X[:, 1]
    model = SimilarityRegressor(TL1(9.0), landmarks=40, random_state=0).fit(X[:N], y[:N])
    assert model.score(X[N:], y[N:]) > 0.7
    assert list(model.landmark_curve_) == [10, 20, 40]
    assert model.landmark_curve_[40] < model.landmark_curve_[10]
    wild = y.copy()
    wild[:2] += 100.0
    fenced = SimilarityRegressor(TL1(9.0), landmarks=40, random_state=0).fit(X[:N], wild[:N])
    assert fenced.n_fenced_ == 2
    assert fenced.score(X[N:], y[N:]) > 0.6


@pytest.mark.parametrize("m", [1, 2])
def test_hardly_any_landmarks_and_equal_columns(data, distances, m):
    y = data[1]
    model = classifier(kind="distance", landmarks=m).fit(distances[:N, :m], y[:N])
    assert np.all(np.isfinite(model.predict_proba(distances[N:, :m])))
    flat = classifier(kind="similarity", landmarks=3).fit(np.ones((N, 3)), y[:N])
    np.testing.assert_allclose(flat.predict_proba(np.ones((2, 3))).sum(axis=1), 1.0)


def test_a_pair_function_object_is_not_tried_on_pairs(data):
    X, y = data
    function = Counted()
    SimilarityClassifier(PairFunction(function), landmarks=M, random_state=0).fit(
        list(X[:N]), y[:N]
    )
    assert function.calls == N * M


def test_saved_models_and_prediction_sets(data, distances, columns, model, tmp_path):
    pytest.importorskip("skops")
    from mercerless import persistence

    persistence.save(model, tmp_path / "model.skops")
    again, new = persistence.load(tmp_path / "model.skops"), distances[N:, columns]
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    sets = model.predict_set(new, 0.9)
    assert sets.shape == (40, 3) and sets[np.arange(40), data[1][N:]].mean() > 0.75


def test_a_function_that_fails_is_no_function_of_lists_and_says_where(data):
    X, y = data

    def refuses(a, b):
        if a[0] == X[5, 0] and b[0] == X[90, 0]:
            raise RuntimeError("no alignment")
        return float(np.abs(a - b).sum())

    model = SimilarityClassifier(refuses, landmarks=[3, 40, 90, 100], random_state=0)
    with pytest.raises(
        ValueError, match=r"raised RuntimeError \(no alignment\) for items 5 and 90"
    ):
        model.fit(list(X[:N]), y[:N])


def test_landmarks_may_be_copies_of_other_items(data, distances):
    """An item with the same label stands for its copies, whichever of them is named."""
    X, y = data
    rows = np.r_[np.arange(N), [4, 17, 30]]
    first = np.array([4, 17, 50, 51, 52, 53, 54, 55])
    second = np.r_[[N, N + 1], first[2:]]
    models = [
        classifier(kernel=TL1(5.0), landmarks=named).fit(X[rows], y[rows])
        for named in (first, second, np.r_[second, [4]])
    ]
    for model in models:
        np.testing.assert_array_equal(model.landmarks_, first)
        np.testing.assert_array_equal(model.predict_proba(X[N:]), models[0].predict_proba(X[N:]))
    # columns of comparisons stay, also those of two copies
    D = distances[np.ix_(rows, rows)]
    new = distances[N:, rows]
    both = np.r_[first, [N]]
    model = classifier(landmarks=both).fit(D[:, both], y[rows])
    np.testing.assert_array_equal(model._basis_rows, [*first, -1])  # one of the two is the item
    proba = model.predict_proba(new[:, both])
    other = np.r_[second, [4]]
    again = classifier(landmarks=other).fit(D[:, other], y[rows]).predict_proba(new[:, other])
    np.testing.assert_allclose(proba, again, atol=1e-8)
    with pytest.raises(ValueError, match="names row 4, which has the weight 0"):
        weight = np.where(np.arange(N) == 4, 0.0, 1.0)
        classifier(kernel=TL1(5.0), landmarks=first).fit(X[:N], y[:N], sample_weight=weight)


@pytest.mark.parametrize("landmarks", [20, Landmarks(20, "pursuit"), 200])
@pytest.mark.parametrize("kind", ["linear", "distances"])
def test_items_that_do_not_count_are_no_landmarks_of_a_square_matrix(
    data, distances, kind, landmarks
):
    """Items without weight are as good as missing, and copies are one item with their weight."""
    X, y = data
    K = X @ X.T if kind == "linear" else distances
    own = {"diag": np.diagonal(K)[N:]} if kind == "linear" else {}
    model = classifier(landmarks=landmarks)

    def proba(rows, weight):
        fitted = model.fit(K[np.ix_(rows, rows)], y[rows], sample_weight=weight)
        new = K[N:][:, rows]
        by_landmarks = fitted.predict_proba(new[:, fitted.landmarks_], **own)
        np.testing.assert_array_equal(fitted.predict_proba(new, **own), by_landmarks)
        assert np.all(fitted._basis_rows >= 0)
        return by_landmarks

    every = np.arange(N)
    weight = np.where(every % 10 == 3, 0.0, 1.0)
    expected = proba(every[weight > 0.0], None)
    np.testing.assert_allclose(proba(every, weight), expected, atol=1e-8)
    places = np.sort(np.r_[every, [7, 30, 30]])
    repeated = proba(places, None)
    np.testing.assert_allclose(repeated, proba(every, np.bincount(places)), atol=1e-8)
