"""Spectra: decompositions, measures that know rounding, and transformers whose two paths are one."""

import numpy as np
import pytest
from conftest import frozen
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

from mercerless import KreinRidge, config_context
from mercerless.kernels import TL1, DeltaGauss, Gaussian
from mercerless.spectra import (
    DissimilarityKernel,
    SpectrumTransformer,
    asymmetry,
    check_kind,
    decompose,
    indefiniteness,
    matrix_kind,
    symmetrize,
)

MODES = ["clip", "flip", "square", "shift"]


class TestDecompose:
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
    def test_rebuilds_the_matrix(self, indefinite, scale):
        K = indefinite * scale
        spectrum = decompose(K)
        assert_allclose(
            (spectrum.vectors * spectrum.values) @ spectrum.vectors.T,
            K,
            atol=1e-12 * np.abs(K).max(),
        )
        assert_allclose(spectrum.vectors.T @ spectrum.vectors, np.eye(60), atol=1e-12)
        assert np.all(np.diff(spectrum.values) >= 0)
        assert sum(spectrum.inertia) == 60 and spectrum.inertia[1] > 10

    def test_rank_deficient(self):
        B = np.random.default_rng(0).normal(size=(20, 3))
        spectrum = decompose(B @ B.T - np.outer(B[:, 0], B[:, 0]) * 3)
        assert spectrum.inertia == (2, 1, 17)

    def test_zero_matrix_and_one_item(self):
        assert decompose(np.zeros((3, 3))).inertia == (0, 0, 3)
        assert decompose([[-2.0]]).inertia == (0, 1, 0)

    def test_input_is_untouched_and_checked(self, indefinite):
        before = indefinite.copy()
        decompose(indefinite)
        assert_array_equal(before, indefinite)
        with pytest.raises(ValueError, match="not symmetric"):
            decompose([[1.0, 2.0], [0.5, 1.0]])
        with pytest.raises(MemoryError, match="60 items needs"), config_context(memory_limit=1000):
            decompose(indefinite)


