"""The parts of the table learner against formulas of their own: kernels, evidence, centers, targets, units, scatter."""

import numpy as np
import pytest
from contract import central_difference
from numpy.testing import assert_allclose, assert_array_equal

from mercerless.table import intervals, target, views
from mercerless.table.members import base, kernel

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 2))
WEIGHT = RNG.uniform(0.5, 2.0, 40)
WEIGHT /= WEIGHT.mean()
SCALES = kernel.Scales(np.array([0.5, 1.5, 0.1]), 2.0, 0.3, 0.2)


def rows(n=40, seed=3):
    return base.Rows(X[:n], Y[:n], None, 0, WEIGHT[:n] / WEIGHT[:n].mean(), (), seed)


def matrix(scales, A, B):
    """The kernel, by loops."""
    power = 1 if scales.is_laplace else 2
    s = np.sqrt(scales.s) if scales.is_laplace else scales.s / 2
    h = [[np.sum(s * np.abs(a - b) ** power) for b in B] for a in A]
    return scales.amplitude * np.exp(-np.array(h)) + scales.linear * (A @ B.T / 3 + 1)


@pytest.mark.parametrize("is_laplace", [False, True])
def test_the_kernel_is_its_formula(is_laplace):
    scales = SCALES._replace(is_laplace=is_laplace)
    assert_allclose(scales.compare(X[:7], X[5:20]), matrix(scales, X[:7], X[5:20]), rtol=1e-10)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_evidence_and_its_slope(n_outputs):
    evidence = kernel.Evidence(X, Y[:, :n_outputs], WEIGHT)
    z = np.log([*SCALES.s, SCALES.amplitude, SCALES.linear, SCALES.noise])
    value, slope = evidence(z)
    K = matrix(SCALES, X, X) + np.diag(SCALES.noise / WEIGHT)
    Z, logs = Y[:, :n_outputs], np.log(SCALES.s)
    expected = np.trace(Z.T @ np.linalg.solve(K, Z)) / 2 + n_outputs * np.linalg.slogdet(K)[1] / 2
    assert_allclose(value, expected + 0.05 * np.sum((logs - logs.mean()) ** 2))
    assert_allclose(slope, central_difference(lambda at: evidence(at)[0], z), rtol=1e-6, atol=1e-6)
    hopeless, flat = evidence(np.array([-14.0, -14, -14, -8, -8, -800]))
    assert hopeless == 1e10 and not flat.any()


def test_bandwidths_follow_the_evidence():
    wave = base.Rows(X, np.sin(3 * X[:, :1]), None, 0, np.ones(40), (), 0)
    start = kernel.Scales(np.full(3, 1 / 3))
    learned = start.by_evidence(wave, X, {40: 60})
    evidence = kernel.Evidence(X, wave.Y, wave.weight)
    ends = [np.log([*s.s, s.amplitude, s.linear, s.noise]) for s in (start, learned)]
    assert evidence(ends[1])[0] < evidence(ends[0])[0] - 5.0
    assert learned.s[0] > 20 * learned.s[1:].max()  # only this feature matters
    again = start.by_evidence(wave, X, {40: 30}).by_evidence(wave, X, {40: 60})
    assert evidence(np.log([*again.s, *again[1:4]]))[0] < evidence(ends[1])[0] + 0.5


@pytest.mark.parametrize("is_laplace", [False, True])
def test_one_factor_has_the_least_leave_one_out_error(is_laplace):
    best, chosen = np.inf, None
    shape = SCALES._replace(amplitude=1.0, linear=0.1, is_laplace=is_laplace)
    start = kernel.Scales(shape.s, is_laplace=is_laplace)
    typical = np.median(start.distances(X, X))
    for width in kernel.SHARED_WIDTHS:
        scales = start._replace(s=(width / typical) ** (2 if is_laplace else 1) * SCALES.s)
        K = matrix(scales, X, X)
        for noise in kernel.SHARED_NOISES:
            errors = []
            for i in range(40):
                rest = np.arange(40) != i
                A = K[np.ix_(rest, rest)] + noise * np.eye(39)
                errors.append(np.sum((K[i, rest] @ np.linalg.solve(A, Y[rest]) - Y[i]) ** 2))
            if (error := np.average(errors, weights=WEIGHT)) < best:
                best, chosen = error, scales._replace(noise=noise)
    found = SCALES.by_leave_one_out(rows(), X, is_laplace)
    assert_allclose(found.s, chosen.s)
    assert found[1:] == chosen[1:]


