"""The stack's solvers against dense formulas, general optimizers, and the optimality conditions."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.similarity import (
    calibration,
    calibration_value,
    class_distance,
    feature_ridge,
    neighbor_mean,
    profile_ridge,
    sparse_machine_dual,
    sparse_machine_value,
    spectral_ridge,
    temperature,
    weights_value,
)
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from stacks import fit_settings

from mercerless.core.averaging_old import STACKED_CLASSES, STACKED_NUMBERS, average, paired_z
from mercerless.core.calibration import calibrate, fit_temperature, sharpen
from mercerless.similarity.families import (
    NEED_DIAGONAL,
    Comparisons,
    Setting,
    all_settings,
    default_families,
)
from mercerless.similarity.solver import (
    class_distances,
    feature_path,
    kernel_path,
    logistic_path,
    neighbor_means,
    ridge_path,
    sparse_machine,
    spectral_path,
    squared_distances,
    squares_of_products,
)
from mercerless.similarity.stack import choose_targets, fence, out_of_fold_scores, select_settings

RANDOM = np.random.RandomState(0)


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def indefinite(n, seed=0):
    A = np.random.RandomState(seed).normal(size=(n, n))
    return frozen(A + A.T + 2.0 * np.eye(n))


def default_settings(classify=True, n_items=0):
    return all_settings(default_families(classify, n_items))


def members_of(K, *problem):
    return fit_settings(Comparisons.of(K), *problem)


def scores_of(members, rows, diagonal=None):
    return members.scores(Comparisons(rows, diagonal, members.diagonal))


def targets(n, q=2, seed=1):
    return frozen(np.random.RandomState(seed).normal(size=(n, q)))


SPECTRAL = [
    Setting(family, penalty)
    for family in ("clip", "flip", "square")
    for penalty in (1e-5, 1e-2, 10.0)
]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
def test_spectral_path_equals_the_dense_formula(scale):
    K, Y, rows = scale * indefinite(25), targets(25), scale * RANDOM.normal(size=(7, 25))
    coef, intercept = spectral_path(K, Y, SPECTRAL)
    for index, setting in enumerate(SPECTRAL):
        expected = spectral_ridge(K, Y, setting.family, setting.parameter, rows)
        np.testing.assert_allclose(
            rows @ coef[:, index] + intercept[index], expected, rtol=1e-8, atol=1e-8
        )


def test_spectral_path_ignores_a_constant():
    K, Y, rows = indefinite(20), targets(20), RANDOM.normal(size=(5, 20))
    coef, intercept = spectral_path(K, Y, SPECTRAL)
    shifted, other = spectral_path(K + 100.0, Y, SPECTRAL)
    first = np.tensordot(rows, coef, 1) + intercept
    np.testing.assert_allclose(np.tensordot(rows + 100.0, shifted, 1) + other, first, atol=1e-9)


def test_psd_flip_equals_kernel_ridge():
    from sklearn.kernel_ridge import KernelRidge

    X = RANDOM.normal(size=(30, 5))
    X -= X.mean(axis=0)
    K, Y = X @ X.T, targets(30)
    strength = 1e-2 * np.linalg.eigvalsh(K)[-1]
    expected = (
        KernelRidge(alpha=strength, kernel="precomputed").fit(K, Y - Y.mean(axis=0)).predict(K)
    )
    for family in ("clip", "flip"):
        coef, intercept = spectral_path(K, Y, [Setting(family, 1e-2)])
        np.testing.assert_allclose(
            K @ coef[:, 0] + intercept[0] - Y.mean(axis=0), expected, rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_feature_path_equals_primal_ridge(standardize, scale):
    F, Y, rows = (
        scale * RANDOM.uniform(1.0, 2.0, (20, 20)),
        targets(20),
        scale * RANDOM.uniform(1.0, 2.0, (6, 20)),
    )
    coef, intercept = feature_path(F, Y, [1e-4, 1e-1], standardize=standardize)
    for index, penalty in enumerate((1e-4, 1e-1)):
        expected = feature_ridge(F, Y, penalty, rows, standardize)
        np.testing.assert_allclose(
            rows @ coef[:, index] + intercept[index], expected, rtol=1e-7, atol=1e-8
        )


def test_logistic_path_starts_with_a_gradient_step_and_ends_at_maximum_likelihood():
    random = np.random.RandomState(0)
    A, weight, labels = (
        random.normal(size=(60, 3)),
        random.randint(1, 4, 60).astype(float),
        random.randint(3, size=60),
    )
    A, root, onehot = A - weight @ A / weight.sum(), np.sqrt(weight)[:, None], np.eye(3)[labels]
    slopes, biases = logistic_path(root * A, root, 2.0 * onehot - 1.0, [1, 3000])
    step = 2.0 / np.linalg.norm(root * A @ A.T * root.T)
    np.testing.assert_allclose(
        slopes[:, 0], step * A.T @ (weight[:, None] * (onehot - 1.0 / 3.0)), rtol=1e-10
    )
    np.testing.assert_allclose(
        biases[0], 2.0 * (weight @ onehot / weight.sum() - 1.0 / 3.0), rtol=1e-10, atol=1e-14
    )
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(A, labels, weight)
    np.testing.assert_allclose(
        softmax(A @ slopes[:, 1] + biases[1], axis=1), model.predict_proba(A), atol=1e-5
    )


@pytest.mark.parametrize("family", ["logistic_similarities", "logistic_distances"])
def test_logistic_members_know_neither_the_scale_nor_repetition(family):
    X, settings = (
        np.random.RandomState(0).normal(size=(18, 3)),
        [Setting(family, steps) for steps in (10, 80)],
    )
    K, weight, own = X @ X.T, np.array([1, 2, 3] * 6), (X**2).sum(axis=1)
    again, Y = np.repeat(np.arange(18), weight), np.where(X[:, :1] > 0.3, [1.0, -1.0], [-1.0, 1.0])
    once = scores_of(members_of(K, Y, settings, weight.astype(float)), K[:4], own[:4])
    large = scores_of(
        members_of(1e6 * K, Y, settings, weight.astype(float)), 1e6 * K[:4], 1e6 * own[:4]
    )
    repeated = scores_of(
        members_of(K[np.ix_(again, again)], Y[again], settings), K[:4, again], own[:4]
    )
    np.testing.assert_allclose(large, once, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(repeated, once, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("width", [0.1, 1.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_profiles_equal_kernel_ridge_on_standardized_rows(width, scale):
    X = RANDOM.normal(size=(31, 4))
    D, Y = scale * np.abs(X[:, None] - X).sum(axis=2) ** 0.7, targets(24)  # any distances will do
    settings = [Setting("profiles", penalty, width) for penalty in (1e-5, 1e-2)]
    scores = scores_of(
        members_of(-0.5 * D[:24, :24] ** 2, Y, settings), -0.5 * D[24:, :24] ** 2, np.zeros(7)
    )
    for setting, found in zip(settings, scores):
        expected = profile_ridge(D[:24, :24], Y, width, setting.parameter, D[24:, :24])
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_profiles_with_weights_equal_those_of_repeated_items():
    X = RANDOM.normal(size=(18, 3))
    K, weight = X @ X.T, np.array([1, 2, 3] * 6)
    again = np.repeat(np.arange(18), weight)
    first, settings = np.searchsorted(again, np.arange(18)), [Setting("profiles", 1e-3, 1.0)]
    once = members_of(K, targets(18), settings, weight.astype(float))
    repeated = members_of(K[np.ix_(again, again)], targets(18)[again], settings)
    squares = [
        members.families[0].base(Comparisons(K[:4, columns], np.diagonal(K)[:4], members.diagonal))
        for members, columns in ((once, np.arange(18)), (repeated, again))
    ]
    np.testing.assert_allclose(
        squares[1][:, first] / 36.0, squares[0] / 18.0, rtol=1e-9, atol=1e-12
    )


def test_class_distances_equal_sorting():
    distances, labels = RANDOM.uniform(size=(9, 30)), np.repeat([0, 1, 3], [20, 8, 2])
    onehot = np.eye(4)[labels]  # class 2 does not occur, class 3 has two items
    for count in (1, 3):
        expected = class_distance(distances, labels, count, 4)
        np.testing.assert_allclose(
            class_distances(distances, onehot, [count])[0], expected, rtol=1e-12
        )
        np.testing.assert_allclose(
            class_distances(distances, 2.0 * onehot - 1.0, [count])[0], expected, rtol=1e-12
        )


def test_copies_have_finite_class_distances():
    K, Y = np.ones((6, 6)), np.eye(2)[np.arange(6) % 2] * 2.0 - 1.0
    settings = [Setting("class_distances", 1, log=log) for log in (False, True)]
    np.testing.assert_array_equal(scores_of(members_of(K, Y, settings), K[:2], np.ones(2)), 0.0)


def test_whole_weights_equal_repeated_items():
    K, Y, weight = indefinite(15), targets(15), np.array([1.0, 2.0, 3.0] * 5)
    again = np.repeat(np.arange(15), weight.astype(int))
    rows = RANDOM.normal(size=(4, 15))
    for single, repeated in (
        (
            spectral_path(K, Y, SPECTRAL, weight),
            spectral_path(K[np.ix_(again, again)], Y[again], SPECTRAL),
        ),
        (
            kernel_path(K @ K, Y, [1e-3, 1.0], weight),
            kernel_path((K @ K)[np.ix_(again, again)], Y[again], [1e-3, 1.0]),
        ),
        *(
            (
                feature_path(K, Y, [1e-3, 1.0], weight, standardize=flag),
                feature_path(K[np.ix_(again, again)], Y[again], [1e-3, 1.0], standardize=flag),
            )
            for flag in (False, True)
        ),
    ):
        first = np.tensordot(rows, single[0], 1) + single[1]
        second = np.tensordot(rows[:, again], repeated[0], 1) + repeated[1]
        np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("K", [np.zeros((6, 6)), np.full((6, 6), 3.0), np.ones((1, 1))])
def test_nothing_to_learn_from_gives_the_mean(K):
    Y = targets(len(K))
    members = members_of(frozen(K), Y, default_settings(classify=False))
    scores = scores_of(members, np.asarray(K)[:1], np.diagonal(K)[:1])
    expected = np.broadcast_to(Y.mean(axis=0), scores[:, 0].shape)
    linear = [i for i, setting in enumerate(members.settings) if setting.family != "neighbors"]
    np.testing.assert_allclose(scores[linear, 0], expected[linear], atol=1e-12)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-9)  # all tied: every item votes


def test_all_eigenvalues_negative_clip_gives_the_mean():
    X = RANDOM.normal(size=(12, 3))
    coef, intercept = spectral_path(
        -X @ X.T, targets(12), [Setting("clip", 1e-3), Setting("flip", 1e-3)]
    )
    assert np.all(coef[:, 0] == 0.0)
    np.testing.assert_allclose(intercept[0], targets(12).mean(axis=0))
    assert np.abs(coef[:, 1]).max() > 0.0


def test_neighbors_equal_sorting_and_share_ties():
    distances, Y = RANDOM.uniform(size=(9, 30)), targets(30)
    means = neighbor_means(distances, Y, [1, 3, 25, 99])
    for k in (1, 3, 25):
        np.testing.assert_allclose(means[k], neighbor_mean(distances, Y, k), rtol=1e-12)
    np.testing.assert_allclose(means[99], neighbor_mean(distances, Y, 30), rtol=1e-12)
    tied = np.array([[0.0, 1.0, 1.0, 1.0, 2.0]])
    values = np.array([[1.0], [2.0], [4.0], [6.0], [100.0]])
    expected = ((1.0 + 2.0 / 3.0 * 12.0) / 3.0 + 1e-3) / 1.001
    np.testing.assert_allclose(neighbor_means(tied, values, [3])[3], [[expected]])
    order = RANDOM.permutation(5)
    np.testing.assert_allclose(neighbor_means(tied[:, order], values[order], [3])[3], [[expected]])


def test_neighbors_with_ties_beyond_the_last_that_counts():
    # whole numbers: nearly every row has items as far as the 5th nearest among those that are not
    distances = RANDOM.randint(4, size=(20, 60)).astype(float)
    weight = RANDOM.uniform(0.5, 2.0, 60)
    Y = targets(60)
    means = neighbor_means(distances, Y, [2, 5], weight)
    for row, of_item in enumerate(distances):
        expected = {}
        for count in (1, 2, 5):
            last = np.sort(of_item)[count - 1]
            votes = (of_item < last).astype(float)
            votes[of_item == last] = (count - votes.sum()) / np.sum(of_item == last)
            expected[count] = (votes * weight) @ Y / (votes @ weight)
        for count in (2, 5):
            mixed = (expected[count] + 1e-3 * expected[1]) / 1.001
            np.testing.assert_allclose(means[count][row], mixed, rtol=1e-10)


def test_neighbors_with_more_ties_beyond_than_are_looked_at():
    distances = np.random.RandomState(1).randint(2, size=(10, 90)).astype(float)
    Y = np.arange(90.0)[:, None]
    means = neighbor_means(distances, Y, [1, 5])
    for row, of_item in enumerate(distances):
        expected = Y[of_item == 0.0].mean(
            axis=0
        )  # all that are nearest, more than 25, share the votes
        np.testing.assert_allclose(means[1][row], expected, rtol=1e-12)
        np.testing.assert_allclose(means[5][row], expected, rtol=1e-12)


def test_neighbors_tied_up_to_rounding_share_their_votes():
    Y = np.array([[1.0], [0.0], [5.0], [7.0]])
    exact = np.array([[1.0, 1.0, 1.0, 3.0]])
    shaken = exact * np.array([1.0, 1 + 2e-16, 1 - 3e-15, 1.0])
    for count in (1, 2, 3):
        np.testing.assert_allclose(
            neighbor_means(shaken, Y, [count])[count],
            neighbor_means(exact, Y, [count])[count],
            rtol=1e-12,
        )


def test_squared_distances_of_vectors():
    X = RANDOM.normal(size=(8, 3))
    K = X @ X.T
    expected = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(
        squared_distances(K, np.diagonal(K), np.diagonal(K)), expected, atol=1e-12
    )
    assert squared_distances(np.array([[5.0]]), np.ones(1), np.ones(1)) == 0.0


def test_one_long_item_does_not_bring_the_others_together():
    X = np.random.RandomState(1).normal(size=(8, 3))
    expected = ((X[:, None] - X) ** 2).sum(axis=2)
    longer = np.vstack([X, np.full((1, 3), 1e9)])
    K = longer @ longer.T
    own = np.diagonal(K)
    np.testing.assert_allclose(squared_distances(K, own, own)[:8, :8], expected, atol=1e-12)
    # of vectors that are compared with known ones, a row does not depend on the others
    alone = squares_of_products(K[:8, :8], own[:8], own[:8])
    np.testing.assert_array_equal(squares_of_products(K[:, :8], own, own[:8])[:8], alone)
    np.testing.assert_allclose(alone, expected, atol=1e-12)
    # what rounding leaves of copies is still cut off
    copies = np.vstack([X, X * (1.0 + 1e-16)])
    K = copies @ copies.T
    squares = squared_distances(K, np.diagonal(K), np.diagonal(K))
    assert np.all(np.diagonal(squares[:8, 8:]) == 0.0)


@pytest.mark.parametrize("n", [40, 200])
def test_an_item_far_from_all_others_makes_no_ties(n):
    random = np.random.RandomState(1)
    distances = random.uniform(1.0, 2.0, size=(5, n)) ** 2
    Y = random.normal(size=(n, 2))
    plain = neighbor_means(distances, Y, [1, 3, 9])
    far = np.column_stack([distances, np.full(5, 1e14)])
    means = neighbor_means(far, np.vstack([Y, Y[:1]]), [1, 3, 9])
    for count, values in plain.items():
        np.testing.assert_allclose(means[count], values, rtol=1e-12)
    # most pairs are far apart, as items of different parts of a graph
    parts = np.full((5, n), 1e12)
    parts[:, :6] = distances[:, :6]
    nearest = Y[distances[:, :6].argmin(axis=1)]
    np.testing.assert_allclose(neighbor_means(parts, Y, [1])[1], nearest, rtol=1e-12)


def test_ridges_of_a_matrix_that_rounding_made_indefinite():
    random = np.random.RandomState(1)
    vectors = np.linalg.qr(random.normal(size=(6, 6)))[0]
    values = np.array([-0.5, 0.0, 0.1, 1.0, 2.0, 3.0])
    A = (vectors * values) @ vectors.T
    B = random.normal(size=(6, 2))
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    norm = np.linalg.norm(A)
    solutions = ridge_path((A + A.T) / 2.0, B, [1e-3, 1e-1])
    for place, penalty in enumerate([1e-3, 1e-1]):
        expected = np.linalg.solve(clipped + penalty * norm * np.eye(6), B)
        np.testing.assert_allclose(solutions[:, place], expected, rtol=1e-8)


def test_members_do_not_depend_on_order_scale_or_company():
    K, Y, rows = indefinite(24), targets(24), RANDOM.normal(size=(5, 24))
    diag = np.full(5, 3.0)
    scores = scores_of(members_of(K, Y, default_settings()), rows, diag)
    order = RANDOM.permutation(24)
    permuted = members_of(K[np.ix_(order, order)], Y[order], default_settings())
    np.testing.assert_allclose(scores_of(permuted, rows[:, order], diag), scores, atol=1e-8)
    scaled = members_of(1e9 * K, Y, default_settings())
    np.testing.assert_allclose(scores_of(scaled, 1e9 * rows, 1e9 * diag), scores, atol=1e-8)
    for index, setting in enumerate(default_settings()):
        alone = scores_of(members_of(K, Y, [setting]), rows, diag)
        np.testing.assert_allclose(alone[0], scores[index], atol=1e-10)


def test_without_own_similarities_only_distance_families_fall_out():
    K, Y, rows = indefinite(16), targets(16), RANDOM.normal(size=(3, 16))
    members = members_of(K, Y, default_settings())
    known, unknown = scores_of(members, rows, np.zeros(3)), scores_of(members, rows)
    for index, setting in enumerate(members.settings):
        expected = 0.0 if setting.family in NEED_DIAGONAL else known[index]
        np.testing.assert_array_equal(unknown[index], expected)


def held_out_scores(K, Y, train, test):
    comparisons = Comparisons.of(K)
    families = default_families()
    return out_of_fold_scores(comparisons, comparisons, Y, families, np.ones(len(Y)), (train, test))


def test_out_of_fold_scores_do_not_see_the_test_part():
    K, Y = np.array(indefinite(20)), np.array(targets(20))
    train, test = np.arange(15), np.arange(15, 20)
    before = held_out_scores(K, Y, train, test)
    Y[test] += 100.0
    K[15:, 15:] += np.diag(np.diagonal(K)[15:]) - K[15:, 15:]  # similarities among test items
    np.testing.assert_array_equal(held_out_scores(K, Y, train, test), before)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_calibration_equals_a_general_optimizer(n_classes, sign):
    labels = RANDOM.randint(n_classes, size=60)
    onehot = np.eye(n_classes)[labels]
    scores = sign * 50.0 * onehot + 40.0 * RANDOM.normal(size=(5, 60, n_classes)) + 7.0
    weight = RANDOM.uniform(0.5, 2.0, 60)
    result = calibrate(scores, onehot, weight)
    assert result.gradient <= 1e-9
    for index in range(5):
        # the objective is of standardized scores
        shift = np.average(scores[index].mean(axis=1), weights=weight)
        scale = np.sqrt(np.average(((scores[index] - shift) ** 2).mean(axis=1), weights=weight))
        slope, bias = result.slope[index], result.bias[index]
        theta = np.concatenate([[slope * scale], bias + slope * shift])
        expected, value = calibration(scores[index], onehot, weight)
        mine = calibration_value(theta, scores[index], onehot, weight)
        assert mine <= value + 1e-9 * abs(value)
        np.testing.assert_allclose(theta, expected, atol=2e-4)
    assert np.all(result.slope >= 0.0)
    # scores that point the wrong way are not believed
    assert np.all(result.slope == 0.0) == (sign < 0.0)
    np.testing.assert_allclose(result(scores).sum(axis=2), 1.0)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
def test_calibration_does_not_depend_on_the_scale_of_scores(scale):
    onehot = np.eye(3)[RANDOM.randint(3, size=40)]
    scores = onehot + RANDOM.normal(size=(2, 40, 3))
    first, second = calibrate(scores, onehot), calibrate(scale * scores + 5.0 * scale, onehot)
    expected = first(scores)
    np.testing.assert_allclose(second(scale * scores + 5.0 * scale), expected, atol=1e-7)
    assert second.gradient <= 1e-9


def test_calibration_starts_anywhere():
    onehot = np.eye(3)[RANDOM.randint(3, size=80)]
    scores = 3.0 * onehot + RANDOM.normal(size=(4, 80, 3))
    scores[3] = 2.0  # constant
    expected = calibrate(scores, onehot)
    near = calibrate(scores[:, :60], onehot[:60])
    far = near._replace(slope=50.0 * near.slope, bias=near.bias + 7.0)
    for start in (near, far):
        found = calibrate(scores, onehot, start=start)
        assert found.gradient <= 1e-9
        np.testing.assert_allclose(found(scores), expected(scores), atol=1e-7)


def test_calibration_of_separable_constant_and_absent():
    onehot = np.eye(3)[np.repeat([0, 1], 20)]  # the third class does not occur
    perfect, constant = 2.0 * onehot - 1.0, np.full((40, 3), 5.0)
    result = calibrate(np.stack([perfect, constant]), onehot)
    assert result.gradient <= 1e-9
    proba = result(np.stack([perfect, constant]))
    assert np.all(np.isfinite(proba)) and np.all(proba > 0.0)
    assert proba[0, 0, 0] > 0.95
    np.testing.assert_allclose(proba[1, 0, :2], proba[1, 0, 0])
    assert proba[1, 0, 2] < 0.05


@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
def test_temperature_equals_a_general_minimizer_and_keeps_labels(power):
    truth = RANDOM.dirichlet(np.ones(3), 200)
    labels = np.array([RANDOM.choice(3, p=p) for p in truth])
    proba, weight = sharpen(truth, 1.0 / power), RANDOM.uniform(0.5, 2.0, 200)
    found = fit_temperature(proba, np.eye(3)[labels], weight)
    assert np.isclose(found, temperature(proba, labels, weight), atol=1e-6)
    assert abs(np.log(found / power)) < 0.4  # what made them under- or overconfident is undone
    np.testing.assert_array_equal(sharpen(proba, found).argmax(axis=1), proba.argmax(axis=1))
    np.testing.assert_allclose(sharpen(proba, found).sum(axis=1), 1.0)


def test_temperature_of_perfect_useless_and_certain_probabilities():
    onehot = np.eye(2)[np.arange(40) % 2]
    assert 1.0 < fit_temperature(0.8 * onehot + 0.1, onehot, np.ones(40)) < 50.0
    # wrong throughout, labels still stay
    assert fit_temperature(0.99 - 0.98 * onehot, onehot, np.ones(40)) == 0.05
    assert fit_temperature(np.ones((3, 1)), np.ones((3, 1)), np.ones(3)) == 1.0
    assert np.isfinite(sharpen(onehot, 2.0)).all() and np.isfinite(
        fit_temperature(onehot, onehot, np.ones(40))
    )


def test_targets_are_fenced_only_where_they_are_extreme():
    Y, weight = RANDOM.normal(size=(100, 2)), np.ones(100)
    assert (
        fence(Y, weight) is None
        and fence(np.repeat([[0.0], [1.0]], [90, 10], axis=0), weight) is None
    )
    Y[3, 1] = 50.0
    fenced = fence(Y, weight)
    assert fenced[3, 1] < 6.0 and np.sum(fenced != Y) == 1
    twice = np.concatenate([Y, Y[50:]])
    np.testing.assert_array_equal(
        fence(Y, np.repeat([1.0, 2.0], 50)), fence(twice, np.ones(150))[:100]
    )


def test_two_rows_do_not_decide_for_extreme_targets():
    settings = default_settings(classify=False)
    Y = RANDOM.normal(size=(60, 1))
    Y[:2] = 30.0
    fenced = fence(Y, np.ones(60))
    noise = RANDOM.normal(size=(len(settings), 60, 1))
    # the given ones predict the two rows too
    both = np.concatenate([Y + 0.1 * noise, fenced + 0.1 * noise], axis=2)
    choice, chosen = choose_targets(both, Y, fenced, np.ones(60), settings)
    assert chosen is fenced and choice.average.losses[:2].min() > 100.0
    Y[:12] = 30.0 + RANDOM.normal(size=(12, 1))  # twelve can
    fenced = np.clip(Y, -4.0, 4.0)
    both = np.concatenate([Y + 0.1 * noise, fenced + 0.1 * noise], axis=2)
    assert choose_targets(both, Y, fenced, np.ones(60), settings)[1] is Y
    assert choose_targets(both[:, :, :1], Y, None, np.ones(60), settings)[1] is Y


def test_weights_are_optimal_and_beat_random_points():
    Y = np.eye(3)[RANDOM.randint(3, size=50)]
    predictions = np.stack(
        [RANDOM.dirichlet(np.ones(3), 50) + share * Y for share in (0.0, 0.5, 2.0, 0.1)]
    )
    predictions /= predictions.sum(axis=2, keepdims=True)
    weight = RANDOM.uniform(0.5, 2.0, 50)
    result = average(predictions, Y, weight, STACKED_CLASSES)
    assert result.residual <= 1e-12
    assert np.isclose(result.weights.sum(), 1.0) and result.weights.min() >= 0.0
    free = average(predictions, Y, weight, replace(STACKED_NUMBERS, pull=0.3))
    assert free.residual <= 1e-12
    # the unnormalized problem's own objective, against random nonnegative points
    penalty = 0.3 * (((predictions - Y) ** 2).sum(axis=2) @ weight).min() / weight.sum()
    best = weights_value(free.weights, predictions, Y, weight, penalty)
    for v in RANDOM.exponential(0.5, size=(10_000, 4)):
        assert best <= weights_value(v, predictions, Y, weight, penalty) + 1e-10
    assert np.argmax(result.weights) == 2


def test_useless_members_get_no_weight():
    Y = np.linspace(-1.0, 1.0, 30)[:, None]
    result = average(np.stack([-3.0 * Y, Y]), Y, None, STACKED_NUMBERS)
    assert result.weights[0] == 0.0 and result.weights[1] > 0.9
    np.testing.assert_allclose(
        average(np.zeros((2, 5, 1)), np.zeros((5, 1)), None, STACKED_NUMBERS).weights, 0.5
    )


def test_selection_keeps_the_best_of_every_family():
    settings = default_settings()
    chosen = select_settings(settings, np.arange(len(settings), 0.0, -1.0))
    families = {setting.family for setting in settings}
    for family in families:
        index = [i for i, setting in enumerate(settings) if setting.family == family]
        assert set(index[-3:]) <= set(chosen.tolist())
    assert len(chosen) == 3 * len(families)


def test_paired_z():
    losses, others = RANDOM.normal(size=500), RANDOM.normal(size=500) + 0.5
    difference = others - losses
    expected = difference.mean() / (difference.std() / np.sqrt(500))
    assert np.isclose(paired_z(losses, others), expected)
    assert np.isclose(paired_z(losses, others), -paired_z(others, losses))
    assert paired_z(losses, losses) == 0.0


def test_paired_z_of_weighted_losses_is_that_of_their_weighted_mean():
    """A sum of independent differences, each times its weight; the unit of the weights cancels."""
    losses, others = RANDOM.normal(size=300), RANDOM.normal(size=300) + 0.2
    weight = RANDOM.uniform(0.1, 4.0, 300)
    difference = others - losses
    mean = np.average(difference, weights=weight)
    variance_of_sum = np.sum((weight * (difference - mean)) ** 2)
    expected = mean * weight.sum() / np.sqrt(variance_of_sum)
    assert np.isclose(paired_z(losses, others, weight), expected)
    assert np.isclose(paired_z(losses, others, 100.0 * weight), expected)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("C", [0.1, 5.0])
def test_sparse_machine_attains_the_dual_optimum(scale, C):
    K = scale * RANDOM.normal(size=(40, 40))  # asymmetric and indefinite
    y = np.where(RANDOM.uniform(size=40) > 0.4, 1.0, -1.0)
    result = sparse_machine(K, y, C / scale)
    # with similarities scaled by s, coefficients scale by 1/s: the value is 1/s times that of scale 1 and C
    value = sparse_machine_value(result.coef, result.intercept, K, y, C / scale)
    assert result.gap <= 1e-8
    np.testing.assert_allclose(result.objective, value, rtol=1e-8)
    np.testing.assert_allclose(value * scale, sparse_machine_dual(K / scale, y, C), rtol=1e-7)


def test_sparse_machine_weights_equal_repetition_in_value():
    K, y = RANDOM.normal(size=(20, 20)), np.where(RANDOM.uniform(size=20) > 0.5, 1.0, -1.0)
    weight = RANDOM.randint(1, 4, size=20)
    again = np.repeat(np.arange(20), weight)
    single = sparse_machine(K, y, 0.7 * weight)
    repeated = sparse_machine(K[np.ix_(again, again)], y[again], 0.7)
    np.testing.assert_allclose(single.objective, repeated.objective, rtol=1e-9)


def test_sparse_machine_degenerate():
    one = sparse_machine(np.ones((3, 3)), np.ones(3), 1.0)
    assert np.all(one.coef == 0.0) and one.intercept == 1.0 and one.objective == 0.0
    nothing = sparse_machine(np.zeros((3, 3)), np.array([1.0, -1.0, -1.0]), 1.0)
    assert np.all(nothing.coef == 0.0) and nothing.intercept == -1.0
    np.testing.assert_allclose(nothing.objective, 2.0)
