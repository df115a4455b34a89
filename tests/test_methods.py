"""Properties that all methods share: weights are repetitions, held-out rows stay held out, order does not matter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone, is_classifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from mercerless import (
    AsymmetricRidge,
    AsymmetricRidgeClassifier,
    DANKClassifier,
    DANKRegressor,
    GradientSearch,
    HyperRegressor,
    HyperRidge,
    KreinEmbedding,
    KreinRidge,
    KreinRidgeClassifier,
    KreinSVC,
    KreinSVR,
    SimilarityClassifier,
    Sphere,
)
from mercerless.asymmetric.selection import best_shares, choose_asymmetric_ridge
from mercerless.core.basis import make_basis
from mercerless.core.copies import merge_copies
from mercerless.core.descent import minimize_with_restarts, smallest_of_grid
from mercerless.core.estimator import pair_votes
from mercerless.core.folds import assign_folds, cv_of_rows, fold_numbers, hold_out, splits_of
from mercerless.core.scaling import possible_scalings, robust_scaling, standard_scaling
from mercerless.dank.selection import HeldOut, Tuned, _prior, held_out_losses
from mercerless.hyper.machine import KernelStage, Numbers
from mercerless.hyper.selection import PairTarget, _folded_sample
from mercerless.inspection.maps import kept_neighbors, likeness_order, principal_plane
from mercerless.kernels import TL1, DeltaGauss, Gaussian, GaussianHyper, PairFunction
from mercerless.krein.selection import Family, ValidationObjective, make_candidates
from mercerless.lowrank import Landmarks
from mercerless.spectra import (
    DissimilarityKernel,
    SpectrumTransformer,
    asymmetry,
    decompose,
    indefiniteness,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(36, 3))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * RNG.normal(size=36)
LABELS = np.digitize(Y, np.quantile(Y, [1 / 3, 2 / 3]))
# an asymmetric similarity whose two directions both matter
DIRECTED = rbf_kernel(X, X, gamma=0.3) * np.exp(0.5 * X[:, 1]) + 0.3 * RNG.normal(size=(36, 36))


SYMMETRIC_READERS = {
    "decompose": decompose,
    "indefiniteness": indefiniteness,
    "SpectrumTransformer": lambda K: SpectrumTransformer("clip").fit(K),
    "shift": lambda K: SpectrumTransformer("shift").fit(K),
    "DissimilarityKernel": lambda K: DissimilarityKernel().fit(K),
    "KreinRidge": lambda K: KreinRidge("precomputed", random_state=0).fit(K, Y),
    "KreinSVC": lambda K: KreinSVC("precomputed").fit(K, LABELS),
    "KreinSVR": lambda K: KreinSVR("precomputed").fit(K, Y),
    "KreinEmbedding": lambda K: KreinEmbedding("precomputed").fit(K),
}


class TestRoundingIsNotDirection:
    """Asymmetry is averaged away if it is rounding, and an error if it is more."""

    @pytest.mark.parametrize("name", SYMMETRIC_READERS)
    @pytest.mark.parametrize("dtype, noise, direction", [
        (np.float64, 1e-10, 1e-6), (np.float32, 1e-6, 1e-3)
    ])  # fmt: skip
    def test_the_bound(self, name, dtype, noise, direction):
        D = 12.0 - cdist(X, X, "cityblock")
        # one pair only, in the last rows, below the diagonal
        for size, fails in ((noise, False), (direction, True)):
            K = D.copy()
            K[-1, -2] += size * D.max()
            K = K.astype(dtype)
            if fails:
                with pytest.raises(ValueError, match="not symmetric"):
                    SYMMETRIC_READERS[name](K)
            else:
                SYMMETRIC_READERS[name](K)

    def test_the_symmetric_part_is_what_counts(self):
        K = cdist(X, X, "cityblock")
        noisy = K + 1e-10 * K.max() * np.triu(RNG.normal(size=K.shape), 1)
        mean = (noisy + noisy.T) / 2.0
        assert_allclose(
            decompose(noisy).values, np.linalg.eigvalsh(mean), rtol=0, atol=1e-13 * K.max() * 36
        )

    def test_a_matrix_in_blocks(self, monkeypatch):
        """The asymmetry of the first block of rows is not forgotten."""
        blocks = [slice(0, 3), slice(3, 36)]
        monkeypatch.setattr("mercerless.core.validation.row_blocks", lambda *_: blocks)
        for i, j in ((1, 0), (20, 1), (35, 34)):
            K = np.eye(36)
            K[i, j] = 0.25
            assert asymmetry(K).largest == 0.25

    def test_a_directed_function_is_not_noise(self):
        def directed(a, b):
            return float(a @ b + (a[0] - b[0]))

        model = SimilarityClassifier(PairFunction(directed), landmarks=Landmarks(12))
        with pytest.raises(ValueError, match="not symmetric"):
            model.fit(X, LABELS)


class TestPairVotes:
    def test_ties_are_broken_by_the_sums_of_scores(self):
        # 0 beats 1, 1 beats 2, 2 beats 0: one vote each
        circle = np.array([[-1.0, 1.0, -1.0]])
        assert_array_equal(np.floor(pair_votes(circle, 3) + 0.5), [[1, 1, 1]])
        for winner, scores in enumerate(([-9, 1, -1], [-1, 1, -9], [-1, 9, -1])):
            votes = pair_votes(np.array([scores], dtype=float), 3)
            assert votes.argmax() == winner

    def test_sums_never_outvote_a_vote(self):
        # class 2 wins both of its pairs narrowly, class 0 its only one by far
        votes = pair_votes(np.array([[-1e9, 1e-9, 1e-9]]), 3)
        assert votes.argmax() == 2

    def test_every_pair_has_one_vote_also_at_zero(self):
        for scores in (np.zeros((1, 6)), np.ones((1, 6)), RNG.normal(size=(1, 6))):
            assert_allclose(np.round(pair_votes(scores, 4)).sum(), 6)

    def test_machines_use_it(self):
        angle = 2.0 * np.pi * np.arange(3) / 3.0
        points = np.repeat(np.column_stack([np.cos(angle), np.sin(angle)]), 4, axis=0)
        y = np.repeat(np.arange(3), 4)
        model = KreinSVC("linear", decision_function_shape="ovo").fit(points, y)
        middle = 1e-9 * points[::4]
        scores = -model.decision_function(middle)
        assert_array_equal(model.predict(middle), pair_votes(scores, 3).argmax(axis=1))


class TestFoldsOfSomeRows:
    def test_rows_keep_their_own_folds(self):
        fold_of = np.arange(36) % 4
        rows = np.array([35, 3, 8, 9, 22, 14, 30])
        parts = cv_of_rows(splits_of(fold_of), rows, 36)
        held = np.empty(len(rows), dtype=int)
        for train, test in parts:
            assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(rows)))
            held[test] = fold_of[rows[test]]
            assert not set(fold_of[rows[train]]) & set(fold_of[rows[test]])
        assert_array_equal(held, fold_of[rows])
        assert cv_of_rows(7, rows, 36) == 7

    def test_a_sample_of_pairs_is_in_the_order_of_its_folds(self):
        fold_of = np.arange(36) // 12
        target = PairTarget("gaussian", np.arange(36.0))
        random = np.random.RandomState(0)
        items = np.arange(36.0)[:, None]
        sample, taken, folds = _folded_sample(items, target, 20, splits_of(fold_of), random)
        assert_array_equal(sample[:, 0], taken.values)
        assert len(set(sample[:, 0])) == 20
        for fold in folds:
            assert len(set(fold_of[sample[fold, 0].astype(int)])) == 1

    @pytest.mark.parametrize("seed", range(3))
    def test_rows_without_weight_do_not_move_groups_or_copies(self, seed):
        random = np.random.RandomState(seed)
        groups = random.randint(9, size=36)
        items = X.copy()
        items[30] = items[2]
        items[31] = items[17]
        used = np.sort(random.permutation(36)[:25])
        whole = fold_numbers(3, items, groups=groups, used=used, random_state=seed)
        part = fold_numbers(3, items[used], groups=groups[used], random_state=seed)
        assert_array_equal(whole, part)
        for number in np.unique(groups[used]):
            assert len(set(whole[groups[used] == number])) == 1
        copied = fold_numbers(3, items, used=np.r_[2, 5:31], random_state=seed)
        assert copied[0] == copied[-1]

    def test_a_hold_out_has_every_class_also_with_copies(self):
        """Copies shift positions of items against those of labels."""
        rows = np.repeat(np.arange(12), 3)
        y = np.repeat([0, 1, 2], 12)
        items = np.arange(12.0)[rows, None]
        for seed in range(5):
            train, held = hold_out(0.25, items, y, classify=True, random_state=seed)
            assert not set(rows[train]) & set(rows[held])
            assert_array_equal(np.bincount(y[held], minlength=3), [3, 3, 3])

    def test_sizes_of_single_items_fill_up_after_sets(self):
        sets = np.r_[np.zeros(6, dtype=int), np.arange(1, 31)]
        fold_of = assign_folds(3, 36, together=sets, random_state=0)
        assert_array_equal(np.bincount(fold_of), [12, 12, 12])


@pytest.mark.slow
def test_fit_on_the_command_line_keeps_groups_whole(tmp_path, monkeypatch):
    """Members of a group are near and share a label; held out together, three of four are predicted."""
    pytest.importorskip("skops")
    from mercerless.cli import main
    from mercerless.commands import fit

    monkeypatch.chdir(tmp_path)
    random = np.random.RandomState(1)
    groups = np.repeat(np.arange(40), 2)
    centers = random.normal(size=(40, 2))
    side = (centers[:, 0] > 0).astype(int)
    labels = np.where(random.uniform(size=40) < 0.75, side, 1 - side)[groups]
    points = centers[groups] + 1e-3 * random.normal(size=(80, 2))
    order = random.permutation(80)
    points, labels, groups = points[order], labels[order], groups[order]
    np.savez("train.npz", D=cdist(points, points), y=labels)
    np.savetxt("groups.csv", groups, fmt="g%d")
    searches = []

    def remember(estimator):
        searches.append(estimator)
        return estimator.best_estimator_

    monkeypatch.setattr(fit, "without_search", remember)
    assert main(["fit", "train.npz", "--learner", "neighbors", "--groups", "none"]) == 0
    assert main(["fit", "train.npz", "--learner", "neighbors", "--groups", "groups.csv"]) == 0
    assert searches[0].best_score_ > 0.9
    assert searches[1].best_score_ < 0.85
    for train, test in searches[1].cv:
        assert not set(groups[train]) & set(groups[test])


class TestZeroWeightIsNoRow:
    weight = np.ones(36)
    weight[[0, 5, 6, 20, 35]] = 0.0
    used = np.flatnonzero(weight)
    new = 0.9 * DIRECTED[:9] + 0.05
    back = 1.1 * DIRECTED[:, :9].T - 0.02

    def pair(self, model, y):
        whole = clone(model).fit(DIRECTED, y, sample_weight=self.weight)
        part = clone(model).fit(DIRECTED[np.ix_(self.used, self.used)], y[self.used])
        return whole, part

    @pytest.mark.parametrize("side", ["left", "right", "mean", "auto"])
    def test_regression_in_both_directions(self, side):
        model = AsymmetricRidge("precomputed", kind="similarity", side=side)
        whole, part = self.pair(model, Y)
        assert_allclose(
            whole.predict(self.new, reverse=self.back),
            part.predict(self.new[:, self.used], reverse=self.back[:, self.used]),
            rtol=1e-8,
        )
        assert_array_equal(whole.out_of_fold_.rows, self.used)
        assert_allclose(whole.out_of_fold_.prediction, part.out_of_fold_.prediction, rtol=1e-8)
        if side == "left":
            return
        with pytest.warns(UserWarning, match="left regressor"):
            one_way = whole.predict(self.new)
        with pytest.warns(UserWarning, match="left regressor"):
            expected = part.predict(self.new[:, self.used])
        assert_allclose(one_way, expected, rtol=1e-8)

    def test_classification_and_reasons_in_both_directions(self):
        model = AsymmetricRidgeClassifier("precomputed", kind="similarity", side="mean")
        whole, part = self.pair(model, LABELS)
        rows = {"reverse": self.back}
        rows_of_part = {"reverse": self.back[:, self.used]}
        assert_allclose(
            whole.predict_proba(self.new, **rows),
            part.predict_proba(self.new[:, self.used], **rows_of_part),
            rtol=1e-8,
        )
        inner = DIRECTED[np.ix_(self.used, self.used)]
        reasons = whole.explain(self.new, train=DIRECTED, **rows)
        expected = part.explain(self.new[:, self.used], train=inner, **rows_of_part)
        for name in ("score", "base", "shares", "rest"):
            assert_allclose(getattr(reasons, name), getattr(expected, name), rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize(
        "model",
        [
            KreinRidge("precomputed", cv=3, random_state=0),
            KreinRidge("precomputed", constraint=Sphere(), cv=3, random_state=0),
            KreinRidge("precomputed", landmarks=10, cv=3, random_state=0),
            KreinSVR("precomputed"),
        ],
    )
    def test_krein_models(self, model):
        K = TL1(3.0)(X)
        whole = clone(model).fit(K, Y, sample_weight=self.weight)
        part = clone(model).fit(K[np.ix_(self.used, self.used)], Y[self.used])
        assert_allclose(whole.predict(K), part.predict(K[:, self.used]), rtol=1e-7, atol=1e-9)
        held = getattr(whole, "out_of_fold_", None)
        if held is not None:
            assert_array_equal(held.rows, self.used[part.out_of_fold_.rows])
            assert_allclose(held.target, Y[held.rows].reshape(held.target.shape))
            assert_allclose(held.prediction, part.out_of_fold_.prediction, rtol=1e-7, atol=1e-9)

    @pytest.mark.parametrize("n_parts", [1, 3])
    @pytest.mark.parametrize("loss", ["classes", "numbers"])
    def test_dank_in_parts(self, n_parts, loss):
        options = {"n_parts": n_parts, "C": 5.0, "tol": 1e-8, "random_state": 0}
        model = DANKClassifier(**options) if loss == "classes" else DANKRegressor(**options)
        y = (Y > np.median(Y)) if loss == "classes" else Y
        kernel = Gaussian(1.0)
        whole = clone(model).set_params(kernel=kernel).fit(X, y, sample_weight=self.weight)
        part = clone(model).set_params(kernel=kernel).fit(X[self.used], y[self.used])
        method = "decision_function" if loss == "classes" else "predict"
        found, expected = (getattr(each, method)(X + 0.1) for each in (whole, part))
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert_array_equal(whole.support_, self.used[part.support_])


class TestWeightsAreRepetitions:
    weight = np.random.default_rng(3).integers(1, 4, 36)
    repeated = np.repeat(np.arange(36), weight)
    folds = np.arange(36) % 3

    def pair(self, model, y):
        first = clone(model).set_params(cv=splits_of(self.folds))
        second = clone(model).set_params(cv=splits_of(self.folds[self.repeated]))
        first.fit(X, y, sample_weight=self.weight)
        second.fit(X[self.repeated], y[self.repeated])
        return first, second

    def test_targets_are_scaled_by_their_weighted_deviation(self):
        """The search for a radius starts and is bounded in units of the targets' deviation."""
        candidates = make_candidates(None, None, Sphere(), "components")
        family = Family("components", "sphere", True)
        target = np.exp(2.0 * Y)[:, None]
        rows = {}
        for name, index, weight in (
            ("weights", np.arange(36), self.weight.astype(float)),
            ("copies", self.repeated, np.ones(len(self.repeated))),
        ):
            model = KreinRidge(DeltaGauss(), cv=splits_of(self.folds[index]))
            basis = make_basis(DeltaGauss(), X[index], weight)
            full = model._rows(basis, target[index], weight, None)
            rows[name] = ValidationObjective(full, family, candidates)
        assert_allclose(rows["weights"].std, target[self.repeated].std(axis=0), rtol=1e-12)
        x = rows["weights"].start(np.random.RandomState(0))
        for first, second in zip(rows["weights"](x), rows["copies"](x)):
            assert_allclose(first, second, rtol=1e-6, atol=1e-8)

    def test_classifier(self):
        """Up to the prior of the calibration, which is that of the number of rows."""
        first, second = self.pair(KreinRidgeClassifier(TL1(3.0), random_state=0), LABELS)
        assert_allclose(first.cv_results_["error"], second.cv_results_["error"], rtol=1e-3)
        assert_allclose(first.predict_proba(X), second.predict_proba(X), rtol=0, atol=5e-3)

    def test_asymmetric(self):
        kernel = {"kernel": "precomputed", "kind": "similarity", "alpha": 30.0, "side": "mean"}
        weighted = AsymmetricRidge(**kernel).fit(DIRECTED, Y, sample_weight=self.weight)
        again = np.ix_(self.repeated, self.repeated)
        copies = AsymmetricRidge(**kernel).fit(DIRECTED[again], Y[self.repeated])
        back = DIRECTED.T + 0.1
        assert_allclose(
            weighted.predict(DIRECTED, reverse=back),
            copies.predict(DIRECTED[:, self.repeated], reverse=back[:, self.repeated]),
            rtol=1e-7,
        )


