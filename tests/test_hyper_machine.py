"""Stage 2 of the hyper-kernel estimators: linear machines from sums, flipped matrices, choices, and scale."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from oracles.hyper import flipped_matrices, squared_hinge_value
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from mercerless import config_context
from mercerless.hyper.estimators import HyperClassifier, HyperRegressor, HyperRidge, HyperSVR
from mercerless.hyper.linear import hinge_sums, moment_sums, ridge_choice, squared_hinge
from mercerless.hyper.machine import (
    KernelStage,
    LinearStage,
    Numbers,
    Stage,
    _draws_of_folds,
    _ExactMachines,
    _mean_by_row,
    _walk_down,
    compare_stages,
    normalized,
)
from mercerless.hyper.selection import (
    FoldPaths,
    KernelPath,
    Regression,
    encode_target,
    learn_kernel,
    make_design,
)
from mercerless.hyper.solver import normal_equations
from mercerless.kernels import Gaussian, Sigmoid
from mercerless.kernels.hyper import GaussianHyper, TensorHyper, WishartHyper
from mercerless.persistence import load, save

pytestmark = pytest.mark.slow


def hinge_data(n=200, d=6, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    sign = np.where(Z[:, 0] + 0.5 * Z[:, 1] ** 2 + 0.3 * rng.normal(size=n) > 0.4, 1.0, -1.0)
    return scale * Z, sign


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_squared_hinge_is_stationary_at_every_scale(scale, C):
    Z, sign = hinge_data(scale=scale)
    C = C / scale**2
    got = squared_hinge(partial(hinge_sums, Z, sign[:, None]), 6, np.array([C]))
    assert got.certificate <= 1e-10 and got.n_iter <= 20
    w, b = got.coef[:, 0], got.intercept[0]
    inside = np.maximum(0.0, 1 - sign * (Z @ w + b))
    terms = 2 * C * (inside * sign) @ Z
    assert np.linalg.norm(w - terms) <= 1e-7 * np.linalg.norm(w)
    assert abs(np.sum(inside * sign)) <= 1e-7 * np.sum(inside)


def test_squared_hinge_is_the_minimum_of_a_general_optimizer():
    Z, sign = hinge_data(seed=3)
    value = partial(squared_hinge_value, Z, sign, 2.0)
    got = squared_hinge(partial(hinge_sums, Z, sign[:, None]), 6, np.array([2.0]))
    weights = np.append(got.coef[:, 0], got.intercept)
    other = minimize(value, np.zeros(7), tol=1e-14)
    assert value(weights) <= other.fun * (1 + 1e-12)
    np.testing.assert_allclose(weights, other.x, rtol=1e-4, atol=1e-5)
    rng = np.random.default_rng(0)
    assert all(
        value(weights) <= value(weights + s * rng.normal(size=7)) for s in np.logspace(-6, 1, 200)
    )


def test_squared_hinge_goes_on_where_all_lengths_of_a_pass_are_too_long():
    """Almost separable rows and a large C: the first Newton step is good for less than a 128th of its length."""
    rng = np.random.default_rng(120)
    Z = rng.normal(size=(60, 60)) / np.sqrt(60)
    sign = np.where(np.sqrt(60) * Z[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    got = squared_hinge(partial(hinge_sums, Z, sign[:, None]), 60, np.array([1e3]))
    assert got.certificate <= 1e-10


def test_weights_of_the_squared_hinge_are_repetitions():
    Z, sign = hinge_data(60)
    weight = np.arange(60) % 3
    index = np.repeat(np.arange(60), weight)
    once = squared_hinge(
        partial(hinge_sums, Z, (sign * np.sqrt(weight))[:, None]), 6, np.array([2.0])
    )
    again = squared_hinge(partial(hinge_sums, Z[index], sign[index][:, None]), 6, np.array([2.0]))
    np.testing.assert_allclose(once.coef, again.coef, rtol=1e-8)
    np.testing.assert_allclose(once.intercept, again.intercept, rtol=1e-8)


def test_squared_hinge_degenerate_and_callback():
    Z, _ = hinge_data(20)
    one = squared_hinge(partial(hinge_sums, Z, np.ones((20, 1))), 6, np.array([1.0]))
    np.testing.assert_allclose([*one.coef[:, 0], one.intercept[0]], [0] * 6 + [1], atol=1e-9)
    nothing = squared_hinge(partial(hinge_sums, Z[:, :0], np.ones((20, 1))), 0, np.array([1.0]))
    np.testing.assert_allclose(nothing.intercept, 1)
    Z, sign = hinge_data()
    seen = []
    stopped = squared_hinge(
        partial(hinge_sums, Z, sign[:, None]),
        6,
        np.array([1.0]),
        callback=lambda info: seen.append(info) or len(seen) == 2,
    )
    assert stopped.n_iter == 2 and seen[0]["residual"] >= seen[1]["residual"] >= 0


def test_several_problems_are_those_of_each_alone_and_blocks_add_up():
    Z, sign = hinge_data()
    signs = np.column_stack([sign, np.where(Z[:, 2] > 0.5, 1.0, -1.0)])

    def run(old, new):
        parts = [
            hinge_sums(Z[rows], signs[rows], old, new) for rows in (slice(0, 77), slice(77, None))
        ]
        return [a + b for a, b in zip(*parts)]

    both = squared_hinge(run, 6, np.array([1.0, 5.0]))
    for k, C in enumerate((1.0, 5.0)):
        alone = squared_hinge(partial(hinge_sums, Z, signs[:, k : k + 1]), 6, np.array([C]))
        np.testing.assert_allclose(both.coef[:, k], alone.coef[:, 0], rtol=1e-8)


def test_ridge_from_moments_equals_scikit_learn_and_its_cross_validation():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(120, 8))
    y = Z @ rng.normal(size=8) + 3 + rng.normal(size=120)
    fold_of, grid = np.arange(120) % 4, np.logspace(-3, 2, 6)
    blocks = [
        moment_sums(Z[rows], y[rows], fold_of[rows], 4) for rows in (slice(0, 50), slice(50, None))
    ]
    got = ridge_choice(blocks[0] + blocks[1], grid)
    errors = [
        sum(
            np.sum(
                (
                    Ridge(1 / C).fit(Z[fold_of != f], y[fold_of != f]).predict(Z[fold_of == f])
                    - y[fold_of == f]
                )
                ** 2
            )
            for f in range(4)
        )
        / 120
        for C in grid
    ]
    np.testing.assert_allclose(got.errors, errors, rtol=1e-8)
    assert got.C == grid[np.argmin(errors)] and got.solution.certificate < 1e-10
    expected = Ridge(1 / got.C).fit(Z, y)
    np.testing.assert_allclose(got.solution.coef[:, 0], expected.coef_, rtol=1e-8)
    np.testing.assert_allclose(got.solution.intercept[0], expected.intercept_, rtol=1e-8)


def test_an_infinite_pair_scale_is_the_plain_gaussian():
    X, y = load_iris(return_X_y=True)
    target = np.where(y[:, None] == y, 1.0, -0.5)
    hyper, alpha = GaussianHyper(1.5, np.inf), 1e-3
    for landmarks in (30, None):
        rows = slice(None, None, 1 if landmarks else 3)
        kernel = (
            HyperRidge(hyper, alpha=alpha, landmarks=landmarks, random_state=0, tol=1e-12)
            .fit(X[rows], y[rows])
            .kernel_
        )
        K, T = Gaussian(1.5)(X[rows]), target[rows, rows]
        factor = np.sum(K * T) / (np.sum(K * K) + alpha * len(K) ** 2)
        np.testing.assert_allclose(kernel(X[rows]), factor * K, rtol=1e-7, atol=1e-9)
    assert len(HyperRidge(hyper, alpha=alpha, landmarks=30).fit(X, y).kernel_.coef) == 1
    with pytest.raises(ValueError, match="pair_scale"):
        HyperRidge(GaussianHyper(1.0, -np.inf), alpha=1.0).fit(X, y)


def test_the_machine_flips_negative_directions():
    """An indefinite kernel: the machine is that of the flipped matrix, for new rows too."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    A, a, B = X[:150], y[:150], X[150:300]
    kernel = Sigmoid(1.0, 0.5)
    assert np.linalg.eigvalsh(kernel(A))[0] < -1
    flipped, new = flipped_matrices(kernel(A), kernel(B, A))
    expected = SVC(kernel="precomputed", C=3.0).fit(flipped, a).decision_function(new)
    got = KernelStage().fit(kernel, A, a, 3.0)
    np.testing.assert_allclose(got.evaluate("decision_function", B), expected, rtol=1e-6, atol=1e-8)
    plain = KernelStage().fit(Gaussian(4.0), A, a, 3.0)
    same = SVC(kernel=Gaussian(4.0), C=3.0).fit(A, a)
    np.testing.assert_allclose(
        plain.evaluate("decision_function", B), same.decision_function(B), rtol=1e-8, atol=1e-10
    )