class TestIndefiniteness:
    def test_known_values(self):
        report = indefiniteness(np.diag([3.0, -1.0, 0.0]))
        assert (report.negative_mass, report.balance) == (0.25, 0.25)
        assert (report.n_positive, report.n_negative, report.n_zero) == (1, 1, 1)
        assert (report.smallest, report.largest, report.is_psd) == (-1.0, 3.0, False)

    def test_negative_definite_has_no_balance(self):
        report = indefiniteness(-np.eye(3))
        assert report.negative_mass == 1.0 and report.balance == 0.0

    def test_eigenvalues_do_as_well(self, indefinite):
        whole, values = indefiniteness(indefinite), indefiniteness(np.linalg.eigvalsh(indefinite))
        assert whole.negative_mass == pytest.approx(values.negative_mass, rel=1e-12)
        assert indefiniteness(indefinite, np.linalg.eigvalsh(indefinite)).noise == pytest.approx(
            whole.noise
        )

    @pytest.mark.parametrize("decimals", [4, 6, 8])
    def test_rounded_text_is_not_indefinite(self, decimals):
        K = Gaussian(1.0)(np.random.default_rng(0).normal(size=(150, 2)))
        rounded = np.round(K, decimals)
        assert np.linalg.eigvalsh(rounded)[0] < 0  # naive reading
        assert indefiniteness(rounded).is_psd

    @pytest.mark.parametrize("n", [10, 150])
    @pytest.mark.parametrize("size", [1.0, 1e3])
    @pytest.mark.parametrize("decimals", [3, 5])
    def test_rounded_distances_of_vectors_are_not_indefinite(self, decimals, size, n):
        """Euclidean distances written with some decimals; of squared ones, and of a part of the items, the same."""
        X = size * np.random.default_rng(0).normal(size=(n, 3))
        D = np.round(cdist(X, X), decimals)
        K = DissimilarityKernel().fit_transform(D)
        assert np.linalg.eigvalsh(K)[0] < -1e-9 * size**2  # naive reading
        report = indefiniteness(K)
        assert report.is_psd and report.n_positive == 3 and report.negative_mass == 0.0
        assert report.noise < 10 * -np.linalg.eigvalsh(K)[0]
        assert indefiniteness(K[: n // 2, : n // 2]).is_psd
        squares = DissimilarityKernel(power=1.0).fit_transform(np.round(cdist(X, X) ** 2, decimals))
        assert np.linalg.eigvalsh(squares)[0] < 0 and indefiniteness(squares).is_psd

    def test_rounded_distances_that_are_not_euclidean_stay_indefinite(self):
        X = np.random.default_rng(0).normal(size=(100, 4))
        exact = indefiniteness(DissimilarityKernel().fit_transform(cdist(X, X, "chebyshev")))
        D = np.round(cdist(X, X, "chebyshev"), 5)
        rounded = indefiniteness(DissimilarityKernel().fit_transform(D))
        assert not rounded.is_psd
        assert rounded.negative_mass == pytest.approx(exact.negative_mass, rel=1e-3)

    def test_float32_is_not_indefinite(self):
        K = Gaussian(1.0)(np.random.default_rng(0).normal(size=(150, 2)))
        single = ((K + K.T) / 2).astype(np.float32)
        assert np.linalg.eigvalsh(single.astype(float))[0] < -1e-9
        assert indefiniteness(single).is_psd

    def test_coarse_values_are_meant(self):
        K = np.array([[1.0, 0.75, 0.0], [0.75, 1.0, 0.75], [0.0, 0.75, 1.0]])
        assert not indefiniteness(K).is_psd

    def test_clear_negative_part_survives_rounding(self):
        K = TL1(5.0)(np.random.default_rng(0).normal(size=(100, 4)))
        assert not indefiniteness(np.round(K, 4)).is_psd

    def test_zero_matrix(self):
        report = indefiniteness(np.zeros((4, 4)))
        assert report.is_psd and report.negative_mass == 0.0 and report.n_zero == 4


class TestAsymmetry:
    def test_measures(self):
        assert asymmetry(np.eye(3)) == (0.0, 0.0, 0.0)
        assert asymmetry([[0.0, 1.0], [-1.0, 0.0]]) == (2.0, 1.0, 1.0)
        assert asymmetry([[5.0]]) == (0.0, 0.0, 0.0)
        assert asymmetry(np.zeros((2, 2))).norm == 0.0

    def test_symmetrize_training_and_new_rows_alike(self):
        A = np.random.default_rng(0).normal(size=(8, 8))
        for how in ("mean", "min", "max"):
            whole = symmetrize(A, how=how)
            assert_array_equal(whole, whole.T)
            assert_array_equal(symmetrize(A[5:, :5], A[:5, 5:], how=how), whole[5:, :5])

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="how="):
            symmetrize(np.eye(2), how="sum")
        with pytest.raises(ValueError, match="must agree"):
            symmetrize(np.ones((2, 3)), np.ones((2, 3)))
        with pytest.raises(ValueError, match="square"):
            symmetrize(np.ones((2, 3)))


class TestSpectrumTransformer:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_training_path_equals_test_path(self, indefinite, mode, scale):
        K = indefinite * scale
        transformer = SpectrumTransformer(mode)
        whole = transformer.fit_transform(K)
        tolerance = 1e-10 * np.abs(whole).max()
        assert_allclose(transformer.transform(K), whole, rtol=0, atol=tolerance)
        for i in (0, 17, 59):  # one at a time: no dependence on the batch
            assert_allclose(
                transformer.transform(K[i : i + 1])[0], whole[i], rtol=0, atol=tolerance
            )

    @pytest.mark.parametrize("mode", MODES)
    def test_definite_and_equal_to_the_textbook(self, indefinite, mode):
        s, V = np.linalg.eigh(indefinite)
        t = {"clip": np.maximum(s, 0), "flip": np.abs(s), "square": s**2, "shift": s - s.min()}[
            mode
        ]
        out = SpectrumTransformer(mode).fit_transform(indefinite)
        assert_allclose(out, (V * t) @ V.T, atol=1e-10 * np.abs(t).max())
        assert np.linalg.eigvalsh(out)[0] > -1e-10 * np.abs(t).max()

    @pytest.mark.parametrize("mode", MODES)
    def test_definite_matrix_is_left_alone(self, vectors, mode):
        K = Gaussian(2.0)(vectors)
        expected = K @ K if mode == "square" else K
        assert_allclose(SpectrumTransformer(mode).fit_transform(K), expected, atol=1e-10)

    def test_shift_is_spread_over_duplicates(self, indefinite):
        index = np.r_[0:20, 0, 0, 5]
        K = indefinite[np.ix_(index, index)]
        model = SpectrumTransformer("shift").fit(K)
        same = index[:, None] == index
        assert model.shift_ > 0
        assert_allclose(model.transform(K) - K, model.shift_ * same / same.sum(axis=1), atol=1e-12)

    def test_truncation_leaves_large_eigenvalues_of_both_signs(self, indefinite):
        """The regularization of Ong et al. (2004), and its machine: least squares in what is left."""
        s, V = np.linalg.eigh(indefinite)
        keep = np.abs(s) > 0.2 * np.abs(s).max()
        assert np.any(s[keep] < 0) and np.any(s[keep] > 0) and not np.all(keep)
        model = SpectrumTransformer("truncate", rtol=0.2).fit(indefinite)
        out = model.transform(indefinite)
        assert_allclose(out, (V[:, keep] * s[keep]) @ V[:, keep].T, atol=1e-10)
        assert_allclose(model.transform(indefinite[3:5]), out[3:5], atol=1e-10)
        assert_allclose(
            SpectrumTransformer("truncate").fit_transform(indefinite), indefinite, atol=1e-10
        )
        y = np.arange(len(indefinite), dtype=float)
        machine = KreinRidge("precomputed", alpha_positive=0, alpha_negative=0, fit_intercept=False)
        machine.fit(out, y)
        inverse = np.linalg.pinv(indefinite, rcond=0.2, hermitian=True)
        assert_allclose(machine.predict(out), indefinite @ inverse @ y, rtol=1e-8, atol=1e-8)
        assert_allclose(machine.dual_coef_[0], inverse @ y, rtol=1e-8, atol=1e-8)
        with pytest.raises(ValueError, match="rtol"):
            SpectrumTransformer("truncate", rtol=-0.1).fit(indefinite)

    @pytest.mark.parametrize("mode", MODES)
    def test_duplicates(self, indefinite, mode):
        index = np.r_[0:20, 0, 0, 5]
        K = indefinite[np.ix_(index, index)]
        out = SpectrumTransformer(mode).fit_transform(K)
        assert_allclose(out, out.T, atol=1e-9)
        assert_allclose(out[0], out[20], atol=1e-9)
        assert np.linalg.eigvalsh(out)[0] > -1e-9 * np.abs(out).max()

    def test_shift_of_matrices_symmetric_up_to_rounding(self):
        points = np.random.default_rng(1).normal(size=(80, 3))
        D = cdist(points, points, "cityblock") ** 1.5
        centered = DissimilarityKernel().fit_transform(D)
        noise = 1e-15 * np.random.default_rng(2).normal(size=D.shape)
        matrices = {
            "centered": centered,
            "delta-gauss": DeltaGauss()(points),
            "noise": TL1(2.0)(points) * (1.0 + noise),
            "float32": (centered + 1e-7 * noise / 1e-15).astype(np.float32),
            "large": 1e9 * centered,
            "near the bound": centered * (1.0 + 1e6 * noise),
        }
        order = np.random.default_rng(3).permutation(80)
        for name, K in matrices.items():
            assert np.any(K != K.T), name
            model = SpectrumTransformer("shift").fit(K)
            out = model.transform(K)
            scale = np.abs(K).max()
            tiny = (
                1e-5 if name == "float32" else 1e-7 if name == "near the bound" else 1e-12
            ) * scale
            assert model.shift_ > 1e-3 * scale, name
            assert_allclose(out - K, model.shift_ * np.eye(80), rtol=1e-5, atol=tiny, err_msg=name)
            assert np.linalg.eigvalsh((out + out.T) / 2.0)[0] >= -20 * tiny, name
            assert_array_equal(model.transform(K[order]), out[order], err_msg=name)

    def test_shift_of_rows_computed_again(self, indefinite):
        model = SpectrumTransformer("shift").fit(indefinite)
        shifted = indefinite + model.shift_ * np.eye(60)
        scale = np.abs(indefinite).max()
        again = indefinite + 1e-14 * scale
        assert_allclose(model.transform(again), shifted, rtol=0, atol=1e-13 * scale)
        single = indefinite.astype(np.float32)
        assert_allclose(model.transform(single), shifted, rtol=1e-6, atol=1e-6 * scale)
        in_float32 = SpectrumTransformer("shift").fit(single)
        assert_allclose(in_float32.transform(indefinite), shifted, rtol=1e-5, atol=1e-5 * scale)

    def test_shift_leaves_new_rows_alone(self, indefinite):
        train, new = indefinite[:50, :50], indefinite[50:, :50]
        model = SpectrumTransformer("shift").fit(train)
        assert_array_equal(model.transform(new), new)
        # one entry makes another item, also if the projections of both rows are close
        other = train.copy()
        other[:, 7] += 1e-11 * np.abs(train).max()
        assert_array_equal(model.transform(other), other)
        assert_array_equal(model.transform(train[[3]] + 0.0)[0] != train[3], np.arange(50) == 3)

    def test_shift_keeps_no_view_of_the_matrix(self, indefinite):
        K = indefinite.copy()
        model = SpectrumTransformer("shift").fit(K)
        before = model.transform(indefinite)
        K *= 3.0
        assert_array_equal(model.transform(indefinite), before)

    def test_attributes_of_an_earlier_mode_do_not_stay(self, indefinite):
        for mode in MODES:
            model = SpectrumTransformer("shift").fit(indefinite)
            model.set_params(mode=mode).fit(indefinite[:20, :20])
            fresh = SpectrumTransformer(mode).fit(indefinite[:20, :20])
            assert vars(model).keys() == vars(fresh).keys()
            for name, value in vars(fresh).items():
                assert_array_equal(getattr(model, name), value, err_msg=name)

    @pytest.mark.parametrize("mode", MODES)
    def test_pipeline_in_cross_validation_equals_by_hand(self, mode):
        X, first = np.unique(load_iris().data, axis=0, return_index=True)
        y, K = load_iris().target[first], TL1(1.5)(X)
        folds = KFold(5, shuffle=True, random_state=0)
        pipeline = make_pipeline(SpectrumTransformer(mode), SVC(kernel="precomputed"))
        predicted = cross_val_predict(pipeline, K, y, cv=folds)
        by_hand = np.empty_like(y)
        for train, test in folds.split(K):
            K_train, K_test = K[np.ix_(train, train)], K[np.ix_(test, train)]
            s, V = np.linalg.eigh(K_train)
            if mode == "shift":
                K_train = K_train - s.min() * np.eye(len(train))
            else:
                P = (V * {"clip": s > 0, "flip": np.sign(s), "square": s}[mode]) @ V.T
                K_train, K_test = K_train @ P, K_test @ P
            by_hand[test] = SVC(kernel="precomputed").fit(K_train, y[train]).predict(K_test)
        assert_array_equal(predicted, by_hand)

    def test_grid_search(self):
        X, y = load_iris(return_X_y=True)
        pipeline = make_pipeline(SpectrumTransformer(), KernelCenterer(), SVC(kernel="precomputed"))
        search = GridSearchCV(pipeline, {"spectrumtransformer__mode": MODES}, cv=3).fit(
            TL1(2.0)(X), y
        )
        assert search.best_score_ > 0.9

    def test_float32(self, indefinite):
        for mode in MODES:
            assert (
                SpectrumTransformer(mode).fit_transform(indefinite.astype(np.float32)).dtype
                == np.float32
            )

    def test_bad_input(self, indefinite):
        with pytest.raises(ValueError, match="mode="):
            SpectrumTransformer("cut").fit(indefinite)
        with pytest.raises(ValueError, match="not symmetric"):
            SpectrumTransformer().fit([[1.0, 2.0], [0.5, 1.0]])
        with pytest.raises(ValueError, match="square"):
            SpectrumTransformer().fit(np.ones((2, 3)))
        with pytest.raises(ValueError, match="60 "):
            SpectrumTransformer().fit(indefinite).transform(np.ones((2, 3)))

    def test_one_item_and_zero_matrix(self):
        for mode in MODES:
            assert SpectrumTransformer(mode).fit_transform([[-2.0]])[0, 0] >= 0
            assert_array_equal(SpectrumTransformer(mode).fit_transform(np.zeros((3, 3))), 0)


class TestDissimilarityKernel:
    def test_euclidean_distances_give_inner_products(self, vectors):
        D = euclidean_distances(vectors)
        centered = vectors - vectors.mean(axis=0)
        assert_allclose(DissimilarityKernel().fit_transform(D), centered @ centered.T, atol=1e-10)

    def test_new_rows_are_consistent(self, vectors):
        D = euclidean_distances(vectors)
        train, test = slice(0, 30), slice(30, 40)
        transformer = DissimilarityKernel().fit(D[train, train])
        mean = vectors[train].mean(axis=0)
        expected = (vectors[test] - mean) @ (vectors[train] - mean).T
        new = transformer.transform(D[test, train])
        # the row's own mean is taken over training items, so rows differ from the truth by a constant only
        assert_allclose(
            new - new.mean(axis=1, keepdims=True),
            expected - expected.mean(axis=1, keepdims=True),
            atol=1e-10,
        )
        assert_allclose(
            transformer.transform(D[train, train]),
            transformer.fit_transform(D[train, train]),
            atol=1e-12,
        )
        assert_allclose(
            transformer.transform(D[3:4, train])[0],
            transformer.fit_transform(D[train, train])[3],
            atol=1e-10,
        )

    def test_exponential(self, vectors):
        D = euclidean_distances(vectors)
        assert_allclose(
            DissimilarityKernel("exponential", gamma=0.5).fit_transform(D),
            Gaussian(1.0)(vectors),
            atol=1e-10,
        )
        by_median = DissimilarityKernel("exponential", power=1.0).fit(D)
        assert by_median.gamma_ == pytest.approx(1 / np.median(D[np.triu_indices(40, 1)]))

    def test_in_a_pipeline(self):
        X, y = load_iris(return_X_y=True)
        D = euclidean_distances(X) ** 1.5
        model = make_pipeline(
            DissimilarityKernel(), SpectrumTransformer("flip"), SVC(kernel="precomputed")
        )
        assert cross_val_score(clone(model), D, y, cv=5).mean() > 0.9

    def test_bad_input(self):
        with pytest.raises(ValueError, match="cannot be below 0"):
            DissimilarityKernel().fit([[0.0, -1.0], [-1.0, 0.0]])
        with pytest.raises(ValueError, match="method="):
            DissimilarityKernel("cosine").fit(np.zeros((2, 2)))
        with pytest.raises(ValueError, match=r"gamma=-1\.0 must be a positive number"):
            DissimilarityKernel("exponential", gamma=-1.0).fit(np.zeros((2, 2)))
        with pytest.raises(ValueError, match="not symmetric"):
            DissimilarityKernel().fit([[0.0, 2.0], [1.0, 0.0]])

    def test_all_distances_zero(self):
        assert_array_equal(DissimilarityKernel("exponential").fit_transform(np.zeros((3, 3))), 1.0)
        assert_array_equal(DissimilarityKernel().fit_transform(np.zeros((1, 1))), 0.0)


def test_shift_knows_training_rows_in_either_precision():
    K = np.random.default_rng(0).integers(-5, 6, size=(12, 12)).astype(float)
    K = K + K.T
    for first, second in ((np.float64, np.float32), (np.float32, np.float64)):
        fitted = SpectrumTransformer("shift").fit(K.astype(first))
        assert_allclose(
            fitted.transform(K.astype(second)), K + fitted.shift_ * np.eye(12), rtol=1e-6
        )


class TestMatrixKind:
    """One rule for similarities, distances and dissimilarities."""

    points = frozen(np.random.default_rng(0).normal(size=(60, 4)))

    @pytest.mark.parametrize(
        "metric", ["euclidean", "sqeuclidean", "cityblock", "cosine", "canberra"]
    )
    @pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
    def test_distances(self, metric, scale):
        points = self.points
        D = scale * cdist(points, points, metric)
        assert matrix_kind(D)[::2] == ("distance", True)
        assert matrix_kind(D.astype(np.float32)).kind == "distance"
        assert matrix_kind(-D).kind == "similarity"
        assert matrix_kind(D.max() - D).kind == "similarity"
        lopsided = D * np.linspace(1, 1.5, 60)
        assert matrix_kind(lopsided).kind == "distance"
        touched = D + scale * 1e-7 * np.eye(60)
        assert matrix_kind(touched).kind == "distance"
        touched = D - 1e-15 * D.max()
        assert matrix_kind(touched).kind == "distance"

    def test_kernels_with_and_without_their_diagonal(self):
        points = self.points
        for K in (points @ points.T, np.exp(-cdist(points, points)), np.tanh(points @ points.T)):
            assert matrix_kind(K).kind == "similarity"
            empty = K - np.diag(np.diagonal(K))
            assert matrix_kind(empty).kind == "similarity", "only the diagonal is missing"
            assert matrix_kind(-K).kind == "dissimilarity"

    def test_graphs(self):
        rng = np.random.default_rng(1)
        blocks = np.repeat([0, 1], 40)
        # also none and bipartite
        for inside, outside in ((0.2, 0.02), (0.1, 0.1), (0.02, 0.2), (0.9, 0.4)):
            A = np.triu(
                rng.uniform(size=(80, 80)) < np.where(blocks[:, None] == blocks, inside, outside), 1
            )
            assert matrix_kind((A + A.T).astype(float)).kind == "similarity"
            assert matrix_kind(A.astype(float)).kind == "similarity"
        big = np.zeros((1500, 1500))  # a sample of 500 items sees hardly an edge
        i, j = rng.integers(0, 1500, size=(2, 4000))
        big[i, j] = big[j, i] = 1.0
        np.fill_diagonal(big, 0.0)
        assert matrix_kind(big).kind == "similarity"

    def test_equal_items_are_no_graph(self):
        labels = np.repeat([0, 1, 2], [50, 20, 10])
        D = (labels[:, None] != labels).astype(float)  # more than half of it is zero
        assert matrix_kind(D).kind == "distance"
        assert matrix_kind(1.0 - np.eye(30)).kind == "distance"

    def test_dissimilarities(self):
        points = self.points
        squares = cdist(points, points, "sqeuclidean")
        own = np.linspace(1, 2, 60)
        assert matrix_kind(squares - own[:, None] - own)[::2] == ("dissimilarity", True)
        assert matrix_kind(cdist(points, points) + 0.5)[::2] == ("dissimilarity", True)

    def test_contradictions_are_not_guessed(self):
        points = self.points
        D = cdist(points, points)
        np.fill_diagonal(D, D.max())
        found = matrix_kind(D)
        assert found.kind is None and not found.certain
        with pytest.raises(
            ValueError, match="say which with kind='similarity', 'distance' or 'dissimilarity'"
        ):
            check_kind(D, "auto", "K")
        with pytest.raises(ValueError, match="kind='table' is not known; use 'auto', 'similarity'"):
            check_kind(D, "table", "K")

    def test_directed_similarities_with_a_diagonal_of_both_signs_are_not_refused(self):
        kinds = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            X, W = rng.normal(size=(60, 6)), np.roll(np.eye(6), 1, axis=0)
            K = np.tanh(X @ (W + 0.3 * rng.normal(size=(6, 6))) @ X.T)
            kinds.append(matrix_kind(K).kind)
            assert matrix_kind(K.T).kind == kinds[-1]
        assert kinds == ["similarity"] * 40  # 16 were taken for dissimilarities

    def test_a_fifth_of_asymmetry_makes_a_matrix_directed(self):
        rng = np.random.default_rng(0)
        A, B = rng.normal(size=(2, 60, 4))
        K, skew = (A * [1, 1, -1, -1]) @ A.T, A @ B.T - B @ A.T
        for share, is_directed in ((0.1, False), (0.18, False), (0.25, True), (0.35, True)):
            low, high = 0.0, 1.0
            for _ in range(40):  # bisection
                middle = (low + high) / 2
                low, high = (
                    (middle, high) if asymmetry(K + middle * skew).norm < share else (low, middle)
                )
            said = matrix_kind(K + low * skew).reason
            assert said.startswith("the directions differ") == is_directed

    def test_directed_dissimilarities_stay_what_they_are(self):
        rng = np.random.default_rng(4)
        height = rng.normal(size=60)
        D = cdist(self.points, self.points) + np.maximum(0.0, height[:, None] - height)
        for noise in (0.0, 0.3, 1.0):
            # the diagonal has both signs, but below the other entries
            noisy = D + noise * rng.normal(size=D.shape)
            assert matrix_kind(noisy).kind == ("dissimilarity" if noise else "distance")
        scaled = D * np.exp(rng.normal(size=D.shape))
        assert matrix_kind(scaled - scaled.mean(axis=1, keepdims=True)).kind == "dissimilarity"

    def test_noise_and_nothing(self):
        rng = np.random.default_rng(2)
        for _ in range(20):
            G = rng.normal(size=(40, 40))
            assert matrix_kind(G + G.T).kind == "similarity"
        assert matrix_kind(np.zeros((5, 5))).kind == "similarity"
        assert matrix_kind(np.ones((5, 5))).kind == "similarity"
        assert matrix_kind([[3.0]]).kind == "similarity"
        assert matrix_kind([[0.0, 1.0], [1.0, 0.0]])[::2] == ("distance", False)

    def test_order_scale_and_direction_do_not_matter(self):
        points = self.points
        rng = np.random.default_rng(3)
        order = rng.permutation(60)
        for K in (cdist(points, points), points @ points.T, -points @ points.T):
            found = matrix_kind(K)
            assert matrix_kind(K[np.ix_(order, order)]) == found
            assert matrix_kind(1e-200 * K) == found == matrix_kind(1e100 * K)
            assert matrix_kind(K.T) == found