def test_a_held_out_target_does_not_move_predictions_out_of_its_fold():
    splits = splits_of(np.arange(36) % 4)
    penalties = {"alpha_positive": [0.01, 0.01], "alpha_negative": 0.1}
    model = KreinRidge(TL1(3.0), cv=splits, **penalties)
    before = clone(model).fit(X, Y).out_of_fold_
    row = 13
    changed = Y.copy()
    changed[row] += 50.0
    after = clone(model).fit(X, changed).out_of_fold_
    same_fold = before.rows % 4 == row % 4
    assert_allclose(after.prediction[same_fold], before.prediction[same_fold], rtol=1e-9)
    moved = np.abs(after.prediction - before.prediction)[~same_fold]
    assert np.median(moved) > 1e-3


class TestAsymmetricChoice:
    def test_one_way_is_the_best_left_regressor(self):
        alphas = np.array([1e-3, 0.1, 1.0, 10.0])
        choice = choose_asymmetric_ridge(DIRECTED, Y[:, None], alphas, ("right", "weighted"))
        alone = choose_asymmetric_ridge(DIRECTED, Y[:, None], alphas, ("left",))
        assert alone.errors[min(alone.errors, key=alone.errors.get)] < max(alone.errors.values())
        assert choice.one_way.alpha == alone.solution.alpha
        assert_allclose(choice.one_way.left, alone.solution.left)

    def test_the_intercept_is_that_of_the_sides(self):
        choice = choose_asymmetric_ridge(
            DIRECTED, Y[:, None] + 3.0, [0.5], ("weighted",), fit_intercept=True
        )
        solution = choice.solution
        share = best_shares(solution)[0]
        assert 0.05 < share < 0.95 and abs(share - 0.5) > 0.02
        left = DIRECTED @ solution.left + solution.intercept_left
        right = DIRECTED.T @ solution.right + solution.intercept_right
        expected = share * left + (1.0 - share) * right
        found = DIRECTED @ choice.coef[0] + DIRECTED.T @ choice.coef[1] + choice.intercept
        assert_allclose(found, expected, rtol=1e-10)
        # and each side predicts its own training targets up to the ridge
        assert_allclose(left + 0.5 * solution.left, Y[:, None] + 3.0, rtol=1e-8)