def test_all_rows_as_centers_are_ridge_regression():
    member = kernel.Kernel("one", None, SCALES)
    member.fit(rows())
    new = RNG.normal(size=(9, 3))
    K = matrix(SCALES, X, X) + np.diag(SCALES.noise / WEIGHT)
    assert_allclose(member.predict(new), matrix(SCALES, new, X) @ np.linalg.solve(K, Y))


def test_sums_over_rows_are_weighted_least_squares_on_centers():
    centers = X[:8]
    C = matrix(SCALES, centers, centers)
    sums = kernel.Sums(centers, C, np.zeros((8, 8)), np.zeros((8, 2)))
    whole = sums.add(SCALES, X, rows())
    parts = sums
    for places in (np.arange(25), np.arange(25, 40)):
        part = base.Rows(X[places], Y[places], None, 0, WEIGHT[places], (), 0)
        parts = parts.add(SCALES, X[places], part)
    K = matrix(SCALES, X, centers)
    A = K.T @ (WEIGHT[:, None] * K) + 0.2 * C
    A += kernel.ROUNDING * np.trace(A) / 8 * np.eye(8)
    expected = np.linalg.solve(A, K.T @ (WEIGHT[:, None] * Y))
    for found in (whole, parts):
        assert_allclose(found.solve(0.2), expected, rtol=1e-6)


def test_errors_of_members_are_weighted():
    outputs = RNG.normal(size=(40, 2))
    assert_allclose(rows().error_of(outputs), np.average((outputs - Y)[:, 0] ** 2, weights=WEIGHT))
    some = rows().take(np.arange(5, 15))
    assert_array_equal(some.Z, X[5:15])
    assert_allclose(some.weight, WEIGHT[5:15] / WEIGHT[5:15].mean())
    assert some.weight_or_none is not None
    assert base.Rows(X, Y, None, 0, np.ones(40), (), 0).weight_or_none is None


# targets


def test_two_columns_of_a_target_and_the_way_back():
    y = RNG.normal(size=200) ** 3 * 50 + 7
    weight = RNG.uniform(0.5, 2.0, 200)
    units = target.NumberTarget.fit(y, weight)
    columns = units(y)
    assert_allclose(np.average(columns, axis=0, weights=weight), 0.0, atol=1e-12)
    assert_allclose(np.average(columns**2, axis=0, weights=weight), 1.0)
    low, median, high = np.percentile(y, [25, 50, 75])
    short = np.arcsinh((y - median) / ((high - low) / 1.349))
    assert_allclose(np.corrcoef(columns[:, 1], short)[0, 1], 1.0)
    assert_allclose(units.given(columns[:, 0]), y)
    back = units.candidates(columns, np.zeros(1))
    assert_allclose(back[0, :, 0], columns[:, 0])
    assert_allclose(back[1, :, 0], columns[:, 0], atol=1e-9)
    far = units.candidates(np.array([[1e3, 1e3], [-1e3, -1e3]]), np.zeros(1))[:, :, 0]
    assert_allclose(far, [[columns[:, 0].max(), columns[:, 0].min()]] * 2)
    assert units.candidates(columns[:, :1], np.zeros(1)).shape == (1, 200, 1)


def test_a_target_over_decades_is_nearly_a_logarithm():
    y = np.exp(3 * RNG.normal(size=300))
    units = target.NumberTarget.fit(y, np.ones(300))
    assert units.median == 0.0
    assert_allclose(units.width, np.percentile(y, 25) / 4)
    assert np.corrcoef(units(y)[:, 1], np.log(y))[0, 1] > 0.98


def test_residuals_are_weighted_quantiles_over_which_means_are_taken():
    y = RNG.normal(size=400)
    units = target.NumberTarget.fit(y, np.ones(400))
    columns, outputs = units(y), np.zeros((400, 2))
    residuals = units.residuals(columns, outputs, np.ones(400))
    assert len(residuals) == 25
    assert_allclose(residuals, np.quantile(columns[:, 1], (np.arange(25) + 0.5) / 25), atol=0.05)
    double = np.where(y > 0, 1e6, 1.0)
    assert units.residuals(columns, outputs, double).min() > columns[y <= 0, 1].max()
    means = units.candidates(outputs[:1], residuals)[1, 0, 0]
    assert_allclose(means, columns[:, 0].mean(), atol=0.02)  # not the median's


def test_classes_have_a_column_of_signs():
    assert_array_equal(target.ClassTarget(2)(np.array([0, 1])), [[-1], [1]])
    assert_array_equal(target.ClassTarget(3)(np.array([2, 0])), [[-1, -1, 1], [1, -1, -1]])


# columns