def test_ridge_scores_are_those_of_kernel_ridge_on_the_flipped_matrix():
    X, y = make_friedman1(120, 5, random_state=0)
    kernel, stage = Sigmoid(0.5, -0.5), KernelStage(0.1, Numbers(0.0, 1.0))
    flipped, new = flipped_matrices(kernel(X[:80]), kernel(X[80:], X[:80]))
    mean = y[:80].mean()
    expected = [
        (new @ np.linalg.solve(flipped + np.eye(80) / C, y[:80] - mean) + mean - y[80:]) ** 2
        for C in stage.grid
    ]
    np.testing.assert_allclose(
        stage.losses(kernel, X[:80], y[:80], X[80:], y[80:]), np.transpose(expected), rtol=1e-6
    )


def test_ridge_scores_of_a_definite_kernel_are_those_of_kernel_ridge():
    X, y = make_friedman1(700, 5, random_state=0)
    kernel, stage = Gaussian(1.5), KernelStage(0.1, Numbers(0.0, 1.0))
    for train, test in (
        (slice(0, 80), slice(80, 120)),
        (slice(0, 80), slice(80, 700)),  # too many rows for one matrix
    ):
        K, mean = kernel(X[train]), y[train].mean()
        expected = [
            kernel(X[test], X[train]) @ np.linalg.solve(K + np.eye(80) / C, y[train] - mean)
            + mean
            - y[test]
            for C in stage.grid
        ]
        found = stage.losses(kernel, X[train], y[train], X[test], y[test])
        np.testing.assert_allclose(found, np.transpose(expected) ** 2, rtol=1e-6)