class TestMergedCopies:
    def test_means_and_deviations_by_hand(self):
        random = np.random.RandomState(0)
        copies = np.array([0, 1, 0, 2, 1, 1, 3, 0])
        target = random.normal(size=(8, 2)) + 100.0
        weight = random.uniform(0.5, 2.0, size=8)
        merged = merge_copies(target, weight, copies)
        assert_array_equal(merged.first, [0, 1, 3, 6])
        assert_array_equal(merged.counts, [3, 3, 1, 1])
        inside, freedom = 0.0, weight.sum()
        for number in range(4):
            mine = copies == number
            w = weight[mine]
            mean = np.average(target[mine], axis=0, weights=w)
            square = ((target[mine] - mean) ** 2).sum(axis=1)
            assert_allclose(merged.total[number], w.sum())
            assert_allclose(merged.Y[number], mean, rtol=1e-12)
            assert_allclose(merged.deviations[number], np.average(square, weights=w), atol=1e-12)
            inside += w @ square
            freedom -= (w**2).sum() / w.sum()
        assert merged.pure_error == pytest.approx(inside / freedom)

    def test_spread_puts_all_weight_on_the_first_copy(self):
        copies = np.array([0, 1, 0, 1])
        merged = merge_copies(np.array([[1.0], [2.0], [3.0], [6.0]]), None, copies)
        target, weight = merged.spread(merged.weights(0.0), 4)
        assert_array_equal(weight, [2.0, 2.0, 0.0, 0.0])
        assert_array_equal(target[:2, 0], [2.0, 4.0])
        assert_array_equal(merged.weights(1.0), [1.0, 1.0])


