"""Low rank: exact where it must be, safe for indefinite kernels, bounded in memory."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercerless import config_context
from mercerless.kernels import (
    TL1,
    DeltaGauss,
    Epanechnikov,
    Gaussian,
    Log,
    PairFunction,
    Precomputed,
    Sigmoid,
    as_kernel,
)
from mercerless.lowrank import (
    LandmarkMap,
    _entries,
    _norm_of_all,
    nystroem,
    pivoted_cholesky,
    select_landmarks,
)


def rows(n, d=4, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, d))


class TestPivotedCholesky:
    def test_full_rank_is_exact(self):
        X = rows(80)
        K = Gaussian(0.3)(X)
        result = pivoted_cholesky(Gaussian(0.3), X, 80, random_state=0)
        assert_allclose(result.factor @ result.factor.T, K, atol=1e-8)

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_certificate_and_interpolation(self, scale):
        X = rows(200)
        kernel = scale * Gaussian(0.5)
        K = kernel(X)
        result = pivoted_cholesky(kernel, X, 40, random_state=0)
        rest = K - result.factor @ result.factor.T
        assert result.residual == pytest.approx(np.trace(rest) / np.trace(K), rel=1e-6)
        assert_allclose(rest[result.pivots], 0, atol=1e-8 * scale)
        assert np.linalg.eigvalsh(rest)[0] > -1e-8 * scale * 200
        assert len(set(result.pivots)) == len(result.pivots) == 40

    def test_close_to_the_best_rank(self):
        X = rows(300, 2)
        K = Gaussian(0.5)(X)
        best = np.sort(np.linalg.eigvalsh(K))[:-30].sum() / np.trace(K)
        mean = np.mean(
            [pivoted_cholesky(Gaussian(0.5), X, 30, random_state=s).residual for s in range(10)]
        )
        assert mean < 20 * best

    def test_low_rank_kernel_stops_early(self):
        B = np.random.default_rng(0).normal(size=(50, 3))
        result = pivoted_cholesky(Precomputed(), B @ B.T, 20, random_state=0)
        assert len(result.pivots) == 3 and result.residual < 1e-10

    def test_duplicates_and_zero_matrix(self):
        X = np.repeat(rows(5), 10, axis=0)
        assert len(pivoted_cholesky(Gaussian(1.0), X, 30, random_state=0).pivots) == 5
        assert pivoted_cholesky(Precomputed(), np.zeros((4, 4)), 2).factor.shape == (4, 0)

    def test_repeatable(self):
        a, b = (pivoted_cholesky(Gaussian(0.3), rows(100), 20, random_state=3) for _ in range(2))
        assert_array_equal(a.pivots, b.pivots)
        assert_array_equal(a.factor, b.factor)

    def test_indefinite_is_refused(self):
        with pytest.raises(ValueError, match="nystroem"):
            pivoted_cholesky(Precomputed(), np.array([[1.0, 2.0], [2.0, 1.0]]), 2, random_state=0)

    def test_memory(self):
        with pytest.raises(MemoryError, match="needs"), config_context(memory_limit=1000):
            pivoted_cholesky(Gaussian(1.0), rows(100), 50)


class TestNystroem:
    @pytest.mark.parametrize(
        "kernel", [Gaussian(0.5), TL1(2.0), DeltaGauss(1.0, 0.1), Sigmoid(0.5, -0.3)], ids=repr
    )
    def test_all_landmarks_are_exact(self, kernel):
        X = rows(90)
        result = nystroem(kernel, X, np.arange(90))
        Z = result.feature_map(kernel, X).transform(X)
        assert_allclose((Z * result.signs) @ Z.T, kernel(X), atol=1e-8 * np.abs(kernel(X)).max())
        assert result.error < 1e-8

    @pytest.mark.parametrize(
        "kernel",
        [TL1(2.0), DeltaGauss(1.0, 0.1), Sigmoid(0.3, -0.3), Epanechnikov(0.8), Log(1.0)],
        ids=repr,
    )
    def test_more_landmarks_never_make_it_worse(self, kernel):
        X = rows(600)
        K = kernel(X)
        errors, estimates = [], []
        for m in (25, 50, 100, 200, 400, 600):
            landmarks = select_landmarks(kernel, X, m, random_state=0)
            result = nystroem(kernel, X, landmarks, random_state=1)
            Z = result.feature_map(kernel, X).transform(X)
            errors.append(np.linalg.norm(K - (Z * result.signs) @ Z.T) / np.linalg.norm(K))
            estimates.append(result.error)
        assert np.all(np.diff(errors) <= 1e-10)
        assert errors[0] < 1.0
        # estimated on rows that were left out
        assert_allclose(np.log(estimates[:3]), np.log(errors[:3]), atol=np.log(2))

    def test_classical_formula_diverges_where_this_does_not(self):
        """The safeguard is needed: the textbook's pseudo-inverse makes TL1 useless on the same landmarks."""
        kernel, X = TL1(2.0), rows(600, 5)
        K = kernel(X)
        ours, classical = [], []
        for m in (50, 100, 200):
            landmarks = select_landmarks(kernel, X, m, random_state=0)
            result = nystroem(kernel, X, landmarks, random_state=1)
            Z, C = result.feature_map(kernel, X).transform(X), K[:, landmarks]
            ours.append(np.linalg.norm(K - (Z * result.signs) @ Z.T) / np.linalg.norm(K))
            classical.append(
                np.linalg.norm(K - C @ np.linalg.solve(C[landmarks], C.T)) / np.linalg.norm(K)
            )
        assert max(classical) > 0.5
        assert max(ours) < 0.25

    def test_definite_kernels_stay_definite(self):
        X = rows(300)
        result = nystroem(Gaussian(0.5), X, np.arange(60), random_state=0)
        assert result.values.min() > -1e-12 * result.values.max()

    def test_precomputed_equals_vectors(self):
        X = rows(150)
        kernel = TL1(2.0)
        landmarks = np.arange(40)
        K = kernel(X)
        a = nystroem(kernel, X, landmarks, random_state=0)
        b = nystroem(Precomputed(), K, landmarks, random_state=0)
        assert_allclose(a.values, b.values, rtol=1e-8)
        Za, Zb = a.feature_map(kernel, X).transform(X), b.feature_map(Precomputed(), K).transform(K)
        assert_allclose((Za * a.signs) @ Za.T, (Zb * b.signs) @ Zb.T, atol=1e-8)

    def test_zero_kernel_and_bad_arguments(self):
        assert nystroem(Precomputed(), np.zeros((5, 5)), [0, 1]).values.size == 0
        with pytest.raises(ValueError, match="at least 1"):
            nystroem(Gaussian(1.0), rows(5), [0], oversampling=0.5)
        with pytest.raises(MemoryError, match="landmarks"), config_context(memory_limit=1000):
            nystroem(Gaussian(1.0), rows(500), np.arange(100))

    def test_norm_of_all_from_a_block(self):
        rng = np.random.default_rng(0)
        block = rng.normal(size=(12, 12))
        assert_allclose(_norm_of_all(block, 12), np.linalg.norm(block))
        same = np.full((30, 30), -2.0) + 5.0 * np.eye(30)  # every principal block tells all of it
        assert_allclose(_norm_of_all(same[:7, :7], 30), np.linalg.norm(same))
        assert_allclose(_norm_of_all(4.0 * np.eye(1), 30), 4.0 * np.sqrt(30))