def test_losses_of_exact_machines_end_with_the_fold_that_decides():
    X, y = make_friedman1(90, 5, random_state=0)
    targets = Numbers(float(y.mean()), float(y.std()))
    stage = KernelStage(0.1, targets)
    stage.grid = np.array([1e-6, 1.0, 100.0])
    splits = [(np.setdiff1d(np.arange(90), test), test) for test in np.arange(90).reshape(3, 30)]
    matrices = [stage.matrices(Gaussian(2.0), X[train], X[test]) for train, test in splits]

    def alone(k, fold):
        train, test = splits[fold]
        machine = SVR(kernel="precomputed", C=stage.grid[k], epsilon=0.1)
        K, K_new = matrices[fold]
        machine.fit(K, (y[train] - targets.mean) / targets.std)
        predicted = machine.predict(K_new) * targets.std + targets.mean
        return (predicted - y[test]) ** 2

    machines = _ExactMachines(stage, lambda rows: Gaussian(2.0), X, y, splits)
    complete = np.concatenate([alone(1, fold) for fold in range(3)])
    np.testing.assert_allclose(machines.losses(1), complete, rtol=1e-6)
    worse = [alone(0, fold) for fold in range(3)]
    n_folds = 1 + int(np.argmax(np.cumsum([block.sum() for block in worse]) > complete.sum()))
    assert n_folds < 3  # a constant is far worse
    np.testing.assert_allclose(machines.losses(0), np.concatenate(worse[:n_folds]), rtol=1e-6)
    better = np.concatenate([alone(2, fold) for fold in range(3)])
    assert better.sum() < complete.sum()
    np.testing.assert_allclose(machines.losses(2), better, rtol=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "product", "classes"])