def test_isolated_values_are_those_beyond_a_gap():
    values = RNG.normal(size=300)
    values[[5, 9]] = 1e4, -2e4
    assert_array_equal(np.sort(views.isolated(values)), [5, 9])
    values[[11, 12]] = 1.1e4, 1e4  # 4 of 300 are more than 1 %
    assert len(views.isolated(values)) == 0
    assert len(views.isolated(RNG.standard_cauchy(3000))) == 0  # tails have no gap
    assert len(views.isolated(np.r_[RNG.normal(size=99), 1e9])) == 1
    assert len(views.isolated(np.r_[RNG.normal(size=98), 1e9])) == 0  # no part of one percent
    assert len(views.isolated(np.zeros(200))) == 0
    assert len(views.isolated(np.r_[RNG.normal(size=199), 20.0])) == 0
    assert_allclose(views.ordinary_reach(np.r_[np.arange(201.0), 1e6]), 100.5)


def test_standard_columns():
    A = np.column_stack(
        [RNG.normal(size=300) * 1e3 + 5e3, np.full(300, 7.0), RNG.gamma(2, size=300)]
    )
    units = views.Standard.fit(A)
    Z = units(A)
    assert_allclose(Z.mean(axis=0), 0.0, atol=1e-6)
    assert_allclose(np.sort(Z.std(axis=0)), [0, 1, 1], atol=1e-6)
    assert_array_equal(Z, np.round(Z * 2**20) / 2**20)
    assert_array_equal(views.Standard.fit(A[:, [2, 0, 1]])(A[:, [2, 0, 1]]), Z)
    far = units(A.max(axis=0, keepdims=True) + 1e9 * np.eye(3))
    reach = np.abs(A - np.median(A, axis=0)).max(axis=0)
    highest = (np.median(A, axis=0) + 2 * reach - A.mean(axis=0)) / np.maximum(A.std(axis=0), 1e-9)
    assert_allclose(np.sort(far.max(axis=0)), np.sort(np.where(reach > 0, highest, 0)), atol=1e-5)
    wrong = A.copy()
    wrong[3, 0] = 1e12
    moved = np.delete(views.Standard.fit(wrong)(wrong), 3, axis=0) - np.delete(Z, 3, axis=0)
    assert np.abs(moved).max() < 0.2


def test_short_tails():
    Z = np.column_stack([RNG.standard_cauchy(500), RNG.integers(0, 2, 500) * (np.arange(500) < 90)])
    tails = views.Tails.fit(Z)
    assert_allclose(tails(Z).mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(tails(Z).std(axis=0), 1.0)
    low, median, high = np.percentile(Z[:, 0], [25, 50, 75])
    short = np.arcsinh((Z[:, 0] - median) / ((high - low) / 1.349))
    assert_allclose(tails(Z)[:, 0], (short - short.mean()) / short.std())


def test_copies_of_columns_are_found_up_to_sign():
    Z = RNG.normal(size=(3000, 3))
    near = Z[:, 1] + 1e-3 * RNG.normal(size=3000)
    columns = np.column_stack([Z[:, 0], -Z[:, 0], Z[:, 1], np.zeros(3000), near, Z[:, 2], Z[:, 2]])
    assert_array_equal(views.first_of_copies(columns), [0, 2, 4, 5])


# intervals


def test_scatter_follows_the_rows_and_covers_every_fifth():
    Z = RNG.uniform(-1, 1, size=(3000, 2))
    predictions = Z[:, 1]
    errors = np.abs(RNG.normal(size=3000)) * np.where(Z[:, 0] > 0, 2.0, 1.0)
    scatter = intervals.Scatter.fit(Z[:1500], predictions[:1500], errors[:1500], None, 0)
    radius = scatter.radius(Z[1500:], predictions[1500:], 0.9)
    new = errors[1500:] <= radius
    fifth = np.searchsorted(
        np.quantile(predictions[:1500], [0.2, 0.4, 0.6, 0.8]), predictions[1500:]
    )
    assert all(0.84 < new[fifth == k].mean() < 0.96 for k in range(5))
    wide = Z[1500:, 0] > 0
    assert 1.5 < np.median(radius[wide]) / np.median(radius[~wide]) < 2.5
    assert len(scatter.bounds) == 4
    assert_allclose(scatter.typical, np.median(errors[:1500]))
    same = intervals.Scatter.fit(Z[:300], np.ones(300), errors[:300], None, 0)
    assert len(same.bounds) == 0  # equal predictions have no fifths
    few = intervals.Scatter.fit(Z[:240], predictions[:240], errors[:240], None, 0)
    assert len(few.bounds) == 0
    sizes = errors[:240] / few.ratios
    assert sizes.min() >= few.typical / 3 - 1e-12 and sizes.max() <= few.typical * 3 + 1e-12