class TestLandmarkMap:
    @pytest.mark.parametrize("kernel", [Gaussian(0.5), TL1(2.0)], ids=repr)
    def test_blocks_do_not_matter(self, kernel):
        X = rows(300)
        features = nystroem(kernel, X, np.arange(50), random_state=0).feature_map(kernel, X)
        expected = kernel(X, X[:50]) @ features.weights
        for limit in ("1kB", "200kB", "1GB"):
            with config_context(memory_limit=limit):
                assert_allclose(features.transform(X), expected, rtol=1e-10, atol=1e-12)
        assert_allclose(features(X[7:9]), expected[7:9], rtol=1e-10, atol=1e-12)

    def test_definite_kernels_have_positive_signs(self):
        X = rows(200)
        low_rank = nystroem(Gaussian(0.5), X, np.arange(20), random_state=0)
        assert np.all(low_rank.signs == 1)
        assert np.any(nystroem(TL1(2.0), X, np.arange(40), random_state=0).signs == -1)

    def test_predictions_are_features_times_coefficients(self):
        X, coef = rows(100), np.random.default_rng(1).normal(size=(15, 2))
        low_rank = nystroem(Gaussian(0.1), X, np.arange(15), random_state=0)
        features = low_rank.feature_map(Gaussian(0.1), X)
        predictions = features._replace(weights=features.weights @ coef)
        assert_allclose(predictions.transform(X), features.transform(X) @ coef, atol=1e-10)

    def test_dask_is_lazy_and_the_same(self):
        da = pytest.importorskip("dask.array")
        X = rows(200)
        chunked = da.from_array(X, chunks=(70, 4))
        whole = nystroem(TL1(2.0), X, np.arange(0, 200, 5), random_state=0).feature_map(TL1(2.0), X)
        features = nystroem(TL1(2.0), chunked, np.arange(0, 200, 5), random_state=0).feature_map(
            TL1(2.0), chunked
        )
        assert isinstance(features.landmarks, np.ndarray)
        Z = features.transform(chunked)
        assert isinstance(Z, da.Array) and Z.shape == (200, features.weights.shape[1])
        assert_allclose(np.asarray(Z.compute()), whole.transform(X), atol=1e-8)

    def test_objects_that_are_no_vectors(self):
        words = np.array(["a", "ab", "abc", "b", "bc", "c", "ac", "bca"], dtype=object)
        kernel = as_kernel(lambda a, b: len(set(a) & set(b)) - 0.5 * abs(len(a) - len(b)))
        features = LandmarkMap(kernel, words[:3], np.eye(3))
        assert_allclose(features.transform(list(words)), kernel(words, words[:3]))

    def test_pickle_holds_the_landmarks_only(self):
        X = rows(20_000)
        features = nystroem(Gaussian(0.5), X, np.arange(30), random_state=0).feature_map(
            Gaussian(0.5), X
        )
        stored = pickle.dumps(features)
        assert len(stored) < 30_000
        assert_array_equal(pickle.loads(stored).transform(X[:5]), features.transform(X[:5]))

    def test_memory_stays_within_the_limit(self):
        X = rows(4000)
        features = nystroem(Gaussian(0.5), X, np.arange(100), random_state=0).feature_map(
            Gaussian(0.5), X
        )
        tracemalloc.start()
        with config_context(memory_limit="500kB"):
            Z = features.transform(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak - Z.nbytes < 5e5  # the whole matrix of columns would be 3.2 MB


class TestLandmarks:
    @pytest.mark.parametrize("method", ["uniform", "kmeans", "pivoted"])
    @pytest.mark.parametrize("m", [1, 20, 60])
    def test_distinct_and_repeatable(self, method, m):
        X = rows(60)
        a = select_landmarks(Gaussian(0.3), X, m, method, random_state=0)
        assert len(set(a)) == m and a.min() >= 0 and a.max() < 60
        assert_array_equal(a, select_landmarks(Gaussian(0.3), X, m, method, random_state=0))

    def test_duplicates_are_topped_up(self):
        X = np.repeat(rows(3), 20, axis=0)
        assert len(set(select_landmarks(Gaussian(1.0), X, 10, "pivoted", random_state=0))) == 10

    def test_landmarks_of_means_are_the_nearest_rows(self, monkeypatch):
        """In blocks of rows or not: one landmark in each of six groups far apart."""
        centers = 100.0 * np.arange(6)[:, None]
        X = centers[np.arange(60) % 6] + np.random.RandomState(0).normal(size=(60, 2))
        whole = select_landmarks(Gaussian(1.0), X, 6, "kmeans", 0)
        assert_array_equal(np.sort(whole % 6), np.arange(6))
        blocks = lambda n, *_: [slice(i, min(i + 7, n)) for i in range(0, n, 7)]  # noqa: E731
        monkeypatch.setattr("mercerless.lowrank.row_blocks", blocks)
        assert_array_equal(select_landmarks(Gaussian(1.0), X, 6, "kmeans", 0), whole)

    def test_uniform_landmarks_are_nested(self):
        X = rows(60)
        more = select_landmarks(Gaussian(1.0), X, 30, random_state=0)
        assert_array_equal(select_landmarks(Gaussian(1.0), X, 10, random_state=0), more[:10])

    def test_bad_arguments(self):
        X = rows(10)
        with pytest.raises(ValueError, match="between 1 and"):
            select_landmarks(Gaussian(1.0), X, 11)
        with pytest.raises(ValueError, match="method="):
            select_landmarks(Gaussian(1.0), X, 2, "best")
        with pytest.raises(ValueError, match="need vectors"):
            select_landmarks(Precomputed(), np.eye(4), 2, "kmeans")
        words = np.array(["a", "b", "ab", "ba"], dtype=object)
        with pytest.raises(ValueError, match="k-means landmarks need vectors"):
            select_landmarks(PairFunction(lambda a, b: float(a == b)), words, 2, "kmeans")


def test_the_error_is_that_on_unused_rows():
    """Landmarks near zero say nothing about the rows far away, and the error tells."""
    rng = np.random.RandomState(0)
    X = rng.uniform(0, 30, size=(900, 1))
    kernel = Gaussian(0.3)
    found = nystroem(kernel, X, np.arange(40), random_state=0)
    features = found.feature_map(kernel, X).transform(X)
    K = kernel(X)
    error = np.linalg.norm(K - (features * found.signs) @ features.T) / np.linalg.norm(K)
    assert found.error == pytest.approx(error, rel=0.15)


def test_values_are_in_the_order_of_their_size():
    X = np.random.RandomState(0).normal(size=(50, 2))
    found = nystroem(Gaussian(0.4) - 1.5 * Gaussian(1.0), X, np.arange(25), random_state=0)
    assert np.all(np.diff(np.abs(found.values)) <= 0)
    assert set(found.signs) == {-1.0, 1.0}
    assert found.values[0] < 0


def test_entries_of_a_given_matrix_are_rows_by_columns():
    K = np.arange(20.0).reshape(4, 5)
    block = _entries(Precomputed(), K, np.array([0, 3]), np.array([4, 1]))
    assert_array_equal(block, [[4, 1], [19, 16]])


def test_nystroem_finds_that_a_function_is_not_symmetric_at_half_the_calls():
    X = np.linspace(0, 1, 60)[:, None]
    calls = []

    def distance(a, b):
        calls.append((a, b))
        return abs(a[0] - b[0])

    nystroem(PairFunction(distance), X, np.arange(10), random_state=0)
    n_spare = 30
    assert len(calls) <= 30 * 31 / 2 + n_spare * (n_spare + 1) / 2 + n_spare * 10 + 20
    with pytest.raises(ValueError, match="not symmetric"):
        nystroem(PairFunction(lambda a, b: a[0] - b[0]), X, np.arange(10), random_state=0)