def test_a_constant_hyper_kernel_learns_a_multiple_of_one_gaussian(kind):
    X, y = make_friedman1(40, random_state=0)
    if kind == "classes":
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    fold_of = np.arange(40) % 3
    rows = np.flatnonzero(fold_of != 1)
    pairs = encode_target(y[rows], len(rows), kind).target
    task = Regression(GaussianHyper(1.5, np.inf), alpha=1e-6, n_landmarks=30)
    path = FoldPaths(task, X, fold_of, np.random.RandomState(3)).without(1, pairs)
    learned, _ = learn_kernel(task, X[rows], pairs, np.random.RandomState(3))
    assert learned.coef > 0
    np.testing.assert_allclose(path.kernel(1e-6)(X), learned(X) / learned.coef, rtol=1e-12)
    with_intercept = FoldPaths(
        task._replace(fit_intercept=True), X, fold_of, np.random.RandomState(3)
    ).without(1, pairs)
    learned, _ = learn_kernel(
        task._replace(fit_intercept=True), X[rows], pairs, np.random.RandomState(3)
    )
    np.testing.assert_allclose(with_intercept.kernel(1e-6)(X), learned(X), rtol=1e-7)


def test_the_regressor_is_near_a_tuned_gaussian_machine():
    """A steep target: an indefinite kernel left to libsvm gets half of the variance here."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(160, 4))
    y = np.exp(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=160)
    A, a, B, b = X[:100], y[:100], X[100:], y[100:]
    grid = {"C": a.std() * np.logspace(0, 3, 4), "gamma": [0.1, 0.3, 1.0]}
    tuned = GridSearchCV(SVR(epsilon=0.05 * a.std()), grid, cv=3).fit(A, a).score(B, b)
    model = HyperRegressor(HyperRidge("gaussian", landmarks=80, cv=3), cv=3, random_state=0).fit(
        A, a
    )
    assert tuned > 0.9 and model.score(B, b) > tuned - 0.03
    assert len(model.cv_results_) >= 9 and {"hyper_kernel", "alpha", "score"} == set(
        model.cv_results_[0]
    )


def test_a_learned_kernel_has_to_beat_the_base_kernel_by_more_than_chance():
    """Nine errors of the base kernel: three fewer are luck, four fewer are not."""

    class Judge(Stage):
        grid = np.array([1.0])

        def losses(self, kernel, X, y, Z, z):
            return np.full((len(z), 1), 1 - kernel / len(z))

    splits = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    X, y = np.zeros((100, 1)), np.zeros(100)
    for gain, expected in ((3.0, 0), (4.0, 1)):
        kernels = (91 / 2, (91 + gain) / 2)
        learn = partial(lambda kernels, index, rows: kernels[index], kernels)
        assert compare_stages(Judge(), learn, 2, X, y, splits, n_base=1).candidate == expected
    assert compare_stages(Judge(), lambda index, rows: index, 3, X, y, splits).candidate == 2


def test_the_loss_weight_is_that_of_the_kernel_as_it_is_fitted():
    """Candidates are compared by one kernel each, C is chosen by another."""

    class Judge(Stage):
        grid = np.array([1.0, 10.0, 100.0])

        def losses(self, kernel, X, y, Z, z):
            return np.tile(kernel, (len(z), 1))

    splits = [(np.arange(5), np.arange(5, 10)), (np.arange(5, 10), np.arange(5))]
    compared = [np.array([0.3, 0.2, 0.4]), np.array([0.1, 0.2, 0.3])]
    fitted = [np.array([0.0, 0.0, 0.0]), np.array([0.9, 0.8, 0.7])]
    data = np.zeros((10, 1)), np.zeros(10), splits

    def learn(index, rows):
        return compared[index]

    assert compare_stages(Judge(), learn, 2, *data)[:2] == (1, 1.0)
    choice = compare_stages(
        Judge(), learn, 2, *data, learn_as_fitted=lambda index, rows: fitted[index]
    )
    assert choice[:2] == (1, 100.0)
    np.testing.assert_allclose(choice.losses, np.full(10, 0.7))


def test_few_labels_are_held_out_several_times():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.arange(300) % 3

    def draws(n, cv=5, classify=True):
        return _draws_of_folds(cv, X[:n], y[:n], classify, np.random.RandomState(0))

    assert [len(draws(n)) for n in (30, 70, 150, 300)] == [5, 5, 2, 1]
    assert len(draws(30, classify=False)) == 1 and len(draws(30, KFold(3))) == 1
    first, second = draws(150)
    assert np.any(first != second)
    assert np.bincount(second).tolist() == [30] * 5


def test_losses_of_rows_held_out_several_times_are_means():
    splits = [(np.array([2, 3]), np.array([1, 0])), (np.array([0, 1]), np.array([3, 1]))]
    losses = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    expected = [[2.0, 20.0], [2.5, 25.0], [3.0, 30.0]]  # of rows 0, 1 (twice) and 3
    np.testing.assert_array_equal(_mean_by_row(losses, splits), expected)
    np.testing.assert_array_equal(_mean_by_row(losses[:, 0], splits), [2.0, 2.5, 3.0])


def test_labels_that_the_base_kernel_knows_leave_the_base_kernel():
    """Where learning cannot help, the plain Gaussian wins the tie, and the model says so."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 8])
    y = np.repeat(["a", "b"], 40)
    model = HyperClassifier(HyperRidge("gaussian", landmarks=30, cv=3), cv=3, random_state=0).fit(
        X, y
    )
    assert model.hyper_kernel_.pair_scale == np.inf and model.score(X, y) == 1.0
    ratio = model.kernel_(X[:5], X) / Gaussian(model.hyper_kernel_.length_scale)(X[:5], X)
    np.testing.assert_allclose(ratio, 1.0, rtol=1e-6)