class TestScalings:
    def test_values_far_outside_are_cut_at_a_quarter_of_the_range(self):
        data = np.column_stack([np.linspace(0.0, 8.0, 50), np.linspace(-1.0, 1.0, 50)])
        for scaling in (standard_scaling(data), robust_scaling(data)):
            assert_allclose(scaling(np.array([[99.0, -99.0]])), scaling(np.array([[10.0, -1.5]])))
            inside = scaling(np.array([[9.9, -1.4]]))
            assert np.all(np.abs(inside) < np.abs(scaling(np.array([[99.0, -99.0]]))))

    def test_columns_are_standardized(self):
        data = np.random.RandomState(0).normal([1e6, -3.0], [1e-2, 1e5], size=(400, 2))
        for scaling in (standard_scaling(data), robust_scaling(data)):
            scaled = scaling(data)
            assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-3)
            assert_allclose(scaled.std(axis=0), 1.0, rtol=1e-3)

    def test_one_scale_for_pixels(self):
        random = np.random.RandomState(0)
        pixels = random.standard_t(2, size=(300, 12)) * np.linspace(1.0, 2.0, 12)
        pixels = np.clip(pixels, -9.0, 9.0)
        plain, robust, common = possible_scalings(pixels, pixels)
        assert robust.robust and not plain.robust and not common.robust
        assert_allclose(common.scale, np.sqrt(pixels.var(axis=0).mean()))
        assert (
            len(possible_scalings(random.uniform(size=(300, 12)), random.uniform(size=(9, 12))))
            == 1
        )


