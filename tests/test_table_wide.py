"""Wide machines and trees beside the local forms of LAB: oracles, slopes, weights, whole fits."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from mercerless import TableClassifier, TableRegressor
from mercerless.core.scaling import BLOCK_BYTES
from mercerless.kernels import LocalExponential
from mercerless.lab.model import LocalForm, Projected, Rows
from mercerless.lab.solver import Moments, moments, single_exponential
from mercerless.table import fit
from mercerless.table.fit import in_single
from mercerless.table.members import trees as tree_members
from mercerless.table.members.trees import Trees, boost, tree_candidate
from mercerless.table.members.wide import Wide, WideLearner, wide_candidates
from mercerless.table.members.wide_solver import (
    norm_penalty,
    slope_map,
    slopes,
    solve_logistic,
    solve_wide,
)
from mercerless.table.outliers import trust_in_targets
from mercerless.table.plan import center_count
from mercerless.table.weighing import Labeled, Pool

RNG = np.random.default_rng(0)


def by_name(candidates):
    return {candidate.name: candidate for candidate in candidates}


def exponential(X, Y):
    return np.exp(-np.sqrt(np.maximum(((X[:, None] - Y[None]) ** 2).sum(axis=2), 0)))


def nothing(X):
    return np.zeros((len(X), 0))


def test_all_rows_as_centers_are_kernel_ridge_regression():
    X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=(60, 2))
    sums = moments(X, Y, None, kernel=exponential, S=X, fixed=nothing)
    K = exponential(X, X)
    for ridge, coef in zip([0.1, 1.0], solve_wide(sums, norm_penalty(K, 0), [0.1, 1.0])):
        peer = KernelRidge(kernel="precomputed", alpha=ridge).fit(K, Y)
        assert_allclose(K @ coef, peer.predict(K), atol=1e-4)


def test_fixed_columns_are_penalized_little_and_weights_count_rows():
    X, Y = RNG.normal(size=(40, 2)), RNG.normal(size=(40, 1))
    S, w = X[:7], RNG.integers(1, 4, size=40).astype(float)
    ones = lambda X: np.ones((len(X), 1))  # noqa: E731
    weighted = moments(X, Y, w, kernel=exponential, S=S, fixed=ones)
    again = np.repeat(np.arange(40), w.astype(int))
    repeated = moments(X[again], Y[again], None, kernel=exponential, S=S, fixed=ones)
    P = norm_penalty(exponential(S, S), 1)
    assert P[7, 7] == pytest.approx(0.1) and not P[7, :7].any()
    assert_allclose(solve_wide(weighted, P, [0.3])[0], solve_wide(repeated, P, [0.3])[0], rtol=1e-8)


def test_a_singular_penalty_is_raised_until_it_factors():
    # indefinite by a little, as single precision may leave it
    K = np.ones((5, 5)) - 1e-3 * np.eye(5)
    coef = solve_wide(Moments(np.zeros((5, 5)), np.ones((5, 1)), 1.0), norm_penalty(K, 0), [1.0])[0]
    assert np.isfinite(coef).all()


def test_single_precision_is_exact_near_a_center():
    S = 100 + RNG.normal(size=(7, 3))
    X = np.vstack([S[:2], S[:2] + 1e-6, 100 + RNG.normal(size=(5, 3))])
    found = single_exponential(X, S)
    assert found.dtype == np.float32
    assert_allclose(found, exponential(X, S), atol=2e-7)
    single = X.astype(np.float32), S.astype(np.float32)
    mapped = Projected(LocalExponential(2.0), np.eye(3)[:, :2])(*single)
    assert_allclose(mapped, exponential(*(a[:, :2] / 2.0 for a in single)), atol=1e-6)
    assert mapped.dtype == np.float32


def test_sums_in_single_precision_and_of_weights():
    X, Y, w = RNG.normal(size=(50, 2)), RNG.normal(size=(50, 1)), RNG.uniform(0.5, 2, size=50)
    exact = moments(X, Y, w, kernel=exponential, S=X[:6], fixed=nothing)
    Phi = exponential(X, X[:6])
    assert_allclose(exact.gram, (Phi * w[:, None]).T @ Phi)
    assert_allclose(exact.target, Phi.T @ (w[:, None] * Y))
    single = moments(X, Y, w, kernel=exponential, S=X[:6], fixed=nothing, dtype=np.float32)
    assert single.gram.dtype == np.float64 and single.weight == exact.weight
    assert_allclose(single.gram, exact.gram, rtol=1e-5)
    assert_allclose(single.target, exact.target, atol=1e-4)


def test_centers_are_doubled_only_where_that_helps():
    X = RNG.uniform(-1, 1, size=(1800, 2))
    smooth = X[:, :1] + 0.5 * RNG.normal(size=(1800, 1))
    rough = np.sign(np.sin(12 * X[:, :1]) * np.sin(12 * X[:, 1:]))
    sizes = []
    for Y in (smooth, rough):
        learner = WideLearner(
            Labeled(Rows(X, Y), None), np.arange(1400), np.arange(1400, 1800), True
        )
        trial = learner.trial(Wide("laplace", np.zeros(2)))
        found = learner.candidate(trial)
        sizes.append(len(found.model.support))
        model, whole = learner.finish(found), np.linalg.norm(found.coef)
        assert found.loss == learner.judge(learner.valid)(found.predictions)
        assert len(model.coef) == sizes[-1] and 0.1 < np.linalg.norm(model.coef) / whole < 10
    assert sizes[0] < sizes[1] == 1400


def test_a_machine_far_behind_the_others_keeps_few_centers():
    X = RNG.uniform(-1, 1, size=(1800, 2))
    Y = np.sign(np.sin(12 * X[:, :1]) * np.sin(12 * X[:, 1:]))
    learner = WideLearner(Labeled(Rows(X, Y), None), np.arange(1400), np.arange(1400, 1800), True)
    trial = learner.trial(Wide("laplace", np.zeros(2)))
    few = learner.candidate(trial, goal=0.0)
    many = learner.candidate(trial, goal=few.loss / 1.4)
    assert len(few.model.support) == 700
    assert len(many.model.support) == 1400


def test_sums_of_blocks_are_added_in_place():
    X, Y = RNG.normal(size=(30, 3)), RNG.normal(size=(30, 2))
    weight = RNG.uniform(0.5, 1.5, size=30)

    def sums(rows):
        return moments(X[rows], Y[rows], weight[rows], kernel=exponential, S=X[:5], fixed=nothing)

    first = sums(slice(20))
    memory = first.gram
    total = first.add(sums(slice(20, 30)))
    assert total.gram is memory
    for part, expected in zip(total, sums(slice(30))):
        assert_allclose(part, expected)


def test_slopes_are_those_of_differences():
    Z, S, coef = RNG.normal(size=(9, 3)), RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))
    Z[0] = S[0]  # no slope at its own center from that center
    exact = slopes(Z, S, exponential(Z, S), coef)
    h = 1e-6
    for k in range(3):
        step = h * np.eye(3)[k]
        numeric = (exponential(Z + step, S) - exponential(Z - step, S)) @ coef / (2 * h)
        assert_allclose(exact[:, :, k].T[1:], numeric[1:], rtol=1e-6, atol=1e-8)
        other = (
            (exponential(Z[:1] + step, S[1:]) - exponential(Z[:1] - step, S[1:]))
            @ coef[1:]
            / (2 * h)
        )
        assert_allclose(exact[:, 0, k], other[0], rtol=1e-6, atol=1e-8)


def test_the_map_shrinks_directions_in_which_nothing_changes():
    direction = np.array([3.0, 4.0, 0.0]) / 5
    gradients = RNG.normal(size=(1, 50, 1)) * direction
    A = slope_map(gradients)
    assert np.linalg.norm(direction @ A) == pytest.approx(1.0)
    assert np.linalg.norm(np.array([0, 0, 1.0]) @ A) == pytest.approx(1e-2, rel=1e-6)
    G = np.cov(RNG.normal(size=(3, 500)) * [[3.0], [2.0], [1.0]], bias=True)
    L = np.linalg.cholesky(G).T[None]
    B = slope_map(L)  # gradients whose outer products sum to G
    root = B @ B.T
    assert_allclose(
        root @ root / np.linalg.eigvalsh(root @ root)[-1], G / np.linalg.eigvalsh(G)[-1], atol=1e-8
    )
    assert_array_equal(slope_map(np.zeros((1, 4, 2))), np.eye(2))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_is_logistic_regression(n_classes):
    Phi = RNG.normal(size=(120, 4))
    labels = (Phi[:, 0] + RNG.normal(size=120) > 0).astype(int) + (n_classes == 3) * (
        Phi[:, 1] > 0.8
    )
    weight = RNG.uniform(0.5, 2, size=120)
    q = 1 if n_classes == 2 else 3
    gram = (Phi * weight[:, None]).T @ Phi
    shares = np.eye(n_classes)[labels]
    found = solve_logistic(Phi, shares, weight, np.eye(4), 2.0, gram, q, max_iter=500)
    peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8).fit(Phi, labels, weight)
    assert_allclose(found.coef.T, peer.coef_, atol=2e-3)
    assert found.certificate < 1e-2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_counts_every_class_of_equal_rows(n_classes):
    """Shares of the classes are the same as a row for each class with its part of the weight."""
    random = np.random.RandomState(0)
    Phi = random.normal(size=(60, 4))
    shares = random.dirichlet(np.ones(n_classes), 60)
    weight = random.uniform(0.5, 2, size=60)
    q = 1 if n_classes == 2 else 3
    gram = (Phi * weight[:, None]).T @ Phi
    found = solve_logistic(Phi, shares, weight, np.eye(4), 2.0, gram, q, max_iter=500)
    every = np.repeat(Phi, n_classes, axis=0)
    labels = np.tile(np.arange(n_classes), 60)
    peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8)
    peer.fit(every, labels, (weight[:, None] * shares).ravel())
    assert_allclose(found.coef.T, peer.coef_, atol=2e-3)


def test_wide_machines_know_every_class_of_equal_rows():
    random = np.random.RandomState(0)
    rows = Rows(random.normal(size=(6, 2)), np.zeros((6, 1)))
    labels = np.zeros(6, dtype=int)
    shares = random.dirichlet([1, 1], 6)
    known = Labeled(rows, labels, shares)
    assert_array_equal(known.take([4, 1]).class_shares, shares[[4, 1]])
    assert_array_equal(Labeled(rows, labels).class_shares, np.eye(2)[labels])
    learner = WideLearner(known, np.arange(4), np.arange(4, 6), linear=True)
    predictions = np.array([[2.0], [-2.0]])
    assert learner.judge(learner.valid)(predictions) == known.take([4, 5]).judge(predictions)


def test_pooled_scores_are_no_worse_than_the_best():
    n = 500
    truth = RNG.normal(size=(n, 1))
    labels = (truth[:, 0] + 0.3 * RNG.normal(size=n) > 0).astype(int)
    members = [
        truth + RNG.normal(size=(n, 1)),
        truth + RNG.normal(size=(n, 1)),
        RNG.normal(size=(n, 1)),
    ]

    def pool(members, weight, max_members=4):
        held = Labeled(Rows(truth, truth, weight), labels)
        return Pool.of(members, held, max_members).weights

    share = pool(members, np.ones(n))
    assert share.sum() == pytest.approx(1.0) and np.all(share[:2] > 0.3) and share[2] == 0
    assert_allclose(pool(members[::-1], np.ones(n))[::-1], share, atol=1e-4)
    assert_allclose(pool(members, np.full(n, 3.0)), share, atol=1e-6)
    assert len(np.flatnonzero(pool(members, np.ones(n), max_members=1))) == 1


def test_trees_do_not_see_the_rows_they_are_judged_on():
    X, Y = RNG.normal(size=(300, 4)), RNG.normal(size=(300, 1))  # noise
    folds = [(np.arange(200), np.arange(200, 300)), (np.arange(100, 300), np.arange(100))]
    found = tree_candidate(Labeled(Rows(X, Y), None), folds, seed=0)
    held = np.concatenate([valid for _, valid in folds])
    assert np.mean((found.out_of_fold - Y[held]) ** 2) > 0.9 * np.var(Y[held])
    late = (np.arange(300) >= 200).astype(int)
    assert tree_candidate(Labeled(Rows(X, Y), late), folds, seed=0) is None
    wide = Rows(np.zeros((3000, 3000), dtype=np.float32), np.zeros((3000, 10)))
    assert tree_candidate(Labeled(wide, None), folds[:1], seed=0) is None  # would take too long


@pytest.mark.parametrize(
    "n, d, q, iterations",
    [
        (9_999, 10, 1, 400),  # few rows
        (10_000, 10, 1, 2000),
        (1_000_000, 10, 1, 1000),  # 25 times the work of 10,000 rows
        (100_000, 100, 1, 1000),  # ten times the cells
        (10_000, 100, 10, 100),
        (3000, 3000, 10, 0),  # would take too long
    ],
)
def test_iterations_that_the_work_allows(n, d, q, iterations):
    rows = Rows(np.broadcast_to(np.float32(0), (100, d)), np.zeros((100, q)))
    further = Labeled(Rows(np.broadcast_to(np.float32(0), (n - 100, d)), np.zeros((1, q))), None)
    assert tree_members._most_iterations(rows, further, q) == iterations


def test_many_iterations_are_continued_in_larger_steps():
    assert [tree_members._half(n) for n in (50, 350, 400, 600, 910)] == [0, 0, 200, 300, 450]


def test_trees_learn_from_all_rows_of_larger_data():
    X = RNG.uniform(size=(2000, 2))
    Y = np.sign(X[:, :1] - 0.5) * np.sign(X[:, 1:] - 0.5) + 0.3 * RNG.normal(size=(2000, 1))
    rows, folds = Rows(X[:300], Y[:300]), [(np.arange(200), np.arange(200, 300))]
    few = tree_candidate(Labeled(rows, None), folds, seed=0)
    more = tree_candidate(
        Labeled(rows, None), folds, seed=0, further=Labeled(Rows(X[300:], Y[300:]), None)
    )
    few_error, error = (np.mean((c.out_of_fold - Y[200:300]) ** 2) for c in (few, more))
    assert error < few_error
    assert_allclose(more.refit()(X[200:300]), more.out_of_fold)


@pytest.mark.parametrize("seed", range(3))
def test_iterations_of_trees_are_those_of_the_least_log_loss(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(240, 4))
    # noiseless: few trees are right as often, but not as sure
    labels = (X[:, 0] + X[:, 1] > 0).astype(int)
    train, valid = np.arange(160), np.arange(160, 240)
    rows = Rows(X, 2.0 * labels[:, None] - 1)
    found = tree_candidate(Labeled(rows, labels), [(train, valid)], seed=0).out_of_fold[:, 0]
    model = boost(Labeled(rows, labels).take(train), 50, 0)[0]  # the fewest that are tried
    losses = [log_loss(labels[valid], p) for p in list(model.staged_predict_proba(X[valid]))[9::10]]
    assert log_loss(labels[valid], expit(found)) <= min(losses) + 1e-12


def test_trees_far_behind_the_others_are_given_up():
    X = RNG.uniform(size=(400, 3))
    Y = X.sum(axis=1, keepdims=True)  # ever more trees come ever closer
    rows, folds = Rows(X, Y), [(np.arange(300), np.arange(300, 400))]
    alone = tree_candidate(Labeled(rows, None), folds, seed=0).refit()
    behind = tree_candidate(
        Labeled(rows, None), folds, seed=0, rivals=[0 * Y[300:], Y[300:]]
    ).refit()
    assert behind.models[0].n_iter_ < alone.models[0].n_iter_


def test_larger_trees_compete_where_many_rows_ask_for_more_iterations(monkeypatch):
    X = RNG.uniform(size=(3000, 2))
    Y = np.sign(np.sin(25 * X[:, :1]) * np.sin(25 * X[:, 1:]))  # a board of many fields
    rows, folds = Rows(X, Y), [(np.arange(2500), np.arange(2500, 3000))]
    limits = replace(tree_members.LIMITS, work=60 * 3000)
    monkeypatch.setattr(tree_members, "LIMITS", limits)
    small = tree_candidate(Labeled(rows, None), folds, seed=0)
    monkeypatch.setattr(tree_members, "LIMITS", replace(limits, many_rows=2500))
    large = tree_candidate(Labeled(rows, None), folds, seed=0)
    leaves = [each.refit().models[0].max_leaf_nodes for each in (small, large)]
    assert leaves == [31, 127]
    errors = [np.mean((each.out_of_fold - Y[2500:]) ** 2) for each in (small, large)]
    assert errors[1] < 0.9 * errors[0]


def test_a_learned_map_finds_the_direction():
    X = RNG.normal(size=(900, 6))
    Y = np.sin(3 * (X[:, :1] + X[:, 1:2]) / np.sqrt(2))
    learner = WideLearner(
        Labeled(Rows(X, Y), None), np.arange(600), np.arange(600, 900), linear=True
    )
    first = learner.search(Wide("exponential", np.full(6, 0.5)))
    turned = learner.turned(first)
    assert turned.loss < 0.7 * first.loss
    A = turned.wide.projection
    along = np.linalg.norm(np.array([1, 1, 0, 0, 0, 0]) / np.sqrt(2) @ A)
    assert along > 2 * np.linalg.norm(np.array([0, 0, 1, 0, 0, 0]) @ A)


@pytest.mark.parametrize("d", [10, 60])
def test_one_bandwidth_competes_where_features_are_many(d):
    X = RNG.normal(size=(300, d))
    Y = np.sign(np.linalg.norm(X, axis=1, keepdims=True) - np.sqrt(d))
    # bandwidths that a bad draw of rows has learned
    labels, start = (Y[:, 0] > 0).astype(int), RNG.normal(size=d)
    learner = WideLearner(
        Labeled(Rows(X, Y), None), np.arange(200), np.arange(200, 300), True, labels
    )
    shared = {"gaussian": [start], "laplace": [start + np.log(d)]}
    found = by_name(wide_candidates([learner], shared, learner))
    one = ["gaussian, many centers"] if d == 60 else []
    assert list(found) == ["laplace, many centers", *one, "exponential, learned map"]
    assert "gaussian, many centers" in by_name(
        wide_candidates([learner], {"gaussian": [start]}, learner)
    )
    if one:
        judge = Labeled(Rows(X[200:], Y[200:]), labels[200:]).judge
        assert judge(found[one[0]].out_of_fold) < judge(found["laplace, many centers"].out_of_fold)
        assert np.ndim(found[one[0]].refit().log_bandwidths) == 0


def by_the_attributes(model, T):
    """The sum of the forms, with the kernel of a mapped form written out."""
    total = 0.0
    for form in model.members_:
        if isinstance(form, Trees):
            total = total + form.weight * form(T)
            continue
        Z = form.scaling(T)
        A = np.eye(T.shape[1]) if form.projection is None else form.projection
        K = form.kernel(Z @ A, form.centers @ A)
        if form.projection is not None:
            assert isinstance(form.kernel, LocalExponential)
        total = total + form.weight * (K @ form.dual_coef.T + form.intercept + Z @ form.coef.T)
    return total


@pytest.mark.slow
def test_many_rows_have_wide_members(monkeypatch):
    # in double precision throughout: the attributes are then exactly what predicts
    in_double = replace(fit.PREDICTIONS, fewest_centers=10**9)
    monkeypatch.setattr(fit, "PREDICTIONS", in_double)
    X, y = make_friedman1(1600, n_features=6, noise=1.0, random_state=0)
    X, T, y, z = X[:1100], X[1100:], y[:1100], y[1100:]
    model = TableRegressor(random_state=0).fit(X, y)
    few = TableRegressor(["local"], random_state=0).fit(X, y)
    tried = {
        "gaussian",
        "laplace",
        "laplace, many centers",
        "exponential, learned map",
        "boosted trees",
    }
    assert set(model.validation_errors_) == tried and set(few.validation_errors_) == {
        "gaussian",
        "laplace",
    }
    assert model.score(T, z) > few.score(T, z) - 0.005
    assert_allclose(sum(form.weight for form in model.members_), 1)
    assert_allclose(by_the_attributes(model, T)[:, 0], model.predict(T), rtol=1e-8)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    of_test = np.digitize(z, np.quantile(y, [0.3, 0.7]))
    classifier = TableClassifier(random_state=0).fit(X, labels)
    scores = by_the_attributes(classifier, T)
    calibration = classifier.calibration_
    logs = log_softmax(calibration.slope * scores + calibration.bias, axis=1)
    assert_allclose(np.log(classifier.predict_proba(T)), logs, rtol=1e-6)
    few = TableClassifier(["local"], random_state=0).fit(X, labels)
    assert (
        log_loss(of_test, classifier.predict_proba(T))
        < log_loss(of_test, few.predict_proba(T)) + 0.01
    )
    assert any(isinstance(form, LocalForm) for form in model.members_)


def trust(X, Y, gaps=None):
    """How far the targets are trusted, without weights or copies."""
    n = len(X)
    if gaps is None:
        gaps = np.zeros((n, 0), dtype=bool)
    return trust_in_targets(X, Y, np.ones(n), np.arange(n), 0, gaps)


@pytest.mark.slow
def test_gross_errors_lose_their_weight_and_hard_rows_keep_it():
    random = np.random.RandomState(0)
    X = random.normal(size=(400, 3))
    f = np.sin(2 * X[:, :1]) + X[:, 1:2]
    Y = f + 0.1 * random.normal(size=(400, 1))
    alone = np.arange(400)
    assert trust(X, Y).min() == 1.0
    moved = random.permutation(400)[:8]
    wrong = Y.copy()
    wrong[moved] += 10 * random.choice([-1, 1], size=(8, 1))
    weight = trust(X, wrong)
    assert np.all(weight[moved] < 0.1) and np.mean(weight[np.delete(alone, moved)] == 1) > 0.9
    # rare large values that the features foretell are no errors
    steep = np.exp(3 * X[:, :1])
    assert np.sum(trust(X, steep / steep.std()) < 0.5) < 8
    model = TableRegressor(max_iter=20, random_state=0).fit(X[:300], wrong[:300, 0])
    assert set(moved[moved < 300]) <= set(model.outliers_)
    clean = TableRegressor(max_iter=20, random_state=0).fit(X[:300], Y[:300, 0])
    assert len(clean.outliers_) == 0
    assert model.score(X[300:], f[300:, 0]) > clean.score(X[300:], f[300:, 0]) - 0.02


@pytest.mark.parametrize("n_wrong", [1, 2])
def test_one_or_two_impossible_targets_do_not_hide_the_others(n_wrong):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=150)
    wrong = y.copy()
    wrong[:n_wrong] = 9999.0
    weight = trust(X, wrong[:, None] / wrong.std())
    assert np.all(weight[:n_wrong] < 1e-4) and np.mean(weight > 0.5) > 0.9
    assert TableRegressor(random_state=0).fit(X[:110], wrong[:110]).score(X[110:], y[110:]) > 0.95


def test_the_largest_of_targets_with_tails_are_no_errors():
    random = np.random.RandomState(2)
    X = random.randn(300, 4)
    y = np.exp(1.5 * X[:, 0] + 0.75 * X[:, 1] + 0.5 * random.randn(300))[:150]
    assert np.sort(y)[-2] > 10 * np.sort(y)[-3]
    assert trust(X[:150], y[:, None] / y.std()).min() == 1.0


@pytest.mark.slow
def test_wide_machines_need_the_memory_they_are_planned_with():
    assert center_count(1000, 1e12) == 0  # all rows are centers of another candidate
    assert center_count(1001, 1e12) == 1001 and center_count(10**6, 1e12) == 3000
    assert center_count(10**6, 1e9) < 1600 and center_count(10**6, 1e7) == 0
    X, Y, m = RNG.normal(size=(1500, 3)), RNG.normal(size=(1500, 1)), 1200
    labels = (Y[:, 0] > 0).astype(int)
    for of_rows in (None, labels):
        known = Labeled(Rows(X, Y), of_rows)
        learner = WideLearner(known, np.arange(1200), np.arange(1200, 1500), True, n_centers=m)
        best = learner.trial(Wide("exponential", np.zeros(3)))
        tracemalloc.start()
        kept = [learner.candidate(best) for _ in range(2)]  # as many as a fit has
        learner.finish(kept[0])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100.0 * m**2 + 1.25 * BLOCK_BYTES


def test_rows_that_miss_what_matters_are_no_outliers_and_errors_among_them_are():
    random = np.random.RandomState(0)
    x, missing = random.normal(size=300), random.uniform(size=300) < 0.15
    y = 2 * x**3 + x + 0.05 * random.normal(size=300)
    X = np.stack([np.where(missing, 0.0, x), random.normal(size=300), missing], axis=1)
    Y = (y / y.std())[:, None]
    assert trust(X, Y)[missing].mean() < 0.5
    assert trust(X, Y, missing[:, None])[missing].mean() > 0.9
    wrong = Y.copy()
    wrong[np.flatnonzero(missing)[:3]] += 1000.0
    assert trust(X, wrong, missing[:, None])[np.flatnonzero(missing)[:3]].max() < 0.01


def test_kernels_of_few_centers_predict_in_double_precision():
    X = RNG.uniform(-2, 2, size=(100, 3))
    model = TableRegressor(["local"], max_iter=5, random_state=0).fit(X, np.sin(2 * X[:, 0]))
    assert {form.centers.dtype for form in model.members_} == {np.dtype(np.float64)}


def test_kernels_predict_in_single_precision_if_that_changes_little(monkeypatch):
    monkeypatch.setattr(fit, "PREDICTIONS", replace(fit.PREDICTIONS, fewest_centers=0))
    X = RNG.uniform(-2, 2, size=(200, 3))
    y = 5 * np.sin(2 * X[:, 0]) + X[:, 1]
    model = TableRegressor(["local"], max_iter=5, random_state=0).fit(X[:150], y[:150])
    for form in model.members_:
        assert form.centers.dtype == np.float32
        double = form._replace(centers=form.scaling(form.support_vectors))
        change = np.abs(form(X) - double(X)).max()
        assert 0 < change < 1e-3 * y.std()
        large = double._replace(dual_coef=1e6 * double.dual_coef)  # these would cancel
        assert in_single(large, X).centers.dtype == np.float64