def rings(n, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize((X**2).sum(axis=1), [2.4, 4.5][: classes - 1])


FAST = {"machine": "linear", "n_components": 60, "max_samples": 600, "random_state": 0}


def learner(hyper="gaussian", **options):
    return HyperRidge(hyper, **{"landmarks": 40, "n_parts": "auto", "tol": 1e-4, **options})


@pytest.mark.parametrize(
    "classes, hyper", [(2, "gaussian"), (3, GaussianHyper(1.5))], ids=["two", "three"]
)
def test_the_linear_machine_chooses_everything(classes, hyper):
    X, y = rings(900, classes=classes)
    model = HyperClassifier(learner(hyper, landmarks=25, cv=2), cv=2, **FAST).fit(X, y)
    assert model.C_ in np.logspace(-1, 3, 5) and model.machine_.certificate < 1e-8
    assert model.learner_.n_parts == 1 and len(model.learner_.X_fit_) == 600
    Z, z = rings(800, seed=1, classes=classes)
    assert model.score(Z, z) > 0.93
    values = model.decision_function(Z)
    assert values.shape == ((800,) if classes == 2 else (800, 3))
    best = (values > 0).astype(int) if classes == 2 else values.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(Z), best)


def test_stage_1_is_divided_where_there_are_many_items():
    X, y = rings(1300)
    model = HyperClassifier(
        learner(GaussianHyper(2.0), alpha=1e-3), C=1.0, **{**FAST, "max_samples": 1200}
    ).fit(X, y)
    assert model.learner_.n_parts == 3
    given = HyperClassifier(learner(GaussianHyper(2.0), alpha=1e-3, n_parts=13), C=1.0, **FAST).fit(
        X, y
    )
    assert given.learner_.n_parts == 6  # parts of 100 rows, in a sample of 600
    with pytest.raises(ValueError, match="n_parts must be an integer between 1 and the 1300 items"):
        HyperClassifier(learner(n_parts=1400), **FAST).fit(X, y)
    with pytest.raises(ValueError, match="max_samples"):
        HyperClassifier(max_samples=0).fit(X, y)