class TestDescent:
    bounds = np.array([[-1.0, 2.0], [-1.0, 2.0]])

    def test_a_minimum_on_the_bounds_is_stationary(self):
        def function(x):
            return float(((x - [5.0, 0.5]) ** 2).sum()), 2.0 * (x - [5.0, 0.5])

        found = minimize_with_restarts(function, [np.array([0.0, 0.0])], self.bounds)
        assert_allclose(found.x, [2.0, 0.5], atol=1e-5)
        assert found.gradient < 1e-5

    def test_starts_that_are_no_numbers_are_passed_over(self):
        def function(x):
            if x[0] < -0.1:
                return np.nan, np.zeros(2)
            return float((x - 1.0) @ (x - 1.0)) + 1.0, 2.0 * (x - 1.0)

        starts = [np.array([-0.5, 0.0]), np.array([1.5, 1.5]), np.array([-0.2, 0.0])]
        found = minimize_with_restarts(function, starts, np.array([[-1.0, 2.0], [0.0, 2.0]]))
        assert np.isfinite(found.value) and found.value < 1.1
        assert_array_equal(np.isnan(found.values), [True, False, True])
        with pytest.raises(ValueError, match="not finite"):
            minimize_with_restarts(function, starts[:1], self.bounds)


class TestMaps:
    def test_the_principal_plane_is_that_of_the_points(self):
        points = np.random.RandomState(0).normal(size=(40, 2)) * [5.0, 1.0]
        plane = principal_plane(cdist(points, points))
        assert_allclose(cdist(plane, plane), cdist(points, points), atol=1e-9)
        assert plane[:, 0].std() > 3.0 * plane[:, 1].std()
        assert np.all(plane[np.abs(plane).argmax(axis=0), [0, 1]] > 0)
        # negative eigenvalues take no part
        D = cdist(points, points) + 3.0 * (1.0 - np.eye(40))
        assert np.all(np.isfinite(principal_plane(D)))

    def test_neighbors_are_counted_without_the_item_itself(self):
        line = np.arange(30.0)[:, None]
        D = cdist(line, line)
        plane = np.column_stack([line, 0.0 * line])
        assert kept_neighbors(D, plane) == 1.0
        shuffled = plane[np.random.RandomState(0).permutation(30)]
        drawn = cdist(shuffled, shuffled)
        shares = []
        for i in range(30):
            others = np.delete(np.arange(30), i)
            near = others[np.argsort(D[i, others], kind="stable")[:10]]
            near_on_the_map = others[np.argsort(drawn[i, others], kind="stable")[:10]]
            shares.append(len(set(near) & set(near_on_the_map)) / 10)
        assert kept_neighbors(D, shuffled) == pytest.approx(np.mean(shares))

    def test_items_are_ordered_by_class_and_inside_by_likeness(self):
        points = np.repeat([[0.0], [10.0], [20.0]], 6, axis=0)
        points = points + 0.01 * np.arange(18)[:, None]
        shuffle = np.random.RandomState(0).permutation(18)
        K = -0.5 * cdist(points, points)[np.ix_(shuffle, shuffle)] ** 2
        y = (shuffle % 2 == 0).astype(int)
        order = likeness_order(K, y)
        assert_array_equal(y[order], np.sort(y))
        blocks = (shuffle[order] // 6).reshape(6, 3)
        assert np.all(np.ptp(blocks, axis=1) == 0), "items of a cluster are neighbors"
        assert_array_equal(np.sort(likeness_order(K)), np.arange(18))


class TestHeldOutLosses:
    def test_the_constant_of_dank_is_the_mean_of_the_training_part(self):
        train, test = np.arange(24), np.arange(24, 36)
        target = Y + 0.5 * np.r_[np.zeros(24), np.ones(12)]
        machine = HeldOut(X[train], target[train], X[test], target[test], np.zeros(24), 1.0)
        tuned = Tuned(Gaussian(2.0), 1.0, 1.0, 0.1, (), 0.0)
        _, constant = held_out_losses(tuned, [machine], False)
        assert_allclose(constant, (target[test] - target[train].mean()) ** 2)

    @pytest.mark.parametrize("spread", [0.05, 1.0, 3.0])
    def test_the_prior_of_dank_has_its_own_gradient(self, spread):
        x = np.random.RandomState(0).normal(size=7)
        _, gradient = _prior(x[:4], x[4:], spread)
        for i in range(7):
            step = 1e-6 * (np.arange(7) == i)
            up, down = x + step, x - step
            difference = _prior(up[:4], up[4:], spread)[0] - _prior(down[:4], down[4:], spread)[0]
            assert_allclose(gradient[i], difference / 2e-6, rtol=1e-5, atol=1e-7)

    def test_losses_of_a_kernel_machine_are_in_the_units_of_the_values(self):
        values = 100.0 + 7.0 * Y
        stage = KernelStage(0.1, Numbers(values.mean(), values.std()))
        train, test = next(KFold(3).split(X))
        kernel = Gaussian(1.5)
        matrices = stage.matrices(kernel, X[train], X[test])
        losses = stage.exact_losses(matrices, values[train], values[test], 10.0)
        stage.fit(kernel, X[train], values[train], 10.0)
        predicted = stage.evaluate("predict", X[test])
        assert_allclose(losses, (predicted - values[test]) ** 2, rtol=1e-6)


def test_landmarks_of_the_embedding_are_the_items_named():
    rows = Landmarks(10)
    model = KreinEmbedding(TL1(3.0), 4, landmarks=rows, random_state=3).fit(X)
    assert not np.array_equal(model.landmarks_, np.arange(10))
    assert_array_equal(model.X_fit_, X[model.landmarks_])
    alone = KreinEmbedding(TL1(3.0), 4).fit(X[model.landmarks_])
    assert_allclose(np.abs(model.transform(X)), np.abs(alone.transform(X)), atol=1e-9)
    by_matrix = KreinEmbedding("precomputed", 4, landmarks=rows, random_state=3)
    K = TL1(3.0)(X)
    by_matrix.fit(K)
    own = K[np.ix_(by_matrix.landmarks_, by_matrix.landmarks_)]
    expected = KreinEmbedding("precomputed", 4).fit(own)
    assert_allclose(by_matrix.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    assert_allclose(
        np.abs(by_matrix.transform(K)),
        np.abs(expected.transform(K[:, by_matrix.landmarks_])),
        atol=1e-9,
    )


def differences(first, second, path="model"):
    """Where two fitted objects differ, as names of attributes."""
    if type(first) is not type(second):
        return [f"{path}: {type(first).__name__} and {type(second).__name__}"]
    if isinstance(first, np.ndarray):
        equal = first.dtype == object or np.array_equal(
            first, second, equal_nan=first.dtype == float
        )
        return [] if equal else [path]
    if isinstance(first, dict):
        if first.keys() != second.keys():
            return [f"{path}: {sorted(map(str, first.keys() ^ second.keys()))}"]
        return [d for key in first for d in differences(first[key], second[key], f"{path}.{key}")]
    if isinstance(first, (list, tuple)):
        if len(first) != len(second):
            return [f"{path}: length"]
        pairs = enumerate(zip(first, second))
        return [d for i, pair in pairs for d in differences(*pair, f"{path}[{i}]")]
    if isinstance(first, (int, float, str, type(None))):
        return [] if first == second or (first != first and second != second) else [path]
    if hasattr(first, "__dict__") and not callable(first):
        return differences(vars(first), vars(second), path)
    return []


REFITS = [
    (KreinRidge(TL1(3.0), random_state=0), {"constraint": Sphere(), "landmarks": 10}),
    (
        KreinRidge(Gaussian(1.0), search=GradientSearch(1, 3), random_state=0),
        {"search": None, "alpha_positive": 0.1, "alpha_negative": 0.1},
    ),
    (
        KreinRidgeClassifier(TL1(3.0), random_state=0),
        {"landmarks": 10, "alpha_positive": 0.1, "alpha_negative": 0.1},
    ),
    (KreinSVC(TL1(3.0)), {"kernel": Gaussian(1.0), "loss": "squared_hinge"}),
    (KreinSVR(TL1(3.0)), {"center": True}),
    (AsymmetricRidge(), {"side": "left", "alpha": 1.0}),
    (AsymmetricRidgeClassifier(), {"side": "left", "alpha": 1.0}),
    (KreinEmbedding(TL1(3.0), 3, random_state=0), {"landmarks": 8}),
    pytest.param(
        HyperRidge("gaussian", random_state=0), {"alpha": 1e-3}, marks=pytest.mark.slow
    ),
    (
        HyperRegressor(HyperRidge(GaussianHyper(2.0), alpha=1e-4), C=10.0, random_state=0),
        {"machine": "linear"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("model, changes", REFITS)
def test_a_model_fitted_again_is_a_fresh_one_in_every_attribute(model, changes):
    y = LABELS if is_classifier(model) else Y
    again = clone(model).fit(X, y).set_params(**changes)
    fresh = clone(again)
    rows = np.arange(30)[::-1]
    for each in (again, fresh):
        each.fit(X[rows], y[rows])
    assert differences(vars(again), vars(fresh)) == []


@pytest.mark.parametrize(
    "model",
    [
        KreinRidge("precomputed"),
        KreinRidge("precomputed", constraint=Sphere()),
        KreinRidgeClassifier("precomputed"),
        KreinSVC("precomputed", loss="squared_hinge"),
        KreinSVR("precomputed", tol=1e-10),
        AsymmetricRidge("precomputed", kind="similarity", side="left"),
        AsymmetricRidgeClassifier("precomputed", kind="similarity", side="left"),
        DANKClassifier("precomputed", tol=1e-10),
        SpectrumTransformer("clip"),
        SpectrumTransformer("shift"),
        DissimilarityKernel(),
    ],
    ids=repr,
)
def test_order_does_not_matter(model):
    """Rows, columns, targets and folds in another order give the same model."""
    if isinstance(model, DANKClassifier):
        K = Gaussian(1.5)(X)
    else:
        K = cdist(X, X, "cityblock") if hasattr(model, "transform") else TL1(6.0)(X)
    y = LABELS if is_classifier(model) else Y
    order = np.random.RandomState(5).permutation(36)
    folds = np.arange(36) % 3
    outputs = []
    for rows in (np.arange(36), order):
        each = clone(model)
        if "cv" in each.get_params():
            each.set_params(cv=splits_of(folds[rows]))
        each.fit(K[np.ix_(rows, rows)], y[rows])
        if hasattr(model, "transform"):
            outputs.append(each.transform(K[:, rows])[:, np.argsort(rows)])
        elif is_classifier(model):
            outputs.append(each.decision_function(K[:, rows]))
        else:
            outputs.append(each.predict(K[:, rows]))
    assert_allclose(outputs[1], outputs[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 9, 10])
def test_the_smallest_value_of_a_grid_needs_few_of_them(size):
    for lowest in range(size):
        places = []

        def trial(place, lowest=lowest, places=places):
            places.append(place)
            return abs(place - lowest), place

        assert smallest_of_grid(trial, size) == (0, lowest)
        assert len(places) == len(set(places)) <= 6