@pytest.mark.parametrize("machine", ["svm", "linear"])
def test_fitted_models_are_saved_and_loaded(tmp_path, machine):
    pytest.importorskip("skops")
    X, y = rings(80)
    model = HyperClassifier(
        learner(GaussianHyper(1.5), alpha=1e-3), C=1.0, **{**FAST, "machine": machine}
    ).fit(X, y)
    save(model, tmp_path / "model.skops")
    for copy in (load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


# ---- scale ----


def test_dask_and_memory_maps_equal_arrays(tmp_path):
    da = pytest.importorskip("dask.array")
    import dask

    X, y = rings(3300)
    settings = {"learner": learner(GaussianHyper(1.5), alpha=1e-3), "C": 10.0, **FAST}
    expected = HyperClassifier(**settings).fit(X, y)
    values = expected.decision_function(X)
    np.save(tmp_path / "X.npy", X)
    mapped = HyperClassifier(**settings).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    np.testing.assert_allclose(mapped.decision_function(X), values, rtol=1e-8, atol=1e-8)
    lazy = da.from_array(X, chunks=(700, 2))
    for limit in (None, "2MB"):  # features kept, and computed again in every pass
        with dask.config.set(scheduler="threads"), config_context(memory_limit=limit):
            model = HyperClassifier(**settings)
            model.fit(lazy, da.from_array(y, chunks=700))
            got = model.decision_function(lazy)
            assert isinstance(got, da.Array) and isinstance(model.predict(lazy), da.Array)
            np.testing.assert_allclose(got.compute(), values, rtol=1e-8, atol=1e-8)
            np.testing.assert_array_equal(model.predict(lazy).compute(), expected.predict(X))
    with pytest.raises(ValueError, match="machine='svm' needs all rows in memory"):
        HyperClassifier(machine="svm").fit(lazy, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        HyperClassifier().fit(lazy, y[:-1])
    with pytest.raises(ValueError, match="features"):
        expected.predict(lazy[:, :2])


def test_dask_regression_equals_arrays():
    da = pytest.importorskip("dask.array")
    X, _ = rings(3200)
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    settings = {"learner": learner(GaussianHyper(1.5), alpha=1e-3), "cv": 2, **FAST}
    expected = HyperRegressor(**settings).fit(X, y)
    assert expected.score(X, y) > 0.95
    got = HyperRegressor(**settings).fit(da.from_array(X, chunks=900), y)
    assert got.C_ == expected.C_
    np.testing.assert_allclose(got.predict(X), expected.predict(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_parts", [1, 4])
def test_ridge_reads_parts_of_dask_arrays_and_memory_maps(tmp_path, n_parts):
    da = pytest.importorskip("dask.array")
    X, y = rings(400)
    make = partial(HyperRidge, GaussianHyper(1.5), landmarks=30, n_parts=n_parts, random_state=0)
    expected = make().fit(X, y)
    lazy = da.from_array(X, chunks=150)
    got = make().fit(lazy, y)
    np.testing.assert_allclose(got.kernel_.coef, expected.kernel_.coef, rtol=1e-8)
    result = got.transform(lazy)
    assert isinstance(result, da.Array)
    np.testing.assert_allclose(result.compute(), expected.transform(X), rtol=1e-8, atol=1e-10)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = make().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    single = make().fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(mapped.kernel_.coef, single.kernel_.coef)


def test_results_do_not_depend_on_the_number_of_workers():
    X, y = rings(300)
    make = partial(
        HyperRidge, GaussianHyper(1.5), alpha=1e-3, landmarks=30, n_parts=4, random_state=0
    )
    serial = make().fit(X, y).kernel_.coef
    with parallel_config(backend="multiprocessing"):
        np.testing.assert_allclose(make(n_jobs=2).fit(X, y).kernel_.coef, serial, rtol=1e-8)
    with parallel_config(backend="threading"):
        np.testing.assert_allclose(make(n_jobs=3).fit(X, y).kernel_.coef, serial, rtol=1e-8)


def test_similarities_are_not_divided():
    X, _ = rings(30)
    S = np.exp(-np.abs(X[:, :1] - X[:, 0]))
    with pytest.raises(
        ValueError,
        match="n_parts, nonnegative and fit_intercept belong to the Gaussian and Wishart",
    ):
        HyperRidge(n_parts=2).fit(X, S)


def test_a_constant_of_the_learned_kernel_does_not_set_its_scale():
    """A weak loss leaves little but the constant of a support vector regression; the machine must see the rest."""
    X, y = rings(80)
    model = HyperClassifier(HyperSVR(GaussianHyper(1.0), landmarks=40), random_state=0).fit(X, y)
    assert model.learner_.kernel_.intercept != 0
    np.testing.assert_allclose(np.mean(np.abs(model.kernel_.diag(X))), 1.0)
    flat = model.kernel_.kernel
    assert flat.intercept == 0
    np.testing.assert_array_equal(flat.coef, model.learner_.kernel_.coef)
    weak = HyperSVR(GaussianHyper(1.0), C=1e-7, landmarks=40, random_state=0).fit(X, y).kernel_
    assert np.ptp(weak(X)) < 1e-2 < np.ptp(normalized(weak, X)(X))


def test_memory_of_the_linear_machine_does_not_grow_with_the_rows():
    """40,000 rows have 32 MB of features; under a tight limit they are never held together."""
    X, y = rings(40_000)
    tracemalloc.start()
    with config_context(memory_limit="50MB"):
        tight = LinearStage(100, 5, 0).fit(Gaussian(1.5), X, y, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with config_context(memory_limit="4GB"):
        roomy = LinearStage(100, 5, 0).fit(Gaussian(1.5), X, y, 1.0)
    np.testing.assert_allclose(
        tight.evaluate("decision_function", X[:500]),
        roomy.evaluate("decision_function", X[:500]),
        rtol=1e-8,
        atol=1e-8,
    )
    assert peak < 50e6


@pytest.mark.parametrize(
    "model, limit",
    [
        (HyperRidge(GaussianHyper(), alpha=1.0, landmarks=None), "20MB"),
        (HyperRidge(GaussianHyper(), alpha=1.0, landmarks=1000), "20MB"),
        (HyperClassifier(HyperRidge(GaussianHyper(), alpha=1.0, landmarks=20), C=1.0), "1MB"),
    ],
    ids=["exact", "landmarks", "machine"],
)
def test_memory_guards_speak_before_the_work(model, limit):
    X, y = rings(400)
    tracemalloc.start()
    with config_context(memory_limit=limit), pytest.raises(MemoryError, match="the budget is"):
        model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


@pytest.mark.parametrize(
    "totals", [[3, 2, 1, 2, 3], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [2, 1, 1, 1, 2]]
)
@pytest.mark.parametrize("start", range(5))
def test_walking_down_finds_the_least_of_a_valley_and_asks_no_farther(totals, start):
    asked = []
    best, losses = _walk_down(lambda k: (asked.append(k), np.array([totals[k]]))[1], start, 5)
    if len(set(totals)) > 2:  # no plateau
        assert totals[best] == 1
    assert losses.sum() == totals[best] <= totals[start]
    assert (
        len(asked) == len(set(asked))
        and max(asked) <= max(start, best) + 1
        and min(asked) >= min(start, best) - 1
    )


@pytest.mark.parametrize("intercept", [False, True])
def test_kernels_of_one_path_are_those_learned_one_by_one(intercept):
    X, y = make_friedman1(60, random_state=0)
    pairs = encode_target(y, 60, "gaussian").target
    task = Regression(GaussianHyper(1.0), n_landmarks=40, fit_intercept=intercept)
    path = KernelPath.of_items(task, X, pairs, np.random.RandomState(3))
    for alpha in (1e-5, 1e-2):
        alone, _ = learn_kernel(task._replace(alpha=alpha), X, pairs, np.random.RandomState(3))
        found = path.kernel(alpha)
        np.testing.assert_array_equal(found.coef, alone.coef)
        assert found.intercept == alone.intercept
        np.testing.assert_array_equal(found(X[:5]), alone(X[:5]))


def test_paths_serve_only_direct_ridge_regression_of_one_part():
    task = Regression(GaussianHyper(1.0), n_landmarks=40)
    assert KernelPath.serves(task, 60)
    for change in (
        {"n_landmarks": None},
        {"epsilon": 0.1},
        {"nonnegative": True},
        {"n_parts": 2},
        {"solver": "cg"},
        {"landmark_method": "grid"},
        {"hyper_kernel": TensorHyper()},
        {"n_landmarks": 2000},
    ):
        assert not KernelPath.serves(task._replace(**change), 60), change
    # iterations would evaluate the sections of the Wishart hyper-kernel again and again
    assert not KernelPath.serves(task._replace(n_landmarks=200), 600)
    assert KernelPath.serves(task._replace(hyper_kernel=WishartHyper(), n_landmarks=200), 600)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", ["gaussian", "product"])
def test_paths_of_training_sets_are_those_of_their_items(kind, fit_intercept):
    X, y = make_friedman1(60, random_state=0)
    fold_of = np.random.RandomState(1).randint(4, size=60)
    task = Regression(GaussianHyper(1.5, 0.5), n_landmarks=30, fit_intercept=fit_intercept)
    shared = FoldPaths(task, X, fold_of, np.random.RandomState(3))
    for fold in range(4):
        rows = np.flatnonzero(fold_of != fold)
        pairs = encode_target(y[rows], len(rows), kind).target
        path = shared.without(fold, pairs)
        design = make_design(task.hyper_kernel, X[rows], shared.centers)
        equations = normal_equations(design, pairs, fit_intercept, whitening=shared.whitening)
        assert path.equations.n_pairs == equations.n_pairs == len(rows) ** 2
        for found, alone in zip(path.equations, equations):
            np.testing.assert_allclose(found, alone, rtol=1e-7, atol=1e-7 * np.max(np.abs(alone)))
        alone = KernelPath(task.hyper_kernel, shared.centers, shared.whitening, equations)
        expected = alone.kernel(1e-4)(X)
        np.testing.assert_allclose(path.kernel(1e-4)(X), expected, atol=1e-6)


def test_candidates_that_differ_in_their_penalty_share_the_normal_equations(monkeypatch):
    X, y = make_friedman1(60, random_state=0)
    made = []
    paths = []
    plain = FoldPaths.__init__
    without = FoldPaths.without

    def counted(self, task, items, fold_of, random):
        made.append(id(task.hyper_kernel))
        plain(self, task, items, fold_of, random)

    def counted_path(self, fold, target):
        paths.append((id(self), fold))
        return without(self, fold, target)

    monkeypatch.setattr(FoldPaths, "__init__", counted)
    monkeypatch.setattr(FoldPaths, "without", counted_path)
    model = HyperRegressor(random_state=0).fit(X, y)
    scales = {str(row["hyper_kernel"]) for row in model.cv_results_}
    assert len(model.cv_results_) > len(scales)  # some differ in alpha only
    assert len(made) == len(set(made)) == len(scales)
    assert len(paths) == len(set(paths)) == 5 * len(scales)
